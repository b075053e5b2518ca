/* SPDX-License-Identifier: MIT */
/* Jaeger's Thrift: a Batch by the binary protocol, without an envelope. */
#include <string.h>

#include "span/read.h"
#include "span/told.h"

enum thrift_type {
    THRIFT_STOP = 0,
    THRIFT_BOOL = 2,
    THRIFT_BYTE = 3,
    THRIFT_DOUBLE = 4,
    THRIFT_I16 = 6,
    THRIFT_I32 = 8,
    THRIFT_I64 = 10,
    THRIFT_STRING = 11,
    THRIFT_STRUCT = 12,
    THRIFT_MAP = 13,
    THRIFT_SET = 14,
    THRIFT_LIST = 15
};
enum { MOST_SKIPPED_DEPTH = 32 };
enum { TAG_STRING, TAG_DOUBLE, TAG_BOOL, TAG_LONG, TAG_BINARY };

/* Unread bytes. Invalid input reads as zeros and sets `damaged`. */
struct thrift_in {
    const uint8_t *at, *end;
    bool damaged;
};

static uint64_t take_number(struct thrift_in *in, size_t bytes)
{
    uint64_t v = 0;
    if ((size_t)(in->end - in->at) < bytes) {
        in->damaged = true;
        in->at = in->end;
        return 0;
    }
    for (size_t i = 0; i < bytes; i++)
        v = v << 8 | *in->at++;
    return v;
}

static const void *take_bytes(struct thrift_in *in, size_t *n)
{
    *n = (size_t)take_number(in, 4);
    if (*n > (size_t)(in->end - in->at)) {
        in->damaged = true;
        in->at = in->end;
        *n = 0;
    }
    const void *v = in->at;
    in->at += *n;
    return v;
}

/* Reads the header of a struct's next field; false: the struct ends. */
static bool take_field(struct thrift_in *in, unsigned *type, unsigned *id)
{
    *type = (unsigned)take_number(in, 1);
    *id = *type ? (unsigned)take_number(in, 2) : 0;
    return *type && !in->damaged;
}

/* Reads the number of items, each of at least a byte. */
static size_t take_count(struct thrift_in *in, unsigned *type)
{
    *type = (unsigned)take_number(in, 1);
    uint64_t n = take_number(in, 4);
    if (n <= (size_t)(in->end - in->at))
        return (size_t)n;
    in->damaged = true;
    in->at = in->end;
    return 0;
}

static void skip(struct thrift_in *in, unsigned type, unsigned depth)
{
    unsigned inner, id;
    size_t n;
    if (depth > MOST_SKIPPED_DEPTH) {
        in->damaged = true;
        in->at = in->end;
        return;
    }
    switch (type) {
    case THRIFT_BOOL:
    case THRIFT_BYTE: take_number(in, 1); break;
    case THRIFT_I16: take_number(in, 2); break;
    case THRIFT_I32: take_number(in, 4); break;
    case THRIFT_I64:
    case THRIFT_DOUBLE: take_number(in, 8); break;
    case THRIFT_STRING: take_bytes(in, &n); break;
    case THRIFT_STRUCT:
        while (take_field(in, &inner, &id))
            skip(in, inner, depth + 1);
        break;
    case THRIFT_SET:
    case THRIFT_LIST:
        n = take_count(in, &inner);
        for (size_t i = 0; i < n && !in->damaged; i++)
            skip(in, inner, depth + 1);
        break;
    case THRIFT_MAP:
        inner = (unsigned)take_number(in, 1);
        n = take_count(in, &id);
        for (size_t i = 0; i < n && !in->damaged; i++) {
            skip(in, inner, depth + 1);
            skip(in, id, depth + 1);
        }
        break;
    default: in->damaged = true; in->at = in->end;
    }
}

static const char *take_name(struct span_making *m, struct thrift_in *in)
{
    size_t n;
    const void *v = take_bytes(in, &n);
    return span_making_text(m, v, n, true, NULL);
}

static struct span_value take_blob(struct span_making *m, struct thrift_in *in, enum span_type type)
{
    struct span_value v = {.type = type};
    size_t n;
    const void *bytes = take_bytes(in, &n);
    v.text.n = n;
    v.text.v = !n            ? ""
        : type == SPAN_BYTES ? arena_strndup(span_making_arena(m), bytes, n)
                             : span_making_text(m, bytes, n, false, &v.text.n);
    return v;
}

/* Reads a tag. Field ids of the types: vStr 3, vDouble 4, vBool 5, vLong 6, vBinary 7. */
static void read_tag(struct span_making *m, struct thrift_in *in, struct span_attribute *out)
{
    struct span_value values[5] = {{.type = SPAN_EMPTY}};
    unsigned type, id;
    uint64_t kind = TAG_STRING, bits;
    out->key = "";
    while (take_field(in, &type, &id))
        if (id == 1 && type == THRIFT_STRING) {
            out->key = take_name(m, in);
        } else if (id == 2 && type == THRIFT_I32) {
            kind = take_number(in, 4);
        } else if (id == 3 && type == THRIFT_STRING) {
            values[TAG_STRING] = take_blob(m, in, SPAN_STRING);
        } else if (id == 4 && type == THRIFT_DOUBLE) {
            bits = take_number(in, 8);
            values[TAG_DOUBLE].type = SPAN_DOUBLE;
            memcpy(&values[TAG_DOUBLE].real, &bits, sizeof bits);
        } else if (id == 5 && type == THRIFT_BOOL) {
            values[TAG_BOOL] = (struct span_value){.type = SPAN_BOOL, .truth = take_number(in, 1) != 0};
        } else if (id == 6 && type == THRIFT_I64) {
            values[TAG_LONG] = (struct span_value){.type = SPAN_INT, .number = (int64_t)take_number(in, 8)};
        } else if (id == 7 && type == THRIFT_STRING) {
            values[TAG_BINARY] = take_blob(m, in, SPAN_BYTES);
        } else {
            skip(in, type, 1);
        }
    out->value = values[kind <= TAG_BINARY ? kind : TAG_STRING];
}

/* Reads tags up to the limit; adds the number of others to *dropped. */
static struct span_attribute *read_tags(struct span_making *m, struct thrift_in *in, size_t *n, uint32_t *dropped)
{
    unsigned type;
    size_t all = take_count(in, &type), most = all < CODE_MOST_ITEMS ? all : CODE_MOST_ITEMS;
    struct span_attribute *v = arena_new(span_making_arena(m), struct span_attribute, most);
    *n = 0;
    in->damaged |= all && type != THRIFT_STRUCT;
    while (*n < most && !in->damaged)
        read_tag(m, in, &v[(*n)++]);
    for (size_t i = most; i < all && !in->damaged; i++, ++*dropped)
        skip(in, THRIFT_STRUCT, 1);
    return v;
}

static void read_log(struct span_making *m, struct thrift_in *in, struct span_event *out)
{
    unsigned type, id;
    out->name = "";
    while (take_field(in, &type, &id))
        if (id == 1 && type == THRIFT_I64) {
            int64_t us = (int64_t)take_number(in, 8);
            out->time_ns = us > INT64_MAX / 1000 || us < 0 ? 0 : us * 1000;
        } else if (id == 2 && type == THRIFT_LIST) {
            size_t n;
            struct span_attribute *v = read_tags(m, in, &n, &out->dropped_attributes);
            out->name = span_take_event_name(v, &n);
            out->attributes = span_making_attributes(m, v, n, &out->dropped_attributes);
        } else {
            skip(in, type, 1);
        }
}

static void read_logs(struct span_making *m, struct thrift_in *in, struct span *s)
{
    unsigned type;
    size_t all = take_count(in, &type), most = all < CODE_MOST_ITEMS ? all : CODE_MOST_ITEMS;
    struct span_event *v = arena_new(&m->of_span, struct span_event, most);
    in->damaged |= all && type != THRIFT_STRUCT;
    s->events = v;
    for (s->n_events = 0; s->n_events < most && !in->damaged; s->n_events++)
        read_log(m, in, &v[s->n_events]);
    for (size_t i = most; i < all && !in->damaged; i++, s->dropped_events++)
        skip(in, THRIFT_STRUCT, 1);
}

static void put_id(uint8_t *to, uint64_t v)
{
    for (int i = 7; i >= 0; i--, v >>= 8)
        to[i] = (uint8_t)v;
}

struct reference {
    struct span_link to;
    bool child_of;
};

static void read_reference(struct thrift_in *in, struct reference *out)
{
    unsigned type, id;
    while (take_field(in, &type, &id))
        if (id == 1 && type == THRIFT_I32)
            out->child_of = !take_number(in, 4);
        else if (id == 2 && type == THRIFT_I64)
            put_id(out->to.trace_id + 8, take_number(in, 8));
        else if (id == 3 && type == THRIFT_I64)
            put_id(out->to.trace_id, take_number(in, 8));
        else if (id == 4 && type == THRIFT_I64)
            put_id(out->to.id, take_number(in, 8));
        else
            skip(in, type, 1);
}

/* Reads references. Without a parent id, the parent is the first CHILD_OF in the same trace. All others are links. Of
 * several lists the last counts. */
static void read_references(struct span_making *m, struct thrift_in *in, struct span *s)
{
    unsigned type;
    size_t all = take_count(in, &type);
    in->damaged |= all && type != THRIFT_STRUCT;
    s->n_links = 0;
    struct span_link *links = arena_new(&m->of_span, struct span_link, all < CODE_MOST_ITEMS ? all : CODE_MOST_ITEMS);
    for (size_t i = 0; i < all && !in->damaged; i++) {
        struct reference r = {.to = {.state = ""}};
        read_reference(in, &r);
        bool same = r.child_of && !memcmp(r.to.trace_id, s->trace_id, sizeof s->trace_id);
        if (same && span_id_is_zero(s->parent_id, sizeof s->parent_id))
            memcpy(s->parent_id, r.to.id, sizeof s->parent_id);
        else if (same && !memcmp(s->parent_id, r.to.id, sizeof s->parent_id))
            continue;
        else if (s->n_links < CODE_MOST_ITEMS)
            links[s->n_links++] = r.to;
        else
            s->dropped_links++;
    }
    s->links = links;
}

static void read_span(struct span_making *m, struct thrift_in *in)
{
    struct span s = {.name = "", .status_message = "", .state = ""};
    struct span_attribute *tags = NULL;
    size_t n_tags = 0;
    int64_t begin = 0, lasted = 0;
    unsigned type, id;
    span_begin(m);
    while (take_field(in, &type, &id))
        switch (id << 8 | type) {
        case 1 << 8 | THRIFT_I64: put_id(s.trace_id + 8, take_number(in, 8)); break;
        case 2 << 8 | THRIFT_I64: put_id(s.trace_id, take_number(in, 8)); break;
        case 3 << 8 | THRIFT_I64: put_id(s.id, take_number(in, 8)); break;
        case 4 << 8 | THRIFT_I64: put_id(s.parent_id, take_number(in, 8)); break;
        case 5 << 8 | THRIFT_STRING: s.name = take_name(m, in); break;
        case 6 << 8 | THRIFT_LIST: read_references(m, in, &s); break;
        case 7 << 8 | THRIFT_I32: s.flags = (uint32_t)take_number(in, 4) & 0xff; break;
        case 8 << 8 | THRIFT_I64: begin = (int64_t)take_number(in, 8); break;
        case 9 << 8 | THRIFT_I64: lasted = (int64_t)take_number(in, 8); break;
        case 10 << 8 | THRIFT_LIST: tags = read_tags(m, in, &n_tags, &s.dropped_attributes); break;
        case 11 << 8 | THRIFT_LIST: read_logs(m, in, &s); break;
        default: skip(in, type, 1); break;
        }
    if (in->damaged)
        return;
    span_tell_of_tags(m, tags, n_tags, &s);
    const int64_t most = INT64_MAX / 2000;
    if (begin < 0 || begin > most || lasted > most || lasted < -most)
        span_refuse(m, "a time before 1970 or beyond the year 2100");
    else
        span_put(m, &s, (uint64_t)begin * 1000, begin + lasted < 0 ? 0 : (uint64_t)(begin + lasted) * 1000);
}

static void read_process(struct span_making *m, struct thrift_in *in)
{
    struct span_origin o = {.resource_schema = "", .scope = "", .scope_version = "", .scope_schema = ""};
    struct span_attribute *tags = NULL, *all;
    const char *service = "";
    size_t n = 0;
    unsigned type, id;
    span_begin_origin(m);
    while (take_field(in, &type, &id))
        if (id == 1 && type == THRIFT_STRING)
            service = take_name(m, in);
        else if (id == 2 && type == THRIFT_LIST)
            tags = read_tags(m, in, &n, &o.resource_dropped);
        else
            skip(in, type, 1);
    all = arena_new(&m->of_origin, struct span_attribute, n + 1);
    if (n)
        memcpy(all, tags, n * sizeof *all);
    if (*service)
        all[n++] = span_string_attribute(m, "service.name", service);
    o.resource = span_making_attributes(m, all, n, &o.resource_dropped);
    span_put_origin(m, &o, service);
}

int span_read_thrift(struct span_making *m, const void *data, size_t n, struct err *e)
{
    struct thrift_in in = {data, (const uint8_t *)data + n, false}, spans = {NULL, NULL, false};
    bool process = false;
    unsigned type, id;
    while (take_field(&in, &type, &id)) {
        if (id == 1 && type == THRIFT_STRUCT && !process) {
            read_process(m, &in);
            process = true;
        } else {
            struct thrift_in here = in;
            skip(&in, type, 1);
            if (id == 2 && type == THRIFT_LIST)
                spans = here;
        }
    }
    if (in.damaged || !process || !spans.at)
        return err_set(e, ERR_FORMAT, "this is no Batch of Jaeger's Thrift, by the binary protocol");
    size_t all = take_count(&spans, &type);
    for (size_t i = 0; i < all && !spans.damaged; i++)
        read_span(m, &spans);
    return spans.damaged || (all && type != THRIFT_STRUCT) ? err_set(e, ERR_FORMAT, "a span of the batch is damaged")
                                                           : 0;
}
