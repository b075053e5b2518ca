/* SPDX-License-Identifier: MIT */
/* HTTP client: one thread sends requests to many servers at once, over kept connections. Time and bytes of an answer
 * are limited. Only this room includes curl. */
#ifndef WEFT_HTTP_CLIENT_H
#define WEFT_HTTP_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"

struct http_client_options {
    unsigned max_per_host;         /* limit of connections to one server; further requests wait; 0: 32 */
    /* Limit for the bodies of answers, held until their gather ends; 0: 512 MiB. Above it, an answer fails if its
     * gather holds more than 1 MiB while others hold the rest. ERR_LIMIT: the answers of its own gather are too large
     * by themselves, so a retry fails, too. ERR_BUSY: otherwise. */
    uint64_t max_held_bytes;
};

struct http_client;
int http_client_start(const struct http_client_options *, struct http_client **out, struct err *e);
/* Stops the client; no gather may be left. NULL-safe. */
void http_client_stop(struct http_client *);

/* Request and its answer. Zero-initialise, and fill in the question. All pointers are borrowed until its gather
 * ends. */
struct http_fetch {
    const char *method;            /* "GET" */
    const char *url;               /* http or https; redirections are not followed, proxies not used */
    const char *json;              /* body to send; NULL: none */
    size_t json_bytes;
    const char *type;              /* content type of the body, if not JSON; or NULL */
    bool packs;                    /* compress the body with gzip if that is worth while */
    const char *token;             /* sent as Authorization: Bearer; NULL: none */
    const char *header;            /* additional header of the request, "Via: 1.1 name"; NULL: none */
    const char *ca_file;           /* PEM, issuer of the server's certificate; NULL: the system's */
    unsigned connect_ms;           /* timeout of connecting; 0: 2000 */
    unsigned answer_ms;            /* timeout of everything, including connecting; 0: 30000 */
    size_t max_bytes;              /* limit of the answer's body; 0: 1 GiB */
    /* Called by the client's thread with each piece of the body, which is then not collected. False ends the request
     * with ERR_CANCELLED. Must not block. NULL: the body is collected. */
    bool (*take)(void *arg, const char *piece, size_t n);
    void *arg;
    bool holds;                    /* hold the connection by which the answer arrives */
    bool anew;                     /* use a new connection, even if others are free */

    /* Answer, once `done`. */
    atomic_bool done;
    struct err error;              /* code 0: there is an answer, with any status */
    int status;
    long retry_after_s;            /* value of Retry-After, also if that is a date; 0: none */
    char warning[512];             /* value of Warning, perhaps truncated; "": none */
    bool by_kept;                  /* the answer arrived by a connection of an earlier request */
    int connection;                /* held connection; -1: none, or ended. A caller that sets it to -1 must close it */
    struct text body;              /* counted as held until the gather ends, even if the caller frees it */

    /* Private to the client. */
    struct http_gather *gather;
    struct http_fetch *next;       /* list of the gather */
    struct http_fetch *next_queued;
    void *easy, *headers;
    struct text packed;
    uint64_t received, held;
};

/* Requests that one thread waits for together. */
struct http_gather {
    struct http_client *client;
    pthread_cond_t changed;
    struct http_fetch *first;
    unsigned pending;
    atomic_bool cancelled;
    atomic_uint_least64_t held;    /* bytes of its answers so far */
    uint64_t most_held;            /* peak of `held`; valid once it has ended */
    struct http_gather *next_cancelled;
};
void http_gather_begin(struct http_gather *, struct http_client *);
/* Sends the request, now or once a connection is free. */
void http_gather_add(struct http_gather *, struct http_fetch *);
/* Returns true when all are done, false at until_ns (monotonic). */
bool http_gather_wait(struct http_gather *, int64_t until_ns);
/* Cancels what is not done, frees the bodies, and closes held connections. */
void http_gather_end(struct http_gather *);

/* True: the other side has not closed the held connection. This is decided by what has arrived: data sent before the
 * close are there. A held connection stays open on this side, while the client uses it and after. */
bool http_connection_lives(int connection);

#endif
