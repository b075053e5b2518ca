/* SPDX-License-Identifier: MIT */
/* Packets that are odd or wrong: order, sizes, counters, damage, copies, strangers among the files. */
#include "stream_made.h"

/* ---- packets ---- */

static void test_packets_out_of_order_and_overlapping(void **state)
{
    start_bytes(false);
    plain_packet(3000, 4000, 0, 0, 10);
    plain_packet(1000, 2500, 0, 0, 15); /* overlaps the next two */
    plain_packet(2000, 3100, 0, 0, 11);
    read_bytes("order", PLAIN);
    assert_int_equal(all.n, 36);
    assert_int_equal(totals_of(&all).backwards, 0);
    assert_int_equal(ctf_trace_streams(o.sources[0].trace), 1);
    int64_t begin, end;
    assert_true(ctf_trace_span(o.sources[0].trace, &begin, &end));
    assert_true(begin == 1000 && end == 4000);
    done();
}

static void test_times_stepping_back_inside_a_packet(void **state)
{
    start_bytes(false);
    size_t at = begin_packet(100, 200, 0, 0);
    for (uint64_t i = 0; i < 6; i++)
        extended(1, i % 2 ? 150 - i : 150 + i, 1), put(&b, i, 4);
    end_packet(at, 0);
    read_bytes("back", PLAIN);
    assert_int_equal(all.n, 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(field(i, "x"), i);
    struct ctf_event ev;
    assert_int_equal(ctf_merge_seek(o.merge, 3, NULL), 0);
    assert_int_equal(ctf_merge_next(o.merge, &ev, 1), 1);
    assert_true(ev.payload_bits == all.v[3].payload_bits);
    done();
}

static void test_discarded_counter_wraps(void **state)
{
    start_bytes(false);
    plain_packet(1000, 1100, 0xfffffff0u, 0, 1);
    plain_packet(2000, 2100, 4, 0, 1); /* 20 more, over 2^32 */
    plain_packet(3000, 3100, 4, 0, 1);
    plain_packet(4000, 4100, 2, 0, 1); /* decreasing counter: another run, no information */
    read_bytes("wrap", PLAIN);
    struct totals t = totals_of(&all);
    assert_int_equal(t.events, 4);
    assert_true(t.lost_events == UINT64_C(0xfffffff0) + 20);
    assert_int_equal(all.v[2].cls->item, CTF_LOST_EVENTS); /* first loss, event, second loss */
    const struct ctf_loss *l = (const struct ctf_loss *)all.v[2].data;
    assert_true(
        all.v[2].ts == 1100 && l->begin == 1100 && l->end == 2100 && l->count == 20 && l->begin_known && l->end_known);
    l = (const struct ctf_loss *)all.v[0].data;
    assert_true(all.v[0].cls->item == CTF_LOST_EVENTS && !l->begin_known && l->end == 1100);
    done();
}

static void test_packet_that_was_not_closed(void **state)
{
    start_bytes(false);
    plain_packet(1000, 1100, 0, 0, 3);
    size_t at = begin_packet(2000, 0, 0, 0);
    for (int i = 0; i < 5; i++)
        compact(1, (uint32_t)(2000 + i)), put(&b, (uint64_t)i + 1, 4);
    patch(&b, at + 48, (64 + 5 * 8 + 1000) * 8, 8); /* content size 0 */
    b.n += 1000;
    read_bytes("unclosed", PLAIN);
    assert_int_equal(all.n, 8);
    assert_true(all.v[7].ts == 2004);
    struct ctf_stream_info info;
    ctf_trace_stream(o.sources[0].trace, 0, &info);
    assert_true(info.end == 2004);
    done();
}

static void test_last_packet_cut_off(void **state)
{
    start_bytes(false);
    plain_packet(1000, 1100, 0, 0, 3);
    plain_packet(2000, 2100, 0, 0, 10);
    b.n -= 40 + 3 * 8 + 2; /* padding, three events, half of a fourth */
    read_bytes("cut", PLAIN);
    assert_int_equal(all.n, 9);
    assert_true(problem_says("cut off"));
    done();
}

/* A flipped bit in one packet's cpu_id: its stream is one CPU's all the same. */
static void test_damaged_cpu_number(void **state)
{
    start_bytes(false);
    for (uint32_t i = 0; i < 5; i++)
        plain_packet(1000 + 100 * i, 1050 + 100 * i, 0, i == 2 ? 1u << 30 : 3, 2);
    read_bytes("cpu", PLAIN);
    assert_int_equal(ctf_trace_streams(o.sources[0].trace), 1);
    assert_int_equal(all.n, 10);
    for (size_t i = 0; i < all.n; i++)
        assert_int_equal(all.v[i].cpu, 3);
    assert_true(problem_says("its cpu_id is 1073741824, that of the other packets of the stream 3"));
    done();
}

/* A stream that no instance id ties to one CPU may hold several. */
static void test_cpus_in_one_stream(void **state)
{
    start_bytes(false);
    for (uint32_t i = 0; i < 5; i++)
        plain_packet(1000 + 100 * i, 1050 + 100 * i, 0, i == 2 ? 7 : 3, 2);
    read_bytes("cpus", PLAIN);
    for (size_t i = 0; i < all.n; i++)
        assert_int_equal(all.v[i].cpu, i / 2 == 2 ? 7 : 3);
    assert_int_equal(problem_count(), 0);
    done();
}

static void test_unknown_event_id(void **state)
{
    start_bytes(false);
    size_t at = begin_packet(10, 20, 0, 0);
    compact(1, 11), put(&b, 1, 4);
    compact(7, 12), put(&b, 1, 4);
    compact(1, 13), put(&b, 1, 4);
    end_packet(at, 0);
    plain_packet(30, 40, 0, 0, 4);
    read_bytes("unknown-id", PLAIN);
    assert_int_equal(all.n, 5);
    assert_true(problem_says("no event 7"));
    done();
}

static void test_unknown_stream_id_and_uuid(void **state)
{
    start_bytes(false);
    plain_packet(10, 20, 0, 0, 2);
    patch(&b, 20, 9, 4);
    read_bytes("unknown-stream", PLAIN);
    assert_int_equal(all.n, 0);
    assert_true(problem_says("no such stream"));
    done();
    start_bytes(false);
    plain_packet(10, 20, 0, 0, 2);
    b.v[5] ^= 1;
    read_bytes("uuid", PLAIN);
    assert_int_equal(all.n, 2);
    assert_true(problem_says("UUID"));
    done();
}

/* A damaged head costs its packet; the next page with a good head is where reading goes on. */
static void test_damaged_head_in_the_middle(void **state)
{
    start_bytes(false);
    for (int i = 0; i < 4; i++) {
        plain_packet((uint64_t)i * 1000, (uint64_t)i * 1000 + 500, 0, 0, 5);
        size_t at = (size_t)i * 4096;
        patch(&b, at + 48, 4096 * 8, 8);
        b.n = at + 4096;
    }
    b.v[4096] ^= 0xff;
    read_bytes("damaged-head", PLAIN);
    assert_int_equal(all.n, 15);
    assert_true(problem_says("4096 bytes skipped"));
    done();
}

static void test_sizes_that_make_no_sense(void **state)
{
    static const struct {
        uint64_t content, packet;
        size_t events;
    } cases[] = {
        {UINT64_MAX, UINT64_MAX, 0},
        {1ull << 60, 1ull << 60, 4},
        {0, 0, 4},
        {64 * 8, 0, 0},
        {8, 16, 0},
        {64 * 8, 1ull << 63, 0},
        {(64 + 32) * 8, 1ull << 60, 4},
        {(64 + 32) * 8 + 3, (64 + 32) * 8 + 3, 0},
        {UINT64_MAX - 7, UINT64_MAX - 7, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char dir[32];
        start_bytes(false);
        plain_packet(10, 20, 0, 0, 4);
        b.n = 64 + 32;
        patch(&b, 40, cases[i].content, 8);
        patch(&b, 48, cases[i].packet, 8);
        snprintf(dir, sizeof dir, "sizes-%zu", i);
        read_bytes(dir, PLAIN);
        if (all.n != cases[i].events)
            fail_msg("case %zu: %zu events", i, all.n);
        done();
    }
}

/* Two bytes each, one event: all are read, as babeltrace2 does. */
static void test_a_hundred_thousand_tiny_packets(void **state)
{
    enum { PACKETS = 100000 };
    uint8_t *v = mem_alloc(2 * PACKETS);
    for (size_t i = 0; i < PACKETS; i++) {
        v[2 * i] = 16;
        v[2 * i + 1] = (uint8_t)(i % 251);
    }
    write_text("tiny", "metadata",
        TYPES
        "trace { major = 1; minor = 8; byte_order = le; }; stream { packet.context := struct { uint8_t packet_size; "
        "}; };\n"
        "event { name = e; fields := struct { uint8_t x; }; };\n");
    write_file("tiny", "stream", v, 2 * PACKETS);
    free(v);
    read_made("tiny");
    assert_int_equal(all.n, PACKETS);
    assert_int_equal(problem_count(), 0);
    assert_int_equal(field(PACKETS - 1, "x"), (PACKETS - 1) % 251);
    done();
}

static void test_empty_events_end(void **state)
{
    start_bytes(false);
    put(&b, 0, 8);
    read_bytes("empty-events",
        TYPES
        "trace { major = 1; minor = 8; byte_order = le; }; stream { }; event { name = nothing; fields := struct { };"
        " };\n");
    assert_int_equal(all.n, 0);
    assert_true(problem_says("without any bit"));
    done();
}

static void test_lengths_and_strings_that_do_not_fit(void **state)
{
    static const uint64_t lengths[] = {UINT64_MAX, 1ull << 63, 1ull << 61, 1ull << 40, 12};
    for (size_t i = 0; i < 5; i++) {
        char dir[32];
        start_bytes(false);
        size_t at = begin_packet(10, 20, 0, 0);
        compact(1, 11), put(&b, 2, 8), put(&b, 1, 8), put(&b, 2, 8), put_string(&b, "ok");
        compact(1, 12), put(&b, lengths[i], 8), put(&b, 1, 8);
        end_packet(at, 0);
        snprintf(dir, sizeof dir, "lengths-%zu", i);
        read_bytes(dir,
            TYPES TRACE("le") CLOCK(1000000000, 0)
                CONTEXT COMPACT STREAM EVENT(1, "e", "uint64_t n; uint64_t list[n]; string s;"));
        assert_int_equal(all.n, 1);
        assert_true(problem_says("does not fit"));
        done();
    }
    start_bytes(false);
    size_t at = begin_packet(10, 20, 0, 0);
    compact(1, 12);
    memset(b.v + b.n, 'x', 100), b.n += 100;
    end_packet(at, 0);
    put(&b, 0, 8);
    read_bytes("no-nul", TYPES TRACE("le") CLOCK(1000000000, 0) CONTEXT COMPACT STREAM EVENT(1, "e", "string s;"));
    assert_int_equal(all.n, 0);
    assert_true(problem_says("does not fit"));
    done();
}

static void count_leaf(void *arg, const struct ctf_value *v)
{
    ++*(uint64_t *)arg;
}

/* Billions of elements without a bit, one inside the other: read and shown in no time. */
static void test_elements_without_bits(void **state)
{
    start_bytes(false);
    put(&b, 0xffffff, 4), put(&b, 7, 1);
    read_bytes("nothing-elements",
        TYPES "trace { major = 1; minor = 8; byte_order = le; }; stream { };\n"
              "event { name = e; fields := struct { uint32_t n; struct { } list[n]; uint8_t end; }; };\n");
    assert_int_equal(all.n, 0);
    assert_true(problem_says("does not fit"));
    done();
    uint64_t shown = 0;
    struct ctf_visitor v = {count_leaf, count_leaf, count_leaf, &shown};
    start_bytes(false);
    put(&b, 7, 1);
    read_bytes("nothing-arrays",
        TYPES "trace { major = 1; minor = 8; byte_order = le; }; stream { };\n"
              "event { name = e; fields := struct { struct { } list[4000][4000][4000]; uint8_t end; }; };\n");
    assert_int_equal(all.n, 1);
    assert_int_equal(field(0, "end"), 7);
    ctf_visit(&all.v[0], CTF_PAYLOAD, &v);
    assert_true(shown < 1000000);
    done();
}

static void test_zero_length_files_and_strangers(void **state)
{
    start_bytes(false);
    plain_packet(10, 20, 0, 0, 4);
    write_text("strangers", "metadata", PLAIN);
    write_file("strangers", "empty", "", 0);
    write_text("strangers", "README", "This is text and not a stream of packets, of course.");
    write_file("strangers", "stream", b.v, b.n);
    read_made("strangers");
    assert_int_equal(all.n, 4);
    assert_int_equal(ctf_trace_streams(o.sources[0].trace), 1);
    assert_true(problem_says("wrong magic"));
    done();
}

/* ---- pieces ---- */

static void test_packets_recorded_twice_count_once(void **state)
{
    start_bytes(false);
    plain_packet(1000, 1100, 0, 1, 3);
    plain_packet(2000, 2100, 0, 1, 4);
    size_t second = b.n;
    write_text("twice", "placeholder", "");
    write_text("twice/one", "metadata", PLAIN);
    write_file("twice/one", "stream", b.v, b.n);
    size_t from = 64 + 3 * 8 + 40;
    plain_packet(3000, 3100, 0, 1, 5);
    write_text("twice/two", "metadata", PLAIN);
    write_file("twice/two", "stream", b.v + from, b.n - from);
    read_made("twice");
    assert_int_equal(o.n, 1);
    assert_int_equal(o.groups[0].n, 2);
    assert_int_equal(ctf_trace_streams(o.sources[0].trace), 1);
    assert_int_equal(all.n, 12);
    assert_true(second > from);
    done();
}

static void test_links_do_not_loop(void **state)
{
    char target[600], link[700];
    start_bytes(false);
    plain_packet(10, 20, 0, 0, 4);
    write_text("links", "placeholder", "");
    write_text("links/t", "metadata", PLAIN);
    write_file("links/t", "stream", b.v, b.n);
    snprintf(target, sizeof target, "%s/links", scratch);
    snprintf(link, sizeof link, "%s/links/up", scratch);
    assert_int_equal(symlink(target, link), 0);
    snprintf(link, sizeof link, "%s/links/same", scratch);
    assert_int_equal(symlink("t", link), 0);
    read_made("links");
    assert_int_equal(o.n, 1);
    assert_int_equal(o.groups[0].n, 1);
    assert_int_equal(all.n, 4);
    done();
}

static void test_nothing_to_find(void **state)
{
    struct ctf_group *groups;
    size_t n;
    struct err e = {0};
    write_text("nothing", "file", "");
    char path[600];
    snprintf(path, sizeof path, "%s/nothing", scratch);
    assert_int_equal(ctf_discover(path, &groups, &n, &e), ERR_NOTFOUND);
    assert_int_equal(n, 0);
    assert_true(ctf_discover("/does/not/exist", &groups, &n, &e) < 0);
}

static void test_fingerprint_follows_files(void **state)
{
    start_bytes(false);
    plain_packet(10, 20, 0, 0, 4);
    read_bytes("print", PLAIN);
    uint64_t first = ctf_trace_fingerprint(o.sources[0].trace);
    done();
    read_made("print");
    assert_true(ctf_trace_fingerprint(o.sources[0].trace) == first);
    done();
    plain_packet(30, 40, 0, 0, 4);
    read_bytes("print", PLAIN);
    assert_true(ctf_trace_fingerprint(o.sources[0].trace) != first);
    done();
}

/* An index that does not fit its file is not believed. */
static void test_index_that_lies(void **state)
{
    struct bytes *index = calloc(1, sizeof *index);
    start_bytes(false);
    plain_packet(1000, 1100, 0, 0, 3);
    plain_packet(2000, 2100, 0, 0, 4);
    for (int lie = 0; lie < 4; lie++) {
        index->n = 0;
        index->big = true;
        put(index, 0xC1F1DCC1, 4), put(index, 1, 4), put(index, 0, 4), put(index, 56, 4);
        uint64_t sizes[2] = {64 + 3 * 8 + 40, 64 + 4 * 8 + 40};
        for (uint64_t i = 0; i < 2; i++) {
            put(index, i ? sizes[0] : 0, 8), put(index, sizes[i] * 8, 8),
                put(index, (sizes[i] - 40) * 8 + (lie == 1 ? 64 : 0), 8);
            put(index, 1000 + 1000 * i, 8), put(index, 1100 + 1000 * i + (lie == 2), 8), put(index, 0, 8),
                put(index, lie == 3 ? 5 : 0, 8);
        }
        write_text("lie", "metadata", PLAIN);
        write_file("lie/index", "stream.idx", index->v, index->n);
        write_file("lie", "stream", b.v, b.n);
        read_made("lie");
        struct ctf_stream_info info;
        ctf_trace_stream(o.sources[0].trace, 0, &info);
        assert_int_equal(all.n, 7);
        assert_int_equal(info.packets, 2);
        assert_true(info.end == 2100);
        done();
    }
    free(index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packets_out_of_order_and_overlapping),
        cmocka_unit_test(test_times_stepping_back_inside_a_packet),
        cmocka_unit_test(test_discarded_counter_wraps),
        cmocka_unit_test(test_packet_that_was_not_closed),
        cmocka_unit_test(test_last_packet_cut_off),
        cmocka_unit_test(test_damaged_cpu_number),
        cmocka_unit_test(test_cpus_in_one_stream),
        cmocka_unit_test(test_unknown_event_id),
        cmocka_unit_test(test_unknown_stream_id_and_uuid),
        cmocka_unit_test(test_damaged_head_in_the_middle),
        cmocka_unit_test(test_sizes_that_make_no_sense),
        cmocka_unit_test(test_a_hundred_thousand_tiny_packets),
        cmocka_unit_test(test_empty_events_end),
        cmocka_unit_test(test_lengths_and_strings_that_do_not_fit),
        cmocka_unit_test(test_elements_without_bits),
        cmocka_unit_test(test_zero_length_files_and_strangers),
        cmocka_unit_test(test_packets_recorded_twice_count_once),
        cmocka_unit_test(test_links_do_not_loop),
        cmocka_unit_test(test_nothing_to_find),
        cmocka_unit_test(test_fingerprint_follows_files),
        cmocka_unit_test(test_index_that_lies),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
