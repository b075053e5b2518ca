/* SPDX-License-Identifier: MIT */
/* Which thread of which machine had a span, and when that was by the clock of the machine's trace. The first that is
 * known counts:
 * 1. a mark in a kernel trace (struct graph_mark), whatever the span says: who wrote it is known there, and when. One
 *    in a user-space trace tells the machine and the times, but not who;
 * 2. `pid` in the pid namespace that the span tells, on its machine;
 * 3. `pid` on its machine: of a thread outside of containers, or else of the only one in a container that has it then.
 * Its machine is that of `boot`, or else that of `host`. Threads of the kernel itself have no spans.
 *
 * LTTng's kernel traces are by CLOCK_MONOTONIC. Of spans without marks that tell theirs, on the boot of the trace, the
 * times are those; unless they are an hour from the wall clock's: a container may have a monotonic clock of its own.
 *
 * A mark comes right after a span's begin was taken from the wall clock, and right before its end was. So marks tell
 * how far the wall clock is from the trace's; spans without either of the same machine are moved as the least delayed
 * of the eight nearest in time tells. */
#ifndef WEFT_INDEX_SPAN_THREADS_H
#define WEFT_INDEX_SPAN_THREADS_H

#include "index/index.h"

/* What a span says of itself. Texts are compared by address first: who asks for many has one of each. */
struct index_span {
    const uint8_t *trace_id;         /* 16 bytes */
    uint64_t id;                     /* its first byte the highest */
    const char *host, *boot;         /* names of the machine and of its boot (Linux' boot_id); NULL: not told */
    int64_t pid, tid;                /* 0: not told. tid counts if pid has such a thread: some have other numbers */
    uint32_t pid_ns;                 /* inode of the namespace that has pid; 0: not told */
    int64_t begin_ns, end_ns;        /* by the wall clock */
    int64_t monotonic_begin, monotonic_end; /* ns since the boot, by CLOCK_MONOTONIC; 0: not told */
};
enum index_span_by { INDEX_SPAN_NOWHERE, INDEX_SPAN_BY_NUMBER, INDEX_SPAN_BY_NAMESPACE, INDEX_SPAN_BY_MARK };
struct index_span_thread {
    int32_t host, row;               /* -1: not known; with a host the times below are of its clock all the same */
    uint8_t by;                      /* enum index_span_by: how the row was found */
    int64_t said_begin_ns, said_end_ns;
    int64_t begin_ns, end_ns;        /* by the host's clock */
};
/* A time of the span by its host's clock. */
int64_t index_span_time(const struct index_span_thread *, int64_t said_ns);

/* How much was added to the times of a host's spans. */
struct index_span_clock {
    size_t marked, monotonic;        /* of how many that is known, and how */
    int64_t least_ns, most_ns;
};
struct index_joined {
    struct index_span_thread *threads;   /* by span */
    struct index_span_clock *clocks;     /* by host */
};
/* O((spans + threads + marks) log). Hosts without a graph have no threads. No experiment: no host. */
void index_join_spans(const struct experiment *, const struct index_span *, size_t n, struct index_joined *out);
void index_joined_fini(struct index_joined *);

#endif
