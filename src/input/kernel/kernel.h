/* SPDX-License-Identifier: MIT */
/* Meaning of Linux kernel events. Two layers:
 * - binding: names and fields of a trace's event classes, bound once (variants of LTTng >= 2.7, older LTTng, perf);
 * - tracker: one host's threads, CPUs and interrupt contexts; turns merged events into typed records with row numbers.
 * A *row* is one life of one thread: (host, tid, first seen); tids are reused, rows are not. Rule source:
 * reference/critical-path.md 1 and 8. */
#ifndef WEFT_KERNEL_KERNEL_H
#define WEFT_KERNEL_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/rows.h"
#include "kernel/running.h"
#include "kernel/targets.h"

struct carry; struct ctf_event; struct ctf_trace; struct err;

/* Version of the rules: increased whenever the same events give other rows, records or names, so that stored results
 * are built again. */
enum { KERNEL_RULES_VERSION = 16 };

enum kernel_kind {
    KERNEL_OTHER,
    KERNEL_SWITCH,
    KERNEL_WAKE,   /* sched_waking, or its substitute */
    KERNEL_WAKE_NEW,
    KERNEL_WAKEUP, /* besides WAKE: the target was put on a run queue */
    KERNEL_FORK, KERNEL_EXEC,
    KERNEL_EXIT,   /* begins to exit; may still run and wait */
    KERNEL_FREE,   /* the thread is gone */
    KERNEL_MIGRATE,
    KERNEL_IRQ_ENTRY, KERNEL_IRQ_EXIT,
    KERNEL_SOFTIRQ_RAISE, KERNEL_SOFTIRQ_ENTRY, KERNEL_SOFTIRQ_EXIT,
    KERNEL_HRTIMER_ENTRY, KERNEL_HRTIMER_EXIT,
    KERNEL_IPI_ENTRY, KERNEL_IPI_EXIT,
    KERNEL_PACKET_SEND, KERNEL_PACKET_RECEIVE,
    KERNEL_NET_ENTRY, KERNEL_NET_EXIT,
    KERNEL_BLOCK_INSERT, KERNEL_BLOCK_ISSUE,
    KERNEL_BLOCK_REQUEUE, /* returned by the driver */
    KERNEL_BLOCK_COMPLETE,
    KERNEL_SYSCALL_ENTRY, KERNEL_SYSCALL_EXIT,
    KERNEL_WORK_QUEUE, KERNEL_WORK_START, KERNEL_WORK_END,
    KERNEL_KVM_ENTRY, KERNEL_KVM_EXIT,
    KERNEL_PAGE_ALLOC, KERNEL_PAGE_FREE,
    KERNEL_FREQUENCY,
    KERNEL_SPAN_MARK, /* weft-span reports the begin or end of a span */
    KERNEL_COUNTERS, /* performance counters of the event whose record came just before, if it has such contexts */
    KERNEL_STATEDUMP_THREAD, KERNEL_STATEDUMP_NS, KERNEL_STATEDUMP_DISK, KERNEL_STATEDUMP_NETIF, KERNEL_STATEDUMP_IRQ,
    KERNEL_STATEDUMP_FD, KERNEL_STATEDUMP_SPACE, KERNEL_STATEDUMP_END,
    KERNEL_LOST,
    KERNEL_ABSENT, /* the stream of a CPU is missing */
    KERNEL_STACKS, /* an event of no other kind that has call stacks */
    KERNEL_KINDS
};

/* Innermost context of an event. UNKNOWN: the CPU was not observed long enough (start of the trace, lost events). An
 * entry belongs to the context it opens, an exit to the one it closes. */
enum kernel_context {
    KERNEL_CTX_UNKNOWN, KERNEL_CTX_THREAD, KERNEL_CTX_IRQ, KERNEL_CTX_SOFTIRQ, KERNEL_CTX_HRTIMER, KERNEL_CTX_IPI,
    KERNEL_CTX_NET
};
enum kernel_softirq {
    KERNEL_SOFTIRQ_HI, KERNEL_SOFTIRQ_TIMER, KERNEL_SOFTIRQ_NET_TX, KERNEL_SOFTIRQ_NET_RX, KERNEL_SOFTIRQ_BLOCK,
    KERNEL_SOFTIRQ_IRQ_POLL, KERNEL_SOFTIRQ_TASKLET, KERNEL_SOFTIRQ_SCHED, KERNEL_SOFTIRQ_HRTIMER, KERNEL_SOFTIRQ_RCU
};

/* State of a thread in the state dump (lttng-modules' numbers). */
enum kernel_dumped {
    KERNEL_DUMPED_UNKNOWN, KERNEL_DUMPED_FORKED, KERNEL_DUMPED_QUEUED, KERNEL_DUMPED_EXIT, KERNEL_DUMPED_ZOMBIE,
    KERNEL_DUMPED_WAITING, KERNEL_DUMPED_RUNNABLE, KERNEL_DUMPED_DEAD
};

/* Use of file descriptors by a system call. The result of READ, WRITE and COPY (from `fd` to `other`) is a number of
 * bytes. The result of OPEN (fd: the directory), DUP, FCNTL (other: the command, flags: its argument) and HIDDEN (no
 * file) is a descriptor. CLOSE: up to `other`. PAIR returns `fd` and `other`. */
enum kernel_io {
    KERNEL_IO_NONE, KERNEL_IO_READ, KERNEL_IO_WRITE, KERNEL_IO_COPY, KERNEL_IO_SYNC, KERNEL_IO_OTHER, KERNEL_IO_OPEN,
    KERNEL_IO_CLOSE, KERNEL_IO_DUP, KERNEL_IO_FCNTL, KERNEL_IO_HIDDEN, KERNEL_IO_PAIR
};

/* Reason why a thread left its CPU (prev_state by explicit classes, not by masks). */
enum kernel_leave { KERNEL_LEAVE_RUNNABLE, KERNEL_LEAVE_BLOCKED, KERNEL_LEAVE_STOPPED, KERNEL_LEAVE_DEAD };

enum { KERNEL_NO_ROW = -1, KERNEL_NO_STRING = 0, KERNEL_MOST_COUNTERS = 64, KERNEL_NO_PRIORITY = 1 << 20,
    KERNEL_NO_CONTAINER = 0 };

struct kernel_packet {
    uint64_t skb;
    uint8_t family;    /* 4, 6, or 0 if the event has no addresses (old inet_sock_local_in/out) */
    uint8_t protocol;  /* 6 TCP, 17 UDP, 1 ICMP */
    uint8_t saddr[16], daddr[16]; /* network order; IPv4 in the first 4 bytes */
    uint16_t sport, dport;
    uint32_t seq, ack;
    uint16_t flags;    /* TCP: FIN 1 SYN 2 RST 4 PSH 8 ACK 16 */
    uint16_t ip_id;
    uint32_t payload_bytes; /* length of the transport layer's payload; 0: unknown */
    bool has_length;
    uint16_t header_bytes; /* headers of the network and, if known, transport layer; 0: unknown */
    uint32_t device;   /* string number of the interface name */
};

/* Mark of a span. `process` has the span: its own number for itself, or for its child; 0: unknown, as at the end of a
 * span. */
struct kernel_mark { uint8_t trace[16], span[8]; int32_t process; bool is_end; };
/* Reads the text of an lttng_logger event. False: it is something else. */
bool kernel_read_mark(const char *text, size_t n, struct kernel_mark *out);

/* Call stack of a thread: n addresses, the innermost first. cut: its outer frames were not recorded, or are more than
 * KERNEL_MOST_FRAMES. */
enum kernel_stack_kind { KERNEL_STACK_USER, KERNEL_STACK_KERNEL, KERNEL_STACK_KINDS };
enum { KERNEL_MOST_FRAMES = 128 };
struct kernel_stack { uint16_t n; bool cut; uint64_t v[KERNEL_MOST_FRAMES]; };
bool kernel_has_stacks(const struct ctf_trace *); /* whether events have contexts for call stacks */

/* Record of an event on the host. Rows and strings are numbers. The record and what it points to live until the sink
 * returns; it points to text and numbers only, never to a struct of the decoder. */
struct kernel_record {
    int64_t ts;          /* ns, the host's clock */
    uint32_t cpu;
    uint8_t kind;        /* enum kernel_kind */
    uint8_t ctx;         /* enum kernel_context: innermost at the event */
    /* Number of that context: irq number; enum kernel_softirq; IPI: string number of its name ("reschedule"); NET: the
     * context it runs in (enum kernel_context). */
    uint16_t ctx_number;
    /* Serial number of that context's frame in the chunk: records of one softirq run share it (also inside NET); 0 in
     * threads. For cuts see kernel_carry_frame. */
    uint32_t ctx_frame;
    int32_t row;         /* current thread of `cpu` (the idle thread has a row per CPU), or KERNEL_NO_ROW */
    const struct kernel_stack *stacks; /* stacks of `row` by enum kernel_stack_kind; NULL: none */
    union {
        struct {
            int32_t prev, next;
            uint8_t leave;       /* enum kernel_leave */
            int64_t prev_state;
            int64_t since;       /* time from which prev surely had the CPU; = ts if unknown */
            int32_t priority;    /* priority of next, or KERNEL_NO_PRIORITY */
        } sw;
        struct {
            int32_t row, target_cpu;
            bool by_wakeup;      /* sched_wakeup replaces sched_waking: it may fire on the target's CPU */
        } wake;
        struct { int32_t parent, child; } fork;
        struct { uint32_t file; } exec;
        struct {                 /* EXIT, FREE, MIGRATE, STATEDUMP_THREAD and _NS */
            int32_t row;
            uint8_t status;      /* STATEDUMP_THREAD: enum kernel_dumped */
            uint64_t files;      /* STATEDUMP_THREAD: address of its table of descriptors; 0: unknown */
        } thread;
        struct {
            uint32_t dev, nr_sector;
            uint64_t sector;
            uint32_t rwbs;
            int32_t error;
        } block;
        struct {
            uint32_t name;       /* name without syscall_entry_ */
            uint8_t io;          /* enum kernel_io */
            uint8_t operation;   /* futex operation: Linux's number without flags */
            int64_t ret;
            uint64_t futex;      /* address at the begin of a futex call, else 0 */
            int64_t other;       /* fd, other, flags: set when a call with io begins or a PAIR returns; -1: unknown */
            int32_t fd;
            uint32_t flags;
            const char *path;    /* path at the begin of an OPEN: path_bytes of it, not terminated */
            size_t path_bytes;
        } syscall;
        struct { uint64_t work, function; } work;
        struct { uint32_t vcpu, reason, isa; } kvm; /* isa: 1 VMX, 2 SVM, 0 unknown */
        struct { uint64_t order; } page; /* 1 << order pages */
        struct { uint32_t of_cpu, khz; } frequency;
        struct {
            uint64_t present;    /* bit per counter */
            const int64_t *values; /* values of `cpu`, by counter */
        } counters;
        struct {                 /* STATEDUMP_FD */
            const char *path;    /* path_bytes, not terminated */
            size_t path_bytes;
            uint64_t table;      /* see STATEDUMP_THREAD's files; 0: unknown */
            int32_t row, fd;     /* row: of the process, or KERNEL_NO_ROW */
            uint32_t flags;
        } descriptor;
        struct {
            int64_t begin, end;
            uint64_t count;
        } lost;                  /* losses on `cpu` (all CPUs if cpu == UINT32_MAX); see below */
        /* Absent stream: all events of `cpu` are missing from begin (INT64_MIN: unknown) to end, or to its first
         * event. */
        struct { int64_t begin, end; bool by_target; } absent;
        struct kernel_packet packet;
        struct kernel_mark mark;
    } u;
};
/* Absent streams. The record comes when the trace's files show it, or (by_target) at the first wake-up or migration to
 * a CPU without any packet in the whole trace: threads may have run there all the time.
 *
 * Losses. A record with count > 0 comes at the begin of the loss and resets the CPU. The packet that reports lost
 * events also holds good events: a tracer drops events when it has no free buffer, which is at the packet's borders. So
 * a second record (count 0) follows for [last event of that packet, end].
 *
 * Order: ts never decreases, except in packet records (these have the recorded time, whatever the merge did with a bad
 * stream). */

/* ---- binding ---- */
struct kernel_binding;
/* ERR_UNSUPPORTED if the trace has no scheduling events of a kernel. */
int kernel_bind(const struct ctf_trace *, struct kernel_binding **, struct err *);
/* Binds the new classes of a trace that grew (ctf/feed.h). False: there are none. Call it before their events are
 * passed to a tracker, followed by kernel_tracker_extend. */
bool kernel_binding_extend(struct kernel_binding *);
void kernel_binding_free(struct kernel_binding *);
bool kernel_is_kernel_trace(const struct ctf_trace *);
const char *kernel_host_name(const struct ctf_trace *); /* env hostname, or host (perf); NULL if absent */
/* Returns whether the trace declares events of that kind. */
bool kernel_has(const struct kernel_binding *, int kind);

/* ---- tracker ---- */
struct kernel_thread {
    int32_t tid, tgid, ppid; /* -1: unknown; idle: tid 0 */
    int32_t parent_row;      /* row that forked it within the trace, or KERNEL_NO_ROW */
    int32_t idle_cpu;        /* CPU of an idle thread, else -1 */
    uint32_t name;           /* string number of the last name */
    uint32_t pid_ns;         /* inode number of the pid namespace; 0: unknown */
    int32_t vtid;            /* innermost; -1: unknown */
    /* ns: first seen or forked; died, or last event of the trace when the tracker is finished (before a cut, a
     * continuing life has no end). */
    int64_t begin, end;
    bool born, died;         /* begin is a fork, end is an exit */
};

typedef void kernel_sink(void *arg, const struct kernel_record *);
struct kernel_tracker;
struct kernel_tracker *kernel_tracker_new(const struct kernel_binding *, kernel_sink *, void *arg);
/* Accepts an extended binding. */
void kernel_tracker_extend(struct kernel_tracker *);
/* Feeds merged events of the host in order; calls the sink once per record (events of no kind have none). */
void kernel_tracker_feed(struct kernel_tracker *, const struct ctf_event *events, size_t n);
void kernel_tracker_finish(struct kernel_tracker *);
size_t kernel_tracker_threads(const struct kernel_tracker *, const struct kernel_thread **out); /* threads by row */
/* Former name and tid of a thread, from the end of the entry before to `until`. Names change by exec and prctl (if
 * recorded; otherwise when the trace first shows the new one). The tid changes when a thread other than the first of
 * its process calls exec. In order of time. The thread itself has the last ones. */
struct kernel_former { int64_t until; int32_t row, tid; uint32_t name; };
size_t kernel_tracker_formers(const struct kernel_tracker *, const struct kernel_former **out);
size_t kernel_tracker_strings(const struct kernel_tracker *, const char *const **out);          /* by number; 0: "" */
/* Container that a row is in, or was in last, as a number of the tracker's; KERNEL_NO_CONTAINER: none known. A
 * container is a network namespace other than the machine's, with all threads whose pid namespace began in it; else a
 * pid namespace other than the machine's; else a cgroup namespace other than the machine's
 * (docs/decisions/traces.md). */
int32_t kernel_tracker_container(const struct kernel_tracker *, int32_t row);
int32_t kernel_tracker_containers(const struct kernel_tracker *); /* limit of the numbers; some are no container */
enum kernel_space_kind {
    KERNEL_SPACE_PID, KERNEL_SPACE_NET, KERNEL_SPACE_UTS, KERNEL_SPACE_CGROUP, KERNEL_SPACE_KINDS
};
struct kernel_container {
    int64_t since;           /* ns: first known; with tid and kind it identifies the container across cuts */
    int32_t tid;             /* tid of its first known thread */
    uint8_t kind;            /* KERNEL_SPACE_PID, …_NET or …_CGROUP */
    bool lasting;            /* container of an ended life, here or in an earlier chunk */
    uint32_t pid_ns, net_ns, uts_ns, cgroup_ns; /* numbers of inodes; 0: not reported */
    uint32_t name;           /* string number of its name in the trace, or KERNEL_NO_STRING */
    uint32_t first;          /* string number of the last name of its first process, or KERNEL_NO_STRING */
};
void kernel_tracker_container_is(const struct kernel_tracker *, int32_t container, struct kernel_container *out);
/* Names known from the state dump or from the events themselves; 0: unknown. */
uint32_t kernel_tracker_disk_name(const struct kernel_tracker *, uint32_t dev);
uint32_t kernel_tracker_irq_name(const struct kernel_tracker *, uint32_t irq);
/* Names of the performance counters, by number. */
size_t kernel_tracker_counters(const struct kernel_tracker *, const char *const **out);
bool kernel_tracker_has(const struct kernel_tracker *, int kind); /* see kernel_has */
void kernel_tracker_free(struct kernel_tracker *);

/* ---- cuts (base/carry.h, base/chunks.h) ---- The tracker of a chunk has its own rows, strings and frames, numbered
 * anew. It has the formers of its chunk; the first former of a row shows its name before that. Only the trace's last
 * chunk is finished; at a cut nothing is closed, and no record is made. */

/* Visits all state of the tracker: MARK; SAVE after kernel_tracker_carry_rows; LOAD into a new tracker, before its
 * events; builders may use it then only if carry_loaded succeeds. */
void kernel_tracker_carry(struct kernel_tracker *, struct carry *);
/* Begins SAVE with the carried rows, after MARK of the tracker and of all builders. Carried are lives that are not
 * over, their parents, idle threads, and marked rows. Their order does not depend on other cuts: by tid, then CPU (of
 * idle threads), then birth. *rows (may be NULL): row of this chunk by row of the next one; owned by the tracker.
 * Returns their number. O(rows of the chunk) */
size_t kernel_tracker_carry_rows(struct kernel_tracker *, struct carry *, const int32_t **rows);
/* Number of rows carried into this chunk: its first ones. */
size_t kernel_tracker_carried(const struct kernel_tracker *);
/* Visits a ctx_frame kept by a builder: open frames get their numbers in the next chunk, closed ones
 * KERNEL_CLOSED_FRAME, which no record has; 0 stays. The tracker is that of the records that were fed. */
#define KERNEL_CLOSED_FRAME UINT32_MAX
void kernel_carry_frame(const struct kernel_tracker *, struct carry *, uint32_t *frame);

#endif
