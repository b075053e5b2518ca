/* SPDX-License-Identifier: MIT */
/* Private to state: a store on its way to the disk, when no more records come. Its rows are listed from all that the
 * builder holds (write_rows.c), then put in order and written (write.c), with tables of columns (write_tables.c). */
#ifndef WEFT_STATE_WRITER_H
#define WEFT_STATE_WRITER_H

#include "state/builder.h"

/* A row on its way to the disk. */
struct row_draft {
    struct state_disk_row disk;
    const struct series *series;
    uint32_t cells, buckets; /* of the grid: done so far */
};

struct state_writer {
    struct state_builder *b;
    int64_t begin, end;
    int64_t nothing_at;            /* the begin and the end of a chunk in which nothing happens */
    bool cut;                      /* what was carried is left to the next chunk */
    VEC(struct row_draft) rows;    /* first as they come, then by kind and number */
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
    struct series none;            /* of rows that have no entries of their own */
    struct tile_list tiles;
};

/* Names the codes, and lists all rows with their names and what they are about. Their series are complete then. */
void state_writer_add_rows(struct state_writer *);
/* Packs what is left of events and latencies. cut: as latency_series_finish */
void state_writer_finish_tables(struct state_builder *, bool cut);
/* Once they are finished. */
void state_writer_add_tables(struct state_writer *);

#endif
