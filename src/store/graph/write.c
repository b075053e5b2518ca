/* SPDX-License-Identifier: MIT */
/* Writing: the builder's logs to the store's columns. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "graph/builder.h"
#include "graph/layout.h"

/* Columns of one set of series while they are written. All except the blocks have room for all entries of the logs and
 * one more: each entry is written to every column, but only columns that have it advance. Unreached room takes no
 * memory. */
struct columns {
    VEC(struct graph_disk_block) blocks;
    uint32_t *begins, *wakers, *packets, *cpus;
    uint16_t *details;
    uint8_t *kinds;
    size_t n, n_wakers, n_packets, n_details, n_cpus;
};

static void make_room(struct columns *c, struct arena *a, size_t entries)
{
    c->begins = arena_new(a, uint32_t, entries + 1);
    c->kinds = arena_new(a, uint8_t, entries + 1);
    c->wakers = arena_new(a, uint32_t, entries + 1);
    c->packets = arena_new(a, uint32_t, entries + 1);
    c->details = arena_new(a, uint16_t, entries + 1);
    c->cpus = arena_new(a, uint32_t, entries + 1);
}

static struct graph_disk_block *new_block(struct columns *c, int64_t base)
{
    struct graph_disk_block b = {.base = base,
        .first = (uint32_t)c->n,
        .waker0 = (uint32_t)c->n_wakers,
        .packet0 = (uint32_t)c->n_packets,
        .detail0 = (uint32_t)c->n_details,
        .cpu0 = (uint32_t)c->n_cpus};
    vec_push(&c->blocks, b);
    return &c->blocks.v[c->blocks.n - 1];
}

/* Times too far apart for a sum are refused when all are known. */
static void add_time(int64_t *sum, int64_t begin, int64_t end)
{
    *sum = (int64_t)((uint64_t)*sum + (uint64_t)end - (uint64_t)begin);
}

/* Appends a log; drops entries that begin at `end` or later. Adds the time of each state to `sums`. Returns the number
 * of entries. */
static size_t put_series(struct columns *c, const struct graph_log *log, int64_t end, int64_t sums[GRAPH_STATE_COUNT])
{
    size_t before = c->n;
    unsigned state = GRAPH_UNKNOWN; /* state of the one before, which began at `since` */
    int64_t since = log->head ? log->head->base : end;
    struct graph_disk_block *last = NULL;
    for (const struct graph_log_block *b = log->head; b; b = b->next) {
        const struct graph_logged *past = b->v + graph_log_block_size(log, b);
        for (const struct graph_logged *x = b->v; x < past; x++) {
            int64_t begin = (int64_t)((uint64_t)b->base + x->begin);
            if (begin >= end)
                goto done;
            add_time(&sums[state], since, begin);
            since = begin;
            state = graph_kind_state(x->kind);
            if (!last || c->n - last->first == GRAPH_BLOCK || (uint64_t)begin - (uint64_t)last->base > UINT32_MAX)
                last = new_block(c, begin);
            c->begins[c->n] = (uint32_t)((uint64_t)begin - (uint64_t)last->base);
            c->kinds[c->n++] = x->kind;
            c->wakers[c->n_wakers] = c->packets[c->n_packets] = x->arg;
            c->n_wakers += graph_kind_cause(x->kind) == GRAPH_CAUSE_WAKEUP;
            c->n_packets += graph_kind_cause(x->kind) == GRAPH_CAUSE_PACKET;
            c->details[c->n_details] = x->detail;
            c->n_details += (x->kind & GRAPH_KIND_DETAIL) != 0;
            c->cpus[c->n_cpus] = x->arg;
            c->n_cpus += state == GRAPH_RUNNING;
        }
    }
done:
    if (c->n > before)
        add_time(&sums[state], since, end);
    return c->n - before;
}

/* Adds numbers as 16-bit or 8-bit items if all fit. The narrow copy lives in the arena until the store is done. */
static void add_numbers(struct store_writer *w, struct arena *a, const char *wide, const char *narrow,
    size_t wide_bytes, size_t narrow_bytes, const uint32_t *v, size_t n, bool fits)
{
    size_t bytes = fits ? narrow_bytes : wide_bytes;
    void *copy = n ? arena_alloc(a, n * bytes) : NULL;
    for (size_t i = 0; i < n; i++) {
        if (bytes == 1)
            ((uint8_t *)copy)[i] = (uint8_t)v[i];
        else if (bytes == 2)
            ((uint16_t *)copy)[i] = (uint16_t)v[i];
        else
            ((uint32_t *)copy)[i] = v[i];
    }
    store_add(w, fits ? narrow : wide, copy, bytes, n);
}

/* ---- strings ---- */

static uint32_t tracker_string(struct strings *to, const struct kernel_tracker *t, uint32_t number)
{
    const char *const *strings;
    size_t n = kernel_tracker_strings(t, &strings);
    return number < n ? strings_intern(to, strings[number], strlen(strings[number])) : 0;
}

static void add_strings(struct store_writer *w, struct arena *a, const struct strings *s)
{
    size_t bytes = 0;
    for (size_t i = 0; i < s->n; i++)
        bytes += strlen(s->v[i]) + 1;
    uint32_t *at = arena_new(a, uint32_t, s->n);
    char *text = arena_alloc(a, bytes);
    bytes = 0;
    for (size_t i = 0; i < s->n; i++) {
        size_t n = strlen(s->v[i]) + 1;
        at[i] = (uint32_t)bytes;
        memcpy(text + bytes, s->v[i], n);
        bytes += n;
    }
    store_add(w, "string-at", at, sizeof *at, s->n);
    store_add(w, "text", text, 1, bytes);
}

/* ---- sections ---- */

static int compare_early_wakes(const void *x, const void *y)
{
    const struct graph_disk_early_wake *a = x, *b = y;
    return order_of(a->interval, b->interval);
}

static void add_early_wakes(
    const struct graph_builder *b, struct store_writer *w, struct arena *a, const struct graph_disk_row *rows)
{
    struct graph_disk_early_wake *early = b->early_wakes.n
        ? arena_new(a, struct graph_disk_early_wake, b->early_wakes.n)
        : NULL;
    size_t n = 0;
    for (size_t i = 0; i < b->early_wakes.n; i++)
        if (b->early_wakes.v[i].n < rows[b->early_wakes.v[i].row].n)
            early[n++] = (struct graph_disk_early_wake){
                .interval = rows[b->early_wakes.v[i].row].first + b->early_wakes.v[i].n, .ts = b->early_wakes.v[i].ts};
    if (n)
        qsort(early, n, sizeof *early, compare_early_wakes);
    store_add(w, "late", early, sizeof *early, n);
}

/* Sorts formers by row. The tracker has them in order of time, which is kept within each row. */
static struct graph_disk_former *order_formers(
    const struct graph_builder *b, struct arena *a, struct strings *names, size_t n_rows, size_t *n)
{
    const struct kernel_former *of;
    *n = kernel_tracker_formers(b->tracker, &of);
    struct graph_disk_former *out = arena_new(a, struct graph_disk_former, *n + 1);
    size_t *at = arena_new(a, size_t, n_rows + 1);
    for (size_t i = 0; i < *n; i++)
        at[of[i].row + 1]++;
    for (size_t i = 1; i <= n_rows; i++)
        at[i] += at[i - 1];
    for (size_t i = 0; i < *n; i++)
        out[at[of[i].row]++] = (struct graph_disk_former){.until = of[i].until,
            .row = of[i].row,
            .tid = of[i].tid,
            .name = tracker_string(names, b->tracker, of[i].name)};
    return out;
}

/* Time up to which a log is decided: its last entry may still change if the next chunk continues it. */
static int64_t decided(const struct graph_log *log, bool carried, int64_t end)
{
    return carried && log->n ? graph_log_last(log).begin : end;
}

struct totals {
    VEC(int64_t) v;
};

/* Returns the set of states. */
static uint16_t put_totals(struct totals *t, const int64_t sums[GRAPH_STATE_COUNT])
{
    unsigned states = 0;
    for (unsigned state = 0; state < GRAPH_STATE_COUNT; state++) {
        if (!sums[state])
            continue;
        states |= 1u << state;
        vec_push(&t->v, sums[state]);
    }
    return (uint16_t)states;
}

static struct graph_disk_container *put_containers(const struct graph_builder *b, struct arena *a,
    struct strings *names, struct graph_disk_row *rows, size_t n_rows, size_t *n)
{
    int32_t numbers = kernel_tracker_containers(b->tracker);
    uint32_t *place = arena_new(a, uint32_t, (size_t)numbers);
    for (size_t i = 0; i < n_rows; i++)
        place[kernel_tracker_container(b->tracker, (int32_t)i)] = 1;
    struct graph_disk_container *out = arena_new(a, struct graph_disk_container, (size_t)numbers);
    *n = 0;
    for (int32_t i = KERNEL_NO_CONTAINER + 1; i < numbers; i++) {
        struct kernel_container k;
        kernel_tracker_container_is(b->tracker, i, &k);
        if (!place[i] && !k.lasting)
            continue;
        out[*n] = (struct graph_disk_container){.since = k.since,
            .tid = k.tid,
            .flags = (k.kind == KERNEL_SPACE_NET ? GRAPH_DISK_NET : 0u) |
                (k.kind == KERNEL_SPACE_CGROUP ? GRAPH_DISK_CGROUP : 0u) | (k.lasting ? GRAPH_DISK_LASTING : 0u),
            .pid_ns = k.pid_ns,
            .net_ns = k.net_ns,
            .uts_ns = k.uts_ns,
            .cgroup_ns = k.cgroup_ns,
            .name = tracker_string(names, b->tracker, k.name),
            .first = tracker_string(names, b->tracker, k.first)};
        place[i] = (uint32_t)++ * n;
    }
    place[KERNEL_NO_CONTAINER] = 0;
    for (size_t i = 0; i < n_rows; i++)
        rows[i].container = place[kernel_tracker_container(b->tracker, (int32_t)i)];
    return out;
}

static void put_rows(struct graph_builder *b, struct columns *c, struct strings *names, struct graph_disk_row *rows,
    struct totals *totals, const struct kernel_thread *threads, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct kernel_thread *k = &threads[i];
        const struct graph_building_row *r = i < b->rows.n ? &b->rows.v[i] : NULL;
        struct graph_disk_row *d = &rows[i];
        *d = (struct graph_disk_row){.tid = k->tid,
            .tgid = k->tgid,
            .ppid = k->ppid,
            .parent_row = k->parent_row < (int32_t)n ? k->parent_row : -1,
            .idle_cpu = k->idle_cpu,
            .vtid = k->vtid,
            .pid_ns = k->pid_ns,
            .name = tracker_string(names, b->tracker, k->name),
            .flags = (k->born ? GRAPH_DISK_BORN : 0u) | (k->died ? GRAPH_DISK_DIED : 0u),
            .begin = k->begin,
            .end = k->begin,
            .first = (uint32_t)c->n,
            .first_block = (uint32_t)c->blocks.n};
        if (r && r->now != GRAPH_NOW_UNSEEN) {
            int64_t sums[GRAPH_STATE_COUNT] = {0};
            d->begin = r->log.n ? r->log.head->base
                                : r->since; /* the tracker may have learnt an earlier one too late */
            d->end = decided(&r->log, graph_builder_is_carried(b, i), r->since);
            d->n = (uint32_t)put_series(c, &r->log, d->end, sums);
            d->n_blocks = (uint32_t)c->blocks.n - d->first_block;
            d->total0 = (uint32_t)totals->v.n;
            d->states = put_totals(totals, sums);
        }
    }
}

/* Time of a CPU's occupants in each state of its idle thread. */
static void sum_idle(const struct columns *c, const struct graph_disk_cpu *d, int64_t sums[GRAPH_STATE_COUNT])
{
    unsigned state = GRAPH_UNKNOWN;
    int64_t since = d->begin;
    uint32_t block = d->first_block;
    for (uint32_t i = d->first; i < d->first + d->n; i++) {
        block += block + 1 < d->first_block + d->n_blocks && c->blocks.v[block + 1].first == i;
        int64_t begin = c->blocks.v[block].base + c->begins[i];
        add_time(&sums[state], since, begin);
        since = begin;
        state = graph_idle_state((int64_t)c->wakers[i] - 1, d->idle_row);
    }
    add_time(&sums[state], since, d->end);
}

static void put_cpus(struct graph_builder *b, struct columns *c, struct graph_disk_cpu *cpus,
    struct graph_disk_row *rows, struct totals *totals, size_t n_rows, int64_t end)
{
    for (size_t i = 0; i < b->cpus.n; i++) {
        const struct graph_log *log = &b->cpus.v[i].occupants;
        struct graph_disk_cpu *d = &cpus[i];
        int64_t of_kinds[GRAPH_STATE_COUNT] = {0}; /* idle rows have others */
        *d = (struct graph_disk_cpu){.idle_row = -1, .first = (uint32_t)c->n, .first_block = (uint32_t)c->blocks.n};
        d->end = decided(log, b->is_cut, end);
        d->begin = log->n && log->head->base < d->end ? log->head->base : d->end;
        d->n = (uint32_t)put_series(c, log, d->end, of_kinds);
        d->n_blocks = (uint32_t)c->blocks.n - d->first_block;
    }
    for (size_t i = 0; i < n_rows; i++) {
        struct graph_disk_row *r = &rows[i];
        if (r->idle_cpu < 0)
            continue;
        struct graph_disk_cpu *d = (size_t)r->idle_cpu < b->cpus.n ? &cpus[r->idle_cpu] : NULL;
        if (!d || !b->cpus.v[r->idle_cpu].occupants.n || d->idle_row >= 0) { /* no occupants, or known already */
            r->idle_cpu = -1;
            continue;
        }
        d->idle_row = (int32_t)i;
        r->begin = d->begin;
        r->end = d->end;
    }
    for (size_t i = 0; i < b->cpus.n; i++) {
        int64_t sums[GRAPH_STATE_COUNT] = {0};
        sum_idle(c, &cpus[i], sums);
        cpus[i].total0 = (uint32_t)totals->v.n;
        cpus[i].states = put_totals(totals, sums);
    }
}

static void add_columns(struct store_writer *w, struct arena *a, const struct columns *rows, const struct columns *cpus,
    size_t n_rows, size_t n_cpus)
{
    bool narrow = n_rows <= GRAPH_NARROW_ROWS;
    store_add(w, "blocks", rows->blocks.v, sizeof *rows->blocks.v, rows->blocks.n);
    store_add(w, "begins", rows->begins, sizeof *rows->begins, rows->n);
    store_add(w, "kinds", rows->kinds, 1, rows->n);
    add_numbers(w, a, "wakers32", "wakers16", 4, 2, rows->wakers, rows->n_wakers, narrow);
    store_add(w, "packets", rows->packets, sizeof *rows->packets, rows->n_packets);
    store_add(w, "details", rows->details, sizeof *rows->details, rows->n_details);
    add_numbers(w, a, "where16", "where8", 2, 1, rows->cpus, rows->n_cpus, n_cpus <= 256);
    store_add(w, "cpu-blocks", cpus->blocks.v, sizeof *cpus->blocks.v, cpus->blocks.n);
    store_add(w, "cpu-begins", cpus->begins, sizeof *cpus->begins, cpus->n);
    add_numbers(w, a, "occupants32", "occupants16", 4, 2, cpus->wakers, cpus->n_wakers, narrow);
}

static void put_head(struct graph_disk_head *h, const struct graph_disk_row *rows, size_t n_rows,
    const struct graph_disk_cpu *cpus, size_t n_cpus)
{
    for (size_t i = 0; i < n_rows; i++) {
        h->begin = rows[i].begin < h->begin ? rows[i].begin : h->begin;
        h->end = rows[i].end > h->end ? rows[i].end : h->end;
    }
    for (size_t i = 0; i < n_cpus; i++) {
        h->begin = cpus[i].begin < h->begin ? cpus[i].begin : h->begin;
        h->end = cpus[i].end > h->end ? cpus[i].end : h->end;
    }
}

static int write_store(struct graph_builder *b, struct columns *rows, struct columns *cpus, struct arena *a,
    int64_t end, struct store_place place, uint64_t key, struct err *e)
{
    const struct kernel_thread *threads;
    size_t n = kernel_tracker_threads(b->tracker, &threads);
    struct strings names = {0};
    struct totals totals = {0};
    strings_intern(&names, "", 0);
    struct graph_disk_row *disk_rows = arena_new(a, struct graph_disk_row, n + 1);
    struct graph_disk_cpu *disk_cpus = arena_new(a, struct graph_disk_cpu, b->cpus.n + 1);
    put_rows(b, rows, &names, disk_rows, &totals, threads, n);
    put_cpus(b, cpus, disk_cpus, disk_rows, &totals, n, end);
    size_t n_formers, n_containers;
    struct graph_disk_container *containers = put_containers(b, a, &names, disk_rows, n, &n_containers);
    struct graph_disk_former *formers = order_formers(b, a, &names, n, &n_formers);
    struct graph_disk_head head = {.begin = end, .end = end, .wake0 = b->wake0};
    put_head(&head, disk_rows, n, disk_cpus, b->cpus.n);
    uint32_t *detail_names = arena_new(a, uint32_t, b->details.n);
    for (size_t i = 0; i < b->details.n; i++)
        detail_names[i] = strings_intern(&names, b->details.v[i], strlen(b->details.v[i]));
    int rc = ERR_OK;
    if (rows->n > UINT32_MAX || cpus->n > UINT32_MAX || totals.v.n > UINT32_MAX) {
        rc = err_set(e, ERR_LIMIT, "%s: more than 2^32 states in one graph; index the recording in pieces (rotation)",
            place.path);
    } else if (head.begin < -GRAPH_MOST_TIME || head.end > GRAPH_MOST_TIME) {
        rc = err_set(
            e, ERR_LIMIT, "%s: times more than 146 years from the epoch; the trace's clock is wrong", place.path);
    } else {
        size_t sections = 22 + graph_stacks_sections(&b->stacks);
        struct store_writer *w = store_create_at(place, "graph", GRAPH_VERSION, key, sections);
        store_add(w, "head", &head, sizeof head, 1);
        store_add(w, "rows", disk_rows, sizeof *disk_rows, n);
        store_add(w, "totals", totals.v.v, sizeof *totals.v.v, totals.v.n);
        add_columns(w, a, rows, cpus, n, b->cpus.n);
        store_add(w, "detail-names", detail_names, sizeof *detail_names, b->details.n);
        store_add(w, "formers", formers, sizeof *formers, n_formers);
        add_early_wakes(b, w, a, disk_rows);
        store_add(w, "cpus", disk_cpus, sizeof *disk_cpus, b->cpus.n);
        store_add(w, "marks", b->marks.v, sizeof *b->marks.v, b->marks.n);
        store_add(w, "containers", containers, sizeof *containers, n_containers);
        store_add(w, "losses", b->losses.v, sizeof *b->losses.v, b->losses.n);
        add_strings(w, a, &names);
        graph_stacks_add(&b->stacks, w, a, n);
        rc = store_commit(w, e);
    }
    vec_free(&totals.v);
    strings_fini(&names);
    return rc;
}

static int write_logs(struct graph_builder *b, int64_t end, struct store_place place, uint64_t key, struct err *e)
{
    struct columns rows = {0}, cpus = {0};
    size_t of_rows = 0, of_cpus = 0;
    struct arena a = {0};
    for (size_t i = 0; i < b->rows.n; i++)
        of_rows += b->rows.v[i].log.n;
    for (size_t i = 0; i < b->cpus.n; i++)
        of_cpus += b->cpus.v[i].occupants.n;
    enum { BYTES = 20 }; /* bytes of an entry in all columns */
    int rc = mem_room(
        (of_rows + of_cpus) * BYTES + b->stacks.samples.n * sizeof(struct graph_disk_sample), "writing the graph", e);
    if (rc)
        return rc;
    make_room(&rows, &a, of_rows);
    make_room(&cpus, &a, of_cpus);
    rc = write_store(b, &rows, &cpus, &a, end, place, key, e);
    vec_free(&rows.blocks);
    vec_free(&cpus.blocks);
    arena_fini(&a);
    return rc;
}

int graph_builder_cut(struct graph_builder *b, int64_t at, struct store_place place, uint64_t key, struct err *e)
{
    assert(b->is_cut);
    (void)at; /* decided parts follow from the records alone */
    return write_logs(b, b->now == INT64_MIN ? 0 : b->now, place, key, e);
}

int graph_builder_write(struct graph_builder *b, int64_t end, struct store_place place, uint64_t key, struct err *e)
{
    const struct kernel_thread *threads;
    size_t n = kernel_tracker_threads(b->tracker, &threads);
    if (end < b->now)
        end = b->now;
    b->is_cut = false; /* final, even if the state was saved */
    b->carried.n = 0;
    for (size_t i = 0; i < n; i++)
        graph_builder_close_row(b, (int32_t)i, end);
    return write_logs(b, end, place, key, e);
}
