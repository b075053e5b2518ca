/* An experiment's traces, opened in the background; what requests read is immutable once STAGE_OPEN. */
#include "tsp/server.h"

#include "base/map.h"
#include "base/time.h"
#include "ctf/ctf.h"

enum { RETRY_NS = 2000000000, BATCH = 512 };

int64_t tsp_to_host(const struct tsp_host *h, int64_t t)
{
    return h->map ? clock_from_reference(h->map, t) : t;
}
int64_t tsp_to_reference(const struct tsp_host *h, int64_t t)
{
    return h->map ? clock_to_reference(h->map, t) : t;
}

bool tsp_thread_of(const struct tsp_experiment *x, int64_t id, size_t *host, int32_t *row)
{
    for (size_t i = 0; i < x->n_hosts; i++) {
        int64_t at = id - x->hosts[i].first_thread;
        if (at >= 0 && at < x->hosts[i].threads) {
            *host = i;
            *row = (int32_t)at;
            return true;
        }
    }
    return false;
}

void *tsp_cache(struct tsp_experiment *x, const struct tsp_provider *p, void *(*make)(struct tsp_experiment *))
{
    size_t n = tsp_provider_number(p);
    pthread_mutex_lock(&x->lock);
    if (!x->caches[n])
        x->caches[n] = make(x);
    void *cache = x->caches[n];
    pthread_mutex_unlock(&x->lock);
    return cache;
}

/* ---- hosts, sources, times ---- */

/* Is `path` at or below `top`? */
static bool below(const char *path, const char *top)
{
    size_t n = strlen(top);
    while (n > 1 && top[n - 1] == '/')
        n--;
    return !strncmp(path, top, n) && (path[n] == '/' || !path[n] || n == 1);
}

static size_t arg_of(const struct tsp_open *o, const struct ctf_trace *t)
{
    size_t best = 0, longest = 0;
    for (size_t i = 0; i < o->n_args; i++)
        if (below(ctf_trace_path(t), o->args[i]) && strlen(o->args[i]) > longest) {
            longest = strlen(o->args[i]);
            best = i;
        }
    return best;
}

/* Where entry ids begin. */
static void set_ids(struct tsp_open *o)
{
    const struct ctf_source *sources;
    size_t n = experiment_sources(o->pub.x, &sources);
    uint64_t fingerprint = n;
    for (size_t i = 0; i < n; i++)
        fingerprint = map_mix(fingerprint ^ ctf_trace_fingerprint(sources[i].trace));
    if (!o->ids.first || fingerprint != o->ids.fingerprint)
        o->ids.first = o->ids.last + 1;
    o->ids.fingerprint = fingerprint;
}

void open_told(struct tsp_server *s, struct tsp_open *o, int64_t last_id)
{
    pthread_mutex_lock(&s->lock);
    o->ids.last = last_id > o->ids.last ? last_id : o->ids.last;
    pthread_mutex_unlock(&s->lock);
}

static void set_hosts(struct tsp_open *o)
{
    struct tsp_experiment *x = &o->pub;
    const struct index_host *hosts;
    x->n_hosts = experiment_hosts(x->x, &hosts);
    x->hosts = arena_new(&o->arena, struct tsp_host, x->n_hosts + 1);
    x->last_thread = o->ids.first - 1;
    for (size_t i = 0; i < x->n_hosts; i++) {
        struct tsp_host *h = &x->hosts[i];
        const struct clock_map *map = x->clocks ? clock_net_map(x->clocks, i) : NULL;
        h->index = &hosts[i];
        h->map = map && map->n ? map : NULL;
        h->states = hosts[i].states;
        h->id = hosts[i].name;
        h->first_thread = x->last_thread + 1;
        h->threads = hosts[i].graph ? (int32_t)graph_rows(hosts[i].graph) : 0;
        x->last_thread += h->threads;
    }
}

static void set_sources(struct tsp_open *o)
{
    struct tsp_experiment *x = &o->pub;
    const struct ctf_source *sources;
    x->n_sources = experiment_sources(x->x, &sources);
    experiment_traces(x->x, &x->traces);
    struct ctf_source *mapped = arena_new(&o->arena, struct ctf_source, x->n_sources + 1);
    int32_t *host = arena_new(&o->arena, int32_t, x->n_sources + 1);
    for (size_t i = 0; i < x->n_sources; i++) {
        mapped[i] = sources[i];
        host[i] = x->traces[i].host;
        const struct clock_map *map = x->hosts[host[i]].map;
        if (map) {
            mapped[i].map = clock_map_times;
            mapped[i].map_arg = (void *)(uintptr_t)map;
        }
    }
    x->sources = mapped;
    x->source_hosts = host;
}

static void set_paths(struct tsp_open *o)
{
    struct tsp_experiment *x = &o->pub;
    struct path_local_host *local = arena_new(&o->arena, struct path_local_host, x->n_hosts + 1);
    int32_t *numbers = arena_new(&o->arena, int32_t, x->n_hosts + 1);
    size_t n = 0;
    for (size_t i = 0; i < x->n_hosts; i++) {
        const struct index_host *h = x->hosts[i].index;
        numbers[i] = h->graph ? (int32_t)n : -1;
        if (h->graph)
            local[n++] = (struct path_local_host){h->name, h->graph, h->flows, x->hosts[i].map};
    }
    x->path_hosts = numbers;
    x->paths = n ? path_local_new(local, n) : NULL;
}

/* ---- figures ---- */

/* Told by those who read traces, after every batch: without locks. */
static void grow(void *open, const struct ctf_trace *t, uint64_t events, int64_t begin, int64_t end)
{
    const struct tsp_open *o = open;
    struct tsp_growing *g = &o->growing[arg_of(o, t)];
    int64_t seen = atomic_load(&g->begin);
    while (begin < seen && !atomic_compare_exchange_weak(&g->begin, &seen, begin))
        ;
    seen = atomic_load(&g->end);
    while (end > seen && !atomic_compare_exchange_weak(&g->end, &seen, end))
        ;
    atomic_fetch_add(&g->events, events);
}

/* Events, first and last time of a trace that the index does not know, by reading it. */
static void count_source(struct tsp_open *o, const struct ctf_source *source, struct tsp_figures *f)
{
    struct ctf_merge *merge;
    struct ctf_event batch[BATCH];
    struct err e = {0};
    if (ctf_merge_new(source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &merge, &e))
        return;
    for (size_t n; (n = ctf_merge_next(merge, batch, BATCH)) > 0;) {
        uint64_t before = f->events;
        for (size_t i = 0; i < n; i++)
            if (batch[i].cls->item == CTF_EVENT) {
                f->begin = !f->events || batch[i].ts < f->begin ? batch[i].ts : f->begin;
                f->end = !f->events || batch[i].ts > f->end ? batch[i].ts : f->end;
                f->events++;
            }
        if (f->events > before)
            grow(o, source->trace, f->events - before, f->begin, f->end);
    }
    ctf_merge_free(merge);
}

static struct tsp_figures figures_of_user(const struct tsp_host *h, const struct stack_totals *t)
{
    struct tsp_figures f = {.events = t->events};
    if (f.events) {
        f.begin = tsp_to_reference(h, t->begin);
        f.end = tsp_to_reference(h, t->end);
    }
    return f;
}

void figures_add(struct tsp_figures *sum, const struct tsp_figures *f)
{
    if (!f->events)
        return;
    sum->begin = !sum->events || f->begin < sum->begin ? f->begin : sum->begin;
    sum->end = !sum->events || f->end > sum->end ? f->end : sum->end;
    sum->events += f->events;
}

static const char *env_text(struct tsp_open *o, const struct ctf_env *env)
{
    return env->is_string ? env->string : arena_printf(&o->arena, "%lld", (long long)env->number);
}

/* The environment of the argument's first trace, and its host. */
static void set_properties(struct tsp_open *o, size_t arg)
{
    struct tsp_figures *f = &o->figures[arg];
    for (size_t i = 0; i < o->pub.n_sources && !f->properties; i++) {
        const struct ctf_trace *t = o->pub.sources[i].trace;
        const struct ctf_env *env;
        size_t n;
        if (arg_of(o, t) != arg)
            continue;
        n = ctf_trace_env(t, &env);
        const char *(*p)[2] = arena_alloc(&o->arena, sizeof *p * (n + 1));
        for (size_t k = 0; k < n; k++) {
            p[k][0] = env[k].name;
            p[k][1] = env_text(o, &env[k]);
        }
        int32_t host = o->pub.source_hosts[i];
        p[n][0] = "host ID";
        p[n][1] = host >= 0 ? o->pub.hosts[host].id : "";
        f->properties = (const char *const(*)[2])p;
        f->n_properties = n + (host >= 0);
    }
}

static void set_figures(struct tsp_open *o)
{
    struct tsp_experiment *x = &o->pub;
    struct tsp_figures all = {0};
    o->figures = arena_new(&o->arena, struct tsp_figures, o->n_args + 1);
    for (size_t i = 0; i < x->n_sources; i++) {
        struct tsp_figures one = {0};
        int32_t host = x->source_hosts[i];
        const struct tsp_host *h = host >= 0 ? &x->hosts[host] : NULL;
        if (h && h->index->trace == x->sources[i].trace && h->index->graph)
            one = (struct tsp_figures){.events = h->index->events,
                .begin = tsp_to_reference(h, h->index->begin),
                .end = tsp_to_reference(h, h->index->end)};
        else if (x->traces[i].stacks)
            one = figures_of_user(h, stack_totals(x->traces[i].stacks));
        else
            count_source(o, &x->sources[i], &one);
        figures_add(&o->figures[arg_of(o, x->sources[i].trace)], &one);
        figures_add(&all, &one);
    }
    for (size_t i = 0; i < o->n_args; i++)
        set_properties(o, i);
    x->events = all.events;
    x->begin = all.begin;
    x->end = all.end;
}

/* ---- opening in the background ---- */

static size_t indexed_hosts(const struct experiment *x)
{
    const struct index_host *hosts;
    size_t n = experiment_hosts(x, &hosts), indexed = 0;
    for (size_t i = 0; i < n; i++)
        indexed += hosts[i].graph != NULL;
    return indexed;
}

static int open_traces(struct tsp_server *s, struct tsp_open *o)
{
    struct index_options index = {.store = s->o.store, .stores = true, .user_space = true, .tell = grow, .tell_arg = o};
    struct err *e = &o->error;
    int rc = experiment_open((const char *const *)o->index_args, o->n_args, &index, &o->pub.x, e);
    if (rc)
        return rc;
    struct err unsynchronised = {0};
    struct clock_options clock = clock_defaults();
    /* Without clocks every host keeps its own; the clock report tells why. */
    if (!s->o.no_sync && indexed_hosts(o->pub.x) > 1 &&
        experiment_sync(o->pub.x, &clock, &o->pub.clocks, &unsynchronised))
        o->pub.clocks = NULL;
    set_ids(o);
    set_hosts(o);
    set_sources(o);
    set_figures(o);
    set_paths(o);
    outputs_find(o);
    return experiment_intact(o->pub.x, e);
}

static void close_open(struct tsp_open *o)
{
    for (size_t i = TSP_MAX_PROVIDERS; i-- > 0;)
        if (o->pub.caches[i]) /* of a provider that has a close(); it may look at the caches of those before it */
            tsp_providers[i]->close(&o->pub, o->pub.caches[i]);
    path_local_free(o->pub.paths);
    experiment_close(o->pub.x);
    pthread_mutex_destroy(&o->pub.lock);
    arena_fini(&o->arena);
    free(o);
}

void open_unref_locked(struct tsp_server *s, struct tsp_open *o)
{
    if (--o->refs)
        return;
    pthread_mutex_unlock(&s->lock);
    close_open(o);
    pthread_mutex_lock(&s->lock);
}

void open_unref(struct tsp_server *s, struct tsp_open *o)
{
    pthread_mutex_lock(&s->lock);
    open_unref_locked(s, o);
    pthread_mutex_unlock(&s->lock);
}

int open_intact(struct tsp_server *s, struct tsp_open *o, struct err *e)
{
    int rc = experiment_intact(o->pub.x, e);
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
    struct tsp_open *o;
};

/* The experiment is open; its clients are about to ask for what they show first. */
static void populate(struct tsp_server *s, const struct tsp_open *o)
{
    for (size_t i = 0; i < o->pub.n_hosts; i++) {
        pthread_mutex_lock(&s->lock);
        bool stopping = s->stopping;
        pthread_mutex_unlock(&s->lock);
        if (stopping)
            return;
        if (o->pub.hosts[i].states)
            state_populate(o->pub.hosts[i].states);
    }
}

static void *run_opener(void *arg)
{
    struct opener job = *(struct opener *)arg;
    struct tsp_server *s = job.s;
    free(arg);
    int rc = open_traces(s, job.o);
    pthread_mutex_lock(&s->lock);
    job.o->stage = rc ? STAGE_FAILED : STAGE_OPEN;
    for (size_t i = 0; rc && i < s->experiments.n; i++)
        if (s->experiments.v[i]->open == job.o)
            s->experiments.v[i]->failed_ns = time_monotonic_ns();
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (!rc)
        populate(s, job.o);
    pthread_mutex_lock(&s->lock);
    open_unref_locked(s, job.o);
    s->openers--;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static struct tsp_open *new_open(struct tsp_server *s, const struct tsp_model_experiment *x)
{
    struct tsp_open *o = mem_zalloc(sizeof *o);
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&o->pub.lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    o->pub.name = arena_strdup(&o->arena, x->name);
    o->pub.uuid = arena_strdup(&o->arena, x->uuid);
    o->ids = x->ids;
    o->args = arena_new(&o->arena, char *, x->traces.n + 1);
    o->index_args = arena_new(&o->arena, char *, x->traces.n + 1);
    o->growing = arena_new(&o->arena, struct tsp_growing, x->traces.n + 1);
    for (size_t i = 0; i < x->traces.n; i++) {
        atomic_init(&o->growing[i].begin, INT64_MAX);
        atomic_init(&o->growing[i].end, INT64_MIN);
        const struct tsp_trace *t = model_trace(s, x->traces.v[i]);
        bool twice = false;
        for (size_t k = 0; t && k < o->n_args; k++)
            twice |= !strcmp(o->args[k], t->path);
        if (!t || twice)
            continue;
        o->args[o->n_args] = arena_strdup(&o->arena, t->path);
        o->index_args[o->n_args] = t->host ? arena_printf(&o->arena, "%s=%s", t->host, t->path) : o->args[o->n_args];
        o->n_args++;
    }
    return o;
}

static void open_start(struct tsp_server *s, struct tsp_model_experiment *x)
{
    if (s->stopping || (x->open && (x->open->stage != STAGE_FAILED || time_monotonic_ns() < x->failed_ns + RETRY_NS)))
        return;
    struct tsp_open *old = x->open, *o = x->open = new_open(s, x);
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

struct tsp_model_experiment *open_wanted(struct tsp_server *s, const char *uuid)
{
    struct tsp_model_experiment *x = model_experiment(s, uuid);
    if (x)
        open_start(s, x);
    return model_experiment(s, uuid);
}

struct tsp_open *open_ref(struct tsp_model_experiment *x)
{
    if (x->open)
        x->open->refs++;
    return x->open;
}

const struct tsp_output *open_output(const struct tsp_open *o, const char *id)
{
    for (size_t i = 0; i < o->n_outputs; i++)
        if (!strcmp(o->outputs[i].id, id))
            return &o->outputs[i];
    return NULL;
}
