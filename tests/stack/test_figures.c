/* SPDX-License-Identifier: MIT */
/* Calls of a random trace: figures of functions, numbers by duration and places among WHOLE calls, of random ranges,
 * against looking at every call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/test.h"
#include "base/mem.h"
#include "fixture.h"
#include "ust_world.h"

enum { EVENTS = 700000, BUCKETS = 9 };

static struct world {
    char dir[200], store[240];
    struct stack_store *s;
    size_t longest; /* calls of the longest row */
} world;

static int make_world(void **state)
{
    const char *tmp = getenv("TMPDIR");
    struct err e = {0};
    snprintf(world.dir, sizeof world.dir, "%s/weft-stacks-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(world.dir))
        return -1;
    snprintf(world.store, sizeof world.store, "%s.store", world.dir);
    ust_write_random(world.dir, (uint32_t)test_seed(4711), EVENTS, true);
    if (stack_fixture(world.dir, world.store, &world.s, &e))
        return -1;
    for (size_t row = 0; row < stack_rows(world.s); row++)
        world.longest = stack_calls(world.s, row) > world.longest ? stack_calls(world.s, row) : world.longest;
    return 0;
}

static int remove_world(void **state)
{
    char command[512];
    stack_close(world.s);
    snprintf(command, sizeof command, "rm -rf '%s' '%s'", world.dir, world.store);
    return system(command);
}

static uint64_t draw(void)
{
    static uint64_t random = 88172645463325252;
    random ^= random << 13;
    random ^= random >> 7;
    return random ^= random << 17;
}

/* A range of the row: all of it, a few calls, or any. */
static void draw_range(size_t row, int turn, size_t *first, size_t *end)
{
    size_t n = stack_calls(world.s, row);
    *first = turn ? draw() % (n + 1) : 0;
    *end = turn ? *first + draw() % (turn % 2 ? n - *first + 1 : 40) : n;
    *end = *end < n ? *end : n;
}

/* The row of the same thread one level deeper, or -1. */
static int64_t row_below(size_t row)
{
    for (size_t i = 0; i < stack_threads(world.s); i++) {
        struct stack_thread t;
        stack_thread(world.s, i, &t);
        if (row >= t.first_row && row + 1 < (size_t)t.first_row + t.rows)
            return (int64_t)row + 1;
    }
    return -1;
}

static int64_t self_time(int64_t below, const struct stack_call *c)
{
    int64_t self = c->end - c->begin;
    struct stack_call inner;
    for (size_t i = below < 0 ? 0 : stack_find(world.s, (size_t)below, c->begin);
         below >= 0 && i < stack_calls(world.s, (size_t)below); i++) {
        stack_call(world.s, (size_t)below, i, &inner);
        if (inner.begin >= c->end)
            break;
        if (inner.begin >= c->begin && inner.how != STACK_UNKNOWN)
            self -= inner.end - inner.begin;
    }
    return self;
}

struct sums {
    uint64_t n;
    int64_t sum, self, least, most;
    long double squares;
};

static void check_figures(size_t row, size_t first, size_t end)
{
    size_t functions = stack_functions(world.s);
    struct stack_figures *got = mem_zalloc(sizeof *got * functions);
    struct sums *sums = mem_zalloc(sizeof *sums * functions);
    int64_t below = row_below(row);
    struct stack_call c;
    struct stack_extremes *extremes = mem_zalloc(sizeof *extremes * functions);
    uint32_t *reached = mem_alloc(sizeof *reached * functions);
    stack_figures(world.s, row, first, end, got);
    stack_figures_spread(got, functions);
    size_t n_reached = stack_extremes(world.s, row, first, end, extremes, reached, 0), n_any = 0;
    for (size_t i = first; i < end; i++) {
        stack_call(world.s, row, i, &c);
        if (c.how != STACK_WHOLE)
            continue;
        struct sums *f = &sums[c.function];
        int64_t d = c.end - c.begin;
        f->least = f->n && f->least < d ? f->least : d;
        f->most = f->n && f->most > d ? f->most : d;
        f->n++;
        f->sum += d;
        f->self += self_time(below, &c);
        f->squares += (long double)d * (long double)d;
    }
    for (size_t k = 0; k < functions; k++) {
        const struct figures *f = &got[k].calls;
        assert_int_equal(f->n, sums[k].n);
        assert_int_equal(f->sum, sums[k].sum);
        assert_int_equal(got[k].self, sums[k].self);
        assert_int_equal(extremes[k].any, f->n > 0);
        n_any += f->n > 0;
        assert_int_equal(extremes[k].least, f->least);
        assert_int_equal(extremes[k].most, f->most);
        assert_int_equal(extremes[k].least_begin, f->least_begin);
        assert_int_equal(extremes[k].most_begin, f->most_begin);
        if (!f->n)
            continue;
        assert_int_equal(f->least, sums[k].least);
        assert_int_equal(f->most, sums[k].most);
        long double mean = (long double)sums[k].sum / (long double)f->n,
                    spread = sums[k].squares - mean * (long double)sums[k].sum;
        assert_true(fabsl((long double)f->spread - spread) <= 1 + 1e-9L * sums[k].squares);
        for (int longest = 0; longest < 2; longest++) { /* a call of that function begins there, and is that long */
            int64_t at = longest ? f->most_begin : f->least_begin, wanted = longest ? f->most : f->least;
            bool found = false;
            for (size_t i = stack_begun(world.s, row, 0, at); i < end && !found; i++) {
                stack_call(world.s, row, i, &c);
                assert_true(c.begin == at);
                found = c.function == k && c.how == STACK_WHOLE && c.end - c.begin == wanted;
            }
            assert_true(found);
        }
    }
    assert_int_equal(n_reached, n_any);
    for (size_t i = 0; i < n_reached; i++) { /* nodes that have any, each once */
        assert_true(reached[i] < functions && extremes[reached[i]].any);
        extremes[reached[i]].any = false;
    }
    free(got);
    free(sums);
    free(extremes);
    free(reached);
}

static void figures(void **state)
{
    assert_true(world.longest > 256 * 16); /* tiles of three levels */
    for (size_t row = 0; row < stack_rows(world.s); row++)
        for (int turn = 0; turn < 12; turn++) {
            size_t first, end;
            draw_range(row, turn, &first, &end);
            check_figures(row, first, end);
        }
}

static void by_duration(void **state)
{
    static const int64_t widths[] = {1, 500, 20000, 1000000, INT64_MAX};
    for (size_t row = 0; row < stack_rows(world.s); row++)
        for (int turn = 0; turn < 10; turn++) {
            uint64_t got[BUCKETS] = {0}, counts[BUCKETS] = {0};
            size_t first, end;
            draw_range(row, turn, &first, &end);
            int64_t width = widths[turn % 5];
            stack_histogram(world.s, row, first, end, width, BUCKETS, got);
            for (size_t i = first; i < end; i++) {
                struct stack_call c;
                stack_call(world.s, row, i, &c);
                int64_t bucket = (c.end - c.begin) / width;
                if (c.how == STACK_WHOLE)
                    counts[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
            }
            assert_memory_equal(got, counts, sizeof counts);
        }
}

static void places(void **state)
{
    for (size_t row = 0; row < stack_rows(world.s); row++) {
        size_t whole = 0, n = stack_calls(world.s, row), begun = 0;
        int64_t last = INT64_MIN;
        for (size_t i = 0; i <= n; i++) {
            struct stack_call c;
            assert_int_equal(stack_whole_before(world.s, row, i), whole);
            if (i == n)
                break;
            stack_call(world.s, row, i, &c);
            begun = c.begin > last ? i : begun;
            last = c.begin;
            assert_int_equal(stack_begun(world.s, row, 0, c.begin), begun);
            assert_int_equal(stack_begun(world.s, row, begun, c.begin), begun);
            assert_int_equal(stack_begun(world.s, row, begun / 2, c.begin), begun);
            if (c.how == STACK_WHOLE)
                assert_int_equal(stack_whole_at(world.s, row, whole++), i);
        }
        assert_int_equal(stack_begun(world.s, row, 0, INT64_MIN), 0);
        assert_int_equal(stack_begun(world.s, row, 0, INT64_MAX), n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures), cmocka_unit_test(by_duration), cmocka_unit_test(places)};
    return cmocka_run_group_tests(tests, make_world, remove_world);
}
