/* SPDX-License-Identifier: MIT */
/* OTLP over HTTP. */
#include <string.h>

#include "base/json.h"
#include "otlp.pb-c.h"
#include "span/collect.h"

static const char type_protobuf[] = "application/x-protobuf", type_json[] = "application/json";

static void reply_protobuf(struct http_request *q, int status, const ProtobufCMessage *message)
{
    struct text t = {.fd = -1};
    t.n = protobuf_c_message_pack(message, (uint8_t *)text_room(&t, protobuf_c_message_get_packed_size(message)));
    http_reply(q, status, type_protobuf, &t);
}

static ProtobufCBinaryData binary_of(const char *s)
{
    return (ProtobufCBinaryData){strlen(s), (uint8_t *)s};
}

/* Answers with a google.rpc.Status. */
static void refuse(struct http_request *q, bool json, int status, const char *why)
{
    if (status == 503)
        http_header(q, "Retry-After", "2");
    if (json) {
        struct text t = {.fd = -1};
        struct json j = JSON_TO(&t);
        json_object(&j);
        json_kv_string(&j, "message", why);
        json_end_object(&j);
        http_reply(q, status, type_json, &t);
    } else {
        Otlp__Refusal r = OTLP__REFUSAL__INIT;
        r.message = binary_of(why);
        reply_protobuf(q, status, &r.base);
    }
}

static void write_partial(const struct span_told *told, struct text *t)
{
    if (told->refused)
        text_printf(t, "%llu spans cannot be taken: %s", (unsigned long long)told->refused, told->why);
    if (told->repaired)
        text_printf(t,
            "%s%llu spans were put right (texts that are not UTF-8, keys twice, ends before starts, too many or "
            "too deep values)",
            told->refused ? "; " : "", (unsigned long long)told->repaired);
    if (*told->warning)
        text_printf(t, "%s%s", t->n ? "; " : "", told->warning);
}

void collect_write_taken(const struct span_told *told, struct text *t)
{
    struct text why = {.fd = -1};
    Otlp__Response r = OTLP__RESPONSE__INIT;
    Otlp__PartialSuccess p = OTLP__PARTIAL_SUCCESS__INIT;
    write_partial(told, &why);
    p.rejected = (int64_t)told->refused;
    p.message = binary_of(text_cstr(&why));
    r.partial = why.n ? &p : NULL;
    t->n += protobuf_c_message_pack(&r.base, (uint8_t *)text_room(t, protobuf_c_message_get_packed_size(&r.base)));
    text_fini(&why);
}

static void write_taken_json(const struct span_told *told, struct text *t)
{
    struct text why = {.fd = -1};
    struct json j = JSON_TO(t);
    write_partial(told, &why);
    json_object(&j);
    if (why.n) {
        json_key(&j, "partialSuccess");
        json_object(&j);
        text_printf(t, "\"rejectedSpans\":\"%llu\",\"errorMessage\":", (unsigned long long)told->refused);
        json_quote(t, why.v, why.n);
        json_end_object(&j);
    }
    json_end_object(&j);
    text_fini(&why);
}

static void reply_taken(struct http_request *q, bool json, const struct span_told *told)
{
    struct text t = {.fd = -1};
    (json ? write_taken_json : collect_write_taken)(told, &t);
    http_reply(q, 200, json ? type_json : type_protobuf, &t);
}

void collect_otlp(void *arg, struct http_request *q)
{
    bool json = collect_is_type(q->content_type, type_json);
    struct span_told told = {0};
    struct err e = {0};
    if (!strcmp(q->path, COLLECT_HEALTH)) {
        collect_health(arg, q);
    } else if (strcmp(q->path, "/v1/traces") != 0) {
        collect_reply_plain(q, 404, "Spans come to POST /v1/traces");
    } else if (strcmp(q->method, "POST") != 0) {
        http_header(q, "Allow", "POST");
        collect_reply_plain(q, 405, "Spans come by POST");
    } else if (!json && !collect_is_type(q->content_type, type_protobuf)) {
        collect_reply_plain(q, 415, "Content-Type: application/x-protobuf or application/json");
    } else {
        int rc = collect_take(arg, q, json ? span_read_json : span_read_protobuf, &told, &e);
        if (rc == ERR_UNSUPPORTED)
            collect_reply_plain(q, 415, e.text);
        else if (rc)
            refuse(q, json, collect_status(rc), e.text);
        else
            reply_taken(q, json, &told);
    }
}
