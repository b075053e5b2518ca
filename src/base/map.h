/* SPDX-License-Identifier: MIT */
/* Open-addressing hash map from 64-bit keys to 64-bit values, and interned strings. */
#ifndef WEFT_BASE_MAP_H
#define WEFT_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct map { uint64_t *keys, *values; uint8_t *used; size_t n, cap; }; /* zero-initialise */
/* Value of key, or NULL. Valid until the next insertion. */
uint64_t *map_find(const struct map *, uint64_t key);
/* Value of key, inserted as 0 when absent (then *fresh is true; may be NULL). */
uint64_t *map_put(struct map *, uint64_t key, bool *fresh);
bool map_remove(struct map *, uint64_t key);
void map_fini(struct map *);
uint64_t map_hash(const void *data, size_t n);   /* 64 bits, well mixed, the same on every machine */
uint64_t map_mix(uint64_t x);
/* 128 bits over several pieces; where the pieces are cut matters. */
struct map_piece { const void *data; size_t n; };
void map_hash_pieces(const struct map_piece *, size_t count, uint64_t out[2]);

/* Strings by number; number 0 is "". */
struct strings { struct arena arena; const char **v; size_t n, cap; struct map by_hash; }; /* zero-initialise */
uint32_t strings_intern(struct strings *, const char *s, size_t n);
static inline const char *strings_get(const struct strings *s, uint32_t i) { return i < s->n ? s->v[i] : ""; }
void strings_fini(struct strings *);

#endif
