/* SPDX-License-Identifier: MIT */
/* Merge rules stated by columns, rows and series, and the defaults without them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "coord/counts.h"
#include "coord/merge.h"

#define THREADS "org.eclipse.tracecompass.internal.analysis.os.linux.core.threadstatus.ThreadStatusDataProvider"
#define EVENTS "org.eclipse.tracecompass.internal.provisional.tmf.core.model.events.TmfEventTableDataProvider"
#define HISTOGRAM "org.eclipse.tracecompass.internal.tmf.core.histogram.HistogramDataProvider"
#define DENSITY "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.SegmentStoreDensityDataProvider"

static struct slice object(const char *json)
{
    size_t bad;
    struct slice s = slice_of(json, strlen(json), NULL, &bad);
    assert_non_null(s.at);
    return s;
}

static struct merge_rule rule(const char *output, const char *json, size_t place)
{
    return coord_merge_rule_of(output, object(json), place);
}

static void test_rules_are_what_is_stated(void **state)
{
    struct merge_rule r = rule(
        "any", "{\"name\":\"x\",\"dataType\":\"DURATION\",\"key\":\"time\",\"merge\":\"SUM\"}", 3);
    assert_int_equal(r.how, TSP_SUM);
    assert_string_equal(r.key, "time");
    assert_string_equal(r.of, "time");
    assert_string_equal(r.by, "");
    assert_true(r.is_duration);
    r = rule("any", "{\"key\":\"average\",\"merge\":\"MEAN\",\"of\":\"total\",\"by\":\"count\"}", 0);
    assert_int_equal(r.how, TSP_MEAN);
    assert_string_equal(r.of, "total");
    assert_string_equal(r.by, "count");
}

/* Checks that columns without a stated or known rule are never merged, whatever the title. */
static void test_titles_state_nothing(void **state)
{
    static const char *const headers[] = {"{\"name\":\"Read\",\"dataType\":\"BINARY_NUMBER\"}",
        "{\"name\":\"Total\",\"key\":\"total\"}", "{\"name\":\"Total\",\"merge\":\"SUM\"}",
        "{\"name\":\"Total\",\"key\":\"total\",\"merge\":\"MEDIAN\"}",
        "{\"name\":\"Total\",\"key\":7,\"merge\":\"SUM\"}",
        "{\"name\":\"Total\",\"key\":\"0123456789012345678901234567890123456789\",\"merge\":\"SUM\"}"};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        assert_int_equal(rule("any", headers[i], 1).how, TSP_MERGE_NONE);
}

static void test_columns_are_one_by_key(void **state)
{
    struct slice mean = object("{\"name\":\"Mean\",\"key\":\"average\"}"),
                 average = object("{\"name\":\"Average\",\"key\":\"average\"}"),
                 other = object("{\"name\":\"Mean\",\"key\":\"mean\"}"), old = object("{\"name\":\"Mean\"}");
    assert_true(coord_merge_same_column(mean, average));
    assert_false(coord_merge_same_column(mean, other));
    assert_true(coord_merge_same_column(mean, old));
    assert_false(coord_merge_same_column(average, old));
}

/* Servers of other makes: by the output's id and the column's place. */
static void test_what_is_known(void **state)
{
    struct slice text = object("{\"name\":\"?\",\"type\":\"STRING\"}"),
                 time = object("{\"name\":\"?\",\"type\":\"TIMESTAMP\"}"),
                 numbered = object("{\"name\":\"?\",\"type\":\"STRING\",\"key\":\"0\"}");
    assert_string_equal(rule(THREADS, "{\"name\":\"?\"}", 1).key, "tid");
    assert_string_equal(rule(THREADS, "{\"name\":\"?\"}", 2).key, "");
    assert_string_equal(rule("any", "{\"name\":\"TID\"}", 1).key, "");
    assert_true(coord_merge_is_time(EVENTS, text, 0));
    assert_false(coord_merge_is_time(EVENTS, text, 1));
    assert_false(coord_merge_is_time(EVENTS, numbered, 0));
    assert_false(coord_merge_is_time("any", text, 0));
    assert_true(coord_merge_is_time("any", time, 5));
    assert_true(coord_merge_orders_lines(EVENTS, time, 9));
    assert_true(coord_merge_orders_lines("any", time, 0));
    assert_false(coord_merge_orders_lines("any", time, 1));
    assert_true(coord_merge_orders_lines("any", object("{\"type\":\"STRING\",\"order\":\"ASCENDING\"}"), 4));
    assert_false(coord_merge_orders_lines("any", object("{\"type\":\"TIMESTAMP\",\"order\":\"DESCENDING\"}"), 0));
}

static void test_series(void **state)
{
    struct slice bare = object("{\"seriesName\":\"Total\"}"), sum = object("{\"merge\":\"SUM\"}"),
                 cloud = object("{\"style\":{\"values\":{\"series-type\":\"scatter\"}}}"),
                 level = object("{\"merge\":\"LEVEL\",\"style\":{\"values\":{\"series-type\":\"scatter\"}}}");
    assert_int_equal(coord_merge_of_series("any", sum), TSP_SUM);
    assert_int_equal(coord_merge_of_series("any", bare), TSP_LEVEL);
    assert_int_equal(coord_merge_of_series(HISTOGRAM, bare), TSP_SUM);
    assert_int_equal(coord_merge_of_series("any", cloud), TSP_CONCATENATE);
    assert_int_equal(coord_merge_of_series("any", level), TSP_LEVEL);
}

static void test_lines_of_the_whole(void **state)
{
    const struct merge_total *w = coord_merge_total_of(HISTOGRAM);
    struct slice stated = object("{\"labels\":[\"?\"],\"key\":\"lost\",\"merge\":\"SUM\"}"),
                 apart = object("{\"labels\":[\"Lost\"],\"key\":\"lost\"}"), bare = object("{\"labels\":[\"?\"]}");
    assert_null(coord_merge_total_of("any"));
    assert_true(coord_merge_total_of(DENSITY ":lttng.analysis.irq")->family);
    assert_int_equal(coord_merge_total_line(w, stated, 0), 1);
    assert_int_equal(coord_merge_total_line(w, apart, 1), -1);
    assert_int_equal(coord_merge_total_line(w, bare, 0), 0);
    assert_int_equal(coord_merge_total_line(w, bare, 2), -1);
}

#define TREE(entries) "{\"headers\":[],\"entries\":[" entries "]}"
#define COUNTS "{\"id\":7,\"parentId\":-1,\"labels\":[\"any\"],\"key\":\"total\",\"merge\":\"COUNTS\"}"

/* Checks that the number comes from the single row stated by all trees; titles and ids do not matter. */
static void test_counts(void **state)
{
    struct slice none = {0}, good = object(TREE(COUNTS)), two = object(TREE(COUNTS "," COUNTS)),
                 empty = object(TREE("")),
                 sum = object(TREE("{\"id\":7,\"parentId\":-1,\"key\":\"total\",\"merge\":\"SUM\"}")),
                 bare = object(TREE("{\"id\":7,\"parentId\":-1,\"labels\":[\"Total\"]}")),
                 keyless = object(TREE("{\"id\":7,\"parentId\":-1,\"merge\":\"COUNTS\"}")),
                 other = object(TREE("{\"id\":7,\"parentId\":-1,\"key\":\"x\",\"merge\":\"COUNTS\"}")),
                 below = object(TREE("{\"id\":7,\"parentId\":2,\"key\":\"total\",\"merge\":\"COUNTS\"}"));
    const struct slice wrong[] = {two, empty, sum, bare, keyless, other, below};
    assert_true(coord_counts_are_stated((struct slice[]){good}, 1));
    assert_true(coord_counts_are_stated((struct slice[]){none, good, none, good}, 4));
    assert_false(coord_counts_are_stated((struct slice[]){none, none}, 2));
    assert_false(coord_counts_are_stated(NULL, 0));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(coord_counts_are_stated((struct slice[]){good, wrong[i]}, 2));
        assert_false(coord_counts_are_stated((struct slice[]){wrong[i], good}, 2));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules_are_what_is_stated),
        cmocka_unit_test(test_titles_state_nothing), cmocka_unit_test(test_columns_are_one_by_key),
        cmocka_unit_test(test_what_is_known), cmocka_unit_test(test_series), cmocka_unit_test(test_lines_of_the_whole),
        cmocka_unit_test(test_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
