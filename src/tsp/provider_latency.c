/* Latencies over time, in figures, and by length. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tsp/latencies.h"

enum { BUCKETS = 128 };

/* Entry ids: hosts first, then the names in their order. */
static int64_t host_id(const struct tsp_experiment *x, size_t host)
{
    return x->threads + 1 + (int64_t)host;
}
static int64_t name_id(const struct tsp_experiment *x, size_t name)
{
    return x->threads + 1 + (int64_t)(x->n_hosts + name);
}

struct each {
    struct tsp_experiment *x;
    const struct latencies *l;
    int kind;
};

static uint16_t name_at(const struct latencies *l, uint64_t order)
{
    return l->name_of[order >> 40][order & ((UINT64_C(1) << 40) - 1)];
}

/* Calls f for every latency that begins within [begin, end]. Ends early when the client has gone. */
static void each_within(const struct each *e, const struct tsp_query *q, int64_t begin, int64_t end,
    void (*f)(void *arg, uint16_t name, const struct state_latency *), void *arg)
{
    for (size_t i = latency_find(e->x, e->l, e->kind, begin); i < e->l->n; i++) {
        struct state_latency v;
        size_t host;
        latency_get(e->x, e->kind, e->l->order[i], &v, &host);
        if (v.begin > end || (i % 65536 == 0 && http_gone(q->http)))
            return;
        f(arg, name_at(e->l, e->l->order[i]), &v);
    }
}

static struct each each_of(struct tsp_experiment *x, const struct tsp_query *q)
{
    return (struct each){x, latencies_of(x, latency_kind(q)), latency_kind(q)};
}

/* ---- latency over time ----------------------------------------------------------------------------------------------------------- */

static struct tsp_result scatter_tree(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    static const struct tsp_header headers[] = {{"Name", "System call, thread or interrupt", "STRING"}};
    struct each e = each_of(x, q);
    tsp_begin_tree(j, headers, 1, -1);
    for (size_t i = 0, n = 0; i < x->n_hosts; i++) {
        const char *label = x->hosts[i].index->name;
        tsp_write_entry(j,
            &(struct tsp_entry){.id = host_id(x, i), .parent = -1, .labels = &label, .n_labels = 1, .xy = true, .host_id = x->hosts[i].id});
        for (; n < e.l->n_names && e.l->names[n].host == i; n++)
            tsp_write_entry(j,
                &(struct tsp_entry){.id = name_id(x, n),
                    .parent = host_id(x, i),
                    .labels = &e.l->names[n].name,
                    .n_labels = 1,
                    .xy = true,
                    .is_default = true,
                    .has_data = true,
                    .host_id = x->hosts[i].id});
    }
    tsp_end_tree(j);
    return (struct tsp_result){TSP_COMPLETED, NULL};
}

/* Points of one name. Of the points between two samples only the shortest and the longest are kept: more cannot be seen. */
struct points {
    int64_t *x;
    double *y;
    size_t n, cap;
    size_t sample;
    size_t low, high; /* places of the two kept of this sample; SIZE_MAX: none */
};
struct scatter {
    const struct tsp_query *q;
    struct points *of;
};

static size_t sample_of(const struct tsp_query *q, int64_t t)
{
    double span = (double)(q->end - q->begin);
    return span > 0 ? (size_t)((double)(t - q->begin) / span * (double)(q->n_times > 1 ? q->n_times - 1 : 1)) : 0;
}

static size_t put_point(struct points *p, int64_t x, double y)
{
    if (p->n == p->cap) {
        size_t cap = p->cap ? p->cap * 2 : 64;
        p->x = mem_resize(p->x, cap * sizeof *p->x);
        p->y = mem_resize(p->y, cap * sizeof *p->y);
        p->cap = cap;
    }
    p->x[p->n] = x;
    p->y[p->n] = y;
    return p->n++;
}

static void add_point(void *arg, uint16_t name, const struct state_latency *v)
{
    struct scatter *s = arg;
    if (name == UINT16_MAX)
        return;
    struct points *p = &s->of[name];
    size_t sample = sample_of(s->q, v->begin);
    double y = (double)(v->end - v->begin);
    if (!p->n || sample != p->sample) {
        p->sample = sample;
        p->low = put_point(p, v->begin, y);
        p->high = SIZE_MAX;
    } else if (p->high == SIZE_MAX) {
        p->high = put_point(p, v->begin, y);
        if (p->y[p->low] > y) { /* times stay in order: the names of the places change, not the points */
            size_t other = p->low;
            p->low = p->high;
            p->high = other;
        }
    } else if (y > p->y[p->high]) {
        p->y[p->high] = y;
    } else if (y < p->y[p->low]) {
        p->y[p->low] = y;
    }
}

static struct tsp_result scatter_xy(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    struct each e = each_of(x, q);
    struct scatter s = {q, mem_zalloc(sizeof *s.of * (e.l->n_names + 1))};
    each_within(&e, q, q->begin, q->end, add_point, &s);
    tsp_begin_xy(j, "Latency vs Time");
    for (size_t n = 0; n < e.l->n_names; n++) {
        if (q->has_items && tsp_wants(q, name_id(x, n)))
            tsp_write_series(j,
                &(struct tsp_series){.id = name_id(x, n),
                    .name = arena_printf(q->http->arena, "%s/%s", x->hosts[e.l->names[n].host].index->name, e.l->names[n].name),
                    .type = "scatter",
                    .x = s.of[n].x,
                    .y = s.of[n].y,
                    .n = s.of[n].n,
                    .y_label = "Duration",
                    .y_unit = "ns",
                    .y_type = "DURATION"});
        free(s.of[n].x);
        free(s.of[n].y);
    }
    tsp_end_xy(j);
    free(s.of);
    return (struct tsp_result){TSP_COMPLETED, NULL};
}

/* ---- figures --------------------------------------------------------------------------------------------------------------------- */

struct figures {
    uint64_t n;
    int64_t least, most, least_begin, least_end, most_begin, most_end;
    double sum, mean, squares; /* mean and sum of squared distances from it, updated value by value (Welford) */
};

static void add_figure(struct figures *f, const struct state_latency *v)
{
    int64_t d = v->end - v->begin;
    if (!f->n || d < f->least) {
        f->least = d;
        f->least_begin = v->begin;
        f->least_end = v->end;
    }
    if (!f->n || d > f->most) {
        f->most = d;
        f->most_begin = v->begin;
        f->most_end = v->end;
    }
    f->n++;
    f->sum += (double)d;
    double from = (double)d - f->mean;
    f->mean += from / (double)f->n;
    f->squares += from * ((double)d - f->mean);
}

struct counting {
    struct figures total, *by_name;
};

static void count_latency(void *arg, uint16_t name, const struct state_latency *v)
{
    struct counting *c = arg;
    add_figure(&c->total, v);
    if (name != UINT16_MAX)
        add_figure(&c->by_name[name], v);
}

static const char *duration(struct arena *a, double ns)
{
    struct text t = {.fd = -1};
    text_duration(&t, (int64_t)ns);
    const char *s = arena_strdup(a, text_cstr(&t));
    text_fini(&t);
    return s;
}

static void write_figures(struct json *j, struct arena *a, int64_t id, int64_t parent, const char *label, const struct figures *f)
{
    if (!f->n)
        return;
    const char *labels[] = {label, duration(a, (double)f->least), duration(a, (double)f->most), duration(a, f->mean),
        f->n > 2 ? duration(a, sqrt(f->squares / (double)(f->n - 1))) : "---", arena_printf(a, "%llu", (unsigned long long)f->n),
        duration(a, f->sum), arena_printf(a, "[%lld,%lld]", (long long)f->least_begin, (long long)f->least_end),
        arena_printf(a, "[%lld,%lld]", (long long)f->most_begin, (long long)f->most_end)};
    tsp_write_entry(j, &(struct tsp_entry){.id = id, .parent = parent, .labels = labels, .n_labels = 9, .has_data = true});
}

static struct tsp_result statistics_tree(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    static const struct tsp_header headers[] = {{"Label", "Name", "STRING"}, {"Minimum", "Shortest", "DURATION"},
        {"Maximum", "Longest", "DURATION"}, {"Average", "Mean", "DURATION"}, {"Std Dev", "Standard deviation", "DURATION"},
        {"Count", "How many", "NUMBER"}, {"Total", "Sum", "DURATION"}, {"Min Time Range", "Where the shortest is", "TIME_RANGE"},
        {"Max Time Range", "Where the longest is", "TIME_RANGE"}};
    struct each e = each_of(x, q);
    struct arena *a = q->http->arena;
    int64_t total = x->threads + 1, selection = total + 1 + (int64_t)e.l->n_names;
    bool part = q->has_range && (q->begin > x->begin || q->end < x->end);
    tsp_begin_tree(j, headers, 9, -1);
    for (int pass = 0; pass < 1 + part; pass++) {
        struct counting c = {.by_name = mem_zalloc(sizeof *c.by_name * (e.l->n_names + 1))};
        each_within(&e, q, pass ? q->begin : INT64_MIN, pass ? q->end : INT64_MAX, count_latency, &c);
        int64_t root = pass ? selection : total;
        write_figures(j, a, root, -1, pass ? "Selection" : "Total", &c.total);
        for (size_t n = 0; n < e.l->n_names; n++)
            write_figures(j, a, root + 1 + (int64_t)n, root,
                x->n_hosts > 1 ? arena_printf(a, "%s/%s", x->hosts[e.l->names[n].host].index->name, e.l->names[n].name)
                               : e.l->names[n].name,
                &c.by_name[n]);
        free(c.by_name);
    }
    tsp_end_tree(j);
    return (struct tsp_result){TSP_COMPLETED, NULL};
}

/* ---- how many of which length ------------------------------------------------------------------------------------------------------ */

static struct tsp_result density_tree(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    static const struct tsp_header headers[] = {{"Name", "All latencies of the range", "STRING"}};
    const char *label = "Total";
    tsp_begin_tree(j, headers, 1, -1);
    tsp_write_entry(j,
        &(struct tsp_entry){
            .id = x->threads + 1, .parent = -1, .labels = &label, .n_labels = 1, .xy = true, .is_default = true, .has_data = true});
    tsp_end_tree(j);
    return (struct tsp_result){TSP_COMPLETED, NULL};
}

struct density {
    int64_t longest;
    double buckets[BUCKETS];
};

static void find_longest(void *arg, uint16_t name, const struct state_latency *v)
{
    struct density *d = arg;
    d->longest = v->end - v->begin > d->longest ? v->end - v->begin : d->longest;
}

static void fill_bucket(void *arg, uint16_t name, const struct state_latency *v)
{
    struct density *d = arg;
    d->buckets[(size_t)((__int128)(v->end - v->begin) * BUCKETS / (d->longest + 1))]++;
}

static struct tsp_result density_xy(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    struct each e = each_of(x, q);
    struct density *d = arena_new(q->http->arena, struct density, 1);
    int64_t(*ranges)[2] = arena_alloc(q->http->arena, sizeof *ranges * BUCKETS);
    each_within(&e, q, q->begin, q->end, find_longest, d);
    each_within(&e, q, q->begin, q->end, fill_bucket, d);
    for (int i = 0; i < BUCKETS; i++) {
        ranges[i][0] = (int64_t)((__int128)(d->longest + 1) * i / BUCKETS);
        ranges[i][1] = (int64_t)((__int128)(d->longest + 1) * (i + 1) / BUCKETS);
    }
    tsp_begin_xy(j, "Latency Density");
    if (!q->has_items || tsp_wants(q, x->threads + 1))
        tsp_write_series(j,
            &(struct tsp_series){.id = x->threads + 1,
                .name = "Total",
                .type = "bar",
                .ranges = (const int64_t(*)[2])ranges,
                .y = d->buckets,
                .n = BUCKETS,
                .x_label = "Duration",
                .x_unit = "ns",
                .x_type = "DURATION",
                .y_label = "Count"});
    tsp_end_xy(j);
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
    .members = latency_members,
    .member = latency_member,
    .tree = statistics_tree,
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
