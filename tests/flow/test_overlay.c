/* SPDX-License-Identifier: MIT */
/* Containers behind bridges, tunnels and translation: a packet counts once, for whom sent it and for whom it was. */
#include "hosts.h"

enum { N = 24, SERVER = 2, TCP_HEADERS = 52, UDP = 17, IP_IN_IP = 4, GRE = 47 };
enum { POD = 1, VETH, BRIDGE, TUNNEL, CARD, SERVICE_VETH }; /* devices */

static struct flow_key key_of(struct shape s)
{
    struct flow_key k = {4, s.protocol ? s.protocol : 6, s.sport, s.dport, {10, 0, 0, s.from}, {10, 0, 0, s.to}};
    return k;
}

static struct flow_tally tally(const struct host *h, struct shape s, bool sent)
{
    struct flow_tally out[2] = {0};
    struct flow_key k = key_of(s);
    int64_t flow = flow_lookup(h->store, &k);
    if (flow >= 0)
        flow_tally(h->store, (size_t)flow, INT64_MIN, INT64_MAX, &out[1], &out[0]);
    return out[sent];
}

static void assert_went(const struct host *h, struct shape s, uint64_t sent, uint64_t received)
{
    assert_int_equal(tally(h, s, true).packets, sent);
    assert_int_equal(tally(h, s, false).packets, received);
}

static struct flow_carried carried(const struct host *h)
{
    struct flow_carried c = {0};
    flow_carried(h->store, INT64_MIN, INT64_MAX, &c);
    return c;
}

static uint32_t send_on(struct host *h, struct shape *s, uint32_t device)
{
    s->device = device;
    s->ts += 5000;
    return packet(h, KERNEL_PACKET_SEND, *s);
}

static uint32_t take_on(struct host *h, struct shape *s, uint32_t device)
{
    struct shape in = *s;
    in.ctx = KERNEL_CTX_SOFTIRQ, in.vector = KERNEL_SOFTIRQ_NET_RX;
    in.device = device;
    in.ts = s->ts += 5000;
    return packet(h, KERNEL_PACKET_RECEIVE, in);
}

static struct shape segment(int i, uint8_t from, uint8_t to)
{
    return (struct shape){.ts = 1000000 * (int64_t)i,
        .row = 1,
        .frame = (uint32_t)(2 * i + 1),
        .from = from,
        .to = to,
        .sport = 4000,
        .dport = 80,
        .seq = 1000 + 10u * (uint32_t)i,
        .ack = 1,
        .bytes = 10,
        .id = (uint16_t)(i + 1),
        .skb = 0x1000 + 64 * (uint64_t)(i % 3),
        .headers = TCP_HEADERS};
}

/* Returns the packet that encloses another one, longer by `more`. */
static struct shape around(const struct shape *inner, uint8_t protocol, uint32_t more)
{
    struct shape s = *inner;
    s.net = 192, s.from = 1, s.to = 2;
    s.protocol = protocol, s.seq = s.ack = 0;
    s.id = (uint16_t)(inner->id + 500);
    s.sport = protocol == UDP ? 40000 : 0, s.dport = protocol == UDP ? 8472 : 0;
    s.bytes = protocol == UDP ? inner->bytes + inner->headers + more : 0;
    s.headers = (uint16_t)(protocol == UDP ? 28 : inner->bytes + inner->headers + more);
    return s;
}

/* Pod, bridge, tunnel, card; and in by another one, whose pod's card has the same name as the host's. */
static void through_tunnel(uint8_t protocol, uint32_t more, bool aggregated)
{
    struct host a, b;
    struct shape of = segment(0, 11, 21), outer = around(&of, protocol, more);
    uint32_t sent[N], got[N], woke[N];
    host_begin(&a), host_begin(&b);
    for (int i = 0; i < N; i++) {
        struct shape s = segment(i, 11, 21), o;
        sent[i] = send_on(&a, &s, CARD);
        take_on(&a, &s, VETH);
        take_on(&a, &s, BRIDGE);
        send_on(&a, &s, TUNNEL);
        o = around(&s, protocol, more);
        send_on(&a, &o, CARD);
        s.ts += 100000;
        o.ts = s.ts;
        if (aggregated) /* the card's driver has looked inside already */
            take_on(&b, &s, CARD);
        else
            take_on(&b, &o, CARD);
        s.ts = s.ts > o.ts ? s.ts : o.ts;
        s.frame++; /* next run of the softirq */
        take_on(&b, &s, TUNNEL);
        send_on(&b, &s, BRIDGE);
        send_on(&b, &s, VETH);
        got[i] = take_on(&b, &s, CARD);
        woke[i] = wake(&b, s.ts + 1, KERNEL_NO_ROW, SERVER, KERNEL_CTX_SOFTIRQ, s.frame);
    }
    host_end(&a), host_end(&b);
    assert_went(&a, of, N, 0);
    assert_went(&b, of, 0, N);
    assert_went(&a, outer, 0, 0);
    assert_went(&b, outer, 0, 0);
    assert_int_equal(carried(&a).carrying, N);
    assert_int_equal(carried(&b).carrying, aggregated ? 0 : N);
    assert_int_equal(carried(&a).opaque + carried(&b).opaque, 0);
    for (int i = 0; i < N; i++) {
        struct flow_wake w;
        assert_int_equal(explain(&b, got[i], &a), sent[i]);
        assert_int_equal(get(&a, sent[i]).row, 1);
        assert_int_equal(get(&b, got[i]).row, SERVER);
        flow_wake(b.store, woke[i] - 1, &w);
        assert_int_equal(w.receive, got[i]);
    }
    const struct flow_address *own;
    assert_int_equal(flow_addresses(a.store, &own), 1);
    assert_int_equal(own->addr[3], 11);
    size_t receives;
    assert_int_equal(flow_messages(a.store, 1, &receives), N);
    assert_int_equal(flow_messages(b.store, SERVER, &receives), N);
    assert_int_equal(receives, N);
    close_both(&a, &b);
}

static void tunnels(void **state)
{
    (void)state;
    through_tunnel(UDP, 22, false); /* VXLAN */
    through_tunnel(UDP, 22, true);
    through_tunnel(UDP, 30, false); /* Geneve with options */
    through_tunnel(GRE, 24, false);
    through_tunnel(GRE, 38, false); /* tunnel of Ethernet */
    through_tunnel(IP_IN_IP, 20, false);
}

static void on_pair(void *arg, int64_t sent, int64_t received)
{
    int64_t *sum = arg;
    sum[0]++;
    sum[1] += received - sent;
}

static void on_near(void *arg, const struct flow_near *near)
{
    int64_t *sum = arg;
    sum[0]++;
    sum[1] += near->sure;
}

/* Checks that clocks use the record nearest to the wire, once for each packet. */
static void clocks_know_the_card(void **state)
{
    (void)state;
    struct host a, b;
    host_begin(&a), host_begin(&b);
    for (int i = 0; i < N; i++) {
        struct shape s = segment(i, 11, 21);
        send_on(&a, &s, POD);
        s.ts += 1000;
        take_on(&b, &s, TUNNEL);
        send_on(&b, &s, VETH);
        take_on(&b, &s, POD);
    }
    host_end(&a), host_end(&b);
    struct flow_link *links;
    const struct flow_store *stores[] = {a.store, b.store};
    size_t n = flow_links(stores, 2, 1, &links);
    int64_t sum[2] = {0};
    assert_int_equal(n, 1);
    flow_sure_pairs(a.store, b.store, links, n, on_pair, sum);
    assert_int_equal(sum[0], N);
    assert_int_equal(sum[1], N * 6000);
    free(links);
    n = flow_near_links(stores, 2, 1, &links);
    sum[0] = sum[1] = 0;
    flow_near_pairs(a.store, b.store, links, n, INT64_MIN, on_near, sum);
    assert_int_equal(sum[0], N);
    assert_int_equal(sum[1], N);
    free(links);
    close_both(&a, &b);
}

/* Two pods use one port towards a service; both become the node's address, one under another port. */
static void translated_service(void **state)
{
    (void)state;
    struct host h;
    struct shape service[2] = {segment(0, 11, 96), segment(0, 12, 96)},
                 real[2] = {segment(0, 7, 20), segment(0, 7, 20)};
    uint32_t sent[N], got[N];
    real[1].sport = 5000, real[0].dport = real[1].dport = 8080;
    host_begin(&h);
    for (int i = 0; i < N; i++) {
        int pod = i % 2;
        struct shape s = segment(i, pod ? 12 : 11, 96);
        s.seq += pod ? 0x70000000u : 0;
        s.row = pod ? 4 : 1;
        sent[i] = send_on(&h, &s, CARD);
        take_on(&h, &s, VETH);
        take_on(&h, &s, BRIDGE);
        s.from = 7, s.to = 20, s.sport = real[pod].sport, s.dport = 8080;
        send_on(&h, &s, BRIDGE);
        send_on(&h, &s, SERVICE_VETH);
        got[i] = take_on(&h, &s, CARD);
        wake(&h, s.ts + 1, KERNEL_NO_ROW, SERVER, KERNEL_CTX_SOFTIRQ, s.frame);
    }
    /* The end of a handshake, which a server may wait for. */
    struct shape bare = segment(N, 11, 96);
    bare.bytes = 0, bare.ack = 99, bare.id = 300;
    bare.seq = segment(N - 2, 11, 96).seq + 10;
    uint32_t ack = send_on(&h, &bare, CARD), ack_got, other_got;
    take_on(&h, &bare, VETH);
    bare.from = 7, bare.to = 20, bare.dport = 8080;
    send_on(&h, &bare, BRIDGE);
    ack_got = take_on(&h, &bare, CARD);
    bare.id++, bare.ts += 1000, bare.skb += 0x10000;
    other_got = take_on(&h, &bare, VETH); /* receive without a send */
    host_end(&h);
    assert_int_equal(explain(&h, ack_got, &h), ack);
    assert_int_equal(explain(&h, other_got, &h), -1);
    for (int pod = 0; pod < 2; pod++) {
        assert_went(&h, service[pod], N / 2 + !pod, 0);
        assert_went(&h, real[pod], 0, N / 2 + !pod);
    }
    for (int i = 0; i < N; i++) {
        assert_int_equal(explain(&h, got[i], &h), sent[i]);
        assert_int_equal(get(&h, sent[i]).row, i % 2 ? 4 : 1);
    }
    assert_int_equal(carried(&h).renamed, 0); /* bytes that identify their sender */
    close_both(&h, &h);
}

/* Checks translated datagrams: they have too little content to be identified; they are counted. */
static void translated_datagrams(void **state)
{
    (void)state;
    struct host a, b;
    uint32_t got[N];
    host_begin(&a), host_begin(&b);
    for (int i = 0; i < N; i++) {
        struct shape s = segment(i, 11, 96);
        s.protocol = UDP, s.headers = 28, s.seq = s.ack = 0;
        send_on(&a, &s, CARD);
        take_on(&a, &s, VETH);
        s.from = 7, s.to = 21, s.sport = 5000, s.dport = 53;
        send_on(&a, &s, CARD);
        got[i] = take_on(&b, &s, CARD);
    }
    host_end(&a), host_end(&b);
    assert_int_equal(carried(&a).renamed, N);
    assert_int_equal(carried(&b).renamed, 0);
    for (int i = 0; i < N; i++)
        assert_int_equal(explain(&b, got[i], &a), -1);
    close_both(&a, &b);
}

/* Encrypted by threads of the kernel, on other CPUs and later; of what was cut before, the inside was not seen. */
static void encrypted(void **state)
{
    (void)state;
    struct host a, b;
    struct shape of = segment(0, 11, 21), outer = around(&of, UDP, 0);
    uint32_t sent[N], got[N], padded = (TCP_HEADERS + 10 + 15) / 16 * 16 + 32;
    host_begin(&a), host_begin(&b);
    for (int i = 0; i < N; i++) {
        struct shape s = segment(i, 11, 21), o, other = segment(i, 3, 4);
        sent[i] = send_on(&a, &s, TUNNEL);
        other.skb = 0x9000, other.ts = s.ts;
        send_on(&a, &other, VETH);
        o = around(&s, UDP, 0);
        o.bytes = i % 8 == 7 ? 1400 : padded; /* size of a packet that was cut */
        o.row = 9, o.cpu = 1;
        o.ts += 3000000;
        send_on(&a, &o, CARD);
        take_on(&b, &o, CARD);
        if (i % 8 == 7)
            s.skb += 0x40000;
        s.ts = o.ts + 3000000;
        s.cpu = 2;
        got[i] = take_on(&b, &s, TUNNEL);
    }
    host_end(&a), host_end(&b);
    for (int i = 0; i < N; i++)
        assert_int_equal(explain(&b, got[i], &a), sent[i]);
    assert_went(&a, of, N, 0);
    assert_went(&b, of, 0, N);
    assert_went(&a, outer, 0, 0);
    assert_went(&b, outer, 0, 0);
    assert_int_equal(carried(&a).carrying, N);
    assert_int_equal(carried(&a).opaque, N / 8);
    assert_int_equal(carried(&b).carrying, N);
    assert_int_equal(carried(&b).opaque, N / 8);
    close_both(&a, &b);
}

/* Protocols that carry, with nothing seen inside. */
static void opaque_protocol(void **state)
{
    (void)state;
    struct host h;
    struct shape of = {.ts = 1, .row = 1, .from = 1, .to = 2, .protocol = GRE, .headers = 200, .id = 1, .device = CARD};
    host_begin(&h);
    packet(&h, KERNEL_PACKET_SEND, of);
    host_end(&h);
    assert_went(&h, of, 0, 0);
    assert_int_equal(carried(&h).carrying, 1);
    assert_int_equal(carried(&h).opaque, 1);
    close_both(&h, &h);
}

/* Datagrams of sockets whose sizes and addresses in the kernel fit a tunnel's by chance: the kernel's memory is used
 * again at once. */
static void chance(void **state)
{
    (void)state;
    struct host h;
    struct shape ask = {.from = 1, .to = 8, .sport = 600, .dport = 53, .protocol = UDP, .bytes = 40, .headers = 28},
                 answer = {.from = 8, .to = 1, .sport = 53, .dport = 600, .protocol = UDP, .headers = 28};
    host_begin(&h);
    for (int i = 0; i < N; i++) {
        struct shape q = ask, r = answer, s = segment(i, 3, 4), t = segment(i, 5, 6);
        q.ts = s.ts, q.row = 1, q.id = r.id = (uint16_t)(i + 1), q.skb = 0x77000, r.skb = 0x78000;
        send_on(&h, &q, CARD);
        r.ts = q.ts, r.frame = q.frame = (uint32_t)i + 1, r.bytes = TCP_HEADERS + 10 + 22;
        take_on(&h, &r, CARD);
        s.ts = r.ts, s.skb = r.skb;
        take_on(&h, &s, VETH); /* pretends to have come out of the answer */
        t.ts = s.ts, t.skb = 0x79000;
        r.skb = t.skb;
        send_on(&h, &t, VETH);
        t.skb = 0x7a000, t.from = 7;
        send_on(&h, &t, VETH);
        r.ts = t.ts, r.row = 4, r.from = 9, r.id = (uint16_t)(i + 700);
        send_on(&h, &r, CARD); /* pretends to enclose it, but another packet came between */
    }
    host_end(&h);
    assert_went(&h, ask, N, 0);
    assert_went(&h, answer, 0, N);
    answer.from = 9;
    assert_went(&h, answer, N, 0);
    assert_int_equal(carried(&h).carrying, 0);
    close_both(&h, &h);
}

/* Sent again unchanged, as SYN and ACK are without an IP id: not the same packet in another namespace. */
static void sent_again(void **state)
{
    (void)state;
    struct host h;
    struct shape of = segment(0, 11, 21);
    host_begin(&h);
    for (int i = 0; i < 3; i++) {
        struct shape s = of;
        s.ts = 1000000000 * (int64_t)i;
        s.id = 0, s.flags = SYN | ACK, s.bytes = 0;
        send_on(&h, &s, CARD);
        take_on(&h, &s, VETH);
    }
    host_end(&h);
    assert_int_equal(tally(&h, of, true).packets, 3);
    close_both(&h, &h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tunnels),
        cmocka_unit_test(clocks_know_the_card),
        cmocka_unit_test(translated_service),
        cmocka_unit_test(translated_datagrams),
        cmocka_unit_test(encrypted),
        cmocka_unit_test(opaque_protocol),
        cmocka_unit_test(chance),
        cmocka_unit_test(sent_again),
    };
    return RUN_CUT("overlay", tests);
}
