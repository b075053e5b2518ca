/* SPDX-License-Identifier: MIT */
/* Private to graph: the entries of one row, or of one CPU, by number and by time: a series of one chunk's. The blocks
 * and begins come from the file and may be anything; what the reader gives are entries of the series all the same,
 * within its time, that do not end before they begin. */
#ifndef WEFT_GRAPH_SERIES_H
#define WEFT_GRAPH_SERIES_H

#include "graph/layout.h"

struct graph_series {
    const struct graph_disk_block *blocks;
    const uint32_t *begins; /* of all series: columns */
    uint32_t n_blocks;      /* none when there are no entries */
    uint32_t first, n;      /* entries, in the columns */
    int64_t begin, end;     /* no entry lies outside */
};

struct graph_position {
    uint32_t at;    /* in the columns */
    uint32_t block; /* of the series */
    int64_t begin, end;
};

struct graph_series graph_row_series(const struct graph_place *);
struct graph_series graph_cpu_series(const struct graph_chunk *, const struct graph_disk_cpu *);
/* Entry i < n. O(log n) */
void graph_series_entry(const struct graph_series *, uint32_t i, struct graph_position *);
/* The entry with begin <= ts < end, if there is one. O(log n) */
bool graph_series_find(const struct graph_series *, int64_t ts, struct graph_position *);
/* The one after; false: there is none. */
bool graph_series_next(const struct graph_series *, struct graph_position *);

/* A CPU's occupants from chunk to chunk. */
struct graph_occupant {
    const struct graph *graph;
    const struct graph_chunk *chunk;
    uint32_t cpu;
    struct graph_series s;
    struct graph_position e;
    int32_t row, idle_row; /* of the chunk, or -1 */
};
/* Who had the CPU at ts; false: nothing is known of it then. O(log chunks + log n) */
bool graph_occupant_find(const struct graph *, uint32_t cpu, int64_t ts, struct graph_occupant *);
/* The next one; false: there is none. */
bool graph_occupant_next(struct graph_occupant *);

#endif
