/* SPDX-License-Identifier: MIT */
#include "share/worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/machine.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/time.h"
#include "base/wait.h"
#include "bus/bus.h"
#include "index/index.h"

enum {
    MOST_THREADS = 16,
    MOST_TAKEN = 5,  /* tries per item: it may crash its workers */
    MOST_ABSENT = 3, /* number of nodes that may lack the directory */
    NICENESS = 10    /* priority below that of answers */
};
#define TAKE_NS (2 * NS_PER_S)
#define WORKING_NS (4 * NS_PER_S) /* third of the time after which an item goes to another node */
#define PAUSE_NS (NS_PER_S / 2)

struct worker {
    struct bus *bus;
    struct share_worker_options o;
    struct bus_table *table;
    struct bus_queue *queue;
    unsigned n_threads;
    pthread_t threads[MOST_THREADS], ticker;
    atomic_bool stop;
    atomic_uint numbered;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t stopping;
    struct bus_item *items[MOST_THREADS]; /* items in progress, by thread */
};

static bool stopped(void *arg)
{
    const struct worker *w = arg;
    return atomic_load(&w->stop);
}

static void pause_worker(struct worker *w, int64_t ns)
{
    int64_t until = time_monotonic_ns() + ns;
    pthread_mutex_lock(&w->lock);
    while (!stopped(w) && wait_until(&w->stopping, &w->lock, until))
        ;
    pthread_mutex_unlock(&w->lock);
}

/* ---- indexing ---- */

/* Adds notes about parts left out or unreadable. */
static void add_notes(const struct experiment *x, struct arena *a, struct share_work *done)
{
    const struct index_note *notes;
    size_t n = index_experiment_notes(x, &notes), more = 0;
    for (size_t i = 0; i < n; i++) {
        if (notes[i].kind != INDEX_NOTE_LEFT_OUT && notes[i].kind != INDEX_NOTE_INPUT)
            continue;
        if (!more++)
            done->text = arena_strdup(a, notes[i].text);
    }
    if (more > 1)
        done->text = arena_printf(a, "%s (and %zu more)", done->text, more - 1);
    if (more)
        done->state = SHARE_WORK_PARTLY;
}

/* Sets `shared` where a path can go there. */
static void look_at(const struct experiment *x, struct arena *a, struct shared_trace *t)
{
    const struct index_host *hosts;
    const struct index_trace *traces;
    size_t n_hosts = index_experiment_hosts(x, &hosts), n_traces = index_experiment_traces(x, &traces);
    bool built = false;
    for (size_t i = 0; i < n_hosts; i++) {
        t->shared |= hosts[i].graph != NULL;
        built |= hosts[i].built;
        t->work.events += hosts[i].events;
    }
    for (size_t i = 0; i < n_traces; i++)
        built |= traces[i].built;
    t->work.state = built ? SHARE_WORK_BUILT : SHARE_WORK_CURRENT;
    add_notes(x, a, &t->work);
}

/* ERR_CANCELLED: this node stops. ERR_NOTFOUND: the directory is not here. All else is in the entry. */
static int index_it(struct worker *w, struct arena *a, struct shared_trace *t)
{
    int64_t begin = time_monotonic_ns();
    uint64_t memory = machine_memory_bytes() / 4;
    struct err e = {0};
    char *path = NULL;
    struct experiment *x = NULL;
    struct index_options o = {.store = w->o.store,
        .stores = true,
        .user_space = true,
        .join = true,
        .force = t->force,
        .keep_ns = t->keep_ns,
        .memory = memory / w->n_threads,
        .threads = 1,
        .stop = stopped,
        .stop_arg = w};
    t->work.events = 0;
    t->work.node = w->o.node;
    t->work.text = "";
    int rc = share_resolve(w->o.root, t->work.path, &path, &e);
    if (rc == ERR_NOTFOUND) {
        t->work.state = SHARE_WORK_FAILED;
        t->work.text = arena_strdup(a, e.text);
        return rc;
    }
    if (!rc)
        rc = index_experiment_open((const char *const *)&path, 1, &o, &x, &e);
    if (!rc) {
        look_at(x, a, t);
        index_experiment_close(x);
    } else {
        t->work.state = SHARE_WORK_FAILED;
        t->work.text = arena_strdup(a, e.text);
    }
    t->work.took_ns = time_monotonic_ns() - begin;
    free(path);
    return rc == ERR_CANCELLED && stopped(w) ? rc : 0;
}

/* ---- the entry of an item ---- */

/* ERR_NOTFOUND: there is none, or none that makes sense. */
static int read_entry(
    struct worker *w, const char *key, struct arena *a, struct shared_trace *out, uint64_t *revision, struct err *e)
{
    void *bytes;
    size_t n;
    int rc = bus_table_get(w->table, key, &bytes, &n, revision, e);
    if (rc)
        return rc;
    struct bus_entry entry = {.kind = BUS_ENTRY_PUT, .key = key, .data = bytes, .n = n};
    rc = share_entry_check(a, &entry, out, e);
    free(bytes);
    return rc ? ERR_NOTFOUND : 0;
}

/* The client reads the result there. An entry that was withdrawn meanwhile stays so. */
static int write_entry(struct worker *w, const char *key, const struct shared_trace *done, struct err *e)
{
    int rc = ERR_STALE;
    while (rc == ERR_STALE && !stopped(w)) {
        struct arena a = {0};
        struct shared_trace now;
        struct text t = {.fd = -1};
        uint64_t revision;
        rc = read_entry(w, key, &a, &now, &revision, e);
        if (!rc) {
            bool failed = done->work.state == SHARE_WORK_FAILED;
            now.work = done->work;
            now.shared = failed ? now.shared : done->shared;
            share_entry_write(&now, &t);
            rc = bus_table_put_if(w->table, key, t.v, t.n, revision, NULL, e);
        }
        text_fini(&t);
        arena_fini(&a);
    }
    return rc == ERR_NOTFOUND ? 0 : rc;
}

/* ---- items ---- */

enum outcome { DONE, AGAIN };

/* Reads the entry like read_entry, but waits while the broker is away. */
static int await_entry(struct worker *w, const char *key, struct arena *a, struct shared_trace *out, struct err *e)
{
    int rc;
    while ((rc = read_entry(w, key, a, out, NULL, e)) && rc != ERR_NOTFOUND && !stopped(w))
        pause_worker(w, PAUSE_NS);
    return rc;
}

static enum outcome handle(struct worker *w, const struct bus_item *item)
{
    struct arena a = {0};
    struct shared_trace t;
    struct err e = {0};
    enum outcome outcome = DONE;
    int rc = strlen(item->id) == SHARED_KEY - 1 ? await_entry(w, item->id, &a, &t, &e) : ERR_NOTFOUND;
    if (rc || t.work.state != SHARE_WORK_WAITING) {
        /* Withdrawn, or done by a worker that died before it could report, or not from this program. */
        outcome = rc && rc != ERR_NOTFOUND ? AGAIN : DONE;
    } else {
        t.shared = false;
        if (item->times_taken > MOST_TAKEN) {
            t.work.state = SHARE_WORK_FAILED;
            t.work.node = w->o.node;
            t.work.text = "nodes that began it did not come to its end; what they said of it is on their stderr";
        } else {
            rc = index_it(w, &a, &t);
        }
        if (rc == ERR_CANCELLED || (rc == ERR_NOTFOUND && item->times_taken < MOST_ABSENT))
            outcome = AGAIN;
        else
            while (write_entry(w, item->id, &t, &e) && !stopped(w))
                pause_worker(w, PAUSE_NS);
        if (rc == ERR_NOTFOUND && w->o.tell)
            w->o.tell(w->o.arg, t.work.text);
    }
    arena_fini(&a);
    return outcome;
}

static void set_item(struct worker *w, unsigned number, struct bus_item *item)
{
    pthread_mutex_lock(&w->lock);
    w->items[number] = item;
    pthread_mutex_unlock(&w->lock);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    unsigned number = atomic_fetch_add(&w->numbered, 1);
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICENESS); /* Linux: affects this thread only */
    while (!stopped(w)) {
        struct bus_item *item;
        struct err e = {0};
        int64_t begin = time_monotonic_ns();
        if (bus_queue_take(w->queue, begin + TAKE_NS, &item, &e)) {
            if (time_monotonic_ns() < begin + PAUSE_NS)
                pause_worker(w, PAUSE_NS); /* failed early: pause, as this was not a timeout */
            continue;
        }
        set_item(w, number, item);
        enum outcome outcome = handle(w, item);
        set_item(w, number, NULL);
        if (outcome == DONE) {
            bus_item_done(item, NULL); /* on failure the item comes again, with nothing to do */
        } else {
            bus_item_again(item);
            pause_worker(w, PAUSE_NS); /* time for another node to take it */
        }
    }
    return NULL;
}

/* Tells the broker that the items are being worked on. */
static void *tick(void *arg)
{
    struct worker *w = arg;
    while (!stopped(w)) {
        pause_worker(w, WORKING_NS);
        pthread_mutex_lock(&w->lock);
        for (unsigned i = 0; i < w->n_threads && !stopped(w); i++)
            if (w->items[i])
                bus_item_working(w->items[i]);
        pthread_mutex_unlock(&w->lock);
    }
    return NULL;
}

/* ---- beginning and end ---- */

int share_worker_start(struct bus *bus, const struct share_worker_options *o, struct worker **out, struct err *e)
{
    struct worker *w = mem_zalloc(sizeof *w);
    w->bus = bus;
    w->o = *o;
    pthread_mutex_init(&w->lock, NULL);
    wait_init(&w->stopping);
    int rc = share_open_table(bus, o->cluster, &w->table, e);
    if (!rc)
        rc = share_open_queue(bus, o->cluster, &w->queue, e);
    if (rc) {
        share_worker_stop(w);
        return rc;
    }
    w->n_threads = pool_cpus() < MOST_THREADS ? pool_cpus() : MOST_THREADS;
    for (unsigned i = 0; i < w->n_threads; i++)
        pthread_create(&w->threads[i], NULL, work, w);
    pthread_create(&w->ticker, NULL, tick, w);
    *out = w;
    return 0;
}

void share_worker_stop(struct worker *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    atomic_store(&w->stop, true);
    pthread_cond_broadcast(&w->stopping);
    pthread_mutex_unlock(&w->lock);
    for (unsigned i = 0; i < w->n_threads; i++)
        pthread_join(w->threads[i], NULL);
    if (w->n_threads)
        pthread_join(w->ticker, NULL);
    if (w->queue)
        bus_queue_close(w->queue);
    if (w->table)
        bus_table_close(w->table);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->stopping);
    free(w);
}
