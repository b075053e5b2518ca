/* Calls by function: figures of a range and how many are how long, from tiles (stack_tiles.h) and the two ends; places
 * among WHOLE calls. */
#include "stack/tiles.h"

/* A row's tiles. */
struct reading {
    const struct stack_store *s;
    size_t row;
    uint64_t n;
    int levels;
    uint64_t tiles[TILE_LEVELS]; /* where those of each level begin */
};

static struct reading reading(const struct stack_store *s, size_t row)
{
    struct reading r = {s, row, stack_calls(s, row), tile_levels(stack_calls(s, row)), {0}};
    uint64_t at = s->first_tile[row];
    for (int level = 0; level < r.levels; at += tile_count(r.n, level), level++)
        r.tiles[level] = at;
    return r;
}

/* Part of a range: a whole tile, or (level -1) some calls. */
struct piece {
    int level;
    uint64_t first, end;
};

/* The piece that begins at i, at most up to `end`, with tiles of levels below `below`. */
static struct piece piece_at(const struct reading *r, uint64_t i, uint64_t end, int below)
{
    for (int level = below - 1; level >= 0; level--) {
        uint64_t size = tile_size(level), last = r->n - i < size ? r->n : i + size;
        if (i % size == 0 && last <= end)
            return (struct piece){level, i, last};
    }
    uint64_t last = i - i % TILE_LATENCIES + TILE_LATENCIES;
    return (struct piece){-1, i, last < end ? last : end};
}

static size_t figures_in(const struct reading *r, const struct piece *p, const struct stack_disk_figures **out)
{
    uint64_t tile = r->tiles[p->level] + p->first / tile_size(p->level);
    *out = r->s->figures + r->s->tiles[tile];
    return r->s->tiles[tile + 1] - r->s->tiles[tile];
}

/* ---- figures ---- */

static void join_tile(const struct reading *r, const struct piece *p, struct stack_figures *of)
{
    const struct stack_disk_figures *f;
    struct stack_call least, most;
    for (size_t i = 0, n = figures_in(r, p, &f); i < n; i++) {
        stack_call(r->s, r->row, p->first + f[i].least, &least);
        stack_call(r->s, r->row, p->first + f[i].most, &most);
        figures_join(&of[f[i].function].calls,
            &(struct figures){f[i].n, f[i].sum, least.end - least.begin, most.end - most.begin, least.begin, most.begin,
                f[i].spread});
        of[f[i].function].self = (int64_t)((uint64_t)of[f[i].function].self +
            (uint64_t)f[i].self); /* as the file has it */
    }
}

static void join_calls(const struct reading *r, const struct piece *p, struct stack_figures *of)
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
    struct reading r = reading(s, row);
    for (uint64_t at = first; at < end;) {
        struct piece p = piece_at(&r, at, end, r.levels);
        if (p.level < 0)
            join_calls(&r, &p, of);
        else
            join_tile(&r, &p, of);
        at = p.end;
    }
}

/* ---- the shortest and the longest ---- */

struct reaching {
    struct stack_extremes *of;
    uint32_t *reached;
    size_t n;
};

static inline void reach(struct reaching *g, const struct stack_call *c)
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
    struct reading r = reading(s, row);
    struct reaching g = {of, reached, n};
    const uint64_t calls = s->rows[row].first_call;
    const struct stack_disk_figures *f;
    for (uint64_t at = first; at < end;) {
        struct piece p = piece_at(&r, at, end, r.levels);
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

struct counting {
    const struct reading *r;
    int64_t width;
    size_t n;
    uint64_t *counts;
};

static size_t bucket(const struct counting *c, const struct stack_call *call)
{
    uint64_t k = (uint64_t)(call->end - call->begin) / (uint64_t)c->width;
    return k < c->n ? k : c->n - 1;
}

/* False: some function's calls of the tile belong into several buckets; nothing is counted then. */
static bool count_tile(const struct counting *c, const struct piece *p)
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

static void count_range(const struct counting *c, uint64_t first, uint64_t end, int below)
{
    struct stack_call call;
    for (uint64_t at = first; at < end;) {
        struct piece p = piece_at(c->r, at, end, below);
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
    struct reading r = reading(s, row);
    struct counting c = {&r, width > 0 ? width : 1, n, counts};
    count_range(&c, first, end, r.levels);
}

/* ---- places among WHOLE calls ---- */

size_t stack_whole_before(const struct stack_store *s, size_t row, size_t i)
{
    const struct stack_disk_call *calls = s->calls + s->rows[row].first_call;
    size_t tiles = tile_count(stack_calls(s, row), 0), tile = i / TILE_LATENCIES;
    if (tile == tiles) /* behind the last call, which ends a tile */
        tile--;
    size_t n = s->whole[s->first_finest[row] + tile];
    for (size_t k = tile * TILE_LATENCIES; k < i; k++)
        n += stack_how_of(&calls[k]) == STACK_WHOLE;
    return n;
}

size_t stack_whole_at(const struct stack_store *s, size_t row, size_t k)
{
    const struct stack_disk_call *calls = s->calls + s->rows[row].first_call;
    const uint64_t *whole = s->whole + s->first_finest[row];
    size_t lo = 0, hi = tile_count(stack_calls(s, row), 0), n = stack_calls(s, row);
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (whole[mid] <= k)
            lo = mid;
        else
            hi = mid;
    }
    size_t left = k - whole[lo], i = lo * TILE_LATENCIES;
    for (; i < n; i++)
        if (stack_how_of(&calls[i]) == STACK_WHOLE && left-- == 0)
            break;
    return i;
}
