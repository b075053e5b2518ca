/* SPDX-License-Identifier: MIT */
/* Writing: tables of events and latencies. */
#include <stdlib.h>

#include "base/order.h"
#include "base/search.h"
#include "state/writer.h"

static void add_table(struct state_writer *w, int table, const struct series_table *t)
{
    w->tables[table] = (struct state_disk_table){.first_head = w->heads.n, .n = t->n};
    vec_reserve(&w->heads, t->heads.n);
    if (t->heads.n)
        memcpy(w->heads.v + w->heads.n, t->heads.v, t->heads.n * sizeof *t->heads.v);
    w->heads.n += t->heads.n;
}

/* ---- latencies aside ---- */

/* Walk through the begins of a table. */
struct begins {
    const struct latency_series *l;
    uint64_t i, block; /* block of `begins` */
    series_values begins;
};

/* Moves behind all that did not begin later. */
static void pass(struct begins *w, int64_t begin)
{
    const struct series_table *t = &w->l->table;
    for (; w->i < t->n; w->i++) {
        uint64_t block = w->i / STATE_BLOCK;
        if (block + 1 < t->heads.n && t->heads.v[block + 1].first <= begin) {
            w->i += STATE_BLOCK - w->i % STATE_BLOCK - 1; /* skips the whole block */
            continue;
        }
        if (block != w->block)
            series_table_take(w->l->bytes, t, block, STATE_BEGIN, w->begins);
        w->block = block;
        if (w->begins[w->i % STATE_BLOCK] > begin)
            return;
    }
}

/* Sets the index of each: the number of those aside before it, and of those in the table before it. */
static void add_aside(struct state_writer *w, const struct latency_series *l, int kind)
{
    struct begins at = {.l = l, .block = UINT64_MAX};
    uint64_t k = 0;
    for (size_t i = 0; i < l->aside.n; i++) {
        const struct latency_aside *a = &l->aside.v[i];
        const struct latency *x = &a->latency;
        if (a->rank < STATE_RANK_LATE && a->before > at.i)
            at.i = a->before;
        else if (a->rank >= STATE_RANK_LATE && !a->early)
            pass(&at, x->begin);
        if (x->progress == LATENCY_OPEN) {
            vec_push(&w->open,
                ((struct state_disk_open){
                    .begin = x->begin, .rank = a->rank, .index = k + at.i, .kind = (uint8_t)kind}));
            continue;
        }
        vec_push(&w->aside,
            ((struct state_disk_aside){.begin = x->begin,
                .duration = (int64_t)ns_between(x->begin, x->end),
                .ret = x->ret,
                .index = k++ + at.i,
                .rank = a->rank,
                .thread = x->thread,
                .cpu = x->cpu,
                .code = x->code,
                .kind = (uint8_t)kind}));
    }
}

static uint64_t count_early(const struct latency_series *l)
{
    uint64_t n = 0;
    while (n < l->aside.n && l->aside.v[n].early)
        n++;
    return n;
}

/* ---- the first of each code ---- */

static int by_index(const void *a, const void *b)
{
    const struct state_disk_first *x = a, *y = b;
    return order_of(x->index, y->index);
}

/* met: index in `firsts` by code. */
static void add_first(struct state_writer *w, struct map *met, int kind, uint64_t index, uint32_t code)
{
    bool fresh;
    uint64_t *at = map_put(met, code, &fresh);
    if (fresh) {
        *at = w->firsts.n;
        vec_push(&w->firsts, ((struct state_disk_first){.index = index, .code = code, .kind = (uint8_t)kind}));
    } else if (index < w->firsts.v[*at].index) {
        w->firsts.v[*at].index = index;
    }
}

/* aside: those of the kind, in order of index. */
static void add_firsts(struct state_writer *w, const struct latency_series *l, int kind, uint64_t early,
    const struct state_disk_aside *aside, size_t n)
{
    struct map met = {0};
    const size_t from = w->firsts.n;
    for (size_t i = 0, k = 0; i < l->tiles.firsts.n; i++) {
        const struct tile_first *f = &l->tiles.firsts.v[i];
        k = search_first(j, k, n, aside[j].index - j > f->at); /* number of those before it */
        add_first(w, &met, kind, f->at + k, f->code);
    }
    for (size_t i = early; i < n; i++)
        add_first(w, &met, kind, aside[i].index, aside[i].code);
    if (w->firsts.n > from)
        qsort(w->firsts.v + from, w->firsts.n - from, sizeof *w->firsts.v, by_index);
    map_fini(&met);
}

/* ---- whole tables ---- */

void state_writer_finish_tables(struct state_builder *b, bool cut)
{
    if (b->event_buffered)
        state_series_table_add(&b->pool.bytes, &b->event_times, &b->event_buffer, 1, b->event_buffered);
    b->event_buffered = 0;
    for (int kind = 0; kind < STATE_LATENCY_KINDS; kind++)
        state_latency_series_finish(&b->latencies[kind], cut);
}

void state_writer_add_tables(struct state_writer *w)
{
    add_table(w, STATE_TABLE_EVENTS, &w->b->event_times);
    for (int kind = 0; kind < STATE_LATENCY_KINDS; kind++) {
        const struct latency_series *l = &w->b->latencies[kind];
        struct state_disk_table *table = &w->tables[STATE_TABLE_LATENCIES + kind];
        const size_t first = w->aside.n;
        add_aside(w, l, kind);
        state_tiles_list(&l->tiles, &w->tiles);
        add_table(w, STATE_TABLE_LATENCIES + kind, &l->table);
        table->early = count_early(l);
        table->from = l->from;
        add_firsts(w, l, kind, table->early, w->aside.n ? w->aside.v + first : NULL, w->aside.n - first);
    }
    vec_push(&w->tiles.first, w->tiles.figures.n); /* end of the last ones */
}
