/* SPDX-License-Identifier: MIT */
/* OTLP as protobuf. libprotobuf-c parses one message at a time, in the memory of the span in progress. */
#include <string.h>

#include "otlp.pb-c.h"
#include "span/read.h"

/* Limit for a parsed message: two bytes of it become a struct of a hundred. */
enum { MOST_HELD_BYTES = 256 << 20 };

static void *take(void *arena, size_t n)
{
    struct arena *a = arena;
    return a->total_bytes > MOST_HELD_BYTES ? NULL : arena_alloc(a, n);
}

static void leave(void *arena, void *p) {}

/* Allocates in the arena, which frees everything at once. */
static ProtobufCAllocator of_arena(struct arena *a)
{
    return (ProtobufCAllocator){.alloc = take, .free = leave, .allocator_data = a};
}

static int damaged(const struct arena *a, const char *what, struct err *e)
{
    if (a->total_bytes > MOST_HELD_BYTES)
        return err_set(
            e, ERR_LIMIT, "%s has more parts than fit into %d MiB: send less at once", what, MOST_HELD_BYTES >> 20);
    return err_set(e, ERR_FORMAT, "%s is no sound protobuf message of OTLP", what);
}

static const char *text_of(struct span_making *m, const ProtobufCBinaryData *b)
{
    return span_making_text(m, b->data, b->len, true, NULL);
}

static bool read_list(
    struct span_making *, Otlp__KeyValue **, size_t, unsigned depth, struct span_attributes *, uint32_t *dropped);

static bool read_value(struct span_making *m, const Otlp__AnyValue *, unsigned depth, struct span_value *);

static bool read_array(struct span_making *m, const ProtobufCBinaryData *b, unsigned depth, struct span_value *out)
{
    struct arena *a = span_making_arena(m);
    ProtobufCAllocator allocator = of_arena(a);
    Otlp__ArrayValue *list = otlp__array_value__unpack(&allocator, b->len, b->data);
    if (!list)
        return false;
    struct span_value *v = arena_new(a, struct span_value, list->n_values);
    for (size_t i = 0; i < list->n_values; i++)
        if (!read_value(m, list->values[i], depth + 1, &v[i]))
            return false;
    out->type = SPAN_ARRAY;
    out->array = (struct span_values){v, list->n_values};
    return true;
}

static bool read_map(struct span_making *m, const ProtobufCBinaryData *b, unsigned depth, struct span_value *out)
{
    uint32_t dropped = 0;
    ProtobufCAllocator allocator = of_arena(span_making_arena(m));
    Otlp__KeyValueList *list = otlp__key_value_list__unpack(&allocator, b->len, b->data);
    out->type = SPAN_MAP;
    return list && read_list(m, list->values, list->n_values, depth + 1, &out->map, &dropped);
}

static bool read_value(struct span_making *m, const Otlp__AnyValue *v, unsigned depth, struct span_value *out)
{
    *out = (struct span_value){.type = SPAN_EMPTY};
    switch (v ? v->value_case : OTLP__ANY_VALUE__VALUE__NOT_SET) {
    case OTLP__ANY_VALUE__VALUE_TEXT:
        out->type = SPAN_STRING;
        out->text.v = span_making_text(m, v->text.data, v->text.len, false, &out->text.n);
        return true;
    case OTLP__ANY_VALUE__VALUE_RAW:
        out->type = SPAN_BYTES;
        out->text.n = v->raw.len;
        out->text.v = v->raw.len ? (const char *)v->raw.data : "";
        return true;
    case OTLP__ANY_VALUE__VALUE_TRUTH:
        out->type = SPAN_BOOL;
        out->truth = v->truth;
        return true;
    case OTLP__ANY_VALUE__VALUE_NUMBER:
        out->type = SPAN_INT;
        out->number = v->number;
        return true;
    case OTLP__ANY_VALUE__VALUE_REAL:
        out->type = SPAN_DOUBLE;
        out->real = v->real;
        return true;
    case OTLP__ANY_VALUE__VALUE_ARRAY:
    case OTLP__ANY_VALUE__VALUE_MAP:
        if (depth > CODE_MOST_DEPTH) {
            m->mended = true;
            return true;
        }
        return v->value_case == OTLP__ANY_VALUE__VALUE_ARRAY ? read_array(m, &v->array, depth, out)
                                                             : read_map(m, &v->map, depth, out);
    default: return true;
    }
}

static bool read_list(struct span_making *m, Otlp__KeyValue **list, size_t n, unsigned depth,
    struct span_attributes *out, uint32_t *dropped)
{
    struct span_attribute *v = arena_new(span_making_arena(m), struct span_attribute, n);
    for (size_t i = 0; i < n; i++) {
        v[i].key = text_of(m, &list[i]->key);
        if (!read_value(m, list[i]->value, depth, &v[i].value))
            return false;
    }
    *out = span_making_attributes(m, v, n, dropped);
    return true;
}

static bool read_id(const ProtobufCBinaryData *b, uint8_t *id, size_t bytes)
{
    if (b->len == bytes)
        memcpy(id, b->data, bytes);
    return b->len == bytes;
}

static bool read_events(struct span_making *m, const Otlp__Span *in, struct span *s)
{
    s->n_events = in->n_events < CODE_MOST_ITEMS ? in->n_events : CODE_MOST_ITEMS;
    s->dropped_events = in->dropped_events + (uint32_t)(in->n_events - s->n_events);
    struct span_event *v = arena_new(&m->of_span, struct span_event, s->n_events);
    s->events = v;
    for (size_t i = 0; i < s->n_events; i++) {
        const Otlp__Event *event = in->events[i];
        v[i].time_ns = event->time > INT64_MAX ? INT64_MAX : (int64_t)event->time;
        v[i].name = text_of(m, &event->name);
        v[i].dropped_attributes = event->dropped;
        if (!read_list(m, event->attributes, event->n_attributes, 1, &v[i].attributes, &v[i].dropped_attributes))
            return false;
    }
    return true;
}

/* Reads links; drops those without a target. */
static bool read_links(struct span_making *m, const Otlp__Span *in, struct span *s)
{
    struct span_link *v = arena_new(&m->of_span, struct span_link, in->n_links);
    s->links = v;
    s->dropped_links = in->dropped_links;
    for (size_t i = 0; i < in->n_links; i++) {
        const Otlp__Link *link = in->links[i];
        struct span_link *to = &v[s->n_links];
        if (s->n_links == CODE_MOST_ITEMS || !read_id(&link->trace_id, to->trace_id, sizeof to->trace_id) ||
            !read_id(&link->span_id, to->id, sizeof to->id)) {
            s->dropped_links++;
            m->mended = true;
            continue;
        }
        to->state = text_of(m, &link->trace_state);
        to->flags = link->flags;
        to->dropped_attributes = link->dropped;
        if (!read_list(m, link->attributes, link->n_attributes, 1, &to->attributes, &to->dropped_attributes))
            return false;
        s->n_links++;
    }
    return true;
}

static int read_span(struct span_making *m, const ProtobufCBinaryData *b, struct err *e)
{
    span_begin(m);
    ProtobufCAllocator allocator = of_arena(&m->of_span);
    Otlp__Span *in = otlp__span__unpack(&allocator, b->len, b->data);
    if (!in)
        return damaged(&m->of_span, "a span", e);
    struct span s = {.flags = in->flags,
        .kind = (enum span_kind)(in->kind < 0 ? SPAN_CONSUMER + 1 : in->kind),
        .dropped_attributes = in->dropped_attributes};
    if (!read_id(&in->trace_id, s.trace_id, sizeof s.trace_id) || !read_id(&in->span_id, s.id, sizeof s.id)) {
        span_refuse(m, "a trace id is 16 bytes, a span id 8");
        return 0;
    }
    if (in->parent_span_id.len && !read_id(&in->parent_span_id, s.parent_id, sizeof s.parent_id)) {
        span_refuse(m, "the id of a parent is 8 bytes");
        return 0;
    }
    s.name = text_of(m, &in->name);
    s.state = text_of(m, &in->trace_state);
    s.status_message = in->status ? text_of(m, &in->status->message) : "";
    s.status = in->status ? (enum span_status)(in->status->code < 0 ? SPAN_ERROR + 1 : in->status->code) : SPAN_UNSET;
    if (!read_list(m, in->attributes, in->n_attributes, 1, &s.attributes, &s.dropped_attributes) ||
        !read_events(m, in, &s) || !read_links(m, in, &s))
        return damaged(&m->of_span, "a span", e);
    span_put(m, &s, in->begin, in->end);
    return 0;
}

static void note_unread(
    struct span_making *m, const ProtobufCMessage *in, size_t parts, const char *what, const char *key)
{
    if (!parts && in->n_unknown_fields)
        span_unread(m, what, key, NULL);
}

static int read_scope(struct span_making *m, const struct span_origin *of, const ProtobufCBinaryData *b, struct err *e)
{
    ProtobufCAllocator allocator = of_arena(&m->of_origin);
    struct span_origin o = *of;
    m->in_span = false;
    Otlp__ScopeSpans *in = otlp__scope_spans__unpack(&allocator, b->len, b->data);
    if (!in)
        return damaged(&m->of_origin, "a ScopeSpans", e);
    o.scope = in->scope ? text_of(m, &in->scope->name) : "";
    o.scope_version = in->scope ? text_of(m, &in->scope->version) : "";
    o.scope_schema = text_of(m, &in->schema_url);
    o.scope_dropped = in->scope ? in->scope->dropped : 0;
    if (in->scope &&
        !read_list(m, in->scope->attributes, in->scope->n_attributes, 1, &o.scope_attributes, &o.scope_dropped))
        return damaged(&m->of_origin, "a scope", e);
    span_put_origin(m, &o, NULL);
    note_unread(m, &in->base, in->n_spans, "a ScopeSpans", "spans");
    int rc = 0;
    for (size_t i = 0; !rc && i < in->n_spans; i++)
        rc = read_span(m, &in->spans[i], e);
    return rc;
}

static int read_resource(struct span_making *m, const ProtobufCBinaryData *b, struct err *e)
{
    span_begin_origin(m);
    ProtobufCAllocator allocator = of_arena(&m->of_origin);
    Otlp__ResourceSpans *in = otlp__resource_spans__unpack(&allocator, b->len, b->data);
    if (!in)
        return damaged(&m->of_origin, "a ResourceSpans", e);
    struct span_origin o = {.resource_schema = text_of(m, &in->schema_url)};
    if (in->resource) {
        o.resource_dropped = in->resource->dropped;
        if (!read_list(m, in->resource->attributes, in->resource->n_attributes, 1, &o.resource, &o.resource_dropped))
            return damaged(&m->of_origin, "a resource", e);
    }
    int rc = 0;
    note_unread(m, &in->base, in->n_scope_spans + in->n_library_spans, "a ResourceSpans", "scope_spans");
    for (size_t i = 0; !rc && i < in->n_scope_spans; i++)
        rc = read_scope(m, &o, &in->scope_spans[i], e);
    for (size_t i = 0; !rc && i < in->n_library_spans; i++)
        rc = read_scope(m, &o, &in->library_spans[i], e);
    return rc;
}

int span_read_protobuf(struct span_making *m, const void *data, size_t n, struct err *e)
{
    struct arena arena = {0};
    ProtobufCAllocator allocator = of_arena(&arena);
    Otlp__Request *in = otlp__request__unpack(&allocator, n, data);
    int rc = in ? 0 : damaged(&arena, "the body", e);
    if (in)
        note_unread(m, &in->base, in->n_resource_spans, "the message", "resource_spans");
    for (size_t i = 0; in && !rc && i < in->n_resource_spans; i++)
        rc = read_resource(m, &in->resource_spans[i], e);
    arena_fini(&arena);
    return rc;
}
