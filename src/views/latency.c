/* Latencies over time, in figures, and by length. */
#include <stdlib.h>
#include <string.h>

#include "views/density.h"
#include "views/figures.h"
#include "views/latencies.h"

enum { BUCKETS = 128 };

/* Entry ids: hosts first, then the names in their order. */
static int64_t host_id(const struct tsp_experiment *x, size_t host)
{
    return x->last_thread + 1 + (int64_t)host;
}
static int64_t name_id(const struct tsp_experiment *x, size_t name)
{
    return x->last_thread + 1 + (int64_t)(x->n_hosts + name);
}

static int64_t after(int64_t t)
{
    return t < INT64_MAX ? t + 1 : t;
}

/* ---- latency over time ---- */

static struct tsp_result scatter_tree(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    static const struct tsp_header headers[] = {{"Name", "System call, thread or interrupt", "STRING"}};
    const struct latencies *l = latencies_of(x, latency_kind(q));
    tsp_begin_tree(j, headers, 1, -1);
    for (size_t i = 0, n = 0; i < x->n_hosts; i++) {
        const char *label = x->hosts[i].index->name;
        tsp_write_entry(j,
            &(struct tsp_entry){.id = host_id(x, i),
                .parent = -1,
                .labels = &label,
                .n_labels = 1,
                .xy = true,
                .host_id = x->hosts[i].id});
        for (; n < l->first_name[i + 1]; n++)
            tsp_write_entry(j,
                &(struct tsp_entry){.id = name_id(x, n),
                    .parent = host_id(x, i),
                    .labels = &l->names[n].name,
                    .n_labels = 1,
                    .xy = true,
                    .is_default = true,
                    .has_data = true,
                    .host_id = x->hosts[i].id});
    }
    tsp_end_tree(j);
    return (struct tsp_result){TSP_COMPLETED, NULL};
}

/* `of`: by the host's names. */
static void host_points(
    const struct tsp_experiment *x, const struct tsp_query *q, size_t host, struct figures_points *of)
{
    const struct tsp_host *h = &x->hosts[host];
    int kind = latency_kind(q);
    size_t n_names = state_latency_names(h->states, kind), samples = q->n_times > 1 ? q->n_times - 1 : 1;
    struct figures *figures = arena_alloc(q->http->arena, sizeof *figures * n_names);
    size_t at = latency_find(x, host, kind, q->n_times > 1 ? q->times[0] : q->begin);
    for (size_t i = 0; i < samples; i++) {
        bool last = i + 1 == samples;
        size_t to = latency_find(
            x, host, kind, last ? after(q->n_times > 1 ? q->times[samples] : q->end) : q->times[i + 1]);
        if (i % 1024 == 0 && http_gone(q->http))
            return;
        if (to == at)
            continue;
        state_latency_figures(h->states, kind, at, to, figures);
        for (size_t n = 0; n < n_names; n++)
            figures_add_points(&of[n], h, &figures[n]);
        at = to;
    }
}

static struct tsp_result scatter_xy(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    const struct latencies *l = latencies_of(x, latency_kind(q));
    struct figures_points *of = mem_zalloc(sizeof *of * (l->n_names + 1));
    tsp_begin_xy(j, "Latency vs Time");
    for (size_t h = 0; h < x->n_hosts; h++) {
        bool wanted = false;
        for (size_t n = l->first_name[h]; n < l->first_name[h + 1]; n++)
            wanted |= q->has_items && tsp_wants(q, name_id(x, n));
        if (wanted)
            host_points(x, q, h, of + l->first_name[h]);
        for (size_t n = l->first_name[h]; n < l->first_name[h + 1]; n++) {
            if (q->has_items && tsp_wants(q, name_id(x, n)))
                figures_write_points(j, name_id(x, n),
                    arena_printf(q->http->arena, "%s/%s", x->hosts[h].index->name, l->names[n].name), &of[n]);
            figures_free_points(&of[n]);
        }
    }
    tsp_end_xy(j);
    free(of);
    return (struct tsp_result){TSP_COMPLETED, NULL};
}

/* ---- figures ---- */

/* Of the latencies that begin within [begin, end]: by the host's names, with begins on the reference clock. */
static void host_figures(
    const struct tsp_experiment *x, size_t host, int kind, int64_t begin, int64_t end, struct figures *out)
{
    const struct tsp_host *h = &x->hosts[host];
    if (!h->states)
        return;
    state_latency_figures(
        h->states, kind, latency_find(x, host, kind, begin), latency_find(x, host, kind, after(end)), out);
    for (size_t n = 0; n < state_latency_names(h->states, kind); n++) {
        out[n].least_begin = tsp_to_reference(h, out[n].least_begin);
        out[n].most_begin = tsp_to_reference(h, out[n].most_begin);
    }
}

static struct tsp_result write_statistics(struct tsp_experiment *x, const struct tsp_query *q, struct json *j, int kind)
{
    const struct latencies *l = latencies_of(x, kind);
    struct arena *a = q->http->arena;
    int64_t total = x->last_thread + 1, selection = total + 1 + (int64_t)l->n_names;
    bool part = q->has_range && (q->begin > x->begin || q->end < x->end);
    tsp_begin_tree(j, figures_headers, FIGURES_HEADERS, -1);
    for (int pass = 0; pass < 1 + part; pass++) {
        struct figures all = {0}, *by_name = arena_new(a, struct figures, l->n_names + 1);
        for (size_t h = 0; h < x->n_hosts; h++)
            host_figures(x, h, kind, pass ? q->begin : x->begin, pass ? q->end : x->end, by_name + l->first_name[h]);
        for (size_t n = 0; n < l->n_names; n++)
            figures_join(&all, &by_name[n]);
        int64_t root = pass ? selection : total;
        figures_write(j, a, root, -1, pass ? "Selection" : "Total", &all, NULL, 0);
        for (size_t n = 0; n < l->n_names; n++)
            figures_write(j, a, root + 1 + (int64_t)n, root,
                x->n_hosts > 1 ? arena_printf(a, "%s/%s", x->hosts[l->names[n].host].index->name, l->names[n].name)
                               : l->names[n].name,
                &by_name[n], NULL, 0);
    }
    tsp_end_tree(j);
    return (struct tsp_result){TSP_COMPLETED, NULL};
}

/* Those of disks have statistics by names of their own, below. */
static size_t statistics_members(struct tsp_experiment *x)
{
    return latency_members(x) - latency_present(x, STATE_LATENCY_DISK_WAIT) -
        latency_present(x, STATE_LATENCY_DISK_DRIVER);
}

static struct tsp_result statistics_tree(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    return write_statistics(x, q, j, latency_kind(q));
}
static struct tsp_result wait_queue_tree(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    return write_statistics(x, q, j, STATE_LATENCY_DISK_WAIT);
}
static struct tsp_result exec_queue_tree(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    return write_statistics(x, q, j, STATE_LATENCY_DISK_DRIVER);
}
static bool has_wait_queue(struct tsp_experiment *x)
{
    return latency_present(x, STATE_LATENCY_DISK_WAIT);
}
static bool has_exec_queue(struct tsp_experiment *x)
{
    return latency_present(x, STATE_LATENCY_DISK_DRIVER);
}

/* ---- how many of which length ---- */

static struct tsp_result density_tree(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    density_write_tree(x, j, "All latencies of the range");
    return (struct tsp_result){TSP_COMPLETED, NULL};
}

static int64_t longest(const struct tsp_experiment *x, const struct tsp_query *q, const struct latencies *l)
{
    int64_t most = 0;
    struct figures *f = arena_new(q->http->arena, struct figures, l->n_names + 1);
    for (size_t h = 0; h < x->n_hosts; h++)
        host_figures(x, h, latency_kind(q), q->begin, q->end, f + l->first_name[h]);
    for (size_t n = 0; n < l->n_names; n++)
        most = f[n].most > most ? f[n].most : most;
    return most;
}

static struct tsp_result density_xy(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    int kind = latency_kind(q);
    uint64_t counts[BUCKETS] = {0};
    int64_t width = density_width(longest(x, q, latencies_of(x, kind)), BUCKETS);
    for (size_t h = 0; h < x->n_hosts; h++)
        if (x->hosts[h].states)
            state_latency_histogram(x->hosts[h].states, kind, latency_find(x, h, kind, q->begin),
                latency_find(x, h, kind, after(q->end)), width, BUCKETS, counts);
    density_write(x, q, j, width, counts, BUCKETS);
    return (struct tsp_result){TSP_COMPLETED, NULL};
}

const struct tsp_provider tsp_latency_scatter = {
    .id = "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.scatter.dataprovider",
    .name = "Latency vs Time",
    .description = "A point per latency: when it began and how long it took",
    .type = "TREE_TIME_XY",
    .has_data = latency_has_data,
    .members = latency_members,
    .member = latency_member,
    .tree = scatter_tree,
    .xy = scatter_xy,
};
const struct tsp_provider tsp_latency_statistics = {
    .id = "org.eclipse.tracecompass.analysis.timing.core.segmentstore.SegmentStoreStatisticsDataProvider",
    .name = "Latency Statistics",
    .description = "Least, most, mean and spread, in all and by name",
    .type = "DATA_TREE",
    .has_data = latency_has_data,
    .members = statistics_members,
    .member = latency_member,
    .tree = statistics_tree,
};
const struct tsp_provider tsp_wait_queue = {
    .id = "org.eclipse.tracecompass.kernel.core.inputoutput.waitqueuestatistics",
    .name = "Wait Queue Statistics",
    .description =
        "How long requests of disks waited before they were issued: least, most, mean and spread, by disk and type",
    .type = "DATA_TREE",
    .has_data = has_wait_queue,
    .tree = wait_queue_tree,
};
const struct tsp_provider tsp_exec_queue = {
    .id = "org.eclipse.tracecompass.kernel.core.inputoutput.execqueuestatistics",
    .name = "Exec Queue Statistics",
    .description = "How long drivers took for requests of disks: least, most, mean and spread, by disk and type",
    .type = "DATA_TREE",
    .has_data = has_exec_queue,
    .tree = exec_queue_tree,
};
const struct tsp_provider tsp_latency_density = {
    .id = "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.SegmentStoreDensityDataProvider",
    .name = "Latency Density",
    .description = "How many latencies are how long",
    .type = "TREE_GENERIC_XY",
    .has_data = latency_has_data,
    .members = latency_members,
    .member = latency_member,
    .tree = density_tree,
    .xy = density_xy,
};
