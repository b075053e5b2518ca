/* SPDX-License-Identifier: MIT */
/* Two paths to the same clock: the true curve is in both corridors, so in their intersection. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "clock/curve.h"

struct both_bounds {
    i128 top[2], bottom[2];
}; /* bounds of both curves, minus t */

static struct both_bounds bounds_at(const struct curve *a, const struct curve *b, int64_t t)
{
    i128 ya = (i128)clock_curve_at(a, t) - t, yb = (i128)clock_curve_at(b, t) - t;
    int64_t ea = clock_curve_error(a, t), eb = clock_curve_error(b, t);
    return (struct both_bounds){{ya + ea, yb + eb}, {ya - ea, yb - eb}};
}

/* Adds the crossing of two straight lines that differ by `from` at t and by `to` at t_end. */
static void add_crossing(struct times *v, int64_t t, int64_t t_end, i128 from, i128 to)
{
    if ((from > 0) == (to > 0) || from == to)
        return;
    i128 part = from < 0 ? -from : from, all = from > to ? from - to : to - from;
    int64_t x = t + (int64_t)((long double)(t_end - t) * ((long double)part / (long double)all));
    for (int64_t k = x - 1; k <= x + 1; k++)
        if (k > t && k < t_end)
            vec_push(v, k);
}

/* Times at which one of the four bounds may bend or two of them cross. */
static struct times bends_of(const struct curve *a, const struct curve *b)
{
    struct times v = {0};
    int64_t begin = a->cuts[0].t, end = a->cuts[a->ncuts - 1].t;
    for (size_t i = 0; i < a->ncuts; i++)
        vec_push(&v, a->cuts[i].t);
    for (size_t i = 0; i < b->ncuts; i++)
        if (b->cuts[i].t > begin && b->cuts[i].t < end)
            vec_push(&v, b->cuts[i].t);
    clock_times_sort(&v);
    size_t n = v.n;
    struct both_bounds before = bounds_at(a, b, v.v[0]);
    for (size_t i = 1; i < n; i++) {
        struct both_bounds now = bounds_at(a, b, v.v[i]);
        add_crossing(&v, v.v[i - 1], v.v[i], before.top[0] - before.top[1], now.top[0] - now.top[1]);
        add_crossing(&v, v.v[i - 1], v.v[i], before.bottom[0] - before.bottom[1], now.bottom[0] - now.bottom[1]);
        before = now;
    }
    clock_times_sort(&v);
    return v;
}

/* Growth beyond the ends, where either curve's bound is valid. */
static int64_t growth_of(const struct curve *a, const struct curve *b, const struct curve *out)
{
    i128 growth = 0;
    for (int end = 0; end < 2; end++) {
        struct knot knot;
        int64_t t = end ? INT64_MAX : INT64_MIN, slope = clock_curve_slope(out, t, &knot);
        i128 least = CLOCK_SLOPE_LIMIT;
        for (int k = 0; k < 2; k++) {
            const struct curve *c = k ? b : a;
            i128 off = (i128)slope - clock_curve_slope(c, t, &knot), rate = c->growth + (off < 0 ? -off : off);
            least = rate < least ? rate : least;
        }
        growth = least > growth ? least : growth;
    }
    return (int64_t)growth;
}

/* Makes knots of the selected nodes, and at every node the error: half of the corridor plus the change by thinning. */
static void build(struct curve *out, const struct curve_node *node, const int64_t *half, size_t n)
{
    bool *needed = mem_alloc(n * sizeof *needed);
    int64_t *slack = mem_alloc(n * sizeof *slack);
    *out = (struct curve){
        .knots = mem_alloc(n * sizeof *out->knots), .cuts = mem_alloc(n * sizeof *out->cuts), .ncuts = n};
    clock_curve_thin(node, n, needed);
    clock_curve_knots(out, node, needed, n);
    for (size_t i = 0; i < n; i++) {
        i128 moved = (i128)clock_curve_at(out, node[i].t) - node[i].t - node[i].d;
        out->cuts[i] = (struct cut){node[i].t, sat64(half[i] + (moved < 0 ? -moved : moved) + 1)};
        slack[i] = node[i].tolerance;
    }
    clock_curve_thin_cuts(out, slack);
    free(needed);
    free(slack);
}

bool clock_curve_intersect(const struct curve *a, const struct curve *b, struct curve *out)
{
    struct times t = bends_of(a, b);
    struct curve_node *node = mem_alloc(t.n * sizeof *node);
    int64_t *half = mem_alloc(t.n * sizeof *half), apart = (t.v[t.n - 1] - t.v[0]) / 65536;
    bool possible = true;
    size_t n = 0;
    for (size_t i = 0; i < t.n && possible; i++) {
        struct both_bounds x = bounds_at(a, b, t.v[i]);
        i128 top = x.top[0] < x.top[1] ? x.top[0] : x.top[1],
             bottom = x.bottom[0] > x.bottom[1] ? x.bottom[0] : x.bottom[1];
        possible = top >= bottom;
        half[n] = sat64(ceil_div(top - bottom, 2));
        /* Nodes that almost coincide get a tolerance, so that rounding does not become knots. */
        bool close = n && i + 1 < t.n && t.v[i] - node[n - 1].t < apart;
        node[n] = (struct curve_node){
            t.v[i], sat64(floor_div(top + bottom, 2)), close ? half[n] / 8 + 2 : half[n] / 32 + 2};
        n++;
    }
    if (possible) {
        build(out, node, half, n);
        out->growth = growth_of(a, b, out);
        out->slowest = fmaxl(a->slowest, b->slowest);
        out->fastest = fmaxl(fminl(a->fastest, b->fastest), out->slowest);
    }
    free(node);
    free(half);
    vec_free(&t);
    return possible;
}
