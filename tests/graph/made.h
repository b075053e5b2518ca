/* SPDX-License-Identifier: MIT */
/* Graphs of made traces. */
#ifndef WEFT_TESTS_GRAPH_MADE_H
#define WEFT_TESTS_GRAPH_MADE_H

#include "../kernel/maker.h"
#include "graph/graph.h"

/* State in which a switch leaves a thread. */
enum {
    READY = 0,
    SLEEP = 1,
    DISK = 2,
    STOPPED = 4,
    ZOMBIE = 0x20,
    IDLE = 0x402,
    PREEMPTED = 0x100,
    OLD_PREEMPTED = 0x800
};

/* Substitute for flow: called before the graph's builder gets a record; returns its packet_wake. May be NULL. */
typedef uint32_t made_hook(void *arg, const struct kernel_record *);
struct graph *made_graph(const struct maker *, size_t skip, bool lose_skipped, made_hook *, void *arg);
struct graph *made_graph_of(const struct ctf_trace *, made_hook *, void *arg);
/* Returns the graph of the whole trace, checked (made_check); frees the maker. */
struct graph *made_whole(struct maker *);
/* Returns the row of the tid's life number n (0 first), or -1. tid 0: the idle row of CPU n. */
int32_t made_row(const struct graph *, int tid, int life);
/* Writes a row as "10 running 20 blocked(futex)<7@35 35 …": begins, states, details, causes (<TID@TS wakeup, <fork TID,
 * <packet N, <terminal, <lost), end. */
const char *made_text(const struct graph *, int32_t row, char *buf, size_t n);
/* Fails unless made_text of life `life` of the thread is so. */
void made_expect(const struct graph *, int tid, int life, const char *want);
/* Checks that every row is covered from its begin to its end, and that search, totals and occupants agree with the
 * intervals. */
void made_check(const struct graph *);
/* Checks graphs of traces that contradict themselves: a CPU and a row may disagree on who ran. */
void made_check_cover(const struct graph *);

#endif
