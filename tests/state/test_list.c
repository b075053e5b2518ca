/* SPDX-License-Identifier: MIT */
/* Lists of chunks equal the store of one pass, wherever the cuts are. */
#include "../base/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/order.h"
#include "cuttings.h"
#include "read_all.h"
#include "runs.h"
#include "same.h"
#include "story.h"

static uint64_t random_seed;

/* ---- recordings and made traces ---- */

static void recorded_traces(void **state)
{
    struct cuttings c = {same_rows_all, random_seed, cuttings_rounds(2)};
    cuts_each(cuttings_compare, &c);
}

static void made_at_random(void **state)
{
    struct cuttings c = {same_rows_all, random_seed, 3 * cuttings_rounds(2)};
    for (uint64_t i = 0; i < 12; i++)
        cuttings_compare_made(&c, "made", i, story_random(random_seed + i, 100 + 150 * i));
}

static void files_used_again(void **state)
{
    struct cuttings c = {same_rows_all, random_seed, 3 * cuttings_rounds(2)};
    for (uint64_t i = 0; i < 20; i++)
        cuttings_compare_made(&c, "files", i, story_files(random_seed + i, 100 + 40 * i));
}

/* ---- missing and damaged chunks ---- */

/* Checks a list without chunk `missing`, which ends at `to`: states decided before its begin and after its end are the
 * same, and those between are unknown. */
static void compare_around_gap(const struct pair *p, int64_t from, int64_t to)
{
    struct state_interval x, y;
    size_t unknown = 0;
    for (size_t row = 0; row < state_rows(p->b, STATE_THREAD); row++) {
        for (int64_t t = p->begin; t < p->end && state_at(p->b, STATE_THREAD, row, t, &y); t = y.end) {
            assert_true(y.begin <= t && t < y.end);
            state_at(p->a, STATE_THREAD, row, t, &x);
            unknown += y.value == STATE_UNKNOWN && y.begin < to && y.end > from && x.value != STATE_UNKNOWN;
            bool same = x.value == y.value && same_name(x.name, y.name);
            if (!same && y.value != STATE_UNKNOWN && (y.end <= from || y.begin >= to))
                fail_msg("%s row %zu: %d at %lld, not %d; from %lld to %lld nothing is known", p->where, row, x.value,
                    (long long)t, y.value, (long long)from, (long long)to);
        }
    }
    assert_int_not_equal(unknown, 0);
}

/* Counters are cumulative whatever is missing. */
static void same_counters_behind(const struct pair *p, int64_t t)
{
    for (size_t i = 0; i < state_counters(p->b, STATE_CPU_TIME); i++) {
        struct state_counter c;
        int64_t times[2] = {t, p->end}, x[2], y[2];
        state_counter(p->b, STATE_CPU_TIME, i, &c);
        int64_t k = state_find_counter(p->a, STATE_CPU_TIME, c.number);
        assert_true(k >= 0);
        state_counter_values(p->a, STATE_CPU_TIME, (size_t)k, times, 2, x);
        state_counter_values(p->b, STATE_CPU_TIME, i, times, 2, y);
        struct state_row r;
        if (c.number >= 0)
            state_row(p->b, STATE_THREAD, (size_t)i, &r);
        if (c.number < 0 || r.end > t)
            assert_true(x[0] == y[0] && x[1] == y[1]);
    }
}

static void leave_out(const struct cuts_trace *t, const char *name, void *arg)
{
    struct run one, many;
    int64_t at[2], begin, end, n = (int64_t)t->times.n;
    if (n < 100 || (!strstr(name, "three-tier/db") && !strstr(name, "lost-events")))
        return;
    at[0] = t->times.v[n / 3];
    at[1] = t->times.v[n / 2];
    run_build(&one, t, NULL, 0);
    run_build(&many, t, at, 2);
    struct state_store *a = run_open(&one, SIZE_MAX), *b = run_open(&many, 1);
    uint64_t d = random_seed;
    struct pair p = {.a = a, .b = b, .where = name, .dice = &d};
    state_span(a, &p.begin, &p.end);
    state_span(b, &begin, &end);
    assert_true(begin == p.begin && end == p.end);
    compare_around_gap(&p, at[0], at[1]);
    same_counters_behind(&p, at[1]);
    read_all_states(b);
    state_close(a);
    state_close(b);
    run_free(&one);
    run_free(&many);
}

static void a_missing_chunk_is_unknown(void **state)
{
    cuts_each(leave_out, NULL);
}

static void damage_file(const char *path, size_t from, uint8_t with)
{
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    fseek(f, (long)from, SEEK_SET);
    fputc(with, f);
    fclose(f);
}

/* Refused, with the name of the file, or read without harm. */
static void damaged_files_do_no_harm(void **state)
{
    struct maker *m = story_random(random_seed, 900);
    struct cuts_trace t;
    struct run r;
    int64_t at[3];
    uint64_t d = random_seed;
    size_t refused = 0, rounds = (size_t)cuttings_rounds(2) * 100;
    cuts_open_made(&t, m);
    maker_free(m);
    cuts_random(&t, d, 3, at);
    run_build(&r, &t, at, 3);
    for (size_t i = 0; i < rounds; i++) {
        struct chunk v[4];
        struct err e = {0};
        struct state_store *s;
        char path[64], copy[128];
        size_t bad = runs_dice(&d, 4);
        for (size_t k = 0; k < 4; k++)
            v[k] = r.cuts.chunks[k].chunk;
        snprintf(path, sizeof path, "%s-bad", v[bad].path);
        snprintf(copy, sizeof copy, "cp %s %s", v[bad].path, path);
        assert_int_equal(system(copy), 0);
        for (int k = 0; k < 3; k++)
            damage_file(path, runs_dice(&d, 16384), (uint8_t)runs_dice(&d, 256));
        v[bad].path = path;
        if (state_open_list(v, 4, &s, &e)) {
            refused++;
            assert_true(e.code == ERR_FORMAT || e.code == ERR_STALE);
            bool named = false; /* two files that contradict each other: either may be named */
            for (size_t k = 0; k < 4; k++)
                named |= strstr(e.text, v[k].path) != NULL;
            assert_true(named);
        } else {
            read_all_states(s);
            state_close(s);
        }
        unlink(path);
    }
    assert_in_range(refused, 1, rounds);
    run_free(&r);
    cuts_close(&t);
}

int main(void)
{
    random_seed = test_seed(21);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_traces),
        cmocka_unit_test(made_at_random),
        cmocka_unit_test(files_used_again),
        cmocka_unit_test(a_missing_chunk_is_unknown),
        cmocka_unit_test(damaged_files_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
