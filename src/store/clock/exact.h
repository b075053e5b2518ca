/* SPDX-License-Identifier: MIT */
/* Exact arithmetic on times: 128-bit integers and slopes in fixed point with 62 fractional bits (Q62).
 * Limits that keep every product below 2^127: times within +-2^62 ns of the epoch, the messages of a pair within 2^58
 * ns (9 years) of its first one, slopes (drift - 1) within +-15/8. */
#ifndef WEFT_CLOCK_EXACT_H
#define WEFT_CLOCK_EXACT_H

#include <stdint.h>

__extension__ typedef __int128 i128;
__extension__ typedef unsigned __int128 u128;

#define Q62 ((i128)1 << 62)
#define CLOCK_TIME_LIMIT ((int64_t)1 << 62)
#define CLOCK_SPAN_LIMIT ((int64_t)1 << 58)
#define CLOCK_SLOPE_LIMIT ((int64_t)(Q62 * 15 / 8))

static inline int64_t sat64(i128 v)
{
    return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

static inline int64_t clamp64(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* d > 0 */
static inline i128 floor_div(i128 n, i128 d)
{
    i128 q = n / d;
    return n % d < 0 ? q - 1 : q;
}

static inline i128 ceil_div(i128 n, i128 d)
{
    return -floor_div(-n, d);
}

/* floor(slope * x), |x| < 2^64. A shift of a negative number rounds down with every compiler that has 128 bits. */
static inline i128 slope_times(int64_t slope_q62, i128 x)
{
    return slope_q62 * x >> 62;
}

/* rise / run as Q62, rounded down or up and clamped to the limit; |rise| <= 2^64, run > 0 */
static inline int64_t slope_floor(i128 rise, i128 run)
{
    i128 q = floor_div(rise * Q62, run);
    return q < -CLOCK_SLOPE_LIMIT ? -CLOCK_SLOPE_LIMIT : q > CLOCK_SLOPE_LIMIT ? CLOCK_SLOPE_LIMIT : (int64_t)q;
}

static inline int64_t slope_ceil(i128 rise, i128 run)
{
    i128 q = ceil_div(rise * Q62, run);
    return q < -CLOCK_SLOPE_LIMIT ? -CLOCK_SLOPE_LIMIT : q > CLOCK_SLOPE_LIMIT ? CLOCK_SLOPE_LIMIT : (int64_t)q;
}

static inline int64_t slope_from(long double v)
{
    long double q = v * (long double)Q62;
    return q > (long double)CLOCK_SLOPE_LIMIT ? CLOCK_SLOPE_LIMIT
         : q < -(long double)CLOCK_SLOPE_LIMIT ? -CLOCK_SLOPE_LIMIT : (int64_t)q;
}

static inline long double slope_value(int64_t slope_q62)
{
    return (long double)slope_q62 / (long double)Q62;
}

#endif
