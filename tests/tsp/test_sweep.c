/* SPDX-License-Identifier: MIT */
/* Trees of files that are removed in the background: their names are free at once, however deep or odd they are. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tsp/sweep.h"

enum { DEPTH = 2100 /* depth above the maximum of a path */ };

static char dir[] = "/tmp/weft-sweep-XXXXXX", outside[64];

static int set_up(void **state)
{
    snprintf(outside, sizeof outside, "/tmp/weft-sweep-outside-%d", (int)getpid());
    return !mkdtemp(dir) || close(open(outside, O_WRONLY | O_CREAT, 0600));
}

static int tear_down(void **state)
{
    return unlink(outside) || rmdir(dir);
}

static const char *below(char path[64], const char *name)
{
    snprintf(path, 64, "%s/%s", dir, name);
    return path;
}

/* A directory in a directory in …, each with a file and a link out of it. */
static void make_deep(const char *path)
{
    assert_int_equal(mkdir(path, 0700), 0);
    int at = open(path, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < DEPTH; i++) {
        assert_int_equal(mkdirat(at, "d", 0700), 0);
        assert_int_equal(symlinkat(outside, at, "l"), 0);
        assert_int_equal(close(openat(at, "f", O_WRONLY | O_CREAT, 0600)), 0);
        int down = openat(at, "d", O_RDONLY | O_DIRECTORY);
        close(at);
        at = down;
    }
    close(at);
}

static bool has_names(void)
{
    DIR *d = opendir(dir);
    bool any = false;
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        any |= strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(d);
    return any;
}

static void await_empty(void)
{
    for (int i = 0; i < 12000 && has_names(); i++)
        usleep(10000);
    assert_false(has_names());
}

static void test_trees(void **state)
{
    struct sweeper *s;
    struct err e = {0};
    char path[64];
    assert_int_equal(tsp_sweep_start(dir, &s, &e), 0);
    make_deep(below(path, "tree"));
    tsp_sweep_away(s, path);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(close(open(below(path, "file"), O_WRONLY | O_CREAT, 0600)), 0);
    tsp_sweep_away(s, path);
    assert_int_equal(access(path, F_OK), -1);
    tsp_sweep_away(s, below(path, "absent"));
    await_empty();
    assert_int_equal(access(outside, F_OK), 0);
    tsp_sweep_stop(s);
    tsp_sweep_stop(NULL);
}

/* Checks that files left by one process are removed by the next; other names are untouched. */
static void test_left_over(void **state)
{
    struct sweeper *s;
    struct err e = {0};
    char path[64], own[64];
    make_deep(below(path, ".removed-0123456789abcdef"));
    assert_int_equal(close(open(below(own, "stays"), O_WRONLY | O_CREAT, 0600)), 0);
    assert_int_equal(tsp_sweep_start(dir, &s, &e), 0);
    for (int i = 0; i < 12000 && !access(path, F_OK); i++)
        usleep(10000);
    assert_int_equal(access(own, F_OK), 0);
    unlink(own);
    await_empty();
    tsp_sweep_stop(s);
}

static void test_no_directory(void **state)
{
    struct sweeper *s;
    struct err e = {0};
    assert_int_equal(tsp_sweep_start("/nowhere/at/all", &s, &e), ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trees), cmocka_unit_test(test_left_over), cmocka_unit_test(test_no_directory)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
