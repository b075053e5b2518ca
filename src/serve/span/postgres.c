/* SPDX-License-Identifier: MIT */
/* PostgreSQL: open and close. */
#include "span/postgres.h"

#include <stdlib.h>

#include "base/mem.h"

static void postgres_close(struct span_store *s)
{
    struct postgres *p = postgres_of(s);
    postgres_index_stop(p);
    PQfinish(p->c);
    postgres_forget(p);
    vec_free(&p->new_operations);
    vec_free(&p->spans);
    arena_fini(&p->arena);
    free(p->filled);
    free(p->schema);
    free(p->shown);
    free(p->url);
    free(p);
}

static int postgres_open(const char *store, const char *directory, struct span_store **out, struct err *e)
{
    char *shown;
    int rc = postgres_show_url(store, &shown, e);
    if (rc)
        return rc;
    struct postgres *p = mem_zalloc(sizeof *p);
    p->is = (struct span_store){&database_postgres, shown};
    p->shown = shown;
    p->url = mem_strdup(store);
    p->filled = directory ? mem_printf("%s/filled", directory) : NULL;
    rc = directory ? 0 : postgres_ready(p, e);
    if (rc)
        postgres_close(&p->is);
    else
        *out = &p->is;
    return rc;
}

const struct database_kind database_postgres = {
    .open = postgres_open,
    .close = postgres_close,
    .begin = postgres_begin,
    .add_origin = postgres_add_origin,
    .add_span = postgres_add_span,
    .commit = postgres_commit,
    .rollback = postgres_rollback,
    .position = postgres_position,
    .sync = postgres_sync,
    .keep = postgres_keep,
    .catch_up = postgres_catch_up,
    .services = postgres_services,
    .operations = postgres_operations,
    .calls = postgres_calls,
    .select = postgres_select,
    .next = postgres_next,
    .origin = postgres_origin,
    .end = postgres_end,
};
