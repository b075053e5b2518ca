/* SPDX-License-Identifier: MIT */
/* Private to http: framing of messages in the body of a gRPC call. */
#ifndef WEFT_HTTP_GRPC_FRAME_H
#define WEFT_HTTP_GRPC_FRAME_H

#include <stdbool.h>
#include <stddef.h>

#include "http/grpc.h"

enum { GRPC_HEAD_BYTES = 5 };

/* Parses the first GRPC_HEAD_BYTES of a message. Returns 0, or the status of its refusal. *n: bytes of the message. */
enum grpc_status http_grpc_frame_head(const void *body, bool gzip, size_t most_bytes, size_t *n, struct err *e);
/* Returns the one message of a complete body in the call, decompressed into `unpacked` if need be. `gzip`: the encoding
 * of compressed messages. */
enum grpc_status http_grpc_frame_message(const void *body, size_t n, bool gzip, size_t most_bytes,
    struct text *unpacked, struct grpc_call *, struct err *e);
/* Appends a header's value; characters that it may not have become %XX. */
void http_grpc_write_percent(struct text *, const char *s);

#endif
