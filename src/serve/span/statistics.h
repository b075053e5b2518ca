/* SPDX-License-Identifier: MIT */
/* Statistics over plain arrays of numbers. Nothing here knows spans: what is compared are durations, or their
 * logarithms, because durations of one kind of work spread by factors, not by sums.
 *
 * Everything is repeatable: random numbers come from a seed that the caller names. */
#ifndef WEFT_SPAN_STATISTICS_H
#define WEFT_SPAN_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- order ---- */

/* Ascending. O(n): by the digits of the numbers' bits. No NaN. */
void stat_sort(double *v, size_t n);
/* Of sorted numbers, n > 0, 0 <= q <= 1: linear between the two nearest (Hyndman & Fan 1996, type 7: what R, NumPy and
 * spreadsheets do). The median of an even number is the mean of the middle two. */
double stat_quantile(const double *sorted, size_t n, double q);
double stat_median(const double *v, size_t n);       /* of unsorted numbers, n > 0 */

/* The middle, and a spread that outliers do not widen: 1.4826 times the median distance from the median, which is the
 * standard deviation where the numbers are normal; where more than half of them are equal the interquartile range
 * / 1.349. 0 if that is 0 too. n > 0. */
struct stat_centre { double median, scale; };
struct stat_centre stat_centre(const double *v, size_t n);

/* ---- tails ---- */

double stat_normal_tail(double z);                   /* P(Z >= z) */
double stat_t_tail(double t, double degrees);        /* P(T >= t) of Student's t; degrees > 0, need not be whole */
/* Do the j largest of n distances, which descend, stand apart from the others? The gap below them, j times the
 * logarithm of the ratio, is compared with the mean of those that follow. These have one distribution where tails are
 * Pareto's (Rényi 1953; Hill 1975), and become smaller towards the end where tails are lighter. Where few follow, the
 * mean leans on that of Student's t with 3 degrees. So the answer holds for tails up to these, and is cautious for
 * lighter ones. Corrected for asking of several j; 0 < j < n. */
double stat_gap_p(const double *descending, size_t n, size_t j);

/* ---- two samples ---- */

/* Mann & Whitney 1947: is what is in b larger than what is in a? Both have at least one number. */
struct stat_ranks {
    double u;            /* pairs in which b's is the larger; those that are equal count one half */
    double p;            /* two-sided */
    double larger;       /* u of all pairs: 0.5 where there is no difference */
    bool exact;          /* counted over all ways to deal the ranks, ties and all; else normal, corrected for ties */
};
struct stat_ranks stat_mann_whitney(const double *a, size_t n, const double *b, size_t m);
/* How far b lies above a: the median of all differences (Hodges & Lehmann 1963), and the interval that holds the shift
 * in 95 of 100 cases. O((n + m) log range). */
struct stat_shift { double shift, low, high; };
struct stat_shift stat_hodges_lehmann(const double *a, size_t n, const double *b, size_t m);

/* Random numbers from a seed. */
struct stat_dice { uint64_t state; };
double stat_uniform(struct stat_dice *);             /* in (0, 1) */
double stat_normal(struct stat_dice *);
/* Bootstrap interval (Efron 1979, percentiles; 95 %) of the difference between quantile q of b and of a, both sorted.
 * A quantile of n numbers drawn with replacement is drawn at once, from the distribution of the uniform order
 * statistics, so that large samples cost no more than small ones. */
struct stat_shift stat_bootstrap(const double *a, size_t n, const double *b, size_t m, double q, struct stat_dice *);

/* ---- changes ---- */

/* Where numbers in the order of time change their level: Pettitt's test (1979), and again on both sides. `at` is the
 * first number of the new level. */
struct stat_change { size_t at; double p; };
/* Pettitt's test alone: the likeliest change. p is an upper bound near 0.5 and good where it is small. */
struct stat_change stat_pettitt(const double *v, size_t n);
/* All of them, in order, with p <= alpha shared among the questions asked (halved at each depth), and no level shorter
 * than `least`. Returns how many; at most `cap`. Numbers may depend on those before them (as an autoregression of the
 * first order): by how much is estimated, from above, and what such numbers do by themselves is no change. */
size_t stat_changes(const double *v, size_t n, size_t least, double alpha, struct stat_change *out, size_t cap);

/* ---- many questions ---- */

/* P-values corrected in place for being many: the share of false claims among the claims stays below alpha (Benjamini &
 * Hochberg 1995), or the chance of a single false claim does (Holm 1979). */
void stat_benjamini_hochberg(double *p, size_t n);
void stat_holm(double *p, size_t n);
/* `marked` of `all` things have a mark; `drawn` of all are drawn at random: how likely `hit` or more of those have it
 * (hypergeometric tail: Fisher's exact test, one-sided). */
double stat_over(uint64_t hit, uint64_t drawn, uint64_t marked, uint64_t all);

/* ---- clusters ---- */

/* Distances between n things: n * n, symmetric, 0 on the diagonal. */
enum { STAT_CLUSTERS = 8 };
struct stat_clusters {
    size_t k;                        /* 0: none */
    size_t medoid[STAT_CLUSTERS];
    double silhouette;               /* mean over all, -1 to 1; a thing alone in its cluster counts 0 */
};
/* The best partition into 2 to `most` clusters around members of theirs (Kaufman & Rousseeuw 1990: build and swap; k
 * by the silhouette, Rousseeuw 1987), none smaller than `least`. `of[n]`: each thing's cluster. */
void stat_medoids(const float *distance, size_t n, size_t most, size_t least, struct stat_clusters *, uint8_t *of);
/* For a given k <= n. */
void stat_medoids_k(const float *distance, size_t n, size_t k, struct stat_clusters *, uint8_t *of);

#endif
