/* SPDX-License-Identifier: MIT */
/* Tiles over consecutive items: sums per tile answer for any range of items, as some whole tiles and single items at
 * both ends. A tile of level 0 is 512 items; one of the next level is 8 tiles. Stores have their tiles by level, the
 * finest first, so the numbers below are part of the formats. */
#ifndef WEFT_BASE_TILES_H
#define WEFT_BASE_TILES_H

#include <stdint.h>

enum { TILE_ITEMS = 512, TILE_FAN = 8, TILE_LEVELS = 8 };

/* Number of items of a tile of this level; the last tile of a level may have fewer. */
static inline uint64_t tile_size(int level)
{
    uint64_t n = TILE_ITEMS;
    while (level-- > 0)
        n *= TILE_FAN;
    return n;
}
static inline uint64_t tile_count(uint64_t items, int level)
{
    return items / tile_size(level) + (items % tile_size(level) > 0);
}
/* Number of levels over so many items: up to the level with a single tile, at most TILE_LEVELS. */
static inline int tile_levels(uint64_t items)
{
    int levels = items > 0;
    while (levels && levels < TILE_LEVELS && tile_count(items, levels - 1) > 1)
        levels++;
    return levels;
}
/* Number of tiles of all levels. */
static inline uint64_t tile_total(uint64_t items)
{
    uint64_t n = 0;
    for (int level = 0; level < tile_levels(items); level++)
        n += tile_count(items, level);
    return n;
}

/* Items and their tiles, for reading. */
struct tile_set {
    uint64_t n;                  /* items */
    int levels;
    uint64_t first[TILE_LEVELS]; /* the first tile of each level */
};
/* first: the first of their tiles. */
static inline struct tile_set tile_set(uint64_t items, uint64_t first)
{
    struct tile_set t = {.n = items, .levels = tile_levels(items)};
    for (int level = 0; level < t.levels; first += tile_count(items, level), level++)
        t.first[level] = first;
    return t;
}

/* Part of a range: a whole tile, or (level -1) some items. */
struct tile_piece {
    int level;
    uint64_t first, end;
    uint64_t tile;               /* index of the tile; 0 for level -1 */
};
/* Piece that begins at item i and ends at or before `end`, using tiles of levels below `below` only. Single items do
 * not reach beyond the next multiple of `most`. */
static inline struct tile_piece tile_piece(const struct tile_set *t, uint64_t i, uint64_t end, int below, uint64_t most)
{
    for (int level = (below < t->levels ? below : t->levels) - 1; level >= 0; level--) {
        uint64_t size = tile_size(level), last = t->n - i < size ? t->n : i + size;
        if (i % size == 0 && last <= end)
            return (struct tile_piece){level, i, last, t->first[level] + i / size};
    }
    uint64_t last = i - i % most + most;
    return (struct tile_piece){-1, i, last < end ? last : end, 0};
}

#endif
