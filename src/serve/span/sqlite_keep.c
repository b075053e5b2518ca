/* SPDX-License-Identifier: MIT */
/* SQLite: retention, in small transactions. Each costs only what it removes, so that arriving spans do not wait. */
#include <sqlite3.h>
#include <stdio.h>

#include "base/time.h"
#include "span/sqlite.h"

enum { SPANS_AT_ONCE = 512, NAMES_AT_ONCE = 512 };
static const int64_t part_ns = 50 * 1000000;

/* ---- sizes ---- */

static int number_of(struct sqlite_store *s, const char *query, int64_t *out, struct err *e)
{
    sqlite3_stmt *q;
    if (sqlite3_prepare_v2(s->db, query, -1, &q, NULL) != SQLITE_OK)
        return sqlite_fail(s, e);
    *out = 0;
    int rc = sqlite_first_number(s, q, out, e);
    sqlite3_finalize(q);
    return rc;
}

struct size {
    uint64_t file, used;
}; /* bytes; used: without free pages */

static int measure(struct sqlite_store *s, struct size *out, struct err *e)
{
    int64_t pages, unused, bytes;
    int rc = number_of(s, "PRAGMA page_count", &pages, e);
    rc = rc ? rc : number_of(s, "PRAGMA freelist_count", &unused, e);
    rc = rc ? rc : number_of(s, "PRAGMA page_size", &bytes, e);
    if (!rc)
        *out = (struct size){(uint64_t)(pages * bytes), (uint64_t)((pages - unused) * bytes)};
    return rc;
}

/* ---- spans ---- */

/* Finds the oldest spans up to the last one received before a time, except those received since. */
static int find_old(struct sqlite_store *s, int64_t since_ns, int64_t numbers[SPANS_AT_ONCE], int *n, struct err *e)
{
    sqlite3_stmt *q;
    int step;
    if (sqlite3_prepare_v2(s->db,
            "SELECT number FROM (SELECT number, came FROM spans ORDER BY number LIMIT ?1) WHERE came < ?2", -1, &q,
            NULL) != SQLITE_OK)
        return sqlite_fail(s, e);
    sqlite3_bind_int64(q, 1, SPANS_AT_ONCE);
    sqlite3_bind_int64(q, 2, since_ns);
    while ((step = sqlite3_step(q)) == SQLITE_ROW)
        numbers[(*n)++] = sqlite3_column_int64(q, 0);
    int rc = step == SQLITE_DONE ? 0 : sqlite_fail(s, e);
    sqlite3_finalize(q);
    return rc;
}

static int remove_spans(struct sqlite_store *s, int64_t since_ns, bool *some, struct err *e)
{
    int64_t numbers[SPANS_AT_ONCE];
    int n = 0, rc = find_old(s, since_ns, numbers, &n, e);
    if (rc || !n || (rc = sqlite_begin(&s->is, e)))
        return rc;
    for (int i = 0; i < n && !rc; i++)
        rc = sqlite_remove_span(s, numbers[i], e);
    sqlite_forget_ids(s);
    rc = rc ? rc : sqlite_calls_write(s, e);
    rc = rc ? rc : sqlite_finish(s, sqlite_statement(s, STATEMENT_COMMIT, e), e);
    if (rc)
        sqlite_rollback(&s->is);
    *some = !rc;
    return rc;
}

/* Shrinks a store that is too large to 15/16 of its limit, so that this is rare. */
static int remove_beyond(struct sqlite_store *s, uint64_t most_bytes, bool *some, struct err *e)
{
    struct size size;
    int rc = measure(s, &size, e);
    *some = false;
    if (rc || !most_bytes)
        return rc;
    s->to_give_back |= size.file > most_bytes && size.file > size.used;
    s->shrinking = size.used > (s->shrinking ? most_bytes - most_bytes / 16 : most_bytes);
    return s->shrinking ? remove_spans(s, INT64_MAX, some, e) : 0;
}

/* ---- names ---- */

/* Removes a text or origin from the writer's caches; the row is the deleted one. */
static void forget_text(struct sqlite_store *s, sqlite3_stmt *q)
{
    map_remove(&s->texts, map_hash(sqlite3_column_text(q, 0), (size_t)sqlite3_column_bytes(q, 0)));
}

static void forget_origin(struct sqlite_store *s, sqlite3_stmt *q)
{
    const uint64_t *hash = sqlite3_column_blob(q, 0);
    if (hash && sqlite3_column_bytes(q, 0) == 2 * sizeof *hash)
        map_remove(&s->origins, hash[0]);
}

static const struct {
    const char *sql;
    void (*forget)(struct sqlite_store *, sqlite3_stmt *);
} unused[] = {{"DELETE FROM operations WHERE (service, name, kind) IN"
               " (SELECT service, name, kind FROM operations WHERE last < ?1 LIMIT ?2) RETURNING 0",
                  NULL},
    {"DELETE FROM texts WHERE number IN (SELECT number FROM texts WHERE last < ?1 LIMIT ?2) RETURNING text",
        forget_text},
    {"DELETE FROM origins WHERE number IN (SELECT number FROM origins WHERE last < ?1 LIMIT ?2) RETURNING hash",
        forget_origin}};

static int remove_names(struct sqlite_store *s, size_t which, int64_t oldest, bool *some, struct err *e)
{
    sqlite3_stmt *q;
    int step;
    if (sqlite3_prepare_v2(s->db, unused[which].sql, -1, &q, NULL) != SQLITE_OK)
        return sqlite_fail(s, e);
    sqlite3_bind_int64(q, 1, oldest);
    sqlite3_bind_int64(q, 2, NAMES_AT_ONCE);
    while ((step = sqlite3_step(q)) == SQLITE_ROW) {
        *some = true;
        if (unused[which].forget)
            unused[which].forget(s, q);
    }
    int rc = step == SQLITE_DONE ? 0 : sqlite_fail(s, e);
    sqlite3_finalize(q);
    return rc;
}

/* Finds the era of the oldest span. Without spans, the era of the last one ends. */
static int oldest_era(struct sqlite_store *s, int64_t *out, struct err *e)
{
    int64_t oldest;
    int rc = number_of(s, "SELECT min(number) FROM spans", &oldest, e);
    if (!rc && !oldest && SQLITE_ERA(s->next - 1) == SQLITE_ERA(s->next)) {
        s->next = (SQLITE_ERA(s->next) + 1) * SQLITE_ERA_SPANS;
        rc = sqlite_set_about(s, "next number", (uint64_t)s->next, e);
    }
    *out = SQLITE_ERA(oldest ? oldest : s->next);
    return rc;
}

/* Removes the oldest searchable group if all of its spans are gone. */
static int remove_group(struct sqlite_store *s, bool *some, struct err *e)
{
    int64_t group = -1, oldest = s->next;
    char query[200];
    int rc = number_of(s, "SELECT coalesce(min(number), -1) FROM groups", &group, e);
    rc = rc ? rc : number_of(s, "SELECT coalesce(min(number), 0) FROM spans", &oldest, e);
    if (rc || group < 0 || group >= SQLITE_GROUP(oldest ? oldest : s->next))
        return rc;
    *some = true;
    snprintf(query, sizeof query,
        "DELETE FROM terms WHERE number >= %lld AND number < %lld; DELETE FROM groups WHERE number = %lld",
        (long long)SQLITE_TERMS_KEY(group, 0), (long long)SQLITE_TERMS_KEY(group + 1, 0), (long long)group);
    return sqlite_run(s, query, e);
}

static int tidy(struct sqlite_store *s, bool *some, struct err *e)
{
    int64_t oldest;
    int rc = sqlite_begin(&s->is, e);
    if (rc)
        return rc;
    rc = oldest_era(s, &oldest, e);
    for (size_t i = 0; i < sizeof unused / sizeof *unused && !rc; i++)
        rc = remove_names(s, i, oldest, some, e);
    rc = rc ? rc : remove_group(s, some, e);
    rc = rc ? rc : sqlite_finish(s, sqlite_statement(s, STATEMENT_COMMIT, e), e);
    s->to_give_back |= *some;
    if (rc)
        sqlite_rollback(&s->is);
    return rc;
}

/* ---- space ---- */

/* Moves some free pages to the end of the file, and returns them to the file system. *some: more can be returned. A
 * database without a pointer map, as a dump makes it, can return none. If readers are in the way, the rest is done next
 * time. */
static int give_back(struct sqlite_store *s, bool *some, struct err *e)
{
    struct size before, after;
    int rc = measure(s, &before, e);
    rc = rc ? rc : sqlite_run(s, "PRAGMA incremental_vacuum(128)", e);
    rc = rc ? rc : measure(s, &after, e);
    *some = !rc && after.file > after.used && after.file < before.file;
    if (rc || *some)
        return rc;
    sqlite3_busy_timeout(s->db, 0);
    rc = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    sqlite3_busy_timeout(s->db, SQLITE_BUSY_MS);
    s->to_give_back = rc == SQLITE_BUSY;
    return rc == SQLITE_OK || rc == SQLITE_BUSY ? 0 : sqlite_fail(s, e);
}

/* Runs the first pending task. Names of removed spans go before more spans, since they may be most of the size. */
static int keep_some(struct sqlite_store *s, int64_t since_ns, uint64_t most_bytes, bool *some, struct err *e)
{
    *some = false;
    int rc = s->to_tidy ? tidy(s, some, e) : 0;
    if (rc || *some)
        return rc;
    s->to_tidy = false;
    rc = remove_spans(s, since_ns, some, e);
    if (!rc && !*some)
        rc = remove_beyond(s, most_bytes, some, e);
    if (*some)
        s->to_tidy = s->to_give_back = true;
    return rc || *some || !s->to_give_back ? rc : give_back(s, some, e);
}

int sqlite_keep(struct span_store *is, int64_t since_ns, uint64_t most_bytes, bool *more, struct err *e)
{
    const int64_t until = time_monotonic_ns() + part_ns;
    int rc;
    do
        rc = keep_some(sqlite_of(is), since_ns, most_bytes, more, e);
    while (!rc && *more && time_monotonic_ns() < until);
    return rc;
}
