/* SPDX-License-Identifier: MIT */
/* Fields of events: found once per class, read per event; and the generic walk. The decoder has checked that its events
 * fit their packet. So a walk over the same bytes needs no bounds: it ends where the decoder ended. */
#include <stdlib.h>

#include "ctf/decode.h"
#include "ctf/wide.h"

enum { CTF_DATA_DEPENDENT = INT32_MIN }; /* offset that is not constant */

const struct ctf_type *ctf_variant_tag(const struct ctf_type *t)
{
    return t->kind == CTF_VARIANT && t->tag ? t->tag->target : NULL;
}

uint32_t ctf_variant_choices(const struct ctf_type *t, const struct ctf_choice **out)
{
    bool has = t->kind == CTF_VARIANT && t->tag;
    *out = has ? t->tag->choices : NULL;
    return has ? t->tag->n_choices : 0;
}

/* ---- finding ---- */

static bool is(const char *s, const char *name, size_t n)
{
    return s && strlen(s) == n && !memcmp(s, name, n);
}

/* Returns the number of the field shown by this name, else of the field written so. t->n: none. */
static uint32_t field_named(const struct ctf_type *t, const char *name, size_t n)
{
    const struct ctf_field *f = t->u.fields;
    uint32_t i = 0;
    while (i < t->n && !is(f[i].shown, name, n))
        i++;
    if (i == t->n)
        for (i = 0; i < t->n && !is(f[i].name, name, n);)
            i++;
    return i;
}

enum { MOST_DEPTH = sizeof((struct ctf_access *)0)->path / sizeof(uint16_t) };

/* Returns the type within optionals, which have no names of their own. */
static const struct ctf_type *within_optional(const struct ctf_type *t, struct ctf_access *a)
{
    while (t->kind == CTF_VARIANT && t->is_optional && a->depth < MOST_DEPTH) {
        a->path[a->depth++] = 0;
        t = t->u.fields[0].type;
    }
    return t;
}

/* Finds the longest matching name, since names of CTF 2 may have dots. */
static size_t longest_name(const struct ctf_type *t, const char *path, uint32_t *i)
{
    for (size_t n = strlen(path); n > 0; n--)
        if (path[n] == '.' || path[n] == '\0') {
            *i = field_named(t, path, n);
            if (*i < t->n)
                return n;
        }
    return 0;
}

static bool find_path(const struct ctf_type *t, const char *path, struct ctf_access *a)
{
    a->depth = 0;
    while (*path) {
        uint32_t i = 0;
        t = within_optional(t, a);
        if ((t->kind != CTF_STRUCT && t->kind != CTF_VARIANT) || a->depth == MOST_DEPTH)
            return false;
        size_t n = strcspn(path, ".");
        i = field_named(t, path, n);
        if (i == t->n)
            n = path[n] ? longest_name(t, path, &i) : 0;
        if (n == 0 || i > UINT16_MAX)
            return false;
        a->path[a->depth++] = (uint16_t)i;
        t = t->u.fields[i].type;
        path += n + (path[n] == '.');
    }
    a->type = within_optional(t, a);
    return a->depth > 0;
}

static uint64_t align_up(uint64_t pos, uint64_t bits)
{
    return (pos + bits - 1) & ~(bits - 1);
}

/* Returns the bits from the scope's aligned start to the field, or -1. */
static int64_t place_in_scope(const struct ctf_type *t, const struct ctf_access *a)
{
    uint64_t pos = 0;
    for (unsigned d = 0; d < a->depth; d++) {
        if (t->kind != CTF_STRUCT)
            return -1;
        for (uint32_t i = 0; i <= a->path[d]; i++) {
            const struct ctf_type *f = t->u.fields[i].type;
            pos = align_up(pos, f->align_bits);
            if (i == a->path[d])
                break;
            if (f->size_bits < 0)
                return -1;
            pos += (uint64_t)f->size_bits;
            if (pos > INT32_MAX / 2)
                return -1;
        }
        t = t->u.fields[a->path[d]].type;
    }
    return (int64_t)pos;
}

/* Returns the bits from the start of a context to the payload if they are the same for all events, or -1. They are if
 * everything between has a fixed size, and no later scope has a stricter alignment than the earlier one's start and
 * size guarantee. */
static int64_t scope_to_payload(const struct ctf_event_class *cls, enum ctf_scope scope)
{
    const struct ctf_type *t = cls->scope[scope];
    uint64_t pos = 0, align = t->align_bits;
    for (int s = scope; s < CTF_PAYLOAD; s++) {
        const struct ctf_type *now = cls->scope[s], *next = cls->scope[s + 1];
        if (now) {
            if (now->size_bits < 0 || now->size_bits > INT32_MAX / 4)
                return -1;
            pos += (uint64_t)now->size_bits;
        }
        if (next) {
            if (next->align_bits > align)
                return -1;
            pos = align_up(pos, next->align_bits);
        }
    }
    return (int64_t)pos;
}

bool ctf_access_find(const struct ctf_event_class *cls, enum ctf_scope scope, const char *path, struct ctf_access *out)
{
    *out = (struct ctf_access){.cls = cls, .scope = (uint8_t)scope, .offset_bits = CTF_DATA_DEPENDENT};
    const struct ctf_type *top = scope < CTF_SCOPES ? cls->scope[scope] : NULL;
    if (!top || !cls->layout || !find_path(top, path, out))
        return false;
    const struct ctf_type *b = ctf_type_bits(out->type);
    bool number = out->type->kind == CTF_INT || out->type->kind == CTF_ENUM;
    out->mode = 3;
    out->is_signed = number && b->is_signed;
    int64_t at = scope >= CTF_STREAM_EVENT_CONTEXT ? place_in_scope(top, out) : -1;
    int64_t back = at < 0 || scope == CTF_PAYLOAD ? 0 : scope_to_payload(cls, scope);
    if (at < 0 || back < 0)
        return true;
    out->offset_bits = (int32_t)(at - back);
    uint32_t payload_align = cls->scope[CTF_PAYLOAD] ? cls->scope[CTF_PAYLOAD]->align_bits : 1;
    bool whole = number && (b->size_bits == 8 || b->size_bits == 16 || b->size_bits == 32 || b->size_bits == 64);
    if (whole && payload_align >= 8 && out->offset_bits % 8 == 0 && !b->is_reversed && b->look != CTF_LOOK_BOOL) {
        out->mode = b->big_endian && b->size_bits > 8 ? 2 : 1;
        out->bytes = (uint8_t)(b->size_bits / 8);
        out->offset_bytes = out->offset_bits / 8;
    }
    return true;
}

/* ---- walking ---- */

struct field_walk {
    struct ctf_run run;
    uint64_t slots[CTF_SLOTS];
    const struct ctf_event *ev;
    const struct ctf_visitor *visitor; /* NULL: compute positions only */
    uint64_t empty;                    /* limit of further elements without bits to show */
    char part[512];                    /* buffer for a converted text or a wide value */
    struct text text;                  /* buffer for longer ones */
};

static void walk_init(struct field_walk *w, const struct ctf_event *ev, const struct ctf_visitor *v)
{
    w->run.data = ev->data;
    w->run.end = UINT64_MAX / 2;
    w->run.slots = w->slots;
    memset(w->slots, 0, sizeof w->slots);
    w->run.seen = 0;
    w->run.cycles = 0;
    w->run.unset = 0;
    w->run.order = 0;
    w->text = (struct text){.fd = -1};
    w->ev = ev;
    w->visitor = v;
    w->empty = UINT16_MAX;
}

/* Returns the start of a scope, and reads the slots of all earlier scopes that it or they refer to. */
static uint64_t scope_start(struct field_walk *w, enum ctf_scope scope)
{
    const struct ctf_event *ev = w->ev;
    const struct ctf_event_class *cls = ev->cls;
    const struct ctf_layout *l = cls->layout;
    const struct ctf_stream_plan *p = l->plan;
    uint64_t pos = 0;
    if (scope == CTF_PACKET_HEADER)
        return 0;
    bool packet_slots = l->packet_slots || (scope == CTF_EVENT_HEADER && p->header_refers);
    if ((packet_slots || scope == CTF_PACKET_CONTEXT) && p->packet_header)
        pos = ctf_program_run(p->packet_header, &w->run, 0);
    if (scope == CTF_PACKET_CONTEXT || CTF_RUN_FAILED(pos))
        return pos;
    if (packet_slots && p->packet_context)
        ctf_program_run(p->packet_context, &w->run, pos);
    if (scope == CTF_EVENT_HEADER)
        return ev->payload_bits - ev->header_back;
    w->run.order = 0; /* byte order of the previous event: unknown here */
    if (l->header_slots && p->event_header)
        ctf_program_run(p->event_header, &w->run, ev->payload_bits - ev->header_back);
    return ev->payload_bits - ev->context_back;
}

static uint64_t value_of(struct field_walk *w, const struct ctf_type *t, uint64_t pos, uint64_t *bits)
{
    const struct ctf_type *b = ctf_type_bits(t);
    uint64_t v = ctf_int_at(b, w->ev->data, pos, bits);
    uint32_t slot = t->slot ? t->slot : b->slot;
    if (slot)
        w->slots[slot] = v;
    return v;
}

static const struct ctf_field *chosen(const struct field_walk *w, const struct ctf_type *t)
{
    uint64_t tag = w->slots[t->tag->slot];
    bool is_signed = ctf_type_bits(t->tag->target)->is_signed;
    for (uint32_t i = 0; i < t->tag->n_choices; i++) {
        const struct ctf_choice *c = &t->tag->choices[i];
        if (is_signed ? (int64_t)tag >= c->lo && (int64_t)tag <= c->hi
                      : tag >= (uint64_t)c->lo && tag <= (uint64_t)c->hi)
            return &t->u.fields[c->option];
    }
    return NULL;
}

static uint64_t list_length(const struct field_walk *w, const struct ctf_type *t)
{
    return t->kind == CTF_ARRAY ? t->n : w->slots[t->u.list.length->slot];
}

static bool is_text_list(const struct ctf_type *t)
{
    const struct ctf_type *el = t->u.list.element;
    return el->kind == CTF_INT && el->is_text && el->size_bits == 8 && el->align_bits >= 8;
}

static uint64_t walk_type(struct field_walk *w, const struct ctf_type *t, const char *name, uint64_t pos);

static uint64_t stride_of(const struct ctf_type *el)
{
    return align_up((uint64_t)el->size_bits, el->align_bits);
}

/* Converts UTF-16 or UTF-32 text to UTF-8 for the visitor. */
static void convert(
    struct field_walk *w, const struct ctf_type *t, const uint8_t *s, uint64_t bytes, struct ctf_value *value)
{
    const uint8_t *p = s;
    uint64_t left = bytes;
    value->s = w->part;
    value->len = wide_utf8_part((enum ctf_encoding)t->encoding, &p, &left, w->part, sizeof w->part);
    if (left == 0)
        return;
    w->text.n = 0;
    wide_utf8(&w->text, (enum ctf_encoding)t->encoding, s, bytes);
    value->s = w->text.v;
    value->len = w->text.n;
}

static uint64_t walk_list(struct field_walk *w, const struct ctf_type *t, const char *name, uint64_t pos)
{
    const struct ctf_type *el = t->u.list.element;
    uint64_t n = list_length(w, t);
    const struct ctf_visitor *v = w->visitor;
    if (n)
        pos = align_up(pos, el->align_bits);
    if (v && is_text_list(t)) {
        const char *s = (const char *)w->ev->data + (pos >> 3);
        struct ctf_value value = {.type = t, .name = name, .s = s, .len = 0};
        if (t->encoding == CTF_UTF8)
            value.len = strnlen(s, n);
        else
            convert(w, t, (const uint8_t *)s, n, &value);
        v->leaf(v->arg, &value);
        return pos + n * 8;
    }
    if (!v && el->size_bits >= 0 && (el->kind == CTF_INT || el->kind == CTF_ENUM || el->kind == CTF_FLOAT) && !el->slot)
        return n ? pos + (n - 1) * stride_of(el) + (uint64_t)el->size_bits : pos;
    if (v) {
        struct ctf_value value = {.type = t, .name = name, .len = n};
        v->begin(v->arg, &value);
    }
    for (uint64_t i = 0; i < n; i++) {
        uint64_t next = walk_type(w, el, NULL, pos);
        if (next == pos) { /* empty elements: their number may be billions, so only some are shown */
            if (w->empty == 0)
                break;
            w->empty--;
        }
        pos = next;
    }
    if (v) {
        struct ctf_value value = {.type = t, .name = name, .len = n};
        v->end(v->arg, &value);
    }
    return pos;
}

static uint64_t walk_fields(struct field_walk *w, const struct ctf_type *t, const char *name, uint64_t pos)
{
    const struct ctf_visitor *v = w->visitor;
    struct ctf_value value = {.type = t, .name = name};
    if (v)
        v->begin(v->arg, &value);
    if (t->kind == CTF_STRUCT) {
        for (uint32_t i = 0; i < t->n; i++)
            pos = walk_type(w, t->u.fields[i].type, t->u.fields[i].shown, pos);
    } else {
        const struct ctf_field *f = chosen(w, t);
        if (f)
            pos = walk_type(w, f->type, f->shown, pos);
    }
    if (v)
        v->end(v->arg, &value);
    return pos;
}

static double float_of(const struct field_walk *w, const struct ctf_type *t, uint64_t pos)
{
    return wide_float(t, w->ev->data, pos);
}

/* Passes the value as text. Memory is allocated only if the text may be long. */
static void show_wide(struct field_walk *w, const struct ctf_type *t, uint64_t pos, struct ctf_value *value)
{
    uint64_t digits = (uint64_t)t->size_bits / (t->base == 2 ? 1 : 3);
    struct text part = {.v = w->part, .cap = sizeof w->part, .fd = -1};
    struct text *out = digits + 8 <= sizeof w->part ? &part : &w->text;
    out->n = 0;
    wide_bits(out, t, w->ev->data, pos, false);
    value->s = out->v;
    value->len = out->n;
}

static uint64_t walk_leaf(struct field_walk *w, const struct ctf_type *t, const char *name, uint64_t pos)
{
    const struct ctf_visitor *v = w->visitor;
    struct ctf_value value = {.type = t, .name = name};
    uint64_t end;
    if (t->kind == CTF_STRING) {
        pos = align_up(pos, 8);
        value.s = (const char *)w->ev->data + (pos >> 3);
        value.len = t->encoding ? wide_string_bytes((enum ctf_encoding)t->encoding, w->ev->data + (pos >> 3))
                                : strlen(value.s) + 1;
        end = pos + value.len * 8;
        value.len--;
        if (v && t->encoding)
            convert(w, t, w->ev->data + (pos >> 3), value.len + 1, &value);
    } else if (t->kind == CTF_WIDE) {
        end = pos + (uint64_t)t->size_bits;
        if (v)
            show_wide(w, t, pos, &value);
    } else if (t->kind == CTF_FLOAT) {
        if (v)
            value.v.f = float_of(w, t, pos);
        end = pos + (uint64_t)t->size_bits;
    } else {
        pos = align_up(pos, ctf_type_bits(t)->align_bits);
        uint64_t bits;
        value.v.u = value_of(w, t, pos, &bits);
        end = pos + bits;
    }
    if (v)
        v->leaf(v->arg, &value);
    return end;
}

/* Returns the bit after the value. */
static uint64_t walk_type(struct field_walk *w, const struct ctf_type *t, const char *name, uint64_t pos)
{
    pos = align_up(pos, t->align_bits);
    switch (t->kind) {
    case CTF_STRUCT:
    case CTF_VARIANT: return walk_fields(w, t, name, pos);
    case CTF_ARRAY:
    case CTF_SEQUENCE: return walk_list(w, t, name, pos);
    default: return walk_leaf(w, t, name, pos);
    }
}

static uint64_t walk_to_scope(struct field_walk *w, enum ctf_scope scope)
{
    const struct ctf_visitor *v = w->visitor;
    uint64_t pos = scope_start(w, scope);
    w->visitor = NULL;
    for (int s = CTF_STREAM_EVENT_CONTEXT; s < (int)scope; s++)
        if (w->ev->cls->scope[s])
            pos = walk_type(w, w->ev->cls->scope[s], NULL, pos);
    w->visitor = v;
    return pos;
}

void ctf_visit(const struct ctf_event *ev, enum ctf_scope scope, const struct ctf_visitor *v)
{
    struct field_walk w;
    const struct ctf_type *t = scope < CTF_SCOPES ? ev->cls->scope[scope] : NULL;
    if (!t || !ev->cls->layout || ev->cls->item != CTF_EVENT)
        return;
    walk_init(&w, ev, v);
    uint64_t pos = walk_to_scope(&w, scope);
    if (!CTF_RUN_FAILED(pos))
        walk_type(&w, t, NULL, pos);
    if (w.text.v)
        text_fini(&w.text);
}

/* ---- reading ---- */

/* Cache of each thread: position of the last compound, and the slots on the way to it. Fields of the same compound of
 * the same event are usually read one after another. */
struct last_field {
    struct field_walk w;
    unsigned generation; /* packets' memory is reused: a later packet may lie at the address of the event */
    const uint8_t *data;
    uint64_t payload_bits, pos;
    const struct ctf_event_class *cls;
    uint8_t scope, depth;
    uint16_t path[8];
};
static _Thread_local struct last_field last;

static bool is_last(const struct ctf_event *ev, const struct ctf_access *a)
{
    return last.generation == atomic_load_explicit(&ctf_decoder_generation, memory_order_relaxed) &&
        last.data == ev->data && last.payload_bits == ev->payload_bits && last.cls == ev->cls &&
        last.scope == a->scope && last.depth + 1 == a->depth &&
        !memcmp(last.path, a->path, last.depth * sizeof a->path[0]);
}

/* Moves from an aligned struct (or a variant) to its field number `field`; false if a variant holds another. */
static bool step(struct field_walk *w, const struct ctf_type *t, uint16_t field, uint64_t *pos)
{
    *pos = align_up(*pos, t->align_bits);
    if (t->kind == CTF_VARIANT)
        return chosen(w, t) == &t->u.fields[field];
    for (uint16_t i = 0; i < field; i++) {
        const struct ctf_type *f = t->u.fields[i].type;
        bool plain = f->size_bits >= 0 && (f->kind == CTF_FLOAT || f->kind == CTF_INT || f->kind == CTF_ENUM) &&
            !f->slot && !ctf_type_bits(f)->slot;
        *pos = plain ? align_up(*pos, f->align_bits) + (uint64_t)f->size_bits : walk_type(w, f, NULL, *pos);
    }
    return true;
}

/* Returns the bit of the field, aligned; UINT64_MAX if a variant holds another option. Leaves the slots in last.w. */
static uint64_t locate(const struct ctf_event *ev, const struct ctf_access *a)
{
    const struct ctf_type *t = ev->cls->scope[a->scope];
    unsigned container = a->depth - 1u;
    uint64_t pos;
    if (is_last(ev, a)) {
        pos = last.pos;
        for (unsigned d = 0; d < container; d++)
            t = t->u.fields[a->path[d]].type;
    } else {
        last.data = NULL;
        walk_init(&last.w, ev, NULL);
        pos = walk_to_scope(&last.w, (enum ctf_scope)a->scope);
        if (CTF_RUN_FAILED(pos))
            return UINT64_MAX;
        for (unsigned d = 0; d < container; d++) {
            if (!step(&last.w, t, a->path[d], &pos))
                return UINT64_MAX;
            t = t->u.fields[a->path[d]].type;
        }
        last.generation = atomic_load_explicit(&ctf_decoder_generation, memory_order_relaxed);
        last.data = ev->data;
        last.payload_bits = ev->payload_bits;
        last.cls = ev->cls;
        last.scope = a->scope;
        last.depth = (uint8_t)container;
        memcpy(last.path, a->path, sizeof last.path);
        last.pos = pos;
    }
    last.w.ev = ev;
    last.w.run.data = ev->data;
    if (!step(&last.w, t, a->path[container], &pos))
        return UINT64_MAX;
    return align_up(pos, a->type->align_bits);
}

int64_t ctf_read_slow(const struct ctf_event *ev, const struct ctf_access *a, bool *present)
{
    *present = false;
    if (a->mode == 0 || a->cls != ev->cls || (a->type->kind != CTF_INT && a->type->kind != CTF_ENUM))
        return 0;
    const struct ctf_type *b = ctf_type_bits(a->type);
    uint64_t pos = a->offset_bits != CTF_DATA_DEPENDENT ? ev->payload_bits + (uint64_t)(int64_t)a->offset_bits
                                                        : locate(ev, a);
    if (pos == UINT64_MAX)
        return 0;
    *present = true;
    return (int64_t)ctf_int_at(b, ev->data, pos, &(uint64_t){0});
}

const char *ctf_read_string(const struct ctf_event *ev, const struct ctf_access *a, size_t *n)
{
    *n = 0;
    if (a->mode == 0 || a->cls != ev->cls ||
        (a->type->kind != CTF_STRING && a->type->kind != CTF_ARRAY && a->type->kind != CTF_SEQUENCE) ||
        a->type->encoding != CTF_UTF8)
        return NULL;
    bool fixed = a->offset_bits != CTF_DATA_DEPENDENT;
    if (fixed && a->type->kind == CTF_SEQUENCE) /* length in a slot: walk */
        fixed = false;
    uint64_t pos = fixed ? ev->payload_bits + (uint64_t)(int64_t)a->offset_bits : locate(ev, a);
    if (pos == UINT64_MAX)
        return NULL;
    const char *s = (const char *)ev->data + (pos >> 3);
    if (a->type->kind == CTF_STRING) {
        *n = strlen(s);
        return s;
    }
    const struct ctf_type *el = a->type->u.list.element;
    if (ctf_type_bits(el)->size_bits != 8 || pos & 7)
        return NULL;
    uint64_t count = a->type->kind == CTF_ARRAY ? a->type->n : list_length(&last.w, a->type);
    *n = is_text_list(a->type) ? strnlen(s, count) : count;
    return s;
}
