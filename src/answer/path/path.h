/* SPDX-License-Identifier: MIT */
/* The critical path of a thread over an interval: a bounded backward walk with early return over the graphs of all
 * hosts, joined by flows, on one clock. Specification: reference/critical-path.md 2.2, 2.4 (recommendations taken) and
 * 8. Cover invariant: the segments are in time order, do not overlap, and together cover exactly [begin, end]; asserted
 * on every answer. All times here are ns of the reference clock. */
#ifndef WEFT_PATH_PATH_H
#define WEFT_PATH_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* ---- what the walk asks of the graphs ---- */

/* The walk only compares rows and ids and hands them back. A source that wraps others (a cluster, guests plugged into
 * their hosts) gives its own hosts numbers behind those of what it wraps, its own rows numbers <= PATH_ROW_OUTER. */
struct path_row { int32_t host, row; };
/* Work in interrupt context on a CPU has no thread: row -1 - cpu, tid -1. Such a row lives in pieces: from a receive to
 * the send that it led to; the head of each piece has a network origin. The CPU may be unknown. */
#define PATH_ROW_OF_CPU(cpu) (-1 - (int32_t)(cpu))
#define PATH_CPU_UNKNOWN 0xffff
#define PATH_ROW_UNKNOWN_CPU PATH_ROW_OF_CPU(PATH_CPU_UNKNOWN)
/* A thread that nobody knows, but that it sent. */
#define PATH_ROW_UNKNOWN_SENDER PATH_ROW_OF_CPU(PATH_CPU_UNKNOWN + 1)
#define PATH_ROW_OUTER (-(1 << 24))

/* Interval ids: a source of stores uses the bits below PATH_ID_INNER_BITS, those above are for the sources around it,
 * which take theirs out before they hand an id inward. PATH_ID_NONE comes from the walk alone and is handed through. */
enum { PATH_ID_INNER_BITS = 48 };
#define PATH_ID_NONE UINT64_MAX

struct path_interval {                           /* a state of a row on the reference clock: begin < end */
    int64_t begin, end;
    uint8_t state;                               /* enum graph_state */
    int32_t cpu;
    const char *detail;                          /* may be NULL; borrowed from the source */
    uint64_t id;                                 /* of the interval within its row: handed back to `cause`; see above */
    bool polling;                                /* spun until a message came at `end`: `cause` names its sender. With
                                                  * a waiting state all that time is a wait */
    bool assumed;                                /* a wait that the events do not show: it ran, and may have polled */
};

enum path_cause_kind {
    PATH_CAUSE_NONE,                             /* unexplained: reason says why */
    PATH_CAUSE_TERMINAL,                         /* the state itself is the answer */
    PATH_CAUSE_WAKEUP, PATH_CAUSE_FORK,          /* by thread `from` at `ts` */
    PATH_CAUSE_NETWORK,                          /* message sent by `from` at `ts`, which may lie before any bound */
    PATH_CAUSE_PENDING                           /* the answer was asked for: the walk marks the wait and goes on */
};
enum path_reason {
    PATH_NO_WAKER, PATH_UNTRACED_PEER, PATH_OFFLINE_NODE, PATH_LOST_EVENTS, PATH_NO_CLOCK, PATH_PENDING
};
const char *path_reason_name(int reason);        /* "no-waker", "untraced-peer", … */
struct path_cause {
    uint8_t kind, reason;
    struct path_row from;
    int64_t ts;
    /* NETWORK: the addresses, "10.0.0.1:80 → 10.0.0.2:4711"; unexplained: the peer; or NULL. Borrowed. */
    const char *label;
    /* A message, whoever sent it: 1 + its number among the packets of the row's host (flow/flow.h), for who tells of it
     * elsewhere; else 0. The walk does not look at it. */
    uint64_t packet;
    /* Of a message that ended a wait: the row itself had sent something on that connection before it slept, and this
     * acknowledges it; the last such send. */
    bool is_reply;
    int64_t asked;
};

enum path_reply {
    PATH_REPLY_NONE,
    PATH_REPLY_FOUND,
    PATH_REPLY_PENDING                           /* asked for elsewhere: path_query_run asks again */
};

/* A source of graphs: local stores, a cluster, a guest plugged into its host, or the cases of a test. Strings it hands
 * out stay as they are while it lives. Equal questions get equal answers, but for one that was pending.
 * `bound`: so far back, as the walk knows by now, the answer and what it leads to will be wanted; whoever fetches it
 * from afar need not fetch more. The walk may ask for more later. */
struct path_source {
    void *arg;
    /* First and last instant of the row; none when there is no such row. Only asked for the row a path starts from. */
    enum path_reply (*life)(void *arg, struct path_row row, int64_t *begin, int64_t *end);
    /* The state of the row with begin < ts <= end; none when the row has none (before its first, after its last). Also
     * asked for the sender of each message followed, when it sent it: that may lie before the path begins. */
    enum path_reply (*interval)(
        void *arg, struct path_row row, int64_t ts, int64_t bound, struct path_interval *out);
    /* Sets the CPU and the detail of a preempted state that `interval` gave without them, because they take long to
     * find: asked only for what becomes part of a path, with the bounds cut to that. NULL: `interval` gives all. */
    void (*describe_preempted)(void *arg, struct path_row row, struct path_interval *iv);
    /* What ended the interval, a wait or a polling stretch; for an unknown state why it is not known. With origin =
     * true: what created the row, whose first instant is iv->begin and whose first interval had iv->id (PATH_ID_NONE
     * when none was seen). */
    void (*cause)(void *arg, struct path_row row, const struct path_interval *iv, int64_t bound, bool origin,
        struct path_cause *out);
    /* Names for the answer. Borrowed. */
    const char *(*host_name)(void *arg, int32_t host);
    /* The row's while it was called so for most of [begin, end], at the instant when they are equal. */
    void (*row_name)(void *arg, struct path_row row, int64_t begin, int64_t end, int32_t *tid, const char **comm);
    /* Of the container that the row is in, or was in at last; "": in none as far as is known. Borrowed. NULL: nobody
     * asks. */
    const char *(*container)(void *arg, struct path_row row);
};

/* ---- the answer ---- */

struct path_segment {
    struct path_row row;
    int64_t begin, end;
    uint8_t state;
    int32_t cpu;
    const char *detail;                          /* or NULL; lives as long as the path */
    struct path_row sender;                      /* NETWORK: who sent; host -1 when not known */
    bool assumed;                                /* of a wait that is assumed: see path_local_source_assuming */
};
enum path_link_kind {
    PATH_LINK_WAKEUP, PATH_LINK_FORK, PATH_LINK_NETWORK, PATH_LINK_DISK, PATH_LINK_VM, PATH_LINK_SPAN
};
const char *path_link_name(int kind);            /* "wakeup", … */
struct path_link { struct path_row from, to; int64_t from_ts, to_ts; uint8_t kind; bool assumed; /* as segments */ };
struct path_gap { int64_t begin, end; uint8_t reason; const char *peer; };
/* ns of a row in a state. detail: that of more than half of it, else NULL. What is assumed counts apart. */
struct path_total { struct path_row row; uint8_t state; bool assumed; const char *detail; int64_t duration; };
struct path_cost {
    const char *const *nodes; size_t n_nodes;
    uint64_t messages, bytes, rounds;
    uint64_t windows, windows_unused;            /* asked for; of them, on speculation and in vain */
    double seconds;
};

struct path {
    struct path_row start;
    int64_t begin, end;                          /* clipped to the thread's life */
    const struct path_segment *segments; size_t n_segments;
    const struct path_link *links; size_t n_links;
    /* By (row, state, assumed), largest first; they sum to end - begin. */
    const struct path_total *totals; size_t n_totals;
    const struct path_gap *gaps; size_t n_gaps;
    struct path_cost cost;
    bool clamped;                                /* an arrow ran backwards by clock error and was clamped */
    bool partial;                                /* some of it is pending, see the gaps */
};

/* How the row comes to be asked at the end of the interval. For the piece of a path inside a wait: by what ended it. */
enum path_reached {
    PATH_REACHED_BY_NOTHING,                     /* a wait still open then is explained by what ended it later */
    PATH_REACHED_BY_SIGNAL,                      /* a wakeup or fork of its own at that time */
    PATH_REACHED_BY_MESSAGE                      /* it sent one then to `receiver`; if it slept, the message's time */
};
struct path_options {
    int64_t begin, end;
    uint8_t reached;                             /* enum path_reached; but for the first, what was before the row's life
                                                  * belongs to the path */
    struct path_row receiver;
    const char *label;                           /* of the message: struct path_cause */
    bool no_early_return;                        /* for comparison with other tools */
    bool request;                                /* the interval is a request's, which threads served among others: the
                                                  * explanation of a wait that a reply ended goes back to the question,
                                                  * that of others to where the thread sent what led to their end,
                                                  * however long ago within the interval */
};
/* Computes the path of `row` over [begin, end] (clipped to the row's life; ERR_NOTFOUND when it does not live there,
 * ERR_ARG when begin > end; an empty interval has an empty path). What is pending stays so. Cost: O(segments + waits
 * looked at). */
int path_walk(const struct path_source *, struct path_row row, const struct path_options *, struct path **out,
    struct err *e);

/* The same in steps, for one that must be able to stop, or whose source fetches what it is asked for from afar. */
struct path_query;
enum path_progress {
    PATH_DONE,
    PATH_MORE,                                   /* the steps are used up: run again */
    PATH_AWAITS                                  /* all was asked for that can be by now: run again when answers came */
};
struct path_query *path_query_new(const struct path_source *, struct path_row row, const struct path_options *);
/* At most so many steps (a step asks the source a few questions). Returns enum path_progress, or an error of path_walk.
 * Running one that awaits begins a round: only the pieces that were pending are walked again, in O(their length). */
int path_query_run(struct path_query *, uint64_t max_steps, struct err *e);
/* The answer as far as it is known, at any time; what is not yet is `unknown`, a gap with reason PATH_PENDING. */
struct path *path_query_answer(const struct path_query *);
void path_query_free(struct path_query *);

void path_free(struct path *);
/* The cover invariant, checked; returns false and says where it breaks. path_walk asserts it. */
bool path_covers(const struct path *, struct err *e);

/* ---- local stores as a source ---- */
struct graph; struct flow_store; struct clock_map;
struct path_local_host {
    const char *name;
    const struct graph *graph;
    const struct flow_store *flows;
    const struct clock_map *map;
};
struct path_local;
/* Joins the hosts' stores; the array and what it points to are borrowed. Receives are matched to their sends when asked
 * for; tables for that are made on first use, under a lock: one object serves any number of threads. */
struct path_local *path_local_new(const struct path_local_host *hosts, size_t n);
const struct path_source *path_local_source(const struct path_local *);
/* The same, but where the events do not tell of polling it is assumed: a thread that gets nearly all its messages awake
 * waited from its last send to the last message before it sends again, when it does so soon after that message. */
const struct path_source *path_local_source_assuming(const struct path_local *);
const struct path_local_host *path_local_hosts(const struct path_local *, size_t *n);
/* Messages for the row that came within [begin, end] while it was not asleep. *seen of them ended a stretch of polling;
 * of the others the recorded events do not say whether the row polled for them. */
size_t path_local_unslept(const struct path_local *, struct path_row row, int64_t begin, int64_t end, size_t *seen);
/* Stretches of a path of path_local_source, in which a row was awake, that path_local_source_assuming takes for waits:
 * how many, and *duration of the path. */
size_t path_local_assumable(const struct path_local *, const struct path *, int64_t *duration);
void path_local_free(struct path_local *);

/* ---- whose path ---- */
struct path_life {
    struct path_row row;
    int64_t begin, end;
    int32_t tid;
    const char *host, *name;                     /* borrowed from the host and its graph */
};
struct path_lives { struct path_life *v; size_t n, cap; };
/* Adds the lives that begin before `end` and end after `begin` of the threads that "HOST:TID", "HOST:COMM", "TID" or
 * "COMM" means, all of them on `host` when that is given. TID: as it was when [begin, end) began or ended. COMM: any
 * name that the thread had, "swapper/1" of an idle one. Whoever calls frees the list. */
void path_find_lives(const struct path_local *, const char *thread, const char *host, int64_t begin, int64_t end,
    struct path_lives *found);
/* Are they all of one host and thread number, which was used again? */
bool path_lives_share_tid(const struct path_lives *);
bool path_lives_are_idle(const struct path_lives *); /* each CPU has one with tid 0 */

#endif
