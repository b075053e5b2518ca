/* SPDX-License-Identifier: MIT */
/* Older ways to receive spans: Jaeger's Thrift and Zipkin's JSON, over HTTP. Neither has partial success. */
#include <string.h>

#include "span/collect.h"

/* Answers 202, or an error with the message of the first refused span. */
static void answer(struct span_collector *c, struct http_request *q, span_reader *read)
{
    struct span_told told = {0};
    struct err e = {0};
    struct text none = {.fd = -1};
    int rc = collect_take(c, q, read, &told, &e);
    if (rc)
        collect_reply_plain(q, collect_status(rc), e.text);
    else if (told.refused && !told.taken)
        collect_reply_plain(q, 400, told.why);
    else
        http_reply(q, 202, NULL, &none);
}

/* Returns false, with an answer sent, if it is not a POST to that path. */
static bool is_post(struct http_request *q, const char *path)
{
    if (strcmp(q->path, path) != 0) {
        collect_reply_plain(q, 404, "Spans come to another path");
        return false;
    }
    if (!strcmp(q->method, "POST"))
        return true;
    http_header(q, "Allow", "POST");
    collect_reply_plain(q, 405, "Spans come by POST");
    return false;
}

void collect_jaeger(void *arg, struct http_request *q)
{
    if (!is_post(q, "/api/traces"))
        return;
    if (collect_is_type(q->content_type, "application/x-thrift") ||
        collect_is_type(q->content_type, "application/vnd.apache.thrift.binary"))
        answer(arg, q, span_read_thrift);
    else
        collect_reply_plain(q, 400, "Content-Type: application/x-thrift or application/vnd.apache.thrift.binary");
}

void collect_zipkin(void *arg, struct http_request *q)
{
    if (!is_post(q, "/api/v2/spans"))
        return;
    if (collect_is_type(q->content_type, "application/json") || !*q->content_type)
        answer(arg, q, span_read_zipkin);
    else
        collect_reply_plain(q, 415, "Content-Type: application/json");
}
