/* SPDX-License-Identifier: MIT */
#include "base/chunks.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

/* Places of the rows of the host. */
struct table {
    struct chunk_place *places; /* places by row of the host, then chunk */
    size_t first[];             /* by row of the host: index of its first place; one more at the end */
};

struct chunk_rows {
    atomic_uint users;
    bool same; /* rows of the host are those of the only chunk */
    size_t n_rows, n_chunks;
    _Atomic(struct table *) table; /* NULL: not requested yet */
    int32_t *copies;               /* rows of one chunk after the other */
    size_t ends[];                 /* by chunk: end of its rows in `copies` */
};

struct chunk_rows *chunk_rows_blank(const size_t *n_rows, size_t n)
{
    struct chunk_rows *r = mem_zalloc(sizeof *r + n * sizeof *r->ends);
    size_t sum = 0;
    for (size_t c = 0; c < n; c++)
        r->ends[c] = sum += n_rows[c];
    r->copies = mem_alloc((sum + 1) * sizeof *r->copies);
    r->n_chunks = n;
    atomic_init(&r->users, 1);
    return r;
}

int32_t *chunk_rows_fill(struct chunk_rows *r, size_t chunk)
{
    return r->copies + (chunk ? r->ends[chunk - 1] : 0);
}

void chunk_rows_filled(struct chunk_rows *r, size_t n_rows)
{
    r->n_rows = n_rows;
}

struct chunk_rows *chunk_rows_new(const struct chunk *v, size_t n)
{
    if (n && v->list) {
        atomic_fetch_add(&v->list->users, 1);
        return v->list;
    }
    int32_t most = -1;
    size_t *n_rows = mem_alloc((n + 1) * sizeof *n_rows);
    for (size_t c = 0; c < n; c++)
        n_rows[c] = v[c].rows ? v[c].n_rows : 0;
    struct chunk_rows *r = chunk_rows_blank(n_rows, n);
    for (size_t c = 0; c < n; c++)
        for (size_t i = 0; i < n_rows[c]; i++) {
            int32_t row = chunk_rows_fill(r, c)[i] = v[c].rows[i];
            most = row > most ? row : most;
        }
    r->same = n == 1 && !v->rows;
    chunk_rows_filled(r, (size_t)((int64_t)most + 1));
    free(n_rows);
    return r;
}

static struct table *table_new(const struct chunk_rows *r)
{
    struct table *t = mem_zalloc(sizeof *t + (r->n_rows + 1) * sizeof *t->first);
    size_t n = r->n_chunks ? r->ends[r->n_chunks - 1] : 0, sum = 0, *first = t->first;
    const int32_t *rows = r->copies;
    for (size_t i = 0; i < n; i++)
        if (rows[i] >= 0)
            first[rows[i]]++;
    for (size_t i = 0; i <= r->n_rows; i++) {
        sum += first[i];
        first[i] = sum; /* end of the row's places, which are filled in from the last on */
    }
    struct chunk_place *places = t->places = mem_alloc(sizeof *places * (sum + 1));
    for (size_t c = r->n_chunks; c-- > 0;)
        for (size_t begin = c ? r->ends[c - 1] : 0, i = r->ends[c]; i-- > begin;)
            if (rows[i] >= 0)
                places[--first[rows[i]]] = (struct chunk_place){(uint32_t)c, (int32_t)(i - begin)};
    return t;
}

static void table_free(struct table *t)
{
    if (t)
        free(t->places);
    free(t);
}

/* A thread that loses the race frees its own table. */
static const struct table *table_of(const struct chunk_rows *r)
{
    struct table *known = atomic_load_explicit(&r->table, memory_order_acquire);
    if (known)
        return known;
    struct table *mine = table_new(r);
    if (atomic_compare_exchange_strong(&((struct chunk_rows *)(uintptr_t)r)->table, &known, mine))
        return mine;
    table_free(mine);
    return known;
}

void chunk_rows_free(struct chunk_rows *r)
{
    if (!r || atomic_fetch_sub(&r->users, 1) > 1)
        return;
    table_free(atomic_load_explicit(&r->table, memory_order_relaxed));
    free(r->copies);
    free(r);
}

size_t chunk_rows_count(const struct chunk_rows *r)
{
    return r->n_rows;
}

const int32_t *chunk_rows_of(const struct chunk_rows *r, size_t chunk)
{
    return r->same ? NULL : r->copies + (chunk ? r->ends[chunk - 1] : 0);
}

size_t chunk_rows_all(
    const struct chunk_rows *r, int32_t host_row, struct chunk_place *only, const struct chunk_place **out)
{
    *only = (struct chunk_place){0, host_row};
    *out = only;
    if (r->same)
        return host_row >= 0;
    if (host_row < 0 || (size_t)host_row >= r->n_rows)
        return 0;
    const struct table *t = table_of(r);
    *out = t->places + t->first[host_row];
    return t->first[host_row + 1] - t->first[host_row];
}

size_t chunk_rows_places(const struct chunk_rows *r, int32_t host_row)
{
    struct chunk_place only;
    const struct chunk_place *places;
    return chunk_rows_all(r, host_row, &only, &places);
}

struct chunk_place chunk_rows_place(const struct chunk_rows *r, int32_t host_row, size_t i)
{
    struct chunk_place only;
    const struct chunk_place *places;
    chunk_rows_all(r, host_row, &only, &places);
    return places[i];
}
