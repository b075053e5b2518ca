/* SPDX-License-Identifier: MIT */
/* OTLP as JSON. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "span/base64.h"
#include "span/json_text.h"
#include "span/read.h"
#include "span/read_saved.h"

/* State of reading, with the first error, for which the whole message is refused. */
struct reading {
    struct span_making *m;
    struct err *e;
    int rc;
};

static void wrong(struct reading *r, const char *key, const char *must)
{
    if (!r->rc)
        r->rc = err_set(r->e, ERR_FORMAT, "\"%s\" must be %s", key, must);
}

/* Returns the member by its lowerCamelCase or protobuf name: protobuf JSON parsers accept both. */
static json_t *get(const json_t *of, const char *key)
{
    char snake[64];
    size_t n = 0;
    bool differs = false;
    json_t *v = json_object_get(of, key);
    for (const char *c = key; !v && *c && n + 2 < sizeof snake; c++) {
        bool upper = *c >= 'A' && *c <= 'Z';
        differs |= upper;
        if (upper)
            snake[n++] = '_';
        snake[n++] = (char)(upper ? *c - 'A' + 'a' : *c);
    }
    snake[n] = '\0';
    return v || !differs ? v : json_object_get(of, snake);
}

/* Returns a member of a type; NULL if it is absent, null, or of another type. */
static json_t *member(struct reading *r, const json_t *of, const char *key, json_type type, const char *must)
{
    json_t *v = get(of, key);
    if (!v || json_is_null(v))
        return NULL;
    if (json_typeof(v) == type)
        return v;
    wrong(r, key, must);
    return NULL;
}

static json_t *list(struct reading *r, const json_t *of, const char *key)
{
    json_t *v = member(r, of, key, JSON_ARRAY, "an array");
    for (size_t i = 0; i < json_array_size(v); i++)
        if (!json_is_object(json_array_get(v, i))) {
            wrong(r, key, "an array of objects");
            return NULL;
        }
    return v;
}

static const char *text_of(struct reading *r, const json_t *of, const char *key)
{
    json_t *v = member(r, of, key, JSON_STRING, "a string");
    return v ? span_making_text(r->m, json_string_value(v), json_string_length(v), true, NULL) : "";
}

/* Reads a 64-bit integer from a number or a string. */
static bool integer_of(const json_t *v, bool sign, uint64_t *out)
{
    const char *s = json_string_value(v);
    char *end = NULL;
    if (json_is_integer(v)) {
        *out = (uint64_t)json_integer_value(v);
        return sign || json_integer_value(v) >= 0;
    }
    if (json_is_real(v)) {
        double d = json_real_value(v);
        *out = sign ? (uint64_t)(int64_t)d : (uint64_t)d;
        return d == floor(d) && (sign ? fabs(d) < 0x1p63 : d >= 0 && d < 0x1p64);
    }
    if (!s || !*s || strlen(s) != json_string_length(v) || strspn(s, "-0123456789") != strlen(s))
        return false;
    errno = 0;
    *out = sign ? (uint64_t)strtoll(s, &end, 10) : strtoull(s, &end, 10);
    return !errno && !*end && end > s && (sign || *s != '-');
}

static uint64_t number_of(struct reading *r, const json_t *of, const char *key, uint64_t most)
{
    json_t *v = get(of, key);
    uint64_t n = 0;
    if (v && !json_is_null(v) && (!integer_of(v, false, &n) || n > most)) {
        wrong(r, key, most == UINT64_MAX ? "ns since the epoch" : "an integer");
        return 0;
    }
    return n;
}

static uint32_t count_of(struct reading *r, const json_t *of, const char *key)
{
    return (uint32_t)number_of(r, of, key, UINT32_MAX);
}

/* Reads an id. Returns false if it is absent or invalid; `*told`: it is present. */
static bool id_of(struct reading *r, const json_t *of, const char *key, uint8_t *id, size_t bytes, bool *told)
{
    json_t *v = member(r, of, key, JSON_STRING, "a string of hexadecimal digits");
    *told = v && json_string_length(v);
    return v && span_read_hex(json_string_value(v), json_string_length(v), id, bytes);
}

/* ---- values ---- */

static struct span_attributes attributes_of(
    struct reading *, const json_t *of, const char *key, unsigned depth, uint32_t *dropped);

static void read_value(struct reading *, const json_t *, unsigned depth, struct span_value *);

static void read_array(struct reading *r, const json_t *in, unsigned depth, struct span_value *out)
{
    json_t *values = list(r, in, "values");
    size_t n = json_array_size(values);
    struct span_value *v = arena_new(span_making_arena(r->m), struct span_value, n);
    for (size_t i = 0; i < n; i++)
        read_value(r, json_array_get(values, i), depth + 1, &v[i]);
    out->array = (struct span_values){v, n};
}

static void read_real(struct reading *r, const json_t *v, struct span_value *out)
{
    const char *s = json_string_value(v);
    char *end = NULL;
    if (json_is_number(v))
        out->real = json_number_value(v);
    else if (s && *s)
        out->real = strtod(s, &end);
    if (!json_is_number(v) && (!end || *end))
        wrong(r, "doubleValue", "a number");
}

static void read_bytes(struct reading *r, const json_t *v, struct span_value *out)
{
    size_t n = json_string_length(v);
    uint8_t *bytes = arena_alloc(span_making_arena(r->m), n + 1);
    out->text.v = (const char *)bytes;
    if (!json_is_string(v) || !span_read_base64(json_string_value(v), n, bytes, &out->text.n))
        wrong(r, "bytesValue", "base64");
    bytes[out->text.n] = 0;
}

static void read_value(struct reading *r, const json_t *in, unsigned depth, struct span_value *out)
{
    static const struct {
        const char *key;
        enum span_type type;
    } kinds[] = {{"stringValue", SPAN_STRING}, {"boolValue", SPAN_BOOL}, {"intValue", SPAN_INT},
        {"doubleValue", SPAN_DOUBLE}, {"bytesValue", SPAN_BYTES}, {"arrayValue", SPAN_ARRAY},
        {"kvlistValue", SPAN_MAP}};
    json_t *v = NULL;
    uint32_t dropped = 0;
    uint64_t n = 0;
    *out = (struct span_value){.type = SPAN_EMPTY};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !v; i++)
        if ((v = get(in, kinds[i].key)) && !json_is_null(v))
            out->type = kinds[i].type;
        else
            v = NULL;
    if (depth > CODE_MOST_DEPTH && (out->type == SPAN_ARRAY || out->type == SPAN_MAP)) {
        r->m->mended = true;
        out->type = SPAN_EMPTY;
    }
    switch (out->type) {
    case SPAN_EMPTY: break;
    case SPAN_STRING:
        if (json_is_string(v))
            out->text.v = span_making_text(r->m, json_string_value(v), json_string_length(v), false, &out->text.n);
        else
            wrong(r, "stringValue", "a string");
        break;
    case SPAN_BOOL:
        if (!json_is_boolean(v))
            wrong(r, "boolValue", "true or false");
        out->truth = json_is_true(v);
        break;
    case SPAN_INT:
        if (!integer_of(v, true, &n))
            wrong(r, "intValue", "an integer of 64 bits");
        out->number = (int64_t)n;
        break;
    case SPAN_DOUBLE: read_real(r, v, out); break;
    case SPAN_BYTES: read_bytes(r, v, out); break;
    case SPAN_ARRAY: read_array(r, v, depth, out); break;
    case SPAN_MAP: out->map = attributes_of(r, v, "values", depth + 1, &dropped); break;
    }
}

static struct span_attributes attributes_of(
    struct reading *r, const json_t *of, const char *key, unsigned depth, uint32_t *dropped)
{
    json_t *in = list(r, of, key);
    size_t n = json_array_size(in);
    struct span_attribute *v = arena_new(span_making_arena(r->m), struct span_attribute, n);
    for (size_t i = 0; i < n; i++) {
        v[i].key = text_of(r, json_array_get(in, i), "key");
        read_value(r, member(r, json_array_get(in, i), "value", JSON_OBJECT, "an object"), depth, &v[i].value);
    }
    return span_making_attributes(r->m, v, n, dropped);
}

/* ---- spans ---- */

static void read_events(struct reading *r, const json_t *in, struct span *s)
{
    json_t *events = list(r, in, "events");
    size_t n = json_array_size(events);
    s->n_events = n < CODE_MOST_ITEMS ? n : CODE_MOST_ITEMS;
    s->dropped_events = count_of(r, in, "droppedEventsCount") + (uint32_t)(n - s->n_events);
    struct span_event *v = arena_new(&r->m->of_span, struct span_event, s->n_events);
    s->events = v;
    for (size_t i = 0; i < s->n_events; i++) {
        json_t *event = json_array_get(events, i);
        v[i].time_ns = (int64_t)number_of(r, event, "timeUnixNano", INT64_MAX);
        v[i].name = text_of(r, event, "name");
        v[i].dropped_attributes = count_of(r, event, "droppedAttributesCount");
        v[i].attributes = attributes_of(r, event, "attributes", 1, &v[i].dropped_attributes);
    }
}

static void read_links(struct reading *r, const json_t *in, struct span *s)
{
    json_t *links = list(r, in, "links");
    struct span_link *v = arena_new(&r->m->of_span, struct span_link, json_array_size(links));
    s->links = v;
    s->dropped_links = count_of(r, in, "droppedLinksCount");
    for (size_t i = 0; i < json_array_size(links); i++) {
        json_t *link = json_array_get(links, i);
        struct span_link *to = &v[s->n_links];
        bool told;
        if (s->n_links == CODE_MOST_ITEMS || !id_of(r, link, "traceId", to->trace_id, sizeof to->trace_id, &told) ||
            !id_of(r, link, "spanId", to->id, sizeof to->id, &told)) {
            s->dropped_links++;
            r->m->mended = true;
            continue;
        }
        to->state = text_of(r, link, "traceState");
        to->flags = count_of(r, link, "flags");
        to->dropped_attributes = count_of(r, link, "droppedAttributesCount");
        to->attributes = attributes_of(r, link, "attributes", 1, &to->dropped_attributes);
        s->n_links++;
    }
}

static void read_span(struct reading *r, const json_t *in)
{
    bool told, ids, parent;
    json_t *status = member(r, in, "status", JSON_OBJECT, "an object");
    struct span s = {.flags = count_of(r, in, "flags")};
    span_begin(r->m);
    ids = id_of(r, in, "traceId", s.trace_id, sizeof s.trace_id, &told);
    ids &= id_of(r, in, "spanId", s.id, sizeof s.id, &told);
    parent = id_of(r, in, "parentSpanId", s.parent_id, sizeof s.parent_id, &told) || !told;
    s.kind = (enum span_kind)number_of(r, in, "kind", INT32_MAX);
    s.name = text_of(r, in, "name");
    s.state = text_of(r, in, "traceState");
    s.status = (enum span_status)number_of(r, status, "code", INT32_MAX);
    s.status_message = text_of(r, status, "message");
    s.dropped_attributes = count_of(r, in, "droppedAttributesCount");
    s.attributes = attributes_of(r, in, "attributes", 1, &s.dropped_attributes);
    read_events(r, in, &s);
    read_links(r, in, &s);
    uint64_t begin = number_of(r, in, "startTimeUnixNano", UINT64_MAX),
             end = number_of(r, in, "endTimeUnixNano", UINT64_MAX);
    if (r->rc)
        return;
    if (!ids || !parent)
        span_refuse(r->m, "a trace id is 32 hexadecimal digits, the id of a span or parent 16");
    else
        span_put(r->m, &s, begin, end);
}

/* Returns the list under one of two names; `old` is that of older versions. If neither exists, reports what is there
 * instead, since spans may be lost in it. */
static json_t *parts(struct reading *r, const json_t *of, const char *what, const char *key, const char *old)
{
    static const char *const known[] = {
        "resource", "scope", "instrumentationLibrary", "instrumentation_library", "schemaUrl", "schema_url"};
    json_t *v = list(r, of, key), *older = old && !json_array_size(v) ? list(r, of, old) : NULL, *other;
    const char *name;
    if (!v && !older && !get(of, key))
        json_object_foreach ((json_t *)of, name, other) {
            size_t i = 0, n = sizeof known / sizeof *known;
            while (i < n && strcmp(name, known[i]) != 0)
                i++;
            if (i == n)
                span_unread(r->m, what, key, name);
        }
    return older ? older : v;
}

static void read_scope(struct reading *r, const struct span_origin *of, const json_t *in)
{
    struct span_origin o = *of;
    json_t *scope = member(r, in, "scope", JSON_OBJECT, "an object");
    json_t *spans = parts(r, in, "an item of \"scopeSpans\"", "spans", NULL);
    if (!scope)
        scope = member(r, in, "instrumentationLibrary", JSON_OBJECT, "an object");
    r->m->in_span = false;
    o.scope = text_of(r, scope, "name");
    o.scope_version = text_of(r, scope, "version");
    o.scope_schema = text_of(r, in, "schemaUrl");
    o.scope_dropped = count_of(r, scope, "droppedAttributesCount");
    o.scope_attributes = attributes_of(r, scope, "attributes", 1, &o.scope_dropped);
    span_put_origin(r->m, &o, NULL);
    for (size_t i = 0; !r->rc && i < json_array_size(spans); i++)
        read_span(r, json_array_get(spans, i));
}

static void read_resource(struct reading *r, const json_t *in)
{
    json_t *resource = member(r, in, "resource", JSON_OBJECT, "an object");
    json_t *scopes = parts(r, in, "an item of \"resourceSpans\"", "scopeSpans", "instrumentationLibrarySpans");
    span_begin_origin(r->m);
    struct span_origin o = {.resource_schema = text_of(r, in, "schemaUrl"),
        .resource_dropped = count_of(r, resource, "droppedAttributesCount")};
    o.resource = attributes_of(r, resource, "attributes", 1, &o.resource_dropped);
    for (size_t i = 0; !r->rc && i < json_array_size(scopes); i++)
        read_scope(r, &o, json_array_get(scopes, i));
}

bool span_is_otlp(const json_t *v)
{
    return get(v, "resourceSpans") != NULL;
}

int span_take_otlp(struct span_making *m, const json_t *root, struct err *e)
{
    struct reading r = {.m = m, .e = e};
    json_t *resources = parts(&r, root, "the message", "resourceSpans", NULL);
    for (size_t i = 0; !r.rc && i < json_array_size(resources); i++)
        read_resource(&r, json_array_get(resources, i));
    return r.rc;
}

int span_read_json(struct span_making *m, const void *data, size_t n, struct err *e)
{
    json_t *root = NULL;
    int rc = span_load_json(data, n, &root, e);
    if (rc)
        return rc;
    rc = json_is_object(root) ? span_take_otlp(m, root, e)
                              : err_set(e, ERR_FORMAT, "this is no JSON object with \"resourceSpans\"");
    json_decref(root);
    return rc;
}
