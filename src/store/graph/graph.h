/* SPDX-License-Identifier: MIT */
/* Execution graph of one host: for every row (one life of one thread) the sequence of its states, and for every waiting
 * state the cause of its end. Columnar, mapped from a store, immutable; O(log n) to find a time in a row, O(1) to its
 * neighbours. Times are ns of the host's own clock. Event rules: reference/critical-path.md 1.3, 1.4, with the defects
 * of 1.7 fixed and the rules of 8. */
#ifndef WEFT_GRAPH_GRAPH_H
#define WEFT_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/store.h"

/* Version of the rules: increased whenever the same records give another graph, so that stores are built again. */
enum { GRAPH_RULES_VERSION = 2 };
/* The same for call stacks: only stores of traces that have some are built again. */
enum { GRAPH_STACKS_VERSION = 1 };

/* States of rows and of path segments. The names are part of the output format of `critpath --format json`. */
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
/* Returns whether the row has a CPU, or waits for one. */
static inline bool graph_is_awake(int state)
{
    return state == GRAPH_RUNNING || state == GRAPH_PREEMPTED || state == GRAPH_INTERRUPTED || state == GRAPH_STOLEN ||
        state == GRAPH_HYPERVISOR;
}

/* Cause of the end of a wait. */
enum graph_cause_kind {
    GRAPH_CAUSE_NONE,     /* no cause seen (lost wake, untraced) */
    GRAPH_CAUSE_TERMINAL, /* the state is the cause: timer, disk, interrupt; nothing to follow */
    GRAPH_CAUSE_WAKEUP,   /* thread of this host: `row` at `ts` */
    GRAPH_CAUSE_FORK,     /* first interval of a row: fork by `row` at `ts` */
    GRAPH_CAUSE_PACKET,   /* received packet: `wake` in the flow stores' table of wakes */
    GRAPH_CAUSE_LOST      /* events were lost at this time */
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
    const char *name; /* name, never NULL */
    int32_t container; /* present or last container: a number in graph_containers, or GRAPH_NO_CONTAINER */
    unsigned born : 1, died : 1; /* begin is a fork, end is an exit */
};

/* State of a row in [begin, end). */
struct graph_interval {
    int64_t begin, end;
    uint8_t state;      /* enum graph_state */
    int32_t cpu;        /* running: the CPU; preempted: the CPU it waits for if known; else -1 */
    const char *detail; /* "nanosleep", "vda", "irq 4 serial", "throttled", "by 31 kworker/0:2"; or NULL */
};

struct chunk;
struct graph;
enum { GRAPH_MOST_CHUNKS = 1 << 14 };
/* Opens a store written by graph_builder_write. O(CPUs). All functions below are safe for any contents: wrong contents
 * give wrong answers only, and an invalid row has no states. Checksums are not compared: a caller that cannot trust the
 * file calls store_check (base/store.h) first. */
int graph_open(const char *path, struct graph **out, struct err *e);
/* Opens the stores of n chunks (base/chunks.h) of one recording, in order of time, as one graph of the host's rows,
 * equal to one store of the whole recording. Where a chunk is missing (chunk[i].end < chunk[i + 1].begin), its
 * decisions are unknown because of lost events, and its time counts among the losses. Errors name the file. O(chunks ·
 * CPUs), plus a pass over the numbers of all chunks' rows. The first request for a row takes O(chunks that have it)
 * more, and finding a time O(log chunks) more than in one store. */
int graph_open_list(const struct chunk *, size_t n, struct graph **out, struct err *e);
/* Checks all of the file, or of the part of `in` (base/chunks.h), except checksums. ERR_FORMAT: damaged; the message
 * says where. Reads all of it. */
int graph_check(const char *path, const struct store *in, struct err *e);
void graph_close(struct graph *);
/* ERR_LOST if a file was cut off while in use: what was read may be wrong, but led to no access outside of it. */
int graph_intact(const struct graph *, struct err *e);

size_t graph_rows(const struct graph *);
/* Row with its last name and tid. */
void graph_row(const struct graph *, int32_t row, struct graph_row *out);
/* Containers: namespaces that separate threads from the machine's (kernel_tracker_container). Valid until the graph is
 * closed. */
enum { GRAPH_NO_CONTAINER = -1 };
struct graph_container {
    int64_t since;        /* ns: first known; identifies it, together with tid and kind */
    int32_t tid;          /* tid of its first known thread */
    uint8_t kind;         /* enum kernel_space_kind */
    uint32_t pid_ns, net_ns, uts_ns, cgroup_ns; /* numbers of inodes; 0: not reported */
    bool is_counted;      /* it is the container of a row; otherwise its rows have moved to another one */
    const char *name;     /* name for people, usually unique: `called`, else its first process and its number */
    const char *called;   /* name in the trace; "": not reported */
    const char *first;    /* name of its first process; "": not reported */
};
size_t graph_containers(const struct graph *, const struct graph_container **out);
/* Returns whether a shell pattern matches its name, or `called`. */
bool graph_container_is(const struct graph *, int32_t container, const char *pattern);
/* Row with the name and tid that it had for most of [begin, end], or at the instant if they are equal. Names change by
 * exec and prctl; the tid changes when a thread other than the first of its process calls exec. O(log of all
 * changes). */
void graph_row_then(const struct graph *, int32_t row, int64_t begin, int64_t end, struct graph_row *out);
/* The i-th name and tid of a row, in order of time, with its end; the last one's is INT64_MAX. False: no more. O(log of
 * all changes) */
struct graph_name { int64_t until; int32_t tid; const char *name; };
bool graph_row_name(const struct graph *, int32_t row, size_t i, struct graph_name *out);
/* Index of the one that graph_row_then returns; names in order of time, n > 0. */
size_t graph_name_then(const struct graph_name *, size_t n, int64_t begin, int64_t end);
/* Returns whether a TID or any name that the row ever had matches. */
bool graph_row_is(const struct graph *, int32_t row, const char *thread);
/* Intervals of a row in order of time; together they cover [begin, end] of the row without gap or overlap. Each is
 * identified by an opaque number below 1 << 46. GRAPH_NO_INTERVAL: none; functions accept it and return nothing. */
#define GRAPH_NO_INTERVAL UINT64_MAX
uint64_t graph_first(const struct graph *, int32_t row);
uint64_t graph_last(const struct graph *, int32_t row);
uint64_t graph_next(const struct graph *, int32_t row, uint64_t interval);
uint64_t graph_previous(const struct graph *, int32_t row, uint64_t interval);
/* Interval with begin < ts <= end (the one that explains what led to ts). O(log n). */
uint64_t graph_find(const struct graph *, int32_t row, int64_t ts);
void graph_interval(const struct graph *, int32_t row, uint64_t interval, struct graph_interval *out);
/* Interval without the slow parts: for a preempted state, the thread that held the CPU and, for rows of threads, the
 * CPU. */
void graph_interval_bare(const struct graph *, int32_t row, uint64_t interval, struct graph_interval *out);
/* Combines graph_find and graph_interval_bare, which is faster than both; if there is none, *out is unchanged. */
uint64_t graph_find_bare(const struct graph *, int32_t row, int64_t ts, struct graph_interval *out);
/* Cause of the end of an interval (waits), or of the row's creation (the first of a row born in the trace: FORK). */
void graph_interval_cause(const struct graph *, int32_t row, uint64_t interval, struct graph_cause *out);
void graph_row_origin(const struct graph *, int32_t row, struct graph_cause *out);
/* Sum of ns per state of a row within [begin, end]. Within a chunk, reads the columns at the two ends only. */
void graph_row_totals(const struct graph *, int32_t row, int64_t begin, int64_t end, int64_t totals[GRAPH_STATE_COUNT]);
/* Choice of rows; graph_row_chosen returns the sums of one. False: not chosen, or not there within [begin, end]. */
struct graph_choice {
    const char *thread;    /* see graph_row_is; NULL: any */
    const char *container; /* see graph_container_is; NULL: any, or none */
    bool idle;             /* includes idle threads */
    int64_t begin, end;
};
struct graph_time {
    struct graph_row row;
    int64_t begin, end;    /* part of [begin, end] in which it existed */
    const char *container; /* name of its container; "": none */
    int64_t totals[GRAPH_STATE_COUNT];
};
bool graph_row_time(const struct graph *, int32_t row, const struct graph_choice *, struct graph_time *out);
/* Row that had `cpu` at ts, or -1: the one that others waited for. */
int32_t graph_cpu_occupant(const struct graph *, uint32_t cpu, int64_t ts);
size_t graph_cpus(const struct graph *);
/* Periods in which events were lost, in order of time. A count of 0: a missing chunk, or a CPU whose stream is
 * missing. */
enum graph_absent { GRAPH_NOT_ABSENT, GRAPH_ABSENT, GRAPH_ABSENT_BY_TARGET }; /* BY_TARGET: shown by events only */
struct graph_loss {
    int64_t begin, end;
    uint32_t cpu, absent; /* enum graph_absent */
    uint64_t count;
};
size_t graph_losses(const struct graph *, const struct graph_loss **out);

/* Begins and ends of spans that weft-span reported to the kernel's trace, in order of time. `row` wrote it (-1:
 * unknown); `process`: see struct kernel_mark. */
struct graph_mark {
    int64_t ts;
    uint8_t trace[16], span[8];
    int32_t row, process;
    uint32_t is_end, reserved; /* zeros: the struct is written to files */
};
size_t graph_marks(const struct graph *, const struct graph_mark **out);

/* Call stacks recorded with events of a row: addresses, the innermost first. They live as long as the graph. cut: outer
 * frames are missing. samples: events that had them. */
enum { GRAPH_MOST_FRAMES = 128 };
struct graph_stack {
    const uint64_t *user, *kernel;
    uint16_t n_user, n_kernel;
    bool user_cut, kernel_cut;
    uint32_t samples;
};
bool graph_has_stacks(const struct graph *);
/* Stack of the wait that begins at `begin`: the row left its CPU there. O(chunks with the row · log samples) */
bool graph_wait_stack(const struct graph *, int32_t row, int64_t begin, struct graph_stack *out);
/* Most frequent stack of the row in (begin, end], while it ran: of the last GRAPH_SAMPLES_COUNTED events that have one.
 * The choice among equally frequent ones does not depend on cuts. */
enum { GRAPH_SAMPLES_COUNTED = 4096 };
bool graph_running_stack(const struct graph *, int32_t row, int64_t begin, int64_t end, struct graph_stack *out);
/* Number of stacks that are cut (in each chunk); of events whose stacks are missing for limits of the store. */
void graph_stack_totals(const struct graph *, uint64_t *cut, uint64_t *left_out);

/* ---- building ---- */
struct carry;
struct kernel_record;
struct kernel_tracker;
struct graph_builder *graph_builder_new(const struct kernel_tracker *);
/* packet_wake: return value of flow_builder_add for the record. */
void graph_builder_add(struct graph_builder *, const struct kernel_record *, uint64_t packet_wake);
/* Visits everything undecided (base/carry.h). LOAD: before the first record. */
void graph_builder_carry(struct graph_builder *, struct carry *);
/* Visits the call stacks of system calls in progress, as the last of all builders: nothing is saved without any. */
void graph_builder_carry_stacks(struct graph_builder *, struct carry *);
/* Continues the recording at `to` after a missing chunk, as if all CPUs had lost events. Call it after LOAD. */
void graph_builder_gap(struct graph_builder *, int64_t from, int64_t to);
/* Writes what is decided of [the cut before, at), and leaves the saved state to the next chunk. Call it after SAVE.
 * Afterwards the builder can only be freed. */
int graph_builder_cut(struct graph_builder *, int64_t at, struct store_place, uint64_t key, struct err *e);
/* Closes all rows at `end` and writes the store. Call it after kernel_tracker_finish. */
int graph_builder_write(struct graph_builder *, int64_t end, struct store_place, uint64_t key, struct err *e);
void graph_builder_free(struct graph_builder *);

#endif
