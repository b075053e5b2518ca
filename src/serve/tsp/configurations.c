/* SPDX-License-Identifier: MIT */
/* Configurations of the server. One type: marker sets, named points and spans of time that viewers draw over every
 * chart. */
#include "tsp/persist.h"
#include "tsp/routes.h"

#define MARKERS_TYPE "weft.markers"

enum { MAX_CONFIGS = 1000, MAX_MARKERS = 10000 };

static const char markers_schema[] =
    "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\",\"required\":[\"markers\"],"
    "\"properties\":{\"markers\":{\"type\":\"array\","
    "\"description\":\"Points and spans of time\",\"items\":{\"type\":\"object\",\"required\":[\"time\"],"
    "\"properties\":{"
    "\"time\":{\"type\":\"integer\",\"description\":\"ns since the epoch\"},\"duration\":{\"type\":\"integer\","
    "\"description\":\"ns\"},"
    "\"label\":{\"type\":\"string\"},\"category\":{\"type\":\"string\"},\"color\":{\"type\":\"string\","
    "\"description\":\"#rrggbb\"}}}}}}";

static void write_type(struct json *j)
{
    json_begin_object(j);
    json_kv_string(j, "id", MARKERS_TYPE);
    json_kv_string(j, "name", "Marker sets");
    json_kv_string(j, "description", "Points and spans of time that are drawn over every chart");
    json_key(j, "schema");
    json_raw(j, markers_schema, sizeof markers_schema - 1);
    json_end_object(j);
}

void tsp_config_types(struct call *c)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    json_begin_array(&j);
    write_type(&j);
    json_end_array(&j);
    tsp_call_json(c, 200, &t);
}

bool tsp_config_type_known(const char *type)
{
    return type && !strcmp(type, MARKERS_TYPE);
}

static bool known_type(struct call *c)
{
    bool known = tsp_config_type_known(c->arg[0]);
    if (!known)
        tsp_call_error(c, 404, "No such configuration type", NULL);
    return known;
}

void tsp_config_type(struct call *c)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    if (!known_type(c))
        return;
    write_type(&j);
    tsp_call_json(c, 200, &t);
}

void tsp_configs_list(struct call *c)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    if (!known_type(c))
        return;
    pthread_mutex_lock(&c->s->lock);
    json_begin_array(&j);
    for (size_t i = 0; i < c->s->configs.n; i++)
        tsp_model_write_config(&j, &c->s->configs.v[i]);
    json_end_array(&j);
    pthread_mutex_unlock(&c->s->lock);
    tsp_call_json(c, 200, &t);
}

static const char *wrong_markers(json_t *parameters)
{
    json_t *list = json_object_get(parameters, "markers"), *m;
    size_t i;
    int64_t number;
    if (!list)
        return "Missing query parameters: markers";
    if (!json_is_array(list) || json_array_size(list) > MAX_MARKERS)
        return "Invalid query parameters: markers";
    json_array_foreach (list, i, m) {
        json_t *duration = json_object_get(m, "duration");
        if (!json_is_object(m) || !tsp_integer(json_object_get(m, "time"), &number) ||
            (duration && (!tsp_integer(duration, &number) || number < 0)))
            return "Invalid query parameters: markers (each has a time and may have a duration, in ns)";
    }
    return NULL;
}

/* Parses the body; false: the error has been sent. */
static bool wanted(struct call *c, struct tsp_config *out)
{
    const char *name = tsp_string(c->body, "name"), *description = tsp_string(c->body, "description");
    const char *wrong = !json_object_get(c->body, "name") ? "Missing query parameters: name"
        : !name || !*name                                 ? "Invalid query parameters: name"
                                                          : wrong_markers(c->parameters);
    if (wrong) {
        tsp_call_error(c, 400, wrong, NULL);
        return false;
    }
    *out = tsp_config_new(MARKERS_TYPE, name, description, c->parameters);
    return true;
}

/* Sends the configuration, or 404. Releases the lock. */
static void answer(struct call *c, const struct tsp_config *config)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    bool found = config != NULL;
    if (config)
        tsp_model_write_config(&j, config);
    pthread_mutex_unlock(&c->s->lock);
    if (found)
        tsp_call_json(c, 200, &t);
    else
        tsp_call_error(c, 404, "No such configuration", NULL);
}

void tsp_configs_post(struct call *c)
{
    struct tsp_config config;
    if (!known_type(c) || !wanted(c, &config))
        return;
    tsp_uuid_random(config.id);
    pthread_mutex_lock(&c->s->lock);
    if (c->s->configs.n >= MAX_CONFIGS) {
        pthread_mutex_unlock(&c->s->lock);
        tsp_config_fini(&config);
        tsp_call_error(c, 500, "There are too many configurations", "delete some");
        return;
    }
    tsp_persist_note(c->s, PERSIST_CONFIG, config.id);
    answer(c, tsp_model_add_config(c->s, config));
}

void tsp_configs_get(struct call *c)
{
    if (!known_type(c))
        return;
    pthread_mutex_lock(&c->s->lock);
    answer(c, tsp_model_config(c->s, c->arg[1]));
}

void tsp_configs_put(struct call *c)
{
    struct tsp_config config;
    if (!known_type(c))
        return;
    pthread_mutex_lock(&c->s->lock);
    bool known = tsp_model_config(c->s, c->arg[1]) != NULL;
    pthread_mutex_unlock(&c->s->lock);
    if (!known) {
        tsp_call_error(c, 404, "No such configuration", NULL);
        return;
    }
    if (!wanted(c, &config))
        return;
    pthread_mutex_lock(&c->s->lock);
    struct tsp_config *old = tsp_model_config(c->s, c->arg[1]);
    if (old) {
        memcpy(config.id, old->id, UUID_TEXT);
        config.number = old->number;
        tsp_config_fini(old);
        *old = config;
        tsp_persist_note(c->s, PERSIST_CONFIG, old->id);
    } else {
        tsp_config_fini(&config);
    }
    answer(c, old);
}

void tsp_configs_delete(struct call *c)
{
    struct tsp_config gone = {0};
    if (!known_type(c))
        return;
    pthread_mutex_lock(&c->s->lock);
    struct tsp_config *config = tsp_model_config(c->s, c->arg[1]);
    if (config) {
        gone = *config;
        memmove(config, config + 1, sizeof *config * (size_t)(c->s->configs.v + c->s->configs.n - config - 1));
        c->s->configs.n--;
        tsp_persist_note(c->s, PERSIST_CONFIG, gone.id);
    }
    answer(c, config ? &gone : NULL);
    tsp_config_fini(&gone);
}
