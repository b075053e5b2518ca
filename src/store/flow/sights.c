/* SPDX-License-Identifier: MIT */
#include "flow/sights.h"

#include <stdlib.h>
#include <string.h>

#include "base/carry.h"
#include "base/map.h"
#include "base/mem.h"
#include "flow/builder.h"

/* Longer than queues hold packets. */
#define REMEMBERED_NS UINT64_C(10000000000)
/* TCP retransmits nothing earlier (TCP_RTO_MIN): until then, a device of the same name shows the same packet in another
 * network namespace. */
#define RESEND_NS UINT64_C(200000000)
enum {
    REMEMBERED = 1 << 15, /* power of two, below that of the type of `at` */
    MOST_DEVICES = 6      /* stacked devices; a packet on further ones counts as another */
};

struct sight {
    uint64_t hash, skb;
    int64_t ts; /* greatest time seen */
    struct flow_key key;
    bool named;        /* identifiable by bytes of a connection, or an IP id */
    bool renamed;      /* seen before with other addresses or ports */
    bool send;         /* last sight was a send */
    uint8_t n[2];      /* number of receives, sends, with the present addresses */
    uint64_t received; /* number + 1 of the last counting receive, unless it is known to have gone on; 0: none */
    uint64_t devices[2][MOST_DEVICES];
};

struct flow_sights {
    int64_t ts; /* greatest time so far */
    VEC(struct sight) v;
    uint16_t at[REMEMBERED]; /* by hash: number in v + 1; a packet replaces an earlier one */
};

struct flow_sights *flow_sights_new(void)
{
    struct flow_sights *s = mem_zalloc(sizeof *s);
    s->ts = INT64_MIN;
    return s;
}

void flow_sights_free(struct flow_sights *s)
{
    if (s)
        vec_free(&s->v);
    free(s);
}

/* Hash of what does not change under way; addresses and ports may. */
static uint64_t hash_packet(const struct kernel_packet *k, bool named)
{
    uint64_t bytes = (uint64_t)k->payload_bytes << 32 | (uint64_t)k->ip_id << 16 | (k->flags & 0x1ff);
    return map_mix(bytes) ^
        map_mix((uint64_t)k->protocol << 56 ^
            (k->protocol == FLOW_TCP ? (uint64_t)k->seq << 32 | k->ack
                    : named          ? 0
                                     : k->skb));
}

/* Translation keeps one end, and bytes and ids. */
static bool is_translated(const struct flow_key *a, const struct flow_key *b, bool named)
{
    bool source = a->sport == b->sport && !memcmp(a->saddr, b->saddr, sizeof a->saddr);
    bool target = a->dport == b->dport && !memcmp(a->daddr, b->daddr, sizeof a->daddr);
    return named || source || target;
}

static bool is_remembered(const struct flow_sights *all, const struct sight *s)
{
    return s->n[0] + s->n[1] && (uint64_t)all->ts - (uint64_t)s->ts <= REMEMBERED_NS;
}

static bool is_same(
    const struct flow_sights *all, const struct sight *s, uint64_t hash, uint64_t skb, const struct flow_key *key)
{
    if (s->hash != hash || !is_remembered(all, s))
        return false;
    if (!memcmp(&s->key, key, sizeof *key))
        return s->named || (s->skb && s->skb == skb);
    return s->skb && s->skb == skb && is_translated(&s->key, key, s->named);
}

static bool has_seen(const struct sight *s, bool send, uint64_t device)
{
    for (int i = 0; i < s->n[send]; i++)
        if (s->devices[send][i] == device)
            return true;
    return false;
}

static struct sight *sight_at(struct flow_sights *all, uint64_t hash)
{
    uint16_t *at = &all->at[hash & (REMEMBERED - 1)];
    if (!*at) {
        vec_push(&all->v, (struct sight){0});
        *at = (uint16_t)all->v.n;
    }
    return &all->v.v[*at - 1];
}

/* Returns whether it is the same packet on the other side of a device that it came through, under a name seen on this
 * side. */
static bool is_beyond(const struct sight *s, const struct kernel_packet *k, const struct flow_sights *all, bool send)
{
    return s->send != send && s->skb && s->skb == k->skb && (uint64_t)all->ts - (uint64_t)s->ts <= RESEND_NS;
}

/* Begins a sight. `devices` is kept; its counts are reset. */
static void begin(struct sight *s, uint64_t hash, uint64_t skb, const struct flow_key *key, bool named)
{
    s->hash = hash;
    s->skb = skb;
    s->key = *key;
    s->named = named;
    s->renamed = s->send = false;
    s->n[0] = s->n[1] = 0;
    s->received = 0;
}

/* Continues with other addresses or ports; devices may show it as if for the first time. */
static void rename_to(struct sight *s, const struct flow_key *key)
{
    s->key = *key;
    s->renamed = true;
    s->n[0] = s->n[1] = 0;
}

static struct flow_seen see_send(struct sight *s)
{
    struct flow_seen seen = {.went_on = s->received};
    seen.sight = s->n[1] ? FLOW_SIGHT_AGAIN : s->n[0] || s->renamed ? FLOW_SIGHT_PASSING : FLOW_SIGHT_FIRST;
    seen.way = seen.sight == FLOW_SIGHT_PASSING && s->renamed ? FLOW_RENAMED : 0;
    s->received = 0;
    return seen;
}

/* Of devices that receive it one after another the first counts, until it goes on. */
static struct flow_seen see_receive(struct sight *s, uint64_t skb, uint64_t number)
{
    struct flow_seen seen = {.sight = s->n[0] && !s->send ? FLOW_SIGHT_AGAIN : FLOW_SIGHT_FIRST};
    if (seen.sight == FLOW_SIGHT_AGAIN)
        return seen;
    seen.went_on = s->received;
    seen.way = (s->n[1] || s->renamed) && s->skb && s->skb == skb ? FLOW_CAME_BACK : 0;
    s->received = number + 1;
    return seen;
}

struct flow_seen flow_sights_see(
    struct flow_sights *all, const struct kernel_packet *k, int64_t ts, uint64_t device, bool send, uint64_t number)
{
    all->ts = ts > all->ts ? ts : all->ts;
    struct flow_key key = flow_key_of(k, false);
    bool named = k->protocol == FLOW_TCP || k->ip_id;
    uint64_t hash = hash_packet(k, named);
    struct sight *s = sight_at(all, hash);
    bool same = is_same(all, s, hash, k->skb, &key), renamed = same && memcmp(&s->key, &key, sizeof key),
         known = same && !renamed && has_seen(s, send, device);
    /* Seen on the same device again: retransmitted unchanged, or another equal packet. */
    if (!same || (known ? !is_beyond(s, k, all, send) : !renamed && s->n[send] == MOST_DEVICES)) {
        begin(s, hash, k->skb, &key, named);
        known = false;
    } else if (renamed) {
        rename_to(s, &key);
    }
    struct flow_seen seen = send ? see_send(s) : see_receive(s, k->skb, number);
    s->ts = all->ts;
    s->send = send;
    if (!known)
        s->devices[send][s->n[send]++] = device;
    return seen;
}

static void carry_sight(struct carry *c, struct sight *s)
{
    carry_number(c, &s->hash);
    carry_number(c, &s->skb);
    carry_number(c, &s->ts);
    carry_number(c, &s->key);
    carry_bool(c, &s->named);
    carry_bool(c, &s->renamed);
    carry_bool(c, &s->send);
    carry_number(c, &s->received);
    for (int way = 0; way < 2; way++) {
        carry_below(c, &s->n[way], MOST_DEVICES + 1);
        carry_bytes(c, s->devices[way], s->n[way] * sizeof *s->devices[way]);
    }
}

/* Next remembered one from *at on, or NULL; *at: behind it. */
static struct sight *next_remembered(struct flow_sights *all, size_t *at)
{
    while (*at < REMEMBERED) {
        uint16_t i = all->at[(*at)++];
        if (i && is_remembered(all, &all->v.v[i - 1]))
            return &all->v.v[i - 1];
    }
    return NULL;
}

void flow_sights_carry(struct flow_sights *all, struct carry *c)
{
    if (c->way == CARRY_MARK)
        return;
    size_t n = 0, at = 0; /* forgotten ones are not carried */
    carry_number(c, &all->ts);
    while (c->way == CARRY_SAVE && next_remembered(all, &at))
        n++;
    n = carry_count(c, n, sizeof(uint64_t));
    at = 0;
    for (size_t i = 0; i < n && !c->damaged; i++) {
        struct sight loaded = {0};
        carry_sight(c, c->way == CARRY_SAVE ? next_remembered(all, &at) : &loaded);
        if (c->way == CARRY_LOAD && !c->damaged)
            *sight_at(all, loaded.hash) = loaded;
    }
}
