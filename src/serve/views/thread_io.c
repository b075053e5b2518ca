/* SPDX-License-Identifier: MIT */
/* Counters of threads: bytes read and written by system calls, exits of virtual CPUs. Per host the threads whose
 * counters grew within the range, over time as a rate. */
#include "views/rates.h"

enum { MOST_COUNTED = 2 };
/* Counters of a thread by the views' `kind`. With several, each has an entry below the thread's. */
static const struct counted {
    size_t n;
    int counters[MOST_COUNTED];
    const char *labels[MOST_COUNTED], *keys[MOST_COUNTED];
} counted[] = {{2, {STATE_IO_READ, STATE_IO_WRITTEN}, {"Read", "Write"}, {"read", "written"}},
    {1, {STATE_KVM_EXITS}, {"Exits"}, {"exits"}}};
enum { IO, EXITS };

static bool has_data(const struct view *self, const struct view_host *h)
{
    const struct counted *c = &counted[self->kind];
    return h->states &&
        (state_counters(h->states, c->counters[0]) || (c->n > 1 && state_counters(h->states, c->counters[1])));
}

/* ---- entries: those of threads are common to all views; then one per host, then one per thread and counter ---- */

static int64_t counter_id(const struct views *x, const struct counted *c, int64_t thread, size_t k)
{
    return c->n == 1 ? thread : view_id(x, x->n_hosts) + thread * (int64_t)c->n + (int64_t)k;
}

/* Finds thread and counter of an entry; false: it has none. */
static bool counter_of(
    const struct views *x, const struct counted *c, int64_t id, size_t *host, int32_t *row, size_t *k)
{
    int64_t at = id - view_id(x, x->n_hosts), n = (int64_t)c->n;
    *k = 0;
    if (n == 1)
        return view_thread_of(x, id, host, row);
    *k = at >= 0 ? (size_t)(at % n) : 0;
    return at >= 0 && view_thread_of(x, at / n, host, row);
}

static void write_entry(struct tsp_answer *answer, const struct tsp_query *q, struct tsp_entry e, const char *name,
    const char *tid, const struct counted *c, const int64_t *grown)
{
    const char *labels[2 + MOST_COUNTED] = {name, tid};
    struct tsp_meta meta[MOST_COUNTED];
    for (size_t k = 0; k < c->n; k++) {
        labels[2 + k] = grown[k] < 0 ? "" : arena_printf(q->http->arena, "%lld", (long long)grown[k]);
        if (grown[k] >= 0)
            meta[e.n_meta++] = (struct tsp_meta){.key = c->keys[k], .number = grown[k]};
    }
    e.meta = meta;
    e.labels = labels;
    e.n_labels = 2 + c->n;
    e.xy = true;
    tsp_write_entry(answer, &e);
}

static void write_thread(struct tsp_answer *answer, const struct views *x, const struct tsp_query *q,
    const struct counted *c, size_t host, int32_t row, const int64_t *grown)
{
    const struct view_host *h = &x->hosts[host];
    struct graph_row t;
    graph_row(h->index->graph, row, &t);
    struct tsp_entry e = {.id = h->first_thread + row,
        .parent = view_id(x, host),
        .has_data = c->n == 1,
        .host_id = h->id,
        .has_tid = true,
        .tid = t.tid,
        .container = view_container(h, t.container)};
    write_entry(answer, q, e, t.name, arena_printf(q->http->arena, "%d", t.tid), c, grown);
    e.parent = e.id;
    e.has_data = true;
    for (size_t k = 0; c->n > 1 && k < c->n; k++) {
        int64_t own[MOST_COUNTED] = {-1, -1};
        own[k] = grown[k];
        e.id = counter_id(x, c, e.parent, k);
        write_entry(answer, q, e, c->labels[k], "", c, own);
    }
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct counted *c = &counted[self->kind];
    for (size_t i = 0; i < x->n_hosts && !tsp_full(answer); i++) {
        const struct view_host *h = &x->hosts[i];
        if (!h->states)
            continue;
        int64_t(*grown)[MOST_COUNTED] = (int64_t(*)[MOST_COUNTED])arena_new(
            q->http->arena, int64_t, ((size_t)h->threads + 1) * MOST_COUNTED);
        int64_t all[MOST_COUNTED] = {0};
        for (size_t k = 0; k < c->n; k++)
            for (size_t n = 0; n < state_counters(h->states, c->counters[k]) && !http_gone(q->http); n++) {
                struct state_counter thread;
                state_counter(h->states, c->counters[k], n, &thread);
                if (thread.number >= h->threads)
                    continue;
                grown[thread.number][k] = rates_growth(
                    h, c->counters[k], (int64_t)n, q->begin - (q->begin > INT64_MIN), q->end);
                all[k] += grown[thread.number][k];
            }
        struct tsp_entry e = {.id = view_id(x, i), .parent = -1, .key = h->index->key, .host_id = h->id};
        write_entry(answer, q, e, h->index->name, "", c, all);
        for (int32_t row = 0; row < h->threads && !tsp_full(answer) && !http_gone(q->http); row++)
            if (grown[row][0] || grown[row][1])
                write_thread(answer, x, q, c, i, row, grown[row]);
    }
}

/* ---- series ---- */

static void xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct counted *c = &counted[self->kind];
    struct arena *a = q->http->arena;
    int64_t id;
    for (size_t i = 0; view_next_item(q, answer, &i, &id);) {
        size_t host, k;
        int32_t row;
        struct graph_row t;
        if (!counter_of(x, c, id, &host, &row, &k) || !x->hosts[host].states)
            continue;
        const struct view_host *h = &x->hosts[host];
        double *y = arena_new(a, double, q->n_times);
        rates_add(h, q, rates_times(h, q, view_to_host), c->counters[k],
            state_find_counter(h->states, c->counters[k], row), 1e9, y);
        graph_row(h->index->graph, row, &t);
        const char *name = arena_printf(a, "%s/%s (%d)", h->index->name, t.name, t.tid);
        view_write_series(self, q, answer, id, c->n > 1 ? arena_printf(a, "%s/%s", name, c->labels[k]) : name, y);
    }
}

const struct view view_io_per_process = {
    .provider = {.id = "org.eclipse.tracecompass.incubator.kernel.core.io.per.process",
        .name = "IO per process",
        .description = "Bytes that system calls of each thread read and wrote",
        .type = "TREE_TIME_XY"},
    .kind = IO,
    .host_has_data = has_data,
    VIEW_HEADERS({"Process", "Name of the thread", "STRING"},
        {"TID", "Number of the thread", "STRING", "tid", TSP_FIRST},
        {"Read", "Bytes read within the range", "BINARY_NUMBER", "read", TSP_SUM},
        {"Written", "Bytes written within the range", "BINARY_NUMBER", "written", TSP_SUM}),
    .expand = 2,
    .tree = tree,
    .title = "IO per process",
    .series = {.type = "line", .y_label = "Throughput", .y_unit = "B/s", .y_type = "BINARY_NUMBER", .merge = TSP_SUM},
    .xy = xy,
};
const struct view view_kvm_exits = {
    .provider = {.id = "org.eclipse.incubator.overhead.xy.rate.dataprovider",
        .name = "KVM Exit Rate",
        .description = "How often the threads that are virtual CPUs leave their guest",
        .type = "TREE_TIME_XY"},
    .kind = EXITS,
    .host_has_data = has_data,
    VIEW_HEADERS({"Process", "Name of the thread", "STRING"},
        {"TID", "Number of the thread", "STRING", "tid", TSP_FIRST},
        {"Exits", "How often it left its guest within the range", "NUMBER", "exits", TSP_SUM}),
    .expand = 1,
    .tree = tree,
    .title = "KVM Exit Rate",
    .series = {.type = "line", .y_label = "KVM exits", .y_unit = "exits/s", .merge = TSP_SUM},
    .xy = xy,
};
