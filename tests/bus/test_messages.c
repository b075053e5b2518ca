/* SPDX-License-Identifier: MIT */
/* Questions, answers and news. */
#include <pthread.h>
#include <stdatomic.h>

#include "world.h"

enum { BIG = 10 << 20 };

/* ---- services ---- */

/* Answers with the query reversed. */
static void reverse(void *arg, struct bus_question *q)
{
    uint8_t *back = malloc(q->n + 1);
    for (size_t i = 0; i < q->n; i++)
        back[i] = ((const uint8_t *)q->data)[q->n - 1 - i];
    bus_answer(q, back, q->n, NULL);
    free(back);
}

static void refuse(void *arg, struct bus_question *q)
{
    bus_refuse(q, ERR_UNSUPPORTED, "no such\nquestion\033here");
}

/* Keeps it for the test. */
struct shelf {
    _Atomic(struct bus_question *) q[64];
    atomic_uint n;
};

static void keep(void *arg, struct bus_question *q)
{
    struct shelf *s = arg;
    unsigned i = atomic_fetch_add(&s->n, 1);
    assert_true(i < 64);
    atomic_store(&s->q[i], q);
}

static struct bus_question *taken(struct shelf *s, unsigned i)
{
    eventually(atomic_load(&s->q[i]));
    return atomic_exchange(&s->q[i], NULL);
}

static struct bus_service *serve(struct bus *b, const char *subject, bus_question_handler *handler, void *arg)
{
    struct bus_service *s;
    struct err e = {0};
    if (bus_serve(b, subject, NULL, handler, arg, &s, &e))
        fail_msg("%s", e.text);
    /* Seen by the others once a question of our own has come round. */
    struct bus_reply r;
    struct bus *other = world_open();
    while (bus_ask(other, subject, "", 0, in_ms(50), &r) == ERR_NOTFOUND)
        sleep_ms(1);
    bus_reply_free(&r);
    bus_close(other);
    return s;
}

/* Checks that the broker knows no service for it any more: a query on its way is lost. */
static void assert_gone(struct bus *b, const char *subject)
{
    struct bus_reply r;
    int64_t end = in_ms(20000);
    while (bus_ask(b, subject, "abc", 3, in_ms(100), &r) == ERR_TIMEOUT && time_monotonic_ns() < end)
        ;
    assert_int_equal(r.code, ERR_NOTFOUND);
}

/* ---- questions ---- */

static void test_answer(void **state)
{
    world_need();
    struct bus *a = world_open(), *b = world_open();
    struct bus_service *s = serve(b, "node.b", reverse, NULL);
    struct bus_reply r;
    assert_true(bus_connected(a));
    assert_int_equal(bus_ask(a, "node.b", "abc", 3, in_ms(5000), &r), 0);
    assert_int_equal(r.n, 3);
    assert_memory_equal(r.data, "cba", 3);
    assert_string_equal(r.text, "");
    assert_int_equal(r.sent_messages, 1);
    assert_int_equal(r.received_messages, 1);
    assert_true(r.sent_bytes >= 3 && r.sent_bytes < 100);
    bus_reply_free(&r);
    assert_int_equal(bus_ask(a, "node.b", NULL, 0, in_ms(5000), &r), 0);
    assert_int_equal(r.n, 0);
    assert_null(r.data);
    bus_stop(s);
    bus_close(a);
    bus_close(b);
}

static void test_many_at_once(void **state)
{
    enum { NODES = 8, EACH = 100 };
    world_need();
    struct bus *a = world_open(), *b[NODES];
    struct bus_service *s[NODES];
    char subject[32];
    for (int i = 0; i < NODES; i++) {
        b[i] = world_open();
        snprintf(subject, sizeof subject, "node.n%d", i);
        s[i] = serve(b[i], subject, reverse, NULL);
    }
    struct bus_calls *calls = bus_calls_new(a);
    for (uint64_t i = 0; i < NODES * EACH; i++) {
        char text[32];
        int n = snprintf(text, sizeof text, "%08d", (int)i);
        snprintf(subject, sizeof subject, "node.n%d", (int)(i % NODES));
        assert_int_equal(bus_call(calls, subject, text, (size_t)n, in_ms(20000), i), i + 1);
    }
    bool seen[NODES * EACH] = {0};
    struct bus_reply r;
    size_t n = 0;
    for (; bus_calls_next(calls, &r); n++) {
        assert_int_equal(r.code, 0);
        assert_int_equal(r.n, 8);
        int value = 0;
        for (int k = 7; k >= 0; k--)
            value = value * 10 + ((char *)r.data)[k] - '0';
        assert_int_equal(value, r.tag);
        assert_false(seen[r.tag]);
        seen[r.tag] = true;
        bus_reply_free(&r);
    }
    assert_int_equal(n, NODES * EACH);
    bus_calls_free(calls);
    for (int i = 0; i < NODES; i++) {
        bus_stop(s[i]);
        bus_close(b[i]);
    }
    bus_close(a);
}

static void test_big(void **state)
{
    world_need();
    struct bus *a = world_open(), *b = world_open();
    struct bus_service *s = serve(b, "node.b", reverse, NULL);
    uint8_t *data = world_bytes(BIG + 1, 7);
    struct bus_calls *calls = bus_calls_new(a);
    const size_t sizes[] = {BIG + 1, (256 << 10) - 32, (256 << 10) - 31, BIG - 1000, 1};
    enum { N = sizeof sizes / sizeof *sizes };
    for (unsigned i = 0; i < N; i++)
        bus_call(calls, "node.b", data, sizes[i], in_ms(30000), i);
    struct bus_reply r;
    for (unsigned i = 0; i < N; i++) {
        assert_true(bus_calls_next(calls, &r));
        assert_int_equal(r.code, 0);
        assert_int_equal(r.n, sizes[r.tag]);
        for (size_t k = 0; k < r.n; k++)
            if (((uint8_t *)r.data)[k] != data[r.n - 1 - k])
                fail_msg("byte %zu of %zu is wrong", k, r.n);
        assert_true(r.received_bytes > r.n && r.received_bytes < r.n + r.n / 100 + 100);
        assert_int_equal(r.sent_messages, (sizes[r.tag] + (256 << 10) - 33) / ((256 << 10) - 32));
        bus_reply_free(&r);
    }
    assert_false(bus_calls_next(calls, &r));
    bus_calls_free(calls);
    bus_stop(s);
    bus_close(a);
    bus_close(b);
    free(data);
}

static void test_too_big(void **state)
{
    world_need();
    struct bus *a, *b;
    struct err e;
    struct bus_reply r;
    uint8_t *data = world_bytes(BIG, 1);
    assert_int_equal(bus_open(&(struct bus_options){.url = world_url, .max_message_bytes = 1 << 20}, &b, &e), 0);
    a = world_open();
    struct bus_service *s = serve(b, "node.b", reverse, NULL);
    assert_int_equal(bus_ask(b, "node.b", data, BIG, in_ms(5000), &r), ERR_LIMIT); /* refused by the sender's own bus */
    assert_int_equal(bus_ask(a, "node.b", data, BIG, in_ms(5000), &r), ERR_LIMIT); /* refused by the receiver */
    assert_non_null(strstr(r.text, "1048576"));
    bus_stop(s);
    s = serve(a, "node.a", reverse, NULL);
    assert_int_equal(bus_ask(b, "node.a", data, 1 << 20, in_ms(5000), &r), 0);
    bus_reply_free(&r);
    struct shelf shelf = {.n = 0};
    struct bus_service *kept = serve(b, "node.c", keep, &shelf);
    bus_refuse(taken(&shelf, 0), ERR_IO, "");
    struct bus_calls *calls = bus_calls_new(a);
    bus_call(calls, "node.c", "", 0, in_ms(5000), 0);
    assert_int_equal(bus_answer(taken(&shelf, 1), data, BIG, &e), ERR_LIMIT);
    assert_true(bus_calls_next(calls, &r));
    assert_int_equal(r.code, ERR_LIMIT);
    bus_calls_free(calls);
    bus_stop(kept);
    bus_stop(s);
    bus_close(a);
    bus_close(b);
    free(data);
}

static void test_nobody(void **state)
{
    world_need();
    struct bus *a = world_open();
    struct bus_reply r;
    uint8_t *data = world_bytes(BIG, 1);
    int64_t begin = time_monotonic_ns();
    assert_int_equal(bus_ask(a, "node.nobody", "x", 1, in_ms(60000), &r), ERR_NOTFOUND);
    assert_non_null(strstr(r.text, "node.nobody"));
    assert_int_equal(bus_ask(a, "node.nobody", data, BIG, in_ms(60000), &r), ERR_NOTFOUND);
    assert_true(time_monotonic_ns() - begin < 20 * NS_PER_S); /* reported at once, not at the deadline */
    assert_int_equal(bus_ask(a, "node..x", "x", 1, in_ms(60000), &r), ERR_ARG);
    assert_int_equal(bus_ask(a, "node.*", "x", 1, in_ms(60000), &r), ERR_ARG);
    bus_close(a);
    free(data);
}

static void test_refusal(void **state)
{
    world_need();
    struct bus *a = world_open(), *b = world_open();
    struct bus_service *s = serve(b, "node.b", refuse, NULL);
    struct bus_reply r;
    assert_int_equal(bus_ask(a, "node.b", "x", 1, in_ms(5000), &r), ERR_UNSUPPORTED);
    assert_string_equal(r.text, "no such question here");
    assert_int_equal(r.n, 0);
    bus_stop(s);
    assert_gone(a, "node.b");
    bus_close(a);
    bus_close(b);
}

static void test_time_out(void **state)
{
    world_need();
    struct bus *a = world_open(), *b = world_open();
    struct shelf shelf = {.n = 0};
    struct bus_service *s = serve(b, "node.b", keep, &shelf), *quick = serve(b, "node.q", reverse, NULL);
    struct bus_question *first = taken(&shelf, 0);
    struct bus_calls *calls = bus_calls_new(a);
    struct bus_reply r;
    int64_t begin = time_monotonic_ns();
    bus_call(calls, "node.b", "slow", 4, in_ms(300), 1);
    bus_call(calls, "node.q", "ab", 2, in_ms(5000), 2);
    assert_true(bus_calls_next(calls, &r)); /* slow answer, which blocks no other */
    assert_int_equal(r.tag, 2);
    assert_int_equal(r.code, 0);
    bus_reply_free(&r);
    assert_true(bus_calls_next(calls, &r));
    assert_int_equal(r.tag, 1);
    assert_int_equal(r.code, ERR_TIMEOUT);
    assert_true(time_monotonic_ns() - begin >= 300 * 1000000);
    /* The answerer knows how long the asker waits, and that it waits no more. */
    struct bus_question *q = taken(&shelf, 1);
    assert_true(q->deadline_ns > begin + 100 * 1000000 && q->deadline_ns < begin + 3000 * INT64_C(1000000));
    while (time_monotonic_ns() < q->deadline_ns)
        sleep_ms(10);
    assert_int_equal(bus_answer(q, "late", 4, NULL), ERR_TIMEOUT);
    assert_false(bus_calls_next(calls, &r));
    bus_calls_free(calls);
    bus_answer(first, "", 0, NULL);
    assert_int_equal(bus_ask(a, "node.q", "ab", 2, time_monotonic_ns() - 1, &r), ERR_TIMEOUT);
    bus_stop(s);
    bus_stop(quick);
    bus_close(a);
    bus_close(b);
}

static void test_cancel(void **state)
{
    world_need();
    struct bus *a = world_open(), *b = world_open();
    struct shelf shelf = {.n = 0};
    struct bus_service *s = serve(b, "node.b", keep, &shelf);
    bus_answer(taken(&shelf, 0), "", 0, NULL);
    struct bus_calls *calls = bus_calls_new(a), *others = bus_calls_new(a);
    struct bus_reply r;
    bus_call(calls, "node.b", "1", 1, in_ms(10000), 1);
    bus_call(others, "node.b", "2", 1, in_ms(10000), 2);
    struct bus_question *q = taken(&shelf, 1), *p = taken(&shelf, 2);
    bus_calls_free(calls);
    bus_answer(q, "dropped", 7, NULL);
    bus_answer(p, "kept", 4, NULL);
    assert_true(bus_calls_next(others, &r));
    assert_int_equal(r.tag, 2);
    assert_memory_equal(r.data, "kept", 4);
    bus_reply_free(&r);
    assert_false(bus_calls_next(others, &r));
    bus_calls_free(others);
    bus_stop(s);
    bus_close(a);
    bus_close(b);
}

static void test_busy(void **state)
{
    world_need();
    struct bus *a = world_open(), *b = world_open();
    struct shelf shelf = {.n = 0};
    struct bus_service *s;
    struct bus_reply r;
    struct err e;
    const struct bus_serve_options few = {.max_open = 2, .max_bytes = 1000};
    assert_int_equal(bus_serve(b, "node.b", &few, keep, &shelf, &s, &e), 0);
    struct bus_calls *calls = bus_calls_new(a);
    while (bus_ask(a, "node.b", "1", 1, in_ms(100), &r) == ERR_NOTFOUND)
        sleep_ms(1);
    struct bus_question *first = taken(&shelf, 0);
    bus_call(calls, "node.b", "2", 1, in_ms(10000), 2);
    struct bus_question *second = taken(&shelf, 1);
    assert_int_equal(bus_ask(a, "node.b", "3", 1, in_ms(10000), &r), ERR_BUSY);
    assert_non_null(strstr(r.text, "busy"));
    bus_answer(first, "", 0, NULL);
    char large[1001] = {0};
    assert_int_equal(bus_ask(a, "node.b", large, sizeof large, in_ms(10000), &r), ERR_BUSY);
    bus_call(calls, "node.b", "4", 1, in_ms(10000), 4);
    bus_answer(taken(&shelf, 2), "", 0, NULL);
    bus_answer(second, "", 0, NULL);
    assert_true(bus_calls_next(calls, &r));
    assert_int_equal(r.code, 0);
    assert_true(bus_calls_next(calls, &r));
    assert_int_equal(r.code, 0);
    bus_calls_free(calls);
    bus_stop(s);
    bus_close(a);
    bus_close(b);
}

static void test_stop_before_answer(void **state)
{
    world_need();
    struct bus *a = world_open(), *b = world_open();
    struct shelf shelf = {.n = 0};
    struct bus_service *s = serve(b, "node.b", keep, &shelf);
    struct bus_calls *calls = bus_calls_new(a);
    struct bus_reply r;
    bus_call(calls, "node.b", "1", 1, in_ms(10000), 1);
    struct bus_question *probe = taken(&shelf, 0), *q = taken(&shelf, 1);
    bus_stop(s);
    assert_int_equal(bus_answer(q, "yes", 3, NULL), 0);
    assert_true(bus_calls_next(calls, &r));
    assert_int_equal(r.code, 0);
    bus_reply_free(&r);
    bus_calls_free(calls);
    bus_close(b);
    bus_answer(probe, "", 0, NULL); /* answer without receiver: harmless */
    bus_close(a);
}

static void *next_in_thread(void *arg)
{
    static struct bus_reply r;
    assert_true(bus_calls_next(arg, &r));
    return &r;
}

static void test_close_with_open_calls(void **state)
{
    world_need();
    struct bus *a = world_open(), *b = world_open();
    struct shelf shelf = {.n = 0};
    struct bus_service *s = serve(b, "node.b", keep, &shelf);
    struct bus_calls *calls = bus_calls_new(a);
    pthread_t thread;
    void *reply;
    bus_call(calls, "node.b", "1", 1, in_ms(60000), 1);
    struct bus_question *probe = taken(&shelf, 0), *q = taken(&shelf, 1);
    pthread_create(&thread, NULL, next_in_thread, calls);
    sleep_ms(20);
    bus_close(a);
    pthread_join(thread, &reply);
    assert_int_equal(((struct bus_reply *)reply)->code, ERR_CANCELLED);
    struct bus_reply r;
    bus_call(calls, "node.b", "1", 1, in_ms(60000), 1);
    assert_true(bus_calls_next(calls, &r));
    assert_int_equal(r.code, ERR_CANCELLED);
    bus_calls_free(calls);
    bus_answer(q, "", 0, NULL);
    bus_answer(probe, "", 0, NULL);
    bus_stop(s);
    bus_close(b);
}

/* ---- handlers that do all that they may ---- */

struct busy_handler {
    struct bus *bus;
    struct bus_service *service;
    struct bus_listening *listening;
    atomic_int done;
};

/* Asks another, publishes, answers, and stops itself. */
static void do_all(void *arg, struct bus_question *q)
{
    struct busy_handler *h = arg;
    struct bus_reply r;
    if (bus_ask(h->bus, "node.q", q->data, q->n, q->deadline_ns, &r) || q->n != 3) {
        bus_answer(q, "", 0, NULL);
        bus_reply_free(&r);
        return;
    }
    bus_publish(h->bus, "news.x", "n", 1, NULL);
    bus_stop(h->service);
    bus_answer(q, r.data, r.n, NULL);
    bus_reply_free(&r);
}

static void hear_once(void *arg, const char *subject, const void *data, size_t n)
{
    struct busy_handler *h = arg;
    assert_string_equal(subject, "news.x");
    bus_unlisten(h->listening);
    atomic_fetch_add(&h->done, 1);
}

static void test_handler_does_all(void **state)
{
    world_need();
    struct bus *a = world_open(), *b = world_open();
    struct busy_handler h = {.bus = b};
    struct bus_reply r;
    struct bus_service *q = serve(b, "node.q", reverse, NULL);
    h.service = serve(b, "node.b", do_all, &h);
    assert_int_equal(bus_listen(b, "news.*", hear_once, &h, &h.listening, NULL), 0);
    assert_int_equal(bus_ask(a, "node.b", "abc", 3, in_ms(10000), &r), 0);
    assert_memory_equal(r.data, "cba", 3);
    bus_reply_free(&r);
    eventually(atomic_load(&h.done) == 1);
    bus_publish(a, "news.x", "n", 1, NULL);
    assert_gone(a, "node.b");
    assert_int_equal(atomic_load(&h.done), 1);
    bus_stop(q);
    bus_close(a);
    bus_close(b);
}

/* Ends all that there is of its own bus. */
static void close_all(void *arg, const char *subject, const void *data, size_t n)
{
    struct busy_handler *h = arg;
    bus_unlisten(h->listening);
    bus_close(h->bus);
    atomic_fetch_add(&h->done, 1);
}

static void test_handler_closes(void **state)
{
    world_need();
    struct bus *a = world_open();
    struct busy_handler h = {.bus = world_open()};
    assert_int_equal(bus_listen(h.bus, "end.it", close_all, &h, &h.listening, NULL), 0);
    for (int i = 0; i < 1000 && !atomic_load(&h.done); i++) {
        bus_publish(a, "end.it", "", 0, NULL);
        sleep_ms(5);
    }
    assert_int_equal(atomic_load(&h.done), 1);
    bus_close(a);
}

/* ---- news ---- */

struct heard {
    atomic_int n;
    _Atomic uint64_t sum;
};

static void hear(void *arg, const char *subject, const void *data, size_t n)
{
    struct heard *h = arg;
    atomic_fetch_add(&h->sum, *(const uint8_t *)data);
    atomic_fetch_add(&h->n, 1);
}

static void test_news(void **state)
{
    world_need();
    struct bus *a = world_open(), *b = world_open();
    struct heard one = {0}, star = {0}, all = {0}, other = {0};
    struct bus_listening *l[4];
    struct err e;
    assert_int_equal(bus_listen(b, "x.y.z", hear, &one, &l[0], &e), 0);
    assert_int_equal(bus_listen(b, "x.*.z", hear, &star, &l[1], &e), 0);
    assert_int_equal(bus_listen(b, "x.>", hear, &all, &l[2], &e), 0);
    assert_int_equal(bus_listen(b, "y.>", hear, &other, &l[3], &e), 0);
    for (int i = 0; atomic_load(&other.n) == 0; i++) { /* loop until all subscriptions are known */
        bus_publish(a, "y.1", "\0", 1, &e);
        sleep_ms(5);
        assert_true(i < 1000);
    }
    assert_int_equal(bus_publish(a, "x.y.z", "\1", 1, &e), 0);
    assert_int_equal(bus_publish(a, "x.w.z", "\2", 1, &e), 0);
    assert_int_equal(bus_publish(a, "x.w", "\4", 1, &e), 0);
    assert_int_equal(bus_publish(a, "x", "\10", 1, &e), 0);
    eventually(atomic_load(&all.n) == 3);
    eventually(atomic_load(&one.n) == 1 && atomic_load(&star.n) == 2);
    assert_int_equal(atomic_load(&one.sum), 1);
    assert_int_equal(atomic_load(&star.sum), 3);
    assert_int_equal(atomic_load(&all.sum), 7);
    assert_int_equal(atomic_load(&other.sum), 0);
    uint8_t *data = world_bytes(2 << 20, 1);
    assert_int_equal(bus_publish(a, "x.y.z", data, 2 << 20, &e), ERR_LIMIT);
    assert_int_equal(bus_publish(a, "x.>", data, 1, &e), ERR_ARG);
    free(data);
    for (int i = 0; i < 4; i++)
        bus_unlisten(l[i]);
    bus_close(a);
    bus_close(b);
}

static void test_tokens(void **state)
{
    static const char *const names[] = {"web-1", "web_1.example.org", "", "=", "a b*>", "ä", "10.0.0.1:4222"};
    char token[100], back[100];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(bus_token(names[i], token, sizeof token), 0);
        for (const char *c = token; *c; c++)
            assert_non_null(strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-=", *c));
        assert_true(*token);
        assert_int_equal(bus_untoken(token, back, sizeof back), 0);
        assert_string_equal(back, names[i]);
    }
    bus_token("web-1.example", token, sizeof token);
    assert_string_equal(token, "web-1=2Eexample");
    assert_int_equal(bus_token("abc", token, 4), 0);
    assert_int_equal(bus_token("abc", token, 3), ERR_LIMIT);
    assert_int_equal(bus_token("a.c", token, 5), ERR_LIMIT);
    assert_int_equal(bus_token("a.c", token, 6), 0);
    assert_int_equal(bus_untoken("a=2e", back, sizeof back), ERR_FORMAT);
    assert_int_equal(bus_untoken("a=41", back, sizeof back), ERR_FORMAT); /* 'A' needs no escape: no second spelling */
    assert_int_equal(bus_untoken("a=2", back, sizeof back), ERR_FORMAT);
    assert_int_equal(bus_untoken("a.b", back, sizeof back), ERR_FORMAT);
    assert_int_equal(bus_untoken("=00", back, sizeof back), ERR_FORMAT);
    assert_int_equal(bus_untoken("", back, sizeof back), ERR_FORMAT);
}

static void test_urls(void **state)
{
    struct bus *b;
    struct err e;
    static const char *const wrong[] = {"", "http://x", "nats", "nats://a,http://b"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(bus_open(&(struct bus_options){.url = wrong[i]}, &b, &e), ERR_ARG);
    /* Port 1 does not answer. */
    const struct bus_options o = {.url = "nats://anna:s3cret@127.0.0.1:1", .timeout_ns = 200 * INT64_C(1000000)};
    int64_t begin = time_monotonic_ns();
    assert_int_equal(bus_open(&o, &b, &e), ERR_TIMEOUT);
    assert_true(time_monotonic_ns() - begin < 10 * NS_PER_S);
    assert_non_null(strstr(e.text, "127.0.0.1:1"));
    assert_null(strstr(e.text, "s3cret"));
    assert_null(strstr(e.text, "anna"));
}

/* ---- the broker dies ---- */

static void test_restart(void **state)
{
    world_need();
    struct bus *a = world_open(), *b = world_open();
    struct heard heard = {0};
    struct shelf shelf = {.n = 0};
    struct bus_listening *l;
    struct bus_service *s = serve(b, "node.b", reverse, NULL), *slow = serve(b, "node.s", keep, &shelf);
    struct bus_calls *calls = bus_calls_new(a);
    struct bus_reply r;
    assert_int_equal(bus_listen(b, "x.>", hear, &heard, &l, NULL), 0);
    struct bus_question *probe = taken(&shelf, 0);
    bus_call(calls, "node.s", "1", 1, in_ms(20000), 1);
    struct bus_question *q = taken(&shelf, 1);
    world_kill_server();
    eventually(!bus_connected(a) && !bus_connected(b));
    int64_t begin = time_monotonic_ns();
    assert_int_equal(bus_ask(a, "node.b", "ab", 2, in_ms(200), &r), ERR_TIMEOUT);
    assert_non_null(strstr(r.text, "not connected"));
    assert_true(time_monotonic_ns() - begin < 5 * NS_PER_S);
    bus_call(calls, "node.b", "ab", 2, in_ms(20000), 2); /* sent later */
    world_restart_server(true);
    eventually(bus_connected(a) && bus_connected(b));
    assert_true(bus_calls_next(calls, &r));
    while (r.code == ERR_NOTFOUND) { /* loop: the other one came back later than the query */
        bus_call(calls, "node.b", "ab", 2, in_ms(20000), 2);
        assert_true(bus_calls_next(calls, &r));
    }
    assert_int_equal(r.code, 0);
    assert_int_equal(r.tag, 2);
    assert_memory_equal(r.data, "ba", 2);
    bus_reply_free(&r);
    bus_answer(q, "old", 3, NULL); /* answer to an earlier query */
    assert_true(bus_calls_next(calls, &r));
    assert_int_equal(r.code, 0);
    assert_int_equal(r.tag, 1);
    assert_memory_equal(r.data, "old", 3);
    bus_reply_free(&r);
    for (int i = 0; atomic_load(&heard.n) == 0 && i < 1000; i++) {
        bus_publish(a, "x.y", "\1", 1, NULL);
        sleep_ms(5);
    }
    assert_true(atomic_load(&heard.n) > 0);
    bus_answer(probe, "", 0, NULL);
    bus_calls_free(calls);
    bus_unlisten(l);
    bus_stop(s);
    bus_stop(slow);
    bus_close(a);
    bus_close(b);
}

static void test_open_before_broker(void **state)
{
    world_need();
    struct bus *a, *b;
    struct err e = {0};
    struct bus_reply r;
    const struct bus_options o = {.url = world_url, .later = true};
    world_kill_server();
    assert_int_equal(bus_open(&o, &a, &e), 0);
    assert_int_equal(bus_open(&o, &b, &e), 0);
    assert_false(bus_connected(a));
    struct bus_service *s;
    assert_int_equal(bus_serve(b, "node.b", NULL, reverse, NULL, &s, &e), 0);
    assert_int_equal(bus_ask(a, "node.b", "ab", 2, in_ms(100), &r), ERR_TIMEOUT);
    world_restart_server(true);
    eventually(bus_connected(a) && bus_connected(b));
    int rc = ERR_NOTFOUND;
    for (int i = 0; i < 100 && rc == ERR_NOTFOUND; i++, sleep_ms(10))
        rc = bus_ask(a, "node.b", "ab", 2, in_ms(5000), &r);
    assert_int_equal(rc, 0);
    bus_reply_free(&r);
    bus_stop(s);
    bus_close(a);
    bus_close(b);
    world_kill_server();
    assert_int_equal(bus_open(&o, &a, &e), 0);
    bus_close(a); /* bus that never connected */
}

int main(void)
{
    const struct CMUnitTest both[] = {
        cmocka_unit_test(test_answer),
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_big),
        cmocka_unit_test(test_too_big),
        cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_refusal),
        cmocka_unit_test(test_time_out),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_stop_before_answer),
        cmocka_unit_test(test_close_with_open_calls),
        cmocka_unit_test(test_handler_does_all),
        cmocka_unit_test(test_handler_closes),
        cmocka_unit_test(test_news),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_urls),
    };
    const struct CMUnitTest nats[] = {
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_open_before_broker),
    };
    return WORLD_RUN("messages", both, nats);
}
