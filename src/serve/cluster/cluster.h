/* SPDX-License-Identifier: MIT */
/* Cluster: traces stay on the machines that have them. A *node* has the traces of some hosts, describes them in its
 * entry in the registry, a table that everybody reads, and answers questions about them. A client follows a critical
 * path from node to node, and asks only those that hold a part of it. One node, the clock leader, finds the clocks for
 * all, and shares them. Wire format: docs/cluster-protocol.md. */
#ifndef WEFT_CLUSTER_CLUSTER_H
#define WEFT_CLUSTER_CLUSTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "graph/graph.h"
#include "path/path.h"
#include "path/talk.h"

struct arena; struct bus; struct clock_options; struct cluster_moving; struct cluster_sharing; struct text;

#define CLUSTER_DEFAULT "weft"

/* ---- a node ---- */

struct cluster_node_options {
    const char *cluster;             /* NULL: CLUSTER_DEFAULT */
    const char *name;                /* name of the node, unique in the cluster */
    const char *const *traces;       /* TRACE arguments, terminated by NULL; borrowed */
    const char *store;               /* see index_options.store */
    const char *release;             /* release of the program, for people; NULL: not reported */
    /* Parts of other rooms: place_part, share_part; NULL: none. Their options are borrowed while the node is started.
     * `traces` may be empty with them. */
    const struct cluster_moving *moving; const void *moving_options;
    const struct cluster_sharing *sharing; const void *sharing_options;
    unsigned workers;                /* number of threads that answer; 0: one per CPU */
    /* Callback for messages to users, called by threads of the node. */
    void (*tell)(void *arg, const char *what);
    void *tell_arg;
};
struct cluster_node;
/* Begins to index and to answer. Until the traces are open, clients report the node as missing (missing.h).
 * ERR_AMBIGUOUS: the name is taken. Traces that grow are opened anew. */
int cluster_node_start(struct bus *, const struct cluster_node_options *, struct cluster_node **out, struct err *e);
void cluster_node_stop(struct cluster_node *); /* announces the departure first; the bus stays open */
/* Returns whether the traces are open, and all can read the entry that describes them. For tests and callers that
 * wait. */
bool cluster_node_ready(struct cluster_node *);

/* ---- trace servers of the nodes ---- */

/* url: "http://host:8080", without a final slash. here_only: reachable only from its own machine; in a list: and that
 * is another machine. */
struct cluster_server { const char *node, *url; bool here_only; };
const char *cluster_url_problem(const char *url); /* NULL: none */
/* Announces the server, again after the broker lost it, until it is withdrawn; withdraw before the bus is closed. Texts
 * are copied. */
struct cluster_announcement; struct cluster_servers;
int cluster_server_announce(struct bus *, const char *cluster, const struct cluster_server *,
    struct cluster_announcement **out,
    struct err *e);
void cluster_server_withdraw(struct cluster_announcement *); /* NULL-safe */
int cluster_servers_watch(struct bus *, const char *cluster, struct cluster_servers **out, struct err *e);
void cluster_servers_close(struct cluster_servers *);
/* Returns the servers by name, in the arena, killed nodes included. False: the list is still incomplete, and empty. */
bool cluster_servers_list(struct cluster_servers *, struct arena *, struct cluster_server **out, size_t *n);

/* ---- queries of a cluster ---- */

struct cluster;
/* Opens the cluster with the registry's present entries. */
int cluster_open(struct bus *, const char *name, struct cluster **out, struct err *e);
void cluster_close(struct cluster *);

/* Cache for clients with many queries: registry entries, clocks, and answers about paths. A cached value is used only
 * while it is true of the present traces, so answers are those of a new client. Cached values are not asked for, and do
 * not count in the cost. Failures are never cached. Thread-safe. */
struct cluster_cache;
/* most_bytes: limit of the answers; above it the least recently used are dropped; 0: 64 MiB. The bus is borrowed. */
int cluster_cache_open(struct bus *, const char *name, size_t most_bytes, struct cluster_cache **out, struct err *e);
void cluster_cache_close(struct cluster_cache *); /* after all clusters opened with it */
/* Like cluster_open, with a cache. */
int cluster_open_cached(struct cluster_cache *, struct cluster **out, struct err *e);

struct cluster_host {
    const char *name;                /* "solo"; for another machine of that name "solo#2" */
    const char *clock_name;
    uint64_t key;                    /* see struct index_host */
    int64_t begin, end;              /* ns, its own clock */
    bool has_graph;                  /* paths can go there */
    const char *const *nodes; size_t n_nodes; /* nodes that hold it */
    /* Range that can be queried, by its own clock, if an excerpt is all that is left or answers. whole: node that had,
     * or has, more; NULL: no such limit. */
    const char *whole; int64_t excerpt_begin, excerpt_end;
    /* Node with only part_events of all_events in this range, asked because `whole` did not answer; or NULL. */
    const char *part; uint64_t part_events, all_events;
};
/* Returns the hosts by name. */
size_t cluster_hosts(const struct cluster *, const struct cluster_host **out);

/* Loads the clocks of all hosts (numbers as in cluster_hosts), as the clock leader found them. Waits until they are
 * those of the present traces, but not beyond the deadline (monotonic ns); then older ones are used, and *stale is set.
 * NULL options: every host keeps its own clock. The map of a host without one is NULL. ERR_NOTFOUND: there are no
 * clocks yet. */
int cluster_sync(struct cluster *, const struct clock_options *, int64_t deadline_ns, bool *stale, struct err *e);
const struct clock_net *cluster_clocks(const struct cluster *);
const struct clock_map *cluster_clock_map(const struct cluster *, size_t host);

/* From now on queries excerpts of hosts for which no node with the whole trace answers. Parts of paths outside an
 * excerpt are reported missing, under the name of the node that has them. Waits some seconds at most, and only if there
 * are excerpts. always: use excerpts even if a node with the whole trace answers. Not for a cluster opened with a
 * cache. */
void cluster_use_excerpts(struct cluster *, bool always, int64_t deadline_ns);

/* Returns ERR_ARG if a reference was asked for to which the host's clock is not related (clock_net_relates). */
int cluster_relates(const struct cluster *, size_t host, struct err *e);

/* Finds threads by name, as path_find_lives does. Asks only nodes that hold the host, if the thread names one; nodes
 * with copies are asked one after the other until one answers. Names live as long as the cluster. Errors, if nothing
 * was found and nodes of some host did not answer: as bus_reply.code, or ERR_FORMAT. */
struct cluster_life { int32_t host; uint64_t row; int64_t begin, end; int32_t tid; const char *name; };
struct cluster_lives { struct cluster_life *v; size_t n, cap; };
int cluster_find_lives(struct cluster *, const char *thread, int64_t begin, int64_t end, int64_t deadline_ns,
    struct cluster_lives *found, struct err *e);

/* Finds threads with their time in each state within [begin, end] of their host's clock. Those with most of one state
 * come first; order and rows are those of all hosts in one place. Names live as long as the cluster. Of a row only tid,
 * tgid, name and begin are set. Hosts without an answer are left out: *away is their number; *e has the reason. */
struct cluster_threads_question {
    struct graph_choice choice;
    const char *host;                /* name; NULL: any */
    int sort;                        /* enum graph_state */
    size_t limit;                    /* maximum number; SIZE_MAX: all */
};
struct cluster_thread { int32_t host; struct graph_time is; };
struct cluster_threads { struct cluster_thread *v; size_t n, cap, total; /* total: number that exist, shown or not */ };
int cluster_find_threads(struct cluster *, const struct cluster_threads_question *, int64_t deadline_ns,
    struct cluster_threads *found, size_t *away, struct err *e);

/* Traffic between hosts within [begin, end] of the reference clock: the lines and delays of all hosts in one place
 * (path/talk.h). For a host without an answer, only what others saw of it. */
struct cluster_flows_question { int64_t begin, end; bool by_flow; };
/* reported: by host, whether its flows are included. Returns the number of missing hosts; *e has the reason. */
size_t cluster_find_flows(struct cluster *, const struct cluster_flows_question *, int64_t deadline_ns,
    struct talk_lines *out, bool *reported, struct err *e);
/* Asks the clock leader, which has the packets, whichever nodes answer now. Waits for hosts that are `reported` and
 * that it does not have yet. Returns the number of hosts without any packets there; *e has the reason. */
size_t cluster_find_delays(struct cluster *, const struct cluster_flows_question *, const bool *reported,
    int64_t deadline_ns, struct talk_delays *out, struct err *e);

enum cluster_method { CLUSTER_INDEX, CLUSTER_BROADCAST };
struct cluster_path;
struct cluster_path_options {
    struct path_options path;
    enum cluster_method method;
    bool assuming;                   /* path_local_source_assuming */
    bool count_windows;              /* counts for the answer's cost.windows and windows_unused; needs one more walk at
                                      * the end */
    int64_t deadline_ns;             /* monotonic; parts unknown by then are reported missing */
    const atomic_bool *stop;         /* NULL, or a flag that ends all asking */
    /* Progress while answers are awaited, may be NULL. From `refined` to `moves_on`, the state after so many rounds can
     * be seen (cluster_path_so_far). Each `refined` is followed by `moves_on`. A round that awaits several answers has
     * several calls. */
    void (*refined)(void *arg, const struct cluster_path *, uint64_t rounds);
    void (*moves_on)(void *arg);
    void *arg;
};
/* ERR_NOTFOUND and others: see path_walk. */
int cluster_path_find(struct cluster *, int32_t host, uint64_t row, const struct cluster_path_options *,
    struct cluster_path **out, struct err *e);
const struct path *cluster_path_answer(const struct cluster_path *);
/* Returns the known part of a path that is being found; the caller frees it. Any thread, between `refined` and
 * `moves_on`. */
struct path *cluster_path_so_far(const struct cluster_path *);
/* Finds the call stacks of the path, within the options' time; afterwards its source has them. Nodes without any are
 * not asked. Returns the number of hosts without an answer; *e has the reason of one. */
size_t cluster_path_find_stacks(const struct cluster_path *, struct err *e);
const struct path_source *cluster_path_source(const struct cluster_path *);
uint64_t cluster_path_row_id(const struct cluster_path *, struct path_row); /* for threads; else 0 */
void cluster_path_free(struct cluster_path *);

#endif
