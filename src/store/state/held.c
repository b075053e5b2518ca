/* SPDX-License-Identifier: MIT */
/* Delayed records: they wait until losses are known. */
#include "state/held.h"

#include <stdlib.h>
#include <string.h>

#include "state/builder.h"

static struct builder_suspect *suspect_at(struct builder_held *h, uint32_t cpu)
{
    while (h->suspects.n <= cpu)
        vec_push(&h->suspects, ((struct builder_suspect){0}));
    return &h->suspects.v[cpu];
}

/* Reads the record's news of packets with losses. A loss behind a packet's last event counts at once. */
static void look(struct state_builder *b, const struct kernel_record *r)
{
    struct builder_held *h = &b->held;
    if (r->cpu >= BUILDER_MOST_CPUS || r->kind == KERNEL_ABSENT)
        return;
    if (r->kind != KERNEL_LOST) {
        if (r->cpu < h->suspects.n) {
            h->suspects.v[r->cpu].heard = true;
            h->suspects.v[r->cpu].last_ts = r->ts;
        }
        return;
    }
    struct builder_suspect *s = suspect_at(h, r->cpu);
    h->open -= s->open;
    s->open = r->u.lost.count && r->u.lost.end > r->ts;
    s->heard = false;
    h->open += s->open;
    if (!r->u.lost.count)
        state_builder_gap_add(b, (int32_t)r->cpu, r->u.lost.begin, r->u.lost.end);
}

/* Time until which everything is known. */
static int64_t known_until(const struct builder_held *h)
{
    int64_t until = INT64_MAX;
    for (size_t i = 0; i < h->suspects.n && h->open; i++) {
        const struct builder_suspect *s = &h->suspects.v[i];
        if (s->open && s->heard && s->last_ts < until)
            until = s->last_ts;
    }
    return until;
}

static bool is_path(const struct kernel_record *r)
{
    return r->kind == KERNEL_SYSCALL_ENTRY && r->u.syscall.io == KERNEL_IO_OPEN;
}

static void push(struct builder_held *h, const struct kernel_record *r)
{
    const void *data = is_path(r)        ? (const void *)r->u.syscall.path
        : r->kind == KERNEL_STATEDUMP_FD ? (const void *)r->u.descriptor.path
        : r->kind == KERNEL_COUNTERS     ? (const void *)r->u.counters.values
                                         : NULL;
    size_t n = !data                     ? 0
        : is_path(r)                     ? r->u.syscall.path_bytes
        : r->kind == KERNEL_STATEDUMP_FD ? r->u.descriptor.path_bytes
                                         : builder_held_values(r) * sizeof(int64_t);
    h->data.n = (h->data.n + 7) / 8 * 8;
    vec_push(&h->v, ((struct builder_held_record){*r, h->data.n}));
    vec_reserve(&h->data, n + 8);
    if (n)
        memcpy(h->data.v + h->data.n, data, n);
    h->data.n += n;
}

static void go_on(struct state_builder *b, struct builder_held_record *x)
{
    const void *data = b->held.data.n ? b->held.data.v + x->data : NULL;
    struct kernel_record *r = &x->record;
    if (is_path(r))
        r->u.syscall.path = data;
    else if (r->kind == KERNEL_STATEDUMP_FD)
        r->u.descriptor.path = data;
    else if (r->kind == KERNEL_COUNTERS)
        r->u.counters.values = data;
    state_builder_record(b, r);
}

/* Reuses the room of handled records. */
static void compact(struct builder_held *h)
{
    size_t left = h->v.n - h->first;
    if (h->first < left)
        return;
    size_t from = left ? h->v.v[h->first].data : h->data.n;
    for (size_t i = 0; i < left; i++) {
        h->v.v[i] = h->v.v[h->first + i];
        h->v.v[i].data -= from;
    }
    if (h->data.n > from)
        memmove(h->data.v, h->data.v + from, h->data.n - from);
    h->data.n -= from;
    h->v.n = left;
    h->first = 0;
}

static void release_until(struct state_builder *b, int64_t until)
{
    struct builder_held *h = &b->held;
    while (h->first < h->v.n && (h->v.v[h->first].record.ts <= until || h->v.n - h->first > BUILDER_MOST_HELD))
        go_on(b, &h->v.v[h->first++]);
    compact(h);
}

void state_builder_hold(struct state_builder *b, const struct kernel_record *r)
{
    struct builder_held *h = &b->held;
    look(b, r);
    if (!h->open && !h->v.n) {
        state_builder_record(b, r);
        return;
    }
    push(h, r);
    release_until(b, known_until(h));
}

void state_builder_release(struct state_builder *b)
{
    release_until(b, INT64_MAX);
}

void state_builder_held_fini(struct builder_held *h)
{
    vec_free(&h->suspects);
    vec_free(&h->v);
    vec_free(&h->data);
}
