/* SPDX-License-Identifier: MIT */
/* When processes of user-space traces were there, by the kernel trace of their host: nothing that LTTng-UST records
 * tells that a process was killed. */
#include <stdlib.h>

#include "base/map.h"
#include "base/order.h"
#include "base/search.h"
#include "views/stacks.h"

static int by_process_and_time(const void *pa, const void *pb)
{
    const struct stacks_life *a = pa, *b = pb;
    return order_of(a->process, b->process) ?: order_of(a->begin, b->begin);
}

/* The first threads of processes that the trace knows by number. Within a container numbers are others'. */
static void find_leaders(struct stacks_trace *p, const struct graph *g)
{
    struct map of_pid = {0};
    for (size_t i = 0; i < stack_processes(p->s); i++) {
        struct stack_process d;
        stack_process(p->s, i, &d);
        if (d.pid >= 0)
            *map_put(&of_pid, (uint64_t)d.pid, NULL) = i;
    }
    for (size_t i = 0; of_pid.n && i < graph_rows(g); i++) {
        struct graph_row r;
        graph_row(g, (int32_t)i, &r);
        if (r.idle_cpu >= 0 || r.tid <= 0 || r.tid != r.tgid)
            continue;
        const uint64_t *process = map_find(&of_pid, (uint64_t)(r.vtid > 0 ? r.vtid : r.tid));
        if (process)
            vec_push(&p->lives, ((struct stacks_life){(uint32_t)*process, r.tgid, r.begin, r.end, r.died}));
    }
    map_fini(&of_pid);
}

static int by_number_and_time(const void *pa, const void *pb)
{
    const struct stacks_life *a = pa, *b = pb;
    return order_of(a->tgid, b->tgid) ?: order_of(a->begin, b->begin);
}

/* A process ends with its last thread. `v`: by number and time. */
static void add_threads(struct stacks_life *v, size_t n, const struct graph *g)
{
    for (size_t i = 0; i < graph_rows(g); i++) {
        struct graph_row r;
        graph_row(g, (int32_t)i, &r);
        if (r.tgid <= 0 || r.tid == r.tgid)
            continue;
        size_t behind = search_first(k, 0, n, v[k].tgid > r.tgid || (v[k].tgid == r.tgid && v[k].begin > r.begin));
        struct stacks_life *l = behind ? &v[behind - 1] : NULL;
        if (!l || l->tgid != r.tgid || r.begin > l->end)
            continue;
        l->end = r.end > l->end ? r.end : l->end;
        l->ended &= r.died;
    }
}

void stacks_find_lives(struct stacks_trace *p, const struct graph *g)
{
    size_t n = 0;
    find_leaders(p, g);
    if (!p->lives.n)
        return;
    struct stacks_life *v = p->lives.v;
    qsort(v, p->lives.n, sizeof *v, by_number_and_time);
    add_threads(v, p->lives.n, g);
    qsort(v, p->lives.n, sizeof *v, by_process_and_time);
    for (size_t i = 0; i < p->lives.n;) { /* two at a time, as in two containers: which one it is, is not known */
        size_t first = i;
        bool apart = true;
        while (++i < p->lives.n && v[i].process == v[first].process)
            apart &= v[i].begin >= v[i - 1].end;
        for (size_t k = first; k < i && apart; k++)
            v[n++] = v[k];
    }
    p->lives.n = n;
}

bool stacks_process_ended(const struct stacks_trace *p, size_t process, int64_t last_event, int64_t t)
{
    const struct stacks_life *v = p->lives.v;
    int64_t then = last_event < t ? last_event : t;
    size_t behind = search_first(
        i, 0, p->lives.n, v[i].process > process || (v[i].process == process && v[i].begin > then));
    const struct stacks_life *life = behind ? &v[behind - 1] : NULL;
    return life && life->process == process && life->ended && life->end <= t;
}
