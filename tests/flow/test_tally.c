/* SPDX-License-Identifier: MIT */
/* Packets sent on a flow, and those known to have arrived. */
#include "hosts.h"

static struct flow_key key_of(uint8_t from, uint16_t sport, uint8_t to, uint16_t dport)
{
    return (struct flow_key){4, 6, sport, dport, {10, 0, 0, from}, {10, 0, 0, to}};
}

static size_t flow_with(const struct host *h, const struct flow_key *key)
{
    int64_t flow = flow_lookup(h->store, key);
    assert_true(flow >= 0);
    return (size_t)flow;
}

static void assert_tally(const struct flow_tally *t, uint64_t packets, uint64_t bytes, uint64_t again_packets,
    uint64_t again_bytes, int64_t first, int64_t last)
{
    assert_int_equal(t->packets, packets);
    assert_int_equal(t->bytes, bytes);
    assert_int_equal(t->again_packets, again_packets);
    assert_int_equal(t->again_bytes, again_bytes);
    if (packets) {
        assert_int_equal(t->first, first);
        assert_int_equal(t->last, last);
    }
}

static void counts_what_goes(void **state)
{
    (void)state;
    struct host h;
    struct flow_key out = key_of(1, 1000, 2, 80), in = key_of(2, 80, 1, 1000);
    struct flow_tally sent, received;
    host_begin(&h);
    SEND(&h, .ts = 100, .from = 1, .to = 2, .sport = 1000, .dport = 80, .seq = 1, .bytes = 500, .flags = ACK, .id = 1);
    SEND(
        &h, .ts = 200, .from = 1, .to = 2, .sport = 1000, .dport = 80, .seq = 501, .bytes = 300, .flags = ACK, .id = 2);
    RECEIVE(&h, .ts = 300, .from = 2, .to = 1, .sport = 80, .dport = 1000, .seq = 9, .bytes = 7, .flags = ACK, .id = 3);
    SEND(
        &h, .ts = 400, .from = 1, .to = 2, .sport = 1000, .dport = 80, .seq = 501, .bytes = 300, .flags = ACK, .id = 4);
    SEND(&h, .ts = 500, .from = 1, .to = 2, .sport = 1000, .dport = 80, .seq = 801, .flags = ACK, .id = 5);
    host_end(&h);
    flow_tally(h.store, flow_with(&h, &out), INT64_MIN, INT64_MAX, &sent, &received);
    assert_tally(&sent, 4, 1100, 1, 300, 100, 500);
    assert_tally(&received, 0, 0, 0, 0, 0, 0);
    flow_tally(h.store, flow_with(&h, &in), INT64_MIN, INT64_MAX, &sent, &received);
    assert_tally(&sent, 0, 0, 0, 0, 0, 0);
    assert_tally(&received, 1, 7, 0, 0, 300, 300);
    flow_tally(h.store, flow_with(&h, &out), 200, 400, &sent, &received);
    assert_tally(&sent, 2, 600, 1, 300, 200, 400);
    flow_tally(h.store, 4711, INT64_MIN, INT64_MAX, &sent, &received);
    assert_tally(&sent, 0, 0, 0, 0, 0, 0);
    close_both(&h, &h);
}

/* Checks that forwarded packets count neither as sent nor as received by the host. */
static void passing_is_nobodys(void **state)
{
    (void)state;
    struct host h;
    struct flow_key key = key_of(1, 1000, 2, 80);
    struct flow_tally sent, received;
    host_begin(&h);
    for (uint16_t i = 0; i < 8; i++) {
        RECEIVE(&h, .ts = 100 + 100 * i, .from = 1, .to = 2, .sport = 1000, .dport = 80, .seq = 1 + 10u * i,
            .bytes = 10, .flags = ACK, .id = (uint16_t)(i + 1), .device = 1, .skb = 64 + i);
        packet(&h, KERNEL_PACKET_SEND,
            (struct shape){.ts = 110 + 100 * i,
                .row = -1,
                .ctx = KERNEL_CTX_SOFTIRQ,
                .vector = KERNEL_SOFTIRQ_NET_RX,
                .from = 1,
                .to = 2,
                .sport = 1000,
                .dport = 80,
                .seq = 1 + 10u * i,
                .bytes = 10,
                .flags = ACK,
                .id = (uint16_t)(i + 1),
                .device = 2,
                .skb = 64 + i});
    }
    host_end(&h);
    flow_tally(h.store, flow_with(&h, &key), INT64_MIN, INT64_MAX, &sent, &received);
    assert_tally(&sent, 0, 0, 0, 0, 0, 0);
    assert_tally(&received, 0, 0, 0, 0, 0, 0);
    close_both(&h, &h);
}

struct pairs {
    size_t n;
    int64_t delay;
};

static void on_pair(void *arg, int64_t sent, int64_t received)
{
    struct pairs *p = arg;
    p->n++;
    p->delay = received - sent;
}

/* Checks two indistinguishable packets, of which one arrived: no delay is made of them. If IP ids distinguish them, the
 * one that arrived is taken. */
static void only_what_is_certain(void **state)
{
    (void)state;
    for (uint16_t id = 0; id < 2; id++) {
        struct host a, b;
        struct flow_key key = key_of(1, 1000, 2, 80);
        struct pairs sure = {0}, all = {0};
        host_begin(&a);
        host_begin(&b);
        SEND(&a, .ts = 1000, .from = 1, .to = 2, .sport = 1000, .dport = 80, .seq = 1, .bytes = 9, .flags = ACK);
        SEND(&a, .ts = 9000, .from = 1, .to = 2, .sport = 1000, .dport = 80, .seq = 1, .bytes = 9, .flags = ACK,
            .id = id);
        RECEIVE(&b, .ts = 9500, .from = 1, .to = 2, .sport = 1000, .dport = 80, .seq = 1, .bytes = 9, .flags = ACK,
            .id = id);
        host_end(&a);
        host_end(&b);
        struct flow_link link = {0, 1, (uint32_t)flow_with(&a, &key), (uint32_t)flow_with(&b, &key)};
        flow_sure_pairs(a.store, b.store, &link, 1, on_pair, &sure);
        flow_pairs(a.store, b.store, &link, 1, on_pair, &all);
        assert_int_equal(all.n, 1);
        assert_int_equal(sure.n, id);
        if (id)
            assert_int_equal(sure.delay, 500);
        close_both(&a, &b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_what_goes),
        cmocka_unit_test(passing_is_nobodys),
        cmocka_unit_test(only_what_is_certain),
    };
    return RUN_CUT("tally", tests);
}
