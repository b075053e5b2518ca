/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/pool.h"
#include "clock/net.h"

const char *clock_category_name(int category)
{
    static const char *const names[] = {
        "reference", "accurate", "trusted", "approximate", "one-sided", "one-way", "absent"};
    return category >= 0 && category <= CLOCK_ABSENT ? names[category] : "unknown";
}

struct clock_options clock_defaults(void)
{
    return (struct clock_options){.drift_prior_ppm = 300, .min_drift = 0.5, .max_drift = 2};
}

struct clock_net *clock_net_new(const struct clock_options *o)
{
    struct clock_net *net = mem_zalloc(sizeof *net);
    net->options = o ? *o : clock_defaults();
    struct clock_options *own = &net->options;
    if (own->reference)
        own->reference = arena_strdup(&net->arena, own->reference);
    struct clock_trust *trust = arena_new(&net->arena, struct clock_trust, own->n_trust + 1);
    for (size_t i = 0; i < own->n_trust; i++)
        trust[i] = (struct clock_trust){arena_strdup(&net->arena, own->trust[i].hosts), own->trust[i].error_ns};
    own->trust = trust;
    return net;
}

uint64_t clock_options_hash(const struct clock_options *o)
{
    double v[3] = {o->drift_prior_ppm, o->min_drift, o->max_drift};
    return map_hash(v, sizeof v);
}

void clock_net_free(struct clock_net *net)
{
    if (!net)
        return;
    for (size_t i = 0; i < net->hosts.n; i++)
        clock_host_reset(&net->hosts.v[i]);
    for (size_t i = 0; i < net->pairs.n; i++) {
        clock_pair_reset(&net->pairs.v[i]);
        clock_keep_fini(&net->pairs.v[i].messages);
    }
    clock_trust_reset(net);
    vec_free(&net->trust);
    vec_free(&net->conflicts);
    vec_free(&net->hosts);
    vec_free(&net->pairs);
    vec_free(&net->islands);
    vec_free(&net->order);
    free(net->published);
    map_fini(&net->pair_of);
    arena_fini(&net->arena);
    free(net);
}

size_t clock_net_host(struct clock_net *net, const char *name, int64_t begin, int64_t end)
{
    struct net_host h = {.name = arena_strdup(&net->arena, name)};
    if (begin <= end) {
        clock_span_extend(&h.trace, clamp64(begin, -CLOCK_TIME_LIMIT, CLOCK_TIME_LIMIT));
        clock_span_extend(&h.trace, clamp64(end, -CLOCK_TIME_LIMIT, CLOCK_TIME_LIMIT));
    }
    h.map = (struct clock_map){
        .host = net->hosts.n, .reference = net->hosts.n, .predecessor = -1, .category = CLOCK_ABSENT};
    vec_push(&net->hosts, h);
    net->fitted = false;
    return net->hosts.n - 1;
}

static struct net_pair *pair_of(struct clock_net *net, size_t a, size_t b)
{
    bool fresh;
    uint64_t *at = map_put(&net->pair_of, (uint64_t)a << 32 | b, &fresh);
    if (fresh) {
        vec_push(&net->pairs, ((struct net_pair){.out = {.a = a, .b = b, .category = CLOCK_ABSENT}}));
        clock_keep_init(&net->pairs.v[net->pairs.n - 1].messages, net->options.drift_prior_ppm);
        *at = net->pairs.n;
    }
    return &net->pairs.v[*at - 1];
}

void clock_net_message(struct clock_net *net, size_t a, size_t b, int64_t sent, int64_t received)
{
    if (a == b) {
        net->loopback++;
        return;
    }
    if (!clock_keep_in_range(sent) || !clock_keep_in_range(received)) {
        net->dropped++;
        return;
    }
    net->fitted = false;
    if (a < b)
        clock_tell(&pair_of(net, a, b)->messages, true, sent, received);
    else
        clock_tell(&pair_of(net, b, a)->messages, false, sent, received);
}

void clock_net_messages(
    struct clock_net *net, size_t a, size_t b, void (*tell)(void *arg, struct clock_told *), void *arg)
{
    struct net_pair *p = pair_of(net, a, b);
    p->tell = tell;
    p->tell_arg = arg;
    net->fitted = false;
}

void clock_net_same(struct clock_net *net, size_t a, size_t b)
{
    if (a == b)
        return;
    pair_of(net, a < b ? a : b, a < b ? b : a)->same = true;
    net->fitted = false;
}

static void carry_span(struct clock_net *net, size_t host, const struct net_host *from)
{
    struct net_host *h = &net->hosts.v[host];
    if (from->trace.known) {
        clock_span_extend(&h->trace, from->trace.begin);
        clock_span_extend(&h->trace, from->trace.end);
    }
}

void clock_net_carry(
    struct clock_net *net, size_t a, size_t b, const struct clock_net *from, size_t from_a, size_t from_b)
{
    const struct net_pair *found = clock_net_pair_between(from, from_a, from_b);
    if (a == b || !found || found->same || (a < b) != (from_a < from_b))
        return;
    struct net_pair *p = pair_of(net, a < b ? a : b, a < b ? b : a);
    if (p->same || p->tell || p->carried || p->messages.span_a.known)
        return;
    size_t low = p->out.a, high = p->out.b;
    p->out = found->out;
    p->out.a = low;
    p->out.b = high;
    p->carried = true;
    p->against_prior = found->against_prior;
    p->outliers = found->outliers;
    p->usable = found->usable;
    p->width = found->width;
    if (found->usable)
        clock_curve_copy(&found->curve, &p->curve);
    carry_span(net, a, &from->hosts.v[from_a]);
    carry_span(net, b, &from->hosts.v[from_b]);
    net->fitted = false;
}

static int compare_pairs(const void *x, const void *y)
{
    const struct net_pair *p = x, *q = y;
    return order_of(p->out.a, q->out.a) ?: order_of(p->out.b, q->out.b);
}

static void number_pairs(struct clock_net *net)
{
    map_fini(&net->pair_of);
    net->pair_of = (struct map){0};
    for (size_t i = 0; i < net->pairs.n; i++)
        *map_put(&net->pair_of, (uint64_t)net->pairs.v[i].out.a << 32 | net->pairs.v[i].out.b, NULL) = i + 1;
}

/* Drops pairs without messages: common flows of two hosts need not contain a packet that both saw. */
static void drop_silent_pairs(struct clock_net *net)
{
    size_t n = 0;
    for (size_t i = 0; i < net->pairs.n; i++)
        if (net->pairs.v[i].same || net->pairs.v[i].out.messages_ab || net->pairs.v[i].out.messages_ba)
            net->pairs.v[n++] = net->pairs.v[i];
    net->pairs.n = n;
}

struct net_pair *clock_net_pair_between(const struct clock_net *net, size_t a, size_t b)
{
    const uint64_t *at = map_find(&net->pair_of, a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a);
    return at ? &net->pairs.v[*at - 1] : NULL;
}

/* Holds messages of a source only while their pair is fitted. */
static void fit_pair(void *arg, size_t i)
{
    struct clock_net *net = arg;
    struct net_pair *p = &net->pairs.v[i];
    struct clock_told all;
    if (p->carried)
        return;
    clock_keep_init(&all, net->options.drift_prior_ppm);
    if (p->tell)
        p->tell(p->tell_arg, &all);
    clock_keep_join(&all, &p->messages);
    clock_keep_settle(&all);
    clock_pair_reset(p);
    p->span_a = all.span_a;
    p->span_b = all.span_b;
    clock_pair_solve(net, p, &all);
    clock_keep_fini(&all);
}

/* Maps of a host cover its trace and its messages. */
static void spans_from_pairs(struct clock_net *net)
{
    for (size_t i = 0; i < net->pairs.n; i++) {
        const struct net_pair *p = &net->pairs.v[i];
        for (int k = 0; k < 2; k++) {
            const struct net_span *s = k ? &p->span_b : &p->span_a;
            struct net_host *h = &net->hosts.v[k ? p->out.b : p->out.a];
            if (s->known) {
                clock_span_extend(&h->trace, s->begin);
                clock_span_extend(&h->trace, s->end);
            }
        }
    }
}

static void fit(struct clock_net *net)
{
    if (net->pairs.n)
        qsort(net->pairs.v, net->pairs.n, sizeof *net->pairs.v, compare_pairs);
    pool_run(net->pairs.n, net->pairs.n < 2 ? 1 : 0, fit_pair, net);
    drop_silent_pairs(net);
    number_pairs(net);
    spans_from_pairs(net);
    free(net->published);
    net->published = mem_alloc((net->pairs.n + 1) * sizeof *net->published);
    for (size_t i = 0; i < net->pairs.n; i++)
        net->published[i] = net->pairs.v[i].out;
    net->fitted = true;
}

int clock_net_solve(struct clock_net *net, struct err *e)
{
    const struct clock_options *o = &net->options;
    if (isnan(o->drift_prior_ppm) || o->drift_prior_ppm > 400000)
        return err_set(e, ERR_ARG, "drift prior of %g ppm: give at most 400000, or none", o->drift_prior_ppm);
    if (!net->fitted)
        fit(net);
    for (size_t i = 0; i < net->hosts.n; i++) {
        net->hosts.v[i].begin = net->hosts.v[i].trace.begin;
        net->hosts.v[i].end = net->hosts.v[i].trace.end;
    }
    int rc = clock_trust_build(net, e);
    if (!rc)
        rc = clock_tree_build(net, e);
    if (!rc)
        clock_maps_build(net);
    return rc;
}

int clock_net_no_such_host(const struct clock_net *net, const char *name, struct err *e)
{
    struct text names = {.fd = -1};
    for (size_t i = 0; i < net->hosts.n && i < 32; i++)
        text_printf(&names, "%s%s", i ? ", " : "", net->hosts.v[i].name);
    int rc = err_set(e, ERR_ARG, "no host is named %s; the hosts are: %s%s", name, text_cstr(&names),
        net->hosts.n > 32 ? ", \u2026" : "");
    text_fini(&names);
    return rc;
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
