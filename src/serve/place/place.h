/* SPDX-License-Identifier: MIT */
/* Where the traces of a cluster are best kept, and moving them from node to node. */
#ifndef WEFT_PLACE_PLACE_H
#define WEFT_PLACE_PLACE_H

#include "cluster/cluster.h"
#include "cluster/node_parts.h"

/* ---- a node's part: it receives traces, and lets others copy its own ---- */

struct place_node_options {
    /* Or NULL: a directory that traces of other nodes may be moved to; made if need be. Copied. */
    const char *receive;
    uint64_t receive_limit;          /* bytes below it, stores included; 0: what the disk has */
    bool give;                       /* other nodes may copy the traces given; without it those only that were moved */
};
/* For cluster_node_options.moving. */
extern const struct cluster_moving place_part;

/* ---- where traces are best kept ---- */

struct place_node {
    const char *name;
    size_t hosts, copies;            /* that it is asked about; of hosts that other nodes are asked about */
    uint64_t bytes, store_bytes;     /* of traces and stores of `hosts` */
    uint64_t planned_bytes;          /* of traces, after all moves that are advised */
    uint64_t version;                /* another one when it has others, or was started again */
    struct cluster_load load;
};
struct place_host {
    int32_t node;                    /* that is asked about it */
    uint64_t bytes, store_bytes, events;
    const char *const *excerpts; size_t n_excerpts; /* nodes that have an excerpt of it, besides */
};
/* Two hosts that talk, a < b: what each sent to the other's addresses. */
struct place_talk { int32_t a, b; uint64_t packets, bytes; };
/* saves: packets that go between nodes less, in all; relieves: bytes that nodes are beyond the limit less. */
struct place_move_advice { int32_t host, from, to; uint64_t bytes, relieves; int64_t saves; };
struct place_plan {
    struct place_node *nodes; size_t n_nodes; /* by name */
    struct place_host *hosts; size_t n_hosts; /* as cluster_hosts */
    struct place_talk *talk; size_t n_talk; /* most packets first */
    struct place_move_advice *moves; size_t n_moves; /* in this order */
    uint64_t limit_bytes;            /* that no node is to have more of */
    uint64_t between, between_after; /* packets between nodes: now, and after all moves */
};
struct place_options {
    unsigned balance_percent;        /* a node may have so much more than the mean */
    unsigned gain_percent;           /* a move saves so much of all packets, or relieves by so much of the limit */
    int64_t settle_ns;               /* what came to its node less than so long ago stays there */
    int64_t deadline_ns;
};
/* Asks all nodes how busy they are; what is where, and who talks with whom, the entries tell. Nodes that do not answer
 * are left as they are. place_plan_free. */
void place_advise(struct cluster *, const struct place_options *, struct place_plan **out);
void place_plan_free(struct place_plan *);

enum place_move_state {
    PLACE_MOVE_UNKNOWN, PLACE_MOVE_WAITING, /* others are moved before */
    PLACE_MOVE_COPYING,
    PLACE_MOVE_CHECKING,             /* the sums of what has come */
    PLACE_MOVE_OPENING,              /* it is indexed */
    PLACE_MOVE_DONE, PLACE_MOVE_FAILED
};
struct place_move_progress {
    enum place_move_state state;
    uint64_t done, total;            /* bytes */
    const char *text;                /* why it failed */
};
struct place_move_options {
    /* Only what was recorded within [begin, end] (its own clock) is copied, as an excerpt: what there is stays. */
    bool excerpt; int64_t begin, end;
    int64_t patience_ns;             /* how long there may be no progress */
    /* Or NULL. Called now and then. False: it is not waited for any more, ERR_CANCELLED; the node goes on. */
    bool (*progress)(void *arg, const struct place_move_progress *);
    void *arg;
};
/* Has the node take the trace of the host from the one that is asked about it now, and once it is asked itself, that
 * one put it aside if it came there by a move, too (*aside); else it keeps it as a copy. What was begun is gone on
 * with. Nothing is lost whoever dies: then ERR_TIMEOUT, and calling it again goes on. ERR_ARG: a node refuses.
 * ERR_STALE: the trace has grown meanwhile. */
int place_move(struct cluster *, size_t host, const char *node, const struct place_move_options *, bool *aside,
    struct err *e);

/* A host that came to two nodes by moves, and is the same on both: the last move was not brought to its end (the older
 * copy put aside), which place_move to the node that is asked does. False: there is none. Of excerpts several may be
 * wanted. */
bool place_find_unfinished(const struct cluster *, size_t *host);

/* Moves traces as advised, one at a time, while the nodes of a move are idle (policy.h), until it is stopped.
 * Of several that do so in a cluster one decides; the others wait for its lease. Brokers and nodes may come and go. */
struct place_auto_options {
    const char *cluster;             /* NULL: CLUSTER_DEFAULT */
    const char *who;                 /* decides: for the others to tell */
    struct place_options place;      /* its deadline is not used */
    /* A node with more load than that of its CPUs is not idle, nor one that answers more questions a second. */
    unsigned load_percent, questions;
    int64_t idle_ns, every_ns;       /* for so long nodes must have been idle; between two looks */
    int64_t patience_ns;             /* as place_move_options */
    bool once;                       /* ends after a move, or when none was possible after idle_ns */
    void (*say)(void *arg, const char *line); /* what is decided and why, and what became of it; the same once */
    bool (*stop)(void *arg);         /* asked several times a second */
    void *arg;
};
/* Ends when it is stopped, or with `once`: then the error of what failed. */
int place_auto(struct bus *, const struct place_auto_options *, struct err *e);

#endif
