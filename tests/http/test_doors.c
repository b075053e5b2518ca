/* SPDX-License-Identifier: MIT */
/* Bodies in chunks, connections beyond the limit, and uploads that wait. */
#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include "server.h"

#define CHUNKED "POST /p HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
#define LAST "POST /p HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" END
#define BEFORE "POST /q HTTP/1.1\r\nHost: localhost\r\nCookie: a=b; c=d\r\nContent-Length: 3\r\n\r\nabc"
#define HIDDEN "GET /hidden HTTP/1.1\r\n" END

/* RFC 9112, section 7.1: lines between chunks end with CR LF. */
static void test_malformed_chunks(void **state)
{
    static const char *const wrong[] = {
        "3\nabc\r\n0\r\n\r\n",
        "3;x=y\nabc\r\n0\r\n\r\n",
        "3\r\nabc\n3\r\ndef\r\n0\r\n\r\n",
        "3\r\nabc\r\n3\ndef\r\n0\r\n\r\n",
        "4\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n",
        "3\r\nabc\r\n0\r\nX: a\n\r\n",
        "3\r\nabc\r\n0\r\nX: a\nY: b\r\n\r\n",
        "3\r\nabc\r\n0\r\nX: a\r\n\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "x\r\nabc\r\n0\r\n\r\n",
    };
    struct http_server *s = start((struct http_options){0});
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct text t = {.fd = -1};
        text_printf(&t, "%s%s%s", CHUNKED, wrong[i], HIDDEN);
        char *answer = ask(s, text_cstr(&t));
        if (strncmp(answer, "HTTP/1.1 400", 12) || strstr(answer, "/hidden"))
            fail_msg("not refused: %s\n%s", wrong[i], answer);
        free(answer);
        text_fini(&t);
    }
    http_server_stop(s);
}

/* However lines are spread over packets, and where the library does not show them, nothing hides behind a body. */
static void test_nothing_behind_chunks(void **state)
{
    static const char *const bodies[][2] = {
        {"3\r\nabc", "\n0\r\n\r\n" HIDDEN},
        {"3\r\nabc\r\n0\n", "\r\n" HIDDEN},
        {"3\r\nabc\r\n0\r\n", "\n" HIDDEN},
        {"3\r\nabc\r\n0\r\n\n", HIDDEN},
        {"3\n", "abc\r\n0\r\n\r\n" HIDDEN},
    };
    struct http_server *s = start((struct http_options){0});
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        char answer[4096] = "";
        size_t n = 0;
        int fd = dial(s);
        send(fd, CHUNKED, strlen(CHUNKED), MSG_NOSIGNAL);
        for (int k = 0; k < 2; k++) {
            usleep(20000); /* pause, most likely packets of their own; the answer is right in any case */
            send(fd, bodies[i][k], strlen(bodies[i][k]), MSG_NOSIGNAL);
        }
        for (ssize_t more; (more = recv(fd, answer + n, sizeof answer - 1 - n, 0)) > 0;)
            n += (size_t)more;
        assert_null(strstr(answer, "/hidden"));
        close(fd);
    }
    http_server_stop(s);
}

/* Frames the body in chunks as a sender may do it. */
static void put_chunks(struct text *sent, const struct text *body, size_t most, uint64_t *dice)
{
    for (size_t i = 0, k; i < body->n; i += k) {
        k = 1 + test_random(dice, (uint32_t)most);
        k = k < body->n - i ? k : body->n - i;
        text_printf(sent, test_random(dice, 2) ? "%zx\r\n" : "00%zX;name=value\r\n", k);
        text_put(sent, body->v + i, k);
        text_puts(sent, "\r\n");
    }
    text_puts(sent, "0\r\n\r\n");
}

/* Returns the answer to a query sent in pieces as a network may deliver it. */
static char *ask_in_pieces(const struct http_server *s, const struct text *sent, size_t most, uint64_t *dice)
{
    struct text got = {.fd = -1};
    int fd = dial(s);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    for (size_t i = 0, k; i < sent->n; i += k) {
        k = 1 + test_random(dice, (uint32_t)most);
        k = k < sent->n - i ? k : sent->n - i;
        assert_int_equal(send(fd, sent->v + i, k, MSG_NOSIGNAL), (ssize_t)k);
    }
    for (ssize_t more; (more = recv(fd, text_room(&got, 65536), 65536, 0)) > 0;)
        got.n += (size_t)more;
    close(fd);
    return text_take(&got);
}

/* A body arrives as it is, however it is framed and delivered. */
static void test_chunks_at_random(void **state)
{
    enum { ROUNDS = 200, MOST = 100000 };
    uint64_t dice = test_seed(7);
    struct http_server *s = start((struct http_options){0});
    for (int round = 0; round < ROUNDS; round++) {
        struct text body = {.fd = -1}, sent = {.fd = -1};
        size_t n = test_random(&dice, round % 2 ? 40 : MOST);
        for (size_t i = 0; i < n; i++)
            text_putc(&body, "\r\n0;a"[test_random(&dice, 5)]);
        for (uint32_t before = test_random(&dice, 3); before; before--) /* earlier queries on the same connection */
            text_puts(&sent, BEFORE);
        text_puts(&sent, LAST);
        put_chunks(&sent, &body, round % 3 ? 10 : 30000, &dice);
        char *answer = ask_in_pieces(s, &sent, round % 5 ? 5000 : 100, &dice), line[60];
        int k = snprintf(line, sizeof line, "\r\n\r\nPOST /p - %zu ", n);
        const char *content = strstr(answer, line);
        if (!content || strcmp(content + k, text_cstr(&body)))
            fail_msg("round %d: %zu bytes: %.300s", round, n, answer);
        free(answer);
        text_fini(&body);
        text_fini(&sent);
    }
    http_server_stop(s);
}

static bool has_room(const struct http_server *s)
{
    return is_answered(s, "GET /p HTTP/1.1\r\n" END, "HTTP/1.1 200");
}

static bool says_once(const char *answer, const char *what)
{
    const char *first = strstr(answer, what);
    return first && !strstr(first + 1, what);
}

/* Checks that connections beyond the limit wait, up to a number; health checks are answered. */
static void test_connections_beyond_the_limit(void **state)
{
    enum { MOST = 2, WAITING = 200 /* number above the limit of waiting ones */ };
    struct http_server *s = start((struct http_options){.max_connections = MOST, .public_path = "/health"});
    const char *wait = "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n", *request = "GET /p HTTP/1.1\r\n" END;
    int in[MOST], held[WAITING], before = atomic_load(&in_handler), answered = 0, refused = 0;
    for (int i = 0; i < MOST; i++) {
        in[i] = dial(s);
        send(in[i], wait, strlen(wait), MSG_NOSIGNAL);
    }
    while (atomic_load(&in_handler) < before + MOST)
        usleep(1000);
    for (int i = 0; i < WAITING; i++) {
        held[i] = dial(s);
        send(held[i], request, strlen(request), MSG_NOSIGNAL);
    }
    /* Single connection, single answer: it makes room for the next one. */
    for (int i = 0; i < 3; i++)
        assert_answer(s, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200", "Connection: close");
    assert_int_equal(atomic_load(&in_handler), before + MOST);
    for (int i = 0; i < MOST; i++)
        close(in[i]);
    for (int i = 0; i < WAITING; i++) {
        char answer[1024] = "";
        assert_true(recv(held[i], answer, sizeof answer - 1, MSG_WAITALL) > 0);
        answered += strstr(answer, "HTTP/1.1 200") != NULL;
        refused += strstr(answer, "HTTP/1.1 503") && says_once(answer, "Retry-After: ");
        close(held[i]);
    }
    assert_int_equal(answered + refused, WAITING);
    assert_in_range(answered, 192, WAITING);
    for (int i = 0; i < 100 && !has_room(s); i++)
        usleep(100000);
    assert_true(has_room(s));
    http_server_stop(s);
}

/* The answer's status, of a client that sends nothing more. */
static int status_of(int fd)
{
    char answer[1024] = "";
    int status = 0;
    assert_true(recv(fd, answer, sizeof answer - 1, MSG_WAITALL) > 0);
    assert_int_equal(sscanf(answer, "HTTP/1.1 %d", &status), 1);
    close(fd);
    return status;
}

static void fill_places(const struct http_server *s, int *in, int n)
{
    const char *wait = "POST /wait HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx";
    int before = atomic_load(&in_handler);
    for (int i = 0; i < n; i++) {
        in[i] = dial(s);
        send(in[i], wait, strlen(wait), MSG_NOSIGNAL);
    }
    while (atomic_load(&in_handler) < before + n)
        usleep(1000);
}

/* Clients that wait for a place and hang up leave it to others, also where they have sent more than is read of them.
 * The time that others may wait is longer than that of this test. */
static void test_hung_up_while_waiting_for_a_connection(void **state)
{
    enum {
        WAITING = 200 /* above the limit */
        ,
        BODY = 100000 /* size above what is read before a place is free */
    };
    struct http_server *s = start((struct http_options){.max_connections = 1, .timeout_s = 1200});
    struct text t = {.fd = -1};
    int in, held[WAITING];
    text_printf(&t, "POST /p HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", 2 * BODY);
    memset(text_room(&t, BODY), 'x', BODY);
    t.n += BODY;
    fill_places(s, &in, 1);
    for (int i = 0; i < WAITING; i++) {
        held[i] = dial(s);
        send(held[i], t.v, t.n, MSG_NOSIGNAL | MSG_DONTWAIT);
        shutdown(held[i], SHUT_WR);
    }
    for (int i = 0; i < WAITING; i++)
        close(held[i]);
    text_fini(&t);
    /* A newcomer is refused until those before it are known to be gone, then waits, and has the place. */
    const char *request = "GET /p HTTP/1.1\r\n" END;
    int fd;
    for (bool waits = false; !waits;) {
        fd = dial(s);
        send(fd, request, strlen(request), MSG_NOSIGNAL);
        waits = poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 2000) == 0;
        if (!waits)
            assert_int_equal(status_of(fd), 503);
    }
    close(in);
    assert_int_equal(status_of(fd), 200);
    http_server_stop(s);
}

/* A stop does not wait for clients that wait for a place. */
static void test_stop_while_some_wait_for_a_connection(void **state)
{
    struct http_server *s = start(
        (struct http_options){.max_connections = 1, .timeout_s = 1200, .public_path = "/health"});
    const char *wait = "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int before = atomic_load(&in_handler), in, waits;
    fill_places(s, &in, 1);
    waits = dial(s);
    send(waits, wait, strlen(wait), MSG_NOSIGNAL);
    assert_answer(s, "GET /health HTTP/1.1\r\n" END, "HTTP/1.1 200");
    http_server_stop(s);
    assert_int_equal(atomic_load(&in_handler), before + 1);
    close(in);
    close(waits);
}

static unsigned count_files(const char *directory)
{
    DIR *d = opendir(directory);
    unsigned n = 0;
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(d);
    return n;
}

/* Uploads wait for a place with their files on the disk: few may, and only as long as their clients do. */
static void test_uploads_that_wait(void **state)
{
    enum { PLACES = 2, MAY_WAIT = 16, MORE = 4 };
    char dir[] = "/tmp/weft-uploads-XXXXXX";
    assert_non_null(mkdtemp(dir));
    struct http_server *s = start(
        (struct http_options){.upload_path = "/wait", .upload_dir = dir, .max_upload_bytes = 100});
    const char *request = "POST /wait HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx";
    int in[PLACES], held[MAY_WAIT + MORE], before = atomic_load(&in_handler);
    struct pollfd p[MAY_WAIT + MORE];
    fill_places(s, in, PLACES);
    for (int i = 0; i < MAY_WAIT + MORE; i++) {
        held[i] = dial(s);
        p[i] = (struct pollfd){.fd = held[i], .events = POLLIN};
        send(held[i], request, strlen(request), MSG_NOSIGNAL);
    }
    for (int refused = 0; refused < MORE;) {
        assert_true(poll(p, MAY_WAIT + MORE, -1) > 0);
        for (int i = 0; i < MAY_WAIT + MORE; i++)
            if (p[i].fd >= 0 && p[i].revents) {
                assert_int_equal(status_of(held[i]), 503);
                p[i].fd = held[i] = -1;
                refused++;
            }
    }
    for (int i = 0; i < MAY_WAIT + MORE; i++)
        if (held[i] >= 0)
            shutdown(held[i], SHUT_WR);
    for (int i = 0; i < MAY_WAIT + MORE; i++)
        if (held[i] >= 0)
            assert_int_equal(status_of(held[i]), 503);
    assert_int_equal(atomic_load(&in_handler), before + PLACES);
    while (count_files(dir) > PLACES)
        usleep(1000);
    for (int i = 0; i < PLACES; i++)
        close(in[i]);
    http_server_stop(s);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_malformed_chunks),
        cmocka_unit_test(test_nothing_behind_chunks),
        cmocka_unit_test(test_chunks_at_random),
        cmocka_unit_test(test_connections_beyond_the_limit),
        cmocka_unit_test(test_hung_up_while_waiting_for_a_connection),
        cmocka_unit_test(test_stop_while_some_wait_for_a_connection),
        cmocka_unit_test(test_uploads_that_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
