/* SPDX-License-Identifier: MIT */
/* Random access: events carry their own number, so the requested number must be read, however the counts were made. */
#include "ctf_writer.h"
#include "stream_helpers.h"

enum { EVENTS = 150000, CPUS = 4 };

static const char tsdl[] =
    "event { name = \"count\"; id = 0; stream_id = 0; fields := struct { uint32_t n; string word; }; };\n";

static int64_t times[EVENTS]; /* times of the events written last */

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

static void free_counts(struct ctf_counts *c)
{
    free(c->packets);
    free(c->marks);
    *c = (struct ctf_counts){0};
}

static void append(struct ctf_counts *to, struct ctf_counts *from)
{
    to->packets = mem_resize(to->packets, sizeof *to->packets * (to->n_packets + from->n_packets + 1));
    to->marks = mem_resize(to->marks, sizeof *to->marks * (to->n_marks + from->n_marks + 1));
    if (from->n_packets)
        memcpy(to->packets + to->n_packets, from->packets, sizeof *to->packets * from->n_packets);
    if (from->n_marks)
        memcpy(to->marks + to->n_marks, from->marks, sizeof *to->marks * from->n_marks);
    to->n_packets += from->n_packets;
    to->n_marks += from->n_marks;
    free_counts(from);
}

/* Returns the counts of a merge that reads [begin, end), queried now and then. */
static struct ctf_counts count_range(struct ctf_trace *t, int64_t begin, int64_t end, uint64_t *dice)
{
    struct ctf_source source = {.trace = t};
    struct ctf_window window = {begin, end < INT64_MAX ? end - 1 : end};
    struct ctf_merge *m;
    struct ctf_event ev[256];
    struct ctf_counts all = {0}, part;
    assert_int_equal(ctf_merge_new(&source, 1, window, -1, &m, NULL), 0);
    ctf_merge_count(m);
    for (size_t n = 1; n > 0;) {
        n = ctf_merge_next(m, ev, 256);
        if (n && test_random(dice, 20))
            continue;
        ctf_merge_counts(m, INT64_MAX, &part);
        append(&all, &part);
    }
    ctf_merge_free(m);
    return all;
}

static struct ctf_counts count_whole(const char *path)
{
    struct opened o;
    uint64_t dice = test_seed(31);
    open_all(&o, path);
    assert_int_equal(o.n, 1);
    struct ctf_counts c = count_range(o.sources[0].trace, INT64_MIN, INT64_MAX, &dice);
    close_all(&o);
    return c;
}

static bool same_packet(const struct ctf_counts *a, size_t i, const struct ctf_mark *marks_a,
    const struct ctf_packet_count *b, const struct ctf_mark *marks_b)
{
    return !memcmp(&a->packets[i], b, sizeof *b) && !memcmp(marks_a, marks_b, sizeof *marks_a * b->marks);
}

/* Checks that the packets of `parts` equal those of `whole`, to the last bit, and are complete. */
static void same_counts(const struct ctf_counts *whole, const struct ctf_counts *parts)
{
    bool *seen = mem_zalloc(whole->n_packets + 1);
    size_t mark = 0, found = 0;
    for (size_t i = 0; i < parts->n_packets; mark += parts->packets[i++].marks) {
        size_t k = 0, at = 0;
        while (k < whole->n_packets && whole->packets[k].key != parts->packets[i].key)
            at += whole->packets[k++].marks;
        assert_true(k < whole->n_packets);
        assert_true(same_packet(whole, k, whole->marks + at, &parts->packets[i], parts->marks + mark));
        found += !seen[k];
        seen[k] = true;
    }
    assert_int_equal(found, whole->n_packets);
    assert_int_equal(mark, parts->n_marks);
    free(seen);
}

/* Ranges that follow each other; of a trace that is counted already, too. */
static void count_in_parts(const char *path)
{
    uint64_t dice = test_seed(32);
    struct opened o;
    struct ctf_counts whole = count_whole(path);
    for (int counted = 0; counted < 2; counted++) {
        open_all(&o, path);
        struct ctf_trace *t = o.sources[0].trace;
        struct ctf_counts parts = {0};
        int64_t begin, end, at = INT64_MIN;
        if (counted)
            ctf_trace_items(t);
        ctf_trace_span(t, &begin, &end);
        for (int i = 0; i < 6; i++) {
            int64_t next = begin + (end - begin) / 6 * i + test_random(&dice, (uint32_t)((end - begin) / 8) + 1);
            next = i == 5 ? INT64_MAX : next > at ? next : at;
            struct ctf_counts part = count_range(t, at, next, &dice);
            append(&parts, &part);
            at = next;
        }
        same_counts(&whole, &parts);
        free_counts(&parts);
        close_all(&o);
    }
    free_counts(&whole);
}

static void test_counted_in_parts(void **state)
{
    struct ctf_counts c = count_whole(write_numbered("large", 1 << 20));
    assert_true(c.n_marks > CPUS);
    free_counts(&c);
    count_in_parts(write_numbered("large", 1 << 20));
    count_in_parts(write_numbered("small", 4096));
    static const char *const recorded[] = {
        "traces/lost-events", "traces/snapshot", "traces/three-tier/db/kernel", "traces/rotated"};
    for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++)
        if (test_have(data_path(recorded[i])))
            count_in_parts(data_path(recorded[i]));
}

/* ---- counts from a store ---- */

static const struct ctf_counts *kept;
static int asked, forgotten;

static void give(void *arg, struct ctf_counts *out)
{
    struct ctf_counts copy = {mem_alloc(sizeof *kept->packets * (kept->n_packets + 1)), kept->n_packets,
        mem_alloc(sizeof *kept->marks * (kept->n_marks + 1)), kept->n_marks};
    if (kept->n_packets)
        memcpy(copy.packets, kept->packets, sizeof *kept->packets * kept->n_packets);
    if (kept->n_marks)
        memcpy(copy.marks, kept->marks, sizeof *kept->marks * kept->n_marks);
    *out = copy;
    assert_ptr_equal(arg, &asked);
    asked++;
}

static void forget(void *arg)
{
    forgotten++;
}

static uint64_t items_with(const char *path, const struct ctf_counts *c)
{
    struct opened o;
    open_all(&o, path);
    kept = c;
    asked = forgotten = 0;
    ctf_trace_remember(o.sources[0].trace, give, &asked, forget);
    uint64_t items = ctf_trace_items(o.sources[0].trace);
    if (items == EVENTS)
        check_numbers(o.merge);
    assert_int_equal(ctf_trace_items(o.sources[0].trace), items);
    assert_int_equal(asked, 1);
    close_all(&o);
    assert_int_equal(forgotten, 1);
    return items;
}

/* Checks that given counts are used: other numbers of items give another sum. Missing, foreign or invalid counts are
 * replaced by reading. */
static void test_remembered(void **state)
{
    struct ctf_counts small = count_whole(write_numbered("small", 4096));
    const char *path = write_numbered("large", 1 << 20);
    struct ctf_counts c = count_whole(path), less = c;
    assert_true(c.n_packets > 3);
    assert_int_equal(items_with(path, &c), EVENTS);
    assert_int_equal(items_with(path, &small), EVENTS);
    assert_int_equal(items_with(path, &(struct ctf_counts){0}), EVENTS);
    for (size_t i = 0; i < c.n_packets; i++)
        c.packets[i].items += 5;
    assert_int_equal(items_with(path, &c), EVENTS + 5 * c.n_packets);
    less.n_marks--; /* contradicts the packets */
    assert_int_equal(items_with(path, &less), EVENTS);
    uint64_t key = c.packets[1].key, pos = c.marks[0].pos_bits;
    c.packets[1].key++;
    assert_int_equal(items_with(path, &c), EVENTS + 5 * (c.n_packets - 1));
    c.packets[1].key = key;
    size_t marked = 0;
    while (!c.packets[marked].marks)
        marked++;
    c.marks[0].pos_bits = UINT64_MAX / 2;
    assert_int_equal(items_with(path, &c), EVENTS + 5 * (c.n_packets - 1));
    c.marks[0].pos_bits = pos;
    c.packets[marked].first = c.packets[marked].last + 1;
    assert_int_equal(items_with(path, &c), EVENTS + 5 * (c.n_packets - 1));
    free_counts(&c);
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

/* ---- numbers before a time ---- */

static bool never(void *arg)
{
    return false;
}

static int by_time(const void *a, const void *b)
{
    int64_t p = *(const int64_t *)a, q = *(const int64_t *)b;
    return p < q ? -1 : p > q;
}

static size_t numbered_until(int64_t t)
{
    size_t lo = 0;
    for (size_t hi = EVENTS; lo < hi;) {
        size_t mid = (lo + hi) / 2;
        if (times[mid] <= t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Far apart and near each other, at events and between them, before the first and after the last. */
static void check_tally(const struct ctf_source *source, bool mapped, uint64_t *dice)
{
    enum { MOST = 3000 };
    static int64_t at[MOST], shown[MOST];
    static struct ctf_tally out[MOST];
    size_t n = 1 + test_random(dice, MOST);
    int64_t span = (times[EVENTS - 1] - times[0] + 200) >> test_random(dice, 16);
    int64_t from = times[test_random(dice, EVENTS)] - 100;
    for (size_t i = 0; i < n; i++)
        at[i] = i % 7 ? from + (int64_t)test_random(dice, (uint64_t)span) : times[test_random(dice, EVENTS)];
    qsort(at, n, sizeof *at, by_time);
    memcpy(shown, at, sizeof shown);
    if (mapped)
        later(NULL, shown, n);
    memset(out, 0, sizeof out);
    assert_int_equal(ctf_source_tally(source, shown, n, out, never, NULL, NULL), 0);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(out[i].events, numbered_until(at[i]));
        assert_int_equal(out[i].lost, 0);
    }
}

static void test_tally(void **state)
{
    uint64_t dice = test_seed(5);
    for (int small = 0; small < 2; small++) {
        struct opened o;
        open_all(&o, write_numbered(small ? "small" : "large", small ? 4096 : 1 << 20));
        for (int i = 0; i < 30; i++) {
            o.sources[0].map = i % 2 ? later : NULL;
            check_tally(&o.sources[0], i % 2, &dice);
        }
        close_all(&o);
    }
}

/* Recordings with losses, with packets that overlap, with times that step back: against all their items. */
static void test_tally_of_recordings(void **state)
{
    static const char *const recordings[] = {"traces/lost-events", "traces-public/synctraces"};
    for (size_t r = 0; r < sizeof recordings / sizeof *recordings; r++) {
        struct opened o;
        open_all(&o, data_or_skip(recordings[r]));
        for (size_t k = 0; k < o.n; k++) {
            enum { POINTS = 500 };
            struct ctf_tally out[POINTS] = {{0}}, truth[POINTS] = {{0}};
            int64_t at[POINTS], begin, end;
            struct ctf_merge *m;
            assert_true(ctf_trace_span(o.sources[k].trace, &begin, &end));
            for (int i = 0; i < POINTS; i++)
                at[i] = begin + (end - begin) / (POINTS - 2) * i;
            assert_int_equal(ctf_source_tally(&o.sources[k], at, POINTS, out, never, NULL, NULL), 0);
            assert_int_equal(ctf_merge_new(&o.sources[k], 1, everything, -1, &m, NULL), 0);
            event_vec all = read_all(m);
            for (size_t e = 0; e < all.n; e++)
                for (int i = 0; i < POINTS; i++)
                    if (all.v[e].cls->item == CTF_EVENT)
                        truth[i].events += all.v[e].ts <= at[i];
                    else if (all.v[e].cls->item == CTF_LOST_EVENTS && all.v[e].ts <= at[i])
                        truth[i].lost += ((const struct ctf_loss *)(const void *)all.v[e].data)->count;
            assert_memory_equal(out, truth, sizeof out);
            vec_free(&all);
            ctf_merge_free(m);
        }
        close_all(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_counted_in_parts),
        cmocka_unit_test(test_remembered),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_tally),
        cmocka_unit_test(test_tally_of_recordings),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
