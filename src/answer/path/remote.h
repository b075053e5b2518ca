/* SPDX-License-Identifier: MIT */
/* Paths over graphs that lie elsewhere. Who asks walks; who has some hosts' graphs walks there, too, from where it is
 * asked to, and answers with a *fragment*: all that its walk was told. Who asks keeps what fragments tell as its
 * *knowledge*, a source that answers what it knows and notes what it does not: *windows* to be asked for. As the same
 * walk on the same answers gives the same path, it is the one that all graphs in one place would give; what was
 * fetched too much or too little costs time only. Fragments may be anything: they are checked when they are read.
 *
 * Who is asked, over which network, is not known here (cluster/cluster.h). */
#ifndef WEFT_PATH_REMOTE_H
#define WEFT_PATH_REMOTE_H

#include "clock/clock.h"
#include "flow/flow.h"
#include "path/path.h"

struct text;
struct arena;

/* ---- what is asked ---- */

/* A message that came, told so that any host can say whether it sent it. */
struct path_message {
    struct flow_message_key key;
    int32_t host;            /* who received it */
    int64_t at, received;    /* when: by its clock, by the reference clock */
    int64_t error_ns;        /* of its clock then */
    int64_t island;          /* of its clock (struct clock_map); -1: related to no other */
};

/* A row, by what others know it: the id of a thread's (52 bits, index/index.h), or a row of a CPU. */
#define PATH_REMOTE_CPU (UINT64_C(1) << 63)
static inline uint64_t path_remote_cpu(int32_t row) { return PATH_REMOTE_CPU | (uint32_t)row; } /* row < 0 */
static inline bool path_is_remote_cpu(uint64_t id) { return id & PATH_REMOTE_CPU; }
static inline int32_t path_remote_cpu_row(uint64_t id) { return (int32_t)(uint32_t)id; }

enum path_window_kind { PATH_WINDOW_LIFE, PATH_WINDOW_ROW, PATH_WINDOW_MESSAGE };
/* From where to walk, and down to when. LIFE: of a whole path, whose row's life is not known. Hosts are numbers in the
 * list of hosts that goes with it. */
struct path_window {
    uint8_t kind;
    bool open;               /* ROW: as path_reached: a wait still open at `t` is explained by what ended it later */
    int32_t host;            /* whose row it is; MESSAGE: who may have sent it */
    uint64_t row;            /* LIFE, ROW */
    /* ROW: from `t`; LIFE: and not after the row's end; MESSAGE: from the send, but not after `t`; down to `bound`. */
    int64_t t, bound;
    struct path_message message; /* its host: a number in that list, or beyond it */
};

/* A host as a request speaks of it. */
struct path_remote_host {
    const char *id;          /* by which it is found */
    const char *name;        /* as who asks calls it */
    const struct clock_map *map; /* NULL: times are taken as they are */
};
struct path_request {
    const struct path_remote_host *hosts; size_t n_hosts;
    const struct path_window *windows; size_t n_windows;
    bool assuming;           /* path_local_source_assuming */
    bool no_early_return;
};
void path_request_write(const struct path_request *, struct text *out);
/* What tells a window, with what is around it, from all others whose answers may be other ones. How far back a walk is
 * to go does not count, nor, of a life or a message, from when on it goes at the latest: what the first answer then
 * lacks is asked for as a row. Nor does the number of the host that a message came to. */
void path_window_hash(const struct path_window *, const void *around, size_t n, uint64_t out[2]);
/* What it points to lives in the arena. ERR_FORMAT. */
int path_request_read(struct arena *, const void *bytes, size_t n, struct path_request *out, struct err *e);

/* ---- who answers ---- */

struct path_row_ids {
    void *arg;
    uint64_t (*id)(void *arg, int32_t host, int32_t row);
    int32_t (*row)(void *arg, int32_t host, uint64_t id); /* -1: no such row */
};
/* Walks the windows on `local`, whose hosts are those of the request, and writes the fragment. At most so many
 * steps: the rest will be asked for again. ERR_TIMEOUT: the deadline (monotonic) was over. Any number of threads. */
int path_fragment_write(const struct path_local *, const struct path_row_ids *, const struct path_request *,
    uint64_t max_steps, int64_t deadline_ns, struct text *out, struct err *e);

/* ---- who asks ---- */

/* A host whose graph lies somewhere, and what everybody knows of it. */
struct path_far_host {
    const char *name;        /* boots of one host have it in common */
    const char *id;          /* by which it is asked for */
    const struct clock_map *map;
    bool has_packets;
    const struct flow_address *own, *peers; size_t n_own, n_peers; /* flow_addresses, flow_peers */
    /* NULL, or only what it recorded within [begin, end] (its clock) can be asked for; the rest is with this node. */
    const char *away;
    int64_t begin, end;
};
/* That time on the reference clock. */
int64_t path_far_begin(const struct path_far_host *);
int64_t path_far_end(const struct path_far_host *);
struct path_known;
struct path_known_options {
    bool assuming, no_early_return; /* as of struct path_request */
    bool everybody;          /* all hosts are asked who sent a message, not only those that can have */
    /* Or NULL. False: certainly the host did not send it under other addresses, and need not be asked; of one of
     * several machines that own the address (owner): nor on just that flow. */
    bool (*may_have_sent)(void *arg, int32_t host, const struct flow_message_key *, bool owner);
    void *arg;
    /* Or NULL: nodes whose hosts are not known, for people. They may have sent what comes from an address of none of
     * the hosts. */
    const char *others;
};
/* The hosts are borrowed. Not thread-safe. */
struct path_known *path_known_new(const struct path_far_host *, size_t n, const struct path_known_options *);
void path_known_free(struct path_known *);
/* The source for path_query. It has what is known, and is pending for the rest. */
const struct path_source *path_known_source(const struct path_known *);
/* The row with that id, to ask for its path. */
struct path_row path_known_row(struct path_known *, int32_t host, uint64_t id);
uint64_t path_known_row_id(const struct path_known *, struct path_row); /* of a thread; else 0 */
/* Of a path that ends there: a wait of the row still open then is asked for with what ended it. */
void path_known_ask_open(struct path_known *, struct path_row, int64_t end);
/* Windows that the walk wants since they were last taken, hosts as they are numbered here; valid until the source is
 * asked again. Each is wanted once. */
size_t path_known_take(struct path_known *, const struct path_window **out);

/* Of the windows that were asked for, those that a walk which knew all from the beginning would not ask for: asked on
 * speculation, past something that was pending. Walks once more. */
size_t path_known_unused(struct path_known *, struct path_row, const struct path_options *, size_t *asked);

/* What is asked of one who has the graphs of some hosts. */
struct path_ask {
    const int32_t *hosts; size_t n_hosts;            /* all that it has: where one sent to another, it knows at once */
    const struct path_window *windows; size_t n_windows; /* their hosts are among these */
};
void path_known_request(const struct path_known *, const struct path_ask *, struct text *out);
/* What the answer tells. ERR_FORMAT: nothing of it is taken. */
int path_known_add(struct path_known *, const struct path_ask *, const void *bytes, size_t n, struct err *e);
/* The same of an answer to a question before: its windows were not asked for now. */
int path_known_recall(struct path_known *, const struct path_ask *, const void *bytes, size_t n, struct err *e);
/* A thread's container, "" for none: what the source says from then on. */
void path_known_contain(struct path_known *, struct path_row, const char *container);
/* Nobody answers that: the walk goes on without it. `who`: the node, for people. */
void path_known_give_up(struct path_known *, const struct path_window *, const char *who);

#endif
