/* SPDX-License-Identifier: MIT */
/* Tiles of calls: made when a store is written. */
#include "stack/tiles.h"

#include <stdlib.h>

/* The tile that is being summed up: figures by function in order of first use. */
struct next_tile {
    const struct stack_chunk *s;
    VEC(struct stack_disk_figures) figures;
    VEC(int64_t) least, most; /* durations of the shortest and longest calls of `figures` */
    uint32_t *index_of;       /* by function: 1 + index in figures; 0: none yet */
};

static size_t index_of(struct next_tile *m, uint32_t function)
{
    if (!m->index_of[function]) {
        vec_push(&m->figures, ((struct stack_disk_figures){.function = function}));
        vec_push(&m->least, INT64_MAX);
        vec_push(&m->most, -1);
        m->index_of[function] = (uint32_t)m->figures.n;
    }
    return m->index_of[function] - 1;
}

static void add_squares(struct stack_disk_figures *f, figures_squares more)
{
    figures_squares sum = stack_squares(f) + more;
    f->squares[0] = (uint64_t)sum;
    f->squares[1] = (uint64_t)(sum >> 64);
}

/* Adds figures whose shortest and longest call took `least` and `most`. */
static void join(struct next_tile *m, const struct stack_disk_figures *f, int64_t least, int64_t most)
{
    size_t i = index_of(m, f->function);
    struct stack_disk_figures *to = &m->figures.v[i];
    if (least < m->least.v[i]) {
        m->least.v[i] = least;
        to->least = f->least;
    }
    if (most > m->most.v[i]) {
        m->most.v[i] = most;
        to->most = f->most;
    }
    add_squares(to, stack_squares(f));
    to->n += f->n;
    to->sum = figures_sum(to->sum, f->sum);
    to->self = figures_sum(to->self, f->self);
}

static void end_tile(struct stack_tiles *t, struct next_tile *m)
{
    vec_push(&t->first, t->figures.n);
    for (size_t i = 0; i < m->figures.n; i++) {
        m->index_of[m->figures.v[i].function] = 0;
        vec_push(&t->figures, m->figures.v[i]);
    }
    m->figures.n = m->least.n = m->most.n = 0;
}

int64_t stack_time_within(const struct stack_chunk *s, size_t row, int64_t begin, int64_t end, size_t *at)
{
    int64_t sum = 0;
    for (; *at < s->rows[row].calls; ++*at) {
        struct stack_call c = stack_row_call(s, row, *at);
        if (c.begin >= end)
            break;
        if (c.begin >= begin && c.how != STACK_UNKNOWN)
            sum = figures_sum(sum, c.end - c.begin);
    }
    return sum;
}

int64_t stack_self(const struct stack_chunk *s, size_t row, uint64_t i, const struct stack_call *c, size_t *below)
{
    int64_t before = i ? 0 : s->rows[row].below,
            within = s->has_below[row] ? stack_time_within(s, row + 1, c->begin, c->end, below) : 0;
    return (int64_t)((uint64_t)(c->end - c->begin) - (uint64_t)before - (uint64_t)within);
}

static void add_call(struct next_tile *m, size_t k, int64_t duration, int64_t self, uint32_t index)
{
    struct stack_disk_figures *f = &m->figures.v[k];
    if (duration < m->least.v[k]) {
        m->least.v[k] = duration;
        f->least = index;
    }
    if (duration > m->most.v[k]) {
        m->most.v[k] = duration;
        f->most = index;
    }
    f->n++;
    f->sum = figures_sum(f->sum, duration);
    f->self = figures_sum(f->self, self);
    add_squares(f, figures_square(duration));
}

/* Calls first … end - 1, one tile; returns how many are WHOLE. *below: as stack_time_within leaves it. */
static size_t add_calls(struct next_tile *m, size_t row, uint64_t first, uint64_t end, size_t *below)
{
    size_t n = 0;
    for (uint64_t i = first; i < end; i++) {
        struct stack_call c = stack_row_call(m->s, row, i);
        if (c.how != STACK_WHOLE)
            continue;
        add_call(
            m, index_of(m, c.function), c.end - c.begin, stack_self(m->s, row, i, &c, below), (uint32_t)(i - first));
        n++;
    }
    return n;
}

static void add_finest(struct stack_tiles *t, struct next_tile *m, size_t row)
{
    uint64_t calls = m->s->rows[row].calls, whole = 0;
    size_t below = 0;
    for (uint64_t i = 0; i < calls; i += TILE_ITEMS) {
        vec_push(&t->whole, whole);
        whole += add_calls(m, row, i, calls - i < TILE_ITEMS ? calls : i + TILE_ITEMS, &below);
        end_tile(t, m);
    }
}

static int64_t duration_at(const struct next_tile *m, size_t row, uint64_t i)
{
    struct stack_call c = stack_row_call(m->s, row, i);
    return c.end - c.begin;
}

/* Adds a level from the tiles of the level below, which begin at `below`. */
static void add_level(struct stack_tiles *t, struct next_tile *m, size_t row, size_t below, uint64_t n_below, int level)
{
    for (uint64_t k = 0; k < n_below; k++) {
        uint64_t base = k * tile_size(level - 1), within = base % tile_size(level);
        size_t end = below + k + 1 < t->first.n ? t->first.v[below + k + 1] : t->figures.n;
        for (size_t i = t->first.v[below + k]; i < end; i++) {
            struct stack_disk_figures f = t->figures.v[i];
            int64_t least = duration_at(m, row, base + f.least), most = duration_at(m, row, base + f.most);
            f.least += (uint32_t)within;
            f.most += (uint32_t)within;
            join(m, &f, least, most);
        }
        if (k % TILE_FAN == TILE_FAN - 1 || k == n_below - 1)
            end_tile(t, m);
    }
}

static void add_row(struct stack_tiles *t, struct next_tile *m, size_t row)
{
    uint64_t calls = m->s->rows[row].calls;
    size_t below = t->first.n, here;
    add_finest(t, m, row);
    for (int level = 1; level < tile_levels(calls); level++, below = here) {
        here = t->first.n;
        add_level(t, m, row, below, tile_count(calls, level - 1), level);
    }
}

void stack_tiles_make(struct stack_tiles *t, const struct stack_chunk *s)
{
    struct next_tile m = {.s = s, .index_of = mem_zalloc((s->n_functions + 1) * sizeof *m.index_of)};
    for (size_t row = 0; row < s->n_rows; row++)
        add_row(t, &m, row);
    vec_push(&t->first, t->figures.n);
    vec_free(&m.figures);
    vec_free(&m.least);
    vec_free(&m.most);
    free(m.index_of);
}

void stack_tiles_fini(struct stack_tiles *t)
{
    vec_free(&t->first);
    vec_free(&t->figures);
    vec_free(&t->whole);
}
