/* SPDX-License-Identifier: MIT */
/* Private to stack: figures of calls by function, in tiles (base/tiles.h) over the calls of each row. */
#ifndef WEFT_STACK_TILES_H
#define WEFT_STACK_TILES_H

#include "base/mem.h"
#include "base/search.h"
#include "base/tiles.h"
#include "stack/format.h"

/* Tiles of all rows in order; of each row its levels, finest first. */
struct stack_tiles {
    VEC(uint64_t) first;     /* by tile: begin of its figures; one extra at the end */
    VEC(struct stack_disk_figures) figures;
    VEC(uint64_t) whole;     /* by tile of level 0: WHOLE calls of the row before it */
};
/* Makes the tiles of a chunk that holds everything else. */
void stack_tiles_make(struct stack_tiles *, const struct stack_chunk *);
void stack_tiles_fini(struct stack_tiles *);
static inline figures_squares stack_squares(const struct stack_disk_figures *f)
{
    return (figures_squares)f->squares[1] << 64 | f->squares[0];
}
static inline struct stack_call stack_row_call(const struct stack_chunk *s, uint64_t row, uint64_t i)
{
    return stack_call_of(s, &s->calls[s->rows[row].first_call + i]);
}
/* Returns how many calls of the row begin before t. */
static inline size_t stack_row_begun(const struct stack_chunk *s, size_t row, int64_t t)
{
    const struct stack_disk_call *calls = s->calls + s->rows[row].first_call;
    return search_first(i, 0, s->rows[row].calls, calls[i].begin >= t);
}
/* Returns the time of the row's calls that begin within [begin, end). *at: the first candidate, left for the next call
 * of the row above. */
int64_t stack_time_within(const struct stack_chunk *, size_t row, int64_t begin, int64_t end, size_t *at);
/* Returns the time of call i of the row without the calls one level below; *below: as stack_time_within leaves it. */
int64_t stack_self(const struct stack_chunk *, size_t row, uint64_t i, const struct stack_call *, size_t *below);

#endif
