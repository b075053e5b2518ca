/* SPDX-License-Identifier: MIT */
/* Private to views: rows of spans accessible by number, on the reference clock. */
#ifndef WEFT_VIEWS_SPANS_H
#define WEFT_VIEWS_SPANS_H

#include "views/view.h"

/* Row of spans in time order, without overlap. */
struct view_spans {
    void *arg; size_t n;
    void (*bounds)(void *arg, size_t i, int64_t *begin, int64_t *end);
    /* Writes the span; false: not written, since `only_matches` is set and the filter rejects it. */
    bool (*write)(void *arg, size_t i, bool only_matches);
};
/* Number of the last span that begins at or before t; SIZE_MAX: none. */
size_t view_find_span(const struct view_spans *, int64_t t);
/* Writes the row: spans at the sample times, and blanks between them, within the experiment's time. */
void view_write_spans(const struct view_spans *, const struct views *, const struct tsp_query *, int64_t entry,
    struct tsp_answer *);

#endif
