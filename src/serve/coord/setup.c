/* SPDX-License-Identifier: MIT */
/* Set-up of a server by the configuration: opens its traces, and creates experiments of those with matching paths. */
#include <jansson.h>
#include <string.h>

#include "base/json.h"
#include "base/regex.h"
#include "base/time.h"
#include "coord/request.h"

enum { ANSWER_BYTES = 64 << 20, MAKE_MS = 30000, NS_PER_MS = 1000000 };

struct made {
    struct coordinator *c;
    struct node *n;
    struct arena arena;
};

/* Sends one request. Returns the answer, in the arena; at NULL: none. */
static struct slice ask(struct made *m, const char *method, const char *path, const char *json, int *status)
{
    struct http_gather g;
    struct http_fetch *f = arena_new(&m->arena, struct http_fetch, 1);
    struct slice s = {0};
    coord_node_address(m->n, &m->arena, path, f);
    f->method = method;
    f->json = json;
    f->json_bytes = json ? strlen(json) : 0;
    f->max_bytes = ANSWER_BYTES;
    http_gather_begin(&g, m->c->client);
    http_gather_add(&g, f);
    for (int64_t end = time_monotonic_ns() + MAKE_MS * (int64_t)NS_PER_MS, now;;) {
        now = time_monotonic_ns();
        if (http_gather_wait(&g, now + 50 * NS_PER_MS) || now > end || coord_node_is_away(m->n))
            break;
        pthread_mutex_lock(&m->c->lock);
        bool stopping = m->c->stopping;
        pthread_mutex_unlock(&m->c->lock);
        if (stopping)
            break;
    }
    *status = atomic_load(&f->done) && !f->error.code ? f->status : 0;
    if (*status) {
        const char *text = arena_strndup(&m->arena, f->body.n ? f->body.v : "", f->body.n);
        s = slice_of(text, f->body.n, NULL, NULL);
    }
    http_gather_end(&g);
    return s;
}

static void report(struct made *m, const char *what, struct slice answer, int status)
{
    const char *title = slice_string(slice_get(answer, "title"), &m->arena);
    if (m->c->o.report)
        m->c->o.report(arena_printf(&m->arena, "server %s: %s: %s", m->n->is->name, what,
            title        ? title
                : status ? arena_printf(&m->arena, "status %d", status)
                         : "no answer"));
}

static const char *dump(struct made *m, json_t *parameters)
{
    json_t *body = json_object();
    json_object_set_new(body, "parameters", parameters);
    return coord_body_text(&m->arena, body);
}

static void open_traces(struct made *m)
{
    for (size_t i = 0; i < m->n->is->traces.n; i++) {
        const char *path = m->n->is->traces.v[i];
        json_t *p = json_object();
        int status;
        json_object_set_new(p, "uri", json_string(path));
        json_object_set_new(p, "maxDepth", json_integer(3)); /* servers that walk folders open all traces below */
        struct slice answer = ask(m, "POST", "/traces", dump(m, p), &status);
        if (status != 200)
            report(m, arena_printf(&m->arena, "cannot open %s", path), answer, status);
    }
}

/* Returns whether a path matches one of the expressions; without any, all paths do. */
static bool fits(struct regex *const *patterns, size_t n, const char *path)
{
    bool fits = !n;
    for (size_t i = 0; i < n && !fits; i++)
        fits = patterns[i] && regex_finds(patterns[i], path, strlen(path)) == 1;
    return fits;
}

static void make_one(struct made *m, const char *name, struct regex *const *patterns, size_t n, struct slice traces)
{
    struct slice_walk w = slice_items(traces);
    json_t *uuids = json_array(), *p = json_object();
    int status;
    for (struct slice t; slice_next(&w, &t);) {
        const char *path = slice_string(slice_get(t, "path"), &m->arena),
                   *uuid = slice_string(slice_get(t, "UUID"), &m->arena);
        if (path && uuid && fits(patterns, n, path))
            json_array_append_new(uuids, json_string(uuid));
    }
    if (!json_array_size(uuids)) {
        json_decref(uuids);
        json_decref(p);
        return;
    }
    json_object_set_new(p, "name", json_string(name));
    json_object_set_new(p, "traces", uuids);
    struct slice answer = ask(m, "POST", "/experiments", dump(m, p), &status);
    const char *uuid = slice_string(slice_get(answer, "UUID"), &m->arena);
    if (status == 200 && uuid)
        coord_node_note_experiment(m->n, uuid, true);
    else
        report(m, arena_printf(&m->arena, "cannot make the experiment %s", name), answer, status);
}

static void make_configured(struct made *m, const struct coord_experiment *x, struct slice traces)
{
    struct regex **patterns = arena_new(&m->arena, struct regex *, x->patterns.n + 1);
    for (size_t i = 0; i < x->patterns.n; i++)
        if (regex_compile(x->patterns.v[i], &patterns[i], NULL))
            patterns[i] = NULL; /* the configuration was validated */
    make_one(m, x->name, patterns, x->patterns.n, traces);
    for (size_t i = 0; i < x->patterns.n; i++)
        regex_free(patterns[i]);
}

void coord_set_up(struct coordinator *c, struct node *n)
{
    struct made m = {.c = c, .n = n};
    const struct coord_config *config = c->o.config;
    int status;
    open_traces(&m);
    if (config->experiments.n || c->o.name) {
        struct slice traces = ask(&m, "GET", "/traces", NULL, &status);
        if (slice_is(traces, '['))
            coord_node_note_traces(n, traces);
        for (size_t i = 0; i < config->experiments.n; i++)
            make_configured(&m, &config->experiments.v[i], traces);
        if (c->o.name)
            make_one(&m, c->o.name, NULL, 0, traces);
    }
    arena_fini(&m.arena);
}
