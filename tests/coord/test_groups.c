/* SPDX-License-Identifier: MIT */
/* Lines of groups of machines, made of the machines' own lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "answers.h"
#include "coord/group_lines.h"
#include "coord/rows.h"

#define GROUP \
    "trace-servers: [{name: web, host: web}, {name: db, host: db, weight: 3}, {name: x, host: x}]\n" \
    "groups: {backs: [web, 'd*']}"

/* Sets the lines that a question for one of the group's lines needs: one of each machine, with the own id 2. Only the
 * group's line was requested. */
static void ask_line(struct fixture *x, size_t what)
{
    struct group_lines *l = arena_new(&x->arena, struct group_lines, 1);
    *l = (struct group_lines){.n = 3, .n_asked = 1, .n_hidden = 3};
    l->v = arena_new(&x->arena, struct machine_line, 3);
    l->hidden = arena_new(&x->arena, int64_t, 3);
    l->asked = arena_new(&x->arena, struct group_asked, 1);
    *l->asked = (struct group_asked){0, what};
    for (size_t i = 0; i < 3; i++) {
        l->v[i] = (struct machine_line){.id = fixture_id(x, i, 2), .what = what, .machine = x->call.request.members[i]};
        size_t at = i;
        for (; at && l->hidden[at - 1] > l->v[i].id; at--)
            l->hidden[at] = l->hidden[at - 1];
        l->hidden[at] = l->v[i].id;
    }
    x->call.question.lines = l;
}

static long long group_line(struct fixture *x, int output, size_t what)
{
    return coord_id(&x->call, &x->coordinator.groups[0].self, coord_group_own_id(output, 1 + what));
}

#define STATE(begin, end, style) "{'start':" begin ",'end':" end ",'style':{'parentKey':'" style "'}}"
#define ROW(states) "{'rows':[{'entryId':2,'states':[" states "]}]}"

/* The state of most machines by weight, at each sample. */
static void test_states_are_the_dominant_ones(void **state)
{
    struct fixture x;
    fixture_begin(&x, GROUP, "timeGraph/weft.summary/states");
    fixture_ask(&x, "{'requested_times':[10,20,30,40]}");
    ask_line(&x, 0);
    fixture_answer(&x,
        (const char *const[]){ROW(STATE("10", "40", "Busy")),
            ROW(STATE("10", "25", "Idle") "," STATE("25", "35", "Busy")), ROW(STATE("10", "90", "Other"))});
    expect_json(fixture_merge(&x, coord_merge_states),
        "{'rows':[{'entryId':%lld,'states':[" STATE("10", "30", "Idle") "," STATE("30", "40", "Busy") "]}]}",
        group_line(&x, OUTPUT_STATES, 0));
    fixture_end(&x);
}

static void test_series_are_least_mean_and_most(void **state)
{
    static const struct {
        size_t what;
        const char *name, *y;
    } cases[] = {{0, "Minimum", "2,4"}, {1, "Mean", "5,4"}, {2, "Maximum", "6,4"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture x;
        const char *form = "{'series':[{'seriesId':2,'seriesName':'n','xValues':[%s],'yValues':[%s]}]}";
        fixture_begin(&x, GROUP, "XY/weft.summary.cpu/xy");
        ask_line(&x, cases[i].what);
        fixture_answer(&x,
            (const char *const[]){arena_printf(&x.arena, form, "1,2", "2,4"), arena_printf(&x.arena, form, "1", "6"),
                arena_printf(&x.arena, form, "1,2", "90,90")});
        expect_json(fixture_merge(&x, coord_merge_series),
            "{'series':[{'seriesId':%lld,'seriesName':'backs: %s','xValues':[1,2],'yValues':[%s]}]}",
            group_line(&x, OUTPUT_SERIES, cases[i].what), cases[i].name, cases[i].y);
        fixture_end(&x);
    }
}

static void test_tips_count_machines(void **state)
{
    struct fixture x;
    fixture_begin(&x, GROUP, "timeGraph/weft.summary/tooltip");
    fixture_ask(&x, "{'requested_times':[20]}");
    ask_line(&x, 0);
    fixture_answer(&x, (const char *const[]){NULL, ROW(STATE("10", "25", "Idle")), ROW(STATE("10", "90", "Other"))});
    expect_json(fixture_merge(&x, coord_groups_put_tips),
        "{'Idle':'1 machine, weight 3','Machines':'1 of 2','Without':'web: nobody answers there'}");
    fixture_end(&x);
}

/* Lines of groups are asked for by the ids of the group, which no server has. */
static void test_requested_lines(void **state)
{
    struct fixture x;
    struct group_lines lines = {0};
    fixture_begin(&x, GROUP, "timeGraph/weft.summary/states");
    fixture_ask(&x,
        arena_printf(
            &x.arena, "{'requested_items':[%lld,%lld]}", group_line(&x, OUTPUT_STATES, 1), fixture_id(&x, 0, 2)));
    json_t *rest = json_array();
    coord_group_lines_asked(&x.call, coord_group_output(&x.call), &lines, rest);
    assert_int_equal(lines.n_asked, 1);
    assert_int_equal(lines.asked[0].what, 1);
    assert_int_equal(json_array_size(rest), 1);
    assert_int_equal(json_integer_value(json_array_get(rest, 0)), fixture_id(&x, 0, 2));
    json_decref(rest);
    assert_true(coord_group_has(coord_group_config(&x.call, 0), x.call.request.members[1]));
    assert_false(coord_group_has(coord_group_config(&x.call, 0), x.call.request.members[2]));
    fixture_end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_states_are_the_dominant_ones),
        cmocka_unit_test(test_series_are_least_mean_and_most), cmocka_unit_test(test_tips_count_machines),
        cmocka_unit_test(test_requested_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
