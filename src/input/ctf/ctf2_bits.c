/* SPDX-License-Identifier: MIT */
/* Field classes of CTF 2 as declarations: bit fields and LEB128 integers; parts shared with the other classes. */
#include <stdlib.h>
#include <string.h>

#include "ctf/ctf2_fields.h"

struct tsdl_decl *ctf2_new_decl(struct ctf2_reader *r, enum ctf_kind kind, const char *at)
{
    struct tsdl_decl *d = arena_new(&r->p->temp, struct tsdl_decl, 1);
    *d = (struct tsdl_decl){.kind = (uint8_t)kind, .base = 10, .align_bits = 1, .size_bits = -1, .clock = -1, .at = at};
    return d;
}

/* ---- properties ---- */

void ctf2_read_align(struct ctf2_reader *r, const struct ctf2_node *node, const char *name, struct tsdl_decl *d)
{
    const struct ctf2_node *align = ctf2_get_kind(r->j, node, name, CTF2_INTEGER, false);
    if (!align)
        return;
    if (align->u == 0) { /* LTTng writes it for machines without alignment */
        tsdl_warn(r->p, align->at, "an alignment of 0 is taken as 1");
        return;
    }
    if (align->negative || align->u > 1u << 30 || (align->u & (align->u - 1)))
        tsdl_fail(r->l, align->at, ERR_FORMAT, "an alignment must be a power of two from 1 to 2^30");
    else
        d->align_bits = (uint32_t)align->u;
}

bool ctf2_read_word(struct ctf2_reader *r, const struct ctf2_node *node, const char *name, bool needed,
    const char *const *words, int *out)
{
    const struct ctf2_node *word = ctf2_get_kind(r->j, node, name, CTF2_STRING, needed);
    if (!word)
        return false;
    for (int i = 0; words[i]; i++)
        if (ctf2_is(word, words[i])) {
            *out = i;
            return true;
        }
    tsdl_fail(r->l, word->at, ERR_FORMAT, "'%.*s' is no value of '%s'", (int)word->s_n, word->s, name);
    return false;
}

/* Reads length, byte order, bit order and alignment. */
static void read_bits(struct ctf2_reader *r, const struct ctf2_node *node, struct tsdl_decl *d)
{
    static const char *const byte_orders[] = {"little-endian", "big-endian", NULL};
    static const char *const bit_orders[] = {"first-to-last", "last-to-first", NULL};
    uint64_t length = 0;
    int bytes = 0;
    ctf2_get_count(r->j, node, "length", true, 1, (uint64_t)1 << 31, &length);
    d->size_bits = (int64_t)length;
    ctf2_read_word(r, node, "byte-order", true, byte_orders, &bytes);
    int bits = bytes;
    ctf2_read_word(r, node, "bit-order", false, bit_orders, &bits);
    d->big_endian = bytes == 1;
    d->is_reversed = bits != bytes;
    ctf2_read_align(r, node, "alignment", d);
}

static void read_base(struct ctf2_reader *r, const struct ctf2_node *node, struct tsdl_decl *d)
{
    uint64_t base = 10;
    ctf2_get_count(r->j, node, "preferred-display-base", false, 2, 16, &base);
    if (base != 2 && base != 8 && base != 10 && base != 16)
        tsdl_fail(r->l, ctf2_get(r->j, node, "preferred-display-base")->at, ERR_FORMAT,
            "a display base must be 2, 8, 10 or 16");
    d->base = (uint8_t)base;
}

static const struct {
    const char *name;
    enum ctf_role role;
} roles[] = {
    {"default-clock-timestamp", CTF_ROLE_CLOCK},
    {"event-record-class-id", CTF_ROLE_ID},
    {"packet-magic-number", CTF_ROLE_MAGIC},
    {"metadata-stream-uuid", CTF_ROLE_UUID},
    {"data-stream-class-id", CTF_ROLE_STREAM_ID},
    {"data-stream-id", CTF_ROLE_INSTANCE_ID},
    {"packet-total-length", CTF_ROLE_PACKET_SIZE},
    {"packet-content-length", CTF_ROLE_CONTENT_SIZE},
    {"packet-end-default-clock-timestamp", CTF_ROLE_END},
    {"packet-sequence-number", CTF_ROLE_SEQUENCE},
    {"discarded-event-record-counter-snapshot", CTF_ROLE_DISCARDED},
};

void ctf2_read_roles(struct ctf2_reader *r, const struct ctf2_node *node, struct tsdl_decl *d)
{
    const struct ctf2_node *list = ctf2_get_kind(r->j, node, "roles", CTF2_ARRAY, false);
    if (!list)
        return;
    for
        CTF2_EACH(r->j, list, role)
        {
            size_t i = 0;
            while (i < sizeof roles / sizeof *roles && !ctf2_is(role, roles[i].name))
                i++;
            if (i == sizeof roles / sizeof *roles) {
                tsdl_fail(r->l, role->at, ERR_FORMAT, "unknown role %.*s", (int)(role->end - role->at), role->at);
                return;
            }
            if ((roles[i].role == CTF_ROLE_UUID) != (d->kind == CTF_ARRAY))
                tsdl_fail(
                    r->l, role->at, ERR_FORMAT, "a field class of this type cannot have the role %s", roles[i].name);
            d->roles |= (uint16_t)(1u << roles[i].role);
        }
}

/* ---- ranges ---- */

static __int128 number(const struct ctf2_node *node)
{
    return node->negative ? (__int128)(int64_t)node->u : (__int128)node->u;
}

void ctf2_read_ranges(
    struct ctf2_reader *r, const struct ctf2_node *list, uint32_t option, bool is_signed, ctf2_range_list *out)
{
    if (list->kind != CTF2_ARRAY || list->n == 0)
        tsdl_fail(r->l, list->at, ERR_FORMAT, "ranges must be an array of at least one [lower, upper]");
    if (r->l->failed)
        return;
    for
        CTF2_EACH(r->j, list, range)
        {
            const struct ctf2_node *lo = range + 1, *hi = range + 2;
            if (range->kind != CTF2_ARRAY || range->n != 2 || lo->kind != CTF2_INTEGER || hi->kind != CTF2_INTEGER) {
                tsdl_fail(r->l, range->at, ERR_FORMAT, "a range must be an array of two integers");
                return;
            }
            struct ctf2_range v = {number(lo), number(hi), option, range->at};
            if (v.lo > v.hi)
                tsdl_fail(r->l, range->at, ERR_FORMAT, "this range ends before it begins");
            if (!is_signed && v.lo < 0)
                tsdl_fail(r->l, lo->at, ERR_FORMAT, "a negative bound where there are no negative values");
            vec_push(out, v);
        }
}

/* Reads labels or flags: an object of ranges by name. */
static void read_labels(struct ctf2_reader *r, const struct ctf2_node *object, struct tsdl_decl *d)
{
    ctf2_range_list list = {0};
    VEC(const char *) labels = {0};
    for
        CTF2_EACH(r->j, object, label)
        {
            vec_push(&labels, (const char *)arena_strndup(&r->p->schema->arena, label->key, label->key_n));
            ctf2_read_ranges(r, label, (uint32_t)labels.n - 1, d->is_signed, &list);
        }
    if (!r->l->failed && list.n) {
        d->ranges = arena_new(&r->p->schema->arena, struct ctf_range, list.n);
        for (size_t i = 0; i < list.n; i++) {
            const struct ctf2_range *v = &list.v[i];
            __int128 most = d->is_signed ? (__int128)INT64_MAX : (__int128)UINT64_MAX;
            if (v->lo <= most)
                d->ranges[d->n++] = (struct ctf_range){
                    labels.v[v->option], (int64_t)v->lo, (int64_t)(v->hi < most ? v->hi : most)};
        }
    }
    vec_free(&list);
    vec_free(&labels);
}

/* ---- bits ---- */

/* Makes the enumeration for an integer with labels. */
static struct tsdl_decl *with_labels(struct ctf2_reader *r, const struct ctf2_node *node, struct tsdl_decl *d)
{
    const struct ctf2_node *mappings = ctf2_get(r->j, node, "mappings");
    if (mappings && mappings->kind == CTF2_NULL) { /* LTTng-UST writes it for an enumeration without labels */
        tsdl_warn(r->p, mappings->at, "mappings that are null are taken as none");
        return d;
    }
    mappings = ctf2_get_kind(r->j, node, "mappings", CTF2_OBJECT, false);
    if (!mappings || mappings->n == 0 || d->kind == CTF_WIDE)
        return d;
    struct tsdl_decl *labels = arena_new(&r->p->temp, struct tsdl_decl, 1);
    *labels = *d;
    labels->kind = CTF_ENUM;
    labels->element = d;
    read_labels(r, mappings, labels);
    return labels;
}

static struct tsdl_decl *read_integer(struct ctf2_reader *r, const struct ctf2_node *node, bool is_signed, bool is_leb)
{
    static const char *const fixed[] = {
        "length", "byte-order", "bit-order", "alignment", "preferred-display-base", "mappings", "roles", NULL};
    static const char *const variable[] = {"preferred-display-base", "mappings", "roles", NULL};
    struct tsdl_decl *d = ctf2_new_decl(r, CTF_INT, node->at);
    const struct ctf2_node *unknown = ctf2_unknown(r->j, node, is_leb ? variable : fixed);
    d->is_signed = is_signed;
    d->is_leb = is_leb;
    if (unknown)
        tsdl_fail(r->l, unknown->at, ERR_FORMAT, "an integer has no such property");
    if (is_leb)
        d->align_bits = 8;
    else
        read_bits(r, node, d);
    if (d->size_bits > 64)
        d->kind = CTF_WIDE;
    read_base(r, node, d);
    if (is_signed && ctf2_get(r->j, node, "roles") && ctf2_get(r->j, node, "roles")->n)
        tsdl_fail(r->l, ctf2_get(r->j, node, "roles")->at, ERR_FORMAT, "a signed integer cannot have roles");
    ctf2_read_roles(r, node, d);
    if (d->kind == CTF_WIDE && d->roles)
        tsdl_fail(r->l, node->at, ERR_UNSUPPORTED, "an integer of more than 64 bits that has a role");
    return with_labels(r, node, d);
}

struct tsdl_decl *ctf2_read_unsigned(struct ctf2_reader *r, const struct ctf2_node *node)
{
    return read_integer(r, node, false, false);
}

struct tsdl_decl *ctf2_read_signed(struct ctf2_reader *r, const struct ctf2_node *node)
{
    return read_integer(r, node, true, false);
}

struct tsdl_decl *ctf2_read_unsigned_leb(struct ctf2_reader *r, const struct ctf2_node *node)
{
    return read_integer(r, node, false, true);
}

struct tsdl_decl *ctf2_read_signed_leb(struct ctf2_reader *r, const struct ctf2_node *node)
{
    return read_integer(r, node, true, true);
}

/* Reads bit arrays, bit maps, booleans, floating-point numbers. */
static struct tsdl_decl *read_plain(
    struct ctf2_reader *r, const struct ctf2_node *node, enum ctf_kind kind, enum ctf_look look)
{
    static const char *const names[] = {"length", "byte-order", "bit-order", "alignment", "flags", NULL};
    struct tsdl_decl *d = ctf2_new_decl(r, kind, node->at);
    const struct ctf2_node *unknown = ctf2_unknown(r->j, node, names), *flags = ctf2_get(r->j, node, "flags");
    if (!unknown && flags && look != CTF_LOOK_FLAGS)
        unknown = flags;
    if (unknown)
        tsdl_fail(r->l, unknown->at, ERR_FORMAT, "a field class of this type has no such property");
    read_bits(r, node, d);
    d->look = (uint8_t)look;
    d->base = look == CTF_LOOK_BOOL ? 10 : 16;
    if (d->size_bits > 64)
        d->kind = CTF_WIDE;
    return d;
}

struct tsdl_decl *ctf2_read_bit_array(struct ctf2_reader *r, const struct ctf2_node *node)
{
    return read_plain(r, node, CTF_INT, CTF_LOOK_BITS);
}

struct tsdl_decl *ctf2_read_boolean(struct ctf2_reader *r, const struct ctf2_node *node)
{
    return read_plain(r, node, CTF_INT, CTF_LOOK_BOOL);
}

struct tsdl_decl *ctf2_read_float(struct ctf2_reader *r, const struct ctf2_node *node)
{
    struct tsdl_decl *d = read_plain(r, node, CTF_FLOAT, CTF_LOOK_FLOAT);
    int64_t n = d->size_bits;
    if (n != 16 && n != 32 && n != 64 && n != 128 && (n < 128 || n % 32))
        tsdl_fail(r->l, ctf2_get(r->j, node, "length") ? ctf2_get(r->j, node, "length")->at : node->at, ERR_FORMAT,
            "a floating-point number has 16, 32, 64 or 128 bits, or a greater multiple of 32");
    return d;
}

static int by_label(const void *a, const void *b)
{
    const struct ctf_range *x = a, *y = b;
    return strcmp(x->label, y->label);
}

/* Reads a bit map; flags are shown in the order of their names. */
struct tsdl_decl *ctf2_read_bit_map(struct ctf2_reader *r, const struct ctf2_node *node)
{
    struct tsdl_decl *d = read_plain(r, node, CTF_INT, CTF_LOOK_FLAGS);
    const struct ctf2_node *flags = ctf2_get_kind(r->j, node, "flags", CTF2_OBJECT, true);
    if (flags && flags->n == 0)
        tsdl_fail(r->l, flags->at, ERR_FORMAT, "a bit map needs at least one flag");
    if (flags && !r->l->failed)
        read_labels(r, flags, d);
    if (d->n && !r->l->failed)
        qsort(d->ranges, d->n, sizeof *d->ranges, by_label);
    return d;
}
