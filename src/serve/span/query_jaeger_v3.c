/* SPDX-License-Identifier: MIT */
/* Jaeger's newer interface. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "span/base64.h"
#include "span/jaeger_filter.h"
#include "span/query.h"

enum { USUAL_DEPTH = 100 };

static bool internal(struct query *w, int rc)
{
    if (rc)
        w->status = w->e.code == ERR_BUSY ? 503 : 500;
    return rc != 0;
}

static void answer_services(struct query *w)
{
    struct database_names names = {0};
    struct json j = JSON_TO(&w->out);
    if (!internal(w, database_services(w->store, &w->arena, &names, &w->e))) {
        json_object(&j);
        json_key(&j, "services");
        json_array(&j);
        for (size_t i = 0; i < names.n; i++)
            json_string(&j, names.v[i]);
        json_end_array(&j);
        json_end_object(&j);
    }
    free(names.v);
}

/* Returns a parameter by either spelling. */
static const char *parameter(const struct query *w, const char *camel, const char *snake)
{
    const char *v = http_query(w->q, camel);
    v = v && *v ? v : http_query(w->q, snake);
    return v && *v ? v : NULL;
}

static void answer_operations(struct query *w)
{
    static const char *const names[] = {"", "internal", "server", "client", "producer", "consumer"};
    const char *service = http_query(w->q, "service"), *kind = parameter(w, "spanKind", "span_kind");
    struct database_operations all = {0};
    struct json j = JSON_TO(&w->out);
    if (!service || !*service) {
        query_refuse(w, 400, "service: whose operations?");
        return;
    }
    if (!internal(w, database_operations(w->store, service, &w->arena, &all, &w->e))) {
        json_object(&j);
        json_key(&j, "operations");
        json_array(&j);
        for (size_t i = 0; i < all.n; i++) {
            if (kind && strcmp(kind, names[all.v[i].kind]) != 0)
                continue;
            json_object(&j);
            json_kv_string(&j, "name", all.v[i].name);
            json_kv_string(&j, "spanKind", names[all.v[i].kind]);
            json_end_object(&j);
        }
        json_end_array(&j);
        json_end_object(&j);
    }
    free(all.v);
}

static void write_summaries(struct query *w, struct json *j, const struct query_traces *traces)
{
    for (size_t i = 0; i < traces->n && !w->status && !http_gone(w->q); i++) {
        struct jaeger_summary summary = {0};
        if (query_summarize(w, traces->v[i].id, &summary))
            jaeger_summary_write(j, &summary);
        else
            w->status = w->status == 404 && traces->n > 1 ? 0 : w->status;
        jaeger_summary_fini(&summary);
    }
}

/* Joins traces into one object; one "resourceSpans" each would make several. */
static void write_whole(struct query *w, struct json *j, const struct query_traces *traces)
{
    uint64_t spans = 0;
    size_t i = 0;
    for (; i < traces->n && !w->status && spans < QUERY_MOST_SPANS && !http_gone(w->q); i++) {
        struct query_loaded t = {0};
        if (query_load(w, traces->v[i].id, &t))
            jaeger_write_resource_spans(j, &t.spans, t.warning);
        else if (t.missing && traces->n > 1)
            w->status = 0; /* deleted meanwhile */
        if (t.warning)
            query_lack(w, 0, NULL, t.warning);
        spans += t.spans.n;
        query_unload(w, &t);
    }
    if (i < traces->n)
        query_note_cut(w, i, traces);
}

static void write_traces(struct query *w, const struct query_traces *traces, bool summaries)
{
    struct json j = JSON_TO(&w->out);
    json_object(&j);
    json_key(&j, summaries ? "summaries" : "result");
    if (!summaries) {
        json_object(&j);
        json_key(&j, "resourceSpans");
    }
    json_array(&j);
    (summaries ? write_summaries : write_whole)(w, &j, traces);
    json_end_array(&j);
    if (!summaries)
        json_end_object(&j);
    if (w->lacks.n) { /* unknown to some readers, which skip it */
        json_key(&j, "warnings");
        json_array(&j);
        for (size_t i = 0; i < w->lacks.n; i++)
            json_string(&j, w->lacks.v[i].what);
        json_end_array(&j);
    }
    json_end_object(&j);
}

static bool read_id(const char *s, uint8_t *id)
{
    uint8_t bytes[64];
    size_t n;
    if (query_trace_id(s, id))
        return true;
    if (strlen(s) > sizeof bytes || !span_read_base64(s, strlen(s), bytes, &n) || n != SPAN_TRACE_BYTES)
        return false;
    memcpy(id, bytes, SPAN_TRACE_BYTES);
    return true;
}

static void answer_trace(struct query *w, const char *text)
{
    struct query_trace t;
    struct query_traces one = {&t, 1, 1};
    if (read_id(text, t.id))
        write_traces(w, &one, false);
    else
        query_refuse(w, 400, "%s is no trace id: 32 hexadecimal digits", text);
}

/* Reads RFC 3339. An unescaped '+' arrives as a space. */
static bool read_time(struct query *w, const char *camel, const char *snake, int64_t *ns)
{
    const char *s = parameter(w, camel, snake);
    if (!s)
        return query_refuse(w, 400, "%s: give a time such as 2026-11-21T01:37:53Z", camel);
    char *copy = arena_strdup(&w->arena, s), *space = strchr(copy, ' ');
    if (space)
        *space = '+';
    return !time_parse(copy, 0, ns, &w->e) ||
        query_refuse(w, 400, "%s: give a time such as 2026-11-21T01:37:53Z", camel);
}

static bool read_duration(struct query *w, const char *camel, const char *snake, int64_t *ns)
{
    const char *s = parameter(w, camel, snake);
    return !s || jaeger_read_duration(s, ns) || query_refuse(w, 400, "%s: give a duration such as 1.5s", camel);
}

/* Reads the filter, which replaces all parameters but the time. */
static bool read_filter(struct query *w, struct jaeger_search *s)
{
    const char *filter = parameter(w, "query.filter", "query.filter");
    struct err e = {0};
    if (!filter)
        return true;
    if (s->service || s->name || s->tags.n || s->least_ns || s->most_ns != INT64_MAX)
        return query_refuse(w, 400, "query.filter says service, name, duration and attributes itself");
    if (filter_read(filter, &s->filter, &e))
        return query_refuse(w, 400, "query.filter: %s", e.text);
    s->service = filter_service(s->filter);
    s->name = filter_name(s->filter);
    return true;
}

static bool read_search(struct query *w, struct jaeger_search *s)
{
    const char *depth = parameter(w, "query.searchDepth", "query.search_depth"),
               *tags = parameter(w, "query.attributes", "query.attributes");
    char *end;
    s->service = parameter(w, "query.serviceName", "query.service_name");
    s->name = parameter(w, "query.operationName", "query.operation_name");
    s->limit = USUAL_DEPTH;
    s->most_ns = INT64_MAX;
    if (!read_time(w, "query.startTimeMin", "query.start_time_min", &s->begin_ns) ||
        !read_time(w, "query.startTimeMax", "query.start_time_max", &s->end_ns) ||
        !read_duration(w, "query.durationMin", "query.duration_min", &s->least_ns) ||
        !read_duration(w, "query.durationMax", "query.duration_max", &s->most_ns))
        return false;
    s->end_ns = time_after(s->end_ns);
    if (s->most_ns < s->least_ns)
        return query_refuse(w, 400, "query.durationMax is less than query.durationMin");
    depth = depth ? depth : parameter(w, "query.num_traces", "query.num_traces");
    if (depth) {
        unsigned long long n = strtoull(depth, &end, 10);
        if (*end || *depth == '-' || !n)
            return query_refuse(w, 400, "query.searchDepth: give a number of traces");
        s->limit = n;
    }
    if (tags && !jaeger_read_tags(tags, &w->arena, s))
        return query_refuse(w, 400, "query.attributes: give {\"KEY\":\"VALUE\",…}");
    return read_filter(w, s);
}

static void answer_search(struct query *w, bool summaries)
{
    struct jaeger_search search = {0};
    struct query_traces found = {0};
    if (read_search(w, &search) && query_find(w, &search, &found)) {
        query_note_limit(w, search.limit, &found);
        if (found.n || summaries)
            write_traces(w, &found, summaries);
        else
            query_refuse(w, 404, "no traces found");
    }
    free(found.v);
    jaeger_search_fini(&search);
}

static void write_names(struct json *j, const char *key, const char *const *names)
{
    json_key(j, key);
    json_array(j);
    for (; *names; names++)
        json_string(j, *names);
    json_end_array(j);
}

/* Answers which features clients can use. */
static void answer_capabilities(struct query *w)
{
    struct json j = JSON_TO(&w->out);
    json_object(&j);
    json_key(&j, "search");
    json_object(&j);
    json_kv_bool(&j, "withoutServiceName", true);
    json_kv_bool(&j, "sameSpanConjunction", true);
    json_key(&j, "filter");
    json_object(&j);
    write_names(&j, "levels", filter_levels);
    write_names(&j, "operators", filter_operators);
    json_end_object(&j);
    json_end_object(&j);
    json_end_object(&j);
}

void query_jaeger_v3(struct query *w)
{
    const char *path = w->q->path + strlen("/api/v3");
    if (!strcmp(path, "/services"))
        answer_services(w);
    else if (!strcmp(path, "/operations"))
        answer_operations(w);
    else if (!strcmp(path, "/traces"))
        answer_search(w, false);
    else if (!strcmp(path, "/trace-summaries"))
        answer_search(w, true);
    else if (!strcmp(path, "/capabilities"))
        answer_capabilities(w);
    else if (!strncmp(path, "/traces/", 8))
        answer_trace(w, path + 8);
    else
        query_refuse(w, 404, "%s: nothing is there; try /api/v3/services", w->q->path);
}
