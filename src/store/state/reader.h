/* SPDX-License-Identifier: MIT */
/* Private to state: an open chunk. References between sections were checked on opening (check.h); other contents are
 * bounded when they are read. */
#ifndef WEFT_STATE_READER_H
#define WEFT_STATE_READER_H

#include "base/search.h"
#include "state/format.h"

struct state_code {             /* code, resolved for readers */
    const char *name;           /* name, or NULL */
    int32_t cpu;
    uint8_t value;
};

struct state_chunk {
    struct store *file;
    const struct state_disk_totals *totals;
    const struct state_disk_row *rows;
    const struct state_disk_cell *cells;
    const uint32_t *blocks;     /* first cell of each block, row by row */
    const int64_t *sums;        /* state_block_sums() sums of each block, block by block */
    const uint32_t *grid;
    const struct state_disk_code *disk_codes;
    const struct state_disk_table *tables;
    const struct state_disk_head *heads;
    const int64_t *far;
    const struct state_disk_aside *aside;
    const struct state_disk_open *open;
    const struct state_disk_first *firsts;
    const uint64_t *tiles;      /* begin of the figures of each tile */
    const struct state_disk_figures *figures;
    const struct state_disk_loss *losses;
    const struct state_disk_file *files;
    const uint32_t *through;    /* files of each row of IO_READ and IO_WRITTEN, row by row */
    const uint32_t *names;      /* begin of each name in `text`; name 0 is "" */
    const char *text;
    const uint8_t *bytes;       /* readable COLUMN_SPARE bytes beyond its end */
    size_t n_rows, n_cells, n_blocks, n_sums, n_grid, n_codes, n_tables, n_heads, n_far, n_aside, n_open, n_firsts,
        n_tiles, n_figures, n_losses, n_files, n_through, n_names, n_text, n_bytes;
    size_t first[STATE_ROW_KINDS + 1]; /* rows by kind: first[kind] up to first[kind + 1] */
    struct { uint64_t block, sum; } first_of[STATE_ROW_KINDS]; /* first block and sum of each kind */
    size_t first_aside[STATE_LATENCY_KINDS + 1], first_open[STATE_LATENCY_KINDS + 1],
        first_first[STATE_LATENCY_KINDS + 1]; /* first item of each kind of latencies */
    struct state_code *codes;
    struct state_latency_names {
        const char **v;         /* names in order of first use */
        uint32_t *of;           /* name by code */
        size_t n;
    } latency_names[STATE_LATENCY_KINDS];
};

static inline size_t state_row_count(const struct state_chunk *s, int kind)
{
    return s->first[kind + 1] - s->first[kind];
}
static inline const struct state_disk_row *state_disk_row(const struct state_chunk *s, int kind, size_t i)
{
    return &s->rows[s->first[kind] + i];
}
/* File and thread of a row of files. */
static inline const struct state_disk_file *state_disk_file(const struct state_chunk *s,
    const struct state_disk_row *r)
{
    return &s->files[(size_t)(r - s->rows) - s->first[STATE_FILE_ROWS]];
}
static inline const char *state_name(const struct state_chunk *s, uint32_t name) { return s->text + s->names[name]; }
/* Number of latencies aside before the i-th of all of the kind. */
static inline size_t state_aside_before(const struct state_chunk *s, int kind, size_t i)
{
    size_t first = s->first_aside[kind];
    return search_first(k, first, s->first_aside[kind + 1], s->aside[k].index >= i) - first;
}
static inline const struct state_disk_table *state_latency_table(const struct state_chunk *s, int kind)
{
    return &s->tables[STATE_TABLE_LATENCIES + kind];
}
/* Column of a table's block, bounded by the file whatever the block's head contains. */
static inline struct column state_column(const struct state_chunk *s, const struct state_disk_table *t, size_t block,
    int column)
{
    const struct state_disk_head *h = &s->heads[t->first_head + block];
    uint64_t left = t->n - block * STATE_BLOCK,
        at = h->position < s->n_bytes ? h->position + h->columns[column].offset : s->n_bytes;
    return column_open(s->bytes + (at < s->n_bytes ? at : s->n_bytes), left < STATE_BLOCK ? left : STATE_BLOCK,
        column ? 0 : h->first, h->columns[column]);
}
/* Row i's value in a column. */
static inline int64_t state_column_at(const struct state_chunk *s, const struct state_disk_table *t, int column,
    size_t i)
{
    struct column c = state_column(s, t, i / STATE_BLOCK, column);
    return state_column_get(&c, i % STATE_BLOCK);
}

#endif
