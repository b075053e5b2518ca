/* SPDX-License-Identifier: MIT */
/* PostgreSQL: search for the newest spans by terms, like sqlite_search.c, in one transaction. Spans are searched in
 * pieces, in the order of their newest span. Pieces are groups with terms, ranges of numbers without, and days of an
 * older store, whose spans have no numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "span/newest.h"
#include "span/postgres.h"

enum { FEW = 256, REST_AT_ONCE = 2048, OLD_AT_ONCE = 2000, FIRST_ROWS = 16, MOST_ROWS = 512, MOST_GROUPS = 32 };
static const int64_t day_ns = 86400 * NS_PER_S;

enum kind { WRITTEN, REST, OLD };
struct piece {
    enum kind kind;
    int64_t last; /* upper limit of begins */
    int64_t from, to;
    int32_t day; /* OLD only */
};
struct postgres_search {
    struct postgres *store;
    struct span_query q; /* owns its names */
    struct newest_wanted wanted;
    struct newest heap;
    VEC(struct piece) pieces;
    size_t next;
    struct map origins; /* number → terms of `wanted` that it has, as bits */
    /* Terms of the groups among the pieces before blobs_end; number of groups in the next request. */
    PGresult *blobs;
    size_t blobs_end, groups_at_once;
    /* Results: rows of one day, in order of storage; `order`: their order in the answer. */
    PGresult *rows;
    VEC(int) order;
    size_t at, wanted_rows;
};

/* ---- pieces ---- */

static void add_rest(struct postgres_search *r, int64_t from, int64_t to)
{
    for (; from < to; from += REST_AT_ONCE) {
        const int64_t end = to - from > REST_AT_ONCE ? from + REST_AT_ONCE : to;
        vec_push(&r->pieces, ((struct piece){REST, INT64_MAX, from, end, 0}));
    }
}

static int by_newest(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    return x->last != y->last ? (x->last > y->last ? -1 : 1) : (x->from < y->from) - (x->from > y->from);
}

/* Reads the groups. A number below the next group to be written that is in no group belongs to a deleted span. */
static int read_groups(struct postgres_search *r, struct err *e)
{
    PGresult *rows;
    int64_t next = 0, group = 0;
    int rc = postgres_next_number(r->store, &next, e);
    rc = rc ? rc : postgres_next_group(r->store, &group, e);
    rc = rc ? rc : postgres_ask(r->store, "SELECT number, first, last, longest FROM groups", NULL, &rows, e);
    if (rc)
        return rc;
    for (int i = 0; i < PQntuples(rows); i++) {
        const int64_t begin = postgres_number(rows, i, 0) * TERM_GROUP, last = postgres_number(rows, i, 2);
        if (postgres_number(rows, i, 1) < r->q.end_ns && last >= r->q.begin_ns &&
            postgres_number(rows, i, 3) >= r->q.least_ns)
            vec_push(&r->pieces, ((struct piece){WRITTEN, last, begin, begin + TERM_GROUP, 0}));
    }
    add_rest(r, group * TERM_GROUP, next);
    PQclear(rows);
    return 0;
}

static int read_old_days(struct postgres_search *r, struct err *e)
{
    PGresult *rows;
    int rc = postgres_ask(r->store, "SELECT day::bigint FROM unnumbered WHERE " POSTGRES_HAS_TABLE, NULL, &rows, e);
    if (rc)
        return rc;
    for (int i = 0; i < PQntuples(rows); i++) {
        const int64_t day = postgres_number(rows, i, 0);
        const int64_t last = day < 0 ? INT64_MAX : (day + 1) * day_ns - 1;
        if (day < 0 || (day * day_ns < r->q.end_ns && last >= r->q.begin_ns))
            vec_push(&r->pieces, ((struct piece){OLD, last, 0, 0, (int32_t)day}));
    }
    PQclear(rows);
    return 0;
}

/* ---- terms of a group ---- */

static int64_t term_of(const struct postgres_search *r, size_t i, int which, uint64_t *out)
{
    *out = which & 1 ? r->wanted.v.v[i].any : r->wanted.v.v[i].term;
    return which & 2 ? term_set_key(*out) : term_bucket_key(*out);
}

static void read_terms(const struct postgres_search *r, size_t i, int64_t group, struct term_set *out)
{
    for (int which = 0; which < 4; which++) {
        uint64_t term;
        const int64_t key = term_of(r, i, which, &term);
        for (int row = 0; row < PQntuples(r->blobs); row++) {
            const char *blob = PQgetvalue(r->blobs, row, 2);
            const size_t n = (size_t)PQgetlength(r->blobs, row, 2);
            if (postgres_number(r->blobs, row, 0) != group || postgres_number(r->blobs, row, 1) != key)
                continue;
            if (which & 2)
                term_read_set(blob, n, out);
            else
                term_read_bucket(term, blob, n, out);
        }
    }
}

/* Fetches the terms of the current piece's group, and of some that follow. */
static int ask_for_terms(struct postgres_search *r, struct err *e)
{
    struct postgres_values v = {0};
    struct text keys, groups;
    VEC(int64_t) of = {0};
    uint64_t ignored;
    if (r->next <= r->blobs_end)
        return 0;
    for (r->blobs_end = r->next - 1; r->blobs_end < r->pieces.n && of.n < r->groups_at_once; r->blobs_end++)
        if (r->pieces.v[r->blobs_end].kind == WRITTEN)
            vec_push(&of, r->pieces.v[r->blobs_end].from / TERM_GROUP);
    postgres_array(&groups, POSTGRES_NUMBERS, of.n);
    for (size_t i = 0; i < of.n; i++)
        postgres_array_number(&groups, of.v[i]);
    postgres_array(&keys, POSTGRES_NUMBERS, 4 * r->wanted.v.n);
    for (size_t i = 0; i < 4 * r->wanted.v.n; i++)
        postgres_array_number(&keys, term_of(r, i / 4, (int)(i % 4), &ignored));
    postgres_put_array(&v, &groups);
    postgres_put_array(&v, &keys);
    PQclear(r->blobs);
    r->blobs = NULL;
    int rc = postgres_ask(r->store,
        "SELECT grp, key, spans FROM terms WHERE grp = ANY ($1::bigint[]) AND key = ANY ($2::bigint[])", &v, &r->blobs,
        e);
    text_fini(&groups);
    text_fini(&keys);
    vec_free(&of);
    r->groups_at_once = r->groups_at_once * 2 < MOST_GROUPS ? r->groups_at_once * 2 : MOST_GROUPS;
    return rc;
}

/* Finds the places in the group that may have all wanted terms. */
static int intersect(struct postgres_search *r, int64_t group, struct term_set *out, size_t *n, struct err *e)
{
    memset(out, 0xff, sizeof *out);
    *n = TERM_GROUP;
    int rc = r->wanted.v.n ? ask_for_terms(r, e) : 0;
    for (size_t i = 0; i < r->wanted.v.n && *n && !rc; i++) {
        struct term_set has = {0};
        read_terms(r, i, group, &has);
        *n = 0;
        for (size_t w = 0; w < TERM_WORDS; w++)
            *n += (size_t)__builtin_popcountll(out->words[w] &= has.words[w]);
    }
    return rc;
}

/* ---- looking at spans ---- */

static int origin_bits(struct postgres_search *r, int64_t origin, uint64_t *bits, struct err *e)
{
    bool fresh;
    struct newest_having h = {&r->wanted, 0};
    struct postgres_values v = {0};
    PGresult *row;
    uint64_t *known = map_put(&r->origins, (uint64_t)origin, &fresh);
    if (fresh) {
        postgres_put_number(&v, origin);
        int rc = postgres_ask_prepared(r->store, POSTGRES_ORIGIN, &v, &row, e);
        if (rc)
            return rc;
        if (PQntuples(row)) {
            struct wire_in in = wire_of(PQgetvalue(row, 0, 0), (size_t)PQgetlength(row, 0, 0));
            span_each_origin_term(&in, newest_note, &h);
        }
        PQclear(row);
        *known = h.bits;
    }
    *bits = *known;
    return 0;
}

static int has_all(struct postgres_search *r, const PGresult *rows, int row, bool *all, struct err *e)
{
    struct newest_having h = {&r->wanted, 0};
    *all = !r->wanted.v.n;
    if (*all)
        return 0;
    struct wire_in in = wire_of(PQgetvalue(rows, row, 5), (size_t)PQgetlength(rows, row, 5));
    int rc = origin_bits(r, postgres_number(rows, row, 4), &h.bits, e);
    if (!rc && !newest_has_all(&h))
        span_each_term(&in, newest_note, &h);
    *all = newest_has_all(&h);
    return rc;
}

/* Reads a ctid: page, and index in it. */
static int64_t read_place(const PGresult *rows, int row, int column)
{
    const uint8_t *v = (const uint8_t *)PQgetvalue(rows, row, column);
    int64_t place = 0;
    for (int i = 0; i < 6 && PQgetlength(rows, row, column) == 6; i++)
        place = place << 8 | v[i];
    return place;
}

/* Adds the rows that match. set NULL: by each span's terms. */
static int take_rows(struct postgres_search *r, const PGresult *rows, const struct term_set *set, struct err *e)
{
    int rc = 0;
    for (int i = 0; i < PQntuples(rows) && !rc; i++) {
        const struct newest_span f = {postgres_number(rows, i, 1), postgres_number(rows, i, 0), read_place(rows, i, 3),
            (int32_t)postgres_number(rows, i, 2)};
        const uint64_t place = (uint64_t)f.number % TERM_GROUP;
        bool has = set && set->words[place / 64] >> place % 64 & 1;
        if (!set)
            rc = has_all(r, rows, i, &has, e);
        if (!rc && has)
            newest_push(&r->heap, f);
    }
    return rc;
}

#define KEYS "coalesce(number, -1) AS number, begin, day::bigint AS day, ctid AS place"

/* Searches spans of some numbers. Index only scans can answer the inner query. */
static int look_at_numbers(
    struct postgres_search *r, const char *which, struct postgres_values *v, const struct term_set *set, struct err *e)
{
    struct text sql = {.fd = -1};
    PGresult *rows;
    const bool whole = !set && r->wanted.v.n;
    text_printf(&sql,
        "SELECT number, begin, day, place%s FROM (SELECT " KEYS
        ", origin, body, service, name, lasted FROM spans WHERE %s",
        whole ? ", origin, body" : "", which);
    postgres_write_days(&r->q, &sql);
    text_puts(&sql, " OFFSET 0) s WHERE true");
    postgres_write_condition(&r->q, &sql, v);
    int rc = postgres_ask(r->store, text_cstr(&sql), v, &rows, e);
    text_fini(&sql);
    if (rc)
        return rc;
    rc = take_rows(r, rows, set, e);
    PQclear(rows);
    return rc;
}

static int look_at_range(struct postgres_search *r, const struct piece *g, const struct term_set *set, struct err *e)
{
    struct postgres_values v = {0};
    postgres_put_number(&v, g->from);
    postgres_put_number(&v, g->to);
    return look_at_numbers(r, "number >= $1 AND number < $2", &v, set, e);
}

static int look_at_few(
    struct postgres_search *r, const struct piece *g, const struct term_set *set, size_t n, struct err *e)
{
    struct postgres_values v = {0};
    struct text numbers;
    postgres_array(&numbers, POSTGRES_NUMBERS, n);
    for (int64_t w = 0; w < TERM_WORDS; w++)
        for (uint64_t word = set->words[w]; word; word &= word - 1)
            postgres_array_number(&numbers, g->from + w * 64 + __builtin_ctzll(word));
    postgres_put_array(&v, &numbers);
    int rc = look_at_numbers(r, "number = ANY ($1::bigint[])", &v, set, e);
    text_fini(&numbers);
    return rc;
}

static int look_at_old(struct postgres_search *r, const struct piece *g, struct err *e)
{
    struct text sql = {.fd = -1};
    struct postgres_values v = {0};
    char table[32], fetch[64];
    const unsigned name = ++r->store->named;
    int got = OLD_AT_ONCE;
    postgres_day_table(g->day, table, sizeof table);
    text_printf(&sql, "DECLARE c%u NO SCROLL CURSOR FOR SELECT " KEYS "%s FROM %s WHERE number IS NULL", name,
        r->wanted.v.n ? ", origin, body" : "", table);
    postgres_write_condition(&r->q, &sql, &v);
    int rc = postgres_ask(r->store, text_cstr(&sql), &v, NULL, e);
    text_fini(&sql);
    snprintf(fetch, sizeof fetch, "FETCH %d FROM c%u", OLD_AT_ONCE, name);
    while (!rc && got == OLD_AT_ONCE) {
        PGresult *rows;
        if ((rc = postgres_ask(r->store, fetch, NULL, &rows, e)))
            break;
        got = PQntuples(rows);
        rc = take_rows(r, rows, NULL, e);
        PQclear(rows);
    }
    return rc ? rc : postgres_change(r->store, e, "CLOSE c%u", name);
}

static int look_at(struct postgres_search *r, const struct piece *g, struct err *e)
{
    struct term_set set;
    size_t n;
    if (g->kind != WRITTEN)
        return g->kind == OLD ? look_at_old(r, g, e) : look_at_range(r, g, NULL, e);
    int rc = intersect(r, g->from / TERM_GROUP, &set, &n, e);
    if (rc || !n)
        return rc;
    return n > FEW ? look_at_range(r, g, &set, e) : look_at_few(r, g, &set, n, e);
}

/* ---- results in order ---- */

static bool is_next_known(const struct postgres_search *r)
{
    return r->heap.v.n && (r->next == r->pieces.n || r->heap.v.v[0].begin_ns > r->pieces.v[r->next].last);
}

/* Fetches rows of the next results, as long as these are of one day. */
static int fetch(struct postgres_search *r, struct err *e)
{
    VEC(struct newest_span) found = {0};
    struct text sql = {.fd = -1};
    char table[32];
    const int32_t day = r->heap.v.v[0].day;
    postgres_day_table(day, table, sizeof table);
    text_printf(&sql, "SELECT ctid, origin, body FROM %s WHERE ctid = ANY ('{", table);
    while (found.n < r->wanted_rows && is_next_known(r) && r->heap.v.v[0].day == day) {
        const struct newest_span f = newest_pop(&r->heap);
        text_printf(&sql, "%s\"(%lld,%d)\"", found.n ? "," : "", (long long)(f.place >> 16), (int)(f.place & 0xffff));
        vec_push(&found, f);
    }
    text_puts(&sql, "}'::tid[])");
    PQclear(r->rows);
    r->rows = NULL;
    r->order.n = r->at = 0;
    int rc = postgres_ask(r->store, text_cstr(&sql), NULL, &r->rows, e);
    text_fini(&sql);
    struct map rows = {0};
    for (int i = 0; !rc && i < PQntuples(r->rows); i++)
        *map_put(&rows, (uint64_t)read_place(r->rows, i, 0), NULL) = (uint64_t)i;
    for (size_t i = 0; !rc && i < found.n; i++) {
        const uint64_t *row = map_find(&rows, (uint64_t)found.v[i].place);
        if (row)
            vec_push(&r->order, (int)*row);
    }
    map_fini(&rows);
    vec_free(&found);
    r->wanted_rows = r->wanted_rows * 2 < MOST_ROWS ? r->wanted_rows * 2 : MOST_ROWS;
    return rc;
}

int postgres_search_next(struct postgres_search *r, struct database_row *out, struct err *e)
{
    int rc = 0;
    while (!rc && r->at == r->order.n) {
        while (!rc && r->next < r->pieces.n && !is_next_known(r))
            rc = look_at(r, &r->pieces.v[r->next++], e);
        if (rc || !r->heap.v.n)
            return rc;
        rc = fetch(r, e);
    }
    if (rc)
        return rc;
    const int row = r->order.v[r->at++];
    *out = (struct database_row){
        postgres_number(r->rows, row, 1), PQgetvalue(r->rows, row, 2), (size_t)PQgetlength(r->rows, row, 2)};
    return 1;
}

/* ---- begin and end ---- */

void postgres_search_end(struct postgres_search *r)
{
    if (!r)
        return;
    PQclear(r->rows);
    PQclear(r->blobs);
    vec_free(&r->wanted.v);
    vec_free(&r->pieces);
    vec_free(&r->heap.v);
    vec_free(&r->order);
    map_fini(&r->origins);
    free((char *)r->q.service);
    free((char *)r->q.name);
    free(r);
}

int postgres_search_begin(struct postgres *p, const struct span_query *q, struct postgres_search **out, struct err *e)
{
    struct postgres_search *r = mem_zalloc(sizeof *r);
    r->store = p;
    r->q = *q;
    r->q.service = q->service ? mem_strdup(q->service) : NULL;
    r->q.name = q->name ? mem_strdup(q->name) : NULL;
    r->q.wanted = NULL;
    r->wanted_rows = FIRST_ROWS;
    r->groups_at_once = 2;
    newest_want(&r->wanted, q);
    int rc = postgres_ask(p, POSTGRES_BY_INDEX, NULL, NULL, e);
    rc = rc ? rc : read_groups(r, e);
    rc = rc ? rc : read_old_days(r, e);
    if (rc) {
        postgres_search_end(r);
        return rc;
    }
    if (r->pieces.n)
        qsort(r->pieces.v, r->pieces.n, sizeof *r->pieces.v, by_newest);
    *out = r;
    return 0;
}
