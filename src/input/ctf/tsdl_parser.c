/* SPDX-License-Identifier: MIT */
/* Blocks of a metadata text that make a schema: declarations, trace, streams, events. */
#include <stdlib.h>
#include <string.h>

#include "ctf/ctf2.h"

/* Left side of '=' or ':=' in a block: words with dots. */
struct left {
    struct tsdl_token t;
    char s[40];
};

static bool read_left(struct tsdl_lexer *l, struct left *left)
{
    left->t = l->t;
    size_t n = 0;
    do {
        struct tsdl_token word = l->t;
        if (!tsdl_expect(l, TSDL_WORD, "of an attribute"))
            return false;
        if (n + word.n + 2 > sizeof left->s) {
            n = 0; /* longer than any known name */
            left->s[n++] = '?';
            continue;
        }
        if (n)
            left->s[n++] = '.';
        memcpy(left->s + n, word.s, word.n);
        n += word.n;
    } while (tsdl_accept(l, '.') || tsdl_accept(l, TSDL_ARROW));
    left->s[n] = '\0';
    return true;
}

/* Handler of one attribute of a block. If it knows the name, it consumes the rest, with the ';', and returns true. */
typedef bool on_value(struct tsdl_parser *p, void *arg, const char *name, const struct tsdl_value *v);
typedef struct tsdl_decl **on_type(struct tsdl_parser *p, void *arg, const char *name);

static void read_typed(struct tsdl_parser *p, const struct left *left, struct tsdl_decl **out)
{
    struct tsdl_lexer *l = &p->lex;
    const char *at = l->t.s;
    struct tsdl_decl *d = tsdl_type(p);
    if (!out) {
        tsdl_warn(p, left->t.s, "unknown attribute '%s' is ignored", left->s);
    } else if (*out) {
        tsdl_fail(l, left->t.s, ERR_FORMAT, "a second '%s' in the same block", left->s);
    } else if (d && d->kind != CTF_STRUCT) {
        tsdl_fail(l, at, ERR_FORMAT, "'%s' must be a struct", left->s);
    } else {
        *out = d;
    }
    tsdl_expect(l, ';', "after a type");
}

static void read_block(struct tsdl_parser *p, void *arg, on_value *value, on_type *type)
{
    struct tsdl_lexer *l = &p->lex;
    struct tsdl_binding *outer = tsdl_enter(p);
    tsdl_expect(l, '{', "at the beginning of a block");
    while (l->t.kind != '}' && l->t.kind != TSDL_END) {
        if (tsdl_declaration(p))
            continue;
        struct left left;
        if (!read_left(l, &left))
            break;
        if (tsdl_accept(l, TSDL_TYPE_ASSIGN)) {
            read_typed(p, &left, type(p, arg, left.s));
            continue;
        }
        tsdl_expect(l, '=', "or ':=' behind an attribute's name");
        struct tsdl_value v;
        tsdl_value(l, &v);
        if (!l->failed && !value(p, arg, left.s, &v))
            tsdl_warn(p, left.t.s, "unknown attribute '%s' is ignored", left.s);
    }
    tsdl_expect(l, '}', "at the end of a block");
    tsdl_leave(p, outer);
}

static bool is_count(struct tsdl_parser *p, const struct tsdl_value *v, const char *name, uint64_t *out)
{
    if (v->kind != TSDL_VALUE_NUMBER || v->negative)
        tsdl_fail(&p->lex, v->t.s, ERR_FORMAT, "'%s' must be a number, not negative", name);
    *out = v->u;
    return true;
}

/* ---- trace ---- */

struct version {
    uint64_t major, minor;
};

static bool trace_value(struct tsdl_parser *p, void *arg, const char *name, const struct tsdl_value *v)
{
    struct version *version = arg;
    uint64_t *number = strcmp(name, "major") == 0 ? &version->major
        : strcmp(name, "minor") == 0              ? &version->minor
                                                  : NULL;
    if (!number)
        return strcmp(name, "uuid") == 0 || strcmp(name, "byte_order") == 0; /* read by the scan */
    is_count(p, v, name, number);
    if (*number != (number == &version->major ? 1 : 8))
        tsdl_fail(&p->lex, v->t.s, ERR_UNSUPPORTED, "trace %s is %llu, but only CTF 1.8 can be read", name,
            (unsigned long long)*number);
    return true;
}

static struct tsdl_decl **trace_type(struct tsdl_parser *p, void *arg, const char *name)
{
    return strcmp(name, "packet.header") == 0 ? &p->packet_header : NULL;
}

static void read_trace(struct tsdl_parser *p)
{
    const char *at = p->lex.t.s;
    struct version version = {0};
    tsdl_next(&p->lex);
    read_block(p, &version, trace_value, trace_type);
    if (version.major != 1 || version.minor != 8)
        tsdl_fail(&p->lex, at, ERR_FORMAT, "the trace block does not say major = 1 and minor = 8");
}

/* ---- stream ---- */

static bool stream_value(struct tsdl_parser *p, void *arg, const char *name, const struct tsdl_value *v)
{
    struct tsdl_stream *s = arg;
    if (strcmp(name, "id") != 0)
        return false;
    s->has_id = true;
    return is_count(p, v, name, &s->id);
}

static struct tsdl_decl **stream_type(struct tsdl_parser *p, void *arg, const char *name)
{
    struct tsdl_stream *s = arg;
    if (strcmp(name, "event.header") == 0)
        return &s->event_header;
    if (strcmp(name, "event.context") == 0)
        return &s->event_context;
    return strcmp(name, "packet.context") == 0 ? &s->packet_context : NULL;
}

static void read_stream(struct tsdl_parser *p)
{
    struct tsdl_stream s = {.at = p->lex.t.s};
    tsdl_next(&p->lex);
    read_block(p, &s, stream_value, stream_type);
    vec_push(&p->streams, s);
}

/* ---- event ---- */

static bool event_value(struct tsdl_parser *p, void *arg, const char *name, const struct tsdl_value *v)
{
    struct tsdl_event *ev = arg;
    if (strcmp(name, "id") == 0) {
        ev->has_id = true;
        return is_count(p, v, name, &ev->id);
    }
    if (strcmp(name, "stream_id") == 0) {
        ev->has_stream_id = true;
        return is_count(p, v, name, &ev->stream_id);
    }
    if (strcmp(name, "loglevel") == 0) {
        if (v->kind != TSDL_VALUE_NUMBER)
            return false;
        ev->loglevel = (int64_t)v->u;
        return true;
    }
    const char **text = strcmp(name, "name") == 0 ? &ev->name
        : strcmp(name, "model.emf.uri") == 0      ? &ev->model_uri
                                                  : NULL;
    if (!text)
        return false;
    if (v->kind == TSDL_VALUE_TEXT)
        *text = tsdl_text(&p->schema->arena, &v->t);
    else if (v->kind == TSDL_VALUE_PATH) /* name = provider.event; */
        *text = arena_strndup(&p->schema->arena, v->t.s, (size_t)(v->end - v->t.s));
    else
        tsdl_fail(&p->lex, v->t.s, ERR_FORMAT, "'%s' must be a text", name);
    return true;
}

static struct tsdl_decl **event_type(struct tsdl_parser *p, void *arg, const char *name)
{
    struct tsdl_event *ev = arg;
    return strcmp(name, "fields") == 0 ? &ev->fields : strcmp(name, "context") == 0 ? &ev->context : NULL;
}

static void read_event(struct tsdl_parser *p)
{
    struct tsdl_event ev = {.at = p->lex.t.s, .loglevel = -1};
    tsdl_next(&p->lex);
    read_block(p, &ev, event_value, event_type);
    if (!ev.name)
        tsdl_fail(&p->lex, ev.at, ERR_FORMAT, "this event has no name");
    vec_push(&p->events, ev);
}

/* ---- whole text ---- */

enum parse_pass { PASS_DECLARATIONS, PASS_TRACE, PASS_STREAMS, PASS_EVENTS };

/* Skips to the end of the statement, with its ';' if there is one. */
static void skip_statement(struct tsdl_lexer *l)
{
    while (l->t.kind != ';' && l->t.kind != TSDL_END) {
        if (l->t.kind == '{')
            tsdl_skip_block(l);
        tsdl_next(l);
    }
}

static bool is_one_of(const struct tsdl_token *t, const char *const *words)
{
    while (*words && !tsdl_is(t, *words))
        words++;
    return *words != NULL;
}

static void read_statement(struct tsdl_parser *p, enum parse_pass pass)
{
    static const char *const types[] = {"typealias", "typedef", "struct", "variant", "enum", NULL};
    static const char *const blocks[] = {"trace", "stream", "event", "env", "clock", "callsite", NULL};
    static const struct {
        enum parse_pass pass;
        const char *word;
        void (*read)(struct tsdl_parser *);
    } readers[] = {
        {PASS_TRACE, "trace", read_trace},
        {PASS_STREAMS, "stream", read_stream},
        {PASS_EVENTS, "event", read_event},
    };
    struct tsdl_lexer *l = &p->lex;
    if (pass == PASS_DECLARATIONS && tsdl_declaration(p))
        return;
    for (size_t i = 0; i < 3; i++) {
        if (readers[i].pass == pass && tsdl_is(&l->t, readers[i].word)) {
            readers[i].read(p);
            if (l->t.kind != TSDL_END || l->failed)
                tsdl_expect(l, ';', "after a block");
            return;
        }
    }
    if (pass == PASS_DECLARATIONS && l->t.kind != ';' && !is_one_of(&l->t, types) && !is_one_of(&l->t, blocks)) {
        struct tsdl_token first = l->t;
        if (first.kind == TSDL_WORD && tsdl_peek(l).kind == '{')
            tsdl_warn(p, first.s, "unknown block %s is ignored", tsdl_show(l, &first).s);
        else if (!tsdl_is(&first, "integer") && !tsdl_is(&first, "floating_point") && !tsdl_is(&first, "string"))
            tsdl_fail(l, first.s, ERR_FORMAT, "%s begins no statement", tsdl_show(l, &first).s);
    }
    skip_statement(l);
    tsdl_next(l);
}

/* Parses all declarations of the text covered by the scan. */
static void parse(struct tsdl_parser *p)
{
    const char *text = p->lex.text;
    struct err *e = p->lex.e;
    for (enum parse_pass pass = PASS_DECLARATIONS; pass <= PASS_EVENTS && !p->lex.failed; pass++) {
        tsdl_lexer_init(&p->lex, text, text, p->scan->end, e);
        while (p->lex.t.kind != TSDL_END)
            read_statement(p, pass);
    }
}

struct ctf_schema *tsdl_schema_new(const char *text, const struct tsdl_scan *scan, struct err *e)
{
    struct ctf_schema *schema = mem_zalloc(sizeof *schema);
    schema->big_endian = scan->byte_order == 1;
    schema->is_ctf2 = scan->is_ctf2;
    struct err first = {0};
    struct tsdl_parser p = {
        .lex = {.text = text, .end = scan->end, .e = &first, .is_json = scan->is_ctf2}, .schema = schema, .scan = scan};
    scan->is_ctf2 ? ctf2_declare(&p) : parse(&p);
    if (!p.lex.failed)
        tsdl_resolve(&p);
    if (p.n_warnings_dropped) {
        const char *more = arena_printf(&schema->arena, "%zu more warnings like these", p.n_warnings_dropped);
        vec_push(&p.warnings, ((struct ctf_schema_warning){0, more}));
    }
    schema->warnings = arena_new(&schema->arena, struct ctf_schema_warning, p.warnings.n + 1);
    if (p.warnings.n)
        memcpy(schema->warnings, p.warnings.v, p.warnings.n * sizeof *p.warnings.v);
    schema->n_warnings = p.warnings.n;
    bool failed = p.lex.failed;
    vec_free(&p.streams);
    vec_free(&p.events);
    vec_free(&p.clock_names);
    vec_free(&p.warnings);
    arena_fini(&p.temp);
    if (!failed)
        return schema;
    ctf_schema_free(schema);
    err_set(e, first.code, "%s", first.text);
    return NULL;
}
