/* SPDX-License-Identifier: MIT */
/* Private to http: bytes of a gRPC connection, in the clear or over TLS; never blocks. */
#ifndef WEFT_HTTP_GRPC_WIRE_H
#define WEFT_HTTP_GRPC_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct grpc_tls;                       /* certificate and key; or NULL */
int http_grpc_tls_load(const char *cert, const char *key, struct grpc_tls **out, struct err *e);
void http_grpc_tls_free(struct grpc_tls *);

struct grpc_wire { int fd; void *session; bool shaken, half_sent, wants_write; };
int http_grpc_wire_open(struct grpc_wire *, int fd, struct grpc_tls *);
void http_grpc_wire_close(struct grpc_wire *);
/* TLS handshake. 1: done; 0: not yet (wants_write: it waits for writing); -1: failed. */
int http_grpc_wire_shake(struct grpc_wire *);
/* Returns the number of bytes; 0: none now; -1: the connection is over. After 0, write the same bytes again, with or
 * without more behind them. */
long http_grpc_wire_read(struct grpc_wire *, void *out, size_t n);
/* True: there is more to read that epoll does not report. */
bool http_grpc_wire_pending(struct grpc_wire *);
long http_grpc_wire_write(struct grpc_wire *, const void *data, size_t n);

#endif
