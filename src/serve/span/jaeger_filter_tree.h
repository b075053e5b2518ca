/* SPDX-License-Identifier: MIT */
/* Private to span: the tree of a filter, for jaeger_filter*.c. */
#ifndef WEFT_SPAN_JAEGER_FILTER_TREE_H
#define WEFT_SPAN_JAEGER_FILTER_TREE_H

#include "base/mem.h"
#include "base/regex.h"
#include "span/jaeger_filter.h"

enum filter_op { AND, OR, NOT, EQ, NE, GT, LT, GTE, LTE, REGEX, EXISTS, IN, NOT_IN, SOME, OPERATORS };
enum filter_level { SPAN, RESOURCE, SCOPE, EVENT, LINK, LEVELS, ANY };

/* Domains of values that can be compared. */
enum filter_domain { NOTHING, TEXT, INTEGER, REAL, TRUTH, DURATION, INSTANT };
struct filter_value {
    enum filter_domain is;
    const char *text;
    int64_t number; /* INTEGER, TRUTH; DURATION and INSTANT in ns */
    double real;
};

struct filter_field { enum filter_level level; const char *name; enum filter_domain is; };
enum filter_field_number {
    TRACE_ID, SPAN_ID, PARENT_ID, TRACE_STATE, NAME, KIND, START, END, STATUS, MESSAGE, LASTED,
    SERVICE, RESOURCE_SCHEMA, SCOPE_NAME, SCOPE_VERSION, SCOPE_SCHEMA,
    EVENT_NAME, EVENT_TIME, EVENT_SINCE, LINK_TRACE, LINK_SPAN, LINK_STATE, FIELDS
};
extern const struct filter_field filter_fields[FIELDS];

enum filter_kind { CALL, ATTRIBUTE, FIELD, NESTED, CONSTANTS };
struct filter_term {
    enum filter_kind kind;
    enum filter_op op;
    enum filter_level level; /* ATTRIBUTE, NESTED */
    int field;
    const char *key;         /* ATTRIBUTE */
    const char **texts;      /* CONSTANTS: the texts as written */
    enum filter_domain hint; /* CONSTANTS: the domain stated; NOTHING: that of the other side */
    bool is_list;
    struct regex *pattern;   /* REGEX */
    struct filter_term *args;
    size_t n;                /* number of args, or of texts */
};
struct filter {
    struct arena arena;
    struct filter_term root;
    size_t terms;
    bool within_some;        /* reading inside of `some` */
    VEC(struct regex *) patterns;
};

/* Returns whether the argument is an attribute or a field. */
static inline bool filter_is_reference(const struct filter_term *t)
{
    return t->kind == ATTRIBUTE || t->kind == FIELD;
}
/* Returns the constant in its stated domain, or else in that of the other side. NOTHING: it is invalid there. */
struct filter_value filter_constant(const struct filter_term *, size_t i, enum filter_domain);
/* Returns whether the whole text is a number: an integer that fits; any. */
bool filter_read_integer(const char *, int64_t *out);
bool filter_read_real(const char *, double *out);

#endif
