/* SPDX-License-Identifier: MIT */
/* Writing a store: makes the search tables from the packets by flow. */
#include "flow/write.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "flow/messages.h"

struct ordered {
    struct flow_rank rank;
    uint32_t packet;
};

static int by_rank(const void *a, const void *b)
{
    const struct ordered *p = a, *q = b;
    return flow_rank_compare(p->rank, q->rank) ?: order_of(p->packet, q->packet);
}

/* Sorts packets by flow and rank; sets the begin of each flow's. */
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

/* Sorts own TCP sends with data by the 32 bits of seq_end: stable passes of 16 bits each if they are many, of 8 if they
 * are few. */
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

/* Collects the source or destination addresses of what this host's sockets sent. */
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

/* Returns the addresses, which an extract supplies. */
static struct flow_address *addresses_of(const struct flow_written *w, size_t *n)
{
    if (!w->own)
        return collect_addresses(w->flows, w->n_flows, true, n);
    struct flow_address *out = mem_alloc(sizeof *out * (w->n_own + 1));
    for (size_t i = 0; i < w->n_own; i++)
        out[i] = w->own[i].address;
    *n = w->n_own;
    return out;
}

int flow_write_room(size_t n_packets, struct err *e)
{
    enum { TABLES = 24 }; /* bytes per packet besides itself */
    return mem_room(n_packets * (sizeof(struct flow_disk_packet) + TABLES), "writing the flows", e);
}

int flow_write(const struct flow_written *w, struct store_place to, uint64_t key, struct err *e)
{
    struct flow_message_order messages;
    size_t n_table, n_order, n_carriers, n_addresses, n_peers;
    uint32_t *table = hash_keys(w->flows, w->n_flows, &n_table);
    name_connections(w->flows, w->n_flows, table, n_table);
    uint32_t *order = order_packets(w->flows, w->n_flows, w->packets, &n_order),
             *carriers = order_carriers(w->flows, w->packets, w->n_packets, &n_carriers);
    struct flow_address *addresses = addresses_of(w, &n_addresses),
                        *peers = collect_addresses(w->flows, w->n_flows, false, &n_peers);
    flow_message_order_init(&messages, w->packets, w->numbers, w->n_packets);

    struct store_writer *s = store_create_at(to, "flows", FLOW_VERSION, key, w->own ? 15 : 14);
    store_add(s, "head", &w->head, sizeof w->head, 1);
    store_add(s, "flows", w->flows, sizeof *w->flows, w->n_flows);
    store_add(s, "packets", w->packets, sizeof *w->packets, w->n_packets);
    store_add(s, "wakes", w->wakes, sizeof *w->wakes, w->n_wakes);
    store_add(s, "numbers", w->numbers, sizeof *w->numbers, w->n_packets);
    store_add(s, "addresses", addresses, sizeof *addresses, n_addresses);
    store_add(s, "peers", peers, sizeof *peers, n_peers);
    store_add(s, "keys", table, sizeof *table, n_table);
    store_add(s, "order", order, sizeof *order, n_order);
    store_add(s, "carriers", carriers, sizeof *carriers, n_carriers);
    store_add(s, "rows", messages.rows, sizeof *messages.rows, messages.n_rows);
    store_add(s, "messages", messages.order, sizeof *messages.order, messages.n);
    store_add(s, "replies", messages.replies.v, sizeof *messages.replies.v, messages.replies.n);
    store_add(s, "asks", w->asks, sizeof *w->asks, w->n_asks);
    if (w->own)
        store_add(s, "own", w->own, sizeof *w->own, w->n_own);
    int rc = store_commit(s, e);
    free(table);
    free(order);
    free(carriers);
    free(addresses);
    free(peers);
    flow_message_order_fini(&messages);
    return rc;
}
