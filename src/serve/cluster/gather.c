/* SPDX-License-Identifier: MIT */
#include "cluster/gather.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/time.h"
#include "bus/bus.h"
#include "cluster/extracts.h"
#include "cluster/query.h"
#include "index/index.h"

/* Together less than the clock leader's lease lasts: one node, all of them, extracts. */
#define FLOWS_PATIENCE_NS INT64_C(3000000000)
#define ALL_FLOWS_NS INT64_C(5000000000)
#define EXTRACT_PATIENCE_NS INT64_C(6000000000)

enum {
    MOST_EXTRACTS_ASKED = 8
}; /* concurrent questions: all their parts may come together, and the broker lets 64 MiB
                                   * wait */

struct gathered_flows {
    atomic_uint refs;
    struct flow_store *is;
};
/* Latest data of a host: its flows, and an extract of them. Each has the hash that the node's entry had, which tells
 * the state of the packets. */
struct had {
    uint64_t key;
    bool is_reported, is_whole; /* is_whole: nothing more to ask for */
    uint64_t reported_hash;
    struct flow_other reported; /* flows of the host */
    uint64_t hash, question;
    struct gathered_flows *flows;
    struct coming coming; /* parts of the next */
};
/* The thread that gathers reads it without the lock, since nobody else changes it. */
struct gathered {
    pthread_mutex_t lock; /* guards keys and flows */
    struct had *v;        /* by host of the latest membership */
    size_t n, missing;
};

struct gathered *cluster_gathered_new(void)
{
    struct gathered *g = mem_zalloc(sizeof *g);
    pthread_mutex_init(&g->lock, NULL);
    return g;
}

void cluster_gathered_release(struct gathered_flows *f)
{
    if (!f || atomic_fetch_sub(&f->refs, 1) > 1)
        return;
    flow_close(f->is);
    free(f);
}

const struct flow_store *cluster_gathered_store(const struct gathered_flows *f)
{
    return f ? f->is : NULL;
}

void cluster_gathered_take(struct gathered *g, const uint64_t *keys, size_t n, struct gathered_flows **out)
{
    struct map at = {0};
    pthread_mutex_lock(&g->lock);
    for (size_t i = 0; i < g->n; i++)
        *map_put(&at, g->v[i].key, NULL) = i;
    for (size_t i = 0; i < n; i++) {
        const uint64_t *host = map_find(&at, keys[i]);
        out[i] = host ? g->v[*host].flows : NULL;
        if (out[i])
            atomic_fetch_add(&out[i]->refs, 1);
    }
    pthread_mutex_unlock(&g->lock);
    map_fini(&at);
}

static void forget_reported(struct had *h)
{
    free((void *)h->reported.hashes);
    free((void *)h->reported.own);
    h->reported = (struct flow_other){0};
    h->is_reported = false;
}

static void forget_all(struct gathered *g)
{
    for (size_t i = 0; i < g->n; i++) {
        forget_reported(&g->v[i]);
        cluster_gathered_release(g->v[i].flows);
        cluster_incoming_fini(&g->v[i].coming);
    }
    free(g->v);
}

void cluster_gathered_free(struct gathered *g)
{
    if (!g)
        return;
    forget_all(g);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

/* Puts the data in the order of this membership; data of absent hosts is dropped. */
static void follow_membership(struct gathered *g, const struct cluster_membership *r)
{
    struct had *now = mem_zalloc((r->n_hosts + 1) * sizeof *now);
    struct map at = {0};
    pthread_mutex_lock(&g->lock);
    for (size_t i = 0; i < g->n; i++)
        *map_put(&at, g->v[i].key, NULL) = i;
    for (size_t i = 0; i < r->n_hosts; i++) {
        uint64_t key = r->hosts[i].entry->key;
        const uint64_t *before = map_find(&at, key);
        if (before) {
            now[i] = g->v[*before];
            g->v[*before] = (struct had){0};
        }
        now[i].key = key;
    }
    map_fini(&at);
    forget_all(g);
    g->v = now;
    g->n = r->n_hosts;
    pthread_mutex_unlock(&g->lock);
}

/* ---- asking ---- */

struct round {
    struct bus *bus;
    const char *cluster;
    const struct cluster_membership *membership;
    struct had *had;       /* indexed by host */
    pthread_mutex_t *lock; /* guards their flows */
    size_t *by;            /* by host: the entry of the node that reported its flows; SIZE_MAX: none did */
    int64_t until_ns;      /* deadline of extracts */
};

static void write_question(void *arg, const size_t *hosts, size_t n, struct text *out)
{
    const struct round *r = arg;
    uint64_t *keys = mem_alloc((n + 1) * sizeof *keys);
    for (size_t i = 0; i < n; i++)
        keys[i] = r->membership->hosts[hosts[i]].entry->key;
    cluster_question_begin(out, CLUSTER_FLOWS);
    cluster_flows_question_write(&(struct flows_question){keys, n}, out);
    free(keys);
}

static void *copy_of(const void *v, size_t size)
{
    void *copy = mem_alloc(size + 1);
    if (size)
        memcpy(copy, v, size);
    return copy;
}

static int take_flows(void *arg, const size_t *hosts, size_t n, const void *bytes, size_t size, struct err *e)
{
    struct round *r = arg;
    struct arena a = {0};
    struct flow_other *got = arena_new(&a, struct flow_other, n + 1);
    int rc = cluster_flows_read(&a, bytes, size, n, got, e);
    for (size_t i = 0; i < n && !rc; i++) {
        struct had *h = &r->had[hosts[i]];
        forget_reported(h);
        h->reported = (struct flow_other){.hashes = copy_of(got[i].hashes, got[i].n_hashes * sizeof *got[i].hashes),
            .n_hashes = got[i].n_hashes,
            .own = copy_of(got[i].own, got[i].n_own * sizeof *got[i].own),
            .n_own = got[i].n_own};
    }
    arena_fini(&a);
    return rc;
}

/* Returns the hash of the host in the node's entry: a copy may be older. */
static uint64_t hash_at(const struct cluster_entry *c, uint64_t key)
{
    for (size_t i = 0; i < c->n_hosts; i++)
        if (c->hosts[i].key == key)
            return c->hosts[i].hash;
    return 0;
}

/* Asks for the flows of hosts whose present packets are unknown. */
static void ask_flows(struct round *r)
{
    const struct cluster_membership *o = r->membership;
    bool *wanted = mem_zalloc((o->n_hosts + 1) * sizeof *wanted);
    struct err e = {0};
    int rc;
    for (size_t i = 0; i < o->n_hosts; i++) {
        const struct cluster_entry_host *entry = o->hosts[i].entry;
        wanted[i] = entry->has_packets && !(r->had[i].is_reported && r->had[i].reported_hash == entry->hash);
    }
    cluster_query_run(&(struct cluster_host_query){.bus = r->bus,
                          .cluster = r->cluster,
                          .membership = o,
                          .wanted = wanted,
                          .excerpts = true,
                          .deadline_ns = time_monotonic_ns() + ALL_FLOWS_NS,
                          .patience_ns = FLOWS_PATIENCE_NS,
                          .write = write_question,
                          .take = take_flows,
                          .arg = r},
        r->by, &rc, &e);
    for (size_t i = 0; i < o->n_hosts; i++) {
        struct had *h = &r->had[i];
        if (!wanted[i] && o->hosts[i].entry->has_packets)
            r->by[i] = o->hosts[i].entries[0]; /* first node: it has the newest data */
        if (r->by[i] == SIZE_MAX)
            forget_reported(h);
        else
            h->reported_hash = hash_at(&o->entries[r->by[i]], h->key);
        h->is_reported = r->by[i] != SIZE_MAX;
    }
    free(wanted);
}

/* ---- common flows ---- */

/* An address of a host; SIZE_MAX: of several. */
struct owned {
    struct flow_address address;
    size_t host;
};
/* Hashes of flows that several hosts have, and all addresses: in order, each once. */
struct common {
    uint64_t *hashes;
    size_t n;
    VEC(struct owned) owned;
};

static int by_address(const void *pa, const void *pb)
{
    const struct owned *a = pa, *b = pb;
    return memcmp(&a->address, &b->address, sizeof a->address) ?: order_of(a->host, b->host);
}

static void find_common_hashes(const struct round *r, struct common *c)
{
    size_t n = 0;
    for (size_t i = 0; i < r->membership->n_hosts; i++)
        n += r->had[i].reported.n_hashes;
    uint64_t *all = c->hashes = mem_alloc((n + 1) * sizeof *all);
    n = 0;
    for (size_t i = 0; i < r->membership->n_hosts; i++)
        for (size_t k = 0; k < r->had[i].reported.n_hashes; k++)
            all[n++] = r->had[i].reported.hashes[k];
    if (n)
        qsort(all, n, sizeof *all, order_u64);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && all[end] == all[i];)
            end++;
        if (end - i > 1)
            all[c->n++] = all[i];
    }
}

static void find_addresses(const struct round *r, struct common *c)
{
    for (size_t i = 0; i < r->membership->n_hosts; i++)
        for (size_t k = 0; k < r->had[i].reported.n_own; k++)
            vec_push(&c->owned, ((struct owned){r->had[i].reported.own[k].address, i}));
    if (c->owned.n)
        qsort(c->owned.v, c->owned.n, sizeof *c->owned.v, by_address);
    size_t kept = 0;
    for (size_t i = 0; i < c->owned.n; i++) {
        struct owned *last = kept ? &c->owned.v[kept - 1] : NULL;
        if (!last || memcmp(&last->address, &c->owned.v[i].address, sizeof last->address) != 0)
            c->owned.v[kept++] = c->owned.v[i];
        else if (last->host != c->owned.v[i].host)
            last->host = SIZE_MAX;
    }
    c->owned.n = kept;
}

/* Returns what a host is asked for: its flows that another has, and messages from addresses of others. The begin of
 * ownership does not matter. */
static struct flow_other wanted_of(const struct round *r, size_t host, const struct common *c, struct arena *a)
{
    const struct flow_other *reported = &r->had[host].reported;
    uint64_t *hashes = arena_new(a, uint64_t, reported->n_hashes + 1);
    struct flow_own_address *own = arena_new(a, struct flow_own_address, c->owned.n + 1);
    size_t n = 0, n_own = 0;
    for (size_t i = 0, k = 0; i < reported->n_hashes && k < c->n; i++) {
        while (k < c->n && c->hashes[k] < reported->hashes[i])
            k++;
        if (k < c->n && c->hashes[k] == reported->hashes[i])
            hashes[n++] = c->hashes[k];
    }
    for (size_t i = 0; i < c->owned.n; i++)
        if (c->owned.v[i].host != host)
            own[n_own++].address = c->owned.v[i].address;
    return (struct flow_other){hashes, n, own, n_own};
}

/* ---- extracts ---- */

/* Asks for the next part, of what goes on where it stopped before, if it is still the same. */
static bool ask_part(const struct round *r, struct bus_calls *calls, size_t host, const struct extract_question *q)
{
    struct had *h = &r->had[host];
    struct extract_question from = *q;
    struct text t = {.fd = -1};
    char subject[CLUSTER_SUBJECT];
    from.from = h->coming.got;
    cluster_question_begin(&t, CLUSTER_EXTRACT);
    cluster_extract_question_write(&from, &t);
    bool ask = !cluster_subject_of(r->cluster, r->membership->entries[r->by[host]].node, subject, NULL);
    if (ask)
        bus_call(calls, subject, t.v, t.n, r->until_ns, host);
    text_fini(&t);
    return ask;
}

static uint64_t hash_of_question(const struct extract_question *q)
{
    struct text t = {.fd = -1};
    cluster_extract_question_write(q, &t);
    uint64_t hash = map_hash(t.v, t.n);
    text_fini(&t);
    return hash;
}

/* False: there is no need to ask, or nobody. */
static bool ask_extract(const struct round *r, const struct common *c, struct bus_calls *calls, size_t host)
{
    struct had *h = &r->had[host];
    struct arena a = {0};
    if (r->by[host] == SIZE_MAX)
        return false;
    struct extract_question q = {h->key, wanted_of(r, host, c, &a), 0};
    uint64_t hash = hash_of_question(&q);
    h->is_whole = h->flows && h->hash == r->membership->hosts[host].entry->hash && h->question == hash;
    if (h->coming.question != hash)
        cluster_incoming_fini(&h->coming);
    h->coming.question = hash;
    bool asked = !h->is_whole && ask_part(r, calls, host, &q);
    arena_fini(&a);
    return asked;
}

/* Takes a part of an extract. After a failure the host's reported flows are not trusted: the next time another node may
 * report them. Parts received so far are kept only after a timeout. Returns whether another part was asked for. */
static bool take_extract(
    const struct round *r, const struct common *c, struct bus_calls *calls, size_t host, const struct bus_reply *reply)
{
    struct had *h = &r->had[host];
    struct flow_store *flows;
    int rc = reply->code ? reply->code : cluster_incoming_take(&h->coming, reply->data, reply->n, NULL);
    if (!rc && !coming_is_whole(&h->coming))
        return ask_extract(r, c, calls, host);
    if (!rc)
        rc = cluster_incoming_open(&h->coming, &flows, NULL);
    uint64_t question = h->coming.question;
    if (rc != ERR_TIMEOUT)
        cluster_incoming_fini(&h->coming);
    if (rc) {
        h->is_reported = false;
        return false;
    }
    struct gathered_flows *before = h->flows, *now = mem_alloc(sizeof *now);
    *now = (struct gathered_flows){1, flows};
    pthread_mutex_lock(r->lock);
    h->flows = now;
    pthread_mutex_unlock(r->lock);
    cluster_gathered_release(before);
    h->hash = h->reported_hash; /* a copy may be older than the newest */
    h->is_whole = h->hash == r->membership->hosts[host].entry->hash;
    h->question = question;
    return false;
}

/* Asks for extracts. Those without time left are asked for the next time. */
static void ask_extracts(struct round *r)
{
    size_t n = r->membership->n_hosts, next = 0, open = 0;
    struct bus_calls *calls = bus_calls_new(r->bus);
    struct common c = {0};
    struct bus_reply reply;
    find_common_hashes(r, &c);
    find_addresses(r, &c);
    for (size_t i = 0; i < n; i++)
        r->had[i].is_whole = false;
    r->until_ns = time_monotonic_ns() + EXTRACT_PATIENCE_NS;
    do {
        for (; next < n && open < MOST_EXTRACTS_ASKED && time_monotonic_ns() < r->until_ns; next++)
            open += ask_extract(r, &c, calls, next);
        if (bus_calls_next(calls, &reply)) {
            open -= !take_extract(r, &c, calls, (size_t)reply.tag, &reply);
            bus_reply_free(&reply);
        }
    } while (open);
    bus_calls_free(calls);
    free(c.hashes);
    vec_free(&c.owned);
}

/* ---- clocks ---- */

size_t cluster_gathered_missing(const struct gathered *g)
{
    return g->missing;
}

/* Finds, by host of the membership, its number in the earlier clocks; SIZE_MAX: none. */
static void number_before(const struct cluster_membership *r, const struct clocks_head *before, size_t *out)
{
    struct map at = {0};
    for (size_t i = before->n_hosts; i-- > 0;)
        *map_put(&at, before->hosts[i].key, NULL) = i;
    for (size_t i = 0; i < r->n_hosts; i++) {
        const uint64_t *found = map_find(&at, r->hosts[i].entry->key);
        out[i] = found ? (size_t)*found : SIZE_MAX;
    }
    map_fini(&at);
}

/* Returns whether no host differs from earlier clocks that were found from all packets. Packets that are unavailable
 * now then add nothing to these clocks. */
static bool all_are_known(const struct cluster_membership *r, const struct gather_before *before, const size_t *number)
{
    for (size_t i = 0; i < r->n_hosts; i++)
        if (number[i] == SIZE_MAX || before->head->hosts[number[i]].hash != r->hosts[i].entry->hash)
            return false;
    return before->net;
}

int cluster_gather_clocks(struct gathered *g, struct bus *bus, const char *cluster,
    const struct cluster_membership *membership, const struct clock_options *o, const struct gather_before *before,
    struct clocks_host *used, struct clock_net **out, struct err *e)
{
    static const struct clocks_head nothing;
    static const struct gather_before none = {.head = &nothing};
    size_t *number = mem_alloc((membership->n_hosts + 1) * sizeof *number);
    before = before ? before : &none;
    number_before(membership, before->head, number);
    bool known = all_are_known(membership, before, number);
    follow_membership(g, membership);
    g->missing = 0;
    struct round r = {.bus = bus, .cluster = cluster, .membership = membership, .had = g->v, .lock = &g->lock};
    r.by = mem_alloc((membership->n_hosts + 1) * sizeof *r.by);
    ask_flows(&r);
    ask_extracts(&r);
    struct index_far_host *hosts = mem_zalloc((membership->n_hosts + 1) * sizeof *hosts);
    for (size_t i = 0; i < membership->n_hosts; i++) {
        const struct cluster_entry_host *entry = membership->hosts[i].entry;
        const struct had *h = &g->v[i];
        bool all = !entry->has_packets || h->is_whole;
        g->missing += !all;
        used[i] = (struct clocks_host){entry->key, all || known ? entry->hash : clocks_lacking(entry->hash)};
        hosts[i] = (struct index_far_host){.name = membership->hosts[i].clock_name,
            .begin = entry->begin,
            .end = entry->end,
            .sealed_until = entry->sealed_until,
            .clock = entry->clock,
            .before = number[i],
            .flows = known && !all ? NULL : cluster_gathered_store(h->flows)};
    }
    int rc = index_sync_far(hosts, membership->n_hosts, o, before->net, out, e);
    free(hosts);
    free(number);
    free(r.by);
    return rc;
}
