/* SPDX-License-Identifier: MIT */
/* Lock of a store directory: one writer at a time, also over a network file system. A writer is refused with the reason
 * if the lock cannot be checked. Files of a killed build are removed by the next one, and never while its process
 * lives. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/test.h"
#include "base/text.h"
#include "base/time.h"
#include "index/stores.h"

static int lock_error; /* error of flock; 0: it locks */
int __real_flock(int fd, int how);
int __wrap_flock(int fd, int how);
int __wrap_flock(int fd, int how)
{
    if (!lock_error)
        return __real_flock(fd, how);
    errno = lock_error;
    return -1;
}

static char dir[] = "/tmp/weft-lock-XXXXXX";
static const int64_t SHORT = NS_PER_S / 5;

static char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void make(const char *name)
{
    int fd = open(path_of(name), O_CREAT | O_WRONLY, 0644);
    assert_true(fd >= 0);
    close(fd);
}

static bool is_there(const char *name)
{
    return !access(path_of(name), F_OK);
}

static void leftovers_go(void **state)
{
    struct err e = {0};
    make("chunk.1.tmp.1234.0");
    make("chunk.2.tmp.99.7");
    make(".nfs000000000123");
    make("chunk.1");
    int fd = index_lock_dir(dir, SHORT, &e);
    assert_true(fd >= 0);
    assert_false(is_there("chunk.1.tmp.1234.0"));
    assert_false(is_there("chunk.2.tmp.99.7"));
    assert_true(is_there(".nfs000000000123")); /* a file that another machine has open; the server removes it */
    assert_true(is_there("chunk.1"));
    close(fd);
}

/* A process that holds the lock until it is killed; `busy`: and shows that it works. */
static pid_t hold(bool busy)
{
    int ready[2];
    char c;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (!child) {
        int fd = index_lock_dir(dir, SHORT, NULL);
        make("chunk.1.tmp.1.1");
        if (fd < 0 || write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;) {
            usleep(20000);
            if (busy)
                index_lock_alive(fd);
        }
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    return child;
}

static void end(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void one_that_does_nothing_is_named(void **state)
{
    struct err e = {0};
    char pid[32];
    pid_t child = hold(false);
    snprintf(pid, sizeof pid, "process %d on ", (int)child);
    int64_t begin = time_monotonic_ns();
    assert_true(index_lock_dir(dir, SHORT, &e) < 0);
    assert_true(time_monotonic_ns() - begin >= SHORT);
    assert_non_null(strstr(e.text, dir));
    assert_non_null(strstr(e.text, pid));
    assert_non_null(strstr(e.text, "--store"));
    assert_true(is_there("chunk.1.tmp.1.1")); /* file of a living process */
    end(child);
    int fd = index_lock_dir(dir, SHORT, &e);
    assert_true(fd >= 0);
    assert_false(is_there("chunk.1.tmp.1.1"));
    close(fd);
}

static void one_that_works_is_waited_for(void **state)
{
    struct err e = {0};
    pid_t child = hold(true);
    pid_t killer = fork();
    if (!killer) {
        usleep(900000);
        kill(child, SIGKILL);
        _exit(0);
    }
    int fd = index_lock_dir(dir, SHORT, &e);
    assert_true(fd >= 0);
    close(fd);
    waitpid(child, NULL, 0);
    waitpid(killer, NULL, 0);
}

static void no_locks_is_refused(void **state)
{
    static const struct {
        int error;
        const char *told;
    } cases[] = {{ENOLCK, "gives no locks"}, {ENOSYS, "gives no locks"}, {EOPNOTSUPP, "gives no locks"},
        {EIO, "Input/output error"}, {ESTALE, "Stale file handle"}};
    make("chunk.1.tmp.5.5");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = {0};
        lock_error = cases[i].error;
        assert_true(index_lock_dir(dir, SHORT, &e) < 0);
        assert_non_null(strstr(e.text, cases[i].told));
        assert_non_null(strstr(e.text, dir));
        assert_non_null(strstr(e.text, "--store"));
        assert_true(is_there("chunk.1.tmp.5.5")); /* owner unknown */
    }
    lock_error = 0;
}

/* Checks a directory that was removed and recreated during the wait: the lock of a removed file is void. */
static void a_lock_of_a_removed_file_is_none(void **state)
{
    struct err e = {0};
    int first = index_lock_dir(dir, SHORT, &e), again;
    assert_true(first >= 0);
    unlink(path_of("lock"));
    again = index_lock_dir(dir, SHORT, &e);
    assert_true(again >= 0);
    struct stat a, b;
    fstat(again, &a);
    assert_int_equal(stat(path_of("lock"), &b), 0);
    assert_true(a.st_ino == b.st_ino);
    close(first);
    close(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leftovers_go),
        cmocka_unit_test(one_that_does_nothing_is_named),
        cmocka_unit_test(one_that_works_is_waited_for),
        cmocka_unit_test(no_locks_is_refused),
        cmocka_unit_test(a_lock_of_a_removed_file_is_none),
    };
    if (!mkdtemp(dir))
        return 1;
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command) ? 1 : rc;
}
