/* SPDX-License-Identifier: MIT */
/* PostgreSQL: reading. Rows are read by cursors in one read-only transaction: a snapshot as of its begin, within which
 * origins can be looked up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/time.h"
#include "span/newest.h"
#include "span/postgres.h"

enum { FIRST_ROWS = 32, MOST_ROWS = 512, MOST_FETCHED_BYTES = 4 << 20 };
static const int64_t day_ns = 86400 * NS_PER_S;

struct database_rows {
    struct postgres *store;
    PGresult *rows, *origin;
    struct postgres_search *search; /* NULL: rows are read by a cursor */
    int at, wanted;                 /* position in rows; number of rows per fetch */
    unsigned name;
};

/* ---- spans ---- */

/* Skips the tables of other days. */
void postgres_write_days(const struct span_query *q, struct text *sql)
{
    if (q->by_time)
        text_printf(sql, " AND (day < 0 OR (day >= %lld AND day <= %lld))", (long long)(q->begin_ns / day_ns - 1),
            (long long)(q->end_ns / day_ns));
}

void postgres_write_condition(const struct span_query *q, struct text *sql, struct postgres_values *v)
{
    uint64_t hash[2];
    if (q->trace_id) {
        postgres_put_uuid(v, q->trace_id);
        text_printf(sql, " AND trace = $%d", v->n);
    }
    const char *const names[] = {q->service, q->name}, *const columns[] = {"service", "name"};
    for (int i = 0; i < 2; i++)
        if (names[i]) {
            postgres_hash(names[i], strlen(names[i]), hash);
            memcpy(v->room + POSTGRES_MOST_VALUES - 4 + 2 * i, hash, sizeof hash);
            postgres_put_uuid(v, v->room + POSTGRES_MOST_VALUES - 4 + 2 * i);
            text_printf(sql, " AND %s = (SELECT number FROM texts WHERE hash = $%d)", columns[i], v->n);
        }
    if (q->by_time) {
        postgres_put_number(v, q->begin_ns);
        postgres_put_number(v, q->end_ns);
        text_printf(sql, " AND begin >= $%d AND begin < $%d", v->n - 1, v->n);
    }
    if (q->least_ns) {
        postgres_put_number(v, q->least_ns);
        text_printf(sql, " AND lasted >= $%d", v->n);
    }
    if (q->most_ns) {
        postgres_put_number(v, q->most_ns);
        text_printf(sql, " AND lasted <= $%d", v->n);
    }
}

static void write_select(const struct span_query *q, struct text *sql, struct postgres_values *v)
{
    TEXT_PUT(sql, " FOR SELECT origin, body FROM spans WHERE true");
    postgres_write_condition(q, sql, v);
    postgres_write_days(q, sql);
    if (!q->any_order)
        text_puts(sql, q->newest_first ? " ORDER BY begin DESC, came DESC, id DESC" : " ORDER BY begin, came, id");
    if (q->limit)
        text_printf(sql, " LIMIT %llu", (unsigned long long)(q->limit > INT64_MAX ? INT64_MAX : q->limit));
}

void postgres_end(struct database_rows *r)
{
    struct postgres *p = r->store;
    struct err ignored = {0};
    PQclear(r->rows);
    PQclear(r->origin);
    postgres_search_end(r->search);
    if (--p->reading && !r->search)
        postgres_change(p, &ignored, "CLOSE c%u", r->name);
    else if (!p->reading)
        postgres_ask(p, "COMMIT", NULL, NULL, &ignored);
    free(r);
}

int postgres_select(struct span_store *s, const struct span_query *q, struct database_rows **out, struct err *e)
{
    struct postgres *p = postgres_of(s);
    struct text sql = {.fd = -1};
    struct postgres_values v = {0};
    int rc = p->reading ? 0 : postgres_ask_anew(p, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL, NULL, e);
    if (rc)
        return rc;
    struct database_rows *r = mem_zalloc(sizeof *r);
    *r = (struct database_rows){.store = p, .name = ++p->named, .wanted = FIRST_ROWS};
    p->reading++;
    if (newest_is_search(q) && p->version >= 2) {
        rc = postgres_search_begin(p, q, &r->search, e);
        if (rc)
            postgres_end(r);
        else
            *out = r;
        return rc;
    }
    text_printf(&sql, "DECLARE c%u NO SCROLL CURSOR", r->name);
    write_select(q, &sql, &v);
    rc = postgres_ask(p, text_cstr(&sql), &v, NULL, e);
    text_fini(&sql);
    if (rc)
        postgres_end(r);
    else
        *out = r;
    return rc;
}

/* Fetches more rows next time, if these were small. */
static void look_at_size(struct database_rows *r)
{
    int n = PQntuples(r->rows);
    size_t bytes = PQresultMemorySize(r->rows);
    size_t most = n ? MOST_FETCHED_BYTES / (bytes / (size_t)n + 1) : 0;
    r->wanted = most > MOST_ROWS ? MOST_ROWS : most < 1 ? 1 : (int)most;
}

int postgres_next(struct database_rows *r, struct database_row *out, struct err *e)
{
    if (r->search)
        return postgres_search_next(r->search, out, e);
    while (!r->rows || r->at == PQntuples(r->rows)) {
        char sql[64];
        if (r->rows && PQntuples(r->rows) < r->wanted)
            return 0;
        if (r->rows)
            look_at_size(r);
        PQclear(r->rows);
        r->rows = NULL;
        r->at = 0;
        snprintf(sql, sizeof sql, "FETCH %d FROM c%u", r->wanted, r->name);
        int rc = postgres_ask(r->store, sql, NULL, &r->rows, e);
        if (rc)
            return rc;
    }
    *out = (struct database_row){
        postgres_number(r->rows, r->at, 0), PQgetvalue(r->rows, r->at, 1), (size_t)PQgetlength(r->rows, r->at, 1)};
    r->at++;
    return 1;
}

int postgres_origin(struct database_rows *r, int64_t number, const void **body, size_t *n, struct err *e)
{
    struct postgres_values v = {0};
    postgres_put_number(&v, number);
    PQclear(r->origin);
    r->origin = NULL;
    int rc = postgres_ask(r->store, "SELECT body FROM origins WHERE number = $1", &v, &r->origin, e);
    if (rc)
        return rc;
    bool there = PQntuples(r->origin);
    *body = there ? PQgetvalue(r->origin, 0, 0) : NULL;
    *n = there ? (size_t)PQgetlength(r->origin, 0, 0) : 0;
    return 0;
}

/* ---- names ---- */

int postgres_services(struct span_store *s, struct arena *arena, struct database_names *out, struct err *e)
{
    PGresult *r;
    int rc = postgres_ask_anew(postgres_of(s),
        "SELECT text FROM texts WHERE number IN (SELECT service FROM operations) ORDER BY text COLLATE \"C\"", NULL, &r,
        e);
    for (int i = 0; !rc && i < PQntuples(r); i++)
        vec_push(out, arena_strdup(arena, postgres_text(r, i, 0)));
    if (!rc)
        PQclear(r);
    return rc;
}

int postgres_operations(
    struct span_store *s, const char *service, struct arena *arena, struct database_operations *out, struct err *e)
{
    PGresult *r;
    struct postgres_values v = {0};
    uint64_t hash[2];
    postgres_hash(service, strlen(service), hash);
    postgres_put_uuid(&v, hash);
    int rc = postgres_ask_anew(postgres_of(s),
        "SELECT text, kind FROM operations JOIN texts ON name = number"
        " WHERE service = (SELECT number FROM texts WHERE hash = $1) ORDER BY text COLLATE \"C\", kind",
        &v, &r, e);
    for (int i = 0; !rc && i < PQntuples(r); i++) {
        const char *name = arena_strdup(arena, postgres_text(r, i, 0));
        vec_push(out, ((struct database_operation){name, (enum span_kind)postgres_number(r, i, 1)}));
    }
    if (!rc)
        PQclear(r);
    return rc;
}
