/* SPDX-License-Identifier: MIT */
/* Common offset of traces that share a clock: the result equals that of metadata with this offset. */
#include "fed_made.h"

static void write_clocked(const char *dir, const char *name, uint64_t freq, uint64_t offset, const char *id)
{
    static char text[1 << 15];
    int n = snprintf(text, sizeof text,
        TYPES TRACE(
            "le") "clock { name = %s; uuid = \"%s\"; freq = %llu; offset_s = 3; offset = %llu; };\n"
                  "typealias integer { size = 27; align = 1; map = clock.%s.value; } := uint27_clock;\n"
                  "typealias integer { size = 64; align = 8; map = clock.%s.value; } := uint64_clock;\n" CONTEXT COMPACT
                      STREAM,
        name, id, (unsigned long long)freq, (unsigned long long)offset, name, name);
    for (int i = 0; i < CLASSES; i++)
        n += snprintf(text + n, sizeof text - (size_t)n,
            "event { name = \"e%d\"; id = %d; stream_id = 0; fields := struct { uint32_t x; }; };\n", i, i);
    write_text(dir, "metadata", text);
}

static const char one[] = "aaaaaaaa-0000-4000-8000-000000000001", other[] = "aaaaaaaa-0000-4000-8000-000000000002";

/* Two pieces of a trace with these offsets, of the same packets whatever they are. */
static struct ctf_trace *make(const char *name, uint64_t freq, const uint64_t offsets[2], bool overlap, uint64_t seed)
{
    static char dirs[2][700];
    char *list[] = {dirs[0], dirs[1]}, dir[40];
    struct ctf_group group = {list, 2, 0};
    struct ctf_trace *t;
    struct err e = {0};
    fed_dice = seed;
    for (int i = 0; i < 2; i++) {
        snprintf(dir, sizeof dir, "%s%d", name, i);
        make_streams(dir, overlap);
        write_clocked(dir, "monotonic", freq, offsets[i], one);
        snprintf(dirs[i], sizeof dirs[i], "%s/%s", scratch, dir);
    }
    if (ctf_trace_open(&group, NULL, &t, &e))
        fail_msg("%s", e.text);
    return t;
}

static struct ctf_merge *merge_of(const struct ctf_source *s)
{
    struct ctf_merge *m;
    assert_int_equal(ctf_merge_new(s, 1, everything, -1, &m, NULL), 0);
    return m;
}

static void compare(struct ctf_trace *got, struct ctf_trace *truth)
{
    const struct ctf_source sources[2] = {{.trace = got}, {.trace = truth}};
    fed_items items[2] = {0};
    struct ctf_stream_info info[2];
    int64_t span[2][2];
    for (int i = 0; i < 2; i++) {
        struct ctf_merge *m = merge_of(&sources[i]);
        fed_read_rest(&items[i], m, &sources[i], 100);
        ctf_merge_free(m);
        assert_true(ctf_trace_span(sources[i].trace, &span[i][0], &span[i][1]));
    }
    assert_int_equal(items[0].n, items[1].n);
    fed_compare(&items[0], 0, &items[1]);
    assert_memory_equal(span[0], span[1], sizeof span[0]);
    assert_int_equal(ctf_trace_streams(got), ctf_trace_streams(truth));
    for (size_t i = 0; i < ctf_trace_streams(got); i++) {
        ctf_trace_stream(got, i, &info[0]);
        ctf_trace_stream(truth, i, &info[1]);
        assert_true(info[0].begin == info[1].begin && info[0].end == info[1].end);
        assert_int_equal(info[0].lost_events, info[1].lost_events);
    }
    assert_int_equal(ctf_trace_items(got), items[1].n);
    for (int i = 0; i < 20; i++) {
        fed_items rest = {0};
        size_t from = fed_roll(items[1].n);
        struct ctf_merge *m = merge_of(&sources[0]);
        assert_int_equal(ctf_merge_seek(m, from, NULL), 0);
        fed_read_rest(&rest, m, &sources[0], 100);
        assert_int_equal(rest.n, items[1].n - from);
        fed_compare(&rest, 0, &(fed_items){.v = items[1].v + from, .n = rest.n});
        ctf_merge_free(m);
        vec_free(&rest);
    }
    vec_free(&items[0]);
    vec_free(&items[1]);
}

/* Pieces whose offsets differ from each other, too; before and after the trace is counted. */
static void test_as_if_recorded_so(void **state)
{
    uint64_t seed = test_seed(5);
    for (uint64_t i = 0; i < 12; i++) {
        char got_dir[20], truth_dir[20];
        fed_dice = seed * 100 + i;
        uint64_t offset = 5000 + fed_roll(1000000), apart[2] = {fed_roll(1000000), fed_roll(1000000)};
        uint64_t freq = i % 3 ? 1000000000 : 250000000;
        snprintf(got_dir, sizeof got_dir, "got%d-", (int)i);
        snprintf(truth_dir, sizeof truth_dir, "truth%d-", (int)i);
        struct ctf_trace *got = make(got_dir, freq, apart, i & 1, seed + i),
                         *truth = make(truth_dir, freq, (uint64_t[]){offset, offset}, i & 1, seed + i);
        uint64_t before = ctf_trace_fingerprint(got);
        if (i & 2)
            assert_true(ctf_trace_items(got) > 0);
        int64_t by[2] = {((int64_t)offset - (int64_t)apart[0]) * (int64_t)(1000000000 / freq),
            ((int64_t)offset - (int64_t)apart[1]) * (int64_t)(1000000000 / freq)};
        assert_true(ctf_trace_take_offset(got, truth) == (llabs(by[1]) > llabs(by[0]) ? by[1] : by[0]));
        assert_true(ctf_trace_fingerprint(got) != before); /* stores that were made before are of other times */
        compare(got, truth);
        assert_true(ctf_trace_take_offset(got, truth) == 0);
        ctf_trace_close(got);
        ctf_trace_close(truth);
    }
}

/* Checks that another boot, another clock or another rate moves nothing. */
static void test_other_clocks(void **state)
{
    const struct {
        const char *name;
        uint64_t freq;
        const char *id;
    } others[] = {{"monotonic", 1000000000, other}, {"tsc", 1000000000, one}, {"monotonic", 999999999, one}};
    struct ctf_trace *t = make("mine", 1000000000, (uint64_t[]){7, 7}, false, 1);
    int64_t before[2], after[2];
    assert_true(ctf_trace_span(t, &before[0], &before[1]));
    for (size_t i = 0; i < 3; i++) {
        char dir[700], *dirs[] = {dir};
        struct ctf_group group = {dirs, 1, 0};
        struct ctf_trace *as;
        write_clocked("other", others[i].name, others[i].freq, 99, others[i].id);
        snprintf(dir, sizeof dir, "%s/other", scratch);
        assert_int_equal(ctf_trace_open(&group, NULL, &as, NULL), 0);
        assert_true(ctf_trace_take_offset(t, as) == 0);
        ctf_trace_close(as);
    }
    assert_true(ctf_trace_span(t, &after[0], &after[1]));
    assert_memory_equal(before, after, sizeof before);
    ctf_trace_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_if_recorded_so),
        cmocka_unit_test(test_other_clocks),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
