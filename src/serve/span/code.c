/* SPDX-License-Identifier: MIT */
#include "span/code.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"

enum record { RECORD_ORIGIN = 1, RECORD_SPAN = 2 };

/* ---- writing ---- */

static void put_text(struct text *t, const char *v, size_t n)
{
    wire_put_u(t, n);
    wire_put_bytes(t, v, n);
}

static void put_attributes(struct text *, const struct span_attributes *);

static void put_value(struct text *t, const struct span_value *v)
{
    uint64_t bits;
    wire_put_u(t, v->type);
    switch (v->type) {
    case SPAN_EMPTY: break;
    case SPAN_STRING:
    case SPAN_BYTES: put_text(t, v->text.v, v->text.n); break;
    case SPAN_BOOL: wire_put_u(t, v->truth); break;
    case SPAN_INT: wire_put_i(t, v->number); break;
    case SPAN_DOUBLE:
        memcpy(&bits, &v->real, sizeof bits);
        wire_put_bytes(t, &bits, sizeof bits);
        break;
    case SPAN_ARRAY:
        wire_put_u(t, v->array.n);
        for (size_t i = 0; i < v->array.n; i++)
            put_value(t, &v->array.v[i]);
        break;
    case SPAN_MAP: put_attributes(t, &v->map); break;
    }
}

static void put_attributes(struct text *t, const struct span_attributes *a)
{
    wire_put_u(t, a->n);
    for (size_t i = 0; i < a->n; i++) {
        wire_put_string(t, a->v[i].key);
        put_value(t, &a->v[i].value);
    }
}

void span_write_origin(const struct span_origin *o, struct text *t)
{
    wire_put_string(t, o->service);
    put_attributes(t, &o->resource);
    wire_put_u(t, o->resource_dropped);
    wire_put_string(t, o->resource_schema);
    wire_put_string(t, o->scope);
    wire_put_string(t, o->scope_version);
    put_attributes(t, &o->scope_attributes);
    wire_put_u(t, o->scope_dropped);
    wire_put_string(t, o->scope_schema);
}

static void put_event(struct text *t, const struct span_event *e, int64_t begin_ns)
{
    wire_put_i(t, (int64_t)((uint64_t)e->time_ns - (uint64_t)begin_ns));
    wire_put_string(t, e->name);
    put_attributes(t, &e->attributes);
    wire_put_u(t, e->dropped_attributes);
}

static void put_link(struct text *t, const struct span_link *l)
{
    wire_put_bytes(t, l->trace_id, sizeof l->trace_id);
    wire_put_bytes(t, l->id, sizeof l->id);
    wire_put_string(t, l->state);
    put_attributes(t, &l->attributes);
    wire_put_u(t, l->dropped_attributes);
    wire_put_u(t, l->flags);
}

void span_write(const struct span *s, struct text *t)
{
    wire_put_bytes(t, s->trace_id, sizeof s->trace_id);
    wire_put_bytes(t, s->id, sizeof s->id);
    wire_put_bytes(t, s->parent_id, sizeof s->parent_id);
    wire_put_i(t, s->begin_ns);
    wire_put_u(t, (uint64_t)(s->end_ns - s->begin_ns));
    wire_put_u(t, s->kind);
    wire_put_u(t, s->status);
    wire_put_u(t, s->life);
    wire_put_string(t, s->name);
    wire_put_string(t, s->status_message);
    wire_put_string(t, s->state);
    wire_put_u(t, s->flags);
    put_attributes(t, &s->attributes);
    wire_put_u(t, s->n_events);
    for (size_t i = 0; i < s->n_events; i++)
        put_event(t, &s->events[i], s->begin_ns);
    wire_put_u(t, s->n_links);
    for (size_t i = 0; i < s->n_links; i++)
        put_link(t, &s->links[i]);
    wire_put_u(t, s->dropped_attributes);
    wire_put_u(t, s->dropped_events);
    wire_put_u(t, s->dropped_links);
}

/* ---- reading ---- */

static const char *get_text(struct wire_in *in, struct arena *a, size_t *n)
{
    size_t length = 0;
    const char *v = wire_string(in, &length);
    if (n)
        *n = length;
    return length ? arena_strndup(a, v, length) : "";
}

/* Returns a text without NULs. */
static const char *get_name(struct wire_in *in, struct arena *a)
{
    size_t n;
    const char *v = get_text(in, a, &n);
    in->damaged |= strlen(v) != n;
    return v;
}

static void get_attributes(struct wire_in *, struct arena *, unsigned depth, struct span_attributes *);

static void get_value(struct wire_in *in, struct arena *a, unsigned depth, struct span_value *v)
{
    uint64_t bits = 0;
    v->type = (enum span_type)wire_below(in, SPAN_MAP + 1);
    if (depth > CODE_MOST_DEPTH && (v->type == SPAN_ARRAY || v->type == SPAN_MAP)) {
        in->damaged = true;
        v->type = SPAN_EMPTY;
    }
    switch (v->type) {
    case SPAN_EMPTY: break;
    case SPAN_STRING:
    case SPAN_BYTES: v->text.v = get_text(in, a, &v->text.n); break;
    case SPAN_BOOL: v->truth = wire_below(in, 2); break;
    case SPAN_INT: v->number = wire_i(in); break;
    case SPAN_DOUBLE:
        wire_bytes(in, &bits, sizeof bits);
        memcpy(&v->real, &bits, sizeof bits);
        break;
    case SPAN_ARRAY: {
        size_t n = wire_count(in, 1);
        struct span_value *values = arena_new(a, struct span_value, n);
        v->array = (struct span_values){values, n};
        for (size_t i = 0; i < n; i++)
            get_value(in, a, depth + 1, &values[i]);
        break;
    }
    case SPAN_MAP: get_attributes(in, a, depth + 1, &v->map); break;
    }
}

static void get_attributes(struct wire_in *in, struct arena *a, unsigned depth, struct span_attributes *out)
{
    size_t n = wire_count(in, 2);
    struct span_attribute *v = arena_new(a, struct span_attribute, n);
    for (size_t i = 0; i < n; i++) {
        v[i].key = get_name(in, a);
        get_value(in, a, depth, &v[i].value);
    }
    *out = (struct span_attributes){v, n};
}

static void skip_attributes(struct wire_in *, unsigned depth);

static void skip_value(struct wire_in *in, unsigned depth)
{
    enum span_type type = (enum span_type)wire_below(in, SPAN_MAP + 1);
    uint64_t bits;
    size_t n;
    in->damaged |= depth > CODE_MOST_DEPTH && (type == SPAN_ARRAY || type == SPAN_MAP);
    if (in->damaged)
        return;
    switch (type) {
    case SPAN_EMPTY: break;
    case SPAN_STRING:
    case SPAN_BYTES: wire_string(in, &n); break;
    case SPAN_BOOL:
    case SPAN_INT: wire_u(in); break;
    case SPAN_DOUBLE: wire_bytes(in, &bits, sizeof bits); break;
    case SPAN_ARRAY:
        for (size_t i = wire_count(in, 1); i > 0; i--)
            skip_value(in, depth + 1);
        break;
    case SPAN_MAP: skip_attributes(in, depth + 1); break;
    }
}

static void skip_attributes(struct wire_in *in, unsigned depth)
{
    size_t n;
    for (size_t i = wire_count(in, 2); i > 0; i--) {
        wire_string(in, &n);
        skip_value(in, depth);
    }
}

/* Reads only the wanted attributes. */
static void get_wanted(
    struct wire_in *in, struct arena *a, span_wants *wants, const void *which, struct span_attributes *out)
{
    size_t n = wire_count(in, 2), kept = 0, bytes;
    struct span_attribute *v = NULL;
    for (size_t i = 0; i < n; i++) {
        const char *key = wire_string(in, &bytes);
        if (!wants(which, key, bytes)) {
            skip_value(in, 1);
            continue;
        }
        v = v ? v : arena_new(a, struct span_attribute, n - i);
        v[kept].key = arena_strndup(a, key, bytes);
        get_value(in, a, 1, &v[kept++].value);
    }
    *out = (struct span_attributes){v, kept};
}

static uint32_t get_u32(struct wire_in *in)
{
    return (uint32_t)wire_below(in, UINT64_C(1) << 32);
}

bool span_read_origin(struct wire_in *in, struct arena *a, struct span_origin *o)
{
    o->service = get_name(in, a);
    get_attributes(in, a, 1, &o->resource);
    o->resource_dropped = get_u32(in);
    o->resource_schema = get_name(in, a);
    o->scope = get_name(in, a);
    o->scope_version = get_name(in, a);
    get_attributes(in, a, 1, &o->scope_attributes);
    o->scope_dropped = get_u32(in);
    o->scope_schema = get_name(in, a);
    return !in->damaged;
}

static void get_events(struct wire_in *in, struct arena *a, struct span *s)
{
    size_t n = s->n_events = wire_count(in, 4);
    struct span_event *v = arena_new(a, struct span_event, n);
    s->events = v;
    for (size_t i = 0; i < n; i++) {
        v[i].time_ns = (int64_t)((uint64_t)wire_i(in) + (uint64_t)s->begin_ns);
        v[i].name = get_name(in, a);
        get_attributes(in, a, 1, &v[i].attributes);
        v[i].dropped_attributes = get_u32(in);
    }
}

static void skip_events(struct wire_in *in)
{
    size_t n;
    for (size_t i = wire_count(in, 4); i > 0; i--) {
        wire_i(in);
        wire_string(in, &n);
        skip_attributes(in, 1);
        get_u32(in);
    }
}

static void get_links(struct wire_in *in, struct arena *a, struct span *s)
{
    size_t n = s->n_links = wire_count(in, SPAN_TRACE_BYTES + SPAN_ID_BYTES + 4);
    struct span_link *v = arena_new(a, struct span_link, n);
    s->links = v;
    for (size_t i = 0; i < n; i++) {
        wire_bytes(in, v[i].trace_id, sizeof v[i].trace_id);
        wire_bytes(in, v[i].id, sizeof v[i].id);
        v[i].state = get_name(in, a);
        get_attributes(in, a, 1, &v[i].attributes);
        v[i].dropped_attributes = get_u32(in);
        v[i].flags = get_u32(in);
    }
}

bool span_read_head(struct wire_in *in, struct arena *a, struct span *s)
{
    wire_bytes(in, s->trace_id, sizeof s->trace_id);
    wire_bytes(in, s->id, sizeof s->id);
    wire_bytes(in, s->parent_id, sizeof s->parent_id);
    s->begin_ns = wire_i(in);
    uint64_t lasted = wire_u(in);
    if (lasted > INT64_MAX || (int64_t)lasted > INT64_MAX - (s->begin_ns > 0 ? s->begin_ns : 0)) {
        in->damaged = true;
        lasted = 0;
    }
    s->end_ns = s->begin_ns + (int64_t)lasted;
    s->kind = (enum span_kind)wire_below(in, SPAN_CONSUMER + 1);
    s->status = (enum span_status)wire_below(in, SPAN_ERROR + 1);
    s->life = (enum span_life)wire_below(in, SPAN_ENDED + 1);
    s->name = get_name(in, a);
    return !in->damaged;
}

bool span_read(struct wire_in *in, struct arena *a, struct span *s)
{
    span_read_head(in, a, s);
    s->status_message = get_name(in, a);
    s->state = get_name(in, a);
    s->flags = get_u32(in);
    get_attributes(in, a, 1, &s->attributes);
    get_events(in, a, s);
    get_links(in, a, s);
    s->dropped_attributes = get_u32(in);
    s->dropped_events = get_u32(in);
    s->dropped_links = get_u32(in);
    return !in->damaged;
}

bool span_read_brief(struct wire_in *in, struct arena *a, span_wants *wants, const void *which, struct span *s)
{
    size_t n;
    span_read_head(in, a, s);
    wire_string(in, &n); /* status message, state */
    wire_string(in, &n);
    get_u32(in);
    get_wanted(in, a, wants, which, &s->attributes);
    skip_events(in);
    get_links(in, a, s);
    return !in->damaged;
}

/* ---- terms ---- */

uint64_t span_term(const char *key, size_t key_bytes, const char *value, size_t value_bytes)
{
    return map_mix(map_hash(key, key_bytes) * 3 + map_hash(value, value_bytes));
}

struct terms_of {
    span_take_term *take;
    void *arg;
};

static void take_text(const struct terms_of *t, const char *key, size_t n, const char *value)
{
    if (*value)
        t->take(t->arg, span_term(key, n, value, strlen(value)));
}
#define TAKE_TEXT(t, key, value) take_text(t, key, sizeof key - 1, value)

/* Takes a term; texts count up to the first NUL. */
static void take_attribute(const struct terms_of *t, const char *key, size_t n, struct wire_in *in)
{
    struct wire_in value = *in;
    enum span_type type = (enum span_type)wire_below(&value, SPAN_MAP + 1);
    const char *v = "\0any";
    char digits[32];
    size_t bytes = 4;
    if (type == SPAN_STRING) {
        v = wire_string(&value, &bytes);
        bytes = bytes ? strnlen(v, bytes) : 0;
    } else if (type == SPAN_EMPTY) {
        bytes = 0;
    } else if (type == SPAN_BOOL) {
        v = wire_below(&value, 2) ? "true" : "false";
        bytes = strlen(v);
    } else if (type == SPAN_INT) {
        v = digits;
        bytes = (size_t)snprintf(digits, sizeof digits, "%lld", (long long)wire_i(&value));
    }
    t->take(t->arg, span_term(key, n, bytes ? v : "", bytes));
    skip_value(in, 1);
}

static void take_attributes(const struct terms_of *t, struct wire_in *in)
{
    size_t n;
    for (size_t i = wire_count(in, 2); i > 0 && !in->damaged; i--) {
        const char *key = wire_string(in, &n);
        take_attribute(t, key, n, in);
    }
}

/* Takes a text of its own, under a key. */
static void take_named(const struct terms_of *t, const char *key, struct wire_in *in)
{
    size_t n;
    const char *v = wire_string(in, &n);
    if (n)
        t->take(t->arg, span_term(key, strlen(key), v, n));
}

static void take_derived(const struct terms_of *t, uint64_t kind, uint64_t status)
{
    static const char *const kinds[] = {"", "internal", "server", "client", "producer", "consumer"};
    TAKE_TEXT(t, "span.kind", kinds[kind]);
    TAKE_TEXT(t, "otel.status_code", status == SPAN_OK ? "OK" : status == SPAN_ERROR ? "ERROR" : "");
    TAKE_TEXT(t, "error", status == SPAN_ERROR ? "true" : "");
}

bool span_each_term(struct wire_in *in, span_take_term *take, void *arg)
{
    const struct terms_of t = {take, arg};
    uint8_t ids[SPAN_TRACE_BYTES + 2 * SPAN_ID_BYTES];
    wire_bytes(in, ids, sizeof ids);
    wire_i(in); /* begin, duration */
    wire_u(in);
    uint64_t kind = wire_below(in, SPAN_CONSUMER + 1), status = wire_below(in, SPAN_ERROR + 1);
    take_derived(&t, kind, status);
    wire_u(in); /* life */
    take_named(&t, SPAN_TERM_NAME, in);
    take_named(&t, "otel.status_description", in);
    take_named(&t, "w3c.tracestate", in);
    wire_u(in); /* flags */
    take_attributes(&t, in);
    for (size_t i = wire_count(in, 4); i > 0 && !in->damaged; i--) {
        wire_i(in); /* time */
        take_named(&t, "event", in);
        take_attributes(&t, in);
        wire_u(in); /* dropped */
    }
    return !in->damaged;
}

bool span_each_origin_term(struct wire_in *in, span_take_term *take, void *arg)
{
    const struct terms_of t = {take, arg};
    size_t n;
    take_named(&t, SPAN_TERM_SERVICE, in);
    take_attributes(&t, in);
    wire_u(in); /* dropped, schema */
    wire_string(in, &n);
    take_named(&t, "otel.scope.name", in);
    take_named(&t, "otel.scope.version", in);
    return !in->damaged;
}

bool span_next_record(struct wire_in *in, struct wire_in *origin, struct wire_in *span)
{
    size_t n = 0;
    *origin = *span = wire_of("", 0);
    if (in->damaged || in->at == in->end)
        return false;
    uint64_t kind = wire_u(in);
    const char *v = wire_string(in, &n);
    if (in->damaged || !n || (kind != RECORD_ORIGIN && kind != RECORD_SPAN)) {
        in->damaged = true;
        return false;
    }
    *(kind == RECORD_ORIGIN ? origin : span) = wire_of(v, n);
    return true;
}

static void put_record(struct text *t, enum record kind, const struct text *body)
{
    wire_put_u(t, kind);
    put_text(t, body->v, body->n);
}

void span_record_origin(const struct span_origin *o, struct text *scratch, struct text *t)
{
    scratch->n = 0;
    span_write_origin(o, scratch);
    put_record(t, RECORD_ORIGIN, scratch);
}

void span_record(const struct span *s, struct text *scratch, struct text *t)
{
    scratch->n = 0;
    span_write(s, scratch);
    put_record(t, RECORD_SPAN, scratch);
}
