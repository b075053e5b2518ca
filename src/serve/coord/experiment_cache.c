/* SPDX-License-Identifier: MIT */
/* Cache of experiments: their versions, names and ranges. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/file.h"
#include "coord/experiments.h"
#include "coord/times.h"

/* ---- versions: change with a server's version, and when a server comes or goes ---- */

struct seen {
    char uuid[UUID_TEXT];
    char *name;                /* NULL: not known yet */
    uint64_t parts, version;   /* parts: hash of the servers' versions */
    uint64_t meant;            /* hash of the traces that it was last created of; 0: unknown */
    VEC(struct time_range) of; /* last known ranges, by server */
};
struct versions {
    pthread_mutex_t lock;
    VEC(struct seen) v;
    char *path; /* NULL: nothing is stored */
};

enum { MAX_FILE = 16 << 20 };

struct versions *coord_versions_new(void)
{
    struct versions *v = mem_zalloc(sizeof *v);
    pthread_mutex_init(&v->lock, NULL);
    return v;
}

void coord_versions_free(struct versions *v)
{
    if (!v)
        return;
    for (size_t i = 0; i < v->v.n; i++) {
        free(v->v.v[i].name);
        vec_free(&v->v.v[i].of);
    }
    vec_free(&v->v);
    pthread_mutex_destroy(&v->lock);
    free(v->path);
    free(v);
}

/* Finds or adds an experiment; call with the lock held. */
static struct seen *seen_of(struct versions *v, const char *uuid)
{
    for (size_t i = 0; i < v->v.n; i++)
        if (!strcasecmp(v->v.v[i].uuid, uuid))
            return &v->v.v[i];
    struct seen s = {0};
    memcpy(s.uuid, uuid, strnlen(uuid, UUID_TEXT - 1));
    vec_push(&v->v, s);
    return &v->v.v[v->v.n - 1];
}

uint64_t coord_version_for(struct coord_call *c, const char *uuid, uint64_t parts)
{
    struct versions *v = c->c->versions;
    pthread_mutex_lock(&v->lock);
    struct seen *s = seen_of(v, uuid);
    s->version += !s->version || s->parts != parts;
    s->parts = parts;
    uint64_t version = s->version;
    pthread_mutex_unlock(&v->lock);
    return version;
}

void coord_experiment_note_name(struct coord_call *c, const char *uuid, const char *name)
{
    struct versions *v = c->c->versions;
    pthread_mutex_lock(&v->lock);
    struct seen *s = seen_of(v, uuid);
    if (!s->name && name)
        s->name = mem_strdup(name);
    pthread_mutex_unlock(&v->lock);
}

/* ---- traces: a line "UUID HASH" for each experiment, hexadecimal ---- */

int coord_versions_keep_in(struct versions *v, const char *path, struct err *e)
{
    char *text = NULL, uuid[UUID_TEXT];
    uint64_t traces;
    size_t n;
    int rc = access(path, F_OK) ? 0 : file_read(path, MAX_FILE, &text, &n, e);
    for (char *rest = text, *line; !rc && rest && (line = strsep(&rest, "\n")) && *line;)
        if (sscanf(line, "%36s %16" SCNx64, uuid, &traces) == 2)
            seen_of(v, uuid)->meant = traces;
        else
            rc = err_set(e, ERR_FORMAT, "%s: this is no list of experiments; remove it to begin without any", path);
    free(text);
    v->path = mem_strdup(path);
    return rc;
}

/* Stores all, atomically; call with the lock held. If it fails, an experiment that lacks a server's part cannot be
 * completed after a restart: then it has to be deleted first. */
static void save(const struct versions *v)
{
    struct text t = {.fd = -1};
    struct err ignored = {0};
    if (!v->path)
        return;
    for (size_t i = 0; i < v->v.n; i++)
        if (v->v.v[i].meant)
            text_printf(&t, "%s %016" PRIx64 "\n", v->v.v[i].uuid, v->v.v[i].meant);
    file_write(v->path, text_cstr(&t), t.n, &ignored);
    text_fini(&t);
}

void coord_experiment_note_traces(struct coord_call *c, const char *uuid, uint64_t traces)
{
    struct versions *v = c->c->versions;
    pthread_mutex_lock(&v->lock);
    struct seen *s = seen_of(v, uuid);
    if (s->meant != traces) {
        s->meant = traces;
        save(v);
    }
    pthread_mutex_unlock(&v->lock);
}

uint64_t coord_experiment_traces(struct coord_call *c, const char *uuid)
{
    struct versions *v = c->c->versions;
    pthread_mutex_lock(&v->lock);
    uint64_t traces = seen_of(v, uuid)->meant;
    pthread_mutex_unlock(&v->lock);
    return traces;
}

bool coord_note_range(
    struct coord_call *c, const char *uuid, const struct node *n, struct slice experiment, struct time_range *out)
{
    struct versions *v = c->c->versions;
    struct time_range r = {0};
    slice_integer(slice_get(experiment, "start"), &r.begin);
    slice_integer(slice_get(experiment, "end"), &r.end);
    if (!r.begin && !r.end)
        return false;
    r = (struct time_range){coord_time_shown(n, r.begin), coord_time_shown(n, r.end)};
    pthread_mutex_lock(&v->lock);
    struct seen *s = seen_of(v, uuid);
    while (s->of.n <= n->number)
        vec_push(&s->of, ((struct time_range){0}));
    s->of.v[n->number] = r;
    pthread_mutex_unlock(&v->lock);
    *out = r;
    return true;
}

const char *coord_experiment_noted_name(struct coord_call *c)
{
    struct versions *v = c->c->versions;
    pthread_mutex_lock(&v->lock);
    const struct seen *s = seen_of(v, c->request.arg[0]);
    const char *name = s->name ? arena_strdup(c->arena, s->name) : NULL;
    pthread_mutex_unlock(&v->lock);
    return name;
}

/* ---- ranges ---- */

struct time_range coord_member_range(struct coord_call *c, const struct node *n)
{
    struct versions *v = c->c->versions;
    pthread_mutex_lock(&v->lock);
    const struct seen *s = seen_of(v, c->request.arg[0]);
    struct time_range r = n->number < s->of.n ? s->of.v[n->number] : (struct time_range){0};
    pthread_mutex_unlock(&v->lock);
    return r;
}

struct time_range coord_experiment_range(struct coord_call *c)
{
    struct time_range r = {0};
    for (size_t i = 0; i < c->request.n_members; i++) {
        struct time_range its = coord_member_range(c, c->request.members[i]);
        if (its.begin >= its.end)
            continue;
        r.begin = !r.end || its.begin < r.begin ? its.begin : r.begin;
        r.end = !r.end || its.end > r.end ? its.end : r.end;
    }
    return r;
}
