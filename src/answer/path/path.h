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

/* ---- questions of the walk to the graphs ---- */

/* The walk only compares rows and ids and passes them back. A source that wraps others (a cluster, guests plugged into
 * their hosts) numbers its own hosts after those of what it wraps, and its own rows from PATH_ROW_OUTER downward. */
struct path_row { int32_t host, row; };
/* Work in interrupt context on a CPU has no thread: row -1 - cpu, tid -1. Such a row exists in pieces, each from a
 * receive to the send that it led to; the head of each piece has a network origin. The CPU may be unknown. */
#define PATH_ROW_OF_CPU(cpu) (-1 - (int32_t)(cpu))
#define PATH_CPU_UNKNOWN 0xffff
#define PATH_ROW_UNKNOWN_CPU PATH_ROW_OF_CPU(PATH_CPU_UNKNOWN)
/* Unknown thread that sent a message. */
#define PATH_ROW_UNKNOWN_SENDER PATH_ROW_OF_CPU(PATH_CPU_UNKNOWN + 1)
#define PATH_ROW_OUTER (-(1 << 24))

/* Interval ids: a source of stores uses the bits below PATH_ID_INNER_BITS. The bits above belong to the sources around
 * it, which remove theirs before they pass an id inward. PATH_ID_NONE comes from the walk alone and is passed
 * through. */
enum { PATH_ID_INNER_BITS = 48 };
#define PATH_ID_NONE UINT64_MAX

struct path_interval {                           /* state of a row on the reference clock: begin < end */
    int64_t begin, end;
    uint8_t state;                               /* enum graph_state */
    int32_t cpu;
    const char *detail;                          /* detail, or NULL; borrowed from the source */
    uint64_t id;                                 /* interval within its row, passed back to `cause`; see above */
    bool polling;                                /* polled until a message came at `end`, whose sender `cause` names. In
                                                  * a waiting state all that time is a wait */
    bool assumed;                                /* wait not shown by events: it ran, and may have polled */
};

enum path_cause_kind {
    PATH_CAUSE_NONE,                             /* unexplained; see reason */
    PATH_CAUSE_TERMINAL,                         /* the state itself is the answer */
    PATH_CAUSE_WAKEUP, PATH_CAUSE_FORK,          /* signal of thread `from` at `ts` */
    PATH_CAUSE_NETWORK,                          /* message sent by `from` at `ts`, which may be before any bound */
    PATH_CAUSE_PENDING                           /* the answer was requested: the walk marks the wait and continues */
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
    /* Message, whoever sent it: 1 + its number among the packets of the row's host (flow/flow.h), for sources that
     * report it elsewhere; else 0. The walk does not use it. */
    uint64_t packet;
    /* For a message that ended a wait: before the row slept it had sent something on that connection, which this
     * message acknowledges; asked: time of the last such send. */
    bool is_reply;
    int64_t asked;
};

enum path_reply {
    PATH_REPLY_NONE,
    PATH_REPLY_FOUND,
    PATH_REPLY_PENDING                           /* requested elsewhere: path_query_run asks again */
};

/* Source of graphs: local stores, a cluster, a guest plugged into its host, or test cases. Strings that it returns are
 * valid while it lives. Equal questions get equal answers, except pending ones. `bound`: how far back, as the walk
 * knows now, the answer and its consequences are needed; a source that fetches need not fetch more. The walk may ask
 * for more later. */
struct graph_stack;                              /* graph/graph.h */
struct path_source {
    void *arg;
    /* First and last instant of the row; none if there is no such row. Only called for the row that a path starts
     * from. */
    enum path_reply (*life)(void *arg, struct path_row row, int64_t *begin, int64_t *end);
    /* State of the row with begin < ts <= end; none if the row has none (before its first, after its last). Also called
     * for the sender of each followed message at its send time, which may be before the path begins. */
    enum path_reply (*interval)(
        void *arg, struct path_row row, int64_t ts, int64_t bound, struct path_interval *out);
    /* Sets the CPU and the detail of a preempted state that `interval` returned without them, because they are slow to
     * find. Only called for parts of a path, with the bounds cut to them. NULL: `interval` returns everything. */
    void (*describe_preempted)(void *arg, struct path_row row, struct path_interval *iv);
    /* Cause of the end of the interval, a wait or a polling stretch; for an unknown state, why it is unknown. With
     * origin = true: what created the row, whose first instant is iv->begin and whose first interval had iv->id
     * (PATH_ID_NONE if none was seen). */
    void (*cause)(void *arg, struct path_row row, const struct path_interval *iv, int64_t bound, bool origin,
        struct path_cause *out);
    /* Names for the answer, borrowed. */
    const char *(*host_name)(void *arg, int32_t host);
    /* Name that the row had for most of [begin, end], or at the instant if they are equal. */
    void (*row_name)(void *arg, struct path_row row, int64_t begin, int64_t end, int32_t *tid, const char **comm);
    /* Container that the row is in, or was in last; "": none known. Borrowed. NULL: not supported. */
    const char *(*container)(void *arg, struct path_row row);
    /* Call stack that was recorded with events of the row: waits: of the wait that contains or ends at `end`; else the
     * most frequent one of (begin, end], while it ran. False: none was. Borrowed. NULL: not supported. */
    bool (*stack)(void *arg, struct path_row row, int64_t begin, int64_t end, bool waits, struct graph_stack *out);
};

/* ---- call stacks of an answer ---- */

struct path; struct path_segment; struct path_link;
/* Stack of the segment's wait, or of its running; false: there is none. */
bool path_segment_stack(const struct path_source *, const struct path_segment *, struct graph_stack *out);
/* Stacks at the ends of a link: where the thread waited that it woke; where the thread was that sent it. */
bool path_sleeper_stack(const struct path_source *, const struct path_link *, struct graph_stack *out);
bool path_waker_stack(const struct path_source *, const struct path_link *, struct graph_stack *out);
/* Adds all that these ask the source for a path. The caller frees the list. */
struct path_stack_question { struct path_row row; int64_t begin, end; bool waits; };
struct path_stack_questions { struct path_stack_question *v; size_t n, cap; };
void path_ask_stacks(const struct path *, struct path_stack_questions *out);

/* ---- the answer ---- */

struct path_segment {
    struct path_row row;
    int64_t begin, end;
    uint8_t state;
    int32_t cpu;
    const char *detail;                          /* detail, or NULL; lives as long as the path */
    struct path_row sender;                      /* NETWORK: the sender; host -1 if unknown */
    bool assumed;                                /* part of an assumed wait: see path_local_source_assuming */
};
enum path_link_kind {
    PATH_LINK_WAKEUP, PATH_LINK_FORK, PATH_LINK_NETWORK, PATH_LINK_DISK, PATH_LINK_VM, PATH_LINK_SPAN
};
const char *path_link_name(int kind);            /* "wakeup", … */
struct path_link { struct path_row from, to; int64_t from_ts, to_ts; uint8_t kind; bool assumed; /* see segments */ };
struct path_gap { int64_t begin, end; uint8_t reason; const char *peer; };
/* Time of a row in a state, ns. detail: that of more than half of it, else NULL. Assumed waits are separate. */
struct path_total { struct path_row row; uint8_t state; bool assumed; const char *detail; int64_t duration; };
struct path_cost {
    const char *const *nodes; size_t n_nodes;
    uint64_t messages, bytes, rounds;
    uint64_t windows, windows_unused;            /* requested; of these, on speculation and in vain */
    double seconds;
};

struct path {
    struct path_row start;
    int64_t begin, end;                          /* clipped to the thread's life */
    const struct path_segment *segments; size_t n_segments;
    const struct path_link *links; size_t n_links;
    /* Totals by (row, state, assumed), largest first; they sum to end - begin. */
    const struct path_total *totals; size_t n_totals;
    const struct path_gap *gaps; size_t n_gaps;
    struct path_cost cost;
    bool clamped;                                /* an arrow ran backwards by clock error and was clamped */
    bool partial;                                /* part of it is pending, see the gaps */
};

/* Reason why the row is on the path at the end of the interval. For the part of a path inside a wait: what ended the
 * wait. */
enum path_reached {
    PATH_REACHED_BY_NOTHING,                     /* a wait still open then is explained by what ended it later */
    PATH_REACHED_BY_SIGNAL,                      /* wakeup or fork by the row at that time */
    PATH_REACHED_BY_MESSAGE                      /* message then to `receiver`; if the row slept, the message's time */
};
struct path_options {
    int64_t begin, end;
    uint8_t reached;                             /* enum path_reached; except for the first, what was before the row's
                                                  * life belongs to the path */
    struct path_row receiver;
    const char *label;                           /* label of the message: struct path_cause */
    bool no_early_return;                        /* for comparison with other tools */
    bool request;                                /* the interval is a request's, whose threads also serve others: a wait
                                                  * ended by a reply is explained back to the question; other waits back
                                                  * to where the thread sent what led to their end, however long ago
                                                  * within the interval */
};
/* Computes the path of `row` over [begin, end], clipped to the row's life. ERR_NOTFOUND: the row does not live then;
 * ERR_ARG: begin > end. An empty interval has an empty path. Pending parts stay pending. Cost: O(segments + waits
 * examined). */
int path_walk(const struct path_source *, struct path_row row, const struct path_options *, struct path **out,
    struct err *e);

/* Path in steps, for callers that must be able to stop, or whose source fetches answers from elsewhere. */
struct path_query;
enum path_progress {
    PATH_DONE,
    PATH_MORE,                                   /* steps used up: run again */
    PATH_AWAITS                                  /* all possible questions are out: run again when answers arrive */
};
struct path_query *path_query_new(const struct path_source *, struct path_row row, const struct path_options *);
/* Runs at most so many steps (a step asks the source a few questions). Returns enum path_progress, or an error of
 * path_walk. Running a waiting query begins a round: only the pending pieces are walked again, in O(their length). */
int path_query_run(struct path_query *, uint64_t max_steps, struct err *e);
/* Answer as far as known, at any time; the rest is `unknown`, a gap with reason PATH_PENDING. */
struct path *path_query_answer(const struct path_query *);
void path_query_free(struct path_query *);

void path_free(struct path *);
/* Checks the cover invariant; returns false and reports where it fails. path_walk asserts it. */
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
/* Joins the hosts' stores; the array and what it points to are borrowed. Receives are matched to their sends on
 * request, with tables made on first use, under a lock. Thread-safe. */
struct path_local *path_local_new(const struct path_local_host *hosts, size_t n);
const struct path_source *path_local_source(const struct path_local *);
/* Source that assumes polling where the events do not show it: a thread that gets nearly all its messages awake waited
 * from its last send to the last message before its next send, if it sends soon after that message. */
const struct path_source *path_local_source_assuming(const struct path_local *);
const struct path_local_host *path_local_hosts(const struct path_local *, size_t *n);
/* Number of messages for the row that arrived within [begin, end] while it was awake. *seen of them ended a stretch of
 * polling; for the others the events do not show whether the row polled. */
size_t path_local_unslept(const struct path_local *, struct path_row row, int64_t begin, int64_t end, size_t *seen);
/* Number of stretches of a path of path_local_source in which a row was awake, and that path_local_source_assuming
 * takes for waits; *duration: their time on the path. */
size_t path_local_assumable(const struct path_local *, const struct path *, int64_t *duration);
void path_local_free(struct path_local *);

/* ---- search of threads ---- */
struct path_life {
    struct path_row row;
    int64_t begin, end;
    int32_t tid;
    const char *host, *name;                     /* borrowed from the host and its graph */
};
struct path_lives { struct path_life *v; size_t n, cap; };
/* Adds the lives that begin before `end` and end after `begin` of the threads matching "HOST:TID", "HOST:COMM", "TID"
 * or "COMM", all of them on `host` if given. TID: the number when [begin, end) began or ended. COMM: any name that the
 * thread had; "swapper/1" for an idle one. The caller frees the list. */
void path_find_lives(const struct path_local *, const char *thread, const char *host, int64_t begin, int64_t end,
    struct path_lives *found);
/* Returns whether all are of one host and thread number, which was reused. */
bool path_lives_share_tid(const struct path_lives *);
bool path_lives_are_idle(const struct path_lives *); /* each CPU has one, with tid 0 */

#endif
