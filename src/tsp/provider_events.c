/* Events table: all events of all traces in order of the experiment's clock. Lines are read from the traces; a few positioned readers are kept, so
 * that a viewer that pages through the table reads on where it stopped. */
#include "ctf/ctf.h"
#include "tsp/event_cell.h"
#include "tsp/provider.h"
#include "tsp/providers.h"
#include "tsp/search.h"

enum { READERS = 8, BATCH = 256, SHORT_WAY = 20000, WINDOW = 4096, STEP_BACK = 4096 };

struct reader {
    struct ctf_merge *merge;
    uint64_t next;
    bool busy;
    uint64_t used;
};
struct events {
    struct event_cells cells;
    uint64_t total;       /* events and losses */
    pthread_mutex_t lock; /* guards the readers' fields but for busy ones */
    pthread_cond_t free_reader;
    struct reader readers[READERS];
    uint64_t clock;
};

/* ---- readers ------------------------------------------------------------------------------------------------------------------------------------- */

static bool make_merge(const struct tsp_experiment *x, struct ctf_merge **out)
{
    struct err e = {0};
    return !ctf_merge_new(x->sources, x->n_sources, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, out, &e);
}

/* The free reader that is nearest before `index`; else one that is not made yet; else the one not used for longest. */
static struct reader *choose(struct events *t, uint64_t index)
{
    struct reader *best = NULL, *fresh = NULL, *oldest = NULL;
    for (int i = 0; i < READERS; i++) {
        struct reader *r = &t->readers[i];
        if (r->busy)
            continue;
        if (!r->merge)
            fresh = fresh ? fresh : r;
        else if (r->next <= index && index - r->next < SHORT_WAY && (!best || r->next > best->next))
            best = r;
        if (r->merge && (!oldest || r->used < oldest->used))
            oldest = r;
    }
    return best ? best : fresh ? fresh : oldest;
}

static struct reader *take_reader(struct tsp_experiment *x, struct events *t, uint64_t index)
{
    struct reader *r;
    pthread_mutex_lock(&t->lock);
    while (!(r = choose(t, index)))
        pthread_cond_wait(&t->free_reader, &t->lock);
    r->busy = true;
    r->used = ++t->clock;
    pthread_mutex_unlock(&t->lock);
    if (!r->merge && make_merge(x, &r->merge))
        r->next = 0;
    return r;
}

static void leave_reader(struct events *t, struct reader *r)
{
    pthread_mutex_lock(&t->lock);
    r->busy = false;
    pthread_cond_signal(&t->free_reader);
    pthread_mutex_unlock(&t->lock);
}

/* Next events, at most `max`; 0 at the end. They stay valid until the next read. */
static size_t read_on(struct reader *r, struct ctf_event *out, size_t max)
{
    size_t n = r->merge ? ctf_merge_next(r->merge, out, max) : 0;
    r->next += n;
    return n;
}

static bool go_to(struct reader *r, uint64_t index)
{
    struct ctf_event skipped[BATCH];
    struct err e = {0};
    if (!r->merge)
        return false;
    if (index < r->next || index - r->next >= SHORT_WAY) {
        if (ctf_merge_seek(r->merge, index, &e)) {
            r->next = UINT64_MAX; /* somewhere: the next use seeks */
            return false;
        }
        r->next = index;
    }
    while (r->next < index)
        if (!read_on(r, skipped, index - r->next < BATCH ? (size_t)(index - r->next) : BATCH))
            return false;
    return true;
}

/* ---- how many there are ---------------------------------------------------------------------------------------------------------------------------- */

static uint64_t read_to_end(struct reader *r)
{
    struct ctf_event batch[BATCH];
    while (read_on(r, batch, BATCH))
        ;
    return r->next;
}

/* The index knows the events, not the losses, which are few and counted from there on. */
static uint64_t count_all(struct reader *r, uint64_t events)
{
    if (!go_to(r, events) && (ctf_merge_seek(r->merge, 0, &(struct err){0}) || (r->next = 0, false)))
        return 0;
    return read_to_end(r);
}

static void *make_events(struct tsp_experiment *x)
{
    struct events *t = mem_zalloc(sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->free_reader, NULL);
    event_cells_init(&t->cells, x);
    if (make_merge(x, &t->readers[0].merge))
        t->total = count_all(&t->readers[0], x->events);
    return t;
}

static void close_events(struct tsp_experiment *x, void *cache)
{
    struct events *t = cache;
    for (int i = 0; i < READERS; i++)
        ctf_merge_free(t->readers[i].merge);
    event_cells_fini(&t->cells);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->free_reader);
    free(t);
}

static struct events *events_of(struct tsp_experiment *x)
{
    return tsp_cache(x, &tsp_provider_events, make_events);
}

/* Asked while the experiment is being opened: the counting happens then. */
static bool has_data(struct tsp_experiment *x)
{
    return events_of(x)->total > 0;
}

/* ---- finding --------------------------------------------------------------------------------------------------------------------------------------- */

static bool time_at(struct reader *r, uint64_t index, int64_t *out)
{
    struct ctf_event ev;
    if (!go_to(r, index) || !read_on(r, &ev, 1))
        return false;
    *out = ev.ts;
    return true;
}

/* About how many events lie before the time; false when some trace does not know. */
static bool guess(const struct tsp_experiment *x, int64_t time, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < x->n_sources; i++) {
        const struct tsp_host *h = x->source_hosts[i] >= 0 ? &x->hosts[x->source_hosts[i]] : NULL;
        uint64_t count;
        bool exact;
        if (!h || !h->states || h->index->trace != x->sources[i].trace)
            return false;
        state_event_counts(h->states, &(int64_t){tsp_to_host(h, time)}, 1, &count, &exact);
        *out += count;
    }
    return true;
}

/* First item at or after the time; total: none. */
static uint64_t find_time(const struct tsp_experiment *x, const struct events *t, struct reader *r, int64_t time)
{
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
    struct ctf_event batch[BATCH];
    if (!go_to(r, lo))
        return t->total;
    for (size_t n; lo < hi && (n = read_on(r, batch, BATCH)) > 0; lo += n)
        for (size_t i = 0; i < n; i++)
            if (batch[i].ts >= time)
                return lo + i;
    return hi;
}

struct cell_of {
    const struct events *t;
    const struct ctf_merge *merge;
    const struct ctf_event *ev;
};

static void write_cell(void *arg, size_t row, size_t column, struct text *out)
{
    const struct cell_of *c = arg;
    event_cell_write(&c->t->cells, column, c->ev, ctf_merge_source(c->merge, c->ev->stream), out);
}

static bool event_fits(const struct events *t, const struct reader *r, struct search *s, const struct ctf_event *ev)
{
    return search_fits(s, write_cell, &(struct cell_of){t, r->merge, ev}, 0);
}

/* First match in [from, to), or the last; UINT64_MAX: none, or the client has gone. */
static uint64_t scan(
    const struct tsp_query *q, const struct events *t, struct reader *r, struct search *s, uint64_t from, uint64_t to, bool last)
{
    struct ctf_event batch[BATCH];
    uint64_t found = UINT64_MAX;
    if (!go_to(r, from))
        return found;
    while (from < to) {
        size_t n = read_on(r, batch, to - from < BATCH ? (size_t)(to - from) : BATCH);
        for (size_t i = 0; i < n; i++)
            if (event_fits(t, r, s, &batch[i])) {
                found = from + i;
                if (!last)
                    return found;
            }
        from += n;
        if (!n || http_gone(q->http))
            break;
    }
    return found;
}

static uint64_t find_match(const struct tsp_query *q, const struct events *t, struct reader *r, struct search *s, uint64_t row)
{
    if (s->impossible || !s->n)
        return UINT64_MAX;
    if (!q->search_backward)
        return scan(q, t, r, s, row, t->total, false);
    for (uint64_t end = row < t->total ? row + 1 : t->total; end > 0;) {
        uint64_t begin = end > STEP_BACK ? end - STEP_BACK : 0, found = scan(q, t, r, s, begin, end, true);
        if (found != UINT64_MAX || http_gone(q->http))
            return found;
        end = begin;
    }
    return UINT64_MAX;
}

/* ---- operations -------------------------------------------------------------------------------------------------------------------------------------- */

static struct tsp_result columns(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    const struct events *t = events_of(x);
    return tsp_table_columns(t->cells.columns, t->cells.n_columns, j);
}

static void write_lines(
    const struct tsp_query *q, const struct events *t, struct reader *r, struct search *s, uint64_t row, uint64_t end, struct json *j)
{
    const size_t *places;
    size_t n_places = search_columns(q, t->cells.columns, t->cells.n_columns, &places);
    struct ctf_event batch[BATCH];
    struct text scratch = {.fd = -1};
    search_begin_lines(j, row, t->total, t->cells.columns, places, n_places);
    if (row < end && !go_to(r, row))
        end = row;
    while (row < end && !http_gone(q->http)) {
        size_t n = read_on(r, batch, end - row < BATCH ? (size_t)(end - row) : BATCH);
        for (size_t i = 0; i < n; i++) {
            struct cell_of cell = {t, r->merge, &batch[i]};
            search_write_line(j, row + i, s->n && event_fits(t, r, s, &batch[i]) ? 8 : 0, write_cell, &cell, 0, places, n_places, &scratch);
        }
        if (!n)
            break;
        row += n;
    }
    search_end_lines(j);
    text_fini(&scratch);
}

static struct tsp_result lines(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    struct events *t = events_of(x);
    struct search s;
    struct reader *r = take_reader(x, t, q->by_time ? 0 : (uint64_t)q->index);
    uint64_t row = q->by_time ? find_time(x, t, r, q->table_time) : (uint64_t)q->index, end;
    search_init(&s, q->search, t->cells.columns, t->cells.n_columns);
    if (q->search && q->search_find) {
        uint64_t found = find_match(q, t, r, &s, row);
        end = found == UINT64_MAX ? 0 : found + (uint64_t)q->count;
        row = found == UINT64_MAX ? 0 : found;
    } else {
        end = row < t->total ? row + (uint64_t)q->count : row;
    }
    write_lines(q, t, r, &s, row, end < t->total ? end : t->total, j);
    search_fini(&s);
    leave_reader(t, r);
    return (struct tsp_result){http_gone(q->http) ? TSP_CANCELLED : TSP_COMPLETED, NULL};
}

const struct tsp_provider tsp_provider_events = {
    .id = "org.eclipse.tracecompass.internal.provisional.tmf.core.model.events.TmfEventTableDataProvider",
    .name = "Events Table",
    .description = "All events of the traces in order of time",
    .type = "TABLE",
    .has_data = has_data,
    .columns = columns,
    .lines = lines,
    .close = close_events,
};
