/* SPDX-License-Identifier: MIT */
/* Bisection against looking at every number. */
#include "base/search.h"

#include "test.h"

static void as_looking_at_each(void **state)
{
    int64_t v[32];
    for (size_t n = 0; n <= 32; n++) {
        for (size_t k = 0; k < n; k++)
            v[k] = (int64_t)(k / 3) * 2; /* runs of equal ones, with holes between */
        for (int64_t want = -1; want <= 23; want++)
            for (size_t from = 0; from <= n; from++) {
                size_t at = from, after = from;
                while (at < n && v[at] < want)
                    at++;
                while (after < n && v[after] <= want)
                    after++;
                assert_int_equal(search_first(i, from, n, v[i] >= want), at);
                assert_int_equal(search_first(i, from, n, v[i] > want), after);
            }
    }
}

static void nothing_to_look_at(void **state)
{
    assert_int_equal(search_first(i, 7, 7, i > 100), 7);
    assert_int_equal(search_first(i, 9, 7, i > 100), 9);
    assert_int_equal(search_first(i, 0, SIZE_MAX, i >= SIZE_MAX - 1), SIZE_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_looking_at_each),
        cmocka_unit_test(nothing_to_look_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
