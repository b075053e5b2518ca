/* SPDX-License-Identifier: MIT */
/* Filters of states, as the protocol's description gives them ("openat", "duration>10ms", "thread=1", "process=ls"). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tsp/query.h"

static const struct tsp_property call[] = {
    {"label", "openat"}, {"duration", "12000000"}, {"TID", "1"}, {"exec name", "ls"}, {"cpu", "3"}};
static const struct tsp_property wait[] = {
    {"label", "poll"}, {"duration", "500"}, {"TID", "17"}, {"exec name", "nginx: worker"}};

static int tags(json_t *map, const struct tsp_property *p, size_t n)
{
    struct arena a = {0};
    struct tsp_query q = {.filter = tsp_filter_compile(map, &a)};
    int got = tsp_filter_tags(&q, p, n);
    tsp_filter_fini(q.filter);
    arena_fini(&a);
    json_decref(map);
    return got;
}

static bool fits(const char *expression, const struct tsp_property *p, size_t n)
{
    return !tags(json_pack("{s:[s]}", "1", expression), p, n);
}

#define CALL(expression) fits(expression, call, sizeof call / sizeof *call)
#define WAIT(expression) fits(expression, wait, sizeof wait / sizeof *wait)

static void test_expressions(void **state)
{
    assert_true(CALL("openat") && !WAIT("openat"));
    assert_true(CALL("OPEN"));
    assert_true(CALL("duration>10ms") && !WAIT("duration>10ms"));
    assert_true(WAIT("duration <= 0.5 us") == WAIT("duration <= 500"));
    assert_true(CALL("thread=1") && !WAIT("thread=1"));
    assert_true(CALL("tid == 1") && CALL("tid != 17") && !WAIT("tid != 17"));
    assert_true(CALL("process=ls") && !WAIT("process=ls"));
    assert_true(WAIT("process contains worker") && WAIT("process matches ^nginx") && !CALL("process matches ^nginx"));
    assert_true(WAIT("process = \"nginx: worker\""));
    assert_true(CALL("cpu present") && !WAIT("cpu present"));
    assert_true(CALL("openat && duration > 10ms") && !CALL("openat && duration > 20ms"));
    assert_true(WAIT("openat || thread = 17") && !WAIT("openat || thread = 18"));
    assert_true(WAIT("!openat") && !CALL("!(openat || poll)"));
    assert_true(CALL("openat || poll && nothing"));
    assert_false(CALL("(openat || poll) && nothing"));
}

/* Checks that unfinished input is searched literally. */
static void test_unfinished(void **state)
{
    static const struct tsp_property odd[] = {{"label", "a && (b"}};
    assert_true(fits("a && (b", odd, 1));
    assert_false(CALL("duration >"));
    assert_false(CALL("((((((((((("));
    assert_false(CALL("\"open"));
    assert_true(WAIT("process contains \"nginx: worker\""));
    assert_false(WAIT("process matches \"(((\""));
}

static void test_tags(void **state)
{
    size_t n = sizeof call / sizeof *call;
    assert_int_equal(tags(json_pack("{s:[s], s:[s]}", "1", "poll", "4", "poll"), call, n), 5);
    assert_int_equal(tags(json_pack("{s:[s], s:[s]}", "1", "poll", "4", "openat"), call, n), 1);
    assert_int_equal(tags(json_pack("{s:[s,s]}", "1", "openat", "poll"), call, n), 1);
    assert_int_equal(tags(json_pack("{s:[], s:[s], s:s, s:[i]}", "1", "x", "y", "4", "poll", "8", 5), call, n), 0);
    assert_int_equal(tags(json_pack("{}"), call, n), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expressions), cmocka_unit_test(test_unfinished), cmocka_unit_test(test_tags)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
