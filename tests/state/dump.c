/* SPDX-License-Identifier: MIT */
/* dump TRACE [intervals]: prints the contents of a trace's state store, as lines for truth.py. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fixture.h"

static const char *const values[STATE_VALUES] = {"none", "usermode", "syscall", "interrupted", "ready", "blocked",
    "waiting", "idle", "irq", "softirq", "raised", "active", "unknown", "wait", "wake"};

static void dump_intervals(const struct fixture *f, int kind, const char *title)
{
    enum { MOST = 256 };
    struct state_interval list[MOST];
    for (size_t row = 0; row < state_rows(f->store, kind); row++) {
        struct state_row r;
        const struct kernel_thread *threads;
        kernel_tracker_threads(f->tracker, &threads);
        if (kind == STATE_THREAD &&
            threads[row].idle_cpu >= 0) /* idle threads live on one CPU, and losses of others do not affect them */
            continue;
        state_row(f->store, kind, row, &r);
        int64_t at = f->begin;
        for (size_t n; (n = state_range(f->store, kind, row, at, f->end, list, MOST)) > 0; at = list[n - 1].end) {
            for (size_t i = 0; i < n; i++)
                printf("%s %d %lld %lld %s %d\n", title, r.number, (long long)list[i].begin, (long long)list[i].end,
                    values[list[i].value], list[i].thread);
            if (n < MOST)
                break;
        }
    }
}

/* Sum of the lengths of a row's states by value. */
static void dump_totals(const struct state_store *s, int kind, size_t row, const char *title, int32_t id)
{
    enum { MOST = 256 };
    struct state_interval list[MOST];
    int64_t begin, end, total[STATE_VALUES] = {0}, at;
    state_span(s, &begin, &end);
    at = begin;
    for (size_t n; (n = state_range(s, kind, row, at, end, list, MOST)) > 0;) {
        for (size_t i = 0; i < n; i++)
            total[list[i].value] += list[i].end - list[i].begin;
        if (list[n - 1].end == end || n < MOST)
            break;
        at = list[n - 1].end;
    }
    printf("%s %d", title, id);
    for (int v = 0; v < STATE_VALUES; v++)
        printf(" %s=%lld", values[v], (long long)total[v]);
    printf("\n");
}

static void dump_threads(const struct fixture *f)
{
    const struct kernel_thread *threads;
    size_t n = kernel_tracker_threads(f->tracker, &threads);
    for (size_t row = 0; row < n; row++) {
        int64_t ran, i = state_find_counter(f->store, STATE_CPU_TIME, (int32_t)row);
        state_counter_values(f->store, STATE_CPU_TIME, (size_t)i, &f->end, 1, &ran);
        if (threads[row].idle_cpu < 0) {
            printf("ran %d %lld\n", threads[row].tid, (long long)ran);
            dump_totals(f->store, STATE_THREAD, row, "thread", threads[row].tid);
        }
    }
}

static void dump_cpus(const struct fixture *f)
{
    for (size_t i = 0; i < state_rows(f->store, STATE_CPU); i++) {
        struct state_row r;
        state_row(f->store, STATE_CPU, i, &r);
        int64_t busy, c = state_find_counter(f->store, STATE_CPU_TIME, -1 - r.number);
        state_counter_values(f->store, STATE_CPU_TIME, (size_t)c, &f->end, 1, &busy);
        printf("busy %d %lld\n", r.number, (long long)busy);
        dump_totals(f->store, STATE_CPU, i, "cpu", r.number);
    }
}

static void dump_futexes(const struct fixture *f)
{
    enum { MOST = 256 };
    struct state_interval list[MOST];
    const struct kernel_thread *threads;
    kernel_tracker_threads(f->tracker, &threads);
    for (size_t row = 0; row < state_rows(f->store, STATE_FUTEX_USER); row++) {
        struct state_row r;
        state_row(f->store, STATE_FUTEX_USER, row, &r);
        int64_t at = f->begin;
        for (size_t n = MOST; n == MOST; at = list[n - 1].end) {
            n = state_range(f->store, STATE_FUTEX_USER, row, at, f->end, list, MOST);
            for (size_t i = 0; i < n; i++)
                if (list[i].value != STATE_NONE)
                    printf("futex %s %d %lld %lld %s %lld %d\n", r.name, threads[r.thread].tid,
                        (long long)list[i].begin, (long long)list[i].end, list[i].name ? list[i].name : "-",
                        (long long)list[i].amount, list[i].cut);
        }
    }
}

/* Dumps which CPU was in an interrupt or softirq, and when: of all CPUs the one that began last. */
static void dump_lines(const struct fixture *f, int kind, const char *title)
{
    enum { MOST = 256 };
    struct state_interval list[MOST];
    for (size_t row = 0; row < state_rows(f->store, kind); row++) {
        struct state_row r;
        state_row(f->store, kind, row, &r);
        int64_t at = f->begin;
        for (size_t n = MOST; n == MOST; at = list[n - 1].end) {
            n = state_range(f->store, kind, row, at, f->end, list, MOST);
            for (size_t i = 0; i < n; i++)
                if (list[i].value != STATE_NONE)
                    printf("%s %d %lld %lld %s %d %s\n", title, r.number, (long long)list[i].begin,
                        (long long)list[i].end, values[list[i].value], list[i].cpu, r.name);
        }
    }
}

static void dump_rest(const struct fixture *f)
{
    static const char *const kinds[] = {"syscall", "sched", "irq", "softirq", "lock", "disk-wait", "disk-driver"};
    static const char *const counters[] = {"cpu", "read", "write", "sent", "received", "memory", "perf", "frequency",
        "io-read", "io-written", "kvm-exits", "files", "requests"};
    _Static_assert(sizeof kinds / sizeof *kinds == STATE_LATENCY_KINDS, "a name per kind");
    _Static_assert(sizeof counters / sizeof *counters == STATE_COUNTER_KINDS, "a name per kind");
    for (int k = 0; k < STATE_LATENCY_KINDS; k++)
        for (size_t i = 0; i < state_latencies(f->store, k); i++) {
            struct state_latency l;
            state_latency(f->store, k, i, &l);
            const struct kernel_thread *threads;
            kernel_tracker_threads(f->tracker, &threads);
            printf("latency %s %s %d %lld %lld %lld\n", kinds[k], l.name ? l.name : "-",
                l.thread >= 0 ? threads[l.thread].tid : -1, (long long)l.begin, (long long)l.end, (long long)l.ret);
        }
    for (int k = STATE_DISK_READ; k < STATE_COUNTER_KINDS; k++)
        for (size_t i = 0; i < state_counters(f->store, k); i++) {
            struct state_counter c;
            int64_t value;
            state_counter(f->store, k, i, &c);
            state_counter_values(f->store, k, i, &f->end, 1, &value);
            printf("counter %s %s %lld\n", counters[k], c.name, (long long)value);
        }
    for (size_t i = 0; i < state_losses(f->store); i++) {
        struct state_loss l;
        state_loss(f->store, i, &l);
        printf("loss %d %lld %lld %llu\n", l.cpu, (long long)l.begin, (long long)l.end, (unsigned long long)l.count);
    }
    printf("events %llu\n", (unsigned long long)state_events(f->store));
}

int main(int argc, char **argv)
{
    struct err e = {0};
    struct fixture f;
    char path[64];
    snprintf(path, sizeof path, "/tmp/weft-states-%d", getpid());
    int rc = argc >= 2 ? fixture_open(&f, argv[1], path, false, &e) : err_set(&e, ERR_ARG, "dump TRACE [intervals]");
    unlink(path);
    if (rc) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    printf("span %lld %lld\n", (long long)f.begin, (long long)f.end);
    dump_threads(&f);
    dump_cpus(&f);
    dump_rest(&f);
    dump_futexes(&f);
    dump_lines(&f, STATE_IRQ_LINE, "irq-line");
    dump_lines(&f, STATE_SOFTIRQ_VECTOR, "vector");
    if (argc > 2) {
        dump_intervals(&f, STATE_THREAD, "state");
        dump_intervals(&f, STATE_CPU_THREAD, "occupant");
    }
    fixture_close(&f);
    return 0;
}
