/* SPDX-License-Identifier: MIT */
/* Tables with random access to their rows: columns, lines by index or time, search. */
#include <stdlib.h>

#include "base/search.h"
#include "base/terms.h"
#include "tsp/kept_rows.h"
#include "tsp/provider.h"

void tsp_table_columns(struct tsp_answer *answer, const struct tsp_column *columns, size_t n)
{
    struct json *j = &answer->json;
    json_begin_array(j);
    for (size_t i = 0; i < n; i++) {
        json_begin_object(j);
        json_kv_i64(j, "id", columns[i].id);
        json_kv_string(j, "name", columns[i].name);
        json_kv_string(j, "description", columns[i].description ? columns[i].description : "");
        json_kv_string(j, "type", columns[i].type ? columns[i].type : "STRING");
        if (columns[i].numbers_of)
            json_kv_string(j, "numbersOf", columns[i].numbers_of);
        if (columns[i].found_by)
            json_kv_i64(j, "foundBy", columns[i].found_by);
        if (columns[i].descending)
            json_kv_string(j, "order", "DESCENDING");
        if (columns[i].ascending)
            json_kv_string(j, "order", "ASCENDING");
        if (columns[i].display != TSP_SHOWN)
            json_kv_string(j, "display", columns[i].display == TSP_ASIDE ? "ASIDE" : "WIDE");
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)columns[i].id);
        json_kv_string(j, "key", columns[i].key ? columns[i].key : number);
        json_end_object(j);
    }
    json_end_array(j);
}

/* ---- search ---- */

/* Adds the terms of {column id: regular expression}, or of NULL. */
static void add_terms(struct terms *t, json_t *expressions, const struct tsp_column *columns, size_t n)
{
    const char *key;
    json_t *pattern;
    json_object_foreach (expressions, key, pattern) {
        char *end;
        long long id = strtoll(key, &end, 10);
        size_t i = 0;
        while (i < n && columns[i].id != id)
            i++;
        if (*key && !*end && json_is_string(pattern) && i < n)
            terms_add(t, i, json_string_value(pattern));
        else
            t->impossible = true;
    }
}

/* ---- lines ---- */

struct tsp_lines tsp_begin_lines(struct tsp_answer *answer, const struct tsp_query *q, const struct tsp_column *columns,
    size_t n, uint64_t low, uint64_t size)
{
    struct json *j = &answer->json;
    size_t *shown = arena_new(q->http->arena, size_t, (q->has_columns ? q->n_columns : n) + 1);
    struct tsp_lines l = {answer, shown, 0};
    for (size_t i = 0; !q->has_columns && i < n; i++)
        shown[l.n_columns++] = i;
    for (size_t i = 0; q->has_columns && i < q->n_columns; i++)
        for (size_t k = 0; k < n; k++)
            if (columns[k].id == q->columns[i])
                shown[l.n_columns++] = k;
    json_begin_object(j);
    json_kv_u64(j, "lowIndex", low);
    json_kv_u64(j, "size", size);
    json_key(j, "columnIds");
    json_begin_array(j);
    for (size_t i = 0; i < l.n_columns; i++)
        json_i64(j, columns[shown[i]].id);
    json_end_array(j);
    json_key(j, "lines");
    json_begin_array(j);
    return l;
}

void tsp_write_line(const struct tsp_lines *l, uint64_t index, bool found, tsp_cell *cell, void *arg, size_t row)
{
    struct json *j = &l->answer->json;
    struct text *t = j->out;
    if (tsp_full(l->answer))
        return;
    json_before_value(j);
    TEXT_PUT(t, "{\"index\":");
    text_u64(t, index);
    TEXT_PUT(t, ",\"cells\":[");
    for (size_t i = 0; i < l->n_columns; i++) {
        if (i)
            text_putc(t, ',');
        TEXT_PUT(t, "{\"content\":\"");
        size_t from = t->n;
        cell(arg, row, l->columns[i], t);
        json_escape_since(t, from);
        TEXT_PUT(t, "\"}");
    }
    text_putc(t, ']');
    if (found)
        TEXT_PUT(t, ",\"tags\":8"); /* highlight */
    text_putc(t, '}');
}

void tsp_end_lines(const struct tsp_lines *l)
{
    json_end_array(&l->answer->json);
    json_end_object(&l->answer->json);
}

/* First row of the requested lines. */
static size_t first_row(const struct tsp_table *t, const struct tsp_query *q)
{
    if (q->by_value)
        return search_first(i, 0, t->value ? t->rows : 0, t->value(t->arg, i) <= q->table_value);
    if (q->by_time)
        return search_first(i, 0, t->time ? t->rows : 0, t->time(t->arg, i) >= q->table_time);
    return (uint64_t)q->index < t->rows ? (size_t)q->index : t->rows;
}

/* Next or previous matching row, from `row` on; t->rows: none. */
static size_t find(const struct tsp_table *t, const struct tsp_query *q, struct terms *s, size_t row)
{
    if (q->search_backward && row >= t->rows)
        row = t->rows ? t->rows - 1 : 0;
    for (size_t seen = 0; row < t->rows; seen++) {
        if (terms_fit(s, t->cell, t->arg, row))
            return row;
        if (q->search_backward && row == 0)
            break;
        row += q->search_backward ? (size_t)-1 : 1;
        if (seen % 1024 == 1023 && http_gone(q->http))
            break;
    }
    return t->rows;
}

static void write_lines(struct tsp_answer *answer, const struct tsp_table *t, const struct tsp_query *q)
{
    size_t row = first_row(t, q);
    struct terms terms = {0};
    add_terms(&terms, q->search, t->columns, t->n_columns);
    if (q->search && q->search_find)
        row = find(t, q, &terms, row);
    size_t end = t->rows - row < (uint64_t)q->count ? t->rows : row + (size_t)q->count;
    uint64_t beyond = q->search_find ? 0 : (uint64_t)q->index;
    struct tsp_lines l = tsp_begin_lines(
        answer, q, t->columns, t->n_columns, row < t->rows || q->by_time || q->by_value ? row : beyond, t->rows);
    for (; row < end; row++)
        tsp_write_line(&l, row, terms_fit(&terms, t->cell, t->arg, row), t->cell, t->arg, row);
    tsp_end_lines(&l);
    terms_fini(&terms);
}

/* ---- filtered tables ---- */

struct chosen {
    const struct tsp_table *of;
    const size_t *rows;
};

static void chosen_cell(void *arg, size_t row, size_t column, struct text *out)
{
    const struct chosen *c = arg;
    c->of->cell(c->of->arg, c->rows[row], column, out);
}

static int64_t chosen_time(void *arg, size_t row)
{
    const struct chosen *c = arg;
    return c->of->time(c->of->arg, c->rows[row]);
}

static int64_t chosen_value(void *arg, size_t row)
{
    const struct chosen *c = arg;
    return c->of->value(c->of->arg, c->rows[row]);
}

/* Finds the matching rows. False: the client has gone, so some are missing. */
static bool choose(const struct tsp_table *t, const struct tsp_query *q, size_t **rows, size_t *n)
{
    struct terms s = {0};
    VEC(size_t) found = {0};
    size_t row = 0;
    add_terms(&s, q->row_filter, t->columns, t->n_columns);
    for (; row < t->rows && (row % 1024 || !http_gone(q->http)); row++)
        if (terms_fit(&s, t->cell, t->arg, row))
            vec_push(&found, row);
    terms_fini(&s);
    *rows = found.v;
    *n = found.n;
    return row == t->rows;
}

void tsp_table_lines(struct tsp_answer *answer, const struct tsp_table *t, const struct tsp_query *q)
{
    if (!json_object_size(q->row_filter)) {
        write_lines(answer, t, q);
        return;
    }
    char *filter = json_dumps(q->row_filter, JSON_COMPACT | JSON_SORT_KEYS);
    bool keeps = q->kept && filter && answer->status == TSP_COMPLETED;
    const struct kept_list *kept = keeps ? tsp_kept_rows_find(q->kept, q->output_id, filter, t->rows) : NULL;
    struct kept_list own = {0};
    size_t *rows = NULL;
    if (!kept && choose(t, q, &rows, &own.n) && keeps)
        kept = tsp_kept_rows_put(q->kept, q->output_id, filter, t->rows, rows, own.n);
    else
        own.rows = rows;
    const struct kept_list *shown = kept ? kept : &own;
    struct chosen c = {t, shown->rows};
    write_lines(answer,
        &(struct tsp_table){t->columns, t->n_columns, shown->n, &c, chosen_cell, t->time ? chosen_time : NULL,
            t->value ? chosen_value : NULL},
        q);
    if (kept)
        tsp_kept_rows_give_back(q->kept, kept);
    else
        free(rows);
    free(filter);
}
