/* SPDX-License-Identifier: MIT */
/* CPU usage: host totals and threads, in percent of one CPU. */
#include "views/durations.h"
#include "views/rates.h"

static bool has_data(const struct view *self, const struct view_host *h)
{
    return h->states && state_counters(h->states, STATE_CPU_TIME);
}

/* Returns whether the query includes the CPU: parameter requested_cpus, else all. */
static bool wants_cpu(const struct tsp_query *q, int32_t cpu)
{
    json_t *list = json_object_get(q->parameters, "requested_cpus"), *item;
    size_t i;
    if (!json_is_array(list))
        return true;
    json_array_foreach (list, i, item)
        if (json_integer_value(item) == cpu)
            return true;
    return false;
}

static bool is_cpu(const struct state_counter *c)
{
    return c->number < 0;
}

static int64_t busy_time(const struct view_host *h, const struct tsp_query *q)
{
    int64_t sum = 0;
    struct state_counter c;
    for (size_t i = 0; i < state_counters(h->states, STATE_CPU_TIME); i++) {
        state_counter(h->states, STATE_CPU_TIME, i, &c);
        if (is_cpu(&c) && wants_cpu(q, -1 - c.number))
            sum += rates_growth(h, STATE_CPU_TIME, (int64_t)i, q->begin, q->end);
    }
    return sum;
}

static void write_entry(struct tsp_answer *answer, const struct tsp_query *q, struct tsp_entry e, const char *name,
    const char *tid, int64_t ns)
{
    struct arena *a = q->http->arena;
    double length = q->end > q->begin ? (double)((uint64_t)q->end - (uint64_t)q->begin) : 1;
    e.labels = (const char *const[]){
        name, tid, arena_printf(a, "%.3f %%", 100.0 * (double)ns / length), durations_text(a, (double)ns)};
    e.n_labels = 4;
    e.meta = &(struct tsp_meta){.key = "time", .number = ns};
    e.n_meta = 1;
    e.xy = e.has_data = true;
    tsp_write_entry(answer, &e);
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    for (size_t i = 0; i < x->n_hosts && !tsp_full(answer); i++) {
        const struct view_host *h = &x->hosts[i];
        struct tsp_entry e = {.id = view_id(x, i), .parent = -1, .key = h->index->key, .host_id = h->id};
        if (!h->states)
            continue;
        write_entry(answer, q, e, h->index->name, "Total", busy_time(h, q));
        e.parent = e.id;
        e.has_tid = true;
        for (int32_t row = 0; row < h->threads && !http_gone(q->http); row++) {
            struct graph_row t;
            int64_t ns = rates_growth(
                h, STATE_CPU_TIME, state_find_counter(h->states, STATE_CPU_TIME, row), q->begin, q->end);
            graph_row(h->index->graph, row, &t);
            if (ns <= 0 || t.idle_cpu >= 0)
                continue;
            e.id = h->first_thread + row;
            e.tid = t.tid;
            e.container = view_container(h, t.container);
            write_entry(answer, q, e, t.name, arena_printf(q->http->arena, "%d", t.tid), ns);
        }
    }
}

static void xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    struct arena *a = q->http->arena;
    for (size_t i = 0; i < x->n_hosts && !tsp_full(answer); i++) {
        const struct view_host *h = &x->hosts[i];
        struct state_counter c;
        struct view_thread t;
        if (!h->states)
            continue;
        const int64_t *times = rates_times(h, q, view_to_host);
        double *total = arena_new(a, double, q->n_times);
        for (size_t k = 0; k < state_counters(h->states, STATE_CPU_TIME); k++) {
            state_counter(h->states, STATE_CPU_TIME, k, &c);
            if (is_cpu(&c) && wants_cpu(q, -1 - c.number))
                rates_add(h, q, times, STATE_CPU_TIME, (int64_t)k, 100, total);
        }
        view_write_series(self, q, answer, view_id(x, i), arena_printf(a, "total:%s", h->index->name), total);
        for (size_t k = 0; view_next_thread(x, h, q, answer, &k, &t);) {
            double *y = arena_new(a, double, q->n_times);
            rates_add(h, q, times, STATE_CPU_TIME, state_find_counter(h->states, STATE_CPU_TIME, t.row), 100, y);
            view_write_series(self, q, answer, t.id, arena_printf(a, "%s:%d", h->index->name, t.is.tid), y);
        }
    }
}

const struct view view_cpu_usage = {
    .provider = {.id = "org.eclipse.tracecompass.analysis.os.linux.core.cpuusage.CpuUsageDataProvider",
        .name = "CPU Usage",
        .description = "Share of CPU time per host and thread, from scheduling events",
        .type = "TREE_TIME_XY"},
    .host_has_data = has_data,
    VIEW_HEADERS({"Process", "Name of the thread", "STRING"},
        {"TID", "Number of the thread", "STRING", "tid", TSP_FIRST},
        {"%", "Share of one CPU within the range", "NUMBER", "share", TSP_SHARE, "time"},
        {"Time", "Time on a CPU within the range", "DURATION", "time", TSP_SUM}),
    .expand = 1,
    .tree = tree,
    .title = "CPU Usage",
    .series = {.type = "line", .y_label = "CPU usage", .y_unit = "%", .merge = TSP_SUM},
    .xy = xy,
};
