/* SPDX-License-Identifier: MIT */
/* Bookmarks: stored by the coordinator itself, as no server may have the whole experiment. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "coord/call.h"

enum { MAX_BOOKMARKS = 100000, MAX_FILE = 64 << 20 };

/* {experiment uuid: {bookmark uuid: {"name", "start", "end"}}} */
struct bookmarks {
    pthread_mutex_t lock;
    char *path; /* NULL: not stored */
    json_t *all;
    size_t n;
};

int coord_bookmarks_open(const char *path, struct bookmarks **out, struct err *e)
{
    struct bookmarks *b = mem_zalloc(sizeof *b);
    char *text = NULL;
    size_t n = 0;
    pthread_mutex_init(&b->lock, NULL);
    *out = b;
    b->path = path ? mem_strdup(path) : NULL;
    if (path && !access(path, F_OK)) {
        int rc = file_read(path, MAX_FILE, &text, &n, e);
        if (rc)
            return rc;
        b->all = json_loadb(text, n, 0, NULL);
        free(text);
        if (!json_is_object(b->all))
            return err_set(e, ERR_FORMAT, "%s: this is no list of bookmarks; remove it to begin without any", path);
    }
    b->all = b->all ? b->all : json_object();
    const char *key;
    json_t *of;
    json_object_foreach (b->all, key, of)
        b->n += json_object_size(of);
    return 0;
}

void coord_bookmarks_close(struct bookmarks *b)
{
    if (!b)
        return;
    json_decref(b->all);
    pthread_mutex_destroy(&b->lock);
    free(b->path);
    free(b);
}

/* Stores all bookmarks, atomically; call with the lock held. False: it failed. */
static bool save(const struct bookmarks *b)
{
    struct err e = {0};
    if (!b->path)
        return true;
    char *text = json_dumps(b->all, JSON_INDENT(1));
    bool good = text && !file_write(b->path, text, strlen(text), &e);
    free(text);
    return good;
}

static void put(struct json *j, const char *uuid, json_t *b)
{
    json_begin_object(j);
    json_kv_string(j, "uuid", uuid);
    json_kv_string(j, "name", coord_text(b, "name"));
    json_kv_i64(j, "start", json_integer_value(json_object_get(b, "start")));
    json_kv_i64(j, "end", json_integer_value(json_object_get(b, "end")));
    json_end_object(j);
}

/* Returns the key in lower case. */
static const char *key_of(struct coord_call *c, size_t arg)
{
    char *key = arena_strdup(c->arena, c->request.arg[arg]);
    for (char *p = key; *p; p++)
        *p |= *p >= 'A' && *p <= 'Z' ? 0x20 : 0;
    return key;
}

static json_t *of_experiment(struct coord_call *c)
{
    return json_object_get(c->c->bookmarks->all, key_of(c, 0));
}

void coord_bookmarks_list(struct coord_call *c)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    const char *uuid;
    json_t *b;
    pthread_mutex_lock(&c->c->bookmarks->lock);
    json_begin_array(&j);
    json_object_foreach (of_experiment(c), uuid, b)
        put(&j, uuid, b);
    json_end_array(&j);
    pthread_mutex_unlock(&c->c->bookmarks->lock);
    coord_reply(c, 200, &t);
}

/* Returns NULL, or the error in the request's bookmark. */
static const char *wrong_bookmark(struct coord_call *c)
{
    json_t *name = json_object_get(c->request.parameters, "name"),
           *start = json_object_get(c->request.parameters, "start"),
           *end = json_object_get(c->request.parameters, "end");
    if (!name || !start || !end)
        return !name ? "Missing query parameters: name"
            : !start ? "Missing query parameters: start"
                     : "Missing query parameters: end";
    if (!json_is_string(name) || !*json_string_value(name))
        return "Invalid query parameters: name";
    if (!json_is_integer(start) || !json_is_integer(end) || json_integer_value(start) > json_integer_value(end))
        return "Invalid query parameters: start, end";
    return NULL;
}

static json_t *from_request(struct coord_call *c)
{
    json_t *b = json_object();
    static const char *const keys[] = {"name", "start", "end"};
    for (int i = 0; i < 3; i++)
        json_object_set_new(b, keys[i], json_deep_copy(json_object_get(c->request.parameters, keys[i])));
    return b;
}

/* Sends the answer. kept: the state it reports is stored. */
static void answer(struct coord_call *c, bool kept, struct text *t)
{
    if (kept) {
        coord_reply(c, 200, t);
        return;
    }
    text_fini(t);
    coord_error(c, 507, "The bookmarks cannot be stored: all is as it was", "is the disk of --state full?");
}

/* Reads, replaces or removes one bookmark. */
enum change { LOOK, REPLACE, REMOVE };
static void one(struct coord_call *c, enum change how)
{
    struct bookmarks *all = c->c->bookmarks;
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    const char *uuid = key_of(c, 1), *wrong = how == REPLACE ? wrong_bookmark(c) : NULL;
    if (wrong) {
        coord_error(c, 400, wrong, NULL);
        return;
    }
    pthread_mutex_lock(&all->lock);
    json_t *of = of_experiment(c), *was = json_incref(json_object_get(of, uuid));
    bool known = was != NULL, kept = true;
    if (known && how == REPLACE)
        json_object_set_new(of, uuid, from_request(c));
    if (known)
        put(&j, uuid, json_object_get(of, uuid));
    if (known && how == REMOVE)
        json_object_del(of, uuid);
    if (known && how != LOOK && !(kept = save(all)))
        json_object_set(of, uuid, was);
    all->n -= known && how == REMOVE && kept;
    json_decref(was);
    pthread_mutex_unlock(&all->lock);
    if (!known)
        coord_error(c, 404, "No such bookmark", NULL);
    else
        answer(c, kept, &t);
}

void coord_bookmarks_get(struct coord_call *c)
{
    one(c, LOOK);
}

void coord_bookmarks_put(struct coord_call *c)
{
    one(c, REPLACE);
}

void coord_bookmarks_delete(struct coord_call *c)
{
    one(c, REMOVE);
}

void coord_bookmarks_post(struct coord_call *c)
{
    struct bookmarks *all = c->c->bookmarks;
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    char uuid[UUID_TEXT];
    const char *wrong = wrong_bookmark(c);
    if (wrong) {
        coord_error(c, 400, wrong, NULL);
        return;
    }
    tsp_uuid_random(uuid);
    pthread_mutex_lock(&all->lock);
    bool room = all->n < MAX_BOOKMARKS, kept = true;
    if (room) {
        json_t *of = of_experiment(c), *b = from_request(c);
        if (!of)
            json_object_set_new(all->all, key_of(c, 0), of = json_object());
        json_object_set_new(of, uuid, b);
        put(&j, uuid, b);
        if (!(kept = save(all)))
            json_object_del(of, uuid);
        all->n += kept;
    }
    pthread_mutex_unlock(&all->lock);
    if (room)
        answer(c, kept, &t);
    else
        coord_error(c, 400, "There are too many bookmarks", "delete some");
}
