/* Reading an open graph: nothing here changes it but the texts that are made when first asked for, so any number of threads may read. */
#include <string.h>

#include "graph/layout.h"

const char *graph_state_name(int state)
{
    static const char *const names[] = {
#define X(id, name) name,
        GRAPH_STATES(X)
#undef X
    };
    return state >= 0 && state < GRAPH_STATE_COUNT ? names[state] : "unknown";
}

const char *graph_string(const struct graph *g, uint32_t number)
{
    return number < g->n_strings ? g->text + g->string_at[number] : "";
}

/* ---- series -------------------------------------------------------------------------------------------------------------------- */

uint32_t graph_series_block(const struct graph_disk_block *blocks, uint32_t n_blocks, uint32_t i)
{
    uint32_t lo = 0, hi = n_blocks;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (blocks[mid].first <= i)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

uint32_t graph_series_at(const struct graph_disk_block *blocks, uint32_t n_blocks, const uint32_t *begins, uint32_t end, int64_t ts)
{
    if (!n_blocks || ts < blocks[0].base)
        return UINT32_MAX;
    uint32_t lo = 0, hi = n_blocks;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (blocks[mid].base <= ts)
            lo = mid;
        else
            hi = mid;
    }
    uint64_t after = (uint64_t)ts - (uint64_t)blocks[lo].base;
    uint32_t first = blocks[lo].first, past = lo + 1 < n_blocks ? blocks[lo + 1].first : end;
    while (past - first > 1) {
        uint32_t mid = first + (past - first) / 2;
        if (begins[mid] <= after)
            first = mid;
        else
            past = mid;
    }
    return first;
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------------- */

static const struct graph_disk_row *row_of(const struct graph *g, int32_t row)
{
    return row >= 0 && (size_t)row < g->n_rows ? &g->rows[row] : NULL;
}

static const struct graph_disk_cpu *idle_cpu(const struct graph *g, const struct graph_disk_row *r)
{
    return r->idle_cpu >= 0 ? &g->cpus[r->idle_cpu] : NULL;
}

size_t graph_rows(const struct graph *g)
{
    return g->n_rows;
}

void graph_row(const struct graph *g, int32_t row, struct graph_row *out)
{
    const struct graph_disk_row *r = row_of(g, row);
    if (!r) {
        *out = (struct graph_row){
            .tid = -1, .tgid = -1, .ppid = -1, .parent_row = -1, .idle_cpu = -1, .vtid = -1, .name = "", .first_name = ""};
        return;
    }
    *out = (struct graph_row){.tid = r->tid,
        .tgid = r->tgid,
        .ppid = r->ppid,
        .parent_row = r->parent_row,
        .idle_cpu = r->idle_cpu,
        .vtid = r->vtid,
        .pid_ns = r->pid_ns,
        .begin = r->begin,
        .end = r->end,
        .name = graph_string(g, r->name),
        .first_name = graph_string(g, r->first_name),
        .born = (r->flags & GRAPH_DISK_BORN) != 0,
        .died = (r->flags & GRAPH_DISK_DIED) != 0};
}

size_t graph_row_intervals(const struct graph *g, int32_t row)
{
    const struct graph_disk_row *r = row_of(g, row);
    if (!r)
        return 0;
    return r->idle_cpu >= 0 ? idle_cpu(g, r)->n : r->n;
}

/* ---- intervals ----------------------------------------------------------------------------------------------------------------- */

/* Where an interval of a thread lies. */
struct place {
    const struct graph_disk_row *row;
    const struct graph_disk_block *block;
    uint32_t i; /* in the columns */
    int64_t begin, end;
};

static struct place place_of(const struct graph *g, const struct graph_disk_row *r, uint32_t i)
{
    const struct graph_disk_block *blocks = g->blocks + r->first_block;
    uint32_t at = r->first + i, b = graph_series_block(blocks, r->n_blocks, at);
    struct place p = {.row = r, .block = &blocks[b], .i = at, .begin = blocks[b].base + g->begins[at], .end = r->end};
    if (i + 1 < r->n)
        p.end = b + 1 < r->n_blocks && blocks[b + 1].first == at + 1 ? blocks[b + 1].base : blocks[b].base + g->begins[at + 1];
    return p;
}

/* How many intervals of the block before i have (kind & mask) == value. */
static uint32_t rank(const struct graph *g, const struct place *p, uint8_t mask, uint8_t value)
{
    uint32_t n = 0;
    for (uint32_t i = p->block->first; i < p->i; i++)
        n += (g->kinds[i] & mask) == value;
    return n;
}

static int32_t cpu_of(const struct graph *g, const struct place *p)
{
    uint32_t at = p->block->cpu0 + rank(g, p, GRAPH_KIND_STATE, GRAPH_RUNNING);
    return g->where8 ? g->where8[at] : g->where16[at];
}

static void idle_interval(const struct graph *g, const struct graph_disk_cpu *c, int32_t row, uint32_t i, struct graph_interval *out)
{
    const struct graph_disk_block *blocks = g->cpu_blocks + c->first_block;
    uint32_t at = c->first + i, b = graph_series_block(blocks, c->n_blocks, at);
    int32_t occupant = graph_occupant_at(g, at);
    *out = (struct graph_interval){.begin = blocks[b].base + g->cpu_begins[at], .end = g->rows[row].end, .cpu = g->rows[row].idle_cpu};
    if (i + 1 < c->n)
        out->end = b + 1 < c->n_blocks && blocks[b + 1].first == at + 1 ? blocks[b + 1].base : blocks[b].base + g->cpu_begins[at + 1];
    out->state = occupant == row ? GRAPH_RUNNING : occupant < 0 ? GRAPH_UNKNOWN : GRAPH_PREEMPTED;
    if (out->state == GRAPH_PREEMPTED)
        out->detail = graph_preempted_detail(g, row, (uint32_t)out->cpu, out->begin, out->end);
}

void graph_interval(const struct graph *g, int32_t row, size_t i, struct graph_interval *out)
{
    const struct graph_disk_row *r = row_of(g, row);
    if (!r || i >= graph_row_intervals(g, row)) {
        *out = (struct graph_interval){.cpu = -1};
        return;
    }
    if (r->idle_cpu >= 0) {
        idle_interval(g, idle_cpu(g, r), row, (uint32_t)i, out);
        return;
    }
    struct place p = place_of(g, r, (uint32_t)i);
    uint8_t kind = g->kinds[p.i];
    *out = (struct graph_interval){.begin = p.begin, .end = p.end, .state = (uint8_t)graph_kind_state(kind), .cpu = -1};
    if (kind & GRAPH_KIND_DETAIL)
        out->detail = graph_string(g, g->detail_names[g->details[p.block->detail0 + rank(g, &p, GRAPH_KIND_DETAIL, GRAPH_KIND_DETAIL)]]);
    if (out->state == GRAPH_RUNNING) {
        out->cpu = cpu_of(g, &p);
    } else if (out->state == GRAPH_PREEMPTED && i + 1 < r->n && graph_kind_state(g->kinds[p.i + 1]) == GRAPH_RUNNING) {
        struct place next = place_of(g, r, (uint32_t)i + 1);
        out->cpu = cpu_of(g, &next);
        if (!out->detail)
            out->detail = graph_preempted_detail(g, row, (uint32_t)out->cpu, p.begin, p.end);
    }
}

size_t graph_find(const struct graph *g, int32_t row, int64_t ts)
{
    size_t n = graph_row_intervals(g, row);
    const struct graph_disk_row *r = row_of(g, row);
    if (!n || ts <= r->begin || ts > r->end)
        return n;
    uint32_t at, first;
    if (r->idle_cpu >= 0) {
        const struct graph_disk_cpu *c = idle_cpu(g, r);
        first = c->first;
        at = graph_series_at(g->cpu_blocks + c->first_block, c->n_blocks, g->cpu_begins, first + c->n, ts - 1);
    } else {
        first = r->first;
        at = graph_series_at(g->blocks + r->first_block, r->n_blocks, g->begins, first + r->n, ts - 1);
    }
    return at == UINT32_MAX ? n : at - first;
}

void graph_row_origin(const struct graph *g, int32_t row, struct graph_cause *out)
{
    const struct graph_disk_row *r = row_of(g, row);
    *out = (struct graph_cause){.kind = GRAPH_CAUSE_NONE, .row = -1, .wake = UINT32_MAX, .ts = r ? r->begin : 0};
    if (r && (r->flags & GRAPH_DISK_BORN) && r->parent_row >= 0) {
        out->kind = GRAPH_CAUSE_FORK;
        out->row = r->parent_row;
    }
}

static int64_t late_ts(const struct graph *g, uint32_t interval, int64_t otherwise)
{
    size_t lo = 0, hi = g->n_late;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (g->late[mid].interval < interval)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < g->n_late && g->late[lo].interval == interval ? g->late[lo].ts : otherwise;
}

void graph_interval_cause(const struct graph *g, int32_t row, size_t i, struct graph_cause *out)
{
    const struct graph_disk_row *r = row_of(g, row);
    *out = (struct graph_cause){.kind = GRAPH_CAUSE_NONE, .row = -1, .wake = UINT32_MAX};
    if (!r || r->idle_cpu >= 0 || i >= r->n)
        return;
    struct place p = place_of(g, r, (uint32_t)i);
    unsigned cause = graph_kind_cause(g->kinds[p.i]);
    if (i == 0 && cause == GRAPH_CAUSE_NONE && graph_kind_state(g->kinds[p.i]) == GRAPH_PREEMPTED) {
        graph_row_origin(g, row, out);
        if (out->kind == GRAPH_CAUSE_FORK)
            return;
    }
    out->kind = (uint8_t)cause;
    out->ts = p.end;
    if (cause == GRAPH_CAUSE_WAKEUP) {
        uint32_t at = p.block->waker0 + rank(g, &p, GRAPH_KIND_CAUSE, GRAPH_CAUSE_WAKEUP << GRAPH_KIND_CAUSE_SHIFT);
        out->row = (int32_t)(g->wakers16 ? g->wakers16[at] : g->wakers32[at]);
        out->ts = late_ts(g, p.i, p.end);
    } else if (cause == GRAPH_CAUSE_PACKET) {
        out->wake = g->packets[p.block->packet0 + rank(g, &p, GRAPH_KIND_CAUSE, GRAPH_CAUSE_PACKET << GRAPH_KIND_CAUSE_SHIFT)];
    }
}

/* ---- sums ---------------------------------------------------------------------------------------------------------------------- */

void graph_row_totals(const struct graph *g, int32_t row, int64_t begin, int64_t end, int64_t totals[GRAPH_STATE_COUNT])
{
    memset(totals, 0, GRAPH_STATE_COUNT * sizeof *totals);
    const struct graph_disk_row *r = row_of(g, row);
    if (!r)
        return;
    begin = begin > r->begin ? begin : r->begin;
    end = end < r->end ? end : r->end;
    size_t n = graph_row_intervals(g, row);
    if (begin >= end || !n)
        return;
    const struct graph_disk_cpu *c = idle_cpu(g, r);
    const struct graph_disk_block *blocks = c ? g->cpu_blocks + c->first_block : g->blocks + r->first_block;
    const uint32_t *begins = c ? g->cpu_begins : g->begins;
    uint32_t n_blocks = c ? c->n_blocks : r->n_blocks, past = c ? c->first + c->n : r->first + r->n;
    uint32_t at = graph_series_at(blocks, n_blocks, begins, past, begin), b = graph_series_block(blocks, n_blocks, at);
    for (int64_t from = begin; at < past && from < end; at++) {
        int64_t to = r->end;
        uint32_t next = b + 1 < n_blocks && blocks[b + 1].first == at + 1 ? b + 1 : b;
        if (at + 1 < past)
            to = blocks[next].base + begins[at + 1];
        int32_t occupant = c ? graph_occupant_at(g, at) : -1;
        unsigned state = !c   ? graph_kind_state(g->kinds[at])
            : occupant == row ? GRAPH_RUNNING
            : occupant < 0    ? GRAPH_UNKNOWN
                              : GRAPH_PREEMPTED;
        to = to < end ? to : end;
        totals[state] += to - from;
        from = to;
        b = next;
    }
}

/* ---- CPUs and losses ----------------------------------------------------------------------------------------------------------- */

int32_t graph_occupant_at(const struct graph *g, size_t i)
{
    return (int32_t)(g->occupants16 ? g->occupants16[i] : g->occupants32[i]) - 1;
}

size_t graph_cpus(const struct graph *g)
{
    return g->n_cpus;
}

int32_t graph_cpu_occupant(const struct graph *g, uint32_t cpu, int64_t ts)
{
    if (cpu >= g->n_cpus || ts >= g->head->end)
        return -1;
    const struct graph_disk_cpu *c = &g->cpus[cpu];
    uint32_t at = graph_series_at(g->cpu_blocks + c->first_block, c->n_blocks, g->cpu_begins, c->first + c->n, ts);
    return at == UINT32_MAX ? -1 : graph_occupant_at(g, at);
}

size_t graph_losses(const struct graph *g, const struct graph_loss **out)
{
    *out = g->losses;
    return g->n_losses;
}
