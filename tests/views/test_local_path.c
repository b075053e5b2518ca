/* SPDX-License-Identifier: MIT */
/* The first answer to a critical path: only the thread's own host is looked at, what came from others is pending. And:
 * walks can be ended. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../base/test.h"
#include "views/critical_view.h"

struct fixture {
    char store[64];
    struct views x;
    struct view_host hosts[8];
    struct path_local_host local[8];
    int32_t path_hosts[8];
    size_t numbers[8];
};

static const char *data(void)
{
    const char *d = getenv("WEFT_DATA");
    return d ? d : WEFT_SOURCE_ROOT "/../shared/data";
}

static int open_three_tier(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    char path[PATH_MAX];
    const char *args[] = {path};
    const struct index_host *hosts;
    struct clock_options clock = clock_defaults();
    struct err e = {0};
    *state = f;
    snprintf(path, sizeof path, "%s/traces/three-tier", data());
    if (access(path, R_OK))
        return 0;
    strcpy(f->store, "/tmp/weft-local-path-XXXXXX");
    assert_non_null(mkdtemp(f->store));
    struct index_options o = {.store = f->store, .stores = true};
    assert_int_equal(index_experiment_open(args, 1, &o, &f->x.x, &e), 0);
    assert_int_equal(index_experiment_sync(f->x.x, &clock, &f->x.clocks, &e), 0);
    f->x.n_hosts = index_experiment_hosts(f->x.x, &hosts);
    assert_in_range(f->x.n_hosts, 1, 8);
    for (size_t i = 0; i < f->x.n_hosts; i++) {
        f->hosts[i] = (struct view_host){.index = &hosts[i],
            .map = clock_net_map(f->x.clocks, i),
            .first_thread = f->x.data.shared,
            .threads = (int32_t)graph_rows(hosts[i].graph),
            .id = hosts[i].name};
        f->x.data.shared += f->hosts[i].threads;
        f->local[i] = (struct path_local_host){hosts[i].name, hosts[i].graph, hosts[i].flows, f->hosts[i].map};
        f->path_hosts[i] = (int32_t)i;
        f->numbers[i] = i;
    }
    f->x.hosts = f->hosts;
    f->x.path_hosts = f->path_hosts;
    f->x.paths = path_local_new(f->local, f->x.n_hosts);
    return 0;
}

static int close_three_tier(void **state)
{
    struct fixture *f = *state;
    char command[128];
    path_local_free(f->x.paths);
    if (f->x.x)
        index_experiment_close(f->x.x);
    if (*f->store) {
        snprintf(command, sizeof command, "rm -r %s", f->store);
        assert_int_equal(system(command), 0);
    }
    free(f);
    return 0;
}

static struct critical_question ask(struct fixture *f, const char *thread)
{
    struct critical_question q;
    struct arena a = {0};
    json_t *parameters = json_pack("{s:s}", "thread", thread);
    if (!f->x.x) {
        json_decref(parameters);
        skip_without("the recorded trace three-tier");
    }
    assert_null(critical_question_parse(&f->x, parameters, &a, &q));
    json_decref(parameters);
    arena_fini(&a);
    return q;
}

static int64_t sum_of(const struct critical_view *v, const struct critical_question *q, int graph_state)
{
    int64_t sum = 0;
    for (size_t i = 0; i < v->n_rows; i++)
        if (v->rows[i].row.host == q->row.host && v->rows[i].row.row == q->row.row)
            sum += v->rows[i].totals[graph_state];
    return sum;
}

/* Ground truth of the recording: the client sent 10 requests, each to web, and waited for each answer. */
static void local_first(void **state)
{
    struct fixture *f = *state;
    struct critical_question q = ask(f, "client:204");
    atomic_bool stop = false;
    struct err e = {0};
    struct critical_view *local = critical_walk(&f->x, f->numbers, f->x.n_hosts, &q, q.row.host, &stop, &e);
    struct critical_view *whole = critical_walk(&f->x, f->numbers, f->x.n_hosts, &q, CRITICAL_ALL_HOSTS, &stop, &e);
    assert_non_null(local);
    assert_non_null(whole);
    assert_true(path_covers(local->path, &e));
    assert_int_equal(local->path->begin, whole->path->begin);
    assert_int_equal(local->path->end, whole->path->end);
    int64_t pending = 0;
    size_t waits = 0;
    for (size_t i = 0; i < local->path->n_segments; i++)
        assert_int_equal(local->path->segments[i].row.host, q.row.host);
    for (size_t i = 0; i < local->path->n_gaps; i++) {
        const struct path_gap *g = &local->path->gaps[i];
        assert_int_equal(g->reason, PATH_PENDING);
        assert_string_equal(g->peer, "web");
        assert_ptr_equal(critical_gap(local, g->begin, g->end), g);
        pending += g->end - g->begin;
        waits += g->end - g->begin > 5000000; /* the answers take tens of ms, the handshake less */
    }
    assert_int_equal(waits, 10);
    assert_non_null(strstr(local->sentence, "still being asked for: web"));
    assert_null(strstr(whole->sentence, "still being asked for"));
    /* Parts that are not pending are final. */
    assert_true(sum_of(local, &q, GRAPH_NETWORK) >= pending);
    assert_int_equal(sum_of(local, &q, GRAPH_TIMER), sum_of(whole, &q, GRAPH_TIMER));
    assert_true(pending > whole->path->end - whole->path->begin - whole->rows[0].total);
    critical_view_free(&f->x, local);
    critical_view_free(&f->x, whole);
}

static void stopped_walk_ends(void **state)
{
    struct fixture *f = *state;
    struct critical_question q = ask(f, "client:204");
    atomic_bool stop = true;
    struct err e = {0};
    struct critical_view *v = critical_walk(&f->x, f->numbers, f->x.n_hosts, &q, CRITICAL_ALL_HOSTS, &stop, &e);
    assert_non_null(v);
    assert_true(v->path->partial);
    assert_int_equal(v->path->n_segments, 0);
    critical_view_free(&f->x, v);
}

static void entries_are_distinct(void **state)
{
    struct fixture *f = *state;
    struct critical_question q = ask(f, "db:204");
    atomic_bool stop = false;
    struct err e = {0};
    struct critical_view *v = critical_walk(&f->x, f->numbers, f->x.n_hosts, &q, CRITICAL_ALL_HOSTS, &stop, &e);
    assert_non_null(v);
    for (size_t i = 0; i < v->n_rows; i++) {
        assert_ptr_equal(critical_row_of(v, v->rows[i].entry), &v->rows[i]);
        assert_true(v->rows[i].entry < INT64_C(1) << 31);
        for (size_t h = 0; h < f->x.n_hosts; h++)
            assert_true(v->rows[i].entry != v->hosts[h].entry);
        for (size_t k = 0; k < v->rows[i].n; k++) {
            const struct path_segment *s = critical_segment(v, &v->rows[i], k);
            assert_true(s->begin < s->end);
            assert_true(k == 0 || critical_segment(v, &v->rows[i], k - 1)->end <= s->begin);
        }
    }
    critical_view_free(&f->x, v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(local_first, open_three_tier, close_three_tier),
        cmocka_unit_test_setup_teardown(stopped_walk_ends, open_three_tier, close_three_tier),
        cmocka_unit_test_setup_teardown(entries_are_distinct, open_three_tier, close_three_tier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
