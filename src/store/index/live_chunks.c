/* SPDX-License-Identifier: MIT */
/* Builders of a recording that grows, and the chunks that they end. */
#include <stdlib.h>

#include "base/map.h"
#include "base/nolinks.h"
#include "ctf/feed.h"
#include "index/growing.h"

/* ---- beginning and ending of a level ---- */

static void close_level(struct index_live *l, struct index_level *v)
{
    if (v->made)
        l->kind->close(v->made);
    index_types_builder_free(v->types);
    store_abort(v->file);
    free(v->path);
    vec_free(&v->told);
    *v = (struct index_level){0};
}

void index_levels_drop(struct index_live *l)
{
    for (size_t i = 0; i < l->n_levels; i++)
        close_level(l, &l->levels[i]);
    l->n_levels = 0;
}

static void note_told(const struct index_live *l, struct index_level *v)
{
    const struct ctf_problem *found;
    size_t n = ctf_merge_problems(l->merge, &found);
    for (size_t i = 0; i < n; i++)
        vec_push(&v->told, found[i].count);
}

static int begin_level(struct index_live *l, struct index_level *v, int64_t begin, struct err *e)
{
    const struct index_files *f = &l->files;
    const struct index_known before = {.carry = (const uint8_t *)l->left.carry.v,
        .n_carry = l->left.carry.n,
        .leaving = l->left.leaving.v,
        .n_leaving = l->left.leaving.n};
    *v = (struct index_level){.chunk = {.begin = begin,
                                  .before = l->left_hash,
                                  .totals = {.begin = INT64_MAX, .end = INT64_MIN},
                                  .number = ++l->last_number},
        .left_out = l->left_out,
        .sum = l->sum};
    v->chunk.key = map_mix(index_rules(f->is_kernel) + map_mix((uint64_t)begin + v->chunk.number) + v->chunk.before);
    v->types = index_types_builder_new(f->trace);
    note_told(l, v);
    v->path = mem_strdup(index_path(f, INDEX_CHUNK, v->chunk.number));
    v->file = index_chunk_create(f, &v->chunk);
    int rc = l->kind->open(f, l->shared, &v->made, e);
    return rc
        ?: l->kind->begin(v->made, &v->chunk, (struct store_place){v->path, v->file}, l->left_hash ? &before : NULL, e);
}

static int begin_levels(struct index_live *l, size_t n, int64_t begin, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < n && !rc; i++)
        rc = begin_level(l, &l->levels[i], begin, e);
    return rc;
}

int index_levels_begin(struct index_live *l, int64_t begin, struct err *e)
{
    l->n_levels = 1;
    return begin_levels(l, l->n_levels, begin, e);
}

static void take_problems(const struct index_live *l, const struct index_level *v, struct text *out)
{
    const struct ctf_problem *found;
    size_t n = ctf_merge_problems(l->merge, &found);
    for (size_t i = 0; i < n; i++) {
        uint64_t before = i < v->told.n ? v->told.v[i] : 0;
        if (found[i].count > before)
            text_printf(out, "%llu %s\n", (unsigned long long)(found[i].count - before), found[i].text);
    }
    if (l->left_out > v->left_out)
        text_printf(out,
            "%llu events came so late that others had been asked about; they are left out: index the recording anew\n",
            (unsigned long long)(l->left_out - v->left_out));
}

/* Writes the chunk up to `end`, INT64_MAX: as the recording's last one. */
static int end_level(struct index_live *l, struct index_level *v, int64_t end, struct index_outcome *o, struct err *e)
{
    struct text problems = {.fd = -1};
    struct index_totals *t = &v->chunk.totals;
    int64_t none;
    v->chunk.end = end;
    v->chunk.packets = l->fed ? l->sum - v->sum : ctf_trace_range_fingerprint(l->files.trace, v->chunk.begin, end);
    if (end == INT64_MAX && t->begin > t->end) {
        t->begin = t->end = l->last;
        if (l->last == INT64_MIN)
            ctf_trace_span(l->files.trace, &t->begin, &none);
        if (l->last == INT64_MIN)
            t->end = t->begin;
    }
    take_problems(l, v, &problems);
    int rc = ctf_merge_intact(l->merge, e);
    rc = rc ?: end == INT64_MAX ? l->kind->finish(v->made, &v->chunk, o, e) : l->kind->cut(v->made, &v->chunk, o, e);
    /* Writes no counts: the merge does not count; packets read by now are counted when somebody asks. */
    rc = rc ?: index_counts_write((struct store_place){v->path, v->file}, &v->chunk, l->merge, e);
    v->chunk.after = o->after;
    if (!rc) {
        rc = index_chunk_write(v->file, o, &problems, v->types, e);
        v->file = NULL;
    }
    rc = rc ?: l->kind->save(l->shared, e);
    text_fini(&problems);
    return rc;
}

/* ---- files ---- */

static void remove_chunk(const struct index_live *l, uint32_t number)
{
    if (number)
        nolinks_remove(index_path(&l->files, INDEX_CHUNK, number));
}

static void drop_tail(struct index_live *l)
{
    remove_chunk(l, l->tail.number);
    l->tail = (struct index_chunk){0};
}

/* Chunks of lower levels, for which one stands that begins there. */
static void drop_small(struct index_live *l, int64_t begin)
{
    while (l->small.n && l->small.v[l->small.n - 1].begin >= begin)
        remove_chunk(l, l->small.v[--l->small.n].number);
}

/* ---- operations on all levels ---- */

int index_levels_feed(struct index_live *l, const struct ctf_event *ev, size_t n, struct err *e)
{
    int64_t times[INDEX_MOST_BATCH];
    int rc = mem_check("reading the events", e);
    for (size_t i = 0; i < l->n_levels && !rc; i++) {
        struct index_level *v = &l->levels[i];
        size_t events = index_take_times(ev, n, times, &v->chunk.totals, &l->sealed.disorder);
        rc = l->kind->feed(v->made, ev, n, times, events, e);
        v->chunk.began = l->kind->began(v->made);
        index_types_builder_add(v->types, ev, n);
        v->items += n;
    }
    for (size_t i = 0; i < n; i++) {
        l->greatest = ev[i].ts > l->greatest ? ev[i].ts : l->greatest;
        l->last = ev[i].cls->item == CTF_EVENT && ev[i].ts > l->last ? ev[i].ts : l->last;
        l->sum += index_item_hash(&ev[i]);
    }
    return rc;
}

int index_levels_extend(struct index_live *l, struct err *e)
{
    bool fresh = true;
    int rc = l->kind->extend(l->shared, e);
    for (size_t i = 0; i < l->n_levels; i++)
        fresh &= !l->levels[i].items;
    if (fresh && !rc) { /* unused builders begin anew, with the new classes or streams */
        int64_t begin = l->levels[0].chunk.begin;
        size_t n = l->n_levels;
        index_levels_drop(l);
        l->n_levels = n;
        return begin_levels(l, n, begin, e);
    }
    for (size_t i = 0; i < l->n_levels && !rc; i++) {
        index_types_builder_extend(l->levels[i].types);
        rc = l->kind->extend(l->levels[i].made, e);
    }
    return rc;
}

/* The highest level whose turn it is. */
static size_t due(const struct index_live *l)
{
    size_t k = 0;
    if (l->levels[0].chunk.totals.events >= MANY_EVENTS)
        return l->n_levels - 1;
    while (k + 1 < l->n_levels && l->levels[k + 1].cuts + 1 >= LEVEL_FAN)
        k++;
    return k;
}

static int keep_chunk(struct index_live *l, const struct index_chunk *c, bool sealed, struct err *e)
{
    drop_tail(l);
    drop_small(l, c->begin);
    if (!sealed) {
        vec_push(&l->small, *c);
        return 0;
    }
    vec_push(&l->sealed.chunks, *c);
    return index_history_write(&l->files, &l->sealed, e);
}

int index_levels_cut(struct index_live *l, int64_t at, bool all, struct err *e)
{
    size_t k = all ? l->n_levels - 1 : due(l), again = k + 1;
    bool top = k + 1 == l->n_levels, many = l->levels[0].chunk.totals.events >= MANY_EVENTS;
    struct index_outcome o = {.carry = {.fd = -1}};
    int rc = end_level(l, &l->levels[k], at, &o, e);
    index_outcome_free(&l->left);
    l->left = o;
    l->left_hash = o.after;
    rc = rc ?: keep_chunk(l, &l->levels[k].chunk, top, e);
    arena_fini(&l->names);
    if (rc)
        return rc;
    for (size_t i = 0; i <= k; i++)
        close_level(l, &l->levels[i]);
    l->until = at > l->until ? at : l->until;
    if (top)
        again = l->n_levels = many || all ? 1 : LEVELS;
    else
        l->levels[k + 1].cuts++;
    rc = begin_levels(l, again, at, e);
    arena_fini(&l->names);
    return rc;
}

int index_tail_make(struct index_live *l, struct err *e)
{
    struct index_level v;
    struct index_outcome o = {.carry = {.fd = -1}};
    if (l->tail.number)
        return 0;
    int rc = begin_level(l, &v, l->levels[0].chunk.begin, e);
    rc = rc ?: end_level(l, &v, INT64_MAX, &o, e);
    if (rc)
        remove_chunk(l, v.chunk.number);
    else
        l->tail = v.chunk;
    index_outcome_free(&o);
    close_level(l, &v);
    arena_fini(&l->names);
    return rc;
}

/* ---- the end ---- */

int index_levels_finish(struct index_live *l, struct err *e)
{
    struct index_outcome o = {.carry = {.fd = -1}};
    struct index_level *top = &l->levels[l->n_levels - 1];
    int rc = end_level(l, top, INT64_MAX, &o, e);
    index_outcome_free(&o);
    if (!rc) {
        drop_tail(l);
        drop_small(l, top->chunk.begin);
        vec_push(&l->sealed.chunks, top->chunk);
    }
    /* Files have grown since their first packets were read. */
    for (size_t i = 0; i < l->sealed.chunks.n && !rc && !l->fed; i++) {
        struct index_chunk *c = &l->sealed.chunks.v[i];
        c->packets = ctf_trace_range_fingerprint(l->files.trace, c->begin, c->end);
    }
    rc = rc ?: index_history_write(&l->files, &l->sealed, e);
    arena_fini(&l->names);
    if (!rc)
        index_levels_drop(l);
    return rc;
}
