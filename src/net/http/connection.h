/* SPDX-License-Identifier: MIT */
/* Private to http: a server, and a request on its connection; what all answers share. */
#ifndef WEFT_HTTP_CONNECTION_H
#define WEFT_HTTP_CONNECTION_H

#include <microhttpd.h>
#include <stdatomic.h>

#include "http/framing.h"
#include "http/head.h"
#include "http/http.h"
#include "http/lanes.h"
#include "http/peers.h"

enum { MAX_HEADERS = 8 };

struct http_server {
    struct MHD_Daemon *daemon;
    struct http_options o;
    http_handler *handler;
    void *arg;
    char *cert, *key;
    struct gzip_packers *packers;
    struct peers *peers;
    char address[300];
    atomic_bool stopping;
    struct lanes lanes;
    atomic_uint_least64_t waiting_bytes; /* answers being sent */
    atomic_uint_least64_t held_bytes;    /* memory of handlers */
    atomic_uint_least64_t body_bytes;    /* bodies in memory */
};

/* Request on its connection, from its first header to the end of its answer. */
struct http_connection {
    struct http_server *server;
    struct MHD_Connection *mhd; /* NULL until all of the head is there */
    struct head_line line;
    struct framing framing;
    struct peer *peer; /* NULL if the connection's socket is not known */
    struct http_request request;
    struct arena arena, work; /* work: the handler's */
    struct text body;
    int file; /* upload in progress, or -1 */
    uint64_t received;
    int refused; /* status decided before the body is read; 0: none */
    const char *why; /* reason of `refused`; NULL: the usual one */
    bool closes;     /* connection closes: nothing more is read on it */
    bool replied;
    bool lacked;            /* the handler was told to end because memory is short */
    bool was_gone;          /* the handler was told to end, for any reason */
    int64_t asked_ns;       /* monotonic: all of the question has arrived; 0: not yet */
    int64_t begun_ns;       /* monotonic: the wait for others is over; 0: it waits */
    int64_t deadline_ns;    /* monotonic; 0: the handler does not run yet */
    uint64_t answer_bytes;  /* size for the client to read */
    uint64_t waiting_bytes; /* part of its answer in memory of its own */
    uint64_t held_bytes;    /* memory of its handler, as last counted */
    uint64_t body_bytes;    /* memory of its body, as last counted */
    enum MHD_Result result;
    struct {
        const char *name, *value;
    } headers[MAX_HEADERS];
    size_t n_headers;
};

/* Value of a header of the request; NULL: none. */
const char *http_connection_header(const struct http_connection *, const char *name);
/* Sets the client's deadline, for so many bytes on their way to or from it. */
void http_connection_awaits(struct http_connection *, uint64_t bytes);
/* True: the client has closed its end, even if bytes from it are unread. */
bool http_connection_hung_up(const struct http_connection *);
/* Counts what the handler holds now. False: it is much, and all together hold too much, not this one alone. */
bool http_connection_may_hold(struct http_connection *, uint64_t bytes);

/* Answers; each sets `replied` and `result`. */
void http_connection_refuse(struct http_connection *, int status, const char *why);
void http_connection_lacks_memory(struct http_connection *);
void http_connection_send_nothing(struct http_connection *); /* 204 */

#endif
