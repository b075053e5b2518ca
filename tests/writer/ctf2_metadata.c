/* SPDX-License-Identifier: MIT */
#include "ctf2_metadata.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "ctf/metadata.h"

enum { MAX_PATH = 64 };

struct translation {
    const struct ctf_metadata *md;
    struct json j;
    const struct ctf_type *const *scopes; /* CTF_SCOPES; those that a length or selector may be in */
    enum ctf_scope scope;                 /* being written */
    bool failed;
};

/* ---- roles ---- */

static const struct {
    enum ctf_scope scope;
    const char *name, *role;
} roles[] = {
    {CTF_PACKET_HEADER, "magic", "packet-magic-number"},
    {CTF_PACKET_HEADER, "uuid", "metadata-stream-uuid"},
    {CTF_PACKET_HEADER, "stream_id", "data-stream-class-id"},
    {CTF_PACKET_HEADER, "stream_instance_id", "data-stream-id"},
    {CTF_PACKET_CONTEXT, "timestamp_begin", "default-clock-timestamp"},
    {CTF_PACKET_CONTEXT, "timestamp_end", "packet-end-default-clock-timestamp"},
    {CTF_PACKET_CONTEXT, "content_size", "packet-content-length"},
    {CTF_PACKET_CONTEXT, "packet_size", "packet-total-length"},
    {CTF_PACKET_CONTEXT, "packet_seq_num", "packet-sequence-number"},
    {CTF_PACKET_CONTEXT, "events_discarded", "discarded-event-record-counter-snapshot"},
    {CTF_EVENT_HEADER, "id", "event-record-class-id"},
    {CTF_EVENT_HEADER, "timestamp", "default-clock-timestamp"},
};

static const char *role_of(const struct translation *w, const char *name)
{
    for (size_t i = 0; name && i < sizeof roles / sizeof *roles; i++)
        if (roles[i].scope == w->scope && strcmp(roles[i].name, name) == 0)
            return roles[i].role;
    return NULL;
}

static void put_role(struct translation *w, const char *name)
{
    const char *role = role_of(w, name);
    if (!role)
        return;
    json_key(&w->j, "roles");
    json_array(&w->j);
    json_string(&w->j, role);
    json_end_array(&w->j);
}

/* ---- locations ---- */

/* The names that lead from `t` to `target`: lists, and variants with their options, have none. 0: it is not there. */
static size_t path_to(const struct ctf_type *t, const struct ctf_type *target, const char **path, size_t depth)
{
    if (!t || depth == MAX_PATH)
        return 0;
    if (t->kind == CTF_ARRAY || t->kind == CTF_SEQUENCE)
        return path_to(t->u.list.element, target, path, depth);
    if (t->kind != CTF_STRUCT && t->kind != CTF_VARIANT)
        return 0;
    bool named = t->kind == CTF_STRUCT;
    for (uint32_t i = 0; i < t->n; i++) {
        const struct ctf_type *type = t->u.fields[i].type;
        if (named)
            path[depth] = t->u.fields[i].shown;
        if (named &&
            (type == target || (type->kind == CTF_ENUM && type->u.enumeration.container == target && target->slot)))
            return depth + 1;
        size_t n = path_to(type, target, path, depth + named);
        if (n)
            return n;
    }
    return 0;
}

static void put_location(struct translation *w, const char *key, const struct ctf_ref *ref)
{
    static const char *const origins[CTF_SCOPES] = {"packet-header", "packet-context", "event-record-header",
        "event-record-common-context", "event-record-specific-context", "event-record-payload"};
    const char *path[MAX_PATH];
    size_t n = 0;
    int s = 0;
    while (ref && s < CTF_SCOPES && !(n = path_to(w->scopes[s], ref->target, path, 0)))
        s++;
    if (!n) {
        w->failed = true;
        return;
    }
    json_key(&w->j, key);
    json_object(&w->j);
    json_kv_string(&w->j, "origin", origins[s]);
    json_key(&w->j, "path");
    json_array(&w->j);
    for (size_t i = 0; i < n; i++)
        json_string(&w->j, path[i]);
    json_end_array(&w->j);
    json_end_object(&w->j);
}

/* ---- field classes ---- */

static void put_type(struct translation *, const struct ctf_type *, const char *name);

/* `inner`: what the type would have by its members or elements. */
static void put_alignment(struct json *j, const struct ctf_type *t, uint32_t inner)
{
    if (t->align_bits > inner)
        json_kv_u64(j, "minimum-alignment", t->align_bits);
}

static void put_range(struct json *j, bool is_signed, int64_t lo, int64_t hi)
{
    json_array(j);
    for (int i = 0; i < 2; i++)
        if (is_signed)
            json_i64(j, i ? hi : lo);
        else
            json_u64(j, (uint64_t)(i ? hi : lo));
    json_end_array(j);
}

static const char *bare(const char *label)
{
    return label + (label[0] == '_');
}

/* Labels may come several times, each with other values: properties must not. */
static void put_mappings(struct json *j, const struct ctf_type *t)
{
    const struct ctf_range *r = t->u.enumeration.ranges;
    bool is_signed = t->u.enumeration.container->is_signed;
    json_key(j, "mappings");
    json_object(j);
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t first = 0;
        while (strcmp(bare(r[first].label), bare(r[i].label)) != 0)
            first++;
        if (first < i)
            continue;
        json_key(j, bare(r[i].label));
        json_array(j);
        for (uint32_t k = i; k < t->n; k++)
            if (strcmp(bare(r[k].label), bare(r[i].label)) == 0)
                put_range(j, is_signed, r[k].lo, r[k].hi);
        json_end_array(j);
    }
    json_end_object(j);
}

static void put_number(struct translation *w, const struct ctf_type *t, const char *name)
{
    const struct ctf_type *bits = t->kind == CTF_ENUM ? t->u.enumeration.container : t;
    struct json *j = &w->j;
    json_kv_string(j, "type",
        t->kind == CTF_FLOAT  ? "fixed-length-floating-point-number"
            : bits->is_signed ? "fixed-length-signed-integer"
                              : "fixed-length-unsigned-integer");
    json_kv_i64(j, "length", bits->size_bits);
    json_kv_u64(j, "alignment", bits->align_bits);
    json_kv_string(j, "byte-order", bits->big_endian ? "big-endian" : "little-endian");
    if (t->kind != CTF_FLOAT && bits->base != 10)
        json_kv_u64(j, "preferred-display-base", bits->base);
    if (t->kind == CTF_ENUM)
        put_mappings(j, t);
    put_role(w, name);
}

static void put_list(struct translation *w, const struct ctf_type *t, const char *name)
{
    const struct ctf_type *element = t->u.list.element;
    bool is_bytes = element->kind == CTF_INT && element->size_bits == 8 && element->align_bits == 8;
    bool is_text = is_bytes && element->is_text, is_static = t->kind == CTF_ARRAY;
    bool is_blob = is_bytes && is_static && role_of(w, name) != NULL;
    const char *what = is_text ? "string" : is_blob ? "blob" : "array";
    struct json *j = &w->j;
    char type[32];
    snprintf(type, sizeof type, "%s-length-%s", is_static ? "static" : "dynamic", what);
    json_kv_string(j, "type", type);
    if (is_static)
        json_kv_u64(j, "length", t->n);
    else
        put_location(w, "length-field-location", t->u.list.length);
    if (is_blob)
        put_role(w, name);
    else if (!is_text) {
        put_alignment(j, t, element->align_bits);
        json_key(j, "element-field-class");
        put_type(w, element, NULL);
    }
}

static void put_struct(struct translation *w, const struct ctf_type *t)
{
    struct json *j = &w->j;
    uint32_t inner = 1;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->u.fields[i].type->align_bits > inner)
            inner = t->u.fields[i].type->align_bits;
    json_kv_string(j, "type", "structure");
    put_alignment(j, t, inner);
    json_key(j, "member-classes");
    json_array(j);
    for (uint32_t i = 0; i < t->n; i++) {
        json_object(j);
        json_kv_string(j, "name", t->u.fields[i].shown);
        json_key(j, "field-class");
        put_type(w, t->u.fields[i].type, t->u.fields[i].shown);
        json_end_object(j);
    }
    json_end_array(j);
}

static void put_variant(struct translation *w, const struct ctf_type *t)
{
    const struct ctf_type *tag = ctf_variant_tag(t);
    const struct ctf_choice *choices;
    uint32_t n = ctf_variant_choices(t, &choices);
    bool is_signed = (tag->kind == CTF_ENUM ? tag->u.enumeration.container : tag)->is_signed;
    struct json *j = &w->j;
    json_kv_string(j, "type", "variant");
    put_location(w, "selector-field-location", t->tag);
    json_key(j, "options");
    json_array(j);
    for (uint32_t i = 0; i < t->n; i++) {
        json_object(j);
        json_kv_string(j, "name", bare(t->u.fields[i].name));
        json_key(j, "selector-field-ranges");
        json_array(j);
        for (uint32_t k = 0; k < n; k++)
            if (choices[k].option == i)
                put_range(j, is_signed, choices[k].lo, choices[k].hi);
        json_end_array(j);
        json_key(j, "field-class");
        put_type(w, t->u.fields[i].type, NULL);
        json_end_object(j);
    }
    json_end_array(j);
}

/* `name`: of the member that it is, or NULL. */
static void put_type(struct translation *w, const struct ctf_type *t, const char *name)
{
    json_object(&w->j);
    switch (t->kind) {
    case CTF_STRING: json_kv_string(&w->j, "type", "null-terminated-string"); break;
    case CTF_STRUCT: put_struct(w, t); break;
    case CTF_VARIANT: put_variant(w, t); break;
    case CTF_ARRAY:
    case CTF_SEQUENCE: put_list(w, t, name); break;
    default: put_number(w, t, name);
    }
    json_end_object(&w->j);
}

static void put_scope(struct translation *w, const char *key, enum ctf_scope scope, const struct ctf_type *t)
{
    if (!t)
        return;
    json_key(&w->j, key);
    w->scope = scope;
    put_type(w, t, NULL);
}

/* ---- fragments ---- */

static void begin_fragment(struct translation *w, const char *type)
{
    TEXT_PUT(w->j.out, "\x1e");
    w->j = JSON_TO(w->j.out);
    json_object(&w->j);
    json_kv_string(&w->j, "type", type);
}

static void end_fragment(struct translation *w)
{
    json_end_object(&w->j);
    TEXT_PUT(w->j.out, "\n");
}

static void put_preamble(struct translation *w)
{
    begin_fragment(w, "preamble");
    json_kv_u64(&w->j, "version", 2);
    if (w->md->has_uuid) {
        json_key(&w->j, "uuid");
        json_array(&w->j);
        for (int i = 0; i < 16; i++)
            json_u64(&w->j, w->md->uuid[i]);
        json_end_array(&w->j);
    }
    end_fragment(w);
}

static void put_trace_class(struct translation *w)
{
    begin_fragment(w, "trace-class");
    json_key(&w->j, "environment");
    json_object(&w->j);
    for (size_t i = 0; i < w->md->n_env; i++) {
        const struct ctf_env *v = &w->md->env[i];
        if (v->is_string)
            json_kv_string(&w->j, v->name, v->string);
        else
            json_kv_i64(&w->j, v->name, v->number);
    }
    json_end_object(&w->j);
    const struct ctf_type *scopes[CTF_SCOPES] = {w->md->schema->packet_header};
    w->scopes = scopes;
    put_scope(w, "packet-header-field-class", CTF_PACKET_HEADER, w->md->schema->packet_header);
    end_fragment(w);
}

static void put_clock(struct translation *w, const struct ctf_clock *c)
{
    const uint8_t *u = c->uuid;
    begin_fragment(w, "clock-class");
    json_kv_string(&w->j, "id", c->name);
    json_kv_string(&w->j, "name", c->name);
    if (c->description)
        json_kv_string(&w->j, "description", c->description);
    if (c->has_uuid) {
        char uid[40];
        for (int i = 0, n = 0; i < 16; i++)
            n += snprintf(
                uid + n, sizeof uid - (size_t)n, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
        json_kv_string(&w->j, "uid", uid);
    }
    json_kv_u64(&w->j, "frequency", c->freq);
    json_kv_u64(&w->j, "precision", c->precision);
    json_kv_string(&w->j, "origin", "unix-epoch");
    json_key(&w->j, "offset-from-origin");
    json_object(&w->j);
    json_kv_i64(&w->j, "seconds", c->offset_s + (int64_t)(c->offset / c->freq));
    json_kv_u64(&w->j, "cycles", c->offset % c->freq);
    json_end_object(&w->j);
    end_fragment(w);
}

static void put_stream(struct translation *w, const struct ctf_stream_class *sc)
{
    const struct ctf_type *scopes[CTF_SCOPES] = {
        w->md->schema->packet_header, sc->packet_context, sc->event_header, sc->event_context};
    w->scopes = scopes;
    begin_fragment(w, "data-stream-class");
    json_kv_u64(&w->j, "id", sc->id);
    if (sc->clock >= 0 && w->md->clock_of[sc->clock] >= 0)
        json_kv_string(&w->j, "default-clock-class-id", w->md->clocks[w->md->clock_of[sc->clock]].name);
    put_scope(w, "packet-context-field-class", CTF_PACKET_CONTEXT, sc->packet_context);
    put_scope(w, "event-record-header-field-class", CTF_EVENT_HEADER, sc->event_header);
    put_scope(w, "event-record-common-context-field-class", CTF_STREAM_EVENT_CONTEXT, sc->event_context);
    end_fragment(w);
}

static void put_attributes(struct translation *w, const struct ctf_event_class *c)
{
    static const char *const levels[] = {"emergency", "alert", "critical", "error", "warning", "notice", "info",
        "debug:system", "debug:program", "debug:process", "debug:module", "debug:unit", "debug:function", "debug:line",
        "debug"};
    bool has_level = c->loglevel >= 0 && (size_t)c->loglevel < sizeof levels / sizeof *levels;
    if (!has_level && !c->model_uri)
        return;
    json_key(&w->j, "attributes");
    json_object(&w->j);
    json_key(&w->j, "lttng.org,2009");
    json_object(&w->j);
    if (has_level)
        json_kv_string(&w->j, "log-level", levels[c->loglevel]);
    if (c->model_uri)
        json_kv_string(&w->j, "emf-uri", c->model_uri);
    json_end_object(&w->j);
    json_end_object(&w->j);
}

static void put_event(struct translation *w, const struct ctf_event_class *c)
{
    w->scopes = c->scope;
    begin_fragment(w, "event-record-class");
    json_kv_u64(&w->j, "id", c->id);
    json_kv_u64(&w->j, "data-stream-class-id", c->stream_id);
    json_kv_string(&w->j, "name", c->name);
    put_attributes(w, c);
    put_scope(w, "specific-context-field-class", CTF_EVENT_CONTEXT, c->scope[CTF_EVENT_CONTEXT]);
    put_scope(w, "payload-field-class", CTF_PAYLOAD, c->scope[CTF_PAYLOAD]);
    end_fragment(w);
}

int ctf2_metadata_from(const char *tsdl, size_t n, struct text *out, struct err *e)
{
    struct ctf_metadata md;
    int r = ctf_metadata_parse("metadata", tsdl, n, NULL, &md, e);
    if (r != ERR_OK)
        return r;
    struct translation w = {.md = &md, .j = JSON_TO(out)};
    put_preamble(&w);
    put_trace_class(&w);
    for (size_t i = 0; i < md.n_clocks; i++)
        put_clock(&w, &md.clocks[i]);
    for (size_t i = 0; i < md.schema->n_streams; i++)
        put_stream(&w, &md.schema->streams[i]);
    for (size_t i = 2; i < md.schema->n_classes; i++) /* 0 and 1: losses */
        put_event(&w, md.schema->classes[i]);
    ctf_metadata_fini(&md, NULL);
    return w.failed ? err_set(e, ERR_UNSUPPORTED, "a length or tag that CTF 2 has no path to") : ERR_OK;
}

int ctf2_metadata_replace(const char *path, struct err *e)
{
    struct file_map map;
    struct text out = {.fd = -1};
    int r = file_map_open(path, &map, e);
    if (r != ERR_OK)
        return r;
    r = ctf2_metadata_from((const char *)map.data, map.size, &out, e);
    file_map_close(&map);
    FILE *f = r == ERR_OK ? fopen(path, "wb") : NULL;
    if (r == ERR_OK && (!f || fwrite(out.v, 1, out.n, f) != out.n || fclose(f) != 0))
        r = err_sys(e, "cannot write %s", path);
    text_fini(&out);
    return r;
}
