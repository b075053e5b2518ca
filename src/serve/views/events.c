/* SPDX-License-Identifier: MIT */
/* Events table: all events of all traces in order of the experiment's clock, or those that match a filter. */
#include "base/expr.h"
#include "views/event_table.h"
#include "views/list.h"

enum { LOOK_AFTER = 256 /* rows between checks that the client is still connected */ };

struct events {
    struct event_table *table;
    struct event_pager *pager;
    struct tsp_column columns[EVENT_COLUMNS];
    size_t n_columns;
};

/* ---- table and columns ---- */

struct event_table *experiment_event_table(const struct views *x)
{
    struct event_origin *origins = mem_zalloc(sizeof *origins * (x->n_sources + 1));
    for (size_t i = 0; i < x->n_sources; i++) {
        int32_t host = x->source_hosts[i];
        if (host >= 0)
            origins[i] = (struct event_origin){
                x->hosts[host].id, (uint32_t)host, x->hosts[host].index, x->hosts[host].map};
    }
    struct event_table *t = events_table_new(x->sources, origins, x->n_sources);
    free(origins);
    return t;
}

/* Columns of contexts and rarely needed columns are shown only on request. */
static int display_of(int64_t column)
{
    switch (column) {
    case EVENT_CONTENTS: return TSP_WIDE;
    case EVENT_CHANNEL:
    case EVENT_PACKET_CONTEXT:
    case EVENT_STREAM_CONTEXT:
    case EVENT_CONTEXT:
    case EVENT_TIMESTAMP_NS:
    case EVENT_PRIO: return TSP_ASIDE;
    default: return TSP_SHOWN;
    }
}

static void *make_events(struct views *x)
{
    struct events *t = mem_zalloc(sizeof *t);
    const struct event_column *columns;
    t->table = experiment_event_table(x);
    t->pager = events_pager_new(t->table);
    t->n_columns = events_table_columns(t->table, &columns);
    for (size_t i = 0; i < t->n_columns; i++)
        t->columns[i] = (struct tsp_column){columns[i].id, columns[i].name, columns[i].description, columns[i].type,
            .ascending = columns[i].id == EVENT_TIMESTAMP_NS, .display = display_of(columns[i].id),
            .key = columns[i].id == EVENT_TIMESTAMP ? "timestamp"
                : columns[i].id == EVENT_TRACE      ? "trace"
                                                    : NULL};
    return t;
}

static void close_events(struct views *x, void *cache)
{
    struct events *t = cache;
    events_pager_free(t->pager);
    events_table_free(t->table);
    free(t);
}

static struct events *events_of(struct views *x)
{
    return view_cache(x, &view_events, make_events);
}

/* Counts the events; called while the experiment is opened, so the counting happens then. */
static bool has_data(const struct view *self, struct views *x)
{
    return events_pager_items(events_of(x)->pager) > 0;
}

static void columns(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct events *t = events_of(x);
    tsp_table_columns(answer, t->columns, t->n_columns);
}

/* ---- query ---- */

/* Parses {column id: regular expression}. An invalid column or expression becomes a column that does not exist. */
static struct event_wanted wanted(json_t *expressions, const char *where, struct arena *a)
{
    struct event_term *terms = arena_new(a, struct event_term, json_object_size(expressions) + 1);
    struct event_wanted w = {.terms = terms, .where = where};
    const char *key;
    json_t *pattern;
    json_object_foreach (expressions, key, pattern) {
        char *end;
        long long id = strtoll(key, &end, 10);
        bool good = *key && !*end && json_is_string(pattern);
        terms[w.n_terms++] = good ? (struct event_term){id, json_string_value(pattern)} : (struct event_term){-1, ""};
    }
    return w;
}

/* Joins all expressions under the key 4 ("leave out what does not fit"); NULL: none. Each must be valid by itself. */
static const char *excluding(const struct tsp_query *q, struct err *e)
{
    json_t *list = json_object_get(
               json_object_get(json_object_get(q->parameters, "filter_query_parameters"), "filter_expressions_map"),
               "4"),
           *item;
    const char *all = NULL;
    size_t i;
    json_array_foreach (list, i, item) {
        const char *one = json_string_value(item);
        struct expr *checked = NULL;
        if (!one || !one[strspn(one, " \t\r\n")])
            continue;
        if (expr_compile(one, &checked, e))
            return NULL;
        expr_free(checked);
        all = all ? arena_printf(q->http->arena, "%s && (%s)", all, one) : arena_printf(q->http->arena, "(%s)", one);
    }
    return all;
}

static void refuse(const struct tsp_query *q, const struct err *e, struct tsp_answer *answer)
{
    tsp_fail(answer, TSP_CODE_INVALID_QUERY, "Invalid query parameters: filter_query_parameters");
    answer->detail = arena_strdup(q->http->arena, e->text);
}

struct reasons {
    const char *text; /* NULL: no reason yet */
    struct arena *arena;
};

static void add_reason(void *arg, const char *option, const char *text)
{
    struct reasons *r = arg;
    r->text = r->text ? arena_printf(r->arena, "%s; %s", r->text, text) : arena_strdup(r->arena, text);
}

/* Reason why no event can match the query, or NULL. */
static const char *why_nothing(const struct events *t, const struct event_wanted *w, struct arena *a)
{
    struct reasons r = {.arena = a};
    for (size_t i = 0; i < w->n_terms; i++) {
        size_t k = 0;
        while (k < t->n_columns && t->columns[k].id != w->terms[i].column)
            k++;
        if (k == t->n_columns)
            add_reason(&r, "columns", "table_filter_expressions names a column that this table does not have");
    }
    struct event_filter_options o = {.cpu = -1, .tid = -1, .where = w->where};
    events_doubts(t->table, &o, add_reason, &r);
    return r.text;
}

/* ---- lines ---- */

struct line {
    struct event_rows *rows;
    const struct ctf_event *ev;
};

static void write_cell(void *arg, size_t row, size_t column, struct text *out)
{
    const struct line *l = arg;
    events_rows_cell(l->rows, l->ev, column, out);
}

static bool has_gone(void *http)
{
    return http_gone(http);
}

static void write_lines(const struct tsp_query *q, const struct events *t, struct event_rows *rows,
    struct event_match *search, struct tsp_answer *answer)
{
    bool done;
    uint64_t row = q->by_time ? events_rows_at(rows, q->table_time) : (uint64_t)q->index,
             n = events_rows_count(rows, &done);
    bool any = row < n;
    if (q->search && q->search_find) {
        row = events_rows_find(rows, search, row, q->search_backward, has_gone, q->http);
        n = events_rows_count(rows, &done);
        any = row != UINT64_MAX;
        row = any ? row : 0;
    }
    uint64_t end = any ? row + (uint64_t)q->count : 0;
    end = end < n ? end : n;
    struct line l = {.rows = rows};
    struct tsp_lines out = tsp_begin_lines(answer, q, t->columns, t->n_columns, row, n);
    for (; row < end && (row % LOOK_AFTER || !http_gone(q->http)); row++) {
        if (!(l.ev = events_rows_get(rows, row, end)))
            break;
        tsp_write_line(&out, row, events_rows_fit(rows, search, l.ev), write_cell, &l, 0);
    }
    tsp_end_lines(&out);
}

static void lines(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct events *t = events_of(x);
    struct event_rows *rows;
    struct event_match *search = NULL;
    struct err e = {0};
    const char *where = excluding(q, &e);
    if (e.code) {
        refuse(q, &e, answer);
        return;
    }
    struct event_wanted only = wanted(q->row_filter, where, q->http->arena),
                        found = wanted(q->search, NULL, q->http->arena);
    if (events_rows_open(
            t->pager, where || only.n_terms ? &only : NULL, q->by_time ? UINT64_MAX : (uint64_t)q->index, &rows, &e)) {
        refuse(q, &e, answer);
        return;
    }
    if (events_match_new(t->table, &found, &search, &e) == 0)
        write_lines(q, t, rows, search, answer);
    bool done;
    if (events_rows_count(rows, &done) == 0 && done)
        answer->message = why_nothing(t, &only, q->http->arena);
    events_match_free(search);
    events_rows_close(rows);
    answer->status = done ? TSP_COMPLETED : TSP_RUNNING;
}

const struct view view_events = {
    .provider = {.id = "org.eclipse.tracecompass.internal.provisional.tmf.core.model.events.TmfEventTableDataProvider",
        .name = "Events Table",
        .description = "All events of the traces in order of time",
        .type = "TABLE"},
    .has_data = has_data,
    .columns = columns,
    .lines = lines,
    .close = close_events,
};
