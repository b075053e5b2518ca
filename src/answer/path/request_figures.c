/* SPDX-License-Identifier: MIT */
/* Figures of a group of requests: durations, components of the paths, and differences of the slow ones. */
#include "path/request_figures.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

enum {
    GREW = 20, /* lower limit of reported parts: 1 / n of all growth */
    MEDIAN = 50,
    SLOW = 90 /* percentile from which on requests are slow */
};
#define WHOLE UINT32_MAX /* Number in place of a part: the whole path. */

/* ---- ranks, medians, means ---- */

/* Index of the first one that makes up p % with those before it. */
static size_t rank_of(const struct request_members *m, uint64_t p)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < m->n; i++) {
        sum += m->v[i].weight;
        if (sum * 100 >= m->weight * p)
            return i;
    }
    return m->n - 1;
}

static int64_t duration_of(const struct request_looked *l, uint32_t part)
{
    size_t i = 0, n = l->profile.n_shares;
    if (part == WHOLE)
        return l->profile.duration;
    while (i < n && l->profile.shares[i].part < part)
        i++;
    return i < n && l->profile.shares[i].part == part ? l->profile.shares[i].duration : 0;
}

struct weighted {
    int64_t value;
    uint64_t weight;
};
static int by_value(const void *pa, const void *pb)
{
    const struct weighted *a = pa, *b = pb;
    return order_of(a->value, b->value);
}

/* Lowest duration of a part that half of the first n do not exceed. */
static int64_t median_of(const struct request_members *m, size_t n, uint32_t part, struct weighted *v)
{
    uint64_t all = 0, sum = 0;
    for (size_t i = 0; i < n; i++) {
        v[i] = (struct weighted){duration_of(&m->v[i], part), m->v[i].weight};
        all += v[i].weight;
    }
    qsort(v, n, sizeof *v, by_value);
    size_t i = 0;
    while (i + 1 < n && (sum += v[i].weight) * 2 < all)
        i++;
    return v[i].value;
}

/* Mean of those from `first` on. */
static int64_t mean_of(const struct request_members *m, size_t first, uint32_t part)
{
    double sum = 0, weight = 0;
    for (size_t i = first; i < m->n; i++) {
        sum += (double)duration_of(&m->v[i], part) * (double)m->v[i].weight;
        weight += (double)m->v[i].weight;
    }
    double mean = sum / weight + 0.5;
    return mean < 0x1p63 ? (int64_t)mean : INT64_MAX;
}

/* ---- sums ---- */

static int64_t added(int64_t sum, int64_t duration, uint64_t weight)
{
    int64_t more, all;
    return __builtin_mul_overflow(duration, weight, &more) || __builtin_add_overflow(sum, more, &all) ? INT64_MAX : all;
}

/* Sums for each part that any of them has, and for the whole. */
struct summing {
    const struct request_parts *parts;
    const struct request_members *members;
    size_t half, slow;     /* size of the faster half; index of the first slow one */
    struct weighted *room; /* room for the faster half */
};

static struct request_sum sum_of(const struct summing *s, uint32_t part, struct request_part is, int64_t total)
{
    return (struct request_sum){
        is, total, median_of(s->members, s->half, part, s->room), mean_of(s->members, s->slow, part)};
}

static int by_name(const struct request_parts *parts, const struct request_part *a, const struct request_part *b)
{
    return strcmp(a->host >= 0 ? parts->hosts.v[a->host] : "", b->host >= 0 ? parts->hosts.v[b->host] : "")
        ?: strcmp(a->comm, b->comm)
        ?: order_of(a->another, b->another) ?: order_of(a->state, b->state);
}

static int most_first(const void *pa, const void *pb, void *parts)
{
    const struct request_sum *a = pa, *b = pb;
    return order_of(b->total, a->total) ?: by_name(parts, &a->part, &b->part);
}

static void find_sums(const struct summing *s, struct arena *arena, struct request_group *out)
{
    const struct request_members *m = s->members;
    int64_t *totals = mem_zalloc((s->parts->v.n + 1) * sizeof *totals), all = 0;
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        all = added(all, m->v[i].profile.duration, m->v[i].weight);
        for (size_t k = 0; k < m->v[i].profile.n_shares; k++) {
            const struct request_share *x = &m->v[i].profile.shares[k];
            totals[x->part] = added(totals[x->part], x->duration, m->v[i].weight);
        }
    }
    for (size_t part = 0; part < s->parts->v.n; part++)
        n += totals[part] > 0;
    struct request_sum *sums = arena_new(arena, struct request_sum, n + 1);
    n = 0;
    for (uint32_t part = 0; part < s->parts->v.n; part++)
        if (totals[part] > 0)
            sums[n++] = sum_of(s, part, s->parts->v.v[part], totals[part]);
    qsort_r(sums, n, sizeof *sums, most_first, (void *)s->parts);
    out->whole = sum_of(s, WHOLE, out->server, all);
    out->sums = sums;
    out->n_sums = n;
    free(totals);
}

/* ---- growth ---- */

static int64_t growth(const struct request_sum *s)
{
    return s->slow - s->typical;
}

static int most_growth_first(const void *pa, const void *pb)
{
    const struct request_sum *a = pa, *b = pb;
    return order_of(growth(b), growth(a))
        ?: order_of(a->part.host, b->part.host)
        ?: strcmp(a->part.comm, b->part.comm)
        ?: order_of(a->part.state, b->part.state)
        ?: order_of(a->part.another, b->part.another);
}

/* Finds parts in which the slow ones differ from the faster half. */
static void find_growth(const struct summing *s, struct arena *arena, struct request_group *out)
{
    uint64_t all = 0;
    size_t n = 0;
    struct request_sum *grew = arena_new(arena, struct request_sum, out->n_sums + 1);
    bool differs = s->members->v[s->slow].profile.duration > s->members->v[s->half - 1].profile.duration;
    for (size_t i = 0; i < out->n_sums && differs; i++)
        if (growth(&out->sums[i]) > 0) {
            all += (uint64_t)growth(&out->sums[i]);
            grew[n++] = out->sums[i];
        }
    qsort(grew, n, sizeof *grew, most_growth_first);
    while (n && (uint64_t)growth(&grew[n - 1]) < all / GREW)
        n--;
    out->grew = grew;
    out->n_grew = n;
}

/* ---- the shape ---- */

/* Time and requests of a part of the shape. */
struct shaping {
    uint32_t part;
    uint64_t weight;
    double time;
};
static int most_time_first(const void *pa, const void *pb)
{
    const struct shaping *a = pa, *b = pb;
    return order_of(b->time, a->time) ?: order_of(a->part, b->part);
}

/* Finds the parts in the shape of half of them. */
static void find_shape(
    const struct request_parts *parts, const struct request_members *m, struct arena *arena, struct request_group *out)
{
    struct shaping *v = mem_zalloc((parts->v.n + 1) * sizeof *v);
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->v[i].profile.n_shape; k++) {
            const struct request_share *s = &m->v[i].profile.shape[k];
            v[s->part].part = s->part;
            v[s->part].weight += m->v[i].weight;
            v[s->part].time += (double)s->duration * (double)m->v[i].weight;
        }
    for (size_t i = 0; i < parts->v.n; i++)
        if (v[i].weight * 2 >= m->weight && v[i].weight)
            v[n++] = v[i];
    qsort(v, n, sizeof *v, most_time_first);
    struct request_part *shape = arena_new(arena, struct request_part, n + 1);
    for (size_t i = 0; i < n; i++)
        shape[i] = parts->v.v[v[i].part];
    out->shape = shape;
    out->n_shape = n;
    free(v);
}

/* ---- result ---- */

void path_request_figures_of(
    const struct request_parts *parts, const struct request_members *m, struct arena *arena, struct request_group *out)
{
    *out = (struct request_group){.server = parts->v.v[m->v->profile.server],
        .count = m->weight,
        .first = m->v->begin,
        .p50 = m->v[rank_of(m, MEDIAN)].profile.duration,
        .p90 = m->v[rank_of(m, SLOW)].profile.duration,
        .p99 = m->v[rank_of(m, 99)].profile.duration,
        .max = m->v[m->n - 1].profile.duration};
    for (size_t i = 1; i < m->n; i++)
        out->first = m->v[i].begin < out->first ? m->v[i].begin : out->first;
    struct summing s = {parts, m, rank_of(m, MEDIAN) + 1, rank_of(m, SLOW), NULL};
    s.room = mem_alloc(s.half * sizeof *s.room);
    find_shape(parts, m, arena, out);
    find_sums(&s, arena, out);
    find_growth(&s, arena, out);
    free(s.room);
}
