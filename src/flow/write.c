/* The making of a chunk's store from what is settled: packets by flow, and the tables that are searched. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "flow/builder.h"
#include "flow/messages.h"

/* ---- packets by flow ---- */

/* A flow that was forgotten and came again is one flow of the store. */
struct placing {
    struct flow_disk_flow *flows;
    size_t n_flows;
    uint32_t *disk;  /* by flow of the builder: its number in the store, or NO_FLOW */
    uint32_t *turns; /* of 2^32, that are added to its numbers */
    struct flow_disk_packet *packets;
    uint32_t *numbers;
};

static bool counts_bytes(const struct flow_key *k)
{
    return k->family && k->protocol == FLOW_TCP;
}

/* Flows are numbered in the order of their first packets. */
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

/* By flow, sends, receives, copies, each in time order. */
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

/* ---- tables ---- */

struct ordered {
    struct flow_rank rank;
    uint32_t packet;
};

static int by_rank(const void *a, const void *b)
{
    const struct ordered *p = a, *q = b;
    return flow_rank_compare(p->rank, q->rank) ?: order_of(p->packet, q->packet);
}

/* The packets by flow and rank; sets where each flow's begin. */
static uint32_t *order_packets(
    struct flow_disk_flow *flows, size_t n_flows, const struct flow_disk_packet *packets, size_t *n)
{
    VEC(struct ordered) some = {0};
    VEC(uint32_t) order = {0};
    for (size_t f = 0; f < n_flows; f++) {
        flows[f].first_ordered = (uint32_t)order.n;
        some.n = 0;
        for (uint32_t i = 0; flows[f].ordered && i < flows[f].sends; i++) {
            const struct flow_disk_packet *p = &packets[flows[f].first + i];
            if (flow_is_ordered(&flows[f].key, p))
                vec_push(&some, ((struct ordered){flow_rank_of(&flows[f].key, p), flows[f].first + i}));
        }
        if (some.n > 1)
            qsort(some.v, some.n, sizeof *some.v, by_rank);
        for (size_t i = 0; i < some.n; i++)
            vec_push(&order, some.v[i].packet);
    }
    vec_free(&some);
    *n = order.n;
    return order.v;
}

/* Own TCP sends that carry something, by the 32 bits of seq_end: stable passes, over 16 bits each where they are many,
 * over 8 where they are few. */
static uint32_t *order_carriers(
    const struct flow_disk_flow *flows, const struct flow_disk_packet *packets, size_t n_packets, size_t *n)
{
    VEC(uint32_t) list = {0};
    for (size_t i = 0; i < n_packets; i++) {
        const struct flow_key *key = &flows[packets[i].flow].key;
        if (key->family && key->protocol == FLOW_TCP && flow_is_own(&packets[i]) && flow_carries(&packets[i]))
            vec_push(&list, (uint32_t)i);
    }
    uint32_t *from = list.v, *to = mem_alloc(sizeof *to * (list.n + 1));
    const unsigned bits = list.n < 1 << 14 ? 8 : 16;
    const size_t digits = (size_t)1 << bits;
    uint32_t *starts = mem_alloc(sizeof *starts * (digits + 1));
    for (unsigned shift = 0; shift < 32; shift += bits) {
        memset(starts, 0, sizeof *starts * (digits + 1));
        for (size_t i = 0; i < list.n; i++)
            starts[(packets[from[i]].seq_end >> shift & (digits - 1)) + 1]++;
        for (size_t v = 1; v < digits; v++)
            starts[v] += starts[v - 1];
        for (size_t i = 0; i < list.n; i++)
            to[starts[packets[from[i]].seq_end >> shift & (digits - 1)]++] = from[i];
        uint32_t *done = to;
        to = from;
        from = done;
    }
    free(starts);
    free(to);
    *n = list.n;
    return from;
}

/* The source or destination addresses of what this host's sockets sent. */
static struct flow_address *collect_addresses(
    const struct flow_disk_flow *flows, size_t n_flows, bool source, size_t *n)
{
    struct flow_addresses list = {0};
    for (size_t f = 0; f < n_flows; f++)
        if (flows[f].own)
            flow_add_address(&list, &flows[f].key, source);
    map_fini(&list.seen);
    *n = list.v.n;
    return list.v.v;
}

static uint32_t *hash_keys(const struct flow_disk_flow *flows, size_t n, size_t *size)
{
    *size = 16;
    while (*size < n * 2 + 1)
        *size *= 2;
    uint32_t *table = mem_zalloc(sizeof *table * *size);
    for (size_t f = 0; f < n; f++) {
        size_t h = flow_key_hash(&flows[f].key) & (*size - 1);
        while (table[h])
            h = (h + 1) & (*size - 1);
        table[h] = (uint32_t)f + 1;
    }
    return table;
}

static void name_connections(struct flow_disk_flow *flows, size_t n, const uint32_t *table, size_t size)
{
    for (size_t f = 0; f < n; f++) {
        struct flow_key back = flow_key_reverse(&flows[f].key);
        size_t h = flow_key_hash(&back) & (size - 1);
        while (table[h] && memcmp(&flows[table[h] - 1].key, &back, sizeof back) != 0)
            h = (h + 1) & (size - 1);
        flows[f].connection = table[h] && table[h] - 1 < f ? table[h] - 1 : (uint32_t)f;
    }
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
    struct flow_message_order messages;
    size_t n_table, n_order, n_carriers, n_addresses, n_peers;
    enum { TABLES = 24 }; /* bytes of a packet beside itself */
    int rc = mem_room(b->settled * (sizeof(struct flow_disk_packet) + TABLES), "writing the flows", e);
    if (rc)
        return rc;
    place(&at, b);
    flow_asks_sort(&b->asks);
    struct flow_disk_head head = head_of(b);
    struct flow_disk_wake *wakes = list_wakes(b);
    uint32_t *table = hash_keys(at.flows, at.n_flows, &n_table);
    name_connections(at.flows, at.n_flows, table, n_table);
    uint32_t *order = order_packets(at.flows, at.n_flows, at.packets, &n_order),
             *carriers = order_carriers(at.flows, at.packets, b->settled, &n_carriers);
    struct flow_address *addresses = collect_addresses(at.flows, at.n_flows, true, &n_addresses),
                        *peers = collect_addresses(at.flows, at.n_flows, false, &n_peers);
    flow_message_order_init(&messages, at.packets, at.numbers, b->settled);

    struct store_writer *s = store_create_at(to, "flows", FLOW_VERSION, key, 14);
    store_add(s, "head", &head, sizeof head, 1);
    store_add(s, "flows", at.flows, sizeof *at.flows, at.n_flows);
    store_add(s, "packets", at.packets, sizeof *at.packets, b->settled);
    store_add(s, "wakes", wakes, sizeof *wakes, b->wakes_decided);
    store_add(s, "numbers", at.numbers, sizeof *at.numbers, b->settled);
    store_add(s, "addresses", addresses, sizeof *addresses, n_addresses);
    store_add(s, "peers", peers, sizeof *peers, n_peers);
    store_add(s, "keys", table, sizeof *table, n_table);
    store_add(s, "order", order, sizeof *order, n_order);
    store_add(s, "carriers", carriers, sizeof *carriers, n_carriers);
    store_add(s, "rows", messages.rows, sizeof *messages.rows, messages.n_rows);
    store_add(s, "messages", messages.order, sizeof *messages.order, messages.n);
    store_add(s, "replies", messages.replies.v, sizeof *messages.replies.v, messages.replies.n);
    store_add(s, "asks", b->asks.asks.v, sizeof *b->asks.asks.v, b->asks.asks.n);
    rc = store_commit(s, e);
    placing_fini(&at);
    free(wakes);
    free(table);
    free(order);
    free(carriers);
    free(addresses);
    free(peers);
    flow_message_order_fini(&messages);
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
