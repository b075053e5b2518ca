/* SPDX-License-Identifier: MIT */
/* Private to views: tooltips of states. */
#ifndef WEFT_VIEWS_TIPS_H
#define WEFT_VIEWS_TIPS_H

#include "views/view.h"

/* Finds the entry and time of a requested tooltip; false: the query names none. */
bool view_tooltip_target(const struct tsp_query *, int64_t *entry, int64_t *time);
/* Returns whether the query asks about an arrow, from the target (view_tooltip_target) to q->element_destination. */
bool view_tooltip_of_arrow(const struct tsp_query *);

/* Functions that add lines to an open tooltip. */
void view_write_number(struct tsp_answer *, const char *name, int64_t);
void view_write_duration(struct tsp_answer *, const char *name, int64_t ns);
void view_write_span(struct tsp_answer *, int64_t begin, int64_t end); /* reference clock; adds start, end, duration */
void view_write_interval(struct tsp_answer *, const struct view_host *, const struct state_interval *); /* adds start,
                                                                                                         * end,
                                                                                                         * duration */
/* Adds a thread of the host's graph: under `name` its name at t (host's clock), under `tid` its number. */
void view_write_thread(struct tsp_answer *, const struct view_host *, int32_t row, int64_t t, const char *name,
    const char *tid);
/* Error of the host's clock at t (reference clock); 0 for the reference, and for a host alone. */
int64_t view_clock_error_ns(const struct view_host *, int64_t t);
/* Adds a line with that error, if the host has one. */
void view_write_clock_error(struct tsp_answer *, const struct view_host *, int64_t t);

#endif
