/* SPDX-License-Identifier: MIT */
/* Random numbers and bootstrap. */
#include <math.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "span/statistics.h"

enum { DRAWS = 2000 };

double stat_uniform(struct stat_dice *d)
{
    d->state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    return ((double)(map_mix(d->state) >> 11) + 0.5) * 0x1p-53;
}

double stat_normal(struct stat_dice *d)
{
    double radius = sqrt(-2 * log(stat_uniform(d))); /* Box & Muller 1958 */
    return radius * cos(2 * M_PI * stat_uniform(d));
}

/* Draws a gamma variate of a shape of 1 or more (Marsaglia & Tsang 2000). */
static double draw_gamma(struct stat_dice *dice, double shape)
{
    double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = stat_normal(dice), v = 1 + c * x;
        v *= v * v;
        if (v > 0 && log(stat_uniform(dice)) < 0.5 * x * x + d - d * v + d * log(v))
            return d * v;
    }
}

/* Draws quantile q of n numbers, drawn from the n given with replacement. */
static double draw_quantile(struct stat_dice *dice, const double *sorted, size_t n, double q)
{
    double at = q * (double)(n - 1), rank = floor(at) + 1, above = (double)n + 1 - rank;
    double x = draw_gamma(dice, rank), y = draw_gamma(dice, above);
    double u = x / (x + y); /* rank-th smallest of n uniform numbers, and the next one */
    double low = sorted[(size_t)(u * (double)n)];
    if (rank >= (double)n)
        return low;
    u += (1 - u) * (1 - pow(stat_uniform(dice), 1 / ((double)n - rank)));
    size_t next = (size_t)(u * (double)n);
    return low + (at + 1 - rank) * (sorted[next < n ? next : n - 1] - low);
}

struct stat_shift stat_bootstrap(const double *a, size_t n, const double *b, size_t m, double q, struct stat_dice *dice)
{
    double *drawn = mem_alloc(DRAWS * sizeof *drawn);
    for (size_t i = 0; i < DRAWS; i++)
        drawn[i] = draw_quantile(dice, b, m, q) - draw_quantile(dice, a, n, q);
    stat_sort(drawn, DRAWS);
    struct stat_shift s = {.shift = stat_quantile(b, m, q) - stat_quantile(a, n, q),
        .low = stat_quantile(drawn, DRAWS, 0.025),
        .high = stat_quantile(drawn, DRAWS, 0.975)};
    free(drawn);
    return s;
}
