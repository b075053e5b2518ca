/* SPDX-License-Identifier: MIT */
/* Parts of a node that other rooms bring: receiving and sending traces (room `place`), and a share of the traces on
 * common storage (room `share`). A node works without either. */
#ifndef WEFT_CLUSTER_NODE_PARTS_H
#define WEFT_CLUSTER_NODE_PARTS_H

#include "base/mem.h"
#include "cluster/question.h"
#include "cluster/registry.h"
#include "cluster/status.h"

/* The node that a part belongs to. All is borrowed, until the part is closed. */
struct cluster_node_context {
    struct bus *bus;
    const char *cluster, *node, *instance;
    const char *store;               /* as index_options.store, or NULL */
    struct bus_table *registry;
    bool has_traces;                 /* the node was started with traces of its own */
    void (*tell)(void *arg, const char *what); void *tell_arg; /* or NULL: something that people should know */
    void (*changed)(void *arg); void *changed_arg; /* by any thread: the part lists other traces now */
};

/* The traces of a node as they are at one time, opened. */
struct cluster_node_traces {
    const struct experiment *is;     /* NULL: there are none */
    const struct cluster_entry_host *hosts; size_t n_hosts;
};

/* ---- receiving and sending traces ---- */

struct cluster_trace_args { const char **v; size_t n, cap; };
struct cluster_moving {
    /* *directory: where traces are received, for the report of free space; NULL: nowhere. */
    int (*open)(const void *options, const struct cluster_node_context *, void **part, const char **directory,
        struct err *e);
    void (*close)(void *part);
    /* Adds the TRACE arguments of what was received, sorted. They live in the arena. */
    void (*list)(const void *part, struct arena *, struct cluster_trace_args *out);
    /* Of the trace at that path: when it was received (ns since the epoch), and the key of its host; 0: it was not. */
    int64_t (*since)(const void *part, const char *path);
    uint64_t (*key)(const void *part, const char *path);
    /* The host at that path has this key, whatever an earlier version of weft called it. */
    void (*rename)(const void *part, const char *path, uint64_t key);
    /* Was the trace received as an excerpt? Strings live in the arena. */
    bool (*excerpt)(const void *part, const struct ctf_trace *, struct arena *, struct cluster_excerpt *out);
    /* Sets what concerns moves. */
    void (*load)(void *part, struct cluster_load *out);
    /* Answers questions from CLUSTER_TAKE on. traces: NULL while they are opened. Any number of threads. */
    int (*answer)(void *part, const struct cluster_node_traces *, enum cluster_question, const void *bytes, size_t n,
        struct text *out, struct err *e);
};

/* ---- a share of the traces on common storage ---- */

struct cluster_share {
    VEC(char *) paths;               /* in order; the caller's */
    uint64_t view;                   /* what this was found from */
};
struct cluster_sharing {
    /* *directory: a real path, below which paths are. */
    int (*open)(const void *options, const struct cluster_node_context *, void **part, const char **directory,
        struct err *e);
    /* Once the node has its name. */
    int (*start)(void *part, struct err *e);
    void (*close)(void *part);       /* tells the others */
    /* What the node shall have open. False: not known yet; look again at *again_ns. */
    bool (*list)(void *part, struct cluster_share *out, int64_t *again_ns);
    /* The directory that a path means here; free() it. */
    int (*resolve)(const void *part, const char *path, char **real, struct err *e);
    /* The share is open, and others have been told. */
    void (*opened)(void *part, const struct cluster_share *);
    /* No more traces are indexed. */
    void (*stop_work)(void *part);
    /* The others take the share. Waits until they have, while the node still answers. */
    void (*hand_over)(void *part, int64_t deadline_ns);
};

#endif
