/* SPDX-License-Identifier: MIT */
/* gRPC server: unary calls over HTTP/2, in the clear (prior knowledge) or by TLS. One thread for all connections, a few
 * that run the handler; everything a client can claim is limited. The only room that includes nghttp2 and gnutls. */
#ifndef WEFT_HTTP_GRPC_H
#define WEFT_HTTP_GRPC_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"

/* As published; of them those that are used here. */
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
    size_t max_message_bytes;      /* as it comes, and once it is unpacked; 0: 4 MiB */
    uint64_t max_bodies_bytes;     /* of all calls together, as they come; more are answered UNAVAILABLE; 0: 256 MiB */
    unsigned max_connections;      /* the one that rests longest gives way; 0: 1024 */
    unsigned max_streams;          /* at once on a connection; 0: 100 */
    unsigned timeout_s;            /* to begin with HTTP/2, or to read an answer; to rest: five times that; 0: 60 */
    unsigned slowest_bytes_per_s;  /* calls that come more slowly, beyond timeout_s, are ended; 0: 16384 */
};

/* One call: the question, and the answer, which the handler makes. */
struct grpc_call {
    const char *path;              /* "/package.Service/Method" */
    const char *message;           /* unpacked */
    size_t message_bytes;

    enum grpc_status status;
    struct text reply;             /* the message, for GRPC_OK */
    char why[1024];                /* what a refusal says; "" */
    unsigned retry_ms;             /* after which it may come again; 0: nothing is said */
    struct text details;           /* base64 of a google.rpc.Status; or nothing */
};
/* Called by several threads at once. */
typedef void grpc_handler(void *arg, struct grpc_call *);

struct grpc_server;
int grpc_server_start(const struct grpc_options *, grpc_handler *, void *arg, struct grpc_server **out, struct err *e);
/* "http://127.0.0.1:4317" with the port in use. */
const char *grpc_server_address(const struct grpc_server *);
/* Takes nothing more, answers what was asked, frees everything. NULL-safe. */
void grpc_server_stop(struct grpc_server *);

#endif
