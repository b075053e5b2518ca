/* SPDX-License-Identifier: MIT */
/* The algorithm cases of critical-path-cases/graph_cases.json: what Trace Compass' bounded path gives, as facts; and
 * where weft differs on purpose. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../base/test.h"
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

/* rows: {"A": [[0, null, null], [2, "RUNNING", null], …]}: vertices, each with the kind of the edge that ends there. A
 * row of a single vertex has no interval; its arrows are known by their time alone. */
static void load_graph(struct fake *f, json_t *graph)
{
    const char *name;
    json_t *vertices, *arrow;
    size_t i;
    json_object_foreach (json_object_get(graph, "rows"), name, vertices) {
        int32_t row = fake_add_row(f, 0, (int32_t)f->rows.n + 1, name);
        for (i = 1; i < json_array_size(vertices); i++) {
            json_t *v = json_array_get(vertices, i);
            const char *kind = json_string_value(json_array_get(v, 1));
            if (!kind)
                continue;
            struct fake_interval *iv = fake_add(f, row,
                json_integer_value(json_array_get(json_array_get(vertices, i - 1), 0)),
                json_integer_value(json_array_get(v, 0)), state_of(kind));
            iv->detail = json_string_value(json_array_get(v, 2));
        }
    }
    json_array_foreach (json_object_get(graph, "arrows"), i, arrow) {
        int32_t from = row_by_name(f, json_string_value(json_array_get(arrow, 0))),
                to = row_by_name(f, json_string_value(json_array_get(arrow, 2)));
        int64_t ts = json_integer_value(json_array_get(arrow, 1)), at = json_integer_value(json_array_get(arrow, 3));
        uint8_t kind = !strcmp(json_string_value(json_array_get(arrow, 4)), "NETWORK") ? PATH_CAUSE_NETWORK
                                                                                       : PATH_CAUSE_WAKEUP;
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
        at += (size_t)snprintf(out + at, n - at, "%s%s %d-%d %s", i ? "; " : "", f->rows.v[s->row.row].comm,
            (int)s->begin, (int)s->end, graph_state_name(s->state));
        if (s->detail)
            at += (size_t)snprintf(out + at, n - at, "[%s]", s->detail);
    }
}

/* What the walk must give. `compat`: without early return, for comparison with the other tool's rules; NULL where a
 * rule of those was changed on purpose and `ours` holds for both. The compat strings are the expected graphs of the
 * cases in the form of segments: an arrow that takes time is a network segment of its receiver when it is a message,
 * and else leaves the receiver's own wait in place. */
static const struct expectation {
    const char *name, *compat, *ours;
} expectations[] = {
    {"basic", "A 0-1 running", NULL},
    {"wakeup_missing", "A 0-2 running; A 2-4 blocked[q]; A 4-6 running", NULL},
    {"wakeup_unknown", "A 0-2 running; X 2-3 unknown; A 3-4 network; A 4-6 running", NULL},
    /* Early return: A created X at 2 and itself worked on until 4; X's work since 3 is what A later waits for. */
    {"wakeup_new", "A 0-2 running; A 2-4 running[q]; X 4-6 running[q]; A 6-8 running[q]",
        "A 0-2 running; X 2-3 unknown; X 3-6 running[q]; A 6-8 running[q]"},
    /* Signal sent before A slept: A did not wait for it. */
    {"opened_delay", "A 0-3 running; A 3-6 blocked[woken before it slept]; A 6-9 running", NULL},
    {"opened", "A 0-3 running; X 3-6 running; A 6-9 running", NULL},
    /* Early return: A asked X at 2 and slept at 3. */
    {"mutual", "A 0-3 running; X 3-4 running; A 4-5 running", "A 0-2 running; X 2-4 running; A 4-5 running"},
    /* Early return at both waits: A asked Y at 2 and X at 4. The second wait starts where the first ends: nothing ran
       between them. */
    {"embedded", "A 0-6 running; X 6-8 running; Y 8-10 running; A 10-12 running",
        "A 0-4 running; X 4-8 running; Y 8-10 running; A 10-12 running"},
    {"interleave", "A 0-6 running; X 6-8 running; Y 8-10 running; A 10-12 running",
        "A 0-2 running; X 2-8 running; Y 8-10 running; A 10-12 running"},
    {"nested",
        "A 0-1 running; X 1-2 running; Y 2-3 running; Z 3-4 running; Y 4-5 running; X 5-6 running; A 6-7 running",
        NULL},
    /* Changed on purpose: a row of which nothing older is known is unknown before; the other tool goes back to the last
       signal that reached it, so that what it says of a time depends on how much more is asked for. */
    {"net1", NULL, "A 0-1 running; Z 1-9 unknown; Z 9-11 running; A 11-12 running"},
    /* Changed on purpose (reference 2.4): an old message to a thread that was running does not hide its work. */
    {"x_running_waker_old_message", NULL, "A 0-10 running; X 10-20 running; A 20-25 running"},
    /* Changed on purpose, for the same reason. */
    {"x_deadend_two_vertices", NULL, "A 0-1 running; Z 1-8 unknown; Z 8-11 running; A 11-12 running"},
    {"x_deadend_after_nested", NULL,
        "A 0-4 running; X 4-8 unknown; X 8-10 running; W 10-12 running; X 12-20 running; A 20-21 running"},
    /* Changed on purpose (reference 2.4): an unexplained nested wait keeps its edge instead of a hop without a name. */
    {"x_nested_unresolved_blocked", NULL,
        "A 0-2 running; X 2-5 running; X 5-15 blocked; X 15-20 running; A 20-21 running"},
    {"x_nested_unresolved_network", "A 0-2 running; X 2-5 running; X 5-15 network; X 15-20 running; A 20-21 running",
        NULL},
    {"x_arrow_equal_bound", "A 0-5 running; A 5-10 network; A 10-11 running", NULL},
};

static void check(const struct fake *f, const struct path_source *source, const char *name, const char *start,
    bool no_early_return, const char *expected)
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
        fail_msg(
            "%s%s\n  expected %s\n  got      %s", name, no_early_return ? " (no early return)" : "", expected, got);
    path_free(p);
}

static void graph_cases(void **state)
{
    (void)state;
    char file[4096];
    const char *data = getenv("WEFT_DATA");
    snprintf(
        file, sizeof file, "%s/critical-path-cases/graph_cases.json", data ? data : WEFT_SOURCE_ROOT "/../shared/data");
    json_error_t error;
    json_t *cases = json_load_file(file, 0, &error), *item;
    if (!cases)
        skip_without("%s: %s", file, error.text);
    size_t i, checked = 0;
    json_array_foreach (cases, i, item) {
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

/* ---- early return (reference 8.1, docs/decisions/critical-path.md) ---- */

static struct fake_interval *sleep_until(
    struct fake *f, int32_t row, int64_t end, uint8_t cause, int32_t from, int64_t ts)
{
    struct fake_interval *iv = fake_add(f, row, -1, end, cause == PATH_CAUSE_NETWORK ? GRAPH_NETWORK : GRAPH_BLOCKED);
    fake_cause(f, iv, cause, from, ts);
    return iv;
}

/* A makes X at 4 and works on until 6. X first waits for something old, then wakes A: what X did since 4 counts, and
 * A's running since then does not. */
static void home_after_an_inner_wait(void **state)
{
    (void)state;
    struct fake f = {0};
    int32_t a = fake_add_row(&f, 0, 1, "A"), x = fake_add_row(&f, 0, 2, "X");
    fake_add(&f, a, 0, 6, GRAPH_RUNNING);
    sleep_until(&f, a, 10, PATH_CAUSE_WAKEUP, x, 10);
    fake_add(&f, a, -1, 12, GRAPH_RUNNING);
    f.rows.v[x].origin = (struct path_cause){.kind = PATH_CAUSE_FORK, .from = {0, a}, .ts = 4};
    fake_cause(&f, fake_add(&f, x, 4, 8, GRAPH_NETWORK), PATH_CAUSE_NETWORK, a, -1);
    fake_add(&f, x, -1, 12, GRAPH_RUNNING);
    struct path_source source = fake_source(&f);
    check(&f, &source, "home after an inner wait", "A", false,
        "A 0-4 running; X 4-8 network; X 8-10 running; A 10-12 running");
    check(&f, &source, "home after an inner wait", "A", true,
        "A 0-6 running; X 6-8 network; X 8-10 running; A 10-12 running");
    fake_fini(&f);
}

/* A slept twice in a row: nothing ran into the second wait, so nothing can have been asked there, and the bounded walk
 * goes on on Y's own row. */
static void no_home_without_running(void **state)
{
    (void)state;
    struct fake f = {0};
    int32_t a = fake_add_row(&f, 0, 1, "A"), x = fake_add_row(&f, 0, 2, "X"), y = fake_add_row(&f, 0, 3, "Y");
    fake_add(&f, a, 0, 2, GRAPH_RUNNING);
    sleep_until(&f, a, 20, PATH_CAUSE_WAKEUP, x, 20);
    fake_add(&f, a, -1, 22, GRAPH_RUNNING);
    fake_add(&f, x, 0, 4, GRAPH_RUNNING);
    sleep_until(&f, x, 8, PATH_CAUSE_NONE, -1, 0);
    sleep_until(&f, x, 18, PATH_CAUSE_WAKEUP, y, 18);
    fake_add(&f, x, -1, 22, GRAPH_RUNNING);
    fake_add(&f, y, 0, 12, GRAPH_RUNNING);
    sleep_until(&f, y, 16, PATH_CAUSE_NETWORK, x, 10);
    fake_add(&f, y, -1, 22, GRAPH_RUNNING);
    struct path_source source = fake_source(&f);
    check(&f, &source, "no home without running", "A", false,
        "A 0-2 running; X 2-4 running; X 4-8 blocked; Y 8-12 running; Y 12-16 network; Y 16-18 running; X 18-20 "
        "running; A 20-22 running");
    fake_fini(&f);
}

/* X asks Y at 5, is held up until 9 and sleeps; A sleeps since 7. The question is older than A's wait and still it is
 * what X waits for since then: X does not count until 9, but what Y did and then waited for. */
static void home_beyond_the_outer_bound(void **state)
{
    (void)state;
    struct fake f = {0};
    int32_t a = fake_add_row(&f, 0, 1, "A"), x = fake_add_row(&f, 0, 2, "X"), y = fake_add_row(&f, 1, 3, "Y");
    fake_add(&f, a, 0, 7, GRAPH_RUNNING);
    sleep_until(&f, a, 20, PATH_CAUSE_WAKEUP, x, 20);
    fake_add(&f, a, -1, 22, GRAPH_RUNNING);
    fake_add(&f, x, 0, 9, GRAPH_RUNNING);
    sleep_until(&f, x, 18, PATH_CAUSE_NETWORK, y, 16);
    fake_add(&f, x, -1, 22, GRAPH_RUNNING);
    fake_add(&f, y, 0, 11, GRAPH_RUNNING);
    sleep_until(&f, y, 14, PATH_CAUSE_NETWORK, x, 5);
    fake_add(&f, y, -1, 22, GRAPH_RUNNING);
    struct path_source source = fake_source(&f);
    check(&f, &source, "home beyond the outer bound", "A", false,
        "A 0-7 running; Y 7-11 running; Y 11-14 network; Y 14-16 running; X 16-18 network; X 18-20 running; "
        "A 20-22 running");
    /* X's activity is explained down to where X slept; X was running before. */
    check(&f, &source, "home beyond the outer bound", "A", true,
        "A 0-7 running; X 7-9 running; Y 9-11 running; Y 11-14 network; Y 14-16 running; X 16-18 network; X 18-20 "
        "running; A 20-22 running");
    fake_fini(&f);
}

/* A asks X at 2; X answers at 5, when A has not yet gone to sleep; A is switched out at 6 all the same, for the moment
 * until the wake takes effect. What A did until 6 held it up, not what X did. */
static void woken_before_it_slept(void **state)
{
    (void)state;
    struct fake f = {0};
    int32_t a = fake_add_row(&f, 0, 1, "A"), x = fake_add_row(&f, 0, 2, "X");
    fake_add(&f, a, 0, 6, GRAPH_RUNNING);
    struct fake_interval *wait = sleep_until(&f, a, 7, PATH_CAUSE_WAKEUP, x, 5);
    size_t nth = (size_t)(wait - f.rows.v[a].intervals.v);
    fake_add(&f, a, -1, 9, GRAPH_RUNNING);
    fake_add(&f, x, 0, 1, GRAPH_RUNNING);
    sleep_until(&f, x, 3, PATH_CAUSE_WAKEUP, a, 3);
    fake_add(&f, x, -1, 9, GRAPH_RUNNING);
    struct path_source source = fake_source(&f);
    check(&f, &source, "woken before it slept", "A", false,
        "A 0-6 running; A 6-7 blocked[woken before it slept]; A 7-9 running");
    struct path *p;
    struct err e = {0};
    struct path_options options = {.begin = 0, .end = 9};
    assert_int_equal(path_walk(&source, (struct path_row){0, a}, &options, &p, &e), 0);
    assert_int_equal(p->n_gaps, 0);
    assert_int_equal(p->n_links, 1); /* link to the waker */
    assert_true(p->links[0].from.row == x && p->links[0].from_ts == 5 && p->links[0].to_ts == 7);
    path_free(p);
    f.rows.v[a].intervals.v[nth].cause.ts = 6; /* same instant */
    check(&f, &source, "woken as it slept", "A", false,
        "A 0-6 running; A 6-7 blocked[woken before it slept]; A 7-9 running");
    fake_fini(&f);
}

/* ---- contents of the answer ---- */

static struct path *walk_to(const struct path_source *source, int64_t end)
{
    struct path *p;
    struct err e = {0};
    struct path_options options = {.begin = 0, .end = end};
    assert_int_equal(path_walk(source, (struct path_row){0, 0}, &options, &p, &e), 0);
    assert_true(path_covers(p, &e));
    return p;
}

/* The end of the question lies in a wait: what ended it later explains it, but a signal from behind the end is no part
 * of the answer. */
static void end_within_a_wait(void **state)
{
    (void)state;
    struct fake f = {0};
    int32_t a = fake_add_row(&f, 0, 1, "A"), x = fake_add_row(&f, 0, 2, "X");
    fake_add(&f, a, 0, 2, GRAPH_RUNNING);
    sleep_until(&f, a, 10, PATH_CAUSE_NETWORK, x, 8);
    fake_add(&f, x, 0, 10, GRAPH_RUNNING);
    struct path_source source = fake_source(&f);
    struct path *p = walk_to(&source, 5);
    assert_int_equal(p->n_segments, 2);
    assert_true(p->segments[1].row.row == x && p->segments[1].end == 5);
    assert_int_equal(p->n_links, 0);
    path_free(p);
    p = walk_to(&source, 9); /* the message is under way */
    assert_int_equal(p->n_segments, 3);
    assert_true(p->segments[2].state == GRAPH_NETWORK && p->segments[2].begin == 8 && p->segments[2].end == 9);
    assert_int_equal(p->n_links, 1);
    path_free(p);
    fake_fini(&f);
}

/* A stretch of polling that the question cuts has not got its message yet. */
static void end_within_a_poll(void **state)
{
    (void)state;
    struct fake f = {0};
    int32_t a = fake_add_row(&f, 0, 1, "A"), x = fake_add_row(&f, 0, 2, "X");
    struct fake_interval *poll = fake_add(&f, a, 0, 8, GRAPH_RUNNING);
    poll->polling = true;
    fake_cause(&f, poll, PATH_CAUSE_NETWORK, x, 6);
    fake_add(&f, x, 0, 9, GRAPH_RUNNING);
    struct path_source source = fake_source(&f);
    struct path *p = walk_to(&source, 7);
    assert_int_equal(p->n_links, 0);
    path_free(p);
    p = walk_to(&source, 8);
    assert_int_equal(p->n_links, 1);
    assert_true(p->links[0].from_ts == 6 && p->links[0].to_ts == 8);
    path_free(p);
    fake_fini(&f);
}

/* Checks that lost events are reported, other unknown states are not; the clocks put a message's send after its
 * receive. */
static void told_with_the_answer(void **state)
{
    (void)state;
    struct fake f = {0};
    int32_t a = fake_add_row(&f, 0, 1, "A"), x = fake_add_row(&f, 1, 2, "X");
    fake_add(&f, a, 0, 2, GRAPH_UNKNOWN)->cause = (struct path_cause){.kind = PATH_CAUSE_NONE, .reason = PATH_NO_WAKER};
    fake_add(&f, a, -1, 4, GRAPH_UNKNOWN)->cause = (struct path_cause){
        .kind = PATH_CAUSE_NONE, .reason = PATH_LOST_EVENTS};
    fake_add(&f, a, -1, 6, GRAPH_RUNNING);
    fake_add(&f, a, -1, 7, GRAPH_BLOCKED);
    fake_add(&f, a, -1, 8, GRAPH_NETWORK);
    fake_add(&f, x, 0, 20, GRAPH_RUNNING);
    struct path_source source = fake_source(&f);
    struct path *p = walk_to(&source, 8);
    assert_int_equal(p->n_gaps, 2);
    assert_true(p->gaps[0].begin == 2 && p->gaps[0].end == 4 && p->gaps[0].reason == PATH_LOST_EVENTS);
    assert_true(
        p->gaps[1].begin == 6 && p->gaps[1].end == 8 && p->gaps[1].reason == PATH_NO_WAKER); /* two waits, one gap */
    assert_false(p->clamped);
    path_free(p);
    f.rows.v[a].intervals.v[4].cause.kind = PATH_CAUSE_PENDING; /* cause of the message: requested, not answered yet */
    p = walk_to(&source, 8);
    assert_int_equal(p->n_gaps, 3);
    assert_true(p->gaps[2].begin == 7 && p->gaps[2].reason == PATH_PENDING);
    path_free(p);
    sleep_until(&f, a, 10, PATH_CAUSE_NETWORK, x, 12);
    p = walk_to(&source, 10);
    assert_true(p->clamped);
    assert_true(p->links[0].from_ts == 10 && p->links[0].to_ts == 10);
    path_free(p);
    fake_fini(&f);
}

/* Pieces on several CPUs are one segment of none, on one CPU they are that CPU's. */
static void cpus(void **state)
{
    (void)state;
    struct fake f = {0};
    int32_t a = fake_add_row(&f, 0, 1, "A");
    static const int32_t cpu[] = {3, 3, 0, 1};
    for (int i = 0; i < 4; i++)
        fake_add(&f, a, i, i + 1, i < 2 ? GRAPH_RUNNING : GRAPH_PREEMPTED)->cpu = cpu[i];
    struct path_source source = fake_source(&f);
    struct path *p = walk_to(&source, 4);
    assert_int_equal(p->n_segments, 2);
    assert_int_equal(p->segments[0].cpu, 3);
    assert_int_equal(p->segments[1].cpu, -1);
    path_free(p);
    fake_fini(&f);
}

/* Searched in vain below the start of the wait, through more of the same hole: the hole ends where the search began. */
static void hole_beyond_the_wait(void **state)
{
    (void)state;
    struct fake f = {0};
    int32_t a = fake_add_row(&f, 0, 1, "A"), x = fake_add_row(&f, 0, 2, "X");
    fake_add(&f, a, 0, 10, GRAPH_RUNNING);
    sleep_until(&f, a, 20, PATH_CAUSE_WAKEUP, x, 20);
    fake_add(&f, x, 0, 5, GRAPH_RUNNING);
    for (int64_t t = 10; t <= 20; t += 10)
        fake_add(&f, x, -1, t, GRAPH_UNKNOWN)->cause = (struct path_cause){
            .kind = PATH_CAUSE_NONE, .reason = PATH_LOST_EVENTS};
    struct path_source source = fake_source(&f);
    struct path *p = walk_to(&source, 20);
    assert_int_equal(p->n_segments, 2);
    assert_true(p->segments[1].row.row == x && p->segments[1].begin == 10);
    assert_int_equal(p->n_gaps, 1);
    assert_true(p->gaps[0].begin == 10 && p->gaps[0].end == 20);
    path_free(p);
    fake_fini(&f);
}

/* Checks that signals that reached X while it ran do not explain its unknown past. */
static void unknown_past(void **state)
{
    (void)state;
    struct fake f = {.limit = 1000};
    int32_t a = fake_add_row(&f, 0, 1, "A"), x = fake_add_row(&f, 0, 2, "X"), y = fake_add_row(&f, 0, 3, "Y");
    fake_add(&f, a, 0, 2, GRAPH_RUNNING);
    sleep_until(&f, a, 10, PATH_CAUSE_NETWORK, x, 6);
    fake_cause(&f, fake_add(&f, x, 4, 6, GRAPH_RUNNING), PATH_CAUSE_WAKEUP, y, 6);
    fake_add(&f, x, 6, 8, GRAPH_RUNNING);
    fake_add(&f, y, 0, 10, GRAPH_RUNNING);
    struct path_source source = fake_source(&f);
    check(&f, &source, "unknown past", "A", false, "A 0-2 running; X 2-4 unknown; X 4-6 running; A 6-10 network");
    fake_fini(&f);
}

/* ---- causes that lead nowhere ---- */

static void check_counts(const struct path_source *source, const char *name, size_t links, size_t gaps)
{
    struct path *p;
    struct err e = {0};
    struct path_options options = {.begin = 0, .end = 1000};
    assert_int_equal(path_walk(source, (struct path_row){0, 0}, &options, &p, &e), 0);
    if (p->n_links != links || p->n_gaps != gaps)
        fail_msg("%s: %zu links and %zu gaps instead of %zu and %zu", name, p->n_links, p->n_gaps, links, gaps);
    path_free(p);
}

/* Checks a wake in the thread's own name (a handler that ran in its time): no other row to follow, nothing missing. A
 * message to itself was under way. */
static void own_signals(void **state)
{
    (void)state;
    struct fake f = {.limit = 1000};
    int32_t a = fake_add_row(&f, 0, 1, "A");
    fake_add(&f, a, 0, 2, GRAPH_RUNNING);
    sleep_until(&f, a, 4, PATH_CAUSE_WAKEUP, a, 4);
    fake_add(&f, a, -1, 9, GRAPH_RUNNING);
    struct path_source source = fake_source(&f);
    check(&f, &source, "own wakeup", "A", false, "A 0-2 running; A 2-4 blocked; A 4-9 running");
    check_counts(&source, "own wakeup", 0, 0);
    sleep_until(&f, a, 12, PATH_CAUSE_NETWORK, a, 7);
    fake_add(&f, a, -1, 13, GRAPH_RUNNING);
    check(&f, &source, "own message", "A", false,
        "A 0-2 running; A 2-4 blocked; A 4-7 running; A 7-12 network; A 12-13 running");
    check(&f, &source, "own message", "A", true,
        "A 0-2 running; A 2-4 blocked; A 4-9 running; A 9-12 network; A 12-13 running");
    check_counts(&source, "own message", 1, 0);
    fake_fini(&f);
}

/* Checks a row recorded as made, or woken, by itself: its past stays unknown. */
static void own_maker(void **state)
{
    (void)state;
    for (int reached = 0; reached < 2; reached++) {
        struct fake f = {.limit = 1000};
        int32_t a = fake_add_row(&f, 0, 1, "A"), x = fake_add_row(&f, 0, 2, "X");
        fake_add(&f, a, 0, 2, GRAPH_RUNNING);
        sleep_until(&f, a, 8, PATH_CAUSE_WAKEUP, x, 8);
        fake_add(&f, a, -1, 9, GRAPH_RUNNING);
        struct fake_interval *ran = fake_add(&f, x, 4, 8, GRAPH_RUNNING);
        if (reached)
            fake_cause(&f, ran, PATH_CAUSE_WAKEUP, x, 8);
        else
            f.rows.v[x].origin = (struct path_cause){.kind = PATH_CAUSE_FORK, .from = {0, x}, .ts = 4};
        struct path_source source = fake_source(&f);
        check(&f, &source, "own maker", "A", false, "A 0-2 running; X 2-4 unknown; X 4-8 running; A 8-9 running");
        check_counts(&source, "own maker", 1, 1);
        fake_fini(&f);
    }
}

/* Checks X and Y recorded as made by each other at the same instant: no order of causes, and the walk ends all the
 * same. */
static void circle_of_makers(void **state)
{
    (void)state;
    struct fake f = {.limit = 10000};
    int32_t a = fake_add_row(&f, 0, 1, "A"), x = fake_add_row(&f, 0, 2, "X"), y = fake_add_row(&f, 0, 3, "Y");
    fake_add(&f, a, 0, 2, GRAPH_RUNNING);
    sleep_until(&f, a, 8, PATH_CAUSE_WAKEUP, x, 8);
    fake_add(&f, a, -1, 9, GRAPH_RUNNING);
    fake_add(&f, x, 4, 9, GRAPH_RUNNING);
    fake_add(&f, y, 4, 9, GRAPH_RUNNING);
    f.rows.v[x].origin = (struct path_cause){.kind = PATH_CAUSE_FORK, .from = {0, y}, .ts = 4};
    f.rows.v[y].origin = (struct path_cause){.kind = PATH_CAUSE_FORK, .from = {0, x}, .ts = 4};
    struct path_source source = fake_source(&f);
    struct path *p;
    struct err e = {0};
    struct path_options options = {.begin = 0, .end = 9};
    assert_int_equal(path_walk(&source, (struct path_row){0, a}, &options, &p, &e), 0);
    assert_int_equal(p->n_segments, 4);
    assert_true(p->segments[2].row.row == x && p->segments[2].begin == 4 && p->segments[2].end == 8);
    assert_true(p->segments[1].state == GRAPH_UNKNOWN && p->segments[1].begin == 2 && p->segments[1].end == 4);
    assert_int_equal(p->n_gaps, 1);
    path_free(p);
    fake_fini(&f);
}

/* Checks X and Y recorded as woken by each other from the same waits. */
static void circle_of_waits(void **state)
{
    (void)state;
    struct fake f = {.limit = 100};
    int32_t a = fake_add_row(&f, 0, 1, "A"), x = fake_add_row(&f, 0, 2, "X"), y = fake_add_row(&f, 0, 3, "Y");
    fake_add(&f, a, 0, 2, GRAPH_RUNNING);
    sleep_until(&f, a, 8, PATH_CAUSE_WAKEUP, x, 8);
    fake_add(&f, x, 0, 3, GRAPH_RUNNING);
    sleep_until(&f, x, 8, PATH_CAUSE_WAKEUP, y, 8);
    fake_add(&f, y, 0, 4, GRAPH_RUNNING);
    sleep_until(&f, y, 8, PATH_CAUSE_WAKEUP, x, 8);
    struct path_source source = fake_source(&f);
    check(&f, &source, "circle of waits", "A", true, "A 0-2 running; X 2-3 running; Y 3-4 running; X 4-8 blocked");
    struct path *p = walk_to(&source, 8);
    assert_int_equal(p->n_gaps, 1);
    assert_int_equal(p->n_links, 3);
    path_free(p);
    fake_fini(&f);
}

/* A hundred threads wake each other in one instant of a coarse clock: no circle, and all of the chain is followed. */
static void long_chain_at_one_time(void **state)
{
    (void)state;
    enum { CHAIN = 100 };
    struct fake f = {.limit = 10000};
    for (int32_t r = 0; r < CHAIN; r++) {
        fake_add_row(&f, 0, r, "link");
        fake_add(&f, r, 0, r + 1 < CHAIN ? 2 : 9, GRAPH_RUNNING);
        if (r + 1 == CHAIN)
            break;
        fake_add(&f, r, -1, 8, GRAPH_BLOCKED);
        fake_add(&f, r, -1, 9, GRAPH_RUNNING);
    }
    for (int32_t r = 0; r + 1 < CHAIN; r++)
        fake_cause(&f, &f.rows.v[r].intervals.v[1], PATH_CAUSE_WAKEUP, r + 1, 8);
    struct path_source source = fake_source(&f);
    struct path *p;
    struct err e = {0};
    struct path_options options = {.begin = 0, .end = 9, .no_early_return = true};
    assert_int_equal(path_walk(&source, (struct path_row){0, 0}, &options, &p, &e), 0);
    assert_int_equal(p->n_segments, 3);
    assert_true(p->segments[1].row.row == CHAIN - 1 && p->segments[1].begin == 2 && p->segments[1].end == 8);
    assert_int_equal(p->n_gaps, 0);
    path_free(p);
    fake_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(graph_cases), cmocka_unit_test(wakeup_self),
        cmocka_unit_test(home_after_an_inner_wait), cmocka_unit_test(no_home_without_running),
        cmocka_unit_test(home_beyond_the_outer_bound), cmocka_unit_test(woken_before_it_slept),
        cmocka_unit_test(own_signals), cmocka_unit_test(end_within_a_wait), cmocka_unit_test(end_within_a_poll),
        cmocka_unit_test(told_with_the_answer), cmocka_unit_test(cpus), cmocka_unit_test(hole_beyond_the_wait),
        cmocka_unit_test(unknown_past), cmocka_unit_test(own_maker), cmocka_unit_test(circle_of_makers),
        cmocka_unit_test(circle_of_waits), cmocka_unit_test(long_chain_at_one_time)};
    return cmocka_run_group_tests_name("path: cases", tests, NULL, NULL);
}
