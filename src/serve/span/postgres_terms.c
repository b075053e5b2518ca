/* SPDX-License-Identifier: MIT */
/* PostgreSQL: terms of spans, by groups. A group is written from its stored spans once spans of another one arrive. So
 * several collectors may add to it. */
#include <stdlib.h>

#include "span/postgres.h"

enum { GROUPS_AT_ONCE = 4 };

struct putting {
    struct text keys, blobs; /* items of arrays */
    size_t n;
};
struct term_writing {
    struct postgres *store;
    struct putting *putting;
};

static int of_origin(void *arg, int64_t origin, void (*take)(void *, uint64_t), void *take_arg, struct err *e)
{
    struct postgres_values v = {0};
    PGresult *r;
    postgres_put_number(&v, origin);
    int rc = postgres_ask_prepared(((struct term_writing *)arg)->store, POSTGRES_ORIGIN, &v, &r, e);
    if (rc)
        return rc;
    if (PQntuples(r)) {
        struct wire_in in = wire_of(PQgetvalue(r, 0, 0), (size_t)PQgetlength(r, 0, 0));
        span_each_origin_term(&in, take, take_arg);
    }
    PQclear(r);
    return 0;
}

static int put(void *arg, int64_t key, const void *blob, size_t n, struct err *e)
{
    struct putting *p = ((struct term_writing *)arg)->putting;
    (void)e;
    postgres_array_number(&p->keys, key);
    postgres_array_item(&p->blobs, blob, n);
    p->n++;
    return 0;
}

/* Makes an array of items. */
static struct text array_of(const struct text *items, enum postgres_type type, size_t n)
{
    struct text array;
    postgres_array(&array, type, n);
    text_put(&array, items->v, items->n);
    return array;
}

static int write_terms(struct postgres *p, int64_t group, const struct putting *put, struct err *e)
{
    struct postgres_values v = {0};
    struct text keys = array_of(&put->keys, POSTGRES_NUMBERS, put->n);
    struct text blobs = array_of(&put->blobs, POSTGRES_BYTES, put->n);
    postgres_put_number(&v, group);
    postgres_put_array(&v, &keys);
    postgres_put_array(&v, &blobs);
    int rc = postgres_ask(p,
        "INSERT INTO terms (grp, key, spans) SELECT $1, k, s FROM unnest($2::bigint[], $3::bytea[]) AS n (k, s)", &v,
        NULL, e);
    text_fini(&keys);
    text_fini(&blobs);
    return rc;
}

static int read_spans(struct postgres *p, int64_t group, struct term_group *t, struct err *e)
{
    struct postgres_values v = {0};
    PGresult *r;
    postgres_put_number(&v, group * TERM_GROUP);
    postgres_put_number(&v, (group + 1) * TERM_GROUP);
    int rc = postgres_ask(
        p, "SELECT number, begin, lasted, origin, body FROM spans WHERE number >= $1 AND number < $2", &v, &r, e);
    if (rc)
        return rc;
    for (int i = 0; i < PQntuples(r); i++) {
        struct wire_in in = wire_of(PQgetvalue(r, i, 4), (size_t)PQgetlength(r, i, 4));
        term_begin_span(t, (uint32_t)(postgres_number(r, i, 0) % TERM_GROUP), postgres_number(r, i, 1),
            postgres_number(r, i, 2), postgres_number(r, i, 3));
        span_each_term(&in, term_take, t);
    }
    PQclear(r);
    return 0;
}

static int write_group(struct postgres *p, int64_t group, struct err *e)
{
    struct term_group t = {0};
    struct putting blobs = {.keys = {.fd = -1}, .blobs = {.fd = -1}};
    struct term_writing terms = {p, &blobs};
    int rc = read_spans(p, group, &t, e);
    const int64_t numbers[] = {group, t.first_ns, t.last_ns, t.longest_ns};
    if (!rc && t.n) {
        struct postgres_values v = {0};
        for (size_t i = 0; i < 4; i++)
            postgres_put_number(&v, numbers[i]);
        rc = term_group_write(&t, of_origin, put, &terms, e);
        rc = rc ? rc : write_terms(p, group, &blobs, e);
        rc = rc ? rc : postgres_ask(p, "INSERT INTO groups VALUES ($1, $2, $3, $4)", &v, NULL, e);
    }
    term_group_fini(&t);
    text_fini(&blobs.keys);
    text_fini(&blobs.blobs);
    return rc;
}

/* Reads a number from `about`. */
static int read_about(struct postgres *p, const char *key, int64_t *out, struct err *e)
{
    struct postgres_values v = {0};
    PGresult *r;
    postgres_put_text(&v, key);
    int rc = postgres_ask(p, "SELECT value FROM about WHERE key = $1", &v, &r, e);
    if (rc)
        return rc;
    *out = PQntuples(r) ? postgres_number(r, 0, 0) : 0;
    PQclear(r);
    return 0;
}

int postgres_next_number(struct postgres *p, int64_t *out, struct err *e)
{
    return read_about(p, "next number", out, e);
}

int postgres_next_group(struct postgres *p, int64_t *out, struct err *e)
{
    return read_about(p, "next group", out, e);
}

int postgres_number_spans(struct postgres *p, struct err *e)
{
    struct postgres_values v = {0};
    PGresult *r;
    postgres_put_number(&v, (int64_t)p->spans.n);
    int rc = postgres_ask(
        p, "UPDATE about SET value = value + $1 WHERE key = 'next number' RETURNING value", &v, &r, e);
    if (rc)
        return rc;
    int64_t next = (PQntuples(r) ? postgres_number(r, 0, 0) : 0) - (int64_t)p->spans.n;
    PQclear(r);
    for (size_t i = 0; i < p->spans.n; i++)
        p->spans.v[i].number = next++;
    p->terms_are_whole &= next / TERM_GROUP == p->numbered / TERM_GROUP;
    p->numbered = next;
    return 0;
}

int postgres_terms_catch_up(struct postgres *p, bool *more, struct err *e)
{
    int64_t next = 0, group = 0;
    int rc = postgres_next_number(p, &next, e);
    rc = rc ? rc : postgres_next_group(p, &group, e);
    for (int i = 0; i < GROUPS_AT_ONCE && !rc && group < next / TERM_GROUP; i++)
        rc = write_group(p, group++, e);
    rc = rc ? rc : postgres_change(p, e, "UPDATE about SET value = %lld WHERE key = 'next group'", (long long)group);
    if (!rc) {
        p->numbered = next;
        p->terms_are_whole = group >= next / TERM_GROUP;
        *more |= !p->terms_are_whole;
    }
    return rc;
}

int postgres_terms_tidy(struct postgres *p, struct err *e)
{
    _Static_assert(TERM_GROUP == 8192, "as it is written below");
    int rc = postgres_ask(p, POSTGRES_BY_INDEX, NULL, NULL, e);
    rc = rc ? rc
            : postgres_ask(p,
                  "DELETE FROM groups WHERE NOT EXISTS (SELECT FROM uncounted WHERE after IS NULL) AND NOT EXISTS"
                  " (SELECT FROM spans s WHERE s.number >= groups.number * 8192"
                  " AND s.number < (groups.number + 1) * 8192)",
                  NULL, NULL, e);
    rc = rc ? rc : postgres_ask(p, POSTGRES_AS_USUAL, NULL, NULL, e);
    return rc
        ? rc
        : postgres_ask(p, "DELETE FROM terms WHERE NOT EXISTS (SELECT FROM groups WHERE number = grp)", NULL, NULL, e);
}
