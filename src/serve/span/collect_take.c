/* SPDX-License-Identifier: MIT */
/* Collector: request bodies, and answers that all doors give. */
#include "span/collect.h"

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
