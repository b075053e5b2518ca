/* The end of a flow store's making, when all users are known: which receive woke whom, whose each packet is, what only
 * passed through; then the tables. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "flow/builder.h"
#include "flow/messages.h"

/* Which receive of the run woke the thread: first those whose connection it uses, then those not yet taken, then those
 * with payload; of equals the earliest. */
static uint32_t waking_receive(const struct flow_builder *b, const struct wake *w)
{
    const struct kernel_thread *t = flow_thread(b, w->row);
    uint32_t best = NO_PACKET, looked_at = 0;
    int best_score = -1;
    for (uint32_t i = w->last; i != NO_PACKET && looked_at < MOST_IN_RUN; i = b->packets.v[i].before, looked_at++) {
        const struct built_packet *p = &b->packets.v[i];
        int score = (int)flow_relation(b, p->life, w->row) * 4 + (p->consumed ? 0 : 2) + (flow_carries(&p->p) ? 1 : 0);
        if (score >= best_score) {
            best_score = score;
            best = i;
        }
    }
    bool unrelated = best_score < POSSIBLE * 4;
    if (best != NO_PACKET && unrelated && (looked_at > 1 || !t || flow_kernel_thread(t)))
        return NO_PACKET;
    return best;
}

static void decide_wakes(struct flow_builder *b)
{
    for (size_t i = 0; i < b->packets.n; i++)
        b->packets.v[i].consumed = false;
    for (size_t i = 0; i < b->wakes.n; i++) {
        struct wake *w = &b->wakes.v[i];
        if (!w->decided)
            w->last = waking_receive(b, w);
        if (w->last != NO_PACKET)
            b->packets.v[w->last].consumed = true;
    }
}

/* The row that each receive woke, or KERNEL_NO_ROW. */
static int32_t *woken_rows(const struct flow_builder *b)
{
    int32_t *woken = mem_alloc(sizeof *woken * (b->packets.n + 1));
    for (size_t i = 0; i < b->packets.n; i++)
        woken[i] = KERNEL_NO_ROW;
    for (size_t i = b->wakes.n; i-- > 0;) {
        const struct wake *w = &b->wakes.v[i];
        const struct kernel_thread *t = flow_thread(b, w->row);
        if (w->last != NO_PACKET && t && !flow_kernel_thread(t))
            woken[w->last] = w->row;
    }
    return woken;
}

/* The two ends of a flow on this host, as far as seen: who sent on it last, who was woken by it last. */
struct ends {
    int32_t sender, reader;
};

static const struct ends NOBODY = {KERNEL_NO_ROW, KERNEL_NO_ROW};

static void see(struct ends *ends, const struct flow_disk_packet *p, int32_t woken)
{
    if (p->is_send && p->origin == FLOW_BY_THREAD)
        ends[p->flow].sender = p->row;
    if (woken != KERNEL_NO_ROW)
        ends[p->flow].reader = woken;
}

/* Flows most of whose sends were seen to come in before: all of them only passed through, also those that were not (the
 * records of how they came were lost). */
static void decide_passing(struct flow_builder *b)
{
    for (size_t i = 0; i < b->packets.n; i++) {
        struct flow_disk_packet *p = &b->packets.v[i].p;
        struct flow *flow = &b->flows.v[p->flow];
        if (!p->is_send || p->is_copy || p->origin == FLOW_PASSING || flow->passing * UINT64_C(2) <= flow->sends)
            continue;
        p->origin = FLOW_PASSING;
        p->row = KERNEL_NO_ROW;
        p->receive = NO_PACKET;
    }
}

/* Both directions of a connection begin anew. */
static void forget_ends(const struct flow_builder *b, struct ends *ends, uint32_t flow)
{
    ends[flow] = NOBODY;
    if (b->flows.v[flow].reverse != NO_FLOW)
        ends[b->flows.v[flow].reverse] = NOBODY;
}

struct first_ends {
    struct ends of, reverse;
};

/* A socket belongs to whoever sent from it last; before the first send, to whoever sends first; without any send, to
 * the thread that its packets woke. Directions are apart: both ends of a loopback connection are on this host. A
 * connection that begins anew on the same addresses and ports is another socket's. */
static void decide_owners(struct flow_builder *b)
{
    int32_t *woken = woken_rows(b);
    struct ends *ends = mem_alloc(sizeof *ends * (b->flows.n + 1));
    VEC(struct first_ends) firsts = {0}; /* of the connections that begin anew, the last first */
    for (size_t f = 0; f < b->flows.n; f++)
        ends[f] = NOBODY;
    for (size_t i = b->packets.n; i-- > 0;) {
        uint32_t f = b->packets.v[i].p.flow, reverse = b->flows.v[f].reverse;
        see(ends, &b->packets.v[i].p, woken[i]);
        if (!b->packets.v[i].begins)
            continue;
        vec_push(&firsts, ((struct first_ends){ends[f], reverse == NO_FLOW ? NOBODY : ends[reverse]}));
        forget_ends(b, ends, f);
    }
    for (size_t i = 0; i < b->packets.n; i++) {
        struct flow_disk_packet *p = &b->packets.v[i].p;
        uint32_t reverse = b->flows.v[p->flow].reverse, out = p->is_send ? p->flow : reverse,
                 in = p->is_send ? reverse : p->flow;
        if (b->packets.v[i].begins) {
            ends[p->flow] = firsts.v[--firsts.n].of;
            if (reverse != NO_FLOW)
                ends[reverse] = firsts.v[firsts.n].reverse;
        }
        see(ends, p, woken[i]);
        if (p->origin == FLOW_BY_RECEIVE || p->origin == FLOW_PASSING || p->is_copy ||
            (p->is_send && p->origin == FLOW_BY_THREAD))
            continue;
        p->row = out == NO_FLOW ? KERNEL_NO_ROW : ends[out].sender;
        if (p->row == KERNEL_NO_ROW && in != NO_FLOW)
            p->row = ends[in].reader;
        if (p->is_send && p->row >= 0)
            p->origin = FLOW_BY_THREAD;
    }
    vec_free(&firsts);
    free(woken);
    free(ends);
}

/* ---- tables ---- */

/* Where each packet goes in the store: by flow, sends, receives, copies, each in time order. */
static void place_packets(
    const struct flow_builder *b, struct flow_disk_flow *flows, struct flow_disk_packet *packets, uint32_t *numbers)
{
    uint32_t next = 0;
    uint32_t(*at)[3] = mem_alloc(sizeof *at * (b->flows.n + 1));
    for (size_t f = 0; f < b->flows.n; f++) {
        const struct flow *flow = &b->flows.v[f];
        flows[f] = (struct flow_disk_flow){.key = flow->key,
            .first = next,
            .sends = flow->sends,
            .receives = flow->receives,
            .copies = flow->copies,
            .connection = flow->connection};
        at[f][0] = next;
        at[f][1] = next + flow->sends;
        at[f][2] = next + flow->sends + flow->receives;
        next += flow->sends + flow->receives + flow->copies;
    }
    for (size_t i = 0; i < b->packets.n; i++) {
        const struct flow_disk_packet *p = &b->packets.v[i].p;
        struct flow_disk_flow *flow = &flows[p->flow];
        uint32_t to = at[p->flow][p->is_copy ? 2 : !p->is_send]++;
        packets[to] = *p;
        numbers[p->number] = to;
        if (!p->is_send || p->is_copy)
            continue;
        uint64_t high = to > flow->first ? packets[to - 1].high : 0;
        bool reaches = flow_is_own(p) && flow_carries(p) && p->seq_end > high;
        packets[to].high = reaches ? p->seq_end : high;
        flow->own += flow_is_own(p);
        flow->ordered += flow_is_ordered(&flow->key, p);
    }
    free(at);
}

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

/* Own TCP sends that carry something, by the 32 bits of seq_end: two stable passes over 16 bits each. */
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
    uint32_t *starts = mem_alloc(sizeof *starts * 65537);
    for (unsigned shift = 0; shift < 32; shift += 16) {
        memset(starts, 0, sizeof *starts * 65537);
        for (size_t i = 0; i < list.n; i++)
            starts[(packets[from[i]].seq_end >> shift & 0xffff) + 1]++;
        for (size_t v = 1; v < 65536; v++)
            starts[v] += starts[v - 1];
        for (size_t i = 0; i < list.n; i++)
            to[starts[packets[from[i]].seq_end >> shift & 0xffff]++] = from[i];
        uint32_t *done = to;
        to = from;
        from = done;
    }
    free(starts);
    free(to);
    *n = list.n;
    return from;
}

/* The source or destination addresses of what this host's sockets sent, each once. */
static struct flow_address *collect_addresses(
    const struct flow_disk_flow *flows, size_t n_flows, bool source, size_t *n)
{
    VEC(struct flow_address) list = {0};
    struct map seen = {0};
    for (size_t f = 0; f < n_flows; f++) {
        struct flow_address a = {.family = flows[f].key.family};
        memcpy(a.addr, source ? flows[f].key.saddr : flows[f].key.daddr, sizeof a.addr);
        if (!flows[f].own || !a.family)
            continue;
        uint64_t *at;
        for (uint64_t h = map_hash(&a, sizeof a);; h++)
            if (!*(at = map_put(&seen, h, NULL)) || !memcmp(&list.v[*at - 1], &a, sizeof a))
                break;
        if (*at)
            continue;
        *at = list.n + 1;
        vec_push(&list, a);
    }
    map_fini(&seen);
    *n = list.n;
    return list.v;
}

static uint32_t *hash_keys(const struct flow_builder *b, size_t *size)
{
    *size = 16;
    while (*size < b->flows.n * 2 + 1)
        *size *= 2;
    uint32_t *table = mem_zalloc(sizeof *table * *size);
    for (size_t f = 0; f < b->flows.n; f++) {
        size_t h = flow_key_hash(&b->flows.v[f].key) & (*size - 1);
        while (table[h])
            h = (h + 1) & (*size - 1);
        table[h] = (uint32_t)f + 1;
    }
    return table;
}

int flow_builder_write(struct flow_builder *b, const char *path, uint64_t fingerprint, struct err *e)
{
    decide_wakes(b);
    decide_passing(b);
    decide_owners(b);
    flow_asks_sort(&b->asks);
    size_t n = b->packets.n, n_numbers = 0, n_table, n_order, n_carriers, n_addresses, n_peers;
    for (size_t i = 0; i < n; i++)
        if (b->packets.v[i].p.number >= n_numbers)
            n_numbers = (size_t)b->packets.v[i].p.number + 1;
    struct flow_disk_flow *flows = mem_zalloc(sizeof *flows * (b->flows.n + 1));
    struct flow_disk_packet *packets = mem_zalloc(sizeof *packets * (n + 1));
    struct flow_disk_wake *wakes = mem_zalloc(sizeof *wakes * (b->wakes.n + 1));
    uint32_t *numbers = mem_alloc(sizeof *numbers * (n_numbers + 1));
    memset(numbers, 0xff, sizeof *numbers * (n_numbers + 1));
    place_packets(b, flows, packets, numbers);
    for (size_t i = 0; i < b->wakes.n; i++) {
        const struct wake *w = &b->wakes.v[i];
        wakes[i] = (struct flow_disk_wake){
            w->ts, w->row, w->last == NO_PACKET ? NO_PACKET : b->packets.v[w->last].p.number};
    }
    uint32_t *table = hash_keys(b, &n_table), *order = order_packets(flows, b->flows.n, packets, &n_order),
             *carriers = order_carriers(flows, packets, n, &n_carriers);
    struct flow_address *addresses = collect_addresses(flows, b->flows.n, true, &n_addresses),
                        *peers = collect_addresses(flows, b->flows.n, false, &n_peers);
    struct flow_message_order messages;
    flow_message_order_init(&messages, packets, n, numbers, n_numbers);

    struct store_writer *s = store_create(path, "flows", FLOW_VERSION, fingerprint, 13);
    store_add(s, "flows", flows, sizeof *flows, b->flows.n);
    store_add(s, "packets", packets, sizeof *packets, n);
    store_add(s, "wakes", wakes, sizeof *wakes, b->wakes.n);
    store_add(s, "numbers", numbers, sizeof *numbers, n_numbers);
    store_add(s, "addresses", addresses, sizeof *addresses, n_addresses);
    store_add(s, "peers", peers, sizeof *peers, n_peers);
    store_add(s, "keys", table, sizeof *table, n_table);
    store_add(s, "order", order, sizeof *order, n_order);
    store_add(s, "carriers", carriers, sizeof *carriers, n_carriers);
    store_add(s, "rows", messages.rows, sizeof *messages.rows, messages.n_rows);
    store_add(s, "messages", messages.order, sizeof *messages.order, messages.n);
    store_add(s, "replies", messages.replies.v, sizeof *messages.replies.v, messages.replies.n);
    store_add(s, "asks", b->asks.asks.v, sizeof *b->asks.asks.v, b->asks.asks.n);
    int rc = store_commit(s, e);
    free(flows);
    free(packets);
    free(wakes);
    free(numbers);
    free(table);
    free(order);
    free(carriers);
    free(addresses);
    free(peers);
    flow_message_order_fini(&messages);
    return rc;
}
