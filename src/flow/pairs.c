/* Exact copies of packets seen by both ends: the points of clock synchronisation. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "flow/store.h"

static const uint32_t NONE = UINT32_MAX;

/* Sends of one flow that look the same, and the receives that look like them. */
struct likes {
    uint32_t first, last; /* sends, chained by `next` */
    uint32_t sends, receives, seen;
    uint32_t at; /* the next send, when there is a receive for each */
};

struct pairing {
    const struct flow_disk_packet *sends, *receives;
    uint32_t n, m;
    bool datagrams; /* the sequence is the IP id alone */
    uint32_t n_likes, mask;
    /* Kept from flow to flow, with room for room_sends and room_receives. */
    uint32_t room_sends, room_receives;
    uint32_t *table, *next; /* open addressing: likes + 1; by send */
    struct likes *likes;
    uint32_t *likes_of; /* by receive */
};

static uint64_t copy_hash(const struct flow_disk_packet *p)
{
    uint64_t a = (uint64_t)(uint32_t)p->seq_end << 32 | (uint32_t)p->ack;
    uint64_t b = (uint64_t)p->bytes << 32 | (uint64_t)p->ip_id << 16 | p->flags;
    return map_mix(a) ^ map_mix(b + 1);
}

static bool is_copy(const struct flow_disk_packet *a, const struct flow_disk_packet *b)
{
    return (uint32_t)a->seq_end == (uint32_t)b->seq_end && (uint32_t)a->ack == (uint32_t)b->ack &&
        a->bytes == b->bytes && a->ip_id == b->ip_id && a->flags == b->flags;
}

static uint64_t hash_of(const struct pairing *g, const struct flow_disk_packet *p)
{
    return g->datagrams ? map_mix((uint64_t)p->bytes << 16 | p->ip_id) : copy_hash(p);
}

static bool alike(const struct pairing *g, const struct flow_disk_packet *a, const struct flow_disk_packet *b)
{
    return g->datagrams ? a->bytes == b->bytes && a->ip_id == b->ip_id && a->ip_id : is_copy(a, b);
}

/* Where in the table the likes of a packet are, or would be. */
static uint32_t place_of(const struct pairing *g, const struct flow_disk_packet *p)
{
    uint32_t at = (uint32_t)hash_of(g, p) & g->mask;
    while (g->table[at] && !alike(g, &g->sends[g->likes[g->table[at] - 1].first], p))
        at = (at + 1) & g->mask;
    return at;
}

static void make_room(struct pairing *g)
{
    uint32_t size = 16;
    while (size < g->n * UINT64_C(2) && size < UINT32_C(1) << 31)
        size *= 2;
    g->mask = size - 1;
    g->n_likes = 0;
    if (g->n > g->room_sends || !g->table) {
        g->room_sends = g->n;
        g->table = mem_resize(g->table, sizeof *g->table * size);
        g->next = mem_resize(g->next, sizeof *g->next * g->n);
        g->likes = mem_resize(g->likes, sizeof *g->likes * g->n);
    }
    if (g->m > g->room_receives) {
        g->room_receives = g->m;
        g->likes_of = mem_resize(g->likes_of, sizeof *g->likes_of * g->m);
    }
    memset(g->table, 0, sizeof *g->table * size);
}

static void group_sends(struct pairing *g)
{
    for (uint32_t i = 0; i < g->n; i++) {
        if (g->datagrams && !g->sends[i].ip_id)
            continue; /* like nothing, not even itself */
        uint32_t at = place_of(g, &g->sends[i]);
        g->next[i] = NONE;
        if (!g->table[at]) {
            g->likes[g->n_likes] = (struct likes){.first = i, .last = i, .sends = 1, .at = i};
            g->table[at] = ++g->n_likes;
            continue;
        }
        struct likes *k = &g->likes[g->table[at] - 1];
        g->next[k->last] = i;
        k->last = i;
        k->sends++;
    }
}

static void group_receives(struct pairing *g)
{
    for (uint32_t r = 0; r < g->m; r++) {
        uint32_t at = place_of(g, &g->receives[r]);
        g->likes_of[r] = g->table[at] ? g->table[at] - 1 : NONE;
        if (g->table[at])
            g->likes[g->table[at] - 1].receives++;
    }
}

/* The send of which receive r, the next of its likes, is the copy. Several alike (several devices of one host saw the
 * packet, or it was sent again unchanged): the one of the same rank among its likes if both sides have as many; if not,
 * the first receive still cannot be older than the first send (but IP ids of datagrams come round again, so that says
 * nothing). Of one send the first receive is the copy: a second device that saw the packet later is farther from the
 * wire. */
static uint32_t copy_of(struct pairing *g, uint32_t r)
{
    if (g->likes_of[r] == NONE)
        return NONE;
    struct likes *k = &g->likes[g->likes_of[r]];
    uint32_t rank = k->seen++, send = k->at;
    if (k->sends != k->receives)
        return rank == 0 && (k->sends == 1 || !g->datagrams) ? k->first : NONE;
    k->at = g->next[send];
    return send;
}

static void pair_flow(struct pairing *g, void (*pair)(void *, int64_t, int64_t), void *arg)
{
    make_room(g);
    group_sends(g);
    group_receives(g);
    for (uint32_t r = 0; r < g->m; r++) {
        uint32_t s = copy_of(g, r);
        if (s != NONE)
            pair(arg, g->sends[s].ts, g->receives[r].ts);
    }
}

void flow_pairs(const struct flow_store *a, const struct flow_store *b, const struct flow_link *links, size_t n,
    void (*pair)(void *arg, int64_t sent, int64_t received), void *arg)
{
    struct pairing g = {0};
    for (size_t i = 0; i < n; i++) {
        struct flow_part from = flow_part(a, links[i].sent), to = flow_part(b, links[i].received);
        if (!from.n_sends || !to.n_receives)
            continue;
        const struct flow_key *key = &b->flows[links[i].received].key;
        g.sends = from.sends;
        g.n = from.n_sends;
        g.receives = to.receives;
        g.m = to.n_receives;
        g.datagrams = key->family && key->protocol != FLOW_TCP;
        pair_flow(&g, pair, arg);
    }
    free(g.table);
    free(g.next);
    free(g.likes);
    free(g.likes_of);
}
