/* SPDX-License-Identifier: MIT */
/* Call stacks of an open graph. Every index from the file is bounded here at its use. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/search.h"
#include "graph/layout.h"

static uint32_t user_of(const struct graph_disk_sample *s)
{
    return s->user & ~GRAPH_SAMPLE_WAITS;
}
static bool waits(const struct graph_disk_sample *s)
{
    return s->user & GRAPH_SAMPLE_WAITS;
}

/* Samples of a row of the chunk. */
struct range {
    const struct graph_disk_sample *v;
    size_t n;
};

static struct range samples_of(const struct graph_chunk *c, int32_t row)
{
    if (!c->n_samples || (size_t)row + 1 >= c->n_sample_rows)
        return (struct range){0};
    size_t first = c->sample_rows[row], end = c->sample_rows[row + 1];
    end = end < c->n_samples ? end : c->n_samples;
    return first < end ? (struct range){c->samples + first, end - first} : (struct range){0};
}

/* Addresses of stack `number` - 1; n 0: there is none. */
static const uint64_t *frames_of(const struct graph_chunk *c, uint32_t number, uint16_t *n, bool *cut)
{
    *n = 0;
    *cut = false;
    if (!number || number > c->n_stacks)
        return NULL;
    struct graph_disk_stack s = c->stacks[number - 1];
    if (s.first > c->n_frames || s.n > c->n_frames - s.first)
        return NULL;
    *n = s.n;
    *cut = s.cut;
    return c->frames + s.first;
}

static bool stack_of(const struct graph_chunk *c, const struct graph_disk_sample *s, struct graph_stack *out)
{
    *out = (struct graph_stack){.samples = 1};
    out->user = frames_of(c, user_of(s), &out->n_user, &out->user_cut);
    out->kernel = frames_of(c, s->kernel, &out->n_kernel, &out->kernel_cut);
    return out->n_user || out->n_kernel;
}

bool graph_has_stacks(const struct graph *g)
{
    return g->has_stacks;
}

static size_t places_of(const struct graph *g, int32_t row, struct chunk_place *only, const struct chunk_place **places)
{
    return row < 0 || (size_t)row >= g->n_rows ? 0 : chunk_rows_all(g->chunk_rows, row, only, places);
}

bool graph_wait_stack(const struct graph *g, int32_t row, int64_t begin, struct graph_stack *out)
{
    struct chunk_place only;
    const struct chunk_place *at;
    for (size_t k = places_of(g, row, &only, &at); k-- > 0;) {
        const struct graph_chunk *c = &g->chunks[at[k].chunk];
        struct range r = samples_of(c, at[k].row);
        for (size_t i = search_first(j, 0, r.n, r.v[j].ts >= begin); i < r.n && r.v[i].ts == begin; i++)
            if (waits(&r.v[i]))
                return stack_of(c, &r.v[i], out);
    }
    return false;
}

/* ---- the most frequent one ---- */

struct counted {
    struct map by_content; /* hash -> number of samples */
    size_t left;
    uint64_t most;
};

static uint64_t content_hash(const struct graph_stack *s)
{
    uint64_t hash[2];
    map_hash_pieces((struct map_piece[]){{s->user, s->n_user * sizeof *s->user},
                        {s->kernel, s->n_kernel * sizeof *s->kernel}, {&s->user_cut, 1}, {&s->kernel_cut, 1}},
        4, hash);
    return hash[0];
}

/* Counts samples of one chunk, the latest first. The first of the most frequent ones becomes *out. */
static void count(struct counted *n, const struct graph_chunk *c, struct range r, struct graph_stack *out)
{
    for (size_t i = r.n; i-- > 0 && n->left;) {
        struct graph_stack s;
        if (waits(&r.v[i]) || !stack_of(c, &r.v[i], &s))
            continue;
        n->left--;
        uint64_t *times = map_put(&n->by_content, content_hash(&s), NULL);
        if (++*times > n->most) {
            n->most = *times;
            *out = s;
        }
    }
}

bool graph_running_stack(const struct graph *g, int32_t row, int64_t begin, int64_t end, struct graph_stack *out)
{
    struct chunk_place only;
    const struct chunk_place *at;
    struct counted n = {.left = GRAPH_SAMPLES_COUNTED};
    for (size_t k = places_of(g, row, &only, &at); k-- > 0;) {
        const struct graph_chunk *c = &g->chunks[at[k].chunk];
        struct range r = samples_of(c, at[k].row);
        if (!r.n)
            continue;
        size_t first = search_first(j, 0, r.n, r.v[j].ts > begin), past = search_first(j, first, r.n, r.v[j].ts > end);
        count(&n, c, (struct range){r.v + first, past - first}, out);
    }
    map_fini(&n.by_content);
    if (n.most)
        out->samples = (uint32_t)n.most;
    return n.most;
}

void graph_stack_totals(const struct graph *g, uint64_t *cut, uint64_t *left_out)
{
    *cut = *left_out = 0;
    for (size_t i = 0; i < g->n_chunks; i++)
        if (g->chunks[i].n_sampled) {
            *cut += g->chunks[i].sampled->cut;
            *left_out += g->chunks[i].sampled->left_out;
        }
}

/* ---- validation ---- */

const char *graph_stacks_defect(const struct graph_chunk *c)
{
    size_t next = 0;
    if (!c->n_samples)
        return c->n_sample_rows || c->n_stacks || c->n_frames ? "call stacks of no thread" : NULL;
    if (c->n_sampled != 1 || c->n_sample_rows != c->n_rows + 1 || c->sample_rows[0] ||
        c->sample_rows[c->n_rows] != c->n_samples)
        return "call stacks of threads that do not exist";
    for (size_t i = 0; i < c->n_stacks; i++) {
        if (c->stacks[i].first != next || !c->stacks[i].n || c->stacks[i].cut > 1)
            return "a call stack outside its addresses";
        next += c->stacks[i].n;
    }
    if (next != c->n_frames)
        return "a call stack outside its addresses";
    for (size_t row = 0; row < c->n_rows; row++) {
        if (c->sample_rows[row + 1] < c->sample_rows[row] || c->sample_rows[row + 1] > c->n_samples)
            return "call stacks out of order";
        for (size_t i = c->sample_rows[row]; i < c->sample_rows[row + 1]; i++) {
            const struct graph_disk_sample *s = &c->samples[i];
            if (user_of(s) > c->n_stacks || s->kernel > c->n_stacks || !(user_of(s) | s->kernel))
                return "a call stack that does not exist";
            if (i > c->sample_rows[row] && s->ts < s[-1].ts)
                return "call stacks out of order";
        }
    }
    return NULL;
}
