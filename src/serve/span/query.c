/* SPDX-License-Identifier: MIT */
/* Queries of a collector's users: finds and loads traces. */
#include "span/query.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "span/jaeger_filter.h"

/* Limits of connections to the database, whose server has its own limit for all clients. */
enum { PARTIAL = 206 }; /* HTTP status 206, as the code of missing parts */
enum { MOST_IDLE = 8, MOST_CONNECTIONS = 16, LOOK_EVERY = 1024 };

bool query_refuse(struct query *w, int status, const char *fmt, ...)
{
    va_list ap;
    w->status = status;
    va_start(ap, fmt);
    vsnprintf(w->e.text, sizeof w->e.text, fmt, ap);
    va_end(ap);
    return false;
}

static bool failed(struct query *w)
{
    w->status = w->e.code == ERR_BUSY ? 503 : 500;
    return false;
}

bool query_trace_id(const char *s, uint8_t *id)
{
    char padded[2 * SPAN_TRACE_BYTES];
    size_t n = strlen(s);
    if (!n || n > 2 * SPAN_TRACE_BYTES)
        return false;
    memset(padded, '0', sizeof padded);
    memcpy(padded + sizeof padded - n, s, n);
    return span_read_hex(padded, sizeof padded, id, SPAN_TRACE_BYTES);
}

void query_lack(struct query *w, int code, const char *trace_id, const char *what)
{
    vec_push(&w->lacks,
        ((struct query_lack){
            code, arena_strdup(&w->of_lacks, what), trace_id ? arena_strdup(&w->of_lacks, trace_id) : NULL}));
}

void query_note_limit(struct query *w, uint64_t asked, const struct query_traces *found)
{
    if (asked > QUERY_MOST_TRACES && found->n == QUERY_MOST_TRACES)
        query_lack(w, PARTIAL, NULL, "an answer has at most 20000 traces, the newest: ask for less time at once");
}

void query_note_cut(struct query *w, size_t written, const struct query_traces *found)
{
    char why[200];
    snprintf(why, sizeof why,
        "only the first %zu of %zu traces that were found: an answer has at most %d spans; ask for fewer traces, or "
        "for less time, at once",
        written, found->n, QUERY_MOST_SPANS);
    query_lack(w, PARTIAL, NULL, why);
}

bool query_load(struct query *w, const uint8_t *trace_id, struct query_loaded *t)
{
    struct span_query q = {.trace_id = trace_id, .limit = QUERY_MOST_SPANS + 1};
    const struct span *s = NULL;
    int rc = span_select(w->store, &q, &t->cursor, &w->e);
    while (!rc && !(rc = span_next(t->cursor, &w->arena, &s, &w->e)) && s && t->spans.n < QUERY_MOST_SPANS) {
        vec_push(&t->spans, s);
        if (t->spans.n % LOOK_EVERY == 0 && http_gone(w->q))
            break;
    }
    if (rc)
        return failed(w);
    if (s)
        t->warning = "the trace has more spans than these, its first 200000";
    t->missing = !t->spans.n;
    return t->spans.n ? true
        : w->late     ? query_refuse(w, 503, "not found, but acknowledged spans wait for the database: try again soon")
                      : query_refuse(w, 404, "trace not found");
}

static bool wants_none(const void *which, const char *key, size_t n)
{
    (void)which;
    (void)key;
    (void)n;
    return false;
}

bool query_summarize(struct query *w, const uint8_t *trace_id, struct jaeger_summary *out)
{
    const struct span_query q = {.trace_id = trace_id, .any_order = true};
    struct span_cursor *c = NULL;
    struct arena arena = {0};
    const struct span *s = NULL;
    size_t n = 0;
    int rc = span_select(w->store, &q, &c, &w->e);
    while (!rc && !(rc = span_next_brief(c, &arena, wants_none, NULL, &s, &w->e)) && s) {
        jaeger_summary_add(out, s);
        if (++n % LOOK_EVERY)
            continue;
        arena_fini(&arena);
        if (http_gone(w->q))
            break;
    }
    arena_fini(&arena);
    span_cursor_close(c);
    return rc ? failed(w) : n ? true : query_refuse(w, 404, "trace not found");
}

void query_unload(struct query *w, struct query_loaded *t)
{
    span_cursor_close(t->cursor);
    vec_free(&t->spans);
    arena_fini(&w->arena);
}

bool query_find(struct query *w, const struct jaeger_search *search, struct query_traces *out)
{
    struct span_query q = {.service = search->service,
        .name = search->name,
        .by_time = true,
        .begin_ns = search->begin_ns,
        .end_ns = search->end_ns,
        .least_ns = search->least_ns,
        .most_ns = search->most_ns == INT64_MAX ? 0 : search->most_ns,
        .newest_first = true};
    struct filter_wanted wanted = {0};
    struct span_cursor *c;
    struct map seen = {0};
    const struct span *s;
    for (size_t i = 0; i < search->tags.n; i++) {
        const char *key = search->tags.v[i].key, *value = search->tags.v[i].value;
        size_t n = strlen(key);
        vec_push(&wanted, ((struct span_wanted){span_term(key, n, value, strlen(value)), SPAN_TERM_ANY(key, n)}));
    }
    if (search->filter)
        filter_want(search->filter, &wanted);
    q.wanted = wanted.v;
    q.n_wanted = wanted.n;
    int rc = span_select(w->store, &q, &c, &w->e);
    vec_free(&wanted);
    if (rc)
        return failed(w);
    const uint64_t most = search->limit < QUERY_MOST_TRACES ? search->limit : QUERY_MOST_TRACES;
    for (size_t looked = 0; out->n < most; looked++) {
        struct arena arena = {0};
        bool fresh;
        rc = span_next(c, &arena, &s, &w->e);
        if (!rc && s && jaeger_matches(search, s, &arena)) {
            map_put(&seen, map_hash(s->trace_id, sizeof s->trace_id), &fresh);
            if (fresh) {
                vec_reserve(out, 1);
                memcpy(out->v[out->n++].id, s->trace_id, sizeof s->trace_id);
            }
        }
        arena_fini(&arena);
        if (rc || !s || (looked % LOOK_EVERY == 0 && http_gone(w->q)))
            break;
    }
    span_cursor_close(c);
    map_fini(&seen);
    return rc ? failed(w) : true;
}

/* ---- single queries ---- */

static struct span_store *take_store(struct span_collector *c, struct err *e)
{
    struct span_store *s = NULL;
    pthread_mutex_lock(&c->lock);
    while (span_store_is_url(c->o.store) && c->taken >= MOST_CONNECTIONS)
        pthread_cond_wait(&c->given, &c->lock);
    c->taken++;
    if (c->idle.n)
        s = c->idle.v[--c->idle.n];
    pthread_mutex_unlock(&c->lock);
    if (!s)
        span_store_open(c->o.store, &s, e);
    return s;
}

static void give_store(struct span_collector *c, struct span_store *s)
{
    pthread_mutex_lock(&c->lock);
    bool keep = s && c->idle.n < MOST_IDLE;
    c->taken--;
    pthread_cond_signal(&c->given);
    if (keep)
        vec_push(&c->idle, s);
    pthread_mutex_unlock(&c->lock);
    if (!keep)
        span_store_close(s);
}

static void write_refusal(struct query *w, bool v3)
{
    struct json j = JSON_TO(&w->out);
    w->out.n = 0;
    json_object(&j);
    if (v3) {
        json_key(&j, "error");
        json_object(&j);
        json_kv_i64(&j, "httpCode", w->status);
        json_kv_string(&j, "message", w->e.text);
        json_end_object(&j);
    } else {
        json_key(&j, "data");
        json_null(&j);
        json_kv_i64(&j, "total", 0);
        json_kv_i64(&j, "limit", 0);
        json_kv_i64(&j, "offset", 0);
        json_key(&j, "errors");
        json_array(&j);
        json_object(&j);
        json_kv_i64(&j, "code", w->status);
        json_kv_string(&j, "msg", w->e.text);
        json_end_object(&j);
        json_end_array(&j);
    }
    json_end_object(&j);
}

void collect_query(void *arg, struct http_request *q)
{
    struct span_collector *c = arg;
    struct query w = {.q = q, .out = {.fd = -1}};
    bool v3 = !strncmp(q->path, "/api/v3/", 8), taken = false;
    if (!strcmp(q->path, COLLECT_HEALTH)) {
        collect_health(c, q);
        return;
    }
    q->making = &w.out;
    if (strcmp(q->method, "GET") != 0 && strcmp(q->method, "HEAD") != 0) {
        http_header(q, "Allow", "GET, HEAD");
        query_refuse(&w, 405, "questions come by GET");
    } else {
        w.late = !behind_wait(c);
        if (w.late)
            query_lack(&w, PARTIAL, NULL, "acknowledged spans that wait for the database are not in this answer");
        w.store = take_store(c, &w.e);
        if (!w.store)
            failed(&w);
        else if (v3)
            query_jaeger_v3(&w);
        else
            query_jaeger(&w);
        taken = true;
    }
    if (w.status == 503)
        http_header(q, "Retry-After", "1");
    if (w.status)
        write_refusal(&w, v3);
    http_reply(q, w.status ? w.status : 200, "application/json", &w.out);
    if (taken)
        give_store(c, w.store);
    arena_fini(&w.arena);
    arena_fini(&w.of_lacks);
    vec_free(&w.lacks);
}
