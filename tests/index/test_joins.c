/* SPDX-License-Identifier: MIT */
/* Archives come one by one, and small chunks are joined: how many chunks there are, and how often an event is read
 * again. */
#include "../base/test.h"
#include "../kernel/maker.h"
#include "index/stores.h"

enum { ARCHIVES = 10080 };

static void add(struct index_history *h, uint64_t events)
{
    vec_push(&h->chunks, ((struct index_chunk){.totals = {.events = events}}));
}

static uint64_t events_at(const struct index_history *h, size_t i)
{
    return h->chunks.v[i].totals.events;
}

/* Makes all joins, as index does. The events that are read again. */
static uint64_t join_all(struct index_history *h, size_t most_events)
{
    uint64_t read = 0;
    for (size_t n, first; (n = index_joins_next(h, most_events, &first)) > 0;) {
        uint64_t sum = 0;
        assert_in_range(n, 2, h->chunks.n - 1); /* excludes the last */
        assert_true(first + n < h->chunks.n);
        for (size_t i = first; i < first + n; i++)
            sum += events_at(h, i);
        assert_in_range(sum, 0, most_events);
        h->chunks.v[first].totals.events = sum;
        h->chunks.n -= n - 1;
        for (size_t i = first + 1; i < h->chunks.n; i++)
            h->chunks.v[i] = h->chunks.v[i + n - 1];
        read += sum;
    }
    return read;
}

struct grown {
    size_t most_chunks;
    double read; /* times that each event is, on average */
};

/* events: of the next archive. The chunk behind the last cut has none. */
static struct grown grow(uint64_t (*events)(uint64_t *dice, size_t i), size_t most_events)
{
    struct index_history h = {0};
    struct grown g = {0};
    uint64_t dice = test_seed(41), all = 0, read = 0, sum = 0;
    add(&h, 0);
    for (size_t i = 0; i < ARCHIVES; i++) {
        uint64_t n = events(&dice, i);
        h.chunks.v[h.chunks.n - 1].totals.events = n;
        add(&h, 0);
        all += n;
        read += join_all(&h, most_events);
        g.most_chunks = h.chunks.n > g.most_chunks ? h.chunks.n : g.most_chunks;
    }
    for (size_t i = 0; i < h.chunks.n; i++)
        sum += events_at(&h, i);
    assert_int_equal(sum, all);
    g.read = (double)read / (double)all;
    index_history_free(&h);
    return g;
}

static uint64_t alike(uint64_t *dice, size_t i)
{
    (void)dice;
    (void)i;
    return 60000;
}

static uint64_t days_and_nights(uint64_t *dice, size_t i)
{
    (void)dice;
    return i / 720 % 2 ? 200000 : 5000;
}

static uint64_t any(uint64_t *dice, size_t i)
{
    (void)i;
    return 1000 + test_random(dice, 999) * (uint64_t)(1 + test_random(dice, 1000));
}

static uint64_t few(uint64_t *dice, size_t i)
{
    (void)i;
    return test_random(dice, 100);
}

/* A week of an archive a minute. Reading an event once for each power of 2 of the archives that lie before it would be
 * 13 times. */
static void few_chunks(void **state)
{
    (void)state;
    static uint64_t (*const kinds[])(uint64_t *, size_t) = {alike, days_and_nights, any};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct grown g = grow(kinds[i], SIZE_MAX);
        assert_in_range(g.most_chunks, 2, 16);
        assert_true(g.read < 9);
    }
    assert_in_range(grow(few, SIZE_MAX).most_chunks, 2, 16);
}

/* Checks that only chunks too large for memory are not joined. */
static void bounded(void **state)
{
    (void)state;
    enum { MOST = 1 << 20 };
    struct grown g = grow(alike, MOST);
    assert_in_range(g.most_chunks, 60000 * (uint64_t)ARCHIVES / MOST, 2 * 60000 * (uint64_t)ARCHIVES / MOST + 16);
}

/* Checks that there is at most one chunk of each power of 2, larger ones first; without new ones there is nothing to
 * do. */
static void falling(void **state)
{
    (void)state;
    uint64_t dice = test_seed(42);
    for (int world = 0; world < 300; world++) {
        struct index_history h = {0};
        size_t n = 1 + test_random(&dice, 60), first;
        for (size_t i = 0; i < n; i++)
            add(&h, UINT64_C(1) << test_random(&dice, 40) | test_random(&dice, 5000));
        join_all(&h, SIZE_MAX);
        for (size_t i = 1; i + 1 < h.chunks.n; i++) {
            uint64_t before = events_at(&h, i - 1), here = events_at(&h, i);
            assert_true(before > 4095 && here >> (63 - __builtin_clzll(before)) == 0);
        }
        assert_int_equal(index_joins_next(&h, SIZE_MAX, &first), 0);
        index_history_free(&h);
    }
}

/* Chunks of a trace with call stacks have half the events in the same memory. */
static void stacks(void **state)
{
    const struct index_options o = {.memory = 96 << 20, .threads = 1};
    static const uint64_t frames[] = {0x4000};
    for (int with = 0; with < 2; with++) {
        struct maker *m = maker_new(1, with ? M_STACKS : 0);
        struct maker_trace t;
        if (with)
            maker_stacks(m, frames, 1, NULL, 0);
        maker_switch(m, 0, 100, 0, 0, 1);
        maker_open(m, SIZE_MAX, false, &t);
        struct index_files files = {.trace = t.trace, .is_kernel = true, .from = INT64_MIN, .until = INT64_MAX};
        assert_int_equal(index_most_events(&files, &o), (96 << 20) / (with ? 96 : 48));
        maker_close(&t);
        maker_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_chunks), cmocka_unit_test(bounded), cmocka_unit_test(falling), cmocka_unit_test(stacks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
