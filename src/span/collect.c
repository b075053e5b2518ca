/* The collector: its parts, and OTLP over HTTP. */
#include "span/collect.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/time.h"
#include "otlp.pb-c.h"
#include "span/read.h"

static const uint64_t most_behind_bytes = UINT64_C(1) << 30;

bool collect_may_work(struct span_collector *c, uint64_t bytes)
{
    uint64_t others = atomic_fetch_add(&c->in_work_bytes, bytes);
    if (!others || others + bytes <= COLLECT_MOST_IN_WORK_BYTES)
        return true;
    atomic_fetch_sub(&c->in_work_bytes, bytes);
    return false;
}

void collect_worked(struct span_collector *c, uint64_t bytes)
{
    atomic_fetch_sub(&c->in_work_bytes, bytes);
}

int collect_keep(struct span_collector *c, const struct span_making *m, struct err *e)
{
    return m->told.taken ? log_append(c->log, m->code.v, m->code.n, time_now_ns(), most_behind_bytes, e) : 0;
}

/* ---- OTLP over HTTP ---- */

static const char type_protobuf[] = "application/x-protobuf", type_json[] = "application/json";

/* Is it that type, with parameters or without? */
static bool is_type(const char *given, const char *type)
{
    size_t n = strlen(type);
    return !strncasecmp(given, type, n) && (!given[n] || given[n] == ';' || given[n] == ' ');
}

static void reply_plain(struct http_request *q, int status, const char *why)
{
    struct text t = {.fd = -1};
    text_printf(&t, "%s\n", why);
    http_reply(q, status, "text/plain", &t);
}

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

/* A google.rpc.Status. */
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
}

static void reply_taken(struct http_request *q, bool json, const struct span_told *told)
{
    bool partial = told->refused || told->repaired;
    struct text why = {.fd = -1}, t = {.fd = -1};
    struct json j = JSON_TO(&t);
    write_partial(told, &why);
    if (json) {
        json_object(&j);
        if (partial) {
            json_key(&j, "partialSuccess");
            json_object(&j);
            text_printf(&t, "\"rejectedSpans\":\"%llu\",\"errorMessage\":", (unsigned long long)told->refused);
            json_quote(&t, why.v, why.n);
            json_end_object(&j);
        }
        json_end_object(&j);
        http_reply(q, 200, type_json, &t);
    } else {
        Otlp__Response r = OTLP__RESPONSE__INIT;
        Otlp__PartialSuccess p = OTLP__PARTIAL_SUCCESS__INIT;
        p.rejected = (int64_t)told->refused;
        p.message = binary_of(text_cstr(&why));
        r.partial = partial ? &p : NULL;
        reply_protobuf(q, 200, &r.base);
    }
    text_fini(&why);
}

/* The status of a message that was not taken. */
static int status_of(int rc)
{
    switch (rc) {
    case ERR_FORMAT: return 400;
    case ERR_UNSUPPORTED: return 415;
    case ERR_LIMIT: return 413;
    default: return 503; /* what may go later */
    }
}

static int take(struct span_collector *c, struct http_request *q, bool json, struct span_told *told, struct err *e)
{
    struct span_making m = SPAN_MAKING;
    if (!collect_may_work(c, q->body_bytes))
        return err_set(e, ERR_BUSY, "too much is being taken in: try again soon");
    q->making = &m.code;
    int rc = json ? span_read_json(&m, q->body, q->body_bytes, e) : span_read_protobuf(&m, q->body, q->body_bytes, e);
    if (!rc)
        rc = collect_keep(c, &m, e);
    *told = m.told;
    q->making = NULL;
    span_making_fini(&m);
    collect_worked(c, q->body_bytes);
    return rc;
}

void collect_otlp(void *arg, struct http_request *q)
{
    bool json = is_type(q->content_type, type_json);
    struct text unpacked = {.fd = -1};
    struct span_told told = {0};
    struct err e = {0};
    if (strcmp(q->path, "/v1/traces") != 0) {
        reply_plain(q, 404, "Spans come to POST /v1/traces");
    } else if (strcmp(q->method, "POST") != 0) {
        http_header(q, "Allow", "POST");
        reply_plain(q, 405, "Spans come by POST");
    } else if (!json && !is_type(q->content_type, type_protobuf)) {
        reply_plain(q, 415, "Content-Type: application/x-protobuf or application/json");
    } else {
        int rc = http_unpack_body(q, COLLECT_MOST_BODY_BYTES, &unpacked, &e);
        if (!rc)
            rc = take(arg, q, json, &told, &e);
        if (rc == ERR_UNSUPPORTED)
            reply_plain(q, 415, e.text);
        else if (rc)
            refuse(q, json, status_of(rc), e.text);
        else
            reply_taken(q, json, &told);
    }
    text_fini(&unpacked);
}

/* ---- start and stop ---- */

static int open_door(
    struct span_collector *c, enum span_door door, const char *listen, http_handler *handler, struct err *e)
{
    struct http_options o = {.listen = listen,
        .tls_cert = c->o.tls_cert,
        .tls_key = c->o.tls_key,
        .token = c->o.token,
        .origins = c->o.origins,
        .max_body_bytes = door == SPAN_DOOR_QUERY ? 0 : COLLECT_MOST_BODY_BYTES,
        .max_held_bytes = UINT64_C(1) << 30};
    return listen ? http_server_start(&o, handler, c, &c->doors[door], e) : 0;
}

int span_collect_start(const struct span_collect_options *o, struct span_collector **out, struct err *e)
{
    struct span_collector *c = mem_zalloc(sizeof *c);
    char *log = mem_printf("%s/log", o->store);
    c->o = *o;
    pthread_mutex_init(&c->lock, NULL);
    int rc = log_open(log, &c->log, e);
    free(log);
    if (!rc)
        rc = behind_start(c, e);
    if (!rc)
        rc = open_door(c, SPAN_DOOR_OTLP, o->otlp_http, collect_otlp, e);
    if (!rc)
        rc = open_door(c, SPAN_DOOR_QUERY, o->query, collect_query, e);
    if (rc)
        span_collect_stop(c);
    else
        *out = c;
    return rc;
}

const char *span_collect_address(const struct span_collector *c, enum span_door door)
{
    return c->doors[door] ? http_server_address(c->doors[door]) : NULL;
}

void span_collect_stop(struct span_collector *c)
{
    for (size_t i = 0; i < SPAN_DOORS; i++)
        http_server_stop(c->doors[i]);
    behind_stop(c);
    log_close(c->log);
    for (size_t i = 0; i < c->idle.n; i++)
        span_store_close(c->idle.v[i]);
    vec_free(&c->idle);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
