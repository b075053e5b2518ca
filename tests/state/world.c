/* SPDX-License-Identifier: MIT */
#include "world.h"

static const char *const counters[] = {"perf_cpu_cycles", "perf_cpu_cache_misses"};

/* ---- the tracker's questions ---- */

static const char *const names[NAMES] = {"", "read", "openat", "eth0", "vda", "timer", "reschedule", "futex"};

size_t kernel_tracker_threads(const struct kernel_tracker *w, const struct kernel_thread **out)
{
    *out = w->threads;
    return WORLD_THREADS;
}

size_t kernel_tracker_strings(const struct kernel_tracker *w, const char *const **out)
{
    *out = names;
    return NAMES;
}

uint32_t kernel_tracker_irq_name(const struct kernel_tracker *w, uint32_t irq)
{
    return irq == 7 ? NAME_TIMER_IRQ : NAME_NONE;
}

uint32_t kernel_tracker_disk_name(const struct kernel_tracker *w, uint32_t dev)
{
    return dev == 1 ? NAME_DISK : NAME_NONE;
}

size_t kernel_tracker_counters(const struct kernel_tracker *w, const char *const **out)
{
    *out = counters;
    return sizeof counters / sizeof *counters;
}

bool kernel_tracker_has(const struct kernel_tracker *w, int kind)
{
    return true;
}

void kernel_carry_frame(const struct kernel_tracker *w, struct carry *c, uint32_t *frame) {}

uint64_t world_seed = 42;

uint64_t world_random(uint64_t below)
{
    world_seed = world_seed * 6364136223846793005 + 1442695040888963407;
    return (world_seed >> 33) % below;
}

/* ---- life ---- */

void world_begin(struct kernel_tracker *w)
{
    memset(w, 0, sizeof *w);
    for (int i = 0; i < WORLD_THREADS; i++)
        w->threads[i] = (struct kernel_thread){
            .tid = i < WORLD_CPUS ? 0 : 100 + i, .parent_row = -1, .idle_cpu = i < WORLD_CPUS ? i : -1, .begin = 0};
    for (int i = 0; i < WORLD_CPUS; i++)
        w->on[i] = -1;
    w->first = INT64_MAX;
    w->last = INT64_MIN;
    static int serial;
    snprintf(w->path, sizeof w->path, "/tmp/weft-state-%d-%d", getpid(), serial++);
    w->builder = state_builder_new(w, store_file(w->path), 1);
}

void world_add(struct kernel_tracker *w, struct kernel_record r)
{
    w->first = r.ts < w->first ? r.ts : w->first;
    w->last = r.ts > w->last ? r.ts : w->last;
    state_builder_add(w->builder, &r);
}

void world_end(struct kernel_tracker *w)
{
    struct err e = {0};
    if (state_builder_write(w->builder, w->first, w->last, &e) || state_check(w->path, NULL, &e) ||
        state_open(w->path, &w->store, &e))
        fail_msg("%s", e.text);
}

void world_close(struct kernel_tracker *w)
{
    state_close(w->store);
    state_builder_free(w->builder);
    unlink(w->path);
}

/* ---- records ---- */

static struct kernel_record record(const struct kernel_tracker *w, int64_t ts, int cpu, int kind)
{
    return (struct kernel_record){.ts = ts,
        .cpu = (uint32_t)cpu,
        .kind = (uint8_t)kind,
        .ctx = w->frames[cpu] ? KERNEL_CTX_IRQ : KERNEL_CTX_THREAD,
        .row = w->on[cpu]};
}

void world_switch_since(
    struct kernel_tracker *w, int64_t ts, int cpu, int32_t prev, int32_t next, int leave, int64_t since)
{
    struct kernel_record r = record(w, ts, cpu, KERNEL_SWITCH);
    r.row = r.u.sw.prev = prev;
    r.u.sw.next = next;
    r.u.sw.leave = (uint8_t)leave;
    r.u.sw.since = since;
    if (leave == KERNEL_LEAVE_DEAD) {
        w->threads[prev].died = true;
        w->threads[prev].end = ts;
    }
    world_add(w, r);
    w->on[cpu] = next;
}

void world_switch(struct kernel_tracker *w, int64_t ts, int cpu, int32_t prev, int32_t next, int leave)
{
    world_switch_since(w, ts, cpu, prev, next, leave, ts);
}

void world_wake(struct kernel_tracker *w, int64_t ts, int cpu, int32_t row)
{
    struct kernel_record r = record(w, ts, cpu, KERNEL_WAKE);
    if (w->frames[cpu])
        r.ctx = KERNEL_CTX_IRQ;
    r.u.wake.row = row;
    world_add(w, r);
}

void world_call(struct kernel_tracker *w, int64_t ts, int cpu, uint32_t name)
{
    struct kernel_record r = record(w, ts, cpu, KERNEL_SYSCALL_ENTRY);
    r.u.syscall.name = name;
    world_add(w, r);
}

void world_futex(struct kernel_tracker *w, int64_t ts, int cpu, uint64_t address, uint8_t operation)
{
    struct kernel_record r = record(w, ts, cpu, KERNEL_SYSCALL_ENTRY);
    r.u.syscall.name = NAME_FUTEX;
    r.u.syscall.futex = address;
    r.u.syscall.operation = operation;
    world_add(w, r);
}

void world_return(struct kernel_tracker *w, int64_t ts, int cpu, uint32_t name, int64_t ret)
{
    struct kernel_record r = record(w, ts, cpu, KERNEL_SYSCALL_EXIT);
    r.u.syscall.name = name;
    r.u.syscall.ret = ret;
    world_add(w, r);
}

void world_io(
    struct kernel_tracker *w, int64_t ts, int cpu, int io, int32_t fd, int64_t other, uint32_t flags, const char *path)
{
    world_add(w,
        (struct kernel_record){.ts = ts,
            .cpu = (uint32_t)cpu,
            .kind = KERNEL_SYSCALL_ENTRY,
            .ctx = KERNEL_CTX_THREAD,
            .row = w->on[cpu],
            .u.syscall = {.name = NAME_READ,
                .io = (uint8_t)io,
                .fd = fd,
                .other = other,
                .flags = flags,
                .path = path ? path : "",
                .path_bytes = path ? strlen(path) : 0}});
}

void world_io_return(struct kernel_tracker *w, int64_t ts, int cpu, int io, int64_t ret)
{
    world_add(w,
        (struct kernel_record){.ts = ts,
            .cpu = (uint32_t)cpu,
            .kind = KERNEL_SYSCALL_EXIT,
            .ctx = KERNEL_CTX_THREAD,
            .row = w->on[cpu],
            .u.syscall = {.name = NAME_READ, .io = (uint8_t)io, .ret = ret}});
}

void world_irq(struct kernel_tracker *w, int64_t ts, int cpu, int kind, uint16_t number, uint32_t serial)
{
    struct kernel_record r = record(w, ts, cpu, kind);
    r.ctx = kind == KERNEL_SOFTIRQ_ENTRY || kind == KERNEL_SOFTIRQ_EXIT ? KERNEL_CTX_SOFTIRQ
        : kind == KERNEL_IRQ_ENTRY || kind == KERNEL_IRQ_EXIT           ? KERNEL_CTX_IRQ
                                                                        : KERNEL_CTX_IPI;
    r.ctx_number = number;
    r.ctx_frame = serial;
    w->frames[cpu] += kind == KERNEL_IRQ_ENTRY || kind == KERNEL_SOFTIRQ_ENTRY || kind == KERNEL_IPI_ENTRY ? 1 : -1;
    world_add(w, r);
}

void world_lost(struct kernel_tracker *w, int64_t ts, uint32_t cpu, int64_t begin, int64_t end, uint64_t count)
{
    struct kernel_record r = {.ts = ts, .cpu = cpu, .kind = KERNEL_LOST, .row = -1};
    r.u.lost.begin = begin;
    r.u.lost.end = end;
    r.u.lost.count = count;
    world_add(w, r);
    for (uint32_t i = 0; i < WORLD_CPUS; i++)
        if (cpu == i || cpu == UINT32_MAX)
            w->on[i] = -1;
}

/* ---- reading ---- */

const char *world_row(struct kernel_tracker *w, int kind, int32_t number)
{
    static const char *const values[STATE_VALUES] = {"none", "user", "call", "interrupted", "ready", "blocked",
        "waiting", "idle", "irq", "softirq", "raised", "active", "unknown", "wait", "wake"};
    static char text[4096];
    static struct state_interval list[256];
    int64_t row = state_find_row(w->store, kind, number);
    size_t at = 0;
    text[0] = 0;
    if (row < 0)
        return "no such row";
    size_t n = state_range(w->store, kind, (size_t)row, INT64_MIN, INT64_MAX, list, 256);
    for (size_t i = 0; i < n; i++) {
        const struct state_interval *x = &list[i];
        char where[32] = "";
        if (x->thread >= 0 && (kind == STATE_CPU_THREAD || kind == STATE_FUTEX_WAITS || kind == STATE_FUTEX_WAKES))
            snprintf(where, sizeof where, "@%d", x->thread);
        if (x->cpu >= 0)
            snprintf(where, sizeof where, "@%d", x->cpu);
        if (kind == STATE_FUTEX_USER && x->name && !x->cut)
            snprintf(where, sizeof where, "=%lld", (long long)x->amount);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s%s%s:%lld-%lld", i ? " " : "",
            x->name ? x->name : values[x->value], where, x->cut ? "!" : "", (long long)x->begin, (long long)x->end);
    }
    return text;
}
