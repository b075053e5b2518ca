/* SPDX-License-Identifier: MIT */
/* Requests of server threads: what came in on a connection, and the reply that went out on it; found in the flows of
 * recorded hosts alone. What a request is and what cannot be told: docs/concepts.md. The list is made once and is then
 * immutable; it borrows the joined hosts (struct path_local). All times are ns of the reference clock. */
#ifndef WEFT_PATH_REQUESTS_H
#define WEFT_PATH_REQUESTS_H

#include "base/time.h"
#include "flow/flow.h"
#include "path/path.h"

struct requests; struct text;
struct requests_question {
    const char *host;              /* that served them; NULL: any */
    int64_t begin, end;            /* those that were there at any time of it */
};
/* Requests that are not in the list, and why. */
struct requests_lacking {
    size_t unrelated;              /* hosts whose clock nothing relates to the reference */
    uint64_t unsided;              /* connections both of whose ways were seen, but not which end is the server */
    uint64_t cut;                  /* requests: where they began, or the reply, was not recorded (lost events) */
    uint64_t nobodys;              /* exchanges with no thread of the host */
    uint64_t overlapped;           /* in the list: the client sent on before it had the reply so far, so that several
                                    * requests may be one */
};
struct served_request {
    struct path_row thread;        /* who sent the reply; of several, the last */
    int64_t begin, end;            /* first byte in, last byte out */
    uint64_t bytes_in, bytes_out;
    uint64_t first_in, last_out;   /* packets of the host */
    uint64_t first_byte;           /* TCP: its number; another one may have come first */
    uint32_t flow;                 /* of the host: from the client to the server */
    bool by_interrupt;             /* the last byte was sent by work in an interrupt */
    const char *comm;              /* the thread's name then, where another host told of it; NULL: its source knows */
};
/* What it took, in ns. */
static inline int64_t request_duration(const struct served_request *r) { return time_between(r->begin, r->end); }
/* O(packets of connections that the hosts served + n log n) for n requests; traces are not read. */
struct requests *requests_find(const struct path_local *, const struct requests_question *);
/* The list of what was found elsewhere, of hosts of these names: paths, clients and trails are not known here, rows are
 * those of who tells of them. first_in tells apart what is else equal. Names are borrowed. */
struct requests *requests_told(const char *const *hosts, size_t n_hosts, const struct served_request *, size_t n);
void requests_free(struct requests *);
/* Of their paths; NULL: they were told. */
const struct path_source *requests_source(const struct requests *);
size_t requests_count(const struct requests *);
/* The slowest is number 0; of equal ones the first comes first. Valid as long as the list. */
const struct served_request *requests_get(const struct requests *, size_t i);
void requests_lacking(const struct requests *, struct requests_lacking *out);

/* Who asked. */
struct request_client {
    bool recorded;                 /* thread (row < 0: not known), begin, end say how the client saw it */
    bool local;                    /* on the same host */
    struct path_row thread;
    int64_t begin, end;            /* first byte sent, last byte of the reply there; INT64_MIN: it never came */
    char address[64];
};
void requests_client(const struct requests *, size_t i, struct request_client *out);
/* What the packets of a request tell of who asked, as a text for whoever has that host; nothing where they tell
 * nothing. */
void requests_trail(const struct requests *, size_t i, struct text *out);
/* Who asked, by such a text of another's request: one of these hosts that sent on just that flow. at: when its first
 * byte came, by the reference clock here, give or take a second; INT64_MIN: that is not known. False: nobody here, or
 * the text is none. */
bool requests_asked(const struct path_local *, const char *trail, int64_t at, struct request_client *out);
/* The critical path of the server's thread over [begin, end]. ERR_LIMIT: it is too long to be followed. */
int requests_path(const struct requests *, size_t i, struct path **out, struct err *e);

/* ---- paths that go on to hosts which are not of the list ---- */

/* How the path of a request is walked: back from `from` (the thread, or where an interrupt was handled), which sent a
 * message to somebody at its end. */
struct request_walk { struct path_row from, thread; int64_t begin, end; };
/* paths[i]: of the i-th; NULL: it cannot be followed. Rows and hosts are those of the source. */
struct request_paths { const struct path *const *paths; const struct path_source *source; void *handle; };
/* Handed in by who knows others to ask. Any number of threads. What nobody tells is pending in the paths. */
struct requests_far {
    void *arg;
    int (*walk)(void *arg, const struct request_walk *, size_t n, struct request_paths *out, struct err *e);
    void (*release)(void *arg, struct request_paths *);
};
/* Asks for those of these requests; out: for release(). */
int requests_ask(const struct requests *, const struct requests_far *, const size_t *which, size_t n,
    struct request_paths *out, struct err *e);

/* ---- groups of like ones ---- */

/* Time in one state of the threads of one name on one host. Numbers in a name that tell threads of a pool apart are
 * "#": "worker-#". another: of those that one of the same name waited for, which went on with the request. */
struct request_part { int32_t host; uint8_t state; bool another; const char *comm; };
/* What a part comes to, in ns: in all requests of a group; in one of its faster half, the median; in a slow one (from
 * the 90th percentile on), the mean. Nothing where the path of a request has no such part. */
struct request_sum { struct request_part part; int64_t total, typical, slow; };
/* Figures are of the requests that were looked at, each counted for those that it stands for. */
struct request_group {
    struct request_part server;    /* who served them; its state says nothing */
    uint64_t count;
    int64_t first;                 /* when the first of them began that was looked at */
    int64_t p50, p90, p99, max;
    /* What takes a twentieth of the time or more in half of them, the most time first. States are folded: to be held up
     * counts as running. */
    const struct request_part *shape; size_t n_shape;
    /* All parts, the most time first; their totals sum to that of the whole paths. */
    const struct request_sum *sums; size_t n_sums;
    struct request_sum whole;
    /* Those of them that took longer in the slow ones than in the faster half, the largest growth first, but for those
     * that make up less than a twentieth of all growth; none where the 90th percentile is the 50th. */
    const struct request_sum *grew; size_t n_grew;
};
struct request_groups;
enum { REQUESTS_SLOWEST = 100, REQUESTS_SAMPLE = 900 };
/* Groups of all requests, by the paths of the REQUESTS_SLOWEST slowest of each host and of REQUESTS_SAMPLE of its
 * others, evenly by rank. far NULL: paths end where the hosts of the list do. Borrows both. O(their paths) */
struct request_groups *request_groups_new(const struct requests *, const struct requests_far *);
void request_groups_free(struct request_groups *);
size_t request_groups_count(const struct request_groups *);
/* The largest group is number 0. */
const struct request_group *request_groups_get(const struct request_groups *, size_t i);
/* How many requests were to be looked at, and how many of them were: not those whose paths are too long. */
size_t request_groups_chosen(const struct request_groups *);
size_t request_groups_looked(const struct request_groups *);
/* The host of that number in parts and in what is told of a request; the first are those of the list. Any thread. */
const char *request_groups_host(struct request_groups *, int32_t host);
/* Of groups with `far`: why its paths, or those of requests that were told, are not whole; NULL: they are. */
const char *request_groups_trouble(struct request_groups *);

/* What the path of a request tells, whether it was looked at or not. O(its path). Any number of threads may ask. */
struct request_told {
    int64_t group;                 /* -1: like none of them, or the path cannot be followed */
    int32_t *machines; size_t n_machines; /* hosts, in the order in which the path comes to them */
};
/* machines: for free(). There is one at least. */
void request_groups_tell(struct request_groups *, size_t request, struct request_told *told);

#endif
