/* SPDX-License-Identifier: MIT */
/* Random worlds: a sends to b, directly or through a router that may translate, over stacked devices, on few ports that
 * are used again and again; bytes are cut, merged, lost, sent again and overtaken, and their numbers go round. Which
 * send
 * each receive comes from is known by how the world is made. WEFT_SEED looks further. */
#include <stdio.h>

#include "base/mem.h"
#include "hosts.h"

enum { A, ROUTER, B, HOSTS, PORTS = 3, CONNECTIONS = 12, MOST_SENDS = 40, NOBODY = -1 };

struct happening {
    struct shape shape;
    int host, kind;
    int64_t order; /* order among equal times: as made */
    int64_t truth; /* receives of b: the happening that is their send */
    uint32_t number;
};

struct world {
    struct host hosts[HOSTS];
    VEC(struct happening) all;
    bool routed, translated;
    uint32_t devices[HOSTS]; /* stacked on each other */
    uint64_t skb;
};

static uint32_t below(uint32_t n)
{
    return (uint32_t)rand() % n;
}

static void happen(struct world *w, int host, int kind, struct shape s, int64_t truth)
{
    for (uint32_t d = 0; d < (kind == KERNEL_PACKET_SEND || host == B ? w->devices[host] : 1); d++) {
        s.device = 10 * (uint32_t)kind + d + 1;
        struct happening one = {s, host, kind, (int64_t)w->all.n, truth, 0};
        vec_push(&w->all, one);
        s.ts += 1;
    }
}

/* Makes a packet leave a at s.ts; returns the number of the send. */
static int64_t leave(struct world *w, struct shape s)
{
    int64_t at = (int64_t)w->all.n;
    s.skb = ++w->skb;
    happen(w, A, KERNEL_PACKET_SEND, s, NOBODY);
    return at;
}

/* Makes a packet reach b at s.ts, through the router. */
static void arrive(struct world *w, struct shape s, int64_t truth)
{
    s.ctx = KERNEL_CTX_SOFTIRQ, s.vector = KERNEL_SOFTIRQ_NET_RX, s.frame = (uint32_t)w->all.n + 1;
    s.skb = ++w->skb;
    if (w->routed) {
        struct shape on = s;
        on.ts -= 20;
        happen(w, ROUTER, KERNEL_PACKET_RECEIVE, on, NOBODY);
        if (w->translated)
            s.from = 7, s.sport = (uint16_t)(s.sport + 20000);
        on.from = s.from, on.sport = s.sport;
        on.ts += 5;
        happen(w, ROUTER, KERNEL_PACKET_SEND, on, NOBODY);
    }
    happen(w, B, KERNEL_PACKET_RECEIVE, s, truth);
}

struct sent {
    uint64_t begin, end;
    int64_t happening;
};

/* The first send that carried byte end - 1. */
static int64_t first_send(const struct sent *sent, int n, uint64_t end)
{
    for (int i = 0; i < n; i++)
        if (sent[i].begin < end && end <= sent[i].end)
            return sent[i].happening;
    return NOBODY;
}

/* Makes a connection; returns the time when all of it has arrived. */
static int64_t make_connection(struct world *w, int64_t t, uint16_t port, int32_t row)
{
    struct sent sent[2 * MOST_SENDS];
    bool huge = !w->translated && below(4) == 0; /* numbers that wrap */
    uint32_t isn = below(3) ? (uint32_t)rand() * 2 : 0xffffff00u - below(5000), ack = (uint32_t)rand();
    uint64_t next = (uint64_t)isn + 1, lost = 0;
    int n = 0, sends = 3 + (int)below(MOST_SENDS - 3);
    uint16_t id = (uint16_t)rand();
    struct shape s = {
        .ts = t, .row = row, .from = 1, .to = 2, .sport = port, .dport = 90, .seq = isn, .flags = SYN, .id = id};
    int64_t syn = leave(w, s), last = t + 100;
    s.ts += 100;
    arrive(w, s, syn);
    s.flags = ACK;
    for (int i = 0; i < sends; i++) {
        uint32_t bytes = huge ? 0x10000000u + below(0x20000000u) : 1 + below(60000);
        struct shape p = s;
        t += 100 + below(1000);
        p.ts = t, p.seq = (uint32_t)next, p.ack = ack, p.bytes = bytes, p.id = ++id;
        sent[n++] = (struct sent){next, next + bytes, leave(w, p)};
        next += bytes;
        ack += below(3) * 10;
        p.ts = t + 50 + below(3000); /* overtakes */
        /* Lost, and sent again in the end; no more than 2^31 bytes are ever under way. */
        if (below(6) == 0 && !lost && (!huge || i >= sends - 3)) {
            lost = next;
            continue;
        }
        for (uint32_t cut = huge ? 1 : 1 + below(4), k = 0, from = 0; k < cut; k++) {
            uint32_t to = k + 1 == cut ? bytes : from + (bytes - from) / (cut - k);
            struct shape piece = p;
            piece.ts += k, piece.seq = p.seq + from, piece.bytes = to - from, piece.id = (uint16_t)(p.id + k);
            if (to > from)
                arrive(w, piece, first_send(sent, n, next - bytes + to));
            from = to;
        }
        last = p.ts + 10 > last ? p.ts + 10 : last;
    }
    if (lost) { /* the last 40 bytes of what was lost, and whatever came after them merged into it */
        uint64_t begin = lost - (lost - sent[0].begin < 40 ? lost - sent[0].begin : 40),
                 end = below(2) && next - begin < 60000 ? next : lost;
        s.ts = t + 500, s.seq = (uint32_t)begin, s.ack = ack, s.bytes = (uint32_t)(end - begin), s.id = ++id;
        sent[n++] = (struct sent){begin, end, leave(w, s)};
        s.ts += 200;
        arrive(w, s, first_send(sent, n, end));
        last = s.ts > last ? s.ts : last;
    }
    return last + 100;
}

/* Datagrams: with IP ids they may be lost, doubled and overtaken; without, one after another. */
static void make_datagrams(struct world *w, bool named)
{
    int64_t t = 0;
    for (uint32_t i = 0; i < 200; i++) {
        struct shape s = {.row = 5,
            .from = 1,
            .to = 2,
            .sport = named ? 53 : 54,
            .dport = 99,
            .protocol = 17,
            .v6 = !named,
            .bytes = 40 + below(2),
            .id = named ? (uint16_t)(1 + i) : 0};
        t += 1000 + below(1000);
        s.ts = t;
        int64_t sent = leave(w, s);
        for (uint32_t copies = below(8) ? 1 : named ? below(3) : 0; copies; copies--) {
            s.ts = t + 100 + below(named ? 5000 : 100);
            arrive(w, s, sent);
        }
    }
}

static int by_time(const void *a, const void *b)
{
    const struct happening *p = a, *q = b;
    if (p->shape.ts != q->shape.ts)
        return p->shape.ts < q->shape.ts ? -1 : 1;
    return p->order < q->order ? -1 : p->order > q->order;
}

static void tell(struct world *w)
{
    for (int h = 0; h < HOSTS; h++)
        host_begin(&w->hosts[h]);
    SEND(&w->hosts[ROUTER], .ts = -10, .row = 3, .from = 7, .to = 2, .sport = 22, .dport = 90, .seq = 1, .bytes = 9);
    qsort(w->all.v, w->all.n, sizeof *w->all.v, by_time);
    for (size_t i = 0; i < w->all.n; i++)
        w->all.v[i].number = packet(&w->hosts[w->all.v[i].host], w->all.v[i].kind, w->all.v[i].shape);
    for (int h = 0; h < HOSTS; h++)
        host_end(&w->hosts[h]);
}

static void make_world(struct world *w)
{
    memset(w, 0, sizeof *w);
    w->routed = below(2);
    w->translated = w->routed && below(2);
    for (int h = 0; h < HOSTS; h++)
        w->devices[h] = 1 + below(3);
    for (uint16_t port = 0; port < PORTS; port++)
        for (int64_t c = 0, t = below(5000); c < CONNECTIONS; c++)
            t = make_connection(w, t, 4000 + port, 1 + (int32_t)below(4)) + below(300);
    if (!w->translated) { /* datagrams have too little content to be identified under another name */
        make_datagrams(w, true);
        make_datagrams(w, false);
    }
    tell(w);
}

static void random_worlds(void **state)
{
    for (uint64_t first = test_seed(1), seed = first; seed < first + (is_run_cut() ? 15 : 60); seed++) {
        struct world w;
        size_t asked = 0, mistaken = 0, n;
        srand((unsigned)seed);
        make_world(&w);
        uint32_t *number_of = malloc(sizeof *number_of * w.all.n);
        for (size_t i = 0; i < w.all.n; i++)
            number_of[w.all.v[i].order] = w.all.v[i].number;
        for (size_t i = 0; i < w.all.n; i++) {
            const struct happening *h = &w.all.v[i];
            enum flow_answer answer;
            if (h->truth == NOBODY)
                continue;
            asked++;
            int64_t sent = explain_within(&w.hosts[B], h->number, &w.hosts[A], below(20), &answer);
            if (h->shape.v6 && sent != number_of[h->truth]) {
                mistaken++;
                continue;
            }
            if (sent != number_of[h->truth])
                fail_msg("seed %d: receive %d from port %d at %lld: send %lld, should be %d", (int)seed, (int)h->number,
                    h->shape.sport, (long long)h->shape.ts, (long long)sent, (int)number_of[h->truth]);
            assert_int_equal(explain(&w.hosts[B], h->number, &w.hosts[ROUTER]), -1);
        }
        assert_true(asked > 100);
        assert_in_range(mistaken, 0, 4 * w.devices[B]); /* of 200 unnamed datagrams */
        const struct flow_address *own;
        n = flow_addresses(w.hosts[A].store, &own);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(own[i].addr[own[i].family == 4 ? 3 : 15], 1);
        assert_int_equal(flow_addresses(w.hosts[ROUTER].store, &own), 1);
        assert_int_equal(flow_addresses(w.hosts[B].store, &own), 0);
        free(number_of);
        vec_free(&w.all);
        flow_close(w.hosts[ROUTER].store);
        close_both(&w.hosts[A], &w.hosts[B]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_worlds)};
    return RUN_CUT("flow: worlds", tests);
}
