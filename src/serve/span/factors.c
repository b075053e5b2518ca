/* SPDX-License-Identifier: MIT */
/* Attribute values that explain durations by themselves: units that have one take longer than the others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "span/spans.h"
#include "span/statistics.h"

#define ALPHA 0.05
#define LEAST_RATIO 1.05 /* least ratio of medians: smaller differences are useless, however certain */
enum { EXACT_MOST = 50 };

/* Attribute value, and the units that have it. */
struct value {
    uint32_t key, value;
    VEC(uint32_t) units;
};
struct values {
    VEC(struct value) v;
    struct map numbers;
    uint32_t unit; /* unit being visited */
};

static void take(void *arg, uint32_t key, uint32_t value)
{
    struct values *all = arg;
    bool fresh;
    uint64_t *number = map_put(&all->numbers, (uint64_t)key << 32 | value, &fresh);
    if (fresh) {
        *number = all->v.n;
        vec_push(&all->v, ((struct value){.key = key, .value = value}));
    }
    struct value *x = all->v.v + *number;
    if (!x->units.n || x->units.v[x->units.n - 1] != all->unit)
        vec_push(&x->units, all->unit);
}

/* ---- single tests ---- */

/* Durations of the units in one stage; NaN: the unit lacks it. */
struct duration_column {
    const double *ns;
    double *ranks; /* twice the mean rank */
    size_t n, units;
    double tied;
};
struct ranked {
    double ns;
    uint32_t unit;
};

static int by_ns(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return order_of(x->ns, y->ns) ?: order_of(x->unit, y->unit);
}

static void rank_column(struct duration_column *c)
{
    struct ranked *r = mem_alloc((c->units + 1) * sizeof *r);
    c->n = 0;
    c->tied = 0;
    for (size_t i = 0; i < c->units; i++)
        if (!isnan(c->ns[i]))
            r[c->n++] = (struct ranked){c->ns[i], (uint32_t)i};
    if (c->n)
        qsort(r, c->n, sizeof *r, by_ns);
    for (size_t i = 0, end; i < c->n; i = end) {
        for (end = i + 1; end < c->n && r[end].ns <= r[i].ns; end++)
            ;
        double size = (double)(end - i);
        c->tied += size * (size * size - 1);
        for (size_t k = i; k < end; k++)
            c->ranks[r[k].unit] = (double)(i + end + 1);
    }
    free(r);
}

/* Test: do units with the value take longer, or shorter, in this stage? */
struct question {
    size_t value, stage; /* stage beyond the last: the whole unit */
    size_t n, others;
    double typical, others_typical;
};

/* Divides durations: those with the value first, then the others. */
static size_t part(const struct duration_column *c, const struct value *x, double *out)
{
    size_t in = 0, next = 0, at = 0;
    for (size_t i = 0; i < x->units.n; i++)
        if (!isnan(c->ns[x->units.v[i]]))
            out[in++] = c->ns[x->units.v[i]];
    at = in;
    for (uint32_t i = 0; i < c->units; i++) {
        bool has = next < x->units.n && x->units.v[next] == i;
        next += has;
        if (!has && !isnan(c->ns[i]))
            out[at++] = c->ns[i];
    }
    return in;
}

/* Runs Mann & Whitney's test of the value's units against the others; for many units, from their common ranks. */
static double ask(const struct duration_column *c, const struct value *x, double *scratch, struct question *q)
{
    double sum = 0;
    q->n = 0;
    for (size_t i = 0; i < x->units.n; i++)
        if (!isnan(c->ns[x->units.v[i]])) {
            sum += c->ranks[x->units.v[i]] / 2;
            q->n++;
        }
    q->others = c->n - q->n;
    if (q->n < SPANS_FEW || q->others < SPANS_FEW)
        return NAN;
    if (c->n <= EXACT_MOST) {
        part(c, x, scratch);
        return stat_mann_whitney(scratch + q->n, q->others, scratch, q->n).p;
    }
    double n = (double)q->n, m = (double)q->others, all = (double)c->n;
    double variance = n * m / 12 * (all + 1 - c->tied / (all * (all - 1)));
    double far = fabs(sum - n * (all + 1) / 2) - 0.5;
    return variance <= 0 || far <= 0 ? 1 : 2 * stat_normal_tail(far / sqrt(variance));
}

/* ---- selection of factors ---- */

struct questions {
    VEC(struct question) asked;
    VEC(double) p;
};

static void ask_all(const struct values *all, const double *ns, size_t units, size_t columns, struct questions *a)
{
    struct duration_column c = {.units = units, .ranks = mem_alloc((units + 1) * sizeof *c.ranks)};
    double *scratch = mem_alloc((units + 1) * sizeof *scratch);
    for (size_t k = 0; k < columns; k++) {
        c.ns = ns + k * units;
        rank_column(&c);
        for (size_t i = 0; i < all->v.n; i++) {
            struct question q = {.value = i, .stage = k};
            if (all->v.v[i].units.n < SPANS_FEW || all->v.v[i].units.n + SPANS_FEW > units)
                continue;
            double p = ask(&c, all->v.v + i, scratch, &q);
            if (isnan(p))
                continue;
            vec_push(&a->asked, q);
            vec_push(&a->p, p);
        }
    }
    free(c.ranks);
    free(scratch);
}

/* Prefers the stage with the largest difference among a value's results; the whole unit only if no stage has one. */
static bool is_better(const struct spans_factor *known, const struct question *q, bool whole)
{
    if (!known->n)
        return true;
    if (whole || !known->stage)
        return !whole;
    return q->typical - q->others_typical > known->typical - known->others_typical;
}

static int by_p(const void *a, const void *b)
{
    const struct spans_factor *x = a, *y = b;
    return order_of(x->p, y->p) ?: order_of(y->typical - y->others_typical, x->typical - x->others_typical)
        ?: order_of(x->key, y->key) ?: order_of(x->value, y->value);
}

static void claim(const struct spans_clusters *c, const struct values *all, const double *ns, struct questions *a,
    struct spans_factors *out)
{
    struct spans_factor *best = mem_zalloc((all->v.n + 1) * sizeof *best);
    double *scratch = mem_alloc((c->units + 1) * sizeof *scratch);
    for (size_t i = 0; i < a->asked.n; i++) {
        struct question *q = a->asked.v + i;
        const struct value *x = all->v.v + q->value;
        struct duration_column column = {.ns = ns + q->stage * c->units, .units = c->units};
        bool whole = q->stage == c->n_stages;
        if (a->p.v[i] > ALPHA)
            continue;
        part(&column, x, scratch);
        q->typical = stat_median(scratch, q->n);
        q->others_typical = stat_median(scratch + q->n, q->others);
        if (q->typical < LEAST_RATIO * q->others_typical || !is_better(best + q->value, q, whole))
            continue;
        struct spans_factor *f = best + q->value;
        *f = (struct spans_factor){.key = x->key,
            .value = x->value,
            .stage = whole ? 0 : c->stages[q->stage],
            .n = q->n,
            .others = q->others,
            .typical = q->typical,
            .others_typical = q->others_typical,
            .p = a->p.v[i]};
        for (size_t k = 0; k < SPANS_EXAMPLES; k++)
            f->example[k] = c->unit[x->units.v[k * (x->units.n / SPANS_EXAMPLES)]];
    }
    out->v = mem_alloc((all->v.n + 1) * sizeof *out->v);
    for (size_t i = 0; i < all->v.n; i++)
        if (best[i].n)
            out->v[out->n++] = best[i];
    if (out->n)
        qsort(out->v, out->n, sizeof *out->v, by_p);
    free(best);
    free(scratch);
}

struct spans_factors *spans_find_factors(const struct spans *s, const struct spans_clusters *c, const double *rows)
{
    struct spans_factors *out = mem_zalloc(sizeof *out);
    struct values all = {0};
    struct questions a = {0};
    size_t columns = c->n_stages + 1;
    double *ns = mem_alloc((columns * c->units + 1) * sizeof *ns);
    out->units = c->units;
    for (uint32_t i = 0; i < c->units; i++) {
        const struct spans_unit *u = s->units.v + c->unit[i];
        all.unit = i;
        spans_each_fact(s, u, take, &all);
        for (size_t k = 0; k < c->n_stages; k++)
            ns[k * c->units + i] = rows[i * c->n_stages + k];
        ns[c->n_stages * c->units + i] = (double)(u->end_ns - u->begin_ns);
    }
    ask_all(&all, ns, c->units, columns, &a);
    if (a.p.n)
        stat_holm(a.p.v, a.p.n);
    claim(c, &all, ns, &a, out);
    for (size_t i = 0; i < all.v.n; i++)
        vec_free(&all.v.v[i].units);
    vec_free(&all.v);
    map_fini(&all.numbers);
    vec_free(&a.asked);
    vec_free(&a.p);
    free(ns);
    return out;
}

void spans_factors_free(struct spans_factors *f)
{
    if (!f)
        return;
    free(f->v);
    free(f);
}
