/* SPDX-License-Identifier: MIT */
/* webapp PORT CONNINFO THREADS LOG: answers GET /KIND?NUMBER over HTTP/1.1 with what PostgreSQL says.
 * Each thread has a connection to the database and serves one connection of the web server at a time.
 * Logs a line per request: {"id","kind","tid","backend","t_query","t_answer"}, CLOCK_MONOTONIC ns. */
#define _GNU_SOURCE
#include <libpq-fe.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int listener;
static const char *database;
static FILE *log_file;

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void statement(char *sql, size_t size, const char *kind, int number)
{
    if (!strcmp(kind, "key"))
        snprintf(sql, size, "SELECT body FROM items WHERE id = %d", number);
    else if (!strcmp(kind, "compute"))
        snprintf(sql, size, "SELECT count(*) FROM items WHERE md5(body || '%d') < '8'", number);
    else if (!strcmp(kind, "disk"))
        snprintf(sql, size,
            "SELECT sum(length(body)) FROM archive WHERE id IN (%d, %d, %d, %d, %d, %d, %d, %d, %d, %d)", number,
            number + 380, number + 760, number + 1140, number + 1520, number + 1900, number + 2280, number + 2660,
            number + 3040, number + 3420);
    else if (!strcmp(kind, "hold"))
        snprintf(
            sql, size, "BEGIN; SELECT body FROM items WHERE id = %d FOR UPDATE; SELECT pg_sleep(0.25); COMMIT", number);
    else
        snprintf(sql, size, "SELECT body FROM items WHERE id = %d FOR UPDATE", number);
}

static int answer(int peer, PGconn *db, const char *kind, int id, int number)
{
    char sql[400], reply[400];
    statement(sql, sizeof sql, kind, number);
    long long begin = now();
    PGresult *result = PQexec(db, sql);
    long long end = now();
    if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
        fprintf(stderr, "%s: %s", sql, PQerrorMessage(db));
    char body[160];
    snprintf(body, sizeof body, "%s\n", PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "done");
    PQclear(result);
    int length = snprintf(reply, sizeof reply, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
    if (write(peer, reply, (size_t)length) != length)
        return -1;
    fprintf(log_file, "{\"id\":%d,\"kind\":\"%s\",\"tid\":%ld,\"backend\":%d,\"t_query\":%lld,\"t_answer\":%lld}\n", id,
        kind, syscall(SYS_gettid), PQbackendPID(db), begin, end);
    return 0;
}

static void serve(int peer, PGconn *db)
{
    char in[4096];
    size_t have = 0;
    for (;;) {
        ssize_t got = read(peer, in + have, sizeof in - 1 - have);
        if (got <= 0)
            return;
        have += (size_t)got;
        in[have] = 0;
        if (!strstr(in, "\r\n\r\n"))
            continue;
        char kind[20];
        int id, number;
        if (sscanf(in, "GET /%19[a-z]?%d,%d", kind, &id, &number) != 3 || answer(peer, db, kind, id, number) < 0)
            return;
        have = 0;
    }
}

static void *worker(void *unused)
{
    PGconn *db = PQconnectdb(database);
    if (PQstatus(db) != CONNECTION_OK) {
        fprintf(stderr, "%s", PQerrorMessage(db));
        exit(1);
    }
    for (;;) {
        int peer = accept(listener, NULL, NULL), one = 1;
        if (peer < 0)
            continue;
        setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        serve(peer, db);
        close(peer);
    }
    return unused;
}

int main(int count, char **words)
{
    if (count != 5)
        return 2;
    int one = 1, threads = atoi(words[3]);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[1]))};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    database = words[2];
    log_file = fopen(words[4], "w");
    setlinebuf(log_file);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 64)) {
        perror("listen");
        return 1;
    }
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, worker, NULL);
    }
    pause();
}
