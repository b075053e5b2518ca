/* SPDX-License-Identifier: MIT */
/* Clients of requests: hosts of the list, and others found by the packets of a request. */
#include <string.h>

#include "base/search.h"
#include "base/wire.h"
#include "path/fragment.h"
#include "path/request_parts.h"
#include "path/senders.h"

enum {
    /* Limit of a client's packets that are searched for the end of a reply. Datagrams are searched one by one. */
    MOST_PACKETS = 1 << 16,
    MOST_DATAGRAMS = 1 << 10,
    TRAIL_VERSION = 1,
    TRAIL_BYTES = 1 << 10,
    AT_ERROR_NS = 1000000000 /* error of times that others report */
};

/* ---- first byte of the request, last of the reply ---- */

/* Knowledge of the last packet of a reply. */
struct reply_end {
    bool tcp;
    uint32_t past;                   /* TCP: number after the last byte */
    uint32_t bytes;                  /* datagram: its size */
    uint16_t ip_id;                  /* datagram: its id; 0: none */
    const struct requests *requests; /* requests, or NULL */
    const struct served_request *of; /* a datagram must be the one that this host sent */
};

static uint32_t past_of(const struct flow_packet *p)
{
    return (uint32_t)(p->seq_end - !!(p->flags & FLOW_FIN));
}

static bool is_end(const struct reply_end *r, size_t client, const struct flow_packet *received)
{
    struct sender from;
    struct sender_peer peer;
    if (r->tcp) /* numbers are the same on both sides except for multiples of 2^32 */
        return past_of(received) - r->past < received->bytes;
    if (r->requests)
        return path_senders_find(
                   path_local_senders(path_requests_local(r->requests)), (int32_t)client, received, &from, &peer) &&
            from.host == r->of->thread.host && from.send.number == r->of->last_out;
    return received->bytes == r->bytes && (!r->ip_id || !received->ip_id || received->ip_id == r->ip_id);
}

/* Time at which the reply was complete at the client. */
static int64_t reply_came(const struct path_local_host *client, const struct sender *asked, const struct reply_end *r)
{
    struct flow_key key;
    struct flow_packet p;
    flow_key(client->flows, asked->send.flow, &key);
    key = flow_key_reverse(&key);
    int64_t flow = flow_lookup(client->flows, &key);
    if (flow < 0)
        return INT64_MIN;
    size_t n = flow_receives(client->flows, (size_t)flow);
    size_t i = search_first(k, 0, n, (flow_receive(client->flows, (size_t)flow, k, &p), p.ts >= asked->send.ts));
    size_t most = r->tcp ? MOST_PACKETS : MOST_DATAGRAMS;
    for (size_t past = n - i < most ? n : i + most; i < past; i++) {
        flow_receive(client->flows, (size_t)flow, i, &p);
        if (!(p.way & FLOW_WENT_ON) && is_end(r, (size_t)asked->host, &p))
            return path_to_reference(client, p.ts);
    }
    return INT64_MIN;
}

static bool end_of(const struct requests *r, const struct served_request *q, struct reply_end *out)
{
    size_t n;
    const struct path_local_host *server = &path_local_hosts(path_requests_local(r), &n)[q->thread.host];
    struct flow_key key;
    struct flow_packet last;
    flow_key(server->flows, q->flow, &key);
    if (!flow_by_number(server->flows, q->last_out, &last, NULL))
        return false;
    *out = (struct reply_end){.tcp = key.protocol == FLOW_TCP,
        .past = past_of(&last),
        .bytes = (uint32_t)last.bytes,
        .ip_id = last.ip_id,
        .requests = r,
        .of = q};
    return true;
}

/* Packet that arrived first, or would have: with the first byte, and only that. */
static bool first_packet(const struct flow_store *server, const struct served_request *q, const struct flow_key *key,
    struct flow_packet *out)
{
    if (!flow_by_number(server, q->first_in, out, NULL))
        return false;
    if (key->protocol == FLOW_TCP) {
        out->seq_end = q->first_byte + 1;
        out->bytes = 1;
        out->flags &= (uint16_t)~FLOW_FIN;
    }
    return true;
}

/* ---- hosts of the list ---- */

/* Returns whether the source is an address of the host itself. */
static bool is_own(const struct flow_store *s, const struct flow_key *key)
{
    const struct flow_address *own;
    if (flow_is_anonymous(key))
        return true;
    for (size_t i = 0, n = flow_addresses(s, &own); i < n; i++)
        if (own[i].family == key->family && !memcmp(own[i].addr, key->saddr, sizeof key->saddr))
            return true;
    return false;
}

static struct path_row row_of(const struct sender *asked)
{
    return (struct path_row){asked->host, asked->send.origin == FLOW_BY_THREAD ? asked->send.row : -1};
}

void path_requests_client(const struct requests *r, size_t i, struct request_client *out)
{
    size_t n;
    const struct path_local_host *hosts = path_local_hosts(path_requests_local(r), &n);
    const struct served_request *q = path_requests_get(r, i);
    const struct path_local_host *server = &hosts[q->thread.host];
    struct flow_key key;
    struct flow_packet first;
    struct reply_end end;
    struct sender asked;
    struct sender_peer peer;
    flow_key(server->flows, q->flow, &key);
    *out = (struct request_client){.local = is_own(server->flows, &key), .thread = {-1, -1}};
    flow_format_endpoint(&key, true, out->address, sizeof out->address);
    if (!first_packet(server->flows, q, &key, &first) ||
        !path_senders_find(path_local_senders(path_requests_local(r)), q->thread.host, &first, &asked, &peer) ||
        !path_comparable(server, &hosts[asked.host]))
        return;
    out->recorded = true;
    out->local = asked.host == q->thread.host;
    out->thread = row_of(&asked);
    out->begin = asked.sent;
    out->end = end_of(r, q, &end) ? reply_came(&hosts[asked.host], &asked, &end) : INT64_MIN;
}

/* ---- further hosts ---- */

void path_requests_trail(const struct requests *r, size_t i, struct text *out)
{
    size_t n;
    const struct served_request *q = path_requests_get(r, i);
    const struct path_local_host *server = &path_local_hosts(path_requests_local(r), &n)[q->thread.host];
    struct flow_key key;
    struct flow_packet first;
    struct path_message m;
    struct reply_end end;
    struct text bytes = {.fd = -1};
    flow_key(server->flows, q->flow, &key);
    if (flow_is_anonymous(&key) || !first_packet(server->flows, q, &key, &first) || !end_of(r, q, &end))
        return;
    path_sender_message_of(server, 0, &first, &m);
    wire_put_u(&bytes, TRAIL_VERSION);
    path_message_pack(&bytes, &m);
    wire_put_u(&bytes, end.past);
    wire_put_u(&bytes, end.bytes);
    wire_put_u(&bytes, end.ip_id);
    for (size_t k = 0; k < bytes.n; k++)
        text_printf(out, "%02x", (unsigned char)bytes.v[k]);
    text_fini(&bytes);
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_trail(const char *trail, struct path_message *m, struct reply_end *end)
{
    uint8_t bytes[TRAIL_BYTES];
    size_t n = strlen(trail) / 2;
    if (n > sizeof bytes)
        return false;
    for (size_t i = 0; i < n; i++) {
        int high = digit(trail[2 * i]), low = digit(trail[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    struct wire_in u = wire_of(bytes, n);
    if (wire_u(&u) != TRAIL_VERSION)
        return false;
    path_message_unpack(&u, 1, m);
    *end = (struct reply_end){.tcp = m->key.flow.protocol == FLOW_TCP};
    end->past = (uint32_t)wire_below(&u, UINT64_C(1) << 32);
    end->bytes = (uint32_t)wire_below(&u, UINT64_C(1) << 32);
    end->ip_id = (uint16_t)wire_below(&u, 1 << 16);
    return !u.damaged && u.at == u.end;
}

/* Returns whether the host sent it, on that very flow. */
static bool sent_it(
    const struct path_local_host *h, int32_t host, const struct path_message *m, int64_t at, struct sender *out)
{
    if (!h->flows || !h->graph || !flow_may_send(h->flows, &m->key.flow))
        return false;
    struct flow_window w = at == INT64_MIN ? flow_window_any()
                                           : flow_window_at(&m->key, path_from_reference(h, at), AT_ERROR_NS);
    *out = (struct sender){.host = host};
    out->answer = flow_find_send(h->flows, &m->key, &w, &out->send);
    out->sent = out->answer != FLOW_NOT_SENT ? path_to_reference(h, out->send.ts) : 0;
    return out->answer != FLOW_NOT_SENT;
}

bool path_requests_asked(const struct path_local *local, const char *trail, int64_t at, struct request_client *out)
{
    size_t n;
    const struct path_local_host *hosts = path_local_hosts(local, &n);
    struct path_message m;
    struct reply_end end;
    struct sender asked = {.host = -1}, found;
    if (!read_trail(trail, &m, &end))
        return false;
    for (size_t i = 0; i < n; i++)
        if (sent_it(&hosts[i], (int32_t)i, &m, at, &found) &&
            (asked.host < 0 || path_sender_is_better(INT64_MAX, &found, &asked, false, true)))
            asked = found;
    if (asked.host < 0)
        return false;
    *out = (struct request_client){.recorded = true, .thread = row_of(&asked), .begin = asked.sent};
    flow_format_endpoint(&m.key.flow, true, out->address, sizeof out->address);
    out->end = reply_came(&hosts[asked.host], &asked, &end);
    return true;
}
