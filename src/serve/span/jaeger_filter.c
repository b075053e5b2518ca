/* SPDX-License-Identifier: MIT */
#include "span/jaeger_filter.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/regex.h"
#include "base/time.h"
#include "span/jaeger.h"
#include "span/json_text.h"

enum op { AND, OR, NOT, EQ, NE, GT, LT, GTE, LTE, REGEX, EXISTS, IN, NOT_IN, SOME, OPERATORS };
const char *const filter_operators[] = {
    "and", "or", "not", "eq", "ne", "gt", "lt", "gte", "lte", "regex", "exists", "in", "not_in", "some", NULL};
enum level { SPAN, RESOURCE, SCOPE, EVENT, LINK, LEVELS, ANY };
const char *const filter_levels[] = {"span", "resource", "scope", "event", "link", NULL};

/* Domains of values that can be compared. */
enum domain { NOTHING, TEXT, INTEGER, REAL, TRUTH, DURATION, INSTANT };
struct value {
    enum domain is;
    const char *text;
    int64_t number; /* INTEGER, TRUTH; DURATION and INSTANT in ns */
    double real;
};
struct values {
    struct value *v;
    size_t n, cap;
};

struct field {
    enum level level;
    const char *name;
    enum domain is;
};
enum {
    TRACE_ID,
    SPAN_ID,
    PARENT_ID,
    TRACE_STATE,
    NAME,
    KIND,
    START,
    END,
    STATUS,
    MESSAGE,
    LASTED,
    SERVICE,
    RESOURCE_SCHEMA,
    SCOPE_NAME,
    SCOPE_VERSION,
    SCOPE_SCHEMA,
    EVENT_NAME,
    EVENT_TIME,
    EVENT_SINCE,
    LINK_TRACE,
    LINK_SPAN,
    LINK_STATE,
    FIELDS
};
static const struct field fields[FIELDS] = {{SPAN, "traceID", TEXT}, {SPAN, "spanID", TEXT},
    {SPAN, "parentSpanID", TEXT}, {SPAN, "traceState", TEXT}, {SPAN, "name", TEXT}, {SPAN, "kind", TEXT},
    {SPAN, "startTime", INSTANT}, {SPAN, "endTime", INSTANT}, {SPAN, "status", TEXT}, {SPAN, "statusMessage", TEXT},
    {SPAN, "duration", DURATION}, {RESOURCE, "service", TEXT}, {RESOURCE, "schemaURL", TEXT}, {SCOPE, "name", TEXT},
    {SCOPE, "version", TEXT}, {SCOPE, "schemaURL", TEXT}, {EVENT, "name", TEXT}, {EVENT, "time", INSTANT},
    {EVENT, "timeSinceStart", DURATION}, {LINK, "traceID", TEXT}, {LINK, "spanID", TEXT}, {LINK, "traceState", TEXT}};

enum kind { CALL, ATTRIBUTE, FIELD, NESTED, CONSTANTS };
struct filter_term {
    enum kind kind;
    enum op op;
    enum level level; /* ATTRIBUTE, NESTED */
    int field;
    const char *key;    /* ATTRIBUTE */
    const char **texts; /* CONSTANTS: the texts as written */
    enum domain hint;   /* CONSTANTS: the domain stated; NOTHING: that of the other side */
    bool is_list;
    struct regex *pattern; /* REGEX */
    struct filter_term *args;
    size_t n; /* number of args, or of texts */
};
struct filter {
    struct arena arena;
    struct filter_term root;
    size_t terms;
    bool within_some; /* reading inside of `some` */
    VEC(struct regex *) patterns;
};

/* ---- reading ---- */

static int refuse(struct err *e, const char *what)
{
    return err_set(e, ERR_ARG, "%s", what);
}

static int number_in(const char *const *names, const char *name)
{
    for (int i = 0; name && names[i]; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

static int read_level(const json_t *of, bool needed, enum level *out, struct err *e)
{
    const char *name = json_string_value(json_object_get(of, "level"));
    int level = number_in(filter_levels, name);
    *out = level < 0 ? ANY : (enum level)level;
    if (level < 0 && (needed || (name && *name)))
        return err_set(
            e, ERR_ARG, "no level \"%.40s\": there are span, resource, scope, event and link", name ? name : "");
    return 0;
}

static int read_attribute(struct filter *f, const json_t *of, struct filter_term *t, struct err *e)
{
    const char *key = json_string_value(json_object_get(of, "key"));
    t->kind = ATTRIBUTE;
    if (!key || !*key)
        return refuse(e, "attr: which key?");
    t->key = arena_strdup(&f->arena, key);
    return read_level(of, false, &t->level, e);
}

static int read_field(const json_t *of, struct filter_term *t, struct err *e)
{
    const char *name = json_string_value(json_object_get(of, "name"));
    t->kind = FIELD;
    int rc = read_level(of, true, &t->level, e);
    for (t->field = 0; !rc && t->field < FIELDS; t->field++)
        if (fields[t->field].level == t->level && name && !strcmp(fields[t->field].name, name))
            return 0;
    return rc ? rc : err_set(e, ERR_ARG, "%s has no field \"%.40s\"", filter_levels[t->level], name ? name : "");
}

static int read_constants(struct filter *f, const json_t *of, bool list, struct filter_term *t, struct err *e)
{
    static const char *const hints[] = {"string", "int", "double", "bool", NULL};
    static const enum domain domains[] = {TEXT, INTEGER, REAL, TRUTH};
    const char *type = json_string_value(json_object_get(of, "type"));
    int hint = type && *type ? number_in(hints, type) : -1;
    const json_t *values = json_object_get(of, list ? "values" : "value");
    t->kind = CONSTANTS;
    t->is_list = list;
    t->n = list ? json_array_size(values) : 1;
    if (type && *type && hint < 0)
        return err_set(e, ERR_ARG, "no type \"%.40s\": there are string, int, double and bool", type);
    t->hint = hint < 0 ? NOTHING : domains[hint];
    if (!t->n || t->n > FILTER_MOST_TERMS)
        return refuse(e, "list: from 1 to 1000 values");
    t->texts = arena_new(&f->arena, const char *, t->n);
    for (size_t i = 0; i < t->n; i++) {
        const char *text = json_string_value(list ? json_array_get(values, i) : values);
        if (!text)
            return refuse(e, "scalar, list: values are strings");
        t->texts[i] = arena_strdup(&f->arena, text);
    }
    return 0;
}

static int read_call(struct filter *, const json_t *, unsigned depth, struct filter_term *, struct err *e);

static int read_term(struct filter *f, const json_t *of, unsigned depth, struct filter_term *t, struct err *e)
{
    const char *name = json_object_iter_key(json_object_iter((json_t *)(uintptr_t)of));
    const json_t *v = name ? json_object_get(of, name) : NULL;
    *t = (struct filter_term){0};
    if (json_object_size(of) != 1 || !json_is_object(v))
        return refuse(e, "an argument is one of attr, field, nested, scalar, list and call");
    if (!strcmp(name, "attr"))
        return read_attribute(f, v, t, e);
    if (!strcmp(name, "field"))
        return read_field(v, t, e);
    if (!strcmp(name, "scalar") || !strcmp(name, "list"))
        return read_constants(f, v, !strcmp(name, "list"), t, e);
    if (!strcmp(name, "nested")) {
        t->kind = NESTED;
        int rc = read_level(v, true, &t->level, e);
        return rc || t->level >= EVENT ? rc : refuse(e, "nested: event or link");
    }
    return !strcmp(name, "call") ? read_call(f, v, depth + 1, t, e)
                                 : err_set(e, ERR_ARG, "no argument \"%.40s\"", name);
}

static bool is_reference(const struct filter_term *t)
{
    return t->kind == ATTRIBUTE || t->kind == FIELD;
}

static bool is_value(const struct filter_term *t)
{
    return is_reference(t) || (t->kind == CONSTANTS && !t->is_list);
}

static bool all_are_calls(const struct filter_term *t)
{
    size_t n = 0;
    while (n < t->n && t->args[n].kind == CALL)
        n++;
    return n == t->n;
}

static bool has_right_args(const struct filter_term *t)
{
    const struct filter_term *a = t->args;
    switch (t->op) {
    case AND:
    case OR: return t->n >= 2 && all_are_calls(t);
    case NOT: return t->n == 1 && all_are_calls(t);
    case EXISTS: return t->n == 1 && is_reference(a);
    case IN:
    case NOT_IN: return t->n == 2 && is_reference(a) && a[1].kind == CONSTANTS && a[1].is_list;
    case REGEX: return t->n == 2 && is_reference(a) && a[1].kind == CONSTANTS && !a[1].is_list;
    case SOME: return t->n == 2 && a->kind == NESTED && a[1].kind == CALL;
    default: return t->n == 2 && is_value(a) && is_value(a + 1) && (is_reference(a) || is_reference(a + 1));
    }
}

static struct value constant_as(const struct filter_term *, size_t i, enum domain);

/* Refuses constants that can never equal the other side. */
static int check_constants(const struct filter_term *t, struct err *e)
{
    for (size_t k = 0; k < t->n && t->n == 2; k++) {
        const struct filter_term *c = t->args + k, *other = t->args + (1 - k);
        enum domain is = other->kind == FIELD ? fields[other->field].is : NOTHING;
        for (size_t i = 0; c->kind == CONSTANTS && i < c->n; i++)
            if ((c->hint || is) && constant_as(c, i, is).is == NOTHING)
                return err_set(e, ERR_ARG, "\"%.60s\" is no %s", c->texts[i],
                    is == DURATION      ? "duration, such as 1.5s"
                        : is == INSTANT ? "time, such as 2026-11-21T01:37:53Z"
                                        : "value of that type");
        bool has_order = !(other->kind == FIELD && (other->field == KIND || other->field == STATUS)) &&
            c->hint != TRUTH;
        if (t->op >= GT && t->op <= LTE && !has_order)
            return refuse(e, "kinds, statuses and truths have no order");
    }
    return 0;
}

static bool is_of_many(const struct filter_term *t)
{
    return is_reference(t) && (t->level == EVENT || t->level == LINK);
}

/* Refuses comparisons of all events or links with all others, since their cost per span would multiply. */
static int check_cost(const struct filter *f, const struct filter_term *t, struct err *e)
{
    if (t->op == SOME && f->within_some)
        return refuse(e, "some: not within another one");
    if (t->n == 2 && is_of_many(t->args) && is_of_many(t->args + 1) &&
        (!f->within_some || t->args->level != t->args[1].level))
        return refuse(e, "events and links are compared with one another within some only");
    return 0;
}

static int compile_pattern(struct filter *f, struct filter_term *t, struct err *e)
{
    const struct filter_term *of = t->args;
    if (of->kind == FIELD && fields[of->field].is != TEXT)
        return refuse(e, "regex: times and durations are no text");
    int rc = regex_compile(t->args[1].texts[0], &t->pattern, e);
    if (!rc)
        vec_push(&f->patterns, t->pattern);
    return rc;
}

static int read_call(struct filter *f, const json_t *of, unsigned depth, struct filter_term *t, struct err *e)
{
    const char *name = json_string_value(json_object_get(of, "op"));
    const json_t *args = json_object_get(of, "args");
    int op = number_in(filter_operators, name);
    *t = (struct filter_term){.kind = CALL, .op = (enum op)op, .n = json_array_size(args)};
    if (op < 0)
        return err_set(e, ERR_ARG, "no operator \"%.40s\"", name ? name : "");
    f->terms += t->n;
    if (depth > FILTER_MOST_DEPTH || f->terms > FILTER_MOST_TERMS)
        return refuse(e, "more than 1000 terms, or 32 calls in one another");
    t->args = arena_new(&f->arena, struct filter_term, t->n + 1);
    int rc = op == SOME ? check_cost(f, t, e) : 0;
    bool within = f->within_some;
    f->within_some |= op == SOME;
    for (size_t i = 0; !rc && i < t->n; i++)
        rc = read_term(f, json_array_get(args, i), depth, t->args + i, e);
    f->within_some = within;
    if (!rc && !has_right_args(t))
        rc = err_set(e, ERR_ARG, "%s: these are not its arguments", name);
    rc = rc || op == SOME ? rc : check_cost(f, t, e);
    rc = rc || op == REGEX ? rc : check_constants(t, e);
    return rc || t->op != REGEX ? rc : compile_pattern(f, t, e);
}

int filter_read(const char *json, struct filter **out, struct err *e)
{
    json_t *root = NULL;
    struct filter *f = mem_zalloc(sizeof *f);
    int rc = span_load_json(json, strlen(json), &root, e);
    rc = rc ? rc : read_call(f, root, 0, &f->root, e);
    json_decref(root);
    if (rc)
        filter_free(f);
    else
        *out = f;
    return rc;
}

void filter_free(struct filter *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->patterns.n; i++)
        regex_free(f->patterns.v[i]);
    vec_free(&f->patterns);
    arena_fini(&f->arena);
    free(f);
}

/* ---- values ---- */

static bool read_integer(const char *s, int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(s, &end, 10);
    return end > s && !*end && !errno;
}

static bool read_real(const char *s, double *out)
{
    char *end;
    *out = strtod(s, &end);
    return end > s && !*end;
}

/* Returns the constant in its stated domain, or else in that of the other side. NOTHING: it is invalid there. */
static struct value constant_as(const struct filter_term *t, size_t i, enum domain is)
{
    struct value v = {.is = t->hint ? t->hint : is, .text = t->texts[i]};
    struct err ignored = {0};
    bool sound = true;
    if (t->hint && (is == DURATION || is == INSTANT))
        sound = false;
    else if (v.is == INTEGER && !(sound = read_integer(v.text, &v.number)) && !t->hint)
        v.is = REAL, sound = read_real(v.text, &v.real);
    else if (v.is == REAL)
        sound = read_real(v.text, &v.real);
    else if (v.is == TRUTH)
        v.number = !strcmp(v.text, "true"), sound = v.number || !strcmp(v.text, "false");
    else if (v.is == DURATION)
        sound = jaeger_read_duration(v.text, &v.number);
    else if (v.is == INSTANT)
        sound = !time_parse(v.text, 0, &v.number, &ignored);
    if (!sound)
        v.is = NOTHING;
    return v;
}

static struct value value_of(const struct span_value *v, struct arena *a)
{
    switch (v->type) {
    case SPAN_INT: return (struct value){.is = INTEGER, .number = v->number};
    case SPAN_DOUBLE: return (struct value){.is = REAL, .real = v->real};
    case SPAN_BOOL: return (struct value){.is = TRUTH, .number = v->truth};
    default: return (struct value){.is = TEXT, .text = span_value_text(v, a)};
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

static struct value span_field(const struct looked_at *x, int field)
{
    static const char *const kinds[] = {"unspecified", "internal", "server", "client", "producer", "consumer"};
    static const char *const statuses[] = {"unset", "ok", "error"};
    const struct span *s = x->s;
    const struct span_origin *o = s->origin;
    struct value v = {.is = fields[field].is};
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
    return v.text && !*v.text ? (struct value){0} : v;
}

static void add_event(
    const struct looked_at *x, const struct filter_term *t, const struct span_event *v, struct values *out)
{
    if (t->kind == ATTRIBUTE)
        add_attribute(x, &v->attributes, t->key, out);
    else if (t->field == EVENT_NAME)
        vec_push(out, ((struct value){.is = TEXT, .text = v->name}));
    else
        vec_push(out,
            ((struct value){.is = fields[t->field].is,
                .number = t->field == EVENT_TIME ? v->time_ns : v->time_ns - x->s->begin_ns}));
}

static void add_link(
    const struct looked_at *x, const struct filter_term *t, const struct span_link *v, struct values *out)
{
    if (t->kind == ATTRIBUTE)
        add_attribute(x, &v->attributes, t->key, out);
    else
        vec_push(out,
            ((struct value){.is = TEXT,
                .text = t->field == LINK_TRACE ? hex(x, v->trace_id, sizeof v->trace_id)
                    : t->field == LINK_SPAN    ? hex(x, v->id, sizeof v->id)
                                               : v->state}));
}

/* Returns all values that a reference stands for. */
static struct values values_at(const struct looked_at *x, const struct filter_term *t)
{
    struct values out = {0};
    const struct span *s = x->s;
    enum level level = t->level;
    if (level == EVENT) {
        for (size_t i = 0; i < s->n_events; i++)
            if (!x->event || x->event == s->events + i)
                add_event(x, t, s->events + i, &out);
    } else if (level == LINK) {
        for (size_t i = 0; i < s->n_links; i++)
            if (!x->link || x->link == s->links + i)
                add_link(x, t, s->links + i, &out);
    } else if (t->kind == FIELD) {
        struct value v = span_field(x, t->field);
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
static int compare(const struct value *a, const struct value *b, bool ordered)
{
    double x = a->is == REAL ? a->real : (double)a->number, y = b->is == REAL ? b->real : (double)b->number;
    bool numbers = (a->is == INTEGER || a->is == REAL) && (b->is == INTEGER || b->is == REAL);
    if (a->is == TEXT && b->is == TEXT) {
        if (ordered && read_real(a->text, &x) && read_real(b->text, &y))
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

static bool fits(enum op op, int c)
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
            struct value other = c->kind == CONSTANTS ? constant_as(c, k, held->v[i].is) : right->v[k];
            const struct value *a = left_is_constant ? &other : held->v + i,
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
    struct values left = is_reference(t->args) ? values_at(x, t->args) : (struct values){0};
    struct values right = t->n > 1 && is_reference(t->args + 1) ? values_at(x, t->args + 1) : (struct values){0};
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

/* Returns the text that a field must equal. */
static const char *needed(const struct filter_term *t, int field)
{
    const struct filter_term *a = t->args;
    if (t->op == EQ && t->kind == CALL)
        for (int k = 0; k < 2; k++)
            if (a[k].kind == FIELD && a[k].field == field && a[1 - k].kind == CONSTANTS)
                return a[1 - k].texts[0];
    const char *found = NULL;
    for (size_t i = 0; t->op == AND && i < t->n && !found; i++)
        found = needed(a + i, field);
    return found;
}

const char *filter_service(const struct filter *f)
{
    return needed(&f->root, SERVICE);
}

const char *filter_name(const struct filter *f)
{
    return needed(&f->root, NAME);
}
