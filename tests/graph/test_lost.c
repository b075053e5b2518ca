/* SPDX-License-Identifier: MIT */
/* Loss of any event, reported or not. Dropped silently: never a crash, always covered. Reported: the graph must agree
 * with the graph of the whole trace, or be unknown. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "made.h"

/* Two CPUs, every kind of event, threads that are born, wait for every cause, move, and die. Each CPU's events come
 * often, so that gaps are short. */
static struct maker *story(void)
{
    struct maker *m = maker_new(2, 0);
    maker_dump_thread(m, 0, 1000, 1, 1, 0, KERNEL_DUMPED_RUNNABLE, "one");
    maker_dump_thread(m, 0, 1010, 2, 2, 0, KERNEL_DUMPED_WAITING, "two");
    maker_dump_ns(m, 0, 1020, 2, 2, 0, 1);
    maker_dump_disk(m, 0, 1030, 5, "vda");
    maker_plain(m, 1, 1040, M_OTHER);
    maker_switch(m, 0, 1100, 0, 0, 1);
    maker_switch(m, 1, 1110, 0, 0, 3);
    maker_number(m, 0, 1120, M_FUTEX_ENTRY, 1);
    maker_number(m, 1, 1130, M_UNKNOWN_ENTRY, 35);
    maker_switch(m, 1, 1140, 3, 1, 0);
    maker_switch(m, 0, 1150, 1, 1, 4);
    maker_wake(m, 0, 1160, M_WAKING, 2, 1);
    maker_wake(m, 0, 1161, M_WAKEUP, 2, 1);
    maker_switch(m, 1, 1170, 0, 0, 2);
    maker_wake(m, 1, 1180, M_WAKING, 1, 0);
    maker_wake(m, 1, 1181, M_WAKEUP, 1, 0);
    maker_switch(m, 0, 1190, 4, 0, 1);
    maker_number(m, 0, 1200, M_FUTEX_EXIT, 0);
    maker_fork(m, 0, 1210, 1, 10, 10, 10);
    maker_wake(m, 0, 1211, M_WAKEUP_NEW, 10, 1);
    maker_switch(m, 1, 1220, 2, 2, 10);
    maker_exec(m, 1, 1230, "/bin/ten", 10, 10);
    maker_irq(m, 0, 1240, true, 30, "virtio");
    maker_block_complete(m, 0, 1241, 5);
    maker_wake(m, 0, 1242, M_WAKING, 2, 0);
    maker_wake(m, 0, 1243, M_WAKEUP, 2, 0);
    maker_irq(m, 0, 1244, false, 30, NULL);
    maker_number(m, 1, 1250, M_HRTIMER_ENTRY, 9);
    maker_wake(m, 1, 1251, M_WAKING, 3, 1);
    maker_wake(m, 1, 1252, M_WAKEUP, 3, 1);
    maker_number(m, 1, 1253, M_HRTIMER_EXIT, 9);
    maker_switch(m, 0, 1260, 1, 0, 2);
    maker_switch(m, 1, 1270, 10, 0, 3);
    maker_number(m, 1, 1280, M_UNKNOWN_EXIT, 35);
    maker_number(m, 0, 1290, M_SOFTIRQ_ENTRY, 1);
    maker_wake(m, 0, 1291, M_WAKING, 5, 0);
    maker_wake(m, 0, 1292, M_WAKEUP, 5, 0);
    maker_number(m, 0, 1293, M_SOFTIRQ_EXIT, 1);
    maker_switch(m, 0, 1300, 2, 1, 5);
    maker_switch(m, 1, 1310, 3, 1, 10);
    maker_switch(m, 0, 1320, 5, 1, 1);
    maker_task(m, 1, 1330, M_EXIT, 10);
    maker_wake(m, 1, 1335, M_WAKING, 5, 1);
    maker_wake(m, 1, 1336, M_WAKEUP, 5, 1);
    maker_switch(m, 1, 1340, 10, 0x20, 5);
    maker_task(m, 1, 1350, M_FREE, 10);
    maker_fork(m, 0, 1360, 1, 10, 1, 10);
    maker_wake(m, 0, 1361, M_WAKEUP_NEW, 10, 0);
    maker_switch(m, 0, 1370, 1, 1, 10);
    maker_number(m, 1, 1380, M_RESCHEDULE_ENTRY, 253);
    maker_number(m, 1, 1381, M_RESCHEDULE_EXIT, 253);
    maker_wake(m, 0, 1385, M_WAKING, 5, 1); /* wake before its switch-out */
    maker_switch(m, 1, 1390, 5, 1, 0);
    maker_wake(m, 1, 1391, M_WAKEUP, 5, 1);
    maker_switch(m, 1, 1400, 0, 0, 5);
    maker_switch(m, 0, 1410, 10, 4, 4);
    maker_wake(m, 1, 1420, M_WAKING, 1, 0);
    maker_wake(m, 1, 1421, M_WAKEUP, 1, 0);
    maker_switch(m, 0, 1430, 4, 0, 1);
    maker_switch(m, 1, 1440, 5, 1, 0);
    maker_plain(m, 0, 1500, M_OTHER);
    maker_plain(m, 1, 1500, M_OTHER);
    return m;
}

static void dropped_silently(void **state)
{
    struct maker *m = story();
    for (size_t k = 0; k < maker_events(m); k++) {
        struct graph *g = made_graph(m, k, false, NULL, NULL);
        made_check(g);
        graph_close(g);
    }
    maker_free(m);
}

/* The state of a tid at an instant, by whichever life covers it; -1 when none does. */
static int state_at(const struct graph *g, int tid, int64_t ts, struct graph_cause *c)
{
    for (int life = 0;; life++) {
        int32_t row = made_row(g, tid, life);
        if (row < 0)
            return -1;
        uint64_t i = graph_find(g, row, ts);
        if (i != GRAPH_NO_INTERVAL) {
            struct graph_interval iv;
            graph_interval(g, row, i, &iv);
            graph_interval_cause(g, row, i, c);
            return iv.state;
        }
    }
}

static bool is_wait(int s)
{
    return s != GRAPH_UNKNOWN && s != GRAPH_RUNNING && s != GRAPH_PREEMPTED;
}

/* ts: [ts - 1, ts) is compared. The kind of the wait, and how long it was runnable afterwards, may be unknown; then the
 * wait must have the cause lost events. */
static bool agrees(int told, int truth, const struct graph_cause *c)
{
    if (told == truth || told == GRAPH_UNKNOWN || told < 0)
        return true;
    if (is_wait(told) && is_wait(truth))
        return c->kind == GRAPH_CAUSE_LOST || c->kind == GRAPH_CAUSE_NONE;
    return false;
}

static void told_as_lost(void **state)
{
    struct maker *m = story();
    struct graph *whole = made_graph(m, SIZE_MAX, false, NULL, NULL);
    made_check(whole);
    static const int tids[] = {1, 2, 3, 4, 5, 10};
    int unknown = 0, compared = 0;
    for (size_t k = 0; k < maker_events(m); k++) {
        uint32_t cpu;
        int64_t at;
        int kind = maker_kind(m, k, &cpu, &at);
        struct graph *g = made_graph(m, k, true, NULL, NULL);
        made_check(g);
        const struct graph_loss *losses;
        assert_int_equal(graph_losses(g, &losses), k ? 1 : graph_losses(g, &losses));
        for (size_t t = 0; t < sizeof tids / sizeof *tids; t++)
            for (int64_t ts = 1001; ts <= 1500; ts++) {
                struct graph_cause c, d;
                int truth = state_at(whole, tids[t], ts, &d), told = state_at(g, tids[t], ts, &c);
                if (!agrees(told, truth, &c))
                    fail_msg("without event %zu (kind %d, CPU %u, %lld): thread %d at %lld is %s, not %s", k, kind, cpu,
                        (long long)at, tids[t], (long long)ts, graph_state_name(told), graph_state_name(truth));
                unknown += told == GRAPH_UNKNOWN && truth != GRAPH_UNKNOWN;
                compared++;
            }
        graph_close(g);
    }
    if (unknown * 10 > compared) /* limit of unknown parts */
        fail_msg("%d of %d instants unknown", unknown, compared);
    graph_close(whole);
    maker_free(m);
}

/* Traces that no kernel writes: any event at any time, few threads, ties, losses, contradictions everywhere. */
static void nonsense(void **state)
{
    uint64_t x = 2463534242;
    for (int round = 0; round < 300; round++) {
        struct maker *m = maker_new(3,
            round % 3 == 0       ? UINT64_C(1) << M_WAKING
                : round % 7 == 0 ? UINT64_C(1) << M_WAKEUP
                                 : 0);
        int64_t ts[3] = {1000, 1000, 1000};
        for (int i = 0; i < 200; i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            uint32_t cpu = x >> 8 & 0xff, kind = x >> 16 & 0xff;
            int a = (int)(x >> 24 & 7), b = (int)(x >> 27 & 7);
            cpu %= 3;
            ts[cpu] += (x >> 32 & 3) * (x >> 34 & 7);
            static const int64_t states[] = {0, 0, 1, 1, 2, 4, 0x10, 0x20, 0x40, 0x80, 0x100, 0x402, 0x800, -1};
            if (kind < 100)
                maker_switch(m, cpu, ts[cpu], a, states[(x >> 40) % (sizeof states / sizeof *states)], b);
            else if (kind < 160)
                maker_wake(m, cpu, ts[cpu], kind % 7 == 0 ? M_WAKEUP_NEW : kind % 2 ? M_WAKING : M_WAKEUP, a, (int)b);
            else if (kind < 175)
                maker_fork(m, cpu, ts[cpu], a, b, b, b);
            else if (kind < 190)
                maker_task(m, cpu, ts[cpu], kind % 2 ? M_EXIT : M_FREE, a);
            else if (kind < 195)
                maker_exec(m, cpu, ts[cpu], "/x/y", a, b);
            else if (kind < 200)
                maker_dump_thread(m, cpu, ts[cpu], a, b, b, b, "dumped");
            else if (kind < 210)
                maker_irq(m, cpu, ts[cpu], kind % 2, a, "irq");
            else if (kind < 240)
                maker_number(m, cpu, ts[cpu], M_SOFTIRQ_ENTRY + kind % 8, b);
            else if (kind < 243)
                maker_lose(m, cpu, ts[cpu]);
            else if (kind < 250)
                maker_number(m, cpu, ts[cpu], kind % 2 ? M_FUTEX_ENTRY : M_FUTEX_EXIT, 1);
            else
                maker_block_complete(m, cpu, ts[cpu], 1);
        }
        struct graph *g = made_graph(m, SIZE_MAX, false, NULL, NULL);
        made_check_cover(g);
        graph_close(g);
        maker_free(m);
    }
}

static void expect(const struct graph *g, int tid, const char *want)
{
    char got[1024];
    made_text(g, made_row(g, tid, 0), got, sizeof got);
    if (strcmp(got, want))
        fail_msg("thread %d\n is: %s\nnot: %s", tid, got, want);
}

/* Checks a long gap of one CPU, reported only at its end, and a short one of another within it: threads asleep in any
 * part of the long one are unknown to its end. */
static void gaps_within_gaps(void **state)
{
    struct maker *m = maker_new(3, 0);
    maker_switch(m, 0, 100, 0, 0, 9);
    maker_plain(m, 0, 150, M_OTHER);
    maker_lose(m, 0, 150); /* loss until 300 */
    maker_switch(m, 0, 300, 9, 0, 0);
    maker_switch(m, 1, 100, 0, 0, 8);
    maker_plain(m, 1, 120, M_OTHER);
    maker_cut(m, 1, 120);
    maker_plain(m, 1, 200, M_OTHER);
    maker_lose(m, 1, 200); /* loss until 205 */
    maker_switch(m, 1, 205, 8, 0, 0);
    maker_switch(m, 2, 100, 0, 0, 1);
    maker_switch(m, 2, 160, 1, 1, 2);
    maker_switch(m, 2, 250, 2, 1, 5);
    maker_wake(m, 2, 320, M_WAKING, 1, 2);
    maker_wake(m, 2, 322, M_WAKING, 2, 2);
    maker_switch(m, 2, 330, 5, 1, 1);
    for (uint32_t cpu = 0; cpu < 3; cpu++)
        maker_plain(m, cpu, 400, M_OTHER);
    struct graph *g = made_graph(m, SIZE_MAX, false, NULL, NULL);
    made_check(g);
    expect(g, 1, "100 running 160 unknown<lost 300 blocked<5@320 320 preempted(by 5 t5) 330 running 400");
    expect(g, 2, "160 running 250 unknown<lost 300 blocked<5@322 322 preempted 400");
    graph_close(g);
    maker_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(dropped_silently), cmocka_unit_test(told_as_lost),
        cmocka_unit_test(gaps_within_gaps), cmocka_unit_test(nonsense)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
