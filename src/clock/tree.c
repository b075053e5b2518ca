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
struct heap_entry {
    struct cost cost;
    size_t host;
};

/* The usable pairs as edges between hosts, and the best ways from one host to the others. */
struct ways {
    const struct clock_net *net;
    size_t n, *first; /* edges of host h: first[h] .. first[h + 1] */
    struct edge *edges;
    struct cost *cost;
    size_t *via; /* pair that leads to the host on the best way */
    bool *done;
    VEC(struct heap_entry) heap;
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

static struct cost pair_cost(const struct net_pair *p)
{
    return (struct cost){p->out.category == CLOCK_ONE_SIDED, p->width};
}

static void ways_init(struct ways *w, const struct clock_net *net)
{
    *w = (struct ways){.net = net, .n = net->hosts.n};
    w->first = mem_zalloc((w->n + 2) * sizeof *w->first);
    w->cost = mem_zalloc((w->n + 1) * sizeof *w->cost);
    w->via = mem_zalloc((w->n + 1) * sizeof *w->via);
    w->done = mem_zalloc((w->n + 1) * sizeof *w->done);
    size_t edges = 0;
    for (size_t i = 0; i < net->pairs.n; i++)
        if (net->pairs.v[i].usable) {
            w->first[net->pairs.v[i].out.a + 2]++;
            w->first[net->pairs.v[i].out.b + 2]++;
            edges += 2;
        }
    for (size_t h = 0; h < w->n; h++)
        w->first[h + 2] += w->first[h + 1];
    w->edges = mem_alloc((edges + 1) * sizeof *w->edges);
    for (size_t i = 0; i < net->pairs.n; i++)
        if (net->pairs.v[i].usable) {
            size_t a = net->pairs.v[i].out.a, b = net->pairs.v[i].out.b;
            w->edges[w->first[a + 1]++] = (struct edge){b, i};
            w->edges[w->first[b + 1]++] = (struct edge){a, i};
        }
}

static void ways_fini(struct ways *w)
{
    free(w->first);
    free(w->edges);
    free(w->cost);
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

/* Best ways from `root` to every host of its island (Dijkstra); fills reached, cost, via. */
static void best_ways(struct ways *w, size_t root)
{
    for (size_t i = 0; i < w->n; i++) {
        w->cost[i] = UNREACHED;
        w->done[i] = false;
    }
    w->reached.n = 0;
    w->cost[root] = (struct cost){0, 0};
    heap_push(w, (struct heap_entry){w->cost[root], root});
    while (w->heap.n) {
        struct heap_entry e = heap_pop(w);
        if (w->done[e.host])
            continue;
        w->done[e.host] = true;
        vec_push(&w->reached, e.host);
        for (size_t k = w->first[e.host]; k < w->first[e.host + 1]; k++) {
            const struct edge *edge = &w->edges[k];
            struct cost cost = cost_add(e.cost, pair_cost(&w->net->pairs.v[edge->pair]));
            if (cheaper(cost, w->cost[edge->to])) {
                w->cost[edge->to] = cost;
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

static size_t degree(const struct ways *w, size_t h)
{
    return w->first[h + 1] - w->first[h];
}

/* The host of the island around `member` with the least sum of errors; of equals the one added first. In huge dense
 * islands only the best connected hosts are tried. */
static size_t choose_reference(struct ways *w, size_t member)
{
    best_ways(w, member);
    size_t n = w->reached.n, edges = 1, tried = 0, best = member;
    size_t *hosts = mem_alloc(n * sizeof *hosts);
    memcpy(hosts, w->reached.v, n * sizeof *hosts);
    for (size_t i = 0; i < n; i++)
        edges += degree(w, hosts[i]);
    size_t affordable = (size_t)(WORK_LIMIT / (double)(edges + n)) + 16, threshold = 0;
    while (threshold < w->n) { /* the least degree of which few enough hosts remain */
        size_t count = 0;
        for (size_t i = 0; i < n; i++)
            count += degree(w, hosts[i]) >= threshold;
        if (count <= affordable)
            break;
        threshold++;
    }
    struct cost least = UNREACHED;
    for (size_t i = 0; i < n; i++) {
        if (degree(w, hosts[i]) < threshold && tried + (n - i) > 1)
            continue;
        best_ways(w, hosts[i]);
        struct cost sum = total(w);
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

static void plant(struct clock_net *net, struct ways *w, size_t reference)
{
    best_ways(w, reference);
    size_t island = net->islands.n;
    vec_push(&net->islands, ((struct net_island){reference, w->reached.n}));
    for (size_t i = 0; i < w->reached.n; i++) {
        size_t h = w->reached.v[i];
        struct clock_map *m = &net->hosts.v[h].map;
        *m = (struct clock_map){
            .host = h, .reference = reference, .predecessor = -1, .category = CLOCK_REFERENCE, .island = island};
        if (h != reference) {
            const struct clock_pair *p = &net->pairs.v[w->via[h]].out;
            m->predecessor = (int64_t)(p->a == h ? p->b : p->a);
            int before = net->hosts.v[m->predecessor].map.category;
            m->category = before > p->category ? before : p->category;
        } else if (w->reached.n == 1 && net->hosts.n > 1) {
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

struct island_choice {
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
    struct ways w;
    VEC(struct island_choice) islands = {0};
    ways_init(&w, net);
    bool *seen = mem_zalloc(w.n + 1);
    size_t main_island = 0;
    for (size_t h = 0; h < w.n; h++) {
        if (seen[h])
            continue;
        struct island_choice c = {choose_reference(&w, h), 0};
        best_ways(&w, c.reference);
        c.hosts = w.reached.n;
        for (size_t i = 0; i < w.reached.n; i++)
            seen[w.reached.v[i]] = true;
        if (wanted < w.n && w.done[wanted])
            c = (struct island_choice){wanted, w.n + 1}; /* its island comes first */
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
    return 0;
}
