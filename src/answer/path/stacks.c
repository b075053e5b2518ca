/* SPDX-License-Identifier: MIT */
/* Call stacks of rows, by times of the reference clock. */
#include "graph/graph.h"
#include "path/senders.h"

/* Last time of the host's clock that is not after ts by the reference clock: the conversion back may be off by some
 * ns, the comparison is not. */
static int64_t last_until(const struct path_local_host *h, int64_t ts)
{
    enum { MOST_OFF = 4 };
    int64_t t = path_from_reference(h, ts);
    for (int i = 0; i < MOST_OFF && t > INT64_MIN && path_to_reference(h, t) > ts; i++)
        t--;
    for (int i = 0; i < MOST_OFF && t < INT64_MAX && path_to_reference(h, t + 1) <= ts; i++)
        t++;
    return t;
}

bool path_local_stack(
    const struct path_local_host *h, int32_t row, int64_t begin, int64_t end, bool waits, struct graph_stack *out)
{
    if (!graph_has_stacks(h->graph))
        return false;
    if (!waits)
        return graph_running_stack(h->graph, row, last_until(h, begin), last_until(h, end), out);
    struct graph_interval iv;
    int64_t first = end > INT64_MIN ? last_until(h, end - 1) + 1 : end; /* several may have one time */
    if (graph_find_bare(h->graph, row, first, &iv) == GRAPH_NO_INTERVAL || graph_is_awake(iv.state))
        return false;
    return graph_wait_stack(h->graph, row, iv.begin, out);
}

bool path_stack(
    const struct path_source *s, struct path_row row, int64_t begin, int64_t end, bool waits, struct graph_stack *out)
{
    return s->stack && row.host >= 0 && s->stack(s->arg, row, begin, end, waits, out);
}
