/* SPDX-License-Identifier: MIT */
/* Lives of processes of user-space traces, from the kernel trace of their host: LTTng-UST records nothing about killed
 * processes. */
#include <stdlib.h>

#include "base/map.h"
#include "base/order.h"
#include "base/search.h"
#include "views/stacks.h"

static int by_pid_and_time(const void *pa, const void *pb)
{
    const struct stacks_life *a = pa, *b = pb;
    return order_of(a->pid, b->pid) ?: order_of(a->begin, b->begin);
}

/* Adds the numbers of the trace's processes that allocated memory. Lives of other processes are not needed. */
static void add_pids(struct map *pids, const struct stack_store *s)
{
    for (size_t i = 0; i < stack_threads(s); i++) {
        struct stack_thread t;
        struct stack_process d;
        stack_thread(s, i, &t);
        if (!t.has_memory)
            continue;
        stack_process(s, t.process, &d);
        if (d.pid >= 0)
            map_put(pids, (uint64_t)d.pid, NULL);
    }
}

/* Finds the first threads of processes with these numbers. A number in the trace is the one within the process's
 * container. */
static void find_leaders(struct stacks_lives *lives, const struct map *pids, const struct graph *g)
{
    for (size_t i = 0; i < graph_rows(g); i++) {
        struct graph_row r;
        graph_row(g, (int32_t)i, &r);
        if (r.idle_cpu >= 0 || r.tid <= 0 || r.tid != r.tgid)
            continue;
        int32_t pid = r.vtid > 0 ? r.vtid : r.tid;
        if (map_find(pids, (uint64_t)pid))
            vec_push(&lives->of, ((struct stacks_life){pid, r.tgid, r.begin, r.end, r.died}));
    }
}

static int by_number_and_time(const void *pa, const void *pb)
{
    const struct stacks_life *a = pa, *b = pb;
    return order_of(a->tgid, b->tgid) ?: order_of(a->begin, b->begin);
}

/* Extends the lives by all threads, since a process ends with its last thread. `v`: by number and time. */
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

/* Removes lives of numbers that two processes had at the same time, as in two containers: the right one is unknown. */
static void remove_ambiguous(struct stacks_lives *lives)
{
    struct stacks_life *v = lives->of.v;
    size_t n = 0;
    for (size_t i = 0; i < lives->of.n;) {
        size_t first = i;
        bool apart = true;
        while (++i < lives->of.n && v[i].pid == v[first].pid)
            apart &= v[i].begin >= v[i - 1].end;
        for (size_t k = first; k < i && apart; k++)
            v[n++] = v[k];
    }
    lives->of.n = n;
}

void stacks_find_lives(struct stacks *all, size_t host, const struct graph *g)
{
    struct stacks_lives *lives = &all->lives[host];
    struct map pids = {0};
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].host == host)
            add_pids(&pids, all->v[i].s);
    if (pids.n)
        find_leaders(lives, &pids, g);
    map_fini(&pids);
    if (!lives->of.n)
        return;
    qsort(lives->of.v, lives->of.n, sizeof *lives->of.v, by_number_and_time);
    add_threads(lives->of.v, lives->of.n, g);
    qsort(lives->of.v, lives->of.n, sizeof *lives->of.v, by_pid_and_time);
    remove_ambiguous(lives);
}

bool stacks_process_ended(const struct stacks_lives *lives, int32_t pid, int64_t last_event, int64_t t)
{
    const struct stacks_life *v = lives->of.v;
    int64_t then = last_event < t ? last_event : t;
    size_t behind = search_first(i, 0, lives->of.n, v[i].pid > pid || (v[i].pid == pid && v[i].begin > then));
    const struct stacks_life *life = behind ? &v[behind - 1] : NULL;
    return life && life->pid == pid && life->ended && life->end <= t;
}
