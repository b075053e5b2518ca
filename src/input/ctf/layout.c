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
    bool mixed;
    bool failed;
};

static struct ctf_op *emit(struct layout_compiler *c, uint8_t code)
{
    struct ctf_op op = {.code = code};
    vec_push(&c->ops, op);
    return &c->ops.v[c->ops.n - 1];
}

/* ---- roles ---- */

/* Returns a bit per role. */
static uint32_t roles_of(const struct layout_compiler *c, const struct ctf_type *t)
{
    uint32_t roles = t->roles;
    bool is_clock = c->clock >= 0 && ctf_type_bits(t)->clock == c->clock;
    if (c->scope <= CTF_PACKET_CONTEXT && roles)
        return roles;
    return is_clock && !(roles & 1u << CTF_ROLE_CLOCK) ? 1u << CTF_ROLE_CLOCK : roles;
}

/* ---- programs ---- */

/* Returns whether the type contains a number that the decoder must read: one with references to it, a role, or the
 * clock. */
static bool is_read(const struct ctf_type *t, bool slots, int32_t clock)
{
    const struct ctf_type *b = ctf_type_bits(t);
    switch (t->kind) {
    case CTF_INT:
    case CTF_ENUM: return (slots && (t->slot || b->slot)) || t->roles || (clock >= 0 && b->clock == clock);
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

/* Merges consecutive skips if no position between them depends on data. */
static void emit_skip(struct layout_compiler *c, uint32_t align_bits, uint64_t bits)
{
    if (c->ops.n) {
        struct ctf_op *last = &c->ops.v[c->ops.n - 1];
        /* Position after `last`: a multiple of the new alignment if `last` starts at one and its size is one. */
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

/* Returns the target of a jump. It follows a VARIANT, JUMP or END, so a skip there is never merged into earlier
 * ones. */
static uint32_t here(const struct layout_compiler *c)
{
    return (uint32_t)c->ops.n;
}

static void compile(struct layout_compiler *c, const struct ctf_type *t, unsigned depth);

/* Returns whether a byte may hold bits of it and of a neighbour. */
static bool shares_bytes(const struct ctf_type *t)
{
    return (t->kind == CTF_INT || t->kind == CTF_FLOAT || t->kind == CTF_WIDE) && !t->is_leb &&
        (t->align_bits < 8 || t->size_bits % 8 != 0);
}

/* Returns a bit per byte order (1: big endian) of the bit fields that may share a byte with others. */
static unsigned orders_in(const struct ctf_type *t)
{
    unsigned orders = 0;
    if (!t)
        return 0;
    switch (t->kind) {
    case CTF_STRUCT:
    case CTF_VARIANT:
        for (uint32_t i = 0; i < t->n; i++)
            orders |= orders_in(t->u.fields[i].type);
        return orders;
    case CTF_ARRAY:
    case CTF_SEQUENCE: return orders_in(t->u.list.element);
    default: t = ctf_type_bits(t); return shares_bytes(t) ? 1u << t->big_endian : 0;
    }
}

static unsigned orders_of(const struct ctf_type *const scopes[CTF_SCOPES])
{
    unsigned orders = 0;
    for (int i = 0; i < CTF_SCOPES; i++)
        orders |= orders_in(scopes[i]);
    return orders;
}

/* Returns whether fields of both byte orders may share a byte. The last field of an event may do so with the first one
 * of the next event, of any class. */
static bool is_mixed(const struct ctf_stream_class *sc, const struct ctf_type *packet_header)
{
    unsigned orders = orders_of((const struct ctf_type *[CTF_SCOPES]){
        packet_header, sc->packet_context, sc->event_header, sc->event_context, NULL, NULL});
    for (size_t i = 0; i < sc->n && orders != 3; i++)
        orders |= orders_in(sc->sorted[i]->scope[CTF_EVENT_CONTEXT]) | orders_in(sc->sorted[i]->scope[CTF_PAYLOAD]);
    return orders == 3;
}

static void check_order(struct layout_compiler *c, const struct ctf_type *t)
{
    if (!c->mixed || !shares_bytes(t))
        return;
    struct ctf_op *op = emit(c, CTF_OP_ORDER);
    op->align = t->align_bits - 1;
    op->big_endian = t->big_endian;
}

/* Compiles integers, and booleans and bit maps, which are decoded like integers. */
static void compile_int(struct layout_compiler *c, const struct ctf_type *t)
{
    const struct ctf_type *b = ctf_type_bits(t);
    uint32_t roles = roles_of(c, t), slot = t->slot ? t->slot : b->slot;
    if ((!b->is_leb && (b->size_bits < 1 || b->size_bits > 64)) || slot >= CTF_SLOTS) {
        c->failed = true;
        return;
    }
    uint32_t align = t->align_bits > b->align_bits ? t->align_bits : b->align_bits;
    check_order(c, b);
    if (!roles && !slot && !b->is_leb) {
        emit_skip(c, align, (uint64_t)b->size_bits);
        return;
    }
    do {
        bool stays = (roles & (roles - 1)) != 0;
        struct ctf_op *op = emit(c, b->is_leb ? CTF_OP_LEB : b->is_reversed || stays ? CTF_OP_BITS : CTF_OP_INT);
        op->align = align - 1;
        op->bits = b->is_leb ? 64 : (uint8_t)b->size_bits;
        op->is_signed = b->is_signed;
        op->big_endian = b->big_endian;
        op->slot = (uint8_t)slot;
        op->role = roles ? (uint8_t)__builtin_ctz(roles) : CTF_ROLE_NONE;
        op->reversed = b->is_reversed;
        op->stays = stays;
        roles &= roles - 1;
    } while (roles);
    if (t->may_miss)
        emit(c, CTF_OP_SET)->n = (uint64_t)1 << slot;
}

/* Checks a length or a tag that may not have been decoded. */
static void check_set(struct layout_compiler *c, const struct ctf_ref *ref)
{
    if (ref->may_miss)
        emit(c, CTF_OP_NEED)->slot = (uint8_t)ref->slot;
}

static unsigned text_unit_bits(const struct ctf_type *t)
{
    return t->encoding >= CTF_UTF32BE ? 32 : t->encoding >= CTF_UTF16BE ? 16 : 8;
}

static void compile_list(struct layout_compiler *c, const struct ctf_type *t, unsigned depth)
{
    const struct ctf_type *el = t->u.list.element;
    bool fixed = el->size_bits >= 0 && !is_read(el, true, c->clock) && !(c->mixed && orders_in(el));
    bool counted = t->kind == CTF_SEQUENCE;
    if (counted && (!t->u.list.length || t->u.list.length->slot == 0 || t->u.list.length->slot >= CTF_SLOTS)) {
        c->failed = true;
        return;
    }
    if (t->roles & 1u << CTF_ROLE_UUID)
        emit(c, CTF_OP_UUID)->align = (t->align_bits > el->align_bits ? t->align_bits : el->align_bits) - 1;
    if (counted)
        check_set(c, t->u.list.length);
    if (!counted && fixed && t->size_bits >= 0) {
        emit_skip(c, t->align_bits, 0);
        if (t->n)
            emit_skip(c, el->align_bits, (uint64_t)t->size_bits);
        return;
    }
    emit_skip(c, t->align_bits, 0);
    bool odd = el->is_text && text_unit_bits(t) > 8;
    struct ctf_op *op = emit(c, odd ? CTF_OP_TEXT : fixed ? CTF_OP_LIST : CTF_OP_LOOP);
    op->bits = (uint8_t)text_unit_bits(t);
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
    compile(c, el, depth + 1);
    emit(c, CTF_OP_END);
    c->ops.v[at].next = here(c);
}

/* Returns the slots of its fields that may not be decoded. */
static uint64_t slots_missing(const struct ctf_type *t)
{
    uint64_t slots = t->may_miss && t->slot < CTF_SLOTS ? (uint64_t)1 << t->slot : 0;
    if (t->kind == CTF_STRUCT || t->kind == CTF_VARIANT)
        for (uint32_t i = 0; i < t->n; i++)
            slots |= slots_missing(t->u.fields[i].type);
    return slots;
}

static void compile_variant(struct layout_compiler *c, const struct ctf_type *t, unsigned depth)
{
    const struct ctf_ref *tag = t->tag;
    uint64_t missing = slots_missing(t);
    if (!tag || tag->slot == 0 || tag->slot >= CTF_SLOTS || t->n == 0) {
        c->failed = true;
        return;
    }
    uint32_t *targets = arena_new(c->arena, uint32_t, t->n);
    size_t *jumps = mem_alloc(sizeof *jumps * t->n);
    if (missing)
        emit(c, CTF_OP_UNSET)->n = missing;
    check_set(c, tag);
    size_t at = c->ops.n;
    struct ctf_op *op = emit(c, CTF_OP_VARIANT);
    op->optional = t->is_optional;
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
        compile(c, t->u.fields[i].type, depth + 1);
        jumps[i] = c->ops.n;
        emit(c, CTF_OP_JUMP);
    }
    for (uint32_t i = 0; i < t->n && !c->failed; i++)
        c->ops.v[jumps[i]].next = here(c);
    c->ops.v[at].next = here(c);
    free(jumps);
}

static void compile_struct(struct layout_compiler *c, const struct ctf_type *t, unsigned depth)
{
    emit_skip(c, t->align_bits, 0);
    for (uint32_t i = 0; i < t->n; i++)
        compile(c, t->u.fields[i].type, depth + 1);
}

static void compile_string(struct layout_compiler *c, const struct ctf_type *t)
{
    unsigned unit = text_unit_bits(t);
    struct ctf_op *op = emit(c, unit > 8 ? CTF_OP_UNITS : CTF_OP_STRING);
    op->align = (t->align_bits > 8 ? t->align_bits : 8) - 1;
    op->bits = (uint8_t)unit;
}

static void compile(struct layout_compiler *c, const struct ctf_type *t, unsigned depth)
{
    if (depth > CTF_DEPTH + 1 || c->ops.n > 1u << 20)
        c->failed = true;
    if (c->failed)
        return;
    switch (t->kind) {
    case CTF_INT:
    case CTF_ENUM: compile_int(c, t); break;
    case CTF_WIDE:
    case CTF_FLOAT:
        check_order(c, t);
        emit_skip(c, t->align_bits, (uint64_t)t->size_bits);
        break;
    case CTF_STRING: compile_string(c, t); break;
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

const struct ctf_op *ctf_program_compile(
    struct arena *a, const struct ctf_type *t, enum ctf_scope scope, int32_t clock, bool mixed)
{
    struct layout_compiler c = {.arena = a, .scope = scope, .clock = clock, .mixed = mixed};
    compile(&c, t, 0);
    return finish(&c);
}

/* ---- plans ---- */

/* Returns the bits of the first field of structures with the role; 0: none. Contents of variants may be absent. */
static uint8_t counter_bits(const struct ctf_type *t, enum ctf_role role)
{
    uint8_t bits = 0;
    if (!t)
        return 0;
    if (t->kind == CTF_STRUCT)
        for (uint32_t i = 0; i < t->n && !bits; i++)
            bits = counter_bits(t->u.fields[i].type, role);
    if (t->kind != CTF_STRUCT && t->roles & 1u << role)
        bits = ctf_type_bits(t)->is_leb ? 64 : (uint8_t)ctf_type_bits(t)->size_bits;
    return bits;
}

static bool has_role(const struct ctf_type *t, enum ctf_role role)
{
    if (!t)
        return false;
    if (t->roles & 1u << role)
        return true;
    if (t->kind == CTF_ARRAY || t->kind == CTF_SEQUENCE)
        return has_role(t->u.list.element, role);
    for (uint32_t i = 0; (t->kind == CTF_STRUCT || t->kind == CTF_VARIANT) && i < t->n; i++)
        if (has_role(t->u.fields[i].type, role))
            return true;
    return false;
}

/* Returns the bits of a loss counter. In CTF 2, roles may be anywhere: a counter of variable size counts as 64 bits,
 * since its overflows are unknown. */
static uint8_t loss_bits(const struct ctf_stream_class *sc, enum ctf_role role)
{
    uint8_t bits = counter_bits(sc->packet_context, role);
    return !bits && sc->is_ctf2 && has_role(sc->packet_context, role) ? 64 : bits;
}

/* Returns whether it contains something to be read element by element, or byte by byte. */
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
    case CTF_INT:
    case CTF_ENUM: return ctf_type_bits(t)->is_leb;
    case CTF_STRING: return text_unit_bits(t) > 8;
    default: return false;
    }
}

uint64_t ctf_type_slots(const struct ctf_type *t)
{
    uint64_t slots = 0;
    if (!t)
        return 0;
    switch (t->kind) {
    case CTF_INT:
    case CTF_ENUM: {
        uint32_t slot = t->slot ? t->slot : ctf_type_bits(t)->slot;
        return slot && slot < CTF_SLOTS ? (uint64_t)1 << slot : 0;
    }
    case CTF_STRUCT:
    case CTF_VARIANT:
        for (uint32_t i = 0; i < t->n; i++)
            slots |= ctf_type_slots(t->u.fields[i].type);
        return slots;
    case CTF_ARRAY:
    case CTF_SEQUENCE: return ctf_type_slots(t->u.list.element);
    default: return 0;
    }
}

/* Returns whether a length or a tag in it refers to one of the slots. */
static bool refers_to(const struct ctf_type *t, uint64_t slots)
{
    if (!t)
        return false;
    switch (t->kind) {
    case CTF_VARIANT:
        if (t->tag && t->tag->slot < CTF_SLOTS && slots >> t->tag->slot & 1)
            return true;
        __attribute__((fallthrough));
    case CTF_STRUCT:
        for (uint32_t i = 0; i < t->n; i++)
            if (refers_to(t->u.fields[i].type, slots))
                return true;
        return false;
    case CTF_SEQUENCE: {
        const struct ctf_ref *length = t->u.list.length;
        return (length && length->slot < CTF_SLOTS && slots >> length->slot & 1) || refers_to(t->u.list.element, slots);
    }
    case CTF_ARRAY: return refers_to(t->u.list.element, slots);
    default: return false;
    }
}

struct ctf_stream_plan *ctf_stream_plan_compile(
    struct arena *a, const struct ctf_stream_class *sc, const struct ctf_type *packet_header)
{
    struct ctf_stream_plan *p = arena_new(a, struct ctf_stream_plan, 1);
    bool mixed = is_mixed(sc, packet_header);
    p->sc = sc;
    p->mixed = mixed;
    p->packet_slots = ctf_type_slots(packet_header) | ctf_type_slots(sc->packet_context);
    p->event_slots = ctf_type_slots(sc->event_header);
    p->header_refers = refers_to(sc->event_header, p->packet_slots);
    p->readable = true;
    p->long_heads = has_loop(packet_header, sc->clock) || has_loop(sc->packet_context, sc->clock);
    if (packet_header &&
        !(p->packet_header = ctf_program_compile(a, packet_header, CTF_PACKET_HEADER, sc->clock, mixed)))
        p->readable = false;
    if (sc->packet_context &&
        !(p->packet_context = ctf_program_compile(a, sc->packet_context, CTF_PACKET_CONTEXT, sc->clock, mixed)))
        p->readable = false;
    if (sc->event_header &&
        !(p->event_header = ctf_program_compile(a, sc->event_header, CTF_EVENT_HEADER, sc->clock, mixed)))
        p->readable = false;
    p->seq_bits = loss_bits(sc, CTF_ROLE_SEQUENCE);
    p->discarded_bits = loss_bits(sc, CTF_ROLE_DISCARDED);
    p->begin_bits = counter_bits(sc->packet_context, CTF_ROLE_BEGIN);
    p->end_bits = counter_bits(sc->packet_context, CTF_ROLE_END);
    if (sc->is_ctf2) { /* CTF 2: a packet's clock begins at 0, so its times are complete */
        p->begin_bits = p->begin_bits ? 64 : 0;
        p->end_bits = p->end_bits ? 64 : 0;
    }
    p->has_begin = p->begin_bits != 0 && sc->clock >= 0;
    p->has_seq = p->seq_bits != 0;
    p->has_discarded = p->discarded_bits != 0;
    ctf_plan_header(p);
    return p;
}

/* ---- classes ---- */

/* Computes the size of scopes if it does not depend on the end of the header: all starts are then multiples of the
 * first scope's alignment. */
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
    if (orders_of(ec->scope) == 3)
        return e;
    if (!fixed_size(scopes, &align, &pre, &size) || pre % 8 || size % 8 || align > 64 || pre / 8 > UINT16_MAX ||
        size / 8 >= CTF_ENTRY_PROGRAM)
        return e;
    /* A scope with an alignment below a byte starts at the header's end, which is a byte boundary for the headers that
     * use the table. */
    e.align = ctf_byte_mask(align);
    e.pre = (uint16_t)(pre / 8);
    e.size = (uint32_t)(size / 8);
    return e;
}

static void note_slots(struct ctf_layout *l, const struct ctf_event_class *ec)
{
    for (int i = CTF_STREAM_EVENT_CONTEXT; i < CTF_SCOPES; i++) {
        l->packet_slots |= refers_to(ec->scope[i], l->plan->packet_slots);
        l->header_slots |= refers_to(ec->scope[i], l->plan->event_slots);
    }
    l->packet_slots |= l->header_slots && l->plan->header_refers;
}

static const struct ctf_op *compile_event(
    struct arena *a, struct ctf_layout *l, const struct ctf_event_class *ec, int32_t clock)
{
    struct layout_compiler c = {.arena = a, .scope = CTF_PAYLOAD, .clock = clock, .mixed = l->plan->mixed};
    if (ec->scope[CTF_STREAM_EVENT_CONTEXT])
        compile(&c, ec->scope[CTF_STREAM_EVENT_CONTEXT], 0);
    if (ec->scope[CTF_EVENT_CONTEXT])
        compile(&c, ec->scope[CTF_EVENT_CONTEXT], 0);
    emit(&c, CTF_OP_PAYLOAD)->align = ec->scope[CTF_PAYLOAD] ? ec->scope[CTF_PAYLOAD]->align_bits - 1 : 0;
    if (ec->scope[CTF_PAYLOAD])
        compile(&c, ec->scope[CTF_PAYLOAD], 0);
    note_slots(l, ec);
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
    /* Plan of the stream class; only this file writes it, and only while one thread makes the schema. */
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
    if ((!owner->plan->only && !sc->is_ctf2) || ec->id == 0)
        owner->plan->only = ec;
    return l;
}
