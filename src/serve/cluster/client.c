/* SPDX-License-Identifier: MIT */
#include "cluster/client.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/time.h"
#include "bus/bus.h"
#include "cluster/clocks.h"

#define WHOLE_NS (5 * NS_PER_S)                      /* timeout of a node's sign of life */
enum { LOOK_AGAIN_US = 50000, SELDOM_US = 1000000 }; /* first and longest interval; all entries are read each time */

static const struct cluster_membership nobody;

static void forget(struct cluster *c)
{
    free(c->hosts);
    free(c->clock_of);
    free(c->alone);
    free(c->far);
    c->hosts = NULL;
    c->clock_of = NULL;
    c->alone = NULL;
    c->far = NULL;
    cluster_cached_unref(c->found);
    c->found = NULL;
    c->clocks = NULL;
    cluster_cached_unref(c->entries);
    c->entries = NULL;
    c->membership = &nobody;
}

static void drop_membership(void *is)
{
    cluster_membership_fini(is);
    free(is);
}

/* The version of a table that something is kept under. It is asked for before the table is read: what changes in
 * between is another version. */
static int version_of(const struct cluster *c, struct bus_table *table, uint64_t *version, struct err *e)
{
    *version = 0;
    return c->cache ? bus_table_version(table, version, e) : 0;
}

static int read_entries(struct cluster *c, struct err *e)
{
    uint64_t version;
    int rc = version_of(c, c->nodes, &version, e);
    if (!rc && !(c->entries = cluster_cache_find(c->cache, CACHED_ENTRIES, version))) {
        struct cluster_membership *r = mem_zalloc(sizeof *r);
        rc = cluster_membership_read(c->nodes, r, e);
        c->entries = cluster_cached_new(r, drop_membership, version);
        if (!rc)
            cluster_cache_add(c->cache, CACHED_ENTRIES, c->entries);
    }
    if (!rc)
        c->membership = c->entries->is;
    return rc;
}

void cluster_client_show_host(struct cluster *c, size_t i)
{
    const struct cluster_membership_host *h = &c->membership->hosts[i];
    struct cluster_host *shown = &c->hosts[i];
    shown->nodes = (const char *const *)h->nodes;
    shown->n_nodes = h->n_nodes;
    shown->part = NULL;
    c->far[i].away = shown->whole = h->used ? h->whole : NULL;
    c->far[i].begin = shown->excerpt_begin = h->used ? h->used->begin : INT64_MIN;
    c->far[i].end = shown->excerpt_end = h->used ? h->used->end : INT64_MAX;
}

void cluster_client_use_copy(struct cluster *c, size_t i, size_t copy)
{
    const struct cluster_membership_host *h = &c->membership->hosts[i];
    const struct cluster_entry_host *all = h->copies[0], *part = h->copies[copy];
    struct cluster_host *shown = &c->hosts[i];
    c->far[i].away = shown->whole = h->nodes[0];
    c->far[i].begin = shown->excerpt_begin = part->begin;
    c->far[i].end = shown->excerpt_end = part->end;
    shown->part = h->nodes[copy];
    shown->part_events = part->events;
    shown->all_events = all->events;
}

static int look(struct cluster *c, struct err *e)
{
    forget(c);
    int rc = read_entries(c, e);
    if (rc)
        return rc;
    const struct cluster_membership *r = c->membership;
    c->hosts = mem_zalloc((r->n_hosts + 1) * sizeof *c->hosts);
    c->far = mem_zalloc((r->n_hosts + 1) * sizeof *c->far);
    c->clock_of = mem_zalloc((r->n_hosts + 1) * sizeof *c->clock_of);
    c->alone = mem_zalloc((r->n_hosts + 1) * sizeof *c->alone);
    for (size_t i = 0; i < r->n_hosts; i++) {
        const struct cluster_membership_host *h = &r->hosts[i];
        c->alone[i].island = UINT32_MAX - 1 - (uint32_t)i;
        c->hosts[i] = (struct cluster_host){.name = h->name,
            .clock_name = h->clock_name,
            .key = h->entry->key,
            .begin = h->entry->begin,
            .end = h->entry->end,
            .has_graph = h->entry->has_graph};
        c->far[i] = (struct path_far_host){.name = h->name,
            .id = h->id,
            .has_packets = h->entry->has_packets,
            .own = h->entry->own,
            .peers = h->entry->peers,
            .n_own = h->entry->n_own,
            .n_peers = h->entry->n_peers};
        cluster_client_show_host(c, i);
    }
    return 0;
}

static int open_tables(struct cluster *c, struct err *e)
{
    char table[CLUSTER_SUBJECT];
    int rc = cluster_table_name(c->name, "nodes", table, e);
    if (!rc)
        rc = bus_table_open(c->bus, table, NULL, &c->nodes, e);
    if (!rc)
        rc = cluster_table_name(c->name, "clocks", table, e);
    return rc ? rc : bus_table_open(c->bus, table, NULL, &c->clocks_table, e);
}

int cluster_open(struct bus *bus, const char *name, struct cluster **out, struct err *e)
{
    struct cluster *c = mem_zalloc(sizeof *c);
    c->bus = bus;
    c->name = mem_strdup(name ? name : CLUSTER_DEFAULT);
    c->membership = &nobody;
    int rc = cluster_bind(bus, c->name, e);
    if (!rc)
        rc = open_tables(c, e);
    if (!rc)
        rc = look(c, e);
    if (rc)
        cluster_close(c);
    *out = rc ? NULL : c;
    return rc;
}

int cluster_open_cached(struct cluster_cache *m, struct cluster **out, struct err *e)
{
    struct cluster *c = mem_zalloc(sizeof *c);
    c->bus = m->bus;
    c->name = mem_strdup(m->cluster);
    c->cache = m;
    c->nodes = m->nodes;
    c->clocks_table = m->clocks;
    c->membership = &nobody;
    int rc = look(c, e);
    if (rc)
        cluster_close(c);
    *out = rc ? NULL : c;
    return rc;
}

void cluster_close(struct cluster *c)
{
    if (!c)
        return;
    forget(c);
    if (c->nodes && !c->cache)
        bus_table_close(c->nodes);
    if (c->clocks_table && !c->cache)
        bus_table_close(c->clocks_table);
    arena_fini(&c->names);
    free(c->name);
    free(c);
}

size_t cluster_hosts(const struct cluster *c, const struct cluster_host **out)
{
    *out = c->hosts;
    return c->membership->n_hosts;
}

size_t cluster_missing(const struct cluster *c, const struct cluster_missing **out)
{
    *out = c->membership->missing;
    return c->membership->n_missing;
}

/* ---- clocks ---- */

/* The head of the clocks that are shared. */
struct head {
    struct arena arena;
    struct clocks_head is;
};

static void drop_head(void *is)
{
    struct head *h = is;
    arena_fini(&h->arena);
    free(h);
}

static int read_head(const struct cluster *c, struct cluster_cached **out, struct err *e)
{
    uint64_t version;
    int rc = version_of(c, c->clocks_table, &version, e);
    *out = rc ? NULL : cluster_cache_find(c->cache, CACHED_CLOCKS_HEAD, version);
    if (rc || *out)
        return rc;
    struct head *h = mem_zalloc(sizeof *h);
    rc = cluster_clocks_head_read(c->clocks_table, &h->arena, &h->is, e);
    *out = cluster_cached_new(h, drop_head, version);
    if (!rc)
        cluster_cache_add(c->cache, CACHED_CLOCKS_HEAD, *out);
    return rc;
}

/* Repeats until the shared clocks are those of the present hosts, whose traces may grow all the time. */
static int find_head(struct cluster *c, int64_t deadline_ns, struct cluster_cached **out, bool *stale, struct err *e)
{
    for (useconds_t pause = LOOK_AGAIN_US;; pause = 2 * pause < SELDOM_US ? 2 * pause : SELDOM_US) {
        int rc = read_head(c, out, e);
        *stale = rc || !cluster_clocks_match(&((struct head *)(*out)->is)->is, c->membership);
        bool waits = !rc || rc == ERR_NOTFOUND || rc == ERR_FORMAT; /* a damaged head is made anew */
        if (!*stale || !waits || time_monotonic_ns() >= deadline_ns)
            return rc;
        cluster_cached_unref(*out);
        *out = NULL;
        usleep(pause);
        rc = look(c, e);
        if (rc)
            return rc;
    }
}

static void drop_clocks(void *is)
{
    clock_net_free(is);
}

/* Returns a version of these clocks with the maps that these options give. */
static uint64_t maps_version(const struct clocks_head *h, const struct clock_options *o)
{
    struct text t = {.fd = -1};
    text_printf(&t, "%d %d %s", o->some_named, o->reference != NULL, o->reference ? o->reference : "");
    for (size_t i = 0; i < o->n_trust; i++) {
        text_putc(&t, '\0');
        text_printf(&t, "%" PRId64 " %s", o->trust[i].error_ns, o->trust[i].hosts);
    }
    uint64_t words = map_hash(t.v, t.n);
    text_fini(&t);
    return map_mix(map_mix(h->serial) ^ h->digest) ^ words;
}

static int load_clocks(struct cluster *c, const struct clocks_head *h, const struct clock_options *o, struct err *e)
{
    struct clock_net *net;
    uint64_t version = maps_version(h, o);
    cluster_cached_unref(c->found);
    c->found = cluster_cache_find(c->cache, CACHED_CLOCKS, version);
    if (!c->found) {
        int rc = cluster_clocks_load(c->clocks_table, h, o, &net, e);
        if (rc)
            return rc;
        c->found = cluster_cached_new(net, drop_clocks, version);
        cluster_cache_add(c->cache, CACHED_CLOCKS, c->found);
    }
    c->clocks = c->found->is;
    return 0;
}

static void use_clocks(struct cluster *c, const struct clocks_head *h)
{
    struct map clock_of = {0};
    for (size_t k = h->n_hosts; k-- > 0;)
        *map_put(&clock_of, h->hosts[k].key, NULL) = k + 1;
    for (size_t i = 0; i < c->membership->n_hosts; i++) {
        const uint64_t *at = map_find(&clock_of, c->membership->hosts[i].entry->key);
        c->clock_of[i] = at ? (size_t)*at : 0;
    }
    map_fini(&clock_of);
    for (size_t i = 0; i < c->membership->n_hosts; i++)
        c->far[i].map = cluster_clock_map(c, i);
}

static int sync_once(struct cluster *c, const struct clock_options *o, int64_t deadline_ns, bool *stale, struct err *e)
{
    struct cluster_cached *cached = NULL;
    int rc = find_head(c, deadline_ns, &cached, stale, e);
    const struct head *h = cached ? cached->is : NULL;
    if (rc == ERR_NOTFOUND)
        err_set(e, rc, "no node has found the clocks of cluster %s yet: is a node running?", c->name);
    if ((!rc || rc == ERR_NOTFOUND) && !c->membership->n_hosts)
        rc = err_set(e, ERR_NOTFOUND, "no node of cluster %s has a trace: `weft serve --node` starts one", c->name);
    if (!rc)
        rc = load_clocks(c, &h->is, o, e);
    if (!rc)
        use_clocks(c, &h->is);
    cluster_cached_unref(cached);
    return rc;
}

int cluster_sync(struct cluster *c, const struct clock_options *o, int64_t deadline_ns, bool *stale, struct err *e)
{
    int rc;
    *stale = false;
    c->apart = !o;
    if (c->apart)
        return 0;
    if (o->drift_prior_ppm != clock_defaults().drift_prior_ppm)
        return err_set(e, ERR_ARG, "the clocks of a cluster are found for the usual prior of drift: leave it as it is");
    do /* newer ones may be shared between reading the head and the rest */
        rc = sync_once(c, o, deadline_ns, stale, e);
    while (rc == ERR_STALE && time_monotonic_ns() < deadline_ns);
    return rc;
}

const struct clock_net *cluster_clocks(const struct cluster *c)
{
    return c->clocks;
}

const struct clock_map *cluster_clock_map(const struct cluster *c, size_t host)
{
    if (c->apart || !c->clocks)
        return NULL;
    return c->clock_of[host] ? clock_net_map(c->clocks, c->clock_of[host] - 1) : &c->alone[host];
}

int cluster_relates(const struct cluster *c, size_t host, struct err *e)
{
    return c->clocks && c->clock_of[host] ? clock_net_relates(c->clocks, c->clock_of[host] - 1, e) : 0;
}

/* ---- excerpts ---- */

/* Asks all nodes with traces that have excerpts elsewhere whether they are present. there: by host, some node is. */
static void ask_whole(struct cluster *c, int64_t deadline_ns, bool *there)
{
    struct bus_calls *calls = bus_calls_new(c->bus);
    struct text q = {.fd = -1};
    struct bus_reply reply;
    char subject[CLUSTER_SUBJECT];
    cluster_question_begin(&q, CLUSTER_HELLO);
    for (size_t i = 0; i < c->membership->n_hosts; i++)
        for (size_t k = 0; k < c->membership->hosts[i].n_nodes && c->membership->hosts[i].n_excerpts; k++)
            if (!cluster_subject_of(c->name, c->membership->hosts[i].nodes[k], subject, NULL))
                bus_call(calls, subject, q.v, q.n, deadline_ns, i);
    while (bus_calls_next(calls, &reply)) {
        there[reply.tag] |= !reply.code;
        bus_reply_free(&reply);
    }
    bus_calls_free(calls);
    text_fini(&q);
}

void cluster_use_excerpts(struct cluster *c, bool always, int64_t deadline_ns)
{
    assert(!c->cache); /* entries of a cache are shared */
    int64_t patience_ns = time_monotonic_ns() + WHOLE_NS;
    bool *there = mem_zalloc((c->membership->n_hosts + 1) * sizeof *there);
    if (!always)
        ask_whole(c, deadline_ns < patience_ns ? deadline_ns : patience_ns, there);
    cluster_membership_use_excerpts(c->entries->is, there);
    for (size_t i = 0; i < c->membership->n_hosts; i++)
        cluster_client_show_host(c, i);
    free(there);
}

struct path_remote_host *cluster_client_remote_hosts(const struct cluster *c, const size_t *hosts, size_t n)
{
    struct path_remote_host *remote = mem_zalloc((n + 1) * sizeof *remote);
    for (size_t i = 0; i < n; i++) {
        const struct path_far_host *h = &c->far[hosts[i]];
        remote[i] = (struct path_remote_host){h->id, h->name, h->map};
    }
    return remote;
}

const struct cluster_membership *cluster_registry(const struct cluster *c)
{
    return c->membership;
}

int cluster_registry_read(const struct cluster *c, struct cluster_membership *out, struct err *e)
{
    return cluster_membership_read(c->nodes, out, e);
}

struct bus *cluster_bus(const struct cluster *c)
{
    return c->bus;
}

const char *cluster_name(const struct cluster *c)
{
    return c->name;
}
