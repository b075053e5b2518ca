/* SPDX-License-Identifier: MIT */
/* Doubts: parts of a selection that cannot match any event, since an empty result does not explain itself. */
#include <fnmatch.h>
#include <stdlib.h>

#include "base/expr.h"
#include "base/near.h"
#include "events/field.h"
#include "events/line.h"
#include "events/names.h"
#include "events/table.h"

struct doubts {
    const struct event_table *table;
    void (*tell)(void *arg, const char *option, const char *text);
    void *arg;
    struct text text;
    VEC(const char *) names; /* candidates for a mistyped name; borrowed */
};

/* Reports the text, with the name most similar to the typed one (NULL: none was typed). */
static void tell(struct doubts *d, const char *option, const char *typed)
{
    vec_push(&d->names, (const char *)NULL);
    const char *near = typed ? near_name(typed, d->names.v) : NULL;
    if (near)
        text_printf(&d->text, "; did you mean %s?", near);
    d->tell(d->arg, option, text_cstr(&d->text));
    d->text.n = 0;
    d->names.n = 0;
}

/* Cursor over all classes of events, from schema 0 and class 0 on. NULL: no more. */
struct class_cursor {
    size_t schema, class;
};
static const struct ctf_event_class *next_class(const struct doubts *d, struct class_cursor *at)
{
    for (; at->schema < d->table->schemas.n; at->schema++, at->class = 0) {
        const struct event_schema *s = &d->table->schemas.v[at->schema];
        while (at->class < s->n) {
            const struct ctf_event_class *c = s->classes[at->class ++];
            if (c && c->item == CTF_EVENT)
                return c;
        }
    }
    return NULL;
}

/* ---- names of events, CPUs ---- */

/* Returns whether the name of an event matches. Otherwise `names` are the candidates. */
static bool has_event(struct doubts *d, const char *pattern, bool exactly)
{
    struct class_cursor at = {0};
    d->names.n = 0;
    for (const struct ctf_event_class *c; (c = next_class(d, &at));) {
        const char *name = c->name ? c->name : "";
        if (exactly ? !strcmp(pattern, name) : !fnmatch(pattern, name, 0))
            return true;
        vec_push(&d->names, name);
    }
    return false;
}

/* Returns whether it is a value of babeltrace2's option --names, which selects the names to print. */
static bool is_babeltrace_word(const char *p)
{
    static const char *const words[] = {
        "all", "none", "scope", "header", "context", "ctx", "payload", "args", "arg", NULL};
    size_t i = 0;
    while (words[i] && strcmp(words[i], p) != 0)
        i++;
    return words[i];
}

static void check_patterns(struct doubts *d, const struct event_filter_options *o)
{
    struct event_patterns patterns = {0};
    for (size_t i = 0; i < o->n_names; i++)
        events_patterns_add(&patterns, o->names[i]);
    for (size_t i = 0; i < patterns.n; i++) {
        const char *p = patterns.v[i];
        if (has_event(d, p, false))
            continue;
        text_printf(&d->text, "%s: no event of these traces has such a name", p);
        if (is_babeltrace_word(p)) {
            text_puts(&d->text, "; it chooses events here, and the text has the names of all fields");
            text_puts(&d->text, "; for values alone give --format csv --columns A,B,…");
            d->names.n = 0;
        }
        tell(d, "names", strpbrk(p, "*?[") ? NULL : p);
    }
    events_patterns_free(&patterns);
}

static void check_cpu(struct doubts *d, const char *option, int64_t cpu)
{
    int32_t least = INT32_MAX, most = -1;
    for (size_t i = 0; i < d->table->n; i++)
        for (size_t k = 0; k < ctf_trace_streams(d->table->sources[i].trace); k++) {
            struct ctf_stream_info s;
            ctf_trace_stream(d->table->sources[i].trace, k, &s);
            if (s.cpu < 0 || s.cpu == cpu) /* an unknown CPU may be it */
                return;
            least = s.cpu < least ? s.cpu : least;
            most = s.cpu > most ? s.cpu : most;
        }
    if (most < 0)
        return;
    text_printf(&d->text, "no stream of these traces is of CPU %lld, only of CPU", (long long)cpu);
    if (least == most)
        text_printf(&d->text, " %d", (int)least);
    else
        text_printf(&d->text, "s from %d to %d", (int)least, (int)most);
    tell(d, option, NULL);
}

/* ---- the expression ---- */

enum { SOME_NUMBER = 1, SOME_TEXT = 2, SOME_LABEL = 4, SOME_OTHER = 8 };

static int kind_of(const struct event_field *f)
{
    switch (f->how) {
    case EVENT_FIELD_INT: return f->access.type && f->access.type->kind == CTF_ENUM ? SOME_LABEL : SOME_NUMBER;
    case EVENT_FIELD_LABEL:
    case EVENT_FIELD_STRING: return SOME_TEXT;
    case EVENT_FIELD_COMPOUND:
    case EVENT_FIELD_WALK: return SOME_OTHER;
    default: return 0;
    }
}

/* Kinds of values that a field has in the classes with it; 0: no class has it. */
static int kinds_of(const struct doubts *d, const char *name)
{
    struct class_cursor at = {0};
    int kinds = 0;
    for (const struct ctf_event_class *c; (c = next_class(d, &at));) {
        struct event_field f;
        events_field_bind(c, name, &f);
        kinds |= kind_of(&f);
    }
    return kinds;
}

static void add_fields(struct doubts *d, const struct ctf_type *t)
{
    for (uint32_t i = 0; t && t->kind == CTF_STRUCT && i < t->n; i++)
        vec_push(&d->names, (const char *)t->u.fields[i].shown);
}

/* Reports a missing field; adds candidates to the present ones. */
static void tell_no_field(struct doubts *d, const char *option, const char *name)
{
    struct class_cursor at = {0};
    const char *bare = !strncmp(name, "fields.", 7) ? name + 7 : !strncmp(name, "ctx.", 4) ? name + 4 : name;
    for (int b = EVENT_IS_NAME; bare == name && b <= EVENT_IS_COMM; b++)
        vec_push(&d->names, events_builtin_name((enum events_builtin)b));
    for (const struct ctf_event_class *c; (c = next_class(d, &at));) {
        add_fields(d, c->scope[CTF_PAYLOAD]);
        add_fields(d, c->scope[CTF_EVENT_CONTEXT]);
        add_fields(d, c->scope[CTF_STREAM_EVENT_CONTEXT]);
    }
    text_printf(&d->text, "no event of these traces has a field %s", name);
    tell(d, option, bare);
}

static bool has_host(struct doubts *d, const char *name)
{
    d->names.n = 0;
    for (size_t i = 0; i < d->table->n; i++) {
        const char *host = d->table->origins[i].host;
        if (!host || !strcmp(host, name))
            return true;
        vec_push(&d->names, host);
    }
    return false;
}

static void check_equality(struct doubts *d, enum events_builtin which, const struct expr_value *v)
{
    struct text value = {.fd = -1};
    bool is_text = v->type == EXPR_STRING;
    if (is_text)
        text_put(&value, v->s, v->n);
    const char *typed = text_cstr(&value);
    if (which == EVENT_IS_NAME && is_text && !has_event(d, typed, true)) {
        text_printf(&d->text, "no event of these traces has the name \"%s\"", typed);
        tell(d, "where", typed);
    } else if (which == EVENT_IS_HOST && is_text && !has_host(d, typed)) {
        text_printf(&d->text, "no host of these traces is called \"%s\"", typed);
        tell(d, "where", typed);
    } else if (which == EVENT_IS_CPU && v->type == EXPR_INT) {
        check_cpu(d, "where", v->i);
    }
    text_fini(&value);
}

static void check_type(struct doubts *d, const char *name, int kinds, const struct expr_value *v)
{
    if (v->type == EXPR_STRING && (kinds == SOME_NUMBER || kinds == SOME_LABEL)) {
        text_printf(&d->text, "%s is a number and never equals the text \"%.*s\"", name, (int)v->n, v->s);
        if (kinds == SOME_LABEL)
            text_printf(&d->text, "; its label is %s.label", name);
        else if (v->n && strspn(v->s, "0123456789") >= v->n)
            text_puts(&d->text, "; leave the quotes away");
        tell(d, "where", NULL);
    } else if (v->type != EXPR_STRING && kinds == SOME_TEXT) {
        text_printf(&d->text, "%s is a text and never equals a number", name);
        if (v->type == EXPR_INT)
            text_printf(&d->text, "; write \"%lld\" in quotes", (long long)v->i);
        tell(d, "where", NULL);
    }
}

static void check_expression(struct doubts *d, const struct expr *x)
{
    static const int kinds_of_builtin[] = {0, SOME_TEXT, SOME_NUMBER, SOME_NUMBER, SOME_NUMBER, SOME_TEXT, SOME_TEXT};
    const char *const *names;
    struct expr_comparison c;
    size_t n = expr_names(x, &names);
    int *kinds = mem_zalloc(sizeof *kinds * (n + 1));
    for (size_t i = 0; i < n; i++) {
        enum events_builtin b = events_builtin(names[i]);
        kinds[i] = b ? kinds_of_builtin[b] : kinds_of(d, names[i]);
        if (!kinds[i])
            tell_no_field(d, "where", names[i]);
    }
    for (size_t i = 0; expr_comparison(x, i, &c); i++) {
        check_type(d, names[c.slot], kinds[c.slot], &c.constant);
        if (c.equality)
            check_equality(d, events_builtin(names[c.slot]), &c.constant);
    }
    free(kinds);
}

void events_doubts(const struct event_table *table, const struct event_filter_options *o,
    void (*tell_one)(void *arg, const char *option, const char *text), void *arg)
{
    struct doubts d = {.table = table, .tell = tell_one, .arg = arg, .text = {.fd = -1}};
    struct err unimportant = {0};
    struct expr *x = NULL;
    check_patterns(&d, o);
    if (o->cpu >= 0)
        check_cpu(&d, "cpu", o->cpu);
    if (o->where && !expr_compile(o->where, &x, &unimportant)) {
        check_expression(&d, x);
        expr_free(x);
    }
    text_fini(&d.text);
    vec_free(&d.names);
}

void events_column_doubts(const struct event_table *table, const char *const *lists, size_t n,
    void (*tell_one)(void *arg, const char *option, const char *text), void *arg)
{
    struct doubts d = {.table = table, .tell = tell_one, .arg = arg, .text = {.fd = -1}};
    struct event_patterns columns = {0};
    for (size_t i = 0; i < n; i++)
        events_patterns_add(&columns, lists[i]);
    for (size_t i = 0; i < columns.n; i++) {
        const char *name = columns.v[i];
        if (events_line_column(name) || events_builtin(name) || kinds_of(&d, name))
            continue;
        d.names.n = 0;
        for (const char *const *v = event_line_columns; *v; v++)
            vec_push(&d.names, *v);
        tell_no_field(&d, "columns", name);
    }
    events_patterns_free(&columns);
    text_fini(&d.text);
    vec_free(&d.names);
}
