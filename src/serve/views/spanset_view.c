/* SPDX-License-Identifier: MIT */
/* Spans: spans of services and jobs, trace by trace, with the critical path of each. */
#include <stdio.h>

#include "base/search.h"
#include "base/time.h"
#include "views/looks.h"
#include "views/sampling.h"
#include "views/spans.h"
#include "views/spanset.h"
#include "views/tips.h"

/* Limits of an answer; trees keep the newest traces. */
enum { MOST_TRACES = 500, MOST_ENTRIES = 20000, MOST_ARROWS = 5000, MOST_MARKS = 20000, LABEL_NAMES = 3, SECONDS = 19 };
static const char category[] = "Span events";

static const char *const operation_keys[VIEW_PALETTE] = {"Operation 1", "Operation 2", "Operation 3", "Operation 4",
    "Operation 5", "Operation 6", "Operation 7", "Operation 8", "Operation 9", "Operation 10", "Operation 11",
    "Operation 12"};
enum { ERROR, NOT_ENDED, QUEUE, BETWEEN, TRACE, TRACE_ERROR };
static const struct view_look looks[] = {[ERROR] = {"Error", LOOK_STOLEN, 1},
    [NOT_ENDED] = {"Not ended", LOOK_PREEMPTED, 0.75},
    [QUEUE] = {"In a queue", LOOK_TIMER, 0.5},
    [BETWEEN] = {"Between spans", LOOK_UNKNOWN, 0.33},
    [TRACE] = {"Trace", LOOK_IDLE, 0.5},
    [TRACE_ERROR] = {"Trace with errors", "#c9837c", 0.5}};

static bool has_data(const struct view *self, struct views *x)
{
    return x->spans && x->spans->n_rows;
}

/* ---- the tree ---- */

/* Traces that overlap the query's range, oldest first: the newest ones within the tree's limit. */
struct chosen {
    uint32_t *v;
    size_t n, left_out;
};

static struct chosen choose(const struct spanset *o, const struct tsp_query *q)
{
    struct chosen c = {arena_new(q->http->arena, uint32_t, MOST_TRACES), 0, 0};
    size_t entries = 0;
    for (size_t t = o->n_traces; t-- > 0;) {
        const struct spanset_shown *s = o->shown + t;
        if (!s->entries || (q->has_range && (s->begin > q->end || s->end < q->begin)))
            continue;
        if (c.n == MOST_TRACES || (c.n && entries + s->entries > MOST_ENTRIES)) {
            c.left_out++;
            continue;
        }
        entries += s->entries;
        c.v[c.n++] = (uint32_t)t;
    }
    for (size_t i = 0; i < c.n / 2; i++) {
        uint32_t other = c.v[i];
        c.v[i] = c.v[c.n - 1 - i];
        c.v[c.n - 1 - i] = other;
    }
    return c;
}

static void write_left_out(const struct spanset_entry *e, struct text *out)
{
    if (e->left_out)
        text_printf(out, " (%u more have no row)", e->left_out);
}

/* Writes the first few names of spans in a lane. */
static void write_lane(const struct spanset *o, const struct spanset_entry *e, struct text *out)
{
    enum { LOOKED_AT = 256 };
    uint32_t names[LABEL_NAMES];
    size_t n = 0;
    for (uint32_t i = e->first; i < e->first + e->n && i < e->first + LOOKED_AT; i++) {
        uint32_t name = o->rows[o->lanes.v[i]].name;
        size_t k = 0;
        while (k < n && names[k] != name)
            k++;
        if (k < n)
            continue;
        if (n == LABEL_NAMES) {
            text_puts(out, ", …");
            return;
        }
        names[n++] = name;
        text_puts(out, n > 1 ? ", " : "");
        text_puts(out, spans_text(o->s, name));
    }
}

static void write_label(const struct spanset *o, const struct spanset_entry *e, struct text *out)
{
    switch (e->kind) {
    case SPANSET_TRACE:
        spanset_write_root(o, e->trace, out);
        text_puts(out, " · ");
        size_t at = out->n;
        time_write_utc(out, o->shown[e->trace].begin, true);
        out->n = out->n > at + SECONDS ? at + SECONDS : out->n; /* a fraction does not distinguish traces any better */
        break;
    case SPANSET_PATH:
        text_puts(out, "critical path");
        if (e->number)
            text_printf(out, " %u", e->number + 1);
        break;
    case SPANSET_PLACE:
        text_puts(out, e->service == SPANSET_NONE ? "other services" : spans_text(o->s, e->service));
        if (e->host_text)
            text_printf(out, " (%s)", spans_text(o->s, e->host_text));
        break;
    default: write_lane(o, e, out);
    }
    write_left_out(e, out);
}

/* Key of an entry among its parent's children. */
static uint64_t key_of(const struct spanset *o, const struct spanset_entry *e)
{
    static const char *const kinds[] = {"trace", "critical path", "place", "lane"};
    if (e->kind == SPANSET_TRACE)
        return map_hash(o->traces[e->trace].id, SPAN_TRACE_BYTES);
    if (e->kind == SPANSET_PLACE && e->service != SPANSET_NONE)
        return view_key(spans_text(o->s, e->service),
            (int64_t)map_hash(spans_text(o->s, e->host_text), strlen(spans_text(o->s, e->host_text))));
    return view_key(kinds[e->kind], e->number);
}

static void write_entry(const struct views *x, const struct tsp_query *q, uint32_t number, struct tsp_answer *answer)
{
    const struct spanset *o = x->spans;
    const struct spanset_entry *e = o->entries.v + number;
    const struct spanset_shown *s = o->shown + e->trace;
    struct text label = {.fd = -1}, took = {.fd = -1};
    bool is_trace = e->kind == SPANSET_TRACE;
    uint32_t spans = is_trace ? s->rows : e->n;
    write_label(o, e, &label);
    if (is_trace)
        text_duration(&took, s->end - s->begin);
    const char *labels[] = {text_to_arena(&label, q->http->arena), text_to_arena(&took, q->http->arena),
        is_trace || e->kind == SPANSET_LANE ? arena_printf(q->http->arena, "%u", spans) : "",
        is_trace && s->errors ? arena_printf(q->http->arena, "%u", s->errors) : ""};
    struct text id = {.fd = -1};
    span_write_hex(&id, o->traces[e->trace].id, SPAN_TRACE_BYTES);
    struct tsp_meta meta[] = {{.key = "Trace id", .text = text_to_arena(&id, q->http->arena)},
        {.key = "Spans", .number = spans}, {.key = "Errors", .number = s->errors}};
    tsp_write_entry(answer,
        &(struct tsp_entry){.id = view_id(x, number),
            .parent = is_trace ? -1 : view_id(x, e->parent),
            .key = key_of(o, e),
            .labels = labels,
            .n_labels = 4,
            .time_graph = true,
            .start = s->begin,
            .end = s->end,
            .has_data = e->kind != SPANSET_PLACE,
            .host_id = e->host >= 0 ? x->hosts[e->host].id : NULL,
            .meta = meta,
            .n_meta = is_trace ? 3 : 0});
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct spanset *o = x->spans;
    struct chosen c = choose(o, q);
    if (c.left_out) {
        const char *labels[] = {arena_printf(q->http->arena, "%zu more traces began earlier", c.left_out), "", "", ""};
        tsp_write_entry(answer,
            &(struct tsp_entry){.id = view_id(x, o->entries.n),
                .parent = -1,
                .key = view_key("left out", 0),
                .labels = labels,
                .n_labels = 4,
                .time_graph = true,
                .start = x->data.begin,
                .end = x->data.end});
    }
    for (size_t i = 0; i < c.n; i++) {
        const struct spanset_shown *s = o->shown + c.v[i];
        for (uint32_t e = s->entry; e < s->entry + s->entries && !tsp_full(answer); e++)
            write_entry(x, q, e, answer);
    }
}

/* ---- states ---- */

struct row {
    const struct views *x;
    const struct tsp_query *q;
    struct tsp_answer *answer;
    const struct spanset_entry *entry;
    struct spanset_sections path; /* sections of a path */
};

static const struct spanset_entry *entry_of(const struct views *x, int64_t id, uint32_t *number)
{
    int64_t n = id - view_id(x, 0);
    if (id == TSP_NO_ENTRY || n < 0 || n >= (int64_t)x->spans->entries.n)
        return NULL;
    *number = (uint32_t)n;
    return x->spans->entries.v + n;
}

/* Row of the span at place i of a lane or path; or SPANS_QUEUE, SPANS_ENVELOPE. */
static int32_t row_at(const struct row *r, size_t i)
{
    return r->entry->kind == SPANSET_LANE ? (int32_t)r->x->spans->lanes.v[r->entry->first + i] : r->path.v[i].row;
}

static void bounds(void *arg, size_t i, int64_t *begin, int64_t *end)
{
    const struct row *r = arg;
    const struct spanset *o = r->x->spans;
    if (r->entry->kind == SPANSET_TRACE) {
        *begin = o->shown[r->entry->trace].begin;
        *end = o->shown[r->entry->trace].end;
    } else if (r->entry->kind == SPANSET_LANE) {
        *begin = o->times[row_at(r, i)].begin;
        *end = o->times[row_at(r, i)].end;
    } else {
        *begin = r->path.v[i].begin;
        *end = r->path.v[i].end;
    }
}

static void show_span(const struct row *r, uint32_t number, struct view_shown *out)
{
    const struct spanset *o = r->x->spans;
    const struct spans_row *s = o->rows + number;
    out->label = spans_text(o->s, s->name);
    out->style_key = s->status == SPAN_ERROR ? looks[ERROR].key
        : s->life != SPAN_ENDED              ? looks[NOT_ENDED].key
                                             : operation_keys[map_hash(out->label, strlen(out->label)) % VIEW_PALETTE];
    if (!r->q->filter)
        return;
    view_add_property(out, "operation", out->label);
    view_add_property(out, "service", spans_text(o->s, s->service));
    view_add_property(out, "host", spans_text(o->s, spans_own_value(o->s, s, "host")));
    view_add_property(out, "status", s->status == SPAN_ERROR ? "error" : s->status == SPAN_OK ? "ok" : "");
}

static bool write(void *arg, size_t i, bool only_matches)
{
    const struct row *r = arg;
    const struct spanset *o = r->x->spans;
    struct view_shown shown = {.n = 0};
    struct text root = {.fd = -1};
    int64_t begin, end;
    bounds(arg, i, &begin, &end);
    int32_t row = r->entry->kind == SPANSET_TRACE ? SPANS_ENVELOPE : row_at(r, i);
    if (r->entry->kind == SPANSET_TRACE) {
        spanset_write_root(o, r->entry->trace, &root);
        shown.label = text_cstr(&root);
        shown.style_key = looks[o->shown[r->entry->trace].errors ? TRACE_ERROR : TRACE].key;
    } else if (row < 0) {
        shown.label = row == SPANS_QUEUE ? "queue" : "between spans";
        shown.style_key = looks[row == SPANS_QUEUE ? QUEUE : BETWEEN].key;
    } else {
        show_span(r, (uint32_t)row, &shown);
    }
    bool written = view_write_shown(r->q, r->answer, begin, end, &shown, only_matches);
    text_fini(&root);
    return written;
}

static struct row row_of(const struct views *x, const struct tsp_query *q, struct tsp_answer *answer,
    const struct spanset_entry *e, struct view_spans *spans)
{
    struct row r = {.x = x, .q = q, .answer = answer, .entry = e};
    if (e->kind == SPANSET_PATH)
        for (uint32_t i = e->first; i < e->first + e->n; i++)
            spanset_sections(x->spans, x->spans->path_units.v[i], &r.path);
    *spans = (struct view_spans){.n = e->kind == SPANSET_TRACE ? 1
            : e->kind == SPANSET_PATH                          ? r.path.n
                                                               : e->n,
        .bounds = bounds,
        .write = write};
    return r;
}

static void write_row(struct views *x, const struct tsp_query *q, uint32_t number, struct tsp_answer *answer)
{
    struct view_spans spans;
    if (x->spans->entries.v[number].kind == SPANSET_PLACE)
        return;
    struct row r = row_of(x, q, answer, x->spans->entries.v + number, &spans);
    spans.arg = &r;
    view_write_spans(&spans, x, q, view_id(x, number), answer);
    vec_free(&r.path);
}

static void states(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    int64_t id;
    uint32_t number;
    tsp_begin_rows(answer);
    for (size_t i = 0; view_next_item(q, answer, &i, &id);)
        if (entry_of(x, id, &number))
            write_row(x, q, number, answer);
    struct chosen c = q->has_items ? (struct chosen){0} : choose(x->spans, q);
    for (size_t i = 0; i < c.n; i++) {
        const struct spanset_shown *s = x->spans->shown + c.v[i];
        for (uint32_t e = s->entry; e < s->entry + s->entries && view_goes_on(q, answer); e++)
            write_row(x, q, e, answer);
    }
    tsp_end_rows(answer);
}

static void style(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_styles(answer);
    for (int i = 0; i < VIEW_PALETTE; i++)
        tsp_write_style(answer, operation_keys[i], NULL, view_palette[i], 1, -1, NULL);
    view_write_looks(answer, looks, sizeof looks / sizeof *looks);
    tsp_write_style(answer, "Call", NULL, LOOK_ARROW, -1, -1, "Call of another service");
    tsp_write_style(answer, "Link", NULL, LOOK_NETWORK, -1, -1, "Link");
    tsp_end_styles(answer);
}

/* ---- arrows ---- */

static bool is_in_view(const struct spanset *o, const struct tsp_query *q, const struct spanset_arrow *a)
{
    return a->begin <= q->end && a->end >= q->begin && o->entry_of[a->from] != SPANSET_NONE &&
        o->entry_of[a->to] != SPANSET_NONE;
}

static void arrows(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct spanset *o = x->spans;
    size_t n = 0, at = 0;
    for (size_t i = 0; i < o->arrows.n; i++)
        n += is_in_view(o, q, o->arrows.v + i);
    size_t step = n / MOST_ARROWS + 1; /* step of the arrows written, above the limit */
    tsp_begin_arrows(answer);
    for (size_t i = 0; i < o->arrows.n && view_goes_on(q, answer); i++) {
        const struct spanset_arrow *a = o->arrows.v + i;
        if (!is_in_view(o, q, a) || at++ % step)
            continue;
        int64_t from = view_id(x, o->entry_of[a->from]), to = view_id(x, o->entry_of[a->to]);
        /* traces outside the tree have no entries */
        if (tsp_id(answer, from) >= 0 && tsp_id(answer, to) >= 0)
            tsp_write_arrow(answer, a->begin, a->end, from, to, a->is_link ? "Link" : "Call");
    }
    tsp_end_arrows(answer);
}

/* ---- events ---- */

static void categories(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    if (x->spans->events.n)
        json_write_string(&answer->json, category);
}

/* Writes events, at most one per row and sample. */
static void annotations(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct spanset *o = x->spans;
    int64_t step = q->n_times > 1 ? (q->end - q->begin) / (int64_t)q->n_times : 0;
    int64_t *free_at = arena_new(q->http->arena, int64_t, q->n_items + 1);
    size_t written = 0;
    if (!o->events.n || !tsp_wants_category(q, category))
        return;
    json_key(&answer->json, category);
    json_begin_array(&answer->json);
    for (size_t i = search_first(k, 0, o->events.n, o->events.v[k].time >= q->begin);
         i < o->events.n && o->events.v[i].time <= q->end && written < MOST_MARKS && (i % 4096 || !http_gone(q->http));
         i++) {
        const struct spanset_event *v = o->events.v + i;
        uint32_t entry = o->entry_of[v->row];
        int64_t id = view_id(x, entry);
        if (entry == SPANSET_NONE || !tsp_wants(q, id))
            continue;
        size_t item = q->has_items ? search_first(k, 0, q->n_items, q->items[k] >= id) : 0;
        if (q->has_items && v->time < free_at[item])
            continue;
        free_at[item] = v->time + step;
        if (tsp_id(answer, id) < 0)
            continue;
        const char *name = strings_get(&o->names, v->name);
        tsp_write_annotation(answer, v->time, 0, id, name, strcmp(name, "exception") ? "#1f6fd0" : LOOK_STOLEN, 1);
        written++;
    }
    json_end_array(&answer->json);
}

/* ---- tooltip ---- */

static void tell_state(const struct spanset_pointed *p, const struct spanset_entry *e, int64_t t)
{
    struct view_spans spans;
    struct row r = row_of(p->x, p->q, p->answer, e, &spans);
    int64_t begin, end;
    spans.arg = &r;
    size_t i = view_find_span(&spans, t);
    if (i != SIZE_MAX)
        bounds(&r, i, &begin, &end);
    if (i != SIZE_MAX && t < end) {
        int32_t row = e->kind == SPANSET_TRACE ? SPANS_ENVELOPE : row_at(&r, i);
        if (e->kind == SPANSET_TRACE)
            spanset_tell_trace(p, e->trace);
        else if (row >= 0)
            spanset_tell_span(p, (uint32_t)row);
        else
            tsp_write_tip(p->answer, "On the path",
                row == SPANS_QUEUE ? "waiting in a queue since the span before had ended" : "between spans: none ran");
        if (e->kind == SPANSET_PATH)
            view_write_duration(p->answer, "This piece of the path", end - begin);
        if (row < 0)
            view_write_span(p->answer, begin, end);
    }
    vec_free(&r.path);
}

static void tooltip(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    struct spanset_pointed p = {x, q, answer};
    const struct spanset_entry *e;
    int64_t entry, time;
    uint32_t number;
    tsp_begin_tooltip(answer);
    if (!view_tooltip_of_arrow(q) && view_tooltip_target(q, &entry, &time) && (e = entry_of(x, entry, &number)) &&
        e->kind != SPANSET_PLACE)
        tell_state(&p, e, time);
    tsp_end_tooltip(answer);
}

const struct view view_spans_graph = {
    .provider = {.id = "weft.spans",
        .name = "Spans",
        .description = "Traces of services and jobs: their spans, nested, with errors, events, and the critical path",
        .type = "TIME_GRAPH"},
    .has_data = has_data,
    VIEW_HEADERS({"Trace", "Trace, service and host, spans", "STRING"},
        {"Took", "From first to last", "DURATION", "took"}, {"Spans", "How many", "NUMBER", "spans"},
        {"Errors", "Spans that failed", "NUMBER", "errors"}),
    .tree = tree,
    .states = states,
    .arrows = arrows,
    .tooltip = tooltip,
    .style = style,
    .annotation_categories = categories,
    .annotations = annotations,
};
