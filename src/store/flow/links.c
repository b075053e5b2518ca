/* SPDX-License-Identifier: MIT */
/* Links of flows between many hosts: found by their keys, over all hosts at once, so that hosts that never talked cost
 * nothing. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/pool.h"
#include "flow/store.h"

enum {
    PARTS = 256,         /* parts of the range of hashes, each joined by one thread */
    MOST_RECEIVERS = 32, /* receivers of one flow: more are multicast, or a private address used by many */
    MOST_OF_HOST = 4     /* ends with one hash: a host has a key only once, unless its store is damaged */
};

struct end {
    uint64_t hash;
    uint32_t host, flow;
};

struct ends {
    VEC(struct end) v;
};

struct part {
    struct end *ends;
    size_t n;
    VEC(struct flow_link) links;
    VEC(struct end) receivers; /* receivers of the present hash */
};

struct join {
    const struct flow_store *const *stores;
    bool near;            /* a host's own sends are recognised by packets, not by flows */
    struct ends *by_host; /* read once: a file being cut off may read differently the second time */
    size_t *at;           /* host * PARTS + part: number of ends, then position of the next */
    struct end *ends;
    struct part parts[PARTS];
};

static unsigned part_of(uint64_t hash)
{
    return (unsigned)(hash >> 56);
}

/* Collects the flows of a host that may also be other hosts'. */
static void collect_ends(void *arg, size_t host)
{
    struct join *j = arg;
    const struct flow_store *s = j->stores[host];
    for (size_t f = 0, n = s ? flow_count(s) : 0; f < n; f++) {
        struct flow_key key;
        flow_key(s, f, &key);
        struct end end = {flow_key_hash(&key), (uint32_t)host, (uint32_t)f};
        if (flow_is_anonymous(&key))
            continue;
        vec_push(&j->by_host[host].v, end);
        j->at[host * PARTS + part_of(end.hash)]++;
    }
}

static void place_ends(void *arg, size_t host)
{
    struct join *j = arg;
    struct ends *e = &j->by_host[host];
    for (size_t i = 0; i < e->v.n; i++)
        j->ends[j->at[host * PARTS + part_of(e->v.v[i].hash)]++] = e->v.v[i];
    vec_free(&e->v);
}

/* Turns counts into positions: by part, then host. */
static void arrange(struct join *j, size_t n)
{
    size_t sum = 0, starts[PARTS];
    for (size_t p = 0; p < PARTS; p++) {
        starts[p] = sum;
        for (size_t h = 0; h < n; h++) {
            size_t count = j->at[h * PARTS + p];
            j->at[h * PARTS + p] = sum;
            sum += count;
        }
        j->parts[p].n = sum - starts[p];
    }
    j->ends = mem_alloc(sizeof *j->ends * (sum + 1));
    for (size_t p = 0; p < PARTS; p++)
        j->parts[p].ends = j->ends + starts[p];
}

static int by_hash(const void *a, const void *b)
{
    const struct end *p = a, *q = b;
    return order_of(p->hash, q->hash) ?: order_of(p->host, q->host) ?: order_of(p->flow, q->flow);
}

/* Returns whether packets of the flow came to this host from another one. If its own send is the first seen, it
 * received that send on another of its devices; a forwarder receives first. Without addresses all packets are one
 * flow. */
static bool receives(const struct flow_store *s, size_t flow, const struct flow_key *key)
{
    struct flow_packet sent, received;
    if (!flow_receives(s, flow))
        return false;
    if (!key->family || !flow_sends(s, flow))
        return true;
    flow_send(s, flow, 0, &sent);
    flow_receive(s, flow, 0, &received);
    return sent.ts > received.ts;
}

/* Links all ends with one hash: each sender to the receivers of its flow. */
static void link_ends(const struct join *j, struct part *part, const struct end *v, size_t n)
{
    struct flow_key key, other;
    part->receivers.n = 0;
    for (size_t r = 0; r < n; r++) {
        flow_key(j->stores[v[r].host], v[r].flow, &key);
        if (j->near ? flow_receives(j->stores[v[r].host], v[r].flow) > 0
                    : receives(j->stores[v[r].host], v[r].flow, &key))
            vec_push(&part->receivers, v[r]);
    }
    for (size_t s = 0; s < n; s++) {
        const struct flow_store *a = j->stores[v[s].host];
        flow_key(a, v[s].flow, &key);
        size_t receivers = 0, most = key.family ? MOST_RECEIVERS : n;
        if (!flow_sends(a, v[s].flow))
            continue;
        for (size_t i = 0; i < part->receivers.n && receivers < most; i++) {
            const struct end *r = &part->receivers.v[i];
            if (r->host == v[s].host)
                continue;
            flow_key(j->stores[r->host], r->flow, &other);
            if (memcmp(&key, &other, sizeof key) != 0)
                continue;
            vec_push(&part->links, ((struct flow_link){v[s].host, r->host, v[s].flow, r->flow}));
            receivers++;
        }
    }
}

/* Keeps the first few of each host, of sorted ends with one hash; returns their number. */
static size_t keep_few(struct end *v, size_t n)
{
    size_t kept = 0, of_host = 0;
    for (size_t i = 0; i < n; i++) {
        of_host = i && v[i].host == v[kept - 1].host ? of_host + 1 : 1;
        if (of_host <= MOST_OF_HOST)
            v[kept++] = v[i];
    }
    return kept;
}

static void join_part(void *arg, size_t i)
{
    struct join *j = arg;
    struct part *p = &j->parts[i];
    if (p->n)
        qsort(p->ends, p->n, sizeof *p->ends, by_hash);
    for (size_t from = 0, to; from < p->n; from = to) {
        for (to = from + 1; to < p->n && p->ends[to].hash == p->ends[from].hash;)
            to++;
        if (to - from > 1)
            link_ends(j, p, p->ends + from, keep_few(p->ends + from, to - from));
    }
    vec_free(&p->receivers);
}

static uint32_t lesser(const struct flow_link *l)
{
    return l->a < l->b ? l->a : l->b;
}

static uint32_t greater(const struct flow_link *l)
{
    return l->a < l->b ? l->b : l->a;
}

static int by_pair(const void *a, const void *b)
{
    const struct flow_link *p = a, *q = b;
    return order_of(lesser(p), lesser(q)) ?: order_of(greater(p), greater(q)) ?: order_of(p->a, q->a)
        ?: order_of(p->sent, q->sent) ?: order_of(p->received, q->received);
}

static size_t join_flows(
    const struct flow_store *const *stores, size_t n, unsigned threads, bool near, struct flow_link **out)
{
    struct join *j = mem_zalloc(sizeof *j);
    VEC(struct flow_link) all = {0};
    j->stores = stores;
    j->near = near;
    j->by_host = mem_zalloc(sizeof *j->by_host * (n + 1));
    j->at = mem_zalloc(sizeof *j->at * (n * PARTS + 1));
    pool_run(n, threads, collect_ends, j);
    arrange(j, n);
    pool_run(n, threads, place_ends, j);
    pool_run(PARTS, threads, join_part, j);
    for (size_t p = 0; p < PARTS; p++) {
        vec_reserve(&all, j->parts[p].links.n + 1);
        if (j->parts[p].links.n)
            memcpy(all.v + all.n, j->parts[p].links.v, sizeof *all.v * j->parts[p].links.n);
        all.n += j->parts[p].links.n;
        vec_free(&j->parts[p].links);
    }
    qsort(all.v, all.n, sizeof *all.v, by_pair);
    free(j->ends);
    free(j->at);
    free(j->by_host);
    free(j);
    *out = all.v;
    return all.n;
}

size_t flow_links(const struct flow_store *const *stores, size_t n, unsigned threads, struct flow_link **out)
{
    return join_flows(stores, n, threads, false, out);
}

size_t flow_near_links(const struct flow_store *const *stores, size_t n, unsigned threads, struct flow_link **out)
{
    return join_flows(stores, n, threads, true, out);
}
