/* SPDX-License-Identifier: MIT */
/* Running threads of CPUs, by the switches of made traces. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "maker.h"

enum { CPUS = 3 };

/* CPU 0 switches at 100 and 200, CPU 1 at 150 alone, CPU 2 never. */
static void open_trace(struct maker_trace *trace)
{
    struct maker *m = maker_new(CPUS, 0);
    maker_switch(m, 0, 100, 10, 1, 11);
    maker_switch(m, 1, 150, 20, 0, 21);
    maker_switch(m, 0, 200, 11, 1, 12);
    maker_wake(m, 2, 210, M_WAKING, 10, 0);
    maker_open(m, SIZE_MAX, false, trace);
    maker_free(m);
}

static void check(const struct maker_trace *trace, int64_t begin, int64_t first, int64_t second)
{
    struct kernel_running_cpus cpus = {0};
    struct ctf_source source = {.trace = trace->trace};
    const int64_t wanted[CPUS] = {first, second, KERNEL_NO_TID};
    char name[32];
    assert_int_equal(kernel_running_find(&cpus, &source, (struct ctf_window){begin, INT64_MAX}, NULL), ERR_OK);
    for (int i = 0; i < CPUS; i++) {
        assert_int_equal(kernel_running_on(&cpus, i)->tid, wanted[i]);
        snprintf(name, sizeof name, "t%d", (int)wanted[i]);
        assert_string_equal(kernel_running_on(&cpus, i)->comm, wanted[i] < 0 ? "" : name);
    }
    assert_null(kernel_running_on(&cpus, -1));
    vec_free(&cpus);
}

static int64_t first_time(const struct maker_trace *trace)
{
    struct ctf_source source = {.trace = trace->trace};
    struct ctf_merge *m;
    struct ctf_event ev;
    assert_int_equal(ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &m, NULL), ERR_OK);
    assert_int_equal(ctf_merge_next(m, &ev, 1), 1);
    ctf_merge_free(m);
    return ev.ts;
}

static void at_the_begin_of_a_window(void **state)
{
    struct maker_trace trace;
    open_trace(&trace);
    int64_t at_100 = first_time(&trace);
    check(&trace, INT64_MIN, 10, 20);
    check(&trace, at_100 + 1, 11, 20);
    check(&trace, at_100 + 51, 11, 21); /* CPU 1 has only switches before the window */
    check(&trace, at_100 + 101, 12, 21);
    maker_close(&trace);
}

static void what_switches_tell(void **state)
{
    struct maker_trace trace;
    struct kernel_switch s = {0};
    struct ctf_source source;
    struct ctf_merge *m;
    struct ctf_event ev;
    unsigned switches = 0;
    open_trace(&trace);
    source = (struct ctf_source){.trace = trace.trace};
    assert_int_equal(ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &m, NULL), ERR_OK);
    while (ctf_merge_next(m, &ev, 1)) {
        int64_t leaves, comes = -1, priority;
        assert_int_equal(kernel_switch_is(&s, ev.cls), !strcmp(ev.cls->name, "sched_switch"));
        if (strcmp(ev.cls->name, "sched_switch"))
            continue;
        assert_true(kernel_switch_tid(&s.prev, &ev, &leaves) && kernel_switch_tid(&s.next, &ev, &comes));
        assert_int_equal(comes, leaves + 1);
        assert_true(kernel_switch_priority(&s.next, &ev, &priority));
        switches++;
    }
    assert_int_equal(switches, 3);
    ctf_merge_free(m);
    maker_close(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_the_begin_of_a_window), cmocka_unit_test(what_switches_tell)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
