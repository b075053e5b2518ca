/* SPDX-License-Identifier: MIT */
#include "cluster/lease.h"

#include <string.h>

#include "bus/bus.h"
#include "cluster/protocol.h"

int cluster_lease_open(struct bus *bus, const char *cluster, const char *name, struct cluster_lease *out, struct err *e)
{
    char table[CLUSTER_SUBJECT];
    struct bus_table_options o = {.ttl_ns = CLUSTER_LEASE_TTL_NS, .memory = true};
    *out = (struct cluster_lease){.name = name};
    int rc = cluster_table_name(cluster, name, table, e);
    return rc ? rc : bus_table_open(bus, table, &o, &out->table, e);
}

void cluster_lease_close(struct cluster_lease *l)
{
    if (l->table)
        bus_table_close(l->table);
    *l = (struct cluster_lease){0};
}

int cluster_lease_take(struct cluster_lease *l, const char *who, struct err *e)
{
    int rc = bus_table_put_if(l->table, l->name, who, strlen(who), l->revision, &l->revision, e);
    if (rc == ERR_STALE)
        l->revision = 0;
    return rc;
}

void cluster_lease_release(struct cluster_lease *l)
{
    if (l->revision)
        bus_table_remove(l->table, l->name, NULL);
    l->revision = 0;
}

int cluster_lease_owner(const struct cluster_lease *l, char **who, struct err *e)
{
    void *name;
    size_t n;
    int rc = bus_table_get(l->table, l->name, &name, &n, NULL, e);
    *who = rc ? NULL : name;
    return rc;
}
