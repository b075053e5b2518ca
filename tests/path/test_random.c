/* SPDX-License-Identifier: MIT */
/* Random graphs: the walk against a plain recursive statement of its rules, and against itself on graphs that make no
 * sense at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../base/test.h"
#include "fake.h"

enum { TIME = 40, MAX_ROWS = 6 };

static uint64_t seed;
static uint32_t rnd(uint32_t n)
{
    return test_random(&seed, n);
}

/* ---- graphs ---- */

static bool wants_cpu(int state)
{
    return state == GRAPH_RUNNING || state == GRAPH_PREEMPTED || state == GRAPH_INTERRUPTED || state == GRAPH_STOLEN ||
        state == GRAPH_HYPERVISOR;
}

static bool running_at(const struct fake *f, int32_t row, int64_t ts)
{
    for (size_t i = 0; i < f->rows.v[row].intervals.n; i++) {
        const struct fake_interval *iv = &f->rows.v[row].intervals.v[i];
        if (iv->begin < ts && ts <= iv->end)
            return wants_cpu(iv->state);
    }
    return false;
}

static void random_rows(struct fake *f, int64_t time, uint32_t longest)
{
    static const uint8_t busy[] = {
        GRAPH_RUNNING, GRAPH_RUNNING, GRAPH_PREEMPTED, GRAPH_INTERRUPTED, GRAPH_STOLEN, GRAPH_HYPERVISOR};
    static const uint8_t idle[] = {GRAPH_BLOCKED, GRAPH_NETWORK, GRAPH_BLOCKED, GRAPH_NETWORK, GRAPH_TIMER};
    int32_t rows = 2 + (int32_t)rnd(MAX_ROWS - 1);
    for (int32_t r = 0; r < rows; r++) {
        fake_add_row(f, r % 2, 100 + r, "row");
        int64_t t = r == 0 || rnd(2) ? 0 : rnd(20);
        while (t < time) {
            int64_t end = t + 1 + rnd(longest);
            uint8_t state = rnd(3) == 0 ? busy[rnd(6)] : idle[rnd(5)];
            fake_add(f, r, t, end < time ? end : time, state);
            t = end;
        }
    }
}

/* A row other than `r` that runs at ts, if a few draws find one. */
static int32_t random_runner(const struct fake *f, int32_t r, int64_t ts, unsigned draws)
{
    int32_t from = (int32_t)rnd((uint32_t)f->rows.n);
    while (draws-- > 0 && (from == r || !running_at(f, from, ts)))
        from = (int32_t)rnd((uint32_t)f->rows.n);
    return from;
}

/* Causes that could be true: wakers run when they wake, messages are sent before they arrive. More draws leave fewer
 * waits without a cause. */
static void random_causes(struct fake *f, unsigned draws)
{
    for (int32_t r = 0; r < (int32_t)f->rows.n; r++) {
        struct fake_row *row = &f->rows.v[r];
        int32_t maker = (int32_t)rnd((uint32_t)f->rows.n);
        if (row->intervals.v[0].begin > 0 && maker != r && running_at(f, maker, row->intervals.v[0].begin))
            row->origin = (struct path_cause){
                .kind = PATH_CAUSE_FORK, .from = {maker % 2, maker}, .ts = row->intervals.v[0].begin};
        for (size_t i = 0; i < row->intervals.n; i++) {
            struct fake_interval *iv = &row->intervals.v[i];
            int64_t sent = iv->end - rnd(12);
            int32_t from = random_runner(f, r, iv->state == GRAPH_NETWORK ? sent : iv->end, draws);
            if (iv->state == GRAPH_TIMER)
                fake_cause(f, iv, PATH_CAUSE_TERMINAL, -1, 0);
            else if (rnd(4 + draws * draws) == 0)
                continue;
            else if (iv->state == GRAPH_BLOCKED && from != r && running_at(f, from, iv->end))
                fake_cause(f, iv, PATH_CAUSE_WAKEUP, from, iv->end);
            else if (iv->state == GRAPH_NETWORK && sent > 0 && (running_at(f, from, sent) || rnd(4) == 0))
                fake_cause(f, iv, PATH_CAUSE_NETWORK, from, sent);
        }
    }
}

/* Causes as a broken trace might show them: from anywhere, at any time, in circles. */
static void absurd_causes(struct fake *f, int64_t time)
{
    for (int32_t r = 0; r < (int32_t)f->rows.n; r++) {
        struct fake_row *row = &f->rows.v[r];
        row->origin = (struct path_cause){.kind = (uint8_t)rnd(6),
            .reason = PATH_LOST_EVENTS,
            .from = {0, (int32_t)rnd((uint32_t)f->rows.n + 1)},
            .ts = (int64_t)rnd((uint32_t)time + 20) - 10};
        for (size_t i = 0; i < row->intervals.n; i++) {
            struct fake_interval *iv = &row->intervals.v[i];
            fake_cause(f, iv, (uint8_t)rnd(6), (int32_t)rnd((uint32_t)f->rows.n),
                rnd(3) ? iv->end : (int64_t)rnd((uint32_t)time + 20) - 10);
            iv->polling = rnd(5) == 0 && iv->state == GRAPH_RUNNING;
        }
    }
}

/* ---- the rules, plainly ---- */

/* A path as the rules give it, instant by instant, and the signals it leads over. */
struct plain {
    struct {
        int32_t row;
        uint8_t state;
        bool gap;
    } at[TIME];
    struct {
        int32_t from;
        int64_t ts;
    } signals[2000];
    size_t n;
};
struct oracle {
    const struct fake *f;
    bool early_return;
    int64_t ends[MAX_ROWS + 1][TIME]; /* ends of explanations, by row and interval; 0: unknown */
    struct {
        int32_t row;
        size_t i;
    } stack[200];
    size_t depth;
};

static void paint(struct plain *p, int32_t row, uint8_t state, bool gap, int64_t begin, int64_t end)
{
    for (int64_t t = begin < 0 ? 0 : begin; t < end && t < TIME; t++) {
        p->at[t].row = row;
        p->at[t].state = state;
        p->at[t].gap = gap;
    }
}

static void signal_from(struct plain *p, int32_t row, int64_t ts)
{
    assert_true(p->n < sizeof p->signals / sizeof *p->signals);
    p->signals[p->n].from = row;
    p->signals[p->n++].ts = ts;
}

static const struct fake_interval *at(const struct oracle *o, int32_t row, int64_t t, size_t *i)
{
    const struct fake_row *r = &o->f->rows.v[row];
    for (*i = 0; *i < r->intervals.n; (*i)++)
        if (r->intervals.v[*i].begin < t && t <= r->intervals.v[*i].end)
            return &r->intervals.v[*i];
    return NULL;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void chain(
    struct oracle *o, struct plain *p, int32_t row, int64_t t, int64_t bound, int32_t receiver, bool first);

/* The explanation of the wait from t down to `low`. */
static void explanation(struct oracle *o, struct plain *p, int32_t row, size_t i, int64_t t, int64_t low)
{
    const struct fake_interval *iv = &o->f->rows.v[row].intervals.v[i];
    const struct path_cause *c = &iv->cause;
    bool network = c->kind == PATH_CAUSE_NETWORK;
    o->stack[o->depth].row = row;
    o->stack[o->depth++].i = i;
    signal_from(p, c->from.row, c->ts);
    paint(p, row, network ? GRAPH_NETWORK : iv->state, false, later(c->ts, low), t);
    chain(o, p, c->from.row, c->ts, low, network ? row : -1, false);
    o->depth--;
}

/* Returns the end of the wait's explanation. This is the latest signal that its row sent in the stretch of running
 * before it and that the explanation leads over, if everything from there to the wait is explained; else the wait's
 * begin. */
static int64_t end_of(struct oracle *o, int32_t row, size_t i)
{
    const struct fake_interval *wait = &o->f->rows.v[row].intervals.v[i], *before;
    int64_t floor = wait->begin, end = -1;
    size_t k;
    if (o->ends[row][i])
        return o->ends[row][i] - 1;
    while ((before = at(o, row, floor, &k)) && wants_cpu(before->state))
        floor = before->begin;
    if (floor < wait->begin) {
        struct plain *p = calloc(1, sizeof *p);
        explanation(o, p, row, i, wait->end, floor);
        for (k = 0; k < p->n; k++)
            if (p->signals[k].from == row && p->signals[k].ts >= floor && p->signals[k].ts < wait->begin)
                end = later(end, p->signals[k].ts);
        for (int64_t t = end; t >= 0 && t < wait->begin; t++)
            if (p->at[t].gap)
                end = -1;
        free(p);
    }
    o->ends[row][i] = 1 + (end < 0 ? wait->begin : end);
    return o->ends[row][i] - 1;
}

static void chain(
    struct oracle *o, struct plain *p, int32_t row, int64_t t, int64_t bound, int32_t receiver, bool first)
{
    while (t > bound) {
        size_t i;
        const struct fake_interval *iv = at(o, row, t, &i);
        if (!iv) {
            const struct path_cause *c = &o->f->rows.v[row].origin;
            if (c->kind != PATH_CAUSE_FORK || o->f->rows.v[row].intervals.v[0].begin != t) {
                paint(p, row, GRAPH_UNKNOWN, true, bound, t);
                return;
            }
            row = c->from.row;
            signal_from(p, row, t);
            receiver = -1;
            continue;
        }
        bool wait = iv->state == GRAPH_BLOCKED || iv->state == GRAPH_NETWORK;
        bool explained = iv->cause.kind != PATH_CAUSE_NONE && (iv->end == t || first);
        for (size_t k = 0; k < o->depth; k++)
            explained = explained && !(o->stack[k].row == row && o->stack[k].i == i);
        if (iv->end > t && receiver >= 0 && (wait || iv->state == GRAPH_TIMER)) {
            paint(p, receiver, GRAPH_NETWORK, false, later(iv->begin, bound), t);
            p->signals[p->n - 1].ts = t = iv->begin;
        } else if (wait && explained) {
            int64_t end = o->early_return && iv->begin > bound ? end_of(o, row, i) : iv->begin;
            explanation(o, p, row, i, t, later(end, bound));
            t = end;
        } else {
            paint(p, row, iv->state, wait, later(iv->begin, bound), t);
            t = iv->begin;
        }
        receiver = -1;
        first = false;
    }
}

/* Prints the graph of a disagreement. */
static void print_graph(const struct fake *f)
{
    for (int32_t r = 0; r < (int32_t)f->rows.n; r++) {
        const struct fake_row *row = &f->rows.v[r];
        print_message("row %d", r);
        if (row->origin.kind == PATH_CAUSE_FORK)
            print_message(" (made by %d)", row->origin.from.row);
        for (size_t i = 0; i < row->intervals.n; i++) {
            const struct fake_interval *iv = &row->intervals.v[i];
            print_message("  %d-%d %s", (int)iv->begin, (int)iv->end, graph_state_name(iv->state));
            if (iv->cause.from.row >= 0 && iv->cause.kind != PATH_CAUSE_NONE)
                print_message(" (%d@%d)", iv->cause.from.row, (int)iv->cause.ts);
        }
        print_message("\n");
    }
}

static void print_answers(const struct path *p, const struct plain *o)
{
    for (size_t i = 0; i < p->n_segments; i++)
        for (int64_t t = p->segments[i].begin; t < p->segments[i].end; t++)
            print_message("  %d: walk %d %s, rules %d %s\n", (int)t, p->segments[i].row.row,
                graph_state_name(p->segments[i].state), o->at[t].row, graph_state_name(o->at[t].state));
}

/* ---- tests ---- */

static void against_oracle(void **state)
{
    (void)state;
    const char *graphs = getenv("WEFT_GRAPHS");
    uint64_t count = graphs ? strtoull(graphs, NULL, 10) : 40000, first = test_seed(1);
    size_t waits = 0, returns = 0;
    for (uint64_t n = 0; n < count; n++) {
        seed = 0x9e3779b97f4a7c15u * (n + first);
        struct fake f = {0};
        random_rows(&f, TIME, 3 + (uint32_t)n % 8);
        random_causes(&f, (unsigned)(n / 8) % 13);
        struct path_source source = fake_source(&f);
        struct path_options options = {.begin = rnd(TIME / 2)};
        options.end = options.begin + 1 + rnd((uint32_t)(TIME - options.begin));
        struct plain plain[2] = {0};
        for (int early = 0; early < 2; early++) {
            struct oracle o = {.f = &f, .early_return = early};
            chain(&o, &plain[early], 0, options.end, options.begin, -1, true);
            struct path *p;
            struct err e = {0};
            options.no_early_return = !early;
            assert_int_equal(path_walk(&source, (struct path_row){0, 0}, &options, &p, &e), 0);
            for (size_t i = 0; i < p->n_segments; i++)
                for (int64_t t = p->segments[i].begin; t < p->segments[i].end; t++)
                    if (p->segments[i].row.row != plain[early].at[t].row ||
                        p->segments[i].state != plain[early].at[t].state) {
                        print_graph(&f);
                        print_answers(p, &plain[early]);
                        fail_msg(
                            "graph %d, early return %d: the walk and the rules differ at %d", (int)n, early, (int)t);
                    }
            waits += p->n_links;
            returns += early && memcmp(plain[0].at, plain[1].at, sizeof plain->at) != 0;
            path_free(p);
        }
        fake_fini(&f);
    }
    /* The comparison is worth something only when the graphs exercise the rules. */
    print_message("%zu links, %zu graphs with early return\n", waits, returns);
    assert_true(waits > 100000);
    assert_true(returns > 1500);
}

static void absurd_graphs(void **state)
{
    (void)state;
    uint64_t first = test_seed(1);
    for (uint64_t n = 0; n < 20000; n++) {
        seed = 0xd1342543de82ef95u * (n + first);
        struct fake f = {.limit = 1000000};
        int64_t time = n % 10 ? 60 : 2000;
        random_rows(&f, time, 5);
        absurd_causes(&f, time);
        struct path_source source = fake_source(&f);
        struct path_options options = {
            .begin = (int64_t)rnd(30) - 5, .end = 30 + rnd((uint32_t)time), .no_early_return = rnd(4) == 0};
        struct path *p, *q;
        struct err e = {0};
        assert_int_equal(path_walk(&source, (struct path_row){0, 0}, &options, &p, &e), 0);
        assert_true(path_covers(p, &e));
        for (size_t i = 0; i < p->n_links; i++)
            assert_true(p->links[i].from_ts <= p->links[i].to_ts);
        for (size_t i = 1; i < p->n_totals; i++)
            assert_true(p->totals[i - 1].duration >= p->totals[i].duration);
        assert_int_equal(path_walk(&source, (struct path_row){0, 0}, &options, &q, &e), 0);
        assert_int_equal(p->n_segments, q->n_segments);
        for (size_t i = 0; i < p->n_segments; i++) {
            const struct path_segment *a = &p->segments[i], *b = &q->segments[i];
            assert_true(a->begin == b->begin && a->end == b->end && a->state == b->state && a->row.row == b->row.row &&
                a->sender.row == b->sender.row);
        }
        path_free(p);
        path_free(q);
        fake_fini(&f);
    }
}

/* Rows whose past leads nowhere, each reached by signals while running: the number of ways back doubles with every row,
 * the work must not. */
static void dead_ends(void **state)
{
    (void)state;
    struct fake f = {0};
    enum { ROWS = 60 };
    for (int32_t r = 0; r < ROWS; r++) {
        fake_add_row(&f, 0, r, "row");
        for (int64_t t = r == 0 ? 0 : 2; t < 1000; t++)
            fake_add(&f, r, t, t + 1, t % 2 ? GRAPH_RUNNING : GRAPH_PREEMPTED);
    }
    for (int32_t r = 1; r < ROWS; r++)
        for (size_t i = 0; i < f.rows.v[r].intervals.n; i++)
            fake_cause(&f, &f.rows.v[r].intervals.v[i], PATH_CAUSE_WAKEUP, 1 + (r + (int32_t)i) % (ROWS - 1),
                f.rows.v[r].intervals.v[i].end);
    struct fake_interval *last = fake_add(&f, 0, 1000, 1001, GRAPH_BLOCKED);
    last->begin = 1;
    f.rows.v[0].intervals.v[1] = *last;
    f.rows.v[0].intervals.n = 2;
    fake_cause(&f, &f.rows.v[0].intervals.v[1], PATH_CAUSE_WAKEUP, 1, 1000);
    struct path_source source = fake_source(&f);
    struct path_options options = {.begin = 0, .end = 1001};
    struct path *p;
    struct err e = {0};
    assert_int_equal(path_walk(&source, (struct path_row){0, 0}, &options, &p, &e), 0);
    assert_true(f.questions < 200000);
    path_free(p);
    fake_fini(&f);
}

/* A pipeline of threads, each waiting for the next: r runs [r, r + 1) and waits until 2 DEEP - r. What the last one
 * waits for is not known, everything else is, however long the pipeline. */
static void deep_chain(void **state)
{
    (void)state;
    struct fake f = {0};
    enum { DEEP = 3000 };
    for (int32_t r = 0; r < DEEP; r++) {
        fake_add_row(&f, 0, r, "pipe");
        fake_add(&f, r, 0, r + 1, GRAPH_RUNNING);
        struct fake_interval *iv = fake_add(&f, r, -1, 2 * DEEP - r, GRAPH_BLOCKED);
        if (r + 1 < DEEP)
            fake_cause(&f, iv, PATH_CAUSE_NONE, -1, 0),
                iv->cause = (struct path_cause){.kind = PATH_CAUSE_WAKEUP, .from = {0, r + 1}, .ts = 2 * DEEP - r};
        fake_add(&f, r, -1, 2 * DEEP + 1, GRAPH_RUNNING);
    }
    struct path_source source = fake_source(&f);
    struct path_options options = {.begin = 0, .end = 2 * DEEP + 1};
    struct path *p;
    struct err e = {0};
    assert_int_equal(path_walk(&source, (struct path_row){0, 0}, &options, &p, &e), 0);
    assert_int_equal(p->n_gaps, 1);
    assert_true(p->gaps[0].begin == DEEP && p->gaps[0].end == DEEP + 1);
    assert_int_equal(p->n_segments, 2 * DEEP + 1);
    for (int32_t i = 0; i <= 2 * DEEP; i++) {
        assert_int_equal(p->segments[i].row.row, i < DEEP ? i : i == DEEP ? DEEP - 1 : 2 * DEEP - i);
        assert_int_equal(p->segments[i].state, i == DEEP ? GRAPH_BLOCKED : GRAPH_RUNNING);
    }
    path_free(p);
    fake_fini(&f);
}

/* A token goes once round a ring of ranks; each ran for a while and has waited for it since. The path is the token's,
 * and before it set out its first holder's. The ranks went to sleep in any order, or the later the further back, or the
 * earlier: no order makes it long. */
static void token_ring(void **state)
{
    (void)state;
    static const int32_t sizes[] = {600, 100000};
    for (int n = 0; n < 6; n++) {
        int32_t ranks = sizes[n / 3];
        int64_t start = ranks + 1, end = start + 2 * (int64_t)ranks;
        struct fake f = {.limit = 40 * (uint64_t)ranks};
        seed = 42;
        for (int32_t r = 0; r < ranks; r++) {
            int64_t slept = n % 3 == 0 ? 1 + (int64_t)rnd((uint32_t)ranks - 1) : n % 3 == 1 ? ranks - r : 1 + r;
            fake_add_row(&f, r % 7, r, "rank");
            if (r) {
                fake_add(&f, r, 0, slept, GRAPH_RUNNING);
                fake_cause(&f, fake_add(&f, r, -1, start + 2 * r, GRAPH_NETWORK), PATH_CAUSE_NETWORK, r - 1,
                    start + 2 * r - 1);
            }
            fake_add(&f, r, r ? -1 : 0, end, GRAPH_RUNNING);
        }
        struct path_source source = fake_source(&f);
        struct path_options options = {.begin = 0, .end = end};
        struct path *p;
        struct err e = {0};
        assert_int_equal(path_walk(&source, (struct path_row){(ranks - 1) % 7, ranks - 1}, &options, &p, &e), 0);
        assert_int_equal(p->n_gaps, 0);
        assert_int_equal(p->n_links, ranks - 1);
        const struct path_segment *s = &p->segments[p->n_segments - 1];
        for (int32_t r = ranks - 1; r > 0; r--, s -= 2) {
            assert_true(s[0].row.row == r && s[0].begin == start + 2 * r && s[0].state == GRAPH_RUNNING);
            assert_true(s[-1].sender.row == r - 1 && s[-1].begin == start + 2 * r - 1 && s[-1].state == GRAPH_NETWORK);
        }
        assert_true(s->row.row == 0 && s->begin <= ranks);
        print_message("%d ranks: %.2f questions and %.2f us each\n", ranks, (double)f.questions / ranks,
            p->cost.seconds * 1e6 / ranks);
        path_free(p);
        fake_fini(&f);
    }
}

/* A long conversation: work grows with the path only. */
static void cost(void **state)
{
    (void)state;
    struct fake f = {0};
    enum { CALLS = 100000 };
    struct path_source source;
    struct path_options options = {.begin = 0};
    struct path *p;
    struct err e = {0};
    /* a asks b and sleeps; b answers; each call: a runs [0,3), asks at 2, sleeps [3,8), b runs [4,7), answers at 7 */
    int32_t a = fake_add_row(&f, 0, 1, "a"), b = fake_add_row(&f, 1, 2, "b");
    fake_add(&f, b, -0, 4, GRAPH_NETWORK);
    for (int64_t i = 0; i < CALLS; i++) {
        int64_t t = 10 * i;
        if (i)
            fake_add(&f, b, -1, t + 4, GRAPH_NETWORK);
        struct fake_row *row = &f.rows.v[b];
        fake_cause(&f, &row->intervals.v[row->intervals.n - 1], PATH_CAUSE_NETWORK, a, t + 2);
        fake_add(&f, b, -1, t + 7, GRAPH_RUNNING);
        fake_add(&f, a, i ? -1 : 0, t + 3, GRAPH_RUNNING);
        fake_cause(&f, fake_add(&f, a, -1, t + 8, GRAPH_NETWORK), PATH_CAUSE_NETWORK, b, t + 7);
    }
    fake_add(&f, a, -1, 10 * CALLS, GRAPH_RUNNING);
    f.questions = 0;
    source = fake_source(&f);
    options.end = 10 * CALLS;
    assert_int_equal(path_walk(&source, (struct path_row){0, a}, &options, &p, &e), 0);
    assert_int_equal(p->n_segments, 4 * CALLS + 1);
    assert_true(f.questions < 8 * p->n_segments);
    print_message("%zu segments, %.2f questions and %.2f us each\n", p->n_segments,
        (double)f.questions / (double)p->n_segments, p->cost.seconds * 1e6 / (double)p->n_segments);
    int64_t asked = 0;
    for (size_t i = 0; i < p->n_totals; i++)
        if (p->totals[i].row.row == b && p->totals[i].state == GRAPH_RUNNING)
            asked = p->totals[i].duration;
    assert_int_equal(asked, 3 * CALLS);
    path_free(p);
    fake_fini(&f);
}

/* A ran for long and then waits for X a little. X's doings while A ran are many and do not lead home: the search for
 * that gives up. */
static void vain_search(void **state)
{
    (void)state;
    struct fake f = {0};
    enum { LONG = 200000 };
    int32_t a = fake_add_row(&f, 0, 1, "a"), x = fake_add_row(&f, 0, 2, "x");
    fake_add(&f, a, 0, LONG, GRAPH_RUNNING);
    fake_cause(&f, fake_add(&f, a, -1, LONG + 10, GRAPH_BLOCKED), PATH_CAUSE_NONE, -1, 0);
    for (int64_t t = 0; t < LONG + 10; t++)
        fake_add(&f, x, t, t + 1, t % 2 ? GRAPH_RUNNING : GRAPH_PREEMPTED);
    fake_cause(&f, &f.rows.v[a].intervals.v[1], PATH_CAUSE_WAKEUP, x, LONG + 10);
    struct path_source source = fake_source(&f);
    struct path_options options = {.begin = 0, .end = LONG + 10};
    struct path *p;
    struct err e = {0};
    assert_int_equal(path_walk(&source, (struct path_row){0, a}, &options, &p, &e), 0);
    assert_int_equal(p->n_segments, 11);
    assert_true(p->segments[0].row.row == a && p->segments[0].end == LONG);
    assert_true(f.questions < 10000);
    path_free(p);
    fake_fini(&f);
}

/* Checks vain messages: while A waits, X gets many messages that A sent before the long stretch in which it ran into
 * its wait. None leads home, and the stretch is not walked for each of them. */
static void vain_messages(void **state)
{
    (void)state;
    struct fake f = {0};
    enum { LONG = 20000, MESSAGES = 2000 };
    int32_t a = fake_add_row(&f, 0, 1, "a"), x = fake_add_row(&f, 1, 2, "x");
    fake_add(&f, a, 0, 1, GRAPH_RUNNING);
    fake_add(&f, a, 1, 2, GRAPH_TIMER);
    for (int64_t t = 2; t < LONG; t++)
        fake_add(&f, a, t, t + 1, t % 2 ? GRAPH_RUNNING : GRAPH_PREEMPTED);
    fake_add(&f, a, LONG, LONG + 2 * MESSAGES, GRAPH_BLOCKED);
    fake_add(&f, x, 0, LONG, GRAPH_RUNNING);
    for (int64_t t = LONG; t < LONG + 2 * MESSAGES; t += 2) {
        fake_cause(&f, fake_add(&f, x, t, t + 1, GRAPH_NETWORK), PATH_CAUSE_NETWORK, a, 1);
        fake_add(&f, x, t + 1, t + 2, GRAPH_RUNNING);
    }
    struct fake_row *row = &f.rows.v[a];
    fake_cause(&f, &row->intervals.v[row->intervals.n - 1], PATH_CAUSE_WAKEUP, x, LONG + 2 * MESSAGES);
    struct path_source source = fake_source(&f);
    struct path_options options = {.begin = 0, .end = LONG + 2 * MESSAGES};
    struct path *p;
    struct err e = {0};
    assert_int_equal(path_walk(&source, (struct path_row){0, a}, &options, &p, &e), 0);
    assert_true(
        p->segments[p->n_segments - 2].state == GRAPH_NETWORK && p->segments[p->n_segments - 2].sender.row == a);
    assert_true(f.questions < 20 * p->n_segments);
    path_free(p);
    fake_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_oracle),
        cmocka_unit_test(absurd_graphs),
        cmocka_unit_test(dead_ends),
        cmocka_unit_test(deep_chain),
        cmocka_unit_test(token_ring),
        cmocka_unit_test(cost),
        cmocka_unit_test(vain_search),
        cmocka_unit_test(vain_messages),
    };
    return cmocka_run_group_tests_name("path: random graphs", tests, NULL, NULL);
}
