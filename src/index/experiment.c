/* From TRACE arguments to hosts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "index/experiment.h"

void experiment_problem(struct experiment *x, const char *host, const char *text, uint64_t count)
{
    pthread_mutex_lock(&x->lock);
    vec_push(&x->problems, ((struct ctf_problem){arena_printf(&x->arena, "%s: %s", host, text), count}));
    pthread_mutex_unlock(&x->lock);
}

/* ---- finding and opening traces ---------------------------------------------------------------------------------------------------- */

struct opening {
    struct experiment *x;
    const struct ctf_group *groups;
    struct ctf_trace **traces;
    struct err *errors;
};

static void open_one(void *arg, size_t i)
{
    struct opening *o = arg;
    ctf_trace_open(&o->groups[i], o->x->schemas, &o->traces[i], &o->errors[i]);
}

/* "NAME=PATH" names the hosts below PATH; a path may itself contain '=', then it must contain a '/' before it. */
static const char *split_name(struct experiment *x, const char *arg, const char **path)
{
    const char *eq = strchr(arg, '='), *slash = strchr(arg, '/');
    *path = arg;
    if (!eq || eq == arg || (slash && slash < eq))
        return NULL;
    *path = eq + 1;
    return arena_strndup(&x->arena, arg, (size_t)(eq - arg));
}

static const char *last_part(struct experiment *x, const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t b = n;
    while (b > 0 && path[b - 1] != '/')
        b--;
    return arena_strndup(&x->arena, path + b, n - b);
}

static bool name_taken(const struct experiment *x, const char *name)
{
    for (size_t i = 0; i < x->hosts.n; i++)
        if (!strcmp(x->hosts.v[i].name, name))
            return true;
    return false;
}

static const char *unique_name(struct experiment *x, const char *wanted)
{
    const char *name = wanted;
    for (int i = 2; name_taken(x, name); i++)
        name = arena_printf(&x->arena, "%s#%d", wanted, i);
    return name;
}

/* The host name a trace tells, or what its path suggests. */
static const char *told_name(struct experiment *x, const struct ctf_trace *t)
{
    const char *name = kernel_host_name(t);
    return name && *name ? arena_strdup(&x->arena, name) : last_part(x, ctf_trace_path(t));
}

static void add_host(struct experiment *x, struct ctf_trace *t, const char *name, bool is_kernel)
{
    struct index_host h = {.name = unique_name(x, name), .trace = t, .is_kernel = is_kernel, .fingerprint = ctf_trace_fingerprint(t)};
    ctf_trace_span(t, &h.begin, &h.end);
    for (size_t i = 0; i < ctf_trace_streams(t); i++) {
        struct ctf_stream_info s;
        ctf_trace_stream(t, i, &s);
        h.lost_events += s.lost_events;
    }
    const struct ctf_problem *p;
    size_t n = ctf_trace_problems(t, &p);
    for (size_t i = 0; i < n; i++)
        experiment_problem(x, h.name, p[i].text, p[i].count);
    vec_push(&x->hosts, h);
}

/* All traces of one argument. What cannot be opened is told among the problems, as long as something can. */
static int open_argument(struct experiment *x, const char *arg, struct err *e)
{
    const char *path, *name = split_name(x, arg, &path);
    struct ctf_group *groups;
    size_t n;
    if (!strncmp(arg, "net://", 6))
        return err_set(
            e, ERR_UNSUPPORTED, "%s: live sessions cannot be read by this verb; give the directory that lttng-relayd writes", arg);
    int rc = ctf_discover(path, &groups, &n, e);
    if (rc)
        return rc;
    struct opening o = {x, groups, mem_zalloc(n * sizeof *o.traces), mem_zalloc(n * sizeof *o.errors)};
    pool_run(n, 0, open_one, &o);
    size_t opened = 0;
    for (size_t i = 0; i < n; i++) {
        if (!o.traces[i])
            continue;
        opened++;
        vec_push(&x->sources, ((struct ctf_source){.trace = o.traces[i]}));
        if (kernel_is_kernel_trace(o.traces[i]))
            add_host(x, o.traces[i], name ? name : told_name(x, o.traces[i]), true);
    }
    /* User-space traces stand for a host only where no kernel trace does. */
    for (size_t i = 0; i < n; i++)
        if (o.traces[i] && !kernel_is_kernel_trace(o.traces[i])) {
            const char *host = name ? name : told_name(x, o.traces[i]);
            if (!name_taken(x, host))
                add_host(x, o.traces[i], host, false);
        }
    for (size_t i = 0; i < n; i++)
        if (!o.traces[i] && opened)
            experiment_problem(x, last_part(x, groups[i].dirs[0]), o.errors[i].text, 1);
    if (!opened) {
        *e = o.errors[0];
        rc = e->code;
    }
    free(o.traces);
    free(o.errors);
    ctf_groups_free(groups, n);
    return rc;
}

/* ---- stores ------------------------------------------------------------------------------------------------------------------------ */

struct indexing {
    struct experiment *x;
    const struct index_options *options;
    struct err *errors;
};

static void index_one(void *arg, size_t i)
{
    struct indexing *job = arg;
    struct index_host *h = &job->x->hosts.v[i];
    if (h->is_kernel)
        index_host_stores(job->x, h, job->options->force, job->options->progress, &job->errors[i]);
}

static int open_all_stores(struct experiment *x, const struct index_options *o, struct err *e)
{
    struct indexing job = {x, o, mem_zalloc(sizeof *job.errors * (x->hosts.n + 1))};
    uint64_t bytes = 0;
    bool any = false;
    for (size_t i = 0; i < x->hosts.n; i++) {
        any |= x->hosts.v[i].is_kernel;
        for (size_t k = 0; x->hosts.v[i].is_kernel && k < ctf_trace_streams(x->hosts.v[i].trace); k++) {
            struct ctf_stream_info s;
            ctf_trace_stream(x->hosts.v[i].trace, k, &s);
            bytes += s.bytes;
        }
    }
    progress_total(o->progress, bytes);
    pool_run(x->hosts.n, o->threads, index_one, &job);
    int rc = any ? 0
                 : err_set(e, ERR_UNSUPPORTED, "%s: no kernel trace with scheduling events; record one with the events of docs/record.md",
                       ctf_trace_path(x->sources.v[0].trace));
    bool some = false;
    for (size_t i = 0; i < x->hosts.n; i++)
        some |= x->hosts.v[i].graph != NULL;
    for (size_t i = 0; !rc && i < x->hosts.n; i++)
        if (job.errors[i].code) {
            if (some && job.errors[i].code == ERR_UNSUPPORTED) {
                experiment_problem(x, x->hosts.v[i].name, job.errors[i].text, 1);
            } else {
                *e = job.errors[i];
                rc = e->code;
            }
        }
    free(job.errors);
    return rc;
}

int experiment_open(const char *const *args, size_t n, const struct index_options *o, struct experiment **out, struct err *e)
{
    struct experiment *x = mem_zalloc(sizeof *x);
    int rc = n ? 0 : err_set(e, ERR_ARG, "no trace given");
    pthread_mutex_init(&x->lock, NULL);
    x->schemas = ctf_schemas_new();
    x->store = o->store ? arena_strdup(&x->arena, o->store) : NULL;
    for (size_t i = 0; !rc && i < n; i++)
        rc = open_argument(x, args[i], e);
    if (!rc && o->stores)
        rc = open_all_stores(x, o, e);
    if (rc) {
        experiment_close(x);
        return rc;
    }
    *out = x;
    return 0;
}

void experiment_close(struct experiment *x)
{
    if (!x)
        return;
    clock_net_free(x->clocks);
    for (size_t i = 0; i < x->hosts.n; i++) {
        graph_close((struct graph *)x->hosts.v[i].graph);
        flow_close((struct flow_store *)x->hosts.v[i].flows);
        state_close((struct state_store *)x->hosts.v[i].states);
    }
    for (size_t i = 0; i < x->sources.n; i++)
        ctf_trace_close(x->sources.v[i].trace);
    ctf_schemas_free(x->schemas);
    vec_free(&x->hosts);
    vec_free(&x->sources);
    vec_free(&x->problems);
    pthread_mutex_destroy(&x->lock);
    arena_fini(&x->arena);
    free(x);
}

size_t experiment_hosts(const struct experiment *x, const struct index_host **out)
{
    *out = x->hosts.v;
    return x->hosts.n;
}

size_t experiment_sources(const struct experiment *x, const struct ctf_source **out)
{
    *out = x->sources.v;
    return x->sources.n;
}

size_t experiment_problems(const struct experiment *x, const struct ctf_problem **out)
{
    *out = x->problems.v;
    return x->problems.n;
}
