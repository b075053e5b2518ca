/* SPDX-License-Identifier: MIT */
/* Threads and the progress line they share. */
#include "base/pool.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/progress.h"

#include "test.h"

enum { JOBS = 10000 };
static atomic_int runs[JOBS];
static atomic_int inside, most;

static void count(void *arg, size_t i)
{
    assert_ptr_equal(arg, runs);
    atomic_fetch_add(&runs[i], 1);
}

static void every_job_once(void **state)
{
    static const struct {
        size_t n;
        unsigned threads;
    } cases[] = {{0, 4}, {1, 4}, {2, 1}, {JOBS, 0}, {JOBS, 1}, {JOBS, 4}, {3, 1000}, {JOBS, 100000}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        memset(runs, 0, sizeof runs);
        pool_run(cases[k].n, cases[k].threads, count, runs);
        for (size_t i = 0; i < JOBS; i++)
            assert_int_equal(runs[i], i < cases[k].n);
    }
    assert_true(pool_cpus() >= 1);
}

static void stay(void *arg, size_t i)
{
    int now = atomic_fetch_add(&inside, 1) + 1, seen = atomic_load(&most);
    while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now))
        ;
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    atomic_fetch_sub(&inside, 1);
}

static void no_more_than_asked_for(void **state)
{
    pool_run(60, 3, stay, NULL);
    assert_true(most >= 2 && most <= 3);
}

static void in_the_caller(void *arg, size_t i)
{
    assert_true(pthread_equal(*(pthread_t *)arg, pthread_self()));
    atomic_fetch_add(&runs[i], 1);
}

static void one_thread_is_the_caller(void **state)
{
    pthread_t self = pthread_self();
    memset(runs, 0, sizeof runs);
    pool_run(5, 1, in_the_caller, &self);
    pool_run(1, 8, in_the_caller, &self);
    assert_true(runs[0] == 2 && runs[1] == 1 && runs[4] == 1 && runs[5] == 0);
}

static void half_a_second(void *arg, size_t i)
{
    for (int k = 0; k < 26; k++) {
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        progress_add(arg, 1000000);
    }
}

/* stderr becomes a terminal: a line appears after a second and is gone in the end. */
static void progress_on_a_terminal(void **state)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) || unlockpt(master))
        skip_without("pseudo-terminals");
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY), saved = dup(STDERR_FILENO);
    assert_true(terminal >= 0);
    dup2(terminal, STDERR_FILENO);
    struct progress *p = progress_new("reading");
    progress_total(p, 104000000);
    pool_run(2, 2, half_a_second, p);
    progress_free(p);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(terminal);
    fcntl(master, F_SETFL, O_NONBLOCK);
    char seen[4096] = "";
    size_t n = 0;
    for (ssize_t more; n < sizeof seen - 1 && (more = read(master, seen + n, sizeof seen - 1 - n)) > 0;)
        n += (size_t)more;
    close(master);
    assert_true(n > 4);
    assert_non_null(strstr(seen, "reading"));
    assert_non_null(strstr(seen, " %"));
    assert_non_null(strstr(seen, "M/s"));
    assert_non_null(strstr(seen, "s left"));
    assert_string_equal(seen + n - 4, "\r\033[K");
}

static void progress_elsewhere_is_silent(void **state)
{
    int fds[2], saved = dup(STDERR_FILENO);
    assert_int_equal(pipe(fds), 0);
    dup2(fds[1], STDERR_FILENO);
    struct progress *p = progress_new("reading");
    nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 50000000}, NULL);
    progress_add(p, 1);
    progress_free(p);
    progress_total(NULL, 1);
    progress_add(NULL, 1);
    progress_free(NULL);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(fds[1]);
    char byte;
    assert_int_equal(read(fds[0], &byte, 1), 0);
    close(fds[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_job_once),
        cmocka_unit_test(no_more_than_asked_for),
        cmocka_unit_test(one_thread_is_the_caller),
        cmocka_unit_test(progress_on_a_terminal),
        cmocka_unit_test(progress_elsewhere_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
