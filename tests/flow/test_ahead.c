/* SPDX-License-Identifier: MIT */
/* Conclusions about packets drawn in hindsight, and how far they look ahead. Expected answers follow from how the
 * packets were made, and from the second stated by docs/formats/flows.md. */
#include "hosts.h"

#define SECOND INT64_C(1000000000)
#define CLIENT .from = 1, .to = 2, .sport = 80, .dport = 90
#define SERVER .from = 2, .to = 1, .sport = 90, .dport = 80

/* Checks that a packet received shortly before the first send is the sender's; earlier ones have no owner, later ones
 * are the sender's. */
static void first_send(void **state)
{
    for (int late = 0; late < 2; late++) {
        struct host b;
        host_begin(&b);
        uint32_t before = RECEIVE(&b, .ts = 10, CLIENT, .seq = 1, .bytes = 10, .id = 1, .frame = 1);
        SEND(&b, .ts = 10 + SECOND + late, .row = 4, SERVER, .seq = 1, .bytes = 5, .id = 1);
        uint32_t after = RECEIVE(&b, .ts = 20 + SECOND, CLIENT, .seq = 11, .bytes = 10, .id = 2, .frame = 2);
        host_end(&b);
        assert_int_equal(get(&b, before).row, late ? -1 : 4);
        assert_int_equal(get(&b, after).row, 4);
        flow_close(b.store);
    }
}

/* Checks the first reader: without a sender, it is the thread that the packets wake. */
static void first_reader(void **state)
{
    for (int late = 0; late < 2; late++) {
        struct host b;
        host_begin(&b);
        uint32_t before = RECEIVE(&b, .ts = 10, CLIENT, .seq = 1, .bytes = 10, .id = 1, .frame = 1);
        RECEIVE(&b, .ts = SECOND / 4, CLIENT, .seq = 11, .bytes = 10, .id = 2, .frame = 2);
        uint32_t by = RECEIVE(
            &b, .ts = (1 + 3 * late) * SECOND / 2, CLIENT, .seq = 21, .bytes = 10, .id = 3, .frame = 3);
        wake(&b, (1 + 3 * late) * SECOND / 2 + 1, 0, 4, KERNEL_CTX_SOFTIRQ, 3);
        RECEIVE(&b, .ts = (1 + 3 * late) * SECOND / 2 + SECOND / 2 + 2, CLIENT, .seq = 31, .bytes = 10, .id = 4,
            .frame = 4);
        host_end(&b);
        assert_int_equal(get(&b, before).row, late ? -1 : 4);
        assert_int_equal(get(&b, by).row, 4);
        flow_close(b.store);
    }
}

/* Checks one run with two connections whose users are unknown: the wake is explained by the send within half a
 * second. */
static void user_soon(void **state)
{
    for (int late = 0; late < 2; late++) {
        struct host b;
        struct flow_wake w;
        host_begin(&b);
        RECEIVE(&b, .ts = 10, .from = 3, .to = 2, .sport = 80, .dport = 90, .seq = 1, .bytes = 10, .frame = 1);
        uint32_t mine = RECEIVE(&b, .ts = 11, CLIENT, .seq = 1, .bytes = 10, .id = 1, .frame = 1);
        uint32_t woken = wake(&b, 12, 0, 4, KERNEL_CTX_SOFTIRQ, 1);
        SEND(&b, .ts = 12 + SECOND / 2 + late, .row = 4, SERVER, .seq = 1, .bytes = 5, .id = 1);
        host_end(&b);
        flow_wake(b.store, woken - 1, &w);
        assert_int_equal(w.receive, late ? 0 : mine); /* otherwise the first of the run */
        flow_close(b.store);
    }
}

/* A second is not waited for where packets come thick: 65 536 of them are as good. */
static void many_packets(void **state)
{
    for (uint32_t n = 65535; n < 65537; n++) {
        struct host b;
        host_begin(&b);
        uint32_t before = RECEIVE(&b, .ts = 10, CLIENT, .seq = 1, .bytes = 10, .id = 1, .frame = 1);
        for (uint32_t i = 0; i < n; i++)
            RECEIVE(
                &b, .ts = 11, .from = 3, .to = 2, .sport = 80, .dport = 90, .seq = 1 + 10 * i, .bytes = 10, .frame = 1);
        SEND(&b, .ts = 12, .row = 4, SERVER, .seq = 1, .bytes = 5, .id = 1);
        host_end(&b);
        assert_int_equal(get(&b, before).row, n == 65535 ? 4 : -1);
        flow_close(b.store);
    }
}

/* A connection that ended is forgotten after three minutes, another one after three hours: then its users are not
 * known any more, and its numbers are above all before. */
static void forgotten(void **state)
{
    static const struct {
        int64_t silence_s;
        uint16_t flags;
        bool forgotten;
    } cases[] = {
        {170, FIN | ACK, false}, {190, FIN | ACK, true}, {190, ACK, false}, {10790, ACK, false}, {10810, ACK, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct host b;
        host_begin(&b);
        SEND(&b, .ts = 10, .row = 4, SERVER, .seq = 1000, .bytes = 5, .id = 1, .flags = cases[i].flags);
        uint32_t later = RECEIVE(
            &b, .ts = 10 + cases[i].silence_s * SECOND, CLIENT, .seq = 1, .bytes = 10, .id = 1, .frame = 1);
        SEND(&b, .ts = 20 + (cases[i].silence_s + 2) * SECOND, .row = 5, SERVER, .seq = 1006, .bytes = 5, .id = 2);
        host_end(&b);
        assert_int_equal(get(&b, later).row, cases[i].forgotten ? -1 : 4);
        assert_true(get(&b, 2).seq_end > get(&b, 0).seq_end);
        assert_int_equal(get(&b, 2).seq_end >> 32 > 1, cases[i].forgotten);
        assert_int_equal((uint32_t)get(&b, 2).seq_end, 1011);
        assert_int_equal(get(&b, 2).flow, get(&b, 0).flow);
        flow_close(b.store);
    }
}

/* Checks a stream whose clock leaps ahead once: later packets are reported as usual. */
static void leap(void **state)
{
    struct host b;
    host_begin(&b);
    SEND(&b, .ts = 10, .row = 4, SERVER, .seq = 1000, .bytes = 5, .id = 1);
    RECEIVE(&b, .ts = INT64_MAX, .from = 3, .to = 2, .sport = 80, .dport = 90, .seq = 1, .bytes = 10, .frame = 1);
    SEND(&b, .ts = INT64_MIN, .row = 4, SERVER, .seq = 1005, .bytes = 5, .id = 2);
    uint32_t before = RECEIVE(
        &b, .ts = 20, .from = 1, .to = 2, .sport = 81, .dport = 90, .seq = 1, .bytes = 10, .id = 1, .frame = 2);
    uint32_t woken = wake(&b, 21, 0, 5, KERNEL_CTX_SOFTIRQ, 2);
    SEND(&b, .ts = 30, .row = 5, .from = 2, .to = 1, .sport = 90, .dport = 81, .seq = 1, .bytes = 5, .id = 3);
    host_end(&b);
    struct flow_wake w;
    flow_wake(b.store, woken - 1, &w);
    assert_int_equal(w.receive, before);
    assert_int_equal(get(&b, before).row, 5);
    flow_close(b.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(first_send), cmocka_unit_test(first_reader),
        cmocka_unit_test(user_soon), cmocka_unit_test(many_packets), cmocka_unit_test(forgotten),
        cmocka_unit_test(leap)};
    return RUN_CUT("flow: ahead", tests);
}
