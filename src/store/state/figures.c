/* SPDX-License-Identifier: MIT */
/* Latencies by name: figures and histogram of a range, from tiles (tiles.h) and the two ends. The contents of tiles
 * were not checked on opening: invalid ones are skipped here. */
#include <stdlib.h>

#include "state/chunk.h"
#include "state/figures.h"
#include "state/tiles.h"

/* Table of one kind and its tiles. */
struct kind_tiles {
    const struct state_chunk *s;
    const struct state_disk_table *table;
    int kind;
    struct tile_set tiles;
};

size_t state_tiles(const struct state_chunk *s, int kind)
{
    size_t tiles = 0;
    for (int k = 0; k < kind; k++)
        tiles += tile_total(state_latency_table(s, k)->n);
    return tiles;
}

static struct kind_tiles kind_tiles(const struct state_chunk *s, int kind)
{
    const struct state_disk_table *table = state_latency_table(s, kind);
    return (struct kind_tiles){s, table, kind, tile_set(table->n, state_tiles(s, kind))};
}

static struct tile_piece piece_at(const struct kind_tiles *r, uint64_t i, uint64_t end, int below)
{
    return tile_piece(&r->tiles, i, end, below, STATE_BLOCK);
}

static size_t tile_figures(
    const struct kind_tiles *r, const struct tile_piece *p, const struct state_disk_figures **out)
{
    uint64_t begin = r->s->tiles[p->tile], end = r->s->tiles[p->tile + 1];
    if (begin > end || end > r->s->n_figures ||
        end - begin > p->end - p->first) /* damaged: each name must be that of a latency */
        return 0;
    *out = r->s->figures + begin;
    return end - begin;
}

static uint32_t name_number(const struct kind_tiles *r, int64_t code)
{
    return code >= 0 && (uint64_t)code < r->s->n_codes ? r->s->latency_names[r->kind].of[code] : STATE_NO_NAME;
}

static bool sound(const struct kind_tiles *r, const struct tile_piece *p, const struct state_disk_figures *f)
{
    return name_number(r, f->code) != STATE_NO_NAME && f->n && f->least_at < p->end - p->first &&
        f->most_at < p->end - p->first;
}

static int64_t value_at(const struct kind_tiles *r, int column, uint64_t i)
{
    return state_column_at(r->s, r->table, column, i);
}

/* Reads the values of a column in the block that holds latency i. */
static void take_block(const struct kind_tiles *r, int column, uint64_t i, int64_t *out)
{
    struct column c = state_column(r->s, r->table, i / STATE_BLOCK, column);
    state_column_take(&c, out);
}

/* ---- joint order of the table and those aside ---- */

struct latency_parts {
    uint64_t first, end; /* range in the table */
    const struct state_disk_aside *aside;
    size_t n_aside;
};

static struct latency_parts parts_of(const struct kind_tiles *r, size_t first, size_t end)
{
    size_t a = state_aside_before(r->s, r->kind, first), b = state_aside_before(r->s, r->kind, end);
    uint64_t from = first - (a < first ? a : first), to = end - (b < end ? b : end);
    to = to < r->tiles.n ? to : r->tiles.n;
    return (struct latency_parts){
        from < to ? from : to, to, r->s->aside + r->s->first_aside[r->kind] + a, b > a ? b - a : 0};
}

/* ---- names ---- */

static void add_name(struct state_chunk *s, struct state_latency_names *names, uint32_t code)
{
    if (code >= s->n_codes || names->of[code] != STATE_NO_NAME)
        return;
    names->of[code] = (uint32_t)names->n;
    names->v[names->n++] = s->codes[code].name ? s->codes[code].name : "";
}

/* Early ones come first. */
void state_names_init(struct state_chunk *s)
{
    for (int kind = 0; kind < STATE_LATENCY_KINDS; kind++) {
        struct state_latency_names *names = &s->latency_names[kind];
        size_t early = s->first_aside[kind] + state_latency_table(s, kind)->early;
        names->v = mem_alloc((s->n_codes + 1) * sizeof *names->v);
        names->of = mem_alloc((s->n_codes + 1) * sizeof *names->of);
        for (size_t i = 0; i < s->n_codes; i++)
            names->of[i] = STATE_NO_NAME;
        for (size_t i = s->first_aside[kind]; i < early; i++)
            add_name(s, names, s->aside[i].code);
        for (size_t i = s->first_first[kind]; i < s->first_first[kind + 1]; i++)
            add_name(s, names, s->firsts[i].code);
    }
}

void state_names_fini(struct state_chunk *s)
{
    for (int kind = 0; kind < STATE_LATENCY_KINDS; kind++) {
        free(s->latency_names[kind].v);
        free(s->latency_names[kind].of);
    }
}

size_t state_chunk_latency_names(const struct state_chunk *s, int kind)
{
    return s->latency_names[kind].n;
}

/* ---- figures ---- */

/* Adds latencies that are not in whole tiles. The table is read in order; meanwhile least_begin and most_begin are
 * indices into it. */
static void add_latencies(const struct kind_tiles *r, const struct tile_piece *p, struct state_measure *out)
{
    int64_t durations[STATE_BLOCK], codes[STATE_BLOCK];
    take_block(r, STATE_DURATION, p->first, durations);
    take_block(r, STATE_LATENCY_CODE, p->first, codes);
    for (uint64_t i = p->first; i < p->end; i++) {
        uint32_t name = name_number(r, codes[i % STATE_BLOCK]);
        int64_t d = durations[i % STATE_BLOCK];
        if (name == STATE_NO_NAME)
            continue;
        struct state_measure *f = &out[name];
        if (!f->n || d < f->least) {
            f->least = d;
            f->least_begin = (int64_t)i;
        }
        if (!f->n || d > f->most) {
            f->most = d;
            f->most_begin = (int64_t)i;
        }
        f->n++;
        f->sum = figures_sum(f->sum, d);
        f->squares += state_square(d);
    }
}

static void join_tile(const struct kind_tiles *r, const struct tile_piece *p, struct state_measure *out)
{
    const struct state_disk_figures *f;
    for (size_t i = 0, n = tile_figures(r, p, &f); i < n; i++) {
        if (!sound(r, p, &f[i]))
            continue;
        int64_t least = (int64_t)(p->first + f[i].least_at), most = (int64_t)(p->first + f[i].most_at);
        state_measure_join(&out[name_number(r, f[i].code)],
            &(struct state_measure){f[i].n, f[i].sum, f[i].least, f[i].most, least, most, tile_squares(&f[i])});
    }
}

/* Measures the table's latencies first … end - 1, by name; least_begin and most_begin are indices into it. */
static void measure_table(const struct kind_tiles *r, uint64_t first, uint64_t end, struct state_measure *out)
{
    for (struct tile_piece p = {.end = first}; p.end < end;) {
        p = piece_at(r, p.end, end, r->tiles.levels);
        if (p.level < 0)
            add_latencies(r, &p, out);
        else
            join_tile(r, &p, out);
    }
}

/* Looks up the begins only if they matter. */
static void join_found(const struct kind_tiles *r, struct state_measure *found, struct state_measure *to)
{
    if (!to->n || found->least <= to->least)
        found->least_begin = value_at(r, STATE_BEGIN, (uint64_t)found->least_begin);
    if (!to->n || found->most >= to->most)
        found->most_begin = value_at(r, STATE_BEGIN, (uint64_t)found->most_begin);
    state_measure_join(to, found);
}

static void add_asides(
    const struct kind_tiles *r, const struct latency_parts *parts, const uint32_t *name_of, struct state_measure *out)
{
    for (size_t i = 0; i < parts->n_aside; i++) {
        uint32_t name = name_number(r, parts->aside[i].code);
        if (name != STATE_NO_NAME)
            name = name_of[name];
        if (name != STATE_NO_NAME)
            state_measure_add(&out[name], parts->aside[i].begin, parts->aside[i].duration);
    }
}

void state_chunk_measure(
    const struct state_chunk *s, int kind, size_t first, size_t end, const uint32_t *name_of, struct state_measure *out)
{
    struct kind_tiles r = kind_tiles(s, kind);
    struct latency_parts parts = parts_of(&r, first, end);
    size_t n = state_chunk_latency_names(s, kind);
    struct state_measure *found = mem_zalloc((n + 1) * sizeof *found);
    measure_table(&r, parts.first, parts.end, found);
    for (size_t i = 0; i < n; i++)
        if (found[i].n && name_of[i] != STATE_NO_NAME)
            join_found(&r, &found[i], &out[name_of[i]]);
    free(found);
    add_asides(&r, &parts, name_of, out);
}

/* ---- histogram ---- */

struct latency_histogram {
    const struct kind_tiles *r;
    int64_t width;
    size_t n;
    uint64_t *counts;
};

static size_t bucket(const struct latency_histogram *c, int64_t duration)
{
    return figures_range(duration, c->width, c->n);
}

static bool count_tile(const struct latency_histogram *c, const struct tile_piece *p)
{
    const struct state_disk_figures *f;
    size_t n = tile_figures(c->r, p, &f);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < n; i++) {
            if (!sound(c->r, p, &f[i]))
                continue;
            size_t k = bucket(c, f[i].most);
            if (pass)
                c->counts[k] += f[i].n;
            else if (k != bucket(c, f[i].least))
                return false;
        }
    return true;
}

/* Tiles whose names have all their latencies in one bucket each are counted whole; others by their parts. */
static void count_range(const struct latency_histogram *c, uint64_t first, uint64_t end, int below)
{
    int64_t durations[STATE_BLOCK];
    for (uint64_t at = first; at < end;) {
        struct tile_piece p = piece_at(c->r, at, end, below);
        if (p.level < 0) {
            take_block(c->r, STATE_DURATION, at, durations);
            for (uint64_t i = at; i < p.end; i++)
                c->counts[bucket(c, durations[i % STATE_BLOCK])]++;
        } else if (!count_tile(c, &p)) {
            count_range(c, at, p.end, p.level);
        }
        at = p.end;
    }
}

void state_chunk_latency_histogram(
    const struct state_chunk *s, int kind, size_t first, size_t end, int64_t width, size_t n, uint64_t *counts)
{
    struct kind_tiles r = kind_tiles(s, kind);
    struct latency_parts parts = parts_of(&r, first, end);
    struct latency_histogram c = {&r, width, n, counts};
    count_range(&c, parts.first, parts.end, r.tiles.levels);
    for (size_t i = 0; i < parts.n_aside; i++)
        counts[bucket(&c, parts.aside[i].duration)]++;
}
