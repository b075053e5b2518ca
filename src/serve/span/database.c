/* SPDX-License-Identifier: MIT */
/* Database of a store, independent of its kind. */
#include "span/database.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

bool span_store_is_url(const char *store)
{
    return !strncmp(store, "postgresql://", 13) || !strncmp(store, "postgres://", 11);
}

static const struct database_kind *kind_of(const char *store)
{
    return span_store_is_url(store) ? &database_postgres : &database_sqlite;
}

int span_store_open(const char *store, struct span_store **out, struct err *e)
{
    return kind_of(store)->open(store, NULL, out, e);
}

int database_open_to_write(const char *store, const char *directory, struct span_store **out, struct err *e)
{
    return kind_of(store)->open(store, directory, out, e);
}

void span_store_close(struct span_store *s)
{
    if (s)
        s->kind->close(s);
}

int database_begin(struct span_store *s, struct err *e)
{
    return s->kind->begin(s, e);
}

int database_commit(struct span_store *s, const struct log_position *at, struct err *e)
{
    return s->kind->commit(s, at, e);
}

void database_rollback(struct span_store *s)
{
    s->kind->rollback(s);
}

int database_position(struct span_store *s, struct log_position *at, struct err *e)
{
    return s->kind->position(s, at, e);
}

int database_sync(struct span_store *s, bool *all, struct err *e)
{
    return s->kind->sync(s, all, e);
}

int database_keep(struct span_store *s, int64_t since_ns, uint64_t most_bytes, bool *more, struct err *e)
{
    *more = false;
    return s->kind->keep(s, since_ns, most_bytes, more, e);
}

int database_catch_up(struct span_store *s, bool *more, struct err *e)
{
    *more = false;
    return s->kind->catch_up(s, more, e);
}

int database_services(struct span_store *s, struct arena *arena, struct database_names *out, struct err *e)
{
    return s->kind->services(s, arena, out, e);
}

int database_operations(
    struct span_store *s, const char *service, struct arena *arena, struct database_operations *out, struct err *e)
{
    return s->kind->operations(s, service, arena, out, e);
}

int database_calls(
    struct span_store *s, const struct database_time *t, struct arena *arena, struct database_calls *out, struct err *e)
{
    return s->kind->calls(s, t, arena, out, e);
}

/* ---- adding ---- */

int database_add(struct span_store *s, const void *records, size_t n, int64_t came_ns, uint64_t *damaged, struct err *e)
{
    struct wire_in in = wire_of(records, n), origin, body;
    bool has_origin = false;
    struct arena arena = {0}; /* memory of the batch */
    int rc = 0;
    while (!rc && span_next_record(&in, &origin, &body)) {
        struct span_origin o = {0};
        struct span span = {0};
        const void *v = origin.at != origin.end ? origin.at : body.at;
        size_t bytes = (size_t)(origin.at != origin.end ? origin.end - origin.at : body.end - body.at);
        if (origin.at != origin.end) {
            has_origin = span_read_origin(&origin, &arena, &o);
            *damaged += !has_origin;
            rc = has_origin ? s->kind->add_origin(s, &o, v, bytes, e) : 0;
        } else if (!has_origin || !span_read_head(&body, &arena, &span)) {
            ++*damaged;
        } else {
            rc = s->kind->add_span(s, &span, v, bytes, came_ns, e);
        }
    }
    arena_fini(&arena);
    *damaged += in.damaged;
    return rc;
}

/* ---- reading ---- */

struct span_cursor {
    struct span_store *store;
    struct database_rows *rows;
    struct map origins; /* number → address */
    struct arena arena;
};

int span_select(struct span_store *s, const struct span_query *q, struct span_cursor **out, struct err *e)
{
    struct database_rows *rows;
    int rc = s->kind->select(s, q, &rows, e);
    if (rc)
        return rc;
    struct span_cursor *c = mem_zalloc(sizeof *c);
    c->store = s;
    c->rows = rows;
    *out = c;
    return 0;
}

static int find_origin(struct span_cursor *c, int64_t number, const struct span_origin **out, struct err *e)
{
    bool fresh;
    uint64_t *known = map_put(&c->origins, (uint64_t)number, &fresh);
    if (!fresh && *known) {
        *out = (const struct span_origin *)(uintptr_t)*known;
        return 0;
    }
    struct span_origin *o = arena_new(&c->arena, struct span_origin, 1);
    const void *body = NULL;
    size_t n = 0;
    int rc = c->store->kind->origin(c->rows, number, &body, &n, e);
    struct wire_in in = wire_of(body, n);
    if (!rc && (!n || !span_read_origin(&in, &c->arena, o)))
        rc = err_set(e, ERR_FORMAT, "%s: origin %lld is damaged", c->store->name, (long long)number);
    if (!rc)
        *known = (uint64_t)(uintptr_t)o;
    *out = o;
    return rc;
}

/* Reads the next span. wants NULL: the whole span. */
static int next_span(struct span_cursor *c, struct arena *arena, span_wants *wants, const void *which,
    const struct span **out, struct err *e)
{
    struct database_row row;
    int more = c->store->kind->next(c->rows, &row, e);
    *out = NULL;
    if (more <= 0)
        return more;
    struct span *s = arena_new(arena, struct span, 1);
    struct wire_in in = wire_of(row.body, row.n);
    bool sound = wants ? span_read_brief(&in, arena, wants, which, s) : span_read(&in, arena, s);
    int rc = sound ? 0 : err_set(e, ERR_FORMAT, "%s: a span is damaged", c->store->name);
    if (!rc)
        rc = find_origin(c, row.origin, &s->origin, e);
    if (!rc)
        *out = s;
    return rc;
}

int span_next(struct span_cursor *c, struct arena *arena, const struct span **out, struct err *e)
{
    return next_span(c, arena, NULL, NULL, out, e);
}

int span_next_brief(struct span_cursor *c, struct arena *arena, span_wants *wants, const void *which,
    const struct span **out, struct err *e)
{
    return next_span(c, arena, wants, which, out, e);
}

void span_cursor_close(struct span_cursor *c)
{
    if (!c)
        return;
    c->store->kind->end(c->rows);
    map_fini(&c->origins);
    arena_fini(&c->arena);
    free(c);
}
