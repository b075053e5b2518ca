/* SPDX-License-Identifier: MIT */
/* Packets of two invented hosts, record by record: what the recordings lack. Expected answers follow from how the
 * packets were made. */
#include <time.h>

#include "hosts.h"

static void collect_pair(void *arg, int64_t sent, int64_t received)
{
    int64_t *p = arg;
    p[2 * p[20]] = sent;
    p[2 * p[20]++ + 1] = received;
}

/* The pairs of what a sent and b received. */
static void collect_pairs(struct host *a, struct host *b, int64_t *pairs)
{
    const struct flow_store *stores[] = {a->store, b->store};
    struct flow_link *links;
    size_t n = flow_links(stores, 2, 1, &links);
    for (size_t i = 0; i < n; i++)
        if (links[i].a == 0)
            flow_pairs(a->store, b->store, &links[i], 1, collect_pair, pairs);
    free(links);
}

/* The first copy is lost: the byte's origin is its first send, the clock's point is the copy that arrived. */
static void retransmission(void **state)
{
    struct host a, b;
    host_begin(&a), host_begin(&b);
    uint32_t first = SEND(
        &a, .ts = 10, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1000, .bytes = 100, .id = 7);
    uint32_t again = SEND(&a, .ts = 210, .row = 0, .ctx = KERNEL_CTX_SOFTIRQ, .vector = KERNEL_SOFTIRQ_TIMER,
        .frame = 4, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1000, .bytes = 100, .id = 8);
    uint32_t r = RECEIVE(
        &b, .ts = 220, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1000, .bytes = 100, .id = 8, .frame = 1);
    host_end(&a), host_end(&b);
    assert_int_equal(explain(&b, r, &a), first);
    assert_true(get(&a, again).retransmission);
    assert_false(get(&a, first).retransmission);
    assert_int_equal(get(&a, again).origin, FLOW_BY_THREAD); /* a timer's send belongs to the socket's owner */
    assert_int_equal(get(&a, again).row, 1);
    int64_t pairs[21] = {0};
    collect_pairs(&a, &b, pairs);
    assert_int_equal(pairs[20], 1);
    assert_int_equal(pairs[0], 210);
    assert_int_equal(pairs[1], 220);
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
            r[i] = RECEIVE(&b, .ts = 10 * i + 5, .from = 1, .to = 2, .sport = 53, .dport = 99,
                .bytes = i == 3 ? 20 : 40, .id = (uint16_t)(100 + i), .protocol = 17, .frame = (uint32_t)i);
    }
    host_end(&a), host_end(&b);
    assert_int_equal(explain(&b, r[0], &a), s[0]);
    assert_int_equal(explain(&b, r[2], &a), s[2]);
    assert_int_equal(explain(&b, r[3], &a), s[3]);
    int64_t pairs[21] = {0};
    collect_pairs(&a, &b, pairs);
    assert_int_equal(pairs[20], 3);
    close_both(&a, &b);
}

/* Checks indistinguishable datagrams: the last one sent before is taken. */
static void datagrams_without_ids(void **state)
{
    struct host a, b;
    host_begin(&a), host_begin(&b);
    uint32_t s[3], r[4];
    for (int i = 0; i < 3; i++)
        s[i] = SEND(
            &a, .ts = 10 * i, .row = 1, .from = 1, .to = 2, .sport = 53, .dport = 99, .bytes = 40, .protocol = 17);
    for (int i = 0; i < 4; i++)
        r[i] = RECEIVE(&b, .ts = 10 * i + 5, .from = 1, .to = 2, .sport = 53, .dport = 99, .bytes = 40, .protocol = 17,
            .frame = (uint32_t)i);
    host_end(&a), host_end(&b);
    for (int i = 0; i < 3; i++)
        assert_int_equal(explain(&b, r[i], &a), s[i]);
    assert_int_equal(explain(&b, r[3], &a), s[2]); /* received twice, sent once */
    int64_t pairs[21] = {0};
    collect_pairs(&a, &b, pairs); /* no way to know which copy arrived: no points for clocks */
    assert_int_equal(pairs[20], 0);
    close_both(&a, &b);
}

/* Checks the copies used for clocks: only the first device that saw a packet; no ids that have wrapped. */
static void pairs_of_copies(void **state)
{
    struct host a, b;
    host_begin(&a), host_begin(&b);
    SEND(&a, .ts = 10, .row = 1, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1000, .bytes = 100, .id = 7);
    RECEIVE(&b, .ts = 20, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1000, .bytes = 100, .id = 7, .frame = 1);
    RECEIVE(&b, .ts = 21, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1000, .bytes = 100, .id = 7,
        .frame = 1); /* copy by a bridge */
    for (int i = 0; i < 2; i++)
        SEND(&a, .ts = 30 + 100 * i, .row = 1, .from = 1, .to = 2, .sport = 53, .dport = 99, .bytes = 40, .id = 9,
            .protocol = 17);
    RECEIVE(&b, .ts = 140, .from = 1, .to = 2, .sport = 53, .dport = 99, .bytes = 40, .id = 9, .protocol = 17,
        .frame = 2); /* ambiguous */
    SEND(&a, .ts = 150, .row = 1, .from = 1, .to = 2, .sport = 54, .dport = 99, .bytes = 40,
        .protocol = 17); /* copy without an id */
    RECEIVE(&b, .ts = 160, .from = 1, .to = 2, .sport = 54, .dport = 99, .bytes = 40, .protocol = 17, .frame = 3);
    host_end(&a), host_end(&b);
    int64_t pairs[21] = {0};
    collect_pairs(&a, &b, pairs);
    assert_int_equal(pairs[20], 1);
    assert_int_equal(pairs[0], 10);
    assert_int_equal(pairs[1], 20);
    close_both(&a, &b);
}

static uint32_t woken_by(struct host *h, uint32_t packet_wake)
{
    struct flow_wake w;
    assert_true(packet_wake >= 1 && packet_wake <= flow_wakes(h->store));
    flow_wake(h->store, packet_wake - 1, &w);
    return w.receive;
}

/* Checks one NAPI poll that logs three receives, then wakes three threads in another order: each by its own connection,
 * although two send only later. */
static void poll_with_many(void **state)
{
    struct host b;
    host_begin(&b);
    uint32_t r1 = RECEIVE(
        &b, .ts = 10, .from = 1, .to = 2, .sport = 81, .dport = 90, .seq = 1, .bytes = 10, .id = 1, .frame = 7);
    uint32_t r2 = RECEIVE(
        &b, .ts = 11, .from = 1, .to = 2, .sport = 82, .dport = 90, .seq = 1, .bytes = 10, .id = 1, .frame = 7);
    uint32_t r3 = RECEIVE(
        &b, .ts = 12, .from = 1, .to = 2, .sport = 83, .dport = 90, .seq = 1, .bytes = 10, .id = 1, .frame = 7);
    uint32_t w3 = wake(&b, 13, 0, 3, KERNEL_CTX_SOFTIRQ, 7), w1 = wake(&b, 14, 0, 1, KERNEL_CTX_SOFTIRQ, 7),
             w2 = wake(&b, 15, 0, 2, KERNEL_CTX_SOFTIRQ, 7);
    uint32_t kthread = wake(&b, 16, 0, 9, KERNEL_CTX_SOFTIRQ, 7);
    for (int i = 1; i <= 3; i++)
        SEND(&b, .ts = 20 + i, .row = i, .from = 2, .to = 1, .sport = 90, .dport = (uint16_t)(80 + i), .seq = 1,
            .ack = 11, .bytes = 5, .id = (uint16_t)i);
    host_end(&b);
    assert_int_equal(woken_by(&b, w1), r1);
    assert_int_equal(woken_by(&b, w2), r2);
    assert_int_equal(woken_by(&b, w3), r3);
    assert_int_equal(woken_by(&b, kthread), UINT32_MAX); /* ksoftirqd and the like are woken by no packet */
    close_both(&b, &b);
}

/* Two threads of a process are woken by two messages of one connection: each by its own, in order, and none by the bare
 * acknowledgement before. */
static void one_connection_many_readers(void **state)
{
    struct host b;
    host_begin(&b);
    SEND(&b, .ts = 1, .row = 4, .from = 2, .to = 1, .sport = 90, .dport = 81, .seq = 1, .bytes = 5, .id = 1);
    RECEIVE(&b, .ts = 9, .from = 1, .to = 2, .sport = 81, .dport = 90, .seq = 1, .ack = 6, .id = 1, .frame = 7);
    uint32_t r1 = RECEIVE(
        &b, .ts = 10, .from = 1, .to = 2, .sport = 81, .dport = 90, .seq = 1, .bytes = 10, .id = 2, .frame = 7);
    uint32_t r2 = RECEIVE(
        &b, .ts = 11, .from = 1, .to = 2, .sport = 81, .dport = 90, .seq = 11, .bytes = 10, .id = 3, .frame = 7);
    uint32_t w1 = wake(&b, 13, 0, 5, KERNEL_CTX_SOFTIRQ, 7), w2 = wake(&b, 14, 0, 5, KERNEL_CTX_SOFTIRQ, 7);
    host_end(&b);
    assert_int_equal(woken_by(&b, w1), r1);
    assert_int_equal(woken_by(&b, w2), r2);
    close_both(&b, &b);
}

/* Checks queries by thread and time, over connections, one after another. */
static void messages_of_threads(void **state)
{
    struct host a;
    uint32_t made[THREADS][64], n[THREADS] = {0}, came[THREADS] = {0};
    host_begin(&a);
    for (uint32_t i = 0; i < 60; i++) {
        uint32_t row = 1 + i % 3, port = 80 + row; /* single user of each connection */
        bool data = i % 7 != 3;
        if (i < 6 || i * 5 % 4) {
            uint32_t sent = SEND(&a, .ts = 10 + i / 2, .row = (int32_t)row, .from = 1, .to = 2, .sport = (uint16_t)port,
                .dport = (uint16_t)(90 + i % 2), .seq = 1000 + 10 * i, .bytes = data ? 10 : 0, .id = (uint16_t)i);
            if (data)
                made[row][n[row]++] = sent;
        } else {
            uint32_t got = RECEIVE(&a, .ts = 10 + i / 2, .from = 2, .to = 1, .sport = (uint16_t)(90 + i % 2),
                .dport = (uint16_t)port, .seq = 50 + 10 * i, .bytes = data ? 10 : 0, .id = (uint16_t)i, .frame = i);
            if (data)
                made[row][n[row]++] = got;
            came[row] += data;
        }
    }
    host_end(&a);
    for (int32_t row = -1; row < THREADS + 1; row++) {
        struct flow_packet p;
        bool is_send;
        size_t receives, count = flow_messages(a.store, row, &receives);
        bool made_here = row >= 0 && row < THREADS;
        assert_int_equal(count, made_here ? n[row] : 0);
        assert_int_equal(receives, made_here ? came[row] : 0);
        for (size_t i = 0; i < count; i++) {
            flow_message(a.store, row, i, &p, &is_send);
            assert_int_equal(p.number, made[row][i]);
            assert_int_equal(is_send, p.seq_end >= (UINT64_C(1) << 32) + 1000);
        }
    }
    assert_int_equal(flow_replies(a.store), 0);
    close_both(&a, &a);
}

/* Softirq work answers on two connections at one time: by the receive that was answered. Of a connection each direction
 * knows the lesser number. */
static void replies_of_one_time(void **state)
{
    struct host a;
    struct flow_packet p;
    uint32_t ack[2], sent[2];
    host_begin(&a);
    for (uint16_t i = 0; i < 2; i++)
        SEND(&a, .ts = 5, .row = 3, .from = 1, .to = 2, .sport = 80 + i, .dport = 90, .seq = 1000, .bytes = 100,
            .id = 1);
    RECEIVE(&a, .ts = 6, .from = 2, .to = 1, .sport = 70, .dport = 60, .seq = 1000, .bytes = 100, .id = 1, .frame = 2);
    for (uint16_t i = 0; i < 2; i++)
        ack[i] = RECEIVE(&a, .ts = 10 + i, .from = 2, .to = 1, .sport = 90, .dport = 80 + i, .seq = 50, .ack = 1100,
            .id = 1, .frame = 3);
    for (uint16_t i = 2; i-- > 0;)
        sent[i] = SEND(&a, .ts = 12, .ctx = KERNEL_CTX_SOFTIRQ, .vector = KERNEL_SOFTIRQ_NET_RX, .frame = 3, .from = 1,
            .to = 2, .sport = 80 + i, .dport = 90, .seq = 1100, .bytes = 100, .id = 2);
    host_end(&a);
    assert_int_equal(flow_replies(a.store), 2);
    for (size_t i = 0; i < 2; i++) {
        flow_reply(a.store, i, &p);
        assert_int_equal(p.number, sent[i]);
        assert_int_equal(p.receive, ack[i]);
        assert_int_equal(flow_connection(a.store, get(&a, ack[i]).flow), p.flow);
        assert_int_equal(flow_connection(a.store, p.flow), p.flow);
    }
    assert_int_equal(flow_connection(a.store, 2), 2); /* single direction recorded */
    close_both(&a, &a);
}

/* Loopback in one direction: 1, then 3, send; 2, later 8, read without ever sending. What arrives is for who reads, not
 * for who sends. */
static void silent_readers(void **state)
{
    struct host a;
    uint32_t r[4];
    host_begin(&a);
    for (uint32_t i = 0; i < 4; i++) {
        SEND(&a, .ts = 10 * i, .row = i < 2 ? 1 : 3, .from = 1, .to = 1, .sport = 80, .dport = 90, .seq = 1 + 10 * i,
            .bytes = 10, .id = (uint16_t)i);
        r[i] = RECEIVE(&a, .ts = 10 * i + 1, .from = 1, .to = 1, .sport = 80, .dport = 90, .seq = 1 + 10 * i,
            .bytes = 10, .id = (uint16_t)i, .frame = 1 + i);
        if (i == 1 || i == 3)
            wake(&a, 10 * i + 2, 0, i == 1 ? 2 : 8, KERNEL_CTX_SOFTIRQ, 1 + i);
    }
    uint32_t unread = RECEIVE(
        &a, .ts = 35, .from = 2, .to = 1, .sport = 81, .dport = 91, .seq = 1, .bytes = 10, .id = 1, .frame = 8);
    wake(&a, 36, 0, 9, KERNEL_CTX_SOFTIRQ, 8); /* ksoftirqd reads no sockets */
    uint32_t ack = SEND(&a, .ts = 40, .ctx = KERNEL_CTX_SOFTIRQ, .vector = KERNEL_SOFTIRQ_TIMER, .frame = 9, .from = 1,
        .to = 1, .sport = 90, .dport = 80, .seq = 1, .ack = 41, .id = 9); /* a delayed acknowledgement */
    host_end(&a);
    assert_int_equal(get(&a, r[0]).row, 2); /* before any wake: the first reader */
    assert_int_equal(get(&a, r[1]).row, 2);
    assert_int_equal(get(&a, r[2]).row, 2);
    assert_int_equal(get(&a, r[3]).row, 8);
    assert_int_equal(get(&a, unread).row, -1);
    assert_int_equal(get(&a, ack).row, 8);
    assert_int_equal(get(&a, ack).origin, FLOW_BY_THREAD);
    close_both(&a, &a);
}

static void call(struct host *h, int32_t row, int64_t begin, int64_t end, uint32_t name, int64_t ret)
{
    struct kernel_record r = {.ts = begin, .kind = KERNEL_SYSCALL_ENTRY, .ctx = KERNEL_CTX_THREAD, .row = row};
    r.u.syscall.name = name;
    host_tell(h, &r);
    r.ts = end;
    r.kind = KERNEL_SYSCALL_EXIT;
    r.u.syscall.ret = ret;
    host_tell(h, &r);
}

static void expect_asks(struct host *h, int32_t row, size_t n, const struct flow_ask *expected)
{
    assert_int_equal(flow_asks(h->store, row), n);
    for (size_t i = 0; i < n; i++) {
        struct flow_ask a;
        flow_ask(h->store, row, i, &a);
        if (a.begin != expected[i].begin || a.last != expected[i].last || a.end != expected[i].end)
            fail_msg(
                "row %d, %d: %lld %lld %lld", row, (int)i, (long long)a.begin, (long long)a.last, (long long)a.end);
    }
}

/* Calls that get nothing, up to one that gets something. */
static void asks_in_vain(void **state)
{
    (void)state;
    struct host h;
    const int64_t us = 1000, again = -11;
    host_begin(&h);
    for (int64_t i = 0; i < 50; i++) { /* two threads at the same time, by different calls */
        call(&h, 3, 10 * i * us, (10 * i + 2) * us, i % 2 ? POLL : EPOLL_WAIT, 0);
        call(&h, 1, (10 * i + 3) * us, (10 * i + 4) * us, RECVFROM, again);
        call(&h, 1, (10 * i + 5) * us, (10 * i + 6) * us, SCHED_YIELD, 0);
    }
    call(&h, 3, 500 * us, 502 * us, SELECT, 1);
    call(&h, 1, 503 * us, 504 * us, RECVFROM, 100);
    /* Checks polling: other calls between the two do no harm; work for longer than a ms, errors and lengths do. */
    call(&h, 3, 1000 * us, 1001 * us, READ, again);
    call(&h, 3, 1100 * us, 1101 * us, WRITE, 5);
    call(&h, 3, 1200 * us, 1201 * us, READ, again);
    call(&h, 3, 1300 * us, 1301 * us, READ, -104);
    call(&h, 3, 1400 * us, 1401 * us, READ, 10);
    call(&h, 3, 3000 * us, 3001 * us, READ, again);
    call(&h, 3, 4002 * us, 4003 * us, READ, 10); /* worked */
    call(&h, 3, 5000 * us, 5001 * us, READ, again);
    call(&h, 3, 6002 * us, 6003 * us, READ, again);
    call(&h, 3, 6050 * us, 6051 * us, READ, 10); /* single vain attempt: no loop */
    call(&h, 3, 7000 * us, 7001 * us, READ, again);
    call(&h, 3, 7010 * us, 7011 * us, READ, again);
    call(&h, 3, 7020 * us, 7021 * us, READ, 10); /* soon */
    call(&h, 3, 8000 * us, 8001 * us, READ, 0);
    call(&h, 3, 8200 * us, 8201 * us, READ, 0); /* an end of file is no answer to come */
    call(&h, 3, 8400 * us, 8401 * us, READ, 5);
    call(&h, 3, 9000 * us, 9001 * us, SLEEP, 0);
    call(&h, 3, 9200 * us, 9201 * us, SLEEP, 0);
    call(&h, 3, 9400 * us, 9401 * us, READ, 5);
    host_end(&h);
    expect_asks(&h, 1, 1, &(struct flow_ask){3 * us, 495 * us, 504 * us});
    expect_asks(&h, 3, 2, (struct flow_ask[]){{0, 490 * us, 502 * us}, {1000 * us, 1200 * us, 1401 * us}});
    expect_asks(&h, 2, 0, NULL);
    expect_asks(&h, 4, 0, NULL);
    flow_close(h.store);
}

/* Checks streams whose times run back, and times at the ends of the range: no stretch ends before it begins. */
static void asks_backwards(void **state)
{
    (void)state;
    struct host h;
    const int64_t us = 1000;
    host_begin(&h);
    call(&h, 1, 1000 * us, 1010 * us, POLL, 0);
    call(&h, 1, 0, 5 * us, POLL, 0);
    call(&h, 1, 900 * us, 1300 * us, POLL, 1);
    call(&h, 2, INT64_MIN + 1, INT64_MIN + 2, POLL, 0);
    call(&h, 2, INT64_MIN + 3, INT64_MIN + 4, POLL, 0);
    call(&h, 2, INT64_MAX - 1, INT64_MAX, POLL, 0);
    call(&h, 2, INT64_MAX, INT64_MAX, POLL, 1);
    host_end(&h);
    expect_asks(&h, 1, 0, NULL);
    expect_asks(&h, 2, 0, NULL);
    flow_close(h.store);
}

/* A socket that thousands of threads send on and are woken by, as of a name server: a thread is known for a user of it
 * without a look at all of them, and one that has a socket of its own is woken by that. */
static void shared_socket(void **state)
{
    (void)state;
    enum { MANY = 40000, RUNS = 20, OF_A_RUN = 300 };
    struct kernel_thread *threads = calloc(MANY, sizeof *threads);
    struct host h;
    host_begin(&h);
    for (int i = 0; i < MANY; i++)
        threads[i] = (struct kernel_thread){.tid = i + 1, .tgid = i + 1, .ppid = 1, .parent_row = -1, .idle_cpu = -1};
    h.tracker.many = threads;
    h.tracker.n_many = MANY;
    int64_t ts = 0;
    int32_t own = MANY - 1;
    uint32_t receive = 0, expected[RUNS], woken[RUNS];
    SEND(&h, ++ts, .row = own, .from = 1, .to = 3, .sport = 54, .dport = 53, .bytes = 9, .id = 1, .protocol = 17);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < own; i++)
            SEND(&h, ++ts, .row = i, .from = 1, .to = 2, .sport = 53, .dport = 53, .bytes = 9, .id = 1, .protocol = 17);
    for (uint32_t run = 0; run < RUNS; run++) {
        for (uint32_t i = 0; i < OF_A_RUN; i++) {
            uint8_t from = i == 7 ? 3 : 2;
            receive = RECEIVE(&h, .ts = ++ts, .frame = run + 1, .from = from, .to = 1, .sport = 53,
                .dport = from == 3 ? 54 : 53, .bytes = 9, .id = 1, .protocol = 17);
            expected[run] = i == 7 ? receive : expected[run];
        }
        woken[run] = wake(&h, ++ts, -1, own, KERNEL_CTX_SOFTIRQ, run + 1) - 1;
    }
    host_end(&h);
    for (uint32_t run = 0; run < RUNS; run++) {
        struct flow_wake w;
        flow_wake(h.store, woken[run], &w);
        assert_int_equal(w.receive, expected[run]);
    }
    flow_close(h.store);
    free(threads);
}

/* A connection used by one thread of a process wakes another thread of it; a listener is woken for what its child will
 * use. */
static void related_threads(void **state)
{
    struct host b;
    host_begin(&b);
    uint32_t r1 = RECEIVE(
        &b, .ts = 10, .from = 1, .to = 2, .sport = 81, .dport = 90, .seq = 1, .bytes = 10, .id = 1, .frame = 7);
    uint32_t r2 = RECEIVE(
        &b, .ts = 11, .from = 1, .to = 2, .sport = 82, .dport = 91, .seq = 1, .bytes = 10, .id = 1, .frame = 7);
    uint32_t w5 = wake(&b, 13, 0, 5, KERNEL_CTX_SOFTIRQ, 7), w6 = wake(&b, 14, 0, 6, KERNEL_CTX_SOFTIRQ, 7);
    SEND(
        &b, .ts = 20, .row = 4, .from = 2, .to = 1, .sport = 91, .dport = 82, .seq = 1, .ack = 11, .bytes = 5, .id = 1);
    SEND(
        &b, .ts = 21, .row = 7, .from = 2, .to = 1, .sport = 90, .dport = 81, .seq = 1, .ack = 11, .bytes = 5, .id = 2);
    host_end(&b);
    assert_int_equal(woken_by(&b, w5), r2);
    assert_int_equal(woken_by(&b, w6), r1);
    close_both(&b, &b);
}

/* Data sent by the softirq that an acknowledgement started follow that acknowledgement; from the tasklet of small
 * queues they belong to the owner. */
static void clocked_sends(void **state)
{
    struct host a;
    host_begin(&a);
    SEND(&a, .ts = 5, .row = 3, .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1000, .bytes = 100, .id = 1);
    uint32_t ack = RECEIVE(
        &a, .ts = 10, .from = 2, .to = 1, .sport = 90, .dport = 80, .seq = 50, .ack = 1100, .id = 1, .frame = 3);
    uint32_t clocked = SEND(&a, .ts = 11, .ctx = KERNEL_CTX_SOFTIRQ, .vector = KERNEL_SOFTIRQ_NET_RX, .frame = 3,
        .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1100, .bytes = 100, .id = 2);
    uint32_t queued = SEND(&a, .ts = 15, .ctx = KERNEL_CTX_SOFTIRQ, .vector = KERNEL_SOFTIRQ_TASKLET, .frame = 4,
        .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1200, .bytes = 100, .id = 3);
    RECEIVE(&a, .ts = 20, .from = 2, .to = 1, .sport = 90, .dport = 80, .seq = 50, .ack = 1300, .id = 2, .frame = 5);
    RECEIVE(&a, .ts = 21, .from = 2, .to = 1, .sport = 91, .dport = 81, .seq = 50, .ack = 1300, .id = 2, .frame = 5);
    uint32_t beside = SEND(&a, .ts = 22, .ctx = KERNEL_CTX_SOFTIRQ, .vector = KERNEL_SOFTIRQ_NET_RX, .frame = 5,
        .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1300, .bytes = 100,
        .id = 4); /* the last receive is of another connection */
    uint32_t alone = SEND(&a, .ts = 25, .ctx = KERNEL_CTX_SOFTIRQ, .vector = KERNEL_SOFTIRQ_NET_RX, .frame = 6,
        .from = 1, .to = 2, .sport = 80, .dport = 90, .seq = 1400, .bytes = 100,
        .id = 5); /* the last receive is of another run */
    host_end(&a);
    assert_int_equal(get(&a, clocked).origin, FLOW_BY_RECEIVE);
    assert_int_equal(get(&a, clocked).receive, ack);
    assert_int_equal(get(&a, beside).origin, FLOW_BY_RECEIVE);
    assert_int_equal(get(&a, get(&a, beside).receive).ts, 20);
    assert_int_equal(get(&a, alone).origin, FLOW_BY_THREAD);
    assert_int_equal(get(&a, alone).row, 3);
    assert_int_equal(get(&a, queued).origin, FLOW_BY_THREAD);
    assert_int_equal(get(&a, queued).row, 3);
    close_both(&a, &a);
}

/* Data arrive while thread 4 holds the socket; when it lets go it wakes thread 5 that waits for them: the cause is the
 * packet, not thread 4. */
static void socket_backlog(void **state)
{
    struct host b;
    host_begin(&b);
    SEND(&b, .ts = 1, .row = 5, .from = 2, .to = 1, .sport = 90, .dport = 81, .seq = 1, .bytes = 5, .id = 1);
    SEND(&b, .ts = 8, .row = 4, .from = 2, .to = 1, .sport = 90, .dport = 81, .seq = 6, .bytes = 5, .id = 2);
    uint32_t r = RECEIVE(
        &b, .ts = 10, .from = 1, .to = 2, .sport = 81, .dport = 90, .seq = 1, .bytes = 10, .id = 1, .frame = 7);
    uint32_t w = wake(&b, 13, 4, 5, KERNEL_CTX_THREAD, 0), again = wake(&b, 14, 4, 5, KERNEL_CTX_THREAD, 0),
             foreign = wake(&b, 15, 4, 8, KERNEL_CTX_THREAD, 0);
    host_end(&b);
    assert_int_equal(woken_by(&b, w), r);
    assert_int_equal(again, 0);   /* bytes that have woken a thread already */
    assert_int_equal(foreign, 0); /* not a user of the connection */
    close_both(&b, &b);
}

/* A threaded handler gets a packet and wakes; so does the thread that has the CPU after it: only the first wake is the
 * packet's. A thread of the kernel that runs the softirqs is woken by no packet of a connection that others use. */
static void whose_wake(void **state)
{
    struct host b;
    host_begin(&b);
    SEND(&b, .ts = 1, .row = 3, .from = 2, .to = 1, .sport = 90, .dport = 81, .seq = 1, .bytes = 5, .id = 1);
    uint32_t r = packet(&b, KERNEL_PACKET_RECEIVE,
        (struct shape){
            .ts = 10, .row = 8, .from = 1, .to = 2, .sport = 81, .dport = 90, .seq = 1, .bytes = 10, .id = 1});
    uint32_t handed = wake(&b, 11, 8, 3, KERNEL_CTX_THREAD, 0);
    struct kernel_record change = {.ts = 12, .kind = KERNEL_SWITCH};
    host_tell(&b, &change);
    uint32_t after = wake(&b, 13, 2, 3, KERNEL_CTX_THREAD, 0);
    RECEIVE(&b, .ts = 20, .from = 1, .to = 2, .sport = 81, .dport = 90, .seq = 11, .bytes = 10, .id = 2, .frame = 7);
    uint32_t ksoftirqd = wake(&b, 21, 0, 9, KERNEL_CTX_SOFTIRQ, 7);
    host_end(&b);
    assert_int_equal(woken_by(&b, handed), r);
    assert_int_equal(after, 0);
    assert_int_equal(woken_by(&b, ksoftirqd), UINT32_MAX);
    close_both(&b, &b);
}

/* CPU time of n packets that wake a thread each, without an end of the run that they are received in, or each on a
 * connection that uses the ports of the one before. */
static double time_of_wakes(uint32_t n, bool reused)
{
    struct host b;
    host_begin(&b);
    clock_t began = clock();
    for (uint32_t i = 0; i < n; i++) {
        uint32_t seq = i * 1000 + 1;
        if (reused || !i) {
            RECEIVE(&b, .ts = 10 * i, .row = 8, .from = 1, .to = 2, .sport = 81, .dport = 90, .seq = seq, .flags = SYN,
                .frame = 2 * i + 1);
            SEND(&b, .ts = 10 * i + 1, .row = 3, .from = 2, .to = 1, .sport = 90, .dport = 81, .seq = seq, .bytes = 5);
        }
        uint32_t r = RECEIVE(&b, .ts = 10 * i + 2, .row = 8, .from = 1, .to = 2, .sport = 81, .dport = 90,
            .seq = seq + 1, .bytes = 10, .frame = reused ? 2 * i + 2 : 2);
        assert_int_equal(wake(&b, 10 * i + 3, 8, 3, KERNEL_CTX_SOFTIRQ, reused ? 2 * i + 2 : 2), i + 1);
        assert_int_equal(r, reused ? 3 * i + 2 : i + 2);
    }
    host_end(&b);
    double seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(woken_by(&b, i + 1), reused ? 3 * i + 2 : i + 2);
    close_both(&b, &b);
    return seconds;
}

static void many_wakes(void **state)
{
    (void)state;
    for (int reused = 0; reused < 2; reused++) {
        double few = time_of_wakes(20000, reused), many = time_of_wakes(80000, reused);
        if (many > 12 * few) /* squares would be 16; a busy machine has slower memory */
            fail_msg("%s: %g s for 20 000, %g s for 80 000", reused ? "reused ports" : "one long run", few, many);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retransmission),
        cmocka_unit_test(datagrams),
        cmocka_unit_test(datagrams_without_ids),
        cmocka_unit_test(pairs_of_copies),
        cmocka_unit_test(poll_with_many),
        cmocka_unit_test(one_connection_many_readers),
        cmocka_unit_test(silent_readers),
        cmocka_unit_test(asks_in_vain),
        cmocka_unit_test(asks_backwards),
        cmocka_unit_test(related_threads),
        cmocka_unit_test(shared_socket),
        cmocka_unit_test(clocked_sends),
        cmocka_unit_test(messages_of_threads),
        cmocka_unit_test(replies_of_one_time),
        cmocka_unit_test(socket_backlog),
        cmocka_unit_test(whose_wake),
        cmocka_unit_test(many_wakes),
    };
    return RUN_CUT("flow", tests);
}
