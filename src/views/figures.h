/* Private to views: rows of figures in data trees: least, most, mean and spread of durations. */
#ifndef WEFT_VIEWS_FIGURES_H
#define WEFT_VIEWS_FIGURES_H

#include "base/mem.h"
#include "views/view.h"

enum { FIGURES_HEADERS = 9 };
extern const struct tsp_header figures_headers[FIGURES_HEADERS];
/* Writes an entry, unless there is nothing in it. The begins are on the reference clock. more: texts of columns behind,
 * n of them. */
void figures_write(struct tsp_answer *, struct arena *, int64_t id, int64_t parent, const char *label,
    const struct figures *, const char *const *more, size_t n);
/* Points of durations over time. Of those that figures stand for, the shortest and the longest are shown: more cannot
 * be seen. */
struct figures_points { VEC(int64_t) x; VEC(double) y; };
/* begins by the host's clock */
void figures_add_points(struct figures_points *, const struct view_host *, const struct figures *);
void figures_write_points(struct tsp_answer *, int64_t id, const char *name, const struct figures_points *);
void figures_free_points(struct figures_points *);
const char *durations_text(struct arena *, double ns);

#endif
