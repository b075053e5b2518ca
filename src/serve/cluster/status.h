/* SPDX-License-Identifier: MIT */
/* Status of the nodes of a cluster, as each node reports it. */
#ifndef WEFT_CLUSTER_STATUS_H
#define WEFT_CLUSTER_STATUS_H

#include "cluster/missing.h"

enum cluster_node_state {
    CLUSTER_NODE_AWAY,               /* does not answer */
    CLUSTER_NODE_OLDER,              /* answers, but its release reports no more */
    CLUSTER_NODE_OPENING, CLUSTER_NODE_OPEN, CLUSTER_NODE_FAILED /* state of its traces */
};
const char *cluster_node_state_name(int state); /* "away", … */
struct cluster_load {
    bool answered;                   /* the node answered; the fields below are known */
    unsigned cpus, load_percent;     /* load average of the last minute: 100 is one busy CPU */
    uint64_t questions;              /* number answered since it was started */
    bool receives, gives;            /* accepts traces of others; lets others copy what it was given */
    bool taking;                     /* a trace is being received */
    uint64_t room_bytes;             /* bytes that it can still receive */
};
/* The answer to CLUSTER_LOAD. ERR_FORMAT. */
int cluster_load_read(const void *bytes, size_t n, struct cluster_load *out, struct err *e);
struct cluster_disk { const char *path; uint64_t free_bytes, all_bytes; };
struct cluster_node_status {
    const char *name;
    int state;
    const char *text;                /* reason for AWAY or FAILED; else "" */
    /* From its registry entry: */
    size_t hosts, unrelated;         /* unrelated: hosts whose clocks are related to no other */
    uint64_t bytes, store_bytes, events;
    bool leads_clocks;               /* it is the clock leader */
    /* Set for OPENING, OPEN and FAILED: */
    const char *release;
    struct cluster_load load;
    struct cluster_disk disk;        /* file system of its traces and stores with the least space; or path "" */
    /* Its system clock minus the client's, and the greatest error: half of the answer's duration. */
    int64_t ahead_ns, error_ns;
};
/* Asks all nodes in the registry, until the deadline. Returns them by name; they live as long as the cluster. Call it
 * after cluster_sync if clocks matter. */
size_t cluster_status(struct cluster *, int64_t deadline_ns, struct cluster_node_status **out);

#endif
