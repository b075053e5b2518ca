/* SPDX-License-Identifier: MIT */
/* Event rules on made traces: what reference/critical-path.md 1.3, 1.4, 1.7 and 8 say of each situation. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "../kernel/maker_text.h"
#include "made.h"

enum { MOST_ROWS = 9 };

static const struct situation {
    const char *name;
    uint32_t cpus;
    uint64_t without; /* maker_new's */
    const char *events;
    struct {
        int tid;
        const char *text; /* made_text's, of its first life */
    } rows[MOST_ROWS];
} situations[] = {
    {"a lock goes from 2 to 1", 2, 0,
        "0 100 switch 0 R 1; 1 100 switch 0 R 2; 0 110 futex_entry 0xf00; 0 120 switch 1 S 0; "
        "1 150 futex_entry 0xf00; 1 155 waking 1 0; 1 156 wakeup 1 0; 1 157 futex_exit 1; "
        "0 160 switch 0 R 1; 0 165 futex_exit 0; 0 190 switch 1 S 0; 0 200 other",
        {{1, "100 running 120 blocked(futex)<2@155 155 preempted 160 running 190 blocked 200"}, {2, "100 running 200"},
            {0, "100 preempted(by 1 t1) 120 running 160 preempted(by 1 t1) 190 running 200"}}},
    {"the context of a wake names its cause; 9 is woken by the idle thread outside interrupts: events "
     "are missing",
        1, 0,
        "0 10 dump_disk 8388608 sda; 0 20 switch 1 S 2; 0 21 switch 2 S 3; 0 22 switch 3 D 4; "
        "0 23 switch 4 S 5; 0 24 switch 5 S 6; 0 25 switch 6 S 7; 0 26 switch 7 S 8; 0 27 switch 8 I 9; "
        "0 28 switch 9 S 0; 0 30 local_timer_entry 236; 0 31 hrtimer_entry 1; 0 32 waking 1 0; "
        "0 33 hrtimer_exit 1; 0 34 local_timer_exit 236; 0 35 softirq_entry 1; 0 36 waking 2 0; "
        "0 37 softirq_exit 1; 0 40 irq_entry 11 virtio1; 0 41 block_complete 8388608; 0 42 waking 3 0; "
        "0 43 irq_exit 11; 0 44 irq_entry 4 ttyS0; 0 45 waking 4 0; 0 46 irq_exit 4; "
        "0 47 reschedule_entry 253; 0 48 waking 5 0; 0 49 reschedule_exit 253; 0 50 softirq_entry 3; "
        "0 51 waking 6 0; 0 52 softirq_exit 3; 0 53 softirq_entry 7; 0 54 waking 7 0; 0 55 softirq_exit 7; "
        "0 56 softirq_entry 4; 0 57 waking 8 0; 0 58 softirq_exit 4; 0 59 waking 9 0; 0 60 other",
        {{1, "10 running 20 timer<terminal 32 preempted 60"}, {2, "20 running 21 timer<terminal 36 preempted 60"},
            {3, "21 running 22 block-device(sda)<terminal 42 preempted 60"},
            {4, "22 running 23 blocked(irq 4 ttyS0)<terminal 45 preempted 60"},
            {5, "23 running 24 ipi(reschedule)<terminal 48 preempted 60"},
            {6, "24 running 25 blocked(softirq net)<terminal 51 preempted 60"},
            {7, "25 running 26 interrupted<terminal 54 preempted 60"},
            {8, "26 running 27 block-device<terminal 57 preempted 60"}, {9, "27 running 28 blocked 59 preempted 60"}}},
    {"completions in a softirq: the disk of that request, not of another run's last one", 1, 0,
        "0 10 dump_disk 8388608 sda; 0 20 switch 1 D 2; 0 30 switch 2 D 0; 0 40 softirq_entry 4; "
        "0 41 block_complete 8388608; 0 42 waking 1 0; 0 43 softirq_exit 4; 0 50 softirq_entry 4; "
        "0 51 waking 2 0; 0 52 softirq_exit 4; 0 60 other",
        {{1, "10 running 20 block-device(sda)<terminal 42 preempted 60"},
            {2, "20 running 30 block-device<terminal 51 preempted 60"}}},
    {"without sched_waking the wake may come from the target CPU: in an IPI the waker is unknown", 1, 1 << M_WAKING,
        "0 20 switch 1 S 2; 0 30 reschedule_entry 253; 0 31 wakeup 1 0; 0 32 reschedule_exit 253; "
        "0 40 switch 2 R 1; 0 50 switch 1 S 2; 0 60 wakeup 1 0; 0 70 other",
        {{1, "20 blocked 31 preempted(by 2 t2) 40 running 50 blocked<2@60 60 preempted 70"}}},
    {"rule 8.5: woken after it set its state, before its switch-out; the second time it notices, and "
     "the later sleep has another cause",
        2, 0,
        "0 100 switch 0 R 1; 1 100 switch 0 R 2; 1 110 waking 1 0; 0 115 switch 1 S 0; 1 130 wakeup 1 0; "
        "0 140 switch 0 R 1; 1 150 waking 1 0; 1 151 wakeup 1 0; 0 160 switch 1 S 0; 0 170 switch 0 R 1; "
        "0 180 other",
        {{1, "100 running 115 blocked<2@110 130 preempted 140 running 160 blocked 170 running 180"}}},
    {"woken in the ns of its switch-out: runnable when sched_wakeup says so", 2, 0,
        "0 100 switch 0 R 1; 1 100 switch 0 R 2; 0 115 switch 1 S 0; 1 115 waking 1 0; 1 130 wakeup 1 0; "
        "0 140 switch 0 R 1; 0 180 other",
        {{1, "100 running 115 blocked<2@115 130 preempted 140 running 180"}}},
    {"a second wake of a runnable thread, and a wake of the running one, mean nothing", 2, 0,
        "0 100 switch 0 R 1; 1 100 switch 0 R 2; 0 110 switch 1 S 3; 1 120 waking 1 0; 0 130 waking 1 0; "
        "0 131 waking 3 0; 0 140 switch 3 S 1; 0 150 switch 1 R 3; 0 160 other",
        {{1, "100 running 110 blocked<2@120 120 preempted(by 3 t3) 140 running 150 preempted 160"},
            {3, "110 running 140 blocked 150 running 160"}}},
    {"softirqs in the thread of ksoftirqd still name the cause", 1, 0,
        "0 100 switch 1 S 12; 0 105 softirq_entry 1; 0 106 waking 1 0; 0 107 softirq_exit 1; "
        "0 110 switch 12 S 1; 0 120 other",
        {{1, "100 timer<terminal 106 preempted(by 12 t12) 110 running 120"}, {12, "100 running 110 blocked 120"}}},
    {"a lost exit leaves no context behind, neither beyond an outer exit nor beyond a switch", 1, 0,
        "0 100 switch 1 S 2; 0 101 irq_entry 9 acpi; 0 102 hrtimer_entry 1; 0 103 irq_exit 9; "
        "0 104 waking 1 0; 0 105 irq_entry 9 acpi; 0 110 switch 2 S 1; 0 120 waking 2 0; 0 130 other",
        {{1, "100 blocked<2@104 104 preempted(by 2 t2) 110 running 130"},
            {2, "100 running 110 blocked<1@120 120 preempted 130"}}},
    {"states in which threads are switched out; 0x82 wakes on fatal signals, 0x80 is idle, or dead "
     "after an exit",
        1, 0,
        "0 100 switch 0 R 1; 0 110 switch 1 P 2; 0 120 switch 2 0x800 3; 0 130 switch 3 0x82 4; "
        "0 140 switch 4 0x80 5; 0 150 switch 5 T 6; 0 155 exit 6; 0 160 switch 6 0x10 7; 0 165 exit 7; "
        "0 170 switch 7 0x80 8; 0 180 switch 8 I 1; 0 190 other",
        {{1, "100 running 110 preempted(by 2 t2) 180 running 190"}, {2, "110 running 120 preempted 190"},
            {3, "120 running 130 blocked 190"}, {4, "130 running 140 blocked 190"},
            {5, "140 running 150 blocked(stopped) 190"}, {6, "150 running 160"}, {7, "160 running 170"},
            {8, "170 running 180 blocked 190"}}},
    {"state 0x40 is parked", 1, 0, "0 100 switch 0 R 1; 0 110 switch 1 0x40 2; 0 190 other",
        {{1, "100 running 110 blocked 190"}}},
    {"before Linux 4.14 state 0x40 is dead", 1, M_OLD_KERNEL, "0 100 switch 0 R 1; 0 110 switch 1 0x40 2; 0 190 other",
        {{1, "100 running 110"}}},
    {"runnable while its CPU goes idle: the quota of its group is used up", 1, 0,
        "0 100 switch 0 R 1; 0 200 switch 1 P 0; 0 900 switch 0 R 1; 0 950 switch 1 S 0; "
        "0 960 hrtimer_entry 1; 0 961 waking 1 0; 0 962 hrtimer_exit 1; 0 1000 switch 0 R 1; 0 1010 other",
        {{1, "100 running 200 preempted(throttled) 900 running 950 timer<terminal 961 preempted 1000 running 1010"}}},
    {"another thread has the CPU for most of the wait: a moment of idling is no throttling", 1, 0,
        "0 100 switch 0 R 1; 0 200 switch 1 P 2; 0 800 switch 2 S 0; 0 850 switch 0 R 1; 0 900 other",
        {{1, "100 running 200 preempted(by 2 t2) 850 running 900"}}},
    {"a switch is missing though no loss was reported", 2, 0,
        "0 100 switch 0 R 1; 0 110 net_entry; 0 120 net_exit; 0 200 switch 2 S 3; 1 210 switch 0 R 1; "
        "1 300 switch 3 S 0; 0 400 other",
        {{1, "100 running 120 unknown<lost 200 preempted 210 unknown<lost 400"}}},
    {"runnable before its first switch", 1, 0,
        "0 100 dump_thread 70 70 1 runnable seventy; 0 150 switch 9 S 70; 0 200 other",
        {{70, "100 preempted(by 9 t9) 150 running 200"}}},
    {"unknown before its first switch where wakes are not recorded: it may have slept", 1,
        UINT64_C(1) << M_WAKING | UINT64_C(1) << M_WAKEUP,
        "0 100 dump_thread 70 70 1 runnable seventy; 0 150 switch 9 S 70; 0 200 other",
        {{70, "100 unknown 150 running 200"}}},
    {"while a packet is received the network is the cause; a threaded handler names its device", 1, 0,
        "0 100 switch 1 S 2; 0 110 switch 2 S 30; 0 120 softirq_entry 3; 0 121 net_entry; "
        "0 122 waking 1 0; 0 123 net_exit; 0 124 softirq_exit 3; 0 131 net_entry; 0 132 waking 2 0; "
        "0 133 net_exit; 0 140 switch 30 S 1; 0 150 other",
        {{1, "100 network 122 preempted(by 30 t30) 140 running 150"},
            {2, "100 running 110 network(t30) 132 preempted 150"}}},
    {"woken by the softirq of the network where packets are not recorded", 1, UINT64_C(1) << M_RECEIVE,
        "0 100 switch 1 S 2; 0 120 softirq_entry 3; 0 122 waking 1 0; 0 124 softirq_exit 3; 0 150 other",
        {{1, "100 network 122 preempted 150"}}},
};

static struct graph *graph_of(uint32_t cpus, uint64_t without, const char *events)
{
    struct maker *m = maker_new(cpus, without);
    maker_text(m, events);
    return made_whole(m);
}

static void agrees(void **state)
{
    const struct situation *s = *state;
    struct graph *g = graph_of(s->cpus, s->without, s->events);
    for (size_t i = 0; i < MOST_ROWS && s->rows[i].text; i++)
        made_expect(g, s->rows[i].tid, 0, s->rows[i].text);
    graph_close(g);
}

static void tid_reuse(void **state)
{
    struct maker *m = maker_new(2, 0);
    maker_text(m,
        "0 100 switch 0 R 1; 0 110 fork 1 50 50 7; 0 111 wakeup_new 50 1; 1 120 switch 0 R 50; "
        "1 125 exec /usr/bin/first-program-with-a-long-name 50 50");
    maker_name(m, 50, "first-program-w");
    maker_text(m,
        "1 130 exit 50; 1 135 switch 50 Z 0; 0 150 fork 1 50 1 50; "
        "0 151 free 50; " /* of the first life: late, as RCU has it */
        "1 160 switch 0 R 50; 1 170 switch 50 S 0; 1 180 other");
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

/* Events of two CPUs in the same ns, in either order. */
static void ties(void **state)
{
    struct graph *g = graph_of(3, 0,
        "0 100 switch 0 R 9; 1 100 switch 0 R 1; 2 100 switch 0 R 3; "
        /* CPU 0's stream is merged first: 1 comes to CPU 0 in the ns in which it leaves CPU 1 */
        "0 200 switch 9 S 1; 1 200 switch 1 R 0; "
        /* 3 forks 60 on CPU 2; CPU 0 runs the child in that ns */
        "0 300 switch 1 R 60; 2 300 fork 3 60 60 60; "
        /* 9 is woken by 3 on CPU 2 in the ns in which CPU 0 switches to it */
        "0 400 switch 60 R 9; 2 400 waking 9 0; 0 500 other");
    made_expect(g, 1, 0, "100 running 200 running 300 preempted 500");
    made_expect(g, 60, 0, "300 running 400 preempted 500");
    made_expect(g, 9, 0, "100 running 200 blocked<3@400 400 running 500");
    struct graph_cause c;
    graph_row_origin(g, made_row(g, 60, 0), &c);
    assert_int_equal(c.kind, GRAPH_CAUSE_FORK);
    assert_int_equal(c.row, made_row(g, 3, 0));
    graph_close(g);
}

static void statedump(void **state)
{
    struct graph *g = graph_of(1, 0,
        "0 100 dump_thread 70 70 1 waiting sleeper; 0 101 dump_thread 71 70 1 runnable runner; "
        "0 102 dump_thread 72 70 1 zombie zombie; 0 103 dump_ns 71 71 0 1000; 0 104 dump_ns 71 5 1 2000; "
        "0 150 switch 9 S 71; 0 200 other");
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

int main(void)
{
    enum { SITUATIONS = sizeof situations / sizeof *situations };
    struct CMUnitTest tests[SITUATIONS + 3] = {
        cmocka_unit_test(tid_reuse),
        cmocka_unit_test(ties),
        cmocka_unit_test(statedump),
    };
    for (size_t i = 0; i < SITUATIONS; i++)
        tests[3 + i] = (struct CMUnitTest){
            .name = situations[i].name, .test_func = agrees, .initial_state = (void *)&situations[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
