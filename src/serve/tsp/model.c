/* SPDX-License-Identifier: MIT */
/* Model of the server: traces, experiments, their bookmarks and derived outputs. All functions: with the server's lock
 * held. */
#include "base/progress.h"
#include "tsp/server.h"

struct tsp_trace *model_trace(struct tsp_server *s, const char *uuid)
{
    for (size_t i = 0; i < s->traces.n; i++)
        if (!strcasecmp(s->traces.v[i]->uuid, uuid))
            return s->traces.v[i];
    return NULL;
}

struct tsp_experiment *model_experiment(struct tsp_server *s, const char *uuid)
{
    for (size_t i = 0; i < s->experiments.n; i++)
        if (!strcasecmp(s->experiments.v[i]->uuid, uuid))
            return s->experiments.v[i];
    return NULL;
}

struct tsp_config *model_config(struct tsp_server *s, const char *id)
{
    for (size_t i = 0; i < s->configs.n; i++)
        if (!strcasecmp(s->configs.v[i].id, id))
            return &s->configs.v[i];
    return NULL;
}

struct tsp_config *model_add_config(struct tsp_server *s, struct tsp_config c)
{
    c.number = ++s->numbered;
    vec_push(&s->configs, c);
    return &s->configs.v[s->configs.n - 1];
}

struct tsp_trace *model_add_trace(struct tsp_server *s, const char *name, const char *path, const char *type)
{
    struct tsp_trace *t = mem_zalloc(sizeof *t);
    struct text key = {.fd = -1};
    text_printf(&key, "%s/%s", path, name);
    uuid_of_name(text_cstr(&key), t->uuid);
    text_fini(&key);
    t->number = ++s->numbered;
    t->name = mem_strdup(name);
    t->path = mem_strdup(path);
    t->type = mem_strdup(type ? type : "");
    vec_push(&s->traces, t);
    return t;
}

struct tsp_experiment *model_add_experiment(struct tsp_server *s, const char *name, const char *const *traces, size_t n)
{
    struct tsp_experiment *x = mem_zalloc(sizeof *x);
    uuid_of_name(name, x->uuid);
    x->number = ++s->numbered;
    x->name = mem_strdup(name);
    x->ids = ids_new(IDS_BITS);
    for (size_t i = 0; i < n; i++)
        vec_push(&x->traces, mem_strdup(traces[i]));
    vec_push(&s->experiments, x);
    return x;
}

static void free_trace(struct tsp_trace *t)
{
    free(t->name);
    free(t->path);
    free(t->type);
    free(t->host);
    free(t);
}

struct tsp_config tsp_config_new(const char *type, const char *name, const char *description, json_t *parameters)
{
    return (struct tsp_config){.type = mem_strdup(type),
        .name = mem_strdup(name),
        .description = mem_strdup(description ? description : ""),
        .parameters = json_deep_copy(parameters),
        .text = json_dumps(parameters, JSON_COMPACT)};
}

void tsp_config_fini(struct tsp_config *c)
{
    free(c->text);
    free(c->type);
    free(c->name);
    free(c->description);
    json_decref(c->parameters);
}

void tsp_bookmark_fini(struct tsp_bookmark *b)
{
    free(b->name);
}

void tsp_derived_fini(struct tsp_derived *d)
{
    free(d->id);
    tsp_config_fini(&d->config);
}

static void free_experiment(struct tsp_server *s, struct tsp_experiment *x)
{
    struct tsp_opening *const held[] = {x->open, x->next, x->earlier};
    for (size_t i = 0; i < x->traces.n; i++)
        free(x->traces.v[i]);
    for (size_t i = 0; i < x->bookmarks.n; i++)
        tsp_bookmark_fini(&x->bookmarks.v[i]);
    for (size_t i = 0; i < x->derived.n; i++)
        tsp_derived_fini(&x->derived.v[i]);
    for (size_t i = 0; i < x->unknown.n; i++)
        json_decref(x->unknown.v[i]);
    vec_free(&x->unknown);
    vec_free(&x->traces);
    vec_free(&x->bookmarks);
    vec_free(&x->derived);
    follow_end(s, x);
    free(x->name);
    free(x->reference);
    ids_unref(x->ids);
    free(x);
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        if (held[i]) {
            open_abandon(held[i]);
            open_unref_locked(s, held[i]);
        }
}

void model_remove_trace(struct tsp_server *s, struct tsp_trace *t)
{
    size_t i = 0;
    while (s->traces.v[i] != t)
        i++;
    memmove(s->traces.v + i, s->traces.v + i + 1, sizeof *s->traces.v * (s->traces.n - i - 1));
    s->traces.n--;
    free_trace(t);
}

void model_remove_experiment(struct tsp_server *s, struct tsp_experiment *x)
{
    size_t i = 0;
    while (s->experiments.v[i] != x)
        i++;
    memmove(s->experiments.v + i, s->experiments.v + i + 1, sizeof *s->experiments.v * (s->experiments.n - i - 1));
    s->experiments.n--;
    free_experiment(s, x);
}

void model_free(struct tsp_server *s)
{
    for (size_t i = 0; i < s->traces.n; i++)
        free_trace(s->traces.v[i]);
    while (s->experiments.n) {
        s->experiments.n--;
        free_experiment(s, s->experiments.v[s->experiments.n]);
    }
    for (size_t i = 0; i < s->configs.n; i++)
        tsp_config_fini(&s->configs.v[i]);
    vec_free(&s->traces);
    vec_free(&s->experiments);
    vec_free(&s->configs);
}

/* ---- output as text ---- */

/* Figures of a path of the opening. While it is being opened: of what has been read. */
static struct tsp_figures figures_at(const struct tsp_opening *o, size_t path)
{
    const struct tsp_growing *g = &o->growing[path];
    if (o->stage == STAGE_OPEN)
        return o->data->figures[path];
    struct tsp_figures f = {.events = atomic_load(&g->events)}; /* times are set before their events */
    f.begin = atomic_load(&g->begin);
    f.end = atomic_load(&g->end);
    return f.events && f.begin <= f.end ? f : (struct tsp_figures){0};
}

static struct tsp_figures figures_of(const struct tsp_opening *o, const struct tsp_trace *t)
{
    for (size_t i = 0; o && i < o->request.n; i++)
        if (!strcmp(o->request.paths[i], t->path))
            return figures_at(o, i);
    return (struct tsp_figures){0};
}

static struct tsp_figures all_figures(const struct tsp_opening *o)
{
    struct tsp_figures all = {0};
    if (o && o->stage == STAGE_OPEN)
        return (struct tsp_figures){.events = o->data->events, .begin = o->data->begin, .end = o->data->end};
    for (size_t i = 0; o && i < o->request.n; i++) {
        struct tsp_figures f = figures_at(o, i);
        tsp_figures_add(&all, &f);
    }
    return all;
}

void model_write_trace(struct json *j, const struct tsp_trace *t, const struct tsp_figures *f, const char *state)
{
    const struct tsp_figures none = {0};
    f = f ? f : &none;
    json_begin_object(j);
    json_kv_string(j, "name", t->name);
    json_kv_string(j, "path", t->path);
    json_kv_string(j, "UUID", t->uuid);
    json_kv_u64(j, "nbEvents", f->events);
    json_kv_i64(j, "start", f->begin);
    json_kv_i64(j, "end", f->end);
    json_kv_string(j, "indexingStatus", state);
    json_key(j, "properties");
    json_begin_object(j);
    for (size_t i = 0; i < f->n_properties; i++)
        json_kv_string(j, f->properties[i][0], f->properties[i][1]);
    json_end_object(j);
    json_end_object(j);
}

/* Writes the progress of reading traces, once the total is known. */
static void write_indexed(struct json *j, const struct tsp_opening *o)
{
    uint64_t done, total;
    progress_read(o->request.progress, &done, &total);
    if (!total)
        return;
    json_key(j, "indexed");
    json_begin_object(j);
    json_kv_u64(j, "bytes", done < total ? done : total);
    json_kv_u64(j, "of", total);
    json_end_object(j);
}

void model_write_experiment(struct tsp_server *s, struct json *j, const struct tsp_experiment *x)
{
    const struct tsp_opening *open = x->open && x->open->stage != STAGE_FAILED ? x->open : NULL;
    bool is_open = open && open->stage == STAGE_OPEN, goes_on = open && (!is_open || x->next);
    const char *state = !open ? "CLOSED" : goes_on ? "RUNNING" : "COMPLETED";
    struct tsp_figures all = all_figures(open);
    json_begin_object(j);
    json_kv_string(j, "name", x->name);
    json_kv_string(j, "UUID", x->uuid);
    json_kv_u64(j, "nbEvents", all.events);
    json_kv_i64(j, "start", all.begin);
    json_kv_i64(j, "end", all.end);
    json_kv_string(j, "indexingStatus", state);
    json_kv_u64(j, "version", is_open ? x->version : 0);
    if (is_open && open->data->reference)
        json_kv_string(j, "reference", open->data->reference);
    if (x->problem.code)
        json_kv_string(j, "problem", x->problem.text);
    if (goes_on)
        write_indexed(j, is_open ? x->next : open);
    json_key(j, "traces");
    json_begin_array(j);
    for (size_t i = 0; i < x->traces.n; i++) {
        const struct tsp_trace *t = model_trace(s, x->traces.v[i]);
        struct tsp_figures f = t ? figures_of(open, t) : all;
        if (t)
            model_write_trace(j, t, &f, state);
    }
    json_end_array(j);
    json_end_object(j);
}

void model_write_config(struct json *j, const struct tsp_config *c)
{
    json_begin_object(j);
    json_kv_string(j, "id", c->id);
    json_kv_string(j, "name", c->name);
    json_kv_string(j, "description", c->description);
    json_kv_string(j, "sourceTypeId", c->type);
    json_key(j, "parameters");
    if (c->text)
        json_raw(j, c->text, strlen(c->text));
    else
        json_write_null(j);
    json_end_object(j);
}
