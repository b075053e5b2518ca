/* SPDX-License-Identifier: MIT */
/* Model of the server: traces, experiments, their bookmarks and derived outputs. All functions: with the server's lock
 * held. */
#include "tsp/model.h"

#include "tsp/follow.h"

struct tsp_trace *tsp_model_trace(struct tsp_server *s, const char *uuid)
{
    for (size_t i = 0; i < s->traces.n; i++)
        if (!strcasecmp(s->traces.v[i]->uuid, uuid))
            return s->traces.v[i];
    return NULL;
}

struct tsp_experiment *tsp_model_experiment(struct tsp_server *s, const char *uuid)
{
    for (size_t i = 0; i < s->experiments.n; i++)
        if (!strcasecmp(s->experiments.v[i]->uuid, uuid))
            return s->experiments.v[i];
    return NULL;
}

struct tsp_config *tsp_model_config(struct tsp_server *s, const char *id)
{
    for (size_t i = 0; i < s->configs.n; i++)
        if (!strcasecmp(s->configs.v[i].id, id))
            return &s->configs.v[i];
    return NULL;
}

struct tsp_config *tsp_model_add_config(struct tsp_server *s, struct tsp_config c)
{
    c.number = ++s->numbered;
    vec_push(&s->configs, c);
    return &s->configs.v[s->configs.n - 1];
}

struct tsp_trace *tsp_model_add_trace(struct tsp_server *s, const char *name, const char *path, const char *type)
{
    struct tsp_trace *t = mem_zalloc(sizeof *t);
    struct text key = {.fd = -1};
    text_printf(&key, "%s/%s", path, name);
    tsp_uuid_of_name(text_cstr(&key), t->uuid);
    text_fini(&key);
    t->number = ++s->numbered;
    t->name = mem_strdup(name);
    t->path = mem_strdup(path);
    t->type = mem_strdup(type ? type : "");
    vec_push(&s->traces, t);
    return t;
}

struct tsp_experiment *tsp_model_add_experiment(
    struct tsp_server *s, const char *name, const char *const *traces, size_t n)
{
    struct tsp_experiment *x = mem_zalloc(sizeof *x);
    tsp_uuid_of_name(name, x->uuid);
    x->number = ++s->numbered;
    x->name = mem_strdup(name);
    x->ids = tsp_ids_new(IDS_BITS);
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
    tsp_follow_end(s, x);
    free(x->name);
    free(x->reference);
    tsp_ids_unref(x->ids);
    free(x);
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        if (held[i]) {
            tsp_opening_abandon(held[i]);
            tsp_opening_unref_locked(s, held[i]);
        }
}

void tsp_model_remove_trace(struct tsp_server *s, struct tsp_trace *t)
{
    size_t i = 0;
    while (s->traces.v[i] != t)
        i++;
    memmove(s->traces.v + i, s->traces.v + i + 1, sizeof *s->traces.v * (s->traces.n - i - 1));
    s->traces.n--;
    free_trace(t);
}

void tsp_model_remove_experiment(struct tsp_server *s, struct tsp_experiment *x)
{
    size_t i = 0;
    while (s->experiments.v[i] != x)
        i++;
    memmove(s->experiments.v + i, s->experiments.v + i + 1, sizeof *s->experiments.v * (s->experiments.n - i - 1));
    s->experiments.n--;
    free_experiment(s, x);
}

void tsp_model_free(struct tsp_server *s)
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

/* True: `id` is that of a view of the derived output. */
static bool is_view(const struct tsp_provider *view, const char *derived, const char *id)
{
    size_t n = strlen(view->id);
    return !strncmp(id, view->id, n) && id[n] == ':' && !strcmp(id + n + 1, derived);
}

struct tsp_derived *tsp_model_derived(
    const struct tsp_experiment *x, const char *id, const struct tsp_provider **answers)
{
    for (size_t i = 0; i < x->derived.n; i++) {
        struct tsp_derived *d = &x->derived.v[i];
        *answers = d->provider;
        if (!strcmp(d->id, id))
            return d;
        for (const struct tsp_provider *const *v = d->provider->derivation->shown_by; v && (*answers = *v); v++)
            if (is_view(*v, d->id, id))
                return d;
    }
    *answers = NULL;
    return NULL;
}
