/* SPDX-License-Identifier: MIT */
/* Times of a guest on the clock of its host, as trace-cmd measured their relation while it recorded both. */
#include "ftrace/pages.h"

#include <stdlib.h>

#include "base/order.h"
#include "base/search.h"

enum { INTERPOLATE = 1, MOST_SAMPLES = 1 << 16 };

static int by_time(const void *a, const void *b)
{
    const struct ftrace_sample *p = a, *q = b;
    return order_of(p->time, q->time);
}

/* Samples in order of time; of equal times the first. */
static void settle(struct ftrace_shift *s)
{
    size_t n = 0;
    if (s->n)
        qsort(s->samples, s->n, sizeof *s->samples, by_time);
    for (size_t i = 0; i < s->n; i++)
        if (!n || s->samples[i].time != s->samples[n - 1].time)
            s->samples[n++] = s->samples[i];
    s->n = n;
}

/* Reads a column of a CPU's samples. */
#define READ_COLUMN(b, shift, column) \
    do { \
        for (size_t i_ = 0; i_ < (shift)->n; i_++) \
            (shift)->samples[i_].column = ftrace_number((b), 8); \
    } while (0)

void ftrace_read_shift(struct ftrace_file *f, struct ftrace_bytes b)
{
    f->host_id = ftrace_number(&b, 8);
    uint32_t flags = (uint32_t)ftrace_number(&b, 4);
    uint64_t n = ftrace_number(&b, 4);
    f->n_shifts = 0;
    if (b.bad || n > b.n / 4)
        return ftrace_problem(f, "%s: the relation to the host's clock is damaged; times are the guest's", f->path);
    f->shifts = arena_new(&f->arena, struct ftrace_shift, n + 1);
    for (uint64_t i = 0; i < n && !b.bad; i++) {
        struct ftrace_shift *s = &f->shifts[i];
        uint64_t samples = ftrace_number(&b, 4);
        b.bad |= samples > (b.n - b.at) / 24 || samples > MOST_SAMPLES;
        s->n = b.bad ? 0 : samples;
        s->interpolate = flags & INTERPOLATE;
        s->samples = arena_new(&f->arena, struct ftrace_sample, s->n + 1);
        READ_COLUMN(&b, s, time);
        READ_COLUMN(&b, s, offset);
        READ_COLUMN(&b, s, scaling);
    }
    if (b.bad)
        return ftrace_problem(f, "%s: the relation to the host's clock is damaged; times are the guest's", f->path);
    bool fractions = b.at < b.n; /* trace-cmd 3.0 and later write them */
    for (uint64_t i = 0; i < n; i++) {
        if (fractions)
            READ_COLUMN(&b, &f->shifts[i], fraction);
        settle(&f->shifts[i]);
    }
    f->n_shifts = n;
}

/* Change of the offset since sample `a`, rounded as trace-cmd does; 0 where it is beyond any. */
static __int128 change(const struct ftrace_sample *a, const struct ftrace_sample *b, uint64_t time)
{
    __int128 span = (__int128)b->time - a->time, steps = (__int128)time - a->time, product;
    if (__builtin_mul_overflow(steps, (__int128)(int64_t)b->offset - (int64_t)a->offset, &product))
        return 0;
    return (product + span / 2) / span;
}

uint64_t ftrace_shifted(const struct ftrace_shift *s, uint64_t time)
{
    const struct ftrace_sample *v = s->samples;
    if (!s->n)
        return time;
    if (s->n == 1)
        return time + v->offset;
    size_t i = search_first(k, 0, s->n, v[k].time > time);
    i = i ? i - 1 : 0;
    i = i < s->n - 1 ? i : s->n - 2;
    __int128 by = (int64_t)v[i].offset;
    if (s->interpolate)
        by += change(&v[i], &v[i + 1], time);
    unsigned shift = v[i].fraction < 64 ? (unsigned)v[i].fraction : 63;
    return (uint64_t)((unsigned __int128)time * v[i].scaling >> shift) + (uint64_t)by;
}
