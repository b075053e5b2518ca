/* Private to state: figures of latencies by name in tiles, so that those of any range are some whole tiles and two
 * ends. A tile of level 0 is 512 latencies of a kind's table, one of the next level 8 tiles. */
#ifndef WEFT_STATE_TILES_H
#define WEFT_STATE_TILES_H

#include "base/mem.h"
#include "state/format.h"

enum { TILE_LATENCIES = 512, TILE_FAN = 8, TILE_LEVELS = 8 };
_Static_assert(TILE_LATENCIES % STATE_BLOCK == 0, "a tile is whole blocks");

/* Latencies that a tile of this level covers; the last tile of a level may cover fewer. */
static inline uint64_t tile_size(int level)
{
    uint64_t n = TILE_LATENCIES;
    while (level-- > 0)
        n *= TILE_FAN;
    return n;
}
static inline uint64_t tile_count(uint64_t latencies,
    int level) { return latencies / tile_size(level) + (latencies % tile_size(level) > 0); }
/* Levels of a kind with so many latencies: up to one of a single tile, at most TILE_LEVELS. */
static inline int tile_levels(uint64_t latencies)
{
    int levels = latencies > 0;
    while (levels && levels < TILE_LEVELS && tile_count(latencies, levels - 1) > 1)
        levels++;
    return levels;
}

/* Tiles as the file has them: where the figures of each begin. */
struct tile_list {
    VEC(uint64_t) first;
    VEC(struct state_disk_figures) figures;
};
void tile_list_fini(struct tile_list *);

/* A tile while it is made: figures by name in order of first use. */
struct tile_making {
    uint64_t latencies;
    VEC(struct state_disk_figures) figures;
    VEC(uint32_t) place_of; /* by code: 1 + place in figures; 0: none yet */
};
/* The tiles of a kind while its latencies become known: of each level those that are complete, and the next. */
struct tiles {
    uint64_t n;
    int64_t durations[TILE_LATENCIES], codes[TILE_LATENCIES]; /* of the next tile of level 0 */
    struct tile_level {
        struct tile_list complete;
        struct tile_making next;
    } levels[TILE_LEVELS];
};
/* Adds n latencies; they do not reach beyond a tile of level 0. */
void tiles_add(struct tiles *, const int64_t *durations, const int64_t *codes, size_t n);
/* There are no more: the last tile of each level, which is not full, is complete. */
void tiles_end(struct tiles *);
/* Appends them to a list that has those of the kinds before: levels in order, finest first. */
void tiles_list(const struct tiles *, struct tile_list *);
void tiles_fini(struct tiles *);

/* Figures of two sets of latencies with so many, such sums, and squared distances from their means of such sums,
 * joined: the sum of squared distances from the mean of all (Chan, Golub, LeVeque 1979: updating formulae). */
static inline double tile_spread(uint64_t n, int64_t sum, double spread, uint64_t m, int64_t other_sum, double other)
{
    double from = (double)other_sum / (double)m - (double)sum / (double)n;
    return spread + other + from * from * (double)n * ((double)m / (double)(n + m));
}

#endif
