/* SPDX-License-Identifier: MIT */
/* Threads that poll, assumed to wait: made worlds of 2 to 8 hosts with a thread each. The oracle is the same world told
 * otherwise: there the threads sleep where the rule (docs/verbs/critpath.md) says that they may be taken to have
 * waited, and their wakes are known. Links local.c and traffic.c against made_stores.c. */
#include "../base/test.h"
#include "made_stores.h"
#include "path/path.h"

enum { MOST_HOSTS = 8, US = 1000, MS = 1000000, SOON = 10 * MS, SHORTEST = 100 * US };

struct message {
    int from, to;
    int64_t sent, received;
};
struct nap {
    int64_t begin, end;
};
/* Plot: messages by sender, receiver and time; sleeps and preemptions of threads. */
struct plot {
    int hosts;
    int64_t end;
    VEC(struct message) messages;
    VEC(struct nap) naps[MOST_HOSTS], preempted[MOST_HOSTS];
};
struct world {
    struct graph graphs[MOST_HOSTS];
    struct flow_store flows[MOST_HOSTS];
    struct path_local_host hosts[MOST_HOSTS];
    struct path_local *local;
    int n;
};

static uint64_t rnd(uint64_t *state, uint64_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % n;
}

static void forget(struct plot *p)
{
    vec_free(&p->messages);
    for (int h = 0; h < p->hosts; h++) {
        vec_free(&p->naps[h]);
        vec_free(&p->preempted[h]);
    }
}

/* ---- the oracle: where the rule says that a thread waited ---- */

struct wait {
    int64_t begin, end;
    int message;
};
struct waits {
    struct wait *v;
    size_t n, cap;
};

static int by_begin(const void *pa, const void *pb)
{
    const struct wait *a = pa, *b = pb;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

/* Returns, for each send of the host, the send before it, and the last message in between. */
static struct waits waits_of(const struct plot *p, int host)
{
    struct waits out = {0};
    for (size_t i = 0; i < p->messages.n; i++) {
        const struct message *send = &p->messages.v[i];
        int64_t before = INT64_MIN, arrival = INT64_MIN;
        int last = -1;
        if (send->from != host)
            continue;
        for (size_t k = 0; k < p->messages.n; k++)
            if (p->messages.v[k].from == host && p->messages.v[k].sent < send->sent && p->messages.v[k].sent > before)
                before = p->messages.v[k].sent;
        for (size_t k = 0; k < p->messages.n; k++)
            if (p->messages.v[k].to == host && p->messages.v[k].received > before &&
                p->messages.v[k].received < send->sent && p->messages.v[k].received > arrival) {
                arrival = p->messages.v[k].received;
                last = (int)k;
            }
        if (before == INT64_MIN || last < 0 || send->sent - arrival > SOON)
            continue;
        for (size_t k = 0; k < p->naps[host].n; k++)
            if (p->naps[host].v[k].end < arrival && p->naps[host].v[k].end > before)
                before = p->naps[host].v[k].end;
        if (arrival - before >= SHORTEST)
            vec_push(&out, ((struct wait){before, arrival, last}));
    }
    if (out.n)
        qsort(out.v, out.n, sizeof *out.v, by_begin);
    return out;
}

/* ---- telling the plot ---- */

/* Appends up to `end`: running, but for where the thread sleeps of itself or is preempted. */
static void live(struct world *w, const struct plot *p, int host, int64_t end)
{
    struct graph *g = &w->graphs[host];
    int64_t at;
    while ((at = g->rows.v[0].row.end) < end) {
        int64_t next = end;
        int state = GRAPH_RUNNING;
        for (int kind = 0; kind < 2; kind++) {
            const struct nap *v = kind ? p->preempted[host].v : p->naps[host].v;
            for (size_t i = 0; i < (kind ? p->preempted[host].n : p->naps[host].n); i++) {
                if (v[i].begin > at && v[i].begin < next)
                    next = v[i].begin;
                if (v[i].begin <= at && at < v[i].end) {
                    state = kind ? GRAPH_PREEMPTED : GRAPH_TIMER;
                    next = v[i].end < next ? v[i].end : next;
                }
            }
        }
        make(g, 0, next, (uint8_t)state)->cause.kind = GRAPH_CAUSE_TERMINAL;
    }
}

static struct world *tell(const struct plot *p, bool spinning)
{
    struct world *w = mem_zalloc(sizeof *w);
    uint32_t receives[1024];
    w->n = p->hosts;
    for (int h = 0; h < p->hosts; h++) {
        make_row(&w->graphs[h], 100 + h, "rank", 0);
        make_address(&w->flows[h], (uint8_t)(h + 1));
    }
    assert_true(p->messages.n <= sizeof receives / sizeof *receives);
    for (size_t i = 0; i < p->messages.n; i++) { /* separate connection of each message */
        const struct message *m = &p->messages.v[i];
        uint8_t from = (uint8_t)(m->from + 1), to = (uint8_t)(m->to + 1);
        uint16_t port = (uint16_t)(1000 + i);
        make_send(&w->flows[m->from], make_flow(&w->flows[m->from], from, port, to, 80), m->sent, i + 1, 0);
        receives[i] = make_receive(
            &w->flows[m->to], make_flow(&w->flows[m->to], from, port, to, 80), m->received, i + 1, 0);
    }
    for (int h = 0; h < p->hosts; h++) {
        struct waits waits = spinning ? (struct waits){0} : waits_of(p, h);
        for (size_t i = 0; i < waits.n; i++) {
            live(w, p, h, waits.v[i].begin);
            make_wake(
                &w->flows[h], make(&w->graphs[h], 0, waits.v[i].end, GRAPH_NETWORK), 0, receives[waits.v[i].message]);
        }
        live(w, p, h, p->end);
        vec_free(&waits);
        static const char *const names[MOST_HOSTS] = {"a", "b", "c", "d", "e", "f", "g", "h"};
        w->hosts[h] = (struct path_local_host){names[h], &w->graphs[h], &w->flows[h], NULL};
    }
    w->local = path_local_new(w->hosts, (size_t)p->hosts);
    return w;
}

static void leave(struct world *w)
{
    path_local_free(w->local);
    for (int h = 0; h < w->n; h++)
        drop(&w->graphs[h], &w->flows[h]);
    free(w);
}

static struct path *walk(const struct path_source *source, int host, int64_t begin, int64_t end)
{
    struct path *p;
    struct err e = {0};
    struct path_options options = {.begin = begin, .end = end};
    if (path_walk(source, (struct path_row){host, 0}, &options, &p, &e))
        fail_msg("%s", e.text);
    assert_true(path_covers(p, &e));
    return p;
}

static int64_t running(const struct path *p, int host)
{
    int64_t sum = 0;
    for (size_t i = 0; i < p->n_segments; i++)
        if (p->segments[i].row.host == host && p->segments[i].state == GRAPH_RUNNING)
            sum += p->segments[i].end - p->segments[i].begin;
    return sum;
}

/* ---- plots ---- */

static void say(struct plot *p, int from, int to, int64_t sent, int64_t received)
{
    vec_push(&p->messages, ((struct message){from, to, sent, received}));
}

/* A barrier: all report to rank 0, which lets them go; then each tells its neighbour, at once. `late` of the ranks
 * computes 20 ms, the others 2 to 4. Fills what the slow rank's computing and each rank's reports were. */
struct barrier {
    int64_t burn_begin, burn_end, reported[MOST_HOSTS], released[MOST_HOSTS];
};

static void make_barriers(struct plot *p, int late, int steps, struct barrier *out, uint64_t *dice)
{
    int64_t begin[MOST_HOSTS] = {0};
    for (int r = 0; r < p->hosts; r++)
        begin[r] = 1000 + r;
    for (int s = 0; s < steps; s++) {
        int64_t all = 0, go;
        for (int r = 0; r < p->hosts; r++) {
            int64_t done = begin[r] + (r == late ? 20 * MS : 2 * MS + (int64_t)rnd(dice, 2 * MS));
            if (r == late)
                out[s].burn_begin = begin[r], out[s].burn_end = done;
            out[s].reported[r] = done;
            int64_t there = r ? done + 80 * US + (int64_t)rnd(dice, 40 * US) : done;
            if (r)
                say(p, r, 0, done, there);
            all = there > all ? there : all;
        }
        out[s].released[0] = all;
        go = all + 20 * US;
        for (int r = 1; r < p->hosts; r++, go += 7 * US) {
            out[s].released[r] = go + 90 * US + (int64_t)rnd(dice, 20 * US);
            say(p, 0, r, go, out[s].released[r]);
        }
        for (int r = 0; r < p->hosts; r++) {
            int64_t tell = r ? out[s].released[r] + 30 * US : go;
            say(p, r, (r + 1) % p->hosts, tell, tell + 100 * US + r);
            begin[r] = tell + 50 * US;
        }
    }
    p->end = begin[0] + 30 * MS;
}

/* ---- tests ---- */

/* Moves messages of one rank at the same instant apart, because their order is arbitrary. */
static void part(struct plot *p)
{
    for (size_t i = 0; i < p->messages.n; i++)
        for (size_t k = 0; k < i; k++)
            if (p->messages.v[i].received == p->messages.v[k].received) {
                p->messages.v[i].received++;
                k = SIZE_MAX;
            }
}

static void expect_same(const struct path *a, const struct path *b, const char *what)
{
    bool same = a->n_segments == b->n_segments && a->n_links == b->n_links && a->n_gaps == b->n_gaps;
    for (size_t i = 0; i < a->n_segments && i < b->n_segments; i++) {
        const struct path_segment *s = &a->segments[i], *t = &b->segments[i];
        if (s->row.host != t->row.host || s->begin != t->begin || s->end != t->end || s->state != t->state)
            fail_msg("%s: segment %d is host %d %lld-%lld %s, not host %d %lld-%lld %s", what, (int)i, s->row.host,
                (long long)s->begin, (long long)s->end, graph_state_name(s->state), t->row.host, (long long)t->begin,
                (long long)t->end, graph_state_name(t->state));
        if (s->assumed != (s->state == GRAPH_NETWORK) || t->assumed)
            fail_msg("%s: segment %d is assumed %d, of one that slept %d", what, (int)i, s->assumed, t->assumed);
    }
    for (size_t i = 0; same && i < a->n_links; i++) {
        const struct path_link *l = &a->links[i], *m = &b->links[i];
        same = l->from.host == m->from.host && l->to.host == m->to.host && l->from_ts == m->from_ts &&
            l->to_ts == m->to_ts && l->kind == m->kind && l->assumed && !m->assumed;
    }
    if (!same)
        fail_msg("%s: %d segments, %d links, %d gaps, not %d, %d, %d", what, (int)a->n_segments, (int)a->n_links,
            (int)a->n_gaps, (int)b->n_segments, (int)b->n_links, (int)b->n_gaps);
}

/* Checks that queries of a spinning world have the answers of the sleeping world. */
static void compare(const struct plot *p, uint64_t *dice, int questions, const char *what)
{
    struct world *spins = tell(p, true), *sleeps = tell(p, false);
    for (int i = 0; i < questions; i++) {
        int host = (int)rnd(dice, (uint64_t)p->hosts);
        int64_t begin = (int64_t)rnd(dice, (uint64_t)p->end), end = begin + 1 + (int64_t)rnd(dice, 60 * MS);
        struct path *a = walk(path_local_source_assuming(spins->local), host, begin, end);
        struct path *b = walk(path_local_source(sleeps->local), host, begin, end);
        expect_same(a, b, what);
        path_free(a);
        path_free(b);
    }
    leave(spins);
    leave(sleeps);
}

static void barriers(void **state)
{
    (void)state;
    uint64_t dice = test_seed(5);
    for (int hosts = 2; hosts <= MOST_HOSTS; hosts++)
        for (int late = 0; late < hosts; late += hosts - 1) {
            enum { STEPS = 5 };
            struct plot p = {.hosts = hosts};
            struct barrier b[STEPS];
            make_barriers(&p, late, STEPS, b, &dice);
            part(&p);
            struct world *w = tell(&p, true);
            for (int s = 1; s < STEPS; s++)
                for (int r = 0; r < hosts; r++) {
                    if (r == late)
                        continue;
                    struct path *path = walk(
                                    path_local_source_assuming(w->local), r, b[s].reported[r], b[s].released[r]),
                                *plain = walk(path_local_source(w->local), r, b[s].reported[r], b[s].released[r]);
                    int64_t burn = b[s].burn_end -
                        (b[s].reported[r] > b[s].burn_begin ? b[s].reported[r] : b[s].burn_begin);
                    int64_t there = running(path, late);
                    if (there < burn - 200 * US || there > burn + 200 * US)
                        fail_msg("%d hosts, step %d, rank %d: %lld of %lld ns of rank %d's burn are on the path", hosts,
                            s, r, (long long)there, (long long)burn, late);
                    assert_int_equal(running(plain, r), plain->end - plain->begin);
                    int64_t assumable;
                    assert_true(path_local_assumable(w->local, plain, &assumable) >= 1);
                    assert_true(assumable <= plain->end - plain->begin && assumable >= burn);
                    assert_int_equal(path_local_assumable(w->local, path, &assumable), 0);
                    path_free(path);
                    path_free(plain);
                }
            leave(w);
            compare(&p, &dice, 10, "barriers");
            forget(&p);
        }
}

/* Messages at any time between any two; threads that sleep of themselves, where nothing comes, or lose their CPU. */
static void random_worlds(void **state)
{
    (void)state;
    uint64_t dice = test_seed(77);
    size_t waited = 0;
    for (int round = 0; round < 60; round++) {
        struct plot p = {.hosts = 2 + round % (MOST_HOSTS - 1), .end = 200 * MS};
        int n = 40 * p.hosts; /* number that gives each the eight messages that show a habit */
        for (int i = 0; i < n; i++) {
            int from = (int)rnd(&dice, (uint64_t)p.hosts),
                to = (from + 1 + (int)rnd(&dice, (uint64_t)p.hosts - 1)) % p.hosts;
            int64_t sent = 1 + (int64_t)rnd(&dice, 190 * MS);
            say(&p, from, to, sent, sent + 1 + (int64_t)rnd(&dice, rnd(&dice, 2) ? 200 * US : 8 * MS));
        }
        part(&p);
        for (int h = 0; h < p.hosts; h++)
            for (int i = 0; i < 12; i++) {
                int64_t begin = (int64_t)rnd(&dice, 190 * MS), end = begin + 1 + (int64_t)rnd(&dice, MS);
                bool busy = false;
                for (size_t k = 0; k < p.messages.n; k++) {
                    const struct message *m = &p.messages.v[k];
                    busy |= (m->from == h && m->sent >= begin && m->sent <= end + 1) ||
                        (m->to == h && m->received >= begin && m->received <= end + 1);
                }
                for (size_t k = 0; k < p.naps[h].n; k++)
                    busy |= p.naps[h].v[k].begin <= end && begin <= p.naps[h].v[k].end;
                for (size_t k = 0; k < p.preempted[h].n; k++)
                    busy |= p.preempted[h].v[k].begin <= end && begin <= p.preempted[h].v[k].end;
                if (!busy && i % 2)
                    vec_push(&p.naps[h], ((struct nap){begin, end}));
                else if (!busy)
                    vec_push(&p.preempted[h], ((struct nap){begin, end}));
            }
        for (int h = 0; h < p.hosts; h++) {
            struct waits waits = waits_of(&p, h);
            waited += waits.n;
            vec_free(&waits);
        }
        compare(&p, &dice, 10, "random");
        forget(&p);
    }
    assert_true(waited > 500);
}

/* Checks which of rank 0's stretches are taken for waits; written by hand, for the limits. */
static void expect_waits(const struct plot *p, size_t n, const int64_t (*bounds)[2])
{
    struct world *w = tell(p, true);
    const struct path_source *source = path_local_source_assuming(w->local);
    size_t found = 0;
    struct path_interval iv;
    for (int64_t at = p->end; at > 0; at = iv.begin) {
        assert_int_equal(source->interval(source->arg, (struct path_row){0, 0}, at, 0, &iv), PATH_REPLY_FOUND);
        assert_true(iv.begin < at && iv.end == at);
        if (!iv.assumed)
            continue;
        assert_true(found < n);
        assert_int_equal(iv.begin, bounds[n - 1 - found][0]);
        assert_int_equal(iv.end, bounds[n - 1 - found][1]);
        found++;
    }
    assert_int_equal(found, n);
    leave(w);
}

static void limits(void **state)
{
    (void)state;
    struct plot p = {.hosts = 3, .end = 300 * MS};
    for (int i = 0; i < 10; i++) /* messages before the first send: not counted */
        say(&p, 1, 0, MS + i, 2 * MS + 10 * i);
    say(&p, 0, 1, 10 * MS, 11 * MS);
    say(&p, 2, 0, 19 * MS, 20 * MS); /* request to 1, answer from 2 */
    say(&p, 0, 1, 30 * MS, 31 * MS); /* 10 ms later: soon */
    say(&p, 1, 0, 40 * MS, 50 * MS);
    say(&p, 0, 2, 60 * MS + 1, 61 * MS); /* a ns more: computed */
    say(&p, 1, 0, 70 * MS, 71 * MS);
    say(&p, 2, 0, 70 * MS, 75 * MS); /* last of two */
    say(&p, 0, 1, 76 * MS, 77 * MS);
    say(&p, 1, 0, 76 * MS, 76 * MS + 99999); /* wait below the minimum */
    say(&p, 0, 1, 77 * MS, 78 * MS);
    say(&p, 1, 0, 100 * MS, 110 * MS);
    vec_push(&p.naps[0], ((struct nap){80 * MS, 90 * MS})); /* the wait begins after this sleep */
    say(&p, 0, 1, 111 * MS, 112 * MS);
    say(&p, 1, 0, 120 * MS, 130 * MS); /* no further send */
    static const int64_t bounds[][2] = {{10 * MS, 20 * MS}, {60 * MS + 1, 75 * MS}, {90 * MS, 110 * MS}};
    expect_waits(&p, 3, bounds);
    forget(&p);
}

/* Checks threads without the habit: those that sleep for their messages, or get few. */
static void no_habit(void **state)
{
    (void)state;
    for (int asleep = 0; asleep < 2; asleep++) {
        struct plot p = {.hosts = 2, .end = 300 * MS};
        for (int i = 0; i < (asleep ? 16 : 7); i++) {
            say(&p, 0, 1, (10 * i + 1) * MS, (10 * i + 2) * MS);
            say(&p, 1, 0, (10 * i + 3) * MS, (10 * i + 5) * MS);
            if (asleep && i < 3)
                vec_push(&p.naps[0], ((struct nap){(10 * i + 4) * MS, (10 * i + 6) * MS}));
        }
        expect_waits(&p, 0, NULL);
        forget(&p);
    }
}

/* The path comes to a row in the midst of what is assumed to be a wait, because the row woke another thread there: it
 * ran. */
static void woke_another(void **state)
{
    (void)state;
    struct plot p = {.hosts = 2, .end = 100 * MS};
    for (int i = 0; i < 8; i++) {
        say(&p, 0, 1, (10 * i + 1) * MS, (10 * i + 2) * MS);
        say(&p, 1, 0, (10 * i + 3) * MS, (10 * i + 9) * MS);
    }
    struct world *w = tell(&p, true);
    int32_t helper = make_row(&w->graphs[0], 7, "helper", 0);
    make(&w->graphs[0], helper, 10 * MS, GRAPH_RUNNING);
    make(&w->graphs[0], helper, 15 * MS, GRAPH_BLOCKED)->cause = (struct graph_cause){
        .kind = GRAPH_CAUSE_WAKEUP, .row = 0, .ts = 15 * MS};
    make(&w->graphs[0], helper, 20 * MS, GRAPH_RUNNING);
    struct path *path;
    struct path_options options = {.begin = 9 * MS, .end = 20 * MS};
    struct err e = {0};
    assert_int_equal(
        path_walk(path_local_source_assuming(w->local), (struct path_row){0, helper}, &options, &path, &e), 0);
    assert_int_equal(path->n_gaps, 0);
    assert_int_equal(running(path, 0), 11 * MS);
    for (size_t i = 0; i < path->n_segments; i++)
        assert_false(path->segments[i].assumed);
    path_free(path);
    leave(w);
    forget(&p);
}

/* Checks waits shown by system calls: they need no habit, and nothing of them is assumed. */
static void shown(void **state)
{
    (void)state;
    struct plot p = {.hosts = 2, .end = 100 * MS};
    say(&p, 0, 1, 10 * MS, 10 * MS + 100 * US);
    say(&p, 1, 0, 29 * MS, 30 * MS);
    say(&p, 0, 1, 40 * MS, 40 * MS + 100 * US);
    say(&p, 1, 0, 49 * MS, 50 * MS);            /* awake, without a query */
    say(&p, 0, 1, 61 * MS, 61 * MS + 100 * US); /* message in the midst of a query */
    say(&p, 1, 0, 69 * MS, 70 * MS);
    say(&p, 1, 0, 79 * MS, 80 * MS); /* message after a vain query, while asleep */
    vec_push(&p.naps[0], ((struct nap){75 * MS, 80 * MS - 50 * US}));
    struct world *w = tell(&p, true);
    static const struct flow_ask asks[] = {{12 * MS, 30 * MS - 5 * US, 30 * MS + 5 * US},
        {60 * MS, 70 * MS - 5 * US, 70 * MS + 5 * US}, {75 * MS, 80 * MS - 5 * US, 80 * MS + 5 * US},
        {90 * MS, 95 * MS, 96 * MS}};
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++)
        vec_push(&w->flows[0].asks, asks[i]);
    for (int assuming = 0; assuming < 2; assuming++) {
        const struct path_source *source = assuming ? path_local_source_assuming(w->local)
                                                    : path_local_source(w->local);
        struct path *path = walk(source, 0, 11 * MS, 74 * MS);
        static const struct {
            int host, state;
            int64_t begin, end;
        } expected[] = {{0, GRAPH_RUNNING, 11 * MS, 12 * MS}, {1, GRAPH_RUNNING, 12 * MS, 29 * MS},
            {0, GRAPH_NETWORK, 29 * MS, 30 * MS}, {0, GRAPH_RUNNING, 30 * MS, 61 * MS},
            {1, GRAPH_RUNNING, 61 * MS, 69 * MS}, {0, GRAPH_NETWORK, 69 * MS, 70 * MS},
            {0, GRAPH_RUNNING, 70 * MS, 74 * MS}};
        assert_int_equal(path->n_segments, sizeof expected / sizeof *expected);
        for (size_t i = 0; i < path->n_segments; i++) {
            const struct path_segment *s = &path->segments[i];
            assert_int_equal(s->row.host, expected[i].host);
            assert_int_equal(s->state, expected[i].state);
            assert_int_equal(s->begin, expected[i].begin);
            assert_int_equal(s->end, expected[i].end);
            assert_false(s->assumed);
        }
        assert_int_equal(path->n_links, 2);
        assert_false(path->links[0].assumed);
        path_free(path);
    }
    leave(w);
    forget(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(barriers),
        cmocka_unit_test(random_worlds),
        cmocka_unit_test(limits),
        cmocka_unit_test(no_habit),
        cmocka_unit_test(woke_another),
        cmocka_unit_test(shown),
    };
    return cmocka_run_group_tests_name("path: polling", tests, NULL, NULL);
}
