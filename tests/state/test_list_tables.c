/* SPDX-License-Identifier: MIT */
/* Latencies, events and losses of a list of chunks are those of the store of one pass, wherever the cuts are. */
#include "../base/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/order.h"
#include "cuttings.h"
#include "read_all.h"
#include "runs.h"
#include "same.h"
#include "story.h"

enum { TIMES = 64, QUERIES = 12, BUCKETS = 16 };

static uint64_t random_seed;

/* ---- traces ---- */

static void recorded_traces(void **state)
{
    struct cuttings c = {same_tables, random_seed, cuttings_rounds(2)};
    cuts_each(cuttings_compare, &c);
}

static void made_at_random(void **state)
{
    struct cuttings c = {same_tables, random_seed, cuttings_rounds(8)};
    for (uint64_t i = 0; i < 12; i++)
        cuttings_compare_made(&c, "made", i, story_random(random_seed + i, i % 4 ? 300 + 100 * i : 12000));
}

/* Makes events whose thread on CPU 2 is revealed only now and then: its calls begin before those of others meanwhile,
 * often in the same ns. Others wait in a call for long. */
static struct maker *make_late(uint64_t seed, size_t n)
{
    struct maker *m = maker_new(3, 0);
    int64_t ts = 1000;
    uint64_t d = seed;
    int on[3] = {0};
    maker_switch(m, 0, ts, 0, 0, on[0] = 10);
    maker_switch(m, 1, ts, 0, 0, on[1] = 20);
    for (size_t i = 0; i < n; i++) {
        uint32_t cpu = (uint32_t)runs_dice(&d, 3);
        ts += runs_dice(&d, 3) ? 0 : 1 + (int64_t)runs_dice(&d, 9);
        if (!runs_dice(&d, cpu == 2 ? 80 : 200)) {
            int next = 10 * ((int)cpu + 1) + (int)runs_dice(&d, 6);
            maker_switch(m, cpu, ts, on[cpu] ? on[cpu] : 30, 1, next);
            on[cpu] = next;
        } else if (cpu == 2 && !runs_dice(&d, 100)) {
            maker_lose(m, cpu, ts++);
        } else if (runs_dice(&d, 2)) {
            maker_number(m, cpu, ts, M_FUTEX_ENTRY, 4096 + (int64_t)runs_dice(&d, 3));
        } else {
            maker_number(m, cpu, ts, M_FUTEX_EXIT, 0);
        }
    }
    return m;
}

static void made_known_late(void **state)
{
    struct cuttings c = {same_tables, random_seed, cuttings_rounds(8)};
    for (uint64_t i = 0; i < 16; i++)
        cuttings_compare_made(&c, "late", i, make_late(random_seed + i, 200 + 200 * i));
}

/* ---- missing and damaged chunks ---- */

static void cut_made(struct run *r, uint64_t seed, size_t n_cuts)
{
    struct cuts_trace t;
    int64_t at[CUTTINGS_MOST_CUTS];
    struct maker *m = story_random(seed, 3000);
    cuts_open_made(&t, m);
    maker_free(m);
    for (size_t i = 0; i < n_cuts; i++)
        at[i] = t.times.v[(i + 1) * t.times.n / (n_cuts + 1)];
    run_build(r, &t, at, n_cuts);
    cuts_close(&t);
}

static size_t latencies_of_chunks(const struct run *r, int kind, size_t without)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        struct err e = {0};
        struct state_store *s;
        assert_int_equal(state_open(r->paths[i], &s, &e), 0);
        n += i == without ? 0 : state_latencies(s, kind);
        state_close(s);
    }
    return n;
}

/* Checks that all latencies of the other chunks are present, in order of begin. */
static void latencies_beside_a_gap(const struct run *r, const struct state_store *s, int kind, size_t without)
{
    size_t n = state_latencies(s, kind), names = state_latency_names(s, kind);
    struct figures *f = mem_zalloc((names + 1) * sizeof *f);
    int64_t before = INT64_MIN, sum = 0;
    assert_int_equal(n, latencies_of_chunks(r, kind, without));
    for (size_t i = 0; i < n; i++) {
        struct state_latency l;
        state_latency(s, kind, i, &l);
        assert_true(l.begin >= before);
        if (l.begin > before)
            assert_int_equal(state_latency_find(s, kind, l.begin), i);
        before = l.begin;
        sum += l.end - l.begin;
    }
    state_latency_figures(s, kind, 0, n, f);
    for (size_t i = 0; i < names; i++) {
        sum -= f[i].sum;
        n -= f[i].n;
    }
    assert_true(!sum && !n);
    free(f);
}

static void a_missing_chunk_is_a_loss(void **state)
{
    enum { CUTS = 5 };
    struct run r;
    cut_made(&r, random_seed, CUTS);
    for (size_t without = 0; without <= CUTS; without++) {
        struct state_store *all = run_open(&r, SIZE_MAX), *s = run_open(&r, without);
        const struct chunk *gone = &r.cuts.chunks[without].chunk;
        size_t gaps = 0;
        for (int kind = 0; kind < STATE_LATENCY_KINDS; kind++)
            latencies_beside_a_gap(&r, s, kind, without);
        for (size_t i = 0; i < state_losses(s); i++) {
            struct state_loss l;
            state_loss(s, i, &l);
            gaps += l.begin == gone->begin && l.end == gone->end && l.cpu == -1 && !l.count;
        }
        assert_int_equal(gaps, without > 0 && without < CUTS);
        assert_true(state_events(s) < state_events(all));
        state_close(s);
        state_close(all);
    }
    run_free(&r);
}

static void flip(const char *path, size_t at, char bits)
{
    FILE *f = fopen(path, "r+");
    char c;
    assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
    assert_int_equal(fread(&c, 1, 1, f), 1);
    c ^= bits;
    assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
    assert_int_equal(fwrite(&c, 1, 1, f), 1);
    assert_int_equal(fclose(f), 0);
}

static size_t size_of(const char *path)
{
    struct stat s;
    assert_int_equal(stat(path, &s), 0);
    return (size_t)s.st_size;
}

/* Checks that no contents of a file do harm. Checksums are not compared on opening. */
static void damage_leads_nowhere(void **state)
{
    enum { CUTS = 4, FLIPS = 400 };
    struct run r;
    struct chunk v[CUTS + 1];
    uint64_t d = random_seed;
    size_t opened = 0;
    cut_made(&r, random_seed, CUTS);
    for (size_t i = 0; i <= CUTS; i++)
        v[i] = r.cuts.chunks[i].chunk;
    for (int i = 0; i < FLIPS; i++) {
        const char *path = r.paths[runs_dice(&d, CUTS + 1)];
        size_t at = runs_dice(&d, size_of(path));
        char bits = (char)(1 << runs_dice(&d, 8));
        struct state_store *s;
        struct err e = {0};
        flip(path, at, bits);
        if (!state_open_list(v, CUTS + 1, &s, &e)) {
            read_all_states(s);
            state_close(s);
            opened++;
        }
        flip(path, at, bits);
    }
    assert_in_range(opened, FLIPS / 10, FLIPS - 1);
    run_free(&r);
}

int main(void)
{
    random_seed = test_seed(22);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_traces),
        cmocka_unit_test(made_at_random),
        cmocka_unit_test(made_known_late),
        cmocka_unit_test(a_missing_chunk_is_a_loss),
        cmocka_unit_test(damage_leads_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
