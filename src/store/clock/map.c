/* SPDX-License-Identifier: MIT */
/* Clock maps: curves along the trees, divided into pieces; conversion of times. */
#include <math.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/search.h"
#include "base/time.h"
#include "clock/net.h"

static void piece_push(struct net_host *h, int64_t begin, int64_t end)
{
    struct knot knot;
    int64_t slope = clock_curve_slope(&h->curve, begin, &knot);
    h->pieces[h->npieces++] = (struct clock_piece){.begin = begin,
        .end = end,
        .t0 = knot.t,
        .shift = sat64((i128)knot.y - knot.t),
        .slope_q62 = slope,
        .error_begin = clock_curve_error(&h->curve, begin),
        .error_end = clock_curve_error(&h->curve, end)};
}

/* Makes pieces of the part of the curve that covers the trace, divided at every cut (knots are cuts). */
static void host_pieces(struct net_host *h)
{
    const struct curve *c = &h->curve;
    h->pieces = mem_alloc((c->ncuts + 1) * sizeof *h->pieces);
    h->npieces = 0;
    int64_t at = h->begin;
    for (size_t i = 0; i < c->ncuts; i++)
        if (c->cuts[i].t > at && c->cuts[i].t < h->end) {
            piece_push(h, at, c->cuts[i].t);
            at = c->cuts[i].t;
        }
    piece_push(h, at, h->end);
}

/* Curve from host `index` through its neighbour `up`, whose own curve is known: by their messages, or (error >= 0) by
 * trust. */
static void curve_through(const struct clock_net *net, size_t index, size_t up, int64_t error, struct curve *out)
{
    struct curve own = {0};
    const struct curve *pair = &own;
    if (error >= 0)
        clock_trust_curve(net, index, up, error, &own);
    else if (index < up)
        pair = &clock_net_pair_between(net, index, up)->curve;
    else
        clock_curve_inverse(&clock_net_pair_between(net, index, up)->curve, &own);
    if (net->hosts.v[up].map.predecessor < 0)
        clock_curve_copy(pair, out);
    else
        clock_curve_compose(pair, &net->hosts.v[up].curve, out);
    clock_curve_free(&own);
}

static void host_curve(struct clock_net *net, size_t index)
{
    struct net_host *h = &net->hosts.v[index];
    if (h->map.predecessor < 0)
        clock_curve_identity(&h->curve, h->begin, h->end);
    else
        curve_through(net, index, (size_t)h->map.predecessor, h->trusted_ns, &h->curve);
}

enum { NEIGHBOURS = 8 };

struct neighbour {
    size_t of, host;
    int64_t trusted_ns; /* -1: messages */
    long double cost;
};
struct neighbours {
    VEC(struct neighbour) all;
    struct neighbour *v;
    size_t *first;
}; /* neighbours of host h: v[first[h]] .. v[first[h + 1]] */

static int compare_neighbours(const void *a, const void *b)
{
    const struct neighbour *p = a, *q = b;
    return order_of(p->of, q->of) ?: order_of(p->cost, q->cost) ?: order_of(p->host, q->host)
        ?: order_of(p->trusted_ns, q->trusted_ns);
}

static void add_neighbour(
    struct neighbours *n, const struct clock_net *net, size_t of, size_t host, int64_t trusted_ns, long double width)
{
    vec_push(
        &n->all, ((struct neighbour){of, host, trusted_ns, width + clock_curve_mean_error(&net->hosts.v[host].curve)}));
}

/* Adds the best known of the hosts that are trusted together: through it the others are known best. */
static void add_trusted(struct neighbours *n, const struct clock_net *net, const struct net_trust *t)
{
    size_t best = t->hosts.n ? t->hosts.v[0] : 0;
    for (size_t i = 1; i < t->hosts.n; i++)
        if (clock_curve_mean_error(&net->hosts.v[t->hosts.v[i]].curve) <
            clock_curve_mean_error(&net->hosts.v[best].curve))
            best = t->hosts.v[i];
    for (size_t i = 0; i < t->hosts.n; i++)
        if (t->hosts.v[i] != best)
            add_neighbour(n, net, t->hosts.v[i], best, t->error, (long double)t->error);
}

/* Finds the few neighbours of each host through which the reference is known best; only pairs whose corridors are
 * bounds, not estimates. */
static struct neighbours neighbours_of(const struct clock_net *net)
{
    struct neighbours out = {.first = mem_zalloc((net->hosts.n + 2) * sizeof *out.first)};
    for (size_t i = 0; i < net->pairs.n; i++) {
        const struct net_pair *p = &net->pairs.v[i];
        if (!p->usable || p->against_prior || p->out.category == CLOCK_APPROXIMATE)
            continue;
        add_neighbour(&out, net, p->out.a, p->out.b, -1, p->width);
        add_neighbour(&out, net, p->out.b, p->out.a, -1, p->width);
    }
    for (size_t i = 0; i < net->trust.n; i++)
        add_trusted(&out, net, &net->trust.v[i]);
    struct neighbour *v = out.v = out.all.v;
    if (out.all.n)
        qsort(v, out.all.n, sizeof *v, compare_neighbours);
    size_t n = 0, run = 0;
    size_t of = SIZE_MAX;
    for (size_t i = 0; i < out.all.n; i++) {
        run = v[i].of == of ? run + 1 : 0;
        of = v[i].of;
        if (run < NEIGHBOURS) {
            out.first[of + 1]++;
            v[n++] = v[i];
        }
    }
    for (size_t h = 0; h < net->hosts.n; h++)
        out.first[h + 1] += out.first[h];
    return out;
}

/* Narrows the corridor: the path that is best on the whole need not be the best at every time, so other neighbours may
 * narrow it there. */
static void host_narrow(struct clock_net *net, size_t index, const struct neighbour *v, size_t n)
{
    struct net_host *h = &net->hosts.v[index];
    for (size_t i = 0; i < n; i++) {
        struct curve other, both;
        bool trusted = v[i].trusted_ns >= 0;
        if ((int64_t)v[i].host == h->map.predecessor && trusted == (h->trusted_ns >= 0))
            continue;
        curve_through(net, index, v[i].host, v[i].trusted_ns, &other);
        if (clock_curve_intersect(&h->curve, &other, &both)) {
            if (clock_curve_mean_error(&both) < 0.99L * clock_curve_mean_error(&h->curve)) {
                struct curve old = h->curve;
                h->curve = both;
                both = old;
            }
            clock_curve_free(&both);
        } else if (trusted || h->trusting || net->hosts.v[v[i].host].trusting) {
            clock_trust_conflict(
                net, v[i].host, index, clock_curves_apart(&h->curve, &other), trusted ? v[i].trusted_ns : -1, false);
        }
        clock_curve_free(&other);
    }
}

static void narrow_all(struct clock_net *net)
{
    struct neighbours near = neighbours_of(net);
    for (size_t i = 0; i < net->order.n; i++) {
        size_t h = net->order.v[i];
        if (net->hosts.v[h].map.predecessor >= 0 && near.first[h + 1] > near.first[h])
            host_narrow(net, h, near.v + near.first[h], near.first[h + 1] - near.first[h]);
    }
    vec_free(&near.all);
    free(near.first);
}

void clock_host_reset(struct net_host *h)
{
    clock_curve_free(&h->curve);
    free(h->pieces);
    h->pieces = NULL;
    h->npieces = 0;
}

void clock_maps_build(struct clock_net *net)
{
    for (size_t i = 0; i < net->order.n; i++) {
        clock_host_reset(&net->hosts.v[net->order.v[i]]);
        host_curve(net, net->order.v[i]);
    }
    narrow_all(net);
    for (size_t i = 0; i < net->hosts.n; i++) {
        struct net_host *h = &net->hosts.v[i];
        host_pieces(h);
        h->map.growth_q62 = h->curve.growth;
        if (h->map.island == 0) {
            h->map.pieces = h->pieces;
            h->map.n = h->npieces;
        }
    }
}

struct factors clock_host_factors(const struct net_host *h)
{
    const struct clock_map whole = {.pieces = h->pieces, .n = h->npieces};
    if (!h->npieces)
        return (struct factors){1, 0};
    if (h->npieces == 1 || h->end <= h->begin) {
        const struct clock_piece *p = h->pieces;
        long double slope = slope_value(p->slope_q62);
        return (struct factors){1 + slope, (long double)p->shift - slope * (long double)p->t0};
    }
    int64_t begin = clock_to_reference(&whole, h->begin), end = clock_to_reference(&whole, h->end);
    long double run = (long double)h->end - (long double)h->begin;
    long double slope = ((long double)end - (long double)begin - run) / run;
    return (struct factors){1 + slope, (long double)begin - (long double)h->begin - slope * (long double)h->begin};
}

/* Index of the piece at t; before the first and after the last these continue. */
static size_t piece_at(const struct clock_map *m, int64_t t)
{
    return search_first(i, 1, m->n, m->pieces[i].begin > t) - 1;
}

static int64_t piece_apply(const struct clock_piece *p, int64_t t)
{
    return sat64((i128)t + p->shift + slope_times(p->slope_q62, (i128)t - p->t0));
}

int64_t clock_to_reference(const struct clock_map *m, int64_t t)
{
    return m->n ? piece_apply(&m->pieces[piece_at(m, t)], t) : t;
}

int64_t clock_from_reference(const struct clock_map *m, int64_t t)
{
    if (!m->n)
        return t;
    size_t at = search_first(i, 1, m->n, piece_apply(&m->pieces[i], m->pieces[i].begin) > t) - 1;
    const struct clock_piece *p = &m->pieces[at];
    /* t - t0 - shift = run + slope * run */
    i128 gain = (i128)t - p->shift - p->t0;
    int64_t back = sat64(p->t0 + floor_div(gain * Q62, Q62 + p->slope_q62));
    for (int i = 0; i < 2 && back < INT64_MAX && piece_apply(p, back) < t; i++)
        back++;
    for (int i = 0; i < 2 && back > INT64_MIN && piece_apply(p, back) > t; i++)
        back--;
    return back;
}

/* Precision of the inverse; at the limits of times these no longer rise. */
enum { NEAR_NS = 8 };

int64_t clock_last_until(const struct clock_map *m, int64_t t)
{
    int64_t at = clock_from_reference(m, t);
    for (int i = 0; i < NEAR_NS && at > INT64_MIN && clock_to_reference(m, at) > t; i++)
        at--;
    for (int i = 0; i < NEAR_NS && at < INT64_MAX && clock_to_reference(m, at + 1) <= t; i++)
        at++;
    return at;
}

int64_t clock_first_from(const struct clock_map *m, int64_t t)
{
    return t == INT64_MIN ? t : time_after(clock_last_until(m, t - 1));
}

int64_t clock_error_at(const struct clock_map *m, int64_t t)
{
    if (!m->n)
        return 0;
    const struct clock_piece *p = &m->pieces[piece_at(m, t)];
    if (t < p->begin)
        return sat64(p->error_begin - slope_times(-m->growth_q62, (i128)p->begin - t));
    if (t >= p->end)
        return sat64(p->error_end - slope_times(-m->growth_q62, (i128)t - p->end));
    return sat64(p->error_begin +
        ceil_div((i128)(p->error_end - p->error_begin) * ((i128)t - p->begin), (i128)p->end - p->begin));
}

long double clock_drift_error(const struct clock_map *m, int64_t begin, int64_t end)
{
    long double run = (long double)end - (long double)begin;
    return run > 0 ? ((long double)clock_error_at(m, begin) + (long double)clock_error_at(m, end)) / run : 0;
}

void clock_map_times(void *map, int64_t *ts, size_t n)
{
    const struct clock_map *m = map;
    size_t at = 0;
    if (!m->n)
        return;
    for (size_t i = 0; i < n; i++) {
        const struct clock_piece *p = &m->pieces[at];
        if ((at && ts[i] < p->begin) || (at + 1 < m->n && ts[i] >= m->pieces[at + 1].begin)) {
            at = piece_at(m, ts[i]);
            p = &m->pieces[at];
        }
        ts[i] = piece_apply(p, ts[i]);
    }
}
