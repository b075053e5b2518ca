/* SPDX-License-Identifier: MIT */
/* Comparison of two samples: which numbers are larger, and by how much. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "span/stat_bits.h"
#include "span/statistics.h"

enum { EXACT_MOST = 50 }; /* size of both samples together, up to which all deals of ranks are counted */

static double *sorted_copy(const double *v, size_t n)
{
    double *copy = mem_alloc(n * sizeof *copy);
    memcpy(copy, v, n * sizeof *copy);
    stat_sort(copy, n);
    return copy;
}

/* ---- Mann & Whitney ---- */

/* Tie: numbers of equal values in both samples, smallest value first. */
struct tie {
    size_t of_a, of_b;
};

static size_t find_ties(const double *a, size_t n, const double *b, size_t m, struct tie *out)
{
    size_t i = 0, j = 0, ties = 0;
    while (i < n || j < m) {
        double x = i == n ? b[j] : j == m || a[i] < b[j] ? a[i] : b[j];
        struct tie t = {0, 0};
        for (; i < n && a[i] <= x; i++)
            t.of_a++;
        for (; j < m && b[j] <= x; j++)
            t.of_b++;
        out[ties++] = t;
    }
    return ties;
}

/* Counts the ways in which m ranks have each sum (Streitberg & Röhmel 1986). Ranks are doubled mean ranks, so that they
 * are integers. `ways` has (m + 1) * (most + 1) zeros. */
static void count_deals(const struct tie *ties, size_t n_ties, size_t m, size_t most, double *ways)
{
    size_t width = most + 1, below = 0;
    ways[0] = 1;
    for (size_t t = 0; t < n_ties; t++) {
        size_t size = ties[t].of_a + ties[t].of_b, rank = 2 * below + size + 1;
        for (size_t k = 0; k < size; k++)
            for (size_t chosen = m; chosen-- > 0;)
                for (size_t sum = most + 1 - rank; sum-- > 0;)
                    ways[(chosen + 1) * width + sum + rank] += ways[chosen * width + sum];
        below += size;
    }
}

static double exact_p(const struct tie *ties, size_t n_ties, size_t n, size_t m, double u)
{
    size_t all = n + m, most = all * (all + 1);
    size_t seen = (size_t)(2 * u + 0.5) + m * (m + 1); /* twice the sum of the ranks of b */
    double *ways = mem_zalloc((m + 1) * (most + 1) * sizeof *ways), low = 0, high = 0, total = 0;
    count_deals(ties, n_ties, m, most, ways);
    for (size_t sum = 0; sum <= most; sum++) {
        double here = ways[m * (most + 1) + sum];
        total += here;
        low += sum <= seen ? here : 0;
        high += sum >= seen ? here : 0;
    }
    free(ways);
    double p = 2 * (low < high ? low : high) / total;
    return p < 1 ? p : 1;
}

static double normal_p(const struct tie *ties, size_t n_ties, size_t n, size_t m, double u)
{
    double pairs = (double)n * (double)m, all = (double)(n + m), tied = 0;
    for (size_t t = 0; t < n_ties; t++) {
        double size = (double)(ties[t].of_a + ties[t].of_b);
        tied += size * (size * size - 1);
    }
    double variance = pairs / 12 * (all + 1 - tied / (all * (all - 1)));
    double far = fabs(u - pairs / 2) - 0.5;
    if (variance <= 0 || far <= 0)
        return 1;
    return 2 * stat_normal_tail(far / sqrt(variance));
}

struct stat_ranks stat_mann_whitney(const double *a, size_t n, const double *b, size_t m)
{
    struct stat_ranks r = {.exact = n + m <= EXACT_MOST};
    double *x = sorted_copy(a, n), *y = sorted_copy(b, m);
    struct tie *ties = mem_alloc((n + m) * sizeof *ties);
    size_t n_ties = find_ties(x, n, y, m, ties), below = 0;
    for (size_t t = 0; t < n_ties; t++) {
        r.u += (double)ties[t].of_b * ((double)below + (double)ties[t].of_a / 2);
        below += ties[t].of_a;
    }
    r.larger = r.u / ((double)n * (double)m);
    r.p = (r.exact ? exact_p : normal_p)(ties, n_ties, n, m, r.u);
    free(ties);
    free(x);
    free(y);
    return r;
}

/* ---- Hodges & Lehmann ---- */

/* Counts the differences b[j] - a[i] that are at most x. */
static uint64_t count_differences(const double *a, size_t n, const double *b, size_t m, double x)
{
    uint64_t count = 0;
    size_t j = 0;
    for (size_t i = 0; i < n; i++) {
        while (j < m && b[j] - a[i] <= x)
            j++;
        count += j;
    }
    return count;
}

/* Returns the difference of a rank (1: the smallest). */
static double difference(const double *a, size_t n, const double *b, size_t m, uint64_t rank)
{
    uint64_t low = stat_to_ordered(b[0] - a[n - 1]), high = stat_to_ordered(b[m - 1] - a[0]);
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (count_differences(a, n, b, m, stat_from_ordered(middle)) >= rank)
            high = middle;
        else
            low = middle + 1;
    }
    return stat_from_ordered(low);
}

struct stat_shift stat_hodges_lehmann(const double *a, size_t n, const double *b, size_t m)
{
    double *x = sorted_copy(a, n), *y = sorted_copy(b, m);
    uint64_t pairs = (uint64_t)n * m;
    /* Rank of the interval's end, from the test (Hollander & Wolfe 1973, section 4.3). */
    double wide = 1.959964 * sqrt((double)pairs * (double)(n + m + 1) / 12), rank = floor((double)pairs / 2 - wide);
    uint64_t end = rank < 1 ? 1 : (uint64_t)rank;
    struct stat_shift s = {.shift = difference(x, n, y, m, (pairs + 1) / 2)};
    if (pairs % 2 == 0)
        s.shift = (s.shift + difference(x, n, y, m, pairs / 2 + 1)) / 2;
    s.low = difference(x, n, y, m, end);
    s.high = difference(x, n, y, m, pairs + 1 - end);
    free(x);
    free(y);
    return s;
}
