/* SPDX-License-Identifier: MIT */
/* Marks of weft-span in user-space traces, which it leaves there where the kernel's trace cannot be written to: LTTng's
 * events of tracef (lttng_ust_tracef:event). They tell when a span began and ended by the machine's own clock; who had
 * it the span tells itself. */
#ifndef WEFT_INDEX_USER_MARKS_H
#define WEFT_INDEX_USER_MARKS_H

#include "index/index.h"

struct graph_mark;
/* Of the host's user-space traces, by trace and time, by the clock of its kernel trace; row -1. Traces that declare no
 * such events are not read; others are, once, when somebody asks first: O(trace). Safe to be asked by many threads. */
size_t experiment_user_marks(const struct experiment *, size_t host, const struct graph_mark **out);

#endif
