/* SPDX-License-Identifier: MIT */
/* Thread and machine of each span, and its times by the clock of the machine's trace. Sources, the first one known
 * counts:
 * 1. a mark in a kernel trace (struct graph_mark), whatever the span says: its writer and time are certain. A mark in a
 *    user-space trace gives machine and times, but no thread;
 * 2. `pid` in the span's pid namespace, on its machine;
 * 3. `pid` on its machine: a thread outside of containers, or else the only one in a container that has it then.
 * The machine is that of `boot`, or else that of `host`. Kernel threads have no spans.
 *
 * LTTng's kernel traces use CLOCK_MONOTONIC. A span without marks may report times by this clock, on the boot of the
 * trace; these count, unless they are an hour from its wall-clock times: a container may have its own monotonic clock.
 *
 * A mark comes right after the span's begin was read from the wall clock, and right before its end was. So marks give
 * the distance between wall clock and trace clock. Spans with neither marks nor such times are shifted like the least
 * delayed of the eight located spans of their machine that are nearest in time. */
#ifndef WEFT_INDEX_SPAN_THREADS_H
#define WEFT_INDEX_SPAN_THREADS_H

#include "index/index.h"

/* Span as reported by its program. Texts are compared by address first: callers with many spans should share them. */
struct index_span {
    const uint8_t *trace_id;         /* 16 bytes */
    uint64_t id;                     /* id; its first byte is the most significant */
    const char *host, *boot;         /* names of the machine and of its boot (Linux' boot_id); NULL: unknown */
    int64_t pid, tid;                /* 0: unknown. tid counts if pid has such a thread: some have other numbers */
    uint32_t pid_ns;                 /* inode of the namespace that has pid; 0: unknown */
    int64_t begin_ns, end_ns;        /* times by the wall clock */
    int64_t monotonic_begin, monotonic_end; /* ns since the boot, by CLOCK_MONOTONIC; 0: unknown */
};
enum index_span_by { INDEX_SPAN_NOWHERE, INDEX_SPAN_BY_NUMBER, INDEX_SPAN_BY_NAMESPACE, INDEX_SPAN_BY_MARK };
struct index_span_thread {
    int32_t host, row;               /* -1: unknown; with a host, the times below are by its clock even without a row */
    uint8_t by;                      /* enum index_span_by: how the row was found */
    int64_t said_begin_ns, said_end_ns;
    int64_t begin_ns, end_ns;        /* times by the host's clock */
};
/* Returns a time of the span by its host's clock. */
int64_t index_span_time(const struct index_span_thread *, int64_t said_ns);

/* Range of the shifts of a host's spans. */
struct index_span_clock {
    size_t marked, monotonic;        /* numbers of spans located by marks, and by monotonic times */
    int64_t least_ns, most_ns;
};
struct index_joined {
    struct index_span_thread *threads;   /* indexed by span */
    struct index_span_clock *clocks;     /* indexed by host */
};
/* O((spans + threads + marks) log). Hosts without a graph have no threads. No experiment: no host. */
void index_join_spans(const struct experiment *, const struct index_span *, size_t n, struct index_joined *out);
void index_joined_fini(struct index_joined *);

#endif
