/* SPDX-License-Identifier: MIT */
/* Bookmarks of an experiment. */
#include "tsp/persist.h"
#include "tsp/routes.h"

enum { MAX_BOOKMARKS = 10000 };

static void write_bookmark(struct json *j, const struct tsp_bookmark *b)
{
    json_begin_object(j);
    json_kv_string(j, "uuid", b->uuid);
    json_kv_string(j, "name", b->name);
    json_kv_i64(j, "start", b->start);
    json_kv_i64(j, "end", b->end);
    json_end_object(j);
}

static struct tsp_bookmark *find(struct tsp_experiment *x, const char *uuid)
{
    for (size_t i = 0; x && i < x->bookmarks.n; i++)
        if (!strcasecmp(x->bookmarks.v[i].uuid, uuid))
            return &x->bookmarks.v[i];
    return NULL;
}

/* Sends a bookmark, or 404 for what is missing. Releases the lock. */
static void answer(struct call *c, const struct tsp_experiment *x, const struct tsp_bookmark *b)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    if (b)
        write_bookmark(&j, b);
    bool found = b != NULL, known = x != NULL;
    pthread_mutex_unlock(&c->s->lock);
    if (found)
        tsp_call_json(c, 200, &t);
    else
        tsp_call_error(c, 404, known ? "No such bookmark" : "No such experiment", NULL);
}

void tsp_bookmarks_list(struct call *c)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    pthread_mutex_lock(&c->s->lock);
    struct tsp_experiment *x = tsp_model_experiment(c->s, c->arg[0]);
    json_begin_array(&j);
    for (size_t i = 0; x && i < x->bookmarks.n; i++)
        write_bookmark(&j, &x->bookmarks.v[i]);
    json_end_array(&j);
    pthread_mutex_unlock(&c->s->lock);
    if (x) {
        tsp_call_json(c, 200, &t);
    } else {
        text_fini(&t);
        tsp_call_error(c, 404, "No such experiment", NULL);
    }
}

/* Parses name and times of the request; false: the error has been sent. */
static bool wanted(struct call *c, const char **name, int64_t *start, int64_t *end)
{
    static const char *const keys[] = {"name", "start", "end"};
    for (size_t i = 0; i < 3; i++)
        if (!json_object_get(c->parameters, keys[i])) {
            tsp_call_errorf(c, 400, "Missing query parameters: %s", keys[i]);
            return false;
        }
    *name = tsp_string(c->parameters, "name");
    const char *wrong = !*name || !**name                                           ? "name"
        : !tsp_integer(json_object_get(c->parameters, "start"), start)              ? "start"
        : !tsp_integer(json_object_get(c->parameters, "end"), end) || *start > *end ? "end"
                                                                                    : NULL;
    if (wrong)
        tsp_call_errorf(c, 400, "Invalid query parameters: %s", wrong);
    return !wrong;
}

void tsp_bookmarks_post(struct call *c)
{
    struct tsp_bookmark b = {0};
    const char *name;
    if (!wanted(c, &name, &b.start, &b.end))
        return;
    tsp_uuid_random(b.uuid);
    pthread_mutex_lock(&c->s->lock);
    struct tsp_experiment *x = tsp_model_experiment(c->s, c->arg[0]);
    if (x && x->bookmarks.n >= MAX_BOOKMARKS) {
        pthread_mutex_unlock(&c->s->lock);
        tsp_call_error(c, 400, "There are too many bookmarks", "delete some");
        return;
    }
    if (x) {
        b.name = mem_strdup(name);
        vec_push(&x->bookmarks, b);
        tsp_persist_note(c->s, PERSIST_EXPERIMENT, x->uuid);
    }
    answer(c, x, find(x, b.uuid));
}

void tsp_bookmarks_get(struct call *c)
{
    pthread_mutex_lock(&c->s->lock);
    struct tsp_experiment *x = tsp_model_experiment(c->s, c->arg[0]);
    answer(c, x, find(x, c->arg[1]));
}

void tsp_bookmarks_put(struct call *c)
{
    const char *name;
    int64_t start, end;
    pthread_mutex_lock(&c->s->lock);
    struct tsp_experiment *x = tsp_model_experiment(c->s, c->arg[0]);
    if (!find(x, c->arg[1])) {
        answer(c, x, NULL);
        return;
    }
    pthread_mutex_unlock(&c->s->lock);
    if (!wanted(c, &name, &start, &end))
        return;
    pthread_mutex_lock(&c->s->lock);
    x = tsp_model_experiment(c->s, c->arg[0]);
    struct tsp_bookmark *b = find(x, c->arg[1]);
    if (b) {
        free(b->name);
        b->name = mem_strdup(name);
        b->start = start;
        b->end = end;
        tsp_persist_note(c->s, PERSIST_EXPERIMENT, x->uuid);
    }
    answer(c, x, b);
}

void tsp_bookmarks_delete(struct call *c)
{
    pthread_mutex_lock(&c->s->lock);
    struct tsp_experiment *x = tsp_model_experiment(c->s, c->arg[0]);
    struct tsp_bookmark *b = find(x, c->arg[1]), gone = {0};
    if (b) {
        gone = *b;
        memmove(b, b + 1, sizeof *b * (size_t)(x->bookmarks.v + x->bookmarks.n - b - 1));
        x->bookmarks.n--;
        tsp_persist_note(c->s, PERSIST_EXPERIMENT, x->uuid);
    }
    answer(c, x, b ? &gone : NULL);
    tsp_bookmark_fini(&gone);
}
