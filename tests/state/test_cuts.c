/* SPDX-License-Identifier: MIT */
/* Builder that begins with the state carried over a cut: its results after the cut equal those of one pass. */
#include "../base/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/order.h"
#include "base/search.h"
#include "cuts.h"
#include "read_all.h"
#include "state/state.h"
#include "story.h"

static uint64_t random_seed;

/* ---- building ---- */

struct world {
    char path[64];
    struct state_builder *builder;
    struct state_store *store; /* store of the last chunk */
    const struct cuts_trace *trace;
    int64_t begin, end; /* range of the last chunk */
    size_t most_carried;
};

static void begin(void *arg, const struct cuts_chunk *c)
{
    struct world *w = arg;
    w->builder = state_builder_new(c->tracker, store_file(w->path), 1);
}

static void carry(void *arg, const struct cuts_chunk *c, struct carry *y)
{
    struct world *w = arg;
    size_t before = y->bytes.n;
    state_builder_carry(w->builder, y);
    if (y->way == CARRY_SAVE && y->bytes.n - before > w->most_carried)
        w->most_carried = y->bytes.n - before;
}

static void record(void *arg, const struct kernel_record *r)
{
    state_builder_add(((struct world *)arg)->builder, r);
}

static void events(void *arg, const int64_t *times, size_t n)
{
    state_builder_events(((struct world *)arg)->builder, times, n);
}

static void cut(void *arg, const struct cuts_chunk *c, int64_t at)
{
    state_builder_free(((struct world *)arg)->builder);
}

/* Checks that a store written after damage can be read, whatever was loaded. */
static void drop(void *arg, const struct cuts_chunk *c)
{
    struct world *w = arg;
    struct err e = {0};
    const struct cuts_trace *t = w->trace;
    if (!state_builder_write(w->builder, t->times.v[0], t->times.v[t->times.n - 1], &e) &&
        !state_open(w->path, &w->store, &e)) {
        read_all_states(w->store);
        state_close(w->store);
    }
    state_builder_free(w->builder);
    unlink(w->path);
}

static void finish(void *arg, const struct cuts_chunk *c)
{
    struct world *w = arg;
    struct err e = {0};
    const struct cuts_trace *t = w->trace;
    int64_t first = t->times.n ? t->times.v[0] : 0, last = t->times.n ? t->times.v[t->times.n - 1] : 0;
    w->begin = c->chunk.begin > first ? c->chunk.begin : first;
    w->end = last;
    if (state_builder_write(w->builder, w->begin, w->end, &e) || state_check(w->path, NULL, &e) ||
        state_open(w->path, &w->store, &e))
        fail_msg("%s", e.text);
    state_builder_free(w->builder);
}

static const struct cuts_user user = {begin, carry, record, events, cut, finish, drop};

static void world_run(struct world *w, const struct cuts_trace *t, const int64_t *at, size_t n, struct cuts *out)
{
    static int serial;
    *w = (struct world){.trace = t};
    snprintf(w->path, sizeof w->path, "/tmp/weft-state-cuts-%d-%d", getpid(), serial++);
    cuts_run(t, at, n, &user, w, out);
}

static void world_end(struct world *w)
{
    state_close(w->store);
    unlink(w->path);
}

/* ---- comparing ---- */

struct pair {
    const struct world *whole, *last;
    const int32_t *rows; /* host's rows of the last chunk */
    size_t n_rows;
    const char *where;
};

static int32_t host_row(const struct pair *p, int32_t row)
{
    return row < 0 ? row : (size_t)row < p->n_rows ? p->rows[row] : -2;
}

static bool by_thread(int kind)
{
    switch (kind) {
    case STATE_THREAD:
    case STATE_COUNTER_ROWS + STATE_MEMORY:
    case STATE_COUNTER_ROWS + STATE_IO_READ:
    case STATE_COUNTER_ROWS + STATE_IO_WRITTEN:
    case STATE_COUNTER_ROWS + STATE_KVM_EXITS: return true;
    default: return false;
    }
}

/* Rows that are known by a thread and a name, and forgotten while nothing goes on there. */
static bool by_name(int kind)
{
    return kind == STATE_FUTEX_USER || kind == STATE_FILE_ROWS;
}

static int32_t thread_of(const struct state_store *s, int kind, size_t i)
{
    struct state_row r;
    struct state_file f;
    if (kind == STATE_FILE_ROWS) {
        state_file(s, i, &f);
        return f.thread;
    }
    state_row(s, kind, i, &r);
    return r.thread;
}

/* The row of the whole that is row i of the last chunk, or -1. */
static int64_t same_row(const struct pair *p, int kind, size_t i)
{
    struct state_row r, x;
    state_row(p->last->store, kind, i, &r);
    if (by_thread(kind))
        return state_find_row(p->whole->store, kind, host_row(p, r.number));
    if (!by_name(kind))
        return state_find_row(p->whole->store, kind, r.number);
    int32_t thread = host_row(p, thread_of(p->last->store, kind, i));
    for (size_t k = 0; k < state_rows(p->whole->store, kind); k++) {
        state_row(p->whole->store, kind, k, &x);
        if (thread_of(p->whole->store, kind, k) == thread && !strcmp(x.name, r.name))
            return (int64_t)k;
    }
    return -1;
}

static bool same_name(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static bool same(const struct pair *p, int kind, const struct state_interval *a, const struct state_interval *b,
    int64_t since, int64_t amount)
{
    int64_t begin = a->begin > since ? a->begin : since, other = b->begin > since ? b->begin : since;
    bool track = kind == STATE_FUTEX_WAITS || kind == STATE_FUTEX_WAKES;
    return begin == other && a->end == b->end && a->value == b->value &&
        (a->thread == host_row(p, b->thread) || (kind == STATE_FUTEX_USER && b->value == STATE_NONE)) &&
        a->cpu == b->cpu && same_name(a->name, b->name) && (track || a->amount - amount == b->amount) &&
        a->cut == b->cut;
}

enum { SOME = 512 };

static size_t range(const struct world *w, int kind, size_t row, int64_t t, int64_t end, struct state_interval *out)
{
    return state_range(w->store, kind, row, t, end, out, SOME);
}

static void compare_rows(const struct pair *p, int kind, size_t row, size_t i)
{
    static struct state_interval a[SOME], b[SOME];
    struct state_row r;
    int64_t begin, end, t = p->last->begin, amount = 0;
    state_span(p->last->store, &begin, &end);
    state_row(p->last->store, kind, i, &r);
    bool io = kind == STATE_COUNTER_ROWS + STATE_IO_READ || kind == STATE_COUNTER_ROWS + STATE_IO_WRITTEN;
    bool over_cpus = kind == STATE_IRQ_LINE || kind == STATE_SOFTIRQ_VECTOR; /* known since all of them are */
    int64_t since = by_name(kind) || io || over_cpus ? p->last->begin : begin;
    for (bool first = true;; first = false) {
        size_t n = range(p->whole, kind, row, t, p->whole->end, a), m = range(p->last, kind, i, t, p->whole->end, b);
        if (first && io && n && m)
            amount = a[0].amount - b[0].amount; /* files that were closed are forgotten */
        if (first && n && m && b[0].value == STATE_NONE && (io || (kind == STATE_FILE_ROWS && !a[0].amount)))
            a[0].value = STATE_NONE; /* likewise, restart of the row */
        for (size_t k = 0; k < n && k < m; k++)
            if (!same(p, kind, &a[k], &b[k], first ? since : INT64_MIN, amount))
                fail_msg("%s kind %d number %d (%s) from %lld: %zu: %d %s thread %d amount %lld cut %d %lld-%lld, not "
                         "%d %s thread %d amount %lld cut %d %lld-%lld",
                    p->where, kind, r.number, r.name, (long long)p->last->begin, k, a[k].value, a[k].name, a[k].thread,
                    (long long)a[k].amount, a[k].cut, (long long)a[k].begin, (long long)a[k].end, b[k].value, b[k].name,
                    host_row(p, b[k].thread), (long long)b[k].amount, b[k].cut, (long long)b[k].begin,
                    (long long)b[k].end);
        if (n != m)
            fail_msg("%s kind %d number %d (%s): %zu intervals, not %zu", p->where, kind, r.number, r.name, n, m);
        if (n < SOME)
            return;
        t = a[n - 1].end;
    }
}

/* Returns whether anything in a row of the whole continues after the cut. */
static bool is_busy(const struct pair *p, int kind, size_t row)
{
    static struct state_interval a[SOME];
    size_t n = range(p->whole, kind, row, p->last->begin, p->whole->end, a);
    for (size_t i = 0; i < n; i++)
        if (a[i].value != STATE_NONE && !(a[i].value == STATE_ACTIVE && !a[i].amount && kind >= STATE_COUNTER_ROWS))
            return true;
    return false;
}

static void compare_kind(const struct pair *p, int kind)
{
    size_t n = state_rows(p->last->store, kind), all = state_rows(p->whole->store, kind);
    uint8_t *met = mem_zalloc(all + 1);
    for (size_t i = 0; i < n; i++) {
        int64_t row = same_row(p, kind, i);
        struct state_row r;
        state_row(p->last->store, kind, i, &r);
        if (row < 0 && kind == STATE_FILE_ROWS && !r.intervals) /* intervals may be in other chunks */
            continue;
        if (row < 0)
            fail_msg("%s kind %d: no row %d (%s)", p->where, kind, r.number, r.name);
        met[row] = 1;
        compare_rows(p, kind, (size_t)row, i);
    }
    for (size_t row = 0; row < all && (by_name(kind) || kind >= STATE_COUNTER_ROWS); row++)
        if (!met[row] && by_name(kind) && is_busy(p, kind, row)) {
            struct state_row r;
            state_row(p->whole->store, kind, row, &r);
            fail_msg("%s kind %d: row %d (%s) of thread %d is missing", p->where, kind, r.number, r.name,
                thread_of(p->whole->store, kind, row));
        }
    free(met);
}

static int by_all(const void *a, const void *b)
{
    const struct state_latency *x = a, *y = b;
    const char *p = x->name ? x->name : "", *q = y->name ? y->name : "";
    return order_of(x->begin, y->begin) ?: order_of(x->end, y->end) ?: order_of(x->thread, y->thread)
        ?: order_of(x->ret, y->ret) ?: order_of(x->cpu, y->cpu) ?: strcmp(p, q);
}

/* Returns latencies that end after the cut. */
static size_t latencies(const struct pair *p, const struct world *w, int kind, struct state_latency **out)
{
    size_t n = 0, all = state_latencies(w->store, kind);
    *out = mem_alloc((all + 1) * sizeof **out);
    for (size_t i = 0; i < all; i++) {
        struct state_latency l;
        state_latency(w->store, kind, i, &l);
        if (w == p->last)
            l.thread = host_row(p, l.thread);
        if (l.end >= p->last->begin)
            (*out)[n++] = l;
    }
    if (n)
        qsort(*out, n, sizeof **out, by_all);
    return n;
}

static void compare_latencies(const struct pair *p, int kind)
{
    struct state_latency *a, *b;
    size_t n = latencies(p, p->whole, kind, &a), m = latencies(p, p->last, kind, &b);
    for (size_t i = 0; i < n && i < m; i++)
        if (by_all(&a[i], &b[i]))
            fail_msg("%s latency kind %d: %lld-%lld %s thread %d, not %lld-%lld %s thread %d", p->where, kind,
                (long long)a[i].begin, (long long)a[i].end, a[i].name, a[i].thread, (long long)b[i].begin,
                (long long)b[i].end, b[i].name, b[i].thread);
    if (n != m)
        fail_msg("%s latency kind %d: %zu, not %zu", p->where, kind, n, m);
    free(a);
    free(b);
}

static void compare_times(const struct pair *p)
{
    enum { TIMES = 16 };
    int64_t times[TIMES], a[TIMES], b[TIMES];
    for (int i = 0; i < TIMES; i++)
        times[i] = p->last->begin + (p->whole->end - p->last->begin) / TIMES * i;
    for (size_t i = 0; i < state_counters(p->last->store, STATE_CPU_TIME); i++) {
        struct state_counter c;
        state_counter(p->last->store, STATE_CPU_TIME, i, &c);
        int32_t number = c.number < 0 ? c.number : host_row(p, c.number);
        int64_t k = state_find_counter(p->whole->store, STATE_CPU_TIME, number);
        assert_true(k >= 0);
        state_counter_values(p->whole->store, STATE_CPU_TIME, (size_t)k, times, TIMES, a);
        state_counter_values(p->last->store, STATE_CPU_TIME, i, times, TIMES, b);
        for (int j = 0; j < TIMES; j++)
            if (a[j] != b[j])
                fail_msg("%s CPU time of %d at %lld: %lld, not %lld", p->where, number, (long long)times[j],
                    (long long)a[j], (long long)b[j]);
    }
}

static void compare(const struct pair *p)
{
    if (p->last->begin >= p->whole->end)
        return;
    for (int kind = 0; kind < STATE_KINDS; kind++)
        compare_kind(p, kind);
    for (int kind = STATE_COUNTER_ROWS + STATE_DISK_READ; kind < STATE_COUNTER_ROWS + STATE_COUNTER_KINDS; kind++)
        compare_kind(p, kind);
    for (int kind = 0; kind < STATE_LATENCY_KINDS; kind++)
        compare_latencies(p, kind);
    compare_times(p);
}

/* Checks that state carried over the last cut does not depend on earlier cuts. */
static void compare_carry(const struct cuts_trace *t, const struct cuts *some, int64_t last_cut, const char *where)
{
    struct cuts single;
    struct world w;
    world_run(&w, t, &last_cut, 1, &single);
    const struct cuts_chunk *x = &some->chunks[some->n - 2], *y = &single.chunks[0];
    if (x->hash != y->hash) {
        size_t k = 0;
        while (k < x->carried.n && k < y->carried.n && x->carried.v[k] == y->carried.v[k])
            k++;
        fail_msg("%s: %zu bytes are carried, not %zu; byte %zu, of the tracker %zu", where, x->carried.n, y->carried.n,
            k, x->of_tracker);
    }
    world_end(&w);
    cuts_free(&single);
}

static void cut_some(const struct cuts_trace *t, const char *name, void *arg)
{
    enum { MOST = 8 };
    const int cuttings = getenv("WEFT_CUTTINGS") ? atoi(getenv("WEFT_CUTTINGS")) : 4;
    struct world whole, last;
    struct cuts one, some;
    const char *only = getenv("WEFT_ONLY");
    if (only && !strstr(name, only))
        return;
    world_run(&whole, t, NULL, 0, &one);
    for (int seed = 0; seed < cuttings; seed++) {
        int64_t at[MOST];
        char where[256];
        size_t n = cuts_random(t, random_seed + (uint64_t)seed, 1 + (size_t)seed % MOST, at);
        while (n && at[n - 1] > whole.end) /* something is to be behind the last one */
            n--;
        snprintf(where, sizeof where, "%s cutting %d", name, seed);
        world_run(&last, t, at, n, &some);
        const struct chunk *c = &some.chunks[some.n - 1].chunk;
        compare(&(struct pair){&whole, &last, c->rows, c->n_rows, where});
        world_end(&last);
        if (n > 1)
            compare_carry(t, &some, at[n - 1], where);
        cuts_free(&some);
    }
    world_end(&whole);
    cuts_free(&one);
}

static void recorded_traces(void **state)
{
    cuts_each(cut_some, NULL);
}

/* ---- made traces ---- */

static void cut_made(const char *what, uint64_t number, struct maker *m)
{
    struct cuts_trace t;
    char name[32];
    cuts_open_made(&t, m);
    maker_free(m);
    snprintf(name, sizeof name, "%s %d", what, (int)number);
    cut_some(&t, name, NULL);
    cuts_close(&t);
}

static void made_at_random(void **state)
{
    for (uint64_t i = 0; i < 12; i++)
        cut_made("made", i, story_random(random_seed + i, 300 + 100 * i));
}

/* Files that are closed are forgotten: nothing of them is left in what is carried when they are used again. */
static void files_used_again(void **state)
{
    for (uint64_t i = 0; i < 40; i++)
        cut_made("files", i, story_files(random_seed + i, 100 + 20 * i));
}

static void wait_for_futex(struct maker *m, uint32_t cpu, int64_t begin, int64_t end)
{
    maker_number(m, cpu, begin, M_FUTEX_ENTRY, 4096);
    maker_number(m, cpu, end, M_FUTEX_EXIT, 0);
}

/* Checks independence of a track's past: a wait that takes no time changes its last entry, so that one less is
 * carried. */
static void wait_without_time(void **state)
{
    struct cuts_trace t;
    struct world w;
    struct cuts some;
    struct maker *m = maker_new(3, 0);
    const int64_t at[] = {1065, 1075};
    for (uint32_t cpu = 0; cpu < 3; cpu++)
        maker_switch(m, cpu, 1000, 0, 0, 100 + (int)cpu);
    wait_for_futex(m, 0, 1010, 1020);
    wait_for_futex(m, 1, 1020, 1030);
    wait_for_futex(m, 2, 1040, 1050);
    wait_for_futex(m, 2, 1060, 1060);
    maker_switch(m, 0, 1100, 100, 0, 0);
    cuts_open_made(&t, m);
    maker_free(m);
    world_run(&w, &t, at, 2, &some);
    assert_true(some.chunks[1].carried.n > some.chunks[1].of_tracker);
    compare_carry(&t, &some, at[1], "a wait without time");
    world_end(&w);
    cuts_free(&some);
    cuts_close(&t);
}

/* Checks that carried state depends on what is open, not on the past. */
static void carry_is_bounded(void **state)
{
    size_t bytes[2];
    for (int k = 0; k < 2; k++) {
        struct cuts_trace t;
        struct world w;
        struct cuts some;
        struct maker *m = maker_new(2, 0);
        int64_t ts = 1000;
        for (int i = 0; i < (k ? 20000 : 2000); i++, ts += 10) {
            int tid = 100 + i % 1000;
            maker_fork(m, 0, ts, 1, tid, tid, -1);
            maker_switch(m, 1, ts + 1, 0, 0, tid);
            maker_number(m, 1, ts + 2, M_FUTEX_ENTRY, 4096 + i % 50);
            maker_number(m, 1, ts + 3, M_FUTEX_EXIT, 0);
            maker_task(m, 1, ts + 4, M_EXIT, tid);
            maker_switch(m, 1, ts + 5, tid, 64, 0);
            maker_task(m, 0, ts + 6, M_FREE, tid);
        }
        cuts_open_made(&t, m);
        maker_free(m);
        world_run(&w, &t, &ts, 1, &some);
        bytes[k] = some.chunks[0].carried.n - some.chunks[0].of_tracker;
        world_end(&w);
        cuts_free(&some);
        cuts_close(&t);
    }
    assert_in_range(bytes[1], 1, bytes[0] + 256);
}

/* ---- damage ---- */

static void damage(const struct cuts_trace *t, const char *name, void *arg)
{
    const int times = getenv("WEFT_DAMAGES") ? atoi(getenv("WEFT_DAMAGES")) : 12;
    struct world w = {.trace = t};
    if (!strstr(name, "three-tier/db") && !strstr(name, "lost-events"))
        return;
    snprintf(w.path, sizeof w.path, "/tmp/weft-state-cuts-%d-damage", getpid());
    cuts_damage(t, t->times.v[t->times.n / 2], random_seed, (size_t)times, &user, &w);
}

static void damaged_bytes_do_no_harm(void **state)
{
    cuts_each(damage, NULL);
}

int main(void)
{
    random_seed = test_seed(20);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_traces),
        cmocka_unit_test(made_at_random),
        cmocka_unit_test(files_used_again),
        cmocka_unit_test(wait_without_time),
        cmocka_unit_test(carry_is_bounded),
        cmocka_unit_test(damaged_bytes_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
