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

uint64_t list_events(const struct state_store *s)
{
    return s->tables->events[s->n].events;
}

/* The part that has a checkpoint. */
static size_t part_of(const struct state_store *s, uint64_t checkpoint)
{
    return search_first(k, 0, s->n, s->tables->events[k + 1].checkpoints > checkpoint);
}

/* Which event it is, and when. */
static uint64_t checkpoint_event(const struct state_store *s, uint64_t checkpoint)
{
    size_t k = part_of(s, checkpoint);
    const struct list_events *e = &s->tables->events[k];
    return e->events + state_first_checkpoint(s->parts[k].chunk->totals) +
        (checkpoint - e->checkpoints) * STATE_EVENTS_SHARE;
}

static int64_t checkpoint_time(const struct state_store *s, uint64_t checkpoint)
{
    size_t k = part_of(s, checkpoint);
    const struct state_chunk *c = s->parts[k].chunk;
    return state_column_at(c, &c->tables[STATE_TABLE_EVENTS], 0, checkpoint - s->tables->events[k].checkpoints);
}

/* The first checkpoint that is at t or later; none before `from` is. */
static uint64_t find_checkpoint(const struct state_store *s, uint64_t from, int64_t t)
{
    const struct list_tables *l = s->tables;
    size_t next = search_first(i, 0, l->n_checkpoints, l->checkpoints[i].begin >= t);
    if (!next)
        return from;
    uint32_t part = l->checkpoints[next - 1].part;
    uint64_t before = l->events[part].checkpoints;
    return before + state_chunk_checkpoints(s->parts[part].chunk, from > before ? from - before : 0, t);
}

void list_event_counts(const struct state_store *s, const int64_t *times, size_t n, uint64_t *counts, bool *exact)
{
    const struct list_tables *l = s->tables;
    const uint64_t events = list_events(s), checkpoints = l->events[s->n].checkpoints;
    const uint64_t first = checkpoints ? checkpoint_event(s, 0) : events;
    const int64_t begin = s->parts->chunk->totals->begin;
    uint64_t at = 0;
    bool all = true;
    for (size_t i = 0; i < n; i++) {
        int64_t t = times[i];
        at = find_checkpoint(s, at, t);
        if (!events || t > l->last_event || (!at && (!first || t <= begin))) {
            counts[i] = t > l->last_event ? events : 0;
            continue;
        }
        bool head = !at, tail = at == checkpoints;
        struct state_stretch x = {.head = head,
            .below = head ? 0 : checkpoint_event(s, at - 1),
            .above = tail ? events - 1 : checkpoint_event(s, at),
            .from = head ? begin : checkpoint_time(s, at - 1),
            .to = tail ? l->last_event : checkpoint_time(s, at)};
        counts[i] = state_stretch_count(&x, t, &all);
    }
    if (exact)
        *exact = all;
}

/* ---- losses ---- */

/* A chunk that is missing is a loss of unknown size on all CPUs. */
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

size_t list_losses(const struct state_store *s)
{
    return s->tables->n_losses;
}

void list_loss(const struct state_store *s, size_t i, struct state_loss *out)
{
    *out = state_loss_of(&s->tables->losses[i]);
}

/* ---- all ---- */

void list_tables_init(struct state_store *s)
{
    s->tables = mem_zalloc(sizeof *s->tables);
    count_events(s);
    join_losses(s);
    list_latencies_init(s);
}

void list_tables_fini(struct state_store *s)
{
    if (!s->tables)
        return;
    list_latencies_fini(s);
    free(s->tables->events);
    free(s->tables->checkpoints);
    free(s->tables->losses);
    free(s->tables);
}
