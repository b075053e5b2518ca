/* SPDX-License-Identifier: MIT */
/* Pages of the kernel's ring buffer (Documentation/trace/ring-buffer-map.rst, include/linux/ring_buffer.h). */
#include "ftrace/pages.h"

#include <string.h>

/* A record's first word: 5 bits of type or length in words, 27 bits of time since the record before. */
enum { TYPE_LONG = 0, TYPE_PADDING = 29, TYPE_EXTEND = 30, TYPE_STAMP = 31, DELTA_BITS = 27 };
/* The commit word: size of the data, and flags. */
enum { COMMIT_MASK = (1 << 27) - 1 };
#define MISSED_EVENTS (1u << 31)
#define MISSED_STORED (1u << 30)
/* Bits that absolute times do not have. */
#define STAMP_MSB (UINT64_C(0xf8) << 56)

void ftrace_put(struct ftrace_sink *s, const void *v, uint64_t n)
{
    s->over |= s->out && n > s->room - s->n;
    if (s->over)
        return;
    if (s->out && n)
        memcpy(s->out + s->n, v, n);
    s->n += n;
}

void ftrace_put_number(struct ftrace_sink *s, uint64_t v, unsigned bytes, bool big)
{
    uint8_t b[8];
    for (unsigned i = 0; i < bytes; i++)
        b[big ? bytes - 1 - i : i] = (uint8_t)(v >> 8 * i);
    ftrace_put(s, b, bytes);
}

bool ftrace_page_open(const struct ftrace_file *f, const uint8_t *page, uint32_t page_bytes, struct ftrace_page *out)
{
    uint64_t commit = ftrace_load(page + f->commit_at, f->commit_bytes, f->big);
    uint32_t n = (uint32_t)commit & COMMIT_MASK, room = page_bytes - f->data_at;
    *out = (struct ftrace_page){.data = page + f->data_at, .time = ftrace_load(page + f->time_at, 8, f->big)};
    if (n > room)
        return false;
    out->n = n;
    out->missed_counted = commit & MISSED_STORED && f->commit_bytes <= room - n;
    if (commit & MISSED_EVENTS)
        out->missed = out->missed_counted ? ftrace_load(out->data + n, f->commit_bytes, f->big) : 1;
    return true;
}

static uint64_t ns_of(struct ftrace_times t, uint64_t time)
{
    time = t.to_host ? ftrace_shifted(t.to_host, time) : time;
    return t.mult ? (uint64_t)(((unsigned __int128)time * t.mult) >> t.shift) : time;
}

static void put_record(const struct ftrace_file *f, const uint8_t *record, uint64_t n, uint64_t ns,
    struct ftrace_sink *s, struct ftrace_tally *t)
{
    uint32_t id = n >= 2 ? (uint32_t)ftrace_load(record, 2, f->big) : UINT32_MAX;
    const struct ftrace_event *ev = id < f->n_ids ? f->by_id[id] : NULL;
    if (!ev) {
        t->unknown++;
        t->unknown_id = id;
        return;
    }
    struct ftrace_sink before = *s;
    ftrace_put_number(s, id, 2, f->big);
    ftrace_put_number(s, ns, 8, f->big);
    if (!ftrace_put_event(s, ev, record, n, f->big)) {
        t->cut++;
        *s = before;
        return;
    }
    t->events++;
    t->first = ns < t->first ? ns : t->first;
    t->last = ns > t->last ? ns : t->last;
}

void ftrace_page_put(const struct ftrace_file *f, const struct ftrace_page *p, struct ftrace_times times,
    struct ftrace_sink *s, struct ftrace_tally *t)
{
    const uint8_t *v = p->data;
    uint64_t now = p->time;
    uint32_t at = 0;
    while (p->n - at >= 4) {
        uint32_t word = (uint32_t)ftrace_load(v + at, 4, f->big);
        uint32_t type = f->big ? word >> DELTA_BITS : word & 31;
        uint64_t delta = f->big ? word & ((1u << DELTA_BITS) - 1) : word >> 5;
        bool has_second = type == TYPE_LONG || type >= TYPE_PADDING;
        if (type == TYPE_PADDING && !delta)
            return;
        if (has_second && p->n - at < 8)
            break;
        uint64_t second = has_second ? ftrace_load(v + at + 4, 4, f->big) : 0, n = type * 4u;
        uint32_t head = type == TYPE_PADDING || !has_second ? 4 : 8;
        if (type == TYPE_LONG)
            n = second < 4 ? UINT32_MAX : (second - 4 + 3) & ~UINT64_C(3);
        else if (type == TYPE_PADDING)
            n = second;
        else if (has_second)
            n = 0;
        if (n > p->n - at - head)
            break;
        if (type == TYPE_STAMP)
            now = (now & STAMP_MSB) | second << DELTA_BITS | delta;
        else
            now += type == TYPE_EXTEND ? second << DELTA_BITS | delta : delta;
        if (type < TYPE_PADDING)
            put_record(f, v + at + head, n, ns_of(times, now), s, t);
        at += head + (uint32_t)n;
    }
    t->damaged += at != p->n;
}
