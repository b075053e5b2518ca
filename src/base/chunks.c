#include "base/chunks.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

struct chunk_rows {
    bool same; /* rows are those of the only chunk */
    size_t n_rows;
    size_t *first;              /* by row of the host: its first place; one more */
    struct chunk_place *places; /* by row of the host, then chunk */
};

size_t chunks_most_row(const struct chunk *v, size_t n)
{
    int32_t most = -1;
    for (size_t c = 0; c < n; c++)
        for (size_t i = 0; v[c].rows && i < v[c].n_rows; i++)
            most = v[c].rows[i] > most ? v[c].rows[i] : most;
    return (size_t)((int64_t)most + 1);
}

struct chunk_rows *chunk_rows_new(const struct chunk *v, size_t n)
{
    struct chunk_rows *r = mem_zalloc(sizeof *r);
    r->same = n == 1 && !v->rows;
    r->n_rows = chunks_most_row(v, n);
    size_t *first = r->first = mem_zalloc(sizeof *r->first * (r->n_rows + 1)), sum = 0;
    for (size_t c = 0; c < n; c++) {
        const int32_t *rows = v[c].rows, *end = rows ? rows + v[c].n_rows : rows;
        for (; rows < end; rows++)
            if (*rows >= 0)
                first[*rows]++;
    }
    for (size_t i = 0; i <= r->n_rows; i++) {
        sum += first[i];
        first[i] = sum; /* behind the row's places; they are filled in from the last on */
    }
    struct chunk_place *places = r->places = mem_alloc(sizeof *r->places * (sum + 1));
    for (size_t c = n; c-- > 0;)
        for (size_t i = v[c].rows ? v[c].n_rows : 0; i-- > 0;)
            if (v[c].rows[i] >= 0)
                places[--first[v[c].rows[i]]] = (struct chunk_place){(uint32_t)c, (int32_t)i};
    return r;
}

void chunk_rows_free(struct chunk_rows *r)
{
    if (!r)
        return;
    free(r->first);
    free(r->places);
    free(r);
}

size_t chunk_rows_count(const struct chunk_rows *r)
{
    return r->n_rows;
}

size_t chunk_rows_places(const struct chunk_rows *r, int32_t host_row)
{
    if (r->same)
        return host_row >= 0;
    return host_row >= 0 && (size_t)host_row < r->n_rows ? r->first[host_row + 1] - r->first[host_row] : 0;
}

struct chunk_place chunk_rows_place(const struct chunk_rows *r, int32_t host_row, size_t i)
{
    return r->same ? (struct chunk_place){0, host_row} : r->places[r->first[host_row] + i];
}
