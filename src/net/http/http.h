/* SPDX-License-Identifier: MIT */
/* HTTP server: one thread per connection, a bounded number of handlers at once, everything a client can claim is
 * limited. The only room that includes microhttpd. */
#ifndef WEFT_HTTP_HTTP_H
#define WEFT_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"

struct http_request;

/* What servers speak over TLS, as GnuTLS names it: versions 1.2 and later. */
#define HTTP_TLS "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/* Names of the files in upload_dir that hold bodies begin so. One that a killed server has left may be removed. */
#define HTTP_BODY_PREFIX ".upload-"

struct http_options {
    const char *listen;            /* "127.0.0.1:8080", "[::1]:0"; port 0: any free port */
    const char *tls_cert, *tls_key; /* PEM files, or NULL */
    const char *token;             /* bearer token that requests must carry, or NULL */
    const char *token_prefix;      /* only paths that begin with it need the token ("/tsp/"); NULL: all */
    /* Whose pages may call from a browser, NULL at the end; NULL: only the server's own. An origin; "editors": those of
     * VS Code and Theia; "*": all others too may ask, but not change anything. */
    const char *const *origins;
    /* Names besides "localhost", the machine's own, that of `listen`, and addresses, by which requests may call the
     * server; others are answered 421 unless a token is needed. NULL at the end; NULL: none. */
    const char *const *hosts;
    size_t max_body_bytes;         /* 0: 1 MiB */
    /* That all bodies in memory take together; those of more than 1 MiB get 503 then; 0: 256 MiB. */
    uint64_t max_bodies_bytes;
    /* 0: 2048. 256 more are accepted: they wait for a place (192 of them; others are answered 503), and requests of
     * public_path are answered there. */
    unsigned max_connections;
    unsigned max_handlers;         /* at once; 0: 4 per CPU, at least 8 */
    unsigned timeout_s;            /* without progress on a connection; for the whole head of a request; 0: 60 */
    /* Bodies and answers that go on more slowly, beyond timeout_s, are cut; 0: 16384. Uploads may take as long as bytes
     * come. */
    unsigned slowest_bytes_per_s;
    unsigned max_handler_s;        /* a handler sees http_gone after so long, but for uploads; 0: 120 */
    uint64_t max_waiting_bytes;    /* of answers that clients have not read yet; more are answered 503; 0: 256 MiB */
    /* That all handlers together hold (their arenas, and answers in the making); whose share grows beyond 1 MiB while
     * others hold the rest ends with 503; 0: 256 MiB. */
    uint64_t max_held_bytes;
    const char *upload_path;       /* POST/PUT bodies to it go to a file in upload_dir instead of memory; or NULL */
    const char *upload_dir;        /* their handlers have two places of their own */
    uint64_t max_upload_bytes;
    /* Requests of this path ("/tsp/api/health") need no token, and are answered whatever else waits: their handler
     * must be quick. Or NULL. */
    const char *public_path;
    /* Is little to be done for it? Such requests wait for one another only: eight times as many run at once. It may use
     * the request's arena. NULL: none is. */
    bool (*is_small)(struct http_request *);
    /* Memory is short (base/mem.h) and no handler runs: gives back what can be had again. Or NULL. */
    void (*give_memory)(void *arg);
};

/* Valid while its handler runs. */
struct http_request {
    const char *method;            /* "GET" */
    const char *path;              /* decoded, begins with '/' */
    const char *body;              /* terminated; "" when there is none */
    size_t body_bytes;
    const char *body_file;         /* uploads: the file, which the handler may rename away; it is removed otherwise */
    const char *content_type;      /* as the client says; "" when it does not */
    bool only_asks;                /* it comes from a page that may not change anything */
    struct arena *arena;           /* freed when the handler has returned */
    const struct text *making;     /* the handler's, or NULL: the answer while it is made, which counts as held */
    struct http_connection *connection; /* private */
};

/* Must call one http_reply_… exactly once. Called by many threads at once. */
typedef void http_handler(void *arg, struct http_request *);

struct http_server;
int http_server_start(const struct http_options *, http_handler *, void *arg, struct http_server **out, struct err *e);
/* "http://127.0.0.1:8080" with the port in use. */
const char *http_server_address(const struct http_server *);
/* Takes no more connections, lets running handlers end (they see http_gone), frees everything. */
void http_server_stop(struct http_server *);

/* Takes over the buffer (body->v) and empties *body. 503 is sent instead if http_gone has ended the handler because
 * memory is short, or the body could not grow (ENOMEM). Compressed when the client can and it is worth it. type NULL:
 * no Content-Type. */
void http_reply(struct http_request *, int status, const char *content_type, struct text *body);
/* Data that live as long as the server; `gzip`: they are compressed (decompressed for clients that cannot). etag or
 * NULL. */
void http_reply_static(struct http_request *, const char *content_type, const void *data, size_t n, bool gzip,
    const char *etag);
/* A header for the reply to come (before it). */
void http_header(struct http_request *, const char *name, const char *value);
/* Value of a query parameter, or NULL. */
const char *http_query(const struct http_request *, const char *name);
/* Each value of a parameter that may come several times. */
void http_query_each(const struct http_request *, const char *name, void (*take)(void *arg, const char *value),
    void *arg);
/* Value of a header of the request, or NULL. */
const char *http_request_header(const struct http_request *, const char *name);
/* The body as it was before the client compressed it, if it did (Content-Encoding); `out` keeps it then. ERR_LIMIT: it
 * has more than so many bytes; ERR_FORMAT: it is damaged; ERR_UNSUPPORTED: another encoding than gzip. */
int http_unpack_body(struct http_request *, size_t most_bytes, struct text *out, struct err *e);
/* What gzip packed, several members one behind the other included. Errors as above. */
int http_unpack(const void *, size_t n, size_t most_bytes, struct text *out, struct err *e);
/* The client has hung up, the handler's time is over, memory is short, all handlers together hold too much of it, or
 * the server stops: long work should end. Cheap enough to ask every millisecond. Only in the handler's thread. */
bool http_gone(const struct http_request *);
/* Has http_gone said so to this handler? Then what it did may not be whole. */
bool http_was_gone(const struct http_request *);
/* What the handler was to do fails because there is no memory: whatever it replies, 503 is sent. */
void http_lack_memory(struct http_request *);

#endif
