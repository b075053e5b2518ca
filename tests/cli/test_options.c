/* SPDX-License-Identifier: MIT */
#include "base/near.h"
#include "cli/cli.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/settings.h"

static int no_run(int argc, char **argv)
{
    return 0;
}
static const struct cli_verb verb = {
    "events", "TRACE…", "merged events in time order", "weft events --cpu 2 traces/three-tier", no_run};

static struct {
    bool all, loud;
    const char *begin, *where;
    struct cli_list names;
    int64_t limit, count;
    double ratio;
} got;
static const struct cli_option options[] = {
    {"begin", 'b', CLI_STRING, "TIME", "events from here on (ns, +1.5s, ISO 8601)", &got.begin},
    {"names", 0, CLI_LIST, "NAME", "events of this name; may be given several times", &got.names},
    {"limit", 'n', CLI_INT, "N", "at most N events", &got.limit, .least = -10, .most = 1000},
    {"count", 0, CLI_INT, "N", "how many", &got.count},
    {"ratio", 'r', CLI_FLOAT, "X", "a number", &got.ratio},
    {"all", 'a', CLI_FLAG, NULL, "everything", &got.all},
    {"loud", 'q', CLI_FLAG, NULL, "takes the letter of --quiet", &got.loud},
    {0},
};

static char stderr_text[4096], stdout_text[8192];
static int positional;
static char *arguments[32];

/* Runs `call` with what it writes to fd kept in `text`. */
static int captured(int fd, char *text, size_t room, int (*call)(void))
{
    int fds[2], saved = dup(fd);
    assert_int_equal(pipe(fds), 0);
    dup2(fds[1], fd);
    int code = call();
    fflush(NULL);
    dup2(saved, fd);
    close(saved);
    close(fds[1]);
    ssize_t n = 0, more;
    while ((more = read(fds[0], text + n, room - 1 - (size_t)n)) > 0)
        n += more;
    text[n] = '\0';
    close(fds[0]);
    return code;
}

static int n_arguments;
static int parse_now(void)
{
    return cli_parse(&verb, options, n_arguments, arguments, &positional);
}
static int parse_and_keep_stdout(void)
{
    return captured(STDOUT_FILENO, stdout_text, sizeof stdout_text, parse_now);
}

/* Arguments separated by '|'. */
static int parse(const char *line)
{
    static char copy[1024];
    snprintf(copy, sizeof copy, "events|%s", line);
    n_arguments = 0;
    for (char *s = strtok(copy, "|"); s; s = strtok(NULL, "|"))
        arguments[n_arguments++] = s;
    arguments[n_arguments] = NULL;
    free(got.names.v);
    memset(&got, 0, sizeof got);
    cli_settings = (struct cli_settings){0};
    return captured(STDERR_FILENO, stderr_text, sizeof stderr_text, parse_and_keep_stdout);
}

static void values_in_every_form(void **state)
{
    assert_int_equal(parse("a|--begin|+1s|b|-n|-5|--ratio=2.5e3|-a|c|--names|x|--names=y"), -1);
    assert_int_equal(positional, 3);
    assert_string_equal(arguments[1], "a");
    assert_string_equal(arguments[2], "b");
    assert_string_equal(arguments[3], "c");
    assert_null(arguments[4]);
    assert_string_equal(got.begin, "+1s");
    assert_int_equal(got.limit, -5);
    assert_true(got.ratio == 2500);
    assert_true(got.all);
    assert_int_equal(got.names.n, 2);
    assert_string_equal(got.names.v[0], "x");
    assert_string_equal(got.names.v[1], "y");

    assert_int_equal(parse("-aqn7|-b+2s"), -1);
    assert_true(got.all && got.loud && !cli_settings.quiet);
    assert_int_equal(got.limit, 7);
    assert_string_equal(got.begin, "+2s");
    assert_int_equal(parse("--quiet|--no-color|--begin=|--count|0x10|--limit=017"), -1);
    assert_int_equal(got.count, 16);
    assert_true(cli_settings.quiet && cli_settings.no_color);
    assert_string_equal(got.begin, "");
    assert_int_equal(got.limit, 17);
    assert_int_equal(parse("-|--|--all|-x"), -1);
    assert_int_equal(positional, 3);
    assert_false(got.all);
    assert_string_equal(arguments[1], "-");
    assert_string_equal(arguments[2], "--all");
    assert_string_equal(arguments[3], "-x");
    assert_string_equal(stderr_text, "");
}

static void wrong_use(void **state)
{
    static const struct {
        const char *line, *text;
    } cases[] = {
        {"--begn|1", "no option --begn; did you mean --begin?"},
        {"--xyzzy", "no option --xyzzy; try: weft events --help"},
        {"-x", "no option -x"},
        {"--begin", "--begin needs a value: --begin TIME"},
        {"-b", "--begin needs a value"},
        {"--all=1", "--all takes no value"},
        {"--limit|12a", "--limit \"12a\": a whole number from -10 to 1000 is expected"},
        {"--limit=", "a whole number"},
        {"--limit| 1", "a whole number"},
        {"--limit|--1", "a whole number"},
        {"--limit|0x", "a whole number"},
        {"--limit|99999999999999999999", "a whole number"},
        {"--limit|-11", "from -10 to 1000"},
        {"--limit|1001", "from -10 to 1000"},
        {"--count|-1", "--count \"-1\": a whole number, 0 or more is expected"},
        {"--count|9223372036854775808", "a whole number, 0 or more is expected"},
        {"--ratio|x", "a number is expected"},
        {"--ratio|nan", "a number is expected"},
        {"---", "no option --"},
        {"--=", "no option --"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse(cases[i].line), CLI_USAGE);
        assert_memory_equal(stderr_text, "weft: events: ", 14);
        if (!strstr(stderr_text, cases[i].text))
            fail_msg("%s: %s", cases[i].line, stderr_text);
        assert_ptr_equal(strchr(stderr_text, '\n'), stderr_text + strlen(stderr_text) - 1); /* single line */
    }
}

static void help_is_aligned_and_narrow(void **state)
{
    assert_int_equal(parse("a|--help|b"), CLI_OK);
    assert_memory_equal(
        stdout_text, "Usage: weft events [options] TRACE…\n", strlen("Usage: weft events [options] TRACE…\n"));
    assert_non_null(strstr(stdout_text, "\n  -b, --begin TIME  events from here on"));
    assert_non_null(strstr(stdout_text, "\n      --names NAME  events of this name"));
    assert_non_null(strstr(stdout_text, "\n  -a, --all         everything\n"));
    assert_non_null(strstr(stdout_text, "\n  -h, --help        show this text\n"));
    assert_non_null(strstr(stdout_text, "\nExample:\n  weft events --cpu 2 traces/three-tier\n"));
    struct text t = {0};
    cli_help(&verb, options, 50, &t);
    const char *line = text_cstr(&t);
    bool wrapped = false;
    for (const char *end; (end = strchr(line, '\n')); line = end + 1) {
        assert_true(text_cells(line, (size_t)(end - line)) <= 50);
        wrapped |= !strncmp(line, "                    several", 27) || !strncmp(line, "                    1.5s", 20);
    }
    assert_true(wrapped);
    text_fini(&t);
}

static void nearest_names(void **state)
{
    const char *const verbs[] = {"info", "events", "index", "threads", "sync", "critpath", "verify", NULL};
    static const struct {
        const char *typed, *near;
    } cases[] = {
        {"event", "events"},
        {"evnets", "events"},
        {"critpaht", "critpath"},
        {"crit", "critpath"},
        {"thread", "threads"},
        {"snyc", "sync"},
        {"idnex", "index"},
        {"inf", "info"},
        {"", NULL},
        {"x", NULL},
        {"plough", NULL},
        {"a-very-long-word-that-is-longer-than-any-verb", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *near = near_name(cases[i].typed, verbs);
        if (!cases[i].near)
            assert_null(near);
        else
            assert_string_equal(near, cases[i].near);
    }
}

static struct err failure;
static int fail_now(void)
{
    return cli_fail(&failure);
}
static int note_now(void)
{
    cli_note("%d traces\tand\nmore", 3);
    return 0;
}

static void errors_and_notes(void **state)
{
    static const struct {
        int code, exit;
    } cases[] = {{ERR_ARG, 2}, {ERR_AMBIGUOUS, 2}, {ERR_IO, 1}, {ERR_FORMAT, 1}, {ERR_NOTFOUND, 1}, {ERR_LIMIT, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        err_set(&failure, cases[i].code, "a\033[31mb\nc é");
        assert_int_equal(captured(STDERR_FILENO, stderr_text, sizeof stderr_text, fail_now), cases[i].exit);
        assert_string_equal(stderr_text, "weft: a?[31mb?c é\n");
    }
    cli_settings.quiet = false;
    captured(STDERR_FILENO, stderr_text, sizeof stderr_text, note_now);
    assert_string_equal(stderr_text, "weft: note: 3 traces?and?more\n");
    cli_settings.quiet = true;
    captured(STDERR_FILENO, stderr_text, sizeof stderr_text, note_now);
    assert_string_equal(stderr_text, "");
}

static int finish_into_full(void)
{
    struct text t = TEXT_TO(open("/dev/full", O_WRONLY));
    int fd = t.fd;
    text_puts(&t, "lost");
    int code = cli_finish(&t, CLI_OK);
    close(fd);
    return code;
}

static void the_end_of_the_output(void **state)
{
    assert_int_equal(captured(STDERR_FILENO, stderr_text, sizeof stderr_text, finish_into_full), CLI_FAILED);
    assert_non_null(strstr(stderr_text, "No space left"));

    signal(SIGPIPE, SIG_IGN);
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    close(fds[0]);
    struct text t = TEXT_TO(fds[1]);
    text_puts(&t, "nobody reads this");
    assert_int_equal(cli_finish(&t, CLI_OK), CLI_OK);
    t = TEXT_TO(fds[1]);
    assert_int_equal(cli_finish(&t, CLI_FAILED), CLI_FAILED);
    close(fds[1]);
}

/* A pseudo-terminal with a width, instead of stdout. */
static void colours_and_width(void **state)
{
    unsetenv("NO_COLOR");
    unsetenv("COLUMNS");
    unsetenv("COLORTERM");
    setenv("TERM", "xterm", 1);
    cli_settings = (struct cli_settings){0};
    int fds[2], saved = dup(STDOUT_FILENO);
    assert_int_equal(pipe(fds), 0);
    fflush(stdout);
    dup2(fds[1], STDOUT_FILENO);
    bool in_pipe = cli_color();
    int width_in_pipe = cli_width();
    setenv("COLUMNS", "57", 1);
    int width_told = cli_width();
    setenv("COLUMNS", "nonsense", 1);
    int width_nonsense = cli_width();
    unsetenv("COLUMNS");
    int master = posix_openpt(O_RDWR | O_NOCTTY), terminal = -1;
    if (master >= 0 && !grantpt(master) && !unlockpt(master))
        terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    bool on_terminal = true, refused = false, dumb = false;
    struct text t = {0};
    if (terminal >= 0) {
        dup2(terminal, STDOUT_FILENO);
        on_terminal = cli_color();
        cli_bold(&t);
        cli_plain(&t);
        setenv("NO_COLOR", "1", 1);
        refused = cli_color();
        unsetenv("NO_COLOR");
        setenv("TERM", "dumb", 1);
        dumb = cli_color();
        close(terminal);
    }
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(fds[0]);
    close(fds[1]);
    assert_false(in_pipe);
    assert_int_equal(width_in_pipe, 100);
    assert_int_equal(width_told, 57);
    assert_int_equal(width_nonsense, 100);
    if (terminal >= 0) {
        close(master);
        assert_true(on_terminal && !refused && !dumb);
        assert_string_equal(text_cstr(&t), "\033[1m\033[0m");
    }
    text_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_in_every_form),
        cmocka_unit_test(wrong_use),
        cmocka_unit_test(help_is_aligned_and_narrow),
        cmocka_unit_test(nearest_names),
        cmocka_unit_test(errors_and_notes),
        cmocka_unit_test(the_end_of_the_output),
        cmocka_unit_test(colours_and_width),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(got.names.v);
    return failed;
}
