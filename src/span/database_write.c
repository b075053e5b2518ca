/* The collector's side of the database: adding, and letting go. */
#include <sqlite3.h>
#include <string.h>

#include "base/time.h"
#include "span/database.h"

enum { REMOVED_AT_ONCE = 20000, MOST_KNOWN = 1 << 20 };

static const char *const sql[DATABASE_STATEMENTS] = {
    [DATABASE_BEGIN] = "BEGIN IMMEDIATE",
    [DATABASE_COMMIT] = "COMMIT",
    [DATABASE_ROLLBACK] = "ROLLBACK",
    [DATABASE_SAME_ID] = "SELECT number, life, hash, begin + lasted FROM spans WHERE trace = ?1 AND id = ?2",
    [DATABASE_REMOVE] = "DELETE FROM spans WHERE number = ?1",
    [DATABASE_INSERT] = "INSERT INTO spans (trace, id, life, hash, came, service, name, begin, lasted, origin,"
                        " body, parent) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    [DATABASE_TEXT] = "SELECT number FROM texts WHERE text = ?1",
    [DATABASE_NEW_TEXT] = "INSERT INTO texts (text) VALUES (?1)",
    [DATABASE_ORIGIN] = "SELECT number FROM origins WHERE hash = ?1",
    [DATABASE_NEW_ORIGIN] = "INSERT INTO origins (hash, body) VALUES (?1, ?2)",
    [DATABASE_OPERATION] = "INSERT OR IGNORE INTO operations (service, name, kind) VALUES (?1, ?2, ?3)",
    [DATABASE_ABOUT] = "SELECT value FROM about WHERE key = ?1",
    [DATABASE_SET_ABOUT] = "INSERT INTO about (key, value) VALUES (?1, ?2)"
                           " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
};

sqlite3_stmt *database_statement(struct span_store *s, enum database_statement which, struct err *e)
{
    if (!s->prepared[which] &&
        sqlite3_prepare_v3(s->db, sql[which], -1, SQLITE_PREPARE_PERSISTENT, &s->prepared[which], NULL) != SQLITE_OK)
        database_fail(s, e);
    if (s->prepared[which])
        sqlite3_reset(s->prepared[which]);
    return s->prepared[which];
}

/* Of a statement that gives no row. */
static int finish(struct span_store *s, sqlite3_stmt *q, struct err *e)
{
    int rc = q && sqlite3_step(q) == SQLITE_DONE ? 0 : q ? database_fail(s, e) : e->code;
    if (q)
        sqlite3_reset(q);
    return rc;
}

/* The number in the first row; *out stays where there is none. */
static int first_number(struct span_store *s, sqlite3_stmt *q, int64_t *out, struct err *e)
{
    int step = sqlite3_step(q), rc = step == SQLITE_ROW || step == SQLITE_DONE ? 0 : database_fail(s, e);
    if (step == SQLITE_ROW)
        *out = sqlite3_column_int64(q, 0);
    sqlite3_reset(q);
    return rc;
}

static void forget(struct span_store *s)
{
    map_fini(&s->texts);
    map_fini(&s->origins);
    map_fini(&s->operations);
    s->texts = s->origins = s->operations = (struct map){0};
}

int database_begin(struct span_store *s, struct err *e)
{
    return finish(s, database_statement(s, DATABASE_BEGIN, e), e);
}

void database_rollback(struct span_store *s)
{
    struct err ignored = {0};
    finish(s, database_statement(s, DATABASE_ROLLBACK, &ignored), &ignored);
    forget(s);
}

static int set_about(struct span_store *s, const char *key, uint64_t value, struct err *e)
{
    sqlite3_stmt *q = database_statement(s, DATABASE_SET_ABOUT, e);
    if (q) {
        sqlite3_bind_text(q, 1, key, -1, SQLITE_STATIC);
        sqlite3_bind_int64(q, 2, (int64_t)value);
    }
    return finish(s, q, e);
}

static int about(struct span_store *s, const char *key, uint64_t *value, struct err *e)
{
    int64_t v = 0;
    sqlite3_stmt *q = database_statement(s, DATABASE_ABOUT, e);
    if (!q)
        return e->code;
    sqlite3_bind_text(q, 1, key, -1, SQLITE_STATIC);
    int rc = first_number(s, q, &v, e);
    *value = (uint64_t)v;
    return rc;
}

int database_commit(struct span_store *s, const struct log_position *at, struct err *e)
{
    if (s->texts.n > MOST_KNOWN || s->origins.n > MOST_KNOWN || s->operations.n > MOST_KNOWN)
        forget(s);
    int rc = set_about(s, "log file", at->file, e);
    if (!rc)
        rc = set_about(s, "log offset", at->offset, e);
    return rc ? rc : finish(s, database_statement(s, DATABASE_COMMIT, e), e);
}

int database_position(struct span_store *s, struct log_position *at, struct err *e)
{
    int rc = about(s, "log file", &at->file, e);
    return rc ? rc : about(s, "log offset", &at->offset, e);
}

int database_sync(struct span_store *s, bool *all, struct err *e)
{
    int frames = 0, moved = 0;
    int rc = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &frames, &moved);
    *all = rc == SQLITE_OK && frames == moved;
    return rc == SQLITE_OK || rc == SQLITE_BUSY ? 0 : database_fail(s, e);
}

/* ---- adding ---- */

static int text_number(struct span_store *s, const char *text, int64_t *out, struct err *e)
{
    bool fresh;
    size_t n = strlen(text);
    uint64_t hash = map_hash(text, n), *known = map_put(&s->texts, hash, &fresh);
    if (!fresh && *known) {
        *out = (int64_t)*known;
        return 0;
    }
    *out = 0;
    sqlite3_stmt *q = database_statement(s, DATABASE_TEXT, e);
    if (!q)
        return e->code;
    sqlite3_bind_text(q, 1, text, (int)n, SQLITE_STATIC);
    int rc = first_number(s, q, out, e);
    if (!rc && !*out) {
        q = database_statement(s, DATABASE_NEW_TEXT, e);
        if (q)
            sqlite3_bind_text(q, 1, text, (int)n, SQLITE_STATIC);
        rc = finish(s, q, e);
        *out = sqlite3_last_insert_rowid(s->db);
    }
    *known = rc ? 0 : (uint64_t)*out;
    return rc;
}

/* What the spans that follow have in common. */
struct made_by {
    int64_t origin, service;
};

static int origin_number(struct span_store *s, const void *body, size_t n, int64_t *out, struct err *e)
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
    sqlite3_stmt *q = database_statement(s, DATABASE_ORIGIN, e);
    if (!q)
        return e->code;
    sqlite3_bind_blob(q, 1, hash, sizeof hash, SQLITE_STATIC);
    int rc = first_number(s, q, out, e);
    if (!rc && !*out) {
        q = database_statement(s, DATABASE_NEW_ORIGIN, e);
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

static int note_operation(struct span_store *s, int64_t service, int64_t name, enum span_kind kind, struct err *e)
{
    bool fresh;
    const int64_t key[] = {service, name, kind};
    map_put(&s->operations, map_hash(key, sizeof key), &fresh);
    if (!fresh)
        return 0;
    sqlite3_stmt *q = database_statement(s, DATABASE_OPERATION, e);
    for (int i = 0; q && i < 3; i++)
        sqlite3_bind_int64(q, i + 1, key[i]);
    return finish(s, q, e);
}

/* Of spans of the same ids: the new one is not taken if it is there already, or less is known of it than of one there;
 * of which less is known, that goes. Ended ones of other contents stay beside each other, as client and server do. */
static int compare_with_same_id(struct span_store *s, const struct span *span, int64_t hash, bool *take, struct err *e)
{
    VEC(int64_t) outdone = {0};
    int step, rc = 0;
    *take = true;
    sqlite3_stmt *q = database_statement(s, DATABASE_SAME_ID, e);
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
        rc = database_fail(s, e);
    sqlite3_reset(q);
    for (size_t i = 0; !rc && *take && i < outdone.n; i++) {
        if ((q = database_statement(s, DATABASE_REMOVE, e)))
            sqlite3_bind_int64(q, 1, outdone.v[i]);
        rc = finish(s, q, e);
    }
    vec_free(&outdone);
    return rc;
}

static int add_span(struct span_store *s, const struct made_by *by, const void *body, size_t n, const struct span *span,
    int64_t came_ns, struct err *e)
{
    bool take;
    int64_t name;
    uint64_t hash[2];
    const struct map_piece pieces[] = {{&by->origin, sizeof by->origin}, {body, n}};
    map_hash_pieces(pieces, 2, hash);
    int rc = compare_with_same_id(s, span, (int64_t)hash[0], &take, e);
    if (rc || !take)
        return rc;
    rc = text_number(s, span->name, &name, e);
    if (!rc)
        rc = note_operation(s, by->service, name, span->kind, e);
    sqlite3_stmt *q = rc ? NULL : database_statement(s, DATABASE_INSERT, e);
    if (!q)
        return e->code;
    const int64_t numbers[] = {(int64_t)span->life, (int64_t)hash[0], came_ns, by->service, name, span->begin_ns,
        span->end_ns - span->begin_ns, by->origin};
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

int database_add(struct span_store *s, const void *records, size_t n, int64_t came_ns, uint64_t *damaged, struct err *e)
{
    struct wire_in in = wire_of(records, n), origin, body;
    struct made_by by = {0};
    int rc = 0;
    while (!rc && span_next_record(&in, &origin, &body)) {
        struct span_origin o = {0};
        struct span span = {0};
        const void *v = origin.at != origin.end ? origin.at : body.at;
        size_t bytes = (size_t)(origin.at != origin.end ? origin.end - origin.at : body.end - body.at);
        arena_fini(&s->arena);
        if (origin.at != origin.end) {
            by.origin = 0;
            if (!span_read_origin(&origin, &s->arena, &o))
                ++*damaged;
            else if (!(rc = text_number(s, o.service, &by.service, e)))
                rc = origin_number(s, v, bytes, &by.origin, e);
        } else if (!by.origin || !span_read_head(&body, &s->arena, &span)) {
            ++*damaged;
        } else {
            rc = add_span(s, &by, v, bytes, &span, came_ns, e);
        }
    }
    *damaged += in.damaged;
    return rc;
}

/* ---- letting go ---- */

static int number_of(struct span_store *s, const char *query, int64_t *out, struct err *e)
{
    sqlite3_stmt *q;
    if (sqlite3_prepare_v2(s->db, query, -1, &q, NULL) != SQLITE_OK)
        return database_fail(s, e);
    *out = 0;
    int rc = first_number(s, q, out, e);
    sqlite3_finalize(q);
    return rc;
}

static int bytes_used(struct span_store *s, int64_t *out, struct err *e)
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
static int remove_some(struct span_store *s, int64_t since_ns, uint64_t most, uint64_t *removed, struct err *e)
{
    sqlite3_stmt *q;
    if (sqlite3_prepare_v2(s->db,
            "DELETE FROM spans WHERE number <= (SELECT max(number) FROM (SELECT number, came FROM spans ORDER BY number"
            " LIMIT ?1) WHERE came < ?2)",
            -1, &q, NULL) != SQLITE_OK)
        return database_fail(s, e);
    sqlite3_bind_int64(q, 1, (int64_t)most);
    sqlite3_bind_int64(q, 2, since_ns);
    int rc = sqlite3_step(q) == SQLITE_DONE ? 0 : database_fail(s, e);
    sqlite3_finalize(q);
    *removed = rc ? 0 : (uint64_t)sqlite3_changes64(s->db);
    return rc;
}

/* Pages of what was removed go back to the file system; when readers are in the way, the next time. */
static int give_back(struct span_store *s, struct err *e)
{
    int rc = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    s->to_give_back = rc == SQLITE_BUSY;
    return rc == SQLITE_OK || rc == SQLITE_BUSY ? 0 : database_fail(s, e);
}

/* What nothing refers to any more. */
static int tidy(struct span_store *s, struct err *e)
{
    forget(s);
    int rc = database_run(s,
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

int database_keep(struct span_store *s, int64_t since_ns, uint64_t most_bytes, uint64_t *removed, struct err *e)
{
    uint64_t gone = 0;
    int64_t used = 0;
    int rc = 0;
    *removed = 0;
    do {
        rc = remove_some(s, since_ns, REMOVED_AT_ONCE, &gone, e);
        *removed += gone;
    } while (!rc && gone);
    bool aged = *removed;
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
        *removed += gone;
        if (!rc)
            rc = tidy(s, e);
        if (!rc)
            rc = bytes_used(s, &used, e);
        large = (uint64_t)used > most_bytes && most_bytes && gone;
    }
    return rc;
}
