/* SPDX-License-Identifier: MIT */
/* Groups of similar requests: choice of the examined ones, and comparison. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "graph/graph.h"
#include "path/request_figures.h"

enum {
    ALL_SLICES = 1 << 11,  /* limit of work for all paths of a host that take more than one */
    ASKED_AT_ONCE = 1 << 6 /* neighbours whose paths are requested with one */
};

/* Summary of the path of a request, kept because requesting it again costs other nodes time. */
struct known_told {
    bool known;
    struct request_told is;
};

struct request_groups {
    const struct requests *requests;
    const struct path_source *source; /* NULL: the requests were received from elsewhere */
    const struct requests_far *far;
    bool alone;              /* paths end at the border of the list's hosts */
    struct err trouble;      /* trouble of paths with `far` */
    struct known_told *told; /* by request; NULL: no `far` */
    struct arena arena;
    pthread_mutex_t lock; /* guards `parts`, `told` and `trouble`: requests may be asked for one by one */
    struct request_parts parts;
    VEC(struct request_looked) looked;   /* examined requests; those of a group are adjacent, the fastest first */
    VEC(struct request_profile) leaders; /* founders of groups, in order of founding */
    size_t *number;                      /* number of the founder's group */
    size_t chosen;                       /* number chosen for examination */
    VEC(struct request_group) groups;
};

/* ---- examination ---- */

static void look(struct request_groups *g, size_t request, uint64_t weight)
{
    struct request_looked l = {.request = request,
        .weight = weight,
        .begin = path_requests_get(g->requests, request)->begin,
        .group = SIZE_MAX};
    vec_push(&g->looked, l);
}

/* Examines a sample of n requests of one host, the slowest first. */
static void look_at_sample(struct request_groups *g, const size_t *of, size_t n)
{
    size_t slowest = n < REQUESTS_SLOWEST ? n : REQUESTS_SLOWEST;
    size_t rest = n - slowest, sample = rest < REQUESTS_SAMPLE ? rest : REQUESTS_SAMPLE;
    for (size_t i = 0; i < slowest; i++)
        look(g, of[i], 1);
    for (size_t i = 0; i < sample; i++) {
        size_t first = i * rest / sample, past = (i + 1) * rest / sample;
        look(g, of[slowest + first + (past - first) / 2], past - first);
    }
}

/* Chooses per host, so the result does not depend on which other hosts there are. */
static void choose(struct request_groups *g)
{
    const char *const *hosts;
    size_t n = path_requests_count(g->requests), n_hosts = path_requests_hosts(g->requests, &hosts);
    size_t *first = mem_zalloc((n_hosts + 2) * sizeof *first), *of = mem_zalloc((n + 1) * sizeof *of);
    for (size_t i = 0; i < n; i++)
        first[path_requests_get(g->requests, i)->thread.host + 1]++;
    for (size_t h = 0; h < n_hosts; h++)
        first[h + 1] += first[h];
    for (size_t i = 0; i < n; i++)
        of[first[path_requests_get(g->requests, i)->thread.host]++] = i;
    for (size_t h = 0; h < n_hosts; h++) /* turns each begin into its end by adding the count */
        look_at_sample(g, of + (h ? first[h - 1] : 0), first[h] - (h ? first[h - 1] : 0));
    free(of);
    free(first);
}

/* ---- visited hosts ---- */

static void visit(struct request_told *told, int32_t host)
{
    for (size_t i = 0; i < told->n_machines; i++)
        if (told->machines[i] == host)
            return;
    told->machines[told->n_machines++] = host;
}

/* Adds the hosts of the path, in the order in which it reaches them. */
static void visit_all(struct request_groups *g, const struct request_seen *seen, struct request_told *told)
{
    int32_t before = -1;
    told->machines = mem_alloc((seen->path->n_segments + 1) * sizeof *told->machines);
    for (size_t i = 0; i < seen->path->n_segments; i++) {
        int32_t host = seen->path->segments[i].row.host;
        if (host >= 0 && host != before)
            visit(told, path_request_parts_host(&g->parts, seen, host));
        before = host;
    }
    told->machines = mem_resize(told->machines, (told->n_machines + 1) * sizeof *told->machines);
}

static void profile(struct request_groups *g, size_t request, const struct request_seen *seen, struct arena *a,
    struct request_profile *out)
{
    const struct served_request *r = path_requests_get(g->requests, request);
    int32_t tid;
    const char *comm = r->comm;
    if (!comm)
        g->source->row_name(g->source->arg, r->thread, r->end, r->end, &tid, &comm);
    path_request_profile_of(
        &g->parts, seen, path_request_parts_number(&g->parts, r->thread.host, comm, GRAPH_RUNNING), a, out);
}

/* Examines paths that end at the border of the list's hosts. */
static void look_here(struct request_groups *g)
{
    size_t kept = 0;
    unsigned slices = 0;
    int32_t host = -1;
    for (size_t i = 0; i < g->looked.n; i++) {
        struct request_looked *l = &g->looked.v[i];
        const struct served_request *r = path_requests_get(g->requests, l->request);
        slices = r->thread.host == host ? slices : ALL_SLICES;
        host = r->thread.host;
        unsigned mine = slices < REQUESTS_SLICES ? slices : REQUESTS_SLICES, left = mine;
        struct path *path;
        struct err e = {0};
        int rc = path_requests_walk(g->requests, l->request, &left, &path, &e);
        slices -= mine - left;
        if (rc)
            continue;
        profile(g, l->request, &(struct request_seen){path, g->source, false}, &g->arena, &l->profile);
        path_free(path);
        g->looked.v[kept++] = *l;
    }
    g->looked.n = kept;
}

static void note_gaps(struct request_groups *g, const struct path *p)
{
    for (size_t i = 0; i < p->n_gaps && !g->trouble.code; i++)
        if (p->gaps[i].reason == PATH_OFFLINE_NODE || p->gaps[i].reason == PATH_PENDING)
            err_set(&g->trouble, ERR_TIMEOUT, "without what %s would tell of the paths: it does not answer",
                p->gaps[i].peer ? p->gaps[i].peer : "another node");
}

static bool look_far(struct request_groups *g)
{
    struct request_paths told;
    if (!g->looked.n)
        return true;
    size_t n = g->looked.n, kept = 0, *which = mem_alloc((n + 1) * sizeof *which);
    for (size_t i = 0; i < n; i++)
        which[i] = g->looked.v[i].request;
    bool asked = !path_requests_ask(g->requests, g->far, which, n, &told, &g->trouble);
    for (size_t i = 0; asked && i < n; i++) {
        struct request_looked *l = &g->looked.v[i];
        struct request_seen seen = {told.paths[i], told.source, true};
        if (!seen.path)
            continue;
        profile(g, l->request, &seen, &g->arena, &l->profile);
        visit_all(g, &seen, &g->told[l->request].is);
        note_gaps(g, seen.path);
        g->looked.v[kept++] = *l;
    }
    if (asked) {
        g->looked.n = kept;
        g->far->release(g->far->arg, &told);
    }
    free(which);
    return asked;
}

/* ---- comparison ---- */

static int by_begin(const void *pa, const void *pb)
{
    const struct request_looked *a = pa, *b = pb;
    return order_of(a->begin, b->begin) ?: order_of(a->request, b->request);
}

/* Returns the first group whose founder is similar; the number of groups: none. */
static size_t group_like(const struct request_groups *g, const struct request_profile *p)
{
    size_t i = 0;
    while (i < g->leaders.n && !path_request_profiles_alike(&g->parts, &g->leaders.v[i], p))
        i++;
    return i;
}

static void find_groups(struct request_groups *g)
{
    if (g->looked.n)
        qsort(g->looked.v, g->looked.n, sizeof *g->looked.v, by_begin);
    for (size_t i = 0; i < g->looked.n; i++) {
        struct request_looked *l = &g->looked.v[i];
        l->group = group_like(g, &l->profile);
        if (l->group == g->leaders.n)
            vec_push(&g->leaders, l->profile);
    }
}

/* ---- the groups ---- */

struct order {
    size_t founded;
    uint64_t count;
};
static int largest_first(const void *pa, const void *pb)
{
    const struct order *a = pa, *b = pb;
    return order_of(b->count, a->count) ?: order_of(a->founded, b->founded);
}

/* Numbers the groups by size; `number` maps from the order of founding. */
static void order_groups(struct request_groups *g)
{
    size_t n = g->leaders.n;
    struct order *order = mem_zalloc((n + 1) * sizeof *order);
    for (size_t i = 0; i < n; i++)
        order[i].founded = i;
    for (size_t i = 0; i < g->looked.n; i++)
        order[g->looked.v[i].group].count += g->looked.v[i].weight;
    qsort(order, n, sizeof *order, largest_first);
    g->number = mem_zalloc((n + 1) * sizeof *g->number);
    for (size_t i = 0; i < n; i++)
        g->number[order[i].founded] = i;
    for (size_t i = 0; i < g->looked.n; i++)
        g->looked.v[i].group = g->number[g->looked.v[i].group];
    free(order);
}

static int by_group(const void *pa, const void *pb)
{
    const struct request_looked *a = pa, *b = pb;
    return order_of(a->group, b->group) ?: order_of(a->profile.duration, b->profile.duration) ?: by_begin(a, b);
}

static void keep_told(struct request_groups *g)
{
    for (size_t i = 0; i < g->looked.n; i++) {
        struct known_told *t = &g->told[g->looked.v[i].request];
        t->known = true;
        t->is.group = (int64_t)g->looked.v[i].group;
    }
}

static void name_hosts(struct request_groups *g)
{
    const char *const *hosts;
    size_t n = path_requests_hosts(g->requests, &hosts);
    for (size_t i = 0; i < n; i++)
        vec_push(&g->parts.hosts, hosts[i]);
}

struct request_groups *path_request_groups_new(const struct requests *requests, const struct requests_far *far)
{
    struct request_groups *g = mem_zalloc(sizeof *g);
    g->requests = requests;
    g->far = far;
    g->source = path_requests_source(requests);
    pthread_mutex_init(&g->lock, NULL);
    name_hosts(g);
    choose(g);
    g->chosen = g->looked.n;
    if (far)
        g->told = mem_zalloc((path_requests_count(requests) + 1) * sizeof *g->told);
    g->alone = !far || !look_far(g);
    if (g->alone)
        look_here(g);
    find_groups(g);
    order_groups(g);
    if (g->looked.n)
        qsort(g->looked.v, g->looked.n, sizeof *g->looked.v, by_group);
    for (size_t i = 0, past; i < g->looked.n; i = past) {
        struct request_members m = {.v = &g->looked.v[i]};
        struct request_group group;
        for (past = i; past < g->looked.n && g->looked.v[past].group == m.v->group; past++)
            m.weight += g->looked.v[past].weight;
        m.n = past - i;
        path_request_figures_of(&g->parts, &m, &g->arena, &group);
        vec_push(&g->groups, group);
    }
    if (!g->alone)
        keep_told(g);
    return g;
}

void path_request_groups_free(struct request_groups *g)
{
    if (!g)
        return;
    vec_free(&g->looked);
    vec_free(&g->leaders);
    vec_free(&g->groups);
    free(g->number);
    for (size_t i = 0; g->told && i < path_requests_count(g->requests); i++)
        free(g->told[i].is.machines);
    free(g->told);
    path_request_parts_fini(&g->parts);
    pthread_mutex_destroy(&g->lock);
    arena_fini(&g->arena);
    free(g);
}

size_t path_request_groups_count(const struct request_groups *g)
{
    return g->groups.n;
}

const struct request_group *path_request_groups_get(const struct request_groups *g, size_t i)
{
    return &g->groups.v[i];
}

size_t path_request_groups_looked(const struct request_groups *g)
{
    return g->looked.n;
}

size_t path_request_groups_chosen(const struct request_groups *g)
{
    return g->chosen;
}

const char *path_request_groups_host(struct request_groups *g, int32_t host)
{
    pthread_mutex_lock(&g->lock);
    const char *name = host >= 0 && (size_t)host < g->parts.hosts.n ? g->parts.hosts.v[host] : "";
    pthread_mutex_unlock(&g->lock);
    return name;
}

const char *path_request_groups_trouble(struct request_groups *g)
{
    pthread_mutex_lock(&g->lock);
    const char *text = g->trouble.code ? g->trouble.text : NULL; /* constant once it is set */
    pthread_mutex_unlock(&g->lock);
    return text;
}

/* ---- single requests ---- */

/* path NULL: it cannot be followed. */
static void tell(struct request_groups *g, size_t request, const struct request_seen *seen, struct request_told *told)
{
    struct request_profile p;
    struct arena arena = {0};
    *told = (struct request_told){.group = -1};
    if (!seen->path) {
        told->machines = mem_alloc(sizeof *told->machines);
        visit(told, path_requests_get(g->requests, request)->thread.host);
        return;
    }
    pthread_mutex_lock(&g->lock);
    if (seen->far)
        note_gaps(g, seen->path);
    visit_all(g, seen, told);
    profile(g, request, seen, &arena, &p);
    size_t like = group_like(g, &p);
    pthread_mutex_unlock(&g->lock);
    told->group = like < g->leaders.n ? (int64_t)g->number[like] : -1;
    arena_fini(&arena);
}

static void tell_here(struct request_groups *g, size_t request, struct request_told *told)
{
    struct request_seen seen = {.source = g->source};
    struct path *path = NULL;
    struct err e = {0};
    if (!path_requests_path(g->requests, request, &path, &e))
        seen.path = path;
    tell(g, request, &seen, told);
    path_free(path);
}

static bool recall(struct request_groups *g, size_t request, struct request_told *told)
{
    pthread_mutex_lock(&g->lock);
    const struct known_told *t = &g->told[request];
    bool known = t->known;
    if (known) {
        *told = t->is;
        told->machines = mem_alloc((t->is.n_machines + 1) * sizeof *told->machines);
        memcpy(told->machines, t->is.machines, t->is.n_machines * sizeof *told->machines);
    }
    pthread_mutex_unlock(&g->lock);
    return known;
}

static void keep(struct request_groups *g, size_t request, struct request_told *told)
{
    pthread_mutex_lock(&g->lock);
    struct known_told *t = &g->told[request];
    if (t->known)
        free(told->machines); /* lost the race against another thread */
    else
        *t = (struct known_told){true, *told};
    pthread_mutex_unlock(&g->lock);
}

/* Requests its path and those of its neighbours, which the reader of a table will request next. False: there is no node
 * to ask. */
static bool ask_around(struct request_groups *g, size_t request)
{
    size_t which[ASKED_AT_ONCE], n = 0, first = request / ASKED_AT_ONCE * ASKED_AT_ONCE;
    struct request_paths paths;
    struct err e = {0};
    pthread_mutex_lock(&g->lock);
    for (size_t i = first; i < first + ASKED_AT_ONCE && i < path_requests_count(g->requests); i++)
        if (!g->told[i].known)
            which[n++] = i;
    pthread_mutex_unlock(&g->lock);
    if (!n) /* lost the race against another thread */
        return true;
    if (path_requests_ask(g->requests, g->far, which, n, &paths, &e))
        return false;
    for (size_t i = 0; i < n; i++) {
        struct request_told told;
        tell(g, which[i], &(struct request_seen){paths.paths[i], paths.source, true}, &told);
        keep(g, which[i], &told);
    }
    g->far->release(g->far->arg, &paths);
    return true;
}

void path_request_groups_tell(struct request_groups *g, size_t request, struct request_told *told)
{
    if (g->alone)
        tell_here(g, request, told);
    else if (!recall(g, request, told) && !(ask_around(g, request) && recall(g, request, told)))
        tell_here(g, request, told);
}
