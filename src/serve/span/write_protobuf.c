/* SPDX-License-Identifier: MIT */
#include "span/write_protobuf.h"

#include "base/wire.h"
#include "otlp.pb-c.h"

/* Field numbers of messages that are assembled from packed parts. */
enum { REQUEST_RESOURCE_SPANS = 1, RESOURCE = 1, SCOPE_SPANS = 2, SCOPE = 1, SPANS = 2, SCHEMA = 3 };

static void put_field(struct text *t, unsigned field, const void *v, size_t n)
{
    enum { BYTES = 2 };
    if (!n)
        return;
    wire_put_u(t, field << 3 | BYTES);
    wire_put_u(t, n);
    text_put(t, v, n);
}

static void pack(const ProtobufCMessage *m, struct text *t)
{
    t->n += protobuf_c_message_pack(m, (uint8_t *)text_room(t, protobuf_c_message_get_packed_size(m)));
}

static ProtobufCBinaryData packed(const ProtobufCMessage *m, struct arena *a)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    uint8_t *v = arena_alloc(a, n ? n : 1);
    return (ProtobufCBinaryData){protobuf_c_message_pack(m, v), v};
}

static ProtobufCBinaryData text_of(const char *s)
{
    return (ProtobufCBinaryData){strlen(s), (uint8_t *)s};
}

static ProtobufCBinaryData id_of(const uint8_t *id, size_t n)
{
    return (ProtobufCBinaryData){span_id_is_zero(id, n) ? 0 : n, (uint8_t *)id};
}

static Otlp__KeyValue **make_list(const struct span_attributes *, size_t *n, struct arena *);

static Otlp__AnyValue *make_value(const struct span_value *v, struct arena *a)
{
    Otlp__AnyValue *out = arena_new(a, Otlp__AnyValue, 1);
    Otlp__ArrayValue array = OTLP__ARRAY_VALUE__INIT;
    Otlp__KeyValueList map = OTLP__KEY_VALUE_LIST__INIT;
    otlp__any_value__init(out);
    switch (v->type) {
    case SPAN_EMPTY: break;
    case SPAN_STRING:
        out->value_case = OTLP__ANY_VALUE__VALUE_TEXT;
        out->text = (ProtobufCBinaryData){v->text.n, (uint8_t *)v->text.v};
        break;
    case SPAN_BOOL:
        out->value_case = OTLP__ANY_VALUE__VALUE_TRUTH;
        out->truth = v->truth;
        break;
    case SPAN_INT:
        out->value_case = OTLP__ANY_VALUE__VALUE_NUMBER;
        out->number = v->number;
        break;
    case SPAN_DOUBLE:
        out->value_case = OTLP__ANY_VALUE__VALUE_REAL;
        out->real = v->real;
        break;
    case SPAN_BYTES:
        out->value_case = OTLP__ANY_VALUE__VALUE_RAW;
        out->raw = (ProtobufCBinaryData){v->text.n, (uint8_t *)v->text.v};
        break;
    case SPAN_ARRAY:
        array.n_values = v->array.n;
        array.values = arena_new(a, Otlp__AnyValue *, v->array.n + 1);
        for (size_t i = 0; i < v->array.n; i++)
            array.values[i] = make_value(&v->array.v[i], a);
        out->value_case = OTLP__ANY_VALUE__VALUE_ARRAY;
        out->array = packed(&array.base, a);
        break;
    case SPAN_MAP:
        map.values = make_list(&v->map, &map.n_values, a);
        out->value_case = OTLP__ANY_VALUE__VALUE_MAP;
        out->map = packed(&map.base, a);
        break;
    }
    return out;
}

static Otlp__KeyValue **make_list(const struct span_attributes *in, size_t *n, struct arena *a)
{
    Otlp__KeyValue **list = arena_new(a, Otlp__KeyValue *, in->n + 1);
    for (size_t i = 0; i < in->n; i++) {
        list[i] = arena_new(a, Otlp__KeyValue, 1);
        otlp__key_value__init(list[i]);
        list[i]->key = text_of(in->v[i].key);
        list[i]->value = make_value(&in->v[i].value, a);
    }
    *n = in->n;
    return list;
}

static void make_events(const struct span *s, Otlp__Span *out, struct arena *a)
{
    out->n_events = s->n_events;
    out->events = arena_new(a, Otlp__Event *, s->n_events + 1);
    for (size_t i = 0; i < s->n_events; i++) {
        const struct span_event *from = &s->events[i];
        Otlp__Event *event = out->events[i] = arena_new(a, Otlp__Event, 1);
        otlp__event__init(event);
        event->time = (uint64_t)from->time_ns;
        event->name = text_of(from->name);
        event->attributes = make_list(&from->attributes, &event->n_attributes, a);
        event->dropped = from->dropped_attributes;
    }
}

static void make_links(const struct span *s, Otlp__Span *out, struct arena *a)
{
    out->n_links = s->n_links;
    out->links = arena_new(a, Otlp__Link *, s->n_links + 1);
    for (size_t i = 0; i < s->n_links; i++) {
        const struct span_link *from = &s->links[i];
        Otlp__Link *link = out->links[i] = arena_new(a, Otlp__Link, 1);
        otlp__link__init(link);
        link->trace_id = id_of(from->trace_id, sizeof from->trace_id);
        link->span_id = id_of(from->id, sizeof from->id);
        link->trace_state = text_of(from->state);
        link->attributes = make_list(&from->attributes, &link->n_attributes, a);
        link->dropped = from->dropped_attributes;
        link->flags = from->flags;
    }
}

static void write_span(const struct span *s, struct arena *a, struct text *t)
{
    Otlp__Span out = OTLP__SPAN__INIT;
    Otlp__Status status = OTLP__STATUS__INIT;
    out.trace_id = id_of(s->trace_id, sizeof s->trace_id);
    out.span_id = id_of(s->id, sizeof s->id);
    out.parent_span_id = id_of(s->parent_id, sizeof s->parent_id);
    out.trace_state = text_of(s->state);
    out.name = text_of(s->name);
    out.kind = (int32_t)s->kind;
    out.begin = (uint64_t)s->begin_ns;
    out.end = (uint64_t)s->end_ns;
    out.attributes = make_list(&s->attributes, &out.n_attributes, a);
    out.dropped_attributes = s->dropped_attributes;
    out.dropped_events = s->dropped_events;
    out.dropped_links = s->dropped_links;
    out.flags = s->flags;
    status.code = (int32_t)s->status;
    status.message = text_of(s->status_message);
    out.status = s->status || *s->status_message ? &status : NULL;
    make_events(s, &out, a);
    make_links(s, &out, a);
    pack(&out.base, t);
}

/* ---- requests ---- */

void protobuf_request_fini(struct protobuf_request *r)
{
    text_fini(&r->body);
    text_fini(&r->spans);
    text_fini(&r->resource);
    text_fini(&r->scope);
    text_fini(&r->again);
}

void protobuf_request_end(struct protobuf_request *r)
{
    struct text scope_spans = {.fd = -1}, all = {.fd = -1};
    if (!r->spans.n)
        return;
    put_field(&scope_spans, SCOPE, r->scope.v, r->scope.n);
    text_put(&scope_spans, r->spans.v, r->spans.n);
    put_field(&scope_spans, SCHEMA, r->scope_schema, strlen(r->scope_schema));
    put_field(&all, RESOURCE, r->resource.v, r->resource.n);
    put_field(&all, SCOPE_SPANS, scope_spans.v, scope_spans.n);
    put_field(&all, SCHEMA, r->resource_schema, strlen(r->resource_schema));
    put_field(&r->body, REQUEST_RESOURCE_SPANS, all.v, all.n);
    r->spans.n = 0;
    text_fini(&scope_spans);
    text_fini(&all);
}

void protobuf_request_origin(struct protobuf_request *r, const struct span_origin *o)
{
    struct arena a = {0};
    Otlp__Resource resource = OTLP__RESOURCE__INIT;
    Otlp__Scope scope = OTLP__SCOPE__INIT;
    protobuf_request_end(r);
    resource.attributes = make_list(&o->resource, &resource.n_attributes, &a);
    resource.dropped = o->resource_dropped;
    scope.name = text_of(o->scope);
    scope.version = text_of(o->scope_version);
    scope.attributes = make_list(&o->scope_attributes, &scope.n_attributes, &a);
    scope.dropped = o->scope_dropped;
    r->resource.n = r->scope.n = 0;
    pack(&resource.base, &r->resource);
    pack(&scope.base, &r->scope);
    r->resource_schema = o->resource_schema;
    r->scope_schema = o->scope_schema;
    arena_fini(&a);
}

void protobuf_request_span(struct protobuf_request *r, const struct span *s)
{
    struct arena a = {0};
    r->again.n = 0;
    write_span(s, &a, &r->again);
    put_field(&r->spans, SPANS, r->again.v, r->again.n);
    r->n++;
    arena_fini(&a);
}

size_t protobuf_request_bytes(const struct protobuf_request *r)
{
    return r->body.n + r->spans.n + r->resource.n + r->scope.n;
}

void protobuf_request_clear(struct protobuf_request *r)
{
    r->body.n = r->spans.n = r->n = 0;
}
