/* SPDX-License-Identifier: MIT */
/* Outputs of an experiment: the list, and derived ones. */
#include "tsp/open.h"
#include "tsp/persist.h"
#include "tsp/routes.h"

#include "base/time.h"
#include "base/wait.h"

enum { MAX_DERIVED = 1000, WAIT_NS = 3000000000 };

/* ---- list ---- */

static void write_output(struct json *j, const struct tsp_output *o)
{
    const struct tsp_provider *p = o->provider;
    json_begin_object(j);
    json_kv_string(j, "id", o->id);
    json_kv_string(j, "name", o->name);
    json_kv_string(j, "description", p->description ? p->description : "");
    json_kv_string(j, "type", p->type);
    if (p->parent)
        json_kv_string(j, "parentId", p->parent);
    if (p->derivation) {
        json_key(j, "capabilities");
        json_begin_object(j);
        json_kv_bool(j, "canCreate", true);
        json_end_object(j);
    }
    json_end_object(j);
}

static void write_derived(struct json *j, const struct tsp_derived *d)
{
    const struct tsp_provider *p = d->provider;
    json_begin_object(j);
    json_kv_string(j, "id", d->id);
    json_kv_string(j, "name", d->config.name);
    json_kv_string(j, "description",
        *d->config.description ? d->config.description
            : p->description   ? p->description
                               : "");
    json_kv_string(j, "type", p->derivation->output_type ? p->derivation->output_type : p->type);
    json_kv_string(j, "parentId", p->id);
    json_key(j, "configuration");
    tsp_model_write_config(j, &d->config);
    json_key(j, "capabilities");
    json_begin_object(j);
    json_kv_bool(j, "canDelete", true);
    json_end_object(j);
    json_end_object(j);
}

/* Writes an output that shows a derived one. */
static void write_view(struct json *j, const struct tsp_derived *d, const struct tsp_provider *view, struct arena *a)
{
    json_begin_object(j);
    json_kv_string(j, "id", arena_printf(a, "%s:%s", view->id, d->id));
    json_kv_string(j, "name", arena_printf(a, "%s - %s", d->config.name, view->name));
    json_kv_string(j, "description", view->description);
    json_kv_string(j, "type", view->type);
    json_kv_string(j, "parentId", d->id);
    json_key(j, "configuration");
    tsp_model_write_config(j, &d->config);
    json_end_object(j);
}

static void write_derived_and_views(struct json *j, const struct tsp_derived *d, struct arena *a)
{
    write_derived(j, d);
    for (const struct tsp_provider *const *v = d->provider->derivation->shown_by; v && *v; v++)
        write_view(j, d, *v, a);
}

/* Waits a little until the experiment is open. *x is looked up again; NULL: it was removed. With the lock held. */
static struct tsp_opening *wait_open(struct call *c, struct tsp_experiment **x)
{
    int64_t deadline = time_monotonic_ns() + WAIT_NS;
    for (;;) {
        *x = tsp_open_wanted(c->s, c->arg[0]);
        if (!*x || !(*x)->open || (*x)->open->stage != STAGE_OPENING || time_monotonic_ns() > deadline ||
            http_gone(c->q))
            return *x && (*x)->open && (*x)->open->stage == STAGE_OPEN ? (*x)->open : NULL;
        wait_until(&c->s->changed, &c->s->lock, time_monotonic_ns() + 100000000);
    }
}

void tsp_outputs_list(struct call *c)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    struct tsp_experiment *x;
    char why[sizeof(struct err)] = "";
    pthread_mutex_lock(&c->s->lock);
    const struct tsp_opening *o = wait_open(c, &x);
    bool known = x != NULL;
    if (known && x->open && x->open->stage == STAGE_FAILED && x->open->error.code == ERR_NOMEM)
        http_lack_memory(c->q);
    if (known && x->open && x->open->stage == STAGE_FAILED)
        snprintf(why, sizeof why, "%s", x->open->error.text);
    json_begin_array(&j);
    for (size_t i = 0; o && i < o->data->n_outputs; i++)
        write_output(&j, &o->data->outputs[i]);
    for (size_t i = 0; o && i < x->derived.n; i++)
        write_derived_and_views(&j, &x->derived.v[i], c->q->arena);
    json_end_array(&j);
    pthread_mutex_unlock(&c->s->lock);
    if (known && !*why) {
        tsp_call_json(c, 200, &t);
        return;
    }
    text_fini(&t);
    if (known)
        tsp_call_error(c, 500, "The experiment cannot be opened", why);
    else
        tsp_call_error(c, 404, "No such trace", NULL);
}

/* ---- single outputs ---- */

static struct tsp_derived *find_derived(const struct tsp_experiment *x, const char *id)
{
    const struct tsp_provider *answers;
    struct tsp_derived *d = tsp_model_derived(x, id, &answers);
    return d && answers == d->provider ? d : NULL;
}

/* Output that an id names: an output, a derived one, or a view of that. */
struct named {
    const struct tsp_output *output;
    const struct tsp_derived *derived;
    const struct tsp_provider *view; /* NULL: the derived output itself */
};

/* Finds the output. If the experiment or the output does not exist, sends a 404 and releases the lock. With the lock
 * held. */
static bool find_output(struct call *c, struct named *out)
{
    struct tsp_experiment *x;
    const struct tsp_opening *o = wait_open(c, &x);
    *out = (struct named){.output = o ? tsp_opening_output(o, c->arg[1]) : NULL};
    if (x && !out->output && (out->derived = tsp_model_derived(x, c->arg[1], &out->view)) &&
        out->view == out->derived->provider)
        out->view = NULL;
    if (!out->output && !out->derived) {
        bool known = x != NULL;
        pthread_mutex_unlock(&c->s->lock);
        tsp_call_error(c, 404, known ? "No such provider" : "No such trace", NULL);
        return false;
    }
    return true;
}

void tsp_outputs_get(struct call *c)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    struct named named;
    pthread_mutex_lock(&c->s->lock);
    if (!find_output(c, &named))
        return;
    if (named.output)
        write_output(&j, named.output);
    else if (named.view)
        write_view(&j, named.derived, named.view, c->q->arena);
    else
        write_derived(&j, named.derived);
    pthread_mutex_unlock(&c->s->lock);
    tsp_call_json(c, 200, &t);
}

static void write_config_type(struct json *j, const struct tsp_provider *p)
{
    json_begin_object(j);
    json_kv_string(j, "id", p->derivation->type);
    json_kv_string(j, "name", p->derivation->name);
    json_kv_string(j, "description", p->description ? p->description : "");
    json_key(j, "schema");
    json_raw(j, p->derivation->schema, strlen(p->derivation->schema));
    json_end_object(j);
}

/* Finds the provider whose configuration types are requested; false: 404 has been sent. Without the lock. */
static bool provider_asked(struct call *c, const struct tsp_provider **p)
{
    struct named named;
    pthread_mutex_lock(&c->s->lock);
    if (!find_output(c, &named))
        return false;
    *p = named.output ? named.output->provider : NULL; /* derived outputs cannot be configured again */
    pthread_mutex_unlock(&c->s->lock);
    return true;
}

void tsp_outputs_config_types(struct call *c)
{
    const struct tsp_provider *p;
    if (!provider_asked(c, &p))
        return;
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    json_begin_array(&j);
    if (p && p->derivation)
        write_config_type(&j, p);
    json_end_array(&j);
    tsp_call_json(c, 200, &t);
}

void tsp_outputs_config_type(struct call *c)
{
    const struct tsp_provider *p;
    if (!provider_asked(c, &p))
        return;
    if (!p || !p->derivation || strcmp(p->derivation->type, c->arg[2])) {
        tsp_call_error(c, 404, "No such configuration type", NULL);
        return;
    }
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    write_config_type(&j, p);
    tsp_call_json(c, 200, &t);
}

/* ---- derived outputs ---- */

/* Id of a configuration, made from its contents: equal configurations are one output. */
static void config_id(const struct tsp_provider *p, const char *name, json_t *parameters, char id[UUID_TEXT])
{
    char *text = json_dumps(parameters, JSON_COMPACT | JSON_SORT_KEYS);
    struct text key = {.fd = -1};
    text_printf(&key, "%s\n%s\n%s", p->id, name, text ? text : "");
    tsp_uuid_of_name(text_cstr(&key), id);
    text_fini(&key);
    free(text);
}

/* Returns the derived output, found or new; NULL: too many. With the lock held. */
static struct tsp_derived *derive(
    struct call *c, struct tsp_experiment *x, const struct tsp_provider *p, const char *name, const char *description)
{
    char id[UUID_TEXT];
    config_id(p, name, c->parameters, id);
    const char *full = p->derivation->prefix ? arena_printf(c->q->arena, "%s%s", p->derivation->prefix, id)
                                             : arena_printf(c->q->arena, "%s:%s", p->id, id);
    struct tsp_derived *found = find_derived(x, full);
    if (found || x->derived.n >= MAX_DERIVED)
        return found;
    struct tsp_derived d = {.id = mem_strdup(full), .provider = p};
    d.config = tsp_config_new(p->derivation->type, name, description, c->parameters);
    memcpy(d.config.id, id, UUID_TEXT);
    vec_push(&x->derived, d);
    tsp_persist_note(c->s, PERSIST_EXPERIMENT, x->uuid);
    return &x->derived.v[x->derived.n - 1];
}

static const char *wrong_derivation(struct call *c, const struct tsp_provider *p)
{
    const char *name = tsp_string(c->body, "name"), *type = tsp_string(c->body, "sourceTypeId");
    type = type ? type : tsp_string(c->body, "typeId");
    if (!json_object_get(c->body, "name"))
        return "Missing query parameters: name";
    if (!name || !*name)
        return "Invalid query parameters: name";
    if (!type)
        return "Missing query parameters: sourceTypeId";
    return p && p->derivation && !strcmp(type, p->derivation->type) ? NULL : "Invalid query parameters: sourceTypeId";
}

void tsp_outputs_post(struct call *c)
{
    const struct tsp_provider *p;
    if (!provider_asked(c, &p))
        return;
    enum tsp_code code = TSP_CODE_INVALID_QUERY;
    const char *wrong = wrong_derivation(c, p);
    pthread_mutex_lock(&c->s->lock);
    struct tsp_experiment *x = tsp_model_experiment(c->s, c->arg[0]);
    c->open = x ? tsp_opening_ref(x) : NULL;
    c->reads = c->open && c->open->stage == STAGE_OPEN;
    pthread_mutex_unlock(&c->s->lock);
    if (!c->open) {
        tsp_call_error(c, 404, "No such trace", NULL);
        return;
    }
    if (!c->reads) {
        tsp_call_error(c, 503, "The traces are being opened", NULL);
        return;
    }
    if (!wrong)
        wrong = c->s->o.backend.check(c->open->data, p, c->parameters, c->q->arena, &code);
    if (wrong) {
        tsp_call_refuse(c, 400, code, wrong, NULL);
        return;
    }
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    pthread_mutex_lock(&c->s->lock);
    x = tsp_model_experiment(c->s, c->arg[0]);
    struct tsp_derived *d = x ? derive(c, x, p, tsp_string(c->body, "name"), tsp_string(c->body, "description")) : NULL;
    if (d)
        write_derived(&j, d);
    pthread_mutex_unlock(&c->s->lock);
    if (d)
        tsp_call_json(c, 200, &t);
    else
        tsp_call_error(c, x ? 400 : 404, x ? "There are too many derived outputs" : "No such trace", NULL);
}

void tsp_outputs_delete(struct call *c)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    const struct tsp_provider *p;
    if (!provider_asked(c, &p))
        return;
    if (!p || !p->derivation) {
        tsp_call_error(c, 400, "Nothing can be derived from this output", NULL);
        return;
    }
    pthread_mutex_lock(&c->s->lock);
    struct tsp_experiment *x = tsp_model_experiment(c->s, c->arg[0]);
    struct tsp_derived *d = x ? find_derived(x, c->arg[2]) : NULL;
    bool found = d && d->provider == p;
    if (found) {
        write_derived(&j, d);
        c->configuration = json_deep_copy(d->config.parameters);
        c->open = tsp_opening_ref(x);
        tsp_derived_fini(d);
        memmove(d, d + 1, sizeof *d * (size_t)(x->derived.v + x->derived.n - d - 1));
        x->derived.n--;
        tsp_persist_note(c->s, PERSIST_EXPERIMENT, x->uuid);
    }
    bool is_open = c->open && c->open->stage == STAGE_OPEN;
    pthread_mutex_unlock(&c->s->lock);
    if (is_open)
        c->s->o.backend.forget(c->open->data, p, c->configuration);
    if (found)
        tsp_call_json(c, 200, &t);
    else
        tsp_call_error(c, 404, "No such derived provider", NULL);
}
