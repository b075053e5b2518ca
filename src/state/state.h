/* Histories for views, one store per trace, built in the same pass as graph and flows: states of threads, CPUs, interrupts; cumulative counters;
 * latencies. Columnar, mapped, immutable, thread-safe to read. A sampled query costs O(samples), whatever the length of the trace. Times are ns of
 * the host's own clock. State sets follow what users of Trace Compass know. */
#ifndef WEFT_STATE_STATE_H
#define WEFT_STATE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum state_value {
    STATE_NONE,              /* nothing there: not yet born, already dead, no interrupt */
    /* threads */
    STATE_USERMODE, STATE_SYSCALL, STATE_INTERRUPTED, STATE_WAIT_FOR_CPU, STATE_WAIT_BLOCKED,
    STATE_WAIT_UNKNOWN,      /* the state dump found it waiting; for what is not told */
    /* CPUs: IDLE, USERMODE, SYSCALL, IRQ, SOFTIRQ. The idle threads' rows: IDLE, INTERRUPTED, WAIT_FOR_CPU */
    STATE_IDLE, STATE_IRQ, STATE_SOFTIRQ,
    STATE_SOFTIRQ_RAISED,    /* softirq rows: wanted, not yet running */
    STATE_ACTIVE,            /* IRQ and softirq rows: its handler runs. CPU_THREAD: a thread that is not idle */
    STATE_UNKNOWN,           /* it is there, but what it does is not known: before it was first seen, lost events */
    STATE_VALUES
};

enum state_kind { STATE_THREAD, STATE_CPU, STATE_CPU_THREAD, STATE_CPU_IRQ, STATE_CPU_SOFTIRQ, STATE_IRQ_LINE, STATE_SOFTIRQ_VECTOR, STATE_KINDS };
/* A row of states. Rows of one kind ascend by number. THREAD: number is the row of kernel and graph, and the same as the row's index.
 * CPU: the CPU; CPU_THREAD: which thread has the CPU (interval.thread). CPU_IRQ, CPU_SOFTIRQ: number = cpu << 16 | irq or vector.
 * IRQ_LINE, SOFTIRQ_VECTOR: the irq or vector over all CPUs (when several CPUs are at it, the one that began last).
 * Interrupts that have no number on the host (between processors: "reschedule") have made-up ones from STATE_IPI. */
enum { STATE_IPI = 0x8000 };
struct state_row {
    uint8_t kind;
    int32_t number;
    const char *name;        /* thread name, "CPU 0", name of the irq line, "NET_RX"; never NULL; lives as long as the store */
    size_t intervals;        /* stored ones: what a full read costs */
    int64_t begin, end;      /* outside it has no states: threads: birth (or the trace's begin) and death (or the trace's end) */
};

struct state_interval {
    int64_t begin, end;      /* true bounds; end = begin of the next */
    uint8_t value;           /* enum state_value */
    int32_t thread;          /* CPU and CPU_THREAD rows: the thread's row when one has the CPU, else -1 */
    int32_t cpu;             /* IRQ_LINE, SOFTIRQ_VECTOR: the CPU that handles it; else -1 */
    const char *name;        /* SYSCALL: its name ("openat"); IRQ, SOFTIRQ of CPU rows: name; else NULL */
};

struct state_store;
int state_open(const char *path, struct state_store **out, struct err *e); /* validates everything */
void state_close(struct state_store *);
/* The time covered: what was given to state_builder_write. */
void state_span(const struct state_store *, int64_t *begin, int64_t *end);

size_t state_rows(const struct state_store *, int kind);
void state_row(const struct state_store *, int kind, size_t i, struct state_row *out);
/* Index of the row of that kind with that number, or -1. */
int64_t state_find_row(const struct state_store *, int kind, int32_t number);
/* The distinct states in force at the (ascending) times, in time order, with their true bounds; STATE_NONE ones too. Returns how many (at most n).
 * Before a row's begin and after its end there is one STATE_NONE each up to the span's bounds. Intervals do not hold their end, but the span's last
 * instant belongs to the last one; times outside the span have no state. */
size_t state_sample(const struct state_store *, int kind, size_t row, const int64_t *times, size_t n, struct state_interval *out);
bool state_at(const struct state_store *, int kind, size_t row, int64_t t, struct state_interval *out);
/* Intervals that intersect [begin, end], at most max, in order (for DEEP filters and exports); to go on, call with begin = end of the last one. */
size_t state_range(const struct state_store *, int kind, size_t row, int64_t begin, int64_t end, struct state_interval *out, size_t max);
/* The CPU that a thread's row has at t, or -1. */
int32_t state_thread_cpu(const struct state_store *, size_t row, int64_t t);

/* ---- counters: cumulative values, so that a difference over an interval is exact -------------------------------------------------- */
enum state_counter_kind { STATE_CPU_TIME, /* ns the thread `number` (row) ran; number -1 - cpu: ns that CPU was busy */
                          STATE_DISK_READ, STATE_DISK_WRITE, /* bytes; number: index of the disk, the same in both */
                          STATE_NET_SENT, STATE_NET_RECEIVED, /* bytes; number: index of the interface, the same in both */
                          STATE_MEMORY, /* pages allocated minus freed; number: row of the thread, or -1 for the total */
                          STATE_COUNTER_KINDS };
size_t state_counters(const struct state_store *, int kind);
struct state_counter { int32_t number; const char *name; };
/* CPU_TIME: first all threads by row, then the CPUs. */
void state_counter(const struct state_store *, int kind, size_t i, struct state_counter *out);
int64_t state_find_counter(const struct state_store *, int kind, int32_t number);
/* Values at the (ascending) times; CPU_TIME counts the running part of an interval that contains the time. */
void state_counter_values(const struct state_store *, int kind, size_t i, const int64_t *times, size_t n, int64_t *values);

/* ---- events over time -------------------------------------------------------------------------------------------------------------- */
/* Number of events with ts < t, for ascending times; `exact` tells whether all are exact (else within one checkpoint of 64 events: count the
 * events of the range by reading them). */
void state_event_counts(const struct state_store *, const int64_t *times, size_t n, uint64_t *counts, bool *exact);
uint64_t state_events(const struct state_store *);

/* ---- lost events ------------------------------------------------------------------------------------------------------------------- */
struct state_loss { int64_t begin, end; uint64_t count; int32_t cpu; }; /* cpu -1: of all CPUs */
size_t state_losses(const struct state_store *);             /* sorted by begin */
void state_loss(const struct state_store *, size_t i, struct state_loss *out);

/* ---- latencies: system calls, scheduling (wake to run), interrupts ------------------------------------------------------------------ */
enum state_latency_kind { STATE_LATENCY_SYSCALL, STATE_LATENCY_SCHED, STATE_LATENCY_IRQ, STATE_LATENCY_SOFTIRQ, STATE_LATENCY_KINDS };
struct state_latency {
    int64_t begin, end;
    int64_t ret;             /* SYSCALL: what it returned; else 0 */
    int32_t thread;          /* whose call; who was woken; who was interrupted (-1: not known) */
    int32_t cpu;             /* where it ended */
    const char *name;        /* of the call, irq, vector; NULL for SCHED */
};
size_t state_latencies(const struct state_store *, int kind);      /* sorted by begin */
void state_latency(const struct state_store *, int kind, size_t i, struct state_latency *out);
/* First latency with begin >= t. */
size_t state_latency_find(const struct state_store *, int kind, int64_t t);

/* ---- building ------------------------------------------------------------------------------------------------------------------------ */
struct kernel_record;
struct kernel_tracker;
struct state_builder;
struct state_builder *state_builder_new(const struct kernel_tracker *);
void state_builder_add(struct state_builder *, const struct kernel_record *);
void state_builder_events(struct state_builder *, const int64_t *ts, size_t n); /* times of all events, in order, losses left out: for state_event_counts */
/* After kernel_tracker_finish. begin, end: time of the first and the last event. */
int state_builder_write(struct state_builder *, int64_t begin, int64_t end, const char *path, uint64_t fingerprint, struct err *e);
void state_builder_free(struct state_builder *);

#endif
