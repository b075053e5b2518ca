/* SPDX-License-Identifier: MIT */
/* Background reading for in-and-out analyses: a thread for each active reader, and a cache of the most recent
 * results. */
#include <inttypes.h>
#include <stdatomic.h>

#include "base/time.h"
#include "base/wait.h"
#include "views/inout.h"
#include "views/list.h"

enum { MAX_CACHED = 8, MAX_PAIRS_CACHED = 8 << 20 };
/* Time that a request waits, and time without requests after which reading stops. Clients ask at least every 5 s. */
static const int64_t patience_ns = 300000000, unasked_ns = 8000000000;

struct inout_entry {
    char *key;
    struct event_pair_config config;
    atomic_bool stop;
    _Atomic uint64_t read; /* events read */
    _Atomic int64_t asked_ns;
    /* Guarded by the lock: all members below. */
    struct event_pairs *pairs;
    struct err error; /* owned by the thread until it is done */
    bool done, listed;
    unsigned refs; /* references of the list, the thread and requests */
    uint64_t used; /* tick */
};

struct inout_cache {
    struct views *x;
    struct event_table *table;
    uint64_t total; /* events and losses */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    VEC(struct inout_entry *) list;
    unsigned threads;
    uint64_t tick;
};

/* ---- reading ---- */

static bool is_unwanted(const struct inout_entry *e)
{
    return atomic_load(&e->stop) || time_monotonic_ns() > atomic_load(&e->asked_ns) + unasked_ns;
}

static int note_read(void *entry, size_t events, struct err *error)
{
    struct inout_entry *e = entry;
    atomic_fetch_add(&e->read, events);
    if (is_unwanted(e))
        return err_set(error, ERR_CANCELLED, "nobody asks for it");
    return mem_check("reading the events", error);
}

static void free_entry(struct inout_entry *e)
{
    events_pairs_free(e->pairs);
    events_pair_config_free(&e->config);
    free(e->key);
    free(e);
}

static void unref(struct inout_entry *e)
{
    if (!--e->refs)
        free_entry(e);
}

static void unlist(struct inout_cache *k, struct inout_entry *e)
{
    size_t i = 0;
    if (!e->listed)
        return;
    while (k->list.v[i] != e)
        i++;
    k->list.v[i] = k->list.v[--k->list.n];
    e->listed = false;
    unref(e);
}

struct job {
    struct inout_cache *k;
    struct inout_entry *e;
};

static void *run(void *arg)
{
    struct job job = *(struct job *)arg;
    struct inout_entry *e = job.e;
    free(arg);
    struct event_pairs *pairs = NULL;
    events_pairs_read(job.k->table, &e->config, job.k->x->data.end, note_read, e, &pairs, &e->error);
    pthread_mutex_lock(&job.k->lock);
    e->pairs = pairs;
    e->done = true;
    if (!pairs && (e->error.code == ERR_CANCELLED || e->error.code == ERR_NOMEM))
        unlist(job.k, e); /* the next request reads it again */
    unref(e);
    job.k->threads--;
    pthread_cond_broadcast(&job.k->changed);
    pthread_mutex_unlock(&job.k->lock);
    return NULL;
}

static void start(struct inout_cache *k, struct inout_entry *e)
{
    pthread_t thread;
    struct job *job = mem_alloc(sizeof *job);
    *job = (struct job){k, e};
    if (!pthread_create(&thread, NULL, run, job)) {
        pthread_detach(thread);
        k->threads++;
        e->refs++;
        return;
    }
    free(job);
    e->done = true;
    err_set(&e->error, ERR_NOMEM, "no thread can be started to read the events");
}

/* ---- the cache ---- */

static struct inout_entry *find(const struct inout_cache *k, const char *key)
{
    for (size_t i = 0; i < k->list.n; i++)
        if (!strcmp(k->list.v[i]->key, key))
            return k->list.v[i];
    return NULL;
}

/* Drops the least recently requested entries until there is room; false: all are in use. */
static bool make_room(struct inout_cache *k)
{
    for (;;) {
        struct inout_entry *oldest = NULL;
        size_t pairs = 0;
        for (size_t i = 0; i < k->list.n; i++) {
            struct inout_entry *e = k->list.v[i];
            pairs += e->pairs ? e->pairs->n : 0;
            if (e->done && e->refs == 1 && (!oldest || e->used < oldest->used))
                oldest = e;
        }
        if (k->list.n < MAX_CACHED && pairs <= MAX_PAIRS_CACHED)
            return true;
        if (!oldest)
            return k->list.n < MAX_CACHED;
        unlist(k, oldest);
    }
}

/* Adds an entry, or returns the one that another request added meanwhile. Takes ownership of the configuration. NULL:
 * no room. Requires the lock. */
static struct inout_entry *add(struct inout_cache *k, const char *key, struct event_pair_config *config)
{
    struct inout_entry *e = find(k, key);
    if (e || !make_room(k)) {
        events_pair_config_free(config);
        return e;
    }
    e = mem_zalloc(sizeof *e);
    e->key = mem_strdup(key);
    e->config = *config;
    e->listed = true;
    e->refs = 1;
    atomic_store(&e->asked_ns, time_monotonic_ns());
    vec_push(&k->list, e);
    start(k, e);
    return e;
}

/* Text that is equal for equal configurations. */
static const char *key_of(json_t *parameters, struct arena *a)
{
    char *text = json_dumps(json_object_get(parameters, "specifiers"), JSON_COMPACT | JSON_SORT_KEYS);
    const char *key = arena_strdup(a, text ? text : "");
    free(text);
    return key;
}

static void wait_for(struct inout_cache *k, const struct inout_entry *e, const struct http_request *http)
{
    const int64_t slice_ns = 20000000, end = time_monotonic_ns() + patience_ns;
    for (int64_t now; !e->done && (now = time_monotonic_ns()) < end && !http_gone(http);)
        wait_until(&k->changed, &k->lock, now + slice_ns);
}

static struct inout_answer answer_of(const struct inout_cache *k, struct inout_entry *e, struct arena *a)
{
    struct inout_answer answer = {.entry = e, .pairs = e->pairs};
    if (e->pairs) {
        answer.status = TSP_COMPLETED;
    } else if (e->done && e->error.code != ERR_CANCELLED) {
        answer.status = TSP_FAILED;
        answer.message = arena_strdup(a, e->error.text);
    } else {
        answer.status = TSP_RUNNING;
        answer.read = atomic_load(&e->read);
        answer.of = k->total;
        answer.message = arena_printf(a, "Looking for pairs: %.0f %% of the events read",
            answer.of ? 100 * (double)answer.read / (double)answer.of : 0.0);
    }
    return answer;
}

struct inout_answer inout_get(struct inout_cache *k, json_t *parameters, struct http_request *http)
{
    const char *key = key_of(parameters, http->arena);
    pthread_mutex_lock(&k->lock);
    struct inout_entry *e = find(k, key);
    if (!e) {
        struct event_pair_config config;
        pthread_mutex_unlock(&k->lock);
        const char *wrong = inout_config_parse(k->table, parameters, http->arena, &config);
        if (wrong)
            return (struct inout_answer){.status = TSP_FAILED, .message = wrong};
        pthread_mutex_lock(&k->lock);
        e = add(k, key, &config);
    }
    if (!e) {
        pthread_mutex_unlock(&k->lock);
        return (struct inout_answer){
            .status = TSP_RUNNING, .message = "Too many analyses are being made; this one has to wait"};
    }
    e->refs++;
    e->used = ++k->tick;
    atomic_store(&e->asked_ns, time_monotonic_ns());
    wait_for(k, e, http);
    if (e->done && e->error.code == ERR_NOMEM)
        http_lack_memory(http);
    struct inout_answer answer = answer_of(k, e, http->arena);
    pthread_mutex_unlock(&k->lock);
    return answer;
}

void inout_release(struct inout_cache *k, struct inout_answer *a)
{
    if (!a->entry)
        return;
    pthread_mutex_lock(&k->lock);
    unref(a->entry);
    pthread_mutex_unlock(&k->lock);
    a->entry = NULL;
}

void inout_forget(struct inout_cache *k, json_t *parameters)
{
    struct arena a = {0};
    const char *key = key_of(parameters, &a);
    pthread_mutex_lock(&k->lock);
    struct inout_entry *e = find(k, key);
    if (e) {
        atomic_store(&e->stop, true);
        unlist(k, e);
    }
    pthread_mutex_unlock(&k->lock);
    arena_fini(&a);
}

void inout_forget_all(struct inout_cache *k)
{
    pthread_mutex_lock(&k->lock);
    for (size_t i = k->list.n; i-- > 0;)
        if (k->list.v[i]->done && k->list.v[i]->refs == 1)
            unlist(k, k->list.v[i]);
    pthread_mutex_unlock(&k->lock);
}

/* ---- begin and end ---- */

const struct event_table *inout_table(const struct inout_cache *k)
{
    return k->table;
}

void *inout_cache_new(struct views *x)
{
    struct inout_cache *k = mem_zalloc(sizeof *k);
    k->x = x;
    k->table = experiment_event_table(x);
    for (size_t i = 0; i < x->n_sources; i++)
        k->total += ctf_trace_items(x->sources[i].trace);
    pthread_mutex_init(&k->lock, NULL);
    wait_init(&k->changed);
    return k;
}

void inout_cache_free(struct inout_cache *k)
{
    pthread_mutex_lock(&k->lock);
    for (size_t i = 0; i < k->list.n; i++)
        atomic_store(&k->list.v[i]->stop, true);
    while (k->threads)
        pthread_cond_wait(&k->changed, &k->lock);
    while (k->list.n)
        unlist(k, k->list.v[0]);
    pthread_mutex_unlock(&k->lock);
    vec_free(&k->list);
    pthread_cond_destroy(&k->changed);
    pthread_mutex_destroy(&k->lock);
    events_table_free(k->table);
    free(k);
}
