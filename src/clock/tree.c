/* Islands, references and the tree of best pairs: an edge weighs what its corridor costs (mean error in ns); pairs that
 * messages bound on one side only are crossed when nothing else connects. The reference of an island is the host with
 * the least sum of errors to all others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock/net.h"

#define WORK_LIMIT 3e8 /* edge visits spent on the choice of a reference */

struct cost {
    unsigned weak;
    long double width;
};
struct edge {
    size_t to, pair;
};
struct entry {
    struct cost cost;
    size_t host;
};

struct graph {
    const struct clock_net *net;
    size_t n, *first; /* edges of host h: first[h] .. first[h + 1] */
    struct edge *edges;
    struct cost *cost;
    size_t *via; /* pair that leads to the host on the best way */
    bool *done;
    VEC(struct entry) heap;
    VEC(size_t) reached; /* in order of cost */
};

static bool cheaper(struct cost a, struct cost b)
{
    return a.weak != b.weak ? a.weak < b.weak : a.width < b.width;
}

static struct cost cost_add(struct cost a, struct cost b)
{
    return (struct cost){a.weak + b.weak, a.width + b.width};
}

static struct cost pair_cost(const struct pair *p)
{
    return (struct cost){p->out.category == CLOCK_ONE_SIDED, p->width};
}

static void graph_init(struct graph *g, const struct clock_net *net)
{
    *g = (struct graph){.net = net, .n = net->hosts.n};
    g->first = mem_zalloc((g->n + 2) * sizeof *g->first);
    g->cost = mem_zalloc((g->n + 1) * sizeof *g->cost);
    g->via = mem_zalloc((g->n + 1) * sizeof *g->via);
    g->done = mem_zalloc((g->n + 1) * sizeof *g->done);
    size_t edges = 0;
    for (size_t i = 0; i < net->pairs.n; i++)
        if (net->pairs.v[i].usable) {
            g->first[net->pairs.v[i].out.a + 2]++;
            g->first[net->pairs.v[i].out.b + 2]++;
            edges += 2;
        }
    for (size_t h = 0; h < g->n; h++)
        g->first[h + 2] += g->first[h + 1];
    g->edges = mem_alloc((edges + 1) * sizeof *g->edges);
    for (size_t i = 0; i < net->pairs.n; i++)
        if (net->pairs.v[i].usable) {
            size_t a = net->pairs.v[i].out.a, b = net->pairs.v[i].out.b;
            g->edges[g->first[a + 1]++] = (struct edge){b, i};
            g->edges[g->first[b + 1]++] = (struct edge){a, i};
        }
}

static void graph_fini(struct graph *g)
{
    free(g->first);
    free(g->edges);
    free(g->cost);
    free(g->via);
    free(g->done);
    vec_free(&g->heap);
    vec_free(&g->reached);
}

static void heap_push(struct graph *g, struct entry e)
{
    vec_push(&g->heap, e);
    size_t i = g->heap.n - 1;
    for (; i && cheaper(e.cost, g->heap.v[(i - 1) / 2].cost); i = (i - 1) / 2)
        g->heap.v[i] = g->heap.v[(i - 1) / 2];
    g->heap.v[i] = e;
}

static struct entry heap_pop(struct graph *g)
{
    struct entry top = g->heap.v[0], e = g->heap.v[--g->heap.n];
    size_t i = 0, n = g->heap.n;
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && cheaper(g->heap.v[child + 1].cost, g->heap.v[child].cost))
            child++;
        if (!cheaper(g->heap.v[child].cost, e.cost))
            break;
        g->heap.v[i] = g->heap.v[child];
    }
    if (n)
        g->heap.v[i] = e;
    return top;
}

static const struct cost UNREACHED = {(unsigned)-1, 0};

/* Best ways from `root` to every host of its island (Dijkstra); fills reached, cost, via. */
static void best_ways(struct graph *g, size_t root)
{
    for (size_t i = 0; i < g->n; i++) {
        g->cost[i] = UNREACHED;
        g->done[i] = false;
    }
    g->reached.n = 0;
    g->cost[root] = (struct cost){0, 0};
    heap_push(g, (struct entry){g->cost[root], root});
    while (g->heap.n) {
        struct entry e = heap_pop(g);
        if (g->done[e.host])
            continue;
        g->done[e.host] = true;
        vec_push(&g->reached, e.host);
        for (size_t k = g->first[e.host]; k < g->first[e.host + 1]; k++) {
            const struct edge *edge = &g->edges[k];
            struct cost cost = cost_add(e.cost, pair_cost(&g->net->pairs.v[edge->pair]));
            if (cheaper(cost, g->cost[edge->to])) {
                g->cost[edge->to] = cost;
                g->via[edge->to] = edge->pair;
                heap_push(g, (struct entry){cost, edge->to});
            }
        }
    }
}

static struct cost total(const struct graph *g)
{
    struct cost sum = {0, 0};
    for (size_t i = 0; i < g->reached.n; i++)
        sum = cost_add(sum, g->cost[g->reached.v[i]]);
    return sum;
}

static size_t degree(const struct graph *g, size_t h)
{
    return g->first[h + 1] - g->first[h];
}

/* The host of the island around `member` with the least sum of errors; of equals the one added first. In huge dense
 * islands only the best connected hosts are tried. */
static size_t choose_reference(struct graph *g, size_t member)
{
    best_ways(g, member);
    size_t n = g->reached.n, edges = 1, tried = 0, best = member;
    size_t *hosts = mem_alloc(n * sizeof *hosts);
    memcpy(hosts, g->reached.v, n * sizeof *hosts);
    for (size_t i = 0; i < n; i++)
        edges += degree(g, hosts[i]);
    size_t affordable = (size_t)(WORK_LIMIT / (double)(edges + n)) + 16, threshold = 0;
    while (threshold < g->n) { /* the least degree of which few enough hosts remain */
        size_t count = 0;
        for (size_t i = 0; i < n; i++)
            count += degree(g, hosts[i]) >= threshold;
        if (count <= affordable)
            break;
        threshold++;
    }
    struct cost least = UNREACHED;
    for (size_t i = 0; i < n; i++) {
        if (degree(g, hosts[i]) < threshold && tried + (n - i) > 1)
            continue;
        best_ways(g, hosts[i]);
        struct cost sum = total(g);
        tried++;
        if (cheaper(sum, least) || (!cheaper(least, sum) && hosts[i] < best)) {
            least = sum;
            best = hosts[i];
        }
    }
    free(hosts);
    return best;
}

/* A host alone: what the best of its pairs lacks. */
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

static void plant(struct clock_net *net, struct graph *g, size_t reference)
{
    best_ways(g, reference);
    size_t island = net->islands.n;
    vec_push(&net->islands, ((struct island){reference, g->reached.n}));
    for (size_t i = 0; i < g->reached.n; i++) {
        size_t h = g->reached.v[i];
        struct clock_map *m = &net->hosts.v[h].map;
        *m = (struct clock_map){
            .host = h, .reference = reference, .predecessor = -1, .category = CLOCK_REFERENCE, .island = island};
        if (h != reference) {
            const struct clock_pair *p = &net->pairs.v[g->via[h]].out;
            m->predecessor = (int64_t)(p->a == h ? p->b : p->a);
            int before = net->hosts.v[m->predecessor].map.category;
            m->category = before > p->category ? before : p->category;
        } else if (g->reached.n == 1 && net->hosts.n > 1) {
            m->category = lonely_category(net, h);
        }
        vec_push(&net->order, h);
    }
}

static int named_reference(const struct clock_net *net, size_t *out, struct err *e)
{
    struct text names = {.fd = -1};
    for (size_t i = 0; i < net->hosts.n; i++) {
        if (!strcmp(net->hosts.v[i].name, net->options.reference)) {
            *out = i;
            text_fini(&names);
            return 0;
        }
        if (i < 32)
            text_printf(&names, "%s%s", i ? ", " : "", net->hosts.v[i].name);
    }
    int rc = err_set(e, ERR_ARG, "no host is named %s; the hosts are: %s%s", net->options.reference, text_cstr(&names),
        net->hosts.n > 32 ? ", …" : "");
    text_fini(&names);
    return rc;
}

struct candidate {
    size_t reference, hosts;
};

int tree_build(struct clock_net *net, struct err *e)
{
    size_t wanted = SIZE_MAX;
    if (net->options.reference) {
        int rc = named_reference(net, &wanted, e);
        if (rc)
            return rc;
    }
    struct graph g;
    VEC(struct candidate) islands = {0};
    graph_init(&g, net);
    bool *seen = mem_zalloc(g.n + 1);
    size_t main_island = 0;
    for (size_t h = 0; h < g.n; h++) {
        if (seen[h])
            continue;
        struct candidate c = {choose_reference(&g, h), 0};
        best_ways(&g, c.reference);
        c.hosts = g.reached.n;
        for (size_t i = 0; i < g.reached.n; i++)
            seen[g.reached.v[i]] = true;
        if (wanted < g.n && g.done[wanted])
            c = (struct candidate){wanted, g.n + 1}; /* its island comes first */
        vec_push(&islands, c);
        if (c.hosts > islands.v[main_island].hosts)
            main_island = islands.n - 1;
    }
    net->islands.n = net->order.n = 0;
    if (islands.n)
        plant(net, &g, islands.v[main_island].reference);
    for (size_t i = 0; i < islands.n; i++)
        if (i != main_island)
            plant(net, &g, islands.v[i].reference);
    vec_free(&islands);
    free(seen);
    graph_fini(&g);
    return 0;
}
