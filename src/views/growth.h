/* Private to views: rates from cumulative counters, as XY providers show them. */
#ifndef WEFT_VIEWS_GROWTH_H
#define WEFT_VIEWS_GROWTH_H

#include "views/view.h"

/* Sample times of a query on a host's clock, with one more in front: the value at x[i] is the average over (x[i - 1],
 * x[i]]. */
struct tsp_samples { int64_t *host; size_t n; };
struct tsp_samples tsp_samples_of(const struct view_host *, const struct tsp_query *);
/* One step of the sample times before the first of them. */
int64_t view_time_before(const struct tsp_query *);
/* Adds `scale` times the rate per ns of the counter to y[0 .. n). counter < 0: nothing. */
void tsp_add_rates(const struct view_host *, int kind, int64_t counter, const struct tsp_samples *, double scale,
    double *y, struct arena *);
/* How much the counter grew within [begin, end] of the reference clock. */
int64_t rates_growth(const struct view_host *, int kind, int64_t counter, int64_t begin, int64_t end);

#endif
