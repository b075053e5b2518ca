/* SPDX-License-Identifier: MIT */
/* Priority statistics: time that woken threads wait for a CPU, by their priority at that time, and by priority and
 * name. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "views/durations.h"
#include "views/latencies.h"
#include "views/list.h"

static bool known(const struct state_latency *v)
{
    return v->ret != STATE_NO_PRIORITY && v->ret >= INT16_MIN && v->ret <= INT16_MAX;
}

/* A trace records the priorities of all its switches or of none. */
static bool has_data(const struct view *self, const struct view_host *h)
{
    struct state_latency first;
    if (!h->states || !state_latencies(h->states, STATE_LATENCY_SCHED))
        return false;
    state_latency(h->states, STATE_LATENCY_SCHED, 0, &first);
    return known(&first);
}

static size_t members(struct views *x)
{
    return 1;
}

static void member(struct views *x, size_t i, const char **suffix, const char **name)
{
    latency_analysis(STATE_LATENCY_SCHED, suffix, name);
}

/* ---- groups ---- */

struct group {
    size_t host;
    int priority;
    const char *name; /* "" if only priorities count */
    uint64_t key;
    struct figures figures; /* figures of the whole experiment */
};
/* Groups in order of host, priority, name. */
struct groups {
    VEC(struct group) v;
    struct map numbers; /* key -> index in v + 1 */
    struct strings names;
    VEC(uint32_t)
    thread_names; /* number of the name of each thread, in order of entry ids; empty if only priorities count */
};

static struct group group_of(const struct groups *g, const struct views *x, size_t host, const struct state_latency *v)
{
    const struct view_host *h = &x->hosts[host];
    bool named = g->thread_names.n && v->thread >= 0 && v->thread < h->threads;
    uint32_t name = named ? g->thread_names.v[h->first_thread - x->hosts[0].first_thread + v->thread] : 0;
    return (struct group){.host = host,
        .priority = (int)v->ret,
        .name = strings_get(&g->names, name),
        .key = (uint64_t)host << 48 | (uint64_t)(uint16_t)v->ret << 32 | name};
}

static void name_threads(struct groups *g, const struct views *x)
{
    struct graph_row t;
    for (size_t i = 0; i < x->n_hosts; i++)
        for (int32_t row = 0; row < x->hosts[i].threads; row++) {
            graph_row(x->hosts[i].index->graph, row, &t);
            vec_push(&g->thread_names, strings_intern(&g->names, t.name, strlen(t.name)));
        }
}

/* Calls f for the latencies first … end - 1 of a host that have a priority. */
typedef void on_latency(void *arg, const struct group *, const struct figures *one);
static void each_latency(
    const struct groups *g, const struct views *x, size_t host, size_t first, size_t end, on_latency *f, void *arg)
{
    const struct view_host *h = &x->hosts[host];
    for (size_t i = first; i < end; i++) {
        struct state_latency v;
        state_latency(h->states, STATE_LATENCY_SCHED, i, &v);
        if (!known(&v))
            continue;
        struct group of = group_of(g, x, host, &v);
        int64_t ns = v.end - v.begin, begin = view_to_reference(h, v.begin);
        f(arg, &of,
            &(struct figures){.n = 1, .sum = ns, .least = ns, .most = ns, .least_begin = begin, .most_begin = begin});
    }
}

static void add_to_all(void *arg, const struct group *of, const struct figures *one)
{
    struct groups *g = arg;
    uint64_t *number = map_put(&g->numbers, of->key, NULL);
    if (!*number) {
        vec_push(&g->v, *of);
        *number = g->v.n;
    }
    figures_join(&g->v.v[*number - 1].figures, one);
}

static int by_key(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    if (x->host != y->host)
        return x->host < y->host ? -1 : 1;
    if (x->priority != y->priority)
        return x->priority < y->priority ? -1 : 1;
    return strcmp(x->name, y->name);
}

static struct groups *find_groups(struct views *x, bool by_name)
{
    struct groups *g = mem_zalloc(sizeof *g);
    if (by_name)
        name_threads(g, x);
    for (size_t i = 0; i < x->n_hosts; i++)
        if (x->hosts[i].states)
            each_latency(g, x, i, 0, state_latencies(x->hosts[i].states, STATE_LATENCY_SCHED), add_to_all, g);
    if (g->v.n)
        qsort(g->v.v, g->v.n, sizeof *g->v.v, by_key);
    for (size_t i = 0; i < g->v.n; i++)
        *map_put(&g->numbers, g->v.v[i].key, NULL) = i + 1;
    return g;
}

static void *find_by_priority(struct views *x)
{
    return find_groups(x, false);
}
static void *find_by_name(struct views *x)
{
    return find_groups(x, true);
}

static void close_groups(struct views *x, void *cache)
{
    struct groups *g = cache;
    vec_free(&g->v);
    map_fini(&g->numbers);
    strings_fini(&g->names);
    vec_free(&g->thread_names);
    free(g);
}

/* ---- figures ---- */

struct statistics {
    const struct views *x;
    const struct tsp_query *q;
    const struct groups *groups;
    struct figures *figures; /* figures of a selection while they are computed */
};

static const char *label(void *arg, size_t i, size_t *host)
{
    const struct statistics *s = arg;
    const struct group *g = &s->groups->v.v[i];
    struct arena *a = s->q->http->arena;
    *host = (size_t)g->host;
    return s->groups->thread_names.n ? arena_printf(a, "Priority %d/%s", g->priority, g->name)
                                     : arena_printf(a, "Priority %d", g->priority);
}

/* Adds to the figures of a selection. Cached groups are shared and immutable; they include the names of all threads. */
static void add_to_selection(void *arg, const struct group *of, const struct figures *one)
{
    struct statistics *s = arg;
    const uint64_t *number = map_find(&s->groups->numbers, of->key);
    if (number)
        figures_join(&s->figures[*number - 1], one);
}

static void find(void *arg, bool selection, struct figures *out)
{
    struct statistics *s = arg;
    s->figures = out;
    for (size_t i = 0; i < s->groups->v.n && !selection; i++)
        out[i] = s->groups->v.v[i].figures;
    for (size_t i = 0; i < s->x->n_hosts && selection; i++)
        if (s->x->hosts[i].states)
            each_latency(s->groups, s->x, i, latency_find(s->x, i, STATE_LATENCY_SCHED, s->q->begin),
                latency_find(s->x, i, STATE_LATENCY_SCHED, time_after(s->q->end)), add_to_selection, s);
}

enum { BY_PRIORITY, BY_NAME };

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    struct statistics s = {.x = x, .q = q};
    s.groups = view_cache(x, self, self->kind == BY_NAME ? find_by_name : find_by_priority);
    durations_write_statistics(x, q, answer, &(struct durations_statistics){&s, s.groups->v.n, find, label});
}

const struct view view_priority_statistics = {
    .provider =
        {.id = "org.eclipse.tracecompass.internal.analysis.os.linux.core.segmentstore.PriorityStatisticsDataProvider",
            .name = "Priority Statistics Table",
            .description = "Least, most, mean and spread of the waits for a CPU, by priority",
            .type = "DATA_TREE"},
    .kind = BY_PRIORITY,
    .host_has_data = has_data,
    .members = members,
    .member = member,
    .headers = durations_headers,
    .n_headers = DURATIONS_HEADERS,
    .tree = tree,
    .close = close_groups,
};
const struct view view_priority_name_statistics = {
    .provider = {.id = "org.eclipse.tracecompass.internal.analysis.os.linux.core.segmentstore."
                       "PriorityThreadNameStatisticsDataProvider",
        .name = "Priority/Thread name Statistics Table",
        .description = "Least, most, mean and spread of the waits for a CPU, by priority and name of the thread",
        .type = "DATA_TREE"},
    .kind = BY_NAME,
    .host_has_data = has_data,
    .members = members,
    .member = member,
    .headers = durations_headers,
    .n_headers = DURATIONS_HEADERS,
    .tree = tree,
    .close = close_groups,
};
