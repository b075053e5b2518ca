/* SPDX-License-Identifier: MIT */
/* Creation of experiments of traces on several servers. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coord/experiments.h"
#include "coord/question.h"
#include "tsp/answer.h"

enum { MAX_TRACES = 10000 };

/* Returns the requested uuids; NULL: the list is invalid. */
static const char **trace_list(struct coord_call *c, size_t *n)
{
    json_t *list = json_object_get(c->request.parameters, "traces"), *item;
    size_t i;
    *n = json_array_size(list);
    if (!json_is_array(list) || !*n || *n > MAX_TRACES)
        return NULL;
    const char **out = arena_new(c->arena, const char *, *n);
    json_array_foreach (list, i, item)
        if (!(out[i] = json_string_value(item)))
            return NULL;
    return out;
}

/* Returns the server's own uuids of its traces; NULL: it has none of them. */
static json_t *own_list(const struct own_trace *owners, size_t n, const struct node *of)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        if (owners[i].node == of)
            json_array_append_new(list, json_string(owners[i].own));
    if (json_array_size(list))
        return list;
    json_decref(list);
    return NULL;
}

static void conflict(struct coord_call *c, const struct joined_experiment *x)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    json_begin_object(&j);
    json_kv_string(&j, "title", "The experiment (name) already exists and both differ");
    json_kv_string(&j, "code", tsp_code_name(TSP_CODE_CONFLICT));
    if (x) {
        json_key(&j, "experiment");
        coord_merge_experiment(c, &j, x);
    }
    json_end_object(&j);
    coord_reply(c, 409, &t);
}

static int compare_text(const void *a, const void *b)
{
    return strcasecmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns whether the server's experiment (`its`, at NULL: none) has exactly the server's wanted traces, each as
 * often. */
static bool has_wanted(
    struct coord_call *c, const struct own_trace *owners, size_t n, const struct node *node, struct slice its)
{
    VEC(const char *) has = {0}, wanted = {0};
    struct slice_walk w = slice_items(slice_get(its, "traces"));
    for (struct slice trace; its.at && slice_next(&w, &trace);) {
        const char *uuid = slice_string(slice_get(trace, "UUID"), c->arena);
        vec_push(&has, uuid ? uuid : "");
    }
    for (size_t i = 0; i < n; i++)
        if (owners[i].node == node)
            vec_push(&wanted, owners[i].own);
    bool same = has.n == wanted.n;
    if (same && has.n) {
        qsort(has.v, has.n, sizeof *has.v, compare_text);
        qsort(wanted.v, wanted.n, sizeof *wanted.v, compare_text);
        for (size_t i = 0; i < has.n; i++)
            same &= !strcasecmp(has.v[i], wanted.v[i]);
    }
    vec_free(&has);
    vec_free(&wanted);
    return same;
}

static int compare_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Returns a hash of the traces, independent of their order, and stored on disk; never 0. */
static uint64_t hash_of(const struct own_trace *owners, size_t n)
{
    uint64_t *one = mem_alloc(n * sizeof *one);
    for (size_t i = 0; i < n; i++) {
        char uuid[UUID_TEXT] = {0};
        memcpy(uuid, owners[i].own, strnlen(owners[i].own, UUID_TEXT - 1));
        for (char *p = uuid; *p; p++)
            *p |= *p >= 'A' && *p <= 'Z' ? 0x20 : 0;
        const char *name = owners[i].node->is->name;
        one[i] = map_mix(map_hash(uuid, sizeof uuid) + map_hash(name, strlen(name)));
    }
    qsort(one, n, sizeof *one, compare_number);
    uint64_t hash = map_hash(one, n * sizeof *one);
    free(one);
    return hash + !hash;
}

/* Returns whether the experiment of a server that answers differs. A server without the experiment does not differ if
 * the experiment was created of the same traces before. That server was away then, or has lost its part; it now gets
 * it. */
static bool differs_anywhere(struct coord_call *c, const struct coord_answers *f, const struct joined_experiment *x,
    const char *uuid, const struct own_trace *owners, size_t n)
{
    bool again = coord_experiment_traces(c, uuid) == hash_of(owners, n), differs = false;
    for (size_t k = 0; k < f->n; k++)
        if (f->v[k].fate == COORD_GOOD && (x->of[k].at || !again))
            differs |= !has_wanted(c, owners, n, f->v[k].node, x->of[k]);
    return differs;
}

/* Sends 409 if any server has an experiment of that name with other traces. Servers that do not answer are skipped.
 * Returns true also if the client is gone: nothing is created then. */
static bool reply_conflict(struct coord_call *c, const char *name, const struct own_trace *owners, size_t n)
{
    struct coord_answers f;
    struct experiments_all all = {.a = c->arena, .servers = c->request.n_servers};
    bool differs = false;
    coord_experiments_ask(c, &f);
    bool waits = coord_gather_wait(&f);
    if (waits)
        coord_experiments_take(&f, &all);
    for (size_t i = 0; i < all.v.n && !differs; i++) {
        const struct joined_experiment *x = &all.v.v[i];
        size_t first = 0;
        while (!x->of[first].at)
            first++;
        const char *its = slice_string(slice_get(x->of[first], "name"), c->arena);
        if (!its || strcmp(its, name) != 0)
            continue;
        differs = differs_anywhere(c, &f, x, slice_string(slice_get(x->of[first], "UUID"), c->arena), owners, n);
        if (differs)
            conflict(c, x);
    }
    vec_free(&all.v);
    coord_gather_end(&f);
    c->outcome.missing.n = 0;
    return differs || !waits;
}

static void make(struct coord_call *c, const struct own_trace *owners, size_t n)
{
    struct coord_answers f;
    const struct coord_answer *differs = NULL;
    coord_gather_begin(&f, c, c->request.n_servers);
    for (size_t i = 0; i < c->request.n_servers; i++) {
        json_t *own = own_list(owners, n, c->request.servers[i]);
        if (own)
            coord_gather_ask(&f, c->request.servers[i], "POST", "/experiments",
                coord_body_with(c, c->request.servers[i], "traces", own, NULL, NULL));
        json_decref(own);
    }
    if (coord_gather_wait(&f)) {
        for (size_t i = 0; i < f.n; i++) {
            const struct coord_answer *p = &f.v[i];
            const char *uuid = slice_string(slice_get(p->root, "UUID"), c->arena);
            if (p->fate == COORD_GOOD && uuid) {
                coord_node_note_experiment(p->node, uuid, true);
                coord_experiment_note_traces(c, uuid, hash_of(owners, n));
            }
            if (p->fate == COORD_REFUSED && p->http_status == 409)
                differs = differs ? differs : p;
        }
        struct slice its = slice_get(differs ? differs->root : (struct slice){0}, "experiment");
        struct joined_experiment x = {&its, (struct node *[]){differs ? differs->node : NULL}, 1};
        if (differs) /* race lost against another client */
            conflict(c, coord_experiment_is(its) ? &x : NULL);
        else
            coord_experiment_send(c, &f);
    }
    coord_gather_end(&f);
}

void coord_experiments_post(struct coord_call *c)
{
    const char *name = coord_text(c->request.parameters, "name"), *wrong = NULL;
    size_t n;
    const char **uuids = trace_list(c, &n);
    if (!name || !*name)
        wrong = json_object_get(c->request.parameters, "name") ? "Invalid query parameters: name"
                                                               : "Missing query parameters: name";
    else if (!uuids)
        wrong = json_object_get(c->request.parameters, "traces") ? "Invalid query parameters: traces"
                                                                 : "Missing query parameters: traces";
    if (wrong) {
        coord_error(c, 400, wrong, NULL);
        return;
    }
    struct own_trace *owners = arena_new(c->arena, struct own_trace, n);
    if (!coord_traces_owners(c, uuids, n, owners))
        return;
    for (size_t i = 0; i < n; i++)
        if (!owners[i].node) {
            coord_error(c, 404, "No such trace", coord_missing_text(&c->outcome, NULL));
            return;
        }
    c->outcome.missing.n = 0; /* servers without these traces are not missing */
    if (!reply_conflict(c, name, owners, n))
        make(c, owners, n);
}
