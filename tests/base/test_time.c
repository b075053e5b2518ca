/* SPDX-License-Identifier: MIT */
/* Times against the C library's calendar and against fixed cases. */
#include "base/time.h"

#include <time.h>

#include "test.h"

#define S INT64_C(1000000000)
static const int64_t start = INT64_C(1795225053184022483); /* 2026-11-21T01:37:33.184022483Z, as `date -u` says */

static int64_t parse(const char *s)
{
    int64_t t = 0;
    struct err e = {0};
    if (time_parse(s, start, &t, &e) != ERR_OK)
        fail_msg("%s: %s", s, e.text);
    return t;
}

static void what_people_write(void **state)
{
    const int64_t day = start - start % (86400 * S);
    const struct {
        const char *text;
        int64_t ns;
    } cases[] = {
        {"1795225053184022483", start},
        {"0", 0},
        {"-5", -5},
        {"1795225053.184022483", start},
        {"1795225053.184 022 483", start},
        {"[1795225053.184022483]", start},
        {"1795225268.5", 1795225268500000000},
        {"-0.000000001", -1},
        {"0.0", 0},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
        {"+1.5s", start + 1500000000},
        {"+20ms", start + 20000000},
        {"+3us", start + 3000},
        {"+3µs", start + 3000},
        {"+10ns", start + 10},
        {"+1m", start + 60 * S},
        {"+2h", start + 7200 * S},
        {"+0s", start},
        {"+.25s", start + S / 4},
        {"+1.000000001s", start + S + 1},
        {"+0.5us", start + 500},
        {"+1.5m", start + 90 * S},
        {"+1 s", start + S},
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01", 0},
        {"1969-12-31T23:59:59.999999999Z", -1},
        {"2000-02-29T12:00:00Z", 951825600 * S},
        {"2026-11-21T01:37:33.184022483Z", start},
        {"2026-11-21 01:37:33.184022483", start},
        {"2026-11-21 01:37:33.184 022 483", start},
        {"2026-11-21T02:37:33.184022483+01:00", start},
        {"2026-11-20T20:07:33.184022483-0530", start},
        {"2026-11-21T03:37:33.184022483+02", start},
        {"2026-11-21T01:37:33.5Z", day + (1 * 3600 + 37 * 60 + 33) * S + S / 2},
        {"2026-11-21T01:37Z", day + (1 * 3600 + 37 * 60) * S},
        {"2026-11-21T01", day + 3600 * S},
        {"2026-11-21", day},
        {"01:37:33.184022483", start},
        {"01:37:33.184 022 483", start},
        {"00:00", day},
        {"23:59:59", day + 86399 * S},
        {"01:37:33,184022483", start},
        {"1677-09-21T00:12:43.145224192Z", INT64_MIN},
        {"2262-04-11T23:47:16.854775807Z", INT64_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t t = parse(cases[i].text);
        if (t != cases[i].ns)
            fail_msg("%s: %lld, expected %lld", cases[i].text, (long long)t, (long long)cases[i].ns);
    }
}

static void what_is_refused(void **state)
{
    static const char *const cases[] = {
        "",
        " ",
        "x",
        "+",
        "+s",
        "+1",
        "+1.s",
        "+.s",
        "+1.5",
        "+1.5d",
        "+1e3s",
        "+-1s",
        "++1s",
        "-",
        "--1",
        "1.",
        "1.5s",
        "1.0000000001",
        "[1.5",
        "[1]",
        "[",
        "9223372036.9",
        "1 2",
        "0x10",
        "12s",
        "9223372036854775808",
        "-9223372036854775809",
        "99999999999999999999999999999999999999999999999999",
        "+9223372036854775807s",
        "+99999999999999999999999999999999999999999999999999h",
        "+300000h1",
        "1795225053184022483 ",
        "+1.0000000001s",
        "2026-13-01",
        "2026-00-01",
        "2026-02-29",
        "1900-02-29",
        "2026-11-31",
        "2026-11-00",
        "2026-11-21T",
        "2026-11-21T24:00",
        "2026-11-21T1:00",
        "2026-11-21T01:60",
        "2026-11-21T01:37:60",
        "2026-11-21T01:37:53.",
        "2026-11-21T01:37:53.1234567890",
        "2026-11-21T01:37:53.12 3",
        "2026-11-21T01:37:53X",
        "2026-11-21T01:37:53+",
        "2026-11-21T01:37:53+1",
        "2026-11-21T01:37:53+01:60",
        "2026-11-21T01:37:53+24",
        "2026-11-21T01:37:53ZZ",
        "26-11-21",
        "2026-11",
        "2026-11-2",
        "2026/11/21",
        "01:",
        "1:37",
        "01:3",
        "25:00",
        "01:37:",
        "01:37:5",
        "1677-09-21T00:12:43.145224191Z",
        "2262-04-11T23:47:16.854775808Z",
        "0000-01-01",
        "9999-12-31T23:59:59Z",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t t = 42;
        struct err e = {0};
        if (time_parse(cases[i], start, &t, &e) != ERR_ARG)
            fail_msg("\"%s\" was taken as %lld", cases[i], (long long)t);
        assert_int_equal(t, 42);
        assert_non_null(strstr(e.text, "time \""));
    }
    /* Sums beyond 64 bits from either end. */
    int64_t t;
    assert_int_equal(time_parse("+1ns", INT64_MAX, &t, NULL), ERR_ARG);
    assert_int_equal(time_parse("+0ns", INT64_MAX, &t, NULL), ERR_OK);
    assert_int_equal(time_parse("00:00", INT64_MIN, &t, NULL), ERR_ARG);
    assert_int_equal(time_parse("23:59", INT64_MAX, &t, NULL), ERR_ARG);
}

/* Compares every day from 1677 to 2262, and odd times in it. */
static void every_day_as_the_c_library(void **state)
{
    struct text t = {0};
    uint64_t x = test_seed(88172645463325252u);
    for (int64_t day = -106751; day <= 106750; day++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        int64_t second = day * 86400 + (int64_t)(x % 86400), frac = (int64_t)((x >> 20) % (uint64_t)S);
        time_t when = (time_t)second;
        struct tm tm;
        gmtime_r(&when, &tm);
        char expected[64], clock[32];
        size_t n = strftime(expected, sizeof expected, "%Y-%m-%dT%H:%M:%S", &tm);
        snprintf(expected + n, sizeof expected - n, ".%09lldZ", (long long)frac);
        int64_t ns = second * S + frac;
        assert_int_equal(parse(expected), ns);

        n = strftime(clock, sizeof clock, "%H:%M:%S", &tm);
        snprintf(clock + n, sizeof clock - n, ".%03lld %03lld %03lld", (long long)frac / 1000000,
            (long long)frac / 1000 % 1000, (long long)frac % 1000);
        t.n = 0;
        time_write_utc(&t, ns, false);
        assert_string_equal(text_cstr(&t), clock);
        t.n = 0;
        time_write_utc(&t, ns, true);
        assert_memory_equal(t.v, expected, 10);
        assert_int_equal(t.v[10], ' ');
        assert_string_equal(text_cstr(&t) + 11, clock);
        assert_int_equal(parse(t.v), ns);
    }
    t.n = 0;
    time_write_utc(&t, INT64_MIN, true);
    assert_string_equal(text_cstr(&t), "1677-09-21 00:12:43.145 224 192");
    t.n = 0;
    time_write_utc(&t, INT64_MAX, true);
    assert_string_equal(text_cstr(&t), "2262-04-11 23:47:16.854 775 807");
    text_fini(&t);
}

static void clocks_run(void **state)
{
    int64_t a = time_monotonic_ns(), b = time_monotonic_ns();
    assert_true(b >= a);
    int64_t real = time_now_ns();
    time_t seconds = time(NULL);
    assert_true(llabs(real / S - seconds) <= 2);
}

static void assert_seconds(int64_t ns, const char *expected)
{
    struct text t = {.fd = -1};
    time_write_seconds(&t, ns);
    assert_string_equal(text_cstr(&t), expected);
    text_fini(&t);
}

static void seconds_and_ends(void **state)
{
    assert_seconds(0, "0.000000000");
    assert_seconds(start, "1795225053.184022483");
    assert_seconds(-12000000034, "-12.000000034");
    assert_seconds(INT64_MIN, "-9223372036.854775808");
    assert_int_equal(time_after(-1), 0);
    assert_int_equal(time_after(INT64_MAX), INT64_MAX);
    assert_int_equal(time_between(-5, 7), 12);
    assert_int_equal(time_between(INT64_MIN, INT64_MIN + 1), 1);
    assert_int_equal(time_between(-1, INT64_MAX), INT64_MAX);
    assert_int_equal(time_between(INT64_MIN, INT64_MAX), INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_people_write),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(every_day_as_the_c_library),
        cmocka_unit_test(seconds_and_ends),
        cmocka_unit_test(clocks_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
