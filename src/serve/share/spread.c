/* SPDX-License-Identifier: MIT */
/* Client of indexing by nodes. It puts an entry for each trace into the table of shared traces, and an item into the
 * work queue, and reads the results in the table. An item may be lost or come twice; the entry counts. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/time.h"
#include "base/wait.h"
#include "bus/bus.h"
#include "share/shared.h"

#define LOOK_NS (NS_PER_S / 5)  /* interval of checks whether the caller wants to stop */
#define QUIET_NS (5 * NS_PER_S) /* time without news after which items, maybe lost, are put again */

#define FIRST_NS (3 * NS_PER_S) /* timeout for the first node to announce itself */

struct job {
    const char *path; /* the caller's */
    char key[SHARED_KEY];
    uint64_t asked; /* revision of the entry that asks for it; 0: none yet */
    bool ended;
    /* State in the table, under the lock: */
    struct arena arena;
    struct shared_trace now;
    uint64_t revision; /* 0: no entry in the table */
};

struct spread {
    const struct share_index_options *o;
    struct bus_table *table;
    struct bus_queue *queue;
    struct bus_members *members;
    struct bus_watch *watch;
    struct job *jobs;
    size_t n, left;
    bool asked_any;
    struct map by_key;    /* hash of the key: number of the job */
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t news;
    bool changed, anew, any_node; /* any_node: a node was seen */
    size_t nodes;
};

/* ---- news ---- */

static void signal_news(struct spread *s)
{
    s->changed = true;
    pthread_cond_signal(&s->news);
}

static struct job *job_of(struct spread *s, const char *key)
{
    const uint64_t *at = map_find(&s->by_key, map_hash(key, strlen(key)));
    return at && !strcmp(s->jobs[*at].key, key) ? &s->jobs[*at] : NULL;
}

/* Takes an entry. An unreadable one counts as none: the trace is asked for again. */
static void take_entry(struct job *j, const struct bus_entry *entry)
{
    arena_fini(&j->arena);
    j->arena = (struct arena){0};
    j->revision = 0;
    if (entry->kind == BUS_ENTRY_PUT && !share_entry_check(&j->arena, entry, &j->now, NULL))
        j->revision = entry->revision;
}

static void on_entry(void *arg, const struct bus_entry *entry)
{
    struct spread *s = arg;
    pthread_mutex_lock(&s->lock);
    struct job *j = entry->key ? job_of(s, entry->key) : NULL;
    if (j) {
        take_entry(j, entry);
        s->anew |= entry->kind == BUS_ENTRY_REMOVED; /* removed by somebody who did not know that it is awaited */
        signal_news(s);
    }
    if (entry->kind == BUS_ENTRY_ANEW)
        for (size_t i = 0; i < s->n; i++)
            s->jobs[i].revision = 0;
    if (entry->kind == BUS_ENTRY_ALL) {
        s->anew = true;
        signal_news(s);
    }
    pthread_mutex_unlock(&s->lock);
}

static void on_member(void *arg, const struct bus_member_news *news)
{
    struct spread *s = arg;
    pthread_mutex_lock(&s->lock);
    s->nodes += news->event == BUS_JOINED;
    s->any_node = true;
    s->nodes -= news->event == BUS_LEFT || news->event == BUS_EXPIRED;
    signal_news(s);
    pthread_mutex_unlock(&s->lock);
}

/* ---- asking ---- */

/* Puts the entry that asks for it. What was shared stays shared meanwhile. */
static int put_entry(struct spread *s, struct job *j, struct err *e)
{
    int rc = ERR_STALE;
    while (rc == ERR_STALE) {
        struct arena a = {0};
        struct shared_trace t = {0};
        struct text out = {.fd = -1};
        void *bytes = NULL;
        size_t n = 0;
        uint64_t revision = 0;
        rc = bus_table_get(s->table, j->key, &bytes, &n, &revision, e);
        if (rc && rc != ERR_NOTFOUND)
            return rc;
        revision = rc ? 0 : revision;
        if (!rc && share_entry_read(&a, bytes, n, &t, NULL))
            t = (struct shared_trace){0};
        struct shared_trace wanted = {.work = {.path = j->path, .state = SHARE_WORK_WAITING},
            .shared = t.shared,
            .force = s->o->force,
            .keep_ns = s->o->keep_ns};
        share_entry_write(&wanted, &out);
        rc = bus_table_put_if(s->table, j->key, out.v, out.n, revision, &j->asked, e);
        free(bytes);
        text_fini(&out);
        arena_fini(&a);
    }
    return rc;
}

static int ask_for(struct spread *s, struct job *j, struct err *e)
{
    int rc = put_entry(s, j, e);
    if (rc)
        return rc;
    s->asked_any = true;
    return bus_queue_add(s->queue, j->key, j->path, strlen(j->path), NULL, e);
}

/* Asks for traces not asked for yet, or lost with the broker's table. A broker that goes away meanwhile ends nothing:
 * the table is reported anew once it is back, and the rest is asked for then. */
static int ask_for_missing(struct spread *s, struct err *e)
{
    for (size_t i = 0; i < s->n; i++) {
        struct job *j = &s->jobs[i];
        pthread_mutex_lock(&s->lock);
        bool missing = !j->ended && (!j->asked || j->revision < j->asked);
        pthread_mutex_unlock(&s->lock);
        if (missing && s->o->stop && s->o->stop(s->o->arg))
            return err_set(e, ERR_CANCELLED, "stopped");
        int rc = missing ? ask_for(s, j, e) : 0;
        if (rc)
            return rc == ERR_TIMEOUT && s->asked_any ? 0 : rc;
    }
    return 0;
}

/* An id is in the queue once: this changes something only where the item was lost, or done for an older question. */
static void add_again(struct spread *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (!s->jobs[i].ended &&
            bus_queue_add(s->queue, s->jobs[i].key, s->jobs[i].path, strlen(s->jobs[i].path), NULL, NULL))
            return;
}

/* ---- results ---- */

/* Reports ended jobs. Called with the lock held, which is released during the callback. */
static void tell_ended(struct spread *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct job *j = &s->jobs[i];
        if (j->ended || !j->asked || j->revision <= j->asked || j->now.work.state == SHARE_WORK_WAITING)
            continue;
        j->ended = true;
        s->left--;
        struct arena a = {0};
        struct share_work w = j->now.work;
        w.path = j->path;
        w.node = arena_strdup(&a, w.node);
        w.text = arena_strdup(&a, w.text);
        pthread_mutex_unlock(&s->lock);
        if (s->o->ended)
            s->o->ended(s->o->arg, &w);
        arena_fini(&a);
        pthread_mutex_lock(&s->lock);
    }
}

static int await_all(struct spread *s, struct err *e)
{
    int64_t heard = time_monotonic_ns(), seen = heard;
    int rc = 0;
    pthread_mutex_lock(&s->lock);
    while (!rc) {
        int64_t now = time_monotonic_ns();
        bool anew = s->anew, quiet = now - heard >= QUIET_NS;
        int64_t patience = s->any_node ? s->o->patience_ns : FIRST_NS;
        heard = s->changed || quiet ? now : heard;
        seen = s->nodes ? now : seen;
        s->changed = s->anew = false;
        tell_ended(s);
        if (!s->left)
            break;
        pthread_mutex_unlock(&s->lock);
        if (anew)
            rc = ask_for_missing(s, e);
        if (quiet)
            add_again(s);
        if (!rc && s->o->stop && s->o->stop(s->o->arg))
            rc = err_set(e, ERR_CANCELLED, "stopped");
        else if (!rc && now - seen >= patience)
            rc = err_set(e, ERR_NOTFOUND,
                "no node of the cluster takes work: `weft serve --cluster URL --node NAME --share DIR` starts one");
        pthread_mutex_lock(&s->lock);
        if (!rc && !s->changed)
            wait_until(&s->news, &s->lock, now + LOOK_NS);
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

/* Withdraws jobs that nobody has begun. Traces shared before stay shared. */
static void withdraw(struct spread *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct job *j = &s->jobs[i];
        struct arena a = {0};
        struct text t = {.fd = -1};
        void *bytes = NULL;
        size_t n;
        uint64_t revision;
        struct shared_trace now;
        if (j->ended || !j->asked)
            continue;
        int rc = bus_table_get(s->table, j->key, &bytes, &n, &revision, NULL);
        rc = rc ? rc : share_entry_read(&a, bytes, n, &now, NULL);
        if (!rc && now.work.state == SHARE_WORK_WAITING && now.shared) {
            now.work.state = SHARE_WORK_CURRENT;
            share_entry_write(&now, &t);
            bus_table_put_if(s->table, j->key, t.v, t.n, revision, NULL, NULL);
        } else if (!rc && now.work.state == SHARE_WORK_WAITING) {
            bus_table_remove(s->table, j->key, NULL);
        }
        free(bytes);
        text_fini(&t);
        arena_fini(&a);
        if (rc == ERR_TIMEOUT)
            return;
    }
}

/* ---- forgetting ---- */

struct forgetting {
    const char *const *paths;
    size_t n;
    bool only_below; /* skips the traces at the paths themselves */
    size_t forgotten;
    VEC(char *) keys;
};

static void on_shared(void *arg, const struct bus_entry *entry)
{
    struct forgetting *f = arg;
    struct arena a = {0};
    struct shared_trace t;
    bool meant = false;
    if (entry->kind == BUS_ENTRY_PUT && !share_entry_check(&a, entry, &t, NULL))
        for (size_t i = 0; i < f->n && !meant; i++)
            meant = (!strcmp(f->paths[i], ".") || file_is_below(t.work.path, f->paths[i])) &&
                !(f->only_below && !strcmp(t.work.path, f->paths[i]));
    for (size_t i = 0; i < f->keys.n && meant; i++) /* skip repeats: an entry that changes now is reported twice */
        meant = strcmp(f->keys.v[i], entry->key) != 0;
    if (meant)
        vec_push(&f->keys, mem_strdup(entry->key));
    arena_fini(&a);
}

static int forget(struct bus_table *table, struct forgetting *f, struct err *e)
{
    int rc = bus_table_all(table, on_shared, f, e);
    for (size_t i = 0; i < f->keys.n; i++) {
        rc = rc ? rc : bus_table_remove(table, f->keys.v[i], e);
        free(f->keys.v[i]);
    }
    f->forgotten = f->keys.n;
    vec_free(&f->keys);
    return rc;
}

/* ---- beginning and end ---- */

static void add_jobs(struct spread *s, const char *const *paths, size_t n)
{
    s->jobs = mem_zalloc((n + 1) * sizeof *s->jobs);
    for (size_t i = 0; i < n; i++) {
        struct job *j = &s->jobs[s->n];
        bool fresh;
        j->path = paths[i];
        share_key(j->path, j->key);
        uint64_t *at = map_put(&s->by_key, map_hash(j->key, strlen(j->key)), &fresh);
        if (fresh)
            *at = s->n++;
    }
    s->left = s->n;
}

static int spread_open(struct spread *s, struct bus *bus, const char *cluster, struct err *e)
{
    char subject[SHARED_SUBJECT];
    int rc = share_members_subject(cluster, subject, e);
    if (!rc)
        rc = share_open_table(bus, cluster, &s->table, e);
    if (!rc)
        rc = share_open_queue(bus, cluster, &s->queue, e);
    if (!rc)
        rc = bus_watch_members(bus, subject, on_member, s, &s->members, e);
    if (!rc)
        rc = bus_table_watch(s->table, on_entry, s, &s->watch, e);
    return rc;
}

static void spread_close(struct spread *s)
{
    bus_watch_stop(s->watch);
    bus_members_stop(s->members);
    if (s->queue)
        bus_queue_close(s->queue);
    if (s->table)
        bus_table_close(s->table);
    for (size_t i = 0; i < s->n; i++)
        arena_fini(&s->jobs[i].arena);
    free(s->jobs);
    map_fini(&s->by_key);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->news);
}

int share_index(struct bus *bus, const struct share_index_options *o, const char *const *paths, size_t n, struct err *e)
{
    struct spread s = {.o = o, .anew = true};
    pthread_mutex_init(&s.lock, NULL);
    wait_init(&s.news);
    add_jobs(&s, paths, n);
    int rc = spread_open(&s, bus, o->cluster ? o->cluster : CLUSTER_DEFAULT, e);
    /* Path of a session. With only one archive it may have been named by that; now it is one trace of several. */
    if (!rc)
        rc = forget(s.table, &(struct forgetting){.paths = paths, .n = n, .only_below = true}, e);
    if (!rc)
        rc = await_all(&s, e);
    if (rc == ERR_CANCELLED || rc == ERR_NOTFOUND)
        withdraw(&s);
    spread_close(&s);
    return rc;
}

int share_remove(
    struct bus *bus, const char *cluster, const char *const *paths, size_t n, size_t *forgotten, struct err *e)
{
    struct forgetting f = {.paths = paths, .n = n};
    struct bus_table *table = NULL;
    int rc = share_open_table(bus, cluster ? cluster : CLUSTER_DEFAULT, &table, e);
    if (!rc)
        rc = forget(table, &f, e);
    *forgotten = f.forgotten;
    if (table)
        bus_table_close(table);
    return rc;
}
