/* SPDX-License-Identifier: MIT */
/* Cache of experiments: their versions, names and ranges. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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
};

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

void coord_experiment_note_traces(struct coord_call *c, const char *uuid, uint64_t traces)
{
    struct versions *v = c->c->versions;
    pthread_mutex_lock(&v->lock);
    seen_of(v, uuid)->meant = traces;
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
