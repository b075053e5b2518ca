/* SPDX-License-Identifier: MIT */
#include "state/pack.h"

/* Adds a group of `wide` bits, at most 56. Stores all pending bits; keeps those of the last byte if it is not full. */
static inline uint8_t *put_group(uint8_t *to, uint64_t *held, unsigned *bits, uint64_t group, unsigned wide)
{
    *held |= group << *bits;
    *bits += wide;
    memcpy(to, held, sizeof *held);
    to += *bits / 8;
    *held >>= *bits & ~7u;
    *bits &= 7;
    return to;
}

static inline uint64_t two(const int64_t *v, size_t stride, int64_t base, unsigned width)
{
    return ((uint64_t)v[0] - (uint64_t)base) | ((uint64_t)v[stride] - (uint64_t)base) << width;
}

/* Packs groups of `count` numbers, 1, 2 or 4, which is a constant when inlined. */
static inline __attribute__((always_inline)) void put(
    uint8_t *to, const int64_t *v, size_t stride, size_t n, int64_t base, unsigned width, unsigned count)
{
    uint64_t held = 0;
    unsigned bits = 0;
    for (; n >= count; n -= count, v += count * stride) {
        uint64_t group = count == 1 ? (uint64_t)*v - (uint64_t)base : two(v, stride, base, width);
        if (count == 4)
            group |= two(v + 2 * stride, stride, base, width) << 2 * width;
        to = put_group(to, &held, &bits, group, count * width);
    }
    for (; n; n--, v += stride)
        to = put_group(to, &held, &bits, (uint64_t)*v - (uint64_t)base, width);
}

void state_pack_put(uint8_t *to, const int64_t *v, size_t stride, size_t n, int64_t base, uint8_t width)
{
    if (width <= PACK_MOST_WIDTH / 4)
        put(to, v, stride, n, base, width, 4);
    else if (width <= PACK_MOST_WIDTH / 2)
        put(to, v, stride, n, base, width, 2);
    else if (width <= PACK_MOST_WIDTH)
        put(to, v, stride, n, base, width, 1);
    for (size_t i = 0; i < n && width > PACK_MOST_WIDTH; i++)
        memcpy(to + i * sizeof *v, &(uint64_t){(uint64_t)v[i * stride] - (uint64_t)base}, sizeof *v);
}

void state_pack_take(const uint8_t *from, size_t n, uint8_t width, int64_t base, int64_t *out)
{
    uint64_t mask = pack_mask(width);
    for (size_t i = 0, bit = 0; i < n; i++, bit += width) {
        uint64_t v;
        memcpy(&v, from + (bit >> 3), sizeof v);
        out[i] = (int64_t)((uint64_t)base + ((v >> (bit & 7)) & mask));
    }
}
