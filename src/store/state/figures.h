/* SPDX-License-Identifier: MIT */
/* Private to state: latencies by name, and their tiles. */
#ifndef WEFT_STATE_FIGURES_H
#define WEFT_STATE_FIGURES_H

#include "state/measure.h"
#include "state/reader.h"

/* Number of tiles (tiles.h) of the kinds before this one. */
size_t state_tiles(const struct state_chunk *, int kind);
/* Collects the names of latencies; codes and first_aside must be set. */
void state_names_init(struct state_chunk *);
void state_names_fini(struct state_chunk *);
enum { STATE_NO_NAME = UINT32_MAX };
/* Adds the latencies first … end - 1 of the chunk. name_of: index in `out` by name, or STATE_NO_NAME. */
void state_chunk_measure(const struct state_chunk *, int kind, size_t first, size_t end, const uint32_t *name_of,
    struct state_measure *out);

#endif
