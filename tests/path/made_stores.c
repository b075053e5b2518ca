/* SPDX-License-Identifier: MIT */
#include "made_stores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- stand-ins ---- */

size_t graph_rows(const struct graph *g)
{
    return g->rows.n;
}
void graph_row(const struct graph *g, int32_t row, struct graph_row *out)
{
    *out = g->rows.v[row].row;
}
size_t graph_containers(const struct graph *g, const struct graph_container **out)
{
    *out = NULL;
    return 0;
}
void graph_row_then(const struct graph *g, int32_t row, int64_t begin, int64_t end, struct graph_row *out)
{
    graph_row(g, row, out);
}
uint64_t graph_first(const struct graph *g, int32_t row)
{
    return g->rows.v[row].intervals.n ? 0 : GRAPH_NO_INTERVAL;
}
uint64_t graph_last(const struct graph *g, int32_t row)
{
    return g->rows.v[row].intervals.n ? g->rows.v[row].intervals.n - 1 : GRAPH_NO_INTERVAL;
}
uint64_t graph_next(const struct graph *g, int32_t row, uint64_t interval)
{
    return interval + 1 < g->rows.v[row].intervals.n ? interval + 1 : GRAPH_NO_INTERVAL;
}
uint64_t graph_previous(const struct graph *g, int32_t row, uint64_t interval)
{
    return interval ? interval - 1 : GRAPH_NO_INTERVAL;
}
void graph_interval(const struct graph *g, int32_t row, uint64_t i, struct graph_interval *out)
{
    *out = i < g->rows.v[row].intervals.n ? g->rows.v[row].intervals.v[i].iv : (struct graph_interval){.cpu = -1};
}
void graph_interval_bare(const struct graph *g, int32_t row, uint64_t i, struct graph_interval *out)
{
    graph_interval(g, row, i, out);
    if (out->state == GRAPH_PREEMPTED) {
        out->cpu = -1;
        out->detail = NULL;
    }
}
uint64_t graph_find(const struct graph *g, int32_t row, int64_t ts)
{
    for (size_t i = 0; i < g->rows.v[row].intervals.n; i++)
        if (g->rows.v[row].intervals.v[i].iv.begin < ts && ts <= g->rows.v[row].intervals.v[i].iv.end)
            return i;
    return GRAPH_NO_INTERVAL;
}
uint64_t graph_find_bare(const struct graph *g, int32_t row, int64_t ts, struct graph_interval *out)
{
    uint64_t i = graph_find(g, row, ts);
    if (i != GRAPH_NO_INTERVAL)
        graph_interval_bare(g, row, i, out);
    return i;
}
void graph_interval_cause(const struct graph *g, int32_t row, uint64_t i, struct graph_cause *out)
{
    *out = i < g->rows.v[row].intervals.n ? g->rows.v[row].intervals.v[i].cause : (struct graph_cause){.row = -1};
}
void graph_row_origin(const struct graph *g, int32_t row, struct graph_cause *out)
{
    *out = g->rows.v[row].origin;
}
bool graph_has_stacks(const struct graph *g)
{
    return false;
}
bool graph_wait_stack(const struct graph *g, int32_t row, int64_t begin, struct graph_stack *out)
{
    return false;
}
bool graph_running_stack(const struct graph *g, int32_t row, int64_t begin, int64_t end, struct graph_stack *out)
{
    return false;
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
bool flow_by_number(const struct flow_store *s, uint64_t number, struct flow_packet *out, bool *is_send)
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
struct flow_key flow_key_reverse(const struct flow_key *k)
{
    struct flow_key back = {.family = k->family, .protocol = k->protocol, .sport = k->dport, .dport = k->sport};
    memcpy(back.saddr, k->daddr, sizeof back.saddr);
    memcpy(back.daddr, k->saddr, sizeof back.daddr);
    return back;
}
uint32_t flow_connection(const struct flow_store *s, size_t flow)
{
    struct flow_key back = flow_key_reverse(&s->flows.v[flow].key);
    int64_t other = flow_lookup(s, &back);
    return other >= 0 && other < (int64_t)flow ? (uint32_t)other : (uint32_t)flow;
}
/* Returns whether the packet is a message of the row. */
static bool concerns(const struct flow_packet *p, bool send, int32_t row)
{
    return p->bytes && p->row == row && (!send || p->origin == FLOW_BY_THREAD);
}
size_t flow_messages(const struct flow_store *s, int32_t row, size_t *receives)
{
    size_t sends = 0;
    *receives = 0;
    for (size_t f = 0; f < s->flows.n && row >= 0; f++) {
        for (size_t i = 0; i < s->flows.v[f].sends.n; i++)
            sends += concerns(&s->flows.v[f].sends.v[i], true, row);
        for (size_t i = 0; i < s->flows.v[f].receives.n; i++)
            *receives += concerns(&s->flows.v[f].receives.v[i], false, row);
    }
    return sends + *receives;
}
static bool is_reply(const struct flow_store *s, const struct flow_packet *p, bool send)
{
    struct flow_packet received;
    return send && p->origin == FLOW_BY_RECEIVE && flow_by_number(s, p->receive, &received, NULL) &&
        received.ts <= p->ts;
}
struct made_order {
    int64_t ts;
    uint32_t second;
    struct flow_packet packet;
    bool send;
};
static int by_order(const void *pa, const void *pb)
{
    const struct made_order *a = pa, *b = pb;
    return a->ts != b->ts ? (a->ts > b->ts) - (a->ts < b->ts) : (a->second > b->second) - (a->second < b->second);
}
/* Number i of the row's messages, or of all replies (row < 0); how many there are. */
static size_t in_order(const struct flow_store *s, int32_t row, size_t i, struct flow_packet *out, bool *is_send)
{
    VEC(struct made_order) all = {0};
    for (size_t f = 0; f < s->flows.n; f++)
        for (int send = 0; send < 2; send++) {
            const struct flow_packet *v = send ? s->flows.v[f].sends.v : s->flows.v[f].receives.v;
            for (size_t k = 0; k < (send ? s->flows.v[f].sends.n : s->flows.v[f].receives.n); k++)
                if (row < 0 ? is_reply(s, &v[k], send) : concerns(&v[k], send, row))
                    vec_push(&all, ((struct made_order){v[k].ts, row < 0 ? v[k].receive : v[k].number, v[k], send}));
        }
    size_t n = all.n;
    if (n)
        qsort(all.v, n, sizeof *all.v, by_order);
    if (i < n && out)
        *out = all.v[i].packet;
    if (i < n && is_send)
        *is_send = all.v[i].send;
    vec_free(&all);
    return n;
}
void flow_message(const struct flow_store *s, int32_t row, size_t i, struct flow_packet *out, bool *is_send)
{
    in_order(s, row, i, out, is_send);
}
size_t flow_replies(const struct flow_store *s)
{
    return in_order(s, -1, SIZE_MAX, NULL, NULL);
}
void flow_reply(const struct flow_store *s, size_t i, struct flow_packet *out)
{
    in_order(s, -1, i, out, NULL);
}
size_t flow_asks(const struct flow_store *s, int32_t row)
{
    return row ? 0 : s->asks.n;
}
void flow_ask(const struct flow_store *s, int32_t row, size_t i, struct flow_ask *out)
{
    *out = s->asks.v[i];
}
uint64_t flow_wakes(const struct flow_store *s)
{
    return s->wakes.n;
}
void flow_wake(const struct flow_store *s, uint64_t i, struct flow_wake *out)
{
    *out = s->wakes.v[i];
}
size_t flow_addresses(const struct flow_store *s, const struct flow_address **out)
{
    *out = s->addresses.v;
    return s->addresses.n;
}
size_t flow_peers(const struct flow_store *s, const struct flow_address **out)
{
    *out = s->peers.v;
    return s->peers.n;
}
bool flow_is_anonymous(const struct flow_key *k)
{
    return k->saddr[0] == 127;
}
void flow_message_key_of(const struct flow_store *s, const struct flow_packet *receive, struct flow_message_key *out)
{
    *out = (struct flow_message_key){.flow = s->flows.v[receive->flow].key, .seq_end = (uint32_t)receive->seq_end};
}
struct flow_window flow_window_at(const struct flow_message_key *k, int64_t at, uint64_t error_ns)
{
    (void)k;
    return (struct flow_window){
        .begin = INT64_MIN, .end = at + (int64_t)error_ns, .at = at, .error_ns = (int64_t)error_ns};
}
struct flow_window flow_window_any(void)
{
    return (struct flow_window){.begin = INT64_MIN, .end = INT64_MAX, .error_ns = -1};
}

size_t explained;

/* Finds the last send with that byte in the window; ambiguous if there are several. */
enum flow_answer flow_find_send(const struct flow_store *sender, const struct flow_message_key *m,
    const struct flow_window *w, struct flow_packet *send)
{
    int64_t f = flow_lookup(sender, &m->flow);
    enum flow_answer answer = FLOW_NOT_SENT;
    explained++;
    for (size_t k = 0; f < 0 && m->seq_end >= TRANSLATED && k < sender->flows.n; k++)
        for (size_t i = 0; i < sender->flows.v[k].sends.n; i++)
            if (sender->flows.v[k].sends.v[i].seq_end == m->seq_end)
                f = (int64_t)k;
    for (size_t i = 0; f >= 0 && i < sender->flows.v[f].sends.n; i++) {
        const struct flow_packet *p = &sender->flows.v[f].sends.v[i];
        if ((uint32_t)p->seq_end - m->seq_end < p->bytes && p->origin != FLOW_PASSING && p->ts >= w->begin &&
            p->ts <= w->end) {
            *send = *p;
            answer = answer == FLOW_NOT_SENT ? FLOW_SENT : FLOW_AMBIGUOUS;
        }
    }
    return answer;
}
bool flow_may_send(const struct flow_store *s, const struct flow_key *k)
{
    int64_t f = flow_lookup(s, k);
    for (size_t i = 0; f >= 0 && i < s->flows.v[f].sends.n; i++)
        if (s->flows.v[f].sends.v[i].origin != FLOW_PASSING)
            return true;
    return false;
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
int64_t clock_error_at(const struct clock_map *m, int64_t t)
{
    (void)t;
    return m->n ? m->pieces[0].error_begin : 0;
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

/* ---- making hosts ---- */

int32_t make_row(struct graph *g, int32_t tid, const char *name, int64_t begin)
{
    vec_push(
        &g->rows, ((struct made_row){.row = {.tid = tid, .idle_cpu = -1, .name = name, .begin = begin, .end = begin}}));
    return (int32_t)g->rows.n - 1;
}

struct made_interval *make(struct graph *g, int32_t row, int64_t end, uint8_t state)
{
    struct made_row *r = &g->rows.v[row];
    vec_push(
        &r->intervals, ((struct made_interval){.iv = {.begin = r->row.end, .end = end, .state = state, .cpu = 0}}));
    r->row.end = end;
    return &r->intervals.v[r->intervals.n - 1];
}

uint32_t make_flow(struct flow_store *s, uint8_t from, uint16_t sport, uint8_t to, uint16_t dport)
{
    struct made_flow f = {
        .key = {.family = 4, .protocol = 6, .sport = sport, .dport = dport, .saddr = {from}, .daddr = {to}}};
    int64_t at = flow_lookup(s, &f.key);
    if (at >= 0)
        return (uint32_t)at;
    vec_push(&s->flows, f);
    return (uint32_t)s->flows.n - 1;
}

uint32_t make_send(struct flow_store *s, uint32_t flow, int64_t ts, uint64_t seq_end, int32_t row)
{
    struct flow_packet p = {.ts = ts,
        .seq_end = seq_end,
        .bytes = 10,
        .number = s->numbers++,
        .row = row,
        .origin = FLOW_BY_THREAD,
        .flow = flow};
    vec_push(&s->flows.v[flow].sends, p);
    return p.number;
}

uint32_t make_receive(struct flow_store *s, uint32_t flow, int64_t ts, uint64_t seq_end, int32_t row)
{
    struct flow_packet p = {
        .ts = ts, .seq_end = seq_end, .bytes = 10, .number = s->numbers++, .row = row, .flow = flow};
    vec_push(&s->flows.v[flow].receives, p);
    return p.number;
}

void make_wake(struct flow_store *s, struct made_interval *wait, int32_t row, uint32_t receive)
{
    wait->cause = (struct graph_cause){.kind = GRAPH_CAUSE_PACKET, .wake = (uint32_t)s->wakes.n};
    vec_push(&s->wakes, ((struct flow_wake){.row = row, .ts = wait->iv.end, .receive = receive}));
}

void make_address(struct flow_store *s, uint8_t address)
{
    vec_push(&s->addresses, ((struct flow_address){.family = 4, .addr = {address}}));
}

void make_peer(struct flow_store *s, uint8_t address)
{
    vec_push(&s->peers, ((struct flow_address){.family = 4, .addr = {address}}));
}

void drop(struct graph *g, struct flow_store *s)
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
    vec_free(&s->asks);
    vec_free(&s->addresses);
    vec_free(&s->peers);
}
