/* SPDX-License-Identifier: MIT */
/* Corridor of a pair: bounds of b's clock at any instant of a's. In the sheared plane of hull.h. */
#ifndef WEFT_CLOCK_CORRIDOR_H
#define WEFT_CLOCK_CORRIDOR_H

#include "clock/steps.h"

/* Bounds from messages and a range of slopes [low, high] (Q62). Straight: the true curve is a line of that range. Lines
 * that fit are points (slope, offset) of a convex polygon, whose vertices sweep the corridor: the half hulls between
 * the points where the extreme lines touch, and the extreme lines beyond. Curved: the slope may vary within the range;
 * each message bounds the curve by a cone. `top` and `bottom` hold the messages that matter. */
struct corridor {
    struct point *top, *bottom;
    size_t ntop, nbottom;    /* lengths, at least 1 each */
    int64_t low, high;
    bool curved;
};

/* Course: one corridor, or several in order of time if b's clock stepped: between v[i] and v[i + 1] within steps[i]. */
struct course {
    struct corridor *v;
    struct stretch *steps;
    size_t n;
    uint64_t outliers;       /* messages that contradict nearly all others and were dropped */
    bool against_prior;      /* the messages contradict the prior, which was not used */
};
int64_t clock_course_top(const struct course *, int64_t x);
int64_t clock_course_bottom(const struct course *, int64_t x);
void clock_course_free(struct course *);

struct course_limits {
    bool prior;              /* low, high are valid */
    int64_t low, high;       /* Q62: assumed range of drift - 1 */
    int64_t sane_low, sane_high;
    double sent_each, received_each; /* number of messages that each point represents, itself included (keep.h) */
};
/* Finds the corridor of sorted points: a line if one fits; else a curve whose slope varies no more than the messages
 * require (with margin, within the prior); else lines or curves between steps. Without a prior only a line is allowed.
 * False: nothing bounded fits. */
bool clock_course_fit(const struct point *sent, size_t ns, const struct point *received, size_t nr,
    const struct course_limits *, struct course *out);

#endif
