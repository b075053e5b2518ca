/* SPDX-License-Identifier: MIT */
/* A generated kernel trace: make_trace [--ctf2] DIR EVENTS [CPUS [THREADS [FILES]]]
 * Writes what LTTng would have written on a busy server: threads that switch, wake each other, make system calls, send
 * and receive packets, read disks, sleep, are preempted, fork and exit. FILES: how many a thread uses, at random.
 * --ctf2: metadata in CTF 2. The same arguments give the same trace, byte for byte; 100 M events take about 3.2 GB.
 * How it works: every CPU has a time at which it acts next; the earliest acts, so that what wakes lies before what is
 * woken. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "ctf_writer.h"
#include "kernel_trace.h"

enum {
    FIRST_TID = 1000,
    SHORT_LIVED = 64,
    ETHERNET_IRQ = 24,
    DISK_IRQ = 30,
    NET_RX = 3,
    DISKS = 4,
    SLICE_NS = 3000000
};
enum pending_kind { P_PACKET, P_DISK, P_TIMER, P_TICK };

struct thread {
    int32_t tid, pid, cpu;
    int call; /* the system call it waits in, or -1 */
    bool waits, preempted, dies;
    int64_t ready_ns;            /* when it was woken */
    uint32_t sequence, received; /* of its connection */
    uint64_t sector;
    int32_t next; /* in its CPU's queue, or -1 */
    char comm[16];
};

struct pending {
    int64_t ns;
    int32_t thread;
    int kind;
};

struct cpu {
    int64_t now;     /* of its newest event */
    int32_t running; /* thread, or -1: idle */
    int64_t slice_end;
    int32_t head, tail;          /* threads that are ready */
    VEC(struct pending) pending; /* heap by time */
};

struct world {
    struct ctf_writer *writer;
    uint64_t random, written, wanted;
    uint32_t n_cpus, files;
    bool ctf2;
    size_t n_threads; /* those that stay; SHORT_LIVED places for others follow */
    struct thread *threads;
    struct cpu *cpus;
    int32_t next_tid;
    struct kernel_payload payload; /* so far, of the event that is put together */
};

static uint64_t draw(struct world *w, uint64_t below)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (w->random >> 11) % below;
}

/* ---- payloads ---- */

/* Ends the event that was put together, `after` ns after the CPU's last one. */
static void emit(struct world *w, uint32_t cpu, enum kernel_event id, uint64_t after)
{
    struct err e = {0};
    w->cpus[cpu].now += (int64_t)after;
    if (ctf_writer_event(w->writer, cpu, id, w->cpus[cpu].now, w->payload.v, w->payload.n, &e)) {
        fprintf(stderr, "make_trace: %s\n", e.text);
        exit(1);
    }
    w->payload.n = 0;
    w->written++;
}

static void put_task(struct world *w, const struct thread *t)
{
    kernel_put(&w->payload, t->comm, 16);
    kernel_u32(&w->payload, (uint32_t)t->tid);
    kernel_u32(&w->payload, 20);
}

static void put_packet(
    struct world *w, uint64_t skb, uint32_t bytes, bool out, uint32_t connection, uint32_t seq, uint32_t ack)
{
    uint32_t here = 0x0a000001, there = 0x0a000100 + connection % 200;
    uint16_t port = (uint16_t)(20000 + connection);
    struct kernel_packet p = {.skb = 0xffff888000000000 + (skb << 8),
        .ip_id = (uint16_t)skb,
        .source = out ? here : there,
        .target = out ? there : here,
        .source_port = out ? 8080 : port,
        .target_port = out ? port : 8080,
        .seq = seq,
        .ack = ack,
        .flags = 0x18,
        .bytes = bytes};
    kernel_put_packet(&w->payload, &p);
}

static void call_entry(struct world *w, uint32_t cpu, enum kernel_call c, uint64_t after)
{
    /* A thread has some of its process's descriptors to itself. */
    kernel_u32(&w->payload, 3 + w->files * ((uint32_t)w->cpus[cpu].running & 7) + (uint32_t)draw(w, w->files));
    kernel_u64(&w->payload, 0x7f0000000000 + draw(w, 1 << 20));
    emit(w, cpu, CALL_ENTRY + c, after);
}

static void call_exit(struct world *w, uint32_t cpu, enum kernel_call c, uint64_t after)
{
    kernel_u64(&w->payload, draw(w, 4096));
    emit(w, cpu, CALL_EXIT + c, after);
}

/* ---- who runs ---- */

static void later(struct cpu *c, int64_t ns, int kind, int32_t thread)
{
    vec_push(&c->pending, ((struct pending){ns, thread, kind}));
    size_t i = c->pending.n - 1;
    for (; i && c->pending.v[(i - 1) / 2].ns > ns; i = (i - 1) / 2)
        c->pending.v[i] = c->pending.v[(i - 1) / 2];
    c->pending.v[i] = (struct pending){ns, thread, kind};
}

static struct pending take(struct cpu *c)
{
    struct pending first = c->pending.v[0], last = c->pending.v[--c->pending.n];
    size_t i = 0, n = c->pending.n;
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && c->pending.v[child + 1].ns < c->pending.v[child].ns;
        if (c->pending.v[child].ns >= last.ns)
            break;
        c->pending.v[i] = c->pending.v[child];
    }
    c->pending.v[i] = last;
    return first;
}

static void enqueue(struct world *w, int32_t thread, int64_t now)
{
    struct thread *t = &w->threads[thread];
    struct cpu *c = &w->cpus[t->cpu];
    t->ready_ns = now;
    t->next = -1;
    if (c->head < 0)
        c->head = thread;
    else
        w->threads[c->tail].next = thread;
    c->tail = thread;
}

static void wake(struct world *w, uint32_t cpu, int32_t thread)
{
    struct thread *t = &w->threads[thread];
    if (!t->waits)
        return;
    t->waits = false;
    for (int i = 0; i < 2; i++) {
        put_task(w, t);
        kernel_u32(&w->payload, (uint32_t)t->cpu);
        emit(w, cpu, i ? WAKEUP : WAKING, 300 + draw(w, 200));
    }
    enqueue(w, thread, w->cpus[cpu].now);
}

static void put_side(struct world *w, uint32_t cpu, int32_t thread)
{
    char idle[16] = {0};
    snprintf(idle, sizeof idle, "swapper/%u", cpu & 0xfff);
    kernel_put(&w->payload, thread < 0 ? idle : w->threads[thread].comm, 16);
    kernel_u32(&w->payload, thread < 0 ? 0 : (uint32_t)w->threads[thread].tid);
    kernel_u32(&w->payload, 20);
}

/* The CPU gives itself to the thread that waits longest for it, or to nobody. */
static void switch_away(struct world *w, uint32_t cpu, int64_t state)
{
    struct cpu *c = &w->cpus[cpu];
    int32_t prev = c->running, next = c->head;
    if (next >= 0) {
        c->head = w->threads[next].next;
        c->now = w->threads[next].ready_ns > c->now ? w->threads[next].ready_ns : c->now;
    }
    put_side(w, cpu, prev);
    kernel_u64(&w->payload, (uint64_t)state);
    put_side(w, cpu, next);
    emit(w, cpu, SWITCH, 800 + draw(w, 1000));
    c->running = next;
    c->slice_end = c->now + SLICE_NS;
    if (next >= 0 && w->threads[next].call >= 0 && !w->threads[next].preempted) {
        call_exit(w, cpu, (enum kernel_call)w->threads[next].call, 500 + draw(w, 500));
        w->threads[next].call = -1;
    }
    if (next >= 0)
        w->threads[next].preempted = false;
}

static void block(struct world *w, uint32_t cpu, enum kernel_call c, int64_t state)
{
    struct thread *t = &w->threads[w->cpus[cpu].running];
    t->call = c;
    t->waits = true;
    switch_away(w, cpu, state);
}

/* ---- what the running thread does ---- */

static void send_and_wait(struct world *w, uint32_t cpu)
{
    struct cpu *c = &w->cpus[cpu];
    int32_t self = c->running;
    struct thread *t = &w->threads[self];
    uint32_t bytes = 100 + (uint32_t)draw(w, 1300);
    call_entry(w, cpu, C_SENDTO, 1000 + draw(w, 9000));
    put_packet(w, draw(w, 1 << 20), bytes, true, (uint32_t)self, t->sequence, t->received);
    emit(w, cpu, SEND, 1500 + draw(w, 1500));
    t->sequence += bytes;
    call_exit(w, cpu, C_SENDTO, 500 + draw(w, 500));
    call_entry(w, cpu, C_EPOLL_WAIT, 500 + draw(w, 500));
    later(&w->cpus[(uint32_t)self % w->n_cpus], c->now + 100000 + (int64_t)draw(w, 2000000), P_PACKET, self);
    block(w, cpu, C_EPOLL_WAIT, 1);
}

static void read_disk(struct world *w, uint32_t cpu)
{
    struct cpu *c = &w->cpus[cpu];
    int32_t self = c->running;
    struct thread *t = &w->threads[self];
    call_entry(w, cpu, C_PREAD, 1000 + draw(w, 9000));
    t->sector = draw(w, 1 << 28);
    kernel_u32(&w->payload, 0x0800000 + (uint32_t)self % DISKS * 16);
    kernel_u64(&w->payload, t->sector);
    kernel_u32(&w->payload, 8);
    kernel_u32(&w->payload, 4096);
    kernel_u32(&w->payload, (uint32_t)t->tid);
    kernel_u32(&w->payload, 12);
    kernel_put(&w->payload, t->comm, 16);
    emit(w, cpu, BLOCK_ISSUE, 2000 + draw(w, 2000));
    later(&w->cpus[(uint32_t)(self + 1) % w->n_cpus], c->now + 60000 + (int64_t)draw(w, 400000), P_DISK, self);
    block(w, cpu, C_PREAD, 2);
}

/* A short-lived child, if there is a place for one. */
static void fork_child(struct world *w, uint32_t cpu)
{
    const struct thread *parent = &w->threads[w->cpus[cpu].running];
    for (size_t i = w->n_threads; i < w->n_threads + SHORT_LIVED; i++) {
        struct thread *t = &w->threads[i];
        if (t->tid)
            continue;
        *t = (struct thread){.tid = w->next_tid, .pid = w->next_tid, .cpu = (int32_t)draw(w, w->n_cpus), .call = -1};
        memcpy(t->comm, "helper", 7);
        w->next_tid = w->next_tid == 999999 ? 100000 : w->next_tid + 1;
        kernel_put(&w->payload, parent->comm, 16);
        kernel_u32(&w->payload, (uint32_t)parent->tid);
        kernel_u32(&w->payload, (uint32_t)parent->pid);
        kernel_u32(&w->payload, 4026531836);
        kernel_put(&w->payload, t->comm, 16);
        kernel_u32(&w->payload, (uint32_t)t->tid);
        kernel_u8(&w->payload, 1);
        kernel_u32(&w->payload, (uint32_t)t->tid);
        kernel_u32(&w->payload, (uint32_t)t->tid);
        kernel_u32(&w->payload, 4026531836);
        emit(w, cpu, FORK, 20000 + draw(w, 30000));
        put_task(w, t);
        kernel_u32(&w->payload, (uint32_t)t->cpu);
        emit(w, cpu, WAKEUP_NEW, 1000);
        enqueue(w, (int32_t)i, w->cpus[cpu].now);
        return;
    }
}

static void end_thread(struct world *w, uint32_t cpu)
{
    struct thread *t = &w->threads[w->cpus[cpu].running];
    put_task(w, t);
    emit(w, cpu, EXIT, 5000 + draw(w, 5000));
    struct thread gone = *t;
    switch_away(w, cpu, 16);
    put_task(w, &gone);
    emit(w, cpu, FREE, 2000);
    t->tid = 0;
}

static void act(struct world *w, uint32_t cpu)
{
    struct cpu *c = &w->cpus[cpu];
    int32_t self = c->running, partner = self ^ 1;
    uint64_t choice = draw(w, 1000);
    bool stays = (size_t)self < w->n_threads;
    if (c->now > c->slice_end && c->head >= 0) {
        w->threads[self].preempted = true;
        enqueue(w, self, c->now);
        switch_away(w, cpu, 0);
    } else if (!stays) {
        call_entry(w, cpu, C_STAT, 500 + draw(w, 5000));
        call_exit(w, cpu, C_STAT, 500 + draw(w, 1000));
        if (choice < 50)
            end_thread(w, cpu);
    } else if (choice < 620) { /* a call that does not wait */
        enum kernel_call call = choice < 300 ? C_READ : choice < 450 ? C_WRITE : C_STAT;
        call_entry(w, cpu, call, 300 + draw(w, 3000));
        call_exit(w, cpu, call, 300 + draw(w, 1500));
    } else if (choice < 800) { /* wakes its partner, and waits for it now and then */
        call_entry(w, cpu, C_FUTEX, 300 + draw(w, 3000));
        wake(w, cpu, partner);
        call_exit(w, cpu, C_FUTEX, 400 + draw(w, 400));
        if (choice >= 690) {
            call_entry(w, cpu, C_FUTEX, 300 + draw(w, 600));
            later(c, c->now + 20000000, P_TIMER, self); /* the wait has a time-out */
            block(w, cpu, C_FUTEX, 1);
        }
    } else if (choice < 860) {
        send_and_wait(w, cpu);
    } else if (choice < 890) {
        read_disk(w, cpu);
    } else if (choice < 900) {
        call_entry(w, cpu, C_NANOSLEEP, 500 + draw(w, 500));
        later(c, c->now + 200000 + (int64_t)draw(w, 5000000), P_TIMER, self);
        block(w, cpu, C_NANOSLEEP, 1);
    } else if (choice < 901) {
        fork_child(w, cpu);
    } else {
        c->now += (int64_t)draw(w, 20000); /* it computes */
    }
}

/* ---- interrupts ---- */

static void irq(struct world *w, uint32_t cpu, bool entry, int number, const char *name)
{
    kernel_u32(&w->payload, (uint32_t)number);
    if (entry)
        kernel_put(&w->payload, name, strlen(name) + 1);
    else
        kernel_u32(&w->payload, 1);
    emit(w, cpu, entry ? IRQ_ENTRY : IRQ_EXIT, 600 + draw(w, 600));
}

static void softirq(struct world *w, uint32_t cpu, enum kernel_event id)
{
    kernel_u32(&w->payload, NET_RX);
    emit(w, cpu, id, 300 + draw(w, 300));
}

static void packet_arrives(struct world *w, uint32_t cpu, int32_t thread)
{
    struct thread *t = &w->threads[thread];
    uint32_t bytes = 200 + (uint32_t)draw(w, 1200);
    irq(w, cpu, true, ETHERNET_IRQ + (int)cpu, "eth0-rx");
    softirq(w, cpu, RAISE);
    irq(w, cpu, false, ETHERNET_IRQ + (int)cpu, NULL);
    softirq(w, cpu, SOFT_ENTRY);
    put_packet(w, draw(w, 1 << 20), bytes, false, (uint32_t)thread, t->received, t->sequence);
    emit(w, cpu, RECEIVE, 700 + draw(w, 700));
    t->received += bytes;
    wake(w, cpu, thread);
    softirq(w, cpu, SOFT_EXIT);
}

static void disk_completes(struct world *w, uint32_t cpu, int32_t thread)
{
    irq(w, cpu, true, DISK_IRQ + thread % DISKS, "nvme0q1");
    kernel_u32(&w->payload, 0x0800000 + (uint32_t)thread % DISKS * 16);
    kernel_u64(&w->payload, w->threads[thread].sector);
    kernel_u32(&w->payload, 8);
    kernel_u32(&w->payload, 0);
    kernel_u32(&w->payload, 12);
    emit(w, cpu, BLOCK_COMPLETE, 700 + draw(w, 700));
    wake(w, cpu, thread);
    irq(w, cpu, false, DISK_IRQ + thread % DISKS, NULL);
}

static void timer_expires(struct world *w, uint32_t cpu, int32_t thread)
{
    struct cpu *c = &w->cpus[cpu];
    uint64_t timer = 0xffff888100000000 + (uint64_t)(thread + 1) * 64;
    kernel_u64(&w->payload, timer);
    kernel_u64(&w->payload, (uint64_t)c->now);
    kernel_u64(&w->payload, 0xffffffff81168830);
    emit(w, cpu, TIMER_ENTRY, 500 + draw(w, 500));
    if (thread >= 0)
        wake(w, cpu, thread);
    kernel_u64(&w->payload, timer);
    emit(w, cpu, TIMER_EXIT, 500 + draw(w, 500));
}

static void interrupt(struct world *w, uint32_t cpu)
{
    struct cpu *c = &w->cpus[cpu];
    struct pending p = take(c);
    bool in_vain = p.kind == P_TIMER && w->threads[p.thread].call != C_NANOSLEEP &&
        w->threads[p.thread].call != C_FUTEX;
    c->now = p.ns > c->now ? p.ns : c->now;
    if (p.kind == P_PACKET)
        packet_arrives(w, cpu, p.thread);
    else if (p.kind == P_DISK)
        disk_completes(w, cpu, p.thread);
    else if (p.kind == P_TICK)
        timer_expires(w, cpu, -1);
    else if (!in_vain) /* else the wait had ended, and its timer had been taken back */
        timer_expires(w, cpu, p.thread);
    if (p.kind == P_TICK)
        later(c, p.ns + 4000000, P_TICK, -1);
}

/* ---- the run ---- */

/* When the CPU acts next. */
static int64_t next_time(const struct world *w, const struct cpu *c)
{
    int64_t ns = c->pending.v[0].ns > c->now ? c->pending.v[0].ns : c->now; /* the tick is always there */
    if (c->running >= 0)
        return c->now;
    if (c->head >= 0 && w->threads[c->head].ready_ns < ns)
        ns = w->threads[c->head].ready_ns > c->now ? w->threads[c->head].ready_ns : c->now;
    return ns;
}

static void run(struct world *w)
{
    while (w->written < w->wanted) {
        uint32_t first = 0;
        int64_t earliest = INT64_MAX;
        for (uint32_t i = 0; i < w->n_cpus; i++) {
            int64_t ns = next_time(w, &w->cpus[i]);
            if (ns < earliest) {
                earliest = ns;
                first = i;
            }
        }
        struct cpu *c = &w->cpus[first];
        if (c->pending.v[0].ns <= earliest)
            interrupt(w, first);
        else if (c->running < 0)
            switch_away(w, first, 0);
        else
            act(w, first);
    }
}

static void start_threads(struct world *w)
{
    static const char *const names[] = {"nginx", "postgres", "python3", "java", "etl", "redis"};
    for (size_t i = 0; i < w->n_threads; i++) {
        struct thread *t = &w->threads[i];
        *t = (struct thread){.tid = FIRST_TID + (int32_t)i,
            .pid = FIRST_TID + (int32_t)(i & ~(size_t)7),
            .cpu = (int32_t)(i % w->n_cpus),
            .call = -1};
        snprintf(t->comm, sizeof t->comm, "%s", names[i / 8 % (sizeof names / sizeof *names)]);
        kernel_u32(&w->payload, (uint32_t)t->tid);
        kernel_u32(&w->payload, (uint32_t)t->pid);
        kernel_u32(&w->payload, 1);
        kernel_put(&w->payload, t->comm, 16);
        kernel_u32(&w->payload, 5);
        emit(w, 0, DUMP_THREAD, 1000);
    }
    for (uint32_t i = 0; i < DISKS; i++) {
        char name[16];
        int n = snprintf(name, sizeof name, "nvme%un1", i);
        kernel_u32(&w->payload, 0x0800000 + i * 16);
        kernel_put(&w->payload, name, (size_t)n + 1);
        emit(w, 0, DUMP_DISK, 1000);
    }
    emit(w, 0, DUMP_END, 1000);
    for (uint32_t i = 1; i < w->n_cpus; i++)
        w->cpus[i].now = w->cpus[0].now;
    for (uint32_t i = 0; i < w->n_cpus; i++)
        later(&w->cpus[i], w->cpus[i].now + 1000 + 500000 * i, P_TICK, -1);
    for (size_t i = 0; i < w->n_threads; i++) {
        w->threads[i].waits = true;
        later(&w->cpus[i % w->n_cpus], w->cpus[0].now + (int64_t)draw(w, 2000000), P_PACKET, (int32_t)i);
    }
}

static int open_writer(struct world *w, const char *dir, struct err *e)
{
    struct text tsdl = {.fd = -1};
    kernel_declare(&tsdl);
    struct ctf_writer_options o = {.hostname = "made",
        .tsdl = text_cstr(&tsdl),
        .env = kernel_env,
        .clock_offset_ns = 1700000000000000000,
        .packet_bytes = 1 << 20,
        .cpus = w->n_cpus,
        .uuid = {0x77, 0x65, 0x66, 0x74, 1},
        .index_files = true,
        .ctf2 = w->ctf2,
        .large_header = true};
    int rc = ctf_writer_open(dir, &o, &w->writer, e);
    text_fini(&tsdl);
    return rc;
}

int main(int argc, char **argv)
{
    struct world w = {.random = 0x9e3779b97f4a7c15, .n_cpus = 8, .files = 5, .n_threads = 400, .next_tid = 100000};
    struct err e = {0};
    w.ctf2 = argc > 1 && !strcmp(argv[1], "--ctf2");
    argc -= w.ctf2;
    argv += w.ctf2;
    w.wanted = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    w.n_cpus = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : w.n_cpus;
    w.n_threads = argc > 4 ? strtoul(argv[4], NULL, 10) & ~1ul : w.n_threads;
    w.files = argc > 5 ? (uint32_t)strtoul(argv[5], NULL, 10) : w.files;
    if (!w.wanted || !w.n_cpus || w.n_cpus > 1024 || w.n_threads < 2 || w.n_threads > 50000 || !w.files ||
        w.files > 8000) {
        fprintf(stderr,
            "make_trace [--ctf2] DIR EVENTS [CPUS [THREADS [FILES]]]: at most 1024 CPUs, 2 to 50000 threads, 8000 "
            "files\n");
        return 2;
    }
    w.threads = mem_zalloc(sizeof *w.threads * (w.n_threads + SHORT_LIVED));
    w.cpus = mem_zalloc(sizeof *w.cpus * w.n_cpus);
    for (uint32_t i = 0; i < w.n_cpus; i++)
        w.cpus[i] = (struct cpu){.now = 1700000001000000000, .running = -1, .head = -1};
    int rc = open_writer(&w, argv[1], &e);
    if (!rc) {
        start_threads(&w);
        run(&w);
        rc = ctf_writer_close(w.writer, &e);
    }
    if (rc)
        fprintf(stderr, "make_trace: %s\n", e.text);
    else
        printf("{\"bench\":\"make\",\"events\":%" PRIu64 ",\"cpus\":%u,\"threads\":%zu}\n", w.written, w.n_cpus,
            w.n_threads);
    for (uint32_t i = 0; i < w.n_cpus; i++)
        vec_free(&w.cpus[i].pending);
    free(w.cpus);
    free(w.threads);
    return rc ? 1 : 0;
}
