/* SPDX-License-Identifier: MIT */
/* Type declarations: the kinds of types and declarators. */
#include <stdlib.h>
#include <string.h>

#include "ctf/tsdl.h"

static struct tsdl_decl *read_type(struct tsdl_parser *p, bool name_follows);

static struct tsdl_decl *new_decl(struct tsdl_parser *p, enum ctf_kind kind, const char *at)
{
    struct tsdl_decl *d = arena_new(&p->temp, struct tsdl_decl, 1);
    *d = (struct tsdl_decl){.kind = (uint8_t)kind,
        .base = 10,
        .align_bits = 1,
        .size_bits = -1,
        .clock = -1,
        .at = at,
        .big_endian = p->schema->big_endian};
    return d;
}

/* ---- integers, floats, strings ---- */

static void set_align(struct tsdl_parser *p, struct tsdl_decl *d, const char *at, bool is_number, uint64_t v)
{
    if (!is_number || v == 0 || v > (1u << 30) || (v & (v - 1)))
        tsdl_fail(&p->lex, at, ERR_FORMAT, "an alignment must be a power of two from 1 to 2^30");
    else
        d->align_bits = (uint32_t)v;
}

static int number_base(const struct tsdl_value *v)
{
    static const struct {
        int base;
        const char *words[6];
    } bases[] = {
        {10, {"decimal", "dec", "d", "i", "u", NULL}},
        {16, {"hexadecimal", "hex", "x", "X", "p", NULL}},
        {8, {"octal", "oct", "o", NULL}},
        {2, {"binary", "bin", "b", NULL}},
    };
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        if (v->kind == TSDL_VALUE_NUMBER && v->u == (uint64_t)bases[i].base)
            return bases[i].base;
        for (const char *const *w = bases[i].words; *w; w++)
            if (tsdl_value_is(v, *w))
                return bases[i].base;
    }
    return 0;
}

/* Returns 1 text, 0 none, -1 unknown. */
static int text_encoding(const struct tsdl_value *v)
{
    static const char *const text[] = {"UTF8", "utf8", "UTF-8", "utf-8", "ASCII", "ascii"};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        if (tsdl_value_is(v, text[i]))
            return 1;
    return tsdl_value_is(v, "none") || tsdl_value_is(v, "NONE") || tsdl_value_is(v, "None") ? 0 : -1;
}

static void set_clock(struct tsdl_parser *p, struct tsdl_decl *d, const struct tsdl_value *v)
{
    if (v->kind == TSDL_VALUE_PATH && v->n_parts == 3 && tsdl_is(&v->part[0], "clock") && tsdl_is(&v->part[2], "value"))
        d->clock = tsdl_clock(p, v->part[1].s, v->part[1].n);
    else
        tsdl_fail(&p->lex, v->t.s, ERR_FORMAT, "a map must look like clock.NAME.value");
}

/* Sets attributes common to integers, floats and strings; others get a warning. */
static void set_attribute(
    struct tsdl_parser *p, struct tsdl_decl *d, const struct tsdl_token *name, const struct tsdl_value *v)
{
    bool is_int = d->kind == CTF_INT, is_number = v->kind == TSDL_VALUE_NUMBER && !v->negative;
    if (is_int && tsdl_is(name, "size")) {
        if (!is_number || v->u < 1 || v->u > 64)
            tsdl_fail(&p->lex, v->t.s, ERR_UNSUPPORTED, "an integer's size must be 1 to 64 bits");
        d->size_bits = (int64_t)v->u;
    } else if (d->kind != CTF_STRING && tsdl_is(name, "align")) {
        set_align(p, d, v->t.s, is_number, v->u);
    } else if (d->kind != CTF_STRING && tsdl_is(name, "byte_order")) {
        int order = tsdl_byte_order(v);
        if (order < 0)
            tsdl_fail(&p->lex, v->t.s, ERR_FORMAT, "byte_order must be le, be, network or native");
        d->big_endian = order == 2 ? p->schema->big_endian : order == 1;
    } else if (is_int && tsdl_is(name, "signed")) {
        if (!tsdl_value_bool(v, &d->is_signed))
            tsdl_fail(&p->lex, v->t.s, ERR_FORMAT, "signed must be true or false");
    } else if (is_int && tsdl_is(name, "base")) {
        int base = number_base(v);
        if (!base)
            tsdl_warn(p, v->t.s, "unknown base %s, decimal is used", tsdl_show(&p->lex, &v->t).s);
        d->base = (uint8_t)(base ? base : 10);
    } else if (d->kind != CTF_FLOAT && tsdl_is(name, "encoding")) {
        int text = text_encoding(v);
        if (text < 0)
            tsdl_warn(p, v->t.s, "unknown encoding %s, none is used", tsdl_show(&p->lex, &v->t).s);
        d->is_text = text > 0;
    } else if (is_int && tsdl_is(name, "map")) {
        set_clock(p, d, v);
    } else {
        tsdl_warn(p, name->s, "unknown attribute %s of %s is ignored", tsdl_show(&p->lex, name).s,
            is_int                     ? "an integer"
                : d->kind == CTF_FLOAT ? "a floating_point"
                                       : "a string");
    }
}

static void read_attributes(struct tsdl_parser *p, struct tsdl_decl *d, uint64_t digits[2])
{
    struct tsdl_lexer *l = &p->lex;
    tsdl_expect(l, '{', "before attributes");
    while (l->t.kind != '}' && l->t.kind != TSDL_END) {
        struct tsdl_token name = l->t;
        if (!tsdl_expect(l, TSDL_WORD, "of an attribute"))
            return;
        if (!tsdl_accept(l, TSDL_TYPE_ASSIGN) && !tsdl_expect(l, '=', "behind an attribute's name"))
            return;
        struct tsdl_value v;
        tsdl_value(l, &v);
        if (l->failed)
            return;
        if (digits && (tsdl_is(&name, "exp_dig") || tsdl_is(&name, "mant_dig")))
            digits[tsdl_is(&name, "mant_dig")] = v.kind == TSDL_VALUE_NUMBER ? v.u : 0;
        else
            set_attribute(p, d, &name, &v);
    }
    tsdl_expect(l, '}', "after attributes");
}

static struct tsdl_decl *read_integer(struct tsdl_parser *p)
{
    struct tsdl_decl *d = new_decl(p, CTF_INT, p->lex.t.s);
    tsdl_next(&p->lex);
    d->align_bits = 0;
    read_attributes(p, d, NULL);
    if (d->size_bits < 0)
        tsdl_fail(&p->lex, d->at, ERR_FORMAT, "this integer has no size");
    if (d->align_bits == 0)
        d->align_bits = d->size_bits % 8 == 0 ? 8 : 1;
    d->is_text = d->is_text && d->size_bits == 8 && d->align_bits == 8;
    return d;
}

static struct tsdl_decl *read_float(struct tsdl_parser *p)
{
    struct tsdl_decl *d = new_decl(p, CTF_FLOAT, p->lex.t.s);
    uint64_t digits[2] = {0, 0};
    tsdl_next(&p->lex);
    read_attributes(p, d, digits);
    if (digits[0] == 8 && digits[1] == 24)
        d->size_bits = 32;
    else if (digits[0] == 11 && digits[1] == 53)
        d->size_bits = 64;
    else
        tsdl_fail(&p->lex, d->at, ERR_UNSUPPORTED, "floating_point must have exp_dig 8 and mant_dig 24, or 11 and 53");
    return d;
}

static struct tsdl_decl *read_string(struct tsdl_parser *p)
{
    struct tsdl_decl *d = new_decl(p, CTF_STRING, p->lex.t.s);
    d->align_bits = 8;
    tsdl_next(&p->lex);
    if (p->lex.t.kind == '{')
        read_attributes(p, d, NULL);
    d->is_text = true;
    return d;
}

/* ---- enumerations ---- */

static int64_t read_signed(struct tsdl_lexer *l)
{
    bool negative = false;
    while (l->t.kind == '-' || l->t.kind == '+') {
        negative ^= l->t.kind == '-';
        tsdl_next(l);
    }
    uint64_t v = l->t.value;
    if (negative && v > (uint64_t)INT64_MAX + 1)
        tsdl_fail(l, l->t.s, ERR_FORMAT, "-%s does not fit into 64 bits", tsdl_show(l, &l->t).s);
    tsdl_expect(l, TSDL_NUMBER, "in an enumeration");
    return (int64_t)(negative ? -v : v);
}

static bool is_above(const struct tsdl_decl *d, int64_t a, int64_t b)
{
    return d->is_signed ? a > b : (uint64_t)a > (uint64_t)b;
}

static void read_labels(struct tsdl_parser *p, struct tsdl_decl *d)
{
    struct tsdl_lexer *l = &p->lex;
    VEC(struct ctf_range) ranges = {0};
    VEC(struct tsdl_name *) labels = {0};
    const int64_t last = d->is_signed ? INT64_MAX : -1;
    int64_t next = 0;
    bool full = false;
    while (l->t.kind != '}' && l->t.kind != TSDL_END) {
        struct tsdl_token t = l->t;
        if (t.kind != TSDL_WORD && t.kind != TSDL_STRING) {
            tsdl_expect(l, TSDL_WORD, "in an enumeration");
            break;
        }
        tsdl_next(l);
        struct ctf_range range = {.lo = next, .hi = next};
        if (tsdl_accept(l, '=')) {
            range.lo = range.hi = read_signed(l);
            if (tsdl_accept(l, TSDL_DOTS))
                range.hi = read_signed(l);
        } else if (full) {
            tsdl_fail(l, t.s, ERR_FORMAT, "the label before this one has the last possible value");
        }
        if (is_above(d, range.lo, range.hi))
            tsdl_fail(l, t.s, ERR_FORMAT, "this label's range ends before it begins");
        full = range.hi == last;
        next = (int64_t)((uint64_t)range.hi + 1);
        struct tsdl_name *label = tsdl_intern_token(p, &t);
        range.label = label->s;
        vec_push(&ranges, range);
        vec_push(&labels, label);
        if (!tsdl_accept(l, ','))
            break;
    }
    tsdl_expect(l, '}', "at the end of an enumeration");
    d->n = (uint32_t)ranges.n;
    if (ranges.n == 0) {
        tsdl_fail(l, d->at, ERR_FORMAT, "this enumeration has no labels");
    } else {
        d->ranges = arena_new(&p->schema->arena, struct ctf_range, ranges.n);
        memcpy(d->ranges, ranges.v, ranges.n * sizeof *ranges.v);
        d->labels = arena_new(&p->temp, struct tsdl_name *, labels.n);
        memcpy(d->labels, labels.v, labels.n * sizeof *labels.v);
    }
    vec_free(&ranges);
    vec_free(&labels);
}

/* Consumes `struct`, `variant` or `enum` and an optional name, which lies at *at. NULL: no name. */
static struct tsdl_name *read_tag(struct tsdl_parser *p, const char **at)
{
    tsdl_next(&p->lex);
    *at = p->lex.t.s;
    if (p->lex.t.kind != TSDL_WORD)
        return NULL;
    struct tsdl_name *name = tsdl_intern_token(p, &p->lex.t);
    tsdl_next(&p->lex);
    return name;
}

static struct tsdl_decl *read_enum(struct tsdl_parser *p)
{
    struct tsdl_lexer *l = &p->lex;
    const char *at = l->t.s, *name_at;
    struct tsdl_name *name = read_tag(p, &name_at);
    if (name && l->t.kind != ':' && l->t.kind != '{')
        return tsdl_look_up(p, name_at, name, TSDL_ENUM);
    struct tsdl_decl *container;
    if (tsdl_accept(l, ':'))
        container = read_type(p, false);
    else if (!(container = tsdl_find(tsdl_intern(p, "int", 3), TSDL_ALIAS)))
        tsdl_fail(l, at, ERR_FORMAT,
            "this enumeration names no integer type, and there is no type 'int' that could stand in");
    if (!container || l->failed)
        return NULL;
    if (container->kind != CTF_INT) {
        tsdl_fail(l, at, ERR_FORMAT, "the type below an enumeration must be an integer");
        return NULL;
    }
    struct tsdl_decl *d = arena_new(&p->temp, struct tsdl_decl, 1);
    *d = *container;
    d->kind = CTF_ENUM;
    d->at = at;
    d->is_text = false;
    d->element = container;
    tsdl_expect(l, '{', "before the labels of an enumeration");
    read_labels(p, d);
    if (name && !l->failed)
        tsdl_bind(p, name_at, name, TSDL_ENUM, d);
    return d;
}

/* ---- declarators ---- */

static struct tsdl_path *read_path(struct tsdl_parser *p, const char *what)
{
    struct tsdl_lexer *l = &p->lex;
    struct tsdl_name *part[TSDL_MAX_PATH];
    uint32_t n = 0;
    const char *at = l->t.s;
    do {
        if (n == TSDL_MAX_PATH) {
            tsdl_fail(l, at, ERR_LIMIT, "a dotted name of more than %d parts", TSDL_MAX_PATH);
            return NULL;
        }
        struct tsdl_token t = l->t;
        if (!tsdl_expect(l, TSDL_WORD, what))
            return NULL;
        part[n++] = tsdl_intern_token(p, &t);
    } while (tsdl_accept(l, '.') || tsdl_accept(l, TSDL_ARROW));
    struct tsdl_path *path = arena_alloc(&p->temp, sizeof *path + n * sizeof *part);
    path->at = at;
    path->home = tsdl_find(part[0], TSDL_FIELD);
    path->n = n;
    memcpy(path->part, part, n * sizeof *part);
    return path;
}

/* Reads the dimensions after a name: x[2][3] is 2 times 3 elements. */
static struct tsdl_decl *read_dimensions(struct tsdl_parser *p, struct tsdl_decl *element)
{
    struct tsdl_lexer *l = &p->lex;
    if (l->t.kind != '[' || !element)
        return element;
    if (p->depth >= CTF_DEPTH) {
        tsdl_fail(l, l->t.s, ERR_LIMIT, "types nested more than %d deep", CTF_DEPTH);
        return NULL;
    }
    struct tsdl_decl *d = new_decl(p, CTF_ARRAY, l->t.s);
    tsdl_next(l);
    while (tsdl_accept(l, '+'))
        ;
    if (l->t.kind == TSDL_NUMBER) {
        if (l->t.value > UINT32_MAX)
            tsdl_fail(l, l->t.s, ERR_LIMIT, "an array of more than 2^32 - 1 elements");
        d->n = (uint32_t)l->t.value;
        tsdl_next(l);
    } else {
        d->kind = CTF_SEQUENCE;
        d->path = read_path(p, "or number between '[' and ']'");
    }
    tsdl_expect(l, ']', "after a length");
    p->depth++;
    d->element = read_dimensions(p, element);
    p->depth--;
    return l->failed ? NULL : d;
}

/* Reads `NAME[…]…` after a type. */
static struct tsdl_decl *read_declarator(struct tsdl_parser *p, struct tsdl_decl *type, struct tsdl_name **name)
{
    struct tsdl_lexer *l = &p->lex;
    if (l->t.kind == '*')
        tsdl_fail(l, l->t.s, ERR_UNSUPPORTED, "a pointer to a type is no type of a trace");
    struct tsdl_token t = l->t;
    if (!tsdl_expect(l, TSDL_WORD, "after a type"))
        return NULL;
    *name = tsdl_intern_token(p, &t);
    if (l->t.kind == ':')
        tsdl_fail(l, l->t.s, ERR_UNSUPPORTED, "a bit-field; give its type the size instead");
    return read_dimensions(p, type);
}

/* ---- structs and variants ---- */

static bool is_named_kind(const struct tsdl_token *t)
{
    return tsdl_is(t, "struct") || tsdl_is(t, "variant") || tsdl_is(t, "enum");
}

/* Reads `struct a {…} struct b {…}`: one declaration of several types. Returns how many. */
static size_t read_types(struct tsdl_parser *p, struct tsdl_decl **last)
{
    size_t n = 0;
    do {
        *last = read_type(p, true);
        n++;
    } while (*last && !p->lex.failed && is_named_kind(&p->lex.t));
    return n;
}

/* Reads fields of one type, or types without a field, of the struct or variant `d`. */
static void read_member(struct tsdl_parser *p, struct tsdl_decl *d, struct tsdl_member **v, size_t *n, size_t *cap)
{
    struct tsdl_lexer *l = &p->lex;
    struct tsdl_decl *type;
    bool named = is_named_kind(&l->t);
    if ((named && read_types(p, &type) > 1) || (!named && !(type = read_type(p, true))) ||
        (named && l->t.kind == ';')) {
        tsdl_expect(l, ';', "after a declaration");
        return;
    }
    do {
        struct tsdl_member m = {.at = l->t.s};
        m.type = read_declarator(p, type, &m.name);
        if (!m.type)
            return;
        if (*n == *cap)
            *v = mem_grow(*v, cap, *n + 1, sizeof **v);
        (*v)[(*n)++] = m;
        if (d->kind == CTF_STRUCT)
            tsdl_bind(p, m.at, m.name, TSDL_FIELD, d);
    } while (tsdl_accept(l, ','));
    tsdl_expect(l, ';', "after a field");
}

/* Returns how the name is shown: without its first underscore, unless another member is already shown by that name. */
static enum tsdl_shown_as member_shown(struct tsdl_parser *p, struct tsdl_member *v, size_t i)
{
    const struct tsdl_name *name = v[i].name;
    if (v[i].shown)
        return v[i].shown;
    const struct tsdl_name *bare = name->s[0] == '_' ? tsdl_interned(p, name->s + 1, name->n - 1) : NULL;
    bool taken = bare && bare->mark == p->mark && member_shown(p, v, bare->mark_value) == TSDL_SHOWN_WHOLE;
    return v[i].shown = name->s[0] != '_' || taken ? TSDL_SHOWN_WHOLE : TSDL_SHOWN_BARE;
}

/* Checks that names are unique within a struct or variant, and makes shown names unique. */
static void check_names(struct tsdl_parser *p, struct tsdl_member *v, size_t n)
{
    p->mark++;
    for (size_t i = 0; i < n; i++) {
        if (v[i].name->mark == p->mark)
            tsdl_fail(&p->lex, v[i].at, ERR_FORMAT, "a second field '%s' in the same struct or variant", v[i].name->s);
        v[i].name->mark = p->mark;
        v[i].name->mark_value = (uint32_t)i;
    }
    for (size_t i = 0; i < n; i++)
        member_shown(p, v, i);
}

static void read_members(struct tsdl_parser *p, struct tsdl_decl *d)
{
    struct tsdl_lexer *l = &p->lex;
    if (p->depth >= CTF_DEPTH) {
        tsdl_fail(l, l->t.s, ERR_LIMIT, "types nested more than %d deep", CTF_DEPTH);
        return;
    }
    VEC(struct tsdl_member) members = {0};
    struct tsdl_binding *outer = tsdl_enter(p);
    p->depth++;
    tsdl_expect(l, '{', "before fields");
    while (l->t.kind != '}' && l->t.kind != TSDL_END) {
        if (tsdl_is(&l->t, "typealias") || tsdl_is(&l->t, "typedef"))
            tsdl_declaration(p);
        else
            read_member(p, d, &members.v, &members.n, &members.cap);
    }
    tsdl_expect(l, '}', "after fields");
    p->depth--;
    tsdl_leave(p, outer);
    check_names(p, members.v, members.n);
    d->n = (uint32_t)members.n;
    if (members.n) {
        d->members = arena_new(&p->temp, struct tsdl_member, members.n);
        memcpy(d->members, members.v, members.n * sizeof *members.v);
    }
    vec_free(&members);
}

static void read_align(struct tsdl_parser *p, struct tsdl_decl *d)
{
    struct tsdl_lexer *l = &p->lex;
    if (!tsdl_is(&l->t, "align") || tsdl_peek(l).kind != '(')
        return;
    tsdl_next(l);
    tsdl_next(l);
    set_align(p, d, l->t.s, l->t.kind == TSDL_NUMBER, l->t.value);
    tsdl_next(l);
    tsdl_expect(l, ')', "after an alignment");
}

/* Reads `struct NAME` with an alignment, which may be greater than the declaration's. */
static struct tsdl_decl *read_aligned(struct tsdl_parser *p, struct tsdl_decl *named)
{
    if (!named || !tsdl_is(&p->lex.t, "align") || tsdl_peek(&p->lex).kind != '(')
        return named;
    struct tsdl_decl *d = arena_new(&p->temp, struct tsdl_decl, 1);
    *d = *named;
    d->copy_of = named->copy_of ? named->copy_of : named;
    read_align(p, d);
    if (d->align_bits < named->align_bits)
        d->align_bits = named->align_bits;
    return d;
}

/* Reads `struct NAME *`, which only a typealias can make a type. The current token is the first '*'. */
static struct tsdl_decl *read_pointer(struct tsdl_parser *p, const char *at, const struct tsdl_name *name)
{
    size_t stars = 0;
    while (tsdl_accept(&p->lex, '*'))
        stars++;
    char *words = arena_alloc(&p->temp, strlen("struct ") + strlen(name->s) + 2 * stars + 1),
         *end = stpcpy(stpcpy(words, "struct "), name->s);
    for (; stars; stars--)
        end = stpcpy(end, " *");
    return tsdl_look_up(p, at, tsdl_intern(p, words, strlen(words)), TSDL_ALIAS);
}

static struct tsdl_decl *read_struct(struct tsdl_parser *p)
{
    struct tsdl_lexer *l = &p->lex;
    struct tsdl_decl *d = new_decl(p, CTF_STRUCT, l->t.s);
    const char *name_at;
    struct tsdl_name *name = read_tag(p, &name_at);
    if (name && l->t.kind == '*')
        return read_pointer(p, d->at, name);
    if (name && l->t.kind != '{')
        return read_aligned(p, tsdl_look_up(p, name_at, name, TSDL_STRUCT));
    read_members(p, d);
    read_align(p, d);
    if (name && !l->failed)
        tsdl_bind(p, name_at, name, TSDL_STRUCT, d);
    return l->failed ? NULL : d;
}

static struct tsdl_decl *read_variant(struct tsdl_parser *p)
{
    struct tsdl_lexer *l = &p->lex;
    struct tsdl_decl *d = new_decl(p, CTF_VARIANT, l->t.s);
    const char *name_at;
    struct tsdl_name *name = read_tag(p, &name_at);
    struct tsdl_path *tag = NULL;
    if (tsdl_accept(l, '<')) {
        tag = read_path(p, "as a variant's tag");
        tsdl_expect(l, '>', "after a variant's tag");
    }
    if (l->t.kind == '{' || !name) {
        read_members(p, d);
        if (d->n == 0)
            tsdl_fail(l, d->at, ERR_FORMAT, "this variant has no options");
        if (name && !l->failed)
            tsdl_bind(p, name_at, name, TSDL_VARIANT, d);
        d->path = tag;
    } else {
        const struct tsdl_decl *found = tsdl_look_up(p, name_at, name, TSDL_VARIANT);
        if (found)
            *d = *found;
        if (tag)
            d->path = tag;
    }
    return l->failed ? NULL : d;
}

/* ---- types ---- */

/* Joins a type's words ("unsigned long", "void *", "uint8_t") to one name. With `name_follows`, the last word is a
 * declarator's and stays. *plain: the same without `const`. NULL after failure. */
static struct tsdl_name *read_words(struct tsdl_parser *p, bool name_follows, struct tsdl_name **plain)
{
    struct tsdl_lexer *l = &p->lex;
    char words[256], fewer[256];
    size_t n = 0, n_fewer = 0;
    const char *at = l->t.s;
    while (l->t.kind == TSDL_WORD || l->t.kind == '*') {
        int next = tsdl_peek(l).kind;
        if (name_follows && n > 0 && l->t.kind == TSDL_WORD && next != TSDL_WORD && next != '*')
            break;
        if (n + l->t.n + 2 > sizeof words) {
            tsdl_fail(l, at, ERR_LIMIT, "a type's name of more than %zu letters", sizeof words);
            return NULL;
        }
        size_t space = n > 0, fewer_space = n_fewer > 0;
        memcpy(words + n, " ", space);
        memcpy(words + n + space, l->t.s, l->t.n);
        n += space + l->t.n;
        if (!tsdl_is(&l->t, "const")) {
            memcpy(fewer + n_fewer, " ", fewer_space);
            memcpy(fewer + n_fewer + fewer_space, l->t.s, l->t.n);
            n_fewer += fewer_space + l->t.n;
        }
        tsdl_next(l);
    }
    if (n == 0) {
        tsdl_expect(l, TSDL_WORD, "of a type");
        return NULL;
    }
    *plain = tsdl_intern(p, fewer, n_fewer);
    return tsdl_intern(p, words, n);
}

/* Reads a named type: as declared, else without `const`. */
static struct tsdl_decl *read_alias(struct tsdl_parser *p, bool name_follows)
{
    const char *at = p->lex.t.s;
    struct tsdl_name *plain, *name = read_words(p, name_follows, &plain);
    struct tsdl_decl *found = name ? tsdl_find(name, TSDL_ALIAS) : NULL;
    return !name || found ? found : tsdl_look_up(p, at, plain, TSDL_ALIAS);
}

static struct tsdl_decl *read_type(struct tsdl_parser *p, bool name_follows)
{
    static const struct {
        const char *word;
        struct tsdl_decl *(*read)(struct tsdl_parser *);
    } kinds[] = {
        {"integer", read_integer},
        {"struct", read_struct},
        {"string", read_string},
        {"enum", read_enum},
        {"variant", read_variant},
        {"floating_point", read_float},
    };
    struct tsdl_token first = tsdl_is(&p->lex.t, "const") ? tsdl_peek(&p->lex) : p->lex.t;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!tsdl_is(&first, kinds[i].word))
            continue;
        if (first.s != p->lex.t.s)
            tsdl_next(&p->lex);
        return kinds[i].read(p);
    }
    return read_alias(p, name_follows);
}

struct tsdl_decl *tsdl_type(struct tsdl_parser *p)
{
    struct tsdl_decl *d = read_type(p, false);
    return p->lex.failed ? NULL : d;
}

static void read_typealias(struct tsdl_parser *p)
{
    struct tsdl_lexer *l = &p->lex;
    tsdl_next(l);
    struct tsdl_decl *type = read_dimensions(p, read_type(p, false));
    tsdl_expect(l, TSDL_TYPE_ASSIGN, "in a typealias");
    do {
        const char *at = l->t.s;
        struct tsdl_name *plain, *name = read_words(p, false, &plain);
        if (name && type && !l->failed)
            tsdl_bind(p, at, name, TSDL_ALIAS, type);
    } while (tsdl_accept(l, ','));
}

static void read_typedef(struct tsdl_parser *p)
{
    struct tsdl_lexer *l = &p->lex;
    tsdl_next(l);
    struct tsdl_decl *type = read_type(p, true);
    if (!type)
        return;
    do {
        struct tsdl_name *name = NULL;
        const char *at = l->t.s;
        struct tsdl_decl *d = read_declarator(p, type, &name);
        if (d && !l->failed)
            tsdl_bind(p, at, name, TSDL_ALIAS, d);
    } while (tsdl_accept(l, ','));
}

bool tsdl_declaration(struct tsdl_parser *p)
{
    struct tsdl_lexer *l = &p->lex;
    if (tsdl_is(&l->t, "typealias"))
        read_typealias(p);
    else if (tsdl_is(&l->t, "typedef"))
        read_typedef(p);
    else if (is_named_kind(&l->t))
        read_types(p, &(struct tsdl_decl *){NULL});
    else
        return false;
    if (l->t.kind != TSDL_END || l->failed)
        tsdl_expect(l, ';', "after a declaration");
    return true;
}
