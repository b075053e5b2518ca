/* SPDX-License-Identifier: MIT */
/* Spans and units unlike the others of their kind. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "span/spans.h"
#include "span/statistics.h"

/* Least robust spreads for a claim; least distance (of logarithms), since durations within 2 % are alike to users;
 * largest share of odd ones, since what 1 of 10 does is not odd. */
#define LEAST_Z 3.5
#define LEAST_SPREAD 0.02
#define ALPHA 0.05
#define RARE 0.1

struct finding {
    const struct spans *s;
    struct spans_outliers *out;
    size_t cap;
};

const char *spans_oddity_name(enum spans_oddity what)
{
    static const char *const names[] = {"slow", "fast", "missing", "extra", "reordered", "failed", "no end"};
    return names[what];
}

static void add(struct finding *f, struct spans_outlier x)
{
    if (f->out->n == f->cap)
        f->out->v = mem_grow(f->out->v, &f->cap, f->out->n + 1, sizeof *f->out->v);
    f->out->v[f->out->n++] = x;
}

static struct spans_outlier of_row(const struct spans *s, enum spans_oddity what, uint32_t row, size_t n)
{
    const struct spans_row *r = s->rows.v + row;
    return (struct spans_outlier){.what = what,
        .unit = r->unit,
        .service = r->service,
        .name = r->name,
        .row = (int32_t)row,
        .n = n,
        .typical = NAN,
        .z = NAN,
        .p = NAN};
}

/* ---- durations ---- */

/* Stage: the usual duration, in logarithms of ended spans, and the chance that nothing is odd. */
struct usual {
    struct stat_centre centre;
    size_t n;          /* SPANS_FEW at least, otherwise no claim */
    double *distances; /* distances from the median, descending */
    double p;          /* least over the numbers that stand apart */
};

static int by_distance(const void *a, const void *b)
{
    return order_of(*(const double *)b, *(const double *)a);
}

static double distance_of(const struct spans *s, uint32_t row, const struct usual *u)
{
    return fmax(fabs(spans_log(spans_duration(s->rows.v + row)) - u->centre.median), LEAST_SPREAD);
}

/* Limit of outliers. If more are far off, they are another kind of work, which clusters show. */
static size_t most_odd(const struct usual *u)
{
    size_t n = (size_t)(RARE * (double)u->n);
    return n ? n : 1;
}

static struct usual judge(const struct spans *s, const uint32_t *rows, size_t n, double *logs)
{
    struct usual u = {.p = 1};
    for (size_t i = 0; i < n; i++)
        if (s->rows.v[rows[i]].life == SPAN_ENDED)
            logs[u.n++] = spans_log(spans_duration(s->rows.v + rows[i]));
    if (u.n < SPANS_FEW)
        return u;
    u.centre = stat_centre(logs, u.n);
    u.centre.scale = fmax(u.centre.scale, LEAST_SPREAD);
    u.distances = mem_alloc(u.n * sizeof *u.distances);
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (s->rows.v[rows[i]].life == SPAN_ENDED)
            u.distances[k++] = distance_of(s, rows[i], &u);
    qsort(u.distances, u.n, sizeof *u.distances, by_distance);
    for (size_t j = 1; j <= most_odd(&u); j++)
        u.p = fmin(u.p, stat_gap_p(u.distances, u.n, j));
    return u;
}

/* Claims odd durations. `corrected`: the stage's p, corrected for all stages. */
static void claim_durations(struct finding *f, const uint32_t *rows, size_t n, const struct usual *u, double corrected)
{
    size_t odd = 0;
    double p = 1;
    if (corrected > ALPHA)
        return;
    for (size_t j = 1; j <= most_odd(u); j++) {
        double here = stat_gap_p(u->distances, u->n, j) * (corrected / u->p);
        if (here > ALPHA || u->distances[j - 1] < LEAST_Z * u->centre.scale)
            continue;
        odd = j;
        p = here;
    }
    for (size_t i = 0; i < n && odd; i++) {
        const struct spans_row *r = f->s->rows.v + rows[i];
        if (r->life != SPAN_ENDED || distance_of(f->s, rows[i], u) < u->distances[odd - 1])
            continue;
        double off = spans_log(spans_duration(r)) - u->centre.median;
        struct spans_outlier x = of_row(f->s, off > 0 ? SPANS_SLOW : SPANS_FAST, rows[i], u->n);
        x.typical = exp(u->centre.median) - 1000;
        x.z = off / u->centre.scale;
        x.p = p;
        add(f, x);
    }
}

static void find_durations(
    struct finding *f, const struct spans_kinds *kinds, const uint32_t *rows, const size_t *begin)
{
    size_t n = kinds->v.n;
    struct usual *usual = mem_alloc((n + 1) * sizeof *usual);
    double *logs = mem_alloc((f->s->rows.n + 1) * sizeof *logs), *p = mem_alloc((n + 1) * sizeof *p);
    size_t asked = 0;
    for (size_t k = 0; k < n; k++) {
        usual[k] = judge(f->s, rows + begin[k], kinds->v.v[k].n, logs);
        if (usual[k].distances)
            p[asked++] = usual[k].p;
    }
    stat_holm(p, asked);
    asked = 0;
    for (size_t k = 0; k < n; k++)
        if (usual[k].distances) {
            claim_durations(f, rows + begin[k], kinds->v.v[k].n, usual + k, p[asked++]);
            free(usual[k].distances);
        }
    free(usual);
    free(logs);
    free(p);
}

/* Finds errors, and spans that never ended, where most did well. */
static void find_failures(struct finding *f, const uint32_t *rows, size_t n)
{
    size_t failed = 0, open = 0;
    if (n < SPANS_FEW)
        return;
    for (size_t i = 0; i < n; i++) {
        const struct spans_row *r = f->s->rows.v + rows[i];
        failed += r->status == SPAN_ERROR && r->life == SPAN_ENDED;
        open += r->life != SPAN_ENDED;
    }
    for (size_t i = 0; i < n; i++) {
        const struct spans_row *r = f->s->rows.v + rows[i];
        if (r->life != SPAN_ENDED && (double)open <= RARE * (double)n)
            add(f, of_row(f->s, SPANS_NO_END, rows[i], n));
        else if (r->life == SPAN_ENDED && r->status == SPAN_ERROR && (double)failed <= RARE * (double)n)
            add(f, of_row(f->s, SPANS_FAILED, rows[i], n));
    }
}

/* ---- sequences ---- */

/* Stages of units of a kind: names right below the whole, in order of time. */
struct step {
    int64_t begin;
    uint32_t name, row;
};
struct sequence {
    uint32_t unit;
    size_t first, n;
};
struct sequences {
    VEC(struct sequence) v;
    VEC(struct step) steps;
};

static int by_begin(const void *a, const void *b)
{
    const struct step *x = a, *y = b;
    return order_of(x->begin, y->begin) ?: order_of(x->row, y->row);
}

static void add_sequence(struct sequences *q, const struct spans *s, uint32_t unit)
{
    const struct spans_unit *u = s->units.v + unit;
    struct sequence x = {unit, q->steps.n, 0};
    for (uint32_t i = 0; i < u->members; i++) {
        uint32_t row = s->members[u->member + i];
        if (s->rows.v[row].parent == u->root && (int32_t)row != u->root)
            vec_push(&q->steps, ((struct step){s->rows.v[row].begin_ns, s->rows.v[row].name, row}));
    }
    x.n = q->steps.n - x.first;
    if (x.n)
        qsort(q->steps.v + x.first, x.n, sizeof *q->steps.v, by_begin);
    vec_push(&q->v, x);
}

/* Counts the units of the kind with each stage. */
static void count_names(const struct sequences *q, struct map *units_with)
{
    struct map seen = {0};
    for (size_t i = 0; i < q->v.n; i++)
        for (size_t k = 0; k < q->v.v[i].n; k++) {
            uint32_t name = q->steps.v[q->v.v[i].first + k].name;
            uint64_t *last = map_put(&seen, name, NULL);
            if (*last == i + 1)
                continue;
            *last = i + 1;
            ++*map_put(units_with, name, NULL);
        }
    map_fini(&seen);
}

static bool is_expected(const struct map *units_with, uint32_t name, size_t units)
{
    const uint64_t *n = map_find(units_with, name);
    return n && (double)*n >= (1 - RARE) * (double)units;
}

/* Hashes the order of the expected stages, each once, to a number. */
static uint64_t order_number(const struct sequences *q, const struct sequence *x, const struct map *units_with)
{
    struct map seen = {0};
    uint64_t number = 0;
    for (size_t k = 0; k < x->n; k++) {
        bool fresh;
        uint32_t name = q->steps.v[x->first + k].name;
        map_put(&seen, name, &fresh);
        if (fresh && is_expected(units_with, name, q->v.n))
            number = map_mix(number ^ name) + 1;
    }
    map_fini(&seen);
    return number;
}

static void tell_stages(struct finding *f, const struct sequences *q, const struct sequence *x, const struct map *with,
    const uint32_t *expected, size_t n_expected, bool *complete)
{
    const struct spans_unit *u = f->s->units.v + x->unit;
    struct map has = {0};
    for (size_t k = 0; k < x->n; k++) {
        const struct step *step = q->steps.v + x->first + k;
        bool fresh;
        map_put(&has, step->name, &fresh);
        if (fresh && (double)*map_find(with, step->name) <= RARE * (double)q->v.n)
            add(f, of_row(f->s, SPANS_EXTRA, step->row, q->v.n));
    }
    *complete = true;
    for (size_t k = 0; k < n_expected; k++) {
        if (map_find(&has, expected[k]))
            continue;
        *complete = false;
        add(f,
            (struct spans_outlier){.what = SPANS_MISSING,
                .unit = x->unit,
                .service = u->service,
                .name = expected[k],
                .row = -1,
                .n = q->v.n,
                .typical = NAN,
                .z = NAN,
                .p = NAN});
    }
    map_fini(&has);
}

/* Returns the usual order, if all but a few units have it. */
static uint64_t usual_order(const uint64_t *orders, const bool *complete, size_t n, size_t *same)
{
    struct map counts = {0};
    uint64_t best = 0;
    *same = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t *count = complete[i] ? map_put(&counts, orders[i], NULL) : NULL;
        if (count && ++*count > *same) {
            *same = *count;
            best = orders[i];
        }
    }
    map_fini(&counts);
    return best;
}

static void compare_sequences(struct finding *f, const struct sequences *q)
{
    struct map with = {0};
    VEC(uint32_t) expected = {0};
    size_t n = q->v.n, same, whole = 0;
    bool *complete = mem_alloc(n * sizeof *complete);
    uint64_t *orders = mem_alloc(n * sizeof *orders);
    count_names(q, &with);
    for (size_t i = 0; i < with.cap; i++)
        if (with.used[i] && is_expected(&with, (uint32_t)with.keys[i], n))
            vec_push(&expected, (uint32_t)with.keys[i]);
    for (size_t i = 0; i < n; i++) {
        tell_stages(f, q, q->v.v + i, &with, expected.v, expected.n, complete + i);
        orders[i] = order_number(q, q->v.v + i, &with);
        whole += complete[i];
    }
    uint64_t usual = usual_order(orders, complete, n, &same);
    for (size_t i = 0; i < n && (double)same >= (1 - RARE) * (double)whole; i++)
        if (complete[i] && orders[i] != usual && q->v.v[i].n)
            add(f, of_row(f->s, SPANS_REORDERED, q->steps.v[q->v.v[i].first].row, whole));
    map_fini(&with);
    vec_free(&expected);
    free(complete);
    free(orders);
}

struct unit_kind {
    uint64_t kind;
    uint32_t unit;
};

static int by_kind(const void *a, const void *b)
{
    const struct unit_kind *x = a, *y = b;
    return order_of(x->kind, y->kind) ?: order_of(x->unit, y->unit);
}

static void find_sequences(struct finding *f)
{
    const struct spans *s = f->s;
    struct unit_kind *kinds = mem_alloc((s->units.n + 1) * sizeof *kinds);
    for (size_t u = 0; u < s->units.n; u++)
        kinds[u] = (struct unit_kind){(uint64_t)s->units.v[u].service << 32 | s->units.v[u].name, (uint32_t)u};
    if (s->units.n)
        qsort(kinds, s->units.n, sizeof *kinds, by_kind);
    for (size_t i = 0, end; i < s->units.n; i = end) {
        struct sequences q = {0};
        for (end = i; end < s->units.n && kinds[end].kind == kinds[i].kind; end++)
            add_sequence(&q, s, kinds[end].unit);
        if (end - i >= SPANS_FEW)
            compare_sequences(f, &q);
        vec_free(&q.v);
        vec_free(&q.steps);
    }
    free(kinds);
}

/* ---- results ---- */

/* Order: durations first, the least likely first; then findings without a likelihood, by time. */
static int by_chance(const void *a, const void *b)
{
    const struct spans_outlier *x = a, *y = b;
    bool x_none = isnan(x->z), y_none = isnan(y->z);
    if (x_none != y_none)
        return x_none - y_none;
    int order = x_none ? 0 : order_of(x->p, y->p) ?: order_of(fabs(y->z), fabs(x->z));
    return order ?: order_of(x->unit, y->unit) ?: order_of(x->row, y->row) ?: order_of(x->name, y->name);
}

struct spans_outliers *spans_outliers(const struct spans *s, const struct spans_by *by)
{
    struct finding f = {.s = s, .out = mem_zalloc(sizeof *f.out)};
    struct spans_kinds kinds;
    uint32_t *rows;
    size_t *begin;
    spans_kinds_make(s, by, &kinds);
    spans_kinds_rows(&kinds, s->rows.n, &rows, &begin);
    for (size_t k = 0; k < kinds.v.n; k++)
        *(kinds.v.v[k].n < SPANS_FEW ? &f.out->few : &f.out->looked) += kinds.v.v[k].n;
    find_durations(&f, &kinds, rows, begin);
    for (size_t k = 0; k < kinds.v.n; k++)
        find_failures(&f, rows + begin[k], kinds.v.v[k].n);
    find_sequences(&f);
    if (f.out->n)
        qsort(f.out->v, f.out->n, sizeof *f.out->v, by_chance);
    spans_kinds_fini(&kinds);
    free(rows);
    free(begin);
    return f.out;
}

void spans_outliers_free(struct spans_outliers *o)
{
    if (!o)
        return;
    free(o->v);
    free(o);
}
