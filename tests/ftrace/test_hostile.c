/* SPDX-License-Identifier: MIT */
/* Recordings made to take memory or time, or to be read wrongly. */
#include "../base/test.h"
#include "ctf/made.h"
#include "ftrace/file.h"
#include "ftrace/ftrace.h"
#include "made_file.h"

static struct made made;

static struct ctf_trace *opened(const struct made *m)
{
    struct ctf_trace *t;
    struct err e = {0};
    if (ftrace_trace_open(made_path(m), NULL, &t, &e))
        fail_msg("%s", e.text);
    return t;
}

static int make_packet(void *reader, size_t stream, size_t packet, uint8_t *out, uint64_t bytes, struct err *e)
{
    memset(out, 0, bytes);
    ++*(unsigned *)reader;
    return 0;
}

/* Packets that may be copies of each other are compared while the trace is made. */
static void test_copies(void **state)
{
    static const char metadata[] =
        "/* CTF 1.8 */ typealias integer { size = 64; align = 8; } := u64; trace { major = 1; minor = 8; "
        "byte_order = le; }; clock { name = c; }; "
        "stream { id = 0; packet.context := struct { integer { size = 64; align = 8; map = clock.c.value; } "
        "timestamp_begin; integer { size = 64; align = 8; map = clock.c.value; } timestamp_end; }; };";
    struct ctf_made_packet packet = {.bytes = 16, .end = 1};
    struct ctf_made_stream streams[] = {{"a", 0, 16, 0, &packet, 1}, {"b", 0, 16, 0, &packet, 1}};
    unsigned made_packets = 0;
    struct file_map map = {0};
    struct ctf_made m = {.path = WEFT_SOURCE_ROOT,
        .metadata = metadata,
        .metadata_bytes = sizeof metadata - 1,
        .map = &map,
        .streams = streams,
        .n = 2,
        .maker = {.reader = &made_packets, .packet = make_packet}};
    struct ctf_trace *t;
    struct err e = {0};
    int rc = ctf_trace_make(&m, NULL, &t, &e);
    if (rc)
        fail_msg("%s", e.text);
    assert_true(made_packets > 0);
    ctf_trace_close(t);
}

/* A CPU that a buffer lists twice is read once. */
static void test_cpu_twice(void **state)
{
    const uint64_t cpus[] = {0, MADE_PAGES, MADE_PAGE, 0, MADE_PAGES, MADE_PAGE};
    made_begin(&made);
    made_buffer(&made, "", cpus, 1);
    made_end(&made, 0);
    struct ctf_trace *t = opened(&made);
    uint64_t events = ctf_trace_items(t);
    assert_true(events > 0);
    ctf_trace_close(t);
    made_begin(&made);
    made_buffer(&made, "", cpus, 2);
    made_end(&made, 0);
    t = opened(&made);
    assert_true(made_tells(t, "listed twice"));
    assert_int_equal(ctf_trace_items(t), events);
    ctf_trace_close(t);
}

/* CPUs without data in the file take of it as much as a small page. */
static void test_many_cpus(void **state)
{
    static uint64_t cpus[3 * 1000];
    for (size_t i = 0; i < 1000; i++)
        cpus[3 * i] = i, cpus[3 * i + 1] = 1 << 30, cpus[3 * i + 2] = 1;
    struct ftrace_file f;
    struct err e = {0};
    size_t n = 0;
    made_begin(&made);
    for (size_t i = 0; i < 20; i++)
        made_buffer(&made, "b", cpus, 1000);
    made_end(&made, 0);
    assert_int_equal(ftrace_file_open(made_path(&made), &f, &e), 0);
    for (size_t i = 0; i < f.buffers.n; i++)
        n += f.buffers.v[i].cpus.n;
    assert_true(n <= made.n / 256);
    ftrace_file_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies), cmocka_unit_test(test_cpu_twice), cmocka_unit_test(test_many_cpus)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
