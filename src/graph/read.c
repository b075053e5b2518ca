/* Reading an open graph: nothing here changes it but the texts that are made when first asked for, so any number of
 * threads may read. Every number from the file that leads somewhere is bounded here, each time: opening looked at rows
 * and CPUs only. */
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "graph/series.h"

const char *graph_state_name(int state)
{
    static const char *const names[] = {
#define X(id, name) name,
        GRAPH_STATES(X)
#undef X
    };
    return state >= 0 && state < GRAPH_STATE_COUNT ? names[state] : "unknown";
}

/* ---- rows ---- */

static const struct graph_disk_row *row_of(const struct graph *g, int32_t row)
{
    return row >= 0 && (size_t)row < g->n_rows ? &g->rows[row] : NULL;
}

size_t graph_rows(const struct graph *g)
{
    return g->n_rows;
}

/* Of those that the row had for a part of [begin, end], the name that it had longest. A number in the table of formers;
 * n_formers: the last one. */
size_t graph_former(const struct graph *g, int32_t row, int64_t begin, int64_t end)
{
    size_t n = g->n_formers, best = n;
    size_t i = search_first(
        k, 0, n, g->formers[k].row > row || (g->formers[k].row == row && g->formers[k].until > begin));
    if (begin >= end)
        return i < n && g->formers[i].row == row ? i : n;
    uint64_t longest = 0;
    for (int64_t from = begin;; i++) {
        bool last = i >= n || g->formers[i].row != row;
        int64_t to = last || g->formers[i].until > end ? end : g->formers[i].until;
        if (to > from && (uint64_t)to - (uint64_t)from > longest) {
            longest = (uint64_t)to - (uint64_t)from;
            best = last ? n : i;
        }
        if (last || to == end)
            return best;
        from = to > from ? to : from;
    }
}

static const struct graph_row no_row = {
    .tid = -1, .tgid = -1, .ppid = -1, .parent_row = -1, .idle_cpu = -1, .vtid = -1, .name = ""};

void graph_row(const struct graph *g, int32_t row, struct graph_row *out)
{
    const struct graph_disk_row *r = row_of(g, row);
    *out = no_row;
    if (r)
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
            .born = (r->flags & GRAPH_DISK_BORN) != 0,
            .died = (r->flags & GRAPH_DISK_DIED) != 0};
}

void graph_row_then(const struct graph *g, int32_t row, int64_t begin, int64_t end, struct graph_row *out)
{
    graph_row(g, row, out);
    size_t i = graph_former(g, row, begin, end);
    if (i < g->n_formers) {
        out->name = graph_string(g, g->formers[i].name);
        out->tid = g->formers[i].tid;
    }
}

static bool is_meant(const char *thread, bool number, int32_t tid, const char *name)
{
    return number ? strtoll(thread, NULL, 10) == tid : !strcmp(thread, name);
}

bool graph_row_is(const struct graph *g, int32_t row, const char *thread)
{
    const struct graph_disk_row *r = row_of(g, row);
    bool number = *thread && strspn(thread, "0123456789") == strlen(thread);
    if (!r || is_meant(thread, number, r->tid, graph_string(g, r->name)))
        return r;
    for (size_t i = graph_former(g, row, INT64_MIN, INT64_MIN); i < g->n_formers && g->formers[i].row == row; i++)
        if (is_meant(thread, number, g->formers[i].tid, graph_string(g, g->formers[i].name)))
            return true;
    return false;
}

size_t graph_row_intervals(const struct graph *g, int32_t row)
{
    const struct graph_disk_row *r = row_of(g, row);
    if (!r)
        return 0;
    return r->idle_cpu >= 0 ? g->cpus[r->idle_cpu].n : r->n;
}

/* ---- intervals ---- */

static unsigned edge_state(const struct graph *g, uint32_t at)
{
    unsigned state = graph_kind_state(g->kinds[at]);
    return state < GRAPH_STATE_COUNT ? state : GRAPH_UNKNOWN;
}

/* How a CPU's occupant looks from the idle thread's row. */
static unsigned idle_state(const struct graph *g, int32_t row, uint32_t at)
{
    int32_t occupant = graph_occupant_at(g, at);
    return occupant == row ? GRAPH_RUNNING : occupant < 0 ? GRAPH_UNKNOWN : GRAPH_PREEMPTED;
}

/* How many intervals of the block before this one have (kind & mask) == value: added to where the block's entries
 * begin, its own entry in a sparse column. */
static uint64_t rank(const struct graph *g, const struct graph_disk_block *b, const struct graph_position *e,
    uint8_t mask, uint8_t value)
{
    uint64_t n = 0;
    if (e->at - b->first >= GRAPH_BLOCK)
        return UINT64_MAX / 2; /* beyond every column */
    for (uint32_t i = b->first; i < e->at; i++)
        n += (g->kinds[i] & mask) == value;
    return n;
}

static int32_t cpu_of(const struct graph *g, const struct graph_disk_block *b, const struct graph_position *e)
{
    uint64_t i = b->cpu0 + rank(g, b, e, GRAPH_KIND_STATE, GRAPH_RUNNING);
    size_t cpu = i >= g->n_where ? g->n_cpus : g->where8 ? g->where8[i] : g->where16[i];
    return cpu < g->n_cpus ? (int32_t)cpu : -1;
}

static const char *detail_of(const struct graph *g, const struct graph_disk_block *b, const struct graph_position *e)
{
    uint64_t i = b->detail0 + rank(g, b, e, GRAPH_KIND_DETAIL, GRAPH_KIND_DETAIL);
    return i < g->n_details && g->details[i] < g->n_detail_names ? graph_string(g, g->detail_names[g->details[i]])
                                                                 : NULL;
}

static int32_t waker_of(const struct graph *g, const struct graph_disk_block *b, const struct graph_position *e)
{
    uint64_t i = b->waker0 + rank(g, b, e, GRAPH_KIND_CAUSE, GRAPH_CAUSE_WAKEUP << GRAPH_KIND_CAUSE_SHIFT);
    size_t row = i >= g->n_wakers ? g->n_rows : g->wakers16 ? g->wakers16[i] : g->wakers32[i];
    return row < g->n_rows ? (int32_t)row : -1;
}

static uint32_t packet_of(const struct graph *g, const struct graph_disk_block *b, const struct graph_position *e)
{
    uint64_t i = b->packet0 + rank(g, b, e, GRAPH_KIND_CAUSE, GRAPH_CAUSE_PACKET << GRAPH_KIND_CAUSE_SHIFT);
    return i < g->n_packets ? g->packets[i] : UINT32_MAX;
}

/* All but the CPU of a preempted state, and who held it meanwhile; those are looked for last. */
static void bare_interval(const struct graph *g, const struct graph_disk_row *r, const struct graph_series *s,
    const struct graph_position *e, struct graph_interval *out)
{
    const struct graph_disk_block *b = &s->blocks[e->block];
    *out = (struct graph_interval){.begin = e->begin, .end = e->end, .cpu = r->idle_cpu};
    if (r->idle_cpu >= 0) {
        out->state = (uint8_t)idle_state(g, (int32_t)(r - g->rows), e->at);
        return;
    }
    out->state = (uint8_t)edge_state(g, e->at);
    if (g->kinds[e->at] & GRAPH_KIND_DETAIL)
        out->detail = detail_of(g, b, e);
    if (out->state == GRAPH_RUNNING)
        out->cpu = cpu_of(g, b, e);
}

/* A thread that is preempted waits for the CPU that it gets next. */
static void describe_preempted(const struct graph *g, const struct graph_disk_row *r, const struct graph_series *s,
    const struct graph_position *e, struct graph_interval *out)
{
    struct graph_position next = *e;
    if (r->idle_cpu < 0) {
        if (!graph_series_next(s, &next) || edge_state(g, next.at) != GRAPH_RUNNING)
            return;
        out->cpu = cpu_of(g, &s->blocks[next.block], &next);
    }
    if (!out->detail)
        out->detail = graph_preempted_detail(g, (int32_t)(r - g->rows), (uint32_t)out->cpu, e->begin, e->end);
}

static void read_interval(const struct graph *g, int32_t row, size_t i, bool bare, struct graph_interval *out)
{
    const struct graph_disk_row *r = row_of(g, row);
    *out = (struct graph_interval){.cpu = -1};
    if (!r || i >= graph_row_intervals(g, row))
        return;
    struct graph_series s = graph_row_series(g, r);
    struct graph_position e;
    graph_series_entry(&s, (uint32_t)i, &e);
    bare_interval(g, r, &s, &e, out);
    if (out->state == GRAPH_PREEMPTED && !bare)
        describe_preempted(g, r, &s, &e, out);
}

void graph_interval(const struct graph *g, int32_t row, size_t i, struct graph_interval *out)
{
    read_interval(g, row, i, false, out);
}

void graph_interval_bare(const struct graph *g, int32_t row, size_t i, struct graph_interval *out)
{
    read_interval(g, row, i, true, out);
}

size_t graph_find(const struct graph *g, int32_t row, int64_t ts)
{
    const struct graph_disk_row *r = row_of(g, row);
    if (!r)
        return 0;
    struct graph_series s = graph_row_series(g, r);
    struct graph_position e;
    return ts > s.begin && graph_series_find(&s, ts - 1, &e) ? e.at - s.first : s.n;
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

/* When the wake came that ended the interval at `end`: at the end, or before the wait began. */
static int64_t wake_ts(const struct graph *g, uint32_t interval, int64_t end)
{
    size_t at = search_first(i, 0, g->n_early_wakes, g->early_wakes[i].interval >= interval);
    const struct graph_disk_early_wake *w = at < g->n_early_wakes ? &g->early_wakes[at] : NULL;
    return w && w->interval == interval && w->ts >= g->head->begin && w->ts <= g->head->end ? w->ts : end;
}

void graph_interval_cause(const struct graph *g, int32_t row, size_t i, struct graph_cause *out)
{
    const struct graph_disk_row *r = row_of(g, row);
    *out = (struct graph_cause){.kind = GRAPH_CAUSE_NONE, .row = -1, .wake = UINT32_MAX};
    if (!r || r->idle_cpu >= 0 || i >= r->n)
        return;
    struct graph_series s = graph_row_series(g, r);
    struct graph_position e;
    graph_series_entry(&s, (uint32_t)i, &e);
    unsigned cause = graph_kind_cause(g->kinds[e.at]);
    if (i == 0 && cause == GRAPH_CAUSE_NONE && edge_state(g, e.at) == GRAPH_PREEMPTED) {
        graph_row_origin(g, row, out);
        if (out->kind == GRAPH_CAUSE_FORK)
            return;
    }
    out->kind = cause <= GRAPH_CAUSE_LOST ? (uint8_t)cause : GRAPH_CAUSE_NONE;
    out->ts = e.end;
    if (cause == GRAPH_CAUSE_WAKEUP) {
        out->row = waker_of(g, &s.blocks[e.block], &e);
        out->ts = wake_ts(g, e.at, e.end);
    } else if (cause == GRAPH_CAUSE_PACKET) {
        out->wake = packet_of(g, &s.blocks[e.block], &e);
    }
}

/* ---- sums ---- */

void graph_row_totals(const struct graph *g, int32_t row, int64_t begin, int64_t end, int64_t totals[GRAPH_STATE_COUNT])
{
    memset(totals, 0, GRAPH_STATE_COUNT * sizeof *totals);
    const struct graph_disk_row *r = row_of(g, row);
    if (!r)
        return;
    begin = begin > r->begin ? begin : r->begin;
    end = end < r->end ? end : r->end;
    struct graph_series s = graph_row_series(g, r);
    struct graph_position e;
    if (begin >= end || !graph_series_find(&s, begin, &e))
        return;
    do {
        int64_t from = e.begin > begin ? e.begin : begin, to = e.end < end ? e.end : end;
        totals[r->idle_cpu >= 0 ? idle_state(g, row, e.at) : edge_state(g, e.at)] += to - from;
    } while (graph_series_next(&s, &e) && e.begin < end);
}

/* ---- CPUs and losses ---- */

size_t graph_cpus(const struct graph *g)
{
    return g->n_cpus;
}

int32_t graph_cpu_occupant(const struct graph *g, uint32_t cpu, int64_t ts)
{
    if (cpu >= g->n_cpus || ts >= g->head->end)
        return -1;
    struct graph_series s = graph_cpu_series(g, &g->cpus[cpu]);
    struct graph_position e;
    return graph_series_find(&s, ts, &e) ? graph_occupant_at(g, e.at) : -1;
}

size_t graph_losses(const struct graph *g, const struct graph_loss **out)
{
    *out = g->losses;
    return g->n_losses;
}
