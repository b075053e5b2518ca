/* SPDX-License-Identifier: MIT */
/* Lines of CSV or JSON with chosen columns of events. */
#include "events/line.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/shown.h"
#include "base/time.h"
#include "events/subject.h"

struct line_column {
    enum events_line_column special; /* column, or a value of the subject */
    bool is_time, is_name;
    char *key; /* JSON: quoted, with the colon */
};

struct event_lines {
    bool json, shows_losses;
    struct event_patterns names;
    struct line_column *columns;
    struct event_subject subject;
    struct ctf_print *print; /* has the streams' clocks */
    bool any;                /* a line with a time was written */
    int64_t last;            /* time of that line */
    struct text scratch;
};

/* ---- columns ---- */

const char *const event_line_columns[] = {"time", "delta", "lost", NULL};

enum events_line_column events_line_column(const char *name)
{
    for (int i = 0; event_line_columns[i]; i++)
        if (strcmp(name, event_line_columns[i]) == 0)
            return (enum events_line_column)(EVENT_LINE_TIME + i);
    return EVENT_LINE_VALUE;
}

static int take_columns(struct event_lines *l, const char *const *lists, size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++)
        events_patterns_add(&l->names, lists[i]);
    if (!l->names.n)
        return err_set(e, ERR_ARG, "no columns; give their names with commas between, such as ts,cpu,name");
    l->columns = mem_zalloc(sizeof *l->columns * l->names.n);
    for (size_t i = 0; i < l->names.n; i++) {
        struct line_column *c = &l->columns[i];
        const char *name = l->names.v[i];
        for (size_t k = 0; k < i; k++)
            if (strcmp(l->names.v[k], name) == 0)
                return err_set(e, ERR_ARG, "%s is there twice; leave one away", name);
        c->special = events_line_column(name);
        c->is_name = !c->special && events_builtin(name) == EVENT_IS_NAME;
        c->is_time = !c->special && events_builtin(name) == EVENT_IS_TS;
        l->shows_losses |= c->is_name || c->special == EVENT_LINE_LOST;
        l->scratch.n = 0;
        json_quote(&l->scratch, name, strlen(name));
        text_putc(&l->scratch, ':');
        c->key = mem_strdup(text_cstr(&l->scratch));
    }
    return ERR_OK;
}

int events_lines_new(const struct event_table *table, const char *const *lists, size_t n, bool json,
    struct ctf_window window, struct event_lines **out, struct err *e)
{
    struct event_lines *l = mem_zalloc(sizeof *l);
    *out = NULL;
    l->json = json;
    l->scratch.fd = -1;
    int r = take_columns(l, lists, n, e);
    if (r == ERR_OK)
        r = events_subject_init(&l->subject, table, (const char *const *)l->names.v, l->names.n, false, window, e);
    if (r != ERR_OK) {
        events_lines_free(l);
        return r;
    }
    l->print = ctf_print_new(table->sources, table->n, CTF_PRINT_CSV);
    *out = l;
    return ERR_OK;
}

void events_lines_free(struct event_lines *l)
{
    if (!l)
        return;
    for (size_t i = 0; l->columns && i < l->names.n; i++)
        free(l->columns[i].key);
    free(l->columns);
    events_subject_fini(&l->subject);
    events_patterns_free(&l->names);
    ctf_print_free(l->print);
    text_fini(&l->scratch);
    free(l);
}

/* ---- values ---- */

/* Writes CSV text: bytes that are not UTF-8 become U+FFFD, as in JSON. */
static void put_csv_string(struct text *out, const char *s, size_t n)
{
    size_t good = 0;
    for (size_t bytes; good < n && (bytes = text_sequence(s + good, n - good)) > 0;)
        good += bytes;
    if (good == n) {
        shown_cell_n(out, s, n);
        return;
    }
    struct text mended = {.fd = -1};
    for (size_t i = 0, bytes; i < n; i += bytes ? bytes : 1) {
        bytes = text_sequence(s + i, n - i);
        text_put(&mended, bytes ? s + i : "\xef\xbf\xbd", bytes ? bytes : 3);
    }
    shown_cell_n(out, mended.v, mended.n);
    text_fini(&mended);
}

static void put_string(const struct event_lines *l, const char *s, size_t n, struct text *out)
{
    l->json ? json_quote(out, s, n) : put_csv_string(out, s, n);
}

/* Writes the digits needed to read the same number again. */
static void put_float(bool json, double v, bool single, struct text *out)
{
    char digits[40];
    int n = 0;
    if (!isfinite(v)) {
        json ? text_puts(out, "null") : text_printf(out, "%g", v);
        return;
    }
    for (int precision = single ? 6 : 15; precision <= 17; precision++) {
        n = snprintf(digits, sizeof digits, "%.*g", precision, v);
        if (single ? strtof(digits, NULL) == (float)v : strtod(digits, NULL) == v)
            break;
    }
    text_put(out, digits, (size_t)n);
}

static bool is_single(const struct ctf_type *t)
{
    while (t && (t->kind == CTF_ARRAY || t->kind == CTF_SEQUENCE))
        t = t->u.list.element;
    return t && t->kind == CTF_FLOAT && t->size_bits == 32;
}

static void put_value(
    const struct event_lines *l, const struct expr_value *v, const struct ctf_type *type, struct text *out)
{
    switch (v->type) {
    case EXPR_INT: v->is_unsigned ? text_u64(out, (uint64_t)v->i) : text_i64(out, v->i); break;
    case EXPR_FLOAT: put_float(l->json, v->f, is_single(type), out); break;
    case EXPR_STRING: put_string(l, v->s, v->n, out); break;
    default:
        if (l->json)
            text_puts(out, "null");
    }
}

/* ---- structures and lists, as JSON in both formats ---- */

struct compound {
    const struct ctf_access *want;
    struct text *out;
    unsigned depth, matched;   /* number of open compounds; of those below the scope on the path to the wanted one */
    uint32_t next;             /* next child in the last of these */
    const struct ctf_type *in; /* type of the last of these */
    unsigned inside;           /* depth of the wanted one while it is open; else 0 */
    bool comma;
};

/* Returns whether the next child is the next step to the wanted one. */
static bool is_next_step(struct compound *c, const struct ctf_value *v)
{
    if (c->depth != c->matched + 1 || c->matched >= c->want->depth)
        return false;
    uint32_t wanted = c->want->path[c->matched];
    if (c->in->kind == CTF_VARIANT) /* a variant visits only its selected option */
        return v->name && strcmp(v->name, c->in->u.fields[wanted].shown) == 0;
    return c->next++ == wanted;
}

static void put_key(struct compound *c, const struct ctf_value *v, bool below)
{
    if (c->comma)
        text_putc(c->out, ',');
    if (v->name && below) {
        json_quote(c->out, v->name, strlen(v->name));
        text_putc(c->out, ':');
    }
}

static bool is_list(const struct ctf_type *t)
{
    return t->kind == CTF_ARRAY || t->kind == CTF_SEQUENCE;
}

static void compound_begin(void *arg, const struct ctf_value *v)
{
    struct compound *c = arg;
    bool step = !c->inside && is_next_step(c, v);
    if (step) {
        c->matched++;
        c->next = 0;
    }
    if (step || c->depth == 0)
        c->in = v->type;
    c->depth++;
    if (step && c->matched == c->want->depth)
        c->inside = c->depth;
    if (!c->inside)
        return;
    put_key(c, v, c->depth > c->inside);
    text_putc(c->out, is_list(v->type) ? '[' : '{');
    c->comma = false;
}

static void compound_end(void *arg, const struct ctf_value *v)
{
    struct compound *c = arg;
    if (c->inside) {
        text_putc(c->out, is_list(v->type) ? ']' : '}');
        c->comma = true;
        if (c->depth == c->inside)
            c->inside = 0;
    }
    c->depth--;
}

static void compound_leaf(void *arg, const struct ctf_value *v)
{
    struct compound *c = arg;
    if (!c->inside) {
        is_next_step(c, v);
        return;
    }
    put_key(c, v, true);
    if (v->type->kind == CTF_FLOAT)
        put_float(true, v->v.f, is_single(v->type), c->out);
    else if (v->type->kind == CTF_INT || v->type->kind == CTF_ENUM)
        events_integer_type(v->type)->is_signed ? text_i64(c->out, v->v.i) : text_u64(c->out, v->v.u);
    else
        json_quote(c->out, v->s, v->len);
    c->comma = true;
}

static void put_compound(
    struct event_lines *l, const struct event_field *f, const struct ctf_event *ev, struct text *out)
{
    l->scratch.n = 0;
    struct compound c = {.want = &f->access, .out = l->json ? out : &l->scratch};
    size_t before = out->n;
    ctf_visit(
        ev, (enum ctf_scope)f->access.scope, &(struct ctf_visitor){compound_leaf, compound_begin, compound_end, &c});
    if (!l->json)
        put_csv_string(out, l->scratch.n ? l->scratch.v : "", l->scratch.n);
    else if (out->n == before) /* a variant holds another option */
        text_puts(out, "null");
}

/* ---- lines ---- */

void events_lines_header(const struct event_lines *l, struct text *out)
{
    for (size_t i = 0; i < l->names.n && !l->json; i++) {
        text_puts(out, i ? "," : "");
        shown_cell(out, l->names.v[i]);
    }
    text_puts(out, l->json ? "" : "\n");
}

/* A loss has no fields and no thread. */
static void get_of_loss(struct event_lines *l, size_t i, const struct ctf_event *ev, struct expr_value *out)
{
    switch (events_builtin(l->names.v[i])) {
    case EVENT_IS_NAME:
        out->type = EXPR_STRING;
        out->s = ev->cls->item == CTF_LOST_PACKETS ? "lost_packets" : "lost_events";
        out->n = strlen(out->s);
        break;
    case EVENT_IS_CPU:
    case EVENT_IS_TS:
    case EVENT_IS_HOST: events_subject_get(&l->subject, i, out); break;
    default: break;
    }
}

static void put_column(struct event_lines *l, size_t i, const struct ctf_event *ev, bool timed, struct text *out)
{
    const struct line_column *c = &l->columns[i];
    const struct event_field *f = NULL;
    struct expr_value v = {.type = EXPR_ABSENT};
    bool loss = ev->cls->item != CTF_EVENT;
    const struct ctf_loss *lost = loss ? (const void *)ev->data : NULL;
    if (c->special == EVENT_LINE_TIME && timed) {
        text_puts(out, l->json ? "\"" : "");
        time_write_seconds(out, ev->ts);
        text_puts(out, l->json ? "\"" : "");
        return;
    }
    if (c->special == EVENT_LINE_DELTA && timed && l->any)
        v = (struct expr_value){.type = EXPR_INT, .i = time_between(l->last, ev->ts)};
    else if (c->special == EVENT_LINE_LOST && loss)
        v = (struct expr_value){.type = EXPR_INT, .is_unsigned = true, .i = (int64_t)lost->count};
    else if (!c->special && loss && (timed || !c->is_time))
        get_of_loss(l, i, ev, &v);
    else if (!c->special && !loss && (timed || !c->is_time)) {
        f = &l->subject.info->slots[i];
        if (f->how == EVENT_FIELD_COMPOUND) {
            put_compound(l, f, ev, out);
            return;
        }
        events_subject_get(&l->subject, i, &v);
    }
    put_value(l, &v, f ? f->access.type : NULL, out);
}

static void put_line(struct event_lines *l, const struct ctf_event *ev, bool timed, struct text *out)
{
    for (size_t i = 0; i < l->names.n; i++) {
        text_puts(out, i ? "," : l->json ? "{" : "");
        text_puts(out, l->json ? l->columns[i].key : "");
        put_column(l, i, ev, timed, out);
    }
    text_puts(out, l->json ? "}\n" : "\n");
    if (timed)
        l->last = ev->ts;
    l->any |= timed;
}

void events_lines_put(
    struct event_lines *l, const struct ctf_merge *m, const struct ctf_event *ev, bool wanted, struct text *out)
{
    bool loss = ev->cls->item != CTF_EVENT;
    events_subject_enter(&l->subject, m, ev);
    if (wanted && (!loss || l->shows_losses))
        put_line(l, ev, ctf_print_timed(l->print, m, ev), out);
    if (!loss)
        event_subject_leave(&l->subject);
}
