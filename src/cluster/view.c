#include "cluster/view.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/time.h"
#include "bus/bus.h"
#include "cluster/clocks.h"

#define WHOLE_NS (5 * NS_PER_S)                      /* for a node to say that it is there */
enum { LOOK_AGAIN_US = 50000, SELDOM_US = 1000000 }; /* the first time; at most. All cards are read each time */

static void forget(struct cluster *c)
{
    free(c->hosts);
    free(c->clock_of);
    free(c->alone);
    free(c->far);
    c->hosts = NULL;
    c->clock_of = NULL;
    c->alone = NULL;
    c->far = NULL;
    clock_net_free(c->clocks);
    c->clocks = NULL;
    roster_fini(&c->roster);
}

/* What is asked about a host, and of whom. */
static void show_nodes(struct cluster *c, size_t i)
{
    const struct roster_host *h = &c->roster.hosts[i];
    struct cluster_host *shown = &c->hosts[i];
    shown->nodes = (const char *const *)h->nodes;
    shown->n_nodes = h->n_nodes;
    c->far[i].away = shown->whole = h->used ? h->whole : NULL;
    c->far[i].begin = shown->snip_begin = h->used ? h->used->begin : INT64_MIN;
    c->far[i].end = shown->snip_end = h->used ? h->used->end : INT64_MAX;
}

static int look(struct cluster *c, struct err *e)
{
    forget(c);
    int rc = roster_read(c->nodes, &c->roster, e);
    if (rc)
        return rc;
    const struct roster *r = &c->roster;
    c->hosts = mem_zalloc((r->n_hosts + 1) * sizeof *c->hosts);
    c->far = mem_zalloc((r->n_hosts + 1) * sizeof *c->far);
    c->clock_of = mem_zalloc((r->n_hosts + 1) * sizeof *c->clock_of);
    c->alone = mem_zalloc((r->n_hosts + 1) * sizeof *c->alone);
    for (size_t i = 0; i < r->n_hosts; i++) {
        const struct roster_host *h = &r->hosts[i];
        c->alone[i].island = UINT32_MAX - 1 - (uint32_t)i;
        c->hosts[i] = (struct cluster_host){.name = h->name,
            .clock_name = h->clock_name,
            .key = h->card->key,
            .begin = h->card->begin,
            .end = h->card->end,
            .has_graph = h->card->has_graph};
        c->far[i] = (struct path_far_host){.name = h->name,
            .id = h->id,
            .has_packets = h->card->has_packets,
            .own = h->card->own,
            .peers = h->card->peers,
            .n_own = h->card->n_own,
            .n_peers = h->card->n_peers};
        show_nodes(c, i);
    }
    return 0;
}

int cluster_open(struct bus *bus, const char *name, struct cluster **out, struct err *e)
{
    struct cluster *c = mem_zalloc(sizeof *c);
    char table[CLUSTER_SUBJECT];
    c->bus = bus;
    c->name = mem_strdup(name ? name : CLUSTER_DEFAULT);
    int rc = cluster_table_name(c->name, "nodes", table, e);
    if (!rc)
        rc = bus_table_open(bus, table, NULL, &c->nodes, e);
    if (!rc)
        rc = cluster_table_name(c->name, "clocks", table, e);
    if (!rc)
        rc = bus_table_open(bus, table, NULL, &c->clocks_table, e);
    if (!rc)
        rc = look(c, e);
    if (rc)
        cluster_close(c);
    *out = rc ? NULL : c;
    return rc;
}

void cluster_close(struct cluster *c)
{
    if (!c)
        return;
    forget(c);
    if (c->nodes)
        bus_table_close(c->nodes);
    if (c->clocks_table)
        bus_table_close(c->clocks_table);
    arena_fini(&c->names);
    free(c->name);
    free(c);
}

size_t cluster_hosts(const struct cluster *c, const struct cluster_host **out)
{
    *out = c->hosts;
    return c->roster.n_hosts;
}

/* ---- clocks ---- */

static void use_clocks(struct cluster *c, const struct clocks_head *h)
{
    struct map clock_of = {0};
    for (size_t k = h->n_hosts; k-- > 0;)
        *map_put(&clock_of, h->hosts[k].key, NULL) = k + 1;
    for (size_t i = 0; i < c->roster.n_hosts; i++) {
        const uint64_t *at = map_find(&clock_of, c->roster.hosts[i].card->key);
        c->clock_of[i] = at ? (size_t)*at : 0;
    }
    map_fini(&clock_of);
}

/* Looks again until the shared clocks are those of the hosts that are there, whose traces may grow all the time. */
static int find_head(
    struct cluster *c, struct arena *a, int64_t deadline_ns, struct clocks_head *h, bool *stale, struct err *e)
{
    for (useconds_t pause = LOOK_AGAIN_US;; pause = 2 * pause < SELDOM_US ? 2 * pause : SELDOM_US) {
        int rc = clocks_head_read(c->clocks_table, a, h, e);
        *stale = rc || !clocks_are_of(h, &c->roster);
        if (!*stale || (rc && rc != ERR_NOTFOUND) || time_monotonic_ns() >= deadline_ns)
            return rc;
        usleep(pause);
        rc = look(c, e);
        if (rc)
            return rc;
    }
}

int cluster_sync(struct cluster *c, const struct clock_options *o, int64_t deadline_ns, bool *stale, struct err *e)
{
    struct arena a = {0};
    struct clocks_head h;
    *stale = false;
    c->apart = !o;
    if (c->apart)
        return 0;
    if (o->drift_prior_ppm != clock_defaults().drift_prior_ppm)
        return err_set(e, ERR_ARG, "the clocks of a cluster are found for the usual prior of drift: leave it as it is");
    int rc;
    do { /* newer ones may be shared between reading the head and the rest */
        rc = find_head(c, &a, deadline_ns, &h, stale, e);
        if (rc == ERR_NOTFOUND)
            err_set(e, rc, "no node has found the clocks of cluster %s yet: is a node running?", c->name);
        if ((!rc || rc == ERR_NOTFOUND) && !c->roster.n_hosts)
            rc = err_set(e, ERR_NOTFOUND, "no node of cluster %s has a trace: `weft serve --node` starts one", c->name);
        if (!rc)
            rc = clocks_load(c->clocks_table, &h, o, &c->clocks, e);
    } while (rc == ERR_STALE && time_monotonic_ns() < deadline_ns);
    if (!rc)
        use_clocks(c, &h);
    arena_fini(&a);
    for (size_t i = 0; i < c->roster.n_hosts && !rc; i++)
        c->far[i].map = cluster_clock_map(c, i);
    return rc;
}

const struct clock_net *cluster_clocks(const struct cluster *c)
{
    return c->clocks;
}

const struct clock_map *cluster_clock_map(const struct cluster *c, size_t host)
{
    if (c->apart || !c->clocks)
        return NULL;
    return c->clock_of[host] ? clock_net_map(c->clocks, c->clock_of[host] - 1) : &c->alone[host];
}

int cluster_relates(const struct cluster *c, size_t host, struct err *e)
{
    return c->clocks && c->clock_of[host] ? clock_net_relates(c->clocks, c->clock_of[host] - 1, e) : 0;
}

/* ---- snips ---- */

/* Asks all that have a trace of which there are snips whether they are there. By host: somebody is. */
static void ask_whole(struct cluster *c, int64_t deadline_ns, bool *there)
{
    struct bus_calls *calls = bus_calls_new(c->bus);
    struct text q = {.fd = -1};
    struct bus_reply reply;
    char subject[CLUSTER_SUBJECT];
    question_begin(&q, CLUSTER_HELLO);
    for (size_t i = 0; i < c->roster.n_hosts; i++)
        for (size_t k = 0; k < c->roster.hosts[i].n_nodes && c->roster.hosts[i].n_snips; k++)
            if (!cluster_subject_of(c->name, c->roster.hosts[i].nodes[k], subject, NULL))
                bus_call(calls, subject, q.v, q.n, deadline_ns, i);
    while (bus_calls_next(calls, &reply)) {
        there[reply.tag] |= !reply.code;
        bus_reply_free(&reply);
    }
    bus_calls_free(calls);
    text_fini(&q);
}

void cluster_use_snips(struct cluster *c, bool always, int64_t deadline_ns)
{
    int64_t patience_ns = time_monotonic_ns() + WHOLE_NS;
    bool *there = mem_zalloc((c->roster.n_hosts + 1) * sizeof *there);
    if (!always)
        ask_whole(c, deadline_ns < patience_ns ? deadline_ns : patience_ns, there);
    for (size_t i = 0; i < c->roster.n_hosts; i++)
        if (!there[i] && roster_use_snip(&c->roster, i))
            show_nodes(c, i);
    free(there);
}
