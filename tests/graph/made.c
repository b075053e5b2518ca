/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <setjmp.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/text.h"
#include "made.h"

struct build {
    struct graph_builder *builder;
    made_hook *hook;
    void *arg;
};

static void start(void *arg, struct kernel_tracker *t)
{
    ((struct build *)arg)->builder = graph_builder_new(t);
}

static void on_record(void *arg, const struct kernel_record *r)
{
    struct build *b = arg;
    graph_builder_add(b->builder, r, b->hook ? b->hook(b->arg, r) : 0);
}

struct graph *made_graph_of(const struct ctf_trace *trace, made_hook *hook, void *arg)
{
    struct build b = {.hook = hook, .arg = arg};
    struct kernel_binding *binding;
    int64_t end;
    struct kernel_tracker *t = maker_run_with(trace, start, on_record, &b, &binding, &end);
    char path[] = "/tmp/weft-graph-XXXXXX";
    close(mkstemp(path));
    struct err e = {0};
    struct graph *g = NULL;
    if (graph_builder_write(b.builder, end, store_file(path), 1, &e) || graph_open(path, &g, &e))
        fail_msg("%s", e.text);
    unlink(path);
    graph_builder_free(b.builder);
    kernel_tracker_free(t);
    kernel_binding_free(binding);
    return g;
}

struct graph *made_graph(const struct maker *m, size_t skip, bool lose_skipped, made_hook *hook, void *arg)
{
    struct maker_trace t;
    maker_open(m, skip, lose_skipped, &t);
    struct graph *g = made_graph_of(t.trace, hook, arg);
    maker_close(&t);
    return g;
}

int32_t made_row(const struct graph *g, int tid, int life)
{
    for (size_t r = 0; r < graph_rows(g); r++) {
        struct graph_row row;
        graph_row(g, (int32_t)r, &row);
        if (row.tid == tid && (tid ? life-- == 0 : row.idle_cpu == life))
            return (int32_t)r;
    }
    return -1;
}

const char *made_text(const struct graph *g, int32_t row, char *buf, size_t n)
{
    struct text t = {.fd = -1};
    struct graph_row who;
    for (uint64_t i = graph_first(g, row); i != GRAPH_NO_INTERVAL; i = graph_next(g, row, i)) {
        struct graph_interval iv;
        struct graph_cause c;
        graph_interval(g, row, i, &iv);
        graph_interval_cause(g, row, i, &c);
        text_printf(&t, "%lld %s", (long long)iv.begin, graph_state_name(iv.state));
        if (iv.detail)
            text_printf(&t, "(%s)", iv.detail);
        graph_row(g, c.row, &who);
        if (c.kind == GRAPH_CAUSE_WAKEUP)
            text_printf(&t, "<%d@%lld", who.tid, (long long)c.ts);
        else if (c.kind == GRAPH_CAUSE_FORK)
            text_printf(&t, "<fork %d", who.tid);
        else if (c.kind == GRAPH_CAUSE_PACKET)
            text_printf(&t, "<packet %llu", (unsigned long long)c.wake);
        else if (c.kind == GRAPH_CAUSE_TERMINAL)
            text_printf(&t, "<terminal");
        else if (c.kind == GRAPH_CAUSE_LOST)
            text_printf(&t, "<lost");
        text_printf(&t, " ");
    }
    graph_row(g, row, &who);
    text_printf(&t, "%lld", (long long)who.end);
    snprintf(buf, n, "%s", text_cstr(&t));
    text_fini(&t);
    return buf;
}

static void check_row(const struct graph *g, int32_t row, bool occupants)
{
    struct graph_row r;
    graph_row(g, row, &r);
    assert_true(r.begin <= r.end);
    int64_t at = r.begin, sums[GRAPH_STATE_COUNT] = {0}, totals[GRAPH_STATE_COUNT];
    uint64_t last = GRAPH_NO_INTERVAL;
    for (uint64_t i = graph_first(g, row); i != GRAPH_NO_INTERVAL; last = i, i = graph_next(g, row, i)) {
        struct graph_interval iv;
        assert_true(graph_previous(g, row, i) == last);
        graph_interval(g, row, i, &iv);
        assert_int_equal(iv.begin, at);
        assert_true(iv.begin < iv.end);
        struct graph_interval bare, found;
        graph_interval_bare(g, row, i, &bare);
        assert_true(graph_find(g, row, iv.begin + 1) == i && graph_find(g, row, iv.end) == i);
        assert_true(graph_find_bare(g, row, iv.end, &found) == i);
        assert_true(found.begin == iv.begin && found.end == iv.end && found.state == iv.state &&
            found.cpu == bare.cpu && found.detail == bare.detail);
        if (iv.state == GRAPH_RUNNING && occupants) {
            assert_true(iv.cpu >= 0);
            assert_int_equal(graph_cpu_occupant(g, (uint32_t)iv.cpu, iv.begin), row);
            assert_int_equal(graph_cpu_occupant(g, (uint32_t)iv.cpu, iv.end - 1), row);
        }
        sums[iv.state] += iv.end - iv.begin;
        at = iv.end;
    }
    assert_int_equal(at, r.end);
    assert_true(graph_last(g, row) == last);
    assert_true(graph_find(g, row, r.begin) == GRAPH_NO_INTERVAL);
    assert_true(graph_find(g, row, r.end + 1) == GRAPH_NO_INTERVAL);
    graph_row_totals(g, row, INT64_MIN, INT64_MAX, totals);
    for (int s = 0; s < GRAPH_STATE_COUNT; s++)
        assert_int_equal(totals[s], sums[s]);
    int64_t from = r.begin + (r.end - r.begin) / 3, to = r.end - (r.end - r.begin) / 4, all = 0;
    graph_row_totals(g, row, from, to, totals);
    for (int s = 0; s < GRAPH_STATE_COUNT; s++)
        all += totals[s];
    assert_int_equal(all, to - from);
}

void made_check(const struct graph *g)
{
    for (size_t r = 0; r < graph_rows(g); r++)
        check_row(g, (int32_t)r, true);
}

void made_check_cover(const struct graph *g)
{
    for (size_t r = 0; r < graph_rows(g); r++)
        check_row(g, (int32_t)r, false);
}

struct graph *made_whole(struct maker *m)
{
    struct graph *g = made_graph(m, SIZE_MAX, false, NULL, NULL);
    made_check(g);
    maker_free(m);
    return g;
}

void made_expect(const struct graph *g, int tid, int life, const char *want)
{
    char got[4096];
    int32_t row = made_row(g, tid, life);
    if (row < 0)
        fail_msg("thread %d has no life %d", tid, life);
    made_text(g, row, got, sizeof got);
    if (strcmp(got, want))
        fail_msg("thread %d life %d\n is: %s\nnot: %s", tid, life, got, want);
}
