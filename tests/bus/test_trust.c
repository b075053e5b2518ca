/* SPDX-License-Identifier: MIT */
/* Answers bound to the server of a subject: others with the same rights at the broker answer first, repeat earlier
 * answers, and write keys of their own. */
#include <pthread.h>

#include "world.h"

#include "base/mem.h"

static atomic_int told;

static void count_told(void *arg, const char *what)
{
    assert_null(strstr(what, "%"));
    atomic_fetch_add(&told, 1);
}

static struct bus *open_bound(bool signed_only)
{
    struct bus *b;
    struct err e = {0};
    struct bus_options o = {.url = world_url, .name = "test", .signed_only = signed_only, .tell = count_told};
    if (bus_open(&o, &b, &e) || bus_bind(b, "trust.ask", "trust_keys", &e) ||
        bus_bind(b, "trust.ask", "trust_keys", &e))
        fail_msg("%s", e.text);
    return b;
}

enum { LATE_MS = 50, LARGE = 700000 };

/* Answers with the query, after a while. */
static void truth(void *arg, struct bus_question *q)
{
    sleep_ms(LATE_MS);
    if (q->n && *(const char *)q->data == 'R')
        bus_refuse(q, ERR_NOTFOUND, "not here");
    else
        bus_answer(q, q->data, q->n, NULL);
}

static void lie(void *arg, struct bus_question *q)
{
    if (atomic_fetch_add((atomic_int *)arg, 1) % 2)
        bus_refuse(q, ERR_NOTFOUND, "a lie");
    else
        bus_answer(q, "lie", 3, NULL);
}

static struct bus_service *serve(struct bus *b, bus_question_handler *handler, void *arg)
{
    struct bus_service *s;
    struct err e = {0};
    struct bus_reply r;
    if (bus_serve(b, "trust.ask.node", NULL, handler, arg, &s, &e))
        fail_msg("%s", e.text);
    assert_int_equal(bus_ask(b, "nobody.here", "", 0, in_ms(5000), &r), ERR_NOTFOUND); /* the broker knows it now */
    return s;
}

static void expect(struct bus *asker, const void *question, size_t n, int code)
{
    struct bus_reply r;
    int rc = bus_ask(asker, "trust.ask.node", question, n, in_ms(20000), &r);
    if (rc != code)
        fail_msg("%d: %s", rc, r.text);
    if (code == 0) {
        assert_int_equal(r.n, n);
        assert_memory_equal(r.data, question, n);
    } else {
        assert_non_null(strstr(r.text, "not here"));
    }
    bus_reply_free(&r);
}

static void test_who_answers_first(void **state)
{
    atomic_int lies = 0;
    world_need();
    struct bus *node = open_bound(false), *asker = open_bound(false), *other = world_open();
    uint8_t *large = world_bytes(LARGE, 5);
    struct bus_service *honest = serve(node, truth, NULL), *liar = serve(other, lie, &lies);
    struct bus_reply r;
    assert_int_equal(bus_ask(other, "trust.ask.node", "x", 1, in_ms(5000), &r), 0); /* accepted unchecked */
    assert_int_equal(r.n, 3);
    bus_reply_free(&r);
    for (int i = 0; i < 4; i++) {
        expect(asker, "abc", 3, 0);
        expect(asker, "Refuse", 6, ERR_NOTFOUND);
    }
    expect(asker, "", 0, 0);
    expect(asker, large, LARGE, 0);
    eventually(atomic_load(&lies) > 8);
    bus_stop(honest); /* false server alone: no answer */
    assert_int_equal(bus_ask(asker, "trust.ask.node", "x", 1, in_ms(300), &r), ERR_TIMEOUT);
    assert_non_null(strstr(r.text, "signed"));
    bus_stop(liar);
    free(large);
    bus_close(node);
    bus_close(asker);
    bus_close(other);
}

/* Repeats each answer to the next call, whose reply subject it can guess. */
struct parrot {
    struct bus *bus;
    pthread_mutex_t lock;
    char next[BUS_MAX_SUBJECT + 1];
    uint8_t answer[1000];
    size_t n;
    int said;
};

static void hear_answer(void *arg, const char *subject, const void *data, size_t n)
{
    struct parrot *p = arg;
    const char *dot = strrchr(subject, '.');
    pthread_mutex_lock(&p->lock);
    /* The connection's other inboxes get entries of tables. */
    if (!strncmp(subject, "_INBOX.weft-", 12) && n <= sizeof p->answer && !p->n) {
        snprintf(p->next, sizeof p->next, "%.*s.%lx", (int)(dot - subject), subject, strtoul(dot + 1, NULL, 16) + 1);
        memcpy(p->answer, data, n);
        p->n = n;
    }
    pthread_mutex_unlock(&p->lock);
}

static void say_again(void *arg, const char *subject, const void *data, size_t n)
{
    struct parrot *p = arg;
    pthread_mutex_lock(&p->lock);
    if (p->n && !bus_publish(p->bus, p->next, p->answer, p->n, NULL))
        p->said++;
    pthread_mutex_unlock(&p->lock);
}

static size_t heard_bytes(struct parrot *p)
{
    pthread_mutex_lock(&p->lock);
    size_t n = p->n;
    pthread_mutex_unlock(&p->lock);
    return n;
}

static int times_said(struct parrot *p)
{
    pthread_mutex_lock(&p->lock);
    int n = p->said;
    pthread_mutex_unlock(&p->lock);
    return n;
}

static void test_what_was_said_before(void **state)
{
    struct parrot p = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct err e = {0};
    struct bus_listening *answers, *questions;
    world_need();
    struct bus *node = open_bound(false), *asker = open_bound(false);
    p.bus = world_open();
    struct bus_service *honest = serve(node, truth, NULL);
    assert_int_equal(bus_listen(p.bus, "_INBOX.>", hear_answer, &p, &answers, &e), 0);
    assert_int_equal(bus_listen(p.bus, "trust.ask.node", say_again, &p, &questions, &e), 0);
    expect(asker, "first", 5, 0);
    eventually(heard_bytes(&p) > 0);
    expect(asker, "again", 5, 0); /* same length as the one before: only the signature differs */
    eventually(times_said(&p) >= 1);
    bus_unlisten(answers);
    bus_unlisten(questions);
    bus_stop(honest);
    bus_close(node);
    bus_close(asker);
    bus_close(p.bus);
}

static void test_a_key_that_another_puts(void **state)
{
    uint8_t wrong[33] = {1, 2, 3};
    struct err e = {0};
    struct bus_table *t;
    void *data;
    size_t n = 0;
    uint64_t before = 0, now = 0;
    world_need();
    struct bus *node = open_bound(false), *asker = open_bound(false), *other = world_open();
    struct bus_service *honest = serve(node, truth, NULL);
    expect(asker, "abc", 3, 0);
    atomic_store(&told, 0);
    assert_int_equal(bus_table_open(other, "trust_keys", NULL, &t, &e), 0);
    assert_int_equal(bus_table_put(t, "node", wrong, sizeof wrong, &before, &e), 0);
    while (now <= before) {
        assert_int_equal(bus_table_get(t, "node", &data, &n, &now, &e), 0);
        free(data);
        sleep_ms(5);
    }
    expect(asker, "abc", 3, 0);
    assert_true(told >= 1); /* worth a report */
    assert_int_equal(bus_table_remove(t, "node", &e), 0);
    eventually(!bus_table_get(t, "node", &data, &n, &now, &e) && (free(data), true));
    expect(asker, "abc", 3, 0);
    bus_stop(honest);
    honest = serve(node, truth, NULL); /* started again: another key */
    expect(asker, "abc", 3, 0);
    bus_stop(honest);
    bus_table_close(t);
    bus_close(node);
    bus_close(asker);
    bus_close(other);
}

/* Checks nodes of versions without keys. */
static void test_without_a_key(void **state)
{
    struct bus_service *old;
    struct bus_reply r;
    struct err e = {0};
    world_need();
    struct bus *node = world_open(), *asker = open_bound(false), *strict = open_bound(true);
    assert_int_equal(bus_serve(node, "trust.ask.old", NULL, truth, NULL, &old, &e), 0);
    atomic_store(&told, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(bus_ask(asker, "trust.ask.old", "abc", 3, in_ms(5000), &r), 0);
        bus_reply_free(&r);
    }
    assert_int_equal(told, 1); /* never silent */
    assert_int_equal(bus_ask(strict, "trust.ask.old", "abc", 3, in_ms(5000), &r), ERR_UNSUPPORTED);
    assert_non_null(strstr(r.text, "no key"));
    assert_int_equal(bus_ask_anybody(strict, "trust.ask.old", "abc", 3, in_ms(5000), &r), 0);
    bus_reply_free(&r);
    assert_int_equal(told, 1);
    bus_stop(old);
    bus_close(node);
    bus_close(asker);
    bus_close(strict);
}

int main(void)
{
    const struct CMUnitTest both[] = {
        cmocka_unit_test(test_who_answers_first),
        cmocka_unit_test(test_what_was_said_before),
        cmocka_unit_test(test_a_key_that_another_puts),
        cmocka_unit_test(test_without_a_key),
    };
    return world_run("trust", both, sizeof both / sizeof *both, NULL, 0);
}
