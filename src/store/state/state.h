/* SPDX-License-Identifier: MIT */
/* Histories for views, one store per trace, built in the same pass as graph and flows: states of threads, CPUs,
 * interrupts; cumulative counters; latencies. Columnar, mapped, immutable, thread-safe to read. A sampled query costs
 * O(samples), whatever the length of the trace. Times are ns of the host's own clock. The sets of states follow Trace
 * Compass. */
#ifndef WEFT_STATE_STATE_H
#define WEFT_STATE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/figures.h"
#include "base/store.h"

/* Version of the rules: increased whenever the same records give other histories, so that stores are built again. */
enum { STATE_RULES_VERSION = 13 };

enum state_value {
    STATE_NONE,              /* no state: not yet born, already dead, no interrupt */
    /* threads */
    STATE_USERMODE, STATE_SYSCALL, STATE_INTERRUPTED, STATE_WAIT_FOR_CPU, STATE_WAIT_BLOCKED,
    STATE_WAIT_UNKNOWN,      /* waiting, as found by the state dump; cause unknown */
    /* CPUs: IDLE, USERMODE, SYSCALL, IRQ, SOFTIRQ. The idle threads' rows: IDLE, INTERRUPTED, WAIT_FOR_CPU */
    STATE_IDLE, STATE_IRQ, STATE_SOFTIRQ,
    STATE_SOFTIRQ_RAISED,    /* softirq rows: raised, not yet running */
    STATE_ACTIVE,            /* IRQ and softirq rows: the handler runs. CPU_THREAD: a thread that is not idle */
    STATE_UNKNOWN,           /* present, but its state is not known: before it was first seen, lost events */
    /* rows of futexes */
    STATE_FUTEX_WAIT, STATE_FUTEX_WAKE, /* within a call that waits for the futex, that wakes its waiters */
    STATE_VALUES
};

enum state_kind {
    STATE_THREAD, STATE_CPU, STATE_CPU_THREAD, STATE_CPU_IRQ, STATE_CPU_SOFTIRQ, STATE_IRQ_LINE, STATE_SOFTIRQ_VECTOR,
    STATE_FUTEX_USER, STATE_FUTEX_WAITS, STATE_FUTEX_WAKES, STATE_IRQ_HANDLERS, STATE_KINDS
};
/* A row of states. Rows of one kind ascend by number:
 * - THREAD: the row of kernel and graph, and the same as the row's index
 * - CPU: the CPU. CPU_THREAD: the CPU; shows its current thread (interval.thread)
 * - CPU_IRQ, CPU_SOFTIRQ: cpu << 16 | irq or vector
 * - IRQ_LINE, SOFTIRQ_VECTOR: the irq or vector; over all CPUs (when several handle it, the one that began last).
 *   Computed from the rows of the CPUs on request, at the cost of reading all of those
 * - FUTEX_USER: the row's index; calls of one thread for one futex. name: the futex, as in LATENCY_LOCK
 * - FUTEX_WAITS, FUTEX_WAKES, IRQ_HANDLERS: the track, from 0. Each wait, wake or handler has the lowest free
 *   track when it begins, so there are as many tracks as run at once
 * Interrupts that have no number on the host (between processors: "reschedule") have made-up ones from STATE_IPI. */
enum { STATE_IPI = 0x8000 };
struct state_row {
    uint8_t kind;
    int32_t number;
    const char *name;        /* thread name, "CPU 0", irq's name, "NET_RX"; never NULL; lives as long as the store */
    size_t intervals;        /* stored ones: the cost of a full read */
    int64_t begin, end;      /* range of states. Threads: birth and death, or the trace's begin and end */
    int32_t thread;          /* FUTEX_USER: the thread's row; else -1 */
    bool waits;              /* FUTEX_USER: at least once */
};

struct state_interval {
    int64_t begin, end;      /* true bounds; end = begin of the next */
    uint8_t value;           /* enum state_value */
    int32_t thread;          /* CPU, CPU_THREAD: row of the current thread; futexes: of the caller; else -1 */
    int32_t cpu;             /* IRQ_LINE, SOFTIRQ_VECTOR, IRQ_HANDLERS: the handling CPU; else -1 */
    /* SYSCALL: the call ("openat"); IRQ, SOFTIRQ of CPU rows: the interrupt; FUTEX_USER: the operation ("WAIT"); tracks
     * of futexes: the futex; else NULL. */
    const char *name;
    /* Counters: the value; FUTEX_USER: return value of the call; tracks of futexes: the FUTEX_USER row; else 0. */
    int64_t amount;
    bool cut;                /* FUTEX_USER, IRQ_HANDLERS: its end was not seen */
};

struct chunk;
struct state_store;
/* Opens a store and checks references between its tables, in O(rows). All functions below are then safe for any
 * contents; wrong contents give wrong answers only. Checksums are not compared: a caller that cannot trust the file
 * calls store_check (base/store.h) first. */
int state_open(const char *path, struct state_store **out, struct err *e);
/* Checks all of the file, or of the part of `in` (base/chunks.h), except checksums. ERR_FORMAT: damaged; the message
 * says where. Reads all of it. */
int state_check(const char *path, const struct store *in, struct err *e);
/* Opens the stores of n chunks (base/chunks.h) of one recording, in order of time, as one store of the host's rows. It
 * answers as one store of the whole recording would. Where a chunk is missing (chunk[i].end < chunk[i + 1].begin), rows
 * are unknown and counters stand still. Errors name the file. O(rows of all chunks); searching a time takes O(log
 * chunks) more. */
int state_open_list(const struct chunk *, size_t n, struct state_store **out, struct err *e);
void state_close(struct state_store *);
int state_intact(const struct state_store *, struct err *e); /* see graph_intact */
void state_populate(const struct state_store *);             /* see file_map_populate */
/* Time covered, as passed to state_builder_write. */
void state_span(const struct state_store *, int64_t *begin, int64_t *end);

size_t state_rows(const struct state_store *, int kind);
void state_row(const struct state_store *, int kind, size_t i, struct state_row *out);
/* Index of the row of that kind with that number, or -1. */
int64_t state_find_row(const struct state_store *, int kind, int32_t number);
/* Distinct states in force at the (ascending) times, in order of time, with their true bounds and including STATE_NONE.
 * Returns their number (at most n). One STATE_NONE each covers the span before a row's begin and after its end.
 * Intervals exclude their end, but the span's last instant counts as the one before it; times outside the span have no
 * state. */
size_t state_sample(const struct state_store *, int kind, size_t row, const int64_t *times, size_t n,
    struct state_interval *out);
bool state_at(const struct state_store *, int kind, size_t row, int64_t t, struct state_interval *out);
/* Intervals that intersect [begin, end], at most max, in order (for DEEP filters and exports). To continue, call with
 * begin = end of the last one, until it returns 0. */
size_t state_range(const struct state_store *, int kind, size_t row, int64_t begin, int64_t end,
    struct state_interval *out, size_t max);
/* CPU of a thread at t, or -1. `near`: the CPU to try first, or -1. O(CPUs): call it only where state_may_have_cpu
 * holds. */
int32_t state_thread_cpu(const struct state_store *, size_t row, int64_t t, int32_t near);
static inline bool state_may_have_cpu(uint8_t value)
{
    return value == STATE_USERMODE || value == STATE_SYSCALL || value == STATE_INTERRUPTED || value == STATE_IDLE ||
           value == STATE_UNKNOWN;
}

/* ---- counters: cumulative values, so differences over an interval are exact ---- */
enum state_counter_kind {
    STATE_CPU_TIME,      /* ns that the thread `number` (row) ran; number -1 - cpu: ns that the CPU was busy */
    STATE_DISK_READ, STATE_DISK_WRITE, /* bytes; number: index of the disk, the same in both */
    STATE_NET_SENT, STATE_NET_RECEIVED, /* bytes; number: index of the interface, the same in both */
    STATE_MEMORY,        /* pages allocated minus freed, may be < 0; number: row of the thread, -1: all */
    STATE_CPU_COUNTER,   /* a performance counter; number: CPU * STATE_CPU_COUNTERS + counter; name: the counter's */
    STATE_CPU_FREQUENCY, /* kHz; number: the CPU */
    STATE_IO_READ, STATE_IO_WRITTEN, /* bytes moved by system calls of the thread `number` (row), when they return */
    STATE_KVM_EXITS,     /* number of times that the thread (row), a virtual CPU, left its guest */
    STATE_FILE_USES,     /* files: see below */
    STATE_DISK_REQUESTS, /* requests: see below */
    STATE_COUNTER_KINDS
};
enum { STATE_CPU_COUNTERS = 64 };
size_t state_counters(const struct state_store *, int kind);
struct state_counter { int32_t number; const char *name; };
/* CPU_TIME: threads first, by row, then the CPUs. */
void state_counter(const struct state_store *, int kind, size_t i, struct state_counter *out);
int64_t state_find_counter(const struct state_store *, int kind, int32_t number);
/* Values at the (ascending) times; CPU_TIME includes the elapsed part of an interval that contains the time. */
void state_counter_values(const struct state_store *, int kind, size_t i, const int64_t *times, size_t n,
    int64_t *values);
/* Minimum over all time, at most 0. Not for CPU_TIME. */
int64_t state_counter_least(const struct state_store *, int kind, size_t i);
/* Counters except CPU_TIME are also rows, of kind STATE_COUNTER_ROWS + their kind, with an interval per step: NONE
 * before the first, then ACTIVE with the amount. */
enum { STATE_COUNTER_ROWS = 16 };

/* ---- files: uses by threads ---- */

/* File and a thread that used it: a row of kind STATE_FILE_ROWS. The amount of an interval: bytes moved by READ or
 * WRITE << STATE_FILE_USE_BITS | enum state_file_use. OPEN: opened by the thread and not closed yet; OTHER: other calls
 * that take a descriptor, and opening. */
enum { STATE_FILE_ROWS = STATE_COUNTER_ROWS + STATE_FILE_USES, STATE_FILE_USE_BITS = 3 };
enum state_file_use {
    STATE_FILE_NOTHING, STATE_FILE_OPEN, STATE_FILE_READ, STATE_FILE_WRITE, STATE_FILE_SYNC, STATE_FILE_OTHER
};
struct state_file {
    const char *name;        /* path, as it was given; "fd 3 of NAME (PID)" if unknown */
    int32_t thread;          /* row */
    int64_t read, written;   /* total bytes */
};
/* Sorted by name, then thread; numbered as the rows. */
size_t state_files(const struct state_store *);
void state_file(const struct state_store *, size_t i, struct state_file *out);

/* ---- requests of disks ---- */

/* Row of kind STATE_REQUEST_ROWS per slot of a queue; number: disk << DISK_SHIFT | queue (0: waiting, 1: in the driver)
 * << QUEUE_SHIFT | slot; name: the disk's. The amount of an interval: 0, or sector << SECTOR_SHIFT | sectors (at most
 * MOST_SECTORS) << TYPE_BITS | enum state_request. */
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
const char *state_request_name(unsigned type); /* "read"; NULL: no request, or no such type */

/* ---- events over time ---- */
/* Number of events with ts < t, for ascending times. `exact`: all are exact; otherwise each is within one checkpoint of
 * 64 events, and exact counts require reading the events of the range. */
void state_event_counts(const struct state_store *, const int64_t *times, size_t n, uint64_t *counts, bool *exact);
uint64_t state_events(const struct state_store *);

/* ---- lost events ---- */
/* cpu -1: all CPUs. count 0: unknown, since a chunk is missing */
struct state_loss { int64_t begin, end; uint64_t count; int32_t cpu; };
size_t state_losses(const struct state_store *);             /* sorted by begin */
void state_loss(const struct state_store *, size_t i, struct state_loss *out);

/* ---- latencies: system calls, scheduling (wake to run), interrupts, waits for locks, requests of disks ---- */
enum state_latency_kind {
    STATE_LATENCY_SYSCALL, STATE_LATENCY_SCHED, STATE_LATENCY_IRQ, STATE_LATENCY_SOFTIRQ, STATE_LATENCY_LOCK,
    STATE_LATENCY_DISK_WAIT, STATE_LATENCY_DISK_DRIVER, /* requests, by queue */
    STATE_LATENCY_KINDS
};
enum { STATE_NO_PRIORITY = 1 << 20 };
struct state_latency {
    int64_t begin, end;
    /* SYSCALL, LOCK: return value; SCHED: priority with which the thread ran, or STATE_NO_PRIORITY; requests: bytes;
     * else 0. */
    int64_t ret;
    int32_t thread;          /* caller; woken or interrupted thread; thread that submitted the request; -1: unknown */
    int32_t cpu;             /* CPU of the end */
    /* Name of the call, irq, vector; LOCK: process and address of the futex, "179:0x55d0"; requests: disk and type,
     * "vda: read"; NULL for SCHED. */
    const char *name;
};
size_t state_latencies(const struct state_store *, int kind);      /* sorted by begin */
void state_latency(const struct state_store *, int kind, size_t i, struct state_latency *out);
/* First latency with begin >= t. */
size_t state_latency_find(const struct state_store *, int kind, int64_t t);
/* Names of the latencies of a kind, by number, in order of first use; "" if the kind has none. Each lives as long as
 * the store. */
size_t state_latency_names(const struct state_store *, int kind);
const char *state_latency_name(const struct state_store *, int kind, size_t name);
/* Figures of the latencies first … end - 1, by name; least_begin and most_begin are the first such. O(log latencies ·
 * names) per chunk that has some of them. */
void state_latency_figures(const struct state_store *, int kind, size_t first, size_t end, struct figures *out);
/* Adds to counts[k] the number of them in the k-th of n ranges (figures_range). */
void state_latency_histogram(const struct state_store *, int kind, size_t first, size_t end, int64_t width, size_t n,
    uint64_t *counts);

/* ---- building ---- */
struct carry;
struct kernel_record;
struct kernel_tracker;
struct state_builder;
/* Begins a store, which is written to its place while it is built. */
struct state_builder *state_builder_new(const struct kernel_tracker *, struct store_place, uint64_t key);
void state_builder_add(struct state_builder *, const struct kernel_record *);
/* Adds the times of all events, in order, without losses: for state_event_counts. */
void state_builder_events(struct state_builder *, const int64_t *ts, size_t n);
/* Returns 0, or why the store cannot be written (a full disk): the caller should stop. */
int state_builder_writing(const struct state_builder *, struct err *e);
/* Completes the store; call it after kernel_tracker_finish. begin, end: time of the first and the last event. */
int state_builder_write(struct state_builder *, int64_t begin, int64_t end, struct err *e);
/* Completes the store of a chunk that ends at `at`; call it after SAVE. Writes what is decided and leaves the saved
 * state to the next chunk. begin, end: as above; begin > end: there is no event. Afterwards the builder can only be
 * freed. */
int state_builder_cut(struct state_builder *, int64_t at, int64_t begin, int64_t end, struct err *e);
void state_builder_free(struct state_builder *);
/* Visits all open state at a cut (base/carry.h); LOAD: into a new builder, after the tracker's, before any record. */
void state_builder_carry(struct state_builder *, struct carry *);

#endif
