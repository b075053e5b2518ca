/* SPDX-License-Identifier: MIT */
/* A client that asks as fast as it is answered: bench_http ADDRESS:PORT CONNECTIONS SECONDS < REQUESTS
 * Sends the REQUESTS (heads with Content-Length, and bodies) one after the other, again and again, on each of so many
 * connections that stay open, and reads the answers by their Content-Length. Prints one JSON line: requests per second,
 * bytes of an answer on average, and how long answers took. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/time.h"

enum { MOST_CONNECTIONS = 256, HEAD_BYTES = 16384 };

struct request {
    const char *bytes;
    size_t n;
};
static VEC(struct request) requests;

struct client {
    pthread_t thread;
    struct sockaddr_in to;
    size_t first; /* request */
    int64_t end_ns;
    uint64_t body_bytes; /* of all answers */
    VEC(int64_t) took;
};

static void give_up(const char *why)
{
    fprintf(stderr, "bench_http: %s\n", why);
    exit(1);
}

/* Reads one answer; returns the bytes of its body. */
static size_t read_answer(int fd, char *buffer, size_t room)
{
    size_t n = 0, head = 0, body = 0;
    while (!head || n < head + body) {
        ssize_t got = recv(fd, head ? buffer : buffer + n, head ? room : HEAD_BYTES - 1 - n, 0);
        if (got <= 0)
            give_up("the server closed the connection");
        n += (size_t)got;
        if (head)
            continue;
        buffer[n] = '\0';
        const char *blank = strstr(buffer, "\r\n\r\n"), *length = strcasestr(buffer, "\r\nContent-Length:");
        if (!blank && n == HEAD_BYTES - 1)
            give_up("an answer's head is too long");
        if (!blank)
            continue;
        if (strncmp(buffer, "HTTP/1.1 200", 12) || !length)
            give_up(buffer);
        head = (size_t)(blank + 4 - buffer);
        body = strtoull(length + 17, NULL, 10);
    }
    return body;
}

static void *run(void *arg)
{
    enum { ROOM = 1 << 18 };
    struct client *c = arg;
    char *buffer = mem_alloc(ROOM);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (connect(fd, (struct sockaddr *)&c->to, sizeof c->to))
        give_up("cannot connect");
    size_t next = c->first;
    for (int64_t t = time_monotonic_ns(); t < c->end_ns;) {
        struct request q = requests.v[next++ % requests.n];
        for (size_t sent = 0; sent < q.n;) {
            ssize_t w = send(fd, q.bytes + sent, q.n - sent, MSG_NOSIGNAL);
            if (w <= 0)
                give_up("the server takes no more");
            sent += (size_t)w;
        }
        c->body_bytes += read_answer(fd, buffer, ROOM);
        int64_t now = time_monotonic_ns();
        vec_push(&c->took, now - t);
        t = now;
    }
    close(fd);
    free(buffer);
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void split_requests(const char *at, const char *end)
{
    while (at < end) {
        const char *blank = strstr(at, "\r\n\r\n"), *length = strcasestr(at, "\r\nContent-Length:");
        if (!blank || !length || length > blank)
            give_up("a request has no Content-Length");
        size_t whole = (size_t)(blank + 4 - at) + strtoull(length + 17, NULL, 10);
        if (whole > (size_t)(end - at))
            give_up("a request is cut");
        vec_push(&requests, ((struct request){at, whole}));
        at += whole;
    }
}

int main(int argc, char **argv)
{
    static struct client clients[MOST_CONNECTIONS];
    static char text[4 << 20];
    size_t bytes = fread(text, 1, sizeof text - 1, stdin), n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    double seconds = argc > 3 ? strtod(argv[3], NULL) : 0;
    char *colon = argc > 1 ? strrchr(argv[1], ':') : NULL;
    struct sockaddr_in to = {.sin_family = AF_INET};
    if (colon)
        *colon = '\0';
    if (!colon || !bytes || !n || n > MOST_CONNECTIONS || seconds <= 0 ||
        inet_pton(AF_INET, argv[1], &to.sin_addr) != 1) {
        fprintf(stderr, "bench_http ADDRESS:PORT CONNECTIONS SECONDS < REQUESTS\n");
        return 2;
    }
    split_requests(text, text + bytes);
    to.sin_port = htons((uint16_t)atoi(colon + 1));
    int64_t begin = time_monotonic_ns();
    for (size_t i = 0; i < n; i++) {
        clients[i] = (struct client){.to = to, .first = i * requests.n / n, .end_ns = begin + (int64_t)(seconds * 1e9)};
        pthread_create(&clients[i].thread, NULL, run, &clients[i]);
    }
    VEC(int64_t) took = {0};
    uint64_t body_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        pthread_join(clients[i].thread, NULL);
        for (size_t k = 0; k < clients[i].took.n; k++)
            vec_push(&took, clients[i].took.v[k]);
        vec_free(&clients[i].took);
        body_bytes += clients[i].body_bytes;
    }
    double spent = (double)(time_monotonic_ns() - begin) / 1e9;
    qsort(took.v, took.n, sizeof *took.v, by_value);
    printf("{\"bench\":\"http\",\"connections\":%zu,\"requests\":%zu,\"per_second\":%.1f,\"body_bytes\":%" PRIu64
           ",\"median_ms\":%.3f,\"p99_ms\":%.3f}\n",
        n, took.n, (double)took.n / spent, body_bytes / took.n, (double)took.v[took.n / 2] / 1e6,
        (double)took.v[took.n * 99 / 100] / 1e6);
    vec_free(&took);
    vec_free(&requests);
    return 0;
}
