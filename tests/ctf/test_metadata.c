/* SPDX-License-Identifier: MIT */
/* The metadata of a trace as a whole: packets, cut tails, clocks, environment, warnings, schemas that traces share,
 * recordings, damage. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "../base/test.h"
#include "base/file.h"
#include "base/text.h"
#include "ctf/metadata.h"

#define TYPES \
    "/* CTF 1.8 */\ntypealias integer { size = 8; } := u8;\ntypealias integer { size = 64; map = clock.c.value; } " \
    ":= time_t;\n"
#define TRACE "trace { major = 1; minor = 8; byte_order = le; uuid = \"00010203-0405-0607-0809-0a0b0c0d0e0f\"; };\n"
#define CLOCK "clock { name = c; freq = 1000; };\n"
#define EVENTS \
    "stream { event.header := struct { u8 id; time_t timestamp; }; };\n" \
    "event { name = first; id = 0; fields := struct { u8 a; }; };\n"
#define WHOLE TYPES TRACE CLOCK EVENTS

static int parse_n(const void *data, size_t n, struct ctf_schemas *s, struct ctf_metadata *m, struct err *e)
{
    *e = (struct err){0};
    return ctf_metadata_parse("dir/metadata", data, n, s, m, e);
}

static struct ctf_metadata parse(const char *text, struct ctf_schemas *s)
{
    struct ctf_metadata m;
    struct err e;
    if (parse_n(text, strlen(text), s, &m, &e) != 0)
        fail_msg("%s\n%s", e.text, text);
    return m;
}

static bool has_warning(const struct ctf_metadata *m, const char *part)
{
    for (size_t i = 0; i < m->n_warnings; i++)
        if (strstr(m->warnings[i].text, part))
            return true;
    return false;
}

/* ---- packets ---- */

static void put32(struct text *t, uint32_t v, bool big)
{
    for (int i = 0; i < 4; i++)
        text_putc(t, (char)(v >> (big ? 24 - 8 * i : 8 * i)));
}

/* Appends a metadata packet as laid out in CTF 1.8.3, section 7.1. */
static void put_packet(struct text *t, const char *s, size_t n, size_t padding, bool big, uint8_t first_uuid_byte)
{
    put32(t, 0x75d11d57, big);
    text_putc(t, (char)first_uuid_byte);
    for (int i = 1; i < 16; i++)
        text_putc(t, (char)i);
    put32(t, 0, big);
    put32(t, (uint32_t)(37 + n) * 8, big);
    put32(t, (uint32_t)(37 + n + padding) * 8, big);
    text_put(t, "\0\0\0\1\x08", 5);
    text_put(t, s, n);
    for (size_t i = 0; i < padding; i++)
        text_putc(t, '\0');
}

static void test_packets(void **state)
{
    const char *whole = WHOLE;
    size_t n = strlen(whole);
    for (int big = 0; big < 2; big++) {
        for (size_t step = 1; step <= n; step += step < 40 ? 1 : 50) {
            struct text t = {0};
            struct ctf_metadata m;
            struct err e;
            for (size_t at = 0; at < n; at += step)
                put_packet(&t, whole + at, at + step < n ? step : n - at, step % 7, big, 0);
            assert_int_equal(parse_n(t.v, t.n, NULL, &m, &e), 0);
            assert_int_equal(m.schema->n_classes, 3);
            assert_true(m.has_uuid && m.uuid[15] == 15);
            assert_int_equal(m.n_warnings, 0);
            ctf_metadata_fini(&m, NULL);
            text_fini(&t);
        }
    }
}

static void test_bad_packets(void **state)
{
    const char *whole = WHOLE, *more = "event { name = second; id = 1; };\n";
    struct text t = {0};
    struct ctf_metadata m;
    struct err e;
    put_packet(&t, whole, strlen(whole), 3, false, 0);
    size_t first = t.n;
    put_packet(&t, more, strlen(more), 0, false, 0);
    assert_int_equal(parse_n(t.v, t.n, NULL, &m, &e), 0);
    assert_int_equal(m.schema->n_classes, 4);
    assert_int_equal(m.n_warnings, 0);
    ctf_metadata_fini(&m, NULL);

    /* the last packet is cut: within its header, within its text */
    assert_int_equal(parse_n(t.v, first + 20, NULL, &m, &e), 0);
    assert_true(has_warning(&m, "no metadata packet begins here"));
    assert_int_equal(m.schema->n_classes, 3);
    ctf_metadata_fini(&m, NULL);
    assert_int_equal(parse_n(t.v, t.n - 10, NULL, &m, &e), 0);
    assert_true(has_warning(&m, "the last metadata packet is cut"));
    assert_true(has_warning(&m, "ends within a statement"));
    assert_int_equal(m.schema->n_classes, 3);
    ctf_metadata_fini(&m, NULL);

    /* the second packet is another trace's, or damaged */
    t.v[first + 4] = 9;
    assert_int_equal(parse_n(t.v, t.n, NULL, &m, &e), 0);
    assert_true(has_warning(&m, "belongs to another trace"));
    ctf_metadata_fini(&m, NULL);
    t.v[first + 4] = 0;
    memset(t.v + first + 24, 0xff, 4);
    assert_int_equal(parse_n(t.v, t.n, NULL, &m, &e), 0);
    assert_true(has_warning(&m, "sizes make no sense"));
    ctf_metadata_fini(&m, NULL);

    /* the first packet must be good */
    static const struct {
        size_t at;
        uint8_t value;
        int code;
        const char *error;
    } damages[] = {
        {24, 1, ERR_FORMAT, "sizes make no sense"},
        {32, 1, ERR_UNSUPPORTED, "compressed"},
        {33, 1, ERR_UNSUPPORTED, "encrypted"},
        {35, 2, ERR_UNSUPPORTED, "version 2.8"},
    };
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        char old = t.v[damages[i].at];
        t.v[damages[i].at] = (char)damages[i].value;
        assert_int_equal(parse_n(t.v, t.n, NULL, &m, &e), damages[i].code);
        assert_non_null(strstr(e.text, damages[i].error));
        assert_non_null(strstr(e.text, "dir/metadata: byte 0: "));
        t.v[damages[i].at] = old;
    }
    text_fini(&t);

    /* the packets' uuid against the trace block's */
    put_packet(&t, whole, strlen(whole), 0, true, 77);
    assert_int_equal(parse_n(t.v, t.n, NULL, &m, &e), 0);
    assert_true(has_warning(&m, "another uuid"));
    ctf_metadata_fini(&m, NULL);
    text_fini(&t);
}

/* Cut anywhere: an error before the first stream or event is whole, else the whole part and a warning. */
static void test_cut(void **state)
{
    const char *whole = WHOLE "event { name = \"s} // \\\"\"; id = 1; /* } */ };\nevent { name = last; id = 2; };\n";
    size_t n = strlen(whole), first = (size_t)(strstr(whole, "}; };\n") - whole) + 5;
    for (size_t cut = 0; cut < n; cut++) {
        struct ctf_metadata m;
        struct err e;
        int code = parse_n(whole, cut, NULL, &m, &e);
        if (code != 0 && (cut >= first - 1 || code != ERR_FORMAT))
            fail_msg("cut at %zu: %s", cut, e.text);
        if (code != 0)
            continue;
        bool between = cut == n || whole[cut] == '\n' || whole[cut - 1] == '\n' || whole[cut] == ';';
        if (!between && (cut < first - 1 || !has_warning(&m, "the metadata ends within a statement")))
            fail_msg("cut at %zu without a word", cut);
        assert_true(m.schema->n_classes >= 2 && m.schema->n_classes <= 5);
        ctf_metadata_fini(&m, NULL);
    }
}

/* ---- own part of a trace ---- */

static void test_clocks_and_env(void **state)
{
    struct ctf_metadata m = parse(TYPES TRACE
        "env { hostname = \"a \\\"b\\\"\\n\\x41\"; tracer_major = 2; low = -9223372036854775808; hex = 0x10; word = "
        "text; };\n"
        "clock { name = \"c\"; uuid = \"1d1ac986-0\"; freq = 10; offset_s = 5; offset = 123; precision = 7; "
        "description = \"d e\"; absolute = TRUE; };\n"
        "clock { name = other; uuid = \"1d1ac986-0d72-4423-9b18-714aac1f64af\"; offset = 1795225053184022483; };\n"
        "clock { name = past; freq = 1000; offset = -1; absolute = 0; };\n"
        "env { more = 1; };\n" EVENTS,
        NULL);
    assert_int_equal(m.n_env, 6);
    assert_string_equal(m.env[0].name, "hostname");
    assert_string_equal(m.env[0].string, "a \"b\"\nA");
    assert_true(m.env[0].is_string && !m.env[1].is_string && m.env[1].number == 2);
    assert_true(m.env[2].number == INT64_MIN && m.env[3].number == 16);
    assert_string_equal(m.env[4].string, "text");
    assert_string_equal(m.env[5].name, "more");
    assert_int_equal(m.n_clocks, 3);
    const struct ctf_clock *c = m.clocks;
    assert_true(c[0].freq == 10 && c[0].precision == 7 && c[0].absolute && !c[0].has_uuid);
    assert_true(c[0].offset_s == 5 + 12 && c[0].offset == 3);
    assert_string_equal(c[0].description, "d e");
    assert_true(c[1].freq == 1000000000 && c[1].has_uuid && c[1].uuid[0] == 0x1d && c[1].uuid[15] == 0xaf);
    assert_true(c[1].offset_s == 1795225053 && c[1].offset == 184022483 && !c[1].absolute);
    assert_true(c[2].offset_s == -1 && c[2].offset == 999 && !c[2].description);
    assert_int_equal(m.schema->n_clock_names, 1);
    assert_string_equal(m.schema->clock_names[0], "c");
    assert_int_equal(m.clock_of[0], 0);
    assert_int_equal(m.schema->streams[0].clock, 0);
    ctf_metadata_fini(&m, NULL);
}

/* Times without a clock are the only clock's; without any they are nanoseconds since the epoch, as babeltrace2 takes
 * them. */
static void test_unmapped_times(void **state)
{
#define BARE \
    TYPES TRACE \
        "stream { packet.context := struct { u8 timestamp_end; }; event.header := struct { u8 id; struct { u8 " \
        "timestamp; } v; }; };\nevent { name = e; };\n"
    struct ctf_metadata m = parse(BARE, NULL);
    assert_int_equal(m.n_clocks, 1);
    assert_string_equal(m.clocks[0].name, "default");
    assert_true(m.clocks[0].freq == 1000000000 && m.clocks[0].offset_s == 0 && m.clocks[0].offset == 0);
    int32_t name = m.schema->streams[0].clock;
    assert_true(name >= 0 && m.clock_of[name] == 0);
    assert_int_equal(m.schema->streams[0].packet_context->u.fields[0].type->clock, name);
    ctf_metadata_fini(&m, NULL);
    m = parse(BARE "clock { name = x; freq = 5; };", NULL);
    assert_true(m.n_clocks == 1 && m.clocks[0].freq == 5 && m.clock_of[m.schema->streams[0].clock] == 0);
    ctf_metadata_fini(&m, NULL);
    m = parse(BARE "clock { name = x; }; clock { name = y; };", NULL);
    assert_true(has_warning(&m, "times are mapped to none of 2 clocks"));
    ctf_metadata_fini(&m, NULL);
    m = parse(TYPES TRACE EVENTS, NULL);
    assert_int_equal(m.clock_of[m.schema->streams[0].clock], -1);
    assert_true(has_warning(&m, "a clock 'c' that is not declared"));
    ctf_metadata_fini(&m, NULL);
}

static void test_warnings(void **state)
{
    struct ctf_schemas *s = ctf_schemas_new();
    static const char *const clock[] = {CLOCK, "/**/" CLOCK, "env { a = 1; };\n\n\n" CLOCK, "env {\n\n\n\n\n}; " CLOCK};
    static const char *const line[] = {
        "line 9: unknown attribute 'zzz'", "line 9: unknown", "line 12: unknown", "line 14: unknown"};
    struct ctf_metadata m[4];
    for (int i = 0; i < 4; i++) {
        struct text t = {0};
        text_printf(&t, "%s%s%s%stypealias integer { size = 8;\n zzz = 1; } := u9;\n", TYPES, TRACE, clock[i], EVENTS);
        m[i] = parse(text_cstr(&t), s);
        if (!has_warning(&m[i], line[i]))
            fail_msg("%s instead of %s", m[i].n_warnings ? m[i].warnings[0].text : "nothing", line[i]);
        text_fini(&t);
    }
    for (int i = 0; i < 4; i++)
        ctf_metadata_fini(&m[i], s);
    ctf_schemas_free(s);
}

/* ---- sharing ---- */

static void test_sharing(void **state)
{
    struct ctf_schemas *s = ctf_schemas_new();
    struct ctf_metadata a = parse(WHOLE, s),
                        b = parse(
                            TYPES "env { host = \"other\"; };\n" TRACE "clock { name = c; freq = 7; };\n" EVENTS, s);
    struct ctf_metadata c = parse(TYPES
        "trace { major = 1; minor = 8; byte_order = be; uuid = \"00010203-0405-0607-0809-0a0b0c0d0e0f\"; };\n" CLOCK
            EVENTS,
        s);
    struct ctf_metadata d = parse(TYPES
        "trace { major = 1; minor = 8; byte_order = le; uuid = \"ff010203-0405-0607-0809-0a0b0c0d0e0f\"; };\n" EVENTS
            CLOCK,
        s);
    assert_ptr_not_equal(a.schema, c.schema);
    assert_true(c.schema->big_endian && !a.schema->big_endian);
    assert_true(a.clocks[0].freq == 1000 && b.clocks[0].freq == 7);
    assert_int_equal(d.uuid[0], 0xff);
    /* blocks in the same places share; elsewhere the blank lines around them may differ */
    struct ctf_metadata same = parse(TYPES
        "trace { major = 1; minor = 8; byte_order = le; uuid = \"ff010203-0405-0607-0809-0a0b0c0d0e0f\"; };\n"
        "clock { name = \"c\"; freq = 9; description = \"x\"; };\n" EVENTS,
        s);
    assert_ptr_equal(a.schema, same.schema);
    assert_int_equal(a.schema->references, 2);
    struct ctf_schema *kept = a.schema;
    ctf_metadata_fini(&a, s);
    ctf_metadata_fini(&same, s);
    a = parse(WHOLE, s);
    assert_ptr_equal(a.schema, kept);
    ctf_metadata_fini(&a, s);
    ctf_metadata_fini(&b, s);
    ctf_metadata_fini(&c, s);
    ctf_metadata_fini(&d, s);
    for (int i = 0; i < 50; i++) {
        struct text t = {0};
        text_printf(&t, "%sevent { name = e%d; id = 9; };", WHOLE, i);
        a = parse(text_cstr(&t), s);
        ctf_metadata_fini(&a, s);
        text_fini(&t);
    }
    ctf_schemas_free(s);
}

static void *parse_often(void *arg)
{
    struct ctf_schemas *s = arg;
    for (int i = 0; i < 300; i++) {
        struct text t = {0};
        struct ctf_metadata m;
        struct err e;
        text_printf(&t, "%sevent { name = e%d; id = %d; };", WHOLE, i % 20, i % 5 ? 9 : 0); /* error in each fifth */
        int code = parse_n(t.v, t.n, s, &m, &e);
        if (code == 0)
            ctf_metadata_fini(&m, s);
        text_fini(&t);
        if ((code == 0) != (i % 5 != 0))
            return "wrong";
    }
    return NULL;
}

static void test_threads(void **state)
{
    struct ctf_schemas *s = ctf_schemas_new();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, parse_often, s), 0);
    for (int i = 0; i < 4; i++) {
        void *answer;
        pthread_join(threads[i], &answer);
        assert_null(answer);
    }
    ctf_schemas_free(s);
}

/* ---- recordings ---- */

static bool map_recording(const char *trace, struct file_map *out)
{
    const char *data = getenv("WEFT_DATA") ? getenv("WEFT_DATA") : WEFT_SOURCE_ROOT "/../shared/data";
    char path[4096];
    struct err e = {0};
    snprintf(path, sizeof path, "%s/%s/metadata", data, trace);
    return test_have(path) && file_map_open(path, out, &e) == 0;
}

/* babeltrace2's own tests of metadata: what must be read, what must be refused, and with which line in the error. */
static void test_babeltrace2_cases(void **state)
{
    static const struct {
        const char *name, *error;
    } cases[] = {
        {"fail/fail1", "line 15: "},
        {"fail/fail2", "line 9: "},
        {"fail/integer-range", "line 7: "},
        {"fail/smalltrace", "line 6: "},
        {"fail/invalid-sequence-length-field-class", "line 23: length 'len' is not an unsigned integer"},
        {"fail/invalid-variant-selector-field-class", "line 23: tag 'selector' is not an enumeration"},
        {"fail/metadata-syntax-error", "line 3: "},
        {"fail/packet-based-metadata", "byte 0: "},
        {"fail/lttng-modules-2.0-pre1", "byte 0: "},
        {"fail/invalid-packet-size/trace", NULL},
        {"fail/valid-events-then-invalid-events/trace", NULL},
        {"succeed/2packets", NULL},
        {"succeed/array-align-elem", NULL},
        {"succeed/barectf-event-before-packet", NULL},
        {"succeed/crlf-metadata", NULL},
        {"succeed/debug-info", NULL},
        {"succeed/env-warning", NULL},
        {"succeed/ev-disc-no-ts-begin-end", NULL},
        {"succeed/lf-metadata", NULL},
        {"succeed/lttng-crash", NULL},
        {"succeed/lttng-event-after-packet", NULL},
        {"succeed/lttng-tracefile-rotation/kernel", NULL},
        {"succeed/meta-ctx-sequence", NULL},
        {"succeed/meta-variant-no-underscore", NULL},
        {"succeed/meta-variant-one-underscore", NULL},
        {"succeed/meta-variant-reserved-keywords", NULL},
        {"succeed/meta-variant-same-with-underscore", NULL},
        {"succeed/meta-variant-two-underscores", NULL},
        {"succeed/multi-domains/kernel", NULL},
        {"succeed/multi-domains/ust", NULL},
        {"succeed/no-packet-context", NULL},
        {"succeed/sequence", NULL},
        {"succeed/session-rotation/3/ust/pid/10352", NULL},
        {"succeed/smalltrace", NULL},
        {"succeed/struct-array-align-elem", NULL},
        {"succeed/succeed1", NULL},
        {"succeed/succeed2", NULL},
        {"succeed/succeed3", NULL},
        {"succeed/succeed4", NULL},
        {"succeed/trace-with-index", NULL},
        {"succeed/warnings", NULL},
        {"succeed/wk-heartbeat-u", NULL},
    };
    size_t seen = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct file_map file;
        struct ctf_metadata m;
        struct err e;
        char trace[256];
        snprintf(trace, sizeof trace, "traces-public/babeltrace2-tests/%s", cases[i].name);
        if (!map_recording(trace, &file))
            continue;
        seen++;
        int code = parse_n(file.data, file.size, NULL, &m, &e);
        if ((code != 0) != (cases[i].error != NULL) || (code && !strstr(e.text, cases[i].error)))
            fail_msg("%s: code %d: %s", cases[i].name, code, e.text);
        if (code == 0)
            ctf_metadata_fini(&m, NULL);
        file_map_close(&file);
    }
    if (!seen)
        skip_without("the recordings");
}

static const char *const big_traces[] = {
    "traces/three-tier/web/kernel", "traces/three-tier/db/kernel", "traces/three-tier/client/kernel"};

/* Traces of one tracer version on several machines: one schema, little memory each, and quick. */
static void test_many_traces(void **state)
{
    enum { TRACES = 256 };
    struct file_map files[3];
    struct ctf_metadata *m = calloc(TRACES, sizeof *m);
    struct ctf_schemas *s = ctf_schemas_new();
    struct timespec begin, end;
    struct err e;
    for (int i = 0; i < 3; i++) {
        if (!map_recording(big_traces[i], &files[i]))
            skip_without("%s", big_traces[i]);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    for (int i = 0; i < TRACES; i++)
        assert_int_equal(parse_n(files[i % 3].data, files[i % 3].size, s, &m[i], &e), 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    double seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9;
    print_message("%d traces in %.3f s\n", TRACES, seconds);
    assert_true(seconds < 30); /* processor time; a second is the goal, sanitizers are allowed more */
    for (int i = 0; i < TRACES; i++) {
        assert_ptr_equal(m[i].schema, m[0].schema);
        assert_true(m[i].arena.total_bytes < 100000);
    }
    assert_int_equal(m[0].schema->references, TRACES);
    for (int i = 0; i < TRACES; i++)
        ctf_metadata_fini(&m[i], s);
    ctf_schemas_free(s);
    for (int i = 0; i < 3; i++)
        file_map_close(&files[i]);
    free(m);
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* Flipped bits: any answer, but an answer. WEFT_FLIPS sets how many variants are tried. */
static void test_flipped_bits(void **state)
{
    static const char *const traces[] = {"traces-public/context-switches-ust", "traces/mpi/n1/kernel",
        "traces-public/babeltrace2-tests/succeed/sequence"};
    int flips = getenv("WEFT_FLIPS") ? atoi(getenv("WEFT_FLIPS")) : 600;
    uint64_t seed = test_seed(88172645463325252);
    int good = 0, all = 0;
    for (size_t k = 0; k < 3; k++) {
        struct file_map file;
        if (!map_recording(traces[k], &file))
            continue;
        for (int i = 0; i < flips / 3; i++) {
            uint8_t *copy = malloc(file.size);
            memcpy(copy, file.data, file.size);
            for (uint64_t f = 0, n = 1 + next_random(&seed) % 8; f < n; f++)
                copy[next_random(&seed) % file.size] ^= (uint8_t)(1 << next_random(&seed) % 8);
            struct ctf_metadata m;
            struct err e;
            all++;
            if (parse_n(copy, file.size, NULL, &m, &e) == 0) {
                good++;
                ctf_metadata_fini(&m, NULL);
            } else {
                assert_true(strstr(e.text, "line ") || strstr(e.text, "byte "));
            }
            free(copy);
        }
        file_map_close(&file);
    }
    print_message("%d of %d were read\n", good, all);
}

/* ---- tracers' errors ---- */

static void test_quotes_in_labels(void **state)
{
    /* labels with one, two and three quotes; with a backslash at the end; and correct labels, which are unchanged */
    static const char *const labels[][2] = {{"a\"b", "a\"b"}, {"\"a\"", "\"a\""}, {"a\"b\"c\"d", "a\"b\"c\"d"},
        {"a\\", "a\\"}, {"a\\\"b", "a\"b"}, {"x = 5, \"", "x = 5, \""}};
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        char text[1000];
        snprintf(text, sizeof text,
            TYPES TRACE CLOCK EVENTS
            "event { name = second; id = 1; fields := struct {\n"
            "enum : u8 {\n\t\t\"first\" = 0,\n\t\t\"%s\" = 1 ... 4,\n\t\t\"last\" = 5,\n\t} e;\n"
            "u8 behind;\n}; };\nevent { name = third; id = 2; fields := struct { u8 a; }; };\n",
            labels[i][0]);
        struct ctf_metadata m = parse(text, NULL);
        assert_int_equal(m.schema->n_classes, 5);
        const struct ctf_type *t = m.schema->classes[3]->scope[CTF_PAYLOAD]->u.fields[0].type;
        assert_int_equal(t->n, 3);
        assert_string_equal(t->u.enumeration.ranges[1].label, labels[i][1]);
        assert_int_equal(t->u.enumeration.ranges[1].hi, 4);
        assert_string_equal(t->u.enumeration.ranges[2].label, "last");
        assert_int_equal(has_warning(&m, "label"), strcmp(labels[i][0], "a\\\"b") != 0);
        ctf_metadata_fini(&m, NULL);
    }
}

static void test_no_stream(void **state)
{
    struct ctf_metadata m = parse(TYPES TRACE CLOCK, NULL);
    assert_true(has_warning(&m, "no data stream class"));
    ctf_metadata_fini(&m, NULL);
    m = parse(WHOLE, NULL);
    assert_false(has_warning(&m, "no data stream class"));
    ctf_metadata_fini(&m, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quotes_in_labels),
        cmocka_unit_test(test_no_stream),
        cmocka_unit_test(test_packets),
        cmocka_unit_test(test_bad_packets),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_clocks_and_env),
        cmocka_unit_test(test_unmapped_times),
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_sharing),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_babeltrace2_cases),
        cmocka_unit_test(test_many_traces),
        cmocka_unit_test(test_flipped_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
