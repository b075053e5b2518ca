/* SPDX-License-Identifier: MIT */
/* Calls by function: figures of a range and how many are how long, from tiles (tiles.h) and the two ends; numbers
 * of WHOLE calls. */
#include "stack/list.h"
#include "stack/tiles.h"

/* Calls of a range in one part of its row, by the part's numbers, and their tiles. */
struct part_tiles {
    const struct stack_part *part;
    const struct stack_chunk *s;
    uint64_t from, to;
    struct tile_set tiles;
};

/* Takes them off the range; false: nothing is left of it. */
static bool take_part(const struct stack_store *s, size_t row, size_t *first, size_t end, struct part_tiles *out)
{
    const struct stack_row *r = &s->rows[row];
    if (*first >= end || *first >= r->calls)
        return false;
    const struct stack_part *p = stack_part_of(r, *first);
    uint64_t to = end - p->first < p->n ? end - p->first : p->n;
    *out = (struct part_tiles){p, p->chunk, *first - p->first, to, tile_set(p->n, p->chunk->first_tile[p->row])};
    *first = p->first + to;
    return true;
}

static struct tile_piece piece_at(const struct part_tiles *r, uint64_t i, uint64_t end, int below)
{
    return tile_piece(&r->tiles, i, end, below, TILE_ITEMS);
}

static size_t figures_in(const struct part_tiles *r, const struct tile_piece *p, const struct stack_disk_figures **out)
{
    const size_t n = r->s->tiles[p->tile + 1] - r->s->tiles[p->tile];
    *out = n ? r->s->figures + r->s->tiles[p->tile] : NULL;
    return n;
}

/* Returns call i; its function has the chunk's number. */
static struct stack_call call_at(const struct part_tiles *r, uint64_t i)
{
    return stack_row_call(r->s, r->part->row, i);
}

/* ---- figures ---- */

/* Notes the shortest call. Of equal ones the earliest counts, in whichever order they come. */
static void note_shortest(struct figures *f, const struct stack_call *c)
{
    int64_t duration = c->end - c->begin;
    if (!f->n || duration < f->least || (duration == f->least && c->begin < f->least_begin)) {
        f->least = duration;
        f->least_begin = c->begin;
    }
}

static void note_longest(struct figures *f, const struct stack_call *c)
{
    int64_t duration = c->end - c->begin;
    if (!f->n || duration > f->most || (duration == f->most && c->begin < f->most_begin)) {
        f->most = duration;
        f->most_begin = c->begin;
    }
}

static void join_tile(const struct part_tiles *r, const struct tile_piece *p, struct stack_figures *of)
{
    const struct stack_disk_figures *f;
    for (size_t i = 0, n = figures_in(r, p, &f); i < n; i++) {
        struct stack_call least = call_at(r, p->first + f[i].least), most = call_at(r, p->first + f[i].most);
        struct stack_figures *to = &of[r->s->function_of[f[i].function]];
        note_shortest(&to->calls, &least);
        note_longest(&to->calls, &most);
        to->calls.n += f[i].n;
        to->calls.sum = figures_sum(to->calls.sum, f[i].sum);
        to->self = figures_sum(to->self, f[i].self);
        to->squares += stack_squares(&f[i]);
    }
}

static void join_calls(const struct part_tiles *r, const struct tile_piece *p, struct stack_figures *of)
{
    size_t row = r->part->row, below = 0;
    if (r->s->has_below[row])
        below = stack_row_begun(r->s, row + 1, call_at(r, p->first).begin);
    for (uint64_t i = p->first; i < p->end; i++) {
        struct stack_call c = call_at(r, i);
        if (c.how != STACK_WHOLE)
            continue;
        struct stack_figures *to = &of[r->s->function_of[c.function]];
        note_shortest(&to->calls, &c);
        note_longest(&to->calls, &c);
        to->calls.n++;
        to->calls.sum = figures_sum(to->calls.sum, c.end - c.begin);
        to->self = figures_sum(to->self, stack_self(r->s, row, i, &c, &below));
        to->squares += figures_square(c.end - c.begin);
    }
}

void stack_figures(const struct stack_store *s, size_t row, size_t first, size_t end, struct stack_figures *of)
{
    struct part_tiles r;
    while (take_part(s, row, &first, end, &r))
        for (uint64_t at = r.from; at < r.to;) {
            struct tile_piece p = piece_at(&r, at, r.to, r.tiles.levels);
            if (p.level < 0)
                join_calls(&r, &p, of);
            else
                join_tile(&r, &p, of);
            at = p.end;
        }
}

void stack_figures_spread(struct stack_figures *of, size_t n)
{
    for (size_t i = 0; i < n; i++)
        of[i].calls.spread = figures_exact_spread(of[i].calls.n, of[i].calls.sum, of[i].squares);
}

/* ---- the shortest and the longest ---- */

struct extremes {
    struct stack_extremes *of;
    uint32_t *reached;
    size_t n;
};

static inline void reach(struct extremes *g, const struct stack_chunk *s, const struct stack_call *c)
{
    uint32_t function = s->function_of[c->function];
    struct stack_extremes *x = &g->of[function];
    int64_t duration = c->end - c->begin;
    if (!x->any) {
        *x = (struct stack_extremes){duration, duration, c->begin, c->begin, true};
        g->reached[g->n++] = function;
    }
    if (duration < x->least || (duration == x->least && c->begin < x->least_begin)) {
        x->least = duration;
        x->least_begin = c->begin;
    }
    if (duration > x->most || (duration == x->most && c->begin < x->most_begin)) {
        x->most = duration;
        x->most_begin = c->begin;
    }
}

static void reach_part(struct extremes *g, const struct part_tiles *r)
{
    const struct stack_disk_figures *f;
    for (uint64_t at = r->from; at < r->to;) {
        struct tile_piece p = piece_at(r, at, r->to, r->tiles.levels);
        for (uint64_t i = p.first; p.level < 0 && i < p.end; i++) {
            struct stack_call c = call_at(r, i);
            if (c.how == STACK_WHOLE)
                reach(g, r->s, &c);
        }
        for (size_t i = 0, of_tile = p.level < 0 ? 0 : figures_in(r, &p, &f); i < of_tile; i++) {
            struct stack_call least = call_at(r, p.first + f[i].least), most = call_at(r, p.first + f[i].most);
            reach(g, r->s, &least);
            reach(g, r->s, &most);
        }
        at = p.end;
    }
}

size_t stack_extremes(const struct stack_store *s, size_t row, size_t first, size_t end, struct stack_extremes *of,
    uint32_t *reached, size_t n)
{
    struct extremes g = {of, reached, n};
    struct part_tiles r;
    while (take_part(s, row, &first, end, &r))
        reach_part(&g, &r);
    return g.n;
}

/* ---- histogram of durations ---- */

struct call_histogram {
    const struct part_tiles *r;
    int64_t width;
    size_t n;
    uint64_t *counts;
};

static size_t bucket(const struct call_histogram *c, const struct stack_call *call)
{
    return figures_range(call->end - call->begin, c->width, c->n);
}

/* False: some function's calls of the tile belong into several buckets; nothing is counted then. */
static bool count_tile(const struct call_histogram *c, const struct tile_piece *p)
{
    const struct stack_disk_figures *f;
    size_t n = figures_in(c->r, p, &f);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < n; i++) {
            struct stack_call most = call_at(c->r, p->first + f[i].most);
            if (pass) {
                c->counts[bucket(c, &most)] += f[i].n;
                continue;
            }
            struct stack_call least = call_at(c->r, p->first + f[i].least);
            if (bucket(c, &least) != bucket(c, &most))
                return false;
        }
    return true;
}

static void count_range(const struct call_histogram *c, uint64_t first, uint64_t end, int below)
{
    for (uint64_t at = first; at < end;) {
        struct tile_piece p = piece_at(c->r, at, end, below);
        for (uint64_t i = p.first; p.level < 0 && i < p.end; i++) {
            struct stack_call call = call_at(c->r, i);
            if (call.how == STACK_WHOLE)
                c->counts[bucket(c, &call)]++;
        }
        if (p.level >= 0 && !count_tile(c, &p))
            count_range(c, at, p.end, p.level);
        at = p.end;
    }
}

void stack_histogram(
    const struct stack_store *s, size_t row, size_t first, size_t end, int64_t width, size_t n, uint64_t *counts)
{
    struct part_tiles r;
    struct call_histogram c = {&r, width, n, counts};
    while (take_part(s, row, &first, end, &r))
        count_range(&c, r.from, r.to, r.tiles.levels);
}

/* ---- WHOLE calls counted ---- */

size_t stack_whole_before(const struct stack_store *s, size_t row, size_t i)
{
    const struct stack_row *r = &s->rows[row];
    if (!i || !r->n_parts)
        return 0;
    const struct stack_part *p = stack_part_of(r, i - 1); /* looked up by the last call: the position behind it may be
                                                           * the end of a tile */
    size_t last = i - 1 - p->first, tile = last / TILE_ITEMS;
    size_t n = p->whole + p->chunk->whole[p->chunk->first_finest[p->row] + tile];
    for (size_t k = tile * TILE_ITEMS; k <= last; k++)
        n += stack_how_of(&p->calls[k]) == STACK_WHOLE;
    return n;
}

size_t stack_whole_at(const struct stack_store *s, size_t row, size_t k)
{
    const struct stack_row *r = &s->rows[row];
    const struct stack_part
        *p = &r->parts[r->n_parts > 1 ? search_first(i, 1, r->n_parts, r->parts[i].whole > k) - 1 : 0];
    const uint64_t *whole = p->chunk->whole + p->chunk->first_finest[p->row];
    k -= p->whole;
    size_t n = p->n, tile = search_first(i, 1, tile_count(n, 0), whole[i] > k) - 1;
    size_t left = k - whole[tile], i = tile * TILE_ITEMS;
    for (; i < n; i++)
        if (stack_how_of(&p->calls[i]) == STACK_WHOLE && left-- == 0)
            break;
    return p->first + i;
}
