/* SPDX-License-Identifier: MIT */
/* The store as a hostile file: its sections are changed at random and given a valid checksum again; opening must
 * refuse, or reading must stay inside. What the check lets through is a graph in every respect. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "../base/test.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/store.h"
#include "graph/layout.h"
#include "made.h"

static const char *const names[] = {"head", "rows", "totals", "blocks", "begins", "kinds", "wakers16", "packets",
    "details", "where8", "cpu-blocks", "cpu-begins", "occupants16", "detail-names", "late", "cpus", "losses",
    "containers", "string-at", "text", "stack-totals", "stack-rows", "stack-samples", "stacks", "stack-frames"};
static const size_t sizes[] = {sizeof(struct graph_disk_head), sizeof(struct graph_disk_row), 8,
    sizeof(struct graph_disk_block), 4, 1, 2, 4, 2, 1, sizeof(struct graph_disk_block), 4, 2, 4,
    sizeof(struct graph_disk_early_wake), sizeof(struct graph_disk_cpu), sizeof(struct graph_loss),
    sizeof(struct graph_disk_container), 4, 1, sizeof(struct graph_disk_sampled), 4, sizeof(struct graph_disk_sample),
    sizeof(struct graph_disk_stack), 8};
enum { SECTIONS = sizeof names / sizeof *names };

static struct maker *story(void)
{
    static const uint64_t addresses[] = {1, 2, 3, 4, 5, 6};
    struct maker *m = maker_new(2, M_STACKS);
    maker_switch(m, 0, 100, 0, 0, 1);
    maker_switch(m, 1, 100, 0, 0, 2);
    for (int i = 0; i < 150; i++) { /* several blocks, and spans beyond 2^32 ns */
        int64_t t = 1000 + i * INT64_C(100000000);
        maker_stacks(m, addresses + i % 4, (size_t)i % 3, addresses, (size_t)i % 5);
        maker_switch(m, 0, t, 1, 1, 0);
        maker_wake(m, 1, t + 10, M_WAKING, 1, 0);
        maker_switch(m, 0, t + 20, 0, 0, 1);
        if (i % 7 == 0) {
            maker_wake(m, 1, t + 25, M_WAKING, 1, 0);
            maker_switch(m, 0, t + 30, 1, 1, 3);
            maker_wake(m, 0, t + 35, M_WAKEUP, 1, 0);
            maker_switch(m, 0, t + 40, 3, 0, 1);
        }
    }
    int64_t end = INT64_C(16000000000);
    for (int i = 0; i < 4; i++)
        maker_fork_in(m, 0, end + i, 1, 50 + i, 50 + i, 1, 500 + (uint32_t)i);
    return m;
}

static void write_story(const char *path)
{
    struct maker *m = story();
    struct maker_trace t;
    maker_open(m, SIZE_MAX, false, &t);
    struct err e = {0};
    struct graph *g = made_graph_of(t.trace, NULL, NULL);
    made_check(g);
    /* copy of the store, from the open one's sections */
    struct store_writer *w = store_create(path, "graph", GRAPH_VERSION, 7, SECTIONS);
    for (int i = 0; i < SECTIONS; i++) {
        size_t n;
        const void *items = store_section(g->chunks->store, names[i], sizes[i], &n);
        store_add(w, names[i], items, sizes[i], n);
    }
    if (store_commit(w, &e))
        fail_msg("%s", e.text);
    graph_close(g);
    maker_close(&t);
    maker_free(m);
}

/* Reads everything; returns a number that depends on all of it. sound: the check found nothing wrong with the file. */
static size_t read_all(const struct graph *g, bool sound)
{
    size_t sum = 0;
    const struct graph_container *containers;
    for (size_t r = 0; r < graph_rows(g) && r < 64; r++) {
        struct graph_row row;
        graph_row(g, (int32_t)r, &row);
        sum += strlen(row.name) + (size_t)graph_container_is(g, row.container, "t1 50?");
        assert_true(row.container >= -1 && row.container < (int32_t)graph_containers(g, &containers));
        int64_t at = row.begin;
        for (uint64_t i = graph_first(g, (int32_t)r); i != GRAPH_NO_INTERVAL; i = graph_next(g, (int32_t)r, i)) {
            struct graph_interval iv;
            struct graph_cause c;
            graph_interval(g, (int32_t)r, i, &iv);
            graph_interval_cause(g, (int32_t)r, i, &c);
            assert_true(row.begin <= iv.begin && iv.begin <= iv.end && iv.end <= row.end);
            if (sound)
                assert_true(iv.begin == at && iv.begin < iv.end && graph_find(g, (int32_t)r, iv.end) == i);
            struct graph_stack stack;
            if (graph_wait_stack(g, (int32_t)r, iv.begin, &stack) ||
                graph_running_stack(g, (int32_t)r, iv.begin, iv.end, &stack))
                for (size_t k = 0; k < stack.n_user; k++)
                    sum += (size_t)stack.user[k];
            sum += iv.detail ? strlen(iv.detail) : 0;
            at = iv.end;
        }
        int64_t totals[GRAPH_STATE_COUNT], total = 0;
        graph_row_totals(g, (int32_t)r, row.begin, row.end, totals);
        for (int s = 0; s < GRAPH_STATE_COUNT; s++)
            total += totals[s];
        assert_true(total <= row.end - row.begin && (!sound || (at == row.end && total == row.end - row.begin)));
        sum += (size_t)totals[GRAPH_RUNNING];
    }
    for (uint32_t c = 0; c < graph_cpus(g) && c < 64; c++)
        sum += (size_t)graph_cpu_occupant(g, c, g->begin + (g->end - g->begin) / 2);
    return sum;
}

static uint64_t random_state = 88172645463325252;
static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

static void damage(uint8_t *p, size_t n, size_t item)
{
    static const uint64_t values[] = {0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff,
        0x7fffffffffffffff, 0x8000000000000000, ~UINT64_C(0)};
    size_t width = item >= 8 && next_random() % 2 ? 8 : item >= 4 ? 4 : item, at = next_random() % (n / width) * width;
    uint64_t v;
    memcpy(&v, p + at, width);
    v = next_random() % 3 == 0 ? values[next_random() % (sizeof values / sizeof *values)]
        : next_random() % 2    ? v + next_random() % 5 - 2
                               : v ^ (UINT64_C(1) << next_random() % (8 * width));
    memcpy(p + at, &v, width);
}

static void damaged(void **state)
{
    char path[] = "/tmp/weft-store-XXXXXX", bad[64];
    close(mkstemp(path));
    snprintf(bad, sizeof bad, "%s.bad", path);
    write_story(path);
    struct store *s;
    struct err e = {0};
    if (store_open(path, "graph", GRAPH_VERSION, NULL, &s, &e))
        fail_msg("%s", e.text);
    int refused = 0, unsound = 0, rounds = 4000;
    size_t sums = 0;
    for (int round = 0; round < rounds; round++) {
        struct store_writer *w = store_create(bad, "graph", GRAPH_VERSION, 7, SECTIONS);
        int victim = (int)(next_random() % SECTIONS);
        void *copy = NULL;
        for (int i = 0; i < SECTIONS; i++) {
            size_t n;
            const void *items = store_section(s, names[i], sizes[i], &n);
            if (i == victim && n) {
                copy = mem_alloc(n * sizes[i]);
                memcpy(copy, items, n * sizes[i]);
                if (next_random() % 8 == 0)
                    n -= next_random() % n; /* cut */
                else
                    damage(copy, n * sizes[i], sizes[i]);
                items = copy;
            }
            store_add(w, names[i], items, sizes[i], n);
        }
        if (store_commit(w, &e))
            fail_msg("%s", e.text);
        free(copy);
        struct graph *g;
        struct err why = {0};
        int rc = graph_open(bad, &g, &why), check = graph_check(bad, NULL, &why);
        if (rc) {
            assert_int_equal(rc, ERR_FORMAT);
            assert_int_equal(check, ERR_FORMAT);
            refused++;
        } else {
            unsound += check != 0;
            sums += read_all(g, !check);
            graph_close(g);
        }
    }
    struct graph *sound;
    const struct graph_container *of;
    if (graph_open(path, &sound, &e))
        fail_msg("%s", e.text);
    assert_int_equal(graph_containers(sound, &of), 4);
    graph_close(sound);
    assert_true(refused > rounds / 16 && unsound > rounds / 8 && sums > 0);
    store_close(s);
    unlink(path);
    unlink(bad);
}

/* Writes the store again with other rows. */
static void write_rows(const struct store *s, const struct graph_disk_row *rows, const char *path)
{
    struct err e = {0};
    struct store_writer *w = store_create(path, "graph", GRAPH_VERSION, 7, SECTIONS);
    for (int i = 0; i < SECTIONS; i++) {
        size_t n;
        const void *items = store_section(s, names[i], sizes[i], &n);
        store_add(w, names[i], strcmp(names[i], "rows") != 0 ? items : rows, sizes[i], n);
    }
    if (store_commit(w, &e))
        fail_msg("%s", e.text);
}

/* A row that leads outside has no states; the others are as they were. */
static void senseless_row(void **state)
{
    char path[] = "/tmp/weft-store-XXXXXX", bad[64];
    close(mkstemp(path));
    snprintf(bad, sizeof bad, "%s.bad", path);
    write_story(path);
    struct store *s;
    struct graph *g, *of;
    struct err e = {0};
    size_t n;
    if (store_open(path, "graph", GRAPH_VERSION, NULL, &s, &e) || graph_open(path, &of, &e))
        fail_msg("%s", e.text);
    const struct graph_disk_row *sound = store_section(s, "rows", sizeof *sound, &n);
    struct graph_disk_row *rows = mem_alloc(n * sizeof *rows);
    memcpy(rows, sound, n * sizeof *rows);
    for (size_t way = 0; way < 7; way++) {
        struct graph_disk_row was = rows[made_row(of, 1, 0)], *r = &rows[made_row(of, 1, 0)];
        switch (way) {
        case 0: r->first = UINT32_MAX; break;
        case 1: r->n = UINT32_MAX; break;
        case 2: r->first_block = UINT32_MAX; break;
        case 3: r->begin = INT64_MIN; break;
        case 4: r->end = INT64_MAX; break;
        case 5: r->total0 = UINT32_MAX; break;
        case 6: r->idle_cpu = INT32_MAX; break;
        }
        write_rows(s, rows, bad);
        *r = was;
        assert_int_equal(graph_check(bad, NULL, &e), ERR_FORMAT);
        if (graph_open(bad, &g, &e))
            fail_msg("%s", e.text);
        for (int32_t i = 0; i < (int32_t)n; i++) {
            int64_t totals[GRAPH_STATE_COUNT], as_before[GRAPH_STATE_COUNT];
            graph_row_totals(g, i, of->begin, of->end, totals);
            graph_row_totals(of, i, of->begin, of->end, as_before);
            if (i == r - rows)
                assert_true(graph_first(g, i) == GRAPH_NO_INTERVAL && !totals[GRAPH_RUNNING]);
            else
                assert_memory_equal(totals, as_before, sizeof totals);
        }
        graph_close(g);
    }
    free(rows);
    graph_close(of);
    store_close(s);
    unlink(path);
    unlink(bad);
}

static void truncated(void **state)
{
    char path[] = "/tmp/weft-store-XXXXXX";
    close(mkstemp(path));
    write_story(path);
    char *data;
    size_t n;
    struct err e = {0};
    if (file_read(path, 1 << 20, &data, &n, &e))
        fail_msg("%s", e.text);
    for (size_t cut = 0; cut < n; cut += cut < 256 ? 1 : 97) {
        struct graph *g;
        struct err why = {0};
        assert_int_equal(file_write(path, data, cut, &e), 0);
        assert_int_not_equal(graph_open(path, &g, &why), 0);
        assert_non_null(strstr(why.text, path));
    }
    free(data);
    unlink(path);
}

/* Reads an open graph by many threads at once; texts made on first use are shared. */
static void *reader(void *graph)
{
    return read_all(graph, true) ? graph : NULL;
}

static void readers(void **state)
{
    char path[] = "/tmp/weft-store-XXXXXX";
    close(mkstemp(path));
    write_story(path);
    struct graph *g;
    struct err e = {0};
    pthread_t threads[4];
    if (graph_open(path, &g, &e))
        fail_msg("%s", e.text);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, reader, g), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    struct graph_interval iv;
    char *detail = NULL;
    int32_t row = made_row(g, 1, 0);
    for (uint64_t i = graph_first(g, row); i != GRAPH_NO_INTERVAL; i = graph_next(g, row, i)) {
        graph_interval(g, row, i, &iv);
        if (iv.state == GRAPH_PREEMPTED && iv.detail && (!detail || iv.detail == detail))
            detail = (char *)(uintptr_t)iv.detail;
    }
    assert_non_null(detail);
    graph_close(g);
    unlink(path);
}

int main(void)
{
    random_state = test_seed(random_state);
    const struct CMUnitTest tests[] = {cmocka_unit_test(damaged), cmocka_unit_test(senseless_row),
        cmocka_unit_test(truncated), cmocka_unit_test(readers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
