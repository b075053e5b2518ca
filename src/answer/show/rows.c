/* SPDX-License-Identifier: MIT */
#include "show/rows.h"

#include <stdlib.h>

static uint64_t row_key(struct path_row r)
{
    return (uint64_t)(uint32_t)r.host << 32 | (uint32_t)r.row;
}

static void add_row(struct show_rows *s, struct path_row row)
{
    bool fresh;
    uint64_t *at = map_put(&s->index, row_key(row), &fresh);
    if (!fresh)
        return;
    *at = s->rows.n;
    struct show_row r = {.row = row, .host = s->source->host_name(s->source->arg, row.host)};
    s->source->row_name(s->source->arg, row, s->path->end, s->path->end, &r.tid, &r.comm);
    vec_push(&s->rows, r);
}

/* Groups rows by machine, keeping the order of appearance of machines and of rows. */
static void group_by_host(struct show_rows *s)
{
    struct map order = {0};
    VEC(size_t) counts = {0};
    for (size_t i = 0; i < s->rows.n; i++) {
        bool fresh;
        uint64_t *host = map_put(&order, (uint32_t)s->rows.v[i].row.host, &fresh);
        if (fresh) {
            *host = counts.n;
            vec_push(&counts, 0);
        }
        counts.v[*host]++;
    }
    s->hosts = counts.n;
    struct show_row *sorted = mem_alloc(s->rows.n * sizeof *sorted + 1);
    for (size_t h = 0, start = 0; h < counts.n; h++) {
        size_t n = counts.v[h];
        counts.v[h] = start;
        start += n;
    }
    for (size_t i = 0; i < s->rows.n; i++) {
        struct show_row r = s->rows.v[i];
        size_t at = counts.v[*map_find(&order, (uint32_t)r.row.host)]++;
        *map_find(&s->index, row_key(r.row)) = at;
        sorted[at] = r;
    }
    for (size_t i = 0; i < s->rows.n; i++)
        sorted[i].first_of_host = i == 0 || sorted[i].row.host != sorted[i - 1].row.host;
    free(s->rows.v);
    s->rows.v = sorted;
    s->rows.cap = s->rows.n;
    vec_free(&counts);
    map_fini(&order);
}

void show_rows_init(struct show_rows *s, const struct path *p, const struct path_source *source)
{
    *s = (struct show_rows){.path = p, .source = source};
    for (size_t i = 0; i < p->n_segments; i++)
        add_row(s, p->segments[i].row);
    if (!p->n_segments)
        add_row(s, p->start);
    group_by_host(s);
    for (size_t i = 0; i < p->n_segments; i++)
        s->rows.v[show_row_find(s, p->segments[i].row)].total += p->segments[i].end - p->segments[i].begin;
}

void show_rows_fini(struct show_rows *s)
{
    vec_free(&s->rows);
    map_fini(&s->index);
}

size_t show_row_find(const struct show_rows *s, struct path_row row)
{
    const uint64_t *at = map_find(&s->index, row_key(row));
    return at ? *at : SIZE_MAX;
}

bool show_row_is_among(const struct show_rows *s, size_t row, size_t most)
{
    size_t longer = 0;
    for (size_t i = 0; s->rows.n > most && i < s->rows.n && longer < most; i++)
        longer += s->rows.v[i].total > s->rows.v[row].total || (s->rows.v[i].total == s->rows.v[row].total && i < row);
    return longer < most;
}
