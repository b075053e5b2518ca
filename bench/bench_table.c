/* SPDX-License-Identifier: MIT */
/* Random access: bench_table STORE TRACE…
 * What a line of the events table costs at any place of indexed traces: the first one after opening, with all that it
 * has to find out, then lines and pages of 50 at random places. Prints JSON lines. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/time.h"
#include "index/index.h"

enum { LINES = 400, PAGE = 50 };

static uint64_t draw(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

static int ascending(const void *a, const void *b)
{
    double p = *(const double *)a, q = *(const double *)b;
    return p < q ? -1 : p > q;
}

/* Milliseconds to the first `count` events from `index` on. */
static double read_at(struct ctf_merge *m, uint64_t index, size_t count)
{
    struct ctf_event ev[PAGE];
    struct err e = {0};
    int64_t start = time_monotonic_ns();
    if (ctf_merge_seek(m, index, &e)) {
        fprintf(stderr, "bench_table: %s\n", e.text);
        exit(1);
    }
    for (size_t n, left = count; left && (n = ctf_merge_next(m, ev, left)) > 0;)
        left -= n;
    return (double)(time_monotonic_ns() - start) / 1e6;
}

static void measure(const char *what, struct ctf_merge *m, uint64_t events, size_t count)
{
    static double ms[LINES];
    double sum = 0;
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < LINES; i++)
        sum += ms[i] = read_at(m, draw(&random) % events, count);
    qsort(ms, LINES, sizeof *ms, ascending);
    printf("{\"bench\":\"table %s\",\"events\":%llu,\"mean_ms\":%.4f,\"median_ms\":%.4f,\"p99_ms\":%.4f,"
           "\"worst_ms\":%.4f}\n",
        what, (unsigned long long)events, sum / LINES, ms[LINES / 2], ms[LINES * 99 / 100], ms[LINES - 1]);
}

int main(int argc, char **argv)
{
    struct err e = {0};
    struct experiment *x;
    struct index_options o = {.store = argc > 1 ? argv[1] : NULL, .stores = true};
    if (argc < 3 || index_experiment_open((const char *const *)argv + 2, (size_t)argc - 2, &o, &x, &e)) {
        fprintf(stderr, "bench_table STORE TRACE…: %s\n", e.text);
        return 1;
    }
    index_experiment_close(x);
    int64_t start = time_monotonic_ns();
    if (index_experiment_open((const char *const *)argv + 2, (size_t)argc - 2, &o, &x, &e))
        return 1;
    double open_ms = (double)(time_monotonic_ns() - start) / 1e6;
    const struct index_host *hosts;
    const struct ctf_source *sources;
    size_t n_hosts = index_experiment_hosts(x, &hosts), n = index_experiment_sources(x, &sources);
    struct ctf_merge *m;
    uint64_t events = 0;
    for (size_t i = 0; i < n_hosts; i++)
        events += hosts[i].events;
    if (!events || ctf_merge_new(sources, n, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &m, &e))
        return 1;
    double first = read_at(m, events / 3 * 2, 1);
    printf("{\"bench\":\"table first\",\"events\":%llu,\"ms\":%.4f,\"open_ms\":%.2f}\n", (unsigned long long)events,
        first, open_ms);
    measure("line", m, events, 1);
    measure("page of 50", m, events, PAGE);
    ctf_merge_free(m);
    index_experiment_close(x);
    return 0;
}
