/* What a path promises whoever takes it apart: in made worlds, where threads run, are held up, sleep, send and wake each
 * other, and in recorded ones.
 * - The path with a later beginning is the end of the path with an earlier one.
 * - The piece of a path inside a wait is the path of what ended the wait, asked for that piece alone.
 * - A walk that is stopped and resumed, or whose answers come late and in any order, gives the same path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../base/test.h"
#include "fake.h"

enum { MOST_THREADS = 9 };

static uint64_t seed;
static uint32_t rnd(uint32_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)((seed >> 11) % n);
}

/* ---- worlds ---- */

/* What a thread does until `until`; after that, if something woke it, `cause` is what. */
struct actor {
    uint8_t state;
    int64_t since, until; /* INT64_MAX: until somebody wakes it, or a message comes */
    int32_t asked_by;     /* the last that woke it, or sent what it took; -1: it was answered */
    bool asked;           /* it has sent since it slept, and waits for an answer next */
    struct {
        int64_t due;
        struct path_cause cause;
    } mail[64];
    size_t n_mail;
};
struct world {
    struct fake f;
    int64_t end, grain;         /* of the clocks */
    int64_t skew[MOST_THREADS]; /* of each thread's host */
    uint32_t holds;             /* of 10 sends, this many are followed by being held up */
    struct actor actors[MOST_THREADS];
    int32_t n, hosts;
};

/* The time as the host's clock told it. */
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
        w->actors[to].mail[w->actors[to].n_mail].due = t + 3 + rnd(rnd(5) ? 20 : 300);
        w->actors[to].mail[w->actors[to].n_mail++].cause = (struct path_cause){
            .kind = PATH_CAUSE_NETWORK, .from = from, .ts = t, .label = "message"};
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
            else if (a->state == GRAPH_BLOCKED && sleeps(a) && rnd(1000) == 0) { /* nobody was seen to wake it */
                change(w, i, t, GRAPH_RUNNING, NULL);
                a->until = t + 1 + rnd(9);
            } else if (a->until <= t)
                go_on(w, i, t);
        }
    for (int32_t i = 0; i < w->n; i++)
        change(w, i, length, GRAPH_RUNNING, NULL);
}

/* ---- comparing paths ---- */

static struct path *ask(const struct path_source *source, struct path_row row, int64_t begin, int64_t end)
{
    struct path *p;
    struct err e = {0};
    struct path_options o = {.begin = begin, .end = end};
    if (path_walk(source, row, &o, &p, &e))
        fail_msg("%s", e.text);
    return p;
}

static void print_path(const char *what, const struct path *p)
{
    print_message("%s:\n", what);
    for (size_t i = 0; i < p->n_segments; i++)
        print_message("  %d-%d row %d %s %s\n", (int)p->segments[i].begin, (int)p->segments[i].end,
            p->segments[i].row.row, graph_state_name(p->segments[i].state),
            p->segments[i].detail ? p->segments[i].detail : "");
    for (size_t i = 0; i < p->n_gaps; i++)
        print_message(
            "  gap %d-%d %s\n", (int)p->gaps[i].begin, (int)p->gaps[i].end, path_reason_name(p->gaps[i].reason));
    for (size_t i = 0; i < p->n_links; i++)
        print_message("  link %d@%d to %d@%d\n", p->links[i].from.row, (int)p->links[i].from_ts, p->links[i].to.row,
            (int)p->links[i].to_ts);
}

static bool same_string(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}
static bool same_row(struct path_row a, struct path_row b)
{
    return a.host == b.host && a.row == b.row;
}
static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Do both say the same of [begin, end]? `links`: compared too, where they lie wholly behind `begin`, up to `end`. */
static bool same_within(const struct path *a, const struct path *b, int64_t begin, int64_t end, bool links)
{
    size_t i = 0, j = 0;
    while (i < a->n_segments && a->segments[i].end <= begin)
        i++;
    while (j < b->n_segments && b->segments[j].end <= begin)
        j++;
    for (; i < a->n_segments && j < b->n_segments && a->segments[i].begin < end; i++, j++) {
        const struct path_segment *s = &a->segments[i], *t = &b->segments[j];
        if (later(s->begin, begin) != later(t->begin, begin) || earlier(s->end, end) != earlier(t->end, end) ||
            s->state != t->state || !same_row(s->row, t->row) || !same_row(s->sender, t->sender) ||
            !same_string(s->detail, t->detail))
            return false;
    }
    if ((i < a->n_segments && a->segments[i].begin < end) || (j < b->n_segments && b->segments[j].begin < end))
        return false;
    for (i = j = 0; i < a->n_gaps || j < b->n_gaps; i++, j++) {
        while (i < a->n_gaps && a->gaps[i].end <= begin)
            i++;
        while (j < b->n_gaps && b->gaps[j].end <= begin)
            j++;
        bool more = i < a->n_gaps && a->gaps[i].begin < end;
        if (more != (j < b->n_gaps && b->gaps[j].begin < end))
            return false;
        if (!more)
            break;
        if (later(a->gaps[i].begin, begin) != later(b->gaps[j].begin, begin) || a->gaps[i].reason != b->gaps[j].reason)
            return false;
    }
    for (i = j = 0; links; i++, j++) {
        while (i < a->n_links && a->links[i].to_ts <= begin)
            i++;
        while (j < b->n_links && b->links[j].to_ts <= begin)
            j++;
        if (i >= a->n_links || j >= b->n_links)
            return i >= a->n_links && j >= b->n_links;
        const struct path_link *k = &a->links[i], *l = &b->links[j];
        if (k->from_ts != l->from_ts || k->to_ts != l->to_ts || k->kind != l->kind || !same_row(k->from, l->from) ||
            !same_row(k->to, l->to))
            return false;
    }
    return true;
}

static void must_be_same(const char *what, uint64_t world, const struct path *a, const struct path *b, int64_t begin,
    int64_t end, bool links)
{
    if (same_within(a, b, begin, end, links))
        return;
    print_path("one", a);
    print_path("the other", b);
    fail_msg("world %d: %s, within %d to %d", (int)world, what, (int)begin, (int)end);
}

/* ---- the properties, of any source ---- */

/* Is the path, down from t, that of its own row? */
static bool is_own_from(const struct path_source *s, const struct path *p, int64_t t)
{
    struct path *own = ask(s, p->start, p->begin, t);
    bool same = same_within(own, p, p->begin, t, false);
    path_free(own);
    return same;
}

/* Where the path goes on on its own row after a wait that began at `slept`: there, or earlier, where the row had sent a
 * signal that the path leads over. */
static int64_t goes_on(const struct path_source *s, uint64_t world, const struct path *p, int64_t slept)
{
    int64_t below = INT64_MAX, best = slept;
    while (!is_own_from(s, p, best)) {
        below = best;
        best = INT64_MIN;
        for (size_t i = 0; i < p->n_links; i++)
            if (same_row(p->links[i].from, p->start) && p->links[i].from_ts < below)
                best = later(best, p->links[i].from_ts);
        if (best == INT64_MIN)
            fail_msg("world %d: the path does not come home after the wait since %d", (int)world, (int)slept);
        if (best <= p->begin)
            break;
    }
    return best;
}

/* The waits that the path meets on its own row, newest first: what is inside is asked for by itself. */
static size_t pieces_inside(const struct path_source *s, uint64_t world, const struct path *p, size_t most)
{
    size_t found = 0;
    struct path_interval iv;
    for (int64_t t = p->end; t > p->begin && found < most;) {
        if (s->interval(s->arg, p->start, t, p->begin, &iv) != PATH_REPLY_FOUND)
            break;
        t = iv.begin;
        if (iv.state != GRAPH_BLOCKED && iv.state != GRAPH_NETWORK)
            continue;
        struct path_cause c = {0};
        s->cause(s->arg, p->start, &iv, iv.begin, false, &c);
        bool message = c.kind == PATH_CAUSE_NETWORK;
        int64_t sent = earlier(c.ts, iv.end), begin = later(iv.begin, p->begin);
        if (!message && (c.kind != PATH_CAUSE_WAKEUP || same_row(c.from, p->start) || c.ts <= iv.begin))
            continue;
        if (sent > begin) {
            struct path *q;
            struct path_options o = {.begin = begin,
                .end = sent,
                .reached = message ? PATH_REACHED_BY_MESSAGE : PATH_REACHED_BY_SIGNAL,
                .receiver = p->start,
                .label = c.label};
            assert_int_equal(path_walk(s, c.from, &o, &q, NULL), 0);
            must_be_same("the piece inside a wait", world, q, p, begin, earlier(sent, p->end), false);
            path_free(q);
            found++;
        }
        t = iv.begin > p->begin ? goes_on(s, world, p, iv.begin) : p->begin;
    }
    return found;
}

static void later_beginnings(const struct path_source *s, uint64_t world, const struct path *p, int n)
{
    for (int i = 0; i < n && p->begin < p->end; i++) {
        int64_t begin = p->begin + (int64_t)rnd((uint32_t)earlier(p->end - p->begin, UINT32_MAX - 1) + 1);
        struct path *q = ask(s, p->start, begin, p->end);
        must_be_same("a later beginning", world, q, p, begin, p->end, true);
        path_free(q);
    }
}

/* Stopped after random numbers of steps; what is known on the way covers, and what it knows for good stays. */
static void stopped_and_resumed(const struct path_source *s, uint64_t world, const struct path *p)
{
    struct path_options o = {.begin = p->begin, .end = p->end};
    struct path_query *q = path_query_new(s, p->start, &o);
    struct err e = {0};
    int rc;
    while ((rc = path_query_run(q, 1 + rnd(40), &e)) == PATH_MORE) {
        struct path *part = path_query_answer(q);
        assert_true(path_covers(part, &e) && part->partial);
        int64_t known = part->n_gaps && part->gaps[0].reason == PATH_PENDING ? part->gaps[0].end : part->begin;
        must_be_same("a part of the answer", world, part, p, known, p->end, true);
        path_free(part);
    }
    assert_int_equal(rc, PATH_DONE);
    struct path *all = path_query_answer(q);
    assert_false(all->partial);
    must_be_same("stopped and resumed", world, all, p, p->begin, p->end, true);
    path_free(all);
    path_query_free(q);
}

/* ---- answers that come late ---- */

/* A source around another one, that knows an answer only when it was asked for it before and some luck was had. */
struct slow {
    struct path_source source;
    const struct path_source *inner;
    uint32_t luck; /* of 8 */
    uint64_t salt;
    bool all; /* every answer is there */
    uint64_t asked;
};

static bool is_late(struct slow *s, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t h = (a * 0x9e3779b97f4a7c15u ^ b) * 0xd1342543de82ef95u ^ c * 0xff51afd7ed558ccdu ^ s->salt;
    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9u;
    h ^= h >> 32;
    bool late = !s->all && h % 8 >= s->luck;
    s->asked += late;
    return late;
}
static uint64_t number(struct path_row r)
{
    return (uint64_t)(uint32_t)r.host << 32 | (uint32_t)r.row;
}
static enum path_reply slow_life(void *arg, struct path_row row, int64_t *begin, int64_t *end)
{
    struct slow *s = arg;
    return is_late(s, number(row), 1, 1) ? PATH_REPLY_PENDING : s->inner->life(s->inner->arg, row, begin, end);
}
static enum path_reply slow_interval(
    void *arg, struct path_row row, int64_t ts, int64_t bound, struct path_interval *out)
{
    struct slow *s = arg;
    assert_true(bound < ts);
    enum path_reply reply = s->inner->interval(s->inner->arg, row, ts, bound, out);
    return reply == PATH_REPLY_FOUND && is_late(s, number(row), 2, out->id / 16) ? PATH_REPLY_PENDING : reply;
}
static void slow_cause(
    void *arg, struct path_row row, const struct path_interval *iv, int64_t bound, bool origin, struct path_cause *out)
{
    struct slow *s = arg;
    s->inner->cause(s->inner->arg, row, iv, bound, origin, out);
    if (is_late(s, number(row), 3 + origin, iv->id))
        *out = (struct path_cause){.kind = PATH_CAUSE_PENDING, .from = {-1, -1}};
}
static const char *slow_host_name(void *arg, int32_t host)
{
    struct slow *s = arg;
    return s->inner->host_name(s->inner->arg, host);
}
static void slow_row_name(
    void *arg, struct path_row row, int64_t begin, int64_t end, int32_t *tid, const char **comm)
{
    struct slow *s = arg;
    s->inner->row_name(s->inner->arg, row, begin, end, tid, comm);
}

/* Each round some more is known, never less: luck grows. */
static unsigned answered_late(const struct path_source *inner, uint64_t world, const struct path *p, int64_t begin)
{
    struct slow s = {.inner = inner, .salt = world * 77 + 5};
    s.source = (struct path_source){&s, slow_life, slow_interval, NULL, slow_cause, slow_host_name, slow_row_name};
    struct path_options o = {.begin = begin, .end = p->end};
    struct path_query *q = path_query_new(&s.source, p->start, &o);
    struct err e = {0};
    unsigned rounds = 0;
    int rc;
    for (s.luck = rnd(6); (rc = path_query_run(q, rnd(3) ? 1 + rnd(50) : UINT64_MAX, &e)) != PATH_DONE;) {
        assert_true(rc >= 0);
        struct path *part = path_query_answer(q);
        assert_true(path_covers(part, &e) && part->partial);
        path_free(part);
        if (rc == PATH_AWAITS) {
            s.luck++;
            rounds++;
        }
        assert_true(rounds < 12);
    }
    struct path *all = path_query_answer(q);
    assert_true(!all->partial && path_covers(all, &e));
    must_be_same("answered late", world, all, p, begin, p->end, true);
    path_free(all);
    path_query_free(q);
    return rounds;
}

/* ---- tests ---- */

static void made_worlds(void **state)
{
    (void)state;
    const char *graphs = getenv("WEFT_GRAPHS");
    uint64_t count = graphs ? strtoull(graphs, NULL, 10) : 3000, first = test_seed(1);
    size_t pieces = 0, returns = 0, rounds = 0;
    for (uint64_t n = 0; n < count; n++) {
        seed = 0x9e3779b97f4a7c15u * (n + first);
        struct world w;
        make_world(&w, n, 200 + rnd(1500));
        struct path_source source = fake_source(&w.f);
        for (int32_t r = 0; r < w.n; r++) {
            struct path_row row = {r % w.hosts, r};
            struct path *p = ask(&source, row, INT64_MIN, INT64_MAX);
            later_beginnings(&source, n, p, 6);
            pieces += pieces_inside(&source, n, p, 30);
            stopped_and_resumed(&source, n, p);
            rounds += answered_late(&source, n, p, p->begin + rnd(150));
            struct path *plain;
            struct path_options o = {.begin = INT64_MIN, .end = INT64_MAX, .no_early_return = true};
            assert_int_equal(path_walk(&source, row, &o, &plain, NULL), 0);
            returns += !same_within(p, plain, p->begin, p->end, false);
            path_free(plain);
            path_free(p);
        }
        fake_fini(&w.f);
    }
    print_message("%zu pieces inside waits, %zu paths with early return, %zu rounds\n", pieces, returns, rounds);
    assert_true(pieces > 5 * count && returns > count / 2 && rounds > 5 * count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(made_worlds)};
    return cmocka_run_group_tests_name("path: taken apart", tests, NULL, NULL);
}
