/* SPDX-License-Identifier: MIT */
/* How statuses, messages and missing sources of several answers become one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "answers.h"

#define TWO "trace-servers: [{name: web, host: web}, {name: db, host: db}]"

/* Returns the members of the answer after its model. */
static const char *outcome_of(struct fixture *x, const char *web, const char *db, bool *some)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    x->call.outcome.missing.n = 0;
    *some = coord_outcome_take(fixture_answer(x, (const char *const[]){web, db}));
    json_begin_object(&j);
    coord_put_outcome(&x->call.outcome, &j);
    json_end_object(&j);
    const char *out = arena_strndup(&x->arena, t.v, t.n);
    text_fini(&t);
    return out;
}

#define HOSTS "'hosts':{'complete':1,'lacking':[{'host':'db','status':'%s','statusMessage':'%s'}]}"

static void test_statuses(void **state)
{
    static const struct {
        const char *web, *db, *expected;
        bool some;
    } cases[] = {
        {"{'status':'COMPLETED','model':1}", "{'status':'COMPLETED','model':2}",
            "{'status':'COMPLETED','statusMessage':'Completed'}", true},
        {"{'status':'RUNNING','model':1,'progress':{'done':1,'of':3}}",
            "{'status':'RUNNING','model':2,'progress':{'done':2,'of':5}}",
            "{'status':'RUNNING','statusMessage':'Running','progress':{'done':3,'of':8}}", true},
        {"{'status':'RUNNING','model':1,'progress':{'done':1,'of':3}}", "{'status':'RUNNING','model':2}",
            "{'status':'RUNNING','statusMessage':'Running'}", true},
        {"{'status':'RUNNING','model':1}", "{'status':'COMPLETED','model':2}",
            "{'status':'RUNNING','statusMessage':'Running'}", true},
        {"{'status':'COMPLETED','model':1}", "{'status':'CANCELLED','model':null}",
            "{'status':'COMPLETED','statusMessage':'Completed; not all of db: its analysis was cancelled'," HOSTS "}",
            true},
        {"{'status':'COMPLETED','model':1}", "{'status':'FAILED','statusMessage':'disk'}",
            "{'status':'COMPLETED','statusMessage':'Completed; without db: disk'," HOSTS "}", true},
        {"{'status':'COMPLETED','model':1}", NULL,
            "{'status':'COMPLETED','statusMessage':'Completed; without db: nobody answers there'," HOSTS "}", true},
        {"{'status':'COMPLETED','model':1}", "[]",
            "{'status':'COMPLETED','statusMessage':'Completed; without db: its answer is none of the protocol'," HOSTS
            "}",
            true},
        {"{'status':'COMPLETED','model':1,'statusMessage':'some','code':'NOTE'}", "{'status':'COMPLETED','model':2}",
            "{'status':'COMPLETED','statusMessage':'web: some','code':'NOTE'}", true},
    };
    static const char *const why[][2] = {{"PARTIAL", "its analysis was cancelled"}, {"FAILED", "disk"},
        {"FAILED", "nobody answers there"}, {"FAILED", "its answer is none of the protocol"}, {"", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture x;
        bool some;
        const char *const *w = why[i < 4 || i > 7 ? 4 : i - 4];
        fixture_begin(&x, TWO, "timeGraph/o/states");
        const char *is = outcome_of(&x, cases[i].web, cases[i].db, &some);
        expect_json(is, arena_printf(&x.arena, cases[i].expected, w[0], w[1]), NULL);
        assert_int_equal(some, cases[i].some);
        fixture_end(&x);
    }
}

static void test_codes_of_failures(void **state)
{
    static const struct {
        const char *web, *db;
        enum tsp_code code;
    } cases[] = {
        {"{'status':'FAILED','code':'INVALID_QUERY'}", "{'status':'FAILED','code':'INVALID_QUERY'}",
            TSP_CODE_INVALID_QUERY},
        {"{'status':'FAILED','code':'INVALID_QUERY'}", "{'status':'FAILED'}", TSP_CODE_FAILED},
        {"{'status':'FAILED'}", "{'status':'FAILED','code':'INVALID_QUERY'}", TSP_CODE_FAILED},
        {"{'status':'FAILED','code':'INVALID_QUERY'}", NULL, TSP_CODE_FAILED},
        {"{'status':'FAILED','code':'AMBIGUOUS_THREAD'}", NULL, TSP_CODE_AMBIGUOUS_THREAD},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture x;
        bool some;
        fixture_begin(&x, TWO, "timeGraph/o/states");
        outcome_of(&x, cases[i].web, cases[i].db, &some);
        assert_false(some);
        assert_int_equal(x.call.outcome.code, cases[i].code);
        fixture_end(&x);
    }
}

/* Missing sources that a coordinator below reports are those of the whole. */
static void test_missing_sources_below(void **state)
{
    struct fixture x;
    bool some;
    fixture_begin(&x, TWO, "timeGraph/o/states");
    const char *is = outcome_of(&x,
        "{'status':'COMPLETED','model':1,'hosts':{'complete':4,'lacking':[{'host':'a','status':'FAILED',"
        "'statusMessage':'gone'},{'host':'b','status':'PARTIAL','statusMessage':'cut'}]}}",
        "{'status':'FAILED','hosts':{'complete':0,'lacking':[{'host':'c','status':'FAILED'}]}}", &some);
    expect_json(is,
        "{'status':'COMPLETED','statusMessage':'Completed; without a: gone; not all of b: cut; without c: not said',"
        "'hosts':{'complete':4,'lacking':[{'host':'a','status':'FAILED','statusMessage':'gone'},"
        "{'host':'b','status':'PARTIAL','statusMessage':'cut'},"
        "{'host':'c','status':'FAILED','statusMessage':'not said'}]}}");
    fixture_end(&x);
}

static void test_refusals(void **state)
{
    struct fixture x;
    fixture_begin(&x, TWO, "timeGraph/o/states");
    struct coord_answers *f = fixture_answer(
        &x, (const char *const[]){"{'title':'No such output'}", "{'status':'COMPLETED','model':1}"});
    f->v[0].fate = COORD_REFUSED;
    f->v[0].http_status = 404;
    assert_true(coord_outcome_take(f));
    assert_string_equal(fixture_missing(&x), ""); /* it does not know the output */
    f->v[0].http_status = 500;
    assert_true(coord_outcome_take(f));
    assert_string_equal(fixture_missing(&x), "without web: No such output");
    fixture_end(&x);
}

/* Some of many missing sources are named, each of one server once. */
static void test_names_are_few(void **state)
{
    struct fixture x;
    fixture_begin(&x, TWO, "timeGraph/o/states");
    for (int i = 0; i < 7; i++)
        coord_note_reported(&x.call.outcome, x.call.request.members[0],
            fixture_slice(&x, arena_printf(&x.arena, "{'hosts':{'lacking':[{'host':'h%d','status':'FAILED'}]}}", i)));
    coord_note_reported(&x.call.outcome, x.call.request.members[0],
        fixture_slice(&x, "{'hosts':{'lacking':[{'host':'h0','status':'FAILED'}]}}"));
    assert_int_equal(x.call.outcome.missing.n, 7);
    assert_string_equal(fixture_missing(&x),
        "without h0: not said; without h1: not said; without h2: not said; without h3: not said; "
        "without h4: not said; and 2 more");
    fixture_end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_statuses), cmocka_unit_test(test_codes_of_failures),
        cmocka_unit_test(test_missing_sources_below), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_names_are_few)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
