/* SPDX-License-Identifier: MIT */
/* PostgreSQL: retention. Whole days are dropped with their tables, which frees their space. Each call does one step in
 * its own transaction, so that finished steps stay, and writers take turns. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/time.h"
#include "span/postgres.h"

/* wait_for_day_ns: spans of a day that were received later than others keep the day. The others are kept for that time,
 * too. */
static const int64_t wait_for_day_ns = 2 * 86400 * NS_PER_S, hour_ns = 3600 * NS_PER_S;
enum { PAGE_BYTES = 8192, LOCK_MS = 2000, STATEMENT_S = 600, SPANS_AT_ONCE = 5000, PAGES_AT_ONCE = 128 };
/* Step: nothing to do; more steps may follow at once; no more should follow. */
enum step { NOTHING, STEP, LAST_STEP };

struct kept_day {
    int32_t day;
    int64_t first, last, bytes, pages, table; /* table: its oid */
};
struct kept_days {
    VEC(struct kept_day) v;
};

static int read_days(struct postgres *p, struct kept_days *out, struct err *e)
{
    PGresult *r;
    out->v.n = 0;
    int rc = postgres_ask(
        p, "SELECT day::bigint, first_came, last_came FROM days ORDER BY last_came, day", NULL, &r, e);
    for (int i = 0; !rc && i < PQntuples(r); i++)
        vec_push(&out->v,
            ((struct kept_day){
                (int32_t)postgres_number(r, i, 0), postgres_number(r, i, 1), postgres_number(r, i, 2), 0, 0, 0}));
    if (!rc)
        PQclear(r);
    return rc;
}

/* Reads the sizes of days, and of the tables about them. */
static int read_sizes(struct postgres *p, struct kept_days *days, uint64_t *all, uint64_t *about, struct err *e)
{
    PGresult *sizes;
    int rc = postgres_ask(p,
        "SELECT pg_total_relation_size('calls') + pg_total_relation_size('groups') + pg_total_relation_size('terms')",
        NULL, &sizes, e);
    if (rc)
        return rc;
    *all = 0;
    *about = (uint64_t)postgres_number(sizes, 0, 0);
    PQclear(sizes);
    for (size_t i = 0; i < days->v.n && !rc; i++) {
        struct postgres_values v = {0};
        PGresult *r;
        char table[32];
        postgres_day_table(days->v.v[i].day, table, sizeof table);
        postgres_put_text(&v, table);
        rc = postgres_ask(p,
            "SELECT pg_total_relation_size($1::regclass), pg_relation_size($1::regclass), $1::regclass::oid::bigint",
            &v, &r, e);
        if (rc)
            break;
        days->v.v[i].bytes = postgres_number(r, 0, 0);
        days->v.v[i].pages = postgres_number(r, 0, 1) / PAGE_BYTES;
        days->v.v[i].table = postgres_number(r, 0, 2);
        *all += (uint64_t)days->v.v[i].bytes;
        PQclear(r);
    }
    return rc;
}

/* Notifies other collectors that numbers or tables are gone. */
static int change_generation(struct postgres *p, struct err *e)
{
    p->untidy = true;
    return postgres_ask(p, "UPDATE about SET value = value + 1 WHERE key = 'generation'", NULL, NULL, e);
}

/* Drops a whole day. The two permanent tables are emptied. */
static int drop_day(struct postgres *p, int32_t day, struct err *e)
{
    char table[32];
    postgres_day_table(day, table, sizeof table);
    int rc = postgres_calls_drop_day(p, day, e);
    rc = rc ? rc : postgres_change(p, e, "%s TABLE %s", day < 0 ? "TRUNCATE" : "DROP", table);
    rc = rc ? rc : postgres_change(p, e, "DELETE FROM days WHERE day = %d", day);
    return rc ? rc : change_generation(p, e);
}

static void write_trace(const uint8_t trace[SPAN_TRACE_BYTES], char out[2 * SPAN_TRACE_BYTES + 1])
{
    for (size_t i = 0; i < SPAN_TRACE_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", trace[i]);
}

/* Finds the last trace of the next part. *more: others follow it. */
static int find_part(
    struct postgres *p, const char *table, const char *after, uint8_t last[SPAN_TRACE_BYTES], bool *more, struct err *e)
{
    char sql[300];
    PGresult *r;
    snprintf(sql, sizeof sql,
        "SELECT trace FROM %s WHERE trace > '%s' AND came < %lld ORDER BY trace OFFSET %d LIMIT 1", table, after,
        (long long)p->removing.since, SPANS_AT_ONCE);
    int rc = postgres_ask(p, sql, NULL, &r, e);
    if (rc)
        return rc;
    *more = PQntuples(r) && PQgetlength(r, 0, 0) == SPAN_TRACE_BYTES;
    memset(last, 0xff, SPAN_TRACE_BYTES);
    if (*more)
        memcpy(last, PQgetvalue(r, 0, 0), SPAN_TRACE_BYTES);
    PQclear(r);
    return 0;
}

/* Deletes a part of a day's spans received before a time, while the day has others. Goes by traces, which are
 * indexed. */
static int delete_from_day(struct postgres *p, int32_t day, int64_t since_ns, struct err *e)
{
    char table[32], after[2 * SPAN_TRACE_BYTES + 1], to[2 * SPAN_TRACE_BYTES + 1], old[200];
    uint8_t last[SPAN_TRACE_BYTES];
    bool more;
    if (!p->removing.any || p->removing.day != day) {
        memset(&p->removing, 0, sizeof p->removing);
        p->removing.any = true;
        p->removing.day = day;
        p->removing.since = since_ns;
    }
    postgres_day_table(day, table, sizeof table);
    write_trace(p->removing.after, after);
    int rc = postgres_ask(p, POSTGRES_BY_INDEX, NULL, NULL, e);
    rc = rc ? rc : find_part(p, table, after, last, &more, e);
    if (rc)
        return rc;
    write_trace(last, to);
    snprintf(
        old, sizeof old, "trace > '%s' AND trace <= '%s' AND came < %lld", after, to, (long long)p->removing.since);
    rc = postgres_calls_remove(p, e, table, old);
    rc = rc ? rc : postgres_ask(p, POSTGRES_BY_INDEX, NULL, NULL, e);
    rc = rc ? rc : postgres_change(p, e, "DELETE FROM %s WHERE %s", table, old);
    rc = rc ? rc : postgres_ask(p, POSTGRES_AS_USUAL, NULL, NULL, e);
    memcpy(p->removing.after, last, sizeof last); /* discarded if the transaction fails */
    if (rc || more)
        return rc;
    rc = postgres_change(p, e, "UPDATE days SET first_came = %lld WHERE day = %d", (long long)p->removing.since, day);
    p->removing.any = false;
    return rc ? rc : change_generation(p, e);
}

/* Finds when the first spans that stay were received. New spans may lie in pages that an earlier attempt freed. */
static int find_cut(struct postgres *p, const char *table, struct err *e)
{
    const long long end = p->shortening.end;
    char sql[160];
    PGresult *r;
    snprintf(sql, sizeof sql, "SELECT coalesce(min(came), %lld) FROM %s WHERE ctid >= '(%lld,0)' AND ctid < '(%lld,0)'",
        (long long)time_now_ns(), table, end, end + PAGES_AT_ONCE);
    int rc = postgres_ask(p, sql, NULL, &r, e);
    if (rc)
        return rc;
    p->shortening.cut = postgres_number(r, 0, 0);
    PQclear(r);
    return 0;
}

/* Deletes the spans of the next pages, which were received before those of later pages. */
static int delete_pages(struct postgres *p, const char *table, struct err *e)
{
    char old[140];
    const int64_t from = p->shortening.page;
    /* Before PostgreSQL 14 a range of pages costs a scan of the table: then one step takes all. */
    p->shortening.page += PQserverVersion(p->c) < 140000 ? INT32_MAX : PAGES_AT_ONCE; /* discarded on failure */
    if (p->shortening.page > p->shortening.end)
        p->shortening.page = p->shortening.end;
    snprintf(old, sizeof old, "ctid >= '(%lld,0)' AND ctid < '(%lld,0)' AND came <= %lld", (long long)from,
        (long long)p->shortening.page, (long long)p->shortening.cut);
    int rc = postgres_calls_remove(p, e, table, old);
    return rc ? rc : postgres_change(p, e, "DELETE FROM %s WHERE %s", table, old);
}

/* Copies a day's spans into a new table: deleting them alone does not free space. */
static int copy_day(struct postgres *p, int32_t day, const char *table, struct err *e)
{
    char old[40];
    snprintf(old, sizeof old, "%s_old", table);
    int rc = postgres_change(p, e, "ALTER TABLE %s RENAME TO %s", table, old);
    rc = rc ? rc : postgres_make_day(p, day, table, e);
    for (int freed = 0; freed < 2; freed++) /* spans in freed pages are the newest: they come last */
        rc = rc ? rc
                : postgres_change(p, e, "INSERT INTO %s SELECT * FROM %s WHERE ctid %s '(%lld,0)' ORDER BY ctid", table,
                      old, freed ? "<" : ">=", (long long)p->shortening.end);
    rc = rc ? rc : postgres_change(p, e, "DROP TABLE %s", old);
    rc = rc ? rc : postgres_attach_day(p, day, table, e);
    rc = rc ? rc
            : postgres_change(p, e,
                  "UPDATE days SET first_came = coalesce((SELECT min(came) FROM %s), first_came) WHERE day = %d", table,
                  day);
    return rc ? rc : change_generation(p, e);
}

/* Shortens a day that is too large alone, to a share of its pages. */
static int shorten_day(struct postgres *p, const struct kept_day *d, double share, enum step *done, struct err *e)
{
    char table[32];
    int rc = 0;
    postgres_day_table(d->day, table, sizeof table);
    if (!p->shortening.any || p->shortening.table != d->table) {
        p->shortening.any = true;
        p->shortening.table = d->table;
        p->shortening.page = 0;
        p->shortening.end = (int64_t)((double)d->pages * (1 - share));
        rc = find_cut(p, table, e);
    }
    if (rc)
        return rc;
    *done = p->shortening.page < p->shortening.end ? STEP : LAST_STEP;
    if (*done == STEP)
        return delete_pages(p, table, e);
    p->shortening.any = false;
    return copy_day(p, d->day, table, e);
}

/* Deletes names and origins without spans: nothing received since their last use is stored. */
static int tidy(struct postgres *p, struct err *e)
{
    static const char *const gone[] = {
        "DELETE FROM operations WHERE hour < (SELECT coalesce(min(first_came) / $1, 9223372036854775807) FROM days)",
        "DELETE FROM origins WHERE hour < (SELECT coalesce(min(first_came) / $1, 9223372036854775807) FROM days)"};
    struct postgres_values v = {0};
    int rc = 0;
    postgres_put_number(&v, hour_ns);
    for (size_t i = 0; i < sizeof gone / sizeof *gone && !rc; i++)
        rc = postgres_ask(p, gone[i], &v, NULL, e);
    rc = rc ? rc
            : postgres_ask(p,
                  "DELETE FROM texts WHERE NOT EXISTS (SELECT FROM operations WHERE service = number)"
                  " AND NOT EXISTS (SELECT FROM operations WHERE name = number)",
                  NULL, NULL, e);
    rc = rc ? rc : postgres_calls_tidy(p, e);
    rc = rc ? rc : postgres_terms_tidy(p, e);
    rc = rc ? rc : change_generation(p, e);
    p->untidy = rc != 0;
    return rc;
}

static int drop_old(struct postgres *p, const struct kept_days *days, int64_t since_ns, enum step *done, struct err *e)
{
    for (size_t i = 0; i < days->v.n; i++) {
        const struct kept_day *d = &days->v.v[i];
        const bool begun = p->removing.any && p->removing.day == d->day;
        const bool some_old = since_ns > INT64_MIN + wait_for_day_ns && d->first < since_ns - wait_for_day_ns;
        *done = STEP;
        if (d->last < since_ns)
            return drop_day(p, d->day, e);
        if (begun || some_old)
            return delete_from_day(p, d->day, since_ns, e);
    }
    *done = NOTHING;
    return 0;
}

/* Drops the day received first. If it is the last one, keeps only the part that fits in three quarters of most_bytes.
 * Space of calls and terms is reused, but not freed, so it counts as most_bytes / 2 at most. Otherwise days would be
 * dropped for it without end. */
static int drop_most(struct postgres *p, struct kept_days *days, uint64_t most_bytes, enum step *done, struct err *e)
{
    uint64_t all, about;
    int rc = read_sizes(p, days, &all, &about, e);
    if (rc)
        return rc;
    most_bytes -= about < most_bytes / 2 ? about : most_bytes / 2;
    if (!days->v.n || all <= most_bytes)
        return 0;
    *done = STEP;
    return days->v.n == 1 ? shorten_day(p, &days->v.v[0], 0.75 * (double)most_bytes / (double)all, done, e)
                          : drop_day(p, days->v.v[0].day, e);
}

int postgres_keep(struct span_store *s, int64_t since_ns, uint64_t most_bytes, bool *more, struct err *e)
{
    struct postgres *p = postgres_of(s);
    struct kept_days days = {0};
    enum step done = NOTHING;
    *more = false;
    int rc = postgres_ready(p, e);
    rc = rc ? rc : postgres_ask(p, "BEGIN", NULL, NULL, e);
    if (rc)
        return rc;
    rc = postgres_lock(p, e);
    /* Short timeout: waiting for readers would block others behind. A failed step is repeated next time. */
    rc = rc ? rc : postgres_change(p, e, "SET LOCAL lock_timeout = %d", LOCK_MS);
    rc = rc ? rc : postgres_change(p, e, "SET LOCAL statement_timeout = '%ds'", STATEMENT_S);
    p->patience_ns = (STATEMENT_S + 5) * NS_PER_S;
    rc = rc ? rc : read_days(p, &days, e);
    rc = rc ? rc : drop_old(p, &days, since_ns, &done, e);
    rc = rc || done || !most_bytes ? rc : drop_most(p, &days, most_bytes, &done, e);
    rc = rc || done || !p->untidy ? rc : tidy(p, e);
    rc = rc ? rc : postgres_ask(p, "COMMIT", NULL, NULL, e);
    p->patience_ns = 0;
    if (rc) {
        p->removing.any = p->shortening.any = false;
        postgres_rollback(s);
    }
    *more = !rc && done == STEP;
    vec_free(&days.v);
    return rc;
}
