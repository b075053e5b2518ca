/* Tiles of latencies: made when a store is written. */
#include "state/tiles.h"

#include <stdlib.h>

/* One tile while it is made: figures by name in order of first use. */
struct making {
    VEC(struct state_disk_figures) figures;
    VEC(int64_t) least, most; /* their durations */
    uint32_t *place_of;       /* by code: 1 + place in figures; 0: none yet */
};

static size_t place_of(struct making *m, uint32_t code)
{
    if (!m->place_of[code]) {
        vec_push(&m->figures, ((struct state_disk_figures){.code = code}));
        vec_push(&m->least, 0);
        vec_push(&m->most, 0);
        m->place_of[code] = (uint32_t)m->figures.n;
    }
    return m->place_of[code] - 1;
}

/* Adds the figures of a tile below; its shortest and longest took `least` and `most`. */
static void join(struct making *m, const struct state_disk_figures *f, int64_t least, int64_t most)
{
    size_t i = place_of(m, f->code);
    struct state_disk_figures *to = &m->figures.v[i];
    if (!to->n || least < m->least.v[i]) {
        m->least.v[i] = least;
        to->least = f->least;
    }
    if (!to->n || most > m->most.v[i]) {
        m->most.v[i] = most;
        to->most = f->most;
    }
    to->spread = to->n ? tile_spread(to->n, to->sum, to->spread, f->n, f->sum, f->spread) : f->spread;
    to->n += f->n;
    to->sum = (int64_t)((uint64_t)to->sum + (uint64_t)f->sum);
}

static void end_tile(struct tiles *t, struct making *m)
{
    vec_push(&t->first, t->figures.n);
    for (size_t i = 0; i < m->figures.n; i++) {
        m->place_of[m->figures.v[i].code] = 0;
        vec_push(&t->figures, m->figures.v[i]);
    }
    m->figures.n = m->least.n = m->most.n = 0;
}

static int64_t duration_at(const struct latencies *l, uint64_t i)
{
    const struct state_disk_head *h = &l->columns[STATE_DURATION].heads.v[i / STATE_BLOCK];
    return (int64_t)((uint64_t)h->base +
        pack_get(series_bytes_at(l->bytes, h->position & (UINT64_MAX >> 8)), i % STATE_BLOCK, (uint8_t)(h->position >> 56)));
}

/* The n latencies of one tile of level 0. */
static void add_latencies(struct making *m, const int64_t *durations, const int64_t *codes, size_t n)
{
    size_t place[TILE_LATENCIES];
    double mean[TILE_LATENCIES];
    for (size_t i = 0; i < n; i++) {
        size_t k = place[i] = place_of(m, (uint32_t)codes[i]);
        struct state_disk_figures *f = &m->figures.v[k];
        int64_t d = durations[i];
        if (!f->n || d < m->least.v[k]) {
            m->least.v[k] = d;
            f->least = (uint32_t)i;
        }
        if (!f->n || d > m->most.v[k]) {
            m->most.v[k] = d;
            f->most = (uint32_t)i;
        }
        f->n++;
        f->sum = (int64_t)((uint64_t)f->sum + (uint64_t)d);
    }
    for (size_t k = 0; k < m->figures.n; k++)
        mean[k] = (double)m->figures.v[k].sum / m->figures.v[k].n;
    for (size_t i = 0; i < n; i++) {
        double from = (double)durations[i] - mean[place[i]];
        m->figures.v[place[i]].spread += from * from;
    }
}

static void add_finest(struct tiles *t, struct making *m, const struct latencies *l)
{
    const struct series_column *durations = &l->columns[STATE_DURATION], *codes = &l->columns[STATE_LATENCY_CODE];
    int64_t d[TILE_LATENCIES], c[TILE_LATENCIES];
    for (uint64_t first = 0, n; first < durations->n; first += n) {
        n = durations->n - first < TILE_LATENCIES ? durations->n - first : TILE_LATENCIES;
        for (uint64_t at = 0; at < n; at += STATE_BLOCK) {
            size_t block = (first + at) / STATE_BLOCK, some = n - at < STATE_BLOCK ? n - at : STATE_BLOCK;
            series_column_take(l->bytes, &durations->heads.v[block], some, d + at);
            series_column_take(l->bytes, &codes->heads.v[block], some, c + at);
        }
        add_latencies(m, d, c, n);
        end_tile(t, m);
    }
}

/* From the tiles of the level below, which begin at `below`. */
static void add_level(struct tiles *t, struct making *m, const struct latencies *l, size_t below, uint64_t n_below, int level)
{
    for (uint64_t k = 0; k < n_below; k++) {
        uint64_t base = k * tile_size(level - 1), within = base % tile_size(level);
        size_t end = below + k + 1 < t->first.n ? t->first.v[below + k + 1] : t->figures.n;
        for (size_t i = t->first.v[below + k]; i < end; i++) {
            struct state_disk_figures f = t->figures.v[i];
            int64_t least = duration_at(l, base + f.least), most = duration_at(l, base + f.most);
            f.least += (uint32_t)within;
            f.most += (uint32_t)within;
            join(m, &f, least, most);
        }
        if (k % TILE_FAN == TILE_FAN - 1 || k == n_below - 1)
            end_tile(t, m);
    }
}

void tiles_add(struct tiles *t, const struct latencies *l, size_t n_codes)
{
    struct making m = {.place_of = mem_zalloc((n_codes + 1) * sizeof *m.place_of)};
    uint64_t n = l->columns[STATE_DURATION].n;
    size_t below = t->first.n, here;
    if (n)
        add_finest(t, &m, l);
    for (int level = 1; level < tile_levels(n); level++, below = here) {
        here = t->first.n;
        add_level(t, &m, l, below, tile_count(n, level - 1), level);
    }
    vec_free(&m.figures);
    vec_free(&m.least);
    vec_free(&m.most);
    free(m.place_of);
}

void tiles_finish(struct tiles *t)
{
    vec_push(&t->first, t->figures.n);
}

void tiles_fini(struct tiles *t)
{
    vec_free(&t->first);
    vec_free(&t->figures);
}
