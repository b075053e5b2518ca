/* SPDX-License-Identifier: MIT */
#include "base/expr.h"

#include <math.h>

#include "test.h"

/* The names that the tests know. */
static const struct {
    const char *name;
    struct expr_value value;
} known[] = {
    {"tid", {.type = EXPR_INT, .i = 204}},
    {"prio", {.type = EXPR_INT, .i = -20}},
    {"zero", {.type = EXPR_INT, .i = 0}},
    {"big", {.type = EXPR_INT, .i = -1, .is_unsigned = true}}, /* 2^64 - 1 */
    {"small", {.type = EXPR_INT, .i = INT64_MIN}},
    {"flags", {.type = EXPR_INT, .i = 6}},
    {"load", {.type = EXPR_FLOAT, .f = 1.5}},
    {"nan", {.type = EXPR_FLOAT, .f = NAN}},
    {"comm", {.type = EXPR_STRING, .s = "kworker/0:2XXX", .n = 11}}, /* unterminated at its end */
    {"empty", {.type = EXPR_STRING, .s = "", .n = 0}},
    {"nothing", {.type = EXPR_STRING, .s = NULL, .n = 0}},
    {"a.b:c$d[12].e", {.type = EXPR_INT, .i = 1}},
    {"$ctx.procname", {.type = EXPR_STRING, .s = "tier", .n = 4}},
};

static unsigned asked; /* number of look-ups of a name */

static void get(void *arg, size_t slot, struct expr_value *out)
{
    const char *const *names;
    assert_true(slot < expr_names(arg, &names));
    asked++;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, names[slot]) == 0)
            *out = known[i].value;
}

static bool holds(const char *source)
{
    struct expr *x;
    struct err e = {0};
    if (expr_compile(source, &x, &e) != ERR_OK)
        fail_msg("%s", e.text);
    asked = 0;
    bool r = expr_eval(x, get, x);
    expr_free(x);
    return r;
}

static void what_holds(void **state)
{
    static const char *const yes[] = {
        "tid",
        "comm",
        "load",
        "1",
        "\"x\"",
        "tid == 204",
        "tid==204",
        "tid != 205",
        "204 == tid",
        "tid < 205",
        "tid <= 204",
        "tid > 203",
        "tid >= 204",
        "prio == -20",
        "prio < 0",
        "prio < big",
        "small < prio",
        "big == 18446744073709551615",
        "big == 0xFFFFFFFFFFFFFFFF",
        "big > 9223372036854775807",
        "big + 1 > big",
        "small - 1 < small",
        "big * big > big",
        "tid == 204.0",
        "load == 1.5",
        "load < 2",
        "2 > load",
        "big < 18446744073709551616.0",
        "small == -9223372036854775808.0",
        "tid < 204.5",
        "204.5 > tid",
        "tid > 203.5",
        "prio > -20.5",
        "prio < -19.5",
        "-20.5 < prio",
        "big * big * big > big * big",
        "big < 1e300",
        "small > -1e300",
        "1e300 > big",
        "load * 2 == 3",
        "7 / 2 == 3",
        "-7 / 2 == -3",
        "-7 % 3 == -1",
        "7.0 / 2 == 3.5",
        "2 + 3 * 4 == 14",
        "(2 + 3) * 4 == 20",
        "10 - 3 - 2 == 5",
        "100 / 10 / 5 == 2",
        "flags & 4 == 4",
        "flags & 2 && flags & 4",
        "flags | 1 == 7",
        "1 | 2 & 2 == 3",
        "0x1f == 31",
        "0X1F == 31",
        "1e3 == 1000",
        "1.5e-1 == 0.15",
        "1. == 1",
        "007 == 7",
        "comm == \"kworker/0:2\"",
        "comm != 'kworker'",
        "comm > 'kworker'",
        "comm < 'l'",
        "'' < 'a'",
        "'a' < 'aa'",
        "\"it's\" == 'it\\'s'",
        "'\\\\' == \"\\\\\"",
        "'a\\tb' =~ '^a\tb$'",
        "comm =~ '^kworker/[0-9]+:'",
        "comm !~ 'X'",
        "comm =~ ':2$'",
        "'a.so' =~ \"\\.so$\"",
        "'axso' !~ \"\\.so$\"",
        "tid =~ '^20.$'",
        "prio =~ '^-20$'",
        "big =~ '^18446744073709551615$'",
        "load =~ '1[.]5'",
        "empty =~ '^$'",
        "nothing == ''",
        "'x' =~ '(a|x){1,3}'",
        "'aaa' =~ '^((((((((((((a+)+)+)+)+)+)+)+)+)+)+)+)$'",
        "'abab' =~ '^(ab)\\1$'",
        "'eth0: 17 ms' =~ '\\d+\\sms$'",
        "'Tier' =~ '(?i)tier'",
        "'é' =~ '^.$'",
        "'\xff!' =~ '!$'",
        "'' =~ '(^$)*'",
        "!absent",
        "!zero",
        "!empty",
        "!(tid == 1)",
        "!!tid",
        "!absent == 1",
        "- -5 == 5",
        "-(tid) == -204",
        "!(absent == 1)",
        "!(absent != 1)",
        "absent || tid",
        "tid && comm",
        "0 || 0 || 1",
        "1 && 1 || 0 && 0",
        "0 && 0 || 1",
        "(1 || 0) == 1",
        "(5 && 7) == 1",
        "tid != '204'",
        "comm != 5",
        "a.b:c$d[12].e",
        "$ctx.procname == 'tier'",
        " \t tid \n == 204 ",
        "tid == 204 && (comm =~ 'kw' || absent)",
        "nan != nan",
        "nan != 1",
        "1 / 2 == 0",
        "!(1 / 0)",
        "!(1 % 0)",
        "!(1.0 / 0)",
        "!(absent + 1)",
        "!(comm + 1)",
        "!(load & 1)",
        "0 == -0.0",
        "(tid == 204) + (prio == -20) == 2",
    };
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (!holds(yes[i]))
            fail_msg("does not hold: %s", yes[i]);
}

static void what_does_not(void **state)
{
    static const char *const no[] = {
        "absent",
        "zero",
        "empty",
        "nothing",
        "0",
        "''",
        "0.0",
        "absent == 0",
        "absent != 0",
        "absent < 1",
        "absent >= 0",
        "absent == absent",
        "absent =~ '.*'",
        "absent !~ 'x'",
        "tid == '204'",
        "tid < 'a'",
        "comm >= 1",
        "nan == nan",
        "nan < 1",
        "nan >= 1",
        "1 / zero == 1",
        "1 / zero != 1",
        "tid && absent",
        "absent && tid",
        "absent || zero",
        "!tid",
        "comm == 'kworker/0:2XXX'",
        "comm =~ 'X'",
        "comm == 'kworker/0:'",
        "big < 0",
        "big == -1",
        "small == 0x8000000000000000",
        "flags & 1",
        "'a' + 'b'",
        "-comm",
        "-absent",
        "tid - 204",
        "9007199254740993 == 9007199254740992.0",
    };
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (holds(no[i]))
            fail_msg("holds: %s", no[i]);
}

static void the_second_side_only_when_needed(void **state)
{
    holds("tid || comm || load");
    assert_int_equal(asked, 1);
    holds("zero && comm && load");
    assert_int_equal(asked, 1);
    holds("zero || comm");
    assert_int_equal(asked, 2);
    holds("(zero && comm) || tid");
    assert_int_equal(asked, 2);
}

static void names_in_order(void **state)
{
    struct expr *x;
    assert_int_equal(expr_compile("b == 1 && (a || b) && c.d[1] =~ 'x' || a", &x, NULL), ERR_OK);
    const char *const *names;
    assert_int_equal(expr_names(x, &names), 3);
    assert_string_equal(names[0], "b");
    assert_string_equal(names[1], "a");
    assert_string_equal(names[2], "c.d[1]");
    expr_free(x);
    expr_free(NULL);
}

static void what_is_refused(void **state)
{
    static const struct {
        const char *source;
        int code;
        const char *where;
    } cases[] = {
        {"", ERR_ARG, "column 1:"},
        {"  ", ERR_ARG, "column 3:"},
        {"tid ==", ERR_ARG, "column 7:"},
        {"tid = 204", ERR_ARG, "column 5:"},
        {"== 1", ERR_ARG, "column 1:"},
        {"(tid", ERR_ARG, "column 5:"},
        {"tid)", ERR_ARG, "column 4:"},
        {"()", ERR_ARG, "column 2:"},
        {"tid tid", ERR_ARG, "column 5:"},
        {"1 2", ERR_ARG, "column 3:"},
        {"\"open", ERR_ARG, "column 1:"},
        {"'open\"", ERR_ARG, "column 1:"},
        {"'x\\'", ERR_ARG, "column 1:"},
        {"tid =~ 5", ERR_ARG, "column 8:"},
        {"tid =~ comm", ERR_ARG, "column 8:"},
        {"comm =~ '('", ERR_ARG, "column 9:"},
        {"comm =~ '[a'", ERR_ARG, "column 9:"},
        {"18446744073709551616", ERR_ARG, "column 1:"},
        {"0x10000000000000000", ERR_ARG, "column 1:"},
        {"0x", ERR_ARG, "column 3:"},
        {"12ab", ERR_ARG, "column 3:"},
        {"0b1", ERR_ARG, "column 2:"},
        {"1 < 2 < 3", ERR_ARG, "column 7:"},
        {"a == b == c", ERR_ARG, "column 8:"},
        {"a[", ERR_ARG, "column 2:"},
        {"a[1", ERR_ARG, "column 4:"},
        {"a[x]", ERR_ARG, "column 2:"},
        {"a @ b", ERR_ARG, "column 3:"},
        {"a << 1", ERR_ARG, "column 4:"},
        {"a &&& b", ERR_ARG, "column 5:"},
        {"'é' x", ERR_ARG, "column 5:"},
        {"~a", ERR_ARG, "column 1:"},
        {"comm =~ '(((a{99}){99}){99})'", ERR_LIMIT, "column 9:"},
        {"comm =~ 'a{1,99999999999999999999}'", ERR_LIMIT, "column 9:"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct expr *x = (void *)1;
        struct err e = {0};
        int code = expr_compile(cases[i].source, &x, &e);
        if (code != cases[i].code || !strstr(e.text, cases[i].where))
            fail_msg("%s: code %d, %s", cases[i].source, code, e.text);
        assert_null(x);
        assert_int_equal(e.code, code);
    }
}

static char *repeated(const char *unit, size_t times, const char *end)
{
    char *s = calloc(1, strlen(unit) * times + strlen(end) + 1);
    for (size_t i = 0; i < times; i++)
        strcat(s, unit);
    return strcat(s, end);
}

static int compiles(char *source)
{
    struct expr *x;
    int code = expr_compile(source, &x, NULL);
    if (code == ERR_OK)
        expr_eval(x, get, x);
    expr_free(x);
    free(source);
    return code;
}

static void limits(void **state)
{
    assert_int_equal(compiles(repeated("!", 64, "a")), ERR_OK);
    assert_int_equal(compiles(repeated("!", 65, "a")), ERR_LIMIT);
    assert_int_equal(compiles(repeated("-", 4000, "a")), ERR_LIMIT);
    assert_int_equal(compiles(repeated("(", 4000, "")), ERR_LIMIT);
    assert_int_equal(compiles(repeated("a+(", 60, "a")), ERR_ARG); /* deep, but only not closed */
    assert_int_equal(compiles(repeated("a||b&&c==d|e&f+g*(", 20, "a")), ERR_LIMIT);
    assert_int_equal(compiles(repeated("a||", 1300, "a")), ERR_OK);
    assert_int_equal(compiles(repeated("a+", 2000, "a")), ERR_OK);
    assert_int_equal(compiles(repeated(" ", 4095, "a")), ERR_OK);
    assert_int_equal(compiles(repeated(" ", 4096, "a")), ERR_LIMIT);
    assert_int_equal(compiles(repeated("''+", 1300, "a")), ERR_OK);
}

/* Patterns whose time or memory would grow beyond bounds with the text or the nesting. */
static void patterns_are_bounded(void **state)
{
    struct expr *x;
    char *text = repeated("a", 3000, "!'"), source[4096];
    const char *const explode[] = {"^(a+)+$", "^(a|a|b)*$", "^(.*)*(.*)*[xy]", "^(a?){60}(.*a){9}$"};
    for (size_t i = 0; i < sizeof explode / sizeof *explode; i++)
        for (int negated = 0; negated < 2; negated++) {
            snprintf(source, sizeof source, "'%s %s '%s'", text, negated ? "!~" : "=~", explode[i]);
            assert_int_equal(expr_compile(source, &x, NULL), ERR_OK);
            if (expr_eval(x, get, x))
                fail_msg("holds: %s %s", negated ? "!~" : "=~", explode[i]);
            expr_free(x);
        }
    free(text);
    char *deep = repeated("(", 65, "a");
    char *whole = repeated(")", 65, "'");
    snprintf(source, sizeof source, "'a' =~ '%s%s", deep, whole);
    free(deep);
    free(whole);
    assert_int_equal(compiles(strdup(source)), ERR_LIMIT);
    assert_int_equal(compiles(strdup("'a' =~ '(?>(?:a*?){0,9}b)+?(?R)?'")), ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_holds),
        cmocka_unit_test(what_does_not),
        cmocka_unit_test(the_second_side_only_when_needed),
        cmocka_unit_test(names_in_order),
        cmocka_unit_test(patterns_are_bounded),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
