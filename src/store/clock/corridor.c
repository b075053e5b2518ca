/* SPDX-License-Identifier: MIT */
#include "clock/corridor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/search.h"

enum { CHAIN_POINTS = 1024, WINDOW_MESSAGES = 24, MAX_WINDOWS = 8 };

/* Number of points with x at or before `x`. */
static size_t points_until(const struct point *v, size_t n, int64_t x)
{
    return search_first(i, 0, n, v[i].x > x);
}

/* d of the ray from p at x, times 2^62 */
static i128 ray(struct point p, int64_t slope, int64_t x)
{
    return p.d * Q62 + (i128)slope * (x - p.x);
}

static i128 chord(struct point p, struct point q, int64_t x, i128 (*divide)(i128, i128))
{
    return p.d + divide((i128)(q.d - p.d) * (x - p.x), q.x - p.x);
}

/* Greatest and least d at x, rounded outwards. |x| <= 2^59. O(log n) */
static int64_t corridor_top(const struct corridor *c, int64_t x)
{
    size_t k = points_until(c->top, c->ntop, x);
    if (k == 0)
        return sat64(ceil_div(ray(c->top[0], c->low, x), Q62));
    if (k == c->ntop)
        return sat64(ceil_div(ray(c->top[k - 1], c->high, x), Q62));
    if (!c->curved)
        return sat64(chord(c->top[k - 1], c->top[k], x, ceil_div));
    i128 left = ray(c->top[k - 1], c->high, x), right = ray(c->top[k], c->low, x);
    return sat64(ceil_div(left < right ? left : right, Q62));
}

static int64_t corridor_bottom(const struct corridor *c, int64_t x)
{
    size_t k = points_until(c->bottom, c->nbottom, x);
    if (k == 0)
        return sat64(floor_div(ray(c->bottom[0], c->high, x), Q62));
    if (k == c->nbottom)
        return sat64(floor_div(ray(c->bottom[k - 1], c->low, x), Q62));
    if (!c->curved)
        return sat64(chord(c->bottom[k - 1], c->bottom[k], x, floor_div));
    i128 left = ray(c->bottom[k - 1], c->low, x), right = ray(c->bottom[k], c->high, x);
    return sat64(floor_div(left > right ? left : right, Q62));
}

/* Range of the corridors valid at x: from *first to *last. */
static void course_at(const struct course *c, int64_t x, size_t *first, size_t *last)
{
    size_t k = 0;
    while (k + 1 < c->n && c->steps[k].end < x)
        k++;
    *first = *last = k;
    while (*last + 1 < c->n && c->steps[*last].begin <= x)
        ++*last;
}

int64_t clock_course_top(const struct course *c, int64_t x)
{
    size_t first, last;
    course_at(c, x, &first, &last);
    int64_t d = corridor_top(&c->v[first], x);
    for (size_t i = first + 1; i <= last; i++) {
        int64_t other = corridor_top(&c->v[i], x);
        d = other > d ? other : d;
    }
    return d;
}

int64_t clock_course_bottom(const struct course *c, int64_t x)
{
    size_t first, last;
    course_at(c, x, &first, &last);
    int64_t d = corridor_bottom(&c->v[first], x);
    for (size_t i = first + 1; i <= last; i++) {
        int64_t other = corridor_bottom(&c->v[i], x);
        d = other < d ? other : d;
    }
    return d;
}

void clock_course_free(struct course *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->v[i].top);
        free(c->v[i].bottom);
    }
    free(c->v);
    free(c->steps);
    *c = (struct course){0};
}

/* Part [from, to] of a half hull, reduced: a chord is outside of the corridor's true bound, so dropping points only
 * widens it. */
static struct point *chain(const struct point *v, size_t from, size_t to, size_t *n)
{
    return clock_hull_thin(v + from, to - from + 1, CHAIN_POINTS, n);
}

static void corridor_straight(struct corridor *c, const struct point *sent, size_t ns, const struct point *received,
    size_t nr, int64_t low, int64_t high)
{
    size_t top_to = clock_hull_touch_lower(sent, ns, high), bottom_to = clock_hull_touch_upper(received, nr, low);
    *c = (struct corridor){.low = low, .high = high};
    c->top = chain(sent, clock_hull_touch_lower(sent, ns, low), top_to, &c->ntop);
    c->bottom = chain(received, clock_hull_touch_upper(received, nr, high), bottom_to, &c->nbottom);
}

/* Points whose cones are not inside another's; `up` +1 for sent points (cones open upwards). Of these, only the
 * neighbours of an instant bound it. */
static struct point *cones(const struct point *v, size_t n, int64_t low, int64_t high, int up, size_t *out_n)
{
    struct point *out = mem_alloc(n * sizeof *out);
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (k &&
            (up > 0 ? v[i].d * Q62 >= ray(out[k - 1], high, v[i].x) : v[i].d * Q62 <= ray(out[k - 1], low, v[i].x)))
            continue;
        while (k &&
            (up > 0 ? out[k - 1].d * Q62 >= ray(v[i], low, out[k - 1].x)
                    : out[k - 1].d * Q62 <= ray(v[i], high, out[k - 1].x)))
            k--;
        out[k++] = v[i];
    }
    *out_n = k;
    return out;
}

static void corridor_curved(struct corridor *c, const struct point *sent, size_t ns, const struct point *received,
    size_t nr, int64_t low, int64_t high)
{
    *c = (struct corridor){.low = low, .high = high, .curved = true};
    c->top = cones(sent, ns, low, high, 1, &c->ntop);
    c->bottom = cones(received, nr, low, high, -1, &c->nbottom);
}

enum fit { FIT_NONE, FIT_LINE, FIT_CURVE, FIT_STEPS };

/* Fits a line between the half hulls, within the prior if possible, else (if messages bound it on both sides) within
 * the sane limits. */
static enum fit fit_line(const struct point *sent, size_t ns, const struct point *received, size_t nr,
    const struct course_limits *l, struct corridor *out, bool *against_prior)
{
    struct hull_bound flattest, steepest;
    clock_hull_slopes(sent, ns, received, nr, &flattest, &steepest);
    int64_t low = flattest.exists ? slope_floor(flattest.late.d - flattest.early.d, flattest.late.x - flattest.early.x)
                                  : -CLOCK_SLOPE_LIMIT;
    int64_t high = steepest.exists ? slope_ceil(steepest.late.d - steepest.early.d, steepest.late.x - steepest.early.x)
                                   : CLOCK_SLOPE_LIMIT;
    bool bounded = flattest.exists && steepest.exists;
    if (l->prior && low <= l->high && high >= l->low) {
        low = low > l->low ? low : l->low;
        high = high < l->high ? high : l->high;
    } else if (bounded && low <= l->sane_high && high >= l->sane_low) {
        *against_prior = l->prior;
        if (l->prior) {
            low = low > l->sane_low ? low : l->sane_low;
            high = high < l->sane_high ? high : l->sane_high;
        }
    } else {
        return FIT_NONE;
    }
    corridor_straight(out, sent, ns, received, nr, low, high);
    return FIT_LINE;
}

/* Width of the prior's corridor at its narrowest: about the least sum of both delays. */
static long double least_gap(
    const struct point *sent, size_t ns, const struct point *received, size_t nr, const struct course_limits *l)
{
    struct corridor c;
    long double gap = INFINITY;
    corridor_curved(&c, sent, ns, received, nr, l->low, l->high);
    for (size_t i = 0; i < c.ntop; i++)
        gap = fminl(gap, (long double)c.top[i].d - (long double)corridor_bottom(&c, c.top[i].x));
    for (size_t i = 0; i < c.nbottom; i++)
        gap = fminl(gap, (long double)corridor_top(&c, c.bottom[i].x) - (long double)c.bottom[i].d);
    free(c.top);
    free(c.bottom);
    return fmaxl(gap, 0);
}

/* Vertical width of the widest strip between the half hulls with a slope of [low, high]: the corridor at its
 * narrowest. */
static long double strip_width(
    const struct point *sent, size_t ns, const struct point *received, size_t nr, int64_t low, int64_t high)
{
    long double best = -INFINITY;
    /* The width is a concave function of the slope: the touching points show on which side its maximum is. */
    for (int i = 0; i < 64 && low <= high; i++) {
        int64_t mid = (int64_t)(((i128)low + high) / 2);
        struct point s = sent[clock_hull_touch_lower(sent, ns, mid)],
                     r = received[clock_hull_touch_upper(received, nr, mid)];
        best = fmaxl(best, (long double)(s.d - r.d) - slope_value(mid) * (long double)(s.x - r.x));
        if (s.x > r.x)
            high = mid - 1;
        else
            low = mid + 1;
    }
    return best;
}

static long double window_width(
    const struct point *sent, size_t ns, const struct point *received, size_t nr, int64_t low, int64_t high)
{
    struct point *s = mem_alloc((ns + 1) * sizeof *s), *r = mem_alloc((nr + 1) * sizeof *r);
    size_t hs = clock_hull_lower(sent, ns, s), hr = clock_hull_upper(received, nr, r);
    long double width = hs && hr ? strip_width(s, hs, r, hr, low, high) : INFINITY;
    free(s);
    free(r);
    return width;
}

static double stands_for(size_t n, double each)
{
    return floor((double)n * each + 0.5);
}

/* Returns whether a line is squeezed: it just fits through a bent clock, so over the whole trace its corridor is
 * narrower than the delays of any short part allow. A true line has about the same width in the best part as in the
 * whole. Requires enough messages. Uses only messages on no other's cone, so that all others may be missing. */
static bool squeezed(
    const struct point *sent, size_t ns, const struct point *received, size_t nr, const struct course_limits *l)
{
    double parts = fmin(stands_for(ns, l->sent_each), stands_for(nr, l->received_each)) / WINDOW_MESSAGES;
    size_t windows = parts < MAX_WINDOWS ? (size_t)parts : MAX_WINDOWS;
    struct corridor c;
    long double least = INFINITY;
    if (windows < 2)
        return false;
    corridor_curved(&c, sent, ns, received, nr, l->low, l->high);
    size_t s0 = 0, r0 = 0, fewer = c.ntop < c.nbottom ? c.ntop : c.nbottom;
    const struct point *by = c.ntop < c.nbottom ? c.top : c.bottom;
    windows = windows < fewer ? windows : fewer;
    for (size_t k = 1; k <= windows; k++) {
        int64_t end = k < windows ? by[k * fewer / windows].x : INT64_MAX;
        size_t s1 = points_until(c.top, c.ntop, end), r1 = points_until(c.bottom, c.nbottom, end);
        least = fminl(least, window_width(c.top + s0, s1 - s0, c.bottom + r0, r1 - r0, l->low, l->high));
        s0 = s1;
        r0 = r1;
    }
    long double whole = window_width(c.top, c.ntop, c.bottom, c.nbottom, l->low, l->high);
    free(c.top);
    free(c.bottom);
    return whole < 0.7L * least;
}

/* Fits a curve if no straight line fits: its slope varies between the slopes that messages require. Between messages it
 * may have varied more, so the range gets a margin: one and a half times its width and eight times what the delays can
 * hide over the whole. */
static enum fit fit_curve(const struct point *sent, size_t ns, const struct point *received, size_t nr,
    const struct course_limits *l, struct corridor *out, bool *against_prior)
{
    long double least, greatest;
    if (!clock_hull_slope_range(sent, ns, received, nr, &least, &greatest))
        return FIT_STEPS;
    long double low = slope_value(l->low), high = slope_value(l->high), forced_low = fminl(least, greatest),
                forced_high = fmaxl(least, greatest);
    if (forced_low < low || forced_high > high) {
        /* Steered clocks leave the usual range, but not by far. */
        low = fmaxl(5 * low, slope_value(l->sane_low));
        high = fminl(5 * high, slope_value(l->sane_high));
        if (forced_low < low || forced_high > high)
            return FIT_STEPS;
        *against_prior = true;
    }
    int64_t first = sent[0].x < received[0].x ? sent[0].x : received[0].x;
    int64_t last = sent[ns - 1].x > received[nr - 1].x ? sent[ns - 1].x : received[nr - 1].x;
    long double margin = 1.5L * (forced_high - forced_low) +
        8 * least_gap(sent, ns, received, nr, l) / (long double)(last - first);
    corridor_curved(out, sent, ns, received, nr, slope_from(fmaxl(low, forced_low - margin)),
        slope_from(fminl(high, forced_high + margin)));
    return FIT_CURVE;
}

static enum fit fit_one(const struct point *sent, size_t ns, const struct point *received, size_t nr,
    const struct course_limits *l, struct corridor *out, bool *against_prior)
{
    struct point *s = mem_alloc((ns + 1) * sizeof *s), *r = mem_alloc((nr + 1) * sizeof *r);
    size_t hs = clock_hull_lower(sent, ns, s), hr = clock_hull_upper(received, nr, r);
    enum fit fit;
    bool straight = clock_hull_fits(s, hs, r, hr);
    if (straight)
        fit = fit_line(s, hs, r, hr, l, out, against_prior);
    else
        fit = l->prior ? fit_curve(sent, ns, received, nr, l, out, against_prior) : FIT_NONE;
    if (straight && fit == FIT_LINE && l->prior && !*against_prior && squeezed(sent, ns, received, nr, l)) {
        struct corridor line = *out;
        if (fit_curve(sent, ns, received, nr, l, out, against_prior) == FIT_CURVE) {
            free(line.top);
            free(line.bottom);
        } else {
            *out = line;
        }
    }
    free(s);
    free(r);
    return fit;
}

static bool fit_steps(const struct point *sent, size_t ns, const struct point *received, size_t nr,
    const struct course_limits *l, struct course *out)
{
    struct steps_parts parts;
    double all = stands_for(ns, l->sent_each) + stands_for(nr, l->received_each);
    if (!clock_steps_split(sent, ns, received, nr, l->low, l->high, all, &parts))
        return false;
    out->n = parts.n;
    out->outliers = parts.outliers;
    out->v = mem_zalloc(parts.n * sizeof *out->v);
    out->steps = mem_alloc(parts.n * sizeof *out->steps);
    memcpy(out->steps, parts.steps, (parts.n - 1) * sizeof *out->steps);
    for (size_t i = 0; i < parts.n; i++) {
        struct steps_part *p = &parts.v[i];
        enum fit fit = fit_one(p->sent, p->ns, p->received, p->nr, l, &out->v[i], &out->against_prior);
        if (fit != FIT_LINE && fit != FIT_CURVE)
            corridor_curved(&out->v[i], p->sent, p->ns, p->received, p->nr, l->low, l->high);
    }
    clock_steps_free(&parts);
    return true;
}

bool clock_course_fit(const struct point *sent, size_t ns, const struct point *received, size_t nr,
    const struct course_limits *l, struct course *out)
{
    *out = (struct course){0};
    if (!ns || !nr)
        return false;
    struct corridor one;
    enum fit fit = fit_one(sent, ns, received, nr, l, &one, &out->against_prior);
    if (fit == FIT_STEPS)
        return fit_steps(sent, ns, received, nr, l, out);
    if (fit == FIT_NONE)
        return false;
    out->v = mem_alloc(sizeof *out->v);
    out->v[0] = one;
    out->n = 1;
    return true;
}
