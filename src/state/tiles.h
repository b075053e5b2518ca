/* Private to state: figures of latencies by name in tiles, so that those of any range are some whole tiles and two ends. A tile of level 0 is 256
 * latencies of a kind's columns, one of the next level 16 tiles. */
#ifndef WEFT_STATE_TILES_H
#define WEFT_STATE_TILES_H

#include "state/series.h"

enum { TILE_LATENCIES = 256, TILE_FAN = 16, TILE_LEVELS = 6 };
_Static_assert(TILE_LATENCIES % STATE_BLOCK == 0, "a tile is whole blocks");

/* Latencies that a tile of this level covers; the last tile of a level may cover fewer. */
static inline uint64_t tile_size(int level)
{
    uint64_t n = TILE_LATENCIES;
    while (level-- > 0)
        n *= TILE_FAN;
    return n;
}
static inline uint64_t tile_count(uint64_t latencies, int level) { return latencies / tile_size(level) + (latencies % tile_size(level) > 0); }
/* Levels of a kind with so many latencies: up to one of a single tile, at most TILE_LEVELS. */
static inline int tile_levels(uint64_t latencies)
{
    int levels = latencies > 0;
    while (levels && levels < TILE_LEVELS && tile_count(latencies, levels - 1) > 1)
        levels++;
    return levels;
}

/* Kinds in order; in each its levels, finest first. tiles: where the figures of each tile begin, and one more: where the last ones end. */
struct tiles {
    VEC(uint64_t) first;
    VEC(struct state_disk_figures) figures;
};
/* Adds a kind. n_codes: all its codes are below. */
void tiles_add(struct tiles *, const struct latencies *, size_t n_codes);
void tiles_finish(struct tiles *);
void tiles_fini(struct tiles *);

/* Figures of two sets of latencies with so many, such sums, and squared distances from their means of such sums, joined: the sum of squared distances
 * from the mean of all (Chan, Golub, LeVeque 1979: updating formulae). */
static inline double tile_spread(uint64_t n, int64_t sum, double spread, uint64_t m, int64_t other_sum, double other)
{
    double from = (double)other_sum / (double)m - (double)sum / (double)n;
    return spread + other + from * from * (double)n * ((double)m / (double)(n + m));
}

#endif
