/* SPDX-License-Identifier: MIT */
/* Private to state: numbers of equal width, bit after bit. */
#ifndef WEFT_STATE_PACK_H
#define WEFT_STATE_PACK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { PACK_MOST_WIDTH = 56 }; /* limit; wider numbers take 64 bits, so 8 bytes hold any */
/* Width that holds v: 0 … 56, or 64. */
static inline uint8_t pack_width(uint64_t v)
{
    uint8_t width = v ? (uint8_t)(64 - __builtin_clzll(v)) : 0;
    return width <= PACK_MOST_WIDTH ? width : 64;
}
/* Bytes that n numbers take. */
static inline size_t pack_bytes(size_t n, uint8_t width) { return (n * width + 7) / 8; }
/* Writes the n numbers v[i * stride] - base. `to` has room for pack_bytes and 8 bytes more. */
void state_pack_put(uint8_t *to, const int64_t *v, size_t stride, size_t n, int64_t base, uint8_t width);
/* The bits of a number. */
static inline uint64_t pack_mask(uint8_t width) { return width < 64 ? (UINT64_C(1) << width) - 1 : UINT64_MAX; }
/* Number i. Reads up to 8 bytes beyond the numbers' end. */
static inline uint64_t pack_get(const uint8_t *from, size_t i, uint8_t width)
{
    size_t bit = i * width;
    uint64_t v;
    memcpy(&v, from + (bit >> 3), sizeof v);
    return v >> (bit & 7) & pack_mask(width);
}
/* Reads n numbers, added to base. Reads as far as pack_get. */
void state_pack_take(const uint8_t *from, size_t n, uint8_t width, int64_t base, int64_t *out);

#endif
