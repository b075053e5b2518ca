/* SPDX-License-Identifier: MIT */
/* Traces on storage that several nodes see: indexed by one of them each, and shared out among them. */
#ifndef WEFT_SHARE_SHARE_H
#define WEFT_SHARE_SHARE_H

#include "cluster/cluster.h"
#include "cluster/node_parts.h"

/* For cluster_node_options.sharing. Options: a directory (const char *, copied) that other nodes see too, wherever they
 * have it. The node indexes traces below it when it is asked to (share_index), and has its share of those that are. */
extern const struct cluster_sharing share_part;

/* What became of a trace that somebody asked to be indexed. */
enum share_work_state {
    SHARE_WORK_WAITING, SHARE_WORK_BUILT,
    SHARE_WORK_CURRENT,              /* nothing was to be done */
    SHARE_WORK_PARTLY,               /* something of it was left out: `text` */
    SHARE_WORK_FAILED                /* `text` */
};
struct share_work {
    const char *path;                /* below the directory that is shared: "a/b", "." */
    int state;
    const char *node, *text;         /* who did it; what went wrong */
    uint64_t events;
    int64_t took_ns;
};
struct share_index_options {
    const char *cluster;             /* NULL: CLUSTER_DEFAULT */
    bool force;                      /* as index_options */
    uint64_t keep_ns;
    int64_t patience_ns;             /* how long there may be no node that takes work any more */
    /* Called by share_index, in its thread, for each that ends, as they end. */
    void (*ended)(void *arg, const struct share_work *);
    /* Asked every now and then; true: what is still waiting is withdrawn, ERR_CANCELLED. */
    bool (*stop)(void *arg);
    void *arg;
};
/* Has the nodes index these, each once; returns when all have ended, well or not. A path given twice counts once.
 * What is indexed is shared out from then on. ERR_NOTFOUND: no node takes work. Where the caller dies, the nodes go
 * on. */
int share_index(struct bus *, const struct share_index_options *, const char *const *paths, size_t n, struct err *e);
/* No node opens any more what is at these paths, or below them; stores stay. *forgotten: how many. */
int share_remove(struct bus *, const char *cluster, const char *const *paths, size_t n, size_t *forgotten,
    struct err *e);

#endif
