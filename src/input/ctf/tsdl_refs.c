/* SPDX-License-Identifier: MIT */
/* References of CTF 1.8: lengths and tags find their fields by dotted names. */
#include <string.h>

#include "ctf/tsdl_resolver.h"

static void fail_at(struct resolver *b, const char *at, int code, const char *text)
{
    tsdl_fail(&b->p->lex, at, code, "%s", text);
}

/* Follows path->part[from…] from a struct. In a struct that is still being made (frame < depth), only members up to the
 * current one exist. */
static const struct ctf_type *follow(
    struct resolver *b, const struct ctf_type *type, uint32_t frame, const struct tsdl_path *path, uint32_t from)
{
    for (uint32_t i = from; i < path->n; i++) {
        if (type->kind != CTF_STRUCT)
            return NULL;
        uint32_t n = frame < b->depth ? b->frames[frame].index + 1 : type->n, k = 0;
        while (k < n && type->u.fields[k].name != path->part[i]->s)
            k++;
        b->compared += k;
        if (k == n || (frame < b->depth && k + 1 == n && i + 1 == path->n))
            return NULL;
        frame = frame < b->depth && k == b->frames[frame].index ? frame + 1 : CTF_DEPTH;
        type = type->u.fields[k].type;
    }
    return type;
}

/* Returns the number of parts that name a scope ("stream.event.context"), 0 if the path is relative. */
static uint32_t absolute_scope(const struct tsdl_path *path, enum ctf_scope *scope)
{
    static const struct {
        enum ctf_scope scope;
        uint32_t n;
        const char *part[3];
    } scopes[] = {
        {CTF_PACKET_HEADER, 3, {"trace", "packet", "header"}},
        {CTF_PACKET_CONTEXT, 3, {"stream", "packet", "context"}},
        {CTF_EVENT_HEADER, 3, {"stream", "event", "header"}},
        {CTF_STREAM_EVENT_CONTEXT, 3, {"stream", "event", "context"}},
        {CTF_EVENT_CONTEXT, 2, {"event", "context"}},
        {CTF_PAYLOAD, 2, {"event", "fields"}},
    };
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++) {
        uint32_t k = 0;
        while (k < scopes[i].n && k < path->n && strcmp(path->part[k]->s, scopes[i].part[k]) == 0)
            k++;
        if (k == scopes[i].n) {
            *scope = scopes[i].scope;
            return k;
        }
    }
    return 0;
}

static const struct ctf_type *find_target(struct resolver *b, const struct tsdl_path *path, enum ctf_scope *scope)
{
    uint32_t from = absolute_scope(path, scope);
    if (from) {
        if (*scope == b->scope)
            return follow(b, b->frames[0].type, 0, path, from);
        return *scope < b->scope && b->roots[*scope] ? follow(b, b->roots[*scope], CTF_DEPTH, path, from) : NULL;
    }
    *scope = b->scope;
    for (uint32_t f = b->depth; path->home && f-- > 0;) {
        const struct ctf_type *found = b->frames[f].decl == path->home ? follow(b, b->frames[f].type, f, path, 0)
                                                                       : NULL;
        if (found)
            return found;
    }
    for (uint32_t f = b->depth; f-- > 0;) {
        const struct ctf_type *found = follow(b, b->frames[f].type, f, path, 0);
        if (found)
            return found;
    }
    for (int s = (int)b->scope - 1; s >= 0; s--) {
        const struct ctf_type *found = b->roots[s] ? follow(b, b->roots[s], CTF_DEPTH, path, 0) : NULL;
        *scope = (enum ctf_scope)s;
        if (found)
            return found;
    }
    return NULL;
}

static const char *path_text(struct resolver *b, const struct tsdl_path *path)
{
    const char *s = path->part[0]->s;
    for (uint32_t i = 1; i < path->n; i++)
        s = arena_printf(&b->p->temp, "%s.%s", s, path->part[i]->s);
    return s;
}

struct ctf_ref *tsdl_make_ref(struct resolver *b, const struct tsdl_path *path, bool is_tag)
{
    struct tsdl_lexer *l = &b->p->lex;
    const char *what = is_tag ? "tag" : "length";
    enum ctf_scope scope;
    if (b->compared > TSDL_MAX_COMPARED) {
        fail_at(b, path->at, ERR_LIMIT,
            "lengths and tags that are looked for among too many fields: it would take minutes");
        return NULL;
    }
    struct ctf_type *target = (struct ctf_type *)find_target(b, path, &scope);
    if (!target) {
        bool env = strcmp(path->part[0]->s, "env") == 0;
        tsdl_fail(l, path->at, env ? ERR_UNSUPPORTED : ERR_FORMAT, "%s '%s' %s", what, path_text(b, path),
            env ? "is taken from the environment, which weft does not read" : "names no field that comes before it");
        return NULL;
    }
    if (is_tag ? target->kind != CTF_ENUM : target->kind != CTF_INT || target->is_signed) {
        tsdl_fail(l, path->at, ERR_FORMAT, "%s '%s' is not an %s", what, path_text(b, path),
            is_tag ? "enumeration" : "unsigned integer");
        return NULL;
    }
    resolver_slot(b, target, path->at, scope, target->slot);
    struct ctf_ref *ref = arena_new(&b->schema->arena, struct ctf_ref, 1);
    ref->target = target;
    vec_push(&b->refs, ref);
    return ref;
}

/* Label i of an enumeration, given its ranges. Labels and options of variants are interned names of one parser. */
void tsdl_make_choices(struct resolver *b, const struct tsdl_decl *d, struct ctf_ref *ref)
{
    const struct ctf_type *tag = ref->target;
    struct tsdl_parser *p = b->p;
    p->mark++;
    for (uint32_t i = 0; i < d->n; i++) {
        d->members[i].name->mark = p->mark;
        d->members[i].name->mark_value = i;
    }
    if (!resolver_count(b, d->at, tag->n))
        return;
    struct ctf_choice *choices = arena_new(&b->schema->arena, struct ctf_choice, tag->n);
    for (uint32_t i = 0; i < tag->n; i++) {
        const struct ctf_range *range = &tag->u.enumeration.ranges[i];
        const struct tsdl_name *label = tsdl_intern(p, range->label, strlen(range->label));
        if (label->mark == p->mark)
            choices[ref->n_choices++] = (struct ctf_choice){range->lo, range->hi, label->mark_value};
    }
    ref->choices = choices;
    if (ref->n_choices == 0)
        fail_at(b, d->path->at, ERR_FORMAT, "no label of the tag is an option of this variant");
}
