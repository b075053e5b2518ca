/* The end of traces with losses: the waits of threads are cut where events are missing, and all rows are packed anew.
 * This cannot be done on the way, because a loss behind the last event of a packet becomes known only when the packet
 * is over. */
#include <stdlib.h>

#include "base/order.h"
#include "base/search.h"
#include "state/gaps.h"

#include "state/builder.h"
#include "state/cell.h"
#include "state/files.h"

typedef VEC(struct builder_gap) gap_list;

/* ---- where events are missing ---- */

static int by_begin(const void *a, const void *b)
{
    const struct builder_gap *x = a, *y = b;
    return order_of(x->begin, y->begin);
}

/* The stretches of one CPU (-1: of any), apart and in order. */
static void collect(const struct state_builder *b, int32_t cpu, gap_list *out)
{
    out->n = 0;
    for (size_t i = 0; i < b->windows.n; i++) {
        const struct builder_window *w = &b->windows.v[i];
        if (w->begin < w->end && (cpu < 0 || w->cpu < 0 || w->cpu == cpu))
            vec_push(out, ((struct builder_gap){w->begin, w->end}));
    }
    if (out->n)
        qsort(out->v, out->n, sizeof *out->v, by_begin);
    size_t n = 0;
    for (size_t i = 0; i < out->n; i++) {
        if (n && out->v[i].begin <= out->v[n - 1].end)
            out->v[n - 1].end = out->v[i].end > out->v[n - 1].end ? out->v[i].end : out->v[n - 1].end;
        else
            out->v[n++] = out->v[i];
    }
    out->n = n;
}

/* From the first to the last gap that touches [begin, end), cut to it. */
static bool hull(const gap_list *g, int64_t begin, int64_t end, struct builder_gap *out)
{
    size_t i = search_first(k, 0, g->n, g->v[k].end > begin);
    if (i == g->n || g->v[i].begin >= end)
        return false;
    out->begin = g->v[i].begin > begin ? g->v[i].begin : begin;
    while (i + 1 < g->n && g->v[i + 1].begin < end)
        i++;
    out->end = g->v[i].end < end ? g->v[i].end : end;
    return true;
}

/* From when on is anything unknown of what the thread did between the times? INT64_MAX: nothing is. */
static int64_t first_gap(const struct builder_gaps *g, int64_t row, int64_t begin, int64_t end)
{
    if (row < 0 || (size_t)row + 1 >= g->first.n)
        return INT64_MAX;
    const struct builder_gap *v = g->gaps.v + g->first.v[row];
    size_t n = g->first.v[row + 1] - g->first.v[row], i = search_first(k, 0, n, v[k].end > begin);
    if (i == n || v[i].begin >= end)
        return INT64_MAX;
    return v[i].begin > begin ? v[i].begin : begin;
}

static bool touches_gap(const void *gaps, int64_t row, int64_t begin, int64_t end)
{
    return first_gap(gaps, row, begin, end) < INT64_MAX;
}

/* ---- packing anew ---- */

struct repack {
    struct state_builder *b;
    struct series_pool fresh;
    uint64_t *first; /* by id: the series' first block in `order` */
    uint32_t *order;
    VEC(struct series_entry) entries;
    gap_list missing; /* for the row at hand */
    struct builder_gaps *gaps;
};

static void order_blocks(struct repack *p)
{
    const struct series_pool *old = &p->b->pool;
    p->first = mem_zalloc((old->ids + 2) * sizeof *p->first);
    p->order = mem_alloc((old->blocks.n + 1) * sizeof *p->order);
    for (size_t i = 0; i < old->blocks.n; i++)
        p->first[old->blocks.v[i].id + 1]++;
    for (uint32_t id = 0; id <= old->ids; id++)
        p->first[id + 1] += p->first[id];
    uint64_t *next = mem_alloc((old->ids + 2) * sizeof *next);
    memcpy(next, p->first, (old->ids + 2) * sizeof *next);
    for (size_t i = 0; i < old->blocks.n; i++)
        p->order[next[old->blocks.v[i].id]++] = (uint32_t)i;
    free(next);
}

/* All entries of a finished series into `entries`; the series begins anew. */
static void take_entries(struct repack *p, struct series *s)
{
    const struct series_pool *old = &p->b->pool;
    p->entries.n = 0;
    uint64_t left = s->cells;
    for (uint64_t k = s->id ? p->first[s->id] : 0; left; k++) {
        const struct series_block *b = &old->blocks.v[p->order[k]];
        for (uint32_t c = 0; c < STATE_CELLS && left; c++, left--) {
            int64_t times[STATE_CELL_ENTRIES + 1], numbers[STATE_CELL_ENTRIES];
            size_t n = cell_take(series_cell(old, b->cell + c), times, numbers);
            for (size_t i = 0; i < n; i++)
                vec_push(&p->entries, ((struct series_entry){times[i], numbers[i]}));
        }
    }
    *s = (struct series){.v = s->v, .cap = s->cap, .sum = s->sum, .lead = s->lead, .pairs = s->pairs};
}

static void repack(struct repack *p, struct series *s)
{
    take_entries(p, s);
    for (size_t i = 0; i < p->entries.n; i++)
        series_tell(&p->fresh, s, p->entries.v[i].time, p->entries.v[i].number);
    series_finish(&p->fresh, s);
}

/* ---- threads ---- */

static uint8_t value_of(const struct repack *p, size_t i)
{
    return i < p->entries.n ? p->b->codes.v[p->entries.v[i].number].value : STATE_NONE;
}

/* What the wait was after the gap, judged by how it ended. */
static uint32_t tail_of(const struct repack *p, size_t next)
{
    uint8_t value = value_of(p, next);
    if (value == STATE_WAIT_FOR_CPU)
        return STATE_WAIT_BLOCKED;
    return (state_running(value) || value == STATE_IDLE) && p->b->has_wakes ? STATE_WAIT_FOR_CPU : STATE_UNKNOWN;
}

static void repack_thread(struct repack *p, int32_t row, int64_t end)
{
    struct builder_thread *t = &p->b->threads.v[row];
    take_entries(p, &t->series);
    for (size_t i = 0; i < p->entries.n; i++) {
        struct series_entry e = p->entries.v[i];
        int64_t until = i + 1 < p->entries.n ? p->entries.v[i + 1].time : end;
        uint8_t value = value_of(p, i);
        struct builder_gap gap;
        bool waits = value == STATE_WAIT_FOR_CPU || value == STATE_WAIT_BLOCKED || value == STATE_WAIT_UNKNOWN;
        series_push(&p->fresh, &t->series, e.time, e.number);
        if (value == STATE_UNKNOWN && (!hull(&p->missing, e.time, until, &gap) || gap.begin > e.time))
            gap = (struct builder_gap){e.time, until};
        else if (value != STATE_UNKNOWN && (!waits || !hull(&p->missing, e.time, until, &gap)))
            continue;
        series_push(&p->fresh, &t->series, gap.begin, STATE_UNKNOWN);
        uint32_t tail = tail_of(p, i + 1);
        if (gap.end < until && tail != STATE_UNKNOWN)
            series_push(&p->fresh, &t->series, gap.end, tail);
        else
            gap.end = until;
        vec_push(&p->gaps->gaps, gap);
    }
    series_finish(&p->fresh, &t->series);
}

static void repack_threads(struct repack *p, int64_t end)
{
    struct state_builder *b = p->b;
    const struct kernel_thread *threads;
    size_t n = kernel_tracker_threads(b->tracker, &threads);
    gap_list all = {0}, own = {0};
    collect(b, -1, &all);
    for (size_t row = 0; row < b->threads.n; row++) {
        p->missing = all;
        if (row < n && threads[row].idle_cpu >= 0) { /* lives on its CPU alone */
            collect(b, threads[row].idle_cpu, &own);
            p->missing = own;
        }
        vec_push(&p->gaps->first, p->gaps->gaps.n);
        repack_thread(p, (int32_t)row, row < n && threads[row].died ? threads[row].end : end);
    }
    vec_push(&p->gaps->first, p->gaps->gaps.n);
    vec_free(&all);
    vec_free(&own);
}

/* ---- futexes ---- */

/* Whose call the entry is of; `user`: the thread of the row, -1 in tracks. */
static int32_t caller(const struct repack *p, const struct series_entry *e, int32_t user)
{
    return user >= 0 ? user : p->b->futex_users.v[e->number - 1].thread;
}

/* Calls end where what their threads did is not known any more. */
static void repack_futex(struct repack *p, struct series *s, int32_t user, int64_t end)
{
    take_entries(p, s);
    for (size_t i = 0; i < p->entries.n; i++) {
        struct series_entry e = p->entries.v[i];
        int64_t until = i + 1 < p->entries.n ? p->entries.v[i + 1].time : end, known = INT64_MAX;
        if (e.number && e.number != STATE_FUTEX_DOUBT)
            known = first_gap(p->gaps, caller(p, &e, user), e.time, until);
        bool cut = known < INT64_MAX && user >= 0;
        series_push(&p->fresh, s, e.time,
            cut ? state_futex_number(0, (uint8_t)state_futex_operation(e.number), true) : e.number);
        if (known < INT64_MAX)
            series_push(&p->fresh, s, known, user >= 0 ? STATE_FUTEX_DOUBT : 0);
    }
    series_finish(&p->fresh, s);
}

static void repack_futexes(struct repack *p, int64_t end)
{
    struct state_builder *b = p->b;
    struct builder_tracks *tracks[2] = {&b->futex_waits, &b->futex_wakes};
    for (size_t i = 0; i < b->futex_users.n; i++)
        repack_futex(p, &b->futex_users.v[i].series, b->futex_users.v[i].thread, end);
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < tracks[k]->v.n; i++)
            repack_futex(p, &tracks[k]->v.v[i], NOBODY, end);
}

/* ---- all ---- */

static void each_track(struct builder_tracks *l, void (*f)(void *, struct series *), void *arg)
{
    for (size_t i = 0; i < l->v.n; i++)
        f(arg, &l->v.v[i]);
}

/* Rows of threads and their calls. */
static void each_of_threads(struct state_builder *b, void (*f)(void *, struct series *), void *arg)
{
    for (size_t i = 0; i < b->threads.n; i++)
        f(arg, &b->threads.v[i].series);
    for (size_t i = 0; i < b->futex_users.n; i++)
        f(arg, &b->futex_users.v[i].series);
    each_track(&b->futex_waits, f, arg);
    each_track(&b->futex_wakes, f, arg);
}

static void each_other(struct state_builder *b, void (*f)(void *, struct series *), void *arg)
{
    each_track(&b->irq_handlers, f, arg);
    for (size_t i = 0; i < b->cpus.n; i++) {
        f(arg, &b->cpus.v[i].state);
        f(arg, &b->cpus.v[i].thread);
    }
    for (size_t i = 0; i < b->irqs.n; i++)
        f(arg, &b->irqs.v[i].series);
    builder_devices *devices[2] = {&b->disks, &b->nets};
    for (int d = 0; d < 2; d++)
        for (size_t i = 0; i < devices[d]->n; i++)
            for (int k = 0; k < 2; k++)
                f(arg, &devices[d]->v[i].series[k]);
    for (size_t i = 0; i < b->requests.n; i++)
        for (int k = 0; k < 2; k++)
            for (size_t n = 0; n < b->requests.v[i].queues[k].n; n++)
                f(arg, &b->requests.v[i].queues[k].v[n].series);
    struct file_access *accesses;
    for (size_t i = 0, n = files_accesses(b, &accesses); i < n; i++)
        f(arg, &accesses[i].series);
    for (int k = 0; k < BUILDER_AMOUNTS; k++)
        for (size_t i = 0; i < b->amounts[k].v.n; i++)
            f(arg, &b->amounts[k].v.v[i].series);
}

static void finish_one(void *arg, struct series *s)
{
    series_finish(&((struct repack *)arg)->b->pool, s);
}
static void repack_one(void *arg, struct series *s)
{
    repack(arg, s);
}

/* Latencies that reach into gaps may be those of something else. */
static void sift_tables(struct state_builder *b, const struct series_bytes *old, const struct builder_gaps *gaps)
{
    struct series_table times = b->event_times;
    series_values v;
    b->event_times = (struct series_table){0};
    for (size_t block = 0; block < times.heads.n; block++) {
        size_t n = series_table_take(old, &times, block, 0, v);
        series_table_add(&b->pool.bytes, &b->event_times, &v, 1, n);
    }
    vec_free(&times.heads);
    for (int kind = 0; kind < STATE_LATENCY_KINDS; kind++) {
        bool of_threads = kind == STATE_LATENCY_SYSCALL || kind == STATE_LATENCY_LOCK || kind == STATE_LATENCY_SCHED;
        latency_series_sift(&b->latencies[kind], old, of_threads ? touches_gap : NULL, gaps);
    }
}

int builder_gaps_make(struct state_builder *b, int64_t end, struct builder_gaps *gaps, struct err *e)
{
    struct repack p = {.b = b, .gaps = gaps};
    if (!b->windows.n)
        return 0;
    each_of_threads(b, finish_one, &p);
    each_other(b, finish_one, &p);
    int rc = series_pool_finish(&b->pool, e);
    if (rc)
        return rc;
    series_pool_init(&p.fresh, b->path, b->fingerprint);
    order_blocks(&p);
    memcpy(p.fresh.flags, b->pool.flags, sizeof p.fresh.flags); /* handed over */
    memset(b->pool.flags, 0, sizeof b->pool.flags);
    repack_threads(&p, end);
    repack_futexes(&p, end);
    each_other(b, repack_one, &p);
    struct series_pool old = b->pool;
    b->pool = p.fresh;
    sift_tables(b, &old.bytes, gaps);
    rc = file_map_intact(&old.cells.file, e);
    series_pool_fini(&old);
    free(p.first);
    free(p.order);
    vec_free(&p.entries);
    return rc;
}

void builder_gaps_fini(struct builder_gaps *g)
{
    vec_free(&g->gaps);
    vec_free(&g->first);
}
