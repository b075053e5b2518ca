/* SPDX-License-Identifier: MIT */
/* A cluster: traces stay on the machines that have them. A *node* has the traces of some hosts, says so (its entry in
 * the registry, a table that everybody reads), and answers questions about them; who asks follows a critical path from
 * node to node, asking only those that hold a piece of it. Clocks are found by one of the nodes for all (the clock
 * leader), and shared. What is on the wire: docs/cluster-protocol.md. */
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
    const char *name;                /* of the node: no other has it */
    const char *const *traces;       /* TRACE arguments, ended by NULL; borrowed */
    const char *store;               /* as index_options.store */
    const char *release;             /* of the program, for people; NULL: not told */
    /* Parts of other rooms, each with its options, which are borrowed while the node is started; or NULL: place_part,
     * share_part. `traces` may be empty with them. */
    const struct cluster_moving *moving; const void *moving_options;
    const struct cluster_sharing *sharing; const void *sharing_options;
    unsigned workers;                /* threads that answer; 0: as many as CPUs */
    /* Called by threads of the node: something that people should know. */
    void (*tell)(void *arg, const char *what);
    void *tell_arg;
};
struct cluster_node;
/* Begins to index and to answer; until the traces are open the node is missing to all who ask (missing.h).
 * ERR_AMBIGUOUS: there is a node of that name. Traces that grow are opened anew. */
int cluster_node_start(struct bus *, const struct cluster_node_options *, struct cluster_node **out, struct err *e);
void cluster_node_stop(struct cluster_node *); /* says goodbye first; the bus stays open */
/* Are the traces open, and is what is said of them known to all? For tests, and for who waits. */
bool cluster_node_ready(struct cluster_node *);

/* ---- the trace servers of its nodes ---- */

/* url: "http://host:8080", no slash at its end. here_only: reached from its machine alone; in a list: from another. */
struct cluster_server { const char *node, *url; bool here_only; };
const char *cluster_url_problem(const char *url); /* NULL: none */
/* Announces the server to all, also after the broker lost it, until it is withdrawn, before the bus is closed. Texts
 * are copied. */
struct cluster_announcement; struct cluster_servers;
int cluster_server_announce(struct bus *, const char *cluster, const struct cluster_server *,
    struct cluster_announcement **out,
    struct err *e);
void cluster_server_withdraw(struct cluster_announcement *); /* NULL-safe */
int cluster_servers_watch(struct bus *, const char *cluster, struct cluster_servers **out, struct err *e);
void cluster_servers_close(struct cluster_servers *);
/* By name, in the arena; also of nodes that were killed. False: the list is not complete yet, and empty. */
bool cluster_servers_list(struct cluster_servers *, struct arena *, struct cluster_server **out, size_t *n);

/* ---- asking a cluster ---- */

struct cluster;
/* What the cluster's nodes say of themselves now. */
int cluster_open(struct bus *, const char *name, struct cluster **out, struct err *e);
void cluster_close(struct cluster *);

/* A cache for clients that ask again and again: registry entries, clocks, and answers about paths. Each is used as long
 * as it is true of the traces as they are now, so answers are those of a client that asks for the first time. What is
 * cached is not asked for, and does not count in the cost. Failures are never cached. Any number of threads. */
struct cluster_cache;
/* most_bytes: of the answers; above it the least recently used are dropped; 0: 64 MiB. The bus is borrowed. */
int cluster_cache_open(struct bus *, const char *name, size_t most_bytes, struct cluster_cache **out, struct err *e);
void cluster_cache_close(struct cluster_cache *); /* after all clusters that were opened with it */
/* As cluster_open. */
int cluster_open_cached(struct cluster_cache *, struct cluster **out, struct err *e);

struct cluster_host {
    const char *name;                /* "solo", of another machine of that name "solo#2" */
    const char *clock_name;
    uint64_t key;                    /* of struct index_host */
    int64_t begin, end;              /* ns, its own clock */
    bool has_graph;                  /* a path can go there */
    const char *const *nodes; size_t n_nodes; /* that hold it */
    /* Only what was recorded within [excerpt_begin, excerpt_end] (its own clock) can be asked for: an excerpt is all
     * that is left, or answers; `whole`: the node that had, or has, more. NULL: everything can. */
    const char *whole; int64_t excerpt_begin, excerpt_end;
    /* NULL, or a node with so many of all events, within the same, that was asked as `whole` did not answer. */
    const char *part; uint64_t part_events, all_events;
};
/* By name. */
size_t cluster_hosts(const struct cluster *, const struct cluster_host **out);

/* The clocks of all hosts (numbers as in cluster_hosts), as the clock leader found them. Waits until they are those of
 * the traces as they are now, but not beyond the deadline (monotonic ns): then *stale, and older ones are taken. NULL
 * options: every host keeps its own clock. The map of a host without one is NULL. ERR_NOTFOUND: there are none yet. */
int cluster_sync(struct cluster *, const struct clock_options *, int64_t deadline_ns, bool *stale, struct err *e);
const struct clock_net *cluster_clocks(const struct cluster *);
const struct clock_map *cluster_clock_map(const struct cluster *, size_t host);

/* From now on asks the nodes that have an excerpt of a host's trace, where no node that has all of it answers. What
 * lies outside of the excerpt is missing in paths, by the name of the node that has it. Waits some seconds at most, and
 * only where there are excerpts. always: also where a node with all of the trace answers. Not for a cluster opened with
 * a cache. */
void cluster_use_excerpts(struct cluster *, bool always, int64_t deadline_ns);

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
 * one first, the same order and rows as all hosts in one place have. The names live as long as the cluster. Of a row
 * there are tid, tgid, name and begin. Hosts that nobody answered for are left out: *away, how many; *e says why. */
struct cluster_threads_question {
    struct graph_choice choice;
    const char *host;                /* name, or NULL */
    int sort;                        /* enum graph_state */
    size_t limit;                    /* at most so many; SIZE_MAX: all */
};
struct cluster_thread { int32_t host; struct graph_time is; };
struct cluster_threads { struct cluster_thread *v; size_t n, cap, total; /* that there are, shown or not */ };
int cluster_find_threads(struct cluster *, const struct cluster_threads_question *, int64_t deadline_ns,
    struct cluster_threads *found, size_t *away, struct err *e);

/* Who talks to whom within [begin, end] of the reference clock: the same lines and delays as all hosts in one place
 * have (path/talk.h). Of a host that nobody answers for, there is what others saw of it. */
struct cluster_flows_question { int64_t begin, end; bool by_flow; };
/* reported: by host, whether its flows are there. Returns how many are missing; *e says why. */
size_t cluster_find_flows(struct cluster *, const struct cluster_flows_question *, int64_t deadline_ns,
    struct talk_lines *out, bool *reported, struct err *e);
/* Asks the clock leader, which has the packets, whatever nodes answer now. Waits for hosts that are `reported` and that
 * it does not have yet. Returns the number of hosts of which it has nothing; *e says why. */
size_t cluster_find_delays(struct cluster *, const struct cluster_flows_question *, const bool *reported,
    int64_t deadline_ns, struct talk_delays *out, struct err *e);

enum cluster_method { CLUSTER_INDEX, CLUSTER_BROADCAST };
struct cluster_path;
struct cluster_path_options {
    struct path_options path;
    enum cluster_method method;
    bool assuming;                   /* path_local_source_assuming */
    bool count_windows;              /* for the answer's cost.windows and windows_unused: walks once more at the end */
    int64_t deadline_ns;             /* monotonic; what is not known by then is said to be missing */
    const atomic_bool *stop;         /* or NULL. Once it is set, nothing more is asked */
    /* While answers are waited for: what is known after so many rounds can be seen (cluster_path_so_far) until
     * `moves_on` is called, which comes after each; several times for a round where several answers are waited for.
     * Both may be NULL. */
    void (*refined)(void *arg, const struct cluster_path *, uint64_t rounds);
    void (*moves_on)(void *arg);
    void *arg;
};
/* ERR_NOTFOUND and others as path_walk. */
int cluster_path_find(struct cluster *, int32_t host, uint64_t row, const struct cluster_path_options *,
    struct cluster_path **out, struct err *e);
const struct path *cluster_path_answer(const struct cluster_path *);
/* What is known of one that is being found; whoever calls frees it. Between `refined` and `moves_on`, by any thread. */
struct path *cluster_path_so_far(const struct cluster_path *);
const struct path_source *cluster_path_source(const struct cluster_path *);
uint64_t cluster_path_row_id(const struct cluster_path *, struct path_row); /* of a thread; else 0 */
void cluster_path_free(struct cluster_path *);

#endif
