/* SPDX-License-Identifier: MIT */
/* Private to views: rows of spans that are at hand by number, on the reference clock. */
#ifndef WEFT_VIEWS_SPANS_H
#define WEFT_VIEWS_SPANS_H

#include "views/view.h"

/* A row: in time order, without overlap. */
struct view_spans {
    void *arg; size_t n;
    void (*bounds)(void *arg, size_t i, int64_t *begin, int64_t *end);
    /* Writes the span; false: not, because `only_matches` and the filter is against it. */
    bool (*write)(void *arg, size_t i, bool only_matches);
};
/* Number of the last span that begins at or before t; SIZE_MAX: none. */
size_t view_find_span(const struct view_spans *, int64_t t);
/* Writes the row: the spans in force at samples, and blanks of the experiment's time in between. */
void view_write_spans(const struct view_spans *, const struct views *, const struct tsp_query *, int64_t entry,
    struct tsp_answer *);

#endif
