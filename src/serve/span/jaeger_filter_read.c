/* SPDX-License-Identifier: MIT */
/* Filters of searches: reading. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "span/jaeger.h"
#include "span/jaeger_filter_tree.h"
#include "span/json_text.h"

const char *const filter_operators[] = {
    "and", "or", "not", "eq", "ne", "gt", "lt", "gte", "lte", "regex", "exists", "in", "not_in", "some", NULL};
const char *const filter_levels[] = {"span", "resource", "scope", "event", "link", NULL};

const struct filter_field filter_fields[FIELDS] = {{SPAN, "traceID", TEXT}, {SPAN, "spanID", TEXT},
    {SPAN, "parentSpanID", TEXT}, {SPAN, "traceState", TEXT}, {SPAN, "name", TEXT}, {SPAN, "kind", TEXT},
    {SPAN, "startTime", INSTANT}, {SPAN, "endTime", INSTANT}, {SPAN, "status", TEXT}, {SPAN, "statusMessage", TEXT},
    {SPAN, "duration", DURATION}, {RESOURCE, "service", TEXT}, {RESOURCE, "schemaURL", TEXT}, {SCOPE, "name", TEXT},
    {SCOPE, "version", TEXT}, {SCOPE, "schemaURL", TEXT}, {EVENT, "name", TEXT}, {EVENT, "time", INSTANT},
    {EVENT, "timeSinceStart", DURATION}, {LINK, "traceID", TEXT}, {LINK, "spanID", TEXT}, {LINK, "traceState", TEXT}};

/* ---- constants ---- */

bool filter_read_integer(const char *s, int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(s, &end, 10);
    return end > s && !*end && !errno;
}

bool filter_read_real(const char *s, double *out)
{
    char *end;
    *out = strtod(s, &end);
    return end > s && !*end;
}

struct filter_value filter_constant(const struct filter_term *t, size_t i, enum filter_domain is)
{
    struct filter_value v = {.is = t->hint ? t->hint : is, .text = t->texts[i]};
    struct err ignored = {0};
    bool sound = true;
    if (t->hint && (is == DURATION || is == INSTANT))
        sound = false;
    else if (v.is == INTEGER && !(sound = filter_read_integer(v.text, &v.number)) && !t->hint)
        v.is = REAL, sound = filter_read_real(v.text, &v.real);
    else if (v.is == REAL)
        sound = filter_read_real(v.text, &v.real);
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

static int read_level(const json_t *of, bool needed, enum filter_level *out, struct err *e)
{
    const char *name = json_string_value(json_object_get(of, "level"));
    int level = number_in(filter_levels, name);
    *out = level < 0 ? ANY : (enum filter_level)level;
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
        if (filter_fields[t->field].level == t->level && name && !strcmp(filter_fields[t->field].name, name))
            return 0;
    return rc ? rc : err_set(e, ERR_ARG, "%s has no field \"%.40s\"", filter_levels[t->level], name ? name : "");
}

static int read_constants(struct filter *f, const json_t *of, bool list, struct filter_term *t, struct err *e)
{
    static const char *const hints[] = {"string", "int", "double", "bool", NULL};
    static const enum filter_domain domains[] = {TEXT, INTEGER, REAL, TRUTH};
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

static bool is_value(const struct filter_term *t)
{
    return filter_is_reference(t) || (t->kind == CONSTANTS && !t->is_list);
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
    case EXISTS: return t->n == 1 && filter_is_reference(a);
    case IN:
    case NOT_IN: return t->n == 2 && filter_is_reference(a) && a[1].kind == CONSTANTS && a[1].is_list;
    case REGEX: return t->n == 2 && filter_is_reference(a) && a[1].kind == CONSTANTS && !a[1].is_list;
    case SOME: return t->n == 2 && a->kind == NESTED && a[1].kind == CALL;
    default:
        return t->n == 2 && is_value(a) && is_value(a + 1) && (filter_is_reference(a) || filter_is_reference(a + 1));
    }
}

/* Refuses constants that can never equal the other side. */
static int check_constants(const struct filter_term *t, struct err *e)
{
    for (size_t k = 0; k < t->n && t->n == 2; k++) {
        const struct filter_term *c = t->args + k, *other = t->args + (1 - k);
        enum filter_domain is = other->kind == FIELD ? filter_fields[other->field].is : NOTHING;
        for (size_t i = 0; c->kind == CONSTANTS && i < c->n; i++)
            if ((c->hint || is) && filter_constant(c, i, is).is == NOTHING)
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
    return filter_is_reference(t) && (t->level == EVENT || t->level == LINK);
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
    if (of->kind == FIELD && filter_fields[of->field].is != TEXT)
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
    *t = (struct filter_term){.kind = CALL, .op = (enum filter_op)op, .n = json_array_size(args)};
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
