/* SPDX-License-Identifier: MIT */
/* Lost events: annotations of every view. */
#include "views/view.h"

#include <stdio.h>

static const char lost_events[] = "Lost Events";

static bool has_losses(const struct views *x)
{
    const struct graph_loss *losses;
    for (size_t i = 0; i < x->n_hosts; i++)
        if (x->hosts[i].index->graph && graph_losses(x->hosts[i].index->graph, &losses))
            return true;
    for (size_t i = 0; i < x->n_sources; i++)
        if (x->traces[i].stacks && stack_losses(x->traces[i].stacks))
            return true;
    return false;
}

static void write_loss(const struct tsp_query *q, const struct view_host *h, int64_t from, int64_t to, uint64_t count,
    struct tsp_answer *answer)
{
    int64_t begin = view_to_reference(h, from), end = view_to_reference(h, to);
    char label[128];
    snprintf(label, sizeof label, "%llu lost events on %.80s", (unsigned long long)count, h->id);
    if (count && begin <= q->end && end >= q->begin)
        tsp_write_annotation(answer, begin, end - begin, -1, label, "#ff0000", 0.2);
}

static void write_losses(const struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    json_key(&answer->json, lost_events);
    json_begin_array(&answer->json);
    for (size_t i = 0; i < x->n_hosts; i++) {
        const struct graph_loss *losses;
        size_t n = x->hosts[i].index->graph ? graph_losses(x->hosts[i].index->graph, &losses) : 0;
        for (size_t k = 0; k < n; k++)
            write_loss(q, &x->hosts[i], losses[k].begin, losses[k].end, losses[k].count, answer);
    }
    for (size_t i = 0; i < x->n_sources; i++) {
        const struct stack_store *s = x->traces[i].stacks;
        for (size_t k = 0; s && k < stack_losses(s); k++) {
            struct stack_loss l;
            stack_loss(s, k, &l);
            write_loss(q, &x->hosts[x->traces[i].host], l.begin, l.end, l.count, answer);
        }
    }
    json_end_array(&answer->json);
}

void view_lost_events_category(const struct views *x, struct tsp_answer *answer)
{
    if (has_losses(x))
        json_write_string(&answer->json, lost_events);
}

void view_lost_events(const struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    if (has_losses(x) && tsp_wants_category(q, lost_events))
        write_losses(x, q, answer);
}
