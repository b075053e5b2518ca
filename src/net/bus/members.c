/* SPDX-License-Identifier: MIT */
/* Presence of members: beats in CLUSTER.beat, requests for them in CLUSTER.who. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/time.h"
#include "bus/wire.h"

enum { MISSED_BEATS = 3, MOST_MEMBERS = 10000, MOST_WAITING = 4 * MOST_MEMBERS, LONGEST_JITTER_MS = 250 };
enum { COME_BACK_S = 10 }; /* twice the longest pause between attempts to connect */
enum { SUBJECT_ROOM = BUS_MAX_SUBJECT + 1 };

static int subject_below(const char *cluster, const char *below, char *out, struct err *e)
{
    if ((size_t)snprintf(out, SUBJECT_ROOM, "%s.%s", cluster, below) >= SUBJECT_ROOM)
        return err_set(e, ERR_ARG, "cluster '%.40s…': its name is too long", cluster);
    return bus_subject_check(out, false, e);
}

/* ---- member ---- */

struct bus_member {
    struct bus *bus;
    struct loop *loop;
    struct wire_sub *who;
    int64_t period_ns;
    char subject[SUBJECT_ROOM];
    pthread_mutex_t lock; /* guards all below */
    struct beat beat;     /* strings of `beat` are owned by the member */
    int64_t due_ns;
};

/* Called with the lock held. Losses without a broker are repaired by the beat that follows the new connection. */
static void tell(struct bus_member *m, enum frame_kind kind)
{
    struct frame f = {.kind = kind, .parts = 1, .number = (int32_t)(m->period_ns / 1000000)};
    f.whole_bytes = bus_beat_bytes(&m->beat);
    f.id = atomic_fetch_add(&m->bus->next_message, 1);
    if (!m->bus->kind->connected(m->bus->wire))
        return;
    uint8_t *buffer = mem_alloc(FRAME_BYTES + f.whole_bytes);
    bus_frame_write(&f, buffer);
    bus_beat_write(&m->beat, buffer + FRAME_BYTES);
    m->bus->kind->publish(m->bus->wire, m->subject, NULL, buffer, FRAME_BYTES + f.whole_bytes, NULL);
    free(buffer);
}

static int64_t beat_turn(void *arg)
{
    struct bus_member *m = arg;
    int64_t now = time_monotonic_ns();
    pthread_mutex_lock(&m->lock);
    if (now >= m->due_ns) {
        tell(m, FRAME_BEAT);
        m->due_ns = now + m->period_ns;
    }
    int64_t due = m->due_ns;
    pthread_mutex_unlock(&m->lock);
    return due;
}

static void beat_by(struct bus_member *m, int64_t when_ns)
{
    pthread_mutex_lock(&m->lock);
    m->due_ns = when_ns < m->due_ns ? when_ns : m->due_ns;
    pthread_mutex_unlock(&m->lock);
    bus_loop_kick(m->loop);
}

/* Schedules a beat with a random delay: all members are asked at once, and must not answer at once. */
static void who_is_there(void *arg, const struct wire_message *message)
{
    struct bus_member *m = arg;
    int64_t jitter_ms = m->period_ns / 4000000 < LONGEST_JITTER_MS ? m->period_ns / 4000000 : LONGEST_JITTER_MS;
    beat_by(m, time_monotonic_ns() + (int64_t)arc4random_uniform((uint32_t)jitter_ms + 1) * 1000000);
}

static void nothing(void *arg) {}

static void member_free(struct bus_member *m)
{
    struct bus *b = m->bus;
    pthread_mutex_destroy(&m->lock);
    free((void *)m->beat.name);
    free((void *)m->beat.instance);
    free((void *)m->beat.said);
    free(m);
    bus_unref(b);
}

static int check_member(const char *name, const char *instance, int64_t period_ns, struct err *e)
{
    size_t n = strlen(name), i = strlen(instance);
    if (!n || n > BUS_MAX_NAME || !i || i > BUS_MAX_NAME)
        return err_set(e, ERR_ARG, "member '%.40s': its name and its instance have 1 to %d bytes", name, BUS_MAX_NAME);
    if (period_ns < 1000000 || period_ns > INT32_MAX * INT64_C(1000000))
        return err_set(e, ERR_ARG, "member '%s': a period of 1 ms to 24 days is possible", name);
    return 0;
}

int bus_join(struct bus *b, const char *cluster, const char *name, const char *instance, int64_t period_ns,
    struct bus_member **out, struct err *e)
{
    char who[SUBJECT_ROOM];
    *out = NULL;
    struct bus_member *m = mem_zalloc(sizeof *m);
    m->bus = bus_ref(b);
    m->period_ns = period_ns;
    pthread_mutex_init(&m->lock, NULL);
    m->beat = (struct beat){mem_strdup(name), mem_strdup(instance), strlen(name), strlen(instance), NULL, 0};
    int rc = check_member(name, instance, period_ns, e);
    rc = rc ? rc : subject_below(cluster, "beat", m->subject, e);
    rc = rc ? rc : subject_below(cluster, "who", who, e);
    rc = rc ? rc : bus_loop_start(beat_turn, nothing, m, &m->loop, e);
    if (!rc) {
        rc = b->kind->subscribe(b->wire, who, who_is_there, nothing, m, &m->who, e);
        if (rc)
            bus_loop_stop(m->loop);
    }
    if (rc)
        member_free(m);
    else
        *out = m;
    return rc;
}

int bus_member_say(struct bus_member *m, const void *data, size_t n, struct err *e)
{
    if (n > BUS_MAX_SAID)
        return err_set(
            e, ERR_LIMIT, "member '%s': %zu bytes to say: at most %d are told", m->beat.name, n, BUS_MAX_SAID);
    uint8_t *said = n ? memcpy(mem_alloc(n), data, n) : NULL;
    pthread_mutex_lock(&m->lock);
    free((void *)m->beat.said);
    m->beat.said = said;
    m->beat.said_n = n;
    pthread_mutex_unlock(&m->lock);
    beat_by(m, 0);
    return 0;
}

void bus_leave(struct bus_member *m)
{
    if (!m)
        return;
    m->bus->kind->unsubscribe(m->who);
    bus_loop_stop(m->loop);
    pthread_mutex_lock(&m->lock);
    tell(m, FRAME_BYE);
    pthread_mutex_unlock(&m->lock);
    member_free(m);
}

/* ---- watching members ---- */

struct known {
    char *name, *instance;
    void *said;
    size_t said_n;
    int64_t period_ns, heard_ns;
};

struct waiting {
    enum frame_kind kind;
    struct known is;
};

struct bus_members {
    struct bus *bus;
    struct loop *loop;
    struct wire_sub *beats;
    struct bus_hook hook;
    bus_member_handler *handler;
    void *arg;
    char who[SUBJECT_ROOM];
    atomic_bool hears;    /* the subscription is made */
    pthread_mutex_t lock; /* guards what waits */
    VEC(struct waiting) waiting;
    /* Used by the loop's thread only: */
    VEC(struct known) known;
    uint64_t epoch;
    bool asked;
};

static void known_free(struct known *k)
{
    free(k->name);
    free(k->instance);
    free(k->said);
}

static char *string_of(const char *s, size_t n)
{
    char *copy = mem_alloc(n + 1);
    memcpy(copy, s, n);
    copy[n] = '\0';
    return copy;
}

/* Runs in the subscription's thread; queues news for the loop's turn. */
static void hear(void *arg, const struct wire_message *message)
{
    struct bus_members *w = arg;
    struct frame f;
    struct beat b;
    if (bus_frame_read(message->data, message->n, &f, NULL) || (f.kind != FRAME_BEAT && f.kind != FRAME_BYE) ||
        bus_beat_read(&f, &b, NULL))
        return;
    struct known k = {.name = string_of(b.name, b.name_n),
        .instance = string_of(b.instance, b.instance_n),
        .said = b.said_n ? memcpy(mem_alloc(b.said_n), b.said, b.said_n) : NULL,
        .said_n = b.said_n,
        .period_ns = f.number * INT64_C(1000000),
        .heard_ns = time_monotonic_ns()};
    pthread_mutex_lock(&w->lock);
    bool room = w->waiting.n < MOST_WAITING;
    if (room)
        vec_push(&w->waiting, ((struct waiting){f.kind, k}));
    pthread_mutex_unlock(&w->lock);
    if (room)
        bus_loop_kick(w->loop);
    else
        known_free(&k);
}

static void report(struct bus_members *w, enum bus_member_event event, const struct known *k)
{
    const struct bus_member_news news = {event, k->name, k->instance, k->said, k->said_n};
    if (!bus_loop_stops(w->loop))
        w->handler(w->arg, &news);
}

static void forget(struct bus_members *w, size_t i, enum bus_member_event event)
{
    struct known k = w->known.v[i];
    w->known.v[i] = w->known.v[--w->known.n];
    report(w, event, &k);
    known_free(&k);
}

/* Takes over received beats. */
static void learn(struct bus_members *w, enum frame_kind kind, struct known heard)
{
    size_t i = 0;
    while (i < w->known.n && strcmp(w->known.v[i].instance, heard.instance) != 0)
        i++;
    bool is_known = i < w->known.n;
    if (kind == FRAME_BYE || (!is_known && w->known.n >= MOST_MEMBERS)) {
        if (is_known)
            forget(w, i, BUS_LEFT);
        known_free(&heard);
        return;
    }
    if (!is_known) {
        vec_push(&w->known, heard);
        report(w, BUS_JOINED, &w->known.v[i]);
        return;
    }
    struct known *k = &w->known.v[i];
    bool same = !strcmp(k->name, heard.name) && k->said_n == heard.said_n &&
        (!k->said_n || !memcmp(k->said, heard.said, k->said_n));
    known_free(k);
    *k = heard;
    if (!same)
        report(w, BUS_CHANGED, k);
}

/* Asks all members after the broker was away: silence meant nothing then. The members had no broker either, and may
 * come back later than this node. */
static void ask_again(struct bus_members *w, int64_t now)
{
    uint64_t epoch = w->bus->kind->epoch(w->bus->wire);
    if (epoch != w->epoch)
        w->asked = false;
    w->epoch = epoch;
    if (w->asked || !atomic_load(&w->hears) || !w->bus->kind->connected(w->bus->wire))
        return;
    for (size_t i = 0; i < w->known.n; i++)
        w->known.v[i].heard_ns = now + COME_BACK_S * NS_PER_S;
    w->asked = !w->bus->kind->publish(w->bus->wire, w->who, NULL, "", 0, NULL);
}

/* Returns when the next is due. */
static int64_t expire(struct bus_members *w, int64_t now)
{
    int64_t due = INT64_MAX;
    bool connected = w->asked && w->bus->kind->connected(w->bus->wire);
    for (size_t i = 0; i < w->known.n;) {
        int64_t end = w->known.v[i].heard_ns + MISSED_BEATS * w->known.v[i].period_ns;
        if (connected && end <= now) {
            forget(w, i, BUS_EXPIRED);
            continue;
        }
        end = end > now ? end : now + w->known.v[i].period_ns;
        due = end < due ? end : due;
        i++;
    }
    return due;
}

static int64_t members_turn(void *arg)
{
    struct bus_members *w = arg;
    pthread_mutex_lock(&w->lock);
    struct waiting *heard = w->waiting.v;
    size_t n = w->waiting.n;
    w->waiting.v = NULL;
    w->waiting.n = w->waiting.cap = 0;
    pthread_mutex_unlock(&w->lock);
    for (size_t i = 0; i < n; i++)
        learn(w, heard[i].kind, heard[i].is);
    free(heard);
    int64_t now = time_monotonic_ns();
    ask_again(w, now);
    return expire(w, now);
}

static void members_free(void *arg)
{
    struct bus_members *w = arg;
    struct bus *b = w->bus;
    for (size_t i = 0; i < w->waiting.n; i++)
        known_free(&w->waiting.v[i].is);
    for (size_t i = 0; i < w->known.n; i++)
        known_free(&w->known.v[i]);
    vec_free(&w->waiting);
    vec_free(&w->known);
    pthread_mutex_destroy(&w->lock);
    free(w);
    bus_unref(b);
}

static void connection_changed(void *arg)
{
    struct bus_members *w = arg;
    bus_loop_kick(w->loop);
}

int bus_watch_members(
    struct bus *b, const char *cluster, bus_member_handler *handler, void *arg, struct bus_members **out, struct err *e)
{
    char beats[SUBJECT_ROOM];
    *out = NULL;
    struct bus_members *w = mem_zalloc(sizeof *w);
    w->bus = bus_ref(b);
    w->handler = handler;
    w->arg = arg;
    w->epoch = b->kind->epoch(b->wire);
    w->hook = (struct bus_hook){.changed = connection_changed, .arg = w};
    pthread_mutex_init(&w->lock, NULL);
    int rc = subject_below(cluster, "beat", beats, e);
    rc = rc ? rc : subject_below(cluster, "who", w->who, e);
    *out = w; /* the handler may look at it */
    rc = rc ? rc : bus_loop_start(members_turn, members_free, w, &w->loop, e);
    if (rc) {
        *out = NULL;
        members_free(w);
        return rc;
    }
    rc = b->kind->subscribe(b->wire, beats, hear, nothing, w, &w->beats, e);
    if (rc) {
        *out = NULL;
        bus_loop_stop(w->loop);
        return rc;
    }
    bus_hook_add(b, &w->hook);
    atomic_store(&w->hears, true);
    bus_loop_kick(w->loop); /* now it asks */
    return 0;
}

void bus_members_stop(struct bus_members *w)
{
    if (!w)
        return;
    bus_hook_remove(w->bus, &w->hook);
    w->bus->kind->unsubscribe(w->beats);
    bus_loop_stop(w->loop);
}
