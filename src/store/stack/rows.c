/* SPDX-License-Identifier: MIT */
/* Rows of several chunks: the calls of a level of a thread, chunk by chunk. Where a chunk is missing, what a level did
 * between its calls is not known. */
#include <stdlib.h>

#include "base/mem.h"
#include "stack/list.h"
#include "stack/tiles.h"

struct joining_rows {
    struct stack_store *s;
    const struct chunk *v;
    VEC(struct stack_part) parts;
    /* Contents of the extra chunk for UNKNOWN calls: a row each. */
    VEC(struct stack_disk_call) calls;
    VEC(struct stack_disk_long) longs;
    VEC(struct stack_disk_row) rows;
};

static uint64_t whole_of(const struct stack_chunk *c, uint64_t row)
{
    uint64_t calls = c->rows[row].calls, last = (calls - 1) / TILE_ITEMS, n = c->whole[c->first_finest[row] + last];
    for (uint64_t i = last * TILE_ITEMS; i < calls; i++)
        n += stack_how_of(&c->calls[c->rows[row].first_call + i]) == STACK_WHOLE;
    return n;
}

/* ---- missing chunks ---- */

static void add_unknown(struct joining_rows *j, struct stack_row *row, uint64_t whole, int64_t begin, int64_t end)
{
    uint64_t duration = (uint64_t)end - (uint64_t)begin;
    vec_push(&j->parts,
        ((struct stack_part){.chunk = &j->s->chunks[j->s->n_chunks],
            .n = 1,
            .row = j->rows.n,
            .first = row->calls++,
            .whole = whole,
            .begin = begin}));
    row->n_parts++;
    vec_push(&j->rows, ((struct stack_disk_row){.first_call = j->calls.n, .calls = 1}));
    if (duration >= STACK_LONG)
        vec_push(&j->longs, ((struct stack_disk_long){j->calls.n, (int64_t)duration}));
    vec_push(&j->calls,
        ((struct stack_disk_call){begin, duration >= STACK_LONG ? STACK_LONG : (uint32_t)duration, STACK_UNKNOWN}));
}

/* Adds UNKNOWN calls between calls of two chunks, from `end` to `begin`. */
static void add_gaps(struct joining_rows *j, struct stack_row *row, uint64_t whole, const struct stack_place *before,
    const struct stack_place *after, int64_t end, int64_t begin)
{
    for (uint32_t c = before->chunk; c < after->chunk; c++) {
        int64_t from = j->v[c].end > end ? j->v[c].end : end,
                to = j->v[c + 1].begin < begin ? j->v[c + 1].begin : begin;
        if (from < to)
            add_unknown(j, row, whole, from, to);
    }
}

static void end_unknown(struct joining_rows *j)
{
    struct stack_chunk *c = &j->s->chunks[j->s->n_chunks];
    *c = (struct stack_chunk){.rows = j->rows.v,
        .n_rows = j->rows.n,
        .calls = j->calls.v,
        .n_calls = j->calls.n,
        .longs = j->longs.v,
        .n_longs = j->longs.n,
        .tiles = mem_zalloc(sizeof *c->tiles * (j->rows.n + 1)),
        .whole = mem_zalloc(sizeof *c->whole * (j->rows.n + 1)),
        .function_of = mem_zalloc(sizeof *c->function_of)};
    stack_chunk_find_rows(c);
}

/* ---- calls ---- */

static const char *join_row(struct joining_rows *j, struct stack_row *row, uint32_t level,
    const struct stack_place *places, size_t n, size_t *chunk)
{
    const struct stack_place *before = NULL;
    int64_t end = INT64_MIN;
    uint64_t whole = 0;
    for (size_t k = 0; k < n; k++) {
        const struct stack_chunk *c = &j->s->chunks[places[k].chunk];
        const struct stack_disk_thread *t = &c->threads[places[k].i];
        uint64_t r = (uint64_t)t->first_row + level;
        if (level >= t->rows || !c->rows[r].calls)
            continue;
        const struct stack_disk_row *d = &c->rows[r];
        int64_t begin = c->calls[d->first_call].begin;
        *chunk = places[k].chunk;
        if (begin < end)
            return "a thread's calls go back to before those of the chunk before";
        if (before)
            add_gaps(j, row, whole, before, &places[k], end, begin);
        vec_push(&j->parts, ((struct stack_part){c, c->calls + d->first_call, d->calls, r, row->calls, whole, begin}));
        row->n_parts++;
        row->calls += d->calls;
        whole += whole_of(c, r);
        end = stack_row_call(c, r, d->calls - 1).end;
        before = &places[k];
    }
    return NULL;
}

const char *stack_list_rows(
    struct stack_store *s, const struct chunk *v, const struct stack_place *places, const size_t *first, size_t *chunk)
{
    struct joining_rows j = {.s = s, .v = v};
    const char *what = NULL;
    size_t n = 0;
    s->rows = mem_zalloc(sizeof *s->rows * (s->n_rows + 1));
    vec_reserve(&j.parts, s->n_rows + 1);
    for (size_t i = 0; i < s->n_threads && !what; i++)
        for (uint32_t level = 0; level < s->threads[i].rows && !what; level++)
            what = join_row(&j, &s->rows[s->threads[i].first_row + level], level, places + first[i],
                first[i + 1] - first[i], chunk);
    end_unknown(&j);
    s->parts = j.parts.v;
    for (size_t i = 0; i < j.parts.n; i++)
        if (!s->parts[i].calls)
            s->parts[i].calls = s->chunks[s->n_chunks].calls + s->parts[i].row;
    for (size_t i = 0; i < s->n_rows; i++) {
        s->rows[i].parts = s->parts + n;
        n += s->rows[i].n_parts;
    }
    return what;
}

void stack_rows_free(struct stack_store *s)
{
    struct stack_chunk *c = &s->chunks[s->n_chunks];
    free(s->rows);
    free(s->parts);
    if (!c->function_of)
        return;
    free((void *)(uintptr_t)c->rows);
    free((void *)(uintptr_t)c->calls);
    free((void *)(uintptr_t)c->longs);
    free((void *)(uintptr_t)c->tiles);
    free((void *)(uintptr_t)c->whole);
    stack_chunk_close(c);
}
