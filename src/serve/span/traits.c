/* SPDX-License-Identifier: MIT */
/* Traits: values of attributes, and errors, that a cluster's units have more often than others. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "span/spans.h"
#include "span/statistics.h"

enum { LEAST_UNITS = 3, CLUSTERS = 8 }; /* least units with a value to be tested; limit of clusters */
#define ALPHA 0.05

/* Attribute value: number of units with it, per cluster. */
struct marked {
    uint32_t key, value;
    uint64_t last;
    size_t units[CLUSTERS], all;
};
struct marking {
    VEC(struct marked) v;
    struct map numbers;
    size_t unit; /* unit being visited, and its cluster */
    uint8_t cluster;
};

static void mark(void *arg, uint32_t key, uint32_t value)
{
    struct marking *m = arg;
    bool fresh;
    uint64_t *number = map_put(&m->numbers, (uint64_t)key << 32 | value, &fresh);
    if (fresh) {
        *number = m->v.n;
        vec_push(&m->v, ((struct marked){.key = key, .value = value}));
    }
    struct marked *x = m->v.v + *number;
    if (x->last == m->unit + 1)
        return;
    x->last = m->unit + 1;
    x->units[m->cluster]++;
    x->all++;
}

static void each_of(
    const struct spans *s, uint32_t fact, uint32_t facts, void (*take)(void *, uint32_t key, uint32_t value), void *arg)
{
    for (uint32_t f = fact; f < fact + facts; f++)
        if (s->facts.v[f].value)
            take(arg, s->facts.v[f].key, s->facts.v[f].value);
}

void spans_each_fact(
    const struct spans *s, const struct spans_unit *u, void (*take)(void *, uint32_t key, uint32_t value), void *arg)
{
    uint32_t origin = UINT32_MAX;
    if (u->after >= 0) /* facts of the span that submitted it */
        each_of(s, s->rows.v[u->after].fact, s->rows.v[u->after].facts, take, arg);
    for (uint32_t k = 0; k < u->members; k++) {
        const struct spans_row *r = s->rows.v + s->members[u->member + k];
        each_of(s, r->fact, r->facts, take, arg);
        if (r->origin != origin)
            each_of(s, s->origins.v[r->origin].fact, s->origins.v[r->origin].facts, take, arg);
        origin = r->origin;
        if (r->status == SPAN_ERROR)
            take(arg, s->status_text, s->error_text);
    }
}

/* Test: has this cluster more of this value than chance would give it? */
struct asked {
    size_t cluster, marked;
};

static int by_p(const void *a, const void *b)
{
    const struct spans_trait *x = a, *y = b;
    return order_of(x->p, y->p) ?: order_of(y->in, x->in) ?: order_of(x->key, y->key) ?: order_of(x->value, y->value);
}

static void keep_likely(
    const struct spans_clusters *c, const struct marking *m, const struct asked *asked, const double *p, size_t n)
{
    size_t cap[CLUSTERS] = {0};
    for (size_t i = 0; i < n; i++) {
        struct spans_cluster *x = c->v + asked[i].cluster;
        const struct marked *v = m->v.v + asked[i].marked;
        if (p[i] > ALPHA)
            continue;
        if (x->n_traits == cap[asked[i].cluster])
            x->traits = mem_grow(x->traits, cap + asked[i].cluster, x->n_traits + 1, sizeof *x->traits);
        size_t in = v->units[asked[i].cluster];
        x->traits[x->n_traits++] = (struct spans_trait){v->key, v->value, in, x->n, v->all - in, c->units - x->n, p[i]};
    }
    for (size_t k = 0; k < c->n; k++)
        if (c->v[k].n_traits)
            qsort(c->v[k].traits, c->v[k].n_traits, sizeof *c->v[k].traits, by_p);
}

void spans_find_traits(const struct spans *s, struct spans_clusters *c)
{
    struct marking m = {0};
    VEC(struct asked) asked = {0};
    for (size_t i = 0; i < c->units && c->n > 1; i++) {
        m.unit = i;
        m.cluster = c->of[i];
        spans_each_fact(s, s->units.v + c->unit[i], mark, &m);
    }
    for (size_t i = 0; i < m.v.n; i++)
        for (size_t k = 0; k < c->n; k++)
            if (m.v.v[i].all >= LEAST_UNITS && m.v.v[i].all < c->units)
                vec_push(&asked, ((struct asked){k, i}));
    double *p = mem_alloc((asked.n + 1) * sizeof *p);
    for (size_t i = 0; i < asked.n; i++) {
        const struct marked *x = m.v.v + asked.v[i].marked;
        p[i] = stat_over(x->units[asked.v[i].cluster], c->v[asked.v[i].cluster].n, x->all, c->units);
    }
    stat_benjamini_hochberg(p, asked.n);
    keep_likely(c, &m, asked.v, p, asked.n);
    vec_free(&asked);
    vec_free(&m.v);
    map_fini(&m.numbers);
    free(p);
}
