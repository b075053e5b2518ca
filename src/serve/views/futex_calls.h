/* SPDX-License-Identifier: MIT */
/* Private to views: how calls of futex are shown, and who woke whom. */
#ifndef WEFT_VIEWS_FUTEX_CALLS_H
#define WEFT_VIEWS_FUTEX_CALLS_H

#include "views/rows.h"

/* How an interval of a FUTEX_USER row is shown. */
void futex_show(const struct view_sampler *, const struct view_host *, size_t user, const struct state_interval *,
    struct view_shown *);
void futex_write_styles(struct tsp_answer *answer);
/* Adds the call that the thread of the row made at t, a time of the host, to an open tooltip. */
void futex_write_call(struct tsp_answer *answer, const struct view_host *, size_t user, int64_t t);

struct futex_wake { int32_t thread; int64_t at; };
/* Which thread ended the wait of that interval, as the graph knows it. False: none is known to. */
bool futex_woken_by(const struct view_host *, const struct state_interval *wait, struct futex_wake *out);

#endif
