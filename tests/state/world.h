/* SPDX-License-Identifier: MIT */
/* Substitute for the tracker in tests of states: threads and names are made up, records come one by one. */
#ifndef WEFT_TESTS_STATE_WORLD_H
#define WEFT_TESTS_STATE_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel/kernel.h"
#include "state/state.h"

enum { WORLD_THREADS = 192, WORLD_CPUS = 4 }; /* rows 0 … 3 are the idle threads of CPUs 0 … 3 */
enum { NAME_NONE, NAME_READ, NAME_OPEN, NAME_ETH, NAME_DISK, NAME_TIMER_IRQ, NAME_IPI, NAME_FUTEX, NAMES };

struct kernel_tracker {
    struct kernel_thread threads[WORLD_THREADS];
    struct state_builder *builder;
    struct state_store *store;
    int32_t on[WORLD_CPUS];      /* row according to the records, -1 unknown */
    int frames[WORLD_CPUS];      /* number of interrupts and softirqs open on each CPU */
    int64_t first, last;
    char path[64];
};

/* Returns numbers in [0, below), the same ones for the same seed; 42 at first. */
extern uint64_t world_seed;
uint64_t world_random(uint64_t below);

void world_begin(struct kernel_tracker *);
void world_add(struct kernel_tracker *, struct kernel_record);
/* Writes the store of [first, last] and opens it. */
void world_end(struct kernel_tracker *);
void world_close(struct kernel_tracker *);

/* Records. Interrupt frames are named by serial numbers. */
void world_switch(struct kernel_tracker *, int64_t ts, int cpu, int32_t prev, int32_t next, int leave);
void world_switch_since(struct kernel_tracker *, int64_t ts, int cpu, int32_t prev, int32_t next, int leave,
    int64_t since);
void world_wake(struct kernel_tracker *, int64_t ts, int cpu, int32_t row);
void world_call(struct kernel_tracker *, int64_t ts, int cpu, uint32_t name);
/* Makes a call of NAME_FUTEX. */
void world_futex(struct kernel_tracker *, int64_t ts, int cpu, uint64_t address, uint8_t operation);
void world_return(struct kernel_tracker *, int64_t ts, int cpu, uint32_t name, int64_t ret);
/* Makes a call with `io` that has these arguments; path: if it opens a file. */
void world_io(struct kernel_tracker *, int64_t ts, int cpu, int io, int32_t fd, int64_t other, uint32_t flags,
    const char *path);
void world_io_return(struct kernel_tracker *, int64_t ts, int cpu, int io, int64_t ret);
void world_irq(struct kernel_tracker *, int64_t ts, int cpu, int kind, uint16_t number, uint32_t serial);
void world_lost(struct kernel_tracker *, int64_t ts, uint32_t cpu, int64_t begin, int64_t end, uint64_t count);
/* Returns all intervals of a row as "value:begin-end " texts, with the names of calls and interrupts as values; threads
 * and CPUs as @number; calls of futexes with their return values, "!" after those whose end was not seen. Valid until
 * the next call. */
const char *world_row(struct kernel_tracker *, int kind, int32_t number);

#endif
