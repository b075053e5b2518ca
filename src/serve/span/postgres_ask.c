/* SPDX-License-Identifier: MIT */
/* PostgreSQL: values, statements and results. */
#include "span/postgres.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"

static const int64_t answer_ns = 35 * NS_PER_S; /* beyond the server's own timeout of a statement */

/* ---- values ---- */

static char *put_value(struct postgres_values *v, Oid type, const void *bytes, size_t n)
{
    v->types[v->n] = type;
    v->v[v->n] = bytes;
    v->lengths[v->n] = (int)n;
    return (char *)&v->room[v->n++];
}

void postgres_put_number(struct postgres_values *v, int64_t number)
{
    v->room[v->n] = htobe64((uint64_t)number);
    put_value(v, POSTGRES_NUMBERS, &v->room[v->n], sizeof v->room[0]);
}

void postgres_put_uuid(struct postgres_values *v, const void *uuid)
{
    put_value(v, POSTGRES_UUIDS, uuid, SPAN_TRACE_BYTES);
}

void postgres_put_text(struct postgres_values *v, const char *s)
{
    put_value(v, POSTGRES_TEXTS, s, strlen(s));
}

void postgres_put_array(struct postgres_values *v, const struct text *array)
{
    put_value(v, 0, array->v, array->n); /* the statement defines the type */
}

void postgres_put_16(struct text *t, uint16_t v)
{
    v = htobe16(v);
    text_put(t, (const char *)&v, sizeof v);
}

void postgres_put_32(struct text *t, uint32_t v)
{
    v = htobe32(v);
    text_put(t, (const char *)&v, sizeof v);
}

void postgres_put_64(struct text *t, uint64_t v)
{
    v = htobe64(v);
    text_put(t, (const char *)&v, sizeof v);
}

void postgres_array(struct text *t, enum postgres_type type, size_t items)
{
    *t = (struct text){.fd = -1};
    postgres_put_32(t, items ? 1 : 0); /* dimensions */
    postgres_put_32(t, 0);             /* flag: no NULLs */
    postgres_put_32(t, type);
    if (items) {
        postgres_put_32(t, (uint32_t)items);
        postgres_put_32(t, 1);
    }
}

void postgres_array_item(struct text *t, const void *v, size_t n)
{
    postgres_put_32(t, (uint32_t)n);
    text_put(t, v, n);
}

void postgres_array_number(struct text *t, int64_t v)
{
    postgres_put_32(t, sizeof v);
    postgres_put_64(t, (uint64_t)v);
}

int64_t postgres_number(const PGresult *r, int row, int column)
{
    uint64_t v = 0;
    if (PQgetlength(r, row, column) == (int)sizeof v)
        memcpy(&v, PQgetvalue(r, row, column), sizeof v);
    return (int64_t)be64toh(v);
}

const char *postgres_text(const PGresult *r, int row, int column)
{
    return PQgetvalue(r, row, column);
}

void postgres_hash(const void *v, size_t n, uint64_t out[2])
{
    map_hash_pieces(&(struct map_piece){v, n}, 1, out);
}

/* ---- errors ---- */

/* Writes the message on one line. */
static const char *line_of(const char *message, char *out, size_t most)
{
    size_t n = 0;
    for (; *message && n + 2 < most; message++) {
        char c = *message == '\n' || *message == '\t' ? ' ' : *message;
        if (c != ' ' || (n && out[n - 1] != ' '))
            out[n++] = c;
    }
    while (n && out[n - 1] == ' ')
        n--;
    out[n] = '\0';
    return out;
}

int postgres_fail_to_reach(struct postgres *p, const char *why, struct err *e)
{
    char line[600];
    err_set(e, ERR_BUSY, "%s: %s", p->is.name, line_of(why, line, sizeof line));
    PQfinish(p->c);
    p->c = NULL;
    return ERR_BUSY;
}

static int fail(struct postgres *p, const PGresult *r, struct err *e)
{
    /* SQLSTATEs of errors that may pass: lack of a resource, conflicts, a server that stops or starts. */
    static const char *const later[] = {"53", "57", "08", "40", "55P03", "58030"};
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE), *hint = "";
    const char *message = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    char line[600];
    bool again = false;
    snprintf(p->state, sizeof p->state, "%s", state ? state : "");
    if (PQstatus(p->c) == CONNECTION_BAD)
        return postgres_fail_to_reach(p, PQerrorMessage(p->c), e);
    for (size_t i = 0; state && i < sizeof later / sizeof *later; i++)
        again |= !strncmp(state, later[i], strlen(later[i]));
    if (state && !strcmp(state, "53100"))
        hint = " (free some space there; acknowledged spans are kept in the log meanwhile)";
    else if (state && !strcmp(state, "42501"))
        hint = " (the role needs rights there: GRANT CREATE ON DATABASE, or a schema of its own by search_path)";
    else if (state && !strcmp(state, "25006"))
        hint = " (a standby? name the primary, or add target_session_attrs=read-write)";
    return err_set(e, again ? ERR_BUSY : ERR_IO, "%s: %s%s", p->is.name,
        line_of(message ? message : PQresultErrorMessage(r), line, sizeof line), hint);
}

/* ---- statements ---- */

/* Waits until the server has sent something, or accepts something. Returns false on a timeout. */
static bool wait_for_server(struct postgres *p, bool to_write, int64_t until_ns)
{
    int64_t left = until_ns - time_monotonic_ns();
    struct pollfd f = {.fd = PQsocket(p->c), .events = (short)(POLLIN | (to_write ? POLLOUT : 0))};
    return left > 0 && (poll(&f, 1, (int)(left / 1000000) + 1) > 0 || errno == EINTR);
}

static int64_t patience(const struct postgres *p)
{
    return time_monotonic_ns() + (p->patience_ns ? p->patience_ns : answer_ns);
}

static int flush(struct postgres *p, int64_t until_ns, struct err *e)
{
    int left;
    while ((left = PQflush(p->c)) == 1) {
        if (!wait_for_server(p, true, until_ns))
            return postgres_fail_to_reach(p, "the server does not answer", e);
        if (!PQconsumeInput(p->c))
            break;
    }
    return left ? postgres_fail_to_reach(p, PQerrorMessage(p->c), e) : 0;
}

static int get_result(struct postgres *p, int64_t until_ns, PGresult **out, struct err *e)
{
    while (PQisBusy(p->c)) {
        if (!wait_for_server(p, false, until_ns))
            return postgres_fail_to_reach(p, "the server does not answer", e);
        if (!PQconsumeInput(p->c))
            break;
    }
    *out = PQgetResult(p->c);
    return 0;
}

/* Reads all results of a statement; the last one counts, or the first error. The begin of a copy ends the results. */
static int finish(struct postgres *p, int64_t until_ns, PGresult **out, struct err *e)
{
    PGresult *r = NULL, *last = NULL;
    int rc = flush(p, until_ns, e), got = 0;
    while (!got && p->c && !(got = get_result(p, until_ns, &r, e)) && r) {
        ExecStatusType is = PQresultStatus(r);
        if (!rc && is != PGRES_COMMAND_OK && is != PGRES_TUPLES_OK && is != PGRES_COPY_IN)
            rc = fail(p, r, e);
        PQclear(last);
        last = r;
        if (is == PGRES_COPY_IN)
            break;
    }
    rc = rc ? rc : got;
    if (!rc && !last)
        rc = postgres_fail_to_reach(p, PQerrorMessage(p->c), e);
    if (rc || !out)
        PQclear(last);
    else
        *out = last;
    return rc;
}

static const int binary[POSTGRES_MOST_VALUES] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

static int send(struct postgres *p, const char *sql, const struct postgres_values *v, struct err *e)
{
    int sent = PQsendQueryParams(
        p->c, sql, v ? v->n : 0, v ? v->types : NULL, v ? v->v : NULL, v ? v->lengths : NULL, binary, 1);
    return sent ? 0 : postgres_fail_to_reach(p, PQerrorMessage(p->c), e);
}

static int lost(struct postgres *p, struct err *e)
{
    return err_set(e, ERR_BUSY, "%s: the connection was lost", p->is.name);
}

int postgres_ask(struct postgres *p, const char *sql, const struct postgres_values *v, PGresult **out, struct err *e)
{
    int64_t until_ns = patience(p);
    if (!p->c)
        return lost(p, e);
    int rc = send(p, sql, v, e);
    return rc ? rc : finish(p, until_ns, out, e);
}

static const struct {
    const char *name, *sql;
    Oid type;
} prepared[POSTGRES_STATEMENTS] = {
    /* LIMIT: POSTGRES_SMALL_TRACE + 1. */
    [POSTGRES_TRACE] = {"trace", "SELECT origin, body FROM spans WHERE trace = $1 ORDER BY begin, came, id LIMIT 129",
        POSTGRES_UUIDS},
    [POSTGRES_ORIGIN] = {"origin", "SELECT body FROM origins WHERE number = $1", POSTGRES_NUMBERS},
};

static int prepare(struct postgres *p, struct err *e)
{
    int64_t until_ns = patience(p);
    for (size_t i = 0; i < POSTGRES_STATEMENTS && !p->prepared; i++) {
        int rc = PQsendPrepare(p->c, prepared[i].name, prepared[i].sql, 1, &prepared[i].type)
            ? finish(p, until_ns, NULL, e)
            : postgres_fail_to_reach(p, PQerrorMessage(p->c), e);
        if (rc)
            return rc;
    }
    p->prepared = true;
    return 0;
}

int postgres_ask_prepared(
    struct postgres *p, enum postgres_statement which, const struct postgres_values *v, PGresult **out, struct err *e)
{
    int64_t until_ns = patience(p);
    int rc = p->c ? prepare(p, e) : lost(p, e);
    if (!rc && !PQsendQueryPrepared(p->c, prepared[which].name, v->n, v->v, v->lengths, binary, 1))
        rc = postgres_fail_to_reach(p, PQerrorMessage(p->c), e);
    return rc ? rc : finish(p, until_ns, out, e);
}

void postgres_begin_copy(struct text *rows)
{
    static const char header[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0";
    *rows = (struct text){.fd = -1};
    text_put(rows, header, 19);
}

int postgres_copy(struct postgres *p, const char *sql, const struct text *bytes, struct err *e)
{
    enum { PIECE = 64 << 10 };
    int64_t until_ns = patience(p);
    int rc = postgres_ask(p, sql, NULL, NULL, e);
    for (size_t at = 0, n; !rc && at < bytes->n; at += n) {
        n = bytes->n - at < PIECE ? bytes->n - at : PIECE;
        if (PQputCopyData(p->c, bytes->v + at, (int)n) < 0)
            rc = postgres_fail_to_reach(p, PQerrorMessage(p->c), e);
        else
            rc = flush(p, until_ns, e);
    }
    if (!rc && PQputCopyEnd(p->c, NULL) < 0)
        rc = postgres_fail_to_reach(p, PQerrorMessage(p->c), e);
    return rc ? rc : finish(p, until_ns, NULL, e);
}
