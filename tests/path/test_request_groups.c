/* SPDX-License-Identifier: MIT */
/* Groups of similar requests, their figures, and growth in the slow ones, for a server with given times. Expected
 * values follow from the definition of docs/concepts.md, by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../base/test.h"
#include "made_stores.h"
#include "path/requests.h"

enum { US = 1000, WAKE_US = 10, SPACE_US = 500, MOST_PIECES = 4 };

/* Time of a request, in µs: its thread's own time in a state, or that of a worker it waited for. */
struct piece {
    int32_t worker; /* row; 0: the server's own */
    uint8_t state;
    int64_t us;
};

struct world {
    struct graph graph;
    struct flow_store flows;
    struct path_local_host host;
    struct path_local *local;
    struct requests *found;
    struct request_groups *groups;
    uint32_t in, out;
    uint64_t seq;
    int32_t server;
};

static void begin(struct world *w)
{
    memset(w, 0, sizeof *w);
    w->server = make_row(&w->graph, 20, "server", 0);
    w->in = make_flow(&w->flows, 1, 4000, 2, 80);
    w->out = make_flow(&w->flows, 2, 80, 1, 4000);
}

static int32_t add_worker(struct world *w, const char *name)
{
    return make_row(&w->graph, 30, name, 0);
}

static int64_t now(const struct world *w, int32_t row)
{
    return w->graph.rows.v[row].row.end;
}

static void work(struct world *w, int32_t by, const struct piece *p)
{
    int64_t from = now(w, by), until = from + p->us * US;
    if (!p->worker) {
        make(&w->graph, by, until, p->state)->cause.kind = GRAPH_CAUSE_TERMINAL;
        return;
    }
    make(&w->graph, p->worker, from, GRAPH_BLOCKED)->cause = (struct graph_cause){
        .kind = GRAPH_CAUSE_WAKEUP, .row = by, .ts = from};
    make(&w->graph, p->worker, until, p->state)->cause.kind = GRAPH_CAUSE_TERMINAL;
    make(&w->graph, by, until, GRAPH_BLOCKED)->cause = (struct graph_cause){
        .kind = GRAPH_CAUSE_WAKEUP, .row = p->worker, .ts = until};
}

/* Serves requests one after the other: each arrives, wakes the thread, which works, replies, and waits. */
static void serve_by(struct world *w, int32_t by, const struct piece *pieces)
{
    int64_t at = now(w, w->server);
    for (size_t i = 0; i < w->graph.rows.n; i++)
        at = now(w, (int32_t)i) > at ? now(w, (int32_t)i) : at;
    at += SPACE_US * US;
    uint32_t receive = make_receive(&w->flows, w->in, at, w->seq += 10, by);
    struct made_interval *wait = make(&w->graph, by, at + WAKE_US * US, GRAPH_NETWORK);
    make_wake(&w->flows, wait, by, receive);
    for (int i = 0; i < MOST_PIECES && pieces[i].us; i++)
        work(w, by, &pieces[i]);
    make_send(&w->flows, w->out, now(w, by), w->seq, by);
    make(&w->graph, by, now(w, by) + US, GRAPH_RUNNING);
}

static void serve(struct world *w, const struct piece *pieces)
{
    serve_by(w, w->server, pieces);
}
#define SERVE(w, ...) serve((w), (struct piece[MOST_PIECES]){__VA_ARGS__})

static void find(struct world *w)
{
    w->host = (struct path_local_host){"b", &w->graph, &w->flows, NULL};
    make_address(&w->flows, 2);
    w->local = path_local_new(&w->host, 1);
    w->found = path_requests_find(w->local, &(struct requests_question){.begin = INT64_MIN, .end = INT64_MAX});
    w->groups = path_request_groups_new(w->found, NULL);
}

static void end(struct world *w)
{
    path_request_groups_free(w->groups);
    path_requests_free(w->found);
    path_local_free(w->local);
    drop(&w->graph, &w->flows);
}

static const struct request_group *group(const struct world *w, size_t i)
{
    assert_true(i < path_request_groups_count(w->groups));
    return path_request_groups_get(w->groups, i);
}

static void expect_part(const struct request_part *p, const char *comm, int state)
{
    if (strcmp(p->comm, comm) != 0 || p->state != state)
        fail_msg("part %s %s", p->comm, graph_state_name(p->state));
}

static void expect_figures(const struct request_group *g, uint64_t count, int64_t p50, int64_t p90, int64_t max)
{
    if (g->count != count || g->p50 != p50 * US || g->p90 != p90 * US || g->max != max * US)
        fail_msg("%d requests, p50 %lld, p90 %lld, max %lld", (int)g->count, (long long)g->p50, (long long)g->p90,
            (long long)g->max);
}

static void expect_growth(const struct request_sum *g, const char *comm, int state, int64_t typical, int64_t slow)
{
    expect_part(&g->part, comm, state);
    if (g->typical != typical * US || g->slow != slow * US)
        fail_msg("%s %s: %lld to %lld", comm, graph_state_name(state), (long long)g->typical, (long long)g->slow);
}

static void expect_sum(
    const struct request_sum *s, const char *comm, int state, int64_t total, int64_t typical, int64_t slow)
{
    expect_growth(s, comm, state, typical, slow);
    if (s->total != total * US)
        fail_msg("%s %s: %lld in all", comm, graph_state_name(state), (long long)s->total);
}

/* ---- similarity ---- */

static void by_what_they_wait_for(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    for (int i = 0; i < 10; i++) {
        SERVE(&w, {0, GRAPH_RUNNING, 5000 + 100 * i});
        if (i < 8)
            SERVE(&w, {0, GRAPH_RUNNING, 900 + 50 * i}, {0, GRAPH_BLOCK_DEVICE, 4000 - 100 * i});
    }
    find(&w);
    assert_int_equal(path_request_groups_count(w.groups), 2);
    assert_int_equal(path_request_groups_looked(w.groups), 18);
    expect_figures(group(&w, 0), 10, 5400 + WAKE_US, 5800 + WAKE_US, 5900 + WAKE_US);
    assert_int_equal(group(&w, 0)->n_shape, 1);
    expect_part(&group(&w, 0)->shape[0], "server", GRAPH_RUNNING);
    expect_figures(group(&w, 1), 8, 4700 + WAKE_US, 4900 + WAKE_US, 4900 + WAKE_US);
    assert_int_equal(group(&w, 1)->n_shape, 2);
    expect_part(&group(&w, 1)->shape[0], "server", GRAPH_BLOCK_DEVICE);
    expect_part(&group(&w, 1)->shape[1], "server", GRAPH_RUNNING);
    for (size_t i = 0; i < 18; i++) {
        struct request_told told;
        path_request_groups_tell(w.groups, i, &told);
        const struct served_request *r = path_requests_get(w.found, i);
        assert_int_equal(told.group, r->end - r->begin >= (5000 + WAKE_US) * US ? 0 : 1);
        assert_int_equal(told.n_machines, 1);
        assert_int_equal(told.machines[0], 0);
        free(told.machines);
    }
    end(&w);
}

/* A part between a twentieth and a fifth may be there or not. */
static void noise(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    for (int i = 0; i < 20; i++)
        SERVE(&w, {0, GRAPH_RUNNING, 8500 - 50 * i}, {0, GRAPH_TIMER, 1500 - 70 * i});
    SERVE(&w, {0, GRAPH_RUNNING, 7500}, {0, GRAPH_TIMER, 2500});
    find(&w);
    assert_int_equal(path_request_groups_count(w.groups), 1);
    assert_int_equal(group(&w, 0)->count, 21);
    end(&w);
}

/* Checks that delays of messages, and of the CPU, do not affect similarity. */
static void held_up(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    for (int i = 0; i < 19; i++)
        SERVE(&w, {0, GRAPH_RUNNING, 5000 + i});
    SERVE(&w, {0, GRAPH_RUNNING, 5000}, {0, GRAPH_PREEMPTED, 9000}, {0, GRAPH_INTERRUPTED, 3000},
        {0, GRAPH_NETWORK, 7000});
    find(&w);
    assert_int_equal(path_request_groups_count(w.groups), 1);
    const struct request_group *g = group(&w, 0);
    expect_figures(g, 20, 5009 + WAKE_US, 5017 + WAKE_US, 24000 + WAKE_US);
    assert_int_equal(g->n_shape, 1);
    /* The slow: from rank 18 of 20 on, that are three. */
    assert_int_equal(g->n_grew, 3);
    expect_growth(&g->grew[0], "server", GRAPH_PREEMPTED, 0, 3000);
    assert_int_equal(g->grew[1].part.state, GRAPH_NETWORK);
    expect_growth(&g->grew[2], "server", GRAPH_INTERRUPTED, 0, 1000);
    end(&w);
}

/* Checks growth by holder of the time, largest first; small parts are left out. */
static void what_grew(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    int32_t worker = add_worker(&w, "disk");
    for (int i = 0; i < 9; i++)
        SERVE(&w, {0, GRAPH_RUNNING, 1000 + i}, {worker, GRAPH_RUNNING, 1000});
    SERVE(&w, {0, GRAPH_RUNNING, 3000}, {worker, GRAPH_RUNNING, 5000}, {0, GRAPH_PREEMPTED, 100});
    SERVE(&w, {0, GRAPH_RUNNING, 2000}, {worker, GRAPH_RUNNING, 5000});
    find(&w);
    const struct request_group *g = group(&w, 0);
    assert_int_equal(g->count, 11);
    assert_int_equal(g->n_grew, 2);
    expect_growth(&g->grew[0], "disk", GRAPH_RUNNING, 1000, 5000);
    /* The faster half: ranks 1 to 6, whose third has 1002. */
    expect_growth(&g->grew[1], "server", GRAPH_RUNNING, 1002, 2500);
    end(&w);
}

/* Checks all parts, also small ones and those of fast ones only; they sum to the whole paths. */
static void sums(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    int32_t worker = add_worker(&w, "disk");
    for (int i = 0; i < 9; i++)
        SERVE(&w, {0, GRAPH_RUNNING, 1000 + i}, {worker, GRAPH_RUNNING, 1000}, {0, GRAPH_TIMER, 10});
    SERVE(&w, {0, GRAPH_RUNNING, 3000}, {worker, GRAPH_RUNNING, 5000}, {0, GRAPH_PREEMPTED, 100});
    SERVE(&w, {0, GRAPH_RUNNING, 2000}, {worker, GRAPH_RUNNING, 5000});
    find(&w);
    const struct request_group *g = group(&w, 0);
    assert_int_equal(g->count, 11);
    assert_int_equal(g->n_sums, 5);
    expect_sum(&g->sums[0], "disk", GRAPH_RUNNING, 19000, 1000, 5000);
    expect_sum(&g->sums[1], "server", GRAPH_RUNNING, 14036, 1002, 2500);
    expect_sum(&g->sums[2], "server", GRAPH_NETWORK, 11 * WAKE_US, WAKE_US, WAKE_US);
    expect_sum(&g->sums[3], "server", GRAPH_PREEMPTED, 100, 0, 50);
    expect_sum(&g->sums[4], "server", GRAPH_TIMER, 90, 10, 0);
    assert_int_equal(g->whole.total, (19000 + 14036 + 11 * WAKE_US + 100 + 90) * US);
    assert_int_equal(g->whole.typical, (1002 + 1000 + 10 + WAKE_US) * US);
    assert_int_equal(g->whole.slow, (2500 + 5000 + 50 + WAKE_US) * US);
    end(&w);
}

static void alone(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    SERVE(&w, {0, GRAPH_RUNNING, 1000});
    find(&w);
    expect_figures(group(&w, 0), 1, 1000 + WAKE_US, 1000 + WAKE_US, 1000 + WAKE_US);
    assert_int_equal(group(&w, 0)->n_grew, 0);
    end(&w);

    begin(&w);
    find(&w);
    assert_int_equal(path_request_groups_count(w.groups), 0);
    end(&w);
}

/* ---- names ---- */

static void pools(void **state)
{
    (void)state;
    static const char *const names[] = {"worker-1", "worker-22", "worker-3"};
    struct world w;
    begin(&w);
    for (int i = 0; i < 3; i++) {
        int32_t worker = add_worker(&w, names[i]);
        SERVE(&w, {0, GRAPH_RUNNING, 1000}, {worker, GRAPH_RUNNING, 2000});
    }
    SERVE(&w, {0, GRAPH_RUNNING, 1000}, {add_worker(&w, "python3"), GRAPH_RUNNING, 2000});
    SERVE(&w, {0, GRAPH_RUNNING, 1000}, {add_worker(&w, "python2"), GRAPH_RUNNING, 2000});
    find(&w);
    assert_int_equal(path_request_groups_count(w.groups), 3);
    assert_int_equal(group(&w, 0)->count, 3);
    expect_part(&group(&w, 0)->shape[0], "worker-#", GRAPH_RUNNING);
    expect_part(&group(&w, 1)->shape[0], "python3", GRAPH_RUNNING);
    end(&w);
}

static void servers_apart(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    int32_t worker = add_worker(&w, "pool"), other = add_worker(&w, "other"), like = add_worker(&w, "other");
    for (int i = 0; i < 3; i++) {
        SERVE(&w, {0, GRAPH_RUNNING, 10}, {worker, GRAPH_RUNNING, 2000});
        serve_by(
            &w, i ? other : like, (struct piece[MOST_PIECES]){{0, GRAPH_RUNNING, 10}, {worker, GRAPH_RUNNING, 2000}});
    }
    find(&w);
    assert_int_equal(path_request_groups_count(w.groups), 2);
    assert_int_equal(group(&w, 0)->count, 3);
    assert_int_equal(group(&w, 1)->count, 3);
    end(&w);
}

/* ---- a sample ---- */

/* Checks sampling: beyond the slowest hundred, each examined request stands for its neighbours by rank. */
static void sampled(void **state)
{
    (void)state;
    enum { N = 1900 };
    struct world w;
    begin(&w);
    for (int i = 0; i < N; i++)
        SERVE(&w, {0, GRAPH_RUNNING, 1000 + (i * 7) % N});
    find(&w);
    assert_int_equal(path_requests_count(w.found), N);
    assert_int_equal(path_request_groups_looked(w.groups), REQUESTS_SLOWEST + REQUESTS_SAMPLE);
    const struct request_group *g = group(&w, 0);
    assert_int_equal(g->count, N);
    assert_int_equal(g->max, (1000 + N - 1 + WAKE_US) * US);
    assert_int_equal(g->p99, (1000 + N * 99 / 100 - 1 + WAKE_US) * US);
    assert_true(llabs(g->p50 - (1000 + N / 2 - 1 + WAKE_US) * US) <= 2 * US);
    /* Weight of each: those that it stands for: of two the slower or the faster, half of the time. */
    int64_t all = N * (1000 + WAKE_US) + (int64_t)N * (N - 1) / 2;
    assert_true(llabs(g->whole.total - all * US) <= N * US);
    assert_int_equal(g->sums[0].total + g->sums[1].total, g->whole.total);
    for (size_t i = 0; i < N; i += 97) {
        struct request_told told;
        path_request_groups_tell(w.groups, i, &told);
        assert_int_equal(told.group, 0);
        free(told.machines);
    }
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_what_they_wait_for),
        cmocka_unit_test(noise),
        cmocka_unit_test(held_up),
        cmocka_unit_test(what_grew),
        cmocka_unit_test(sums),
        cmocka_unit_test(alone),
        cmocka_unit_test(pools),
        cmocka_unit_test(servers_apart),
        cmocka_unit_test(sampled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
