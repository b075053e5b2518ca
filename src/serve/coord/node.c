/* SPDX-License-Identifier: MIT */
#include "coord/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/time.h"
#include "base/wait.h"

bool coord_node_is_away(const struct node *n)
{
    int stage = atomic_load(&n->stage);
    return stage == NODE_AWAY || stage == NODE_GONE;
}

const char *coord_node_why(struct node *n, struct arena *a)
{
    pthread_mutex_lock(&n->lock);
    const char *why = arena_strdup(a, *n->why ? n->why : "it has not answered yet");
    pthread_mutex_unlock(&n->lock);
    return why;
}

const char *coord_node_url(struct node *n, struct arena *a)
{
    if (!n->found)
        return n->is->url;
    pthread_mutex_lock(&n->lock);
    const char *url = arena_strdup(a, n->url);
    pthread_mutex_unlock(&n->lock);
    return url;
}

size_t coord_nodes_now(struct coordinator *c, struct arena *a, struct node ***out)
{
    size_t n = atomic_load(&c->n), kept = 0;
    *out = arena_new(a, struct node *, n + 1);
    for (size_t i = 0; i < n; i++)
        if (atomic_load(&c->nodes[i].stage) != NODE_GONE)
            (*out)[kept++] = &c->nodes[i];
    return kept;
}

int coord_node_change(struct node *n, enum node_stage to, bool found)
{
    int was = atomic_load(&n->stage);
    while ((was != NODE_GONE || found) && !atomic_compare_exchange_weak(&n->stage, &was, to))
        ;
    return was;
}

void coord_node_report(struct coordinator *c, struct node *n, const char *what)
{
    struct arena a = {0};
    if (c->o.report)
        c->o.report(arena_printf(&a, "server %s (%s) %s", n->is->name, coord_node_url(n, &a), what));
    arena_fini(&a);
}

void coord_node_note_away(struct coordinator *c, struct node *n, const char *why)
{
    pthread_mutex_lock(&n->lock);
    snprintf(n->why, sizeof n->why, "%s", why);
    n->set_up = n->identified = false;
    n->absences++;
    int was = coord_node_change(n, NODE_AWAY, false);
    coord_lifeline_release(&n->lifeline); /* last: a thread that sees none also sees the absence */
    pthread_mutex_unlock(&n->lock);
    if (was != NODE_AWAY && was != NODE_GONE) {
        char said[300];
        snprintf(said, sizeof said, "is away: %s", why);
        coord_node_report(c, n, said);
    }
}

bool coord_node_lives_on(struct coordinator *c, struct node *n)
{
    if (!atomic_load(&n->numbers_anew))
        return true;
    pthread_mutex_lock(&n->lock);
    bool ended = coord_lifeline_ended(&n->lifeline);
    pthread_mutex_unlock(&n->lock);
    if (ended) {
        coord_node_note_away(c, n, "it ended its connections, and may have been started again");
        pthread_mutex_lock(&c->lock);
        c->probe_now = true;
        pthread_cond_broadcast(&c->changed);
        pthread_mutex_unlock(&c->lock);
    }
    return !ended && !coord_node_is_away(n);
}

void coord_node_address(struct node *n, struct arena *a, const char *path, struct http_fetch *f)
{
    f->url = arena_printf(a, "%s/tsp/api%s", coord_node_url(n, a), path);
    f->token = n->is->token;
    f->ca_file = n->is->ca_file;
    f->connect_ms = n->is->connect_ms;
    f->answer_ms = n->is->answer_ms;
}

/* ---- experiments and traces ---- */

static size_t find_experiment(const struct node *n, const char *uuid)
{
    size_t i = 0;
    while (i < n->experiments.n && strcasecmp(n->experiments.v[i], uuid) != 0)
        i++;
    return i;
}

int coord_node_has(struct node *n, const char *uuid)
{
    pthread_mutex_lock(&n->lock);
    int has = find_experiment(n, uuid) < n->experiments.n ? 1 : n->listed ? 0 : -1;
    pthread_mutex_unlock(&n->lock);
    return has;
}

static void put_experiment(struct node *n, const char *uuid, bool has)
{
    size_t i = find_experiment(n, uuid);
    bool had = i < n->experiments.n;
    if (has && !had)
        vec_push(&n->experiments, mem_strdup(uuid));
    if (!has && had) {
        free(n->experiments.v[i]);
        n->experiments.v[i] = n->experiments.v[--n->experiments.n];
    }
}

void coord_node_note_experiment(struct node *n, const char *uuid, bool has)
{
    pthread_mutex_lock(&n->lock);
    put_experiment(n, uuid, has);
    pthread_mutex_unlock(&n->lock);
}

void coord_node_note_experiments(struct node *n, struct slice list)
{
    struct arena a = {0};
    struct slice_walk w = slice_items(list);
    pthread_mutex_lock(&n->lock);
    while (n->experiments.n)
        free(n->experiments.v[--n->experiments.n]);
    for (struct slice x; slice_next(&w, &x);) {
        const char *uuid = slice_string(slice_get(x, "UUID"), &a);
        if (uuid && strlen(uuid) < UUID_TEXT)
            vec_push(&n->experiments, mem_strdup(uuid)); /* lists of servers have no duplicates */
    }
    n->listed = true;
    pthread_mutex_unlock(&n->lock);
    arena_fini(&a);
}

void coord_node_note_traces(struct node *n, struct slice list)
{
    pthread_mutex_lock(&n->lock);
    free(n->traces);
    n->traces = mem_alloc(list.n + 1);
    memcpy(n->traces, list.at, list.n);
    n->traces_n = list.n;
    pthread_mutex_unlock(&n->lock);
}

struct slice coord_node_traces(struct node *n, struct arena *a)
{
    struct slice s = {0};
    pthread_mutex_lock(&n->lock);
    if (n->traces)
        s = (struct slice){arena_strndup(a, n->traces, n->traces_n), n->traces_n};
    pthread_mutex_unlock(&n->lock);
    return s;
}

void coord_node_trace_uuid(const struct node *n, struct slice own, struct arena *a, char out[UUID_TEXT])
{
    const char *text = slice_string(own, a);
    tsp_uuid_of_name(arena_printf(a, "%s\n%s", n->is->name, text ? text : ""), out);
}

void coord_node_init(struct node *n, const struct coord_server *is, size_t number)
{
    n->is = is;
    n->number = number;
    atomic_store(&n->key, map_hash(is->name, strlen(is->name)));
    pthread_mutex_init(&n->lock, NULL);
}
