/* SPDX-License-Identifier: MIT */
#include "span/write.h"

#include <math.h>

#include "span/base64.h"

static void write_base64(struct json *j, const char *v, size_t n)
{
    json_before_value(j);
    text_putc(j->out, '"');
    span_write_base64(j->out, v, n);
    text_putc(j->out, '"');
}

static void write_real(struct json *j, double v)
{
    if (isnan(v))
        json_string(j, "NaN");
    else if (isinf(v))
        json_string(j, v > 0 ? "Infinity" : "-Infinity");
    else
        json_double(j, v);
}

void span_write_plain(struct json *j, const struct span_value *v)
{
    switch (v->type) {
    case SPAN_EMPTY: json_null(j); break;
    case SPAN_STRING: json_string_n(j, v->text.v, v->text.n); break;
    case SPAN_BOOL: json_bool(j, v->truth); break;
    case SPAN_INT: json_i64(j, v->number); break;
    case SPAN_DOUBLE: write_real(j, v->real); break;
    case SPAN_BYTES: write_base64(j, v->text.v, v->text.n); break;
    case SPAN_ARRAY:
        json_array(j);
        for (size_t i = 0; i < v->array.n; i++)
            span_write_plain(j, &v->array.v[i]);
        json_end_array(j);
        break;
    case SPAN_MAP:
        json_object(j);
        for (size_t i = 0; i < v->map.n; i++) {
            json_key(j, v->map.v[i].key);
            span_write_plain(j, &v->map.v[i].value);
        }
        json_end_object(j);
        break;
    }
}

/* ---- OTLP ---- */

/* Writes a 64-bit number as a string, as OTLP JSON requires. */
static void write_i64(struct json *j, int64_t v)
{
    json_before_value(j);
    text_putc(j->out, '"');
    text_i64(j->out, v);
    text_putc(j->out, '"');
}

static void write_id(struct json *j, const char *key, const uint8_t *id, size_t bytes)
{
    json_key(j, key);
    json_before_value(j);
    text_putc(j->out, '"');
    span_write_hex(j->out, id, bytes);
    text_putc(j->out, '"');
}

static void write_some(struct json *j, const char *key, const char *v)
{
    if (*v)
        json_kv_string(j, key, v);
}

static void write_count(struct json *j, const char *key, uint32_t n)
{
    if (n)
        json_kv_u64(j, key, n);
}

static void write_list(struct json *j, const char *key, const struct span_attributes *);

static void write_value(struct json *j, const struct span_value *v)
{
    json_object(j);
    switch (v->type) {
    case SPAN_EMPTY: break;
    case SPAN_STRING:
        json_key(j, "stringValue");
        json_string_n(j, v->text.v, v->text.n);
        break;
    case SPAN_BOOL: json_kv_bool(j, "boolValue", v->truth); break;
    case SPAN_INT:
        json_key(j, "intValue");
        write_i64(j, v->number);
        break;
    case SPAN_DOUBLE:
        json_key(j, "doubleValue");
        write_real(j, v->real);
        break;
    case SPAN_BYTES:
        json_key(j, "bytesValue");
        write_base64(j, v->text.v, v->text.n);
        break;
    case SPAN_ARRAY:
        json_key(j, "arrayValue");
        json_object(j);
        json_key(j, "values");
        json_array(j);
        for (size_t i = 0; i < v->array.n; i++)
            write_value(j, &v->array.v[i]);
        json_end_array(j);
        json_end_object(j);
        break;
    case SPAN_MAP:
        json_key(j, "kvlistValue");
        json_object(j);
        write_list(j, "values", &v->map);
        json_end_object(j);
        break;
    }
    json_end_object(j);
}

static void write_list(struct json *j, const char *key, const struct span_attributes *a)
{
    json_key(j, key);
    json_array(j);
    for (size_t i = 0; i < a->n; i++) {
        json_object(j);
        json_kv_string(j, "key", a->v[i].key);
        json_key(j, "value");
        write_value(j, &a->v[i].value);
        json_end_object(j);
    }
    json_end_array(j);
}

static void write_attributes(struct json *j, const struct span_attributes *a, uint32_t dropped)
{
    if (a->n)
        write_list(j, "attributes", a);
    write_count(j, "droppedAttributesCount", dropped);
}

void span_write_otlp_resource(struct json *j, const struct span_origin *o)
{
    json_key(j, "resource");
    json_object(j);
    write_attributes(j, &o->resource, o->resource_dropped);
    json_end_object(j);
    write_some(j, "schemaUrl", o->resource_schema);
}

void span_write_otlp_scope(struct json *j, const struct span_origin *o)
{
    json_key(j, "scope");
    json_object(j);
    write_some(j, "name", o->scope);
    write_some(j, "version", o->scope_version);
    write_attributes(j, &o->scope_attributes, o->scope_dropped);
    json_end_object(j);
    write_some(j, "schemaUrl", o->scope_schema);
}

static void write_event(struct json *j, const struct span_event *e)
{
    json_object(j);
    json_key(j, "timeUnixNano");
    write_i64(j, e->time_ns);
    json_kv_string(j, "name", e->name);
    write_attributes(j, &e->attributes, e->dropped_attributes);
    json_end_object(j);
}

static void write_link(struct json *j, const struct span_link *l)
{
    json_object(j);
    write_id(j, "traceId", l->trace_id, sizeof l->trace_id);
    write_id(j, "spanId", l->id, sizeof l->id);
    write_some(j, "traceState", l->state);
    write_attributes(j, &l->attributes, l->dropped_attributes);
    write_count(j, "flags", l->flags);
    json_end_object(j);
}

static void write_status(struct json *j, const struct span *s)
{
    json_key(j, "status");
    json_object(j);
    write_count(j, "code", s->status);
    write_some(j, "message", s->status_message);
    json_end_object(j);
}

static void write_head(struct json *j, const struct span *s)
{
    write_id(j, "traceId", s->trace_id, sizeof s->trace_id);
    write_id(j, "spanId", s->id, sizeof s->id);
    write_some(j, "traceState", s->state);
    if (!span_id_is_zero(s->parent_id, sizeof s->parent_id))
        write_id(j, "parentSpanId", s->parent_id, sizeof s->parent_id);
    write_count(j, "flags", s->flags);
    json_kv_string(j, "name", s->name);
    write_count(j, "kind", s->kind);
    json_key(j, "startTimeUnixNano");
    write_i64(j, s->begin_ns);
    json_key(j, "endTimeUnixNano");
    write_i64(j, s->end_ns);
}

void span_write_otlp(struct json *j, const struct span *s)
{
    json_object(j);
    write_head(j, s);
    write_attributes(j, &s->attributes, s->dropped_attributes);
    if (s->n_events) {
        json_key(j, "events");
        json_array(j);
        for (size_t i = 0; i < s->n_events; i++)
            write_event(j, &s->events[i]);
        json_end_array(j);
    }
    write_count(j, "droppedEventsCount", s->dropped_events);
    if (s->n_links) {
        json_key(j, "links");
        json_array(j);
        for (size_t i = 0; i < s->n_links; i++)
            write_link(j, &s->links[i]);
        json_end_array(j);
    }
    write_count(j, "droppedLinksCount", s->dropped_links);
    write_status(j, s);
    json_end_object(j);
}
