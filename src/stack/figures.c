/* Calls by function: figures of a range and how many are how long, from tiles (tiles.h) and the two ends; numbers
 * of WHOLE calls. */
#include "base/search.h"
#include "stack/tiles.h"

/* The calls of a row and their tiles. */
struct row_tiles {
    const struct stack_store *s;
    size_t row;
    struct tile_set tiles;
};

static struct row_tiles row_tiles(const struct stack_store *s, size_t row)
{
    return (struct row_tiles){s, row, tile_set(stack_calls(s, row), s->first_tile[row])};
}

static struct tile_piece piece_at(const struct row_tiles *r, uint64_t i, uint64_t end, int below)
{
    return tile_piece(&r->tiles, i, end, below, TILE_ITEMS);
}

static size_t figures_in(const struct row_tiles *r, const struct tile_piece *p, const struct stack_disk_figures **out)
{
    *out = r->s->figures + r->s->tiles[p->tile];
    return r->s->tiles[p->tile + 1] - r->s->tiles[p->tile];
}

/* ---- figures ---- */

static void join_tile(const struct row_tiles *r, const struct tile_piece *p, struct stack_figures *of)
{
    const struct stack_disk_figures *f;
    struct stack_call least, most;
    for (size_t i = 0, n = figures_in(r, p, &f); i < n; i++) {
        stack_call(r->s, r->row, p->first + f[i].least, &least);
        stack_call(r->s, r->row, p->first + f[i].most, &most);
        figures_join(&of[f[i].function].calls,
            &(struct figures){f[i].n, f[i].sum, least.end - least.begin, most.end - most.begin, least.begin, most.begin,
                f[i].spread});
        of[f[i].function].self = figures_sum(of[f[i].function].self, f[i].self);
    }
}

static void join_calls(const struct row_tiles *r, const struct tile_piece *p, struct stack_figures *of)
{
    bool has_below = r->s->has_below[r->row];
    struct stack_call c;
    stack_call(r->s, r->row, p->first, &c);
    size_t below = has_below ? stack_begun(r->s, r->row + 1, 0, c.begin) : 0;
    for (uint64_t i = p->first; i < p->end; i++) {
        stack_call(r->s, r->row, i, &c);
        if (c.how != STACK_WHOLE)
            continue;
        int64_t duration = c.end - c.begin;
        figures_join(&of[c.function].calls, &(struct figures){1, duration, duration, duration, c.begin, c.begin, 0});
        of[c.function].self += duration - (has_below ? stack_time_within(r->s, r->row + 1, c.begin, c.end, &below) : 0);
    }
}

void stack_figures(const struct stack_store *s, size_t row, size_t first, size_t end, struct stack_figures *of)
{
    struct row_tiles r = row_tiles(s, row);
    for (uint64_t at = first; at < end;) {
        struct tile_piece p = piece_at(&r, at, end, r.tiles.levels);
        if (p.level < 0)
            join_calls(&r, &p, of);
        else
            join_tile(&r, &p, of);
        at = p.end;
    }
}

/* ---- the shortest and the longest ---- */

struct extremes {
    struct stack_extremes *of;
    uint32_t *reached;
    size_t n;
};

static inline void reach(struct extremes *g, const struct stack_call *c)
{
    struct stack_extremes *x = &g->of[c->function];
    int64_t duration = c->end - c->begin;
    if (!x->any) {
        *x = (struct stack_extremes){duration, duration, c->begin, c->begin, true};
        g->reached[g->n++] = c->function;
    }
    if (duration < x->least) {
        x->least = duration;
        x->least_begin = c->begin;
    }
    if (duration > x->most) {
        x->most = duration;
        x->most_begin = c->begin;
    }
}

size_t stack_extremes(const struct stack_store *s, size_t row, size_t first, size_t end, struct stack_extremes *of,
    uint32_t *reached, size_t n)
{
    struct row_tiles r = row_tiles(s, row);
    struct extremes g = {of, reached, n};
    const uint64_t calls = s->rows[row].first_call;
    const struct stack_disk_figures *f;
    for (uint64_t at = first; at < end;) {
        struct tile_piece p = piece_at(&r, at, end, r.tiles.levels);
        for (uint64_t i = p.first; p.level < 0 && i < p.end; i++) {
            struct stack_call c = stack_call_at(s, calls + i);
            if (c.how == STACK_WHOLE)
                reach(&g, &c);
        }
        for (size_t i = 0, of_tile = p.level < 0 ? 0 : figures_in(&r, &p, &f); i < of_tile; i++) {
            struct stack_call least = stack_call_at(s, calls + p.first + f[i].least),
                              most = stack_call_at(s, calls + p.first + f[i].most);
            reach(&g, &least);
            reach(&g, &most);
        }
        at = p.end;
    }
    return g.n;
}

/* ---- how many are how long ---- */

struct call_histogram {
    const struct row_tiles *r;
    int64_t width;
    size_t n;
    uint64_t *counts;
};

static size_t bucket(const struct call_histogram *c, const struct stack_call *call)
{
    uint64_t k = (uint64_t)(call->end - call->begin) / (uint64_t)c->width;
    return k < c->n ? k : c->n - 1;
}

/* False: some function's calls of the tile belong into several buckets; nothing is counted then. */
static bool count_tile(const struct call_histogram *c, const struct tile_piece *p)
{
    const struct stack_disk_figures *f;
    size_t n = figures_in(c->r, p, &f);
    struct stack_call least, most;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < n; i++) {
            stack_call(c->r->s, c->r->row, p->first + f[i].most, &most);
            if (pass) {
                c->counts[bucket(c, &most)] += f[i].n;
                continue;
            }
            stack_call(c->r->s, c->r->row, p->first + f[i].least, &least);
            if (bucket(c, &least) != bucket(c, &most))
                return false;
        }
    return true;
}

static void count_range(const struct call_histogram *c, uint64_t first, uint64_t end, int below)
{
    struct stack_call call;
    for (uint64_t at = first; at < end;) {
        struct tile_piece p = piece_at(c->r, at, end, below);
        for (uint64_t i = p.first; p.level < 0 && i < p.end; i++) {
            stack_call(c->r->s, c->r->row, i, &call);
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
    struct row_tiles r = row_tiles(s, row);
    struct call_histogram c = {&r, width > 0 ? width : 1, n, counts};
    count_range(&c, first, end, r.tiles.levels);
}

/* ---- WHOLE calls counted ---- */

size_t stack_whole_before(const struct stack_store *s, size_t row, size_t i)
{
    const struct stack_disk_call *calls = s->calls + s->rows[row].first_call;
    size_t tiles = tile_count(stack_calls(s, row), 0), tile = i / TILE_ITEMS;
    if (tile == tiles) /* behind the last call, which ends a tile */
        tile--;
    size_t n = s->whole[s->first_finest[row] + tile];
    for (size_t k = tile * TILE_ITEMS; k < i; k++)
        n += stack_how_of(&calls[k]) == STACK_WHOLE;
    return n;
}

size_t stack_whole_at(const struct stack_store *s, size_t row, size_t k)
{
    const struct stack_disk_call *calls = s->calls + s->rows[row].first_call;
    const uint64_t *whole = s->whole + s->first_finest[row];
    size_t n = stack_calls(s, row), tile = search_first(i, 1, tile_count(n, 0), whole[i] > k) - 1;
    size_t left = k - whole[tile], i = tile * TILE_ITEMS;
    for (; i < n; i++)
        if (stack_how_of(&calls[i]) == STACK_WHOLE && left-- == 0)
            break;
    return i;
}
