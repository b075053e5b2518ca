/* SPDX-License-Identifier: MIT */
/* Values of the kinds that only CTF 2 has, in all formats. */
#include "ctf/print_run.h"
#include "ctf/wide.h"

/* Lets a function append to the output between two values. */
static struct text *leave(struct print_run *r, char *o)
{
    r->out->n = (size_t)(o - r->out->v);
    return r->out;
}

static char *enter(struct print_run *r)
{
    char *o = text_room(r->out, 2 * PRINT_ROOM);
    r->limit = r->out->v + r->out->cap - PRINT_ROOM;
    return o;
}

static uint64_t list_bytes(const struct print_run *r, const struct print_op *op)
{
    return op->flag ? r->slots[op->b] : op->a;
}

/* ---- numbers ---- */

static bool is_active(const struct ctf_type *t, const uint8_t *data, uint64_t pos, const struct ctf_range *f)
{
    return wide_any(t, data, pos, (uint64_t)f->lo, (uint64_t)f->hi);
}

/* Writes the flags that are set; a flag has one or several ranges, which are adjacent. */
static void put_flags(struct print_run *r, const struct ctf_type *t, struct text *out)
{
    const struct ctf_range *ranges = t->u.enumeration.ranges;
    bool json = r->plan->json, any = false;
    for (uint32_t i = 0; i < t->n;) {
        bool active = false;
        const char *label = ranges[i].label;
        for (; i < t->n && ranges[i].label == label; i++)
            active |= is_active(t, r->data, r->pos, &ranges[i]);
        if (!active)
            continue;
        text_puts(out, any ? (json ? "," : ", ") : json ? "" : " { ");
        any = true;
        char *o = print_put_string(r, enter(r), label, strlen(label));
        leave(r, o);
    }
    text_puts(out, any && !json ? " }" : "");
}

static char *put_bit_map(struct print_run *r, const struct ctf_type *t, char *o)
{
    struct text *out = leave(r, o);
    if (r->plan->json) {
        text_puts(out, "{\"flags\":[");
        put_flags(r, t, out);
        text_puts(out, "],\"value\":\"");
    }
    wide_bits(out, t, r->data, r->pos, false);
    if (r->plan->json)
        text_puts(out, "\"}");
    else
        put_flags(r, t, out);
    return enter(r);
}

/* Quotes the JSON number written from `at` on, unless it is decimal. */
static void quote_digits(const struct print_run *r, size_t at)
{
    struct text *out = r->out;
    if (!r->plan->json || out->n - at < 2 || out->v[at] != '0')
        return;
    text_puts(out, "\"\"");
    memmove(out->v + at + 1, out->v + at, out->n - at - 2);
    out->v[at] = '"';
    out->v[out->n - 1] = '"';
}

static char *put_wide(struct print_run *r, const struct ctf_type *t, char *o)
{
    struct text *out = leave(r, o);
    bool quoted = r->plan->json && t->look != CTF_LOOK_BOOL && t->look != CTF_LOOK_PLAIN;
    if (t->look == CTF_LOOK_FLAGS)
        return put_bit_map(r, t, o);
    size_t at = out->n;
    text_puts(out, quoted ? "\"" : "");
    wide_bits(out, t, r->data, r->pos, r->plan->json);
    text_puts(out, quoted ? "\"" : "");
    quote_digits(r, at);
    return enter(r);
}

static char *put_integer(struct print_run *r, const struct print_op *op, char *o, uint64_t *bits)
{
    const struct ctf_type *t = op->type, *b = ctf_type_bits(t);
    bool fits = true;
    uint64_t v = ctf_int_at(b, r->data, r->pos, bits);
    if (b->look == CTF_LOOK_FLAGS)
        return put_bit_map(r, b, o);
    if (b->look == CTF_LOOK_BOOL)
        return stpcpy(o, v ? "true" : "false");
    if (b->is_leb)
        ctf_leb(r->data + (r->pos >> 3), UINT64_MAX, b->is_signed, &v, &fits);
    if (!fits) {
        size_t at = leave(r, o)->n;
        wide_leb(r->out, b, r->data, r->pos);
        quote_digits(r, at);
        return enter(r);
    }
    if (t->kind == CTF_ENUM)
        return print_put_enum(r, o, op, (int64_t)v);
    if (r->plan->json)
        return b->is_signed ? print_i64(o, (int64_t)v) : print_u64(o, v);
    return print_text_int(o, b, (int64_t)v);
}

/* ---- bytes ---- */

static char *put_text(struct print_run *r, const struct ctf_type *t, uint64_t bytes, char *o)
{
    const uint8_t *p = r->data + (r->pos >> 3);
    char part[256];
    size_t n = wide_utf8_part((enum ctf_encoding)t->encoding, &p, &bytes, part, sizeof part);
    o = print_put_string(r, o, part, n);
    while (bytes > 0) { /* "a" and "b" become "ab" */
        n = wide_utf8_part((enum ctf_encoding)t->encoding, &p, &bytes, part, sizeof part);
        ptrdiff_t at = o - r->out->v;
        o = print_put_string(r, o, part, n);
        char *quotes = r->out->v + at - 1;
        memmove(quotes, quotes + 2, (size_t)(o - quotes - 2));
        o -= 2;
    }
    return o;
}

static char *put_blob(struct print_run *r, uint64_t bytes, char *o)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *p = r->data + (r->pos >> 3);
    bool json = r->plan->json;
    struct text *out = leave(r, o);
    text_puts(out, json ? "\"" : "{");
    for (uint64_t i = 0; i < bytes; i++) {
        if (!json)
            text_putc(out, ' ');
        text_putc(out, digits[p[i] >> 4]);
        text_putc(out, digits[p[i] & 15]);
    }
    text_puts(out, json ? "\"" : " }");
    return enter(r);
}

char *print_other(struct print_run *r, const struct print_op *op, char *o)
{
    const struct ctf_type *t = op->type;
    bool shown = op->code == PRINT_OTHER;
    uint64_t bits = 0;
    switch (t->kind) {
    case CTF_STRING:
        bits = 8 * wide_string_bytes((enum ctf_encoding)t->encoding, r->data + (r->pos >> 3));
        o = shown ? put_text(r, t, bits / 8, o) : o;
        break;
    case CTF_ARRAY:
    case CTF_SEQUENCE:
        bits = 8 * list_bytes(r, op);
        if (shown)
            o = t->is_blob ? put_blob(r, bits / 8, o) : put_text(r, t, bits / 8, o);
        break;
    case CTF_WIDE:
        bits = (uint64_t)t->size_bits;
        o = shown ? put_wide(r, t, o) : o;
        break;
    case CTF_FLOAT:
        bits = (uint64_t)t->size_bits;
        if (shown && r->plan->json)
            o = print_json_float(o, wide_float(t, r->data, r->pos), bits <= 32);
        else if (shown)
            o = print_text_float(o, wide_float(t, r->data, r->pos));
        break;
    default:
        if (shown)
            o = put_integer(r, op, o, &bits);
        else
            ctf_int_at(t, r->data, r->pos, &bits);
    }
    r->pos += bits;
    return o;
}
