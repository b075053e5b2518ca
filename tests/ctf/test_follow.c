/* SPDX-License-Identifier: MIT */
/* Directories that grow while they are read: item for item as the merge of the trace when it is whole. */
#include "fed_made.h"

static void copy_dir_path(char *to, size_t n, const char *below)
{
    snprintf(to, n, "%s/%s", scratch, below);
}

static void append_bytes(const char *dir, const char *name, const uint8_t *data, size_t n)
{
    char path[1400];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "ab");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    fclose(f);
}

static void check_prefix(const struct ctf_merge *m, const fed_items *got, size_t from, const fed_items *expected)
{
    fed_compare(got, from, expected);
    if (got->n < expected->n && expected->v[got->n].ts < ctf_merge_until(m))
        fail_msg("all up to %lld should be given", (long long)ctf_merge_until(m));
}

/* Files grow by any number of bytes, in any order; a merge reads behind. */
static void grow_files(const char *path, uint64_t seed)
{
    struct opened whole;
    fed_items expected = {0}, got = {0};
    open_all(&whole, path);
    assert_int_equal(whole.n, 1);
    fed_read_rest(&expected, whole.merge, whole.sources, 97);
    struct fed_trace r;
    char dir[700], *dirs[] = {dir};
    struct ctf_group g = {dirs, 1, 0};
    struct ctf_trace_news news;
    struct err e = {0};
    fed_dice = seed;
    fed_load(&r, &whole.groups[0], 32);
    snprintf(dir, sizeof dir, "%s/grow%d", scratch, (int)seed);
    mkdir(dir, 0755);
    append_bytes(dir, "metadata", (uint8_t *)r.metadata, r.metadata_n);
    size_t *written = mem_zalloc(sizeof *written * r.files.n), left = 0;
    for (size_t i = 0; i < r.files.n; i++) {
        struct fed_file *f = &r.files.v[i];
        written[i] = f->parts.v[0].n + fed_roll(f->bytes.n - f->parts.v[0].n + 1) / 9;
        append_bytes(dir, f->name, f->bytes.v, written[i]);
        left += f->bytes.n - written[i];
    }
    struct ctf_source source = {0};
    struct ctf_merge *m;
    if (ctf_trace_follow(&g, NULL, &source.trace, &e) || ctf_merge_new(&source, 1, everything, -1, &m, &e))
        fail_msg("%s", e.text);
    while (left > 0) {
        size_t i = fed_roll(r.files.n), n = fed_roll(r.files.v[i].bytes.n - written[i] + 1);
        n = fed_roll(3) ? n / 8 : n;
        append_bytes(dir, r.files.v[i].name, r.files.v[i].bytes.v + written[i], n);
        written[i] += n;
        left -= n;
        size_t from = got.n;
        fed_read_rest(&got, m, &source, 1 + fed_roll(255));
        check_prefix(m, &got, from, &expected);
        assert_false(ctf_merge_ended(m));
        if (fed_roll(2) == 0)
            continue;
        if (ctf_trace_refresh(source.trace, &g, &news, &e))
            fail_msg("%s", e.text);
        assert_false(news.late);
    }
    if (ctf_trace_refresh(source.trace, NULL, &news, &e) || ctf_trace_end(source.trace, &e))
        fail_msg("%s", e.text);
    size_t from = got.n;
    fed_read_rest(&got, m, &source, 255);
    fed_compare(&got, from, &expected);
    assert_int_equal(got.n, expected.n);
    assert_true(ctf_merge_ended(m));
    const struct ctf_problem *problems;
    assert_int_equal(
        ctf_trace_problems(source.trace, &problems), ctf_trace_problems(whole.sources[0].trace, &problems));
    ctf_merge_free(m);
    ctf_trace_close(source.trace);
    free(written);
    fed_unload(&r);
    vec_free(&expected);
    vec_free(&got);
    close_all(&whole);
}

static void test_growing_files(void **state)
{
    const char *paths[] = {data_or_skip("traces/live-relayd"), data_or_skip("traces/three-tier/db"),
        data_or_skip("traces/lost-events"), data_or_skip("traces/vm/guest1")};
    uint64_t seed = test_seed(5);
    for (size_t i = 0; i < 4; i++)
        grow_files(paths[i], seed + i);
    for (size_t i = 0; i < 4; i++)
        grow_files(in_ctf2(paths[i], 1), seed + 4 + i);
}

/* An archive after the other, and the first one in two steps. */
static void grow_archives(const char *path)
{
    struct opened whole;
    fed_items expected = {0}, got = {0};
    struct err e = {0};
    open_all(&whole, path);
    fed_read_rest(&expected, whole.merge, whole.sources, 97);
    struct ctf_group g = whole.groups[0];
    assert_int_equal(g.n, 5);
    struct ctf_source source = {0};
    struct ctf_merge *m;
    g.n = 1;
    if (ctf_trace_follow(&g, NULL, &source.trace, &e) || ctf_merge_new(&source, 1, everything, -1, &m, &e))
        fail_msg("%s", e.text);
    for (g.n = 1; g.n <= 5; g.n++) {
        struct ctf_trace_news news;
        if (ctf_trace_refresh(source.trace, &g, &news, &e))
            fail_msg("%s", e.text);
        assert_int_equal(news.packets > 0, g.n > 1);
        size_t from = got.n;
        fed_read_rest(&got, m, &source, 1 + g.n * 10);
        check_prefix(m, &got, from, &expected);
        assert_true(got.n > from);
        /* Sealed time equal to that of the archives opened separately. */
        struct ctf_trace *part;
        assert_int_equal(ctf_trace_open(&g, NULL, &part, &e), 0);
        assert_true(ctf_trace_sealed_until(part) == ctf_trace_sealed_until(source.trace));
        assert_true(got.v[got.n - 1].ts < ctf_trace_sealed_until(part));
        ctf_trace_close(part);
    }
    assert_int_equal(ctf_trace_end(source.trace, &e), 0);
    size_t from = got.n;
    fed_read_rest(&got, m, &source, 255);
    fed_compare(&got, from, &expected);
    assert_int_equal(got.n, expected.n);
    ctf_merge_free(m);
    ctf_trace_close(source.trace);
    vec_free(&expected);
    vec_free(&got);
    close_all(&whole);
}

static void test_growing_archives(void **state)
{
    const char *path = data_or_skip("traces/rotated");
    grow_archives(path);
    grow_archives(in_ctf2(path, 1));
    grow_archives(in_ctf2(path, 2)); /* in both formats */
}

/* Checks that cut or replaced files are reported. */
static void test_cut_while_growing(void **state)
{
    char dir[700], path[800], *dirs[] = {dir};
    struct ctf_group g = {dirs, 1, 0};
    struct ctf_trace *t;
    struct err e = {0};
    fed_dice = 3;
    copy_dir_path(dir, sizeof dir, "cut");
    for (int replaced = 0; replaced < 2; replaced++) {
        make_streams("cut", false);
        write_made_metadata("cut");
        assert_int_equal(ctf_trace_follow(&g, NULL, &t, &e), 0);
        assert_int_equal(ctf_trace_refresh(t, NULL, NULL, &e), 0);
        snprintf(path, sizeof path, "%s/%s", dir, "a");
        if (replaced) {
            char other[900];
            snprintf(other, sizeof other, "%s.new", path);
            assert_int_equal(rename(path, other), 0);
            write_file("cut", "a", b.v, b.n);
            remove(other);
        } else {
            assert_int_equal(truncate(path, 100), 0);
        }
        assert_int_equal(ctf_trace_refresh(t, NULL, NULL, &e), ERR_LOST);
        assert_non_null(strstr(e.text, "/a"));
        ctf_trace_close(t);
    }
}

/* A directory in the other format that declares something else is refused, however often it is seen. */
static void test_piece_that_disagrees(void **state)
{
    static const char other[] = "\x1e{\"type\":\"preamble\",\"version\":2}\x1e{\"type\":\"trace-class\"}"
                                "\x1e{\"type\":\"data-stream-class\",\"id\":99}";
    char first[700], second[700], *dirs[] = {first, second};
    struct ctf_group g = {dirs, 1, 0};
    struct ctf_trace *t;
    struct err e = {0};
    make_streams("agreeing", false);
    write_made_metadata("agreeing");
    copy_dir_path(first, sizeof first, "agreeing");
    copy_dir_path(second, sizeof second, "other");
    mkdir(second, 0755);
    write_file("other", "metadata", (const uint8_t *)other, sizeof other - 1);
    assert_int_equal(ctf_trace_follow(&g, NULL, &t, &e), 0);
    g.n = 2;
    for (int i = 0; i < 3; i++) {
        e = (struct err){0};
        assert_int_equal(ctf_trace_refresh(t, &g, NULL, &e), ERR_UNSUPPORTED);
        assert_non_null(strstr(e.text, "/other"));
    }
    ctf_trace_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growing_files),
        cmocka_unit_test(test_growing_archives),
        cmocka_unit_test(test_cut_while_growing),
        cmocka_unit_test(test_piece_that_disagrees),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
