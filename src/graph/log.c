#include "graph/log.h"

#include "graph/layout.h"

enum { FIRST_CAP = 8, GROWTH = 4 };

bool graph_cause_has_arg(unsigned cause)
{
    return cause == GRAPH_CAUSE_WAKEUP || cause == GRAPH_CAUSE_PACKET;
}

static struct graph_log_block *new_block(struct arena *a, unsigned cap, int64_t base)
{
    struct graph_log_block *b = arena_alloc(a, sizeof *b + cap * 13u);
    b->base = base;
    b->cap = (uint16_t)cap;
    b->begin = (uint32_t *)(void *)(b + 1);
    b->arg = b->begin + cap;
    b->detail = (uint16_t *)(void *)(b->arg + cap);
    b->cpu = b->detail + cap;
    b->kind = (uint8_t *)(b->cpu + cap);
    return b;
}

/* Whether the entry only continues the last one. Causes end what they stand at, so an interval that has one is over; only a gap stays a gap. */
static bool continues(const struct graph_log_block *b, const struct graph_entry *x, uint8_t kind)
{
    static const uint8_t gap = GRAPH_UNKNOWN | GRAPH_CAUSE_LOST << GRAPH_KIND_CAUSE_SHIFT;
    if (!b || b->kind[b->n - 1] != kind || (graph_kind_cause(kind) != GRAPH_CAUSE_NONE && kind != gap))
        return false;
    if ((kind & GRAPH_KIND_DETAIL) && b->detail[b->n_details - 1] != x->detail)
        return false;
    return x->state != GRAPH_RUNNING || b->cpu[b->n_cpus - 1] == x->cpu;
}

void graph_log_push(struct arena *a, struct graph_log *log, const struct graph_entry *x)
{
    struct graph_log_block *b = log->tail;
    uint8_t kind = graph_kind(x->state, x->cause, x->detail != 0);
    if (continues(b, x, kind))
        return;
    if (!b || b->n == b->cap || (uint64_t)x->begin - (uint64_t)b->base > UINT32_MAX) {
        unsigned cap = !b || b->n < b->cap ? FIRST_CAP : b->cap * GROWTH;
        struct graph_log_block *fresh = new_block(a, cap < GRAPH_BLOCK ? cap : GRAPH_BLOCK, x->begin);
        if (b)
            b->next = fresh;
        else
            log->head = fresh;
        log->tail = b = fresh;
    }
    b->begin[b->n] = (uint32_t)((uint64_t)x->begin - (uint64_t)b->base);
    b->kind[b->n++] = kind;
    if (graph_cause_has_arg(x->cause))
        b->arg[b->n_args++] = x->arg;
    if (x->detail)
        b->detail[b->n_details++] = x->detail;
    if (x->state == GRAPH_RUNNING)
        b->cpu[b->n_cpus++] = x->cpu;
    log->n++;
}

void graph_log_amend(struct graph_log *log, const struct graph_entry *x)
{
    struct graph_log_block *b = log->tail;
    uint8_t old = b->kind[b->n - 1];
    b->n_args -= graph_cause_has_arg(graph_kind_cause(old));
    b->n_details -= (old & GRAPH_KIND_DETAIL) != 0;
    b->kind[b->n - 1] = graph_kind(x->state, x->cause, x->detail != 0);
    if (graph_cause_has_arg(x->cause))
        b->arg[b->n_args++] = x->arg;
    if (x->detail)
        b->detail[b->n_details++] = x->detail;
}
