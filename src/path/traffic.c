#include "path/traffic.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "flow/flow.h"
#include "graph/graph.h"

enum {
    SHORTEST_POLL_NS = 100000, /* an answer sooner than that comes before the thread had time to sleep */
    FEWEST_MESSAGES = 8        /* a habit shows */
};

/* A message with payload that a row sent or got. `connection`: the lesser number of its two flows. */
struct act {
    int32_t row;
    bool received;
    uint32_t connection, number;
    int64_t ts;
};

struct traffic {
    VEC(struct act) acts;              /* by row, then time */
    VEC(struct traffic_poll) polls;    /* by row, then time */
    VEC(struct traffic_reply) replies; /* by time sent */
};

static int by_row_and_time(const void *pa, const void *pb)
{
    const struct act *a = pa, *b = pb;
    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    if (a->ts != b->ts)
        return a->ts < b->ts ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static int by_time_sent(const void *pa, const void *pb)
{
    const struct traffic_reply *a = pa, *b = pb;
    if (a->sent != b->sent)
        return a->sent < b->sent ? -1 : 1;
    return (a->receive > b->receive) - (a->receive < b->receive);
}

static bool is_awake(int state)
{
    return state == GRAPH_RUNNING || state == GRAPH_PREEMPTED || state == GRAPH_INTERRUPTED || state == GRAPH_STOLEN ||
        state == GRAPH_HYPERVISOR;
}

static uint32_t connection_of(const struct flow_store *s, uint32_t flow)
{
    struct flow_key k, back = {0};
    flow_key(s, flow, &k);
    back.family = k.family;
    back.protocol = k.protocol;
    back.sport = k.dport;
    back.dport = k.sport;
    memcpy(back.saddr, k.daddr, sizeof back.saddr);
    memcpy(back.daddr, k.saddr, sizeof back.daddr);
    int64_t other = flow_lookup(s, &back);
    return other >= 0 && other < flow ? (uint32_t)other : flow;
}

static void collect(struct traffic *t, const struct flow_store *s)
{
    for (size_t f = 0; f < flow_count(s); f++) {
        uint32_t connection = connection_of(s, (uint32_t)f);
        struct flow_packet p, received;
        for (size_t i = 0; i < flow_sends(s, f); i++) {
            flow_send(s, f, i, &p);
            if (p.origin == FLOW_BY_RECEIVE && flow_by_number(s, p.receive, &received, NULL) && received.ts <= p.ts)
                vec_push(&t->replies, ((struct traffic_reply){.sent = p.ts, .received = received.ts, .receive = p.receive}));
            else if (p.origin == FLOW_BY_THREAD && p.row >= 0 && p.bytes)
                vec_push(&t->acts, ((struct act){.row = p.row, .connection = connection, .number = p.number, .ts = p.ts}));
        }
        for (size_t i = 0; i < flow_receives(s, f); i++) {
            flow_receive(s, f, i, &p);
            if (p.row >= 0 && p.bytes)
                vec_push(
                    &t->acts, ((struct act){.row = p.row, .received = true, .connection = connection, .number = p.number, .ts = p.ts}));
        }
    }
    if (t->acts.n)
        qsort(t->acts.v, t->acts.n, sizeof *t->acts.v, by_row_and_time);
    if (t->replies.n)
        qsort(t->replies.v, t->replies.n, sizeof *t->replies.v, by_time_sent);
}

/* Did the row neither sleep nor end in [begin, end]? */
static bool stayed_awake(const struct graph *g, int32_t row, int64_t begin, int64_t end)
{
    struct graph_interval iv;
    size_t i = graph_find(g, row, end);
    if (i >= graph_row_intervals(g, row))
        return false;
    for (;; i--) {
        graph_interval(g, row, i, &iv);
        if (!is_awake(iv.state))
            return false;
        if (iv.begin <= begin)
            return true;
        if (i == 0)
            return false;
    }
}

/* A thread that polls gets (nearly) all its messages awake; one that blocks gets some awake, when it was busy with something else. */
static bool has_habit(const struct traffic *t, const struct graph *g, size_t first, size_t end)
{
    size_t messages = 0, awake = 0;
    for (size_t i = first; i < end; i++) {
        const struct act *a = &t->acts.v[i];
        messages += a->received;
        awake += a->received && stayed_awake(g, a->row, a->ts, a->ts);
    }
    return messages >= FEWEST_MESSAGES && awake * 8 >= messages * 7;
}

/* What a polling thread last did with the network before an answer came was to ask, on the same connection: in between it waited. (On any connection
 * would find more, but takes computing for polling where several peers answer at their own time: on the recorded MPI job 39 instead of 7 % of the
 * computing time of the rank that all others report to.) */
static void find_polls(struct traffic *t, const struct graph *g, size_t first, size_t end)
{
    for (size_t i = first + 1; i < end; i++) {
        const struct act *ask = &t->acts.v[i - 1], *answer = &t->acts.v[i];
        if (!ask->received && answer->received && ask->connection == answer->connection && answer->ts - ask->ts >= SHORTEST_POLL_NS &&
            stayed_awake(g, ask->row, ask->ts, answer->ts))
            vec_push(&t->polls, ((struct traffic_poll){.row = ask->row, .receive = answer->number, .begin = ask->ts, .end = answer->ts}));
    }
}

struct traffic *traffic_new(const struct graph *g, const struct flow_store *s)
{
    struct traffic *t = mem_zalloc(sizeof *t);
    if (!s)
        return t;
    collect(t, s);
    for (size_t first = 0, end; g && first < t->acts.n; first = end) {
        for (end = first; end < t->acts.n && t->acts.v[end].row == t->acts.v[first].row;)
            end++;
        if ((size_t)t->acts.v[first].row < graph_rows(g) && has_habit(t, g, first, end))
            find_polls(t, g, first, end);
    }
    return t;
}

void traffic_free(struct traffic *t)
{
    if (!t)
        return;
    vec_free(&t->acts);
    vec_free(&t->polls);
    vec_free(&t->replies);
    free(t);
}

size_t traffic_poll_find(const struct traffic *t, int32_t row, int64_t ts)
{
    size_t lo = 0, hi = t->polls.n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        const struct traffic_poll *p = &t->polls.v[mid];
        if (p->row < row || (p->row == row && p->end < ts))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

const struct traffic_poll *traffic_poll(const struct traffic *t, size_t i)
{
    return i < t->polls.n ? &t->polls.v[i] : NULL;
}

int64_t traffic_reply_at(const struct traffic *t, int64_t ts)
{
    size_t lo = 0, hi = t->replies.n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (t->replies.v[mid].sent < ts)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < t->replies.n && t->replies.v[lo].sent == ts ? (int64_t)lo : -1;
}

const struct traffic_reply *traffic_reply(const struct traffic *t, size_t i)
{
    return i < t->replies.n ? &t->replies.v[i] : NULL;
}

size_t traffic_unslept(const struct traffic *t, const struct graph *g, int32_t row, int64_t begin, int64_t end)
{
    size_t lo = 0, hi = t->acts.n, n = 0;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (t->acts.v[mid].row < row || (t->acts.v[mid].row == row && t->acts.v[mid].ts < begin))
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < t->acts.n && t->acts.v[lo].row == row && t->acts.v[lo].ts <= end; lo++)
        n += t->acts.v[lo].received && stayed_awake(g, row, t->acts.v[lo].ts, t->acts.v[lo].ts);
    return n;
}
