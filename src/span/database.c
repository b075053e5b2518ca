#include "span/database.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { SCHEMA = 1, APPLICATION = 0x77656674, BUSY_MS = 10000, CACHE_KIB = 64 << 10 };

int database_fail(struct span_store *s, struct err *e)
{
    int code = sqlite3_errcode(s->db);
    const char *hint = code == SQLITE_FULL
        ? " (free some space there; acknowledged spans are kept in the log meanwhile)"
        : code == SQLITE_CORRUPT || code == SQLITE_NOTADB ? " (the database is damaged: move it away; the log is kept)"
                                                          : "";
    return err_set(e,
        code == SQLITE_BUSY          ? ERR_BUSY
            : code == SQLITE_CORRUPT ? ERR_FORMAT
                                     : ERR_IO,
        "%s: %s%s", s->path, sqlite3_errmsg(s->db), hint);
}

int database_run(struct span_store *s, const char *sql, struct err *e)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : database_fail(s, e);
}

/* Spans are in the order in which they came, so that the oldest lie together and free whole pages when they go. */
static const char schema[] =
    "CREATE TABLE texts (number INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);"
    "CREATE TABLE origins (number INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, body BLOB NOT NULL);"
    "CREATE TABLE operations (service INTEGER, name INTEGER, kind INTEGER, PRIMARY KEY (service, name, kind))"
    " WITHOUT ROWID;"
    "CREATE TABLE spans (number INTEGER PRIMARY KEY, trace BLOB NOT NULL, id BLOB NOT NULL, life INTEGER NOT NULL,"
    " hash INTEGER NOT NULL, came INTEGER NOT NULL, service INTEGER NOT NULL, name INTEGER NOT NULL,"
    " begin INTEGER NOT NULL, lasted INTEGER NOT NULL, parent BLOB, origin INTEGER NOT NULL, body BLOB NOT NULL);"
    "CREATE INDEX spans_by_id ON spans (trace, id);"
    "CREATE INDEX spans_by_service ON spans (service, begin, name, lasted);"
    "CREATE TABLE about (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;";

static int number_of(struct span_store *s, const char *pragma, int64_t *out, struct err *e)
{
    sqlite3_stmt *q;
    if (sqlite3_prepare_v2(s->db, pragma, -1, &q, NULL) != SQLITE_OK)
        return database_fail(s, e);
    int rc = sqlite3_step(q) == SQLITE_ROW ? 0 : database_fail(s, e);
    if (!rc)
        *out = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return rc;
}

static int check_schema(struct span_store *s, bool make, struct err *e)
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
        return database_run(s, sql, e);
    }
    if (application != APPLICATION)
        return err_set(e, ERR_FORMAT, "%s is no store of spans", s->path);
    if (version != SCHEMA)
        return err_set(e, ERR_UNSUPPORTED, "%s has schema %lld, and this weft reads %d: use the weft that made it",
            s->path, (long long)version, SCHEMA);
    return 0;
}

/* Its count of memory costs a lock for each allocation, and nobody asks for it. */
static void configure(void)
{
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

static int open_database(const char *directory, bool write, struct span_store **out, struct err *e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct span_store *s = mem_zalloc(sizeof *s);
    int rc = 0;
    pthread_once(&once, configure);
    s->path = mem_printf("%s/spans.db", directory);
    s->scratch.fd = -1;
    int flags = SQLITE_OPEN_NOMUTEX | (write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READWRITE);
    if (sqlite3_open_v2(s->path, &s->db, flags, NULL) != SQLITE_OK &&
        (write || (sqlite3_close(s->db), sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READONLY, NULL)) != SQLITE_OK))
        rc = sqlite3_errcode(s->db) == SQLITE_CANTOPEN && !write
            ? err_set(e, ERR_NOTFOUND, "%s: there are no spans (a collector keeps them: weft collect --store %s)",
                  s->path, directory)
            : database_fail(s, e);
    if (!rc) {
        sqlite3_busy_timeout(s->db, BUSY_MS);
        sqlite3_extended_result_codes(s->db, 0);
        if (write)
            rc = database_run(s,
                "PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
                "PRAGMA wal_autocheckpoint=16384; PRAGMA journal_size_limit=67108864; PRAGMA temp_store=MEMORY;"
                "PRAGMA cache_size=-65536",
                e);
    }
    if (!rc && !write)
        rc = database_run(s, "PRAGMA query_only=1; PRAGMA cache_size=-16384", e);
    if (!rc)
        rc = check_schema(s, write, e);
    if (rc)
        span_store_close(s);
    else
        *out = s;
    return rc;
}

int span_store_open(const char *directory, struct span_store **out, struct err *e)
{
    return open_database(directory, false, out, e);
}

int database_open_to_write(const char *directory, struct span_store **out, struct err *e)
{
    int rc = file_make_dirs(directory, e);
    return rc ? rc : open_database(directory, true, out, e);
}

void span_store_close(struct span_store *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < DATABASE_STATEMENTS; i++)
        sqlite3_finalize(s->prepared[i]);
    sqlite3_close(s->db);
    map_fini(&s->texts);
    map_fini(&s->origins);
    map_fini(&s->operations);
    arena_fini(&s->arena);
    text_fini(&s->scratch);
    free(s->path);
    free(s);
}

/* ---- reading ---- */

struct span_cursor {
    struct span_store *store;
    sqlite3_stmt *rows;
    struct map origins; /* number → address */
    struct arena arena;
    sqlite3_stmt *origin;
};

static void write_condition(const struct span_query *q, struct text *sql)
{
    TEXT_PUT(sql, "SELECT origin, body FROM spans WHERE 1");
    if (q->trace_id)
        TEXT_PUT(sql, " AND trace = ?1");
    if (q->service)
        TEXT_PUT(sql, " AND service = (SELECT number FROM texts WHERE text = ?2)");
    else if (q->by_time && !q->trace_id)
        TEXT_PUT(sql, " AND service IN (SELECT service FROM operations)");
    if (q->name)
        TEXT_PUT(sql, " AND name = (SELECT number FROM texts WHERE text = ?3)");
    if (q->by_time)
        TEXT_PUT(sql, " AND begin >= ?4 AND begin < ?5");
    if (q->least_ns)
        TEXT_PUT(sql, " AND lasted >= ?7");
    if (q->most_ns)
        TEXT_PUT(sql, " AND lasted <= ?8");
    if (!q->any_order)
        text_puts(sql, q->newest_first ? " ORDER BY begin DESC, number DESC" : " ORDER BY begin, number");
    if (q->limit)
        TEXT_PUT(sql, " LIMIT ?6");
}

static void bind_condition(const struct span_query *q, sqlite3_stmt *s)
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

int span_select(struct span_store *s, const struct span_query *q, struct span_cursor **out, struct err *e)
{
    struct span_cursor *c = mem_zalloc(sizeof *c);
    struct text sql = {.fd = -1};
    c->store = s;
    write_condition(q, &sql);
    int rc = sqlite3_prepare_v2(s->db, text_cstr(&sql), -1, &c->rows, NULL) == SQLITE_OK &&
            sqlite3_prepare_v2(s->db, "SELECT body FROM origins WHERE number = ?1", -1, &c->origin, NULL) == SQLITE_OK
        ? 0
        : database_fail(s, e);
    text_fini(&sql);
    if (rc) {
        span_cursor_close(c);
        return rc;
    }
    bind_condition(q, c->rows);
    *out = c;
    return 0;
}

static int find_origin(struct span_cursor *c, int64_t number, const struct span_origin **out, struct err *e)
{
    bool fresh;
    uint64_t *known = map_put(&c->origins, (uint64_t)number, &fresh);
    if (!fresh && *known) {
        *out = (const struct span_origin *)(uintptr_t)*known;
        return 0;
    }
    struct span_origin *o = arena_new(&c->arena, struct span_origin, 1);
    int rc = 0;
    sqlite3_bind_int64(c->origin, 1, number);
    int step = sqlite3_step(c->origin);
    struct wire_in in = wire_of(sqlite3_column_blob(c->origin, 0), (size_t)sqlite3_column_bytes(c->origin, 0));
    if (step != SQLITE_ROW && step != SQLITE_DONE)
        rc = database_fail(c->store, e);
    else if (step == SQLITE_DONE || !span_read_origin(&in, &c->arena, o))
        rc = err_set(e, ERR_FORMAT, "%s: origin %lld is damaged", c->store->path, (long long)number);
    sqlite3_reset(c->origin);
    if (!rc)
        *known = (uint64_t)(uintptr_t)o;
    *out = o;
    return rc;
}

int span_next(struct span_cursor *c, struct arena *arena, const struct span **out, struct err *e)
{
    int step = sqlite3_step(c->rows);
    *out = NULL;
    if (step == SQLITE_DONE)
        return 0;
    if (step != SQLITE_ROW)
        return database_fail(c->store, e);
    struct span *s = arena_new(arena, struct span, 1);
    int rc = find_origin(c, sqlite3_column_int64(c->rows, 0), &s->origin, e);
    struct wire_in in = wire_of(sqlite3_column_blob(c->rows, 1), (size_t)sqlite3_column_bytes(c->rows, 1));
    if (!rc && !span_read(&in, arena, s))
        rc = err_set(e, ERR_FORMAT, "%s: a span is damaged", c->store->path);
    if (!rc)
        *out = s;
    return rc;
}

void span_cursor_close(struct span_cursor *c)
{
    if (!c)
        return;
    sqlite3_finalize(c->rows);
    sqlite3_finalize(c->origin);
    map_fini(&c->origins);
    arena_fini(&c->arena);
    free(c);
}

/* ---- names ---- */

int database_services(struct span_store *s, struct arena *arena, struct database_names *out, struct err *e)
{
    sqlite3_stmt *q;
    if (sqlite3_prepare_v2(s->db,
            "SELECT text FROM texts WHERE number IN (SELECT service FROM operations) ORDER BY text", -1, &q,
            NULL) != SQLITE_OK)
        return database_fail(s, e);
    int step;
    while ((step = sqlite3_step(q)) == SQLITE_ROW)
        vec_push(out, arena_strdup(arena, (const char *)sqlite3_column_text(q, 0)));
    int rc = step == SQLITE_DONE ? 0 : database_fail(s, e);
    sqlite3_finalize(q);
    return rc;
}

int database_operations(
    struct span_store *s, const char *service, struct arena *arena, struct database_operations *out, struct err *e)
{
    sqlite3_stmt *q;
    if (sqlite3_prepare_v2(s->db,
            "SELECT text, kind FROM operations JOIN texts ON name = number"
            " WHERE service = (SELECT number FROM texts WHERE text = ?1) ORDER BY text, kind",
            -1, &q, NULL) != SQLITE_OK)
        return database_fail(s, e);
    sqlite3_bind_text(q, 1, service, -1, SQLITE_TRANSIENT);
    int step;
    while ((step = sqlite3_step(q)) == SQLITE_ROW) {
        const char *name = arena_strdup(arena, (const char *)sqlite3_column_text(q, 0));
        vec_push(out, ((struct database_operation){name, (enum span_kind)sqlite3_column_int(q, 1)}));
    }
    int rc = step == SQLITE_DONE ? 0 : database_fail(s, e);
    sqlite3_finalize(q);
    return rc;
}

/* ---- traces and calls ---- */

int database_calls(struct span_store *s, int64_t begin_ns, int64_t end_ns, struct arena *arena,
    struct database_calls *out, struct err *e)
{
    sqlite3_stmt *q;
    if (sqlite3_prepare_v2(s->db,
            "SELECT (SELECT text FROM texts WHERE number = p.service),"
            " (SELECT text FROM texts WHERE number = c.service), count(*)"
            " FROM spans c JOIN spans p ON p.trace = c.trace AND p.id = c.parent"
            " WHERE c.service IN (SELECT service FROM operations) AND c.begin >= ?1 AND c.begin < ?2"
            " AND p.service <> c.service GROUP BY p.service, c.service ORDER BY 1, 2",
            -1, &q, NULL) != SQLITE_OK)
        return database_fail(s, e);
    sqlite3_bind_int64(q, 1, begin_ns);
    sqlite3_bind_int64(q, 2, end_ns);
    int step;
    while ((step = sqlite3_step(q)) == SQLITE_ROW) {
        const char *parent = (const char *)sqlite3_column_text(q, 0), *child = (const char *)sqlite3_column_text(q, 1);
        vec_push(out,
            ((struct database_call){arena_strdup(arena, parent ? parent : ""), arena_strdup(arena, child ? child : ""),
                (uint64_t)sqlite3_column_int64(q, 2)}));
    }
    int rc = step == SQLITE_DONE ? 0 : database_fail(s, e);
    sqlite3_finalize(q);
    return rc;
}
