/* Histogram: events and lost events over time, of each trace and of all. A point counts the events after the point
 * before it, up to and including its own time (the first one: those at its very time), so that the points of the whole
 * range sum to all events. */
#include "base/search.h"
#include "ctf/ctf.h"
#include "views/list.h"

enum { BATCH = 512, READ_AT_MOST = 500000, MAX_READ = 50000000 };

/* One trace. Times are on the experiment's clock. */
struct unit {
    const struct view_host *host;     /* its host, or NULL */
    const struct state_store *states; /* counts its events; else `times` does */
    const char *name;
    uint64_t key;
    bool beside;               /* a user-space trace beside the host's kernel trace */
    VEC(int64_t) times;        /* of all events, ascending */
    VEC(int64_t) loss_times;   /* ascending */
    VEC(uint64_t) loss_counts; /* lost up to and including that loss */
};
struct histogram {
    struct unit *units;
    size_t n;
};

/* ---- the traces ---- */

static void add_loss(struct unit *u, int64_t time, uint64_t count)
{
    if (!count)
        return;
    uint64_t before = u->loss_counts.n ? u->loss_counts.v[u->loss_counts.n - 1] : 0;
    int64_t last = u->loss_times.n ? u->loss_times.v[u->loss_times.n - 1] : INT64_MIN;
    vec_push(&u->loss_times, time > last ? time : last);
    vec_push(&u->loss_counts, before + count);
}

/* A trace that the index does not count is read once. */
static void read_times(struct unit *u, const struct ctf_source *source)
{
    struct ctf_merge *merge;
    struct ctf_event batch[BATCH];
    struct err e = {0};
    if (ctf_merge_new(source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &merge, &e))
        return;
    for (size_t n; u->times.n < MAX_READ && (n = ctf_merge_next(merge, batch, BATCH)) > 0;)
        for (size_t i = 0; i < n; i++)
            if (batch[i].cls->item == CTF_EVENT)
                vec_push(&u->times, batch[i].ts);
            else if (batch[i].cls->item == CTF_LOST_EVENTS)
                add_loss(u, batch[i].ts, ((const struct ctf_loss *)(const void *)batch[i].data)->count);
    ctf_merge_free(merge);
}

static void read_losses(struct unit *u)
{
    const struct graph_loss *losses;
    size_t n = graph_losses(u->host->index->graph, &losses);
    for (size_t i = 0; i < n; i++)
        add_loss(u, view_to_reference(u->host, losses[i].begin), losses[i].count);
}

static void *make(struct views *x)
{
    struct histogram *h = mem_zalloc(sizeof *h);
    h->units = mem_zalloc(sizeof *h->units * (x->n_sources + 1));
    h->n = x->n_sources;
    for (size_t i = 0; i < h->n; i++) {
        struct unit *u = &h->units[i];
        const struct ctf_trace *trace = x->sources[i].trace;
        u->host = x->source_hosts[i] >= 0 ? &x->hosts[x->source_hosts[i]] : NULL;
        u->key = x->traces[i].key;
        u->name = u->host ? u->host->id : ctf_trace_path(trace);
        u->beside = u->host && u->host->index->trace != trace;
        if (u->host && u->host->index->trace == trace && u->host->states && u->host->index->graph) {
            u->states = u->host->states;
            read_losses(u);
        } else {
            read_times(u, &x->sources[i]);
        }
    }
    return h;
}

static void close_histogram(struct views *x, void *cache)
{
    struct histogram *h = cache;
    for (size_t i = 0; i < h->n; i++) {
        vec_free(&h->units[i].times);
        vec_free(&h->units[i].loss_times);
        vec_free(&h->units[i].loss_counts);
    }
    free(h->units);
    free(h);
}

static struct histogram *histogram_of(struct views *x)
{
    return view_cache(x, &view_histogram, make);
}

static bool has_data(const struct view *self, struct views *x)
{
    return x->data.events > 0;
}

/* ---- entries: group 0 is all traces (when there are several), then one group per trace; each a root, Total, Lost ----
 */

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

static uint64_t losses_of(const struct unit *u)
{
    return u->loss_counts.n ? u->loss_counts.v[u->loss_counts.n - 1] : 0;
}

static bool any_losses(const struct histogram *h, const struct unit *u)
{
    bool any = u && losses_of(u);
    for (size_t i = 0; !u && i < h->n; i++)
        any |= losses_of(&h->units[i]) > 0;
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
        view_write_entry(answer, host, entry_id(x, g, 1), root, "Total", flags);
        view_write_entry(answer, host, entry_id(x, g, 2), root, "Lost", any_losses(h, u) ? flags : VIEW_DATA);
    }
}

/* ---- counting ---- */

/* How many of the ascending times are at or before t. */
static size_t at_most(const int64_t *v, size_t n, int64_t t)
{
    return search_first(i, 0, n, v[i] > t);
}

/* The times that bound the points: the one before the first, then all. */
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

/* Adds to counts[i] the events at or before b.t[i], but for a constant. */
static void count_by_reading(
    const struct tsp_query *q, const struct ctf_source *source, struct bounds b, uint64_t *counts)
{
    struct ctf_merge *merge;
    struct ctf_event batch[BATCH];
    struct err e = {0};
    uint64_t before = 0;
    size_t at = 1; /* the bound that is being filled; what is at or before the first is the constant */
    if (ctf_merge_new(source, 1, (struct ctf_window){b.t[0] + 1, b.t[b.n - 1]}, -1, &merge, &e)) {
        if (e.code == ERR_NOMEM)
            http_lack_memory(q->http);
        return;
    }
    for (size_t n; !http_gone(q->http) && (n = ctf_merge_next(merge, batch, BATCH)) > 0;)
        for (size_t i = 0; i < n; i++) {
            while (at < b.n && batch[i].ts > b.t[at])
                counts[at++] += before;
            before += batch[i].cls->item == CTF_EVENT;
        }
    while (at < b.n)
        counts[at++] += before;
    if (ctf_merge_intact(merge, &e) == ERR_NOMEM)
        http_lack_memory(q->http);
    ctf_merge_free(merge);
}

static void count_events(const struct views *x, const struct tsp_query *q, const struct histogram *h,
    const struct unit *u, struct bounds b, uint64_t *counts)
{
    if (!u->states) {
        for (size_t i = 0; i < b.n; i++)
            counts[i] += at_most(u->times.v, u->times.n, b.t[i]);
        return;
    }
    int64_t *host = arena_new(q->http->arena, int64_t, b.n);
    uint64_t *one = arena_new(q->http->arena, uint64_t, b.n);
    bool exact = true;
    for (size_t i = 0; i < b.n; i++) {
        int64_t t = view_to_host(u->host, b.t[i]);
        host[i] = time_after(t); /* the store counts events before a time */
        if (i && host[i] < host[i - 1])
            host[i] = host[i - 1];
    }
    state_event_counts(u->states, host, b.n, one, &exact);
    if (!exact && one[b.n - 1] - one[0] < READ_AT_MOST && b.t[0] < b.t[b.n - 1]) {
        count_by_reading(q, &x->sources[u - h->units], b, counts);
        return;
    }
    for (size_t i = 0; i < b.n; i++)
        counts[i] += one[i];
}

static void count_losses(const struct unit *u, struct bounds b, uint64_t *counts)
{
    for (size_t i = 0; i < b.n; i++) {
        size_t n = at_most(u->loss_times.v, u->loss_times.n, b.t[i]);
        counts[i] += n ? u->loss_counts.v[n - 1] : 0;
    }
}

static void write_series(const struct view *self, struct views *x, const struct tsp_query *q, const struct histogram *h,
    size_t group, bool lost, struct bounds b, struct tsp_answer *answer)
{
    const struct unit *u = unit_of(h, group);
    uint64_t *counts = arena_new(q->http->arena, uint64_t, b.n);
    double *y = arena_new(q->http->arena, double, b.n);
    for (size_t i = 0; i < h->n; i++) {
        const struct unit *one = &h->units[i];
        if (u && one != u)
            continue;
        if (lost)
            count_losses(one, b, counts);
        else
            count_events(x, q, h, one, b, counts);
    }
    for (size_t i = 1; i < b.n; i++)
        y[i - 1] = (double)(counts[i] - counts[i - 1]);
    view_write_series(self, q, answer, entry_id(x, group, lost ? 2 : 1),
        arena_printf(q->http->arena, "%s/%s", name_of(x, q, u), lost ? "Lost" : "Total"), y);
}

static void xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct histogram *h = histogram_of(x);
    struct bounds b = bounds_of(q);
    for (size_t g = 0; g < groups(h) && !http_gone(q->http); g++)
        for (int lost = 0; lost < 2; lost++)
            if (tsp_wants(q, entry_id(x, g, lost ? 2 : 1)))
                write_series(self, x, q, h, g, lost, b, answer);
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
    .series = {.type = "bar", .y_label = "Events", .y_unit = ""},
    .xy = xy,
    .style = style,
    .close = close_histogram,
};
