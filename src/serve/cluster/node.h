/* SPDX-License-Identifier: MIT */
/* Private to the room: what a node's two parts share. node.c begins, answers and ends; opener.c opens the traces, and
 * says what they are, in a thread of its own. */
#ifndef WEFT_CLUSTER_NODE_H
#define WEFT_CLUSTER_NODE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "bus/bus.h"
#include "cluster/cluster.h"
#include "cluster/condition.h"
#include "cluster/node_parts.h"

struct question;

struct cluster_node {
    struct bus *bus;
    const char *cluster;
    char *name, *release, *store;
    char key[BUS_MAX_SUBJECT + 1]; /* of its entry and of its server */
    char instance[33];
    const char *const *given; /* traces */
    size_t n_given;
    void (*tell)(void *arg, const char *what);
    void *tell_arg;
    struct bus_service *service;
    struct bus_table *table, *routes;
    struct routes_published *routes_published; /* the opener's */
    struct bus_watch *own_entry;
    struct text entry; /* as it was put last; under `lock` */
    struct cluster_clock_leader *leader;
    const struct cluster_moving *moving; /* or NULL, as the next */
    const struct cluster_sharing *sharing;
    void *mover, *sharer;                    /* NULL: without that part */
    const char *receive_dir, *share_dir;     /* of the parts, or NULL */
    struct cluster_node_context of_mover, of_sharer;
    atomic_uint_fast64_t questions;          /* that came, but those about moves */
    pthread_t opener, *workers;
    unsigned n_workers;
    int wake;             /* of the opener */
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t asked;
    struct question *first, **last;
    size_t waiting;
    struct cluster_trace_set *trace_set; /* NULL: none yet */
    uint64_t serial;
    bool stop, said, say_again, assignment_changed;
    bool moved;  /* traces have come from other nodes, or gone */
    bool closed; /* no question is answered any more */
    int64_t last_asked_ns;
    /* The opener's. */
    struct cluster_share shared;    /* what it shall have of the shared ones */
    VEC(char *) traces;             /* all, given and shared, that are to be opened */
    struct err complaint;           /* what was told last */
    int state;                      /* enum condition_state, and */
    struct err failure;             /* of CONDITION_FAILED: both changed with the lock; */
    VEC(char *) problems;           /* what of the traces could not be read, */
    size_t all_problems;            /* and how much, listed or not; */
    VEC(char *) absent;             /* what of its share is not there */
    uint64_t condition;             /* hash of what was said of them last */
    int64_t look_ns, rest_until_ns; /* when to look at its share; before that nothing is opened for its sake */
    int64_t check_ns;               /* when to look whether its other entries are still there */
    int64_t list_again_ns;          /* nothing of its share is there, as before a disk is mounted: when to look again */
};

/* ---- opener.c ---- */

/* The thread: ends once `stop` is set and it is woken. */
void *cluster_opener_run(void *node);
void cluster_opener_wake(const struct cluster_node *);
/* To be called with what the table says of the node's own entry, and when traces have come from other nodes or gone. */
void cluster_opener_on_entry(void *node, const struct bus_entry *);
void cluster_opener_on_moved(void *node);
/* Puts the node's condition, if it is another one than was put last; anew: in any case. */
int cluster_opener_put_condition(struct cluster_node *, bool anew, struct err *);
/* Frees what the opener has listed. */
void cluster_opener_fini(struct cluster_node *);

#endif
