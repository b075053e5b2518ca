/* SPDX-License-Identifier: MIT */
/* Private to views: what tooltips of states say. */
#ifndef WEFT_VIEWS_TIPS_H
#define WEFT_VIEWS_TIPS_H

#include "views/view.h"

/* Entry and time that a tooltip asks about; false when it names none. */
bool view_tooltip_target(const struct tsp_query *, int64_t *entry, int64_t *time);
/* Does it ask about an arrow? From where is the target; to q->element_destination. */
bool view_tooltip_of_arrow(const struct tsp_query *);

/* Each adds to an open tooltip. */
void view_write_number(struct tsp_answer *, const char *name, int64_t);
void view_write_duration(struct tsp_answer *, const char *name, int64_t ns);
void view_write_span(struct tsp_answer *, int64_t begin, int64_t end); /* reference clock: start, end, duration */
void view_write_interval(struct tsp_answer *, const struct view_host *, const struct state_interval *); /* the same */
/* A row of the host's graph: under `name` what the thread is called at t (host's clock), under `tid` its number. */
void view_write_thread(struct tsp_answer *, const struct view_host *, int32_t row, int64_t t, const char *name,
    const char *tid);
/* The error of the host's clock at t (reference clock) ; 0 of the reference, and of a host alone. */
int64_t view_clock_error_ns(const struct view_host *, int64_t t);
/* The same as a line, where the host has one. */
void view_write_clock_error(struct tsp_answer *, const struct view_host *, int64_t t);

#endif
