/* SPDX-License-Identifier: MIT */
/* Common offset for traces that share a clock. */
#include <stdlib.h>

#include "ctf/clock.h"
#include "ctf/trace.h"

static bool same_clock(const struct ctf_clock *a, const struct ctf_clock *b)
{
    return a->has_uuid && b->has_uuid && !memcmp(a->uuid, b->uuid, sizeof a->uuid) && a->freq == b->freq &&
        !strcmp(a->name, b->name);
}

static int64_t limited(__int128 ns)
{
    return ns < CTF_TIME_MIN ? CTF_TIME_MIN : ns > CTF_TIME_MAX ? CTF_TIME_MAX : (int64_t)ns;
}

/* Shift between two offsets of one clock: times move by at least `least`, at most `most`. They differ only for clocks
 * whose cycles are no whole ns. */
struct move {
    __int128 least, most;
};

static struct move move_between(const struct ctf_clock_rate *from, const struct ctf_clock_rate *to)
{
    const __int128 second = 1000000000, freq = from->freq;
    __int128 part = ((__int128)to->offset - from->offset) * second, least = part / freq;
    least -= part % freq < 0;
    struct move m = {((__int128)to->offset_s - from->offset_s) * second + least, 0};
    m.most = m.least + (part % freq != 0);
    return m;
}

static void move_stream(struct ctf_trace *t, struct ctf_stream *s, const struct move *of_piece)
{
    for (size_t i = 0; i < s->packets.n && s->timed; i++) {
        struct ctf_packet *p = &s->packets.v[i];
        const struct move *m = &of_piece[t->files.v[p->file].piece];
        p->begin = limited(p->begin + m->least);
        p->end = limited(p->end + m->most);
    }
    if (s->timed)
        qsort(s->packets.v, s->packets.n, sizeof *s->packets.v, ctf_packet_by_time);
    free(s->marks);
    s->marks = NULL;
    s->disorder = false;
    ctf_stream_settle(s);
}

/* Returns the shift of each piece's times, for a stream class. */
static struct move *moves_of(const struct ctf_trace *t, const struct ctf_stream_class *sc, const struct ctf_clock *as)
{
    struct move *moves = mem_zalloc((t->pieces.n + 1) * sizeof *moves);
    struct ctf_clock_rate from, to;
    ctf_clock_rate_of(as, &to);
    for (uint32_t i = 0; i < t->pieces.n && sc->clock >= 0; i++) {
        const struct ctf_clock *c = ctf_trace_clock_of(t, i, sc);
        if (!c || !same_clock(c, as))
            continue;
        ctf_clock_rate_of(c, &from);
        moves[i] = move_between(&from, &to);
    }
    return moves;
}

static void move_streams(struct ctf_trace *t, const struct ctf_clock *as)
{
    for (size_t i = 0; i < t->streams.n; i++) {
        struct move *moves = moves_of(t, t->streams.v[i].plan->sc, as);
        move_stream(t, &t->streams.v[i], moves);
        free(moves);
    }
}

static void move_absences(struct ctf_trace *t, __int128 by)
{
    for (size_t i = 0; i < t->absent.n; i++) {
        struct ctf_absent *a = &t->absent.v[i];
        a->begin = a->begin > INT64_MIN ? limited(a->begin + by) : a->begin;
        a->end = a->end < INT64_MAX ? limited(a->end + by) : a->end;
    }
}

/* Returns the shift of the trace's clock: the greatest of all pieces. */
static __int128 distance(const struct ctf_trace *t, const struct ctf_clock *as)
{
    struct ctf_clock_rate from, to;
    __int128 most = 0;
    ctf_clock_rate_of(as, &to);
    for (size_t i = 0; i < t->pieces.n; i++)
        for (size_t k = 0; k < t->pieces.v[i].md.n_clocks; k++) {
            const struct ctf_clock *c = &t->pieces.v[i].md.clocks[k];
            if (!same_clock(c, as))
                continue;
            ctf_clock_rate_of(c, &from);
            __int128 by = move_between(&from, &to).least;
            most = (by < 0 ? -by : by) > (most < 0 ? -most : most) ? by : most;
        }
    return most;
}

static void set_offset(struct ctf_trace *t, const struct ctf_clock *as)
{
    for (size_t i = 0; i < t->pieces.n; i++)
        for (size_t k = 0; k < t->pieces.v[i].md.n_clocks; k++) {
            struct ctf_clock *c = &t->pieces.v[i].md.clocks[k];
            if (!same_clock(c, as))
                continue;
            c->offset_s = as->offset_s;
            c->offset = as->offset;
        }
    uint64_t parts[3] = {t->fingerprint, (uint64_t)as->offset_s, as->offset};
    t->fingerprint = map_hash(parts, sizeof parts);
}

int64_t ctf_trace_take_offset(struct ctf_trace *t, const struct ctf_trace *as)
{
    const struct ctf_clock *clocks;
    if (t->growing || t->fed || t->still || !ctf_trace_clocks(as, &clocks))
        return 0;
    __int128 by = distance(t, clocks);
    if (!by)
        return 0;
    move_streams(t, clocks); /* the clocks still have their old offsets */
    move_absences(t, by);
    set_offset(t, clocks);
    atomic_store_explicit(&t->counted, false, memory_order_release);
    return limited(by);
}
