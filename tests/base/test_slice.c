/* SPDX-License-Identifier: MIT */
/* Values of JSON are equal whatever they are written like. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/slice.h"

static bool same(const char *a, const char *b)
{
    struct slice x = slice_of(a, strlen(a), NULL, NULL), y = slice_of(b, strlen(b), NULL, NULL);
    assert_non_null(x.at);
    assert_non_null(y.at);
    assert_int_equal(slice_same_value(x, y), slice_same_value(y, x));
    return slice_same_value(x, y);
}

static void test_equal_values(void **state)
{
    static const char *const pairs[][2] = {{"{\"a\":1,\"b\":[true,null]}", "{ \"a\" : 1 ,\n\"b\" : [ true , null ] }"},
        {"{\"a\":1,\"b\":{\"c\":2,\"d\":3}}", "{\"b\":{\"d\":3,\"c\":2},\"a\":1}"}, {"\"\303\251/\"", "\"\\u00e9\\/\""},
        {"\"\\uD83D\\uDE00\"", "\"\360\237\230\200\""}, {"{\"a\":1}", "{\"\\u0061\":1}"}, {"1", "1.0"}, {"0.5", "5e-1"},
        {"[]", "[ ]"}, {"{}", "{ }"}, {"\"\"", "\"\""}, {"0", "-0"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        assert_true(same(pairs[i][0], pairs[i][1]));
}

static void test_other_values(void **state)
{
    static const char *const pairs[][2] = {{"{\"a\":1}", "{\"a\":2}"}, {"{\"a\":1}", "{\"b\":1}"},
        {"{\"a\":1}", "{\"a\":1,\"b\":1}"}, {"[1,2]", "[2,1]"}, {"[1]", "[1,1]"}, {"[]", "{}"}, {"\"1\"", "1"},
        {"\"a\"", "\"ab\""}, {"\"\\u0061\"", "\"b\""}, {"true", "false"}, {"null", "false"}, {"0", "null"},
        {"9223372036854775807", "9223372036854775806"}, {"{}", "{\"a\":1}"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        assert_false(same(pairs[i][0], pairs[i][1]));
}

static void test_absent_values(void **state)
{
    struct slice none = {0}, some = slice_of("1", 1, NULL, NULL);
    assert_true(slice_same_value(none, none));
    assert_false(slice_same_value(none, some));
    assert_false(slice_same_value(some, none));
}

/* Members of large objects are not searched for: only those in the same order are equal. */
static void test_large_objects(void **state)
{
    enum { N = SLICE_MEMBERS + 1, EACH = 16 };
    static char up[N * EACH], spaced[N * EACH], down[N * EACH];
    for (int i = 0; i < N; i++) {
        snprintf(up + strlen(up), EACH, "%c\"m%02d\":1", i ? ',' : '{', i);
        snprintf(spaced + strlen(spaced), EACH, "%c \"m%02d\": 1", i ? ',' : '{', i);
        snprintf(down + strlen(down), EACH, "%c\"m%02d\":1", i ? ',' : '{', N - 1 - i);
    }
    strcat(up, "}");
    strcat(spaced, "}");
    strcat(down, "}");
    assert_true(same(up, spaced));
    assert_false(same(up, down));
}

static void test_first_item(void **state)
{
    static const char *const pairs[][2] = {{"[7,8]", "7"}, {"7", "7"}, {"[]", "[]"}, {"{\"a\":1}", "{\"a\":1}"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct slice s = slice_first(slice_of(pairs[i][0], strlen(pairs[i][0]), NULL, NULL));
        assert_int_equal(s.n, strlen(pairs[i][1]));
        assert_memory_equal(s.at, pairs[i][1], s.n);
    }
    assert_null(slice_first((struct slice){0}).at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_values),
        cmocka_unit_test(test_other_values),
        cmocka_unit_test(test_absent_values),
        cmocka_unit_test(test_large_objects),
        cmocka_unit_test(test_first_item),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
