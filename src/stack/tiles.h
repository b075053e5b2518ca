/* Private to stack: figures of calls by function, in tiles (base/tiles.h) over the calls of each row. */
#ifndef WEFT_STACK_TILES_H
#define WEFT_STACK_TILES_H

#include "base/mem.h"
#include "base/tiles.h"
#include "stack/format.h"

/* Rows in order; of each its levels, finest first. */
struct stack_tiles {
    VEC(uint64_t) first;     /* by tile: where its figures begin; one more at the end */
    VEC(struct stack_disk_figures) figures;
    VEC(uint64_t) whole;     /* by tile of level 0: WHOLE calls of the row before it */
};
/* From a store that holds everything but the tiles. */
void stack_tiles_make(struct stack_tiles *, const struct stack_store *);
void stack_tiles_fini(struct stack_tiles *);
/* What the row's calls that begin within [begin, end) took; *at: the first of them that may, left for the next call of
 * the row above. */
int64_t stack_time_within(const struct stack_store *, size_t row, int64_t begin, int64_t end, size_t *at);
#endif
