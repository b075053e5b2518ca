/* Private to stack: figures of calls by function in tiles of each row, as those of latencies (tiles.h): a tile of level
 * 0 is 256 calls of a row, one of the next level 16 tiles. */
#ifndef WEFT_STACK_TILES_H
#define WEFT_STACK_TILES_H

#include "stack/format.h"
#include "state/tiles.h"

/* Rows in order; of each its levels, finest first. */
struct stack_tiles {
    VEC(uint64_t) first;     /* by tile: where its figures begin; one more at the end */
    VEC(struct stack_disk_figures) figures;
    VEC(uint64_t) whole;     /* by tile of level 0: WHOLE calls of the row before it */
};
/* Of all that the store holds but tiles. */
void stack_tiles_make(struct stack_tiles *, const struct stack_store *);
void stack_tiles_fini(struct stack_tiles *);
/* What the row's calls that begin within [begin, end) took; *at: the first of them that may, left for the next call of
 * the row above. */
int64_t stack_time_within(const struct stack_store *, size_t row, int64_t begin, int64_t end, size_t *at);
/* How many tiles, of all levels, a row with so many calls has. */
static inline uint64_t stack_tiles_of(uint64_t calls)
{
    uint64_t n = 0;
    for (int level = 0; level < tile_levels(calls); level++)
        n += tile_count(calls, level);
    return n;
}

#endif
