#include "state/pack.h"

#include "state/format.h"

uint8_t pack_width(uint64_t v)
{
    uint8_t width = v ? (uint8_t)(64 - __builtin_clzll(v)) : 0;
    return width <= STATE_MOST_WIDTH ? width : 64;
}

/* Four numbers at a time, of at most 16 bits each: one word of them is held or begins. */
static size_t put_fours(
    uint8_t **to, uint64_t *held, unsigned *bits, const int64_t *v, size_t stride, size_t n, int64_t base, unsigned width)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4, v += 4 * stride) {
        uint64_t d = ((uint64_t)v[0] - (uint64_t)base) | ((uint64_t)v[stride] - (uint64_t)base) << width |
            ((uint64_t)v[2 * stride] - (uint64_t)base) << 2 * width | ((uint64_t)v[3 * stride] - (uint64_t)base) << 3 * width;
        *held |= d << *bits;
        *bits += 4 * width;
        if (*bits >= 64) {
            memcpy(*to, held, sizeof *held);
            *to += sizeof *held;
            *bits -= 64;
            *held = *bits ? d >> (4 * width - *bits) : 0;
        }
    }
    return i;
}

/* `held` collects 64 bits before they are written, so that a number waits for the one before only where it is added. */
void pack_put(uint8_t *to, const int64_t *v, size_t stride, size_t n, int64_t base, uint8_t width)
{
    uint64_t held = 0;
    unsigned bits = 0;
    for (size_t i = width <= 16 ? put_fours(&to, &held, &bits, v, stride, n, base, width) : 0; i < n && width; i++) {
        uint64_t d = (uint64_t)v[i * stride] - (uint64_t)base;
        held |= d << bits;
        bits += width;
        if (bits >= 64) {
            memcpy(to, &held, sizeof held);
            to += sizeof held;
            bits -= 64;
            held = bits ? d >> (width - bits) : 0;
        }
    }
    memcpy(to, &held, sizeof held);
}

void pack_take(const uint8_t *from, size_t n, uint8_t width, int64_t base, int64_t *out)
{
    uint64_t mask = pack_mask(width);
    for (size_t i = 0, bit = 0; i < n; i++, bit += width) {
        uint64_t v;
        memcpy(&v, from + (bit >> 3), sizeof v);
        out[i] = (int64_t)((uint64_t)base + ((v >> (bit & 7)) & mask));
    }
}
