/* SPDX-License-Identifier: MIT */
/* Half hulls of the messages of a pair and the lines that fit between them (Duda et al. 1987; the terms are LTTV's). A
 * message is a point: x = ns on host a since the pair's first message, d = (ns on b since then) - x, the gain of b's
 * clock on a's. Points sent by a are above the true curve, points received by a below it. Subtracting x from y shears
 * the plane: order, convexity and vertical distances stay, slopes become drift - 1. */
#ifndef WEFT_CLOCK_HULL_H
#define WEFT_CLOCK_HULL_H

#include <stdbool.h>
#include <stddef.h>

#include "clock/exact.h"

struct point { int64_t x, d; };

/* Turn of o -> a -> b: > 0 left, < 0 right, 0 straight. Exact: |x| <= 2^58 and |d| <= 2^59, so products stay below
 * 2^121. */
static inline i128 point_turn(struct point o, struct point a, struct point b)
{
    return (i128)(a.x - o.x) * (b.d - o.d) - (i128)(a.d - o.d) * (b.x - o.x);
}

/* Sorts by x, then d. O(n) if sorted already. */
void clock_hull_sort(struct point *v, size_t n);
/* Half hull of n sorted points into out (room for n): the lower one of sent points (slopes rise), or the upper one of
 * received points (slopes fall). Returns its number of points. O(n) */
size_t clock_hull_lower(const struct point *v, size_t n, struct point *out);
size_t clock_hull_upper(const struct point *v, size_t n, struct point *out);

/* Points that represent a chain: all of it, or `most` spread over it. The caller frees them. */
struct point *clock_hull_thin(const struct point *v, size_t n, size_t most, size_t *out_n);

/* Bound of the slope: the line through two points, `early.x < late.x`. */
struct hull_bound { bool exists; struct point early, late; };
/* The steepest line touches a received point, then a later sent one; the flattest the reverse. Valid only if a line
 * fits (clock_hull_fits). O(h log h) */
void clock_hull_slopes(const struct point *sent, size_t ns, const struct point *received, size_t nr,
    struct hull_bound *flattest, struct hull_bound *steepest);
/* Returns whether there is a line (even a vertical one) with all sent points above or on it and all received points
 * below or on it. Takes half hulls. O(h log h) */
bool clock_hull_fits(const struct point *sent, size_t ns, const struct point *received, size_t nr);
/* Vertex where a line of this slope touches the half hull: lowest of a lower hull, highest of an upper hull; of several
 * the leftmost. */
size_t clock_hull_touch_lower(const struct point *v, size_t n, int64_t slope_q62);
size_t clock_hull_touch_upper(const struct point *v, size_t n, int64_t slope_q62);

/* Best effort if no line fits (Ashton 1995, 4.2.2): of all lines through one point of each half hull, the one with the
 * least sum of vertical distances of hull points on the wrong side. False: none. O(h^3), hulls reduced to 150
 * points. */
struct hull_line { struct point early, late; long double error; };
bool clock_hull_compromise(const struct point *sent, size_t ns, const struct point *received, size_t nr,
    struct hull_line *out);

/* Least range of slopes with which a curve (not a line) can pass between the messages: [low, high] of the slopes that
 * messages require. Takes all points, sorted. False: messages contradict each other at one instant, so no curve passes.
 * O(n log n) */
bool clock_hull_slope_range(const struct point *sent, size_t ns, const struct point *received, size_t nr,
    long double *low, long double *high);

#endif
