/* SPDX-License-Identifier: MIT */
/* Private to state: figures of latencies by name, in tiles (base/tiles.h) over the latencies of a kind's table. */
#ifndef WEFT_STATE_TILES_H
#define WEFT_STATE_TILES_H

#include "base/mem.h"
#include "base/tiles.h"
#include "state/format.h"
#include "state/measure.h"

_Static_assert(TILE_ITEMS % STATE_BLOCK == 0, "a tile is whole blocks");

/* Tiles of the file: begin of the figures of each. */
struct tile_list {
    VEC(uint64_t) first;
    VEC(struct state_disk_figures) figures;
};
void state_tile_list_fini(struct tile_list *);

/* Tile in progress: figures by name in order of first use. */
struct tile_next {
    uint64_t latencies;
    VEC(struct state_disk_figures) figures;
    VEC(uint32_t) index_of; /* 1 + index in figures by code; 0: none yet */
};
static inline state_wide tile_squares(const struct state_disk_figures *f)
{
    return (state_wide)f->squares[1] << 64 | f->squares[0];
}
static inline void tile_add_squares(struct state_disk_figures *f, state_wide squares)
{
    squares += tile_squares(f);
    f->squares[0] = (uint64_t)squares;
    f->squares[1] = (uint64_t)(squares >> 64);
}

/* First use of a code. */
struct tile_first { uint64_t at; uint32_t code; };
/* Tiles of a kind while its latencies become known: per level the complete ones, and the next. */
struct tiles {
    uint64_t n;
    int64_t durations[TILE_ITEMS], codes[TILE_ITEMS]; /* values of the next tile of level 0 */
    VEC(struct tile_first) firsts;                    /* first uses in order */
    VEC(bool) met;                                    /* flags by code */
    struct tile_level {
        struct tile_list complete;
        struct tile_next next;
    } levels[TILE_LEVELS];
};
/* Adds n latencies; they do not reach beyond a tile of level 0. */
void state_tiles_add(struct tiles *, const int64_t *durations, const int64_t *codes, size_t n);
/* Completes the last tile of each level, which is not full. */
void state_tiles_end(struct tiles *);
/* Appends them to a list that has those of the kinds before: levels in order, finest first. */
void state_tiles_list(const struct tiles *, struct tile_list *);
void state_tiles_fini(struct tiles *);

#endif
