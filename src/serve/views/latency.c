/* SPDX-License-Identifier: MIT */
/* Latencies over time, in figures, and by length. */
#include <stdlib.h>

#include "views/durations.h"
#include "views/latencies.h"

/* ---- latency over time ---- */

/* Entry ids: hosts first, then the names in their order. */
static int64_t name_id(const struct views *x, size_t name)
{
    return view_id(x, x->n_hosts + name);
}

static void scatter_tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct latency_names *l = latency_names(x, latency_kind(self, q));
    for (size_t i = 0; i < x->n_hosts; i++) {
        const struct view_host *h = &x->hosts[i];
        view_write_entry(answer, h, view_id(x, i), -1, h->index->name, VIEW_GROUP);
        for (size_t n = l->first_name[i]; n < l->first_name[i + 1]; n++)
            view_write_entry(answer, h, name_id(x, n), view_id(x, i), l->names[n].name, VIEW_DATA | VIEW_DEFAULT);
    }
}

/* `of`: figures by the host's names. */
static void host_points(
    const struct views *x, const struct tsp_query *q, size_t host, int kind, struct durations_points *of)
{
    const struct view_host *h = &x->hosts[host];
    size_t n_names = state_latency_names(h->states, kind), at = latency_find(x, host, kind, q->begin);
    struct figures *figures = arena_alloc(q->http->arena, sizeof *figures * n_names);
    for (size_t i = 0; i < durations_gaps(q); i++) {
        size_t to = latency_find(x, host, kind, durations_gap_end(q, i));
        if (i % 1024 == 0 && http_gone(q->http))
            return;
        if (to == at)
            continue;
        state_latency_figures(h->states, kind, at, to, figures);
        for (size_t n = 0; n < n_names; n++)
            durations_add_points(&of[n], h, &figures[n]);
        at = to;
    }
}

static void scatter_xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    int kind = latency_kind(self, q);
    const struct latency_names *l = latency_names(x, kind);
    struct durations_points *of = mem_zalloc(sizeof *of * (l->n_names + 1));
    for (size_t h = 0; h < x->n_hosts; h++) {
        bool wanted = false;
        for (size_t n = l->first_name[h]; n < l->first_name[h + 1]; n++)
            wanted |= q->has_items && tsp_wants(q, name_id(x, n));
        if (wanted)
            host_points(x, q, h, kind, of + l->first_name[h]);
        for (size_t n = l->first_name[h]; n < l->first_name[h + 1]; n++) {
            if (q->has_items && tsp_wants(q, name_id(x, n)))
                durations_write_points(answer, name_id(x, n),
                    arena_printf(q->http->arena, "%s/%s", x->hosts[h].index->name, l->names[n].name), &of[n]);
            durations_free_points(&of[n]);
        }
    }
    free(of);
}

/* ---- figures ---- */

/* Figures, by name, of latencies that begin within [begin, end]; begins are on the reference clock. */
static void find_figures(
    const struct views *x, const struct latency_names *l, int kind, int64_t begin, int64_t end, struct figures *out)
{
    for (size_t i = 0; i < x->n_hosts; i++) {
        const struct view_host *h = &x->hosts[i];
        if (!h->states)
            continue;
        state_latency_figures(h->states, kind, latency_find(x, i, kind, begin),
            latency_find(x, i, kind, time_after(end)), out + l->first_name[i]);
        for (size_t n = l->first_name[i]; n < l->first_name[i + 1]; n++) {
            out[n].least_begin = view_to_reference(h, out[n].least_begin);
            out[n].most_begin = view_to_reference(h, out[n].most_begin);
        }
    }
}

struct statistics {
    const struct views *x;
    const struct tsp_query *q;
    int kind;
    const struct latency_names *l;
};

static void find(void *arg, bool selection, struct figures *out)
{
    const struct statistics *s = arg;
    const struct tsp_data *all = &s->x->data;
    find_figures(s->x, s->l, s->kind, selection ? s->q->begin : all->begin, selection ? s->q->end : all->end, out);
}

static const char *label(void *arg, size_t name, size_t *host)
{
    const struct latency_name *n = &((const struct statistics *)arg)->l->names[name];
    *host = n->host;
    return n->name;
}

static void statistics_tree(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    int kind = latency_kind(self, q);
    struct statistics s = {x, q, kind, latency_names(x, kind)};
    durations_write_statistics(x, q, answer, &(struct durations_statistics){&s, s.l->n_names, find, label});
}

/* Statistics of disks have names of their own, below. */
static size_t statistics_members(struct views *x)
{
    return latency_members(x) - latency_present(x, STATE_LATENCY_DISK_WAIT) -
        latency_present(x, STATE_LATENCY_DISK_DRIVER);
}

static bool has_latencies(const struct view *self, const struct view_host *h)
{
    return h->states && state_latencies(h->states, self->kind);
}

/* ---- counts by length ---- */

static void density_xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    int kind = latency_kind(self, q);
    const struct latency_names *l = latency_names(x, kind);
    struct figures *of = arena_new(q->http->arena, struct figures, l->n_names + 1);
    int64_t longest = 0;
    find_figures(x, l, kind, q->begin, q->end, of);
    for (size_t n = 0; n < l->n_names; n++)
        longest = of[n].most > longest ? of[n].most : longest;
    struct durations_bars b = durations_bars(q, longest, DURATIONS_BARS);
    for (size_t h = 0; h < x->n_hosts; h++)
        if (x->hosts[h].states)
            state_latency_histogram(x->hosts[h].states, kind, latency_find(x, h, kind, q->begin),
                latency_find(x, h, kind, time_after(q->end)), b.width, b.n, b.counts);
    durations_write_total(x, q, answer, &b);
}

const struct view view_latency_scatter = {
    .provider = {.id = "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.scatter.dataprovider",
        .name = "Latency vs Time",
        .description = "A point per latency: when it began and how long it took",
        .type = "TREE_TIME_XY"},
    .has_data = latency_has_data,
    .members = latency_members,
    .member = latency_member,
    VIEW_HEADERS({"Name", "System call, thread or interrupt", "STRING"}),
    .tree = scatter_tree,
    .title = "Latency vs Time",
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
    .headers = durations_headers,
    .n_headers = DURATIONS_HEADERS,
    .tree = statistics_tree,
};
const struct view view_wait_queue = {
    .provider = {.id = "org.eclipse.tracecompass.kernel.core.inputoutput.waitqueuestatistics",
        .name = "Wait Queue Statistics",
        .description =
            "How long requests of disks waited before they were issued: least, most, mean and spread, by disk and type",
        .type = "DATA_TREE"},
    .kind = STATE_LATENCY_DISK_WAIT,
    .host_has_data = has_latencies,
    .headers = durations_headers,
    .n_headers = DURATIONS_HEADERS,
    .tree = statistics_tree,
};
const struct view view_exec_queue = {
    .provider = {.id = "org.eclipse.tracecompass.kernel.core.inputoutput.execqueuestatistics",
        .name = "Exec Queue Statistics",
        .description = "How long drivers took for requests of disks: least, most, mean and spread, by disk and type",
        .type = "DATA_TREE"},
    .kind = STATE_LATENCY_DISK_DRIVER,
    .host_has_data = has_latencies,
    .headers = durations_headers,
    .n_headers = DURATIONS_HEADERS,
    .tree = statistics_tree,
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
    VIEW_HEADERS({"Name", "All latencies of the range", "STRING"}),
    .tree = durations_total_tree,
    .title = "Latency Density",
    .xy = density_xy,
};
