/* SPDX-License-Identifier: MIT */
/* Snapshot of a growing trace: its declarations and names at one time, as a trace that does not change. */
#include "ctf/feed.h"
#include "ctf/trace.h"

static void take_problems(struct ctf_trace *t, const struct ctf_trace *from)
{
    for (size_t i = 0; i < from->problems.list.n; i++) {
        struct ctf_problem p = from->problems.list.v[i];
        p.text = mem_strdup(p.text);
        vec_push(&t->problems.list, p);
    }
}

/* Copies the state of the streams, without their packets. */
static void take_streams(struct ctf_trace *t, const struct ctf_trace *from)
{
    for (size_t i = 0; i < from->streams.n; i++) {
        const struct ctf_stream *s = &from->streams.v[i];
        vec_push(&t->streams,
            ((struct ctf_stream){.plan = s->plan,
                .name = s->name,
                .path = s->path,
                .instance_id = s->instance_id,
                .has_instance = s->has_instance,
                .timed = s->timed,
                .cpu = s->cpu,
                .lost_events = s->lost_events,
                .lost_packets = s->lost_packets,
                .bytes = s->bytes,
                .begin = s->begin,
                .end = s->end}));
    }
}

struct ctf_trace *ctf_trace_still(const struct ctf_trace *from, uint64_t fingerprint)
{
    struct ctf_trace *t = ctf_trace_new(from->schemas);
    for (size_t i = 0; i < from->pieces.n; i++) {
        const struct ctf_piece *p = &from->pieces.v[i];
        vec_push(&t->pieces,
            ((struct ctf_piece){.dir = arena_strdup(&t->arena, p->dir),
                .md = p->md,
                .parsed = true,
                .borrowed = true,
                .declared = p->declared}));
    }
    t->main = from->main;
    t->schema = from->schema;
    t->packet_header = from->packet_header;
    t->plans = from->plans;
    take_streams(t, from);
    take_problems(t, from);
    t->fingerprint = fingerprint;
    t->still = true;
    atomic_store_explicit(&t->counted, true, memory_order_release);
    return t;
}
