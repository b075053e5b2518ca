/* The algorithm cases of critical-path-cases/graph_cases.json: what Trace Compass' bounded path gives, as facts; and where weft differs on purpose. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake.h"

#ifndef WEFT_SOURCE_ROOT
#define WEFT_SOURCE_ROOT "."
#endif

static uint8_t state_of(const char *name)
{
    static const struct {
        const char *name;
        uint8_t state;
    } states[] = {
        {"UNKNOWN", GRAPH_UNKNOWN},
        {"RUNNING", GRAPH_RUNNING},
        {"BLOCKED", GRAPH_BLOCKED},
        {"PREEMPTED", GRAPH_PREEMPTED},
        {"NETWORK", GRAPH_NETWORK},
        {"TIMER", GRAPH_TIMER},
        {"INTERRUPTED", GRAPH_INTERRUPTED},
    };
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (!strcmp(states[i].name, name))
            return states[i].state;
    fail_msg("the cases use a state %s that the test does not know", name);
    return 0;
}

static int32_t row_by_name(const struct fake *f, const char *name)
{
    for (size_t i = 0; i < f->rows.n; i++)
        if (!strcmp(f->rows.v[i].comm, name))
            return (int32_t)i;
    return -1;
}

/* rows: {"A": [[0, null, null], [2, "RUNNING", null], …]}: vertices, each with the kind of the edge that ends there. A row of a single vertex has no
 * interval; its arrows are known by their time alone. */
static void load_graph(struct fake *f, json_t *graph)
{
    const char *name;
    json_t *vertices, *arrow;
    size_t i;
    json_object_foreach(json_object_get(graph, "rows"), name, vertices)
    {
        int32_t row = fake_add_row(f, 0, (int32_t)f->rows.n + 1, name);
        for (i = 1; i < json_array_size(vertices); i++) {
            json_t *v = json_array_get(vertices, i);
            const char *kind = json_string_value(json_array_get(v, 1));
            if (!kind)
                continue;
            struct fake_interval *iv = fake_add(f, row, json_integer_value(json_array_get(json_array_get(vertices, i - 1), 0)),
                json_integer_value(json_array_get(v, 0)), state_of(kind));
            iv->detail = json_string_value(json_array_get(v, 2));
        }
    }
    json_array_foreach(json_object_get(graph, "arrows"), i, arrow)
    {
        int32_t from = row_by_name(f, json_string_value(json_array_get(arrow, 0))),
                to = row_by_name(f, json_string_value(json_array_get(arrow, 2)));
        int64_t ts = json_integer_value(json_array_get(arrow, 1)), at = json_integer_value(json_array_get(arrow, 3));
        uint8_t kind = !strcmp(json_string_value(json_array_get(arrow, 4)), "NETWORK") ? PATH_CAUSE_NETWORK : PATH_CAUSE_WAKEUP;
        struct fake_row *r = &f->rows.v[to];
        for (size_t k = 0; k < r->intervals.n; k++)
            if (r->intervals.v[k].end == at)
                fake_cause(f, &r->intervals.v[k], kind, from, ts);
        if (r->intervals.n && r->intervals.v[0].begin == at)
            r->origin = (struct path_cause){.kind = kind, .from = {0, from}, .ts = ts};
    }
}

/* "A 0-3 running; X 3-6 running; …" with details in brackets */
static void describe(const struct path *p, const struct fake *f, char *out, size_t n)
{
    size_t at = 0;
    out[0] = 0;
    for (size_t i = 0; i < p->n_segments && at < n; i++) {
        const struct path_segment *s = &p->segments[i];
        at += (size_t)snprintf(out + at, n - at, "%s%s %d-%d %s", i ? "; " : "", f->rows.v[s->row.row].comm, (int)s->begin, (int)s->end,
            graph_state_name(s->state));
        if (s->detail)
            at += (size_t)snprintf(out + at, n - at, "[%s]", s->detail);
    }
}

/* What the walk must give. `compat`: without early return, for comparison with the other tool's rules; NULL where a rule of those was changed on
 * purpose and `ours` holds for both. The compat strings are the expected graphs of the cases in the form of segments: an arrow that takes time is a
 * network segment of its receiver when it is a message, and else leaves the receiver's own wait in place. */
static const struct expectation {
    const char *name, *compat, *ours;
} expectations[] = {
    {"basic", "A 0-1 running", NULL},
    {"wakeup_missing", "A 0-2 running; A 2-4 blocked[q]; A 4-6 running", NULL},
    {"wakeup_unknown", "A 0-2 running; X 2-3 unknown; A 3-4 network; A 4-6 running", NULL},
    /* Early return: A created X at 2 and itself worked on until 4; X's work since 3 is what A later waits for. */
    {"wakeup_new", "A 0-2 running; A 2-4 running[q]; X 4-6 running[q]; A 6-8 running[q]",
        "A 0-2 running; X 2-3 unknown; X 3-6 running[q]; A 6-8 running[q]"},
    /* The signal was sent before A slept and there is no sign of what happened meanwhile: A's wait stays in place. */
    {"opened_delay", "A 0-3 running; A 3-6 blocked; A 6-9 running", NULL},
    {"opened", "A 0-3 running; X 3-6 running; A 6-9 running", NULL},
    /* Early return: A asked X at 2 and slept at 3. */
    {"mutual", "A 0-3 running; X 3-4 running; A 4-5 running", "A 0-2 running; X 2-4 running; A 4-5 running"},
    /* Early return at both waits: A asked Y at 2 and X at 4. The second wait starts where the first ends: nothing ran between them. */
    {"embedded", "A 0-6 running; X 6-8 running; Y 8-10 running; A 10-12 running",
        "A 0-4 running; X 4-8 running; Y 8-10 running; A 10-12 running"},
    {"interleave", "A 0-6 running; X 6-8 running; Y 8-10 running; A 10-12 running",
        "A 0-2 running; X 2-8 running; Y 8-10 running; A 10-12 running"},
    {"nested", "A 0-1 running; X 1-2 running; Y 2-3 running; Z 3-4 running; Y 4-5 running; X 5-6 running; A 6-7 running", NULL},
    {"net1", "A 0-1 running; X 1-3 unknown; X 3-4 running; Y 4-7 network; Y 7-8 running; Z 8-10 network; Z 10-11 running; A 11-12 running",
        NULL},
    /* Changed on purpose (reference 2.4): an old message to a thread that was running does not hide its work. */
    {"x_running_waker_old_message", NULL, "A 0-10 running; X 10-20 running; A 20-25 running"},
    {"x_deadend_two_vertices", "A 0-1 running; X 1-3 unknown; X 3-4 running; Z 4-10 network; Z 10-11 running; A 11-12 running", NULL},
    {"x_deadend_after_nested",
        "A 0-4 running; Q 4-5 unknown; Q 5-9 running; X 9-10 running; W 10-12 running; X 12-20 running; A 20-21 running", NULL},
    /* Changed on purpose (reference 2.4): an unexplained nested wait keeps its edge instead of a hop without a name. */
    {"x_nested_unresolved_blocked", NULL, "A 0-2 running; X 2-5 running; X 5-15 blocked; X 15-20 running; A 20-21 running"},
    {"x_nested_unresolved_network", "A 0-2 running; X 2-5 running; X 5-15 network; X 15-20 running; A 20-21 running", NULL},
    {"x_arrow_equal_bound", "A 0-5 running; A 5-10 network; A 10-11 running", NULL},
};

static void check(
    const struct fake *f, const struct path_source *source, const char *name, const char *start, bool no_early_return, const char *expected)
{
    char got[1024];
    struct path *p;
    struct err e = {0};
    struct path_options options = {.begin = 0, .end = 1000, .no_early_return = no_early_return};
    int code = path_walk(source, (struct path_row){0, row_by_name(f, start)}, &options, &p, &e);
    if (code)
        fail_msg("%s: %s", name, e.text);
    describe(p, f, got, sizeof got);
    if (strcmp(got, expected))
        fail_msg("%s%s\n  expected %s\n  got      %s", name, no_early_return ? " (no early return)" : "", expected, got);
    path_free(p);
}

static void graph_cases(void **state)
{
    (void)state;
    char file[4096];
    const char *data = getenv("WEFT_DATA");
    snprintf(file, sizeof file, "%s/critical-path-cases/graph_cases.json", data ? data : WEFT_SOURCE_ROOT "/../shared/data");
    json_error_t error;
    json_t *cases = json_load_file(file, 0, &error), *item;
    if (!cases) {
        print_message("skipped: %s: %s\n", file, error.text);
        skip();
    }
    size_t i, checked = 0;
    json_array_foreach(cases, i, item)
    {
        const char *name = json_string_value(json_object_get(item, "name"));
        const struct expectation *x = NULL;
        for (size_t k = 0; k < sizeof expectations / sizeof *expectations; k++)
            if (!strcmp(expectations[k].name, name))
                x = &expectations[k];
        if (!x)
            fail_msg("no expectation for case %s", name);
        struct fake f = {0};
        load_graph(&f, json_object_get(item, "graph"));
        struct path_source source = fake_source(&f);
        const char *start = json_string_value(json_object_get(item, "start"));
        check(&f, &source, name, start, true, x->compat ? x->compat : x->ours);
        check(&f, &source, name, start, false, x->ours ? x->ours : x->compat);
        fake_fini(&f);
        checked++;
    }
    assert_int_equal(checked, sizeof expectations / sizeof *expectations);
    json_decref(cases);
}

/* Reference 5.1, wakeup_self: the thread's own timer ended its wait; the state names it. */
static void wakeup_self(void **state)
{
    (void)state;
    struct fake f = {0};
    int32_t a = fake_add_row(&f, 0, 1, "A");
    fake_add(&f, a, 0, 1, GRAPH_RUNNING);
    fake_add(&f, a, 1, 2, GRAPH_RUNNING);
    fake_cause(&f, fake_add(&f, a, 2, 3, GRAPH_TIMER), PATH_CAUSE_TERMINAL, -1, 0);
    fake_add(&f, a, 3, 4, GRAPH_RUNNING);
    struct path_source source = fake_source(&f);
    check(&f, &source, "wakeup_self", "A", false, "A 0-2 running; A 2-3 timer; A 3-4 running");
    fake_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(graph_cases), cmocka_unit_test(wakeup_self)};
    return cmocka_run_group_tests_name("path: cases", tests, NULL, NULL);
}
