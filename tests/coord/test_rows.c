/* SPDX-License-Identifier: MIT */
/* Merging of data of entries: states, series, arrows, styles, annotations, tooltips. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "answers.h"
#include "coord/rows.h"

#define TWO "trace-servers: [{name: web, host: web}, {name: db, host: db}]"
#define ROTATION TWO "\nrotation-groups: {shop: [web, db]}"

static void test_states_are_joined(void **state)
{
    struct fixture x;
    fixture_begin(&x, TWO, "timeGraph/o/states");
    fixture_clock(&x, 1, 1000);
    fixture_answer(&x,
        (const char *const[]){"{'rows':[{'entryId':1,'states':[{'start':5,'end':9,'label':'a'}]}],'extra':1}",
            "{'rows':[{'entryId':1,'states':[{'start':5,'end':9,'value':1e400}]}],'extra':2}"});
    /* Numbers that fit nowhere are passed on: that text is compared as text. */
    const char *merged = fixture_merge(&x, coord_merge_states);
    assert_non_null(strstr(merged, "\"value\":1e400"));
    fixture_answer(&x,
        (const char *const[]){"{'rows':[{'entryId':1,'states':[{'start':5,'end':9,'label':'a'}]}],'extra':1}",
            "{'rows':[{'entryId':1,'states':[{'start':5,'end':9}]}],'extra':2}"});
    expect_json(fixture_merge(&x, coord_merge_states),
        "{'extra':1,'rows':[{'entryId':%lld,'states':[{'start':5,'end':9,'label':'a'}]},"
        "{'entryId':%lld,'states':[{'start':1005,'end':1009}]}]}",
        fixture_id(&x, 0, 1), fixture_id(&x, 1, 1));
    assert_string_equal(fixture_missing(&x), "");
    fixture_end(&x);
}

static void test_answers_of_another_form_are_missing(void **state)
{
    struct fixture x;
    fixture_begin(&x, TWO, "timeGraph/o/states");
    fixture_answer(&x, (const char *const[]){"{'rows':{}}", "{'rows':[{'entryId':2,'states':[]}]}"});
    expect_json(fixture_merge(&x, coord_merge_states), "{'rows':[{'entryId':%lld,'states':[]}]}", fixture_id(&x, 1, 2));
    assert_string_equal(fixture_missing(&x), "without web: its answer has another form than the protocol's");
    fixture_end(&x);
    fixture_begin(&x, TWO, "timeGraph/o/states");
    fixture_answer(&x, (const char *const[]){NULL, "{'rows':1}"});
    expect_json(fixture_merge(&x, coord_merge_states), "null");
    assert_string_equal(fixture_missing(&x),
        "without web: nobody answers there; without db: its answer has another form than the protocol's");
    fixture_end(&x);
}

/* A state at the end of a piece lasts until the next piece begins, which knows the rest. */
static void test_states_of_pieces_are_one_row(void **state)
{
    struct fixture x;
    const int64_t row = PIECE_CONTENT + 7;
    fixture_begin(&x, ROTATION, "timeGraph/o/states");
    fixture_ask(&x, "{'requested_times':[10,50,150,190]}");
    struct time_range r;
    coord_note_range(&x.call, "e", x.call.request.members[0], fixture_slice(&x, "{'start':10,'end':100}"), &r);
    coord_note_range(&x.call, "e", x.call.request.members[1], fixture_slice(&x, "{'start':110,'end':200}"), &r);
    const char *first = arena_printf(&x.arena,
        "{'rows':[{'entryId':%lld,'states':[{'start':10,'end':40,'label':'a'},{'start':40,'end':100,'label':'b'}]}]}",
        (long long)row);
    const char *second = arena_printf(&x.arena,
        "{'rows':[{'entryId':%lld,'states':[{'start':110,'end':160,'label':'b'},"
        "{'start':160,'end':200,'label':'c'}]}]}",
        (long long)row);
    fixture_answer(&x, (const char *const[]){first, second});
    expect_json(fixture_merge(&x, coord_merge_states),
        "{'rows':[{'entryId':%lld,'states':[{'start':10,'end':40,'label':'a'},{'start':40,'end':160,'label':'b'},"
        "{'start':160,'end':200,'label':'c'}]}]}",
        fixture_id(&x, 0, row));
    assert_int_equal(fixture_id(&x, 0, row), fixture_id(&x, 1, row));
    /* While the first piece is away nothing is carried across it. */
    fixture_answer(&x, (const char *const[]){NULL, second});
    expect_json(fixture_merge(&x, coord_merge_states),
        "{'rows':[{'entryId':%lld,'states':[{'start':110,'end':160,'label':'b'},"
        "{'start':160,'end':200,'label':'c'}]}]}",
        fixture_id(&x, 1, row));
    fixture_end(&x);
}

static void test_states_last_until_the_next_piece(void **state)
{
    struct fixture x;
    struct time_range r;
    const char *form = "{'rows':[{'entryId':%lld,'states':[{'start':%d,'end':%d,'label':'%s'}]}]}";
    const long long row = PIECE_CONTENT + 7;
    fixture_begin(&x, ROTATION, "timeGraph/o/states");
    fixture_ask(&x, "{'requested_times':[10,105,150]}");
    coord_note_range(&x.call, "e", x.call.request.members[0], fixture_slice(&x, "{'start':10,'end':100}"), &r);
    coord_note_range(&x.call, "e", x.call.request.members[1], fixture_slice(&x, "{'start':110,'end':200}"), &r);
    fixture_answer(&x,
        (const char *const[]){
            arena_printf(&x.arena, form, row, 10, 100, "a"), arena_printf(&x.arena, form, row, 110, 200, "b")});
    expect_json(fixture_merge(&x, coord_merge_states),
        "{'rows':[{'entryId':%lld,'states':[{'start':10,'end':110,'label':'a'},{'start':110,'end':200,'label':'b'}]}]}",
        fixture_id(&x, 0, row));
    fixture_end(&x);
}

static void test_series_of_pieces_follow_their_rule(void **state)
{
    static const struct {
        const char *rule, *y;
    } cases[] = {{"'merge':'SUM',", "1,7,4"}, {"'merge':'LEVEL',", "1,5,4"}, {"", "1,5,4"},
        {"'merge':'CONCATENATE',", "1,2,5,4"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture x;
        struct time_range r;
        fixture_begin(&x, ROTATION, "XY/o/xy");
        coord_note_range(&x.call, "e", x.call.request.members[0], fixture_slice(&x, "{'start':10,'end':20}"), &r);
        coord_note_range(&x.call, "e", x.call.request.members[1], fixture_slice(&x, "{'start':20,'end':30}"), &r);
        const char *form = "{'title':'t','series':[{%s'seriesId':%lld,'xValues':[%s],'yValues':[%s]}]}";
        const long long row = PIECE_CONTENT + 7;
        fixture_answer(&x,
            (const char *const[]){arena_printf(&x.arena, form, cases[i].rule, row, "10,20", "1,2"),
                arena_printf(&x.arena, form, cases[i].rule, row, "20,30", "5,4")});
        expect_json(fixture_merge(&x, coord_merge_series), form, cases[i].rule, fixture_id(&x, 0, row),
            i == 3 ? "10,20,20,30" : "10,20,30", cases[i].y);
        fixture_end(&x);
    }
}

static void test_arrows(void **state)
{
    struct fixture x;
    fixture_begin(&x, TWO, "timeGraph/o/arrows");
    fixture_clock(&x, 1, 1000);
    fixture_answer(&x,
        (const char *const[]){"[{'sourceId':1,'targetId':2,'start':3,'end':4}]",
            "[{'sourceId':1,'targetId':-1,'start':3,'end':4,'x':{'start':3}}]"});
    expect_json(fixture_merge(&x, coord_merge_arrows),
        "[{'sourceId':%lld,'targetId':%lld,'start':3,'end':4},"
        "{'sourceId':%lld,'targetId':-1,'start':1003,'end':1004,'x':{'start':3}}]",
        fixture_id(&x, 0, 1), fixture_id(&x, 0, 2), fixture_id(&x, 1, 1));
    fixture_end(&x);
}

static void test_unions_have_each_name_once(void **state)
{
    struct fixture x;
    fixture_begin(&x, TWO, "o/style");
    fixture_answer(&x, (const char *const[]){"{'styles':{'a':1,'b':2}}", "{'styles':{'b':3,'c':4}}"});
    expect_json(fixture_merge(&x, coord_merge_styles), "{'styles':{'a':1,'b':2,'c':4}}");
    fixture_answer(
        &x, (const char *const[]){"{'annotationCategories':['a','b']}", "{'annotationCategories':['b','c']}"});
    expect_json(fixture_merge(&x, coord_merge_categories), "{'annotationCategories':['a','b','c']}");
    fixture_answer(&x, (const char *const[]){"[{'id':'a'}]", "[{'id':'a'},{'id':'b'}]"});
    expect_json(fixture_merge(&x, coord_merge_marker_sets), "[{'id':'a'},{'id':'b'}]");
    fixture_answer(&x, (const char *const[]){NULL, "[]"});
    expect_json(fixture_merge(&x, coord_merge_marker_sets), "[]");
    fixture_end(&x);
}

static void test_annotations_of_one_category_follow_one_another(void **state)
{
    struct fixture x;
    fixture_begin(&x, TWO, "o/annotations");
    fixture_clock(&x, 1, 1000);
    fixture_answer(&x,
        (const char *const[]){"{'annotations':{'Lost':[{'entryId':1,'time':5,'duration':2}]}}",
            "{'annotations':{'Marks':[],'Lost':[{'entryId':1,'time':5,'duration':2},{'entryId':-1,'time':6}]}}"});
    expect_json(fixture_merge(&x, coord_merge_annotations),
        "{'annotations':{'Lost':[{'entryId':%lld,'time':5,'duration':2},{'entryId':%lld,'time':1005,'duration':2},"
        "{'entryId':-1,'time':1006}],'Marks':[]}}",
        fixture_id(&x, 0, 1), fixture_id(&x, 1, 1));
    fixture_end(&x);
}

static void test_tips_have_common_times(void **state)
{
    struct fixture x;
    fixture_begin(&x, "trace-servers: [{name: web, host: web}]", "timeGraph/o/tooltip");
    fixture_clock(&x, 0, 1000);
    fixture_answer(&x, (const char *const[]){"{'At':'2026-11-21 01:37:53.184 022 483','TID':'7'}"});
    expect_json(fixture_merge(&x, coord_merge_tips), "{'At':'2026-11-21 01:37:53.184 023 483','TID':'7'}");
    fixture_answer(&x, (const char *const[]){"[]"});
    expect_json(fixture_merge(&x, coord_merge_tips), "null");
    fixture_end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_states_are_joined),
        cmocka_unit_test(test_answers_of_another_form_are_missing), cmocka_unit_test(test_states_of_pieces_are_one_row),
        cmocka_unit_test(test_states_last_until_the_next_piece),
        cmocka_unit_test(test_series_of_pieces_follow_their_rule), cmocka_unit_test(test_arrows),
        cmocka_unit_test(test_unions_have_each_name_once),
        cmocka_unit_test(test_annotations_of_one_category_follow_one_another),
        cmocka_unit_test(test_tips_have_common_times)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
