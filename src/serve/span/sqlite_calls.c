/* SPDX-License-Identifier: MIT */
/* SQLite: calls from service to service, counted when spans are added and deleted. The counts cover all stored pairs of
 * a parent and a counted child. All children are counted except numbers from `from` to `to`: spans of an older store,
 * which are counted later. `children` has a row for each counted span with a parent. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "span/calls.h"
#include "span/sqlite.h"

enum { MANY_CHANGES = 1 << 16, SPANS_AT_ONCE = 1024 };
static const int64_t ns_per_s = 1000000000;

/* ---- changes of counts, until they are written ---- */

static void change(struct sqlite_calls *c, int64_t begin_ns, int64_t parent, int64_t child, int64_t by)
{
    if (begin_ns < 0)
        return;
    for (size_t i = 0; i < CALL_WIDTHS; i++) {
        const int64_t width = call_widths_s[i];
        const int64_t key[] = {width, begin_ns / ns_per_s / width, parent, child};
        bool fresh;
        uint64_t *place = map_put(&c->places, map_hash(key, sizeof key), &fresh);
        if (fresh) {
            *place = c->changes.n;
            vec_push(&c->changes, ((struct sqlite_call_change){width, key[1], parent, child, 0}));
        }
        c->changes.v[*place].by += by;
    }
}

static int write_change(struct sqlite_store *s, const struct sqlite_call_change *c, struct err *e)
{
    const int64_t numbers[] = {c->width_s, c->bucket, c->parent, c->child, c->by};
    sqlite3_stmt *q = sqlite_statement(s, STATEMENT_COUNT, e);
    for (int i = 0; q && i < 5; i++)
        sqlite3_bind_int64(q, i + 1, numbers[i]);
    int rc = sqlite_finish(s, q, e);
    if (rc || c->by > 0)
        return rc;
    q = sqlite_statement(s, STATEMENT_COUNTED_NONE, e);
    for (int i = 0; q && i < 4; i++)
        sqlite3_bind_int64(q, i + 1, numbers[i]);
    return sqlite_finish(s, q, e);
}

static void forget_changes(struct sqlite_calls *c)
{
    map_fini(&c->places);
    c->places = (struct map){0};
    c->changes.n = 0;
}

int sqlite_calls_write(struct sqlite_store *s, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < s->calls.changes.n && !rc; i++)
        if (s->calls.changes.v[i].by)
            rc = write_change(s, &s->calls.changes.v[i], e);
    forget_changes(&s->calls);
    return rc;
}

void sqlite_calls_forget(struct sqlite_store *s)
{
    forget_changes(&s->calls);
    map_fini(&s->calls.awaited);
    vec_free(&s->calls.changes);
    s->calls = (struct sqlite_calls){.to = -1};
}

int sqlite_calls_begin(struct sqlite_store *s, struct err *e)
{
    uint64_t from = 0, to = 0;
    if (s->calls.to >= 0)
        return 0;
    int rc = sqlite_about(s, "calls from", &from, e);
    rc = rc ? rc : sqlite_about(s, "calls to", &to, e);
    s->calls.from = (int64_t)from;
    s->calls.to = rc ? -1 : (int64_t)to;
    return rc;
}

/* ---- pairs ---- */

/* Span of a pair. Ids: borrowed. */
struct end {
    const void *trace, *id, *parent; /* parent NULL: none */
    int64_t number, service, begin_ns;
};

static int64_t trace_key(const void *trace)
{
    return (int64_t)map_hash(trace, SPAN_TRACE_BYTES);
}

static int64_t id_key(const void *id)
{
    int64_t key;
    memcpy(&key, id, sizeof key);
    return key;
}

static int change_with_parents(struct sqlite_store *s, const struct end *x, int64_t by, struct err *e)
{
    int step;
    sqlite3_stmt *q = sqlite_statement(s, STATEMENT_PARENTS, e);
    if (!q)
        return e->code;
    sqlite3_bind_blob(q, 1, x->trace, SPAN_TRACE_BYTES, SQLITE_STATIC);
    sqlite3_bind_blob(q, 2, x->parent, SPAN_ID_BYTES, SQLITE_STATIC);
    sqlite3_bind_int64(q, 3, x->service);
    while ((step = sqlite3_step(q)) == SQLITE_ROW)
        change(&s->calls, x->begin_ns, sqlite3_column_int64(q, 0), x->service, by);
    int rc = step == SQLITE_DONE ? 0 : sqlite_fail(s, e);
    sqlite3_reset(q);
    return rc;
}

static int change_with_children(struct sqlite_store *s, const struct end *x, int64_t by, struct err *e)
{
    int step;
    sqlite3_stmt *q = sqlite_statement(s, STATEMENT_CHILDREN, e);
    if (!q)
        return e->code;
    sqlite3_bind_int64(q, 1, trace_key(x->trace));
    sqlite3_bind_int64(q, 2, id_key(x->id));
    sqlite3_bind_blob(q, 3, x->trace, SPAN_TRACE_BYTES, SQLITE_STATIC);
    sqlite3_bind_int64(q, 4, x->service);
    while ((step = sqlite3_step(q)) == SQLITE_ROW)
        change(&s->calls, sqlite3_column_int64(q, 1), x->service, sqlite3_column_int64(q, 0), by);
    int rc = step == SQLITE_DONE ? 0 : sqlite_fail(s, e);
    sqlite3_reset(q);
    return rc;
}

static int change_child(struct sqlite_store *s, enum sqlite_statement what, const struct end *x, struct err *e)
{
    sqlite3_stmt *q = sqlite_statement(s, what, e);
    if (q) {
        sqlite3_bind_int64(q, 1, trace_key(x->trace));
        sqlite3_bind_int64(q, 2, id_key(x->parent));
        sqlite3_bind_int64(q, 3, x->number);
    }
    return sqlite_finish(s, q, e);
}

/* ---- added spans ---- */

void sqlite_note_service(struct map *known, uint64_t ids, int64_t service, bool *fresh)
{
    uint64_t *of = map_put(known, ids, fresh);
    *of = *fresh ? (uint64_t)service : UINT64_MAX;
}

/* Returns whether children of another service may be stored. For new traces, the writer's cache tells. */
static bool may_be_awaited(const struct sqlite_store *s, const struct end *x, bool new_trace)
{
    const uint64_t *by = new_trace ? map_find(&s->calls.awaited, sqlite_ids_hash(x->trace, x->id)) : NULL;
    return !new_trace || (by && *by != (uint64_t)x->service);
}

static int add_to_parents(struct sqlite_store *s, const struct end *x, uint64_t ids, bool new_trace, struct err *e)
{
    const uint64_t *of = new_trace ? map_find(&s->ids, ids) : NULL;
    if (!new_trace || (of && *of == UINT64_MAX))
        return change_with_parents(s, x, 1, e);
    if (of && *of != (uint64_t)x->service)
        change(&s->calls, x->begin_ns, (int64_t)*of, x->service, 1);
    return 0;
}

static void note_awaited(struct sqlite_store *s, uint64_t ids, int64_t service)
{
    bool fresh;
    uint64_t *by = map_put(&s->calls.awaited, ids, &fresh);
    *by = fresh || *by == (uint64_t)service ? (uint64_t)service : UINT64_MAX;
}

int sqlite_calls_add(struct sqlite_store *s, const struct span *span, bool new_trace, struct err *e)
{
    const struct end x = {span->trace_id, span->id, span->parent_id, s->next, s->service, span->begin_ns};
    int rc = may_be_awaited(s, &x, new_trace) ? change_with_children(s, &x, 1, e) : 0;
    if (rc || span_id_is_zero(span->parent_id, SPAN_ID_BYTES))
        return rc;
    const uint64_t ids = sqlite_ids_hash(x.trace, x.parent);
    rc = add_to_parents(s, &x, ids, new_trace, e);
    if (new_trace)
        note_awaited(s, ids, x.service);
    rc = rc ? rc : change_child(s, STATEMENT_NEW_CHILD, &x, e);
    return rc || s->calls.changes.n < MANY_CHANGES ? rc : sqlite_calls_write(s, e);
}

/* ---- deleted spans ---- */

/* Row of STATEMENT_ENDS with copied ids. read_row returns false if it is damaged. */
struct row {
    uint8_t trace[SPAN_TRACE_BYTES], id[SPAN_ID_BYTES], parent[SPAN_ID_BYTES];
    struct end end;
};

static bool read_row(sqlite3_stmt *q, struct row *r)
{
    const void *trace = sqlite3_column_blob(q, 1), *id = sqlite3_column_blob(q, 2), *parent = sqlite3_column_blob(q, 3);
    if (!trace || !id || sqlite3_column_bytes(q, 1) != SPAN_TRACE_BYTES ||
        sqlite3_column_bytes(q, 2) != SPAN_ID_BYTES || (parent && sqlite3_column_bytes(q, 3) != SPAN_ID_BYTES))
        return false;
    memcpy(r->trace, trace, sizeof r->trace);
    memcpy(r->id, id, sizeof r->id);
    if (parent)
        memcpy(r->parent, parent, sizeof r->parent);
    r->end = (struct end){r->trace, r->id, parent ? r->parent : NULL, sqlite3_column_int64(q, 0),
        sqlite3_column_int64(q, 4), sqlite3_column_int64(q, 5)};
    return true;
}

static sqlite3_stmt *ask_for_ends(struct sqlite_store *s, int64_t from, int64_t to, struct err *e)
{
    sqlite3_stmt *q = sqlite_statement(s, STATEMENT_ENDS, e);
    if (q) {
        sqlite3_bind_int64(q, 1, from);
        sqlite3_bind_int64(q, 2, to);
    }
    return q;
}

int sqlite_remove_span(struct sqlite_store *s, int64_t number, struct err *e)
{
    struct row x;
    sqlite3_stmt *q = ask_for_ends(s, number, number + 1, e);
    if (!q)
        return e->code;
    int step = sqlite3_step(q);
    const bool sound = step == SQLITE_ROW && read_row(q, &x);
    int rc = step == SQLITE_ROW || step == SQLITE_DONE ? 0 : sqlite_fail(s, e);
    sqlite3_reset(q);
    if (!rc && sound)
        rc = change_with_children(s, &x.end, -1, e);
    if (!rc && sound && x.end.parent && (number < s->calls.from || number >= s->calls.to)) {
        rc = change_with_parents(s, &x.end, -1, e);
        rc = rc ? rc : change_child(s, STATEMENT_REMOVE_CHILD, &x.end, e);
    }
    if (rc)
        return rc;
    if ((q = sqlite_statement(s, STATEMENT_REMOVE, e)))
        sqlite3_bind_int64(q, 1, number);
    rc = sqlite_finish(s, q, e);
    return rc || s->calls.changes.n < MANY_CHANGES ? rc : sqlite_calls_write(s, e);
}

/* ---- older stores ---- */

static int count_children(struct sqlite_store *s, int64_t from, int64_t to, struct err *e)
{
    int step, rc = 0;
    sqlite3_stmt *q = ask_for_ends(s, from, to, e);
    if (!q)
        return e->code;
    while (!rc && (step = sqlite3_step(q)) == SQLITE_ROW) {
        struct row x;
        if (!read_row(q, &x) || !x.end.parent)
            continue;
        rc = change_with_parents(s, &x.end, 1, e);
        rc = rc ? rc : change_child(s, STATEMENT_NEW_CHILD, &x.end, e);
    }
    rc = rc ? rc : step == SQLITE_DONE ? 0 : sqlite_fail(s, e);
    sqlite3_reset(q);
    return rc;
}

int sqlite_calls_catch_up(struct sqlite_store *s, bool *more, struct err *e)
{
    struct sqlite_calls *c = &s->calls;
    int64_t first = c->to;
    sqlite3_stmt *q = c->from < c->to ? sqlite_statement(s, STATEMENT_FIRST_FROM, e) : NULL;
    if (c->from >= c->to || !q)
        return c->from >= c->to ? 0 : e->code;
    sqlite3_bind_int64(q, 1, c->from);
    int rc = sqlite_first_number(s, q, &first, e);
    first = first && first < c->to ? first : c->to;
    const int64_t next = c->to - first > SPANS_AT_ONCE ? first + SPANS_AT_ONCE : c->to;
    rc = rc ? rc : count_children(s, first, next, e);
    rc = rc ? rc : sqlite_calls_write(s, e);
    rc = rc ? rc : sqlite_set_about(s, "calls from", (uint64_t)next, e);
    c->from = rc ? c->from : next;
    *more |= !rc && c->from < c->to;
    return rc;
}

/* ---- reading ---- */

struct call_sums {
    struct sqlite_store *store;
    struct map places; /* key: both services */
    VEC(struct sqlite_call_change) v;
};

/* Adds rows of parent, child and count. */
static int add_rows(struct call_sums *sums, sqlite3_stmt *q, const int64_t *values, int n, struct err *e)
{
    int step;
    sqlite3_reset(q);
    for (int i = 0; i < n; i++)
        sqlite3_bind_int64(q, i + 1, values[i]);
    while ((step = sqlite3_step(q)) == SQLITE_ROW) {
        const int64_t key[] = {sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1)};
        bool fresh;
        uint64_t *place = map_put(&sums->places, map_hash(key, sizeof key), &fresh);
        if (fresh) {
            *place = sums->v.n;
            vec_push(&sums->v, ((struct sqlite_call_change){0, 0, key[0], key[1], 0}));
        }
        sums->v.v[*place].by += sqlite3_column_int64(q, 2);
    }
    return step == SQLITE_DONE ? 0 : sqlite_fail(sums->store, e);
}

static int add_counted(struct call_sums *sums, const struct database_time *t, struct err *e)
{
    struct call_range ranges[CALL_RANGES];
    sqlite3_stmt *q;
    int rc = 0;
    if (sqlite3_prepare_v2(sums->store->db,
            "SELECT parent, child, sum(n) FROM calls WHERE width = ?1 AND bucket >= ?2 AND bucket < ?3"
            " GROUP BY parent, child",
            -1, &q, NULL) != SQLITE_OK)
        return sqlite_fail(sums->store, e);
    for (size_t i = 0, n = call_ranges(t->begin_s, t->end_s, ranges); i < n && !rc; i++)
        rc = add_rows(sums, q, (const int64_t[]){ranges[i].width_s, ranges[i].from, ranges[i].to}, 3, e);
    sqlite3_finalize(q);
    return rc;
}

static int add_uncounted(struct call_sums *sums, const struct database_time *t, int64_t from, int64_t to, struct err *e)
{
    sqlite3_stmt *q;
    int rc = 0;
    if (sqlite3_prepare_v2(sums->store->db,
            "SELECT p.service, c.service, count(*) FROM spans c CROSS JOIN spans p ON p.trace = c.trace AND"
            " p.id = c.parent WHERE c.number >= ?1 AND c.number < ?2 AND c.begin >= ?3 AND c.begin < ?4"
            " AND p.service <> c.service GROUP BY p.service, c.service",
            -1, &q, NULL) != SQLITE_OK)
        return sqlite_fail(sums->store, e);
    for (; from < to && !rc; from += SPANS_AT_ONCE) {
        const int64_t values[] = {
            from, to - from > SPANS_AT_ONCE ? from + SPANS_AT_ONCE : to, t->begin_s * ns_per_s, t->end_s * ns_per_s};
        rc = t->stop && t->stop(t->stop_arg) ? err_set(e, ERR_BUSY, "nobody waits for the answer any more")
                                             : add_rows(sums, q, values, 4, e);
    }
    sqlite3_finalize(q);
    return rc;
}

/* Finds the numbers of the spans not counted as children. */
static int find_uncounted(struct sqlite_store *s, int64_t *from, int64_t *to, struct err *e)
{
    sqlite3_stmt *q;
    if (sqlite3_prepare_v2(s->db,
            s->schema < 4 ? "SELECT coalesce(min(number), 0), coalesce(max(number) + 1, 0) FROM spans"
                          : "SELECT coalesce((SELECT value FROM about WHERE key = 'calls from'), 0),"
                            " coalesce((SELECT value FROM about WHERE key = 'calls to'), 0)",
            -1, &q, NULL) != SQLITE_OK)
        return sqlite_fail(s, e);
    int rc = sqlite3_step(q) == SQLITE_ROW ? 0 : sqlite_fail(s, e);
    *from = rc ? 0 : sqlite3_column_int64(q, 0);
    *to = rc ? 0 : sqlite3_column_int64(q, 1);
    sqlite3_finalize(q);
    return rc;
}

static int name_service(
    struct sqlite_store *s, sqlite3_stmt *q, int64_t number, struct arena *arena, const char **out, struct err *e)
{
    sqlite3_reset(q);
    sqlite3_bind_int64(q, 1, number);
    int step = sqlite3_step(q);
    *out = step == SQLITE_ROW ? arena_strdup(arena, (const char *)sqlite3_column_text(q, 0)) : "";
    return step == SQLITE_ROW || step == SQLITE_DONE ? 0 : sqlite_fail(s, e);
}

static int by_names(const void *a, const void *b)
{
    const struct database_call *x = a, *y = b;
    int parents = strcmp(x->parent, y->parent);
    return parents ? parents : strcmp(x->child, y->child);
}

static int name_services(struct call_sums *sums, struct arena *arena, struct database_calls *out, struct err *e)
{
    sqlite3_stmt *q;
    int rc = 0;
    if (sqlite3_prepare_v2(sums->store->db, "SELECT text FROM texts WHERE number = ?1", -1, &q, NULL) != SQLITE_OK)
        return sqlite_fail(sums->store, e);
    for (size_t i = 0; i < sums->v.n && !rc; i++) {
        const struct sqlite_call_change *c = &sums->v.v[i];
        struct database_call call = {.count = (uint64_t)c->by};
        rc = name_service(sums->store, q, c->parent, arena, &call.parent, e);
        rc = rc ? rc : name_service(sums->store, q, c->child, arena, &call.child, e);
        if (!rc && c->by > 0)
            vec_push(out, call);
    }
    sqlite3_finalize(q);
    if (out->n)
        qsort(out->v, out->n, sizeof *out->v, by_names);
    return rc;
}

int sqlite_calls(struct span_store *is, const struct database_time *t, struct arena *arena, struct database_calls *out,
    struct err *e)
{
    struct sqlite_store *s = sqlite_of(is);
    struct call_sums sums = {.store = s};
    int64_t from = 0, to = 0;
    int rc = sqlite_run(s, "BEGIN", e); /* snapshot for all reads */
    if (rc)
        return rc;
    rc = find_uncounted(s, &from, &to, e);
    rc = rc || s->schema < 4 ? rc : add_counted(&sums, t, e);
    rc = rc ? rc : add_uncounted(&sums, t, from, to, e);
    rc = rc ? rc : name_services(&sums, arena, out, e);
    struct err ignored = {0};
    sqlite_run(s, "COMMIT", &ignored);
    map_fini(&sums.places);
    vec_free(&sums.v);
    return rc;
}
