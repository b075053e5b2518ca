/* SPDX-License-Identifier: MIT */
/* What the nodes of a cluster are doing, as each of them says when it is asked. */
#ifndef WEFT_CLUSTER_STATUS_H
#define WEFT_CLUSTER_STATUS_H

#include "cluster/missing.h"

enum cluster_node_state {
    CLUSTER_NODE_AWAY,               /* it does not answer */
    CLUSTER_NODE_OLDER,              /* it answers, and is of a release that says no more */
    CLUSTER_NODE_OPENING, CLUSTER_NODE_OPEN, CLUSTER_NODE_FAILED /* of its traces */
};
const char *cluster_node_state_name(int state); /* "away", … */
struct cluster_load {
    bool answered;                   /* all else is known */
    unsigned cpus, load_percent;     /* load average of the last minute: 100 is one CPU busy */
    uint64_t questions;              /* answered since it was started */
    bool receives, gives;            /* takes traces of others; lets others copy what it was given */
    bool taking;                     /* one is on its way to it now */
    uint64_t room_bytes;             /* that may still come */
};
/* The answer to CLUSTER_LOAD. ERR_FORMAT. */
int cluster_load_read(const void *bytes, size_t n, struct cluster_load *out, struct err *e);
struct cluster_disk { const char *path; uint64_t free_bytes, all_bytes; };
struct cluster_node_status {
    const char *name;
    int state;
    const char *text;                /* why it is away, or failed; else "" */
    /* As its registry entry says. */
    size_t hosts, unrelated;         /* whose clocks nothing relates to others' */
    uint64_t bytes, store_bytes, events;
    bool leads_clocks;               /* it finds the clocks of all */
    /* OPENING, OPEN and FAILED. */
    const char *release;
    struct cluster_load load;
    struct cluster_disk disk;        /* of those with its traces and stores the one with least room; or path "" */
    /* Its system clock less that of who asks, and the greatest error of that: half of what the answer took. */
    int64_t ahead_ns, error_ns;
};
/* Asks all nodes that the registry names, by name; they live as long as the cluster. After cluster_sync, where clocks
 * matter. Nodes are waited for until the deadline. */
size_t cluster_status(struct cluster *, int64_t deadline_ns, struct cluster_node_status **out);

#endif
