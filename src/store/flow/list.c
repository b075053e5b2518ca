/* SPDX-License-Identifier: MIT */
/* Joint tables of several chunks: equal flows, with places in order of time, and the positions of messages and replies
 * by number. Made at the first request, from the tables of flows and rows; reads no packets except the first and the
 * last reply of each chunk. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "flow/store.h"

/* ---- flows ---- */

struct found {
    VEC(struct flow_key) keys;
    VEC(size_t) places; /* number of places */
};

/* Flows of the host in order of their first packets; each chunk has its flows in that order. */
static uint32_t number_flow(struct flow_tables *t, struct found *f, const struct flow_key *key)
{
    for (uint64_t h = flow_key_hash(key);; h++) {
        uint64_t *at = map_put(&t->by_key, h, NULL);
        if (!*at) {
            *at = f->keys.n + 1;
            vec_push(&f->keys, *key);
            vec_push(&f->places, 0);
        } else if (memcmp(&f->keys.v[*at - 1], key, sizeof *key) != 0) {
            continue;
        }
        f->places.v[*at - 1]++;
        return (uint32_t)(*at - 1);
    }
}

/* Skips flows of a tail that end before it: its first chunk may span days. */
static bool is_in(const struct flow_store *s, size_t c, size_t f)
{
    if (!s->is_tail || s->since <= s->chunks[c].head.since)
        return true;
    struct flow_part p = flow_part(&s->chunks[c], f);
    return (p.n_sends && p.sends[p.n_sends - 1].ts >= s->since) ||
        (p.n_receives && p.receives[p.n_receives - 1].ts >= s->since);
}

static void number_flows(const struct flow_store *s, struct flow_tables *t, struct found *found)
{
    t->of = mem_zalloc(sizeof *t->of * s->n);
    for (size_t c = 0; c < s->n; c++) {
        t->of[c] = mem_zalloc(sizeof **t->of * (s->chunks[c].n_flows + 1));
        for (size_t f = 0; f < s->chunks[c].n_flows; f++) {
            t->of[c][f].flow = UINT32_MAX;
            if (!is_in(s, c, f))
                continue;
            struct flow_key key = s->chunks[c].flows[f].key;
            t->of[c][f].flow = number_flow(t, found, &key);
        }
    }
    t->n_flows = found->keys.n;
}

/* Place that follows in time: its numbers continue, or begin anew above all before. */
static struct flow_place next_place(
    const struct flow_store *s, const struct flow_place *before, uint32_t chunk, uint32_t flow)
{
    struct flow_place place = {.chunk = chunk, .flow = flow};
    const struct flow_disk_flow *f = &s->chunks[chunk].flows[flow];
    if (!before)
        return place;
    const struct flow_disk_flow *last = &s->chunks[before->chunk].flows[before->flow];
    struct flow_part part = flow_part(&s->chunks[before->chunk], before->flow);
    place.sends = before->sends + part.n_sends;
    place.receives = before->receives + part.n_receives;
    if (!f->key.family || f->key.protocol != FLOW_TCP)
        return place;
    place.turns = f->continued ? before->turns + last->turns
                               : (uint32_t)(before->turns + last->last_seq / FLOW_TURN + 1);
    return place;
}

static void place_flows(const struct flow_store *s, struct flow_tables *t, const size_t *count)
{
    size_t sum = 0;
    t->first = mem_zalloc(sizeof *t->first * (t->n_flows + 1));
    for (size_t f = 0; f < t->n_flows; f++) {
        t->first[f] = sum;
        sum += count[f];
    }
    t->first[t->n_flows] = sum;
    t->places = mem_alloc(sizeof *t->places * (sum + 1));
    size_t *next = mem_alloc(sizeof *next * (t->n_flows + 1));
    memcpy(next, t->first, sizeof *next * (t->n_flows + 1));
    for (size_t c = 0; c < s->n; c++)
        for (size_t f = 0; f < s->chunks[c].n_flows; f++) {
            struct flow_of *of = &t->of[c][f];
            if (of->flow == UINT32_MAX)
                continue;
            struct flow_place *place = &t->places[next[of->flow]++];
            *place = next_place(s, place > t->places + t->first[of->flow] ? place - 1 : NULL, (uint32_t)c, (uint32_t)f);
            of->turns = place->turns;
        }
    free(next);
}

static void join_directions(struct flow_tables *t, const struct found *found)
{
    t->connections = mem_alloc(sizeof *t->connections * (t->n_flows + 1));
    for (size_t f = 0; f < t->n_flows; f++) {
        struct flow_key back = flow_key_reverse(&found->keys.v[f]);
        const uint64_t *at;
        uint64_t h = flow_key_hash(&back);
        while ((at = map_find(&t->by_key, h)) && memcmp(&found->keys.v[*at - 1], &back, sizeof back) != 0)
            h++;
        t->connections[f] = (uint32_t)(at && *at - 1 < f ? *at - 1 : f);
    }
}

static bool sends_itself(const struct flow_store *s, const struct flow_tables *t, size_t flow)
{
    for (size_t i = t->first[flow]; i < t->first[flow + 1]; i++)
        if (s->chunks[t->places[i].chunk].flows[t->places[i].flow].own)
            return true;
    return false;
}

static struct flow_address *unite_addresses(
    const struct flow_store *s, const struct flow_tables *t, const struct found *found, bool source, size_t *n)
{
    struct flow_addresses list = {0};
    for (size_t f = 0; f < t->n_flows; f++)
        if (sends_itself(s, t, f))
            flow_add_address(&list, &found->keys.v[f], source);
    map_fini(&list.seen);
    *n = list.v.n;
    return list.v.v;
}

/* ---- replies ---- */

struct placed_reply {
    int64_t ts;
    uint64_t receive, number, place;
};

static struct placed_reply reply_at(const struct flow_store *s, size_t chunk, size_t i)
{
    const struct flow_chunk *c = &s->chunks[chunk];
    const struct flow_disk_packet *p = flow_packet_at(c, c->replies[i]);
    uint64_t number = c->head.first_packet + p->number;
    return (struct placed_reply){p->ts, number - p->back, number, (uint64_t)chunk << 32 | i};
}

static int by_time(const void *a, const void *b)
{
    const struct placed_reply *p = a, *q = b;
    return order_of(p->ts, q->ts) ?: order_of(p->receive, q->receive) ?: order_of(p->number, q->number)
        ?: order_of(p->place, q->place);
}

/* Replies of one chunk follow those of the one before, unless times are equal or step back. */
static void order_replies(const struct flow_store *s, struct flow_tables *t)
{
    struct placed_reply last = {.ts = INT64_MIN};
    bool sorted = true;
    t->first_reply = mem_zalloc(sizeof *t->first_reply * (s->n + 1));
    for (size_t c = 0; c < s->n; c++) {
        size_t n = s->chunks[c].n_replies;
        t->first_reply[c + 1] = t->first_reply[c] + n;
        if (!n)
            continue;
        struct placed_reply first = reply_at(s, c, 0);
        sorted &= by_time(&last, &first) <= 0;
        last = reply_at(s, c, n - 1);
    }
    if (sorted)
        return;
    size_t n = t->first_reply[s->n], at = 0;
    struct placed_reply *all = mem_alloc(sizeof *all * (n + 1));
    for (size_t c = 0; c < s->n; c++)
        for (size_t i = 0; i < s->chunks[c].n_replies; i++)
            all[at++] = reply_at(s, c, i);
    qsort(all, n, sizeof *all, by_time);
    t->replies = mem_alloc(sizeof *t->replies * (n + 1));
    for (size_t i = 0; i < n; i++)
        t->replies[i] = all[i].place;
    free(all);
}

/* ---- addresses and their first times ---- */

static int64_t first_own_send(const struct flow_chunk *c, const struct flow_address *a)
{
    int64_t first = INT64_MAX;
    for (size_t f = 0; f < c->n_flows; f++) {
        const struct flow_disk_flow *flow = &c->flows[f];
        if (!flow->own || flow->key.family != a->family || memcmp(flow->key.saddr, a->addr, sizeof a->addr) != 0)
            continue;
        struct flow_part part = flow_part(c, f);
        for (uint32_t i = 0; i < part.n_sends && part.sends[i].ts < first; i++)
            if (flow_is_own(&part.sends[i]))
                first = part.sends[i].ts;
    }
    return first;
}

struct own_addresses {
    VEC(struct flow_own_address) v;
    struct map seen;
};

/* Returns whether it appears for the first time. */
static bool see_own(struct own_addresses *all, const struct flow_address *a)
{
    bool fresh;
    map_put(&all->seen, map_hash(a, sizeof *a), &fresh);
    return fresh;
}

size_t flow_own_addresses(const struct flow_store *s, struct flow_own_address **out)
{
    struct own_addresses all = {0};
    for (size_t c = 0; c < s->n; c++) {
        const struct flow_chunk *chunk = &s->chunks[c];
        for (size_t i = 0; i < chunk->n_addresses && !chunk->own; i++)
            if (see_own(&all, &chunk->addresses[i]))
                vec_push(&all.v,
                    ((struct flow_own_address){chunk->addresses[i], first_own_send(chunk, &chunk->addresses[i])}));
        for (size_t i = 0; i < chunk->n_own; i++)
            if (see_own(&all, &chunk->own[i].address))
                vec_push(&all.v, ((struct flow_own_address){chunk->own[i].address, chunk->own[i].since}));
    }
    map_fini(&all.seen);
    *out = all.v.v;
    return all.v.n;
}

int64_t flow_last(const struct flow_store *s)
{
    return s->chunks[s->n - 1].until;
}

/* ---- setup ---- */

static struct flow_tables *make_tables(const struct flow_store *s)
{
    struct flow_tables *t = mem_zalloc(sizeof *t);
    struct found found = {0};
    number_flows(s, t, &found);
    place_flows(s, t, found.places.v);
    join_directions(t, &found);
    t->addresses = unite_addresses(s, t, &found, true, &t->n_addresses);
    t->peers = unite_addresses(s, t, &found, false, &t->n_peers);
    if (!s->is_tail)
        order_replies(s, t);
    vec_free(&found.keys);
    vec_free(&found.places);
    return t;
}

const struct flow_tables *flow_tables(const struct flow_store *store)
{
    struct flow_store *s = (struct flow_store *)store;
    struct flow_tables *t = atomic_load_explicit(&s->tables, memory_order_acquire);
    if (t)
        return t;
    pthread_mutex_lock(&s->lock);
    t = atomic_load_explicit(&s->tables, memory_order_relaxed);
    if (!t) {
        t = make_tables(s);
        atomic_store_explicit(&s->tables, t, memory_order_release);
    }
    pthread_mutex_unlock(&s->lock);
    return t;
}

void flow_tables_free(struct flow_tables *t, size_t n_chunks)
{
    if (!t)
        return;
    for (size_t c = 0; c < n_chunks; c++)
        free(t->of[c]);
    free(t->of);
    free(t->first);
    free(t->places);
    map_fini(&t->by_key);
    free(t->connections);
    free(t->addresses);
    free(t->peers);
    free(t->replies);
    free(t->first_reply);
    free(t);
}
