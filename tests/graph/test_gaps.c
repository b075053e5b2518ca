/* SPDX-License-Identifier: MIT */
/* Lost events on made traces: knowledge before and after the gap, by reference/critical-path.md 8. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "made.h"

/* Losses: exactly what may have changed is unknown. */
static void losses(void **state)
{
    struct maker *m = maker_new(2, 0);
    maker_switch(m, 0, 100, 0, READY, 1);
    maker_switch(m, 1, 100, 0, READY, 2);
    maker_switch(m, 1, 120, 2, SLEEP, 3); /* 2 sleeps over the loss */
    maker_plain(m, 0, 200, M_OTHER);
    maker_lose(m, 0, 200); /* … until the next packet of CPU 0 begins */
    maker_switch(m, 0, 300, 4, SLEEP, 0);
    maker_wake(m, 1, 320, M_WAKING, 2, 0);
    maker_switch(m, 0, 340, 0, READY, 2);
    maker_plain(m, 1, 400, M_OTHER);
    struct graph *g = made_whole(m);
    made_expect(g, 1, 0, "100 running 200 unknown<lost 400");
    made_expect(
        g, 2, 0, "100 running 120 blocked<lost 200 unknown<lost 300 blocked<3@320 320 preempted 340 running 400");
    made_expect(g, 3, 0, "120 running 400"); /* CPU 1 lost nothing */
    made_expect(g, 4, 0, "300 blocked 400");
    const struct graph_loss *l;
    assert_int_equal(graph_losses(g, &l), 1);
    assert_int_equal(l[0].cpu, 0);
    assert_int_equal(l[0].count, 1);
    graph_close(g);
}

/* A gap between complete packets: what a thread was doing and who had woken it before are not known after it. */
static void known_before_a_loss(void **state)
{
    struct maker *m = maker_new(2, 0);
    maker_switch(m, 0, 100, 0, READY, 1);
    maker_switch(m, 1, 100, 0, READY, 2);
    maker_number(m, 0, 105, M_FUTEX_ENTRY, 1);
    maker_wake(m, 1, 110, M_WAKING, 1, 0); /* before a possible sleep */
    maker_plain(m, 0, 120, M_OTHER);
    maker_cut(m, 0, 120);
    maker_plain(m, 0, 200, M_OTHER);
    maker_lose(m, 0, 200);
    maker_plain(m, 0, 205, M_OTHER);
    maker_switch(m, 0, 210, 1, SLEEP, 0);
    maker_switch(m, 0, 260, 0, READY, 1);
    maker_plain(m, 0, 300, M_OTHER);
    maker_plain(m, 1, 300, M_OTHER);
    struct graph *g = made_whole(m);
    made_expect(g, 1, 0, "100 running 200 unknown<lost 205 running 210 blocked 260 running 300");
    graph_close(g);
}

/* Woken, and then woken again: between the two it ran and slept where events are missing. */
static void woken_again_after_a_loss(void **state)
{
    struct maker *m = maker_new(2, 0);
    maker_switch(m, 0, 100, 0, READY, 1);
    maker_switch(m, 1, 100, 0, READY, 2);
    maker_switch(m, 0, 110, 1, SLEEP, 3);
    maker_wake(m, 1, 120, M_WAKING, 1, 0);
    maker_cut(m, 0, 120);
    maker_plain(m, 0, 200, M_OTHER);
    maker_lose(m, 0, 200);
    maker_plain(m, 0, 205, M_OTHER);
    maker_switch(m, 0, 210, 3, READY, 4);
    maker_wake(m, 1, 250, M_WAKING, 1, 0);
    maker_switch(m, 0, 280, 4, SLEEP, 1);
    maker_plain(m, 0, 300, M_OTHER);
    maker_plain(m, 1, 300, M_OTHER);
    struct graph *g = made_whole(m);
    made_expect(g, 1, 0,
        "100 running 110 blocked<2@120 120 preempted 200 unknown<lost 205 blocked<2@250 250 preempted(by 4 t4) 280 "
        "running 300");
    graph_close(g);
}

/* Checks a wake of which only the end was seen; its cause was lost with the events of another CPU. */
static void wakeup_after_a_loss(void **state)
{
    struct maker *m = maker_new(2, 0);
    maker_switch(m, 0, 100, 0, READY, 1);
    maker_switch(m, 1, 100, 0, READY, 2);
    maker_switch(m, 0, 110, 1, SLEEP, 3);
    maker_plain(m, 1, 120, M_OTHER);
    maker_cut(m, 1, 120);
    maker_plain(m, 1, 200, M_OTHER);
    maker_lose(m, 1, 200);
    maker_plain(m, 1, 205, M_OTHER);
    maker_switch(m, 1, 210, 2, READY, 4);
    maker_wake(m, 0, 250, M_WAKEUP, 1, 0);
    maker_switch(m, 0, 260, 3, SLEEP, 1);
    maker_plain(m, 0, 300, M_OTHER);
    struct graph *g = made_whole(m);
    made_expect(g, 1, 0,
        "100 running 110 blocked<lost 200 unknown<lost 205 blocked<lost 250 preempted(by 3 t3) 260 running 300");
    graph_close(g);
}

/* Lost from sight and then dumped as waiting: nothing ran it since the events are complete again. */
static void dumped_after_a_loss(void **state)
{
    struct maker *m = maker_new(2, 0);
    maker_switch(m, 0, 100, 0, READY, 1);
    maker_switch(m, 1, 100, 0, READY, 2);
    maker_plain(m, 0, 120, M_OTHER);
    maker_cut(m, 0, 120);
    maker_plain(m, 0, 200, M_OTHER);
    maker_lose(m, 0, 200);
    maker_switch(m, 0, 205, 3, READY, 0);
    maker_dump_thread(m, 1, 250, 1, 1, 0, KERNEL_DUMPED_WAITING, "t1");
    maker_plain(m, 0, 300, M_OTHER);
    maker_plain(m, 1, 300, M_OTHER);
    struct graph *g = made_whole(m);
    made_expect(g, 1, 0, "100 running 200 unknown<lost 205 blocked 300");
    graph_close(g);
}

/* Checks an exit of a thread that was only seen to sleep: it woke and ran unseen. */
static void died_in_its_sleep(void **state)
{
    struct maker *m = maker_new(2, 0);
    maker_switch(m, 0, 100, 0, READY, 1);
    maker_switch(m, 1, 100, 0, READY, 2);
    maker_switch(m, 0, 110, 1, SLEEP, 3);
    maker_task(m, 1, 150, M_EXIT, 1);
    maker_task(m, 1, 160, M_FREE, 1);
    maker_plain(m, 0, 170, M_OTHER);
    maker_cut(m, 0, 170);
    maker_plain(m, 0, 200, M_OTHER);
    maker_lose(m, 0, 200); /* loss after its death: irrelevant */
    maker_plain(m, 0, 205, M_OTHER);
    struct graph *g = made_whole(m);
    made_expect(g, 1, 0, "100 running 110 unknown 160");
    graph_close(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses),
        cmocka_unit_test(known_before_a_loss),
        cmocka_unit_test(woken_again_after_a_loss),
        cmocka_unit_test(wakeup_after_a_loss),
        cmocka_unit_test(dumped_after_a_loss),
        cmocka_unit_test(died_in_its_sleep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
