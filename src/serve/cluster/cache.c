/* SPDX-License-Identifier: MIT */
#include "cluster/cache.h"

#include <stdlib.h>

#include "base/mem.h"
#include "bus/bus.h"
#include "cluster/answer_cache.h"
#include "cluster/protocol.h"

struct cluster_cached *cluster_cached_new(void *is, void (*drop)(void *is), uint64_t version)
{
    struct cluster_cached *k = mem_zalloc(sizeof *k);
    k->refs = 1;
    k->version = version;
    k->is = is;
    k->drop = drop;
    return k;
}

void cluster_cached_unref(struct cluster_cached *k)
{
    if (!k || atomic_fetch_sub(&k->refs, 1) > 1)
        return;
    k->drop(k->is);
    free(k);
}

struct cluster_cached *cluster_cache_find(struct cluster_cache *c, enum cluster_cached_kind kind, uint64_t version)
{
    struct cluster_cached *found = NULL;
    if (!c)
        return NULL;
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < MOST_CACHED && !found; i++)
        if (c->cached[kind][i] && c->cached[kind][i]->version == version)
            found = c->cached[kind][i];
    if (found) {
        found->used = ++c->tick;
        atomic_fetch_add(&found->refs, 1);
    }
    pthread_mutex_unlock(&c->lock);
    return found;
}

/* Entries and what else there is one of: the one before is of no use any more. */
static size_t most_of(enum cluster_cached_kind kind)
{
    return kind == CACHED_CLOCKS ? MOST_CACHED : 1;
}

void cluster_cache_add(struct cluster_cache *c, enum cluster_cached_kind kind, struct cluster_cached *k)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    struct cluster_cached **oldest = &c->cached[kind][0];
    for (size_t i = 1; i < most_of(kind) && *oldest; i++)
        if (!c->cached[kind][i] || c->cached[kind][i]->used < (*oldest)->used)
            oldest = &c->cached[kind][i];
    struct cluster_cached *before = *oldest;
    *oldest = k;
    k->used = ++c->tick;
    atomic_fetch_add(&k->refs, 1);
    pthread_mutex_unlock(&c->lock);
    cluster_cached_unref(before);
}

static int open_table(struct cluster_cache *c, const char *kind, struct bus_table **out, struct err *e)
{
    char name[CLUSTER_SUBJECT];
    int rc = cluster_table_name(c->cluster, kind, name, e);
    return rc ? rc : bus_table_open(c->bus, name, NULL, out, e);
}

int cluster_cache_open(struct bus *bus, const char *name, size_t most_bytes, struct cluster_cache **out, struct err *e)
{
    struct cluster_cache *c = mem_zalloc(sizeof *c);
    c->bus = bus;
    c->cluster = mem_strdup(name ? name : CLUSTER_DEFAULT);
    c->answers = cluster_answer_cache_new(most_bytes);
    pthread_mutex_init(&c->lock, NULL);
    int rc = cluster_bind(bus, c->cluster, e);
    if (!rc)
        rc = open_table(c, "nodes", &c->nodes, e);
    if (!rc)
        rc = open_table(c, "clocks", &c->clocks, e);
    if (!rc)
        rc = open_table(c, "routes", &c->routes, e);
    if (rc)
        cluster_cache_close(c);
    *out = rc ? NULL : c;
    return rc;
}

void cluster_cache_close(struct cluster_cache *c)
{
    if (!c)
        return;
    struct bus_table *tables[] = {c->nodes, c->clocks, c->routes};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (tables[i])
            bus_table_close(tables[i]);
    for (size_t kind = 0; kind < CACHED_KINDS; kind++)
        for (size_t i = 0; i < MOST_CACHED; i++)
            cluster_cached_unref(c->cached[kind][i]);
    cluster_answer_cache_free(c->answers);
    pthread_mutex_destroy(&c->lock);
    free(c->cluster);
    free(c);
}
