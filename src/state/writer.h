/* Private to state: a store on its way to the disk, when no more records come. Its rows are listed from all that the
 * builder holds (write_rows.c), then put in order and written (write.c). */
#ifndef WEFT_STATE_WRITER_H
#define WEFT_STATE_WRITER_H

#include "state/builder.h"
#include "state/gaps.h"

/* A row on its way to the disk. */
struct row_draft {
    struct state_disk_row disk;
    const struct series *series;
    uint32_t cells, buckets; /* of the grid: done so far */
};

struct state_writer {
    struct state_builder *b;
    int64_t begin, end;
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
    VEC(struct state_disk_file) files;
    VEC(uint32_t) through;
    struct series none;            /* of rows that have no entries of their own */
    struct tile_list tiles;
    struct builder_gaps gaps;
};

/* Names the codes, and lists all rows with their names and what they are about. Their series are complete then. */
void state_writer_add_rows(struct state_writer *);

#endif
