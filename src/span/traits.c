/* What units of a cluster have in common that others have less: values of attributes, and errors. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "span/spans.h"
#include "span/statistics.h"

enum { LEAST_UNITS = 3, CLUSTERS = 8 }; /* that share a value, so that it is looked at; that can be counted for */
#define ALPHA 0.05

/* A value of an attribute: units that have it, per cluster. */
struct marked {
    uint32_t key, value;
    uint64_t last;
    size_t units[CLUSTERS], all;
};
struct marking {
    VEC(struct marked) v;
    struct map numbers;
};

static void mark(struct marking *m, uint32_t key, uint32_t value, size_t unit, uint8_t cluster)
{
    bool fresh;
    uint64_t *number = map_put(&m->numbers, (uint64_t)key << 32 | value, &fresh);
    if (fresh) {
        *number = m->v.n;
        vec_push(&m->v, ((struct marked){.key = key, .value = value}));
    }
    struct marked *x = m->v.v + *number;
    if (x->last == unit + 1)
        return;
    x->last = unit + 1;
    x->units[cluster]++;
    x->all++;
}

static void mark_facts(const struct spans *s, struct marking *m, uint32_t fact, uint32_t facts, size_t i, uint8_t of)
{
    for (uint32_t f = fact; f < fact + facts; f++)
        if (s->facts.v[f].value)
            mark(m, s->facts.v[f].key, s->facts.v[f].value, i, of);
}

static void mark_unit(const struct spans *s, struct marking *m, const struct spans_clusters *c, size_t i)
{
    const struct spans_unit *u = s->units.v + c->unit[i];
    uint32_t origin = UINT32_MAX;
    if (u->after >= 0) /* what submitted it may say more of it */
        mark_facts(s, m, s->rows.v[u->after].fact, s->rows.v[u->after].facts, i, c->of[i]);
    for (uint32_t k = 0; k < u->members; k++) {
        const struct spans_row *r = s->rows.v + s->members[u->member + k];
        mark_facts(s, m, r->fact, r->facts, i, c->of[i]);
        if (r->origin != origin)
            mark_facts(s, m, s->origins.v[r->origin].fact, s->origins.v[r->origin].facts, i, c->of[i]);
        origin = r->origin;
        if (r->status == SPAN_ERROR)
            mark(m, s->status_text, s->error_text, i, c->of[i]);
    }
}

/* A question: has this cluster more of this value than chance would give it? */
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
    for (size_t i = 0; i < c->units && c->n > 1; i++)
        mark_unit(s, &m, c, i);
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
