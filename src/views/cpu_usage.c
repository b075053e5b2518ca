/* CPU usage: per host in total and per thread, in percent of one CPU. */
#include "views/growth.h"

#include <stdlib.h>
#include <string.h>

static int64_t total_id(const struct views *x, size_t host)
{
    return x->last_thread + 1 + (int64_t)host;
}

static bool has_data(const struct view *self, struct views *x)
{
    for (size_t i = 0; i < x->n_hosts; i++)
        if (x->hosts[i].states && state_counters(x->hosts[i].states, STATE_CPU_TIME))
            return true;
    return false;
}

/* CPUs of the query: parameter requested_cpus, else all. */
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

static void write_row(struct tsp_answer *answer, const struct tsp_query *q, struct tsp_entry e, const char *name,
    const char *tid, int64_t ns)
{
    double length = q->end > q->begin ? (double)((uint64_t)q->end - (uint64_t)q->begin) : 1;
    struct text time = {.fd = -1};
    text_duration(&time, ns);
    const char *labels[4] = {
        name, tid, arena_printf(q->http->arena, "%.3f %%", 100.0 * (double)ns / length), text_cstr(&time)};
    e.labels = labels;
    e.n_labels = 4;
    e.xy = e.has_data = true;
    tsp_write_entry(answer, &e);
    text_fini(&time);
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    static const struct tsp_header headers[] = {{"Process", "Name of the thread", "STRING"},
        {"TID", "Number of the thread", "STRING"}, {"%", "Share of one CPU within the range", "NUMBER"},
        {"Time", "Time on a CPU within the range", "DURATION"}};
    tsp_begin_tree(answer, headers, 4, 1);
    for (size_t i = 0; i < x->n_hosts && !tsp_full(answer); i++) {
        const struct view_host *h = &x->hosts[i];
        if (!h->states)
            continue;
        write_row(answer, q, (struct tsp_entry){.id = total_id(x, i), .parent = -1, .host_id = h->id}, h->index->name,
            "Total", busy_time(h, q));
        for (int32_t row = 0; row < h->threads && !http_gone(q->http); row++) {
            struct graph_row t;
            int64_t ns = rates_growth(
                h, STATE_CPU_TIME, state_find_counter(h->states, STATE_CPU_TIME, row), q->begin, q->end);
            graph_row(h->index->graph, row, &t);
            if (ns <= 0 || t.idle_cpu >= 0)
                continue;
            write_row(answer, q,
                (struct tsp_entry){.id = h->first_thread + row,
                    .parent = total_id(x, i),
                    .host_id = h->id,
                    .has_tid = true,
                    .tid = t.tid},
                t.name, arena_printf(q->http->arena, "%d", t.tid), ns);
        }
    }
    tsp_end_tree(answer);
}

static void write_series(
    struct tsp_answer *answer, const struct tsp_query *q, int64_t id, const char *name, const double *y)
{
    tsp_write_series(answer,
        &(struct tsp_series){.id = id,
            .name = name,
            .type = "line",
            .x = q->times,
            .y = y,
            .n = q->n_times,
            .y_label = "CPU usage",
            .y_unit = "%"});
}

static void xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    struct arena *a = q->http->arena;
    tsp_begin_xy(answer, "CPU Usage");
    for (size_t i = 0; i < x->n_hosts && !tsp_full(answer); i++) {
        const struct view_host *h = &x->hosts[i];
        if (!h->states)
            continue;
        struct tsp_samples s = tsp_samples_of(h, q);
        struct state_counter c;
        double *total = arena_new(a, double, q->n_times);
        for (size_t k = 0; k < state_counters(h->states, STATE_CPU_TIME); k++) {
            state_counter(h->states, STATE_CPU_TIME, k, &c);
            if (is_cpu(&c) && wants_cpu(q, -1 - c.number))
                tsp_add_rates(h, STATE_CPU_TIME, (int64_t)k, &s, 100, total, a);
        }
        write_series(answer, q, total_id(x, i), arena_printf(a, "total:%s", h->index->name), total);
        for (size_t k = 0; k < q->n_items && q->has_items && !http_gone(q->http); k++) {
            size_t host;
            int32_t row;
            if (!view_thread_of(x, q->items[k], &host, &row) || host != i)
                continue;
            struct graph_row t;
            double *y = arena_new(a, double, q->n_times);
            graph_row(h->index->graph, row, &t);
            tsp_add_rates(h, STATE_CPU_TIME, state_find_counter(h->states, STATE_CPU_TIME, row), &s, 100, y, a);
            write_series(answer, q, q->items[k], arena_printf(a, "%s:%d", h->index->name, t.tid), y);
        }
    }
    tsp_end_xy(answer);
}

const struct view view_cpu_usage = {
    .provider = {.id = "org.eclipse.tracecompass.analysis.os.linux.core.cpuusage.CpuUsageDataProvider",
        .name = "CPU Usage",
        .description = "Share of CPU time per host and thread, from scheduling events",
        .type = "TREE_TIME_XY"},
    .has_data = has_data,
    .tree = tree,
    .xy = xy,
};
