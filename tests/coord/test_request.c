/* SPDX-License-Identifier: MIT */
/* Request as it goes to each server: paths, samples, items, times by its clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "answers.h"
#include "coord/entries.h"
#include "coord/question.h"
#include "coord/times.h"

#define TWO "trace-servers: [{name: web, host: web}, {name: db, host: db}]"

static void test_paths_are_escaped(void **state)
{
    struct fixture x;
    fixture_begin(&x, TWO, "XY/a b?c%:1/xy");
    assert_string_equal(coord_path_asked(&x.call.request), "/experiments/e/outputs/XY/a%20b%3Fc%25:1/xy");
    assert_string_equal(coord_tree_path(&x.call.request), "/experiments/e/outputs/XY/a%20b%3Fc%25:1/tree");
    fixture_end(&x);
}

static void test_samples(void **state)
{
    static const struct {
        const char *parameters;
        size_t n; /* 0: unknown */
        int64_t first, last;
    } cases[] = {{"{'requested_times':[3,5,5]}", 3, 3, 5}, {"{'requested_times':[5,3]}", 0, 0, 0},
        {"{'requested_times':['3']}", 0, 0, 0},
        {"{'requested_timerange':{'start':10,'end':20,'nbTimes':3}}", 3, 10, 20},
        {"{'requested_timerange':{'start':20,'end':10,'nbTimes':3}}", 0, 0, 0},
        {"{'requested_timerange':{'start':10,'end':20,'nbTimes':0}}", 0, 0, 0},
        {"{'requested_timerange':{'start':10,'end':20,'nbTimes':99999999}}", 0, 0, 0}, {"{}", 0, 0, 0}};
    struct fixture x;
    fixture_begin(&x, TWO, "XY/o/xy");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n;
        fixture_ask(&x, cases[i].parameters);
        const int64_t *v = coord_samples(&x.call.request, &n);
        assert_int_equal(v ? n : 0, cases[i].n);
        assert_true(!cases[i].n || (v[0] == cases[i].first && v[n - 1] == cases[i].last));
    }
    fixture_end(&x);
}

static void test_bodies_have_times_of_the_server(void **state)
{
    struct fixture x;
    fixture_begin(&x, TWO, "timeGraph/o/states");
    fixture_clock(&x, 1, 1000);
    struct node *web = x.call.request.members[0], *db = x.call.request.members[1];
    fixture_ask(&x,
        "{'requested_timerange':{'start':5000,'end':5010,'nbTimes':3},'selection_range':{'start':5001,'end':5002},"
        "'requested_element':{'time':5005,'duration':4},'begin':5003,'x':[1]}");
    expect_json(coord_body_with(&x.call, web, NULL, NULL, NULL, NULL),
        "{'parameters':{'requested_timerange':{'start':5000,'end':5010,'nbTimes':3},"
        "'selection_range':{'start':5001,'end':5002},'requested_element':{'time':5005,'duration':4},"
        "'begin':5003,'x':[1]}}");
    json_t *items = json_pack("[i]", 7);
    expect_json(coord_body_with(&x.call, db, "requested_items", items, NULL, NULL),
        "{'parameters':{'requested_times':[4000,4005,4010],'requested_items':[7],"
        "'selection_range':{'start':4001,'end':4002},'requested_element':{'time':4005,'duration':4},"
        "'begin':4003,'x':[1]}}");
    json_decref(items);
    assert_int_equal(coord_sample_shown(&x.call, db, 4005), 5005);
    fixture_end(&x);
}

static void test_items_go_to_their_owners(void **state)
{
    struct fixture x;
    struct items items;
    fixture_begin(&x, TWO, "timeGraph/o/states");
    fixture_ask(&x,
        arena_printf(&x.arena, "{'requested_items':[%lld,%lld,%lld]}", fixture_id(&x, 1, 4), fixture_id(&x, 0, 4),
            fixture_id(&x, 1, 9)));
    assert_null(coord_items_split(&x.call, &items));
    assert_true(items.given);
    assert_int_equal(json_array_size(items.own[0]), 1);
    assert_int_equal(json_integer_value(json_array_get(items.own[0], 0)), 4);
    assert_int_equal(json_array_size(items.own[1]), 2);
    assert_int_equal(json_integer_value(json_array_get(items.own[1], 1)), 9);
    fixture_ask(&x, "{'requested_items':['7']}");
    assert_string_equal(coord_items_split(&x.call, &items), "Invalid query parameters: requested_items");
    fixture_ask(&x, "{'requested_items':7}");
    assert_string_equal(coord_items_split(&x.call, &items), "Invalid query parameters: requested_items");
    fixture_ask(&x, "{}");
    assert_null(coord_items_split(&x.call, &items));
    assert_false(items.given);
    fixture_end(&x);
}

static void test_texts_with_times(void **state)
{
    static const char *const texts[][2] = {{"'1795225075376113629'", "'1795225075376114629'"}, {"7", "1007"},
        {"[7,8]", "[7,8]"}, {"'[7,9]'", "'[1007,1009]'"},
        {"'2026-11-21 01:37:53.184 022 483'", "'2026-11-21 01:37:53.184 023 483'"}, {"'7 ms'", "'7 ms'"}, {"''", "''"},
        {"null", "null"}};
    struct fixture x;
    fixture_begin(&x, TWO, "data/o/tree");
    fixture_clock(&x, 1, 1000);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct text t = {.fd = -1};
        struct json j = JSON_TO(&t);
        coord_put_time_text(&j, x.call.request.members[1], fixture_slice(&x, texts[i][0]), NULL);
        expect_json(text_cstr(&t), "%s", texts[i][1]);
        text_fini(&t);
    }
    assert_string_equal(
        coord_time_text_asked(&x.arena, x.call.request.members[1], "1795225075376114629"), "1795225075376113629");
    assert_string_equal(coord_time_text_asked(&x.arena, x.call.request.members[1], "17"), "17");
    fixture_end(&x);
}

static void test_questions_that_name_a_host(void **state)
{
    static const struct {
        const char *question;
        bool names;
    } cases[] = {{"{'thread':'web:7'}", true}, {"{'thread':'7'}", false}, {"{'thread':7}", false},
        {"{'thread':'kworker/0:1'}", false}, {"{'thread':7,'host':'web'}", true}, {"{'id':7}", true}};
    struct fixture x;
    fixture_begin(&x, TWO, "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture_ask(&x, cases[i].question);
        assert_int_equal(coord_question_names_host(x.call.request.parameters), cases[i].names);
    }
    fixture_end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_paths_are_escaped), cmocka_unit_test(test_samples),
        cmocka_unit_test(test_bodies_have_times_of_the_server), cmocka_unit_test(test_items_go_to_their_owners),
        cmocka_unit_test(test_texts_with_times), cmocka_unit_test(test_questions_that_name_a_host)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
