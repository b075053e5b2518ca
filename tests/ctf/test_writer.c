/* SPDX-License-Identifier: MIT */
/* Writer against babeltrace2: every value written must be printed, on stdout only, without a message on stderr. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/test.h"
#include "base/text.h"
#include "ctf/ctf.h"
#include "ctf_writer.h"

static const char tsdl[] =
    "event { name = \"count\"; id = 0; stream_id = 0; fields := struct { uint32_t n; string word; }; };\n"
    "event { name = \"big\"; id = 70000; stream_id = 0; fields := struct { int64_t v; uint16_t list[2]; }; };\n";
static const uint8_t uuid[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static bool have_babeltrace2(void)
{
    return system("babeltrace2 --version >/dev/null 2>&1") == 0;
}

/* Output of babeltrace2, stderr included. */
static char *babeltrace2(const char *dir)
{
    char command[512];
    snprintf(command, sizeof command, "babeltrace2 --clock-seconds --no-delta %s 2>&1", dir);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    struct text t = {.fd = -1};
    for (size_t got = 1; got > 0; t.n += got)
        got = fread(text_room(&t, 65536), 1, 65535, f);
    text_cstr(&t);
    assert_int_equal(pclose(f), 0);
    return text_take(&t);
}

static void make_scratch(char *dir, size_t n)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, n, "%s/weft-writer-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(dir));
}

static void remove_scratch(const char *dir)
{
    char command[512];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    assert_int_equal(system(command), 0);
}

static void put(uint8_t *p, uint64_t v, int bytes, bool big)
{
    for (int i = 0; i < bytes; i++)
        p[big ? bytes - 1 - i : i] = (uint8_t)(v >> (8 * i));
}

static size_t count_payload(uint8_t *p, uint32_t n, const char *word, bool big)
{
    put(p, n, 4, big);
    memcpy(p + 4, word, strlen(word) + 1);
    return 4 + strlen(word) + 1;
}

/* Works like assert_string_equal, but reports the first line that differs. */
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

/* What weft prints of a trace. */
static char *print_trace(const char *dir)
{
    struct ctf_group *groups;
    size_t n_groups;
    struct ctf_source source = {0};
    struct ctf_merge *m;
    struct ctf_event batch[64];
    struct text out = {.fd = -1};
    struct err e = {0};
    if (ctf_discover(dir, &groups, &n_groups, &e) || ctf_trace_open(groups, NULL, &source.trace, &e))
        fail_msg("%s", e.text);
    assert_int_equal(ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &m, &e), 0);
    struct ctf_print *p = ctf_print_new(&source, 1, CTF_PRINT_TEXT);
    for (size_t got; (got = ctf_merge_next(m, batch, 64)) > 0;)
        for (size_t i = 0; i < got; i++)
            ctf_print_event(p, m, &batch[i], &out);
    text_cstr(&out);
    ctf_print_free(p);
    ctf_merge_free(m);
    ctf_trace_close(source.trace);
    ctf_groups_free(groups, n_groups);
    return text_take(&out);
}

/* 3000 events on 2 CPUs, times far apart now and then (long header), ids beyond the short form, many packets. */
static void write_and_compare_one(struct ctf_writer_options o, int64_t jump_ns)
{
    char dir[256];
    make_scratch(dir, sizeof dir);
    struct err e = {0};
    struct ctf_writer *w = NULL;
    o.hostname = "wr\"iter";
    o.tsdl = tsdl;
    o.cpus = 2;
    o.packet_bytes = 1024;
    memcpy(o.uuid, uuid, 16);
    if (ctf_writer_open(dir, &o, &w, &e) != ERR_OK)
        fail_msg("%s", e.text);
    struct text expected = {.fd = -1};
    int64_t ts = o.clock_offset_ns + 1000000;
    for (uint32_t i = 0; i < 3000; i++) {
        ts += i % 100 == 99 ? jump_ns : 8 * (i % 1000 + 1);
        uint8_t payload[64];
        bool big = i % 7 == 3;
        size_t n = 12;
        if (big) {
            put(payload, (uint64_t) - (int64_t)i, 8, o.big_endian);
            put(payload + 8, i, 2, o.big_endian);
            put(payload + 10, 65535, 2, o.big_endian);
        } else {
            char word[16];
            snprintf(word, sizeof word, "w%u", i);
            n = count_payload(payload, i, word, o.big_endian);
        }
        if (ctf_writer_event(w, i % 2, big ? 70000 : 0, ts, payload, n, &e) != ERR_OK)
            fail_msg("%s", e.text);
        text_printf(&expected, "[%lld.%09lld] wr\"iter %s: { cpu_id = %u }, ", (long long)(ts / 1000000000),
            (long long)(ts % 1000000000), big ? "big" : "count", i % 2);
        if (big)
            text_printf(&expected, "{ v = %lld, list = [ [0] = %u, [1] = 65535 ] }\n", -(long long)i, i);
        else
            text_printf(&expected, "{ n = %u, word = \"w%u\" }\n", i, i);
    }
    if (ctf_writer_close(w, &e) != ERR_OK)
        fail_msg("%s", e.text);
    char *got = o.ctf2 ? print_trace(dir) : babeltrace2(dir);
    assert_same_lines(got, text_cstr(&expected));
    free(got);
    text_fini(&expected);
    remove_scratch(dir);
}

/* In CTF 2, which babeltrace2 reads since 2.1, weft is asked. */
static void write_and_compare(struct ctf_writer_options o, int64_t jump_ns)
{
    o.ctf2 = true;
    write_and_compare_one(o, jump_ns);
    o.ctf2 = false;
    if (!have_babeltrace2())
        skip_without("babeltrace2 is not installed");
    write_and_compare_one(o, jump_ns);
}

static void test_little_endian(void **state)
{
    write_and_compare(
        (struct ctf_writer_options){.freq = 1000000000, .clock_offset_ns = 1500000000123456789}, 5000000000);
}

static void test_big_endian_with_index(void **state)
{
    write_and_compare(
        (struct ctf_writer_options){.freq = 1000000000, .big_endian = true, .index_files = true}, 5000000000);
}

static void test_large_header(void **state)
{
    write_and_compare(
        (struct ctf_writer_options){.freq = 1000000000, .large_header = true, .index_files = true}, 5000000000);
}

static void test_large_header_big_endian(void **state)
{
    write_and_compare(
        (struct ctf_writer_options){.freq = 1000000000, .large_header = true, .big_endian = true}, 5000000000);
}

/* 125 MHz: a cycle is 8 ns, and all times written are multiples of it. The trace is short because babeltrace2 counts in
 * doubles. */
static void test_slow_clock(void **state)
{
    write_and_compare((struct ctf_writer_options){.freq = 125000000, .clock_offset_ns = 1500000000000000000}, 1000000);
}

static void test_env_and_context(void **state)
{
    if (!have_babeltrace2())
        skip_without("babeltrace2 is not installed");
    char dir[256];
    make_scratch(dir, sizeof dir);
    struct err e = {0};
    struct ctf_writer *w = NULL;
    static const char *const env[] = {"domain=ust", "procname=a tool", "vpid=77", NULL};
    struct ctf_writer_options o = {
        .hostname = "h", .tsdl = tsdl, .env = env, .cpus = 1, .event_context = "int32_t _vtid;"};
    assert_int_equal(ctf_writer_open(dir, &o, &w, &e), ERR_OK);
    uint8_t payload[32];
    put(payload, 42, 4, false);
    size_t n = 4 + count_payload(payload + 4, 1, "x", false);
    assert_int_equal(ctf_writer_event(w, 0, 0, 5, payload, n, &e), ERR_OK);
    assert_int_equal(ctf_writer_close(w, &e), ERR_OK);
    char *got = babeltrace2(dir);
    assert_string_equal(
        got, "[0.000000005] h:a tool:(77) count: { cpu_id = 0 }, { vtid = 42 }, { n = 1, word = \"x\" }\n");
    free(got);
    remove_scratch(dir);
}

static void test_losses(void **state)
{
    if (!have_babeltrace2())
        skip_without("babeltrace2 is not installed");
    char dir[256];
    make_scratch(dir, sizeof dir);
    struct err e = {0};
    struct ctf_writer *w = NULL;
    struct ctf_writer_options o = {.hostname = "h", .tsdl = tsdl, .cpus = 1, .index_files = true};
    memcpy(o.uuid, uuid, 16);
    assert_int_equal(ctf_writer_open(dir, &o, &w, &e), ERR_OK);
    uint8_t payload[32];
    for (uint32_t i = 0; i < 3; i++) {
        size_t n = count_payload(payload, i, "x", false);
        assert_int_equal(ctf_writer_event(w, 0, 0, 10 * (i + 1), payload, n, &e), ERR_OK);
        assert_int_equal(ctf_writer_lose(w, 0, i == 1 ? 17 : 0, i == 1 ? 4 : 0, &e), ERR_OK);
    }
    assert_int_equal(ctf_writer_close(w, &e), ERR_OK);
    char *got = babeltrace2(dir);
    assert_non_null(strstr(got, "WARNING: Tracer discarded 17 events between [0.000000010] and [0.000000020]"));
    assert_non_null(strstr(got, "WARNING: Tracer discarded 4 packets between [0.000000020] and [0.000000030]"));
    assert_non_null(strstr(got, "[0.000000030] h count: { cpu_id = 0 }, { n = 2, word = \"x\" }\n"));
    free(got);
    remove_scratch(dir);
}

static void test_refusals(void **state)
{
    char dir[256];
    make_scratch(dir, sizeof dir);
    struct err e = {0};
    struct ctf_writer *w = NULL;
    struct ctf_writer_options o = {.tsdl = tsdl, .packet_bytes = 256};
    assert_int_equal(ctf_writer_open(dir, &o, &w, &e), ERR_ARG);
    assert_null(w);
    o.cpus = 1;
    o.clock_offset_ns = 1000;
    assert_int_equal(ctf_writer_open(dir, &o, &w, &e), ERR_OK);
    static const uint8_t payload[256];
    assert_int_equal(ctf_writer_event(w, 1, 0, 2000, payload, 5, &e), ERR_ARG);
    assert_int_equal(ctf_writer_event(w, 0, 0, 999, payload, 5, &e), ERR_ARG);
    assert_int_equal(ctf_writer_event(w, 0, 0, 2000, payload, 256, &e), ERR_LIMIT);
    assert_int_equal(ctf_writer_event(w, 0, 0, 2000, payload, 5, &e), ERR_OK);
    assert_int_equal(ctf_writer_event(w, 0, 0, 1999, payload, 5, &e), ERR_ARG);
    assert_int_equal(ctf_writer_close(w, &e), ERR_OK);
    assert_int_equal(ctf_writer_open("/nonexistent/dir", &o, &w, &e), ERR_IO);
    remove_scratch(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_little_endian),
        cmocka_unit_test(test_big_endian_with_index),
        cmocka_unit_test(test_large_header),
        cmocka_unit_test(test_large_header_big_endian),
        cmocka_unit_test(test_slow_clock),
        cmocka_unit_test(test_env_and_context),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
