/* SPDX-License-Identifier: MIT */
/* Names of rows, now and at earlier times, on made traces. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "made.h"

static void expect_then(const struct graph *g, int32_t row, int64_t begin, int64_t end, int32_t tid, const char *name)
{
    struct graph_row r;
    graph_row_then(g, row, begin, end, &r);
    assert_string_equal(r.name, name);
    assert_int_equal(r.tid, tid);
}

/* Programs that follow each other in one life, the last named by prctl; and a thread that takes over its process. */
static void names_over_time(void **state)
{
    struct maker *m = maker_new(2, 0);
    maker_name(m, 50, "t1"); /* forked: called as its parent */
    maker_switch(m, 0, 100, 0, READY, 1);
    maker_fork(m, 0, 110, 1, 50, 50, 50);
    maker_wake(m, 0, 111, M_WAKEUP_NEW, 50, 1);
    maker_switch(m, 1, 120, 0, READY, 50);
    maker_exec(m, 1, 130, "/bin/sh", 50, 50);
    maker_exec(m, 1, 200, "/bin/program", 50, 50);
    maker_name(m, 50, "renamed");
    maker_switch(m, 1, 220, 50, READY, 60);
    maker_switch(m, 1, 250, 60, READY, 50);
    maker_name(m, 50, "program"); /* back again */
    maker_switch(m, 1, 260, 50, SLEEP, 60);
    maker_fork(m, 1, 270, 60, 61, 60, 61);
    maker_wake(m, 1, 271, M_WAKEUP_NEW, 61, 0);
    maker_name(m, 61, "worker");
    maker_switch(m, 0, 280, 1, SLEEP, 61);
    maker_name(m, 60, "worker"); /* name that the next owner of its tid still has */
    maker_exec(m, 0, 290, "/bin/next", 60, 61);
    maker_name(m, 60, "next");
    maker_switch(m, 0, 320, 60, SLEEP, 0);
    struct graph *g = made_whole(m);
    int32_t row = made_row(g, 50, 0), worker = made_row(g, 60, 1);
    expect_then(g, row, INT64_MIN, INT64_MIN, 50, "t1");
    expect_then(g, row, 129, 129, 50, "t1");
    expect_then(g, row, 130, 130, 50, "sh");
    expect_then(g, row, 199, 199, 50, "sh");
    expect_then(g, row, 200, 200, 50, "program");
    expect_then(g, row, 220, 220, 50, "renamed");
    expect_then(g, row, 260, 260, 50, "program");
    expect_then(g, row, INT64_MAX, INT64_MAX, 50, "program");
    expect_then(g, row, 120, 220, 50, "sh");      /* 10, 70 and 20 ns */
    expect_then(g, row, 190, 220, 50, "program"); /* 10 and 20 */
    expect_then(g, row, INT64_MIN, INT64_MAX, 50, "t1");
    expect_then(g, row, 300, INT64_MAX, 50, "program");
    static const char *const had[] = {"t1", "sh", "program", "renamed", "50"};
    for (size_t i = 0; i < 5; i++)
        assert_true(graph_row_is(g, row, had[i]));
    assert_false(graph_row_is(g, row, "next"));
    assert_false(graph_row_is(g, row, "5"));
    expect_then(g, worker, 285, 285, 61, "worker");
    expect_then(g, worker, 290, 290, 60, "next");
    assert_true(graph_row_is(g, worker, "61") && graph_row_is(g, worker, "60"));
    expect_then(g, -1, 0, 0, -1, "");
    made_expect(g, 50, 0, "110 preempted<fork 1 120 running 220 preempted(by 60 t60) 250 running 260 blocked 320");
    graph_close(g);
}

/* Checks that a waiting thread's detail has the name that the CPU's thread had then. */
static void preempted_by_then(void **state)
{
    struct maker *m = maker_new(1, 0);
    maker_name(m, 2, "old");
    maker_switch(m, 0, 100, 0, READY, 1);
    maker_switch(m, 0, 110, 1, READY, 2);
    maker_switch(m, 0, 150, 2, READY, 1);
    maker_switch(m, 0, 160, 1, READY, 2);
    maker_exec(m, 0, 165, "/bin/new", 2, 2);
    maker_name(m, 2, "new");
    maker_switch(m, 0, 200, 2, READY, 1);
    maker_switch(m, 0, 210, 1, SLEEP, 0);
    struct graph *g = made_whole(m);
    made_expect(g, 1, 0, "100 running 110 preempted(by 2 old) 150 running 160 preempted(by 2 new) 200 running 210");
    graph_close(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_over_time),
        cmocka_unit_test(preempted_by_then),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
