/* SPDX-License-Identifier: MIT */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "cli/cli.h"

static const struct cli_column columns[] = {
    {"host", false, false}, {"tid", true, true}, {"comm", false, false}, {"running", true, true}};

static struct cli_table *sample(void)
{
    struct cli_table *t = cli_table_new(columns, 4);
    static const char *const cells[] = {"web", "196", "tier", "1.5", "client-µ", "", "a \"quoted\", cell", "-", "db",
        "7", "esc\033[31m\nnew\xc2\x9b", "20"};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        cli_table_cell(t, "%s", cells[i]);
    return t;
}

static const char *written(struct cli_table *t, int format, int width)
{
    static struct text out;
    out.n = 0;
    if (format == CLI_TABLE)
        cli_table_write_width(t, width, &out);
    else
        cli_table_write(t, format, &out);
    return text_cstr(&out);
}

static void for_people(void **state)
{
    struct cli_table *t = sample();
    assert_string_equal(written(t, CLI_TABLE, 0),
        "host      tid  comm              running\n"
        "web       196  tier                  1.5\n"
        "client-µ       a \"quoted\", cell        -\n"
        "db          7  esc?[31m?new?          20\n");
    assert_string_equal(written(t, CLI_TABLE, 40), written(t, CLI_TABLE, 0));
    assert_string_equal(written(t, CLI_TABLE, 35),
        "host      tid  comm         running\n"
        "web       196  tier             1.5\n"
        "client-µ       a \"quoted\"…        -\n"
        "db          7  esc?[31m?n…       20\n");
    assert_string_equal(written(t, CLI_TABLE, 20),
        "host      tid\n"
        "web       196\n"
        "client-µ\n"
        "db          7\n"
        "no room for the\n"
        "columns comm,\n"
        "running: widen the\n"
        "terminal, or give\n"
        "--format csv\n");
    for (int width = 1; width < 60; width++) {
        const char *line = written(t, CLI_TABLE, width);
        for (const char *end; (end = strchr(line, '\n')); line = end + 1) {
            assert_true(text_cells(line, (size_t)(end - line)) <= (size_t)width);
            assert_true(end == line || end[-1] != ' ');
        }
    }
    cli_table_free(t);
}

static void for_spreadsheets(void **state)
{
    struct cli_table *t = sample();
    assert_string_equal(written(t, CLI_CSV, 0),
        "host,tid,comm,running\n"
        "web,196,tier,1.5\n"
        "client-µ,,\"a \"\"quoted\"\", cell\",'-\n"
        "db,7,\"esc\033[31m\nnew\xc2\x9b\",20\n");
    cli_table_free(t);
}

static void for_programs(void **state)
{
    struct cli_table *t = sample();
    json_error_t error;
    json_t *v = json_loads(written(t, CLI_JSON, 0), 0, &error);
    assert_non_null(v);
    assert_int_equal(json_array_size(v), 3);
    json_t *row = json_array_get(v, 0);
    assert_string_equal(json_string_value(json_object_get(row, "host")), "web");
    assert_int_equal(json_integer_value(json_object_get(row, "tid")), 196);
    assert_true(json_real_value(json_object_get(row, "running")) == 1.5);
    row = json_array_get(v, 1);
    assert_true(json_is_null(json_object_get(row, "tid")));
    assert_true(json_is_null(json_object_get(row, "running")));
    assert_string_equal(json_string_value(json_object_get(json_array_get(v, 2), "comm")), "esc\033[31m\nnew\xc2\x9b");
    json_decref(v);
    cli_table_free(t);
}

/* Number cells: what JSON's grammar (RFC 8259, section 6) does not take is null. */
static void numbers_in_json(void **state)
{
    static const struct {
        const char *cell;
        bool number;
    } cases[] = {
        {"0", true},
        {"-0", true},
        {"10", true},
        {"-1.50", true},
        {"1e9", true},
        {"1.5E-3", true},
        {"18446744073709551615", true},
        {"01", false},
        {"1.", false},
        {".5", false},
        {"+1", false},
        {"-", false},
        {"1e", false},
        {"0x1", false},
        {"nan", false},
        {"1 ", false},
        {"", false},
        {"12 ms", false},
    };
    static const struct cli_column one[] = {{"n", true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cli_table *t = cli_table_new(one, 1);
        cli_table_cell(t, "%s", cases[i].cell);
        char expected[64];
        snprintf(expected, sizeof expected, "[\n{\"n\":%s}\n]\n", cases[i].number ? cases[i].cell : "null");
        assert_string_equal(written(t, CLI_JSON, 0), expected);
        cli_table_free(t);
    }
}

static void without_rows(void **state)
{
    struct cli_table *t = cli_table_new(columns, 4);
    assert_string_equal(written(t, CLI_JSON, 0), "[]\n");
    assert_string_equal(written(t, CLI_CSV, 0), "host,tid,comm,running\n");
    assert_string_equal(written(t, CLI_TABLE, 0), "host  tid  comm  running\n");
    cli_table_cell(t, "only");
    assert_string_equal(written(t, CLI_CSV, 0), "host,tid,comm,running\nonly,,,\n");
    cli_table_free(t);
    cli_table_free(NULL);
}

static void format_names(void **state)
{
    int format = 99;
    struct err e = {0};
    assert_int_equal(cli_format_parse(NULL, &format, &e), ERR_OK);
    assert_int_equal(format, CLI_TABLE);
    assert_int_equal(cli_format_parse("json", &format, &e), ERR_OK);
    assert_int_equal(format, CLI_JSON);
    assert_int_equal(cli_format_parse("csv", &format, &e), ERR_OK);
    assert_int_equal(format, CLI_CSV);
    assert_int_equal(cli_format_parse("table", &format, &e), ERR_OK);
    assert_int_equal(format, CLI_TABLE);
    assert_int_equal(cli_format_parse("xml", &format, &e), ERR_ARG);
    assert_int_equal(cli_format_parse("", &format, &e), ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(for_people),
        cmocka_unit_test(for_spreadsheets),
        cmocka_unit_test(for_programs),
        cmocka_unit_test(numbers_in_json),
        cmocka_unit_test(without_rows),
        cmocka_unit_test(format_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
