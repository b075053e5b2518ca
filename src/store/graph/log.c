/* SPDX-License-Identifier: MIT */
#include "graph/log.h"

#include "graph/layout.h"

enum { FIRST_ROOM = 8, GROWTH = 4 };

static void add_block(struct arena *a, struct graph_log *log, int64_t base)
{
    struct graph_log_block *last = log->tail;
    unsigned room = last && log->used == log->room ? log->room * GROWTH : FIRST_ROOM;
    log->room = (uint16_t)(room < GRAPH_BLOCK ? room : GRAPH_BLOCK);
    struct graph_log_block *b = arena_alloc(a, sizeof *b + log->room * sizeof *b->v);
    if (last) {
        last->n = log->used;
        last->next = b;
    } else {
        log->head = b;
    }
    log->tail = b;
    log->base = b->base = base;
    log->used = 0;
}

/* Returns whether the entry only continues the last one. A cause ends its interval, so one with a cause is not
 * continued; but a gap behind a gap is the same gap. */
static bool continues(const struct graph_logged *last, const struct graph_logged *x)
{
    static const uint8_t gap = GRAPH_UNKNOWN | GRAPH_CAUSE_LOST << GRAPH_KIND_CAUSE_SHIFT;
    return last->kind == x->kind && (graph_kind_cause(x->kind) == GRAPH_CAUSE_NONE || x->kind == gap) &&
        last->detail == x->detail && (graph_kind_state(x->kind) != GRAPH_RUNNING || last->arg == x->arg);
}

static struct graph_logged logged(const struct graph_entry *x)
{
    return (struct graph_logged){
        .arg = x->arg, .detail = x->detail, .kind = graph_kind(x->state, x->cause, x->detail != 0)};
}

void graph_log_push(struct arena *a, struct graph_log *log, const struct graph_entry *x)
{
    struct graph_logged entry = logged(x);
    if (log->tail && continues(&log->last, &entry))
        return;
    if (log->used == log->room || (uint64_t)x->begin - (uint64_t)log->base > UINT32_MAX)
        add_block(a, log, x->begin);
    entry.begin = (uint32_t)((uint64_t)x->begin - (uint64_t)log->base);
    log->tail->v[log->used++] = entry; /* written without reading: it may be uncached */
    log->last = entry;
    log->n++;
}

void graph_log_amend(struct graph_log *log, const struct graph_entry *x)
{
    struct graph_logged entry = logged(x);
    entry.begin = log->last.begin;
    log->tail->v[log->used - 1] = entry;
    log->last = entry;
}

struct graph_entry graph_log_last(const struct graph_log *log)
{
    const struct graph_logged *x = &log->last;
    return (struct graph_entry){.begin = (int64_t)((uint64_t)log->base + x->begin),
        .state = (uint8_t)graph_kind_state(x->kind),
        .cause = (uint8_t)graph_kind_cause(x->kind),
        .detail = x->detail,
        .arg = x->arg};
}
