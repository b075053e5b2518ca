/* SPDX-License-Identifier: MIT */
/* Opening the traces of an experiment: hosts, sources, entry ids, and figures of each trace. */
#include "views/open.h"

#include <math.h>

#include "base/file.h"
#include "ctf/ctf.h"
#include "views/spanset.h"

enum { BATCH = 512 };

/* ---- hosts, sources, times ---- */

/* Returns whether `path` is `top` or below it. */
static bool below(const char *path, const char *top)
{
    size_t n = strlen(top);
    while (n > 1 && top[n - 1] == '/')
        n--;
    return !strncmp(path, top, n) && (path[n] == '/' || !path[n] || n == 1);
}

static size_t path_of(const struct views *x, const struct ctf_trace *t)
{
    size_t best = 0, longest = 0;
    for (size_t i = 0; i < x->request->n; i++)
        if (below(ctf_trace_path(t), x->request->paths[i]) && strlen(x->request->paths[i]) > longest) {
            longest = strlen(x->request->paths[i]);
            best = i;
        }
    return best;
}

static void set_hosts(struct views *x, const struct views_options *o)
{
    const struct index_host *hosts;
    x->n_hosts = index_experiment_hosts(x->x, &hosts);
    const struct index_host *keeper = NULL;
    x->hosts = arena_new(&x->arena, struct view_host, x->n_hosts + 1);
    for (size_t i = 0; i < x->n_hosts; i++) {
        struct view_host *h = &x->hosts[i];
        const struct clock_map *map = x->clocks ? clock_net_map(x->clocks, i) : NULL;
        h->index = &hosts[i];
        h->map = map && map->n ? map : NULL;
        h->states = hosts[i].states;
        h->id = hosts[i].name;
        h->first_thread = x->data.shared;
        h->threads = hosts[i].graph ? (int32_t)graph_rows(hosts[i].graph) : 0;
        x->data.shared += h->threads;
        /* the choice does not depend on the order of hosts */
        if (h->index->store_dir && (!keeper || h->index->key < keeper->key))
            keeper = h->index;
    }
    char *named = o->store ? file_real_path(o->store) : NULL; /* the directory exists by now, since it has stores */
    x->data.ids_dir = named ? arena_strdup(&x->arena, named) : keeper ? keeper->store_dir : NULL;
    free(named);
}

/* Clock that the times use; NULL: every host uses its own. */
static const char *reference_of(const struct views *x)
{
    for (size_t i = 0; x->clocks && i < x->n_hosts; i++) {
        const struct clock_map *map = clock_net_map(x->clocks, i);
        if (!map->island)
            return x->hosts[map->reference].index->clock_name;
    }
    return x->n_hosts == 1 ? x->hosts[0].index->clock_name : NULL;
}

static void set_reference(struct views *x, const char *wanted)
{
    x->data.reference = reference_of(x);
    if (wanted && x->data.reference)
        index_experiment_note_reference(x->x, wanted, x->data.reference);
}

static void set_sources(struct views *x)
{
    const struct ctf_source *sources;
    x->n_sources = index_experiment_sources(x->x, &sources);
    index_experiment_traces(x->x, &x->traces);
    struct ctf_source *mapped = arena_new(&x->arena, struct ctf_source, x->n_sources + 1);
    int32_t *host = arena_new(&x->arena, int32_t, x->n_sources + 1);
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

static void set_paths(struct views *x)
{
    struct path_local_host *local = arena_new(&x->arena, struct path_local_host, x->n_hosts + 1);
    int32_t *numbers = arena_new(&x->arena, int32_t, x->n_hosts + 1);
    size_t n = 0;
    for (size_t i = 0; i < x->n_hosts; i++) {
        const struct index_host *h = x->hosts[i].index;
        numbers[i] = h->graph ? (int32_t)n : -1;
        if (h->graph)
            local[n++] = (struct path_local_host){
                h->name, h->graph, h->flows, x->clocks ? clock_net_map(x->clocks, i) : NULL};
    }
    x->path_hosts = numbers;
    x->paths = n ? path_local_new(local, n) : NULL;
}

/* ---- figures ---- */

/* Counts a batch of events. Readers of traces call it after every batch, without locks. */
static void grow(void *views, const struct ctf_trace *t, uint64_t events, int64_t begin, int64_t end)
{
    const struct views *x = views;
    if (x->request->grow)
        x->request->grow(x->request->arg, path_of(x, t), events, begin, end);
}

/* Reads events, first and last time of a trace that the index does not know. Unreadable traces have none. Error:
 * ERR_NOMEM. */
static int count_source(struct views *x, const struct ctf_source *source, struct tsp_figures *f, struct err *e)
{
    struct ctf_merge *merge;
    struct ctf_event batch[BATCH];
    int rc = ctf_merge_new(source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &merge, e);
    if (rc)
        return rc == ERR_NOMEM ? rc : 0;
    for (size_t n; !(rc = mem_check("reading the events", e)) && (n = ctf_merge_next(merge, batch, BATCH)) > 0;) {
        uint64_t before = f->events;
        for (size_t i = 0; i < n; i++)
            if (batch[i].cls->item == CTF_EVENT) {
                f->begin = !f->events || batch[i].ts < f->begin ? batch[i].ts : f->begin;
                f->end = !f->events || batch[i].ts > f->end ? batch[i].ts : f->end;
                f->events++;
            }
        if (f->events > before)
            grow(x, source->trace, f->events - before, f->begin, f->end);
    }
    ctf_merge_free(merge);
    return rc;
}

static struct tsp_figures figures_of_user(const struct view_host *h, const struct stack_totals *t)
{
    struct tsp_figures f = {.events = t->events};
    if (f.events) {
        f.begin = view_to_reference(h, t->begin);
        f.end = view_to_reference(h, t->end);
    }
    return f;
}

static const char *env_text(struct views *x, const struct ctf_env *env)
{
    return env->is_string ? env->string : arena_printf(&x->arena, "%lld", (long long)env->number);
}

static size_t add_property(const char **p, const char *key, const char *value)
{
    p[0] = key;
    p[1] = value;
    return 1;
}

/* Adds properties that convert the clock's cycles to ns since the epoch, (cycles + offset) * scale, as other trace
 * servers do. */
static size_t add_clock(struct views *x, const struct ctf_trace *t, const char *(*p)[2])
{
    const struct ctf_clock *clocks;
    if (ctf_trace_clocks(t, &clocks) != 1 || !clocks->freq)
        return 0;
    const uint64_t offset = (uint64_t)clocks->offset_s * clocks->freq + clocks->offset;
    const double scale = 1e9 / (double)clocks->freq;
    add_property(p[0], "clock_offset", arena_printf(&x->arena, "%llu", (unsigned long long)offset));
    add_property(p[1], "clock_scale", arena_printf(&x->arena, scale == floor(scale) ? "%.1f" : "%.17g", scale));
    return 2;
}

/* Sets properties: environment of the argument's first trace, its clock, its host, and the clock that the times use. */
static void set_properties(struct views *x, size_t arg, struct tsp_figures *f)
{
    for (size_t i = 0; i < x->n_sources && !f->properties; i++) {
        const struct ctf_trace *t = x->sources[i].trace;
        const struct ctf_env *env;
        size_t n;
        if (path_of(x, t) != arg)
            continue;
        n = ctf_trace_env(t, &env);
        const char *(*p)[2] = arena_alloc(&x->arena, sizeof *p * (n + 4));
        for (size_t k = 0; k < n; k++) {
            p[k][0] = env[k].name;
            p[k][1] = env_text(x, &env[k]);
        }
        int32_t host = x->source_hosts[i];
        n += add_clock(x, t, p + n);
        if (host >= 0)
            n += add_property(p[n], "host ID", x->hosts[host].id);
        if (x->data.reference)
            n += add_property(p[n], "reference clock", x->data.reference);
        f->properties = (const char *const(*)[2])p;
        f->n_properties = n;
    }
}

/* Counts the spans of a store in place of a trace's events. */
static void add_spans(struct views *x, struct tsp_figures *figures, struct tsp_figures *all)
{
    const struct spanset *o = x->spans;
    for (size_t i = 0; o && i < x->request->n; i++) {
        struct tsp_figures one = {.events = o->n_rows, .begin = o->begin, .end = o->end};
        if (strcmp(x->request->paths[i], o->path) != 0)
            continue;
        tsp_figures_add(&figures[i], &one);
        tsp_figures_add(all, &one);
    }
}

static int set_figures(struct views *x, struct err *e)
{
    int rc = 0;
    struct tsp_figures all = {0};
    struct tsp_figures *figures = arena_new(&x->arena, struct tsp_figures, x->request->n + 1);
    for (size_t i = 0; i < x->n_sources && !rc; i++) {
        struct tsp_figures one = {0};
        int32_t host = x->source_hosts[i];
        const struct view_host *h = host >= 0 ? &x->hosts[host] : NULL;
        if (h && h->index->trace == x->sources[i].trace && h->index->graph)
            one = (struct tsp_figures){.events = h->index->events,
                .begin = view_to_reference(h, h->index->begin),
                .end = view_to_reference(h, h->index->end)};
        else if (x->traces[i].stacks)
            one = figures_of_user(h, stack_totals(x->traces[i].stacks));
        else
            rc = count_source(x, &x->sources[i], &one, e);
        tsp_figures_add(&figures[path_of(x, x->sources[i].trace)], &one);
        tsp_figures_add(&all, &one);
    }
    add_spans(x, figures, &all);
    for (size_t i = 0; i < x->request->n; i++)
        set_properties(x, i, &figures[i]);
    x->data.figures = figures;
    x->data.events = all.events;
    x->data.begin = all.begin;
    x->data.end = all.end;
    return rc;
}

/* ---- missing data ---- */

static const struct view_host *host_called(const struct views *x, const char *name)
{
    for (size_t i = 0; i < x->n_hosts; i++)
        if (!strcmp(x->hosts[i].id, name))
            return &x->hosts[i];
    return NULL;
}

/* Lists the first note of each host that reports unreadable data. Notes are in order of kind, then host; left-out data
 * comes first. */
static void set_lacks(struct views *x)
{
    const struct index_note *notes;
    size_t n = index_experiment_notes(x->x, &notes);
    struct tsp_lack *lacks = arena_new(&x->arena, struct tsp_lack, n + 1);
    x->data.lacks = lacks;
    x->data.whole = x->n_hosts;
    for (size_t i = 0; i < n; i++) {
        bool counts = notes[i].kind == INDEX_NOTE_LEFT_OUT || notes[i].kind == INDEX_NOTE_INPUT, known = false;
        for (size_t k = 0; k < x->data.n_lacks && counts && !known; k++)
            known = !strcmp(lacks[k].host, notes[i].host);
        if (!counts || known)
            continue;
        const struct view_host *h = host_called(x, notes[i].host);
        lacks[x->data.n_lacks++] = (struct tsp_lack){notes[i].host, notes[i].what, !h || !h->index->events};
        x->data.whole -= h != NULL;
    }
}

/* Adds the spans to what has data missing. */
static void set_lack_of_spans(struct views *x)
{
    const struct spanset *o = x->spans;
    for (size_t i = 0; o && i < o->notes.n; i++) {
        const struct spans_note *n = &o->notes.v[i];
        if (!n->lacks)
            continue;
        struct tsp_lack *lacks = arena_new(&x->arena, struct tsp_lack, x->data.n_lacks + 1);
        for (size_t k = 0; k < x->data.n_lacks; k++)
            lacks[k] = x->data.lacks[k];
        lacks[x->data.n_lacks++] = (struct tsp_lack){
            o->shown_name, n->file ? arena_printf(&x->arena, "%s: %s", n->file, n->what) : n->what, !o->n_rows};
        x->data.lacks = lacks;
        return;
    }
}

/* ---- opening ---- */

static size_t indexed_hosts(const struct experiment *x)
{
    const struct index_host *hosts;
    size_t n = index_experiment_hosts(x, &hosts), indexed = 0;
    for (size_t i = 0; i < n; i++)
        indexed += hosts[i].graph != NULL;
    return indexed;
}


static bool is_spans(const struct views_options *o, const char *path)
{
    return o->spans && !strcmp(path, o->spans);
}

/* Collects the paths of traces for the index; returns their number. */
static size_t index_arguments(struct views *x, const struct views_options *o, const char *const **out)
{
    const struct tsp_open_request *r = x->request;
    const char **args = arena_new(&x->arena, const char *, r->n + 1);
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        if (!is_spans(o, r->paths[i]))
            args[n++] = r->hosts[i] ? arena_printf(&x->arena, "%s=%s", r->hosts[i], r->paths[i]) : r->paths[i];
    *out = args;
    return n;
}

static int open_spans(struct views *x, const struct views_options *o, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < x->request->n && !rc; i++)
        if (is_spans(o, x->request->paths[i]))
            rc = spanset_open(x, o->spans, o->spans_url, &x->spans, e);
    return rc;
}

static int relate(struct views *x, const struct clock_options *clock, struct err *e)
{
    struct err unsynchronised = {0};
    bool apart = clock->no_messages && !clock->n_trust;
    /* Failure leaves every host its own clock; the clock report says why. */
    if (!apart && indexed_hosts(x->x) > 1 && index_experiment_sync(x->x, clock, &x->clocks, &unsynchronised)) {
        x->clocks = NULL;
        if (unsynchronised.code == ERR_NOMEM)
            return err_set(e, ERR_NOMEM, "%s", unsynchronised.text);
    }
    return 0;
}

int views_open_traces(struct views *x, const struct views_options *o, struct err *e)
{
    struct index_options index = {.store = o->store,
        .progress = x->request->progress,
        .stores = true,
        .states = true,
        .whole = true,
        .user_space = true,
        .tell = grow,
        .tell_arg = x,
        .stop = x->request->stop,
        .stop_arg = x->request->arg};
    struct clock_options clock = o->clocks ? *o->clocks : clock_defaults();
    const char *const *traces;
    size_t n = index_arguments(x, o, &traces);
    bool only_spans = !n && x->request->n;
    int rc = only_spans ? 0 : index_experiment_open(traces, n, &index, &x->x, e);
    rc = rc || only_spans ? rc : relate(x, &clock, e);
    if (rc)
        return rc;
    x->far = o->far;
    if (x->x) {
        set_hosts(x, o);
        set_reference(x, clock.reference);
        set_sources(x);
        set_paths(x);
        set_lacks(x);
    }
    rc = open_spans(x, o, e);
    if (!rc)
        set_lack_of_spans(x);
    return rc ? rc : set_figures(x, e);
}
