/* SPDX-License-Identifier: MIT */
/* Taking spans in: bench_spans [SPANS [postgresql://…]], or bench_spans --fill DIR SPANS [postgresql://…], which leaves
 * the store there, or in the database with its log there (spans_asked.py).
 * OTLP as protobuf, batches of 512, each acknowledged when it is synced, by one sender in the process; how far the
 * database is behind then, and when it has all. Beside them: plain inserts of rows of the same size into an SQLite
 * table with the same two indexes, a transaction for each 4 MiB as the collector makes them. With a PostgreSQL database
 * the same for it: plain rows come by COPY, and by INSERT; processor time is that of the server's process, too. Prints
 * JSON lines. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/time.h"
#include "span/collect.h"
#include "span/postgres.h"
#include "span_batches.h"

enum { MOST_BEHIND_BYTES = 256 << 20, BODY_BYTES = 230 };

/* ---- measuring ---- */

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fail(const struct err *e)
{
    fprintf(stderr, "bench_spans: %s\n", e->text);
    exit(1);
}

static struct span_collector *begin_collecting(const char *directory, const char *url)
{
    struct span_collect_options o = {.store = url ? url : directory, .directory = directory};
    struct span_collector *c;
    struct err e = {0};
    if (span_collect_start(&o, &c, &e))
        fail(&e);
    return c;
}

static void take_batch(struct span_collector *c, const struct text *batch, uint64_t most_behind_bytes)
{
    struct span_making m = SPAN_MAKING;
    struct err e = {0};
    if (span_read_protobuf(&m, batch->v, batch->n, &e))
        fail(&e);
    int rc;
    while ((rc = log_append(c->log, m.code.v, m.code.n, time_now_ns(), most_behind_bytes, &e)) == ERR_BUSY)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL); /* the database catches up */
    if (rc)
        fail(&e);
    span_making_fini(&m);
}

/* A store of so many spans. */
static void fill(const char *directory, const char *url, uint64_t n)
{
    struct span_collector *c = begin_collecting(directory, url);
    for (uint64_t made = 0; made < n;) {
        struct text batch = {.fd = -1};
        bench_make_calls(&batch, &made);
        take_batch(c, &batch, MOST_BEHIND_BYTES);
        text_fini(&batch);
    }
    span_collect_stop(c);
}

static void take_in(const char *directory, const char *url, struct text *batches, size_t count)
{
    struct span_collector *c = begin_collecting(directory, url);
    double begin = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
    double process = seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (size_t i = 0; i < count; i++)
        take_batch(c, &batches[i], UINT64_MAX);
    double n = (double)(count * BENCH_BATCH), taken = seconds(CLOCK_MONOTONIC) - begin;
    cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
    span_collect_stop(c); /* ends when the database has all */
    double all = seconds(CLOCK_MONOTONIC) - begin, behind = seconds(CLOCK_PROCESS_CPUTIME_ID) - process - cpu;
    printf("{\"bench\":\"acknowledged\",\"per_s\":%.0f,\"per_cpu_s\":%.0f}\n", n / taken, n / cpu);
    printf("{\"bench\":\"database\",\"per_s\":%.0f,\"per_cpu_s\":%.0f}\n", n / all, n / behind);
}

static void insert_plainly(const char *directory, uint64_t n)
{
    char path[300];
    sqlite3 *db;
    sqlite3_stmt *q;
    snprintf(path, sizeof path, "%s/plain.db", directory);
    sqlite3_open(path, &db);
    sqlite3_exec(db,
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=16384; PRAGMA cache_size=-65536;"
        "CREATE TABLE s (number INTEGER PRIMARY KEY, trace BLOB, id BLOB, service INTEGER, name INTEGER, begin INTEGER,"
        " lasted INTEGER, body BLOB); CREATE INDEX a ON s (trace, id);"
        " CREATE INDEX b ON s (service, begin, name, lasted)",
        NULL, NULL, NULL);
    sqlite3_prepare_v2(db,
        "INSERT INTO s (trace, id, service, name, begin, lasted, body) VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6)", -1, &q,
        NULL);
    double begin = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t trace[2] = {0}, body[BODY_BYTES / 8 + 1];
    for (uint64_t i = 0; i < n; i++) {
        uint64_t id = bench_draw();
        if (i % (4 << 20 >> 8) == 0)
            sqlite3_exec(db, i ? "COMMIT; BEGIN" : "BEGIN", NULL, NULL, NULL);
        if (i % BENCH_TRACE_SPANS == 0)
            trace[0] = bench_draw(), trace[1] = bench_draw();
        memset(body, (int)i, sizeof body);
        sqlite3_reset(q);
        sqlite3_bind_blob(q, 1, trace, 16, SQLITE_STATIC);
        sqlite3_bind_blob(q, 2, &id, 8, SQLITE_STATIC);
        sqlite3_bind_int64(q, 3, (int64_t)(i % 6));
        sqlite3_bind_int64(q, 4, (int64_t)(1700000000000000000 + i * 100000));
        sqlite3_bind_int64(q, 5, (int64_t)(bench_draw() % 100000000));
        sqlite3_bind_blob(q, 6, body, BODY_BYTES, SQLITE_STATIC);
        sqlite3_step(q);
    }
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    printf("{\"bench\":\"plain\",\"per_s\":%.0f,\"per_cpu_s\":%.0f}\n", (double)n / (seconds(CLOCK_MONOTONIC) - begin),
        (double)n / (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu));
    sqlite3_finalize(q);
    sqlite3_close(db);
}

/* ---- PostgreSQL ---- */

enum { AT_ONCE_BYTES = 4 << 20, INSERTED = 50000 };

/* Of the server's process, and this one. */
static double cpu_with(PGconn *c)
{
    char path[64], line[1024] = "";
    unsigned long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", PQbackendPID(c));
    FILE *f = fopen(path, "r");
    if (f) {
        const char *after = fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
        if (!after || sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
            user = system = 0;
        fclose(f);
    }
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK) + seconds(CLOCK_PROCESS_CPUTIME_ID);
}

static void print_rate(const char *what, double n, double passed, double cpu)
{
    printf("{\"bench\":\"%s\",\"per_s\":%.0f,\"per_cpu_s\":%.0f}\n", what, n / passed, n / cpu);
}

static void write_to_postgres(const char *directory, const char *url, struct text *batches, size_t count)
{
    struct span_store *s;
    struct err e = {0};
    struct span_making *made = mem_zalloc(count * sizeof *made);
    uint64_t damaged = 0;
    for (size_t i = 0; i < count; i++) {
        made[i] = SPAN_MAKING;
        if (span_read_protobuf(&made[i], batches[i].v, batches[i].n, &e))
            fail(&e);
    }
    if (database_open_to_write(url, directory, &s, &e) || database_begin(s, &e))
        fail(&e);
    database_rollback(s);
    double begin = seconds(CLOCK_MONOTONIC), cpu = cpu_with(postgres_of(s)->c);
    for (size_t i = 0; i < count;) {
        int rc = database_begin(s, &e);
        for (size_t bytes = 0; !rc && i < count && bytes < AT_ONCE_BYTES; i++) {
            rc = database_add(s, made[i].code.v, made[i].code.n, time_now_ns(), &damaged, &e);
            bytes += made[i].code.n;
        }
        if (rc || database_commit(s, &(struct log_position){1, i}, &e))
            fail(&e);
    }
    cpu = cpu_with(postgres_of(s)->c) - cpu;
    print_rate("postgres", (double)(count * BENCH_BATCH), seconds(CLOCK_MONOTONIC) - begin, cpu);
    span_store_close(s);
    for (size_t i = 0; i < count; i++)
        span_making_fini(&made[i]);
    free(made);
}

static void must(PGconn *c, const char *sql, ExecStatusType wanted)
{
    PGresult *r = PQexec(c, sql);
    if (PQresultStatus(r) != wanted) {
        fprintf(stderr, "bench_spans: %s: %s", sql, PQerrorMessage(c));
        exit(1);
    }
    PQclear(r);
}

static void put_field(struct text *t, const void *v, size_t n)
{
    postgres_put_32(t, (uint32_t)n);
    text_put(t, v, n);
}

static void put_row(struct text *t, uint64_t i, const uint64_t trace[2])
{
    uint64_t id = bench_draw(), body[BODY_BYTES / 8 + 1];
    const uint64_t numbers[] = {1, i % 6, 1700000000000000000 + i * 100000, bench_draw() % 100000000};
    memset(body, (int)i, sizeof body);
    put_field(t, trace, 16);
    put_field(t, &id, 8);
    for (size_t k = 0; k < 4; k++) {
        postgres_put_32(t, 8);
        postgres_put_64(t, numbers[k]);
    }
    put_field(t, body, BODY_BYTES);
}

static void copy_plainly(PGconn *c, uint64_t n)
{
    struct text rows = {.fd = -1};
    uint64_t trace[2] = {0};
    double begin = seconds(CLOCK_MONOTONIC), cpu = cpu_with(c);
    for (uint64_t i = 0; i < n;) {
        rows.n = 0;
        text_put(&rows, "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0", 19);
        for (; i < n && rows.n < AT_ONCE_BYTES; i++) {
            if (i % BENCH_TRACE_SPANS == 0)
                trace[0] = bench_draw(), trace[1] = bench_draw();
            postgres_put_16(&rows, 7);
            put_row(&rows, i, trace);
        }
        postgres_put_16(&rows, UINT16_MAX);
        must(c, "COPY plain FROM STDIN (FORMAT binary)", PGRES_COPY_IN);
        if (PQputCopyData(c, rows.v, (int)rows.n) != 1 || PQputCopyEnd(c, NULL) != 1)
            fail(&(struct err){.text = "COPY"});
        PQclear(PQgetResult(c));
        PQclear(PQgetResult(c));
    }
    print_rate("plain copy", (double)n, seconds(CLOCK_MONOTONIC) - begin, cpu_with(c) - cpu);
    text_fini(&rows);
}

static void insert_rows(PGconn *c, uint64_t n)
{
    static const int binary[] = {1, 1, 1, 1, 1, 1, 1};
    uint64_t trace[2] = {0};
    double begin = seconds(CLOCK_MONOTONIC), cpu = cpu_with(c);
    PQclear(PQprepare(c, "row", "INSERT INTO plain VALUES ($1, $2, $3, $4, $5, $6, $7)", 0, NULL));
    must(c, "BEGIN", PGRES_COMMAND_OK);
    for (uint64_t i = 0; i < n; i++) {
        struct text row = {.fd = -1};
        const char *values[7];
        int lengths[7];
        if (i % BENCH_TRACE_SPANS == 0)
            trace[0] = bench_draw(), trace[1] = bench_draw();
        put_row(&row, i, trace);
        char *at = row.v;
        for (int k = 0; k < 7; k++) {
            uint32_t length;
            memcpy(&length, at, sizeof length);
            lengths[k] = (int)__builtin_bswap32(length);
            values[k] = at + 4;
            at += 4 + lengths[k];
        }
        PQclear(PQexecPrepared(c, "row", 7, values, lengths, binary, 0));
        text_fini(&row);
    }
    must(c, "COMMIT", PGRES_COMMAND_OK);
    print_rate("plain insert", (double)n, seconds(CLOCK_MONOTONIC) - begin, cpu_with(c) - cpu);
}

static void make_plain_table(PGconn *c)
{
    must(c,
        "DROP TABLE IF EXISTS plain; CREATE TABLE plain (trace uuid, id bytea, service bigint, name bigint,"
        " begin bigint, lasted bigint, body bytea); CREATE INDEX ON plain (trace, id);"
        " CREATE INDEX ON plain (service, begin, name, lasted)",
        PGRES_COMMAND_OK);
}

static void measure_postgres(const char *directory, const char *url, struct text *batches, size_t count, uint64_t n)
{
    char *log = mem_printf("%s/log-of-postgres", directory);
    PGconn *c = PQconnectdb(url);
    if (PQstatus(c) != CONNECTION_OK)
        fail(&(struct err){.text = "cannot connect to the database"});
    must(c, "SET client_min_messages = warning; DROP SCHEMA IF EXISTS weft CASCADE", PGRES_COMMAND_OK);
    take_in(log, url, batches, count);
    must(c, "DROP SCHEMA weft CASCADE", PGRES_COMMAND_OK);
    write_to_postgres(directory, url, batches, count);
    make_plain_table(c);
    copy_plainly(c, n);
    make_plain_table(c);
    insert_rows(c, INSERTED);
    must(c, "DROP TABLE plain", PGRES_COMMAND_OK);
    PQfinish(c);
    free(log);
}

static void remove_all(const char *directory)
{
    char command[400];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    if (system(command))
        fprintf(stderr, "bench_spans: %s is left\n", directory);
}

int main(int argc, char **argv)
{
    if ((argc == 4 || argc == 5) && !strcmp(argv[1], "--fill")) {
        fill(argv[2], argc == 5 ? argv[4] : NULL, strtoull(argv[3], NULL, 10));
        return 0;
    }
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 500000, made = 0;
    size_t count = (size_t)(n / BENCH_BATCH + 1);
    const char *tmp = getenv("TMPDIR");
    char *directory = mem_printf("%s/weft-bench-XXXXXX", tmp ? tmp : "/tmp");
    struct text *batches = mem_zalloc(count * sizeof *batches);
    if (!mkdtemp(directory)) {
        perror(directory);
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        batches[i].fd = -1;
        bench_make_batch(&batches[i], &made);
    }
    if (argc > 2) {
        measure_postgres(directory, argv[2], batches, count, made);
    } else {
        take_in(directory, NULL, batches, count);
        insert_plainly(directory, made);
    }
    for (size_t i = 0; i < count; i++)
        text_fini(&batches[i]);
    free(batches);
    remove_all(directory);
    free(directory);
    return 0;
}
