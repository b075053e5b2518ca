/* SPDX-License-Identifier: MIT */
/* Field classes of CTF 2 as declarations: strings, BLOBs, arrays, structures, optionals, variants. */
#include <stdlib.h>
#include <string.h>

#include "ctf/ctf2_fields.h"

static struct tsdl_decl *read_class(struct ctf2_reader *r, const struct ctf2_node *node);

/* ---- field locations ---- */

static int read_origin(struct ctf2_reader *r, const struct ctf2_node *node)
{
    static const char *const scopes[] = {"packet-header", "packet-context", "event-record-header",
        "event-record-common-context", "event-record-specific-context", "event-record-payload", NULL};
    int scope = -1;
    ctf2_read_word(r, node, "origin", false, scopes, &scope);
    return scope;
}

/* Reads a path; a null removes the name before it, or goes one structure further out. */
static void read_path(struct ctf2_reader *r, const struct ctf2_node *path, struct ctf2_location *out)
{
    const struct tsdl_name **names = arena_new(&r->p->temp, const struct tsdl_name *, path->n + 1);
    const struct ctf2_node *last = NULL;
    for
        CTF2_EACH(r->j, path, step)
        {
            last = step;
            if (step->kind == CTF2_STRING)
                names[out->n++] = tsdl_intern(r->p, step->s, step->s_n);
            else if (step->kind != CTF2_NULL)
                tsdl_fail(r->l, step->at, ERR_FORMAT, "an element of a path must be a string or null");
            else if (out->n)
                out->n--;
            else
                out->up++;
        }
    if (!last)
        tsdl_fail(r->l, path->at, ERR_FORMAT, "an empty path");
    else if (last->kind == CTF2_NULL)
        tsdl_fail(r->l, last->at, ERR_FORMAT, "a path must not end with null");
    out->name = names;
}

static const struct ctf2_location *read_location(struct ctf2_reader *r, const struct ctf2_node *node, const char *name)
{
    static const char *const names[] = {"origin", "path", NULL};
    const struct ctf2_node *object = ctf2_get_kind(r->j, node, name, CTF2_OBJECT, true);
    if (!object)
        return NULL;
    struct ctf2_location *out = arena_new(&r->p->temp, struct ctf2_location, 1);
    const struct ctf2_node *path = ctf2_get_kind(r->j, object, "path", CTF2_ARRAY, true),
                           *unknown = ctf2_unknown(r->j, object, names);
    if (unknown)
        tsdl_fail(r->l, unknown->at, ERR_FORMAT, "a field location has no such property");
    out->at = object->at;
    out->origin = read_origin(r, object);
    if (path)
        read_path(r, path, out);
    return out;
}

/* ---- strings, BLOBs, arrays ---- */

static void check_known(struct ctf2_reader *r, const struct ctf2_node *node, const char *const *names)
{
    const struct ctf2_node *unknown = ctf2_unknown(r->j, node, names);
    if (unknown)
        tsdl_fail(r->l, unknown->at, ERR_FORMAT, "a field class of this type has no such property");
}

static void read_encoding(struct ctf2_reader *r, const struct ctf2_node *node, struct tsdl_decl *d)
{
    static const char *const encodings[] = {"utf-8", "utf-16be", "utf-16le", "utf-32be", "utf-32le", NULL};
    int encoding = CTF_UTF8;
    ctf2_read_word(r, node, "encoding", false, encodings, &encoding);
    d->encoding = (uint8_t)encoding;
}

static struct tsdl_decl *read_string(struct ctf2_reader *r, const struct ctf2_node *node)
{
    static const char *const names[] = {"encoding", NULL};
    struct tsdl_decl *d = ctf2_new_decl(r, CTF_STRING, node->at);
    check_known(r, node, names);
    d->align_bits = 8;
    d->is_text = true;
    read_encoding(r, node, d);
    return d;
}

/* Reads an array of `length` elements, or of a length given by a field. */
static struct tsdl_decl *read_list(struct ctf2_reader *r, const struct ctf2_node *node, bool is_static)
{
    struct tsdl_decl *d = ctf2_new_decl(r, is_static ? CTF_ARRAY : CTF_SEQUENCE, node->at);
    uint64_t length = 0;
    if (is_static)
        ctf2_get_count(r->j, node, "length", true, 0, UINT32_MAX, &length);
    else
        d->location = read_location(r, node, "length-field-location");
    d->n = (uint32_t)length;
    return d;
}

/* Reads an array of bytes: text, or a BLOB. */
static struct tsdl_decl *read_bytes(struct ctf2_reader *r, const struct ctf2_node *node, bool is_static, bool is_text)
{
    struct tsdl_decl *d = read_list(r, node, is_static), *byte = ctf2_new_decl(r, CTF_INT, node->at);
    byte->size_bits = byte->align_bits = d->align_bits = 8;
    byte->is_text = is_text;
    byte->base = is_text ? 10 : 16;
    d->element = byte;
    if (is_text) {
        read_encoding(r, node, d);
        return d;
    }
    d->is_blob = true;
    ctf2_get_text(r->j, node, "media-type", false, &r->p->schema->arena, &d->media_type);
    if (!d->media_type)
        d->media_type = "application/octet-stream";
    if (is_static)
        ctf2_read_roles(r, node, d);
    if (d->roles && d->n != 16)
        tsdl_fail(r->l, node->at, ERR_FORMAT, "the UUID has 16 bytes ('length'), not %u", d->n);
    return d;
}

static struct tsdl_decl *read_static_string(struct ctf2_reader *r, const struct ctf2_node *node)
{
    static const char *const names[] = {"length", "encoding", NULL};
    check_known(r, node, names);
    return read_bytes(r, node, true, true);
}

static struct tsdl_decl *read_dynamic_string(struct ctf2_reader *r, const struct ctf2_node *node)
{
    static const char *const names[] = {"length-field-location", "encoding", NULL};
    check_known(r, node, names);
    return read_bytes(r, node, false, true);
}

static struct tsdl_decl *read_static_blob(struct ctf2_reader *r, const struct ctf2_node *node)
{
    static const char *const names[] = {"length", "media-type", "roles", NULL};
    check_known(r, node, names);
    return read_bytes(r, node, true, false);
}

static struct tsdl_decl *read_dynamic_blob(struct ctf2_reader *r, const struct ctf2_node *node)
{
    static const char *const names[] = {"length-field-location", "media-type", NULL};
    check_known(r, node, names);
    return read_bytes(r, node, false, false);
}

/* Reads a field class in a property, which may be an alias. */
static struct tsdl_decl *read_inner(struct ctf2_reader *r, const struct ctf2_node *node, const char *name)
{
    const struct ctf2_node *inner = ctf2_get(r->j, node, name);
    if (!inner)
        tsdl_fail(r->l, node->at, ERR_FORMAT, "there is no property '%s'", name);
    return r->l->failed ? NULL : read_class(r, inner);
}

static struct tsdl_decl *read_array(struct ctf2_reader *r, const struct ctf2_node *node, bool is_static)
{
    static const char *const of_static[] = {"length", "element-field-class", "minimum-alignment", NULL};
    static const char *const of_dynamic[] = {"length-field-location", "element-field-class", "minimum-alignment", NULL};
    check_known(r, node, is_static ? of_static : of_dynamic);
    struct tsdl_decl *d = read_list(r, node, is_static);
    ctf2_read_align(r, node, "minimum-alignment", d);
    d->element = read_inner(r, node, "element-field-class");
    return d;
}

static struct tsdl_decl *read_static_array(struct ctf2_reader *r, const struct ctf2_node *node)
{
    return read_array(r, node, true);
}

static struct tsdl_decl *read_dynamic_array(struct ctf2_reader *r, const struct ctf2_node *node)
{
    return read_array(r, node, false);
}

/* ---- structures, optionals, variants ---- */

static struct tsdl_decl *read_structure(struct ctf2_reader *r, const struct ctf2_node *node)
{
    static const char *const names[] = {"member-classes", "minimum-alignment", NULL};
    static const char *const of_member[] = {"name", "field-class", NULL};
    struct tsdl_parser *p = r->p;
    struct tsdl_decl *d = ctf2_new_decl(r, CTF_STRUCT, node->at);
    const struct ctf2_node *members = ctf2_get_kind(r->j, node, "member-classes", CTF2_ARRAY, false);
    check_known(r, node, names);
    ctf2_read_align(r, node, "minimum-alignment", d);
    if (!members || r->l->failed)
        return d;
    d->members = arena_new(&p->temp, struct tsdl_member, members->n + 1);
    for
        CTF2_EACH(r->j, members, member)
        {
            struct tsdl_member *m = &d->members[d->n++];
            if (member->kind != CTF2_OBJECT)
                tsdl_fail(r->l, member->at, ERR_FORMAT, "a member must be an object with name and field-class");
            const struct ctf2_node *name = ctf2_get_kind(r->j, member, "name", CTF2_STRING, true);
            check_known(r, member, of_member);
            ctf2_check_common(r->j, member);
            *m = (struct tsdl_member){.at = member->at, .shown = TSDL_SHOWN_WHOLE};
            if (name)
                m->name = tsdl_intern(p, name->s, name->s_n);
            m->type = read_inner(r, member, "field-class");
            if (r->l->failed)
                return d;
        }
    p->mark++;
    for (uint32_t i = 0; i < d->n; i++) {
        if (d->members[i].name->mark == p->mark)
            tsdl_fail(r->l, d->members[i].at, ERR_FORMAT, "a second member '%s'", d->members[i].name->s);
        d->members[i].name->mark = p->mark;
    }
    return d;
}

static void keep_options(struct ctf2_reader *r, struct tsdl_decl *d, ctf2_range_list *list)
{
    d->n_options = (uint32_t)list->n;
    if (list->n) {
        d->options = arena_new(&r->p->temp, struct ctf2_range, list->n);
        memcpy(d->options, list->v, list->n * sizeof *list->v);
    }
    vec_free(list);
}

static struct tsdl_decl *read_optional(struct ctf2_reader *r, const struct ctf2_node *node)
{
    static const char *const names[] = {"field-class", "selector-field-location", "selector-field-ranges", NULL};
    struct tsdl_decl *d = ctf2_new_decl(r, CTF_VARIANT, node->at);
    const struct ctf2_node *ranges = ctf2_get(r->j, node, "selector-field-ranges");
    ctf2_range_list list = {0};
    check_known(r, node, names);
    d->is_optional = true;
    d->location = read_location(r, node, "selector-field-location");
    if (ranges)
        ctf2_read_ranges(r, ranges, 0, true, &list);
    keep_options(r, d, &list);
    d->n = 1;
    d->members = arena_new(&r->p->temp, struct tsdl_member, 1);
    *d->members = (struct tsdl_member){
        .at = node->at, .shown = TSDL_SHOWN_WHOLE, .name = tsdl_intern(r->p, "value", 5)};
    d->members->type = read_inner(r, node, "field-class");
    return d;
}

static int by_lower(const void *a, const void *b)
{
    const struct ctf2_range *x = a, *y = b;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* Fails if a value selects two options. */
static void check_overlap(struct ctf2_reader *r, const ctf2_range_list *list)
{
    if (r->l->failed || !list->n)
        return;
    struct ctf2_range *sorted = mem_alloc(sizeof *sorted * list->n);
    memcpy(sorted, list->v, sizeof *sorted * list->n);
    qsort(sorted, list->n, sizeof *sorted, by_lower);
    __int128 end = sorted[0].hi;
    uint32_t option = sorted[0].option;
    for (size_t i = 1; i < list->n; i++) {
        if (sorted[i].lo <= end && sorted[i].option != option)
            tsdl_fail(r->l, sorted[i].at, ERR_FORMAT, "a value of this range selects another option, too");
        if (sorted[i].hi > end) {
            end = sorted[i].hi;
            option = sorted[i].option;
        }
    }
    free(sorted);
}

static void read_option(
    struct ctf2_reader *r, const struct ctf2_node *option, struct tsdl_decl *d, ctf2_range_list *list)
{
    static const char *const names[] = {"name", "field-class", "selector-field-ranges", NULL};
    struct tsdl_member *m = &d->members[d->n];
    if (option->kind != CTF2_OBJECT)
        tsdl_fail(r->l, option->at, ERR_FORMAT, "an option must be an object");
    const struct ctf2_node *name = ctf2_get_kind(r->j, option, "name", CTF2_STRING, false),
                           *ranges = ctf2_get_kind(r->j, option, "selector-field-ranges", CTF2_ARRAY, true);
    check_known(r, option, names);
    ctf2_check_common(r->j, option);
    *m = (struct tsdl_member){.at = option->at, .shown = TSDL_SHOWN_WHOLE};
    m->name = name ? tsdl_intern(r->p, name->s, name->s_n) : NULL;
    if (ranges)
        ctf2_read_ranges(r, ranges, d->n, true, list);
    m->type = read_inner(r, option, "field-class");
    d->n++;
}

/* Names options without a name by their number, or by a number from d->n on if another option has that name. */
static void name_options(struct ctf2_reader *r, struct tsdl_decl *d)
{
    uint32_t behind = d->n;
    r->p->mark++;
    for (uint32_t i = 0; i < d->n && !r->l->failed; i++) {
        const struct tsdl_member *m = &d->members[i];
        if (m->name && m->name->mark == r->p->mark)
            tsdl_fail(r->l, m->at, ERR_FORMAT, "a second option '%s'", m->name->s);
        if (m->name)
            m->name->mark = r->p->mark;
    }
    for (uint32_t i = 0, n = 0; i < d->n && !r->l->failed; n = ++i) {
        struct tsdl_member *m = &d->members[i];
        for (bool named = m->name != NULL; !named; n = behind++) {
            const char *number = arena_printf(&r->p->temp, "%u", n);
            m->name = tsdl_intern(r->p, number, strlen(number));
            named = m->name->mark != r->p->mark;
        }
        m->name->mark = r->p->mark;
    }
}

static struct tsdl_decl *read_variant(struct ctf2_reader *r, const struct ctf2_node *node)
{
    static const char *const names[] = {"options", "selector-field-location", NULL};
    struct tsdl_decl *d = ctf2_new_decl(r, CTF_VARIANT, node->at);
    const struct ctf2_node *options = ctf2_get_kind(r->j, node, "options", CTF2_ARRAY, true);
    ctf2_range_list list = {0};
    check_known(r, node, names);
    d->location = read_location(r, node, "selector-field-location");
    if (options && options->n == 0)
        tsdl_fail(r->l, options->at, ERR_FORMAT, "this variant has no options");
    if (!options || r->l->failed)
        return d;
    d->members = arena_new(&r->p->temp, struct tsdl_member, options->n);
    for
        CTF2_EACH(r->j, options, option)
        {
            read_option(r, option, d, &list);
            if (r->l->failed)
                break;
        }
    name_options(r, d);
    check_overlap(r, &list);
    keep_options(r, d, &list);
    return d;
}

/* ---- all field classes ---- */

static struct tsdl_decl *read_alias(struct ctf2_reader *r, const struct ctf2_node *node)
{
    const struct tsdl_name *name = tsdl_interned(r->p, node->s, node->s_n);
    struct tsdl_decl *d = name ? tsdl_find(name, TSDL_ALIAS) : NULL;
    if (!d)
        tsdl_fail(
            r->l, node->at, ERR_FORMAT, "no field class alias '%.*s' was declared before", (int)node->s_n, node->s);
    return d;
}

static struct tsdl_decl *read_class(struct ctf2_reader *r, const struct ctf2_node *node)
{
    static const struct {
        const char *type;
        struct tsdl_decl *(*read)(struct ctf2_reader *, const struct ctf2_node *);
    } kinds[] = {
        {"fixed-length-unsigned-integer", ctf2_read_unsigned},
        {"fixed-length-signed-integer", ctf2_read_signed},
        {"structure", read_structure},
        {"null-terminated-string", read_string},
        {"static-length-string", read_static_string},
        {"dynamic-length-string", read_dynamic_string},
        {"static-length-array", read_static_array},
        {"dynamic-length-array", read_dynamic_array},
        {"variant", read_variant},
        {"optional", read_optional},
        {"fixed-length-boolean", ctf2_read_boolean},
        {"fixed-length-bit-array", ctf2_read_bit_array},
        {"fixed-length-bit-map", ctf2_read_bit_map},
        {"fixed-length-floating-point-number", ctf2_read_float},
        {"variable-length-unsigned-integer", ctf2_read_unsigned_leb},
        {"variable-length-signed-integer", ctf2_read_signed_leb},
        {"static-length-blob", read_static_blob},
        {"dynamic-length-blob", read_dynamic_blob},
    };
    if (r->l->failed)
        return NULL;
    if (node->kind == CTF2_STRING)
        return read_alias(r, node);
    if (node->kind != CTF2_OBJECT) {
        tsdl_fail(r->l, node->at, ERR_FORMAT, "a field class must be an object, or the name of an alias");
        return NULL;
    }
    const struct ctf2_node *type = ctf2_get_kind(r->j, node, "type", CTF2_STRING, true);
    ctf2_check_common(r->j, node);
    for (size_t i = 0; type && i < sizeof kinds / sizeof *kinds; i++)
        if (ctf2_is(type, kinds[i].type)) {
            struct tsdl_decl *d = kinds[i].read(r, node);
            return r->l->failed ? NULL : d;
        }
    if (type)
        tsdl_fail(r->l, type->at, ERR_FORMAT, "unknown type of field class '%.*s'", (int)type->s_n, type->s);
    return NULL;
}

struct tsdl_decl *ctf2_field_class(struct tsdl_parser *p, struct ctf2_json *j, const struct ctf2_node *node)
{
    struct ctf2_reader r = {p, &p->lex, j};
    return read_class(&r, node);
}
