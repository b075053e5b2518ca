/* Opening a store, in O(rows): the columns are not looked at. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"
#include "graph/layout.h"

/* Absent sections are empty ones. */
static const uint64_t nothing[16];
static const void *section(const struct store *s, const char *name, size_t item_bytes, size_t *n)
{
    const void *items = store_section(s, name, item_bytes, n);
    return items ? items : nothing;
}

/* What is checked on opening stays as it was checked. */
static const void *checked_section(struct store *s, const char *name, size_t item_bytes, size_t *n)
{
    const void *items = store_section_kept(s, name, item_bytes, n);
    return items ? items : nothing;
}

/* One of two widths. */
static void either(const struct store *s, const char *name16, const uint16_t **v16, const char *name32,
    const uint32_t **v32, size_t *n)
{
    *v16 = section(s, name16, sizeof **v16, n);
    if (!*n)
        *v32 = section(s, name32, sizeof **v32, n);
    if (*v32 && *n)
        *v16 = NULL;
}

static bool find_sections(struct graph *g)
{
    struct store *s = g->store;
    size_t n_head, n;
    g->head = checked_section(s, "head", sizeof *g->head, &n_head);
    g->rows = checked_section(s, "rows", sizeof *g->rows, &g->n_rows);
    g->blocks = section(s, "blocks", sizeof *g->blocks, &g->n_blocks);
    g->begins = section(s, "begins", sizeof *g->begins, &g->n_intervals);
    g->kinds = section(s, "kinds", 1, &n);
    if (n != g->n_intervals)
        return false;
    either(s, "wakers16", &g->wakers16, "wakers32", &g->wakers32, &g->n_wakers);
    g->packets = section(s, "packets", sizeof *g->packets, &g->n_packets);
    g->details = section(s, "details", sizeof *g->details, &g->n_details);
    g->where8 = section(s, "where8", 1, &g->n_where);
    if (!g->n_where)
        g->where16 = section(s, "where16", sizeof *g->where16, &g->n_where);
    if (g->where16 && g->n_where)
        g->where8 = NULL;
    g->detail_names = section(s, "detail-names", sizeof *g->detail_names, &g->n_detail_names);
    g->formers = checked_section(s, "formers", sizeof *g->formers, &g->n_formers);
    g->early_wakes = section(s, "late", sizeof *g->early_wakes, &g->n_early_wakes);
    g->cpus = checked_section(s, "cpus", sizeof *g->cpus, &g->n_cpus);
    g->cpu_blocks = section(s, "cpu-blocks", sizeof *g->cpu_blocks, &g->n_cpu_blocks);
    g->cpu_begins = section(s, "cpu-begins", sizeof *g->cpu_begins, &g->n_occupants);
    either(s, "occupants16", &g->occupants16, "occupants32", &g->occupants32, &n);
    g->losses = section(s, "losses", sizeof *g->losses, &g->n_losses);
    g->string_at = section(s, "string-at", sizeof *g->string_at, &g->n_strings);
    g->text = checked_section(s, "text", 1, &g->n_text);
    return n_head == 1 && n == g->n_occupants;
}

/* Whatever is wrong with it, it cannot be used. */
static int damaged(const char *path, const char *what, struct err *e)
{
    return err_set(e, ERR_FORMAT, "%s: damaged graph: %s; index the trace again", path, what);
}

int graph_open(const char *path, struct graph **out, struct err *e)
{
    *out = NULL;
    struct graph *g = mem_zalloc(sizeof *g);
    int rc = store_open_unread(path, "graph", GRAPH_VERSION, NULL, &g->store, e);
    if (rc) {
        free(g);
        return rc;
    }
    const char *what = find_sections(g) ? graph_structure_defect(g) : "a section is missing or has the wrong length";
    if (what) {
        rc = damaged(path, what, e);
        store_close(g->store);
        free(g);
        return rc;
    }
    g->by_row = mem_zalloc((g->n_rows + g->n_formers + 1) * sizeof *g->by_row);
    *out = g;
    return ERR_OK;
}

int graph_check(const char *path, struct err *e)
{
    struct graph *g;
    int rc = graph_open(path, &g, e);
    if (rc)
        return rc;
    const char *what = graph_content_defect(g);
    if (what)
        rc = damaged(path, what, e);
    graph_close(g);
    return rc;
}

int graph_intact(const struct graph *g, struct err *e)
{
    return store_intact(g->store, e);
}

void graph_close(struct graph *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->n_rows + g->n_formers; i++)
        free(atomic_load_explicit(&g->by_row[i], memory_order_relaxed));
    free(g->by_row);
    store_close(g->store);
    free(g);
}
