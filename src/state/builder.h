/* Private to state: what the builder keeps while records go by. */
#ifndef WEFT_STATE_BUILDER_H
#define WEFT_STATE_BUILDER_H

#include "kernel/kernel.h"
#include "state/files.h"
#include "state/series.h"

enum { BUILDER_FRAMES = 12, BUILDER_VECTORS = 16, BUILDER_PENDING = 1 << 16, NOBODY = -1 };

/* What names a code: resolved when the store is written, because names may come after what they name. */
enum code_name { CODE_NO_NAME, CODE_STRING, CODE_IRQ, CODE_VECTOR, CODE_LOCK, CODE_OTHER_LOCKS, CODE_REQUEST };
struct builder_code {
    uint8_t value, kind;     /* enum state_value, enum code_name */
    int32_t cpu;
    uint32_t ref;            /* string number, irq, vector, index in locks; index in requests <<
                              * STATE_REQUEST_TYPE_BITS | type */
};

/* A futex of a process; -1: of one that is not known. */
struct builder_lock {
    uint64_t address;
    int32_t tgid;
};

/* A call of futex in progress. */
struct builder_futex_call {
    int64_t since;
    uint32_t user;           /* index in futex_users + 1; 0: none */
    uint32_t track;
    uint8_t operation;
    bool doubtful;           /* it may have ended unseen: its row says so, and it has no track any more */
};

enum thread_state { THREAD_UNSEEN, THREAD_UNKNOWN, THREAD_BLOCKED, THREAD_READY, THREAD_RUNNING, THREAD_GONE };
struct builder_thread {      /* hundreds take turns, so what is asked most lies first */
    struct series series;
    uint64_t call_latency, wake_latency, lock_latency; /* handles, 0 none */
    uint32_t call;           /* code of the system call in progress, 0 none */
    uint8_t state;           /* enum thread_state */
    bool idle;
    bool mode_known;         /* `call` is surely right, not only likely */
    int32_t cpu;             /* when running */
    int32_t moved_from;      /* it came to another CPU at moved_ts before it was seen to leave this one; else -1 */
    int64_t moved_ts;
    int64_t mode_since;      /* unless mode_known: when it was first seen to run since */
    struct builder_futex_call futex;
    uint32_t windows;        /* losses known when it last left a CPU or was woken */
};

/* An open interrupt handler. */
struct builder_frame {
    uint64_t latency;
    int64_t since;
    uint32_t serial, code;   /* code: what the CPU's row shows */
    uint32_t irq;            /* its row, in `irqs` */
    uint32_t track;           /* of interrupts, not softirqs */
    uint8_t kind;            /* enum state_latency_kind */
};

/* A row of an interrupt on one CPU. */
struct builder_irq {
    struct series series;
    uint8_t kind;            /* enum state_kind */
    int32_t number;
    int32_t cpu;
    uint32_t code;           /* its name's code */
    uint32_t handler_code;   /* its name and the CPU; 0 none yet */
};

/* What happened on a CPU while it was not known who ran there. */
enum pending_kind { PENDING_OVERLAY, PENDING_CALL, PENDING_RETURN, PENDING_PAGES };
struct builder_pending {
    int64_t ts, ret;         /* CALL: ret is the futex; PAGES: their number */
    uint32_t code;
    uint8_t kind;
    uint8_t io;              /* RETURN: enum kernel_io */
    uint8_t operation;       /* CALL: of the futex */
};

struct builder_cpu {
    struct series state, thread;
    int32_t row;             /* who has it, NOBODY: not known */
    bool deaf;               /* events are missing until deaf_end or until it is heard of again */
    uint8_t depth;
    int64_t deaf_end;
    size_t deaf_window;      /* index in windows */
    int64_t last_ts;         /* of its last record */
    struct builder_frame frames[BUILDER_FRAMES];
    VEC(struct builder_pending) pending;
};

/* Events of that CPU (-1: of all) are missing. */
struct builder_window {
    int64_t begin, end;
    int32_t cpu;
};

/* A disk or a network interface: two counters. */
struct builder_device {
    struct series series[2]; /* read, write; sent, received */
    int64_t total[2];
    uint32_t id;             /* device number, string */
};
typedef VEC(struct builder_device) builder_devices;

/* Counters of one kind of which each has a small number, their slot. */
struct builder_amount {
    struct series series;
    int64_t total;
    uint32_t slot;
};
struct builder_amounts {
    VEC(struct builder_amount) v;
    VEC(uint32_t) index;     /* by slot: index in v + 1, 0 none yet */
    uint32_t expected;       /* index + 1 of the one that was fetched last (builder_io_expect) */
};
enum builder_amount_kind {
    BUILDER_PAGES,           /* slot: row of the thread + 1; 0: of all */
    BUILDER_CPU_COUNTERS,    /* CPU * n_cpu_counters + counter */
    BUILDER_FREQUENCIES,     /* the CPU */
    BUILDER_IO_READ, BUILDER_IO_WRITTEN, /* row of the thread; bytes that moved through no file */
    BUILDER_KVM_EXITS,       /* row of the thread */
    BUILDER_AMOUNTS
};

/* What one thread does with one futex. */
struct builder_futex_user {
    struct series series;
    uint32_t code;           /* of the futex */
    int32_t thread;
    bool waits;
};

/* Rows for what goes on at once: each has the lowest that is free. */
struct builder_tracks {
    VEC(struct series) v;
    VEC(uint64_t) free;      /* a bit per track */
};

/* What a disk has to do: requests that wait, and those that the driver has. */
struct builder_request {
    struct series series;    /* of its slot of the queue */
    uint64_t latency;        /* handle */
    uint64_t sector;
    int64_t bytes;
    uint32_t sectors;        /* that did not complete yet */
    uint8_t type;            /* enum state_request */
    bool busy;
};
struct builder_queue {
    struct builder_request *v;
    size_t n, cap;
};
struct builder_requests {
    struct builder_queue queues[2];
    uint32_t dev;
    uint32_t codes[STATE_REQUESTS]; /* by type; 0 none yet */
};

struct state_builder {
    const struct kernel_tracker *tracker;
    char *path;
    uint64_t fingerprint;
    struct series_pool pool;
    VEC(struct builder_thread) threads;
    VEC(struct builder_cpu) cpus;
    VEC(struct builder_irq) irqs;
    struct map irq_by_number;            /* kind << 32 | number -> index in irqs + 1 */
    builder_devices disks, nets;
    struct builder_amounts amounts[BUILDER_AMOUNTS];
    uint32_t n_cpu_counters;
    VEC(struct builder_code) codes;
    VEC(uint32_t) call_codes;            /* by string number */
    struct map irq_codes, ipi_numbers;
    VEC(struct builder_lock) locks;
    struct map lock_codes;               /* by mixed process and address */
    uint32_t other_locks;                /* code of those that are too many; 0 none yet */
    uint32_t vector_codes[BUILDER_VECTORS];
    VEC(struct builder_futex_user) futex_users;
    struct map futex_user_of;            /* thread << 32 | code -> index in futex_users + 1 */
    struct builder_tracks futex_waits, futex_wakes, irq_handlers;
    struct latency_series latencies[STATE_LATENCY_KINDS];
    latency_far far;                     /* results of calls that need many bits */
    VEC(struct state_disk_loss) losses;
    VEC(struct builder_window) windows;  /* stretches with missing events; some become known only when they are over */
    int64_t suspect_until;               /* latest end of packets with losses: somewhere before it events are
                                          * missing */
    int64_t now;
    bool has_wakes;
    uint64_t events;
    int64_t last_event, last_checkpoint;
    series_values event_buffer;
    size_t event_buffered;
    struct series_table event_times;
    struct builder_files *files;
    VEC(struct builder_requests) requests;
};

/* write.c: the store at its path, at the section of its cells. */
struct store_writer *builder_store(const struct state_builder *);

/* codes.c */
uint32_t builder_code(struct state_builder *, struct builder_code);
uint32_t builder_new_call_code(struct state_builder *, uint32_t string);
static inline uint32_t builder_call_code(struct state_builder *b, uint32_t string)
{
    return string < b->call_codes.n && b->call_codes.v[string] ? b->call_codes.v[string] : builder_new_call_code(b,
        string);
}
uint32_t builder_irq_code(struct state_builder *, const struct kernel_record *);
uint32_t builder_vector_code(struct state_builder *, uint16_t vector);
uint32_t builder_lock_code(struct state_builder *, int32_t row, uint64_t address);
const char *builder_vector_name(uint32_t vector); /* NULL beyond the ten that Linux has */

/* threads.c: states of threads */
void builder_add_threads(struct state_builder *, size_t n);
/* NULL for NOBODY; valid until the next call. */
static inline struct builder_thread *builder_thread(struct state_builder *b, int32_t row)
{
    if (row < 0)
        return NULL;
    if (__builtin_expect((size_t)row >= b->threads.n, 0))
        builder_add_threads(b, (size_t)row + 1);
    return &b->threads.v[row];
}
void builder_thread_arrive(struct state_builder *, int32_t row, int32_t cpu, int64_t ts, int32_t priority);
void builder_thread_leave(struct state_builder *, int32_t row, int32_t cpu, int64_t ts, uint8_t leave);
void builder_thread_interrupt(struct state_builder *, int32_t row, int32_t cpu, int64_t ts, bool interrupted);
/* futex: as of kernel_record. */
void builder_thread_call(struct state_builder *, int32_t row, int32_t cpu, int64_t ts, uint32_t code, uint64_t futex,
    uint8_t operation);
void builder_thread_return(struct state_builder *, int32_t row, int32_t cpu, int64_t ts, uint32_t code, int64_t ret);
void builder_thread_wake(struct state_builder *, int32_t row, int64_t ts, bool queued);
void builder_thread_exit(struct state_builder *, int32_t row, int64_t ts);
void builder_thread_free(struct state_builder *, int32_t row, int64_t ts);
void builder_thread_fork(struct state_builder *, int32_t parent, int32_t child, int64_t ts);
void builder_thread_dumped(struct state_builder *, int32_t row, int64_t ts, uint8_t status);
void builder_thread_lose(struct state_builder *, int32_t row, int32_t cpu, int64_t ts);
/* It is now known that `row` had `cpu` since then, within a system call unless first_call is 0. */
void builder_thread_was_there(struct state_builder *, int32_t row, int32_t cpu, int64_t since, uint32_t first_call);

/* cpus.c: states of CPUs and interrupts */
struct builder_cpu *builder_cpu(struct state_builder *, uint32_t cpu);
void builder_cpu_overlay(struct state_builder *, struct builder_cpu *, int64_t ts);
void builder_cpu_switch(struct state_builder *, struct builder_cpu *, const struct kernel_record *);
void builder_cpu_call(struct state_builder *, struct builder_cpu *, const struct kernel_record *);
void builder_cpu_pages(struct state_builder *, struct builder_cpu *, const struct kernel_record *);
void builder_cpu_clear(struct state_builder *, struct builder_cpu *, int64_t ts);
void builder_cpu_heard(struct state_builder *, struct builder_cpu *, int64_t ts);
void builder_cpu_finish(struct state_builder *, struct builder_cpu *, int64_t ts);
void builder_lost(struct state_builder *, const struct kernel_record *);

/* irqs.c */
void builder_irq_enter(struct state_builder *, struct builder_cpu *, const struct kernel_record *);
void builder_irq_exit(struct state_builder *, struct builder_cpu *, const struct kernel_record *);
void builder_irq_end_frame(struct state_builder *, struct builder_cpu *, int64_t ts, bool complete);
/* Rows of interrupts of that CPU: unknown from ts, or quiet again. */
void builder_irqs_lose(struct state_builder *, int32_t cpu, int64_t ts);
void builder_irqs_regain(struct state_builder *, int32_t cpu, int64_t ts);

/* tracks.c */
uint32_t builder_track_take(struct builder_tracks *, int64_t since);
/* What had the track since then is over. */
void builder_track_leave(struct state_builder *, struct builder_tracks *, uint32_t track, int64_t since, int64_t end,
    int64_t number);
void builder_tracks_fini(struct builder_tracks *);

/* futexes.c */
void builder_futex_call(struct state_builder *, struct builder_futex_call *, int32_t row, int64_t ts, uint32_t code,
    uint8_t operation);
void builder_futex_return(struct state_builder *, struct builder_futex_call *, int64_t ts, int64_t ret);
/* It ended without returning. */
void builder_futex_cut(struct state_builder *, struct builder_futex_call *, int64_t ts);
/* From ts on it is not known whether it goes on. */
void builder_futex_doubt(struct state_builder *, struct builder_futex_call *, int64_t ts);
/* What still goes on, at the end of the trace. */
void builder_futexes_finish(struct state_builder *);

/* gaps.c: the end of traces with losses. Threads that did not run were seen by nobody while events were missing: that
 * part of their waits becomes unknown. */
struct builder_gap { int64_t begin, end; };
struct builder_gaps {
    VEC(struct builder_gap) gaps;        /* of all threads, by row */
    VEC(size_t) first;                   /* by row; one more than rows */
};
/* Rows and columns must be complete but for the last entries of rows. */
int builder_gaps_make(struct state_builder *, int64_t end, struct builder_gaps *, struct err *e);
void builder_gaps_fini(struct builder_gaps *);
/* Does what the thread did between the times include anything unknown? */
bool builder_gaps_touch(const void *gaps, int64_t row, int64_t begin, int64_t end);
/* From when on? INT64_MAX: it does not. */
int64_t builder_gaps_first(const struct builder_gaps *, int64_t row, int64_t begin, int64_t end);

/* counters.c */
void builder_block(struct state_builder *, const struct kernel_record *);
void builder_packet(struct state_builder *, const struct kernel_record *);
void builder_thread_pages(struct state_builder *, int32_t row, int64_t ts, int64_t pages); /* NOBODY: nothing */
void builder_all_pages(struct state_builder *, int64_t ts, int64_t pages);
void builder_cpu_counters(struct state_builder *, const struct kernel_record *);
void builder_frequency(struct state_builder *, const struct kernel_record *);
/* A call has moved so many bytes in these ways, and no row of a file counts them. NOBODY: nothing. */
void builder_io(struct state_builder *, int32_t row, int64_t ts, unsigned ways, int64_t bytes);
/* such a call begins: what it will count in is fetched */
void builder_io_expect(struct state_builder *, int32_t row, unsigned ways);
void builder_kvm_exit(struct state_builder *, const struct kernel_record *);
void builder_amounts_fini(struct builder_amounts *);

/* requests.c */
void builder_request(struct state_builder *, const struct kernel_record *);
void builder_requests_lose(struct state_builder *, int64_t ts);
void builder_each_request(struct state_builder *, void (*)(void *arg, int32_t number, uint32_t dev, struct series *),
    void *arg);
void builder_requests_fini(struct state_builder *);

static inline int32_t builder_cpu_number(const struct state_builder *b,
    const struct builder_cpu *c) { return (int32_t)(c - b->cpus.v); }

#endif
