/* SPDX-License-Identifier: MIT */
/* Ranges of time of one trace in many archives: their fingerprints change with what is read of them and with nothing
 * else; and what is known of their order. */
#include "archives.h"

enum { ARCHIVES = 6, RANGES = 24, STEPS = 60 };

struct world {
    struct archive archives[ARCHIVES];
    bool loses, moved; /* moved: its directories have other names */
};

static void write_world(const struct world *w)
{
    char dir[100];
    clear_world();
    for (size_t i = 0; i < ARCHIVES; i++) {
        snprintf(dir, sizeof dir, "world/%s%zu", w->moved ? "moved" : "a", i);
        if (w->archives[i].there)
            write_archive(&w->archives[i], dir, i, w->loses);
    }
}

/* Ranges of whole archives [lo, hi) first, then others. */
struct range {
    int64_t begin, end;
    size_t lo, hi;
};
struct seen {
    uint64_t print[RANGES], items[RANGES];
};

static struct ctf_trace *open_world(struct ctf_group **groups)
{
    char path[600];
    struct ctf_trace *t;
    struct err e = {0};
    size_t n;
    snprintf(path, sizeof path, "%s/world", scratch);
    assert_int_equal(ctf_discover(path, groups, &n, &e), 0);
    assert_int_equal(n, 1);
    if (ctf_trace_open(*groups, NULL, &t, &e))
        fail_msg("%s", e.text);
    return t;
}

static struct seen look(const struct range *ranges)
{
    struct ctf_group *groups;
    struct ctf_trace *t = open_world(&groups);
    struct seen s;
    bool lost;
    for (size_t i = 0; i < RANGES; i++) {
        s.print[i] = ctf_trace_range_fingerprint(t, ranges[i].begin, ranges[i].end);
        s.items[i] = digest(t, ranges[i].begin, ranges[i].end, &lost);
        assert_false(lost);
    }
    ctf_trace_items(t);
    for (size_t i = 0; i < RANGES; i++)
        assert_int_equal(s.print[i], ctf_trace_range_fingerprint(t, ranges[i].begin, ranges[i].end));
    ctf_trace_close(t);
    ctf_groups_free(groups, 1);
    return s;
}

static void choose_ranges(uint64_t *dice, struct range *ranges)
{
    for (size_t i = 0; i < RANGES; i++) {
        struct range *r = &ranges[i];
        r->lo = test_random(dice, ARCHIVES);
        r->hi = r->lo + 1 + test_random(dice, (uint32_t)(ARCHIVES - r->lo));
        r->begin = (int64_t)(1 + r->lo) * SPAN;
        r->end = (int64_t)(1 + r->hi) * SPAN;
        if (i >= RANGES / 2) {
            r->begin = test_random(dice, 5) ? r->begin + test_random(dice, SPAN) : INT64_MIN;
            r->end = test_random(dice, 5) ? r->end - test_random(dice, SPAN / 2) : INT64_MAX;
        }
    }
}

/* ---- random changes ---- */

static void change(uint64_t *dice, struct world *w)
{
    struct archive *a = &w->archives[test_random(dice, ARCHIVES)];
    switch (test_random(dice, 6)) {
    case 0: a->there = !a->there; break;
    case 1: a->seed = 1 + test_random(dice, 1 << 30); break;
    case 2: a->metadata = test_random(dice, 8) ? test_random(dice, 2) : 2; break;
    case 3: a->modified++; break;
    case 4: w->moved = !w->moved; break;
    default: break;
    }
    w->archives[0].there |= !w->archives[1].there; /* at least one */
}

static bool same_archive(const struct archive *p, const struct archive *q)
{
    return p->there == q->there &&
        (!p->there || (p->seed == q->seed && p->modified == q->modified && p->metadata == q->metadata));
}

/* Returns whether all that affects reading the range is the same. Losses between two archives are reported by both. */
static bool same_range(const struct world *p, const struct world *q, const struct range *r)
{
    size_t lo = r->lo, hi = r->hi;
    if (p->loses) {
        lo = 0;
        hi = ARCHIVES;
    }
    for (size_t i = lo; i < hi; i++)
        if (!same_archive(&p->archives[i], &q->archives[i]))
            return false;
    for (size_t i = 0; i < ARCHIVES; i++) /* contradictory declarations: one of them is used for all */
        if ((p->archives[i].there && p->archives[i].metadata == 2) ||
            (q->archives[i].there && q->archives[i].metadata == 2))
            return false;
    return true;
}

static void changes_tell(bool loses)
{
    uint64_t dice = test_seed(loses ? 77 : 78);
    struct range ranges[RANGES];
    struct world w = {.loses = loses};
    size_t equal = 0, told = 0;
    for (size_t i = 0; i < ARCHIVES; i++)
        w.archives[i] = (struct archive){true, 1 + test_random(&dice, 1 << 30), 0, 1700000000};
    choose_ranges(&dice, ranges);
    write_world(&w);
    struct seen before = look(ranges);
    for (int step = 0; step < STEPS; step++) {
        struct world old = w;
        change(&dice, &w);
        write_world(&w);
        struct seen now = look(ranges);
        for (size_t i = 0; i < RANGES; i++) {
            if (now.items[i] != before.items[i])
                assert_int_not_equal(now.print[i], before.print[i]);
            told += now.items[i] != before.items[i];
            if (i < RANGES / 2 && same_range(&old, &w, &ranges[i])) {
                assert_int_equal(now.print[i], before.print[i]);
                equal++;
            }
        }
        before = now;
    }
    assert_true(told > 0 && equal > 0);
}

static void of_traces_without_losses(void **state)
{
    changes_tell(false);
}
static void of_traces_with_losses(void **state)
{
    changes_tell(true);
}

/* A file that is written to counts for the ranges that it has packets of. */
static void of_files_that_change(void **state)
{
    struct world w = {0};
    struct range ranges[RANGES];
    for (size_t i = 0; i < 3; i++)
        w.archives[i] = (struct archive){true, i + 1, 0, 1700000000};
    for (size_t i = 0; i < RANGES; i++)
        ranges[i] = (struct range){(int64_t)(1 + i % 3) * SPAN, (int64_t)(2 + i % 3) * SPAN, 0, 0};
    write_world(&w);
    struct seen before = look(ranges);
    stamp("world/a1", "c1", 1700000001);
    struct seen now = look(ranges);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(now.print[i] != before.print[i], i == 1);
}

/* ---- order ---- */

static bool ordered(uint64_t begin, uint64_t last, bool *told_before)
{
    struct ctf_group *groups;
    bool certain;
    clear_world();
    start_bytes(false);
    for (uint64_t k = 0; k < 2; k++) {
        size_t head = begin_packet(k ? begin : 1000, k ? 3000 : 2000, 0, 0);
        compact(0, (uint32_t)(k ? begin : 1000));
        put(&b, 1, 8);
        compact(0, (uint32_t)(k ? 3000 : last));
        put(&b, 2, 8);
        end_packet(head, 0);
    }
    write_text("world/a", "metadata", declared[0]);
    write_file("world/a", "c0", b.v, b.n);
    struct ctf_trace *t = open_world(&groups);
    *told_before = !ctf_trace_is_ordered(t, &certain);
    assert_false(certain);
    ctf_trace_items(t);
    bool is = ctf_trace_is_ordered(t, &certain);
    assert_true(certain);
    ctf_trace_close(t);
    ctf_groups_free(groups, 1);
    return is;
}

static void order_is_known(void **state)
{
    bool told;
    assert_true(ordered(2000, 2000, &told));
    assert_false(told);
    assert_false(ordered(1500, 2000, &told)); /* packets overlap */
    assert_true(told);
    assert_false(ordered(2500, 2400, &told)); /* an event behind its packet's end */
    assert_false(told);
    assert_false(ordered(2000, 999, &told)); /* a time steps back */
    assert_false(told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_traces_without_losses),
        cmocka_unit_test(of_traces_with_losses),
        cmocka_unit_test(of_files_that_change),
        cmocka_unit_test(order_is_known),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
