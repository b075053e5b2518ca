/* SPDX-License-Identifier: MIT */
/* gRPC server: unary calls over HTTP/2, in the clear (prior knowledge) or over TLS. One thread serves all connections;
 * a few others run the handler. Everything that a client can claim is limited. Only this room includes nghttp2 and
 * gnutls. */
#ifndef WEFT_HTTP_GRPC_H
#define WEFT_HTTP_GRPC_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"

/* Published status codes, those used here. */
enum grpc_status {
    GRPC_OK = 0,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
    GRPC_UNAUTHENTICATED = 16,
};

struct grpc_options {
    const char *listen;            /* "127.0.0.1:4317"; port 0: any free one */
    const char *tls_cert, *tls_key; /* PEM files, or NULL */
    const char *token;             /* bearer token that calls must carry, or NULL */
    size_t max_message_bytes;      /* limit as received, and after decompression; 0: 4 MiB */
    uint64_t max_bodies_bytes;     /* limit for received bodies of all calls; above it: UNAVAILABLE; 0: 256 MiB */
    unsigned max_connections;      /* limit; beyond it the connection idle for longest is closed; 0: 1024 */
    unsigned max_streams;          /* limit of concurrent streams of a connection; 0: 100 */
    unsigned timeout_s;            /* limit to begin HTTP/2, or read an answer; idle: five times that; 0: 60 */
    unsigned slowest_bytes_per_s;  /* least rate beyond timeout_s; slower calls are ended; 0: 16384 */
};

/* Call: the question, and the answer, which the handler fills in. */
struct grpc_call {
    const char *path;              /* "/package.Service/Method" */
    const char *message;           /* decompressed */
    size_t message_bytes;

    enum grpc_status status;
    struct text reply;             /* the message, for GRPC_OK */
    char why[1024];                /* reason of a refusal; or "" */
    unsigned retry_ms;             /* delay before a retry; 0: not sent */
    struct text details;           /* base64 of a google.rpc.Status; or nothing */
};
/* Handler. Called by several threads at once. */
typedef void grpc_handler(void *arg, struct grpc_call *);

struct grpc_server;
int http_grpc_server_start(const struct grpc_options *, grpc_handler *, void *arg, struct grpc_server **out,
    struct err *e);
/* URL with the port in use: "http://127.0.0.1:4317". */
const char *http_grpc_server_address(const struct grpc_server *);
/* Accepts nothing more, answers received calls, frees everything. NULL-safe. */
void http_grpc_server_stop(struct grpc_server *);

#endif
