/* SPDX-License-Identifier: MIT */
/* Sorting, quantiles, robust centre and spread. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "span/stat_bits.h"
#include "span/statistics.h"

enum { DIGIT_BITS = 11, DIGITS = 6, FEW = 64 };

static int by_number(const void *a, const void *b)
{
    return order_of(*(const double *)a, *(const double *)b);
}

static void sort_digit(const uint64_t *from, uint64_t *to, size_t n, size_t *count, unsigned shift)
{
    size_t at = 0;
    for (size_t d = 0; d < 1 << DIGIT_BITS; d++) {
        size_t here = count[d];
        count[d] = at;
        at += here;
    }
    for (size_t i = 0; i < n; i++)
        to[count[from[i] >> shift & ((1 << DIGIT_BITS) - 1)]++] = from[i];
}

void stat_sort(double *v, size_t n)
{
    if (n <= FEW) {
        if (n)
            qsort(v, n, sizeof *v, by_number);
        return;
    }
    static const size_t digits = 1 << DIGIT_BITS;
    uint64_t *from = mem_alloc(n * sizeof *from), *to = mem_alloc(n * sizeof *to);
    size_t *count = mem_zalloc(DIGITS * digits * sizeof *count);
    for (size_t i = 0; i < n; i++) {
        from[i] = stat_to_ordered(v[i]);
        for (unsigned d = 0; d < DIGITS; d++)
            count[d * digits + (from[i] >> d * DIGIT_BITS & (digits - 1))]++;
    }
    for (unsigned d = 0; d < DIGITS; d++) {
        if (count[d * digits + (from[0] >> d * DIGIT_BITS & (digits - 1))] == n)
            continue; /* digit is the same in all numbers */
        sort_digit(from, to, n, count + d * digits, d * DIGIT_BITS);
        uint64_t *other = from;
        from = to;
        to = other;
    }
    for (size_t i = 0; i < n; i++)
        v[i] = stat_from_ordered(from[i]);
    free(from);
    free(to);
    free(count);
}

double stat_quantile(const double *sorted, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t below = (size_t)at;
    if (below + 1 >= n)
        return sorted[n - 1];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

double stat_median(const double *v, size_t n)
{
    double *sorted = mem_alloc(n * sizeof *sorted);
    memcpy(sorted, v, n * sizeof *sorted);
    stat_sort(sorted, n);
    double median = stat_quantile(sorted, n, 0.5);
    free(sorted);
    return median;
}

struct stat_centre stat_centre(const double *v, size_t n)
{
    double *sorted = mem_alloc(n * sizeof *sorted);
    memcpy(sorted, v, n * sizeof *sorted);
    stat_sort(sorted, n);
    struct stat_centre c = {.median = stat_quantile(sorted, n, 0.5)};
    double quartiles = stat_quantile(sorted, n, 0.75) - stat_quantile(sorted, n, 0.25);
    for (size_t i = 0; i < n; i++)
        sorted[i] = fabs(sorted[i] - c.median);
    stat_sort(sorted, n);
    c.scale = 1.4826 * stat_quantile(sorted, n, 0.5);
    if (c.scale <= 0)
        c.scale = quartiles / 1.349;
    free(sorted);
    return c;
}
