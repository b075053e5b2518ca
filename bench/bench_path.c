/* SPDX-License-Identifier: MIT */
/* Critical paths in process, stores warm: bench_path STORE TRACE…
 * Opens the indexed traces, walks the whole life of the threads that ran most, and short windows of them; prints JSON
 * lines. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/time.h"
#include "clock/clock.h"
#include "graph/graph.h"
#include "index/index.h"
#include "path/path.h"

enum { WALKS = 200, RUNS = 3 };

struct candidate {
    struct path_row row;
    int64_t running, begin, end;
};

static int by_running(const void *a, const void *b)
{
    int64_t x = ((const struct candidate *)a)->running, y = ((const struct candidate *)b)->running;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* The fastest of `runs` walks of the same thread counts: other work on the machine is not what is measured. Returns its
 * ms; *segments: its length. */
static double walk(
    const struct path_source *s, struct path_row row, const struct path_options *o, int runs, size_t *segments)
{
    double best = -1;
    for (int i = 0; i < runs; i++) {
        struct path *p;
        struct err e = {0};
        int64_t t = time_monotonic_ns();
        if (path_walk(s, row, o, &p, &e))
            return -1;
        double ms = (double)(time_monotonic_ns() - t) / 1e6;
        best = best < 0 || ms < best ? ms : best;
        *segments = p->n_segments;
        path_free(p);
    }
    return best;
}

static void measure(
    const char *what, const struct path_source *s, const struct candidate *c, size_t n, double share, int runs)
{
    double worst_ms = 0, total_ms = 0, worst_fixed = 0;
    size_t segments = 0, walks = 0;
    for (size_t i = 0; i < n && i < WALKS; i++) {
        int64_t length = (int64_t)((double)(c[i].end - c[i].begin) * share),
                middle = c[i].begin + (c[i].end - c[i].begin) / 2;
        struct path_options o = {.begin = middle - length / 2, .end = middle + length / 2};
        size_t found;
        double ms = walk(s, c[i].row, &o, runs, &found);
        if (ms < 0)
            continue;
        double fixed = ms - 1e-3 * (double)found; /* the goal grants 1 us per segment */
        worst_fixed = fixed > worst_fixed ? fixed : worst_fixed;
        worst_ms = ms > worst_ms ? ms : worst_ms;
        total_ms += ms;
        segments += found;
        walks++;
    }
    printf("{\"bench\":\"path %s\",\"walks\":%zu,\"segments\":%zu,\"mean_ms\":%.4f,\"worst_ms\":%.4f,"
           "\"worst_beyond_1us_per_segment_ms\":%.4f,\"us_per_segment\":%.4f}\n",
        what, walks, segments, walks ? total_ms / (double)walks : 0, worst_ms, worst_fixed,
        segments ? total_ms * 1e3 / (double)segments : 0);
}

int main(int argc, char **argv)
{
    struct err e = {0};
    struct experiment *x;
    struct index_options o = {.store = argc > 1 ? argv[1] : NULL, .stores = true};
    const struct clock_net *net;
    struct clock_options clocks = clock_defaults();
    int64_t begin = time_monotonic_ns();
    if (argc < 3 || index_experiment_open((const char *const *)argv + 2, (size_t)argc - 2, &o, &x, &e) ||
        index_experiment_sync(x, &clocks, &net, &e)) {
        fprintf(stderr, "bench_path STORE TRACE…: %s\n", e.text);
        return 1;
    }
    const struct index_host *hosts;
    size_t n = index_experiment_hosts(x, &hosts);
    printf("{\"bench\":\"open indexed\",\"seconds\":%.4f}\n", (double)(time_monotonic_ns() - begin) / 1e9);
    struct path_local_host *local = mem_zalloc(sizeof *local * n);
    VEC(struct candidate) all = {0};
    for (size_t i = 0; i < n; i++) {
        local[i] = (struct path_local_host){hosts[i].name, hosts[i].graph, hosts[i].flows, clock_net_map(net, i)};
        for (size_t r = 0; hosts[i].graph && r < graph_rows(hosts[i].graph); r++) {
            struct graph_row row;
            int64_t totals[GRAPH_STATE_COUNT];
            graph_row(hosts[i].graph, (int32_t)r, &row);
            graph_row_totals(hosts[i].graph, (int32_t)r, row.begin, row.end, totals);
            if (row.idle_cpu < 0)
                vec_push(&all,
                    ((struct candidate){{(int32_t)i, (int32_t)r}, totals[GRAPH_RUNNING],
                        clock_to_reference(local[i].map, row.begin), clock_to_reference(local[i].map, row.end)}));
        }
    }
    qsort(all.v, all.n, sizeof *all.v, by_running);
    struct path_local *joined = path_local_new(local, n);
    const struct path_source *s = path_local_source(joined);
    measure("first", s, all.v, 1, 0.1, 1); /* makes what later walks find made */
    measure("whole life", s, all.v, all.n, 1.0, RUNS);
    measure("tenth of life", s, all.v, all.n, 0.1, RUNS);
    measure("thousandth of life", s, all.v, all.n, 0.001, RUNS);
    path_local_free(joined);
    free(local);
    vec_free(&all);
    index_experiment_close(x);
    return 0;
}
