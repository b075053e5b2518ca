/* SPDX-License-Identifier: MIT */
/* Collector: start and stop. */
#include "span/collect.h"

#include <stdlib.h>

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
    return o.listen ? http_grpc_server_start(&o, collect_grpc, c, &c->grpc, e) : 0;
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
        return c->grpc ? http_grpc_server_address(c->grpc) : NULL;
    return c->doors[door] ? http_server_address(c->doors[door]) : NULL;
}

void span_collect_stop(struct span_collector *c)
{
    for (size_t i = 0; i < SPAN_DOORS; i++)
        http_server_stop(c->doors[i]);
    http_grpc_server_stop(c->grpc);
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
