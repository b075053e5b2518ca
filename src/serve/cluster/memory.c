/* SPDX-License-Identifier: MIT */
#include "cluster/memory.h"

#include <stdlib.h>

#include "base/mem.h"
#include "bus/bus.h"
#include "cluster/protocol.h"
#include "cluster/recall.h"

struct kept *kept_new(void *is, void (*drop)(void *is), uint64_t version)
{
    struct kept *k = mem_zalloc(sizeof *k);
    k->refs = 1;
    k->version = version;
    k->is = is;
    k->drop = drop;
    return k;
}

void kept_unref(struct kept *k)
{
    if (!k || atomic_fetch_sub(&k->refs, 1) > 1)
        return;
    k->drop(k->is);
    free(k);
}

struct kept *memory_find(struct cluster_memory *m, enum kept_kind kind, uint64_t version)
{
    struct kept *found = NULL;
    if (!m)
        return NULL;
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < MOST_KEPT && !found; i++)
        if (m->kept[kind][i] && m->kept[kind][i]->version == version)
            found = m->kept[kind][i];
    if (found) {
        found->used = ++m->tick;
        atomic_fetch_add(&found->refs, 1);
    }
    pthread_mutex_unlock(&m->lock);
    return found;
}

/* Cards and what else there is one of: the one before is of no use any more. */
static size_t most_of(enum kept_kind kind)
{
    return kind == KEPT_CLOCKS ? MOST_KEPT : 1;
}

void memory_keep(struct cluster_memory *m, enum kept_kind kind, struct kept *k)
{
    if (!m)
        return;
    pthread_mutex_lock(&m->lock);
    struct kept **oldest = &m->kept[kind][0];
    for (size_t i = 1; i < most_of(kind) && *oldest; i++)
        if (!m->kept[kind][i] || m->kept[kind][i]->used < (*oldest)->used)
            oldest = &m->kept[kind][i];
    struct kept *before = *oldest;
    *oldest = k;
    k->used = ++m->tick;
    atomic_fetch_add(&k->refs, 1);
    pthread_mutex_unlock(&m->lock);
    kept_unref(before);
}

static int open_table(struct cluster_memory *m, const char *kind, struct bus_table **out, struct err *e)
{
    char name[CLUSTER_SUBJECT];
    int rc = cluster_table_name(m->cluster, kind, name, e);
    return rc ? rc : bus_table_open(m->bus, name, NULL, out, e);
}

int cluster_memory_open(
    struct bus *bus, const char *name, size_t most_bytes, struct cluster_memory **out, struct err *e)
{
    struct cluster_memory *m = mem_zalloc(sizeof *m);
    m->bus = bus;
    m->cluster = mem_strdup(name ? name : CLUSTER_DEFAULT);
    m->recall = recall_new(most_bytes);
    pthread_mutex_init(&m->lock, NULL);
    int rc = cluster_bind(bus, m->cluster, e);
    if (!rc)
        rc = open_table(m, "nodes", &m->nodes, e);
    if (!rc)
        rc = open_table(m, "clocks", &m->clocks, e);
    if (!rc)
        rc = open_table(m, "routes", &m->routes, e);
    if (rc)
        cluster_memory_close(m);
    *out = rc ? NULL : m;
    return rc;
}

void cluster_memory_close(struct cluster_memory *m)
{
    if (!m)
        return;
    struct bus_table *tables[] = {m->nodes, m->clocks, m->routes};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (tables[i])
            bus_table_close(tables[i]);
    for (size_t kind = 0; kind < KEPT_KINDS; kind++)
        for (size_t i = 0; i < MOST_KEPT; i++)
            kept_unref(m->kept[kind][i]);
    recall_free(m->recall);
    pthread_mutex_destroy(&m->lock);
    free(m->cluster);
    free(m);
}
