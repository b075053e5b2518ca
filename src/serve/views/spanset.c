/* SPDX-License-Identifier: MIT */
/* Opening spans: rows, events and links are read once; other recorded data is read on demand. */
#include "views/spanset.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/order.h"
#include "span/span.h"

enum { BATCH = 1024 };

static const char *const keys[] = {SPANS_PROCESS_KEYS, NULL};

/* Event before rows have numbers. Its span is identified by a hash of the ids. */
struct found_event {
    uint64_t who;
    int64_t time;
    uint32_t name;
};
struct found_link {
    uint64_t who, of;
};
struct reading {
    struct views *x;
    struct spanset *o;
    size_t path; /* number of the path in the request */
    uint64_t n, told;
    int64_t begin, end;
    VEC(struct found_event) events;
    VEC(struct found_link) links;
};

/* ---- reading ---- */

static uint64_t hash_of(const uint8_t *trace, const uint8_t *id)
{
    uint8_t both[SPAN_TRACE_BYTES + SPAN_ID_BYTES];
    memcpy(both, trace, SPAN_TRACE_BYTES);
    memcpy(both + SPAN_TRACE_BYTES, id, SPAN_ID_BYTES);
    return map_hash(both, sizeof both);
}

static void tell_progress(struct reading *r)
{
    const struct tsp_open_request *q = r->x->request;
    if (q->grow && r->n > r->told)
        q->grow(q->arg, r->path, r->n - r->told, r->begin, r->end);
    r->told = r->n;
}

/* Adds a span. Fails if the spans are no longer wanted, or memory is short. */
static int take(struct reading *r, const struct span *s, struct err *e)
{
    uint64_t who = hash_of(s->trace_id, s->id);
    spans_add(r->o->s, s);
    for (size_t i = 0; i < s->n_events; i++) {
        const char *name = s->events[i].name;
        struct found_event f = {who, s->events[i].time_ns, strings_intern(&r->o->names, name, strlen(name))};
        vec_push(&r->events, f);
    }
    for (size_t i = 0; i < s->n_links; i++)
        vec_push(&r->links, ((struct found_link){who, hash_of(s->links[i].trace_id, s->links[i].id)}));
    r->begin = !r->n || s->begin_ns < r->begin ? s->begin_ns : r->begin;
    r->end = !r->n || s->end_ns > r->end ? s->end_ns : r->end;
    if (++r->n % BATCH)
        return 0;
    tell_progress(r);
    if (r->x->request->stop && r->x->request->stop(r->x->request->arg))
        return err_set(e, ERR_CANCELLED, "%s is not wanted any more", r->o->path);
    return mem_check("reading the spans", e);
}

static int read_store(struct reading *r, struct err *e)
{
    struct span_query all = {.any_order = true};
    struct span_store *store = NULL;
    struct span_cursor *cursor = NULL;
    const struct span *s = NULL;
    struct arena arena = {0};
    int rc = span_store_open(r->o->store, &store, e);
    rc = rc ? rc : span_select(store, &all, &cursor, e);
    while (!rc && !(rc = span_next(cursor, &arena, &s, e)) && s) {
        rc = take(r, s, e);
        if (r->n % BATCH)
            continue;
        arena_fini(&arena);
        arena = (struct arena){0};
    }
    arena_fini(&arena);
    span_cursor_close(cursor);
    span_store_close(store);
    return rc;
}

static int read_file(struct reading *r, const char *path, struct err *e)
{
    struct span_told told = {0};
    size_t before = r->o->list.n;
    int rc = span_read_file(path, &r->o->arena, &r->o->list, &told, e);
    if (!rc)
        spans_note_file(path, &told, &r->o->arena, &r->o->notes);
    for (size_t i = before; i < r->o->list.n && !rc; i++)
        rc = take(r, r->o->list.v[i], e);
    return rc;
}

static int read_files(struct reading *r, struct err *e)
{
    const char *const *files;
    size_t n = 0;
    int rc = span_list_files(r->o->path, &r->o->arena, &files, &n, e);
    for (size_t i = 0; i < n && !rc; i++)
        rc = read_file(r, files[i], e);
    return rc;
}

/* Tries a directory as a store; it may be a spool instead. */
static int try_store(const char *path, struct err *e)
{
    struct span_store *store;
    int rc = span_store_open(path, &store, e);
    if (!rc)
        span_store_close(store);
    return rc;
}

int spanset_look(const char *path, struct err *e)
{
    struct stat st;
    struct arena names = {0};
    const char *const *files;
    size_t n;
    if (span_store_is_url(path))
        return try_store(path, e);
    if (stat(path, &st))
        return err_sys(e, "%s", path);
    int rc = S_ISDIR(st.st_mode) ? try_store(path, e) : 0;
    if (rc == ERR_NOTFOUND && !span_list_files(path, &names, &files, &n, &(struct err){0}))
        rc = 0;
    arena_fini(&names);
    return rc;
}

static bool is_of(const struct span *s, const struct spanset *o, const struct spans_row *r)
{
    uint64_t id;
    memcpy(&id, s->id, sizeof id);
    return __builtin_bswap64(id) == r->id && !memcmp(s->trace_id, o->traces[r->trace].id, SPAN_TRACE_BYTES);
}

/* Returns the later of two reports of a span: the one that has ended. */
static const struct span *better(const struct span *known, const struct span *s)
{
    return !known || s->life > known->life ? s : known;
}

struct spanset_whole spanset_find(const struct spanset *o, uint32_t row, struct arena *a)
{
    const struct spans_row *r = o->rows + row;
    struct spanset_whole w = {0};
    const struct span *s = NULL;
    struct span_query q = {.trace_id = o->traces[r->trace].id, .any_order = true};
    struct err ignored = {0};
    for (size_t i = 0; i < o->list.n; i++)
        if (is_of(o->list.v[i], o, r))
            w.span = better(w.span, o->list.v[i]);
    if (!o->is_store || span_store_open(o->store, &w.store, &ignored) || span_select(w.store, &q, &w.cursor, &ignored))
        return w;
    while ((!w.span || w.span->life < SPAN_ENDED) && !span_next(w.cursor, a, &s, &ignored) && s)
        if (is_of(s, o, r))
            w.span = better(w.span, s);
    return w;
}

void spanset_release(struct spanset_whole *w)
{
    span_cursor_close(w->cursor);
    span_store_close(w->store);
}

/* ---- times and hosts ---- */

int64_t spanset_time_of(const struct spanset *o, uint32_t row, int64_t t)
{
    const struct index_span_thread *of = o->joined.threads + row;
    return of->host < 0 ? t : view_to_reference(&o->x->hosts[of->host], index_span_time(of, t - o->rows[row].shift_ns));
}

static void join_spans(struct views *x, struct spanset *o)
{
    struct index_span *asked = mem_zalloc((o->n_rows + 1) * sizeof *asked);
    for (size_t i = 0; i < o->n_rows; i++) {
        const struct spans_row *r = o->rows + i;
        struct spans_process p = spans_process(o->s, r);
        asked[i] = (struct index_span){.trace_id = o->traces[r->trace].id,
            .id = r->id,
            .host = p.host,
            .boot = p.boot,
            .pid = p.pid,
            .tid = p.tid,
            .pid_ns = (uint32_t)p.pid_namespace,
            .monotonic_begin = p.monotonic_begin,
            .monotonic_end = p.monotonic_end,
            .begin_ns = r->recorded_ns,
            .end_ns = r->end_ns - r->shift_ns};
    }
    index_join_spans(x->x, asked, o->n_rows, &o->joined);
    free(asked);
}

static void set_times(struct spanset *o)
{
    o->times = mem_alloc((o->n_rows + 1) * sizeof *o->times);
    for (uint32_t i = 0; i < o->n_rows; i++) {
        const struct spans_row *r = o->rows + i;
        struct spanset_time t = {spanset_time_of(o, i, r->begin_ns), spanset_time_of(o, i, r->end_ns)};
        t.end = t.end > t.begin ? t.end : t.begin + 1; /* spans of zero length stay visible */
        o->begin = !i || t.begin < o->begin ? t.begin : o->begin;
        o->end = !i || t.end > o->end ? t.end : o->end;
        o->times[i] = t;
    }
}

/* ---- events and arrows ---- */

static int by_time(const void *a, const void *b)
{
    const struct spanset_event *x = a, *y = b;
    return order_of(x->time, y->time) ?: order_of(x->row, y->row) ?: order_of(x->name, y->name);
}

static void add_events(struct reading *r, const struct map *rows)
{
    struct spanset *o = r->o;
    size_t kept = 0;
    for (size_t i = 0; i < r->events.n; i++) {
        const uint64_t *row = map_find(rows, r->events.v[i].who);
        if (!row)
            continue;
        int64_t t = spanset_time_of(o, (uint32_t)*row, r->events.v[i].time + o->rows[*row].shift_ns);
        vec_push(&o->events, ((struct spanset_event){t, (uint32_t)*row, r->events.v[i].name}));
    }
    if (o->events.n)
        qsort(o->events.v, o->events.n, sizeof *o->events.v, by_time);
    for (size_t i = 0; i < o->events.n; i++) /* a span that was reported twice repeats its events */
        if (!kept || by_time(o->events.v + kept - 1, o->events.v + i))
            o->events.v[kept++] = o->events.v[i];
    o->events.n = kept;
}

static void add_links(struct reading *r, const struct map *rows)
{
    struct spanset *o = r->o;
    for (size_t i = 0; i < r->links.n; i++) {
        const uint64_t *to = map_find(rows, r->links.v[i].who), *from = map_find(rows, r->links.v[i].of);
        if (!to || !from || *to == *from)
            continue;
        int64_t begin = o->times[*to].begin, end = o->times[*from].end;
        vec_push(&o->arrows,
            ((struct spanset_arrow){end < begin ? end : begin, begin, (uint32_t)*from, (uint32_t)*to, true}));
    }
}

static bool is_elsewhere(const struct spanset *o, uint32_t a, uint32_t b)
{
    return o->rows[a].service != o->rows[b].service ||
        spans_own_value(o->s, o->rows + a, "host") != spans_own_value(o->s, o->rows + b, "host");
}

int32_t spanset_cause(const struct spanset *o, uint32_t row)
{
    const struct spans_row *r = o->rows + row;
    return r->parent >= 0 ? r->parent : o->units[r->unit].after;
}

static void add_calls(struct spanset *o)
{
    for (uint32_t i = 0; i < o->n_rows; i++) {
        int32_t from = spanset_cause(o, i);
        if (from < 0 || !is_elsewhere(o, (uint32_t)from, i))
            continue;
        int64_t begin = o->times[i].begin, at = begin;
        at = at > o->times[from].end ? o->times[from].end : at;
        at = at < o->times[from].begin ? o->times[from].begin : at;
        vec_push(&o->arrows,
            ((struct spanset_arrow){at < begin ? at : begin, begin > at ? begin : at, (uint32_t)from, i, false}));
    }
}

static void add_what_is_told(struct reading *r)
{
    struct spanset *o = r->o;
    struct map rows = {0};
    for (uint32_t i = 0; (r->events.n || r->links.n) && i < o->n_rows; i++) {
        uint64_t id = __builtin_bswap64(o->rows[i].id);
        *map_put(&rows, hash_of(o->traces[o->rows[i].trace].id, (const uint8_t *)&id), NULL) = i;
    }
    add_events(r, &rows);
    add_links(r, &rows);
    add_calls(o);
    map_fini(&rows);
}

/* ---- opening ---- */

static size_t path_number(const struct views *x, const char *path)
{
    size_t i = 0;
    while (i + 1 < x->request->n && strcmp(x->request->paths[i], path) != 0)
        i++;
    return i;
}

int spanset_open(struct views *x, const char *path, const char *url, struct spanset **out, struct err *e)
{
    struct stat st;
    struct spans_choice choice = {.keys = keys};
    struct spanset *o = mem_zalloc(sizeof *o);
    struct reading r = {.x = x, .o = o, .path = path_number(x, path)};
    o->x = x;
    o->path = mem_strdup(path);
    o->store = mem_strdup(url ? url : path);
    o->shown_name = span_store_shown(o->store);
    o->s = spans_new(&choice);
    int rc = stat(path, &st) ? err_sys(e, "%s", path) : 0;
    bool is_directory = !rc && S_ISDIR(st.st_mode);
    o->is_store = url || (is_directory && try_store(path, &(struct err){0}) != ERR_NOTFOUND);
    rc = rc ? rc : o->is_store ? read_store(&r, e) : is_directory ? read_files(&r, e) : read_file(&r, path, e);
    if (!rc) {
        tell_progress(&r);
        spans_settle(o->s);
        spans_note_settled(o->s, &o->arena, &o->notes);
        o->n_rows = spans_rows(o->s, &o->rows);
        o->n_traces = spans_traces(o->s, &o->traces);
        o->n_units = spans_units(o->s, &o->units);
        join_spans(x, o);
        set_times(o);
        add_what_is_told(&r);
        spanset_lay_out(o);
        *out = o;
    } else {
        spanset_close(o);
    }
    vec_free(&r.events);
    vec_free(&r.links);
    return rc;
}

void spanset_close(struct spanset *o)
{
    if (!o)
        return;
    spans_free(o->s);
    free(o->path);
    free(o->store);
    free(o->shown_name);
    free(o->times);
    index_joined_fini(&o->joined);
    free(o->entry_of);
    free(o->shown);
    vec_free(&o->entries);
    vec_free(&o->lanes);
    vec_free(&o->path_units);
    vec_free(&o->events);
    vec_free(&o->arrows);
    strings_fini(&o->names);
    free(o->list.v);
    free(o->notes.v);
    arena_fini(&o->arena);
    free(o);
}
