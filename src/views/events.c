/* Events table: all events of all traces in order of the experiment's clock, or those that fit a filter. Lines are read
 * from the traces. */
#include "base/expr.h"
#include "events/reader.h"
#include "events/scan.h"
#include "views/list.h"
#include "tsp/search.h"

enum { WINDOW = 4096, STEP_BACK = 4096, MAX_STEP_BACK = 1 << 20, ROWS_AT_ONCE = 1024 };
/* A filter that is through by then is answered in one piece; and how often a search that waits for one looks whether
 * its client is there. */
static const int64_t settle_ns = 20000000, look_ns = 100000000;

struct events {
    struct event_cells cells;
    uint64_t total; /* events and losses */
    struct event_readers *readers;
    struct event_scans *scans;
};

/* The lines that a request is about: all, or those that a scan found. */
struct rows {
    const struct tsp_query *q;
    const struct events *t;
    struct event_reader *reader;
    struct event_scan *scan; /* NULL: all */
    uint64_t n;              /* as far as known */
    uint64_t items;          /* scanned so far */
    bool done;
};

/* ---- what there is ---- */

static void *make_events(struct views *x)
{
    struct events *t = mem_zalloc(sizeof *t);
    event_cells_init(&t->cells, x);
    t->readers = event_readers_new(&t->cells);
    t->scans = event_scans_new(&t->cells);
    for (size_t i = 0; i < x->n_sources; i++)
        t->total += ctf_trace_items(x->sources[i].trace);
    return t;
}

static void close_events(struct views *x, void *cache)
{
    struct events *t = cache;
    event_scans_free(t->scans);
    event_readers_free(t->readers);
    event_cells_fini(&t->cells);
    free(t);
}

static struct events *events_of(struct views *x)
{
    return view_cache(x, &view_events, make_events);
}

/* Asked while the experiment is being opened: the counting happens then. */
static bool has_data(const struct view *self, struct views *x)
{
    return events_of(x)->total > 0;
}

/* ---- items by time ---- */

static bool time_at(struct event_reader *r, uint64_t index, int64_t *out)
{
    const struct ctf_event *ev = event_reader_at(r, index, index);
    if (ev)
        *out = ev->ts;
    return ev;
}

/* About how many events lie before the time; false when some trace does not know. */
static bool guess(const struct views *x, int64_t time, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < x->n_sources; i++) {
        const struct view_host *h = x->source_hosts[i] >= 0 ? &x->hosts[x->source_hosts[i]] : NULL;
        uint64_t count;
        bool exact;
        if (!h || !h->states || h->index->trace != x->sources[i].trace)
            return false;
        state_event_counts(h->states, &(int64_t){view_to_host(h, time)}, 1, &count, &exact);
        *out += count;
    }
    return true;
}

/* First item at or after the time; total: none. */
static uint64_t find_time(const struct events *t, struct event_reader *r, int64_t time)
{
    const struct views *x = t->cells.x;
    uint64_t lo = 0, hi = t->total, near; /* what is wanted lies in [lo, hi] */
    int64_t ts;
    if (guess(x, time, &near)) {
        uint64_t reach = WINDOW * (x->n_sources + 1);
        if (near > reach && near - reach < hi && time_at(r, near - reach, &ts) && ts < time)
            lo = near - reach;
        if (near + reach < hi && time_at(r, near + reach, &ts) && ts >= time)
            hi = near + reach;
    }
    while (hi - lo > WINDOW * 2) {
        uint64_t mid = lo + (hi - lo) / 2;
        if (!time_at(r, mid, &ts))
            return t->total;
        if (ts < time)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < hi; lo++) {
        const struct ctf_event *ev = event_reader_at(r, lo, hi);
        if (!ev)
            return t->total;
        if (ev->ts >= time)
            break;
    }
    return lo;
}

/* ---- rows ---- */

static void take_found(struct rows *w, struct event_found found)
{
    w->n = found.matches;
    w->items = found.items;
    w->done = found.done;
}

/* Item numbers of rows from `first` on. */
static size_t items_of(const struct rows *w, uint64_t first, uint64_t *out, size_t max)
{
    size_t n = 0;
    if (w->scan)
        return event_scan_items(w->scan, first, out, max);
    for (; n < max && first + n < w->n; n++)
        out[n] = first + n;
    return n;
}

/* First row at or after the time; w->n: none, or not found yet. */
static uint64_t row_at(const struct rows *w, int64_t time)
{
    uint64_t item = find_time(w->t, w->reader, time);
    if (!w->scan)
        return item;
    uint64_t row = event_scan_rank(w->scan, item);
    return row < w->n ? row : w->n;
}

struct cell_of {
    const struct rows *w;
    const struct ctf_event *ev;
};

static void write_cell(void *arg, size_t row, size_t column, struct text *out)
{
    const struct cell_of *c = arg;
    event_cell_write(&c->w->t->cells, event_reader_prios(c->w->reader), column, c->ev,
        ctf_merge_source(event_reader_merge(c->w->reader), c->ev->stream), out);
}

/* ---- search ---- */

/* First match in the rows [from, to), or the last; UINT64_MAX: none, or the client has gone. */
static uint64_t search_rows(const struct rows *w, struct event_match *m, uint64_t from, uint64_t to, bool last)
{
    uint64_t items[ROWS_AT_ONCE], found = UINT64_MAX;
    while (from < to && !http_gone(w->q->http)) {
        size_t n = items_of(w, from, items, to - from < ROWS_AT_ONCE ? (size_t)(to - from) : ROWS_AT_ONCE);
        for (size_t i = 0; i < n; i++) {
            const struct ctf_event *ev = event_reader_at(w->reader, items[i], items[n - 1]);
            if (!ev)
                return found;
            if (!event_match_fits(m, event_reader_merge(w->reader), ev))
                continue;
            found = from + i;
            if (!last)
                return found;
        }
        if (!n)
            break;
        from += n;
    }
    return found;
}

/* Waits for rows that a scan has still to find, as long as the client does. */
static uint64_t search_on(struct rows *w, struct event_match *m, uint64_t row)
{
    for (;;) {
        uint64_t found = search_rows(w, m, row, w->n, false);
        if (found != UINT64_MAX || w->done || http_gone(w->q->http))
            return found;
        row = row > w->n ? row : w->n;
        struct event_found more = event_scan_wait(w->scan, w->n, look_ns);
        take_found(w, more);
        if (!more.running && !more.done)
            return UINT64_MAX;
    }
}

static uint64_t search_back(const struct rows *w, struct event_match *m, uint64_t row)
{
    uint64_t step = STEP_BACK;
    for (uint64_t end = row < w->n ? row + 1 : w->n; end > 0;) {
        uint64_t begin = end > step ? end - step : 0, found = search_rows(w, m, begin, end, true);
        if (found != UINT64_MAX || http_gone(w->q->http))
            return found;
        end = begin;
        step = step < MAX_STEP_BACK ? step * 2 : step;
    }
    return UINT64_MAX;
}

static uint64_t find_match(struct rows *w, struct event_match *m, uint64_t row)
{
    if (event_match_impossible(m))
        return UINT64_MAX;
    return w->q->search_backward ? search_back(w, m, row) : search_on(w, m, row);
}

/* ---- operations ---- */

static void columns(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct events *t = events_of(x);
    tsp_table_columns(answer, t->cells.columns, t->cells.n_columns);
}

static void write_lines(
    const struct rows *w, struct event_match *m, uint64_t row, uint64_t end, struct tsp_answer *answer)
{
    const struct event_cells *cells = &w->t->cells;
    const size_t *places;
    size_t n_places = search_columns(w->q, cells->columns, cells->n_columns, &places), n;
    uint64_t items[EVENT_BATCH];
    search_begin_lines(answer, row, w->n, cells->columns, places, n_places);
    while (row < end && !http_gone(w->q->http) &&
        (n = items_of(w, row, items, end - row < EVENT_BATCH ? (size_t)(end - row) : EVENT_BATCH))) {
        for (size_t i = 0; i < n; i++) {
            struct cell_of cell = {w, event_reader_at(w->reader, items[i], items[n - 1])};
            if (!cell.ev)
                break;
            bool fits = event_match_fits(m, event_reader_merge(w->reader), cell.ev);
            search_write_line(answer, row + i, fits ? 8 : 0, write_cell, &cell, 0, places, n_places);
        }
        row += n;
    }
    search_end_lines(answer);
}

static void write_answer(struct rows *w, struct event_match *m, struct tsp_answer *answer)
{
    const struct tsp_query *q = w->q;
    uint64_t row = q->by_time ? row_at(w, q->table_time) : (uint64_t)q->index, end;
    if (q->search && q->search_find) {
        uint64_t found = find_match(w, m, row);
        row = found == UINT64_MAX ? 0 : found;
        end = found == UINT64_MAX ? 0 : found + (uint64_t)q->count;
    } else {
        end = row < w->n ? row + (uint64_t)q->count : row;
    }
    write_lines(w, m, row, end < w->n ? end : w->n, answer);
}

/* All expressions under the key 4 ("leave out what does not fit") in one; NULL: none. Each must make sense by itself.
 */
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
    tsp_fail(answer, arena_printf(q->http->arena, "Invalid query parameters: filter_query_parameters: %s", e->text));
}

static void lines(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    struct events *t = events_of(x);
    struct rows w = {.q = q, .t = t, .n = t->total, .done = true};
    struct event_match *m = NULL;
    struct err e = {0};
    const char *where = excluding(q, &e);
    if (e.code) {
        refuse(q, &e, answer);
        return;
    }
    if (where || json_object_size(q->row_filter)) {
        if (event_scan_take(t->scans, q->row_filter, where, &w.scan, &e)) {
            refuse(q, &e, answer);
            return;
        }
        take_found(&w, event_scan_wait(w.scan, UINT64_MAX, settle_ns));
    }
    uint64_t first = 0;
    if (!q->by_time)
        items_of(&w, (uint64_t)q->index, &first, 1);
    w.reader = event_reader_take(t->readers, first);
    if (event_match_new(&t->cells, q->search, NULL, &m, &e) == 0)
        write_answer(&w, m, answer);
    event_match_free(m);
    event_reader_leave(t->readers, w.reader);
    if (w.scan)
        event_scan_leave(t->scans, w.scan);
    answer->status = w.done ? TSP_COMPLETED : TSP_RUNNING;
    tsp_end(answer, q);
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
