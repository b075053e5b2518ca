/* SPDX-License-Identifier: MIT */
#include "views/spans.h"

#include "base/search.h"

static int64_t begin_of(const struct view_spans *s, size_t i)
{
    int64_t begin, end;
    s->bounds(s->arg, i, &begin, &end);
    return begin;
}

static int64_t end_of(const struct view_spans *s, size_t i)
{
    int64_t begin, end;
    s->bounds(s->arg, i, &begin, &end);
    return end;
}

size_t view_find_span(const struct view_spans *s, int64_t t)
{
    size_t after = search_first(i, 0, s->n, begin_of(s, i) > t);
    return after ? after - 1 : SIZE_MAX;
}

/* Number of the query's first time >= t, from number `from` on. */
static size_t time_from(const struct tsp_query *q, size_t from, int64_t t)
{
    return search_first(i, from, q->n_times, q->times[i] >= t);
}

void view_write_spans(const struct view_spans *s, const struct views *x, const struct tsp_query *q, int64_t entry,
    struct tsp_answer *answer)
{
    size_t next = SIZE_MAX; /* first interval not yet written or skipped; nothing precedes the first sample */
    tsp_begin_row(answer, entry);
    for (size_t i = time_from(q, 0, x->data.begin); i < q->n_times && !tsp_full(answer);) {
        int64_t t = q->times[i];
        size_t at = view_find_span(s, t), after = at == SIZE_MAX ? 0 : at + 1;
        bool inside = at != SIZE_MAX && t < end_of(s, at);
        bool found = false;
        for (size_t k = next;
             q->deep && q->filter && k < (inside ? at : after) && !found && (k % 65536 || !http_gone(q->http)); k++)
            found = s->write(s->arg, k, true);
        next = after;
        if (inside) {
            s->write(s->arg, at, false);
            i = time_from(q, i + 1, end_of(s, at));
            continue;
        }
        int64_t begin = at != SIZE_MAX ? end_of(s, at) : x->data.begin,
                end = after < s->n ? begin_of(s, after) : x->data.end;
        if (t >= end) /* time after the experiment's end */
            break;
        tsp_write_state(answer, &(struct tsp_state){.start = begin, .end = end});
        i = time_from(q, i + 1, end);
    }
    tsp_end_row(answer);
}
