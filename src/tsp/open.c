/* An experiment's traces, opened in the background by the backend; what requests read is immutable once STAGE_OPEN. */
#include "base/time.h"
#include "tsp/server.h"

enum { RETRY_NS = 2000000000 };

struct tsp_ids tsp_ids_next(struct tsp_ids ids, uint64_t fingerprint)
{
    if (!ids.first || fingerprint != ids.fingerprint)
        ids.first = ids.last + 1;
    ids.fingerprint = fingerprint;
    return ids;
}

void tsp_figures_add(struct tsp_figures *sum, const struct tsp_figures *f)
{
    if (!f->events)
        return;
    sum->begin = !sum->events || f->begin < sum->begin ? f->begin : sum->begin;
    sum->end = !sum->events || f->end > sum->end ? f->end : sum->end;
    sum->events += f->events;
}

void open_told(struct tsp_server *s, struct tsp_opening *o, int64_t last_id)
{
    pthread_mutex_lock(&s->lock);
    o->ids.last = last_id > o->ids.last ? last_id : o->ids.last;
    pthread_mutex_unlock(&s->lock);
}

/* Called by those who read traces, after every batch: without locks. */
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

static void close_opening(struct tsp_server *s, struct tsp_opening *o)
{
    if (o->data)
        s->o.backend.close(o->data);
    arena_fini(&o->arena);
    free(o);
}

void open_unref_locked(struct tsp_server *s, struct tsp_opening *o)
{
    if (--o->refs)
        return;
    pthread_mutex_unlock(&s->lock);
    close_opening(s, o);
    pthread_mutex_lock(&s->lock);
}

void open_unref(struct tsp_server *s, struct tsp_opening *o)
{
    pthread_mutex_lock(&s->lock);
    open_unref_locked(s, o);
    pthread_mutex_unlock(&s->lock);
}

int open_intact(struct tsp_server *s, struct tsp_opening *o, struct err *e)
{
    int rc = s->o.backend.intact(o->data, e);
    if (!rc)
        return 0;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->experiments.n; i++)
        if (s->experiments.v[i]->open == o) {
            s->experiments.v[i]->open = NULL;
            s->experiments.v[i]->ids = o->ids;
            open_unref_locked(s, o);
            break;
        }
    pthread_mutex_unlock(&s->lock);
    return rc;
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

static void *run_opener(void *arg)
{
    struct opener job = *(struct opener *)arg;
    struct tsp_server *s = job.s;
    free(arg);
    int rc = s->o.backend.open(s->o.backend.arg, &job.o->request, &job.o->data, &job.o->error);
    pthread_mutex_lock(&s->lock);
    if (!rc)
        job.o->ids = job.o->data->ids;
    job.o->stage = rc ? STAGE_FAILED : STAGE_OPEN;
    for (size_t i = 0; rc && i < s->experiments.n; i++)
        if (s->experiments.v[i]->open == job.o)
            s->experiments.v[i]->failed_ns = time_monotonic_ns();
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (!rc)
        s->o.backend.populate(job.o->data, is_stopping, s);
    pthread_mutex_lock(&s->lock);
    open_unref_locked(s, job.o);
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
    o->ids = x->ids;
    o->growing = arena_new(&o->arena, struct tsp_growing, x->traces.n + 1);
    for (size_t i = 0; i < x->traces.n; i++) {
        const struct tsp_trace *t = model_trace(s, x->traces.v[i]);
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
        .ids = x->ids,
        .grow = grow,
        .arg = o};
    return o;
}

static void open_start(struct tsp_server *s, struct tsp_experiment *x)
{
    if (s->stopping || (x->open && (x->open->stage != STAGE_FAILED || time_monotonic_ns() < x->failed_ns + RETRY_NS)))
        return;
    struct tsp_opening *old = x->open, *o = x->open = new_opening(s, x);
    struct opener *job = mem_alloc(sizeof *job);
    pthread_t thread;
    *job = (struct opener){s, o};
    o->refs = 2;
    s->openers++;
    if (pthread_create(&thread, NULL, run_opener, job)) {
        free(job);
        err_set(&o->error, ERR_NOMEM, "no thread can be started to open the experiment");
        o->stage = STAGE_FAILED;
        x->failed_ns = time_monotonic_ns();
        o->refs = 1;
        s->openers--;
    } else {
        pthread_detach(thread);
    }
    if (old)
        open_unref_locked(s, old);
}

struct tsp_experiment *open_wanted(struct tsp_server *s, const char *uuid)
{
    struct tsp_experiment *x = model_experiment(s, uuid);
    if (x)
        open_start(s, x);
    return model_experiment(s, uuid);
}

struct tsp_opening *open_ref(struct tsp_experiment *x)
{
    if (x->open)
        x->open->refs++;
    return x->open;
}

const struct tsp_output *open_output(const struct tsp_opening *o, const char *id)
{
    for (size_t i = 0; i < o->data->n_outputs; i++)
        if (!strcmp(o->data->outputs[i].id, id))
            return &o->data->outputs[i];
    return NULL;
}
