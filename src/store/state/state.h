/* SPDX-License-Identifier: MIT */
/* Histories for views, one store per trace, built in the same pass as graph and flows: states of threads, CPUs,
 * interrupts; cumulative counters; latencies. Columnar, mapped, immutable, thread-safe to read. A sampled query costs
 * O(samples), whatever the length of the trace. Times are ns of the host's own clock. State sets follow what users of
 * Trace Compass know. */
#ifndef WEFT_STATE_STATE_H
#define WEFT_STATE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/figures.h"
#include "base/store.h"

/* Grows whenever the same records give other histories: stores are then built again. */
enum { STATE_RULES_VERSION = 13 };

enum state_value {
    STATE_NONE,              /* nothing there: not yet born, already dead, no interrupt */
    /* threads */
    STATE_USERMODE, STATE_SYSCALL, STATE_INTERRUPTED, STATE_WAIT_FOR_CPU, STATE_WAIT_BLOCKED,
    STATE_WAIT_UNKNOWN,      /* the state dump found it waiting; for what is not known */
    /* CPUs: IDLE, USERMODE, SYSCALL, IRQ, SOFTIRQ. The idle threads' rows: IDLE, INTERRUPTED, WAIT_FOR_CPU */
    STATE_IDLE, STATE_IRQ, STATE_SOFTIRQ,
    STATE_SOFTIRQ_RAISED,    /* softirq rows: wanted, not yet running */
    STATE_ACTIVE,            /* IRQ and softirq rows: its handler runs. CPU_THREAD: a thread that is not idle */
    STATE_UNKNOWN,           /* it is there, but what it does is not known: before it was first seen, lost events */
    /* rows of futexes */
    STATE_FUTEX_WAIT, STATE_FUTEX_WAKE, /* within a call that waits for it, that wakes others */
    STATE_VALUES
};

enum state_kind {
    STATE_THREAD, STATE_CPU, STATE_CPU_THREAD, STATE_CPU_IRQ, STATE_CPU_SOFTIRQ, STATE_IRQ_LINE, STATE_SOFTIRQ_VECTOR,
    STATE_FUTEX_USER, STATE_FUTEX_WAITS, STATE_FUTEX_WAKES, STATE_IRQ_HANDLERS, STATE_KINDS
};
/* A row of states. Rows of one kind ascend by number:
 * - THREAD: the row of kernel and graph, and the same as the row's index
 * - CPU: the CPU. CPU_THREAD: likewise; shows which thread has it (interval.thread)
 * - CPU_IRQ, CPU_SOFTIRQ: cpu << 16 | irq or vector
 * - IRQ_LINE, SOFTIRQ_VECTOR: the irq or vector; over all CPUs (when several handle it, the one that began last). Made
 *   from the rows of the CPUs when asked for, which costs as much as asking for all of those
 * - FUTEX_USER: the row's index; what one thread does with one futex. name: the futex as LATENCY_LOCK names it
 * - FUTEX_WAITS, FUTEX_WAKES, IRQ_HANDLERS: the track, from 0. Each wait, wake or handler has the lowest track that is
 *   free when it begins, so there are as many as go on at once
 * Interrupts that have no number on the host (between processors: "reschedule") have made-up ones from STATE_IPI. */
enum { STATE_IPI = 0x8000 };
struct state_row {
    uint8_t kind;
    int32_t number;
    const char *name;        /* thread name, "CPU 0", irq's name, "NET_RX"; never NULL; lives as long as the store */
    size_t intervals;        /* stored ones: what a full read costs */
    int64_t begin, end;      /* no states outside. Threads: birth and death, or the trace's begin and end */
    int32_t thread;          /* FUTEX_USER: the thread's row; else -1 */
    bool waits;              /* FUTEX_USER: at least once */
};

struct state_interval {
    int64_t begin, end;      /* true bounds; end = begin of the next */
    uint8_t value;           /* enum state_value */
    int32_t thread;          /* CPU, CPU_THREAD: row of the thread that has the CPU; futexes: whose call; else -1 */
    int32_t cpu;             /* IRQ_LINE, SOFTIRQ_VECTOR, IRQ_HANDLERS: the CPU that handles it; else -1 */
    /* SYSCALL: of the call ("openat"); IRQ, SOFTIRQ of CPU rows: its own; FUTEX_USER: the operation ("WAIT"); tracks of
     * futexes: the futex; else NULL. */
    const char *name;
    /* Counters: the value; FUTEX_USER: what the call returned; tracks of futexes: the FUTEX_USER row; else 0. */
    int64_t amount;
    bool cut;                /* FUTEX_USER, IRQ_HANDLERS: it was not seen to end */
};

struct chunk;
struct state_store;
/* Checks what leads from one table to another, in O(rows): all below is then safe, whatever the rest holds, and wrong
 * contents give wrong answers only. Checksums are not compared: whoever cannot know that the file is as it was written
 * calls store_check (base/store.h) before. */
int state_open(const char *path, struct state_store **out, struct err *e);
/* Whether everything in the file, or in the part of `in` (base/chunks.h), makes sense, checksums aside. ERR_FORMAT: no,
 * and what does not. Reads all of it. */
int state_check(const char *path, const struct store *in, struct err *e);
/* The stores of n chunks (base/chunks.h) of one recording, in order of time: read as one store of the host's rows,
 * which says what one store of all of it would. Where a chunk is left out (chunk[i].end < chunk[i + 1].begin), rows are
 * unknown and counters stand still. An error names the file. O(rows of all chunks); finding a time takes O(log chunks)
 * more. */
int state_open_list(const struct chunk *, size_t n, struct state_store **out, struct err *e);
void state_close(struct state_store *);
int state_intact(const struct state_store *, struct err *e); /* as graph_intact */
void state_populate(const struct state_store *);             /* as file_map_populate */
/* The time covered: what was given to state_builder_write. */
void state_span(const struct state_store *, int64_t *begin, int64_t *end);

size_t state_rows(const struct state_store *, int kind);
void state_row(const struct state_store *, int kind, size_t i, struct state_row *out);
/* Index of the row of that kind with that number, or -1. */
int64_t state_find_row(const struct state_store *, int kind, int32_t number);
/* The distinct states in force at the (ascending) times, in time order, with their true bounds; STATE_NONE ones too.
 * Returns how many (at most n). Before a row's begin and after its end there is one STATE_NONE each up to the span's
 * bounds. Intervals do not hold their end, but the span's last instant counts as the one before it; times outside the
 * span have no state. */
size_t state_sample(const struct state_store *, int kind, size_t row, const int64_t *times, size_t n,
    struct state_interval *out);
bool state_at(const struct state_store *, int kind, size_t row, int64_t t, struct state_interval *out);
/* Intervals that intersect [begin, end], at most max, in order (for DEEP filters and exports); to go on, call with
 * begin = end of the last one, until nothing comes. */
size_t state_range(const struct state_store *, int kind, size_t row, int64_t begin, int64_t end,
    struct state_interval *out, size_t max);
/* The CPU that a thread has at t, or -1. `near`: the CPU to look at first, since the thread may have it still; or -1.
 * O(CPUs): to be called only where state_may_have_cpu holds. */
int32_t state_thread_cpu(const struct state_store *, size_t row, int64_t t, int32_t near);
static inline bool state_may_have_cpu(uint8_t value)
{
    return value == STATE_USERMODE || value == STATE_SYSCALL || value == STATE_INTERRUPTED || value == STATE_IDLE ||
           value == STATE_UNKNOWN;
}

/* ---- counters: cumulative values, so that a difference over an interval is exact ---- */
enum state_counter_kind {
    STATE_CPU_TIME,      /* ns the thread `number` (row) ran; number -1 - cpu: ns that CPU was busy */
    STATE_DISK_READ, STATE_DISK_WRITE, /* bytes; number: index of the disk, the same in both */
    STATE_NET_SENT, STATE_NET_RECEIVED, /* bytes; number: index of the interface, the same in both */
    STATE_MEMORY,        /* pages allocated minus freed since the begin, may be < 0; number: thread's row, -1 all */
    STATE_CPU_COUNTER,   /* a performance counter; number: CPU * STATE_CPU_COUNTERS + counter; name: the counter's */
    STATE_CPU_FREQUENCY, /* kHz; number: the CPU */
    STATE_IO_READ, STATE_IO_WRITTEN, /* bytes moved by system calls of the thread `number` (row), when they return */
    STATE_KVM_EXITS,     /* how often the thread (row), a virtual CPU, left its guest */
    STATE_FILE_USES,     /* of files: below */
    STATE_DISK_REQUESTS, /* of requests: below */
    STATE_COUNTER_KINDS
};
enum { STATE_CPU_COUNTERS = 64 };
size_t state_counters(const struct state_store *, int kind);
struct state_counter { int32_t number; const char *name; };
/* CPU_TIME: first all threads by row, then the CPUs. */
void state_counter(const struct state_store *, int kind, size_t i, struct state_counter *out);
int64_t state_find_counter(const struct state_store *, int kind, int32_t number);
/* Values at the (ascending) times; CPU_TIME counts the running part of an interval that contains the time. */
void state_counter_values(const struct state_store *, int kind, size_t i, const int64_t *times, size_t n,
    int64_t *values);
/* The least value that the counter ever had, at most 0. Not CPU_TIME. */
int64_t state_counter_least(const struct state_store *, int kind, size_t i);
/* Counters but CPU_TIME are rows too, of kind STATE_COUNTER_ROWS + their kind: an interval for each step, NONE before
 * the first, then ACTIVE with the amount. */
enum { STATE_COUNTER_ROWS = 16 };

/* ---- files: who did what with which ---- */

/* A file and a thread that used it: a row of kind STATE_FILE_ROWS. The amount of an interval: bytes that READ or WRITE
 * moved << STATE_FILE_USE_BITS | enum state_file_use. OPEN: the thread opened it and nobody closed it yet; OTHER: all
 * else that takes a descriptor, and opening. */
enum { STATE_FILE_ROWS = STATE_COUNTER_ROWS + STATE_FILE_USES, STATE_FILE_USE_BITS = 3 };
enum state_file_use {
    STATE_FILE_NOTHING, STATE_FILE_OPEN, STATE_FILE_READ, STATE_FILE_WRITE, STATE_FILE_SYNC, STATE_FILE_OTHER
};
struct state_file {
    const char *name;        /* its path as it was given; "fd 3 of NAME (PID)" when no more is known */
    int32_t thread;          /* row */
    int64_t read, written;   /* bytes in all */
};
/* Sorted by name, then thread; the same numbers as the rows. */
size_t state_files(const struct state_store *);
void state_file(const struct state_store *, size_t i, struct state_file *out);

/* ---- requests of disks ---- */

/* A row of kind STATE_REQUEST_ROWS for each slot of a queue; number: disk << DISK_SHIFT | queue (0: waits, 1: the
 * driver has it) << QUEUE_SHIFT | slot; name: the disk's. The amount of an interval: 0, or sector << SECTOR_SHIFT |
 * sectors (at most MOST_SECTORS) << TYPE_BITS | enum state_request. */
enum {
    STATE_REQUEST_ROWS = STATE_COUNTER_ROWS + STATE_DISK_REQUESTS,
    STATE_REQUEST_DISK_SHIFT = 17, STATE_REQUEST_QUEUE_SHIFT = 16,
    STATE_REQUEST_TYPE_BITS = 3, STATE_REQUEST_SECTOR_SHIFT = 20, STATE_REQUEST_MOST_SECTORS = (1 << 17) - 1
};
#define STATE_REQUEST_MOST_SECTOR ((UINT64_C(1) << 43) - 1)
enum state_request {
    STATE_REQUEST_NONE, STATE_REQUEST_READ, STATE_REQUEST_WRITE, STATE_REQUEST_FLUSH, STATE_REQUEST_OTHER,
    STATE_REQUESTS
};
const char *state_request_name(unsigned type); /* "read"; NULL: there is none, or no such type */

/* ---- events over time ---- */
/* Number of events with ts < t, for ascending times. `exact`: all are exact; else they are within one checkpoint of 64
 * events, and exact counts take reading the events of the range. */
void state_event_counts(const struct state_store *, const int64_t *times, size_t n, uint64_t *counts, bool *exact);
uint64_t state_events(const struct state_store *);

/* ---- lost events ---- */
/* cpu -1: of all CPUs. count 0: not known, since a chunk is missing */
struct state_loss { int64_t begin, end; uint64_t count; int32_t cpu; };
size_t state_losses(const struct state_store *);             /* sorted by begin */
void state_loss(const struct state_store *, size_t i, struct state_loss *out);

/* ---- latencies: system calls, scheduling (wake to run), interrupts, waits for locks, requests of disks ---- */
enum state_latency_kind {
    STATE_LATENCY_SYSCALL, STATE_LATENCY_SCHED, STATE_LATENCY_IRQ, STATE_LATENCY_SOFTIRQ, STATE_LATENCY_LOCK,
    STATE_LATENCY_DISK_WAIT, STATE_LATENCY_DISK_DRIVER, /* of requests, by queue */
    STATE_LATENCY_KINDS
};
enum { STATE_NO_PRIORITY = 1 << 20 };
struct state_latency {
    int64_t begin, end;
    /* SYSCALL, LOCK: what it returned; SCHED: priority with which it ran, or STATE_NO_PRIORITY; of requests: bytes;
     * else 0. */
    int64_t ret;
    int32_t thread;          /* whose call; who was woken, interrupted, handed the request over; -1: not known */
    int32_t cpu;             /* where it ended */
    /* Of the call, irq, vector; LOCK: process and address of the futex, "179:0x55d0"; of requests: disk and type,
     * "vda: read"; NULL for SCHED. */
    const char *name;
};
size_t state_latencies(const struct state_store *, int kind);      /* sorted by begin */
void state_latency(const struct state_store *, int kind, size_t i, struct state_latency *out);
/* First latency with begin >= t. */
size_t state_latency_find(const struct state_store *, int kind, int64_t t);
/* The names that latencies of a kind have, by number, in order of first use; "" when the kind has none. Each lives as
 * long as the store. */
size_t state_latency_names(const struct state_store *, int kind);
const char *state_latency_name(const struct state_store *, int kind, size_t name);
/* Of the latencies first … end - 1, for each name; least_begin and most_begin are the first such. O(log latencies ·
 * names), for each chunk that has some of them. */
void state_latency_figures(const struct state_store *, int kind, size_t first, size_t end, struct figures *out);
/* Adds to counts[k] how many of them are in the k-th of n ranges (figures_range). */
void state_latency_histogram(const struct state_store *, int kind, size_t first, size_t end, int64_t width, size_t n,
    uint64_t *counts);

/* ---- building ---- */
struct carry;
struct kernel_record;
struct kernel_tracker;
struct state_builder;
/* The store is written to its place while it is built. */
struct state_builder *state_builder_new(const struct kernel_tracker *, struct store_place, uint64_t key);
void state_builder_add(struct state_builder *, const struct kernel_record *);
/* Times of all events, in order, without losses: for state_event_counts. */
void state_builder_events(struct state_builder *, const int64_t *ts, size_t n);
/* 0, or why the store cannot be written (a full disk): the caller stops then. */
int state_builder_writing(const struct state_builder *, struct err *e);
/* After kernel_tracker_finish. begin, end: time of the first and the last event. */
int state_builder_write(struct state_builder *, int64_t begin, int64_t end, struct err *e);
/* After SAVE: writes what is decided of a chunk that ends at `at`, and leaves what was saved to the next one. begin,
 * end: as above; begin > end: there is no event. The builder can only be freed then. */
int state_builder_cut(struct state_builder *, int64_t at, int64_t begin, int64_t end, struct err *e);
void state_builder_free(struct state_builder *);
/* All that is open at a cut (base/carry.h); LOAD: into a new builder, after the tracker's, before any record. */
void state_builder_carry(struct state_builder *, struct carry *);

#endif
