/* What the In-and-out analysis found, as latencies: over time, in figures, and by length. Times are of the reference
 * clock, so are durations. */
#include "views/density.h"
#include "views/figures.h"
#include "views/inout.h"

enum { BUCKETS = 128 };
/* Figures are told by hosts' clocks elsewhere; here they are on the reference clock already. */
static const struct view_host reference;

static int64_t after(int64_t t)
{
    return t < INT64_MAX ? t + 1 : t;
}

static const char *full_name(const struct views *x, const struct inout_name *n, struct arena *a)
{
    return x->n_hosts > 1 ? arena_printf(a, "%s/%s", x->hosts[n->host].index->name, n->label) : n->label;
}

/* ---- over time ---- */

static void write_scatter_tree(
    struct views *x, const struct tsp_query *q, const struct inout_pairs *p, struct tsp_answer *answer)
{
    static const struct tsp_header header = {"Name", "Machine, label", "STRING"};
    tsp_begin_tree(answer, &header, 1, -1);
    for (size_t i = 0; i < p->n_names && !tsp_full(answer); i++) {
        const struct inout_name *n = &p->names[i];
        const struct view_host *h = &x->hosts[n->host];
        if (!i || p->names[i - 1].host != n->host)
            tsp_write_entry(answer,
                &(struct tsp_entry){.id = inout_host_id(x, n->host),
                    .parent = -1,
                    .labels = &h->index->name,
                    .n_labels = 1,
                    .xy = true,
                    .host_id = h->id});
        tsp_write_entry(answer,
            &(struct tsp_entry){.id = inout_name_id(x, i),
                .parent = inout_host_id(x, n->host),
                .labels = &n->label,
                .n_labels = 1,
                .xy = true,
                .is_default = true,
                .has_data = true,
                .host_id = h->id});
    }
    tsp_end_tree(answer);
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
    struct views *x, const struct tsp_query *q, const struct inout_pairs *p, struct tsp_answer *answer)
{
    struct figures_points *of = mem_zalloc(sizeof *of * (p->n_names + 1));
    if (q->n_items)
        add_points(q, p, of);
    tsp_begin_xy(answer, "Latency vs Time");
    for (size_t i = 0; i < p->n_names; i++) {
        if (q->has_items && tsp_wants(q, inout_name_id(x, i)))
            figures_write_points(answer, inout_name_id(x, i),
                arena_printf(q->http->arena, "%s/%s", x->hosts[p->names[i].host].index->name, p->names[i].label),
                &of[i]);
        figures_free_points(&of[i]);
    }
    tsp_end_xy(answer);
    free(of);
}

static void scatter_tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    inout_answer_with(x, q, answer, write_scatter_tree);
}

static void scatter_xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    inout_answer_with(x, q, answer, write_scatter);
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
    struct views *x, const struct tsp_query *q, const struct inout_pairs *p, struct tsp_answer *answer)
{
    struct arena *a = q->http->arena;
    int64_t total = x->last_thread + 1, selection = total + 1 + (int64_t)p->n_names;
    bool part = q->has_range && (q->begin > x->data.begin || q->end < x->data.end);
    tsp_begin_tree(answer, figures_headers, FIGURES_HEADERS, -1);
    for (int pass = 0; pass < 1 + part; pass++) {
        struct figures all = {0}, *of = figures_of(q, p, pass ? q->begin : INT64_MIN, pass ? q->end : INT64_MAX);
        int64_t root = pass ? selection : total;
        for (size_t i = 0; i < p->n_names; i++)
            figures_join(&all, &of[i]);
        figures_write(answer, a, root, -1, pass ? "Selection" : "Total", &all, NULL, 0);
        for (size_t i = 0; i < p->n_names && !tsp_full(answer); i++)
            figures_write(answer, a, root + 1 + (int64_t)i, root, full_name(x, &p->names[i], a), &of[i], NULL, 0);
    }
    tsp_end_tree(answer);
}

static void statistics_tree(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    inout_answer_with(x, q, answer, write_figures);
}

/* ---- how many of which length ---- */

static void density_tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    density_write_tree(x, answer, "All pairs of the range");
}

static void write_density(
    struct views *x, const struct tsp_query *q, const struct inout_pairs *p, struct tsp_answer *answer)
{
    size_t first = inout_find(p, q->begin), last = inout_find(p, after(q->end));
    uint64_t counts[BUCKETS] = {0};
    int64_t longest = 0;
    for (size_t i = first; i < last; i++)
        longest = inout_duration(&p->v[i]) > longest ? inout_duration(&p->v[i]) : longest;
    int64_t width = density_width(longest, BUCKETS);
    for (size_t i = first; i < last; i++)
        counts[inout_duration(&p->v[i]) / width]++;
    density_write(x, q, answer, width, counts, BUCKETS);
}

static void density_xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    inout_answer_with(x, q, answer, write_density);
}

const struct view view_inout_scatter = {
    .provider = {.id = "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.scatter.dataprovider",
        .name = "Latency vs Time",
        .description = "A point per pair: when it began and how long it took",
        .type = "TREE_TIME_XY"},
    .tree = scatter_tree,
    .xy = scatter_xy,
};
const struct view view_inout_statistics = {
    .provider = {.id = "org.eclipse.tracecompass.analysis.timing.core.segmentstore.SegmentStoreStatisticsDataProvider",
        .name = "Latency Statistics",
        .description = "Least, most, mean and spread, in all and by label",
        .type = "DATA_TREE"},
    .tree = statistics_tree,
};
const struct view view_inout_density = {
    .provider =
        {.id = "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.SegmentStoreDensityDataProvider",
            .name = "Latency Density",
            .description = "How many pairs are how long",
            .type = "TREE_GENERIC_XY"},
    .tree = density_tree,
    .xy = density_xy,
};
