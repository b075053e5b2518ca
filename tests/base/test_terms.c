/* SPDX-License-Identifier: MIT */
#include "base/terms.h"

#include "test.h"

static const char *const rows[][2] = {{"sched_switch", "prev_tid=204"}, {"sched_waking", "tid=20"}, {"a+b", ""}};

static void cell(void *arg, size_t row, size_t column, struct text *out)
{
    ++*(unsigned *)arg;
    text_puts(out, rows[row][column]);
}

/* Returns the rows that match, as bits. */
static unsigned fitting(struct terms *t)
{
    unsigned found = 0, asked = 0;
    for (size_t i = 0; i < 3; i++)
        found |= (unsigned)terms_fit(t, cell, &asked, i) << i;
    terms_fini(t);
    return found;
}

static void what_fits(void **state)
{
    struct terms none = {0}, plain = {0}, two = {0}, broken = {0}, impossible = {.impossible = true};
    assert_int_equal(fitting(&none), 0);
    terms_add(&plain, 0, "sched");
    assert_int_equal(fitting(&plain), 3);
    terms_add(&two, 0, "^sched_");
    terms_add(&two, 1, "tid=20$");
    assert_int_equal(fitting(&two), 2);
    terms_add(&broken, 0, "a+"); /* an expression: one a or more */
    assert_int_equal(fitting(&broken), 6);
    terms_add(&impossible, 0, "sched");
    assert_int_equal(fitting(&impossible), 0);
}

/* Checks that an invalid expression is searched literally. */
static void broken_patterns(void **state)
{
    struct terms t = {0};
    terms_add(&t, 1, "(");
    assert_true(term_fits(&t.v[0], "f(x") && !term_fits(&t.v[0], "f"));
    terms_fini(&t);
}

static void too_many(void **state)
{
    struct terms t = {0};
    for (int i = 0; i < TERMS_MOST + 5; i++)
        terms_add(&t, 0, "s.*");
    assert_int_equal(t.n, TERMS_MOST);
    terms_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits), cmocka_unit_test(broken_patterns), cmocka_unit_test(too_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
