/* SPDX-License-Identifier: MIT */
/* Private to state: states of threads while records arrive. */
#ifndef WEFT_STATE_THREADS_H
#define WEFT_STATE_THREADS_H

#include "state/futexes.h"

struct state_builder;

enum thread_state { THREAD_UNSEEN, THREAD_UNKNOWN, THREAD_BLOCKED, THREAD_READY, THREAD_RUNNING, THREAD_GONE };
/* Hundreds of threads take turns, so the most used fields come first. */
struct builder_thread {
    struct series series;
    uint64_t call_latency, wake_latency, lock_latency; /* handles, 0 none */
    uint32_t call;           /* code of the system call in progress, 0 none */
    uint8_t state;           /* enum thread_state */
    bool idle;
    bool mode_known;         /* `call` is certain, not only likely */
    bool stayed;             /* the end of its wait shows that it was on no other CPU meanwhile */
    int32_t cpu;             /* CPU, when running */
    int32_t left;            /* last CPU that it was seen to leave, or -1 */
    int32_t moved_from;      /* CPU that it was not seen to leave before it came to another one at moved_ts; else -1 */
    int64_t moved_ts;
    int64_t mode_since;      /* unless mode_known: first time it was seen to run since */
    struct state_builder_futex_call futex;
    int32_t idle_cpu;        /* CPU of an idle thread, else -1 */
    uint32_t losses;         /* losses reported when it last left a CPU or was woken */
};

void state_builder_add_threads(struct state_builder *, size_t n);
void state_builder_thread_arrive(struct state_builder *, int32_t row, int32_t cpu, int64_t ts, int32_t priority);
void state_builder_thread_leave(struct state_builder *, int32_t row, int32_t cpu, int64_t ts, uint8_t leave);
void state_builder_thread_interrupt(struct state_builder *, int32_t row, int32_t cpu, int64_t ts, bool interrupted);
/* futex: see kernel_record. */
void state_builder_thread_call(struct state_builder *, int32_t row, int32_t cpu, int64_t ts, uint32_t code,
    uint64_t futex, uint8_t operation);
void state_builder_thread_return(struct state_builder *, int32_t row, int32_t cpu, int64_t ts, uint32_t code,
    int64_t ret);
/* KERNEL_WAKE, _WAKE_NEW, _WAKEUP. */
void state_builder_thread_wake(struct state_builder *, const struct kernel_record *);
void state_builder_thread_exit(struct state_builder *, int32_t row, int64_t ts);
void state_builder_thread_free(struct state_builder *, int32_t row, int64_t ts);
void state_builder_thread_fork(struct state_builder *, int32_t parent, int32_t child, int64_t ts);
void state_builder_thread_dumped(struct state_builder *, int32_t row, int64_t ts, uint8_t status);
/* Makes the thread's states in these times unknown, and with them the duration of its calls and its wait. */
void state_builder_thread_doubt(struct state_builder *, struct builder_thread *, int64_t begin, int64_t end);
void state_builder_thread_lose(struct state_builder *, int32_t row, int32_t cpu, int64_t ts);
/* Corrects the past: `row` had `cpu` since then, within a system call unless first_call is 0. */
void state_builder_thread_was_there(struct state_builder *, int32_t row, int32_t cpu, int64_t since,
    uint32_t first_call);

#endif
