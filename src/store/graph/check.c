/* SPDX-License-Identifier: MIT */
/* Validation of a file. Opening checks the few things that are not bounded again at their use. Everything else, for
 * which readers are safe, is checked only by `verify`. */
#include "graph/series.h"

/* ---- tables ---- */

static const char *row_defect(
    const struct graph_chunk *g, const struct graph_disk_row *r, size_t next, size_t next_block)
{
    if (r->begin < g->head->begin || r->end > g->head->end)
        return "a row outside the graph's time";
    if (r->parent_row < -1 || (r->parent_row >= 0 && (size_t)r->parent_row >= g->n_rows) || r->begin > r->end)
        return "a row that makes no sense";
    if (r->first != next || r->n > g->n_intervals - next || r->first_block != next_block ||
        r->n_blocks > g->n_blocks - next_block || !r->n_blocks != !r->n)
        return "a row outside the columns";
    if (r->idle_cpu < 0)
        return r->n || r->begin == r->end ? NULL : "a row without states has a length";
    if (r->n || (size_t)r->idle_cpu >= g->n_cpus || g->cpus[r->idle_cpu].idle_row != (int32_t)(r - g->rows))
        return "an idle row that is not its CPU's";
    if (r->begin != g->cpus[r->idle_cpu].begin || r->end != g->cpus[r->idle_cpu].end)
        return "an idle row of another time than its CPU's";
    return NULL;
}

/* The sums of the states of a series must add up to its length. */
static const char *totals_defect(const struct graph_chunk *g, uint32_t total0, unsigned states, int64_t left)
{
    if (states >> GRAPH_STATE_COUNT || total0 > g->n_totals)
        return "sums that lie outside";
    for (size_t at = total0; states; states &= states - 1, at++) {
        if (at >= g->n_totals)
            return "sums that lie outside";
        int64_t ns = g->totals[at];
        if (ns <= 0 || ns > left)
            return "sums that make no sense";
        left -= ns;
    }
    return left ? "sums that make no sense" : NULL;
}

static const char *rows_defect(const struct graph_chunk *g)
{
    const char *what;
    size_t next = 0, next_block = 0;
    for (size_t i = 0; i < g->n_rows; i++) {
        const struct graph_disk_row *r = &g->rows[i];
        if ((what = row_defect(g, r, next, next_block)) ||
            (what = totals_defect(g, r->total0, r->states, r->idle_cpu >= 0 ? 0 : r->end - r->begin)))
            return what;
        next += g->rows[i].n;
        next_block += g->rows[i].n_blocks;
    }
    return next != g->n_intervals || next_block != g->n_blocks ? "columns of different lengths" : NULL;
}

static const char *cpus_defect(const struct graph_chunk *g)
{
    size_t next = 0, next_block = 0;
    for (size_t i = 0; i < g->n_cpus; i++) {
        const struct graph_disk_cpu *c = &g->cpus[i];
        if (c->first != next || c->n > g->n_occupants - next || c->first_block != next_block ||
            c->n_blocks > g->n_cpu_blocks - next_block || !c->n_blocks != !c->n)
            return "a CPU outside the columns";
        if (c->begin < g->head->begin || c->end > g->head->end || c->begin > c->end || (!c->n && c->begin != c->end))
            return "a CPU that makes no sense";
        const char *what = totals_defect(g, c->total0, c->states, c->end - c->begin);
        if (what)
            return what;
        next += c->n;
        next_block += c->n_blocks;
    }
    return next != g->n_occupants || next_block != g->n_cpu_blocks ? "columns of different lengths" : NULL;
}

const char *graph_structure_defect(const struct graph_chunk *g)
{
    size_t most = UINT32_MAX;
    if (g->n_rows > INT32_MAX || g->n_intervals > most || g->n_occupants > most || g->n_blocks > most ||
        g->n_cpu_blocks > most || g->n_cpus > most)
        return "a section that is too long";
    if (g->head->begin > g->head->end || g->head->begin < -GRAPH_MOST_TIME || g->head->end > GRAPH_MOST_TIME)
        return "times that make no sense";
    if (g->n_text && g->text[g->n_text - 1])
        return "text that does not end";
    return cpus_defect(g);
}

/* ---- contents ---- */

static const char *idle_rows_defect(const struct graph_chunk *g)
{
    for (size_t i = 0; i < g->n_cpus; i++) {
        int32_t row = g->cpus[i].idle_row;
        if (row >= 0 && ((size_t)row >= g->n_rows || g->rows[row].idle_cpu != (int32_t)i))
            return "a CPU whose idle row is another's";
    }
    return NULL;
}

/* Checks that begins of a series increase, from `begin` on, and stay below `end`, and that its blocks follow each other
 * without gap. */
static const char *series_defect(const struct graph_disk_block *blocks, size_t n_blocks, const uint32_t *begins,
    uint32_t first, uint32_t n, int64_t begin, int64_t end)
{
    if (!n)
        return begin == end ? NULL : "a row without states has a length";
    int64_t last = begin;
    for (size_t b = 0; b < n_blocks; b++) {
        uint32_t from = blocks[b].first, to = b + 1 < n_blocks ? blocks[b + 1].first : first + n;
        if ((b == 0 && from != first) || from >= to || to > first + n || to - from > GRAPH_BLOCK || begins[from] != 0)
            return "a block lies outside its series";
        int64_t base = blocks[b].base;
        if (b == 0 ? base != begin : base <= last)
            return "times out of order";
        for (uint32_t i = from + 1; i < to; i++)
            if (begins[i] <= begins[i - 1])
                return "times out of order";
        if (__builtin_add_overflow(base, (int64_t)begins[to - 1], &last) || last >= end)
            return "a time beyond the end of its row";
    }
    return NULL;
}

struct counts {
    uint32_t wakers, packets, details, cpus;
};

/* Counts that an interval of each kind adds to the sparse columns, 12 bits each (enough for a block), and a bit for
 * invalid kinds: a block is summed in one go. */
enum { COUNT_BITS = 12, COUNT = (1 << COUNT_BITS) - 1 };
_Static_assert((int)GRAPH_BLOCK <= (int)COUNT, "the counts of a block fit");
#define KIND_UNKNOWN (UINT64_C(1) << 4 * COUNT_BITS)

struct kinds {
    uint64_t adds[256];
};

static void fill_kinds(struct kinds *k)
{
    for (unsigned kind = 0; kind < 256; kind++) {
        unsigned cause = graph_kind_cause((uint8_t)kind), state = graph_kind_state((uint8_t)kind);
        k->adds[kind] = state >= GRAPH_STATE_COUNT || cause > GRAPH_CAUSE_LOST
            ? KIND_UNKNOWN
            : (uint64_t)(cause == GRAPH_CAUSE_WAKEUP) | (uint64_t)(cause == GRAPH_CAUSE_PACKET) << COUNT_BITS |
                (uint64_t)((kind & GRAPH_KIND_DETAIL) != 0) << 2 * COUNT_BITS |
                (uint64_t)(state == GRAPH_RUNNING) << 3 * COUNT_BITS;
    }
}

/* Checks that the sparse columns begin where the blocks say. */
static const char *kinds_defect(
    const struct graph_chunk *g, const struct kinds *k, const struct graph_disk_row *r, struct counts *c)
{
    for (uint32_t b = r->first_block; b < r->first_block + r->n_blocks; b++) {
        const struct graph_disk_block *x = &g->blocks[b];
        uint32_t to = b + 1 < r->first_block + r->n_blocks ? x[1].first : r->first + r->n;
        if (x->waker0 != c->wakers || x->packet0 != c->packets || x->detail0 != c->details || x->cpu0 != c->cpus)
            return "a block's columns begin at the wrong place";
        uint64_t sum = 0;
        for (uint32_t i = x->first; i < to; i++)
            sum += k->adds[g->kinds[i]];
        if (sum >= KIND_UNKNOWN)
            return "an unknown state or cause";
        c->wakers += sum & COUNT;
        c->packets += sum >> COUNT_BITS & COUNT;
        c->details += sum >> 2 * COUNT_BITS & COUNT;
        c->cpus += (uint32_t)(sum >> 3 * COUNT_BITS);
    }
    return NULL;
}

static const char *row_content_defect(
    const struct graph_chunk *g, const struct kinds *k, const struct graph_disk_row *r, struct counts *c)
{
    if (r->name >= g->n_strings)
        return "a name that does not exist";
    if (r->idle_cpu >= 0)
        return NULL;
    const char *what = series_defect(
        g->blocks + r->first_block, r->n_blocks, g->begins, r->first, r->n, r->begin, r->end);
    return what ? what : kinds_defect(g, k, r, c);
}

static const char *cpu_content_defect(const struct graph_chunk *g, const struct graph_disk_cpu *c)
{
    return series_defect(g->cpu_blocks + c->first_block, c->n_blocks, g->cpu_begins, c->first, c->n, c->begin, c->end);
}

/* Returns whether the sums are those of its states; the series must be valid. */
static bool are_sums(
    const struct graph_chunk *g, const int64_t sums[GRAPH_STATE_COUNT], uint32_t total0, unsigned states)
{
    const int64_t *claimed = g->totals + total0;
    for (unsigned state = 0; state < GRAPH_STATE_COUNT; state++)
        if (sums[state] != (states >> state & 1 ? *claimed++ : 0))
            return false;
    return true;
}

static const char *sums_defect(const struct graph_chunk *g)
{
    struct graph_position e;
    for (size_t i = 0; i < g->n_rows; i++) {
        int64_t sums[GRAPH_STATE_COUNT] = {0};
        const struct graph_disk_row *r = &g->rows[i];
        const struct graph_place p = graph_place_of(g, r);
        struct graph_series s = graph_row_series(&p);
        for (bool more = graph_series_find(&s, s.begin, &e); more; more = graph_series_next(&s, &e))
            sums[graph_kind_state(g->kinds[e.at])] += e.end - e.begin;
        if (!are_sums(g, sums, r->total0, r->states))
            return "a row whose sums are not those of its states";
    }
    for (size_t i = 0; i < g->n_cpus; i++) {
        int64_t sums[GRAPH_STATE_COUNT] = {0};
        const struct graph_disk_cpu *c = &g->cpus[i];
        struct graph_series s = graph_cpu_series(g, c);
        for (bool more = graph_series_find(&s, s.begin, &e); more; more = graph_series_next(&s, &e))
            sums[graph_idle_state(graph_occupant_at(g, e.at), c->idle_row)] += e.end - e.begin;
        if (!are_sums(g, sums, c->total0, c->states))
            return "a CPU whose sums are not those of its occupants";
    }
    return NULL;
}

static const char *columns_defect(const struct graph_chunk *g)
{
    struct counts c = {0};
    struct kinds kinds;
    fill_kinds(&kinds);
    const char *what = NULL;
    for (size_t i = 0; i < g->n_rows && !what; i++)
        what = row_content_defect(g, &kinds, &g->rows[i], &c);
    for (size_t i = 0; i < g->n_cpus && !what; i++)
        what = cpu_content_defect(g, &g->cpus[i]);
    if (!what)
        what = sums_defect(g);
    if (what)
        return what;
    return c.wakers != g->n_wakers || c.packets != g->n_packets || c.details != g->n_details || c.cpus != g->n_where
        ? "columns of different lengths"
        : NULL;
}

/* Whether all numbers of the column are below the limit; branchless, since there are millions. */
#define ALL_BELOW(v, n, limit) \
    ({ \
        size_t wrong_ = 0, limit_ = (limit); \
        for (size_t i_ = 0; i_ < (n); i_++) \
            wrong_ += (v)[i_] >= limit_; \
        !wrong_; \
    })

static const char *formers_defect(const struct graph_chunk *g)
{
    for (size_t i = 0; i < g->n_formers; i++) {
        const struct graph_disk_former *f = &g->formers[i], *last = i ? f - 1 : NULL;
        if (f->row < 0 || (size_t)f->row >= g->n_rows || f->name >= g->n_strings)
            return "a former name that does not exist";
        if (last && (f->row < last->row || (f->row == last->row && f->until < last->until)))
            return "former names out of order";
    }
    return NULL;
}

static const char *marks_defect(const struct graph_chunk *g)
{
    for (size_t i = 0; i < g->n_marks; i++)
        if (g->marks[i].row < -1 || (g->marks[i].row >= 0 && (size_t)g->marks[i].row >= g->n_rows) ||
            g->marks[i].is_end > 1 || (i && g->marks[i].ts < g->marks[i - 1].ts))
            return "a mark of a span that makes no sense";
    return NULL;
}

static const char *containers_defect(const struct graph_chunk *g)
{
    for (size_t i = 0; i < g->n_containers; i++)
        if (g->containers[i].name >= g->n_strings || g->containers[i].first >= g->n_strings ||
            g->containers[i].flags > (GRAPH_DISK_NET | GRAPH_DISK_LASTING | GRAPH_DISK_CGROUP) ||
            (~g->containers[i].flags & (GRAPH_DISK_NET | GRAPH_DISK_CGROUP)) == 0)
            return "a container that makes no sense";
    for (size_t i = 0; i < g->n_rows; i++)
        if (g->rows[i].container > g->n_containers)
            return "a container that does not exist";
    return NULL;
}

static const char *values_defect(const struct graph_chunk *g)
{
    if (g->wakers16 ? !ALL_BELOW(g->wakers16, g->n_wakers, g->n_rows) : !ALL_BELOW(g->wakers32, g->n_wakers, g->n_rows))
        return "a waker that does not exist";
    if (g->occupants16 ? !ALL_BELOW(g->occupants16, g->n_occupants, g->n_rows + 1)
                       : !ALL_BELOW(g->occupants32, g->n_occupants, g->n_rows + 1))
        return "an occupant that does not exist";
    if (g->where8 ? !ALL_BELOW(g->where8, g->n_where, g->n_cpus) : !ALL_BELOW(g->where16, g->n_where, g->n_cpus))
        return "a CPU that does not exist";
    if (!ALL_BELOW(g->details, g->n_details, g->n_detail_names))
        return "a detail that does not exist";
    if (!ALL_BELOW(g->detail_names, g->n_detail_names, g->n_strings))
        return "a detail without a name";
    for (size_t i = 0; i < g->n_early_wakes; i++)
        if (g->early_wakes[i].interval >= g->n_intervals ||
            (i && g->early_wakes[i].interval <= g->early_wakes[i - 1].interval))
            return "late wakes out of order";
    return ALL_BELOW(g->string_at, g->n_strings, g->n_text) ? NULL : "a string outside the text";
}

const char *graph_content_defect(const struct graph_chunk *g)
{
    const char *what = rows_defect(g);
    if (!what)
        what = idle_rows_defect(g);
    if (!what)
        what = values_defect(g);
    if (!what)
        what = formers_defect(g);
    if (!what)
        what = marks_defect(g);
    if (!what)
        what = containers_defect(g);
    if (!what)
        what = graph_stacks_defect(g);
    return what ? what : columns_defect(g);
}
