/* SPDX-License-Identifier: MIT */
/* Reading of the state that survives a restart (docs/formats/server-state.md). Parts unknown here (outputs derived from
 * missing providers, traces that must not be opened) are left as they are. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/order.h"
#include "tsp/persist.h"
#include "tsp/request.h"
#include "tsp/traces.h"
#include "tsp/values.h"

enum { MAX_FILE_BYTES = 64 << 20, SUFFIX = 5 /* ".json" */ };

static bool read_config(json_t *o, struct tsp_config *out)
{
    const char *id = tsp_string(o, "id"), *type = tsp_string(o, "sourceTypeId"), *name = tsp_string(o, "name"),
               *description = tsp_string(o, "description");
    json_t *parameters = json_object_get(o, "parameters");
    if (!id || !tsp_uuid_valid(id) || !type || !name || !json_is_object(parameters))
        return false;
    *out = tsp_config_new(type, name, description, parameters);
    memcpy(out->id, id, UUID_TEXT);
    return true;
}

static bool read_derived(struct tsp_server *s, struct tsp_experiment *x, json_t *o)
{
    const struct tsp_provider *const *known = s->o.backend.providers;
    const char *id = tsp_string(o, "id"), *provider = tsp_string(o, "provider");
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
    const char *uuid = tsp_string(o, "uuid"), *name = tsp_string(o, "name");
    struct tsp_bookmark b = {
        .start = json_integer_value(json_object_get(o, "start")), .end = json_integer_value(json_object_get(o, "end"))};
    if (!uuid || !tsp_uuid_valid(uuid) || !name)
        return;
    memcpy(b.uuid, uuid, UUID_TEXT);
    b.name = mem_strdup(name);
    vec_push(&x->bookmarks, b);
}

/* Reads an experiment. If none of its traces is known, it is not shown, and its file stays: the traces may return. */
static const char *read_experiment(struct tsp_server *s, json_t *o)
{
    const char *name = tsp_string(o, "name"), *traces[1024];
    char uuid[UUID_TEXT];
    json_t *item;
    size_t i, n = 0;
    bool some = false;
    json_array_foreach (json_object_get(o, "traces"), i, item)
        if (n < 1024 && json_is_string(item) && tsp_uuid_valid(json_string_value(item))) {
            traces[n++] = json_string_value(item);
            some |= tsp_model_trace(s, json_string_value(item)) != NULL;
        }
    if (!name || !some)
        return NULL;
    tsp_uuid_of_name(name, uuid);
    if (tsp_model_experiment(s, uuid))
        return NULL;
    struct tsp_experiment *x = tsp_model_add_experiment(s, name, traces, n);
    const char *reference = tsp_string(o, "reference");
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
    const char *name = tsp_string(o, "name"), *path = tsp_string(o, "path"), *host = tsp_string(o, "host");
    if (!name || !path || !tsp_trace_is_allowed(s, path))
        return NULL;
    for (size_t i = 0; i < s->traces.n; i++)
        if (!strcmp(s->traces.v[i]->path, path) && !strcmp(s->traces.v[i]->name, name))
            return NULL;
    struct tsp_trace *t = tsp_model_add_trace(s, name, path, tsp_string(o, "type"));
    if (host)
        t->host = mem_strdup(host);
    return t->uuid;
}

static const char *read_configuration(struct tsp_server *s, json_t *o)
{
    struct tsp_config c;
    if (!tsp_config_type_known(tsp_string(o, "sourceTypeId")) || !read_config(o, &c))
        return NULL;
    if (tsp_model_config(s, c.id)) {
        tsp_config_fini(&c);
        return NULL;
    }
    return tsp_model_add_config(s, c)->id;
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
    case PERSIST_TRACE: tsp_model_trace(s, uuid)->number = number; break;
    case PERSIST_EXPERIMENT: tsp_model_experiment(s, uuid)->number = number; break;
    default: tsp_model_config(s, uuid)->number = number;
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
        if (!tsp_uuid_valid(f.uuid) || !(f.o = read_file(arena_printf(&a, "%s/%s", directory, entry->d_name), e)))
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
    const char *directory = arena_printf(&a, "%s/%s", s->state_dir, tsp_persist_directory(kind));
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
        json_array_foreach (json_object_get(all, tsp_persist_directory(kind)), i, o) {
            const char *uuid = kind == PERSIST_CONFIG ? read_configuration(s, o) : read_thing(s, kind, o);
            if (uuid)
                tsp_persist_note(s, kind, uuid);
        }
    json_decref(all);
    tsp_persist_save(s);
    return s->unsaved.code ? 0 : tsp_persist_remove_file(path, s->state_dir, e);
}

int tsp_persist_load(struct tsp_server *s, struct err *e)
{
    struct arena a = {0};
    int rc = 0;
    for (enum persist_kind kind = 0; kind < PERSIST_KINDS && !rc; kind++)
        rc = load_kind(s, kind, e);
    rc = rc ?: load_single(s, arena_printf(&a, "%s/state.json", s->state_dir), e);
    arena_fini(&a);
    return rc;
}
