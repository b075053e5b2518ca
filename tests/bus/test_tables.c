/* SPDX-License-Identifier: MIT */
/* Tables. Each test uses tables of its own: on a server they outlive it. */
#include <pthread.h>
#include <stdatomic.h>

#include "world.h"

static struct bus_table *open_table(struct bus *b, const char *name, int64_t ttl_ms, bool memory)
{
    struct bus_table *t;
    struct err e = {0};
    if (bus_table_open(b, name, &(struct bus_table_options){ttl_ms * 1000000, memory}, &t, &e))
        fail_msg("%s", e.text);
    return t;
}

/* ---- single entry ---- */

static void test_put_and_get(void **state)
{
    world_need();
    struct bus *a = world_open(), *b = world_open();
    struct bus_table *t = open_table(a, "plain", 0, false), *u = open_table(b, "plain", 0, false);
    struct err e = {0};
    void *data;
    size_t n;
    uint64_t r1, r2, r3, got;
    assert_int_equal(bus_table_get(t, "k.1", &data, &n, &got, &e), ERR_NOTFOUND);
    assert_null(data);
    assert_int_equal(bus_table_put(t, "k.1", "one", 3, &r1, &e), 0);
    assert_int_equal(bus_table_put(t, "k.2", "two", 3, &r2, &e), 0);
    assert_true(r1 > 0 && r2 > r1);
    assert_int_equal(bus_table_get(u, "k.1", &data, &n, &got, &e), 0);
    assert_int_equal(n, 3);
    assert_string_equal(data, "one");
    assert_int_equal(got, r1);
    free(data);
    assert_int_equal(bus_table_put(u, "k.1", "", 0, &r3, &e), 0);
    assert_int_equal(bus_table_get(t, "k.1", &data, &n, &got, &e), 0);
    assert_int_equal(n, 0);
    assert_int_equal(got, r3);
    free(data);
    assert_int_equal(bus_table_remove(t, "k.1", &e), 0);
    assert_int_equal(bus_table_remove(t, "k.none", &e), 0);
    assert_int_equal(bus_table_get(u, "k.1", &data, NULL, NULL, &e), ERR_NOTFOUND);
    assert_non_null(strstr(e.text, "k.1"));
    assert_int_equal(bus_table_put(u, "k.1", "again", 5, NULL, &e), 0);
    assert_int_equal(bus_table_get(u, "k.1", &data, NULL, NULL, &e), 0);
    assert_string_equal(data, "again");
    free(data);
    bus_table_close(t);
    bus_table_close(u);
    bus_close(a);
    bus_close(b);
}

static void test_limits(void **state)
{
    world_need();
    struct bus *a = world_open();
    struct bus_table *t = open_table(a, "limits", 0, false), *none;
    struct err e;
    char number[24];
    size_t most = bus_max_payload(a), n;
    uint8_t *data = world_bytes(most + 1, 3);
    void *got;
    assert_int_equal(bus_table_put(t, "k", data, most + 1, NULL, &e), ERR_LIMIT);
    snprintf(number, sizeof number, "%zu", most);
    assert_non_null(strstr(e.text, number));
    assert_int_equal(bus_table_put(t, "k", data, most, NULL, &e), 0);
    assert_int_equal(bus_table_get(t, "k", &got, &n, NULL, &e), 0);
    assert_int_equal(n, most);
    assert_memory_equal(got, data, n);
    free(got);
    assert_int_equal(bus_table_put(t, "k b", data, 1, NULL, &e), ERR_ARG);
    assert_int_equal(bus_table_put(t, "", data, 1, NULL, &e), ERR_ARG);
    assert_int_equal(bus_table_put(t, "*", data, 1, NULL, &e), ERR_ARG);
    assert_int_equal(bus_table_open(a, "a.b", NULL, &none, &e), ERR_ARG);
    assert_int_equal(bus_table_open(a, "x", &(struct bus_table_options){.ttl_ns = 5}, &none, &e), ERR_ARG);
    free(data);
    bus_table_close(t);
    bus_close(a);
}

static void test_put_if(void **state)
{
    world_need();
    struct bus *a = world_open();
    struct bus_table *t = open_table(a, "put-if", 0, false);
    struct err e;
    uint64_t r;
    assert_int_equal(bus_table_put_if(t, "k", "1", 1, 7, &r, &e), ERR_STALE);
    assert_int_equal(bus_table_put_if(t, "k", "1", 1, 0, &r, &e), 0);
    assert_int_equal(bus_table_put_if(t, "k", "2", 1, 0, NULL, &e), ERR_STALE);
    assert_int_equal(bus_table_put_if(t, "k", "2", 1, r, &r, &e), 0);
    assert_int_equal(bus_table_put(t, "other", "x", 1, NULL, &e), 0); /* change of another key: irrelevant */
    assert_int_equal(bus_table_put_if(t, "k", "3", 1, r, &r, &e), 0);
    assert_int_equal(bus_table_put_if(t, "k", "4", 1, r - 1, NULL, &e), ERR_STALE);
    assert_int_equal(bus_table_remove(t, "k", &e), 0);
    assert_int_equal(bus_table_put_if(t, "k", "4", 1, r, NULL, &e), ERR_STALE);
    assert_int_equal(bus_table_put_if(t, "k", "4", 1, 0, NULL, &e), 0); /* removed is as if never there */
    bus_table_close(t);
    bus_close(a);
}

enum { RACERS = 6, STEPS = 20 };

/* Adds one, so often. */
static void *race(void *arg)
{
    struct bus *b = world_open();
    struct bus_table *t = open_table(b, "race", 0, true); /* simultaneous opening: one creates it */
    for (int done = 0; done < STEPS;) {
        void *data;
        uint64_t r = 0;
        struct err e;
        char text[24] = "1";
        if (!bus_table_get(t, "sum", &data, NULL, &r, &e)) {
            snprintf(text, sizeof text, "%d", atoi(data) + 1);
            free(data);
        }
        int rc = bus_table_put_if(t, "sum", text, strlen(text), r, NULL, &e);
        if (rc && rc != ERR_STALE)
            fprintf(stderr, "%s\n", e.text);
        done += rc == 0;
    }
    bus_table_close(t);
    bus_close(b);
    return NULL;
}

static void test_races(void **state)
{
    world_need();
    pthread_t threads[RACERS];
    struct bus *b = world_open();
    for (int i = 0; i < RACERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, race, NULL), 0);
    for (int i = 0; i < RACERS; i++)
        pthread_join(threads[i], NULL);
    /* Hub in the process, which ends with its last bus: b kept it. */
    struct bus_table *t = open_table(b, "race", 0, true);
    void *data;
    assert_int_equal(bus_table_get(t, "sum", &data, NULL, NULL, NULL), 0);
    assert_int_equal(atoi(data), RACERS * STEPS);
    free(data);
    bus_table_close(t);
    bus_close(b);
}

/* ---- whole table, and watching ---- */

/* Reports of a watch, as a line: "+key=value", "-key", "ALL", "ANEW". */
struct told {
    pthread_mutex_t lock;
    char text[4096];
    struct bus_watch *watch;
    const char *stop_at;
};

static void tell(void *arg, const struct bus_entry *e)
{
    struct told *t = arg;
    pthread_mutex_lock(&t->lock);
    size_t n = strlen(t->text);
    switch (e->kind) {
    case BUS_ENTRY_PUT:
        snprintf(t->text + n, sizeof t->text - n, "+%s=%.*s ", e->key, (int)e->n, (const char *)e->data);
        break;
    case BUS_ENTRY_REMOVED:
        assert_null(e->data);
        snprintf(t->text + n, sizeof t->text - n, "-%s ", e->key);
        break;
    case BUS_ENTRY_ALL: snprintf(t->text + n, sizeof t->text - n, "ALL "); break;
    case BUS_ENTRY_ANEW: snprintf(t->text + n, sizeof t->text - n, "ANEW "); break;
    }
    pthread_mutex_unlock(&t->lock);
    if (t->stop_at && e->key && !strcmp(e->key, t->stop_at))
        bus_watch_stop(t->watch);
}

static bool has(struct told *t, const char *text)
{
    pthread_mutex_lock(&t->lock);
    bool yes = strstr(t->text, text) != NULL;
    pthread_mutex_unlock(&t->lock);
    return yes;
}

static void forget(struct told *t)
{
    pthread_mutex_lock(&t->lock);
    *t->text = '\0';
    pthread_mutex_unlock(&t->lock);
}

#define TOLD ((struct told){.lock = PTHREAD_MUTEX_INITIALIZER})

static void test_all(void **state)
{
    world_need();
    struct bus *a = world_open();
    struct bus_table *t = open_table(a, "all", 0, false);
    struct told told = TOLD;
    struct err e = {0};
    assert_int_equal(bus_table_all(t, tell, &told, &e), 0);
    assert_string_equal(told.text, "");
    bus_table_put(t, "a", "1", 1, NULL, &e);
    bus_table_put(t, "b", "2", 1, NULL, &e);
    bus_table_put(t, "a", "3", 1, NULL, &e);
    bus_table_put(t, "c", "4", 1, NULL, &e);
    bus_table_remove(t, "b", &e);
    if (bus_table_all(t, tell, &told, &e))
        fail_msg("%s", e.text);
    assert_string_equal(told.text, "+a=3 +c=4 ");
    bus_table_close(t);
    bus_close(a);
}

/* Checks that the version changes after each change, by any client, and only then. */
static void test_version(void **state)
{
    world_need();
    struct bus *a = world_open(), *b = world_open();
    struct bus_table *t = open_table(a, "version", 0, false), *u = open_table(b, "version", 0, false);
    struct told told = TOLD;
    struct err e;
    uint64_t before, now;
    assert_int_equal(bus_table_version(u, &before, &e), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(i < 3 ? bus_table_put(t, "a", "1", 1, NULL, &e) : bus_table_remove(t, "a", &e), 0);
        assert_int_equal(bus_table_version(u, &now, &e), 0);
        assert_true(now != before);
        before = now;
        bus_table_all(u, tell, &told, &e);
        assert_int_equal(bus_table_put_if(t, "a", "2", 1, UINT64_MAX / 2, NULL, &e), ERR_STALE);
        assert_int_equal(bus_table_version(t, &now, &e), 0);
        assert_true(now == before);
    }
    bus_table_close(t);
    bus_table_close(u);
    bus_close(a);
    bus_close(b);
}

static void test_watch(void **state)
{
    world_need();
    struct bus *a = world_open(), *b = world_open();
    struct bus_table *t = open_table(a, "watch", 0, false), *u = open_table(b, "watch", 0, false);
    struct told told = TOLD, empty = TOLD, stopping = TOLD;
    struct bus_watch *w;
    struct err e;
    assert_int_equal(bus_table_watch(u, tell, &empty, &empty.watch, &e), 0);
    eventually(has(&empty, "ALL"));
    assert_string_equal(empty.text, "ALL ");
    bus_table_put(t, "a", "1", 1, NULL, &e);
    bus_table_put(t, "b", "2", 1, NULL, &e);
    bus_table_remove(t, "b", &e);
    assert_int_equal(bus_table_watch(u, tell, &told, &w, &e), 0);
    eventually(has(&told, "ALL"));
    assert_string_equal(told.text, "+a=1 ALL ");
    bus_table_put(t, "c", "3", 1, NULL, &e);
    eventually(has(&told, "+c=3"));
    bus_table_remove(t, "a", &e);
    eventually(has(&told, "-a"));
    assert_string_equal(told.text, "+a=1 ALL +c=3 -a ");
    stopping.stop_at = "c";
    assert_int_equal(bus_table_watch(u, tell, &stopping, &stopping.watch, &e), 0);
    eventually(has(&stopping, "+c=3"));
    bus_watch_stop(w);
    bus_table_put(t, "d", "4", 1, NULL, &e);
    eventually(has(&empty, "+d=4"));
    assert_false(has(&told, "d") || has(&stopping, "d") || has(&stopping, "ALL"));
    bus_watch_stop(empty.watch);
    bus_table_close(t);
    bus_table_close(u);
    bus_close(a);
    bus_close(b);
}

/* Checks that a watch of one key reports only that key, also if others change before it and after. */
static void test_watch_key(void **state)
{
    world_need();
    struct bus *a = world_open(), *b = world_open();
    struct bus_table *t = open_table(a, "watch-key", 0, false), *u = open_table(b, "watch-key", 0, false);
    struct told told = TOLD, absent = TOLD;
    struct bus_watch *w, *v, *none;
    struct err e;
    bus_table_put(t, "a", "1", 1, NULL, &e);
    bus_table_put(t, "a.b", "2", 1, NULL, &e);
    bus_table_put(t, "b", "3", 1, NULL, &e);
    assert_int_equal(bus_table_watch_key(u, "a", tell, &told, &w, &e), 0);
    assert_int_equal(bus_table_watch_key(u, "c", tell, &absent, &v, &e), 0);
    eventually(has(&told, "ALL") && has(&absent, "ALL"));
    bus_table_remove(t, "b", &e);
    bus_table_put(t, "ab", "4", 1, NULL, &e);
    bus_table_put(t, "a", "5", 1, NULL, &e);
    eventually(has(&told, "+a=5"));
    bus_table_remove(t, "a", &e);
    bus_table_put(t, "c", "6", 1, NULL, &e);
    eventually(has(&told, "-a") && has(&absent, "+c=6"));
    assert_string_equal(told.text, "+a=1 ALL +a=5 -a ");
    assert_string_equal(absent.text, "ALL +c=6 ");
    assert_int_equal(bus_table_watch_key(u, "a.*", tell, &told, &none, &e), ERR_ARG);
    bus_watch_stop(w);
    bus_watch_stop(v);
    bus_table_close(t);
    bus_table_close(u);
    bus_close(a);
    bus_close(b);
}

struct counted {
    atomic_int n, before_all, all;
    _Atomic uint64_t bytes;
};

static void count(void *arg, const struct bus_entry *e)
{
    struct counted *c = arg;
    atomic_fetch_add(&c->n, e->kind == BUS_ENTRY_PUT);
    atomic_fetch_add(&c->bytes, e->n);
    if (e->kind == BUS_ENTRY_ALL) {
        atomic_store(&c->before_all, atomic_load(&c->n));
        atomic_fetch_add(&c->all, 1);
    }
}

static void test_many_entries(void **state)
{
    enum { N = 500, SIZE = 4000 };
    world_need();
    struct bus *a = world_open();
    struct bus_table *t = open_table(a, "many", 0, true);
    struct counted pass = {0}, watch = {0};
    struct bus_watch *w;
    struct err e;
    char key[24];
    uint8_t *data = world_bytes(SIZE, 1);
    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(bus_table_put(t, key, data, SIZE, NULL, &e), 0);
    }
    assert_int_equal(bus_table_all(t, count, &pass, &e), 0);
    assert_int_equal(pass.n, N);
    assert_int_equal(pass.bytes, N * SIZE);
    assert_int_equal(pass.all, 0);
    assert_int_equal(bus_table_watch(t, count, &watch, &w, &e), 0);
    eventually(atomic_load(&watch.all) == 1);
    assert_int_equal(watch.before_all, N);
    bus_table_put(t, "k0", data, 1, NULL, &e);
    eventually(atomic_load(&watch.n) == N + 1);
    assert_int_equal(watch.bytes, N * SIZE + 1);
    bus_watch_stop(w);
    free(data);
    bus_table_close(t);
    bus_close(a);
}

struct restless {
    struct bus_table *t;
    atomic_bool stop;
};

static void *put_all_the_time(void *arg)
{
    struct restless *r = arg;
    struct err e;
    for (int i = 0; !atomic_load(&r->stop); i++)
        bus_table_put(r->t, i % 2 ? "x" : "y", "1", 1, NULL, &e);
    return NULL;
}

/* Checks that reading all ends also while entries are written all the time, and has all untouched ones. */
static void test_all_of_a_restless_table(void **state)
{
    enum { WRITERS = 8, MOST_TOLD = 400 };
    world_need();
    struct bus *a = world_open(), *writers[WRITERS];
    struct bus_table *t = open_table(a, "restless", 0, true);
    struct restless r[WRITERS];
    pthread_t threads[WRITERS];
    struct err e;
    bus_table_put(t, "x", "0", 1, NULL, &e);
    bus_table_put(t, "y", "0", 1, NULL, &e);
    bus_table_put(t, "quiet", "9", 1, NULL, &e);
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = world_open();
        r[i] = (struct restless){open_table(writers[i], "restless", 0, true), false};
        pthread_create(&threads[i], NULL, put_all_the_time, &r[i]);
    }
    for (int i = 0; i < 20; i++) {
        struct counted pass = {0};
        assert_int_equal(bus_table_all(t, count, &pass, &e), 0);
        assert_in_range(pass.n, 3, MOST_TOLD);
    }
    for (int i = 0; i < WRITERS; i++) {
        atomic_store(&r[i].stop, true);
        pthread_join(threads[i], NULL);
        bus_table_close(r[i].t);
        bus_close(writers[i]);
    }
    bus_table_close(t);
    bus_close(a);
}

static void test_ttl(void **state)
{
    world_need();
    struct bus *a = world_open();
    struct bus_table *t = open_table(a, "ttl", 1000, true);
    struct told told = TOLD;
    struct bus_watch *w;
    struct err e;
    void *data;
    int64_t begin = time_monotonic_ns();
    bus_table_put(t, "short", "1", 1, NULL, &e);
    assert_int_equal(bus_table_watch(t, tell, &told, &w, &e), 0);
    eventually(has(&told, "ALL"));
    bus_table_put(t, "kept", "1", 1, NULL, &e);
    while (!has(&told, "-short")) {
        bus_table_put(t, "kept", "2", 1, NULL, &e);
        sleep_ms(100);
        assert_true(time_monotonic_ns() - begin < 10 * NS_PER_S);
    }
    assert_true(time_monotonic_ns() - begin > 900 * INT64_C(1000000));
    assert_false(has(&told, "-kept"));
    assert_int_equal(bus_table_get(t, "short", &data, NULL, NULL, &e), ERR_NOTFOUND);
    eventually(has(&told, "-kept"));
    bus_watch_stop(w);
    bus_table_close(t);
    bus_close(a);
}

/* ---- the broker dies ---- */

static void restart(bool keep_stores)
{
    struct bus *a = world_open(), *b = world_open();
    struct bus_table *t = open_table(a, "restart", 0, !keep_stores), *u = open_table(b, "restart", 0, !keep_stores);
    struct told told = TOLD;
    struct bus_watch *w;
    struct err e = {0};
    void *data;
    uint64_t before, now;
    assert_int_equal(bus_table_put(t, "a", "1", 1, NULL, &e), 0);
    assert_int_equal(bus_table_watch(u, tell, &told, &w, &e), 0);
    eventually(has(&told, "+a=1 ALL"));
    assert_int_equal(bus_table_version(t, &before, &e), 0);
    world_kill_server();
    eventually(!bus_connected(a) && !bus_connected(b));
    struct bus *hasty;
    const struct bus_options impatient = {.url = world_url, .timeout_ns = 300 * INT64_C(1000000), .later = true};
    assert_int_equal(bus_open(&impatient, &hasty, &e), 0);
    struct bus_table *none;
    assert_int_equal(bus_table_open(hasty, "x", NULL, &none, &e), ERR_TIMEOUT);
    assert_non_null(strstr(e.text, "not connected"));
    bus_close(hasty);
    forget(&told);
    world_restart_server(keep_stores);
    eventually(has(&told, "ALL"));
    const char *last = told.text; /* the watch restarts more than once if the broker starts slowly */
    while (!strncmp(last, "ANEW ANEW ", 10))
        last += 5;
    assert_string_equal(last, keep_stores ? "ANEW +a=1 ALL " : "ANEW ALL ");
    eventually(bus_connected(a));
    assert_int_equal(bus_table_version(t, &now, &e), 0);
    assert_int_equal(now == before, keep_stores);
    if (bus_table_put(t, "b", "2", 1, NULL, &e))
        fail_msg("%s", e.text);
    eventually(has(&told, "+b=2"));
    assert_int_equal(bus_table_get(t, "a", &data, NULL, NULL, &e), keep_stores ? 0 : ERR_NOTFOUND);
    free(data);
    bus_watch_stop(w);
    bus_table_close(t);
    bus_table_close(u);
    bus_close(a);
    bus_close(b);
}

static void test_restart(void **state)
{
    world_need();
    restart(true);
}

static void test_restart_empty(void **state)
{
    world_need();
    restart(false);
}

/* A put while the broker is away waits for it. */
static void *put_late(void *arg)
{
    static struct err e;
    return bus_table_put(arg, "late", "1", 1, NULL, &e) ? e.text : NULL;
}

static void test_put_waits_for_broker(void **state)
{
    world_need();
    struct bus *a = world_open();
    struct bus_table *t = open_table(a, "late", 0, true);
    pthread_t thread;
    void *said;
    world_kill_server();
    eventually(!bus_connected(a));
    pthread_create(&thread, NULL, put_late, t);
    sleep_ms(100);
    world_restart_server(false);
    pthread_join(thread, &said);
    if (said)
        fail_msg("%s", (char *)said);
    assert_int_equal(bus_table_get(t, "late", &said, NULL, NULL, NULL), 0);
    free(said);
    bus_table_close(t);
    bus_close(a);
}

/* ---- simultaneous start ---- */

enum { BEGINNERS = 8, NEW_TABLES = 40 };

struct beginner {
    struct bus *bus;
    pthread_barrier_t *together;
    char text[200]; /* errors */
};

static void *begin_tables(void *arg)
{
    struct beginner *g = arg;
    for (int i = 0; i < NEW_TABLES; i++) {
        char name[20];
        struct err e = {0};
        struct bus_table *t;
        snprintf(name, sizeof name, "new_%d", i);
        pthread_barrier_wait(g->together);
        if (!bus_table_open(g->bus, name, &(struct bus_table_options){0}, &t, &e))
            bus_table_close(t);
        else
            snprintf(g->text, sizeof g->text, "%.190s", e.text);
    }
    return NULL;
}

/* Checks simultaneous creation: while the broker makes a table for one, it tells others that its subjects overlap with
 * those of another stream. */
static void test_made_by_many_at_once(void **state)
{
    world_need();
    struct beginner all[BEGINNERS] = {0};
    pthread_t threads[BEGINNERS];
    pthread_barrier_t together;
    pthread_barrier_init(&together, NULL, BEGINNERS);
    for (int i = 0; i < BEGINNERS; i++) {
        all[i].bus = world_open();
        all[i].together = &together;
        assert_int_equal(pthread_create(&threads[i], NULL, begin_tables, &all[i]), 0);
    }
    for (int i = 0; i < BEGINNERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < BEGINNERS; i++) {
        assert_string_equal(all[i].text, "");
        bus_close(all[i].bus);
    }
    pthread_barrier_destroy(&together);
}

int main(void)
{
    const struct CMUnitTest both[] = {
        cmocka_unit_test(test_put_and_get),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_put_if),
        cmocka_unit_test(test_races),
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_all_of_a_restless_table),
        cmocka_unit_test(test_version),
        cmocka_unit_test(test_watch),
        cmocka_unit_test(test_watch_key),
        cmocka_unit_test(test_many_entries),
        cmocka_unit_test(test_ttl),
        cmocka_unit_test(test_made_by_many_at_once),
    };
    const struct CMUnitTest nats[] = {
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_restart_empty),
        cmocka_unit_test(test_put_waits_for_broker),
    };
    return WORLD_RUN("tables", both, nats);
}
