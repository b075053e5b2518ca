/* SPDX-License-Identifier: MIT */
/* Paths over graphs on other nodes. The asking node walks. A node that has some hosts' graphs walks them from the
 * requested positions, too, and answers with a *fragment*: all that its walk was told. The asking node keeps the
 * contents of fragments as its *knowledge*, a source that answers what it knows and notes what it lacks as *windows* to
 * request. The same walk on the same answers gives the same path, so it is the path that all graphs in one place would
 * give; fetching too much or too little only costs time. Fragments are untrusted: they are checked when read.
 *
 * Choice of nodes and network transport are elsewhere (cluster/cluster.h). */
#ifndef WEFT_PATH_REMOTE_H
#define WEFT_PATH_REMOTE_H

#include "clock/clock.h"
#include "flow/flow.h"
#include "path/path.h"

struct text;
struct arena;

/* ---- request ---- */

/* Received message, described so that any host can say whether it sent it. */
struct path_message {
    struct flow_message_key key;
    int32_t host;            /* receiving host */
    int64_t at, received;    /* time of arrival by its clock, by the reference clock */
    int64_t error_ns;        /* error of its clock then */
    int64_t island;          /* island of its clock (struct clock_map); -1: not related to any other */
};

/* Row, identified for other nodes: the id of a thread (52 bits, index/index.h), or a row of a CPU. */
#define PATH_REMOTE_CPU (UINT64_C(1) << 63)
static inline uint64_t path_remote_cpu(int32_t row) { return PATH_REMOTE_CPU | (uint32_t)row; } /* row < 0 */
static inline bool path_is_remote_cpu(uint64_t id) { return id & PATH_REMOTE_CPU; }
static inline int32_t path_remote_cpu_row(uint64_t id) { return (int32_t)(uint32_t)id; }

enum path_window_kind { PATH_WINDOW_LIFE, PATH_WINDOW_ROW, PATH_WINDOW_MESSAGE };
/* Window: where to start walking, and how far down. LIFE: a whole path, whose row's life is not known. Hosts are
 * numbers in the accompanying list of hosts. */
struct path_window {
    uint8_t kind;
    bool open;               /* ROW: as path_reached: a wait still open at `t` is explained by what ended it later */
    int32_t host;            /* host of the row; MESSAGE: possible sender */
    uint64_t row;            /* LIFE, ROW */
    /* ROW: from `t`; LIFE: from the row's end, at most `t`; MESSAGE: from the send, at most `t`; down to `bound`. */
    int64_t t, bound;
    struct path_message message; /* host of the message: a number in that list, or beyond it */
};

/* Host in a request. */
struct path_remote_host {
    const char *id;          /* id by which it is found */
    const char *name;        /* name at the asking node */
    const struct clock_map *map; /* NULL: times are not converted */
};
struct path_request {
    const struct path_remote_host *hosts; size_t n_hosts;
    const struct path_window *windows; size_t n_windows;
    bool assuming;           /* path_local_source_assuming */
    bool no_early_return;
};
void path_request_write(const struct path_request *, struct text *out);
/* Hash of a window and its context; windows with different answers differ in it. Not included: how far back to walk;
 * for a life or a message, the latest time to start from, since what the first answer then lacks is requested as a row;
 * the number of the host that received a message. */
void path_window_hash(const struct path_window *, const void *around, size_t n, uint64_t out[2]);
/* Reads a request; what it points to lives in the arena. ERR_FORMAT. */
int path_request_read(struct arena *, const void *bytes, size_t n, struct path_request *out, struct err *e);

/* ---- answering node ---- */

struct path_row_ids {
    void *arg;
    uint64_t (*id)(void *arg, int32_t host, int32_t row);
    int32_t (*row)(void *arg, int32_t host, uint64_t id); /* -1: no such row */
};
/* Walks the windows on `local`, whose hosts are those of the request, and writes the fragment. Limited to so many
 * steps: the rest will be requested again. ERR_TIMEOUT: the deadline (monotonic) has passed. Thread-safe. */
int path_fragment_write(const struct path_local *, const struct path_row_ids *, const struct path_request *,
    uint64_t max_steps, int64_t deadline_ns, struct text *out, struct err *e);

/* ---- asking node ---- */

/* Host whose graph is on some node, and what all nodes know of it. */
struct path_far_host {
    const char *name;        /* name; boots of one host share it */
    const char *id;          /* id by which it is requested */
    const struct clock_map *map;
    bool has_packets;
    const struct flow_address *own, *peers; size_t n_own, n_peers; /* flow_addresses, flow_peers */
    /* NULL; or the node that has the rest, if only records within [begin, end] (the host's clock) can be requested */
    const char *away;
    int64_t begin, end;
};
/* `begin` on the reference clock. */
int64_t path_far_begin(const struct path_far_host *);
int64_t path_far_end(const struct path_far_host *);
struct path_known;
struct path_known_options {
    bool assuming, no_early_return; /* see struct path_request */
    bool everybody;          /* asks all hosts for the sender of a message, not only the possible ones */
    /* Optional filter, or NULL. False: the host certainly did not send it under other addresses, and need not be asked;
     * for one of several machines that own the address (owner): nor on that very flow. */
    bool (*may_have_sent)(void *arg, int32_t host, const struct flow_message_key *, bool owner);
    void *arg;
    /* Names of nodes whose hosts are not known, for messages; or NULL. They may have sent what comes from an address of
     * none of the hosts. */
    const char *others;
};
/* Borrows the hosts. Not thread-safe. */
struct path_known *path_known_new(const struct path_far_host *, size_t n, const struct path_known_options *);
void path_known_free(struct path_known *);
/* Source for path_query: answers from the knowledge; the rest is pending. */
const struct path_source *path_known_source(const struct path_known *);
/* Row with that id, to ask for its path. */
struct path_row path_known_row(struct path_known *, int32_t host, uint64_t id);
uint64_t path_known_row_id(const struct path_known *, struct path_row); /* id of a thread; else 0 */
/* Requests the end of a wait of the row that is still open at `end`, where a path ends. */
void path_known_ask_open(struct path_known *, struct path_row, int64_t end);
/* Windows that the walk has wanted since the last call, with hosts as numbered here; valid until the source is asked
 * again. Each is returned once. */
size_t path_known_take(struct path_known *, const struct path_window **out);

/* Number of requested windows that a walk with all knowledge from the beginning would not need: those requested on
 * speculation, past something pending. Walks once more. */
size_t path_known_unused(struct path_known *, struct path_row, const struct path_options *, size_t *asked);

/* Request to a node that has the graphs of some hosts. */
struct path_ask {
    const int32_t *hosts; size_t n_hosts;            /* all its hosts: answers messages between them at once */
    const struct path_window *windows; size_t n_windows; /* windows, with hosts among these */
};
void path_known_request(const struct path_known *, const struct path_ask *, struct text *out);
/* Adds the contents of the answer. ERR_FORMAT: nothing is added. */
int path_known_add(struct path_known *, const struct path_ask *, const void *bytes, size_t n, struct err *e);
/* Adds the answer of an earlier question from a cache: its windows were not requested now. */
int path_known_recall(struct path_known *, const struct path_ask *, const void *bytes, size_t n, struct err *e);
/* Sets a thread's container, "" for none, which the source then returns. */
void path_known_contain(struct path_known *, struct path_row, const char *container);
/* Sets the answer to a question for a call stack, which the source then returns; a copy. */
void path_known_stack(struct path_known *, const struct path_stack_question *, const struct graph_stack *);
/* Records that nobody answers the window, so that the walk continues without it. `who`: the node, for messages. */
void path_known_give_up(struct path_known *, const struct path_window *, const char *who);

#endif
