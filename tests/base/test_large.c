/* SPDX-License-Identifier: MIT */
/* Large blocks: what is in them stays when they grow; what is kept comes again, and goes back in the end. */
#include "base/large.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#include "test.h"

enum { MIB = 1 << 20, FEW_CALLS = 3, MANY_CALLS = 20 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool keeps = false; /* sanitizers must see uses of freed memory */
#else
static const bool keeps = true;
#endif

static void mark(unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i += 1000)
        p[i] = (unsigned char)(i / 1000);
}

static void assert_marked(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i += 1000)
        assert_int_equal(p[i], (unsigned char)(i / 1000));
}

static void grows(void **state)
{
    large_keep(64 * MIB);
    for (int round = 0; round < 3; round++) { /* rounds with new memory, then with that left by the round before */
        size_t has = 0, used = 100000;
        unsigned char *p = large_try(NULL, &has, 0, used);
        assert_true(has >= used && has % LARGE_BLOCK == 0);
        mark(p, used);
        for (size_t bytes = used; bytes < 20 * MIB; bytes = bytes * 3 / 2) {
            p = large_try(p, &has, used, bytes);
            assert_non_null(p);
            assert_true(has >= bytes);
            assert_marked(p, used);
            used = bytes;
            mark(p, used);
        }
        large_free(p, has);
    }
    size_t has = 0;
    assert_null(large_try(NULL, &has, 0, SIZE_MAX));
    if (keeps) /* a sanitizer's malloc ends the process */
        assert_null(large_try(NULL, &has, 0, SIZE_MAX / 2));
    large_free(NULL, 0);
    large_keep(0);
    assert_false(large_give_back());
}

static void *take(size_t bytes)
{
    size_t has = 0;
    void *p = large_try(NULL, &has, 0, bytes);
    assert_int_equal(has, bytes);
    memset(p, 1, bytes);
    return p;
}

static void keeps_some(void **state)
{
    large_keep(8 * MIB);
    void *a = take(4 * MIB), *b = take(2 * MIB), *much = take(16 * MIB);
    large_free(a, 4 * MIB);
    large_free(b, 2 * MIB);
    large_free(much, 16 * MIB);
    if (!keeps) {
        assert_false(large_give_back());
        large_keep(0);
        return;
    }
    size_t has = 0;
    assert_ptr_equal(large_try(NULL, &has, 0, 7 * MIB / 2), a); /* the 2 MiB are too few */
    assert_int_equal(has, 4 * MIB);
    large_free(a, has);
    void *small = take(LARGE_BLOCK); /* far too much together */
    assert_ptr_not_equal(small, a);
    assert_ptr_not_equal(small, b);
    large_free(small, LARGE_BLOCK);
    for (int i = 0; i < FEW_CALLS; i++)
        large_cool();
    assert_ptr_equal(take(2 * MIB), b);
    for (int i = 0; i < MANY_CALLS; i++)
        large_cool();
    assert_false(large_give_back()); /* blocks unused for this long are gone */
    large_free(b, 2 * MIB);
    assert_true(large_give_back());
    assert_false(large_give_back());
    large_keep(0);
}

static void texts_are_large(void **state)
{
    large_keep(32 * MIB);
    for (int round = 0; round < 2; round++) {
        struct text t = {.fd = -1};
        uint64_t n = 0;
        for (; t.n < 9 * MIB; n++)
            text_u64(&t, n), text_putc(&t, ' ');
        size_t bytes = t.n;
        char *s = text_take(&t), *at = s;
        assert_null(t.v);
        assert_int_equal(strlen(s), bytes);
        for (uint64_t i = 0; i < n; i++)
            assert_int_equal(strtoull(at, &at, 10), i);
        free(s);
        assert_true(text_try_grow(&t, 5 * MIB));
        text_puts(&t, "again");
        assert_string_equal(text_cstr(&t), "again");
        text_fini(&t);
        text_puts(&t, "small");
        s = text_take(&t);
        assert_string_equal(s, "small");
        free(s);
        if (keeps)
            assert_false(text_try_grow(&t, SIZE_MAX / 2));
        assert_false(text_try_grow(&t, SIZE_MAX));
    }
    large_keep(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows),
        cmocka_unit_test(keeps_some),
        cmocka_unit_test(texts_are_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
