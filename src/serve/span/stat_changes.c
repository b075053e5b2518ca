/* SPDX-License-Identifier: MIT */
/* Changes of level, and corrections of p-values for many tests. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "base/search.h"
#include "span/statistics.h"

/* ---- ranks ---- */

struct ranked {
    double p;
    size_t at;
};

static int by_p(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return order_of(x->p, y->p) ?: order_of(x->at, y->at);
}

static struct ranked *rank_all(const double *p, size_t n)
{
    struct ranked *r = mem_alloc((n + 1) * sizeof *r);
    for (size_t i = 0; i < n; i++)
        r[i] = (struct ranked){p[i], i};
    if (n)
        qsort(r, n, sizeof *r, by_p);
    return r;
}

struct stat_change stat_pettitt(const double *v, size_t n)
{
    struct stat_change c = {.p = 1};
    double *sorted = mem_alloc((n + 1) * sizeof *sorted), ranks = 0, most = 0;
    memcpy(sorted, v, n * sizeof *sorted);
    stat_sort(sorted, n);
    for (size_t t = 0; t + 1 < n; t++) {
        size_t below = search_first(i, 0, n, sorted[i] >= v[t]), upto = search_first(i, below, n, sorted[i] > v[t]);
        ranks += (double)(below + upto + 1); /* twice the mean rank */
        double u = fabs(ranks - (double)(t + 1) * (double)(n + 1));
        if (u > most) {
            most = u;
            c.at = t + 1;
        }
    }
    free(sorted);
    double size = (double)n, p = 2 * exp(-6 * most * most / (size * size * size + size * size));
    c.p = p < 1 ? p : 1;
    return c;
}

/* ---- dependent numbers ---- */

/* Returns ranks from 1; equal numbers are ranked in order of arrival. */
static double *ranks_of(const double *v, size_t n)
{
    struct ranked *r = rank_all(v, n);
    double *ranks = mem_alloc((n + 1) * sizeof *ranks);
    for (size_t i = 0; i < n; i++)
        ranks[r[i].at] = (double)(i + 1);
    free(r);
    return ranks;
}

/* Returns the correlation of neighbours without the change; accurate for one change at most. */
static double correlation_beside(const double *r, size_t n, size_t at)
{
    double mean[2] = {0, 0}, all = 0, next = 0, last = 0;
    for (size_t i = 0; i < n; i++)
        mean[i >= at] += r[i] / (double)(i < at ? at : n - at);
    for (size_t i = 0; i < n; i++) {
        double x = r[i] - mean[i >= at];
        all += x * x;
        next += x * last;
        last = x;
    }
    return all > 0 ? next / all : 0;
}

/* Returns the mean square of steps over `lag` numbers, without the largest tenth, which contains the changes. */
static double mean_step(const double *r, size_t n, size_t lag, double *scratch)
{
    size_t count = n - lag, kept = count * 9 / 10;
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        scratch[i] = (r[i + lag] - r[i]) * (r[i + lag] - r[i]);
    stat_sort(scratch, count);
    for (size_t i = 0; i < kept; i++)
        sum += scratch[i];
    return kept ? sum / (double)kept : 0;
}

/* Returns the correlation of neighbours from steps over one and two numbers: the second is 1 + correlation times the
 * first. Accurate with several changes, too. */
static double correlation_within(const double *r, size_t n)
{
    double *scratch = mem_alloc((n + 1) * sizeof *scratch);
    double one = mean_step(r, n, 1, scratch), two = mean_step(r, n, 2, scratch);
    free(scratch);
    return one > 0 ? two / one - 1 : 0;
}

/* Returns the factor by which sums vary more than those of independent numbers: (1 + c) / (1 - c) for an autoregression
 * (Priestley 1981). Both estimates of the correlation are too low, mostly for few numbers (Kendall 1954), so their
 * possible error is added. c is the smaller one. */
static double dependence(const double *v, size_t n, size_t at)
{
    double *r = ranks_of(v, n), size = (double)n;
    double beside = fmax(correlation_beside(r, n, at), 0), within = fmax(correlation_within(r, n), 0);
    free(r);
    beside += (3 + 4 * beside) / size + 1.2 / sqrt(size);
    within += (1 + 4 * within) / size + 1.6 / sqrt(size);
    double c = fmin(fmin(beside, within), 0.99);
    return (1 + c) / (1 - c);
}

/* Pettitt's test for dependent numbers. Its p is 2 exp(-x); the dependence reduces x. The dependence itself is as
 * uncertain as a variance of n independent numbers, so exp(-x) becomes (1 + x / n)^-n. */
static struct stat_change likeliest(const double *v, size_t n)
{
    const double share = 0.3; /* share of the independent numbers; by simulation, see tests/span/test_claims.c */
    struct stat_change c = stat_pettitt(v, n);
    if (n < 4 || c.p >= 1)
        return c;
    double depends = dependence(v, n, c.at), degrees = share * (double)n / depends;
    c.p = fmin(1, 2 * pow(1 + log(2 / c.p) / depends / degrees, -degrees));
    return c;
}

/* ---- search for changes ---- */

/* Range still to be tested. */
struct era {
    size_t from, to;
    double alpha;
};

static int by_place(const void *a, const void *b)
{
    return order_of(((const struct stat_change *)a)->at, ((const struct stat_change *)b)->at);
}

/* Tests each change again, between its neighbours. It was located less exactly while its range contained another level,
 * and an error of the location may have looked like a change. Returns the number of changes that remain. */
static size_t find_exactly(const double *v, size_t n, size_t least, double alpha, struct stat_change *c, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        size_t from = kept ? c[kept - 1].at : 0, to = i + 1 < count ? c[i + 1].at : n;
        struct stat_change again = likeliest(v + from, to - from);
        if (again.p > alpha || again.at < least || to - from - again.at < least)
            continue;
        c[kept++] = (struct stat_change){from + again.at, again.p};
    }
    return kept;
}

size_t stat_changes(const double *v, size_t n, size_t least, double alpha, struct stat_change *out, size_t cap)
{
    VEC(struct era) todo = {0};
    size_t found = 0;
    vec_push(&todo, ((struct era){0, n, alpha / 2}));
    while (todo.n && found < cap) {
        struct era s = todo.v[--todo.n];
        if (s.to - s.from < 2 * least)
            continue;
        struct stat_change c = likeliest(v + s.from, s.to - s.from);
        c.at += s.from;
        if (c.p > s.alpha || c.at - s.from < least || s.to - c.at < least)
            continue;
        out[found++] = c;
        vec_push(&todo, ((struct era){s.from, c.at, s.alpha / 4}));
        vec_push(&todo, ((struct era){c.at, s.to, s.alpha / 4}));
    }
    vec_free(&todo);
    if (found)
        qsort(out, found, sizeof *out, by_place);
    return find_exactly(v, n, least, alpha / 2, out, found);
}

/* ---- corrections for many tests ---- */

void stat_benjamini_hochberg(double *p, size_t n)
{
    struct ranked *r = rank_all(p, n);
    double least = 1;
    for (size_t i = n; i-- > 0;) {
        double corrected = r[i].p * (double)n / (double)(i + 1);
        least = corrected < least ? corrected : least;
        p[r[i].at] = least;
    }
    free(r);
}

void stat_holm(double *p, size_t n)
{
    struct ranked *r = rank_all(p, n);
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        double corrected = r[i].p * (double)(n - i);
        most = corrected > most ? corrected : most;
        p[r[i].at] = most < 1 ? most : 1;
    }
    free(r);
}
