/* SPDX-License-Identifier: MIT */
/* Copies near in time against the plain statement of the rule, in made worlds of hours in which packets that look alike
 * come again: repetitions, numbers that go round, datagrams of few IP ids, clocks that are apart. What is found since
 * some time is what is found of all. WEFT_SEED looks further. */
#include <stdio.h>

#include "base/mem.h"
#include "base/order.h"
#include "hosts.h"

enum { A, B, HOSTS, FLOWS = 4, MOST = 600, WORLDS = 60 };

struct seen {
    struct shape shape;
    bool send;
};

struct world {
    struct host hosts[HOSTS];
    VEC(struct seen) seen[HOSTS];
    int64_t offset; /* offset of b's clock */
};

struct found {
    VEC(struct flow_near) v;
};

static uint32_t below(uint32_t n)
{
    return (uint32_t)rand() % n;
}

static int by_time(const void *a, const void *b)
{
    const struct seen *p = a, *q = b;
    return order_of(p->shape.ts, q->shape.ts);
}

static void make(struct world *w, unsigned seed)
{
    static const int64_t offsets[] = {0, 3000000, -50000000000, 130000000000, 150000000000, -3600000000000};
    static const int64_t spans[] = {1000000000, 600000000000, 7200000000000};
    memset(w, 0, sizeof *w);
    srand(seed);
    int64_t span = spans[below(3)];
    size_t n = 50 + below(MOST - 50);
    uint32_t numbers = 1 + below(60), ids = 1 + below(40);
    w->offset = offsets[below(6)];
    for (size_t i = 0; i < n; i++) {
        struct shape s = {.ts = (int64_t)((double)span * rand() / RAND_MAX),
            .from = 1,
            .to = 2,
            .sport = (uint16_t)(1000 + below(FLOWS)),
            .dport = 80,
            .bytes = 1 + 10 * below(2),
            .id = (uint16_t)below(ids)};
        s.protocol = s.sport % 2 ? 17 : 6;
        s.seq = (uint32_t)((double)s.ts / (double)span * numbers) * 100; /* bytes that are sent again, soon after */
        if (below(2) && s.protocol == 6)
            s.bytes = s.seq = 0; /* empty packets, again and again */
        s.v6 = s.sport == 1002;
        if (below(8))
            vec_push(&w->seen[A], ((struct seen){s, true}));
        bool back = !below(10); /* b sent it itself, and it came back by another device */
        s.ts += w->offset;
        if (back)
            vec_push(&w->seen[B], ((struct seen){s, true}));
        s.ts += 100000 + below(1000000);
        if (below(8))
            vec_push(&w->seen[B], ((struct seen){s, false}));
    }
    for (int h = 0; h < HOSTS; h++) {
        qsort(w->seen[h].v, w->seen[h].n, sizeof *w->seen[h].v, by_time);
        host_begin(&w->hosts[h]);
        for (size_t i = 0; i < w->seen[h].n; i++) {
            struct shape s = w->seen[h].v[i].shape;
            s.skb = i + 1;
            if (w->seen[h].v[i].send)
                SEND(&w->hosts[h], .ts = s.ts, .from = s.from, .to = s.to, .sport = s.sport, .dport = s.dport,
                    .seq = s.seq, .bytes = s.bytes, .id = s.id, .protocol = s.protocol, .v6 = s.v6, .skb = s.skb);
            else
                RECEIVE(&w->hosts[h], .ts = s.ts, .from = s.from, .to = s.to, .sport = s.sport, .dport = s.dport,
                    .seq = s.seq, .bytes = s.bytes, .id = s.id, .protocol = s.protocol, .v6 = s.v6, .skb = s.skb);
        }
        host_end(&w->hosts[h]);
    }
}

static void close_world(struct world *w)
{
    close_both(&w->hosts[A], &w->hosts[B]);
    vec_free(&w->seen[A]);
    vec_free(&w->seen[B]);
}

static void on_near(void *arg, const struct flow_near *near)
{
    struct found *f = arg;
    vec_push(&f->v, *near);
}

/* Packets by flow and direction, as in the stores. */
struct packets {
    VEC(struct flow_packet) v;
};

static struct packets packets_of(const struct flow_store *s, size_t flow, bool sends)
{
    struct packets out = {0};
    size_t n = sends ? flow_sends(s, flow) : flow_receives(s, flow);
    for (size_t i = 0; i < n; i++) {
        struct flow_packet p;
        (sends ? flow_send : flow_receive)(s, flow, i, &p);
        vec_push(&out.v, p);
    }
    return out;
}

static bool near_to(const struct flow_packet *p, int64_t ts)
{
    return p->ts >= ts - FLOW_NEAR_NS && p->ts <= ts + FLOW_NEAR_NS;
}

static bool alike(const struct flow_packet *p, const struct flow_packet *q, bool datagrams)
{
    if (datagrams)
        return p->ip_id && p->ip_id == q->ip_id && p->bytes == q->bytes;
    return (uint32_t)p->seq_end == (uint32_t)q->seq_end && p->ack == q->ack && p->bytes == q->bytes &&
        p->ip_id == q->ip_id && p->flags == q->flags;
}

/* Plain rule: of similar and near copies, the one of the same rank if both have as many, else the first of both (of
 * datagrams only if there is one send). */
static void plainly(
    const struct flow_store *a, const struct flow_store *b, const struct flow_link *l, int64_t since, struct found *out)
{
    struct flow_key key;
    flow_key(b, l->received, &key);
    bool datagrams = key.protocol == 17;
    struct packets sends = packets_of(a, l->sent, true), receives = packets_of(b, l->received, false),
                   own = packets_of(b, l->received, true);
    for (size_t r = 0; r < receives.v.n; r++) {
        const struct flow_packet *p = &receives.v.v[r], *first = NULL, *ranked = NULL;
        size_t n_sends = 0, n_receives = 0, rank = 0;
        bool back = false;
        for (size_t i = 0; i < receives.v.n; i++)
            if (near_to(&receives.v.v[i], p->ts) && alike(&receives.v.v[i], p, datagrams)) {
                n_receives++;
                rank += i < r;
            }
        for (size_t i = 0; i < sends.v.n; i++) {
            if (!near_to(&sends.v.v[i], p->ts) || !alike(&sends.v.v[i], p, datagrams))
                continue;
            first = first ? first : &sends.v.v[i];
            ranked = n_sends++ == rank ? &sends.v.v[i] : ranked;
        }
        for (size_t i = 0; i < own.v.n; i++)
            back |= near_to(&own.v.v[i], p->ts) && own.v.v[i].ts <= p->ts && alike(&own.v.v[i], p, datagrams);
        const struct flow_packet *copy = n_sends == n_receives ? ranked
            : !rank && (n_sends == 1 || !datagrams)            ? first
                                                               : NULL;
        if (copy && p->ts >= since && !back)
            vec_push(&out->v,
                ((struct flow_near){copy->ts, p->ts, !datagrams && n_sends == 1 && n_receives == 1, datagrams}));
    }
    vec_free(&sends.v);
    vec_free(&receives.v);
    vec_free(&own.v);
}

static void assert_found(const struct found *a, const struct found *b, unsigned seed)
{
    bool same = a->v.n == b->v.n;
    for (size_t i = 0; i < a->v.n && same; i++) {
        const struct flow_near *p = &a->v.v[i], *q = &b->v.v[i];
        same = p->received == q->received && p->sent == q->sent && p->datagram == q->datagram && p->sure == q->sure;
    }
    if (!same)
        fail_msg("seed %u: %zu found, %zu are there", seed, a->v.n, b->v.n);
}

/* Tails of the stores, from the packets on that are near to what was received since then. */
static void check_since(const struct world *w, int64_t since, unsigned seed)
{
    const struct flow_store *whole[] = {w->hosts[A].store, w->hosts[B].store};
    struct flow_store *tails[2];
    struct flow_link *links, *of_tails;
    struct found found = {0}, all = {0};
    for (int h = 0; h < 2; h++)
        flow_tail(whole[h], since == INT64_MIN ? since : since - FLOW_NEAR_NS, &tails[h]);
    const struct flow_store *v[] = {tails[0], tails[1]};
    size_t n = flow_near_links(whole, 2, 1, &links), n_tails = flow_near_links(v, 2, 1, &of_tails);
    for (size_t i = 0; i < n; i++)
        plainly(whole[links[i].a], whole[links[i].b], &links[i], since, &all);
    for (size_t i = 0; i < n_tails; i++)
        flow_near_pairs(v[of_tails[i].a], v[of_tails[i].b], &of_tails[i], 1, since, on_near, &found);
    /* Flows of a tail are numbered in another order. */
    struct found sorted[2] = {found, all};
    for (int k = 0; k < 2; k++)
        for (size_t i = 1; i < sorted[k].v.n; i++)
            for (size_t j = i; j &&
                 (sorted[k].v.v[j].received < sorted[k].v.v[j - 1].received ||
                     (sorted[k].v.v[j].received == sorted[k].v.v[j - 1].received &&
                         sorted[k].v.v[j].sent < sorted[k].v.v[j - 1].sent));
                 j--) {
                struct flow_near t = sorted[k].v.v[j];
                sorted[k].v.v[j] = sorted[k].v.v[j - 1];
                sorted[k].v.v[j - 1] = t;
            }
    assert_found(&found, &all, seed);
    vec_free(&found.v);
    vec_free(&all.v);
    free(links);
    free(of_tails);
    flow_close(tails[0]);
    flow_close(tails[1]);
}

static void test_rule(void **state)
{
    size_t copies = 0;
    for (unsigned first = (unsigned)test_seed(1), seed = first; seed < first + WORLDS; seed++) {
        struct world w;
        struct flow_link *links;
        struct found found = {0};
        make(&w, seed);
        check_since(&w, INT64_MIN, seed);
        for (int k = 0; k < 4 && w.seen[B].n; k++)
            check_since(&w, w.seen[B].v[below((uint32_t)w.seen[B].n)].shape.ts + (int64_t)below(3) - 1, seed);
        const struct flow_store *v[] = {w.hosts[A].store, w.hosts[B].store};
        size_t n = flow_near_links(v, 2, 1, &links);
        for (size_t i = 0; i < n; i++)
            flow_near_pairs(v[links[i].a], v[links[i].b], &links[i], 1, INT64_MIN, on_near, &found);
        copies += found.v.n;
        vec_free(&found.v);
        free(links);
        close_world(&w);
    }
    assert_true(copies > 10 * WORLDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rule)};
    return RUN_CUT("near", tests);
}
