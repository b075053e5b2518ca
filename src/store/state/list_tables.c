/* SPDX-License-Identifier: MIT */
/* Events and losses of a list of chunks. */
#include "state/list_tables.h"

#include <stdlib.h>

#include "base/mem.h"
#include "state/list.h"
#include "state/losses.h"

/* ---- events ---- */

static void count_events(struct state_store *s)
{
    struct list_tables *t = s->tables;
    t->events = mem_zalloc((s->n + 1) * sizeof *t->events);
    t->checkpoints = mem_alloc(s->n * sizeof *t->checkpoints);
    t->last_event = INT64_MIN;
    for (size_t k = 0; k < s->n; k++) {
        const struct state_chunk *c = s->parts[k].chunk;
        const struct state_disk_table *table = &c->tables[STATE_TABLE_EVENTS];
        struct list_events *e = &t->events[k];
        e[1] = (struct list_events){e->events + c->totals->events, e->checkpoints + table->n};
        if (table->n)
            t->checkpoints[t->n_checkpoints++] = (struct list_checkpoints){
                c->heads[table->first_head].first, (uint32_t)k};
        if (c->totals->events)
            t->last_event = c->totals->last_event;
    }
}

uint64_t state_events(const struct state_store *s)
{
    return s->tables->events[s->n].events;
}

/* Number and time of the event of a checkpoint of that part. */
static uint64_t checkpoint_event(const struct state_store *s, size_t part, uint64_t checkpoint)
{
    const struct list_events *e = &s->tables->events[part];
    return e->events + state_first_checkpoint(s->parts[part].chunk->totals) +
        (checkpoint - e->checkpoints) * STATE_EVENTS_SHARE;
}

static int64_t checkpoint_time(const struct state_store *s, size_t part, uint64_t checkpoint)
{
    const struct state_chunk *c = s->parts[part].chunk;
    return state_column_at(c, &c->tables[STATE_TABLE_EVENTS], 0, checkpoint - s->tables->events[part].checkpoints);
}

/* Position of a time among the checkpoints: `at` is the first that is not before it. */
struct spot {
    uint64_t at;
    size_t next;           /* index in list_tables.checkpoints: the first that does not begin before the time */
    size_t before, behind; /* parts that have the checkpoints at - 1 and `at`, if these exist */
};

/* Moves from the spot of an earlier time. The part's first checkpoint is before the time, according to its head. */
static void advance(const struct state_store *s, struct spot *x, int64_t t)
{
    const struct list_tables *l = s->tables;
    while (x->next < l->n_checkpoints && l->checkpoints[x->next].begin < t)
        x->next++;
    if (x->next < l->n_checkpoints)
        x->behind = l->checkpoints[x->next].part;
    if (!x->next)
        return;
    x->before = l->checkpoints[x->next - 1].part;
    uint64_t first = l->events[x->before].checkpoints;
    x->at = first + state_chunk_checkpoints(s->parts[x->before].chunk, x->at > first ? x->at - first : 1, t);
    if (x->at < l->events[x->before + 1].checkpoints)
        x->behind = x->before;
}

void state_event_counts(const struct state_store *s, const int64_t *times, size_t n, uint64_t *counts, bool *exact)
{
    const struct list_tables *l = s->tables;
    const uint64_t events = state_events(s), checkpoints = l->events[s->n].checkpoints;
    const uint64_t first = checkpoints ? checkpoint_event(s, l->checkpoints->part, 0) : events;
    const int64_t begin = s->parts->chunk->totals->begin;
    struct spot x = {0};
    bool all = true;
    for (size_t i = 0; i < n; i++) {
        int64_t t = times[i];
        advance(s, &x, t);
        if (!events || t > l->last_event || (!x.at && (!first || t <= begin))) {
            counts[i] = t > l->last_event ? events : 0;
            continue;
        }
        bool head = !x.at, tail = x.at == checkpoints;
        struct state_stretch around = {.head = head,
            .below = head ? 0 : checkpoint_event(s, x.before, x.at - 1),
            .above = tail ? events - 1 : checkpoint_event(s, x.behind, x.at),
            .from = head ? begin : checkpoint_time(s, x.before, x.at - 1),
            .to = tail ? l->last_event : checkpoint_time(s, x.behind, x.at)};
        counts[i] = state_stretch_count(&around, t, &all);
    }
    if (exact)
        *exact = all;
}

/* ---- losses ---- */

/* A missing chunk is a loss of unknown size on all CPUs. */
static void join_losses(struct state_store *s)
{
    struct list_tables *t = s->tables;
    size_t n = s->n;
    for (size_t k = 0; k < s->n; k++)
        n += s->parts[k].chunk->n_losses;
    t->losses = mem_alloc(n * sizeof *t->losses);
    for (size_t k = 0; k < s->n; k++) {
        const struct state_chunk *c = s->parts[k].chunk;
        if (k && s->parts[k - 1].end < s->parts[k].begin)
            t->losses[t->n_losses++] = (struct state_disk_loss){
                .begin = s->parts[k - 1].end, .end = s->parts[k].begin, .cpu = -1};
        for (size_t i = 0; i < c->n_losses; i++)
            t->losses[t->n_losses++] = c->losses[i];
    }
    state_losses_sort(t->losses, t->n_losses);
}

size_t state_losses(const struct state_store *s)
{
    return s->tables->n_losses;
}

void state_loss(const struct state_store *s, size_t i, struct state_loss *out)
{
    *out = state_loss_of(&s->tables->losses[i]);
}

/* ---- setup ---- */

void state_list_tables_init(struct state_store *s)
{
    s->tables = mem_zalloc(sizeof *s->tables);
    pthread_mutex_init(&s->tables->lock, NULL);
    count_events(s);
    join_losses(s);
}

void state_list_tables_fini(struct state_store *s)
{
    if (!s->tables)
        return;
    state_list_latencies_fini(s);
    free(s->tables->events);
    free(s->tables->checkpoints);
    free(s->tables->losses);
    pthread_mutex_destroy(&s->tables->lock);
    free(s->tables);
}
