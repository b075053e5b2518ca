/* SPDX-License-Identifier: MIT */
/* Detection of formats and envelopes of JSON that other programs saved. */
#include "span/read_saved.h"

#include <stdio.h>
#include <string.h>

#include "span/json_text.h"

static bool has_array(const json_t *v, const char *key)
{
    return json_is_array(json_object_get(v, key));
}

/* ---- refusals ---- */

static int refuse_chrome(struct err *e)
{
    return err_set(e, ERR_FORMAT,
        "this is a trace in Chrome's JSON format, which has no trace and span ids; save the spans as OTLP JSON, or as "
        "Jaeger's or Zipkin's JSON");
}

static bool is_chrome_event(const json_t *v)
{
    return json_is_string(json_object_get(v, "ph")) && json_object_get(v, "pid");
}

/* Refuses an error message of a server. */
static int refuse_error(const char *said, struct err *e)
{
    return err_set(e, ERR_FORMAT, "this is an answer without spans: %.200s", said ? said : "an error");
}

static int refuse_other(const json_t *v, struct err *e)
{
    static const struct {
        const char *key, *what;
    } others[] = {{"resourceLogs", "logs"}, {"resourceMetrics", "metrics"}, {"resourceProfiles", "profiles"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (json_object_get(v, others[i].key))
            return err_set(e, ERR_FORMAT, "these are OTLP %s; spans are expected (\"resourceSpans\")", others[i].what);
    return err_set(e, ERR_FORMAT,
        "no spans in a known format: OTLP JSON (\"resourceSpans\"), a trace saved from Jaeger (\"data\"), or an "
        "array of Zipkin spans is expected");
}

/* ---- formats ---- */

static bool is_jaeger_trace(const json_t *v)
{
    return json_is_string(json_object_get(v, "traceID")) && has_array(v, "spans");
}

static int take_errors(const json_t *errors, struct err *e)
{
    return refuse_error(json_string_value(json_object_get(json_array_get(errors, 0), "msg")), e);
}

/* Reads an answer of Jaeger's older interface. */
static int take_answer(struct span_making *m, const json_t *v, struct err *e)
{
    const json_t *data = json_object_get(v, "data"), *errors = json_object_get(v, "errors");
    int rc = 0;
    if (!json_array_size(data) && json_array_size(errors))
        return take_errors(errors, e);
    for (size_t i = 0; !rc && i < json_array_size(data); i++)
        rc = is_jaeger_trace(json_array_get(data, i)) ? span_take_jaeger(m, json_array_get(data, i), e)
                                                      : refuse_other(json_array_get(data, i), e);
    if (!rc && json_array_size(errors)) {
        const char *said = json_string_value(json_object_get(json_array_get(errors, 0), "msg"));
        snprintf(m->told.warning, sizeof m->told.warning, "%.200s", said ? said : "traces are missing");
    }
    return rc;
}

static int take_object(struct span_making *m, const json_t *v, struct err *e)
{
    const json_t *result = json_object_get(v, "result"), *error = json_object_get(v, "error");
    if (span_is_otlp(v))
        return span_take_otlp(m, v, e);
    if (span_is_otlp(result)) /* Jaeger's newer interface */
        return span_take_otlp(m, result, e);
    if (is_jaeger_trace(v))
        return span_take_jaeger(m, v, e);
    if (has_array(v, "data") || json_array_size(json_object_get(v, "errors")))
        return take_answer(m, v, e);
    if (has_array(v, "traceEvents"))
        return refuse_chrome(e);
    if (json_is_object(error))
        return refuse_error(json_string_value(json_object_get(error, "message")), e);
    return refuse_other(v, e);
}

static bool is_zipkin_span(const json_t *v)
{
    return json_is_string(json_object_get(v, "traceId")) && json_is_string(json_object_get(v, "id"));
}

/* Reads an array of spans, of traces, or of whole messages. */
static int take_array(struct span_making *m, const json_t *v, struct err *e)
{
    const json_t *first = json_array_get(v, 0);
    int rc = 0;
    if (is_zipkin_span(first))
        return span_take_zipkin(m, v, e);
    if (is_chrome_event(first))
        return refuse_chrome(e);
    for (size_t i = 0; !rc && i < json_array_size(v); i++) {
        const json_t *item = json_array_get(v, i);
        if (json_is_object(item))
            rc = take_object(m, item, e);
        else if (json_is_array(item) && (!json_array_size(item) || is_zipkin_span(json_array_get(item, 0))))
            rc = span_take_zipkin(m, item, e);
        else
            rc = refuse_other(item, e);
        if (rc)
            err_wrap(e, "item %zu", i + 1);
    }
    return rc;
}

int span_read_saved(struct span_making *m, const void *data, size_t n, struct err *e)
{
    json_t *root = NULL;
    int rc = span_load_json(data, n, &root, e);
    if (rc)
        return rc;
    rc = json_is_array(root) ? take_array(m, root, e) : take_object(m, root, e);
    json_decref(root);
    return rc;
}
