/* SPDX-License-Identifier: MIT */
/* Requests that hosts served, as bytes. */
#include <string.h>

#include "base/mem.h"
#include "base/wire.h"
#include "cluster/protocol.h"

void cluster_requests_asked_write(const struct path_requests_asked *q, struct text *out)
{
    wire_put_i(out, q->begin);
    wire_put_i(out, q->end);
    path_request_write(&q->hosts, out);
}

int cluster_requests_asked_read(
    struct arena *a, const void *bytes, size_t n, struct path_requests_asked *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    out->begin = wire_i(&w);
    out->end = wire_i(&w);
    if (w.damaged)
        return err_set(e, ERR_FORMAT, "a question for requests that makes no sense");
    return path_request_read(a, w.at, (size_t)(w.end - w.at), &out->hosts, e);
}

void cluster_requests_write_one(const struct cluster_request *r, struct text *out)
{
    wire_put_u(out, (uint64_t)r->host);
    wire_put_u(out, r->row);
    wire_put_i(out, r->begin);
    wire_put_u(out, (uint64_t)r->end - (uint64_t)r->begin);
    wire_put_u(out, r->by_interrupt);
    wire_put_string(out, r->name);
}

/* Names of threads are few: one that the one before has, too, is not kept again. */
static const char *take_name(struct wire_in *w, struct arena *a, const char *before)
{
    size_t n;
    const char *s = wire_string(w, &n);
    n = strnlen(s, n);
    return before && strlen(before) == n && !memcmp(before, s, n) ? before : arena_strndup(a, s, n);
}

int cluster_requests_read(
    struct arena *a, const void *bytes, size_t n, size_t n_hosts, struct cluster_requests *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    const char *name = NULL;
    size_t before = out->n;
    while (w.at < w.end && !w.damaged) {
        struct cluster_request r = {.host = (int32_t)wire_below(&w, n_hosts), .row = wire_u(&w)};
        r.begin = wire_i(&w);
        r.end = wire_sum(&w, r.begin, (int64_t)wire_below(&w, INT64_MAX));
        r.by_interrupt = wire_below(&w, 2);
        r.name = name = take_name(&w, a, name);
        if (!w.damaged)
            vec_push(out, r);
    }
    if (w.damaged)
        out->n = before;
    return w.damaged ? err_set(e, ERR_FORMAT, "an answer that makes no sense") : 0;
}
