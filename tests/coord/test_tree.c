/* SPDX-License-Identifier: MIT */
/* Merging of trees, and of series that are sums over servers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "answers.h"
#include "base/figures.h"
#include "coord/counts.h"
#include "coord/totals.h"
#include "coord/tree.h"

#define TWO "trace-servers: [{name: web, host: web}, {name: db, host: db}]"
#define ROTATION TWO "\nrotation-groups: {shop: [web, db]}"
#define HISTOGRAM "org.eclipse.tracecompass.internal.tmf.core.histogram.HistogramDataProvider"

static void test_entries_follow_one_another(void **state)
{
    struct fixture x;
    fixture_begin(&x, TWO, "timeGraph/o/tree");
    fixture_clock(&x, 1, 1000);
    fixture_answer(&x,
        (const char *const[]){"{'headers':[{'name':'Name','key':'row'},{'name':'TID','key':'tid'}],'autoExpandLevel':1,"
                              "'entries':[{'id':1,'parentId':-1,'labels':['a','7'],'start':500,'end':600},"
                              "{'id':2,'parentId':1,'labels':['b','8']}]}",
            "{'headers':[{'name':'Row','key':'row'},{'name':'PID'},{'name':'TID','key':'tid'}],'autoExpandLevel':2,"
            "'entries':[{'id':1,'parentId':-1,'labels':['a','3','7'],'start':-600,'end':600}]}"});
    /* Columns are joined by key, and equal roots get the name of their server. */
    expect_json(fixture_merge(&x, coord_merge_tree),
        "{'headers':[{'name':'Name','key':'row'},{'name':'TID','key':'tid'},{'name':'PID'}],'autoExpandLevel':1,"
        "'entries':[{'id':%lld,'parentId':-1,'labels':['web/a','7',''],'start':400,'end':600},"
        "{'id':%lld,'parentId':%lld,'labels':['b','8','']},"
        "{'id':%lld,'parentId':-1,'labels':['db/a','7','3'],'start':400,'end':1600}]}",
        fixture_id(&x, 0, 1), fixture_id(&x, 0, 2), fixture_id(&x, 0, 1), fixture_id(&x, 1, 1));
    fixture_end(&x);
}

/* The first entry begins where the earliest first entry does. */
static void test_first_entry_begins_first(void **state)
{
    static const int starts[][2] = {{4, 9}, {9, 4}};
    const char *form = "{'entries':[{'id':1,'parentId':-1,'labels':['%s'],'start':%d}]}";
    for (size_t i = 0; i < 2; i++) {
        struct fixture x;
        fixture_begin(&x, TWO, "timeGraph/o/tree");
        fixture_answer(&x,
            (const char *const[]){
                arena_printf(&x.arena, form, "a", starts[i][0]), arena_printf(&x.arena, form, "b", starts[i][1])});
        expect_json(fixture_merge(&x, coord_merge_tree),
            "{'headers':[],'entries':[{'id':%lld,'parentId':-1,'labels':['a'],'start':4},"
            "{'id':%lld,'parentId':-1,'labels':['b'],'start':%d}]}",
            fixture_id(&x, 0, 1), fixture_id(&x, 1, 1), starts[i][1]);
        fixture_end(&x);
    }
}

static void test_trees_without_entries_are_missing(void **state)
{
    struct fixture x;
    fixture_begin(&x, TWO, "timeGraph/o/tree");
    fixture_answer(&x, (const char *const[]){"{'entries':1}", NULL});
    expect_json(fixture_merge(&x, coord_merge_tree), "null");
    assert_string_equal(fixture_missing(&x), "without db: nobody answers there; without web: its tree has no entries");
    fixture_end(&x);
}

#define FIGURES(count, minimum, maximum, total, spread) \
    "'metadata':{'count':[" count "],'minimum':[" minimum "],'maximum':[" maximum "],'total':[" total \
    "],'minimumBegin':[3],'maximumBegin':[4],'spread':[" spread "]}"
#define STATISTICS(key, merge, figures, labels) \
    "{'headers':[{'name':'Row','key':'row'},{'name':'n','key':'count','merge':'SUM'}," \
    "{'name':'m','key':'average','merge':'MEAN','of':'total','by':'count'},{'name':'p99','key':'p99'}]," \
    "'entries':[{'id':1,'parentId':-1,'labels':[" labels "]," key merge figures "}]}"

static void test_roots_that_are_sums_are_added_up(void **state)
{
    struct fixture x;
    fixture_begin(&x, TWO, "data/o/tree");
    fixture_answer(&x,
        (const char *const[]){STATISTICS("'key':'total',", "'merge':'SUM',", FIGURES("2", "10", "30", "40", "200"),
                                  "'Total','2','20 ns','29'"),
            STATISTICS(
                "'key':'total',", "'merge':'SUM',", FIGURES("1", "70", "70", "70", "0"), "'Sum','1','70 ns','70'")});
    const char *merged = fixture_merge(&x, coord_merge_tree);
    struct slice e, tree = slice_of(merged, strlen(merged), NULL, NULL), list = slice_get(tree, "entries");
    struct slice_walk w = slice_items(list);
    assert_true(slice_next(&w, &e));
    json_t *labels = json_loadb(slice_get(e, "labels").at, slice_get(e, "labels").n, 0, NULL),
           *figures = json_loadb(slice_get(e, "metadata").at, slice_get(e, "metadata").n, 0, NULL);
    assert_string_equal(json_string_value(json_array_get(labels, 0)), "Total");
    assert_string_equal(json_string_value(json_array_get(labels, 1)), "3");
    assert_non_null(strstr(json_string_value(json_array_get(labels, 2)), "36"));
    assert_string_equal(
        json_string_value(json_array_get(labels, 3)), ""); /* no rule: no server's number stands for all */
    assert_int_equal(json_integer_value(json_array_get(json_object_get(figures, "total"), 0)), 110);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(figures, "minimum"), 0)), 10);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(figures, "maximum"), 0)), 70);
    assert_false(slice_next(&w, &e));
    json_decref(labels);
    json_decref(figures);
    fixture_end(&x);
}

/* A root that is not stated to be a sum stays its server's own. */
static void test_roots_without_a_rule_stay_apart(void **state)
{
    struct fixture x;
    fixture_begin(&x, TWO, "data/o/tree");
    fixture_answer(&x,
        (const char *const[]){STATISTICS("'key':'total',", "'merge':'SUM',", FIGURES("2", "10", "30", "40", "200"),
                                  "'Total','2','20 ns','29'"),
            STATISTICS("'key':'total',", "", FIGURES("1", "70", "70", "70", "0"), "'Total','1','70 ns','70'")});
    const char *merged = fixture_merge(&x, coord_merge_tree);
    assert_non_null(strstr(merged, "[\"web/Total\",\"2\",\"20 ns\",\"29\"]"));
    assert_non_null(strstr(merged, "[\"db/Total\",\"1\",\"70 ns\",\"70\"]"));
    fixture_end(&x);
}

static void test_roots_are_numbered_by_count(void **state)
{
    struct fixture x;
    fixture_begin(&x, TWO, "data/o/tree");
    fixture_answer(&x,
        (const char *const[]){"{'headers':[{'name':'Group','key':'group'}],'entries':["
                              "{'id':1,'parentId':-1,'labels':['1'],'metadata':{'group':[1],'count':[3],'first':[5]}},"
                              "{'id':2,'parentId':1,'labels':['below']}]}",
            "{'headers':[{'name':'Group','key':'group'}],'entries':["
            "{'id':1,'parentId':-1,'labels':['1'],'metadata':{'group':[1],'count':[9],'first':[6]}}]}"});
    expect_json(fixture_merge(&x, coord_merge_tree),
        "{'headers':[{'name':'Group','key':'group'}],'entries':["
        "{'id':%lld,'parentId':-1,'labels':['1'],'metadata':{'group':[1],'count':[9],'first':[6]}},"
        "{'id':%lld,'parentId':-1,'labels':['2'],'metadata':{'group':[2],'count':[3],'first':[5]}},"
        "{'id':%lld,'parentId':%lld,'labels':['below']}]}",
        fixture_id(&x, 1, 1), fixture_id(&x, 0, 1), fixture_id(&x, 0, 2), fixture_id(&x, 0, 1));
    fixture_end(&x);
}

/* Amounts of an entry that two pieces have are summed; where a column states nothing, differing cells are empty. */
static void test_entries_of_pieces_are_one(void **state)
{
    struct fixture x;
    struct time_range r;
    const long long row = PIECE_CONTENT + 7;
    const char *form = "{'headers':[{'name':'Row','key':'row'},{'name':'Read','key':'read','merge':'SUM'},"
                       "{'name':'p99','key':'p99'}],'entries':[{'id':%lld,'parentId':-1,'labels':['a','%d','%d'],"
                       "'start':%d,'end':%d,'metadata':{'read':[%d],'p99':[%d]}}]}";
    fixture_begin(&x, ROTATION, "XY/o/tree");
    coord_note_range(&x.call, "e", x.call.request.members[0], fixture_slice(&x, "{'start':10,'end':20}"), &r);
    coord_note_range(&x.call, "e", x.call.request.members[1], fixture_slice(&x, "{'start':20,'end':30}"), &r);
    fixture_answer(&x,
        (const char *const[]){arena_printf(&x.arena, form, row, 3, 8, 10, 20, 3, 8),
            arena_printf(&x.arena, form, row, 4, 9, 20, 30, 4, 9)});
    expect_json(fixture_merge(&x, coord_merge_tree),
        "{'headers':[{'name':'Row','key':'row'},{'name':'Read','key':'read','merge':'SUM'},"
        "{'name':'p99','key':'p99'}],'entries':[{'id':%lld,'parentId':-1,'labels':['a','7',''],"
        "'start':10,'end':30,'metadata':{'read':[7]}}]}",
        fixture_id(&x, 0, row));
    fixture_end(&x);
}

/* A row that its last piece has to the end goes on through later pieces, if none of them is missing. */
static void test_rows_go_on_through_later_pieces(void **state)
{
    const long long row = PIECE_CONTENT + 7;
    for (int missing = 0; missing < 2; missing++) {
        struct fixture x;
        struct time_range r;
        fixture_begin(&x, ROTATION, "timeGraph/o/tree");
        coord_note_range(&x.call, "e", x.call.request.members[0], fixture_slice(&x, "{'start':10,'end':20}"), &r);
        coord_note_range(&x.call, "e", x.call.request.members[1], fixture_slice(&x, "{'start':20,'end':30}"), &r);
        const char *first = arena_printf(
            &x.arena, "{'entries':[{'id':%lld,'parentId':-1,'labels':['a'],'start':12,'end':20}]}", row);
        fixture_answer(&x, (const char *const[]){first, missing ? NULL : "{'entries':[]}"});
        expect_json(fixture_merge(&x, coord_merge_tree),
            "{'headers':[],'entries':[{'id':%lld,'parentId':-1,'labels':['a'],'start':12,'end':%d}]}",
            fixture_id(&x, 0, row), missing ? 20 : 30);
        fixture_end(&x);
    }
}

static void test_groups_of_machines_stand_below(void **state)
{
    struct fixture x;
    const char *form = "{'headers':[{'name':'Machine'},{'name':'Rows'}],'entries':["
                       "{'id':1,'parentId':-1,'labels':['%s',''],'start':%d,'end':%d},"
                       "{'id':2,'parentId':1,'labels':['CPUs','%d'],'key':'cpus','metadata':{'rows':[%d]}}]}";
    fixture_begin(&x, TWO "\ngroups: {all: [web, db]}", "timeGraph/weft.summary/tree");
    fixture_answer(&x,
        (const char *const[]){
            arena_printf(&x.arena, form, "web", 10, 20, 4, 4), arena_printf(&x.arena, form, "db", 5, 15, 8, 8)});
    const char *merged = fixture_merge(&x, coord_merge_tree);
    struct node *all = &x.coordinator.groups[0].self;
    const char *group = arena_printf(
        &x.arena, "{\"id\":%lld,\"parentId\":-1,\"labels\":[\"all\",\"\"]", (long long)coord_id(&x.call, all, 0));
    const char *cpus = arena_printf(&x.arena,
        "{\"id\":%lld,\"parentId\":%lld,\"labels\":[\"CPUs\",\"12\"],\"key\":\"cpus\",\"metadata\":{\"rows\":[12]}}",
        (long long)coord_id(&x.call, all, 1), (long long)coord_id(&x.call, all, 0));
    assert_non_null(strstr(merged, group));
    assert_non_null(strstr(merged, cpus));
    fixture_end(&x);
}

/* ---- series that are sums ---- */

#define LINES \
    "{'headers':[],'entries':[{'id':1,'parentId':-1,'labels':['t']}," \
    "{'id':2,'parentId':1,'labels':['Total'],'key':'total','merge':'SUM','isDefault':true}," \
    "{'id':3,'parentId':1,'labels':['Lost'],'key':'lost','merge':'SUM'}]}"

static void test_totals(void **state)
{
    struct fixture x;
    struct coord_totals totals;
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    fixture_begin(&x, TWO, "XY/" HISTOGRAM "/xy");
    coord_experiment_note_name(&x.call, "e", "shop");
    struct slice lines = fixture_slice(&x, LINES);
    coord_totals_find(&x.call, (struct slice[]){lines, lines}, &totals);
    assert_string_equal(totals.name, "shop");
    assert_int_equal(totals.parts.n, 4);
    fixture_ask(&x, "{'requested_items':[]}");
    fixture_answer(&x,
        (const char *const[]){"{'title':'Histogram','series':[{'seriesId':2,'seriesName':'t/Total','xValues':[1,2],"
                              "'yValues':[3,4]}]}",
            "{'series':[{'seriesId':2,'seriesName':'u/Total','xValues':[1,2],'yValues':[10,20]},"
            "{'seriesId':9,'xValues':[1,2],'yValues':[7,7]}]}"});
    coord_merge_totals(&x.answers, &totals, (const bool[MOST_TOTALS]){true, true}, &j);
    expect_json(text_cstr(&t),
        "{'title':'Histogram','series':[{'seriesId':%lld,'seriesName':'shop/Total','xValues':[1,2],"
        "'yValues':[13,24]}]}",
        (long long)totals.line[0].id);
    text_fini(&t);
    /* A server with other times is left out. */
    t = (struct text){.fd = -1};
    j = JSON_TO(&t);
    fixture_answer(&x,
        (const char *const[]){"{'series':[{'seriesId':2,'xValues':[1,2],'yValues':[3,4]}]}",
            "{'series':[{'seriesId':2,'xValues':[1],'yValues':[10]}]}"});
    coord_merge_totals(&x.answers, &totals, (const bool[MOST_TOTALS]){true, false}, &j);
    expect_json(
        text_cstr(&t), "{'series':[{'seriesId':%lld,'xValues':[1,2],'yValues':[3,4]}]}", (long long)totals.line[0].id);
    assert_string_equal(fixture_missing(&x), "without db: its times are others");
    text_fini(&t);
    coord_totals_fini(&totals);
    fixture_end(&x);
}

static const char *counts_of(struct fixture *x)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    coord_merge_counts(&x->answers, 5, &j);
    const char *out = arena_strdup(&x->arena, text_cstr(&t));
    text_fini(&t);
    return out;
}

static void test_counts(void **state)
{
    struct fixture x;
    long long a = figures_eighth(20), b = figures_eighth(21), c = figures_eighth(22);
    fixture_begin(&x, TWO, "genericXY/o/xy");
    const char *one = "{'title':'t','series':[{'seriesId':2,'xRanges':[{'start':%lld,'end':%lld}],'yValues':[%d]}]}";
    fixture_answer(
        &x, (const char *const[]){arena_printf(&x.arena, one, a, b, 3), arena_printf(&x.arena, one, b, c, 4)});
    expect_json(counts_of(&x),
        "{'title':'t','series':[{'seriesId':5,'xRanges':[{'start':%lld,'end':%lld},{'start':%lld,'end':%lld}],"
        "'yValues':[3,4]}]}",
        a, b, b, c);
    fixture_answer(
        &x, (const char *const[]){arena_printf(&x.arena, one, a, b, 3), arena_printf(&x.arena, one, a + 1, b, 4)});
    expect_json(counts_of(&x),
        "{'title':'t','series':[{'seriesId':5,'xRanges':[{'start':%lld,'end':%lld}],'yValues':[3]}]}", a, b);
    assert_string_equal(fixture_missing(&x), "without db: it counts by other ranges of durations");
    fixture_end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_entries_follow_one_another),
        cmocka_unit_test(test_first_entry_begins_first), cmocka_unit_test(test_trees_without_entries_are_missing),
        cmocka_unit_test(test_rows_go_on_through_later_pieces), cmocka_unit_test(test_roots_that_are_sums_are_added_up),
        cmocka_unit_test(test_roots_without_a_rule_stay_apart), cmocka_unit_test(test_roots_are_numbered_by_count),
        cmocka_unit_test(test_entries_of_pieces_are_one), cmocka_unit_test(test_groups_of_machines_stand_below),
        cmocka_unit_test(test_totals), cmocka_unit_test(test_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
