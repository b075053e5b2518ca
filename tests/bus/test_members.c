/* SPDX-License-Identifier: MIT */
/* Members of a cluster. */
#include <pthread.h>

#include "bus/frame.h"
#include "world.h"

enum { PERIOD_MS = 200 };
static const int64_t period_ns = PERIOD_MS * INT64_C(1000000);

/* Reports of a watch: "+instance(name)=said", "~instance=said", "-instance", "!instance" (expired). */
struct told {
    pthread_mutex_t lock;
    char text[4096];
    struct bus_members *watch;
    bool stops;
};
#define TOLD ((struct told){.lock = PTHREAD_MUTEX_INITIALIZER})

static void tell(void *arg, const struct bus_member_news *m)
{
    struct told *t = arg;
    pthread_mutex_lock(&t->lock);
    size_t n = strlen(t->text);
    switch (m->event) {
    case BUS_JOINED:
        snprintf(t->text + n, sizeof t->text - n, "+%s(%s)=%.*s ", m->instance, m->name, (int)m->n, (char *)m->data);
        break;
    case BUS_CHANGED:
        snprintf(t->text + n, sizeof t->text - n, "~%s=%.*s ", m->instance, (int)m->n, (char *)m->data);
        break;
    case BUS_LEFT: snprintf(t->text + n, sizeof t->text - n, "-%s ", m->instance); break;
    case BUS_EXPIRED: snprintf(t->text + n, sizeof t->text - n, "!%s ", m->instance); break;
    }
    pthread_mutex_unlock(&t->lock);
    if (t->stops)
        bus_members_stop(t->watch);
}

static bool has(struct told *t, const char *text)
{
    pthread_mutex_lock(&t->lock);
    bool yes = strstr(t->text, text) != NULL;
    pthread_mutex_unlock(&t->lock);
    return yes;
}

static struct bus_member *join(struct bus *b, const char *name, const char *instance, int64_t its_period_ns)
{
    struct bus_member *m;
    struct err e = {0};
    if (bus_join(b, "cluster.x", name, instance, its_period_ns, &m, &e))
        fail_msg("%s", e.text);
    return m;
}

static void test_join_and_leave(void **state)
{
    world_need();
    struct bus *a = world_open(), *b = world_open(), *c = world_open();
    struct told early = TOLD, late = TOLD, other = TOLD, stops = TOLD;
    struct err e;
    assert_int_equal(bus_watch_members(c, "cluster.x", tell, &early, &early.watch, &e), 0);
    assert_int_equal(bus_watch_members(c, "cluster.y", tell, &other, &other.watch, &e), 0);
    /* Periods of an hour: every report in time was requested. */
    struct bus_member *m = join(a, "web 1", "i1", 3600 * NS_PER_S), *n = join(b, "db", "i2", 3600 * NS_PER_S);
    eventually(has(&early, "+i1(web 1)= ") && has(&early, "+i2(db)= "));
    assert_int_equal(bus_member_say(m, "busy", 4, &e), 0);
    eventually(has(&early, "~i1=busy "));
    assert_int_equal(bus_watch_members(c, "cluster.x", tell, &late, &late.watch, &e), 0);
    eventually(has(&late, "+i1(web 1)=busy ") && has(&late, "+i2(db)= "));
    stops.stops = true;
    assert_int_equal(bus_watch_members(c, "cluster.x", tell, &stops, &stops.watch, &e), 0);
    eventually(has(&stops, "+"));
    bus_leave(m);
    eventually(has(&early, "-i1 ") && has(&late, "-i1 "));
    char large[BUS_MAX_SAID + 1] = {0};
    assert_int_equal(bus_member_say(n, large, sizeof large, &e), ERR_LIMIT);
    assert_int_equal(bus_member_say(n, large, sizeof large - 1, &e), 0);
    eventually(has(&early, "~i2="));
    bus_leave(n);
    eventually(has(&early, "-i2 "));
    assert_string_equal(other.text, "");
    assert_null(strchr(strchr(stops.text, '+') + 1, '+')); /* single report */
    bus_members_stop(early.watch);
    bus_members_stop(late.watch);
    bus_members_stop(other.watch);
    bus_close(a);
    bus_close(b);
    bus_close(c);
}

/* Sends one beat of a node that then falls silent. */
static void beat_once(struct bus *b, const char *instance, const char *said)
{
    const struct beat is = {"gone", instance, 4, strlen(instance), (const uint8_t *)said, strlen(said)};
    uint8_t bytes[200];
    const struct frame f = {
        .kind = FRAME_BEAT, .parts = 1, .number = PERIOD_MS, .id = 1, .whole_bytes = bus_beat_bytes(&is)};
    bus_frame_write(&f, bytes);
    bus_beat_write(&is, bytes + FRAME_BYTES);
    assert_int_equal(bus_publish(b, "cluster.x.beat", bytes, FRAME_BYTES + f.whole_bytes, NULL), 0);
}

static void test_expire(void **state)
{
    world_need();
    struct bus *a = world_open(), *b = world_open();
    struct told told = TOLD;
    struct err e;
    assert_int_equal(bus_watch_members(a, "cluster.x", tell, &told, &told.watch, &e), 0);
    struct bus_member *m = join(b, "lives", "i1", period_ns);
    eventually(has(&told, "+i1(lives)= "));
    int64_t begin = time_monotonic_ns();
    beat_once(b, "dies", "x");
    eventually(has(&told, "+dies(gone)=x "));
    eventually(has(&told, "!dies "));
    int64_t took = time_monotonic_ns() - begin;
    assert_true(took >= 3 * period_ns);
    assert_true(took < 10 * period_ns + NS_PER_S);
    beat_once(b, "dies", "y"); /* alive after all */
    eventually(has(&told, "+dies(gone)=y "));
    assert_false(has(&told, "!i1") || has(&told, "~i1"));
    bus_leave(m);
    bus_members_stop(told.watch);
    bus_close(a);
    bus_close(b);
}

static void test_nonsense(void **state)
{
    world_need();
    struct bus *a = world_open();
    struct told told = TOLD;
    struct bus_member *m;
    struct err e;
    char name[BUS_MAX_NAME + 2];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(bus_join(a, "c", name, "i", period_ns, &m, &e), ERR_ARG);
    assert_int_equal(bus_join(a, "c", "", "i", period_ns, &m, &e), ERR_ARG);
    assert_int_equal(bus_join(a, "c", "n", "", period_ns, &m, &e), ERR_ARG);
    assert_int_equal(bus_join(a, "c", "n", "i", 0, &m, &e), ERR_ARG);
    assert_int_equal(bus_join(a, "c.>", "n", "i", period_ns, &m, &e), ERR_ARG);
    assert_int_equal(bus_watch_members(a, "cluster.x", tell, &told, &told.watch, &e), 0);
    uint8_t *bytes = world_bytes(300, 9);
    for (size_t n = 0; n < 300; n++)
        bus_publish(a, "cluster.x.beat", bytes, n, &e);
    m = join(a, "web", "i1", period_ns);
    eventually(has(&told, "+i1(web)= "));
    assert_string_equal(told.text, "+i1(web)= ");
    free(bytes);
    bus_leave(m);
    bus_members_stop(told.watch);
    bus_close(a);
}

static void test_restart(void **state)
{
    world_need();
    struct bus *a = world_open(), *b = world_open();
    struct told told = TOLD;
    struct err e;
    assert_int_equal(bus_watch_members(a, "cluster.x", tell, &told, &told.watch, &e), 0);
    struct bus_member *m = join(b, "web", "i1", period_ns);
    eventually(has(&told, "+i1(web)= "));
    world_kill_server();
    sleep_ms(5 * PERIOD_MS); /* silence that is not the member's fault */
    bus_member_say(m, "new", 3, &e);
    world_restart_server(true);
    eventually(has(&told, "~i1=new "));
    assert_string_equal(told.text, "+i1(web)= ~i1=new ");
    bus_leave(m);
    eventually(has(&told, "-i1 "));
    bus_members_stop(told.watch);
    bus_close(a);
    bus_close(b);
}

int main(void)
{
    const struct CMUnitTest both[] = {
        cmocka_unit_test(test_join_and_leave),
        cmocka_unit_test(test_expire),
        cmocka_unit_test(test_nonsense),
    };
    const struct CMUnitTest nats[] = {
        cmocka_unit_test(test_restart),
    };
    return WORLD_RUN("members", both, nats);
}
