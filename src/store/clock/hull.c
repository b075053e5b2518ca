/* SPDX-License-Identifier: MIT */
#include "clock/hull.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/order.h"
#include "base/search.h"

enum { COMPROMISE_POINTS = 150 };

static int point_compare(const void *a, const void *b)
{
    const struct point *p = a, *q = b;
    return order_of(p->x, q->x) ?: order_of(p->d, q->d);
}

void clock_hull_sort(struct point *v, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (point_compare(&v[i - 1], &v[i]) > 0) {
            qsort(v, n, sizeof *v, point_compare);
            return;
        }
}

/* Returns whether o -> a -> b turns left (up > 0) or right. */
static bool turns(struct point o, struct point a, struct point b, int up)
{
    i128 turn = point_turn(o, a, b);
    return up > 0 ? turn > 0 : turn < 0;
}

/* Pushes p (to the right of the others, or above/below the last one) on a half hull of n points. up: +1 lower hull, -1
 * upper hull. */
static size_t hull_push(struct point *hull, size_t n, struct point p, int up)
{
    if (n && hull[n - 1].x == p.x) {
        if (up > 0 ? p.d >= hull[n - 1].d : p.d <= hull[n - 1].d)
            return n;
        n--;
    }
    while (n >= 2) {
        if (turns(hull[n - 2], hull[n - 1], p, up))
            break;
        n--;
    }
    hull[n++] = p;
    return n;
}

static size_t half_hull(const struct point *v, size_t n, struct point *out, int up)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        k = hull_push(out, k, v[i], up);
    return k;
}

size_t clock_hull_lower(const struct point *v, size_t n, struct point *out)
{
    return half_hull(v, n, out, 1);
}

size_t clock_hull_upper(const struct point *v, size_t n, struct point *out)
{
    return half_hull(v, n, out, -1);
}

/* Vertex of v[from, n) with the least (up > 0: v is a lower hull) or greatest (v is an upper hull) slope seen from o on
 * its left. The slope falls, then rises along a convex chain (or the reverse), so bisection finds it. */
static size_t tangent_right(struct point o, const struct point *v, size_t from, size_t n, int up)
{
    return search_first(i, from, n - 1, !turns(o, v[i], v[i + 1], -up));
}

/* Returns whether the line early -> late is flatter than the bound's. */
static bool flatter(struct point early, struct point late, const struct hull_bound *b)
{
    return (i128)(late.d - early.d) * (b->late.x - b->early.x) < (i128)(b->late.d - b->early.d) * (late.x - early.x);
}

static bool steeper(struct point early, struct point late, const struct hull_bound *b)
{
    return (i128)(late.d - early.d) * (b->late.x - b->early.x) > (i128)(b->late.d - b->early.d) * (late.x - early.x);
}

void clock_hull_slopes(const struct point *sent, size_t ns, const struct point *received, size_t nr,
    struct hull_bound *flattest, struct hull_bound *steepest)
{
    *flattest = *steepest = (struct hull_bound){0};
    for (size_t i = 0; i < nr; i++) {
        size_t from = search_first(k, 0, ns, sent[k].x > received[i].x);
        if (from == ns)
            continue;
        struct point late = sent[tangent_right(received[i], sent, from, ns, 1)];
        if (!steepest->exists || flatter(received[i], late, steepest))
            *steepest = (struct hull_bound){true, received[i], late};
    }
    for (size_t i = 0; i < ns; i++) {
        size_t from = search_first(k, 0, nr, received[k].x > sent[i].x);
        if (from == nr)
            continue;
        struct point late = received[tangent_right(sent[i], received, from, nr, -1)];
        if (!flattest->exists || steeper(sent[i], late, flattest))
            *flattest = (struct hull_bound){true, sent[i], late};
    }
}

/* Sign of p's height over a chain at p.x; 0 outside its span. */
static int over_chain(const struct point *v, size_t n, struct point p)
{
    size_t i = search_first(k, 0, n, v[k].x >= p.x);
    if (i == n || (i == 0 && v[0].x != p.x))
        return 0;
    if (v[i].x == p.x)
        return p.d > v[i].d ? 1 : p.d < v[i].d ? -1 : 0;
    i128 turn = point_turn(v[i - 1], v[i], p);
    return turn > 0 ? 1 : turn < 0 ? -1 : 0;
}

/* If no line fits, three points show it (Helly): one of a hull on the wrong side of an edge of the other. */
bool clock_hull_fits(const struct point *sent, size_t ns, const struct point *received, size_t nr)
{
    for (size_t i = 0; i < nr; i++)
        if (over_chain(sent, ns, received[i]) > 0)
            return false;
    for (size_t i = 0; i < ns; i++)
        if (over_chain(received, nr, sent[i]) < 0)
            return false;
    return true;
}

/* Returns whether the edge from e[0] to e[1] rises (up > 0: of a lower hull) or falls at least as the slope does. */
static bool passes_slope(const struct point *e, int64_t slope, int up)
{
    i128 rise = (e[1].d - e[0].d) * Q62, line = (i128)slope * (e[1].x - e[0].x);
    return up > 0 ? rise >= line : rise <= line;
}

size_t clock_hull_touch_lower(const struct point *v, size_t n, int64_t slope_q62)
{
    return search_first(i, 0, n - 1, passes_slope(&v[i], slope_q62, 1));
}

size_t clock_hull_touch_upper(const struct point *v, size_t n, int64_t slope_q62)
{
    return search_first(i, 0, n - 1, passes_slope(&v[i], slope_q62, -1));
}

/* Sum of the distances of points on the wrong side of the line: `side` +1 if they belong above it. Stops early beyond
 * `enough`. */
static long double wrong_side(
    const struct hull_line *line, const struct point *v, size_t n, int side, long double enough)
{
    long double run = (long double)(line->late.x - line->early.x), sum = 0;
    for (size_t i = 0; i < n && sum < enough; i++) {
        i128 turn = point_turn(line->early, line->late, v[i]);
        if (side > 0 ? turn < 0 : turn > 0)
            sum += fabsl((long double)turn) / run;
    }
    return sum;
}

struct point *clock_hull_thin(const struct point *v, size_t n, size_t most, size_t *out_n)
{
    size_t left = n > most ? most : n;
    struct point *out = mem_alloc((left + 1) * sizeof *out);
    for (size_t i = 0; i < left; i++)
        out[i] = v[left < n ? i * (n - 1) / (left - 1) : i];
    *out_n = left;
    return out;
}

bool clock_hull_compromise(
    const struct point *sent, size_t ns, const struct point *received, size_t nr, struct hull_line *out)
{
    struct point *s = clock_hull_thin(sent, ns, COMPROMISE_POINTS, &ns),
                 *r = clock_hull_thin(received, nr, COMPROMISE_POINTS, &nr);
    out->error = INFINITY;
    for (size_t i = 0; i < ns; i++)
        for (size_t j = 0; j < nr; j++) {
            if (s[i].x == r[j].x)
                continue;
            struct hull_line line = s[i].x < r[j].x ? (struct hull_line){s[i], r[j], 0}
                                                    : (struct hull_line){r[j], s[i], 0};
            line.error = wrong_side(&line, s, ns, 1, out->error);
            line.error += wrong_side(&line, r, nr, -1, out->error);
            if (line.error < out->error)
                *out = line;
        }
    free(s);
    free(r);
    return out->error < INFINITY;
}

static long double slope_of(struct point early, struct point late)
{
    return (long double)(late.d - early.d) / (long double)(late.x - early.x);
}

/* Greatest slope from a lower hull, or least from an upper hull, to p on its right. */
static long double tangent_left(const struct point *v, size_t n, struct point p, int up)
{
    /* p is left of an edge if the slope from the next vertex is greater */
    size_t at = search_first(i, 0, n - 1, !turns(v[i], v[i + 1], p, up));
    return slope_of(v[at], p);
}

bool clock_hull_slope_range(
    const struct point *sent, size_t ns, const struct point *received, size_t nr, long double *low, long double *high)
{
    struct point *s = mem_alloc((ns + 1) * sizeof *s),
                 *r = mem_alloc((nr + 1) * sizeof *r); /* half hulls of the rest of the sweep */
    size_t ks = 0, kr = 0, i = 0, j = 0;
    bool possible = true;
    *low = INFINITY;
    *high = -INFINITY;
    while (possible && (i < ns || j < nr)) {
        int64_t x = i < ns && (j == nr || sent[i].x <= received[j].x) ? sent[i].x : received[j].x;
        size_t i_end = i, j_end = j;
        for (; i_end < ns && sent[i_end].x == x; i_end++)
            if (kr)
                *low = fminl(*low, tangent_left(r, kr, sent[i_end], -1));
        for (; j_end < nr && received[j_end].x == x; j_end++)
            if (ks)
                *high = fmaxl(*high, tangent_left(s, ks, received[j_end], 1));
        if (i_end > i && j_end > j && received[j_end - 1].d > sent[i].d)
            possible = false;
        for (; i < i_end; i++)
            ks = hull_push(s, ks, sent[i], 1);
        for (; j < j_end; j++)
            kr = hull_push(r, kr, received[j], -1);
    }
    free(s);
    free(r);
    return possible;
}
