/* SPDX-License-Identifier: MIT */
/* Figures of latencies by name and histograms, of random ranges, against sums over the calls that this test made. */
#include <math.h>

#include "../base/test.h"
#include "world.h"

enum { CALLS = 20000, NAMES_USED = 2, QUERIES = 300, BUCKETS = 40 };

struct call {
    int64_t begin, duration;
    int name; /* 0: read, 1: openat */
};
static struct call calls[CALLS];
static size_t n_calls;

static void note(int64_t begin, int64_t end, int name)
{
    calls[n_calls++] = (struct call){begin, end - begin, name};
}

static int by_begin(const void *a, const void *b)
{
    const struct call *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Short calls on CPU 0; on CPU 1 some so long that thousands begin and end meanwhile. Durations have a long tail. */
static void make_calls(struct kernel_tracker *w)
{
    static const uint32_t names[NAMES_USED] = {NAME_READ, NAME_OPEN};
    int64_t ts = 1000, slow = 0;
    world_begin(w);
    world_switch(w, 0, 0, 0, 10, KERNEL_LEAVE_RUNNABLE);
    world_switch(w, 0, 1, 1, 11, KERNEL_LEAVE_RUNNABLE);
    while (n_calls < CALLS - 1) {
        if (!slow && !world_random(1500))
            world_call(w, slow = ts++, 1, NAME_READ);
        int name = world_random(5) < 2;
        int64_t begin = ts, lasts = 1 + (int64_t)world_random(100);
        while (!world_random(4))
            lasts *= 5;
        world_call(w, begin, 0, names[name]);
        world_return(w, ts += lasts, 0, names[name], 0);
        note(begin, ts, name);
        ts += 1 + (int64_t)world_random(50);
        if (slow && !world_random(3000)) {
            world_return(w, ts, 1, NAME_READ, 0);
            note(slow, ts++, 0);
            slow = 0;
        }
    }
    world_end(w);
    qsort(calls, n_calls, sizeof *calls, by_begin);
}

/* Four ranges for each doubling: their begins are 0, 1, 2, 3, and 4, 5, 6, 7 times each power of two. */
static void check_ratios(struct kernel_tracker *w, size_t first, size_t end)
{
    uint64_t counts[FIGURES_RATIO_RANGES] = {0}, expected[FIGURES_RATIO_RANGES] = {0};
    state_latency_histogram(
        w->store, STATE_LATENCY_SYSCALL, first, end, FIGURES_BY_RATIO, FIGURES_RATIO_RANGES, counts);
    for (size_t i = first; i < end; i++) {
        int64_t begin = 1;
        size_t k = 0;
        for (int64_t power = 1, of = 1; begin <= calls[i].duration; k++, begin = power * of)
            if (++of == 8) {
                of = 4;
                power *= 2;
            }
        expected[k]++;
    }
    assert_memory_equal(counts, expected, sizeof counts);
}

static void check_range(struct kernel_tracker *w, size_t first, size_t end)
{
    struct figures found[NAMES_USED];
    uint64_t counts[BUCKETS] = {0}, expected[BUCKETS] = {0};
    int64_t width = 1 + (int64_t)world_random(2000);
    state_latency_figures(w->store, STATE_LATENCY_SYSCALL, first, end, found);
    state_latency_histogram(w->store, STATE_LATENCY_SYSCALL, first, end, width, BUCKETS, counts);
    for (size_t i = first; i < end; i++)
        expected[calls[i].duration / width < BUCKETS ? calls[i].duration / width : BUCKETS - 1]++;
    assert_memory_equal(counts, expected, sizeof counts);
    check_ratios(w, first, end);
    for (size_t name = 0; name < NAMES_USED; name++) {
        int is = !strcmp(state_latency_name(w->store, STATE_LATENCY_SYSCALL, name), "openat");
        uint64_t n = 0;
        int64_t sum = 0, least = INT64_MAX, most = INT64_MIN;
        double spread = 0;
        bool least_there = false, most_there = false;
        for (size_t i = first; i < end; i++)
            if (calls[i].name == is) {
                n++;
                sum += calls[i].duration;
                least = calls[i].duration < least ? calls[i].duration : least;
                most = calls[i].duration > most ? calls[i].duration : most;
            }
        for (size_t i = first; i < end; i++)
            if (calls[i].name == is) {
                double from = (double)calls[i].duration - (double)sum / (double)n;
                spread += from * from;
                least_there |= calls[i].begin == found[name].least_begin && calls[i].duration == least;
                most_there |= calls[i].begin == found[name].most_begin && calls[i].duration == most;
            }
        assert_int_equal(found[name].n, n);
        if (!n)
            continue;
        assert_int_equal(found[name].sum, sum);
        assert_int_equal(found[name].least, least);
        assert_int_equal(found[name].most, most);
        assert_true(least_there && most_there);
        assert_true(fabs(found[name].spread - spread) <= 1e-9 * spread + 1e-3);
    }
}

static void against_sums(void **state)
{
    struct kernel_tracker w;
    make_calls(&w);
    assert_int_equal(state_latencies(w.store, STATE_LATENCY_SYSCALL), n_calls);
    assert_int_equal(state_latency_names(w.store, STATE_LATENCY_SYSCALL), NAMES_USED);
    check_range(&w, 0, n_calls);
    check_range(&w, 7, 7);
    for (size_t i = 1; i + 1 < n_calls;
         i++) /* ranges that begin, end and consist of one that stands beside the columns */
        if (calls[i].duration > 100000 && calls[i].begin + calls[i].duration > calls[i + 1].begin) {
            check_range(&w, i, i + 1);
            check_range(&w, i, n_calls);
            check_range(&w, 0, i);
            check_range(&w, i + 1, n_calls);
        }
    for (int q = 0; q < QUERIES; q++) {
        size_t length = world_random(n_calls) >> world_random(15), first = world_random(n_calls - length);
        if (!world_random(3)) /* whole tiles */
            first -= first % 512;
        check_range(&w, first, first + length);
    }
    world_close(&w);
}

static void none(void **state)
{
    struct kernel_tracker w;
    uint64_t counts[2] = {0};
    world_begin(&w);
    world_switch(&w, 0, 0, 0, 10, KERNEL_LEAVE_RUNNABLE);
    world_end(&w);
    assert_int_equal(state_latency_names(w.store, STATE_LATENCY_SYSCALL), 0);
    state_latency_figures(w.store, STATE_LATENCY_SYSCALL, 0, 0, NULL);
    state_latency_histogram(w.store, STATE_LATENCY_SYSCALL, 0, 0, 10, 2, counts);
    assert_int_equal(counts[0] + counts[1], 0);
    world_close(&w);
}

int main(void)
{
    world_seed = test_seed(world_seed);
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_sums), cmocka_unit_test(none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
