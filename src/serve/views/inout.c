/* SPDX-License-Identifier: MIT */
/* Template "in-and-out" for user-defined analyses with expressions over events; flame chart and table of the pairs. */
#include "views/inout.h"
#include "views/sampling.h"
#include "views/spans.h"
#include "views/tips.h"
#include "views/list.h"
#include "views/stacks.h"

static struct inout_cache *cache_of(struct views *x)
{
    return view_cache(x, &view_inout, inout_cache_new);
}

static void give_memory(struct views *x, void *cache)
{
    inout_forget_all(cache);
}

static void close_cache(struct views *x, void *cache)
{
    inout_cache_free(cache);
}

static bool has_data(const struct view *self, struct views *x)
{
    return x->n_sources && x->data.events > 0;
}

static const char *config_check(struct views *x, json_t *parameters, struct arena *a, enum tsp_code *code)
{
    struct event_pair_config c;
    const char *wrong = inout_config_parse(inout_table(cache_of(x)), parameters, a, &c);
    if (!wrong)
        events_pair_config_free(&c);
    return wrong;
}

static void derived_gone(struct views *x, json_t *parameters)
{
    inout_forget(cache_of(x), parameters);
}

/* ---- shared by the views ---- */

int64_t inout_row_id(const struct views *x, size_t row)
{
    return view_id(x, x->n_hosts + row);
}

static inout_write *writer_of(const struct inout_view *v, enum tsp_operation operation)
{
    switch (operation) {
    case TSP_TREE: return v->tree;
    case TSP_STATES: return v->states;
    case TSP_TOOLTIP: return v->tooltip;
    case TSP_LINES: return v->lines;
    default: return v->xy;
    }
}

void inout_ask(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    static const struct event_pairs nothing;
    struct inout_cache *cache = cache_of(x);
    struct inout_answer a = inout_get(cache, q->configuration, q->http);
    if (!a.pairs && a.status == TSP_RUNNING && q->operation == TSP_LINES)
        a.pairs = &nothing; /* tables must have lines, even if none are known yet */
    if (a.pairs)
        writer_of((const struct inout_view *)self, q->operation)(x, q, a.pairs, answer);
    inout_release(cache, &a);
    answer->status = a.status;
    answer->message = a.message;
    answer->progress.done = a.read;
    answer->progress.of = a.of;
}

/* ---- flame chart: tree ---- */

static void write_host(struct views *x, size_t host, struct tsp_answer *answer)
{
    const char *labels[2] = {x->hosts[host].index->name, ""};
    tsp_write_entry(answer,
        &(struct tsp_entry){.id = view_id(x, host),
            .parent = -1,
            .key = x->hosts[host].index->key,
            .labels = labels,
            .n_labels = 2,
            .time_graph = true,
            .start = x->data.begin,
            .end = x->data.end,
            .host_id = x->hosts[host].id});
}

/* Writes a row of the tree. The lowest level represents the group; higher levels lie below it in the tree. */
static void write_row(
    struct views *x, const struct tsp_query *q, const struct event_pairs *p, size_t row, struct tsp_answer *answer)
{
    const struct event_pair_row *r = &p->rows[row];
    const char *labels[2] = {r->classifier, r->context};
    if (!*r->classifier) {
        labels[0] = *r->context ? r->context : "All";
        labels[1] = "";
    }
    if (r->level) {
        labels[0] = arena_printf(q->http->arena, "%u", r->level + 1);
        labels[1] = "";
    }
    tsp_write_entry(answer,
        &(struct tsp_entry){.id = inout_row_id(x, row),
            .parent = r->level ? inout_row_id(x, row - r->level) : view_id(x, r->host),
            .key = r->level ? 0 : view_key(r->context, (int64_t)view_key(r->classifier, 0)),
            .labels = labels,
            .n_labels = 2,
            .time_graph = true,
            .start = x->data.begin,
            .end = x->data.end,
            .has_data = true,
            .host_id = x->hosts[r->host].id});
}

static void write_tree(
    struct views *x, const struct tsp_query *q, const struct event_pairs *p, struct tsp_answer *answer)
{
    static const struct tsp_header headers[] = {
        {"Name", "Machine; below it what the classifier tells apart; below that what was open at once", "STRING"},
        {"Context", "What the context expressions captured", "STRING", "context", TSP_FIRST}};
    tsp_begin_tree(answer, headers, 2, -1);
    for (size_t i = 0; i < p->n_rows && !tsp_full(answer) && !http_gone(q->http); i++) {
        if (!i || p->rows[i - 1].host != p->rows[i].host)
            write_host(x, p->rows[i].host, answer);
        write_row(x, q, p, i, answer);
    }
    tsp_end_tree(answer);
}

/* ---- flame chart: states ---- */

struct rows_writer {
    struct views *x;
    const struct tsp_query *q;
    const struct event_pairs *pairs;
    const struct event_pair_row *row;
    struct tsp_answer *answer;
};

static const struct event_pair *pair_of(const struct rows_writer *w, size_t i)
{
    return &w->pairs->v[w->pairs->by_row[w->row->first + i]];
}

static void bounds(void *writer, size_t i, int64_t *begin, int64_t *end)
{
    const struct event_pair *v = pair_of(writer, i);
    *begin = v->begin;
    *end = v->end;
}

static int tags_of(const struct rows_writer *w, const struct event_pair *v, const char *label)
{
    struct view_shown shown;
    shown.n = 0;
    view_add_property(&shown, "label", label);
    view_add_property(&shown, "host", w->x->hosts[w->row->host].index->name);
    view_add_property(&shown, "classifier", w->row->classifier);
    view_add_property(&shown, "context", w->row->context);
    view_add_number(&shown, "level", w->row->level + 1);
    view_add_number(&shown, "start", v->begin);
    view_add_number(&shown, "duration", event_pair_duration(v));
    return tsp_filter_tags(w->q, shown.properties, shown.n);
}

static bool write_pair(void *writer, size_t i, bool only_matches)
{
    const struct rows_writer *w = writer;
    const struct event_pair *v = pair_of(w, i);
    struct tsp_state s = {.start = v->begin, .end = v->end, .label = w->pairs->names[v->name].label};
    s.style_key = stacks_style(s.label);
    s.tags = w->q->filter ? tags_of(w, v, s.label) : 0;
    if (v->begin == v->end || (only_matches && s.tags & (1 | 4)))
        return false;
    if (s.tags & 4)
        s.label = s.style_key = NULL;
    tsp_write_state(w->answer, &s);
    return true;
}

static struct view_spans spans_of(struct rows_writer *w, size_t row)
{
    w->row = &w->pairs->rows[row];
    return (struct view_spans){w, w->row->n, bounds, write_pair};
}

/* Number of the row with that entry id; SIZE_MAX: none. */
static size_t row_of(const struct views *x, const struct event_pairs *p, int64_t entry)
{
    int64_t first = inout_row_id(x, 0);
    return entry >= first && (uint64_t)(entry - first) < p->n_rows ? (size_t)(entry - first) : SIZE_MAX;
}

static void write_states(
    struct views *x, const struct tsp_query *q, const struct event_pairs *p, struct tsp_answer *answer)
{
    struct rows_writer w = {x, q, p, NULL, answer};
    size_t n = q->has_items ? q->n_items : p->n_rows;
    tsp_begin_rows(answer);
    for (size_t i = 0; i < n && !tsp_full(answer) && !http_gone(q->http); i++) {
        size_t row = q->has_items ? row_of(x, p, q->items[i]) : i;
        if (row == SIZE_MAX)
            continue;
        struct view_spans spans = spans_of(&w, row);
        view_write_spans(&spans, x, q, inout_row_id(x, row), answer);
    }
    tsp_end_rows(answer);
}

/* ---- flame chart: tooltip and styles ---- */

static void write_tooltip(
    struct views *x, const struct tsp_query *q, const struct event_pairs *p, struct tsp_answer *answer)
{
    int64_t entry, t;
    size_t row = view_tooltip_target(q, &entry, &t) ? row_of(x, p, entry) : SIZE_MAX;
    struct rows_writer w = {.x = x, .q = q, .pairs = p};
    json_begin_object(&answer->json);
    if (row != SIZE_MAX) {
        struct view_spans spans = spans_of(&w, row);
        size_t at = view_find_span(&spans, t);
        const struct event_pair *v = at != SIZE_MAX ? pair_of(&w, at) : NULL;
        if (v && t < v->end) {
            tsp_write_tip(answer, "Name", p->names[v->name].label);
            tsp_write_tip(answer, "Host", x->hosts[w.row->host].index->name);
            if (*w.row->classifier)
                tsp_write_tip(answer, "Classifier", w.row->classifier);
            if (*w.row->context)
                tsp_write_tip(answer, "Context", w.row->context);
            if ((size_t)(v - p->v) >= p->closed)
                tsp_write_tip(answer, "Out", "not seen");
            view_write_span(answer, v->begin, v->end);
            view_write_clock_error(answer, &x->hosts[w.row->host], t);
        }
    }
    json_end_object(&answer->json);
}

static void style(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_styles(answer);
    stacks_write_styles(answer);
    tsp_end_styles(answer);
}

/* ---- table ---- */

enum { START, END, DURATION, NAME, HOST, CLASSIFIER, CONTEXT };
static const struct tsp_column columns[] = {{START, "Start Time", "Time of the event that opened", "TIMESTAMP"},
    {END, "End Time", "Time of the event that closed", "TIMESTAMP"}, {DURATION, "Duration", "ns", "DURATION"},
    {NAME, "Name", "The specifier's label", "STRING"}, {HOST, "Host", "Machine", "STRING"},
    {CLASSIFIER, "Classifier", "What the classifier tells apart", "STRING"},
    {CONTEXT, "Context", "What the context expressions captured", "STRING"}};

struct lines {
    const struct views *x;
    const struct event_pairs *pairs;
};

static void cell(void *arg, size_t line, size_t column, struct text *out)
{
    const struct lines *l = arg;
    const struct event_pair *v = &l->pairs->v[line];
    const struct event_pair_row *r = &l->pairs->rows[v->row];
    switch (columns[column].id) {
    case START: text_i64(out, v->begin); break;
    case END: text_i64(out, v->end); break;
    case DURATION: text_i64(out, event_pair_duration(v)); break;
    case NAME: text_puts(out, l->pairs->names[v->name].label); break;
    case HOST: text_puts(out, l->x->hosts[r->host].index->name); break;
    case CLASSIFIER: text_puts(out, r->classifier); break;
    default: text_puts(out, r->context);
    }
}

static int64_t time_of(void *arg, size_t line)
{
    const struct lines *l = arg;
    return l->pairs->v[line].begin;
}

static void write_lines(
    struct views *x, const struct tsp_query *q, const struct event_pairs *p, struct tsp_answer *answer)
{
    struct lines l = {x, p};
    struct tsp_table t = {.columns = columns,
        .n_columns = sizeof columns / sizeof *columns,
        .rows = p->closed,
        .arg = &l,
        .cell = cell,
        .time = time_of};
    tsp_table_lines(answer, &t, q);
}

/* ---- outputs ---- */

const struct inout_view view_inout_chart = {
    .view = {.provider = {.id = "org.eclipse.tracecompass.analysis.profiling.core.flamechart",
                 .name = "Flame Chart",
                 .description = "What was open, over time",
                 .type = "TIME_GRAPH"},
        .tree = inout_ask,
        .states = inout_ask,
        .tooltip = inout_ask,
        .style = style},
    .tree = write_tree,
    .states = write_states,
    .tooltip = write_tooltip,
};
const struct inout_view view_inout_table = {
    .view =
        {.provider = {.id = "org.eclipse.tracecompass.analysis.timing.core.segmentstore.SegmentStoreTableDataProvider",
             .name = "Latency Table",
             .description = "Every pair in order of its begin",
             .type = "TABLE"},
            VIEW_COLUMNS(columns),
            .lines = inout_ask},
    .lines = write_lines,
};
static const struct tsp_provider *const views[] = {&view_inout_chart.view.provider, &view_inout_table.view.provider,
    &view_inout_scatter.view.provider, &view_inout_statistics.view.provider, &view_inout_density.view.provider, NULL};

static const struct tsp_derivation derivation = {
    .type = INOUT_TYPE,
    .name = "In And Out Analysis",
    .schema = inout_schema,
    .prefix = "org.eclipse.tracecompass.incubator.inandout.analysis",
    .shown_by = views,
};
const struct view view_inout = {
    .provider = {.id = "org.eclipse.tracecompass.incubator.inandout.core.analysis.inAndOutdataProviderFactory",
        .name = "In-and-out Analysis",
        .description = "Time between events that open and events that close: configure it with expressions",
        .type = "NONE",
        .derivation = &derivation},
    .has_data = has_data,
    .check = config_check,
    .forget = derived_gone,
    .give_memory = give_memory,
    .close = close_cache,
};
