/* SPDX-License-Identifier: MIT */
/* HTTP client: one thread asks many servers at once, over connections that are kept. What an answer may cost is limited
 * in time and bytes. The only room that includes curl. */
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
    unsigned max_per_host;         /* connections to one server at once; further requests wait their turn; 0: 32 */
    /* That bodies of answers hold together, until their gather ends; 0: 512 MiB. An answer whose gather holds more than
     * 1 MiB while others hold the rest fails: with ERR_LIMIT where those of its own gather are too large by themselves,
     * which will be so again, else with ERR_BUSY. */
    uint64_t max_held_bytes;
};

struct http_client;
int http_client_start(const struct http_client_options *, struct http_client **out, struct err *e);
/* When no gather is left. NULL-safe. */
void http_client_stop(struct http_client *);

/* One request and its answer. Zero-initialise, and fill in the question; all that it points to is borrowed until its
 * gather ends. */
struct http_fetch {
    const char *method;            /* "GET" */
    const char *url;               /* http or https; redirections are not followed, proxies not used */
    const char *json;              /* the body to send; NULL: none */
    size_t json_bytes;
    const char *type;              /* what it is, if no JSON; or NULL */
    bool packs;                    /* it goes compressed by gzip if that is worth it */
    const char *token;             /* sent as Authorization: Bearer; NULL: none */
    const char *header;            /* another header of the question, "Via: 1.1 name"; NULL: none */
    const char *ca_file;           /* PEM, of who signed the server's certificate; NULL: the system's */
    unsigned connect_ms;           /* to connect in; 0: 2000 */
    unsigned answer_ms;            /* for everything, connecting included; 0: 30000 */
    size_t max_bytes;              /* of the answer's body; 0: 1 GiB */
    /* Called by the client's thread for each piece of the body, which is not collected then; false ends the request
     * with ERR_CANCELLED. It must not block. NULL: the body is collected. */
    bool (*take)(void *arg, const char *piece, size_t n);
    void *arg;
    bool holds;                    /* the connection that the answer comes by is to be held */
    bool anew;                     /* it is asked by a new connection, though there may be others */

    /* The answer, once `done`. */
    atomic_bool done;
    struct err error;              /* code 0: there is an answer, whatever its status */
    int status;
    long retry_after_s;            /* as its header says, also by a date; 0: it says nothing */
    char warning[512];             /* its header Warning, perhaps cut; "": it has none */
    bool by_kept;                  /* it came by a connection of an earlier request */
    int connection;                /* that is held; who sets it to -1 has to close it; -1: none, or it has ended */
    struct text body;              /* who frees it earlier has its memory for what is made of it: it stays counted */

    /* Private to the client. */
    struct http_gather *gather;
    struct http_fetch *next;       /* of the gather */
    struct http_fetch *next_queued;
    void *easy, *headers;
    struct text packed;
    uint64_t received, held;
};

/* Requests that are waited for together, by one thread. */
struct http_gather {
    struct http_client *client;
    pthread_cond_t changed;
    struct http_fetch *first;
    unsigned pending;
    atomic_bool cancelled;
    atomic_uint_least64_t held;    /* bytes of its answers so far */
    uint64_t most_held;            /* once it has ended: what they held at most */
    struct http_gather *next_cancelled;
};
void http_gather_begin(struct http_gather *, struct http_client *);
/* Sends the request, now or when it is its turn. */
void http_gather_add(struct http_gather *, struct http_fetch *);
/* True: all are done. False: it is that time (monotonic). */
bool http_gather_wait(struct http_gather *, int64_t until_ns);
/* Cancels what is not done, frees the bodies, and closes what is held. */
void http_gather_end(struct http_gather *);

/* The other side has not ended one that is held. That goes by what has arrived, so that what it sent before it ended is
 * there. A connection that is held stays open on this side, while it serves the client and after. */
bool http_connection_lives(int connection);

#endif
