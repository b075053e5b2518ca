/* SPDX-License-Identifier: MIT */
/* Reading of an open graph. It changes nothing except the texts made at the first request, so it is thread-safe. Every
 * index from the file is bounded here at each use: opening checked CPUs only, and rows are bounded at their first
 * request. */
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

/* ---- pieces ---- */

/* Piece: part of a row in one chunk: intervals, or the occupants of the CPU whose idle thread it is. Pieces follow each
 * other; a gap between two of them, whose decisions are missing, is an interval of its own. */
struct piece {
    const struct graph_chunk *chunk;
    const struct graph_place *row; /* row, or: */
    const struct graph_disk_cpu *cpu;
    int64_t begin, end;
};

/* Name of an interval: number of its piece, and its number there; GAP: the missing part before the piece. */
enum { PIECE_SHIFT = 32 };
static const uint32_t GAP = UINT32_MAX;

static uint64_t name_of(size_t piece, uint32_t i)
{
    return (uint64_t)piece << PIECE_SHIFT | i;
}

/* Row that has pieces. */
struct pieces {
    const struct graph *graph;
    const struct graph_host_row *host;
    int32_t row;
};

static bool pieces_of(const struct graph *g, int32_t row, struct pieces *out)
{
    if (row < 0 || (size_t)row >= g->n_rows)
        return false;
    *out = (struct pieces){g, graph_host_row_of(g, row), row};
    return out->host->first < out->host->n;
}

static inline struct piece piece_at(const struct pieces *p, size_t k)
{
    const struct graph *g = p->graph;
    if (p->host->row.idle_cpu >= 0) {
        size_t cpu = (size_t)p->host->row.idle_cpu;
        const struct graph_chunk *c = &g->chunks[k];
        const struct graph_disk_cpu *d = cpu < c->n_cpus && c->cpus[cpu].n ? &c->cpus[cpu] : NULL;
        int64_t end = g->cpu_ends[cpu * g->n_chunks + k];
        return (struct piece){.chunk = c, .cpu = d, .begin = d ? d->begin : end, .end = end};
    }
    const struct graph_place *at = &p->host->places[k];
    return (struct piece){.chunk = at->chunk, .row = at, .begin = at->begin, .end = at->end};
}

static uint32_t length_of(const struct piece *p)
{
    return p->row ? p->row->n : p->cpu ? p->cpu->n : 0;
}

static struct graph_series series_of(const struct piece *p)
{
    return p->row ? graph_row_series(p->row) : graph_cpu_series(p->chunk, p->cpu);
}

static int64_t end_of_piece(const struct pieces *p, size_t k)
{
    return p->host->ends[k];
}

static bool is_gap_before(const struct pieces *p, size_t k)
{
    return k > p->host->first && end_of_piece(p, k - 1) < piece_at(p, k).begin;
}

/* First piece from k on with something after ts; p->host->n: none. */
static size_t piece_after(const struct pieces *p, size_t k, int64_t ts)
{
    const int64_t *ends = p->host->ends;
    size_t n = p->host->n;
    return k >= n || ends[k] > ts ? k : search_first(i, k + 1, n, ends[i] > ts);
}

uint64_t graph_first(const struct graph *g, int32_t row)
{
    struct pieces p;
    return pieces_of(g, row, &p) ? name_of(p.host->first, 0) : GRAPH_NO_INTERVAL;
}

/* Last interval of those that end where piece k - 1 does. */
static uint64_t last_before(const struct pieces *p, size_t k)
{
    int64_t end = end_of_piece(p, k - 1);
    k = search_first(i, p->host->first, k, end_of_piece(p, i) >= end);
    struct piece at = piece_at(p, k);
    uint32_t n = length_of(&at);
    return n ? name_of(k, n - 1) : is_gap_before(p, k) ? name_of(k, GAP) : GRAPH_NO_INTERVAL;
}

uint64_t graph_last(const struct graph *g, int32_t row)
{
    struct pieces p;
    return pieces_of(g, row, &p) ? last_before(&p, p.host->n) : GRAPH_NO_INTERVAL;
}

/* Resolves the name of an interval to the row's pieces, the piece and the number; false: invalid. */
static bool parts_of(const struct graph *g, int32_t row, uint64_t interval, struct pieces *p, size_t *k, uint32_t *i)
{
    *k = interval >> PIECE_SHIFT;
    *i = (uint32_t)interval;
    return pieces_of(g, row, p) && *k >= p->host->first && *k < p->host->n;
}

uint64_t graph_next(const struct graph *g, int32_t row, uint64_t interval)
{
    struct pieces p;
    size_t k;
    uint32_t i;
    if (!parts_of(g, row, interval, &p, &k, &i))
        return GRAPH_NO_INTERVAL;
    struct piece at = piece_at(&p, k);
    uint32_t next = i == GAP ? 0 : i + 1;
    if (next < length_of(&at))
        return name_of(k, next);
    size_t after = piece_after(&p, k + 1, at.end);
    if (after == p.host->n)
        return GRAPH_NO_INTERVAL;
    return name_of(after, is_gap_before(&p, after) ? GAP : 0);
}

uint64_t graph_previous(const struct graph *g, int32_t row, uint64_t interval)
{
    struct pieces p;
    size_t k;
    uint32_t i;
    if (!parts_of(g, row, interval, &p, &k, &i))
        return GRAPH_NO_INTERVAL;
    if (i != GAP && i)
        return name_of(k, i - 1);
    if (i != GAP && is_gap_before(&p, k))
        return name_of(k, GAP);
    return k > p.host->first ? last_before(&p, k) : GRAPH_NO_INTERVAL;
}

/* ---- intervals ---- */

/* Interval of a row. */
struct found {
    struct pieces of;
    struct piece p;
    struct graph_series s;
    struct graph_position e;
    bool is_gap;
};

/* Sets the gap before piece k, which is f->p. */
static void set_gap(struct found *f, size_t k)
{
    f->is_gap = true;
    f->e = (struct graph_position){.begin = end_of_piece(&f->of, k - 1), .end = f->p.begin};
}

static bool look_up(const struct graph *g, int32_t row, uint64_t interval, struct found *f)
{
    size_t k;
    uint32_t i;
    if (!parts_of(g, row, interval, &f->of, &k, &i))
        return false;
    f->p = piece_at(&f->of, k);
    f->is_gap = false;
    if (i == GAP && is_gap_before(&f->of, k)) {
        set_gap(f, k);
        return true;
    }
    if (i >= length_of(&f->p))
        return false;
    f->s = series_of(&f->p);
    graph_series_entry(&f->s, i, &f->e);
    return true;
}

static unsigned edge_state(const struct graph_chunk *c, uint32_t at)
{
    unsigned state = graph_kind_state(c->kinds[at]);
    return state < GRAPH_STATE_COUNT ? state : GRAPH_UNKNOWN;
}

/* State of an idle thread's row, given its CPU's occupant. */
static unsigned idle_state(const struct graph_chunk *c, const struct graph_disk_cpu *cpu, uint32_t at)
{
    return graph_idle_state(graph_occupant_at(c, at), cpu->idle_row);
}

/* Index of an interval's entry in a sparse column: the block's first entry, plus the number of intervals before it in
 * the block with (kind & mask) == value. */
static uint64_t rank(const struct graph_chunk *c, const struct graph_disk_block *b, const struct graph_position *e,
    uint8_t mask, uint8_t value)
{
    const uint64_t every = UINT64_C(0x0101010101010101), low7 = 0x7f * every;
    uint32_t n = e->at - b->first, i = 0;
    uint64_t sums = 0, found = 0; /* counts of eight intervals at a time, one per byte: at most GRAPH_BLOCK in all */
    if (b->first > e->at || n >= GRAPH_BLOCK)
        return UINT64_MAX / 2; /* greater than any column */
    const uint8_t *kinds = c->kinds + b->first;
    for (; i + 8 <= n; i += 8) {
        uint64_t other;
        memcpy(&other, kinds + i, sizeof other);
        other = (other & mask * every) ^ value * every; /* a byte is zero if the interval counts */
        sums += ~(((other & low7) + low7) | other | low7) >> 7;
    }
    for (; i < n; i++)
        found += (kinds[i] & mask) == value;
    return found + (sums * every >> 56);
}

static int32_t cpu_of(const struct graph_chunk *c, const struct graph_disk_block *b, const struct graph_position *e)
{
    uint64_t i = b->cpu0 + rank(c, b, e, GRAPH_KIND_STATE, GRAPH_RUNNING);
    size_t cpu = i >= c->n_where ? c->n_cpus : c->where8 ? c->where8[i] : c->where16[i];
    return cpu < c->n_cpus ? (int32_t)cpu : -1;
}

static const char *detail_of(
    const struct graph_chunk *c, const struct graph_disk_block *b, const struct graph_position *e)
{
    uint64_t i = b->detail0 + rank(c, b, e, GRAPH_KIND_DETAIL, GRAPH_KIND_DETAIL);
    return i < c->n_details && c->details[i] < c->n_detail_names ? graph_string(c, c->detail_names[c->details[i]])
                                                                 : NULL;
}

static int32_t waker_of(const struct graph_chunk *c, const struct graph_disk_block *b, const struct graph_position *e)
{
    uint64_t i = b->waker0 + rank(c, b, e, GRAPH_KIND_CAUSE, GRAPH_CAUSE_WAKEUP << GRAPH_KIND_CAUSE_SHIFT);
    size_t row = i >= c->n_wakers ? c->n_rows : c->wakers16 ? c->wakers16[i] : c->wakers32[i];
    return row < c->n_rows ? (int32_t)row : -1;
}

static uint64_t packet_of(const struct graph_chunk *c, const struct graph_disk_block *b, const struct graph_position *e)
{
    uint64_t i = b->packet0 + rank(c, b, e, GRAPH_KIND_CAUSE, GRAPH_CAUSE_PACKET << GRAPH_KIND_CAUSE_SHIFT);
    return i < c->n_packets ? c->head->wake0 + (uint64_t)c->packets[i] : GRAPH_NO_WAKE;
}

/* Interval without the CPU of a preempted state, and the thread that held it, which are searched last. */
static void bare_interval(const struct found *f, struct graph_interval *out)
{
    const struct graph_chunk *c = f->p.chunk;
    *out = (struct graph_interval){.begin = f->e.begin, .end = f->e.end, .cpu = f->of.host->row.idle_cpu};
    if (f->is_gap)
        return;
    if (f->p.cpu) {
        out->state = (uint8_t)idle_state(c, f->p.cpu, f->e.at);
        return;
    }
    out->state = (uint8_t)edge_state(c, f->e.at);
    const struct graph_disk_block *b = &f->s.blocks[f->e.block];
    if (c->kinds[f->e.at] & GRAPH_KIND_DETAIL)
        out->detail = detail_of(c, b, &f->e);
    if (out->state == GRAPH_RUNNING)
        out->cpu = cpu_of(c, b, &f->e);
}

/* Returns whether the row surely waited for that CPU: false if its activity before is unknown, or if it left another
 * CPU. */
static bool surely_waits(const struct graph *g, int32_t row, uint64_t interval, int32_t cpu)
{
    uint64_t before = graph_previous(g, row, interval);
    struct graph_interval is = {.state = GRAPH_BLOCKED};
    if (before != GRAPH_NO_INTERVAL)
        graph_interval_bare(g, row, before, &is);
    if (is.state == GRAPH_RUNNING)
        graph_interval(g, row, before, &is);
    return is.state == GRAPH_RUNNING ? is.cpu == cpu : is.state != GRAPH_UNKNOWN;
}

/* A preempted thread waits for the CPU that it gets next. */
static void describe_preempted(const struct found *f, uint64_t interval, struct graph_interval *out)
{
    const struct graph *g = f->of.graph;
    struct found next = *f;
    if (f->p.row) {
        if (!graph_series_next(&f->s, &next.e) &&
            (!look_up(g, f->of.row, graph_next(g, f->of.row, interval), &next) || next.is_gap))
            return;
        if (edge_state(next.p.chunk, next.e.at) != GRAPH_RUNNING)
            return;
        out->cpu = cpu_of(next.p.chunk, &next.s.blocks[next.e.block], &next.e);
    }
    if (!out->detail)
        out->detail = graph_preempted_detail(g, f->of.row, (uint32_t)out->cpu, f->e.begin, f->e.end);
    if (out->detail && !strcmp(out->detail, "throttled") && !surely_waits(g, f->of.row, interval, out->cpu))
        out->detail = NULL;
}

static void read_interval(const struct graph *g, int32_t row, uint64_t interval, bool bare, struct graph_interval *out)
{
    struct found f;
    *out = (struct graph_interval){.cpu = -1};
    if (!look_up(g, row, interval, &f))
        return;
    bare_interval(&f, out);
    if (out->state == GRAPH_PREEMPTED && !bare)
        describe_preempted(&f, interval, out);
}

void graph_interval(const struct graph *g, int32_t row, uint64_t interval, struct graph_interval *out)
{
    read_interval(g, row, interval, false, out);
}

void graph_interval_bare(const struct graph *g, int32_t row, uint64_t interval, struct graph_interval *out)
{
    read_interval(g, row, interval, true, out);
}

/* Finds the interval that ends at ts or later and begins before; returns its name or none. */
static uint64_t find(const struct graph *g, int32_t row, int64_t ts, struct found *f)
{
    struct pieces *p = &f->of;
    if (!pieces_of(g, row, p) || ts <= p->host->row.begin)
        return GRAPH_NO_INTERVAL;
    size_t k = piece_after(p, p->host->first, ts - 1);
    if (k == p->host->n)
        return GRAPH_NO_INTERVAL;
    f->p = piece_at(p, k);
    f->is_gap = false;
    if (ts - 1 < f->p.begin) {
        set_gap(f, k);
        return name_of(k, GAP);
    }
    f->s = series_of(&f->p); /* not empty: a CPU has occupants then */
    return graph_series_find(&f->s, ts - 1, &f->e) ? name_of(k, f->e.at - f->s.first) : GRAPH_NO_INTERVAL;
}

uint64_t graph_find(const struct graph *g, int32_t row, int64_t ts)
{
    struct found f;
    return find(g, row, ts, &f);
}

uint64_t graph_find_bare(const struct graph *g, int32_t row, int64_t ts, struct graph_interval *out)
{
    struct found f;
    uint64_t interval = find(g, row, ts, &f);
    if (interval != GRAPH_NO_INTERVAL)
        bare_interval(&f, out);
    return interval;
}

/* Time of the wake that ended the interval at `end`: the end, or before the wait began. */
static int64_t wake_ts(const struct graph *g, const struct graph_chunk *c, uint32_t interval, int64_t end)
{
    size_t at = search_first(i, 0, c->n_early_wakes, c->early_wakes[i].interval >= interval);
    const struct graph_disk_early_wake *w = at < c->n_early_wakes ? &c->early_wakes[at] : NULL;
    return w && w->interval == interval && w->ts >= g->begin && w->ts <= g->end ? w->ts : end;
}

void graph_interval_cause(const struct graph *g, int32_t row, uint64_t interval, struct graph_cause *out)
{
    struct found f;
    *out = (struct graph_cause){.kind = GRAPH_CAUSE_NONE, .row = -1, .wake = GRAPH_NO_WAKE};
    if (!look_up(g, row, interval, &f))
        return;
    if (f.is_gap) {
        out->kind = GRAPH_CAUSE_LOST;
        out->ts = f.e.end;
        return;
    }
    if (f.p.cpu)
        return;
    const struct graph_chunk *c = f.p.chunk;
    const struct graph_disk_block *b = &f.s.blocks[f.e.block];
    unsigned cause = graph_kind_cause(c->kinds[f.e.at]);
    if (f.e.at == f.s.first && interval == graph_first(g, row) && cause == GRAPH_CAUSE_NONE &&
        edge_state(c, f.e.at) == GRAPH_PREEMPTED) {
        graph_row_origin(g, row, out);
        if (out->kind == GRAPH_CAUSE_FORK)
            return;
    }
    out->kind = cause <= GRAPH_CAUSE_LOST ? (uint8_t)cause : GRAPH_CAUSE_NONE;
    out->ts = f.e.end;
    if (cause == GRAPH_CAUSE_WAKEUP) {
        out->row = graph_host_row(c, waker_of(c, b, &f.e));
        out->ts = wake_ts(g, c, f.e.at, f.e.end);
    } else if (cause == GRAPH_CAUSE_PACKET) {
        out->wake = packet_of(c, b, &f.e);
    }
}

/* ---- sums ---- */

static void add_part(const struct piece *p, int64_t begin, int64_t end, int64_t totals[GRAPH_STATE_COUNT])
{
    struct graph_series s = series_of(p);
    struct graph_position e;
    if (!graph_series_find(&s, begin, &e))
        return;
    do {
        int64_t from = e.begin > begin ? e.begin : begin, to = e.end < end ? e.end : end;
        totals[p->cpu ? idle_state(p->chunk, p->cpu, e.at) : edge_state(p->chunk, e.at)] += to - from;
    } while (graph_series_next(&s, &e) && e.begin < end);
}

/* A series within the time was summed when it was written. */
static inline void add_sums(
    const struct graph_chunk *c, uint32_t total0, unsigned states, int64_t length, int64_t totals[GRAPH_STATE_COUNT])
{
    const int64_t *next = c->totals + total0;
    for (uint64_t left = (uint64_t)length; states; states &= states - 1) {
        uint64_t ns = (uint64_t)*next++;
        ns = ns < left ? ns : left; /* limited to the rest, for any file contents */
        totals[__builtin_ctz(states)] += (int64_t)ns;
        left -= ns;
    }
}

static void add_piece(const struct piece *p, int64_t begin, int64_t end, int64_t totals[GRAPH_STATE_COUNT])
{
    if (!length_of(p))
        return;
    if (p->begin >= begin && p->end <= end) {
        add_sums(p->chunk, p->cpu ? p->cpu->total0 : p->row->total0, p->cpu ? p->cpu->states : p->row->states,
            p->end - p->begin, totals);
        return;
    }
    begin = begin > p->begin ? begin : p->begin;
    end = end < p->end ? end : p->end;
    if (begin < end)
        add_part(p, begin, end, totals);
}

/* Adds the pieces of a thread that are within the time, from k on. Returns the first that is not. */
static size_t add_whole(const struct pieces *p, size_t k, int64_t end, int64_t *last, int64_t totals[GRAPH_STATE_COUNT])
{
    const struct graph_place *at = p->host->places + k, *behind = p->host->places + p->host->n;
    int64_t unknown = 0, until = *last;
    for (; at < behind && at->end <= end; at++) {
        unknown += at->begin - until; /* a gap */
        until = at->end;
        if (at->n)
            add_sums(at->chunk, at->total0, at->states, at->end - at->begin, totals);
    }
    *last = until;
    totals[GRAPH_UNKNOWN] += unknown;
    return (size_t)(at - p->host->places);
}

void graph_row_totals(const struct graph *g, int32_t row, int64_t begin, int64_t end, int64_t totals[GRAPH_STATE_COUNT])
{
    struct pieces p;
    memset(totals, 0, GRAPH_STATE_COUNT * sizeof *totals);
    if (!pieces_of(g, row, &p) || begin >= end)
        return;
    size_t k = piece_after(&p, p.host->first, begin);
    int64_t last = k > p.host->first ? end_of_piece(&p, k - 1) : p.host->row.begin;
    for (; k < p.host->n && last < end; k++) {
        if (p.host->row.idle_cpu < 0 && last >= begin)
            k = add_whole(&p, k, end, &last, totals);
        if (k == p.host->n)
            break;
        struct piece at = piece_at(&p, k);
        int64_t from = last > begin ? last : begin, to = at.begin < end ? at.begin : end;
        totals[GRAPH_UNKNOWN] += to > from ? to - from : 0; /* a gap */
        add_piece(&at, begin, end, totals);
        last = at.end;
    }
}

/* ---- CPUs ---- */

size_t graph_cpus(const struct graph *g)
{
    return g->n_cpus;
}

int32_t graph_cpu_occupant(const struct graph *g, uint32_t cpu, int64_t ts)
{
    struct graph_occupant o;
    return graph_occupant_find(g, cpu, ts, &o) ? graph_host_row(o.chunk, o.row) : -1;
}
