/* SPDX-License-Identifier: MIT */
/* PostgreSQL: writes of the collector. Spans of a transaction are collected in memory and sorted in the same order by
 * all collectors. Other collectors are locked out, in turns, only during the write. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/time.h"
#include "span/postgres.h"

enum { MOST_KNOWN = 1 << 18, MOST_DAYS = 400, NEAR_DAYS = 2, MOST_STRAIGHT_DAYS = 4, DOUBTFUL_BATCHES = 32 };
static const int64_t day_ns = 86400 * NS_PER_S, hour_ns = 3600 * NS_PER_S;

int postgres_begin(struct span_store *s, struct err *e)
{
    struct postgres *p = postgres_of(s);
    if (p->texts.v.n > MOST_KNOWN || p->origins.v.n > MOST_KNOWN || p->operations.n > MOST_KNOWN)
        postgres_forget(p);
    p->batch++;
    p->spans.n = p->texts.used.n = p->origins.used.n = 0;
    return postgres_ready(p, e);
}

void postgres_rollback(struct span_store *s)
{
    struct postgres *p = postgres_of(s);
    struct err ignored = {0};
    if (p->c && PQtransactionStatus(p->c) != PQTRANS_IDLE)
        postgres_ask(p, "ROLLBACK", NULL, NULL, &ignored);
    postgres_forget(p);
    arena_fini(&p->arena);
    p->arena = (struct arena){0};
}

/* ---- gathering ---- */

static uint32_t know(struct postgres *p, struct postgres_knowns *k, const void *body, size_t n)
{
    uint64_t hash[2];
    bool fresh;
    postgres_hash(body, n, hash);
    uint64_t *place = map_put(&k->by_hash, hash[0], &fresh);
    if (fresh) {
        *place = k->v.n;
        vec_push(&k->v, ((struct postgres_known){.hash = {hash[0], hash[1]}}));
    }
    struct postgres_known *x = &k->v.v[*place];
    if (x->batch != p->batch) {
        char *copy = arena_alloc(&p->arena, n + 1);
        memcpy(copy, body, n);
        copy[n] = '\0';
        x->body = copy;
        x->n = n;
        x->batch = p->batch;
        vec_push(&k->used, (uint32_t)*place);
    }
    return (uint32_t)*place;
}

int postgres_add_origin(
    struct span_store *s, const struct span_origin *origin, const void *body, size_t n, struct err *e)
{
    struct postgres *p = postgres_of(s);
    (void)e;
    p->service = know(p, &p->texts, origin->service, strlen(origin->service));
    p->origin = know(p, &p->origins, body, n);
    return 0;
}

int postgres_add_span(
    struct span_store *s, const struct span *span, const void *body, size_t n, int64_t came_ns, struct err *e)
{
    struct postgres *p = postgres_of(s);
    uint64_t hash[2];
    (void)e;
    struct postgres_span x = {.life = span->life,
        .kind = span->kind,
        .day = span->life < SPAN_ENDED ? POSTGRES_OPEN
            : span->begin_ns < 0       ? POSTGRES_OTHER
                                       : (int32_t)(span->begin_ns / day_ns),
        .came = came_ns,
        .begin = span->begin_ns,
        .lasted = span->end_ns - span->begin_ns,
        .service = p->service,
        .origin = p->origin,
        .name = know(p, &p->texts, span->name, strlen(span->name)),
        .has_parent = !span_id_is_zero(span->parent_id, SPAN_ID_BYTES),
        .n = n};
    const uint64_t *of_origin = p->origins.v.v[p->origin].hash;
    const struct map_piece pieces[] = {{of_origin, 2 * sizeof *of_origin}, {body, n}};
    map_hash_pieces(pieces, 2, hash);
    x.hash = (int64_t)hash[0];
    memcpy(x.trace, span->trace_id, sizeof x.trace);
    memcpy(x.id, span->id, sizeof x.id);
    memcpy(x.parent, span->parent_id, sizeof x.parent);
    char *copy = arena_alloc(&p->arena, n + 1);
    memcpy(copy, body, n);
    x.body = copy;
    vec_push(&p->spans, x);
    return 0;
}

/* ---- received spans with equal ids ---- */

static int64_t end_of(const struct postgres_span *x)
{
    return x->begin + x->lasted;
}

static int by_ids(const void *a, const void *b)
{
    const struct postgres_span *x = a, *y = b;
    int ids = memcmp(x->trace, y->trace, sizeof x->trace);
    ids = ids ? ids : memcmp(x->id, y->id, sizeof x->id);
    if (ids)
        return ids;
    if (x->life != y->life)
        return order_of(y->life, x->life);
    if (x->life < SPAN_ENDED && end_of(x) != end_of(y))
        return order_of(end_of(y), end_of(x));
    return order_of(x->hash, y->hash) ?: order_of(x->came, y->came);
}

static void leave_out_doubles(struct postgres *p)
{
    struct postgres_span *v = p->spans.v;
    size_t kept = 0;
    if (p->spans.n)
        qsort(v, p->spans.n, sizeof *v, by_ids);
    for (size_t i = 0; i < p->spans.n; i++) {
        bool same = kept && !memcmp(v[kept - 1].trace, v[i].trace, sizeof v->trace) &&
            !memcmp(v[kept - 1].id, v[i].id, sizeof v->id);
        if (!same || (v[i].life == SPAN_ENDED && v[kept - 1].hash != v[i].hash))
            v[kept++] = v[i];
    }
    p->spans.n = kept;
}

/* ---- numbers ---- */

/* Drops the caches if retention has deleted what they refer to. */
static int check_generation(struct postgres *p, struct err *e)
{
    PGresult *r;
    int rc = postgres_ask(p, "SELECT value FROM about WHERE key = 'generation'", NULL, &r, e);
    if (rc)
        return rc;
    int64_t now = PQntuples(r) ? postgres_number(r, 0, 0) : 0;
    PQclear(r);
    if (now == p->generation)
        return 0;
    for (size_t i = 0; i < p->texts.v.n; i++)
        p->texts.v.v[i].number = 0;
    for (size_t i = 0; i < p->origins.v.n; i++)
        p->origins.v.v[i].number = p->origins.v.v[i].stamp = 0;
    map_fini(&p->days);
    map_fini(&p->operations);
    p->days = p->operations = (struct map){0};
    p->generation = now;
    return 0;
}

static int number_those(
    struct postgres *p, struct postgres_knowns *k, int64_t hour, const char *add, const char *find, struct err *e)
{
    struct text hashes, bodies;
    struct postgres_values v = {0}, asked = {0};
    PGresult *r;
    VEC(uint32_t) unknown = {0};
    for (size_t i = 0; i < k->used.n; i++)
        if (!k->v.v[k->used.v[i]].number || (hour && k->v.v[k->used.v[i]].stamp < hour))
            vec_push(&unknown, k->used.v[i]);
    if (!unknown.n)
        return 0;
    postgres_array(&hashes, POSTGRES_UUIDS, unknown.n);
    postgres_array(&bodies, hour ? POSTGRES_BYTES : POSTGRES_TEXTS, unknown.n);
    for (size_t i = 0; i < unknown.n; i++) {
        const struct postgres_known *x = &k->v.v[unknown.v[i]];
        postgres_array_item(&hashes, x->hash, sizeof x->hash);
        postgres_array_item(&bodies, x->body, x->n);
    }
    postgres_put_array(&v, &hashes);
    postgres_put_array(&v, &bodies);
    if (hour)
        postgres_put_number(&v, hour);
    postgres_put_array(&asked, &hashes);
    int rc = postgres_ask(p, add, &v, NULL, e);
    rc = rc ? rc : postgres_ask(p, find, &asked, &r, e);
    for (int i = 0; !rc && i < PQntuples(r); i++) {
        uint64_t hash[2];
        bool sound = PQgetlength(r, i, 0) == sizeof hash;
        memcpy(hash, PQgetvalue(r, i, 0), sound ? sizeof hash : 0);
        uint64_t *place = sound ? map_find(&k->by_hash, hash[0]) : NULL;
        if (place) {
            k->v.v[*place].number = postgres_number(r, i, 1);
            k->v.v[*place].stamp = hour;
        }
    }
    if (!rc)
        PQclear(r);
    vec_free(&unknown);
    text_fini(&hashes);
    text_fini(&bodies);
    return rc;
}

static void find_new_operations(struct postgres *p, int64_t hour)
{
    p->new_operations.n = 0;
    for (size_t i = 0; i < p->spans.n; i++) {
        const struct postgres_span *x = &p->spans.v[i];
        const int64_t key[] = {x->service, x->name, x->kind, hour};
        bool fresh;
        map_put(&p->operations, map_hash(key, sizeof key), &fresh);
        if (fresh)
            vec_push(&p->new_operations, ((struct postgres_operation){x->service, x->name, x->kind}));
    }
}

static int tell_operations(struct postgres *p, int64_t hour, struct err *e)
{
    struct text parts[3];
    struct postgres_values v = {0};
    find_new_operations(p, hour);
    if (!p->new_operations.n)
        return 0;
    for (size_t k = 0; k < 3; k++)
        postgres_array(&parts[k], POSTGRES_NUMBERS, p->new_operations.n);
    for (size_t i = 0; i < p->new_operations.n; i++) {
        const struct postgres_operation *o = &p->new_operations.v[i];
        postgres_array_number(&parts[0], p->texts.v.v[o->service].number);
        postgres_array_number(&parts[1], p->texts.v.v[o->name].number);
        postgres_array_number(&parts[2], o->kind);
    }
    for (size_t k = 0; k < 3; k++)
        postgres_put_array(&v, &parts[k]);
    postgres_put_number(&v, hour);
    int rc = postgres_ask(p,
        "INSERT INTO operations (service, name, kind, hour)"
        " SELECT DISTINCT s, n, k, $4::bigint FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS o (s, n, k)"
        " ON CONFLICT (service, name, kind) DO UPDATE SET hour = greatest(operations.hour, excluded.hour)",
        &v, NULL, e);
    for (size_t k = 0; k < 3; k++)
        text_fini(&parts[k]);
    return rc;
}

/* ---- days ---- */

/* Returns the key for the map of days. */
static uint64_t key_of(int32_t day)
{
    return (uint64_t)(day - POSTGRES_OPEN);
}

static int read_days(struct postgres *p, struct err *e)
{
    PGresult *r;
    int rc = postgres_ask(p, "SELECT day::bigint FROM days", NULL, &r, e);
    for (int i = 0; !rc && i < PQntuples(r); i++)
        map_put(&p->days, key_of((int32_t)postgres_number(r, i, 0)), NULL);
    if (!rc)
        PQclear(r);
    return rc;
}

/* Provides the table of a day, or sets *day to POSTGRES_OTHER. This limits the number of tables if a sender uses
 * arbitrary times. */
static int provide_day(struct postgres *p, int32_t *day, struct err *e)
{
    bool fresh;
    int64_t away = *day - time_now_ns() / day_ns;
    char table[32];
    if (*day < 0 || map_find(&p->days, key_of(*day)))
        return 0;
    if (p->days.n > MOST_DAYS && (away > NEAR_DAYS || away < -NEAR_DAYS)) {
        *day = POSTGRES_OTHER;
        return 0;
    }
    postgres_day_table(*day, table, sizeof table);
    int rc = postgres_make_day(p, *day, table, e);
    rc = rc ? rc : postgres_attach_day(p, *day, table, e);
    map_put(&p->days, key_of(*day), &fresh);
    return rc;
}

/* Day of the spans, with their first and last time of receipt. */
struct day {
    int32_t day;
    int64_t first, last;
};
struct days {
    VEC(struct day) v;
    struct map places;
};

static int note_days(struct postgres *p, struct days *days, struct err *e)
{
    struct map provided = {0}; /* key of the requested day → stored day + 2 */
    int rc = p->days.n ? 0 : read_days(p, e);
    for (size_t i = 0; i < p->spans.n && !rc; i++) {
        struct postgres_span *x = &p->spans.v[i];
        bool fresh;
        uint64_t *is = map_put(&provided, key_of(x->day), &fresh);
        if (fresh) {
            int32_t day = x->day;
            rc = provide_day(p, &day, e);
            *is = key_of(day);
        }
        x->day = (int32_t)*is + POSTGRES_OPEN;
        uint64_t *place = map_put(&days->places, key_of(x->day), &fresh);
        if (fresh) {
            *place = days->v.n;
            vec_push(&days->v, ((struct day){x->day, x->came, x->came}));
        }
        struct day *d = &days->v.v[*place];
        d->first = x->came < d->first ? x->came : d->first;
        d->last = x->came > d->last ? x->came : d->last;
    }
    map_fini(&provided);
    return rc;
}

static int tell_days(struct postgres *p, const struct days *days, struct err *e)
{
    struct text parts[3];
    struct postgres_values v = {0};
    for (size_t k = 0; k < 3; k++)
        postgres_array(&parts[k], POSTGRES_NUMBERS, days->v.n);
    for (size_t i = 0; i < days->v.n; i++) {
        postgres_array_number(&parts[0], days->v.v[i].day);
        postgres_array_number(&parts[1], days->v.v[i].first);
        postgres_array_number(&parts[2], days->v.v[i].last);
    }
    for (size_t k = 0; k < 3; k++)
        postgres_put_array(&v, &parts[k]);
    int rc = postgres_ask(p,
        "INSERT INTO days (day, first_came, last_came, counts)"
        " SELECT d, f, l, true FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS n (d, f, l)"
        " ON CONFLICT (day) DO UPDATE SET first_came = least(days.first_came, excluded.first_came),"
        " last_came = greatest(days.last_came, excluded.last_came)",
        &v, NULL, e);
    for (size_t k = 0; k < 3; k++)
        text_fini(&parts[k]);
    return rc;
}

/* ---- spans ---- */

#define COLUMNS "day, life, trace, id, hash, came, service, name, begin, lasted, origin, parent, body, number"
enum { N_COLUMNS = 14 };

static void put_bytes(struct text *t, const void *v, size_t n)
{
    postgres_put_32(t, (uint32_t)n);
    text_put(t, v, n);
}

static void put_number(struct text *t, int64_t v)
{
    postgres_put_32(t, sizeof v);
    postgres_put_64(t, (uint64_t)v);
}

static void put_span(const struct postgres *p, const struct postgres_span *x, struct text *t)
{
    const int64_t numbers[] = {x->hash, x->came, p->texts.v.v[x->service].number, p->texts.v.v[x->name].number,
        x->begin, x->lasted, p->origins.v.v[x->origin].number};
    postgres_put_16(t, N_COLUMNS);
    postgres_put_32(t, 4);
    postgres_put_32(t, (uint32_t)x->day);
    postgres_put_32(t, 2);
    postgres_put_16(t, (uint16_t)x->life);
    put_bytes(t, x->trace, sizeof x->trace);
    put_bytes(t, x->id, sizeof x->id);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        put_number(t, numbers[i]);
    if (x->has_parent)
        put_bytes(t, x->parent, sizeof x->parent);
    else
        postgres_put_32(t, UINT32_MAX);
    put_bytes(t, x->body, x->n);
    put_number(t, x->number);
}

/* Copies the spans of one day, or of all (NULL). */
static int copy_rows(struct postgres *p, const int32_t *day, const char *table, struct err *e)
{
    struct text rows;
    char sql[250];
    postgres_begin_copy(&rows);
    for (size_t i = 0; i < p->spans.n; i++)
        if (!day || p->spans.v[i].day == *day)
            put_span(p, &p->spans.v[i], &rows);
    postgres_put_16(&rows, UINT16_MAX);
    snprintf(sql, sizeof sql, "COPY %s (" COLUMNS ") FROM STDIN (FORMAT binary)", table);
    int rc = postgres_copy(p, sql, &rows, e);
    text_fini(&rows);
    return rc;
}

static int have_open(struct postgres *p, bool *out, struct err *e)
{
    PGresult *r;
    int rc = postgres_ask(p, "SELECT EXISTS (SELECT FROM spans_open)", NULL, &r, e);
    if (rc)
        return rc;
    *out = PQntuples(r) && *PQgetvalue(r, 0, 0);
    PQclear(r);
    return 0;
}

#define IS_OUTDONE \
    "EXISTS (SELECT FROM staged t WHERE s.trace = t.trace AND s.id = t.id AND (s.life < t.life" \
    " OR (s.life = t.life AND s.begin + s.lasted < t.begin + t.lasted)))"
/* Statement that also copies inserted spans to `moved`. */
#define INTO_MOVED(insert) \
    "WITH came AS (" insert " RETURNING day, trace, id, parent, hash, service, begin) INSERT INTO moved" \
    " SELECT day, trace, id, parent, hash, service, begin FROM came"

/* Replaces open spans by more complete ones, and adds open spans if there is none more complete. */
static int merge_open(struct postgres *p, bool come, struct err *e)
{
    bool are;
    int rc = have_open(p, &are, e);
    if (!rc && are)
        rc = postgres_ask(p,
            "INSERT INTO moved SELECT day, trace, id, parent, hash, service, begin FROM spans_open s WHERE " IS_OUTDONE,
            NULL, NULL, e);
    rc = rc || !are ? rc : postgres_calls_count(p, false, NULL, e);
    rc = rc || !are ? rc : postgres_ask(p, "DELETE FROM spans_open s WHERE " IS_OUTDONE, NULL, NULL, e);
    if (!rc && come)
        rc = postgres_ask(p,
            INTO_MOVED(
                "INSERT INTO spans_open (" COLUMNS ") SELECT " COLUMNS " FROM staged t WHERE day = -2 AND NOT EXISTS"
                " (SELECT FROM spans s WHERE s.trace = t.trace AND s.id = t.id AND s.life >= t.life)"),
            NULL, NULL, e);
    return rc;
}

/* Adds the spans that are not stored yet, through a temporary table. */
static int merge(struct postgres *p, const struct days *days, struct err *e)
{
    bool open_come = map_find(&days->places, key_of(POSTGRES_OPEN));
    int rc = postgres_ask(
        p, "CREATE TEMPORARY TABLE IF NOT EXISTS staged (LIKE spans) ON COMMIT DELETE ROWS", NULL, NULL, e);
    rc = rc ? rc : copy_rows(p, NULL, "staged", e);
    /* Index scans only: few rows are looked up in large tables, which must not be read as a whole. */
    rc = rc ? rc : postgres_ask(p, POSTGRES_BY_INDEX, NULL, NULL, e);
    rc = rc ? rc : postgres_calls_moved(p, e);
    rc = rc ? rc : merge_open(p, open_come, e);
    for (size_t i = 0; i < days->v.n && !rc; i++) {
        char table[32];
        postgres_day_table(days->v.v[i].day, table, sizeof table);
        if (days->v.v[i].day != POSTGRES_OPEN)
            rc = postgres_change(p, e,
                INTO_MOVED("INSERT INTO %s (" COLUMNS ") SELECT " COLUMNS
                           " FROM staged WHERE day = %d ON CONFLICT DO NOTHING"),
                table, days->v.v[i].day);
    }
    return rc;
}

/* Copies spans directly to the tables of days, in two thirds of the time. Returns 1 if some are stored already; then
 * nothing was done. */
static int copy_straight(struct postgres *p, const struct days *days, struct err *e)
{
    int rc = postgres_ask(p, "SAVEPOINT straight", NULL, NULL, e);
    for (size_t i = 0; i < days->v.n && !rc; i++) {
        char table[32];
        postgres_day_table(days->v.v[i].day, table, sizeof table);
        rc = copy_rows(p, &days->v.v[i].day, table, e);
    }
    if (!rc || !p->c || strcmp(p->state, "23505") != 0)
        return rc;
    p->doubtful = DOUBTFUL_BATCHES; /* failed attempts leave rows that need cleaning up */
    *e = (struct err){0};
    rc = postgres_ask(p, "ROLLBACK TO SAVEPOINT straight", NULL, NULL, e);
    return rc ? rc : 1;
}

/* Writes the spans. Returns 1 if they were merged; then `moved` has those that were new. */
static int write_rows(struct postgres *p, const struct days *days, struct err *e)
{
    bool open = map_find(&days->places, key_of(POSTGRES_OPEN));
    int rc = open ? 0 : have_open(p, &open, e);
    if (rc)
        return rc;
    if (!open && !p->doubtful && days->v.n <= MOST_STRAIGHT_DAYS)
        rc = copy_straight(p, days, e);
    else {
        p->doubtful -= p->doubtful > 0;
        rc = 1;
    }
    if (rc > 0)
        rc = merge(p, days, e) ? e->code : 1;
    return rc;
}

static int write_spans(struct postgres *p, const struct days *days, struct err *e)
{
    struct postgres_calls calls;
    int rc = postgres_calls_look(p, &calls, e);
    rc = rc ? rc : write_rows(p, days, e);
    if (!rc && calls.any)
        rc = postgres_calls_copy(p, e);
    if (rc >= 0 && calls.any)
        rc = postgres_calls_count(p, true, &calls, e);
    text_fini(&calls.known);
    return rc < 0 ? rc : 0;
}

/* ---- the transaction ---- */

static int write_all(struct postgres *p, struct err *e)
{
    struct days days = {0};
    int64_t hour = time_now_ns() / hour_ns;
    int rc = postgres_ask(p, "BEGIN", NULL, NULL, e);
    rc = rc ? rc : postgres_lock(p, e);
    rc = rc ? rc : check_generation(p, e);
    rc = rc ? rc
            : number_those(p, &p->texts, 0,
                  "INSERT INTO texts (hash, text) SELECT h, t FROM unnest($1::uuid[], $2::text[]) AS n (h, t)"
                  " ON CONFLICT (hash) DO NOTHING",
                  "SELECT hash, number FROM texts WHERE hash = ANY ($1::uuid[])", e);
    rc = rc ? rc
            : number_those(p, &p->origins, hour,
                  "INSERT INTO origins (hash, body, hour) SELECT h, b, $3 FROM unnest($1::uuid[], $2::bytea[])"
                  " AS n (h, b) ON CONFLICT (hash) DO UPDATE SET hour = excluded.hour",
                  "SELECT hash, number FROM origins WHERE hash = ANY ($1::uuid[])", e);
    rc = rc ? rc : tell_operations(p, hour, e);
    rc = rc ? rc : postgres_number_spans(p, e);
    rc = rc ? rc : note_days(p, &days, e);
    rc = rc ? rc : write_spans(p, &days, e);
    rc = rc ? rc : tell_days(p, &days, e);
    rc = rc ? rc : postgres_ask(p, "COMMIT", NULL, NULL, e);
    vec_free(&days.v);
    map_fini(&days.places);
    return rc;
}

int postgres_commit(struct span_store *s, const struct log_position *at, struct err *e)
{
    struct postgres *p = postgres_of(s);
    char line[64];
    int n = snprintf(line, sizeof line, "%" PRIu64 " %" PRIu64 "\n", at->file, at->offset);
    leave_out_doubles(p);
    int rc = p->spans.n ? write_all(p, e) : 0;
    arena_fini(&p->arena);
    p->arena = (struct arena){0};
    if (rc) { /* forces the next connection to read the schema again */
        PQfinish(p->c);
        p->c = NULL;
        return rc;
    }
    return file_write(p->filled, line, (size_t)n, e);
}

int postgres_position(struct span_store *s, struct log_position *at, struct err *e)
{
    char *data = NULL, line[65];
    size_t n;
    struct err none = {0};
    (void)e;
    *at = (struct log_position){0};
    if (!file_read(postgres_of(s)->filled, 64, &data, &n, &none)) {
        snprintf(line, sizeof line, "%.*s", (int)n, data);
        if (sscanf(line, "%" SCNu64 " %" SCNu64, &at->file, &at->offset) != 2)
            *at = (struct log_position){0};
    }
    free(data);
    return 0;
}

int postgres_sync(struct span_store *s, bool *all, struct err *e)
{
    (void)s;
    (void)e;
    *all = true; /* commits sync */
    return 0;
}
