/* SPDX-License-Identifier: MIT */
/* Opening stores, in O(CPUs): rows and columns are not looked at. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/layout.h"

/* Contents of absent sections, which count as empty. */
static const uint64_t nothing[16];
static const void *section(const struct store *s, const char *name, size_t item_bytes, size_t *n)
{
    const void *items = store_section(s, name, item_bytes, n);
    return items ? items : nothing;
}

/* Copies a section to memory: checked contents must stay as checked. */
static const void *checked_section(struct store *s, const char *name, size_t item_bytes, size_t *n)
{
    const void *items = store_section_kept(s, name, item_bytes, n);
    return items ? items : nothing;
}

/* Reads a column that exists in one of two widths. */
static void either(const struct store *s, const char *name16, const uint16_t **v16, const char *name32,
    const uint32_t **v32, size_t *n)
{
    *v16 = section(s, name16, sizeof **v16, n);
    if (!*n)
        *v32 = section(s, name32, sizeof **v32, n);
    if (*v32 && *n)
        *v16 = NULL;
}

static bool find_sections(struct graph_chunk *c)
{
    struct store *s = c->store;
    size_t n_head, n;
    c->head = checked_section(s, "head", sizeof *c->head, &n_head);
    c->rows = section(s, "rows", sizeof *c->rows, &c->n_rows);
    c->totals = section(s, "totals", sizeof *c->totals, &c->n_totals);
    c->blocks = section(s, "blocks", sizeof *c->blocks, &c->n_blocks);
    c->begins = section(s, "begins", sizeof *c->begins, &c->n_intervals);
    c->kinds = section(s, "kinds", 1, &n);
    if (n != c->n_intervals)
        return false;
    either(s, "wakers16", &c->wakers16, "wakers32", &c->wakers32, &c->n_wakers);
    c->packets = section(s, "packets", sizeof *c->packets, &c->n_packets);
    c->details = section(s, "details", sizeof *c->details, &c->n_details);
    c->where8 = section(s, "where8", 1, &c->n_where);
    if (!c->n_where)
        c->where16 = section(s, "where16", sizeof *c->where16, &c->n_where);
    if (c->where16 && c->n_where)
        c->where8 = NULL;
    c->detail_names = section(s, "detail-names", sizeof *c->detail_names, &c->n_detail_names);
    c->formers = section(s, "formers", sizeof *c->formers, &c->n_formers);
    c->early_wakes = section(s, "late", sizeof *c->early_wakes, &c->n_early_wakes);
    c->cpus = checked_section(s, "cpus", sizeof *c->cpus, &c->n_cpus);
    c->cpu_blocks = section(s, "cpu-blocks", sizeof *c->cpu_blocks, &c->n_cpu_blocks);
    c->cpu_begins = section(s, "cpu-begins", sizeof *c->cpu_begins, &c->n_occupants);
    either(s, "occupants16", &c->occupants16, "occupants32", &c->occupants32, &n);
    c->losses = section(s, "losses", sizeof *c->losses, &c->n_losses);
    c->marks = section(s, "marks", sizeof *c->marks, &c->n_marks);
    c->containers = section(s, "containers", sizeof *c->containers, &c->n_containers);
    c->sampled = section(s, "stack-totals", sizeof *c->sampled, &c->n_sampled);
    c->sample_rows = section(s, "stack-rows", sizeof *c->sample_rows, &c->n_sample_rows);
    c->samples = section(s, "stack-samples", sizeof *c->samples, &c->n_samples);
    c->stacks = section(s, "stacks", sizeof *c->stacks, &c->n_stacks);
    c->frames = section(s, "stack-frames", sizeof *c->frames, &c->n_frames);
    c->string_at = section(s, "string-at", sizeof *c->string_at, &c->n_strings);
    c->text = section(s, "text", 1, &c->n_text); /* its last byte is 0, even if the file was cut off */
    return n_head == 1 && n == c->n_occupants;
}

/* Returns the error for any damage: the store cannot be used. */
static int damaged(const char *path, const char *what, struct err *e)
{
    return err_set(e, ERR_FORMAT, "%s: damaged graph: %s; index the trace again", path, what);
}

int graph_chunk_open(const struct chunk *of, struct graph_chunk *c, struct err *e)
{
    *c = (struct graph_chunk){0};
    int rc = store_open_unread_from(of->in, of->path, "graph", GRAPH_VERSION, &c->store, e);
    if (rc)
        return rc;
    const char *what = find_sections(c) ? graph_structure_defect(c) : "a section is missing or has the wrong length";
    if (!what) {
        c->begin = c->head->begin;
        c->end = c->head->end;
        return ERR_OK;
    }
    graph_chunk_close(c);
    return damaged(of->path, what, e);
}

void graph_chunk_close(struct graph_chunk *c)
{
    store_close(c->store);
    free(c->host_containers);
    *c = (struct graph_chunk){0};
}

int graph_open_list(const struct chunk *v, size_t n, struct graph **out, struct err *e)
{
    *out = NULL;
    if (!n || n > GRAPH_MOST_CHUNKS)
        return err_set(e, ERR_LIMIT, "%s: a graph of %zu chunks; from 1 to %d can be read together", n ? v->path : "",
            n, GRAPH_MOST_CHUNKS);
    struct graph *g = mem_zalloc(sizeof *g);
    g->chunks = mem_zalloc(n * sizeof *g->chunks);
    const char *what = NULL;
    int rc = ERR_OK;
    for (; !rc && !what && g->n_chunks < n; g->n_chunks++) {
        rc = graph_chunk_open(&v[g->n_chunks], &g->chunks[g->n_chunks], e);
        if (rc)
            break;
        if (v[g->n_chunks].rows && v[g->n_chunks].n_rows != g->chunks[g->n_chunks].n_rows)
            what = "it has other rows than the host's list of threads says";
    }
    size_t at = g->n_chunks - (what != NULL);
    if (!rc && !what)
        what = graph_list_join(g, v, &at);
    if (what)
        rc = damaged(v[at].path, what, e);
    if (rc) {
        graph_close(g);
        return rc;
    }
    *out = g;
    return ERR_OK;
}

int graph_open(const char *path, struct graph **out, struct err *e)
{
    struct chunk one = {.path = path, .begin = INT64_MIN, .end = INT64_MAX};
    return graph_open_list(&one, 1, out, e);
}

int graph_check(const char *path, const struct store *in, struct err *e)
{
    struct graph_chunk c;
    int rc = graph_chunk_open(&(struct chunk){.path = path, .in = in}, &c, e);
    if (rc)
        return rc;
    const char *what = graph_content_defect(&c);
    if (what)
        rc = damaged(path, what, e);
    graph_chunk_close(&c);
    return rc;
}

int graph_intact(const struct graph *g, struct err *e)
{
    int rc = ERR_OK;
    for (size_t i = 0; !rc && i < g->n_chunks; i++)
        rc = store_intact(g->chunks[i].store, e);
    return rc;
}

void graph_close(struct graph *g)
{
    if (!g)
        return;
    for (size_t i = 0; g->by_row && i < g->n_rows + g->n_formers; i++)
        free(atomic_load_explicit(&g->by_row[i], memory_order_relaxed));
    free(g->by_row);
    graph_host_rows_free(g);
    free(g->formers);
    free(g->losses);
    free(g->marks);
    graph_containers_free(g);
    free(g->cpu_ends);
    for (size_t i = 0; i < g->n_chunks; i++)
        graph_chunk_close(&g->chunks[i]);
    free(g->chunks);
    free(g);
}
