/* SPDX-License-Identifier: MIT */
/* Registry of a cluster: an entry per node, which describes its hosts. Membership: the hosts of all nodes together. The
 * same entries give the same membership, for every reader and in any order. */
#ifndef WEFT_CLUSTER_REGISTRY_H
#define WEFT_CLUSTER_REGISTRY_H

#include "base/arena.h"
#include "cluster/missing.h"
#include "flow/flow.h"
#include "index/index.h"

struct bus; struct bus_table;

/* ---- entries: self-descriptions of nodes, in the table of nodes ---- */

/* Excerpt of a trace: only what was recorded within [begin, end], by the host's clock. */
struct cluster_excerpt {
    bool is;
    uint64_t of;             /* hash of the trace that it was cut from */
    int64_t begin, end;
    const char *from;        /* node that had that trace */
};
struct cluster_entry_host {
    uint64_t key;            /* identity, wherever the trace is opened; the same for copies of a trace */
    uint64_t hash;           /* hash of the inputs of its stores */
    const char *name, *clock_name;
    int64_t begin, end, sealed_until; /* times by its clock */
    bool has_graph, has_packets, has_stacks;
    bool is_user_space;      /* no kernel trace */
    bool by_session;         /* the key is of the session; else of all recordings of the machine's boot */
    struct index_far_clock clock;
    const struct flow_address *own, *peers; size_t n_own, n_peers;
    /* Facts for placement. */
    uint64_t bytes, store_bytes, events; /* bytes of its files; of its stores; 0 events: unknown */
    int64_t since;           /* time of receipt from another node (ns since the epoch); 0: not received */
    /* by peer: traffic sent there; bytes of long flows are estimated (metrics.c). */
    const struct cluster_entry_talk { uint64_t packets, bytes; } *talk;
    struct cluster_excerpt excerpt;
};
struct cluster_entry {
    const char *node, *instance;
    uint64_t serial;         /* grows with each change by this instance */
    const struct cluster_entry_host *hosts; size_t n_hosts;
};

/* ---- the membership ---- */

enum { CLUSTER_ID = 17 };
struct cluster_membership_host {
    const struct cluster_entry_host *entry; /* newest entry, if several nodes have copies */
    const char *own_name;         /* name without the number that its node gave it */
    const char *name, *clock_name; /* names by index_name_hosts: clock_name is unique in the cluster */
    const char **nodes; size_t n_nodes; /* holders of most first, lesser copies behind them */
    size_t *entries;              /* entries of these nodes, */
    const struct cluster_entry_host **copies; /* and of the host in these entries */
    /* Excerpts stand behind these: n_excerpts of them, the longest first. If nobody has the whole trace, the first
     * excerpt and its copies are the nodes. */
    size_t n_excerpts;
    const struct cluster_excerpt *used; /* excerpt that is used instead of the host; NULL: none */
    const char *whole;            /* with an excerpt: node that has more, present or not */
    char id[CLUSTER_ID];
};
struct cluster_membership {
    struct arena arena;
    const struct cluster_entry *entries; size_t n_entries; /* sorted by name of the node */
    struct cluster_node_hosts { /* by entry: hosts that its node has completely, and their hashes there */
        int32_t *hosts; uint64_t *hashes; size_t n;
    } *node_hosts;
    struct cluster_membership_host *hosts; size_t n_hosts; /* in the order of an experiment of them all: by name, then
                                                            * begin, those without a kernel trace last */
    struct cluster_missing *missing; size_t n_missing; /* by node: nodes that are not included above, or only partly */
    /* Hosts of nodes of earlier releases that cannot be distinguished from those of others; they are not among the
     * hosts. Their keys are of a machine's boot, whatever the session. */
    struct cluster_membership_unclear { const char *node, *host; } *unclear; size_t n_unclear;
};
/* Reads the membership, with its missing sources. */
int cluster_membership_read(struct bus_table *, struct cluster_membership *out, struct err *e);
void cluster_membership_fini(struct cluster_membership *);

/* ---- registry of an open cluster ---- */

/* Returns the membership; borrowed until the cluster is closed or synchronised again. */
const struct cluster_membership *cluster_registry(const struct cluster *);
/* Reads the present membership; cluster_membership_fini. */
int cluster_registry_read(const struct cluster *, struct cluster_membership *out, struct err *e);
struct bus *cluster_bus(const struct cluster *);
const char *cluster_name(const struct cluster *);

#endif
