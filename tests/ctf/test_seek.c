/* Random access: events carry their own number, so the number asked for is what must be read, however the counts came
 * about. */
#include "ctf/writer.h"
#include "stream_helpers.h"

enum { EVENTS = 150000, CPUS = 4 };

static const char tsdl[] =
    "event { name = \"count\"; id = 0; stream_id = 0; fields := struct { uint32_t n; string word; }; };\n";

static int64_t times[EVENTS]; /* of the events written last */

/* CPU 0 has most events, CPU 3 a burst now and then; several events of a CPU have one time; packets hold tens of
 * thousands. */
static const char *write_numbered(const char *name, uint32_t packet_bytes)
{
    static char dir[600];
    struct ctf_writer *w;
    struct err e = {0};
    struct ctf_writer_options o = {.hostname = "numbers",
        .tsdl = tsdl,
        .freq = 1000000000,
        .packet_bytes = packet_bytes,
        .cpus = CPUS,
        .uuid = {7},
        .index_files = true};
    int64_t ts = 1000;
    uint64_t random = 88172645463325252u;
    snprintf(dir, sizeof dir, "%s/%s", scratch, name);
    assert_int_equal(ctf_writer_open(dir, &o, &w, &e), 0);
    for (uint32_t n = 0; n < EVENTS; n++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        uint32_t cpu = n % 20000 < 300 ? 3 : random % 100 < 90 ? 0 : random % 100 < 97 ? 1 : 2;
        uint8_t payload[16] = {(uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16), 0, 'a', 'b'};
        static uint32_t before;
        ts += cpu == before && n % 3 == 0 ? 0 : 1 + (int64_t)(random >> 32) % 1000;
        before = cpu;
        times[n] = ts;
        payload[4 + n % 3] = 0;
        assert_int_equal(ctf_writer_event(w, cpu, 0, ts, payload, 5 + n % 3, &e), 0);
    }
    assert_int_equal(ctf_writer_close(w, &e), 0);
    return dir;
}

static uint32_t number_of(const struct ctf_event *ev)
{
    struct ctf_access a;
    assert_true(ctf_access_find(ev->cls, CTF_PAYLOAD, "n", &a));
    return (uint32_t)ctf_read_int(ev, &a);
}

static void check_numbers(struct ctf_merge *m)
{
    struct err e = {0};
    struct ctf_event ev[10];
    uint64_t random = 12345;
    for (int i = 0; i < 700; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t at = i < 20 ? (uint64_t)i : i < 40 ? EVENTS - 1 - (uint64_t)(i - 20) : (random >> 20) % EVENTS;
        assert_int_equal(ctf_merge_seek(m, at, &e), 0);
        size_t n = ctf_merge_next(m, ev, 10);
        assert_int_equal(n, EVENTS - at < 10 ? EVENTS - at : 10);
        for (size_t k = 0; k < n; k++)
            assert_int_equal(number_of(&ev[k]), at + k);
    }
    assert_int_equal(ctf_merge_seek(m, EVENTS, &e), 0);
    assert_int_equal(ctf_merge_next(m, ev, 1), 0);
    assert_int_equal(ctf_merge_seek(m, EVENTS + 1, &e), ERR_NOTFOUND);
}

static void later(void *arg, int64_t *ts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ts[i] = ts[i] * 3 / 2 + 1000000000000000000;
}

static void test_numbers(void **state)
{
    for (int small = 0; small < 2; small++) {
        struct opened o;
        struct ctf_merge *mapped;
        open_all(&o, write_numbered(small ? "small" : "large", small ? 4096 : 1 << 20));
        check_numbers(o.merge);
        assert_int_equal(ctf_trace_items(o.sources[0].trace), EVENTS);
        o.sources[0].map = later;
        assert_int_equal(ctf_merge_new(o.sources, 1, everything, -1, &mapped, NULL), 0);
        check_numbers(mapped);
        ctf_merge_free(mapped);
        close_all(&o);
    }
}

static void same_counts(const struct ctf_counts *a, const struct ctf_counts *b)
{
    assert_int_equal(a->n_packets, b->n_packets);
    assert_int_equal(a->n_marks, b->n_marks);
    assert_memory_equal(a->packets, b->packets, sizeof *a->packets * a->n_packets);
    if (a->n_marks)
        assert_memory_equal(a->marks, b->marks, sizeof *a->marks * a->n_marks);
}

static void free_counts(struct ctf_counts *c)
{
    free(c->packets);
    free(c->marks);
}

/* Counted by a merge that reads the trace, or by reading it for that: the same. Returns them. */
static struct ctf_counts count_both_ways(const char *path)
{
    struct opened o;
    struct ctf_counts by_merge, alone;
    open_all(&o, path);
    assert_int_equal(o.n, 1);
    ctf_merge_count(o.merge);
    event_vec all = read_all(o.merge);
    ctf_trace_counts(o.sources[0].trace, &by_merge);
    assert_int_equal(ctf_trace_items(o.sources[0].trace), all.n);
    vec_free(&all);
    close_all(&o);
    open_all(&o, path);
    ctf_trace_counts(o.sources[0].trace, &alone);
    close_all(&o);
    same_counts(&by_merge, &alone);
    free_counts(&alone);
    return by_merge;
}

static void test_counted_both_ways(void **state)
{
    struct ctf_counts c = count_both_ways(write_numbered("large", 1 << 20));
    assert_true(c.n_marks > CPUS);
    free_counts(&c);
    static const char *const recorded[] = {
        "traces/lost-events", "traces/snapshot", "traces/three-tier/db/kernel", "traces/rotated"};
    for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++) {
        if (!test_have(data_path(recorded[i])))
            continue;
        c = count_both_ways(data_path(recorded[i]));
        free_counts(&c);
    }
}

/* Counts from a store: a trace that is given them finds events by them, and refuses those of another. */
static void test_given_back(void **state)
{
    struct opened o;
    struct ctf_counts c = count_both_ways(write_numbered("large", 1 << 20)), again,
                      small = count_both_ways(write_numbered("small", 4096));
    open_all(&o, write_numbered("large", 1 << 20));
    const struct ctf_trace *t = o.sources[0].trace;
    assert_false(ctf_trace_set_counts(t, &small));
    assert_false(ctf_trace_set_counts(t, &(struct ctf_counts){0}));
    struct ctf_counts less = c;
    less.n_marks--;
    assert_false(ctf_trace_set_counts(t, &less));
    uint64_t pos = c.marks[0].pos_bits;
    c.marks[0].pos_bits = UINT64_MAX / 2;
    assert_false(ctf_trace_set_counts(t, &c));
    c.marks[0].pos_bits = pos;
    assert_true(ctf_trace_set_counts(t, &c));
    check_numbers(o.merge);
    ctf_trace_counts(t, &again);
    same_counts(&c, &again);
    close_all(&o);

    /* They are what is used: with another number of items in a packet the sum is another. */
    open_all(&o, write_numbered("large", 1 << 20));
    c.packets[c.n_packets - 1].items += 5;
    assert_true(ctf_trace_set_counts(o.sources[0].trace, &c));
    assert_int_equal(ctf_trace_items(o.sources[0].trace), EVENTS + 5);
    close_all(&o);
    free_counts(&c);
    free_counts(&again);
    free_counts(&small);
}

/* A window of a counted trace begins to be read at a mark. */
static void test_windows(void **state)
{
    struct opened o;
    open_all(&o, write_numbered("large", 1 << 20));
    assert_int_equal(ctf_trace_items(o.sources[0].trace), EVENTS);
    for (uint32_t first = 3; first < EVENTS; first += 7919) {
        uint32_t last = first + first % 5000 < EVENTS ? first + first % 5000 : EVENTS - 1, from = first;
        struct ctf_window window = {times[first], times[last]};
        struct ctf_merge *m;
        while (from > 0 && times[from - 1] == times[first])
            from--;
        while (last + 1 < EVENTS && times[last + 1] == times[last])
            last++;
        assert_int_equal(ctf_merge_new(o.sources, 1, window, -1, &m, NULL), 0);
        event_vec part = read_all(m);
        assert_int_equal(part.n, last - from + 1);
        for (size_t k = 0; k < part.n; k++)
            assert_int_equal(number_of(&part.v[k]), from + k);
        vec_free(&part);
        ctf_merge_free(m);
    }
    close_all(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_counted_both_ways),
        cmocka_unit_test(test_given_back),
        cmocka_unit_test(test_windows),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
