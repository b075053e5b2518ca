/* SPDX-License-Identifier: MIT */
/* Requests of server threads: a message received on a connection, and the reply sent on it; found in the flows of
 * recorded hosts alone. Definition and limits: docs/concepts.md. The list is immutable; it borrows the joined hosts
 * (struct path_local). All times are ns of the reference clock. */
#ifndef WEFT_PATH_REQUESTS_H
#define WEFT_PATH_REQUESTS_H

#include "base/time.h"
#include "flow/flow.h"
#include "path/path.h"

struct requests; struct text;
struct requests_question {
    const char *host;              /* host that served them; NULL: any */
    int64_t begin, end;            /* requests that overlap this interval */
};
/* Requests that are missing in the list, and why. */
struct path_requests_lacking {
    size_t unrelated;              /* hosts whose clock is not related to the reference */
    uint64_t unsided;              /* connections seen in both directions whose server end is unknown */
    uint64_t cut;                  /* requests whose beginning, or reply, was not recorded (lost events) */
    uint64_t nobodys;              /* exchanges without a thread of the host */
    uint64_t overlapped;           /* requests in the list whose client sent more before it had the reply so far:
                                    * several may count as one */
};
struct served_request {
    struct path_row thread;        /* thread that sent the reply; the last of several */
    int64_t begin, end;            /* first byte in, last byte out */
    uint64_t bytes_in, bytes_out;
    uint64_t first_in, last_out;   /* packets of the host */
    uint64_t first_byte;           /* TCP: number of the first byte; another packet may have arrived first */
    uint32_t flow;                 /* flow on the host: from the client to the server */
    bool by_interrupt;             /* the last byte was sent by work in an interrupt */
    const char *comm;              /* thread's name then, if another host reported it; NULL: its source knows */
};
/* Duration in ns. */
static inline int64_t request_duration(const struct served_request *r) { return time_between(r->begin, r->end); }
/* Finds requests. O(packets of connections that the hosts served + n log n) for n requests; reads no traces. */
struct requests *path_requests_find(const struct path_local *, const struct requests_question *);
/* List of requests found elsewhere, of hosts of these names: their paths, clients and trails are not known here, and
 * rows are those of the reporting node. first_in distinguishes otherwise equal ones. Names are borrowed. */
struct requests *path_requests_told(const char *const *hosts, size_t n_hosts, const struct served_request *, size_t n);
void path_requests_free(struct requests *);
/* Source of their paths; NULL: the list was received from elsewhere. */
const struct path_source *path_requests_source(const struct requests *);
size_t path_requests_count(const struct requests *);
/* Request by rank: number 0 is the slowest; of equal ones the earliest comes first. Valid as long as the list. */
const struct served_request *path_requests_get(const struct requests *, size_t i);
void path_requests_lacking(const struct requests *, struct path_requests_lacking *out);

/* Client of a request. */
struct request_client {
    bool recorded;                 /* the fields describe the client's view: thread (row < 0: unknown), begin, end */
    bool local;                    /* client on the same host */
    struct path_row thread;
    int64_t begin, end;            /* first byte sent, last byte of the reply received; INT64_MIN: never */
    char address[64];
};
void path_requests_client(const struct requests *, size_t i, struct request_client *out);
/* Appends what the packets of a request show of its client, as a text for the node that has the client's host; nothing
 * if they show nothing. */
void path_requests_trail(const struct requests *, size_t i, struct text *out);
/* Finds the client by such a text of another node's request: one of these hosts that sent on that very flow. at:
 * arrival of the first byte, by the reference clock here, within a second; INT64_MIN: unknown. False: not found, or
 * invalid text. */
bool path_requests_asked(const struct path_local *, const char *trail, int64_t at, struct request_client *out);
/* Critical path of the server's thread over [begin, end]. ERR_LIMIT: too long to be followed. */
int path_requests_path(const struct requests *, size_t i, struct path **out, struct err *e);

/* ---- paths that continue on hosts outside of the list ---- */

/* Start of the path of a request: back from `from` (the thread, or the interrupt's row), which sent a message at its
 * end. */
struct request_walk { struct path_row from, thread; int64_t begin, end; };
/* paths[i]: path of the i-th; NULL: it cannot be followed. Rows and hosts are those of the source. */
struct request_paths { const struct path *const *paths; const struct path_source *source; void *handle; };
/* Interface to other nodes, supplied by a caller that knows some. Thread-safe. Parts that no node answers are pending
 * in the paths. */
struct requests_far {
    void *arg;
    int (*walk)(void *arg, const struct request_walk *, size_t n, struct request_paths *out, struct err *e);
    void (*release)(void *arg, struct request_paths *);
};
/* Requests the paths of these requests; out: to be released by release(). */
int path_requests_ask(const struct requests *, const struct requests_far *, const size_t *which, size_t n,
    struct request_paths *out, struct err *e);

/* ---- groups of similar requests ---- */

/* Part: time in one state of the threads of one name on one host. Numbers in a name that distinguish threads of a pool
 * become "#": "worker-#". another: threads that one of the same name waited for, which then continued the request. */
struct request_part { int32_t host; uint8_t state; bool another; const char *comm; };
/* Figures of a part, in ns: total over all requests of a group; median of the faster half; mean of the slow ones (from
 * the 90th percentile on). A request whose path lacks the part counts as 0. */
struct request_sum { struct request_part part; int64_t total, typical, slow; };
/* Group; figures are of the examined requests, each weighted by the number it represents. */
struct request_group {
    struct request_part server;    /* server thread; its state is meaningless */
    uint64_t count;
    int64_t first;                 /* begin of the earliest examined request */
    int64_t p50, p90, p99, max;
    /* Parts that take a twentieth of the time or more in half of them, the longest first. States are folded: being held
     * up counts as running. */
    const struct request_part *shape; size_t n_shape;
    /* All parts, the longest first; their totals sum to that of the whole paths. */
    const struct request_sum *sums; size_t n_sums;
    struct request_sum whole;
    /* Parts that took longer in the slow ones than in the faster half, the largest growth first, except those below a
     * twentieth of all growth; empty if the 90th percentile equals the 50th. */
    const struct request_sum *grew; size_t n_grew;
};
struct request_groups;
enum { REQUESTS_SLOWEST = 100, REQUESTS_SAMPLE = 900 };
/* Groups all requests, by the paths of the REQUESTS_SLOWEST slowest of each host and of REQUESTS_SAMPLE of its others,
 * evenly by rank. far NULL: paths end at the border of the list's hosts. Borrows both. O(their paths) */
struct request_groups *path_request_groups_new(const struct requests *, const struct requests_far *);
void path_request_groups_free(struct request_groups *);
size_t path_request_groups_count(const struct request_groups *);
/* Group by rank: number 0 is the largest. */
const struct request_group *path_request_groups_get(const struct request_groups *, size_t i);
/* Number of requests chosen for examination; of those examined, which excludes too long paths. */
size_t path_request_groups_chosen(const struct request_groups *);
size_t path_request_groups_looked(const struct request_groups *);
/* Host of that number in parts and struct request_told; the first are those of the list. Thread-safe. */
const char *path_request_groups_host(struct request_groups *, int32_t host);
/* Reason why paths with `far`, or those of requests received from elsewhere, are incomplete; NULL: they are
 * complete. */
const char *path_request_groups_trouble(struct request_groups *);

/* Summary of the path of a request, examined or not. O(its path). Thread-safe. */
struct request_told {
    int64_t group;                 /* -1: similar to none of them, or the path cannot be followed */
    int32_t *machines; size_t n_machines; /* hosts, in the order in which the path reaches them */
};
/* machines: free() it; at least one. */
void path_request_groups_tell(struct request_groups *, size_t request, struct request_told *told);

#endif
