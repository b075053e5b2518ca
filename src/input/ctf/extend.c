/* SPDX-License-Identifier: MIT */
/* Extended metadata: existing classes of a trace keep their numbers and places, new ones are appended. */
#include <stdlib.h>

#include "base/search.h"
#include "ctf/formats.h"
#include "ctf/trace.h"

/* free_slots: bit per slot that a number without slot may have got, because new classes refer to it. */
static bool equal_types(const struct ctf_type *a, const struct ctf_type *b, uint64_t free_slots);

static bool equal_fields(const struct ctf_type *a, const struct ctf_type *b, uint64_t free_slots)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (strcmp(a->u.fields[i].name, b->u.fields[i].name) != 0 ||
            !equal_types(a->u.fields[i].type, b->u.fields[i].type, free_slots))
            return false;
    return true;
}

static bool equal_refs(const struct ctf_ref *a, const struct ctf_ref *b)
{
    if (!a || !b)
        return a == b;
    return a->may_miss == b->may_miss && ctf_refs_equal(a, b);
}

static bool equal_slots(const struct ctf_type *a, const struct ctf_type *b, uint64_t free_slots)
{
    if (a->slot == b->slot)
        return a->may_miss == b->may_miss;
    return !a->slot && b->slot < CTF_SLOTS && free_slots >> b->slot & 1;
}

/* Returns whether the same bits are read as the same values. Labels and bases may differ. */
static bool equal_types(const struct ctf_type *a, const struct ctf_type *b, uint64_t free_slots)
{
    if (!a || !b)
        return a == b;
    if (a->kind != b->kind || a->is_signed != b->is_signed || a->big_endian != b->big_endian ||
        a->align_bits != b->align_bits || a->size_bits != b->size_bits || a->roles != b->roles || a->look != b->look ||
        a->encoding != b->encoding || a->is_reversed != b->is_reversed || a->is_leb != b->is_leb ||
        a->is_optional != b->is_optional || a->is_text != b->is_text || a->is_blob != b->is_blob ||
        !equal_slots(a, b, free_slots))
        return false;
    switch (a->kind) {
    case CTF_STRUCT: return a->n == b->n && equal_fields(a, b, free_slots);
    case CTF_VARIANT: return a->n == b->n && equal_refs(a->tag, b->tag) && equal_fields(a, b, free_slots);
    case CTF_ARRAY: return a->n == b->n && equal_types(a->u.list.element, b->u.list.element, free_slots);
    case CTF_SEQUENCE:
        return equal_refs(a->u.list.length, b->u.list.length) &&
            equal_types(a->u.list.element, b->u.list.element, free_slots);
    default: return true;
    }
}

/* Compares only the event's own scopes; the ones before are the stream's. */
static bool equal_classes(const struct ctf_event_class *a, const struct ctf_event_class *b)
{
    return strcmp(a->name, b->name) == 0 && equal_types(a->scope[CTF_EVENT_CONTEXT], b->scope[CTF_EVENT_CONTEXT], 0) &&
        equal_types(a->scope[CTF_PAYLOAD], b->scope[CTF_PAYLOAD], 0);
}

static int check_streams(const struct ctf_schema *old, const struct ctf_schema *new, struct err *e)
{
    if (old->n_streams == 0) /* no packet can have been read with them */
        return 0;
    uint64_t used = ctf_type_slots(old->packet_header);
    for (size_t i = 0; i < old->n_streams; i++) /* slots of the packet header count for all streams */
        used |= ctf_type_slots(old->streams[i].packet_context) | ctf_type_slots(old->streams[i].event_header) |
            ctf_type_slots(old->streams[i].event_context);
    if (old->is_ctf2 != new->is_ctf2 || old->big_endian != new->big_endian ||
        !equal_types(old->packet_header, new->packet_header, ~used))
        return err_set(e, ERR_FORMAT, "the metadata contradict what they were: packets have another header");
    for (size_t i = 0; i < old->n_streams; i++) {
        const struct ctf_stream_class *a = &old->streams[i], *b = ctf_schema_stream(new, a->id);
        uint64_t free_slots = ~(ctf_type_slots(old->packet_header) | ctf_type_slots(a->packet_context) |
            ctf_type_slots(a->event_header) | ctf_type_slots(a->event_context));
        if (!b || !equal_types(a->event_header, b->event_header, free_slots) ||
            !equal_types(a->packet_context, b->packet_context, free_slots) ||
            !equal_types(a->event_context, b->event_context, free_slots))
            return err_set(e, ERR_FORMAT, "the metadata contradict what they were: stream class %llu is %s",
                (unsigned long long)a->id, b ? "another one" : "gone");
    }
    return 0;
}

static const struct ctf_event_class *same_class(const struct ctf_schema *s, const struct ctf_event_class *c)
{
    const struct ctf_stream_class *stream = ctf_schema_stream(s, c->stream_id);
    return stream ? ctf_stream_class_event(stream, c->id) : NULL;
}

static int check_classes(const struct ctf_schema *old, const struct ctf_schema *new, struct err *e)
{
    for (size_t i = 2; i < old->n_classes; i++) {
        const struct ctf_event_class *a = old->classes[i], *b = same_class(new, a);
        if (!b || !equal_classes(a, b))
            return err_set(e, ERR_FORMAT,
                "the metadata contradict what they were: event %llu of stream class %llu, "
                "'%.100s', is %s",
                (unsigned long long)a->id, (unsigned long long)a->stream_id, a->name, b ? "another one" : "gone");
    }
    return 0;
}

/* Puts the old class in all places of its new version in the schema. */
static void take_over(struct ctf_schema *s, struct ctf_event_class *old, const struct ctf_event_class *new)
{
    struct ctf_stream_class *stream = (struct ctf_stream_class *)ctf_schema_stream(s, old->stream_id);
    stream->sorted[search_first(i, 0, stream->n, stream->sorted[i]->id >= old->id)] = old;
    if (stream->by_id)
        stream->by_id[old->id] = old;
    if (!stream->plan)
        return;
    if (old->id < stream->plan->table_n && stream->plan->table[old->id].cls)
        stream->plan->table[old->id].cls = old;
    if (stream->plan->only == new)
        stream->plan->only = old;
}

/* Numbers the classes of the old schema first, in their order. */
static void renumber(const struct ctf_schema *old, struct ctf_schema *new)
{
    struct ctf_event_class **classes = mem_alloc(sizeof *classes * new->n_classes);
    size_t n = old->n_classes;
    for (size_t i = 2; i < old->n_classes; i++)
        ((struct ctf_event_class *)same_class(new, old->classes[i]))->index = 0;
    memcpy(classes, old->classes, sizeof *classes * n);
    for (size_t i = 2; i < new->n_classes; i++) {
        if (!new->classes[i]->index)
            continue;
        new->classes[i]->index = (uint32_t)n;
        classes[n++] = new->classes[i];
    }
    for (size_t i = 2; i < old->n_classes; i++)
        take_over(new, old->classes[i], same_class(new, old->classes[i]));
    memcpy(new->classes, classes, sizeof *classes * n);
    free(classes);
}

static bool has_more(const struct ctf_metadata *old, const struct ctf_metadata *new)
{
    return new->schema->n_classes > old->schema->n_classes || new->schema->n_streams > old->schema->n_streams ||
        new->n_env != old->n_env || new->n_clocks != old->n_clocks;
}

int ctf_trace_extend(struct ctf_trace *t, uint32_t piece, struct ctf_metadata *md, struct err *e)
{
    const struct ctf_schema *old = t->schema;
    struct ctf_piece *p = &t->pieces.v[piece];
    const struct ctf_metadata *main = &t->pieces.v[t->main].md;
    if (main->has_uuid && (!md->has_uuid || memcmp(main->uuid, md->uuid, 16) != 0))
        return err_set(e, ERR_FORMAT, "the metadata contradict what they were: they are of another trace (uuid)");
    int rc = check_streams(old, md->schema, e);
    rc = rc ? rc : check_classes(old, md->schema, e);
    if (rc)
        return rc;
    if (!has_more(main, md)) {
        ctf_metadata_fini(md, NULL);
        return 0;
    }
    renumber(old, md->schema);
    vec_push(&t->outgrown, *p);
    p->md = *md;
    p->own = true;
    p->borrowed = false;
    t->main = piece;
    ctf_trace_plan(t);
    for (size_t i = 0; i < t->streams.n; i++) {
        struct ctf_stream *s = &t->streams.v[i];
        s->plan = t->plans[ctf_schema_stream(t->schema, s->plan->sc->id) - t->schema->streams];
    }
    return 0;
}

/* ---- declarations of pieces ---- */

static uint64_t hash_env(const struct ctf_metadata *md)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < md->n_env; i++) {
        const struct ctf_env *v = &md->env[i];
        uint64_t parts[3] = {sum, map_hash(v->name, strlen(v->name)),
            v->is_string ? map_hash(v->string, strlen(v->string)) : (uint64_t)v->number};
        sum = map_hash(parts, sizeof parts);
    }
    return sum;
}

/* Hashes the piece's declarations. Pure additions in the trace's declarations do not count: the piece's packets were
 * recorded without them. */
static uint64_t hash_declared(const struct ctf_trace *t, const struct ctf_schema *own, uint64_t env)
{
    const struct ctf_schema *used = t->schema;
    bool adds = own == used || (!check_streams(own, used, NULL) && !check_classes(own, used, NULL));
    uint64_t parts[5] = {env, own->hash[0], own->hash[1], adds ? 0 : used->hash[0], adds ? 0 : used->hash[1]};
    return map_hash(parts, sizeof parts);
}

void ctf_pieces_declare(struct ctf_trace *t, size_t from)
{
    uint64_t env = hash_env(&t->pieces.v[t->main].md);
    for (size_t i = from; i < t->pieces.n; i++) {
        struct ctf_piece *p = &t->pieces.v[i];
        bool as_before = i > from && p->md.schema == p[-1].md.schema;
        p->declared = as_before ? p[-1].declared : hash_declared(t, p->md.schema, env);
    }
}
