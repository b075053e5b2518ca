/* SPDX-License-Identifier: MIT */
/* Send that explains a receive, found at the sender's host by the message's key. Expected answers follow from how the
 * packets were made. */
#include "hosts.h"

/* Three sends arrive as one receive (GRO); the last byte is the third's. */
static void merged_receive(void **state)
{
    struct host a, b;
    host_begin(&a), host_begin(&b);
    SEND(&a, .ts = 10, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1000, .bytes = 100, .id = 1);
    SEND(&a, .ts = 11, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1100, .bytes = 100, .id = 2);
    uint32_t third = SEND(
        &a, .ts = 12, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1200, .bytes = 50, .id = 3);
    uint32_t r = RECEIVE(
        &b, .ts = 20, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1000, .bytes = 250, .id = 1, .frame = 1);
    host_end(&a), host_end(&b);
    assert_int_equal(explain(&b, r, &a), third);
    close_both(&a, &b);
}

/* Checks a send of 64 KiB (TSO) that arrives in pieces. */
static void segmented_send(void **state)
{
    struct host a, b;
    host_begin(&a), host_begin(&b);
    uint32_t s = SEND(
        &a, .ts = 10, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 5000, .bytes = 60000, .id = 1);
    uint32_t next = SEND(
        &a, .ts = 15, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 65000, .bytes = 10, .id = 9);
    uint32_t r[4];
    for (uint32_t i = 0; i < 4; i++)
        r[i] = RECEIVE(&b, .ts = 20 + i, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 5000 + 15000 * i,
            .bytes = 15000, .id = (uint16_t)(1 + i), .frame = i);
    uint32_t last = RECEIVE(
        &b, .ts = 30, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 65000, .bytes = 10, .id = 9, .frame = 9);
    host_end(&a), host_end(&b);
    for (int i = 0; i < 4; i++)
        assert_int_equal(explain(&b, r[i], &a), s);
    assert_int_equal(explain(&b, last, &a), next);
    close_both(&a, &b);
}

/* 6 GB through one connection: sequence numbers wrap; the receiver's trace begins after the wrap. */
static void wrapped_numbers(void **state)
{
    struct host a, b;
    host_begin(&a), host_begin(&b);
    uint32_t sends[6], receives[6], seq = 0xe0000000u;
    for (int i = 0; i < 6; i++, seq += 0x40000000u) {
        sends[i] = SEND(&a, .ts = 1000 * i, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = seq,
            .bytes = 0x40000000u, .id = (uint16_t)i);
        if (i >= 2)
            receives[i] = RECEIVE(&b, .ts = 1000 * i + 10, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = seq,
                .bytes = 0x40000000u, .id = (uint16_t)i, .frame = (uint32_t)i);
    }
    host_end(&a), host_end(&b);
    for (int i = 2; i < 6; i++)
        assert_int_equal(explain(&b, receives[i], &a), sends[i]);
    close_both(&a, &b);
}

/* Checks unrecorded packets at the wrap of 2^32: the next packet is new, no repetition of one sent 4 GiB ago. */
static void hole_at_the_turn(void **state)
{
    struct host a, b;
    host_begin(&a), host_begin(&b);
    SEND(&a, .ts = 10, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 0xfffff000u, .bytes = 100,
        .id = 1);
    uint32_t s = SEND(
        &a, .ts = 20, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 0x400, .bytes = 100, .id = 2);
    uint32_t late = SEND(&a, .ts = 30, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 0xfffff000u,
        .bytes = 100, .id = 3);
    uint32_t r = RECEIVE(
        &b, .ts = 40, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 0x400, .bytes = 100, .id = 2, .frame = 1);
    host_end(&a), host_end(&b);
    assert_true(get(&a, s).seq_end == (UINT64_C(2) << 32) + 0x464);
    assert_false(get(&a, s).retransmission);
    assert_true(get(&a, late).seq_end == (UINT64_C(1) << 32) + 0xfffff064u); /* wraps back again */
    assert_true(get(&a, late).retransmission);
    assert_int_equal(explain(&b, r, &a), s);
    close_both(&a, &b);
}

/* Checks three equal acknowledgements, of which the second is lost: the one that arrived is identified by its IP id. */
static void repeated_acks(void **state)
{
    struct host a, b;
    host_begin(&a), host_begin(&b);
    uint32_t s[3];
    for (int i = 0; i < 3; i++)
        s[i] = SEND(&a, .ts = 10 + i, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 500, .ack = 900,
            .id = (uint16_t)(40 + i));
    uint32_t first = RECEIVE(
        &b, .ts = 20, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 500, .ack = 900, .id = 40, .frame = 1);
    uint32_t third = RECEIVE(
        &b, .ts = 22, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 500, .ack = 900, .id = 42, .frame = 2);
    uint32_t other = RECEIVE(
        &b, .ts = 23, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 500, .ack = 901, .id = 43, .frame = 3);
    host_end(&a), host_end(&b);
    assert_int_equal(explain(&b, first, &a), s[0]);
    assert_int_equal(explain(&b, third, &a), s[2]);
    assert_int_equal(explain(&b, other, &a), -1);
    close_both(&a, &b);
}

/* Checks address translation: the receiver sees other addresses and ports. */
static void translated(void **state)
{
    struct host a, b;
    host_begin(&a), host_begin(&b);
    SEND(&a, .ts = 5, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 900, .ack = 77, .bytes = 100,
        .id = 1);
    uint32_t s = SEND(&a, .ts = 10, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1000, .ack = 77,
        .bytes = 100, .id = 2);
    uint32_t r = RECEIVE(&b, .ts = 20, .from = 9, .to = 2, .sport = 4000, .dport = 90, .seq = 1000, .ack = 77,
        .bytes = 100, .id = 2, .frame = 1);
    uint32_t other = RECEIVE(&b, .ts = 21, .from = 9, .to = 2, .sport = 4000, .dport = 90, .seq = 1100, .ack = 77,
        .bytes = 33, .id = 3, .frame = 1);
    host_end(&a), host_end(&b);
    assert_int_equal(explain(&b, r, &a), s);
    assert_int_equal(explain(&b, other, &a), -1);
    close_both(&a, &b);

    /* Sent twice: the byte's origin is the first. */
    host_begin(&a), host_begin(&b);
    s = SEND(&a, .ts = 5, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 900, .ack = 77, .bytes = 100,
        .id = 1);
    SEND(&a, .ts = 9, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 900, .ack = 77, .bytes = 100,
        .id = 2);
    r = RECEIVE(&b, .ts = 20, .from = 9, .to = 2, .sport = 4000, .dport = 90, .seq = 900, .ack = 77, .bytes = 100,
        .id = 2, .frame = 1);
    host_end(&a), host_end(&b);
    assert_int_equal(explain(&b, r, &a), s);
    close_both(&a, &b);
}

/* 127/8 of one host is not 127/8 of another. */
static void anonymous_addresses(void **state)
{
    struct host a, b;
    host_begin(&a), host_begin(&b);
    SEND(&a, .ts = 10, .row = 1, .net = 127, .from = 1, .to = 1, .sport = 80, .dport = 90, .seq = 1000, .bytes = 10,
        .id = 1);
    uint32_t r = RECEIVE(&b, .ts = 20, .net = 127, .from = 1, .to = 1, .sport = 80, .dport = 90, .seq = 1000,
        .bytes = 10, .id = 1, .frame = 1);
    host_end(&a), host_end(&b);
    assert_int_equal(explain(&b, r, &a), -1);
    close_both(&a, &b);
}

/* Checks that a host's addresses are reported once each, all of their bytes compared. */
static void addresses(void **state)
{
    struct host a;
    host_begin(&a);
    for (uint8_t i = 0; i < 6; i++)
        SEND(&a, .ts = i, .row = 1, .v6 = i >= 2, .from = (uint8_t)(1 + i % 2), .to = 9, .sport = 80, .dport = 90,
            .seq = 1, .bytes = 1);
    host_end(&a);
    const struct flow_address *found;
    assert_int_equal(flow_addresses(a.store, &found), 4);
    close_both(&a, &a);
}

/* Loopback: the same store holds both ends; nothing is received before it is sent. */
static void loopback(void **state)
{
    struct host a;
    host_begin(&a);
    uint32_t s = SEND(
        &a, .ts = 10, .row = 1, .from = 1, .to = 1, .sport = 80, .dport = 90, .seq = 1000, .bytes = 10, .id = 1);
    uint32_t r = RECEIVE(
        &a, .ts = 12, .from = 1, .to = 1, .sport = 80, .dport = 90, .seq = 1000, .bytes = 10, .id = 1, .frame = 1);
    uint32_t early = RECEIVE(
        &a, .ts = 15, .from = 1, .to = 1, .sport = 80, .dport = 90, .seq = 1010, .bytes = 10, .id = 2, .frame = 1);
    SEND(&a, .ts = 20, .row = 1, .from = 1, .to = 1, .sport = 80, .dport = 90, .seq = 1010, .bytes = 10, .id = 2);
    host_end(&a);
    assert_int_equal(explain(&a, r, &a), s);
    assert_int_equal(explain(&a, early, &a), -1);
    close_both(&a, &a);
}

/* Random streams cut and merged at random, with loss and repetition: the send that first carried the last byte, by
 * brute force. */
static void random_streams(void **state)
{
    for (uint64_t first = test_seed(1), seed = first; seed < first + 50; seed++) {
        srand((unsigned)seed);
        struct host a, b;
        host_begin(&a), host_begin(&b);
        struct {
            uint32_t number;
            uint64_t begin, end;
        } sends[400];
        uint64_t pos = (uint64_t)rand() << 8, base = pos;
        int n = 0;
        for (int64_t t = 0; n < 400; t += 10) {
            bool repeat = n > 10 && rand() % 5 == 0;
            int k = repeat ? rand() % n : n;
            uint64_t begin = repeat ? sends[k].begin : pos,
                     end = repeat ? sends[k].end : pos + 1 + (uint64_t)rand() % 3000;
            uint32_t s = SEND(&a, .ts = t, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90,
                .seq = (uint32_t)begin, .bytes = (uint32_t)(end - begin), .id = (uint16_t)t);
            if (!repeat) {
                sends[n].number = s, sends[n].begin = begin, sends[n].end = end;
                n++;
                pos = end;
            }
        }
        uint32_t receives[300];
        uint64_t ends[300];
        for (int i = 0; i < 300; i++) {
            uint64_t begin = base + (uint64_t)rand() % (pos - base - 1), end = begin + 1 + (uint64_t)rand() % 5000;
            ends[i] = end > pos ? pos : end;
            receives[i] = RECEIVE(&b, .ts = 10000 + i, .from = 1, .to = 2, .sport = 80, .dport = 90,
                .seq = (uint32_t)begin, .bytes = (uint32_t)(ends[i] - begin), .id = (uint16_t)i, .frame = (uint32_t)i);
        }
        host_end(&a), host_end(&b);
        for (int i = 0; i < 300; i++) {
            int k = 0;
            while (sends[k].end < ends[i])
                k++;
            assert_int_equal(explain(&b, receives[i], &a), sends[k].number);
        }
        close_both(&a, &b);
    }
}

/* ---- addresses and ports used again ---- */

/* Makes a connection from 1:port to 2:90: SYN, `n` messages of 10 bytes, FIN if it ends well; and what b receives of
 * it. */
static void connect(struct host *a, struct host *b, int64_t t, int32_t row, uint32_t isn, int n, bool ends,
    uint32_t *sends, uint32_t *receives)
{
    const uint16_t port = 4000;
    SEND(a, .ts = t, .row = row, .from = 1, .to = 2, .sport = port, .dport = 90, .seq = isn, .flags = SYN, .id = 1);
    RECEIVE(b, .ts = t + 5, .from = 1, .to = 2, .sport = port, .dport = 90, .seq = isn, .flags = SYN, .id = 1);
    for (int i = 0; i < n; i++) {
        uint32_t seq = isn + 1 + 10 * (uint32_t)i;
        sends[i] = SEND(a, .ts = t + 10 * (i + 1), .row = row, .from = 1, .to = 2, .sport = port, .dport = 90,
            .seq = seq, .ack = 7, .bytes = 10, .id = (uint16_t)(2 + i));
        receives[i] = RECEIVE(b, .ts = t + 10 * (i + 1) + 5, .from = 1, .to = 2, .sport = port, .dport = 90, .seq = seq,
            .ack = 7, .bytes = 10, .id = (uint16_t)(2 + i));
    }
    if (ends)
        SEND(a, .ts = t + 10 * (n + 1), .row = row, .from = 1, .to = 2, .sport = port, .dport = 90,
            .seq = isn + 1 + 10 * (uint32_t)n, .flags = FIN | ACK, .id = 99);
}

/* Checks a pair of ports used for four connections: of another number, one that overlaps it, the very same after a FIN,
 * one far away. Every message is explained by its own connection, also with clocks that are off by more than a
 * connection lasts; without clocks the answer is ambiguous. */
static void ports_used_again(void **state)
{
    static const uint32_t isn[4] = {1000, 1020, 1020, 0xfffffff0u};
    struct host a, b;
    uint32_t s[4][8], r[4][8];
    enum flow_answer answer;
    host_begin(&a), host_begin(&b);
    for (int c = 0; c < 4; c++)
        connect(&a, &b, 1000 * c, 1 + c, isn[c], 8, c != 0, s[c], r[c]);
    host_end(&a), host_end(&b);
    for (int c = 0; c < 4; c++)
        for (int i = 0; i < 8; i++) {
            assert_int_equal(explain_within(&b, r[c][i], &a, 2, &answer), s[c][i]);
            assert_int_equal(answer, FLOW_SENT);
            assert_false(get(&a, s[c][i]).retransmission);
            assert_int_equal(get(&a, s[c][i]).row, 1 + c);
        }
    explain_within(&b, r[1][4], &a, -1, &answer);
    assert_int_equal(answer, FLOW_AMBIGUOUS);
    explain_within(&b, r[3][4], &a, -1, &answer);
    assert_int_equal(answer, FLOW_SENT);
    close_both(&a, &b);
}

/* A SYN that is sent again begins nothing anew; nor does a reset with number 0 hide what follows. */
static void syn_sent_again(void **state)
{
    struct host a, b;
    host_begin(&a), host_begin(&b);
    uint32_t syn = SEND(
        &a, .ts = 1, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 0xf0000000u, .flags = SYN, .id = 1);
    SEND(
        &a, .ts = 2, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 0xf0000000u, .flags = SYN, .id = 2);
    uint32_t got = RECEIVE(
        &b, .ts = 3, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 0xf0000000u, .flags = SYN, .id = 2);
    SEND(&a, .ts = 4, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 0, .flags = RST, .id = 3);
    uint32_t s = SEND(
        &a, .ts = 5, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 0xf0000001u, .bytes = 10, .id = 4);
    uint32_t r = RECEIVE(
        &b, .ts = 6, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 0xf0000001u, .bytes = 10, .id = 4);
    host_end(&a), host_end(&b);
    assert_int_equal(explain(&b, got, &a), syn);
    assert_int_equal(explain(&b, r, &a), s);
    close_both(&a, &b);
}

/* The socket that used the ports before is not woken by what comes for the one that uses them now. */
static void owners_of_used_ports(void **state)
{
    struct host b;
    struct flow_wake woken;
    host_begin(&b);
    SEND(&b, .ts = 1, .row = 1, .from = 2, .to = 1, .sport = 90, .dport = 81, .seq = 1, .flags = SYN, .id = 1);
    SEND(&b, .ts = 2, .row = 1, .from = 2, .to = 1, .sport = 90, .dport = 81, .seq = 2, .bytes = 5, .id = 2);
    SEND(&b, .ts = 3, .row = 2, .from = 2, .to = 1, .sport = 90, .dport = 81, .seq = 500, .flags = SYN, .id = 3);
    uint32_t r = RECEIVE(
        &b, .ts = 10, .from = 1, .to = 2, .sport = 81, .dport = 90, .seq = 1, .bytes = 10, .id = 1, .frame = 7);
    RECEIVE(&b, .ts = 11, .from = 1, .to = 2, .sport = 82, .dport = 90, .seq = 1, .bytes = 10, .id = 1, .frame = 7);
    uint32_t old = wake(&b, 13, 0, 1, KERNEL_CTX_SOFTIRQ, 7), now = wake(&b, 14, 0, 2, KERNEL_CTX_SOFTIRQ, 7);
    host_end(&b);
    flow_wake(b.store, now - 1, &woken);
    assert_int_equal(woken.receive, r);
    flow_wake(b.store, old - 1, &woken);
    assert_int_not_equal(woken.receive, r);
    assert_int_equal(get(&b, r).row, 2);
    close_both(&b, &b);
}

/* ---- series of acknowledgements ---- */

/* 200 000 bare acknowledgements, half of them the same as the one before: each by its IP id, in no time. */
static void many_acks(void **state)
{
    enum { N = 200000 };
    struct host a, b;
    uint32_t *sends = malloc(sizeof *sends * N), *receives = malloc(sizeof *receives * N);
    host_begin(&a), host_begin(&b);
    for (uint32_t i = 0; i < N; i++) {
        sends[i] = SEND(&a, .ts = 10 * i, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 500,
            .ack = 1000 * (i / 2), .id = (uint16_t)i);
        receives[i] = RECEIVE(&b, .ts = 10 * i + 5, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 500,
            .ack = 1000 * (i / 2), .id = (uint16_t)i, .frame = i);
    }
    host_end(&a), host_end(&b);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(explain(&b, receives[i], &a), sends[i]);
    free(sends);
    free(receives);
    close_both(&a, &b);
}

/* ---- datagrams without IP id ---- */

/* 1000 datagrams of one size, the interval between them random or not, under way for longer than that or not; one is
 * lost. A pause before some of them, as applications make. Returns how many receives are explained wrongly. */
static size_t lose_one(uint32_t lost, int64_t interval, int64_t delay, int64_t jitter, uint32_t traced_from)
{
    struct host a, b;
    uint32_t sends[1000], receives[1000], first = UINT32_MAX;
    size_t wrong = 0;
    host_begin(&a), host_begin(&b);
    SEND(&b, .ts = 0, .row = 1, .v6 = true, .from = 2, .to = 9, .sport = 1, .dport = 2, .seq = 1, .bytes = 1);
    SEND(&a, .ts = 0, .row = 1, .v6 = true, .from = 1, .to = 9, .sport = 1, .dport = 2, .seq = 1, .bytes = 1);
    int64_t t = 1000000, came = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        t += interval + (jitter ? rand() % (2 * jitter) - jitter : 0) + (i % 100 ? 0 : 40 * interval);
        sends[i] = SEND(&a, .ts = t, .row = 1, .v6 = true, .from = 1, .to = 2, .sport = 53, .dport = 99, .bytes = 40,
            .protocol = 17);
        if (i == lost || i < traced_from)
            continue;
        int64_t at = t + delay + (jitter ? rand() % (jitter / 8 + 1) : 0);
        came = at > came ? at : came + 1;
        receives[i] = RECEIVE(&b, .ts = came, .v6 = true, .from = 1, .to = 2, .sport = 53, .dport = 99, .bytes = 40,
            .protocol = 17, .frame = i);
        first = first < i ? first : i;
    }
    host_end(&a), host_end(&b);
    for (uint32_t i = first; i < 1000; i++)
        wrong += i != lost && explain(&b, receives[i], &a) != sends[i];
    close_both(&a, &b);
    return wrong;
}

static void one_datagram_lost(void **state)
{
    srand((unsigned)test_seed(1));
    for (int round = 0; round < 10; round++) {
        uint32_t lost = (uint32_t)(rand() % 1000);
        assert_in_range(lose_one(lost, 1000000, 200000, 0, 0), 0, 2);      /* regular, under way for less */
        assert_in_range(lose_one(lost, 1000000, 200000, 400000, 0), 0, 4); /* losses with jitter */
        /* Five intervals: unknown up to the first pause, and up to the next if its first packet is lost. */
        assert_in_range(lose_one(lost, 10000, 55000, 0, 0), 0, 204);
        assert_in_range(lose_one(lost, 10000, 55000, 4000, 0), 0, 204);
    }
    assert_int_equal(lose_one(UINT32_MAX, 1000000, 200000, 0, 437), 0); /* the receiver was traced later */
    assert_int_equal(lose_one(UINT32_MAX, 1000000, 200000, 300000, 437), 0);
    assert_in_range(lose_one(UINT32_MAX, 10000, 55000, 0, 437), 0, 63); /* unknown up to a pause */
}

/* Alike datagrams, all of which may be the one: the nearest, and that there are more. One that came before it can have
 * been sent, or long after, was not sent. */
static void alike_datagrams(void **state)
{
    struct host a, b;
    enum flow_answer answer;
    host_begin(&a), host_begin(&b);
    uint32_t s[3];
    for (int i = 0; i < 3; i++)
        s[i] = SEND(&a, .ts = 1000 + i, .row = 1, .v6 = true, .from = 1, .to = 2, .sport = 53, .dport = 99, .bytes = 40,
            .protocol = 17);
    uint32_t early = RECEIVE(&b, .ts = 900, .v6 = true, .from = 1, .to = 2, .sport = 53, .dport = 99, .bytes = 40,
        .protocol = 17, .frame = 1);
    uint32_t r = RECEIVE(&b, .ts = 1100, .v6 = true, .from = 1, .to = 2, .sport = 53, .dport = 99, .bytes = 40,
        .protocol = 17, .frame = 1);
    uint32_t other = RECEIVE(&b, .ts = 1101, .v6 = true, .from = 1, .to = 2, .sport = 53, .dport = 99, .bytes = 41,
        .protocol = 17, .frame = 1);
    uint32_t late = RECEIVE(&b, .ts = 60 * INT64_C(1000000000), .v6 = true, .from = 1, .to = 2, .sport = 53,
        .dport = 99, .bytes = 40, .protocol = 17, .frame = 1);
    host_end(&a), host_end(&b);
    assert_int_equal(explain_within(&b, r, &a, 0, &answer), s[2]);
    assert_int_equal(answer, FLOW_AMBIGUOUS);
    assert_int_equal(explain(&b, early, &a), -1);
    assert_int_equal(explain(&b, other, &a), -1);
    assert_int_equal(explain(&b, late, &a), -1);
    close_both(&a, &b);
}

/* ---- forwarding, and several devices of a host ---- */

/* The router r between a and b: its sends explain nothing, its addresses are those of its own sockets. One of ten
 * records of how packets came in is lost. */
static void forwarder(void **state)
{
    struct host a, b, r;
    uint32_t sends[100], receives[100];
    host_begin(&a), host_begin(&b), host_begin(&r);
    for (uint32_t i = 0; i < 100; i++) {
        struct shape s = {.ts = 10 * i,
            .row = 1,
            .from = 1,
            .to = 2,
            .sport = 80,
            .dport = 90,
            .seq = 1000 + 10 * i,
            .bytes = 10,
            .id = (uint16_t)i,
            .device = 1,
            .skb = 1 + i};
        sends[i] = packet(&a, KERNEL_PACKET_SEND, s);
        s.ctx = KERNEL_CTX_SOFTIRQ, s.vector = KERNEL_SOFTIRQ_NET_RX, s.frame = i + 1;
        s.ts += 2, s.device = 2;
        if (i % 10 != 3)
            packet(&r, KERNEL_PACKET_RECEIVE, s);
        s.ts++, s.device = 3;
        if (i % 2) /* a hypervisor's thread hands it on itself */
            s.ctx = KERNEL_CTX_THREAD;
        packet(&r, KERNEL_PACKET_SEND, s);
        s.ctx = KERNEL_CTX_SOFTIRQ;
        s.ts += 2, s.device = 1;
        receives[i] = packet(&b, KERNEL_PACKET_RECEIVE, s);
    }
    SEND(&r, .ts = 2000, .row = 3, .from = 7, .to = 2, .sport = 22, .dport = 90, .seq = 1, .bytes = 9, .device = 3);
    host_end(&a), host_end(&b), host_end(&r);
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(explain(&b, receives[i], &a), sends[i]);
        assert_int_equal(explain(&b, receives[i], &r), -1);
    }
    const struct flow_address *found;
    assert_int_equal(flow_addresses(r.store, &found), 1);
    assert_int_equal(found[0].addr[3], 7);
    assert_int_equal(flow_peers(r.store, &found), 1);
    assert_int_equal(found[0].addr[3], 2);
    assert_int_equal(flow_addresses(a.store, &found), 1);
    assert_int_equal(found[0].addr[3], 1);
    assert_int_equal(flow_addresses(b.store, &found), 0); /* addresses: it never sent */
    flow_close(r.store);
    close_both(&a, &b);
}

/* A container behind veth, bridge and network card: sent once, by its thread; its address is the host's. The answer
 * comes in through card, bridge and veth: received once, and the wake is explained. */
static void stacked_devices(void **state)
{
    struct host a, b;
    enum { N = 20000 };
    uint32_t last = 0, sent = 0;
    host_begin(&a), host_begin(&b);
    for (uint32_t i = 0; i < N; i++) {
        struct shape s = {.ts = 100 * i,
            .row = 1,
            .from = 1,
            .to = 2,
            .sport = 80,
            .dport = 90,
            .seq = 1 + 10 * i,
            .bytes = 10,
            .id = (uint16_t)i,
            .device = 1,
            .skb = 64 + i % 7};
        sent = packet(&a, KERNEL_PACKET_SEND, s);
        s.ctx = KERNEL_CTX_SOFTIRQ, s.vector = KERNEL_SOFTIRQ_NET_RX, s.frame = i + 1;
        s.device = 2, s.ts++;
        packet(&a, KERNEL_PACKET_RECEIVE, s);
        for (s.device = 3; s.device < 5; s.device++, s.ts++)
            packet(&a, KERNEL_PACKET_SEND, s);
        for (s.device = 1; s.device < 4; s.device++, s.ts++)
            last = packet(&b, KERNEL_PACKET_RECEIVE, s);
    }
    host_end(&a), host_end(&b);
    assert_int_equal(flow_sends(a.store, 0), N);
    assert_int_equal(flow_receives(a.store, 0), N);
    assert_int_equal(flow_receives(b.store, 0), N);
    assert_int_equal(explain(&b, last, &a), sent);
    const struct flow_address *found;
    assert_int_equal(flow_addresses(a.store, &found), 1);
    close_both(&a, &b);
}

/* A router that translates, in the experiment: its own address is in what it sends on, but the send is the host's
 * behind it; also where the sender's card cut it, and where both ends were translated. */
static void translating_router(void **state)
{
    struct host a, b, r;
    host_begin(&a), host_begin(&b), host_begin(&r);
    SEND(&r, .ts = 1, .row = 3, .from = 7, .to = 2, .sport = 22, .dport = 90, .seq = 1, .bytes = 9, .device = 3);
    uint32_t got[4],
        sent = SEND(&a, .ts = 5, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1000, .ack = 77,
            .bytes = 4000, .id = 5, .device = 1);
    for (uint32_t i = 0; i < 4; i++) {
        struct shape s = {.ts = 10 + i,
            .ctx = KERNEL_CTX_SOFTIRQ,
            .vector = KERNEL_SOFTIRQ_NET_RX,
            .frame = 1,
            .from = 1,
            .to = 2,
            .sport = 80,
            .dport = 90,
            .seq = 1000 + 1000 * i,
            .ack = 77,
            .bytes = 1000,
            .id = (uint16_t)(5 + i),
            .device = 2,
            .skb = 99 + i};
        packet(&r, KERNEL_PACKET_RECEIVE, s);
        s.from = 7, s.sport = 50000, s.device = 3;
        if (i == 3)
            s.dport = 8080;
        packet(&r, KERNEL_PACKET_SEND, s);
        s.device = 1, s.ts += 10;
        got[i] = packet(&b, KERNEL_PACKET_RECEIVE, s);
    }
    host_end(&a), host_end(&b), host_end(&r);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(explain(&b, got[i], &a), sent);
        assert_int_equal(explain(&b, got[i], &r), -1);
    }
    flow_close(r.store);
    close_both(&a, &b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merged_receive),
        cmocka_unit_test(segmented_send),
        cmocka_unit_test(wrapped_numbers),
        cmocka_unit_test(hole_at_the_turn),
        cmocka_unit_test(repeated_acks),
        cmocka_unit_test(translated),
        cmocka_unit_test(anonymous_addresses),
        cmocka_unit_test(addresses),
        cmocka_unit_test(loopback),
        cmocka_unit_test(random_streams),
        cmocka_unit_test(ports_used_again),
        cmocka_unit_test(syn_sent_again),
        cmocka_unit_test(owners_of_used_ports),
        cmocka_unit_test(many_acks),
        cmocka_unit_test(one_datagram_lost),
        cmocka_unit_test(alike_datagrams),
        cmocka_unit_test(forwarder),
        cmocka_unit_test(stacked_devices),
        cmocka_unit_test(translating_router),
    };
    return RUN_CUT("flow: senders", tests);
}
