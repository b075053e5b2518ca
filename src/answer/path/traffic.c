/* SPDX-License-Identifier: MIT */
#include "path/traffic.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/search.h"
#include "flow/flow.h"
#include "graph/graph.h"

enum {
    SHORTEST_POLL_NS = 100000, /* an earlier answer comes before the thread could sleep */
    SOON_NS = 10000000, /* on the recorded MPI job 4.5 ms find all that 20 ms find: busy machines take that long from a
                         * message to the next send */
    FEWEST_MESSAGES = 8 /* enough to show a habit */
};

struct row_polls {
    VEC(struct path_traffic_poll) polls; /* stretches by time */
};

struct path_traffic {
    const struct graph *graph;
    const struct flow_store *flows;
    size_t n;
    _Atomic(struct row_polls *) *rows[2]; /* without and with assumed ones. NULL: not requested yet; &no_polls: none */
};

static struct row_polls no_polls;

/* Time since which the row has been awake without a break until `end`, at least `floor`; INT64_MAX if it slept or did
 * not live at `end`. */
static int64_t awake_since(const struct graph *g, int32_t row, int64_t floor, int64_t end)
{
    struct graph_interval iv;
    int64_t since = INT64_MAX, after = end;
    for (uint64_t i = graph_find(g, row, end); i != GRAPH_NO_INTERVAL; i = graph_previous(g, row, i)) {
        graph_interval_bare(g, row, i, &iv);
        if (!graph_is_awake(iv.state) || iv.begin > after) /* intervals are adjacent, unless the store is damaged */
            return since;
        if (iv.begin <= floor)
            return floor;
        since = after = iv.begin;
    }
    return since;
}

/* Returns whether the row neither slept nor ended in [begin, end]. */
static bool stayed_awake(const struct graph *g, int32_t row, int64_t begin, int64_t end)
{
    return awake_since(g, row, begin, end) == begin;
}

/* Returns whether the row polls as a habit: a polling thread gets (nearly) all its messages awake. A blocking thread
 * gets some awake, when it was busy with something else. For a thread that blocks, a part of the messages is enough to
 * see it. */
static bool has_habit(const struct path_traffic *t, int32_t row)
{
    struct flow_packet p;
    bool is_send;
    size_t messages, asleep = 0, n = flow_messages(t->flows, row, &messages);
    if (messages < FEWEST_MESSAGES)
        return false;
    for (size_t i = 0; i < n && asleep * 8 <= messages; i++) {
        flow_message(t->flows, row, i, &p, &is_send);
        asleep += !is_send && !stayed_awake(t->graph, row, p.ts, p.ts);
    }
    return asleep * 8 <= messages;
}

/* Finds answers whose question was the last network activity of a polling thread, on the same connection: in between it
 * waited. (Allowing questions on any connection would find more, but would take computing for polling if several peers
 * answer at their own time: on the recorded MPI job 39 instead of 7 % of the computing time of the rank that all others
 * report to.) */
static void find_asked(const struct path_traffic *t, int32_t row, struct row_polls *out)
{
    struct flow_packet ask = {0}, p;
    size_t receives, n = flow_messages(t->flows, row, &receives);
    int64_t seen = INT64_MIN;
    bool asked = false, is_send;
    for (size_t i = 0; i < n; i++, ask = p, asked = is_send) {
        flow_message(t->flows, row, i, &p, &is_send);
        if (!asked || is_send || ask.ts < seen || p.ts <= ask.ts ||
            (uint64_t)p.ts - (uint64_t)ask.ts < SHORTEST_POLL_NS ||
            flow_connection(t->flows, ask.flow) != flow_connection(t->flows, p.flow))
            continue;
        seen = p.ts; /* each stretch is searched once, also in a damaged store whose messages are out of order */
        if (stayed_awake(t->graph, row, ask.ts, p.ts))
            vec_push(&out->polls, ((struct path_traffic_poll){.receive = p.number, .begin = ask.ts, .end = p.ts}));
    }
}

/* Finds waits of a polling thread for the last message before its next send. A thread that sends late after a message
 * computed in between; whether it waited before is unknown. */
static void find_assumed(const struct path_traffic *t, int32_t row, struct row_polls *out)
{
    struct flow_packet p, arrival = {0};
    size_t receives, n = flow_messages(t->flows, row, &receives);
    int64_t sent = INT64_MIN, seen = INT64_MIN;
    bool arrived = false, is_send;
    for (size_t i = 0; i < n; i++) {
        flow_message(t->flows, row, i, &p, &is_send);
        if (!is_send) {
            arrival = p;
            arrived = true;
            continue;
        }
        if (arrived && sent > INT64_MIN && arrival.ts >= sent && sent >= seen && p.ts >= arrival.ts &&
            (uint64_t)p.ts - (uint64_t)arrival.ts <= SOON_NS) {
            int64_t begin = awake_since(t->graph, row, sent, arrival.ts);
            seen = arrival.ts; /* see above */
            if (begin < arrival.ts && (uint64_t)arrival.ts - (uint64_t)begin >= SHORTEST_POLL_NS)
                vec_push(&out->polls,
                    ((struct path_traffic_poll){
                        .receive = arrival.number, .begin = begin, .end = arrival.ts, .wait = true, .assumed = true}));
        }
        sent = p.ts;
        arrived = false;
    }
}

/* Finds polling shown by system calls: from the first that got nothing, or from the last send or sleep after it, to the
 * message that may have ended it: the one that the first call after the last in vain may have got. */
static void find_shown(const struct path_traffic *t, int32_t row, struct row_polls *out)
{
    struct flow_packet p;
    struct flow_ask ask;
    bool is_send;
    size_t receives, n = flow_messages(t->flows, row, &receives), asks = flow_asks(t->flows, row), i = 0;
    int64_t sent = INT64_MIN, seen = INT64_MIN;
    for (size_t k = 0; k < asks; k++) {
        flow_ask(t->flows, row, k, &ask);
        for (; i < n; i++) {
            flow_message(t->flows, row, i, &p, &is_send);
            if (p.ts >= ask.last && !is_send)
                break;
            sent = is_send ? p.ts : sent;
        }
        if (i == n || p.ts > ask.end || ask.begin < seen || ask.begin >= p.ts)
            continue;
        seen = p.ts; /* see above */
        int64_t begin = awake_since(t->graph, row, sent > ask.begin ? sent : ask.begin, p.ts);
        if (begin < p.ts && (uint64_t)p.ts - (uint64_t)begin >= SHORTEST_POLL_NS)
            vec_push(&out->polls,
                ((struct path_traffic_poll){.receive = p.number, .begin = begin, .end = p.ts, .wait = true}));
    }
}

/* Merges into `a` the stretches of `b` that do not touch any of `a`; both are in order of time. */
static void merge(struct row_polls *a, const struct row_polls *b)
{
    struct row_polls out = {0};
    size_t k = 0;
    for (size_t i = 0; i < a->polls.n; i++) {
        const struct path_traffic_poll *p = &a->polls.v[i];
        for (; k < b->polls.n && b->polls.v[k].begin < p->end; k++)
            if (b->polls.v[k].end <= p->begin)
                vec_push(&out.polls, b->polls.v[k]);
        vec_push(&out.polls, *p);
    }
    for (; k < b->polls.n; k++)
        vec_push(&out.polls, b->polls.v[k]);
    vec_free(&a->polls);
    *a = out;
}

static struct row_polls *find_polls(const struct path_traffic *t, int32_t row, bool assuming)
{
    struct row_polls shown = {0}, assumed = {0}, asked = {0};
    find_shown(t, row, &shown);
    if (has_habit(t, row)) {
        if (assuming)
            find_assumed(t, row, &assumed);
        find_asked(t, row, &asked);
        merge(&shown, &assumed);
        merge(&shown, &asked);
    }
    vec_free(&assumed.polls);
    vec_free(&asked.polls);
    if (!shown.polls.n)
        return &no_polls;
    struct row_polls *out = mem_alloc(sizeof *out);
    *out = shown;
    return out;
}

static void free_polls(struct row_polls *p)
{
    if (!p || p == &no_polls)
        return;
    vec_free(&p->polls);
    free(p);
}

/* Two threads may compute the same list at the same time; one of the two is kept. */
static const struct row_polls *polls_of(struct path_traffic *t, int32_t row, bool assuming)
{
    if (row < 0 || (size_t)row >= t->n)
        return &no_polls;
    struct row_polls *p = atomic_load_explicit(&t->rows[assuming][row], memory_order_acquire), *before = NULL;
    if (p)
        return p;
    p = find_polls(t, row, assuming);
    if (atomic_compare_exchange_strong(&t->rows[assuming][row], &before, p))
        return p;
    free_polls(p);
    return before;
}

struct path_traffic *path_traffic_new(const struct graph *g, const struct flow_store *s)
{
    struct path_traffic *t = mem_zalloc(sizeof *t);
    t->graph = g;
    t->flows = s;
    t->n = g && s ? graph_rows(g) : 0;
    for (int k = 0; k < 2; k++)
        t->rows[k] = mem_zalloc(sizeof *t->rows[k] * (t->n + 1));
    return t;
}

void path_traffic_free(struct path_traffic *t)
{
    if (!t)
        return;
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < t->n; i++)
            free_polls(atomic_load(&t->rows[k][i]));
        free(t->rows[k]);
    }
    free(t);
}

size_t path_traffic_poll_find(struct path_traffic *t, int32_t row, int64_t ts, bool assuming)
{
    const struct row_polls *p = polls_of(t, row, assuming);
    return search_first(i, 0, p->polls.n, p->polls.v[i].end >= ts);
}

const struct path_traffic_poll *path_traffic_poll(struct path_traffic *t, int32_t row, size_t i, bool assuming)
{
    const struct row_polls *p = polls_of(t, row, assuming);
    return i < p->polls.n ? &p->polls.v[i] : NULL;
}

int64_t path_traffic_reply_at(const struct path_traffic *t, int64_t ts)
{
    struct flow_packet p;
    size_t n = t->flows ? flow_replies(t->flows) : 0;
    size_t at = search_first(i, 0, n, (flow_reply(t->flows, i, &p), p.ts >= ts));
    if (at == n)
        return -1;
    flow_reply(t->flows, at, &p);
    return p.ts == ts ? (int64_t)at : -1;
}

bool path_traffic_reply(const struct path_traffic *t, size_t i, struct path_traffic_reply *out)
{
    struct flow_packet p, received;
    if (!t->flows || i >= flow_replies(t->flows))
        return false;
    flow_reply(t->flows, i, &p);
    if (!flow_by_number(t->flows, p.receive, &received, NULL))
        return false;
    *out = (struct path_traffic_reply){.sent = p.ts, .received = received.ts, .receive = p.receive};
    return true;
}

size_t path_traffic_unslept(const struct path_traffic *t, int32_t row, int64_t begin, int64_t end)
{
    struct flow_packet p;
    bool is_send;
    size_t receives, count = t->flows ? flow_messages(t->flows, row, &receives) : 0, n = 0;
    size_t first = search_first(i, 0, count, (flow_message(t->flows, row, i, &p, &is_send), p.ts >= begin));
    for (size_t i = first; i < count; i++) {
        flow_message(t->flows, row, i, &p, &is_send);
        if (p.ts > end)
            break;
        n += !is_send && stayed_awake(t->graph, row, p.ts, p.ts);
    }
    return n;
}
