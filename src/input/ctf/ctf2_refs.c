/* SPDX-License-Identifier: MIT */
/* References in CTF 2: field locations are resolved to fields, ranges to choices, roles to their places. */
#include <string.h>

#include "ctf/tsdl_resolver.h"

/* ---- fields that a location may mean ---- */

enum { COMPLETE = CTF_DEPTH + 1 }; /* frame of a finished type */

struct search {
    struct resolver *b;
    const struct ctf2_location *l;
    const char *why; /* reason for the first dead end */
};

static void fail_way(struct search *s, const char *why)
{
    if (!s->why)
        s->why = why;
}

static void follow(struct search *s, const struct ctf_type *type, uint32_t frame, uint32_t from);

/* Follows a member of a structure; in an unfinished one, only members up to the current one exist. */
static void follow_member(struct search *s, const struct ctf_type *type, uint32_t frame, uint32_t from)
{
    struct resolver *b = s->b;
    bool making = frame < b->depth;
    uint32_t current = making ? b->frames[frame].index : type->n, k = 0;
    const char *name = s->l->name[from]->s;
    while (k < type->n && k <= current && type->u.fields[k].name != name)
        k++;
    b->compared += k;
    if (k == type->n || k > current)
        fail_way(s, "names no member that comes before it");
    else if (k == current)
        follow(s, type->u.fields[k].type, frame + 1, from + 1);
    else
        follow(s, type->u.fields[k].type, COMPLETE, from + 1);
}

/* Goes on into elements and options, which have no name of their own. */
static void follow_inner(struct search *s, const struct ctf_type *type, uint32_t frame, uint32_t from)
{
    struct resolver *b = s->b;
    bool making = frame < b->depth;
    if (type->kind != CTF_VARIANT) {
        if (making)
            follow(s, type->u.list.element, frame + 1, from);
        else
            fail_way(s, "leads into an array that is not being decoded");
        return;
    }
    if (making) {
        follow(s, type->u.fields[b->frames[frame].index].type, frame + 1, from);
        return;
    }
    b->found_misses = true;
    for (uint32_t i = 0; i < type->n; i++)
        follow(s, type->u.fields[i].type, COMPLETE, from);
}

/* Adds the fields that the names from `from` on lead to. */
static void follow(struct search *s, const struct ctf_type *type, uint32_t frame, uint32_t from)
{
    struct resolver *b = s->b;
    bool at_end = from == s->l->n, making = frame < b->depth;
    if (++b->compared > TSDL_MAX_COMPARED)
        return;
    if (!making && frame != COMPLETE) {
        fail_way(s, "means the field itself");
        return;
    }
    switch ((enum ctf_kind)type->kind) {
    case CTF_STRUCT:
        if (at_end)
            fail_way(s, making ? "means a structure around it" : "means a structure");
        else
            follow_member(s, type, frame, from);
        return;
    case CTF_ARRAY:
    case CTF_SEQUENCE:
        if (!making && (type->is_blob || type->u.list.element->is_text))
            fail_way(s, "means a string or a BLOB");
        else
            follow_inner(s, type, frame, from);
        return;
    case CTF_VARIANT: follow_inner(s, type, frame, from); return;
    default: break;
    }
    if (!at_end)
        fail_way(s, "goes on behind a field that is no structure");
    else
        vec_push(&b->found, (struct ctf_type *)type);
}

static bool compared_all(struct resolver *b, const char *at)
{
    if (b->compared > TSDL_MAX_COMPARED)
        tsdl_fail(&b->p->lex, at, ERR_LIMIT,
            "lengths and selectors that are looked for among too many fields: it would take minutes");
    return b->compared > TSDL_MAX_COMPARED;
}

/* Finds the fields a location may mean; fails if there is none. *scope: their scope. */
static bool find_targets(struct resolver *b, const struct ctf2_location *l, const char *what, enum ctf_scope *scope)
{
    struct search s = {.b = b, .l = l};
    b->found.n = 0;
    b->found_misses = false;
    *scope = l->origin < 0 ? b->scope : (enum ctf_scope)l->origin;
    if (l->origin >= 0 && l->up) {
        fail_way(&s, "leaves its scope");
    } else if (*scope != b->scope) {
        if (*scope > b->scope)
            fail_way(&s, "means a scope that comes later");
        else if (!b->roots[*scope])
            fail_way(&s, "means a scope that is not there");
        else
            follow(&s, b->roots[*scope], COMPLETE, 0);
    } else if (l->origin >= 0) {
        follow(&s, b->frames[0].type, 0, 0);
    } else {
        uint32_t f = b->depth, up = l->up + 1;
        while (f > 0 && up > 0)
            up -= b->frames[--f].type->kind == CTF_STRUCT;
        if (up > 0)
            fail_way(&s, "leaves its scope");
        else
            follow(&s, b->frames[f].type, f, 0);
    }
    if (!compared_all(b, l->at) && b->found.n == 0)
        tsdl_fail(&b->p->lex, l->at, ERR_FORMAT, "the location of a %s %s", what, s.why ? s.why : "means nothing");
    return !b->p->lex.failed;
}

/* ---- references ---- */

static const char *kind_of(const struct ctf_type *t)
{
    const struct ctf_type *bits = ctf_type_bits(t);
    if (t->kind == CTF_WIDE)
        return "a field of more than 64 bits";
    if (t->kind != CTF_INT && t->kind != CTF_ENUM)
        return t->kind == CTF_FLOAT ? "a floating-point number" : "a string";
    switch (bits->look) {
    case CTF_LOOK_BITS: return "a bit array";
    case CTF_LOOK_FLAGS: return "a bit map";
    case CTF_LOOK_BOOL: return "a boolean";
    default: return bits->is_signed ? "a signed integer" : "an unsigned integer";
    }
}

static bool is_kind(const struct ctf_type *t, enum ctf_look look)
{
    return (t->kind == CTF_INT || t->kind == CTF_ENUM) && ctf_type_bits(t)->look == look;
}

static bool check_targets(struct resolver *b, const struct tsdl_decl *d, const char *what)
{
    const struct ctf_type *first = b->found.v[0];
    const char *kind = kind_of(first);
    bool number = is_kind(first, CTF_LOOK_PLAIN), is_length = d->kind == CTF_SEQUENCE,
         fits = is_length ? number && !ctf_type_bits(first)->is_signed
        : d->is_optional  ? number || is_kind(first, CTF_LOOK_BOOL)
                          : number;
    if (!fits)
        tsdl_fail(&b->p->lex, d->location->at, first->kind == CTF_WIDE ? ERR_UNSUPPORTED : ERR_FORMAT,
            "%s cannot be a %s", kind, what);
    for (size_t i = 1; i < b->found.n; i++)
        if (strcmp(kind_of(b->found.v[i]), kind) != 0)
            tsdl_fail(&b->p->lex, d->location->at, ERR_FORMAT, "the location of a %s means %s or %s", what, kind,
                kind_of(b->found.v[i]));
    if (d->is_optional && number && d->n_options == 0)
        tsdl_fail(&b->p->lex, d->at, ERR_FORMAT,
            "there is no property 'selector-field-ranges', which an optional needs that an integer selects");
    return !b->p->lex.failed;
}

/* Merges slots: targets of earlier references may have slots of their own already. */
static void merge_slots(struct resolver *b, const struct target *like, uint32_t from, uint32_t to)
{
    for (size_t i = like->level == LEVEL_EVENT ? b->event_targets : 0; i < b->targets.n; i++) {
        struct target *t = &b->targets.v[i];
        if (t->level == like->level && (t->level == LEVEL_TRACE || t->stream == like->stream) && t->type->slot == from)
            t->type->slot = to;
    }
    b->compared += b->targets.n;
}

static const struct target *target_of(struct resolver *b, const struct ctf_type *type)
{
    for (size_t i = b->targets.n; i > 0; i--, b->compared++)
        if (b->targets.v[i - 1].type == type)
            return &b->targets.v[i - 1];
    return NULL;
}

static void give_slots(struct resolver *b, const char *at, enum ctf_scope scope)
{
    uint32_t slot = 0;
    for (size_t i = 0; i < b->found.n && !compared_all(b, at); i++) {
        struct ctf_type *t = b->found.v[i];
        if (!slot)
            slot = t->slot;
        else if (t->slot && t->slot != slot)
            merge_slots(b, target_of(b, t), t->slot, slot);
    }
    for (size_t i = 0; i < b->found.n; i++) {
        slot = resolver_slot(b, b->found.v[i], at, scope, slot);
        b->found.v[i]->may_miss |= b->found_misses;
    }
}

static void make_choices(struct resolver *b, const struct tsdl_decl *d, struct ctf_ref *ref)
{
    bool is_signed = ctf_type_bits(ref->target)->is_signed;
    __int128 least = is_signed ? (__int128)INT64_MIN : 0, most = is_signed ? (__int128)INT64_MAX : (__int128)UINT64_MAX;
    if (!resolver_count(b, d->at, d->n_options))
        return;
    struct ctf_choice *choices = arena_new(&b->schema->arena, struct ctf_choice, d->n_options + 1);
    if (is_kind(ref->target, CTF_LOOK_BOOL)) { /* ranges have no meaning here */
        choices[ref->n_choices++] = (struct ctf_choice){1, (int64_t)UINT64_MAX, 0};
        ref->choices = choices;
        return;
    }
    for (uint32_t i = 0; i < d->n_options; i++) {
        const struct ctf2_range *r = &d->options[i];
        if (r->hi < least || r->lo > most)
            continue;
        choices[ref->n_choices++] = (struct ctf_choice){
            (int64_t)(r->lo < least ? least : r->lo), (int64_t)(r->hi > most ? most : r->hi), r->option};
    }
    ref->choices = choices;
}

struct ctf_ref *ctf2_make_ref(struct resolver *b, const struct tsdl_decl *d)
{
    const char *what = d->kind == CTF_SEQUENCE ? "length" : "selector";
    enum ctf_scope scope;
    if (!find_targets(b, d->location, what, &scope) || !check_targets(b, d, what))
        return NULL;
    give_slots(b, d->location->at, scope);
    struct ctf_ref *ref = arena_new(&b->schema->arena, struct ctf_ref, 1);
    ref->target = b->found.v[0];
    vec_push(&b->refs, ref);
    if (d->kind == CTF_VARIANT)
        make_choices(b, d, ref);
    return b->p->lex.failed ? NULL : ref;
}

/* ---- roles ---- */

enum {
    OF_HEADER = 1u << CTF_ROLE_MAGIC | 1u << CTF_ROLE_UUID | 1u << CTF_ROLE_STREAM_ID | 1u << CTF_ROLE_INSTANCE_ID,
    OF_CONTEXT = 1u << CTF_ROLE_CLOCK | 1u << CTF_ROLE_END | 1u << CTF_ROLE_CONTENT_SIZE | 1u << CTF_ROLE_PACKET_SIZE |
        1u << CTF_ROLE_SEQUENCE | 1u << CTF_ROLE_DISCARDED,
    OF_EVENT = 1u << CTF_ROLE_CLOCK | 1u << CTF_ROLE_ID,
    OF_CLOCK = 1u << CTF_ROLE_CLOCK | 1u << CTF_ROLE_END
};

static void check_magic(struct resolver *b, const struct tsdl_decl *d)
{
    if (d->kind == CTF_ENUM)
        return; /* handled with its container, which comes next */
    if (d->is_leb || d->size_bits != 32)
        tsdl_fail(&b->p->lex, d->at, ERR_FORMAT, "the magic number must be of fixed length, 32 bits");
    if (b->depth != 1 || b->frames[0].index != 0)
        tsdl_fail(&b->p->lex, d->at, ERR_FORMAT, "the magic number must be the first member of the packet header");
}

bool ctf2_take_roles(struct resolver *b, const struct tsdl_decl *d, struct ctf_type *type)
{
    uint32_t roles = d->roles,
             may = b->scope == CTF_PACKET_HEADER ? OF_HEADER
        : b->scope == CTF_PACKET_CONTEXT         ? OF_CONTEXT
        : b->scope == CTF_EVENT_HEADER           ? OF_EVENT
                                                 : 0;
    type->shown_as = type->kind == CTF_STRUCT || type->kind == CTF_INT || type->kind == CTF_ENUM ? CTF_SHOWN
                                                                                                 : CTF_SHOWN_BY_RULE;
    if (!roles)
        return true;
    if (roles & ~may)
        tsdl_fail(&b->p->lex, d->at, ERR_FORMAT, "a role that has no place in this scope ('roles')");
    int32_t clock = b->scope == CTF_PACKET_HEADER ? -1 : b->p->streams.v[b->stream].clock;
    if (roles & OF_CLOCK && clock < 0)
        tsdl_fail(&b->p->lex, d->at, ERR_FORMAT,
            "a time stamp ('roles') in a data stream class without default-clock-class-id");
    if (roles & 1u << CTF_ROLE_MAGIC)
        check_magic(b, d);
    if (roles & 1u << CTF_ROLE_UUID)
        b->schema->has_uuid_role = true;
    if (roles & OF_CLOCK)
        type->clock = clock;
    if (b->scope == CTF_PACKET_CONTEXT && roles & 1u << CTF_ROLE_CLOCK)
        roles = (roles & ~(1u << CTF_ROLE_CLOCK)) | 1u << CTF_ROLE_BEGIN;
    type->roles = (uint16_t)roles;
    type->shown_as = CTF_HIDDEN;
    return !b->p->lex.failed;
}
