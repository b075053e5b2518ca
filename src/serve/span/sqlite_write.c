/* SPDX-License-Identifier: MIT */
/* SQLite: writes of the collector. */
#include <sqlite3.h>
#include <string.h>

#include "base/time.h"
#include "span/sqlite.h"

enum { MOST_KNOWN = 1 << 20, MOST_IDS = 1 << 18 };

void sqlite_forget_ids(struct sqlite_store *s)
{
    map_fini(&s->traces);
    map_fini(&s->ids);
    map_fini(&s->calls.awaited);
    s->traces = s->ids = s->calls.awaited = (struct map){0};
}

static void forget(struct sqlite_store *s)
{
    sqlite_forget_ids(s);
    map_fini(&s->texts);
    map_fini(&s->origins);
    map_fini(&s->used);
    s->texts = s->origins = s->used = (struct map){0};
}

int sqlite_begin(struct span_store *is, struct err *e)
{
    struct sqlite_store *s = sqlite_of(is);
    int rc = sqlite_finish(s, sqlite_statement(s, STATEMENT_BEGIN, e), e);
    if (rc)
        return rc;
    if (!s->next) {
        sqlite3_stmt *q = sqlite_statement(s, STATEMENT_NEXT, e);
        rc = q ? sqlite_first_number(s, q, &s->next, e) : e->code;
    }
    rc = rc ? rc : sqlite_terms_begin(s, e);
    rc = rc ? rc : sqlite_calls_begin(s, e);
    if (rc)
        sqlite_rollback(is);
    return rc;
}

void sqlite_rollback(struct span_store *is)
{
    struct sqlite_store *s = sqlite_of(is);
    struct err ignored = {0};
    sqlite_finish(s, sqlite_statement(s, STATEMENT_ROLLBACK, &ignored), &ignored);
    s->next = 0;
    forget(s);
    sqlite_terms_forget(s);
    sqlite_calls_forget(s);
}

int sqlite_commit(struct span_store *is, const struct log_position *at, struct err *e)
{
    struct sqlite_store *s = sqlite_of(is);
    if (s->texts.n > MOST_KNOWN || s->origins.n > MOST_KNOWN || s->used.n > MOST_KNOWN)
        forget(s);
    if (s->traces.n > MOST_IDS || s->ids.n > MOST_IDS || s->calls.awaited.n > MOST_IDS)
        sqlite_forget_ids(s);
    int rc = sqlite_calls_write(s, e);
    if (!rc)
        rc = sqlite_set_about(s, "log file", at->file, e);
    if (!rc)
        rc = sqlite_set_about(s, "log offset", at->offset, e);
    if (!rc)
        rc = sqlite_set_about(s, "next number", (uint64_t)s->next, e);
    return rc ? rc : sqlite_finish(s, sqlite_statement(s, STATEMENT_COMMIT, e), e);
}

int sqlite_catch_up(struct span_store *is, bool *more, struct err *e)
{
    struct sqlite_store *s = sqlite_of(is);
    if (s->caught_up && s->calls.to >= 0 && s->calls.from >= s->calls.to)
        return 0;
    int rc = sqlite_begin(is, e);
    if (rc)
        return rc;
    rc = sqlite_terms_catch_up(s, more, e);
    rc = rc ? rc : sqlite_calls_catch_up(s, more, e);
    rc = rc ? rc : sqlite_finish(s, sqlite_statement(s, STATEMENT_COMMIT, e), e);
    if (rc)
        sqlite_rollback(is);
    return rc;
}

int sqlite_position(struct span_store *is, struct log_position *at, struct err *e)
{
    struct sqlite_store *s = sqlite_of(is);
    int rc = sqlite_about(s, "log file", &at->file, e);
    return rc ? rc : sqlite_about(s, "log offset", &at->offset, e);
}

int sqlite_sync(struct span_store *is, bool *all, struct err *e)
{
    struct sqlite_store *s = sqlite_of(is);
    int frames = 0, moved = 0;
    int rc = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &frames, &moved);
    *all = rc == SQLITE_OK && frames == moved;
    return rc == SQLITE_OK || rc == SQLITE_BUSY ? 0 : sqlite_fail(s, e);
}

/* ---- names in use ---- */

static uint64_t use_key(enum sqlite_statement what, int64_t number)
{
    return map_mix((uint64_t)number * STATEMENTS + what);
}

/* Returns the era of the next span. When an era begins, nothing is marked as used. */
static int64_t era(struct sqlite_store *s)
{
    int64_t now = SQLITE_ERA(s->next);
    if (s->era != now) {
        map_fini(&s->used);
        s->used = (struct map){0};
        s->era = now;
    }
    return now;
}

/* Marks a text or origin as used in this era: one update per era. */
static int use(struct sqlite_store *s, enum sqlite_statement what, int64_t number, struct err *e)
{
    bool fresh;
    int64_t now = era(s);
    map_put(&s->used, use_key(what, number), &fresh);
    if (!fresh)
        return 0;
    sqlite3_stmt *q = sqlite_statement(s, what, e);
    if (q) {
        sqlite3_bind_int64(q, 1, number);
        sqlite3_bind_int64(q, 2, now);
    }
    return sqlite_finish(s, q, e);
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
    int rc = sqlite_first_number(s, q, out, e);
    if (!rc && !*out) {
        q = sqlite_statement(s, STATEMENT_NEW_TEXT, e);
        if (q) {
            sqlite3_bind_text(q, 1, text, (int)n, SQLITE_STATIC);
            sqlite3_bind_int64(q, 2, era(s));
        }
        rc = sqlite_finish(s, q, e);
        *out = sqlite3_last_insert_rowid(s->db);
        map_put(&s->used, use_key(STATEMENT_USE_TEXT, *out), NULL);
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
    int rc = sqlite_first_number(s, q, out, e);
    if (!rc && !*out) {
        q = sqlite_statement(s, STATEMENT_NEW_ORIGIN, e);
        if (q) {
            sqlite3_bind_blob(q, 1, hash, sizeof hash, SQLITE_STATIC);
            sqlite3_bind_blob(q, 2, body, (int)n, SQLITE_STATIC);
            sqlite3_bind_int64(q, 3, era(s));
        }
        rc = sqlite_finish(s, q, e);
        *out = sqlite3_last_insert_rowid(s->db);
        map_put(&s->used, use_key(STATEMENT_USE_ORIGIN, *out), NULL);
    }
    *known = rc ? 0 : (uint64_t)*out;
    return rc;
}

/* Marks the operation, its texts and the origin as used by the next span. */
static int use_names(struct sqlite_store *s, int64_t name, enum span_kind kind, struct err *e)
{
    bool fresh;
    const int64_t now = era(s), key[] = {s->service, name, kind, now};
    int rc = use(s, STATEMENT_USE_ORIGIN, s->origin, e);
    map_put(&s->used, map_hash(key, sizeof key), &fresh);
    if (rc || !fresh)
        return rc;
    sqlite3_stmt *q = sqlite_statement(s, STATEMENT_OPERATION, e);
    for (int i = 0; q && i < 4; i++)
        sqlite3_bind_int64(q, i + 1, key[i]);
    rc = sqlite_finish(s, q, e);
    rc = rc ? rc : use(s, STATEMENT_USE_TEXT, s->service, e);
    return rc ? rc : use(s, STATEMENT_USE_TEXT, name, e);
}

uint64_t sqlite_ids_hash(const void *trace, const void *id)
{
    uint8_t ids[SPAN_TRACE_BYTES + SPAN_ID_BYTES];
    memcpy(ids, trace, SPAN_TRACE_BYTES);
    memcpy(ids + SPAN_TRACE_BYTES, id, SPAN_ID_BYTES);
    return map_hash(ids, sizeof ids);
}

/* Returns whether a span with these ids may be stored. Most spans belong to new traces, so one query per trace saves
 * one per span. */
static int may_be_there(struct sqlite_store *s, const struct span *span, bool *may, bool *new_trace, struct err *e)
{
    enum { WAS_THERE = 1, WAS_NOT };
    bool fresh;
    uint64_t *known = map_put(&s->traces, map_hash(span->trace_id, SPAN_TRACE_BYTES), &fresh);
    if (fresh || !*known) {
        int64_t number = 0;
        sqlite3_stmt *q = sqlite_statement(s, STATEMENT_TRACE, e);
        if (!q)
            return e->code;
        sqlite3_bind_blob(q, 1, span->trace_id, SPAN_TRACE_BYTES, SQLITE_STATIC);
        int rc = sqlite_first_number(s, q, &number, e);
        if (rc)
            return rc;
        *known = number ? WAS_THERE : WAS_NOT;
    }
    *may = *known == WAS_THERE;
    *new_trace = !*may;
    if (!*may) {
        sqlite_note_service(&s->ids, sqlite_ids_hash(span->trace_id, span->id), s->service, &fresh);
        *may = !fresh;
    }
    return 0;
}

/* Compares with stored spans of the same ids. The new one is dropped if it is stored already, or less complete than a
 * stored one. Stored ones that are less complete are deleted. Ended spans with different contents are all kept, as for
 * client and server. */
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
    for (size_t i = 0; !rc && *take && i < outdone.n; i++)
        rc = sqlite_remove_span(s, outdone.v[i], e);
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
    bool may = false, new_trace = false, take = true;
    int64_t name;
    uint64_t hash[2];
    const struct map_piece pieces[] = {{&s->origin, sizeof s->origin}, {body, n}};
    map_hash_pieces(pieces, 2, hash);
    int rc = may_be_there(s, span, &may, &new_trace, e);
    if (!rc && may)
        rc = compare_with_same_id(s, span, (int64_t)hash[0], &take, e);
    if (rc || !take)
        return rc;
    rc = text_number(s, span->name, &name, e);
    if (!rc)
        rc = use_names(s, name, span->kind, e);
    rc = rc ? rc : sqlite_calls_add(s, span, new_trace, e);
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
    sqlite3_bind_int64(q, 13, s->next);
    rc = sqlite_finish(s, q, e);
    return rc ? rc : sqlite_terms_add(s, s->next++, span, body, n, e);
}
