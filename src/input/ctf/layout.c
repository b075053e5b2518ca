/* SPDX-License-Identifier: MIT */
/* Compiles types into programs, and stream classes into plans with one table entry per event class. */
#include "ctf/layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

typedef VEC(struct ctf_op) op_vec;

struct layout_compiler {
    op_vec ops;
    struct arena *arena;
    enum ctf_scope scope;
    int32_t clock;
    bool failed;
};

static struct ctf_op *emit(struct layout_compiler *c, uint8_t code)
{
    struct ctf_op op = {.code = code};
    vec_push(&c->ops, op);
    return &c->ops.v[c->ops.n - 1];
}

/* ---- roles ---- */

static uint8_t packet_header_role(const char *name)
{
    if (!strcmp(name, "magic"))
        return CTF_ROLE_MAGIC;
    if (!strcmp(name, "stream_id"))
        return CTF_ROLE_STREAM_ID;
    if (!strcmp(name, "stream_instance_id"))
        return CTF_ROLE_INSTANCE_ID;
    return CTF_ROLE_NONE;
}

static uint8_t packet_context_role(const char *name)
{
    static const struct {
        const char *name;
        uint8_t role;
    } roles[] = {
        {"timestamp_begin", CTF_ROLE_BEGIN},
        {"timestamp_end", CTF_ROLE_END},
        {"content_size", CTF_ROLE_CONTENT_SIZE},
        {"packet_size", CTF_ROLE_PACKET_SIZE},
        {"packet_seq_num", CTF_ROLE_SEQUENCE},
        {"events_discarded", CTF_ROLE_DISCARDED},
        {"cpu_id", CTF_ROLE_CPU},
    };
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        if (!strcmp(name, roles[i].name))
            return roles[i].role;
    return CTF_ROLE_NONE;
}

static uint8_t role_of(const struct layout_compiler *c, const char *name, const struct ctf_type *t, unsigned depth)
{
    if (t->kind != CTF_INT && t->kind != CTF_ENUM)
        return CTF_ROLE_NONE;
    uint8_t role = CTF_ROLE_NONE;
    if (c->scope == CTF_PACKET_HEADER && depth == 1 && name)
        role = packet_header_role(name);
    if (c->scope == CTF_PACKET_CONTEXT && depth == 1 && name)
        role = packet_context_role(name);
    if (!role && c->clock >= 0 && ctf_type_bits(t)->clock == c->clock)
        return CTF_ROLE_CLOCK;
    if (c->scope == CTF_EVENT_HEADER && name && !strcmp(name, "id"))
        return CTF_ROLE_ID;
    return role;
}

/* ---- programs ---- */

/* Holds it a number that the decoder must read: one that others refer to, or the clock? */
static bool is_read(const struct ctf_type *t, bool slots, int32_t clock)
{
    const struct ctf_type *b = ctf_type_bits(t);
    switch (t->kind) {
    case CTF_INT:
    case CTF_ENUM: return (slots && (t->slot || b->slot)) || (clock >= 0 && b->clock == clock);
    case CTF_STRUCT:
    case CTF_VARIANT:
        for (uint32_t i = 0; i < t->n; i++)
            if (is_read(t->u.fields[i].type, slots, clock))
                return true;
        return false;
    case CTF_ARRAY:
    case CTF_SEQUENCE: return is_read(t->u.list.element, slots, clock);
    default: return false;
    }
}

/* Consecutive skips whose position depends on nothing between them become one. */
static void emit_skip(struct layout_compiler *c, uint32_t align_bits, uint64_t bits)
{
    if (c->ops.n) {
        struct ctf_op *last = &c->ops.v[c->ops.n - 1];
        /* The position behind `last` is a multiple of the new alignment when last starts at one and has such a size. */
        if (last->code == CTF_OP_SKIP && last->align >= align_bits - 1 && !(last->n & (align_bits - 1)) &&
            bits <= INT64_MAX / 2 - last->n) {
            last->n += bits;
            return;
        }
    }
    if (align_bits > 1 || bits) {
        struct ctf_op *op = emit(c, CTF_OP_SKIP);
        op->align = align_bits - 1;
        op->n = bits;
    }
}

/* The target of a jump. It follows a VARIANT, JUMP or END, so a skip there is never merged into what lies before. */
static uint32_t here(const struct layout_compiler *c)
{
    return (uint32_t)c->ops.n;
}

static void compile(struct layout_compiler *c, const char *name, const struct ctf_type *t, unsigned depth);

static void compile_int(struct layout_compiler *c, const char *name, const struct ctf_type *t, unsigned depth)
{
    const struct ctf_type *b = ctf_type_bits(t);
    uint8_t role = role_of(c, name, t, depth);
    uint32_t slot = t->slot ? t->slot : b->slot;
    if (b->size_bits < 1 || b->size_bits > 64 || slot >= CTF_SLOTS) {
        c->failed = true;
        return;
    }
    uint32_t align = t->align_bits > b->align_bits ? t->align_bits : b->align_bits;
    if (!role && !slot) {
        emit_skip(c, align, (uint64_t)b->size_bits);
        return;
    }
    struct ctf_op *op = emit(c, CTF_OP_INT);
    op->align = align - 1;
    op->bits = (uint8_t)b->size_bits;
    op->is_signed = b->is_signed;
    op->big_endian = b->big_endian;
    op->slot = (uint8_t)slot;
    op->role = role;
}

static void compile_list(struct layout_compiler *c, const struct ctf_type *t, unsigned depth)
{
    const struct ctf_type *el = t->u.list.element;
    bool fixed = el->size_bits >= 0 && !is_read(el, true, c->clock);
    bool counted = t->kind == CTF_SEQUENCE;
    if (counted && (!t->u.list.length || t->u.list.length->slot == 0 || t->u.list.length->slot >= CTF_SLOTS)) {
        c->failed = true;
        return;
    }
    if (!counted && fixed && t->size_bits >= 0) {
        emit_skip(c, t->align_bits, 0);
        if (t->n)
            emit_skip(c, el->align_bits, (uint64_t)t->size_bits);
        return;
    }
    emit_skip(c, t->align_bits, 0);
    struct ctf_op *op = emit(c, fixed ? CTF_OP_LIST : CTF_OP_LOOP);
    op->counted = counted;
    op->slot = counted ? (uint8_t)t->u.list.length->slot : 0;
    op->count = t->n;
    if (fixed) {
        uint64_t mask = el->align_bits - 1;
        op->align = (uint32_t)mask;
        op->size = (uint64_t)el->size_bits;
        op->n = (op->size + mask) & ~mask;
        return;
    }
    size_t at = c->ops.n - 1;
    compile(c, NULL, el, depth + 1);
    emit(c, CTF_OP_END);
    c->ops.v[at].next = here(c);
}

static void compile_variant(struct layout_compiler *c, const struct ctf_type *t, unsigned depth)
{
    const struct ctf_ref *tag = t->tag;
    if (!tag || tag->slot == 0 || tag->slot >= CTF_SLOTS || t->n == 0) {
        c->failed = true;
        return;
    }
    uint32_t *targets = arena_new(c->arena, uint32_t, t->n);
    size_t *jumps = mem_alloc(sizeof *jumps * t->n);
    struct ctf_op *op = emit(c, CTF_OP_VARIANT);
    op->slot = (uint8_t)tag->slot;
    op->is_signed = ctf_type_bits(tag->target)->is_signed;
    op->choices = tag->choices;
    op->n_choices = tag->n_choices;
    op->targets = targets;
    for (uint32_t i = 0; i < tag->n_choices; i++)
        if (tag->choices[i].option >= t->n)
            c->failed = true;
    for (uint32_t i = 0; i < t->n && !c->failed; i++) {
        targets[i] = here(c);
        compile(c, t->u.fields[i].name, t->u.fields[i].type, depth + 1);
        jumps[i] = c->ops.n;
        emit(c, CTF_OP_JUMP);
    }
    for (uint32_t i = 0; i < t->n && !c->failed; i++)
        c->ops.v[jumps[i]].next = here(c);
    free(jumps);
}

static void compile_struct(struct layout_compiler *c, const struct ctf_type *t, unsigned depth)
{
    emit_skip(c, t->align_bits, 0);
    for (uint32_t i = 0; i < t->n; i++) {
        const struct ctf_field *f = &t->u.fields[i];
        if (c->scope == CTF_PACKET_HEADER && depth == 0 && !strcmp(f->name, "uuid") && f->type->kind == CTF_ARRAY &&
            f->type->n == 16 && f->type->size_bits == 128)
            emit(c, CTF_OP_UUID)->align = f->type->u.list.element->align_bits - 1;
        compile(c, f->name, f->type, depth + 1);
    }
}

static void compile(struct layout_compiler *c, const char *name, const struct ctf_type *t, unsigned depth)
{
    if (depth > CTF_DEPTH + 1 || c->ops.n > 1u << 20)
        c->failed = true;
    if (c->failed)
        return;
    switch (t->kind) {
    case CTF_INT:
    case CTF_ENUM: compile_int(c, name, t, depth); break;
    case CTF_FLOAT: emit_skip(c, t->align_bits, (uint64_t)t->size_bits); break;
    case CTF_STRING: emit(c, CTF_OP_STRING)->align = (t->align_bits > 8 ? t->align_bits : 8) - 1; break;
    case CTF_STRUCT: compile_struct(c, t, depth); break;
    case CTF_ARRAY:
    case CTF_SEQUENCE: compile_list(c, t, depth); break;
    case CTF_VARIANT: compile_variant(c, t, depth); break;
    default: c->failed = true;
    }
}

static const struct ctf_op *finish(struct layout_compiler *c)
{
    struct ctf_op *ops = NULL;
    emit(c, CTF_OP_END);
    if (!c->failed) {
        ops = arena_new(c->arena, struct ctf_op, c->ops.n);
        memcpy(ops, c->ops.v, c->ops.n * sizeof *ops);
    }
    vec_free(&c->ops);
    return ops;
}

const struct ctf_op *ctf_program_compile(struct arena *a, const struct ctf_type *t, enum ctf_scope scope, int32_t clock)
{
    struct layout_compiler c = {.arena = a, .scope = scope, .clock = clock};
    compile(&c, NULL, t, 0);
    return finish(&c);
}

/* ---- headers of known shape ---- */

static bool whole_bytes(const struct ctf_type *t)
{
    return (t->kind == CTF_INT || t->kind == CTF_ENUM) && t->align_bits >= 8 &&
        (t->size_bits == 8 || t->size_bits == 16 || t->size_bits == 32 || t->size_bits == 64);
}

static bool detect_simple(struct ctf_stream_plan *p, const struct ctf_type *h)
{
    uint64_t at = 0;
    bool id = false, time = false;
    for (uint32_t i = 0; i < h->n; i++) {
        const struct ctf_type *t = h->u.fields[i].type, *b = ctf_type_bits(t);
        if (!whole_bytes(b))
            return false;
        at = (at + b->align_bits - 1) & ~(uint64_t)(b->align_bits - 1);
        if (at + (uint64_t)b->size_bits > 255 * 8)
            return false;
        bool is_time = p->sc->clock >= 0 && b->clock == p->sc->clock,
             is_id = !is_time && !strcmp(h->u.fields[i].name, "id");
        if ((is_time && time) || (is_id && id) ||
            ((is_id || is_time) && (b->is_signed || (b->size_bits > 8 && b->big_endian != p->big_endian))))
            return false;
        if (is_time) {
            p->time_at = (uint8_t)(at / 8);
            p->time_bytes = (uint8_t)(b->size_bits / 8);
            time = true;
        } else if (is_id) {
            p->id_at = (uint8_t)(at / 8);
            p->id_bytes = (uint8_t)(b->size_bits / 8);
            id = true;
        }
        at += (uint64_t)b->size_bits;
    }
    p->header_bytes = (uint8_t)(at / 8);
    p->kind = CTF_HEADER_SIMPLE;
    return at > 0; /* events without any bit are left to the slow path, which sees that nothing moves */
}

static bool is_plain(const struct ctf_type *t, int64_t bits, uint32_t align, bool big_endian)
{
    const struct ctf_type *b = ctf_type_bits(t);
    return (t->kind == CTF_INT || t->kind == CTF_ENUM) && b->size_bits == bits && !b->is_signed &&
        b->align_bits >= align && b->align_bits <= 64 && b->big_endian == big_endian;
}

static uint8_t byte_mask(uint32_t align_bits)
{
    return (uint8_t)((align_bits < 8 ? 8 : align_bits) / 8 - 1);
}

/* struct { <n bits> id; variant <id> { struct { time } short; struct { 32 bits id; 64 bits time } long; } } as LTTng
 * writes it. */
static bool detect_lttng(struct ctf_stream_plan *p, const struct ctf_type *h, int64_t id_bits, int64_t time_bits)
{
    if (h->n != 2 || strcmp(h->u.fields[0].name, "id") || h->u.fields[1].type->kind != CTF_VARIANT)
        return false;
    const struct ctf_type *id = h->u.fields[0].type, *v = h->u.fields[1].type;
    uint32_t slot = id->slot ? id->slot : ctf_type_bits(id)->slot;
    bool be = p->big_endian;
    int64_t escape = ((int64_t)1 << id_bits) - 1;
    if (!is_plain(id, id_bits, id_bits == 5 ? 1 : 8, be) || v->n != 2 || !v->tag || !slot || v->tag->slot != slot ||
        v->tag->n_choices != 2 || ctf_type_bits(id)->align_bits > h->align_bits || v->align_bits > 8)
        return false;
    const struct ctf_choice *c = v->tag->choices;
    if (c[0].lo != 0 || c[0].hi != escape - 1 || c[1].lo != escape || c[1].hi != escape || c[0].option == c[1].option ||
        c[0].option > 1 || c[1].option > 1)
        return false;
    const struct ctf_type *s = v->u.fields[c[0].option].type, *l = v->u.fields[c[1].option].type;
    if (s->kind != CTF_STRUCT || l->kind != CTF_STRUCT || s->n != 1 || l->n != 2 || strcmp(l->u.fields[0].name, "id"))
        return false;
    const struct ctf_type *st = s->u.fields[0].type, *li = l->u.fields[0].type, *lt = l->u.fields[1].type;
    if (!is_plain(st, time_bits, time_bits == 27 ? 1 : 8, be) || !is_plain(li, 32, 8, be) || !is_plain(lt, 64, 8, be) ||
        l->align_bits > 64 || s->align_bits > 64 || p->sc->clock < 0 || st->clock != p->sc->clock ||
        lt->clock != p->sc->clock)
        return false;
    if (time_bits == 27 && (s->align_bits != 1 || st->align_bits != 1))
        return false;
    p->short_align = byte_mask(s->align_bits);
    p->long_align = byte_mask(l->align_bits);
    p->long_time_align = byte_mask(lt->align_bits);
    p->kind = id_bits == 5 ? CTF_HEADER_COMPACT : CTF_HEADER_LARGE;
    return true;
}

static bool byte_order_of(const struct ctf_type *t, bool *big)
{
    switch (t->kind) {
    case CTF_INT:
    case CTF_ENUM: *big = ctf_type_bits(t)->big_endian; return true;
    case CTF_STRUCT:
    case CTF_VARIANT:
        for (uint32_t i = 0; i < t->n; i++)
            if (byte_order_of(t->u.fields[i].type, big))
                return true;
        return false;
    default: return false;
    }
}

static void plan_header(struct ctf_stream_plan *p)
{
    const struct ctf_type *h = p->sc->event_header;
    p->kind = CTF_HEADER_PROGRAM;
    if (!h)
        return;
    byte_order_of(h, &p->big_endian);
    if (h->align_bits < 8 || h->align_bits > 64)
        return;
    p->header_align = byte_mask(h->align_bits);
    if (!detect_simple(p, h) && !detect_lttng(p, h, 5, 27) && !detect_lttng(p, h, 16, 32))
        p->kind = CTF_HEADER_PROGRAM;
}

/* ---- plans ---- */

static uint8_t counter_bits(const struct ctf_type *context, const char *name)
{
    for (uint32_t i = 0; context && i < context->n; i++)
        if (!strcmp(context->u.fields[i].name, name) &&
            (context->u.fields[i].type->kind == CTF_INT || context->u.fields[i].type->kind == CTF_ENUM))
            return (uint8_t)ctf_type_bits(context->u.fields[i].type)->size_bits;
    return 0;
}

static bool has_loop(const struct ctf_type *t, int32_t clock)
{
    if (!t)
        return false;
    switch (t->kind) {
    case CTF_STRUCT:
    case CTF_VARIANT:
        for (uint32_t i = 0; i < t->n; i++)
            if (has_loop(t->u.fields[i].type, clock))
                return true;
        return false;
    case CTF_ARRAY:
    case CTF_SEQUENCE:
        return t->u.list.element->size_bits < 0 || is_read(t->u.list.element, true, clock) ||
            has_loop(t->u.list.element, clock);
    default: return false;
    }
}

struct ctf_stream_plan *ctf_stream_plan_compile(
    struct arena *a, const struct ctf_stream_class *sc, const struct ctf_type *packet_header)
{
    struct ctf_stream_plan *p = arena_new(a, struct ctf_stream_plan, 1);
    p->sc = sc;
    p->readable = true;
    p->long_heads = has_loop(packet_header, sc->clock) || has_loop(sc->packet_context, sc->clock);
    if (packet_header && !(p->packet_header = ctf_program_compile(a, packet_header, CTF_PACKET_HEADER, sc->clock)))
        p->readable = false;
    if (sc->packet_context &&
        !(p->packet_context = ctf_program_compile(a, sc->packet_context, CTF_PACKET_CONTEXT, sc->clock)))
        p->readable = false;
    if (sc->event_header && !(p->event_header = ctf_program_compile(a, sc->event_header, CTF_EVENT_HEADER, sc->clock)))
        p->readable = false;
    p->seq_bits = counter_bits(sc->packet_context, "packet_seq_num");
    p->discarded_bits = counter_bits(sc->packet_context, "events_discarded");
    p->begin_bits = counter_bits(sc->packet_context, "timestamp_begin");
    p->end_bits = counter_bits(sc->packet_context, "timestamp_end");
    p->has_begin = p->begin_bits != 0 && sc->clock >= 0;
    p->has_seq = p->seq_bits != 0;
    p->has_discarded = p->discarded_bits != 0;
    plan_header(p);
    return p;
}

/* ---- classes ---- */

/* Distance between scopes when it does not depend on where the header ended: all starts are then multiples of the first
 * scope's alignment. */
static bool fixed_size(const struct ctf_type *const *scopes, uint32_t *align, uint64_t *pre, uint64_t *size)
{
    uint64_t at = 0;
    bool first = true;
    *align = 1;
    *pre = 0;
    for (int i = 0; i < 3; i++) {
        const struct ctf_type *t = scopes[i];
        if (!t) {
            if (i == 2)
                *pre = at;
            continue;
        }
        if (t->size_bits < 0 || t->size_bits > INT32_MAX)
            return false;
        if (first)
            *align = t->align_bits;
        else if (t->align_bits > *align && t->align_bits > 8)
            return false;
        first = false;
        at = (at + t->align_bits - 1) & ~(uint64_t)(t->align_bits - 1);
        if (i == 2)
            *pre = at;
        at += (uint64_t)t->size_bits;
    }
    *size = at;
    return true;
}

static struct ctf_entry entry_of(const struct ctf_event_class *ec, int32_t clock)
{
    struct ctf_entry e = {.cls = ec, .size = CTF_ENTRY_PROGRAM};
    const struct ctf_type *scopes[3] = {
        ec->scope[CTF_STREAM_EVENT_CONTEXT], ec->scope[CTF_EVENT_CONTEXT], ec->scope[CTF_PAYLOAD]};
    uint32_t align;
    uint64_t pre, size;
    for (int i = 0; i < 3; i++)
        if (scopes[i] && is_read(scopes[i], false, clock))
            return e;
    if (!fixed_size(scopes, &align, &pre, &size) || pre % 8 || size % 8 || align > 64 || pre / 8 > UINT16_MAX ||
        size / 8 >= CTF_ENTRY_PROGRAM)
        return e;
    /* A scope whose alignment is below a byte starts where the header ends, which is a byte's start for the headers
     * that use the table. */
    e.align = byte_mask(align);
    e.pre = (uint16_t)(pre / 8);
    e.size = (uint32_t)(size / 8);
    return e;
}

static bool slot_in(const struct ctf_type *t, uint32_t slot)
{
    if (!t)
        return false;
    switch (t->kind) {
    case CTF_INT:
    case CTF_ENUM: return t->slot == slot || ctf_type_bits(t)->slot == slot;
    case CTF_STRUCT:
    case CTF_VARIANT:
        for (uint32_t i = 0; i < t->n; i++)
            if (slot_in(t->u.fields[i].type, slot))
                return true;
        return false;
    case CTF_ARRAY:
    case CTF_SEQUENCE: return slot_in(t->u.list.element, slot);
    default: return false;
    }
}

static void note_slots(struct ctf_layout *l, const struct ctf_event_class *ec, const struct ctf_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool reads = ops[i].code == CTF_OP_VARIANT ||
            ((ops[i].code == CTF_OP_LIST || ops[i].code == CTF_OP_LOOP) && ops[i].counted);
        if (!reads)
            continue;
        if (slot_in(ec->scope[CTF_PACKET_HEADER], ops[i].slot) || slot_in(ec->scope[CTF_PACKET_CONTEXT], ops[i].slot))
            l->packet_slots = true;
        if (slot_in(ec->scope[CTF_EVENT_HEADER], ops[i].slot))
            l->header_slots = true;
    }
}

static const struct ctf_op *compile_event(
    struct arena *a, struct ctf_layout *l, const struct ctf_event_class *ec, int32_t clock)
{
    struct layout_compiler c = {.arena = a, .scope = CTF_PAYLOAD, .clock = clock};
    if (ec->scope[CTF_STREAM_EVENT_CONTEXT])
        compile(&c, NULL, ec->scope[CTF_STREAM_EVENT_CONTEXT], 0);
    if (ec->scope[CTF_EVENT_CONTEXT])
        compile(&c, NULL, ec->scope[CTF_EVENT_CONTEXT], 0);
    emit(&c, CTF_OP_PAYLOAD)->align = ec->scope[CTF_PAYLOAD] ? ec->scope[CTF_PAYLOAD]->align_bits - 1 : 0;
    if (ec->scope[CTF_PAYLOAD])
        compile(&c, NULL, ec->scope[CTF_PAYLOAD], 0);
    note_slots(l, ec, c.ops.v, c.ops.n);
    return finish(&c);
}

static void table_set(struct arena *a, struct ctf_stream_plan *p, uint64_t id, struct ctf_entry e)
{
    if (id >= CTF_TABLE_MAX)
        return;
    if (id >= p->table_cap) {
        uint32_t cap = p->table_cap ? p->table_cap : 32;
        if (p->sc->by_id_n && p->sc->by_id_n <= CTF_TABLE_MAX && cap < p->sc->by_id_n)
            cap = (uint32_t)p->sc->by_id_n;
        while (cap <= id)
            cap *= 2;
        struct ctf_entry *t = arena_new(a, struct ctf_entry, cap);
        if (p->table_n)
            memcpy(t, p->table, p->table_n * sizeof *t);
        for (uint32_t i = p->table_n; i < cap; i++)
            t[i].size = CTF_ENTRY_PROGRAM;
        p->table = t;
        p->table_cap = p->table_n = cap;
    }
    p->table[id] = e;
}

const struct ctf_layout *ctf_layout_compile(
    struct arena *a, const struct ctf_stream_class *sc, const struct ctf_event_class *ec)
{
    /* The plan belongs to the stream class but only this file writes it, and only while the schema is made by one
     * thread. */
    struct ctf_stream_class *owner = (struct ctf_stream_class *)sc;
    if (!owner->plan)
        owner->plan = ctf_stream_plan_compile(a, sc, ec->scope[CTF_PACKET_HEADER]);
    struct ctf_layout *l = arena_new(a, struct ctf_layout, 1);
    l->plan = owner->plan;
    l->ops = compile_event(a, l, ec, sc->clock);
    l->entry = entry_of(ec, sc->clock);
    if (!l->ops)
        l->entry.size = CTF_ENTRY_PROGRAM;
    table_set(a, owner->plan, ec->id, l->entry);
    if (!owner->plan->only || ec->id == 0)
        owner->plan->only = ec;
    return l;
}
