/* SPDX-License-Identifier: MIT */
/* make_trace DIR SEED [perf] [lossy]: a kernel trace of three CPUs and a dozen threads at random, with events of the
 * page allocator, of futexes and of CPU frequencies; with `perf`, performance counters in every event's context; with
 * `lossy`, events are missing here and there. babeltrace2's text of it is what the tests go by. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctf/ctf.h"
#include "ctf_writer.h"

enum {
    CPUS = 3,
    THREADS = 12,
    EVENTS = 6000,
    FIRST_TID = 100,
    FIRST_NS = 1000,
    ORDERS = 4,
    PERF_COUNTERS = 2,
    REQUESTS = 16
};
static const int64_t epoch_ns = INT64_C(1700000000123456789);
enum event {
    SWITCH,
    WAKING,
    PAGE_ALLOC,
    PAGE_FREE,
    OLD_PAGE_ALLOC,
    OLD_PAGE_FREE,
    FREQUENCY,
    CALL,
    RETURN,
    IRQ_ENTRY,
    IRQ_EXIT,
    NONSENSE,
    FUTEX_CALL,
    FUTEX_RETURN,
    BLOCK_INSERT,
    BLOCK_ISSUE,
    BLOCK_COMPLETE,
    BLOCK_REQUEUE
};
enum call { NO_CALL, READ_CALL, FUTEX };

#define I32 "integer { size = 32; align = 8; signed = 1; } "
#define U32 "integer { size = 32; align = 8; signed = 0; } "
#define I64 "integer { size = 64; align = 8; signed = 1; } "
#define U64 "integer { size = 64; align = 8; signed = 0; } "
#define COMM(name) "integer { size = 8; align = 8; signed = 1; encoding = UTF8; } " name "[16]; "
#define REQUEST U32 "_dev; " U64 "_sector; " U32 "_nr_sector; " U32 "_rwbs; "
#define EVENT(name, id, fields) \
    "event { name = \"" name "\"; id = " id "; stream_id = 0; fields := struct { " fields "}; };\n"

static const char declarations[] = EVENT("sched_switch", "0",
    COMM("_prev_comm") I32 "_prev_tid; " I32 "_prev_prio; " I64 "_prev_state; " COMM("_next_comm") I32
    "_next_tid; " I32
    "_next_prio; ") EVENT("sched_waking", "1", COMM("_comm") I32 "_tid; " I32 "_prio; " I32 "_target_cpu; ")
    EVENT("kmem_mm_page_alloc", "2", U64 "_page; " U64 "_pfn; " U32 "_order; " U32 "_gfp_flags; " I32 "_migratetype; ")
        EVENT("kmem_mm_page_free", "3", U64 "_page; " U64 "_pfn; " U32 "_order; ")
            EVENT("mm_page_alloc", "4", U64 "_page; " U32 "_order; " U32 "_gfp_flags; " I32 "_migratetype; ")
                EVENT("mm_page_free", "5", U64 "_page; " U32 "_order; ")
                    EVENT("power_cpu_frequency", "6", U32 "_state; " U32 "_cpu_id; ")
                        EVENT("syscall_entry_read", "7", U32 "_fd; ") EVENT("syscall_exit_read", "8", I64 "_ret; ")
                            EVENT("irq_handler_entry", "9", I32 "_irq; string _name; ") EVENT("irq_handler_exit", "10",
                                I32 "_irq; " I32 "_ret; ") EVENT("something_else", "11", U32 "_x; ")
                                EVENT("syscall_entry_futex", "12", U64 "_uaddr; " I32 "_op; " U32 "_val; ")
                                    EVENT("syscall_exit_futex", "13", I64 "_ret; " U64 "_uaddr; ")
                                        EVENT("block_rq_insert", "14", REQUEST) EVENT("block_rq_issue", "15", REQUEST)
                                            EVENT("block_rq_complete", "16", REQUEST I32 "_error; ")
                                                EVENT("block_rq_requeue", "17", REQUEST);

struct world {
    struct ctf_writer *writer;
    uint64_t dice;
    bool perf;
    int64_t now;
    int on[CPUS];        /* thread, -1: idle */
    int cpu_of[THREADS]; /* -1: none */
    bool ready[THREADS];
    enum call in_call[THREADS];
    uint64_t futex[THREADS];
    int prio[THREADS];
    uint64_t counters[CPUS][PERF_COUNTERS];
    struct request {
        uint64_t sector;
        uint32_t dev, sectors, rwbs;
        enum { NOWHERE, WAITING, WITH_DRIVER } stage;
    } requests[REQUESTS];
    uint64_t sector;
    uint8_t payload[256];
    size_t n;
};

static uint32_t roll(struct world *w, uint32_t below)
{
    w->dice ^= w->dice << 13;
    w->dice ^= w->dice >> 7;
    w->dice ^= w->dice << 17;
    return (uint32_t)((w->dice >> 11) % below);
}

/* ---- payloads ---- */

static void put(struct world *w, const void *p, size_t n)
{
    if (w->n + n > sizeof w->payload)
        abort();
    memcpy(w->payload + w->n, p, n);
    w->n += n;
}
static void put32(struct world *w, int64_t v)
{
    uint32_t x = (uint32_t)v;
    put(w, &x, sizeof x);
}
static void put64(struct world *w, uint64_t v)
{
    put(w, &v, sizeof v);
}
static void put_comm(struct world *w, int thread, int cpu)
{
    char name[32] = {0};
    snprintf(name, sizeof name, thread < 0 ? "swapper/%d" : "thread-%d", thread < 0 ? cpu : thread);
    put(w, name, 16);
}
static int tid_of(int thread)
{
    return thread < 0 ? 0 : FIRST_TID + thread;
}

/* Contexts come first in every event. */
static void start(struct world *w, int cpu)
{
    w->n = 0;
    for (int i = 0; i < PERF_COUNTERS && w->perf; i++) {
        w->counters[cpu][i] += roll(w, i ? 5 : 100000);
        put64(w, w->counters[cpu][i]);
    }
}

static void send(struct world *w, int cpu, enum event id)
{
    struct err e = {0};
    if (ctf_writer_event(w->writer, (uint32_t)cpu, id, w->now, w->payload, w->n, &e)) {
        fprintf(stderr, "%s\n", e.text);
        exit(1);
    }
}

/* ---- events ---- */

static void switch_to(struct world *w, int cpu)
{
    int prev = w->on[cpu], next = (int)roll(w, THREADS + 2);
    next = next >= THREADS || w->cpu_of[next] >= 0 || !w->ready[next] ? -1 : next;
    if (next == prev)
        return;
    int64_t state = prev < 0 ? 0 : roll(w, 2);
    start(w, cpu);
    put_comm(w, prev, cpu);
    put32(w, tid_of(prev));
    put32(w, prev < 0 ? 20 : w->prio[prev]);
    put64(w, (uint64_t)state);
    put_comm(w, next, cpu);
    put32(w, tid_of(next));
    if (next >= 0 && roll(w, 4) == 0)
        w->prio[next] = (int)roll(w, 3) * 10;
    put32(w, next < 0 ? 20 : w->prio[next]);
    send(w, cpu, SWITCH);
    if (prev >= 0) {
        w->cpu_of[prev] = -1;
        w->ready[prev] = !state;
    }
    if (next >= 0)
        w->cpu_of[next] = cpu;
    w->on[cpu] = next;
}

static void wake(struct world *w, int cpu)
{
    int thread = (int)roll(w, THREADS);
    if (w->ready[thread] || w->cpu_of[thread] >= 0)
        return;
    start(w, cpu);
    put_comm(w, thread, cpu);
    put32(w, tid_of(thread));
    put32(w, w->prio[thread]);
    put32(w, cpu);
    send(w, cpu, WAKING);
    w->ready[thread] = true;
}

static void move_pages(struct world *w, int cpu)
{
    bool old = roll(w, 2), alloc = roll(w, 9) < 5, failed = alloc && roll(w, 20) == 0;
    start(w, cpu);
    put64(w, failed ? 0 : 0xffffea0000000000 + roll(w, 1 << 20) * 64);
    if (!old)
        put64(w, failed ? UINT64_MAX : roll(w, 1 << 20));
    put32(w, roll(w, ORDERS));
    if (alloc) {
        put32(w, 0xcc0);
        put32(w, 0);
    }
    send(w, cpu, old ? alloc ? OLD_PAGE_ALLOC : OLD_PAGE_FREE : alloc ? PAGE_ALLOC : PAGE_FREE);
}

static void change_frequency(struct world *w, int cpu)
{
    static const int khz[] = {800000, 1200000, 2400000, 3600000};
    start(w, cpu);
    put32(w, khz[roll(w, 4)]);
    put32(w, roll(w, CPUS - 1)); /* CPU, perhaps another one; the last CPU has no frequency events */
    send(w, cpu, FREQUENCY);
}

static void call(struct world *w, int cpu)
{
    int thread = w->on[cpu];
    if (thread < 0 || w->in_call[thread] == FUTEX)
        return;
    start(w, cpu);
    if (w->in_call[thread])
        put64(w, roll(w, 100));
    else
        put32(w, 3);
    send(w, cpu, w->in_call[thread] ? RETURN : CALL);
    w->in_call[thread] = w->in_call[thread] ? NO_CALL : READ_CALL;
}

/* Calls of all operations, with and without their flags, on few addresses; they return whatever comes. */
static void call_futex(struct world *w, int cpu)
{
    static const int operations[] = {0, 128, 9, 137, 393, 6, 134, 13, 11, 1, 129, 138, 5, 7, 4, 12, 3, 8, 2, 140};
    static const int results[] = {0, 0, 0, 1, 2, -4, -11, -110, -512, -516};
    int thread = w->on[cpu];
    if (thread < 0 || w->in_call[thread] == READ_CALL)
        return;
    start(w, cpu);
    if (w->in_call[thread]) {
        put64(w, (uint64_t)(int64_t)results[roll(w, 10)]);
        put64(w, w->futex[thread]);
    } else {
        put64(w, w->futex[thread] = 0x7f0000001000 + roll(w, 4) * 64);
        put32(w, operations[roll(w, 20)]);
        put32(w, 1);
    }
    send(w, cpu, w->in_call[thread] ? FUTEX_RETURN : FUTEX_CALL);
    w->in_call[thread] = w->in_call[thread] ? NO_CALL : FUTEX;
    w->now += roll(w, 300);
    for (int tries = (int)roll(w, 4); w->in_call[thread] && tries > 0; tries--)
        wake(w, cpu);
}

static void interrupt(struct world *w, int cpu)
{
    start(w, cpu);
    put32(w, 9);
    put(w, "timer", 6);
    send(w, cpu, IRQ_ENTRY);
    w->now += 1 + roll(w, 500);
    if (roll(w, 3) == 0)
        move_pages(w, cpu);
    start(w, cpu);
    put32(w, 9);
    put32(w, 1);
    send(w, cpu, IRQ_EXIT);
}

static void tell_request(struct world *w, int cpu, const struct request *r, enum event id, uint32_t sectors, int error)
{
    start(w, cpu);
    put32(w, r->dev);
    put64(w, id == BLOCK_COMPLETE && !sectors ? UINT64_MAX : r->sector);
    put32(w, sectors);
    put32(w, r->rwbs);
    if (id == BLOCK_COMPLETE)
        put32(w, error);
    send(w, cpu, id);
}

/* A request waits or goes to the driver at once; is issued, perhaps together with the one behind it; completes in one
 * or several parts; or the driver gives back what is left of it. */
static void request(struct world *w, int cpu)
{
    static const uint32_t kinds[] = {1, 4, 4 | 8, 256, 2};
    struct request *r = &w->requests[roll(w, REQUESTS)];
    if (r->stage == NOWHERE) {
        *r = (struct request){w->sector, roll(w, 3) ? 8 << 20 : 8 << 20 | 16, 8 * roll(w, 40), kinds[roll(w, 5)],
            roll(w, 4) ? WAITING : WITH_DRIVER};
        w->sector += r->sectors + 8 * roll(w, 2);
        tell_request(w, cpu, r, r->stage == WAITING ? BLOCK_INSERT : BLOCK_ISSUE, r->sectors, 0);
    } else if (r->stage == WAITING) {
        for (int i = 0; i < REQUESTS; i++) {
            struct request *next = &w->requests[i];
            if (next->stage == WAITING && r->sectors && next->sectors && next->dev == r->dev &&
                next->sector == r->sector + r->sectors) {
                r->sectors += next->sectors;
                next->stage = NOWHERE;
            }
        }
        r->stage = WITH_DRIVER;
        tell_request(w, cpu, r, BLOCK_ISSUE, r->sectors, 0);
    } else if (roll(w, 8) == 0) {
        tell_request(w, cpu, r, BLOCK_REQUEUE, r->sectors, 0);
        r->stage = WAITING;
        if (roll(w, 2))
            tell_request(w, cpu, r, BLOCK_INSERT, r->sectors, 0);
    } else if (r->sectors > 8 && roll(w, 3) == 0) {
        tell_request(w, cpu, r, BLOCK_COMPLETE, 8, 0);
        r->sector += 8;
        r->sectors -= 8;
    } else {
        tell_request(w, cpu, r, BLOCK_COMPLETE, r->sectors, roll(w, 20) ? 0 : -5);
        r->stage = NOWHERE;
    }
}

static void step(struct world *w, int cpu)
{
    uint32_t what = roll(w, 100);
    if (what < 25)
        switch_to(w, cpu);
    else if (what < 40)
        wake(w, cpu);
    else if (what < 57)
        move_pages(w, cpu);
    else if (what < 59)
        change_frequency(w, cpu);
    else if (what < 69)
        call(w, cpu);
    else if (what < 85)
        call_futex(w, cpu);
    else if (what < 90)
        interrupt(w, cpu);
    else if (what < 95)
        request(w, cpu);
    else {
        start(w, cpu);
        put32(w, 1);
        send(w, cpu, NONSENSE);
    }
}

static bool has(int argc, char **argv, const char *word)
{
    for (int i = 3; i < argc; i++)
        if (!strcmp(argv[i], word))
            return true;
    return false;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "make_trace DIR SEED [perf] [lossy]\n");
        return 2;
    }
    struct world w = {.dice = strtoull(argv[2], NULL, 10) * 2654435761 + 88172645463325252,
        .perf = has(argc, argv, "perf"),
        .now = epoch_ns + FIRST_NS};
    for (int i = 0; i < THREADS; i++) {
        w.cpu_of[i] = -1;
        w.ready[i] = true;
        w.prio[i] = 20;
    }
    for (int cpu = 0; cpu < CPUS; cpu++) { /* threads present at the begin are recorded only by the first switch */
        w.on[cpu] = cpu;
        w.cpu_of[cpu] = cpu;
    }
    struct ctf_writer_options o = {.hostname = "made",
        .tsdl = declarations,
        .env = (const char *const[]){"domain=kernel", "tracer_name=lttng-modules", "kernel_release=6.1.0", NULL},
        .freq = 1000000000,
        .clock_offset_ns = epoch_ns,
        .packet_bytes = 4096,
        .cpus = CPUS,
        .uuid = {7, 7, 7},
        .large_header = true,
        .event_context = w.perf ? "uint64_t _perf_cpu_cpu_cycles; uint64_t _perf_cpu_cache_misses;" : NULL};
    bool lossy = has(argc, argv, "lossy");
    struct err e = {0};
    if (ctf_writer_open(argv[1], &o, &w.writer, &e)) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    for (int i = 0, cpu = 0; i < EVENTS; i++) {
        step(&w, cpu);
        if (lossy && i % 700 == 699 && ctf_writer_lose(w.writer, (uint32_t)cpu, 3, 0, &e)) {
            fprintf(stderr, "%s\n", e.text);
            return 1;
        }
        if (roll(&w, 10)) { /* no step: several events of a CPU in one ns */
            w.now += 1 + roll(&w, 2000);
            cpu = (int)roll(&w, CPUS);
        }
    }
    if (ctf_writer_close(w.writer, &e)) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    return 0;
}
