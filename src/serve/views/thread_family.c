/* SPDX-License-Identifier: MIT */
/* Parents and children among the threads of a host. */
#include "views/thread_family.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/search.h"

static int by_tid_and_begin(const void *pa, const void *pb, void *arg)
{
    const struct graph_row *rows = arg, *a = &rows[*(const int32_t *)pa], *b = &rows[*(const int32_t *)pb];
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    if (a->idle_cpu != b->idle_cpu)
        return a->idle_cpu < b->idle_cpu ? -1 : 1;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

/* Life of `tid` at t; if there is none, the next one not born after t. -1: none. */
static int32_t life_at(const struct thread_family *f, int32_t tid, int64_t t)
{
    int32_t found = -1;
    size_t n = (size_t)f->n, first = search_first(i, 0, n, f->rows[f->order[i]].tid >= tid);
    for (size_t i = first; i < n && f->rows[f->order[i]].tid == tid; i++) {
        const struct graph_row *r = &f->rows[f->order[i]];
        if (r->begin <= t && t <= r->end)
            found = f->order[i];
        else if (r->begin > t)
            return found < 0 && !r->born ? f->order[i] : found;
    }
    return found;
}

static int32_t parent_of(const struct thread_family *f, int32_t row)
{
    const struct graph_row *r = &f->rows[row];
    if (r->tid <= 0)
        return -1;
    if (r->tgid > 0 && r->tgid != r->tid)
        return life_at(f, r->tgid, r->begin);
    if (r->parent_row >= 0 && r->parent_row < f->n) {
        const struct graph_row *p = &f->rows[r->parent_row];
        int32_t leader = p->tgid > 0 && p->tgid != p->tid ? life_at(f, p->tgid, r->begin) : -1;
        return leader >= 0 ? leader : p->tid > 0 ? r->parent_row : -1;
    }
    return r->ppid > 0 ? life_at(f, r->ppid, r->begin) : -1;
}

/* Removes circles, which traces may claim: the entry that would close one becomes a child of the host. */
static void break_circles(struct thread_family *f)
{
    enum { NEW, ON_THE_WAY, DONE };
    uint8_t *seen = mem_zalloc((size_t)f->n + 1);
    for (int32_t i = 0; i < f->n; i++) {
        int32_t r = i, last = -1;
        while (r >= 0 && seen[r] == NEW) {
            seen[r] = ON_THE_WAY;
            last = r;
            r = f->parents[r];
        }
        if (r >= 0 && seen[r] == ON_THE_WAY)
            f->parents[last] = -1;
        for (r = i; r >= 0 && seen[r] == ON_THE_WAY; r = f->parents[r])
            seen[r] = DONE;
    }
    free(seen);
}

/* Sorts parents before their children, siblings by tid and begin. */
static void find_order_seen(struct thread_family *f)
{
    int32_t *first = mem_zalloc(((size_t)f->n + 1) * sizeof *first),
            *next = mem_zalloc(((size_t)f->n + 1) * sizeof *next);
    for (int32_t i = 0; i <= f->n; i++)
        first[i] = -1;
    for (int32_t i = f->n; i-- > 0;) { /* first[n]: for the host itself */
        int32_t row = f->order[i], parent = f->parents[row] >= 0 ? f->parents[row] : f->n;
        next[row] = first[parent];
        first[parent] = row;
    }
    for (int32_t row = first[f->n], n = 0; row >= 0;) {
        f->seen[n++] = row;
        if (first[row] >= 0) {
            row = first[row];
            continue;
        }
        while (row >= 0 && next[row] < 0)
            row = f->parents[row];
        row = row >= 0 ? next[row] : -1;
    }
    free(first);
    free(next);
}

void thread_family_init(struct thread_family *f, const struct view_host *h)
{
    f->n = h->threads;
    f->rows = mem_zalloc(((size_t)f->n + 1) * sizeof *f->rows);
    f->parents = mem_zalloc(((size_t)f->n + 1) * sizeof *f->parents);
    f->order = mem_zalloc(((size_t)f->n + 1) * sizeof *f->order);
    f->seen = mem_zalloc(((size_t)f->n + 1) * sizeof *f->seen);
    for (int32_t i = 0; i < f->n; i++) {
        graph_row(h->index->graph, i, &f->rows[i]);
        f->order[i] = i;
    }
    qsort_r(f->order, (size_t)f->n, sizeof *f->order, by_tid_and_begin, f->rows);
    for (int32_t i = 0; i < f->n; i++)
        f->parents[i] = parent_of(f, i);
    break_circles(f);
    find_order_seen(f);
}

void thread_family_fini(struct thread_family *f)
{
    free(f->rows);
    free(f->parents);
    free(f->order);
    free(f->seen);
}
