/* SPDX-License-Identifier: MIT */
/* PostgreSQL: letting go. Whole days go with their tables, and so their space does. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/time.h"
#include "span/postgres.h"

/* Spans of one day that came long after the others keep it; so long the others wait for it. */
static const int64_t wait_for_day_ns = 2 * 86400 * NS_PER_S, hour_ns = 3600 * NS_PER_S;
enum { PAGE_BYTES = 8192, LOCK_MS = 2000, STATEMENT_S = 600 };

struct kept_day {
    int32_t day;
    int64_t first, last, bytes, pages;
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
                (int32_t)postgres_number(r, i, 0), postgres_number(r, i, 1), postgres_number(r, i, 2), 0, 0}));
    if (!rc)
        PQclear(r);
    return rc;
}

static int read_sizes(struct postgres *p, struct kept_days *days, uint64_t *all, struct err *e)
{
    int rc = 0;
    *all = 0;
    for (size_t i = 0; i < days->v.n && !rc; i++) {
        struct postgres_values v = {0};
        PGresult *r;
        char table[32];
        postgres_day_table(days->v.v[i].day, table, sizeof table);
        postgres_put_text(&v, table);
        rc = postgres_ask(p, "SELECT pg_total_relation_size($1::regclass), pg_relation_size($1::regclass)", &v, &r, e);
        if (rc)
            break;
        days->v.v[i].bytes = postgres_number(r, 0, 0);
        days->v.v[i].pages = postgres_number(r, 0, 1) / PAGE_BYTES;
        *all += (uint64_t)days->v.v[i].bytes;
        PQclear(r);
    }
    return rc;
}

/* All of a day. Those two that are always there become empty. */
static int drop_day(struct postgres *p, int32_t day, struct err *e)
{
    char table[32];
    postgres_day_table(day, table, sizeof table);
    int rc = postgres_calls_drop_day(p, day, e);
    rc = rc ? rc : postgres_change(p, e, "%s TABLE %s", day < 0 ? "TRUNCATE" : "DROP", table);
    return rc ? rc : postgres_change(p, e, "DELETE FROM days WHERE day = %d", day);
}

/* What came before a time, of a day that has more. */
static int delete_from_day(struct postgres *p, int32_t day, int64_t since_ns, struct err *e)
{
    char table[32], old[48];
    postgres_day_table(day, table, sizeof table);
    snprintf(old, sizeof old, "came < %lld", (long long)since_ns);
    int rc = postgres_calls_remove(p, e, table, old);
    rc = rc ? rc : postgres_change(p, e, "DELETE FROM %s WHERE %s", table, old);
    return rc ? rc
              : postgres_change(p, e, "UPDATE days SET first_came = %lld WHERE day = %d", (long long)since_ns, day);
}

/* A day that alone is too large: the last part of it, which came last, in a new table. */
static int shorten_day(struct postgres *p, const struct kept_day *d, double share, struct err *e)
{
    char table[32], old[40], ctid[32], goes[64];
    struct postgres_values v = {0};
    PGresult *r;
    int64_t page = (int64_t)((double)d->pages * (1 - share)), cut = d->first;
    snprintf(ctid, sizeof ctid, "(%lld,0)", (long long)page);
    postgres_day_table(d->day, table, sizeof table);
    snprintf(old, sizeof old, "%s_old", table);
    snprintf(goes, sizeof goes, "ctid < '%s'", ctid);
    int rc = postgres_calls_remove(p, e, table, goes);
    rc = rc ? rc : postgres_change(p, e, "ALTER TABLE %s RENAME TO %s", table, old);
    rc = rc ? rc : postgres_make_day(p, d->day, table, e);
    postgres_put_text(&v, ctid);
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT came FROM %s WHERE ctid >= $1::tid ORDER BY ctid LIMIT 1", old);
    if (!rc && !(rc = postgres_ask(p, sql, &v, &r, e))) {
        cut = PQntuples(r) ? postgres_number(r, 0, 0) : cut;
        PQclear(r);
    }
    rc = rc ? rc
            : postgres_change(p, e, "INSERT INTO %s SELECT * FROM %s WHERE ctid >= '(%lld,0)' ORDER BY ctid", table,
                  old, (long long)page);
    rc = rc ? rc : postgres_change(p, e, "DROP TABLE %s", old);
    rc = rc ? rc : postgres_attach_day(p, d->day, table, e);
    return rc ? rc : postgres_change(p, e, "UPDATE days SET first_came = %lld WHERE day = %d", (long long)cut, d->day);
}

/* Names and origins that no span there can have: nothing that came since they were told last is there. */
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
    rc = rc ? rc : postgres_ask(p, POSTGRES_BY_INDEX, NULL, NULL, e);
    rc = rc ? rc : postgres_terms_tidy(p, e);
    return rc ? rc : postgres_ask(p, "UPDATE about SET value = value + 1 WHERE key = 'generation'", NULL, NULL, e);
}

static int drop_old(struct postgres *p, const struct kept_days *days, int64_t since_ns, bool *changed, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < days->v.n && !rc; i++) {
        const struct kept_day *d = &days->v.v[i];
        if (d->last < since_ns)
            rc = drop_day(p, d->day, e);
        else if (d->first < since_ns - wait_for_day_ns)
            rc = delete_from_day(p, d->day, since_ns, e);
        else
            continue;
        *changed = true;
    }
    return rc;
}

/* The days that came first, but for the last one, of which there is more than what may be: of that three quarters. */
static int drop_most(struct postgres *p, struct kept_days *days, uint64_t most_bytes, bool *changed, struct err *e)
{
    uint64_t all;
    int rc = read_days(p, days, e);
    rc = rc ? rc : read_sizes(p, days, &all, e);
    for (size_t i = 0; i < days->v.n && !rc && all > most_bytes; i++) {
        const struct kept_day *d = &days->v.v[i];
        bool last = i + 1 == days->v.n;
        *changed = true;
        if (last)
            return shorten_day(p, d, 0.75 * (double)most_bytes / (double)all, e);
        rc = drop_day(p, d->day, e);
        all -= (uint64_t)d->bytes;
    }
    return rc;
}

int postgres_keep(struct span_store *s, int64_t since_ns, uint64_t most_bytes, bool *more, struct err *e)
{
    (void)more; /* days go as a whole */
    struct postgres *p = postgres_of(s);
    struct kept_days days = {0};
    bool changed = false;
    int rc = postgres_ready(p, e);
    rc = rc ? rc : postgres_ask(p, "BEGIN", NULL, NULL, e);
    if (rc)
        return rc;
    rc = postgres_lock(p, e);
    /* Whoever reads is not waited for: others would wait behind. It goes the next time. */
    rc = rc ? rc : postgres_change(p, e, "SET LOCAL lock_timeout = %d", LOCK_MS);
    rc = rc ? rc : postgres_change(p, e, "SET LOCAL statement_timeout = '%ds'", STATEMENT_S);
    p->patience_ns = (STATEMENT_S + 5) * NS_PER_S;
    rc = rc ? rc : read_days(p, &days, e);
    rc = rc ? rc : drop_old(p, &days, since_ns, &changed, e);
    rc = rc || !most_bytes ? rc : drop_most(p, &days, most_bytes, &changed, e);
    rc = rc || !changed ? rc : tidy(p, e);
    rc = rc ? rc : postgres_ask(p, "COMMIT", NULL, NULL, e);
    p->patience_ns = 0;
    if (rc)
        postgres_rollback(s);
    vec_free(&days.v);
    return rc;
}
