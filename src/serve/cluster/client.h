/* SPDX-License-Identifier: MIT */
/* Private to the room: a client's view of a cluster. */
#ifndef WEFT_CLUSTER_CLIENT_H
#define WEFT_CLUSTER_CLIENT_H

#include "clock/clock.h"
#include "cluster/cache.h"
#include "cluster/cluster.h"
#include "cluster/membership.h"
#include "path/remote.h"

struct cluster {
    struct bus *bus;
    char *name;
    struct cluster_cache *cache;  /* NULL: everything is read anew */
    struct bus_table *nodes, *clocks_table; /* belong to the cache, if there is one */
    struct cluster_cached *entries, *found;    /* owners of `membership` and `clocks` */
    const struct cluster_membership *membership;
    struct cluster_host *hosts;
    const struct clock_net *clocks;
    size_t *clock_of;        /* by host: its number in the net + 1; 0: none */
    struct clock_map *alone; /* by host: a map that relates it to no other */
    bool apart;              /* every host keeps its own clock */
    struct path_far_host *far;
    struct arena names;      /* names of found threads */
};

/* Show a host as in the membership, or as a lesser copy has it (by number among its nodes), which is asked from now
 * on. */
void cluster_client_show_host(struct cluster *, size_t host);
void cluster_client_use_copy(struct cluster *, size_t host, size_t copy);

/* Returns the hosts as questions to nodes name them; free() it. */
struct path_remote_host *cluster_client_remote_hosts(const struct cluster *, const size_t *hosts, size_t n);

#endif
