/* SPDX-License-Identifier: MIT */
/* Conversion of numbers to bits with the same order, and back. */
#ifndef WEFT_SPAN_STAT_BITS_H
#define WEFT_SPAN_STAT_BITS_H

#include <stdint.h>
#include <string.h>

static inline uint64_t stat_to_ordered(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}
static inline double stat_from_ordered(uint64_t bits)
{
    double x;
    bits = bits >> 63 ? bits & ~(UINT64_C(1) << 63) : ~bits;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
