/* Requests of server threads: what came in on a connection, and the reply that went out on it; found in the flows of
 * recorded hosts alone. What a request is and what cannot be told: docs/concepts.md. The list is made once and is then
 * immutable; it borrows the joined hosts (struct path_local). All times are ns of the reference clock. */
#ifndef WEFT_PATH_REQUESTS_H
#define WEFT_PATH_REQUESTS_H

#include "flow/flow.h"
#include "path/path.h"

struct requests;
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
    struct flow_key key;           /* from the client to the server */
    uint64_t first_in, last_out;   /* packets of the host */
    bool by_interrupt;             /* the last byte was sent by work in an interrupt */
};
/* O(packets of connections that the hosts served + n log n) for n requests; traces are not read. */
struct requests *requests_find(const struct path_local *, const struct requests_question *);
void requests_free(struct requests *);
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
/* The critical path of the server's thread over [begin, end]. ERR_LIMIT: it is too long to be followed. */
int requests_path(const struct requests *, size_t i, struct path **out, struct err *e);

#endif
