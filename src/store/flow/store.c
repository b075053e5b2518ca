/* SPDX-License-Identifier: MIT */
/* Flow store: opening and searching. Every index from the file is bounded when it is used: opening checks nothing. */
#include "flow/store.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/search.h"
#include "flow/messages.h"

uint64_t flow_key_hash(const struct flow_key *k)
{
    return map_hash(k, sizeof *k);
}

struct flow_key flow_key_reverse(const struct flow_key *k)
{
    struct flow_key back = *k;
    back.sport = k->dport;
    back.dport = k->sport;
    memcpy(back.saddr, k->daddr, sizeof back.saddr);
    memcpy(back.daddr, k->saddr, sizeof back.daddr);
    return back;
}

bool flow_is_anonymous(const struct flow_key *k)
{
    static const uint8_t none[16], loopback[16] = {[15] = 1};
    return k->family &&
        (!memcmp(k->saddr, none, sizeof none) || (k->family == 4 && k->saddr[0] == 127) ||
            (k->family == 6 && !memcmp(k->saddr, loopback, sizeof loopback)));
}

void flow_add_address(struct flow_addresses *list, const struct flow_key *k, bool source)
{
    struct flow_address a = {.family = k->family};
    memcpy(a.addr, source ? k->saddr : k->daddr, sizeof a.addr);
    if (!a.family)
        return;
    uint64_t *at;
    for (uint64_t h = map_hash(&a, sizeof a);; h++)
        if (!*(at = map_put(&list->seen, h, NULL)) || !memcmp(&list->v.v[*at - 1], &a, sizeof a))
            break;
    if (*at)
        return;
    *at = list->v.n + 1;
    vec_push(&list->v, a);
}

/* ---- opening ---- */

static const void *section(struct flow_chunk *s, const char *name, size_t item_bytes, size_t *n, bool *whole)
{
    const void *items = store_section(s->file, name, item_bytes, n);
    *whole &= items != NULL;
    return items;
}

static int open_chunk(struct flow_chunk *s, const struct chunk *of, struct err *e)
{
    int rc = store_open_unread_from(of->in, of->path, "flows", FLOW_VERSION, &s->file, e);
    if (rc)
        return rc;
    bool whole = true;
    size_t heads;
    const struct flow_disk_head *head = section(s, "head", sizeof *head, &heads, &whole);
    s->flows = section(s, "flows", sizeof *s->flows, &s->n_flows, &whole);
    s->packets = section(s, "packets", sizeof *s->packets, &s->n_packets, &whole);
    s->wakes = section(s, "wakes", sizeof *s->wakes, &s->n_wakes, &whole);
    s->addresses = section(s, "addresses", sizeof *s->addresses, &s->n_addresses, &whole);
    s->peers = section(s, "peers", sizeof *s->peers, &s->n_peers, &whole);
    s->by_number = section(s, "numbers", sizeof *s->by_number, &s->n_by_number, &whole);
    s->table = section(s, "keys", sizeof *s->table, &s->table_size, &whole);
    s->order = section(s, "order", sizeof *s->order, &s->n_order, &whole);
    s->carriers = section(s, "carriers", sizeof *s->carriers, &s->n_carriers, &whole);
    s->rows = section(s, "rows", sizeof *s->rows, &s->n_rows, &whole);
    s->messages = section(s, "messages", sizeof *s->messages, &s->n_messages, &whole);
    s->replies = section(s, "replies", sizeof *s->replies, &s->n_replies, &whole);
    s->asks = section(s, "asks", sizeof *s->asks, &s->n_asks, &whole);
    s->own = store_section(s->file, "own", sizeof *s->own, &s->n_own);
    if (!whole || heads != 1 || s->table_size & (s->table_size - 1) || s->table_size <= s->n_flows ||
        s->n_packets >= UINT32_MAX)
        return err_set(e, ERR_FORMAT, "%s: a table is missing or of a size that makes no sense", of->path);
    s->head = *head;
    return 0;
}

/* Numbers increase from chunk to chunk; the times of each give limits for all before and after. */
static int order_chunks(struct flow_store *s, const struct chunk *v, struct err *e)
{
    for (size_t i = 0; i < s->n; i++) {
        struct flow_chunk *c = &s->chunks[i];
        c->since = c->head.since;
        c->until = i && s->chunks[i - 1].until > c->head.until ? s->chunks[i - 1].until : c->head.until;
        if (i &&
            (c[-1].head.first_packet + c[-1].n_packets > c->head.first_packet ||
                c[-1].head.first_wake + c[-1].n_wakes > c->head.first_wake))
            return err_set(e, ERR_FORMAT, "%s: numbers packets that are in %s", v[i].path, v[i - 1].path);
    }
    for (size_t i = s->n; i-- > 1;)
        if (s->chunks[i].since < s->chunks[i - 1].since)
            s->chunks[i - 1].since = s->chunks[i].since;
    return 0;
}

int flow_open_list(const struct chunk *v, size_t n, struct flow_store **out, struct err *e)
{
    struct flow_store *s = mem_zalloc(sizeof *s);
    int rc = n ? 0 : err_set(e, ERR_NOTFOUND, "no chunks of flows");
    s->chunks = mem_zalloc(sizeof *s->chunks * (n + 1));
    s->rows = chunk_rows_new(v, n);
    s->sums = mem_zalloc(sizeof *s->sums * (chunk_rows_count(s->rows) + 1));
    pthread_mutex_init(&s->lock, NULL);
    for (size_t i = 0; i < n && !rc; i++) {
        s->n++;
        s->chunks[i].host_rows = v[i].rows ? chunk_rows_of(s->rows, i) : NULL;
        s->chunks[i].n_host_rows = v[i].n_rows;
        rc = open_chunk(&s->chunks[i], &v[i], e);
    }
    if (rc || (rc = order_chunks(s, v, e))) {
        flow_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

int flow_open(const char *path, struct flow_store **out, struct err *e)
{
    struct chunk only = {.path = path, .begin = INT64_MIN, .end = INT64_MAX};
    return flow_open_list(&only, 1, out, e);
}

int flow_intact(const struct flow_store *s, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < s->n && !rc; i++)
        rc = store_intact(s->chunks[i].file, e);
    return rc;
}

void flow_close(struct flow_store *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n && !s->is_tail; i++)
        if (s->chunks[i].file)
            store_close(s->chunks[i].file);
    flow_tables_free(atomic_load(&s->tables), s->n);
    for (size_t i = 0; s->rows && i < chunk_rows_count(s->rows); i++)
        free(atomic_load_explicit(&s->sums[i], memory_order_relaxed));
    free(s->sums);
    chunk_rows_free(s->rows);
    pthread_mutex_destroy(&s->lock);
    if (!s->is_tail)
        free(s->chunks);
    free(s);
}

void flow_tail(const struct flow_store *s, int64_t since, struct flow_store **out)
{
    struct flow_store *tail = mem_zalloc(sizeof *tail);
    size_t first = search_first(i, 0, s->n - 1, s->chunks[i].until >= since);
    pthread_mutex_init(&tail->lock, NULL);
    tail->is_tail = true;
    tail->since = since;
    tail->chunks = s->chunks + first;
    tail->n = s->n - first;
    *out = tail;
}

/* ---- flows ---- */

size_t flow_count(const struct flow_store *s)
{
    return s->n == 1 ? s->chunks->n_flows : flow_tables(s)->n_flows;
}

void flow_view_of(const struct flow_store *s, size_t flow, struct flow_view *out)
{
    out->store = s;
    if (s->n == 1) {
        out->only = (struct flow_place){.flow = (uint32_t)flow};
        out->places = &out->only;
        out->n = flow < s->chunks->n_flows;
        return;
    }
    const struct flow_tables *t = flow_tables(s);
    out->n = flow < t->n_flows ? t->first[flow + 1] - t->first[flow] : 0;
    out->places = out->n ? t->places + t->first[flow] : NULL;
}

size_t flow_places_until(const struct flow_view *v, int64_t ts)
{
    return search_first(i, 0, v->n, v->store->chunks[v->places[i].chunk].since > ts);
}

size_t flow_places_before(const struct flow_view *v, int64_t ts)
{
    return search_first(i, 0, v->n, v->store->chunks[v->places[i].chunk].until >= ts);
}

void flow_key(const struct flow_store *s, size_t flow, struct flow_key *out)
{
    struct flow_view v;
    flow_view_of(s, flow, &v);
    *out = v.n ? s->chunks[v.places->chunk].flows[v.places->flow].key : (struct flow_key){0};
}

static int64_t look_up(const struct flow_chunk *s, const struct flow_key *k)
{
    size_t mask = s->table_size - 1, at = flow_key_hash(k) & mask;
    for (size_t tries = s->table_size; tries && s->table[at]; tries--, at = (at + 1) & mask) {
        size_t flow = s->table[at] - 1;
        if (flow < s->n_flows && !memcmp(&s->flows[flow].key, k, sizeof *k))
            return (int64_t)flow;
    }
    return -1;
}

int64_t flow_lookup(const struct flow_store *s, const struct flow_key *k)
{
    if (s->n == 1)
        return look_up(s->chunks, k);
    const struct flow_tables *t = flow_tables(s);
    const uint64_t *at;
    for (uint64_t h = flow_key_hash(k); (at = map_find(&t->by_key, h)); h++) {
        struct flow_key found;
        flow_key(s, *at - 1, &found);
        if (!memcmp(&found, k, sizeof *k))
            return (int64_t)(*at - 1);
    }
    return -1;
}

uint32_t flow_connection(const struct flow_store *s, size_t flow)
{
    if (flow >= flow_count(s))
        return UINT32_MAX;
    return s->n == 1 ? s->chunks->flows[flow].connection : flow_tables(s)->connections[flow];
}

bool flow_may_send(const struct flow_store *s, const struct flow_key *k)
{
    struct flow_view v;
    int64_t f = flow_lookup(s, k);
    if (f < 0)
        return false;
    flow_view_of(s, (size_t)f, &v);
    for (size_t i = 0; i < v.n; i++)
        if (s->chunks[v.places[i].chunk].flows[v.places[i].flow].own)
            return true;
    return false;
}

/* ---- packets ---- */

struct flow_part flow_part(const struct flow_chunk *s, size_t flow)
{
    static const struct flow_disk_flow none;
    const struct flow_disk_flow *f = flow < s->n_flows ? &s->flows[flow] : &none;
    size_t first = f->first < s->n_packets ? f->first : s->n_packets, left = s->n_packets - first;
    uint32_t sends = f->sends < left ? f->sends : (uint32_t)left;
    left -= sends;
    size_t order = f->first_ordered < s->n_order ? f->first_ordered : s->n_order, ordered = s->n_order - order;
    return (struct flow_part){.sends = s->packets + first,
        .order = s->order + order,
        .n_order = f->ordered < ordered ? f->ordered : (uint32_t)ordered,
        .n_sends = sends,
        .receives = s->packets + first + sends,
        .n_receives = f->receives < left ? f->receives : (uint32_t)left};
}

static const struct flow_disk_packet NOTHING = {.number = UINT32_MAX, .row = -1, .flow = UINT32_MAX};

const struct flow_disk_packet *flow_packet_at(const struct flow_chunk *s, size_t at)
{
    return at < s->n_packets ? &s->packets[at] : &NOTHING;
}

void flow_unpack(
    const struct flow_store *s, size_t chunk, uint32_t turns, const struct flow_disk_packet *p, struct flow_packet *out)
{
    const struct flow_chunk *c = &s->chunks[chunk];
    uint32_t flow = p->flow;
    if (s->n > 1)
        flow = flow < c->n_flows ? flow_tables(s)->of[chunk][flow].flow : UINT32_MAX;
    *out = (struct flow_packet){.ts = p->ts,
        .seq_end = p->seq_end + turns * FLOW_TURN,
        .ack = p->ack,
        .bytes = p->bytes,
        .number = c->head.first_packet + p->number,
        .row = flow_host_row(c, p->row),
        .receive = p->origin == FLOW_BY_RECEIVE ? c->head.first_packet + p->number - p->back : FLOW_NO_PACKET,
        .flags = p->flags,
        .ip_id = p->ip_id,
        .origin = p->origin,
        .way = p->way,
        .retransmission = p->retransmission,
        .flow = flow};
}

void flow_unpack_of(const struct flow_store *s, size_t chunk, const struct flow_disk_packet *p, struct flow_packet *out)
{
    uint32_t turns = s->n > 1 && p->flow < s->chunks[chunk].n_flows ? flow_tables(s)->of[chunk][p->flow].turns : 0;
    flow_unpack(s, chunk, turns, p, out);
}

uint64_t flow_walk_count(const struct flow_view *v, bool sends)
{
    if (!v->n)
        return 0;
    struct flow_part last = flow_part_of(v, v->n - 1);
    const struct flow_place *place = &v->places[v->n - 1];
    return sends ? place->sends + last.n_sends : place->receives + last.n_receives;
}

const struct flow_disk_packet *flow_walk_find(struct flow_walk *w, uint64_t i)
{
    const struct flow_view *v = w->view;
    size_t past = search_first(k, 0, v->n, (w->sends ? v->places[k].sends : v->places[k].receives) > i);
    if (!past)
        return &NOTHING;
    struct flow_part part = flow_part_of(v, past - 1);
    w->place = past - 1;
    w->first = w->sends ? v->places[w->place].sends : v->places[w->place].receives;
    w->n = w->sends ? part.n_sends : part.n_receives;
    w->packets = w->sends ? part.sends : part.receives;
    return i - w->first < w->n ? &w->packets[i - w->first] : &NOTHING;
}

static void unpack_walked(struct flow_walk *w, uint64_t i, struct flow_packet *out)
{
    static const struct flow_place none;
    const struct flow_disk_packet *p = flow_walk_at(w, i);
    const struct flow_place *place = w->view->n ? &w->view->places[w->place] : &none;
    flow_unpack(w->view->store, place->chunk, place->turns, p, out);
}

size_t flow_sends(const struct flow_store *s, size_t flow)
{
    struct flow_view v;
    flow_view_of(s, flow, &v);
    return flow_walk_count(&v, true);
}

void flow_send(const struct flow_store *s, size_t flow, size_t i, struct flow_packet *out)
{
    struct flow_view v;
    flow_view_of(s, flow, &v);
    unpack_walked(&(struct flow_walk){.view = &v, .sends = true}, i, out);
}

size_t flow_receives(const struct flow_store *s, size_t flow)
{
    struct flow_view v;
    flow_view_of(s, flow, &v);
    return flow_walk_count(&v, false);
}

void flow_receive(const struct flow_store *s, size_t flow, size_t i, struct flow_packet *out)
{
    struct flow_view v;
    flow_view_of(s, flow, &v);
    unpack_walked(&(struct flow_walk){.view = &v}, i, out);
}

size_t flow_chunk_of(const struct flow_store *s, uint64_t number)
{
    size_t past = search_first(i, 0, s->n, s->chunks[i].head.first_packet > number);
    return past ? past - 1 : 0;
}

const struct flow_disk_packet *flow_numbered(const struct flow_chunk *c, uint64_t number)
{
    number -= c->head.first_packet;
    return number < c->n_by_number && c->by_number[number] < c->n_packets ? &c->packets[c->by_number[number]] : NULL;
}

bool flow_by_number(const struct flow_store *s, uint64_t number, struct flow_packet *out, bool *is_send)
{
    size_t chunk = flow_chunk_of(s, number);
    const struct flow_disk_packet *p = flow_numbered(&s->chunks[chunk], number);
    if (!p)
        return false;
    flow_unpack_of(s, chunk, p, out);
    if (is_send)
        *is_send = p->is_send;
    return true;
}

/* ---- wakes, addresses ---- */

uint64_t flow_wakes(const struct flow_store *s)
{
    const struct flow_chunk *last = &s->chunks[s->n - 1];
    return last->head.first_wake + last->n_wakes;
}

void flow_wake(const struct flow_store *s, uint64_t number, struct flow_wake *out)
{
    size_t past = search_first(i, 0, s->n, s->chunks[i].head.first_wake > number);
    const struct flow_chunk *c = &s->chunks[past ? past - 1 : 0];
    *out = (struct flow_wake){.row = -1, .receive = FLOW_NO_PACKET};
    number -= c->head.first_wake;
    if (number >= c->n_wakes)
        return;
    const struct flow_disk_wake *w = &c->wakes[number];
    *out = (struct flow_wake){.row = flow_host_row(c, w->row),
        .ts = w->ts,
        .receive = w->receive == UINT32_MAX ? FLOW_NO_PACKET : c->head.first_packet + w->receive};
}

size_t flow_addresses(const struct flow_store *s, const struct flow_address **out)
{
    if (s->n == 1) {
        *out = s->chunks->addresses;
        return s->chunks->n_addresses;
    }
    *out = flow_tables(s)->addresses;
    return flow_tables(s)->n_addresses;
}

size_t flow_peers(const struct flow_store *s, const struct flow_address **out)
{
    if (s->n == 1) {
        *out = s->chunks->peers;
        return s->chunks->n_peers;
    }
    *out = flow_tables(s)->peers;
    return flow_tables(s)->n_peers;
}

bool flow_is_ordered(const struct flow_key *k, const struct flow_disk_packet *p)
{
    if (!flow_is_own(p))
        return false;
    return !k->family || (k->protocol == FLOW_TCP ? !flow_carries(p) : p->ip_id != 0);
}

struct flow_rank flow_rank_of(const struct flow_key *k, const struct flow_disk_packet *p)
{
    if (k->family && k->protocol != FLOW_TCP)
        return (struct flow_rank){p->bytes, p->ip_id, 0};
    return (struct flow_rank){(uint32_t)p->seq_end, (uint32_t)p->ack, k->family ? p->ip_id : p->flags};
}

int flow_rank_compare(struct flow_rank x, struct flow_rank y)
{
    return order_of(x.a, y.a) ?: order_of(x.b, y.b) ?: order_of(x.c, y.c);
}

const char *flow_format_endpoint(const struct flow_key *k, bool source, char *buf, size_t n)
{
    char address[INET6_ADDRSTRLEN] = "?";
    const uint8_t *a = source ? k->saddr : k->daddr;
    if (k->family)
        inet_ntop(k->family == 6 ? AF_INET6 : AF_INET, a, address, sizeof address);
    snprintf(buf, n, k->family == 6 ? "[%s]:%u" : "%s:%u", address, source ? k->sport : k->dport);
    return buf;
}
