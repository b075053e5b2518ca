/* The flow store: opening and looking up. Every number from the file that leads somewhere is bounded when it is used:
 * opening looks at nothing. */
#include "flow/store.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "flow/messages.h"

uint64_t flow_key_hash(const struct flow_key *k)
{
    return map_hash(k, sizeof *k);
}

bool flow_is_anonymous(const struct flow_key *k)
{
    static const uint8_t none[16], loopback[16] = {[15] = 1};
    return k->family &&
        (!memcmp(k->saddr, none, sizeof none) || (k->family == 4 && k->saddr[0] == 127) ||
            (k->family == 6 && !memcmp(k->saddr, loopback, sizeof loopback)));
}

static const void *section(struct flow_store *s, const char *name, size_t item_bytes, size_t *n, bool *whole)
{
    const void *items = store_section(s->file, name, item_bytes, n);
    *whole &= items != NULL;
    return items;
}

int flow_open(const char *path, struct flow_store **out, struct err *e)
{
    struct flow_store *s = mem_zalloc(sizeof *s);
    int rc = store_open_unread(path, "flows", FLOW_VERSION, NULL, &s->file, e);
    if (rc) {
        free(s);
        return rc;
    }
    bool whole = true;
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
    if (!whole || s->table_size & (s->table_size - 1) || s->table_size <= s->n_flows || s->n_packets >= UINT32_MAX) {
        rc = err_set(e, ERR_FORMAT, "%s: a table is missing or of a size that makes no sense", path);
        flow_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

int flow_intact(const struct flow_store *s, struct err *e)
{
    return store_intact(s->file, e);
}

void flow_close(struct flow_store *s)
{
    if (!s)
        return;
    store_close(s->file);
    free(s);
}

size_t flow_count(const struct flow_store *s)
{
    return s->n_flows;
}

void flow_key(const struct flow_store *s, size_t flow, struct flow_key *out)
{
    *out = flow < s->n_flows ? s->flows[flow].key : (struct flow_key){0};
}

int64_t flow_lookup(const struct flow_store *s, const struct flow_key *k)
{
    size_t mask = s->table_size - 1, at = flow_key_hash(k) & mask;
    for (size_t tries = s->table_size; tries && s->table[at]; tries--, at = (at + 1) & mask) {
        size_t flow = s->table[at] - 1;
        if (flow < s->n_flows && !memcmp(&s->flows[flow].key, k, sizeof *k))
            return (int64_t)flow;
    }
    return -1;
}

uint32_t flow_connection(const struct flow_store *s, size_t flow)
{
    return flow < s->n_flows ? s->flows[flow].connection : UINT32_MAX;
}

struct flow_part flow_part(const struct flow_store *s, size_t flow)
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

const struct flow_disk_packet *flow_packet_at(const struct flow_store *s, size_t at)
{
    static const struct flow_disk_packet nothing = {
        .number = UINT32_MAX, .receive = UINT32_MAX, .row = -1, .flow = UINT32_MAX};
    return at < s->n_packets ? &s->packets[at] : &nothing;
}

void flow_unpack(const struct flow_disk_packet *p, struct flow_packet *out)
{
    *out = (struct flow_packet){.ts = p->ts,
        .seq_end = p->seq_end,
        .ack = p->ack,
        .bytes = p->bytes,
        .number = p->number,
        .row = p->row,
        .receive = p->receive,
        .flags = p->flags,
        .ip_id = p->ip_id,
        .origin = p->origin,
        .retransmission = p->retransmission,
        .flow = p->flow};
}

size_t flow_sends(const struct flow_store *s, size_t flow)
{
    return flow_part(s, flow).n_sends;
}

void flow_send(const struct flow_store *s, size_t flow, size_t i, struct flow_packet *out)
{
    flow_unpack(&flow_part(s, flow).sends[i], out);
}

size_t flow_receives(const struct flow_store *s, size_t flow)
{
    return flow_part(s, flow).n_receives;
}

void flow_receive(const struct flow_store *s, size_t flow, size_t i, struct flow_packet *out)
{
    flow_unpack(&flow_part(s, flow).receives[i], out);
}

bool flow_by_number(const struct flow_store *s, uint32_t number, struct flow_packet *out, bool *is_send)
{
    if (number >= s->n_by_number || s->by_number[number] >= s->n_packets)
        return false;
    const struct flow_disk_packet *p = &s->packets[s->by_number[number]];
    flow_unpack(p, out);
    if (is_send)
        *is_send = p->is_send;
    return true;
}

size_t flow_wakes(const struct flow_store *s)
{
    return s->n_wakes;
}

void flow_wake(const struct flow_store *s, size_t i, struct flow_wake *out)
{
    *out = (struct flow_wake){.row = s->wakes[i].row, .ts = s->wakes[i].ts, .receive = s->wakes[i].receive};
}

size_t flow_addresses(const struct flow_store *s, const struct flow_address **out)
{
    *out = s->addresses;
    return s->n_addresses;
}

size_t flow_peers(const struct flow_store *s, const struct flow_address **out)
{
    *out = s->peers;
    return s->n_peers;
}

bool flow_may_send(const struct flow_store *s, const struct flow_key *k)
{
    int64_t f = flow_lookup(s, k);
    return f >= 0 && s->flows[f].own > 0;
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
