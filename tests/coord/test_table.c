/* SPDX-License-Identifier: MIT */
/* Merging of tables: columns, order of lines, cells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "answers.h"
#include "coord/table.h"

#define TWO "trace-servers: [{name: web, host: web}, {name: db, host: db}]"
#define TIMED \
    "[{'id':0,'name':'Timestamp','type':'TIMESTAMP','key':'time','order':'ASCENDING'}," \
    "{'id':1,'name':'Event','type':'STRING','key':'event'}]"
#define OTHER \
    "[{'id':4,'name':'Content','type':'STRING','key':'content'}," \
    "{'id':0,'name':'Event type','type':'STRING','key':'event'}," \
    "{'id':7,'name':'Time','type':'TIMESTAMP','key':'time','order':'ASCENDING'}]"

/* Columns and lines of two servers. */
struct table {
    struct table_columns columns;
    struct merged_table merged;
    struct lines_wanted wanted;
    struct line_answer *lines;
    uint64_t position[2];
};

static void begin(struct fixture *x, struct table *t, const char *web, const char *db)
{
    struct slice models[] = {fixture_slice(x, web), fixture_slice(x, db)};
    coord_columns_merge(&x->call, models, &t->columns);
}

static const char *columns_of(struct fixture *x, const struct table *t)
{
    struct text out = {.fd = -1};
    struct json j = JSON_TO(&out);
    coord_put_columns(&j, &t->columns);
    const char *text = arena_strdup(&x->arena, text_cstr(&out));
    text_fini(&out);
    return text;
}

/* Merges models of lines. Returns the model for the client. */
static const char *merged(struct fixture *x, struct table *t, const char *parameters, const char *web, const char *db)
{
    struct text out = {.fd = -1};
    struct json j = JSON_TO(&out);
    const char *models[] = {web, db};
    fixture_ask(x, parameters);
    assert_null(coord_lines_wanted(&x->call, &t->columns, &t->wanted));
    coord_table_begin(&t->merged, &x->call, &t->columns, NULL);
    t->lines = arena_new(&x->arena, struct line_answer, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_null(coord_table_read(&t->merged, i, fixture_slice(x, models[i]), 10, &t->lines[i]));
        t->merged.size[i] = t->lines[i].size;
        t->position[i] = 0;
    }
    struct merged_lines lines = {.v = arena_new(&x->arena, struct chosen_line, t->wanted.count + 1)};
    struct backfill none = {.of = arena_new(&x->arena, struct fill, t->wanted.count + 1)};
    assert_true(coord_table_merge(&t->merged, t->lines, 10, t->wanted.count, t->position, &lines));
    coord_put_table(&t->merged, &t->wanted, 0, &lines, &none, &j);
    const char *text = arena_strdup(&x->arena, text_cstr(&out));
    text_fini(&out);
    return text;
}

static void test_columns_are_joined_by_key(void **state)
{
    struct fixture x;
    struct table t;
    fixture_begin(&x, TWO, "table/o/columns");
    begin(&x, &t, TIMED, OTHER);
    assert_true(t.columns.ordered);
    assert_int_equal(t.columns.trace, 1); /* added: lines show their server there */
    long long trace = t.columns.v[1].id;
    expect_json(columns_of(&x, &t),
        "[{'id':0,'name':'Timestamp','type':'TIMESTAMP','key':'time','order':'ASCENDING'},"
        "{'id':%lld,'name':'Trace','description':'Host or server on which it was recorded','type':'STRING',"
        "'key':'trace'},{'id':1,'name':'Event','type':'STRING','key':'event'},"
        "{'id':4,'name':'Content','type':'STRING','key':'content'}]",
        trace);
    assert_int_equal(t.columns.of[1].own[0], 7);
    assert_int_equal(t.columns.of[0].own[3], -1);
    fixture_end(&x);
}

/* Ids that clash get another one; columns without a key are one by name. */
static void test_ids_of_columns_do_not_clash(void **state)
{
    struct fixture x;
    struct table t;
    fixture_begin(&x, TWO, "table/o/columns");
    begin(&x, &t, "[{'id':0,'name':'A','type':'STRING'}]", "[{'id':0,'name':'B','type':'STRING'},{'id':1,'name':'A'}]");
    assert_int_equal(t.columns.n, 2);
    assert_int_equal(t.columns.v[0].id, 0);
    assert_int_not_equal(t.columns.v[1].id, 0);
    assert_int_equal(t.columns.of[1].own[0], 1);
    assert_false(t.columns.ordered);
    fixture_end(&x);
}

#define LINE(index, a, b) "{'index':" index ",'cells':[{'content':" a "},{'content':" b "}]}"

static void test_lines_are_in_order_of_common_times(void **state)
{
    struct fixture x;
    struct table t;
    fixture_begin(&x, TWO, "table/o/lines");
    fixture_clock(&x, 1, 1000);
    begin(&x, &t, TIMED, OTHER);
    const char *text = merged(&x, &t, "{'requested_table_index':0,'requested_table_count':3}",
        "{'lowIndex':0,'size':2,'columnIds':[0,1],'lines':[" LINE("0", "'2000'", "'a'") "," LINE(
            "1", "'2010'", "'b'") "]}",
        "{'lowIndex':0,'size':5,'columnIds':[7,0],'lines':[" LINE("0", "'1000'", "'c'") "," LINE(
            "1", "'1005'", "'d'") "]}");
    /* Equal times are in the order of the servers. */
    expect_json(text,
        "{'lowIndex':0,'size':7,'columnIds':[0,%lld,1,4],'lines':["
        "{'index':0,'cells':[{'content':'2000'},{'content':'web'},{'content':'a'},{'content':''}]},"
        "{'index':1,'cells':[{'content':'2000'},{'content':'db'},{'content':'c'},{'content':''}]},"
        "{'index':2,'cells':[{'content':'2005'},{'content':'db'},{'content':'d'},{'content':''}]}]}",
        (long long)t.columns.v[1].id);
    assert_int_equal(t.position[0], 1);
    assert_int_equal(t.position[1], 2);
    assert_int_equal(coord_position_sum(&t.merged, t.position), 3);
    fixture_end(&x);
}

static void test_largest_numbers_come_first(void **state)
{
    static const char columns[] = "[{'id':0,'name':'Duration','type':'NUMBER','key':'d','order':'DESCENDING'},"
                                  "{'id':1,'name':'Name','type':'STRING','key':'n'}]";
    struct fixture x;
    struct table t;
    fixture_begin(&x, TWO, "table/o/lines");
    begin(&x, &t, columns, columns);
    const char *text = merged(&x, &t,
        "{'requested_table_index':0,'requested_table_count':2,'requested_table_column_ids':[1]}",
        "{'lowIndex':0,'size':1,'columnIds':[0,1],'lines':[" LINE("0", "'5'", "'small'") "]}",
        "{'lowIndex':0,'size':1,'columnIds':[0,1],'lines':[" LINE("0", "'9'", "'large'") "]}");
    expect_json(text,
        "{'lowIndex':0,'size':2,'columnIds':[1],'lines':[{'index':0,'cells':[{'content':'large'}]},"
        "{'index':1,'cells':[{'content':'small'}]}]}");
    fixture_end(&x);
}

/* Lines of a member of which no more were asked for may be followed by others: the rest is unknown. */
static void test_merging_ends_with_a_member_s_lines(void **state)
{
    struct fixture x;
    struct table t;
    fixture_begin(&x, TWO, "table/o/lines");
    begin(&x, &t, TIMED, TIMED);
    merged(&x, &t, "{'requested_table_index':0,'requested_table_count':0}",
        "{'lowIndex':0,'size':9,'columnIds':[0,1],'lines':[" LINE("0", "'1'", "''") "," LINE("1", "'2'", "''") "]}",
        "{'lowIndex':0,'size':9,'columnIds':[0,1],'lines':[" LINE("0", "'3'", "''") "," LINE("1", "'4'", "''") "]}");
    struct chosen_line v[4];
    struct merged_lines lines = {.v = v};
    assert_false(coord_table_merge(&t.merged, t.lines, 2, 4, t.position, &lines));
    assert_int_equal(lines.n, 2);
    fixture_end(&x);
}

static void test_lines_without_numbers_are_refused(void **state)
{
    static const char *const wrong[][2] = {{"{'lowIndex':0,'lines':[]}", "its table has no size"},
        {"{'lowIndex':-1,'size':1,'lines':[]}", "its table has no size"},
        {"{'lowIndex':0,'size':1,'columnIds':['0'],'lines':[]}", "its table has columns without numbers"},
        {"{'lowIndex':0,'size':1,'columnIds':[0],'lines':[{'cells':[]}]}", "its table has lines without numbers"},
        {"{'lowIndex':0,'size':1,'columnIds':[0],'lines':[{'index':0,'cells':[{'content':'x'}]}]}",
            "its table has lines without times"}};
    struct fixture x;
    struct table t;
    fixture_begin(&x, TWO, "table/o/lines");
    begin(&x, &t, TIMED, TIMED);
    coord_table_begin(&t.merged, &x.call, &t.columns, NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct line_answer a = {0};
        assert_string_equal(coord_table_read(&t.merged, 0, fixture_slice(&x, wrong[i][0]), 10, &a), wrong[i][1]);
    }
    fixture_end(&x);
}

/* Expressions name a member's own columns; one without the column has its server's name there, or nothing. */
static void test_filters_are_translated(void **state)
{
    struct fixture x;
    struct table t;
    fixture_begin(&x, TWO, "table/o/lines");
    begin(&x, &t, TIMED, OTHER);
    fixture_ask(&x,
        arena_printf(&x.arena, "{'table_filter_expressions':{'1':'read','%lld':'db'}}", (long long)t.columns.v[1].id));
    coord_table_begin(&t.merged, &x.call, &t.columns, NULL);
    assert_false(t.merged.asked[0]);
    assert_true(t.merged.asked[1]);
    assert_string_equal(json_string_value(json_object_get(t.merged.filter[0], "1")), "read");
    assert_string_equal(json_string_value(json_object_get(t.merged.filter[1], "0")), "read");
    assert_int_equal(json_object_size(t.merged.filter[1]), 1);
    fixture_end(&x);
}

static void test_requests_for_lines(void **state)
{
    static const char *const wrong[][2] = {
        {"{'requested_table_count':1}", "Missing query parameters: requested_table_index"},
        {"{'requested_table_index':0}", "Missing query parameters: requested_table_count"},
        {"{'requested_table_index':-1,'requested_table_count':1}", "Invalid query parameters: requested_table_index"},
        {"{'requested_times':['1'],'requested_table_count':1}", "Invalid query parameters: requested_times"},
        {"{'requested_table_index':0,'requested_table_count':1,'table_search_direction':'UP'}",
            "Invalid query parameters: table_search_direction"},
        {"{'requested_table_index':0,'requested_table_count':1,'requested_table_column_ids':['1']}",
            "Invalid query parameters: requested_table_column_ids"}};
    struct fixture x;
    struct table t;
    fixture_begin(&x, TWO, "table/o/lines");
    begin(&x, &t, TIMED, TIMED);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fixture_ask(&x, wrong[i][0]);
        assert_string_equal(coord_lines_wanted(&x.call, &t.columns, &t.wanted), wrong[i][1]);
    }
    fixture_ask(&x,
        "{'requested_times':[7],'requested_table_count':99999999,'table_search_direction':'previous',"
        "'table_search_expressions':{'1':'x'}}");
    assert_null(coord_lines_wanted(&x.call, &t.columns, &t.wanted));
    assert_true(t.wanted.by_time && t.wanted.find && t.wanted.backward);
    assert_int_equal(t.wanted.time, 7);
    assert_int_equal(t.wanted.count, 10000);
    fixture_end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_columns_are_joined_by_key),
        cmocka_unit_test(test_ids_of_columns_do_not_clash), cmocka_unit_test(test_lines_are_in_order_of_common_times),
        cmocka_unit_test(test_largest_numbers_come_first), cmocka_unit_test(test_merging_ends_with_a_member_s_lines),
        cmocka_unit_test(test_lines_without_numbers_are_refused), cmocka_unit_test(test_filters_are_translated),
        cmocka_unit_test(test_requests_for_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
