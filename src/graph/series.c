#include "graph/series.h"

static int64_t within(const struct graph_series *s, int64_t t)
{
    return t < s->begin ? s->begin : t > s->end ? s->end : t;
}

/* Where the block's entries begin in the columns; not before the series. */
static uint32_t block_begin(const struct graph_series *s, uint32_t block)
{
    uint32_t first = s->blocks[block].first;
    return first > s->first ? first : s->first;
}

/* Where those of the next one do; not behind the series. */
static uint32_t block_end(const struct graph_series *s, uint32_t block)
{
    uint32_t past = s->first + s->n;
    return block + 1 < s->n_blocks && s->blocks[block + 1].first < past ? s->blocks[block + 1].first : past;
}

static int64_t begin_of(const struct graph_series *s, uint32_t block, uint32_t at)
{
    return within(s, within(s, s->blocks[block].base) + s->begins[at]);
}

static bool begins_block(const struct graph_series *s, uint32_t block, uint32_t at)
{
    return block < s->n_blocks && s->blocks[block].first == at;
}

static int64_t end_of(const struct graph_series *s, const struct graph_position *e)
{
    uint32_t next = e->at + 1;
    if (next == s->first + s->n)
        return s->end;
    int64_t end = begin_of(s, e->block + begins_block(s, e->block + 1, next), next);
    return end > e->begin ? end : e->begin;
}

/* The searches below halve what is left without a branch: which way they go is as good as random. */

/* The last block that begins at entry `at` or before; the first one when there is none. */
static uint32_t block_of(const struct graph_series *s, uint32_t at)
{
    uint32_t lo = 0;
    for (uint32_t n = s->n_blocks, half; (half = n / 2) > 0; n -= half)
        lo += s->blocks[lo + half].first <= at ? half : 0;
    return lo;
}

/* The last block whose base is <= ts; the first one when there is none. */
static uint32_t block_at(const struct graph_series *s, int64_t ts)
{
    uint32_t lo = 0;
    for (uint32_t n = s->n_blocks, half; (half = n / 2) > 0; n -= half)
        lo += s->blocks[lo + half].base <= ts ? half : 0;
    return lo;
}

void graph_series_entry(const struct graph_series *s, uint32_t i, struct graph_position *e)
{
    uint32_t at = s->first + i, block = block_of(s, at);
    *e = (struct graph_position){.at = at, .block = block, .begin = begin_of(s, block, at)};
    e->end = end_of(s, e);
}

bool graph_series_find(const struct graph_series *s, int64_t ts, struct graph_position *e)
{
    if (!s->n || ts < s->begin || ts >= s->end)
        return false;
    uint32_t block = block_at(s, ts), at = block_begin(s, block), past = block_end(s, block);
    int64_t after = ts - within(s, s->blocks[block].base);
    if (at >= s->first + s->n || past < at)
        return false;
    for (uint32_t n = past - at, half; (half = n / 2) > 0; n -= half)
        at += s->begins[at + half] <= after ? half : 0;
    *e = (struct graph_position){.at = at, .block = block, .begin = begin_of(s, block, at)};
    e->end = end_of(s, e);
    return e->begin <= ts && ts < e->end;
}

bool graph_series_next(const struct graph_series *s, struct graph_position *e)
{
    if (e->at + 1 >= s->first + s->n)
        return false;
    e->at++;
    e->block += begins_block(s, e->block + 1, e->at);
    e->begin = e->end;
    e->end = end_of(s, e);
    return true;
}

struct graph_series graph_row_series(const struct graph *g, const struct graph_disk_row *r)
{
    if (r->idle_cpu >= 0)
        return graph_cpu_series(g, &g->cpus[r->idle_cpu]);
    return (struct graph_series){.blocks = g->blocks + r->first_block,
        .begins = g->begins,
        .n_blocks = r->n_blocks,
        .first = r->first,
        .n = r->n,
        .begin = r->begin,
        .end = r->end};
}

struct graph_series graph_cpu_series(const struct graph *g, const struct graph_disk_cpu *c)
{
    struct graph_series s = {.blocks = g->cpu_blocks + c->first_block,
        .begins = g->cpu_begins,
        .n_blocks = c->n_blocks,
        .first = c->first,
        .n = c->n,
        .begin = -GRAPH_MOST_TIME,
        .end = g->head->end};
    if (c->idle_row >= 0) {
        s.begin = g->rows[c->idle_row].begin;
        s.end = g->rows[c->idle_row].end;
    } else if (s.n) {
        s.begin = within(&s, s.blocks[0].base);
    }
    return s;
}
