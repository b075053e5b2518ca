/* SPDX-License-Identifier: MIT */
/* main.c with verbs that only report: usage is test_main PROGRAM. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

static const char *program;
static char said[16384];

/* Runs `PROGRAM arguments` in a shell and keeps the output; returns the exit code. */
static int run(const char *arguments)
{
    char command[4096];
    snprintf(command, sizeof command, "%s %s", program, arguments);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    said[fread(said, 1, sizeof said - 1, f)] = '\0';
    int status = pclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void hands_over(void **state)
{
    assert_int_equal(run("info a --b c"), 0);
    assert_string_equal(said, "[info][a][--b][c]\n");
    assert_int_equal(run("help sync"), 0);
    assert_string_equal(said, "[sync][--help]\n");
    assert_int_equal(run("--help critpath"), 0);
    assert_string_equal(said, "[critpath][--help]\n");
}

static void overview(void **state)
{
    static const char *const ways[] = {"--help", "-h", "help"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(run(ways[i]), 0);
        assert_memory_equal(said, "Usage: weft VERB [options] TRACE", 32);
        assert_non_null(strstr(said, "\n  info        reports its arguments\n"));
        assert_non_null(strstr(said, "\n  verify      reports its arguments\n"));
    }
    assert_int_equal(run("2>/dev/null"), 2);
    assert_string_equal(said, "");
    assert_int_equal(run("2>&1"), 2);
    assert_memory_equal(said, "Usage: weft VERB", 16);
}

static void version(void **state)
{
    static const char *const ways[] = {"--version", "-V"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(run(ways[i]), 0);
        assert_string_equal(said, "weft 1.2.3\n");
    }
}

static void unknown_verbs(void **state)
{
    assert_int_equal(run("evnets x 2>&1"), 2);
    assert_string_equal(said, "weft: no verb \"evnets\"; did you mean events?\n");
    assert_int_equal(run("help critpth 2>&1"), 2);
    assert_string_equal(said, "weft: no verb \"critpth\"; did you mean critpath?\n");
    assert_int_equal(run("plough 2>&1"), 2);
    assert_string_equal(said, "weft: no verb \"plough\"; weft --help lists them\n");
    assert_int_equal(run("'' 2>&1"), 2);
}

/* Checks the program's own exit code, printed on the shell's stderr, after a pipe whose reader has left. */
static void readers_that_leave(void **state)
{
    char command[4096];
    snprintf(command, sizeof command, "info 2>&1; { { %s events; echo code $? >&2; } | head -1; } 2>&1", program);
    assert_int_equal(run(command), 0);
    assert_non_null(strstr(said, "line 0\n"));
    assert_null(strstr(said, "line 1\n"));
    assert_non_null(strstr(said, "code 0\n"));
    assert_null(strstr(said, "weft:"));
}

static void outputs_that_fail(void **state)
{
    assert_int_equal(run("--help 2>&1 >/dev/full"), 1);
    assert_non_null(strstr(said, "No space left"));
    assert_int_equal(run("events 2>&1 >/dev/full"), 1);
    assert_int_equal(run("--version 2>&1 >&-"), 1);
}

/* Started without standard descriptors, no file takes their numbers. */
static void closed_descriptors(void **state)
{
    assert_true(run("index <&- >&- 2>&-") > 2);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 99;
    program = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hands_over),
        cmocka_unit_test(overview),
        cmocka_unit_test(version),
        cmocka_unit_test(unknown_verbs),
        cmocka_unit_test(readers_that_leave),
        cmocka_unit_test(outputs_that_fail),
        cmocka_unit_test(closed_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
