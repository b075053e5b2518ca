/* A cluster: traces stay on the machines that have them. A *node* has the traces of some hosts, says so (its card, in
 * a table that everybody reads), and answers questions about them; who asks follows a critical path from node to node,
 * asking only those that hold a piece of it. Clocks are found by one of the nodes for all (the keeper), and shared.
 * What is on the wire: docs/cluster-protocol.md. */
#ifndef WEFT_CLUSTER_CLUSTER_H
#define WEFT_CLUSTER_CLUSTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "graph/graph.h"
#include "path/path.h"

struct bus;
struct clock_options;
struct text;

#define CLUSTER_DEFAULT "weft"

/* ---- a node ---- */

struct cluster_node_options {
    const char *cluster;             /* NULL: CLUSTER_DEFAULT */
    const char *name;                /* of the node: no other has it */
    const char *const *traces;       /* TRACE arguments, ended by NULL; borrowed */
    const char *store;               /* as index_options.store */
    unsigned workers;                /* threads that answer; 0: as many as CPUs */
    /* Called by threads of the node: something that people should know. */
    void (*tell)(void *arg, const char *what);
    void *tell_arg;
};
struct cluster_node;
/* Begins to index and to answer; until the traces are open the node has no hosts. ERR_AMBIGUOUS: there is a node of
 * that name. Traces that grow are opened anew. */
int cluster_node_start(struct bus *, const struct cluster_node_options *, struct cluster_node **out, struct err *e);
/* Says goodbye, then lets go of the traces. The bus stays open. */
void cluster_node_stop(struct cluster_node *);
/* Are the traces open, and is what is said of them known to all? For tests, and for who waits. */
bool cluster_node_ready(struct cluster_node *);

/* ---- asking a cluster ---- */

struct cluster;
/* What the cluster's nodes say of themselves now. */
int cluster_open(struct bus *, const char *name, struct cluster **out, struct err *e);
void cluster_close(struct cluster *);

struct cluster_host {
    const char *name;                /* "solo", of another machine of that name "solo#2" */
    const char *clock_name;
    uint64_t key;                    /* of struct index_host */
    int64_t begin, end;              /* ns, its own clock */
    bool has_graph;                  /* a path can go there */
    const char *const *nodes; size_t n_nodes; /* that hold it */
};
/* By name. */
size_t cluster_hosts(const struct cluster *, const struct cluster_host **out);
size_t cluster_nodes(const struct cluster *, const char *const **names);

/* The clocks of all hosts (numbers as in cluster_hosts), as the keeper found them. Waits until they are those of the
 * traces as they are now, but not beyond the deadline (monotonic ns): then *stale, and older ones are taken. NULL
 * options: every host keeps its own clock. The map of a host without one is NULL. ERR_NOTFOUND: there are none yet. */
int cluster_sync(struct cluster *, const struct clock_options *, int64_t deadline_ns, bool *stale, struct err *e);
const struct clock_net *cluster_clocks(const struct cluster *);
const struct clock_map *cluster_clock_map(const struct cluster *, size_t host);

/* ERR_ARG: a reference was asked for to which the host's clock is not related (clock_net_relates). */
int cluster_relates(const struct cluster *, size_t host, struct err *e);

/* Threads that are meant, as path_find_lives says. Asks only nodes that hold the host, if the thread names one; of
 * several that hold it, one after the other until one answers. The names live as long as the cluster. Errors: nothing
 * was found, and some host's nodes did not answer; as bus_reply.code, or ERR_FORMAT. */
struct cluster_life { int32_t host; uint64_t row; int64_t begin, end; int32_t tid; const char *name; };
struct cluster_lives { struct cluster_life *v; size_t n, cap; };
int cluster_find_lives(struct cluster *, const char *thread, int64_t begin, int64_t end, int64_t deadline_ns,
    struct cluster_lives *found, struct err *e);

/* Threads with the time that they spent in each state within [begin, end] of their host's clock: those with most of
 * one first, the same order and rows as all hosts in one place have. The names live as long as the cluster. What a node
 * that does not answer has is left out: *away, the number of such nodes. */
struct cluster_threads_question {
    const char *thread;              /* TID or name, or NULL */
    const char *host;                /* name, or NULL */
    bool idle;                       /* idle threads too */
    int sort;                        /* enum graph_state */
    int64_t begin, end;
    size_t limit;                    /* at most so many of each node; SIZE_MAX: all */
};
struct cluster_thread {
    int32_t host, tid, tgid;
    const char *name;
    int64_t begin, end, born, totals[GRAPH_STATE_COUNT]; /* born: its life's begin, which may lie before `begin` */
};
struct cluster_threads { struct cluster_thread *v; size_t n, cap; };
int cluster_find_threads(struct cluster *, const struct cluster_threads_question *, int64_t deadline_ns,
    struct cluster_threads *found, size_t *away, struct err *e);

enum cluster_method { CLUSTER_INDEX, CLUSTER_BROADCAST };
struct cluster_path_options {
    struct path_options path;
    enum cluster_method method;
    bool assuming;                   /* path_local_source_assuming */
    int64_t deadline_ns;             /* monotonic; what is not known by then is said to be missing */
    const atomic_bool *stop;         /* or NULL. Once it is set, nothing more is asked */
    /* After each round, or NULL: what is known so far. Only during the call. */
    void (*refined)(void *arg, const struct path *, const struct path_source *);
    void *arg;
};
struct cluster_path;
/* ERR_NOTFOUND and others as path_walk. */
int cluster_path_find(struct cluster *, int32_t host, uint64_t row, const struct cluster_path_options *,
    struct cluster_path **out, struct err *e);
const struct path *cluster_path_answer(const struct cluster_path *);
const struct path_source *cluster_path_source(const struct cluster_path *);
uint64_t cluster_path_row_id(const struct cluster_path *, struct path_row); /* of a thread; else 0 */
void cluster_path_free(struct cluster_path *);

#endif
