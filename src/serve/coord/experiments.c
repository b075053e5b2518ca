/* SPDX-License-Identifier: MIT */
/* Experiments: equal names on several servers are one experiment. */
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

static uint64_t version_for(struct versions *v, const char *uuid, uint64_t parts)
{
    pthread_mutex_lock(&v->lock);
    struct seen *s = seen_of(v, uuid);
    s->version += !s->version || s->parts != parts;
    s->parts = parts;
    uint64_t version = s->version;
    pthread_mutex_unlock(&v->lock);
    return version;
}

static void note_name(struct versions *v, const char *uuid, const char *name)
{
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

static void note_range(struct versions *v, const char *uuid, const struct node *n, struct time_range r)
{
    pthread_mutex_lock(&v->lock);
    struct seen *s = seen_of(v, uuid);
    while (s->of.n <= n->number)
        vec_push(&s->of, ((struct time_range){0}));
    s->of.v[n->number] = r;
    pthread_mutex_unlock(&v->lock);
}

/* ---- merging ---- */

static int64_t integer_in(struct slice object, const char *key)
{
    int64_t v;
    return slice_integer(slice_get(object, key), &v) ? v : 0;
}

void coord_note_range(struct coord_call *c, const struct node *n, struct slice experiment)
{
    int64_t begin = integer_in(experiment, "start"), end = integer_in(experiment, "end");
    if (begin || end)
        note_range(
            c->c->versions, c->arg[0], n, (struct time_range){coord_time_shown(n, begin), coord_time_shown(n, end)});
}

struct time_range coord_member_range(struct coord_call *c, const struct node *n)
{
    struct versions *v = c->c->versions;
    pthread_mutex_lock(&v->lock);
    const struct seen *s = seen_of(v, c->arg[0]);
    struct time_range r = n->number < s->of.n ? s->of.v[n->number] : (struct time_range){0};
    pthread_mutex_unlock(&v->lock);
    return r;
}

/* Writes times and the number of events. Servers that have not opened the experiment report 0, and are skipped. */
static void put_figures(struct coord_call *c, struct json *j, const struct joined_experiment *x, const char *uuid)
{
    int64_t events = 0, begin = 0, end = 0;
    for (size_t i = 0; i < x->n; i++) {
        int64_t b = integer_in(x->of[i], "start"), e = integer_in(x->of[i], "end"),
                n = integer_in(x->of[i], "nbEvents");
        if (!x->of[i].at || (!b && !e))
            continue;
        b = coord_time_shown(x->node[i], b);
        e = coord_time_shown(x->node[i], e);
        note_range(c->c->versions, uuid, x->node[i], (struct time_range){b, e});
        begin = !end || b < begin ? b : begin;
        end = !end || e > end ? e : end;
        if (n < 0 || __builtin_add_overflow(events, n, &events))
            events = INT64_MAX >> 11;
    }
    json_kv_i64(j, "nbEvents", events);
    json_kv_i64(j, "start", begin);
    json_kv_i64(j, "end", end);
}

static const char *status_of(const struct joined_experiment *x)
{
    const char *s = "CLOSED";
    for (size_t i = 0; i < x->n; i++) {
        struct slice its = slice_get(x->of[i], "indexingStatus");
        if (slice_equals(its, "RUNNING"))
            return "RUNNING";
        if (slice_equals(its, "COMPLETED"))
            s = "COMPLETED";
    }
    return s;
}

static bool has_versions(const struct joined_experiment *x)
{
    bool some = false;
    for (size_t i = 0; i < x->n; i++)
        some |= slice_get(x->of[i], "version").at != NULL;
    return some;
}

/* Returns the version; 0: none, or a server that works on it has no data yet. */
static uint64_t joined_version(struct coord_call *c, const struct joined_experiment *x, const char *uuid)
{
    uint64_t parts = 0;
    bool some = false;
    for (size_t i = 0; i < x->n; i++) {
        struct slice its = x->of[i];
        if (!its.at)
            continue;
        /* Servers without versions: what they show changes with the number of events. */
        int64_t v = integer_in(its, slice_get(its, "version").at ? "version" : "nbEvents");
        uint64_t one[3] = {x->node[i]->number, (uint64_t)v, c->keys[x->node[i]->number]};
        parts = map_mix(parts ^ map_hash(one, sizeof one));
        some |= v > 0;
        if (slice_get(its, "version").at && !v && slice_equals(slice_get(its, "indexingStatus"), "RUNNING"))
            return 0;
    }
    return some ? version_for(c->c->versions, uuid, parts) : 0;
}

static void put_problem(struct coord_call *c, struct json *j, const struct joined_experiment *x)
{
    const char *s = NULL;
    struct arena *a = c->q->arena;
    for (size_t i = 0; i < x->n; i++) {
        const char *its = slice_string(slice_get(x->of[i], "problem"), a);
        if (its)
            s = s ? arena_printf(a, "%s; %s: %s", s, x->node[i]->is->name, its)
                  : arena_printf(a, "%s: %s", x->node[i]->is->name, its);
    }
    if (s)
        json_kv_string(j, "problem", s);
}

void coord_experiment_put(struct coord_call *c, struct json *j, const struct joined_experiment *x)
{
    size_t first = 0;
    uint64_t complete = 0;
    while (!x->of[first].at)
        first++;
    const char *uuid = slice_string(slice_get(x->of[first], "UUID"), c->q->arena);
    note_name(c->c->versions, uuid, slice_string(slice_get(x->of[first], "name"), c->q->arena));
    json_begin_object(j);
    json_key(j, "name");
    slice_put(j, slice_get(x->of[first], "name"));
    json_key(j, "UUID");
    slice_put(j, slice_get(x->of[first], "UUID"));
    put_figures(c, j, x, uuid);
    json_kv_string(j, "indexingStatus", status_of(x));
    if (has_versions(x))
        json_kv_u64(j, "version", joined_version(c, x, uuid));
    put_problem(c, j, x);
    json_key(j, "traces");
    json_begin_array(j);
    for (size_t i = 0; i < x->n; i++) {
        coord_put_traces(c, j, x->node[i], slice_get(x->of[i], "traces"));
        complete += x->of[i].at ? coord_note_reported(c, x->node[i], x->of[i]) : 0;
    }
    json_end_array(j);
    if (c->missing.n)
        coord_put_hosts(c, j, complete);
    json_end_object(j);
}

bool coord_experiment_is(struct slice x)
{
    return slice_is(slice_get(x, "UUID"), '"') && slice_is(slice_get(x, "name"), '"') &&
        slice_get(x, "UUID").n < UUID_TEXT + 8;
}

/* ---- the list ---- */

static void take_experiment(struct experiments_all *all, struct node *n, size_t at, struct slice x)
{
    size_t i = 0;
    struct slice uuid = slice_get(x, "UUID");
    for (; i < all->v.n; i++) {
        size_t k = 0;
        while (!all->v.v[i].of[k].at)
            k++;
        struct slice its = slice_get(all->v.v[i].of[k], "UUID");
        if (its.n == uuid.n && !strncasecmp(its.at, uuid.at, uuid.n))
            break;
    }
    if (i == all->v.n)
        vec_push(&all->v,
            ((struct joined_experiment){arena_new(all->a, struct slice, all->servers),
                arena_new(all->a, struct node *, all->servers), all->servers}));
    all->v.v[i].of[at] = x;
    all->v.v[i].node[at] = n;
}

void coord_experiments_ask(struct coord_call *c, struct coord_gather *f)
{
    coord_gather_begin(f, c, c->n_servers);
    for (size_t i = 0; i < c->n_servers; i++)
        coord_gather_ask(f, c->servers[i], "GET", "/experiments", NULL);
}

void coord_experiments_take(struct coord_gather *f, struct experiments_all *all)
{
    for (size_t i = 0; i < f->n; i++) {
        struct coord_answer *p = &f->parts[i];
        if (p->fate == COORD_REFUSED)
            coord_answer_spoil(f, p, arena_printf(all->a, "status %d", p->fetch.status));
        if (p->fate == COORD_GOOD && !slice_is(p->root, '['))
            coord_answer_spoil(f, p, "its list of experiments is none");
        if (p->fate != COORD_GOOD)
            continue;
        coord_node_note_experiments(p->node, p->root);
        struct slice_walk w = slice_items(p->root);
        for (struct slice x; slice_next(&w, &x);)
            if (coord_experiment_is(x))
                take_experiment(all, p->node, i, x);
    }
}

void coord_experiments_list(struct coord_call *c)
{
    struct coord_gather f;
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    struct experiments_all all = {.a = c->q->arena, .servers = c->n_servers};
    coord_experiments_ask(c, &f);
    if (coord_gather_wait(&f)) {
        coord_experiments_take(&f, &all);
        json_begin_array(&j);
        for (size_t i = 0; i < all.v.n; i++) {
            /* Missing sources: per experiment in the list; those of the list itself in a header. */
            struct coord_call one = *c;
            memset(&one.missing, 0, sizeof one.missing);
            coord_experiment_put(&one, &j, &all.v.v[i]);
            vec_free(&one.missing);
        }
        json_end_array(&j);
        coord_warn(c);
        coord_reply(c, 200, &t);
    }
    vec_free(&all.v);
    coord_gather_end(&f);
}

/* ---- members ---- */

static void refresh(struct coord_call *c)
{
    struct coord_gather f;
    struct experiments_all all = {.a = c->q->arena, .servers = c->n_servers};
    coord_experiments_ask(c, &f);
    if (coord_gather_wait(&f))
        coord_experiments_take(&f, &all);
    vec_free(&all.v);
    coord_gather_end(&f);
    c->missing.n = 0;
}

/* Collects servers that have the experiment, and those that never reported. Returns the number of those that have
 * it. */
static size_t collect(struct coord_call *c, const char *uuid)
{
    size_t have = 0;
    c->n_members = 0;
    for (size_t i = 0; i < c->n_servers; i++) {
        int has = coord_node_has(c->servers[i], uuid);
        have += has > 0;
        if (has)
            c->members[c->n_members++] = c->servers[i];
    }
    return have;
}

bool coord_members_find(struct coord_call *c, const char *uuid)
{
    c->members = arena_new(c->q->arena, struct node *, c->n_servers + 1);
    if (!collect(c, uuid)) {
        refresh(c);
        if (!collect(c, uuid)) {
            for (size_t i = 0; i < c->n_members; i++)
                coord_note_missing(c, c->members[i], coord_node_why(c->members[i], c->q->arena));
            coord_error(c, 404, "No such trace", coord_missing_text(c, NULL));
            return false;
        }
    }
    c->several = c->n_members > 1;
    c->epochs = arena_new(c->q->arena, unsigned, atomic_load(&c->c->n));
    for (size_t i = 0; i < c->n_servers; i++)
        c->epochs[c->servers[i]->number] = atomic_load(&c->servers[i]->epoch);
    return true;
}

/* ---- single experiments ---- */

void coord_experiment_send(struct coord_call *c, struct coord_gather *f)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    struct joined_experiment x = {
        arena_new(c->q->arena, struct slice, f->n + 1), arena_new(c->q->arena, struct node *, f->n + 1), f->n};
    bool some = false;
    for (size_t i = 0; i < f->n; i++) {
        struct coord_answer *p = &f->parts[i];
        x.node[i] = p->node;
        if (p->fate == COORD_GOOD && !coord_experiment_is(p->root))
            coord_answer_spoil(f, p, "its experiment is none");
        if (p->fate == COORD_REFUSED && p->fetch.status != 404)
            coord_note_missing(c, p->node, arena_printf(c->q->arena, "status %d", p->fetch.status));
        x.of[i] = p->fate == COORD_GOOD ? p->root : (struct slice){0};
        some |= x.of[i].at != NULL;
    }
    if (!some) {
        coord_gather_refuse(f);
        return;
    }
    coord_experiment_put(c, &j, &x);
    coord_reply(c, 200, &t);
}

static const char *noted_name(struct coord_call *c)
{
    struct versions *v = c->c->versions;
    pthread_mutex_lock(&v->lock);
    const struct seen *s = seen_of(v, c->arg[0]);
    const char *name = s->name ? arena_strdup(c->q->arena, s->name) : NULL;
    pthread_mutex_unlock(&v->lock);
    return name;
}

const char *coord_experiment_name(struct coord_call *c)
{
    struct coord_gather f;
    const char *name = noted_name(c);
    if (name)
        return name;
    const char *path = arena_printf(c->q->arena, "/experiments/%s", coord_path_part(c->q->arena, c->arg[0]));
    coord_gather_begin(&f, c, c->n_members);
    for (size_t i = 0; i < c->n_members; i++)
        coord_gather_ask(&f, c->members[i], "GET", path, NULL);
    if (coord_gather_wait(&f))
        for (size_t i = 0; i < f.n; i++)
            if (f.parts[i].fate == COORD_GOOD && coord_experiment_is(f.parts[i].root))
                note_name(c->c->versions, c->arg[0], slice_string(slice_get(f.parts[i].root, "name"), c->q->arena));
    coord_gather_end(&f);
    return noted_name(c);
}

struct time_range coord_experiment_range(struct coord_call *c)
{
    struct time_range r = {0};
    for (size_t i = 0; i < c->n_members; i++) {
        struct time_range its = coord_member_range(c, c->members[i]);
        if (its.begin >= its.end)
            continue;
        r.begin = !r.end || its.begin < r.begin ? its.begin : r.begin;
        r.end = !r.end || its.end > r.end ? its.end : r.end;
    }
    return r;
}

static void pass_to_members(struct coord_call *c, const char *method, bool ends)
{
    struct coord_gather f;
    if (!coord_members_find(c, c->arg[0]))
        return;
    const char *path = coord_path_asked(c);
    coord_gather_begin(&f, c, c->n_members);
    for (size_t i = 0; i < c->n_members; i++)
        coord_gather_ask(&f, c->members[i], method, path, NULL);
    if (coord_gather_wait(&f)) {
        for (size_t i = 0; i < f.n; i++)
            if (f.parts[i].fate == COORD_REFUSED ? f.parts[i].fetch.status == 404
                                                 : ends && f.parts[i].fate == COORD_GOOD)
                coord_node_note_experiment(f.parts[i].node, c->arg[0], false);
        if (ends)
            coord_experiment_note_traces(c, c->arg[0], 0);
        coord_experiment_send(c, &f);
    }
    coord_gather_end(&f);
}

void coord_experiments_get(struct coord_call *c)
{
    pass_to_members(c, "GET", false);
}

void coord_experiments_delete(struct coord_call *c)
{
    pass_to_members(c, "DELETE", true);
}
