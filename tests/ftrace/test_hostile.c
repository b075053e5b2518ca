/* SPDX-License-Identifier: MIT */
/* Recordings made to take memory or time, or to be read wrongly. */
#include "../base/test.h"
#include "ctf/made.h"
#include "ftrace/file.h"
#include "ftrace/ftrace.h"
#include "ftrace/pages.h"
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

/* Packets that may be copies of each other are compared while the trace is made. A recording that was replaced since it
 * was read makes none. */
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
    made_begin(&made);
    struct file_map map = {.size = made.n};
    struct ctf_made m = {.path = made_path(&made),
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
    map.size--; /* another file has come in its place */
    assert_int_equal(ctf_trace_make(&m, NULL, &t, &e), ERR_LOST);
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

/* A page with one record. commit: more than the page's data for damage. */
static void put_page(uint64_t time, const void *record, uint32_t n, uint32_t more)
{
    size_t begin = made.n;
    made_number(&made, time, 8);
    made_number(&made, n + 8 + more, 8);
    made_number(&made, 0, 4);
    made_number(&made, n + 4, 4);
    made_put(&made, record, n);
    while (made.n < begin + made.page)
        made_number(&made, 0, 1);
}

/* Damage is a loss: the CPU was not observed from there to its next packet. */
static void test_damage_is_a_gap(void **state)
{
    enum { PAGES = 5 };
    static const uint32_t more[PAGES] = {0, 4000, 0, 4, 0}; /* none is read; in part */
    struct ctf_stream_info info;
    made_begin(&made);
    made_end(&made, made.n + 14 + PAGES * MADE_PAGE);
    const uint64_t cpu[] = {0, made.n, PAGES * MADE_PAGE};
    for (size_t i = 0; i < PAGES; i++)
        put_page(1000 * (i + 1), made.v + MADE_PAGES + 20, 0x1c, more[i]);
    made_section(&made, 0);
    made_buffer(&made, "", cpu, 1);
    made_end(&made, 0);
    struct ctf_trace *t = opened(&made);
    assert_true(made_tells(t, "2 damaged pages"));
    assert_int_equal(ctf_trace_streams(t), 1);
    ctf_trace_stream(t, 0, &info);
    assert_int_equal(ctf_trace_items(t), PAGES - 1 + 2);
    assert_int_equal(info.packets, 3);
    assert_int_equal(info.lost_events, 2);
    ctf_trace_close(t);
}

/* Lists that share their bytes grow when they are written: packets have a limit, whatever the number of their pages. */
static void test_packet_grows(void **state)
{
    enum { LISTS = 20, PAGES = 3, BYTES = 60000 };
    static uint8_t record[BYTES];
    static char text[8192] = "name: grows\nID: 7\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;"
                             "\tsigned:0;\n\n";
    struct ctf_stream_info info;
    for (size_t i = 0, n = strlen(text); i < LISTS; i++)
        n += (size_t)snprintf(
            text + n, sizeof text - n, "\tfield:__data_loc unsigned char[] f%zu;\toffset:4;\tsize:4;\tsigned:0;\n", i);
    strcat(text, "\nprint fmt: \"\"\n");
    record[1] = 7;
    record[4] = (BYTES - 8) >> 8;
    record[5] = (BYTES - 8) & 0xff;
    record[7] = 8;
    made_begin(&made);
    made.page = 1 << 16;
    made_end(&made, made.n + 14 + PAGES * made.page);
    const uint64_t cpu[] = {0, made.n, PAGES * made.page};
    for (size_t i = 0; i < PAGES; i++)
        put_page(1000 * (i + 1), record, BYTES, 0);
    made_section(&made, 0);
    made_buffer(&made, "", cpu, 1);
    made_option(&made, 18, made.n + 14 + 14);
    made_end(&made, 0);
    made_section(&made, 18);
    made_number(&made, 1, 4);
    made_put(&made, "grow", 5);
    made_number(&made, 1, 4);
    made_number(&made, strlen(text), 8);
    made_put(&made, text, strlen(text));
    made_end(&made, 0);
    struct ctf_trace *t = opened(&made);
    assert_int_equal(ctf_trace_items(t), PAGES);
    ctf_trace_stream(t, 0, &info);
    assert_int_equal(info.packets, PAGES);
    ctf_trace_close(t);
}

/* Many buffers with many formats: the text ends soon behind what it may have, and none is given. */
static void test_metadata(void **state)
{
    enum { BUFFERS = 50 };
    struct ftrace_file f;
    struct err e = {0};
    char *text;
    size_t n, all;
    made_begin(&made);
    for (size_t i = 0; i < BUFFERS; i++)
        made_buffer(&made, "b", first_cpu, 1);
    made_end(&made, 0);
    open_file(&f);
    assert_int_equal(ftrace_metadata(&f, 1 << 20, &text, &all, &e), 0);
    assert_int_equal(strlen(text), all);
    free(text);
    assert_int_equal(ftrace_metadata(&f, all / 10, &text, &n, &e), ERR_LIMIT);
    assert_null(text);
    assert_true(n < all / 5);
    ftrace_file_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies), cmocka_unit_test(test_cpu_twice),
        cmocka_unit_test(test_many_cpus), cmocka_unit_test(test_sections_turn_back),
        cmocka_unit_test(test_sections_repeat), cmocka_unit_test(test_unfinished), cmocka_unit_test(test_remarks),
        cmocka_unit_test(test_offsets), cmocka_unit_test(test_damage_is_a_gap), cmocka_unit_test(test_packet_grows),
        cmocka_unit_test(test_metadata)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
