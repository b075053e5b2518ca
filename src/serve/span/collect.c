/* SPDX-License-Identifier: MIT */
/* Collector: request bodies, start and stop. */
#include "span/collect.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/time.h"

/* Reserves memory to parse a body of so many bytes; false: too much is in progress. */
static bool may_work(struct span_collector *c, uint64_t bytes)
{
    uint64_t others = atomic_fetch_add(&c->in_work_bytes, bytes);
    if (!others || others + bytes <= COLLECT_MOST_IN_WORK_BYTES)
        return true;
    atomic_fetch_sub(&c->in_work_bytes, bytes);
    return false;
}

int collect_bytes(struct span_collector *c, const void *body, size_t n, const struct text **making, span_reader *read,
    struct span_told *told, struct err *e)
{
    struct span_making m = SPAN_MAKING;
    if (!may_work(c, n))
        return err_set(e, ERR_BUSY, "too much is being taken in: try again soon");
    *making = &m.code;
    int rc = read(&m, body, n, e);
    if (!rc && m.told.taken)
        rc = log_append(c->log, m.code.v, m.code.n, time_now_ns(), COLLECT_MOST_BEHIND_BYTES, e);
    *told = m.told;
    *making = NULL;
    span_making_fini(&m);
    atomic_fetch_sub(&c->in_work_bytes, n);
    return rc;
}

int collect_take(
    struct span_collector *c, struct http_request *q, span_reader *read, struct span_told *told, struct err *e)
{
    struct text unpacked = {.fd = -1};
    int rc = http_unpack_body(q, COLLECT_MOST_BODY_BYTES, &unpacked, e);
    if (!rc)
        rc = collect_bytes(c, q->body, q->body_bytes, &q->making, read, told, e);
    q->making = NULL;
    text_fini(&unpacked);
    return rc;
}

int collect_status(int rc)
{
    switch (rc) {
    case ERR_FORMAT: return 400;
    case ERR_UNSUPPORTED: return 415;
    case ERR_LIMIT: return 413;
    default: return 503; /* temporary errors */
    }
}

bool collect_is_type(const char *given, const char *type)
{
    size_t n = strlen(type);
    return !strncasecmp(given, type, n) && (!given[n] || given[n] == ';' || given[n] == ' ');
}

void collect_reply_plain(struct http_request *q, int status, const char *why)
{
    struct text t = {.fd = -1};
    text_printf(&t, "%s\n", why);
    if (status == 503)
        http_header(q, "Retry-After", "2");
    http_reply(q, status, "text/plain", &t);
}

void collect_health(struct span_collector *c, struct http_request *q)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    char problem[512];
    uint64_t waiting = log_behind(c->log);
    bool full = waiting > COLLECT_MOST_BEHIND_BYTES;
    behind_problem(c, problem, sizeof problem);
    json_object(&j);
    json_kv_string(&j, "status", full ? "full" : *problem ? "behind" : "ok");
    json_kv_i64(&j, "waitingBytes", (int64_t)waiting);
    json_kv_i64(&j, "mostWaitingBytes", COLLECT_MOST_BEHIND_BYTES);
    json_key(&j, "database");
    json_write_string(&j, *problem ? problem : "ok");
    json_end_object(&j);
    http_reply(q, full ? 503 : 200, "application/json", &t);
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
        .hosts = c->o.hosts,
        .public_path = door == SPAN_DOOR_QUERY || door == SPAN_DOOR_OTLP ? COLLECT_HEALTH : NULL,
        .max_body_bytes = door == SPAN_DOOR_QUERY ? 0 : COLLECT_MOST_BODY_BYTES,
        .max_held_bytes = UINT64_C(1) << 30};
    return listen ? http_server_start(&o, handler, c, &c->doors[door], e) : 0;
}

static int open_grpc(struct span_collector *c, struct err *e)
{
    const struct grpc_options o = {.listen = c->o.otlp_grpc,
        .tls_cert = c->o.tls_cert,
        .tls_key = c->o.tls_key,
        .token = c->o.token,
        .max_message_bytes = COLLECT_MOST_BODY_BYTES};
    return o.listen ? grpc_server_start(&o, collect_grpc, c, &c->grpc, e) : 0;
}

int span_collect_start(const struct span_collect_options *o, struct span_collector **out, struct err *e)
{
    struct span_collector *c = mem_zalloc(sizeof *c);
    c->o = *o;
    c->directory = o->directory ? o->directory : o->store;
    char *log = mem_printf("%s/log", c->directory);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->given, NULL);
    int rc = log_open(log, &c->log, e);
    free(log);
    if (!rc)
        rc = forward_start(c, e);
    if (!rc)
        rc = behind_start(c, e);
    if (!rc)
        rc = open_door(c, SPAN_DOOR_OTLP, o->otlp_http, collect_otlp, e);
    if (!rc)
        rc = open_grpc(c, e);
    if (!rc)
        rc = open_door(c, SPAN_DOOR_JAEGER, o->jaeger, collect_jaeger, e);
    if (!rc)
        rc = open_door(c, SPAN_DOOR_ZIPKIN, o->zipkin, collect_zipkin, e);
    if (!rc)
        rc = open_door(c, SPAN_DOOR_QUERY, o->query, collect_query, e);
    if (!rc && forward_is_to_itself(c))
        rc = err_set(e, ERR_ARG, "--forward %s: that is this collector itself", o->forward);
    if (rc)
        span_collect_stop(c);
    else
        *out = c;
    return rc;
}

const char *span_collect_address(const struct span_collector *c, enum span_door door)
{
    if (door == SPAN_DOOR_GRPC)
        return c->grpc ? grpc_server_address(c->grpc) : NULL;
    return c->doors[door] ? http_server_address(c->doors[door]) : NULL;
}

void span_collect_stop(struct span_collector *c)
{
    for (size_t i = 0; i < SPAN_DOORS; i++)
        http_server_stop(c->doors[i]);
    grpc_server_stop(c->grpc);
    behind_stop(c);
    forward_stop(c);
    log_close(c->log);
    for (size_t i = 0; i < c->idle.n; i++)
        span_store_close(c->idle.v[i]);
    vec_free(&c->idle);
    pthread_cond_destroy(&c->given);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
