/* SPDX-License-Identifier: MIT */
/* Regular expressions: captures, whole texts, bounds. Expected values are Perl's. */
#include "base/regex.h"

#include "test.h"

static struct regex *compiled(const char *pattern)
{
    struct regex *r;
    struct err e = {0};
    assert_int_equal(regex_compile(pattern, &r, &e), ERR_OK);
    return r;
}

static void captures(void **state)
{
    static const struct {
        const char *pattern, *text, *part; /* part NULL: nothing */
    } cases[] = {{"(\\S*)_entry", "syscall_entry_read", "syscall"}, {"tid=\\d+", "prev_tid=20, next_tid=31", "tid=20"},
        {"next_tid=(\\d+)", "prev_tid=20, next_tid=31", "31"}, {"(a)|(b)", "b", NULL}, {"(a)|b", "b", NULL},
        {"((a)(b))(c)?", "xab", "ab"}, {"()", "x", ""}, {"x(?=y)", "xy", "x"}, {"nothing", "x", NULL},
        {"(?<=x)\\K(y)", "xy", "y"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct regex_part part = {77, 77};
        struct regex *r = compiled(cases[i].pattern);
        int found = regex_captures(r, cases[i].text, strlen(cases[i].text), &part);
        assert_int_equal(found, cases[i].part != NULL);
        if (cases[i].part) {
            assert_int_equal(part.end - part.begin, strlen(cases[i].part));
            assert_memory_equal(cases[i].text + part.begin, cases[i].part, strlen(cases[i].part));
        }
        regex_free(r);
    }
}

static void whole_texts(void **state)
{
    static const struct {
        const char *pattern, *text;
        int fits;
    } cases[] = {{"sched_switch", "sched_switch", 1}, {"sched", "sched_switch", 0}, {"switch", "sched_switch", 0},
        {"a|ab", "ab", 1}, {"b|a", "ab", 0}, {"a*?", "aaa", 1}, {".*", "", 1}, {"", "x", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct regex *r = compiled(cases[i].pattern);
        assert_int_equal(regex_fits(r, cases[i].text, strlen(cases[i].text)), cases[i].fits);
        regex_free(r);
    }
}

static void costly_ones_are_given_up(void **state)
{
    static const char text[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab";
    struct regex_part part;
    struct regex *r = compiled("(a+)+c?$");
    assert_int_equal(regex_captures(r, text, sizeof text - 1, &part), -1);
    assert_int_equal(regex_fits(r, text, sizeof text - 1), -1);
    assert_int_equal(regex_finds(r, text, sizeof text - 1), -1);
    regex_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(captures), cmocka_unit_test(whole_texts), cmocka_unit_test(costly_ones_are_given_up)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
