/* SPDX-License-Identifier: MIT */
/* Local stores as a source of graphs. Rows and their states come from the graph stores, causes of messages from the
 * flow stores of all hosts. All returned times are converted to the reference clock. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/search.h"
#include "clock/clock.h"
#include "flow/flow.h"
#include "graph/graph.h"
#include "path/path.h"
#include "path/senders.h"
#include "path/traffic.h"

/* Flags in the id of an interval: a stretch of polling, of the list with assumed ones or of that without. */
#define POLL_BIT (UINT64_C(1) << (PATH_ID_INNER_BITS - 1))
#define ASSUMING_BIT (UINT64_C(1) << (PATH_ID_INNER_BITS - 2))
enum {
    MOST_NEIGHBOURS = 1024, /* intervals searched beside the one found; in an intact store the right one is adjacent */
    MOST_SENDS_LOOKED_AT = 64 /* sends searched before a row slept, for what its peer had acknowledged */
};

struct path_local {
    struct path_source source, assuming;
    struct path_local_host *hosts;
    _Atomic(struct path_traffic *) *traffic; /* by host, made on first use */
    size_t n;
    pthread_mutex_t lock; /* guards the making of traffic */
    struct path_senders *senders;
};

static struct path_traffic *traffic_of(struct path_local *l, int32_t host)
{
    struct path_traffic *t = atomic_load_explicit(&l->traffic[host], memory_order_acquire);
    if (t)
        return t;
    pthread_mutex_lock(&l->lock);
    t = atomic_load_explicit(&l->traffic[host], memory_order_relaxed);
    if (!t) {
        t = path_traffic_new(l->hosts[host].graph, l->hosts[host].flows);
        atomic_store_explicit(&l->traffic[host], t, memory_order_release);
    }
    pthread_mutex_unlock(&l->lock);
    return t;
}

static const struct path_local_host *host_of(const struct path_local *l, struct path_row row)
{
    return row.host >= 0 && (size_t)row.host < l->n && l->hosts[row.host].graph ? &l->hosts[row.host] : NULL;
}

/* ---- rows ---- */

static enum path_reply life(void *arg, struct path_row row, int64_t *begin, int64_t *end)
{
    const struct path_local_host *h = host_of(arg, row);
    struct graph_row r;
    if (!h || row.row < 0 || (size_t)row.row >= graph_rows(h->graph))
        return PATH_REPLY_NONE;
    graph_row(h->graph, row.row, &r);
    *begin = path_to_reference(h, r.begin);
    *end = path_to_reference(h, r.end);
    return PATH_REPLY_FOUND;
}

/* Interval of the graph, and its bounds on the reference clock. */
struct found {
    struct graph_interval iv;
    uint64_t i;
    int64_t begin, end;
};

/* Finds the interval of the graph whose converted bounds contain ts, by the host's clock t: the conversion back may be
 * off by a nanosecond, the comparison is not. */
static bool find_interval(const struct path_local_host *h, int32_t row, int64_t ts, int64_t t, struct found *f)
{
    f->i = graph_find_bare(h->graph, row, t, &f->iv);
    if (f->i == GRAPH_NO_INTERVAL) {
        f->i = graph_first(h->graph, row);
        graph_interval_bare(h->graph, row, f->i, &f->iv);
        f->i = t <= f->iv.begin ? f->i : graph_last(h->graph, row);
        graph_interval_bare(h->graph, row, f->i, &f->iv);
    }
    for (int steps = 0; steps < MOST_NEIGHBOURS && f->i != GRAPH_NO_INTERVAL; steps++) {
        f->begin = path_to_reference(h, f->iv.begin);
        f->end = path_to_reference(h, f->iv.end);
        if (f->begin < ts && ts <= f->end)
            return true;
        f->i = ts <= f->begin ? graph_previous(h->graph, row, f->i) : graph_next(h->graph, row, f->i);
        graph_interval_bare(h->graph, row, f->i, &f->iv);
    }
    return false; /* intervals out of order: a damaged store */
}

/* Cuts an interval in which the row was awake at the borders of the polling stretches around ts, to the piece that
 * contains ts. A stretch that counts as a wait is one piece, whatever the row did in it. */
static void cut_polling(struct path_local *l, struct path_row row, int64_t ts, int64_t t, bool assuming,
    struct graph_interval *iv, struct path_interval *out)
{
    const struct path_local_host *h = &l->hosts[row.host];
    struct path_traffic *traffic = traffic_of(l, row.host);
    size_t i = path_traffic_poll_find(traffic, row.row, t - (t > INT64_MIN), assuming);
    const struct path_traffic_poll *poll;
    while ((poll = path_traffic_poll(traffic, row.row, i, assuming)) && path_to_reference(h, poll->end) < ts)
        i++;
    const struct path_traffic_poll *before = i ? path_traffic_poll(traffic, row.row, i - 1, assuming) : NULL;
    if (before && before->end > iv->begin && (iv->state == GRAPH_RUNNING || before->wait))
        iv->begin = before->end;
    if (!poll || poll->begin >= iv->end || (iv->state != GRAPH_RUNNING && !poll->wait))
        return;
    if (ts <= path_to_reference(h, poll->begin)) {
        iv->end = poll->begin;
        return;
    }
    iv->begin = poll->wait || poll->begin > iv->begin ? poll->begin : iv->begin;
    iv->detail = "polling";
    if (poll->wait) {
        out->state = GRAPH_NETWORK;
        out->assumed = poll->assumed;
        out->cpu = -1;
    }
    if (poll->wait || poll->end <= iv->end) {
        iv->end = poll->end;
        out->polling = true;
        out->id = POLL_BIT | (assuming ? ASSUMING_BIT : 0) | i;
    }
}

/* Softirq work between a receive and the resulting send. Such rows are entered only at the time of a send. */
static bool reply_interval(struct path_local *l, struct path_row row, int64_t ts, struct path_interval *out)
{
    const struct path_local_host *h = &l->hosts[row.host];
    const struct path_traffic *traffic = traffic_of(l, row.host);
    if (row.row != PATH_ROW_UNKNOWN_CPU || ts == INT64_MIN)
        return false;
    for (int64_t t = path_from_reference(h, ts), d = -2; d <= 2; d++) {
        int64_t near, number = -1;
        struct path_traffic_reply reply;
        if (!__builtin_add_overflow(t, d, &near) && path_to_reference(h, near) == ts)
            number = path_traffic_reply_at(traffic, near);
        if (number < 0 || !path_traffic_reply(traffic, (size_t)number, &reply))
            continue;
        int64_t begin = path_to_reference(h, reply.received);
        *out = (struct path_interval){.begin = begin < ts ? begin : ts - 1,
            .end = ts,
            .state = GRAPH_RUNNING,
            .cpu = -1,
            .detail = "interrupt context",
            .id = (uint64_t)number};
        return true;
    }
    return false;
}

static enum path_reply find_state(
    struct path_local *l, struct path_row row, int64_t ts, bool assuming, struct path_interval *out)
{
    const struct path_local_host *h = host_of(l, row);
    struct found f;
    if (!h)
        return PATH_REPLY_NONE;
    if (row.row < 0)
        return reply_interval(l, row, ts, out) ? PATH_REPLY_FOUND : PATH_REPLY_NONE;
    int64_t t = path_from_reference(h, ts);
    if ((size_t)row.row >= graph_rows(h->graph) || !find_interval(h, row.row, ts, t, &f))
        return PATH_REPLY_NONE;
    struct graph_interval iv = f.iv;
    *out = (struct path_interval){.state = iv.state, .cpu = iv.cpu, .id = f.i};
    if (graph_is_awake(iv.state))
        cut_polling(l, row, ts, t, assuming, &iv, out);
    out->detail = iv.detail;
    out->begin = iv.begin == f.iv.begin ? f.begin : path_to_reference(h, iv.begin);
    out->end = iv.end == f.iv.end ? f.end : path_to_reference(h, iv.end);
    /* the store may have changed since the stretches were found */
    return out->begin < ts && ts <= out->end ? PATH_REPLY_FOUND : PATH_REPLY_NONE;
}

static enum path_reply interval(void *arg, struct path_row row, int64_t ts, int64_t bound, struct path_interval *out)
{
    (void)bound;
    return find_state(arg, row, ts, false, out);
}

static enum path_reply interval_assuming(
    void *arg, struct path_row row, int64_t ts, int64_t bound, struct path_interval *out)
{
    (void)bound;
    return find_state(arg, row, ts, true, out);
}

static void describe_preempted(void *arg, struct path_row row, struct path_interval *iv)
{
    const struct path_local_host *h = host_of(arg, row);
    struct graph_interval described;
    if (!h || row.row < 0)
        return;
    graph_interval(h->graph, row.row, iv->id, &described);
    iv->cpu = described.cpu;
    iv->detail = described.detail;
}

/* Sets the reason why no host sent it: the peer was not traced, or lost events there. */
static void not_sent(const struct path_local *l, int32_t host, const struct flow_packet *receive,
    const struct sender_peer *peer, struct path_cause *out)
{
    *out = (struct path_cause){.kind = PATH_CAUSE_NONE, .reason = PATH_UNTRACED_PEER, .label = peer->labels.address};
    struct path_message message;
    path_sender_message_of(&l->hosts[host], host, receive, &message);
    for (size_t i = 0; i < peer->sure; i++) {
        const struct path_local_host *h = &l->hosts[peer->senders[i]];
        if (!h->graph)
            continue;
        if (!path_comparable(&l->hosts[host], h))
            out->reason = PATH_NO_CLOCK;
        else if (path_sender_lost(h, &message))
            out->reason = PATH_LOST_EVENTS;
    }
}

static void cause_of_receive(struct path_local *l, int32_t host, uint64_t number, struct path_cause *out)
{
    const struct path_local_host *h = &l->hosts[host];
    struct flow_packet receive;
    struct sender_peer peer;
    struct sender from;
    bool is_send;
    *out = (struct path_cause){.kind = PATH_CAUSE_NONE, .reason = PATH_NO_WAKER};
    if (!h->flows || !flow_by_number(h->flows, number, &receive, &is_send) || is_send)
        return;
    if (!path_senders_find(l->senders, host, &receive, &from, &peer))
        not_sent(l, host, &receive, &peer, out);
    else if (!path_comparable(h, &l->hosts[from.host]))
        *out = (struct path_cause){.kind = PATH_CAUSE_NONE, .reason = PATH_NO_CLOCK, .label = peer.labels.address};
    else
        *out = (struct path_cause){.kind = PATH_CAUSE_NETWORK,
            .from = {from.host, path_sender_row(&from)},
            .ts = from.sent,
            .label = from.answer == FLOW_AMBIGUOUS ? peer.labels.unsure : peer.labels.label};
    out->packet = number + 1;
}

/* Finds the question that a receive of the row replies to: on the same connection, the last packet that the peer had
 * received from this host by then, if the row sent it before it slept. Retransmissions do not show when it was
 * asked. */
static void find_asked(
    const struct path_local_host *h, int32_t row, uint64_t number, int64_t slept, struct path_cause *out)
{
    struct flow_packet receive, send;
    bool is_send;
    if (!h->flows || !flow_by_number(h->flows, number, &receive, &is_send) || is_send)
        return;
    struct flow_key key;
    flow_key(h->flows, receive.flow, &key);
    bool tcp = key.protocol == FLOW_TCP;
    key = flow_key_reverse(&key);
    int64_t flow = flow_lookup(h->flows, &key);
    if (flow < 0)
        return;
    size_t n = flow_sends(h->flows, (size_t)flow);
    size_t i = search_first(k, 0, n, (flow_send(h->flows, (size_t)flow, k, &send), send.ts >= slept));
    for (int looked = 0; i && looked < MOST_SENDS_LOOKED_AT; looked++) {
        flow_send(h->flows, (size_t)flow, --i, &send);
        bool counts = (send.bytes || send.flags & FLOW_SYN) && send.origin == FLOW_BY_THREAD && !send.retransmission;
        if (!counts || (tcp && (int32_t)((uint32_t)send.seq_end - receive.ack) > 0))
            continue;
        out->is_reply = send.row == row;
        out->asked = path_to_reference(h, send.ts);
        return;
    }
}

/* ---- causes ---- */

static void cause_in_graph(struct path_local *l, struct path_row row, const struct graph_cause *c, int64_t begin,
    int64_t end, struct path_cause *out)
{
    const struct path_local_host *h = &l->hosts[row.host];
    struct graph_row from;
    struct flow_wake wake;
    *out = (struct path_cause){.kind = PATH_CAUSE_NONE, .reason = PATH_NO_WAKER};
    switch (c->kind) {
    case GRAPH_CAUSE_TERMINAL: out->kind = PATH_CAUSE_TERMINAL; break;
    case GRAPH_CAUSE_WAKEUP:
    case GRAPH_CAUSE_FORK:
        if (c->row < 0 || (size_t)c->row >= graph_rows(h->graph))
            break;
        graph_row(h->graph, c->row, &from);
        if (from.idle_cpu >= 0)
            break;
        *out = (struct path_cause){.kind = c->kind == GRAPH_CAUSE_FORK ? PATH_CAUSE_FORK : PATH_CAUSE_WAKEUP,
            .from = {row.host, c->row},
            .ts = path_to_reference(h, c->ts)};
        break;
    case GRAPH_CAUSE_PACKET:
        if (h->flows && c->wake < flow_wakes(h->flows)) {
            flow_wake(h->flows, c->wake, &wake);
            cause_of_receive(l, row.host, wake.receive, out);
            find_asked(h, row.row, wake.receive, begin, out);
        }
        break;
    case GRAPH_CAUSE_LOST: out->reason = PATH_LOST_EVENTS; break;
    }
    if (out->kind == PATH_CAUSE_NONE && out->reason == PATH_NO_WAKER && path_lost_within(h, begin, end))
        out->reason = PATH_LOST_EVENTS;
}

static void cause(
    void *arg, struct path_row row, const struct path_interval *iv, int64_t bound, bool origin, struct path_cause *out)
{
    (void)bound;
    struct path_local *l = arg;
    const struct path_local_host *h = host_of(l, row);
    struct graph_cause c;
    *out = (struct path_cause){.kind = PATH_CAUSE_NONE, .reason = PATH_NO_WAKER};
    if (!h)
        return;
    if (row.row < 0) {
        struct path_traffic_reply reply;
        if (origin && row.row == PATH_ROW_UNKNOWN_CPU &&
            path_traffic_reply(traffic_of(l, row.host), (size_t)iv->id, &reply))
            cause_of_receive(l, row.host, reply.receive, out);
    } else if ((size_t)row.row >= graph_rows(h->graph)) {
        return;
    } else if (origin) {
        struct graph_row r;
        graph_row(h->graph, row.row, &r);
        graph_row_origin(h->graph, row.row, &c);
        cause_in_graph(l, row, &c, r.begin, r.begin, out);
    } else if (iv->id & POLL_BIT) {
        const struct path_traffic_poll *poll = path_traffic_poll(
            traffic_of(l, row.host), row.row, (size_t)(iv->id & ~(POLL_BIT | ASSUMING_BIT)), iv->id & ASSUMING_BIT);
        if (poll) {
            cause_of_receive(l, row.host, poll->receive, out);
            find_asked(h, row.row, poll->receive, poll->begin, out);
        }
    } else if (iv->state == GRAPH_BLOCKED || iv->state == GRAPH_NETWORK || iv->state == GRAPH_UNKNOWN) {
        struct graph_interval wait;
        graph_interval_bare(h->graph, row.row, iv->id, &wait);
        graph_interval_cause(h->graph, row.row, iv->id, &c);
        cause_in_graph(l, row, &c, wait.begin, wait.end, out);
    }
}

/* ---- names, life ---- */

static const char *host_name(void *arg, int32_t host)
{
    const struct path_local *l = arg;
    return host >= 0 && (size_t)host < l->n ? l->hosts[host].name : "";
}

static void row_name(void *arg, struct path_row row, int64_t begin, int64_t end, int32_t *tid, const char **comm)
{
    const struct path_local_host *h = host_of(arg, row);
    *tid = -1;
    *comm = "";
    if (h && row.row >= 0 && (size_t)row.row < graph_rows(h->graph)) {
        struct graph_row r;
        graph_row_then(h->graph, row.row, path_from_reference(h, begin), path_from_reference(h, end), &r);
        *tid = r.tid;
        *comm = r.name;
    }
}

static const char *container(void *arg, struct path_row row)
{
    const struct path_local_host *h = host_of(arg, row);
    const struct graph_container *containers;
    struct graph_row r;
    if (!h || row.row < 0 || (size_t)row.row >= graph_rows(h->graph))
        return "";
    graph_row(h->graph, row.row, &r);
    graph_containers(h->graph, &containers);
    return r.container == GRAPH_NO_CONTAINER ? "" : containers[r.container].name;
}

static bool stack(void *arg, struct path_row row, int64_t begin, int64_t end, bool waits, struct graph_stack *out)
{
    const struct path_local_host *h = host_of(arg, row);
    return h && row.row >= 0 && path_local_stack(h, row.row, begin, end, waits, out);
}

struct path_local *path_local_new(const struct path_local_host *hosts, size_t n)
{
    struct path_local *l = mem_zalloc(sizeof *l);
    l->source = (struct path_source){.arg = l,
        .life = life,
        .interval = interval,
        .describe_preempted = describe_preempted,
        .cause = cause,
        .host_name = host_name,
        .row_name = row_name,
        .container = container,
        .stack = stack};
    l->assuming = l->source;
    l->assuming.interval = interval_assuming;
    l->hosts = mem_zalloc((n + 1) * sizeof *l->hosts);
    l->traffic = mem_zalloc((n + 1) * sizeof *l->traffic);
    l->n = n;
    if (n)
        memcpy(l->hosts, hosts, n * sizeof *hosts);
    pthread_mutex_init(&l->lock, NULL);
    l->senders = path_senders_new(l->hosts, n);
    return l;
}

const struct path_source *path_local_source(const struct path_local *l)
{
    return &l->source;
}

const struct path_source *path_local_source_assuming(const struct path_local *l)
{
    return &l->assuming;
}

struct path_senders *path_local_senders(const struct path_local *l)
{
    return l->senders;
}

const struct path_local_host *path_local_hosts(const struct path_local *l, size_t *n)
{
    *n = l->n;
    return l->hosts;
}

size_t path_local_unslept(const struct path_local *l, struct path_row row, int64_t begin, int64_t end, size_t *seen)
{
    const struct path_local_host *h = host_of(l, row);
    *seen = 0;
    if (!h || row.row < 0 || (size_t)row.row >= graph_rows(h->graph))
        return 0;
    struct path_traffic *t = traffic_of((struct path_local *)l, row.host);
    begin = path_from_reference(h, begin);
    end = path_from_reference(h, end);
    const struct path_traffic_poll *p;
    for (size_t i = path_traffic_poll_find(t, row.row, begin, false);
         (p = path_traffic_poll(t, row.row, i, false)) && p->end <= end; i++)
        ++*seen;
    return path_traffic_unslept(t, row.row, begin, end);
}

size_t path_local_assumable(const struct path_local *l, const struct path *p, int64_t *duration)
{
    size_t n = 0;
    int64_t counted = INT64_MIN; /* end of the last stretch; they do not overlap on a path */
    *duration = 0;
    for (size_t k = 0; k < p->n_segments; k++) {
        const struct path_segment *s = &p->segments[k];
        const struct path_local_host *h = host_of(l, s->row);
        const struct path_traffic_poll *a;
        if (!h || s->row.row < 0 || !graph_is_awake(s->state))
            continue;
        struct path_traffic *t = traffic_of((struct path_local *)l, s->row.host);
        int64_t begin = path_from_reference(h, s->begin), end = path_from_reference(h, s->end);
        for (size_t i = path_traffic_poll_find(t, s->row.row, begin, true);
             (a = path_traffic_poll(t, s->row.row, i, true)) && a->begin < end; i++) {
            int64_t from = a->begin > begin ? a->begin : begin, to = a->end < end ? a->end : end;
            if (!a->assumed || from >= to)
                continue;
            n += a->end != counted;
            counted = a->end;
            *duration += to - from;
        }
    }
    return n;
}

void path_local_free(struct path_local *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->n; i++)
        path_traffic_free(atomic_load(&l->traffic[i]));
    free(l->traffic);
    free(l->hosts);
    path_senders_free(l->senders);
    pthread_mutex_destroy(&l->lock);
    free(l);
}
