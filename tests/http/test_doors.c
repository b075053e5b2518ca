/* SPDX-License-Identifier: MIT */
/* Bodies in chunks, and connections beyond the limit. */
#include <netinet/in.h>
#include <netinet/tcp.h>

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
            usleep(20000); /* most likely packets of their own; the answer is right in any case */
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

/* What comes back for it, sent in pieces as a network may deliver it. */
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
        for (uint32_t before = test_random(&dice, 3); before; before--) /* on the same connection */
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

/* Connections beyond the limit wait, as many as there may be; who asks whether the server is up is answered. */
static void test_connections_beyond_the_limit(void **state)
{
    enum { MOST = 2, WAITING = 200 /* more than may wait */ };
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
    /* One connection, one answer: it makes room for the next one. */
    for (int i = 0; i < 3; i++)
        assert_answer(s, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200", "Connection: close");
    assert_int_equal(atomic_load(&in_handler), before + MOST);
    for (int i = 0; i < MOST; i++)
        close(in[i]);
    for (int i = 0; i < WAITING; i++) {
        char answer[1024] = "";
        assert_true(recv(held[i], answer, sizeof answer - 1, MSG_WAITALL) > 0);
        answered += strstr(answer, "HTTP/1.1 200") != NULL;
        refused += strstr(answer, "HTTP/1.1 503") && strstr(answer, "Retry-After: ");
        close(held[i]);
    }
    assert_int_equal(answered + refused, WAITING);
    assert_in_range(answered, 192, WAITING);
    for (int i = 0; i < 100 && !has_room(s); i++)
        usleep(100000);
    assert_true(has_room(s));
    http_server_stop(s);
}

/* Who waits for a place and hangs up, or waits when the server stops, is let go. */
static void test_waiting_for_a_connection_ends(void **state)
{
    struct http_server *s = start((struct http_options){.max_connections = 1, .public_path = "/health"});
    const char *wait = "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int before = atomic_load(&in_handler), in = dial(s), gone = dial(s), waits = dial(s);
    send(in, wait, strlen(wait), MSG_NOSIGNAL);
    while (atomic_load(&in_handler) < before + 1)
        usleep(1000);
    send(gone, wait, strlen(wait), MSG_NOSIGNAL);
    close(gone);
    send(waits, wait, strlen(wait), MSG_NOSIGNAL);
    assert_answer(s, "GET /health HTTP/1.1\r\n" END, "HTTP/1.1 200");
    http_server_stop(s); /* else it would wait for them */
    assert_int_equal(atomic_load(&in_handler), before + 1);
    close(in);
    close(waits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_malformed_chunks),
        cmocka_unit_test(test_nothing_behind_chunks),
        cmocka_unit_test(test_chunks_at_random),
        cmocka_unit_test(test_connections_beyond_the_limit),
        cmocka_unit_test(test_waiting_for_a_connection_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
