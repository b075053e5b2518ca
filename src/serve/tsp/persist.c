/* SPDX-License-Identifier: MIT */
/* State that survives a restart: a JSON file for each trace, experiment and configuration
 * (docs/formats/server-state.md). Each file is replaced in one step, so the cost of a change depends on its size only.
 * Parts unknown here (outputs derived from missing providers, traces that must not be opened) are left as they are. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/order.h"
#include "tsp/server.h"

enum { MAX_FILE_BYTES = 64 << 20, SUFFIX = 5 /* ".json" */ };
static const char *const directories[PERSIST_KINDS] = {
    [PERSIST_TRACE] = "traces", [PERSIST_EXPERIMENT] = "experiments", [PERSIST_CONFIG] = "configurations"};

/* ---- writing ---- */

static void write_derived(struct json *j, const struct tsp_derived *d)
{
    json_begin_object(j);
    json_kv_string(j, "id", d->id);
    json_kv_string(j, "provider", d->provider->id);
    json_key(j, "configuration");
    model_write_config(j, &d->config);
    json_end_object(j);
}

static void write_unknown(struct json *j, json_t *o)
{
    char *text = json_dumps(o, JSON_COMPACT);
    if (text)
        json_raw(j, text, strlen(text));
    free(text);
}

static void write_experiment(struct json *j, const struct tsp_experiment *x)
{
    json_kv_string(j, "name", x->name);
    if (x->reference)
        json_kv_string(j, "reference", x->reference);
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
    for (size_t i = 0; i < x->unknown.n; i++)
        write_unknown(j, x->unknown.v[i]);
    json_end_array(j);
}

static void write_trace(struct json *j, const struct tsp_trace *t)
{
    json_kv_string(j, "name", t->name);
    json_kv_string(j, "path", t->path);
    json_kv_string(j, "type", t->type);
    if (t->host)
        json_kv_string(j, "host", t->host);
}

/* Writes the thing as text; false: it was removed. With the lock held. */
static bool write_thing(struct tsp_server *s, const struct persist_item *item, struct text *out)
{
    struct json j = JSON_TO(out);
    const struct tsp_trace *t = item->kind == PERSIST_TRACE ? model_trace(s, item->uuid) : NULL;
    const struct tsp_experiment *x = item->kind == PERSIST_EXPERIMENT ? model_experiment(s, item->uuid) : NULL;
    const struct tsp_config *c = item->kind == PERSIST_CONFIG ? model_config(s, item->uuid) : NULL;
    if (!t && !x && !c)
        return false;
    json_begin_object(&j);
    json_kv_i64(&j, "number", t ? t->number : x ? x->number : c->number);
    if (t)
        write_trace(&j, t);
    if (x)
        write_experiment(&j, x);
    if (c) {
        json_key(&j, "configuration");
        model_write_config(&j, c);
    }
    json_end_object(&j);
    text_putc(out, '\n');
    return true;
}

void persist_note(struct tsp_server *s, enum persist_kind kind, const char *uuid)
{
    struct persist_item item = {.kind = kind};
    if (!s->state_dir)
        return;
    memcpy(item.uuid, uuid, UUID_TEXT);
    for (size_t i = 0; i < s->changed_things.n; i++)
        if (s->changed_things.v[i].kind == kind && !strcmp(s->changed_things.v[i].uuid, uuid))
            return;
    vec_push(&s->changed_things, item);
}

static int remove_file(const char *path, const char *directory, struct err *e)
{
    if (unlink(path))
        return errno == ENOENT ? 0 : err_sys(e, "%s", path);
    return file_sync_dir(directory, e);
}

/* Saves or removes the file of a thing. Holds the lock only while the text is made. */
static int save_one(struct tsp_server *s, const struct persist_item *item, struct err *e)
{
    struct text t = {.fd = -1};
    struct arena a = {0};
    const char *directory = arena_printf(&a, "%s/%s", s->state_dir, directories[item->kind]),
               *path = arena_printf(&a, "%s/%s.json", directory, item->uuid);
    pthread_mutex_lock(&s->lock);
    bool there = write_thing(s, item, &t);
    pthread_mutex_unlock(&s->lock);
    int rc = t.error ? err_set(e, ERR_NOMEM, "%s: out of memory", path)
        : there      ? file_write(path, t.v, t.n, e)
                     : remove_file(path, directory, e);
    text_fini(&t);
    arena_fini(&a);
    return rc;
}

/* Returns the next thing to be saved; false: none. With the lock held. */
static bool take_changed(struct tsp_server *s, struct persist_item *out)
{
    if (!s->changed_things.n)
        return false;
    *out = s->changed_things.v[--s->changed_things.n];
    return true;
}

void persist_save(struct tsp_server *s)
{
    struct persist_item item;
    VEC(struct persist_item) failed = {0};
    struct err why = {0};
    if (!s->state_dir)
        return;
    pthread_mutex_lock(&s->saving); /* makes a second caller wait until the changes are written */
    pthread_mutex_lock(&s->lock);
    while (take_changed(s, &item)) {
        struct err e = {0};
        pthread_mutex_unlock(&s->lock);
        if (save_one(s, &item, &e)) {
            why = e;
            vec_push(&failed, item);
        }
        pthread_mutex_lock(&s->lock);
    }
    /* A full disk must not stop the server: answers report it. */
    s->unsaved = why;
    for (size_t i = 0; i < failed.n; i++)
        persist_note(s, failed.v[i].kind, failed.v[i].uuid);
    pthread_mutex_unlock(&s->lock);
    pthread_mutex_unlock(&s->saving);
    vec_free(&failed);
}

/* ---- reading ---- */

static bool read_config(json_t *o, struct tsp_config *out)
{
    const char *id = call_string(o, "id"), *type = call_string(o, "sourceTypeId"), *name = call_string(o, "name"),
               *description = call_string(o, "description");
    json_t *parameters = json_object_get(o, "parameters");
    if (!id || !uuid_valid(id) || !type || !name || !json_is_object(parameters))
        return false;
    *out = tsp_config_new(type, name, description, parameters);
    memcpy(out->id, id, UUID_TEXT);
    return true;
}

static bool read_derived(struct tsp_server *s, struct tsp_experiment *x, json_t *o)
{
    const struct tsp_provider *const *known = s->o.backend.providers;
    const char *id = call_string(o, "id"), *provider = call_string(o, "provider");
    struct tsp_derived d = {0};
    for (size_t i = 0; provider && known[i]; i++)
        if (!strcmp(known[i]->id, provider))
            d.provider = known[i];
    if (!id || !d.provider || !read_config(json_object_get(o, "configuration"), &d.config))
        return false;
    d.id = mem_strdup(id);
    vec_push(&x->derived, d);
    return true;
}

static void read_bookmark(struct tsp_experiment *x, json_t *o)
{
    const char *uuid = call_string(o, "uuid"), *name = call_string(o, "name");
    struct tsp_bookmark b = {
        .start = json_integer_value(json_object_get(o, "start")), .end = json_integer_value(json_object_get(o, "end"))};
    if (!uuid || !uuid_valid(uuid) || !name)
        return;
    memcpy(b.uuid, uuid, UUID_TEXT);
    b.name = mem_strdup(name);
    vec_push(&x->bookmarks, b);
}

/* Reads an experiment. If none of its traces is known, it is not shown, and its file stays: the traces may return. */
static const char *read_experiment(struct tsp_server *s, json_t *o)
{
    const char *name = call_string(o, "name"), *traces[1024];
    char uuid[UUID_TEXT];
    json_t *item;
    size_t i, n = 0;
    bool some = false;
    json_array_foreach (json_object_get(o, "traces"), i, item)
        if (n < 1024 && json_is_string(item) && uuid_valid(json_string_value(item))) {
            traces[n++] = json_string_value(item);
            some |= model_trace(s, json_string_value(item)) != NULL;
        }
    if (!name || !some)
        return NULL;
    uuid_of_name(name, uuid);
    if (model_experiment(s, uuid))
        return NULL;
    struct tsp_experiment *x = model_add_experiment(s, name, traces, n);
    const char *reference = call_string(o, "reference");
    x->reference = reference ? mem_strdup(reference) : NULL;
    json_array_foreach (json_object_get(o, "bookmarks"), i, item)
        read_bookmark(x, item);
    json_array_foreach (json_object_get(o, "derived"), i, item)
        if (!read_derived(s, x, item))
            vec_push(&x->unknown, json_incref(item));
    return x->uuid;
}

/* Reads a trace. If it must not be opened now, it is not shown, and its file stays. */
static const char *read_trace(struct tsp_server *s, json_t *o)
{
    const char *name = call_string(o, "name"), *path = call_string(o, "path"), *host = call_string(o, "host");
    if (!name || !path || !trace_is_allowed(s, path))
        return NULL;
    for (size_t i = 0; i < s->traces.n; i++)
        if (!strcmp(s->traces.v[i]->path, path) && !strcmp(s->traces.v[i]->name, name))
            return NULL;
    struct tsp_trace *t = model_add_trace(s, name, path, call_string(o, "type"));
    if (host)
        t->host = mem_strdup(host);
    return t->uuid;
}

static const char *read_configuration(struct tsp_server *s, json_t *o)
{
    struct tsp_config c;
    if (!tsp_config_type_known(call_string(o, "sourceTypeId")) || !read_config(o, &c))
        return NULL;
    if (model_config(s, c.id)) {
        tsp_config_fini(&c);
        return NULL;
    }
    return model_add_config(s, c)->id;
}

/* Returns the uuid of the thing; NULL: nothing was made of it. */
static const char *read_thing(struct tsp_server *s, enum persist_kind kind, json_t *o)
{
    switch (kind) {
    case PERSIST_TRACE: return read_trace(s, o);
    case PERSIST_EXPERIMENT: return read_experiment(s, o);
    default: return read_configuration(s, json_object_get(o, "configuration"));
    }
}

static void set_number(struct tsp_server *s, enum persist_kind kind, const char *uuid, int64_t number)
{
    switch (kind) {
    case PERSIST_TRACE: model_trace(s, uuid)->number = number; break;
    case PERSIST_EXPERIMENT: model_experiment(s, uuid)->number = number; break;
    default: model_config(s, uuid)->number = number;
    }
}

/* Reads a JSON object. NULL: no such file, or (e) it cannot be read. */
static json_t *read_file(const char *path, struct err *e)
{
    char *data;
    size_t n;
    json_error_t wrong;
    struct err missing = {0};
    int rc = file_read(path, MAX_FILE_BYTES, &data, &n, &missing);
    if (rc) {
        if (rc != ERR_NOTFOUND)
            *e = missing;
        return NULL;
    }
    json_t *o = json_loadb(data, n, 0, &wrong);
    free(data);
    if (json_is_object(o))
        return o;
    json_decref(o);
    err_set(e, ERR_FORMAT, "%s: damaged (line %d: %s); move it away to start without it", path, wrong.line, wrong.text);
    return NULL;
}

struct found {
    int64_t number;
    json_t *o;
    char uuid[UUID_TEXT];
};
typedef VEC(struct found) found_vec;

static int by_number(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    return order_of(x->number, y->number) ?: strcmp(x->uuid, y->uuid);
}

static int find_files(const char *directory, found_vec *out, struct err *e)
{
    struct arena a = {0};
    DIR *d = opendir(directory);
    if (!d)
        return err_sys(e, "%s", directory);
    for (struct dirent *entry; !e->code && (entry = readdir(d));) {
        struct found f = {0};
        size_t n = strlen(entry->d_name);
        if (n != UUID_TEXT - 1 + SUFFIX || strcmp(entry->d_name + UUID_TEXT - 1, ".json") != 0)
            continue;
        memcpy(f.uuid, entry->d_name, UUID_TEXT - 1);
        if (!uuid_valid(f.uuid) || !(f.o = read_file(arena_printf(&a, "%s/%s", directory, entry->d_name), e)))
            continue;
        f.number = json_integer_value(json_object_get(f.o, "number"));
        vec_push(out, f);
    }
    closedir(d);
    arena_fini(&a);
    if (out->n)
        qsort(out->v, out->n, sizeof *out->v, by_number);
    return e->code;
}

static int load_kind(struct tsp_server *s, enum persist_kind kind, struct err *e)
{
    struct arena a = {0};
    found_vec found = {0};
    const char *directory = arena_printf(&a, "%s/%s", s->state_dir, directories[kind]);
    int rc = file_make_dirs(directory, e);
    rc = rc ?: find_files(directory, &found, e);
    for (size_t i = 0; i < found.n; i++) {
        const char *uuid = rc ? NULL : read_thing(s, kind, found.v[i].o);
        if (uuid)
            set_number(s, kind, uuid, found.v[i].number);
        s->numbered = found.v[i].number > s->numbered ? found.v[i].number : s->numbered;
        json_decref(found.v[i].o);
    }
    vec_free(&found);
    arena_fini(&a);
    return rc;
}

/* Reads the single file of an older server: things not known yet get files of their own. */
static int load_single(struct tsp_server *s, const char *path, struct err *e)
{
    json_t *all = read_file(path, e), *o;
    size_t i;
    if (!all)
        return e->code;
    for (enum persist_kind kind = 0; kind < PERSIST_KINDS; kind++)
        json_array_foreach (json_object_get(all, directories[kind]), i, o) {
            const char *uuid = kind == PERSIST_CONFIG ? read_configuration(s, o) : read_thing(s, kind, o);
            if (uuid)
                persist_note(s, kind, uuid);
        }
    json_decref(all);
    persist_save(s);
    return s->unsaved.code ? 0 : remove_file(path, s->state_dir, e);
}

int persist_load(struct tsp_server *s, struct err *e)
{
    struct arena a = {0};
    int rc = 0;
    for (enum persist_kind kind = 0; kind < PERSIST_KINDS && !rc; kind++)
        rc = load_kind(s, kind, e);
    rc = rc ?: load_single(s, arena_printf(&a, "%s/state.json", s->state_dir), e);
    arena_fini(&a);
    return rc;
}
