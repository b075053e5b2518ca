/* SPDX-License-Identifier: MIT */
/* Private to span: spans as OTLP protobuf. */
#ifndef WEFT_SPAN_WRITE_PROTOBUF_H
#define WEFT_SPAN_WRITE_PROTOBUF_H

#include "span/span.h"

/* An ExportTraceServiceRequest in the making. PROTOBUF_REQUEST; protobuf_request_fini. */
struct protobuf_request {
    struct text body;                    /* what is whole of it */
    struct text spans, resource, scope, again;
    const char *resource_schema, *scope_schema;
    size_t n;                            /* spans */
};
#define PROTOBUF_REQUEST \
    ((struct protobuf_request){.body = {.fd = -1}, .spans = {.fd = -1}, .resource = {.fd = -1}, .scope = {.fd = -1}, \
        .again = {.fd = -1}})
void protobuf_request_fini(struct protobuf_request *);
/* Whose spans come next; it is borrowed until the next one, or the end. */
void protobuf_request_origin(struct protobuf_request *, const struct span_origin *);
void protobuf_request_span(struct protobuf_request *, const struct span *);
/* Bytes so far, nearly. */
size_t protobuf_request_bytes(const struct protobuf_request *);
/* The body is whole then; more may follow of the same origin. */
void protobuf_request_end(struct protobuf_request *);
/* Empty again, with the same origin. */
void protobuf_request_clear(struct protobuf_request *);

#endif
