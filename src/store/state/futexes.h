/* SPDX-License-Identifier: MIT */
/* Private to state: futexes that threads wait for, or wake others at. */
#ifndef WEFT_STATE_FUTEXES_H
#define WEFT_STATE_FUTEXES_H

#include "state/series.h"

struct state_builder;

/* Call of futex in progress. */
struct state_builder_futex_call {
    int64_t since;
    uint32_t user;           /* index in futex_users + 1; 0: none */
    uint32_t track;
    uint8_t operation;
    bool doubtful;           /* may have ended unseen: its row shows that, and it has lost its track */
};

/* Calls of one thread for one futex. */
struct builder_futex_user {
    struct series series;
    uint32_t code;           /* code of the futex */
    int32_t thread;
    bool waits;
};

/* Returns the index of a row + 1. */
uint32_t state_builder_futex_user_of(struct state_builder *, int32_t thread, uint32_t code);
void state_builder_futex_call(struct state_builder *, struct state_builder_futex_call *, int32_t row, int64_t ts,
    uint32_t code, uint8_t operation);
void state_builder_futex_return(struct state_builder *, struct state_builder_futex_call *, int64_t ts, int64_t ret);
/* Ends a call without a return. */
void state_builder_futex_cut(struct state_builder *, struct state_builder_futex_call *, int64_t ts);
/* Marks from ts on that it is unknown whether the call still runs. */
void state_builder_futex_doubt(struct state_builder *, struct state_builder_futex_call *, int64_t ts);
/* Ends calls in progress at the end of the trace. */
void state_builder_futexes_finish(struct state_builder *);

#endif
