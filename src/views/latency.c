/* Latencies over time, in figures, and by length. */
#include <stdlib.h>
#include <string.h>

#include "views/density.h"
#include "views/figures.h"
#include "views/latencies.h"

enum { BUCKETS = 128 };

/* Entry ids: hosts first, then the names in their order. */
static int64_t host_id(const struct views *x, size_t host)
{
    return x->last_thread + 1 + (int64_t)host;
}
static int64_t name_id(const struct views *x, size_t name)
{
    return x->last_thread + 1 + (int64_t)(x->n_hosts + name);
}

static int64_t after(int64_t t)
{
    return t < INT64_MAX ? t + 1 : t;
}

/* ---- latency over time ---- */

static void scatter_tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    static const struct tsp_header headers[] = {{"Name", "System call, thread or interrupt", "STRING"}};
    const struct latencies *l = latencies_of(x, latency_kind(q));
    tsp_begin_tree(answer, headers, 1, -1);
    for (size_t i = 0, n = 0; i < x->n_hosts; i++) {
        const char *label = x->hosts[i].index->name;
        tsp_write_entry(answer,
            &(struct tsp_entry){.id = host_id(x, i),
                .parent = -1,
                .labels = &label,
                .n_labels = 1,
                .xy = true,
                .host_id = x->hosts[i].id});
        for (; n < l->first_name[i + 1]; n++)
            tsp_write_entry(answer,
                &(struct tsp_entry){.id = name_id(x, n),
                    .parent = host_id(x, i),
                    .labels = &l->names[n].name,
                    .n_labels = 1,
                    .xy = true,
                    .is_default = true,
                    .has_data = true,
                    .host_id = x->hosts[i].id});
    }
    tsp_end_tree(answer);
}

/* `of`: by the host's names. */
static void host_points(const struct views *x, const struct tsp_query *q, size_t host, struct figures_points *of)
{
    const struct view_host *h = &x->hosts[host];
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

static void scatter_xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct latencies *l = latencies_of(x, latency_kind(q));
    struct figures_points *of = mem_zalloc(sizeof *of * (l->n_names + 1));
    tsp_begin_xy(answer, "Latency vs Time");
    for (size_t h = 0; h < x->n_hosts; h++) {
        bool wanted = false;
        for (size_t n = l->first_name[h]; n < l->first_name[h + 1]; n++)
            wanted |= q->has_items && tsp_wants(q, name_id(x, n));
        if (wanted)
            host_points(x, q, h, of + l->first_name[h]);
        for (size_t n = l->first_name[h]; n < l->first_name[h + 1]; n++) {
            if (q->has_items && tsp_wants(q, name_id(x, n)))
                figures_write_points(answer, name_id(x, n),
                    arena_printf(q->http->arena, "%s/%s", x->hosts[h].index->name, l->names[n].name), &of[n]);
            figures_free_points(&of[n]);
        }
    }
    tsp_end_xy(answer);
    free(of);
}

/* ---- figures ---- */

/* Of the latencies that begin within [begin, end]: by the host's names, with begins on the reference clock. */
static void host_figures(
    const struct views *x, size_t host, int kind, int64_t begin, int64_t end, struct figures *out)
{
    const struct view_host *h = &x->hosts[host];
    if (!h->states)
        return;
    state_latency_figures(
        h->states, kind, latency_find(x, host, kind, begin), latency_find(x, host, kind, after(end)), out);
    for (size_t n = 0; n < state_latency_names(h->states, kind); n++) {
        out[n].least_begin = view_to_reference(h, out[n].least_begin);
        out[n].most_begin = view_to_reference(h, out[n].most_begin);
    }
}

static void write_statistics(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer, int kind)
{
    const struct latencies *l = latencies_of(x, kind);
    struct arena *a = q->http->arena;
    int64_t total = x->last_thread + 1, selection = total + 1 + (int64_t)l->n_names;
    bool part = q->has_range && (q->begin > x->data.begin || q->end < x->data.end);
    tsp_begin_tree(answer, figures_headers, FIGURES_HEADERS, -1);
    for (int pass = 0; pass < 1 + part; pass++) {
        struct figures all = {0}, *by_name = arena_new(a, struct figures, l->n_names + 1);
        for (size_t h = 0; h < x->n_hosts; h++)
            host_figures(
                x, h, kind, pass ? q->begin : x->data.begin, pass ? q->end : x->data.end, by_name + l->first_name[h]);
        for (size_t n = 0; n < l->n_names; n++)
            figures_join(&all, &by_name[n]);
        int64_t root = pass ? selection : total;
        figures_write(answer, a, root, -1, pass ? "Selection" : "Total", &all, NULL, 0);
        for (size_t n = 0; n < l->n_names; n++)
            figures_write(answer, a, root + 1 + (int64_t)n, root,
                x->n_hosts > 1 ? arena_printf(a, "%s/%s", x->hosts[l->names[n].host].index->name, l->names[n].name)
                               : l->names[n].name,
                &by_name[n], NULL, 0);
    }
    tsp_end_tree(answer);
}

/* Those of disks have statistics by names of their own, below. */
static size_t statistics_members(struct views *x)
{
    return latency_members(x) - latency_present(x, STATE_LATENCY_DISK_WAIT) -
        latency_present(x, STATE_LATENCY_DISK_DRIVER);
}

static void statistics_tree(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    write_statistics(self, x, q, answer, latency_kind(q));
}
static void wait_queue_tree(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    write_statistics(self, x, q, answer, STATE_LATENCY_DISK_WAIT);
}
static void exec_queue_tree(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    write_statistics(self, x, q, answer, STATE_LATENCY_DISK_DRIVER);
}
static bool has_wait_queue(const struct view *self, struct views *x)
{
    return latency_present(x, STATE_LATENCY_DISK_WAIT);
}
static bool has_exec_queue(const struct view *self, struct views *x)
{
    return latency_present(x, STATE_LATENCY_DISK_DRIVER);
}

/* ---- how many of which length ---- */

static void density_tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    density_write_tree(x, answer, "All latencies of the range");
}

static int64_t longest(const struct views *x, const struct tsp_query *q, const struct latencies *l)
{
    int64_t most = 0;
    struct figures *f = arena_new(q->http->arena, struct figures, l->n_names + 1);
    for (size_t h = 0; h < x->n_hosts; h++)
        host_figures(x, h, latency_kind(q), q->begin, q->end, f + l->first_name[h]);
    for (size_t n = 0; n < l->n_names; n++)
        most = f[n].most > most ? f[n].most : most;
    return most;
}

static void density_xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    int kind = latency_kind(q);
    uint64_t counts[BUCKETS] = {0};
    int64_t width = density_width(longest(x, q, latencies_of(x, kind)), BUCKETS);
    for (size_t h = 0; h < x->n_hosts; h++)
        if (x->hosts[h].states)
            state_latency_histogram(x->hosts[h].states, kind, latency_find(x, h, kind, q->begin),
                latency_find(x, h, kind, after(q->end)), width, BUCKETS, counts);
    density_write(x, q, answer, width, counts, BUCKETS);
}

const struct view view_latency_scatter = {
    .provider = {.id = "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.scatter.dataprovider",
        .name = "Latency vs Time",
        .description = "A point per latency: when it began and how long it took",
        .type = "TREE_TIME_XY"},
    .has_data = latency_has_data,
    .members = latency_members,
    .member = latency_member,
    .tree = scatter_tree,
    .xy = scatter_xy,
};
const struct view view_latency_statistics = {
    .provider = {.id = "org.eclipse.tracecompass.analysis.timing.core.segmentstore.SegmentStoreStatisticsDataProvider",
        .name = "Latency Statistics",
        .description = "Least, most, mean and spread, in all and by name",
        .type = "DATA_TREE"},
    .has_data = latency_has_data,
    .members = statistics_members,
    .member = latency_member,
    .tree = statistics_tree,
};
const struct view view_wait_queue = {
    .provider = {.id = "org.eclipse.tracecompass.kernel.core.inputoutput.waitqueuestatistics",
        .name = "Wait Queue Statistics",
        .description =
            "How long requests of disks waited before they were issued: least, most, mean and spread, by disk and type",
        .type = "DATA_TREE"},
    .has_data = has_wait_queue,
    .tree = wait_queue_tree,
};
const struct view view_exec_queue = {
    .provider = {.id = "org.eclipse.tracecompass.kernel.core.inputoutput.execqueuestatistics",
        .name = "Exec Queue Statistics",
        .description = "How long drivers took for requests of disks: least, most, mean and spread, by disk and type",
        .type = "DATA_TREE"},
    .has_data = has_exec_queue,
    .tree = exec_queue_tree,
};
const struct view view_latency_density = {
    .provider =
        {.id = "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.SegmentStoreDensityDataProvider",
            .name = "Latency Density",
            .description = "How many latencies are how long",
            .type = "TREE_GENERIC_XY"},
    .has_data = latency_has_data,
    .members = latency_members,
    .member = latency_member,
    .tree = density_tree,
    .xy = density_xy,
};
