/* SPDX-License-Identifier: MIT */
/* Validation of a file. Opening checks references between tables, which is little. Everything else, for which readers
 * are safe, is checked only by `verify`. */
#include <stdlib.h>
#include <string.h>

#include "state/check.h"
#include "state/figures.h"
#include "state/lines.h"
#include "state/sums.h"
#include "state/tiles.h"

static bool good_width(uint8_t width)
{
    return width <= PACK_MOST_WIDTH || width == 64;
}

/* ---- names and codes ---- */

static const char *names_defect(const struct state_chunk *s)
{
    const char *what = store_names_defect(s->text, s->n_text, s->names, s->n_names);
    if (what)
        return what;
    if (s->text[s->names[0]])
        return "the empty name is not empty";
    if (s->n_codes < STATE_VALUES)
        return "codes are missing";
    for (size_t i = 0; i < s->n_codes; i++) {
        const struct state_disk_code *c = &s->disk_codes[i];
        if (c->value >= STATE_VALUES || c->name >= s->n_names || c->cpu < -1 || c->of >= STATE_CODE_OFS ||
            (i < STATE_VALUES && c->value != i))
            return "a code makes no sense";
    }
    return NULL;
}

/* ---- rows ---- */

static bool good_kind(uint8_t kind)
{
    return (kind < STATE_KINDS && !state_is_line(kind)) ||
        (kind > STATE_COUNTER_ROWS + STATE_CPU_TIME && kind < STATE_ROW_KINDS);
}

/* Row i of the table, those of threads first. */
static bool good_row_number(const struct state_chunk *s, const struct state_disk_row *r, size_t i)
{
    if (r->kind == STATE_THREAD)
        return r->number >= 0 && (size_t)r->number == i;
    if (r->kind == STATE_COUNTER_ROWS + STATE_MEMORY)
        return r->number >= -1 && (r->number < 0 || (size_t)r->number < s->first[STATE_THREAD + 1]);
    if (r->kind == STATE_FILE_ROWS)
        return (size_t)r->number == i - s->first[STATE_FILE_ROWS];
    if (r->kind >= STATE_COUNTER_ROWS + STATE_IO_READ && r->kind < STATE_FILE_ROWS)
        return r->number >= 0 && (size_t)r->number < s->first[STATE_THREAD + 1];
    if (r->kind == STATE_FUTEX_USER)
        return r->number >= 0 && (size_t)r->number == i - s->first[STATE_FUTEX_USER] &&
            r->thread < (int64_t)s->first[STATE_THREAD + 1];
    return r->number >= 0;
}

static const char *rows_defect(struct state_chunk *s)
{
    uint64_t block = 0, sum = 0, grid = 0;
    int kind = 0;
    for (size_t i = 0; i < s->n_rows; i++) {
        const struct state_disk_row *r = &s->rows[i];
        if (!good_kind(r->kind) || r->kind < (i ? r[-1].kind : 0) ||
            (i && r->kind == r[-1].kind && r->number <= r[-1].number))
            return "rows out of order";
        for (; kind <= r->kind; kind++) {
            s->first[kind] = i;
            s->first_of[kind].block = block;
            s->first_of[kind].sum = sum;
        }
        if (!good_row_number(s, r, i))
            return "a row's number makes no sense";
        if (r->begin > r->end || r->begin < s->totals->begin || r->end > s->totals->end || r->lead >= STATE_VALUES ||
            r->name >= s->n_names || r->idle > 1 || r->waits > 1 || r->flags > STATE_ROW_FLAGS || r->thread < -1 ||
            r->shift > 63 || (state_may_fall(r->kind) ? r->least > 0 : r->least && !state_is_thread_io(r->kind)))
            return "a row makes no sense";
        uint64_t blocks = r->n_cells / STATE_CELLS + (r->n_cells % STATE_CELLS != 0);
        if (r->n < r->n_cells || r->n > (uint64_t)r->n_cells * STATE_CELL_ENTRIES || r->first_block != block ||
            blocks > s->n_blocks - block || r->first_grid != grid || r->n_grid > s->n_grid - grid)
            return "a row's entries lie outside the table";
        block += blocks;
        sum += blocks * state_block_sums(r->kind);
        grid += r->n_grid;
    }
    for (; kind <= STATE_ROW_KINDS; kind++)
        s->first[kind] = s->n_rows;
    return block != s->n_blocks || sum != s->n_sums || grid != s->n_grid ? "entries that belong to no row" : NULL;
}

static const char *files_defect(const struct state_chunk *s)
{
    if (s->n_files != s->first[STATE_FILE_ROWS + 1] - s->first[STATE_FILE_ROWS])
        return "files that do not fit their rows";
    for (size_t i = 0; i < s->n_files; i++)
        if (s->files[i].thread < 0 || (size_t)s->files[i].thread >= s->first[STATE_THREAD + 1] ||
            s->files[i].bytes[STATE_WAY_READ] < s->files[i].counted[STATE_WAY_READ] ||
            s->files[i].bytes[STATE_WAY_WRITTEN] < s->files[i].counted[STATE_WAY_WRITTEN] ||
            s->files[i].counted[STATE_WAY_READ] < 0 || s->files[i].counted[STATE_WAY_WRITTEN] < 0)
            return "a file makes no sense";
    return NULL;
}

/* Checks that each file is listed with its thread, once, if anything was moved. */
static const char *through_defect(const struct state_chunk *s)
{
    size_t at = 0, moved = 0;
    for (size_t i = s->first[STATE_COUNTER_ROWS + STATE_IO_READ];
         i < s->first[STATE_COUNTER_ROWS + STATE_IO_WRITTEN + 1]; i++) {
        const struct state_disk_row *r = &s->rows[i];
        int way = r->kind - STATE_COUNTER_ROWS - STATE_IO_READ;
        if (r->first_file != at || r->n_files > s->n_through - at)
            return "a thread's files lie outside the table";
        for (size_t end = at + r->n_files; at < end; at++) {
            uint32_t file = s->through[at];
            if (file >= s->n_files || (at > r->first_file && file <= s->through[at - 1]) ||
                s->files[file].thread != r->number || !s->files[file].bytes[way])
                return "a thread's files are others";
        }
    }
    for (size_t i = 0; i < s->n_files; i++)
        for (int way = 0; way < STATE_WAYS; way++)
            moved += s->files[i].bytes[way] > 0;
    return at != s->n_through || at != moved ? "files that belong to no thread" : NULL;
}

/* ---- entries ---- */

/* A row while its entries are read. */
struct row_check {
    const struct state_chunk *s;
    const struct state_disk_row *row;
    int64_t time;          /* end of the cell before */
    int64_t number, least; /* number of the entry before; minimum of all */
    uint64_t n;            /* entries so far */
    int64_t sums[STATE_WAYS];
    uint64_t bucket, edge; /* grid bucket to be checked next, and its begin; beyond all times if there is none */
};

static bool good_futex_call(int64_t number)
{
    int operation = state_futex_operation(number);
    return operation >= 0 && operation < STATE_FUTEX_OPERATIONS &&
        state_futex_operations[operation].value != STATE_NONE;
}

static bool good_number(const struct row_check *g, int64_t number)
{
    size_t threads = g->s->first[STATE_THREAD + 1];
    int kind = g->row->kind;
    if (state_may_fall(kind))
        return true;
    if (kind == STATE_FUTEX_USER)
        return !number || number == STATE_FUTEX_DOUBT || good_futex_call(number);
    if (number < 0)
        return false;
    switch (kind) {
    case STATE_FUTEX_WAITS:
    case STATE_FUTEX_WAKES: return (uint64_t)number <= state_row_count(g->s, STATE_FUTEX_USER);
    case STATE_IRQ_HANDLERS: return (uint64_t)number >> 1 < g->s->n_codes;
    case STATE_CPU: return number & 1 ? (uint64_t)number >> 1 < threads : (uint64_t)number >> 1 < g->s->n_codes;
    case STATE_CPU_THREAD: return (uint64_t)number <= threads;
    case STATE_FILE_ROWS:
    case STATE_REQUEST_ROWS: return true;
    default: return kind < STATE_COUNTER_ROWS ? (uint64_t)number < g->s->n_codes : number >= g->number || !g->n;
    }
}

static bool counts(const struct row_check *g)
{
    if (g->row->kind == STATE_THREAD)
        return !g->row->idle && state_running(g->s->disk_codes[g->number].value);
    return g->row->kind == STATE_CPU_THREAD && g->number && !g->s->rows[g->number - 1].idle;
}

/* Adds the entry before, which lasted `ns`. */
static void add_up(struct row_check *g, uint64_t ns)
{
    if (g->row->kind != STATE_FILE_ROWS)
        g->sums[0] = (int64_t)((uint64_t)g->sums[0] + (counts(g) ? ns : 0));
    else
        for (int way = 0; way < STATE_WAYS; way++)
            g->sums[way] = (int64_t)((uint64_t)g->sums[way] + state_file_bytes(g->number, way));
}

static bool good_sums(const struct row_check *g, uint32_t block)
{
    unsigned n = state_block_sums(g->row->kind);
    return !n || !memcmp(sum_of_block(g->s, g->row, SUM_READ, block), g->sums, n * sizeof *g->sums);
}

static void set_edge(struct row_check *g)
{
    g->edge = g->bucket < g->row->n_grid ? g->bucket << g->row->shift : UINT64_MAX;
}

/* Buckets that begin before cell i hold the cell before. */
static bool good_grid(struct row_check *g, uint32_t i, uint64_t since_first)
{
    const uint32_t *grid = g->s->grid + g->row->first_grid;
    while (g->edge < since_first) {
        if (grid[g->bucket++] != i - 1)
            return false;
        set_edge(g);
    }
    return true;
}

static bool good_head(const struct state_disk_row *r, const struct state_disk_cell *c)
{
    uint8_t number_width = c->number_width & ~STATE_FOLDED;
    if (!cell_is_paired(c))
        return c->n == cell_plain_n(c) && good_width(c->time_width) && good_width(number_width) &&
            pack_bytes(c->n, c->time_width) + pack_bytes(c->n, number_width) <= sizeof c->packed;
    struct state_cell_pairs p = state_cell_pairs(c);
    return r->kind > STATE_CPU_THREAD && p.time_width <= PACK_MOST_WIDTH && p.number_width <= PACK_MOST_WIDTH &&
        p.duration_width <= PACK_MOST_WIDTH &&
        pack_bytes(p.n, p.time_width) + pack_bytes(p.n, p.number_width) + pack_bytes(p.n, p.duration_width) <=
        sizeof c->packed;
}

static const char *cell_defect(struct row_check *g, const struct state_disk_cell *c, uint32_t i)
{
    const struct state_disk_row *r = g->row;
    bool last = i + 1 == r->n_cells;
    int64_t times[STATE_CELL_ENTRIES + 1], numbers[STATE_CELL_ENTRIES];
    if (!good_head(r, c))
        return "a cell makes no sense";
    size_t n = cell_take(c, times, numbers);
    if (c->base < r->begin || (i ? c->base != g->time : c->base != r->first) || (last && times[n - 1] > r->end))
        return "entries outside their row";
    if (i && !good_grid(g, i, (uint64_t)c->base - (uint64_t)r->first))
        return "the grid does not fit the entries";
    if (i % STATE_CELLS == 0 && !good_sums(g, i / STATE_CELLS))
        return "sums that do not add up";
    for (size_t k = 0; k < n; k++, g->n++) {
        if (!good_number(g, numbers[k]))
            return "an entry's number makes no sense";
        g->number = numbers[k];
        g->least = state_may_fall(r->kind) && g->number < g->least ? g->number : g->least;
        if (last && k + 1 == n)
            continue;
        if (times[k + 1] <= times[k] || times[k + 1] > r->end)
            return "entries out of order";
        add_up(g, (uint64_t)times[k + 1] - (uint64_t)times[k]);
    }
    g->time = times[n];
    return NULL;
}

static const char *entries_defect(const struct state_chunk *s, const struct state_disk_row *row)
{
    struct row_check g = {.s = s, .row = row};
    const char *what = NULL;
    if (row->n_grid && ((row->n_grid - 1) > UINT64_MAX >> row->shift || !row->n_cells))
        return "the grid makes no sense";
    set_edge(&g);
    if (row->n_cells && row->kind != STATE_FILE_ROWS) /* value carried from before the chunk */
        memcpy(g.sums, sum_of_block(s, row, SUM_READ, 0), state_block_sums(row->kind) * sizeof *g.sums);
    for (uint32_t i = 0; i < row->n_cells && !what; i++) {
        uint64_t at = (uint64_t)s->blocks[row->first_block + i / STATE_CELLS] + i % STATE_CELLS;
        what = at < s->n_cells ? cell_defect(&g, &s->cells[at], i) : "a block's cells lie outside the table";
    }
    for (; !what && g.bucket < row->n_grid; g.bucket++)
        if (s->grid[row->first_grid + g.bucket] != row->n_cells - 1)
            what = "the grid does not fit the entries";
    if (!what && row->kind == STATE_FILE_ROWS) {
        if (row->flags & STATE_ROW_GOES && row->n_cells)
            add_up(&g, 0);
        if (memcmp(state_disk_file(s, row)->counted, g.sums, sizeof g.sums))
            what = "a file's bytes are not those of its row";
    }
    if (!what && (g.n != row->n || (state_may_fall(row->kind) && g.least != row->least)))
        what = "a row's entries are not those that it tells";
    return what;
}

/* ---- tables ---- */

static const char *tables_defect(const struct state_chunk *s)
{
    uint64_t next = 0, events = s->totals->events;
    if (s->n_tables != STATE_TABLES)
        return "tables are missing";
    for (size_t i = 0; i < STATE_TABLES; i++) {
        const struct state_disk_table *t = &s->tables[i];
        uint64_t heads = t->n / STATE_BLOCK + (t->n % STATE_BLOCK != 0);
        if (t->first_head != next || heads > s->n_heads - next)
            return "a table's blocks lie outside the file";
        next += heads;
    }
    uint64_t first = state_first_checkpoint(s->totals), rest = events > first ? events - first : 0;
    if (s->tables[STATE_TABLE_EVENTS].n != rest / STATE_EVENTS_SHARE + (rest % STATE_EVENTS_SHARE != 0))
        return "the number of events does not fit";
    return next != s->n_heads ? "blocks that belong to no table" : NULL;
}

/* Columns follow each other; columns that a table does not have are empty. */
static const char *block_defect(const struct state_chunk *s, const struct state_disk_head *h, int columns, size_t n)
{
    static const struct column_form none;
    const uint8_t *end = s->bytes + s->n_bytes;
    if (h->position > s->n_bytes)
        return "a block's values lie outside the file";
    const uint8_t *begin = s->bytes + h->position, *at = begin;
    for (int c = 0; c < STATE_LATENCY_COLUMNS; c++) {
        const char *what = NULL;
        if (c >= columns ? memcmp(&h->columns[c], &none, sizeof none) : h->columns[c].offset != at - begin)
            what = "a block's columns do not follow each other";
        else if (c < columns)
            what = state_column_defect(at, n, h->columns[c], end, &at);
        if (what)
            return what;
    }
    struct column first = column_open(begin, n, h->first, h->columns[0]);
    return state_column_get(&first, 0) != h->first ? "a block does not begin as it tells" : NULL;
}

static const char *blocks_defect(const struct state_chunk *s)
{
    for (int i = 0; i < STATE_TABLES; i++) {
        const struct state_disk_table *t = &s->tables[i];
        for (uint64_t first = 0; first < t->n; first += STATE_BLOCK) {
            const char *what = block_defect(s, &s->heads[t->first_head + first / STATE_BLOCK],
                i == STATE_TABLE_EVENTS ? 1 : STATE_LATENCY_COLUMNS,
                t->n - first < STATE_BLOCK ? t->n - first : STATE_BLOCK);
            if (what)
                return what;
        }
    }
    return NULL;
}

static const char *events_defect(const struct state_chunk *s)
{
    const struct state_disk_table *table = &s->tables[STATE_TABLE_EVENTS];
    int64_t before = INT64_MIN;
    for (uint64_t i = 0; i < table->n; i++) {
        int64_t t = state_column_at(s, table, 0, i);
        if (t < before || t > s->totals->last_event)
            return "events out of order";
        before = t;
    }
    return NULL;
}

static bool good_latency(
    const struct state_chunk *s, int64_t begin, int64_t duration, int64_t thread, int64_t cpu, int64_t code)
{
    int64_t end;
    return duration >= 0 && !__builtin_add_overflow(begin, duration, &end) && thread >= -1 &&
        thread < (int64_t)s->first[STATE_THREAD + 1] && cpu >= 0 && cpu <= UINT16_MAX && code >= 0 &&
        code < (int64_t)s->n_codes;
}

static const char *latencies_defect(const struct state_chunk *s, int kind)
{
    const struct state_disk_table *table = state_latency_table(s, kind);
    uint64_t far = s->n_far + (uint64_t)STATE_RET_FAR;
    int64_t before = INT64_MIN, v[STATE_LATENCY_COLUMNS][STATE_BLOCK];
    for (uint64_t first = 0; first < table->n; first += STATE_BLOCK) {
        size_t n = 0;
        for (int c = 0; c < STATE_LATENCY_COLUMNS; c++) {
            struct column column = state_column(s, table, first / STATE_BLOCK, c);
            state_column_take(&column, v[c]);
            n = column.n;
        }
        for (size_t i = 0; i < n; i++) {
            if (v[STATE_BEGIN][i] < before)
                return "latencies out of order";
            if (v[STATE_RET][i] < 0 || (uint64_t)v[STATE_RET][i] >= far ||
                !good_latency(s, v[STATE_BEGIN][i], v[STATE_DURATION][i], v[STATE_LATENCY_THREAD][i],
                    v[STATE_LATENCY_CPU][i], v[STATE_LATENCY_CODE][i]))
                return "a latency makes no sense";
            before = v[STATE_BEGIN][i];
        }
    }
    return NULL;
}

/* Computes the tiles anew and compares; the latencies must be valid. */
static const char *figures_defect(const struct state_chunk *s)
{
    struct tile_list made = {0};
    struct tiles *tiles = mem_zalloc(sizeof *tiles);
    int64_t durations[STATE_BLOCK], codes[STATE_BLOCK];
    for (int kind = 0; kind < STATE_LATENCY_KINDS; kind++) {
        const struct state_disk_table *table = state_latency_table(s, kind);
        for (uint64_t first = 0; first < table->n; first += STATE_BLOCK) {
            struct column duration = state_column(s, table, first / STATE_BLOCK, STATE_DURATION);
            struct column code = state_column(s, table, first / STATE_BLOCK, STATE_LATENCY_CODE);
            state_column_take(&duration, durations);
            state_column_take(&code, codes);
            state_tiles_add(tiles, durations, codes, code.n);
        }
        state_tiles_end(tiles);
        state_tiles_list(tiles, &made);
        state_tiles_fini(tiles);
    }
    vec_push(&made.first, made.figures.n);
    bool same = made.first.n == s->n_tiles && !memcmp(made.first.v, s->tiles, made.first.n * sizeof *made.first.v) &&
        made.figures.n == s->n_figures &&
        (!made.figures.n || !memcmp(made.figures.v, s->figures, made.figures.n * sizeof *made.figures.v));
    state_tile_list_fini(&made);
    free(tiles);
    return same ? NULL : "figures that do not fit the latencies";
}

/* Returns whether it would fit into the table behind its first m latencies. */
static bool fits_table(const struct state_chunk *s, const struct state_disk_table *table, uint64_t m, int64_t begin)
{
    return m <= table->n && (!m || state_column_at(s, table, STATE_BEGIN, m - 1) <= begin) &&
        (m == table->n || state_column_at(s, table, STATE_BEGIN, m) >= begin);
}

static const char *aside_defect(const struct state_chunk *s)
{
    for (size_t i = 0; i < s->n_aside; i++) {
        const struct state_disk_aside *l = &s->aside[i];
        if (l->kind >= STATE_LATENCY_KINDS || l->kind < (i ? l[-1].kind : 0))
            return "late latencies out of order";
        const struct state_disk_table *table = state_latency_table(s, l->kind);
        size_t k = i - s->first_aside[l->kind];
        if (l->index < k || (k && (l->index <= l[-1].index || l->begin < l[-1].begin)) ||
            !fits_table(s, table, l->index - k, l->begin) || (k < table->early && l->index != k))
            return "late latencies out of order";
        if (!good_latency(s, l->begin, l->duration, l->thread, l->cpu, l->code))
            return "a latency makes no sense";
    }
    return NULL;
}

static const char *open_defect(const struct state_chunk *s)
{
    for (size_t i = 0; i < s->n_open; i++) {
        const struct state_disk_open *o = &s->open[i];
        if (o->kind >= STATE_LATENCY_KINDS || o->kind < (i ? o[-1].kind : 0) ||
            (i && o->kind == o[-1].kind &&
                (o->index < o[-1].index || o->begin < o[-1].begin ||
                    (o->begin == o[-1].begin && o->rank <= o[-1].rank))))
            return "open latencies out of order";
        const struct state_disk_table *table = state_latency_table(s, o->kind);
        uint64_t before = state_aside_before(s, o->kind, o->index);
        if (o->index < before || o->index < table->early || !fits_table(s, table, o->index - before, o->begin))
            return "open latencies out of order";
    }
    return NULL;
}

/* Checks the codes of latencies that are not early: once each, at their first use. */
static const char *firsts_of_kind_defect(const struct state_chunk *s, int kind, uint64_t *first_of)
{
    const struct state_disk_table *table = state_latency_table(s, kind);
    const struct state_disk_aside *aside = s->aside + s->first_aside[kind];
    int64_t codes[STATE_BLOCK];
    size_t n = s->first_aside[kind + 1] - s->first_aside[kind], k = 0, met = 0;
    memset(first_of, 0xff, s->n_codes * sizeof *first_of);
    for (uint64_t i = 0; i < table->n + n; i++) {
        bool beside = k < n && aside[k].index == i;
        if (!beside && (i - k) % STATE_BLOCK == 0) {
            struct column column = state_column(s, table, (i - k) / STATE_BLOCK, STATE_LATENCY_CODE);
            state_column_take(&column, codes);
        }
        int64_t code = beside ? (int64_t)aside[k].code : codes[(i - k) % STATE_BLOCK];
        if (i >= table->early && first_of[code] == UINT64_MAX) {
            first_of[code] = i;
            met++;
        }
        k += beside;
    }
    const struct state_disk_first *first = s->firsts + s->first_first[kind],
                                  *end = s->firsts + s->first_first[kind + 1];
    if ((size_t)(end - first) != met)
        return "first latencies of codes are missing";
    for (const struct state_disk_first *f = first; f < end; f++)
        if (f->kind != kind || f->code >= s->n_codes || first_of[f->code] != f->index ||
            (f > first && f->index <= f[-1].index))
            return "first latencies of codes that are not";
    return NULL;
}

/* The latencies must be valid. */
static const char *firsts_defect(const struct state_chunk *s)
{
    const char *what = s->first_first[0] ? "first latencies of codes that are not" : NULL;
    uint64_t *first_of = mem_alloc(s->n_codes * sizeof *first_of);
    for (int kind = 0; kind < STATE_LATENCY_KINDS && !what; kind++)
        what = firsts_of_kind_defect(s, kind, first_of);
    free(first_of);
    return what ? what : s->first_first[STATE_LATENCY_KINDS] != s->n_firsts ? "first latencies of no kind" : NULL;
}

static const char *losses_defect(const struct state_chunk *s)
{
    for (size_t i = 0; i < s->n_losses; i++) {
        const struct state_disk_loss *l = &s->losses[i];
        if (l->begin > l->end || l->cpu < -1 || (i && l->begin < l[-1].begin))
            return "losses out of order";
    }
    return NULL;
}

/* ---- whole store ---- */

/* Finds the ranges of sections sorted by kind. */
#define find_kinds(first, n, items) \
    do { \
        for (int kind = 0; kind <= STATE_LATENCY_KINDS; kind++) \
            (first)[kind] = search_first(i, kind ? (first)[kind - 1] : 0, n, (items)[i].kind >= kind); \
    } while (0)

static void find_latencies(struct state_chunk *s)
{
    find_kinds(s->first_aside, s->n_aside, s->aside);
    find_kinds(s->first_open, s->n_open, s->open);
    find_kinds(s->first_first, s->n_firsts, s->firsts);
}

const char *state_structure_defect(struct state_chunk *s)
{
    const char *what = s->totals->begin > s->totals->end ? "it ends before it begins" : names_defect(s);
    if (!what)
        what = rows_defect(s);
    if (!what)
        what = files_defect(s);
    if (!what)
        what = through_defect(s);
    if (!what)
        what = tables_defect(s);
    if (!what && s->n_tiles != state_tiles(s, STATE_LATENCY_KINDS) + 1)
        what = "tiles that do not fit the latencies";
    find_latencies(s);
    for (int kind = 0; kind < STATE_LATENCY_KINDS && !what; kind++)
        if (state_latency_table(s, kind)->early > s->first_aside[kind + 1] - s->first_aside[kind])
            what = "more early latencies than there are";
    return what;
}

const char *state_content_defect(const struct state_chunk *s)
{
    const char *what = blocks_defect(s);
    for (size_t i = 0; i < s->n_rows && !what; i++)
        what = entries_defect(s, &s->rows[i]);
    if (!what)
        what = events_defect(s);
    for (int kind = 0; kind < STATE_LATENCY_KINDS && !what; kind++)
        what = latencies_defect(s, kind);
    if (!what)
        what = figures_defect(s);
    if (!what)
        what = aside_defect(s);
    if (!what)
        what = open_defect(s);
    if (!what)
        what = firsts_defect(s);
    return what ? what : losses_defect(s);
}
