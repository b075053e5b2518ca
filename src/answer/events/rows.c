/* SPDX-License-Identifier: MIT */
/* Rows of the table: all items, or those found by a scan. */
#include "events/cell.h"
#include "events/match.h"
#include "events/reader.h"
#include "events/scan.h"

enum { WINDOW = 4096, STEP_BACK = 4096, MAX_STEP_BACK = 1 << 20, ROWS_AT_ONCE = 1024 };
/* Time to wait for a scan, so that a fast one is answered in one piece; interval in which a waiting search checks its
 * client. */
static const int64_t settle_ns = 20000000, look_ns = 100000000;

struct event_pager {
    const struct event_table *table;
    uint64_t items;
    struct event_readers *readers;
    struct event_scans *scans;
};

struct event_rows {
    struct event_pager *pager;
    struct event_reader *reader;
    struct event_scan *scan;  /* NULL: all */
    struct event_found found; /* matches so far */
    uint64_t first;           /* cached rows: numbers of their items */
    size_t n;
    uint64_t items[ROWS_AT_ONCE];
};

/* ---- life ---- */

struct event_pager *events_pager_new(const struct event_table *table)
{
    struct event_pager *p = mem_zalloc(sizeof *p);
    p->table = table;
    p->readers = events_readers_new(table);
    p->scans = events_scans_new(table);
    for (size_t i = 0; i < table->n; i++)
        p->items += ctf_trace_items(table->sources[i].trace);
    return p;
}

void events_pager_free(struct event_pager *p)
{
    events_scans_free(p->scans);
    events_readers_free(p->readers);
    free(p);
}

uint64_t events_pager_items(const struct event_pager *p)
{
    return p->items;
}

/* Item numbers of rows from `first` on. */
static size_t items_of(const struct event_rows *w, uint64_t first, uint64_t *out, size_t max)
{
    size_t n = 0;
    if (w->scan)
        return events_scan_items(w->scan, first, out, max);
    for (; n < max && first + n < w->found.matches; n++)
        out[n] = first + n;
    return n;
}

int events_rows_open(
    struct event_pager *p, const struct event_wanted *wanted, uint64_t near, struct event_rows **out, struct err *e)
{
    struct event_rows *w = mem_zalloc(sizeof *w);
    uint64_t item = 0;
    int rc = wanted ? events_scan_take(p->scans, wanted, &w->scan, e) : 0;
    if (rc) {
        free(w);
        return rc;
    }
    w->pager = p;
    w->found = w->scan ? events_scan_wait(w->scan, UINT64_MAX, settle_ns)
                       : (struct event_found){.matches = p->items, .done = true};
    items_of(w, near, &item, 1);
    w->reader = events_reader_take(p->readers, item);
    *out = w;
    return 0;
}

void events_rows_close(struct event_rows *w)
{
    events_reader_leave(w->pager->readers, w->reader);
    if (w->scan)
        events_scan_leave(w->pager->scans, w->scan);
    free(w);
}

/* ---- access by number ---- */

uint64_t events_rows_count(const struct event_rows *w, bool *done)
{
    *done = w->found.done;
    return w->found.matches;
}

const struct ctf_event *events_rows_get(struct event_rows *w, uint64_t row, uint64_t end)
{
    if (row - w->first >= w->n) {
        w->first = row;
        w->n = end > row ? items_of(w, row, w->items, end - row < ROWS_AT_ONCE ? (size_t)(end - row) : ROWS_AT_ONCE)
                         : 0;
    }
    return w->n ? events_reader_at(w->reader, w->items[row - w->first], w->items[w->n - 1]) : NULL;
}

void events_rows_cell(struct event_rows *w, const struct ctf_event *ev, size_t column, struct text *out)
{
    events_cell_write(w->pager->table, events_reader_threads(w->reader), column, ev,
        ctf_merge_source(events_reader_merge(w->reader), ev->stream), out);
}

/* ---- access by time ---- */

static bool time_at(struct event_reader *r, uint64_t index, int64_t *out)
{
    const struct ctf_event *ev = events_reader_at(r, index, index);
    if (ev)
        *out = ev->ts;
    return ev;
}

/* Estimates the number of events before the time; false if a trace cannot. */
static bool guess(const struct event_table *t, int64_t time, uint64_t *out)
{
    *out = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        const struct index_host *h = event_index(t, i);
        uint64_t count;
        if (!h || !index_events_before(h, event_host_time(t, i, time), &count))
            return false;
        *out += count;
    }
    return true;
}

/* First item at or after the time; the number of items: none. */
static uint64_t find_time(const struct event_pager *p, struct event_reader *r, int64_t time)
{
    uint64_t lo = 0, hi = p->items, near; /* invariant: the result is in [lo, hi] */
    int64_t ts;
    if (guess(p->table, time, &near)) {
        uint64_t reach = WINDOW * (p->table->n + 1);
        if (near > reach && near - reach < hi && time_at(r, near - reach, &ts) && ts < time)
            lo = near - reach;
        if (near + reach < hi && time_at(r, near + reach, &ts) && ts >= time)
            hi = near + reach;
    }
    while (hi - lo > WINDOW * 2) {
        uint64_t mid = lo + (hi - lo) / 2;
        if (!time_at(r, mid, &ts))
            return p->items;
        if (ts < time)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < hi; lo++) {
        const struct ctf_event *ev = events_reader_at(r, lo, hi);
        if (!ev)
            return p->items;
        if (ev->ts >= time)
            break;
    }
    return lo;
}

uint64_t events_rows_at(struct event_rows *w, int64_t time)
{
    uint64_t item = find_time(w->pager, w->reader, time);
    if (!w->scan)
        return item;
    uint64_t row = events_scan_rank(w->scan, item);
    return row < w->found.matches ? row : w->found.matches;
}

/* ---- search ---- */

bool events_rows_fit(const struct event_rows *w, struct event_match *m, const struct ctf_event *ev)
{
    return events_match_fits(m, events_reader_merge(w->reader), ev);
}

struct row_search {
    struct event_rows *rows;
    struct event_match *match;
    bool (*gone)(void *arg);
    void *arg;
};

/* First match in the rows [from, to), or the last one; UINT64_MAX: none. */
static uint64_t search_rows(const struct row_search *s, uint64_t from, uint64_t to, bool last)
{
    uint64_t found = UINT64_MAX;
    for (uint64_t row = from; row < to; row++) {
        if ((row - from) % ROWS_AT_ONCE == 0 && s->gone(s->arg))
            break;
        const struct ctf_event *ev = events_rows_get(s->rows, row, to);
        if (!ev)
            break;
        if (!events_rows_fit(s->rows, s->match, ev))
            continue;
        found = row;
        if (!last)
            break;
    }
    return found;
}

/* Waits for rows that a scan has not found yet. */
static uint64_t search_on(const struct row_search *s, uint64_t row)
{
    struct event_found *known = &s->rows->found;
    for (;;) {
        uint64_t found = search_rows(s, row, known->matches, false);
        if (found != UINT64_MAX || known->done || s->gone(s->arg))
            return found;
        row = row > known->matches ? row : known->matches;
        *known = events_scan_wait(s->rows->scan, known->matches, look_ns);
        if (!known->running && !known->done)
            return UINT64_MAX;
    }
}

static uint64_t search_back(const struct row_search *s, uint64_t row)
{
    uint64_t step = STEP_BACK, n = s->rows->found.matches;
    for (uint64_t end = row < n ? row + 1 : n; end > 0;) {
        uint64_t begin = end > step ? end - step : 0, found = search_rows(s, begin, end, true);
        if (found != UINT64_MAX || s->gone(s->arg))
            return found;
        end = begin;
        step = step < MAX_STEP_BACK ? step * 2 : step;
    }
    return UINT64_MAX;
}

uint64_t events_rows_find(
    struct event_rows *w, struct event_match *m, uint64_t row, bool backward, bool (*gone)(void *arg), void *arg)
{
    struct row_search s = {w, m, gone, arg};
    if (events_match_impossible(m))
        return UINT64_MAX;
    return backward ? search_back(&s, row) : search_on(&s, row);
}
