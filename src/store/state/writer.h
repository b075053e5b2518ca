/* SPDX-License-Identifier: MIT */
/* Private to state: writing a store, after the last record. Its rows are listed from the builder's state
 * (write_rows.c), then sorted and written (write.c), with tables of columns (write_tables.c). */
#ifndef WEFT_STATE_WRITER_H
#define WEFT_STATE_WRITER_H

#include "state/builder.h"

/* Row that is being written. */
struct row_draft {
    struct state_disk_row disk;
    const struct series *series;
    uint32_t cells, buckets; /* progress of the grid */
};

struct state_writer {
    struct state_builder *b;
    int64_t begin, end;
    int64_t nothing_at;            /* begin and end of a chunk in which nothing happens */
    bool cut;                      /* the carried state is left to the next chunk */
    VEC(struct row_draft) rows;    /* rows in order of arrival, then by kind and number */
    VEC(struct state_disk_code) codes;
    struct strings names;
    uint32_t *blocks;
    int64_t *sums;
    uint32_t n_sums;
    VEC(uint32_t) grid;
    struct state_disk_table tables[STATE_TABLES];
    VEC(struct state_disk_head) heads;
    VEC(struct state_disk_aside) aside;
    VEC(struct state_disk_open) open;
    VEC(struct state_disk_first) firsts;
    VEC(struct state_disk_file) files;
    VEC(uint32_t) through;
    struct series none;            /* series of rows without their own entries */
    struct tile_list tiles;
};

/* Resolves the names of codes, and lists all rows with their names and subjects. Completes their series. */
void state_writer_add_rows(struct state_writer *);
/* Packs the remaining events and latencies. cut: see state_latency_series_finish */
void state_writer_finish_tables(struct state_builder *, bool cut);
/* Writes the finished tables. */
void state_writer_add_tables(struct state_writer *);

#endif
