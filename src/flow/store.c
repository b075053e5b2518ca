/* The flow store: opening, checking, looking up. */
#include "flow/store.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
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

/* One bit per packet number: is it a receive's? Looking the packet up instead would go to a random place of the largest table each time. */
static bool is_marked(const uint64_t *receives, const struct flow_store *s, uint32_t number)
{
    return number == UINT32_MAX || (number < s->n_by_number && receives[number / 64] >> number % 64 & 1);
}

enum { AHEAD = 16 };

/* The packets of a flow; marks the numbers of its receives. */
static const char *flow_defect(const struct flow_store *s, size_t f, uint64_t *receives)
{
    uint64_t high = 0;
    for (uint32_t i = 0; i < s->flows[f].sends + s->flows[f].receives; i++) {
        size_t at = s->flows[f].first + i;
        const struct flow_disk_packet *p = &s->packets[at];
        bool send = i < s->flows[f].sends;
        if (at + AHEAD < s->n_packets) /* numbers of one flow lie apart: what is waited for otherwise */
            __builtin_prefetch(&s->by_number[p[AHEAD].number < s->n_by_number ? p[AHEAD].number : 0]);
        if (p->flow != f || p->is_send != send || p->origin > FLOW_BY_UNKNOWN)
            return "a packet contradicts its flow";
        if (send && p->high < high)
            return "sequence numbers out of order";
        high = p->high;
        if (p->number >= s->n_by_number || s->by_number[p->number] != at)
            return "packet numbers out of order";
        receives[p->number / 64] |= (uint64_t)!send << p->number % 64;
    }
    return NULL;
}

static const char *references_defect(const struct flow_store *s, uint64_t *receives)
{
    const char *what;
    for (size_t f = 0; f < s->n_flows; f++)
        if ((what = flow_defect(s, f, receives)))
            return what;
    for (size_t i = 0; i < s->n_by_number; i++)
        if (s->by_number[i] != UINT32_MAX && s->by_number[i] >= s->n_packets)
            return "a packet number lies outside the table";
    for (size_t i = 0; i < s->n_wakes; i++)
        if (!is_marked(receives, s, s->wakes[i].receive))
            return "a wake by something that is no receive";
    for (size_t i = 0; i < s->n_packets; i++)
        if (!is_marked(receives, s, s->packets[i].receive))
            return "a send that follows something that is no receive";
    return NULL;
}

/* Every index in the file is checked here, so that no reader needs to. */
static const char *defect(const struct flow_store *s)
{
    size_t next = 0;
    for (size_t f = 0; f < s->n_flows; f++) {
        const struct flow_disk_flow *flow = &s->flows[f];
        if (flow->first != next || flow->sends > s->n_packets - next || flow->receives > s->n_packets - next - flow->sends)
            return "a flow's packets lie outside the table";
        if (flow->connection > f)
            return "a flow names a connection that comes after it";
        next += (size_t)flow->sends + flow->receives;
    }
    if (next != s->n_packets)
        return "packets that belong to no flow";
    uint64_t *receives = mem_zalloc((s->n_by_number / 64 + 1) * sizeof *receives);
    const char *what = references_defect(s, receives);
    free(receives);
    if (what || (what = flow_message_order_defect(s)))
        return what;
    if (s->table_size & (s->table_size - 1) || s->table_size <= s->n_flows)
        return "bad size of the key table";
    size_t filled = 0;
    for (size_t i = 0; i < s->table_size; i++) {
        filled += s->table[i] != 0;
        if (s->table[i] > s->n_flows)
            return "the key table names a flow that does not exist";
    }
    if (filled > s->n_flows)
        return "the key table is too full";
    return NULL;
}

int flow_open(const char *path, struct flow_store **out, struct err *e)
{
    struct flow_store *s = mem_zalloc(sizeof *s);
    int rc = store_open(path, "flows", FLOW_VERSION, NULL, &s->file, e);
    if (rc) {
        free(s);
        return rc;
    }
    pthread_mutex_init(&s->lock, NULL);
    s->flows = store_section(s->file, "flows", sizeof *s->flows, &s->n_flows);
    s->packets = store_section(s->file, "packets", sizeof *s->packets, &s->n_packets);
    s->wakes = store_section(s->file, "wakes", sizeof *s->wakes, &s->n_wakes);
    s->addresses = store_section(s->file, "addresses", sizeof *s->addresses, &s->n_addresses);
    s->by_number = store_section(s->file, "numbers", sizeof *s->by_number, &s->n_by_number);
    s->table = store_section(s->file, "keys", sizeof *s->table, &s->table_size);
    s->rows = store_section(s->file, "rows", sizeof *s->rows, &s->n_rows);
    s->messages = store_section(s->file, "messages", sizeof *s->messages, &s->n_messages);
    s->replies = store_section(s->file, "replies", sizeof *s->replies, &s->n_replies);
    const char *what = defect(s);
    if (what) {
        rc = err_set(e, ERR_FORMAT, "%s: %s", path, what);
        flow_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

void flow_close(struct flow_store *s)
{
    if (!s)
        return;
    for (struct flow_datagrams *d = s->datagrams, *next; d; d = next) {
        next = d->next;
        free(d->send_of);
        free(d);
    }
    free(s->by_bytes);
    pthread_mutex_destroy(&s->lock);
    store_close(s->file);
    free(s);
}

size_t flow_count(const struct flow_store *s)
{
    return s->n_flows;
}

void flow_key(const struct flow_store *s, size_t flow, struct flow_key *out)
{
    *out = s->flows[flow].key;
}

int64_t flow_lookup(const struct flow_store *s, const struct flow_key *k)
{
    size_t mask = s->table_size - 1;
    for (size_t i = flow_key_hash(k) & mask; s->table[i]; i = (i + 1) & mask)
        if (!memcmp(&s->flows[s->table[i] - 1].key, k, sizeof *k))
            return s->table[i] - 1;
    return -1;
}

uint32_t flow_connection(const struct flow_store *s, size_t flow)
{
    return s->flows[flow].connection;
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
    return s->flows[flow].sends;
}

void flow_send(const struct flow_store *s, size_t flow, size_t i, struct flow_packet *out)
{
    flow_unpack(&s->packets[s->flows[flow].first + i], out);
}

size_t flow_receives(const struct flow_store *s, size_t flow)
{
    return s->flows[flow].receives;
}

void flow_receive(const struct flow_store *s, size_t flow, size_t i, struct flow_packet *out)
{
    flow_unpack(&s->packets[s->flows[flow].first + s->flows[flow].sends + i], out);
}

bool flow_by_number(const struct flow_store *s, uint32_t number, struct flow_packet *out, bool *is_send)
{
    if (number >= s->n_by_number || s->by_number[number] == UINT32_MAX)
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

bool flow_may_send(const struct flow_store *s, const struct flow_key *k)
{
    int64_t f = flow_lookup(s, k);
    return f >= 0 && s->flows[f].sends > 0;
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
