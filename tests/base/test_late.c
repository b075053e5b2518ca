/* SPDX-License-Identifier: MIT */
/* Libraries that are loaded when they are first called: by whatever function, in any thread, or not at all. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/late.h"
#include "late_library.h"
#include "test.h"

static double expected_sum(void)
{
    double sum = 0;
    for (int i = 1; i <= 17; i++)
        sum += (i <= 8 ? i : i + 0.5) * i;
    return sum;
}

static double expected_any(void)
{
    double sum = 0;
    for (int i = 1; i <= 10; i++)
        sum += (i + 0.5) * i;
    return sum;
}

static int right_sum(void)
{
    return call_sum() == expected_sum() && call_sum() == expected_sum();
}

static int right_any(void)
{
    return call_any() == expected_any() && call_any() == expected_any();
}

static int right_nine(void)
{
    for (int turn = 0; turn < 2; turn++) {
        struct late_large l = call_nine(7);
        for (int i = 0; i < 9; i++)
            if (l.v[i] != 7 * (i + 1))
                return 0;
    }
    return 1;
}

/* In a process of its own, so that it is the first call there is. */
static int status_of(int (*right)(void))
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid)
        _exit(right() ? 0 : 9);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void any_function_may_be_the_first(void **state)
{
    assert_int_equal(status_of(right_sum), 0);
    assert_int_equal(status_of(right_any), 0);
    assert_int_equal(status_of(right_nine), 0);
}

static void *call_all(void *arg)
{
    return right_sum() && right_any() && right_nine() ? arg : NULL;
}

static void by_many_threads_at_once(void **state)
{
    enum { N = 16 };
    pthread_t threads[N];
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_all, threads), 0);
    for (int i = 0; i < N; i++) {
        void *good;
        pthread_join(threads[i], &good);
        assert_ptr_equal(good, threads);
    }
}

static const char *const functions[] = {"late_sum", "late_of_a_newer_one"};
static const void *slots[2];

static struct late_library library(const char *file)
{
    return (struct late_library){file, functions, slots, 2, PTHREAD_MUTEX_INITIALIZER, false};
}

static void who_asks_is_told(void **state)
{
    struct late_library l = library("libweft_is_not_there.so.7");
    struct err e;
    assert_int_equal(late_load(&l, &e), ERR_NOTFOUND);
    assert_non_null(strstr(e.text, "libweft_is_not_there.so.7"));
    l = library("libtest_late_library.so");
    assert_int_equal(late_load(&l, &e), ERR_NOTFOUND);
    assert_non_null(strstr(e.text, "not the library that weft was built for"));
    assert_non_null(strstr(e.text, "late_of_a_newer_one"));
}

static int cannot(void)
{
    struct late_library l = library("libweft_is_not_there.so.7");
    late_must(&l);
    return 1;
}

static void who_cannot_be_told_ends(void **state)
{
    int status = status_of(cannot);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_function_may_be_the_first),
        cmocka_unit_test(by_many_threads_at_once),
        cmocka_unit_test(who_asks_is_told),
        cmocka_unit_test(who_cannot_be_told_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
