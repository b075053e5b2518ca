/* In-and-out: a template for analyses of a user's own from expressions over events; a flame chart and a table of
 * what each found. */
#include "views/inout.h"
#include "views/state_rows.h"
#include "views/providers.h"
#include "views/stacks.h"

static struct inout_kept *kept_of(struct tsp_experiment *x)
{
    return tsp_cache(x, &tsp_provider_inout, inout_kept_new);
}

static void close_kept(struct tsp_experiment *x, void *kept)
{
    inout_kept_free(kept);
}

static bool has_data(struct tsp_experiment *x)
{
    return x->events > 0;
}

static const char *config_check(struct tsp_experiment *x, json_t *parameters, struct arena *a)
{
    struct event_pair_config c;
    const char *wrong = inout_config_parse(inout_table(kept_of(x)), parameters, a, &c);
    if (!wrong)
        event_pair_config_free(&c);
    return wrong;
}

static void derived_gone(struct tsp_experiment *x, json_t *parameters)
{
    inout_forget(kept_of(x), parameters);
}

/* ---- what the views share ---- */

int64_t inout_host_id(const struct tsp_experiment *x, size_t host)
{
    return x->last_thread + 1 + (int64_t)host;
}

int64_t inout_row_id(const struct tsp_experiment *x, size_t row)
{
    return x->last_thread + 1 + (int64_t)(x->n_hosts + row);
}

int64_t inout_name_id(const struct tsp_experiment *x, size_t name)
{
    return x->last_thread + 1 + (int64_t)(x->n_hosts + name);
}

struct tsp_result inout_answer_with(
    struct tsp_experiment *x, const struct tsp_query *q, struct json *j, inout_write *write)
{
    struct inout_kept *kept = kept_of(x);
    struct inout_answer a = inout_get(kept, q->configuration, q->http);
    if (a.pairs)
        write(x, q, a.pairs, j);
    inout_release(kept, &a);
    return (struct tsp_result){a.status, a.message};
}

/* ---- flame chart: tree ---- */

static void write_host(struct tsp_experiment *x, size_t host, struct json *j)
{
    const char *labels[2] = {x->hosts[host].index->name, ""};
    tsp_write_entry(j,
        &(struct tsp_entry){.id = inout_host_id(x, host),
            .parent = -1,
            .labels = labels,
            .n_labels = 2,
            .time_graph = true,
            .start = x->begin,
            .end = x->end,
            .host_id = x->hosts[host].id});
}

/* The lowest level stands for the group; those above lie below it in the tree. */
static void write_row(
    struct tsp_experiment *x, const struct tsp_query *q, const struct event_pairs *p, size_t row, struct json *j)
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
    tsp_write_entry(j,
        &(struct tsp_entry){.id = inout_row_id(x, row),
            .parent = r->level ? inout_row_id(x, row - r->level) : inout_host_id(x, r->host),
            .labels = labels,
            .n_labels = 2,
            .time_graph = true,
            .start = x->begin,
            .end = x->end,
            .has_data = true,
            .host_id = x->hosts[r->host].id});
}

static void write_tree(struct tsp_experiment *x, const struct tsp_query *q, const struct event_pairs *p, struct json *j)
{
    static const struct tsp_header headers[] = {
        {"Name", "Machine; below it what the classifier tells apart; below that what was open at once", "STRING"},
        {"Context", "What the context expressions captured", "STRING"}};
    tsp_begin_tree(j, headers, 2, -1);
    for (size_t i = 0; i < p->n_rows && !tsp_full(j) && !http_gone(q->http); i++) {
        if (!i || p->rows[i - 1].host != p->rows[i].host)
            write_host(x, p->rows[i].host, j);
        write_row(x, q, p, i, j);
    }
    tsp_end_tree(j);
}

static struct tsp_result tree(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    return inout_answer_with(x, q, j, write_tree);
}

/* ---- flame chart: states ---- */

struct rows_writer {
    struct tsp_experiment *x;
    const struct tsp_query *q;
    const struct event_pairs *pairs;
    const struct event_pair_row *row;
    struct json *j;
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
    struct tsp_shown shown;
    shown.n = 0;
    tsp_add_property(&shown, "label", label);
    tsp_add_property(&shown, "host", w->x->hosts[w->row->host].index->name);
    tsp_add_property(&shown, "classifier", w->row->classifier);
    tsp_add_property(&shown, "context", w->row->context);
    tsp_add_number(&shown, "level", w->row->level + 1);
    tsp_add_number(&shown, "start", v->begin);
    tsp_add_number(&shown, "duration", event_pair_duration(v));
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
    tsp_write_state(w->j, &s);
    return true;
}

static struct tsp_spans spans_of(struct rows_writer *w, size_t row)
{
    w->row = &w->pairs->rows[row];
    return (struct tsp_spans){w, w->row->n, bounds, write_pair};
}

/* Number of the row with that entry id; SIZE_MAX: none. */
static size_t row_of(const struct tsp_experiment *x, const struct event_pairs *p, int64_t entry)
{
    int64_t first = inout_row_id(x, 0);
    return entry >= first && (uint64_t)(entry - first) < p->n_rows ? (size_t)(entry - first) : SIZE_MAX;
}

static void write_states(
    struct tsp_experiment *x, const struct tsp_query *q, const struct event_pairs *p, struct json *j)
{
    struct rows_writer w = {x, q, p, NULL, j};
    size_t n = q->has_items ? q->n_items : p->n_rows;
    tsp_begin_rows(j);
    for (size_t i = 0; i < n && !tsp_full(j) && !http_gone(q->http); i++) {
        size_t row = q->has_items ? row_of(x, p, q->items[i]) : i;
        if (row == SIZE_MAX)
            continue;
        struct tsp_spans spans = spans_of(&w, row);
        tsp_write_spans(&spans, x, q, inout_row_id(x, row), j);
    }
    tsp_end_rows(j);
}

static struct tsp_result states(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    return inout_answer_with(x, q, j, write_states);
}

/* ---- flame chart: tooltip and styles ---- */

static void write_tooltip(
    struct tsp_experiment *x, const struct tsp_query *q, const struct event_pairs *p, struct json *j)
{
    int64_t entry, t;
    size_t row = tsp_tooltip_target(q, &entry, &t) ? row_of(x, p, entry) : SIZE_MAX;
    struct rows_writer w = {.x = x, .q = q, .pairs = p};
    json_begin_object(j);
    if (row != SIZE_MAX) {
        struct tsp_spans spans = spans_of(&w, row);
        size_t at = tsp_find_span(&spans, t);
        const struct event_pair *v = at != SIZE_MAX ? pair_of(&w, at) : NULL;
        if (v && t < v->end) {
            json_kv_string(j, "Name", p->names[v->name].label);
            json_kv_string(j, "Host", x->hosts[w.row->host].index->name);
            if (*w.row->classifier)
                json_kv_string(j, "Classifier", w.row->classifier);
            if (*w.row->context)
                json_kv_string(j, "Context", w.row->context);
            if ((size_t)(v - p->v) >= p->closed)
                json_kv_string(j, "Out", "not seen");
            tsp_write_span(j, v->begin, v->end);
            tsp_write_clock_error(j, &x->hosts[w.row->host], t);
        }
    }
    json_end_object(j);
}

static struct tsp_result tooltip(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    return inout_answer_with(x, q, j, write_tooltip);
}

static struct tsp_result style(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    tsp_begin_styles(j);
    stacks_write_styles(j);
    tsp_end_styles(j);
    return (struct tsp_result){TSP_COMPLETED, NULL};
}

/* ---- table ---- */

enum { START, END, DURATION, NAME, HOST, CLASSIFIER, CONTEXT };
static const struct tsp_column columns[] = {{START, "Start Time", "Time of the event that opened", "TIMESTAMP"},
    {END, "End Time", "Time of the event that closed", "TIMESTAMP"}, {DURATION, "Duration", "ns", "DURATION"},
    {NAME, "Name", "The specifier's label", "STRING"}, {HOST, "Host", "Machine", "STRING"},
    {CLASSIFIER, "Classifier", "What the classifier tells apart", "STRING"},
    {CONTEXT, "Context", "What the context expressions captured", "STRING"}};
enum { COLUMNS = sizeof columns / sizeof *columns };

struct lines {
    const struct tsp_experiment *x;
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

static struct tsp_result table_columns(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    return tsp_table_columns(columns, COLUMNS, j);
}

static void write_lines(
    struct tsp_experiment *x, const struct tsp_query *q, const struct event_pairs *p, struct json *j)
{
    struct lines l = {x, p};
    struct tsp_table t = {
        .columns = columns, .n_columns = COLUMNS, .rows = p->closed, .arg = &l, .cell = cell, .time = time_of};
    tsp_table_lines(&t, q, j);
}

static struct tsp_result table_lines(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    static const struct event_pairs nothing;
    size_t before = j->out->n;
    struct tsp_result r = inout_answer_with(x, q, j, write_lines);
    if (r.status == TSP_RUNNING && j->out->n == before)
        write_lines(x, q, &nothing, j); /* a table has lines, if only none yet */
    return r;
}

/* ---- the outputs ---- */

const struct tsp_provider tsp_inout_chart = {
    .id = "org.eclipse.tracecompass.analysis.profiling.core.flamechart",
    .name = "Flame Chart",
    .description = "What was open, over time",
    .type = "TIME_GRAPH",
    .tree = tree,
    .states = states,
    .arrows = tsp_no_arrows,
    .tooltip = tooltip,
    .style = style,
};
const struct tsp_provider tsp_inout_table = {
    .id = "org.eclipse.tracecompass.analysis.timing.core.segmentstore.SegmentStoreTableDataProvider",
    .name = "Latency Table",
    .description = "Every pair in order of its begin",
    .type = "TABLE",
    .columns = table_columns,
    .lines = table_lines,
};
static const struct tsp_provider *const views[] = {
    &tsp_inout_chart, &tsp_inout_table, &tsp_inout_scatter, &tsp_inout_statistics, &tsp_inout_density, NULL};

const struct tsp_provider tsp_provider_inout = {
    .id = "org.eclipse.tracecompass.incubator.inandout.core.analysis.inAndOutdataProviderFactory",
    .name = "In-and-out Analysis",
    .description = "Time between events that open and events that close: configure it with expressions",
    .type = "NONE",
    .has_data = has_data,
    .config_type = INOUT_TYPE,
    .config_name = "In And Out Analysis",
    .config_schema = inout_schema,
    .config_check = config_check,
    .derived_prefix = "org.eclipse.tracecompass.incubator.inandout.analysis",
    .derived_views = views,
    .derived_gone = derived_gone,
    .close = close_kept,
};
