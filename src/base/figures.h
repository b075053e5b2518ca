/* SPDX-License-Identifier: MIT */
/* Figures of durations: number, sum, extremes and spread around the mean. */
#ifndef WEFT_BASE_FIGURES_H
#define WEFT_BASE_FIGURES_H

#include <stddef.h>
#include <stdint.h>

struct figures {
    uint64_t n;
    int64_t sum, least, most;            /* ns; 0 if n is 0 */
    int64_t least_begin, most_begin;     /* begin of one of the shortest, of the longest */
    double spread;                       /* sum of squared distances from the mean */
};
void figures_join(struct figures *, const struct figures *more);

/* The spread of two sets together, neither of them empty (Chan, Golub, LeVeque 1979: updating formulae). */
static inline double figures_spread(uint64_t n, int64_t sum, double spread, uint64_t m, int64_t other_sum, double other)
{
    double from = (double)other_sum / (double)m - (double)sum / (double)n;
    return spread + other + from * from * (double)n * ((double)m / (double)(n + m));
}

/* Sums of squared durations: exact, so the order of adding does not matter. */
__extension__ typedef unsigned __int128 figures_squares;
static inline figures_squares figures_square(int64_t duration)
{
    uint64_t ns = duration < 0 ? -(uint64_t)duration : (uint64_t)duration;
    return (figures_squares)ns * ns;
}
/* The spread of n durations, from their sum and that of their squares. */
double figures_exact_spread(uint64_t n, int64_t sum, figures_squares squares);

/* Sums wrap around: values of a damaged file must not cause undefined behaviour. */
static inline int64_t figures_sum(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

/* Ranges that durations are counted by: each `width` ns wide, from 0. For FIGURES_BY_RATIO: four per doubling from 4 ns
 * on, and one per ns below. FIGURES_RATIO_RANGES of them hold any duration. */
enum { FIGURES_BY_RATIO = 0, FIGURES_RATIO_RANGES = 248 };
/* Index of the range of a duration among n ranges: the first for negative durations, the last for those beyond the
 * end. */
size_t figures_range(int64_t duration, int64_t width, size_t n);

/* Ranges of durations that grow by a constant factor, eight per factor of ten: the i-th begins at 10^(i/8) ns; the last
 * one ends at INT64_MAX. */
enum { FIGURES_EIGHTHS = 8 * 19 - 1 };
int64_t figures_eighth(size_t i);
/* Index of the range that holds the duration; durations below 1 ns are in the first. */
size_t figures_eighth_of(int64_t duration);
/* Begin of range k, which is the end of the one before; INT64_MAX if it would exceed that. */
int64_t figures_range_begin(int64_t width, size_t k);

#endif
