/* SPDX-License-Identifier: MIT */
/* PostgreSQL: the schema, its version, and a table for each day. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "span/postgres.h"

enum { SCHEMA = 2, LOCK = 0x77656674, DAY_S = 86400 };

#define CALLS \
    "CREATE TABLE calls (width bigint NOT NULL, bucket bigint NOT NULL, parent bigint NOT NULL," \
    " child bigint NOT NULL, parent_day integer NOT NULL, child_day integer NOT NULL, n bigint NOT NULL," \
    " PRIMARY KEY (width, bucket, parent, child, parent_day, child_day))"
#define GROUPS \
    "CREATE TABLE groups (number bigint PRIMARY KEY, first bigint NOT NULL, last bigint NOT NULL," \
    " longest bigint NOT NULL)"
#define TERMS \
    "CREATE TABLE terms (grp bigint NOT NULL, key bigint NOT NULL, spans bytea NOT NULL, PRIMARY KEY (grp, key))"
#define UNNUMBERED "CREATE TABLE unnumbered (day integer PRIMARY KEY)"
#define NUMBERS "INSERT INTO about (key, value) VALUES ('next number', 0), ('next group', 0)"
#define UNCOUNTED "CREATE TABLE uncounted (day integer PRIMARY KEY, after uuid)"

/* Tables of spans are by the day in which spans begin, so a repeated span meets the first one there, whenever it is
 * received. Indexes are per table. `came` of a day: first and last receipt of its spans. */
static const char *const schema[] = {
    "CREATE TABLE about (key text PRIMARY KEY, value bigint NOT NULL)",
    "CREATE TABLE texts (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, hash uuid NOT NULL UNIQUE,"
    " text text NOT NULL)",
    "CREATE TABLE origins (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, hash uuid NOT NULL UNIQUE,"
    " hour bigint NOT NULL, body bytea NOT NULL)",
    "CREATE TABLE operations (service bigint NOT NULL, name bigint NOT NULL, kind bigint NOT NULL,"
    " hour bigint NOT NULL, PRIMARY KEY (service, name, kind))",
    "CREATE TABLE days (day integer PRIMARY KEY, first_came bigint NOT NULL, last_came bigint NOT NULL)",
    /* Constraint that refuses collectors of schema 1, which count no calls. */
    "ALTER TABLE days ADD COLUMN counts boolean NOT NULL DEFAULT true CHECK (counts)",
    "ALTER TABLE days ALTER COLUMN counts SET DEFAULT false",
    CALLS,
    UNCOUNTED,
    GROUPS,
    TERMS,
    UNNUMBERED,
    NUMBERS,
    "CREATE TABLE spans (day integer NOT NULL, life smallint NOT NULL, trace uuid NOT NULL, id bytea NOT NULL,"
    " hash bigint NOT NULL, came bigint NOT NULL, service bigint NOT NULL, name bigint NOT NULL,"
    " begin bigint NOT NULL, lasted bigint NOT NULL, origin bigint NOT NULL, parent bytea, body bytea NOT NULL,"
    " number bigint)"
    " PARTITION BY LIST (day)",
};

int postgres_change(struct postgres *p, struct err *e, const char *fmt, ...)
{
    char sql[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(sql, sizeof sql, fmt, ap);
    va_end(ap);
    return postgres_ask(p, sql, NULL, NULL, e);
}

int postgres_lock(struct postgres *p, struct err *e)
{
    struct postgres_values v = {0};
    postgres_put_text(&v, p->schema);
    postgres_put_number(&v, LOCK);
    return postgres_ask(p, "SELECT pg_advisory_xact_lock($2::int, hashtext($1))", &v, NULL, e);
}

/* ---- days ---- */

void postgres_day_table(int32_t day, char *out, size_t n)
{
    time_t t = (time_t)day * DAY_S;
    struct tm at;
    if (day < 0)
        snprintf(out, n, "%s", day == POSTGRES_OPEN ? "spans_open" : "spans_other");
    else if (gmtime_r(&t, &at))
        snprintf(out, n, "spans_%04d%02d%02d", at.tm_year + 1900, at.tm_mon + 1, at.tm_mday);
}

/* Makes a day's table by itself; postgres_attach_day attaches it. Making it as a partition would lock out readers. */
int postgres_make_day(struct postgres *p, int32_t day, const char *table, struct err *e)
{
    int rc = postgres_change(p, e, "CREATE TABLE %s (LIKE spans, CHECK (day = %d))", table, day);
    rc = rc ? rc : postgres_change(p, e, "CREATE UNIQUE INDEX ON %s (trace, id, hash)", table);
    rc = rc ? rc : postgres_change(p, e, "CREATE INDEX ON %s (trace, parent)", table);
    rc = rc ? rc : postgres_change(p, e, "CREATE INDEX ON %s (number)", table);
    return rc ? rc : postgres_change(p, e, "CREATE INDEX ON %s (service, begin, name, lasted)", table);
}

int postgres_attach_day(struct postgres *p, int32_t day, const char *table, struct err *e)
{
    return postgres_change(p, e, "ALTER TABLE spans ATTACH PARTITION %s FOR VALUES IN (%d)", table, day);
}

/* ---- the schema ---- */

/* Chooses the schema: by the search_path of the role or the URL, or else `weft`. */
static int choose_schema(struct postgres *p, struct err *e)
{
    PGresult *r;
    struct postgres_values v = {0};
    int rc = postgres_ask(p,
        "SELECT CASE WHEN source IN ('default', 'configuration file') THEN 'weft' ELSE current_schema()::text END,"
        " current_setting('server_encoding') FROM pg_settings WHERE name = 'search_path'",
        NULL, &r, e);
    if (rc)
        return rc;
    if (PQntuples(r) != 1 || PQgetisnull(r, 0, 0))
        rc = err_set(e, ERR_ARG, "%s: its search_path names no schema that exists: create it", p->is.name);
    else if (strcmp(postgres_text(r, 0, 1), "UTF8") != 0)
        rc = err_set(e, ERR_UNSUPPORTED, "%s has encoding %s: spans need a database of encoding UTF8", p->is.name,
            postgres_text(r, 0, 1));
    if (!rc) {
        free(p->schema);
        p->schema = mem_strdup(postgres_text(r, 0, 0));
        postgres_put_text(&v, p->schema);
    }
    PQclear(r);
    return rc ? rc : postgres_ask(p, "SELECT set_config('search_path', quote_ident($1), false)", &v, NULL, e);
}

/* Reads the version; 0: no schema. */
static int read_version(struct postgres *p, int64_t *out, struct err *e)
{
    PGresult *r;
    struct postgres_values v = {0};
    *out = 0;
    postgres_put_text(&v, p->schema);
    int rc = postgres_ask(p, "SELECT to_regclass(quote_ident($1) || '.about') IS NOT NULL", &v, &r, e);
    if (rc)
        return rc;
    bool there = PQntuples(r) && *PQgetvalue(r, 0, 0);
    PQclear(r);
    if (!there)
        return 0;
    rc = postgres_ask(p, "SELECT value FROM about WHERE key = 'schema'", NULL, &r, e);
    if (rc)
        return rc;
    *out = PQntuples(r) ? postgres_number(r, 0, 0) : 0;
    PQclear(r);
    return 0;
}

static int make_schema(struct postgres *p, struct err *e)
{
    PGresult *r;
    struct postgres_values v = {0};
    int64_t version;
    int rc = postgres_lock(p, e);
    rc = rc ? rc : read_version(p, &version, e);
    if (rc || version)
        return rc; /* created by another collector */
    postgres_put_text(&v, p->schema);
    if ((rc = postgres_ask(p, "SELECT to_regnamespace(quote_ident($1)) IS NOT NULL", &v, &r, e)))
        return rc;
    bool there = PQntuples(r) && *PQgetvalue(r, 0, 0);
    PQclear(r);
    if (!there) /* `weft` alone can be missing: other names exist */
        rc = postgres_ask(p, "CREATE SCHEMA weft", NULL, NULL, e);
    for (size_t i = 0; !rc && i < sizeof schema / sizeof *schema; i++)
        rc = postgres_ask(p, schema[i], NULL, NULL, e);
    for (int32_t day = POSTGRES_OPEN; !rc && day <= POSTGRES_OTHER; day++) {
        char table[32];
        postgres_day_table(day, table, sizeof table);
        rc = postgres_make_day(p, day, table, e);
        rc = rc ? rc : postgres_attach_day(p, day, table, e);
    }
    return rc
        ? rc
        : postgres_change(p, e, "INSERT INTO about (key, value) VALUES ('schema', %d), ('generation', 1)", SCHEMA);
}

/* Upgrades the schema. Schema 1 counts no calls: postgres_catch_up adds them. Its spans stay unnumbered until they are
 * deleted, since numbering would rewrite all of them. */
static int upgrade(struct postgres *p, struct err *e)
{
    static const char *const changes[] = {
        "ALTER TABLE days ADD COLUMN counts boolean NOT NULL DEFAULT true CHECK (counts)",
        "ALTER TABLE days ALTER COLUMN counts SET DEFAULT false", CALLS, UNCOUNTED, GROUPS, TERMS, UNNUMBERED, NUMBERS,
        "ALTER TABLE spans ADD COLUMN number bigint",
        "INSERT INTO uncounted (day) SELECT day FROM days UNION VALUES (-2), (-1)",
        "INSERT INTO unnumbered (day) SELECT day FROM uncounted", "UPDATE about SET value = 2 WHERE key = 'schema'"};
    int64_t version;
    int rc = postgres_lock(p, e);
    rc = rc ? rc : read_version(p, &version, e);
    for (size_t i = 0; !rc && version == 1 && i < sizeof changes / sizeof *changes; i++)
        rc = postgres_ask(p, changes[i], NULL, NULL, e);
    return rc;
}

static int provide_schema(struct postgres *p, int64_t *version, struct err *e)
{
    int rc = postgres_ask(p, "BEGIN", NULL, NULL, e);
    rc = rc ? rc : *version ? upgrade(p, e) : make_schema(p, e);
    rc = rc ? rc : postgres_ask(p, "COMMIT", NULL, NULL, e);
    return rc ? rc : read_version(p, version, e);
}

int postgres_check_schema(struct postgres *p, struct err *e)
{
    int64_t version;
    int rc = choose_schema(p, e);
    rc = rc ? rc : read_version(p, &version, e);
    if (!rc && version < SCHEMA && p->filled)
        rc = provide_schema(p, &version, e);
    if (rc)
        return rc;
    p->version = version;
    p->caught_up = p->terms_are_whole = false;
    if (!version)
        return err_set(e, ERR_NOTFOUND,
            "%s: there are no spans in its schema %s (a collector keeps them: weft collect "
            "--store %s)",
            p->is.name, p->schema, p->is.name);
    return version <= SCHEMA
        ? 0
        : err_set(e, ERR_UNSUPPORTED,
              "%s: schema %s has version %lld, and this weft reads 1 to %d: use the weft that made it", p->is.name,
              p->schema, (long long)version, SCHEMA);
}
