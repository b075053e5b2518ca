/* SPDX-License-Identifier: MIT */
/* A process with a reserve in want of memory: arrays go on growing until it looks, and nothing ends it. */
#include "base/mem.h"

#include <sys/resource.h>

#include "base/err.h"

#include "test.h"

enum { LIMIT_MB = 300, RESERVE_MB = 64, AFTER = 500000 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool limited = false; /* sanitizers' shadow memory needs the address space */
#else
static const bool limited = true;
#endif

struct numbers {
    size_t *v, n, cap;
};

static void push(struct numbers *v)
{
    vec_reserve(v, 1);
    v->v[v->n] = v->n;
    v->n++;
}

static int in_want(void)
{
    struct rlimit limit = {(rlim_t)LIMIT_MB << 20, (rlim_t)LIMIT_MB << 20};
    struct err e = {0};
    struct numbers v = {0};
    if (setrlimit(RLIMIT_AS, &limit))
        return 2;
    mem_reserve((size_t)RESERVE_MB << 20);
    while (!mem_short())
        push(&v);
    size_t n = v.n;
    for (size_t i = 0; i < AFTER; i++) /* pushes before the next check */
        push(&v);
    for (size_t i = 0; i < v.n; i++)
        if (v.v[i] != i)
            return 3;
    /* Doubling ends at half of the limit; an array grows beyond, since the reserve holds what is added. */
    if (n * sizeof *v.v < (size_t)(LIMIT_MB - RESERVE_MB) / 2 << 20 || !mem_short())
        return 4;
    if (mem_room((size_t)LIMIT_MB << 20, "this", &e) != ERR_NOMEM || mem_room(1 << 20, "that", &e))
        return 5;
    vec_free(&v);
    mem_begin();
    return mem_recover() && !mem_short() && !mem_room((size_t)RESERVE_MB << 20, "this", &e) ? 0 : 6;
}

static void grows_in_want(void **state)
{
    if (!limited) {
        print_message("left out: a sanitizer needs the address space\n");
        return;
    }
    pid_t child = fork();
    if (!child)
        _exit(in_want());
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(grows_in_want)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
