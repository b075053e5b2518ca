/* SPDX-License-Identifier: MIT */
/* webload ADDRESS PORT SPEC: one thread and one keep-alive connection for each connection number of SPEC, whose lines
 * are "CONNECTION PAUSE_US KIND ID NUMBER". A "lock" is sent 60 ms after a "hold" of another connection was.
 * Prints a line per request: {"id","kind","connection","port","tid","t_send","t_recv"}, CLOCK_MONOTONIC ns. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct request {
    int connection, pause_us, id, number;
    char kind[20];
};

static struct request requests[4096];
static int request_count;
static struct sockaddr_in server;
static sem_t held;

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Reads one response with a Content-Length. */
static int response(int fd)
{
    char in[8192];
    size_t have = 0;
    for (;;) {
        ssize_t got = read(fd, in + have, sizeof in - 1 - have);
        if (got <= 0)
            return -1;
        have += (size_t)got;
        in[have] = 0;
        char *end = strstr(in, "\r\n\r\n"), *length = strcasestr(in, "content-length:");
        if (end && length && have >= (size_t)(end + 4 - in) + (size_t)atoi(length + 15))
            return 0;
    }
}

static void *connection(void *number)
{
    int which = (int)(long)number, fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (connect(fd, (struct sockaddr *)&server, sizeof server)) {
        perror("connect");
        exit(1);
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct sockaddr_in own;
    socklen_t size = sizeof own;
    getsockname(fd, (struct sockaddr *)&own, &size);
    for (int i = 0; i < request_count; i++) {
        struct request *q = &requests[i];
        if (q->connection != which)
            continue;
        usleep((useconds_t)q->pause_us);
        if (!strcmp(q->kind, "lock")) {
            sem_wait(&held);
            usleep(60000);
        }
        char line[300];
        int length = snprintf(
            line, sizeof line, "GET /%s?%d,%d HTTP/1.1\r\nHost: web\r\n\r\n", q->kind, q->id, q->number);
        long long begin = now();
        if (write(fd, line, (size_t)length) != length)
            exit(1);
        if (!strcmp(q->kind, "hold"))
            sem_post(&held);
        if (response(fd)) {
            fprintf(stderr, "no answer to %d\n", q->id);
            exit(1);
        }
        long long end = now();
        printf(
            "{\"id\":%d,\"kind\":\"%s\",\"connection\":%d,\"port\":%d,\"tid\":%ld,\"t_send\":%lld,\"t_recv\":%lld}\n",
            q->id, q->kind, which, ntohs(own.sin_port), syscall(SYS_gettid), begin, end);
    }
    close(fd);
    return NULL;
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    server.sin_family = AF_INET;
    server.sin_port = htons((uint16_t)atoi(words[2]));
    inet_pton(AF_INET, words[1], &server.sin_addr);
    FILE *spec = fopen(words[3], "r");
    struct request q;
    int most = 0;
    while (request_count < 4096 &&
        fscanf(spec, "%d %d %19s %d %d", &q.connection, &q.pause_us, q.kind, &q.id, &q.number) == 5) {
        requests[request_count++] = q;
        most = q.connection > most ? q.connection : most;
    }
    sem_init(&held, 0, 0);
    pthread_t threads[64];
    for (int i = 0; i <= most && i < 64; i++)
        pthread_create(&threads[i], NULL, connection, (void *)(long)i);
    for (int i = 0; i <= most && i < 64; i++)
        pthread_join(threads[i], NULL);
}
