/* SPDX-License-Identifier: MIT */
/* Summary of the messages that a host can have sent: by flow, and under other addresses by the ranges of byte and
 * acknowledgement numbers of each TCP flow. Routers translate addresses and ports, but not these numbers. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/order.h"
#include "base/search.h"
#include "flow/store.h"

enum {
    MOST_LOOKED_AT = 4096,  /* sends searched for one that repeats what was sent before the first seen */
    SLACK = 1 << 20,        /* bytes that may be retransmitted even later */
    MOST_UNACKED = 1 << 24, /* see match.c */
};

/* Range of numbers that count beyond 2^32. */
struct byte_range {
    uint64_t from, to;
};

static void widen(struct byte_range *s, uint32_t turns, uint64_t from, uint64_t to)
{
    uint64_t add = (uint64_t)turns << 32;
    s->from = from + add < s->from ? from + add : s->from;
    s->to = to + add > s->to ? to + add : s->to;
}

static uint64_t least_of(const struct flow_part *part)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < part->n_sends && i < MOST_LOOKED_AT; i++) {
        uint64_t begin = flow_begin_of(&part->sends[i]);
        least = begin < least ? begin : least;
    }
    return least;
}

/* Range sent by its sockets. to = 0: no data. */
static struct byte_range sent_on(const struct flow_view *v)
{
    struct byte_range s = {UINT64_MAX, 0};
    for (size_t i = 0; i < v->n; i++) {
        const struct flow_place *at = &v->places[i];
        struct flow_part part = flow_part_of(v, i);
        if (v->store->chunks[at->chunk].flows[at->flow].own && part.n_sends && part.sends[part.n_sends - 1].high)
            widen(&s, at->turns, least_of(&part), part.sends[part.n_sends - 1].high);
    }
    return s;
}

/* Range received on it. */
static struct byte_range received_on(const struct flow_view *v)
{
    struct byte_range s = {UINT64_MAX, 0};
    for (size_t i = 0; i < v->n; i++) {
        const struct flow_place *at = &v->places[i];
        struct flow_part part = flow_part_of(v, i);
        if (part.n_receives)
            widen(
                &s, at->turns, flow_begin_of(&part.receives[0]), v->store->chunks[at->chunk].flows[at->flow].last_seq);
    }
    return s;
}

/* First and last acknowledgement, except those with SYN; false: none. */
static bool acknowledged_on(const struct flow_view *v, uint32_t *first, uint32_t *last)
{
    bool any = false;
    for (size_t i = 0; i < v->n; i++) {
        struct flow_part part = flow_part_of(v, i);
        size_t from = 0;
        while (!any && from < part.n_sends && !(part.sends[from].flags & FLOW_ACK))
            from++;
        if (from == part.n_sends)
            continue;
        size_t to = part.n_sends - 1;
        while (to > from && !(part.sends[to].flags & FLOW_ACK))
            to--;
        if (!(part.sends[to].flags & FLOW_ACK))
            continue;
        *first = any ? *first : part.sends[from].ack;
        *last = part.sends[to].ack;
        any = true;
    }
    return any;
}

static struct flow_route route_of(
    const struct flow_view *v, const struct byte_range *sent, const struct flow_view *back)
{
    struct flow_route r = {.seq_bytes = UINT32_MAX, .ack_bytes = UINT32_MAX};
    struct byte_range received = received_on(back);
    uint32_t first = 0, last = 0;
    if (sent->to - sent->from < UINT32_MAX - SLACK) {
        r.seq = (uint32_t)sent->from - SLACK;
        r.seq_bytes = (uint32_t)(sent->to - sent->from) + SLACK;
    }
    /* Acknowledgements have 32 bits: the range received on the other flow shows whether they wrapped around. */
    uint64_t most = received.from <= received.to ? received.to - received.from + SLACK : UINT64_MAX;
    if (acknowledged_on(v, &first, &last) && last - first <= most && most < UINT32_MAX - SLACK - MOST_UNACKED) {
        r.ack = first - SLACK;
        r.ack_bytes = last - first + SLACK + MOST_UNACKED;
    }
    return r;
}

size_t flow_routes(const struct flow_store *s, size_t most, struct flow_route **out)
{
    VEC(struct flow_route) routes = {0};
    struct flow_key key;
    for (size_t f = 0, n = flow_count(s); f < n && routes.n <= most; f++) {
        flow_key(s, f, &key);
        if (!key.family || key.protocol != FLOW_TCP)
            continue;
        struct flow_view view, back = {0};
        flow_view_of(s, f, &view);
        struct byte_range sent = sent_on(&view);
        struct flow_key reverse = flow_key_reverse(&key);
        int64_t other = flow_lookup(s, &reverse);
        if (other >= 0)
            flow_view_of(s, (size_t)other, &back);
        if (sent.to)
            vec_push(&routes, route_of(&view, &sent, &back));
    }
    *out = routes.v;
    return routes.n;
}

static bool lies_in(uint32_t number, uint32_t first, uint32_t count)
{
    return count == UINT32_MAX || number - first <= count;
}

bool flow_routes_lead(const struct flow_route *routes, size_t n, const struct flow_message_key *m)
{
    if (m->flow.protocol != FLOW_TCP)
        return false;
    for (size_t i = 0; i < n; i++)
        if (lies_in(m->seq_end, routes[i].seq, routes[i].seq_bytes) &&
            (!(m->flags & FLOW_ACK) || lies_in(m->ack, routes[i].ack, routes[i].ack_bytes)))
            return true;
    return false;
}

static uint32_t hash_of(const struct flow_key *key)
{
    return (uint32_t)map_hash(key, sizeof *key);
}

static int by_number(const void *a, const void *b)
{
    return order_of(*(const uint32_t *)a, *(const uint32_t *)b);
}

size_t flow_sent_hashes(const struct flow_store *s, size_t most, uint32_t **out)
{
    VEC(uint32_t) hashes = {0};
    struct flow_key key;
    for (size_t f = 0, n = flow_count(s); f < n && hashes.n <= most; f++) {
        flow_key(s, f, &key);
        if (flow_may_send(s, &key))
            vec_push(&hashes, hash_of(&key));
    }
    if (hashes.n)
        qsort(hashes.v, hashes.n, sizeof *hashes.v, by_number);
    *out = hashes.v;
    return hashes.n;
}

bool flow_sent_hashes_have(const uint32_t *hashes, size_t n, const struct flow_key *key)
{
    uint32_t hash = hash_of(key);
    size_t at = search_first(i, 0, n, hashes[i] >= hash);
    return at < n && hashes[at] == hash;
}
