/* SPDX-License-Identifier: MIT */
/* Threads that watch the servers: one probes each of them every second, one sets up those that are up. */
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "base/wait.h"
#include "coord/node.h"
#include "coord/rotation.h"

/* Limit of names under which servers were found since the coordinator's start. */
enum { MOST_FOUND = 16384 };

enum { PROBE_MS = 2000, SECOND_NS = 1000000000, LIST_EACH = 5, LIST_BYTES = 64 << 20 };

struct probed {
    struct node *n;
    struct http_fetch health, identity;
    unsigned absences; /* value at the time of the question */
    bool identifies;   /* identity is requested, too */
    bool known;
};

/* ---- probing ---- */

static void note_there(struct coordinator *c, struct probed *p)
{
    struct node *n = p->n;
    int was = NODE_THERE;
    pthread_mutex_lock(&n->lock);
    if (n->absences == p->absences) {
        if (coord_node_is_away(n))
            atomic_fetch_add(&n->epoch, 1);
        if (atomic_load(&n->numbers_anew)) {
            coord_lifeline_hold(&n->lifeline, &p->health);
            if (p->identifies && atomic_load(&p->identity.done))
                coord_lifeline_hold(&n->lifeline, &p->identity);
        }
        was = coord_node_change(n, NODE_THERE, false);
    }
    pthread_mutex_unlock(&n->lock);
    if (was == NODE_AWAY)
        coord_node_report(c, n, "is there again");
    if (was != NODE_THERE) {
        pthread_mutex_lock(&c->lock);
        pthread_cond_broadcast(&c->changed);
        pthread_mutex_unlock(&c->lock);
    }
}

/* Returns what is wrong with the answer to a probe; NULL: nothing. */
static const char *ill(const struct http_fetch *f, bool answered, struct arena *a)
{
    if (!answered)
        return "no answer in 2.0 s";
    if (f->error.code)
        return arena_strdup(a, f->error.text);
    if (f->status == 404)
        return "no trace server is there (404)";
    if (f->status != 200)
        return arena_printf(a, "it is not well (status %d)", f->status);
    size_t bad;
    struct slice health = slice_of(f->body.v, f->body.n, NULL, &bad);
    return slice_is(slice_get(health, "status"), '"') ? NULL : "what answers there is no trace server";
}

/* Returns the nodes that can be reached at all. */
static size_t nodes_to_probe(struct coordinator *c, struct arena *a, struct node ***out)
{
    size_t n = coord_nodes_now(c, a, out), kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct node *its = (*out)[i];
        pthread_mutex_lock(&its->lock);
        bool usable = !its->unusable;
        pthread_mutex_unlock(&its->lock);
        if (usable)
            (*out)[kept++] = its;
    }
    return kept;
}

/* Notes the make. Entry ids of weft are permanent. Other makes number entries at each start: after any absence, an id
 * may be another entry's. */
static void note_make(struct coordinator *c, struct node *n, const struct http_fetch *identity)
{
    bool answered = atomic_load(&identity->done) && !identity->error.code;
    struct slice its = answered ? slice_of(identity->body.v, identity->body.n, NULL, NULL) : (struct slice){0};
    bool weft = slice_equals(slice_get(its, "productId"), "weft"), before = atomic_load(&n->numbers_anew),
         comes = atomic_load(&n->stage) != NODE_THERE;
    uint64_t name = map_hash(n->is->name, strlen(n->is->name));
    pthread_mutex_lock(&n->lock);
    n->identified = answered;
    pthread_mutex_unlock(&n->lock);
    if (before && (weft || comes))
        coord_ids_forget(c->ids, atomic_load(&n->key));
    atomic_store(&n->numbers_anew, !weft);
    atomic_store(&n->states_codes, slice_get(its, "codes").n == strlen("true"));
    if (weft)
        atomic_store(&n->key, name);
    else if (comes)
        atomic_store(&n->key, map_mix(name ^ (uint64_t)time_now_ns()));
}

static void ask_well(struct probed *p, struct arena *a, struct http_gather *g)
{
    struct node *n = p->n;
    pthread_mutex_lock(&n->lock);
    p->absences = n->absences;
    p->health.anew = coord_lifeline_is_thin(&n->lifeline);
    p->identifies = !n->identified && !p->health.anew;
    pthread_mutex_unlock(&n->lock);
    for (int i = 0; i < 1 + p->identifies; i++) {
        struct http_fetch *f = i ? &p->identity : &p->health;
        coord_node_address(p->n, a, i ? "/identifier" : "/health", f);
        f->method = "GET";
        f->holds = p->identifies || atomic_load(&n->numbers_anew);
        f->answer_ms = f->connect_ms = PROBE_MS;
        f->max_bytes = 64 << 10;
        http_gather_add(g, f);
    }
}

/* Returns whether the process that answered is the one that was probed. If not, the next round asks for its
 * identity. */
static bool is_known_to_be(struct coordinator *c, struct probed *p)
{
    pthread_mutex_lock(&p->n->lock);
    bool known = p->n->absences == p->absences, ended = coord_lifeline_ended(&p->n->lifeline);
    pthread_mutex_unlock(&p->n->lock);
    return known && (!ended || coord_node_lives_on(c, p->n));
}

/* Notes a node's answer. late: its time is up. False: the answer may still arrive. */
static bool note_probed(struct coordinator *c, struct probed *p, bool late, struct arena *a)
{
    bool answered = atomic_load(&p->health.done);
    if (!answered && !late)
        return false;
    const char *why = ill(&p->health, answered, a);
    if (!why && p->identifies && !late && !atomic_load(&p->identity.done))
        return false;
    if (why) {
        coord_node_note_away(c, p->n, why);
    } else if (is_known_to_be(c, p)) {
        if (p->identifies)
            note_make(c, p->n, &p->identity);
        note_there(c, p);
    }
    return true;
}

/* Probes all nodes at once. */
static void probe(struct coordinator *c)
{
    struct arena a = {0};
    struct http_gather g;
    struct node **nodes;
    size_t n = nodes_to_probe(c, &a, &nodes);
    struct probed *p = arena_new(&a, struct probed, n + 1);
    int64_t until = time_monotonic_ns() + PROBE_MS * INT64_C(1000000);
    http_gather_begin(&g, c->probing);
    for (size_t i = 0; i < n; i++) {
        p[i].n = nodes[i];
        ask_well(&p[i], &a, &g);
    }
    /* Nodes that answer are up at once, even while others do not answer. */
    for (bool all = false; !all;) {
        int64_t now = time_monotonic_ns();
        all = http_gather_wait(&g, now + 50000000 < until ? now + 50000000 : until) || now >= until;
        for (size_t i = 0; i < n; i++)
            p[i].known = p[i].known || note_probed(c, &p[i], all, &a);
    }
    http_gather_end(&g);
    arena_fini(&a);
}

/* Waits for the next round. False: the thread must stop. */
static bool rest(struct coordinator *c, int64_t until_ns)
{
    pthread_mutex_lock(&c->lock);
    while (!c->stopping && !c->probe_now && wait_until(&c->changed, &c->lock, until_ns))
        ;
    bool go_on = !c->stopping;
    c->probe_now = false;
    pthread_mutex_unlock(&c->lock);
    return go_on;
}

static void *run_prober(void *coordinator)
{
    struct coordinator *c = coordinator;
    for (int64_t at = time_monotonic_ns() + SECOND_NS; rest(c, at);) {
        coord_finder_look(c);
        probe(c);
        at = time_monotonic_ns() + SECOND_NS;
    }
    return NULL;
}

/* Updates the lists of experiments and traces; a node that does not answer keeps its lists. */
static void list_all(struct coordinator *c)
{
    static const char *const paths[] = {"/experiments", "/traces"};
    static void (*const note[])(struct node *, struct slice) = {coord_node_note_experiments, coord_node_note_traces};
    struct arena a = {0};
    struct http_gather g;
    struct node **nodes;
    size_t n = coord_nodes_now(c, &a, &nodes);
    struct http_fetch *f = arena_new(&a, struct http_fetch, 2 * n + 1);
    http_gather_begin(&g, c->client);
    for (size_t i = 0; i < 2 * n; i++) {
        if (atomic_load(&nodes[i / 2]->stage) != NODE_THERE)
            continue;
        coord_node_address(nodes[i / 2], &a, paths[i % 2], &f[i]);
        f[i].method = "GET";
        f[i].max_bytes = LIST_BYTES;
        f[i].answer_ms = 2 * PROBE_MS;
        http_gather_add(&g, &f[i]);
    }
    http_gather_wait(&g, time_monotonic_ns() + 2 * PROBE_MS * INT64_C(1000000));
    for (size_t i = 0; i < 2 * n; i++) {
        struct slice list = {0};
        if (atomic_load(&f[i].done) && !f[i].error.code && f[i].status == 200)
            list = slice_of(f[i].body.v, f[i].body.n, &a, NULL);
        if (!slice_is(list, '['))
            continue;
        note[i % 2](nodes[i / 2], list);
        if (i % 2 == 0)
            coord_sessions_note(c, nodes[i / 2], list);
    }
    http_gather_end(&g);
    arena_fini(&a);
}

static void make_all(struct coordinator *c)
{
    size_t count = atomic_load(&c->n);
    for (size_t i = 0; i < count; i++) {
        struct node *n = &c->nodes[i];
        pthread_mutex_lock(&n->lock);
        bool due = !n->set_up && atomic_load(&n->stage) == NODE_THERE;
        n->set_up |= due;
        pthread_mutex_unlock(&n->lock);
        if (due)
            coord_set_up(c, n);
    }
}

/* Returns whether a node is up that was not set up. Call with the lock held. */
static bool somebody_waits(struct coordinator *c)
{
    bool waits = false;
    size_t count = atomic_load(&c->n);
    for (size_t i = 0; i < count && !waits; i++) {
        struct node *n = &c->nodes[i];
        pthread_mutex_lock(&n->lock);
        waits = !n->set_up && atomic_load(&n->stage) == NODE_THERE;
        pthread_mutex_unlock(&n->lock);
    }
    return waits;
}

static void *run_maker(void *coordinator)
{
    struct coordinator *c = coordinator;
    for (bool go_on = true; go_on;) {
        make_all(c);
        list_all(c);
        int64_t until = time_monotonic_ns() + LIST_EACH * (int64_t)SECOND_NS;
        pthread_mutex_lock(&c->lock);
        while (!c->stopping && !somebody_waits(c) && wait_until(&c->changed, &c->lock, until))
            ;
        go_on = !c->stopping;
        pthread_mutex_unlock(&c->lock);
    }
    return NULL;
}

int coord_nodes_start(struct coordinator *c, struct err *e)
{
    const struct coord_config *config = c->o.config;
    c->most = config->servers.n + (c->o.finder ? MOST_FOUND : 0);
    c->nodes = mem_zalloc((c->most + 1) * sizeof *c->nodes);
    for (size_t i = 0; i < config->servers.n; i++)
        coord_node_init(&c->nodes[i], &config->servers.v[i], i);
    atomic_store(&c->n, config->servers.n);
    coord_rotations_start(c);
    c->sessions = coord_sessions_new();
    coord_finder_look(c);
    probe(c);
    list_all(c);
    c->probes = !pthread_create(&c->prober, NULL, run_prober, c);
    c->makes = c->probes && !pthread_create(&c->maker, NULL, run_maker, c);
    return c->makes ? 0 : err_set(e, ERR_NOMEM, "cannot start the threads that watch the servers");
}

void coord_nodes_stop(struct coordinator *c)
{
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (c->probes)
        pthread_join(c->prober, NULL);
    if (c->makes)
        pthread_join(c->maker, NULL);
    size_t count = atomic_load(&c->n);
    for (size_t i = 0; i < count; i++) {
        struct node *n = &c->nodes[i];
        while (n->experiments.n)
            free(n->experiments.v[--n->experiments.n]);
        vec_free(&n->experiments);
        free(n->traces);
        free(n->url);
        coord_lifeline_release(&n->lifeline);
        if (n->found) {
            free((char *)n->is->name);
            free((struct coord_server *)n->is);
        }
        pthread_mutex_destroy(&n->lock);
    }
    free(c->nodes);
    c->nodes = NULL;
    atomic_store(&c->n, 0);
    coord_rotations_stop(c);
    coord_sessions_free(c->sessions);
    c->sessions = NULL;
}
