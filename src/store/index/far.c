/* SPDX-License-Identifier: MIT */
/* Clocks of hosts, wherever their traces lie: those of one machine are tied to each other, the others are related by
 * messages. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "index/stores.h"

/* ---- two traces of one machine in one boot share a clock ---- */

struct machine {
    const struct index_far_clock *clock;
    size_t host;
};

static int by_clock(const void *a, const void *b)
{
    const struct machine *p = a, *q = b;
    return memcmp(p->clock->uuid, q->clock->uuid, 16) ?: strcmp(p->clock->name, q->clock->name)
        ?: order_of(p->clock->freq, q->clock->freq) ?: order_of(p->host, q->host);
}

static bool same_clock(const struct machine *a, const struct machine *b)
{
    return !memcmp(a->clock->uuid, b->clock->uuid, 16) && !strcmp(a->clock->name, b->clock->name) &&
        a->clock->freq == b->clock->freq;
}

__int128 index_clock_shift(const struct index_far_clock *a, const struct index_far_clock *b)
{
    const __int128 second = 1000000000;
    return ((__int128)b->offset_s - a->offset_s) * second +
        ((__int128)b->offset - a->offset) * second / (__int128)a->freq;
}

/* Messages without delay, both ways: a corridor of no width. All traces of a machine are tied to its first. */
static void tie(
    struct clock_net *net, const struct index_far_host *hosts, const struct machine *a, const struct machine *b)
{
    const struct index_far_host *h = &hosts[a->host];
    __int128 shift = index_clock_shift(a->clock, b->clock);
    int64_t ends[2] = {h->begin, h->end > h->begin ? h->end : h->begin + (h->begin < INT64_MAX)};
    for (int n = 0; n < 2; n++) {
        int64_t there;
        if (__builtin_add_overflow(ends[n], shift, &there))
            return; /* beyond all times, because of damaged metadata */
        clock_net_message(net, a->host, b->host, ends[n], there);
        clock_net_message(net, b->host, a->host, there, ends[n]);
    }
}

static void tie_machines(const struct index_far_host *hosts, size_t n, struct clock_net *net)
{
    VEC(struct machine) all = {0};
    for (size_t i = 0; i < n; i++)
        if (hosts[i].clock.freq)
            vec_push(&all, ((struct machine){&hosts[i].clock, i}));
    if (all.n)
        qsort(all.v, all.n, sizeof *all.v, by_clock);
    for (size_t i = 1, first = 0; i < all.n; i++)
        if (same_clock(&all.v[first], &all.v[i]))
            tie(net, hosts, &all.v[first], &all.v[i]);
        else
            first = i;
    vec_free(&all);
}

/* ---- hosts, wherever their traces lie ---- */

int64_t index_sealed_until(const struct index_host *h)
{
    return h->sealed_until > h->sealed_from ? h->sealed_until : INT64_MIN;
}

struct index_far_host index_far_host_of(const struct index_host *h)
{
    const struct ctf_clock *c;
    struct index_far_host far = {.name = h->clock_name,
        .begin = h->begin,
        .end = h->end,
        .sealed_until = index_sealed_until(h),
        .before = SIZE_MAX,
        .clock.name = ""};
    if (!ctf_trace_clocks(h->trace, &c) || !c->has_uuid || !c->freq)
        return far;
    far.clock = (struct index_far_clock){
        .name = c->name, .freq = c->freq, .offset = c->offset, .offset_s = c->offset_s};
    memcpy(far.clock.uuid, c->uuid, sizeof far.clock.uuid);
    return far;
}

/* Carries over pairs for which the packets of one side are unavailable. */
static void carry_pairs(
    const struct index_far_host *hosts, size_t n, const struct clock_net *before, struct clock_net *net)
{
    const struct clock_pair *pairs;
    size_t n_pairs = clock_net_pairs(before, &pairs), n_before = clock_net_hosts(before);
    size_t *now = mem_alloc((n_before + 1) * sizeof *now);
    for (size_t h = 0; h < n_before; h++)
        now[h] = SIZE_MAX;
    for (size_t h = 0; h < n; h++)
        if (hosts[h].before < n_before)
            now[hosts[h].before] = h;
    for (size_t i = 0; i < n_pairs; i++) {
        size_t a = now[pairs[i].a], b = now[pairs[i].b];
        if (a != SIZE_MAX && b != SIZE_MAX && (!hosts[a].flows || !hosts[b].flows))
            clock_net_carry(net, a, b, before, pairs[i].a, pairs[i].b);
    }
    free(now);
}

int index_solve(const struct index_far_host *hosts, const struct clock_options *o, const struct clock_net *before,
    struct index_sync *s, struct clock_net **out, struct err *e)
{
    struct clock_net *net = *out = clock_net_new(o);
    for (size_t h = 0; h < s->n; h++)
        clock_net_host(net, hosts[h].name, hosts[h].begin, hosts[h].end);
    if (o->no_messages)
        return clock_net_solve(net, e);
    tie_machines(hosts, s->n, net);
    if (before)
        carry_pairs(hosts, s->n, before, net);
    if (s->prior_ppm < o->drift_prior_ppm)
        s->prior_ppm = o->drift_prior_ppm;
    return index_sync_flows(net, s, e);
}

int index_sync_far(const struct index_far_host *far, size_t n, const struct clock_options *o,
    const struct clock_net *before, struct clock_net **out, struct err *e)
{
    struct index_sync_host *hosts = mem_zalloc((n + 1) * sizeof *hosts);
    for (size_t h = 0; h < n; h++)
        hosts[h] = (struct index_sync_host){.flows = far[h].flows, .sealed.until = far[h].sealed_until};
    struct index_sync s = {.hosts = hosts, .n = n, .prior_ppm = clock_defaults().drift_prior_ppm};
    int rc = index_solve(far, o, before, &s, out, e);
    free(hosts);
    if (rc) {
        clock_net_free(*out);
        *out = NULL;
    }
    return rc;
}
