/* SPDX-License-Identifier: MIT */
/* Writing: rows get their order and their grids, and the store is written. */
#include <stdlib.h>

#include "base/order.h"
#include "state/cell.h"
#include "state/files.h"
#include "state/losses.h"
#include "state/writer.h"

/* ---- rows ---- */

static int by_kind_and_number(const void *a, const void *b)
{
    const struct state_disk_row *x = &((const struct row_draft *)a)->disk, *y = &((const struct row_draft *)b)->disk;
    return order_of(x->kind, y->kind) ?: order_of(x->number, y->number);
}

/* Sorts blocks by row, those of a row by time. Their cells stay where they were written: near others of the same
 * time. */
static void place_blocks(struct state_writer *w)
{
    const struct series_pool *p = &w->b->pool;
    struct next_block { /* block of a row, and the place of its sums */
        uint32_t block, sum;
        uint8_t n_given, n_sums;
    } *next = mem_zalloc((p->ids + 2) * sizeof *next);
    const int64_t *sums = p->sums.v;
    uint32_t at = 0;
    for (size_t i = 0; i < w->rows.n; i++) {
        struct row_draft *r = &w->rows.v[i];
        struct next_block *x = &next[r->series->id];
        r->disk.n = r->series->closed;
        r->disk.n_cells = r->series->cells;
        r->disk.first_block = at;
        *x = (struct next_block){
            at, w->n_sums, (uint8_t)series_sums(r->series), (uint8_t)state_block_sums(r->disk.kind)};
        uint32_t blocks = (r->disk.n_cells + STATE_CELLS - 1) / STATE_CELLS;
        at += blocks;
        w->n_sums += blocks * x->n_sums;
    }
    w->blocks = mem_alloc((p->blocks.n + 1) * sizeof *w->blocks);
    w->sums = mem_zalloc((w->n_sums + (size_t)1) * sizeof *w->sums);
    for (size_t i = 0; i < p->blocks.n; i++) {
        struct next_block *x = &next[p->blocks.v[i].id];
        w->blocks[x->block++] = p->blocks.v[i].cell;
        for (int k = 0; k < x->n_given; k++) /* idle threads have none: all theirs are 0 */
            w->sums[x->sum + k] = *sums++;
        x->sum += x->n_sums;
    }
    free(next);
}

static const struct state_disk_cell *cell_of(const struct state_writer *w, const struct state_disk_row *r, uint32_t i)
{
    return series_cell(&w->b->pool, w->blocks[r->first_block + i / STATE_CELLS] + i % STATE_CELLS);
}

/* Keeps entries within their row, and rows within the whole, whatever lives and times the trace has. */
static void bound_row(struct state_writer *w, struct state_disk_row *r, const struct series *s)
{
    if (!r->n)
        return;
    const struct state_disk_cell *cell = cell_of(w, r, r->n_cells - 1);
    int64_t last = cell_entry(cell, cell_n(cell) - 1).begin;
    r->first = cell_of(w, r, 0)->base;
    if (s->goes_on)
        r->end = last = s->last.time;
    w->begin = r->first < w->begin ? r->first : w->begin;
    w->end = last > w->end ? last : w->end;
    r->begin = r->begin > r->first ? r->first : r->begin;
    r->end = r->end < last ? last : r->end;
}

static void find_least(struct state_writer *w, struct state_disk_row *r)
{
    if (!state_may_fall(r->kind))
        return;
    int64_t times[STATE_CELL_ENTRIES + 1], numbers[STATE_CELL_ENTRIES];
    for (uint32_t i = 0; i < r->n_cells; i++)
        for (size_t k = cell_take(cell_of(w, r, i), times, numbers); k-- > 0;)
            r->least = numbers[k] < r->least ? numbers[k] : r->least;
}

/* Number of buckets wanted; there will be at most this many and more than half. One to two per cell in rows that are
 * drawn by the hundred, else one per two to four cells. */
static uint64_t most_buckets(const struct state_disk_row *r)
{
    bool drawn = r->kind == STATE_THREAD || r->kind == STATE_CPU || r->kind == STATE_CPU_THREAD;
    return drawn ? 2 * (uint64_t)r->n_cells : r->n_cells < 4 ? 2 : r->n_cells / 2;
}

/* Plans the grid: for each bucket of time the cell in force at its begin. */
static void plan_grid(struct state_writer *w, struct state_disk_row *r)
{
    r->first_grid = w->grid.n;
    if (r->n_cells < 2)
        return;
    uint64_t span = (uint64_t)cell_of(w, r, r->n_cells - 1)->base - (uint64_t)r->first;
    while (span >> r->shift >= most_buckets(r))
        r->shift++;
    r->n_grid = (uint32_t)(span >> r->shift) + 1;
    w->grid.n += r->n_grid;
}

/* Adds the begin of the row's next cell. */
static void add_to_grid(struct state_writer *w, struct row_draft *row, uint64_t since_first)
{
    struct state_disk_row *r = &row->disk;
    uint32_t *grid = w->grid.v + r->first_grid;
    for (; row->buckets < r->n_grid && (uint64_t)row->buckets << r->shift < since_first; row->buckets++)
        grid[row->buckets] = row->cells - 1;
    row->cells++;
}

/* Makes all grids in the order of the file, which is read once from begin to end, since a row's blocks are
 * scattered. */
static void make_grids(struct state_writer *w)
{
    const struct series_pool *p = &w->b->pool;
    uint32_t *row_of = mem_alloc((p->ids + 1) * sizeof *row_of);
    for (size_t i = 0; i < w->rows.n; i++)
        row_of[w->rows.v[i].series->id] = (uint32_t)i;
    vec_reserve(&w->grid, 1);
    for (size_t i = 0; i < p->blocks.n; i++) {
        const struct series_block *b = &p->blocks.v[i];
        struct row_draft *row = &w->rows.v[row_of[b->id]];
        for (uint32_t k = 0; k < STATE_CELLS && row->cells < row->disk.n_cells; k++)
            add_to_grid(w, row, (uint64_t)series_cell(p, b->cell + k)->base - (uint64_t)row->disk.first);
    }
    for (size_t i = 0; i < w->rows.n; i++)
        add_to_grid(w, &w->rows.v[i], UINT64_MAX);
    free(row_of);
}

static void finish_rows(struct state_writer *w)
{
    if (w->rows.n)
        qsort(w->rows.v, w->rows.n, sizeof *w->rows.v, by_kind_and_number);
    place_blocks(w);
    for (size_t i = 0; i < w->rows.n; i++)
        bound_row(w, &w->rows.v[i].disk, w->rows.v[i].series);
    if (w->begin > w->end) /* no events */
        w->begin = w->end = w->nothing_at;
    for (size_t i = 0; i < w->rows.n; i++) /* threads that died in an earlier chunk, and still have state */
        w->begin = w->rows.v[i].disk.end < w->begin ? w->rows.v[i].disk.end : w->begin;
    for (size_t i = 0; i < w->rows.n; i++) {
        struct state_disk_row *r = &w->rows.v[i].disk;
        r->begin = r->begin < w->begin ? w->begin : r->begin;
        r->end = r->end > w->end ? w->end : r->end;
        r->begin = r->begin > r->end ? r->end : r->begin;
        find_least(w, r);
        plan_grid(w, r);
    }
    make_grids(w);
}

/* ---- the file ---- */

static void add_bytes(struct store_writer *s, const struct series_bytes *b)
{
    store_begin(s, "bytes", 1);
    for (uint64_t at = 0; at < b->n; at += SERIES_CHUNK)
        store_append(s, series_bytes_at(b, at), b->n - at < SERIES_CHUNK ? b->n - at : SERIES_CHUNK);
}

static int commit(struct state_writer *w, struct err *e)
{
    struct state_builder *b = w->b;
    struct state_disk_totals totals = {w->begin, w->end, b->events - b->events_before, b->last_event, b->events_before};
    struct state_disk_row *rows = mem_alloc((w->rows.n + 1) * sizeof *rows);
    for (size_t i = 0; i < w->rows.n; i++)
        rows[i] = w->rows.v[i].disk;
    struct text_bytes {
        VEC(char) v;
    } text = {0};
    uint32_t *names = mem_alloc((w->names.n + 1) * sizeof *names);
    for (size_t i = 0; i < w->names.n; i++) {
        size_t n = strlen(w->names.v[i]) + 1;
        names[i] = (uint32_t)text.v.n;
        vec_reserve(&text.v, n);
        memcpy(text.v.v + text.v.n, w->names.v[i], n);
        text.v.n += n;
    }
    state_losses_sort(b->losses.v, b->losses.n);
    struct store_writer *s = b->pool.cells.to;
    store_add(s, "totals", &totals, sizeof totals, 1);
    store_add(s, "text", text.v.v, 1, text.v.n);
    store_add(s, "names", names, sizeof *names, w->names.n);
    store_add(s, "codes", w->codes.v, sizeof *w->codes.v, w->codes.n);
    store_add(s, "rows", rows, sizeof *rows, w->rows.n);
    store_add(s, "blocks", w->blocks, sizeof *w->blocks, b->pool.blocks.n);
    store_add(s, "sums", w->sums, sizeof *w->sums, w->n_sums);
    store_add(s, "grid", w->grid.v, sizeof *w->grid.v, w->grid.n);
    store_add(s, "tables", w->tables, sizeof *w->tables, STATE_TABLES);
    store_add(s, "heads", w->heads.v, sizeof *w->heads.v, w->heads.n);
    store_add(s, "far", b->far.v, sizeof *b->far.v, b->far.n);
    store_add(s, "late", w->aside.v, sizeof *w->aside.v, w->aside.n);
    store_add(s, "open", w->open.v, sizeof *w->open.v, w->open.n);
    store_add(s, "firsts", w->firsts.v, sizeof *w->firsts.v, w->firsts.n);
    store_add(s, "tiles", w->tiles.first.v, sizeof *w->tiles.first.v, w->tiles.first.n);
    store_add(s, "figures", w->tiles.figures.v, sizeof *w->tiles.figures.v, w->tiles.figures.n);
    store_add(s, "losses", b->losses.v, sizeof *b->losses.v, b->losses.n);
    store_add(s, "files", w->files.v, sizeof *w->files.v, w->files.n);
    store_add(s, "through", w->through.v, sizeof *w->through.v, w->through.n);
    add_bytes(s, &b->pool.bytes);
    int rc = file_map_intact(&b->pool.cells.file, e);
    if (!rc) {
        rc = store_commit(s, e);
        b->pool.cells.to = NULL;
    }
    free(rows);
    free(names);
    vec_free(&text.v);
    return rc;
}

/* Writes rows and tables in their present state. */
static int write_all(struct state_writer *w, struct err *e)
{
    state_writer_finish_tables(w->b, w->cut);
    state_writer_add_rows(w);
    int rc = state_series_pool_finish(&w->b->pool, e);
    if (!rc) {
        finish_rows(w);
        state_writer_add_tables(w);
        rc = commit(w, e);
    }
    vec_free(&w->rows);
    vec_free(&w->codes);
    strings_fini(&w->names);
    free(w->blocks);
    free(w->sums);
    vec_free(&w->grid);
    vec_free(&w->heads);
    vec_free(&w->aside);
    vec_free(&w->open);
    vec_free(&w->firsts);
    vec_free(&w->files);
    vec_free(&w->through);
    state_tile_list_fini(&w->tiles);
    return rc;
}

int state_builder_write(struct state_builder *b, int64_t begin, int64_t end, struct err *e)
{
    struct state_writer w = {.b = b, .begin = begin < end ? begin : end, .end = end};
    if (begin > end && b->events) /* last event of the chunks before, for a last chunk without events */
        w.begin = w.end = b->last_event;
    state_builder_release(b);
    for (size_t i = 0; i < b->cpus.n; i++)
        state_builder_cpu_finish(b, &b->cpus.v[i], w.end);
    state_builder_gaps_finish(b, w.end);
    state_builder_futexes_finish(b);
    state_files_finish(b);
    return write_all(&w, e);
}

int state_builder_cut(struct state_builder *b, int64_t at, int64_t begin, int64_t end, struct err *e)
{
    struct state_writer w = {.b = b,
        .cut = true,
        .begin = begin > end ? INT64_MAX : begin,
        .end = begin > end ? INT64_MIN : end,
        .nothing_at = b->events ? b->last_event : at};
    for (size_t i = 0; i < b->saved.n; i++)
        state_series_leave(b->saved.v[i].series, b->saved.v[i].first, b->saved.v[i].begin);
    state_builder_gaps_finish(b, at); /* threads that are gone */
    return write_all(&w, e);
}
