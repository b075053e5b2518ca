/* SPDX-License-Identifier: MIT */
#include "graph/series.h"

#include "base/search.h"

static int64_t within(const struct graph_series *s, int64_t t)
{
    return t < s->begin ? s->begin : t > s->end ? s->end : t;
}

/* Begin of the block's entries in the columns, at least the series' begin. */
static uint32_t block_begin(const struct graph_series *s, uint32_t block)
{
    uint32_t first = s->blocks[block].first;
    return first > s->first ? first : s->first;
}

/* Begin of the next block's entries, at most the series' end. */
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

/* Branchless binary searches: the direction is unpredictable. */

/* Last block that begins at entry `at` or before; the first one if there is none. */
static uint32_t block_of(const struct graph_series *s, uint32_t at)
{
    uint32_t lo = 0;
    for (uint32_t n = s->n_blocks, half; (half = n / 2) > 0; n -= half)
        lo += s->blocks[lo + half].first <= at ? half : 0;
    return lo;
}

/* Last block whose base is <= ts; the first one if there is none. */
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

struct graph_series graph_row_series(const struct graph_place *p)
{
    return (struct graph_series){.blocks = p->chunk->blocks + p->first_block,
        .begins = p->chunk->begins,
        .n_blocks = p->n_blocks,
        .first = p->first,
        .n = p->n,
        .begin = p->begin,
        .end = p->end};
}

struct graph_series graph_cpu_series(const struct graph_chunk *c, const struct graph_disk_cpu *cpu)
{
    return (struct graph_series){.blocks = c->cpu_blocks + cpu->first_block,
        .begins = c->cpu_begins,
        .n_blocks = cpu->n_blocks,
        .first = cpu->first,
        .n = cpu->n,
        .begin = cpu->begin,
        .end = cpu->end};
}

/* ---- continuation over chunks ---- */

/* First chunk that has occupants of the CPU after ts. */
static size_t chunk_after(const struct graph *g, uint32_t cpu, int64_t ts)
{
    const int64_t *ends = g->cpu_ends + (size_t)cpu * g->n_chunks;
    return search_first(k, 0, g->n_chunks, ends[k] > ts);
}

static void describe(struct graph_occupant *o)
{
    o->row = graph_occupant_at(o->chunk, o->e.at);
}

static void enter_chunk(struct graph_occupant *o, size_t k)
{
    o->chunk = &o->graph->chunks[k];
    o->s = graph_cpu_series(o->chunk, &o->chunk->cpus[o->cpu]);
    o->idle_row = o->chunk->cpus[o->cpu].idle_row;
}

bool graph_occupant_find(const struct graph *g, uint32_t cpu, int64_t ts, struct graph_occupant *o)
{
    *o = (struct graph_occupant){.graph = g, .cpu = cpu};
    size_t k = cpu < g->n_cpus ? chunk_after(g, cpu, ts) : g->n_chunks;
    if (k == g->n_chunks)
        return false;
    enter_chunk(o, k);
    if (!graph_series_find(&o->s, ts, &o->e))
        return false;
    describe(o);
    return true;
}

bool graph_occupant_next(struct graph_occupant *o)
{
    if (!graph_series_next(&o->s, &o->e)) {
        size_t k = chunk_after(o->graph, o->cpu, o->s.end);
        if (k == o->graph->n_chunks)
            return false;
        enter_chunk(o, k);
        graph_series_entry(&o->s, 0, &o->e);
    }
    describe(o);
    return true;
}
