/* SPDX-License-Identifier: MIT */
/* State that survives a restart: a JSON file for each trace, experiment and configuration
 * (docs/formats/server-state.md). Each file is replaced in one step, so the cost of a change depends on its size
 * only. */
#include "tsp/persist.h"

#include <errno.h>
#include <unistd.h>

#include "base/file.h"

const char *tsp_persist_directory(enum persist_kind kind)
{
    static const char *const names[PERSIST_KINDS] = {
        [PERSIST_TRACE] = "traces", [PERSIST_EXPERIMENT] = "experiments", [PERSIST_CONFIG] = "configurations"};
    return names[kind];
}

static void write_derived(struct json *j, const struct tsp_derived *d)
{
    json_begin_object(j);
    json_kv_string(j, "id", d->id);
    json_kv_string(j, "provider", d->provider->id);
    json_key(j, "configuration");
    tsp_model_write_config(j, &d->config);
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
    const struct tsp_trace *t = item->kind == PERSIST_TRACE ? tsp_model_trace(s, item->uuid) : NULL;
    const struct tsp_experiment *x = item->kind == PERSIST_EXPERIMENT ? tsp_model_experiment(s, item->uuid) : NULL;
    const struct tsp_config *c = item->kind == PERSIST_CONFIG ? tsp_model_config(s, item->uuid) : NULL;
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
        tsp_model_write_config(&j, c);
    }
    json_end_object(&j);
    text_putc(out, '\n');
    return true;
}

void tsp_persist_note(struct tsp_server *s, enum persist_kind kind, const char *uuid)
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

int tsp_persist_remove_file(const char *path, const char *directory, struct err *e)
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
    const char *directory = arena_printf(&a, "%s/%s", s->state_dir, tsp_persist_directory(item->kind)),
               *path = arena_printf(&a, "%s/%s.json", directory, item->uuid);
    pthread_mutex_lock(&s->lock);
    bool there = write_thing(s, item, &t);
    pthread_mutex_unlock(&s->lock);
    int rc = t.error ? err_set(e, ERR_NOMEM, "%s: out of memory", path)
        : there      ? file_write(path, t.v, t.n, e)
                     : tsp_persist_remove_file(path, directory, e);
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

void tsp_persist_save(struct tsp_server *s)
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
        tsp_persist_note(s, failed.v[i].kind, failed.v[i].uuid);
    pthread_mutex_unlock(&s->lock);
    pthread_mutex_unlock(&s->saving);
    vec_free(&failed);
}
