/* Exact copies of packets seen by both ends: the points of clock synchronisation. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "flow/store.h"

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

struct pairing {
    const struct flow_disk_packet *sends, *receives;
    uint32_t n, m;
    bool datagrams;        /* the sequence is the IP id alone */
    uint32_t *head, *next; /* hash chains over the sends, in time order */
    uint32_t mask;
};

static uint64_t datagram_hash(const struct flow_disk_packet *p)
{
    return map_mix((uint64_t)p->bytes << 16 | p->ip_id);
}

static bool copies(const struct pairing *g, const struct flow_disk_packet *a, const struct flow_disk_packet *b)
{
    return g->datagrams ? a->bytes == b->bytes && a->ip_id == b->ip_id && a->ip_id : is_copy(a, b);
}

static uint64_t hash_of(const struct pairing *g, const struct flow_disk_packet *p)
{
    return g->datagrams ? datagram_hash(p) : copy_hash(p);
}

static void chain_sends(struct pairing *g)
{
    uint32_t size = 16;
    while (size < g->n * 2)
        size *= 2;
    g->mask = size - 1;
    g->head = mem_alloc(sizeof *g->head * size);
    g->next = mem_alloc(sizeof *g->next * g->n);
    memset(g->head, 0xff, sizeof *g->head * size);
    for (uint32_t i = g->n; i-- > 0;) {
        uint32_t h = (uint32_t)hash_of(g, &g->sends[i]) & g->mask;
        g->next[i] = g->head[h];
        g->head[h] = i;
    }
}

/* How many receives are like r, and how many of them come before it. Only asked where several sends are alike. */
static uint32_t likes_of(const struct pairing *g, uint32_t r, uint32_t *rank)
{
    uint32_t likes = 0;
    *rank = 0;
    for (uint32_t i = 0; i < g->m; i++)
        if (copies(g, &g->receives[i], &g->receives[r])) {
            *rank += i < r;
            likes++;
        }
    return likes;
}

/* The send of which receive r is the copy. Several alike (several devices of one host saw the packet, or it was sent
 * again unchanged): the one of the same rank among its likes if both sides have as many; if not, the first receive
 * still cannot be older than the first send (but IP ids of datagrams come round again, so that says nothing). */
static uint32_t copy_of(const struct pairing *g, uint32_t r)
{
    uint32_t count = 0, first = UINT32_MAX, rank;
    uint32_t chain = g->head[hash_of(g, &g->receives[r]) & g->mask];
    for (uint32_t i = chain; i != UINT32_MAX; i = g->next[i])
        if (copies(g, &g->sends[i], &g->receives[r]) && !count++)
            first = i;
    if (count <= 1)
        return first;
    if (likes_of(g, r, &rank) != count)
        return rank == 0 && !g->datagrams ? first : UINT32_MAX;
    for (uint32_t i = chain; i != UINT32_MAX; i = g->next[i])
        if (copies(g, &g->sends[i], &g->receives[r]) && rank-- == 0)
            return i;
    return UINT32_MAX;
}

static void pair_flow(struct pairing *g, void (*pair)(void *, int64_t, int64_t), void *arg)
{
    chain_sends(g);
    uint32_t *taken = mem_zalloc(sizeof *taken * g->n);
    for (uint32_t r = 0; r < g->m; r++) {
        uint32_t s = copy_of(g, r);
        if (s == UINT32_MAX || taken[s])
            continue; /* a second device that saw the same packet later: the first is nearer to the wire */
        taken[s] = 1;
        pair(arg, g->sends[s].ts, g->receives[r].ts);
    }
    free(taken);
    free(g->head);
    free(g->next);
}

void flow_pairs(const struct flow_store *a, const struct flow_store *b,
    void (*pair)(void *arg, int64_t sent, int64_t received), void *arg)
{
    for (size_t f = 0; a != b && f < b->n_flows; f++) {
        const struct flow_key *key = &b->flows[f].key;
        struct flow_part in = flow_part(b, f);
        int64_t other = in.n_receives && !flow_is_anonymous(key) ? flow_lookup(a, key) : -1;
        struct flow_part from = other >= 0 ? flow_part(a, (size_t)other) : (struct flow_part){0};
        if (!from.n_sends)
            continue;
        pair_flow(&(struct pairing){.sends = from.sends,
                      .n = from.n_sends,
                      .receives = in.receives,
                      .m = in.n_receives,
                      .datagrams = key->family && key->protocol != 6},
            pair, arg);
    }
}
