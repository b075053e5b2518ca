/* What is known from all chunks of a list together: rows, names, losses, and where each CPU's occupants are. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/layout.h"

/* ---- rows ---- */

static struct graph_row row_of_disk(const struct graph_chunk *c, const struct graph_disk_row *r)
{
    return (struct graph_row){.tid = r->tid,
        .tgid = r->tgid,
        .ppid = r->ppid,
        .parent_row = graph_host_row(c, r->parent_row),
        .idle_cpu = r->idle_cpu,
        .vtid = r->vtid,
        .pid_ns = r->pid_ns,
        .begin = r->begin,
        .end = r->end,
        .name = graph_string(c, r->name),
        .born = (r->flags & GRAPH_DISK_BORN) != 0,
        .died = (r->flags & GRAPH_DISK_DIED) != 0};
}

/* The last chunk has the row's last name and the like; it may not have the parent, which may be long gone. */
static const char *join_row(
    struct graph *g, const struct chunk_rows *rows, int32_t row, size_t first_place, size_t *chunk)
{
    struct graph_host_row *to = &g->rows[row];
    uint32_t n = (uint32_t)chunk_rows_places(rows, row);
    int64_t *ends = g->row_ends + first_place;
    struct graph_place *places = g->places + first_place;
    *to = (struct graph_host_row){
        .row = {.tid = -1, .tgid = -1, .ppid = -1, .parent_row = -1, .idle_cpu = -1, .vtid = -1, .name = ""},
        .first = n,
        .n = n,
        .ends = ends,
        .places = places};
    for (uint32_t i = 0; i < n; i++) {
        struct chunk_place p = chunk_rows_place(rows, row, i);
        const struct graph_chunk *c = &g->chunks[p.chunk];
        const struct graph_disk_row *r = &c->rows[p.row];
        struct graph_row before = to->row;
        if (to->first == n && r->n)
            to->first = i;
        *chunk = p.chunk;
        if (to->first < i && r->begin < before.end)
            return "a thread's states go back to before the end of the chunk before";
        to->row = row_of_disk(c, r);
        ends[i] = r->end;
        places[i] = (struct graph_place){c, r};
        if (to->first < i)
            to->row.begin = before.begin;
        if (to->row.parent_row < 0)
            to->row.parent_row = before.parent_row;
        to->row.born |= before.born;
    }
    return NULL;
}

/* What its CPU did before it was first seen counts, too. */
static void join_idle_row(struct graph *g, struct graph_host_row *to)
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

static const char *join_rows(struct graph *g, const struct chunk_rows *rows, size_t *chunk)
{
    const char *what = NULL;
    size_t n_places = 0, next = 0;
    for (size_t k = 0; k < g->n_chunks; k++)
        n_places += g->chunks[k].n_rows;
    g->rows = mem_alloc((g->n_rows + 1) * sizeof *g->rows);
    g->row_ends = mem_alloc((n_places + 1) * sizeof *g->row_ends);
    g->places = mem_alloc((n_places + 1) * sizeof *g->places);
    for (size_t i = 0; i < g->n_rows && !what; i++) {
        what = join_row(g, rows, (int32_t)i, next, chunk);
        next += g->rows[i].n;
        if (!what && g->rows[i].row.idle_cpu >= 0)
            join_idle_row(g, &g->rows[i]);
    }
    return what;
}

/* By row, and by time within each, as each chunk has them. */
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

/* A chunk that is missing is a loss of unknown size on all CPUs. */
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
        if (c->n_losses)
            memcpy(g->losses + g->n_losses, c->losses, c->n_losses * sizeof *c->losses);
        g->n_losses += c->n_losses;
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
    }
    const char *what = join_cpus(g, chunk);
    if (what)
        return what;
    struct chunk_rows *rows = chunk_rows_new(v, g->n_chunks);
    g->n_rows = v->rows ? chunk_rows_count(rows) : g->chunks->n_rows;
    what = join_rows(g, rows, chunk);
    chunk_rows_free(rows);
    if (what)
        return what;
    join_formers(g);
    join_losses(g, v);
    g->by_row = mem_zalloc((g->n_rows + g->n_formers + 1) * sizeof *g->by_row);
    return NULL;
}
