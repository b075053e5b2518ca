/* SPDX-License-Identifier: MIT */
/* Private to span: spans as OTLP protobuf. */
#ifndef WEFT_SPAN_WRITE_PROTOBUF_H
#define WEFT_SPAN_WRITE_PROTOBUF_H

#include "span/span.h"

/* Builder of an ExportTraceServiceRequest. Initialise with PROTOBUF_REQUEST; free with protobuf_request_fini. */
struct protobuf_request {
    struct text body;                    /* finished bytes */
    struct text spans, resource, scope, again;
    const char *resource_schema, *scope_schema;
    size_t n;                            /* number of spans */
};
#define PROTOBUF_REQUEST \
    ((struct protobuf_request){.body = {.fd = -1}, .spans = {.fd = -1}, .resource = {.fd = -1}, .scope = {.fd = -1}, \
        .again = {.fd = -1}})
void protobuf_request_fini(struct protobuf_request *);
/* Sets the origin of the next spans; borrowed until the next call, or the end. */
void protobuf_request_origin(struct protobuf_request *, const struct span_origin *);
void protobuf_request_span(struct protobuf_request *, const struct span *);
/* Returns the size so far in bytes, approximately. */
size_t protobuf_request_bytes(const struct protobuf_request *);
/* Completes the body. More spans of the same origin may follow. */
void protobuf_request_end(struct protobuf_request *);
/* Empties the request, and keeps its origin. */
void protobuf_request_clear(struct protobuf_request *);

#endif
