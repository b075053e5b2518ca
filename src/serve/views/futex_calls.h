/* SPDX-License-Identifier: MIT */
/* Private to views: states of futex calls, and wakers of waits. */
#ifndef WEFT_VIEWS_FUTEX_CALLS_H
#define WEFT_VIEWS_FUTEX_CALLS_H

#include "views/rows.h"

/* Label, style and properties of an interval of a FUTEX_USER row. */
void futex_show(const struct view_sampler *, const struct view_host *, size_t user, const struct state_interval *,
    struct view_shown *);
void futex_write_styles(struct tsp_answer *answer);
/* Adds the thread's call at t (host's clock) to an open tooltip. */
void futex_write_call(struct tsp_answer *answer, const struct view_host *, size_t user, int64_t t);

struct futex_wake { int32_t thread; int64_t at; };
/* Finds the thread that ended the wait of that interval, from the graph. False: none is known. */
bool futex_woken_by(const struct view_host *, const struct state_interval *wait, struct futex_wake *out);

#endif
