/* SPDX-License-Identifier: MIT */
/* Memory Usage: pages from the kernel's page allocator, per host in total and per thread that allocated or freed
 * some. */
#include "views/rates.h"
#include "views/sampling.h"

enum { PAGE_BYTES = 4096, TOTAL = -1 };

static bool has_data(const struct view *self, const struct view_host *h)
{
    return h->states && state_counters(h->states, STATE_MEMORY);
}

/* Returns whether the counter changes within the query's range. */
static bool changes(const struct view_host *h, size_t counter, const struct tsp_query *q)
{
    struct state_interval at;
    return state_at(h->states, STATE_COUNTER_ROWS + STATE_MEMORY, counter, view_sample_time(h, q->begin), &at)
        ? view_to_reference(h, at.end) <= q->end
        : q->begin < q->end;
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    bool active_only = json_is_true(json_object_get(q->parameters, "isFiltered"));
    for (size_t i = 0; i < x->n_hosts; i++) {
        const struct view_host *h = &x->hosts[i];
        size_t n = has_data(self, h) ? state_counters(h->states, STATE_MEMORY) : 0;
        for (size_t k = 0; k < n && view_goes_on(q, answer); k++) {
            struct state_counter c;
            const char *labels[2] = {h->index->name, "Total"};
            struct tsp_entry e = {.id = view_id(x, i),
                .parent = -1,
                .key = h->index->key,
                .xy = true,
                .has_data = true,
                .host_id = h->id};
            state_counter(h->states, STATE_MEMORY, k, &c);
            if (c.number != TOTAL) {
                struct graph_row t;
                if (c.number >= h->threads || (active_only && !changes(h, k, q)))
                    continue;
                graph_row(h->index->graph, c.number, &t);
                labels[0] = t.name;
                labels[1] = arena_printf(q->http->arena, "%d", t.tid);
                e.parent = e.id;
                e.id = h->first_thread + c.number;
                e.has_tid = true;
                e.tid = t.tid;
                e.container = view_container(h, t.container);
            }
            e.labels = labels;
            e.n_labels = 2;
            tsp_write_entry(answer, &e);
        }
    }
}

/* Bytes at the host's times; NULL: unknown. Freed memory was held before. The line is therefore raised until its least
 * value is 0, the same for every query. */
static const double *bytes_of(
    const struct view_host *h, const struct tsp_query *q, const int64_t *times, int32_t number)
{
    int64_t counter = state_find_counter(h->states, STATE_MEMORY, number);
    if (counter < 0)
        return NULL;
    int64_t *pages = arena_new(q->http->arena, int64_t, q->n_times);
    int64_t least = state_counter_least(h->states, STATE_MEMORY, (size_t)counter);
    double *y = arena_new(q->http->arena, double, q->n_times);
    state_counter_values(h->states, STATE_MEMORY, (size_t)counter, times, q->n_times, pages);
    for (size_t i = 0; i < q->n_times; i++)
        y[i] = PAGE_BYTES * ((double)pages[i] - (double)least);
    return y;
}

static void xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    struct arena *a = q->http->arena;
    for (size_t i = 0; i < x->n_hosts && !tsp_full(answer); i++) {
        const struct view_host *h = &x->hosts[i];
        struct view_thread t;
        const double *y;
        if (!has_data(self, h))
            continue;
        const int64_t *times = rates_times(h, q, view_sample_time) + 1;
        if ((y = bytes_of(h, q, times, TOTAL)))
            view_write_series(self, q, answer, view_id(x, i), arena_printf(a, "%s:total", h->index->name), y);
        for (size_t k = 0; view_next_thread(x, h, q, answer, &k, &t);)
            if ((y = bytes_of(h, q, times, t.row)))
                view_write_series(self, q, answer, t.id, arena_printf(a, "%s:%d", h->index->name, t.is.tid), y);
    }
}

const struct view view_memory_usage = {
    .provider = {.id = "org.eclipse.tracecompass.analysis.os.linux.core.kernelmemoryusage",
        .name = "Memory Usage",
        .description = "Pages of memory that threads got from the kernel and gave back",
        .type = "TREE_TIME_XY"},
    .host_has_data = has_data,
    VIEW_HEADERS(
        {"Process", "Name of the thread", "STRING"}, {"TID", "Number of the thread", "STRING", "tid", TSP_FIRST}),
    .expand = 1,
    .tree = tree,
    .title = "Memory Usage",
    .series = {.type = "line", .y_label = "Memory", .y_unit = "B", .y_type = "BINARY_NUMBER", .merge = TSP_LEVEL},
    .xy = xy,
};
