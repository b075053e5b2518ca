/* SPDX-License-Identifier: MIT */
/* Maker of small kernel traces for tests: a list of events, written with ctf_writer as LTTng would have written it, and
 * passed through the tracker. */
#ifndef WEFT_TESTS_KERNEL_MAKER_H
#define WEFT_TESTS_KERNEL_MAKER_H

#include "ctf/ctf.h"
#include "kernel/kernel.h"

enum maker_event {
    M_SWITCH,
    M_WAKING,
    M_WAKEUP,
    M_WAKEUP_NEW,
    M_FORK,
    M_EXEC,
    M_EXIT,
    M_FREE,
    M_IRQ_ENTRY,
    M_IRQ_EXIT,
    M_SOFTIRQ_ENTRY,
    M_SOFTIRQ_EXIT,
    M_HRTIMER_ENTRY,
    M_HRTIMER_EXIT,
    M_RESCHEDULE_ENTRY,
    M_RESCHEDULE_EXIT,
    M_LOCAL_TIMER_ENTRY,
    M_LOCAL_TIMER_EXIT,
    M_BLOCK_COMPLETE,
    M_FUTEX_ENTRY,
    M_FUTEX_EXIT,
    M_UNKNOWN_ENTRY,
    M_UNKNOWN_EXIT,
    M_DUMP_THREAD,
    M_DUMP_NS,
    M_DUMP_DISK,
    M_SEND,
    M_RECEIVE,
    M_NET_ENTRY,
    M_NET_EXIT,
    M_DO_IRQ_ENTRY,
    M_DO_IRQ_RETURN,
    M_OTHER,
    M_OPEN_ENTRY,
    M_OPEN_EXIT,
    M_READ_ENTRY,
    M_READ_EXIT,
    M_WRITE_ENTRY,
    M_WRITE_EXIT,
    M_CLOSE_ENTRY,
    M_CLOSE_EXIT,
    M_DUP_ENTRY,
    M_DUP_EXIT,
    M_LOGGER,
    M_CLONE_ENTRY,
    M_CLONE_EXIT,
    M_UNSHARE_ENTRY,
    M_UNSHARE_EXIT,
    M_SETNS_ENTRY,
    M_SETNS_EXIT,
    M_HOSTNAME_ENTRY,
    M_HOSTNAME_EXIT,
    M_DUMP_NET,
    M_DUMP_UTS,
    M_DUMP_CGROUP,
    M_SPACES,
    M_EVENTS
};
/* Pseudo-events: the packet ends here, and its context reports losses in it (LOSE) or none (CUT). */
enum { M_LOSE = 100, M_CUT };

struct maker;
/* `without`: bit mask of maker_event that the trace does not declare. */
#define M_OLD_KERNEL (UINT64_C(1) << 62) /* Linux 3.16 instead of 6.1 */
#define M_STACKS (UINT64_C(1) << 61)     /* events have call stacks, as contexts of the channel */
struct maker *maker_new(uint32_t cpus, uint64_t without);
void maker_free(struct maker *);
/* Names a thread from then on; without a name it is "tTID". Up to 8 of them, borrowed names. */
void maker_name(struct maker *, int tid, const char *name);
/* Call stacks of the events from now on, up to 200 addresses each; borrowed. */
void maker_stacks(struct maker *, const uint64_t *user, size_t n_user, const uint64_t *kernel, size_t n_kernel);
size_t maker_events(const struct maker *);
/* Returns the kind of item i, and its CPU. */
int maker_kind(const struct maker *, size_t i, uint32_t *cpu, int64_t *ts);

void maker_switch(struct maker *, uint32_t cpu, int64_t ts, int prev, int64_t state, int next);
void maker_wake(struct maker *, uint32_t cpu, int64_t ts, enum maker_event, int tid, int target_cpu);
void maker_fork(struct maker *, uint32_t cpu, int64_t ts, int parent, int child, int tgid, int vtid);
/* Adds a child in a pid namespace of that number; vtid: its number there. */
void maker_fork_in(struct maker *, uint32_t cpu, int64_t ts, int parent, int child, int tgid, int vtid, uint32_t inum);
/* HOSTNAME_ENTRY */
void maker_hostname(struct maker *, uint32_t cpu, int64_t ts, const char *name);
/* DUMP_NET, DUMP_UTS, DUMP_CGROUP */
void maker_dump_space(struct maker *, uint32_t cpu, int64_t ts, enum maker_event, int tid, uint32_t inum);
/* Adds an event whose contexts contain the namespaces of the running thread; 0: left out. */
void maker_spaces(struct maker *, uint32_t cpu, int64_t ts, uint32_t pid_ns, uint32_t net_ns, uint32_t uts_ns,
    uint32_t cgroup_ns);
void maker_logger(struct maker *, uint32_t cpu, int64_t ts, const char *text); /* up to 180 bytes */
void maker_exec(struct maker *, uint32_t cpu, int64_t ts, const char *file, int tid, int old_tid);
void maker_task(struct maker *, uint32_t cpu, int64_t ts, enum maker_event, int tid); /* EXIT, FREE */
void maker_irq(struct maker *, uint32_t cpu, int64_t ts, bool entry, int irq, const char *name);
/* SOFTIRQ, HRTIMER, RESCHEDULE, LOCAL_TIMER, FUTEX, UNKNOWN; CLONE, UNSHARE, SETNS (flags, or the return value),
 * HOSTNAME_EXIT; READ, WRITE, CLOSE, DUP (a descriptor, or the return value), OPEN_EXIT */
void maker_number(struct maker *, uint32_t cpu, int64_t ts, enum maker_event, int64_t number);
void maker_path(struct maker *, uint32_t cpu, int64_t ts, const char *path); /* OPEN_ENTRY */
void maker_plain(struct maker *, uint32_t cpu, int64_t ts, enum maker_event); /* event without fields */
void maker_block_complete(struct maker *, uint32_t cpu, int64_t ts, uint32_t dev);
void maker_dump_thread(struct maker *, uint32_t cpu, int64_t ts, int tid, int pid, int ppid, int status,
    const char *name);
void maker_dump_ns(struct maker *, uint32_t cpu, int64_t ts, int tid, int vtid, int level, uint32_t inum);
void maker_dump_disk(struct maker *, uint32_t cpu, int64_t ts, uint32_t dev, const char *name);
/* header: bytes after the interface's name (tag of the network header and what follows). */
void maker_packet(struct maker *, uint32_t cpu, int64_t ts, bool send, uint32_t len, const void *header, size_t n);
void maker_lose(struct maker *, uint32_t cpu, int64_t ts);
void maker_cut(struct maker *, uint32_t cpu, int64_t ts);

/* Writes the trace into a fresh directory and opens it. `skip`: item left out (SIZE_MAX none); `lose_skipped`: and
 * reported as lost. Packets end where the next one of their CPU begins, as LTTng's do. */
struct maker_trace {
    char dir[64];
    struct ctf_schemas *schemas;
    struct ctf_trace *trace;
};
void maker_open(const struct maker *, size_t skip, bool lose_skipped, struct maker_trace *out);
void maker_close(struct maker_trace *);
/* Feeds the whole trace; returns the tracker, finished. The binding is the caller's to free after the tracker. */
struct kernel_tracker *maker_run(const struct ctf_trace *, kernel_sink *, void *arg, struct kernel_binding **binding,
    int64_t *end);
/* Feeds the whole trace to a sink that needs the tracker when it is made. */
typedef void maker_start(void *arg, struct kernel_tracker *);
struct kernel_tracker *maker_run_with(const struct ctf_trace *, maker_start *, kernel_sink *, void *arg,
    struct kernel_binding **binding, int64_t *end);

#endif
