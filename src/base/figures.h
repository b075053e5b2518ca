/* SPDX-License-Identifier: MIT */
/* Figures of durations: how many there are, their sum, the extremes and the spread around the mean. */
#ifndef WEFT_BASE_FIGURES_H
#define WEFT_BASE_FIGURES_H

#include <stddef.h>
#include <stdint.h>

struct figures {
    uint64_t n;
    int64_t sum, least, most;            /* ns; 0 when n is */
    int64_t least_begin, most_begin;     /* when one of the shortest, of the longest began */
    double spread;                       /* sum of squared distances from the mean */
};
void figures_join(struct figures *, const struct figures *more);

/* The spread of two sets together, neither of them empty (Chan, Golub, LeVeque 1979: updating formulae). */
static inline double figures_spread(uint64_t n, int64_t sum, double spread, uint64_t m, int64_t other_sum, double other)
{
    double from = (double)other_sum / (double)m - (double)sum / (double)n;
    return spread + other + from * from * (double)n * ((double)m / (double)(n + m));
}

/* Sums of squared durations, exact, so that it does not matter in which order they are added. */
__extension__ typedef unsigned __int128 figures_squares;
static inline figures_squares figures_square(int64_t duration)
{
    uint64_t ns = duration < 0 ? -(uint64_t)duration : (uint64_t)duration;
    return (figures_squares)ns * ns;
}
/* The spread of n durations, from their sum and that of their squares. */
double figures_exact_spread(uint64_t n, int64_t sum, figures_squares squares);

/* Sums wrap around: what a damaged file says is no reason for undefined behaviour. */
static inline int64_t figures_sum(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

/* Ranges that durations are counted by: of `width` ns each, from 0; or, for FIGURES_BY_RATIO, four for each doubling,
 * from 4 ns on (below that one for each ns), which holds any duration in FIGURES_RATIO_RANGES. */
enum { FIGURES_BY_RATIO = 0, FIGURES_RATIO_RANGES = 248 };
/* Which of n ranges a duration is in: negative ones in the first, those beyond the last in that. */
size_t figures_range(int64_t duration, int64_t width, size_t n);

/* Ranges of durations that each are longer than the one before by one factor, eight to ten times as long: the i-th
 * begins at 10^(i/8) ns; the last one ends where time does. */
enum { FIGURES_EIGHTHS = 8 * 19 - 1 };
int64_t figures_eighth(size_t i);
/* The one that holds it; durations below 1 ns are in the first. */
size_t figures_eighth_of(int64_t duration);
/* Where range k begins, which is where the one before it ends; INT64_MAX beyond what that can say. */
int64_t figures_range_begin(int64_t width, size_t k);

#endif
