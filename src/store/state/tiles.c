/* SPDX-License-Identifier: MIT */
/* Tiles of latencies: made while latencies are packed. */
#include "state/tiles.h"

#include <stdlib.h>
#include <string.h>

/* ---- single tiles ---- */

static __attribute__((noinline)) size_t add_name(struct tile_next *m, uint32_t code)
{
    if (code >= m->index_of.n) {
        size_t more = (size_t)code + 1 - m->index_of.n;
        vec_reserve(&m->index_of, more);
        memset(m->index_of.v + m->index_of.n, 0, more * sizeof *m->index_of.v);
        m->index_of.n += more;
    }
    vec_push(&m->figures, ((struct state_disk_figures){.code = code, .least = INT64_MAX, .most = INT64_MIN}));
    m->index_of.v[code] = (uint32_t)m->figures.n;
    return m->figures.n - 1;
}

static inline size_t index_of(struct tile_next *m, uint32_t code)
{
    return code < m->index_of.n && m->index_of.v[code] ? m->index_of.v[code] - 1 : add_name(m, code);
}

/* Measures the latencies of a tile of level 0. */
static void measure(struct tile_next *m, const int64_t *durations, const int64_t *codes, size_t n)
{
    m->latencies = n;
    for (size_t i = 0; i < n; i++) {
        size_t k = index_of(m, (uint32_t)codes[i]);
        struct state_disk_figures *f = &m->figures.v[k];
        int64_t d = durations[i];
        if (d < f->least) {
            f->least = d;
            f->least_at = (uint32_t)i;
        }
        if (d > f->most) {
            f->most = d;
            f->most_at = (uint32_t)i;
        }
        f->n++;
        f->sum = figures_sum(f->sum, d);
        tile_add_squares(f, state_square(d));
    }
}

/* Adds a tile of the level below. */
static void join(struct tile_next *m, const struct tile_next *part)
{
    for (size_t i = 0; i < part->figures.n; i++) {
        const struct state_disk_figures *f = &part->figures.v[i];
        size_t k = index_of(m, f->code); /* may move the figures */
        struct state_disk_figures *to = &m->figures.v[k];
        if (f->least < to->least) {
            to->least = f->least;
            to->least_at = (uint32_t)m->latencies + f->least_at;
        }
        if (f->most > to->most) {
            to->most = f->most;
            to->most_at = (uint32_t)m->latencies + f->most_at;
        }
        tile_add_squares(to, tile_squares(f));
        to->n += f->n;
        to->sum = figures_sum(to->sum, f->sum);
    }
    m->latencies += part->latencies;
}

static void append(struct tile_list *to, const struct state_disk_figures *figures, size_t n)
{
    vec_reserve(&to->figures, n);
    if (n)
        memcpy(to->figures.v + to->figures.n, figures, n * sizeof *figures);
    to->figures.n += n;
}

/* ---- levels ---- */

/* Finds the codes of the next tile of level 0 that no tile before it has. Each code is met for the first time where its
 * figures were added, so they are in order. */
static void find_firsts(struct tiles *t, size_t n)
{
    const struct tile_next *m = &t->levels[0].next;
    size_t at = 0;
    for (size_t i = 0; i < m->figures.n; i++) {
        uint32_t code = m->figures.v[i].code;
        while (t->met.n <= code)
            vec_push(&t->met, false);
        if (t->met.v[code])
            continue;
        t->met.v[code] = true;
        while (at + 1 < n && (uint32_t)t->codes[at] != code)
            at++;
        vec_push(&t->firsts, ((struct tile_first){t->n - n + at, code}));
    }
}

/* Makes a tile of the first n added latencies. */
static void measure_next(struct tiles *t, size_t n)
{
    measure(&t->levels[0].next, t->durations, t->codes, n);
    find_firsts(t, n);
}

/* Completes the level's next tile. */
static void complete(struct tiles *t, int level)
{
    struct tile_level *l = &t->levels[level];
    vec_push(&l->complete.first, l->complete.figures.n);
    append(&l->complete, l->next.figures.v, l->next.figures.n);
    if (level + 1 < TILE_LEVELS) {
        join(&l[1].next, &l->next);
        if (l[1].next.latencies == tile_size(level + 1))
            complete(t, level + 1);
    }
    for (size_t i = 0; i < l->next.figures.n; i++)
        l->next.index_of.v[l->next.figures.v[i].code] = 0;
    l->next.figures.n = 0;
    l->next.latencies = 0;
}

void state_tiles_add(struct tiles *t, const int64_t *durations, const int64_t *codes, size_t n)
{
    size_t at = t->n % TILE_ITEMS;
    memcpy(t->durations + at, durations, n * sizeof *durations);
    memcpy(t->codes + at, codes, n * sizeof *codes);
    t->n += n;
    if (at + n == TILE_ITEMS) {
        measure_next(t, TILE_ITEMS);
        complete(t, 0);
    }
}

void state_tiles_end(struct tiles *t)
{
    if (t->n % TILE_ITEMS)
        measure_next(t, t->n % TILE_ITEMS);
    for (int level = 0; level < TILE_LEVELS; level++)
        if (t->levels[level].next.latencies)
            complete(t, level);
}

void state_tiles_list(const struct tiles *t, struct tile_list *to)
{
    for (int level = 0; level < tile_levels(t->n); level++) {
        const struct tile_list *l = &t->levels[level].complete;
        vec_reserve(&to->first, l->first.n);
        for (size_t i = 0; i < l->first.n; i++)
            to->first.v[to->first.n++] = to->figures.n + l->first.v[i];
        append(to, l->figures.v, l->figures.n);
    }
}

void state_tile_list_fini(struct tile_list *l)
{
    vec_free(&l->first);
    vec_free(&l->figures);
}

void state_tiles_fini(struct tiles *t)
{
    for (int level = 0; level < TILE_LEVELS; level++) {
        struct tile_next *m = &t->levels[level].next;
        state_tile_list_fini(&t->levels[level].complete);
        vec_free(&m->figures);
        vec_free(&m->index_of);
    }
    vec_free(&t->firsts);
    vec_free(&t->met);
    memset(t, 0, sizeof *t);
}
