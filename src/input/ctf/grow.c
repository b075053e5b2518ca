/* SPDX-License-Identifier: MIT */
/* Growing streams: appending packets, and freeing packets that were read. */
#include <stdlib.h>

#include "base/search.h"
#include "ctf/trace.h"

struct ctf_stream_growth *ctf_stream_growth_new(void)
{
    struct ctf_stream_growth *g = mem_zalloc(sizeof *g);
    g->ends[0] = g->quiet = INT64_MIN;
    return g;
}

/* Copies the bytes of a fed packet, since they belong to the caller. */
static void keep_bytes(const struct ctf_trace *t, struct ctf_packet *p)
{
    const struct ctf_file *f = &t->files.v[p->file];
    size_t n = (size_t)((p->content_bits + 7) / 8);
    if (!f->fed)
        return;
    p->bytes = mem_alloc(n + FILE_COPY_SPARE_BYTES);
    memcpy(p->bytes, f->map.data + p->offset, n);
    memset(p->bytes + n, 0, FILE_COPY_SPARE_BYTES);
    p->digest = map_hash(p->bytes, n);
    p->offset += f->size;
}

/* Sets the CPU as agree_on_cpu of packets_finish.c does, but by the first packet. */
static void take_cpu(struct ctf_trace *t, const struct ctf_stream *s, struct ctf_packet *p)
{
    if (p->cpu == s->cpu || (!s->packets.n && !s->growth->gone) ||
        (!s->has_instance && p->cpu >= 0 && p->cpu < CTF_MOST_CPUS))
        return;
    ctf_problem_add(&t->problems,
        "%s: packet at byte %llu: its cpu_id is %d, that of the packets before it %d, which is taken",
        t->files.v[p->file].path, (unsigned long long)p->offset, p->cpu, s->cpu);
    p->cpu = s->cpu;
}

/* Returns whether the packet was found before. Freed packets are no longer known. */
static bool is_copy(struct ctf_trace *t, const struct ctf_stream *s, const struct ctf_packet *p)
{
    const struct ctf_stream_growth *g = s->growth;
    const struct ctf_packet *v = s->packets.v;
    size_t n = s->packets.n;
    if (s->begins_ascend)
        n = search_first(i, 0, n, v[i].begin > p->begin);
    return (g->has_next && ctf_packet_is_copy(t, p, &g->next, 1)) || ctf_packet_is_copy(t, p, v, n);
}

static void publish(struct ctf_stream *s, const struct ctf_packet *p)
{
    vec_push(&s->packets, *p);
    struct ctf_packet *last = &s->packets.v[s->packets.n - 1];
    ctf_packet_losses(s, s->packets.n - 1);
    if (!s->timed)
        return;
    ctf_packet_track(s, last, s->growth->ends);
    ctf_stream_note_order(s, s->packets.n - 1);
    s->begin = last->begin < s->begin ? last->begin : s->begin;
    s->end = last->end > s->end ? last->end : s->end;
}

void ctf_packet_append(struct ctf_trace *t, struct ctf_stream *s, struct ctf_packet *p)
{
    struct ctf_stream_growth *g = s->growth;
    keep_bytes(t, p);
    take_cpu(t, s, p);
    g->quiet = t->quiet > g->quiet ? t->quiet : g->quiet;
    if (!s->timed) {
        publish(s, p);
        return;
    }
    if (is_copy(t, s, p)) {
        if (t->fed)
            free(p->bytes);
        return;
    }
    if (p->begin < t->late)
        ctf_problem_add(&t->problems,
            "%s: packets begin before the time from which on their stream was said to go on; they come too late",
            t->files.v[p->file].path);
    if (ctf_stream_steps_back(t, s, p))
        ctf_stream_tell_steps(t, s);
    t->found_late |= s->packets.n && p->begin < s->packets.v[s->packets.n - 1].begin;
    ctf_packet_mend_begin(t, s, p, g->has_next ? &g->next : s->packets.n ? &s->packets.v[s->packets.n - 1] : NULL);
    if (g->has_next) {
        ctf_packet_mend_end(t, s, &g->next, p);
        publish(s, &g->next);
    } else if (s->packets.n && ctf_packet_waits(t->quirks, &s->packets.v[s->packets.n - 1])) {
        ctf_packet_mend_end(t, s, &s->packets.v[s->packets.n - 1], p); /* the last packet was published without
                                                                        * waiting */
    }
    g->has_next = ctf_packet_waits(t->quirks, p);
    if (g->has_next)
        g->next = *p;
    else
        publish(s, p);
}

void ctf_stream_flush(struct ctf_trace *t, struct ctf_stream *s)
{
    struct ctf_stream_growth *g = s->growth;
    if (!g || !g->has_next)
        return;
    g->has_next = false;
    ctf_packet_mend_end(t, s, &g->next, NULL);
    publish(s, &g->next);
}

enum { LET_GO_AT_LEAST = 64 };

size_t ctf_stream_let_go(struct ctf_stream *s, size_t passed, size_t *losses)
{
    struct ctf_stream_growth *g = s->growth;
    *losses = 0;
    for (; g->freed < passed; g->freed++) {
        free(s->packets.v[g->freed].bytes);
        s->packets.v[g->freed].bytes = NULL;
    }
    if (passed < LET_GO_AT_LEAST || passed < s->packets.n / 2)
        return 0;
    size_t n = passed - 1; /* keeps the last one: it shows the losses before the next packet */
    *losses = s->losses.n;
    for (size_t i = s->packets.n; i > passed; i--)
        if (s->packets.v[i - 1].n_losses)
            *losses = s->packets.v[i - 1].loss;
    memmove(s->packets.v, s->packets.v + n, (s->packets.n - n) * sizeof *s->packets.v);
    s->packets.n -= n;
    if (*losses)
        memmove(s->losses.v, s->losses.v + *losses, (s->losses.n - *losses) * sizeof *s->losses.v);
    s->losses.n -= *losses;
    for (size_t i = 0; i < s->packets.n; i++) {
        struct ctf_packet *p = &s->packets.v[i];
        p->loss -= p->n_losses && p->loss >= *losses ? (uint32_t)*losses : 0;
    }
    s->packets.v[0].n_losses = 0;
    g->gone += n;
    g->freed -= n;
    return n;
}
