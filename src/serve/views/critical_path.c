/* SPDX-License-Identifier: MIT */
/* Critical Path of a chosen thread and interval, as a derived output per thread. Its segments are exactly those of
 * `weft critpath`. Without a configuration the model is null, as clients of Trace Compass expect. A request may also
 * pass thread, host, begin and end in its own parameters. Style keys are those of Trace Compass; colours are the
 * project's, the same for a state in all views. */
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "views/critical_paths.h"
#include "views/critical_tips.h"
#include "views/list.h"
#include "views/looks.h"
#include "views/sampling.h"
#include "views/spans.h"

static const struct view_look looks[GRAPH_STATE_COUNT] = {
    [GRAPH_UNKNOWN] = {"UNKNOWN", LOOK_UNKNOWN, 0.5},
    [GRAPH_RUNNING] = {"RUNNING", LOOK_RUNNING, 1},
    [GRAPH_PREEMPTED] = {"PREEMPTED", LOOK_PREEMPTED, 1},
    [GRAPH_INTERRUPTED] = {"INTERRUPTED", LOOK_INTERRUPTED, 1},
    [GRAPH_BLOCKED] = {"BLOCKED", LOOK_BLOCKED, 1},
    [GRAPH_TIMER] = {"TIMER", LOOK_TIMER, 1},
    [GRAPH_NETWORK] = {"NETWORK", LOOK_NETWORK, 1},
    [GRAPH_BLOCK_DEVICE] = {"BLOCK_DEVICE", LOOK_BLOCK_DEVICE, 1},
    [GRAPH_USER_INPUT] = {"USER_INPUT", LOOK_SYSCALL, 1},
    [GRAPH_IPI] = {"IPI", "#b79a1f", 1},
    [GRAPH_HYPERVISOR] = {"HYPERVISOR", LOOK_HYPERVISOR, 1},
    [GRAPH_STOLEN] = {"STOLEN", LOOK_STOLEN, 1},
};
static const struct {
    const char *key, *color, *name;
} arrow_looks[] = {[PATH_LINK_WAKEUP] = {"WAKEUParrow", LOOK_ARROW, "Wakeup"},
    [PATH_LINK_FORK] = {"FORKarrow", LOOK_RUNNING, "Fork"},
    [PATH_LINK_NETWORK] = {"NETWORKarrow", LOOK_NETWORK, "Network"},
    [PATH_LINK_DISK] = {"DISKarrow", LOOK_BLOCK_DEVICE, "Disk"},
    [PATH_LINK_VM] = {"VMarrow", LOOK_HYPERVISOR, "Virtual machine"},
    [PATH_LINK_SPAN] = {"SPANarrow", LOOK_SYSCALL, "Span"}};

static bool has_data(const struct view *self, struct views *x)
{
    return x->paths != NULL;
}

static const char *config_check(struct views *x, json_t *parameters, struct arena *a, enum tsp_code *code)
{
    struct critical_question q;
    const char *wrong = critical_question_parse(x, parameters, a, &q);
    *code = q.wrong;
    return wrong;
}

/* ---- request ---- */

struct asked {
    struct critical_paths *paths;
    struct critical_answer answer;
};

static json_t *parameters_of(const struct tsp_query *q)
{
    return q->configuration ? q->configuration : json_object_get(q->parameters, "thread") ? q->parameters : NULL;
}

/* Requests the path; false: the query names no thread. */
static bool ask(struct views *x, const struct tsp_query *q, struct asked *out)
{
    json_t *parameters = parameters_of(q);
    if (!parameters || !x->paths)
        return false;
    out->paths = view_cache(x, &view_critical_path, critical_paths_new);
    out->answer = critical_paths_get(out->paths, parameters, q->http);
    return true;
}

typedef void write_model(struct views *, const struct tsp_query *, const struct critical_view *, struct tsp_answer *);

/* Writes the model with the known part of the path; null if there is none. */
static void with_path(struct views *x, const struct tsp_query *q, struct tsp_answer *answer, write_model *write)
{
    struct asked a;
    if (!parameters_of(q))
        answer->message = "Choose a thread: this view shows the path of one. In weft's page pick a thread, then Views, "
                          "Critical path; other clients configure this output with a thread.";
    if (!ask(x, q, &a))
        return;
    if (a.answer.view)
        write(x, q, a.answer.view, answer);
    answer->status = a.answer.status;
    answer->code = a.answer.code;
    answer->message = a.answer.message ? arena_strdup(q->http->arena, a.answer.message) : NULL;
    critical_paths_release(a.paths, &a.answer);
}

/* ---- tree ---- */

/* Entries have exact sums in ns as metadata: "sum", and one by state. The first entry also has the answer in words,
 * "sentence", and the number of "segments". */
static void write_entry(struct tsp_answer *answer, const struct views *x, const struct tsp_query *q,
    const struct critical_view *v, struct tsp_entry e, const struct critical_host *host, const char *name, int64_t sum,
    const int64_t totals[GRAPH_STATE_COUNT])
{
    struct arena *a = q->http->arena;
    struct tsp_meta meta[GRAPH_STATE_COUNT + 3] = {{.key = "sum", .number = sum}};
    const char *labels[4] = {name, host->name, arena_duration(a, sum), critical_share(a, v->path, sum)};
    e.n_meta = 1;
    for (int s = 0; s < GRAPH_STATE_COUNT; s++)
        if (totals[s])
            meta[e.n_meta++] = (struct tsp_meta){.key = graph_state_name(s), .number = totals[s]};
    if (e.parent < 0 && host == v->rows[0].host) {
        meta[e.n_meta++] = (struct tsp_meta){.key = "sentence", .text = v->sentence};
        meta[e.n_meta++] = (struct tsp_meta){.key = "segments", .number = (int64_t)v->path->n_segments};
    }
    e.meta = meta;
    e.labels = labels;
    e.n_labels = 4;
    e.time_graph = true;
    e.start = x->data.begin;
    e.end = x->data.end;
    e.host_id = host->id;
    tsp_write_entry(answer, &e);
}

struct critical_sums {
    int64_t sum, totals[GRAPH_STATE_COUNT];
};

static void add_row(struct critical_sums *to, const struct critical_row *r)
{
    to->sum += r->total;
    for (int s = 0; s < GRAPH_STATE_COUNT; s++)
        to->totals[s] += r->totals[s];
}

/* Writes the machine whose rows begin at `first`; *end: number of the row after its last. */
static void write_host(struct tsp_answer *answer, const struct views *x, const struct tsp_query *q,
    const struct critical_view *v, size_t first, size_t *end)
{
    struct critical_sums all = {0};
    const struct critical_host *host = v->rows[first].host;
    for (*end = first; *end < v->n_rows && v->rows[*end].host == host; ++*end)
        add_row(&all, &v->rows[*end]);
    struct tsp_entry e = {.id = host->entry, .parent = -1, .key = host->key};
    write_entry(answer, x, q, v, e, host, host->name, all.sum, all.totals);
}

static int64_t container_entry(struct views *x, const struct critical_host *host, int32_t container)
{
    return critical_keyed_entry(view_cache(x, &view_critical_path, critical_paths_new),
        map_mix(host->key) ^ view_key_container(host->here, container));
}

/* Writes the containers of the machine's rows [first, end), in order of appearance. */
static void write_containers(struct tsp_answer *answer, struct views *x, const struct tsp_query *q,
    const struct critical_view *v, size_t first, size_t end)
{
    const struct critical_host *host = v->rows[first].host;
    const struct graph_container *of;
    size_t n = host->here ? graph_containers(host->here->index->graph, &of) : 0;
    struct critical_sums *sums = arena_new(q->http->arena, struct critical_sums, n + 1);
    for (size_t i = first; i < end; i++)
        if (v->rows[i].container >= 0)
            add_row(&sums[v->rows[i].container], &v->rows[i]);
    bool *is_written = arena_new(q->http->arena, bool, n + 1);
    for (size_t i = first; i < end; i++) {
        int32_t c = v->rows[i].container;
        if (c < 0 || is_written[c])
            continue;
        is_written[c] = true;
        struct tsp_entry e = {.id = container_entry(x, host, c),
            .parent = host->entry,
            .key = view_key_container(host->here, c),
            .container = of[c].name};
        write_entry(answer, x, q, v, e, host, of[c].name, sums[c].sum, sums[c].totals);
    }
}

static void write_row(struct tsp_answer *answer, const struct views *x, const struct tsp_query *q,
    const struct critical_view *v, const struct critical_row *r, int64_t parent)
{
    const char *name = r->tid >= 0 ? arena_printf(q->http->arena, "[%s,%d]", r->name, r->tid) : "[interrupt context]";
    struct tsp_entry e = {.id = r->entry,
        .parent = parent,
        .key = r->key,
        .has_data = true,
        .has_tid = r->tid >= 0,
        .tid = r->tid,
        .container = r->container >= 0 ? view_container(r->host->here, r->container) : NULL};
    write_entry(answer, x, q, v, e, r->host, name, r->total, r->totals);
}

static void write_tree(
    struct views *x, const struct tsp_query *q, const struct critical_view *v, struct tsp_answer *answer)
{
    static const struct tsp_header headers[] = {{"Process", "Machine, below it its threads on the path", "STRING"},
        {"Host", "Machine", "STRING"}, {"Sum", "Time of the path spent here", "STRING"},
        {"Percentage", "Share of the whole path", "STRING"}};
    const bool grouped = view_by_container(q);
    tsp_begin_tree(answer, headers, 4, -1);
    for (size_t i = 0, end; i < v->n_rows && view_goes_on(q, answer); i = end) {
        write_host(answer, x, q, v, i, &end);
        if (grouped)
            write_containers(answer, x, q, v, i, end);
        for (size_t k = i; k < end && !tsp_full(answer); k++) {
            const struct critical_row *r = &v->rows[k];
            write_row(answer, x, q, v, r,
                grouped && r->container >= 0 ? container_entry(x, r->host, r->container) : r->host->entry);
        }
    }
    tsp_end_tree(answer);
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    with_path(x, q, answer, write_tree);
}

/* ---- states ---- */

struct rows_writer {
    struct views *x;
    const struct tsp_query *q;
    const struct critical_view *view;
    struct tsp_answer *answer;
    const struct critical_row *row;
};

static bool write_segment(void *writer, size_t number, bool only_matches)
{
    const struct rows_writer *w = writer;
    const struct path_segment *s = critical_segment(w->view, w->row, number);
    const struct path_gap *gap = critical_gap(w->view, s->begin, s->end);
    struct view_shown shown;
    char words[256];
    shown.n = 0;
    shown.label = s->detail;
    shown.style_key = looks[s->state].key;
    shown.filtered_label = NULL;
    if (gap && gap->reason == PATH_PENDING) {
        snprintf(words, sizeof words, "asking %.100s…", gap->peer ? gap->peer : "another machine");
        shown.label = words;
        shown.style_key = "PENDING";
    } else if (s->assumed) {
        snprintf(words, sizeof words, "assumed%s%.200s", s->detail ? ": " : "", s->detail ? s->detail : "");
        shown.label = words;
        shown.style_key = "ASSUMED";
    }
    if (w->q->filter) {
        view_add_property(&shown, "state", graph_state_name(s->state));
        view_add_property(&shown, "assumed", s->assumed ? "true" : "false");
        view_add_property(&shown, "host", w->row->host->name);
        if (w->row->container >= 0)
            view_add_property(&shown, "container", view_container(w->row->host->here, w->row->container));
        const struct path_source *source = w->view->source;
        int32_t tid;
        const char *name;
        source->row_name(source->arg, s->row, s->begin, s->end, &tid, &name);
        view_add_property(&shown, "process", name);
        view_add_number(&shown, "thread", tid);
        view_add_number(&shown, "tid", tid);
    }
    return view_write_shown(w->q, w->answer, s->begin, s->end, &shown, only_matches);
}

static void segment_bounds(void *writer, size_t number, int64_t *begin, int64_t *end)
{
    const struct rows_writer *w = writer;
    const struct path_segment *s = critical_segment(w->view, w->row, number);
    *begin = s->begin;
    *end = s->end;
}

/* Segments of a row as spans. The path is on one row at a time; all others are blank then. */
static struct view_spans spans_of(struct rows_writer *w, const struct critical_row *r)
{
    w->row = r;
    return (struct view_spans){w, r->n, segment_bounds, write_segment};
}

static void write_states(
    struct views *x, const struct tsp_query *q, const struct critical_view *v, struct tsp_answer *answer)
{
    struct rows_writer w = {x, q, v, answer, NULL};
    size_t n = q->has_items ? q->n_items : v->n_rows;
    tsp_begin_rows(answer);
    for (size_t i = 0; i < n && view_goes_on(q, answer); i++) {
        const struct critical_row *r = q->has_items ? critical_row_of(v, q->items[i]) : &v->rows[i];
        if (r) {
            struct view_spans spans = spans_of(&w, r);
            view_write_spans(&spans, x, q, r->entry, answer);
        }
    }
    tsp_end_rows(answer);
}

static void states(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    with_path(x, q, answer, write_states);
}

/* ---- arrows ---- */

enum { MAX_ARROWS = 10000, CELLS = 4096, LINK_KINDS = sizeof arrow_looks / sizeof *arrow_looks };

static bool intersects(const struct tsp_query *q, const struct path_link *l)
{
    return l->from.host >= 0 && l->from_ts <= q->end && l->to_ts >= q->begin;
}

static void write_arrows(
    struct views *x, const struct tsp_query *q, const struct critical_view *v, struct tsp_answer *answer)
{
    const struct path *p = v->path;
    size_t n = 0;
    uint64_t cell_ns = ((uint64_t)q->end - (uint64_t)q->begin) / CELLS + 1, last[LINK_KINDS] = {0};
    for (size_t i = 0; i < p->n_links; i++)
        n += intersects(q, &p->links[i]);
    tsp_begin_arrows(answer);
    for (size_t i = 0; i < p->n_links && view_goes_on(q, answer); i++) {
        const struct path_link *l = &p->links[i];
        if (!intersects(q, l) || l->kind >= LINK_KINDS)
            continue;
        /* limit for pictures with too many arrows: keeps one of each kind per pixel */
        uint64_t cell = l->to_ts > q->begin ? ((uint64_t)l->to_ts - (uint64_t)q->begin) / cell_ns + 1 : 1;
        if (n > MAX_ARROWS && cell == last[l->kind])
            continue;
        last[l->kind] = cell;
        tsp_write_arrow(answer, l->from_ts, l->to_ts, critical_entry(v, l->from), critical_entry(v, l->to),
            arrow_looks[l->kind].key);
    }
    tsp_end_arrows(answer);
}

static void arrows(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    with_path(x, q, answer, write_arrows);
}

/* ---- tooltips, styles, annotations ---- */

static void tooltip(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    with_path(x, q, answer, critical_write_tooltip);
}

static void style(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_styles(answer);
    view_write_looks(answer, looks, GRAPH_STATE_COUNT);
    tsp_write_style(answer, "ASSUMED", "NETWORK", LOOK_NETWORK, 1, 0.5, "NETWORK, assumed");
    tsp_write_style(answer, "PENDING", NULL, LOOK_IDLE, 1, 0.6, "PENDING");
    tsp_write_style(answer, "DEFAULTarrow", NULL, LOOK_ARROW, -1, -1, "Arrow");
    for (int k = 0; k < LINK_KINDS; k++)
        tsp_write_style(answer, arrow_looks[k].key, "DEFAULTarrow", arrow_looks[k].color, -1, -1, arrow_looks[k].name);
    tsp_end_styles(answer);
}

static void annotation_categories(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    if (parameters_of(q))
        json_write_string(&answer->json, CRITICAL_UNEXPLAINED);
}

/* Entry of the row that the path was on at t. */
static int64_t entry_at(const struct critical_view *v, int64_t t)
{
    const struct path *p = v->path;
    size_t at = search_first(i, 0, p->n_segments, p->segments[i].end > t);
    struct path_row row = at < p->n_segments ? p->segments[at].row : (struct path_row){.host = -1};
    return critical_entry(v, row);
}

static void write_gaps(
    struct views *x, const struct tsp_query *q, const struct critical_view *v, struct tsp_answer *answer)
{
    const struct path *p = v->path;
    json_key(&answer->json, CRITICAL_UNEXPLAINED);
    json_begin_array(&answer->json);
    for (size_t i = 0; i < p->n_gaps && view_goes_on(q, answer); i++) {
        const struct path_gap *g = &p->gaps[i];
        int64_t entry = entry_at(v, g->begin);
        if (g->begin > q->end || g->end < q->begin || !tsp_wants(q, entry))
            continue;
        const char *words = g->peer ? arena_printf(q->http->arena, "%s: %s", path_reason_name(g->reason), g->peer)
                                    : path_reason_name(g->reason);
        tsp_write_annotation(answer, g->begin, g->end - g->begin, entry, words, LOOK_UNKNOWN, 0.5);
    }
    json_end_array(&answer->json);
}

static void annotations(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    if (tsp_wants_category(q, CRITICAL_UNEXPLAINED))
        with_path(x, q, answer, write_gaps);
}

static void close_paths(struct views *x, void *cache)
{
    critical_paths_free(cache);
}

static void give_memory(struct views *x, void *cache)
{
    critical_paths_forget(cache);
}

static const struct tsp_derivation derivation = {
    .type = "weft.critical-path",
    .name = "Critical path of a thread",
    .schema = critical_question_schema,
    .times = (const char *const[]){"begin", "end", NULL},
};
const struct view view_critical_path = {
    .provider = {.id = "org.eclipse.tracecompass.analysis.graph.core.dataprovider.CriticalPathDataProvider",
        .family = "critical paths",
        .name = "Critical Path",
        .description = "Where the time of a thread went, across all machines: configure it with a thread",
        .type = "TIME_GRAPH",
        .derivation = &derivation},
    .has_data = has_data,
    .tree = tree,
    .states = states,
    .arrows = arrows,
    .tooltip = tooltip,
    .style = style,
    .annotation_categories = annotation_categories,
    .annotations = annotations,
    .check = config_check,
    .give_memory = give_memory,
    .close = close_paths,
};
