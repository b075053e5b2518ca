/* SPDX-License-Identifier: MIT */
/* The registry of a cluster: an entry per node, which describes its hosts, and the membership: the hosts of all nodes
 * together. The same entries give the same membership, whoever reads them, in whatever order they come. */
#ifndef WEFT_CLUSTER_REGISTRY_H
#define WEFT_CLUSTER_REGISTRY_H

#include "base/arena.h"
#include "cluster/missing.h"
#include "flow/flow.h"
#include "index/index.h"

struct bus; struct bus_table;

/* ---- entries: what a node says of itself, in the table of nodes ---- */

/* An excerpt of a trace: only what was recorded within [begin, end], by the host's clock. */
struct cluster_excerpt {
    bool is;
    uint64_t of;             /* the hash that the trace had, of which it was cut */
    int64_t begin, end;
    const char *from;        /* the node that had it */
};
struct cluster_entry_host {
    uint64_t key;            /* who it is: the same wherever it is opened; copies of a trace have it in common */
    uint64_t hash;           /* of what its stores are made of */
    const char *name, *clock_name;
    int64_t begin, end, sealed_until; /* by its clock */
    bool has_graph, has_packets;
    bool is_user_space;      /* it has no kernel trace */
    bool by_session;         /* the key is of the session; else that of all that the machine recorded in the boot */
    struct index_far_clock clock;
    const struct flow_address *own, *peers; size_t n_own, n_peers;
    /* What tells where it is best kept. */
    uint64_t bytes, store_bytes, events; /* of its files; of its stores; 0 events: not known */
    int64_t since;           /* when it came from another node (ns since the epoch); 0: it did not */
    /* By peer, what was sent there; bytes of long flows are estimated (metrics.c). */
    const struct cluster_entry_talk { uint64_t packets, bytes; } *talk;
    struct cluster_excerpt excerpt;
};
struct cluster_entry {
    const char *node, *instance;
    uint64_t serial;         /* grows with each change, of this instance */
    const struct cluster_entry_host *hosts; size_t n_hosts;
};

/* ---- the membership ---- */

enum { CLUSTER_ID = 17 };
struct cluster_membership_host {
    const struct cluster_entry_host *entry; /* the newest, where several nodes have copies */
    const char *own_name;         /* without the number that its node gave it */
    const char *name, *clock_name; /* as index_name_hosts names them: clock_name is unique in the cluster */
    const char **nodes; size_t n_nodes; /* those that hold most first: lesser copies are behind them */
    size_t *entries;              /* theirs, */
    const struct cluster_entry_host **copies; /* and what they say of the host */
    /* Excerpts stand behind these, n_excerpts of them, those of most time first; where nobody has all of the
     * trace, the first and its copies are the nodes. */
    size_t n_excerpts;
    const struct cluster_excerpt *used; /* what is asked about is an excerpt, this one; NULL: it is not */
    const char *whole;            /* then: the node that has more, here or not */
    char id[CLUSTER_ID];
};
struct cluster_membership {
    struct arena arena;
    const struct cluster_entry *entries; size_t n_entries; /* by name of the node */
    struct cluster_node_hosts { /* by entry: hosts of which its node has all, and hashes of what it has of them */
        int32_t *hosts; uint64_t *hashes; size_t n;
    } *node_hosts;
    struct cluster_membership_host *hosts; size_t n_hosts; /* in the order of an experiment of them all: by name, then
                                                            * begin, those without a kernel trace last */
    struct cluster_missing *missing; size_t n_missing; /* by node: who is not in the above, or not all of it */
    /* What nodes of earlier releases have that cannot be told from what others have, and is not among the hosts: their
     * keys are of a machine's boot, whatever the session. */
    struct cluster_membership_unclear { const char *node, *host; } *unclear; size_t n_unclear;
};
/* With what is missing. */
int cluster_membership_read(struct bus_table *, struct cluster_membership *out, struct err *e);
void cluster_membership_fini(struct cluster_membership *);

/* ---- of a cluster that is open ---- */

/* Borrowed, until the cluster is closed, or synchronised again. */
const struct cluster_membership *cluster_registry(const struct cluster *);
/* As it is now; cluster_membership_fini. */
int cluster_registry_read(const struct cluster *, struct cluster_membership *out, struct err *e);
struct bus *cluster_bus(const struct cluster *);
const char *cluster_name(const struct cluster *);

#endif
