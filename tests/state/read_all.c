/* SPDX-License-Identifier: MIT */
#include "read_all.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { TIMES = 64, MOST = 256 };

static void expect(bool holds)
{
    if (!holds)
        abort();
}

/* Reads the name to its end. */
static void expect_name(const char *name)
{
    expect(!name || strlen(name) < SIZE_MAX);
}

static bool is_thread(const struct state_store *s, int32_t thread)
{
    return thread >= -1 && thread < (int64_t)state_rows(s, STATE_THREAD);
}

static void expect_interval(const struct state_store *s, const struct state_interval *v, int64_t t)
{
    int64_t begin, end;
    state_span(s, &begin, &end);
    expect(v->begin <= t && t < v->end && v->begin >= begin && v->end <= end);
    expect(is_thread(s, v->thread) && v->value < STATE_VALUES);
    expect_name(v->name);
}

/* Returns the kind whose rows also have data of this kind's rows; -1: none. */
static int parts_of(int kind)
{
    return kind == STATE_CPU           ? STATE_THREAD
        : kind == STATE_IRQ_LINE       ? STATE_CPU_IRQ
        : kind == STATE_SOFTIRQ_VECTOR ? STATE_CPU_SOFTIRQ
                                       : -1;
}

/* Reads from each interval's end, however wrong the entries are: it must end after at most as many steps as there are
 * entries, at most 32 for each that the row claims. */
static void read_range(const struct state_store *s, int kind, size_t row)
{
    static struct state_interval list[MOST];
    int64_t begin, end;
    size_t most = 8, n, steps = 0;
    state_span(s, &begin, &end);
    for (size_t i = 0, parts = parts_of(kind) < 0 ? 0 : state_rows(s, parts_of(kind)); i < parts + 1; i++) {
        struct state_row r;
        state_row(s, i ? parts_of(kind) : kind, i ? i - 1 : row, &r);
        most += 32 * r.intervals + 4;
    }
    for (int64_t t = begin; (n = state_range(s, kind, row, t, end, list, MOST)) > 0; t = list[n - 1].end) {
        for (size_t i = 0; i < n; i++)
            expect_interval(s, &list[i], i ? list[i - 1].end : t);
        expect((steps += n) <= most * 2);
    }
}

static void read_row(const struct state_store *s, int kind, size_t row, const int64_t *times)
{
    struct state_interval list[TIMES];
    struct state_row r;
    state_row(s, kind, row, &r);
    expect_name(r.name);
    expect(r.name && r.begin <= r.end && state_find_row(s, kind, r.number) == (int64_t)row);
    size_t n = state_sample(s, kind, row, times, TIMES, list);
    for (size_t i = 1; i < n; i++)
        expect(list[i].begin >= list[i - 1].end);
    read_range(s, kind, row);
    if (kind == STATE_THREAD)
        state_thread_cpu(s, row, times[TIMES / 2], -1);
}

static void read_counters(const struct state_store *s, int kind, const int64_t *times)
{
    int64_t values[TIMES];
    for (size_t i = 0; i < state_counters(s, kind); i++) {
        struct state_counter c;
        state_counter(s, kind, i, &c);
        expect_name(c.name);
        expect(state_find_counter(s, kind, c.number) == (int64_t)i);
        state_counter_values(s, kind, i, times, TIMES, values);
    }
}

static void read_latencies(const struct state_store *s, int kind, const int64_t *times)
{
    uint64_t counts[TIMES];
    size_t n = state_latencies(s, kind), names = state_latency_names(s, kind);
    struct figures *figures = mem_alloc((names + 1) * sizeof *figures);
    expect(state_latency_find(s, kind, times[TIMES / 2]) <= n);
    state_latency_figures(s, kind, n / 7, n, figures);
    state_latency_figures(s, kind, 0, n / 2, figures);
    memset(counts, 0, sizeof counts);
    state_latency_histogram(s, kind, 0, n, 3, TIMES, counts);
    for (size_t i = 0; i < names; i++)
        expect_name(state_latency_name(s, kind, i));
    for (size_t i = 0; i < n; i += 1 + n / 5000) {
        struct state_latency l;
        state_latency(s, kind, i, &l);
        expect(l.begin <= l.end && is_thread(s, l.thread));
        expect_name(l.name);
    }
    free(figures);
}

void read_all_states(const struct state_store *s)
{
    int64_t begin, end, times[TIMES];
    uint64_t counts[TIMES];
    bool exact;
    state_span(s, &begin, &end);
    for (int i = 0; i < TIMES; i++)
        times[i] = (int64_t)((uint64_t)begin + ((uint64_t)end - (uint64_t)begin) / (TIMES - 1) * (uint64_t)i);
    for (int kind = 0; kind < STATE_KINDS; kind++)
        for (size_t i = 0; i < state_rows(s, kind); i++)
            read_row(s, kind, i, times);
    for (int kind = 0; kind < STATE_COUNTER_KINDS; kind++) {
        read_counters(s, kind, times);
        for (size_t i = 0; kind != STATE_CPU_TIME && i < state_counters(s, kind); i++) {
            read_row(s, STATE_COUNTER_ROWS + kind, i, times);
            expect(state_counter_least(s, kind, i) <= 0);
        }
    }
    for (int kind = 0; kind < STATE_LATENCY_KINDS; kind++)
        read_latencies(s, kind, times);
    state_event_counts(s, times, TIMES, counts, &exact);
    for (int i = 0; i < TIMES; i++)
        expect(counts[i] <= state_events(s));
    for (size_t i = 0; i < state_files(s); i++) {
        struct state_file f;
        state_file(s, i, &f);
        expect(f.thread >= 0 && is_thread(s, f.thread) && f.read >= 0 && f.written >= 0);
        expect_name(f.name);
    }
    for (size_t i = 0; i < state_losses(s); i++) {
        struct state_loss l;
        state_loss(s, i, &l);
        expect(l.begin <= l.end && l.cpu >= -1);
    }
}
