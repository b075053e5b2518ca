/* SPDX-License-Identifier: MIT */
/* Jaeger's older interface, for its older UI, Grafana and scripts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "span/query.h"

static const int64_t lookback_ns = 2 * 24 * 3600 * NS_PER_S; /* default without a start */
enum { USUAL_TRACES = 100 };

static void begin_data(struct query *w, struct json *j)
{
    *j = JSON_TO(&w->out);
    json_object(j);
    json_key(j, "data");
}

static void end_data(struct query *w, struct json *j, uint64_t total)
{
    json_kv_u64(j, "total", total);
    json_kv_i64(j, "limit", 0);
    json_kv_i64(j, "offset", 0);
    json_key(j, "errors");
    if (w->lacks.n)
        json_array(j);
    else
        json_null(j);
    for (size_t i = 0; i < w->lacks.n; i++) {
        const struct query_lack *l = &w->lacks.v[i];
        json_object(j);
        json_kv_i64(j, "code", l->code);
        json_kv_string(j, "msg", l->what);
        if (l->trace_id)
            json_kv_string(j, "traceID", l->trace_id);
        json_end_object(j);
    }
    if (w->lacks.n)
        json_end_array(j);
    json_end_object(j);
}

static bool internal(struct query *w, int rc)
{
    if (rc)
        w->status = w->e.code == ERR_BUSY ? 503 : 500;
    return rc != 0;
}

static void answer_services(struct query *w)
{
    struct database_names names = {0};
    struct json j;
    if (!internal(w, database_services(w->store, &w->arena, &names, &w->e))) {
        begin_data(w, &j);
        json_array(&j);
        for (size_t i = 0; i < names.n; i++)
            json_string(&j, names.v[i]);
        json_end_array(&j);
        end_data(w, &j, names.n);
    }
    free(names.v);
}

static const char *kind_name(enum span_kind k)
{
    static const char *const names[] = {"", "internal", "server", "client", "producer", "consumer"};
    return names[k];
}

/* Answers operations. kinds: names with each of their kinds, instead of names alone. */
static void answer_operations(struct query *w, const char *service, bool kinds)
{
    struct database_operations all = {0};
    const char *kind = http_query(w->q, "spanKind");
    struct json j;
    uint64_t n = 0;
    if (!internal(w, database_operations(w->store, service, &w->arena, &all, &w->e))) {
        begin_data(w, &j);
        json_array(&j);
        for (size_t i = 0; i < all.n; i++) {
            const struct database_operation *o = &all.v[i];
            if (kind && *kind && strcmp(kind, kind_name(o->kind)) != 0)
                continue;
            if (!kinds && i && !strcmp(all.v[i - 1].name, o->name))
                continue;
            n++;
            if (!kinds) {
                json_string(&j, o->name);
                continue;
            }
            json_object(&j);
            json_kv_string(&j, "name", o->name);
            json_kv_string(&j, "spanKind", kind_name(o->kind));
            json_end_object(&j);
        }
        json_end_array(&j);
        end_data(w, &j, n);
    }
    free(all.v);
}

/* Notes a trace as missing; the answer still has the others. */
static void lack_trace(struct query *w, const uint8_t *id)
{
    struct text hex = {.fd = -1};
    span_write_hex(&hex, id, SPAN_TRACE_BYTES);
    query_lack(w, w->status, text_cstr(&hex), w->e.text);
    text_fini(&hex);
    w->status = 0;
}

static void answer_traces(struct query *w, const struct query_traces *traces)
{
    struct json j;
    uint64_t spans = 0;
    size_t i = 0;
    begin_data(w, &j);
    json_array(&j);
    for (; i < traces->n && !w->status && spans < QUERY_MOST_SPANS && !http_gone(w->q); i++) {
        struct query_loaded t = {0};
        if (query_load(w, traces->v[i].id, &t)) {
            jaeger_write_trace(&j, &t.spans, t.warning);
        } else if (t.missing && traces->n > 1) {
            lack_trace(w, traces->v[i].id); /* deleted meanwhile, or one of several ids requested */
        }
        spans += t.spans.n;
        query_unload(w, &t);
    }
    if (i < traces->n)
        query_note_cut(w, i, traces);
    json_end_array(&j);
    end_data(w, &j, traces->n);
}

/* ---- searches ---- */

static bool read_integer(const char *s, int64_t least, int64_t most, int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(s, &end, 10);
    return !errno && end > s && !*end && *out >= least && *out <= most;
}

/* Reads microseconds: *ns is the begin of the microsecond; with `behind`, the ns after it. */
static bool read_us(struct query *w, const char *name, bool behind, int64_t *ns)
{
    const char *s = http_query(w->q, name);
    int64_t us;
    if (!s || !*s)
        return true;
    if (!read_integer(s, 0, INT64_MAX / 1000 - 1, &us))
        return query_refuse(w, 400, "%s: give microseconds since the epoch", name);
    *ns = (us + behind) * 1000;
    return true;
}

static bool read_duration(struct query *w, const char *name, int64_t *ns)
{
    const char *s = http_query(w->q, name);
    return !s || !*s || jaeger_read_duration(s, ns) ||
        query_refuse(w, 400, "%s: give a duration such as 1.5s, 200ms or 1h30m", name);
}

struct pairs {
    struct query *w;
    struct jaeger_search *to;
};

/* Reads "key:value". */
static void take_pair(void *arg, const char *value)
{
    struct pairs *p = arg;
    const char *colon = strchr(value, ':');
    if (!colon || colon == value) {
        query_refuse(p->w, 400, "tag: give KEY:VALUE");
        return;
    }
    const char *key = arena_strndup(&p->w->arena, value, (size_t)(colon - value));
    vec_push(&p->to->tags, ((struct jaeger_tag){key, arena_strdup(&p->w->arena, colon + 1)}));
}

static void take_tags(void *arg, const char *value)
{
    struct pairs *p = arg;
    if (*value && !jaeger_read_tags(value, &p->w->arena, p->to))
        query_refuse(p->w, 400, "tags: give {\"KEY\":\"VALUE\",…}");
}

static bool read_search(struct query *w, struct jaeger_search *s)
{
    const char *limit = http_query(w->q, "limit"), *name = http_query(w->q, "operation");
    int64_t now = time_now_ns(), n = USUAL_TRACES;
    struct pairs pairs = {w, s};
    s->service = http_query(w->q, "service");
    s->name = name && *name ? name : NULL;
    if (!s->service || !*s->service)
        return query_refuse(w, 400, "service: whose traces? (or give traceID)");
    if (limit && *limit && !read_integer(limit, 1, INT32_MAX, &n))
        return query_refuse(w, 400, "limit: give a number of traces");
    s->limit = (uint64_t)n;
    s->most_ns = INT64_MAX;
    s->end_ns = time_after(now);
    s->begin_ns = now - lookback_ns;
    if (!read_us(w, "end", true, &s->end_ns) || !read_us(w, "start", false, &s->begin_ns) ||
        !read_duration(w, "minDuration", &s->least_ns) || !read_duration(w, "maxDuration", &s->most_ns))
        return false;
    if (s->most_ns < s->least_ns)
        return query_refuse(w, 400, "maxDuration is less than minDuration");
    http_query_each(w->q, "tag", take_pair, &pairs);
    http_query_each(w->q, "tags", take_tags, &pairs);
    return !w->status;
}

struct ids {
    struct query *w;
    struct query_traces *to;
};

static void take_id(void *arg, const char *value)
{
    struct ids *ids = arg;
    struct query_trace t;
    if (!query_trace_id(value, t.id))
        query_refuse(ids->w, 400, "traceID: give up to 32 hexadecimal digits");
    else if (ids->to->n < QUERY_MOST_TRACES)
        vec_push(ids->to, t);
    else if (!ids->w->lacks.n)
        query_lack(ids->w, 206, NULL, "more than 20000 trace ids: the last ones are left out");
}

static void answer_search(struct query *w)
{
    struct jaeger_search search = {0};
    struct query_traces found = {0};
    if (http_query(w->q, "traceID")) {
        http_query_each(w->q, "traceID", take_id, &(struct ids){w, &found});
        if (!w->status)
            answer_traces(w, &found);
    } else if (read_search(w, &search) && query_find(w, &search, &found)) {
        query_note_limit(w, search.limit, &found);
        answer_traces(w, &found);
    }
    free(found.v);
    jaeger_search_fini(&search);
}

static void answer_trace(struct query *w, const char *text)
{
    struct query_trace t;
    struct query_traces one = {&t, 1, 1};
    if (query_trace_id(text, t.id))
        answer_traces(w, &one);
    else
        query_refuse(w, 400, "%s is no trace id: up to 32 hexadecimal digits", text);
}

static bool is_gone(void *request)
{
    return http_gone(request);
}

static void answer_dependencies(struct query *w)
{
    const char *end = http_query(w->q, "endTs"), *lookback = http_query(w->q, "lookback");
    const int64_t most_ms = INT64_MAX / 1000000;
    int64_t end_ms = time_now_ns() / 1000000, back_ms = 24 * 3600 * 1000;
    struct database_calls calls = {0};
    struct json j;
    if ((end && *end && !read_integer(end, 0, most_ms, &end_ms)) ||
        (lookback && *lookback && !read_integer(lookback, 0, most_ms, &back_ms))) {
        query_refuse(w, 400, "endTs, lookback: give milliseconds");
        return;
    }
    /* Range in whole seconds, the precision of counts, around these milliseconds. */
    const struct database_time time = {
        end_ms > back_ms ? (end_ms - back_ms) / 1000 : 0, end_ms / 1000 + (end_ms % 1000 > 0), is_gone, w->q};
    if (!internal(w, database_calls(w->store, &time, &w->arena, &calls, &w->e))) {
        begin_data(w, &j);
        json_array(&j);
        for (size_t i = 0; i < calls.n; i++) {
            json_object(&j);
            json_kv_string(&j, "parent", calls.v[i].parent);
            json_kv_string(&j, "child", calls.v[i].child);
            json_kv_u64(&j, "callCount", calls.v[i].count);
            json_end_object(&j);
        }
        json_end_array(&j);
        end_data(w, &j, calls.n);
    }
    free(calls.v);
}

/* Returns NAME of api/services/NAME/operations; it may hold slashes. */
static const char *service_of(struct query *w)
{
    static const char before[] = "/api/services/", after[] = "/operations";
    size_t n = strlen(w->q->path), least = sizeof before + sizeof after - 2;
    if (n <= least || strncmp(w->q->path, before, sizeof before - 1) != 0 ||
        strcmp(w->q->path + n - (sizeof after - 1), after) != 0)
        return NULL;
    return arena_strndup(&w->arena, w->q->path + sizeof before - 1, n - least);
}

void query_jaeger(struct query *w)
{
    const char *path = w->q->path, *service = service_of(w), *asked = http_query(w->q, "service");
    if (!strcmp(path, "/api/services"))
        answer_services(w);
    else if (service)
        answer_operations(w, service, false);
    else if (!strcmp(path, "/api/operations") && asked && *asked)
        answer_operations(w, asked, true);
    else if (!strcmp(path, "/api/operations"))
        query_refuse(w, 400, "service: whose operations?");
    else if (!strcmp(path, "/api/traces"))
        answer_search(w);
    else if (!strncmp(path, "/api/traces/", 12))
        answer_trace(w, path + 12);
    else if (!strcmp(path, "/api/dependencies"))
        answer_dependencies(w);
    else
        query_refuse(w, 404, "%s: nothing is there; try /api/services", path);
}
