/* SPDX-License-Identifier: MIT */
/* A span as OTLP JSON. */
#include "script/span.h"

#include "base/json.h"

void script_span_fini(struct script_span *s)
{
    for (size_t i = 0; i < s->events.n; i++)
        free(s->events.v[i].attributes.list.v);
    free(s->events.v);
    free(s->attributes.list.v);
    *s = (struct script_span){0};
}

void script_add_text(struct script_attributes *a, const char *key, const char *text)
{
    if (a->list.n < SCRIPT_MOST_ATTRIBUTES && *key)
        vec_push(&a->list, ((struct script_attribute){key, text, 0}));
}

void script_add_number(struct script_attributes *a, const char *key, int64_t number)
{
    if (a->list.n < SCRIPT_MOST_ATTRIBUTES)
        vec_push(&a->list, ((struct script_attribute){key, NULL, number}));
}

void script_set_text(struct script_attributes *a, const char *key, const char *text)
{
    for (size_t i = 0; i < a->list.n; i++)
        if (!strcmp(a->list.v[i].key, key)) {
            a->list.v[i] = (struct script_attribute){key, text, 0};
            return;
        }
    script_add_text(a, key, text);
}

static void write_cut(struct json *j, const char *s, size_t most)
{
    size_t n = strnlen(s, most);
    while (n == most && n > 0 && (s[n] & 0xc0) == 0x80) /* back to the begin of a character */
        n--;
    json_string_n(j, s, n);
}

/* 64-bit numbers are strings in OTLP JSON. */
static void write_number(struct json *j, int64_t number)
{
    struct text digits = {.fd = -1};
    text_i64(&digits, number);
    json_string_n(j, digits.v, digits.n);
    text_fini(&digits);
}

static void write_attributes(struct json *j, const struct script_attributes *a)
{
    JSON_KEY(j, "attributes");
    json_array(j);
    for (size_t i = 0; i < a->list.n; i++) {
        const struct script_attribute *v = &a->list.v[i];
        json_object(j);
        JSON_KEY(j, "key");
        write_cut(j, v->key, SCRIPT_NAME_BYTES);
        JSON_KEY(j, "value");
        json_object(j);
        if (v->text) {
            JSON_KEY(j, "stringValue");
            write_cut(j, v->text, SCRIPT_VALUE_BYTES);
        } else {
            JSON_KEY(j, "intValue");
            write_number(j, v->number);
        }
        json_end_object(j);
        json_end_object(j);
    }
    json_end_array(j);
}

static void write_events(struct json *j, const struct script_span *s)
{
    JSON_KEY(j, "events");
    json_array(j);
    for (size_t i = 0; i < s->events.n; i++) {
        const struct script_event *e = &s->events.v[i];
        json_object(j);
        JSON_KEY(j, "timeUnixNano");
        write_number(j, e->time_ns);
        JSON_KEY(j, "name");
        write_cut(j, e->name, SCRIPT_NAME_BYTES);
        write_attributes(j, &e->attributes);
        json_end_object(j);
    }
    json_end_array(j);
}

static void write_span(struct json *j, const struct script_span *s)
{
    json_object(j);
    json_kv_string(j, "traceId", s->context.trace_id);
    json_kv_string(j, "spanId", s->context.span_id);
    if (*s->parent_id)
        json_kv_string(j, "parentSpanId", s->parent_id);
    if (s->trace_state)
        json_kv_string(j, "traceState", s->trace_state);
    json_kv_i64(j, "flags", s->context.flags);
    JSON_KEY(j, "name");
    write_cut(j, s->name, SCRIPT_NAME_BYTES);
    json_kv_i64(j, "kind", s->kind);
    JSON_KEY(j, "startTimeUnixNano");
    write_number(j, s->start_ns);
    JSON_KEY(j, "endTimeUnixNano");
    write_number(j, s->end_ns);
    write_attributes(j, &s->attributes);
    if (s->events.n)
        write_events(j, s);
    JSON_KEY(j, "status");
    json_object(j);
    if (s->status)
        json_kv_i64(j, "code", s->status);
    if (s->message) {
        JSON_KEY(j, "message");
        write_cut(j, s->message, SCRIPT_VALUE_BYTES);
    }
    json_end_object(j);
    json_end_object(j);
}

void script_write_otlp(const struct script_span *s, const struct script_attributes *resource, struct text *out)
{
    struct json j = JSON_TO(out);
    json_object(&j);
    JSON_KEY(&j, "resourceSpans");
    json_array(&j);
    json_object(&j);
    JSON_KEY(&j, "resource");
    json_object(&j);
    write_attributes(&j, resource);
    json_end_object(&j);
    JSON_KEY(&j, "scopeSpans");
    json_array(&j);
    json_object(&j);
    JSON_KEY(&j, "scope");
    json_object(&j);
    json_kv_string(&j, "name", "weft-span");
    json_kv_string(&j, "version", WEFT_VERSION);
    json_end_object(&j);
    JSON_KEY(&j, "spans");
    json_array(&j);
    write_span(&j, s);
    json_end_array(&j);
    json_end_object(&j);
    json_end_array(&j);
    json_end_object(&j);
    json_end_array(&j);
    json_end_object(&j);
    text_putc(out, '\n');
}
