/* SPDX-License-Identifier: MIT */
/* An experiment's life: its traces are opened, then its stores. */
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "index/stores.h"

/* ---- stores ---- */

struct indexing {
    struct experiment *x;
    const struct index_options *options;
    struct err *errors; /* indexed by trace */
};

/* Returns whether the index builds stores of that trace. */
static bool is_wanted(const struct experiment *x, const struct index_options *o, size_t trace)
{
    return x->traces.v[trace].is_kernel || o->user_space;
}

static void index_one(void *arg, size_t i)
{
    struct indexing *job = arg;
    struct experiment *x = job->x;
    if (is_wanted(x, job->options, i))
        index_open_stores(x, &x->traces.v[i], job->options, &job->errors[i]);
}

/* Returns whether the error stops the opening of the experiment. Results from files that change are invalid. */
static bool stops_all(const struct experiment *x, const struct err *e)
{
    return experiment_needs(x, e) || e->code == ERR_LOST || e->code == ERR_CANCELLED;
}

/* Returns whether something remains to look at: a host with an open store. User-space traces without a kernel trace,
 * and hosts that record no scheduling, need no stores. */
static bool something_remains(const struct experiment *x, const struct index_options *o, const struct err *errors)
{
    bool some = false;
    for (size_t i = 0; i < x->traces.n && !some; i++) {
        const struct index_trace *t = &x->traces.v[i];
        some = t->is_kernel ? x->hosts.v[t->host].graph || (o->user_space && errors[i].code == ERR_UNSUPPORTED)
                            : o->user_space;
    }
    return some;
}

/* Notes traces that cannot be indexed. Fails only if nothing remains to look at. */
static int note_errors(struct experiment *x, const struct index_options *o, const struct err *errors, struct err *e)
{
    bool some = something_remains(x, o, errors);
    for (size_t i = 0; i < x->traces.n; i++) {
        const char *host = x->hosts.v[x->traces.v[i].host].name;
        if (!errors[i].code)
            continue;
        if (!some || stops_all(x, &errors[i])) {
            *e = errors[i];
            return err_wrap(e, "%s", host);
        }
        index_experiment_note(x, INDEX_NOTE_LEFT_OUT, host, errors[i].text, 1);
    }
    return 0;
}

static int open_all_stores(struct experiment *x, const struct index_options *o, struct err *e)
{
    struct indexing job = {x, o, mem_zalloc(sizeof *job.errors * (x->traces.n + 1))};
    uint64_t bytes = 0;
    bool any = o->user_space;
    for (size_t i = 0; i < x->traces.n; i++) {
        any |= x->traces.v[i].is_kernel;
        bytes += is_wanted(x, o, i) ? index_stream_bytes(x->traces.v[i].trace) : 0;
    }
    progress_total(o->progress, bytes);
    pool_run(x->traces.n, o->threads, index_one, &job);
    int rc = any ? note_errors(x, o, job.errors, e)
                 : err_set(e, ERR_UNSUPPORTED,
                       "%s: no kernel trace with scheduling events; record one with the events of docs/record.md",
                       ctf_trace_path(x->sources.v[0].trace));
    free(job.errors);
    return rc;
}

struct experiment *index_experiment_new(void)
{
    struct experiment *x = mem_zalloc(sizeof *x);
    pthread_mutex_init(&x->lock, NULL);
    x->user_marks = index_experiment_user_marks_new();
    x->schemas = ctf_schemas_new();
    return x;
}

int index_experiment_made(struct experiment *x, int rc, struct experiment **out)
{
    index_experiment_sort_notes(x);
    if (rc) {
        index_experiment_close(x);
        return rc;
    }
    *out = x;
    return 0;
}

int index_experiment_open(
    const char *const *args, size_t n, const struct index_options *o, struct experiment **out, struct err *e)
{
    struct experiment *x = index_experiment_new();
    int rc = n ? 0 : err_set(e, ERR_ARG, "no trace given");
    x->whole = o->whole;
    x->states = o->states;
    x->store = o->store ? arena_strdup(&x->arena, o->store) : NULL;
    if (!rc)
        rc = index_experiment_open_traces(x, args, n, o, e);
    if (!rc && o->stores && !(rc = open_all_stores(x, o, e))) {
        index_experiment_note_losses(x);
        index_experiment_note_calls(x);
    }
    return index_experiment_made(x, rc, out);
}

void index_experiment_close(struct experiment *x)
{
    if (!x)
        return;
    index_catalogues_check(x);
    clock_net_free(x->clocks);
    for (size_t i = 0; i < x->hosts.n; i++) {
        graph_close((struct graph *)x->hosts.v[i].graph);
        flow_close((struct flow_store *)x->hosts.v[i].flows);
        state_close((struct state_store *)x->hosts.v[i].states);
        index_rows_free(x->hosts.v[i].rows);
    }
    for (size_t i = 0; i < x->traces.n; i++) {
        stack_close((struct stack_store *)x->traces.v[i].stacks);
        index_types_close((struct index_types *)x->traces.v[i].types);
    }
    for (size_t i = 0; i < x->sources.n; i++)
        ctf_trace_close(x->sources.v[i].trace);
    ctf_schemas_free(x->schemas);
    vec_free(&x->hosts);
    vec_free(&x->sources);
    vec_free(&x->traces);
    vec_free(&x->notes);
    vec_free(&x->catalogues);
    index_experiment_user_marks_free(x->user_marks);
    pthread_mutex_destroy(&x->lock);
    arena_fini(&x->arena);
    free(x);
}

static int host_intact(const struct index_host *h, struct err *e)
{
    int rc = h->graph ? graph_intact(h->graph, e) : 0;
    if (!rc && h->flows)
        rc = flow_intact(h->flows, e);
    if (!rc && h->states)
        rc = state_intact(h->states, e);
    return rc;
}

int index_experiment_intact(const struct experiment *x, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < x->sources.n && !rc; i++)
        rc = ctf_trace_intact(x->sources.v[i].trace, e);
    for (size_t i = 0; i < x->hosts.n && !rc; i++)
        rc = host_intact(&x->hosts.v[i], e);
    for (size_t i = 0; i < x->traces.n && !rc; i++)
        rc = x->traces.v[i].stacks ? stack_intact(x->traces.v[i].stacks, e) : 0;
    if (rc)
        index_catalogues_check(x);
    return rc;
}

size_t index_experiment_hosts(const struct experiment *x, const struct index_host **out)
{
    *out = x->hosts.v;
    return x->hosts.n;
}

uint64_t index_experiment_stored_events(const struct experiment *x)
{
    uint64_t n = 0;
    for (size_t i = 0; i < x->hosts.n; i++)
        n += x->hosts.v[i].graph ? x->hosts.v[i].events : 0;
    for (size_t i = 0; i < x->traces.n; i++)
        n += x->traces.v[i].stacks ? stack_totals(x->traces.v[i].stacks)->events : 0;
    return n;
}

size_t index_experiment_sources(const struct experiment *x, const struct ctf_source **out)
{
    *out = x->sources.v;
    return x->sources.n;
}

int32_t index_experiment_source_host(const struct experiment *x, size_t source)
{
    return x->traces.v[source].host;
}

size_t index_experiment_traces(const struct experiment *x, const struct index_trace **out)
{
    *out = x->traces.v;
    return x->traces.n;
}
