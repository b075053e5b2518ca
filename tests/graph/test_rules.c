/* SPDX-License-Identifier: MIT */
/* Event rules on made traces: what reference/critical-path.md 1.3, 1.4, 1.7 and 8 say of each situation. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "made.h"

/* A lock handed from 2 to 1; 3 spins. */
static void futex_hand_over(void **state)
{
    struct maker *m = maker_new(2, 0);
    maker_switch(m, 0, 100, 0, READY, 1);
    maker_switch(m, 1, 100, 0, READY, 2);
    maker_number(m, 0, 110, M_FUTEX_ENTRY, 0xf00);
    maker_switch(m, 0, 120, 1, SLEEP, 0);
    maker_number(m, 1, 150, M_FUTEX_ENTRY, 0xf00);
    maker_wake(m, 1, 155, M_WAKING, 1, 0);
    maker_wake(m, 1, 156, M_WAKEUP, 1, 0);
    maker_number(m, 1, 157, M_FUTEX_EXIT, 1);
    maker_switch(m, 0, 160, 0, READY, 1);
    maker_number(m, 0, 165, M_FUTEX_EXIT, 0);
    maker_switch(m, 0, 190, 1, SLEEP, 0);
    maker_plain(m, 0, 200, M_OTHER);
    struct graph *g = made_whole(m);
    made_expect(g, 1, 0, "100 running 120 blocked(futex)<2@155 155 preempted 160 running 190 blocked 200");
    made_expect(g, 2, 0, "100 running 200");
    made_expect(g, 0, 0, "100 preempted(by 1 t1) 120 running 160 preempted(by 1 t1) 190 running 200");
    graph_close(g);
}

static void contexts(void **state)
{
    struct maker *m = maker_new(1, 0);
    maker_dump_disk(m, 0, 10, 8 << 20, "sda");
    maker_switch(m, 0, 20, 1, SLEEP, 2);
    maker_switch(m, 0, 21, 2, SLEEP, 3);
    maker_switch(m, 0, 22, 3, DISK, 4);
    maker_switch(m, 0, 23, 4, SLEEP, 5);
    maker_switch(m, 0, 24, 5, SLEEP, 6);
    maker_switch(m, 0, 25, 6, SLEEP, 7);
    maker_switch(m, 0, 26, 7, SLEEP, 8);
    maker_switch(m, 0, 27, 8, IDLE, 9);
    maker_switch(m, 0, 28, 9, SLEEP, 0);
    maker_number(m, 0, 30, M_LOCAL_TIMER_ENTRY, 236);
    maker_number(m, 0, 31, M_HRTIMER_ENTRY, 1);
    maker_wake(m, 0, 32, M_WAKING, 1, 0);
    maker_number(m, 0, 33, M_HRTIMER_EXIT, 1);
    maker_number(m, 0, 34, M_LOCAL_TIMER_EXIT, 236);
    maker_number(m, 0, 35, M_SOFTIRQ_ENTRY, 1);
    maker_wake(m, 0, 36, M_WAKING, 2, 0);
    maker_number(m, 0, 37, M_SOFTIRQ_EXIT, 1);
    maker_irq(m, 0, 40, true, 11, "virtio1");
    maker_block_complete(m, 0, 41, 8 << 20);
    maker_wake(m, 0, 42, M_WAKING, 3, 0);
    maker_irq(m, 0, 43, false, 11, NULL);
    maker_irq(m, 0, 44, true, 4, "ttyS0");
    maker_wake(m, 0, 45, M_WAKING, 4, 0);
    maker_irq(m, 0, 46, false, 4, NULL);
    maker_number(m, 0, 47, M_RESCHEDULE_ENTRY, 253);
    maker_wake(m, 0, 48, M_WAKING, 5, 0);
    maker_number(m, 0, 49, M_RESCHEDULE_EXIT, 253);
    maker_number(m, 0, 50, M_SOFTIRQ_ENTRY, 3);
    maker_wake(m, 0, 51, M_WAKING, 6, 0);
    maker_number(m, 0, 52, M_SOFTIRQ_EXIT, 3);
    maker_number(m, 0, 53, M_SOFTIRQ_ENTRY, 7);
    maker_wake(m, 0, 54, M_WAKING, 7, 0);
    maker_number(m, 0, 55, M_SOFTIRQ_EXIT, 7);
    maker_number(m, 0, 56, M_SOFTIRQ_ENTRY, 4);
    maker_wake(m, 0, 57, M_WAKING, 8, 0);
    maker_number(m, 0, 58, M_SOFTIRQ_EXIT, 4);
    maker_wake(m, 0, 59, M_WAKING, 9, 0); /* by the idle thread outside interrupts: events are missing */
    maker_plain(m, 0, 60, M_OTHER);
    struct graph *g = made_whole(m);
    made_expect(g, 1, 0, "10 running 20 timer<terminal 32 preempted 60");
    made_expect(g, 2, 0, "20 running 21 timer<terminal 36 preempted 60");
    made_expect(g, 3, 0, "21 running 22 block-device(sda)<terminal 42 preempted 60");
    made_expect(g, 4, 0, "22 running 23 blocked(irq 4 ttyS0)<terminal 45 preempted 60");
    made_expect(g, 5, 0, "23 running 24 ipi(reschedule)<terminal 48 preempted 60");
    made_expect(g, 6, 0, "24 running 25 blocked(softirq net)<terminal 51 preempted 60");
    made_expect(g, 7, 0, "25 running 26 interrupted<terminal 54 preempted 60");
    made_expect(g, 8, 0, "26 running 27 block-device<terminal 57 preempted 60");
    made_expect(g, 9, 0, "27 running 28 blocked 59 preempted 60");
    graph_close(g);
}

/* A disk whose completions are told in the softirq: that request's disk, not the last one's of another run. */
static void block_softirq(void **state)
{
    struct maker *m = maker_new(1, 0);
    maker_dump_disk(m, 0, 10, 8 << 20, "sda");
    maker_switch(m, 0, 20, 1, DISK, 2);
    maker_switch(m, 0, 30, 2, DISK, 0);
    maker_number(m, 0, 40, M_SOFTIRQ_ENTRY, 4);
    maker_block_complete(m, 0, 41, 8 << 20);
    maker_wake(m, 0, 42, M_WAKING, 1, 0);
    maker_number(m, 0, 43, M_SOFTIRQ_EXIT, 4);
    maker_number(m, 0, 50, M_SOFTIRQ_ENTRY, 4);
    maker_wake(m, 0, 51, M_WAKING, 2, 0);
    maker_number(m, 0, 52, M_SOFTIRQ_EXIT, 4);
    maker_plain(m, 0, 60, M_OTHER);
    struct graph *g = made_whole(m);
    made_expect(g, 1, 0, "10 running 20 block-device(sda)<terminal 42 preempted 60");
    made_expect(g, 2, 0, "20 running 30 block-device<terminal 51 preempted 60");
    graph_close(g);
}

/* Without sched_waking the wake may be told by the target's CPU: in an IPI nobody knows who it was. */
static void wakeup_only(void **state)
{
    struct maker *m = maker_new(1, 1 << M_WAKING);
    maker_switch(m, 0, 20, 1, SLEEP, 2);
    maker_number(m, 0, 30, M_RESCHEDULE_ENTRY, 253);
    maker_wake(m, 0, 31, M_WAKEUP, 1, 0);
    maker_number(m, 0, 32, M_RESCHEDULE_EXIT, 253);
    maker_switch(m, 0, 40, 2, READY, 1);
    maker_switch(m, 0, 50, 1, SLEEP, 2);
    maker_wake(m, 0, 60, M_WAKEUP, 1, 0);
    maker_plain(m, 0, 70, M_OTHER);
    struct graph *g = made_whole(m);
    made_expect(g, 1, 0, "20 blocked 31 preempted(by 2 t2) 40 running 50 blocked<2@60 60 preempted 70");
    graph_close(g);
}

/* Rule 8.5: woken after it set its state and before it is switched out. */
static void wake_before_switch_out(void **state)
{
    struct maker *m = maker_new(2, 0);
    maker_switch(m, 0, 100, 0, READY, 1);
    maker_switch(m, 1, 100, 0, READY, 2);
    maker_wake(m, 1, 110, M_WAKING, 1, 0);
    maker_switch(m, 0, 115, 1, SLEEP, 0);
    maker_wake(m, 1, 130, M_WAKEUP, 1, 0);
    maker_switch(m, 0, 140, 0, READY, 1);
    /* this time it notices before it sleeps: the later sleep has another cause */
    maker_wake(m, 1, 150, M_WAKING, 1, 0);
    maker_wake(m, 1, 151, M_WAKEUP, 1, 0);
    maker_switch(m, 0, 160, 1, SLEEP, 0);
    maker_switch(m, 0, 170, 0, READY, 1);
    maker_plain(m, 0, 180, M_OTHER);
    struct graph *g = made_whole(m);
    made_expect(g, 1, 0, "100 running 115 blocked<2@110 130 preempted 140 running 160 blocked 170 running 180");
    graph_close(g);
}

/* Woken in the ns of its switch-out, before the other CPU can see it off: it is on a run queue when sched_wakeup says
 * so. */
static void wake_at_switch_out(void **state)
{
    struct maker *m = maker_new(2, 0);
    maker_switch(m, 0, 100, 0, READY, 1);
    maker_switch(m, 1, 100, 0, READY, 2);
    maker_switch(m, 0, 115, 1, SLEEP, 0);
    maker_wake(m, 1, 115, M_WAKING, 1, 0);
    maker_wake(m, 1, 130, M_WAKEUP, 1, 0);
    maker_switch(m, 0, 140, 0, READY, 1);
    maker_plain(m, 0, 180, M_OTHER);
    struct graph *g = made_whole(m);
    made_expect(g, 1, 0, "100 running 115 blocked<2@115 130 preempted 140 running 180");
    graph_close(g);
}

/* A second wake of a runnable thread, and a wake of the thread that runs here, mean nothing. */
static void spurious_wakes(void **state)
{
    struct maker *m = maker_new(2, 0);
    maker_switch(m, 0, 100, 0, READY, 1);
    maker_switch(m, 1, 100, 0, READY, 2);
    maker_switch(m, 0, 110, 1, SLEEP, 3);
    maker_wake(m, 1, 120, M_WAKING, 1, 0);
    maker_wake(m, 0, 130, M_WAKING, 1, 0);
    maker_wake(m, 0, 131, M_WAKING, 3, 0);
    maker_switch(m, 0, 140, 3, SLEEP, 1);
    maker_switch(m, 0, 150, 1, READY, 3);
    maker_plain(m, 0, 160, M_OTHER);
    struct graph *g = made_whole(m);
    made_expect(g, 1, 0, "100 running 110 blocked<2@120 120 preempted(by 3 t3) 140 running 150 preempted 160");
    made_expect(g, 3, 0, "110 running 140 blocked 150 running 160");
    graph_close(g);
}

static void tid_reuse(void **state)
{
    struct maker *m = maker_new(2, 0);
    maker_switch(m, 0, 100, 0, READY, 1);
    maker_fork(m, 0, 110, 1, 50, 50, 7);
    maker_wake(m, 0, 111, M_WAKEUP_NEW, 50, 1);
    maker_switch(m, 1, 120, 0, READY, 50);
    maker_exec(m, 1, 125, "/usr/bin/first-program-with-a-long-name", 50, 50);
    maker_name(m, 50, "first-program-w");
    maker_task(m, 1, 130, M_EXIT, 50);
    maker_switch(m, 1, 135, 50, ZOMBIE, 0);
    maker_fork(m, 0, 150, 1, 50, 1, 50);
    maker_task(m, 0, 151, M_FREE, 50); /* of the first life: late, as RCU has it */
    maker_switch(m, 1, 160, 0, READY, 50);
    maker_switch(m, 1, 170, 50, SLEEP, 0);
    maker_plain(m, 1, 180, M_OTHER);
    struct graph *g = made_whole(m);
    struct graph_row r;
    made_expect(g, 50, 0, "110 preempted<fork 1 120 running 135");
    made_expect(g, 50, 1, "150 preempted<fork 1 160 running 170 blocked 180");
    graph_row(g, made_row(g, 50, 0), &r);
    assert_string_equal(r.name, "first-program-w");
    graph_row_then(g, made_row(g, 50, 0), INT64_MIN, INT64_MIN, &r);
    assert_string_equal(r.name, "t1");
    assert_true(r.born && r.died && r.tgid == 50 && r.ppid == 1 && r.vtid == 7);
    graph_row(g, made_row(g, 50, 1), &r);
    assert_true(r.born && !r.died && r.tgid == 1 && r.vtid == 50);
    assert_int_equal(made_row(g, 50, 2), -1);
    graph_close(g);
}

/* ksoftirqd runs softirqs in its own thread: they still name the cause, the thread is not blamed. */
static void ksoftirqd(void **state)
{
    struct maker *m = maker_new(1, 0);
    maker_switch(m, 0, 100, 1, SLEEP, 12);
    maker_number(m, 0, 105, M_SOFTIRQ_ENTRY, 1);
    maker_wake(m, 0, 106, M_WAKING, 1, 0);
    maker_number(m, 0, 107, M_SOFTIRQ_EXIT, 1);
    maker_switch(m, 0, 110, 12, SLEEP, 1);
    maker_plain(m, 0, 120, M_OTHER);
    struct graph *g = made_whole(m);
    made_expect(g, 1, 0, "100 timer<terminal 106 preempted(by 12 t12) 110 running 120");
    made_expect(g, 12, 0, "100 running 110 blocked 120");
    graph_close(g);
}

/* An exit that was lost leaves no context behind: neither beyond an outer exit nor beyond a switch. */
static void stuck_context(void **state)
{
    struct maker *m = maker_new(1, 0);
    maker_switch(m, 0, 100, 1, SLEEP, 2);
    maker_irq(m, 0, 101, true, 9, "acpi");
    maker_number(m, 0, 102, M_HRTIMER_ENTRY, 1);
    maker_irq(m, 0, 103, false, 9, NULL); /* the timer's exit is missing */
    maker_wake(m, 0, 104, M_WAKING, 1, 0);
    maker_irq(m, 0, 105, true, 9, "acpi");
    maker_switch(m, 0, 110, 2, SLEEP, 1); /* the handler's exit is missing */
    maker_wake(m, 0, 120, M_WAKING, 2, 0);
    maker_plain(m, 0, 130, M_OTHER);
    struct graph *g = made_whole(m);
    made_expect(g, 1, 0, "100 blocked<2@104 104 preempted(by 2 t2) 110 running 130");
    made_expect(g, 2, 0, "100 running 110 blocked<1@120 120 preempted 130");
    graph_close(g);
}

static void leave_states(void **state)
{
    struct maker *m = maker_new(1, 0);
    maker_switch(m, 0, 100, 0, READY, 1);
    maker_switch(m, 0, 110, 1, PREEMPTED, 2);
    maker_switch(m, 0, 120, 2, OLD_PREEMPTED, 3);
    maker_switch(m, 0, 130, 3, 0x82, 4); /* uninterruptible, wakes on fatal signals */
    maker_switch(m, 0, 140, 4, 0x80, 5); /* idle kernel thread as newer kernels report it */
    maker_switch(m, 0, 150, 5, STOPPED, 6);
    maker_task(m, 0, 155, M_EXIT, 6);
    maker_switch(m, 0, 160, 6, 0x10, 7);
    maker_task(m, 0, 165, M_EXIT, 7);
    maker_switch(m, 0, 170, 7, 0x80, 8); /* raw TASK_DEAD */
    maker_switch(m, 0, 180, 8, IDLE, 1);
    maker_plain(m, 0, 190, M_OTHER);
    struct graph *g = made_whole(m);
    made_expect(g, 1, 0, "100 running 110 preempted(by 2 t2) 180 running 190");
    made_expect(g, 2, 0, "110 running 120 preempted 190");
    made_expect(g, 3, 0, "120 running 130 blocked 190");
    made_expect(g, 4, 0, "130 running 140 blocked 190");
    made_expect(g, 5, 0, "140 running 150 blocked(stopped) 190");
    made_expect(g, 6, 0, "150 running 160");
    made_expect(g, 7, 0, "160 running 170");
    made_expect(g, 8, 0, "170 running 180 blocked 190");
    graph_close(g);
}

/* Before Linux 4.14 bit 0x40 said dead, not parked. */
static void old_leave_states(void **state)
{
    for (int old = 0; old < 2; old++) {
        struct maker *m = maker_new(1, old ? M_OLD_KERNEL : 0);
        maker_switch(m, 0, 100, 0, READY, 1);
        maker_switch(m, 0, 110, 1, 0x40, 2);
        maker_plain(m, 0, 190, M_OTHER);
        struct graph *g = made_whole(m);
        made_expect(g, 1, 0, old ? "100 running 110" : "100 running 110 blocked 190");
        graph_close(g);
    }
}

/* Runnable while its CPU goes idle: the quota of its group is used up. Runnable while the idle CPU only takes time to
 * answer: nothing to tell. */
static void throttled(void **state)
{
    struct maker *m = maker_new(1, 0);
    maker_switch(m, 0, 100, 0, READY, 1);
    maker_switch(m, 0, 200, 1, PREEMPTED, 0);
    maker_switch(m, 0, 900, 0, READY, 1);
    maker_switch(m, 0, 950, 1, SLEEP, 0);
    maker_number(m, 0, 960, M_HRTIMER_ENTRY, 1);
    maker_wake(m, 0, 961, M_WAKING, 1, 0);
    maker_number(m, 0, 962, M_HRTIMER_EXIT, 1);
    maker_switch(m, 0, 1000, 0, READY, 1);
    maker_plain(m, 0, 1010, M_OTHER);
    struct graph *g = made_whole(m);
    made_expect(
        g, 1, 0, "100 running 200 preempted(throttled) 900 running 950 timer<terminal 961 preempted 1000 running 1010");
    graph_close(g);
}

/* Another thread has the CPU for most of the wait: a moment of idling in it is no throttling. */
static void hardly_idle(void **state)
{
    struct maker *m = maker_new(1, 0);
    maker_switch(m, 0, 100, 0, READY, 1);
    maker_switch(m, 0, 200, 1, PREEMPTED, 2);
    maker_switch(m, 0, 800, 2, SLEEP, 0);
    maker_switch(m, 0, 850, 0, READY, 1);
    maker_plain(m, 0, 900, M_OTHER);
    struct graph *g = made_whole(m);
    made_expect(g, 1, 0, "100 running 200 preempted(by 2 t2) 850 running 900");
    graph_close(g);
}

/* Two CPUs tell of the same ns in either order. */
static void ties(void **state)
{
    struct maker *m = maker_new(3, 0);
    /* CPU 0's stream is merged first: 1 comes to CPU 0 in the ns in which it leaves CPU 1 */
    maker_switch(m, 0, 100, 0, READY, 9);
    maker_switch(m, 1, 100, 0, READY, 1);
    maker_switch(m, 2, 100, 0, READY, 3);
    maker_switch(m, 0, 200, 9, SLEEP, 1);
    maker_switch(m, 1, 200, 1, READY, 0);
    /* 3 forks 60 on CPU 2; CPU 0 runs the child in that ns */
    maker_switch(m, 0, 300, 1, READY, 60);
    maker_fork(m, 2, 300, 3, 60, 60, 60);
    /* 9 is woken by 3 on CPU 2 in the ns in which CPU 0 switches to it */
    maker_switch(m, 0, 400, 60, READY, 9);
    maker_wake(m, 2, 400, M_WAKING, 9, 0);
    maker_plain(m, 0, 500, M_OTHER);
    struct graph *g = made_whole(m);
    made_expect(g, 1, 0, "100 running 200 running 300 preempted 500");
    made_expect(g, 60, 0, "300 running 400 preempted 500");
    made_expect(g, 9, 0, "100 running 200 blocked<3@400 400 running 500");
    struct graph_cause c;
    graph_row_origin(g, made_row(g, 60, 0), &c);
    assert_int_equal(c.kind, GRAPH_CAUSE_FORK);
    assert_int_equal(c.row, made_row(g, 3, 0));
    graph_close(g);
}

/* A switch is missing though no loss was told. */
static void lost_switch(void **state)
{
    struct maker *m = maker_new(2, 0);
    maker_switch(m, 0, 100, 0, READY, 1);
    maker_plain(m, 0, 110, M_NET_ENTRY);
    maker_plain(m, 0, 120, M_NET_EXIT);
    maker_switch(m, 0, 200, 2, SLEEP, 3); /* 1 left and 2 came unseen */
    maker_switch(m, 1, 210, 0, READY, 1);
    maker_switch(m, 1, 300, 3, SLEEP, 0); /* 3 had been seen on CPU 0 */
    maker_plain(m, 0, 400, M_OTHER);
    struct graph *g = made_whole(m);
    made_expect(g, 1, 0, "100 running 120 unknown<lost 200 preempted 210 unknown<lost 400");
    graph_close(g);
}

/* Runnable before its first switch, as far as wakes are recorded; else it may have slept. */
static void before_the_first_switch(void **state)
{
    for (int without = 0; without < 2; without++) {
        struct maker *m = maker_new(1, without ? UINT64_C(1) << M_WAKING | UINT64_C(1) << M_WAKEUP : 0);
        maker_dump_thread(m, 0, 100, 70, 70, 1, KERNEL_DUMPED_RUNNABLE, "seventy");
        maker_switch(m, 0, 150, 9, SLEEP, 70);
        maker_plain(m, 0, 200, M_OTHER);
        struct graph *g = made_whole(m);
        made_expect(g, 70, 0, without ? "100 unknown 150 running 200" : "100 preempted(by 9 t9) 150 running 200");
        graph_close(g);
    }
}

static void statedump(void **state)
{
    struct maker *m = maker_new(1, 0);
    maker_dump_thread(m, 0, 100, 70, 70, 1, KERNEL_DUMPED_WAITING, "sleeper");
    maker_dump_thread(m, 0, 101, 71, 70, 1, KERNEL_DUMPED_RUNNABLE, "runner");
    maker_dump_thread(m, 0, 102, 72, 70, 1, KERNEL_DUMPED_ZOMBIE, "zombie");
    maker_dump_ns(m, 0, 103, 71, 71, 0, 1000);
    maker_dump_ns(m, 0, 104, 71, 5, 1, 2000);
    maker_switch(m, 0, 150, 9, SLEEP, 71);
    maker_plain(m, 0, 200, M_OTHER);
    struct graph *g = made_whole(m);
    struct graph_row r;
    made_expect(g, 70, 0, "100 blocked 200");
    made_expect(g, 71, 0, "101 preempted(by 9 t9) 150 running 200");
    made_expect(g, 9, 0, "100 running 150 blocked 200");
    made_expect(g, 72, 0, "102 unknown 200");
    graph_row(g, made_row(g, 72, 0), &r);
    assert_true(r.tgid == 70 && r.ppid == 1 && !r.died && !strcmp(r.name, "zombie"));
    graph_row(g, made_row(g, 71, 0), &r);
    assert_true(r.vtid == 5 && r.pid_ns == 2000 && r.tgid == 70 && r.ppid == 1 && !strcmp(r.name, "t71"));
    graph_row_then(g, made_row(g, 71, 0), 149, 149, &r);
    assert_string_equal(r.name, "runner");
    graph_close(g);
}

/* While a packet is handed up the stack the network is the cause, known packet or not; a threaded handler names its
 * device. */
static void packet_reception(void **state)
{
    struct maker *m = maker_new(1, 0);
    maker_switch(m, 0, 100, 1, SLEEP, 2);
    maker_switch(m, 0, 110, 2, SLEEP, 30);
    maker_number(m, 0, 120, M_SOFTIRQ_ENTRY, 3);
    maker_plain(m, 0, 121, M_NET_ENTRY);
    maker_wake(m, 0, 122, M_WAKING, 1, 0);
    maker_plain(m, 0, 123, M_NET_EXIT);
    maker_number(m, 0, 124, M_SOFTIRQ_EXIT, 3);
    maker_plain(m, 0, 131, M_NET_ENTRY);
    maker_wake(m, 0, 132, M_WAKING, 2, 0);
    maker_plain(m, 0, 133, M_NET_EXIT);
    maker_switch(m, 0, 140, 30, SLEEP, 1);
    maker_plain(m, 0, 150, M_OTHER);
    struct graph *g = made_whole(m);
    made_expect(g, 1, 0, "100 network 122 preempted(by 30 t30) 140 running 150");
    made_expect(g, 2, 0, "100 running 110 network(t30) 132 preempted 150");
    graph_close(g);
}

/* A wake by the softirq of the network where packets are not recorded: a message, as far as anybody knows. */
static void network_without_packets(void **state)
{
    struct maker *m = maker_new(1, UINT64_C(1) << M_RECEIVE);
    maker_switch(m, 0, 100, 1, SLEEP, 2);
    maker_number(m, 0, 120, M_SOFTIRQ_ENTRY, 3);
    maker_wake(m, 0, 122, M_WAKING, 1, 0);
    maker_number(m, 0, 124, M_SOFTIRQ_EXIT, 3);
    maker_plain(m, 0, 150, M_OTHER);
    struct graph *g = made_whole(m);
    made_expect(g, 1, 0, "100 network 122 preempted 150");
    graph_close(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(futex_hand_over),
        cmocka_unit_test(contexts),
        cmocka_unit_test(block_softirq),
        cmocka_unit_test(wakeup_only),
        cmocka_unit_test(wake_before_switch_out),
        cmocka_unit_test(wake_at_switch_out),
        cmocka_unit_test(spurious_wakes),
        cmocka_unit_test(tid_reuse),
        cmocka_unit_test(ksoftirqd),
        cmocka_unit_test(stuck_context),
        cmocka_unit_test(leave_states),
        cmocka_unit_test(old_leave_states),
        cmocka_unit_test(throttled),
        cmocka_unit_test(hardly_idle),
        cmocka_unit_test(ties),
        cmocka_unit_test(lost_switch),
        cmocka_unit_test(before_the_first_switch),
        cmocka_unit_test(statedump),
        cmocka_unit_test(packet_reception),
        cmocka_unit_test(network_without_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
