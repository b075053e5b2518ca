/* The collector's side of SQLite: adding, and letting go. */
#include <sqlite3.h>
#include <string.h>

#include "base/time.h"
#include "span/sqlite.h"

enum { REMOVED_AT_ONCE = 20000, MOST_KNOWN = 1 << 20, MOST_IDS = 1 << 18 };

static const char *const sql[STATEMENTS] = {
    [STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
    [STATEMENT_COMMIT] = "COMMIT",
    [STATEMENT_ROLLBACK] = "ROLLBACK",
    [STATEMENT_TRACE] = "SELECT number FROM spans WHERE trace = ?1 LIMIT 1",
    [STATEMENT_SAME_ID] = "SELECT number, life, hash, begin + lasted FROM spans WHERE trace = ?1 AND id = ?2",
    [STATEMENT_REMOVE] = "DELETE FROM spans WHERE number = ?1",
    [STATEMENT_INSERT] = "INSERT INTO spans (trace, id, life, hash, came, service, name, begin, lasted, origin,"
                         " body, parent) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    [STATEMENT_TEXT] = "SELECT number FROM texts WHERE text = ?1",
    [STATEMENT_NEW_TEXT] = "INSERT INTO texts (text) VALUES (?1)",
    [STATEMENT_ORIGIN] = "SELECT number FROM origins WHERE hash = ?1",
    [STATEMENT_NEW_ORIGIN] = "INSERT INTO origins (hash, body) VALUES (?1, ?2)",
    [STATEMENT_OPERATION] = "INSERT OR IGNORE INTO operations (service, name, kind) VALUES (?1, ?2, ?3)",
    [STATEMENT_ABOUT] = "SELECT value FROM about WHERE key = ?1",
    [STATEMENT_SET_ABOUT] = "INSERT INTO about (key, value) VALUES (?1, ?2)"
                            " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
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

/* Of a statement that gives no row. */
static int finish(struct sqlite_store *s, sqlite3_stmt *q, struct err *e)
{
    int rc = q && sqlite3_step(q) == SQLITE_DONE ? 0 : q ? sqlite_fail(s, e) : e->code;
    if (q)
        sqlite3_reset(q);
    return rc;
}

/* The number in the first row; *out stays where there is none. */
static int first_number(struct sqlite_store *s, sqlite3_stmt *q, int64_t *out, struct err *e)
{
    int step = sqlite3_step(q), rc = step == SQLITE_ROW || step == SQLITE_DONE ? 0 : sqlite_fail(s, e);
    if (step == SQLITE_ROW)
        *out = sqlite3_column_int64(q, 0);
    sqlite3_reset(q);
    return rc;
}

static void forget_ids(struct sqlite_store *s)
{
    map_fini(&s->traces);
    map_fini(&s->ids);
    s->traces = s->ids = (struct map){0};
}

static void forget(struct sqlite_store *s)
{
    forget_ids(s);
    map_fini(&s->texts);
    map_fini(&s->origins);
    map_fini(&s->operations);
    s->texts = s->origins = s->operations = (struct map){0};
}

int sqlite_begin(struct span_store *is, struct err *e)
{
    struct sqlite_store *s = sqlite_of(is);
    return finish(s, sqlite_statement(s, STATEMENT_BEGIN, e), e);
}

void sqlite_rollback(struct span_store *is)
{
    struct sqlite_store *s = sqlite_of(is);
    struct err ignored = {0};
    finish(s, sqlite_statement(s, STATEMENT_ROLLBACK, &ignored), &ignored);
    forget(s);
}

static int set_about(struct sqlite_store *s, const char *key, uint64_t value, struct err *e)
{
    sqlite3_stmt *q = sqlite_statement(s, STATEMENT_SET_ABOUT, e);
    if (q) {
        sqlite3_bind_text(q, 1, key, -1, SQLITE_STATIC);
        sqlite3_bind_int64(q, 2, (int64_t)value);
    }
    return finish(s, q, e);
}

static int about(struct sqlite_store *s, const char *key, uint64_t *value, struct err *e)
{
    int64_t v = 0;
    sqlite3_stmt *q = sqlite_statement(s, STATEMENT_ABOUT, e);
    if (!q)
        return e->code;
    sqlite3_bind_text(q, 1, key, -1, SQLITE_STATIC);
    int rc = first_number(s, q, &v, e);
    *value = (uint64_t)v;
    return rc;
}

int sqlite_commit(struct span_store *is, const struct log_position *at, struct err *e)
{
    struct sqlite_store *s = sqlite_of(is);
    if (s->texts.n > MOST_KNOWN || s->origins.n > MOST_KNOWN || s->operations.n > MOST_KNOWN)
        forget(s);
    if (s->traces.n > MOST_IDS || s->ids.n > MOST_IDS)
        forget_ids(s);
    int rc = set_about(s, "log file", at->file, e);
    if (!rc)
        rc = set_about(s, "log offset", at->offset, e);
    return rc ? rc : finish(s, sqlite_statement(s, STATEMENT_COMMIT, e), e);
}

int sqlite_position(struct span_store *is, struct log_position *at, struct err *e)
{
    struct sqlite_store *s = sqlite_of(is);
    int rc = about(s, "log file", &at->file, e);
    return rc ? rc : about(s, "log offset", &at->offset, e);
}

int sqlite_sync(struct span_store *is, bool *all, struct err *e)
{
    struct sqlite_store *s = sqlite_of(is);
    int frames = 0, moved = 0;
    int rc = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &frames, &moved);
    *all = rc == SQLITE_OK && frames == moved;
    return rc == SQLITE_OK || rc == SQLITE_BUSY ? 0 : sqlite_fail(s, e);
}

/* ---- adding ---- */

static int text_number(struct sqlite_store *s, const char *text, int64_t *out, struct err *e)
{
    bool fresh;
    size_t n = strlen(text);
    uint64_t hash = map_hash(text, n), *known = map_put(&s->texts, hash, &fresh);
    if (!fresh && *known) {
        *out = (int64_t)*known;
        return 0;
    }
    *out = 0;
    sqlite3_stmt *q = sqlite_statement(s, STATEMENT_TEXT, e);
    if (!q)
        return e->code;
    sqlite3_bind_text(q, 1, text, (int)n, SQLITE_STATIC);
    int rc = first_number(s, q, out, e);
    if (!rc && !*out) {
        q = sqlite_statement(s, STATEMENT_NEW_TEXT, e);
        if (q)
            sqlite3_bind_text(q, 1, text, (int)n, SQLITE_STATIC);
        rc = finish(s, q, e);
        *out = sqlite3_last_insert_rowid(s->db);
    }
    *known = rc ? 0 : (uint64_t)*out;
    return rc;
}

static int origin_number(struct sqlite_store *s, const void *body, size_t n, int64_t *out, struct err *e)
{
    bool fresh;
    uint64_t hash[2];
    map_hash_pieces(&(struct map_piece){body, n}, 1, hash);
    uint64_t *known = map_put(&s->origins, hash[0], &fresh);
    if (!fresh && *known) {
        *out = (int64_t)*known;
        return 0;
    }
    *out = 0;
    sqlite3_stmt *q = sqlite_statement(s, STATEMENT_ORIGIN, e);
    if (!q)
        return e->code;
    sqlite3_bind_blob(q, 1, hash, sizeof hash, SQLITE_STATIC);
    int rc = first_number(s, q, out, e);
    if (!rc && !*out) {
        q = sqlite_statement(s, STATEMENT_NEW_ORIGIN, e);
        if (q) {
            sqlite3_bind_blob(q, 1, hash, sizeof hash, SQLITE_STATIC);
            sqlite3_bind_blob(q, 2, body, (int)n, SQLITE_STATIC);
        }
        rc = finish(s, q, e);
        *out = sqlite3_last_insert_rowid(s->db);
    }
    *known = rc ? 0 : (uint64_t)*out;
    return rc;
}

static int note_operation(struct sqlite_store *s, int64_t service, int64_t name, enum span_kind kind, struct err *e)
{
    bool fresh;
    const int64_t key[] = {service, name, kind};
    map_put(&s->operations, map_hash(key, sizeof key), &fresh);
    if (!fresh)
        return 0;
    sqlite3_stmt *q = sqlite_statement(s, STATEMENT_OPERATION, e);
    for (int i = 0; q && i < 3; i++)
        sqlite3_bind_int64(q, i + 1, key[i]);
    return finish(s, q, e);
}

/* Is a span of these ids there, perhaps? Most spans are of traces that are only just coming: one question for a trace
 * spares one for each of its spans. */
static int may_be_there(struct sqlite_store *s, const struct span *span, bool *may, struct err *e)
{
    enum { WAS_THERE = 1, WAS_NOT };
    const struct map_piece ids[] = {{span->trace_id, SPAN_TRACE_BYTES}, {span->id, SPAN_ID_BYTES}};
    bool fresh;
    uint64_t hash[2], *known = map_put(&s->traces, map_hash(span->trace_id, SPAN_TRACE_BYTES), &fresh);
    if (fresh || !*known) {
        int64_t number = 0;
        sqlite3_stmt *q = sqlite_statement(s, STATEMENT_TRACE, e);
        if (!q)
            return e->code;
        sqlite3_bind_blob(q, 1, span->trace_id, SPAN_TRACE_BYTES, SQLITE_STATIC);
        int rc = first_number(s, q, &number, e);
        if (rc)
            return rc;
        *known = number ? WAS_THERE : WAS_NOT;
    }
    *may = *known == WAS_THERE;
    if (!*may) {
        map_hash_pieces(ids, 2, hash);
        map_put(&s->ids, hash[0], &fresh);
        *may = !fresh;
    }
    return 0;
}

/* Of spans of the same ids: the new one is not taken if it is there already, or less is known of it than of one there;
 * of which less is known, that goes. Ended ones of other contents stay beside each other, as client and server do. */
static int compare_with_same_id(
    struct sqlite_store *s, const struct span *span, int64_t hash, bool *take, struct err *e)
{
    VEC(int64_t) outdone = {0};
    int step, rc = 0;
    *take = true;
    sqlite3_stmt *q = sqlite_statement(s, STATEMENT_SAME_ID, e);
    if (!q)
        return e->code;
    sqlite3_bind_blob(q, 1, span->trace_id, SPAN_TRACE_BYTES, SQLITE_STATIC);
    sqlite3_bind_blob(q, 2, span->id, SPAN_ID_BYTES, SQLITE_STATIC);
    while ((step = sqlite3_step(q)) == SQLITE_ROW) {
        int life = sqlite3_column_int(q, 1);
        bool less = life < (int)span->life ||
            (life == (int)span->life && life < SPAN_ENDED && sqlite3_column_int64(q, 3) < span->end_ns);
        if (sqlite3_column_int64(q, 2) == hash || (!less && (life > (int)span->life || life < SPAN_ENDED)))
            *take = false;
        else if (less)
            vec_push(&outdone, sqlite3_column_int64(q, 0));
    }
    if (step != SQLITE_DONE)
        rc = sqlite_fail(s, e);
    sqlite3_reset(q);
    for (size_t i = 0; !rc && *take && i < outdone.n; i++) {
        if ((q = sqlite_statement(s, STATEMENT_REMOVE, e)))
            sqlite3_bind_int64(q, 1, outdone.v[i]);
        rc = finish(s, q, e);
    }
    vec_free(&outdone);
    return rc;
}

int sqlite_add_origin(
    struct span_store *is, const struct span_origin *origin, const void *body, size_t n, struct err *e)
{
    struct sqlite_store *s = sqlite_of(is);
    int rc = text_number(s, origin->service, &s->service, e);
    return rc ? rc : origin_number(s, body, n, &s->origin, e);
}

int sqlite_add_span(
    struct span_store *is, const struct span *span, const void *body, size_t n, int64_t came_ns, struct err *e)
{
    struct sqlite_store *s = sqlite_of(is);
    bool may = false, take = true;
    int64_t name;
    uint64_t hash[2];
    const struct map_piece pieces[] = {{&s->origin, sizeof s->origin}, {body, n}};
    map_hash_pieces(pieces, 2, hash);
    int rc = may_be_there(s, span, &may, e);
    if (!rc && may)
        rc = compare_with_same_id(s, span, (int64_t)hash[0], &take, e);
    if (rc || !take)
        return rc;
    rc = text_number(s, span->name, &name, e);
    if (!rc)
        rc = note_operation(s, s->service, name, span->kind, e);
    sqlite3_stmt *q = rc ? NULL : sqlite_statement(s, STATEMENT_INSERT, e);
    if (!q)
        return e->code;
    const int64_t numbers[] = {(int64_t)span->life, (int64_t)hash[0], came_ns, s->service, name, span->begin_ns,
        span->end_ns - span->begin_ns, s->origin};
    sqlite3_bind_blob(q, 1, span->trace_id, SPAN_TRACE_BYTES, SQLITE_STATIC);
    sqlite3_bind_blob(q, 2, span->id, SPAN_ID_BYTES, SQLITE_STATIC);
    for (int i = 0; i < 8; i++)
        sqlite3_bind_int64(q, 3 + i, numbers[i]);
    sqlite3_bind_blob(q, 11, body, (int)n, SQLITE_STATIC);
    if (span_id_is_zero(span->parent_id, SPAN_ID_BYTES))
        sqlite3_bind_null(q, 12);
    else
        sqlite3_bind_blob(q, 12, span->parent_id, SPAN_ID_BYTES, SQLITE_STATIC);
    return finish(s, q, e);
}

/* ---- letting go ---- */

static int number_of(struct sqlite_store *s, const char *query, int64_t *out, struct err *e)
{
    sqlite3_stmt *q;
    if (sqlite3_prepare_v2(s->db, query, -1, &q, NULL) != SQLITE_OK)
        return sqlite_fail(s, e);
    *out = 0;
    int rc = first_number(s, q, out, e);
    sqlite3_finalize(q);
    return rc;
}

static int bytes_used(struct sqlite_store *s, int64_t *out, struct err *e)
{
    int64_t pages, size;
    int rc = number_of(s, "PRAGMA page_count", &pages, e);
    if (!rc)
        rc = number_of(s, "PRAGMA page_size", &size, e);
    if (!rc)
        *out = pages * size;
    return rc;
}

/* The oldest, and those that came before a time; so many at most. */
static int remove_some(struct sqlite_store *s, int64_t since_ns, uint64_t most, uint64_t *removed, struct err *e)
{
    sqlite3_stmt *q;
    if (sqlite3_prepare_v2(s->db,
            "DELETE FROM spans WHERE number <= (SELECT max(number) FROM (SELECT number, came FROM spans ORDER BY number"
            " LIMIT ?1) WHERE came < ?2)",
            -1, &q, NULL) != SQLITE_OK)
        return sqlite_fail(s, e);
    sqlite3_bind_int64(q, 1, (int64_t)most);
    sqlite3_bind_int64(q, 2, since_ns);
    int rc = sqlite3_step(q) == SQLITE_DONE ? 0 : sqlite_fail(s, e);
    sqlite3_finalize(q);
    *removed = rc ? 0 : (uint64_t)sqlite3_changes64(s->db);
    return rc;
}

/* Pages of what was removed go back to the file system; when readers are in the way, the next time. */
static int give_back(struct sqlite_store *s, struct err *e)
{
    int rc = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    s->to_give_back = rc == SQLITE_BUSY;
    return rc == SQLITE_OK || rc == SQLITE_BUSY ? 0 : sqlite_fail(s, e);
}

/* What nothing refers to any more. */
static int tidy(struct sqlite_store *s, struct err *e)
{
    forget(s);
    int rc = sqlite_run(s,
        "BEGIN IMMEDIATE;"
        "DELETE FROM operations WHERE NOT EXISTS (SELECT 1 FROM spans WHERE spans.service = operations.service"
        " AND spans.name = operations.name);"
        "DELETE FROM origins WHERE number NOT IN (SELECT DISTINCT origin FROM spans);"
        "DELETE FROM texts WHERE number NOT IN (SELECT service FROM operations UNION SELECT name FROM operations);"
        "COMMIT;"
        "PRAGMA incremental_vacuum",
        e);
    return rc ? rc : give_back(s, e);
}

int sqlite_keep(struct span_store *is, int64_t since_ns, uint64_t most_bytes, struct err *e)
{
    struct sqlite_store *s = sqlite_of(is);
    uint64_t gone = 0;
    int64_t used = 0;
    bool aged = false;
    int rc = 0;
    do {
        rc = remove_some(s, since_ns, REMOVED_AT_ONCE, &gone, e);
        aged |= gone > 0;
    } while (!rc && gone);
    if (!rc && s->to_give_back)
        rc = give_back(s, e);
    if (!rc)
        rc = bytes_used(s, &used, e);
    /* What goes at once is a share of what is there, so that few rounds are needed, and little too much goes. */
    for (bool large = most_bytes && (uint64_t)used > most_bytes; !rc && (large || aged); aged = false) {
        int64_t all = 0;
        gone = 0;
        if (large && !(rc = number_of(s, "SELECT count(*) FROM spans", &all, e)))
            rc = remove_some(s, INT64_MAX, (uint64_t)all / 10 + 1, &gone, e);
        if (!rc)
            rc = tidy(s, e);
        if (!rc)
            rc = bytes_used(s, &used, e);
        large = (uint64_t)used > most_bytes && most_bytes && gone;
    }
    return rc;
}
