/* SPDX-License-Identifier: MIT */
/* Watching a table over NATS. The broker sends each change to an inbox, numbered. Whatever may have lost one (a gap,
 * silence, another connection, a broker that knows nothing any more) ends in the same way: all is asked for anew. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/time.h"
#include "bus/broker.h"

enum { SILENCE_S = 7, TRY_AGAIN_MS = 500, LOOK_AGAIN_MS = 250, LOOK_KEY_MS = 7500, STEP_S = 2, CALM_S = 10 };
/* Doublings of these times for a slow broker: requests that nobody waits for any more would only keep it busy. */
enum { MOST_DOUBLINGS = 5 };

struct waiting {
    struct waiting *next;
    natsMsg *msg;
};

/* Key that was reported. */
struct key {
    bool is_there;
    int64_t end_ns; /* monotonic, when it may be gone: it is looked for then; INT64_MAX */
};

struct broker_watch {
    struct bus_watch base;
    struct broker_table table; /* a copy, which no one closes */
    char *key;                 /* NULL: all */
    bus_entry_handler *handler;
    void *arg;
    struct loop *loop;
    struct bus_hook hook;
    pthread_mutex_t lock; /* guards what waits */
    struct waiting *first, **end;
    /* Used by the loop's thread only: */
    struct wire_sub *sub;
    uint64_t epoch, seen; /* consumer sequence */
    int64_t heard_ns, again_ns;
    unsigned doublings; /* grow when the broker does not answer in time; shrink by one after CALM_S */
    int64_t calm_ns;    /* last change of doublings */
    bool has_told, all_told;
    struct strings names;
    VEC(struct key) keys; /* indexed by number of the name */
};

static void nothing(void *arg) {}

static void came(void *arg, natsMsg *m)
{
    struct broker_watch *w = arg;
    struct waiting *i = mem_alloc(sizeof *i);
    *i = (struct waiting){.msg = m};
    pthread_mutex_lock(&w->lock);
    *w->end = i;
    w->end = &i->next;
    pthread_mutex_unlock(&w->lock);
    bus_loop_kick(w->loop);
}

static natsMsg *next_message(struct broker_watch *w)
{
    pthread_mutex_lock(&w->lock);
    struct waiting *i = w->first;
    natsMsg *m = i ? i->msg : NULL;
    if (i) {
        w->first = i->next;
        if (!w->first)
            w->end = &w->first;
        free(i);
    }
    pthread_mutex_unlock(&w->lock);
    return m;
}

static void tell(struct broker_watch *w, const struct bus_entry *entry)
{
    if (bus_loop_stops(w->loop))
        return;
    w->has_told = true;
    w->handler(w->arg, entry);
}

/* ---- beginning ---- */

static void end_following(struct broker_watch *w)
{
    if (w->sub)
        bus_broker_unsubscribe(w->sub);
    w->sub = NULL;
    for (natsMsg *m; (m = next_message(w));)
        natsMsg_Destroy(m);
}

static int64_t patience_ns(const struct broker_watch *w, int64_t ns)
{
    return ns << w->doublings;
}

static void note_late(struct broker_watch *w)
{
    w->doublings += w->doublings < MOST_DOUBLINGS;
    w->calm_ns = time_monotonic_ns();
}

static void note_sign_of_life(struct broker_watch *w)
{
    w->heard_ns = time_monotonic_ns();
    if (!w->doublings || w->heard_ns - w->calm_ns < CALM_S * NS_PER_S)
        return;
    w->doublings--;
    w->calm_ns = w->heard_ns;
}

static int follow(struct broker_watch *w, uint64_t *pending)
{
    const int64_t deadline = time_monotonic_ns() + patience_ns(w, STEP_S * NS_PER_S);
    char inbox[BROKER_INBOX];
    bus_broker_inbox(w->table.broker, inbox);
    int rc = bus_broker_subscribe_raw(w->table.broker, inbox, came, nothing, w, &w->sub, NULL);
    rc = rc ? rc : bus_broker_table_follow(&w->table, w->key, inbox, deadline, pending, NULL);
    if (rc && time_monotonic_ns() >= deadline && bus_connected(w->base.bus))
        note_late(w);
    return rc;
}

static void begin_anew(struct broker_watch *w)
{
    uint64_t pending = 0;
    end_following(w);
    w->epoch = atomic_load(&w->table.broker->epoch);
    const int64_t wait_ns = (TRY_AGAIN_MS + arc4random_uniform(TRY_AGAIN_MS)) * INT64_C(1000000);
    w->again_ns = time_monotonic_ns() + wait_ns;
    if (!bus_connected(w->base.bus))
        return;
    if (follow(w, &pending)) {
        end_following(w);
        w->again_ns = time_monotonic_ns() + patience_ns(w, wait_ns);
        return;
    }
    w->heard_ns = time_monotonic_ns();
    w->again_ns = INT64_MAX;
    w->seen = 0;
    w->all_told = false;
    strings_fini(&w->names);
    w->names = (struct strings){0};
    w->keys.n = 0;
    if (w->has_told)
        tell(w, &(struct bus_entry){.kind = BUS_ENTRY_ANEW});
    if (!pending) {
        tell(w, &(struct bus_entry){.kind = BUS_ENTRY_ALL});
        w->all_told = true;
    }
}

/* ---- entries ---- */

static struct key *key_of(struct broker_watch *w, const char *name)
{
    uint32_t i = strings_intern(&w->names, name, strlen(name));
    while (w->keys.n <= i)
        vec_push(&w->keys, ((struct key){false, INT64_MAX}));
    return &w->keys.v[i];
}

/* Returns when to look whether a single key is still there, which is cheap. */
static int64_t look_at_key(const struct broker_watch *w)
{
    return w->key ? time_monotonic_ns() + (LOOK_KEY_MS + arc4random_uniform(LOOK_KEY_MS)) * INT64_C(1000000)
                  : INT64_MAX;
}

/* Returns the end of the entry's lifetime. The broker's time of the put is limited to possible values. */
static int64_t end_of(const struct broker_watch *w, const struct bus_broker_mark *mark)
{
    int64_t ttl = w->table.real_ttl_ns, age = time_now_ns() - mark->time_ns;
    if (ttl <= 0)
        return look_at_key(w);
    age = age < 0 ? 0 : age > ttl ? ttl : age;
    return time_monotonic_ns() + ttl - age;
}

static void take_entry(struct broker_watch *w, const struct bus_entry *entry, const struct bus_broker_mark *mark)
{
    struct key *k = key_of(w, entry->key);
    bool was_there = k->is_there;
    k->is_there = entry->kind == BUS_ENTRY_PUT;
    k->end_ns = k->is_there ? end_of(w, mark) : INT64_MAX;
    if (k->is_there || was_there)
        tell(w, entry);
}

/* Returns whether the last messages are missing: a sign of life has the number sent. */
static bool has_missed(const struct broker_watch *w, natsMsg *m)
{
    const char *last = NULL;
    return natsMsgHeader_Get(m, "Nats-Last-Consumer", &last) == NATS_OK && strtoull(last, NULL, 10) != w->seen;
}

/* False: something was lost. */
static bool take(struct broker_watch *w, natsMsg *m)
{
    struct bus_entry entry;
    struct bus_broker_mark mark;
    if (!bus_broker_table_entry(&w->table, m, &entry, &mark))
        return !has_missed(w, m);
    if (mark.consumer_seq != ++w->seen)
        return false;
    take_entry(w, &entry, &mark);
    if (!w->all_told && !mark.pending) {
        w->all_told = true;
        tell(w, &(struct bus_entry){.kind = BUS_ENTRY_ALL});
    }
    return true;
}

static bool take_waiting(struct broker_watch *w)
{
    bool whole = true;
    for (natsMsg *m; whole && !bus_loop_stops(w->loop) && (m = next_message(w));) {
        note_sign_of_life(w);
        whole = take(w, m);
        natsMsg_Destroy(m);
    }
    return whole;
}

/* ---- time ---- */

/* Checks a key: the broker sends no message when an entry expires or is purged. */
static void look_after(struct broker_watch *w, uint32_t i)
{
    void *data = NULL;
    size_t n;
    uint64_t revision;
    const char *name = strings_get(&w->names, i);
    int rc = bus_broker_table_get(&w->table.base, name, &data, &n, &revision, NULL);
    free(data);
    if (rc == ERR_NOTFOUND) {
        w->keys.v[i] = (struct key){false, INT64_MAX};
        tell(w, &(struct bus_entry){.kind = BUS_ENTRY_REMOVED, .key = name});
    } else {
        w->keys.v[i].end_ns = w->table.real_ttl_ns > 0 ? time_monotonic_ns() + LOOK_AGAIN_MS * INT64_C(1000000)
                                                       : look_at_key(w);
    }
}

/* Returns when the next is due. */
static int64_t expire(struct broker_watch *w)
{
    int64_t due = INT64_MAX;
    for (uint32_t i = 0; i < w->keys.n && !bus_loop_stops(w->loop); i++) {
        if (w->keys.v[i].end_ns <= time_monotonic_ns() && bus_connected(w->base.bus))
            look_after(w, i);
        due = w->keys.v[i].end_ns < due ? w->keys.v[i].end_ns : due;
    }
    return due;
}

static int64_t watch_turn(void *arg)
{
    struct broker_watch *w = arg;
    bool whole = w->sub && w->epoch == atomic_load(&w->table.broker->epoch) && take_waiting(w);
    int64_t now = time_monotonic_ns(), silent = w->heard_ns + patience_ns(w, SILENCE_S * NS_PER_S);
    if (whole && now < silent) {
        int64_t due = w->all_told ? expire(w) : INT64_MAX;
        return due < silent ? due : silent;
    }
    if (whole)
        note_late(w);
    if (!w->sub && now < w->again_ns && w->epoch == atomic_load(&w->table.broker->epoch))
        return w->again_ns;
    if (!bus_loop_stops(w->loop))
        begin_anew(w);
    return w->sub ? time_monotonic_ns() : w->again_ns;
}

/* ---- lifetime of a watch ---- */

static void connection_changed(void *arg)
{
    struct broker_watch *w = arg;
    bus_loop_kick(w->loop);
}

static void watch_ended(void *arg)
{
    struct broker_watch *w = arg;
    struct bus *b = w->base.bus;
    end_following(w);
    strings_fini(&w->names);
    vec_free(&w->keys);
    free(w->key);
    pthread_mutex_destroy(&w->lock);
    free(w);
    bus_unref(b);
}

int bus_broker_table_watch(struct bus_table *base, const char *key, bus_entry_handler *handler, void *arg,
    struct bus_watch **out, struct err *e)
{
    struct broker_watch *w = mem_zalloc(sizeof *w);
    w->base.bus = bus_ref(base->bus);
    w->table = *(struct broker_table *)base;
    w->key = key ? mem_strdup(key) : NULL;
    w->handler = handler;
    w->arg = arg;
    w->end = &w->first;
    w->hook = (struct bus_hook){.changed = connection_changed, .arg = w};
    pthread_mutex_init(&w->lock, NULL);
    *out = &w->base; /* the handler may look at it */
    int rc = bus_loop_start(watch_turn, watch_ended, w, &w->loop, e);
    if (rc) {
        *out = NULL;
        watch_ended(w);
        return rc;
    }
    bus_hook_add(w->base.bus, &w->hook);
    return 0;
}

void bus_broker_watch_stop(struct bus_watch *base)
{
    struct broker_watch *w = (struct broker_watch *)base;
    bus_hook_remove(base->bus, &w->hook);
    bus_loop_stop(w->loop);
}
