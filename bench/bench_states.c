/* SPDX-License-Identifier: MIT */
/* State histories: bench_states [--queries] STORE TRACE…
 * What building adds to the pass over the events, what a store costs on disk and to open, and sampled queries: the 100
 * thread rows with most intervals at 2000 times, at full range, a tenth and a thousandth of it; likewise CPUs,
 * softirqs, files, bytes that threads read. Prints JSON lines; the fastest of several runs counts.
 * --queries: nothing is built (which takes minutes for a long trace). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/time.h"
#include "ctf/ctf.h"
#include "index/index.h"
#include "kernel/kernel.h"
#include "state/state.h"

enum { ROWS = 100, TIMES = 2000, RUNS = 9, BATCH = 512 };

struct row {
    const struct state_store *store;
    size_t row, intervals;
};

static int by_intervals(const void *a, const void *b)
{
    size_t x = ((const struct row *)a)->intervals, y = ((const struct row *)b)->intervals;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* ---- queries ---- */

static void measure(const char *what, int kind, const struct row *rows, size_t n, double share)
{
    static int64_t times[TIMES];
    static struct state_interval found[TIMES];
    double best_ms = 1e9;
    size_t states = 0;
    for (int run = 0; run < RUNS; run++) {
        int64_t spent = 0;
        states = 0;
        for (size_t i = 0; i < n; i++) {
            int64_t begin, end;
            state_span(rows[i].store, &begin, &end);
            double length = (double)(end - begin) * share;
            /* Another place in each run, so that no run finds what the one before left in the caches. */
            begin += (int64_t)(((double)(end - begin) - length) * (run + 1) / (RUNS + 1));
            for (int k = 0; k < TIMES; k++)
                times[k] = begin + (int64_t)(length * (k + 0.1 * run) / TIMES);
            int64_t t = time_monotonic_ns();
            states += state_sample(rows[i].store, kind, rows[i].row, times, TIMES, found);
            spent += time_monotonic_ns() - t;
        }
        best_ms = (double)spent / 1e6 < best_ms ? (double)spent / 1e6 : best_ms;
    }
    printf("{\"bench\":\"states %s\",\"rows\":%zu,\"times\":%d,\"states\":%zu,\"ms\":%.3f}\n", what, n, TIMES, states,
        best_ms);
}

static void measure_values(const char *what, int kind, const struct row *rows, size_t n)
{
    static int64_t times[TIMES], values[TIMES];
    double best_ms = 1e9;
    for (int run = 0; run < RUNS; run++) {
        int64_t t = time_monotonic_ns();
        for (size_t i = 0; i < n; i++) {
            int64_t begin, end;
            state_span(rows[i].store, &begin, &end);
            for (int k = 0; k < TIMES; k++)
                times[k] = begin + (end - begin) / TIMES * k;
            state_counter_values(rows[i].store, kind, rows[i].row, times, TIMES, values);
        }
        double ms = (double)(time_monotonic_ns() - t) / 1e6;
        best_ms = ms < best_ms ? ms : best_ms;
    }
    printf("{\"bench\":\"states %s full range\",\"rows\":%zu,\"times\":%d,\"ms\":%.3f}\n", what, n, TIMES, best_ms);
}

static void measure_latencies(const struct index_host *h)
{
    int64_t begin, end, best = INT64_MAX;
    struct figures figures[512];
    if (state_latency_names(h->states, STATE_LATENCY_SYSCALL) > sizeof figures / sizeof *figures)
        return;
    state_span(h->states, &begin, &end);
    for (int run = 0; run < RUNS; run++) {
        int64_t t = time_monotonic_ns();
        for (size_t k = 1, at = 0, to; k <= TIMES; k++, at = to) {
            to = state_latency_find(h->states, STATE_LATENCY_SYSCALL, begin + (end - begin) / TIMES * (int64_t)k);
            state_latency_figures(h->states, STATE_LATENCY_SYSCALL, at, to, figures);
        }
        t = time_monotonic_ns() - t;
        best = t < best ? t : best;
    }
    printf("{\"bench\":\"states latencies full range\",\"latencies\":%zu,\"times\":%d,\"ms\":%.3f}\n",
        state_latencies(h->states, STATE_LATENCY_SYSCALL), TIMES, (double)best / 1e6);
}

static size_t collect(const struct index_host *hosts, size_t n_hosts, int kind, struct row *out, size_t most)
{
    VEC(struct row) all = {0};
    for (size_t h = 0; h < n_hosts; h++) {
        for (size_t i = 0; hosts[h].states && i < state_rows(hosts[h].states, kind); i++) {
            struct state_row r;
            state_row(hosts[h].states, kind, i, &r);
            vec_push(&all, ((struct row){hosts[h].states, i, r.intervals}));
        }
    }
    if (all.n)
        qsort(all.v, all.n, sizeof *all.v, by_intervals);
    size_t n = all.n < most ? all.n : most;
    if (n)
        memcpy(out, all.v, n * sizeof *out);
    vec_free(&all);
    return n;
}

/* ---- building ---- */

static void on_record(void *arg, const struct kernel_record *r)
{
    struct state_builder *b = *(struct state_builder **)arg;
    if (b)
        state_builder_add(b, r);
}

/* ns of one pass; with a path also builds and writes the store. */
static int64_t pass(struct ctf_trace *trace, const char *path, int64_t *write_ns, uint64_t *events)
{
    struct ctf_source source = {.trace = trace};
    struct kernel_binding *binding;
    struct ctf_merge *merge;
    static struct ctf_event batch[BATCH];
    static int64_t times[BATCH];
    if (kernel_bind(trace, &binding, NULL) ||
        ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &merge, NULL))
        exit(1);
    struct state_builder *b = NULL;
    struct kernel_tracker *tracker = kernel_tracker_new(binding, on_record, &b);
    if (path)
        b = state_builder_new(tracker, store_file(path), 1);
    int64_t begin = INT64_MAX, end = INT64_MIN, t0 = time_monotonic_ns();
    *events = 0;
    for (size_t n; (n = ctf_merge_next(merge, batch, BATCH)) > 0;) {
        size_t told = 0;
        kernel_tracker_feed(tracker, batch, n);
        for (size_t i = 0; i < n; i++) {
            if (batch[i].cls->item != CTF_EVENT)
                continue;
            times[told++] = batch[i].ts;
            begin = batch[i].ts < begin ? batch[i].ts : begin;
            end = batch[i].ts > end ? batch[i].ts : end;
        }
        if (b)
            state_builder_events(b, times, told);
        *events += told;
    }
    kernel_tracker_finish(tracker);
    int64_t t1 = time_monotonic_ns();
    if (b && state_builder_write(b, begin, end, NULL))
        exit(1);
    *write_ns = time_monotonic_ns() - t1;
    state_builder_free(b);
    kernel_tracker_free(tracker);
    kernel_binding_free(binding);
    ctf_merge_free(merge);
    return t1 - t0;
}

static void measure_build(const struct index_host *h)
{
    char path[64];
    int64_t bare = INT64_MAX, with = INT64_MAX, write = INT64_MAX, opened = INT64_MAX, write_ns;
    uint64_t events = 0;
    struct stat st = {0};
    snprintf(path, sizeof path, "/tmp/weft-bench-states-%d", getpid());
    for (int run = 0; run < 5; run++) {
        int64_t ns = pass(h->trace, NULL, &write_ns, &events);
        bare = ns < bare ? ns : bare;
        ns = pass(h->trace, path, &write_ns, &events);
        with = ns < with ? ns : with;
        write = write_ns < write ? write_ns : write;
        struct state_store *s;
        int64_t t = time_monotonic_ns();
        if (stat(path, &st) || state_open(path, &s, NULL))
            exit(1);
        opened = time_monotonic_ns() - t < opened ? time_monotonic_ns() - t : opened;
        state_close(s);
        unlink(path);
    }
    double n = (double)(events ? events : 1);
    printf("{\"bench\":\"states build\",\"host\":\"%s\",\"events\":%llu,\"pass_ns_per_event\":%.2f,"
           "\"states_ns_per_event\":%.2f,\"write_ns_per_event\":%.2f,"
           "\"bytes\":%lld,\"bytes_per_event\":%.2f,\"open_ms\":%.2f}\n",
        h->name, (unsigned long long)events, (double)bare / n, (double)(with - bare) / n, (double)write / n,
        (long long)st.st_size, (double)st.st_size / n, (double)opened / 1e6);
}

int main(int argc, char **argv)
{
    struct err e = {0};
    struct experiment *x;
    bool queries = argc > 1 && !strcmp(argv[1], "--queries");
    argc -= queries;
    argv += queries;
    struct index_options o = {.store = argc > 1 ? argv[1] : NULL, .stores = true, .states = true};
    if (argc < 3 || index_experiment_open((const char *const *)argv + 2, (size_t)argc - 2, &o, &x, &e)) {
        fprintf(stderr, "bench_states [--queries] STORE TRACE…: %s\n", e.text);
        return 1;
    }
    const struct index_host *hosts;
    size_t n = index_experiment_hosts(x, &hosts), found;
    static struct row rows[ROWS];
    found = collect(hosts, n, STATE_THREAD, rows, ROWS);
    measure("threads full range", STATE_THREAD, rows, found, 1.0);
    measure("threads tenth", STATE_THREAD, rows, found, 0.1);
    measure("threads thousandth", STATE_THREAD, rows, found, 0.001);
    measure_values("cpu time", STATE_CPU_TIME, rows, found);
    found = collect(hosts, n, STATE_CPU, rows, ROWS);
    measure("cpus full range", STATE_CPU, rows, found, 1.0);
    measure("cpus thousandth", STATE_CPU, rows, found, 0.001);
    static const struct {
        int kind;
        const char *full, *thousandth;
    } others[] = {{STATE_SOFTIRQ_VECTOR, "softirqs full range", "softirqs thousandth"},
        {STATE_CPU_SOFTIRQ, "softirqs of cpus full range", "softirqs of cpus thousandth"},
        {STATE_FILE_ROWS, "files full range", "files thousandth"}};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        found = collect(hosts, n, others[k].kind, rows, ROWS);
        measure(others[k].full, others[k].kind, rows, found, 1.0);
        measure(others[k].thousandth, others[k].kind, rows, found, 0.001);
    }
    found = collect(hosts, n, STATE_COUNTER_ROWS + STATE_IO_READ, rows, ROWS);
    measure_values("bytes read", STATE_IO_READ, rows, found);
    measure("steps of bytes read full range", STATE_COUNTER_ROWS + STATE_IO_READ, rows, found, 1.0);
    measure("steps of bytes read thousandth", STATE_COUNTER_ROWS + STATE_IO_READ, rows, found, 0.001);
    for (size_t i = 0; i < n; i++)
        if (hosts[i].states) {
            measure_latencies(&hosts[i]);
            if (!queries)
                measure_build(&hosts[i]);
        }
    index_experiment_close(x);
    return 0;
}
