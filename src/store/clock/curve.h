/* SPDX-License-Identifier: MIT */
/* Curve: one clock against another, a monotone polyline with a bound of its error. */
#ifndef WEFT_CLOCK_CURVE_H
#define WEFT_CLOCK_CURVE_H

#include <stdbool.h>
#include <stddef.h>

#include "clock/exact.h"

struct knot { int64_t t, y; };       /* when one clock shows `t`, the other shows `y` */
struct cut { int64_t t, error; };    /* ns of the other clock; linear between cuts */

/* Times of bends, ns. */
struct times { int64_t *v; size_t n, cap; };
/* Adds t if it is between begin and end, both excluded. */
void clock_times_add(struct times *, int64_t t, int64_t begin, int64_t end);
void clock_times_sort(struct times *);     /* removes duplicates */

struct curve {
    struct knot *knots;      /* at least 2, rising in t and y; the first and last line continue beyond them */
    struct cut *cuts;        /* at least 2; they include every knot's time */
    size_t nknots, ncuts;
    int64_t growth;          /* Q62: growth of the error per ns before the first and after the last cut */
    double slowest, fastest; /* bounds of the true slope dy/dt */
};

/* Value at any t; exact at knots, rounded down between. Never falls with t. */
int64_t clock_curve_at(const struct curve *, int64_t t);
int64_t clock_curve_error(const struct curve *, int64_t t);
/* Mean of the error between the first and the last cut, ns. */
long double clock_curve_mean_error(const struct curve *);
/* Slope - 1 (Q62) of the line that holds at t; *knot is where it is anchored. */
int64_t clock_curve_slope(const struct curve *, int64_t t, struct knot *knot);

void clock_curve_identity(struct curve *out, int64_t begin, int64_t end);
void clock_curve_inverse(const struct curve *, struct curve *out);
/* out(t) = second(first(t)); the errors add up, the first one scaled by the second's slope. */
void clock_curve_compose(const struct curve *first, const struct curve *second, struct curve *out);
/* Intersection of the corridors of two curves between the same clocks, over a's cuts. False: they contradict each
 * other. */
bool clock_curve_intersect(const struct curve *a, const struct curve *b, struct curve *out);
void clock_curve_copy(const struct curve *, struct curve *out);
void clock_curve_free(struct curve *);

/* Selects nodes so that no other is farther from the polyline than its tolerance (Douglas and Peucker). The first and
 * last are always selected. */
struct curve_node { int64_t t, d, tolerance; };
void clock_curve_thin(const struct curve_node *, size_t n, bool *needed);
/* Makes knots of the selected nodes, as far as these rise in y; `out` has room for all of them. */
void clock_curve_knots(struct curve *out, const struct curve_node *, const bool *needed, size_t n);
/* Drops cuts if the line between the others bounds the error and adds at most slack[i] to that of cut i. Those at the
 * times of knots stay. */
void clock_curve_thin_cuts(struct curve *, const int64_t *slack);

#endif
