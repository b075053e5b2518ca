/* SPDX-License-Identifier: MIT */
/* Private to state: gaps in the events, and their effect on waiting threads. */
#ifndef WEFT_STATE_GAPS_H
#define WEFT_STATE_GAPS_H

#include "base/mem.h"
#include "state/format.h"

struct builder_thread;
struct state_builder;

/* Gaps: intervals in which events of some CPUs are missing, disjoint and in order. Above the limit the oldest are
 * merged; this makes no difference to a wait that covers all of them. */
enum { BUILDER_MOST_GAPS = 512, BUILDER_MOST_CPU_GAPS = 32 };
struct builder_gap { int64_t begin, end; };
typedef VEC(struct builder_gap) builder_gaps;

/* Adds a gap: events of that CPU (-1: all) are missing in [begin, end). Nothing more of this loss may follow. */
void state_builder_gap_add(struct state_builder *, int32_t cpu, int64_t begin, int64_t end);
/* Ends the thread's last state at ts, when it changes to `code`. If that was a wait, the part in which events were
 * missing, as far as known now, becomes unknown, since the thread may have run unseen; its calls become doubtful. */
void state_builder_gap_settle(struct state_builder *, struct builder_thread *, int64_t ts, uint32_t code);
/* Returns whether the thread is gone, unseen, and its last state cannot be judged yet: a loss of a CPU begins behind
 * the CPU's last record. */
bool state_builder_gap_is_awaited(const struct state_builder *, size_t row);
/* Settles all threads at the end of the trace, or of the thread's life, except states that continue in the next
 * chunk. */
void state_builder_gaps_finish(struct state_builder *, int64_t end);

#endif
