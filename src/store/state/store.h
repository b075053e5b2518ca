/* SPDX-License-Identifier: MIT */
/* Private to state: an open store: a list of chunks, often of a single one. */
#ifndef WEFT_STATE_STORE_H
#define WEFT_STATE_STORE_H

#include <pthread.h>

#include "state/chunk.h"

/* Interrupt or softirq over all CPUs. rows: rows of the CPUs that had it, as indices within their kind, in order. */
struct state_line_row {
    uint32_t row;
    int32_t number;             /* number, with the CPU */
};
struct state_line {
    const struct state_line_row *rows;
    size_t n;
    int32_t number;
};
struct state_lines {
    struct state_line *v;       /* lines in order of number */
    struct state_line_row *rows; /* rows of all lines */
    size_t n;
};

struct list_kind;
struct list_place;
struct list_tables;

/* A chunk of a store. */
struct state_part {
    struct state_chunk *chunk;
    int64_t begin, end;          /* the cuts */
    const int32_t *rows;         /* row of the host by thread of the chunk; NULL: the same */
    uint32_t *users;             /* FUTEX_USER row of the host by that of the chunk; NULL: the same */
};
struct state_store {
    struct state_part *parts;    /* parts in order of time */
    size_t n;                    /* number of parts, at least one */
    struct chunk_rows *rows;     /* rows of the parts */
    struct list_kind *kinds;     /* STATE_ROW_KINDS of them; NULL: the parts are not joined */
    pthread_mutex_t joining;     /* guards the joining of rows */
    struct list_tables *tables;
    int64_t begin, end;          /* the span */
    uint32_t *files;             /* joined rows of files of all rows of IO_READ and IO_WRITTEN */
    size_t n_files;
    struct state_lines lines[STATE_LINE_KINDS];
};
/* Row of the host of a thread of a chunk; -1: none. */
static inline int32_t state_host_row(const struct state_part *p, int32_t row)
{
    return row < 0 ? -1 : p->rows ? p->rows[row] : row;
}

#endif
