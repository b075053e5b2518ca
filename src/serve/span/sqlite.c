/* SPDX-License-Identifier: MIT */
#include "span/sqlite.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "span/newest.h"

enum { SCHEMA = 4, APPLICATION = 0x77656674, CACHE_KIB = 64 << 10 };

#define INDEXES_BY_LAST \
    "CREATE INDEX texts_by_last ON texts (last);" \
    "CREATE INDEX origins_by_last ON origins (last);" \
    "CREATE INDEX operations_by_last ON operations (last);"

#define TABLES_OF_TERMS \
    "CREATE TABLE terms (number INTEGER PRIMARY KEY, spans BLOB NOT NULL);" \
    "CREATE TABLE groups (number INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL," \
    " longest INTEGER NOT NULL);"

#define TABLES_OF_CALLS \
    "CREATE TABLE children (trace INTEGER, parent INTEGER, number INTEGER," \
    " PRIMARY KEY (trace, parent, number)) WITHOUT ROWID;" \
    "CREATE TABLE calls (width INTEGER, bucket INTEGER, parent INTEGER, child INTEGER, n INTEGER NOT NULL," \
    " PRIMARY KEY (width, bucket, parent, child)) WITHOUT ROWID;"

/* Spans are stored in order of arrival, so the oldest are adjacent and free whole pages when deleted. */
static const char schema[] =
    "CREATE TABLE texts (number INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE, last INTEGER NOT NULL);"
    "CREATE TABLE origins (number INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, body BLOB NOT NULL,"
    " last INTEGER NOT NULL);"
    "CREATE TABLE operations (service INTEGER, name INTEGER, kind INTEGER, last INTEGER NOT NULL,"
    " PRIMARY KEY (service, name, kind)) WITHOUT ROWID;"
    "CREATE TABLE spans (number INTEGER PRIMARY KEY, trace BLOB NOT NULL, id BLOB NOT NULL, life INTEGER NOT NULL,"
    " hash INTEGER NOT NULL, came INTEGER NOT NULL, service INTEGER NOT NULL, name INTEGER NOT NULL,"
    " begin INTEGER NOT NULL, lasted INTEGER NOT NULL, parent BLOB, origin INTEGER NOT NULL, body BLOB NOT NULL);"
    "CREATE INDEX spans_by_id ON spans (trace, id);"
    "CREATE INDEX spans_by_service ON spans (service, begin, name, lasted);"
    "CREATE TABLE about (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;" INDEXES_BY_LAST TABLES_OF_TERMS
        TABLES_OF_CALLS;

static int number_of(struct sqlite_store *s, const char *pragma, int64_t *out, struct err *e)
{
    sqlite3_stmt *q;
    if (sqlite3_prepare_v2(s->db, pragma, -1, &q, NULL) != SQLITE_OK)
        return sqlite_fail(s, e);
    int rc = sqlite3_step(q) == SQLITE_ROW ? 0 : sqlite_fail(s, e);
    if (!rc)
        *out = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return rc;
}

/* Upgrades the schema. Schema 1 lacks the last use of names, so all count as used until now. That is the columns'
 * default, and no row is written. Schema 2 has no terms, schema 3 no calls: sqlite_catch_up adds them. */
static int upgrade(struct sqlite_store *s, struct err *e)
{
    char sql[2400] = "", names[600] = "", terms[800] = "";
    int64_t first = 0, next = 1;
    int rc = number_of(s, "SELECT coalesce(max(number), 0) + 1 FROM spans", &next, e);
    rc = rc ? rc : number_of(s, "SELECT coalesce(min(number), 0) FROM spans", &first, e);
    long long last = SQLITE_ERA(next);
    if (s->schema < 2)
        snprintf(names, sizeof names,
            "ALTER TABLE texts ADD COLUMN last INTEGER NOT NULL DEFAULT %lld;"
            "ALTER TABLE origins ADD COLUMN last INTEGER NOT NULL DEFAULT %lld;"
            "ALTER TABLE operations ADD COLUMN last INTEGER NOT NULL DEFAULT %lld;" INDEXES_BY_LAST,
            last, last, last);
    if (s->schema < 3)
        snprintf(terms, sizeof terms,
            TABLES_OF_TERMS "INSERT INTO about (key, value) VALUES ('terms from', %lld), ('terms to', %lld);",
            (long long)SQLITE_GROUP(first), (long long)SQLITE_GROUP(next));
    snprintf(sql, sizeof sql,
        "BEGIN IMMEDIATE; %s %s" TABLES_OF_CALLS
        "INSERT INTO about (key, value) VALUES ('calls from', %lld), ('calls to', %lld);"
        "PRAGMA user_version=%d; COMMIT",
        names, terms, (long long)first, (long long)next, SCHEMA);
    return rc ? rc : sqlite_run(s, sql, e);
}

static int check_schema(struct sqlite_store *s, bool make, struct err *e)
{
    int64_t application, version;
    int rc = number_of(s, "PRAGMA application_id", &application, e);
    if (!rc)
        rc = number_of(s, "PRAGMA user_version", &version, e);
    if (rc)
        return rc;
    if (!application && !version && make) {
        char sql[sizeof schema + 200];
        snprintf(sql, sizeof sql, "BEGIN IMMEDIATE; %s PRAGMA application_id=%d; PRAGMA user_version=%d; COMMIT",
            schema, APPLICATION, SCHEMA);
        s->schema = SCHEMA;
        return sqlite_run(s, sql, e);
    }
    if (application != APPLICATION)
        return err_set(e, ERR_FORMAT, "%s is no store of spans", s->path);
    if (version < 1 || version > SCHEMA)
        return err_set(e, ERR_UNSUPPORTED, "%s has schema %lld, and this weft reads 1 to %d: use the weft that made it",
            s->path, (long long)version, SCHEMA);
    s->schema = version;
    rc = version < SCHEMA && make ? upgrade(s, e) : 0;
    s->schema = make ? SCHEMA : version;
    return rc;
}

/* Disables memory statistics: they cost a lock per allocation, and nobody reads them. */
static void configure(void)
{
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

static void sqlite_close(struct span_store *is)
{
    struct sqlite_store *s = sqlite_of(is);
    for (size_t i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(s->prepared[i]);
    sqlite3_close(s->db);
    map_fini(&s->texts);
    map_fini(&s->origins);
    map_fini(&s->used);
    sqlite_terms_forget(s);
    sqlite_calls_forget(s);
    map_fini(&s->traces);
    map_fini(&s->ids);
    free(s->path);
    free(s);
}

static int open_file(struct sqlite_store *s, const char *directory, bool write, struct err *e)
{
    int flags = SQLITE_OPEN_NOMUTEX | (write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READWRITE);
    if (sqlite3_open_v2(s->path, &s->db, flags, NULL) != SQLITE_OK &&
        (write || (sqlite3_close(s->db), sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READONLY, NULL)) != SQLITE_OK))
        return sqlite3_errcode(s->db) == SQLITE_CANTOPEN && !write
            ? err_set(e, ERR_NOTFOUND, "%s: there are no spans (a collector keeps them: weft collect --store %s)",
                  s->path, directory)
            : sqlite_fail(s, e);
    sqlite3_busy_timeout(s->db, SQLITE_BUSY_MS);
    sqlite3_extended_result_codes(s->db, 0);
    return sqlite_run(s,
        write ? "PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
                "PRAGMA wal_autocheckpoint=16384; PRAGMA journal_size_limit=67108864; PRAGMA temp_store=MEMORY;"
                "PRAGMA cache_size=-65536"
              : "PRAGMA query_only=1; PRAGMA cache_size=-16384",
        e);
}

static int sqlite_open(const char *store, const char *directory, struct span_store **out, struct err *e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int rc = directory ? file_make_dirs(store, e) : 0;
    if (rc)
        return rc;
    struct sqlite_store *s = mem_zalloc(sizeof *s);
    pthread_once(&once, configure);
    s->path = mem_printf("%s/spans.db", store);
    s->is = (struct span_store){&database_sqlite, s->path};
    s->group = -1;
    s->calls.to = -1;
    s->to_tidy = true; /* work that the last run did not finish */
    rc = open_file(s, store, directory != NULL, e);
    if (!rc)
        rc = check_schema(s, directory != NULL, e);
    if (rc)
        sqlite_close(&s->is);
    else
        *out = &s->is;
    return rc;
}

/* ---- reading ---- */

struct database_rows {
    struct sqlite_store *store;
    struct sqlite_search *search; /* returns the numbers of rows; or NULL */
    sqlite3_stmt *rows, *origin;
};

static void write_select(const struct span_query *q, struct text *sql)
{
    TEXT_PUT(sql, "SELECT origin, body FROM spans WHERE 1");
    sqlite_write_condition(q, sql);
    if (!q->any_order)
        text_puts(sql, q->newest_first ? " ORDER BY begin DESC, number DESC" : " ORDER BY begin, number");
    if (q->limit)
        TEXT_PUT(sql, " LIMIT ?6");
}

static void sqlite_end(struct database_rows *r)
{
    sqlite3_finalize(r->rows);
    sqlite3_finalize(r->origin);
    sqlite_search_end(r->search);
    free(r);
}

static int sqlite_select(struct span_store *s, const struct span_query *q, struct database_rows **out, struct err *e)
{
    struct database_rows *r = mem_zalloc(sizeof *r);
    struct text sql = {.fd = -1};
    r->store = sqlite_of(s);
    if (newest_is_search(q))
        TEXT_PUT(&sql, "SELECT origin, body FROM spans WHERE number = ?1");
    else
        write_select(q, &sql);
    int rc = sqlite3_prepare_v2(r->store->db, text_cstr(&sql), -1, &r->rows, NULL) == SQLITE_OK &&
            sqlite3_prepare_v2(r->store->db, "SELECT body FROM origins WHERE number = ?1", -1, &r->origin, NULL) ==
                SQLITE_OK
        ? 0
        : sqlite_fail(r->store, e);
    text_fini(&sql);
    if (!rc && newest_is_search(q))
        rc = sqlite_search_begin(r->store, q, &r->search, e);
    if (rc) {
        sqlite_end(r);
        return rc;
    }
    if (!r->search)
        sqlite_bind_condition(q, r->rows);
    *out = r;
    return 0;
}

static int sqlite_origin(struct database_rows *r, int64_t number, const void **body, size_t *n, struct err *e)
{
    sqlite3_reset(r->origin);
    sqlite3_bind_int64(r->origin, 1, number);
    int step = sqlite3_step(r->origin);
    *n = 0;
    if (step == SQLITE_DONE)
        return 0;
    if (step != SQLITE_ROW)
        return sqlite_fail(r->store, e);
    *body = sqlite3_column_blob(r->origin, 0);
    *n = (size_t)sqlite3_column_bytes(r->origin, 0);
    return 0;
}

static int sqlite_next(struct database_rows *r, struct database_row *out, struct err *e)
{
    int64_t number = 0;
    int step, found = 1;
    do {
        if (r->search) {
            found = sqlite_search_next(r->search, &number, e);
            sqlite3_reset(r->rows);
            sqlite3_bind_int64(r->rows, 1, number);
        }
        if (found <= 0)
            return found;
        step = sqlite3_step(r->rows);
    } while (r->search && step == SQLITE_DONE); /* retry if the span was deleted meanwhile */
    if (step == SQLITE_DONE)
        return 0;
    if (step != SQLITE_ROW)
        return sqlite_fail(r->store, e);
    *out = (struct database_row){
        sqlite3_column_int64(r->rows, 0), sqlite3_column_blob(r->rows, 1), (size_t)sqlite3_column_bytes(r->rows, 1)};
    return 1;
}

/* ---- names ---- */

static int sqlite_services(struct span_store *s, struct arena *arena, struct database_names *out, struct err *e)
{
    sqlite3_stmt *q;
    if (sqlite3_prepare_v2(sqlite_of(s)->db,
            "SELECT text FROM texts WHERE number IN (SELECT service FROM operations) ORDER BY text", -1, &q,
            NULL) != SQLITE_OK)
        return sqlite_fail(sqlite_of(s), e);
    int step;
    while ((step = sqlite3_step(q)) == SQLITE_ROW)
        vec_push(out, arena_strdup(arena, (const char *)sqlite3_column_text(q, 0)));
    int rc = step == SQLITE_DONE ? 0 : sqlite_fail(sqlite_of(s), e);
    sqlite3_finalize(q);
    return rc;
}

static int sqlite_operations(
    struct span_store *s, const char *service, struct arena *arena, struct database_operations *out, struct err *e)
{
    sqlite3_stmt *q;
    if (sqlite3_prepare_v2(sqlite_of(s)->db,
            "SELECT text, kind FROM operations JOIN texts ON name = number"
            " WHERE service = (SELECT number FROM texts WHERE text = ?1) ORDER BY text, kind",
            -1, &q, NULL) != SQLITE_OK)
        return sqlite_fail(sqlite_of(s), e);
    sqlite3_bind_text(q, 1, service, -1, SQLITE_TRANSIENT);
    int step;
    while ((step = sqlite3_step(q)) == SQLITE_ROW) {
        const char *name = arena_strdup(arena, (const char *)sqlite3_column_text(q, 0));
        vec_push(out, ((struct database_operation){name, (enum span_kind)sqlite3_column_int(q, 1)}));
    }
    int rc = step == SQLITE_DONE ? 0 : sqlite_fail(sqlite_of(s), e);
    sqlite3_finalize(q);
    return rc;
}

const struct database_kind database_sqlite = {
    .open = sqlite_open,
    .close = sqlite_close,
    .begin = sqlite_begin,
    .add_origin = sqlite_add_origin,
    .add_span = sqlite_add_span,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    .position = sqlite_position,
    .sync = sqlite_sync,
    .keep = sqlite_keep,
    .catch_up = sqlite_catch_up,
    .services = sqlite_services,
    .operations = sqlite_operations,
    .calls = sqlite_calls,
    .select = sqlite_select,
    .next = sqlite_next,
    .origin = sqlite_origin,
    .end = sqlite_end,
};
