/* SPDX-License-Identifier: MIT */
/* Event output. Text against babeltrace2 on a trace of all kinds of fields; JSON and CSV against values that were
 * written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/test.h"
#include "base/text.h"
#include "ctf/ctf.h"
#include "ctf_writer.h"

static const char declarations[] =
    "enum verdict : uint8_t { guilty, innocent = 1, maybe = 1 ... 4, hung = 9, maybe = 11 };\n"
    "enum signed_one : int8_t { below = -128 ... -1, zero, \"a \\\"label\\\"\" = 1 ... 127 };\n"
    "event { name = \"numbers\"; id = 0; stream_id = 0; fields := struct {\n"
    "  uint8_t u8; int8_t i8; uint16_t u16; int16_t i16; uint32_t u32; int32_t i32; uint64_t u64; int64_t i64;\n"
    "  integer { size = 8; align = 8; base = 2; } b8; integer { size = 16; align = 8; signed = true; base = binary; "
    "} b16;\n"
    "  integer { size = 8; align = 8; base = 8; } o8; integer { size = 32; align = 8; signed = true; base = octal; "
    "} o32;\n"
    "  integer { size = 64; align = 8; signed = true; base = oct; } o64;\n"
    "  integer { size = 8; align = 8; signed = true; base = hex; } x8; integer { size = 16; align = 8; base = 16; } "
    "x16;\n"
    "  integer { size = 32; align = 8; signed = true; base = 16; } x32; integer { size = 64; align = 8; base = x; } "
    "x64;\n"
    "  integer { size = 3; signed = true; } bits3; integer { size = 5; base = 16; } bits5; integer { size = 11; "
    "signed = true; base = 16; } bits11;\n"
    "  integer { size = 21; base = 8; } bits21; integer { size = 40; signed = true; } bits40; integer { size = 64; "
    "} bits64;\n"
    "  floating_point { exp_dig = 8; mant_dig = 24; align = 8; } f; floating_point { exp_dig = 11; mant_dig = 53; "
    "align = 8; } d;\n"
    "  enum verdict v; enum signed_one s; integer { size = 32; align = 32; } aligned; integer { size = 16; align = "
    "8; byte_order = be; } be;\n"
    "  integer { size = 16; align = 8; byte_order = le; } le;\n"
    "}; };\n"
    "event { name = \"things\"; id = 1; stream_id = 0; fields := struct {\n"
    "  uint8_t _n; uint16_t _list[_n]; string _s; integer { size = 8; align = 8; encoding = UTF8; } _text[6];\n"
    "  integer { size = 8; align = 8; encoding = ASCII; } _chars[_n]; uint8_t empty[0]; struct { } nothing;\n"
    "  struct { uint8_t a; struct { int8_t b; } deep; } pairs[2]; uint8_t grid[2][2];\n"
    "  enum : uint8_t { one = 1, two, three } which; variant <which> { uint32_t one; string two; struct { uint8_t x;"
    " } three; } what;\n"
    "  uint8_t end;\n"
    "}; };\n"
    "event { name = \"none\"; id = 2; stream_id = 0; fields := struct { }; };\n"
    "event { name = \"absent\"; id = 3; stream_id = 0; };\n";

static char scratch_dir[256];

static int make_scratch(void **state)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(scratch_dir, sizeof scratch_dir, "%s/weft-print-XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(scratch_dir) ? 0 : -1;
}

static int remove_scratch(void **state)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", scratch_dir);
    return system(command);
}

/* Output of a command, NULL when it fails. */
static char *output_of(const char *command)
{
    FILE *f = popen(command, "r");
    assert_non_null(f);
    struct text t = {.fd = -1};
    for (size_t got = 1; got > 0; t.n += got)
        got = fread(text_room(&t, 65536), 1, 65535, f);
    text_cstr(&t);
    if (pclose(f) == 0)
        return text_take(&t);
    text_fini(&t);
    return NULL;
}

static char *print_trace(const char *dir, enum ctf_print_format format)
{
    struct err e = {0};
    struct ctf_schemas *schemas = ctf_schemas_new();
    struct ctf_group *groups;
    size_t n;
    struct ctf_source source = {0};
    struct ctf_merge *m = NULL;
    if (ctf_discover(dir, &groups, &n, &e) || n != 1 || ctf_trace_open(&groups[0], schemas, &source.trace, &e) ||
        ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &m, &e))
        fail_msg("%s", e.text);
    struct ctf_print *p = ctf_print_new(&source, 1, format);
    struct text out = {.fd = -1};
    struct ctf_event batch[64];
    ctf_print_header(p, &out);
    for (size_t got; (got = ctf_merge_next(m, batch, 64)) > 0;)
        for (size_t i = 0; i < got; i++)
            ctf_print_event(p, m, &batch[i], &out);
    const struct ctf_problem *problems;
    if (ctf_merge_problems(m, &problems))
        fail_msg("%s", problems[0].text);
    ctf_print_free(p);
    ctf_merge_free(m);
    ctf_trace_close(source.trace);
    ctf_groups_free(groups, n);
    ctf_schemas_free(schemas);
    return text_take(&out);
}

static void assert_same_lines(const char *got, const char *expected)
{
    size_t i = 0, line = 0;
    for (; got[i] && got[i] == expected[i]; i++)
        if (got[i] == '\n')
            line = i + 1;
    if (got[i] != expected[i])
        fail_msg("got:      %.*s\nexpected: %.*s", (int)strcspn(got + line, "\n"), got + line,
            (int)strcspn(expected + line, "\n"), expected + line);
}

static uint64_t dice(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* A payload of the class `things`; bytes at will, but lengths and tags that mean something. No string is empty:
 * babeltrace2 2.0.4 shows the string of an earlier event in place of an empty one. */
static size_t things(uint8_t *p, uint64_t *state)
{
    uint8_t *start = p;
    uint8_t n = 1 + dice(state) % 3, which = (uint8_t)(1 + dice(state) % 3);
    *p++ = n;
    for (int i = 0; i < 2 * n; i++)
        *p++ = (uint8_t)dice(state);
    for (uint64_t i = 1 + dice(state) % 40; i > 0; i--)
        *p++ = (uint8_t)(1 + dice(state) % 255);
    *p++ = 0;
    for (int i = 0; i < 6; i++)
        *p++ = i == 0 || dice(state) % 8 ? (uint8_t)(1 + dice(state) % 255) : 0;
    for (int i = 0; i < n; i++)
        *p++ = (uint8_t)(1 + dice(state) % 255);
    for (int i = 0; i < 8; i++)
        *p++ = (uint8_t)dice(state);
    *p++ = which;
    if (which == 2)
        p = (uint8_t *)stpcpy((char *)p, "a?\\\"'\t\x01\x7f\x1b") + 1;
    for (int i = 0; which != 2 && i < (which == 1 ? 4 : 1); i++)
        *p++ = (uint8_t)dice(state);
    *p++ = (uint8_t)dice(state);
    return (size_t)(p - start);
}

/* A payload of the class `numbers`. One field is aligned to 32 bits, and so is the payload: it starts `place` bytes
 * after the packet's start. */
static size_t numbers(uint8_t *p, uint64_t *state, size_t place)
{
    size_t n = (4 - place % 4) % 4 + 104;
    for (size_t at = 0; at < n; at++)
        p[at] = (uint8_t)dice(state);
    return n;
}

static void write_things(const char *dir, bool big_endian)
{
    struct err e = {0};
    struct ctf_writer *w;
    struct ctf_writer_options o = {.hostname = "h",
        .tsdl = declarations,
        .cpus = 1,
        .packet_bytes = 4096,
        .big_endian = big_endian,
        .large_header = true,
        .event_context = "int16_t _tid; string _what;"};
    if (ctf_writer_open(dir, &o, &w, &e))
        fail_msg("%s", e.text);
    uint64_t state = test_seed(88172645463325252u + big_endian);
    size_t place = 0, packet = 84;
    for (int i = 0; i < 4000; i++) {
        uint8_t payload[512] = {(uint8_t)i, 0, 'x', 0};
        size_t context = 4, n = context;
        uint64_t id = dice(&state) % 4;
        place = (place ? place : packet) + 6;
        if (place + 400 > 4096) { /* a new packet; the writer would start it at a place that depends on the sizes */
            assert_int_equal(ctf_writer_lose(w, 0, 0, 0, &e), ERR_OK);
            place = packet + 6;
        }
        n += id == 0 ? numbers(payload + n, &state, place + context) : id == 1 ? things(payload + n, &state) : 0;
        if (ctf_writer_event(w, 0, id, 1000 + i, payload, n, &e))
            fail_msg("%s", e.text);
        place += n;
    }
    assert_int_equal(ctf_writer_close(w, &e), ERR_OK);
}

static void compare_with_babeltrace2(bool big_endian)
{
    char command[600];
    snprintf(command, sizeof command, "babeltrace2 --version >/dev/null 2>&1");
    if (system(command) != 0)
        skip_without("babeltrace2 is not installed");
    char dir[300];
    snprintf(dir, sizeof dir, "%s/%s", scratch_dir, big_endian ? "be" : "le");
    write_things(dir, big_endian);
    snprintf(command, sizeof command, "babeltrace2 --clock-seconds --no-delta %s", dir);
    char *expected = output_of(command);
    assert_non_null(expected);
    char *got = print_trace(dir, CTF_PRINT_TEXT);
    assert_same_lines(got, expected);
    free(got);
    free(expected);
}

static void test_text_little_endian(void **state)
{
    compare_with_babeltrace2(false);
}
static void test_text_big_endian(void **state)
{
    compare_with_babeltrace2(true);
}

/* Writes one event of each kind with extreme values. */
static void write_few(const char *dir)
{
    static const char tsdl[] =
        "event { name = \"a,\\\"b\\\"\"; id = 0; stream_id = 0; fields := struct { uint64_t u; int64_t i; string s;"
        " enum : uint8_t { A = 1, B = 1 ... 2, C = 3 } e[4]; floating_point { exp_dig = 8; mant_dig = 24; align = 8;"
        " } f; }; };\n";
    struct err e = {0};
    struct ctf_writer *w;
    struct ctf_writer_options o = {.hostname = "h\"1", .tsdl = tsdl, .cpus = 3, .clock_offset_ns = 1795225053184022483};
    assert_int_equal(ctf_writer_open(dir, &o, &w, &e), ERR_OK);
    uint8_t payload[64];
    uint64_t u = UINT64_MAX;
    int64_t i = INT64_MIN;
    float f = 0.1f;
    memcpy(payload, &u, 8);
    memcpy(payload + 8, &i, 8);
    memcpy(payload + 16, "\"\\\n\xc3\xa9\xff", 7);
    memcpy(payload + 23, "\1\2\3\4", 4);
    memcpy(payload + 27, &f, 4);
    assert_int_equal(ctf_writer_event(w, 2, 0, 1795225053184022484, payload, 31, &e), ERR_OK);
    assert_int_equal(ctf_writer_lose(w, 2, 0, 0, &e), ERR_OK);
    assert_int_equal(ctf_writer_event(w, 2, 0, 1795225053184022499, payload, 31, &e), ERR_OK);
    assert_int_equal(ctf_writer_lose(w, 2, 7, 0, &e), ERR_OK);
    assert_int_equal(ctf_writer_close(w, &e), ERR_OK);
}

static void test_json(void **state)
{
    char dir[300];
    snprintf(dir, sizeof dir, "%s/json", scratch_dir);
    write_few(dir);
    char *got = print_trace(dir, CTF_PRINT_JSON);
    char *second = strchr(got, '\n') + 1, *third = strchr(second, '\n') + 1;
    assert_string_equal(third + strcspn(third, "\n"), "\n");
    /* jansson keeps no unsigned 64-bit numbers: those are compared as text. */
    assert_non_null(strstr(got, "\"u\":18446744073709551615,\"i\":-9223372036854775808,"));
    char *digits = strstr(got, "18446744073709551615");
    memcpy(digits, "    1               ", 20);
    json_t *line = json_loads(got, JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(line);
    const char *host, *name, *s;
    json_int_t ts, cpu;
    json_t *fields, *context, *labels;
    double f;
    assert_int_equal(json_unpack(line, "{s:I,s:s,s:I,s:s,s:o,s:o}", "ts", &ts, "host", &host, "cpu", &cpu, "name",
                         &name, "fields", &fields, "context", &context),
        0);
    assert_int_equal(ts, 1795225053184022484);
    assert_string_equal(host, "h\"1");
    assert_int_equal(cpu, 2);
    assert_string_equal(name, "a,\"b\"");
    assert_int_equal(json_object_size(context), 0);
    assert_int_equal(json_unpack(fields, "{s:s,s:o,s:F}", "s", &s, "e", &labels, "f", &f), 0);
    assert_string_equal(s, "\"\\\n\xc3\xa9\xef\xbf\xbd");
    assert_true((float)f == 0.1f);
    static const char *const expected[] = {"A|B", "B", "C", NULL};
    for (size_t i = 0; i < 4; i++) {
        json_t *item = json_array_get(labels, i);
        assert_int_equal(json_integer_value(json_object_get(item, "value")), i + 1);
        if (expected[i])
            assert_string_equal(json_string_value(json_object_get(item, "label")), expected[i]);
        else
            assert_true(json_is_null(json_object_get(item, "label")));
    }
    json_decref(line);
    /* Loss between the two packets named by its report. */
    line = json_loads(second, JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(line);
    if (!json_object_get(line, "lost_events")) {
        json_decref(line);
        line = json_loads(third, JSON_DISABLE_EOF_CHECK, NULL);
    }
    json_int_t lost, begin, end;
    assert_int_equal(
        json_unpack(line, "{s:I,s:I,s:I,s:I}", "lost_events", &lost, "cpu", &cpu, "begin", &begin, "end", &end), 0);
    assert_int_equal(lost, 7);
    assert_int_equal(begin, 1795225053184022484);
    assert_int_equal(end, 1795225053184022499);
    json_decref(line);
    free(got);
}

static void test_csv(void **state)
{
    char dir[300];
    snprintf(dir, sizeof dir, "%s/csv", scratch_dir);
    write_few(dir);
    char *got = print_trace(dir, CTF_PRINT_CSV);
    static const char start[] =
        "ts,host,cpu,name,fields\n"
        "1795225053184022484,\"h\"\"1\",2,\"a,\"\"b\"\"\",\"{ u = 18446744073709551615, i = -9223372036854775808, s "
        "= \"\"\\\"\"\\\\\\n\xc3\xa9\xff\"\", "
        "e = [ [0] = ( \"\"A\"\", \"\"B\"\" : container = 1 ), [1] = ( \"\"B\"\" : container = 2 ), [2] = ( "
        "\"\"C\"\" : container = 3 ), "
        "[3] = ( <unknown> : container = 4 ) ], f = 0.1 }\"\n";
    got[sizeof start - 1] = '\0';
    assert_string_equal(got, start);
    free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_little_endian),
        cmocka_unit_test(test_text_big_endian),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_csv),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
