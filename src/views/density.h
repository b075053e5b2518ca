/* Private to views: how many durations are how long, as bars over ranges of equal width that begin at 0. */
#ifndef WEFT_VIEWS_DENSITY_H
#define WEFT_VIEWS_DENSITY_H

#include "views/view.h"

/* Width in ns of n ranges that hold durations up to the longest. */
int64_t density_width(int64_t longest, size_t n);
/* [n][2]: begin and end of each; the last one is cut where time ends. */
const int64_t (*density_ranges(struct arena *, int64_t width, size_t n))[2];
/* A view of one series, "Total": its tree, and its bars of n counts. */
void density_write_tree(const struct views *, struct tsp_answer *, const char *tooltip);
void density_write(const struct views *, const struct tsp_query *, struct tsp_answer *, int64_t width,
    const uint64_t *counts, size_t n);

#endif
