/* SPDX-License-Identifier: MIT */
/* OTLP over gRPC. */
#include <stdio.h>
#include <string.h>

#include "otlp.pb-c.h"
#include "span/base64.h"
#include "span/collect.h"

enum { RETRY_S = 2 };

static ProtobufCBinaryData packed(const ProtobufCMessage *m, struct text *t)
{
    t->n = protobuf_c_message_pack(m, (uint8_t *)text_room(t, protobuf_c_message_get_packed_size(m)));
    return (ProtobufCBinaryData){t->n, (uint8_t *)t->v};
}

/* Writes a google.rpc.Status with the retry delay, as OTLP requires. */
static void write_retry(struct grpc_call *call)
{
    static const char type[] = "type.googleapis.com/google.rpc.RetryInfo";
    struct text value = {.fd = -1}, all = {.fd = -1};
    Otlp__Duration delay = OTLP__DURATION__INIT;
    Otlp__RetryInfo info = OTLP__RETRY_INFO__INIT;
    Otlp__Any detail = OTLP__ANY__INIT, *details[] = {&detail};
    Otlp__Refusal r = OTLP__REFUSAL__INIT;
    delay.seconds = RETRY_S;
    info.delay = &delay;
    detail.type = (ProtobufCBinaryData){sizeof type - 1, (uint8_t *)type};
    detail.value = packed(&info.base, &value);
    r.code = (int32_t)call->status;
    r.message = (ProtobufCBinaryData){strlen(call->why), (uint8_t *)call->why};
    r.n_details = 1;
    r.details = details;
    packed(&r.base, &all);
    span_write_base64(&call->details, all.v, all.n);
    text_fini(&value);
    text_fini(&all);
    call->retry_ms = RETRY_S * 1000;
}

static enum grpc_status status_of(int rc)
{
    switch (rc) {
    case ERR_FORMAT: return GRPC_INVALID_ARGUMENT;
    case ERR_LIMIT: return GRPC_RESOURCE_EXHAUSTED;
    default: return GRPC_UNAVAILABLE; /* temporary errors */
    }
}

void collect_grpc(void *arg, struct grpc_call *call)
{
    static const char method[] = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
    struct span_told told = {0};
    struct err e = {0};
    const struct text *making;
    if (strcmp(call->path, method) != 0) {
        call->status = GRPC_UNIMPLEMENTED;
        snprintf(call->why, sizeof call->why, "spans come to %s", method);
        return;
    }
    int rc = collect_bytes(arg, call->message, call->message_bytes, &making, span_read_protobuf, &told, &e);
    if (!rc) {
        collect_write_taken(&told, &call->reply);
        return;
    }
    call->status = status_of(rc);
    snprintf(call->why, sizeof call->why, "%s", e.text);
    if (call->status == GRPC_UNAVAILABLE)
        write_retry(call);
}
