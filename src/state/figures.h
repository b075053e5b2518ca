/* Private to state: latencies by name, and their tiles. */
#ifndef WEFT_STATE_FIGURES_H
#define WEFT_STATE_FIGURES_H

#include "state/reader.h"

/* Tiles (tiles.h) of the kinds before this one. */
size_t state_tiles(const struct state_store *, int kind);
/* The names of latencies, once codes and first_aside are there. */
void state_names_init(struct state_store *);
void state_names_fini(struct state_store *);

#endif
