/* SPDX-License-Identifier: MIT */
/* Pairs of the In-and-out analysis as latencies: over time, in figures, and by length. Times and durations use the
 * reference clock. */
#include "views/durations.h"
#include "views/inout.h"

/* Host without a clock map. Figures elsewhere use the hosts' clocks; here they are on the reference clock already. */
static const struct view_host reference;

/* ---- points over time ---- */

static void write_scatter_tree(
    struct views *x, const struct tsp_query *q, const struct event_pairs *p, struct tsp_answer *answer)
{
    static const struct tsp_header header = {"Name", "Machine, label", "STRING"};
    tsp_begin_tree(answer, &header, 1, -1);
    for (size_t i = 0; i < p->n_names && !tsp_full(answer); i++) {
        const struct event_pair_name *n = &p->names[i];
        const struct view_host *h = &x->hosts[n->host];
        if (!i || p->names[i - 1].host != n->host)
            view_write_entry(answer, h, view_id(x, n->host), -1, h->index->name, VIEW_GROUP);
        view_write_entry(answer, h, inout_row_id(x, i), view_id(x, n->host), n->label, VIEW_DATA | VIEW_DEFAULT);
    }
    tsp_end_tree(answer);
}

/* Adds the shortest and the longest pair of each name that begin between two samples. */
static void add_points(const struct tsp_query *q, const struct event_pairs *p, struct durations_points *of)
{
    size_t at = events_pairs_find(p, q->begin);
    struct figures *figures = arena_new(q->http->arena, struct figures, p->n_names + 1);
    VEC(uint32_t) seen = {0};
    for (size_t i = 0; i < durations_gaps(q) && !http_gone(q->http); i++) {
        size_t to = events_pairs_find(p, durations_gap_end(q, i));
        seen.n = 0;
        for (; at < to; at++) {
            const struct event_pair *v = &p->v[at];
            int64_t d = event_pair_duration(v);
            if (!figures[v->name].n)
                vec_push(&seen, v->name);
            figures_join(&figures[v->name], &(struct figures){1, d, d, d, v->begin, v->begin, 0});
        }
        for (size_t k = 0; k < seen.n; k++) {
            durations_add_points(&of[seen.v[k]], &reference, &figures[seen.v[k]]);
            figures[seen.v[k]] = (struct figures){0};
        }
    }
    vec_free(&seen);
}

static void write_scatter(
    struct views *x, const struct tsp_query *q, const struct event_pairs *p, struct tsp_answer *answer)
{
    struct durations_points *of = mem_zalloc(sizeof *of * (p->n_names + 1));
    if (q->n_items)
        add_points(q, p, of);
    tsp_begin_xy(answer, "Latency vs Time");
    for (size_t i = 0; i < p->n_names; i++) {
        if (q->has_items && tsp_wants(q, inout_row_id(x, i)))
            durations_write_points(answer, inout_row_id(x, i),
                arena_printf(q->http->arena, "%s/%s", x->hosts[p->names[i].host].index->name, p->names[i].label),
                &of[i]);
        durations_free_points(&of[i]);
    }
    tsp_end_xy(answer);
    free(of);
}

/* ---- figures ---- */

struct statistics {
    const struct views *x;
    const struct tsp_query *q;
    const struct event_pairs *pairs;
};

/* Figures by name of pairs that begin within the range. Two passes, means and then distances from them, keep all
 * digits. */
static void find(void *arg, bool selection, struct figures *of)
{
    const struct statistics *s = arg;
    const struct event_pairs *p = s->pairs;
    size_t first = selection ? events_pairs_find(p, s->q->begin) : 0;
    size_t end = events_pairs_find(p, selection ? time_after(s->q->end) : INT64_MAX);
    for (size_t i = first; i < end; i++) {
        const struct event_pair *v = &p->v[i];
        struct figures *f = &of[v->name];
        int64_t d = event_pair_duration(v);
        f->least_begin = !f->n || d < f->least ? v->begin : f->least_begin;
        f->most_begin = !f->n || d > f->most ? v->begin : f->most_begin;
        f->least = !f->n || d < f->least ? d : f->least;
        f->most = !f->n || d > f->most ? d : f->most;
        f->sum = figures_sum(f->sum, d);
        f->n++;
    }
    for (size_t i = first; i < end; i++) {
        struct figures *f = &of[p->v[i].name];
        double distance = (double)event_pair_duration(&p->v[i]) - (double)f->sum / (double)f->n;
        f->spread += distance * distance;
    }
}

static const char *label(void *arg, size_t name, size_t *host)
{
    const struct event_pair_name *n = &((const struct statistics *)arg)->pairs->names[name];
    *host = n->host;
    return n->label;
}

static void write_figures(
    struct views *x, const struct tsp_query *q, const struct event_pairs *p, struct tsp_answer *answer)
{
    struct statistics s = {x, q, p};
    tsp_begin_tree(answer, durations_headers, DURATIONS_HEADERS, -1);
    durations_write_statistics(x, q, answer, &(struct durations_statistics){&s, p->n_names, find, label});
    tsp_end_tree(answer);
}

/* ---- counts by length ---- */

static void write_density(
    struct views *x, const struct tsp_query *q, const struct event_pairs *p, struct tsp_answer *answer)
{
    size_t first = events_pairs_find(p, q->begin), last = events_pairs_find(p, time_after(q->end));
    int64_t longest = 0;
    for (size_t i = first; i < last; i++)
        longest = event_pair_duration(&p->v[i]) > longest ? event_pair_duration(&p->v[i]) : longest;
    struct durations_bars b = durations_bars(q, longest, DURATIONS_BARS);
    for (size_t i = first; i < last; i++)
        b.counts[figures_range(event_pair_duration(&p->v[i]), b.width, b.n)]++;
    tsp_begin_xy(answer, "Latency Density");
    durations_write_total(x, q, answer, &b);
    tsp_end_xy(answer);
}

const struct inout_view view_inout_scatter = {
    .view =
        {.provider = {.id = "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.scatter.dataprovider",
             .name = "Latency vs Time",
             .description = "A point per pair: when it began and how long it took",
             .type = "TREE_TIME_XY"},
            .tree = inout_ask,
            .xy = inout_ask},
    .tree = write_scatter_tree,
    .xy = write_scatter,
};
const struct inout_view view_inout_statistics = {
    .view = {.provider =
                 {.id = "org.eclipse.tracecompass.analysis.timing.core.segmentstore.SegmentStoreStatisticsDataProvider",
                     .name = "Latency Statistics",
                     .description = "Least, most, mean and spread, in all and by label",
                     .type = "DATA_TREE"},
        .tree = inout_ask},
    .tree = write_figures,
};
const struct inout_view view_inout_density = {
    .view = {.provider = {.id = "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore."
                                "SegmentStoreDensityDataProvider",
                 .name = "Latency Density",
                 .description = "How many pairs are how long",
                 .type = "TREE_GENERIC_XY"},
        VIEW_HEADERS({"Name", "All pairs of the range", "STRING"}),
        .tree = durations_total_tree,
        .xy = inout_ask},
    .xy = write_density,
};
