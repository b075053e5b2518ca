/* Tables whose rows are at hand by number: columns, lines by index or time, search. */
#include "base/regex.h"
#include "tsp/provider.h"
#include "tsp/search.h"

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
        json_end_object(j);
    }
    json_end_array(j);
}

/* ---- search ---- */

/* A pattern that cannot be compiled is looked for as it stands; so is one that means nothing else, which is faster. */
static void add_term(struct search *s, size_t column, const char *pattern)
{
    struct err e = {0};
    if (s->n == SEARCH_MAX)
        return;
    struct search_term *t = &s->terms[s->n++];
    t->column = column;
    bool means_itself = !pattern[strcspn(pattern, ".[]{}()*+?^$|\\")];
    t->plain = means_itself || regex_compile(pattern, &t->regex, &e) ? pattern : NULL;
}

void search_init(struct search *s, json_t *expressions, const struct tsp_column *columns, size_t n)
{
    const char *key;
    json_t *pattern;
    *s = (struct search){0};
    json_object_foreach (expressions, key, pattern) {
        char *end;
        long long id = strtoll(key, &end, 10);
        size_t i = 0;
        while (i < n && columns[i].id != id)
            i++;
        if (*key && !*end && json_is_string(pattern) && i < n)
            add_term(s, i, json_string_value(pattern));
        else
            s->impossible = true;
    }
}

void search_fini(struct search *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (!s->terms[i].plain)
            regex_free(s->terms[i].regex);
    text_fini(&s->cell);
}

bool search_term_fits(const struct search_term *t, const char *text)
{
    return t->plain ? strstr(text, t->plain) != NULL : regex_finds(t->regex, text, strlen(text)) == 1;
}

bool search_fits(struct search *s, tsp_cell *cell, void *arg, size_t row)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct search_term *t = &s->terms[i];
        s->cell.n = 0;
        cell(arg, row, t->column, &s->cell);
        if (!search_term_fits(t, text_cstr(&s->cell)))
            return false;
    }
    return s->n && !s->impossible;
}

/* ---- lines ---- */

size_t search_columns(const struct tsp_query *q, const struct tsp_column *columns, size_t n, const size_t **out)
{
    size_t *places = arena_new(q->http->arena, size_t, (q->has_columns ? q->n_columns : n) + 1), kept = 0;
    for (size_t i = 0; !q->has_columns && i < n; i++)
        places[kept++] = i;
    for (size_t i = 0; q->has_columns && i < q->n_columns; i++)
        for (size_t k = 0; k < n; k++)
            if (columns[k].id == q->columns[i])
                places[kept++] = k;
    *out = places;
    return kept;
}

void search_begin_lines(struct tsp_answer *answer, uint64_t low, uint64_t size, const struct tsp_column *columns,
    const size_t *places, size_t n)
{
    struct json *j = &answer->json;
    json_begin_object(j);
    json_kv_u64(j, "lowIndex", low);
    json_kv_u64(j, "size", size);
    json_key(j, "columnIds");
    json_begin_array(j);
    for (size_t i = 0; i < n; i++)
        json_i64(j, columns[places[i]].id);
    json_end_array(j);
    json_key(j, "lines");
    json_begin_array(j);
}

void search_write_line(struct tsp_answer *answer, uint64_t index, int tags, tsp_cell *cell, void *arg, size_t row,
    const size_t *places, size_t n)
{
    struct json *j = &answer->json;
    struct text *t = j->out;
    if (tsp_full(answer))
        return;
    json_before_value(j);
    TEXT_PUT(t, "{\"index\":");
    text_u64(t, index);
    TEXT_PUT(t, ",\"cells\":[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            text_putc(t, ',');
        TEXT_PUT(t, "{\"content\":\"");
        size_t from = t->n;
        cell(arg, row, places[i], t);
        json_escape_since(t, from);
        TEXT_PUT(t, "\"}");
    }
    text_putc(t, ']');
    if (tags) {
        TEXT_PUT(t, ",\"tags\":");
        text_i64(t, tags);
    }
    text_putc(t, '}');
}

void search_end_lines(struct tsp_answer *answer)
{
    struct json *j = &answer->json;
    json_end_array(j);
    json_end_object(j);
}

static size_t first_at(const struct tsp_table *t, int64_t time)
{
    size_t lo = 0, hi = t->time ? t->rows : 0;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (t->time(t->arg, mid) < time)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The next or previous row that fits, from `row` on; t->rows: none. */
static size_t find(const struct tsp_table *t, const struct tsp_query *q, struct search *s, size_t row)
{
    if (q->search_backward && row >= t->rows)
        row = t->rows ? t->rows - 1 : 0;
    for (size_t seen = 0; row < t->rows; seen++) {
        if (search_fits(s, t->cell, t->arg, row))
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
    const size_t *places;
    size_t n = search_columns(q, t->columns, t->n_columns, &places);
    size_t row = q->by_time ? first_at(t, q->table_time) : (uint64_t)q->index < t->rows ? (size_t)q->index : t->rows;
    struct search s;
    search_init(&s, q->search, t->columns, t->n_columns);
    if (q->search && q->search_find)
        row = find(t, q, &s, row);
    size_t end = t->rows - row < (uint64_t)q->count ? t->rows : row + (size_t)q->count;
    search_begin_lines(answer,
        row < t->rows || q->by_time ? row
            : q->search_find        ? 0
                                    : (uint64_t)q->index,
        t->rows, t->columns, places, n);
    for (; row < end; row++)
        search_write_line(
            answer, row, s.n && search_fits(&s, t->cell, t->arg, row) ? 8 : 0, t->cell, t->arg, row, places, n);
    search_end_lines(answer);
    search_fini(&s);
    tsp_end(answer, q);
}

/* ---- filtered ---- */

struct chosen {
    const struct tsp_table *of;
    VEC(size_t) rows;
};

static void chosen_cell(void *arg, size_t row, size_t column, struct text *out)
{
    const struct chosen *c = arg;
    c->of->cell(c->of->arg, c->rows.v[row], column, out);
}

static int64_t chosen_time(void *arg, size_t row)
{
    const struct chosen *c = arg;
    return c->of->time(c->of->arg, c->rows.v[row]);
}

void tsp_table_lines(struct tsp_answer *answer, const struct tsp_table *t, const struct tsp_query *q)
{
    struct chosen c = {.of = t};
    struct search s;
    if (!json_object_size(q->row_filter)) {
        write_lines(answer, t, q);
        return;
    }
    search_init(&s, q->row_filter, t->columns, t->n_columns);
    for (size_t row = 0; row < t->rows && (row % 1024 || !http_gone(q->http)); row++)
        if (search_fits(&s, t->cell, t->arg, row))
            vec_push(&c.rows, row);
    struct tsp_table shown = {t->columns, t->n_columns, c.rows.n, &c, chosen_cell, t->time ? chosen_time : NULL};
    write_lines(answer, &shown, q);
    vec_free(&c.rows);
    search_fini(&s);
}
