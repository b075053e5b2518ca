/* SPDX-License-Identifier: MIT */
/* Private to state: which thread waits for which futex, which one wakes others. */
#ifndef WEFT_STATE_FUTEXES_H
#define WEFT_STATE_FUTEXES_H

#include "state/series.h"

struct state_builder;

/* A call of futex in progress. */
struct builder_futex_call {
    int64_t since;
    uint32_t user;           /* index in futex_users + 1; 0: none */
    uint32_t track;
    uint8_t operation;
    bool doubtful;           /* it may have ended unseen: its row says so, and it has no track any more */
};

/* What one thread does with one futex. */
struct builder_futex_user {
    struct series series;
    uint32_t code;           /* of the futex */
    int32_t thread;
    bool waits;
};

/* The index of a row + 1. */
uint32_t builder_futex_user_of(struct state_builder *, int32_t thread, uint32_t code);
void builder_futex_call(struct state_builder *, struct builder_futex_call *, int32_t row, int64_t ts, uint32_t code,
    uint8_t operation);
void builder_futex_return(struct state_builder *, struct builder_futex_call *, int64_t ts, int64_t ret);
/* It ended without returning. */
void builder_futex_cut(struct state_builder *, struct builder_futex_call *, int64_t ts);
/* From ts on it is not known whether it goes on. */
void builder_futex_doubt(struct state_builder *, struct builder_futex_call *, int64_t ts);
/* What still goes on, at the end of the trace. */
void builder_futexes_finish(struct state_builder *);

#endif
