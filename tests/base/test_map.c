/* SPDX-License-Identifier: MIT */
/* Maps against a plain array, strings, and the memory below them. */
#include "base/map.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"

#include "test.h"

enum { KEYS = 4096 };

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* Keys of one residue class of the table collide for some hash; spread and dense keys both occur. */
static uint64_t key_of(unsigned i, int spread)
{
    return spread ? (uint64_t)i << 40 | (uint64_t)i << 3 : i;
}

static void as_a_plain_array(void **state)
{
    for (int spread = 0; spread < 2; spread++) {
        struct map m = {0};
        static uint64_t value[KEYS];
        static bool present[KEYS];
        memset(present, 0, sizeof present);
        size_t n = 0;
        uint64_t x = test_seed(88172645463325252u);
        for (int step = 0; step < 200000; step++) {
            unsigned i = (unsigned)(next_random(&x) % KEYS);
            uint64_t key = key_of(i, spread), *found = map_find(&m, key);
            assert_int_equal(found != NULL, present[i]);
            if (found)
                assert_int_equal(*found, value[i]);
            bool fresh;
            if (next_random(&x) % 3) {
                uint64_t *v = map_put(&m, key, &fresh);
                assert_int_equal(fresh, !present[i]);
                assert_int_equal(*v, present[i] ? value[i] : 0);
                *v = value[i] = (uint64_t)step;
                n += !present[i];
                present[i] = true;
            } else {
                assert_int_equal(map_remove(&m, key), present[i]);
                n -= present[i];
                present[i] = false;
            }
            assert_int_equal(m.n, n);
        }
        map_fini(&m);
    }
}

static void empty_and_extreme_keys(void **state)
{
    struct map m = {0};
    assert_null(map_find(&m, 0));
    assert_false(map_remove(&m, 0));
    *map_put(&m, 0, NULL) = 1;
    *map_put(&m, UINT64_MAX, NULL) = 2;
    assert_int_equal(*map_find(&m, 0), 1);
    assert_int_equal(*map_find(&m, UINT64_MAX), 2);
    assert_null(map_find(&m, 1));
    map_fini(&m);
}

static void mixing(void **state)
{
    /* First outputs of splitmix64 with seed 0 (Vigna's reference implementation): the finaliser of k ·
     * 0x9e3779b97f4a7c15. */
    assert_int_equal(map_mix(0x9e3779b97f4a7c15u), 0xe220a8397b1dcdafu);
    assert_int_equal(map_mix(2 * 0x9e3779b97f4a7c15u), 0x6e789e6aa1b965f4u);
    assert_int_equal(map_mix(3 * 0x9e3779b97f4a7c15u), 0x06c45d188009454fu);
    /* XXH3 of nothing, as the xxHash project publishes it. */
    assert_int_equal(map_hash("", 0), 0x2d06800538d394c2u);
}

static void interning(void **state)
{
    struct strings t = {0};
    assert_string_equal(strings_get(&t, 0), "");
    assert_int_equal(strings_intern(&t, "", 0), 0);
    uint32_t first = strings_intern(&t, "sched_switch", 12);
    assert_int_equal(first, 1);
    assert_int_equal(strings_intern(&t, "sched_switchX", 12), first);
    assert_int_equal(strings_intern(&t, "sched\0switch", 12), strings_intern(&t, "sched", 5));
    char name[32];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 20000; i++) {
            int n = snprintf(name, sizeof name, "name-%d", i);
            assert_int_equal(strings_intern(&t, name, (size_t)n), 3 + i);
        }
    assert_string_equal(strings_get(&t, 3 + 77), "name-77");
    assert_string_equal(strings_get(&t, 1 << 30), "");
    strings_fini(&t);
}

static void arenas(void **state)
{
    struct arena a = {0};
    unsigned char *blocks[200];
    for (size_t i = 0; i < 200; i++) {
        size_t n = i * i + 1;
        blocks[i] = arena_alloc(&a, n);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        for (size_t k = 0; k < n; k++)
            assert_int_equal(blocks[i][k], 0);
        memset(blocks[i], (int)i, n);
    }
    for (size_t i = 0; i < 200; i++)
        for (size_t k = 0; k < i * i + 1; k++)
            assert_int_equal(blocks[i][k], i);
    assert_non_null(arena_alloc(&a, 3 << 20));
    assert_string_equal(arena_strndup(&a, "abcdef", 3), "abc");
    assert_string_equal(arena_printf(&a, "%s-%d", "x", 42), "x-42");
    arena_fini(&a);
    assert_null(a.head);
}

static void vectors(void **state)
{
    VEC(int) v = {0};
    for (int i = 0; i < 1000; i++)
        vec_push(&v, i);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(v.v[i], i);
    vec_free(&v);
    assert_null(v.v);
}

static void errors_stack_up(void **state)
{
    struct err e = {0};
    assert_int_equal(err_set(&e, ERR_FORMAT, "packet %d beyond the file", 17), ERR_FORMAT);
    assert_int_equal(err_wrap(&e, "stream %d", 3), ERR_FORMAT);
    err_wrap(&e, "cannot read \"x\"");
    assert_string_equal(e.text, "cannot read \"x\": stream 3: packet 17 beyond the file");
    char *longest = mem_alloc(3000);
    memset(longest, 'a', 2999);
    longest[2999] = '\0';
    err_wrap(&e, "%s", longest);
    assert_int_equal(strlen(e.text), sizeof e.text - 1);
    free(longest);
    assert_int_equal(err_set(NULL, ERR_LIMIT, "x"), ERR_LIMIT);
    assert_string_equal(err_name(ERR_OK), "no error");
    assert_string_equal(err_name(-1000), "unknown error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_a_plain_array),
        cmocka_unit_test(empty_and_extreme_keys),
        cmocka_unit_test(mixing),
        cmocka_unit_test(interning),
        cmocka_unit_test(arenas),
        cmocka_unit_test(vectors),
        cmocka_unit_test(errors_stack_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
