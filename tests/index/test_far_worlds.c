/* SPDX-License-Identifier: MIT */
/* Clocks of made hosts, few and many, of what each gives away of its flows: to the last bit those of all flows. Also
 * where a clock is hours off or steps, where a host recorded nothing of what it sent, where hosts have the same private
 * addresses, and where more hosts receive a flow than are looked at. WEFT_SEED looks further. */
#include <stdio.h>

#include "../flow/extracts.h"
#include "../flow/hosts.h"
#include "base/order.h"
#include "far_same.h"
#include "index/index.h"

enum { MOST_HOSTS = 40, WORLDS = 4, SPAN_S = 3600, MULTICAST = 251, OUTSIDE = 200 };
enum { NEAR, FAR, STEP, UNSEEN, KINDS };
static const int64_t SECOND = 1000000000, START = 1700000000000000000;

struct seen {
    struct shape shape;
    bool send;
};

struct world {
    int n, kind;
    VEC(struct seen) seen[MOST_HOSTS];
    int64_t offset[MOST_HOSTS];
    struct host hosts[MOST_HOSTS];
    char names[MOST_HOSTS][16];
};

static uint32_t below(uint32_t n)
{
    return (uint32_t)rand() % n;
}

/* The clock of the last host: hours off, or it stood still for an hour (which the others' did not). */
static int64_t clock_of(const struct world *w, int h, int64_t t)
{
    int64_t off = w->offset[h];
    if (h == w->n - 1 && (w->kind == FAR || (w->kind == STEP && t > SPAN_S / 2 * SECOND)))
        off += SPAN_S * SECOND;
    return START + t + t / 100000 * h + off;
}

static void see(struct world *w, int h, int64_t t, struct shape s, bool send)
{
    s.ts = clock_of(w, h, t);
    vec_push(&w->seen[h], ((struct seen){s, send}));
}

/* Records a packet, with random gaps; host 0, if it falls silent, has none from the middle on. */
static void say(struct world *w, int x, int y, int64_t t, struct shape s)
{
    bool silent = w->kind == UNSEEN && t > SPAN_S / 2 * SECOND;
    s.from = (uint8_t)(x + 1);
    s.to = (uint8_t)(y + 1);
    if (below(12) && !(silent && !x))
        see(w, x, t, s, true);
    if (below(12) && !(silent && !y))
        see(w, y, t + 50000 + below(400000), s, false);
}

/* Ports are those of one half. */
static void connect(struct world *w, int x, int y)
{
    int64_t t = (int64_t)below(SPAN_S * 1000) * SECOND / 1000, pause = below(4) ? SECOND : 60 * SECOND;
    uint16_t ports[2] = {(uint16_t)(1000 + below(8) + (t > SPAN_S / 2 * SECOND ? 10 : 0)), 80};
    uint32_t seq[2] = {(uint32_t)rand(), (uint32_t)rand()};
    for (uint32_t i = 0, n = 4 + below(30); i < n && t < SPAN_S * SECOND; i++) {
        int back = (int)below(2);
        struct shape s = {.sport = ports[back],
            .dport = ports[!back],
            .seq = seq[back],
            .ack = seq[!back],
            .bytes = below(2) ? 1 + below(1000) : 0,
            .flags = i ? ACK : SYN,
            .id = (uint16_t)rand(),
            .protocol = ports[0] % 5 ? 6 : 17};
        say(w, back ? y : x, back ? x : y, t, s);
        seq[back] += s.bytes + !i;
        t += 1 + (int64_t)((double)pause * rand() / RAND_MAX);
    }
}

/* Makes packets that continue to come from an address of host 0, which owns it only according to its outside packets,
 * and which records something at the end. */
static void fall_silent(struct world *w)
{
    struct shape outside = {.net = 11, .from = 1, .to = OUTSIDE, .sport = 9, .dport = 9, .bytes = 1};
    see(w, 0, SECOND, outside, true);
    for (int y = 1; y < w->n; y++)
        for (int64_t t = SPAN_S / 2 + 1; t < SPAN_S; t += 7)
            say(w, 0, y, t * SECOND,
                (struct shape){.net = 11, .sport = 2000, .dport = 80, .seq = (uint32_t)t * 9, .bytes = 9});
    see(w, 0, SPAN_S * SECOND, outside, true);
}

/* Makes each host talk alone: to itself, to outside, and within a net that all of them give the same name. */
static void talk_alone(struct world *w, int h)
{
    for (uint32_t i = 0; i < 10; i++) {
        struct shape s = {.sport = (uint16_t)(500 + below(4)), .dport = 80, .seq = (uint32_t)rand(), .bytes = 5};
        int64_t t = (int64_t)below(SPAN_S) * SECOND;
        s.from = 1;
        s.to = 2;
        s.net = below(2) ? 127 : 192;
        see(w, h, t, s, true);
        see(w, h, t + 9000, s, false);
        s.net = 0;
        s.from = (uint8_t)(h + 1);
        s.to = OUTSIDE;
        see(w, h, t + 20000, s, true);
    }
}

static int by_time(const void *a, const void *b)
{
    const struct seen *p = a, *q = b;
    return order_of(p->shape.ts, q->shape.ts);
}

static void build(struct world *w, int h)
{
    qsort(w->seen[h].v, w->seen[h].n, sizeof *w->seen[h].v, by_time);
    host_begin(&w->hosts[h]);
    for (size_t i = 0; i < w->seen[h].n; i++) {
        struct shape s = w->seen[h].v[i].shape;
        s.skb = i + 1;
        s.row = s.from % THREADS;
        if (!w->seen[h].v[i].send) {
            s.ctx = KERNEL_CTX_SOFTIRQ;
            s.vector = KERNEL_SOFTIRQ_NET_RX;
            s.frame = (uint32_t)i + 1;
        }
        packet(&w->hosts[h], w->seen[h].v[i].send ? KERNEL_PACKET_SEND : KERNEL_PACKET_RECEIVE, s);
    }
    host_end(&w->hosts[h]);
}

static void make(struct world *w, int kind, int n)
{
    *w = (struct world){.kind = kind, .n = n};
    for (int h = 0; h < n; h++) {
        w->offset[h] = (int64_t)below(60) * SECOND;
        snprintf(w->names[h], sizeof w->names[h], "h%d", h);
    }
    for (int i = 0; i < 12 * n; i++) {
        int x = (int)below((uint32_t)n);
        connect(w, x, (x + 1 + (int)below((uint32_t)n - 1)) % n);
    }
    for (int64_t t = 0; t < SPAN_S; t += 300) /* similar packets, distinguished only by time */
        say(w, 0, 1, t * SECOND, (struct shape){.sport = 9, .dport = 10, .seq = 77, .v6 = true});
    for (uint32_t i = 0; i < 20; i++)
        for (int h = 0; h < n; h++)
            see(w, h, (int64_t)(i * 100 + 1) * SECOND + h * 1000,
                (struct shape){.from = 1, .to = MULTICAST, .sport = 53, .dport = 53, .protocol = 17, .bytes = i + 1},
                !h);
    if (kind == UNSEEN)
        fall_silent(w);
    for (int h = 0; h < n; h++) {
        talk_alone(w, h);
        build(w, h);
    }
}

static void free_world(struct world *w)
{
    for (int h = 0; h < w->n; h++) {
        flow_close(w->hosts[h].store);
        vec_free(&w->seen[h]);
    }
}

static void fill(const struct world *w, struct index_far_host *far, struct flow_store *const *flows)
{
    for (int h = 0; h < w->n; h++)
        far[h] = (struct index_far_host){.name = w->names[h],
            .begin = clock_of(w, h, 0),
            .end = clock_of(w, h, SPAN_S * SECOND),
            .sealed_until = clock_of(w, h, SPAN_S / 3 * (h % 3) * SECOND),
            .clock.name = "",
            .flows = flows[h]};
}

/* Returns the net of all messages of all flows, without excerpts. */
static struct clock_net *net_of_all(const struct index_far_host *far, size_t n)
{
    struct clock_options by = clock_defaults();
    struct clock_net *net = clock_net_new(&by);
    struct index_sync_host hosts[MOST_HOSTS];
    struct err e = {0};
    for (size_t h = 0; h < n; h++) {
        clock_net_host(net, far[h].name, far[h].begin, far[h].end);
        hosts[h] = (struct index_sync_host){.flows = far[h].flows, .sealed.until = INT64_MIN};
    }
    if (index_sync_flows(net, &(struct index_sync){.hosts = hosts, .n = n, .prior_ppm = by.drift_prior_ppm}, &e))
        fail_msg("%s", e.text);
    return net;
}

static struct clock_net *net_of_far(const struct index_far_host *far, size_t n)
{
    struct clock_options by = clock_defaults();
    struct clock_net *net = NULL;
    struct err e = {0};
    if (index_sync_far(far, n, &by, NULL, &net, &e))
        fail_msg("%s", e.text);
    return net;
}

static void check(int kind, int n, unsigned seed)
{
    static struct world w; /* large */
    struct index_far_host far[MOST_HOSTS];
    struct flow_store *flows[MOST_HOSTS], *extracts[MOST_HOSTS];
    uint64_t bytes = 0;
    char what[64];
    srand(seed * KINDS + (unsigned)kind);
    make(&w, kind, n);
    for (int h = 0; h < n; h++)
        flows[h] = w.hosts[h].store;
    if (n > 3 && below(2)) { /* store without flows */
        flow_close(flows[2]);
        flows[2] = w.hosts[2].store = NULL;
    }
    extract_hosts((const struct flow_store *const *)flows, (size_t)n, extracts, &bytes);
    snprintf(what, sizeof what, "seed %u, kind %d, %d hosts", seed, kind, n);
    fill(&w, far, flows);
    struct clock_net *of_all = net_of_all(far, (size_t)n), *here = net_of_far(far, (size_t)n);
    fill(&w, far, extracts);
    struct clock_net *there = net_of_far(far, (size_t)n);
    far_same_nets(of_all, here, what);
    far_same_nets(of_all, there, what);
    clock_net_free(of_all);
    clock_net_free(here);
    clock_net_free(there);
    for (int h = 0; h < n; h++)
        flow_close(extracts[h]);
    free_world(&w);
}

static void check_kind(int kind)
{
    static const int hosts[] = {2, 3, 33, 34, 40};
    for (unsigned first = (unsigned)test_seed(1), seed = first; seed < first + WORLDS; seed++)
        check(kind, 2 + (int)below(7), seed);
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        check(kind, hosts[i], (unsigned)i + 100);
}

static void near(void **state)
{
    check_kind(NEAR);
}
static void far(void **state)
{
    check_kind(FAR);
}
static void step(void **state)
{
    check_kind(STEP);
}
static void unseen(void **state)
{
    check_kind(UNSEEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near), cmocka_unit_test(far), cmocka_unit_test(step), cmocka_unit_test(unseen)};
    return RUN_CUT("far hosts", tests);
}
