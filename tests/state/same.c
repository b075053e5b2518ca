/* SPDX-License-Identifier: MIT */
#include "same.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"

enum { TIMES = 48, TABLE_TIMES = 64, QUERIES = 12, BUCKETS = 16 };

uint64_t runs_dice(uint64_t *state, uint64_t below)
{
    *state = *state * 6364136223846793005 + 1442695040888963407;
    return (*state >> 33) % below;
}

/* ---- rows and counters ---- */

bool same_name(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static bool same_interval(const struct state_interval *a, const struct state_interval *b)
{
    return a->begin == b->begin && a->end == b->end && a->value == b->value && a->thread == b->thread &&
        a->cpu == b->cpu && same_name(a->name, b->name) && a->amount == b->amount && a->cut == b->cut;
}

static void same_intervals(const struct pair *p, const char *what, int kind, size_t row, const struct state_interval *a,
    size_t n, const struct state_interval *b, size_t m)
{
    for (size_t i = 0; i < n && i < m; i++)
        if (!same_interval(&a[i], &b[i]))
            fail_msg("%s %s kind %d row %zu, %zu: [%lld, %lld) %d %s thread %d cpu %d amount %lld cut %d, not [%lld, "
                     "%lld) %d %s thread %d cpu %d amount %lld cut %d",
                p->where, what, kind, row, i, (long long)a[i].begin, (long long)a[i].end, a[i].value, a[i].name,
                a[i].thread, a[i].cpu, (long long)a[i].amount, a[i].cut, (long long)b[i].begin, (long long)b[i].end,
                b[i].value, b[i].name, b[i].thread, b[i].cpu, (long long)b[i].amount, b[i].cut);
    if (n != m)
        fail_msg("%s %s kind %d row %zu: %zu intervals, not %zu", p->where, what, kind, row, n, m);
}

static int by_time(const void *a, const void *b)
{
    return order_of(*(const int64_t *)a, *(const int64_t *)b);
}

/* Ascending; all over the span and beyond it, or close together. */
static size_t some_times(const struct pair *p, int64_t *times)
{
    size_t n = 1 + runs_dice(p->dice, TIMES);
    uint64_t span = (uint64_t)(p->end - p->begin) + 1, width = runs_dice(p->dice, 2) ? span : span / 50 + 1;
    int64_t from = p->begin + (int64_t)runs_dice(p->dice, span - width + 1);
    for (size_t i = 0; i < n; i++)
        times[i] = runs_dice(p->dice, 20) ? from + (int64_t)runs_dice(p->dice, width)
            : runs_dice(p->dice, 2)       ? p->end + (int64_t)runs_dice(p->dice, 3) - 1
                                          : p->begin + (int64_t)runs_dice(p->dice, 3) - 1;
    qsort(times, n, sizeof *times, by_time);
    return n;
}

static void same_states(const struct pair *p, int kind, size_t row)
{
    enum { MANY = 256 };
    static struct state_interval a[MANY], b[MANY];
    int64_t times[TIMES];
    for (int64_t t = p->begin;;) {
        size_t most = 1 + runs_dice(p->dice, MANY), n = state_range(p->a, kind, row, t, p->end, a, most),
               m = state_range(p->b, kind, row, t, p->end, b, most);
        same_intervals(p, "range", kind, row, a, n, b, m);
        if (!n)
            break;
        t = a[n - 1].end;
    }
    for (int i = 0; i < 3; i++) {
        size_t n = some_times(p, times), found = state_sample(p->a, kind, row, times, n, a);
        same_intervals(p, "sample", kind, row, a, found, b, state_sample(p->b, kind, row, times, n, b));
        assert_int_equal(state_at(p->a, kind, row, *times, a), state_at(p->b, kind, row, *times, b));
        if (*times >= p->begin && *times <= p->end)
            same_intervals(p, "at", kind, row, a, 1, b, 1);
    }
}

static void same_rows(const struct pair *p, int kind)
{
    struct state_row x, y;
    size_t n = state_rows(p->a, kind);
    if (n != state_rows(p->b, kind))
        fail_msg("%s kind %d: %zu rows, not %zu", p->where, kind, n, state_rows(p->b, kind));
    for (size_t i = 0; i < n; i++) {
        state_row(p->a, kind, i, &x);
        state_row(p->b, kind, i, &y);
        if (x.kind != y.kind || x.number != y.number || !same_name(x.name, y.name) || x.intervals != y.intervals ||
            x.begin != y.begin || x.end != y.end || x.thread != y.thread || x.waits != y.waits)
            fail_msg("%s kind %d row %zu: %d %d %s %zu [%lld, %lld] thread %d %d, not %d %d %s %zu [%lld, %lld] thread "
                     "%d %d",
                p->where, kind, i, x.kind, x.number, x.name, x.intervals, (long long)x.begin, (long long)x.end,
                x.thread, x.waits, y.kind, y.number, y.name, y.intervals, (long long)y.begin, (long long)y.end,
                y.thread, y.waits);
        assert_int_equal(state_find_row(p->b, kind, x.number), i);
        assert_int_equal(state_find_row(p->b, kind, -7), state_find_row(p->a, kind, -7));
        same_states(p, kind, i);
    }
}

static void same_thread_cpus(const struct pair *p)
{
    for (size_t row = 0; row < state_rows(p->a, STATE_THREAD); row++) {
        int64_t t = p->begin + (int64_t)runs_dice(p->dice, (uint64_t)(p->end - p->begin) + 1);
        int32_t near = (int32_t)runs_dice(p->dice, 4) - 1;
        assert_int_equal(state_thread_cpu(p->a, row, t, near), state_thread_cpu(p->b, row, t, near));
    }
}

static void same_counters(const struct pair *p, int kind)
{
    int64_t times[TIMES], x[TIMES], y[TIMES];
    struct state_counter a, b;
    assert_int_equal(state_counters(p->a, kind), state_counters(p->b, kind));
    for (size_t i = 0; i < state_counters(p->a, kind); i++) {
        state_counter(p->a, kind, i, &a);
        state_counter(p->b, kind, i, &b);
        assert_int_equal(a.number, b.number);
        assert_string_equal(a.name, b.name);
        assert_int_equal(state_find_counter(p->b, kind, a.number), i);
        assert_int_equal(state_counter_least(p->a, kind, i), state_counter_least(p->b, kind, i));
        for (int k = 0; k < 3; k++) {
            size_t n = some_times(p, times);
            state_counter_values(p->a, kind, i, times, n, x);
            state_counter_values(p->b, kind, i, times, n, y);
            for (size_t j = 0; j < n; j++)
                if (x[j] != y[j])
                    fail_msg("%s counter %d number %d at %lld: %lld, not %lld", p->where, kind, a.number,
                        (long long)times[j], (long long)x[j], (long long)y[j]);
        }
    }
}

static void same_files(const struct pair *p)
{
    struct state_file x, y;
    assert_int_equal(state_files(p->a), state_files(p->b));
    for (size_t i = 0; i < state_files(p->a); i++) {
        state_file(p->a, i, &x);
        state_file(p->b, i, &y);
        if (strcmp(x.name, y.name) || x.thread != y.thread || x.read != y.read || x.written != y.written)
            fail_msg("%s file %zu: %s of %d: %lld, %lld, not %s of %d: %lld, %lld", p->where, i, x.name, x.thread,
                (long long)x.read, (long long)x.written, y.name, y.thread, (long long)y.read, (long long)y.written);
    }
}

void same_rows_all(struct pair *p)
{
    int64_t begin, end;
    state_span(p->a, &p->begin, &p->end);
    state_span(p->b, &begin, &end);
    if (begin != p->begin || end != p->end)
        fail_msg("%s: [%lld, %lld], not [%lld, %lld]", p->where, (long long)p->begin, (long long)p->end,
            (long long)begin, (long long)end);
    for (int kind = 0; kind < STATE_KINDS; kind++)
        same_rows(p, kind);
    for (int kind = STATE_DISK_READ; kind < STATE_COUNTER_KINDS; kind++)
        same_rows(p, STATE_COUNTER_ROWS + kind);
    for (int kind = STATE_CPU_TIME; kind < STATE_COUNTER_KINDS; kind++)
        same_counters(p, kind);
    same_files(p);
    same_thread_cpus(p);
}

/* ---- latencies, events, losses ---- */

static bool same_latency(const struct state_latency *x, const struct state_latency *y)
{
    return x->begin == y->begin && x->end == y->end && x->ret == y->ret && x->thread == y->thread && x->cpu == y->cpu &&
        !x->name == !y->name && (!x->name || !strcmp(x->name, y->name));
}

static void same_latencies(const struct pair *p, int kind)
{
    size_t n = state_latencies(p->a, kind);
    if (n != state_latencies(p->b, kind))
        fail_msg("%s latency kind %d: %zu, not %zu", p->where, kind, n, state_latencies(p->b, kind));
    for (size_t i = 0; i < n; i++) {
        struct state_latency x, y;
        state_latency(p->a, kind, i, &x);
        state_latency(p->b, kind, i, &y);
        if (!same_latency(&x, &y))
            fail_msg(
                "%s latency kind %d number %zu of %zu: [%lld, %lld) %s thread %d cpu %d ret %lld, not [%lld, %lld) "
                "%s thread %d cpu %d ret %lld",
                p->where, kind, i, n, (long long)x.begin, (long long)x.end, x.name, x.thread, x.cpu, (long long)x.ret,
                (long long)y.begin, (long long)y.end, y.name, y.thread, y.cpu, (long long)y.ret);
        assert_int_equal(state_latency_find(p->a, kind, x.begin), state_latency_find(p->b, kind, x.begin));
    }
}

static void same_names(const struct pair *p, int kind)
{
    size_t n = state_latency_names(p->a, kind);
    if (n != state_latency_names(p->b, kind))
        fail_msg("%s latency kind %d: %zu names, not %zu", p->where, kind, n, state_latency_names(p->b, kind));
    for (size_t i = 0; i < n; i++)
        if (strcmp(state_latency_name(p->a, kind, i), state_latency_name(p->b, kind, i)) != 0)
            fail_msg("%s latency kind %d name %zu: %s, not %s", p->where, kind, i, state_latency_name(p->a, kind, i),
                state_latency_name(p->b, kind, i));
}

static void same_range(const struct pair *p, int kind, size_t first, size_t end)
{
    size_t n = state_latency_names(p->a, kind);
    struct figures *x = mem_zalloc((n + 1) * sizeof *x), *y = mem_zalloc((n + 1) * sizeof *y);
    uint64_t counts[2][BUCKETS] = {{0}};
    int64_t width = 1 + (int64_t)(runs_dice(p->dice, 1 << 20) >> runs_dice(p->dice, 20));
    state_latency_figures(p->a, kind, first, end, x);
    state_latency_figures(p->b, kind, first, end, y);
    for (size_t i = 0; i < n; i++)
        if (memcmp(&x[i], &y[i], sizeof *x) != 0)
            fail_msg("%s latency kind %d, %zu to %zu, %s: %llu %lld %a least at %lld, not %llu %lld %a %lld", p->where,
                kind, first, end, state_latency_name(p->a, kind, i), (unsigned long long)x[i].n, (long long)x[i].sum,
                x[i].spread, (long long)x[i].least_begin, (unsigned long long)y[i].n, (long long)y[i].sum, y[i].spread,
                (long long)y[i].least_begin);
    state_latency_histogram(p->a, kind, first, end, width, BUCKETS, counts[0]);
    state_latency_histogram(p->b, kind, first, end, width, BUCKETS, counts[1]);
    assert_memory_equal(counts[0], counts[1], sizeof counts[0]);
    free(x);
    free(y);
}

static int64_t some_time(const struct pair *p)
{
    return p->begin - 2 + (int64_t)runs_dice(p->dice, (uint64_t)(p->end - p->begin) + 5);
}

static void same_ranges(const struct pair *p, int kind)
{
    size_t n = state_latencies(p->a, kind);
    same_range(p, kind, 0, n);
    for (int i = 0; i < QUERIES; i++) {
        size_t length = runs_dice(p->dice, n + 1) >> runs_dice(p->dice, 8), first = runs_dice(p->dice, n - length + 1);
        int64_t t = some_time(p);
        same_range(p, kind, first, first + length);
        assert_int_equal(state_latency_find(p->a, kind, t), state_latency_find(p->b, kind, t));
    }
}

static void same_events(const struct pair *p)
{
    assert_int_equal(state_events(p->a), state_events(p->b));
    for (int k = 0; k < 8; k++) {
        int64_t times[TABLE_TIMES], from = some_time(p);
        uint64_t x[TABLE_TIMES], y[TABLE_TIMES];
        bool exact[2];
        for (size_t i = 0; i < TABLE_TIMES; i++)
            times[i] = k % 2 ? some_time(p) : from + (int64_t)runs_dice(p->dice, 1000);
        qsort(times, TABLE_TIMES, sizeof *times, by_time);
        state_event_counts(p->a, times, TABLE_TIMES, x, &exact[0]);
        state_event_counts(p->b, times, TABLE_TIMES, y, &exact[1]);
        assert_int_equal(exact[0], exact[1]);
        for (size_t i = 0; i < TABLE_TIMES; i++)
            if (x[i] != y[i])
                fail_msg("%s events before %lld: %llu, not %llu", p->where, (long long)times[i],
                    (unsigned long long)x[i], (unsigned long long)y[i]);
    }
}

static void same_losses(const struct pair *p)
{
    size_t n = state_losses(p->a);
    assert_int_equal(n, state_losses(p->b));
    for (size_t i = 0; i < n; i++) {
        struct state_loss x, y;
        state_loss(p->a, i, &x);
        state_loss(p->b, i, &y);
        assert_true(x.begin == y.begin && x.end == y.end && x.count == y.count && x.cpu == y.cpu);
    }
}

void same_tables(struct pair *p)
{
    state_span(p->a, &p->begin, &p->end);
    for (int kind = 0; kind < STATE_LATENCY_KINDS; kind++) {
        same_latencies(p, kind);
        same_names(p, kind);
        same_ranges(p, kind);
    }
    same_events(p);
    same_losses(p);
}
