#include "state/pack.h"

#include "state/format.h"

uint8_t pack_width(uint64_t v)
{
    uint8_t width = v ? (uint8_t)(64 - __builtin_clzll(v)) : 0;
    return width <= STATE_MOST_WIDTH ? width : 64;
}

/* `held` keeps up to 7 bits that no byte has yet, so that 56 more fit. */
void pack_put(uint8_t *to, const int64_t *v, size_t stride, size_t n, int64_t base, uint8_t width)
{
    uint64_t held = 0;
    unsigned bits = 0;
    if (width == 64) {
        for (size_t i = 0; i < n; i++) {
            uint64_t d = (uint64_t)v[i * stride] - (uint64_t)base;
            memcpy(to + i * 8, &d, sizeof d);
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        held |= ((uint64_t)v[i * stride] - (uint64_t)base) << bits;
        bits += width;
        memcpy(to, &held, sizeof held);
        to += bits >> 3;
        held >>= bits & ~7U;
        bits &= 7;
    }
    memcpy(to, &held, sizeof held);
}
