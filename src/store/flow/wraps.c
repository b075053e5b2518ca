/* SPDX-License-Identifier: MIT */
#include "flow/wraps.h"

#include <stdlib.h>

#include "base/carry.h"
#include "base/map.h"
#include "base/mem.h"
#include "kernel/kernel.h"

enum {
    REMEMBERED = 1 << 10, /* power of two; enough for packets between a tunnel's device and the one below */
    UDP = 17,
    /* IP protocols that carry packets */
    IP_IN_IP = 4,
    IP6_IN_IP = 41,
    GRE = 47,
    ESP = 50,
    ETHER_IN_IP = 97,
    L2TP = 115,
    /* bytes */
    ETHERNET = 14,
    TUNNEL_HEADER = 8, /* VXLAN, Geneve, GTP-U: behind UDP */
    MOST_OPTIONS = 64, /* options of Geneve; VLAN tags */
    GRE_HEADER = 4,
    MOST_GRE_OPTIONS = 12, /* checksum, key, number */
    WIREGUARD_AROUND = 32, /* header and checksum */
    WIREGUARD_BLOCK = 16
};
/* Delay if a softirq passes it to another (GRO cells), or if threads process it (encryption). */
#define HANDED_ON_NS UINT64_C(20000000)
#define WORKED_ON_NS UINT64_C(1000000000)

/* Last packet with an address. */
struct last {
    uint64_t skb, device, number;
    int64_t ts;
    uint32_t bytes, payload; /* size of the whole packet, of UDP's payload */
    uint8_t protocol;
    bool send;
};

struct flow_wraps {
    int64_t ts;
    struct last *v;    /* last packet by address; NULL: none yet */
    VEC(uint64_t) cpu; /* by CPU: address of its last packet */
};

struct flow_wraps *flow_wraps_new(void)
{
    struct flow_wraps *w = mem_zalloc(sizeof *w);
    w->ts = INT64_MIN;
    return w;
}

void flow_wraps_free(struct flow_wraps *w)
{
    if (w) {
        free(w->v);
        vec_free(&w->cpu);
    }
    free(w);
}

static struct last *last_at(struct flow_wraps *w, uint64_t skb)
{
    if (!w->v)
        w->v = mem_zalloc(sizeof *w->v * REMEMBERED);
    return &w->v[map_mix(skb) & (REMEMBERED - 1)];
}

/* Protocols whose packets always carry another. */
static bool is_tunnel(uint8_t protocol)
{
    return protocol == IP_IN_IP || protocol == IP6_IN_IP || protocol == GRE || protocol == ESP ||
        protocol == ETHER_IN_IP || protocol == L2TP;
}

static bool is_more(uint32_t more, uint32_t least, uint32_t options)
{
    return more >= least && more - least <= options && (more - least) % 4 == 0;
}

static bool is_more_with_ethernet(uint32_t more, uint32_t least, uint32_t options)
{
    return is_more(more, least, options) || is_more(more, least + ETHERNET, options);
}

/* Returns whether one is as much longer as a tunnel makes it. */
static bool fits(const struct last *outer, const struct last *inner)
{
    if (outer->protocol == UDP)
        return outer->payload > inner->bytes &&
            is_more_with_ethernet(outer->payload - inner->bytes, TUNNEL_HEADER, MOST_OPTIONS);
    if (!is_tunnel(outer->protocol) || outer->bytes <= inner->bytes)
        return false;
    uint32_t more = outer->bytes - inner->bytes;
    for (uint32_t ip = 20; ip <= 40; ip += 20)
        if (outer->protocol == GRE ? is_more_with_ethernet(more, ip + GRE_HEADER, MOST_GRE_OPTIONS) : more == ip)
            return true;
    return false;
}

/* Returns the same for encrypted ones: padded, and processed by threads. */
static bool fits_encrypted(const struct last *outer, const struct last *inner)
{
    uint32_t padded = (inner->bytes + WIREGUARD_BLOCK - 1) / WIREGUARD_BLOCK * WIREGUARD_BLOCK;
    return outer->protocol == UDP && outer->payload == padded + WIREGUARD_AROUND;
}

static bool is_within(const struct flow_wraps *w, const struct last *l, uint64_t ns)
{
    return l->skb && (uint64_t)w->ts - (uint64_t)l->ts <= ns;
}

/* Returns whether a packet is around another. When sent, it follows the inner one at once, on the same CPU; encrypted,
 * when a thread of the kernel has finished. When received, the inner packet comes out of it later. */
static bool is_around(struct flow_wraps *w, const struct last *now, const struct last *before, uint32_t cpu)
{
    if (now->send)
        return (w->cpu.v[cpu] == now->skb && is_within(w, before, HANDED_ON_NS) && fits(now, before)) ||
            (is_within(w, before, WORKED_ON_NS) && fits_encrypted(now, before));
    return (is_within(w, before, HANDED_ON_NS) && fits(before, now)) ||
        (is_within(w, before, WORKED_ON_NS) && fits_encrypted(before, now));
}

struct flow_wrap flow_wraps_see(
    struct flow_wraps *w, const struct kernel_record *r, uint64_t device, bool send, uint64_t number)
{
    const struct kernel_packet *k = &r->u.packet;
    struct flow_wrap wrap = {.carries = k->family && is_tunnel(k->protocol)};
    struct last now = {.skb = k->skb,
        .device = device,
        .number = number,
        .bytes = k->header_bytes + k->payload_bytes,
        .payload = k->payload_bytes,
        .protocol = k->protocol,
        .send = send};
    wrap.opaque = wrap.carries;
    w->ts = r->ts > w->ts ? r->ts : w->ts;
    now.ts = w->ts;
    while (w->cpu.n <= r->cpu)
        vec_push(&w->cpu, 0);
    if (k->skb && k->header_bytes) {
        struct last *before = last_at(w, k->skb);
        bool around = before->skb == k->skb && before->send == send && before->device != device &&
            is_around(w, &now, before, r->cpu);
        if (around && send) {
            wrap.carries = true;
            wrap.opaque = false;
        } else if (around) {
            wrap.carrier = before->number + 1;
        }
        /* A sent packet may be inside of the next one; a received one only around it. */
        if (send || wrap.carries || k->protocol == UDP)
            *before = now;
        else if (before->skb == k->skb)
            before->skb = 0;
    }
    w->cpu.v[r->cpu] = k->skb;
    return wrap;
}

static void carry_last(struct carry *c, struct last *l)
{
    carry_number(c, &l->skb);
    carry_number(c, &l->device);
    carry_number(c, &l->number);
    carry_number(c, &l->ts);
    carry_number(c, &l->bytes);
    carry_number(c, &l->payload);
    carry_number(c, &l->protocol);
    carry_bool(c, &l->send);
}

/* Next one from *at on that is still valid, or NULL; *at: behind it. */
static struct last *next_remembered(struct flow_wraps *w, size_t *at)
{
    while (w->v && *at < REMEMBERED) {
        struct last *l = &w->v[(*at)++];
        if (is_within(w, l, WORKED_ON_NS))
            return l;
    }
    return NULL;
}

void flow_wraps_carry(struct flow_wraps *w, struct carry *c)
{
    if (c->way == CARRY_MARK)
        return;
    size_t n = 0, at = 0, cpus = w->cpu.n;
    carry_number(c, &w->ts);
    while (c->way == CARRY_SAVE && next_remembered(w, &at))
        n++;
    n = carry_count(c, n, sizeof(uint64_t));
    at = 0;
    for (size_t i = 0; i < n && !c->damaged; i++) {
        struct last loaded = {0};
        carry_last(c, c->way == CARRY_SAVE ? next_remembered(w, &at) : &loaded);
        if (c->way == CARRY_LOAD && !c->damaged)
            *last_at(w, loaded.skb) = loaded;
    }
    cpus = carry_count(c, cpus, sizeof(uint64_t));
    for (size_t i = 0; i < cpus && !c->damaged; i++) {
        if (c->way == CARRY_LOAD)
            vec_push(&w->cpu, 0);
        carry_number(c, &w->cpu.v[i]);
    }
}
