/* SPDX-License-Identifier: MIT */
/* PostgreSQL: calls from service to service, counted in the transactions that add and delete spans. The counts cover
 * all stored pairs of a parent and a counted child. Their keys include the days of both, so that counts are deleted
 * with the tables of their days. All children are counted except those in `uncounted`: spans of an older store, which
 * are counted later. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "span/calls.h"
#include "span/postgres.h"

#define ENDS "day, trace, id, parent, hash, service, begin"
enum { TRACES_AT_ONCE = 500, N_ENDS = 7 };
static const int64_t day_s = 86400;

/* ---- counts of spans in `moved`, which also are in their tables ---- */

#define PAIR "SELECT p.day AS parent_day, c.day AS child_day, p.service AS parent, c.service AS child, c.begin FROM "
#define ON_PARENT " ON p.trace = c.trace AND p.id = c.parent AND p.service <> c.service"
#define MOVED(x) "EXISTS (SELECT FROM moved m WHERE m.trace = " x ".trace AND m.id = " x ".id AND m.hash = " x ".hash)"
#define COUNTED "NOT EXISTS (SELECT FROM uncounted u WHERE u.day = c.day AND (u.after IS NULL OR c.trace > u.after))"

/* Pairs within `moved`; with a parent outside; with a child outside. */
static const char *const pairs[] = {
    PAIR "moved c JOIN moved p" ON_PARENT " WHERE " COUNTED,
    PAIR "moved c JOIN spans p" ON_PARENT " WHERE NOT " MOVED("p") " AND " COUNTED,
    PAIR "moved p JOIN spans c" ON_PARENT " WHERE NOT " MOVED("c") " AND " COUNTED,
};
static const char *const of_known[] = {"", " AND c.trace = ANY ($1)", " AND p.trace = ANY ($1)"};
static const char *const other_end[] = {"", "p", "c"};

/* Number of columns of a key of `calls`. */
enum { KEY = 6 };
#define KEYS "width, bucket, parent, child, parent_day, child_day"

/* Deletes the rows of keys whose count is 0. */
static int delete_zeros(struct postgres *p, const PGresult *keys, struct err *e)
{
    struct text columns[KEY];
    struct postgres_values v = {0};
    if (!PQntuples(keys))
        return 0;
    for (int k = 0; k < KEY; k++) {
        postgres_array(&columns[k], POSTGRES_NUMBERS, (size_t)PQntuples(keys));
        for (int i = 0; i < PQntuples(keys); i++)
            postgres_array_number(&columns[k], postgres_number(keys, i, k));
        postgres_put_array(&v, &columns[k]);
    }
    int rc = postgres_ask(p,
        "DELETE FROM calls c USING unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],"
        " $6::bigint[]) AS z (w, b, p, c, pd, cd) WHERE width = w AND bucket = b AND parent = z.p AND child = z.c"
        " AND parent_day = pd AND child_day = cd AND n = 0",
        &v, NULL, e);
    for (int k = 0; k < KEY; k++)
        text_fini(&columns[k]);
    return rc;
}

/* Adds `by` for each pair. */
static int count(struct postgres *p, const char *of_pairs, int by, const struct postgres_values *v, struct err *e)
{
    struct text sql = {.fd = -1};
    PGresult *zeros;
    text_printf(&sql,
        "WITH counted AS (INSERT INTO calls (" KEYS ", n)"
        " SELECT w, begin / 1000000000 / w, parent, child, parent_day, child_day, %d * count(*) FROM (%s) pairs,"
        " unnest('{",
        by, of_pairs);
    for (size_t i = 0; i < CALL_WIDTHS; i++)
        text_printf(&sql, "%s%lld", i ? "," : "", (long long)call_widths_s[i]);
    text_puts(&sql,
        "}'::bigint[]) w WHERE begin >= 0 GROUP BY 1, 2, 3, 4, 5, 6"
        " ON CONFLICT (" KEYS ") DO UPDATE SET n = calls.n + excluded.n RETURNING *)"
        " SELECT width, bucket, parent, child, parent_day::bigint, child_day::bigint FROM counted WHERE n = 0");
    int rc = postgres_ask(p, text_cstr(&sql), v, &zeros, e);
    text_fini(&sql);
    if (rc)
        return rc;
    rc = delete_zeros(p, zeros, e);
    PQclear(zeros);
    return rc;
}

int postgres_calls_moved(struct postgres *p, struct err *e)
{
    int rc = postgres_ask(p,
        "CREATE TEMPORARY TABLE IF NOT EXISTS moved (day integer, trace uuid, id bytea, parent bytea, hash bigint,"
        " service bigint, begin bigint) ON COMMIT DELETE ROWS",
        NULL, NULL, e);
    return rc ? rc : postgres_ask(p, "CREATE INDEX IF NOT EXISTS moved_by_id ON moved (trace, id)", NULL, NULL, e);
}

/* Lists the days that may have an end of a pair outside of `moved`: those with spans of its traces. One lookup per
 * trace and day replaces one per span, direction and day. */
static int list_days(struct postgres *p, const struct postgres_calls *calls, struct text *out, struct err *e)
{
    struct postgres_values v = {0};
    PGresult *r;
    char sql[300];
    snprintf(sql, sizeof sql,
        "SELECT d.day::bigint FROM days d CROSS JOIN LATERAL (SELECT FROM spans s WHERE s.day = d.day"
        " AND s.trace = ANY (%s) LIMIT 1) has",
        calls ? "$1" : "ARRAY(SELECT DISTINCT trace FROM moved)");
    if (calls)
        postgres_put_array(&v, &calls->known);
    int rc = postgres_ask(p, sql, &v, &r, e);
    if (rc)
        return rc;
    text_printf(out, "%d,%d", POSTGRES_OPEN, POSTGRES_OTHER);
    for (int i = 0; i < PQntuples(r); i++)
        text_printf(out, ",%lld", (long long)postgres_number(r, i, 0));
    PQclear(r);
    return 0;
}

static int count_pairs(
    struct postgres *p, size_t kind, int by, const struct postgres_calls *calls, const char *days, struct err *e)
{
    struct postgres_values v = {0};
    struct text sql = {.fd = -1};
    text_puts(&sql, pairs[kind]);
    if (kind)
        text_printf(&sql, " AND %s.day IN (%s)%s", other_end[kind], days, calls ? of_known[kind] : "");
    if (kind && calls)
        postgres_put_array(&v, &calls->known);
    int rc = count(p, text_cstr(&sql), by, &v, e);
    text_fini(&sql);
    return rc;
}

int postgres_calls_count(struct postgres *p, bool come, const struct postgres_calls *calls, struct err *e)
{
    const size_t n = !calls || calls->n_known ? 3 : 1;
    struct text days = {.fd = -1};
    /* Index scans only: few rows are looked up in large tables, which must not be read as a whole. */
    int rc = postgres_ask(p, POSTGRES_BY_INDEX, NULL, NULL, e);
    rc = rc || n == 1 ? rc : list_days(p, calls, &days, e);
    for (size_t i = 0; i < n && !rc; i++)
        rc = count_pairs(p, i, come ? 1 : -1, calls, text_cstr(&days), e);
    text_fini(&days);
    return rc ? rc : postgres_ask(p, "DELETE FROM moved", NULL, NULL, e);
}

int postgres_calls_remove(struct postgres *p, struct err *e, const char *table, const char *condition)
{
    int rc = postgres_calls_moved(p, e);
    rc = rc ? rc : postgres_change(p, e, "INSERT INTO moved SELECT " ENDS " FROM %s WHERE %s", table, condition);
    rc = rc ? rc : postgres_calls_count(p, false, NULL, e);
    return rc ? rc : postgres_ask(p, POSTGRES_AS_USUAL, NULL, NULL, e);
}

int postgres_calls_drop_day(struct postgres *p, int32_t day, struct err *e)
{
    int rc = postgres_change(p, e, "DELETE FROM calls WHERE parent_day = %d OR child_day = %d", day, day);
    rc = rc ? rc : postgres_change(p, e, "DELETE FROM unnumbered WHERE day = %d", day);
    return rc || day < 0 ? rc : postgres_change(p, e, "DELETE FROM uncounted WHERE day = %d", day);
}

/* Deletes the uncounted and unnumbered days that have no table. */
static int drop_gone_days(struct postgres *p, struct err *e)
{
    int rc = postgres_ask(p, "DELETE FROM uncounted WHERE NOT " POSTGRES_HAS_TABLE, NULL, NULL, e);
    return rc ? rc : postgres_ask(p, "DELETE FROM unnumbered WHERE NOT " POSTGRES_HAS_TABLE, NULL, NULL, e);
}

int postgres_calls_tidy(struct postgres *p, struct err *e)
{
    int rc = drop_gone_days(p, e);
    return rc ? rc
              : postgres_ask(p,
                    "DELETE FROM calls WHERE (parent_day >= 0 AND parent_day NOT IN (SELECT day FROM days))"
                    " OR (child_day >= 0 AND child_day NOT IN (SELECT day FROM days))",
                    NULL, NULL, e);
}

/* ---- batches ---- */

/* Compares a child's parent with a span; spans are sorted by ids. */
static int find_by_ids(const void *key, const void *item)
{
    const struct postgres_span *child = key, *x = item;
    int traces = memcmp(child->trace, x->trace, sizeof x->trace);
    return traces ? traces : memcmp(child->parent, x->id, sizeof x->id);
}

static bool have_calls(const struct postgres *p)
{
    const struct postgres_span *v = p->spans.v, *end = v + p->spans.n, *x;
    for (const struct postgres_span *child = v; child < end; child++) {
        x = child->has_parent ? bsearch(child, v, p->spans.n, sizeof *v, find_by_ids) : NULL;
        while (x && x > v && !find_by_ids(child, x - 1))
            x--;
        for (; x && x < end && !find_by_ids(child, x); x++)
            if (x->service != child->service)
                return true;
    }
    return false;
}

int postgres_calls_look(struct postgres *p, struct postgres_calls *out, struct err *e)
{
    struct text traces;
    *out = (struct postgres_calls){.known = {.fd = -1}};
    struct postgres_values v = {0};
    PGresult *r;
    size_t n = 0;
    for (size_t i = 0; i < p->spans.n; i++)
        n += !i || memcmp(p->spans.v[i - 1].trace, p->spans.v[i].trace, SPAN_TRACE_BYTES) != 0;
    postgres_array(&traces, POSTGRES_UUIDS, n);
    for (size_t i = 0; i < p->spans.n; i++)
        if (!i || memcmp(p->spans.v[i - 1].trace, p->spans.v[i].trace, SPAN_TRACE_BYTES) != 0)
            postgres_array_item(&traces, p->spans.v[i].trace, SPAN_TRACE_BYTES);
    postgres_put_array(&v, &traces);
    int rc = postgres_ask(p, POSTGRES_BY_INDEX, NULL, NULL, e);
    rc = rc ? rc
            : postgres_ask(p, "SELECT t FROM unnest($1::uuid[]) t WHERE EXISTS (SELECT FROM spans s WHERE s.trace = t)",
                  &v, &r, e);
    text_fini(&traces);
    if (rc)
        return rc;
    out->n_known = (size_t)PQntuples(r);
    out->any = out->n_known || have_calls(p);
    postgres_array(&out->known, POSTGRES_UUIDS, out->n_known);
    for (int i = 0; i < PQntuples(r); i++)
        postgres_array_item(&out->known, PQgetvalue(r, i, 0), (size_t)PQgetlength(r, i, 0));
    PQclear(r);
    return out->any ? postgres_calls_moved(p, e) : 0;
}

int postgres_calls_copy(struct postgres *p, struct err *e)
{
    struct text rows;
    postgres_begin_copy(&rows);
    for (size_t i = 0; i < p->spans.n; i++) {
        const struct postgres_span *x = &p->spans.v[i];
        postgres_put_16(&rows, N_ENDS);
        postgres_put_32(&rows, 4);
        postgres_put_32(&rows, (uint32_t)x->day);
        postgres_array_item(&rows, x->trace, sizeof x->trace);
        postgres_array_item(&rows, x->id, sizeof x->id);
        if (x->has_parent)
            postgres_array_item(&rows, x->parent, sizeof x->parent);
        else
            postgres_put_32(&rows, UINT32_MAX);
        postgres_array_number(&rows, x->hash);
        postgres_array_number(&rows, p->texts.v.v[x->service].number);
        postgres_array_number(&rows, x->begin);
    }
    postgres_put_16(&rows, UINT16_MAX);
    int rc = postgres_copy(p, "COPY moved (" ENDS ") FROM STDIN (FORMAT binary)", &rows, e);
    text_fini(&rows);
    return rc;
}

/* ---- older stores ---- */

struct uncounted {
    int32_t day;
    bool begun;
};

static int next_uncounted(struct postgres *p, struct uncounted *out, bool *any, struct err *e)
{
    PGresult *r;
    int rc = postgres_ask(p,
        "SELECT day::bigint, (after IS NOT NULL)::int::bigint FROM uncounted ORDER BY day DESC LIMIT 1", NULL, &r, e);
    if (rc)
        return rc;
    if ((*any = PQntuples(r)))
        *out = (struct uncounted){(int32_t)postgres_number(r, 0, 0), postgres_number(r, 0, 1)};
    PQclear(r);
    return 0;
}

static int begin_day(struct postgres *p, int32_t day, struct err *e)
{
    return postgres_change(
        p, e, "UPDATE uncounted SET after = '00000000-0000-0000-0000-000000000000' WHERE day = %d", day);
}

/* Counts the next traces of a day. */
static int count_some(struct postgres *p, int32_t day, const char *table, struct err *e)
{
    char sql[600];
    PGresult *r;
    struct postgres_values v = {0};
    uint8_t last[SPAN_TRACE_BYTES];
    snprintf(sql, sizeof sql,
        "SELECT trace FROM %s WHERE trace > (SELECT after FROM uncounted WHERE day = %d) ORDER BY trace OFFSET %d"
        " LIMIT 1",
        table, day, TRACES_AT_ONCE);
    int rc = postgres_ask(p, sql, NULL, &r, e);
    if (rc)
        return rc;
    const bool more = PQntuples(r) && PQgetlength(r, 0, 0) == sizeof last;
    memset(last, 0xff, sizeof last);
    if (more)
        memcpy(last, PQgetvalue(r, 0, 0), sizeof last);
    PQclear(r);
    postgres_put_uuid(&v, last);
    snprintf(sql, sizeof sql,
        PAIR "%s c JOIN spans p" ON_PARENT
             " WHERE c.trace > (SELECT after FROM uncounted WHERE day = %d) AND c.trace <= $1",
        table, day);
    rc = count(p, sql, 1, &v, e);
    if (rc || !more)
        return rc ? rc : postgres_change(p, e, "DELETE FROM uncounted WHERE day = %d", day);
    snprintf(sql, sizeof sql, "UPDATE uncounted SET after = $1 WHERE day = %d", day);
    return postgres_ask(p, sql, &v, NULL, e);
}

/* Counts some spans, in a transaction. *lacks: the day to be counted next lacks indexes. */
static int catch_up_some(struct postgres *p, bool indexed, struct uncounted *u, bool *more, bool *lacks, struct err *e)
{
    char table[32];
    int rc = postgres_lock(p, e);
    rc = rc ? rc : postgres_ask(p, POSTGRES_BY_INDEX, NULL, NULL, e);
    rc = rc ? rc : drop_gone_days(p, e);
    const int32_t day = u->day;
    rc = rc ? rc : next_uncounted(p, u, more, e);
    p->caught_up = !rc && !*more;
    if (!rc && *more) {
        *lacks = !u->begun && !(indexed && u->day == day);
        postgres_day_table(u->day, table, sizeof table);
        if (!*lacks)
            rc = u->begun ? count_some(p, u->day, table, e) : begin_day(p, u->day, e);
    }
    if (p->caught_up) /* indexes of all tables exist */
        rc = rc ? rc : postgres_terms_catch_up(p, more, e);
    return rc;
}

static int catch_up_once(
    struct span_store *s, bool indexed, struct uncounted *u, bool *more, bool *lacks, struct err *e)
{
    struct postgres *p = postgres_of(s);
    int rc = postgres_ask(p, "BEGIN", NULL, NULL, e);
    if (rc)
        return rc;
    rc = catch_up_some(p, indexed, u, more, lacks, e);
    rc = rc ? rc : postgres_ask(p, "COMMIT", NULL, NULL, e);
    if (rc)
        postgres_rollback(s);
    return rc;
}

int postgres_catch_up(struct span_store *s, bool *more, struct err *e)
{
    struct postgres *p = postgres_of(s);
    struct uncounted u = {0};
    char table[32];
    bool lacks = false, whole = false;
    if (p->caught_up && p->terms_are_whole)
        return 0;
    *more = false;
    if (postgres_index_is_busy(p))
        return 0;
    int rc = postgres_ready(p, e);
    rc = rc ? rc : catch_up_once(s, false, &u, more, &lacks, e);
    if (rc || !lacks)
        return rc;
    postgres_day_table(u.day, table, sizeof table);
    rc = postgres_index_day(p, table, &whole, e);
    if (!rc && whole)
        return catch_up_once(s, true, &u, more, &lacks, e);
    *more = false; /* retried when the index exists */
    return rc;
}

/* ---- reading ---- */

static int by_names(const void *a, const void *b)
{
    const struct database_call *x = a, *y = b;
    int parents = strcmp(x->parent, y->parent);
    return parents ? parents : strcmp(x->child, y->child);
}

/* Adds rows of parent, child and count. */
static int add_rows(struct postgres *p, const char *sql, const struct postgres_values *v, struct arena *arena,
    struct database_calls *out, struct err *e)
{
    PGresult *r;
    int rc = postgres_ask(p, sql, v, &r, e);
    for (int i = 0; !rc && i < PQntuples(r); i++)
        vec_push(out,
            ((struct database_call){arena_strdup(arena, postgres_text(r, i, 0)),
                arena_strdup(arena, postgres_text(r, i, 1)), (uint64_t)postgres_number(r, i, 2)}));
    if (!rc)
        PQclear(r);
    return rc;
}

static void add_up(struct database_calls *calls)
{
    size_t kept = 0;
    if (calls->n)
        qsort(calls->v, calls->n, sizeof *calls->v, by_names);
    for (size_t i = 0; i < calls->n; i++)
        if (kept && !by_names(&calls->v[kept - 1], &calls->v[i]))
            calls->v[kept - 1].count += calls->v[i].count;
        else
            calls->v[kept++] = calls->v[i];
    calls->n = kept;
}

#define NAMED(from) \
    "SELECT a.text, b.text, n FROM (" from ") calls JOIN texts a ON a.number = parent JOIN texts b ON b.number = child"

static int add_counted(
    struct postgres *p, const struct database_time *t, struct arena *arena, struct database_calls *out, struct err *e)
{
    struct call_range ranges[CALL_RANGES];
    struct text parts[3];
    struct postgres_values v = {0};
    const size_t n = call_ranges(t->begin_s, t->end_s, ranges);
    for (size_t k = 0; k < 3; k++)
        postgres_array(&parts[k], POSTGRES_NUMBERS, n);
    for (size_t i = 0; i < n; i++) {
        postgres_array_number(&parts[0], ranges[i].width_s);
        postgres_array_number(&parts[1], ranges[i].from);
        postgres_array_number(&parts[2], ranges[i].to);
    }
    for (size_t k = 0; k < 3; k++)
        postgres_put_array(&v, &parts[k]);
    int rc = add_rows(p,
        NAMED("SELECT parent, child, sum(n)::bigint AS n FROM unnest($1::bigint[], $2::bigint[], $3::bigint[])"
              " AS r (w, f, t) CROSS JOIN LATERAL (SELECT parent, child, n FROM calls WHERE width = w AND bucket >= f"
              " AND bucket < t OFFSET 0) c GROUP BY parent, child HAVING sum(n) > 0"),
        &v, arena, out, e);
    for (size_t k = 0; k < 3; k++)
        text_fini(&parts[k]);
    return rc;
}

static int add_uncounted(struct postgres *p, const struct database_time *t, int32_t day, struct arena *arena,
    struct database_calls *out, struct err *e)
{
    char table[32], sql[900];
    struct postgres_values v = {0};
    postgres_day_table(day, table, sizeof table);
    snprintf(sql, sizeof sql,
        NAMED("SELECT parent, child, count(*) AS n FROM (" PAIR "%s c JOIN spans p" ON_PARENT
              " WHERE c.begin >= $1 AND c.begin < $2%s) pairs GROUP BY parent, child"),
        table,
        p->version < 2 ? ""
                       : " AND c.trace > (SELECT coalesce(after, '00000000-0000-0000-0000-000000000000')"
                         " FROM uncounted u WHERE u.day = c.day)");
    postgres_put_number(&v, t->begin_s * NS_PER_S);
    postgres_put_number(&v, t->end_s * NS_PER_S);
    return add_rows(p, sql, &v, arena, out, e);
}

/* Counts day by day, so that it can be stopped. */
static int add_all_uncounted(
    struct postgres *p, const struct database_time *t, struct arena *arena, struct database_calls *out, struct err *e)
{
    PGresult *r;
    int rc = postgres_ask(p,
        p->version < 2 ? "SELECT day::bigint FROM days" : "SELECT day::bigint FROM uncounted WHERE " POSTGRES_HAS_TABLE,
        NULL, &r, e);
    if (rc)
        return rc;
    for (int i = 0; i < PQntuples(r) && !rc; i++) {
        const int64_t day = postgres_number(r, i, 0);
        if (t->stop && t->stop(t->stop_arg))
            rc = err_set(e, ERR_BUSY, "nobody waits for the answer any more");
        else if (day < 0 || (day * day_s < t->end_s && (day + 1) * day_s > t->begin_s))
            rc = add_uncounted(p, t, (int32_t)day, arena, out, e);
    }
    PQclear(r);
    return rc;
}

int postgres_calls(
    struct span_store *s, const struct database_time *t, struct arena *arena, struct database_calls *out, struct err *e)
{
    struct postgres *p = postgres_of(s);
    struct err ignored = {0};
    int rc = postgres_ask_anew(p, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL, NULL, e);
    if (rc)
        return rc;
    rc = p->version < 2 ? 0 : add_counted(p, t, arena, out, e);
    rc = rc ? rc : add_all_uncounted(p, t, arena, out, e);
    postgres_ask(p, rc ? "ROLLBACK" : "COMMIT", NULL, NULL, &ignored);
    add_up(out);
    return rc;
}
