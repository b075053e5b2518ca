/* SPDX-License-Identifier: MIT */
/* Merging of lists: traces, experiments, outputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "answers.h"
#include "coord/experiments.h"
#include "coord/output_cache.h"
#include "coord/outputs.h"

#define TWO "trace-servers: [{name: web, host: web}, {name: db, host: db}]"
#define CRITICAL "org.eclipse.tracecompass.analysis.graph.core.dataprovider.CriticalPathDataProvider"

/* Returns the uuid for clients of a server's trace. */
static const char *trace_id(struct fixture *x, size_t server, const char *own)
{
    char *uuid = arena_alloc(&x->arena, UUID_TEXT);
    coord_node_trace_uuid(x->call.request.members[server], fixture_slice(x, own), &x->arena, uuid);
    return uuid;
}

static void test_traces_name_their_server(void **state)
{
    struct fixture x;
    fixture_begin(&x, TWO "\nrotation-groups: {shop: [db]}", "");
    fixture_clock(&x, 1, 1000);
    fixture_answer(&x,
        (const char *const[]){"[{'name':'k','path':'/t','UUID':'u','start':5,'end':9}]",
            "[{'name':'k','path':'/t','UUID':'u','start':5,'end':0,'properties':{'server':'below','clock':'1'}}]"});
    expect_json(fixture_merge(&x, coord_merge_traces),
        "[{'name':'k','path':'/t','UUID':'%s','start':5,'end':9,'properties':{'server':'web'}},"
        "{'name':'k','path':'/t','UUID':'%s','start':1005,'end':0,'properties':{'server':'db/below',"
        "'rotation group':'shop','clock':'1'}}]",
        trace_id(&x, 0, "'u'"), trace_id(&x, 1, "'u'"));
    assert_string_not_equal(trace_id(&x, 0, "'u'"), trace_id(&x, 1, "'u'"));
    fixture_end(&x);
}

#define EXPERIMENT(uuid, rest) "{'name':'shop','UUID':'" uuid "','traces':[]," rest "}"

static void test_experiments_of_one_uuid_are_one(void **state)
{
    struct fixture x;
    fixture_begin(&x, TWO, "");
    fixture_answer(&x,
        (const char *const[]){
            "[" EXPERIMENT("AB", "'nbEvents':3,'start':50,'end':90,'indexingStatus':'COMPLETED'") "," EXPERIMENT(
                "cd", "'nbEvents':7,'start':1,'end':2,'indexingStatus':'CLOSED'") "]",
            "[" EXPERIMENT("ab", "'nbEvents':4,'start':40,'end':80,'indexingStatus':'RUNNING'") ",{'UUID':7}]"});
    expect_json(fixture_merge(&x, coord_merge_experiments),
        "[{'name':'shop','UUID':'AB','nbEvents':7,'start':40,'end':90,'indexingStatus':'RUNNING','traces':[]},"
        "{'name':'shop','UUID':'cd','nbEvents':7,'start':1,'end':2,'indexingStatus':'CLOSED','traces':[]}]");
    fixture_end(&x);
}

#define OFF "{'host':'h','status':'FAILED','statusMessage':'off'}"

static void test_missing_sources_of_an_experiment_are_its_own(void **state)
{
    struct fixture x;
    fixture_begin(&x, TWO, "");
    fixture_answer(&x,
        (const char *const[]){
            "[" EXPERIMENT("ab", "'hosts':{'complete':2,'lacking':[" OFF "]}") "," EXPERIMENT("cd", "'nbEvents':1") "]",
            NULL});
    expect_json(fixture_merge(&x, coord_merge_experiments),
        "[{'name':'shop','UUID':'ab','nbEvents':0,'start':0,'end':0,'indexingStatus':'CLOSED','traces':[],"
        "'hosts':{'complete':2,'lacking':[" OFF "]}},"
        "{'name':'shop','UUID':'cd','nbEvents':0,'start':0,'end':0,'indexingStatus':'CLOSED','traces':[]}]");
    assert_string_equal(fixture_missing(&x), "without db: nobody answers there"); /* the list's own */
    fixture_end(&x);
}

/* A version changes with that of any server, and is unknown while a server has none yet. */
static void test_versions(void **state)
{
    struct fixture x;
    fixture_begin(&x, TWO, "");
    static const struct {
        const char *web, *db;
        int64_t version;
    } steps[] = {{"'version':3", "'version':5", 1}, {"'version':3", "'version':5", 1},
        {"'version':4", "'version':5", 2}, {"'version':4", "'version':0,'indexingStatus':'RUNNING'", 0},
        {"'version':4", "'nbEvents':9", 3}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const char *form = "[{'name':'shop','UUID':'ab','traces':[],%s}]";
        fixture_answer(&x,
            (const char *const[]){
                arena_printf(&x.arena, form, steps[i].web), arena_printf(&x.arena, form, steps[i].db)});
        const char *merged = fixture_merge(&x, coord_merge_experiments);
        struct slice one, all = slice_of(merged, strlen(merged), NULL, NULL);
        struct slice_walk w = slice_items(all);
        int64_t version = -1;
        assert_true(slice_next(&w, &one) && slice_integer(slice_get(one, "version"), &version));
        assert_int_equal(version, steps[i].version);
    }
    fixture_end(&x);
}

static void test_outputs_are_listed_once(void **state)
{
    struct fixture x;
    fixture_begin(&x, TWO, "");
    fixture_answer(&x,
        (const char *const[]){"[{'id':'a','type':'TABLE','name':'A'},{'id':'a','type':'TREE_TIME_XY'},{'id':3}]",
            "[{'type':'TABLE','id':'a','name':'B'},{'id':'b','type':'TABLE','description':'d'}]"});
    expect_json(fixture_merge(&x, coord_merge_outputs),
        "[{'id':'a','type':'TABLE','name':'A'},{'id':'a','type':'TREE_TIME_XY'},"
        "{'id':'b','type':'TABLE','description':'d'}]");
    /* Outputs of a server that is away stay in the list. */
    fixture_answer(&x, (const char *const[]){"[{'id':'a','type':'TABLE','name':'A'}]", NULL});
    expect_json(fixture_merge(&x, coord_merge_outputs),
        "[{'id':'a','type':'TABLE','name':'A'},{'id':'b','type':'TABLE','description':'d (db is away)'}]");
    fixture_end(&x);
}

static void test_paths_of_one_server_say_so(void **state)
{
    struct fixture x;
    fixture_begin(&x, TWO, "");
    fixture_clock(&x, 1, 1000);
    fixture_answer(&x,
        (const char *const[]){"[]",
            "[{'id':'p:1','type':'TIME_GRAPH','parentId':'" CRITICAL
            "','configuration':{'parameters':{'id':4,'begin':5,'end':9,'thread':'db:7'}}}]"});
    expect_json(fixture_merge(&x, coord_merge_outputs),
        "[{'id':'p:1','type':'TIME_GRAPH','parentId':'" CRITICAL
        "','configuration':{'parameters':{'id':%lld,'begin':1005,'end':1009,'thread':'db:7'}},"
        "'description':'(as db alone tells it)','code':'LOCAL_PATH'}]",
        fixture_id(&x, 1, 4));
    atomic_store(&x.call.request.members[1]->in_cluster, true);
    assert_null(strstr(fixture_merge(&x, coord_merge_outputs), "LOCAL_PATH"));
    fixture_end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_traces_name_their_server),
        cmocka_unit_test(test_experiments_of_one_uuid_are_one),
        cmocka_unit_test(test_missing_sources_of_an_experiment_are_its_own), cmocka_unit_test(test_versions),
        cmocka_unit_test(test_outputs_are_listed_once), cmocka_unit_test(test_paths_of_one_server_say_so)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
