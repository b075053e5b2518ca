/* SPDX-License-Identifier: MIT */
/* Joint tables of all chunks of a list, except rows: names, losses, marks, and the positions of each CPU's
 * occupants. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/layout.h"

/* ---- names ---- */

/* Joins former names, which each chunk has by row, and by time within each. */
static void join_formers(struct graph *g)
{
    size_t *at = mem_zalloc((g->n_rows + 1) * sizeof *at), sum = 0;
    for (size_t k = 0; k < g->n_chunks; k++)
        for (size_t i = 0; i < g->chunks[k].n_formers; i++) {
            int32_t row = graph_host_row(&g->chunks[k], g->chunks[k].formers[i].row);
            if (row >= 0)
                at[row]++;
        }
    for (size_t i = 0; i <= g->n_rows; i++) {
        size_t of_row = at[i];
        at[i] = sum;
        sum += of_row;
    }
    g->formers = mem_alloc((sum + 1) * sizeof *g->formers);
    g->n_formers = sum;
    for (size_t k = 0; k < g->n_chunks; k++)
        for (size_t i = 0; i < g->chunks[k].n_formers; i++) {
            const struct graph_disk_former *f = &g->chunks[k].formers[i];
            int32_t row = graph_host_row(&g->chunks[k], f->row);
            if (row >= 0)
                g->formers[at[row]++] = (struct graph_former){
                    .until = f->until, .row = row, .tid = f->tid, .name = graph_string(&g->chunks[k], f->name)};
        }
    free(at);
}

/* ---- losses and CPUs ---- */

/* Returns whether the loss is listed already: each chunk reports the absent CPUs. */
static bool is_told(const struct graph *g, const struct graph_loss *l)
{
    bool told = false;
    for (size_t i = 0; i < g->n_losses && l->absent && !told; i++)
        told = g->losses[i].absent == l->absent && g->losses[i].cpu == l->cpu && g->losses[i].end >= l->end;
    return told;
}

/* A missing chunk is a loss of unknown size on all CPUs. */
static void join_losses(struct graph *g, const struct chunk *v)
{
    size_t n = 0;
    for (size_t k = 0; k < g->n_chunks; k++)
        n += g->chunks[k].n_losses + 1;
    g->losses = mem_alloc(n * sizeof *g->losses);
    for (size_t k = 0; k < g->n_chunks; k++) {
        const struct graph_chunk *c = &g->chunks[k];
        if (k && v[k - 1].end < v[k].begin)
            g->losses[g->n_losses++] = (struct graph_loss){.begin = v[k - 1].end, .end = v[k].begin, .cpu = UINT32_MAX};
        for (size_t i = 0; i < c->n_losses; i++)
            if (!is_told(g, &c->losses[i]))
                g->losses[g->n_losses++] = c->losses[i];
    }
}

static void join_marks(struct graph *g)
{
    size_t n = 0;
    for (size_t k = 0; k < g->n_chunks; k++)
        n += g->chunks[k].n_marks;
    g->marks = mem_alloc((n + 1) * sizeof *g->marks);
    for (size_t k = 0; k < g->n_chunks; k++)
        for (size_t i = 0; i < g->chunks[k].n_marks; i++) {
            struct graph_mark *m = &g->marks[g->n_marks++];
            *m = g->chunks[k].marks[i];
            m->row = graph_host_row(&g->chunks[k], m->row);
        }
}

static const char *join_cpus(struct graph *g, size_t *chunk)
{
    size_t n = g->n_chunks;
    g->cpu_ends = mem_alloc((g->n_cpus * n + 1) * sizeof *g->cpu_ends);
    for (size_t cpu = 0; cpu < g->n_cpus; cpu++) {
        int64_t *ends = g->cpu_ends + cpu * n;
        for (size_t k = 0; k < n; k++) {
            const struct graph_disk_cpu *c = cpu < g->chunks[k].n_cpus ? &g->chunks[k].cpus[cpu] : NULL;
            ends[k] = k ? ends[k - 1] : INT64_MIN;
            if (!c || !c->n)
                continue;
            *chunk = k;
            if (c->begin < ends[k])
                return "a CPU's occupants go back to before the end of the chunk before";
            ends[k] = c->end;
        }
    }
    return NULL;
}

const char *graph_list_join(struct graph *g, const struct chunk *v, size_t *chunk)
{
    g->begin = g->chunks->head->begin;
    g->end = g->chunks->head->end;
    for (size_t k = 0; k < g->n_chunks; k++) {
        const struct graph_chunk *c = &g->chunks[k];
        *chunk = k;
        if (g->n_chunks > 1 && !v[k].rows)
            return "it is not said which threads its rows are";
        g->n_cpus = c->n_cpus > g->n_cpus ? c->n_cpus : g->n_cpus;
        g->begin = c->head->begin < g->begin ? c->head->begin : g->begin;
        g->end = c->head->end > g->end ? c->head->end : g->end;
        g->has_stacks |= c->n_samples > 0;
    }
    const char *what = join_cpus(g, chunk);
    if (what)
        return what;
    g->chunk_rows = chunk_rows_new(v, g->n_chunks);
    for (size_t k = 0; k < g->n_chunks; k++)
        g->chunks[k].host_rows = chunk_rows_of(g->chunk_rows, k);
    g->n_rows = v->rows ? chunk_rows_count(g->chunk_rows) : g->chunks->n_rows;
    g->rows = mem_zalloc((g->n_rows + 1) * sizeof *g->rows);
    join_formers(g);
    join_losses(g, v);
    join_marks(g);
    graph_containers_join(g);
    g->by_row = mem_zalloc((g->n_rows + g->n_formers + 1) * sizeof *g->by_row);
    return NULL;
}
