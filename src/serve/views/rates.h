/* SPDX-License-Identifier: MIT */
/* Private to views: what counters grew by, as charts show it. */
#ifndef WEFT_VIEWS_RATES_H
#define WEFT_VIEWS_RATES_H

#include "views/view.h"

/* The query's sample times on a host's clock, behind one that lies a step before the first: n_times + 1 of them.
 * convert: view_to_host or view_sample_time. */
int64_t *rates_times(const struct view_host *, const struct tsp_query *,
    int64_t (*convert)(const struct view_host *, int64_t t));
/* Adds `scale` times the rate per ns of the counter to y[0 .. n_times): the average over the step before each sample.
 * times: by view_to_host. counter < 0: nothing. */
void rates_add(const struct view_host *, const struct tsp_query *, const int64_t *times, int kind, int64_t counter,
    double scale, double *y);
/* How much the counter grew within [begin, end] of the reference clock. */
int64_t rates_growth(const struct view_host *, int kind, int64_t counter, int64_t begin, int64_t end);

#endif
