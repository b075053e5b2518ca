/* SPDX-License-Identifier: MIT */
/* Losses: threads that did not run may have run unseen while events were missing, so that part of their waits becomes
 * unknown. This is decided when a wait is over and the losses until then are known (held.h). */
#include "state/gaps.h"

#include "base/search.h"
#include "state/builder.h"

/* ---- gaps of events ---- */

static void merge_oldest(builder_gaps *g)
{
    g->v[0].end = g->v[1].end;
    g->n--;
    memmove(g->v + 1, g->v + 2, (g->n - 1) * sizeof *g->v);
}

static void add(builder_gaps *g, int64_t begin, int64_t end, size_t most)
{
    size_t first = search_first(k, 0, g->n, g->v[k].end >= begin), behind = first;
    for (; behind < g->n && g->v[behind].begin <= end; behind++) {
        begin = g->v[behind].begin < begin ? g->v[behind].begin : begin;
        end = g->v[behind].end > end ? g->v[behind].end : end;
    }
    if (behind == first)
        vec_push(g, ((struct builder_gap){0}));
    size_t tail = g->n - (behind == first ? behind + 1 : behind);
    memmove(g->v + first + 1, g->v + behind, tail * sizeof *g->v);
    g->v[first] = (struct builder_gap){begin, end};
    g->n = first + 1 + tail;
    if (g->n > most)
        merge_oldest(g);
}

void state_builder_gap_add(struct state_builder *b, int32_t cpu, int64_t begin, int64_t end)
{
    if (begin >= end)
        return;
    add(&b->gaps, begin, end, BUILDER_MOST_GAPS);
    for (size_t i = 0; i < b->cpus.n; i++)
        if (cpu < 0 || (size_t)cpu == i)
            add(&b->cpus.v[i].gaps, begin, end, BUILDER_MOST_CPU_GAPS);
}

static void widen(struct builder_gap *hull, int64_t begin, int64_t end)
{
    hull->begin = begin < hull->begin ? begin : hull->begin;
    hull->end = end > hull->end ? end : hull->end;
}

/* Hull of all gaps that touch [begin, end), cut to that. An idle thread stays on its CPU. */
static bool hull_of(
    const struct state_builder *b, const struct builder_thread *t, int64_t begin, int64_t end, struct builder_gap *out)
{
    const builder_gaps none = {0},
                       *g = t->idle_cpu < 0 ? &b->gaps
        : (size_t)t->idle_cpu < b->cpus.n   ? &b->cpus.v[t->idle_cpu].gaps
                                            : &none;
    size_t first = search_first(k, 0, g->n, g->v[k].end > begin),
           behind = first + search_first(k, 0, g->n - first, g->v[first + k].begin >= end);
    *out = (struct builder_gap){INT64_MAX, INT64_MIN};
    if (first < behind)
        widen(out, g->v[first].begin, g->v[behind - 1].end);
    for (size_t i = 0; i < b->cpus.n; i++) {
        const struct state_builder_cpu *c = &b->cpus.v[i];
        if (c->deaf && !(c->absent && t->stayed) && c->deaf_begin < end && c->deaf_end > begin &&
            (t->idle_cpu < 0 || (size_t)t->idle_cpu == i))
            widen(out, c->deaf_begin, c->deaf_end);
    }
    out->begin = out->begin > begin ? out->begin : begin;
    out->end = out->end < end ? out->end : end;
    return out->begin < out->end;
}

/* ---- threads ---- */

/* State after the gap in a wait, judged by how the wait ended. */
static uint32_t tail_of(const struct state_builder *b, uint8_t next)
{
    if (next == STATE_WAIT_FOR_CPU)
        return STATE_WAIT_BLOCKED;
    bool may_wait = (state_running(next) || next == STATE_IDLE) && kernel_tracker_has(b->tracker, KERNEL_WAKE);
    return may_wait ? STATE_WAIT_FOR_CPU : STATE_UNKNOWN;
}

/* Finds the part of the thread's last state, which lasts until ts, in which nothing is known. */
static bool find_gap(const struct state_builder *b, const struct builder_thread *t, int64_t ts, struct builder_gap *gap)
{
    const struct series_entry *last = &t->series.last;
    uint8_t value = t->series.n ? b->codes.v[last->number].value : STATE_NONE;
    bool waits = value == STATE_WAIT_FOR_CPU || value == STATE_WAIT_BLOCKED || value == STATE_WAIT_UNKNOWN;
    if (last->time >= ts || !(waits || value == STATE_UNKNOWN))
        return false;
    bool missing = hull_of(b, t, last->time, ts, gap);
    if (value == STATE_UNKNOWN && (!missing || gap->begin > last->time))
        *gap = (struct builder_gap){last->time, ts};
    else if (!missing)
        return false;
    return true;
}

void state_builder_gap_settle(struct state_builder *b, struct builder_thread *t, int64_t ts, uint32_t code)
{
    struct builder_gap gap;
    if ((t->series.n && t->series.last.number == code) || !find_gap(b, t, ts, &gap))
        return;
    uint32_t tail = tail_of(b, b->codes.v[code].value);
    series_push(&b->pool, &t->series, gap.begin, STATE_UNKNOWN);
    if (gap.end < ts && tail != STATE_UNKNOWN)
        series_push(&b->pool, &t->series, gap.end, tail);
    else
        gap.end = ts;
    state_builder_thread_doubt(b, t, gap.begin, gap.end);
}

bool state_builder_gap_is_awaited(const struct state_builder *b, size_t row)
{
    const struct kernel_thread *threads;
    size_t n = kernel_tracker_threads(b->tracker, &threads);
    uint8_t state = b->threads.v[row].state;
    if (!b->n_losses || row >= n || !threads[row].died || (state != THREAD_BLOCKED && state != THREAD_READY))
        return false;
    for (size_t i = 0; i < b->cpus.n; i++)
        if (!b->cpus.v[i].absent && b->cpus.v[i].last_ts <= threads[row].end)
            return true;
    return false;
}

void state_builder_gaps_finish(struct state_builder *b, int64_t end)
{
    const struct kernel_thread *threads;
    size_t n = kernel_tracker_threads(b->tracker, &threads);
    for (size_t i = 0; i < b->threads.n && b->n_losses; i++)
        if (!b->threads.v[i].series.goes_on && b->threads.v[i].state != THREAD_GONE)
            state_builder_gap_settle(b, &b->threads.v[i], i < n && threads[i].died ? threads[i].end : end, STATE_NONE);
}
