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

/* Opens the file; it must succeed. */
static void open_file(struct ftrace_file *f)
{
    struct err e = {0};
    if (ftrace_file_open(made_path(&made), f, &e))
        fail_msg("%s", e.text);
}

static bool file_tells(const struct ftrace_file *f, const char *part, bool harmless)
{
    bool tells = false;
    for (size_t i = 0; i < f->problems.n; i++)
        tells |= f->problems.v[i].harmless == harmless && strstr(f->problems.v[i].text, part) != NULL;
    return tells;
}

static const uint64_t first_cpu[] = {0, MADE_PAGES, MADE_PAGE};

/* Options sections that name themselves as the next one are read once. */
static void test_sections_turn_back(void **state)
{
    struct ftrace_file f;
    made_begin(&made);
    made_buffer(&made, "", first_cpu, 1);
    made_option_text(&made, 7, "3");
    made_end(&made, made.section);
    open_file(&f);
    assert_int_equal(f.offset_ns, 3);
    assert_true(file_tells(&f, "next options section", false));
    ftrace_file_close(&f);
}

/* Sections that are named many times take no more than all may together. */
static void test_sections_repeat(void **state)
{
    struct ftrace_file f;
    made_begin(&made);
    made_end(&made, made.n + 14);
    uint64_t options = made_section(&made, 0);
    assert_int_equal(options, made.n - 16);
    made_buffer(&made, "", first_cpu, 1);
    for (size_t i = 0; i < 3; i++)
        made_option(&made, 18, options + 16 + 14 * 4 + 300);
    made_end(&made, 0);
    while (made.n < options + 16 + 14 * 4 + 300)
        made_number(&made, 0, 1);
    made_number(&made, 18, 2);
    made_number(&made, 1, 2); /* compressed */
    made_number(&made, 0, 4);
    made_number(&made, 8, 8);
    made_number(&made, 0, 4);
    made_number(&made, 200 << 20, 4);
    open_file(&f);
    assert_true(file_tells(&f, "0 compressed bytes are damaged", false));
    assert_true(file_tells(&f, "sections of more than 256 MiB", false));
    ftrace_file_close(&f);
}

/* A recording that trace-cmd did not finish is refused, and one of a latency tracer for what it is. */
static void test_unfinished(void **state)
{
    struct ftrace_file f;
    struct err e = {0};
    made_begin(&made);
    made_end(&made, 0);
    assert_int_equal(ftrace_file_open(made_path(&made), &f, &e), ERR_FORMAT);
    assert_non_null(strstr(e.text, "the places of the events"));
    ftrace_file_close(&f);
    memset(made.v + 0x1b, 0, 8); /* the place of the first options */
    assert_int_equal(ftrace_file_open(made_path(&made), &f, &e), ERR_FORMAT);
    assert_non_null(strstr(e.text, "its options"));
    ftrace_file_close(&f);
    made_begin(&made);
    made_option(&made, 22, MADE_BUFFER);
    made_end(&made, 0);
    assert_int_equal(ftrace_file_open(made_path(&made), &f, &e), ERR_UNSUPPORTED);
    assert_non_null(strstr(e.text, "latency tracer"));
    ftrace_file_close(&f);
}

/* However many remarks there are, damage is told. */
static void test_remarks(void **state)
{
    struct ftrace_file f = {0};
    for (size_t i = 0; i < 1000; i++)
        ftrace_remark(&f, "remark");
    ftrace_problem(&f, "damage");
    assert_true(file_tells(&f, "damage", false));
    assert_true(f.problems.n < 200);
    ftrace_file_close(&f);
}

/* Offsets of the clock whose sum is no number wrap around. */
static void test_offsets(void **state)
{
    struct ftrace_file f;
    made_begin(&made);
    made_buffer(&made, "", first_cpu, 1);
    made_option_text(&made, 1, "9223372036854775");
    made_option_text(&made, 7, "9223372036854775807");
    made_end(&made, 0);
    open_file(&f);
    assert_true(f.offset_ns < 0);
    ftrace_file_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies), cmocka_unit_test(test_cpu_twice),
        cmocka_unit_test(test_many_cpus), cmocka_unit_test(test_sections_turn_back),
        cmocka_unit_test(test_sections_repeat), cmocka_unit_test(test_unfinished), cmocka_unit_test(test_remarks),
        cmocka_unit_test(test_offsets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
