/* SPDX-License-Identifier: MIT */
/* Private to http: how messages lie in the body of a gRPC call. */
#ifndef WEFT_HTTP_GRPC_FRAME_H
#define WEFT_HTTP_GRPC_FRAME_H

#include <stdbool.h>
#include <stddef.h>

#include "http/grpc.h"

enum { GRPC_HEAD_BYTES = 5 };

/* What its first bytes say of a message, that many bytes at least are there. 0, or why it is refused. */
enum grpc_status grpc_frame_head(const void *body, bool gzip, size_t most_bytes, size_t *n, struct err *e);
/* The one message of a whole body, unpacked into `unpacked` if need be. `gzip`: that is what compressed ones are in. */
enum grpc_status grpc_frame_message(const void *body, size_t n, bool gzip, size_t most_bytes, struct text *unpacked,
    struct grpc_call *, struct err *e);
/* What a header may hold: all else becomes %XX. */
void grpc_write_percent(struct text *, const char *s);

#endif
