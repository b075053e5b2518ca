/* SPDX-License-Identifier: MIT */
/* Flows: one line per direction of a connection that a traced host sent or received. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "views/view.h"

enum { MOST_DELAYS = 4096 };

struct row {
    struct flow_key key;
    int32_t sender, receiver; /* hosts; -1: not traced */
    uint64_t sent, received, bytes, retransmitted;
    int64_t first, last;   /* reference clock */
    int64_t least, median; /* delay in ns; -1: unknown */
};
struct rows {
    VEC(struct row) v;
};

static const struct tsp_column columns[] = {{0, "Source", "Address and port", "STRING"},
    {1, "Destination", "Address and port", "STRING"}, {2, "Protocol", "Transport", "STRING"},
    {3, "Sender", "Machine that sent", "STRING"}, {4, "Receiver", "Machine that received", "STRING"},
    {5, "Sent", "Packets sent", "NUMBER"}, {6, "Received", "Packets received", "NUMBER"},
    {7, "Bytes", "Payload", "BINARY_NUMBER"}, {8, "Retransmitted", "Packets that carried nothing new", "NUMBER"},
    {9, "Least delay (ns)", "From send to receive, on the common clock", "DURATION"},
    {10, "Median delay (ns)", "From send to receive, on the common clock", "DURATION"},
    {11, "First", "First packet", "TIMESTAMP"}, {12, "Last", "Last packet", "TIMESTAMP"}};

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void see(struct row *r, int64_t t)
{
    r->first = t < r->first ? t : r->first;
    r->last = t > r->last ? t : r->last;
}

static void add_sends(const struct view_host *h, size_t flow, struct row *r)
{
    struct flow_packet p;
    r->sent = flow_sends(h->index->flows, flow);
    for (size_t i = 0; i < r->sent; i++) {
        flow_send(h->index->flows, flow, i, &p);
        r->bytes += p.bytes;
        r->retransmitted += p.retransmission;
        see(r, view_to_reference(h, p.ts));
    }
}

static bool find_send(const struct view_host *h, const struct flow_packet *receive, const struct view_host *from,
    struct flow_packet *send)
{
    struct flow_message_key key;
    flow_message_key_of(h->index->flows, receive, &key);
    struct flow_window w = flow_window_any();
    if (h == from || (h->map && from->map && h->map->n && from->map->n && h->map->island == from->map->island)) {
        int64_t at = h == from ? receive->ts : view_to_host(from, view_to_reference(h, receive->ts));
        uint64_t error = h == from
            ? 0
            : (uint64_t)clock_error_at(h->map, receive->ts) + (uint64_t)clock_error_at(from->map, at);
        w = flow_window_at(&key, at, error);
    }
    return flow_find_send(from->index->flows, &key, &w, send) != FLOW_NOT_SENT;
}

/* Finds delays of receives with a known send; above the limit, of every k-th. */
static void add_receives(const struct view_host *h, size_t flow, const struct view_host *from, struct row *r)
{
    struct flow_packet p, s;
    int64_t *delays = mem_alloc(sizeof *delays * MOST_DELAYS);
    size_t n = 0;
    size_t receives = flow_receives(h->index->flows, flow), step = receives / MOST_DELAYS + 1;
    for (size_t i = 0; i < receives; i++) {
        flow_receive(h->index->flows, flow, i, &p);
        if (p.way & (FLOW_WENT_ON | FLOW_CARRIES))
            continue;
        r->received++;
        see(r, view_to_reference(h, p.ts));
        if (!from)
            r->bytes += p.bytes;
        else if (i % step == 0 && find_send(h, &p, from, &s))
            delays[n++] = view_to_reference(h, p.ts) - view_to_reference(from, s.ts);
    }
    if (n) {
        qsort(delays, n, sizeof *delays, by_value);
        r->least = delays[0];
        r->median = delays[n / 2];
    }
    free(delays);
}

/* Returns whether the host received packets of the flow that were addressed to it. */
static bool stays(const struct view_host *h, int64_t flow)
{
    struct flow_tally sent, received;
    flow_tally(h->index->flows, (size_t)flow, INT64_MIN, INT64_MAX, &sent, &received);
    return received.packets > 0;
}

static int32_t receiver_of(const struct views *x, size_t sender, const struct flow_key *key, int64_t *flow)
{
    for (size_t i = 0; i < x->n_hosts; i++)
        if (x->hosts[i].index->flows && (*flow = flow_lookup(x->hosts[i].index->flows, key)) >= 0 &&
            stays(&x->hosts[i], *flow) && (i != sender || flow_may_send(x->hosts[i].index->flows, key)))
            return (int32_t)i;
    return -1;
}

static int by_first(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return x->first != y->first ? (x->first > y->first) - (x->first < y->first)
                                : memcmp(&x->key, &y->key, sizeof x->key);
}

static void add_flow(struct views *x, size_t host, size_t flow, struct rows *rows)
{
    const struct view_host *h = &x->hosts[host];
    struct row r = {
        .sender = (int32_t)host, .receiver = -1, .first = INT64_MAX, .last = INT64_MIN, .least = -1, .median = -1};
    int64_t other;
    flow_key(h->index->flows, flow, &r.key);
    if (flow_may_send(h->index->flows, &r.key)) {
        add_sends(h, flow, &r);
        if ((r.receiver = receiver_of(x, host, &r.key, &other)) >= 0)
            add_receives(&x->hosts[r.receiver], (size_t)other, h, &r);
    } else {
        for (size_t i = 0; i < x->n_hosts; i++)
            if (x->hosts[i].index->flows && flow_may_send(x->hosts[i].index->flows, &r.key))
                return; /* shown at its sender */
        if (!stays(h, (int64_t)flow))
            return; /* packets only forwarded by the host */
        r.sender = -1;
        r.receiver = (int32_t)host;
        add_receives(h, flow, NULL, &r);
    }
    vec_push(&rows->v, r);
}

static void *make(struct views *x)
{
    struct rows *rows = mem_zalloc(sizeof *rows);
    for (size_t i = 0; i < x->n_hosts; i++)
        for (size_t f = 0; x->hosts[i].index->flows && f < flow_count(x->hosts[i].index->flows); f++)
            add_flow(x, i, f, rows);
    if (rows->v.n)
        qsort(rows->v.v, rows->v.n, sizeof *rows->v.v, by_first);
    return rows;
}

static void close_rows(struct views *x, void *cache)
{
    struct rows *rows = cache;
    vec_free(&rows->v);
    free(rows);
}

static bool has_data(const struct view *self, const struct view_host *h)
{
    return h->index->flows && flow_count(h->index->flows);
}

struct lines {
    const struct views *x;
    const struct rows *rows;
};

static void put_host(const struct views *x, int32_t host, struct text *out)
{
    text_puts(out, host < 0 ? "not traced" : x->hosts[host].index->name);
}

static void cell(void *arg, size_t number, size_t column, struct text *out)
{
    const struct lines *s = arg;
    const struct row *r = &s->rows->v.v[number];
    char buf[64];
    switch (column) {
    case 0: text_puts(out, flow_format_endpoint(&r->key, true, buf, sizeof buf)); break;
    case 1: text_puts(out, flow_format_endpoint(&r->key, false, buf, sizeof buf)); break;
    case 2: text_puts(out, r->key.protocol == 6 ? "TCP" : r->key.protocol == 17 ? "UDP" : "other"); break;
    case 3: put_host(s->x, r->sender, out); break;
    case 4: put_host(s->x, r->receiver, out); break;
    case 5: text_u64(out, r->sent); break;
    case 6: text_u64(out, r->received); break;
    case 7: text_u64(out, r->bytes); break;
    case 8: text_u64(out, r->retransmitted); break;
    case 9:
    case 10:
        if (r->least >= 0)
            text_i64(out, column == 9 ? r->least : r->median);
        break;
    default: text_i64(out, column == 11 ? r->first : r->last);
    }
}

static int64_t time_of(void *arg, size_t number)
{
    const struct lines *s = arg;
    return s->rows->v.v[number].first;
}

static void table(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_table *t)
{
    struct lines *l = arena_new(q->http->arena, struct lines, 1);
    *l = (struct lines){x, view_cache(x, self, make)};
    t->rows = l->rows->v.n;
    t->arg = l;
    t->cell = cell;
    t->time = time_of;
}

const struct view view_flows = {
    .provider = {.id = "weft.flows",
        .name = "Flows",
        .description = "Connections: packets, bytes, retransmissions and delays per direction",
        .type = "TABLE"},
    .host_has_data = has_data,
    VIEW_COLUMNS(columns),
    .table = table,
    .close = close_rows,
};
