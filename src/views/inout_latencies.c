/* What the In-and-out analysis found, as latencies: over time, in figures, and by length. Times are of the reference
 * clock, so are durations. */
#include "views/density.h"
#include "views/figures.h"
#include "views/inout.h"

enum { BUCKETS = 128 };
/* Figures are told by hosts' clocks elsewhere; here they are on the reference clock already. */
static const struct tsp_host reference;

static int64_t after(int64_t t)
{
    return t < INT64_MAX ? t + 1 : t;
}

static const char *full_name(const struct tsp_experiment *x, const struct inout_name *n, struct arena *a)
{
    return x->n_hosts > 1 ? arena_printf(a, "%s/%s", x->hosts[n->host].index->name, n->label) : n->label;
}

/* ---- over time ---- */

static void write_scatter_tree(
    struct tsp_experiment *x, const struct tsp_query *q, const struct inout_pairs *p, struct json *j)
{
    static const struct tsp_header header = {"Name", "Machine, label", "STRING"};
    tsp_begin_tree(j, &header, 1, -1);
    for (size_t i = 0; i < p->n_names && !tsp_full(j); i++) {
        const struct inout_name *n = &p->names[i];
        const struct tsp_host *h = &x->hosts[n->host];
        if (!i || p->names[i - 1].host != n->host)
            tsp_write_entry(j,
                &(struct tsp_entry){.id = inout_host_id(x, n->host),
                    .parent = -1,
                    .labels = &h->index->name,
                    .n_labels = 1,
                    .xy = true,
                    .host_id = h->id});
        tsp_write_entry(j,
            &(struct tsp_entry){.id = inout_name_id(x, i),
                .parent = inout_host_id(x, n->host),
                .labels = &n->label,
                .n_labels = 1,
                .xy = true,
                .is_default = true,
                .has_data = true,
                .host_id = h->id});
    }
    tsp_end_tree(j);
}

/* The shortest and the longest of each name that begin between two samples. */
static void add_points(const struct tsp_query *q, const struct inout_pairs *p, struct figures_points *of)
{
    size_t samples = q->n_times > 1 ? q->n_times - 1 : 1, at = inout_find(p, q->n_times > 1 ? q->times[0] : q->begin);
    struct figures *figures = arena_new(q->http->arena, struct figures, p->n_names + 1);
    VEC(uint32_t) seen = {0};
    for (size_t i = 0; i < samples && !http_gone(q->http); i++) {
        size_t to = inout_find(
            p, i + 1 == samples ? after(q->n_times > 1 ? q->times[samples] : q->end) : q->times[i + 1]);
        seen.n = 0;
        for (; at < to; at++) {
            const struct inout_pair *v = &p->v[at];
            int64_t d = inout_duration(v);
            if (!figures[v->name].n)
                vec_push(&seen, v->name);
            figures_join(&figures[v->name], &(struct figures){1, d, d, d, v->begin, v->begin, 0});
        }
        for (size_t k = 0; k < seen.n; k++) {
            figures_add_points(&of[seen.v[k]], &reference, &figures[seen.v[k]]);
            figures[seen.v[k]] = (struct figures){0};
        }
    }
    vec_free(&seen);
}

static void write_scatter(
    struct tsp_experiment *x, const struct tsp_query *q, const struct inout_pairs *p, struct json *j)
{
    struct figures_points *of = mem_zalloc(sizeof *of * (p->n_names + 1));
    if (q->n_items)
        add_points(q, p, of);
    tsp_begin_xy(j, "Latency vs Time");
    for (size_t i = 0; i < p->n_names; i++) {
        if (q->has_items && tsp_wants(q, inout_name_id(x, i)))
            figures_write_points(j, inout_name_id(x, i),
                arena_printf(q->http->arena, "%s/%s", x->hosts[p->names[i].host].index->name, p->names[i].label),
                &of[i]);
        figures_free_points(&of[i]);
    }
    tsp_end_xy(j);
    free(of);
}

static struct tsp_result scatter_tree(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    return inout_answer_with(x, q, j, write_scatter_tree);
}

static struct tsp_result scatter_xy(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    return inout_answer_with(x, q, j, write_scatter);
}

/* ---- figures ---- */

/* By name: the pairs that begin within [begin, end]. First the means, then the distances from them: so no digits are
 * lost. */
static struct figures *figures_of(const struct tsp_query *q, const struct inout_pairs *p, int64_t begin, int64_t end)
{
    struct figures *of = arena_new(q->http->arena, struct figures, p->n_names + 1);
    size_t first = inout_find(p, begin), last = inout_find(p, after(end));
    for (size_t i = first; i < last; i++) {
        const struct inout_pair *v = &p->v[i];
        struct figures *f = &of[v->name];
        int64_t d = inout_duration(v);
        f->least_begin = !f->n || d < f->least ? v->begin : f->least_begin;
        f->most_begin = !f->n || d > f->most ? v->begin : f->most_begin;
        f->least = !f->n || d < f->least ? d : f->least;
        f->most = !f->n || d > f->most ? d : f->most;
        f->sum = (int64_t)((uint64_t)f->sum + (uint64_t)d);
        f->n++;
    }
    for (size_t i = first; i < last; i++) {
        struct figures *f = &of[p->v[i].name];
        double distance = (double)inout_duration(&p->v[i]) - (double)f->sum / (double)f->n;
        f->spread += distance * distance;
    }
    return of;
}

static void write_figures(
    struct tsp_experiment *x, const struct tsp_query *q, const struct inout_pairs *p, struct json *j)
{
    struct arena *a = q->http->arena;
    int64_t total = x->last_thread + 1, selection = total + 1 + (int64_t)p->n_names;
    bool part = q->has_range && (q->begin > x->begin || q->end < x->end);
    tsp_begin_tree(j, figures_headers, FIGURES_HEADERS, -1);
    for (int pass = 0; pass < 1 + part; pass++) {
        struct figures all = {0}, *of = figures_of(q, p, pass ? q->begin : INT64_MIN, pass ? q->end : INT64_MAX);
        int64_t root = pass ? selection : total;
        for (size_t i = 0; i < p->n_names; i++)
            figures_join(&all, &of[i]);
        figures_write(j, a, root, -1, pass ? "Selection" : "Total", &all, NULL, 0);
        for (size_t i = 0; i < p->n_names && !tsp_full(j); i++)
            figures_write(j, a, root + 1 + (int64_t)i, root, full_name(x, &p->names[i], a), &of[i], NULL, 0);
    }
    tsp_end_tree(j);
}

static struct tsp_result statistics_tree(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    return inout_answer_with(x, q, j, write_figures);
}

/* ---- how many of which length ---- */

static struct tsp_result density_tree(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    density_write_tree(x, j, "All pairs of the range");
    return (struct tsp_result){TSP_COMPLETED, NULL};
}

static void write_density(
    struct tsp_experiment *x, const struct tsp_query *q, const struct inout_pairs *p, struct json *j)
{
    size_t first = inout_find(p, q->begin), last = inout_find(p, after(q->end));
    uint64_t counts[BUCKETS] = {0};
    int64_t longest = 0;
    for (size_t i = first; i < last; i++)
        longest = inout_duration(&p->v[i]) > longest ? inout_duration(&p->v[i]) : longest;
    int64_t width = density_width(longest, BUCKETS);
    for (size_t i = first; i < last; i++)
        counts[inout_duration(&p->v[i]) / width]++;
    density_write(x, q, j, width, counts, BUCKETS);
}

static struct tsp_result density_xy(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    return inout_answer_with(x, q, j, write_density);
}

const struct tsp_provider tsp_inout_scatter = {
    .id = "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.scatter.dataprovider",
    .name = "Latency vs Time",
    .description = "A point per pair: when it began and how long it took",
    .type = "TREE_TIME_XY",
    .tree = scatter_tree,
    .xy = scatter_xy,
};
const struct tsp_provider tsp_inout_statistics = {
    .id = "org.eclipse.tracecompass.analysis.timing.core.segmentstore.SegmentStoreStatisticsDataProvider",
    .name = "Latency Statistics",
    .description = "Least, most, mean and spread, in all and by label",
    .type = "DATA_TREE",
    .tree = statistics_tree,
};
const struct tsp_provider tsp_inout_density = {
    .id = "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.SegmentStoreDensityDataProvider",
    .name = "Latency Density",
    .description = "How many pairs are how long",
    .type = "TREE_GENERIC_XY",
    .tree = density_tree,
    .xy = density_xy,
};
