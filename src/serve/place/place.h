/* SPDX-License-Identifier: MIT */
/* Placement of a cluster's traces: advice, and moves from node to node. */
#ifndef WEFT_PLACE_PLACE_H
#define WEFT_PLACE_PLACE_H

#include "cluster/cluster.h"
#include "cluster/node_parts.h"

/* ---- part of a node: receiving traces, and sending its own ---- */

struct place_node_options {
    /* Directory for traces from other nodes, made if absent; or NULL. Copied. */
    const char *receive;
    uint64_t receive_limit;          /* limit of bytes below it, stores included; 0: the disk's space */
    bool give;                       /* other nodes may copy the traces given; without it only those received by
                                      * moves */
};
/* Value for cluster_node_options.moving. */
extern const struct cluster_moving place_part;

/* ---- advice ---- */

struct place_node {
    const char *name;
    size_t hosts, copies;            /* hosts that it is asked about; copies of hosts that other nodes are asked
                                      * about */
    uint64_t bytes, store_bytes;     /* bytes of the traces and stores of `hosts` */
    uint64_t planned_bytes;          /* bytes of its traces after all advised moves */
    uint64_t version;                /* changes with its hosts, and with each start of the node */
    struct cluster_load load;
};
struct place_host {
    int32_t node;                    /* node that is asked about it */
    uint64_t bytes, store_bytes, events;
    const char *const *excerpts; size_t n_excerpts; /* nodes with an excerpt of it, in addition */
};
/* Traffic of two hosts, a < b: packets that each sent to the other's addresses. */
struct place_talk { int32_t a, b; uint64_t packets, bytes; };
/* saves: reduction of packets between nodes, in all; relieves: reduction of bytes that nodes have beyond the limit. */
struct place_move_advice { int32_t host, from, to; uint64_t bytes, relieves; int64_t saves; };
struct place_plan {
    struct place_node *nodes; size_t n_nodes; /* sorted by name */
    struct place_host *hosts; size_t n_hosts; /* numbered as in cluster_hosts */
    struct place_talk *talk; size_t n_talk; /* most packets first */
    struct place_move_advice *moves; size_t n_moves; /* order in which to make them */
    uint64_t limit_bytes;            /* limit of bytes per node */
    uint64_t between, between_after; /* packets between nodes: now, and after all moves */
};
struct place_options {
    unsigned balance_percent;        /* allowed excess of a node over the mean */
    unsigned gain_percent;           /* minimum of a move: share of all packets saved, or of the limit relieved */
    int64_t settle_ns;               /* traces received less than so long ago stay on their node */
    int64_t deadline_ns;
};
/* Makes a plan. Asks all nodes for their load; entries of the registry have traces and traffic. Nodes that do not
 * answer are left as they are. place_plan_free. */
void place_advise(struct cluster *, const struct place_options *, struct place_plan **out);
void place_plan_free(struct place_plan *);

enum place_move_state {
    PLACE_MOVE_UNKNOWN, PLACE_MOVE_WAITING, /* other moves come first */
    PLACE_MOVE_COPYING,
    PLACE_MOVE_CHECKING,             /* comparing the sums of what was received */
    PLACE_MOVE_OPENING,              /* indexing */
    PLACE_MOVE_DONE, PLACE_MOVE_FAILED
};
struct place_move_progress {
    enum place_move_state state;
    uint64_t done, total;            /* bytes */
    const char *text;                /* reason of a failure */
};
struct place_move_options {
    /* Copies only what was recorded within [begin, end] (its own clock), as an excerpt; the original stays. */
    bool excerpt; int64_t begin, end;
    int64_t patience_ns;             /* timeout without progress */
    /* Progress callback, or NULL. Returns false to stop waiting: ERR_CANCELLED; the node continues. */
    bool (*progress)(void *arg, const struct place_move_progress *);
    void *arg;
};
/* Moves the trace of the host to the node, from the node that is asked about it now. When the new node is asked itself,
 * the old one puts its trace aside if it had received it by a move (*aside), else keeps it as a copy. An interrupted
 * move is continued. Nothing is lost if a node dies: then ERR_TIMEOUT, and another call continues. ERR_ARG: a node
 * refuses. ERR_STALE: the trace has grown meanwhile. */
int place_move(struct cluster *, size_t host, const char *node, const struct place_move_options *, bool *aside,
    struct err *e);

/* Finds a host that two nodes received by moves and that is the same on both: the last move is unfinished (the older
 * copy was not put aside). place_move to the node that is asked finishes it. Returns false if there is none. Excerpts
 * do not count: several may be wanted. */
bool place_find_unfinished(const struct cluster *, size_t *host);

/* Moves traces as advised, one at a time, while the nodes of a move are idle (policy.h), until it is stopped. Of
 * several such processes in a cluster, the holder of a lease decides; the others wait. Brokers and nodes may come and
 * go. */
struct place_auto_options {
    const char *cluster;             /* NULL: CLUSTER_DEFAULT */
    const char *who;                 /* name of this process, reported by the others */
    struct place_options place;      /* deadline is not used */
    /* Limits of an idle node: load in percent of that of its CPUs, and questions answered per second. */
    unsigned load_percent, questions;
    int64_t idle_ns, every_ns;       /* time that nodes must have been idle; interval of looks */
    int64_t patience_ns;             /* see place_move_options */
    bool once;                       /* ends after a move, or if none was possible after idle_ns */
    void (*say)(void *arg, const char *line); /* reports decisions, reasons and results, without repeats */
    bool (*stop)(void *arg);         /* polled several times a second */
    void *arg;
};
/* Runs until it is stopped. With `once` it returns the error of what failed. */
int place_auto(struct bus *, const struct place_auto_options *, struct err *e);

#endif
