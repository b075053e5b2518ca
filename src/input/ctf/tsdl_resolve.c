/* SPDX-License-Identifier: MIT */
/* Turns declarations into a schema: every use gets its own types, lengths and tags find their fields, sizes are
 * computed. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "ctf/tsdl_resolver.h"

enum { MAX_EMPTY = 4096 };
static const int64_t max_bits = (int64_t)1 << 60;

static void fail_at(struct resolver *b, const char *at, int code, const char *text)
{
    tsdl_fail(&b->p->lex, at, code, "%s", text);
}

bool resolver_count(struct resolver *b, const char *at, size_t n)
{
    size_t most = TSDL_MAX_TYPES + (size_t)(b->p->scan->end - b->p->lex.text) / TSDL_TYPE_BYTES;
    b->n_types += n;
    if (b->n_types > most)
        tsdl_fail(&b->p->lex, at, ERR_LIMIT,
            "more than %zu types, counting every use of a named type and each event's share of its stream", most);
    return !b->p->lex.failed;
}

/* ---- slots ---- */

static uint32_t header_slot(struct resolver *b, uint8_t level)
{
    uint32_t *last = level == LEVEL_TRACE ? &b->n_trace : &b->n_stream[b->stream];
    uint32_t before = level == LEVEL_TRACE ? b->n_headers : b->n_trace;
    *last = (*last > before ? *last : before) + 1;
    if (*last > b->n_headers)
        b->n_headers = *last;
    return *last;
}

uint32_t resolver_slot(struct resolver *b, struct ctf_type *target, const char *at, enum ctf_scope scope, uint32_t slot)
{
    static const uint8_t level_of[CTF_SCOPES] = {
        LEVEL_TRACE, LEVEL_STREAM, LEVEL_STREAM, LEVEL_STREAM, LEVEL_EVENT, LEVEL_EVENT};
    if (target->slot)
        return target->slot;
    uint8_t level = level_of[scope];
    if (!slot)
        slot = level == LEVEL_EVENT ? ++b->n_event : header_slot(b, level);
    target->slot = slot;
    vec_push(&b->targets, ((struct target){target, at, b->stream, level}));
    return target->slot;
}

/* ---- types ---- */

static bool make(struct resolver *b, const struct tsdl_decl *d, const struct ctf_type **out, int64_t *least);

static bool push(struct resolver *b, const struct tsdl_decl *d, struct ctf_type *type)
{
    if (b->depth >= CTF_DEPTH) {
        tsdl_fail(&b->p->lex, d->at, ERR_LIMIT, "types nested more than %d deep", CTF_DEPTH);
        return false;
    }
    b->frames[b->depth].decl = d->copy_of ? d->copy_of : d;
    b->frames[b->depth].type = type;
    b->frames[b->depth++].index = 0;
    return true;
}

static int64_t align_up(int64_t bits, uint32_t align)
{
    return (bits + align - 1) & -(int64_t)align;
}

/* Makes members of structs and variants, and computes sizes and alignment of structs. */
static bool make_members(struct resolver *b, const struct tsdl_decl *d, struct ctf_type *type, int64_t *least)
{
    if (!resolver_count(b, d->at, d->n) || !push(b, d, type))
        return false;
    struct ctf_field *fields = arena_new(&b->schema->arena, struct ctf_field, d->n + 1);
    bool is_struct = d->kind == CTF_STRUCT, ok = true;
    int64_t pos = 0, smallest = 0;
    type->u.fields = fields;
    type->n = d->n;
    for (uint32_t i = 0; i < d->n && ok; i++) {
        int64_t bits = 0;
        b->frames[b->depth - 1].index = i;
        fields[i].name = d->members[i].name->s;
        fields[i].shown = fields[i].name + (d->members[i].shown == TSDL_SHOWN_BARE);
        ok = make(b, d->members[i].type, &fields[i].type, &bits);
        if (!ok)
            break;
        const struct ctf_type *t = fields[i].type;
        smallest = is_struct ? smallest + bits : i == 0 || bits < smallest ? bits : smallest;
        if (is_struct && t->align_bits > type->align_bits)
            type->align_bits = t->align_bits;
        if (pos >= 0)
            pos = t->size_bits < 0 ? -1 : align_up(pos, t->align_bits) + t->size_bits;
        if (pos > max_bits || smallest > max_bits) {
            fail_at(b, d->members[i].at, ERR_LIMIT, "this struct is too large");
            ok = false;
        }
    }
    type->size_bits = is_struct ? pos : -1;
    *least = smallest;
    b->depth--;
    return ok;
}

static bool make_variant(struct resolver *b, const struct tsdl_decl *d, struct ctf_type *type, int64_t *least)
{
    if (!d->path && !d->location) {
        fail_at(b, d->at, ERR_FORMAT, "this variant has no tag");
        return false;
    }
    type->tag = d->location ? ctf2_make_ref(b, d) : tsdl_make_ref(b, d->path, true);
    if (!type->tag)
        return false;
    if (d->path)
        tsdl_make_choices(b, d, type->tag);
    bool ok = make_members(b, d, type, least);
    if (d->is_optional)
        *least = 0;
    return ok;
}

/* Returns whether the bytes of a text are no whole number of code units, which is checked when decoding. */
static bool has_odd_units(const struct tsdl_decl *d)
{
    unsigned unit = d->encoding >= CTF_UTF32BE ? 4 : d->encoding >= CTF_UTF16BE ? 2 : 1;
    return d->n % unit != 0;
}

static bool make_list(struct resolver *b, const struct tsdl_decl *d, struct ctf_type *type, int64_t *least)
{
    if (d->kind == CTF_SEQUENCE)
        type->u.list.length = d->location ? ctf2_make_ref(b, d) : tsdl_make_ref(b, d->path, false);
    if (d->kind == CTF_SEQUENCE && !type->u.list.length)
        return false;
    int64_t bits = 0, stride, all;
    if (!push(b, d, type))
        return false;
    bool ok = make(b, d->element, &type->u.list.element, &bits);
    b->depth--;
    if (!ok)
        return false;
    const struct ctf_type *element = type->u.list.element;
    if (element->align_bits > type->align_bits)
        type->align_bits = element->align_bits;
    if (d->kind == CTF_SEQUENCE)
        return true;
    type->n = d->n;
    if (bits == 0 && d->n > MAX_EMPTY) {
        tsdl_fail(&b->p->lex, d->at, ERR_LIMIT, "an array of more than %d elements that may take no bits", MAX_EMPTY);
        return false;
    }
    stride = element->size_bits < 0 ? bits : align_up(element->size_bits, element->align_bits);
    if (__builtin_mul_overflow(stride, (int64_t)d->n, &all) || all > max_bits) {
        fail_at(b, d->at, ERR_LIMIT, "this array is too large");
        return false;
    }
    *least = bits * d->n;
    if (element->size_bits >= 0 && !has_odd_units(d))
        type->size_bits = d->n ? all - stride + element->size_bits : 0;
    return true;
}

/* Makes a type for one use. *out is set before the members are made, so that they can refer to earlier members.
 * `least`: its minimum of bits. */
static bool make(struct resolver *b, const struct tsdl_decl *d, const struct ctf_type **out, int64_t *least)
{
    if (!resolver_count(b, d->at, 1))
        return false;
    struct ctf_type *type = arena_new(&b->schema->arena, struct ctf_type, 1);
    *type = (struct ctf_type){.kind = d->kind,
        .is_signed = d->is_signed,
        .big_endian = d->big_endian,
        .is_text = d->is_text,
        .base = d->base,
        .align_bits = d->align_bits,
        .size_bits = d->size_bits,
        .look = d->look,
        .encoding = d->encoding,
        .is_blob = d->is_blob,
        .is_optional = d->is_optional,
        .is_reversed = d->is_reversed,
        .is_leb = d->is_leb,
        .media_type = d->media_type,
        .clock = d->clock};
    *out = type;
    if (b->schema->is_ctf2 && !ctf2_take_roles(b, d, type))
        return false;
    switch ((enum ctf_kind)d->kind) {
    case CTF_STRUCT: return make_members(b, d, type, least);
    case CTF_VARIANT: return make_variant(b, d, type, least);
    case CTF_ARRAY:
    case CTF_SEQUENCE: return make_list(b, d, type, least);
    case CTF_STRING: *least = 8; return true;
    case CTF_ENUM:
    case CTF_INT:
    case CTF_WIDE:
        type->n = d->n;
        type->u.enumeration.ranges = d->ranges;
        *least = d->is_leb ? 8 : d->size_bits;
        return d->kind != CTF_ENUM || make(b, d->element, &type->u.enumeration.container, least);
    case CTF_FLOAT: *least = d->size_bits; return true;
    }
    return false;
}

/* ---- roles ---- */

static uint16_t role_named(enum ctf_scope scope, const char *name)
{
    static const struct {
        enum ctf_scope scope;
        const char *name;
        enum ctf_role role;
    } named[] = {
        {CTF_PACKET_CONTEXT, "cpu_id", CTF_ROLE_CPU}, /* LTTng's, in CTF 2 too */
        {CTF_PACKET_CONTEXT, "timestamp_begin", CTF_ROLE_BEGIN},
        {CTF_PACKET_CONTEXT, "timestamp_end", CTF_ROLE_END},
        {CTF_PACKET_CONTEXT, "content_size", CTF_ROLE_CONTENT_SIZE},
        {CTF_PACKET_CONTEXT, "packet_size", CTF_ROLE_PACKET_SIZE},
        {CTF_PACKET_CONTEXT, "packet_seq_num", CTF_ROLE_SEQUENCE},
        {CTF_PACKET_CONTEXT, "events_discarded", CTF_ROLE_DISCARDED},
        {CTF_PACKET_HEADER, "magic", CTF_ROLE_MAGIC},
        {CTF_PACKET_HEADER, "stream_id", CTF_ROLE_STREAM_ID},
        {CTF_PACKET_HEADER, "stream_instance_id", CTF_ROLE_INSTANCE_ID},
        {CTF_PACKET_HEADER, "uuid", CTF_ROLE_UUID},
        {CTF_EVENT_HEADER, "id", CTF_ROLE_ID},
    };
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (named[i].scope == scope && !strcmp(name, named[i].name))
            return (uint16_t)(1u << named[i].role);
    return 0;
}

/* Sets roles of fields by their names: at the top of packet scopes, at any depth of event headers. */
static void name_roles(struct resolver *b, enum ctf_scope scope, struct ctf_type *type)
{
    bool ctf2 = b->schema->is_ctf2;
    if (scope > CTF_EVENT_HEADER || (type->kind != CTF_STRUCT && type->kind != CTF_VARIANT))
        return;
    for (uint32_t i = 0; i < type->n; i++) {
        struct ctf_type *t = (struct ctf_type *)type->u.fields[i].type;
        uint16_t role = role_named(scope, type->u.fields[i].name);
        bool is_uuid = role == 1u << CTF_ROLE_UUID, is_number = t->kind == CTF_INT || t->kind == CTF_ENUM;
        if (is_uuid ? t->kind == CTF_ARRAY && t->n == 16 && t->size_bits == 128 : is_number)
            t->roles |= !ctf2 || role == 1u << CTF_ROLE_CPU ? role : 0;
        if (scope == CTF_EVENT_HEADER)
            name_roles(b, scope, t);
    }
}

static const struct ctf_type *make_scope(struct resolver *b, enum ctf_scope scope, const struct tsdl_decl *d)
{
    b->roots[scope] = NULL;
    if (!d || b->p->lex.failed)
        return NULL;
    int64_t least = 0;
    b->scope = scope;
    b->depth = 0;
    const struct ctf_type *type = NULL;
    make(b, d, &type, &least);
    b->roots[scope] = type;
    if (type && !b->p->lex.failed)
        name_roles(b, scope, (struct ctf_type *)type);
    return type;
}

/* ---- clocks ---- */

/* Maps times without a clock to the trace's only one. */
static void map_times(struct resolver *b, const struct ctf_type *type, const char *name)
{
    if (!type || (type->kind != CTF_STRUCT && type->kind != CTF_VARIANT))
        return;
    for (uint32_t i = 0; i < type->n; i++) {
        struct ctf_type *t = (struct ctf_type *)type->u.fields[i].type;
        if ((t->kind == CTF_INT || t->kind == CTF_ENUM) && t->clock < 0 && strcmp(type->u.fields[i].name, name) == 0)
            t->clock = tsdl_clock(b->p, "", 0);
        map_times(b, t, name);
    }
}

static int32_t first_clock(const struct ctf_type *type)
{
    if (!type)
        return -1;
    int32_t clock = type->kind == CTF_INT || type->kind == CTF_ENUM ? type->clock : -1;
    if (type->kind == CTF_ARRAY || type->kind == CTF_SEQUENCE)
        return first_clock(type->u.list.element);
    if (type->kind == CTF_STRUCT || type->kind == CTF_VARIANT)
        for (uint32_t i = 0; i < type->n && clock < 0; i++)
            clock = first_clock(type->u.fields[i].type);
    return clock;
}

/* ---- streams and events ---- */

static void make_stream(struct resolver *b, uint32_t i)
{
    const struct tsdl_stream *decl = &b->p->streams.v[i];
    struct ctf_stream_class *stream = &b->schema->streams[i];
    size_t before = b->n_types;
    b->stream = i;
    stream->id = decl->id;
    stream->packet_context = make_scope(b, CTF_PACKET_CONTEXT, decl->packet_context);
    stream->event_header = make_scope(b, CTF_EVENT_HEADER, decl->event_header);
    stream->event_context = make_scope(b, CTF_STREAM_EVENT_CONTEXT, decl->event_context);
    b->stream_types[i] = b->n_types - before;
    if (b->p->lex.failed)
        return;
    stream->is_ctf2 = b->schema->is_ctf2;
    if (stream->is_ctf2) {
        stream->clock = decl->clock;
        return;
    }
    map_times(b, stream->packet_context, "timestamp_begin");
    map_times(b, stream->packet_context, "timestamp_end");
    map_times(b, stream->event_header, "timestamp");
    stream->clock = first_clock(stream->event_header);
    if (stream->clock < 0)
        stream->clock = first_clock(stream->packet_context);
    if (stream->clock < 0)
        stream->clock = first_clock(stream->event_context);
}

/* Sets the clocks of streams without one in headers and contexts: the clock of their events. */
static void find_event_clocks(struct ctf_schema *s)
{
    for (size_t i = 2; i < s->n_classes; i++) {
        struct ctf_stream_class *stream = (struct ctf_stream_class *)ctf_schema_stream(s, s->classes[i]->stream_id);
        if (stream->is_ctf2)
            continue;
        if (stream->clock < 0)
            stream->clock = first_clock(s->classes[i]->scope[CTF_EVENT_CONTEXT]);
        if (stream->clock < 0)
            stream->clock = first_clock(s->classes[i]->scope[CTF_PAYLOAD]);
    }
}

static int by_stream_id(const void *a, const void *b)
{
    uint64_t x = ((const struct tsdl_stream *)a)->id, y = ((const struct tsdl_stream *)b)->id;
    return order_of(x, y);
}

static void make_streams(struct resolver *b)
{
    struct tsdl_parser *p = b->p;
    struct tsdl_lexer *l = &p->lex;
    if (p->streams.n == 0 && !b->schema->is_ctf2)
        vec_push(&p->streams, ((struct tsdl_stream){.at = p->scan->trace.begin})); /* stream of a trace that declares
                                                                                    * only events */
    if (p->streams.n == 0)
        return;
    if (!resolver_count(b, p->streams.v[p->streams.n - 1].at, p->streams.n))
        return;
    qsort(p->streams.v, p->streams.n, sizeof *p->streams.v, by_stream_id);
    for (size_t i = 1; i < p->streams.n; i++)
        if (p->streams.v[i].id == p->streams.v[i - 1].id)
            tsdl_fail(l, p->streams.v[i].at > p->streams.v[i - 1].at ? p->streams.v[i].at : p->streams.v[i - 1].at,
                ERR_FORMAT, "a second stream with the id %llu", (unsigned long long)p->streams.v[i].id);
    b->schema->n_streams = p->streams.n;
    b->schema->streams = arena_new(&b->schema->arena, struct ctf_stream_class, p->streams.n);
    b->n_stream = arena_new(&p->temp, uint32_t, p->streams.n);
    b->stream_types = arena_new(&p->temp, size_t, p->streams.n);
}

/* Returns the stream of an event block, or NULL with the error. */
static struct ctf_stream_class *stream_of(struct resolver *b, const struct tsdl_event *ev)
{
    struct ctf_schema *s = b->schema;
    struct ctf_stream_class *found = NULL;
    if (ev->has_stream_id)
        found = (struct ctf_stream_class *)ctf_schema_stream(s, ev->stream_id);
    else if (s->n_streams == 1)
        found = &s->streams[0];
    if (!found && ev->has_stream_id)
        tsdl_fail(&b->p->lex, ev->at, ERR_FORMAT, "event '%.100s' belongs to stream %llu, which is not declared",
            ev->name, (unsigned long long)ev->stream_id);
    else if (!found)
        tsdl_fail(&b->p->lex, ev->at, ERR_FORMAT, "event '%.100s' does not say to which stream it belongs", ev->name);
    return found;
}

static void make_event(struct resolver *b, size_t i)
{
    const struct tsdl_event *decl = &b->p->events.v[i];
    struct ctf_stream_class *stream = stream_of(b, decl);
    if (!stream)
        return;
    struct ctf_event_class *cls = arena_new(&b->schema->arena, struct ctf_event_class, 1);
    cls->name = decl->name;
    cls->id = decl->id;
    cls->stream_id = stream->id;
    cls->index = (uint32_t)i + 2;
    cls->item = CTF_EVENT;
    cls->loglevel = decl->loglevel;
    cls->model_uri = decl->model_uri;
    b->stream = (uint32_t)(stream - b->schema->streams);
    b->n_event = 0;
    b->event_targets = b->targets.n;
    if (!resolver_count(b, decl->at, b->stream_types[b->stream])) /* types in stream scopes are part of each event's
                                                                   * reading plan */
        return;
    b->roots[CTF_PACKET_HEADER] = b->schema->packet_header;
    b->roots[CTF_PACKET_CONTEXT] = stream->packet_context;
    b->roots[CTF_EVENT_HEADER] = stream->event_header;
    b->roots[CTF_STREAM_EVENT_CONTEXT] = stream->event_context;
    make_scope(b, CTF_EVENT_CONTEXT, decl->context);
    make_scope(b, CTF_PAYLOAD, decl->fields);
    memcpy(cls->scope, b->roots, sizeof cls->scope);
    b->schema->classes[cls->index] = cls;
    stream->n++;
}

static struct ctf_event_class *make_loss(struct resolver *b, enum ctf_item item)
{
    struct ctf_event_class *cls = arena_new(&b->schema->arena, struct ctf_event_class, 1);
    cls->name = item == CTF_LOST_EVENTS ? "[lost events]" : "[lost packets]";
    cls->index = item == CTF_LOST_EVENTS ? 0 : 1;
    cls->item = (uint8_t)item;
    cls->loglevel = -1;
    return cls;
}

static void make_events(struct resolver *b)
{
    struct ctf_schema *s = b->schema;
    size_t n = b->p->events.n;
    s->n_classes = n + 2;
    s->classes = arena_new(&s->arena, struct ctf_event_class *, n + 2);
    s->classes[0] = make_loss(b, CTF_LOST_EVENTS);
    s->classes[1] = make_loss(b, CTF_LOST_PACKETS);
    for (size_t i = 0; i < n && !b->p->lex.failed; i++)
        make_event(b, i);
}

static int by_event_id(const void *a, const void *b)
{
    const struct ctf_event_class *x = *(struct ctf_event_class *const *)a, *y = *(struct ctf_event_class *const *)b;
    return x->id != y->id ? order_of(x->id, y->id) : order_of(x->index, y->index);
}

/* Makes the tables by id of all streams. */
static void index_events(struct resolver *b)
{
    struct ctf_schema *s = b->schema;
    for (size_t i = 0; i < s->n_streams; i++) {
        s->streams[i].sorted = arena_new(&s->arena, struct ctf_event_class *, s->streams[i].n + 1);
        s->streams[i].n = 0;
    }
    for (size_t i = 2; i < s->n_classes; i++) {
        struct ctf_stream_class *stream = (struct ctf_stream_class *)ctf_schema_stream(s, s->classes[i]->stream_id);
        stream->sorted[stream->n++] = s->classes[i];
    }
    for (size_t i = 0; i < s->n_streams; i++) {
        struct ctf_stream_class *stream = &s->streams[i];
        if (stream->n == 0)
            continue;
        qsort(stream->sorted, stream->n, sizeof *stream->sorted, by_event_id);
        for (size_t k = 1; k < stream->n; k++) {
            const struct ctf_event_class *cls = stream->sorted[k], *before = stream->sorted[k - 1];
            if (cls->id == before->id)
                tsdl_fail(&b->p->lex, b->p->events.v[cls->index - 2].at, ERR_FORMAT,
                    "event '%.100s' has the id %llu as '%.100s' has", cls->name, (unsigned long long)cls->id,
                    before->name);
        }
        uint64_t last = stream->sorted[stream->n - 1]->id;
        if (last >= stream->n * 8 + 64)
            continue;
        stream->by_id_n = last + 1;
        stream->by_id = arena_new(&s->arena, struct ctf_event_class *, stream->by_id_n);
        for (size_t k = 0; k < stream->n; k++)
            stream->by_id[stream->sorted[k]->id] = stream->sorted[k];
    }
}

static void number_slots(struct resolver *b)
{
    for (size_t i = 0; i < b->targets.n; i++) {
        const struct target *t = &b->targets.v[i];
        uint32_t n = t->type->slot, in_stream = t->level == LEVEL_EVENT ? b->n_stream[t->stream] : 0;
        if (t->level == LEVEL_EVENT) {
            n += in_stream > b->n_trace ? in_stream : b->n_trace;
            t->type->slot = CTF_SLOTS - t->type->slot;
        }
        if (n >= CTF_SLOTS)
            tsdl_fail(&b->p->lex, t->at, ERR_LIMIT, "more than %d fields are lengths or tags of others in one event",
                CTF_SLOTS - 1);
    }
    for (size_t i = 0; i < b->refs.n; i++) {
        b->refs.v[i]->slot = b->refs.v[i]->target->slot;
        b->refs.v[i]->may_miss = b->refs.v[i]->target->may_miss;
    }
}

static void keep_clock_names(struct resolver *b)
{
    struct ctf_schema *s = b->schema;
    s->n_clock_names = b->p->clock_names.n;
    s->clock_names = arena_new(&s->arena, const char *, s->n_clock_names + 1);
    if (s->n_clock_names)
        memcpy(s->clock_names, b->p->clock_names.v, s->n_clock_names * sizeof *s->clock_names);
}

void tsdl_resolve(struct tsdl_parser *p)
{
    struct ctf_schema *s = p->schema;
    struct resolver b = {.p = p, .schema = s};
    make_streams(&b);
    if (!p->lex.failed)
        s->packet_header = make_scope(&b, CTF_PACKET_HEADER, p->packet_header);
    for (size_t i = 0; i < s->n_streams && !p->lex.failed; i++)
        make_stream(&b, (uint32_t)i);
    if (!p->lex.failed)
        make_events(&b);
    if (!p->lex.failed)
        find_event_clocks(s);
    if (!p->lex.failed)
        index_events(&b);
    if (!p->lex.failed)
        number_slots(&b);
    keep_clock_names(&b);
    for (size_t i = 2; i < s->n_classes && !p->lex.failed; i++)
        s->classes[i]->layout = ctf_layout_compile(
            &s->arena, ctf_schema_stream(s, s->classes[i]->stream_id), s->classes[i]);
    vec_free(&b.targets);
    vec_free(&b.refs);
    vec_free(&b.found);
}
