/* SPDX-License-Identifier: MIT */
/* HTTP server: one thread per connection, and a limit on handlers that run at once. Everything that a client can claim
 * is limited. Only this room includes microhttpd. */
#ifndef WEFT_HTTP_HTTP_H
#define WEFT_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"

struct http_request;

/* TLS versions of all servers, as a GnuTLS priority string: 1.2 and later. */
#define HTTP_TLS "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/* Prefix of files with bodies in upload_dir. A file that a killed server left behind may be removed. */
#define HTTP_BODY_PREFIX ".upload-"

struct http_options {
    const char *listen;            /* "127.0.0.1:8080", "[::1]:0"; port 0: any free port */
    const char *tls_cert, *tls_key; /* PEM files, or NULL */
    const char *token;             /* bearer token that requests must carry, or NULL */
    const char *token_prefix;      /* prefix of the paths that need the token ("/tsp/"); NULL: all */
    /* Origins whose pages may call from a browser; NULL at the end; NULL: only the server's own. "editors": the origins
     * of VS Code and Theia. "*": pages of all other origins may read, but not change anything. */
    const char *const *origins;
    /* Host names that requests may use, besides "localhost", the machine's own, that of `listen`, and addresses. Others
     * are answered 421, unless a token is needed. NULL at the end; NULL: none. */
    const char *const *hosts;
    size_t max_body_bytes;         /* 0: 1 MiB */
    /* Limit for all request bodies held in memory. Above it, bodies over 1 MiB are answered 503. 0: 256 MiB. */
    uint64_t max_bodies_bytes;
    /* Limit of connections; 0: 2048. 256 more are accepted: 192 of them wait for a place, others are answered 503.
     * Requests for public_path are answered there, too. */
    unsigned max_connections;
    unsigned max_handlers;         /* limit of handlers that run at once; 0: 4 per CPU, at least 8 */
    unsigned timeout_s;            /* limit without progress, and for the whole head of a request; 0: 60 */
    /* Least rate beyond timeout_s; slower bodies and answers are cut. 0: 16384. Uploads have no limit while bytes
     * arrive. */
    unsigned slowest_bytes_per_s;
    unsigned max_handler_s;        /* limit until a handler sees http_gone, except of uploads; 0: 120 */
    uint64_t max_waiting_bytes;    /* limit of answers not yet read by clients; more are answered 503; 0: 256 MiB */
    /* Limit for what all handlers hold: their arenas, and answers being made. Above it, a handler whose share grows
     * beyond 1 MiB while others hold the rest ends with 503. 0: 256 MiB. */
    uint64_t max_held_bytes;
    const char *upload_path;       /* POST/PUT bodies to it go to a file in upload_dir instead of memory; or NULL */
    const char *upload_dir;        /* directory of these files; uploads have two places for handlers of their own */
    uint64_t max_upload_bytes;
    /* Path ("/tsp/api/health") whose requests need no token and never wait: their handler must be quick. Or NULL. */
    const char *public_path;
    /* True: the request needs little work. Such requests wait only for each other; eight times as many run at once. May
     * use the request's arena. NULL: no request does. */
    bool (*is_small)(struct http_request *);
    /* Frees memory that can be had again. Called when memory is short (base/mem.h) and no handler runs. Or NULL. */
    void (*give_memory)(void *arg);
};

/* Request; valid while its handler runs. */
struct http_request {
    const char *method;            /* "GET" */
    const char *path;              /* decoded, begins with '/' */
    const char *body;              /* terminated; "" without a body */
    size_t body_bytes;
    const char *body_file;         /* uploads: the file; removed afterwards, unless the handler renames it */
    const char *content_type;      /* content type that the client states; "": none */
    bool only_asks;                /* sent by a page that may not change anything */
    struct arena *arena;           /* freed when the handler has returned */
    const struct text *making;     /* set by the handler, or NULL: answer being made, which counts as held */
    struct http_connection *connection; /* private */
};

/* Handler. Must call one http_reply_… exactly once. Called by many threads at once. */
typedef void http_handler(void *arg, struct http_request *);

struct http_server;
int http_server_start(const struct http_options *, http_handler *, void *arg, struct http_server **out, struct err *e);
/* URL with the port in use: "http://127.0.0.1:8080". */
const char *http_server_address(const struct http_server *);
/* Accepts no more connections, waits for running handlers (which see http_gone), frees everything. */
void http_server_stop(struct http_server *);

/* Replies. Takes over the buffer (body->v) and empties *body. Sends 503 instead if http_gone ended the handler because
 * memory is short, or if the body could not grow (ENOMEM). Compresses if the client accepts it and it is worth while.
 * type NULL: no Content-Type. */
void http_reply(struct http_request *, int status, const char *content_type, struct text *body);
/* Replies with data that live as long as the server. `gzip`: they are compressed; clients without gzip get them
 * decompressed. etag or NULL. */
void http_reply_static(struct http_request *, const char *content_type, const void *data, size_t n, bool gzip,
    const char *etag);
/* Adds a header to the reply; to be called before it. */
void http_header(struct http_request *, const char *name, const char *value);
/* Value of a query parameter, or NULL. */
const char *http_query(const struct http_request *, const char *name);
/* Calls `take` with each value of a query parameter that may be repeated. */
void http_query_each(const struct http_request *, const char *name, void (*take)(void *arg, const char *value),
    void *arg);
/* Value of a header of the request, or NULL. */
const char *http_request_header(const struct http_request *, const char *name);
/* Replaces a compressed body (Content-Encoding) by its content, which `out` keeps. ERR_LIMIT: it has more than
 * most_bytes; ERR_FORMAT: it is damaged; ERR_UNSUPPORTED: an encoding other than gzip. */
int http_unpack_body(struct http_request *, size_t most_bytes, struct text *out, struct err *e);
/* Decompresses gzip, also of several members in a row. Errors as above. */
int http_unpack(const void *, size_t n, size_t most_bytes, struct text *out, struct err *e);
/* True: long work should end. The client has hung up, the handler's time is over, memory is short, all handlers hold
 * too much of it, or the server stops. Cheap enough for a call every millisecond. Only in the handler's thread. */
bool http_gone(const struct http_request *);
/* True: http_gone returned true to this handler, so its work may not be complete. */
bool http_was_gone(const struct http_request *);
/* Reports that the handler's work failed for lack of memory: 503 is sent, whatever it replies. */
void http_lack_memory(struct http_request *);

#endif
