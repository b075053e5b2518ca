/* SPDX-License-Identifier: MIT */
/* Extract for clocks: choice of a host's flows, and a store with their packets. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "flow/write.h"

/* ---- choice of flows ---- */

size_t flow_hashes(const struct flow_store *s, uint64_t **out)
{
    VEC(uint64_t) all = {0};
    struct flow_key key;
    size_t n = 0;
    for (size_t f = 0, flows = flow_count(s); f < flows; f++) {
        flow_key(s, f, &key);
        if (!flow_is_anonymous(&key))
            vec_push(&all, flow_key_hash(&key));
    }
    if (all.n)
        qsort(all.v, all.n, sizeof *all.v, order_u64);
    for (size_t i = 0; i < all.n; i++)
        if (!n || all.v[i] != all.v[n - 1])
            all.v[n++] = all.v[i];
    *out = all.v;
    return n;
}

/* Finds the hashes of others that this host has, too, and the others' addresses. */
static void find_common(
    const struct flow_store *s, const struct flow_other *others, size_t n, struct map *flows, struct map *addresses)
{
    struct flow_key key;
    for (size_t f = 0, count = flow_count(s); f < count; f++) {
        flow_key(s, f, &key);
        map_put(flows, flow_key_hash(&key), NULL);
    }
    for (size_t h = 0; h < n; h++) {
        for (size_t i = 0; i < others[h].n_hashes; i++) {
            uint64_t *at = map_find(flows, others[h].hashes[i]);
            if (at)
                *at = true;
        }
        for (size_t i = 0; i < others[h].n_own; i++)
            map_put(addresses, map_hash(&others[h].own[i].address, sizeof others[h].own[i].address), NULL);
    }
}

/* TCP only: only for sent bytes is it known that the sender should have seen them. */
static bool came_from(const struct flow_store *s, size_t flow, const struct flow_key *key, const struct map *addresses)
{
    struct flow_address source = {.family = key->family};
    if (!key->family || key->protocol != FLOW_TCP || !flow_receives(s, flow))
        return false;
    memcpy(source.addr, key->saddr, sizeof source.addr);
    return map_find(addresses, map_hash(&source, sizeof source)) != NULL;
}

size_t flow_needed(const struct flow_store *s, const struct flow_other *others, size_t n, uint32_t **out)
{
    VEC(uint32_t) needed = {0};
    struct map flows = {0}, addresses = {0};
    struct flow_key key;
    find_common(s, others, n, &flows, &addresses);
    for (size_t f = 0, count = flow_count(s); f < count; f++) {
        flow_key(s, f, &key);
        const uint64_t *common = map_find(&flows, flow_key_hash(&key));
        if (!flow_is_anonymous(&key) && ((common && *common) || came_from(s, f, &key, &addresses)))
            vec_push(&needed, (uint32_t)f);
    }
    map_fini(&flows);
    map_fini(&addresses);
    *out = needed.v;
    return needed.n;
}

/* ---- packets of the chosen flows ---- */

struct taken {
    VEC(struct flow_disk_flow) flows;
    VEC(struct flow_disk_packet) packets;
};

static void take_packet(struct taken *t, const struct flow_disk_packet *p, uint32_t turns, bool send)
{
    struct flow_disk_flow *flow = &t->flows.v[t->flows.n - 1];
    struct flow_disk_packet out = {.ts = p->ts,
        .seq_end = p->seq_end + turns * FLOW_TURN,
        .ack = p->ack,
        .bytes = p->bytes,
        .number = (uint32_t)t->packets.n,
        .row = -1,
        .flow = (uint32_t)t->flows.n - 1,
        .flags = p->flags,
        .ip_id = p->ip_id,
        .origin = send && p->origin == FLOW_PASSING ? FLOW_PASSING : FLOW_BY_UNKNOWN,
        .retransmission = p->retransmission != 0,
        .is_send = send,
        .way = p->way};
    uint64_t high = send && flow->sends ? t->packets.v[t->packets.n - 1].high : 0;
    if (flow_is_own(&out) && flow_carries(&out) && out.seq_end > high)
        high = out.seq_end;
    out.high = high;
    flow->sends += send;
    flow->receives += !send;
    flow->own += flow_is_own(&out);
    flow->ordered += flow_is_ordered(&flow->key, &out);
    if (flow->key.family && flow->key.protocol == FLOW_TCP && out.seq_end > flow->last_seq)
        flow->last_seq = out.seq_end;
    vec_push(&t->packets, out);
}

static void take_packets(struct taken *t, const struct flow_view *v, bool sends)
{
    struct flow_walk w = {.view = v, .sends = sends};
    for (uint64_t i = 0, n = flow_walk_count(v, sends); i < n; i++) {
        const struct flow_disk_packet *p = flow_walk_at(&w, i);
        take_packet(t, p, v->places[w.place].turns, sends);
    }
}

static void take_flow(struct taken *t, const struct flow_view *v, const struct flow_key *key)
{
    vec_push(&t->flows, ((struct flow_disk_flow){.key = *key, .first = (uint32_t)t->packets.n}));
    take_packets(t, v, true);
    take_packets(t, v, false);
}

static int make_room(const struct flow_store *s, const uint32_t *flows, size_t n, struct taken *t, struct err *e)
{
    size_t packets = 0, most = 0;
    for (size_t c = 0; c < s->n; c++)
        most += s->chunks[c].n_packets;
    for (size_t i = 0; i < n; i++) {
        assert(flows[i] < flow_count(s) && (!i || flows[i - 1] < flows[i]));
        packets += flow_sends(s, flows[i]) + flow_receives(s, flows[i]);
    }
    if (packets > most)
        return err_set(e, ERR_FORMAT, "a packet is of several flows: index the trace again (weft index --force)");
    if (packets >= UINT32_MAX)
        return err_set(e, ERR_UNSUPPORTED, "more than 2^32 packets in common with other hosts; give less of the trace");
    int rc = flow_write_room(packets, e);
    if (rc)
        return rc;
    vec_reserve(&t->flows, n + 1);
    vec_reserve(&t->packets, packets + 1);
    return 0;
}

static struct flow_disk_own *own_of(const struct flow_store *s, size_t *n)
{
    struct flow_own_address *all;
    *n = flow_own_addresses(s, &all);
    struct flow_disk_own *own = mem_zalloc(sizeof *own * (*n + 1));
    for (size_t i = 0; i < *n; i++)
        own[i] = (struct flow_disk_own){.since = all[i].since, .address = all[i].address};
    free(all);
    return own;
}

static int write_taken(const struct flow_store *s, const struct taken *t, const char *path, struct err *e)
{
    uint32_t *numbers = mem_alloc(sizeof *numbers * (t->packets.n + 1));
    size_t n_own;
    struct flow_disk_own *own = own_of(s, &n_own);
    for (size_t i = 0; i < t->packets.n; i++)
        numbers[i] = (uint32_t)i;
    int rc = flow_intact(s, e);
    if (!rc)
        rc = flow_write(&(struct flow_written){.head = {.since = s->chunks[0].since, .until = flow_last(s)},
                            .flows = t->flows.v,
                            .packets = t->packets.v,
                            .numbers = numbers,
                            .own = own,
                            .n_flows = t->flows.n,
                            .n_packets = t->packets.n,
                            .n_own = n_own},
            store_file(path), 0, e);
    free(numbers);
    free(own);
    return rc;
}

int flow_extract(const struct flow_store *s, const uint32_t *flows, size_t n, const char *path, struct err *e)
{
    struct taken t = {0};
    int rc = make_room(s, flows, n, &t, e);
    for (size_t i = 0; i < n && !rc; i++) {
        struct flow_view v;
        struct flow_key key;
        flow_view_of(s, flows[i], &v);
        flow_key(s, flows[i], &key);
        take_flow(&t, &v, &key);
    }
    if (!rc)
        rc = write_taken(s, &t, path, e);
    vec_free(&t.flows);
    vec_free(&t.packets);
    return rc ? err_wrap(e, "what others need of the flows") : 0;
}
