/* SPDX-License-Identifier: MIT */
/* Plan: places of traces, traffic between hosts, and the moves advised from them. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/time.h"
#include "bus/bus.h"
#include "place/advice.h"
#include "place/place.h"

/* ---- traffic ---- */

static uint64_t address_hash(const struct flow_address *a)
{
    struct flow_address plain = {.family = a->family};
    memcpy(plain.addr, a->addr, a->family == 4 ? 4 : sizeof plain.addr);
    return map_hash(&plain, sizeof plain);
}

/* Hosts by their own addresses: for each address a list of hosts. */
struct owner {
    int32_t host, next;
};
struct owners {
    struct map first; /* hash of an address: number of the owner + 1 */
    struct owner *v;
    size_t n, cap;
};

static void find_owners(const struct cluster_membership *r, struct owners *out)
{
    for (size_t i = 0; i < r->n_hosts; i++)
        for (size_t k = 0; k < r->hosts[i].entry->n_own; k++) {
            uint64_t *first = map_put(&out->first, address_hash(&r->hosts[i].entry->own[k]), NULL);
            vec_push(out, ((struct owner){(int32_t)i, (int32_t)*first}));
            *first = out->n;
        }
}

static bool sends_to(const struct cluster_entry_host *from, const struct cluster_entry_host *to)
{
    for (size_t i = 0; i < from->n_peers; i++)
        for (size_t k = 0; k < to->n_own; k++)
            if (address_hash(&from->peers[i]) == address_hash(&to->own[k]))
                return true;
    return false;
}

/* The host that has the address: of several, as there are with boots of a machine and private networks, one that was
 * recorded at the same time, and one that sent back. -1: nobody's, or the host's own. */
static int32_t owner_of(
    const struct cluster_membership *r, const struct owners *owners, size_t host, const struct flow_address *a)
{
    const uint64_t *first = map_find(&owners->first, address_hash(a));
    const struct cluster_entry_host *own = r->hosts[host].entry;
    int32_t best = -1, points = -1;
    for (uint64_t at = first ? *first : 0; at; at = (uint64_t)owners->v[at - 1].next) {
        int32_t other = owners->v[at - 1].host;
        const struct cluster_entry_host *h = r->hosts[other].entry;
        if ((size_t)other == host)
            return -1;
        int32_t now = 2 * (h->begin <= own->end && own->begin <= h->end);
        now += first && owners->v[*first - 1].next ? sends_to(h, own) : 0;
        if (now > points || (now == points && other < best)) {
            best = other;
            points = now;
        }
    }
    return best;
}

static int by_packets(const void *pa, const void *pb)
{
    const struct place_talk *a = pa, *b = pb;
    return order_of(b->packets, a->packets) ?: order_of(a->a, b->a) ?: order_of(a->b, b->b);
}

static void find_talk(const struct cluster_membership *r, struct place_plan *p)
{
    struct owners owners = {0};
    struct map pairs = {0};
    struct {
        struct place_talk *v;
        size_t n, cap;
    } talk = {0};
    find_owners(r, &owners);
    for (size_t i = 0; i < r->n_hosts; i++)
        for (size_t k = 0; k < r->hosts[i].entry->n_peers; k++) {
            const struct cluster_entry_talk *sent = &r->hosts[i].entry->talk[k];
            int32_t other = owner_of(r, &owners, i, &r->hosts[i].entry->peers[k]), own = (int32_t)i;
            if (other < 0 || !sent->packets)
                continue;
            int32_t a = own < other ? own : other, b = own < other ? other : own;
            bool fresh;
            uint64_t *at = map_put(&pairs, (uint64_t)a << 32 | (uint64_t)b, &fresh);
            if (fresh) {
                *at = talk.n;
                vec_push(&talk, ((struct place_talk){.a = a, .b = b}));
            }
            talk.v[*at].packets += sent->packets;
            talk.v[*at].bytes += sent->bytes;
        }
    if (talk.n)
        qsort(talk.v, talk.n, sizeof *talk.v, by_packets);
    p->talk = talk.v;
    p->n_talk = talk.n;
    map_fini(&pairs);
    map_fini(&owners.first);
    vec_free(&owners);
}

/* ---- places ---- */

static void count_hosts(const struct cluster_membership *r, struct place_plan *p)
{
    p->n_nodes = r->n_entries;
    p->nodes = mem_zalloc((p->n_nodes + 1) * sizeof *p->nodes);
    p->n_hosts = r->n_hosts;
    p->hosts = mem_zalloc((p->n_hosts + 1) * sizeof *p->hosts);
    for (size_t i = 0; i < p->n_nodes; i++) {
        p->nodes[i].name = r->entries[i].node;
        p->nodes[i].version = map_mix(
            map_hash(r->entries[i].instance, strlen(r->entries[i].instance)) + r->entries[i].serial);
    }
    for (size_t i = 0; i < p->n_hosts; i++) {
        const struct cluster_membership_host *h = &r->hosts[i];
        struct place_node *n = &p->nodes[h->entries[0]];
        p->hosts[i] = (struct place_host){(int32_t)h->entries[0], h->entry->bytes, h->entry->store_bytes,
            h->entry->events, (const char *const *)h->nodes + h->n_nodes, h->n_excerpts};
        n->hosts++;
        n->bytes += h->entry->bytes;
        n->store_bytes += h->entry->store_bytes;
        for (size_t k = 1; k < h->n_nodes + h->n_excerpts; k++)
            p->nodes[h->entries[k]].copies++;
    }
}

static void ask_load(struct cluster *c, struct place_plan *p, int64_t deadline_ns)
{
    struct bus_calls *calls = bus_calls_new(cluster_bus(c));
    struct text q = {.fd = -1};
    struct bus_reply r;
    char subject[CLUSTER_SUBJECT];
    cluster_question_begin(&q, CLUSTER_LOAD);
    for (size_t i = 0; i < p->n_nodes; i++)
        if (!cluster_subject_of(cluster_name(c), p->nodes[i].name, subject, NULL))
            bus_call(calls, subject, q.v, q.n, deadline_ns, i);
    while (bus_calls_next(calls, &r)) {
        struct cluster_load load = {0};
        if (!r.code && !cluster_load_read(r.data, r.n, &load, NULL))
            p->nodes[r.tag].load = load;
        bus_reply_free(&r);
    }
    bus_calls_free(calls);
    text_fini(&q);
}

/* ---- advice ---- */

/* The mean of those that have traces, or may have, and so much more. */
static uint64_t limit_of(const struct place_plan *p, unsigned percent)
{
    uint64_t bytes = 0, nodes = 0;
    for (size_t i = 0; i < p->n_nodes; i++) {
        bytes += p->nodes[i].bytes;
        nodes += p->nodes[i].hosts || p->nodes[i].load.receives;
    }
    return nodes ? (uint64_t)((double)bytes / (double)nodes * (100 + percent) / 100) : 0;
}

static uint64_t percent_of(uint64_t all, unsigned percent)
{
    return (uint64_t)((double)all * percent / 100);
}

/* Returns whether its node lets it be copied, and it has been there long enough. */
static bool may_leave(const struct cluster_load *from, const struct cluster_entry_host *h, int64_t settle_ns)
{
    return from->answered && (from->gives || h->since) && (!h->since || time_now_ns() - h->since >= settle_ns);
}

static void advise(
    const struct cluster_membership *r, const struct place_options *o, struct place_plan *p, struct arena *a)
{
    struct advice_node *nodes = arena_new(a, struct advice_node, p->n_nodes + 1);
    struct advice_host *hosts = arena_new(a, struct advice_host, p->n_hosts + 1);
    struct advice_talk *talk = arena_new(a, struct advice_talk, p->n_talk + 1);
    struct advice_move *moves = arena_new(a, struct advice_move, p->n_hosts + 1);
    int32_t *node_of = arena_new(a, int32_t, p->n_hosts + 1);
    uint64_t all = 0;
    for (size_t i = 0; i < p->n_nodes; i++)
        nodes[i] = (struct advice_node){p->nodes[i].load.room_bytes / 3 * 2, p->nodes[i].load.receives};
    for (size_t i = 0; i < p->n_hosts; i++) {
        bool movable = may_leave(&p->nodes[p->hosts[i].node].load, r->hosts[i].entry, o->settle_ns);
        hosts[i] = (struct advice_host){p->hosts[i].node, p->hosts[i].bytes, movable};
        node_of[i] = p->hosts[i].node;
    }
    for (size_t i = 0; i < p->n_talk; i++) {
        talk[i] = (struct advice_talk){p->talk[i].a, p->talk[i].b, p->talk[i].packets};
        all += p->talk[i].packets;
    }
    uint64_t gain = percent_of(all, o->gain_percent);
    struct advice_world w = {nodes, p->n_nodes, hosts, p->n_hosts, talk, p->n_talk, p->limit_bytes, gain ? gain : 1,
        percent_of(p->limit_bytes, o->gain_percent)};
    p->n_moves = place_advice_find(&w, moves);
    p->moves = mem_zalloc((p->n_moves + 1) * sizeof *p->moves);
    p->between = place_advice_between(&w, node_of);
    for (size_t i = 0; i < p->n_moves; i++) {
        int32_t host = moves[i].host;
        p->moves[i] = (struct place_move_advice){
            host, node_of[host], moves[i].to, p->hosts[host].bytes, moves[i].relieves, moves[i].saves};
        node_of[host] = moves[i].to;
    }
    p->between_after = place_advice_between(&w, node_of);
    for (size_t i = 0; i < p->n_hosts; i++)
        p->nodes[node_of[i]].planned_bytes += p->hosts[i].bytes;
}

void place_advise(struct cluster *c, const struct place_options *o, struct place_plan **out)
{
    struct place_plan *p = *out = mem_zalloc(sizeof *p);
    struct arena a = {0};
    count_hosts(cluster_registry(c), p);
    find_talk(cluster_registry(c), p);
    ask_load(c, p, o->deadline_ns);
    p->limit_bytes = limit_of(p, o->balance_percent);
    advise(cluster_registry(c), o, p, &a);
    arena_fini(&a);
}

void place_plan_free(struct place_plan *p)
{
    if (!p)
        return;
    free(p->nodes);
    free(p->hosts);
    free(p->talk);
    free(p->moves);
    free(p);
}
