#include "flow/sights.h"

#include <stdlib.h>
#include <string.h>

#include "base/carry.h"
#include "base/map.h"
#include "base/mem.h"
#include "flow/builder.h"

/* Beyond what queues hold. */
#define REMEMBERED_NS UINT64_C(10000000000)
enum {
    REMEMBERED = 1 << 15, /* a power of two, below that of the type of `at` */
    MOST_DEVICES = 6      /* stacked on each other; a packet on further ones counts as another one */
};

struct sight {
    uint64_t hash, skb;
    int64_t ts; /* the greatest that had been seen */
    struct flow_key key;
    bool named;   /* by itself: bytes of a connection, or an IP id */
    bool renamed; /* seen before with other addresses or ports */
    uint8_t n[2]; /* receives, sends, with the present ones */
    uint64_t devices[2][MOST_DEVICES];
};

struct flow_sights {
    int64_t ts; /* the greatest so far */
    VEC(struct sight) v;
    uint16_t at[REMEMBERED]; /* by hash: number in v + 1; a packet takes the place of one before it */
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

enum flow_sight flow_sights_see(
    struct flow_sights *all, const struct kernel_packet *k, int64_t ts, uint64_t device, bool send)
{
    all->ts = ts > all->ts ? ts : all->ts;
    struct flow_key key = flow_key_of(k, false);
    bool named = k->protocol == FLOW_TCP || k->ip_id;
    uint64_t hash = hash_packet(k, named);
    struct sight *s = sight_at(all, hash);
    bool same = is_same(all, s, hash, k->skb, &key), renamed = same && memcmp(&s->key, &key, sizeof key);
    /* The same device again: sent again unchanged, or another packet of the same look. */
    if (!same || renamed || s->n[send] == MOST_DEVICES || has_seen(s, send, device)) {
        s->hash = hash;
        s->skb = k->skb;
        s->key = key;
        s->named = named;
        s->renamed = renamed;
        s->n[0] = s->n[1] = 0;
    }
    s->ts = all->ts;
    enum flow_sight sight = s->n[send]    ? FLOW_SIGHT_AGAIN
        : send && (s->n[0] || s->renamed) ? FLOW_SIGHT_PASSING
                                          : FLOW_SIGHT_FIRST;
    s->devices[send][s->n[send]++] = device;
    return sight;
}

static void carry_sight(struct carry *c, struct sight *s)
{
    carry_number(c, &s->hash);
    carry_number(c, &s->skb);
    carry_number(c, &s->ts);
    carry_number(c, &s->key);
    carry_bool(c, &s->named);
    carry_bool(c, &s->renamed);
    for (int way = 0; way < 2; way++) {
        carry_below(c, &s->n[way], MOST_DEVICES + 1);
        carry_bytes(c, s->devices[way], s->n[way] * sizeof *s->devices[way]);
    }
}

/* The next one from *at on that is remembered, or NULL; *at: behind it. */
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
    size_t n = 0, at = 0; /* what is not remembered any more is not carried */
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
