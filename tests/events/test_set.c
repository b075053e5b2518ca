/* SPDX-License-Identifier: MIT */
/* Sets of item numbers against a plain list of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../base/test.h"
#include "events/set.h"

enum { AT_ONCE = 500 };

/* Adds a number with probability share/256 in each of `pieces` of `length` numbers, `gap` apart; checks ranks and
 * selections. */
static void check(uint64_t start, unsigned pieces, uint64_t length, uint64_t gap, unsigned share)
{
    struct event_set s = {0};
    VEC(uint64_t) all = {0};
    uint64_t random = test_seed(88172645463325252u), out[AT_ONCE];
    for (unsigned p = 0; p < pieces; p++)
        for (uint64_t i = 0; i < length; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            if ((random >> 24) % 256 >= share)
                continue;
            events_set_add(&s, start + p * gap + i);
            vec_push(&all, start + p * gap + i);
        }
    assert_int_equal(s.n, all.n);
    for (size_t first = 0; first < all.n; first += all.n / 97 + 1) {
        size_t n = events_set_get(&s, first, out, AT_ONCE);
        assert_int_equal(n, all.n - first < AT_ONCE ? all.n - first : AT_ONCE);
        assert_memory_equal(out, all.v + first, n * sizeof *out);
        assert_int_equal(events_set_rank(&s, all.v[first]), first);
        assert_int_equal(events_set_rank(&s, all.v[first] + 1), first + 1);
    }
    assert_int_equal(events_set_get(&s, all.n, out, AT_ONCE), 0);
    assert_int_equal(events_set_rank(&s, 0), 0);
    assert_int_equal(events_set_rank(&s, UINT64_MAX), all.n);
    for (size_t i = 0; i + 1 < all.n; i += all.n / 31 + 1)
        assert_int_equal(events_set_rank(&s, all.v[i] + (all.v[i + 1] - all.v[i] + 1) / 2), i + 1);
    if (all.n) /* size: at most a bit per number passed, and a block's own record */
        assert_true(s.bytes <= (all.v[all.n - 1] / 65536 - start / 65536 + 1) * (8192 + sizeof(struct event_block)));
    vec_free(&all);
    events_set_fini(&s);
}

static void test_sets(void **state)
{
    check(0, 1, 0, 0, 0);
    check(0, 1, 300000, 0, 256);
    check(65530, 1, 12, 0, 256);
    check(7, 1, 1000000, 0, 1);
    check(0, 1, 1000000, 0, 16); /* density of about 4096 per block: some as places, some as bits */
    check(1ull << 40, 5, 100000, 10000000, 128);
    check(3, 2000, 1, 99991, 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
