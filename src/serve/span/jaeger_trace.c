/* SPDX-License-Identifier: MIT */
/* A trace for Jaeger's older interface. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "span/base64.h"
#include "span/jaeger.h"
#include "span/write.h"

static const char *const kinds[] = {"unspecified", "internal", "server", "client", "producer", "consumer"};
static const int64_t safe_integer = (INT64_C(1) << 53) - 1; /* largest integer that all JSON readers keep exact */

static void begin_tag(struct json *j, const char *key, const char *type)
{
    json_object(j);
    json_kv_string(j, "key", key);
    json_kv_string(j, "type", type);
    json_key(j, "value");
}

static void write_string_tag(struct json *j, const char *key, const char *value)
{
    begin_tag(j, key, "string");
    json_string(j, value);
    json_end_object(j);
}

/* Writes arrays and maps as strings of JSON. */
static void write_compound(struct json *j, const struct span_value *v)
{
    struct text t = {.fd = -1};
    struct json inner = JSON_TO(&t);
    span_write_plain(&inner, v);
    json_string_n(j, t.v, t.n);
    text_fini(&t);
}

static void write_tag(struct json *j, const char *key, const struct span_value *v)
{
    switch (v->type) {
    case SPAN_STRING:
        begin_tag(j, key, "string");
        json_string_n(j, v->text.v, v->text.n);
        break;
    case SPAN_BOOL:
        begin_tag(j, key, "bool");
        json_bool(j, v->truth);
        break;
    case SPAN_INT:
        begin_tag(j, key, "int64");
        if (v->number < -safe_integer || v->number > safe_integer) {
            json_before_value(j);
            text_printf(j->out, "\"%lld\"", (long long)v->number);
        } else {
            json_i64(j, v->number);
        }
        break;
    case SPAN_DOUBLE:
        begin_tag(j, key, "float64");
        span_write_plain(j, v);
        break;
    case SPAN_BYTES:
        begin_tag(j, key, "binary");
        span_write_plain(j, v);
        break;
    case SPAN_EMPTY:
        begin_tag(j, key, "string");
        json_string(j, "");
        break;
    default:
        begin_tag(j, key, "string");
        write_compound(j, v);
        break;
    }
    json_end_object(j);
}

static void write_list(struct json *j, const struct span_attributes *a, const char *but)
{
    for (size_t i = 0; i < a->n; i++)
        if (!but || strcmp(a->v[i].key, but) != 0)
            write_tag(j, a->v[i].key, &a->v[i].value);
}

/* Writes tags for fields that OTLP keeps apart from attributes. */
static void write_derived(struct json *j, const struct span *s)
{
    if (*s->origin->scope)
        write_string_tag(j, "otel.scope.name", s->origin->scope);
    if (*s->origin->scope_version)
        write_string_tag(j, "otel.scope.version", s->origin->scope_version);
    if (s->kind != SPAN_UNSPECIFIED)
        write_string_tag(j, "span.kind", kinds[s->kind]);
    if (s->status != SPAN_UNSET)
        write_string_tag(j, "otel.status_code", s->status == SPAN_OK ? "OK" : "ERROR");
    if (s->status == SPAN_ERROR) {
        begin_tag(j, "error", "bool");
        json_bool(j, true);
        json_end_object(j);
    }
    if (*s->status_message)
        write_string_tag(j, "otel.status_description", s->status_message);
    if (*s->state)
        write_string_tag(j, "w3c.tracestate", s->state);
}

static void write_hex(struct json *j, const char *key, const uint8_t *id, size_t bytes)
{
    json_key(j, key);
    json_before_value(j);
    text_putc(j->out, '"');
    span_write_hex(j->out, id, bytes);
    text_putc(j->out, '"');
}

static void write_reference(struct json *j, const char *type, const uint8_t *trace, const uint8_t *id)
{
    json_object(j);
    json_kv_string(j, "refType", type);
    write_hex(j, "traceID", trace, SPAN_TRACE_BYTES);
    write_hex(j, "spanID", id, SPAN_ID_BYTES);
    json_end_object(j);
}

static void write_references(struct json *j, const struct span *s)
{
    JSON_KEY(j, "references");
    json_array(j);
    if (!span_id_is_zero(s->parent_id, sizeof s->parent_id))
        write_reference(j, "CHILD_OF", s->trace_id, s->parent_id);
    for (size_t i = 0; i < s->n_links; i++)
        write_reference(j, "FOLLOWS_FROM", s->links[i].trace_id, s->links[i].id);
    json_end_array(j);
}

static void write_logs(struct json *j, const struct span *s)
{
    JSON_KEY(j, "logs");
    json_array(j);
    for (size_t i = 0; i < s->n_events; i++) {
        const struct span_event *event = &s->events[i];
        json_object(j);
        json_kv_i64(j, "timestamp", event->time_ns / 1000);
        JSON_KEY(j, "fields");
        json_array(j);
        if (*event->name && !span_find(&event->attributes, "event"))
            write_string_tag(j, "event", event->name);
        write_list(j, &event->attributes, NULL);
        json_end_array(j);
        json_end_object(j);
    }
    json_end_array(j);
}

static void write_span(struct json *j, const struct span *s, uint64_t process)
{
    json_object(j);
    write_hex(j, "traceID", s->trace_id, sizeof s->trace_id);
    write_hex(j, "spanID", s->id, sizeof s->id);
    if (s->flags & 0xff)
        json_kv_u64(j, "flags", s->flags & 0xff);
    json_kv_string(j, "operationName", s->name);
    write_references(j, s);
    json_kv_i64(j, "startTime", s->begin_ns / 1000);
    json_kv_i64(j, "duration", (s->end_ns - s->begin_ns) / 1000);
    JSON_KEY(j, "tags");
    json_array(j);
    write_list(j, &s->attributes, NULL);
    write_derived(j, s);
    json_end_array(j);
    write_logs(j, s);
    JSON_KEY(j, "processID");
    json_before_value(j);
    text_printf(j->out, "\"p%llu\"", (unsigned long long)process);
    JSON_KEY(j, "warnings");
    json_null(j);
    json_end_object(j);
}

/* ---- processes ---- */

struct processes {
    struct map of_origin, of_text; /* address, or hash of the text → number + 1 */
    VEC(char *) texts;
};

static char *process_text(const struct span_origin *o, size_t *n)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    json_object(&j);
    json_kv_string(&j, "serviceName", o->service);
    json_key(&j, "tags");
    json_array(&j);
    write_list(&j, &o->resource, "service.name");
    json_end_array(&j);
    json_end_object(&j);
    *n = t.n;
    return text_take(&t);
}

/* Returns the process of an origin: libraries of one process share it. */
static uint64_t process_of(struct processes *p, const struct span_origin *o)
{
    size_t n;
    uint64_t *number = map_put(&p->of_origin, (uint64_t)(uintptr_t)o, NULL);
    if (*number)
        return *number;
    char *text = process_text(o, &n);
    uint64_t *same = map_put(&p->of_text, map_hash(text, n), NULL);
    if (*same) {
        free(text);
    } else {
        vec_push(&p->texts, text);
        *same = p->texts.n;
    }
    return *number = *same;
}

void jaeger_write_trace(struct json *j, const struct span_list *spans, const char *warning)
{
    struct processes p = {0};
    json_object(j);
    write_hex(j, "traceID", spans->v[0]->trace_id, SPAN_TRACE_BYTES);
    JSON_KEY(j, "spans");
    json_array(j);
    for (size_t i = 0; i < spans->n; i++)
        write_span(j, spans->v[i], process_of(&p, spans->v[i]->origin));
    json_end_array(j);
    JSON_KEY(j, "processes");
    json_object(j);
    for (size_t i = 0; i < p.texts.n; i++) {
        char key[32];
        snprintf(key, sizeof key, "p%zu", i + 1);
        json_key(j, key);
        json_raw(j, p.texts.v[i], strlen(p.texts.v[i]));
        free(p.texts.v[i]);
    }
    json_end_object(j);
    JSON_KEY(j, "warnings");
    if (warning) {
        json_array(j);
        json_string(j, warning);
        json_end_array(j);
    } else {
        json_null(j);
    }
    json_end_object(j);
    vec_free(&p.texts);
    map_fini(&p.of_origin);
    map_fini(&p.of_text);
}
