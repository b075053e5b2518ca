/* SPDX-License-Identifier: MIT */
/* Server under test, and a client on a plain socket. */
#ifndef TESTS_HTTP_SERVER_H
#define TESTS_HTTP_SERVER_H

#include <arpa/inet.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "../base/test.h"
#include "http/http.h"

/* Numbers of handlers of "/wait" and "/hold/" that have begun, and of handlers of "/wait" that saw their client go. */
static atomic_int gone_seen, in_handler;

/* Writes N bytes: ascending numbers, or incompressible noise. */
static inline void put_bytes(struct text *t, size_t n, bool noise)
{
    uint64_t x = 88172645463325252;
    text_room(t, n + 32); /* exact size */
    for (size_t i = 0; t->n < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        if (noise) {
            text_put(t, (const char *)&x, sizeof x);
            continue;
        }
        text_u64(t, i % 100);
        text_putc(t, ',');
    }
    t->n = n;
}

/* Answers "/large/N", "/numbers/N", "/noise/N": N bytes; "/wait": until the client has gone; else method, path, query
 * and body. */
static inline void handle(void *arg, struct http_request *q)
{
    struct text t = {.fd = -1};
    const char *name = http_query(q, "name");
    if (!strncmp(q->path, "/large/", 7)) {
        size_t n = (size_t)atol(q->path + 7);
        memset(text_room(&t, n), 'a', n);
        t.n = n;
    } else if (!strncmp(q->path, "/numbers/", 9)) {
        put_bytes(&t, (size_t)atol(q->path + 9), false);
    } else if (!strncmp(q->path, "/noise/", 7)) {
        put_bytes(&t, (size_t)atol(q->path + 7), true);
    } else if (!strcmp(q->path, "/wait")) {
        atomic_fetch_add(&in_handler, 1);
        for (int i = 0; i < 20000 && !http_gone(q); i++)
            usleep(1000);
        atomic_fetch_add(&gone_seen, http_gone(q));
        text_puts(&t, "over");
    } else if (!strncmp(q->path, "/hold/", 6)) { /* N bytes, until the client has gone; "/take/N": for a moment */
        arena_alloc(q->arena, (size_t)atol(q->path + 6));
        atomic_fetch_add(&in_handler, 1);
        for (int i = 0; i < 20000 && !http_gone(q); i++)
            usleep(1000);
    } else if (!strncmp(q->path, "/take/", 6)) {
        arena_alloc(q->arena, (size_t)atol(q->path + 6));
        http_gone(q);
    } else if (!strcmp(q->path, "/who")) {
        text_puts(&t, q->only_asks ? "only asks" : "may change");
    } else if (!strcmp(q->path, "/silent")) {
        return;
    } else if (!strcmp(q->path, "/static")) {
        http_reply_static(q, "text/plain", "constant", 8, false, "\"tag\"");
        return;
    } else {
        text_printf(&t, "%s %s %s %zu %s", q->method, q->path, name ? name : "-", q->body_bytes,
            q->body_file ? "file" : q->body);
    }
    http_header(q, "X-Test", "yes");
    http_reply(q, 200, "text/plain", &t);
}

static inline struct http_server *start(struct http_options o)
{
    struct http_server *s;
    struct err e = {0};
    o.listen = o.listen ? o.listen : "127.0.0.1:0";
    if (http_server_start(&o, handle, NULL, &s, &e))
        fail_msg("%s", e.text);
    return s;
}

static inline int dial(const struct http_server *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    a.sin_port = htons((uint16_t)atoi(strrchr(http_server_address(s), ':') + 1));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

/* Returns all bytes received until the server closes. free() it. */
static inline char *ask_bytes(const struct http_server *s, const char *request, size_t n_request)
{
    struct text t = {.fd = -1};
    int fd = dial(s);
    assert_int_equal(send(fd, request, n_request, MSG_NOSIGNAL), (ssize_t)n_request);
    for (ssize_t n; (n = recv(fd, text_room(&t, 65536), 65536, 0)) > 0;)
        t.n += (size_t)n;
    close(fd);
    return text_take(&t);
}

static inline char *ask(const struct http_server *s, const char *request)
{
    return ask_bytes(s, request, strlen(request));
}

#define assert_answer(s, request, ...) \
    do { \
        const char *parts_[] = {__VA_ARGS__}; \
        char *answer_ = ask(s, request); \
        for (size_t i_ = 0; i_ < sizeof parts_ / sizeof *parts_; i_++) \
            if (!strstr(answer_, parts_[i_])) \
                fail_msg("no \"%s\" in:\n%s", parts_[i_], answer_); \
        free(answer_); \
    } while (0)

#define END "Host: localhost\r\nConnection: close\r\n\r\n"

static inline bool is_answered(const struct http_server *s, const char *request, const char *status)
{
    char *answer = ask(s, request);
    bool is = strstr(answer, status) != NULL;
    free(answer);
    return is;
}

#endif
