/* SPDX-License-Identifier: MIT */
/* Marks of weft-span in user-space traces: LTTng's events of tracef (lttng_ust_tracef:event). weft-span writes them
 * where it cannot write to the kernel's trace. They give begin and end of a span by the machine's own clock; the span
 * itself names its thread. */
#ifndef WEFT_INDEX_USER_MARKS_H
#define WEFT_INDEX_USER_MARKS_H

#include "index/index.h"

struct graph_mark;
/* Returns the marks of the host's user-space traces, by trace and time, by the clock of its kernel trace; row -1.
 * Traces that declare no such events are not read. The others are read once, by the first call: O(trace). Thread-
 * safe. */
size_t index_experiment_user_marks(const struct experiment *, size_t host, const struct graph_mark **out);

#endif
