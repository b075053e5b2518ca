/* SPDX-License-Identifier: MIT */
/* Histogram: events and lost events over time, of each trace and of all. A point counts the events after the previous
 * point, up to and including its own time. The first point counts those at its very time, so the points of the whole
 * range sum to all events. */
#include "ctf/ctf.h"
#include "views/list.h"

/* Trace with its counts. */
struct unit {
    const struct ctf_source *source;
    const struct view_host *host; /* host of the trace, or NULL */
    const char *name;
    uint64_t key;
    bool beside; /* user-space trace, besides the host's kernel trace */
    bool lost;   /* events were lost */
};
struct histogram {
    struct unit *units;
    size_t n;
};

/* ---- the traces ---- */

static bool has_losses(const struct ctf_trace *trace)
{
    struct ctf_stream_info s;
    for (size_t i = 0; i < ctf_trace_streams(trace); i++) {
        ctf_trace_stream(trace, i, &s);
        if (s.lost_events)
            return true;
    }
    return false;
}

static void *make(struct views *x)
{
    struct histogram *h = mem_zalloc(sizeof *h);
    h->units = mem_zalloc(sizeof *h->units * (x->n_sources + 1));
    h->n = x->n_sources;
    for (size_t i = 0; i < h->n; i++) {
        struct unit *u = &h->units[i];
        const struct ctf_trace *trace = x->sources[i].trace;
        u->source = &x->sources[i];
        u->host = x->source_hosts[i] >= 0 ? &x->hosts[x->source_hosts[i]] : NULL;
        u->key = x->traces[i].key;
        u->name = u->host ? u->host->id : ctf_trace_path(trace);
        u->beside = u->host && u->host->index->trace != trace;
        u->lost = has_losses(trace);
    }
    return h;
}

static void close_histogram(struct views *x, void *cache)
{
    struct histogram *h = cache;
    free(h->units);
    free(h);
}

static struct histogram *histogram_of(struct views *x)
{
    return view_cache(x, &view_histogram, make);
}

static bool has_data(const struct view *self, struct views *x)
{
    return x->n_sources && x->data.events > 0;
}

/* ---- entries: group 0 is all traces (if there are several), then one group per trace: root, Total, Lost ---- */

static size_t groups(const struct histogram *h)
{
    return h->n > 1 ? h->n + 1 : h->n;
}
static const struct unit *unit_of(const struct histogram *h, size_t group)
{
    return h->n > 1 ? group ? &h->units[group - 1] : NULL : &h->units[group];
}
static int64_t entry_id(const struct views *x, size_t group, int which)
{
    return view_id(x, group * 3 + (size_t)which);
}

static bool any_losses(const struct histogram *h, const struct unit *u)
{
    bool any = u && u->lost;
    for (size_t i = 0; !u && i < h->n; i++)
        any |= h->units[i].lost;
    return any;
}

static const char *name_of(const struct views *x, const struct tsp_query *q, const struct unit *u)
{
    if (!u)
        return x->request->name;
    return u->beside ? arena_printf(q->http->arena, "%s (user space)", u->name) : u->name;
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct histogram *h = histogram_of(x);
    for (size_t g = 0; g < groups(h); g++) {
        const struct unit *u = unit_of(h, g);
        const struct view_host *host = u ? u->host : NULL;
        int64_t root = entry_id(x, g, 0);
        unsigned flags = VIEW_DATA | (g ? 0 : VIEW_DEFAULT);
        view_write_keyed(answer, host, root, -1, u ? u->key : view_key("all", 0), name_of(x, q, u), VIEW_GROUP);
        view_write_merged(answer, host, entry_id(x, g, 1), root, "Total", flags, "total", TSP_SUM);
        flags = any_losses(h, u) ? flags : VIEW_DATA;
        view_write_merged(answer, host, entry_id(x, g, 2), root, "Lost", flags, "lost", TSP_SUM);
    }
}

/* ---- counting ---- */

/* Bounds of the points: the time before the first point, then all points. */
struct bounds {
    const int64_t *t;
    size_t n;
};

static struct bounds bounds_of(const struct tsp_query *q)
{
    int64_t *t = arena_new(q->http->arena, int64_t, q->n_times + 1);
    t[0] = q->times[0] > INT64_MIN ? q->times[0] - 1 : INT64_MIN;
    for (size_t i = 0; i < q->n_times; i++)
        t[i + 1] = q->times[i];
    return (struct bounds){t, q->n_times + 1};
}

static bool is_wanted(const struct views *x, const struct tsp_query *q, size_t group)
{
    return tsp_wants(q, entry_id(x, group, 1)) || tsp_wants(q, entry_id(x, group, 2));
}

static bool is_gone(void *http)
{
    return http_gone(http);
}

static bool count(
    const struct tsp_query *q, const struct unit *u, struct bounds b, struct ctf_tally *to, struct tsp_answer *answer)
{
    struct err e = {0};
    int rc = ctf_source_tally(u->source, b.t, b.n, to, is_gone, q->http, &e);
    if (rc == ERR_NOMEM)
        http_lack_memory(q->http);
    if (rc)
        tsp_fail(answer, TSP_CODE_FAILED, arena_strdup(q->http->arena, e.text));
    return !rc;
}

static void write_series(const struct view *self, struct views *x, const struct tsp_query *q, const struct histogram *h,
    size_t group, struct bounds b, const struct ctf_tally *counts, struct tsp_answer *answer)
{
    double *y = arena_new(q->http->arena, double, b.n);
    const char *name = name_of(x, q, unit_of(h, group));
    for (int lost = 0; lost < 2; lost++) {
        int64_t id = entry_id(x, group, lost ? 2 : 1);
        if (!tsp_wants(q, id))
            continue;
        for (size_t i = 1; i < b.n; i++)
            y[i - 1] = (double)(lost ? counts[i].lost - counts[i - 1].lost : counts[i].events - counts[i - 1].events);
        view_write_series(self, q, answer, id, arena_printf(q->http->arena, "%s/%s", name, lost ? "Lost" : "Total"), y);
    }
}

/* Counts each trace once, for itself and for the sum. */
static void xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct histogram *h = histogram_of(x);
    struct bounds b = bounds_of(q);
    bool all_wanted = h->n > 1 && is_wanted(x, q, 0);
    struct ctf_tally *all = arena_new(q->http->arena, struct ctf_tally, b.n),
                     *one = arena_new(q->http->arena, struct ctf_tally, b.n);
    for (size_t g = h->n > 1; g < groups(h); g++) {
        bool wanted = is_wanted(x, q, g);
        memset(one, 0, sizeof *one * b.n);
        if (!view_goes_on(q, answer))
            return;
        if ((wanted || all_wanted) && !count(q, unit_of(h, g), b, one, answer))
            return;
        for (size_t i = 0; i < b.n; i++) {
            all[i].events += one[i].events;
            all[i].lost += one[i].lost;
        }
        if (wanted)
            write_series(self, x, q, h, g, b, one, answer);
    }
    if (all_wanted)
        write_series(self, x, q, h, 0, b, all, answer);
}

static void style(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct histogram *h = histogram_of(x);
    char key[32];
    tsp_begin_styles(answer);
    for (size_t g = 0; g < groups(h); g++) {
        snprintf(key, sizeof key, "%lld", (long long)tsp_id(answer, entry_id(x, g, 1)));
        tsp_write_style(answer, key, NULL, "#4c78a8", -1, -1, "Total");
        snprintf(key, sizeof key, "%lld", (long long)tsp_id(answer, entry_id(x, g, 2)));
        tsp_write_style(answer, key, NULL, "#e45756", -1, -1, "Lost");
    }
    tsp_end_styles(answer);
}

const struct view view_histogram = {
    .provider = {.id = "org.eclipse.tracecompass.internal.tmf.core.histogram.HistogramDataProvider",
        .name = "Histogram",
        .description = "Number of events over time",
        .type = "TREE_TIME_XY"},
    .has_data = has_data,
    VIEW_HEADERS({"Name", "Trace, and what is counted", NULL}),
    .tree = tree,
    .title = "Histogram",
    .series = {.type = "bar", .y_label = "Events", .y_unit = "", .merge = TSP_SUM},
    .xy = xy,
    .style = style,
    .close = close_histogram,
};
