/* SPDX-License-Identifier: MIT */
/* Paths over recorded traces: the totals of a public trace against a reference model of the rules of Trace Compass, and
 * what must hold for any thread. */
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../base/test.h"
#include "apart.h"
#include "base/mem.h"
#include "clock/clock.h"
#include "graph/graph.h"
#include "index/index.h"
#include "path/path.h"

struct joined {
    struct experiment *experiment;
    const struct index_host *hosts;
    size_t n;
    struct path_local_host *parts;
    struct path_local *local;
};

static char store[] = "/tmp/weft-path-XXXXXX";

static int drop(const char *file, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    return remove(file);
}

static int make_store(void **state)
{
    (void)state;
    return mkdtemp(store) ? 0 : -1;
}

static int drop_store(void **state)
{
    (void)state;
    return nftw(store, drop, 16, FTW_DEPTH | FTW_PHYS);
}

/* Skips the test when the recording is not there. */
static struct joined open_trace(const char *name)
{
    char path[4096];
    const char *data = getenv("WEFT_DATA");
    snprintf(path, sizeof path, "%s/%s", data ? data : WEFT_SOURCE_ROOT "/../shared/data", name);
    if (access(path, R_OK))
        skip_without("no %s", path);
    struct joined j = {0};
    struct err e = {0};
    struct index_options o = {.store = store, .stores = true};
    const char *args[] = {path};
    const struct clock_net *net;
    struct clock_options clocks = clock_defaults();
    if (index_experiment_open(args, 1, &o, &j.experiment, &e) || index_experiment_sync(j.experiment, &clocks, &net, &e))
        fail_msg("%s: %s", name, e.text);
    j.n = index_experiment_hosts(j.experiment, &j.hosts);
    j.parts = mem_zalloc(j.n * sizeof *j.parts);
    for (size_t i = 0; i < j.n; i++)
        j.parts[i] = (struct path_local_host){
            j.hosts[i].name, j.hosts[i].graph, j.hosts[i].flows, clock_net_map(net, i)};
    j.local = path_local_new(j.parts, j.n);
    return j;
}

static void close_trace(struct joined *j)
{
    path_local_free(j->local);
    free(j->parts);
    index_experiment_close(j->experiment);
}

static struct path *life_of(const struct joined *j, struct path_row row, bool no_early_return)
{
    struct path *p;
    struct err e = {0};
    struct path_options options = {.begin = INT64_MIN, .end = INT64_MAX, .no_early_return = no_early_return};
    if (path_walk(path_local_source(j->local), row, &options, &p, &e))
        fail_msg("row %d of host %d: %s", row.row, row.host, e.text);
    if (!path_covers(p, &e))
        fail_msg("row %d of host %d: %s", row.row, row.host, e.text);
    return p;
}

/* A model of the rules written from the description alone (reference 1 and 2) gives, for tid 2673, over 406 492 244 ns
 * and 5473 rows: 388 341 416 ns running, 16 909 947 preempted, 118 749 blocked, 1 122 132 unknown. The differences of
 * the bounded walk in ns, each found segment by segment:
 *      16 587  the thread is followed from its fork on, not from its first switch: preempted
 *   1 122 132  14 rows are known to be runnable from their fork on where the model meets them later: unknown became
 *              preempted
 *      39 945  70 waits end with the waking, where the model goes on until the switch: blocked became preempted
 *       7 211  5 + 10 slivers: a second waking of a thread that runs opens no wait, so the path stays on the thread:
 *              preempted became running (and 6 262 ns of running are the thread's own instead of its children's) */
static void many_threads(void **state)
{
    (void)state;
    struct joined j = open_trace("traces-public/single-host/many-threads");
    int32_t row = -1;
    for (size_t r = 0; r < graph_rows(j.hosts[0].graph); r++) {
        struct graph_row info;
        graph_row(j.hosts[0].graph, (int32_t)r, &info);
        if (info.tid == 2673)
            row = (int32_t)r;
    }
    assert_true(row >= 0);
    int64_t totals[GRAPH_STATE_COUNT] = {0};
    struct path *p = life_of(&j, (struct path_row){0, row}, true);
    for (size_t i = 0; i < p->n_totals; i++)
        totals[p->totals[i].state] += p->totals[i].duration;
    assert_int_equal(p->end - p->begin, 406492244 + 16587);
    assert_int_equal(totals[GRAPH_RUNNING], 388341416 + 7211);
    assert_int_equal(totals[GRAPH_PREEMPTED], 16909947 + 16587 + 1122132 + 39945 - 7211);
    assert_int_equal(totals[GRAPH_BLOCKED], 118749 - 39945);
    assert_int_equal(totals[GRAPH_UNKNOWN], 0);
    path_free(p);
    close_trace(&j);
}

/* Checks every thread of a trace, over its whole life: covered (also asserted inside), the same twice, and without
 * links that run backward. */
static void any_thread(const char *name)
{
    struct joined j = open_trace(name);
    size_t walks = 0;
    for (size_t h = 0; h < j.n; h++)
        for (size_t r = 0; j.hosts[h].graph && r < graph_rows(j.hosts[h].graph); r++) {
            struct path_row row = {(int32_t)h, (int32_t)r};
            struct path *p = life_of(&j, row, false), *q = life_of(&j, row, false);
            assert_int_equal(p->n_segments, q->n_segments);
            for (size_t i = 0; i < p->n_segments; i++)
                assert_true(p->segments[i].begin == q->segments[i].begin &&
                    p->segments[i].row.row == q->segments[i].row.row &&
                    p->segments[i].row.host == q->segments[i].row.host && p->segments[i].state == q->segments[i].state);
            for (size_t i = 0; i < p->n_links; i++)
                assert_true(p->links[i].from_ts <= p->links[i].to_ts);
            path_free(p);
            path_free(q);
            walks++;
        }
    assert_true(walks > 50);
    close_trace(&j);
}

static void any_thread_of_scp(void **state)
{
    (void)state;
    any_thread("traces/scp-net");
}

static void any_thread_of_lost_events(void **state)
{
    (void)state;
    any_thread("traces/lost-events");
}

/* Threads of each host of a recording, all over its rows. */
static void taken_apart(const char *name, size_t per_host)
{
    struct joined j = open_trace(name);
    struct apart_count count = {0};
    size_t rows = 0;
    apart_seed(test_seed(1) + 1);
    for (size_t h = 0; h < j.n; h++) {
        size_t n = j.hosts[h].graph ? graph_rows(j.hosts[h].graph) : 0;
        for (size_t r = 0; r < n; r += n / per_host + 1) {
            struct path *p = life_of(&j, (struct path_row){(int32_t)h, (int32_t)r}, false);
            if (p->begin < p->end) {
                apart_check(path_local_source(j.local), name, p, p->n_segments < 3000, &count);
                rows++;
            }
            path_free(p);
        }
    }
    print_message("%zu paths, %zu pieces inside waits, %zu rounds\n", rows, count.pieces, count.rounds);
    assert_true(rows > per_host / 2 && count.rounds > rows);
    close_trace(&j);
}

static void scp_taken_apart(void **state)
{
    (void)state;
    taken_apart("traces/scp-net", 40);
}
static void bsp_taken_apart(void **state)
{
    (void)state;
    taken_apart("traces/bsp", 40);
}
static void three_tier_taken_apart(void **state)
{
    (void)state;
    taken_apart("traces/three-tier", 40);
}
static void mpi_taken_apart(void **state)
{
    (void)state;
    taken_apart("traces/mpi", 40);
}
static void lost_events_taken_apart(void **state)
{
    (void)state;
    taken_apart("traces/lost-events", 40);
}
static void many_threads_taken_apart(void **state)
{
    (void)state;
    taken_apart("traces-public/single-host/many-threads", 60);
}

/* Walks with a source shared by several threads. */
static void *walk_all(void *arg)
{
    const struct joined *j = arg;
    size_t *sum = mem_zalloc(sizeof *sum);
    for (size_t h = 0; h < j->n; h++)
        for (size_t r = 0; r < graph_rows(j->hosts[h].graph); r++) {
            struct path *p;
            struct path_options options = {.begin = INT64_MIN, .end = INT64_MAX};
            if (!path_walk(path_local_source(j->local), (struct path_row){(int32_t)h, (int32_t)r}, &options, &p, NULL))
                *sum += p->n_segments + p->n_links;
            path_free(p);
        }
    return sum;
}

static void several_at_once(void **state)
{
    (void)state;
    struct joined j = open_trace("traces/bsp");
    pthread_t threads[3];
    size_t *sums[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, walk_all, &j), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], (void **)&sums[i]);
    assert_true(*sums[0] > 1000 && *sums[0] == *sums[1] && *sums[1] == *sums[2]);
    for (int i = 0; i < 3; i++)
        free(sums[i]);
    close_trace(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_threads),
        cmocka_unit_test(any_thread_of_scp),
        cmocka_unit_test(any_thread_of_lost_events),
        cmocka_unit_test(several_at_once),
        cmocka_unit_test(scp_taken_apart),
        cmocka_unit_test(bsp_taken_apart),
        cmocka_unit_test(three_tier_taken_apart),
        cmocka_unit_test(mpi_taken_apart),
        cmocka_unit_test(lost_events_taken_apart),
        cmocka_unit_test(many_threads_taken_apart),
    };
    return cmocka_run_group_tests_name("path: recorded traces", tests, make_store, drop_store);
}
