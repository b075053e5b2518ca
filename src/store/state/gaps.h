/* SPDX-License-Identifier: MIT */
/* Private to state: where events are missing, and what becomes of threads that wait meanwhile. */
#ifndef WEFT_STATE_GAPS_H
#define WEFT_STATE_GAPS_H

#include "base/mem.h"
#include "state/format.h"

struct builder_thread;
struct state_builder;

/* Stretches in which events of some CPUs are missing, apart and in order. Of too many the oldest become one: to a wait
 * that lasts over all of them this makes no difference. */
enum { BUILDER_MOST_GAPS = 512, BUILDER_MOST_CPU_GAPS = 32 };
struct builder_gap { int64_t begin, end; };
typedef VEC(struct builder_gap) builder_gaps;

/* Events of that CPU (-1: of all) are missing in [begin, end), and no more is to come of this loss. */
void builder_gap_add(struct state_builder *, int32_t cpu, int64_t begin, int64_t end);
/* What the thread did last is over at ts, when it turns to `code`. If that was to wait, the part in which events were
 * missing, as far as is known now, becomes unknown: nobody saw what it did meanwhile; and its calls are in doubt. */
void builder_gap_settle(struct state_builder *, struct builder_thread *, int64_t ts, uint32_t code);
/* Is the thread gone, unseen, and can what it did last not be judged yet? What was lost of a CPU begins behind its last
 * record. */
bool builder_gap_is_awaited(const struct state_builder *, size_t row);
/* The same at the end of the trace, or of the thread's life, for what is not over, nor goes on in the next chunk. */
void builder_gaps_finish(struct state_builder *, int64_t end);

#endif
