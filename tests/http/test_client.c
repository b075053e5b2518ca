/* SPDX-License-Identifier: MIT */
/* The HTTP client against the HTTP server, and against sockets that do what no server should. */
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/time.h"
#include "http/client.h"
#include "http/http.h"

static struct http_server *server;
static struct http_client *client;
static atomic_int waiting, told_gone;

/* "/large/N": N bytes; "/wait": until the client has gone; else method, type and body. */
static void handle(void *arg, struct http_request *q)
{
    struct text t = {.fd = -1};
    if (!strncmp(q->path, "/large/", 7)) {
        text_fill(&t, 'a', (size_t)atol(q->path + 7));
    } else if (!strcmp(q->path, "/wait")) {
        atomic_fetch_add(&waiting, 1);
        for (int i = 0; i < 30000 && !http_gone(q); i++)
            usleep(1000);
        atomic_fetch_add(&told_gone, http_gone(q));
    } else if (!strcmp(q->path, "/warned")) {
        const char *via = http_request_header(q, "Via");
        http_header(q, "Warning", via ? via : "none");
    } else {
        text_printf(&t, "%s %s %s", q->method, *q->content_type ? q->content_type : "-", q->body);
    }
    http_reply(q, strcmp(q->path, "/teapot") ? 200 : 418, "text/plain", &t);
}

static int start(void **state)
{
    struct http_options o = {
        .listen = "127.0.0.1:0", .token = "secret", .token_prefix = "/guarded", .max_handlers = 300};
    struct http_client_options c = {.max_per_host = 40, .max_held_bytes = 8 << 20};
    struct err e = {0};
    return http_server_start(&o, handle, NULL, &server, &e) || http_client_start(&c, &client, &e);
}

static int stop(void **state)
{
    http_client_stop(client);
    http_server_stop(server);
    return 0;
}

static int64_t soon(int64_t seconds)
{
    return time_monotonic_ns() + seconds * INT64_C(1000000000);
}

static struct http_fetch get(const char *path, char url[200])
{
    snprintf(url, 200, "%s%s", http_server_address(server), path);
    return (struct http_fetch){.method = "GET", .url = url};
}

static void ask_one(struct http_fetch *f, struct http_gather *g)
{
    http_gather_begin(g, client);
    http_gather_add(g, f);
    assert_true(http_gather_wait(g, soon(60)));
    assert_true(atomic_load(&f->done));
}

static void test_questions_and_answers(void **state)
{
    char url[200];
    struct http_gather g;
    struct http_fetch f = get("/x", url);
    ask_one(&f, &g);
    assert_int_equal(f.error.code, 0);
    assert_int_equal(f.status, 200);
    assert_string_equal(text_cstr(&f.body), "GET - ");
    http_gather_end(&g);
    f = get("/x", url);
    f.method = "POST";
    f.json = "{\"a\":1}";
    f.json_bytes = 7;
    ask_one(&f, &g);
    assert_string_equal(text_cstr(&f.body), "POST application/json {\"a\":1}");
    http_gather_end(&g);
    f = get("/teapot", url);
    f.method = "DELETE";
    ask_one(&f, &g);
    assert_int_equal(f.status, 418);
    assert_string_equal(text_cstr(&f.body), "DELETE - ");
    http_gather_end(&g);
}

static void test_headers(void **state)
{
    char url[200], header[1000] = "Via: ", long_one[600];
    struct http_gather g;
    struct http_fetch f = get("/x", url);
    ask_one(&f, &g);
    assert_string_equal(f.warning, "");
    http_gather_end(&g);
    f = get("/warned", url);
    f.header = "Via: 1.1 here";
    ask_one(&f, &g);
    assert_string_equal(f.warning, "1.1 here");
    http_gather_end(&g);
    memset(long_one, 'v', sizeof long_one);
    memcpy(header + 5, long_one, sizeof long_one);
    f = get("/warned", url);
    f.header = header;
    ask_one(&f, &g);
    assert_int_equal(strlen(f.warning), sizeof f.warning - 1);
    assert_memory_equal(f.warning, long_one, sizeof f.warning - 1);
    http_gather_end(&g);
}

static void test_token(void **state)
{
    char url[200];
    struct http_gather g;
    struct http_fetch f = get("/guarded", url);
    ask_one(&f, &g);
    assert_int_equal(f.status, 401);
    http_gather_end(&g);
    f = get("/guarded", url);
    f.token = "secret";
    ask_one(&f, &g);
    assert_int_equal(f.status, 200);
    http_gather_end(&g);
}

enum { MANY = 300 };

static void *ask_many(void *arg)
{
    struct http_gather g;
    static _Thread_local struct http_fetch f[MANY];
    static _Thread_local char url[MANY][200];
    size_t good = 0;
    http_gather_begin(&g, client);
    for (size_t i = 0; i < MANY; i++) {
        char path[40];
        snprintf(path, sizeof path, "/large/%zu", i);
        f[i] = get(path, url[i]);
        http_gather_add(&g, &f[i]);
    }
    if (http_gather_wait(&g, soon(60)))
        for (size_t i = 0; i < MANY; i++)
            good += !f[i].error.code && f[i].body.n == i;
    http_gather_end(&g);
    return (void *)good;
}

/* Checks that a single thread of the client serves them all. */
static void test_many_at_once(void **state)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_many, NULL), 0);
    for (int i = 0; i < 4; i++) {
        void *good;
        pthread_join(threads[i], &good);
        assert_int_equal((size_t)good, MANY);
    }
}

static void test_deadline(void **state)
{
    char url[200];
    struct http_gather g;
    struct http_fetch f = get("/wait", url);
    f.answer_ms = 200;
    int64_t before = time_monotonic_ns();
    ask_one(&f, &g);
    assert_int_equal(f.error.code, ERR_TIMEOUT);
    assert_string_equal(f.error.text, "no answer in 0.2 s");
    assert_true(time_monotonic_ns() - before >= 190000000);
    http_gather_end(&g);
}

static void test_waiting_ends_and_what_is_given_up_is_cancelled(void **state)
{
    char url[3][200];
    struct http_gather g;
    struct http_fetch f[3];
    int before = atomic_load(&told_gone);
    http_gather_begin(&g, client);
    for (int i = 0; i < 3; i++) {
        f[i] = get(i ? "/wait" : "/x", url[i]);
        http_gather_add(&g, &f[i]);
    }
    while (!atomic_load(&f[0].done) || atomic_load(&waiting) < 2)
        usleep(1000);
    assert_false(http_gather_wait(&g, time_monotonic_ns() + 1000000));
    assert_false(atomic_load(&f[1].done) || atomic_load(&f[2].done));
    http_gather_end(&g);
    for (int i = 0; i < 20000 && atomic_load(&told_gone) < before + 2; i++)
        usleep(1000);
    assert_true(atomic_load(&told_gone) >= before + 2);
}

static void test_limits_of_size(void **state)
{
    char url[6][200];
    struct http_gather g;
    struct http_fetch f[6];
    f[0] = get("/large/5000", url[0]);
    f[0].max_bytes = 4999;
    ask_one(&f[0], &g);
    assert_int_equal(f[0].error.code, ERR_LIMIT);
    http_gather_end(&g);
    /* Limit of the client's memory: some answers are refused, the others are whole. Later ones, too, whatever is held
     * meanwhile. */
    size_t whole = 0, refused = 0;
    struct http_gather others;
    struct http_fetch held[2];
    char held_url[2][200];
    held[0] = get("/large/5000", held_url[0]);
    ask_one(&held[0], &others);
    http_gather_begin(&g, client);
    for (int i = 0; i < 6; i++) {
        f[i] = get("/large/3000000", url[i]);
        http_gather_add(&g, &f[i]);
    }
    assert_true(http_gather_wait(&g, soon(60)));
    for (int i = 0; i < 6; i++) {
        whole += !f[i].error.code && f[i].body.n == 3000000;
        refused += f[i].error.code == ERR_LIMIT;
    }
    http_gather_end(&g);
    http_gather_end(&others);
    assert_int_equal(whole + refused, 6);
    assert_true(whole && refused);
    /* Limit held by other queries: a retry is possible. */
    http_gather_begin(&others, client);
    for (int i = 0; i < 2; i++) {
        held[i] = get("/large/3000000", held_url[i]);
        http_gather_add(&others, &held[i]);
    }
    assert_true(http_gather_wait(&others, soon(60)));
    assert_false(held[0].error.code || held[1].error.code);
    f[0] = get("/large/3000000", url[0]);
    ask_one(&f[0], &g);
    assert_int_equal(f[0].error.code, ERR_BUSY);
    http_gather_end(&g);
    http_gather_end(&others);
    f[0] = get("/large/3000000", url[0]);
    ask_one(&f[0], &g); /* memory of the others is free again */
    assert_int_equal(f[0].error.code, 0);
    http_gather_end(&g);
}

static bool take(void *arg, const char *piece, size_t n)
{
    size_t *taken = arg;
    *taken += n;
    return *taken < 100000;
}

static void test_pieces(void **state)
{
    char url[200];
    struct http_gather g;
    size_t taken = 0;
    struct http_fetch f = get("/large/90000", url);
    f.take = take;
    f.arg = &taken;
    ask_one(&f, &g);
    assert_int_equal(f.error.code, 0);
    assert_int_equal(taken, 90000);
    assert_int_equal(f.body.n, 0);
    http_gather_end(&g);
    taken = 0;
    f = get("/large/50000000", url);
    f.take = take;
    f.arg = &taken;
    ask_one(&f, &g);
    assert_int_equal(f.error.code, ERR_CANCELLED);
    assert_true(taken < 50000000);
    http_gather_end(&g);
}

/* Accepts one connection, writes something, and closes it, or is silent until the client closes it. */
struct rude {
    int fd;
    const char *says;
    bool stays;
    char url[60];
    pthread_t thread;
};

static void *be_rude(void *arg)
{
    struct rude *r = arg;
    char ignored[2000];
    int c = accept(r->fd, NULL, NULL);
    bool said = c >= 0 && read(c, ignored, sizeof ignored) >= 0 && write(c, r->says, strlen(r->says)) >= 0;
    while (said && r->stays && read(c, ignored, sizeof ignored) > 0)
        ;
    if (said)
        shutdown(c, SHUT_RDWR);
    close(c);
    return NULL;
}

static void start_rude(struct rude *r, const char *says)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    r->says = says;
    r->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(r->fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(r->fd, 4), 0);
    getsockname(r->fd, (struct sockaddr *)&a, &n);
    snprintf(r->url, sizeof r->url, "http://127.0.0.1:%d/", ntohs(a.sin_port));
    assert_int_equal(pthread_create(&r->thread, NULL, be_rude, r), 0);
}

static int hold_one(const char *url, bool anew, bool *by_kept)
{
    struct http_gather g;
    struct http_fetch f = {.method = "GET", .url = url, .holds = true, .anew = anew};
    ask_one(&f, &g);
    int its = f.connection;
    f.connection = -1;
    *by_kept = f.by_kept;
    http_gather_end(&g);
    assert_true(its >= 0);
    return its;
}

static void test_connections_that_are_held(void **state)
{
    struct http_options o = {.listen = "127.0.0.1:0"};
    struct http_server *other;
    struct err e = {0};
    bool by_kept;
    assert_int_equal(http_server_start(&o, handle, NULL, &other, &e), 0);
    int first = hold_one(http_server_address(other), false, &by_kept);
    assert_false(by_kept);
    int same = hold_one(http_server_address(other), false, &by_kept);
    assert_true(by_kept);
    int second = hold_one(http_server_address(other), true, &by_kept);
    assert_false(by_kept);
    assert_true(http_connection_lives(first) && http_connection_lives(same) && http_connection_lives(second));
    http_server_stop(other);
    assert_false(http_connection_lives(first) || http_connection_lives(same) || http_connection_lives(second));
    close(first);
    close(same);
    close(second);
}

static void test_rude_servers(void **state)
{
    static const char *const says[] = {"", "garbage\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort"};
    for (size_t i = 0; i < 3; i++) {
        struct rude r = {0};
        struct http_gather g;
        start_rude(&r, says[i]);
        struct http_fetch f = {.method = "GET", .url = r.url};
        ask_one(&f, &g);
        assert_int_equal(f.error.code, ERR_IO);
        http_gather_end(&g);
        pthread_join(r.thread, NULL);
        close(r.fd);
        struct http_fetch nobody = {.method = "GET", .url = r.url};
        ask_one(&nobody, &g);
        assert_string_equal(nobody.error.text, "nobody answers there");
        http_gather_end(&g);
    }
}

/* Checks that announced sizes reserve no memory; many small answers together get no more than the limit. */
static void test_what_is_told_is_not_held(void **state)
{
    enum { TELL = 3, SMALL = 12 };
    char url[200], small_url[SMALL][200];
    struct rude r[TELL];
    struct http_fetch told[TELL], small[SMALL], f = get("/large/900000", url);
    struct http_gather all, g;
    http_gather_begin(&all, client);
    for (int i = 0; i < TELL; i++) {
        r[i].stays = true;
        start_rude(&r[i], "HTTP/1.1 200 OK\r\nContent-Length: 60000000\r\n\r\n[");
        told[i] = (struct http_fetch){.method = "GET", .url = r[i].url};
        http_gather_add(&all, &told[i]);
    }
    while (atomic_load(&all.held) < TELL * (UINT64_C(1) << 20)) /* something has come of each */
        usleep(1000);
    assert_false(http_gather_wait(&all, time_monotonic_ns() + 100000000));
    assert_true(atomic_load(&all.held) <= 6 << 20);
    ask_one(&f, &g);
    assert_int_equal(f.error.code, 0);
    http_gather_end(&g);
    size_t busy = 0;
    http_gather_begin(&g, client);
    for (int i = 0; i < SMALL; i++) {
        small[i] = get("/large/900000", small_url[i]);
        http_gather_add(&g, &small[i]);
    }
    assert_true(http_gather_wait(&g, soon(60)));
    for (int i = 0; i < SMALL; i++)
        busy += small[i].error.code == ERR_BUSY || small[i].error.code == ERR_LIMIT;
    assert_true(busy > 0 && g.most_held <= 10 << 20);
    http_gather_end(&g);
    http_gather_end(&all);
    for (int i = 0; i < TELL; i++) {
        assert_int_equal(told[i].error.code, ERR_CANCELLED);
        pthread_join(r[i].thread, NULL);
        close(r[i].fd);
    }
}

static void test_nothing_but_http(void **state)
{
    struct http_gather g;
    struct http_fetch f = {.method = "GET", .url = "file:///etc/passwd"};
    ask_one(&f, &g);
    assert_true(f.error.code);
    assert_int_equal(f.body.n, 0);
    http_gather_end(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_questions_and_answers),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_token),
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_waiting_ends_and_what_is_given_up_is_cancelled),
        cmocka_unit_test(test_limits_of_size),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_connections_that_are_held),
        cmocka_unit_test(test_rude_servers),
        cmocka_unit_test(test_what_is_told_is_not_held),
        cmocka_unit_test(test_nothing_but_http),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
