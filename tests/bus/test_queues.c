/* SPDX-License-Identifier: MIT */
/* Queues. Each test uses a queue of its own: on a server they outlive it. */
#include <pthread.h>
#include <stdatomic.h>

#include "world.h"

static struct bus_queue *open_queue(struct bus *b, const char *name, int64_t redeliver_ms)
{
    struct bus_queue *q;
    struct err e = {0};
    if (bus_queue_open(b, name, &(struct bus_queue_options){redeliver_ms * 1000000, true}, &q, &e))
        fail_msg("%s", e.text);
    return q;
}

static void add(struct bus_queue *q, const char *id, const char *data, bool is_fresh)
{
    struct err e = {0};
    bool fresh;
    if (bus_queue_add(q, id, data, strlen(data), &fresh, &e))
        fail_msg("%s", e.text);
    assert_int_equal(fresh, is_fresh);
}

static struct bus_item *take(struct bus_queue *q, const char *id, unsigned times)
{
    struct bus_item *i;
    struct err e = {0};
    if (bus_queue_take(q, in_ms(10000), &i, &e))
        fail_msg("%s", e.text);
    assert_string_equal(i->id, id);
    assert_int_equal(i->times_taken, times);
    return i;
}

static void done(struct bus_item *i)
{
    struct err e = {0};
    if (bus_item_done(i, &e))
        fail_msg("%s", e.text);
}

static void assert_state(struct bus_queue *q, uint64_t waiting, uint64_t taken, uint64_t done_items)
{
    struct bus_queue_state s;
    struct err e = {0};
    if (bus_queue_state(q, &s, &e))
        fail_msg("%s", e.text);
    assert_int_equal(s.waiting, waiting);
    assert_int_equal(s.taken, taken);
    assert_int_equal(s.done, done_items);
}

static void test_work(void **state)
{
    world_need();
    struct bus *a = world_open(), *b = world_open();
    struct bus_queue *q = open_queue(a, "work", 60000), *r = open_queue(b, "work", 60000);
    struct bus_item *none;
    struct err e;
    assert_state(q, 0, 0, 0);
    int64_t begin = time_monotonic_ns();
    assert_int_equal(bus_queue_take(r, in_ms(300), &none, &e), ERR_TIMEOUT);
    assert_null(none);
    assert_true(time_monotonic_ns() - begin >= 300 * 1000000);
    add(q, "trace.1", "one", true);
    add(q, "trace.2", "", true);
    add(r, "trace.1", "other", false);
    assert_state(r, 2, 0, 0);
    struct bus_item *i = take(r, "trace.1", 1);
    assert_int_equal(i->n, 3);
    assert_memory_equal(i->data, "one", 3);
    add(q, "trace.1", "one", false); /* taken, not done */
    assert_state(q, 1, 1, 0);
    struct bus_item *k = take(q, "trace.2", 1);
    assert_int_equal(k->n, 0);
    done(i);
    assert_state(q, 0, 1, 1);
    add(q, "trace.1", "anew", true);
    bus_queue_close(q);
    done(k); /* later than its queue */
    k = take(r, "trace.1", 1);
    assert_memory_equal(k->data, "anew", 4);
    done(k);
    assert_state(r, 0, 0, 3);
    bus_queue_close(r);
    bus_close(a);
    bus_close(b);
}

static void test_again(void **state)
{
    world_need();
    struct bus *a = world_open();
    struct bus_queue *q = open_queue(a, "again", 1000);
    struct bus_item *none;
    struct err e;
    add(q, "x", "1", true);
    bus_item_again(take(q, "x", 1));
    bus_item_forget(take(q, "x", 2));
    int64_t begin = time_monotonic_ns();
    struct bus_item *i = take(q, "x", 3);
    int64_t took = time_monotonic_ns() - begin;
    assert_true(took > 700 * INT64_C(1000000) && took < 5 * NS_PER_S);
    for (int n = 0; n < 8; n++) { /* longer than a second, in steps shorter than one */
        assert_int_equal(bus_queue_take(q, in_ms(250), &none, &e), ERR_TIMEOUT);
        bus_item_working(i);
    }
    done(i);
    assert_state(q, 0, 0, 1);
    bus_queue_close(q);
    bus_close(a);
}

static void test_taker_closes(void **state)
{
    world_need();
    struct bus *a = world_open(), *b = world_open();
    struct bus_queue *q = open_queue(a, "closes", 1000), *r = open_queue(b, "closes", 1000);
    add(q, "x", "1", true);
    struct bus_item *i = take(r, "x", 1);
    bus_queue_close(r);
    bus_close(b);
    done(take(q, "x", 2));
    struct err e;
    assert_int_equal(bus_item_done(i, &e), ERR_CANCELLED);
    assert_state(q, 0, 0, 1);
    bus_queue_close(q);
    bus_close(a);
}

enum { ITEMS = 60, TAKERS = 4 };
struct crew {
    atomic_int taken[ITEMS], all;
};

static void *worker(void *arg)
{
    struct crew *c = arg;
    struct bus *b = world_open();
    struct bus_queue *q = open_queue(b, "crew", 60000);
    struct bus_item *i;
    while (atomic_load(&c->all) < ITEMS)
        if (!bus_queue_take(q, in_ms(300), &i, NULL)) {
            atomic_fetch_add(&c->taken[atoi(i->id)], 1);
            atomic_fetch_add(&c->all, 1);
            bus_item_done(i, NULL);
        }
    bus_queue_close(q);
    bus_close(b);
    return NULL;
}

static void test_crew(void **state)
{
    world_need();
    struct bus *a = world_open();
    struct bus_queue *q = open_queue(a, "crew", 60000);
    struct crew crew = {0};
    pthread_t threads[TAKERS];
    char id[12];
    for (int i = 0; i < TAKERS; i++)
        pthread_create(&threads[i], NULL, worker, &crew);
    for (int i = 0; i < ITEMS; i++) {
        snprintf(id, sizeof id, "%d", i);
        add(q, id, "x", true);
    }
    for (int i = 0; i < TAKERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < ITEMS; i++)
        assert_int_equal(crew.taken[i], 1);
    assert_state(q, 0, 0, ITEMS);
    bus_queue_close(q);
    bus_close(a);
}

static void *take_long(void *arg)
{
    struct bus_item *i;
    return bus_queue_take(arg, in_ms(30000), &i, NULL) ? NULL : i;
}

/* Two that take on one connection: each gets what it took, whatever else the connection waits for. */
static void test_takers_of_one_connection(void **state)
{
    world_need();
    struct bus *a = world_open();
    struct bus_queue *q = open_queue(a, "shared", 60000);
    pthread_t threads[TAKERS];
    for (int i = 0; i < TAKERS; i++)
        pthread_create(&threads[i], NULL, take_long, q);
    sleep_ms(300);
    int64_t begin = time_monotonic_ns();
    add(q, "1", "x", true);
    add(q, "2", "x", true);
    add(q, "3", "x", true);
    add(q, "4", "x", true);
    for (int i = 0; i < TAKERS; i++) {
        void *item;
        pthread_join(threads[i], &item);
        assert_non_null(item);
        done(item);
    }
    assert_true(time_monotonic_ns() - begin < 10 * NS_PER_S);
    assert_state(q, 0, 0, TAKERS);
    bus_queue_close(q);
    bus_close(a);
}

static void test_restart(void **state)
{
    world_need();
    struct bus *a = world_open();
    struct bus_queue *q = open_queue(a, "restart", 60000);
    pthread_t thread;
    void *item;
    pthread_create(&thread, NULL, take_long, q);
    sleep_ms(200);
    world_restart_server(false); /* the queue was in memory only */
    eventually(bus_connected(a));
    add(q, "x", "1", true);
    pthread_join(thread, &item);
    assert_non_null(item);
    done(item);
    assert_state(q, 0, 0, 1);
    bus_queue_close(q);
    bus_close(a);
}

int main(void)
{
    const struct CMUnitTest both[] = {
        cmocka_unit_test(test_work),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_taker_closes),
        cmocka_unit_test(test_crew),
    };
    const struct CMUnitTest nats[] = {
        cmocka_unit_test(test_takers_of_one_connection),
        cmocka_unit_test(test_restart),
    };
    return WORLD_RUN("queues", both, nats);
}
