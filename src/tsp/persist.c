/* What survives a restart: one JSON file, replaced in one step. */
#include "tsp/server.h"

#include "base/file.h"

enum { MAX_STATE_BYTES = 64 << 20 };

static void write_derived(struct json *j, const struct tsp_derived *d)
{
    json_begin_object(j);
    json_kv_string(j, "id", d->id);
    json_kv_string(j, "provider", d->provider->id);
    json_key(j, "configuration");
    model_write_config(j, &d->config);
    json_end_object(j);
}

static void write_experiment(struct json *j, const struct tsp_experiment *x)
{
    json_begin_object(j);
    json_kv_string(j, "name", x->name);
    json_key(j, "traces");
    json_begin_array(j);
    for (size_t i = 0; i < x->traces.n; i++)
        json_write_string(j, x->traces.v[i]);
    json_end_array(j);
    json_key(j, "bookmarks");
    json_begin_array(j);
    for (size_t i = 0; i < x->bookmarks.n; i++) {
        json_begin_object(j);
        json_kv_string(j, "uuid", x->bookmarks.v[i].uuid);
        json_kv_string(j, "name", x->bookmarks.v[i].name);
        json_kv_i64(j, "start", x->bookmarks.v[i].start);
        json_kv_i64(j, "end", x->bookmarks.v[i].end);
        json_end_object(j);
    }
    json_end_array(j);
    json_key(j, "derived");
    json_begin_array(j);
    for (size_t i = 0; i < x->derived.n; i++)
        write_derived(j, &x->derived.v[i]);
    json_end_array(j);
    json_end_object(j);
}

void persist_save(struct tsp_server *s)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    if (!s->state_file || s->loading)
        return;
    json_begin_object(&j);
    json_kv_i64(&j, "version", 1);
    json_key(&j, "traces");
    json_begin_array(&j);
    for (size_t i = 0; i < s->traces.n; i++) {
        json_begin_object(&j);
        json_kv_string(&j, "name", s->traces.v[i]->name);
        json_kv_string(&j, "path", s->traces.v[i]->path);
        json_kv_string(&j, "type", s->traces.v[i]->type);
        if (s->traces.v[i]->host)
            json_kv_string(&j, "host", s->traces.v[i]->host);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_key(&j, "experiments");
    json_begin_array(&j);
    for (size_t i = 0; i < s->experiments.n; i++)
        write_experiment(&j, s->experiments.v[i]);
    json_end_array(&j);
    json_key(&j, "configurations");
    json_begin_array(&j);
    for (size_t i = 0; i < s->configs.n; i++)
        model_write_config(&j, &s->configs.v[i]);
    json_end_array(&j);
    json_end_object(&j);
    text_putc(&t, '\n');
    /* A full disk must not stop the server: answers tell it. */
    s->unsaved = (struct err){0};
    file_write(s->state_file, t.v, t.n, &s->unsaved);
    text_fini(&t);
}

static bool read_config(json_t *o, struct tsp_config *out)
{
    const char *id = call_string(o, "id"), *type = call_string(o, "sourceTypeId"), *name = call_string(o, "name"),
               *description = call_string(o, "description");
    json_t *parameters = json_object_get(o, "parameters");
    if (!id || !uuid_valid(id) || !type || !name || !json_is_object(parameters))
        return false;
    *out = (struct tsp_config){.type = mem_strdup(type),
        .name = mem_strdup(name),
        .description = mem_strdup(description ? description : ""),
        .parameters = json_incref(parameters)};
    memcpy(out->id, id, UUID_TEXT);
    return true;
}

static void read_derived(struct tsp_server *s, struct tsp_experiment *x, json_t *o)
{
    const struct tsp_provider *const *known = s->o.backend.providers;
    const char *id = call_string(o, "id"), *provider = call_string(o, "provider");
    struct tsp_derived d = {0};
    for (size_t i = 0; provider && known[i]; i++)
        if (!strcmp(known[i]->id, provider))
            d.provider = known[i];
    if (!id || !d.provider || !read_config(json_object_get(o, "configuration"), &d.config))
        return;
    d.id = mem_strdup(id);
    vec_push(&x->derived, d);
}

static void read_experiment(struct tsp_server *s, json_t *o)
{
    const char *name = call_string(o, "name"), *traces[1024];
    json_t *item;
    size_t i, n = 0;
    json_array_foreach (json_object_get(o, "traces"), i, item)
        if (n < 1024 && json_is_string(item) && model_trace(s, json_string_value(item)))
            traces[n++] = json_string_value(item);
    if (!name || !n)
        return;
    struct tsp_experiment *x = model_add_experiment(s, name, traces, n);
    json_array_foreach (json_object_get(o, "bookmarks"), i, item) {
        const char *uuid = call_string(item, "uuid"), *title = call_string(item, "name");
        struct tsp_bookmark b = {.start = json_integer_value(json_object_get(item, "start")),
            .end = json_integer_value(json_object_get(item, "end"))};
        if (!uuid || !uuid_valid(uuid) || !title)
            continue;
        memcpy(b.uuid, uuid, UUID_TEXT);
        b.name = mem_strdup(title);
        vec_push(&x->bookmarks, b);
    }
    json_array_foreach (json_object_get(o, "derived"), i, item)
        read_derived(s, x, item);
}

int persist_load(struct tsp_server *s, struct err *e)
{
    char *data;
    size_t n, i;
    json_error_t wrong;
    struct err missing = {0};
    int rc = file_read(s->state_file, MAX_STATE_BYTES, &data, &n, &missing);
    if (rc == ERR_NOTFOUND)
        return 0;
    if (rc) {
        *e = missing;
        return rc;
    }
    json_t *root = json_loadb(data, n, 0, &wrong), *item;
    free(data);
    if (!json_is_object(root)) {
        json_decref(root);
        return err_set(e, ERR_FORMAT, "%s: damaged (line %d: %s); move it away to start without it", s->state_file,
            wrong.line, wrong.text);
    }
    s->loading = true;
    json_array_foreach (json_object_get(root, "traces"), i, item) {
        const char *name = call_string(item, "name"), *path = call_string(item, "path");
        const char *host = call_string(item, "host");
        struct tsp_trace *t = name && path ? model_add_trace(s, name, path, call_string(item, "type")) : NULL;
        if (t && host)
            t->host = mem_strdup(host);
    }
    json_array_foreach (json_object_get(root, "experiments"), i, item)
        read_experiment(s, item);
    json_array_foreach (json_object_get(root, "configurations"), i, item) {
        struct tsp_config c;
        if (read_config(item, &c))
            vec_push(&s->configs, c);
    }
    s->loading = false;
    json_decref(root);
    return 0;
}
