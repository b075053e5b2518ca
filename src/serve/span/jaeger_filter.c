/* SPDX-License-Identifier: MIT */
/* Filters of searches: whether a span matches. */
#include <stdlib.h>
#include <string.h>

#include "span/jaeger_filter_tree.h"

/* ---- values ---- */

struct values {
    struct filter_value *v;
    size_t n, cap;
};

static struct filter_value value_of(const struct span_value *v, struct arena *a)
{
    switch (v->type) {
    case SPAN_INT: return (struct filter_value){.is = INTEGER, .number = v->number};
    case SPAN_DOUBLE: return (struct filter_value){.is = REAL, .real = v->real};
    case SPAN_BOOL: return (struct filter_value){.is = TRUTH, .number = v->truth};
    default: return (struct filter_value){.is = TEXT, .text = span_value_text(v, a)};
    }
}

/* Subject of a test: a span; within `some`, a single one of its events or links. */
struct looked_at {
    const struct span *s;
    const struct span_event *event;
    const struct span_link *link;
    struct arena *arena;
};

static void add_attribute(
    const struct looked_at *x, const struct span_attributes *of, const char *key, struct values *out)
{
    const struct span_value *v = span_find(of, key);
    if (v)
        vec_push(out, value_of(v, x->arena));
}

static const char *hex(const struct looked_at *x, const uint8_t *id, size_t bytes)
{
    struct text t = {.fd = -1};
    span_write_hex(&t, id, bytes);
    const char *out = arena_strdup(x->arena, text_cstr(&t));
    text_fini(&t);
    return out;
}

static struct filter_value span_field(const struct looked_at *x, int field)
{
    static const char *const kinds[] = {"unspecified", "internal", "server", "client", "producer", "consumer"};
    static const char *const statuses[] = {"unset", "ok", "error"};
    const struct span *s = x->s;
    const struct span_origin *o = s->origin;
    struct filter_value v = {.is = filter_fields[field].is};
    switch (field) {
    case TRACE_ID: v.text = hex(x, s->trace_id, sizeof s->trace_id); break;
    case SPAN_ID: v.text = hex(x, s->id, sizeof s->id); break;
    case PARENT_ID: v.text = span_id_is_zero(s->parent_id, sizeof s->parent_id) ? "" : hex(x, s->parent_id, 8); break;
    case TRACE_STATE: v.text = s->state; break;
    case NAME: v.text = s->name; break;
    case KIND: v.text = kinds[s->kind]; break;
    case STATUS: v.text = statuses[s->status]; break;
    case MESSAGE: v.text = s->status_message; break;
    case SERVICE: v.text = o->service; break;
    case RESOURCE_SCHEMA: v.text = o->resource_schema; break;
    case SCOPE_NAME: v.text = o->scope; break;
    case SCOPE_VERSION: v.text = o->scope_version; break;
    case SCOPE_SCHEMA: v.text = o->scope_schema; break;
    case START: v.number = s->begin_ns; break;
    case END: v.number = s->end_ns; break;
    default: v.number = s->end_ns - s->begin_ns;
    }
    return v.text && !*v.text ? (struct filter_value){0} : v;
}

static void add_event(
    const struct looked_at *x, const struct filter_term *t, const struct span_event *v, struct values *out)
{
    if (t->kind == ATTRIBUTE)
        add_attribute(x, &v->attributes, t->key, out);
    else if (t->field == EVENT_NAME)
        vec_push(out, ((struct filter_value){.is = TEXT, .text = v->name}));
    else
        vec_push(out,
            ((struct filter_value){.is = filter_fields[t->field].is,
                .number = t->field == EVENT_TIME ? v->time_ns : v->time_ns - x->s->begin_ns}));
}

static void add_link(
    const struct looked_at *x, const struct filter_term *t, const struct span_link *v, struct values *out)
{
    if (t->kind == ATTRIBUTE)
        add_attribute(x, &v->attributes, t->key, out);
    else
        vec_push(out,
            ((struct filter_value){.is = TEXT,
                .text = t->field == LINK_TRACE ? hex(x, v->trace_id, sizeof v->trace_id)
                    : t->field == LINK_SPAN    ? hex(x, v->id, sizeof v->id)
                                               : v->state}));
}

/* Returns all values that a reference stands for. */
static struct values values_at(const struct looked_at *x, const struct filter_term *t)
{
    struct values out = {0};
    const struct span *s = x->s;
    enum filter_level level = t->level;
    if (level == EVENT) {
        for (size_t i = 0; i < s->n_events; i++)
            if (!x->event || x->event == s->events + i)
                add_event(x, t, s->events + i, &out);
    } else if (level == LINK) {
        for (size_t i = 0; i < s->n_links; i++)
            if (!x->link || x->link == s->links + i)
                add_link(x, t, s->links + i, &out);
    } else if (t->kind == FIELD) {
        struct filter_value v = span_field(x, t->field);
        if (v.is != NOTHING)
            vec_push(&out, v);
    } else {
        if (level == SPAN || level == ANY)
            add_attribute(x, &s->attributes, t->key, &out);
        if (level == RESOURCE || level == ANY)
            add_attribute(x, &s->origin->resource, t->key, &out);
        if (level == SCOPE)
            add_attribute(x, &s->origin->scope_attributes, t->key, &out);
    }
    return out;
}

/* ---- comparing ---- */

static int sign(double a, double b)
{
    return (a > b) - (a < b);
}

/* Returns -1, 0, 1, or 2: different, without an order. Numbers written as texts are numbers where an order is
 * needed. */
static int compare(const struct filter_value *a, const struct filter_value *b, bool ordered)
{
    double x = a->is == REAL ? a->real : (double)a->number, y = b->is == REAL ? b->real : (double)b->number;
    bool numbers = (a->is == INTEGER || a->is == REAL) && (b->is == INTEGER || b->is == REAL);
    if (a->is == TEXT && b->is == TEXT) {
        if (ordered && filter_read_real(a->text, &x) && filter_read_real(b->text, &y))
            return sign(x, y);
        int c = strcmp(a->text, b->text);
        return (c > 0) - (c < 0);
    }
    if (numbers && (a->is == REAL || b->is == REAL))
        return x == x && y == y ? sign(x, y) : 2;
    if (a->is != b->is || a->is == NOTHING)
        return 2;
    return (a->number > b->number) - (a->number < b->number);
}

static bool fits(enum filter_op op, int c)
{
    switch (op) {
    case EQ:
    case IN:
    case NE:
    case NOT_IN: return c == 0;
    case GT: return c == 1;
    case LT: return c == -1;
    case GTE: return c == 0 || c == 1;
    default: return c == 0 || c == -1;
    }
}

/* Returns whether any value of one side compares so to any of the other. For `ne` and `not_in`: whether any are
 * equal. */
static bool any_fits(
    const struct looked_at *x, const struct filter_term *t, const struct values *left, const struct values *right)
{
    const struct filter_term *c = t->args[1].kind == CONSTANTS ? t->args + 1 : t->args;
    bool ordered = t->op >= GT && t->op <= LTE, left_is_constant = t->args->kind == CONSTANTS;
    const struct values *held = left_is_constant ? right : left;
    for (size_t i = 0; i < held->n; i++) {
        size_t n = c->kind == CONSTANTS ? c->n : right->n;
        for (size_t k = 0; k < n; k++) {
            struct filter_value other = c->kind == CONSTANTS ? filter_constant(c, k, held->v[i].is) : right->v[k];
            const struct filter_value *a = left_is_constant ? &other : held->v + i,
                                      *b = left_is_constant ? held->v + i : &other;
            if (fits(t->op, compare(a, b, ordered)))
                return true;
        }
    }
    return false;
}

static bool matches(const struct filter_term *t, const struct values *of)
{
    for (size_t i = 0; i < of->n; i++)
        if (of->v[i].is == TEXT && regex_finds(t->pattern, of->v[i].text, strlen(of->v[i].text)) == 1)
            return true;
    return false;
}

static bool holds(const struct looked_at *x, const struct filter_term *t);

static bool holds_of_some(const struct looked_at *x, const struct filter_term *t)
{
    bool found = false;
    struct looked_at one = *x;
    size_t n = t->args->level == EVENT ? x->s->n_events : x->s->n_links;
    for (size_t i = 0; i < n && !found; i++) {
        if (t->args->level == EVENT)
            one.event = x->s->events + i;
        else
            one.link = x->s->links + i;
        found = holds(&one, t->args + 1);
    }
    return found;
}

static bool holds(const struct looked_at *x, const struct filter_term *t)
{
    size_t i = 0;
    switch (t->op) {
    case AND:
    case OR:
        while (i < t->n && holds(x, t->args + i) == (t->op == AND))
            i++;
        return (i == t->n) == (t->op == AND);
    case NOT: return !holds(x, t->args);
    case SOME: return holds_of_some(x, t);
    default: break;
    }
    struct values left = filter_is_reference(t->args) ? values_at(x, t->args) : (struct values){0};
    struct values right = t->n > 1 && filter_is_reference(t->args + 1) ? values_at(x, t->args + 1) : (struct values){0};
    bool is, held = left.n || right.n;
    if (t->op == EXISTS)
        is = held;
    else if (t->op == REGEX)
        is = matches(t, &left);
    else
        is = any_fits(x, t, &left, &right) != (t->op == NE || t->op == NOT_IN) && held;
    free(left.v);
    free(right.v);
    return is;
}

bool filter_holds(const struct filter *f, const struct span *s, struct arena *a)
{
    return holds(&(struct looked_at){.s = s, .arena = a}, &f->root);
}
