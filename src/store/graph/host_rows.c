/* SPDX-License-Identifier: MIT */
/* Rows of the host, each joined from those of its chunks at the first request: opening does not read rows, of which a
 * long recording has many in each of many chunks. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"
#include "graph/layout.h"

struct graph_place graph_place_of(const struct graph_chunk *c, const struct graph_disk_row *r)
{
    return (struct graph_place){.chunk = c,
        .begin = r->begin,
        .end = r->end,
        .first = r->first,
        .n = r->n,
        .first_block = r->first_block,
        .n_blocks = r->n_blocks,
        .total0 = r->total0,
        .states = r->states};
}

static bool has_sums(const struct graph_place *p)
{
    size_t all = p->chunk->n_totals, left = all - p->total0;
    return !(p->states >> GRAPH_STATE_COUNT) && p->total0 <= all &&
        (left >= GRAPH_STATE_COUNT || (size_t)__builtin_popcount(p->states) <= left);
}

/* Returns whether it is within the chunk's time and columns. Checks the copy, since the file may be cut off meanwhile.
 * Branchless, since queries for all threads check thousands of places. */
static bool is_place(const struct graph_place *p, int32_t idle_cpu)
{
    const struct graph_chunk *c = p->chunk;
    bool outside = (p->begin < c->begin) | (p->begin > p->end) | (p->end > c->end) |
        ((uint64_t)p->first + p->n > c->n_intervals) | ((uint64_t)p->first_block + p->n_blocks > c->n_blocks) |
        (!p->n != !p->n_blocks);
    if (idle_cpu >= 0)
        return !outside && !p->n && (size_t)idle_cpu < c->n_cpus;
    return !outside && (p->n || p->begin == p->end) && has_sums(p);
}

/* Sets what only the last chunk with the row knows for sure, such as its last name. */
static void describe_row(struct graph_row *to, const struct graph_chunk *c, const struct graph_disk_row *r)
{
    to->tid = r->tid;
    to->tgid = r->tgid;
    to->ppid = r->ppid;
    to->vtid = r->vtid;
    to->pid_ns = r->pid_ns;
    to->container = graph_host_container(c, r->container);
    to->name = graph_string(c, r->name);
    to->died = (r->flags & GRAPH_DISK_DIED) != 0;
}

/* Joins an idle row; its CPU's history before it was first seen counts, too. */
static void join_idle_row(const struct graph *g, struct graph_host_row *to)
{
    uint32_t n = (uint32_t)g->n_chunks, first = 0;
    size_t cpu = (size_t)to->row.idle_cpu;
    const int64_t *ends = g->cpu_ends + cpu * n;
    while (first < n && (cpu >= g->chunks[first].n_cpus || !g->chunks[first].cpus[cpu].n))
        first++;
    to->first = first;
    to->n = n;
    to->ends = ends;
    if (first == n)
        return;
    to->row.begin = g->chunks[first].cpus[cpu].begin;
    to->row.end = ends[n - 1];
}

/* The last chunk may lack the parent, which may be long gone. */
static struct graph_host_row *join_row(const struct graph *g, int32_t row)
{
    struct chunk_place only;
    const struct chunk_place *at;
    size_t n = chunk_rows_all(g->chunk_rows, row, &only, &at);
    struct graph_host_row *to = mem_alloc(sizeof *to + n * (sizeof *to->places + sizeof *to->ends));
    int64_t *ends = (int64_t *)(to->places + n);
    const struct graph_disk_row *last = NULL;
    uint32_t first = UINT32_MAX, kept = 0, flags = 0;
    struct graph_row *who = &to->row;
    *who = graph_no_row;
    for (size_t i = 0; i < n; i++, at++) {
        const struct graph_chunk *c = &g->chunks[at->chunk];
        const struct graph_disk_row *r = &c->rows[at->row];
        const struct graph_place p = graph_place_of(c, r);
        int32_t idle_cpu = r->idle_cpu, parent = graph_host_row(c, r->parent_row);
        bool goes_on = first < kept;
        if (!is_place(&p, idle_cpu) || (goes_on && p.begin < who->end))
            continue;
        if (!goes_on) {
            who->begin = p.begin;
            first = p.n ? kept : first;
        }
        who->end = p.end;
        who->idle_cpu = idle_cpu;
        if (parent >= 0)
            who->parent_row = parent;
        flags |= r->flags;
        ends[kept] = p.end;
        to->places[kept++] = p;
        last = r;
    }
    who->born = (flags & GRAPH_DISK_BORN) != 0;
    if (last)
        describe_row(who, to->places[kept - 1].chunk, last);
    to->n = kept;
    to->first = first < kept ? first : kept;
    to->ends = ends;
    if (who->idle_cpu >= 0)
        join_idle_row(g, to);
    return to;
}

void graph_host_row_last(const struct graph *g, int32_t row, int32_t *tid, const char **name)
{
    struct chunk_place only;
    const struct chunk_place *at;
    const struct graph_host_row *known = atomic_load_explicit(&g->rows[row], memory_order_acquire);
    struct graph_row who = known ? known->row : graph_no_row;
    for (size_t n = known ? 0 : chunk_rows_all(g->chunk_rows, row, &only, &at); n-- > 0;) {
        const struct graph_chunk *c = &g->chunks[at[n].chunk];
        const struct graph_disk_row *r = &c->rows[at[n].row];
        const struct graph_place p = graph_place_of(c, r);
        if (!is_place(&p, r->idle_cpu))
            continue;
        describe_row(&who, c, r);
        break;
    }
    *tid = who.tid;
    *name = who.name;
}

const struct graph_host_row *graph_host_row_joined(const struct graph *g, int32_t row)
{
    struct graph_host_row *known = NULL, *mine = join_row(g, row);
    if (atomic_compare_exchange_strong(&g->rows[row], &known, mine))
        return mine;
    free(mine);
    return known;
}

void graph_host_rows_free(struct graph *g)
{
    for (size_t i = 0; g->rows && i < g->n_rows; i++)
        free(atomic_load_explicit(&g->rows[i], memory_order_relaxed));
    free(g->rows);
    chunk_rows_free(g->chunk_rows);
}
