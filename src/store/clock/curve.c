/* SPDX-License-Identifier: MIT */
#include "clock/curve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "base/search.h"

/* Index of the segment at t: between knots i and i + 1. */
static size_t segment_at(const struct curve *c, int64_t t)
{
    return search_first(i, 1, c->nknots - 1, c->knots[i].t > t) - 1;
}

/* Rounded up, so that rounding the product down hits the next knot exactly. */
static int64_t segment_slope(const struct knot *k)
{
    i128 run = (i128)k[1].t - k[0].t;
    return slope_ceil((i128)k[1].y - k[0].y - run, run);
}

int64_t clock_curve_slope(const struct curve *c, int64_t t, struct knot *knot)
{
    const struct knot *k = &c->knots[segment_at(c, t)];
    *knot = *k;
    return segment_slope(k);
}

int64_t clock_curve_at(const struct curve *c, int64_t t)
{
    const struct knot *k = &c->knots[segment_at(c, t)];
    i128 run = (i128)t - k->t;
    return sat64(k->y + run + slope_times(segment_slope(k), run));
}

/* Time t at which the curve shows y, within 1 ns. */
static int64_t curve_back(const struct curve *c, int64_t y)
{
    const struct knot *k = &c->knots[search_first(i, 1, c->nknots - 1, c->knots[i].y > y) - 1];
    return sat64(k[0].t + floor_div(((i128)y - k[0].y) * (k[1].t - k[0].t), k[1].y - k[0].y));
}

int64_t clock_curve_error(const struct curve *c, int64_t t)
{
    const struct cut *v = c->cuts, *last = &c->cuts[c->ncuts - 1];
    if (t < v->t)
        return sat64(v->error - slope_times(-c->growth, (i128)v->t - t));
    if (t >= last->t)
        return sat64(last->error - slope_times(-c->growth, (i128)t - last->t));
    v += search_first(i, 1, c->ncuts - 1, v[i].t > t) - 1;
    return sat64(v[0].error + ceil_div((i128)(v[1].error - v[0].error) * ((i128)t - v[0].t), (i128)v[1].t - v[0].t));
}

/* Greatest error within `reach` of t. */
static int64_t curve_error_around(const struct curve *c, int64_t t, int64_t reach)
{
    int64_t begin = sat64((i128)t - reach), end = sat64((i128)t + reach), a = clock_curve_error(c, begin),
            b = clock_curve_error(c, end);
    int64_t worst = a > b ? a : b;
    for (size_t i = search_first(k, 0, c->ncuts, c->cuts[k].t > begin); i < c->ncuts && c->cuts[i].t < end; i++)
        worst = c->cuts[i].error > worst ? c->cuts[i].error : worst;
    return worst;
}

long double clock_curve_mean_error(const struct curve *c)
{
    long double sum = 0;
    for (size_t i = 0; i + 1 < c->ncuts; i++)
        sum += ((long double)c->cuts[i].error + (long double)c->cuts[i + 1].error) / 2 *
            ((long double)c->cuts[i + 1].t - (long double)c->cuts[i].t);
    return sum / ((long double)c->cuts[c->ncuts - 1].t - (long double)c->cuts[0].t);
}

static void curve_alloc(struct curve *c, size_t nknots, size_t ncuts)
{
    *c = (struct curve){.knots = mem_alloc(nknots * sizeof *c->knots),
        .cuts = mem_alloc(ncuts * sizeof *c->cuts),
        .nknots = nknots,
        .ncuts = ncuts};
}

void clock_curve_free(struct curve *c)
{
    free(c->knots);
    free(c->cuts);
    *c = (struct curve){0};
}

void clock_curve_copy(const struct curve *c, struct curve *out)
{
    curve_alloc(out, c->nknots, c->ncuts);
    memcpy(out->knots, c->knots, c->nknots * sizeof *c->knots);
    memcpy(out->cuts, c->cuts, c->ncuts * sizeof *c->cuts);
    out->growth = c->growth;
    out->slowest = c->slowest;
    out->fastest = c->fastest;
}

void clock_curve_identity(struct curve *out, int64_t begin, int64_t end)
{
    if (end <= begin)
        end = begin + 1;
    curve_alloc(out, 2, 2);
    out->knots[0] = (struct knot){begin, begin};
    out->knots[1] = (struct knot){begin + 1, begin + 1}; /* close, so that the difference of knots never overflows */
    out->cuts[0] = (struct cut){begin, 0};
    out->cuts[1] = (struct cut){end, 0};
    out->slowest = out->fastest = 1;
}

void clock_curve_inverse(const struct curve *c, struct curve *out)
{
    curve_alloc(out, c->nknots, c->ncuts);
    out->nknots = out->ncuts = 0;
    for (size_t i = 0; i < c->nknots; i++)
        if (!i || c->knots[i].y > out->knots[out->nknots - 1].t)
            out->knots[out->nknots++] = (struct knot){c->knots[i].y, c->knots[i].t};
    for (size_t i = 0; i < c->ncuts; i++) {
        struct cut cut = {
            clock_curve_at(c, c->cuts[i].t), sat64((i128)ceill((long double)c->cuts[i].error / c->slowest) + 1)};
        if (out->ncuts && cut.t == out->cuts[out->ncuts - 1].t)
            out->cuts[out->ncuts - 1].error = cut.error > out->cuts[out->ncuts - 1].error
                ? cut.error
                : out->cuts[out->ncuts - 1].error;
        else
            out->cuts[out->ncuts++] = cut;
    }
    out->growth = slope_from(slope_value(c->growth) / c->slowest);
    out->slowest = 1 / c->fastest;
    out->fastest = 1 / c->slowest;
}

static int compare_times(const void *a, const void *b)
{
    return order_of(*(const int64_t *)a, *(const int64_t *)b);
}

void clock_times_sort(struct times *v)
{
    size_t k = 0;
    qsort(v->v, v->n, sizeof *v->v, compare_times);
    for (size_t i = 0; i < v->n; i++)
        if (!k || v->v[i] != v->v[k - 1])
            v->v[k++] = v->v[i];
    v->n = k;
}

void clock_times_add(struct times *v, int64_t t, int64_t begin, int64_t end)
{
    if (t > begin && t < end)
        vec_push(v, t);
}

/* Times, on the first clock, at which the composition, or its error, may bend. */
static struct times compose_times(const struct curve *first, const struct curve *second)
{
    struct times t = {0};
    int64_t begin = first->cuts[0].t, end = first->cuts[first->ncuts - 1].t;
    for (size_t i = 0; i < first->ncuts; i++)
        vec_push(&t, first->cuts[i].t);
    for (size_t i = 0; i < second->ncuts; i++)
        clock_times_add(&t, curve_back(first, second->cuts[i].t), begin, end);
    clock_times_sort(&t);
    return t;
}

void clock_curve_knots(struct curve *out, const struct curve_node *node, const bool *needed, size_t n)
{
    out->nknots = 0;
    for (size_t i = 0; i < n; i++)
        if (needed[i] && (!out->nknots || node[i].t + node[i].d > out->knots[out->nknots - 1].y))
            out->knots[out->nknots++] = (struct knot){node[i].t, node[i].t + node[i].d};
}

void clock_curve_compose(const struct curve *first, const struct curve *second, struct curve *out)
{
    struct times t = compose_times(first, second);
    struct curve_node *node = mem_alloc(t.n * sizeof *node);
    bool *needed = mem_alloc(t.n * sizeof *needed);
    long double steepest = 0;
    for (size_t i = 0; i + 1 < second->nknots; i++)
        steepest = fmaxl(steepest, 1 + slope_value(segment_slope(&second->knots[i])));
    curve_alloc(out, t.n, t.n);
    for (size_t i = 0; i < t.n; i++) {
        int64_t mid = clock_curve_at(first, t.v[i]), own = clock_curve_error(first, t.v[i]);
        i128 error = (i128)ceill((long double)own * steepest) + curve_error_around(second, mid, own) + 2;
        node[i] = (struct curve_node){t.v[i], sat64((i128)clock_curve_at(second, mid) - t.v[i]), own / 32 + 2};
        out->cuts[i] = (struct cut){t.v[i], sat64(error)};
    }
    clock_curve_thin(node, t.n, needed);
    clock_curve_knots(out, node, needed, t.n);
    for (size_t i = 0; i < t.n; i++) { /* changes by thinning count as error */
        i128 moved = (i128)clock_curve_at(out, t.v[i]) - t.v[i] - node[i].d;
        out->cuts[i].error = sat64(out->cuts[i].error + (moved < 0 ? -moved : moved));
        t.v[i] = node[i].tolerance;
    }
    out->growth = slope_from(
        slope_value(first->growth) * steepest + slope_value(second->growth) * fmaxl(1, first->fastest));
    out->slowest = first->slowest * second->slowest;
    out->fastest = first->fastest * second->fastest;
    clock_curve_thin_cuts(out, t.v);
    free(node);
    free(needed);
    vec_free(&t);
}

static long double off_line(const struct curve_node *a, const struct curve_node *b, const struct curve_node *p)
{
    return fabsl((long double)(p->d - a->d) -
        (long double)(b->d - a->d) * ((long double)(p->t - a->t) / (long double)(b->t - a->t)));
}

void clock_curve_thin(const struct curve_node *v, size_t n, bool *needed)
{
    struct range {
        size_t from, to;
    };
    VEC(struct range) todo = {0};
    memset(needed, 0, n * sizeof *needed);
    needed[0] = needed[n - 1] = true;
    vec_push(&todo, ((struct range){0, n - 1}));
    while (todo.n) {
        struct range r = todo.v[--todo.n];
        size_t worst = r.from;
        long double worst_share = 1;
        for (size_t i = r.from + 1; i < r.to; i++) {
            long double share = off_line(&v[r.from], &v[r.to], &v[i]) /
                (long double)(v[i].tolerance > 0 ? v[i].tolerance : 1);
            if (share > worst_share) {
                worst_share = share;
                worst = i;
            }
        }
        if (worst == r.from)
            continue;
        needed[worst] = true;
        vec_push(&todo, ((struct range){r.from, worst}));
        vec_push(&todo, ((struct range){worst, r.to}));
    }
    vec_free(&todo);
}

/* Returns whether the line between cuts a and b bounds the cuts between them closely enough. */
static bool line_bounds(const struct cut *v, const int64_t *slack, size_t a, size_t b)
{
    for (size_t i = a + 1; i < b; i++) {
        i128 line = v[a].error + floor_div((i128)(v[b].error - v[a].error) * (v[i].t - v[a].t), v[b].t - v[a].t);
        if (line < v[i].error || line > (i128)v[i].error + slack[i])
            return false;
    }
    return true;
}

void clock_curve_thin_cuts(struct curve *c, const int64_t *slack)
{
    size_t knot = 0, n = 0;
    struct cut *out = mem_alloc(c->ncuts * sizeof *out);
    for (size_t i = 0; i < c->ncuts;) {
        out[n++] = c->cuts[i];
        if (i + 1 == c->ncuts)
            break;
        while (knot < c->nknots && c->knots[knot].t <= c->cuts[i].t)
            knot++;
        size_t next = i + 1;
        while (next + 1 < c->ncuts && next - i < 64 && !(knot < c->nknots && c->knots[knot].t <= c->cuts[next].t) &&
            line_bounds(c->cuts, slack, i, next + 1))
            next++;
        i = next;
    }
    free(c->cuts);
    c->cuts = out;
    c->ncuts = n;
}
