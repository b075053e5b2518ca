/* SPDX-License-Identifier: MIT */
/* Event headers of a known shape, which are read without a program. */
#include "ctf/layout.h"

static bool whole_bytes(const struct ctf_type *t)
{
    return (t->kind == CTF_INT || t->kind == CTF_ENUM) && t->align_bits >= 8 && !t->is_reversed &&
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
        bool is_time = p->sc->clock >= 0 && b->clock == p->sc->clock, has_id = t->roles & 1u << CTF_ROLE_ID,
             is_id = !is_time && has_id;
        if (p->sc->is_ctf2 && is_time && has_id)
            return false;
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
    return at > 0; /* events without bits take the slow path, which detects that the position does not advance */
}

static bool is_plain(const struct ctf_type *t, int64_t bits, uint32_t align, bool big_endian)
{
    const struct ctf_type *b = ctf_type_bits(t);
    return (t->kind == CTF_INT || t->kind == CTF_ENUM) && b->size_bits == bits && !b->is_signed && !b->is_reversed &&
        b->align_bits >= align && b->align_bits <= 64 && b->big_endian == big_endian;
}

/* Detects the header as LTTng writes it: struct { <n bits> id; variant <id> { struct { time } short; struct { 32 bits
 * id; 64 bits time } long; } }. */
static bool detect_lttng(struct ctf_stream_plan *p, const struct ctf_type *h, int64_t id_bits, int64_t time_bits)
{
    if (h->n != 2 || h->u.fields[0].type->roles != 1u << CTF_ROLE_ID || h->u.fields[1].type->kind != CTF_VARIANT)
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
    if (s->kind != CTF_STRUCT || l->kind != CTF_STRUCT || s->n != 1 || l->n != 2 ||
        l->u.fields[0].type->roles != 1u << CTF_ROLE_ID)
        return false;
    const struct ctf_type *st = s->u.fields[0].type, *li = l->u.fields[0].type, *lt = l->u.fields[1].type;
    if (!is_plain(st, time_bits, time_bits == 27 ? 1 : 8, be) || !is_plain(li, 32, 8, be) || !is_plain(lt, 64, 8, be) ||
        l->align_bits > 64 || s->align_bits > 64 || p->sc->clock < 0 || st->clock != p->sc->clock ||
        lt->clock != p->sc->clock)
        return false;
    if (time_bits == 27 && (s->align_bits != 1 || st->align_bits != 1))
        return false;
    p->short_align = ctf_byte_mask(s->align_bits);
    p->long_align = ctf_byte_mask(l->align_bits);
    p->long_time_align = ctf_byte_mask(lt->align_bits);
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

void ctf_plan_header(struct ctf_stream_plan *p)
{
    const struct ctf_type *h = p->sc->event_header;
    p->kind = CTF_HEADER_PROGRAM;
    if (!h)
        return;
    byte_order_of(h, &p->big_endian);
    if (h->align_bits < 8 || h->align_bits > 64)
        return;
    p->header_align = ctf_byte_mask(h->align_bits);
    if (!detect_simple(p, h) && !detect_lttng(p, h, 5, 27) && !detect_lttng(p, h, 16, 32))
        p->kind = CTF_HEADER_PROGRAM;
}
