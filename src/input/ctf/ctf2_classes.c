/* SPDX-License-Identifier: MIT */
/* Shared fragments of CTF 2 metadata: aliases, data stream classes, event record classes. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "ctf/ctf2.h"

struct reader {
    struct tsdl_parser *p;
    struct ctf2_json j;
    struct map stream_ids;
};

/* ---- parts common to fragments ---- */

static void note_unknown(struct reader *r, const struct ctf2_node *root, const char *const *names)
{
    const struct ctf2_node *unknown = ctf2_unknown(&r->j, root, names);
    ctf2_check_common(&r->j, root);
    if (unknown)
        tsdl_warn(r->p, unknown->at, "this property is unknown and is ignored");
}

/* Checks namespace, name and uid of a class; they do not affect the layout of its events. */
static void check_identity(struct reader *r, const struct ctf2_node *root)
{
    const char *ignored;
    ctf2_get_text(&r->j, root, "namespace", false, &r->p->temp, &ignored);
    ctf2_get_text(&r->j, root, "uid", false, &r->p->temp, &ignored);
}

/* Returns a scope's structure, or NULL if there is none. */
static struct tsdl_decl *scope(struct reader *r, const struct ctf2_node *root, const char *name)
{
    const struct ctf2_node *node = name ? ctf2_get(&r->j, root, name) : root;
    if (!node)
        return NULL;
    struct tsdl_decl *d = ctf2_field_class(r->p, &r->j, node);
    if (d && d->kind != CTF_STRUCT)
        tsdl_fail(&r->p->lex, node->at, ERR_FORMAT, "the field class of a scope must be a structure");
    return r->p->lex.failed ? NULL : d;
}

/* ---- fragments ---- */

static void read_alias(struct reader *r, const struct ctf2_node *root)
{
    static const char *const names[] = {"name", "field-class", NULL};
    struct tsdl_parser *p = r->p;
    const struct ctf2_node *name = ctf2_get_kind(&r->j, root, "name", CTF2_STRING, true),
                           *node = ctf2_get(&r->j, root, "field-class");
    if (!node)
        tsdl_fail(&p->lex, root->at, ERR_FORMAT, "there is no property 'field-class'");
    note_unknown(r, root, names);
    if (p->lex.failed)
        return;
    const char *at = name->at;
    struct tsdl_name *known = tsdl_intern(p, name->s, name->s_n);
    struct tsdl_decl *d = ctf2_field_class(p, &r->j, node);
    if (d)
        tsdl_bind(p, at, known, TSDL_ALIAS, d);
}

static void read_stream(struct reader *r, const struct ctf2_node *root)
{
    static const char *const names[] = {"id", "namespace", "name", "uid", "default-clock-class-id",
        "packet-context-field-class", "event-record-header-field-class", "event-record-common-context-field-class",
        NULL};
    struct tsdl_parser *p = r->p;
    const struct ctf2_node *id = ctf2_get(&r->j, root, "id"),
                           *clock = ctf2_get_kind(&r->j, root, "default-clock-class-id", CTF2_STRING, false);
    struct tsdl_stream s = {.at = id ? id->at : root->at, .has_id = true, .clock = -1};
    const char *name;
    ctf2_get_count(&r->j, root, "id", false, 0, UINT64_MAX, &s.id);
    ctf2_get_text(&r->j, root, "name", false, &p->temp, &name);
    check_identity(r, root);
    note_unknown(r, root, names);
    if (clock)
        s.clock = tsdl_clock(p, clock->s, clock->s_n);
    s.packet_context = scope(r, root, "packet-context-field-class");
    s.event_header = scope(r, root, "event-record-header-field-class");
    s.event_context = scope(r, root, "event-record-common-context-field-class");
    if (p->lex.failed)
        return;
    bool fresh;
    map_put(&r->stream_ids, s.id, &fresh);
    if (!fresh)
        tsdl_fail(&p->lex, s.at, ERR_FORMAT, "a second data stream class with the id %llu", (unsigned long long)s.id);
    vec_push(&p->streams, s);
}

static int64_t log_level(const struct ctf2_node *node)
{
    static const char *const words[] = {"emergency", "alert", "critical", "error", "warning", "notice", "info",
        "debug:system", "debug:program", "debug:process", "debug:module", "debug:unit", "debug:function", "debug:line",
        "debug"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (ctf2_is(node, words[i]))
            return (int64_t)i;
    return -1;
}

/* Reads log level and model URI, which LTTng and babeltrace2 keep in attributes of their namespaces. */
static void read_attributes(struct reader *r, const struct ctf2_node *root, struct tsdl_event *ev)
{
    static const char *const spaces[] = {"babeltrace.org,2020", "lttng.org,2009"};
    const struct ctf2_node *attributes = ctf2_get(&r->j, root, "attributes");
    for (size_t i = 0; attributes && i < 2; i++) {
        const struct ctf2_node *space = ctf2_get(&r->j, attributes, spaces[i]),
                               *level = space ? ctf2_get(&r->j, space, "log-level") : NULL,
                               *uri = space ? ctf2_get(&r->j, space, "emf-uri") : NULL;
        if (level)
            ev->loglevel = log_level(level);
        if (uri && uri->kind == CTF2_STRING)
            ev->model_uri = ctf2_text(&r->p->schema->arena, uri);
    }
}

static void read_event(struct reader *r, const struct ctf2_node *root)
{
    static const char *const names[] = {"id", "data-stream-class-id", "namespace", "name", "uid",
        "specific-context-field-class", "payload-field-class", NULL};
    struct tsdl_parser *p = r->p;
    const struct ctf2_node *id = ctf2_get(&r->j, root, "id"), *stream = ctf2_get(&r->j, root, "data-stream-class-id");
    struct tsdl_event ev = {
        .at = id ? id->at : root->at, .has_id = true, .has_stream_id = true, .loglevel = -1, .name = "<unknown>"};
    ctf2_get_count(&r->j, root, "id", false, 0, UINT64_MAX, &ev.id);
    ctf2_get_count(&r->j, root, "data-stream-class-id", false, 0, UINT64_MAX, &ev.stream_id);
    ctf2_get_text(&r->j, root, "name", false, &p->schema->arena, &ev.name);
    check_identity(r, root);
    note_unknown(r, root, names);
    if (!p->lex.failed && !map_find(&r->stream_ids, ev.stream_id))
        tsdl_fail(&p->lex, stream ? stream->at : root->at, ERR_FORMAT,
            "no data stream class with the id %llu ('data-stream-class-id') was declared before",
            (unsigned long long)ev.stream_id);
    read_attributes(r, root, &ev);
    ev.context = scope(r, root, "specific-context-field-class");
    ev.fields = scope(r, root, "payload-field-class");
    if (!p->lex.failed)
        vec_push(&p->events, ev);
}

static void read_fragment(struct reader *r, struct tsdl_span s)
{
    static const struct {
        const char *type;
        void (*read)(struct reader *, const struct ctf2_node *);
    } kinds[] = {
        {"event-record-class", read_event},
        {"field-class-alias", read_alias},
        {"data-stream-class", read_stream},
    };
    struct tsdl_lexer *l = &r->p->lex;
    const struct ctf2_node *root = ctf2_parse(&r->j, s.begin, s.end);
    if (!root)
        return;
    if (root->kind != CTF2_OBJECT) {
        tsdl_fail(l, root->at, ERR_FORMAT, "a fragment must be an object");
        return;
    }
    const struct ctf2_node *type = ctf2_get_kind(&r->j, root, "type", CTF2_STRING, true);
    for (size_t i = 0; type && i < sizeof kinds / sizeof *kinds; i++)
        if (ctf2_is(type, kinds[i].type)) {
            kinds[i].read(r, root);
            return;
        }
    if (type)
        tsdl_fail(l, type->at, ERR_FORMAT, "unknown type of fragment '%.*s'", (int)type->s_n, type->s);
}

void ctf2_declare(struct tsdl_parser *p)
{
    struct reader r = {.p = p, .j = {.l = &p->lex, .arena = &p->temp}};
    const struct tsdl_scan *scan = p->scan;
    for (size_t i = 0; i < scan->shared.n && !p->lex.failed; i++) {
        struct tsdl_span s = scan->shared.v[i];
        const struct ctf2_node *root = NULL;
        if (s.begin != scan->header.begin)
            read_fragment(&r, s);
        else if ((root = ctf2_parse(&r.j, s.begin, s.end)))
            p->packet_header = scope(&r, root, NULL);
    }
    map_fini(&r.stream_ids);
    ctf2_json_fini(&r.j);
}
