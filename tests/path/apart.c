/* SPDX-License-Identifier: MIT */
#include "apart.h"

#include <setjmp.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../base/test.h"
#include "graph/graph.h"

static uint64_t seed = 1;
static uint32_t rnd(uint32_t n)
{
    return test_random(&seed, n);
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
        print_message("  %" PRId64 "-%" PRId64 " row %d %s %s\n", p->segments[i].begin, p->segments[i].end,
            p->segments[i].row.row, graph_state_name(p->segments[i].state),
            p->segments[i].detail ? p->segments[i].detail : "");
    for (size_t i = 0; i < p->n_gaps; i++)
        print_message("  gap %" PRId64 "-%" PRId64 " %s\n", p->gaps[i].begin, p->gaps[i].end,
            path_reason_name(p->gaps[i].reason));
    for (size_t i = 0; i < p->n_links; i++)
        print_message("  link %d@%" PRId64 " to %d@%" PRId64 "\n", p->links[i].from.row, p->links[i].from_ts,
            p->links[i].to.row, p->links[i].to_ts);
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

bool apart_same(const struct path *a, const struct path *b, int64_t begin, int64_t end, bool links)
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

static void must_be_same(const char *what, const char *world, const struct path *a, const struct path *b, int64_t begin,
    int64_t end, bool links)
{
    if (apart_same(a, b, begin, end, links))
        return;
    print_path("one", a);
    print_path("the other", b);
    fail_msg("%s: %s, within %" PRId64 " to %" PRId64, world, what, begin, end);
}

/* ---- the properties, of any source ---- */

/* Returns whether the path, down from t, is that of its own row. */
static bool is_own_from(const struct path_source *s, const struct path *p, int64_t t)
{
    struct path *own = ask(s, p->start, p->begin, t);
    bool same = apart_same(own, p, p->begin, t, false);
    path_free(own);
    return same;
}

/* Returns where the path continues on its own row after a wait that began at `slept`: there, or earlier, where the row
 * had sent a signal that the path leads over. */
static int64_t goes_on(const struct path_source *s, const char *world, const struct path *p, int64_t slept)
{
    int64_t below = INT64_MAX, best = slept;
    while (!is_own_from(s, p, best)) {
        below = best;
        best = INT64_MIN;
        for (size_t i = 0; i < p->n_links; i++)
            if (same_row(p->links[i].from, p->start) && p->links[i].from_ts < below)
                best = later(best, p->links[i].from_ts);
        if (best == INT64_MIN)
            fail_msg("%s: the path does not come home after the wait since %" PRId64, world, slept);
        if (best <= p->begin)
            break;
    }
    return best;
}

/* Collects the waits that the path meets on its own row, newest first: the inside is queried separately. */
static size_t pieces_inside(const struct path_source *s, const char *world, const struct path *p, size_t most)
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

static int64_t at_random(const struct path *p)
{
    return p->begin + (int64_t)((__int128)(p->end - p->begin) * rnd(1 << 20) >> 20);
}

static void later_beginnings(const struct path_source *s, const char *world, const struct path *p, int n)
{
    for (int i = 0; i < n && p->begin < p->end; i++) {
        int64_t begin = at_random(p);
        struct path *q = ask(s, p->start, begin, p->end);
        must_be_same("a later beginning", world, q, p, begin, p->end, true);
        path_free(q);
    }
}

/* Stopped after random numbers of steps; what is known on the way covers, and what it knows for good stays. */
static void stopped_and_resumed(const struct path_source *s, const char *world, const struct path *p)
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

/* Source around another one that has an answer only after an earlier query, and with some luck. */
struct slow {
    struct path_source source;
    const struct path_source *inner;
    uint32_t luck; /* chance of 8 */
    uint64_t salt;
    bool all; /* answers everything */
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
static void slow_describe(void *arg, struct path_row row, struct path_interval *iv)
{
    struct slow *s = arg;
    if (s->inner->describe_preempted)
        s->inner->describe_preempted(s->inner->arg, row, iv);
}
static const char *slow_host_name(void *arg, int32_t host)
{
    struct slow *s = arg;
    return s->inner->host_name(s->inner->arg, host);
}
static void slow_row_name(void *arg, struct path_row row, int64_t begin, int64_t end, int32_t *tid, const char **comm)
{
    struct slow *s = arg;
    s->inner->row_name(s->inner->arg, row, begin, end, tid, comm);
}

/* Checks late answers: luck grows in each round, so that known answers increase. */
static unsigned answered_late(const struct path_source *inner, const char *world, const struct path *p, int64_t begin)
{
    struct slow s = {.inner = inner, .salt = (uint64_t)rnd(1 << 30) * 77 + 5};
    s.source = (struct path_source){
        &s, slow_life, slow_interval, slow_describe, slow_cause, slow_host_name, slow_row_name};
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


void apart_seed(uint64_t s)
{
    seed = s;
}

void apart_check(
    const struct path_source *source, const char *world, const struct path *p, bool stops, struct apart_count *count)
{
    later_beginnings(source, world, p, 6);
    count->pieces += pieces_inside(source, world, p, 30);
    if (!stops)
        return;
    stopped_and_resumed(source, world, p);
    count->rounds += answered_late(source, world, p, at_random(p));
}
