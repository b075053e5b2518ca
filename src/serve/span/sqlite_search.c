/* SPDX-License-Identifier: MIT */
/* SQLite: search for the newest spans by terms. Groups are searched in the order of their newest span. Results wait
 * until no remaining group can have a newer one. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "span/newest.h"
#include "span/sqlite.h"

enum { FEW = 256 };

struct group {
    int64_t number, last; /* number -1: spans `from` to `to`, which are in no written group */
    int64_t from, to;
};
struct sqlite_search {
    struct sqlite_store *store;
    struct newest_wanted wanted;
    VEC(struct group) groups;
    struct newest heap;
    size_t next; /* index of groups */
    sqlite3_stmt *terms, *one, *range, *origin;
    struct map origins; /* number → terms of `wanted` that it has, as bits */
};

/* ---- groups ---- */

static int by_newest(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    return x->last != y->last ? (x->last > y->last ? -1 : 1) : (x->from < y->from) - (x->from > y->from);
}

static void add_rest(struct sqlite_search *r, int64_t from, int64_t to)
{
    if (from < to)
        vec_push(&r->groups, ((struct group){-1, INT64_MAX, from, to}));
}

static int read_groups(struct sqlite_search *r, const struct span_query *q, struct err *e)
{
    sqlite3_stmt *s;
    int step;
    int64_t from = 0;
    if (r->store->schema < 3) {
        add_rest(r, 0, INT64_MAX);
        return 0;
    }
    if (sqlite3_prepare_v2(
            r->store->db, "SELECT number, first, last, longest FROM groups ORDER BY number", -1, &s, NULL) != SQLITE_OK)
        return sqlite_fail(r->store, e);
    while ((step = sqlite3_step(s)) == SQLITE_ROW) {
        const int64_t number = sqlite3_column_int64(s, 0), first = sqlite3_column_int64(s, 1),
                      last = sqlite3_column_int64(s, 2);
        add_rest(r, from, number * TERM_GROUP);
        from = (number + 1) * TERM_GROUP;
        if (first < q->end_ns && last >= q->begin_ns && sqlite3_column_int64(s, 3) >= q->least_ns)
            vec_push(&r->groups, ((struct group){number, last, number * TERM_GROUP, from}));
    }
    add_rest(r, from, INT64_MAX);
    int rc = step == SQLITE_DONE ? 0 : sqlite_fail(r->store, e);
    sqlite3_finalize(s);
    if (r->groups.n)
        qsort(r->groups.v, r->groups.n, sizeof *r->groups.v, by_newest);
    return rc;
}

/* ---- terms of a group ---- */

static int read_blob(struct sqlite_search *r, int64_t number, const void **blob, size_t *n, struct err *e)
{
    sqlite3_reset(r->terms);
    sqlite3_bind_int64(r->terms, 1, number);
    int step = sqlite3_step(r->terms);
    *blob = step == SQLITE_ROW ? sqlite3_column_blob(r->terms, 0) : NULL;
    *n = step == SQLITE_ROW ? (size_t)sqlite3_column_bytes(r->terms, 0) : 0;
    return step == SQLITE_ROW || step == SQLITE_DONE ? 0 : sqlite_fail(r->store, e);
}

static int read_term(struct sqlite_search *r, int64_t group, uint64_t term, struct term_set *out, struct err *e)
{
    const void *blob;
    size_t n;
    int rc = read_blob(r, SQLITE_TERMS_KEY(group, term_bucket_key(term)), &blob, &n, e);
    if (rc)
        return rc;
    term_read_bucket(term, blob, n, out);
    rc = read_blob(r, SQLITE_TERMS_KEY(group, term_set_key(term)), &blob, &n, e);
    if (!rc)
        term_read_set(blob, n, out);
    return rc;
}

/* Finds the places in the group that may have all wanted terms. */
static int intersect(struct sqlite_search *r, int64_t group, struct term_set *out, size_t *n, struct err *e)
{
    int rc = 0;
    for (size_t w = 0; w < TERM_WORDS; w++)
        out->words[w] = UINT64_MAX;
    *n = TERM_GROUP;
    for (size_t i = 0; i < r->wanted.v.n && *n && !rc; i++) {
        struct term_set has = {0};
        rc = read_term(r, group, r->wanted.v.v[i].term, &has, e);
        if (!rc && r->wanted.v.v[i].any != r->wanted.v.v[i].term)
            rc = read_term(r, group, r->wanted.v.v[i].any, &has, e);
        *n = 0;
        for (size_t w = 0; w < TERM_WORDS; w++)
            *n += (size_t)__builtin_popcountll(out->words[w] &= has.words[w]);
    }
    return rc;
}

/* ---- terms of a span in no written group ---- */

static int origin_bits(struct sqlite_search *r, int64_t origin, uint64_t *bits, struct err *e)
{
    bool fresh;
    struct newest_having h = {&r->wanted, 0};
    uint64_t *known = map_put(&r->origins, (uint64_t)origin, &fresh);
    if (fresh) {
        sqlite3_reset(r->origin);
        sqlite3_bind_int64(r->origin, 1, origin);
        int step = sqlite3_step(r->origin);
        if (step != SQLITE_ROW && step != SQLITE_DONE)
            return sqlite_fail(r->store, e);
        if (step == SQLITE_ROW) {
            struct wire_in in = wire_of(sqlite3_column_blob(r->origin, 0), (size_t)sqlite3_column_bytes(r->origin, 0));
            span_each_origin_term(&in, newest_note, &h);
        }
        *known = h.bits;
    }
    *bits = *known;
    return 0;
}

static int has_all(struct sqlite_search *r, bool *all, struct err *e)
{
    struct newest_having h = {&r->wanted, 0};
    struct wire_in in = wire_of(sqlite3_column_blob(r->range, 3), (size_t)sqlite3_column_bytes(r->range, 3));
    int rc = origin_bits(r, sqlite3_column_int64(r->range, 2), &h.bits, e);
    if (!rc && !newest_has_all(&h))
        span_each_term(&in, newest_note, &h);
    *all = newest_has_all(&h);
    return rc;
}

/* ---- looking at groups ---- */

/* Searches a range of spans. set NULL: by each span's terms. */
static int look_at_range(struct sqlite_search *r, const struct group *g, const struct term_set *set, struct err *e)
{
    int step, rc = 0;
    sqlite3_reset(r->range);
    sqlite3_bind_int64(r->range, 9, g->from);
    sqlite3_bind_int64(r->range, 10, g->to);
    while (!rc && (step = sqlite3_step(r->range)) == SQLITE_ROW) {
        const struct newest_span f = {sqlite3_column_int64(r->range, 1), sqlite3_column_int64(r->range, 0), 0, 0};
        const uint64_t place = (uint64_t)f.number % TERM_GROUP;
        bool has = set && set->words[place / 64] >> place % 64 & 1;
        if (!set)
            rc = has_all(r, &has, e);
        if (!rc && has)
            newest_push(&r->heap, f);
    }
    return rc ? rc : step == SQLITE_DONE ? 0 : sqlite_fail(r->store, e);
}

static int look_at_few(struct sqlite_search *r, const struct group *g, const struct term_set *set, struct err *e)
{
    for (int64_t w = 0; w < TERM_WORDS; w++)
        for (uint64_t word = set->words[w]; word; word &= word - 1) {
            const int64_t number = g->from + w * 64 + __builtin_ctzll(word);
            sqlite3_reset(r->one);
            sqlite3_bind_int64(r->one, 9, number);
            int step = sqlite3_step(r->one);
            if (step == SQLITE_ROW)
                newest_push(&r->heap, (struct newest_span){sqlite3_column_int64(r->one, 0), number, 0, 0});
            else if (step != SQLITE_DONE)
                return sqlite_fail(r->store, e);
        }
    return 0;
}

static int look_at(struct sqlite_search *r, const struct group *g, struct err *e)
{
    struct term_set set;
    size_t n;
    if (g->number < 0)
        return look_at_range(r, g, NULL, e);
    int rc = intersect(r, g->number, &set, &n, e);
    if (rc || !n)
        return rc;
    return n > FEW ? look_at_range(r, g, &set, e) : look_at_few(r, g, &set, e);
}

int sqlite_search_next(struct sqlite_search *r, int64_t *number, struct err *e)
{
    int rc = 0;
    while (!rc && r->next < r->groups.n && (!r->heap.v.n || r->heap.v.v[0].begin_ns <= r->groups.v[r->next].last))
        rc = look_at(r, &r->groups.v[r->next++], e);
    if (rc || !r->heap.v.n)
        return rc;
    *number = newest_pop(&r->heap).number;
    return 1;
}

/* ---- begin and end ---- */

void sqlite_search_end(struct sqlite_search *r)
{
    if (!r)
        return;
    sqlite3_finalize(r->terms);
    sqlite3_finalize(r->one);
    sqlite3_finalize(r->range);
    sqlite3_finalize(r->origin);
    vec_free(&r->wanted.v);
    vec_free(&r->groups);
    vec_free(&r->heap.v);
    map_fini(&r->origins);
    free(r);
}

static int prepare(struct sqlite_search *r, const struct span_query *q, const char *what, const char *more,
    sqlite3_stmt **out, struct err *e)
{
    struct text sql = {.fd = -1};
    text_puts(&sql, what);
    if (more) {
        sqlite_write_condition(q, &sql);
        text_puts(&sql, more);
    }
    int rc = sqlite3_prepare_v2(r->store->db, text_cstr(&sql), -1, out, NULL) == SQLITE_OK ? 0
                                                                                           : sqlite_fail(r->store, e);
    text_fini(&sql);
    if (!rc && more)
        sqlite_bind_condition(q, *out);
    return rc;
}

int sqlite_search_begin(struct sqlite_store *s, const struct span_query *q, struct sqlite_search **out, struct err *e)
{
    struct sqlite_search *r = mem_zalloc(sizeof *r);
    r->store = s;
    newest_want(&r->wanted, q);
    int rc = s->schema < 3 ? 0 : prepare(r, q, "SELECT spans FROM terms WHERE number = ?1", NULL, &r->terms, e);
    rc = rc ? rc : prepare(r, q, "SELECT body FROM origins WHERE number = ?1", NULL, &r->origin, e);
    rc = rc ? rc : prepare(r, q, "SELECT begin FROM spans WHERE 1", " AND number = ?9", &r->one, e);
    rc = rc ? rc
            : prepare(r, q, "SELECT number, begin, origin, body FROM spans NOT INDEXED WHERE 1",
                  " AND number >= ?9 AND number < ?10", &r->range, e);
    rc = rc ? rc : read_groups(r, q, e);
    if (rc)
        sqlite_search_end(r);
    else
        *out = r;
    return rc;
}

/* ---- conditions ---- */

void sqlite_write_condition(const struct span_query *q, struct text *sql)
{
    if (q->trace_id)
        TEXT_PUT(sql, " AND trace = ?1");
    if (q->service)
        TEXT_PUT(sql, " AND service = (SELECT number FROM texts WHERE text = ?2)");
    else if (q->by_time && !q->trace_id && !newest_is_search(q))
        TEXT_PUT(sql, " AND service IN (SELECT service FROM operations)");
    if (q->name)
        TEXT_PUT(sql, " AND name = (SELECT number FROM texts WHERE text = ?3)");
    if (q->by_time)
        TEXT_PUT(sql, " AND begin >= ?4 AND begin < ?5");
    if (q->least_ns)
        TEXT_PUT(sql, " AND lasted >= ?7");
    if (q->most_ns)
        TEXT_PUT(sql, " AND lasted <= ?8");
}

void sqlite_bind_condition(const struct span_query *q, sqlite3_stmt *s)
{
    if (q->trace_id)
        sqlite3_bind_blob(s, 1, q->trace_id, SPAN_TRACE_BYTES, SQLITE_TRANSIENT);
    if (q->service)
        sqlite3_bind_text(s, 2, q->service, -1, SQLITE_TRANSIENT);
    if (q->name)
        sqlite3_bind_text(s, 3, q->name, -1, SQLITE_TRANSIENT);
    if (q->by_time) {
        sqlite3_bind_int64(s, 4, q->begin_ns);
        sqlite3_bind_int64(s, 5, q->end_ns);
    }
    if (q->least_ns)
        sqlite3_bind_int64(s, 7, q->least_ns);
    if (q->most_ns)
        sqlite3_bind_int64(s, 8, q->most_ns);
    if (q->limit)
        sqlite3_bind_int64(s, 6, q->limit > INT64_MAX ? INT64_MAX : (int64_t)q->limit);
}
