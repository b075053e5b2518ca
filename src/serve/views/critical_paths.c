/* SPDX-License-Identifier: MIT */
/* Critical paths in the background. A few threads take questions in order of arrival. Each first computes the local
 * path, then the whole. Threads of requests arrange the partial path in between, when they need it. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/time.h"
#include "base/wait.h"
#include "views/critical_view.h"

enum { MAX_KEPT = 64, MAX_WORKERS = 4, MAX_SEGMENTS_KEPT = 8 << 20, MAX_KEYED = 1 << 20 };
/* Time that a request waits for the whole path, and for the first picture. */
static const int64_t patience_ns = 150000000, first_picture_ns = 1000000000;

enum stage { STAGE_WAITING, STAGE_WORKING, STAGE_DONE, STAGE_FAILED_PATH };

struct critical_entry {
    char *key;
    struct critical_question question;
    struct critical_view *local, *so_far, *whole;
    void *finding;                /* search that may be looked into; else NULL */
    bool is_looked;               /* a request looks into it */
    uint64_t known, so_far_known; /* serial of the partial path, and of the one in so_far */
    struct err error;
    bool alone; /* queries of other machines failed; `error` says why */
    int stage;
    unsigned refs;        /* requests that use it */
    uint64_t used, asked; /* ticks */
};

struct critical_paths {
    struct views *x;
    size_t *hosts; /* number in the experiment by number in the paths */
    size_t n_hosts;
    atomic_bool stopping;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    VEC(struct critical_entry *) entries;
    unsigned workers;
    uint64_t tick;
    struct map keyed; /* key of an entry outside this experiment -> its number + 1 */
};

int64_t critical_keyed_entry(struct critical_paths *p, uint64_t key)
{
    pthread_mutex_lock(&p->lock);
    uint64_t *at = map_put(&p->keyed, key, NULL);
    if (!*at)
        *at = p->keyed.n;
    int64_t entry = critical_first_keyed_entry(p->x) + (int64_t)*at - 1;
    pthread_mutex_unlock(&p->lock);
    return entry;
}

bool critical_keyed_room(struct critical_paths *p, size_t n)
{
    pthread_mutex_lock(&p->lock);
    bool room = p->keyed.n + n <= MAX_KEYED;
    pthread_mutex_unlock(&p->lock);
    return room;
}

/* Requires the lock. */
static void drop_view(const struct critical_paths *p, struct critical_view *v)
{
    if (v && --v->refs == 0)
        critical_view_free(p->x, v);
}

/* ---- workers ---- */

static void set_view(struct critical_paths *p, struct critical_entry *e, struct critical_view **place,
    struct critical_view *view, int stage)
{
    pthread_mutex_lock(&p->lock);
    *place = view;
    e->stage = view ? stage : STAGE_FAILED_PATH;
    if (e->stage != STAGE_WORKING) {
        drop_view(p, e->so_far);
        e->so_far = NULL;
    }
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static struct critical_view *walk(struct critical_paths *p, struct critical_entry *e, int32_t only)
{
    return critical_walk(p->x, p->hosts, p->n_hosts, &e->question, only, &p->stopping, &e->error);
}

/* Argument of the callbacks: the entry whose path the other machines are computing. */
struct progress {
    struct critical_paths *paths;
    struct critical_entry *entry;
};

static void on_known(void *arg, void *finding, uint64_t serial)
{
    const struct progress *g = arg;
    pthread_mutex_lock(&g->paths->lock);
    g->entry->finding = finding;
    g->entry->known = serial;
    pthread_mutex_unlock(&g->paths->lock);
}

static void on_moves_on(void *arg)
{
    const struct progress *g = arg;
    pthread_mutex_lock(&g->paths->lock);
    g->entry->finding = NULL;
    while (g->entry->is_looked)
        pthread_cond_wait(&g->paths->changed, &g->paths->lock);
    pthread_mutex_unlock(&g->paths->lock);
}

/* Arranges the partial path unless it is up to date. Requires the lock, and releases it meanwhile. */
static void look(struct critical_paths *p, struct critical_entry *e)
{
    struct views_far_path known;
    void *finding = e->finding;
    if (!finding || e->known == e->so_far_known || e->is_looked)
        return;
    e->so_far_known = e->known;
    e->is_looked = true;
    pthread_mutex_unlock(&p->lock);
    p->x->far->look(p->x->far->arg, finding, &known);
    struct critical_view *v = critical_view_so_far(p, p->x, &known);
    pthread_mutex_lock(&p->lock);
    drop_view(p, e->so_far);
    e->so_far = v;
    e->is_looked = false;
    pthread_cond_broadcast(&p->changed);
}

/* Computes the path over all machines of the cluster; if they cannot be queried at all, over those that are here. */
static struct critical_view *ask_far(struct critical_paths *p, struct critical_entry *e)
{
    const struct views *x = p->x;
    const struct critical_question *q = &e->question;
    const struct index_host *h = q->elsewhere ? NULL : x->hosts[p->hosts[q->row.host]].index;
    struct views_far_question far = {.host = h ? h->key : q->far.host,
        .reference = critical_reference(x, h ? q->row.host : 0),
        .row = h ? index_row_id(h, q->row.row) : q->far.row,
        .begin = q->begin,
        .end = q->end,
        .assume_polling = q->assume_polling,
        .request = q->request};
    struct views_far_path path;
    struct progress progress = {p, e};
    struct views_far_progress told = {&progress, on_known, on_moves_on};
    if (!x->far->find(x->far->arg, &far, &told, &p->stopping, &path, &e->error))
        return critical_view_of_far(p, x, &path);
    if (q->elsewhere)
        return NULL;
    e->alone = true;
    return walk(p, e, CRITICAL_ALL_HOSTS);
}

/* Computes the paths of an entry. Only this thread writes the entry's error; others read it after the stage is set. */
static void work(struct critical_paths *p, struct critical_entry *e)
{
    if (!e->question.elsewhere && (p->n_hosts > 1 || p->x->far)) {
        struct critical_view *local = walk(p, e, p->x->far ? CRITICAL_ASKING_FAR : e->question.row.host);
        set_view(p, e, &e->local, local, STAGE_WORKING);
        if (!local)
            return;
    }
    set_view(p, e, &e->whole, p->x->far ? ask_far(p, e) : walk(p, e, CRITICAL_ALL_HOSTS), STAGE_DONE);
}

static struct critical_entry *oldest_waiting(const struct critical_paths *p)
{
    struct critical_entry *found = NULL;
    for (size_t i = 0; i < p->entries.n; i++) {
        struct critical_entry *e = p->entries.v[i];
        if (e->stage == STAGE_WAITING && (!found || e->asked < found->asked))
            found = e;
    }
    return found;
}

static void *run_worker(void *arg)
{
    struct critical_paths *p = arg;
    struct critical_entry *e;
    pthread_mutex_lock(&p->lock);
    while (!atomic_load(&p->stopping) && (e = oldest_waiting(p)) != NULL) {
        e->stage = STAGE_WORKING;
        pthread_mutex_unlock(&p->lock);
        mem_begin();
        work(p, e);
        pthread_mutex_lock(&p->lock);
    }
    p->workers--;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void start_worker(struct critical_paths *p, struct critical_entry *e)
{
    pthread_t thread;
    unsigned most = pool_cpus() < MAX_WORKERS ? pool_cpus() : MAX_WORKERS;
    if (p->workers >= (most ? most : 1))
        return;
    if (!pthread_create(&thread, NULL, run_worker, p)) {
        pthread_detach(thread);
        p->workers++;
    } else if (!p->workers) {
        err_set(&e->error, ERR_NOMEM, "no thread can be started to compute the path");
        e->stage = STAGE_FAILED_PATH;
    }
}

/* ---- cache ---- */

static void free_entry(const struct critical_paths *p, struct critical_entry *e)
{
    drop_view(p, e->local);
    drop_view(p, e->so_far);
    drop_view(p, e->whole);
    free(e->key);
    free(e);
}

static size_t segments_of(const struct critical_entry *e)
{
    const struct critical_view *views[] = {e->local, e->so_far, e->whole};
    size_t n = 0;
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        n += views[i] ? views[i]->path->n_segments : 0;
    return n;
}

static bool is_finished(const struct critical_entry *e)
{
    return e->stage == STAGE_DONE || e->stage == STAGE_FAILED_PATH;
}

static void remove_entry(struct critical_paths *p, size_t i)
{
    free_entry(p, p->entries.v[i]);
    p->entries.v[i] = p->entries.v[--p->entries.n];
}

/* Drops the least recently requested entries until there is room; false: all are in use. */
static bool make_room(struct critical_paths *p)
{
    for (;;) {
        size_t segments = 0, oldest = SIZE_MAX;
        for (size_t i = 0; i < p->entries.n; i++) {
            const struct critical_entry *e = p->entries.v[i];
            segments += segments_of(e);
            if (is_finished(e) && !e->refs && (oldest == SIZE_MAX || e->used < p->entries.v[oldest]->used))
                oldest = i;
        }
        if (p->entries.n < MAX_KEPT && segments <= MAX_SEGMENTS_KEPT)
            return true;
        if (oldest == SIZE_MAX)
            return p->entries.n < MAX_KEPT;
        remove_entry(p, oldest);
    }
}

void critical_paths_forget(struct critical_paths *p)
{
    pthread_mutex_lock(&p->lock);
    for (size_t i = p->entries.n; i-- > 0;)
        if (is_finished(p->entries.v[i]) && !p->entries.v[i]->refs)
            remove_entry(p, i);
    pthread_mutex_unlock(&p->lock);
}

/* Returns the entry, unless it failed only for lack of memory: the next request then computes it again. */
static struct critical_entry *find_entry(struct critical_paths *p, const char *key)
{
    for (size_t i = 0; i < p->entries.n; i++) {
        struct critical_entry *e = p->entries.v[i];
        if (strcmp(e->key, key))
            continue;
        if (e->stage != STAGE_FAILED_PATH || e->error.code != ERR_NOMEM || e->refs)
            return e;
        remove_entry(p, i);
        return NULL;
    }
    return NULL;
}

static struct critical_entry *add_entry(struct critical_paths *p, const char *key, const struct critical_question *q)
{
    struct critical_entry *e = find_entry(p, key); /* entry added by another request meanwhile, if any */
    if (e || !make_room(p))
        return e;
    e = mem_zalloc(sizeof *e);
    e->key = mem_strdup(key);
    e->question = *q;
    e->asked = ++p->tick;
    vec_push(&p->entries, e);
    start_worker(p, e);
    return e;
}

/* ---- answering ---- */

/* Waits until the path exists, or for the patience time. Requires the lock. */
static void wait_for(struct critical_paths *p, const struct critical_entry *e, const struct http_request *http)
{
    const int64_t slice_ns = 20000000;
    int64_t begun = time_monotonic_ns();
    while (!is_finished(e) && !http_gone(http)) {
        int64_t deadline = begun + (e->local ? patience_ns : first_picture_ns);
        if (time_monotonic_ns() >= deadline)
            return;
        int64_t slice = time_monotonic_ns() + slice_ns;
        wait_until(&p->changed, &p->lock, slice < deadline ? slice : deadline);
    }
}

static struct critical_answer answer_of(struct critical_entry *e)
{
    struct critical_answer a = {.kept = e};
    if (e->stage == STAGE_FAILED_PATH) {
        a.status = TSP_FAILED;
        a.message = e->error.text;
    } else if (e->whole) {
        a.status = TSP_COMPLETED;
        a.view = e->whole;
        a.message = e->alone ? e->error.text : NULL;
    } else {
        a.status = TSP_RUNNING;
        a.view = e->so_far ? e->so_far : e->local;
        a.message = e->so_far ? "The path as far as other machines have told by now"
            : e->local        ? "The path on the thread's own machine; asking the others"
                              : "Computing the path";
    }
    if (a.view)
        a.view->refs++;
    return a;
}

struct critical_answer critical_paths_get(struct critical_paths *p, json_t *parameters, struct http_request *http)
{
    const char *key = critical_question_key(parameters, http->arena), *wrong = NULL;
    struct critical_question q;
    pthread_mutex_lock(&p->lock);
    struct critical_entry *e = find_entry(p, key);
    if (!e) {
        pthread_mutex_unlock(&p->lock);
        wrong = critical_question_parse(p->x, parameters, http->arena, &q);
        if (wrong)
            return (struct critical_answer){.status = TSP_FAILED, .code = q.wrong, .message = wrong};
        pthread_mutex_lock(&p->lock);
        e = add_entry(p, key, &q);
    }
    if (!e) {
        pthread_mutex_unlock(&p->lock);
        return (struct critical_answer){
            .status = TSP_RUNNING, .message = "Too many paths are being computed; this one has to wait"};
    }
    e->refs++;
    e->used = ++p->tick;
    wait_for(p, e, http);
    if (e->stage == STAGE_FAILED_PATH && e->error.code == ERR_NOMEM)
        http_lack_memory(http);
    look(p, e);
    struct critical_answer a = answer_of(e);
    pthread_mutex_unlock(&p->lock);
    return a;
}

void critical_paths_release(struct critical_paths *p, struct critical_answer *a)
{
    if (!a->kept)
        return;
    pthread_mutex_lock(&p->lock);
    a->kept->refs--;
    drop_view(p, a->view);
    pthread_mutex_unlock(&p->lock);
    a->kept = NULL;
}

void *critical_paths_new(struct views *x)
{
    struct critical_paths *p = mem_zalloc(sizeof *p);
    p->x = x;
    p->hosts = mem_zalloc((x->n_hosts + 1) * sizeof *p->hosts);
    for (size_t i = 0; i < x->n_hosts; i++)
        if (x->path_hosts[i] >= 0) {
            p->hosts[x->path_hosts[i]] = i;
            p->n_hosts++;
        }
    pthread_mutex_init(&p->lock, NULL);
    wait_init(&p->changed);
    return p;
}

void critical_paths_free(struct critical_paths *p)
{
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->stopping, true);
    while (p->workers)
        pthread_cond_wait(&p->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < p->entries.n; i++)
        free_entry(p, p->entries.v[i]);
    map_fini(&p->keyed);
    vec_free(&p->entries);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p->hosts);
    free(p);
}
