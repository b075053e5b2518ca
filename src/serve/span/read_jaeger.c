/* SPDX-License-Identifier: MIT */
/* A trace of Jaeger's older interface, as JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "span/base64.h"
#include "span/read_saved.h"
#include "span/told.h"

static const char *text_of(struct span_making *m, const json_t *of, const char *key)
{
    const json_t *v = json_object_get(of, key);
    return json_is_string(v) ? span_making_text(m, json_string_value(v), json_string_length(v), true, NULL) : "";
}

/* Reads an id; leading zeros may be missing. */
static bool id_of(const json_t *of, const char *key, uint8_t *id, size_t bytes)
{
    char digits[2 * SPAN_TRACE_BYTES + 1];
    const json_t *v = json_object_get(of, key);
    size_t n = json_string_length(v), width = 2 * bytes;
    if (!json_is_string(v) || !n || n > width)
        return false;
    memset(digits, '0', width - n);
    memcpy(digits + width - n, json_string_value(v), n);
    return span_read_hex(digits, width, id, bytes);
}

/* Reads microseconds. Returns false if there is no such number. */
static bool us_of(const json_t *of, const char *key, uint64_t *us)
{
    const json_t *v = json_object_get(of, key);
    double real = json_is_number(v) ? floor(json_number_value(v)) : -1;
    if (real < 0 || real > 9.2e15)
        return false;
    *us = json_is_integer(v) ? (uint64_t)json_integer_value(v) : (uint64_t)real;
    return true;
}

/* ---- tags ---- */

static void read_text(struct span_making *m, const json_t *v, struct span_value *out)
{
    out->type = SPAN_STRING;
    out->text.v = span_making_text(m, json_string_value(v), json_string_length(v), false, &out->text.n);
}

/* Reads an integer; beyond 2^53 it is a text. Returns false if it is none. */
static bool read_integer(const json_t *v, struct span_value *out)
{
    const char *s = json_string_value(v);
    char *end = NULL;
    out->type = SPAN_INT;
    if (json_is_integer(v))
        out->number = json_integer_value(v);
    else if (s && *s)
        out->number = strtoll(s, &end, 10);
    return json_is_integer(v) || (end && !*end);
}

static bool read_bytes(struct span_making *m, const json_t *v, struct span_value *out)
{
    size_t n = json_string_length(v);
    uint8_t *bytes = arena_alloc(span_making_arena(m), n + 1);
    out->type = SPAN_BYTES;
    out->text.v = (const char *)bytes;
    if (!json_is_string(v) || !span_read_base64(json_string_value(v), n, bytes, &out->text.n))
        return false;
    bytes[out->text.n] = 0;
    return true;
}

/* Reads a value by the stated type if it fits, otherwise by its JSON type. */
static void read_value(struct span_making *m, const json_t *tag, struct span_value *out)
{
    const json_t *v = json_object_get(tag, "value");
    const char *type = json_string_value(json_object_get(tag, "type"));
    *out = (struct span_value){.type = SPAN_EMPTY};
    if (type && !strcmp(type, "int64") && read_integer(v, out))
        return;
    if (type && !strcmp(type, "binary") && read_bytes(m, v, out))
        return;
    *out = (struct span_value){.type = SPAN_EMPTY};
    if (json_is_string(v))
        read_text(m, v, out);
    else if (json_is_boolean(v))
        *out = (struct span_value){.type = SPAN_BOOL, .truth = json_is_true(v)};
    else if (json_is_integer(v) && !(type && !strcmp(type, "float64")))
        *out = (struct span_value){.type = SPAN_INT, .number = json_integer_value(v)};
    else if (json_is_number(v))
        *out = (struct span_value){.type = SPAN_DOUBLE, .real = json_number_value(v)};
}

/* Reads tags. `more`: number of spare places at the end. */
static struct span_attribute *read_tags(struct span_making *m, const json_t *tags, size_t more, size_t *n)
{
    size_t all = json_array_size(tags);
    struct span_attribute *v = arena_new(span_making_arena(m), struct span_attribute, all + more);
    *n = 0;
    for (size_t i = 0; i < all; i++) {
        const json_t *tag = json_array_get(tags, i);
        v[*n].key = text_of(m, tag, "key");
        read_value(m, tag, &v[*n].value);
        *n += *v[*n].key != '\0';
    }
    return v;
}

/* ---- processes ---- */

static void put_origin(struct span_making *m, const json_t *process)
{
    struct span_origin o = {.resource_schema = "", .scope = "", .scope_version = "", .scope_schema = ""};
    size_t n;
    span_begin_origin(m);
    struct span_attribute *tags = read_tags(m, json_object_get(process, "tags"), 1, &n);
    const char *service = text_of(m, process, "serviceName");
    if (*service)
        tags[n++] = span_string_attribute(m, "service.name", service);
    o.resource = span_making_attributes(m, tags, n, &o.resource_dropped);
    span_put_origin(m, &o, service);
}

/* Returns the process of a span: by reference, or from the span itself. */
static const json_t *process_of(const json_t *trace, const json_t *span)
{
    const json_t *own = json_object_get(span, "process");
    const char *id = json_string_value(json_object_get(span, "processID"));
    return json_is_object(own) ? own : id ? json_object_get(json_object_get(trace, "processes"), id) : NULL;
}

/* ---- spans ---- */

static void read_logs(struct span_making *m, const json_t *in, struct span *s)
{
    const json_t *logs = json_object_get(in, "logs");
    size_t all = json_array_size(logs), most = all < CODE_MOST_ITEMS ? all : CODE_MOST_ITEMS;
    struct span_event *v = arena_new(&m->of_span, struct span_event, most);
    s->events = v;
    s->dropped_events = (uint32_t)(all - most);
    for (s->n_events = 0; s->n_events < most; s->n_events++) {
        const json_t *log = json_array_get(logs, s->n_events);
        struct span_event *event = v + s->n_events;
        uint64_t us = 0;
        size_t n;
        us_of(log, "timestamp", &us);
        event->time_ns = (int64_t)us * 1000;
        struct span_attribute *fields = read_tags(m, json_object_get(log, "fields"), 0, &n);
        event->name = span_take_event_name(fields, &n);
        event->attributes = span_making_attributes(m, fields, n, &event->dropped_attributes);
    }
}

/* Reads references. The parent is the first span of this trace with CHILD_OF; otherwise the first with FOLLOWS_FROM.
 * The latter stays a link, since nothing waits for the span. */
static void read_references(struct span_making *m, const json_t *in, struct span *s)
{
    const json_t *references = json_object_get(in, "references");
    size_t all = json_array_size(references);
    struct span_link *links = arena_new(&m->of_span, struct span_link, all);
    const struct span_link *follows = NULL;
    id_of(in, "parentSpanID", s->parent_id, sizeof s->parent_id); /* used by older versions */
    for (size_t i = 0; i < all; i++) {
        const json_t *reference = json_array_get(references, i);
        const char *type = json_string_value(json_object_get(reference, "refType"));
        struct span_link to = {.state = ""};
        bool child = !type || strcmp(type, "FOLLOWS_FROM") != 0;
        if (!id_of(reference, "traceID", to.trace_id, sizeof to.trace_id) ||
            !id_of(reference, "spanID", to.id, sizeof to.id) || s->n_links == CODE_MOST_ITEMS) {
            s->dropped_links++;
            m->mended = true;
            continue;
        }
        bool same = !memcmp(to.trace_id, s->trace_id, sizeof s->trace_id);
        if (child && same && span_id_is_zero(s->parent_id, sizeof s->parent_id))
            memcpy(s->parent_id, to.id, sizeof s->parent_id);
        else if (!child || !same || memcmp(to.id, s->parent_id, sizeof s->parent_id) != 0) {
            follows = follows || child || !same ? follows : links + s->n_links;
            links[s->n_links++] = to;
        }
    }
    if (follows && span_id_is_zero(s->parent_id, sizeof s->parent_id))
        memcpy(s->parent_id, follows->id, sizeof s->parent_id);
    s->links = links;
}

static void read_span(struct span_making *m, const json_t *in)
{
    struct span s = {.status_message = "", .state = ""};
    uint64_t begin = 0, lasted = 0;
    size_t n;
    span_begin(m);
    if (!id_of(in, "traceID", s.trace_id, sizeof s.trace_id) || !id_of(in, "spanID", s.id, sizeof s.id)) {
        span_refuse(m, "a trace id is up to 32 hexadecimal digits, a span's up to 16");
        return;
    }
    if (!us_of(in, "startTime", &begin)) {
        span_refuse(m, "a span without a start time");
        return;
    }
    us_of(in, "duration", &lasted);
    if (json_is_integer(json_object_get(in, "flags")))
        s.flags = (uint32_t)json_integer_value(json_object_get(in, "flags")) & 0xff;
    s.name = text_of(m, in, "operationName");
    struct span_attribute *tags = read_tags(m, json_object_get(in, "tags"), 0, &n);
    span_tell_of_tags(m, tags, n, &s);
    read_logs(m, in, &s);
    read_references(m, in, &s);
    span_put(m, &s, begin * 1000, (begin + lasted) * 1000);
}

/* Reads Jaeger's warning about a trace, for example that it is incomplete. */
static void take_warning(struct span_making *m, const json_t *trace)
{
    const char *first = json_string_value(json_array_get(json_object_get(trace, "warnings"), 0));
    if (first && !*m->told.warning)
        snprintf(m->told.warning, sizeof m->told.warning, "%.255s", first);
}

int span_take_jaeger(struct span_making *m, const json_t *trace, struct err *e)
{
    const json_t *spans = json_object_get(trace, "spans"), *last = NULL;
    take_warning(m, trace);
    for (size_t i = 0; i < json_array_size(spans); i++) {
        const json_t *span = json_array_get(spans, i), *process = process_of(trace, span);
        if (!json_is_object(span))
            return err_set(e, ERR_FORMAT, "span %zu is no JSON object", i + 1);
        if (!i || process != last)
            put_origin(m, process);
        last = process;
        read_span(m, span);
    }
    return 0;
}
