/* SPDX-License-Identifier: MIT */
/* Experiments: equal names on several servers are one experiment. */
#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "coord/experiments.h"

/* ---- merging ---- */

static int64_t integer_in(struct slice object, const char *key)
{
    int64_t v;
    return slice_integer(slice_get(object, key), &v) ? v : 0;
}

/* Writes times and the number of events. Servers that have not opened the experiment report 0, and are skipped. */
static void put_figures(struct coord_call *c, struct json *j, const struct joined_experiment *x, const char *uuid)
{
    int64_t events = 0;
    struct time_range all = {0}, its;
    for (size_t i = 0; i < x->n; i++) {
        int64_t n = integer_in(x->of[i], "nbEvents");
        if (!x->of[i].at || !coord_note_range(c, uuid, x->node[i], x->of[i], &its))
            continue;
        all.begin = !all.end || its.begin < all.begin ? its.begin : all.begin;
        all.end = !all.end || its.end > all.end ? its.end : all.end;
        if (n < 0 || __builtin_add_overflow(events, n, &events))
            events = INT64_MAX >> 11;
    }
    json_kv_i64(j, "nbEvents", events);
    json_kv_i64(j, "start", all.begin);
    json_kv_i64(j, "end", all.end);
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
        uint64_t one[3] = {x->node[i]->number, (uint64_t)v, c->request.keys[x->node[i]->number]};
        parts = map_mix(parts ^ map_hash(one, sizeof one));
        some |= v > 0;
        if (slice_get(its, "version").at && !v && slice_equals(slice_get(its, "indexingStatus"), "RUNNING"))
            return 0;
    }
    return some ? coord_version_for(c, uuid, parts) : 0;
}

static void put_problem(struct coord_call *c, struct json *j, const struct joined_experiment *x)
{
    const char *s = NULL;
    struct arena *a = c->arena;
    for (size_t i = 0; i < x->n; i++) {
        const char *its = slice_string(slice_get(x->of[i], "problem"), a);
        if (its)
            s = s ? arena_printf(a, "%s; %s: %s", s, x->node[i]->is->name, its)
                  : arena_printf(a, "%s: %s", x->node[i]->is->name, its);
    }
    if (s)
        json_kv_string(j, "problem", s);
}

void coord_merge_experiment(struct coord_call *c, struct json *j, const struct joined_experiment *x)
{
    size_t first = 0;
    uint64_t complete = 0;
    while (!x->of[first].at)
        first++;
    const char *uuid = slice_string(slice_get(x->of[first], "UUID"), c->arena);
    coord_experiment_note_name(c, uuid, slice_string(slice_get(x->of[first], "name"), c->arena));
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
        complete += x->of[i].at ? coord_note_reported(&c->outcome, x->node[i], x->of[i]) : 0;
    }
    json_end_array(j);
    if (c->outcome.missing.n)
        coord_put_hosts(&c->outcome, j, complete);
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

void coord_experiments_ask(struct coord_call *c, struct coord_answers *f)
{
    coord_gather_begin(f, c, c->request.n_servers);
    for (size_t i = 0; i < c->request.n_servers; i++)
        coord_gather_ask(f, c->request.servers[i], "GET", "/experiments", NULL);
}

void coord_experiments_take(struct coord_answers *f, struct experiments_all *all)
{
    for (size_t i = 0; i < f->n; i++) {
        struct coord_answer *p = &f->v[i];
        if (p->fate == COORD_REFUSED)
            coord_answer_spoil(f, p, arena_printf(all->a, "status %d", p->http_status));
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

/* Missing sources: per experiment in the list; those of the list itself in a header. */
void coord_merge_experiments(struct coord_answers *f, struct json *j)
{
    struct coord_call *c = f->call;
    struct experiments_all all = {.a = c->arena, .servers = f->n};
    coord_experiments_take(f, &all);
    json_begin_array(j);
    for (size_t i = 0; i < all.v.n; i++) {
        struct coord_call one = *c;
        memset(&one.outcome.missing, 0, sizeof one.outcome.missing);
        coord_merge_experiment(&one, j, &all.v.v[i]);
        vec_free(&one.outcome.missing);
    }
    json_end_array(j);
    vec_free(&all.v);
}

void coord_experiments_list(struct coord_call *c)
{
    struct coord_answers f;
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    coord_experiments_ask(c, &f);
    if (coord_gather_wait(&f)) {
        coord_merge_experiments(&f, &j);
        coord_warn(c);
        coord_reply(c, 200, &t);
    }
    coord_gather_end(&f);
}

/* ---- members ---- */

static void refresh(struct coord_call *c)
{
    struct coord_answers f;
    struct experiments_all all = {.a = c->arena, .servers = c->request.n_servers};
    coord_experiments_ask(c, &f);
    if (coord_gather_wait(&f))
        coord_experiments_take(&f, &all);
    vec_free(&all.v);
    coord_gather_end(&f);
    c->outcome.missing.n = 0;
}

/* Collects servers that have the experiment, and those that never reported. Returns the number of those that have
 * it. */
static size_t collect(struct coord_call *c, const char *uuid)
{
    size_t have = 0;
    c->request.n_members = 0;
    for (size_t i = 0; i < c->request.n_servers; i++) {
        int has = coord_node_has(c->request.servers[i], uuid);
        have += has > 0;
        if (has)
            c->request.members[c->request.n_members++] = c->request.servers[i];
    }
    return have;
}

bool coord_members_find(struct coord_call *c, const char *uuid)
{
    c->request.members = arena_new(c->arena, struct node *, c->request.n_servers + 1);
    if (!collect(c, uuid)) {
        refresh(c);
        if (!collect(c, uuid)) {
            for (size_t i = 0; i < c->request.n_members; i++)
                coord_note_missing(&c->outcome, c->request.members[i], coord_node_why(c->request.members[i], c->arena));
            coord_error(c, 404, "No such trace", coord_missing_text(&c->outcome, NULL));
            return false;
        }
    }
    c->request.several = c->request.n_members > 1;
    c->request.epochs = arena_new(c->arena, unsigned, atomic_load(&c->c->n));
    for (size_t i = 0; i < c->request.n_servers; i++)
        c->request.epochs[c->request.servers[i]->number] = atomic_load(&c->request.servers[i]->epoch);
    return true;
}

/* ---- single experiments ---- */

void coord_experiment_send(struct coord_call *c, struct coord_answers *f)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    struct joined_experiment x = {
        arena_new(c->arena, struct slice, f->n + 1), arena_new(c->arena, struct node *, f->n + 1), f->n};
    bool some = false;
    for (size_t i = 0; i < f->n; i++) {
        struct coord_answer *p = &f->v[i];
        x.node[i] = p->node;
        if (p->fate == COORD_GOOD && !coord_experiment_is(p->root))
            coord_answer_spoil(f, p, "its experiment is none");
        if (p->fate == COORD_REFUSED && p->http_status != 404)
            coord_note_missing(&c->outcome, p->node, arena_printf(c->arena, "status %d", p->http_status));
        x.of[i] = p->fate == COORD_GOOD ? p->root : (struct slice){0};
        some |= x.of[i].at != NULL;
    }
    if (!some) {
        coord_gather_refuse(f);
        return;
    }
    coord_merge_experiment(c, &j, &x);
    coord_reply(c, 200, &t);
}

const char *coord_experiment_name(struct coord_call *c)
{
    struct coord_answers f;
    const char *name = coord_experiment_noted_name(c);
    if (name)
        return name;
    const char *path = arena_printf(c->arena, "/experiments/%s", coord_path_part(c->arena, c->request.arg[0]));
    if (coord_gather_members(&f, c, "GET", path, NULL))
        for (size_t i = 0; i < f.n; i++)
            if (f.v[i].fate == COORD_GOOD && coord_experiment_is(f.v[i].root))
                coord_experiment_note_name(
                    c, c->request.arg[0], slice_string(slice_get(f.v[i].root, "name"), c->arena));
    coord_gather_end(&f);
    return coord_experiment_noted_name(c);
}

static void pass_to_members(struct coord_call *c, const char *method, bool ends)
{
    struct coord_answers f;
    if (!coord_members_find(c, c->request.arg[0]))
        return;
    const char *path = coord_path_asked(&c->request);
    if (coord_gather_members(&f, c, method, path, NULL)) {
        for (size_t i = 0; i < f.n; i++)
            if (f.v[i].fate == COORD_REFUSED ? f.v[i].http_status == 404 : ends && f.v[i].fate == COORD_GOOD)
                coord_node_note_experiment(f.v[i].node, c->request.arg[0], false);
        if (ends)
            coord_experiment_note_traces(c, c->request.arg[0], 0);
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
