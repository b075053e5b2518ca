/* SPDX-License-Identifier: MIT */
/* Names of a metadata text: interned, bound to types within their blocks; clocks by name; warnings. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "ctf/tsdl.h"

static void grow_table(struct tsdl_parser *p)
{
    size_t n = p->table_n ? p->table_n * 2 : 256;
    struct tsdl_name **table = arena_new(&p->temp, struct tsdl_name *, n);
    for (size_t i = 0; i < p->table_n; i++) {
        for (struct tsdl_name *name = p->table[i], *next; name; name = next) {
            next = name->next;
            name->next = table[name->hash & (n - 1)];
            table[name->hash & (n - 1)] = name;
        }
    }
    p->table = table;
    p->table_n = n;
}

static struct tsdl_name *find(const struct tsdl_parser *p, const char *s, size_t n, uint32_t hash)
{
    struct tsdl_name *name = p->table_n ? p->table[hash & (p->table_n - 1)] : NULL;
    while (name && (name->hash != hash || name->n != n || memcmp(name->s, s, n) != 0))
        name = name->next;
    return name;
}

struct tsdl_name *tsdl_interned(const struct tsdl_parser *p, const char *s, size_t n)
{
    return find(p, s, n, (uint32_t)map_hash(s, n));
}

struct tsdl_name *tsdl_intern(struct tsdl_parser *p, const char *s, size_t n)
{
    uint32_t hash = (uint32_t)map_hash(s, n);
    struct tsdl_name *name = find(p, s, n, hash);
    if (name)
        return name;
    if (p->n_names >= p->table_n)
        grow_table(p);
    struct tsdl_name **slot = &p->table[hash & (p->table_n - 1)];
    name = arena_new(&p->temp, struct tsdl_name, 1);
    *name = (struct tsdl_name){
        .next = *slot, .s = arena_strndup(&p->schema->arena, s, n), .n = (uint32_t)n, .hash = hash};
    *slot = name;
    p->n_names++;
    return name;
}

struct tsdl_name *tsdl_intern_token(struct tsdl_parser *p, const struct tsdl_token *t)
{
    if (t->kind != TSDL_STRING)
        return tsdl_intern(p, t->s, t->n);
    const char *s = tsdl_text(&p->temp, t);
    return tsdl_intern(p, s, strlen(s));
}

void tsdl_warn(struct tsdl_parser *p, const char *at, const char *fmt, ...)
{
    if (p->warnings.n >= TSDL_MAX_WARNINGS) {
        p->n_warnings_dropped++;
        return;
    }
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    size_t pos = 0;
    for (size_t i = 0; i < p->scan->shared.n; i++) {
        struct tsdl_span span = p->scan->shared.v[i];
        if (at < span.end) {
            pos += at > span.begin ? (size_t)(at - span.begin) : 0;
            break;
        }
        pos += (size_t)(span.end - span.begin);
    }
    vec_push(&p->warnings, ((struct ctf_schema_warning){pos, arena_strdup(&p->schema->arena, text)}));
}

struct tsdl_binding *tsdl_enter(struct tsdl_parser *p)
{
    struct tsdl_binding *outer = p->block;
    p->block = NULL;
    p->level++;
    return outer;
}

void tsdl_leave(struct tsdl_parser *p, struct tsdl_binding *outer)
{
    for (struct tsdl_binding *b = p->block; b; b = b->sibling)
        b->name->bindings = b->outer;
    p->block = outer;
    p->level--;
}

static const char *const space_words[] = {"type", "struct", "variant", "enum", "field"};

struct tsdl_decl *tsdl_find(const struct tsdl_name *name, enum tsdl_space space)
{
    for (const struct tsdl_binding *b = name->bindings; b; b = b->outer)
        if (b->space == space)
            return b->decl;
    return NULL;
}

void tsdl_bind(
    struct tsdl_parser *p, const char *at, struct tsdl_name *name, enum tsdl_space space, struct tsdl_decl *decl)
{
    for (const struct tsdl_binding *b = name->bindings; b && b->level == p->level; b = b->outer)
        if (b->space == space && space != TSDL_FIELD)
            tsdl_fail(&p->lex, at, ERR_FORMAT, "the %s '%s' is declared twice", space_words[space], name->s);
    struct tsdl_binding *b = arena_new(&p->temp, struct tsdl_binding, 1);
    *b = (struct tsdl_binding){.outer = name->bindings,
        .sibling = p->block,
        .name = name,
        .decl = decl,
        .level = p->level,
        .space = (uint8_t)space};
    name->bindings = b;
    p->block = b;
}

struct tsdl_decl *tsdl_look_up(
    struct tsdl_parser *p, const char *at, const struct tsdl_name *name, enum tsdl_space space)
{
    struct tsdl_decl *decl = tsdl_find(name, space);
    if (!decl)
        tsdl_fail(&p->lex, at, ERR_FORMAT, "no %s '%s' was declared before", space_words[space], name->s);
    return decl;
}

int32_t tsdl_clock(struct tsdl_parser *p, const char *name, size_t n)
{
    for (size_t i = 0; i < p->clock_names.n; i++)
        if (strlen(p->clock_names.v[i]) == n && memcmp(p->clock_names.v[i], name, n) == 0)
            return (int32_t)i;
    if (p->clock_names.n >= 1024) {
        tsdl_fail(&p->lex, p->lex.t.s, ERR_LIMIT, "more than 1024 clocks");
        return -1;
    }
    vec_push(&p->clock_names, tsdl_intern(p, name, n)->s);
    return (int32_t)p->clock_names.n - 1;
}
