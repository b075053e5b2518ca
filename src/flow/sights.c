#include "flow/sights.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "flow/builder.h"

enum {
    REMEMBERED = 1 << 15, /* a power of two */
    MOST_DEVICES = 6      /* stacked on each other; a packet on further ones counts as another one */
};

struct sight {
    uint64_t hash, skb;
    struct flow_key key;
    bool named;   /* by itself: bytes of a connection, or an IP id */
    bool renamed; /* seen before with other addresses or ports */
    uint8_t n[2]; /* receives, sends, with the present ones */
    uint32_t devices[2][MOST_DEVICES];
};

struct flow_sights {
    struct sight sights[REMEMBERED];
};

struct flow_sights *flow_sights_new(void)
{
    return mem_zalloc(sizeof(struct flow_sights));
}

void flow_sights_free(struct flow_sights *s)
{
    free(s);
}

/* What does not change under way: addresses and ports may. */
static uint64_t hash_packet(const struct kernel_packet *k, bool named)
{
    uint64_t bytes = (uint64_t)k->payload_bytes << 32 | (uint64_t)k->ip_id << 16 | (k->flags & 0x1ff);
    return map_mix(bytes) ^
        map_mix((uint64_t)k->protocol << 56 ^
            (k->protocol == FLOW_TCP ? (uint64_t)k->seq << 32 | k->ack
                    : named          ? 0
                                     : k->skb));
}

/* Translation leaves one end as it was, and bytes and names as they were. */
static bool is_translated(const struct flow_key *a, const struct flow_key *b, bool named)
{
    bool source = a->sport == b->sport && !memcmp(a->saddr, b->saddr, sizeof a->saddr);
    bool target = a->dport == b->dport && !memcmp(a->daddr, b->daddr, sizeof a->daddr);
    return named || source || target;
}

static bool is_same(const struct sight *s, uint64_t hash, uint64_t skb, const struct flow_key *key)
{
    if (s->hash != hash || !(s->n[0] + s->n[1]))
        return false;
    if (!memcmp(&s->key, key, sizeof *key))
        return s->named || (s->skb && s->skb == skb);
    return s->skb && s->skb == skb && is_translated(&s->key, key, s->named);
}

static bool has_seen(const struct sight *s, bool send, uint32_t device)
{
    for (int i = 0; i < s->n[send]; i++)
        if (s->devices[send][i] == device)
            return true;
    return false;
}

enum flow_sight flow_sights_see(struct flow_sights *all, const struct kernel_packet *k, bool send)
{
    struct flow_key key = flow_key_of(k, false);
    bool named = k->protocol == FLOW_TCP || k->ip_id;
    uint64_t hash = hash_packet(k, named);
    struct sight *s = &all->sights[hash & (REMEMBERED - 1)];
    bool same = is_same(s, hash, k->skb, &key), renamed = same && memcmp(&s->key, &key, sizeof key);
    /* The same device again: sent again unchanged, or another packet of the same look. */
    if (!same || renamed || s->n[send] == MOST_DEVICES || has_seen(s, send, k->device)) {
        s->hash = hash;
        s->skb = k->skb;
        s->key = key;
        s->named = named;
        s->renamed = renamed;
        s->n[0] = s->n[1] = 0;
    }
    enum flow_sight sight = s->n[send]    ? FLOW_SIGHT_AGAIN
        : send && (s->n[0] || s->renamed) ? FLOW_SIGHT_PASSING
                                          : FLOW_SIGHT_FIRST;
    s->devices[send][s->n[send]++] = k->device;
    return sight;
}
