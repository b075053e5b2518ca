/* SPDX-License-Identifier: MIT */
/* Opens an experiment's traces in the background, by the backend. What requests read is immutable once STAGE_OPEN.
 * Changed traces are opened again, beside the open version, which answers until then. */
#include <stdlib.h>

#include "base/file.h"
#include "base/progress.h"
#include "base/time.h"
#include "tsp/follow.h"
#include "tsp/open.h"
#include "tsp/persist.h"
#include "tsp/traces.h"

enum { RETRY_NS = 2000000000 };

/* True: the experiment was deleted, or the server ends. Readers of traces call this and grow. */
static bool is_unwanted(void *opening)
{
    const struct tsp_opening *o = opening;
    return atomic_load_explicit(&o->unwanted, memory_order_relaxed);
}

/* Called by readers of traces after every batch, without locks. */
static void grow(void *opening, size_t path, uint64_t events, int64_t begin, int64_t end)
{
    const struct tsp_opening *o = opening;
    struct tsp_growing *g = &o->growing[path];
    int64_t seen = atomic_load(&g->begin);
    while (begin < seen && !atomic_compare_exchange_weak(&g->begin, &seen, begin))
        ;
    seen = atomic_load(&g->end);
    while (end > seen && !atomic_compare_exchange_weak(&g->end, &seen, end))
        ;
    atomic_fetch_add(&g->events, events);
}

/* Loads the ids, which are stored beside the stores. A missing file has no ids; an unreadable one is replaced. */
static void name_entries(struct tsp_server *s, struct tsp_opening *o)
{
    struct err ignored = {0};
    if (o->data->ids_dir)
        tsp_ids_keep_in(o->ids, arena_printf(&o->arena, "%s/ids-%s", o->data->ids_dir, o->experiment), &ignored);
    o->entries = tsp_entry_tables_new(&s->o.backend, o->data, o->ids);
    o->rows = tsp_kept_rows_new();
}

struct opener {
    struct tsp_server *s;
    struct tsp_opening *o;
};

static bool is_stopping(void *server)
{
    struct tsp_server *s = server;
    pthread_mutex_lock(&s->lock);
    bool stopping = s->stopping;
    pthread_mutex_unlock(&s->lock);
    return stopping;
}

static struct tsp_experiment *experiment_of(struct tsp_server *s, const struct tsp_opening *o)
{
    for (size_t i = 0; i < s->experiments.n; i++)
        if (s->experiments.v[i]->open == o || s->experiments.v[i]->next == o)
            return s->experiments.v[i];
    return NULL;
}

/* Replaces the experiment's version after an opening of the next one. If that failed, the old version stays; if both
 * failed, the later error counts. Returns the version that the experiment no longer holds. */
static struct tsp_opening *replace(struct tsp_experiment *x, struct tsp_opening *o)
{
    bool better = o->stage == STAGE_OPEN || x->open->stage == STAGE_FAILED;
    struct tsp_opening *old = better ? x->open : o;
    x->next = NULL;
    if (old == o)
        return o;
    x->open = o;
    return tsp_held_instead(x, old);
}

/* Returns the least recently used open experiment that may close; NULL: not too many are open. With the lock held. */
static struct tsp_experiment *closes_next(struct tsp_server *s)
{
    struct tsp_experiment *oldest = NULL;
    size_t n = 0;
    for (size_t i = 0; i < s->experiments.n; i++) {
        struct tsp_experiment *x = s->experiments.v[i];
        if (!x->open || x->open->stage != STAGE_OPEN)
            continue;
        n++;
        if (!x->next && (!oldest || x->used < oldest->used))
            oldest = x;
    }
    return n > s->o.max_open ? oldest : NULL;
}

/* Closes the least recently used experiments. Requests that use them still complete. With the lock held, which may be
 * released for a moment. */
static void close_least_used(struct tsp_server *s)
{
    for (struct tsp_experiment *x; (x = closes_next(s));) {
        struct tsp_opening *const held[] = {x->open, x->earlier};
        x->open = x->earlier = NULL;
        tsp_follow_end(s, x);
        for (size_t i = 0; i < sizeof held / sizeof *held; i++)
            if (held[i])
                tsp_opening_unref_locked(s, held[i]);
    }
}

/* Records the result of an opening. With the lock held. */
static void settle(struct tsp_server *s, struct tsp_opening *o, int rc, int64_t took_ns)
{
    struct tsp_experiment *x = experiment_of(s, o);
    struct tsp_opening *old = NULL, *left = NULL;
    o->stage = rc ? STAGE_FAILED : STAGE_OPEN;
    if (x) {
        if (x->next == o) {
            left = tsp_held_release(x, false);
            old = replace(x, o);
        }
        if (rc)
            x->failed_ns = time_monotonic_ns();
        x->version += !rc;
        if (!rc)
            tsp_retime(s, x, o->data);
        x->problem = rc ? o->error : (struct err){0};
        tsp_follow_opened(s, x, !rc, took_ns);
    }
    pthread_cond_broadcast(&s->changed);
    if (old)
        tsp_opening_unref_locked(s, old);
    if (left)
        tsp_opening_unref_locked(s, left);
    close_least_used(s);
}

/* Reports once that a next version cannot be opened. */
static void tell_problem(struct tsp_server *s, const struct tsp_opening *o, const struct err *before)
{
    if (s->o.not_opened && !is_unwanted((void *)(uintptr_t)o) && strcmp(before->text, o->error.text) != 0)
        s->o.not_opened(o->request.name, o->error.text);
}

/* Checks the paths again: an allowed path may now lead elsewhere. */
static int check_paths(const struct tsp_server *s, const struct tsp_open_request *r, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < r->n && !rc; i++) {
        char *real = file_real_path(r->paths[i]);
        if (real && !tsp_trace_is_allowed(s, real))
            rc = err_set(e, ERR_NOTFOUND,
                "%s leads out of the directories that traces may be opened in; "
                "remove the link, or start the server with another --trace-root",
                r->paths[i]);
        free(real);
    }
    return rc;
}

static void *run_opener(void *arg)
{
    struct opener job = *(struct opener *)arg;
    struct tsp_server *s = job.s;
    int64_t begin = time_monotonic_ns();
    free(arg);
    tsp_follow_begin(s, job.o);
    int rc = check_paths(s, &job.o->request, &job.o->error);
    rc = rc ?: s->o.backend.open(s->o.backend.arg, &job.o->request, &job.o->data, &job.o->error);
    if (!rc)
        name_entries(s, job.o);
    pthread_mutex_lock(&s->lock);
    const struct tsp_experiment *x = experiment_of(s, job.o);
    bool is_next = x && x->next == job.o;
    struct err before = is_next ? x->problem : (struct err){0};
    settle(s, job.o, rc, time_monotonic_ns() - begin);
    pthread_mutex_unlock(&s->lock);
    tsp_persist_save(s); /* times may have been converted to another clock */
    if (rc && is_next)
        tell_problem(s, job.o, &before);
    if (!rc) {
        s->o.backend.populate(job.o->data, is_stopping, s);
        tsp_tidy_run(s, job.o);
    }
    pthread_mutex_lock(&s->lock);
    tsp_opening_unref_locked(s, job.o);
    s->openers--;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static struct tsp_opening *new_opening(struct tsp_server *s, const struct tsp_experiment *x)
{
    struct tsp_opening *o = mem_zalloc(sizeof *o);
    const char **paths = arena_new(&o->arena, const char *, x->traces.n + 1);
    const char **hosts = arena_new(&o->arena, const char *, x->traces.n + 1);
    size_t n = 0;
    o->ids = tsp_ids_ref(x->ids);
    o->experiment = arena_strdup(&o->arena, x->uuid);
    o->growing = arena_new(&o->arena, struct tsp_growing, x->traces.n + 1);
    for (size_t i = 0; i < x->traces.n; i++) {
        const struct tsp_trace *t = tsp_model_trace(s, x->traces.v[i]);
        bool twice = false;
        for (size_t k = 0; t && k < n; k++)
            twice |= !strcmp(paths[k], t->path);
        if (!t || twice)
            continue;
        atomic_init(&o->growing[n].begin, INT64_MAX);
        atomic_init(&o->growing[n].end, INT64_MIN);
        paths[n] = arena_strdup(&o->arena, t->path);
        hosts[n++] = t->host ? arena_strdup(&o->arena, t->host) : NULL;
    }
    o->request = (struct tsp_open_request){.name = arena_strdup(&o->arena, x->name),
        .paths = paths,
        .hosts = hosts,
        .n = n,
        .grow = grow,
        .stop = is_unwanted,
        .arg = o,
        .progress = progress_silent()};
    return o;
}

/* Starts the opening in a thread of its own; the experiment holds it already. */
static void start_opener(struct tsp_server *s, struct tsp_opening *o)
{
    struct opener *job = mem_alloc(sizeof *job);
    pthread_t thread;
    *job = (struct opener){s, o};
    o->refs = 2;
    s->openers++;
    if (!pthread_create(&thread, NULL, run_opener, job)) {
        pthread_detach(thread);
        return;
    }
    free(job);
    s->openers--;
    err_set(&o->error, ERR_NOMEM, "no thread can be started to open the experiment");
    settle(s, o, ERR_NOMEM, 0);
    tsp_opening_unref_locked(s, o);
}

void tsp_open_next(struct tsp_server *s, struct tsp_experiment *x)
{
    x->next = new_opening(s, x);
    start_opener(s, x->next);
}

/* Starts an opening if needed. A failed one keeps reporting its error while it is retried. */
static void open_start(struct tsp_server *s, struct tsp_experiment *x)
{
    if (s->stopping || x->next)
        return;
    if (!x->open) {
        x->open = new_opening(s, x);
        start_opener(s, x->open);
    } else if (x->open->stage == STAGE_FAILED && time_monotonic_ns() >= x->failed_ns + RETRY_NS) {
        tsp_open_next(s, x);
    }
}

struct tsp_experiment *tsp_open_wanted(struct tsp_server *s, const char *uuid)
{
    struct tsp_experiment *x = tsp_model_experiment(s, uuid);
    if (x) {
        x->used = ++s->uses;
        open_start(s, x);
    }
    return tsp_model_experiment(s, uuid);
}
