/* Private to the room: a cluster as somebody sees it who asks. */
#ifndef WEFT_CLUSTER_VIEW_H
#define WEFT_CLUSTER_VIEW_H

#include "clock/clock.h"
#include "cluster/cluster.h"
#include "cluster/roster.h"

struct cluster {
    struct bus *bus;
    char *name;
    struct bus_table *nodes, *clocks_table;
    struct roster roster;
    struct cluster_host *hosts;
    const char **node_names;
    struct clock_net *clocks;
    size_t *clock_of;        /* by host: its number in the net + 1, 0: none */
    struct clock_map *alone; /* by host: the map that relates it to no other */
    bool apart;              /* every host keeps its own clock */
    struct path_far_host *far;
    struct arena names;      /* of threads that were found */
};

/* Puts the question to the node. Returns what bus_call does; 0 when the name of the node makes no subject. */
struct bus_calls;
size_t cluster_call(const struct cluster *, struct bus_calls *, const char *node, const struct text *question,
    int64_t deadline_ns, uint64_t tag);
/* How long to wait for one answer: half of what is left, so that there is time to go on without it. */
int64_t cluster_patience(int64_t deadline_ns);

#endif
