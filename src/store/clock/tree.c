/* SPDX-License-Identifier: MIT */
/* Islands, references and the tree of best pairs. The weight of an edge is its corridor's mean error in ns; pairs that
 * messages bound on one side only are used if nothing else connects. Hosts that are trusted together have an additional
 * node between them, half of their error away from each, so that a thousand of them have a thousand edges. The
 * reference of an island is the host with the least sum of errors to all others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "clock/net.h"

#define WORK_LIMIT 3e8 /* limit of edge visits for the choice of a reference */

struct cost {
    unsigned weak;
    long double width;
};
struct edge {
    size_t to, pair; /* pair: or net->pairs.n + number of the trust */
    struct cost cost;
};
struct heap_entry {
    struct cost cost;
    size_t node;
};

/* Nodes are the hosts, then the trusts. Edges of node v: first[v] .. first[v + 1]. */
struct roads {
    const struct clock_net *net;
    size_t n, hosts, *first;
    struct edge *edges;
};

/* Best paths from one host to the others. */
struct ways {
    const struct roads *roads;
    struct cost *cost;
    size_t *from, *via; /* node before on the best path, and the edge's pair */
    bool *done;
    VEC(struct heap_entry) heap;
    VEC(size_t) reached; /* hosts, in order of cost */
};

static bool cheaper(struct cost a, struct cost b)
{
    return a.weak != b.weak ? a.weak < b.weak : a.width < b.width;
}

static struct cost cost_add(struct cost a, struct cost b)
{
    return (struct cost){a.weak + b.weak, a.width + b.width};
}

static void add_edge(struct roads *r, size_t from, size_t to, size_t pair, struct cost cost)
{
    r->edges[r->first[from + 1]++] = (struct edge){to, pair, cost};
}

static void count_edges(struct roads *r, size_t a, size_t b)
{
    r->first[a + 2]++;
    r->first[b + 2]++;
}

static void roads_init(struct roads *r, const struct clock_net *net)
{
    *r = (struct roads){.net = net, .n = net->hosts.n + net->trust.n, .hosts = net->hosts.n};
    r->first = mem_zalloc((r->n + 3) * sizeof *r->first);
    for (size_t i = 0; i < net->pairs.n; i++)
        if (net->pairs.v[i].usable)
            count_edges(r, net->pairs.v[i].out.a, net->pairs.v[i].out.b);
    for (size_t k = 0; k < net->trust.n; k++)
        for (size_t i = 0; i < net->trust.v[k].hosts.n; i++)
            count_edges(r, net->trust.v[k].hosts.v[i], r->hosts + k);
    for (size_t v = 0; v < r->n; v++)
        r->first[v + 2] += r->first[v + 1];
    r->edges = mem_alloc((r->first[r->n + 1] + 1) * sizeof *r->edges);
    for (size_t i = 0; i < net->pairs.n; i++) {
        const struct net_pair *p = &net->pairs.v[i];
        struct cost cost = {p->out.category == CLOCK_ONE_SIDED, p->width};
        if (p->usable) {
            add_edge(r, p->out.a, p->out.b, i, cost);
            add_edge(r, p->out.b, p->out.a, i, cost);
        }
    }
    for (size_t k = 0; k < net->trust.n; k++)
        for (size_t i = 0; i < net->trust.v[k].hosts.n; i++) {
            struct cost cost = {0, (long double)net->trust.v[k].error / 2};
            add_edge(r, net->trust.v[k].hosts.v[i], r->hosts + k, net->pairs.n + k, cost);
            add_edge(r, r->hosts + k, net->trust.v[k].hosts.v[i], net->pairs.n + k, cost);
        }
}

static void roads_fini(struct roads *r)
{
    free(r->first);
    free(r->edges);
}

static void ways_init(struct ways *w, const struct roads *r)
{
    *w = (struct ways){.roads = r};
    w->cost = mem_zalloc((r->n + 1) * sizeof *w->cost);
    w->from = mem_zalloc((r->n + 1) * sizeof *w->from);
    w->via = mem_zalloc((r->n + 1) * sizeof *w->via);
    w->done = mem_zalloc((r->n + 1) * sizeof *w->done);
}

static void ways_fini(struct ways *w)
{
    free(w->cost);
    free(w->from);
    free(w->via);
    free(w->done);
    vec_free(&w->heap);
    vec_free(&w->reached);
}

static void heap_push(struct ways *w, struct heap_entry e)
{
    vec_push(&w->heap, e);
    size_t i = w->heap.n - 1;
    for (; i && cheaper(e.cost, w->heap.v[(i - 1) / 2].cost); i = (i - 1) / 2)
        w->heap.v[i] = w->heap.v[(i - 1) / 2];
    w->heap.v[i] = e;
}

static struct heap_entry heap_pop(struct ways *w)
{
    struct heap_entry top = w->heap.v[0], e = w->heap.v[--w->heap.n];
    size_t i = 0, n = w->heap.n;
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && cheaper(w->heap.v[child + 1].cost, w->heap.v[child].cost))
            child++;
        if (!cheaper(w->heap.v[child].cost, e.cost))
            break;
        w->heap.v[i] = w->heap.v[child];
    }
    if (n)
        w->heap.v[i] = e;
    return top;
}

static const struct cost UNREACHED = {(unsigned)-1, 0};

/* Best paths from `root` to every host of its island (Dijkstra); fills reached, cost, from, via. */
static void best_ways(struct ways *w, size_t root)
{
    const struct roads *r = w->roads;
    for (size_t i = 0; i < r->n; i++) {
        w->cost[i] = UNREACHED;
        w->done[i] = false;
    }
    w->reached.n = 0;
    w->cost[root] = (struct cost){0, 0};
    heap_push(w, (struct heap_entry){w->cost[root], root});
    while (w->heap.n) {
        struct heap_entry e = heap_pop(w);
        if (w->done[e.node])
            continue;
        w->done[e.node] = true;
        if (e.node < r->hosts)
            vec_push(&w->reached, e.node);
        for (size_t k = r->first[e.node]; k < r->first[e.node + 1]; k++) {
            const struct edge *edge = &r->edges[k];
            struct cost cost = cost_add(e.cost, edge->cost);
            if (cheaper(cost, w->cost[edge->to])) {
                w->cost[edge->to] = cost;
                w->from[edge->to] = e.node;
                w->via[edge->to] = edge->pair;
                heap_push(w, (struct heap_entry){cost, edge->to});
            }
        }
    }
}

static struct cost total(const struct ways *w)
{
    struct cost sum = {0, 0};
    for (size_t i = 0; i < w->reached.n; i++)
        sum = cost_add(sum, w->cost[w->reached.v[i]]);
    return sum;
}

static size_t degree(const struct roads *r, size_t h)
{
    return r->first[h + 1] - r->first[h];
}

/* Candidates for the reference of one island. */
struct tries {
    const struct roads *roads;
    size_t *hosts, n;
    struct cost *sums;
};
enum { TRIES_AT_ONCE = 16 };

static void try_some(void *arg, size_t part)
{
    struct tries *t = arg;
    struct ways w;
    ways_init(&w, t->roads);
    for (size_t i = part * TRIES_AT_ONCE; i < t->n && i < (part + 1) * TRIES_AT_ONCE; i++) {
        best_ways(&w, t->hosts[i]);
        t->sums[i] = total(&w);
    }
    ways_fini(&w);
}

/* Limits the candidates in huge dense islands to the best connected hosts, at least one. */
static void leave_out_some(struct tries *t)
{
    size_t edges = 1, threshold = 0, most = 0, n = 0;
    for (size_t i = 0; i < t->n; i++) {
        edges += degree(t->roads, t->hosts[i]);
        most = degree(t->roads, t->hosts[i]) > most ? degree(t->roads, t->hosts[i]) : most;
    }
    size_t affordable = (size_t)(WORK_LIMIT / (double)(edges + t->n)) + 16;
    for (; threshold < most; threshold++) { /* least degree that leaves few enough hosts */
        size_t count = 0;
        for (size_t i = 0; i < t->n; i++)
            count += degree(t->roads, t->hosts[i]) >= threshold;
        if (count <= affordable)
            break;
    }
    for (size_t i = 0; i < t->n && n < affordable; i++)
        if (degree(t->roads, t->hosts[i]) >= threshold)
            t->hosts[n++] = t->hosts[i];
    t->n = n;
}

static int compare_numbers(const void *a, const void *b)
{
    const size_t *p = a, *q = b;
    return (*p > *q) - (*p < *q);
}

/* Returns, of the hosts reached, the one with the least sum of errors; of equals the first added. */
static size_t choose_reference(const struct ways *w)
{
    struct tries t = {.roads = w->roads, .n = w->reached.n};
    t.hosts = mem_alloc(t.n * sizeof *t.hosts);
    memcpy(t.hosts, w->reached.v, t.n * sizeof *t.hosts);
    qsort(t.hosts, t.n, sizeof *t.hosts, compare_numbers);
    leave_out_some(&t);
    t.sums = mem_alloc(t.n * sizeof *t.sums);
    pool_run((t.n + TRIES_AT_ONCE - 1) / TRIES_AT_ONCE, 0, try_some, &t);
    size_t best = 0;
    for (size_t i = 1; i < t.n; i++)
        if (cheaper(t.sums[i], t.sums[best]))
            best = i;
    size_t host = t.hosts[best];
    free(t.hosts);
    free(t.sums);
    return host;
}

/* Category of an isolated host: the defect of its best pair. */
static int lonely_category(const struct clock_net *net, size_t host)
{
    int category = CLOCK_ABSENT;
    for (size_t i = 0; i < net->pairs.n; i++) {
        const struct clock_pair *p = &net->pairs.v[i].out;
        if ((p->a == host || p->b == host) && p->category < category)
            category = p->category;
    }
    return category;
}

/* Sets the path to host h: through its neighbour, by their messages or by trust. */
static void settle(struct clock_net *net, const struct ways *w, size_t h)
{
    struct net_host *host = &net->hosts.v[h];
    size_t edge = w->via[h], before = w->from[h];
    bool by_trust = edge >= net->pairs.n;
    host->trusted_ns = by_trust ? net->trust.v[edge - net->pairs.n].error : -1;
    if (by_trust)
        before = w->from[before];
    int category = by_trust ? CLOCK_TRUSTED : net->pairs.v[edge].out.category,
        so_far = net->hosts.v[before].map.category;
    host->map.predecessor = (int64_t)before;
    host->map.category = so_far > category ? so_far : category;
    host->trusting = by_trust || net->hosts.v[before].trusting;
}

static void plant(struct clock_net *net, struct ways *w, size_t reference)
{
    best_ways(w, reference);
    size_t island = net->islands.n;
    vec_push(&net->islands, ((struct net_island){reference, w->reached.n}));
    for (size_t i = 0; i < w->reached.n; i++) {
        size_t h = w->reached.v[i];
        struct net_host *host = &net->hosts.v[h];
        host->map = (struct clock_map){
            .host = h, .reference = reference, .predecessor = -1, .category = CLOCK_REFERENCE, .island = island};
        host->trusted_ns = -1;
        host->trusting = false;
        if (h != reference)
            settle(net, w, h);
        else if (w->reached.n == 1 && island)
            host->map.category = lonely_category(net, h);
        vec_push(&net->order, h);
    }
}

/* SIZE_MAX: none is named. */
static int named_reference(const struct clock_net *net, size_t *out, struct err *e)
{
    *out = SIZE_MAX;
    if (!net->options.reference)
        return 0;
    for (size_t h = 0; h < net->hosts.n; h++)
        if (!strcmp(net->hosts.v[h].name, net->options.reference))
            *out = h;
    return *out < SIZE_MAX || net->options.some_named ? 0 : clock_net_no_such_host(net, net->options.reference, e);
}

struct island_choice {
    size_t reference, hosts;
};

int clock_tree_build(struct clock_net *net, struct err *e)
{
    size_t wanted;
    int rc = named_reference(net, &wanted, e);
    if (rc)
        return rc;
    struct roads r;
    struct ways w;
    VEC(struct island_choice) islands = {0};
    roads_init(&r, net);
    ways_init(&w, &r);
    bool *seen = mem_zalloc(r.hosts + 1);
    size_t main_island = 0;
    for (size_t h = 0; h < r.hosts; h++) {
        if (seen[h])
            continue;
        best_ways(&w, h);
        for (size_t i = 0; i < w.reached.n; i++)
            seen[w.reached.v[i]] = true;
        bool named = wanted < r.hosts && w.done[wanted] && (w.reached.n > 1 || !net->options.some_named);
        /* The island of the named reference comes first. */
        struct island_choice c = {named ? wanted : choose_reference(&w), named ? r.hosts + 1 : w.reached.n};
        vec_push(&islands, c);
        if (c.hosts > islands.v[main_island].hosts)
            main_island = islands.n - 1;
    }
    net->islands.n = net->order.n = 0;
    if (islands.n)
        plant(net, &w, islands.v[main_island].reference);
    for (size_t i = 0; i < islands.n; i++)
        if (i != main_island)
            plant(net, &w, islands.v[i].reference);
    vec_free(&islands);
    free(seen);
    ways_fini(&w);
    roads_fini(&r);
    return 0;
}

/* Writes "a, b, c, …": hosts of the island (SIZE_MAX: all hosts), without `but`. */
static void name_hosts(const struct clock_net *net, size_t island, size_t but, struct text *out)
{
    enum { MOST_NAMES = 16 };
    size_t n = 0;
    for (size_t h = 0; h < net->hosts.n; h++) {
        if (h == but || (island != SIZE_MAX && net->hosts.v[h].map.island != island))
            continue;
        if (n < MOST_NAMES)
            text_printf(out, "%s%s", n ? ", " : "", net->hosts.v[h].name);
        n++;
    }
    if (n > MOST_NAMES)
        text_printf(out, " and %zu more", n - MOST_NAMES);
}

int clock_net_relates(const struct clock_net *net, size_t host, struct err *e)
{
    if (!net->options.reference || !net->islands.n || net->hosts.n < 2)
        return 0;
    size_t reference = net->islands.v[0].reference;
    if (host == SIZE_MAX ? net->islands.v[0].hosts > 1 : net->hosts.v[host].map.island == 0)
        return 0;
    struct text asked = {.fd = -1}, others = {.fd = -1};
    if (host == SIZE_MAX) {
        name_hosts(net, SIZE_MAX, reference, &asked);
    } else {
        text_puts(&asked, net->hosts.v[host].name);
        name_hosts(net, net->hosts.v[host].map.island, SIZE_MAX, &others);
    }
    int rc = err_set(e, ERR_ARG, "--reference %s: no message relates its clock to %s %s; give %s%s",
        net->hosts.v[reference].name, host == SIZE_MAX && net->hosts.n > 2 ? "those of" : "that of", text_cstr(&asked),
        host == SIZE_MAX ? "another host, or none" : "one of: ", text_cstr(&others));
    text_fini(&asked);
    text_fini(&others);
    return rc;
}
