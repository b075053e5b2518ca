/* Packets of two invented hosts, record by record: what the recordings lack. Expected answers follow from how the packets were made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "flow/flow.h"
#include "kernel/kernel.h"

enum { ACK = 16, PSH = 8, SYN = 2, THREADS = 12 };

/* Stands for the tracker: flow asks it only for threads. Row r has tid 100 + r; rows 4 and 5 are one process, row 9 is a kernel thread, row 7 is a child of 6. */
struct kernel_tracker {
    struct kernel_thread threads[THREADS];
};

size_t kernel_tracker_threads(const struct kernel_tracker *t, const struct kernel_thread **out)
{
    *out = t->threads;
    return THREADS;
}

struct host {
    struct kernel_tracker tracker;
    struct flow_builder *builder;
    struct flow_store *store;
    uint32_t packets;
    char path[64];
};

static void host_begin(struct host *h)
{
    memset(h, 0, sizeof *h);
    for (int i = 0; i < THREADS; i++)
        h->tracker.threads[i] = (struct kernel_thread){
            .tid = 100 + i, .tgid = i == 5 ? 104 : 100 + i, .ppid = i == 9 ? 2 : 1, .parent_row = i == 7 ? 6 : -1, .idle_cpu = -1};
    h->builder = flow_builder_new(&h->tracker);
}

static void host_end(struct host *h)
{
    struct err e = {0};
    static int serial;
    snprintf(h->path, sizeof h->path, "/tmp/weft-flow-%d-%d", getpid(), serial++);
    if (flow_builder_write(h->builder, h->path, 1, &e) || flow_open(h->path, &h->store, &e))
        fail_msg("%s", e.text);
    unlink(h->path);
    flow_builder_free(h->builder);
}

struct shape {
    int64_t ts;
    int32_t row;
    uint8_t ctx;
    uint16_t vector;
    uint32_t frame;
    uint8_t from, to; /* last byte of 10.0.0.x */
    uint16_t sport, dport;
    uint32_t seq, ack, bytes;
    uint16_t flags, id;
    uint8_t protocol;
};

static uint32_t packet(struct host *h, int kind, struct shape s)
{
    struct kernel_record r = {.ts = s.ts,
        .kind = (uint8_t)kind,
        .ctx = s.ctx ? s.ctx : KERNEL_CTX_THREAD,
        .ctx_number = s.vector,
        .ctx_frame = s.frame,
        .row = s.row};
    r.u.packet = (struct kernel_packet){.number = h->packets++,
        .family = 4,
        .protocol = s.protocol ? s.protocol : 6,
        .sport = s.sport,
        .dport = s.dport,
        .seq = s.seq,
        .ack = s.ack,
        .flags = s.flags ? s.flags : ACK,
        .ip_id = s.id,
        .payload_bytes = s.bytes,
        .has_length = true};
    memcpy(r.u.packet.saddr, (uint8_t[]){10, 0, 0, s.from}, 4);
    memcpy(r.u.packet.daddr, (uint8_t[]){10, 0, 0, s.to}, 4);
    flow_builder_add(h->builder, &r);
    return r.u.packet.number;
}

static uint32_t wake(struct host *h, int64_t ts, int32_t by, int32_t row, uint8_t ctx, uint32_t frame)
{
    struct kernel_record r = {
        .ts = ts, .kind = KERNEL_WAKE, .ctx = ctx, .ctx_number = KERNEL_SOFTIRQ_NET_RX, .ctx_frame = frame, .row = by};
    r.u.wake.row = row;
    flow_builder_add(h->builder, &r);
    return r.u.wake.packet_wake;
}

#define SEND(h, ...) packet(h, KERNEL_PACKET_SEND, (struct shape){__VA_ARGS__})
#define RECEIVE(h, ...) \
    packet(h, KERNEL_PACKET_RECEIVE, (struct shape){.ctx = KERNEL_CTX_SOFTIRQ, .vector = KERNEL_SOFTIRQ_NET_RX, __VA_ARGS__})

static struct flow_packet get(struct host *h, uint32_t number)
{
    struct flow_packet p;
    assert_true(flow_by_number(h->store, number, &p, NULL));
    return p;
}

/* Number of the send on `from` that explains a receive of `to`, or -1. */
static int64_t explain(struct host *to, uint32_t receive, struct host *from)
{
    struct flow_packet r = get(to, receive), s;
    return flow_explain(to->store, &r, from->store, &s) ? (int64_t)s.number : -1;
}

static void close_both(struct host *a, struct host *b)
{
    flow_close(a->store);
    if (b != a)
        flow_close(b->store);
}

/* Three sends arrive as one receive (GRO); the last byte is the third's. */
static void merged_receive(void **state)
{
    struct host a, b;
    host_begin(&a), host_begin(&b);
    SEND(&a, .ts = 10, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1000, .bytes = 100, .id = 1);
    SEND(&a, .ts = 11, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1100, .bytes = 100, .id = 2);
    uint32_t third = SEND(&a, .ts = 12, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1200, .bytes = 50, .id = 3);
    uint32_t r = RECEIVE(&b, .ts = 20, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1000, .bytes = 250, .id = 1, .frame = 1);
    host_end(&a), host_end(&b);
    assert_int_equal(explain(&b, r, &a), third);
    close_both(&a, &b);
}

/* One send of 64 KiB (TSO) arrives in pieces. */
static void segmented_send(void **state)
{
    struct host a, b;
    host_begin(&a), host_begin(&b);
    uint32_t s = SEND(&a, .ts = 10, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 5000, .bytes = 60000, .id = 1);
    uint32_t next = SEND(&a, .ts = 15, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 65000, .bytes = 10, .id = 9);
    uint32_t r[4];
    for (uint32_t i = 0; i < 4; i++)
        r[i] = RECEIVE(&b, .ts = 20 + i, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 5000 + 15000 * i, .bytes = 15000,
            .id = (uint16_t)(1 + i), .frame = i);
    uint32_t last = RECEIVE(&b, .ts = 30, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 65000, .bytes = 10, .id = 9, .frame = 9);
    host_end(&a), host_end(&b);
    for (int i = 0; i < 4; i++)
        assert_int_equal(explain(&b, r[i], &a), s);
    assert_int_equal(explain(&b, last, &a), next);
    close_both(&a, &b);
}

static void collect_pair(void *arg, int64_t sent, int64_t received)
{
    int64_t *p = arg;
    p[2 * p[20]] = sent;
    p[2 * p[20]++ + 1] = received;
}

/* The first copy is lost: the byte's origin is its first send, the clock's point is the copy that arrived. */
static void retransmission(void **state)
{
    struct host a, b;
    host_begin(&a), host_begin(&b);
    uint32_t first = SEND(&a, .ts = 10, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1000, .bytes = 100, .id = 7);
    uint32_t again = SEND(&a, .ts = 210, .row = 0, .ctx = KERNEL_CTX_SOFTIRQ, .vector = KERNEL_SOFTIRQ_TIMER, .frame = 4, .from = 1,
        .to = 2, .sport = 80, .dport = 90, .seq = 1000, .bytes = 100, .id = 8);
    uint32_t r = RECEIVE(&b, .ts = 220, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1000, .bytes = 100, .id = 8, .frame = 1);
    host_end(&a), host_end(&b);
    assert_int_equal(explain(&b, r, &a), first);
    assert_true(get(&a, again).retransmission);
    assert_false(get(&a, first).retransmission);
    assert_int_equal(get(&a, again).origin, FLOW_BY_THREAD); /* a timer's send belongs to the socket's owner */
    assert_int_equal(get(&a, again).row, 1);
    int64_t pairs[21] = {0};
    flow_pairs(a.store, b.store, collect_pair, pairs);
    assert_int_equal(pairs[20], 1);
    assert_int_equal(pairs[0], 210);
    assert_int_equal(pairs[1], 220);
    close_both(&a, &b);
}

/* 6 GB through one connection: sequence numbers wrap; the receiver's trace begins after the wrap. */
static void wrapped_numbers(void **state)
{
    struct host a, b;
    host_begin(&a), host_begin(&b);
    uint32_t sends[6], receives[6], seq = 0xe0000000u;
    for (int i = 0; i < 6; i++, seq += 0x40000000u) {
        sends[i] = SEND(&a, .ts = 1000 * i, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = seq, .bytes = 0x40000000u,
            .id = (uint16_t)i);
        if (i >= 2)
            receives[i] = RECEIVE(&b, .ts = 1000 * i + 10, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = seq, .bytes = 0x40000000u,
                .id = (uint16_t)i, .frame = (uint32_t)i);
    }
    host_end(&a), host_end(&b);
    for (int i = 2; i < 6; i++)
        assert_int_equal(explain(&b, receives[i], &a), sends[i]);
    close_both(&a, &b);
}

/* Behind a translator the receiver sees other addresses and ports. */
static void translated(void **state)
{
    struct host a, b;
    host_begin(&a), host_begin(&b);
    SEND(&a, .ts = 5, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 900, .ack = 77, .bytes = 100, .id = 1);
    uint32_t s = SEND(&a, .ts = 10, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1000, .ack = 77, .bytes = 100, .id = 2);
    uint32_t r = RECEIVE(
        &b, .ts = 20, .from = 9, .to = 2, .sport = 4000, .dport = 90, .seq = 1000, .ack = 77, .bytes = 100, .id = 2, .frame = 1);
    uint32_t other = RECEIVE(
        &b, .ts = 21, .from = 9, .to = 2, .sport = 4000, .dport = 90, .seq = 1100, .ack = 77, .bytes = 33, .id = 3, .frame = 1);
    host_end(&a), host_end(&b);
    assert_int_equal(explain(&b, r, &a), s);
    assert_int_equal(explain(&b, other, &a), -1);
    close_both(&a, &b);
}

/* Datagrams: one is lost on the way, two have the same length. */
static void datagrams(void **state)
{
    struct host a, b;
    host_begin(&a), host_begin(&b);
    uint32_t s[4], r[4];
    for (int i = 0; i < 4; i++) {
        s[i] = SEND(&a, .ts = 10 * i, .row = 1, .from = 1, .to = 2, .sport = 53, .dport = 99, .bytes = i == 3 ? 20 : 40,
            .id = (uint16_t)(100 + i), .protocol = 17);
        if (i != 1)
            r[i] = RECEIVE(&b, .ts = 10 * i + 5, .from = 1, .to = 2, .sport = 53, .dport = 99, .bytes = i == 3 ? 20 : 40,
                .id = (uint16_t)(100 + i), .protocol = 17, .frame = (uint32_t)i);
    }
    host_end(&a), host_end(&b);
    assert_int_equal(explain(&b, r[0], &a), s[0]);
    assert_int_equal(explain(&b, r[2], &a), s[2]);
    assert_int_equal(explain(&b, r[3], &a), s[3]);
    int64_t pairs[21] = {0};
    flow_pairs(a.store, b.store, collect_pair, pairs);
    assert_int_equal(pairs[20], 3);
    close_both(&a, &b);
}

/* Loopback: the same store holds both ends; nothing is received before it is sent. */
static void loopback(void **state)
{
    struct host a;
    host_begin(&a);
    uint32_t s = SEND(&a, .ts = 10, .row = 1, .from = 1, .to = 1, .sport = 80, .dport = 90, .seq = 1000, .bytes = 10, .id = 1);
    uint32_t r = RECEIVE(&a, .ts = 12, .from = 1, .to = 1, .sport = 80, .dport = 90, .seq = 1000, .bytes = 10, .id = 1, .frame = 1);
    host_end(&a);
    assert_int_equal(explain(&a, r, &a), s);
    close_both(&a, &a);
}

static uint32_t woken_by(struct host *h, uint32_t packet_wake)
{
    struct flow_wake w;
    assert_true(packet_wake >= 1 && packet_wake <= flow_wakes(h->store));
    flow_wake(h->store, packet_wake - 1, &w);
    return w.receive;
}

/* One NAPI poll logs three receives, then wakes three threads in another order: each by its own connection, although two send only later. */
static void poll_with_many(void **state)
{
    struct host b;
    host_begin(&b);
    uint32_t r1 = RECEIVE(&b, .ts = 10, .from = 1, .to = 2, .sport = 81, .dport = 90, .seq = 1, .bytes = 10, .id = 1, .frame = 7);
    uint32_t r2 = RECEIVE(&b, .ts = 11, .from = 1, .to = 2, .sport = 82, .dport = 90, .seq = 1, .bytes = 10, .id = 1, .frame = 7);
    uint32_t r3 = RECEIVE(&b, .ts = 12, .from = 1, .to = 2, .sport = 83, .dport = 90, .seq = 1, .bytes = 10, .id = 1, .frame = 7);
    uint32_t w3 = wake(&b, 13, 0, 3, KERNEL_CTX_SOFTIRQ, 7), w1 = wake(&b, 14, 0, 1, KERNEL_CTX_SOFTIRQ, 7),
             w2 = wake(&b, 15, 0, 2, KERNEL_CTX_SOFTIRQ, 7);
    uint32_t kthread = wake(&b, 16, 0, 9, KERNEL_CTX_SOFTIRQ, 7);
    for (int i = 1; i <= 3; i++)
        SEND(&b, .ts = 20 + i, .row = i, .from = 2, .to = 1, .sport = 90, .dport = (uint16_t)(80 + i), .seq = 1, .ack = 11, .bytes = 5,
            .id = (uint16_t)i);
    host_end(&b);
    assert_int_equal(woken_by(&b, w1), r1);
    assert_int_equal(woken_by(&b, w2), r2);
    assert_int_equal(woken_by(&b, w3), r3);
    assert_int_equal(woken_by(&b, kthread), UINT32_MAX); /* ksoftirqd and the like are woken by no packet */
    close_both(&b, &b);
}

/* A connection used by one thread of a process wakes another thread of it; a listener is woken for what its child will use. */
static void related_threads(void **state)
{
    struct host b;
    host_begin(&b);
    uint32_t r1 = RECEIVE(&b, .ts = 10, .from = 1, .to = 2, .sport = 81, .dport = 90, .seq = 1, .bytes = 10, .id = 1, .frame = 7);
    uint32_t r2 = RECEIVE(&b, .ts = 11, .from = 1, .to = 2, .sport = 82, .dport = 91, .seq = 1, .bytes = 10, .id = 1, .frame = 7);
    uint32_t w5 = wake(&b, 13, 0, 5, KERNEL_CTX_SOFTIRQ, 7), w6 = wake(&b, 14, 0, 6, KERNEL_CTX_SOFTIRQ, 7);
    SEND(&b, .ts = 20, .row = 4, .from = 2, .to = 1, .sport = 91, .dport = 82, .seq = 1, .ack = 11, .bytes = 5, .id = 1);
    SEND(&b, .ts = 21, .row = 7, .from = 2, .to = 1, .sport = 90, .dport = 81, .seq = 1, .ack = 11, .bytes = 5, .id = 2);
    host_end(&b);
    assert_int_equal(woken_by(&b, w5), r2);
    assert_int_equal(woken_by(&b, w6), r1);
    close_both(&b, &b);
}

/* Data sent by the softirq that an acknowledgement started follow that acknowledgement; from the tasklet of small queues they belong to the owner. */
static void clocked_sends(void **state)
{
    struct host a;
    host_begin(&a);
    SEND(&a, .ts = 5, .row = 3, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1000, .bytes = 100, .id = 1);
    uint32_t ack = RECEIVE(&a, .ts = 10, .from = 2, .to = 1, .sport = 90, .dport = 80, .seq = 50, .ack = 1100, .id = 1, .frame = 3);
    uint32_t clocked = SEND(&a, .ts = 11, .ctx = KERNEL_CTX_SOFTIRQ, .vector = KERNEL_SOFTIRQ_NET_RX, .frame = 3, .from = 1, .to = 2,
        .sport = 80, .dport = 90, .seq = 1100, .bytes = 100, .id = 2);
    uint32_t queued = SEND(&a, .ts = 15, .ctx = KERNEL_CTX_SOFTIRQ, .vector = KERNEL_SOFTIRQ_TASKLET, .frame = 4, .from = 1, .to = 2,
        .sport = 80, .dport = 90, .seq = 1200, .bytes = 100, .id = 3);
    host_end(&a);
    assert_int_equal(get(&a, clocked).origin, FLOW_BY_RECEIVE);
    assert_int_equal(get(&a, clocked).receive, ack);
    assert_int_equal(get(&a, queued).origin, FLOW_BY_THREAD);
    assert_int_equal(get(&a, queued).row, 3);
    close_both(&a, &a);
}

/* Data arrive while thread 4 holds the socket; when it lets go it wakes thread 5 that waits for them: the cause is the packet, not thread 4. */
static void socket_backlog(void **state)
{
    struct host b;
    host_begin(&b);
    SEND(&b, .ts = 1, .row = 5, .from = 2, .to = 1, .sport = 90, .dport = 81, .seq = 1, .bytes = 5, .id = 1);
    SEND(&b, .ts = 8, .row = 4, .from = 2, .to = 1, .sport = 90, .dport = 81, .seq = 6, .bytes = 5, .id = 2);
    uint32_t r = RECEIVE(&b, .ts = 10, .from = 1, .to = 2, .sport = 81, .dport = 90, .seq = 1, .bytes = 10, .id = 1, .frame = 7);
    uint32_t w = wake(&b, 13, 4, 5, KERNEL_CTX_THREAD, 0), again = wake(&b, 14, 4, 5, KERNEL_CTX_THREAD, 0),
             foreign = wake(&b, 15, 4, 8, KERNEL_CTX_THREAD, 0);
    host_end(&b);
    assert_int_equal(woken_by(&b, w), r);
    assert_int_equal(again, 0);   /* those bytes have woken somebody already */
    assert_int_equal(foreign, 0); /* no user of the connection */
    close_both(&b, &b);
}

/* Random streams cut and merged at random, with loss and repetition: the send that first carried the last byte, by brute force. */
static void random_streams(void **state)
{
    for (unsigned seed = 1; seed <= 50; seed++) {
        srand(seed);
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
            uint64_t begin = repeat ? sends[k].begin : pos, end = repeat ? sends[k].end : pos + 1 + (uint64_t)rand() % 3000;
            uint32_t s = SEND(&a, .ts = t, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = (uint32_t)begin,
                .bytes = (uint32_t)(end - begin), .id = (uint16_t)t);
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
            receives[i] = RECEIVE(&b, .ts = 10000 + i, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = (uint32_t)begin,
                .bytes = (uint32_t)(ends[i] - begin), .id = (uint16_t)i, .frame = (uint32_t)i);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merged_receive),
        cmocka_unit_test(segmented_send),
        cmocka_unit_test(retransmission),
        cmocka_unit_test(wrapped_numbers),
        cmocka_unit_test(translated),
        cmocka_unit_test(datagrams),
        cmocka_unit_test(loopback),
        cmocka_unit_test(poll_with_many),
        cmocka_unit_test(related_threads),
        cmocka_unit_test(clocked_sends),
        cmocka_unit_test(socket_backlog),
        cmocka_unit_test(random_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
