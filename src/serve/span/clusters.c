/* SPDX-License-Identifier: MIT */
/* Clusters of units by the durations of their stages. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "span/spans.h"
#include "span/statistics.h"

/* Limits: stages used for distances; units clustered (others join the nearest cluster); simulated worlds without
 * clusters. */
enum { STAGES_MOST = 24, SAMPLE = 300, WORLDS = 99, CLUSTERS_MOST = 6, LEAST_CLUSTER = 4 };
#define LEAST_SILHOUETTE 0.4
#define LEAST_SPREAD 0.02
#define ALPHA 0.05
#define FAR 8.0 /* robust spreads; larger ones are cut to it */

/* Matrix with a row per unit; NaN: the unit lacks the stage. */
struct matrix {
    double *v;
    size_t n, width;
};

/* ---- selection of units and stages ---- */

/* Returns the units of the commonest kind. */
static uint32_t *commonest(const struct spans *s, size_t *n)
{
    struct map counts = {0};
    uint64_t best = 0, most = 0;
    for (size_t u = 0; u < s->units.n; u++) {
        uint64_t kind = (uint64_t)s->units.v[u].service << 32 | s->units.v[u].name;
        uint64_t *count = map_put(&counts, kind, NULL);
        if (++*count > most) {
            most = *count;
            best = kind;
        }
    }
    map_fini(&counts);
    uint32_t *units = mem_alloc((most + 1) * sizeof *units);
    *n = 0;
    for (size_t u = 0; u < s->units.n; u++)
        if (((uint64_t)s->units.v[u].service << 32 | s->units.v[u].name) == best)
            units[(*n)++] = (uint32_t)u;
    return units;
}

/* Stage that many units have. `place`: mean distance from their begins. */
struct common {
    uint32_t name;
    uint64_t units;
    double total, place;
};

static int by_total(const void *a, const void *b)
{
    return order_of(((const struct common *)b)->total, ((const struct common *)a)->total);
}

static int by_place(const void *a, const void *b)
{
    return order_of(((const struct common *)a)->place, ((const struct common *)b)->place);
}

/* Returns whether the row is a stage. A unit's root is none, since its parts represent it, unless it is alone. */
static bool is_stage(const struct spans *s, const struct spans_unit *u, uint32_t row)
{
    return (int32_t)row != u->root || u->members == 1;
}

static void count_stages(const struct spans *s, const struct spans_clusters *c, struct map *numbers, struct common *v)
{
    struct map last = {0};
    for (size_t i = 0; i < c->units; i++) {
        const struct spans_unit *u = s->units.v + c->unit[i];
        for (uint32_t k = 0; k < u->members; k++) {
            const struct spans_row *r = s->rows.v + s->members[u->member + k];
            struct common *x = v + *map_find(numbers, r->name);
            if (!is_stage(s, u, s->members[u->member + k]))
                continue;
            x->total += (double)spans_duration(r);
            uint64_t *seen = map_put(&last, r->name, NULL);
            if (*seen != i + 1) {
                x->units++;
                x->place += (double)(r->begin_ns - u->begin_ns);
            }
            *seen = i + 1;
        }
    }
    map_fini(&last);
}

/* Chooses the stages that at least half of the units have; of those, the ones with most time. Sorted by time. */
static void choose_stages(const struct spans *s, struct spans_clusters *c)
{
    struct map numbers = {0};
    bool fresh;
    VEC(struct common) v = {0};
    for (size_t i = 0; i < c->units; i++) {
        const struct spans_unit *u = s->units.v + c->unit[i];
        for (uint32_t k = 0; k < u->members; k++) {
            uint32_t name = s->rows.v[s->members[u->member + k]].name;
            uint64_t *number = map_put(&numbers, name, &fresh);
            if (fresh) {
                *number = v.n;
                vec_push(&v, ((struct common){.name = name}));
            }
        }
    }
    count_stages(s, c, &numbers, v.v);
    size_t kept = 0;
    for (size_t i = 0; i < v.n; i++)
        if (2 * v.v[i].units >= c->units) {
            v.v[kept] = v.v[i];
            v.v[kept++].place /= (double)v.v[i].units;
        }
    if (kept)
        qsort(v.v, kept, sizeof *v.v, by_total);
    kept = kept < STAGES_MOST ? kept : STAGES_MOST;
    if (kept)
        qsort(v.v, kept, sizeof *v.v, by_place);
    c->stages = mem_alloc((kept + 1) * sizeof *c->stages);
    for (size_t i = 0; i < kept; i++)
        c->stages[c->n_stages++] = v.v[i].name;
    map_fini(&numbers);
    vec_free(&v);
}

/* Returns the time that each unit spent in each stage, in ns. */
static struct matrix measure(const struct spans *s, const struct spans_clusters *c)
{
    struct matrix m = {mem_alloc((c->units * c->n_stages + 1) * sizeof(double)), c->units, c->n_stages};
    struct map place = {0};
    for (size_t k = 0; k < c->n_stages; k++)
        *map_put(&place, c->stages[k], NULL) = k;
    for (size_t i = 0; i < c->units; i++) {
        const struct spans_unit *u = s->units.v + c->unit[i];
        double *row = m.v + i * m.width;
        for (size_t k = 0; k < m.width; k++)
            row[k] = NAN;
        for (uint32_t k = 0; k < u->members; k++) {
            const struct spans_row *r = s->rows.v + s->members[u->member + k];
            const uint64_t *at = map_find(&place, r->name);
            if (at && is_stage(s, u, s->members[u->member + k]))
                row[*at] = (isnan(row[*at]) ? 0 : row[*at]) + (double)spans_duration(r);
        }
    }
    map_fini(&place);
    return m;
}

/* ---- distances ---- */

/* Scales each column to robust spreads from its median. */
static void standardise(struct matrix *m)
{
    double *column = mem_alloc((m->n + 1) * sizeof *column);
    for (size_t k = 0; k < m->width; k++) {
        size_t n = 0;
        for (size_t i = 0; i < m->n; i++)
            if (!isnan(m->v[i * m->width + k]))
                column[n++] = m->v[i * m->width + k];
        struct stat_centre c = n ? stat_centre(column, n) : (struct stat_centre){0};
        for (size_t i = 0; i < m->n; i++) {
            double *x = m->v + i * m->width + k;
            *x = (*x - c.median) / fmax(c.scale, LEAST_SPREAD);
            *x = isnan(*x) ? NAN : fmax(-FAR, fmin(FAR, *x));
        }
    }
    free(column);
}

/* Returns the distance over the stages that both units have. */
static float distance_between(const double *a, const double *b, size_t width)
{
    double sum = 0;
    size_t shared = 0;
    for (size_t k = 0; k < width; k++) {
        double d = a[k] - b[k];
        if (isnan(d))
            continue;
        sum += d * d;
        shared++;
    }
    return shared ? (float)sqrt(sum / (double)shared) : (float)(2 * FAR);
}

static void partition(const struct matrix *m, struct stat_clusters *c, uint8_t *of)
{
    float *distance = mem_alloc((m->n * m->n + 1) * sizeof *distance);
    for (size_t i = 0; i < m->n; i++)
        for (size_t j = 0; j <= i; j++)
            distance[i * m->n + j] = distance[j * m->n + i] = distance_between(
                m->v + i * m->width, m->v + j * m->width, m->width);
    size_t least = m->n / 20 > LEAST_CLUSTER ? m->n / 20 : LEAST_CLUSTER;
    stat_medoids(distance, m->n, CLUSTERS_MOST, least, c, of);
    free(distance);
}

/* ---- worlds without clusters ---- */

/* Returns the lower triangular Cholesky factor of the columns' covariance; missing values are left out. */
static double *spread_together(const struct matrix *m)
{
    size_t w = m->width;
    double *l = mem_zalloc((w * w + 1) * sizeof *l);
    for (size_t a = 0; a < w; a++)
        for (size_t b = 0; b <= a; b++) {
            double sa = 0, sb = 0, sab = 0, n = 0;
            for (size_t i = 0; i < m->n; i++) {
                double x = m->v[i * w + a], y = m->v[i * w + b];
                if (isnan(x) || isnan(y))
                    continue;
                sa += x;
                sb += y;
                sab += x * y;
                n++;
            }
            l[a * w + b] = n > 1 ? (sab - sa * sb / n) / (n - 1) : 0;
        }
    for (size_t a = 0; a < w; a++)
        for (size_t b = 0; b <= a; b++) {
            double rest = l[a * w + b];
            for (size_t k = 0; k < b; k++)
                rest -= l[a * w + k] * l[b * w + k];
            l[a * w + b] = a == b ? sqrt(fmax(rest, 1e-6)) : rest / l[b * w + b];
        }
    return l;
}

static void make_world(const struct matrix *like, const double *l, struct stat_dice *dice, struct matrix *out)
{
    double normal[STAGES_MOST];
    for (size_t i = 0; i < like->n; i++) {
        for (size_t k = 0; k < like->width; k++)
            normal[k] = stat_normal(dice);
        for (size_t k = 0; k < like->width; k++) {
            double x = 0;
            for (size_t b = 0; b <= k; b++)
                x += l[k * like->width + b] * normal[b];
            out->v[i * like->width + k] = isnan(like->v[i * like->width + k]) ? NAN : x;
        }
    }
    standardise(out);
}

/* Returns how often units without clusters part as well. Their logarithms are normal with the same covariance (Liu et
 * al. 2008). */
static double chance_of(const struct matrix *m, double silhouette)
{
    struct matrix world = {mem_alloc((m->n * m->width + 1) * sizeof(double)), m->n, m->width};
    double *l = spread_together(m);
    uint8_t *of = mem_alloc(m->n + 1);
    struct stat_dice dice = {1};
    size_t as_good = 0;
    for (int i = 0; i < WORLDS; i++) {
        struct stat_clusters c;
        make_world(m, l, &dice, &world);
        partition(&world, &c, of);
        as_good += c.k && c.silhouette >= silhouette;
    }
    free(world.v);
    free(l);
    free(of);
    return (double)(as_good + 1) / (WORLDS + 1);
}

/* ---- result ---- */

static int by_number(const void *a, const void *b)
{
    return order_of(*(const size_t *)a, *(const size_t *)b);
}

/* Draws a random sample; a regular one could be in step with a periodic order. */
static struct matrix take_sample(const struct matrix *all, size_t *picked)
{
    struct matrix m = {NULL, all->n < SAMPLE ? all->n : SAMPLE, all->width};
    struct stat_dice dice = {1};
    size_t *lots = mem_alloc((all->n + 1) * sizeof *lots);
    for (size_t i = 0; i < all->n; i++)
        lots[i] = i;
    for (size_t i = 0; i < m.n && m.n < all->n; i++) {
        size_t at = i + (size_t)(stat_uniform(&dice) * (double)(all->n - i)), lot = lots[at];
        lots[at] = lots[i];
        lots[i] = lot;
    }
    if (m.n)
        qsort(lots, m.n, sizeof *lots, by_number);
    m.v = mem_alloc((m.n * m.width + 1) * sizeof *m.v);
    for (size_t i = 0; i < m.n; i++) {
        picked[i] = lots[i];
        memcpy(m.v + i * m.width, all->v + picked[i] * m.width, m.width * sizeof *m.v);
    }
    free(lots);
    return m;
}

static void join_nearest(
    const struct matrix *all, const struct stat_clusters *c, const size_t *picked, struct spans_clusters *out)
{
    for (size_t i = 0; i < all->n; i++) {
        float least = INFINITY;
        for (size_t k = 0; k < c->k; k++) {
            float d = distance_between(all->v + i * all->width, all->v + picked[c->medoid[k]] * all->width, all->width);
            if (d >= least)
                continue;
            least = d;
            out->of[i] = (uint8_t)k;
        }
        out->v[out->of[i]].n++;
    }
    for (size_t k = 0; k < c->k; k++)
        out->v[k].medoid = out->unit[picked[c->medoid[k]]];
}

static void tell_typical(const struct spans *s, const struct matrix *ns, struct spans_clusters *out)
{
    double *column = mem_alloc((ns->n + 1) * sizeof *column);
    for (size_t c = 0; c < out->n; c++) {
        out->v[c].typical = mem_alloc((ns->width + 1) * sizeof *column);
        for (size_t k = 0; k <= ns->width; k++) { /* last: the whole unit */
            size_t n = 0;
            for (size_t i = 0; i < ns->n; i++) {
                const struct spans_unit *u = s->units.v + out->unit[i];
                double x = k < ns->width ? ns->v[i * ns->width + k] : (double)(u->end_ns - u->begin_ns);
                if (out->of[i] == c && !isnan(x))
                    column[n++] = x;
            }
            *(k < ns->width ? out->v[c].typical + k : &out->v[c].length) = n ? stat_median(column, n) : NAN;
        }
    }
    free(column);
}

/* Returns logarithms of the values used. */
static struct matrix logs_of(const struct matrix *ns)
{
    struct matrix m = {mem_alloc((ns->n * ns->width + 1) * sizeof *m.v), ns->n, ns->width};
    for (size_t i = 0; i < m.n * m.width; i++)
        m.v[i] = isnan(ns->v[i]) ? NAN : spans_log((int64_t)ns->v[i]);
    standardise(&m);
    return m;
}

static void find_clusters(const struct matrix *all, struct spans_clusters *out)
{
    size_t picked[SAMPLE];
    uint8_t of[SAMPLE];
    struct stat_clusters c;
    struct matrix sample = take_sample(all, picked);
    partition(&sample, &c, of);
    out->silhouette = c.k ? c.silhouette : NAN;
    out->chance = c.k ? chance_of(&sample, c.silhouette) : 1;
    free(sample.v);
    if (!c.k || c.silhouette < LEAST_SILHOUETTE || out->chance > ALPHA)
        return;
    out->n = c.k;
    out->v = mem_zalloc(c.k * sizeof *out->v);
    join_nearest(all, &c, picked, out);
}

struct spans_clusters *spans_clusters(const struct spans *s)
{
    struct spans_clusters *out = mem_zalloc(sizeof *out);
    out->silhouette = NAN;
    out->chance = 1;
    out->unit = commonest(s, &out->units);
    out->of = mem_zalloc(out->units + 1);
    choose_stages(s, out);
    if (out->units < 2 * SPANS_FEW || !out->n_stages)
        return out;
    struct matrix ns = measure(s, out), all = logs_of(&ns);
    find_clusters(&all, out);
    tell_typical(s, &ns, out);
    spans_find_traits(s, out);
    free(ns.v);
    free(all.v);
    return out;
}

struct spans_factors *spans_factors(const struct spans *s)
{
    struct spans_clusters c = {0};
    c.unit = commonest(s, &c.units);
    choose_stages(s, &c);
    struct matrix ns = measure(s, &c);
    struct spans_factors *out = spans_find_factors(s, &c, ns.v);
    free(ns.v);
    free(c.unit);
    free(c.stages);
    return out;
}

void spans_clusters_free(struct spans_clusters *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n; i++) {
        free(c->v[i].typical);
        free(c->v[i].traits);
    }
    free(c->v);
    free(c->stages);
    free(c->of);
    free(c->unit);
    free(c);
}
