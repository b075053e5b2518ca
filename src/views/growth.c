#include "views/growth.h"

int64_t view_time_before(const struct tsp_query *q)
{
    int64_t step = 1, before;
    if (q->n_times > 1 && __builtin_sub_overflow(q->times[1], q->times[0], &step))
        step = INT64_MAX;
    return __builtin_sub_overflow(q->times[0], step, &before) ? INT64_MIN : before;
}

struct tsp_samples tsp_samples_of(const struct view_host *h, const struct tsp_query *q)
{
    struct tsp_samples s = {arena_new(q->http->arena, int64_t, q->n_times + 1), q->n_times};
    s.host[0] = view_to_host(h, view_time_before(q));
    for (size_t i = 0; i < q->n_times; i++)
        s.host[i + 1] = view_to_host(h, q->times[i]);
    return s;
}

void tsp_add_rates(const struct view_host *h, int kind, int64_t counter, const struct tsp_samples *s, double scale,
    double *y, struct arena *a)
{
    if (counter < 0)
        return;
    int64_t *values = arena_new(a, int64_t, s->n + 1);
    state_counter_values(h->states, kind, (size_t)counter, s->host, s->n + 1, values);
    for (size_t i = 0; i < s->n; i++)
        if (s->host[i + 1] > s->host[i])
            y[i] += scale * (double)(values[i + 1] - values[i]) /
                (double)((uint64_t)s->host[i + 1] - (uint64_t)s->host[i]);
}

int64_t rates_growth(const struct view_host *h, int kind, int64_t counter, int64_t begin, int64_t end)
{
    int64_t times[2] = {view_to_host(h, begin), view_to_host(h, end)}, values[2];
    if (counter < 0)
        return 0;
    state_counter_values(h->states, kind, (size_t)counter, times, 2, values);
    return values[1] - values[0];
}
