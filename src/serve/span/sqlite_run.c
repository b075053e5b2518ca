/* SPDX-License-Identifier: MIT */
/* SQLite: statements and errors. */
#include <sqlite3.h>

#include "span/sqlite.h"

int sqlite_fail(struct sqlite_store *s, struct err *e)
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

int sqlite_run(struct sqlite_store *s, const char *sql, struct err *e)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : sqlite_fail(s, e);
}

static const char *const sql[STATEMENTS] = {
    [STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
    [STATEMENT_COMMIT] = "COMMIT",
    [STATEMENT_ROLLBACK] = "ROLLBACK",
    [STATEMENT_TRACE] = "SELECT number FROM spans WHERE trace = ?1 LIMIT 1",
    [STATEMENT_SAME_ID] = "SELECT number, life, hash, begin + lasted FROM spans WHERE trace = ?1 AND id = ?2",
    [STATEMENT_REMOVE] = "DELETE FROM spans WHERE number = ?1",
    [STATEMENT_INSERT] = "INSERT INTO spans (trace, id, life, hash, came, service, name, begin, lasted, origin,"
                         " body, parent, number) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    [STATEMENT_NEXT] = "SELECT max(coalesce((SELECT value FROM about WHERE key = 'next number'), 1),"
                       " coalesce((SELECT max(number) + 1 FROM spans), 1))",
    [STATEMENT_TEXT] = "SELECT number FROM texts WHERE text = ?1",
    [STATEMENT_NEW_TEXT] = "INSERT INTO texts (text, last) VALUES (?1, ?2)",
    [STATEMENT_USE_TEXT] = "UPDATE texts SET last = ?2 WHERE number = ?1",
    [STATEMENT_ORIGIN] = "SELECT number FROM origins WHERE hash = ?1",
    [STATEMENT_NEW_ORIGIN] = "INSERT INTO origins (hash, body, last) VALUES (?1, ?2, ?3)",
    [STATEMENT_USE_ORIGIN] = "UPDATE origins SET last = ?2 WHERE number = ?1",
    [STATEMENT_ORIGIN_BODY] = "SELECT body FROM origins WHERE number = ?1",
    [STATEMENT_GROUP_ROWS] = "SELECT number, begin, lasted, origin, body FROM spans WHERE number >= ?1 AND number < ?2",
    [STATEMENT_PUT_TERMS] = "INSERT OR REPLACE INTO terms (number, spans) VALUES (?1, ?2)",
    [STATEMENT_PUT_GROUP] = "INSERT OR REPLACE INTO groups (number, first, last, longest) VALUES (?1, ?2, ?3, ?4)",
    [STATEMENT_OPERATION] = "INSERT INTO operations (service, name, kind, last) VALUES (?1, ?2, ?3, ?4)"
                            " ON CONFLICT (service, name, kind) DO UPDATE SET last = excluded.last",
    [STATEMENT_ABOUT] = "SELECT value FROM about WHERE key = ?1",
    [STATEMENT_SET_ABOUT] = "INSERT INTO about (key, value) VALUES (?1, ?2)"
                            " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    [STATEMENT_ENDS] = "SELECT number, trace, id, parent, service, begin FROM spans"
                       " WHERE number >= ?1 AND number < ?2",
    [STATEMENT_PARENTS] = "SELECT service FROM spans WHERE trace = ?1 AND id = ?2 AND service <> ?3",
    [STATEMENT_CHILDREN] = "SELECT s.service, s.begin FROM children c CROSS JOIN spans s ON s.number = c.number"
                           " WHERE c.trace = ?1 AND c.parent = ?2 AND s.trace = ?3 AND s.service <> ?4",
    [STATEMENT_NEW_CHILD] = "INSERT OR IGNORE INTO children (trace, parent, number) VALUES (?1, ?2, ?3)",
    [STATEMENT_REMOVE_CHILD] = "DELETE FROM children WHERE trace = ?1 AND parent = ?2 AND number = ?3",
    [STATEMENT_COUNT] = "INSERT INTO calls (width, bucket, parent, child, n) VALUES (?1, ?2, ?3, ?4, ?5)"
                        " ON CONFLICT (width, bucket, parent, child) DO UPDATE SET n = n + excluded.n",
    [STATEMENT_COUNTED_NONE] = "DELETE FROM calls WHERE width = ?1 AND bucket = ?2 AND parent = ?3 AND child = ?4"
                               " AND n = 0",
    [STATEMENT_FIRST_FROM] = "SELECT min(number) FROM spans WHERE number >= ?1",
};

sqlite3_stmt *sqlite_statement(struct sqlite_store *s, enum sqlite_statement which, struct err *e)
{
    if (!s->prepared[which] &&
        sqlite3_prepare_v3(s->db, sql[which], -1, SQLITE_PREPARE_PERSISTENT, &s->prepared[which], NULL) != SQLITE_OK)
        sqlite_fail(s, e);
    if (s->prepared[which])
        sqlite3_reset(s->prepared[which]);
    return s->prepared[which];
}

int sqlite_finish(struct sqlite_store *s, sqlite3_stmt *q, struct err *e)
{
    int rc = q && sqlite3_step(q) == SQLITE_DONE ? 0 : q ? sqlite_fail(s, e) : e->code;
    if (q)
        sqlite3_reset(q);
    return rc;
}

int sqlite_first_number(struct sqlite_store *s, sqlite3_stmt *q, int64_t *out, struct err *e)
{
    int step = sqlite3_step(q), rc = step == SQLITE_ROW || step == SQLITE_DONE ? 0 : sqlite_fail(s, e);
    if (step == SQLITE_ROW)
        *out = sqlite3_column_int64(q, 0);
    sqlite3_reset(q);
    return rc;
}

int sqlite_set_about(struct sqlite_store *s, const char *key, uint64_t value, struct err *e)
{
    sqlite3_stmt *q = sqlite_statement(s, STATEMENT_SET_ABOUT, e);
    if (q) {
        sqlite3_bind_text(q, 1, key, -1, SQLITE_STATIC);
        sqlite3_bind_int64(q, 2, (int64_t)value);
    }
    return sqlite_finish(s, q, e);
}

int sqlite_about(struct sqlite_store *s, const char *key, uint64_t *value, struct err *e)
{
    int64_t v = 0;
    sqlite3_stmt *q = sqlite_statement(s, STATEMENT_ABOUT, e);
    if (!q)
        return e->code;
    sqlite3_bind_text(q, 1, key, -1, SQLITE_STATIC);
    int rc = sqlite_first_number(s, q, &v, e);
    *value = (uint64_t)v;
    return rc;
}
