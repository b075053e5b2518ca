/* SPDX-License-Identifier: MIT */
/* Numbers against the C library's printf. */
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>

#include "base/arena.h"
#include "test.h"

static void expect(struct text *t, const char *expected)
{
    assert_string_equal(text_cstr(t), expected);
    t->n = 0;
}

static void check_number(struct text *t, uint64_t v)
{
    char expected[64];
    snprintf(expected, sizeof expected, "%" PRIu64, v);
    text_u64(t, v);
    expect(t, expected);
    snprintf(expected, sizeof expected, "%" PRId64, (int64_t)v);
    text_i64(t, (int64_t)v);
    expect(t, expected);
    static const int widths[] = {-3, 0, 1, 2, 9, 19, 20, 21, 40};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        int w = widths[i] > 0 ? widths[i] : 0;
        snprintf(expected, sizeof expected, "%*" PRIu64, w, v);
        text_pad(t, v, widths[i], ' ');
        expect(t, expected);
        snprintf(expected, sizeof expected, "%0*" PRIu64, w, v);
        text_pad(t, v, widths[i], '0');
        expect(t, expected);
    }
}

/* Checks that no state of one number affects the next one. */
static void near_numbers(void **state)
{
    static const int64_t steps[] = {
        0, 1, -1, 99999999, 100000000, -100000000, 1000000000000, INT64_C(-1700000000000000000)};
    static const int64_t begins[] = {
        0, 1, 99999999, 100000000, 1000000007, INT64_C(1700000000123456789), INT64_MAX, INT64_MIN, -5, -100000001};
    struct text t = {0};
    struct text_near near = {0};
    char expected[32];
    for (size_t b = 0; b < sizeof begins / sizeof *begins; b++)
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            const int64_t pair[] = {begins[b], (int64_t)((uint64_t)begins[b] + (uint64_t)steps[i])};
            for (int k = 0; k < 2; k++) {
                snprintf(expected, sizeof expected, "%" PRId64, pair[k]);
                text_i64_near(&t, &near, pair[k]);
                expect(&t, expected);
            }
        }
    text_fini(&t);
}

static void numbers_as_printf(void **state)
{
    struct text t = {0};
    check_number(&t, 0);
    for (uint64_t p = 1; p; p <<= 1) {
        check_number(&t, p - 1);
        check_number(&t, p);
        check_number(&t, p + 1);
        check_number(&t, -p);
    }
    uint64_t ten = 1;
    for (int i = 0; i < 20; i++, ten *= 10) {
        check_number(&t, ten - 1);
        check_number(&t, ten);
        check_number(&t, ten + 1);
    }
    check_number(&t, UINT64_MAX);
    check_number(&t, (uint64_t)INT64_MIN);
    for (uint64_t i = 0; i < 20000; i++)
        check_number(&t, i);
    uint64_t x = test_seed(88172645463325252u); /* xorshift64 (Marsaglia 2003) */
    for (int i = 0; i < 20000; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        check_number(&t, x >> (i % 64));
    }
    text_fini(&t);
}

static void printf_grows(void **state)
{
    struct text t = {0};
    for (int n = 0; n < 300; n++) {
        t.n = 0;
        text_printf(&t, "%*d", n, 7);
        assert_int_equal(t.n, n ? n : 1);
        assert_int_equal(t.v[t.n - 1], '7');
    }
    text_fini(&t);
}

static void durations(void **state)
{
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {
        {0, "0 ns"},
        {350, "350 ns"},
        {999, "999 ns"},
        {1000, "1.000 µs"},
        {-2000, "-2.000 µs"},
        {9999, "9.999 µs"},
        {10000, "10.00 µs"},
        {12344, "12.34 µs"},
        {12345, "12.35 µs"},
        {99994, "99.99 µs"},
        {99995, "100.0 µs"},
        {999949, "999.9 µs"},
        {999950, "1.000 ms"},
        {9940000, "9.940 ms"},
        {88494000, "88.49 ms"},
        {1200000000, "1.200 s"},
        {59999400000, "60.00 s"},
        {999949999999, "999.9 s"},
        {999950000000, "1000 s"},
        {86400000000000, "86400 s"},
        {INT64_MAX, "9223372037 s"},
        {INT64_MIN, "-9223372037 s"},
    };
    struct text t = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text_duration(&t, cases[i].ns);
        expect(&t, cases[i].text);
    }
    text_fini(&t);
}

static void groups_and_cells(void **state)
{
    struct text t = {0};
    text_grouped(&t, 0);
    expect(&t, "0");
    text_grouped(&t, 999);
    expect(&t, "999");
    text_grouped(&t, 1000);
    expect(&t, "1 000");
    text_grouped(&t, 12345678);
    expect(&t, "12 345 678");
    text_grouped(&t, UINT64_MAX);
    expect(&t, "18 446 744 073 709 551 615");
    text_fini(&t);
    assert_int_equal(text_cells("", 0), 0);
    assert_int_equal(text_cells("aµ…€😀", strlen("aµ…€😀")), 5);
}

static void drains_to_a_file(void **state)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    struct text t = TEXT_TO(fds[1]);
    struct err e = {0};
    text_puts(&t, "one ");
    assert_int_equal(text_drain(&t, 100, &e), ERR_OK); /* size below the threshold: waits */
    assert_int_equal(t.n, 4);
    text_puts(&t, "two");
    assert_int_equal(text_drain(&t, 0, &e), ERR_OK);
    assert_int_equal(t.n, 0);
    char got[16];
    assert_int_equal(read(fds[0], got, sizeof got), 7);
    assert_memory_equal(got, "one two", 7);
    close(fds[0]);
    signal(SIGPIPE, SIG_IGN);
    text_puts(&t, "three");
    assert_int_equal(text_drain(&t, 0, &e), ERR_IO);
    assert_int_equal(t.error, EPIPE);
    close(fds[1]);
    text_fini(&t);
}

static void full_disk_is_told_and_kept(void **state)
{
    int fd = open("/dev/full", O_WRONLY);
    if (fd < 0)
        skip_without("/dev/full");
    struct text t = TEXT_TO(fd);
    struct err e = {0};
    text_puts(&t, "x");
    assert_int_equal(text_drain(&t, 0, &e), ERR_IO);
    assert_non_null(strstr(e.text, strerror(ENOSPC)));
    text_puts(&t, "y");
    assert_int_equal(text_drain(&t, 1000, &e), ERR_IO);
    assert_int_equal(t.error, ENOSPC);
    close(fd);
    text_fini(&t);
}

static void fills_and_moves_into_an_arena(void **state)
{
    struct arena a = {0};
    struct text t = {.fd = -1};
    assert_string_equal(text_to_arena(&t, &a), "");
    text_fill(&t, '-', 3);
    text_fill(&t, ' ', 0);
    text_fill(&t, '+', 200);
    char wanted[204] = "---";
    memset(wanted + 3, '+', 200);
    assert_string_equal(text_to_arena(&t, &a), wanted);
    assert_null(t.v);
    assert_string_equal(arena_duration(&a, 350), "350 ns");
    arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_as_printf),
        cmocka_unit_test(near_numbers),
        cmocka_unit_test(printf_grows),
        cmocka_unit_test(durations),
        cmocka_unit_test(groups_and_cells),
        cmocka_unit_test(drains_to_a_file),
        cmocka_unit_test(fills_and_moves_into_an_arena),
        cmocka_unit_test(full_disk_is_told_and_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
