/* SPDX-License-Identifier: MIT */
#include "views/rates.h"

/* Time one step before the first sample time. */
static int64_t time_before(const struct tsp_query *q)
{
    int64_t step = 1, before;
    if (q->n_times > 1 && __builtin_sub_overflow(q->times[1], q->times[0], &step))
        step = INT64_MAX;
    return __builtin_sub_overflow(q->times[0], step, &before) ? INT64_MIN : before;
}

int64_t *rates_times(
    const struct view_host *h, const struct tsp_query *q, int64_t (*convert)(const struct view_host *, int64_t t))
{
    int64_t *times = arena_new(q->http->arena, int64_t, q->n_times + 1);
    times[0] = convert(h, time_before(q));
    for (size_t i = 0; i < q->n_times; i++)
        times[i + 1] = convert(h, q->times[i]);
    return times;
}

void rates_add(const struct view_host *h, const struct tsp_query *q, const int64_t *times, int kind, int64_t counter,
    double scale, double *y)
{
    if (counter < 0)
        return;
    int64_t *values = arena_new(q->http->arena, int64_t, q->n_times + 1);
    state_counter_values(h->states, kind, (size_t)counter, times, q->n_times + 1, values);
    for (size_t i = 0; i < q->n_times; i++)
        if (times[i + 1] > times[i])
            y[i] += scale * (double)(values[i + 1] - values[i]) / (double)((uint64_t)times[i + 1] - (uint64_t)times[i]);
}

int64_t rates_growth(const struct view_host *h, int kind, int64_t counter, int64_t begin, int64_t end)
{
    int64_t times[2] = {view_to_host(h, begin), view_to_host(h, end)}, values[2];
    if (counter < 0)
        return 0;
    state_counter_values(h->states, kind, (size_t)counter, times, 2, values);
    return values[1] - values[0];
}
