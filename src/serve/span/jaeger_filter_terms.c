/* SPDX-License-Identifier: MIT */
/* Filters of searches: the service, name and terms that every matching span has, so that the database finds the spans
 * by its indexes. */
#include <stdio.h>
#include <string.h>

#include "span/code.h"
#include "span/jaeger_filter_tree.h"

/* Integers below it are doubles of their own. */
static const double most_exact = 9007199254740992;

/* Returns the constant that a call compares a reference with for equality; NULL: it does not. */
static const struct filter_term *equal_constant(const struct filter_term *t, const struct filter_term **reference)
{
    const struct filter_term *a = t->args;
    if (t->kind != CALL || (t->op != EQ && t->op != IN))
        return NULL;
    for (int k = 0; k < 2; k++)
        if (filter_is_reference(&a[k]) && a[1 - k].kind == CONSTANTS && a[1 - k].n == 1) {
            *reference = &a[k];
            return &a[1 - k];
        }
    return NULL;
}

/* ---- service and name ---- */

static const char *needed(const struct filter_term *t, int field)
{
    const struct filter_term *reference, *constant = equal_constant(t, &reference);
    const char *found = NULL;
    if (constant && reference->kind == FIELD && reference->field == field)
        return constant->texts[0];
    for (size_t i = 0; t->op == AND && i < t->n && !found; i++)
        found = needed(t->args + i, field);
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

/* ---- terms ---- */

static void want(struct filter_wanted *w, const char *key, const char *text, bool any)
{
    const size_t n = strlen(key);
    const uint64_t term = span_term(key, n, text, strlen(text));
    vec_push(w, ((struct span_wanted){term, any ? SPAN_TERM_ANY(key, n) : term}));
}

static void want_integer(struct filter_wanted *w, const char *key, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    want(w, key, text, true);
}

/* Adds a number, which integers and doubles can equal. */
static void want_number(struct filter_wanted *w, const char *key, const struct filter_value *v)
{
    const bool small = v->real > -most_exact && v->real < most_exact;
    if (v->is == INTEGER)
        want_integer(w, key, v->number);
    else if (v->is == REAL && small && v->real == (double)(int64_t)v->real)
        want_integer(w, key, (int64_t)v->real);
    else if (v->is == REAL && small)
        vec_push(w, ((struct span_wanted){SPAN_TERM_ANY(key, strlen(key)), SPAN_TERM_ANY(key, strlen(key))}));
}

/* Adds a constant without a stated type. A number counts as text, too, so it must be written as its term is. */
static void want_untyped(struct filter_wanted *w, const char *key, const struct filter_term *constant)
{
    const char *text = constant->texts[0];
    const struct filter_value v = filter_constant(constant, 0, INTEGER);
    char plain[24] = "";
    if (v.is == INTEGER)
        snprintf(plain, sizeof plain, "%lld", (long long)v.number);
    const bool no_integer = v.is == NOTHING ||
        (v.is == REAL && v.real > -most_exact && v.real < most_exact && v.real != (double)(int64_t)v.real);
    if (no_integer || !strcmp(plain, text))
        want(w, key, text, true);
}

/* Adds an attribute's term. Scopes and links have none. */
static void want_attribute(struct filter_wanted *w, const struct filter_term *t, const struct filter_term *constant)
{
    const struct filter_value v = filter_constant(constant, 0, NOTHING);
    if (t->level == SCOPE || t->level == LINK)
        return;
    if (!constant->hint)
        want_untyped(w, t->key, constant);
    else if (constant->hint == INTEGER || constant->hint == REAL)
        want_number(w, t->key, &v);
    else
        want(w, t->key, constant->texts[0], true);
}

/* Adds a field's term, as span_each_term names it. Service and name have conditions of their own. */
static void want_field(struct filter_wanted *w, int field, const char *text)
{
    static const char *const keys[FIELDS] = {[TRACE_STATE] = "w3c.tracestate",
        [KIND] = "span.kind",
        [STATUS] = "otel.status_code",
        [MESSAGE] = "otel.status_description",
        [SCOPE_NAME] = "otel.scope.name",
        [SCOPE_VERSION] = "otel.scope.version",
        [EVENT_NAME] = "event"};
    if (!keys[field] || !*text || (field == KIND && !strcmp(text, "unspecified")))
        return;
    if (field == STATUS)
        text = !strcmp(text, "ok") ? "OK" : !strcmp(text, "error") ? "ERROR" : NULL;
    if (text)
        want(w, keys[field], text, false);
}

static void want_all(struct filter_wanted *w, const struct filter_term *t)
{
    const struct filter_term *reference, *constant = equal_constant(t, &reference);
    if (constant && reference->kind == ATTRIBUTE)
        want_attribute(w, reference, constant);
    else if (constant)
        want_field(w, reference->field, constant->texts[0]);
    for (size_t i = 0; (t->op == AND || t->op == SOME) && i < t->n; i++)
        if (t->args[i].kind == CALL)
            want_all(w, t->args + i);
}

void filter_want(const struct filter *f, struct filter_wanted *out)
{
    want_all(out, &f->root);
}
