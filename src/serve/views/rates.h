/* SPDX-License-Identifier: MIT */
/* Private to views: growth of counters, as charts show it. */
#ifndef WEFT_VIEWS_RATES_H
#define WEFT_VIEWS_RATES_H

#include "views/view.h"

/* Sample times of the query on a host's clock, preceded by one a step before the first: n_times + 1 items. convert:
 * view_to_host or view_sample_time. */
int64_t *rates_times(const struct view_host *, const struct tsp_query *,
    int64_t (*convert)(const struct view_host *, int64_t t));
/* Adds `scale` times the counter's rate per ns to y[0 .. n_times): the average over the step before each sample. times:
 * by view_to_host. counter < 0: adds nothing. */
void rates_add(const struct view_host *, const struct tsp_query *, const int64_t *times, int kind, int64_t counter,
    double scale, double *y);
/* Growth of the counter within [begin, end] of the reference clock. */
int64_t rates_growth(const struct view_host *, int kind, int64_t counter, int64_t begin, int64_t end);

#endif
