/* The join of several hosts' stores, with stores and clock maps made up here: what the rooms below would answer is stated, so that only the join is
 * tested. Links local.c and traffic.c against these stand-ins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "clock/clock.h"
#include "flow/flow.h"
#include "graph/graph.h"
#include "path/path.h"

/* ---- stand-ins ------------------------------------------------------------------------------------------------------------- */

struct made_interval {
    struct graph_interval iv;
    struct graph_cause cause;
};
struct made_row {
    struct graph_row row;
    VEC(struct made_interval) intervals;
    struct graph_cause origin;
};
struct graph {
    VEC(struct made_row) rows;
    VEC(struct graph_loss) losses;
};

size_t graph_rows(const struct graph *g)
{
    return g->rows.n;
}
void graph_row(const struct graph *g, int32_t row, struct graph_row *out)
{
    *out = g->rows.v[row].row;
}
size_t graph_row_intervals(const struct graph *g, int32_t row)
{
    return g->rows.v[row].intervals.n;
}
void graph_interval(const struct graph *g, int32_t row, size_t i, struct graph_interval *out)
{
    *out = g->rows.v[row].intervals.v[i].iv;
}
size_t graph_find(const struct graph *g, int32_t row, int64_t ts)
{
    for (size_t i = 0; i < g->rows.v[row].intervals.n; i++)
        if (g->rows.v[row].intervals.v[i].iv.begin < ts && ts <= g->rows.v[row].intervals.v[i].iv.end)
            return i;
    return g->rows.v[row].intervals.n;
}
void graph_interval_cause(const struct graph *g, int32_t row, size_t i, struct graph_cause *out)
{
    *out = g->rows.v[row].intervals.v[i].cause;
}
void graph_row_origin(const struct graph *g, int32_t row, struct graph_cause *out)
{
    *out = g->rows.v[row].origin;
}
size_t graph_losses(const struct graph *g, const struct graph_loss **out)
{
    *out = g->losses.v;
    return g->losses.n;
}
const char *graph_state_name(int state)
{
    static const char *const names[] = {
#define X(id, name) name,
        GRAPH_STATES(X)
#undef X
    };
    return names[state];
}

struct made_flow {
    struct flow_key key;
    VEC(struct flow_packet) sends, receives;
};
struct flow_store {
    VEC(struct made_flow) flows;
    VEC(struct flow_wake) wakes;
    VEC(struct flow_address) addresses;
    uint32_t numbers;
};

size_t flow_count(const struct flow_store *s)
{
    return s->flows.n;
}
void flow_key(const struct flow_store *s, size_t flow, struct flow_key *out)
{
    *out = s->flows.v[flow].key;
}
int64_t flow_lookup(const struct flow_store *s, const struct flow_key *k)
{
    for (size_t i = 0; i < s->flows.n; i++)
        if (!memcmp(&s->flows.v[i].key, k, sizeof *k))
            return (int64_t)i;
    return -1;
}
size_t flow_sends(const struct flow_store *s, size_t flow)
{
    return s->flows.v[flow].sends.n;
}
void flow_send(const struct flow_store *s, size_t flow, size_t i, struct flow_packet *out)
{
    *out = s->flows.v[flow].sends.v[i];
}
size_t flow_receives(const struct flow_store *s, size_t flow)
{
    return s->flows.v[flow].receives.n;
}
void flow_receive(const struct flow_store *s, size_t flow, size_t i, struct flow_packet *out)
{
    *out = s->flows.v[flow].receives.v[i];
}
bool flow_by_number(const struct flow_store *s, uint32_t number, struct flow_packet *out, bool *is_send)
{
    for (size_t f = 0; f < s->flows.n; f++)
        for (int send = 0; send < 2; send++) {
            const struct flow_packet *v = send ? s->flows.v[f].sends.v : s->flows.v[f].receives.v;
            for (size_t i = 0; i < (send ? s->flows.v[f].sends.n : s->flows.v[f].receives.n); i++)
                if (v[i].number == number) {
                    *out = v[i];
                    if (is_send)
                        *is_send = send;
                    return true;
                }
        }
    return false;
}
size_t flow_wakes(const struct flow_store *s)
{
    return s->wakes.n;
}
void flow_wake(const struct flow_store *s, size_t i, struct flow_wake *out)
{
    *out = s->wakes.v[i];
}
size_t flow_addresses(const struct flow_store *s, const struct flow_address **out)
{
    *out = s->addresses.v;
    return s->addresses.n;
}
bool flow_explain(
    const struct flow_store *receiver, const struct flow_packet *receive, const struct flow_store *sender, struct flow_packet *send)
{
    int64_t f = flow_lookup(sender, &receiver->flows.v[receive->flow].key);
    for (size_t i = 0; f >= 0 && i < sender->flows.v[f].sends.n; i++)
        if (sender->flows.v[f].sends.v[i].seq_end == receive->seq_end) {
            *send = sender->flows.v[f].sends.v[i];
            return true;
        }
    return false;
}
bool flow_may_send(const struct flow_store *s, const struct flow_key *k)
{
    int64_t f = flow_lookup(s, k);
    return f >= 0 && s->flows.v[f].sends.n;
}
const char *flow_format_endpoint(const struct flow_key *k, bool source, char *buf, size_t n)
{
    snprintf(buf, n, "host%d:%d", source ? k->saddr[0] : k->daddr[0], source ? k->sport : k->dport);
    return buf;
}

int64_t clock_to_reference(const struct clock_map *m, int64_t t)
{
    if (!m->n)
        return t;
    const struct clock_piece *p = m->pieces;
    return t + p->shift + (int64_t)(((__int128)(t - p->t0) * p->slope_q62) >> 62);
}
int64_t clock_from_reference(const struct clock_map *m, int64_t t)
{
    /* The inverse is only good to a nanosecond: here always one off, alternating. */
    int64_t lo = t - 2000000000000, hi = t + 2000000000000;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (clock_to_reference(m, mid) < t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo + (t % 2 ? 1 : -1);
}

/* ---- making hosts ---------------------------------------------------------------------------------------------------------- */

static int32_t make_row(struct graph *g, int32_t tid, const char *name, int64_t begin)
{
    vec_push(
        &g->rows, ((struct made_row){.row = {.tid = tid, .idle_cpu = -1, .name = name, .first_name = name, .begin = begin, .end = begin}}));
    return (int32_t)g->rows.n - 1;
}

static struct made_interval *make(struct graph *g, int32_t row, int64_t end, uint8_t state)
{
    struct made_row *r = &g->rows.v[row];
    vec_push(&r->intervals, ((struct made_interval){.iv = {.begin = r->row.end, .end = end, .state = state, .cpu = 0}}));
    r->row.end = end;
    return &r->intervals.v[r->intervals.n - 1];
}

static uint32_t make_flow(struct flow_store *s, uint8_t from, uint16_t sport, uint8_t to, uint16_t dport)
{
    struct made_flow f = {.key = {.family = 4, .protocol = 6, .sport = sport, .dport = dport, .saddr = {from}, .daddr = {to}}};
    int64_t at = flow_lookup(s, &f.key);
    if (at >= 0)
        return (uint32_t)at;
    vec_push(&s->flows, f);
    return (uint32_t)s->flows.n - 1;
}

static uint32_t make_send(struct flow_store *s, uint32_t flow, int64_t ts, uint64_t seq_end, int32_t row)
{
    struct flow_packet p = {
        .ts = ts, .seq_end = seq_end, .bytes = 10, .number = s->numbers++, .row = row, .origin = FLOW_BY_THREAD, .flow = flow};
    vec_push(&s->flows.v[flow].sends, p);
    return p.number;
}

static uint32_t make_receive(struct flow_store *s, uint32_t flow, int64_t ts, uint64_t seq_end, int32_t row)
{
    struct flow_packet p = {.ts = ts, .seq_end = seq_end, .bytes = 10, .number = s->numbers++, .row = row, .flow = flow};
    vec_push(&s->flows.v[flow].receives, p);
    return p.number;
}

/* The wait ends by the packet; returns nothing: the store's newest wake is it. */
static void make_wake(struct flow_store *s, struct made_interval *wait, int32_t row, uint32_t receive)
{
    wait->cause = (struct graph_cause){.kind = GRAPH_CAUSE_PACKET, .wake = (uint32_t)s->wakes.n};
    vec_push(&s->wakes, ((struct flow_wake){.row = row, .ts = wait->iv.end, .receive = receive}));
}

static void make_address(struct flow_store *s, uint8_t address)
{
    vec_push(&s->addresses, ((struct flow_address){.family = 4, .addr = {address}}));
}

static void drop(struct graph *g, struct flow_store *s)
{
    for (size_t i = 0; i < g->rows.n; i++)
        vec_free(&g->rows.v[i].intervals);
    vec_free(&g->rows);
    vec_free(&g->losses);
    for (size_t i = 0; i < s->flows.n; i++) {
        vec_free(&s->flows.v[i].sends);
        vec_free(&s->flows.v[i].receives);
    }
    vec_free(&s->flows);
    vec_free(&s->wakes);
    vec_free(&s->addresses);
}

/* b's clock: 1 s ahead of the reference and 100 ppm too fast, at time 0. */
static const struct clock_piece ahead = {
    .begin = 0, .end = INT64_MAX / 2, .t0 = 1000000000, .shift = -1000000000, .slope_q62 = -((INT64_C(1) << 62) / 10001)};
static const struct clock_map map_b = {.host = 1, .pieces = &ahead, .n = 1};
static const struct clock_piece same = {.begin = 0, .end = INT64_MAX / 2};
static const struct clock_map map_a = {.host = 0, .pieces = &same, .n = 1};

static int64_t on_b(int64_t reference)
{
    return 1000000000 + reference + reference / 10000;
}

struct world {
    struct graph a, b;
    struct flow_store fa, fb;
    struct path_local_host hosts[2];
    struct path_local *local;
    int32_t client, server;
};

static void join(struct world *w)
{
    w->hosts[0] = (struct path_local_host){"a", &w->a, &w->fa, &map_a};
    w->hosts[1] = (struct path_local_host){"b", &w->b, &w->fb, &map_b};
    make_address(&w->fa, 1);
    make_address(&w->fb, 2);
    w->local = path_local_new(w->hosts, 2);
}

static void leave(struct world *w)
{
    path_local_free(w->local);
    drop(&w->a, &w->fa);
    drop(&w->b, &w->fb);
}

static struct path *walk(struct world *w, int32_t host, int32_t row, int64_t begin, int64_t end)
{
    struct path *p;
    struct err e = {0};
    struct path_options options = {.begin = begin, .end = end};
    int code = path_walk(path_local_source(w->local), (struct path_row){host, row}, &options, &p, &e);
    if (code)
        fail_msg("%s", e.text);
    assert_true(path_covers(p, &e));
    return p;
}

static void expect(const struct path *p, size_t i, int32_t host, int64_t begin, int64_t end, int state)
{
    assert_true(i < p->n_segments);
    const struct path_segment *s = &p->segments[i];
    if (s->row.host != host || llabs(s->begin - begin) > 2 || llabs(s->end - end) > 2 || s->state != state)
        fail_msg(
            "segment %d is host %d %lld-%lld %s", (int)i, s->row.host, (long long)s->begin, (long long)s->end, graph_state_name(s->state));
}

/* ---- tests ----------------------------------------------------------------------------------------------------------------- */

/* A client asks at 1 ms, sleeps at 2 ms; the server works from 3 to 40 ms; the answer wakes the client at 42 ms. */
static void make_call(struct world *w)
{
    w->client = make_row(&w->a, 10, "client", 0);
    w->server = make_row(&w->b, 20, "server", on_b(0));
    uint32_t ask_a = make_flow(&w->fa, 1, 1000, 2, 80), ask_b = make_flow(&w->fb, 1, 1000, 2, 80);
    uint32_t answer_a = make_flow(&w->fa, 2, 80, 1, 1000), answer_b = make_flow(&w->fb, 2, 80, 1, 1000);
    make_send(&w->fa, ask_a, 1000000, 10, w->client);
    make(&w->a, w->client, 2000000, GRAPH_RUNNING);
    struct made_interval *wait = make(&w->b, w->server, on_b(3000000), GRAPH_NETWORK);
    make_wake(&w->fb, wait, w->server, make_receive(&w->fb, ask_b, on_b(2900000), 10, w->server));
    make(&w->b, w->server, on_b(50000000), GRAPH_RUNNING);
    make_send(&w->fb, answer_b, on_b(40000000), 10, w->server);
    wait = make(&w->a, w->client, 42000000, GRAPH_NETWORK);
    make_wake(&w->fa, wait, w->client, make_receive(&w->fa, answer_a, 41900000, 10, w->client));
    make(&w->a, w->client, 50000000, GRAPH_RUNNING);
}

static void call(void **state)
{
    (void)state;
    struct world w = {0};
    make_call(&w);
    join(&w);
    struct path *p = walk(&w, 0, w.client, 0, 50000000);
    assert_int_equal(p->n_segments, 5);
    expect(p, 0, 0, 0, 1000000, GRAPH_RUNNING);
    expect(p, 1, 1, 1000000, 3000000, GRAPH_NETWORK);
    expect(p, 2, 1, 3000000, 40000000, GRAPH_RUNNING);
    expect(p, 3, 0, 40000000, 42000000, GRAPH_NETWORK);
    expect(p, 4, 0, 42000000, 50000000, GRAPH_RUNNING);
    assert_int_equal(p->segments[3].sender.host, 1);
    assert_int_equal(p->segments[3].sender.row, w.server);
    assert_string_equal(p->segments[3].detail, "host2:80 → host1:1000");
    assert_int_equal(p->n_gaps, 0);
    path_free(p);

    /* The send lies before the interval: the segment is clamped, the sender is named. */
    p = walk(&w, 0, w.client, 41000000, 50000000);
    assert_int_equal(p->n_segments, 2);
    expect(p, 0, 0, 41000000, 42000000, GRAPH_NETWORK);
    assert_int_equal(p->segments[0].sender.row, w.server);
    assert_int_equal(p->n_links, 1);
    assert_true(llabs(p->links[0].from_ts - 40000000) <= 2 && p->links[0].from.host == 1);
    path_free(p);

    /* The end lies within a wait: what the thread waited for then. */
    p = walk(&w, 0, w.client, 0, 30000000);
    expect(p, 2, 1, 3000000, 30000000, GRAPH_RUNNING);
    assert_int_equal(p->n_segments, 3);
    path_free(p);

    /* Every instant of a row belongs to exactly one interval although the conversion back is one nanosecond off. */
    const struct path_source *source = path_local_source(w.local);
    struct path_interval iv;
    for (int64_t t = 2999980; t < 3000020; t++) {
        assert_true(source->interval(source->arg, (struct path_row){1, w.server}, t, &iv));
        assert_true(iv.begin < t && t <= iv.end);
    }
    int64_t begin, end;
    assert_true(source->life(source->arg, (struct path_row){1, w.server}, &begin, &end));
    assert_false(source->interval(source->arg, (struct path_row){1, w.server}, begin, &iv));
    assert_true(source->interval(source->arg, (struct path_row){1, w.server}, begin + 1, &iv));
    assert_true(source->interval(source->arg, (struct path_row){1, w.server}, end, &iv));
    assert_false(source->interval(source->arg, (struct path_row){1, w.server}, end + 1, &iv));
    assert_false(source->life(source->arg, (struct path_row){1, 99}, &begin, &end));
    assert_false(source->life(source->arg, (struct path_row){2, 0}, &begin, &end));
    leave(&w);
}

static void nobody_sent_it(void **state)
{
    (void)state;
    struct world w = {0};
    make_call(&w);
    /* Another wait of the client, for a machine that was not traced. */
    uint32_t flow = make_flow(&w.fa, 9, 53, 1, 5000);
    struct made_interval *wait = make(&w.a, w.client, 60000000, GRAPH_NETWORK);
    make_wake(&w.fa, wait, w.client, make_receive(&w.fa, flow, 59000000, 10, w.client));
    make(&w.a, w.client, 61000000, GRAPH_RUNNING);
    /* And one for a message of b that b's trace does not have: it lost events there. */
    wait = make(&w.a, w.client, 70000000, GRAPH_NETWORK);
    make_wake(&w.fa, wait, w.client, make_receive(&w.fa, make_flow(&w.fa, 2, 80, 1, 1000), 69000000, 999, w.client));
    make(&w.a, w.client, 71000000, GRAPH_RUNNING);
    vec_push(&w.b.losses, ((struct graph_loss){.begin = on_b(68000000), .end = on_b(68500000), .count = 5}));
    /* A wait that nobody was seen to end, and one whose end was lost. */
    make(&w.a, w.client, 72000000, GRAPH_BLOCKED);
    make(&w.a, w.client, 73000000, GRAPH_RUNNING);
    make(&w.a, w.client, 74000000, GRAPH_BLOCKED)->cause.kind = GRAPH_CAUSE_LOST;
    make(&w.a, w.client, 75000000, GRAPH_RUNNING);
    join(&w);
    struct path *p = walk(&w, 0, w.client, 50000000, 75000000);
    assert_int_equal(p->n_gaps, 4);
    assert_int_equal(p->gaps[0].reason, PATH_UNTRACED_PEER);
    assert_string_equal(p->gaps[0].peer, "host9:53");
    assert_int_equal(p->gaps[1].reason, PATH_LOST_EVENTS);
    assert_int_equal(p->gaps[2].reason, PATH_NO_WAKER);
    assert_int_equal(p->gaps[3].reason, PATH_LOST_EVENTS);
    path_free(p);
    leave(&w);

    /* The clocks of the two hosts cannot be related. */
    w = (struct world){0};
    make_call(&w);
    join(&w);
    path_local_free(w.local);
    static const struct clock_map lonely = {.host = 1, .category = CLOCK_ABSENT, .pieces = NULL, .n = 0, .island = 1};
    w.hosts[1].map = &lonely;
    w.local = path_local_new(w.hosts, 2);
    p = walk(&w, 0, w.client, 0, 50000000);
    assert_int_equal(p->n_gaps, 1);
    assert_int_equal(p->gaps[0].reason, PATH_NO_CLOCK);
    path_free(p);
    leave(&w);
}

/* An acknowledgement clocks out more of what the sender has queued: the send belongs to interrupt context, and leads on to who acknowledged. */
static void clocked_by_receive(void **state)
{
    (void)state;
    struct world w = {0};
    w.client = make_row(&w.a, 10, "reader", 0);
    w.server = make_row(&w.b, 20, "writer", on_b(0));
    make(&w.b, w.server, on_b(5000000), GRAPH_RUNNING);
    make(&w.b, w.server, on_b(100000000), GRAPH_BLOCKED);
    uint32_t data_a = make_flow(&w.fa, 2, 80, 1, 1000), data_b = make_flow(&w.fb, 2, 80, 1, 1000);
    uint32_t ack_a = make_flow(&w.fa, 1, 1000, 2, 80), ack_b = make_flow(&w.fb, 1, 1000, 2, 80);
    make(&w.a, w.client, 20000000, GRAPH_RUNNING);
    make_send(&w.fa, ack_a, 15000000, 77, w.client);
    uint32_t acked = make_receive(&w.fb, ack_b, on_b(40000000), 77, w.server);
    make_send(&w.fb, data_b, on_b(40010000), 10, -1);
    struct flow_packet *send = &w.fb.flows.v[data_b].sends.v[0];
    send->origin = FLOW_BY_RECEIVE;
    send->receive = acked;
    struct made_interval *wait = make(&w.a, w.client, 60000000, GRAPH_NETWORK);
    make_wake(&w.fa, wait, w.client, make_receive(&w.fa, data_a, 59000000, 10, w.client));
    make(&w.a, w.client, 70000000, GRAPH_RUNNING);
    join(&w);
    struct path *p = walk(&w, 0, w.client, 0, 70000000);
    assert_int_equal(p->n_segments, 5);
    expect(p, 0, 0, 0, 15000000, GRAPH_RUNNING);
    expect(p, 1, 1, 15000000, 40000000, GRAPH_NETWORK);
    expect(p, 2, 1, 40000000, 40010000, GRAPH_RUNNING);
    expect(p, 3, 0, 40010000, 60000000, GRAPH_NETWORK);
    int32_t tid;
    const char *comm;
    const struct path_source *source = path_local_source(w.local);
    source->row_name(source->arg, p->segments[2].row, &tid, &comm);
    assert_int_equal(tid, -1);
    assert_non_null(p->segments[2].detail);
    assert_int_equal(p->segments[1].sender.row, w.client);
    assert_int_equal(p->n_gaps, 0);
    path_free(p);
    leave(&w);
}

/* The writer sleeps while its queued bytes leave: the message is the writer's, and took since it went to sleep. */
static void sent_while_asleep(void **state)
{
    (void)state;
    struct world w = {0};
    w.client = make_row(&w.a, 10, "reader", 0);
    w.server = make_row(&w.b, 20, "writer", on_b(0));
    make(&w.b, w.server, on_b(5000000), GRAPH_RUNNING);
    make(&w.b, w.server, on_b(100000000), GRAPH_TIMER);
    uint32_t data_a = make_flow(&w.fa, 2, 80, 1, 1000), data_b = make_flow(&w.fb, 2, 80, 1, 1000);
    make_send(&w.fb, data_b, on_b(40000000), 10, w.server);
    make_wake(&w.fa, make(&w.a, w.client, 60000000, GRAPH_NETWORK), w.client, make_receive(&w.fa, data_a, 59000000, 10, w.client));
    make(&w.a, w.client, 70000000, GRAPH_RUNNING);
    join(&w);
    struct path *p = walk(&w, 0, w.client, 0, 70000000);
    assert_int_equal(p->n_segments, 3);
    expect(p, 0, 1, 0, 5000000, GRAPH_RUNNING);
    expect(p, 1, 0, 5000000, 60000000, GRAPH_NETWORK);
    assert_int_equal(p->segments[1].sender.row, w.server);
    path_free(p);
    leave(&w);
}

/* A client that spins for the answer: running, polling, with a link to who answered. A message it did not ask for is only counted. A client that
 * sleeps for most of its messages does not poll. */
static void polling(void **state)
{
    (void)state;
    struct world w = {0};
    make_call(&w);
    int32_t spinner = make_row(&w.a, 11, "rank", 0), sleeper = make_row(&w.a, 12, "sleeper", 0);
    for (int i = 0; i < 10; i++) { /* what tells the two apart: messages that came awake, and asleep */
        make_receive(&w.fa, make_flow(&w.fa, 3, 99, 1, 2000), 100000 + i, (uint64_t)i, spinner);
        make_receive(&w.fa, make_flow(&w.fa, 3, 99, 1, 3000), 100000 + i, (uint64_t)i, sleeper);
    }
    make(&w.a, sleeper, 1000000, GRAPH_NETWORK);
    make(&w.a, sleeper, 50000000, GRAPH_RUNNING);
    make_send(&w.fa, make_flow(&w.fa, 1, 3000, 2, 80), 4000000, 10, sleeper);
    make_receive(&w.fa, make_flow(&w.fa, 2, 80, 1, 3000), 30000000, 10, sleeper);
    uint32_t ask_a = make_flow(&w.fa, 1, 2000, 2, 80), answer_a = make_flow(&w.fa, 2, 80, 1, 2000),
             answer_b = make_flow(&w.fb, 2, 80, 1, 2000);
    make_send(&w.fa, ask_a, 4000000, 10, spinner);
    make_receive(&w.fa, answer_a, 30000000, 10, spinner);
    make_send(&w.fb, answer_b, on_b(29000000), 10, w.server);
    make_receive(&w.fa, answer_a, 45000000, 20, spinner);
    make(&w.a, spinner, 10000000, GRAPH_RUNNING);
    make(&w.a, spinner, 12000000, GRAPH_PREEMPTED);
    make(&w.a, spinner, 50000000, GRAPH_RUNNING);
    join(&w);
    struct path *p = walk(&w, 0, spinner, 0, 50000000);
    assert_int_equal(p->n_segments, 5);
    expect(p, 0, 0, 0, 4000000, GRAPH_RUNNING);
    assert_null(p->segments[0].detail);
    expect(p, 1, 0, 4000000, 10000000, GRAPH_RUNNING);
    assert_string_equal(p->segments[1].detail, "polling");
    expect(p, 2, 0, 10000000, 12000000, GRAPH_PREEMPTED);
    expect(p, 3, 0, 12000000, 30000000, GRAPH_RUNNING);
    assert_string_equal(p->segments[3].detail, "polling");
    expect(p, 4, 0, 30000000, 50000000, GRAPH_RUNNING);
    assert_null(p->segments[4].detail);
    assert_int_equal(p->n_links, 1);
    assert_int_equal(p->links[0].kind, PATH_LINK_NETWORK);
    assert_int_equal(p->links[0].from.host, 1);
    assert_int_equal(p->links[0].from.row, w.server);
    assert_int_equal(p->links[0].to_ts, 30000000);
    path_free(p);
    size_t seen;
    assert_int_equal(path_local_unslept(w.local, (struct path_row){0, spinner}, 1000000, 50000000, &seen), 2);
    assert_int_equal(seen, 1);
    p = walk(&w, 0, sleeper, 0, 50000000);
    for (size_t i = 0; i < p->n_segments; i++)
        assert_null(p->segments[i].detail);
    path_free(p);
    leave(&w);
}

/* Threads of one host: wakeups, forks, and no idle CPU as a cause. */
static void one_host(void **state)
{
    (void)state;
    struct world w = {0};
    int32_t parent = make_row(&w.a, 1, "parent", 0), child = make_row(&w.a, 2, "child", 20), idle = make_row(&w.a, 0, "swapper/0", 0);
    w.a.rows.v[idle].row.idle_cpu = 0;
    make(&w.a, idle, 100, GRAPH_RUNNING);
    make(&w.a, parent, 25, GRAPH_RUNNING);
    make(&w.a, parent, 60, GRAPH_BLOCKED)->cause = (struct graph_cause){.kind = GRAPH_CAUSE_WAKEUP, .row = child, .ts = 60};
    make(&w.a, parent, 70, GRAPH_RUNNING);
    make(&w.a, parent, 80, GRAPH_BLOCKED)->cause = (struct graph_cause){.kind = GRAPH_CAUSE_WAKEUP, .row = idle, .ts = 80};
    make(&w.a, parent, 100, GRAPH_RUNNING);
    w.a.rows.v[child].origin = (struct graph_cause){.kind = GRAPH_CAUSE_FORK, .row = parent, .ts = 20};
    make(&w.a, child, 65, GRAPH_RUNNING);
    struct path_local_host host = {"a", &w.a, NULL, NULL};
    w.local = path_local_new(&host, 1);
    struct path *p = walk(&w, 0, parent, 0, 100);
    assert_int_equal(p->n_segments, 5);
    expect(p, 0, 0, 0, 20, GRAPH_RUNNING);
    assert_int_equal(p->segments[1].row.row, child);
    assert_int_equal(p->segments[1].begin, 20);
    assert_int_equal(p->segments[1].end, 60);
    assert_int_equal(p->segments[3].state, GRAPH_BLOCKED);
    assert_int_equal(p->n_gaps, 1);
    assert_int_equal(p->links[0].kind, PATH_LINK_FORK);
    path_free(p);
    leave(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(call),
        cmocka_unit_test(nobody_sent_it),
        cmocka_unit_test(clocked_by_receive),
        cmocka_unit_test(sent_while_asleep),
        cmocka_unit_test(polling),
        cmocka_unit_test(one_host),
    };
    return cmocka_run_group_tests_name("path: join of stores", tests, NULL, NULL);
}
