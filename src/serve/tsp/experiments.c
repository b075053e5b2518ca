/* SPDX-License-Identifier: MIT */
/* Operations on experiments. */
#include "tsp/open.h"
#include "tsp/persist.h"
#include "tsp/routes.h"

enum { MAX_TRACES = 1000, MAX_EXPERIMENTS = 10000 };

static int compare_text(const void *a, const void *b)
{
    return strcasecmp(*(const char *const *)a, *(const char *const *)b);
}

/* True: both have the same traces, each equally often. */
static bool same_traces(struct arena *a, const struct tsp_experiment *x, const char *const *traces, size_t n)
{
    if (x->traces.n != n)
        return false;
    const char **p = arena_new(a, const char *, n + 1), **q = arena_new(a, const char *, n + 1);
    for (size_t i = 0; i < n; i++) {
        p[i] = x->traces.v[i];
        q[i] = traces[i];
    }
    qsort(p, n, sizeof *p, compare_text);
    qsort(q, n, sizeof *q, compare_text);
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(p[i], q[i]))
            return false;
    return true;
}

void tsp_experiments_list(struct call *c)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    pthread_mutex_lock(&c->s->lock);
    json_begin_array(&j);
    for (size_t i = 0; i < c->s->experiments.n; i++)
        tsp_model_write_experiment(c->s, &j, c->s->experiments.v[i]);
    json_end_array(&j);
    pthread_mutex_unlock(&c->s->lock);
    tsp_call_json(c, 200, &t);
}

/* Reads the uuids of the request; false: not an array of strings. */
static bool trace_list(struct call *c, const char ***out, size_t *n)
{
    json_t *list = json_object_get(c->parameters, "traces"), *item;
    size_t i;
    if (!json_is_array(list))
        return false;
    *n = json_array_size(list);
    *out = arena_new(c->q->arena, const char *, *n + 1);
    json_array_foreach (list, i, item) {
        if (!json_is_string(item))
            return false;
        (*out)[i] = json_string_value(item);
    }
    return true;
}

/* Returns the status, and the answer in t. With the lock held. */
static int post(
    struct tsp_server *s, struct arena *a, const char *name, const char *const *traces, size_t n, struct text *t)
{
    struct json j = JSON_TO(t);
    char uuid[UUID_TEXT];
    for (size_t i = 0; i < n; i++)
        if (!tsp_model_trace(s, traces[i]))
            return 404;
    tsp_uuid_of_name(name, uuid);
    struct tsp_experiment *x = tsp_model_experiment(s, uuid);
    if (x && !same_traces(a, x, traces, n)) {
        json_begin_object(&j);
        json_kv_string(&j, "title", "The experiment (name) already exists and both differ");
        json_kv_string(&j, "code", tsp_code_name(TSP_CODE_CONFLICT));
        json_key(&j, "experiment");
        tsp_model_write_experiment(s, &j, x);
        json_end_object(&j);
        return 409;
    }
    if (!x && s->experiments.n >= MAX_EXPERIMENTS)
        return 500;
    if (!x) {
        tsp_model_add_experiment(s, name, traces, n);
        tsp_persist_note(s, PERSIST_EXPERIMENT, uuid);
    }
    x = tsp_open_wanted(s, uuid);
    if (!x)
        return 404; /* deleted at this moment */
    tsp_model_write_experiment(s, &j, x);
    return 200;
}

void tsp_experiments_post(struct call *c)
{
    const char *name = tsp_string(c->parameters, "name"), **traces;
    size_t n;
    if (!json_object_get(c->parameters, "name") || !json_object_get(c->parameters, "traces")) {
        tsp_call_error(c, 400,
            json_object_get(c->parameters, "name") ? "Missing query parameters: traces"
                                                   : "Missing query parameters: name",
            NULL);
        return;
    }
    if (!name || !*name || !trace_list(c, &traces, &n) || !n || n > MAX_TRACES) {
        tsp_call_error(
            c, 400, name && *name ? "Invalid query parameters: traces" : "Invalid query parameters: name", NULL);
        return;
    }
    struct text t = {.fd = -1};
    pthread_mutex_lock(&c->s->lock);
    int status = post(c->s, c->q->arena, name, traces, n, &t);
    pthread_mutex_unlock(&c->s->lock);
    if (status == 404 || status == 500)
        tsp_call_error(c, status, status == 404 ? "No such trace" : "There are too many experiments", NULL);
    else
        tsp_call_json(c, status, &t);
}

void tsp_experiments_get(struct call *c)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    pthread_mutex_lock(&c->s->lock);
    struct tsp_experiment *x = tsp_open_wanted(c->s, c->arg[0]);
    if (x)
        tsp_model_write_experiment(c->s, &j, x);
    pthread_mutex_unlock(&c->s->lock);
    if (x)
        tsp_call_json(c, 200, &t);
    else
        tsp_call_error(c, 404, "No such experiment", NULL);
}

void tsp_experiments_delete(struct call *c)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    pthread_mutex_lock(&c->s->lock);
    struct tsp_experiment *x = tsp_model_experiment(c->s, c->arg[0]);
    if (x) {
        tsp_model_write_experiment(c->s, &j, x);
        tsp_persist_note(c->s, PERSIST_EXPERIMENT, x->uuid);
        tsp_model_remove_experiment(c->s, x);
    }
    pthread_mutex_unlock(&c->s->lock);
    if (x)
        tsp_call_json(c, 200, &t);
    else
        tsp_call_error(c, 404, "No such experiment", NULL);
}
