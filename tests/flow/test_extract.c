/* SPDX-License-Identifier: MIT */
/* Extracts of a host's flows for other hosts' clocks: exactly the flows common to two hosts and those from another's
 * address, all of them unchanged. */
#include <stdio.h>

#include "extracts.h"
#include "hosts.h"

static int64_t flow_between(const struct host *h, uint8_t from, uint16_t sport, uint8_t to, uint16_t dport, bool udp)
{
    struct flow_key key = {
        .family = 4, .protocol = udp ? 17 : 6, .sport = sport, .dport = dport, .saddr = {10, 0, 0, from}};
    memcpy(key.daddr, (uint8_t[]){10, 0, 0, to}, 4);
    return flow_lookup(h->store, &key);
}

static bool is_in(const uint32_t *flows, size_t n, int64_t flow)
{
    bool in = false;
    assert_true(flow >= 0);
    for (size_t i = 0; i < n; i++)
        in |= flows[i] == flow;
    return in;
}

/* Makes host 1 talk to host 2, to itself, to the unknown host 9, and receive unrecorded packets of 2. */
static void two_hosts(struct host *a, struct host *b)
{
    host_begin(a);
    host_begin(b);
    SEND(a, .ts = 10, .from = 1, .to = 2, .sport = 100, .dport = 80, .seq = 1, .bytes = 10, .row = 1);
    RECEIVE(b, .ts = 15, .from = 1, .to = 2, .sport = 100, .dport = 80, .seq = 1, .bytes = 10);
    SEND(b, .ts = 20, .from = 2, .to = 1, .sport = 80, .dport = 100, .seq = 5, .bytes = 7, .row = 2);
    RECEIVE(a, .ts = 25, .from = 2, .to = 1, .sport = 80, .dport = 100, .seq = 5, .bytes = 7);
    SEND(a, .ts = 30, .from = 1, .to = 9, .sport = 200, .dport = 80, .seq = 1, .bytes = 10, .row = 1);
    RECEIVE(a, .ts = 35, .from = 9, .to = 1, .sport = 80, .dport = 200, .seq = 1, .bytes = 10);
    RECEIVE(a, .ts = 40, .from = 2, .to = 1, .sport = 81, .dport = 100, .seq = 1, .bytes = 10);
    RECEIVE(a, .ts = 45, .from = 2, .to = 1, .sport = 82, .dport = 100, .bytes = 10, .protocol = 17, .id = 4);
    SEND(a, .ts = 50, .from = 1, .to = 2, .sport = 300, .dport = 80, .seq = 1, .bytes = 10, .row = 1);
    for (int i = 0; i < 2; i++)
        SEND(i ? b : a, .ts = 60, .net = 127, .from = 1, .to = 1, .sport = 7, .dport = 8, .seq = 1, .bytes = 10);
    SEND(a, .ts = 70, .net = 192, .from = 1, .to = 3, .sport = 400, .dport = 80, .seq = 1, .bytes = 10, .row = 1);
    RECEIVE(a, .ts = 90, .from = 9, .to = 1, .sport = 80, .dport = 200, .seq = 11, .bytes = 10);
    host_end(a);
    host_end(b);
}

static size_t needed_by(const struct host *a, const struct host *b, uint32_t **out)
{
    uint64_t *hashes;
    struct flow_own_address *own;
    struct flow_other other = {.n_hashes = flow_hashes(b->store, &hashes)};
    other.hashes = hashes;
    other.n_own = flow_own_addresses(b->store, &own);
    other.own = own;
    size_t n = flow_needed(a->store, &other, 1, out);
    free(hashes);
    free(own);
    return n;
}

static void test_needed(void **state)
{
    struct host a, b;
    uint32_t *flows;
    two_hosts(&a, &b);
    size_t n = needed_by(&a, &b, &flows);
    assert_int_equal(n, 3);
    assert_true(is_in(flows, n, flow_between(&a, 1, 100, 2, 80, false)));
    assert_true(is_in(flows, n, flow_between(&a, 2, 80, 1, 100, false)));
    assert_true(is_in(flows, n, flow_between(&a, 2, 81, 1, 100, false)));
    free(flows);
    n = needed_by(&b, &a, &flows);
    assert_int_equal(n, 2);
    free(flows);
    assert_int_equal(flow_needed(a.store, NULL, 0, &flows), 0);
    free(flows);
    close_both(&a, &b);
}

/* Checks extracts whose address, and last packet, come from flows that are left out. */
static void test_host(void **state)
{
    struct host a, b;
    struct flow_own_address *own;
    uint64_t bytes = 0;
    two_hosts(&a, &b);
    struct flow_store *none = extract_flows(a.store, NULL, 0, &bytes);
    assert_int_equal(flow_count(none), 0);
    assert_int_equal(flow_last(none), 90);
    assert_int_equal(flow_own_addresses(none, &own), 3);
    assert_int_equal(own[0].since, 10);
    assert_memory_equal(own[0].address.addr, ((uint8_t[]){10, 0, 0, 1}), 4);
    assert_int_equal(own[1].since, 60);
    assert_int_equal(own[2].since, 70);
    assert_memory_equal(own[2].address.addr, ((uint8_t[]){192, 0, 0, 1}), 4);
    same_extract(a.store, NULL, 0, none);
    free(own);
    flow_close(none);
    close_both(&a, &b);
}

static void test_hashes(void **state)
{
    struct host a, b;
    uint64_t *of_a, *of_b;
    size_t common = 0;
    two_hosts(&a, &b);
    size_t n_a = flow_hashes(a.store, &of_a), n_b = flow_hashes(b.store, &of_b);
    assert_int_equal(n_a, flow_count(a.store) - 1); /* all except loopback */
    assert_int_equal(n_b, 2);
    for (size_t i = 0; i < n_a; i++) {
        assert_true(!i || of_a[i - 1] < of_a[i]);
        common += of_a[i] == of_b[0] || of_a[i] == of_b[1];
    }
    assert_int_equal(common, 2);
    free(of_a);
    free(of_b);
    close_both(&a, &b);
}

/* ---- random flows of random hosts ---- */

static void make_any(struct host *h)
{
    int64_t ts = 1000;
    host_begin(h);
    for (uint32_t i = 0, n = (uint32_t)(rand() % 400); i < n; i++) {
        ts += rand() % 1000 ? rand() % 100000 : INT64_C(10800000000001); /* forgotten then */
        struct shape s = {.ts = ts,
            .from = (uint8_t)(1 + rand() % 3),
            .to = (uint8_t)(1 + rand() % 3),
            .sport = (uint16_t)(rand() % 3),
            .dport = (uint16_t)(rand() % 3),
            .seq = (uint32_t)rand() * 2,
            .ack = (uint32_t)rand() % 4,
            .bytes = rand() % 2 ? (uint32_t)rand() % 1000 : 0,
            .flags = rand() % 8 ? ACK : SYN,
            .id = (uint16_t)(rand() % 4),
            .protocol = rand() % 3 ? 6 : 17,
            .v6 = rand() % 4 == 0,
            .device = (uint32_t)(rand() % 2),
            .skb = (uint64_t)(1 + rand() % 50),
            .row = rand() % THREADS};
        bool send = rand() % 2;
        if (!send) {
            s.ctx = KERNEL_CTX_SOFTIRQ;
            s.vector = KERNEL_SOFTIRQ_NET_RX;
            s.frame = 1 + i / 3;
        }
        packet(h, send ? KERNEL_PACKET_SEND : KERNEL_PACKET_RECEIVE, s);
    }
    host_end(h);
}

static void test_any_flows(void **state)
{
    for (unsigned first = (unsigned)test_seed(1), seed = first; seed < first + 40; seed++) {
        struct host h;
        uint32_t flows[512];
        uint64_t bytes = 0;
        srand(seed);
        make_any(&h);
        for (int share = 0; share < 4; share++) {
            size_t n = 0;
            for (size_t f = 0; f < flow_count(h.store); f++)
                if (rand() % 3 < share)
                    flows[n++] = (uint32_t)f;
            struct flow_store *some = extract_flows(h.store, flows, n, &bytes), *again;
            same_extract(h.store, flows, n, some);
            for (size_t i = 0; i < n; i++)
                flows[i] = (uint32_t)i;
            again = extract_flows(some, flows, n, &bytes); /* extract of an extract */
            same_extract(some, flows, n, again);
            flow_close(some);
            flow_close(again);
        }
        flow_close(h.store);
    }
}

/* Checks failed writes. */
static void test_failing(void **state)
{
    struct host a, b;
    struct err e = {0};
    uint32_t flow = 0;
    two_hosts(&a, &b);
    assert_int_not_equal(flow_extract(a.store, &flow, 1, "/nonexistent/extract", &e), 0);
    assert_non_null(strstr(e.text, "/nonexistent"));
    close_both(&a, &b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_needed), cmocka_unit_test(test_host),
        cmocka_unit_test(test_hashes), cmocka_unit_test(test_any_flows), cmocka_unit_test(test_failing)};
    return RUN_CUT("extract", tests);
}
