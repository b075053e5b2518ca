/* SPDX-License-Identifier: MIT */
/* The promises of apart.h, in made worlds: threads run, are held up, sleep, send and wake each other. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../base/test.h"
#include "apart.h"
#include "fake.h"

enum { MOST_THREADS = 9 };

static uint64_t seed;
static uint32_t rnd(uint32_t n)
{
    return test_random(&seed, n);
}

/* ---- worlds ---- */

/* State of a thread until `until`; after that, `cause` is what woke it, if anything did. */
struct actor {
    uint8_t state;
    int64_t since, until; /* INT64_MAX: until somebody wakes it, or a message comes */
    int32_t asked_by;     /* the last that woke it, or sent what it took; -1: it was answered */
    bool asked;           /* has sent since it slept, and waits for an answer next */
    struct {
        int64_t due;
        struct path_cause cause;
    } mail[64];
    size_t n_mail;
};
struct world {
    struct fake f;
    int64_t end, grain;         /* end and grain of the clocks */
    int64_t skew[MOST_THREADS]; /* skew of each thread's host */
    uint32_t holds;             /* number of 10 sends after which the sender is delayed */
    bool queues;                /* messages may be sent later than they were written */
    struct actor actors[MOST_THREADS];
    int32_t n, hosts;
};

/* Returns the time shown by the host's clock. */
static int64_t told(const struct world *w, int32_t row, int64_t t)
{
    return (t + w->skew[row % w->hosts]) / w->grain * w->grain;
}

/* The actor's state ends at t; what comes next is the caller's. */
static void change(struct world *w, int32_t row, int64_t t, uint8_t state, const struct path_cause *cause)
{
    struct actor *a = &w->actors[row];
    int64_t begin = told(w, row, a->since), end = told(w, row, t);
    if (begin < end) {
        struct fake_interval *iv = fake_add(&w->f, row, begin, end, a->state);
        if (cause) {
            iv->cause = *cause;
            iv->cause.ts = told(w, cause->from.row, cause->ts);
        }
        iv->detail = a->state == GRAPH_RUNNING && rnd(4) == 0 ? "call" : NULL;
        iv->cpu = (int32_t)rnd(2);
    }
    a->since = t;
    a->state = state;
}

static bool sleeps(const struct actor *a)
{
    return a->until == INT64_MAX;
}

/* A thread that runs sends or wakes, at times to itself and its friends. */
static void signal_somebody(struct world *w, int32_t row, int64_t t)
{
    struct actor *me = &w->actors[row];
    int32_t to = rnd(4) ? (row + 1 + (int32_t)rnd(2)) % w->n : (int32_t)rnd((uint32_t)w->n);
    struct path_row from = {row % w->hosts, row};
    bool answers = me->asked_by >= 0 && rnd(3);
    if (answers)
        to = me->asked_by;
    if (to == row)
        return;
    if (answers)
        me->asked_by = -1;
    else
        me->asked = true;
    if (to % w->hosts == row % w->hosts && rnd(3)) {
        struct actor *a = &w->actors[to];
        if (a->state == GRAPH_BLOCKED && sleeps(a)) {
            struct path_cause c = {.kind = PATH_CAUSE_WAKEUP, .from = from, .ts = t};
            change(w, to, t, rnd(2) ? GRAPH_PREEMPTED : GRAPH_RUNNING, &c);
            a->until = t + 1 + rnd(20);
            a->asked_by = row;
        }
    } else if (w->actors[to].n_mail < sizeof w->actors[to].mail / sizeof *w->actors[to].mail) {
        /* Bytes in the queue of the socket may leave when their writer is asleep. */
        uint32_t takes = 3 + rnd(rnd(5) ? 20 : 300), queued = w->queues && rnd(3) == 0 ? rnd(takes) : 0;
        w->actors[to].mail[w->actors[to].n_mail].due = t + takes;
        w->actors[to].mail[w->actors[to].n_mail++].cause = (struct path_cause){
            .kind = PATH_CAUSE_NETWORK, .from = from, .ts = t + queued, .label = "message"};
    }
}

/* The thread ran (or was held up) until t. */
static void go_on(struct world *w, int32_t row, int64_t t)
{
    struct actor *a = &w->actors[row];
    static const uint8_t held[] = {GRAPH_PREEMPTED, GRAPH_INTERRUPTED, GRAPH_STOLEN, GRAPH_HYPERVISOR};
    if (a->state == GRAPH_RUNNING)
        signal_somebody(w, row, t);
    uint32_t choice = rnd(10);
    if (a->state == GRAPH_RUNNING && choice < w->holds) {
        change(w, row, t, held[rnd(4)], NULL);
        a->until = t + 1 + rnd(rnd(8) ? 15 : 200);
    } else if (choice < 7) {
        change(w, row, t, a->asked || rnd(4) ? GRAPH_NETWORK : GRAPH_BLOCKED, NULL);
        a->until = INT64_MAX;
        a->asked = false;
    } else if (choice == 7) {
        change(w, row, t, GRAPH_TIMER, NULL);
        a->until = t + 1 + rnd(30);
    } else {
        change(w, row, t, GRAPH_RUNNING, NULL);
        a->until = t + 1 + rnd(25);
    }
}

static void take_mail(struct world *w, int32_t row, int64_t t)
{
    struct actor *a = &w->actors[row];
    for (size_t i = 0; i < a->n_mail; i++)
        if (a->mail[i].due <= t) {
            struct path_cause c = a->mail[i].cause;
            a->mail[i] = a->mail[--a->n_mail];
            a->asked_by = c.from.row;
            change(w, row, t, rnd(3) ? GRAPH_RUNNING : GRAPH_PREEMPTED, rnd(60) ? &c : NULL);
            a->until = t + 1 + rnd(20);
            return;
        }
}

static void make_world(struct world *w, uint64_t number, int64_t length)
{
    *w = (struct world){.end = length, .grain = number % 4 == 3 ? 5 : 1, .holds = (uint32_t)(number / 4 % 7)};
    w->queues = number % 5 < 2;
    w->n = 2 + (int32_t)rnd(MOST_THREADS - 1);
    w->hosts = 1 + (int32_t)rnd(3);
    for (int32_t i = 0; i < w->hosts; i++)
        w->skew[i] = number % 3 == 2 ? (int64_t)rnd(13) - 6 : 0;
    for (int32_t i = 0; i < w->n; i++) {
        fake_add_row(&w->f, i % w->hosts, 100 + i, "thread");
        w->actors[i].state = GRAPH_RUNNING;
        w->actors[i].since = 10;
        w->actors[i].until = 11 + rnd(30);
        w->actors[i].asked_by = -1;
    }
    for (int64_t t = 10; t < length; t++)
        for (int32_t i = 0; i < w->n; i++) {
            struct actor *a = &w->actors[i];
            if (a->state == GRAPH_NETWORK && sleeps(a))
                take_mail(w, i, t);
            else if (a->state == GRAPH_BLOCKED && sleeps(a) && rnd(1000) == 0) { /* unknown waker */
                change(w, i, t, GRAPH_RUNNING, NULL);
                a->until = t + 1 + rnd(9);
            } else if (a->until <= t)
                go_on(w, i, t);
        }
    for (int32_t i = 0; i < w->n; i++)
        change(w, i, length, GRAPH_RUNNING, NULL);
}

/* ---- tests ---- */

/* The reader's wait ends at 60 with a message that left at 40, when its writer had slept since 10: it was under way
 * since then, wherever the path begins and wherever the walk was stopped. */
static void sent_asleep(void **state)
{
    (void)state;
    struct fake f = {0};
    int32_t reader = fake_add_row(&f, 0, 100, "reader"), writer = fake_add_row(&f, 1, 101, "writer");
    fake_add(&f, reader, 0, 5, GRAPH_RUNNING);
    fake_cause(&f, fake_add(&f, reader, -1, 60, GRAPH_NETWORK), PATH_CAUSE_NETWORK, writer, 40);
    fake_add(&f, reader, -1, 70, GRAPH_RUNNING);
    fake_add(&f, writer, 0, 10, GRAPH_RUNNING);
    fake_cause(&f, fake_add(&f, writer, -1, 70, GRAPH_TIMER), PATH_CAUSE_TERMINAL, -1, 0);
    struct path_source source = fake_source(&f);
    for (int64_t begin = 0; begin < 60; begin++) {
        struct path_options o = {.begin = begin, .end = 70};
        struct path_query *q = path_query_new(&source, (struct path_row){0, reader}, &o);
        for (int more = 1; more;) {
            more = path_query_run(q, 1, NULL) == PATH_MORE;
            struct path *p = path_query_answer(q);
            assert_true(p->n_links == 1 || (p->n_links == 0 && more));
            if (p->n_links)
                assert_true(p->links[0].from_ts == 10 && p->links[0].to_ts == 60 && p->links[0].from.row == writer);
            path_free(p);
        }
        path_query_free(q);
    }
    fake_fini(&f);
}

static void made_worlds(void **state)
{
    (void)state;
    const char *graphs = getenv("WEFT_GRAPHS");
    uint64_t worlds = graphs ? strtoull(graphs, NULL, 10) : 3000, first = test_seed(1);
    size_t returns = 0;
    struct apart_count count = {0};
    for (uint64_t n = 0; n < worlds; n++) {
        seed = 0x9e3779b97f4a7c15u * (n + first);
        struct world w;
        make_world(&w, n, 200 + rnd(1500));
        char name[32];
        snprintf(name, sizeof name, "world %" PRIu64, n);
        apart_seed(seed);
        struct path_source source = fake_source(&w.f);
        for (int32_t r = 0; r < w.n; r++) {
            struct path_row row = {r % w.hosts, r};
            struct path *p;
            struct path_options all = {.begin = INT64_MIN, .end = INT64_MAX};
            assert_int_equal(path_walk(&source, row, &all, &p, NULL), 0);
            apart_check(&source, name, p, true, &count);
            struct path *plain;
            struct path_options o = {.begin = INT64_MIN, .end = INT64_MAX, .no_early_return = true};
            assert_int_equal(path_walk(&source, row, &o, &plain, NULL), 0);
            returns += !apart_same(p, plain, p->begin, p->end, false);
            path_free(plain);
            path_free(p);
        }
        fake_fini(&w.f);
    }
    print_message(
        "%zu pieces inside waits, %zu paths with early return, %zu rounds\n", count.pieces, returns, count.rounds);
    assert_true(count.pieces > 5 * worlds && returns > worlds / 2 && count.rounds > 5 * worlds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sent_asleep), cmocka_unit_test(made_worlds)};
    return cmocka_run_group_tests_name("path: taken apart", tests, NULL, NULL);
}
