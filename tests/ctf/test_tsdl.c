/* SPDX-License-Identifier: MIT */
/* Declarations: kinds of types, sizes and alignments, references, errors with their lines. Expected values follow from
 * the CTF 1.8.3 specification. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "../base/test.h"
#include "base/file.h"
#include "base/text.h"
#include "ctf/metadata.h"

#define HEAD \
    "/* CTF 1.8 */ typealias integer { size = 8; } := u8; typealias integer { size = 8; signed = true; } := i8; " \
    "typealias integer { size = 32; align = 32; } := u32; trace { major = 1; minor = 8; byte_order = le; };\n"
#define STREAM "stream { event.header := struct { u8 id; }; };\n"
#define FIELDS(f) HEAD STREAM "event { name = e; id = 0; fields := struct { " f " }; };"

static struct ctf_metadata parse(const char *text)
{
    struct ctf_metadata m;
    struct err e = {0};
    if (ctf_metadata_parse("metadata", text, strlen(text), NULL, &m, &e) != 0)
        fail_msg("%s\n%s", e.text, text);
    return m;
}

static const struct ctf_type *field(const struct ctf_type *t, const char *name)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (strcmp(t->u.fields[i].name, name) == 0)
            return t->u.fields[i].type;
    fail_msg("no field %s", name);
    return NULL;
}

static const struct ctf_type *payload(const struct ctf_metadata *m, size_t event)
{
    assert_true(m->schema->n_classes > event + 2);
    return m->schema->classes[event + 2]->scope[CTF_PAYLOAD];
}

static void test_integers(void **state)
{
    struct ctf_metadata m = parse(FIELDS(
        "integer { size = 12; } a; integer { size = 24; } b; integer { size = 64; align = 1; signed = yes; "
        "byte_order = be; base = o; } c;"
        "integer { size = 8; byte_order = network; encoding = UTF8; signed = no; base = 16; } d; integer { size = "
        "16; signed = 1; byte_order = native; } e;"
        "integer { size = 1; align = 1; signed = 0; base = binary; } f; floating_point { exp_dig = 11; mant_dig = "
        "53; align = 64; byte_order = be; } g;"
        "string { encoding = UTF8; } h;"));
    const struct ctf_type *p = payload(&m, 0), *t = field(p, "a");
    assert_int_equal(t->kind, CTF_INT);
    assert_int_equal(t->size_bits, 12);
    assert_int_equal(t->align_bits, 1);
    assert_int_equal(t->base, 10);
    assert_false(t->is_signed || t->big_endian || t->is_text);
    assert_int_equal(t->clock, -1);
    assert_int_equal(field(p, "b")->align_bits, 8);
    t = field(p, "c");
    assert_true(t->is_signed && t->big_endian);
    assert_int_equal(t->base, 8);
    t = field(p, "d");
    assert_true(t->big_endian && t->is_text && !t->is_signed);
    assert_int_equal(t->base, 16);
    assert_true(field(p, "e")->is_signed && !field(p, "e")->big_endian);
    assert_int_equal(field(p, "f")->base, 2);
    t = field(p, "g");
    assert_int_equal(t->kind, CTF_FLOAT);
    assert_int_equal(t->size_bits, 64);
    assert_int_equal(t->align_bits, 64);
    assert_true(t->big_endian);
    t = field(p, "h");
    assert_int_equal(t->kind, CTF_STRING);
    assert_int_equal(t->size_bits, -1);
    assert_int_equal(t->align_bits, 8);
    ctf_metadata_fini(&m, NULL);
}

static void test_sizes(void **state)
{
    struct ctf_metadata m = parse(FIELDS(
        "struct { u8 a; u32 b; u8 c; } s; struct { u8 a; u32 b; u8 c; } list[3]; struct { } empty; struct { u8 a; } "
        "align(64) wide;"
        "struct { integer { size = 3; } x; integer { size = 7; } y; } bits; u32 none[0]; u8 grid[2][3]; u32 pair[2];"
        " string s2[2];"
        "struct { u8 n; u32 v[n]; } var; integer { size = 5; } five[3]; integer { size = 5; align = 8; } padded[3];"));
    static const struct {
        const char *name;
        int64_t size;
        uint32_t align;
    } expected[] = {
        {"s", 72, 32},
        {"list", 96 + 96 + 72, 32},
        {"empty", 0, 1},
        {"wide", 8, 64},
        {"bits", 10, 1},
        {"none", 0, 32},
        {"grid", 48, 8},
        {"pair", 64, 32},
        {"s2", -1, 8},
        {"var", -1, 32},
        {"five", 15, 1},
        {"padded", 8 + 8 + 5, 8},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const struct ctf_type *t = field(payload(&m, 0), expected[i].name);
        if (t->size_bits != expected[i].size || t->align_bits != expected[i].align)
            fail_msg("%s: %lld bits, aligned to %u", expected[i].name, (long long)t->size_bits, t->align_bits);
    }
    const struct ctf_type *grid = field(payload(&m, 0), "grid");
    assert_int_equal(grid->n, 2);
    assert_int_equal(grid->u.list.element->n, 3);
    assert_int_equal(payload(&m, 0)->align_bits, 64);
    ctf_metadata_fini(&m, NULL);
}

static void test_enums(void **state)
{
    struct ctf_metadata m = parse(
        HEAD "typealias integer { size = 64; signed = true; } := int;" STREAM
             "event { name = e; id = 0; fields := struct { enum { A, \"b c\" = 0x10, C, D = -9223372036854775808, E = "
             "010 ... 9223372036854775807 } i;"
             " enum : integer { size = 64; base = 16; } { A = 18446744073709551615, B = 0 ... 0xfffffffffffffffe, } u; "
             "enum tri : i8 { N = -1, Z, P } t; enum tri again[2]; }; };");
    const struct ctf_type *t = field(payload(&m, 0), "i");
    const struct {
        const char *label;
        int64_t lo, hi;
    } expected[] = {{"A", 0, 0}, {"b c", 16, 16}, {"C", 17, 17}, {"D", INT64_MIN, INT64_MIN}, {"E", 8, INT64_MAX}};
    assert_int_equal(t->kind, CTF_ENUM);
    assert_true(t->is_signed);
    assert_int_equal(t->n, 5);
    for (size_t i = 0; i < 5; i++) {
        const struct ctf_range *r = &t->u.enumeration.ranges[i];
        assert_string_equal(r->label, expected[i].label);
        assert_true(r->lo == expected[i].lo && r->hi == expected[i].hi);
    }
    t = field(payload(&m, 0), "u");
    assert_false(t->is_signed);
    assert_int_equal(t->base, 16);
    assert_int_equal(t->size_bits, 64);
    assert_true((uint64_t)t->u.enumeration.ranges[0].lo == UINT64_MAX &&
        (uint64_t)t->u.enumeration.ranges[1].hi == UINT64_MAX - 1);
    t = field(payload(&m, 0), "t");
    assert_int_equal(t->u.enumeration.container->kind, CTF_INT);
    assert_int_equal(t->u.enumeration.ranges[0].lo, -1);
    assert_int_equal(t->u.enumeration.ranges[2].hi, 1);
    assert_int_equal(field(payload(&m, 0), "again")->u.list.element->n, 3);
    ctf_metadata_fini(&m, NULL);
}

static void test_names(void **state)
{
    struct ctf_metadata m = parse(
        FIELDS("string event; u8 _event; u8 __x; u8 align; struct { u8 enum; } string; u8 _;"));
    const struct ctf_type *p = payload(&m, 0);
    static const char *const shown[] = {"event", "_event", "_x", "align", "string", ""};
    assert_int_equal(p->n, 6);
    for (uint32_t i = 0; i < p->n; i++)
        assert_string_equal(p->u.fields[i].shown, shown[i]);
    ctf_metadata_fini(&m, NULL);
}

/* Checks that every scope can refer to the ones before it; slots of the packet scopes are the same for all events of a
 * stream, and no two fields share one. */
static void test_references(void **state)
{
    struct ctf_metadata m = parse(
        "typealias integer { size = 8; } := u8; trace { major = 1; minor = 8; byte_order = be;"
        " packet.header := struct { u8 n; struct { u8 stream_id; } in; }; };\n"
        "stream { packet.context := struct { u8 n; u8 a[trace.packet.header.n]; enum : u8 { A, B } tag; }; "
        "event.header := struct { u8 id; u8 len; };\n"
        " event.context := struct { u8 v[stream.packet.context.n]; u8 w[stream.event.header.len]; enum : u8 { _A = "
        "1 ... 3, _B = 7, _A = 9 } t; }; };\n"
        "event { name = one; id = 0; context := struct { u8 c; variant <stream.packet.context.tag> { u8 B; u8 A; } "
        "v; };\n"
        " fields := struct { u8 a[event.context.c]; u8 b[c]; u8 d[in.stream_id]; variant <stream.event.context.t> { "
        "string _B; u8 _A; } v; u8 x; u8 y[x]; }; };\n"
        "event { name = two; id = 1; fields := struct { u8 x; u8 y[event.fields.x]; struct { u8 x; u8 z[x]; struct "
        "{ u8 q[x]; } in; } s; u8 r[s.x]; u8 o[len]; }; };");
    const struct ctf_schema *s = m.schema;
    const struct ctf_type *header = s->packet_header, *context = s->streams[0].packet_context,
                          *ev = s->streams[0].event_context, *one = payload(&m, 0);
    const struct ctf_type *own = s->classes[2]->scope[CTF_EVENT_CONTEXT], *two = payload(&m, 1),
                          *in_two = field(two, "s");
    const struct {
        const struct ctf_type *list, *target;
    } lengths[] = {
        {field(context, "a"), field(header, "n")},
        {field(ev, "v"), field(context, "n")},
        {field(ev, "w"), field(s->streams[0].event_header, "len")},
        {field(one, "a"), field(own, "c")},
        {field(one, "b"), field(own, "c")},
        {field(one, "d"), field(field(header, "in"), "stream_id")},
        {field(one, "y"), field(one, "x")},
        {field(two, "y"), field(two, "x")},
        {field(in_two, "z"), field(in_two, "x")},
        {field(field(in_two, "in"), "q"), field(in_two, "x")},
        {field(two, "r"), field(in_two, "x")},
        {field(two, "o"), field(s->streams[0].event_header, "len")},
    };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const struct ctf_ref *ref = lengths[i].list->u.list.length;
        assert_ptr_equal(ref->target, lengths[i].target);
        assert_true(ref->slot > 0 && ref->slot < CTF_SLOTS && ref->slot == ref->target->slot);
    }
    const struct ctf_ref *tag = field(one, "v")->tag;
    assert_ptr_equal(tag->target, field(ev, "t"));
    assert_int_equal(tag->n_choices, 3);
    assert_true(tag->choices[0].lo == 1 && tag->choices[0].hi == 3 && tag->choices[0].option == 1);
    assert_true(tag->choices[1].lo == 7 && tag->choices[1].option == 0);
    assert_true(tag->choices[2].hi == 9 && tag->choices[2].option == 1);
    assert_ptr_equal(field(own, "v")->tag->target, field(context, "tag"));
    assert_int_equal(field(own, "v")->tag->choices[0].option, 1);

    const struct ctf_type *of_one[] = {field(header, "n"), field(field(header, "in"), "stream_id"), field(context, "n"),
        field(context, "tag"), field(ev, "t"), field(s->streams[0].event_header, "len"), field(own, "c"),
        field(one, "x")};
    uint64_t seen = 0;
    for (size_t i = 0; i < sizeof of_one / sizeof *of_one; i++) {
        assert_false(seen >> of_one[i]->slot & 1);
        seen |= (uint64_t)1 << of_one[i]->slot;
    }
    assert_int_equal(field(header, "in")->u.fields[0].type->kind, CTF_INT);
    assert_int_equal(field(own, "c")->slot > field(ev, "t")->slot, true);
    ctf_metadata_fini(&m, NULL);
}

/* A named type with references is made anew for each place. */
static void test_named_types(void **state)
{
    struct ctf_metadata m = parse(HEAD
        "struct list { u8 n; u8 v[n]; }; variant any { u8 A; string B; }; typedef struct list two_lists[2];\n" STREAM
        "event { name = e; id = 0; fields := struct { struct list a, b; two_lists c; enum : u8 { A, B } t1; enum : "
        "u8 { B, A } t2; variant any <t1> v1; variant any <t2> v2; }; };\n"
        "event { name = f; id = 1; struct list { string s; }; fields := struct { struct list a; }; };\n"
        "event { name = g; id = 2; fields := struct list; };");
    const struct ctf_type *p = payload(&m, 0), *a = field(p, "a"), *b = field(p, "b");
    assert_ptr_not_equal(a, b);
    assert_ptr_equal(field(a, "v")->u.list.length->target, field(a, "n"));
    assert_ptr_equal(field(b, "v")->u.list.length->target, field(b, "n"));
    assert_int_not_equal(field(a, "n")->slot, field(b, "n")->slot);
    assert_int_equal(field(p, "c")->kind, CTF_ARRAY);
    assert_int_equal(field(p, "v1")->tag->choices[0].option, 0);
    assert_int_equal(field(p, "v2")->tag->choices[0].option, 1);
    assert_int_equal(field(field(payload(&m, 1), "a"), "s")->kind, CTF_STRING);
    assert_int_equal(payload(&m, 2)->n, 2);
    ctf_metadata_fini(&m, NULL);
}

/* The field declarations of babeltrace2's own tests of single fields: the part of each .mp file between the first two
 * lines "---". '@' stands for the field's name, at the end when there is none. */
static void test_babeltrace2_fields(void **state)
{
    static const struct {
        const char *file;
        uint8_t kind;
        int64_t size;
    } cases[] = {
        {"pass-fixed-len-uint-32-be", CTF_INT, 32},
        {"pass-fixed-len-uint-32-le", CTF_INT, 32},
        {"pass-static-len-array-of-struct", CTF_ARRAY, -1},
        {"pass-struct-empty", CTF_STRUCT, 16},
        {"pass-struct", CTF_STRUCT, -1},
        {"pass-variant", CTF_ARRAY, -1},
    };
    const char *data = getenv("WEFT_DATA") ? getenv("WEFT_DATA") : WEFT_SOURCE_ROOT "/../shared/data";
    size_t seen = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[4096], *file;
        size_t n;
        struct err e = {0};
        struct text t = {0};
        snprintf(path, sizeof path, "%s/traces-public/babeltrace2-tests/fields-ctf-1/%s.mp", data, cases[i].file);
        if (!test_have(path))
            continue;
        assert_int_equal(file_read(path, 1 << 20, &file, &n, &e), 0);
        seen++;
        char *begin = strstr(file, "---\n") + 4, *end = strstr(begin, "---\n"),
             *at = memchr(begin, '@', (size_t)(end - begin));
        text_puts(&t,
            HEAD
            "typealias integer { size = 16; signed = true; } := i16; typealias integer { size = 16; } := u16; "
            "typealias string := nt_str;"
            "typealias integer { size = 32; byte_order = be; } := u32be; typealias integer { size = 32; byte_order "
            "= le; } := u32le;"
            "typealias floating_point { exp_dig = 8; mant_dig = 24; align = 8; } := flt32;\n" STREAM
            "event { name = e; id = 0; fields := struct { ");
        text_put(&t, begin, (size_t)((at ? at : end) - begin));
        text_puts(&t, " root");
        if (at)
            text_put(&t, at + 1, (size_t)(end - at - 1));
        text_puts(&t, "; }; };");
        struct ctf_metadata m = parse(text_cstr(&t));
        const struct ctf_type *root = field(payload(&m, 0), "root");
        assert_int_equal(root->kind, cases[i].kind);
        assert_int_equal(root->size_bits, cases[i].size);
        ctf_metadata_fini(&m, NULL);
        text_fini(&t);
        free(file);
    }
    if (!seen)
        skip_without("no fields-ctf-1 below %s", data);
}

static void test_classes(void **state)
{
    struct ctf_metadata m = parse(
        HEAD "stream { id = 7; event.header := struct { u8 id; }; };\nstream { id = 2; };\n"
             "event { name = \"b:x\"; id = 4000000000; stream_id = 7; loglevel = -2; model.emf.uri = \"u\"; };\n"
             "event { name = a; stream_id = 2; };\n"
             "event { name = c.d; id = 3; stream_id = 7; fields := struct { }; };");
    const struct ctf_schema *s = m.schema;
    assert_int_equal(s->n_classes, 5);
    assert_int_equal(s->classes[0]->item, CTF_LOST_EVENTS);
    assert_string_equal(s->classes[0]->name, "[lost events]");
    assert_int_equal(s->classes[1]->item, CTF_LOST_PACKETS);
    assert_string_equal(s->classes[1]->name, "[lost packets]");
    const struct ctf_stream_class *seven = ctf_schema_stream(s, 7);
    assert_int_equal(seven->n, 2);
    const struct ctf_event_class *cls = ctf_stream_class_event(seven, 4000000000);
    assert_string_equal(cls->name, "b:x");
    assert_int_equal(cls->loglevel, -2);
    assert_string_equal(cls->model_uri, "u");
    assert_ptr_equal(cls, s->classes[cls->index]);
    assert_string_equal(ctf_stream_class_event(seven, 3)->name, "c.d");
    assert_int_equal(ctf_stream_class_event(seven, 3)->scope[CTF_PAYLOAD]->n, 0);
    assert_null(ctf_stream_class_event(seven, 4));
    assert_string_equal(ctf_stream_class_event(ctf_schema_stream(s, 2), 0)->name, "a");
    assert_null(ctf_schema_stream(s, 0));
    ctf_metadata_fini(&m, NULL);
}

/* ---- errors ---- */

static void test_errors(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "empty"},
        {"event { name = x; };", "no trace block"},
        {"trace { major = 1; minor = 8; };", "line 1: the trace block has no byte_order"},
        {"trace { major = 1; minor = 8; byte_order = middle; };",
            "line 1: the trace's byte_order must be le or be, not 'middle'"},
        {"trace { major = 1;\n minor = 9; byte_order = le; };", "line 2: trace minor is 9"},
        {"trace { byte_order = le; };", "line 1: the trace block does not say major = 1"},
        {HEAD "trace { major = 1; minor = 8; byte_order = le; };", "line 2: a second trace block"},
        {"\x1e{\"type\": \"preamble\"}", "fragment 1: there is no property 'version'"},
        {HEAD "\n}", "line 3: this '}' closes nothing"},
        {HEAD "foo bar;", "line 2: 'foo' begins no statement"},
        {HEAD "event { name = x; } event { name = y; };", "line 2: expected ';' after a block, found 'event'"},
        {HEAD "event { id = 1; };", "line 2: this event has no name"},
        {HEAD "event { name = x; id = -1; };", "line 2: 'id' must be a number"},
        {HEAD "event { name = x; stream_id = 5; };", "line 2: event 'x' belongs to stream 5, which is not declared"},
        {HEAD "stream { id = 1; };\nstream { id = 2; };\nevent { name = x; };",
            "line 4: event 'x' does not say to which stream it belongs"},
        {HEAD "stream { id = 1; };\nstream { id = 1; };\n", "line 3: a second stream with the id 1"},
        {HEAD STREAM "event { name = x; id = 3; };\nevent { name = y; id = 3; };",
            "line 4: event 'y' has the id 3 as 'x' has"},
        {HEAD "event { name = x;\n fields := struct { u8 a; u8 b; u8 a; }; };", "line 3: a second field 'a'"},
        {HEAD "event { name = x;\n fields := u8; };", "line 3: 'fields' must be a struct"},
        {HEAD "event { name = x;\n fields := struct { u9 a; }; };", "line 3: no type 'u9' was declared before"},
        {HEAD "event { name = x;\n fields := struct { struct s a; }; };", "line 3: no struct 's' was declared before"},
        {HEAD "struct s {\n struct s a; };", "line 3: no struct 's' was declared before"},
        {HEAD "typedef u8 a;\ntypedef u8 a;", "line 3: the type 'a' is declared twice"},
        {FIELDS("integer { size = 65; } a;"), "an integer's size must be 1 to 64 bits"},
        {FIELDS("integer { size = 0; } a;"), "an integer's size must be 1 to 64 bits"},
        {FIELDS("integer { align = 8; } a;"), "this integer has no size"},
        {FIELDS("integer { size = 8; align = 3; } a;"), "an alignment must be a power of two"},
        {FIELDS("integer { size = 8; signed = maybe; } a;"), "signed must be true or false"},
        {FIELDS("integer { size = 8 } a;"), "expected ';' after a value, found '}'"},
        {FIELDS("integer { size = 99999999999999999999; } a;"), "this number does not fit into 64 bits"},
        {FIELDS("integer { size = 08; } a;"), "octal"},
        {FIELDS("integer { size = 8; map = clock.x; } a;"), "a map must look like clock.NAME.value"},
        {FIELDS("floating_point { exp_dig = 5; mant_dig = 11; } a;"), "floating_point must have"},
        {FIELDS("struct { u8 a; } align(0) b;"), "an alignment must be a power of two"},
        {FIELDS("u8 *a;"), "no type 'u8 *'"},
        {FIELDS("u8 a[n];"), "length 'n' names no field that comes before it"},
        {FIELDS("u8 a[n]; u8 n;"), "length 'n' names no field that comes before it"},
        {FIELDS("i8 n; u8 a[n];"), "length 'n' is not an unsigned integer"},
        {FIELDS("struct { u8 n; } s[2]; u8 a[s.n];"), "length 's.n' names no field that comes before it"},
        {FIELDS("u8 a[env.n];"), "taken from the environment"},
        {FIELDS("u8 a[-1];"), "expected a name or number between '[' and ']', found '-'"},
        {FIELDS("u8 a[];"), "expected a name or number between '[' and ']', found ']'"},
        {FIELDS("u8 a[4294967296];"), "more than 2^32 - 1 elements"},
        {FIELDS("u32 a[4000000000][4000000000];"), "this array is too large"},
        {FIELDS("struct { } a[4000000000];"), "an array of more than 4096 elements that may take no bits"},
        {FIELDS("u8 t; variant <t> { u8 A; } v;"), "tag 't' is not an enumeration"},
        {FIELDS("enum : u8 { A } t; variant <t> { } v;"), "this variant has no options"},
        {FIELDS("enum : u8 { A } t; variant <t> { u8 B; } v;"), "no label of the tag is an option of this variant"},
        {FIELDS("variant { u8 B; } v;"), "this variant has no tag"},
        {FIELDS("enum : u8 { } t;"), "this enumeration has no labels"},
        {FIELDS("enum { A } t;"), "names no integer type"},
        {FIELDS("enum : struct { u8 x; } { A } t;"), "the type below an enumeration must be an integer"},
        {FIELDS("enum : u8 { A = 5 ... 4 } t;"), "this label's range ends before it begins"},
        {FIELDS("enum : integer { size = 64; } { A = 18446744073709551615, B } t;"),
            "the label before this one has the last possible value"},
        {FIELDS("u8 a; # u8 b;"), "'#' has no meaning here"},
        {FIELDS("u8 \x01;"), "byte 0x01 has no meaning here"},
        {HEAD "event { name = \"a\\q\"; };", "line 2: unknown escape '\\q' in a string"},
        {HEAD "clock { freq = 1; };", "line 2: this clock has no name"},
        {HEAD "clock { name = c;\n freq = 0; };", "line 3: a clock's frequency cannot be 0"},
        {HEAD "clock { name = c; };\nclock { name = c; };", "line 3: a second clock 'c'"},
        {HEAD "env { }\nclock { name = c; };", "line 3: expected ';' after a block, found 'clock'"},
        {HEAD "env a;\nclock c { name = c; };", "line 3: expected '{' at the beginning of a block, found 'c'"},
        {HEAD "env { a = 1 b = 2; };", "line 2: expected ';' after a value, found 'b'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ctf_metadata m;
        struct err e = {0};
        int code = ctf_metadata_parse("metadata", cases[i].text, strlen(cases[i].text), NULL, &m, &e);
        if (code == 0 || e.code == 0 || !strstr(e.text, cases[i].error) || strncmp(e.text, "metadata: ", 10) != 0)
            fail_msg("code %d, '%s' instead of '%s' for\n%s", code, e.text, cases[i].error, cases[i].text);
        assert_null(m.schema);
    }
}

/* Large and odd, but nothing that memory does not hold: babeltrace2 2.0.4 reads each of these. */
static void test_large(void **state)
{
    struct text t = {0};
    struct ctf_metadata m;
    struct err e = {0};
    text_puts(&t, HEAD "event { name = e; fields := struct { ");
    for (int i = 0; i < 200; i++)
        text_puts(&t, "struct { ");
    text_puts(&t, "u8 x; ");
    for (int i = 0; i < 200; i++)
        text_puts(&t, "} x; ");
    text_puts(&t, "}; };");
    assert_int_equal(ctf_metadata_parse("m", t.v, t.n, NULL, &m, &e), 0);
    ctf_metadata_fini(&m, NULL);

    t.n = 0;
    text_puts(&t, HEAD "event { name = e; fields := struct { ");
    for (int i = 0; i < 20000; i++)
        text_printf(&t, "u8 f%d; ", i);
    text_puts(&t, "}; };");
    assert_int_equal(ctf_metadata_parse("m", t.v, t.n, NULL, &m, &e), 0);
    assert_int_equal(payload(&m, 0)->n, 20000);
    assert_int_equal(payload(&m, 0)->size_bits, 160000);
    ctf_metadata_fini(&m, NULL);

    t.n = 0;
    text_puts(&t, "trace { major = 1; minor = 8; byte_order = le; };\n");
    for (int i = 0; i < 70000; i++)
        text_printf(&t, "stream { id = %d; };\n", i);
    assert_int_equal(ctf_metadata_parse("m", t.v, t.n, NULL, &m, &e), 0);
    assert_int_equal(m.schema->n_streams, 70000);
    ctf_metadata_fini(&m, NULL);

    /* More than 2^21 types, most of them each event's share of its stream. */
    t.n = 0;
    text_puts(&t, HEAD "stream { event.context := struct { ");
    for (int i = 0; i < 500; i++)
        text_printf(&t, "u8 f%d; ", i);
    text_puts(&t, "}; };\n");
    for (int i = 0; i < 2110; i++)
        text_printf(
            &t, "event { name = \"an event with a name of some length\"; id = %d; fields := struct { }; };\n", i);
    if (ctf_metadata_parse("m", t.v, t.n, NULL, &m, &e))
        fail_msg("%s", e.text);
    assert_int_equal(m.schema->n_classes, 2 + 2110);
    ctf_metadata_fini(&m, NULL);

    /* Lengths of sequences, each after all fields before it: too many for a linear search. */
    t.n = 0;
    text_puts(&t, HEAD "stream { event.context := struct { u8 n; }; };\nevent { name = e; fields := struct { ");
    for (int i = 0; i < 200000; i++)
        text_printf(&t, "u8 f%d[n]; ", i);
    text_puts(&t, "}; };");
    assert_int_equal(ctf_metadata_parse("m", t.v, t.n, NULL, &m, &e), ERR_LIMIT);
    assert_non_null(strstr(e.text, "among too many fields"));

    /* A pointer of a pointer of …, 90 KB: the names of all of them would be 900 MB. */
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    t.n = 0;
    text_puts(&t, HEAD "event { name = e; fields := struct { struct s ");
    for (int i = 0; i < 30000; i++)
        text_puts(&t, " * ");
    text_puts(&t, "x; }; };");
    assert_int_equal(ctf_metadata_parse("m", t.v, t.n, NULL, &m, &e), ERR_FORMAT);
    assert_non_null(strstr(e.text, "struct s * * *"));
    getrusage(RUSAGE_SELF, &after);
    assert_true(after.ru_maxrss - before.ru_maxrss < 200 << 10);
    text_fini(&t);
}

/* Checks that unlimited growth is refused at a limit, soon. */
static void test_limits(void **state)
{
    struct text t = {0};
    struct ctf_metadata m;
    struct err e = {0};
    text_puts(&t, HEAD "event { name = e; fields := ");
    for (int i = 0; i < 100000; i++)
        text_puts(&t, "struct { ");
    for (int i = 0; i < 100000; i++)
        text_puts(&t, "} x; ");
    text_puts(&t, "};");
    assert_int_equal(ctf_metadata_parse("m", t.v, t.n, NULL, &m, &e), ERR_LIMIT);
    assert_non_null(strstr(e.text, "line 2: types nested more than 512 deep"));

    t.n = 0;
    text_puts(&t, HEAD "struct s0 { u8 x; };\n");
    for (int i = 1; i < 30; i++)
        text_printf(&t, "struct s%d { struct s%d a, b, c, d; };\n", i, i - 1);
    text_puts(&t, "event { name = e; fields := struct s29; };");
    assert_int_equal(ctf_metadata_parse("m", t.v, t.n, NULL, &m, &e), ERR_LIMIT);
    assert_non_null(strstr(e.text, "types, counting every use of a named type"));

    t.n = 0;
    text_puts(&t, HEAD "stream { event.context := struct { ");
    for (int i = 0; i < 5000; i++)
        text_printf(&t, "u8 f%d; ", i);
    text_puts(&t, "}; };\n");
    for (int i = 0; i < 5000; i++)
        text_printf(&t, "event { name = e; id = %d; };\n", i);
    assert_int_equal(ctf_metadata_parse("m", t.v, t.n, NULL, &m, &e), ERR_LIMIT);

    t.n = 0;
    text_puts(&t, HEAD "typedef u8 t0[1];\n");
    for (int i = 1; i < 1000; i++)
        text_printf(&t, "typedef t%d t%d[1];\n", i - 1, i);
    text_puts(&t, "event { name = e; fields := struct { t999 x; }; };");
    assert_int_equal(ctf_metadata_parse("m", t.v, t.n, NULL, &m, &e), ERR_LIMIT);

    t.n = 0;
    text_puts(&t, HEAD "event { name = e; fields := struct { ");
    for (int i = 0; i < 100; i++)
        text_printf(&t, "u8 n%d; u8 v%d[n%d]; ", i, i, i);
    text_puts(&t, "}; };");
    assert_int_equal(ctf_metadata_parse("m", t.v, t.n, NULL, &m, &e), ERR_LIMIT);
    assert_non_null(strstr(e.text, "more than 63 fields are lengths or tags"));
    text_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_enums),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_references),
        cmocka_unit_test(test_named_types),
        cmocka_unit_test(test_babeltrace2_fields),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
