/* Memory Usage: pages that the kernel's page allocator gave out, per host in total and per thread that got or returned
 * some. */
#include "views/state_rows.h"

enum { PAGE_BYTES = 4096, TOTAL = -1 };

static int64_t total_id(const struct views *x, size_t host)
{
    return x->last_thread + 1 + (int64_t)host;
}

static bool has_memory(const struct view_host *h)
{
    return h->states && state_counters(h->states, STATE_MEMORY);
}

static bool has_data(const struct view *self, struct views *x)
{
    for (size_t i = 0; i < x->n_hosts; i++)
        if (has_memory(&x->hosts[i]))
            return true;
    return false;
}

/* Does the counter change within the query's range? */
static bool changes(const struct view_host *h, size_t counter, const struct tsp_query *q)
{
    struct state_interval at;
    return state_at(h->states, STATE_COUNTER_ROWS + STATE_MEMORY, counter, view_sample_time(h, q->begin), &at)
        ? view_to_reference(h, at.end) <= q->end
        : q->begin < q->end;
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    static const struct tsp_header headers[] = {
        {"Process", "Name of the thread", "STRING"}, {"TID", "Number of the thread", "STRING"}};
    bool active_only = json_is_true(json_object_get(q->parameters, "isFiltered"));
    tsp_begin_tree(answer, headers, 2, 1);
    for (size_t i = 0; i < x->n_hosts && !tsp_full(answer); i++) {
        const struct view_host *h = &x->hosts[i];
        for (size_t k = 0; has_memory(h) && k < state_counters(h->states, STATE_MEMORY) && !http_gone(q->http); k++) {
            struct state_counter c;
            struct tsp_entry e = {
                .id = total_id(x, i), .parent = -1, .n_labels = 2, .xy = true, .has_data = true, .host_id = h->id};
            const char *labels[2] = {h->index->name, "Total"};
            state_counter(h->states, STATE_MEMORY, k, &c);
            if (c.number != TOTAL) {
                struct graph_row t;
                if (c.number >= h->threads || (active_only && !changes(h, k, q)))
                    continue;
                graph_row(h->index->graph, c.number, &t);
                labels[0] = t.name;
                labels[1] = arena_printf(q->http->arena, "%d", t.tid);
                e.id = h->first_thread + c.number;
                e.parent = total_id(x, i);
                e.has_tid = true;
                e.tid = t.tid;
            }
            e.labels = labels;
            tsp_write_entry(answer, &e);
        }
    }
    tsp_end_tree(answer);
}

/* What is freed has been held before: the line is lifted so far that its least value is 0, for every question alike. */
static void write_series(const struct view_host *h, const struct tsp_query *q, const int64_t *times, int32_t number,
    int64_t id, struct tsp_answer *answer)
{
    struct arena *a = q->http->arena;
    int64_t counter = state_find_counter(h->states, STATE_MEMORY, number);
    if (counter < 0)
        return;
    int64_t *pages = arena_new(a, int64_t, q->n_times),
            least = state_counter_least(h->states, STATE_MEMORY, (size_t)counter);
    double *y = arena_new(a, double, q->n_times);
    struct graph_row t;
    state_counter_values(h->states, STATE_MEMORY, (size_t)counter, times, q->n_times, pages);
    for (size_t i = 0; i < q->n_times; i++)
        y[i] = PAGE_BYTES * ((double)pages[i] - (double)least);
    if (number != TOTAL)
        graph_row(h->index->graph, number, &t);
    tsp_write_series(answer,
        &(struct tsp_series){.id = id,
            .name = number == TOTAL ? arena_printf(a, "%s:total", h->index->name)
                                    : arena_printf(a, "%s:%d", h->index->name, t.tid),
            .type = "line",
            .x = q->times,
            .y = y,
            .n = q->n_times,
            .y_label = "Memory",
            .y_unit = "B",
            .y_type = "BINARY_NUMBER"});
}

static void xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_xy(answer, "Memory Usage");
    for (size_t i = 0; i < x->n_hosts && !tsp_full(answer); i++) {
        const struct view_host *h = &x->hosts[i];
        if (!has_memory(h))
            continue;
        int64_t *times = arena_new(q->http->arena, int64_t, q->n_times);
        for (size_t k = 0; k < q->n_times; k++)
            times[k] = view_sample_time(h, q->times[k]);
        write_series(h, q, times, TOTAL, total_id(x, i), answer);
        for (size_t k = 0; q->has_items && k < q->n_items && !tsp_full(answer) && !http_gone(q->http); k++) {
            size_t host;
            int32_t row;
            if (view_thread_of(x, q->items[k], &host, &row) && host == i)
                write_series(h, q, times, row, q->items[k], answer);
        }
    }
    tsp_end_xy(answer);
}

const struct view view_memory_usage = {
    .provider = {.id = "org.eclipse.tracecompass.analysis.os.linux.core.kernelmemoryusage",
        .name = "Memory Usage",
        .description = "Pages of memory that threads got from the kernel and gave back",
        .type = "TREE_TIME_XY"},
    .has_data = has_data,
    .tree = tree,
    .xy = xy,
};
