/* SPDX-License-Identifier: MIT */
/* SQLite: terms of spans, by groups. */
#include <sqlite3.h>

#include "span/sqlite.h"

static int of_origin(void *arg, int64_t origin, void (*take)(void *, uint64_t), void *take_arg, struct err *e)
{
    struct sqlite_store *s = arg;
    sqlite3_stmt *q = sqlite_statement(s, STATEMENT_ORIGIN_BODY, e);
    if (!q)
        return e->code;
    sqlite3_bind_int64(q, 1, origin);
    int step = sqlite3_step(q);
    if (step == SQLITE_ROW) {
        struct wire_in in = wire_of(sqlite3_column_blob(q, 0), (size_t)sqlite3_column_bytes(q, 0));
        span_each_origin_term(&in, take, take_arg);
    }
    int rc = step == SQLITE_ROW || step == SQLITE_DONE ? 0 : sqlite_fail(s, e);
    sqlite3_reset(q);
    return rc;
}

struct putting {
    struct sqlite_store *store;
    int64_t group;
};

static int of_origin_put(void *arg, int64_t origin, void (*take)(void *, uint64_t), void *take_arg, struct err *e)
{
    return of_origin(((struct putting *)arg)->store, origin, take, take_arg, e);
}

static int put(void *arg, int64_t key, const void *blob, size_t n, struct err *e)
{
    const struct putting *p = arg;
    sqlite3_stmt *q = sqlite_statement(p->store, STATEMENT_PUT_TERMS, e);
    if (q) {
        sqlite3_bind_int64(q, 1, SQLITE_TERMS_KEY(p->group, key));
        sqlite3_bind_blob(q, 2, blob, (int)n, SQLITE_STATIC);
    }
    return sqlite_finish(p->store, q, e);
}

static int write_group(struct sqlite_store *s, struct term_group *t, int64_t group, struct err *e)
{
    struct putting p = {s, group};
    const int64_t first = t->first_ns, last = t->last_ns, longest = t->longest_ns;
    if (!t->n)
        return 0;
    int rc = term_group_write(t, of_origin_put, put, &p, e);
    sqlite3_stmt *q = rc ? NULL : sqlite_statement(s, STATEMENT_PUT_GROUP, e);
    if (!q)
        return e->code;
    sqlite3_bind_int64(q, 1, group);
    sqlite3_bind_int64(q, 2, first);
    sqlite3_bind_int64(q, 3, last);
    sqlite3_bind_int64(q, 4, longest);
    return sqlite_finish(s, q, e);
}

static void take_terms(struct term_group *t, const void *body, size_t n)
{
    struct wire_in in = wire_of(body, n);
    span_each_term(&in, term_take, t);
}

static int read_group(struct sqlite_store *s, struct term_group *t, int64_t group, struct err *e)
{
    int step;
    sqlite3_stmt *q = sqlite_statement(s, STATEMENT_GROUP_ROWS, e);
    if (!q)
        return e->code;
    sqlite3_bind_int64(q, 1, group * TERM_GROUP);
    sqlite3_bind_int64(q, 2, (group + 1) * TERM_GROUP);
    while ((step = sqlite3_step(q)) == SQLITE_ROW) {
        term_begin_span(t, (uint32_t)(sqlite3_column_int64(q, 0) % TERM_GROUP), sqlite3_column_int64(q, 1),
            sqlite3_column_int64(q, 2), sqlite3_column_int64(q, 3));
        take_terms(t, sqlite3_column_blob(q, 4), (size_t)sqlite3_column_bytes(q, 4));
    }
    int rc = step == SQLITE_DONE ? 0 : sqlite_fail(s, e);
    sqlite3_reset(q);
    return rc;
}

void sqlite_terms_forget(struct sqlite_store *s)
{
    term_group_fini(&s->terms);
    s->group = -1;
}

int sqlite_terms_begin(struct sqlite_store *s, struct err *e)
{
    if (s->group >= 0)
        return 0;
    int rc = read_group(s, &s->terms, SQLITE_GROUP(s->next), e);
    s->group = rc ? -1 : SQLITE_GROUP(s->next);
    return rc;
}

int sqlite_terms_add(
    struct sqlite_store *s, int64_t number, const struct span *span, const void *body, size_t n, struct err *e)
{
    int rc = 0;
    if (SQLITE_GROUP(number) != s->group) {
        rc = write_group(s, &s->terms, s->group, e);
        s->group = SQLITE_GROUP(number);
    }
    if (rc)
        return rc;
    term_begin_span(
        &s->terms, (uint32_t)(number % TERM_GROUP), span->begin_ns, span->end_ns - span->begin_ns, s->origin);
    take_terms(&s->terms, body, n);
    return 0;
}

int sqlite_terms_catch_up(struct sqlite_store *s, bool *more, struct err *e)
{
    struct term_group t = {0};
    uint64_t from = 0, to = 0;
    if (s->caught_up)
        return 0;
    int rc = sqlite_about(s, "terms from", &from, e);
    rc = rc ? rc : sqlite_about(s, "terms to", &to, e);
    s->caught_up = !rc && from >= to;
    if (rc || s->caught_up)
        return rc;
    rc = read_group(s, &t, (int64_t)from, e);
    rc = rc ? rc : write_group(s, &t, (int64_t)from, e);
    term_group_fini(&t);
    *more |= !rc && from + 1 < to;
    return rc ? rc : sqlite_set_about(s, "terms from", from + 1, e);
}
