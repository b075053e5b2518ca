/* SPDX-License-Identifier: MIT */
/* Settled packets as a chunk's store: packets by flow, and numbers that continue. */
#include <stdlib.h>
#include <string.h>

#include "flow/builder.h"
#include "flow/write.h"

/* A flow that was forgotten and came again is one flow of the store. */
struct placing {
    struct flow_disk_flow *flows;
    size_t n_flows;
    uint32_t *disk;  /* number in the store by flow of the builder, or NO_FLOW */
    uint32_t *turns; /* number of 2^32 added to its numbers */
    struct flow_disk_packet *packets;
    uint32_t *numbers;
};

static bool counts_bytes(const struct flow_key *k)
{
    return k->family && k->protocol == FLOW_TCP;
}

/* Flows are numbered in order of their first packets. */
static uint32_t place_flow(struct placing *s, const struct flow_builder *b, uint32_t f)
{
    const struct flow *flow = &b->flows.v[f];
    uint32_t before = flow->before;
    while (before != NO_FLOW && s->disk[before] == NO_FLOW)
        before = b->flows.v[before].before;
    if (before == NO_FLOW) {
        s->disk[f] = (uint32_t)s->n_flows++;
        s->flows[s->disk[f]] = (struct flow_disk_flow){.key = flow->key, .continued = flow->continued};
    } else {
        s->disk[f] = s->disk[before];
        s->turns[f] = counts_bytes(&flow->key)
            ? (uint32_t)(s->turns[before] + b->flows.v[before].last_seq / FLOW_TURN + 1)
            : 0;
    }
    struct flow_disk_flow *out = &s->flows[s->disk[f]];
    out->turns = s->turns[f];
    out->last_seq = flow->last_seq + s->turns[f] * FLOW_TURN;
    return s->disk[f];
}

static void count_packets(struct placing *s, const struct flow_builder *b)
{
    for (uint32_t i = 0; i < b->settled; i++) {
        const struct flow_disk_packet *p = &b->packets.v[i].p;
        uint32_t f = s->disk[p->flow];
        struct flow_disk_flow *flow = &s->flows[f == NO_FLOW ? place_flow(s, b, p->flow) : f];
        ++*(p->is_copy ? &flow->copies : p->is_send ? &flow->sends : &flow->receives);
    }
    for (size_t f = 0, next = 0; f < s->n_flows; f++) {
        struct flow_disk_flow *flow = &s->flows[f];
        flow->first = (uint32_t)next;
        next += (size_t)flow->sends + flow->receives + flow->copies;
    }
}

/* Sorts by flow, sends, receives, copies, each in order of time. */
static void place_packets(struct placing *s, const struct flow_builder *b)
{
    uint32_t(*at)[3] = mem_alloc(sizeof *at * (s->n_flows + 1));
    for (size_t f = 0; f < s->n_flows; f++) {
        const struct flow_disk_flow *flow = &s->flows[f];
        at[f][0] = flow->first;
        at[f][1] = flow->first + flow->sends;
        at[f][2] = flow->first + flow->sends + flow->receives;
    }
    for (uint32_t i = 0; i < b->settled; i++) {
        const struct flow_disk_packet *p = &b->packets.v[i].p;
        uint32_t f = s->disk[p->flow], to = at[f][p->is_copy ? 2 : !p->is_send]++;
        uint64_t more = s->turns[p->flow] * FLOW_TURN;
        struct flow_disk_flow *flow = &s->flows[f];
        struct flow_disk_packet *out = &s->packets[to];
        *out = *p;
        out->number = i;
        out->flow = f;
        out->seq_end += more;
        s->numbers[i] = to;
        if (!p->is_send || p->is_copy)
            continue;
        out->high += more;
        flow->own += flow_is_own(p);
        flow->ordered += flow_is_ordered(&flow->key, p);
    }
    free(at);
}

static void place(struct placing *s, const struct flow_builder *b)
{
    *s = (struct placing){.flows = mem_zalloc(sizeof *s->flows * (b->flows.n + 1)),
        .disk = mem_alloc(sizeof *s->disk * (b->flows.n + 1)),
        .turns = mem_zalloc(sizeof *s->turns * (b->flows.n + 1)),
        .packets = mem_alloc(sizeof *s->packets * ((size_t)b->settled + 1)),
        .numbers = mem_alloc(sizeof *s->numbers * ((size_t)b->settled + 1))};
    memset(s->disk, 0xff, sizeof *s->disk * (b->flows.n + 1));
    count_packets(s, b);
    place_packets(s, b);
}

static void placing_fini(struct placing *s)
{
    free(s->flows);
    free(s->disk);
    free(s->turns);
    free(s->packets);
    free(s->numbers);
}

static struct flow_disk_head head_of(const struct flow_builder *b)
{
    struct flow_disk_head head = {b->first_packet, b->first_wake, INT64_MAX, INT64_MIN};
    for (uint32_t i = 0; i < b->settled; i++) {
        int64_t ts = b->packets.v[i].p.ts;
        head.since = ts < head.since ? ts : head.since;
        head.until = ts > head.until ? ts : head.until;
    }
    return head;
}

static struct flow_disk_wake *list_wakes(const struct flow_builder *b)
{
    struct flow_disk_wake *wakes = mem_alloc(sizeof *wakes * ((size_t)b->wakes_decided + 1));
    for (uint32_t i = 0; i < b->wakes_decided; i++) {
        const struct wake *w = &b->wakes.v[i];
        wakes[i] = (struct flow_disk_wake){w->ts, w->row, w->last};
    }
    return wakes;
}

static int write_settled(struct flow_builder *b, struct store_place to, uint64_t key, struct err *e)
{
    struct placing at;
    int rc = flow_write_room(b->settled, e);
    if (rc)
        return rc;
    place(&at, b);
    flow_asks_sort(&b->asks);
    struct flow_disk_wake *wakes = list_wakes(b);
    rc = flow_write(&(struct flow_written){.head = head_of(b),
                        .flows = at.flows,
                        .packets = at.packets,
                        .numbers = at.numbers,
                        .wakes = wakes,
                        .asks = b->asks.asks.v,
                        .n_flows = at.n_flows,
                        .n_packets = b->settled,
                        .n_wakes = b->wakes_decided,
                        .n_asks = b->asks.asks.n},
        to, key, e);
    placing_fini(&at);
    free(wakes);
    return rc;
}

int flow_builder_write(struct flow_builder *b, struct store_place to, uint64_t key, struct err *e)
{
    flow_decide_all(b);
    return write_settled(b, to, key, e);
}

int flow_builder_cut(struct flow_builder *b, int64_t at, struct store_place to, uint64_t key, struct err *e)
{
    (void)at;
    return write_settled(b, to, key, e);
}
