/* SPDX-License-Identifier: MIT */
/* Rules by which records become states, counters and latencies. Expected rows follow from the rules of the
 * documentation (docs/formats/states.md). */
#include "state/format.h"
#include "world.h"

enum { A = 4, B, C }; /* threads */

#define check_row(kind, number, text) assert_string_equal(world_row(&w, kind, number), text)

static void thread_life(void **state)
{
    struct kernel_tracker w;
    world_begin(&w);
    w.threads[B].born = true;
    w.threads[B].begin = 120;
    world_switch(&w, 100, 0, 0, A, KERNEL_LEAVE_RUNNABLE);
    world_call(&w, 110, 0, NAME_OPEN);
    struct kernel_record fork = {
        .ts = 120, .cpu = 0, .kind = KERNEL_FORK, .ctx = KERNEL_CTX_THREAD, .row = A, .u.fork = {A, B}};
    world_add(&w, fork);
    world_return(&w, 130, 0, NAME_OPEN, 3);
    world_call(&w, 140, 0, NAME_READ);
    world_switch(&w, 150, 0, A, B, KERNEL_LEAVE_BLOCKED);
    world_return(&w, 155, 0, NAME_OPEN, 0); /* a child returns from the call that made it */
    world_irq(&w, 160, 0, KERNEL_IRQ_ENTRY, 7, 1);
    world_wake(&w, 165, 0, A);
    world_irq(&w, 170, 0, KERNEL_IRQ_EXIT, 7, 1);
    world_irq(&w, 170, 0, KERNEL_SOFTIRQ_ENTRY, KERNEL_SOFTIRQ_NET_RX, 2);
    world_irq(&w, 175, 0, KERNEL_SOFTIRQ_EXIT, KERNEL_SOFTIRQ_NET_RX, 2);
    world_switch(&w, 180, 0, B, A, KERNEL_LEAVE_RUNNABLE);
    world_return(&w, 190, 0, NAME_READ, -11);
    world_switch(&w, 200, 0, A, B, KERNEL_LEAVE_RUNNABLE);
    world_switch(&w, 210, 0, B, 0, KERNEL_LEAVE_DEAD);
    world_switch(&w, 250, 0, 0, A, KERNEL_LEAVE_RUNNABLE);
    world_switch(&w, 300, 0, A, 0, KERNEL_LEAVE_BLOCKED);
    world_call(&w, 310, 1, NAME_READ); /* wake by an unknown thread */
    world_end(&w);
    check_row(STATE_THREAD, A,
        "user:100-110 openat:110-130 user:130-140 read:140-150 blocked:150-165 ready:165-180 read:180-190 user:190-200 "
        "ready:200-250 user:250-300 blocked:300-310");
    check_row(STATE_THREAD, B,
        "none:100-120 ready:120-150 openat:150-155 user:155-160 interrupted:160-175 user:175-180 ready:180-200 "
        "user:200-210 "
        "none:210-310");
    check_row(STATE_THREAD, C, "unknown:100-310");
    check_row(STATE_THREAD, 0, "ready:100-210 idle:210-250 ready:250-300 idle:300-310");
    check_row(STATE_CPU, 0,
        "user:100-110 openat:110-130 user:130-140 read:140-150 openat:150-155 user:155-160 timer:160-170 "
        "NET_RX:170-175 user:175-180 "
        "read:180-190 user:190-200 user:200-210 idle:210-250 user:250-300 idle:300-310");
    check_row(STATE_CPU_THREAD, 0,
        "active@4:100-150 active@5:150-180 active@4:180-200 active@5:200-210 idle@0:210-250 active@4:250-300 "
        "idle@0:300-310");
    check_row(STATE_CPU, 1, "unknown:100-310");
    check_row(STATE_CPU_IRQ, 0 << 16 | 7, "none:100-160 active:160-170 none:170-310");
    check_row(STATE_IRQ_LINE, 7, "none:100-160 active@0:160-170 none:170-310");
    check_row(STATE_CPU_SOFTIRQ, 0 << 16 | KERNEL_SOFTIRQ_NET_RX, "none:100-170 active:170-175 none:175-310");
    int64_t ran, at = 310;
    state_counter_values(w.store, STATE_CPU_TIME, A, &at, 1, &ran);
    assert_int_equal(ran, 50 + 20 + 50);
    state_counter_values(w.store, STATE_CPU_TIME, B, &at, 1, &ran);
    assert_int_equal(ran, 30 + 10);
    state_counter_values(
        w.store, STATE_CPU_TIME, (size_t)state_find_counter(w.store, STATE_CPU_TIME, -1), &at, 1, &ran);
    assert_int_equal(ran, 110 + 50);
    assert_int_equal(state_thread_cpu(w.store, B, 155, -1), 0);
    assert_int_equal(state_thread_cpu(w.store, B, 155, 1), 0);
    assert_int_equal(state_thread_cpu(w.store, B, 185, -1), -1);
    world_close(&w);
}

/* Checks that a switch reveals the next state of the thread that leaves, also without earlier events of it. */
static void left_as_first_event(void **state)
{
    struct kernel_tracker w;
    world_begin(&w);
    world_switch(&w, 100, 0, A, B, KERNEL_LEAVE_BLOCKED);
    world_switch(&w, 110, 1, C, 1, KERNEL_LEAVE_RUNNABLE);
    world_switch(&w, 120, 2, 2, 5 + A, KERNEL_LEAVE_RUNNABLE);
    world_switch(&w, 150, 1, 1, C, KERNEL_LEAVE_RUNNABLE);
    world_wake(&w, 160, 0, A);
    world_switch(&w, 200, 0, B, A, KERNEL_LEAVE_RUNNABLE);
    world_end(&w);
    check_row(STATE_THREAD, A, "blocked:100-160 ready:160-200");
    check_row(STATE_THREAD, C, "unknown:100-110 ready:110-150 user:150-200");
    check_row(STATE_THREAD, 2, "unknown:100-120 ready:120-200");
    world_close(&w);
}

/* Checks the state before a CPU's first switch: the switch reveals the thread, and its next action whether it was in a
 * system call. */
static void revealed_by_first_switch(void **state)
{
    struct kernel_tracker w;
    world_begin(&w);
    world_return(&w, 100, 0, NAME_READ, 0);
    world_irq(&w, 110, 0, KERNEL_IRQ_ENTRY, 9, 1);
    world_irq(&w, 120, 0, KERNEL_IRQ_EXIT, 9, 1);
    world_call(&w, 130, 0, NAME_OPEN);
    world_call(&w, 95, 1, NAME_OPEN);
    world_switch_since(&w, 150, 0, A, B, KERNEL_LEAVE_BLOCKED, 90);
    world_return(&w, 170, 0, NAME_READ, 0);
    world_switch(&w, 180, 0, B, 0, KERNEL_LEAVE_BLOCKED);
    w.first = 80;
    world_end(&w);
    check_row(STATE_THREAD, A,
        "unknown:80-90 read:90-100 user:100-110 interrupted:110-120 user:120-130 openat:130-150 blocked:150-180");
    check_row(STATE_THREAD, B, "unknown:80-150 read:150-170 user:170-180");
    check_row(STATE_CPU, 0,
        "unknown:80-90 read:90-100 user:100-110 9:110-120 user:120-130 openat:130-150 read:150-170 user:170-180");
    assert_int_equal(state_latencies(w.store, STATE_LATENCY_SYSCALL), 0); /* none with both ends seen */
    world_close(&w);
}

/* Checks that a child waits for a CPU from its fork; its latency is from its wake, which is repeated like that of any
 * other. */
static void first_dispatch(void **state)
{
    struct kernel_tracker w;
    struct state_latency l;
    world_begin(&w);
    w.threads[B].born = true;
    w.threads[B].begin = 120;
    world_switch(&w, 100, 0, 0, A, KERNEL_LEAVE_RUNNABLE);
    struct kernel_record fork = {
        .ts = 120, .cpu = 0, .kind = KERNEL_FORK, .ctx = KERNEL_CTX_THREAD, .row = A, .u.fork = {A, B}};
    world_add(&w, fork);
    struct kernel_record wake = {
        .ts = 125, .cpu = 0, .kind = KERNEL_WAKE_NEW, .ctx = KERNEL_CTX_THREAD, .row = A, .u.wake = {.row = B}};
    world_add(&w, wake);
    world_wake(&w, 127, 0, B);
    world_switch(&w, 150, 1, 1, B, KERNEL_LEAVE_RUNNABLE);
    world_switch(&w, 160, 1, B, 1, KERNEL_LEAVE_RUNNABLE);
    world_switch(&w, 170, 1, 1, B, KERNEL_LEAVE_RUNNABLE); /* preempted is not woken */
    world_end(&w);
    assert_int_equal(state_latencies(w.store, STATE_LATENCY_SCHED), 1);
    state_latency(w.store, STATE_LATENCY_SCHED, 0, &l);
    assert_int_equal(l.begin, 125);
    assert_int_equal(l.end, 150);
    assert_int_equal(l.thread, B);
    check_row(STATE_THREAD, B, "none:100-120 ready:120-150 user:150-160 ready:160-170");
    world_close(&w);
}

static void came_before_it_left(void **state)
{
    struct kernel_tracker w;
    world_begin(&w);
    world_switch(&w, 100, 0, 0, A, KERNEL_LEAVE_RUNNABLE);
    world_switch(&w, 100, 1, 1, B, KERNEL_LEAVE_RUNNABLE);
    world_switch(&w, 150, 1, B, A, KERNEL_LEAVE_BLOCKED); /* A leaves CPU 0 in the same ns */
    world_switch(&w, 150, 0, A, 0, KERNEL_LEAVE_RUNNABLE);
    world_switch(&w, 200, 1, A, 1, KERNEL_LEAVE_BLOCKED);
    world_switch(&w, 250, 1, 1, B, KERNEL_LEAVE_RUNNABLE);
    world_end(&w);
    check_row(STATE_THREAD, A, "user:100-200 blocked:200-250");
    check_row(STATE_CPU_THREAD, 0, "active@4:100-150 idle@0:150-250");
    check_row(STATE_CPU_THREAD, 1, "active@5:100-150 active@4:150-200 idle@1:200-250");
    world_close(&w);
}

static void line_on_two_cpus(void **state)
{
    struct kernel_tracker w;
    world_begin(&w);
    world_switch(&w, 100, 0, A, 0, KERNEL_LEAVE_BLOCKED);
    world_irq(&w, 110, 0, KERNEL_SOFTIRQ_ENTRY, KERNEL_SOFTIRQ_RCU, 1);
    world_irq(&w, 120, 1, KERNEL_SOFTIRQ_ENTRY, KERNEL_SOFTIRQ_RCU, 2);
    world_irq(&w, 130, 1, KERNEL_SOFTIRQ_EXIT, KERNEL_SOFTIRQ_RCU, 2);
    world_irq(&w, 140, 0, KERNEL_SOFTIRQ_EXIT, KERNEL_SOFTIRQ_RCU, 1);
    world_irq(&w, 150, 0, KERNEL_IPI_ENTRY, NAME_IPI, 3);
    world_irq(&w, 151, 0, KERNEL_IPI_EXIT, NAME_IPI, 3);
    world_switch(&w, 200, 0, 0, A, KERNEL_LEAVE_RUNNABLE);
    world_end(&w);
    check_row(STATE_SOFTIRQ_VECTOR, KERNEL_SOFTIRQ_RCU,
        "none:100-110 active@0:110-120 active@1:120-130 active@0:130-140 none:140-200");
    check_row(STATE_CPU_SOFTIRQ, 1 << 16 | KERNEL_SOFTIRQ_RCU, "none:100-120 active:120-130 none:130-200");
    check_row(STATE_CPU, 0, "idle:100-110 RCU:110-140 idle:140-150 reschedule:150-151 idle:151-200");
    check_row(STATE_CPU, 1, "unknown:100-120 RCU:120-130 unknown:130-200");
    struct state_row r;
    int64_t i = state_find_row(w.store, STATE_IRQ_LINE, STATE_IPI);
    assert_true(i >= 0);
    state_row(w.store, STATE_IRQ_LINE, (size_t)i, &r);
    assert_string_equal(r.name, "reschedule");
    struct state_latency l;
    assert_int_equal(state_latencies(w.store, STATE_LATENCY_SOFTIRQ), 2);
    state_latency(w.store, STATE_LATENCY_SOFTIRQ, 1, &l);
    assert_int_equal(l.begin, 120);
    assert_int_equal(l.end, 130);
    assert_int_equal(l.cpu, 1);
    assert_int_equal(l.thread, -1);
    assert_string_equal(l.name, "RCU");
    state_latency(w.store, STATE_LATENCY_SOFTIRQ, 0, &l);
    assert_int_equal(l.thread, 0);
    world_close(&w);
}

/* CPU 0 loses events from 200 to 240; B waits meanwhile, C runs on CPU 1 throughout. */
static void losses(void **state)
{
    struct kernel_tracker w;
    world_begin(&w);
    world_switch(&w, 100, 0, 0, B, KERNEL_LEAVE_RUNNABLE);
    world_switch(&w, 100, 1, 1, C, KERNEL_LEAVE_RUNNABLE);
    world_switch(&w, 150, 0, B, A, KERNEL_LEAVE_BLOCKED);
    world_call(&w, 160, 0, NAME_READ);
    world_lost(&w, 200, 0, 200, 400, 5);
    world_call(&w, 210, 1, NAME_OPEN);
    world_return(&w, 240, 0, NAME_READ, 0); /* CPU 0 is heard of again */
    world_return(&w, 250, 1, NAME_OPEN, 1);
    world_switch_since(&w, 260, 0, A, 0, KERNEL_LEAVE_BLOCKED, 240);
    world_wake(&w, 270, 1, B);
    world_switch(&w, 280, 0, 0, B, KERNEL_LEAVE_RUNNABLE);
    world_lost(&w, 400, 0, 300, 400, 0); /* loss reported at its end: from the packet's last event to its end */
    world_switch(&w, 410, 1, C, 1, KERNEL_LEAVE_BLOCKED);
    world_wake(&w, 420, 1, A);
    world_wake(&w, 430, 1, C);
    world_switch(&w, 440, 1, 1, C, KERNEL_LEAVE_RUNNABLE);
    world_end(&w);
    check_row(STATE_THREAD, A,
        "unknown:100-150 user:150-160 read:160-200 unknown:200-240 user:240-260 blocked:260-300 unknown:300-400 "
        "blocked:400-420 "
        "ready:420-440");
    check_row(STATE_THREAD, B,
        "user:100-150 blocked:150-200 unknown:200-240 blocked:240-270 ready:270-280 user:280-300 unknown:300-440");
    check_row(STATE_THREAD, C, "user:100-210 openat:210-250 user:250-410 blocked:410-430 ready:430-440");
    check_row(STATE_CPU_THREAD, 0,
        "active@5:100-150 active@4:150-200 unknown:200-240 active@4:240-260 idle@0:260-280 active@5:280-300 "
        "unknown:300-440");
    struct state_loss l;
    assert_int_equal(state_losses(w.store), 1);
    state_loss(w.store, 0, &l);
    assert_int_equal(l.count, 5);
    assert_int_equal(l.cpu, 0);
    /* A's read may have ended and begun again unseen; B was woken when all was seen. */
    struct state_latency x;
    assert_int_equal(state_latencies(w.store, STATE_LATENCY_SYSCALL), 1);
    state_latency(w.store, STATE_LATENCY_SYSCALL, 0, &x);
    assert_int_equal(x.thread, C);
    assert_int_equal(state_latencies(w.store, STATE_LATENCY_SCHED), 2);
    state_latency(w.store, STATE_LATENCY_SCHED, 0, &x);
    assert_int_equal(x.thread, B);
    assert_int_equal(x.begin, 270);
    assert_int_equal(x.end, 280);
    world_close(&w);
}

static void all_cpus_lose(void **state)
{
    struct kernel_tracker w;
    world_begin(&w);
    world_switch(&w, 100, 0, 0, A, KERNEL_LEAVE_RUNNABLE);
    world_switch(&w, 110, 1, 1, B, KERNEL_LEAVE_RUNNABLE);
    world_irq(&w, 120, 0, KERNEL_IRQ_ENTRY, 7, 1);
    world_lost(&w, 150, UINT32_MAX, 150, 180, 1);
    world_switch_since(&w, 200, 1, C, 1, KERNEL_LEAVE_BLOCKED, 180);
    world_end(&w);
    check_row(STATE_THREAD, A, "user:100-120 interrupted:120-150 unknown:150-200");
    check_row(STATE_THREAD, B, "unknown:100-110 user:110-150 unknown:150-200");
    check_row(STATE_THREAD, C, "unknown:100-180 user:180-200");
    check_row(STATE_CPU_IRQ, 7, "none:100-120 active:120-150 unknown:150-180 none:180-200");
    check_row(STATE_IRQ_LINE, 7, "none:100-120 active@0:120-150 unknown:150-180 none:180-200");
    assert_int_equal(state_latencies(w.store, STATE_LATENCY_IRQ), 0);
    world_close(&w);
}

static void block_complete(
    struct kernel_tracker *w, int64_t ts, uint32_t dev, uint32_t sectors, uint32_t rwbs, int32_t error)
{
    world_add(w,
        (struct kernel_record){.ts = ts,
            .kind = KERNEL_BLOCK_COMPLETE,
            .ctx = KERNEL_CTX_THREAD,
            .u.block = {dev, sectors, 0, rwbs, error}});
}

static int64_t value(const struct kernel_tracker *w, int kind, size_t i, int64_t t)
{
    int64_t v;
    state_counter_values(w->store, kind, i, &t, 1, &v);
    return v;
}

/* lttng-modules: 1 write, 2 discard, 4 read, 8 read ahead, 32 synchronous. */
static void counters(void **state)
{
    struct kernel_tracker w;
    world_begin(&w);
    block_complete(&w, 100, 1, 8, 4, 0);
    block_complete(&w, 110, 1, 8, 4 | 8, 0);
    block_complete(&w, 120, 1, 16, 1 | 32, 0);
    block_complete(&w, 130, 1, 16, 2, 0);
    block_complete(&w, 140, 1, 16, 1, -5);
    block_complete(&w, 150, 8 << 20 | 1, 1, 1, 0);
    world_add(&w,
        (struct kernel_record){.ts = 160,
            .kind = KERNEL_PACKET_SEND,
            .ctx = KERNEL_CTX_THREAD,
            .u.packet = {.payload_bytes = 100, .device = NAME_ETH}});
    world_add(&w,
        (struct kernel_record){.ts = 155,
            .kind = KERNEL_PACKET_RECEIVE,
            .ctx = KERNEL_CTX_THREAD,
            .u.packet = {.payload_bytes = 7, .device = NAME_ETH}});
    world_add(&w,
        (struct kernel_record){.ts = 150,
            .kind = KERNEL_PACKET_RECEIVE,
            .ctx = KERNEL_CTX_THREAD,
            .u.packet = {.payload_bytes = 7, .device = NAME_ETH}});
    world_end(&w);
    struct state_counter c;
    assert_int_equal(state_counters(w.store, STATE_DISK_READ), 2);
    assert_int_equal(state_counters(w.store, STATE_DISK_WRITE), 2);
    state_counter(w.store, STATE_DISK_WRITE, 0, &c);
    assert_string_equal(c.name, "vda");
    state_counter(w.store, STATE_DISK_WRITE, 1, &c);
    assert_string_equal(c.name, "8,1");
    assert_int_equal(value(&w, STATE_DISK_READ, 0, 99), 0);
    assert_int_equal(value(&w, STATE_DISK_READ, 0, 100), 4096);
    assert_int_equal(value(&w, STATE_DISK_READ, 0, 1000), 8192);
    assert_int_equal(value(&w, STATE_DISK_WRITE, 0, 160), 8192);
    assert_int_equal(value(&w, STATE_DISK_WRITE, 1, 160), 512);
    assert_int_equal(value(&w, STATE_DISK_READ, 1, 160), 0);
    state_counter(w.store, STATE_NET_SENT, 0, &c);
    assert_string_equal(c.name, "eth0");
    assert_int_equal(value(&w, STATE_NET_SENT, 0, 160), 100);
    assert_int_equal(value(&w, STATE_NET_RECEIVED, 0, 160), 14);
    assert_int_equal(state_counters(w.store, STATE_MEMORY), 0);
    world_close(&w);
}

/* Latencies are in order of begin though they are known at their ends, however long they take. */
static void latencies_in_order(void **state)
{
    struct kernel_tracker w;
    enum { CALLS = 20000 };
    world_begin(&w);
    world_switch(&w, 0, 0, 0, A, KERNEL_LEAVE_RUNNABLE);
    world_switch(&w, 0, 1, 1, B, KERNEL_LEAVE_RUNNABLE);
    world_call(&w, 1, 1, NAME_READ);
    for (int i = 0; i < CALLS; i++) {
        world_call(&w, 10 * i + 2, 0, NAME_OPEN);
        world_return(&w, 10 * i + 7, 0, NAME_OPEN, i % 7 ? i : -i * INT64_C(0x100000000));
    }
    world_return(&w, 10 * CALLS, 1, NAME_READ, INT64_MIN);
    world_call(&w, 10 * CALLS + 1, 1, NAME_READ); /* endless call */
    world_end(&w);
    struct state_latency l;
    assert_int_equal(state_latencies(w.store, STATE_LATENCY_SYSCALL), CALLS + 1);
    state_latency(w.store, STATE_LATENCY_SYSCALL, 0, &l);
    assert_int_equal(l.begin, 1);
    assert_int_equal(l.end, 10 * CALLS);
    assert_int_equal(l.thread, B);
    assert_true(l.ret == INT64_MIN);
    for (int i = 0; i < CALLS; i++) {
        state_latency(w.store, STATE_LATENCY_SYSCALL, (size_t)i + 1, &l);
        assert_int_equal(l.begin, 10 * i + 2);
        assert_int_equal(l.end, 10 * i + 7);
        assert_int_equal(l.thread, A);
        assert_string_equal(l.name, "openat");
        assert_true(l.ret == (i % 7 ? i : -i * INT64_C(0x100000000)));
    }
    assert_int_equal(state_latency_find(w.store, STATE_LATENCY_SYSCALL, 10 * 700 + 3), 702);
    assert_int_equal(state_latency_find(w.store, STATE_LATENCY_SYSCALL, INT64_MAX), CALLS + 1);
    world_close(&w);
}

/* A server: many threads wait in calls, each until thousands of others were made. They stand in columns like the
 * others, not beside them one by one. */
static void many_wait_in_calls(void **state)
{
    struct kernel_tracker w;
    enum { ROUNDS = 12000, WAITING = 40, FIRST = 10, STEP = 20 };
    static struct {
        int64_t begin, end;
        int32_t thread;
    } truth[ROUNDS * 2];
    static size_t open_at[WAITING];
    size_t n = 0, n_late;
    world_begin(&w);
    world_switch(&w, 0, 0, 0, A, KERNEL_LEAVE_RUNNABLE);
    world_switch(&w, 0, 1, 1, FIRST, KERNEL_LEAVE_RUNNABLE);
    for (int i = 0; i < ROUNDS; i++) {
        int64_t t = 10 * i + 10;
        int32_t who = FIRST + i / STEP % WAITING;
        if (i % STEP == 0) { /* the next of those that wait gets CPU 1, ends its call and makes the next one */
            world_switch(&w, t, 1, i ? w.on[1] : FIRST, who, KERNEL_LEAVE_BLOCKED);
            if (i >= STEP * WAITING) {
                world_return(&w, t + 1, 1, NAME_READ, 0);
                truth[open_at[who - FIRST]].end = t + 1;
            }
            world_call(&w, t + 2, 1, NAME_READ);
            open_at[who - FIRST] = n;
            truth[n].thread = who;
            truth[n++].begin = t + 2;
        }
        world_call(&w, t + 3, 0, NAME_OPEN);
        world_return(&w, t + 5, 0, NAME_OPEN, 0);
        truth[n].thread = A;
        truth[n].begin = t + 3;
        truth[n++].end = t + 5;
    }
    world_end(&w);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        struct state_latency l;
        if (!truth[i].end) /* waits still */
            continue;
        state_latency(w.store, STATE_LATENCY_SYSCALL, at++, &l);
        assert_int_equal(l.begin, truth[i].begin);
        assert_int_equal(l.end, truth[i].end);
        assert_int_equal(l.thread, truth[i].thread);
    }
    assert_int_equal(state_latencies(w.store, STATE_LATENCY_SYSCALL), at);
    struct store *file;
    struct err e = {0};
    assert_int_equal(store_open(w.path, "states", STATE_VERSION, NULL, &file, &e), 0);
    store_section(file, "late", sizeof(struct state_disk_aside), &n_late);
    assert_in_range(n_late, 0, n / 200);
    store_close(file);
    world_close(&w);
}

static void events_over_time(void **state)
{
    struct kernel_tracker w;
    enum { EVENTS = 100000 };
    static int64_t ts[EVENTS];
    world_begin(&w);
    for (int i = 0; i < EVENTS; i++)
        ts[i] = 1000 + i * 10 + (i > EVENTS / 2 ? 5000000 : 0);
    for (int i = 0; i < EVENTS;) { /* pieces of all sizes */
        int n = 1 + i % 997;
        n = n > EVENTS - i ? EVENTS - i : n;
        state_builder_events(w.builder, ts + i, (size_t)n);
        i += n;
    }
    world_switch(&w, 1000, 0, 0, A, KERNEL_LEAVE_RUNNABLE);
    world_switch(&w, ts[EVENTS - 1], 0, A, 0, KERNEL_LEAVE_RUNNABLE);
    world_end(&w);
    assert_int_equal(state_events(w.store), EVENTS);
    int64_t times[] = {0, 1000, 1001, 321000, 321001, 2000000, ts[EVENTS - 1], ts[EVENTS - 1] + 1};
    uint64_t counts[8];
    bool exact;
    state_event_counts(w.store, times, 8, counts, &exact);
    for (int k = 0; k < 8; k++) {
        uint64_t truth = 0;
        while (truth < EVENTS && ts[truth] < times[k])
            truth++;
        assert_in_range(counts[k] + 64 - truth, 0, 128);
        if (k < 2 || k == 7)
            assert_int_equal(counts[k], truth);
    }
    assert_false(exact);
    for (int64_t first = ts[EVENTS - 20000]; first < ts[EVENTS - 1]; first += 320) { /* two times near each other */
        state_event_counts(w.store, (int64_t[]){first, first + 1000}, 2, counts, &exact);
        assert_in_range(counts[0] + 64 - (uint64_t)(EVENTS - 20000 + (first - ts[EVENTS - 20000]) / 10), 0, 128);
        assert_in_range(counts[1] - counts[0], 0, 100 + 64);
    }
    state_event_counts(w.store, (int64_t[]){1000, ts[EVENTS - 1] + 1}, 2, counts, &exact);
    assert_true(exact);
    assert_int_equal(counts[1] - counts[0], EVENTS);
    world_close(&w);
}

static void nothing_at_all(void **state)
{
    struct kernel_tracker w;
    struct state_interval x;
    world_begin(&w);
    w.first = w.last = 5;
    world_end(&w);
    assert_int_equal(state_rows(w.store, STATE_CPU), 0);
    assert_int_equal(state_rows(w.store, STATE_THREAD), WORLD_THREADS);
    assert_true(state_at(w.store, STATE_THREAD, A, 5, &x));
    assert_false(state_at(w.store, STATE_THREAD, A, 6, &x));
    assert_int_equal(state_find_row(w.store, STATE_CPU, 0), -1);
    world_close(&w);
}

/* A clock that jumps by more than a signed number of ns. */
static void from_end_to_end_of_time(void **state)
{
    struct kernel_tracker w;
    struct state_interval x;
    const int64_t begins[] = {INT64_MIN + 100, INT64_MAX - 10000};
    world_begin(&w);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 500; i++)
            world_switch(&w, begins[k] + 10 * i, 0, k || i ? i % 2 ? A : B : 0, i % 2 ? B : A, KERNEL_LEAVE_BLOCKED);
    world_end(&w);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 499; i++) {
            assert_true(state_at(w.store, STATE_CPU_THREAD, 0, begins[k] + 10 * i + 9, &x));
            assert_int_equal(x.thread, i % 2 ? B : A);
            assert_true(x.begin == begins[k] + 10 * i && x.end == x.begin + 10);
        }
    assert_true(state_at(w.store, STATE_CPU_THREAD, 0, 0, &x));
    assert_true(x.thread == B && x.begin == begins[0] + 4990 && x.end == begins[1]);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(thread_life), cmocka_unit_test(revealed_by_first_switch),
        cmocka_unit_test(first_dispatch), cmocka_unit_test(came_before_it_left), cmocka_unit_test(line_on_two_cpus),
        cmocka_unit_test(losses), cmocka_unit_test(all_cpus_lose), cmocka_unit_test(counters),
        cmocka_unit_test(latencies_in_order), cmocka_unit_test(left_as_first_event),
        cmocka_unit_test(many_wait_in_calls), cmocka_unit_test(events_over_time),
        cmocka_unit_test(from_end_to_end_of_time), cmocka_unit_test(nothing_at_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
