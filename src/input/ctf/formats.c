/* SPDX-License-Identifier: MIT */
/* A trace whose pieces are in two formats is read by one schema: the same bits must mean the same in both. */
#include "ctf/formats.h"

#include <string.h>

static bool same_type(const struct ctf_type *a, const struct ctf_type *b);

/* Fields by name. Options by position: their names lose an underscore in CTF 2. */
static bool same_fields(const struct ctf_type *a, const struct ctf_type *b)
{
    for (uint32_t i = 0; i < a->n; i++)
        if ((a->kind == CTF_STRUCT && strcmp(a->u.fields[i].shown, b->u.fields[i].shown) != 0) ||
            !same_type(a->u.fields[i].type, b->u.fields[i].type))
            return false;
    return true;
}

bool ctf_refs_equal(const struct ctf_ref *a, const struct ctf_ref *b)
{
    if (a->slot != b->slot || a->n_choices != b->n_choices)
        return false;
    for (uint32_t i = 0; i < a->n_choices; i++)
        if (a->choices[i].lo != b->choices[i].lo || a->choices[i].hi != b->choices[i].hi ||
            a->choices[i].option != b->choices[i].option)
            return false;
    return true;
}

static bool same_number(const struct ctf_type *a, const struct ctf_type *b)
{
    a = ctf_type_bits(a);
    b = ctf_type_bits(b);
    return a->slot == b->slot && (a->is_signed == b->is_signed || a->is_text) && a->is_reversed == b->is_reversed &&
        a->is_leb == b->is_leb && a->look == b->look && a->size_bits == b->size_bits &&
        a->align_bits == b->align_bits && (a->big_endian == b->big_endian || a->size_bits == 8);
}

/* Labels, bases, and what only one of the formats can say, do not count. */
static bool same_type(const struct ctf_type *a, const struct ctf_type *b)
{
    if (!a || !b)
        return a == b;
    if (a->kind != b->kind || a->align_bits != b->align_bits || a->size_bits != b->size_bits ||
        a->encoding != b->encoding)
        return false;
    switch (a->kind) {
    case CTF_INT:
    case CTF_FLOAT:
    case CTF_ENUM: return same_number(a, b);
    case CTF_STRUCT: return a->n == b->n && same_fields(a, b);
    case CTF_VARIANT:
        return a->n == b->n && a->is_optional == b->is_optional && ctf_refs_equal(a->tag, b->tag) && same_fields(a, b);
    case CTF_SEQUENCE:
        if (!ctf_refs_equal(a->u.list.length, b->u.list.length))
            return false;
        /* fall through */
    case CTF_ARRAY:
        return a->n == b->n && a->u.list.element->is_text == b->u.list.element->is_text &&
            same_type(a->u.list.element, b->u.list.element);
    default: return true;
    }
}

/* Returns whether headers have the same meaning. Clocks that need the packet before differ: formats do not share it. */
static bool same_heads(const struct ctf_stream_class *a, const struct ctf_stream_class *b)
{
    const struct ctf_stream_plan *p = a->plan, *q = b->plan;
    if (!p || !q) /* no events */
        return true;
    return p->kind == q->kind && p->has_begin == q->has_begin && p->has_seq == q->has_seq &&
        p->has_discarded == q->has_discarded && p->begin_bits == q->begin_bits && p->end_bits == q->end_bits &&
        p->id_bytes == q->id_bytes && p->time_bytes == q->time_bytes && p->id_at == q->id_at &&
        p->time_at == q->time_at && !p->only == !q->only && (!p->has_begin || p->begin_bits == 64);
}

static bool same_stream(const struct ctf_stream_class *a, const struct ctf_stream_class *b)
{
    if ((a->clock < 0) != (b->clock < 0) || !same_type(a->packet_context, b->packet_context) ||
        !same_type(a->event_header, b->event_header) || !same_type(a->event_context, b->event_context) ||
        !same_heads(a, b))
        return false;
    for (size_t i = 0; i < a->n; i++) {
        const struct ctf_event_class *c = a->sorted[i], *d = ctf_stream_class_event(b, c->id);
        if (!d || strcmp(c->name, d->name) != 0 ||
            !same_type(c->scope[CTF_EVENT_CONTEXT], d->scope[CTF_EVENT_CONTEXT]) ||
            !same_type(c->scope[CTF_PAYLOAD], d->scope[CTF_PAYLOAD]))
            return false;
    }
    return true;
}

int ctf_piece_agrees(const struct ctf_trace *t, size_t piece, struct err *e)
{
    const struct ctf_metadata *md = &t->pieces.v[piece].md;
    const struct ctf_schema *all = t->schema, *own = md->schema;
    bool same = own->is_ctf2 == all->is_ctf2 || same_type(own->packet_header, all->packet_header);
    for (size_t i = 0; own->is_ctf2 != all->is_ctf2 && i < own->n_streams && same; i++) {
        const struct ctf_stream_class *of_all = ctf_schema_stream(all, own->streams[i].id);
        const struct ctf_clock *c = of_all ? ctf_trace_clock_of(t, (uint32_t)piece, of_all) : NULL;
        same = of_all && same_stream(&own->streams[i], of_all) &&
            (!c || (c >= md->clocks && c < md->clocks + md->n_clocks));
    }
    if (same)
        return 0;
    return err_set(e, ERR_UNSUPPORTED,
        "%s: the trace's directories are partly in CTF 1.8 and partly in CTF 2, and this one, in %s, does not declare "
        "what %s does; move it away, or give it another host's name (NAME=PATH)",
        t->pieces.v[piece].dir, own->is_ctf2 ? "CTF 2" : "CTF 1.8", t->pieces.v[t->main].dir);
}

int ctf_pieces_agree(struct ctf_trace *t, struct err *e)
{
    size_t others = 0;
    int rc = 0;
    for (size_t i = 0; i < t->pieces.n && !rc; i++) {
        if (t->pieces.v[i].md.schema->is_ctf2 == t->schema->is_ctf2)
            continue;
        others++;
        if (!t->pieces.v[i].borrowed)
            rc = ctf_piece_agrees(t, i, e);
    }
    if (!rc && others)
        ctf_remark_add(&t->problems,
            "%s: %zu of %zu directories are in %s, the others in %s; they declare the same and are read as one trace",
            t->pieces.v[0].dir, others, t->pieces.n, t->schema->is_ctf2 ? "CTF 1.8" : "CTF 2",
            t->schema->is_ctf2 ? "CTF 2" : "CTF 1.8");
    return rc;
}
