/* SPDX-License-Identifier: MIT */
/* Traces fed packet by packet, in any portions: item for item as the merge of the trace when it is whole. */
#include "fed_made.h"

static uint64_t count_problems(const struct ctf_trace *t)
{
    const struct ctf_problem *v;
    uint64_t sum = 0;
    for (size_t n = ctf_trace_problems(t, &v); n > 0; n--)
        sum += v[n - 1].count;
    return sum;
}

/* Compares several traces fed at once, each in its own portions, with the merge of them all. */
static void feed_and_compare(const char *path, size_t head, uint64_t seed, size_t most_portion, bool overlap)
{
    struct opened whole;
    fed_items expected = {0}, got = {0};
    open_all(&whole, path);
    fed_read_rest(&expected, whole.merge, whole.sources, 97);
    bool losses = false;
    for (size_t i = 0; i < expected.n; i++)
        losses |= expected.v[i].loss;
    struct fed_trace *r = mem_zalloc(sizeof *r * whole.n);
    struct ctf_feed **feeds = mem_zalloc(sizeof *feeds * whole.n);
    struct ctf_source *sources = mem_zalloc(sizeof *sources * whole.n);
    struct ctf_merge *m;
    struct err e = {0};
    fed_dice = seed;
    for (size_t i = 0; i < whole.n; i++) {
        fed_load(&r[i], &whole.groups[i], head);
        feeds[i] = ctf_feed_new(whole.groups[i].dirs[0], NULL);
        assert_null(ctf_feed_trace(feeds[i]));
        if (ctf_feed_metadata(feeds[i], r[i].metadata, r[i].metadata_n, &e))
            fail_msg("%s", e.text);
        sources[i].trace = ctf_feed_trace(feeds[i]);
        fed_hold(feeds[i], &r[i], overlap);
    }
    assert_int_equal(ctf_merge_new(sources, whole.n, everything, -1, &m, &e), 0);
    size_t open = whole.n, asked = 0;
    bool *done_one = mem_zalloc(whole.n);
    for (bool ended = false; !ended;) {
        for (uint64_t k = fed_roll(20); k > 0 && open; k--) {
            size_t i = fed_roll(whole.n);
            if (!done_one[i] && !fed_step(feeds[i], &r[i], !losses && !overlap, overlap)) {
                ctf_feed_end(feeds[i]);
                done_one[i] = true;
                open--;
            }
        }
        size_t from = got.n, n, portion = 1 + fed_roll(most_portion);
        struct ctf_event ev[256];
        n = ctf_merge_next(m, ev, portion);
        fed_take(&got, m, sources, ev, n);
        if (fed_roll(2)) /* reads until there is no more now */
            for (; (n = ctf_merge_next(m, ev, portion)) > 0; fed_take(&got, m, sources, ev, n))
                ;
        fed_compare(&got, from, &expected);
        if (n > 0)
            continue;
        ended = ctf_merge_ended(m);
        assert_int_equal(ended, open == 0);
        asked++;
        int64_t until = ctf_merge_until(m);
        if (got.n < expected.n && expected.v[got.n].ts < until)
            fail_msg("all up to %lld should be given, the next one is at %lld", (long long)until,
                (long long)expected.v[got.n].ts);
    }
    assert_int_equal(got.n, expected.n);
    assert_true(ctf_merge_late(m) == 0);
    assert_true(asked > 0);
    for (size_t i = 0; i < whole.n; i++)
        assert_int_equal(count_problems(sources[i].trace), count_problems(whole.sources[i].trace));
    ctf_merge_free(m);
    for (size_t i = 0; i < whole.n; i++) {
        ctf_feed_free(feeds[i]);
        fed_unload(&r[i]);
    }
    free(done_one);
    free(r);
    free(feeds);
    free(sources);
    vec_free(&expected);
    vec_free(&got);
    close_all(&whole);
}

/* ---- recordings, and what is made ---- */

static void test_made(void **state)
{
    uint64_t seed = test_seed(77);
    for (uint64_t i = 0; i < 40; i++) {
        char dir[40], path[700];
        fed_dice = seed * 1000 + i;
        snprintf(dir, sizeof dir, "made%d", (int)i);
        snprintf(path, sizeof path, "%s/%s", scratch, dir);
        make_streams(dir, i % 2);
        write_made_metadata(dir);
        feed_and_compare(path, 24, seed + i, 1 + fed_roll(255), i % 2);
    }
}

typedef VEC(uint8_t) file_bytes;

/* The packet made last. */
static void append(file_bytes *f)
{
    vec_reserve(f, b.n);
    memcpy(f->v + f->n, b.v, b.n);
    f->n += b.n;
}

/* Packets that are there twice in a file, and a file that is there twice. */
static void make_copies(const char *dir)
{
    file_bytes once = {0}, some_twice = {0};
    for (uint64_t packets = 100 + fed_roll(100), begin = 1000; packets > 0; packets--) {
        uint64_t end = begin + 10 + fed_roll(100);
        start_bytes(false);
        size_t at = begin_packet(begin, end, 0, 0);
        for (uint64_t ts = begin; ts <= end; ts += 1 + fed_roll(40))
            put_event(fed_roll(1 + ts / 100 < CLASSES ? 1 + ts / 100 : CLASSES), ts);
        end_packet(at, fed_roll(3) * 8);
        for (int i = fed_roll(4) ? 1 : 2; i > 0; i--)
            append(&some_twice);
        append(&once);
        begin = end + fed_roll(9);
    }
    write_file(dir, "a", some_twice.v, some_twice.n);
    write_file(dir, "a.bak", once.v, once.n);
    vec_free(&once);
    vec_free(&some_twice);
}

static void test_copies(void **state)
{
    uint64_t seed = test_seed(78);
    for (uint64_t i = 0; i < 20; i++) {
        char dir[40], path[700];
        fed_dice = seed * 1000 + i;
        snprintf(dir, sizeof dir, "copies%d", (int)i);
        snprintf(path, sizeof path, "%s/%s", scratch, dir);
        make_copies(dir);
        write_made_metadata(dir);
        feed_and_compare(path, 24, seed + i, 1 + fed_roll(255), false);
    }
}

/* Feeds the recording in CTF 1.8, then in CTF 2. */
static void recorded(const char *below)
{
    const char *path = data_or_skip(below);
    uint64_t seed = test_seed(11);
    for (uint64_t i = 0; i < 3; i++)
        feed_and_compare(path, 32, seed + i, i == 0 ? 1 : 255, false);
    path = in_ctf2(path, 1);
    for (uint64_t i = 3; i < 5; i++)
        feed_and_compare(path, 32, seed + i, i == 3 ? 1 : 255, false);
}

static void test_one_host(void **state)
{
    recorded("traces/live-relayd");
}
static void test_three_hosts(void **state)
{
    recorded("traces/three-tier");
}
static void test_losses(void **state)
{
    recorded("traces/lost-events");
}
static void test_archives(void **state)
{
    recorded("traces/rotated");
}
static void test_user_space(void **state)
{
    recorded("traces/ust-live");
}
static void test_virtual_machine(void **state)
{
    recorded("traces/vm");
}

/* ---- metadata that grow ---- */

static const char *made_event(int id, const char *fields)
{
    static char text[200];
    snprintf(text, sizeof text, "event { name = \"e%d\"; id = %d; stream_id = 0; fields := struct { %s }; };\n", id, id,
        fields);
    return text;
}

/* Event by event, in pieces that end anywhere; each class just before the packet that needs it. */
static void test_classes_on_the_way(void **state)
{
    struct ctf_feed *feed = ctf_feed_new("made", NULL);
    struct err e = {0};
    const char *head = TYPES TRACE("le") CLOCK(1000000000, 0) CONTEXT COMPACT STREAM;
    fed_dice = test_seed(9);
    assert_true(ctf_feed_metadata(feed, head, 100, &e) != 0); /* incomplete */
    assert_null(ctf_feed_trace(feed));
    if (ctf_feed_metadata(feed, head + 100, strlen(head) - 100, &e))
        fail_msg("%s", e.text);
    struct ctf_source source = {.trace = ctf_feed_trace(feed)};
    struct ctf_merge *m;
    assert_int_equal(ctf_merge_new(&source, 1, everything, -1, &m, &e), 0);
    uint32_t line = ctf_feed_line(feed, "one");
    const struct ctf_event_class *seen[200] = {0}, *const * classes;
    struct ctf_access access[200];
    size_t n = 0;
    for (int id = 0; id < 200; id++) {
        const char *text = made_event(id, id % 3 ? "uint32_t x;" : "uint8_t n; uint32_t x; string s;");
        size_t k = fed_roll(strlen(text));
        if (ctf_feed_metadata(feed, text, k, &e) || ctf_feed_metadata(feed, text + k, strlen(text) - k, &e))
            fail_msg("%s", e.text);
        n = ctf_trace_classes(source.trace, &classes);
        assert_int_equal(n, id + 3);
        for (int i = 0; i < id; i++)
            assert_ptr_equal(classes[i + 2], seen[i]);
        seen[id] = classes[id + 2];
        assert_int_equal(seen[id]->index, id + 2);
        assert_true(ctf_access_find(seen[id], CTF_PAYLOAD, "x", &access[id]));
        start_bytes(false);
        size_t at = begin_packet((uint64_t)id * 100, (uint64_t)id * 100 + 99, 0, 0);
        for (int i = 0; i < 5; i++) {
            int which = i ? (int)fed_roll((uint64_t)id + 1) : id;
            extended((uint32_t)which, (uint64_t)id * 100 + (uint64_t)i, 1);
            if (which % 3 == 0)
                put(&b, 1, 1);
            put(&b, (uint64_t)which * 1000 + (uint64_t)i, 4);
            if (which % 3 == 0)
                put_string(&b, "text");
        }
        end_packet(at, 0);
        assert_int_equal(ctf_feed_packet(feed, line, b.v, b.n, &e), 0);
        struct ctf_event ev[8];
        assert_int_equal(ctf_merge_next(m, ev, 8), 5);
        for (int i = 0; i < 5; i++) {
            size_t which = ev[i].cls->index - 2;
            assert_ptr_equal(ev[i].cls, seen[which]);
            assert_int_equal(ctf_read_int(&ev[i], &access[which]), which * 1000 + (size_t)i);
        }
        assert_int_equal(ctf_merge_next(m, ev, 8), 0);
        assert_false(ctf_merge_ended(m));
    }
    /* Contradictory metadata are refused, and change nothing. */
    const char *again[] = {"event { name = \"other\"; id = 7; stream_id = 0; fields := struct { uint32_t x; }; };\n",
        "stream { id = 0; };\n",
        "event { name = broken; id = 1000; stream_id = 0; fields := struct { nothing x; }; };"};
    for (size_t i = 0; i < 3; i++) {
        e = (struct err){0};
        assert_int_equal(ctf_feed_metadata(feed, again[i], strlen(again[i]), &e), ERR_FORMAT);
        assert_true(e.text[0] != '\0');
        assert_int_equal(ctf_trace_classes(source.trace, &classes), n);
    }
    const char *stream = "stream { id = 5; event.header := struct header; packet.context := struct context; };\n"
                         "event { name = \"far\"; id = 0; stream_id = 5; fields := struct { uint32_t x; }; };\n";
    assert_int_equal(ctf_feed_metadata(feed, stream, strlen(stream), &e), 0);
    assert_int_equal(ctf_trace_classes(source.trace, &classes), n + 1);
    assert_string_equal(classes[n]->name, "far");
    ctf_feed_end(feed);
    struct ctf_event ev;
    assert_int_equal(ctf_merge_next(m, &ev, 1), 0);
    assert_true(ctf_merge_ended(m));
    ctf_merge_free(m);
    ctf_feed_free(feed);
}

/* ---- irregular input ---- */

static void feed_one(struct ctf_feed *feed, uint32_t line, uint64_t begin, uint64_t end)
{
    start_bytes(false);
    size_t at = begin_packet(begin, end, 0, line);
    put_event(1, begin);
    put_event(1, end);
    end_packet(at, 0);
    assert_int_equal(ctf_feed_packet(feed, line, b.v, b.n, NULL), 0);
}

/* Checks packets of a line that are not in order of time: reported as for a file, with the same words. */
static void test_time_runs_back(void **state)
{
    const uint64_t begins[] = {100, 400, 300, 700, 200};
    struct ctf_feed *feed = ctf_feed_new("back", NULL);
    const char *text = TYPES TRACE("le") CLOCK(1000000000, 0) CONTEXT COMPACT STREAM;
    file_bytes file = {0};
    char dir[700], *dirs[] = {dir};
    struct ctf_group group = {dirs, 1, 0};
    struct ctf_trace *whole;
    const struct ctf_problem *fed, *opened;
    fed_dice = 1;
    write_made_metadata("back");
    assert_int_equal(ctf_feed_metadata(feed, text, strlen(text), NULL), 0);
    text = made_event(1, "uint32_t x;");
    assert_int_equal(ctf_feed_metadata(feed, text, strlen(text), NULL), 0);
    uint32_t line = ctf_feed_line(feed, "a");
    ctf_feed_hold(feed, 0); /* prevents late packets */
    for (size_t i = 0; i < 5; i++) {
        feed_one(feed, line, begins[i], begins[i] + 50);
        append(&file);
    }
    ctf_feed_end(feed);
    write_file("back", "a", file.v, file.n);
    snprintf(dir, sizeof dir, "%s/back", scratch);
    assert_int_equal(ctf_trace_open(&group, NULL, &whole, NULL), 0);
    assert_int_equal(ctf_trace_problems(whole, &opened), 1);
    assert_int_equal(ctf_trace_problems(ctf_feed_trace(feed), &fed), 1);
    assert_non_null(
        strstr(opened->text, "/a: time runs back 2 times between packets of the stream, by up to 500 ns, "));
    assert_string_equal(strstr(opened->text, "/a: "), strstr(fed->text, "/a: "));
    assert_true(!opened->harmless && !fed->harmless);
    ctf_trace_close(whole);
    ctf_feed_free(feed);
    vec_free(&file);
}

/* Checks that late items are returned and reported; a new line holds all until it has a time; the rest continues. */
static void test_late(void **state)
{
    struct ctf_feed *feed = ctf_feed_new("late", NULL);
    const char *text = TYPES TRACE("le") CLOCK(1000000000, 0) CONTEXT COMPACT STREAM;
    struct ctf_event ev[16];
    struct ctf_merge *m;
    assert_int_equal(ctf_feed_metadata(feed, text, strlen(text), NULL), 0);
    text = made_event(1, "uint32_t x;");
    assert_int_equal(ctf_feed_metadata(feed, text, strlen(text), NULL), 0);
    struct ctf_source source = {.trace = ctf_feed_trace(feed)};
    assert_int_equal(ctf_merge_new(&source, 1, everything, -1, &m, NULL), 0);
    struct ctf_merge *second;
    assert_int_equal(ctf_merge_new(&source, 1, everything, -1, &second, NULL), ERR_ARG);
    assert_int_equal(ctf_merge_next(m, ev, 16), 0);
    assert_true(!ctf_merge_ended(m) && ctf_merge_until(m) == INT64_MIN);
    uint32_t a = ctf_feed_line(feed, "a"), c = ctf_feed_line(feed, "c");
    feed_one(feed, a, 100, 200);
    assert_int_equal(ctf_merge_next(m, ev, 16), 0); /* line c is unknown */
    ctf_feed_quiet(feed, c, 150);
    assert_int_equal(ctf_merge_next(m, ev, 16), 1);
    assert_true(ctf_merge_next(m, ev, 16) == 0 && ctf_merge_until(m) == 150);
    feed_one(feed, c, 120, 180); /* later than its declared quiet time up to 150 */
    assert_int_equal(ctf_merge_next(m, ev, 16), 1);
    assert_true(ev[0].ts == 120);
    assert_true(ctf_merge_late(m) == 1);
    const struct ctf_problem *problems;
    assert_int_equal(ctf_merge_problems(m, &problems), 1);
    assert_int_equal(ctf_trace_problems(source.trace, &problems), 1);
    ctf_feed_line_end(feed, c);
    assert_int_equal(ctf_merge_next(m, ev, 16), 1);
    assert_true(ev[0].ts == 180 && ctf_merge_until(m) == 200);
    assert_int_equal(ctf_feed_packet(feed, c, b.v, b.n, NULL), ERR_ARG);
    /* Sizes that lie: of a packet, and of its content. */
    start_bytes(false);
    size_t at = begin_packet(300, 400, 0, 0);
    put_event(1, 300);
    end_packet(at, 0);
    patch(&b, 48, 1u << 30, 8);
    assert_int_equal(ctf_feed_packet(feed, a, b.v, b.n, NULL), 0);
    patch(&b, 40, 1u << 31, 8);
    assert_int_equal(ctf_feed_packet(feed, a, b.v, b.n, NULL), 0);
    assert_int_equal(ctf_feed_packet(feed, a, "rubbish", 7, NULL), 0);
    assert_int_equal(ctf_feed_packet(feed, a, "", 0, NULL), 0);
    assert_true(ctf_trace_problems(source.trace, &problems) >= 3);
    ctf_feed_end(feed);
    assert_int_equal(ctf_merge_next(m, ev, 16), 2);
    assert_true(ev[0].ts == 200 && ev[1].ts == 300);
    assert_int_equal(ctf_merge_next(m, ev, 16), 0);
    assert_true(ctf_merge_ended(m) && ctf_merge_until(m) == INT64_MAX);
    ctf_merge_free(m);
    ctf_feed_free(feed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_host),
        cmocka_unit_test(test_three_hosts),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_archives),
        cmocka_unit_test(test_user_space),
        cmocka_unit_test(test_virtual_machine),
        cmocka_unit_test(test_made),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_time_runs_back),
        cmocka_unit_test(test_classes_on_the_way),
        cmocka_unit_test(test_late),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
