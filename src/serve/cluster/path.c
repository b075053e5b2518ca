/* SPDX-License-Identifier: MIT */
/* Following a critical path from node to node: rounds of questions, one to each node that holds something wanted. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/time.h"
#include "bus/bus.h"
#include "cluster/answer_cache.h"
#include "cluster/client.h"
#include "cluster/containers.h"
#include "cluster/paths.h"
#include "cluster/query.h"
#include "cluster/routes.h"
#include "cluster/stacks.h"

enum { MOST_ROUNDS = 10000, WINDOWS_AT_ONCE = 20000, MOST_NAMED = 3 };
#define ROUTES_NS NS_PER_S /* reading them is for who has more time than that */

/* A question under way. */
struct ask {
    size_t node; /* entry */
    struct cluster_answer_scope scope;
    struct path_window *windows;
    size_t n;
};

/* Walk of one of the paths. */
struct walk {
    struct path_row start;
    struct path_options options;
    uint64_t most_steps; /* 0: any */
    struct path_query *query;
    struct path *answer;
    int progress; /* enum path_progress, or an error */
    struct err error;
};

struct cluster_path {
    struct cluster *cluster;
    struct cluster_path_options options;
    struct path_known *known;
    struct cluster_cached *routes; /* struct routes_book; NULL: not needed yet */
    struct cluster_answer_scope
        *scopes; /* by node: context of its questions; node_hosts NULL: not asked yet, or changed since */
    const struct cluster_node_hosts **node_hosts; /* by node: hosts asked of it; NULL: those of the membership */
    struct walk *walks;
    size_t n_walks;
    bool *asked;        /* by node: named in the cost */
    unsigned *failures; /* by node: questions without an answer */
    bool life_unknown;  /* no node knows when the row lived */
    const char **names; /* names of nodes asked */
    size_t n_names;
    struct arena arena;                 /* holds `node_hosts`, and what is known of missing nodes */
    struct path_cost cost, cost_before; /* now; before the present round */
    int64_t began;
};

/* ---- hosts of each node ---- */

static const struct cluster_node_hosts *hosts_of_node(const struct cluster_path *p, size_t node)
{
    return p->node_hosts[node] ? p->node_hosts[node] : &p->cluster->membership->node_hosts[node];
}

/* Adds a host, of which the node has a lesser copy, to the questions to it. */
static void hold_copy(struct cluster_path *p, size_t node, int32_t host, uint64_t hash)
{
    const struct cluster_node_hosts *before = hosts_of_node(p, node);
    struct cluster_node_hosts *now = arena_new(&p->arena, struct cluster_node_hosts, 1);
    size_t at = 0, rest;
    while (at < before->n && before->hosts[at] < host)
        at++;
    if (at < before->n && before->hosts[at] == host)
        return;
    rest = before->n - at;
    *now = (struct cluster_node_hosts){.hosts = arena_new(&p->arena, int32_t, before->n + 1),
        .hashes = arena_new(&p->arena, uint64_t, before->n + 1),
        .n = before->n + 1};
    memcpy(now->hosts, before->hosts, at * sizeof *now->hosts);
    memcpy(now->hashes, before->hashes, at * sizeof *now->hashes);
    now->hosts[at] = host;
    now->hashes[at] = hash;
    memcpy(now->hosts + at + 1, before->hosts + at, rest * sizeof *now->hosts);
    memcpy(now->hashes + at + 1, before->hashes + at, rest * sizeof *now->hashes);
    p->node_hosts[node] = now;
    p->scopes[node].node_hosts = NULL;
}

/* The node for the host: the first that did not fail; SIZE_MAX: all did. What a lesser copy does not have is with the
 * node that has more. */
static size_t node_for(struct cluster_path *p, int32_t host)
{
    const struct cluster_membership_host *h = &p->cluster->membership->hosts[host];
    for (size_t i = 0; i < h->n_nodes; i++) {
        if (p->failures[h->entries[i]])
            continue;
        if (cluster_membership_is_lesser(h, i)) {
            hold_copy(p, h->entries[i], host, h->copies[i]->hash);
            cluster_client_use_copy(p->cluster, (size_t)host, i);
        }
        return h->entries[i];
    }
    return SIZE_MAX;
}

/* An excerpt has the state of a row before an instant within it, and what was sent then. */
static bool is_outside_of_excerpt(const struct cluster_path *p, const struct path_window *w)
{
    const struct path_far_host *h = &p->cluster->far[w->host];
    if (!h->away || w->kind == PATH_WINDOW_LIFE)
        return false;
    return w->t <= path_far_begin(h) || (w->kind == PATH_WINDOW_ROW && w->t > path_far_end(h));
}

static void note_asked(struct cluster_path *p, size_t node)
{
    if (!p->asked[node])
        p->names[p->n_names++] = p->cluster->membership->entries[node].node;
    p->asked[node] = true;
}

static struct path_cost cost_of(const struct cluster_path *p)
{
    struct path_cost c = p->cost;
    c.nodes = p->names;
    c.n_nodes = p->n_names;
    c.seconds = (double)(time_monotonic_ns() - p->began) / (double)NS_PER_S;
    return c;
}

static void give_up(struct cluster_path *p, const struct path_window *w, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct cluster_membership_host *h = &p->cluster->membership->hosts[w[i].host];
        path_known_give_up(p->known, &w[i], h->used ? h->whole : h->nodes[0]);
        p->life_unknown |= w[i].kind == PATH_WINDOW_LIFE;
    }
}

/* ---- a round ---- */

struct round {
    struct cluster_path *path;
    struct bus_calls *calls;
    VEC(struct ask) asks;
};

/* Returns the question with all hosts of the node, so that it can follow sends among them at once. */
static struct path_ask ask_of(const struct ask *a)
{
    const struct cluster_node_hosts *node_hosts = a->scope.node_hosts;
    return (struct path_ask){
        .hosts = node_hosts->hosts, .n_hosts = node_hosts->n, .windows = a->windows, .n_windows = a->n};
}

static struct cluster_answer_cache *answers_of(const struct cluster_path *p)
{
    return p->cluster->cache ? p->cluster->cache->answers : NULL;
}

static struct cluster_answer_scope scope_of(struct cluster_path *p, size_t node)
{
    if (!answers_of(p))
        return (struct cluster_answer_scope){.node_hosts = hosts_of_node(p, node)};
    if (!p->scopes[node].node_hosts)
        p->scopes[node] = cluster_answer_scope_of(p->cluster->membership, hosts_of_node(p, node), p->known);
    return p->scopes[node];
}

/* Takes the windows. Those that were answered for a question before are not asked again. */
static void send_to(struct round *r, size_t node, struct path_window *windows, size_t n)
{
    struct cluster_path *p = r->path;
    struct cluster_answer_scope scope = scope_of(p, node);
    n = cluster_answer_cache_find(answers_of(p), &scope, p->known, windows, n);
    struct ask a = {.node = node, .scope = scope, .windows = windows, .n = n};
    struct path_ask ask = ask_of(&a);
    struct text t = {.fd = -1};
    char subject[CLUSTER_SUBJECT];
    if (!n) {
        free(windows);
        return;
    }
    cluster_question_begin(&t, CLUSTER_PATH);
    path_known_request(p->known, &ask, &t);
    vec_push(&r->asks, a);
    if (!cluster_subject_of(p->cluster->name, p->cluster->membership->entries[node].node, subject, NULL)) {
        bus_call(r->calls, subject, t.v, t.n, cluster_query_patience(p->options.deadline_ns), r->asks.n - 1);
        note_asked(p, node);
        p->cost.messages++;
    } else {
        give_up(p, windows, n);
    }
    text_fini(&t);
}

/* Sends the wanted windows to the nodes that have them; one message per node, up to its size limit. */
static void ask(struct round *r, const struct path_window *windows, size_t n)
{
    struct cluster_path *p = r->path;
    size_t n_nodes = p->cluster->membership->n_entries;
    struct list {
        VEC(struct path_window) v;
    } *of = mem_zalloc((n_nodes + 1) * sizeof *of);
    for (size_t i = 0; i < n; i++) {
        size_t node = node_for(p, windows[i].host);
        if (node == SIZE_MAX || is_outside_of_excerpt(p, &windows[i])) {
            give_up(p, &windows[i], 1);
            continue;
        }
        vec_push(&of[node].v, windows[i]);
        if (of[node].v.n == WINDOWS_AT_ONCE) {
            send_to(r, node, of[node].v.v, of[node].v.n);
            of[node].v.v = NULL;
            of[node].v.n = of[node].v.cap = 0;
        }
    }
    for (size_t i = 0; i < n_nodes; i++)
        if (of[i].v.n)
            send_to(r, i, of[i].v.v, of[i].v.n);
    free(of);
}

static void take(struct round *r, struct bus_reply *reply)
{
    struct cluster_path *p = r->path;
    struct ask a = r->asks.v[reply->tag];
    struct path_ask ask_was = ask_of(&a);
    struct path_answer got;
    p->cost.bytes += reply->sent_bytes + reply->received_bytes;
    p->cost.messages += !reply->code;
    if (reply->code || cluster_path_answer_read(reply->data, reply->n, &got, NULL) ||
        path_known_add(p->known, &ask_was, got.fragment, got.n, NULL)) {
        p->failures[a.node]++;
        ask(r, a.windows, a.n);
    } else {
        cluster_answer_cache_add(answers_of(p), &a.scope, a.windows, a.n, got.state, got.fragment, got.n);
    }
}

/* Waits for the next answer. Meanwhile other threads may see the state before the round. */
static bool await_answer(const struct round *r, struct bus_reply *reply)
{
    const struct cluster_path *p = r->path;
    const struct cluster_path_options *o = &p->options;
    bool seen = o->refined && p->cost_before.rounds;
    if (seen)
        o->refined(o->arg, p, p->cost_before.rounds);
    bool came = bus_calls_next(r->calls, reply);
    if (seen && o->moves_on)
        o->moves_on(o->arg);
    return came;
}

/* False: there is nothing to wait for. */
static bool run_round(struct cluster_path *p)
{
    struct round r = {.path = p, .calls = bus_calls_new(p->cluster->bus)};
    const struct path_window *wanted;
    struct bus_reply reply;
    size_t n = path_known_take(p->known, &wanted);
    struct path_window *windows = mem_alloc((n + 1) * sizeof *windows);
    if (n)
        memcpy(windows, wanted, n * sizeof *windows);
    p->cost_before = cost_of(p);
    bool stop = p->options.stop && atomic_load_explicit(p->options.stop, memory_order_relaxed);
    if (stop || time_monotonic_ns() >= p->options.deadline_ns || p->cost.rounds >= MOST_ROUNDS)
        give_up(p, windows, n);
    else if (n)
        ask(&r, windows, n);
    p->cost.rounds += r.asks.n > 0;
    while (r.asks.n && await_answer(&r, &reply)) {
        take(&r, &reply);
        bus_reply_free(&reply);
    }
    for (size_t i = 0; i < r.asks.n; i++)
        free(r.asks.v[i].windows);
    vec_free(&r.asks);
    bus_calls_free(r.calls);
    free(windows);
    return n > 0;
}

/* ---- unknown nodes ---- */

/* Returns whether the node has an entry that lists hosts, of an earlier run. */
static bool has_listed_hosts(const struct cluster_membership *r, const char *node)
{
    size_t i = 0;
    while (i < r->n_entries && strcmp(r->entries[i].node, node) != 0)
        i++;
    return i < r->n_entries && r->entries[i].n_hosts;
}

static bool may_have_others(const struct cluster_membership *r, const struct cluster_missing *m)
{
    bool opens = m->kind == CLUSTER_MISSING_OPENING || m->kind == CLUSTER_MISSING_FAILED;
    return !opens || !has_listed_hosts(r, m->node);
}

/* Lists, for people, nodes that may have unknown hosts; NULL: there are none. */
static const char *unknown_nodes(const struct cluster_membership *r, struct arena *a)
{
    struct text names = {.fd = -1};
    const char *last = NULL, *all = NULL;
    size_t n = 0;
    for (size_t i = 0; i < r->n_missing; i++) {
        if ((last && !strcmp(last, r->missing[i].node)) || !may_have_others(r, &r->missing[i]))
            continue;
        last = r->missing[i].node;
        if (n++ < MOST_NAMED)
            text_printf(&names, "%s%s", n > 1 ? ", " : "", last);
    }
    if (n > MOST_NAMED)
        text_printf(&names, " and %zu more", n - MOST_NAMED);
    if (n)
        all = arena_strdup(a, text_cstr(&names));
    text_fini(&names);
    return all;
}

/* ---- the path ---- */

static void drop_routes(void *book)
{
    cluster_routes_book_free(book);
}

/* Reads the routes, by numbers of this membership's hosts. */
static struct cluster_cached *read_routes(const struct cluster *c)
{
    struct cluster_cache *m = c->cache;
    uint64_t version = 0;
    if (m && bus_table_version(m->routes, &version, NULL))
        m = NULL;
    version = map_mix(version) + c->entries->version;
    struct cluster_cached *k = cluster_cache_find(m, CACHED_ROUTES, version);
    bool read = false;
    if (!k)
        k = cluster_cached_new(cluster_routes_book_read(c->bus, c->name, c->membership, &read), drop_routes, version);
    if (read)
        cluster_cache_add(m, CACHED_ROUTES, k);
    return k;
}

/* Read when a message first comes from an address that nobody owns, or several do. */
static bool may_have_sent(void *arg, int32_t host, const struct flow_message_key *m, bool owner)
{
    struct cluster_path *p = arg;
    if (!p->routes && time_monotonic_ns() + ROUTES_NS >= p->options.deadline_ns)
        return true;
    if (!p->routes)
        p->routes = read_routes(p->cluster);
    return owner ? cluster_routes_book_may_send(p->routes->is, (size_t)host, m)
                 : cluster_routes_book_lead(p->routes->is, (size_t)host, m);
}

static void finish(struct cluster_path *p)
{
    p->cost = cost_of(p);
    for (struct walk *w = p->walks; w < p->walks + p->n_walks; w++)
        if (w->progress == PATH_DONE) {
            w->answer = path_query_answer(w->query);
            w->answer->cost = p->cost;
        }
}

struct path *cluster_path_so_far(const struct cluster_path *p)
{
    struct path *so_far = path_query_answer(p->walks->query);
    so_far->cost = p->cost_before;
    return so_far;
}

static void count_windows(struct cluster_path *p)
{
    size_t asked;
    p->cost.windows_unused = path_known_unused(p->known, p->walks->start, &p->walks->options, &asked);
    p->cost.windows = asked;
    p->walks->answer->cost = p->cost;
}

static void step(const struct cluster_path *p, struct walk *w)
{
    w->progress = path_query_run(w->query, w->most_steps ? w->most_steps : UINT64_MAX, &w->error);
    if (w->progress == PATH_MORE)
        w->progress = err_set(&w->error, ERR_LIMIT, "the path has too many pieces: choose a shorter interval");
    if (w->progress == ERR_NOTFOUND && p->life_unknown)
        w->progress = err_set(
            &w->error, ERR_TIMEOUT, "node %s: no answer", p->cluster->membership->hosts[w->start.host].nodes[0]);
}

/* Walks all paths as far as known answers lead. Returns the number of those that await more. */
static size_t step_all(struct cluster_path *p)
{
    size_t await = 0;
    for (struct walk *w = p->walks; w < p->walks + p->n_walks; w++)
        if (w->progress == PATH_AWAITS) {
            step(p, w);
            await += w->progress == PATH_AWAITS;
        }
    return await;
}

static int find(struct cluster_path *p, struct err *e)
{
    while (step_all(p))
        if (!run_round(p))
            return err_set(e, ERR_FORMAT, "the walk waits for nothing");
    finish(p);
    return 0;
}

static void begin_walk(struct cluster_path *p, struct walk *w, const struct cluster_path_start *s)
{
    w->options = s->path;
    w->most_steps = s->most_steps;
    w->start = path_known_row(p->known, s->host, s->row);
    if (s->path.reached == PATH_REACHED_BY_NOTHING)
        path_known_ask_open(p->known, w->start, s->path.end);
    else
        w->options.receiver = path_known_row(p->known, s->host, s->receiver);
    w->query = path_query_new(path_known_source(p->known), w->start, &w->options);
    w->progress = PATH_AWAITS;
}

int cluster_path_find(struct cluster *c, int32_t host, uint64_t row, const struct cluster_path_options *o,
    struct cluster_path **out, struct err *e)
{
    struct cluster_path_start start = {.host = host, .row = row, .path = o->path};
    int rc = cluster_paths_find(c, &start, 1, o, out, e);
    if (rc || (*out)->walks->answer) {
        if (!rc && o->count_windows)
            count_windows(*out);
        return rc;
    }
    *e = (*out)->walks->error;
    rc = (*out)->walks->progress;
    cluster_path_free(*out);
    *out = NULL;
    return rc;
}

int cluster_paths_find(struct cluster *c, const struct cluster_path_start *starts, size_t n,
    const struct cluster_path_options *o, struct cluster_path **out, struct err *e)
{
    struct cluster_path *p = mem_zalloc(sizeof *p);
    p->cluster = c;
    p->options = *o;
    p->began = time_monotonic_ns();
    p->asked = mem_zalloc((c->membership->n_entries + 1) * sizeof *p->asked);
    p->failures = mem_zalloc((c->membership->n_entries + 1) * sizeof *p->failures);
    p->names = mem_zalloc((c->membership->n_entries + 1) * sizeof *p->names);
    p->scopes = mem_zalloc((c->membership->n_entries + 1) * sizeof *p->scopes);
    p->node_hosts = mem_zalloc((c->membership->n_entries + 1) * sizeof *p->node_hosts);
    for (size_t i = 0; i < c->membership->n_hosts; i++)
        cluster_client_show_host(c, i); /* nodes that did not answer before are asked again */
    struct path_known_options known = {.assuming = o->assuming,
        .no_early_return = o->path.no_early_return,
        .everybody = o->method == CLUSTER_BROADCAST,
        .may_have_sent = may_have_sent,
        .arg = p,
        .others = unknown_nodes(c->membership, &p->arena)};
    p->known = path_known_new(c->far, c->membership->n_hosts, &known);
    p->walks = mem_zalloc((n + 1) * sizeof *p->walks);
    p->n_walks = n;
    for (size_t i = 0; i < n; i++)
        begin_walk(p, &p->walks[i], &starts[i]);
    int rc = find(p, e);
    if (rc)
        cluster_path_free(p);
    *out = rc ? NULL : p;
    return rc;
}

const struct path *cluster_path_answer(const struct cluster_path *p)
{
    return p->walks->answer;
}

const struct path *cluster_paths_answer(const struct cluster_path *p, size_t i)
{
    return p->walks[i].answer;
}

size_t cluster_paths_contain(const struct cluster_path *p, struct err *e)
{
    struct container_rows rows = {0};
    for (size_t i = 0; i < p->n_walks; i++) {
        const struct path *answer = p->walks[i].answer;
        for (size_t k = 0; answer && k < answer->n_totals; k++) {
            struct path_row row = answer->totals[k].row;
            if (row.row >= 0)
                vec_push(&rows, ((struct container_row){row.host, path_known_row_id(p->known, row), row}));
        }
    }
    size_t away = cluster_containers_find(p->cluster, &rows, p->known, p->options.deadline_ns, e);
    vec_free(&rows);
    return away;
}

size_t cluster_path_find_stacks(const struct cluster_path *p, struct err *e)
{
    struct path_stack_questions asked = {0};
    for (size_t i = 0; i < p->n_walks; i++)
        if (p->walks[i].answer)
            path_ask_stacks(p->walks[i].answer, &asked);
    size_t away = cluster_stacks_find(p->cluster, &asked, p->known, p->options.deadline_ns, e);
    vec_free(&asked);
    return away;
}

const struct path_source *cluster_path_source(const struct cluster_path *p)
{
    return path_known_source(p->known);
}

uint64_t cluster_path_row_id(const struct cluster_path *p, struct path_row row)
{
    return path_known_row_id(p->known, row);
}

void cluster_path_free(struct cluster_path *p)
{
    if (!p)
        return;
    for (struct walk *w = p->walks; w < p->walks + p->n_walks; w++) {
        path_free(w->answer);
        path_query_free(w->query);
    }
    free(p->walks);
    path_known_free(p->known);
    cluster_cached_unref(p->routes);
    free(p->scopes);
    free(p->node_hosts);
    free(p->asked);
    free(p->failures);
    free(p->names);
    arena_fini(&p->arena);
    free(p);
}
