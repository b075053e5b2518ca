/* SPDX-License-Identifier: MIT */
/* Parts of a node that other rooms implement: receiving and sending traces (room `place`), and a share of the traces on
 * common storage (room `share`). A node works without either. */
#ifndef WEFT_CLUSTER_NODE_PARTS_H
#define WEFT_CLUSTER_NODE_PARTS_H

#include "base/mem.h"
#include "cluster/question.h"
#include "cluster/registry.h"
#include "cluster/status.h"

/* Node that a part belongs to. All is borrowed, until the part is closed. */
struct cluster_node_context {
    struct bus *bus;
    const char *cluster, *node, *instance;
    const char *store;               /* see index_options.store; or NULL */
    struct bus_table *registry;
    bool has_traces;                 /* the node was started with traces of its own */
    void (*tell)(void *arg, const char *what); void *tell_arg; /* callback for messages to users, or NULL */
    void (*changed)(void *arg); void *changed_arg; /* callback for a changed list of traces; any thread */
};

/* Opened traces of a node at one time. */
struct cluster_node_traces {
    const struct experiment *is;     /* NULL: none */
    const struct cluster_entry_host *hosts; size_t n_hosts;
};

/* ---- receiving and sending traces ---- */

struct cluster_trace_args { const char **v; size_t n, cap; };
struct cluster_moving {
    /* *directory: where traces are received, for the report of free space; NULL: nowhere. */
    int (*open)(const void *options, const struct cluster_node_context *, void **part, const char **directory,
        struct err *e);
    void (*close)(void *part);
    /* Adds the TRACE arguments of received traces, sorted. They live in the arena. */
    void (*list)(const void *part, struct arena *, struct cluster_trace_args *out);
    /* Return, for the trace at that path, the time of its receipt (ns since the epoch), and the key of its host; 0: not
     * received. */
    int64_t (*since)(const void *part, const char *path);
    uint64_t (*key)(const void *part, const char *path);
    /* Sets the host's key of the trace at that path, whatever an earlier version of weft called it. */
    void (*rename)(const void *part, const char *path, uint64_t key);
    /* Returns whether the trace was received as an excerpt. Strings live in the arena. */
    bool (*excerpt)(const void *part, const struct ctf_trace *, struct arena *, struct cluster_excerpt *out);
    /* Sets the fields about moves. */
    void (*load)(void *part, struct cluster_load *out);
    /* Answers questions from CLUSTER_TAKE on. traces: NULL while they are opened. Thread-safe. */
    int (*answer)(void *part, const struct cluster_node_traces *, enum cluster_question, const void *bytes, size_t n,
        struct text *out, struct err *e);
};

/* ---- a share of the traces on common storage ---- */

struct cluster_share {
    VEC(char *) paths;               /* in order; owned by the caller */
    uint64_t view;                   /* view that it was made from */
};
struct cluster_sharing {
    /* *directory: real path that `paths` are relative to. */
    int (*open)(const void *options, const struct cluster_node_context *, void **part, const char **directory,
        struct err *e);
    /* Starts it, once the node has its name. */
    int (*start)(void *part, struct err *e);
    void (*close)(void *part);       /* tells the other nodes */
    /* Lists what the node should have open. Returns false if that is not known yet; look again at *again_ns. */
    bool (*list)(void *part, struct cluster_share *out, int64_t *again_ns);
    /* Resolves a path to the directory here; free() it. */
    int (*resolve)(const void *part, const char *path, char **real, struct err *e);
    /* Reports that the share is open, and the entry published. */
    void (*opened)(void *part, const struct cluster_share *);
    /* Stops indexing. */
    void (*stop_work)(void *part);
    /* Hands the share over. Waits until the others have it, while the node still answers. */
    void (*hand_over)(void *part, int64_t deadline_ns);
};

#endif
