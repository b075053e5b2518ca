/* SPDX-License-Identifier: MIT */
/* Exact copies of packets seen by both ends: points for clock synchronisation. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/search.h"
#include "flow/store.h"

static const uint32_t NONE = UINT32_MAX;

/* Equal sends of one flow, and the receives equal to them. */
struct likes {
    uint32_t first, last; /* sends, chained by `next` */
    uint32_t sends, receives, seen;
    uint32_t at; /* next send, if there is a receive for each */
    /* Near a receive: their begins in by_likes, and the ranges in the window. */
    uint32_t first_of[2], begin[2], end[2];
};

struct pairing {
    const struct flow_disk_packet *sends, *receives;
    uint32_t n, m;
    bool datagrams; /* the sequence is only the IP id */
    bool sure;      /* excludes possible copies of others */
    uint32_t n_likes, mask;
    /* Buffers kept from flow to flow, with room for room_sends and room_receives. */
    uint32_t room_sends, room_receives;
    uint32_t *table, *next; /* open addressing: likes + 1; next by send */
    struct likes *likes;
    uint32_t *likes_of;                     /* likes by receive */
    VEC(struct flow_disk_packet) joined[2]; /* receives, sends of several chunks */
    VEC(uint32_t) by_likes[2];              /* indices of receives, sends grouped by likeness */
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

/* Equal to nothing, not even itself. */
static bool is_nameless(const struct pairing *g, const struct flow_disk_packet *p)
{
    return g->datagrams && !p->ip_id;
}

/* Slot of the likes of a packet in the table, used or not. */
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
        if (is_nameless(g, &g->sends[i]))
            continue;
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
        /* A packet that came back in had come in before, nearer to the wire, or never travelled between hosts. */
        bool counts = g->table[at] && !(g->receives[r].way & FLOW_CAME_BACK);
        g->likes_of[r] = counts ? g->table[at] - 1 : NONE;
        if (counts)
            g->likes[g->table[at] - 1].receives++;
    }
}

/* Returns the send whose copy is receive r, the next of its likes. If several are equal (several devices of one host
 * saw the packet, or it was retransmitted unchanged): the one of the same rank among its likes if both sides have as
 * many. If not, the first receive still cannot be older than the first send (but IP ids of datagrams repeat, so that
 * shows nothing). For a single send the first receive is the copy: a second device that saw the packet later is farther
 * from the wire. */
static uint32_t copy_of(struct pairing *g, uint32_t r)
{
    if (g->likes_of[r] == NONE)
        return NONE;
    struct likes *k = &g->likes[g->likes_of[r]];
    uint32_t rank = k->seen++, send = k->at;
    if (k->sends != k->receives)
        return rank == 0 && (k->sends == 1 || !(g->datagrams || g->sure)) ? k->first : NONE;
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

/* ---- near in time ---- */

static int64_t earlier(int64_t ts)
{
    return ts < INT64_MIN + FLOW_NEAR_NS ? INT64_MIN : ts - FLOW_NEAR_NS;
}

static int64_t later(int64_t ts)
{
    return ts > INT64_MAX - FLOW_NEAR_NS ? INT64_MAX : ts + FLOW_NEAR_NS;
}

/* Groups equal packets, in order of time. */
static void place_likes(struct pairing *g)
{
    uint32_t at[2] = {0};
    for (uint32_t i = 0; i < g->n_likes; i++) {
        struct likes *k = &g->likes[i];
        memcpy(k->first_of, at, sizeof at);
        memcpy(k->begin, at, sizeof at);
        memcpy(k->end, at, sizeof at);
        at[0] += k->receives;
        at[1] += k->sends;
    }
    vec_reserve(&g->by_likes[0], g->m + 1);
    vec_reserve(&g->by_likes[1], g->n + 1);
    for (uint32_t r = 0; r < g->m; r++)
        if (g->likes_of[r] != NONE)
            g->by_likes[0].v[g->likes[g->likes_of[r]].end[0]++] = r;
    for (uint32_t i = 0; i < g->n_likes; i++) {
        struct likes *k = &g->likes[i];
        k->end[0] = k->first_of[0];
        for (uint32_t s = k->first, n = 0; n < k->sends; n++, s = g->next[s])
            g->by_likes[1].v[k->first_of[1] + n] = s;
    }
}

static int64_t time_of(const struct pairing *g, bool sends, uint32_t i)
{
    uint32_t at = g->by_likes[sends].v[i];
    return sends ? g->sends[at].ts : g->receives[at].ts;
}

/* Moves on to the range from begin to end; times must increase. Returns the number in the range. */
static uint32_t move_window(const struct pairing *g, struct likes *k, bool sends, int64_t begin, int64_t end)
{
    uint32_t last = k->first_of[sends] + (sends ? k->sends : k->receives);
    while (k->begin[sends] < last && time_of(g, sends, k->begin[sends]) < begin)
        k->begin[sends]++;
    if (k->end[sends] < k->begin[sends])
        k->end[sends] = k->begin[sends];
    while (k->end[sends] < last && time_of(g, sends, k->end[sends]) <= end)
        k->end[sends]++;
    return k->end[sends] - k->begin[sends];
}

/* As copy_of, using only what is near the receive. *sure: no other there is equal. */
static uint32_t near_copy_of(struct pairing *g, uint32_t r, bool *sure)
{
    *sure = false;
    if (g->likes_of[r] == NONE)
        return NONE;
    struct likes *k = &g->likes[g->likes_of[r]];
    int64_t begin = earlier(g->receives[r].ts), end = later(g->receives[r].ts);
    uint32_t at = k->first_of[0] + k->seen++, sends = move_window(g, k, true, begin, end),
             receives = move_window(g, k, false, begin, end);
    if (!sends || at < k->begin[0] || at >= k->end[0])
        return NONE;
    uint32_t rank = at - k->begin[0];
    *sure = !g->datagrams && sends == 1 && receives == 1;
    if (sends != receives && (rank || (sends > 1 && g->datagrams)))
        return NONE;
    return g->by_likes[1].v[k->begin[1] + (sends == receives ? rank : 0)];
}

/* Returns whether the host itself sent it just before, so that it came back by another of its devices. */
static bool comes_back(struct pairing *own, uint32_t r)
{
    if (!own->n || own->likes_of[r] == NONE)
        return false;
    struct likes *k = &own->likes[own->likes_of[r]];
    int64_t ts = own->receives[r].ts;
    return move_window(own, k, true, earlier(ts), ts) > 0;
}

static void group(struct pairing *g)
{
    make_room(g);
    group_sends(g);
    group_receives(g);
    place_likes(g);
}

static void near_in_flow(
    struct pairing *g, struct pairing *own, int64_t since, void (*tell)(void *, const struct flow_near *), void *arg)
{
    group(g);
    if (own->n)
        group(own);
    for (uint32_t r = 0; r < g->m; r++) {
        struct flow_near near = {.received = g->receives[r].ts, .datagram = g->datagrams};
        uint32_t s = near_copy_of(g, r, &near.sure);
        if (comes_back(own, r) || near.received < since || s == NONE)
            continue;
        near.sent = g->sends[s].ts;
        tell(arg, &near);
    }
}

/* ---- flows ---- */

/* All sends or receives of a flow since then, as one array. */
static const struct flow_disk_packet *join_places(
    struct pairing *g, const struct flow_view *v, bool sends, int64_t since, uint32_t *n)
{
    struct flow_walk w = {.view = v, .sends = sends};
    uint64_t all = flow_walk_count(v, sends), first = 0;
    all = all < UINT32_MAX ? all : UINT32_MAX;
    if (since > INT64_MIN)
        first = search_first(i, 0, all, flow_walk_at(&w, i)->ts >= since);
    *n = (uint32_t)(all - first);
    if (v->n == 1) {
        struct flow_part part = flow_part_of(v, 0);
        return (sends ? part.sends : part.receives) + first;
    }
    g->joined[sends].n = 0;
    vec_reserve(&g->joined[sends], *n + 1);
    for (uint32_t i = 0; i < *n; i++)
        g->joined[sends].v[i] = *flow_walk_at(&w, first + i);
    return g->joined[sends].v;
}

static void pairing_fini(struct pairing *g)
{
    for (int i = 0; i < 2; i++) {
        vec_free(&g->joined[i]);
        vec_free(&g->by_likes[i]);
    }
    free(g->table);
    free(g->next);
    free(g->likes);
    free(g->likes_of);
}

/* Opens the packets of a link since then; false: a side has none. */
static bool open_link(struct pairing *g, const struct flow_store *a, const struct flow_store *b,
    const struct flow_link *link, int64_t since)
{
    struct flow_view from, to;
    struct flow_key key;
    flow_view_of(a, link->sent, &from);
    flow_view_of(b, link->received, &to);
    if (!flow_walk_count(&from, true) || !flow_walk_count(&to, false))
        return false;
    flow_key(b, link->received, &key);
    g->sends = join_places(g, &from, true, since, &g->n);
    g->receives = join_places(g, &to, false, since, &g->m);
    g->datagrams = key.family && key.protocol != FLOW_TCP;
    return g->n && g->m;
}

static void pair_links(struct pairing *g, const struct flow_store *a, const struct flow_store *b,
    const struct flow_link *links, size_t n, void (*pair)(void *arg, int64_t sent, int64_t received), void *arg)
{
    for (size_t i = 0; i < n; i++)
        if (open_link(g, a, b, &links[i], INT64_MIN))
            pair_flow(g, pair, arg);
    pairing_fini(g);
}

void flow_pairs(const struct flow_store *a, const struct flow_store *b, const struct flow_link *links, size_t n,
    void (*pair)(void *arg, int64_t sent, int64_t received), void *arg)
{
    pair_links(&(struct pairing){0}, a, b, links, n, pair, arg);
}

void flow_sure_pairs(const struct flow_store *a, const struct flow_store *b, const struct flow_link *links, size_t n,
    void (*pair)(void *arg, int64_t sent, int64_t received), void *arg)
{
    pair_links(&(struct pairing){.sure = true}, a, b, links, n, pair, arg);
}

/* Opens the receiver's own sends on that flow. Without addresses all packets are one flow, and that shows nothing. */
static void open_own(struct pairing *own, const struct pairing *g, const struct flow_store *b,
    const struct flow_link *link, int64_t since)
{
    struct flow_view v;
    struct flow_key key;
    flow_key(b, link->received, &key);
    flow_view_of(b, link->received, &v);
    own->n = 0;
    if (key.family)
        own->sends = join_places(own, &v, true, since, &own->n);
    own->receives = g->receives;
    own->m = g->m;
    own->datagrams = g->datagrams;
}

void flow_near_pairs(const struct flow_store *a, const struct flow_store *b, const struct flow_link *links, size_t n,
    int64_t since, void (*tell)(void *arg, const struct flow_near *), void *arg)
{
    struct pairing g = {0}, own = {0};
    for (size_t i = 0; i < n; i++)
        if (open_link(&g, a, b, &links[i], earlier(since))) {
            open_own(&own, &g, b, &links[i], earlier(since));
            near_in_flow(&g, &own, since, tell, arg);
        }
    pairing_fini(&g);
    pairing_fini(&own);
}
