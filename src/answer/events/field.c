/* SPDX-License-Identifier: MIT */
#include "events/field.h"

#include <stdio.h>

static bool is_int(const struct ctf_type *t)
{
    return t->kind == CTF_INT || t->kind == CTF_ENUM;
}

const struct ctf_type *events_integer_type(const struct ctf_type *t)
{
    return t->kind == CTF_ENUM && t->u.enumeration.container ? t->u.enumeration.container : t;
}

static bool is_text(const struct ctf_type *t)
{
    if (t->kind == CTF_STRING)
        return true;
    if (t->kind != CTF_ARRAY && t->kind != CTF_SEQUENCE)
        return false;
    const struct ctf_type *element = t->u.list.element;
    return element->kind == CTF_INT && element->is_text && element->size_bits == 8 && element->align_bits == 8;
}

/* Values that only a visitor gets: floats, and texts that are converted. */
static bool is_walked(const struct ctf_type *t)
{
    return t->kind == CTF_FLOAT || t->kind == CTF_WIDE || (is_text(t) && t->encoding != CTF_UTF8);
}

/* Tries `path` in one scope; `name` is the part behind "fields." or "ctx.". */
static bool bind_in(const struct ctf_event_class *cls, enum ctf_scope scope, const char *name, struct event_field *out)
{
    char base[256];
    size_t n = strlen(name);
    if (n >= sizeof base)
        return false;
    if (ctf_access_find(cls, scope, name, &out->access)) {
        const struct ctf_type *t = out->access.type;
        out->path = name;
        out->how = is_int(t) ? EVENT_FIELD_INT
            : is_walked(t)   ? EVENT_FIELD_WALK
            : is_text(t)     ? EVENT_FIELD_STRING
                             : EVENT_FIELD_COMPOUND;
        return true;
    }
    const char *dot = strrchr(name, '.');
    if (dot && (strcmp(dot, ".label") == 0 || strcmp(dot, ".value") == 0)) {
        memcpy(base, name, (size_t)(dot - name));
        base[dot - name] = '\0';
        if (ctf_access_find(cls, scope, base, &out->access) && out->access.type->kind == CTF_ENUM) {
            out->how = dot[1] == 'l' ? EVENT_FIELD_LABEL : EVENT_FIELD_INT;
            return true;
        }
    }
    size_t list = strcspn(name, "[");
    if (name[list]) {
        memcpy(base, name, list);
        base[list] = '\0';
        if (ctf_access_find(cls, scope, base, &out->access)) {
            out->how = EVENT_FIELD_WALK;
            out->path = name;
            return true;
        }
    }
    return false;
}

void events_field_bind(const struct ctf_event_class *cls, const char *path, struct event_field *out)
{
    static const enum ctf_scope contexts[] = {CTF_EVENT_CONTEXT, CTF_STREAM_EVENT_CONTEXT, CTF_PACKET_CONTEXT};
    bool only_fields = strncmp(path, "fields.", 7) == 0, only_context = strncmp(path, "ctx.", 4) == 0;
    const char *name = path + (only_fields ? 7 : only_context ? 4 : 0);
    *out = (struct event_field){.how = EVENT_FIELD_ABSENT};
    if (!only_context && cls->scope[CTF_PAYLOAD] && bind_in(cls, CTF_PAYLOAD, name, out))
        return;
    for (size_t i = 0; i < 3 && !only_fields; i++)
        if (cls->scope[contexts[i]] && bind_in(cls, contexts[i], name, out))
            return;
    *out = (struct event_field){.how = EVENT_FIELD_ABSENT};
}

/* ---- walking ---- */

enum { MOST_LEVELS = 32 }; /* what is nested deeper is not looked at */

struct field_walk {
    const char *want;
    struct expr_value *out;
    unsigned depth;
    struct {
        size_t length;
        bool is_list, is_optional;
        uint64_t next;
    } level[MOST_LEVELS];
    char path[512];
};

/* Appends the item's own step to the path of its container, whose level is kept; returns the new length. */
static size_t add_step(struct field_walk *w, const struct ctf_value *v)
{
    if (w->depth > MOST_LEVELS)
        return 0;
    size_t at = w->depth ? w->level[w->depth - 1].length : 0;
    if (at + 32 >= sizeof w->path || (w->depth && w->level[w->depth - 1].is_optional))
        return at;
    if (w->depth && w->level[w->depth - 1].is_list)
        return at +
            (size_t)snprintf(
                w->path + at, sizeof w->path - at, "[%llu]", (unsigned long long)w->level[w->depth - 1].next++);
    int n = v->name ? snprintf(w->path + at, sizeof w->path - at, "%s%s", at ? "." : "", v->name) : 0;
    return at + ((size_t)n < sizeof w->path - at ? (size_t)n : 0);
}

static void walk_begin(void *arg, const struct ctf_value *v)
{
    struct field_walk *w = arg;
    if (w->depth < MOST_LEVELS) {
        size_t n = add_step(w, v);
        w->level[w->depth].length = n;
        w->level[w->depth].is_list = v->type->kind == CTF_ARRAY || v->type->kind == CTF_SEQUENCE;
        w->level[w->depth].is_optional = v->type->is_optional;
        w->level[w->depth].next = 0;
    }
    w->depth++;
}

static void walk_end(void *arg, const struct ctf_value *v)
{
    struct field_walk *w = arg;
    w->depth--;
}

/* Copies a text that the visitor has for this call only. The last four of a thread are kept, up to KEPT_BYTES of each:
 * an expression compares two. */
static const char *keep_text(const char *s, size_t *n)
{
    enum { KEPT = 4, KEPT_BYTES = 4096 };
    static _Thread_local char kept[KEPT][KEPT_BYTES];
    static _Thread_local unsigned next;
    char *to = kept[next++ % KEPT];
    *n = *n < KEPT_BYTES ? *n : KEPT_BYTES;
    return memcpy(to, s, *n);
}

static void walk_leaf(void *arg, const struct ctf_value *v)
{
    struct field_walk *w = arg;
    if (w->depth > MOST_LEVELS)
        return;
    size_t n = add_step(w, v);
    w->path[n] = '\0';
    if (w->out->type != EXPR_ABSENT || strcmp(w->path, w->want) != 0)
        return;
    if (is_int(v->type))
        *w->out = (struct expr_value){
            .type = EXPR_INT, .i = v->v.i, .is_unsigned = !events_integer_type(v->type)->is_signed};
    else if (v->type->kind == CTF_FLOAT)
        *w->out = (struct expr_value){.type = EXPR_FLOAT, .f = v->v.f};
    else {
        size_t bytes = v->len;
        const char *s = is_walked(v->type) ? keep_text(v->s, &bytes) : v->s;
        *w->out = (struct expr_value){.type = EXPR_STRING, .s = s, .n = bytes};
    }
}

/* ---- values ---- */

const char *events_label(const struct ctf_type *t, int64_t v)
{
    bool is_signed = events_integer_type(t)->is_signed;
    for (uint32_t i = 0; i < t->n; i++) {
        const struct ctf_range *r = &t->u.enumeration.ranges[i];
        if (is_signed ? v >= r->lo && v <= r->hi : (uint64_t)v >= (uint64_t)r->lo && (uint64_t)v <= (uint64_t)r->hi)
            return r->label;
    }
    return NULL;
}

void events_field_get(const struct event_field *f, const struct ctf_event *ev, struct expr_value *out)
{
    *out = (struct expr_value){.type = EXPR_ABSENT};
    switch (f->how) {
    case EVENT_FIELD_INT:
    case EVENT_FIELD_LABEL: {
        bool present = true;
        int64_t v = f->access.mode == 1 ? ctf_read_int(ev, &f->access) : ctf_read_slow(ev, &f->access, &present);
        if (!present)
            return;
        if (f->how == EVENT_FIELD_INT) {
            *out = (struct expr_value){
                .type = EXPR_INT, .i = v, .is_unsigned = !events_integer_type(f->access.type)->is_signed};
            return;
        }
        const char *label = events_label(f->access.type, v);
        if (label)
            *out = (struct expr_value){.type = EXPR_STRING, .s = label, .n = strlen(label)};
        return;
    }
    case EVENT_FIELD_STRING: {
        size_t n;
        const char *s = ctf_read_string(ev, &f->access, &n);
        if (s)
            *out = (struct expr_value){.type = EXPR_STRING, .s = s, .n = n};
        return;
    }
    case EVENT_FIELD_WALK: {
        struct field_walk w = {.want = f->path, .out = out};
        ctf_visit(ev, (enum ctf_scope)f->access.scope, &(struct ctf_visitor){walk_leaf, walk_begin, walk_end, &w});
        return;
    }
    case EVENT_FIELD_COMPOUND:
    case EVENT_FIELD_ABSENT: return;
    }
}
