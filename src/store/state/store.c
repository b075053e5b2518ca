/* SPDX-License-Identifier: MIT */
/* State store: a list of chunks, opened and closed. */
#include <stdlib.h>

#include "base/chunks.h"
#include "base/mem.h"
#include "state/lines.h"
#include "state/list.h"
#include "state/list_tables.h"

enum { MOST_CHUNKS = 1 << 20 };

void state_close(struct state_store *s)
{
    if (!s)
        return;
    state_list_tables_fini(s);
    state_lines_fini(s);
    state_list_fini(s);
    for (size_t i = 0; i < s->n; i++) {
        state_chunk_close(s->parts[i].chunk);
        free(s->parts[i].users);
    }
    chunk_rows_free(s->rows);
    free(s->parts);
    free(s);
}

static int damaged(const char *path, const char *what, struct err *e)
{
    return err_set(e, ERR_FORMAT, "%s: %s", path, what);
}

static int open_part(const struct chunk *c, struct state_part *p, struct err *e)
{
    int rc = state_chunk_open(c->path, c->in, &p->chunk, e);
    if (rc || !c->rows)
        return rc;
    size_t n = state_row_count(p->chunk, STATE_THREAD);
    if (c->n_rows != n)
        return damaged(c->path, "it has other threads than the host's list of threads says", e);
    return 0;
}

int state_open_list(const struct chunk *v, size_t n, struct state_store **out, struct err *e)
{
    *out = NULL;
    if (!n || n > MOST_CHUNKS)
        return err_set(e, ERR_LIMIT, "%s: a state store of %zu chunks; from 1 to %d can be read together",
            n ? v->path : "", n, MOST_CHUNKS);
    struct state_store *s = mem_zalloc(sizeof *s);
    s->parts = mem_zalloc(n * sizeof *s->parts);
    s->rows = chunk_rows_new(v, n);
    int rc = 0;
    while (!rc && s->n < n) {
        struct state_part *p = &s->parts[s->n];
        p->begin = v[s->n].begin;
        p->end = v[s->n].end;
        p->rows = v[s->n].rows ? chunk_rows_of(s->rows, s->n) : NULL;
        rc = open_part(&v[s->n], p, e);
        s->n++;
    }
    size_t part = 0;
    const char *what = rc ? NULL : state_list_join(s, v, &part);
    if (what)
        rc = damaged(v[part].path, what, e);
    if (!rc) {
        state_lines_init(s);
        state_list_tables_init(s);
    }
    if (rc) {
        state_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

int state_open(const char *path, struct state_store **out, struct err *e)
{
    struct chunk one = {.path = path, .begin = INT64_MIN, .end = INT64_MAX};
    return state_open_list(&one, 1, out, e);
}

int state_intact(const struct state_store *s, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < s->n && !rc; i++)
        rc = state_chunk_intact(s->parts[i].chunk, e);
    return rc;
}

void state_populate(const struct state_store *s)
{
    for (size_t i = 0; i < s->n; i++)
        state_chunk_populate(s->parts[i].chunk);
}

void state_span(const struct state_store *s, int64_t *begin, int64_t *end)
{
    *begin = s->begin;
    *end = s->end;
}
