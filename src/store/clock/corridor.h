/* SPDX-License-Identifier: MIT */
/* The corridor of a pair: between which bounds b's clock can have been at any instant of a's. In the sheared plane of
 * hull.h. */
#ifndef WEFT_CLOCK_CORRIDOR_H
#define WEFT_CLOCK_CORRIDOR_H

#include "clock/steps.h"

/* Bounds made from messages and a range of slopes [low, high] (Q62).
 * Straight: the true curve is a line of that range. Every line that fits is a point (slope, offset) of a convex
 * polygon; the corridor is what its vertices sweep: the half hulls between the points where the extreme lines touch,
 * and the extreme lines beyond.
 * Curved: the slope may wander within the range; each message bounds the curve by a cone. `top` and `bottom` hold the
 * messages that matter. */
struct corridor {
    struct point *top, *bottom;
    size_t ntop, nbottom;    /* at least 1 each */
    int64_t low, high;
    bool curved;
};

/* One corridor, or several one after another where b's clock stepped: between v[i] and v[i + 1] within steps[i]. */
struct course {
    struct corridor *v;
    struct stretch *steps;
    size_t n;
    uint64_t outliers;       /* messages that contradict nearly all others, left out */
    bool against_prior;      /* the messages contradict the prior: it was not used */
};
int64_t course_top(const struct course *, int64_t x);
int64_t course_bottom(const struct course *, int64_t x);
void course_free(struct course *);

struct course_limits {
    bool prior;              /* low, high are in force */
    int64_t low, high;       /* Q62: |drift - 1| as believed */
    int64_t sane_low, sane_high;
    double sent_each, received_each; /* how many messages each point stands for, itself included (keep.h) */
};
/* Finds the corridor of sorted points: a line where one fits, else a curve whose slope wanders no more than the
 * messages force on it (with margin, within the prior), else lines or curves between steps. Without a prior only a line
 * counts. False: nothing bounded fits. */
bool course_fit(const struct point *sent, size_t ns, const struct point *received, size_t nr,
    const struct course_limits *, struct course *out);

#endif
