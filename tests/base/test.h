/* SPDX-License-Identifier: MIT */
/* Helpers shared by the tests of base. */
#ifndef TESTS_BASE_TEST_H
#define TESTS_BASE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Exit status of a program all of whose tests were skipped, for meson. */
enum { TEST_SKIPPED = 77 };

/* Reports what is absent, and returns the program's exit status: TEST_SKIPPED, or 1 if WEFT_REQUIRE_DATA is set, as in
 * .ci/run: there, an absent file or program fails the test. */
__attribute__((format(printf, 1, 2))) static inline int test_absent(const char *format, ...)
{
    bool required = getenv("WEFT_REQUIRE_DATA") != NULL;
    va_list ap;
    va_start(ap, format);
    fputs(required ? "absent, and WEFT_REQUIRE_DATA is set: " : "skipped: ", stderr);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    return required ? 1 : TEST_SKIPPED;
}

/* Replacement of cmocka's skip() if a recording or a program is absent. */
#define skip_without(...) \
    do { \
        if (test_absent(__VA_ARGS__) == TEST_SKIPPED) \
            skip(); \
        fail(); \
    } while (0)

/* Returns whether the file is present, for an optional part of a test. Fails if WEFT_REQUIRE_DATA is set and it is
 * absent. */
static inline bool test_have(const char *path)
{
    if (!access(path, R_OK))
        return true;
    if (test_absent("%s", path) != TEST_SKIPPED)
        fail();
    return false;
}

/* Returns the seed of a random test: the usual one plus WEFT_SEED; never 0. Printed, so that a failure can be
 * repeated. */
static inline uint64_t test_seed(uint64_t usual)
{
    const char *moved = getenv("WEFT_SEED");
    uint64_t by = moved ? strtoull(moved, NULL, 0) : 0;
    print_message("random numbers: WEFT_SEED=%llu\n", (unsigned long long)by);
    return usual + by ? usual + by : 1;
}

/* Returns a number below n, and advances the state, which is not 0 (xorshift64, Marsaglia 2003). */
static inline uint32_t test_random(uint64_t *state, uint32_t n)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)((*state >> 11) % n);
}

/* Runs a test that is known to fail, in a process of its own; fails once it passes, so that the mark does not outlive
 * its reason. See EXPECTED_FAIL. */
static inline void test_expected_fail(const char *name, void (*test)(void **), void **state, const char *why)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct CMUnitTest tests[] = {{name, test, NULL, NULL, *state}};
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(1);
        _exit(_cmocka_run_group_tests(name, tests, 1, NULL, NULL) != 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        fail_msg("%s passes now: it is no EXPECTED_FAIL any more", name);
    print_message("EXPECTED FAIL: %s: %s\n", name, why);
}

/* EXPECTED_FAIL(f, "why"); makes test f_fails of test f, which expects the right result and does not get it today. */
#define EXPECTED_FAIL(test, why) \
    static void test##_fails(void **state) \
    { \
        test_expected_fail(#test, test, state, why); \
    } \
    struct test_semicolon

/* Makes a fresh directory. test_directory_remove removes it with its contents (one level). */
char *test_directory_make(void);
void test_directory_remove(char *directory);
/* Returns the number of files in a directory. */
size_t test_directory_files(const char *directory);
void test_write_file(const char *path, const void *data, size_t n);

#endif
