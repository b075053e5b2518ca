/* SPDX-License-Identifier: MIT */
/* Arrows of Thread Status, from each thread of a CPU to the next. */
#include "views/thread_arrows.h"

#include "views/sampling.h"

enum {
    MAX_INTERVALS = 20000 /* limit for reading all intervals of a host's CPUs; above it arrows are sampled */,
    LEAST_SAMPLES = 2000
};

static bool is_thread(const struct state_interval *iv)
{
    return iv->thread >= 0 && iv->value == STATE_ACTIVE;
}

/* Succession of threads on a CPU. Idle time does not end it; unknown time does. */
struct succession {
    const struct view_host *h;
    const struct tsp_query *q;
    struct tsp_answer *answer;
    struct state_interval last;
    bool known;
};

static void succeed(struct succession *s, const struct state_interval *iv)
{
    if (s->known && s->last.end > iv->begin)
        return;
    if (s->known && is_thread(iv) && s->last.thread != iv->thread) {
        int64_t begin = view_to_reference(s->h, s->last.end), end = view_to_reference(s->h, iv->begin);
        if (begin <= s->q->end && end >= s->q->begin)
            tsp_write_arrow(s->answer, begin, end, s->h->first_thread + s->last.thread, s->h->first_thread + iv->thread,
                THREAD_ARROW);
    }
    if (is_thread(iv)) {
        s->last = *iv;
        s->known = true;
    } else if (iv->value != STATE_IDLE) {
        s->known = false;
    }
}

/* Adds the state at an end of the range. If the CPU is idle there, adds the state before or after it, so that arrows
 * over idle time are found. */
static void succeed_beyond(struct succession *s, size_t row, int64_t t, bool before)
{
    struct state_interval iv;
    if (!state_at(s->h->states, STATE_CPU_THREAD, row, t, &iv))
        return;
    if (iv.value == STATE_IDLE && !state_at(s->h->states, STATE_CPU_THREAD, row, before ? iv.begin - 1 : iv.end, &iv))
        return;
    succeed(s, &iv);
}

static void write_all_arrows(struct succession *s, size_t row, int64_t begin, int64_t end)
{
    enum { BATCH = 256 };
    struct state_interval batch[BATCH];
    succeed_beyond(s, row, begin, true);
    for (size_t n = BATCH; n == BATCH && view_goes_on(s->q, s->answer); begin = batch[n - 1].end) {
        n = state_range(s->h->states, STATE_CPU_THREAD, row, begin, end, batch, BATCH);
        for (size_t i = 0; i < n; i++)
            succeed(s, &batch[i]);
        if (!n || batch[n - 1].end <= begin)
            break;
    }
    succeed_beyond(s, row, end, false);
}

/* Writes the arrow that leaves each state in force at a sample. */
static void write_sampled_arrows(
    struct succession *s, size_t row, const int64_t *times, size_t n, struct state_interval *room)
{
    n = state_sample(s->h->states, STATE_CPU_THREAD, row, times, n, room);
    for (size_t i = 0; i < n; i++) {
        s->known = false;
        succeed(s, &room[i]);
        if (s->known)
            succeed_beyond(s, row, room[i].end, false);
    }
}

static int64_t *sample_times(const struct tsp_query *q, const struct view_host *h, size_t *n)
{
    *n = q->n_times > LEAST_SAMPLES ? q->n_times : LEAST_SAMPLES;
    int64_t *times = arena_new(q->http->arena, int64_t, *n);
    for (size_t i = 0; i < *n; i++) {
        uint64_t step = ((uint64_t)q->end - (uint64_t)q->begin) / (*n - 1);
        int64_t t = q->n_times > LEAST_SAMPLES ? q->times[i] : (int64_t)((uint64_t)q->begin + step * i);
        times[i] = view_sample_time(h, t);
    }
    return times;
}

static bool few_intervals(const struct view_host *h, int64_t begin, int64_t end)
{
    size_t stored = 0;
    int64_t first, last;
    struct state_row r;
    state_span(h->states, &first, &last);
    for (size_t i = 0; i < state_rows(h->states, STATE_CPU_THREAD); i++) {
        state_row(h->states, STATE_CPU_THREAD, i, &r);
        stored += r.intervals;
    }
    double share = last > first ? (double)((uint64_t)end - (uint64_t)begin) / (double)(last - first) : 1;
    return (double)stored * (share < 1 ? share : 1) <= MAX_INTERVALS;
}

void thread_arrows_write(const struct view_host *h, const struct tsp_query *q, struct tsp_answer *answer)
{
    int64_t begin, end, *times = NULL;
    size_t n = 0, rows = state_rows(h->states, STATE_CPU_THREAD);
    struct state_interval *room = NULL;
    if (!view_range_on(h, q->begin, q->end, &begin, &end))
        return;
    bool all = few_intervals(h, begin, end);
    if (!all) {
        times = sample_times(q, h, &n);
        room = arena_new(q->http->arena, struct state_interval, n);
    }
    for (size_t row = 0; row < rows; row++) {
        struct succession s = {.h = h, .q = q, .answer = answer};
        if (all)
            write_all_arrows(&s, row, begin, end);
        else
            write_sampled_arrows(&s, row, times, n, room);
    }
}
