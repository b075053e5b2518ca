/* SPDX-License-Identifier: MIT */
/* Execution graph of one host: for every row (one life of one thread) the sequence of its states, and for every state
 * that is a wait the cause that ended it. Columnar, mapped from a store, immutable, O(log n) to find a time in a row,
 * O(1) to its neighbours. Times are ns of the host's own clock. Event rules: reference/critical-path.md 1.3, 1.4, with
 * the defects of 1.7 cured and the rules of 8. */
#ifndef WEFT_GRAPH_GRAPH_H
#define WEFT_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/store.h"

/* Grows whenever the same records give another graph: stores are then built again. */
enum { GRAPH_RULES_VERSION = 2 };

/* States of rows and of path segments. The names are the contract of `critpath --format json`. */
#define GRAPH_STATES(X) \
    X(UNKNOWN, "unknown") X(RUNNING, "running") X(PREEMPTED, "preempted") X(INTERRUPTED, "interrupted") \
    X(BLOCKED, "blocked") X(TIMER, "timer") X(NETWORK, "network") X(BLOCK_DEVICE, "block-device") \
    X(USER_INPUT, "user-input") X(IPI, "ipi") X(HYPERVISOR, "hypervisor") X(STOLEN, "stolen")
enum graph_state {
#define X(id, name) GRAPH_##id,
    GRAPH_STATES(X)
#undef X
    GRAPH_STATE_COUNT
};
const char *graph_state_name(int state);
/* Has a CPU, or wants one. */
static inline bool graph_is_awake(int state)
{
    return state == GRAPH_RUNNING || state == GRAPH_PREEMPTED || state == GRAPH_INTERRUPTED || state == GRAPH_STOLEN ||
        state == GRAPH_HYPERVISOR;
}

/* What ended a wait. */
enum graph_cause_kind {
    GRAPH_CAUSE_NONE,     /* nobody seen (lost wake, untraced) */
    GRAPH_CAUSE_TERMINAL, /* the state names it: timer, disk, interrupt; nothing to follow */
    GRAPH_CAUSE_WAKEUP,   /* a thread of this host: `row` at `ts` */
    GRAPH_CAUSE_FORK,     /* first interval of a row: forked by `row` at `ts` */
    GRAPH_CAUSE_PACKET,   /* a received packet: `wake` in the flow stores' table of wakes */
    GRAPH_CAUSE_LOST      /* events were lost just there */
};
#define GRAPH_NO_WAKE UINT64_MAX
struct graph_cause {
    uint8_t kind;
    int32_t row;
    uint64_t wake;
    int64_t ts;
};

enum graph_row_kind { GRAPH_ROW_THREAD, GRAPH_ROW_IDLE };
struct graph_row {
    int32_t tid, tgid, ppid, parent_row;
    int32_t idle_cpu; /* idle rows: their CPU, else -1 */
    int32_t vtid;
    uint32_t pid_ns;
    int64_t begin, end;
    const char *name; /* never NULL */
    int32_t container; /* that it is in, or was in at last: a number in graph_containers, or GRAPH_NO_CONTAINER */
    unsigned born : 1, died : 1; /* begin is a fork, end is an exit */
};

/* One state of a row: [begin, end). */
struct graph_interval {
    int64_t begin, end;
    uint8_t state;      /* enum graph_state */
    int32_t cpu;        /* running: where; preempted: the CPU it waits for if known; else -1 */
    const char *detail; /* "nanosleep", "vda", "irq 4 serial", "throttled", "by 31 kworker/0:2"; or NULL */
};

struct chunk;
struct graph;
enum { GRAPH_MOST_CHUNKS = 1 << 14 };
/* Opens a store written by graph_builder_write. All below is safe, whatever it holds: wrong contents give wrong answers
 * only, and a row that makes no sense has no states. Checksums are not compared: whoever cannot know that the file is
 * as it was written calls store_check (base/store.h) before. O(CPUs). */
int graph_open(const char *path, struct graph **out, struct err *e);
/* The same for the stores of n chunks (base/chunks.h) of one recording, in order of time: one graph of the host's rows,
 * which is what one store of all of it would be. Where a chunk is left out (chunk[i].end < chunk[i + 1].begin), what
 * was decided in it is unknown, because of lost events, and the time between counts among the losses. An error names
 * the file. O(chunks · CPUs), and a look at the numbers of all chunks' rows; who asks for a row first pays
 * O(chunks that have it) more, and finding a time takes O(log chunks) more than in one store. */
int graph_open_list(const struct chunk *, size_t n, struct graph **out, struct err *e);
/* Whether everything in the file, or in the part of `in` (base/chunks.h), makes sense, checksums aside. ERR_FORMAT: no,
 * and what does not. Reads all of it. */
int graph_check(const char *path, const struct store *in, struct err *e);
void graph_close(struct graph *);
/* ERR_LOST when a file was cut off while it was in use: what was read of it may be wrong, but led to no access
 * outside. */
int graph_intact(const struct graph *, struct err *e);

size_t graph_rows(const struct graph *);
/* With its last name and tid. */
void graph_row(const struct graph *, int32_t row, struct graph_row *out);
/* Namespaces in which threads were shut off from the machine's (kernel_tracker_container). Until the graph
 * is closed. */
enum { GRAPH_NO_CONTAINER = -1 };
struct graph_container {
    int64_t since;        /* ns: first known; with tid and kind that is who it is */
    int32_t tid;          /* of its first thread as far as known */
    uint8_t kind;         /* enum kernel_space_kind */
    uint32_t pid_ns, net_ns, uts_ns, cgroup_ns; /* numbers of inodes, 0 not told */
    bool is_counted;      /* it is the container of a row; else of one that is in another one since */
    const char *name;     /* for people, mostly no other's: what it is called, else its first process and its number */
    const char *called;   /* by the trace; "": not told */
    const char *first;    /* its first process; "": not told */
};
size_t graph_containers(const struct graph *, const struct graph_container **out);
/* Is it meant by a shell pattern of its name, or of what it is called? */
bool graph_container_is(const struct graph *, int32_t container, const char *pattern);
/* With the name and tid that it had for most of [begin, end], at the instant when they are equal. Names change by exec
 * and prctl, the tid when a thread other than the first of its process calls exec. O(log of all changes). */
void graph_row_then(const struct graph *, int32_t row, int64_t begin, int64_t end, struct graph_row *out);
/* The names and tids that a row had, in order of time, until when each; the last until INT64_MAX. False: there are no
 * more. O(log of all changes) */
struct graph_name { int64_t until; int32_t tid; const char *name; };
bool graph_row_name(const struct graph *, int32_t row, size_t i, struct graph_name *out);
/* Which of these, in order of time, graph_row_then tells of. n > 0 */
size_t graph_name_then(const struct graph_name *, size_t n, int64_t begin, int64_t end);
/* Is the row meant by a TID or a name, any that it ever had? */
bool graph_row_is(const struct graph *, int32_t row, const char *thread);
/* Intervals of a row in time order; together they cover [begin, end] of the row without gap or overlap. Each is named
 * by a number below 1 << 46 that means nothing else. GRAPH_NO_INTERVAL: there is none; asked of it, all say nothing. */
#define GRAPH_NO_INTERVAL UINT64_MAX
uint64_t graph_first(const struct graph *, int32_t row);
uint64_t graph_last(const struct graph *, int32_t row);
uint64_t graph_next(const struct graph *, int32_t row, uint64_t interval);
uint64_t graph_previous(const struct graph *, int32_t row, uint64_t interval);
/* The interval with begin < ts <= end (the one that explains what led to ts). O(log n). */
uint64_t graph_find(const struct graph *, int32_t row, int64_t ts);
void graph_interval(const struct graph *, int32_t row, uint64_t interval, struct graph_interval *out);
/* The same, but of a preempted state without who held the CPU, and of a thread's without the CPU: these take longer to
 * find than all the rest. */
void graph_interval_bare(const struct graph *, int32_t row, uint64_t interval, struct graph_interval *out);
/* What graph_find finds, and what graph_interval_bare says of it, which is less work than both; none: *out is left as
 * it was. */
uint64_t graph_find_bare(const struct graph *, int32_t row, int64_t ts, struct graph_interval *out);
/* What ended an interval (waits), or what created the row (the first of a row born in the trace: FORK). */
void graph_interval_cause(const struct graph *, int32_t row, uint64_t interval, struct graph_cause *out);
void graph_row_origin(const struct graph *, int32_t row, struct graph_cause *out);
/* Sum of ns per state of a row within [begin, end]. Reads the columns at the two ends only, where they lie within a
 * chunk. */
void graph_row_totals(const struct graph *, int32_t row, int64_t begin, int64_t end, int64_t totals[GRAPH_STATE_COUNT]);
/* The same of a row that is meant. False: it is not, or was not there within [begin, end]. */
struct graph_choice {
    const char *thread;    /* graph_row_is; NULL: any */
    const char *container; /* graph_container_is; NULL: any, or none */
    bool idle;             /* idle threads too */
    int64_t begin, end;
};
struct graph_time {
    struct graph_row row;
    int64_t begin, end;    /* of what it was there of [begin, end] */
    const char *container; /* the name of its container; "": none */
    int64_t totals[GRAPH_STATE_COUNT];
};
bool graph_row_time(const struct graph *, int32_t row, const struct graph_choice *, struct graph_time *out);
/* The row that had `cpu` at ts, or -1. Who held the CPU while another waited for it. */
int32_t graph_cpu_occupant(const struct graph *, uint32_t cpu, int64_t ts);
size_t graph_cpus(const struct graph *);
/* Periods in which events were lost, in time order. A count of 0: of a chunk that is left out, or of a CPU whose stream
 * is missing. */
enum graph_absent { GRAPH_NOT_ABSENT, GRAPH_ABSENT, GRAPH_ABSENT_BY_TARGET }; /* the latter: only events show it */
struct graph_loss {
    int64_t begin, end;
    uint32_t cpu, absent; /* enum graph_absent */
    uint64_t count;
};
size_t graph_losses(const struct graph *, const struct graph_loss **out);

/* Where weft-span told the kernel's trace that a span begins or ends, in order of time. `row` wrote it (-1: not known);
 * `process` as in struct kernel_mark. */
struct graph_mark {
    int64_t ts;
    uint8_t trace[16], span[8];
    int32_t row, process;
    uint32_t is_end, reserved; /* the struct is written as it is */
};
size_t graph_marks(const struct graph *, const struct graph_mark **out);

/* ---- building ---- */
struct carry;
struct kernel_record;
struct kernel_tracker;
struct graph_builder *graph_builder_new(const struct kernel_tracker *);
/* packet_wake: what flow_builder_add returned for the record. */
void graph_builder_add(struct graph_builder *, const struct kernel_record *, uint64_t packet_wake);
/* Visits what is not decided yet (base/carry.h). LOAD: before the first record. */
void graph_builder_carry(struct graph_builder *, struct carry *);
/* The recording goes on at `to` after a chunk that is missing: as if all CPUs had lost events. After LOAD. */
void graph_builder_gap(struct graph_builder *, int64_t from, int64_t to);
/* After SAVE: writes what is decided of [the cut before, at), and leaves what was saved to the next chunk. The builder
 * can only be freed then. */
int graph_builder_cut(struct graph_builder *, int64_t at, struct store_place, uint64_t key, struct err *e);
/* After kernel_tracker_finish: closes all rows at `end` and writes the store. */
int graph_builder_write(struct graph_builder *, int64_t end, struct store_place, uint64_t key, struct err *e);
void graph_builder_free(struct graph_builder *);

#endif
