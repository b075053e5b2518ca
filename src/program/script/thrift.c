/* SPDX-License-Identifier: MIT */
/* A span as Jaeger's Thrift: struct Batch in the binary protocol, as its collector takes it at /api/traces. */
#include "script/span.h"

#include <endian.h>

enum { T_STOP = 0, T_BOOL = 2, T_I32 = 8, T_I64 = 10, T_STRING = 11, T_STRUCT = 12, T_LIST = 15 };
enum { TAG_STRING = 0, TAG_BOOL = 2, TAG_LONG = 3 };

static void put_field(struct text *t, char type, unsigned id)
{
    text_putc(t, type);
    text_putc(t, (char)(id >> 8));
    text_putc(t, (char)id);
}

static void put_u32(struct text *t, uint32_t v)
{
    v = htobe32(v);
    text_put(t, (const char *)&v, sizeof v);
}

static void put_u64(struct text *t, uint64_t v)
{
    v = htobe64(v);
    text_put(t, (const char *)&v, sizeof v);
}

static void put_i32_field(struct text *t, unsigned id, uint32_t v)
{
    put_field(t, T_I32, id);
    put_u32(t, v);
}

static void put_i64_field(struct text *t, unsigned id, uint64_t v)
{
    put_field(t, T_I64, id);
    put_u64(t, v);
}

/* Thrift's strings are UTF-8: invalid bytes become U+FFFD. */
static void put_string_field(struct text *t, unsigned id, const char *s, size_t most)
{
    static const char unknown[] = "\xef\xbf\xbd";
    size_t n = strnlen(s, most), length_at;
    put_field(t, T_STRING, id);
    length_at = t->n;
    put_u32(t, 0);
    for (size_t at = 0; at < n;) {
        size_t sequence = text_sequence(s + at, n - at);
        text_put(t, sequence ? s + at : unknown, sequence ? sequence : sizeof unknown - 1);
        at += sequence ? sequence : 1;
    }
    uint32_t length = htobe32((uint32_t)(t->n - length_at - 4));
    memcpy(t->v + length_at, &length, sizeof length);
}

static void put_list_field(struct text *t, unsigned id, size_t n)
{
    put_field(t, T_LIST, id);
    text_putc(t, T_STRUCT);
    put_u32(t, (uint32_t)n);
}

static void put_text_tag(struct text *t, const char *key, const char *text)
{
    put_string_field(t, 1, key, SCRIPT_NAME_BYTES);
    put_i32_field(t, 2, TAG_STRING);
    put_string_field(t, 3, text, SCRIPT_VALUE_BYTES);
    text_putc(t, T_STOP);
}

static void put_tag(struct text *t, const struct script_attribute *a)
{
    if (a->text) {
        put_text_tag(t, a->key, a->text);
        return;
    }
    put_string_field(t, 1, a->key, SCRIPT_NAME_BYTES);
    put_i32_field(t, 2, TAG_LONG);
    put_i64_field(t, 6, (uint64_t)a->number);
    text_putc(t, T_STOP);
}

static void put_error_tag(struct text *t)
{
    put_string_field(t, 1, "error", SCRIPT_NAME_BYTES);
    put_i32_field(t, 2, TAG_BOOL);
    put_field(t, T_BOOL, 5);
    text_putc(t, 1);
    text_putc(t, T_STOP);
}

static const char *kind_of(const struct script_span *s)
{
    static const char *const names[] = {"internal", "internal", "server", "client", "producer", "consumer"};
    return names[s->kind];
}

static void put_span_tags(struct text *t, const struct script_span *s)
{
    size_t n = s->attributes.list.n;
    put_list_field(t, 10, n + 1 + (s->status == SCRIPT_ERROR) + (s->message != NULL));
    put_text_tag(t, "span.kind", kind_of(s));
    if (s->status == SCRIPT_ERROR)
        put_error_tag(t);
    if (s->message)
        put_text_tag(t, "otel.status_description", s->message);
    for (size_t i = 0; i < n; i++)
        put_tag(t, &s->attributes.list.v[i]);
}

static void put_logs(struct text *t, const struct script_span *s)
{
    put_list_field(t, 11, s->events.n);
    for (size_t i = 0; i < s->events.n; i++) {
        const struct script_event *e = &s->events.v[i];
        put_i64_field(t, 1, (uint64_t)(e->time_ns / 1000));
        put_list_field(t, 2, e->attributes.list.n + 1);
        put_text_tag(t, "event", e->name);
        for (size_t k = 0; k < e->attributes.list.n; k++)
            put_tag(t, &e->attributes.list.v[k]);
        text_putc(t, T_STOP);
    }
}

static uint64_t hex_u64(const char *digits)
{
    uint64_t v = 0;
    for (size_t i = 0; i < 16 && digits[i]; i++)
        v = v << 4 | (uint64_t)(digits[i] <= '9' ? digits[i] - '0' : digits[i] - 'a' + 10);
    return v;
}

static void put_span(struct text *t, const struct script_span *s)
{
    put_i64_field(t, 1, hex_u64(s->context.trace_id + 16));
    put_i64_field(t, 2, hex_u64(s->context.trace_id));
    put_i64_field(t, 3, hex_u64(s->context.span_id));
    put_i64_field(t, 4, hex_u64(s->parent_id));
    put_string_field(t, 5, s->name, SCRIPT_NAME_BYTES);
    put_i32_field(t, 7, s->context.flags & SCRIPT_SAMPLED);
    put_i64_field(t, 8, (uint64_t)(s->start_ns / 1000));
    put_i64_field(t, 9, (uint64_t)((s->end_ns - s->start_ns) / 1000));
    put_span_tags(t, s);
    if (s->events.n)
        put_logs(t, s);
    text_putc(t, T_STOP);
}

void script_write_thrift(
    const struct script_span *s, const char *service, const struct script_attributes *resource, struct text *out)
{
    size_t tags = 0;
    for (size_t i = 0; i < resource->list.n; i++)
        tags += strcmp(resource->list.v[i].key, "service.name") != 0;
    put_field(out, T_STRUCT, 1);
    put_string_field(out, 1, service, SCRIPT_VALUE_BYTES);
    put_list_field(out, 2, tags);
    for (size_t i = 0; i < resource->list.n; i++)
        if (strcmp(resource->list.v[i].key, "service.name") != 0)
            put_tag(out, &resource->list.v[i]);
    text_putc(out, T_STOP);
    put_list_field(out, 2, 1);
    put_span(out, s);
    text_putc(out, T_STOP);
}
