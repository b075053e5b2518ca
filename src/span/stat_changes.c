/* Changes of level, and p-values of many questions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "base/search.h"
#include "span/statistics.h"

struct stat_change stat_pettitt(const double *v, size_t n)
{
    struct stat_change c = {.p = 1};
    double *sorted = mem_alloc((n + 1) * sizeof *sorted), ranks = 0, most = 0;
    memcpy(sorted, v, n * sizeof *sorted);
    stat_sort(sorted, n);
    for (size_t t = 0; t + 1 < n; t++) {
        size_t below = search_first(i, 0, n, sorted[i] >= v[t]), upto = search_first(i, below, n, sorted[i] > v[t]);
        ranks += (double)(below + upto + 1); /* twice the mean rank */
        double u = fabs(ranks - (double)(t + 1) * (double)(n + 1));
        if (u > most) {
            most = u;
            c.at = t + 1;
        }
    }
    free(sorted);
    double size = (double)n, p = 2 * exp(-6 * most * most / (size * size * size + size * size));
    c.p = p < 1 ? p : 1;
    return c;
}

/* A time still to be asked about. */
struct era {
    size_t from, to;
    double alpha;
};

static int by_place(const void *a, const void *b)
{
    return order_of(((const struct stat_change *)a)->at, ((const struct stat_change *)b)->at);
}

/* Each change again, between its neighbours: while another level lay on one side it was found less exactly, and what
 * such an error left over may have looked like a change. Returns how many remain. */
static size_t find_exactly(const double *v, size_t n, size_t least, double alpha, struct stat_change *c, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        size_t from = kept ? c[kept - 1].at : 0, to = i + 1 < count ? c[i + 1].at : n;
        struct stat_change again = stat_pettitt(v + from, to - from);
        if (again.p > alpha || again.at < least || to - from - again.at < least)
            continue;
        c[kept++] = (struct stat_change){from + again.at, again.p};
    }
    return kept;
}

size_t stat_changes(const double *v, size_t n, size_t least, double alpha, struct stat_change *out, size_t cap)
{
    VEC(struct era) todo = {0};
    size_t found = 0;
    vec_push(&todo, ((struct era){0, n, alpha / 2}));
    while (todo.n && found < cap) {
        struct era s = todo.v[--todo.n];
        if (s.to - s.from < 2 * least)
            continue;
        struct stat_change c = stat_pettitt(v + s.from, s.to - s.from);
        c.at += s.from;
        if (c.p > s.alpha || c.at - s.from < least || s.to - c.at < least)
            continue;
        out[found++] = c;
        vec_push(&todo, ((struct era){s.from, c.at, s.alpha / 4}));
        vec_push(&todo, ((struct era){c.at, s.to, s.alpha / 4}));
    }
    vec_free(&todo);
    if (found)
        qsort(out, found, sizeof *out, by_place);
    return find_exactly(v, n, least, alpha / 2, out, found);
}

/* ---- many p-values ---- */

struct ranked {
    double p;
    size_t at;
};

static int by_p(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return order_of(x->p, y->p) ?: order_of(x->at, y->at);
}

static struct ranked *rank_all(const double *p, size_t n)
{
    struct ranked *r = mem_alloc((n + 1) * sizeof *r);
    for (size_t i = 0; i < n; i++)
        r[i] = (struct ranked){p[i], i};
    if (n)
        qsort(r, n, sizeof *r, by_p);
    return r;
}

void stat_benjamini_hochberg(double *p, size_t n)
{
    struct ranked *r = rank_all(p, n);
    double least = 1;
    for (size_t i = n; i-- > 0;) {
        double corrected = r[i].p * (double)n / (double)(i + 1);
        least = corrected < least ? corrected : least;
        p[r[i].at] = least;
    }
    free(r);
}

void stat_holm(double *p, size_t n)
{
    struct ranked *r = rank_all(p, n);
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        double corrected = r[i].p * (double)(n - i);
        most = corrected > most ? corrected : most;
        p[r[i].at] = most < 1 ? most : 1;
    }
    free(r);
}
