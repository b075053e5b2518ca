/* SPDX-License-Identifier: MIT */
/* Statistics over plain arrays of numbers, without knowledge of spans. Values are durations, or their logarithms,
 * because durations of one kind of work spread by factors, not by sums.
 *
 * All results are repeatable: random numbers come from the caller's seed. */
#ifndef WEFT_SPAN_STATISTICS_H
#define WEFT_SPAN_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- order ---- */

/* Sorts ascending, by the digits of the numbers' bits. O(n). No NaN. */
void stat_sort(double *v, size_t n);
/* Returns quantile q of sorted numbers, n > 0, 0 <= q <= 1: linear between the two nearest (Hyndman & Fan 1996, type 7,
 * as in R, NumPy and spreadsheets). The median of an even count is the mean of the middle two. */
double stat_quantile(const double *sorted, size_t n, double q);
double stat_median(const double *v, size_t n);       /* need not be sorted; n > 0 */

/* Median, and a spread that outliers do not widen: 1.4826 times the median distance from the median. For normal
 * numbers, that is the standard deviation. If more than half of the numbers are equal: the interquartile range / 1.349.
 * 0 if that is 0 too. n > 0. */
struct stat_centre { double median, scale; };
struct stat_centre stat_centre(const double *v, size_t n);

/* ---- tails ---- */

double stat_normal_tail(double z);                   /* P(Z >= z) */
double stat_t_tail(double t, double degrees);        /* P(T >= t) of Student's t; degrees > 0, need not be whole */
/* Returns the p-value of a claim: the j largest of n descending distances stand apart from the others. Compares the gap
 * below them, j times the logarithm of the ratio, with the mean of the gaps that follow. For Pareto tails all gaps have
 * one distribution (Rényi 1953; Hill 1975); for lighter tails they become smaller towards the end. If few gaps follow,
 * the mean leans on that of Student's t with 3 degrees. So p holds for tails up to these, and is cautious for lighter
 * ones. Corrected for tests of several j; 0 < j < n. */
double stat_gap_p(const double *descending, size_t n, size_t j);

/* ---- two samples ---- */

/* Mann & Whitney 1947: tests whether numbers of b are larger than those of a. Both have at least one number. */
struct stat_ranks {
    double u;            /* pairs in which b's number is larger; equal ones count one half */
    double p;            /* two-sided */
    double larger;       /* u as a share of all pairs; 0.5: no difference */
    bool exact;          /* p counts all deals of the ranks, with ties; else it is normal, corrected for ties */
};
struct stat_ranks stat_mann_whitney(const double *a, size_t n, const double *b, size_t m);
/* Shift of b above a: the median of all differences (Hodges & Lehmann 1963), with its 95 % confidence interval. O((n +
 * m) log range). */
struct stat_shift { double shift, low, high; };
struct stat_shift stat_hodges_lehmann(const double *a, size_t n, const double *b, size_t m);

/* Random number generator; state: the seed. */
struct stat_dice { uint64_t state; };
double stat_uniform(struct stat_dice *);             /* range: (0, 1) */
double stat_normal(struct stat_dice *);
/* Bootstrap interval (Efron 1979, percentiles; 95 %) of the difference between quantile q of b and of a, both sorted. A
 * quantile of n numbers drawn with replacement is drawn at once, from the distribution of the uniform order statistics.
 * So large samples cost no more than small ones. */
struct stat_shift stat_bootstrap(const double *a, size_t n, const double *b, size_t m, double q, struct stat_dice *);

/* ---- changes ---- */

/* Change of level among numbers in order of time: Pettitt's test (1979), repeated on both sides. `at`: first number of
 * the new level. */
struct stat_change { size_t at; double p; };
/* Returns the likeliest change, by Pettitt's test alone. p is an upper bound near 0.5, and accurate where it is
 * small. */
struct stat_change stat_pettitt(const double *v, size_t n);
/* Finds all changes, in order, with p <= alpha and no level shorter than `least`. alpha is shared among the tests
 * (halved at each depth). Numbers may depend on those before them (as a first-order autoregression). That dependence is
 * estimated from above, and its own fluctuations are no change. Returns the number of changes, at most `cap`. */
size_t stat_changes(const double *v, size_t n, size_t least, double alpha, struct stat_change *out, size_t cap);

/* ---- corrections for many tests ---- */

/* Correct p-values in place for many tests. Benjamini & Hochberg 1995: the share of false claims among the claims stays
 * below alpha. Holm 1979: the chance of a single false claim does. */
void stat_benjamini_hochberg(double *p, size_t n);
void stat_holm(double *p, size_t n);
/* Returns the chance of `hit` or more marked things among `drawn` random ones, if `marked` of `all` are marked
 * (hypergeometric tail: Fisher's exact test, one-sided). */
double stat_over(uint64_t hit, uint64_t drawn, uint64_t marked, uint64_t all);

/* ---- clusters ---- */

/* Partition of n things by their distances: n * n, symmetric, 0 on the diagonal. */
enum { STAT_CLUSTERS = 8 };
struct stat_clusters {
    size_t k;                        /* 0: none */
    size_t medoid[STAT_CLUSTERS];
    double silhouette;               /* mean over all, -1 to 1; a thing alone in its cluster counts 0 */
};
/* Finds the best partition into 2 to `most` clusters around medoids, none smaller than `least` (Kaufman & Rousseeuw
 * 1990: build and swap; k by the silhouette, Rousseeuw 1987). `of[n]`: cluster of each thing. */
void stat_medoids(const float *distance, size_t n, size_t most, size_t least, struct stat_clusters *, uint8_t *of);
/* Finds the best partition into a given k <= n clusters. */
void stat_medoids_k(const float *distance, size_t n, size_t k, struct stat_clusters *, uint8_t *of);

#endif
