/* SPDX-License-Identifier: MIT */
/* Private to the room: shared state of a node's two files. node.c begins, answers and ends. opener.c opens the traces
 * and publishes their description, in a separate thread. */
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
    char key[BUS_MAX_SUBJECT + 1]; /* key of its entry and of its server */
    char instance[33];
    const char *const *given; /* traces */
    size_t n_given;
    void (*tell)(void *arg, const char *what);
    void *tell_arg;
    struct bus_service *service;
    struct bus_table *table, *routes;
    struct routes_published *routes_published; /* used by the opener */
    struct bus_watch *own_entry;
    struct text entry; /* latest entry put; under `lock` */
    struct cluster_clock_leader *leader;
    const struct cluster_moving *moving; /* NULL: none; the next one, too */
    const struct cluster_sharing *sharing;
    void *mover, *sharer;                    /* NULL: without that part */
    const char *receive_dir;                 /* directory of the mover, or NULL */
    char *share_dir;                         /* directory of the sharer, or NULL: a copy, since it is closed earlier */
    struct cluster_node_context of_mover, of_sharer;
    atomic_uint_fast64_t questions;          /* number of questions received, without those about moves */
    pthread_t opener, *workers;
    unsigned n_workers;
    int wake;             /* eventfd of the opener */
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t asked;
    struct question *first, **last;
    size_t waiting;
    struct cluster_trace_set *trace_set; /* NULL: none yet */
    uint64_t serial;
    bool stop, said, say_again, assignment_changed;
    bool moved;  /* traces were received or moved away */
    bool closed; /* questions are not answered any more */
    int64_t last_asked_ns;
    /* Used by the opener only: */
    struct cluster_share shared;    /* share of the shared traces that it should have open */
    VEC(char *) traces;             /* all traces to be opened, given and shared */
    struct err complaint;           /* latest error reported */
    int state;                      /* enum condition_state, and */
    struct err failure;             /* reason of CONDITION_FAILED: both changed with the lock; */
    VEC(char *) problems;           /* parts of the traces that could not be read, */
    size_t all_problems;            /* and their full number; */
    VEC(char *) absent;             /* parts of its share that do not exist here */
    uint64_t condition;             /* hash of the condition put last */
    int64_t look_ns, rest_until_ns; /* time of the next look at its share; earliest time to open traces for it */
    int64_t check_ns;               /* time of the next check that its other entries still exist */
    int64_t list_again_ns;          /* time of the next attempt if nothing of its share exists, as before a disk is
                                     * mounted */
};

/* ---- opener.c ---- */

/* Thread's function; ends after `stop` is set and it is woken. */
void *cluster_opener_run(void *node);
void cluster_opener_wake(const struct cluster_node *);
/* Handlers for the node's own entry in the table, and for traces received or moved away. */
void cluster_opener_on_entry(void *node, const struct bus_entry *);
void cluster_opener_on_moved(void *node);
/* Puts the node's condition if it has changed; anew: in any case. */
int cluster_opener_put_condition(struct cluster_node *, bool anew, struct err *);
/* Frees the opener's lists. */
void cluster_opener_fini(struct cluster_node *);

#endif
