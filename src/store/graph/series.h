/* SPDX-License-Identifier: MIT */
/* Private to graph: entries of one row, or of one CPU, by number and by time: a series of one chunk. Blocks and begins
 * come from the file and may be anything. The reader still returns only entries of the series, within its time, that do
 * not end before they begin. */
#ifndef WEFT_GRAPH_SERIES_H
#define WEFT_GRAPH_SERIES_H

#include "graph/layout.h"

struct graph_series {
    const struct graph_disk_block *blocks;
    const uint32_t *begins; /* begins of all series: a column */
    uint32_t n_blocks;      /* 0 without entries */
    uint32_t first, n;      /* range of entries in the columns */
    int64_t begin, end;     /* bounds of all entries */
};

struct graph_position {
    uint32_t at;    /* index in the columns */
    uint32_t block; /* block of the series */
    int64_t begin, end;
};

struct graph_series graph_row_series(const struct graph_place *);
struct graph_series graph_cpu_series(const struct graph_chunk *, const struct graph_disk_cpu *);
/* Entry i < n. O(log n) */
void graph_series_entry(const struct graph_series *, uint32_t i, struct graph_position *);
/* Entry with begin <= ts < end, if any. O(log n) */
bool graph_series_find(const struct graph_series *, int64_t ts, struct graph_position *);
/* Moves to the next entry; false: none. */
bool graph_series_next(const struct graph_series *, struct graph_position *);

/* Occupants of a CPU, from chunk to chunk. */
struct graph_occupant {
    const struct graph *graph;
    const struct graph_chunk *chunk;
    uint32_t cpu;
    struct graph_series s;
    struct graph_position e;
    int32_t row, idle_row; /* rows of the chunk, or -1 */
};
/* Occupant of the CPU at ts; false: unknown then. O(log chunks + log n) */
bool graph_occupant_find(const struct graph *, uint32_t cpu, int64_t ts, struct graph_occupant *);
/* Moves to the next one; false: none. */
bool graph_occupant_next(struct graph_occupant *);

#endif
