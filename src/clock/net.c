#include <math.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/pool.h"
#include "clock/net.h"

const char *clock_category_name(int category)
{
    static const char *const names[] = {"reference", "accurate", "approximate", "one-sided", "one-way", "absent"};
    return category >= 0 && category <= CLOCK_ABSENT ? names[category] : "unknown";
}

struct clock_options clock_defaults(void)
{
    return (struct clock_options){.drift_prior_ppm = 200, .min_drift = 0.5, .max_drift = 2};
}

struct clock_net *clock_net_new(const struct clock_options *o)
{
    struct clock_net *net = mem_zalloc(sizeof *net);
    net->options = o ? *o : clock_defaults();
    if (net->options.reference)
        net->options.reference = arena_strdup(&net->arena, net->options.reference);
    return net;
}

void clock_net_free(struct clock_net *net)
{
    if (!net)
        return;
    for (size_t i = 0; i < net->hosts.n; i++)
        host_reset(&net->hosts.v[i]);
    for (size_t i = 0; i < net->pairs.n; i++) {
        pair_reset(&net->pairs.v[i]);
        vec_free(&net->pairs.v[i].sent);
        vec_free(&net->pairs.v[i].received);
    }
    vec_free(&net->hosts);
    vec_free(&net->pairs);
    vec_free(&net->islands);
    vec_free(&net->order);
    free(net->published);
    map_fini(&net->pair_of);
    arena_fini(&net->arena);
    free(net);
}

static void host_extend(struct net_host *h, int64_t t)
{
    h->begin = !h->has_span || t < h->begin ? t : h->begin;
    h->end = !h->has_span || t > h->end ? t : h->end;
    h->has_span = true;
}

size_t clock_net_host(struct clock_net *net, const char *name, int64_t begin, int64_t end)
{
    struct net_host h = {.name = arena_strdup(&net->arena, name)};
    if (begin <= end) {
        host_extend(&h, clamp64(begin, -CLOCK_TIME_LIMIT, CLOCK_TIME_LIMIT));
        host_extend(&h, clamp64(end, -CLOCK_TIME_LIMIT, CLOCK_TIME_LIMIT));
    }
    h.map = (struct clock_map){
        .host = net->hosts.n, .reference = net->hosts.n, .predecessor = -1, .category = CLOCK_ABSENT};
    vec_push(&net->hosts, h);
    net->solved = false;
    return net->hosts.n - 1;
}

static struct net_pair *pair_of(struct clock_net *net, size_t a, size_t b)
{
    bool fresh;
    uint64_t *at = map_put(&net->pair_of, (uint64_t)a << 32 | b, &fresh);
    if (fresh) {
        vec_push(&net->pairs, ((struct net_pair){.out = {.a = a, .b = b, .category = CLOCK_ABSENT}}));
        *at = net->pairs.n;
    }
    return &net->pairs.v[*at - 1];
}

static bool in_range(int64_t t)
{
    return t >= -CLOCK_TIME_LIMIT && t <= CLOCK_TIME_LIMIT;
}

void clock_net_message(struct clock_net *net, size_t a, size_t b, int64_t sent, int64_t received)
{
    if (a == b) {
        net->loopback++;
        return;
    }
    if (!in_range(sent) || !in_range(received)) {
        net->dropped++;
        return;
    }
    net->solved = false;
    if (a < b) {
        struct net_pair *p = pair_of(net, a, b);
        vec_push(&p->sent, ((struct net_message){sent, received}));
    } else {
        struct net_pair *p = pair_of(net, b, a);
        vec_push(&p->received, ((struct net_message){received, sent}));
    }
}

void clock_net_same(struct clock_net *net, size_t a, size_t b)
{
    if (a == b)
        return;
    pair_of(net, a < b ? a : b, a < b ? b : a)->same = true;
    net->solved = false;
}

static int compare_pairs(const void *x, const void *y)
{
    const struct net_pair *p = x, *q = y;
    return order_of(p->out.a, q->out.a) ?: order_of(p->out.b, q->out.b);
}

static void sort_pairs(struct clock_net *net)
{
    if (net->pairs.n)
        qsort(net->pairs.v, net->pairs.n, sizeof *net->pairs.v, compare_pairs);
    for (size_t i = 0; i < net->pairs.n; i++)
        *map_put(&net->pair_of, (uint64_t)net->pairs.v[i].out.a << 32 | net->pairs.v[i].out.b, NULL) = i + 1;
}

static void spans_from_messages(struct clock_net *net)
{
    for (size_t i = 0; i < net->pairs.n; i++) {
        const struct net_pair *p = &net->pairs.v[i];
        for (int k = 0; k < 2; k++) {
            size_t n = k ? p->received.n : p->sent.n;
            const struct net_message *v = k ? p->received.v : p->sent.v;
            for (size_t j = 0; j < n; j++) {
                host_extend(&net->hosts.v[p->out.a], v[j].x);
                host_extend(&net->hosts.v[p->out.b], v[j].y);
            }
        }
    }
}

static void solve_one(void *arg, size_t i)
{
    struct clock_net *net = arg;
    pair_reset(&net->pairs.v[i]);
    pair_solve(net, &net->pairs.v[i]);
    net->published[i] = net->pairs.v[i].out;
}

int clock_net_solve(struct clock_net *net, struct err *e)
{
    const struct clock_options *o = &net->options;
    if (isnan(o->drift_prior_ppm) || o->drift_prior_ppm > 400000)
        return err_set(e, ERR_ARG, "drift prior of %g ppm: give at most 400000, or none", o->drift_prior_ppm);
    sort_pairs(net);
    spans_from_messages(net);
    free(net->published);
    net->published = mem_zalloc((net->pairs.n + 1) * sizeof *net->published);
    pool_run(net->pairs.n, net->pairs.n < 16 ? 1 : 0, solve_one, net);
    int rc = tree_build(net, e);
    if (rc)
        return rc;
    maps_build(net);
    net->solved = true;
    return 0;
}

size_t clock_net_hosts(const struct clock_net *net)
{
    return net->hosts.n;
}

const char *clock_net_name(const struct clock_net *net, size_t host)
{
    return net->hosts.v[host].name;
}

size_t clock_net_pairs(const struct clock_net *net, const struct clock_pair **out)
{
    *out = net->published;
    return net->published ? net->pairs.n : 0;
}

const struct clock_map *clock_net_map(const struct clock_net *net, size_t host)
{
    return &net->hosts.v[host].map;
}
