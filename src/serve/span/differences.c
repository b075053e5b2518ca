/* SPDX-License-Identifier: MIT */
/* Comparison of two sides of the same stages, and changes of stages over time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "span/spans.h"
#include "span/statistics.h"

enum { CHANGES_MOST = 16 }; /* limit per stage */
#define ALPHA 0.05

/* Duration of a row. */
struct timed {
    double ns;
    int64_t begin;
    uint32_t row;
};

static int by_duration(const void *a, const void *b)
{
    const struct timed *x = a, *y = b;
    return order_of(x->ns, y->ns) ?: order_of(x->row, y->row);
}

static int by_begin(const void *a, const void *b)
{
    const struct timed *x = a, *y = b;
    return order_of(x->begin, y->begin) ?: order_of(x->row, y->row);
}

static struct timed timed_of(const struct spans *s, uint32_t row)
{
    const struct spans_row *r = s->rows.v + row;
    return (struct timed){(double)spans_duration(r), r->begin_ns, row};
}

/* ---- two sides ---- */

static double *numbers_of(const struct timed *v, size_t n)
{
    double *numbers = mem_alloc((n + 1) * sizeof *numbers);
    for (size_t i = 0; i < n; i++)
        numbers[i] = v[i].ns;
    return numbers;
}

/* Compares two sorted sides. */
static struct spans_difference compare_sides(const struct timed *const v[2], const size_t *n)
{
    struct spans_difference d = {.n = {n[0], n[1]}, .shift = NAN, .low = NAN, .high = NAN, .tail = NAN, .p = 1};
    double *ns[2];
    for (int side = 0; side < 2; side++) {
        ns[side] = numbers_of(v[side], n[side]);
        d.p50[side] = n[side] ? stat_quantile(ns[side], n[side], 0.5) : NAN;
        d.p95[side] = n[side] ? stat_quantile(ns[side], n[side], 0.95) : NAN;
        d.example[side] = n[side] ? v[side][n[side] / 2].row : UINT32_MAX;
    }
    d.few = n[0] < SPANS_FEW || n[1] < SPANS_FEW;
    if (!d.few) {
        struct stat_dice dice = {1};
        struct stat_shift shift = stat_hodges_lehmann(ns[0], n[0], ns[1], n[1]);
        struct stat_shift tail = stat_bootstrap(ns[0], n[0], ns[1], n[1], 0.95, &dice);
        d.shift = shift.shift;
        d.low = shift.low;
        d.high = shift.high;
        d.tail = tail.shift;
        d.tail_low = tail.low;
        d.tail_high = tail.high;
        d.p = stat_mann_whitney(ns[0], n[0], ns[1], n[1]).p;
    }
    free(ns[0]);
    free(ns[1]);
    return d;
}

static void correct(struct spans_differences *out)
{
    double *p = mem_alloc((out->n + 1) * sizeof *p);
    size_t asked = 0;
    for (size_t i = 0; i < out->n; i++)
        if (!out->v[i].few)
            p[asked++] = out->v[i].p;
    stat_holm(p, asked);
    asked = 0;
    for (size_t i = 0; i < out->n; i++)
        if (!out->v[i].few)
            out->v[i].p = p[asked++];
    free(p);
}

static int by_p(const void *a, const void *b)
{
    const struct spans_difference *x = a, *y = b;
    return order_of(x->few, y->few) ?: order_of(x->p, y->p) ?: order_of(fabs(y->shift), fabs(x->shift))
        ?: order_of(x->name, y->name) ?: order_of(x->service, y->service);
}

struct spans_differences *spans_compare(const struct spans *s, spans_side *side_of, void *arg)
{
    struct spans_differences *out = mem_zalloc(sizeof *out);
    struct spans_kinds kinds;
    uint32_t *rows;
    size_t *begin;
    struct timed *v[2] = {mem_alloc((s->rows.n + 1) * sizeof **v), mem_alloc((s->rows.n + 1) * sizeof **v)};
    spans_kinds_make(s, NULL, &kinds);
    spans_kinds_rows(&kinds, s->rows.n, &rows, &begin);
    out->v = mem_alloc((kinds.v.n + 1) * sizeof *out->v);
    for (size_t k = 0; k < kinds.v.n; k++) {
        size_t n[2] = {0, 0};
        for (size_t i = 0; i < kinds.v.v[k].n; i++) {
            uint32_t row = rows[begin[k] + i];
            int side = s->rows.v[row].life == SPAN_ENDED ? side_of(arg, s->rows.v + row) : -1;
            if (side >= 0)
                v[side][n[side]++] = timed_of(s, row);
        }
        if (!n[0] && !n[1])
            continue;
        for (int side = 0; side < 2; side++)
            if (n[side])
                qsort(v[side], n[side], sizeof **v, by_duration);
        struct spans_difference d = compare_sides((const struct timed *const[2]){v[0], v[1]}, n);
        d.service = kinds.v.v[k].service;
        d.name = kinds.v.v[k].name;
        out->v[out->n++] = d;
    }
    correct(out);
    if (out->n)
        qsort(out->v, out->n, sizeof *out->v, by_p);
    free(v[0]);
    free(v[1]);
    free(rows);
    free(begin);
    spans_kinds_fini(&kinds);
    return out;
}

void spans_differences_free(struct spans_differences *d)
{
    if (!d)
        return;
    free(d->v);
    free(d);
}

/* ---- changes over time ---- */

static double median_of(const struct timed *v, size_t n)
{
    double *numbers = numbers_of(v, n), median = stat_median(numbers, n);
    free(numbers);
    return median;
}

/* Finds the changes of one stage's durations in order of time. */
static void find_changes(
    struct timed *v, size_t n, const struct spans_kind *kind, double alpha, struct spans_changes *out, size_t *cap)
{
    struct stat_change found[CHANGES_MOST];
    double *numbers = numbers_of(v, n);
    size_t changes = stat_changes(numbers, n, SPANS_FEW, alpha, found, CHANGES_MOST);
    for (size_t i = 0; i < changes; i++) {
        size_t from = i ? found[i - 1].at : 0, at = found[i].at, to = i + 1 < changes ? found[i + 1].at : n;
        if (out->n == *cap)
            out->v = mem_grow(out->v, cap, out->n + 1, sizeof *out->v);
        out->v[out->n++] = (struct spans_change){.service = kind->service,
            .name = kind->name,
            .at_ns = v[at].begin,
            .n = {at - from, to - at},
            .p50 = {median_of(v + from, at - from), median_of(v + at, to - at)},
            .p = found[i].p,
            .example = {v[at - 1].row, v[at].row}};
    }
    free(numbers);
}

static int by_time(const void *a, const void *b)
{
    const struct spans_change *x = a, *y = b;
    return order_of(x->at_ns, y->at_ns) ?: order_of(x->name, y->name) ?: order_of(x->service, y->service);
}

struct spans_changes *spans_changes(const struct spans *s)
{
    struct spans_changes *out = mem_zalloc(sizeof *out);
    struct spans_kinds kinds;
    uint32_t *rows;
    size_t *begin, cap = 0;
    struct timed *v = mem_alloc((s->rows.n + 1) * sizeof *v);
    spans_kinds_make(s, NULL, &kinds);
    spans_kinds_rows(&kinds, s->rows.n, &rows, &begin);
    for (size_t k = 0; k < kinds.v.n; k++)
        ++*(kinds.v.v[k].n < 2 * SPANS_FEW ? &out->few : &out->stages);
    for (size_t k = 0; k < kinds.v.n; k++) {
        size_t n = 0;
        for (size_t i = 0; i < kinds.v.v[k].n; i++)
            if (s->rows.v[rows[begin[k] + i]].life == SPAN_ENDED)
                v[n++] = timed_of(s, rows[begin[k] + i]);
        if (n < 2 * SPANS_FEW)
            continue;
        qsort(v, n, sizeof *v, by_begin);
        find_changes(v, n, kinds.v.v + k, ALPHA / (double)out->stages, out, &cap);
    }
    if (out->n)
        qsort(out->v, out->n, sizeof *out->v, by_time);
    free(v);
    free(rows);
    free(begin);
    spans_kinds_fini(&kinds);
    return out;
}

void spans_changes_free(struct spans_changes *c)
{
    if (!c)
        return;
    free(c->v);
    free(c);
}
