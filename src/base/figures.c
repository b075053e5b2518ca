/* SPDX-License-Identifier: MIT */
#include "base/figures.h"

#include <math.h>

void figures_join(struct figures *to, const struct figures *f)
{
    if (!f->n)
        return;
    if (!to->n || f->least < to->least) {
        to->least = f->least;
        to->least_begin = f->least_begin;
    }
    if (!to->n || f->most > to->most) {
        to->most = f->most;
        to->most_begin = f->most_begin;
    }
    to->spread = to->n ? figures_spread(to->n, to->sum, to->spread, f->n, f->sum, f->spread) : f->spread;
    to->n += f->n;
    to->sum = figures_sum(to->sum, f->sum);
}

double figures_exact_spread(uint64_t n, int64_t sum, figures_squares squares)
{
    if (!n)
        return 0;
    figures_squares square = figures_square(sum), least = square / n;
    double spread = squares > least ? (double)(squares - least) - (double)(square % n) / (double)n : 0;
    return spread > 0 ? spread : 0;
}

enum { RATIO_BITS = 2 }; /* bits of a duration, after its first, that select the range within a doubling */

static uint64_t range_by_ratio(uint64_t duration)
{
    if (!(duration >> RATIO_BITS))
        return duration;
    int bits = 63 - __builtin_clzll(duration), below = bits - RATIO_BITS;
    return ((uint64_t)below << RATIO_BITS) + (duration >> below);
}

size_t figures_range(int64_t duration, int64_t width, size_t n)
{
    if (duration < 0)
        return 0;
    uint64_t k = width <= FIGURES_BY_RATIO ? range_by_ratio((uint64_t)duration) : (uint64_t)duration / (uint64_t)width;
    return k < n ? k : n - 1;
}

int64_t figures_range_begin(int64_t width, size_t k)
{
    if (width > FIGURES_BY_RATIO)
        return k <= (uint64_t)INT64_MAX / (uint64_t)width ? width * (int64_t)k : INT64_MAX;
    if (!(k >> RATIO_BITS))
        return (int64_t)k;
    size_t below = (k >> RATIO_BITS) - 1;
    return k < FIGURES_RATIO_RANGES ? (int64_t)((((uint64_t)1 << RATIO_BITS) + (k & 3)) << below) : INT64_MAX;
}

int64_t figures_eighth(size_t i)
{
    return i < FIGURES_EIGHTHS ? llround(pow(10, (double)i / 8)) : INT64_MAX;
}

size_t figures_eighth_of(int64_t duration)
{
    const size_t last = FIGURES_EIGHTHS - 1;
    size_t i = duration < 1 ? 0 : (size_t)(log10((double)duration) * 8);
    i = i < last ? i : last;
    while (i > 0 && duration < figures_eighth(i))
        i--;
    while (i < last && duration >= figures_eighth(i + 1))
        i++;
    return i;
}
