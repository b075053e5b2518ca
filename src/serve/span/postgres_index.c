/* SPDX-License-Identifier: MIT */
/* PostgreSQL: missing indexes of an older store's days. They are built over a connection of their own, outside of
 * transactions and of the writers' lock. A build may take hours, while spans arrive. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/time.h"
#include "span/postgres.h"

enum { INDEX_LOCK = 0x77656675, TIMEOUT_H = 24 };
static const int64_t again_ns = 300 * NS_PER_S;

static const struct {
    const char *name, *columns;
} indexes[] = {{"by_parent", "trace, parent"}, {"by_number", "number"}};
enum { N_INDEXES = sizeof indexes / sizeof *indexes };

/* Finds the first index that is missing or incomplete; N_INDEXES: none. *broken: a failed attempt left a part of it. */
static int next_index(struct postgres *p, const char *table, size_t *out, bool *broken, struct err *e)
{
    *broken = false;
    for (*out = 0; *out < N_INDEXES; ++*out) {
        struct postgres_values v = {0};
        PGresult *r;
        char name[64];
        snprintf(name, sizeof name, "%s_%s", table, indexes[*out].name);
        postgres_put_text(&v, name);
        int rc = postgres_ask(p, "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)", &v, &r, e);
        if (rc)
            return rc;
        *broken = PQntuples(r) && !*PQgetvalue(r, 0, 0);
        const bool whole = PQntuples(r) && !*broken;
        PQclear(r);
        if (!whole)
            return 0;
    }
    return 0;
}

void postgres_index_stop(struct postgres *p)
{
    struct postgres *x = p->indexer;
    char ignored[256];
    p->indexer = NULL;
    if (!x)
        return;
    PGcancel *cancel = x->c && PQtransactionStatus(x->c) == PQTRANS_ACTIVE ? PQgetCancel(x->c) : NULL;
    if (cancel)
        PQcancel(cancel, ignored, sizeof ignored);
    PQfreeCancel(cancel);
    PQfinish(x->c);
    postgres_forget(x);
    free(x->schema);
    free(x);
}

/* Connects to build. Only one collector builds at a time. *mine: this one. */
static int open_indexer(struct postgres *p, bool *mine, struct err *e)
{
    struct postgres *x = p->indexer = mem_zalloc(sizeof *x);
    struct postgres_values v = {0};
    PGresult *r;
    x->is = p->is;
    x->url = p->url;
    int rc = postgres_ready(x, e);
    if (rc)
        return rc;
    postgres_put_number(&v, INDEX_LOCK);
    postgres_put_text(&v, x->schema);
    rc = postgres_ask(x, "SELECT pg_try_advisory_lock($1::int, hashtext($2))", &v, &r, e);
    if (rc)
        return rc;
    *mine = PQntuples(r) && *PQgetvalue(r, 0, 0);
    PQclear(r);
    rc = postgres_change(x, e, "SET default_transaction_read_only = off");
    rc = rc ? rc : postgres_change(x, e, "SET statement_timeout = '%dh'", TIMEOUT_H);
    return rc ? rc : postgres_change(x, e, "SET lock_timeout = 0");
}

static int begin_index(struct postgres *p, const char *table, struct err *e)
{
    char sql[200];
    size_t i;
    bool mine = false, broken;
    int rc = open_indexer(p, &mine, e);
    rc = rc || !mine ? rc : next_index(p->indexer, table, &i, &broken, e);
    if (rc || !mine || i == N_INDEXES) {
        postgres_index_stop(p);
        p->index_again_ns = time_monotonic_ns() + (mine ? 0 : again_ns / 10);
        return rc;
    }
    if (broken)
        snprintf(sql, sizeof sql, "DROP INDEX CONCURRENTLY %s_%s", table, indexes[i].name);
    else
        snprintf(sql, sizeof sql, "CREATE INDEX CONCURRENTLY %s_%s ON %s (%s)", table, indexes[i].name, table,
            indexes[i].columns);
    if (PQsendQuery(p->indexer->c, sql))
        return 0;
    postgres_index_stop(p);
    return err_set(e, ERR_BUSY, "%s: the connection was lost", p->is.name);
}

bool postgres_index_is_busy(struct postgres *p)
{
    if (!p->indexer)
        return time_monotonic_ns() < p->index_again_ns;
    PQflush(p->indexer->c);
    return PQconsumeInput(p->indexer->c) && PQisBusy(p->indexer->c);
}

/* Reads the result of the build. */
static int end_index(struct postgres *p, const char *table, struct err *e)
{
    PGresult *r = PQgetResult(p->indexer->c);
    int rc = 0;
    if (PQresultStatus(r) != PGRES_COMMAND_OK)
        rc = err_set(e, ERR_IO, "%s: calls and terms of spans in %s have to wait, its index cannot be made: %s",
            p->is.name, table, PQerrorMessage(p->indexer->c));
    PQclear(r);
    postgres_index_stop(p);
    if (rc)
        p->index_again_ns = time_monotonic_ns() + again_ns;
    return rc;
}

int postgres_index_day(struct postgres *p, const char *table, bool *whole, struct err *e)
{
    size_t i;
    bool broken;
    int rc = p->indexer ? end_index(p, table, e) : 0;
    rc = rc ? rc : next_index(p, table, &i, &broken, e);
    *whole = !rc && i == N_INDEXES;
    if (rc || *whole)
        return rc;
    rc = begin_index(p, table, e);
    if (rc)
        p->index_again_ns = time_monotonic_ns() + again_ns / 10;
    return rc;
}
