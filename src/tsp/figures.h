/* Private to tsp: rows of figures in data trees: least, most, mean and spread of durations. */
#ifndef WEFT_TSP_FIGURES_H
#define WEFT_TSP_FIGURES_H

#include "tsp/provider.h"

enum { FIGURES_HEADERS = 9 };
extern const struct tsp_header figures_headers[FIGURES_HEADERS];
/* Writes an entry, unless there is nothing in it. The begins are on the reference clock. more: texts of columns behind, n of them. */
void figures_write(struct json *, struct arena *, int64_t id, int64_t parent, const char *label, const struct state_figures *, const char *const *more, size_t n);
const char *figures_duration(struct arena *, double ns);

#endif
