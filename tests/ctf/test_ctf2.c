/* SPDX-License-Identifier: MIT */
/* CTF 2 metadata: sharing, increments, damage. What events look like is judged by tests/e2e/test_ctf2.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../base/test.h"
#include "base/text.h"
#include "ctf/feed.h"
#include "ctf/metadata.h"
#include "ctf/trace.h"

#define RS "\x1e"
#define UNSIGNED(bits, more) \
    "{\"type\":\"fixed-length-unsigned-integer\",\"length\":" #bits ",\"byte-order\":\"little-endian\"" more "}"
#define MEMBER(name, field_class) "{\"name\":\"" name "\",\"field-class\":" field_class "}"
#define STRUCTURE(members) "{\"type\":\"structure\",\"member-classes\":[" members "]}"
#define ROLE(role) ",\"roles\":[\"" role "\"]"

#define PREAMBLE(byte) \
    RS "{\"type\":\"preamble\",\"version\":2,\"uuid\":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14," #byte "]}\n"
#define TRACE(host) \
    RS "{\"type\":\"trace-class\",\"environment\":{\"hostname\":\"" host \
       "\",\"n\":-3},\"packet-header-field-class\":" STRUCTURE( \
           MEMBER("magic", UNSIGNED(32, ROLE("packet-magic-number"))) "," MEMBER( \
               "class", UNSIGNED(8, ROLE("data-stream-class-id")))) "}\n"
#define CLOCK(seconds) \
    RS "{\"type\":\"clock-class\",\"id\":\"c\",\"frequency\":1000000000,\"origin\":\"unix-epoch\"," \
       "\"offset-from-origin\":{\"seconds\":" #seconds "}}\n"
#define CONTEXT \
    STRUCTURE(MEMBER("begin", UNSIGNED(64, ROLE("default-clock-timestamp"))) "," MEMBER( \
        "size", UNSIGNED(16, ROLE("packet-total-length"))))
#define HEADER \
    STRUCTURE(MEMBER("id", UNSIGNED(8, ROLE("event-record-class-id"))) "," MEMBER( \
        "t", UNSIGNED(8, ROLE("default-clock-timestamp"))))
#define STREAM \
    RS "{\"type\":\"field-class-alias\",\"name\":\"u8\",\"field-class\":" UNSIGNED( \
        8, "") "}\n" RS "{\"type\":\"data-stream-class\",\"id\":3,\"default-clock-class-id\":\"c\"," \
               "\"packet-context-field-class\":" CONTEXT ",\"event-record-header-field-class\":" HEADER "}\n"
#define EVENT(id, name, members) \
    RS "{\"type\":\"event-record-class\",\"id\":" #id ",\"data-stream-class-id\":3,\"name\":\"" name \
       "\",\"payload-field-class\":" STRUCTURE(members) "}\n"
#define WHOLE(host, seconds, byte) \
    PREAMBLE(byte) TRACE(host) CLOCK(seconds) STREAM EVENT(0, "first", MEMBER("a", "\"u8\""))

static int parse_n(const char *text, size_t n, struct ctf_schemas *s, struct ctf_metadata *m, struct err *e)
{
    *e = (struct err){0};
    return ctf_metadata_parse("dir/metadata", text, n, s, m, e);
}

static struct ctf_metadata parse(const char *text, struct ctf_schemas *s)
{
    struct ctf_metadata m;
    struct err e;
    if (parse_n(text, strlen(text), s, &m, &e) != 0)
        fail_msg("%s\n%s", e.text, text);
    return m;
}

/* ---- shared schemas ---- */

static void test_shared(void **state)
{
    struct ctf_schemas *s = ctf_schemas_new();
    struct ctf_metadata a = parse(WHOLE("a", 7, 15), s), b = parse(WHOLE("b", -9, 16), s),
                        c = parse(WHOLE("a", 7, 15) EVENT(1, "second", ""), s);
    assert_ptr_equal(a.schema, b.schema);
    assert_ptr_not_equal(a.schema, c.schema);
    assert_true(a.has_uuid && b.has_uuid);
    assert_int_equal(a.uuid[15], 15);
    assert_int_equal(b.uuid[15], 16);
    assert_int_equal(a.n_env, 2);
    assert_string_equal(a.env[0].string, "a");
    assert_string_equal(b.env[0].string, "b");
    assert_int_equal(b.env[1].number, -3);
    assert_int_equal(a.clocks[a.clock_of[a.schema->streams[0].clock]].offset_s, 7);
    assert_int_equal(b.clocks[b.clock_of[b.schema->streams[0].clock]].offset_s, -9);
    assert_true(a.clocks[0].absolute);
    ctf_metadata_fini(&a, s);
    ctf_metadata_fini(&b, s);
    ctf_metadata_fini(&c, s);
    ctf_schemas_free(s);
}

/* LTTng's kinds and those that it never writes. */
#define TRACE_UUID \
    RS "{\"type\":\"trace-class\",\"packet-header-field-class\":" STRUCTURE( \
        MEMBER("uuid", "{\"type\":\"static-length-blob\",\"length\":16,\"roles\":[\"metadata-stream-uuid\"]}")) "}"
static const char everything[] = PREAMBLE(15) TRACE_UUID CLOCK(1) STREAM EVENT(0, "first", "") EVENT(1, "second",
    MEMBER("n", UNSIGNED(8, ",\"mappings\":{\"x\":[[0,3],[9,9]]}")) "," MEMBER("l",
        "{\"type\":\"dynamic-length-array\",\"length-field-location\":{\"origin\":\"event-record-payload\","
        "\"path\":[\"n\"]},\"element-field-class\":\"u8\"}") "," MEMBER("o",
        "{\"type\":\"optional\",\"selector-field-location\":{\"path\":[\"n\"]},\"selector-field-ranges\":[[1,2]],"
        "\"field-class\":{\"type\":\"null-terminated-string\",\"encoding\":\"utf-16le\"}}") "," MEMBER("v",
        "{\"type\":\"variant\",\"selector-field-location\":{\"path\":[\"n\"]},\"options\":[{\"name\":\"\\u0078\","
        "\"selector-field-ranges\":[[0,255]],\"field-class\":" STRUCTURE(
            MEMBER("m", "{\"type\":\"variable-length-unsigned-integer\"}") "," MEMBER("b",
                "{\"type\":\"dynamic-length-blob\",\"length-field-location\":{\"path\":[null,\"n\"]},"
                "\"media-type\":\"text/plain\"}")) "}]}") "," MEMBER("f",
        "{\"type\":\"fixed-length-floating-point-number\",\"length\":32,\"byte-order\":\"big-endian\"}") "," MEMBER("w",
        "{\"type\":\"fixed-length-bit-map\",\"length\":72,\"byte-order\":\"big-endian\",\"flags\":{\"q\":[[0,1]]}}"));

/* ---- damage ---- */

/* Parses; expects a schema, or an error with a place. */
static void look(const char *text, size_t n, size_t *errors)
{
    struct ctf_metadata m;
    struct err e;
    if (parse_n(text, n, NULL, &m, &e) == 0) {
        ctf_metadata_fini(&m, NULL);
        return;
    }
    ++*errors;
    /* the first byte says which language it is */
    if (e.code == 0 || (!strstr(e.text, "dir/metadata: fragment ") && !strstr(e.text, "dir/metadata: line ")))
        fail_msg("'%s' for %.*s", e.text, (int)n, text);
}

static void test_cut_anywhere(void **state)
{
    size_t n = strlen(everything), errors = 0;
    const char *first_event = strstr(everything, "\"event-record-class\"");
    for (size_t i = 1; i < n; i++) {
        char *copy = mem_alloc(i); /* exact size, so that a sanitizer detects reads behind it */
        size_t before = errors;
        memcpy(copy, everything, i);
        look(copy, i, &errors);
        if (everything + i > first_event && errors != before)
            fail_msg("cut at byte %zu: what came before is whole", i);
        free(copy);
    }
    assert_true(errors > 100);
}

static void test_changed_anywhere(void **state)
{
    static const char bytes[] = {'\0', '"', '{', '}', '[', ']', ',', ':', '-', '9', '\\', '\x1e', '\xff', ' '};
    size_t n = strlen(everything), errors = 0;
    char *copy = mem_alloc(n);
    for (size_t i = 1; i < n; i++)
        for (size_t k = 0; k < sizeof bytes; k++) {
            memcpy(copy, everything, n);
            copy[i] = bytes[k];
            look(copy, n, &errors);
        }
    free(copy);
    assert_true(errors > n * sizeof bytes / 2);
}

static void test_deep(void **state)
{
    for (int levels = 100; levels <= 100000; levels *= 10) {
        struct text t = {.fd = -1};
        struct ctf_metadata m;
        struct err e;
        text_puts(&t,
            PREAMBLE(15) CLOCK(1) STREAM RS
            "{\"type\":\"event-record-class\",\"data-stream-class-id\":3,\"payload-field-class\":");
        for (int i = 0; i < levels; i++)
            text_puts(&t, "{\"type\":\"structure\",\"member-classes\":[{\"name\":\"a\",\"field-class\":");
        text_puts(&t, "\"u8\"");
        for (int i = 0; i < levels; i++)
            text_puts(&t, "}]}");
        text_puts(&t, "}\n");
        int rc = parse_n(t.v, t.n, NULL, &m, &e);
        assert_int_equal(rc, levels < CTF_DEPTH ? 0 : ERR_LIMIT);
        if (rc)
            assert_non_null(strstr(e.text, "nested"));
        else
            ctf_metadata_fini(&m, NULL);
        text_fini(&t);
    }
}

/* Uses of uses of an alias: types are counted before they are made. */
static void test_aliases_of_aliases(void **state)
{
    struct text t = {.fd = -1};
    struct ctf_metadata m;
    struct err e;
    text_puts(&t, PREAMBLE(15) CLOCK(1) STREAM);
    text_puts(&t, RS "{\"type\":\"field-class-alias\",\"name\":\"x0\",\"field-class\":\"u8\"}");
    for (int i = 1; i < 60; i++)
        text_printf(&t,
            RS
            "{\"type\":\"field-class-alias\",\"name\":\"x%d\",\"field-class\":{\"type\":\"structure\","
            "\"member-classes\":[{\"name\":\"a\",\"field-class\":\"x%d\"},{\"name\":\"b\",\"field-class\":\"x%d\"}]}}",
            i, i - 1, i - 1);
    text_puts(&t, RS "{\"type\":\"event-record-class\",\"data-stream-class-id\":3,\"payload-field-class\":\"x59\"}");
    assert_int_equal(parse_n(t.v, t.n, NULL, &m, &e), ERR_LIMIT);
    assert_non_null(strstr(e.text, "types"));
    text_fini(&t);
}

/* ---- increments ---- */

/* A packet of one event of class `id` at the time. */
static void feed_event(struct ctf_feed *f, uint32_t line, uint8_t id, uint8_t time)
{
    struct err e = {0};
    uint8_t packet[] = {0xc1, 0x1f, 0xfc, 0xc1, 3, time, 0, 0, 0, 0, 0, 0, 0, 0, 0, id, time, 0};
    packet[13] = sizeof packet * 8;
    if (ctf_feed_packet(f, line, packet, sizeof packet, &e))
        fail_msg("%s", e.text);
}

static void test_increments(void **state)
{
    static const char later[] = EVENT(1, "second", MEMBER("b", "\"u8\""));
    static const char first[] = WHOLE("h", 1, 15);
    for (size_t portion = 1; portion < 300; portion += 1 + portion / 4) {
        struct err e = {0};
        struct ctf_feed *f = ctf_feed_new("live", NULL);
        for (size_t at = 0; at < sizeof first - 1; at += portion) {
            size_t left = sizeof first - 1 - at;
            ctf_feed_metadata(f, first + at, left < portion ? left : portion, &e);
        }
        struct ctf_trace *t = ctf_feed_trace(f);
        assert_non_null(t);
        uint32_t line = ctf_feed_line(f, "s");
        struct ctf_merge *m;
        struct ctf_event ev[4];
        const struct ctf_event_class *const *classes;
        assert_int_equal(
            ctf_merge_new(&(struct ctf_source){.trace = t}, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &m, &e),
            0);
        feed_event(f, line, 0, 5);
        ctf_feed_quiet(f, line, 1000000020);
        assert_int_equal(ctf_merge_next(m, ev, 4), 1);
        assert_string_equal(ev[0].cls->name, "first");
        assert_true(ev[0].ts == 1000000005);
        const struct ctf_event_class *kept = ev[0].cls;
        for (size_t at = 0; at < sizeof later - 1; at += portion) {
            size_t left = sizeof later - 1 - at;
            if (ctf_feed_metadata(f, later + at, left < portion ? left : portion, &e))
                fail_msg("%s", e.text);
        }
        assert_int_equal(ctf_trace_classes(t, &classes), 4);
        assert_ptr_equal(classes[2], kept);
        feed_event(f, line, 1, 30);
        feed_event(f, line, 0, 40);
        ctf_feed_end(f);
        assert_int_equal(ctf_merge_next(m, ev, 4), 2);
        assert_string_equal(ev[0].cls->name, "second");
        assert_ptr_equal(ev[1].cls, kept);
        ctf_merge_free(m);
        ctf_feed_free(f);
    }
}

static void append(const char *dir, const char *name, const void *data, size_t n)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "ab");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    fclose(f);
}

static void refresh(struct ctf_trace *t)
{
    struct ctf_trace_news news;
    struct err e = {0};
    if (ctf_trace_refresh(t, NULL, &news, &e))
        fail_msg("%s", e.text);
}

/* A directory that is opened before its tracer has declared any data stream class. */
static void test_follow(void **state)
{
    static const char head[] = PREAMBLE(15) TRACE("h"), middle[] = CLOCK(1) STREAM EVENT(0, "first", ""),
                      last[] = EVENT(1, "second", MEMBER("b", "\"u8\""));
    static const uint8_t one[] = {0xc1, 0x1f, 0xfc, 0xc1, 3, 5, 0, 0, 0, 0, 0, 0, 0, 17 * 8, 0, 0, 5},
                         two[] = {0xc1, 0x1f, 0xfc, 0xc1, 3, 9, 0, 0, 0, 0, 0, 0, 0, 18 * 8, 0, 1, 9, 77};
    const char *tmp = getenv("TMPDIR");
    char dir[600], command[700], *dirs[] = {dir};
    struct ctf_group g = {dirs, 1, 0, NULL};
    struct err e = {0};
    struct ctf_trace *t;
    struct ctf_merge *m;
    struct ctf_event ev[4];
    snprintf(dir, sizeof dir, "%s/weft-ctf2-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(dir));
    append(dir, "metadata", head, sizeof head - 1);
    if (ctf_trace_follow(&g, NULL, &t, &e))
        fail_msg("%s", e.text);
    assert_int_equal(
        ctf_merge_new(&(struct ctf_source){.trace = t}, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &m, &e), 0);
    assert_int_equal(ctf_merge_next(m, ev, 4), 0);
    append(dir, "metadata", middle, sizeof middle - 10); /* cut within its last fragment */
    refresh(t);
    append(dir, "metadata", middle + sizeof middle - 10, 9);
    append(dir, "s", one, sizeof one);
    refresh(t);
    append(dir, "metadata", last, sizeof last - 1);
    append(dir, "s", two, sizeof two);
    refresh(t);
    assert_int_equal(ctf_trace_end(t, &e), 0);
    assert_int_equal(ctf_merge_next(m, ev, 4), 2);
    assert_string_equal(ev[0].cls->name, "first");
    assert_string_equal(ev[1].cls->name, "second");
    assert_true(ev[1].ts == 1000000009);
    assert_int_equal(ev[1].data[ev[1].payload_bits / 8], 77);
    ctf_merge_free(m);
    ctf_trace_close(t);
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    assert_int_equal(system(command), 0);
}

/* ---- metadata that grow ---- */

#define LENGTH(origin, name) \
    "{\"type\":\"dynamic-length-blob\",\"length-field-location\":{\"origin\":\"" origin "\",\"path\":[\"" name "\"]}}"
#define IN_PAYLOAD "event-record-payload"
#define CHOSEN(ranges) \
    "{\"type\":\"optional\",\"selector-field-location\":{\"path\":[\"n\"]},\"selector-field-ranges\":" ranges \
    ",\"field-class\":\"u8\"}"
#define LISTS(last, ranges, kind) \
    EVENT(0, "first", \
        MEMBER("n", "\"u8\"") "," MEMBER("m", "\"u8\"") "," MEMBER("b", LENGTH(IN_PAYLOAD, "n")) "," MEMBER( \
            "c", LENGTH(IN_PAYLOAD, "m")) "," MEMBER("d", LENGTH(IN_PAYLOAD, last)) "," MEMBER("o", \
            CHOSEN(ranges)) "," MEMBER("k", "{\"type\":\"static-length-" kind "\",\"length\":1}"))

/* A class that is added refers to numbers of headers which nothing referred to. */
static void test_later_references(void **state)
{
    static const char first[] = PREAMBLE(15) TRACE("h") CLOCK(1) STREAM LISTS("n", "[[1,2]]", "blob"),
                      later[] = EVENT(1, "second",
                          MEMBER("n", "\"u8\"") "," MEMBER("b", LENGTH(IN_PAYLOAD, "n")) "," MEMBER(
                              "c", LENGTH("packet-header", "class")) "," MEMBER("d",
                              LENGTH("packet-context", "begin")) "," MEMBER("e",
                              LENGTH("event-record-header", "t")) "," MEMBER("o", "\"u8\""));
    static const uint8_t packet[] = {0xc1, 0x1f, 0xfc, 0xc1, 3, 5, 0, 0, 0, 0, 0, 0, 0, 0x68, 1, 0, 5, 1, 2, 0xb, 0xc,
        0xc, 0xd, 0x6b, 0x9, 1, 7, 1, 0xb, 0xc, 0xc, 0xc, 0xd, 0xd, 0xd, 0xd, 0xd, 0xe, 0xe, 0xe, 0xe, 0xe, 0xe, 0xe,
        0x6b};
    struct err e = {0};
    struct ctf_merge *m;
    struct ctf_event ev[4];
    struct ctf_access k;
    struct ctf_feed *f = ctf_feed_new("live", NULL);
    assert_int_equal(ctf_feed_metadata(f, first, sizeof first - 1, &e), 0);
    struct ctf_source source = {.trace = ctf_feed_trace(f)};
    uint32_t line = ctf_feed_line(f, "s");
    assert_int_equal(ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &m, &e), 0);
    if (ctf_feed_metadata(f, later, sizeof later - 1, &e))
        fail_msg("%s", e.text);
    if (ctf_feed_packet(f, line, packet, sizeof packet, &e))
        fail_msg("%s", e.text);
    ctf_feed_end(f);
    assert_int_equal(ctf_merge_next(m, ev, 4), 2);
    for (int i = 0; i < 2; i++) {
        bool present;
        assert_true(ctf_access_find(ev[i].cls, CTF_PAYLOAD, "o", &k));
        assert_int_equal(ctf_read_slow(&ev[i], &k, &present), 0x6b);
        assert_true(present);
    }
    ctf_merge_free(m);
    ctf_feed_free(f);
}

/* Checks that every schema of a trace is kept; one that adds nothing is dropped. */
static void test_nothing_new(void **state)
{
    static const char first[] = WHOLE("h", 1, 15), second[] = EVENT(1, "second", "");
    struct err e = {0};
    struct ctf_feed *f = ctf_feed_new("live", NULL);
    assert_int_equal(ctf_feed_metadata(f, first, sizeof first - 1, &e), 0);
    const struct ctf_trace *t = ctf_feed_trace(f);
    const struct ctf_schema *schema = t->schema;
    for (int i = 0; i < 10; i++)
        if (ctf_feed_metadata(f, i % 2 ? "" : "\n", i % 2 ? 0 : 1, &e))
            fail_msg("%s", e.text);
    assert_ptr_equal(t->schema, schema);
    assert_int_equal(t->outgrown.n, 0);
    assert_int_equal(ctf_feed_metadata(f, second, sizeof second - 1, &e), 0);
    assert_int_equal(t->outgrown.n, 1);
    ctf_feed_free(f);
}

/* Checks contradictions: the same bits have another value if another field gives the length or the selection. */
static void test_contradictions(void **state)
{
    static const char head[] = PREAMBLE(15) TRACE("h") CLOCK(1) STREAM, first[] = LISTS("n", "[[1,2]]", "blob");
    static const char *const second = EVENT(1, "second", "");
    static const struct {
        const char *event;
        bool is_same;
    } then[] = {{first, true}, {LISTS("m", "[[1,2]]", "blob"), false}, {LISTS("n", "[[1,3]]", "blob"), false},
        {LISTS("n", "[[1,2],[4,5]]", "blob"), false}};
    for (size_t i = 0; i < sizeof then / sizeof *then; i++) {
        char dir[600], path[700], *dirs[] = {dir};
        const char *tmp = getenv("TMPDIR");
        struct ctf_group g = {dirs, 1, 0, NULL};
        const struct ctf_event_class *const *classes;
        struct err e = {0};
        struct ctf_trace *t;
        snprintf(dir, sizeof dir, "%s/weft-ctf2-XXXXXX", tmp ? tmp : "/tmp");
        assert_non_null(mkdtemp(dir));
        append(dir, "metadata", head, sizeof head - 1);
        append(dir, "metadata", first, sizeof first - 1);
        if (ctf_trace_follow(&g, NULL, &t, &e))
            fail_msg("%s", e.text);
        snprintf(path, sizeof path, "%s/metadata", dir);
        assert_int_equal(unlink(path), 0);
        append(dir, "metadata", head, sizeof head - 1);
        append(dir, "metadata", then[i].event, strlen(then[i].event));
        append(dir, "metadata", second, strlen(second));
        refresh(t);
        assert_int_equal(ctf_trace_classes(t, &classes), then[i].is_same ? 4 : 3);
        ctf_trace_close(t);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(rmdir(dir), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_changed_anywhere),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_aliases_of_aliases),
        cmocka_unit_test(test_increments),
        cmocka_unit_test(test_follow),
        cmocka_unit_test(test_later_references),
        cmocka_unit_test(test_nothing_new),
        cmocka_unit_test(test_contradictions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
