/* SPDX-License-Identifier: MIT */
#include "cluster/seat.h"

#include <string.h>

#include "bus/bus.h"
#include "cluster/protocol.h"

int seat_open(struct bus *bus, const char *cluster, const char *name, struct seat *out, struct err *e)
{
    char table[CLUSTER_SUBJECT];
    struct bus_table_options o = {.ttl_ns = SEAT_TTL_NS, .memory = true};
    *out = (struct seat){.name = name};
    int rc = cluster_table_name(cluster, name, table, e);
    return rc ? rc : bus_table_open(bus, table, &o, &out->table, e);
}

void seat_close(struct seat *s)
{
    if (s->table)
        bus_table_close(s->table);
    *s = (struct seat){0};
}

int seat_take(struct seat *s, const char *who, struct err *e)
{
    int rc = bus_table_put_if(s->table, s->name, who, strlen(who), s->revision, &s->revision, e);
    if (rc == ERR_STALE)
        s->revision = 0;
    return rc;
}

void seat_leave(struct seat *s)
{
    if (s->revision)
        bus_table_remove(s->table, s->name, NULL);
    s->revision = 0;
}

int seat_ask(const struct seat *s, char **who, struct err *e)
{
    void *name;
    size_t n;
    int rc = bus_table_get(s->table, s->name, &name, &n, NULL, e);
    *who = rc ? NULL : name;
    return rc;
}
