/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "clock/curve_fit.h"

enum { GRID = 256 };

/* Farthest point of a curved corridor's bound between two neighbouring cones: where their sides meet. */
static int64_t meeting(struct point p, struct point q, int64_t leaving, int64_t entering)
{
    i128 height = (i128)(q.d - p.d) * Q62 - (i128)entering * (q.x - p.x);
    return leaving == entering ? p.x : clamp64(sat64(p.x + floor_div(height, (i128)leaving - entering)), p.x, q.x);
}

static void add_bends(struct times *v, const struct corridor *c, int64_t begin, int64_t end)
{
    for (size_t i = 0; i < c->ntop; i++)
        clock_times_add(v, c->top[i].x, begin, end);
    for (size_t i = 0; i < c->nbottom; i++)
        clock_times_add(v, c->bottom[i].x, begin, end);
    if (!c->curved)
        return;
    for (size_t i = 0; i + 1 < c->ntop; i++)
        for (int k = 0; k < 2; k++)
            clock_times_add(v, meeting(c->top[i], c->top[i + 1], c->high, c->low) + k, begin, end);
    for (size_t i = 0; i + 1 < c->nbottom; i++) { /* upside down */
        struct point p = {c->bottom[i].x, -c->bottom[i].d}, q = {c->bottom[i + 1].x, -c->bottom[i + 1].d};
        for (int k = 0; k < 2; k++)
            clock_times_add(v, meeting(p, q, -c->low, -c->high) + k, begin, end);
    }
}

static void add_steps(struct times *v, const struct course *c, int64_t begin, int64_t end)
{
    for (size_t i = 0; i + 1 < c->n; i++) {
        clock_times_add(v, c->steps[i].begin, begin, end);
        clock_times_add(v, c->steps[i].end, begin, end);
    }
}

/* Times at which the course's bounds may bend: between these both are straight (or bent inwards). */
static struct times course_bends(const struct course *c, int64_t begin, int64_t end)
{
    struct times v = {0};
    vec_push(&v, begin);
    vec_push(&v, end);
    for (size_t i = 0; i < c->n; i++)
        add_bends(&v, &c->v[i], begin, end);
    add_steps(&v, c, begin, end);
    clock_times_sort(&v);
    return v;
}

/* Times of cuts: for a straight corridor its bends (few), for others a grid. */
static struct times course_cuts(const struct course *c, const struct times *bends, int64_t begin, int64_t end)
{
    struct times v = {0};
    if (c->n == 1 && !c->v[0].curved) {
        for (size_t i = 0; i < bends->n; i++)
            vec_push(&v, bends->v[i]);
        return v;
    }
    for (int i = 0; i <= GRID; i++)
        vec_push(&v, (int64_t)(begin + (i128)(end - begin) * i / GRID));
    add_steps(&v, c, begin, end);
    clock_times_sort(&v);
    return v;
}

/* Knots in the middle of the course. Cuts that almost coincide give one knot: rounding to 1 ns would look like
 * drift. */
static void middle_knots(const struct course *c, const struct pair_frame *f, const struct times *at, struct curve *out)
{
    struct curve_node *node = mem_alloc(at->n * sizeof *node);
    bool *needed = mem_alloc(at->n * sizeof *needed);
    int64_t end = at->v[at->n - 1], apart = (end - at->v[0]) / 4096;
    size_t n = 0;
    for (size_t i = 0; i < at->n; i++) {
        int64_t x = at->v[i];
        if (n && x != end && (x - node[n - 1].t < apart || end - x < apart))
            continue;
        int64_t top = clock_course_top(c, x), bottom = clock_course_bottom(c, x),
                half = (int64_t)(((i128)top - bottom) / 2);
        int64_t d = (int64_t)floor_div((i128)top + bottom, 2);
        if (n) { /* across a step the curve climbs or waits, but never goes back */
            int64_t run = x - node[n - 1].t;
            d = clamp64(d, node[n - 1].d - run / 2, node[n - 1].d + run);
        }
        node[n++] = (struct curve_node){x, d, half / 32 + 2};
    }
    clock_curve_thin(node, n, needed);
    for (size_t i = 0; i < n; i++)
        if (needed[i])
            out->knots[out->nknots++] = (struct knot){f->x0 + node[i].t, f->y0 + node[i].t + node[i].d};
    free(node);
    free(needed);
}

static struct knot knot_on(const struct straight *s, const struct pair_frame *f, int64_t x)
{
    return (struct knot){f->x0 + x, f->y0 + x + (int64_t)floorl(s->d + s->slope * ((long double)x - s->x) + 0.5L)};
}

/* Distance from the curve to the farther bound at relative time x. */
static int64_t error_at(const struct course *c, const struct pair_frame *f, const struct curve *curve, int64_t x)
{
    i128 d = (i128)clock_curve_at(curve, f->x0 + x) - f->y0 - x, above = clock_course_top(c, x) - d,
         below = d - clock_course_bottom(c, x);
    i128 far = above > below ? above : below;
    return far < 0 ? 0 : sat64(far + 1);
}

/* Adds the crossings of the distances to the two bounds, where the error is least and bends. Without a cut there the
 * line between cuts would hide how narrow the corridor is. */
static void add_crossings(
    const struct course *c, const struct pair_frame *f, const struct curve *curve, struct times *at)
{
    size_t n = at->n;
    i128 before = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t x = at->v[i];
        i128 d = (i128)clock_curve_at(curve, f->x0 + x) - f->y0 - x,
             lean = (i128)clock_course_top(c, x) + clock_course_bottom(c, x) - 2 * d;
        if (i && (lean > 0) != (before > 0) && lean != before) {
            i128 run = x - at->v[i - 1], part = before > 0 ? before : -before,
                 all = lean > before ? lean - before : before - lean;
            clock_times_add(at, (int64_t)(at->v[i - 1] + run * part / all), at->v[i - 1], x);
        }
        before = lean;
    }
    clock_times_sort(at);
}

/* Sets errors at the cuts, so that the line between two bounds the error at every bend between them. */
static void cut_errors(const struct course *c, const struct pair_frame *f, const struct times *at,
    const struct times *bends, struct curve *out)
{
    size_t k = 0;
    out->ncuts = at->n;
    out->cuts = mem_alloc(at->n * sizeof *out->cuts);
    for (size_t i = 0; i < at->n; i++)
        out->cuts[i] = (struct cut){f->x0 + at->v[i], error_at(c, f, out, at->v[i])};
    int64_t carried = 0; /* worst error of the interval before, at its bends */
    for (size_t i = 0; i + 1 < at->n; i++) {
        int64_t worst = 0, here = out->cuts[i].error, next = out->cuts[i + 1].error;
        bool over = false;
        for (; k < bends->n && bends->v[k] < at->v[i + 1]; k++) {
            if (bends->v[k] <= at->v[i])
                continue;
            int64_t e = error_at(c, f, out, bends->v[k]);
            i128 line = here + (i128)(next - here) * (bends->v[k] - at->v[i]) / (at->v[i + 1] - at->v[i]);
            over = over || e > line;
            worst = e > worst ? e : worst;
        }
        worst = over ? worst : 0;
        int64_t raise = worst > carried ? worst : carried;
        out->cuts[i].error = raise > here ? raise : here;
        carried = worst;
    }
    if (carried > out->cuts[at->n - 1].error)
        out->cuts[at->n - 1].error = carried;
}

static void thin_cuts(struct curve *c)
{
    int64_t *slack = mem_alloc(c->ncuts * sizeof *slack);
    for (size_t i = 0; i < c->ncuts; i++)
        slack[i] = c->cuts[i].error / 32 + 2;
    clock_curve_thin_cuts(c, slack);
    free(slack);
}

/* Growth of the error beyond the ends: the true slope may be any of the range, the curve's is fixed. */
static int64_t growth_of(const struct course *c, const struct curve *curve)
{
    int64_t growth = 0;
    for (int k = 0; k < 2; k++) {
        const struct corridor *r = &c->v[k ? c->n - 1 : 0];
        struct knot knot;
        int64_t slope = clock_curve_slope(curve, k ? INT64_MAX : INT64_MIN, &knot);
        i128 over = (i128)r->high - slope, under = (i128)slope - r->low, more = over > under ? over : under;
        if (more > growth)
            growth = more > CLOCK_SLOPE_LIMIT ? CLOCK_SLOPE_LIMIT : (int64_t)more;
    }
    return growth;
}

void clock_curve_of_course(const struct course *c, const struct pair_frame *f, int64_t begin, int64_t end,
    const struct straight *line, struct curve *out)
{
    struct times bends = course_bends(c, begin, end), at = course_cuts(c, &bends, begin, end);
    *out = (struct curve){.knots = mem_alloc((at.n + 2) * sizeof *out->knots)};
    if (line) {
        out->knots[out->nknots++] = knot_on(line, f, begin);
        out->knots[out->nknots++] = knot_on(line, f, end);
    } else {
        middle_knots(c, f, &at, out);
    }
    add_crossings(c, f, out, &at);
    cut_errors(c, f, &at, &bends, out);
    thin_cuts(out);
    out->growth = growth_of(c, out);
    int64_t low = c->v[0].low, high = c->v[0].high;
    for (size_t i = 1; i < c->n; i++) {
        low = c->v[i].low < low ? c->v[i].low : low;
        high = c->v[i].high > high ? c->v[i].high : high;
    }
    out->slowest = fmaxl(1 + slope_value(low), 0.125L);
    out->fastest = 1 + slope_value(high);
    vec_free(&bends);
    vec_free(&at);
}

void clock_curve_of_line(const struct straight *s, const struct pair_frame *f, int64_t begin, int64_t end,
    int64_t error, int64_t growth, struct curve *out)
{
    *out = (struct curve){.knots = mem_alloc(2 * sizeof *out->knots),
        .cuts = mem_alloc(2 * sizeof *out->cuts),
        .nknots = 2,
        .ncuts = 2,
        .growth = growth};
    out->knots[0] = knot_on(s, f, begin);
    out->knots[1] = knot_on(s, f, end);
    out->cuts[0] = (struct cut){f->x0 + begin, error};
    out->cuts[1] = (struct cut){f->x0 + end, error};
    out->slowest = out->fastest = 1 + s->slope;
}
