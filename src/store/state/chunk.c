/* SPDX-License-Identifier: MIT */
/* Chunk of a state store: opening and reading. */
#include <stdlib.h>

#include "base/mem.h"
#include "state/check.h"
#include "state/chunk.h"
#include "state/figures.h"

/* Copies a section to memory: references between tables must stay as checked, whatever happens to the file. */
static const void *kept(struct state_chunk *s, const char *name, size_t item_bytes, size_t *n, bool *whole)
{
    const void *items = store_section_kept(s->file, name, item_bytes, n);
    *whole &= items != NULL;
    return items;
}

static const void *section(struct state_chunk *s, const char *name, size_t item_bytes, size_t *n, bool *whole)
{
    const void *items = store_section(s->file, name, item_bytes, n);
    *whole &= items != NULL;
    return items;
}

/* Returns whether all sections exist, even if empty. */
static bool read_sections(struct state_chunk *s)
{
    size_t n_totals;
    bool whole = true;
    s->totals = kept(s, "totals", sizeof *s->totals, &n_totals, &whole);
    s->text = kept(s, "text", 1, &s->n_text, &whole);
    s->names = kept(s, "names", sizeof *s->names, &s->n_names, &whole);
    s->disk_codes = kept(s, "codes", sizeof *s->disk_codes, &s->n_codes, &whole);
    s->rows = kept(s, "rows", sizeof *s->rows, &s->n_rows, &whole);
    s->cells = section(s, "cells", sizeof *s->cells, &s->n_cells, &whole);
    s->blocks = section(s, "blocks", sizeof *s->blocks, &s->n_blocks, &whole);
    s->sums = section(s, "sums", sizeof *s->sums, &s->n_sums, &whole);
    s->grid = section(s, "grid", sizeof *s->grid, &s->n_grid, &whole);
    s->tables = kept(s, "tables", sizeof *s->tables, &s->n_tables, &whole);
    s->heads = section(s, "heads", sizeof *s->heads, &s->n_heads, &whole);
    s->far = section(s, "far", sizeof *s->far, &s->n_far, &whole);
    s->aside = section(s, "late", sizeof *s->aside, &s->n_aside, &whole);
    s->open = section(s, "open", sizeof *s->open, &s->n_open, &whole);
    s->firsts = section(s, "firsts", sizeof *s->firsts, &s->n_firsts, &whole);
    s->tiles = section(s, "tiles", sizeof *s->tiles, &s->n_tiles, &whole);
    s->figures = section(s, "figures", sizeof *s->figures, &s->n_figures, &whole);
    s->losses = section(s, "losses", sizeof *s->losses, &s->n_losses, &whole);
    s->files = section(s, "files", sizeof *s->files, &s->n_files, &whole);
    s->through = kept(s, "through", sizeof *s->through, &s->n_through, &whole);
    s->bytes = section(s, "bytes", 1, &s->n_bytes, &whole);
    return whole && n_totals == 1;
}

/* ---- opening ---- */

int state_chunk_open(const char *path, const struct store *in, struct state_chunk **out, struct err *e)
{
    struct state_chunk *s = mem_zalloc(sizeof *s);
    int rc = store_open_unread_from(in, path, "states", STATE_VERSION, &s->file, e);
    if (rc) {
        free(s);
        return rc;
    }
    const char *what = read_sections(s) ? state_structure_defect(s) : "a section is missing";
    if (what) {
        rc = err_set(e, ERR_FORMAT, "%s: %s", path, what);
        state_chunk_close(s);
        return rc;
    }
    s->codes = mem_alloc(s->n_codes * sizeof *s->codes);
    for (size_t i = 0; i < s->n_codes; i++) {
        const struct state_disk_code *c = &s->disk_codes[i];
        s->codes[i] = (struct state_code){c->name ? state_name(s, c->name) : NULL, c->cpu, c->value};
    }
    state_names_init(s);
    *out = s;
    return 0;
}

int state_check(const char *path, const struct store *in, struct err *e)
{
    struct state_chunk *s;
    int rc = state_chunk_open(path, in, &s, e);
    if (rc)
        return rc;
    const char *what = state_content_defect(s);
    if (what)
        rc = err_set(e, ERR_FORMAT, "%s: %s", path, what);
    state_chunk_close(s);
    return rc;
}

int state_chunk_intact(const struct state_chunk *s, struct err *e)
{
    return store_intact(s->file, e);
}

void state_chunk_populate(const struct state_chunk *s)
{
    store_populate(s->file);
}

void state_chunk_close(struct state_chunk *s)
{
    if (!s)
        return;
    state_names_fini(s);
    free(s->codes);
    store_close(s->file);
    free(s);
}

/* ---- events ---- */

/* First row from `from` on whose value in column 0, which ascends, is >= t. */
static size_t table_search(const struct state_chunk *s, const struct state_disk_table *t, size_t from, int64_t time)
{
    const struct state_disk_head *heads = s->heads + t->first_head;
    /* the first block that begins with such a value; the one before it may hold some */
    size_t lo = search_first(
        i, from / STATE_BLOCK, t->n / STATE_BLOCK + (t->n % STATE_BLOCK > 0), heads[i].first >= time);
    size_t block = lo > from / STATE_BLOCK ? lo - 1 : lo;
    lo = block * STATE_BLOCK > from ? block * STATE_BLOCK : from;
    size_t end = t->n - block * STATE_BLOCK < STATE_BLOCK ? t->n : (block + 1) * STATE_BLOCK;
    if (lo >= end)
        return lo;
    struct column column = state_column(s, t, block, 0);
    return search_first(i, lo, end, state_column_get(&column, i % STATE_BLOCK) >= time);
}

size_t state_chunk_checkpoints(const struct state_chunk *s, size_t from, int64_t t)
{
    return table_search(s, &s->tables[STATE_TABLE_EVENTS], from, t);
}

uint64_t state_stretch_count(const struct state_stretch *x, int64_t t, bool *exact)
{
    double share = x->from < t && t <= x->to
        ? (double)((uint64_t)t - (uint64_t)x->from) / (double)((uint64_t)x->to - (uint64_t)x->from)
        : 1;
    *exact &= x->above <= x->below + !x->head;
    return x->below + !x->head + (uint64_t)(share * (double)(x->above - x->below - (!x->head && x->above > x->below)));
}

/* ---- latencies ---- */

/* Latencies aside, of one kind. */
struct latency_range {
    const struct state_disk_aside *v;
    size_t n;
};

static struct latency_range aside_of(const struct state_chunk *s, int kind)
{
    return (struct latency_range){s->aside + s->first_aside[kind], s->first_aside[kind + 1] - s->first_aside[kind]};
}

size_t state_chunk_latencies(const struct state_chunk *s, int kind)
{
    return state_latency_table(s, kind)->n + aside_of(s, kind).n;
}

/* Drops threads and codes that the store does not have. */
static void set_latency(const struct state_chunk *s, int64_t begin, int64_t duration, int64_t thread, int64_t cpu,
    int64_t code, struct state_latency *out)
{
    size_t threads = state_row_count(s, STATE_THREAD);
    out->begin = begin;
    out->end = duration > 0 ? (int64_t)((uint64_t)begin + (uint64_t)duration) : begin;
    out->end = out->end > begin ? out->end : begin;
    out->thread = thread >= 0 && (uint64_t)thread < threads ? (int32_t)thread : -1;
    out->cpu = cpu >= 0 && cpu <= UINT16_MAX ? (int32_t)cpu : 0;
    out->name = code >= 0 && (uint64_t)code < s->n_codes ? s->codes[code].name : NULL;
}

/* Reads the i-th latency of the table. */
static void set_from_table(const struct state_chunk *s, int kind, size_t i, struct state_latency *out)
{
    const struct state_disk_table *table = state_latency_table(s, kind);
    int64_t v[STATE_LATENCY_COLUMNS] = {0};
    for (int c = 0; c < STATE_LATENCY_COLUMNS && i < table->n; c++)
        v[c] = state_column_at(s, table, c, i);
    set_latency(s, v[STATE_BEGIN], v[STATE_DURATION], v[STATE_LATENCY_THREAD], v[STATE_LATENCY_CPU],
        v[STATE_LATENCY_CODE], out);
    uint64_t far = (uint64_t)v[STATE_RET] - STATE_RET_FAR;
    if (v[STATE_RET] >= 0 && v[STATE_RET] < STATE_RET_FAR)
        out->ret = v[STATE_RET] - STATE_RET_BIAS;
    else
        out->ret = far < s->n_far ? s->far[far] : 0;
}

void state_chunk_latency(const struct state_chunk *s, int kind, size_t i, struct state_latency *out)
{
    struct latency_range aside = aside_of(s, kind);
    size_t lo = state_aside_before(s, kind, i);
    if (lo < aside.n && aside.v[lo].index == i) {
        const struct state_disk_aside *l = &aside.v[lo];
        set_latency(s, l->begin, l->duration, l->thread, l->cpu, l->code, out);
        out->ret = l->ret;
    } else {
        set_from_table(s, kind, i - (lo < i ? lo : i), out);
    }
}

size_t state_chunk_latency_find(const struct state_chunk *s, int kind, int64_t t)
{
    struct latency_range aside = aside_of(s, kind);
    return table_search(s, state_latency_table(s, kind), 0, t) + search_first(i, 0, aside.n, aside.v[i].begin >= t);
}
