/* SPDX-License-Identifier: MIT */
/* Call stacks of rows, by times of the reference clock. */
#include "base/mem.h"
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

/* ---- of an answer ---- */

static bool question_of_segment(const struct path_segment *s, struct path_stack_question *q)
{
    bool waits = s->state != GRAPH_UNKNOWN && !graph_is_awake(s->state);
    *q = (struct path_stack_question){s->row, s->begin, s->end, waits};
    return waits || s->state == GRAPH_RUNNING;
}

static bool question_of_sleeper(const struct path_link *l, struct path_stack_question *q)
{
    *q = (struct path_stack_question){l->to, l->from_ts, l->to_ts, true};
    return l->kind != PATH_LINK_FORK;
}

static bool question_of_waker(const struct path_link *l, struct path_stack_question *q)
{
    *q = (struct path_stack_question){l->from, l->from_ts - (l->from_ts > INT64_MIN), l->from_ts, false};
    return true;
}

static bool is_of_thread(bool asked, const struct path_stack_question *q)
{
    return asked && q->row.host >= 0 && q->row.row >= 0;
}

static bool ask(const struct path_source *s, bool asked, const struct path_stack_question *q, struct graph_stack *out)
{
    return s->stack && is_of_thread(asked, q) && s->stack(s->arg, q->row, q->begin, q->end, q->waits, out);
}

bool path_segment_stack(const struct path_source *s, const struct path_segment *segment, struct graph_stack *out)
{
    struct path_stack_question q;
    bool asked = question_of_segment(segment, &q);
    return ask(s, asked, &q, out);
}

bool path_sleeper_stack(const struct path_source *s, const struct path_link *l, struct graph_stack *out)
{
    struct path_stack_question q;
    bool asked = question_of_sleeper(l, &q);
    return ask(s, asked, &q, out);
}

bool path_waker_stack(const struct path_source *s, const struct path_link *l, struct graph_stack *out)
{
    struct path_stack_question q;
    bool asked = question_of_waker(l, &q);
    return ask(s, asked, &q, out);
}

static void add(struct path_stack_questions *all, bool asked, const struct path_stack_question *q)
{
    if (is_of_thread(asked, q))
        vec_push(all, *q);
}

void path_ask_stacks(const struct path *p, struct path_stack_questions *out)
{
    struct path_stack_question q;
    for (size_t i = 0; i < p->n_segments; i++) {
        bool asked = question_of_segment(&p->segments[i], &q);
        add(out, asked, &q);
    }
    for (size_t i = 0; i < p->n_links; i++) {
        bool asked = question_of_sleeper(&p->links[i], &q);
        add(out, asked, &q);
        asked = question_of_waker(&p->links[i], &q);
        add(out, asked, &q);
    }
}
