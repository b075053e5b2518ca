/* SPDX-License-Identifier: MIT */
/* Filters of states (filter_query_parameters): expressions (base/expr.h), each with the tag for what does not match
 * it. */
#include "base/expr.h"
#include "tsp/query.h"

enum { MAX_EXPRESSIONS = 64, MAX_EXPRESSION_BYTES = 4096 };

struct tsp_filter {
    size_t n;
    struct {
        int tag;
        struct expr *expression;
    } parts[MAX_EXPRESSIONS];
};

struct tsp_filter *tsp_filter_compile(json_t *map, struct arena *a)
{
    struct tsp_filter *f = arena_new(a, struct tsp_filter, 1);
    const char *key;
    json_t *list, *item;
    json_object_foreach (map, key, list) {
        size_t i;
        int tag = atoi(key);
        json_array_foreach (list, i, item) {
            const char *text = json_string_value(item);
            if (!text || !*text || strlen(text) > MAX_EXPRESSION_BYTES || f->n == MAX_EXPRESSIONS || tag <= 0 ||
                tag > 255)
                continue;
            f->parts[f->n].tag = tag;
            f->parts[f->n++].expression = expr_compile_filter(text);
        }
    }
    return f->n ? f : NULL;
}

void tsp_filter_fini(const struct tsp_filter *f)
{
    for (size_t i = 0; f && i < f->n; i++)
        expr_free(f->parts[i].expression);
}

/* ---- matching ---- */

static bool same_key(const char *asked, const char *key)
{
    if (!strcasecmp(asked, key))
        return true;
    return (!strcasecmp(asked, "thread") && !strcasecmp(key, "tid")) ||
        (!strcasecmp(asked, "process") && !strcasecmp(key, "exec name"));
}

struct element {
    const char *const *names; /* names in the expression */
    const struct tsp_property *properties;
    size_t n;
};

static const char *next_value(void *element, size_t slot, size_t *at)
{
    const struct element *e = element;
    while (*at < e->n) {
        const struct tsp_property *p = &e->properties[(*at)++];
        if (p->value && (slot == EXPR_ANY_NAME || same_key(e->names[slot], p->key)))
            return p->value;
    }
    return NULL;
}

int tsp_filter_tags(const struct tsp_query *q, const struct tsp_property *p, size_t n)
{
    struct element e = {.properties = p, .n = n};
    int tags = 0;
    for (size_t i = 0; q->filter && i < q->filter->n; i++) {
        const struct expr *x = q->filter->parts[i].expression;
        expr_names(x, &e.names);
        if (!expr_eval_filter(x, next_value, &e))
            tags |= q->filter->parts[i].tag;
    }
    return tags;
}
