/* SPDX-License-Identifier: MIT */
/* Reading streams made by hand: event headers of all kinds, clocks that wrap, fields whose place depends on data. */
#include "stream_made.h"

/* ---- headers and clocks ---- */

static void compact_events(bool big)
{
    start_bytes(big);
    size_t at = begin_packet(0x7fffff0, 0x30000000, 0, 3);
    compact(1, 0x7fffff8); /* 27 bits: as the begin */
    put(&b, 11, 4);
    compact(1, 5); /* wrapped once: 0x8000005 */
    put(&b, 12, 4);
    compact(2, 5); /* same time */
    compact(1, 4); /* wrapped again: 0x10000004 */
    put(&b, 13, 4);
    extended(1, 0x20000000, 1);
    put(&b, 14, 4);
    extended(70000, 0x20000001, 1);
    put(&b, 15, 1);
    compact(2, 0x20000002 & 0x7ffffff);
    end_packet(at, 100);
    read_bytes(big ? "compact-be" : "compact-le",
        big ? TYPES TRACE("be") CLOCK(1000000000, 1000) CONTEXT COMPACT STREAM EVENT(1, "one", "uint32_t x;")
                  EVENT(2, "two", "") EVENT(70000, "far", "uint8_t y;")
            : TYPES TRACE("le") CLOCK(1000000000, 1000) CONTEXT COMPACT STREAM EVENT(1, "one", "uint32_t x;")
                  EVENT(2, "two", "") EVENT(70000, "far", "uint8_t y;"));
    static const int64_t times[] = {0x7fffff8, 0x8000005, 0x8000005, 0x10000004, 0x20000000, 0x20000001, 0x20000002};
    assert_int_equal(all.n, 7);
    for (size_t i = 0; i < 7; i++) {
        assert_true(all.v[i].ts == times[i] + 1000);
        assert_int_equal(all.v[i].cpu, 3);
    }
    assert_int_equal(field(0, "x"), 11);
    assert_int_equal(field(3, "x"), 13);
    assert_int_equal(field(4, "x"), 14);
    assert_string_equal(all.v[5].cls->name, "far");
    assert_int_equal(field(5, "y"), 15);
    assert_int_equal(problem_count(), 0);
    done();
}

static void test_compact_headers(void **state)
{
    compact_events(false);
    compact_events(true);
}

static void large_events(bool big)
{
    start_bytes(big);
    size_t at = begin_packet(0xfffffff0u, 0x300000000u, 0, 0);
    put(&b, 1, 2);
    put(&b, 0xfffffff1u, 4);
    put(&b, 21, 4);
    put(&b, 1, 2);
    put(&b, 7, 4); /* wrapped: 0x100000007 */
    put(&b, 22, 4);
    extended(2, 0x200000000u, 2);
    end_packet(at, 0);
    read_bytes(big ? "large-be" : "large-le",
        big ? TYPES TRACE("be") CLOCK(1000000000, 0) CONTEXT LARGE STREAM EVENT(1, "one", "int32_t _x;")
                  EVENT(2, "two", "")
            : TYPES TRACE("le") CLOCK(1000000000, 0) CONTEXT LARGE STREAM EVENT(1, "one", "int32_t _x;")
                  EVENT(2, "two", ""));
    assert_int_equal(all.n, 3);
    assert_true(all.v[0].ts == 0xfffffff1u && all.v[1].ts == 0x100000007 && all.v[2].ts == 0x200000000);
    assert_int_equal(field(0, "x"), 21);
    assert_int_equal(field(1, "_x"), 22);
    done();
}

static void test_large_headers(void **state)
{
    large_events(false);
    large_events(true);
}

/* Checks ARM's layout: numbers at multiples of their size, so a header's length depends on its start. */
static void test_natural_alignment(void **state)
{
    start_bytes(false);
    size_t at = begin_packet(0, 1000, 0, 0);
    put(&b, 1, 2), put(&b, 0, 2), put(&b, 10, 4), put(&b, 7, 1);  /* 64: id, gap, time; 72: x */
    put(&b, 0, 1), put(&b, 1, 2), put(&b, 20, 4), put(&b, 8, 1);  /* 74: id; 76: time; 80: x */
    put(&b, 0, 1), put(&b, 2, 2), put(&b, 30, 4), put(&b, 99, 8); /* 82: id; 84: time; 88: y */
    end_packet(at, 0);
    read_bytes("natural",
        TYPES
        "typealias integer { size = 16; align = 16; } := u16; typealias integer { size = 32; align = 32; } := u32;\n"
        "typealias integer { size = 64; align = 64; } := u64;\n" TRACE("le") CLOCK(1000000000,
            0) "typealias integer { size = 32; align = 32; map = clock.c.value; } := u32c; typealias integer { size "
               "= 64; align = 64; map = clock.c.value; } := u64c;\n" CONTEXT
               "struct header { enum : u16 { compact = 0 ... 65534, extended = 65535 } id;\n"
               " variant <id> { struct { u32c timestamp; } compact; struct { u32 id; u64c timestamp; } extended; } "
               "v; } align(16);\n" STREAM EVENT(1, "small", "uint8_t x;") EVENT(2, "big", "u64 y;"));
    assert_int_equal(all.n, 3);
    assert_true(all.v[0].ts == 10 && all.v[1].ts == 20 && all.v[2].ts == 30);
    assert_int_equal(field(0, "x"), 7);
    assert_int_equal(field(1, "x"), 8);
    assert_int_equal(field(2, "y"), 99);
    done();
}

static void test_simple_headers_and_other_clocks(void **state)
{
    start_bytes(false);
    size_t at = begin_packet(1, 1u << 30, 0, 0);
    put(&b, 2, 4), put(&b, 3, 8);
    put(&b, 2, 4), put(&b, 1u << 30, 8);
    end_packet(at, 0);
    /* 3 cycles of 32768 Hz are 91552.7 ns; 2^30 cycles are 32768 s. Offset: 2 s and 16384 cycles. */
    read_bytes("slow-clock",
        TYPES TRACE("le") "clock { name = c; freq = 32768; offset_s = 2; offset = 16384; };\n"
                          "typealias integer { size = 64; align = 8; map = clock.c.value; } := uint64_clock;\n" CONTEXT
                          "struct header { uint32_t id; uint64_clock timestamp; };\n" STREAM EVENT(2, "two", ""));
    assert_int_equal(all.n, 2);
    assert_true(all.v[0].ts == 2500000000 + 91552);
    assert_true(all.v[1].ts == 2500000000 + 32768000000000);
    done();
}

static void test_no_packet_head_at_all(void **state)
{
    start_bytes(false);
    put(&b, 1, 1), put_string(&b, "first");
    put(&b, 0, 1), put(&b, 500, 2);
    put(&b, 1, 1), put_string(&b, "");
    read_bytes("bare",
        TYPES
        "trace { major = 1; minor = 8; byte_order = le; };\n stream { event.header := struct { uint8_t id; }; };\n"
        "event { name = n; id = 0; fields := struct { uint16_t v; }; }; event { name = s; id = 1; fields := struct "
        "{ string t; }; };\n");
    assert_int_equal(all.n, 3);
    check_string(0, "t", "first");
    assert_int_equal(field(1, "v"), 500);
    check_string(2, "t", "");
    assert_true(all.v[0].ts == 0);
    assert_int_equal(problem_count(), 0);
    int64_t begin, end;
    assert_false(ctf_trace_span(o.sources[0].trace, &begin, &end));
    done();
}

/* Checks events without headers and ids, which follow each other bit by bit. */
static void test_bit_packed_events(void **state)
{
    static const uint8_t packed[] = {
        0xb1, 0x6c, 0xd0}; /* 5-bit values from the low end: 17, 5, 27, 1 (0xb1 = 10110001, 0x6c = 01101100, 0xd0) */
    start_bytes(false);
    memcpy(b.v, packed, 3);
    b.n = 3;
    read_bytes("bits",
        TYPES "trace { major = 1; minor = 8; byte_order = le; };\n stream { };\n"
              " event { name = e; fields := struct { uint5_t v; }; };\n");
    uint32_t word = 0xd06cb1;
    assert_int_equal(all.n, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(field(i, "v"), word >> 5 * i & 31);
    assert_true(problem_says("does not fit")); /* 4 bits are left */
    done();
}

/* ---- fields ---- */

static void test_fields_behind_data(void **state)
{
    start_bytes(false);
    size_t at = begin_packet(5, 50, 0, 0);
    compact(1, 10);
    put(&b, 2, 1), put(&b, 300, 2), put(&b, 400, 2); /* n, list */
    put_string(&b, "text");
    put(&b, 1, 1), put(&b, 0x11223344, 4);                      /* tag `which` = second */
    put(&b, 1, 1), put(&b, 1, 1), put(&b, 2, 1), put(&b, 3, 1); /* single row of three */
    put(&b, (uint64_t)-5, 4);
    compact(1, 11);
    put(&b, 0, 1);
    put_string(&b, "");
    put(&b, 0, 1), put_string(&b, "chosen");
    put(&b, 0, 1);
    put(&b, (uint64_t)-6, 4);
    end_packet(at, 8);
    read_bytes("fields",
        TYPES TRACE("le") CLOCK(1000000000, 0) CONTEXT COMPACT STREAM EVENT(1, "e",
            "uint8_t n; uint16_t list[n]; string s; enum : uint8_t { first, second } which;"
            " variant <which> { string first; struct { uint32_t deep; } second; } v;"
            " uint8_t rows; struct { uint8_t a; uint8_t b; uint8_t c; } row[rows]; int32_t last;"));
    assert_int_equal(all.n, 2);
    check_string(0, "s", "text");
    assert_int_equal(field(0, "which"), 1);
    assert_int_equal(field(0, "v.second.deep"), 0x11223344);
    assert_true(absent(1, "v.second.deep"));
    assert_int_equal(field(0, "last"), -5);
    assert_int_equal(field(1, "last"), -6);
    check_string(1, "v.first", "chosen");
    struct ctf_access a;
    size_t n;
    assert_false(ctf_access_find(all.v[0].cls, CTF_PAYLOAD, "v.third", &a));
    assert_false(ctf_access_find(all.v[0].cls, CTF_EVENT_CONTEXT, "n", &a));
    assert_true(ctf_access_find(all.v[0].cls, CTF_PAYLOAD, "v.first", &a));
    assert_null(ctf_read_string(&all.v[0], &a, &n));
    assert_true(ctf_access_find(all.v[0].cls, CTF_PAYLOAD, "n", &a));
    assert_int_equal(a.mode, 1);
    done();
}

/* Contexts before the payload; lengths that lie in the packet's context and in the event's header. */
static void test_contexts_and_lengths_elsewhere(void **state)
{
    start_bytes(false);
    put(&b, 3, 1); /* packet context: k */
    put(&b, 1, 1), put(&b, 77, 4), put(&b, 5, 1), put(&b, 1, 1), put(&b, 2, 1), put(&b, 3, 1), put(&b, 9, 1);
    put(&b, 2, 1), put(&b, 78, 4), put(&b, 6, 1), put(&b, 4, 1), put(&b, 5, 1), put(&b, 6, 1), put(&b, 9, 1),
        put(&b, 8, 1);
    read_bytes("contexts",
        TYPES
        "trace { major = 1; minor = 8; byte_order = le; };\n"
        "stream { packet.context := struct { uint8_t k; }; event.header := struct { uint8_t many; }; event.context "
        ":= struct { int32_t _tid; }; };\n"
        "event { name = e; context := struct { uint8_t c; }; fields := struct { uint8_t list[stream.packet.context.k];"
        " uint8_t more[stream.event.header.many]; }; };\n");
    struct ctf_access tid, c, list, more;
    bool present;
    size_t n;
    assert_int_equal(all.n, 2);
    assert_true(ctf_access_find(all.v[0].cls, CTF_STREAM_EVENT_CONTEXT, "tid", &tid));
    assert_true(ctf_access_find(all.v[0].cls, CTF_EVENT_CONTEXT, "c", &c));
    assert_true(ctf_access_find(all.v[0].cls, CTF_PAYLOAD, "list", &list));
    assert_true(ctf_access_find(all.v[0].cls, CTF_PAYLOAD, "more", &more));
    assert_int_equal(tid.mode, 1);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(ctf_read_int(&all.v[i], &tid), 77 + (int)i);
        assert_int_equal(ctf_read_slow(&all.v[i], &c, &present), 5 + (int)i);
        const char *s = ctf_read_string(&all.v[i], &list, &n);
        assert_int_equal(n, 3);
        assert_int_equal(s[0], 1 + 3 * (int)i);
        s = ctf_read_string(&all.v[i], &more, &n);
        assert_int_equal(n, 1 + i);
        assert_int_equal(s[i], 9 - (int)i);
    }
    done();
}

struct trail {
    char text[4096];
};

static void trail_leaf(void *arg, const struct ctf_value *v)
{
    struct trail *t = arg;
    size_t at = strlen(t->text);
    if (v->s)
        snprintf(t->text + at, sizeof t->text - at, "%s='%.*s' ", v->name ? v->name : "", (int)v->len, v->s);
    else if (v->type->kind == CTF_FLOAT)
        snprintf(t->text + at, sizeof t->text - at, "%s=%g ", v->name ? v->name : "", v->v.f);
    else
        snprintf(t->text + at, sizeof t->text - at, "%s=%ld ", v->name ? v->name : "", v->v.i);
}
static void trail_begin(void *arg, const struct ctf_value *v)
{
    struct trail *t = arg;
    size_t at = strlen(t->text);
    snprintf(t->text + at, sizeof t->text - at, "%s{%zu ", v->name ? v->name : "", v->len);
}
static void trail_end(void *arg, const struct ctf_value *v)
{
    strcat(((struct trail *)arg)->text, "} ");
}

static void test_visiting(void **state)
{
    start_bytes(false);
    put(&b, 2, 1), put(&b, 1, 1), put(&b, 2, 1);
    put_string(&b, "hi");
    memcpy(b.v + b.n, "abc\0\0", 5), b.n += 5;
    put(&b, 0, 1), put(&b, 42, 4);
    float f = 1.5f;
    memcpy(b.v + b.n, &f, 4), b.n += 4;
    put(&b, 0x9d, 1); /* 5 bits: 29 = -3, 3 bits: 4 */
    read_bytes("visit",
        TYPES "trace { major = 1; minor = 8; byte_order = le; };\n"
              "typealias integer { size = 8; align = 8; encoding = UTF8; } := char;\n"
              "event { name = e; fields := struct { uint8_t n; uint8_t list[n]; string s; char text[5];"
              " enum : uint8_t { one, two } t; variant <t> { uint32_t one; string two; } v; struct { floating_point { "
              "exp_dig = 8; mant_dig = 24; align = 8; } x; } q;"
              " integer { size = 5; signed = true; } a; integer { size = 3; } b; uint8_t none[0]; }; };\n");
    struct trail t = {""};
    struct ctf_visitor v = {trail_leaf, trail_begin, trail_end, &t};
    assert_int_equal(all.n, 1);
    ctf_visit(&all.v[0], CTF_PAYLOAD, &v);
    assert_string_equal(
        t.text, "{0 n=2 list{2 =1 =2 } s='hi' text='abc' t=0 v{0 one=42 } q{0 x=1.5 } a=-3 b=4 none{0 } } ");
    done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compact_headers),
        cmocka_unit_test(test_large_headers),
        cmocka_unit_test(test_natural_alignment),
        cmocka_unit_test(test_simple_headers_and_other_clocks),
        cmocka_unit_test(test_no_packet_head_at_all),
        cmocka_unit_test(test_bit_packed_events),
        cmocka_unit_test(test_fields_behind_data),
        cmocka_unit_test(test_contexts_and_lengths_elsewhere),
        cmocka_unit_test(test_visiting),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
