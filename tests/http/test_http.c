/* SPDX-License-Identifier: MIT */
/* The HTTP server as a client on a plain socket sees it. */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "server.h"

static void test_requests(void **state)
{
    struct http_server *s = start((struct http_options){0});
    assert_answer(s, "GET /a%20b?name=x%2By HTTP/1.1\r\n" END, "HTTP/1.1 200", "X-Test: yes",
        "Content-Type: text/plain\r\n", "GET /a b x+y 0 ");
    assert_answer(s, "GET /a%00b?name=x%00y HTTP/1.1\r\n" END, "GET /a\1b x\1y 0 ");
    assert_answer(s, "POST /p HTTP/1.1\r\nContent-Length: 5\r\n" END "hello", "POST /p - 5 hello");
    assert_answer(s, "POST /p HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" END "5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n",
        "POST /p - 6 hello!");
    assert_answer(s, "GET /silent HTTP/1.1\r\n" END, "HTTP/1.1 500");
    assert_answer(s, "GET /static HTTP/1.1\r\n" END, "HTTP/1.1 200", "ETag: \"tag\"", "constant");
    assert_answer(s, "GET /static HTTP/1.1\r\nIf-None-Match: \"tag\"\r\n" END, "HTTP/1.1 304");
    assert_answer(s, "GET /large/5000 HTTP/1.1\r\nAccept-Encoding: gzip\r\n" END, "Content-Encoding: gzip");
    assert_answer(s, "OPTIONS /a HTTP/1.1\r\n" END, "HTTP/1.1 204");
    http_server_stop(s);
}

static void test_limits(void **state)
{
    struct http_server *s = start((struct http_options){.max_body_bytes = 10});
    assert_answer(s, "POST /p HTTP/1.1\r\nContent-Length: 11\r\n" END "hello world", "HTTP/1.1 413");
    assert_answer(s, "POST /p HTTP/1.1\r\nContent-Length: 99999999999999\r\n" END, "HTTP/1.1 413");
    assert_answer(s, "POST /p HTTP/1.1\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n" END, "HTTP/1.1 413");
    assert_answer(
        s, "POST /p HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" END "b\r\nhello world\r\n0\r\n\r\n", "HTTP/1.1 413");
    http_server_stop(s);
}

/* Pages of other sites reach a server on this machine through their visitors' browsers. */
static void test_strangers(void **state)
{
    static const char *const origins[] = {"https://good.example", NULL};
    struct http_server *s = start((struct http_options){.origins = origins});
    assert_answer(s, "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", "HTTP/1.1 421");
    assert_answer(s, "GET / HTTP/1.1\r\nHost: 127.0.0.1.evil.example:80\r\nConnection: close\r\n\r\n", "HTTP/1.1 421");
    assert_answer(s, "GET / HTTP/1.1\r\nHost: 127.0.0.1:80\r\nConnection: close\r\n\r\n", "HTTP/1.1 200");
    assert_answer(s, "GET / HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close\r\n\r\n", "HTTP/1.1 200");
    assert_answer(s, "GET / HTTP/1.1\r\nOrigin: https://good.example\r\n" END,
        "Access-Control-Allow-Origin: https://good.example\r\n", "Vary: Origin");
    http_server_stop(s);
}

/* Checks names on every address: an attacker's page is called by a name that the attacker may point to this machine. */
static void test_names_of_others(void **state)
{
    static const char *const hosts[] = {"traces.example", NULL};
    static const char *const refused[] = {"evil.example", "traces.example.evil.example", "evil.example:80",
        "localhost.evil.example", "127.0.0.1.evil.example", "1.2.3.4.5", "0x7f.1"};
    static const char *const taken[] = {
        "traces.example", "TRACES.example.:443", "localhost:80", "10.1.2.3", "[fe80::1]:80"};
    char request[300], machine[200] = "";
    gethostname(machine, sizeof machine - 1);
    for (int with_token = 0; with_token < 2; with_token++) {
        struct http_server *s = start(
            (struct http_options){.listen = "0.0.0.0:0", .hosts = hosts, .token = with_token ? "secret" : NULL});
#define ASK(host, path, status) \
    snprintf(request, sizeof request, \
        "GET " path " HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer secret\r\nConnection: close\r\n\r\n", host); \
    assert_answer(s, request, status)
        for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
            ASK(refused[i], "/", with_token ? "HTTP/1.1 200" : "HTTP/1.1 421");
        }
        for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
            ASK(taken[i], "/", "HTTP/1.1 200");
        }
        ASK(machine, "/", "HTTP/1.1 200");
#undef ASK
        http_server_stop(s);
    }
    struct http_server *s = start((struct http_options){.listen = "0.0.0.0:0"});
    assert_answer(s, "GET / HTTP/1.1\r\nHost: traces.example\r\nConnection: close\r\n\r\n", "HTTP/1.1 421",
        "traces.example", "--host NAME");
    http_server_stop(s);
}

#define FROM(site, origin) "Sec-Fetch-Site: " site "\r\nOrigin: " origin "\r\n" END

/* Checks origins: a browser states the page that makes it send a request, and the page cannot change that. */
static void test_pages_of_others(void **state)
{
    static const char *const refused[] = {
        "GET / HTTP/1.1\r\nOrigin: https://evil.example\r\n" END,
        "POST / HTTP/1.1\r\nContent-Length: 0\r\nOrigin: https://evil.example\r\n" END,
        "POST / HTTP/1.1\r\nContent-Length: 0\r\nOrigin: null\r\n" END,
        "POST / HTTP/1.1\r\nContent-Length: 0\r\nOrigin: http://localhost.evil.example\r\n" END,
        "POST / HTTP/1.1\r\nContent-Length: 0\r\n" FROM("same-site", "http://localhost:3000"),
        "OPTIONS / HTTP/1.1\r\n" FROM("cross-site", "https://evil.example"),
        "GET / HTTP/1.1\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n" END,
        "POST / HTTP/1.1\r\nContent-Length: 0\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n" END,
    };
    static const char *const taken[] = {
        "POST / HTTP/1.1\r\nContent-Length: 0\r\nOrigin: http://LOCALHOST\r\n" END,
        "POST / HTTP/1.1\r\nContent-Length: 0\r\n" FROM("same-origin", "https://behind-a-proxy.example"),
        "GET / HTTP/1.1\r\nSec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n" END,
        "GET / HTTP/1.1\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n" END,
    };
    struct http_server *s = start((struct http_options){0});
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char *answer = ask(s, refused[i]);
        if (strncmp(answer, "HTTP/1.1 403", 12) || strstr(answer, "Access-Control"))
            fail_msg("%s: %s", refused[i], answer);
        free(answer);
    }
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        assert_answer(s, taken[i], "HTTP/1.1 200");
    http_server_stop(s);
}

/* Checks that `*` lets all read; named origins, and editors, may also change things. The handler decides what is
 * reading. */
static void test_allowed_origins(void **state)
{
    static const char *const origins[] = {"https://good.example", "editors", "*", NULL};
    static const char *const changers[] = {
        "https://good.example", "vscode-webview://0abc", "file://", "http://localhost:3000"};
    static const char *const askers[] = {"https://evil.example", "https://vscode-webview.example", "null",
        "http://localhost:3001", "https://good.example.evil.example"};
    struct http_server *s = start((struct http_options){.origins = origins});
    char request[300], allow[300];
    for (size_t i = 0; i < sizeof changers / sizeof *changers; i++) {
        snprintf(request, sizeof request, "POST /who HTTP/1.1\r\nContent-Length: 0\r\nOrigin: %s\r\n" END, changers[i]);
        snprintf(allow, sizeof allow, "Access-Control-Allow-Origin: %s\r\n", changers[i]);
        assert_answer(s, request, "HTTP/1.1 200", "may change", allow, "DELETE");
    }
    for (size_t i = 0; i < sizeof askers / sizeof *askers; i++) {
        snprintf(request, sizeof request, "POST /who HTTP/1.1\r\nContent-Length: 0\r\nOrigin: %s\r\n" END, askers[i]);
        assert_answer(s, request, "HTTP/1.1 200", "only asks", "Access-Control-Allow-Origin: *\r\n");
        char *answer = ask(s, request);
        assert_null(strstr(answer, "DELETE"));
        free(answer);
    }
    http_server_stop(s);
}

static void test_hosts(void **state)
{
    static const char *const malformed[] = {"Host: localhost\r\nHost: localhost",
        "Host: localhost\r\nhost: evil.example", "Host: localhost@evil.example", "Host: localhost:80:80",
        "Host: localhost:evil", "Host: localhost, evil.example", "Host: localhost/evil.example", "Host: [::1",
        "Host: []", "Host: [evil]", "Host: "};
    struct http_server *s = start((struct http_options){.token = "secret"}); /* whatever protects it */
    char request[300];
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        snprintf(request, sizeof request,
            "GET / HTTP/1.1\r\n%s\r\nAuthorization: Bearer secret\r\nConnection: close\r\n\r\n", malformed[i]);
        assert_answer(s, request, "HTTP/1.1 400");
    }
    http_server_stop(s);
}

/* Heads that two servers in a row may read differently are refused, and the connection ends: RFC 9112, sections 2.2, 3,
 * 5, 6.1, 6.3 and 11.2. The request that hides behind each one is never answered. */
static void test_malformed_heads(void **state)
{
#define CASE(status, head) \
    { \
        status, head "\r\n" HIDDEN, sizeof head "\r\n" HIDDEN - 1 \
    }
#define HIDDEN "GET /hidden HTTP/1.1\r\n" END
#define POST "POST /p HTTP/1.1\r\nHost: localhost\r\n"
#define GET "GET /p HTTP/1.1\r\nHost: localhost\r\n"
    static const struct {
        const char *status, *bytes;
        size_t n;
    } cases[] = {
        CASE("400", POST "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"),
        CASE("400", POST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n"),
        CASE("400", POST "Content-Length: 4\r\nContent-Length: 0\r\n"),
        CASE("400", POST "Content-Length: 0\r\nContent-Length: 0\r\n"),
        CASE("400", POST "Content-Length: 0, 0\r\n"),
        CASE("400", POST "Content-Length: +0\r\n"),
        CASE("400", POST "Content-Length: -1\r\n"),
        CASE("400", POST "Content-Length: 0x0\r\n"),
        CASE("400", POST "Content-Length: 0\0\r\n"),
        CASE("400", POST "Content-Length : 0\r\n"),
        CASE("400", POST "Transfer-Encoding : chunked\r\n"),
        CASE("400", POST "Transfer-Encoding\t: chunked\r\n"),
        CASE("400", POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\nContent-Length: 0\r\n"),
        CASE("400", "POST /p HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"),
        CASE("501", POST "Transfer-Encoding: gzip, chunked\r\n"),
        CASE("501", POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        CASE("501", POST "Transfer-Encoding: xchunked\r\n"),
        CASE("501", POST "Transfer-Encoding: identity\r\n"),
        CASE("501", POST "Transfer-Encoding:\r\n"),
        CASE("400", "GET /p HTTP/1.1\r\n"),
        CASE("400", "GET /p HTTP/1.1\r\nHost: \r\n"),
        CASE("400", GET "Host: localhost\r\n"),
        CASE("400", GET "X: a\0b\r\n"),
        CASE("400", GET "X: a\0\r\n"),
        CASE("400", GET "X: a\r\nY: b\0b\r\nZ: c\r\n"),
        CASE("400", GET "X\0: a\r\n"),
        CASE("400", "GET /p\0q HTTP/1.1\r\nHost: localhost\r\n"),
        CASE("400", "GET /p?a=b\0c HTTP/1.1\r\nHost: localhost\r\n"),
        CASE("400", "GET /p\nX: y HTTP/1.1\r\nHost: localhost\r\n"),
        CASE("400", "GET /p HTTP/1.1\nHost: localhost\r\n"),
        CASE("400", GET "X: a\nY: b\r\n"),
        CASE("400", GET "X: a\n"),
        CASE("400", GET "X: a\r\n\n"),
        CASE("400", GET "X: a\rY: b\r\n"),
        CASE("400", GET "X: a\r\n b\r\n"),
        CASE("400", GET "X: a\r\n b\r\nY: c\r\n"),
        CASE("400", GET " X: a\r\n"),
        CASE("400", GET "no colon\r\n"),
        CASE("400", GET ": a\r\n"),
        CASE("400", GET "X Y: a\r\n"),
        CASE("400", GET "X: \x01\r\n"),
        CASE("", "GET /p q HTTP/1.1\r\nHost: localhost\r\n"),
        CASE("400", "GET /p\tq HTTP/1.1\r\nHost: localhost\r\n"),
        CASE("400", "G(T /p HTTP/1.1\r\nHost: localhost\r\n"),
    };
#undef CASE
    struct http_server *s = start((struct http_options){0});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *answer = ask_bytes(s, cases[i].bytes, cases[i].n);
        bool told = !strncmp(answer, "HTTP/1.1 ", 9) && !strncmp(answer + 9, cases[i].status, 3);
        if (*cases[i].status ? !told : *answer) /* "": the connection ends without a word */
            fail_msg("not %s: %s\n%s", cases[i].status, cases[i].bytes, answer);
        if (strstr(answer, "/hidden"))
            fail_msg("the connection goes on: %s\n%s", cases[i].bytes, answer);
        free(answer);
    }
    /* Unusual but unambiguous requests are accepted. */
    assert_answer(s, "\r\nGET /p HTTP/1.1\r\nX:\r\nY:a\r\nZ: \t a  b \t\r\nx!#$%&'*+-.^_`|~: \"\xc3\xa4\"\r\n" END,
        "HTTP/1.1 200", "GET /p - 0 ");
    assert_answer(s, "POST /p HTTP/1.1\r\ntransfer-encoding:CHUNKED\r\n" END "1\r\na\r\n0\r\n\r\n", "POST /p - 1 a");
    assert_answer(s, "GET /p HTTP/1.0\r\n\r\n", " 200 ", "GET /p - 0 ");
    /* Pipelined requests on one connection, and requests one by one. */
    assert_answer(s, POST "Content-Length: 3\r\nCookie: a=b; c=d\r\n\r\nabc" GET "X: a\r\n\r\n" HIDDEN,
        "POST /p - 3 abc", "GET /p - 0 ", "GET /hidden - 0 ");
    http_server_stop(s);
#undef HIDDEN
#undef POST
#undef GET
}

static void test_token(void **state)
{
    struct http_server *s = start(
        (struct http_options){.token = "secret", .token_prefix = "/api", .public_path = "/api/health"});
    assert_answer(s, "GET /api/x HTTP/1.1\r\n" END, "HTTP/1.1 401", "WWW-Authenticate: Bearer");
    assert_answer(s, "GET /api/x HTTP/1.1\r\nAuthorization: Bearer secre\r\n" END, "HTTP/1.1 401");
    assert_answer(s, "GET /%61pi/x HTTP/1.1\r\n" END, "HTTP/1.1 401");
    assert_answer(s, "GET /api/x HTTP/1.1\r\nAuthorization: Bearer secret\r\n" END, "HTTP/1.1 200");
    assert_answer(s, "GET /api/health HTTP/1.1\r\n" END, "HTTP/1.1 200");
    assert_answer(s, "GET /page HTTP/1.1\r\n" END, "HTTP/1.1 200");
    http_server_stop(s);
}

static void test_uploads(void **state)
{
    struct http_server *s = start((struct http_options){
        .max_body_bytes = 4, .upload_path = "/up", .upload_dir = "/tmp", .max_upload_bytes = 100});
    assert_answer(s, "POST /up HTTP/1.1\r\nContent-Length: 11\r\n" END "hello world", "POST /up - 0 file");
    assert_answer(s, "POST /up HTTP/1.1\r\nContent-Length: 101\r\nExpect: 100-continue\r\n" END, "HTTP/1.1 413");
    http_server_stop(s);
}

/* Checks that unread answers are limited; small ones get through. */
static void test_waiting_answers(void **state)
{
    enum { PATIENCE = 100 };
    struct http_server *s = start((struct http_options){.max_waiting_bytes = 40 << 20});
    int held[PATIENCE], n, i;
    const char *large = "GET /noise/20000000 HTTP/1.1\r\n" END;
    for (n = 0; n < PATIENCE && !is_answered(s, large, "HTTP/1.1 503");
         n++) { /* two wait by then, whenever they were made */
        held[n] = dial(s);
        send(held[n], large, strlen(large), MSG_NOSIGNAL);
        usleep(100000);
    }
    assert_in_range(n, 2, PATIENCE - 1);
    assert_answer(s, "GET /small HTTP/1.1\r\n" END, "HTTP/1.1 200");
    for (i = 0; i < n; i++)
        close(held[i]);
    for (i = 0; i < PATIENCE && !is_answered(s, large, "HTTP/1.1 200");
         i++) /* memory of answers to clients that left is freed */
        usleep(100000);
    assert_true(i < PATIENCE);
    http_server_stop(s);
}

/* Checks that many waiting answers are kept packed, and are read unchanged. */
static void test_answers_that_wait_packed(void **state)
{
    enum { WAIT = 8, BYTES = 20000000 };
    struct http_server *s = start((struct http_options){.max_waiting_bytes = 40 << 20});
    const char *numbers = "GET /numbers/20000000 HTTP/1.1\r\n" END;
    struct text expected = {.fd = -1};
    int held[WAIT];
    put_bytes(&expected, BYTES, false);
    for (int i = 0; i < WAIT; i++) {
        char first;
        held[i] = dial(s);
        send(held[i], numbers, strlen(numbers), MSG_NOSIGNAL);
        assert_int_equal(recv(held[i], &first, 1, MSG_PEEK), 1); /* answer received */
    }
    for (int i = 0; i < WAIT; i++) {
        struct text t = {.fd = -1};
        for (ssize_t n; (n = recv(held[i], text_room(&t, 65536), 65536, 0)) > 0;)
            t.n += (size_t)n;
        close(held[i]);
        const char *body = strstr(text_cstr(&t), "\r\n\r\n");
        assert_non_null(body);
        assert_non_null(strstr(t.v, "HTTP/1.1 200"));
        assert_non_null(strstr(t.v, "Content-Length: 20000000\r\n"));
        assert_int_equal(t.v + t.n - (body + 4), BYTES);
        assert_memory_equal(body + 4, expected.v, BYTES);
        text_fini(&t);
    }
    text_fini(&expected);
    http_server_stop(s);
}

static char trickled[1 << 16];
/* Seconds until the server ends the connection of a client that sends `text` byte by byte, over and over, or reads
 * little by little. */
static double trickle(const struct http_server *s, const char *head, const char *text, size_t read_bytes)
{
    int fd = dial(s);
    struct timespec begin, now;
    double seconds;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    assert_int_equal(send(fd, head, strlen(head), MSG_NOSIGNAL), (ssize_t)strlen(head));
    for (size_t i = 0;; i++) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        seconds = (double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) / 1e9;
        bool ended = text
            ? send(fd, &text[i % strlen(text)], 1, MSG_NOSIGNAL) != 1 || recv(fd, trickled, 1, MSG_DONTWAIT) == 0
            : recv(fd, trickled, read_bytes, 0) <= 0;
        if (ended || seconds > 30)
            break;
        usleep(50000);
    }
    close(fd);
    return seconds;
}

static void trickled_upload(const struct http_server *s)
{
    const char *head = "POST /up HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30\r\n\r\n";
    char answer[1024] = "";
    int fd = dial(s);
    send(fd, head, strlen(head), MSG_NOSIGNAL);
    for (int i = 0; i < 30; i++) { /* longer than the patience */
        assert_int_equal(send(fd, "x", 1, MSG_NOSIGNAL), 1);
        usleep(100000);
    }
    assert_true(recv(fd, answer, sizeof answer - 1, 0) > 0);
    assert_non_null(strstr(answer, "HTTP/1.1 200"));
    close(fd);
    fd = dial(s);
    send(fd, head, strlen(head), MSG_NOSIGNAL);
    assert_true(recv(fd, answer, sizeof answer, 0) <= 0);
    close(fd);
}

/* Clients that trickle cannot hold their connection, whatever they trickle. */
static void test_tricklers(void **state)
{
    struct http_server *s = start((struct http_options){.timeout_s = 2,
        .slowest_bytes_per_s = 10000000,
        .upload_path = "/up",
        .upload_dir = "/tmp",
        .max_upload_bytes = 100});
    assert_in_range(
        (uint64_t)(trickle(s, "GET / HTTP/1.1\r\nHost: localhost\r\n", "X-Slow: 1\r\n", 0) * 1000), 1900, 10000);
    assert_in_range(
        (uint64_t)(trickle(s, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n", "body", 0) *
            1000),
        1900, 10000);
    assert_in_range(
        (uint64_t)(trickle(s, "GET /large/50000000 HTTP/1.1\r\nHost: localhost\r\n\r\n", NULL, sizeof trickled) * 1000),
        6000, 25000);
    /* An upload goes on as long as bytes come, and ends when none do any more. */
    trickled_upload(s);
    /* A handler may take longer than the patience with clients, and so may one that works in good time. */
    int fd = dial(s), before = atomic_load(&in_handler);
    const char *request = "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n";
    send(fd, request, strlen(request), MSG_NOSIGNAL);
    usleep(3500000);
    char byte;
    assert_int_equal(atomic_load(&in_handler), before + 1);
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    close(fd);
    http_server_stop(s);
}

/* A POST of so many bytes, of which `sent` are in it. free() it. */
static char *post_of(size_t bytes, size_t sent)
{
    struct text t = {.fd = -1};
    text_printf(&t, "POST /p HTTP/1.1\r\nContent-Length: %zu\r\n" END, bytes);
    text_fill(&t, 'x', sent);
    return text_take(&t);
}

/* Checks the limit of all bodies; a single one, and small ones, get what they need. */
static void test_bodies_of_all(void **state)
{
    struct http_server *s = start((struct http_options){.max_body_bytes = 16 << 20, .max_bodies_bytes = 3 << 20});
    char *half = post_of(6 << 20, 5 << 20), *large = post_of(2 << 20, 2 << 20), *small = post_of(1000, 1000),
         *alone = post_of(5 << 20, 5 << 20);
    assert_answer(s, alone, "HTTP/1.1 200");
    int fd = -1;
    bool refused = false, taken = false;
    /* The first sender's body has to be read before the second one comes: else it is the one that is refused. */
    for (int i = 1; i <= 20 && !refused; i++) {
        if (fd >= 0)
            close(fd);
        fd = dial(s);
        assert_int_equal(send(fd, half, strlen(half), MSG_NOSIGNAL), (ssize_t)strlen(half));
        usleep(50000 * (useconds_t)i);
        char *answer = ask(s, large);
        refused = strstr(answer, "HTTP/1.1 503") && strstr(answer, "Retry-After: 1\r\n");
        free(answer);
    }
    assert_true(refused);
    assert_answer(s, small, "HTTP/1.1 200");
    close(fd);
    for (int i = 0; i < 200 && !taken; i++, usleep(50000)) {
        char *answer = ask(s, large);
        taken = strstr(answer, "HTTP/1.1 200");
        free(answer);
    }
    assert_true(taken);
    free(half);
    free(large);
    free(small);
    free(alone);
    http_server_stop(s);
}

/* Checks the limit of memory held by handlers; a single one, and small ones, get what they need. */
static void test_held_by_all(void **state)
{
    struct http_server *s = start((struct http_options){.max_held_bytes = 10 << 20});
    const char *holds = "GET /hold/12000000 HTTP/1.1\r\nHost: localhost\r\n\r\n",
               *large = "GET /take/8000000 HTTP/1.1\r\n" END, *huge = "GET /take/20000000 HTTP/1.1\r\n" END;
    int before = atomic_load(&in_handler);
    assert_answer(s, huge, "HTTP/1.1 200");
    int fd = dial(s);
    send(fd, holds, strlen(holds), MSG_NOSIGNAL);
    while (atomic_load(&in_handler) < before + 1)
        usleep(1000);
    usleep(50000);
    assert_answer(s, large, "HTTP/1.1 503", "Retry-After: 1");
    assert_answer(s, "GET /take/900000 HTTP/1.1\r\n" END, "HTTP/1.1 200");
    close(fd);
    for (int i = 0; i < 100 && !is_answered(s, large, "HTTP/1.1 200"); i++)
        usleep(100000);
    assert_answer(s, large, "HTTP/1.1 200");
    http_server_stop(s);
}

/* Somebody who watches the server must not take one that is busy for a dead one. */
static bool is_small(struct http_request *q)
{
    return !strcmp(arena_strdup(q->arena, q->path), "/small");
}

/* Checks small requests while all places for slow ones are taken, and more of them wait. */
static void test_small_while_all_wait(void **state)
{
    enum { WAITING = 8 };
    struct http_server *s = start(
        (struct http_options){.max_handlers = 2, .public_path = "/health", .is_small = is_small});
    const char *request = "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int held[WAITING], before = atomic_load(&in_handler);
    struct timespec begin, end;
    for (int i = 0; i < WAITING; i++) {
        held[i] = dial(s);
        send(held[i], request, strlen(request), MSG_NOSIGNAL);
    }
    while (atomic_load(&in_handler) < before + 2)
        usleep(1000);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    assert_answer(s, "GET /health HTTP/1.1\r\n" END, "HTTP/1.1 200");
    assert_answer(s, "GET /small HTTP/1.1\r\n" END, "HTTP/1.1 200");
    clock_gettime(CLOCK_MONOTONIC, &end);
    assert_in_range(end.tv_sec - begin.tv_sec, 0, 2); /* waits of the others last 20 s */
    for (int i = 0; i < WAITING; i++)
        close(held[i]);
    http_server_stop(s);
}

/* Checks that slow uploads, more than there are places for anything, block no other request. */
static void test_uploads_have_places_of_their_own(void **state)
{
    enum { UPLOADS = 8 };
    struct http_server *s = start((struct http_options){
        .max_handlers = 2, .upload_path = "/wait", .upload_dir = "/tmp", .max_upload_bytes = 100});
    const char *request = "POST /wait HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx";
    int held[UPLOADS], before = atomic_load(&in_handler);
    for (int i = 0; i < UPLOADS; i++) {
        held[i] = dial(s);
        send(held[i], request, strlen(request), MSG_NOSIGNAL);
    }
    while (atomic_load(&in_handler) < before + 2)
        usleep(1000);
    assert_answer(s, "GET /other HTTP/1.1\r\n" END, "HTTP/1.1 200");
    assert_int_equal(atomic_load(&in_handler), before + 2); /* running handlers */
    for (int i = 0; i < UPLOADS; i++)
        close(held[i]);
    http_server_stop(s);
}

static void *stop(void *s)
{
    http_server_stop(s);
    return NULL;
}

static void test_gone(void **state)
{
    struct http_server *s = start((struct http_options){.max_handlers = 2, .is_small = is_small});
    const char *request = "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n";
    atomic_store(&gone_seen, 0);
    for (int i = 0; i < 6; i++) { /* number above those that can run at once */
        int fd = dial(s);
        send(fd, request, strlen(request), MSG_NOSIGNAL);
        close(fd);
    }
    assert_answer(s, "GET /after HTTP/1.1\r\n" END, "HTTP/1.1 200");
    for (int i = 0; i < 10000 && atomic_load(&gone_seen) < 6; i++) /* waits for each */
        usleep(1000);
    assert_int_equal(atomic_load(&gone_seen), 6);
    /* A stop ends handlers that run, and the waiting of one that had no place. */
    enum { ASKED = 3 };
    int before = atomic_load(&in_handler), fd[ASKED];
    for (int i = 0; i < ASKED; i++) {
        fd[i] = dial(s);
        send(fd[i], request, strlen(request), MSG_NOSIGNAL);
    }
    for (int i = 0; i < 1000 && atomic_load(&in_handler) < before + 2; i++)
        usleep(1000);
    usleep(50000);
    pthread_t stopper;
    pthread_create(&stopper, NULL, stop, s);
    pthread_join(stopper, NULL);
    for (int i = 0; i < ASKED; i++)
        close(fd[i]);
}

static void test_handler_time(void **state)
{
    struct http_server *s = start((struct http_options){.max_handler_s = 1});
    assert_answer(s, "GET /wait HTTP/1.1\r\n" END, "HTTP/1.1 200", "over");
    http_server_stop(s);
}

static void test_wrong_addresses(void **state)
{
    static const char *const wrong[] = {"", "nonsense", "127.0.0.1", "127.0.0.1:", ":80", "127.0.0.1:http",
        "127.0.0.1:99999", "no.such.host.invalid:0"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct http_server *s;
        struct err e = {0};
        assert_int_not_equal(http_server_start(&(struct http_options){.listen = wrong[i]}, handle, NULL, &s, &e), 0);
        assert_int_not_equal(strlen(e.text), 0);
    }
    struct http_server *s = start((struct http_options){0}), *second;
    struct err e = {0};
    assert_int_equal(http_server_start(&(struct http_options){.listen = http_server_address(s) + strlen("http://")},
                         handle, NULL, &second, &e),
        ERR_IO);
    http_server_stop(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_names_of_others),
        cmocka_unit_test(test_pages_of_others),
        cmocka_unit_test(test_allowed_origins),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_malformed_heads),
        cmocka_unit_test(test_token),
        cmocka_unit_test(test_uploads),
        cmocka_unit_test(test_waiting_answers),
        cmocka_unit_test(test_answers_that_wait_packed),
        cmocka_unit_test(test_tricklers),
        cmocka_unit_test(test_bodies_of_all),
        cmocka_unit_test(test_held_by_all),
        cmocka_unit_test(test_small_while_all_wait),
        cmocka_unit_test(test_uploads_have_places_of_their_own),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_handler_time),
        cmocka_unit_test(test_wrong_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
