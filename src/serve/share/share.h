/* SPDX-License-Identifier: MIT */
/* Traces on storage that several nodes see: each is indexed by one node, and they are distributed among all. */
#ifndef WEFT_SHARE_SHARE_H
#define WEFT_SHARE_SHARE_H

#include "cluster/cluster.h"
#include "cluster/node_parts.h"

/* Value for cluster_node_options.sharing. Options: a directory (const char *, copied) that other nodes see too, at any
 * path. The node indexes traces below it on demand (share_index), and opens its share of the indexed ones. */
extern const struct cluster_sharing share_part;

/* Result of indexing a trace. */
enum share_work_state {
    SHARE_WORK_WAITING, SHARE_WORK_BUILT,
    SHARE_WORK_CURRENT,              /* nothing to do */
    SHARE_WORK_PARTLY,               /* parts left out: `text` */
    SHARE_WORK_FAILED                /* reason: `text` */
};
struct share_work {
    const char *path;                /* path below the shared directory: "a/b", "." */
    int state;
    const char *node, *text;         /* node that did it; problem */
    uint64_t events;
    int64_t took_ns;
};
struct share_index_options {
    const char *cluster;             /* NULL: CLUSTER_DEFAULT */
    bool force;                      /* see index_options */
    uint64_t keep_ns;
    int64_t patience_ns;             /* timeout without a node that takes work */
    /* Result callback of share_index, in its thread, for each trace that ends, in order of their ends. */
    void (*ended)(void *arg, const struct share_work *);
    /* Stop callback, polled; true: waiting traces are withdrawn, ERR_CANCELLED. */
    bool (*stop)(void *arg);
    void *arg;
};
/* Makes the nodes index these traces, each once. Returns when all have ended, well or not. A repeated path counts once.
 * Indexed traces are shared from then on. ERR_NOTFOUND: no node takes work. If the caller dies, the nodes continue. */
int share_index(struct bus *, const struct share_index_options *, const char *const *paths, size_t n, struct err *e);
/* Stops sharing the traces at and below these paths: no node opens them any more; stores stay. *forgotten: their
 * number. */
int share_remove(struct bus *, const char *cluster, const char *const *paths, size_t n, size_t *forgotten,
    struct err *e);

#endif
