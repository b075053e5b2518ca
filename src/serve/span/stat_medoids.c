/* SPDX-License-Identifier: MIT */
/* Clusters around medoids, from distances alone. */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "span/statistics.h"

/* Nearest and second nearest medoid of a thing. */
struct nearest {
    float first, second;
    uint8_t of;
};

static void find_nearest(const float *distance, size_t n, const struct stat_clusters *c, struct nearest *near)
{
    for (size_t i = 0; i < n; i++) {
        struct nearest x = {FLT_MAX, FLT_MAX, 0};
        for (size_t k = 0; k < c->k; k++) {
            float d = distance[c->medoid[k] * n + i];
            if (d < x.first) {
                x.second = x.first;
                x.first = d;
                x.of = (uint8_t)k;
            } else if (d < x.second) {
                x.second = d;
            }
        }
        near[i] = x;
    }
}

static bool is_medoid(const struct stat_clusters *c, size_t i)
{
    for (size_t k = 0; k < c->k; k++)
        if (c->medoid[k] == i)
            return true;
    return false;
}

/* BUILD: adds the medoid that brings all things nearest to theirs. */
static void add_medoid(const float *distance, size_t n, struct stat_clusters *c, struct nearest *near)
{
    double best = 0;
    size_t chosen = SIZE_MAX;
    for (size_t h = 0; h < n; h++) {
        if (is_medoid(c, h))
            continue;
        double sum = 0;
        for (size_t i = 0; i < n; i++) {
            float d = distance[h * n + i];
            sum += c->k && near[i].first < d ? near[i].first : d;
        }
        if (chosen == SIZE_MAX || sum < best) {
            best = sum;
            chosen = h;
        }
    }
    c->medoid[c->k++] = chosen;
    find_nearest(distance, n, c, near);
}

/* Computes how the sum of distances changes (below 0: gain) if h replaces each medoid. All k are computed at once: the
 * choice of the medoid only matters for its own things (Schubert & Rousseeuw 2019). */
static void weigh_swaps(const float *row, size_t n, size_t k, const struct nearest *near, double *gain)
{
    double shared = 0;
    memset(gain, 0, k * sizeof *gain);
    for (size_t i = 0; i < n; i++) {
        float d = row[i];
        if (d < near[i].first)
            shared += d - near[i].first;
        else
            gain[near[i].of] += (d < near[i].second ? d : near[i].second) - near[i].first;
    }
    for (size_t m = 0; m < k; m++)
        gain[m] += shared;
}

/* SWAP: makes the best exchange; false if none helps. */
static bool swap_medoid(const float *distance, size_t n, struct stat_clusters *c, struct nearest *near)
{
    double best = -1e-6, gain[STAT_CLUSTERS];
    size_t out = 0, in = SIZE_MAX;
    for (size_t h = 0; h < n; h++) {
        if (is_medoid(c, h))
            continue;
        weigh_swaps(distance + h * n, n, c->k, near, gain);
        for (size_t k = 0; k < c->k; k++)
            if (gain[k] < best) {
                best = gain[k];
                out = k;
                in = h;
            }
    }
    if (in == SIZE_MAX)
        return false;
    c->medoid[out] = in;
    find_nearest(distance, n, c, near);
    return true;
}

static double silhouette(const float *distance, size_t n, size_t k, const uint8_t *of)
{
    size_t size[STAT_CLUSTERS] = {0};
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        size[of[i]]++;
    for (size_t i = 0; i < n; i++) {
        double to[STAT_CLUSTERS] = {0}, own, other = DBL_MAX;
        for (size_t j = 0; j < n; j++)
            to[of[j]] += distance[i * n + j];
        if (size[of[i]] < 2)
            continue;
        own = to[of[i]] / (double)(size[of[i]] - 1);
        for (size_t c = 0; c < k; c++)
            if (c != of[i] && size[c] && to[c] / (double)size[c] < other)
                other = to[c] / (double)size[c];
        double larger = own > other ? own : other;
        sum += larger > 0 && other < DBL_MAX ? (other - own) / larger : 0;
    }
    return n ? sum / (double)n : 0;
}

/* Swaps until nothing helps, and writes the partition. It ends, since each swap makes the sum smaller. */
static void settle(const float *distance, size_t n, struct stat_clusters *c, struct nearest *near, uint8_t *of)
{
    for (int i = 0; i < 100 && swap_medoid(distance, n, c, near); i++)
        ;
    for (size_t i = 0; i < n; i++)
        of[i] = near[i].of;
    c->silhouette = silhouette(distance, n, c->k, of);
}

void stat_medoids_k(const float *distance, size_t n, size_t k, struct stat_clusters *c, uint8_t *of)
{
    struct nearest *near = mem_alloc((n + 1) * sizeof *near);
    c->k = 0;
    while (c->k < k)
        add_medoid(distance, n, c, near);
    settle(distance, n, c, near, of);
    free(near);
}

static size_t smallest(const uint8_t *of, size_t n, size_t k)
{
    size_t size[STAT_CLUSTERS] = {0}, least = n;
    for (size_t i = 0; i < n; i++)
        size[of[i]]++;
    for (size_t c = 0; c < k; c++)
        least = size[c] < least ? size[c] : least;
    return least;
}

void stat_medoids(const float *distance, size_t n, size_t most, size_t least, struct stat_clusters *best, uint8_t *of)
{
    struct nearest *near = mem_alloc((n + 1) * sizeof *near), *moved = mem_alloc((n + 1) * sizeof *moved);
    uint8_t *trial = mem_alloc(n + 1);
    struct stat_clusters grown = {0};
    *best = (struct stat_clusters){0};
    memset(of, 0, n);
    while (grown.k < most && grown.k < STAT_CLUSTERS && grown.k < n) {
        add_medoid(distance, n, &grown, near);
        if (grown.k < 2)
            continue;
        struct stat_clusters c = grown;
        memcpy(moved, near, n * sizeof *near);
        settle(distance, n, &c, moved, trial);
        if (smallest(trial, n, c.k) < least || (best->k && c.silhouette <= best->silhouette))
            continue;
        *best = c;
        memcpy(of, trial, n);
    }
    free(near);
    free(moved);
    free(trial);
}
