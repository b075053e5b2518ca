/* SPDX-License-Identifier: MIT */
/* Messages that are kept while records grow: made hosts whose records come piece by piece, a host's at a time. After
 * each piece the clocks are what they are without anything kept, and what was found before is not looked for again: the
 * old chunks are not even there. WEFT_SEED looks further. */
#include <stdio.h>
#include <unistd.h>

#include "../flow/hosts.h"
#include "base/json.h"
#include "base/order.h"
#include "clock/clock.h"
#include "index/index.h"

enum { HOSTS = 3, CONNECTIONS = 80, STEPS = 9, WORLDS = 5, SPAN_S = 3600 };
enum { NEAR, FAR, STEP, DATAGRAMS, KINDS };
static const int64_t SECOND = 1000000000, START = 1700000000000000000;

struct seen {
    struct shape shape;
    bool send;
};

struct world {
    VEC(struct seen) seen[HOSTS];
    int64_t offset[HOSTS];
    struct host hosts[HOSTS];
    size_t there[HOSTS];   /* amount that has arrived; 0: none */
    int64_t sealed[HOSTS]; /* time before which arrivals change nothing */
    int kind;
    char path[64];
    bool has_kept;
};

static uint32_t below(uint32_t n)
{
    return (uint32_t)rand() % n;
}

/* The clock of the last host: hours off, or it stood still for an hour (which the others' did not). */
static int64_t clock_of(const struct world *w, int h, int64_t t)
{
    int64_t off = w->offset[h];
    if (h == HOSTS - 1 && (w->kind == FAR || (w->kind == STEP && t > SPAN_S / 2 * SECOND)))
        off += SPAN_S * SECOND;
    return START + t + t / 100000 * h + off;
}

static void say(struct world *w, int x, int y, int64_t t, struct shape s)
{
    s.from = (uint8_t)(x + 1);
    s.to = (uint8_t)(y + 1);
    s.ts = clock_of(w, x, t);
    if (below(12))
        vec_push(&w->seen[x], ((struct seen){s, true}));
    s.ts = clock_of(w, y, t + 50000 + below(400000));
    if (below(12))
        vec_push(&w->seen[y], ((struct seen){s, false}));
}

static int64_t any_time(void)
{
    return (int64_t)below(SPAN_S * 1000) * SECOND / 1000;
}

/* Makes a connection, among few ports, so that connections reuse them; some last long. */
static void connect(struct world *w, int x, int y)
{
    uint16_t ports[2] = {(uint16_t)(1000 + below(8)), 80};
    uint32_t seq[2] = {(uint32_t)rand(), (uint32_t)rand()};
    int64_t t = any_time(), pause = below(4) ? SECOND : 60 * SECOND;
    for (uint32_t i = 0, n = 4 + below(30); i < n && t < SPAN_S * SECOND; i++) {
        int back = (int)below(2);
        struct shape s = {.sport = ports[back],
            .dport = ports[!back],
            .seq = seq[back],
            .ack = seq[!back],
            .bytes = below(2) ? 1 + below(1000) : 0,
            .flags = i ? ACK : SYN,
            .id = (uint16_t)rand()};
        say(w, back ? y : x, back ? x : y, t, s);
        seq[back] += s.bytes + !i;
        t += 1 + (int64_t)((double)pause * rand() / RAND_MAX);
    }
}

static int by_time(const void *a, const void *b)
{
    const struct seen *p = a, *q = b;
    return order_of(p->shape.ts, q->shape.ts);
}

static void make(struct world *w, int kind)
{
    *w = (struct world){.kind = kind};
    for (int h = 0; h < HOSTS; h++)
        w->offset[h] = (int64_t)below(60) * SECOND;
    for (int i = 0; i < CONNECTIONS && kind != DATAGRAMS; i++) {
        int x = (int)below(HOSTS);
        connect(w, x, (x + 1 + (int)below(HOSTS - 1)) % HOSTS);
    }
    for (int64_t t = 0; t < SPAN_S; t += 45) /* indistinguishable packets */
        say(w, 0, 1, t * SECOND, (struct shape){.sport = 9, .dport = 10, .seq = 77, .v6 = true});
    for (int64_t t = 0; t < SPAN_S; t += 4)
        say(w, 1, 2, t * SECOND,
            (struct shape){.sport = 53, .dport = 53, .protocol = 17, .bytes = 10, .id = (uint16_t)(1 + t % 97)});
    for (int h = 0; h < HOSTS; h++) {
        qsort(w->seen[h].v, w->seen[h].n, sizeof *w->seen[h].v, by_time);
        w->sealed[h] = INT64_MIN;
    }
    snprintf(w->path, sizeof w->path, "/tmp/weft-test-messages-%d", (int)getpid());
}

/* A host's records go on. */
static void grow(struct world *w, int h)
{
    size_t left = w->seen[h].n - w->there[h], n = 1 + left / (1 + below(6));
    if (!left)
        return;
    if (w->there[h])
        flow_close(w->hosts[h].store);
    w->there[h] += n < left ? n : left;
    host_begin(&w->hosts[h]);
    for (size_t i = 0; i < w->there[h]; i++) {
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
    int64_t until = w->seen[h].v[w->there[h] - 1].shape.ts - (int64_t)below(90) * SECOND;
    w->sealed[h] = until > w->sealed[h] ? until : w->sealed[h];
}

/* Checks that maps contain the truth, also after a step: once both halves are complete. */
static void assert_true_maps(const struct world *w, const struct clock_net *net)
{
    for (size_t h = 0; h < HOSTS; h++) {
        const struct clock_map *m = clock_net_map(net, h);
        assert_true(m->n > 0);
        for (int64_t t = SPAN_S / 8; t < SPAN_S; t += SPAN_S / 4) {
            int64_t own = clock_of(w, (int)h, t * SECOND), truth = clock_of(w, (int)m->reference, t * SECOND),
                    said = clock_to_reference(m, own);
            if (llabs(said - truth) > clock_error_at(m, own) + 3)
                fail_msg("host %zu at %lld s: %lld ns off, %lld said", h, (long long)t, (long long)(said - truth),
                    (long long)clock_error_at(m, own));
        }
    }
}

static char *answer(const struct world *w, struct index_sync *s)
{
    bool whole = w->kind != DATAGRAMS;
    struct clock_net *net = clock_net_new(NULL);
    struct err e = {0};
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    for (size_t h = 0; h < HOSTS; h++)
        clock_net_host(net,
            h == 0       ? "a"
                : h == 1 ? "b"
                         : "c",
            clock_of(w, (int)h, 0), w->there[h] ? w->seen[h].v[w->there[h] - 1].shape.ts : clock_of(w, (int)h, 0));
    if (index_sync_flows(net, s, &e))
        fail_msg("%s", e.text);
    for (int h = 0; h < HOSTS; h++)
        whole &= w->there[h] == w->seen[h].n;
    if (whole)
        assert_true_maps(w, net);
    clock_net_write_json(net, &j);
    clock_net_write_stats(net, &t);
    char *out = mem_strdup(text_cstr(&t));
    text_fini(&t);
    clock_net_free(net);
    return out;
}

static char *answer_of_all(const struct world *w)
{
    struct index_sync_host hosts[HOSTS];
    for (size_t h = 0; h < HOSTS; h++)
        hosts[h] = (struct index_sync_host){.flows = w->there[h] ? w->hosts[h].store : NULL, .sealed.until = INT64_MIN};
    return answer(w, &(struct index_sync){.hosts = hosts, .n = HOSTS, .prior_ppm = 300});
}

/* Returns the time since when packets of any pair can be needed. */
static int64_t needed_since(const struct clock_kept *kept, const size_t *host_of)
{
    const struct clock_source *v;
    int64_t least = INT64_MAX;
    for (size_t i = 0, n = clock_kept_sources(kept, &v); i < n; i++)
        if (host_of[i] == SIZE_MAX || v[i].until < least)
            least = host_of[i] == SIZE_MAX ? INT64_MIN : v[i].until;
    return least < START ? INT64_MIN : least - 3 * FLOW_NEAR_NS - FLOW_DECIDED_NS;
}

/* Returns the answer with kept messages, and keeps them. *left_out: number of flows without data. */
static char *answer_of_kept(struct world *w, size_t *left_out)
{
    struct index_sync_host hosts[HOSTS];
    struct flow_store *tails[HOSTS] = {NULL};
    struct clock_kept *kept = NULL;
    const struct clock_source *v;
    struct err e = {0};
    size_t host_of[2 * HOSTS];
    int64_t since = INT64_MIN;
    bool changed = !below(8); /* declares a host's records as changed */
    if (w->has_kept && clock_kept_open(w->path, 1, &kept, &e))
        fail_msg("%s", e.text);
    for (size_t i = 0, n = kept ? clock_kept_sources(kept, &v) : 0; i < n; i++) {
        size_t h = i / 2;
        bool known = v[i].until == INT64_MAX ? v[i].hash == w->there[h] : v[i].until <= w->sealed[h];
        host_of[i] = known && !(changed && h == 1) ? h : SIZE_MAX;
    }
    if (kept && w->kind == NEAR)
        since = needed_since(kept, host_of);
    for (size_t h = 0; h < HOSTS; h++) {
        hosts[h] = (struct index_sync_host){.flows = w->there[h] ? w->hosts[h].store : NULL,
            .all = {h + 1, INT64_MAX, w->there[h]},
            .sealed = {h + 1, w->sealed[h], 5}};
        if (since > INT64_MIN && w->there[h]) {
            flow_tail(w->hosts[h].store, since, &tails[h]);
            *left_out += flow_count(w->hosts[h].store) - flow_count(tails[h]);
            hosts[h].flows = tails[h];
        }
    }
    struct index_sync s = {
        .hosts = hosts, .n = HOSTS, .prior_ppm = 300, .kept = kept, .host_of = host_of, .path = w->path, .key = 1};
    char *out = answer(w, &s);
    w->has_kept = true;
    clock_kept_close(kept);
    for (size_t h = 0; h < HOSTS; h++)
        flow_close(tails[h]);
    return out;
}

static void check(int kind)
{
    size_t left_out = 0;
    for (unsigned first = (unsigned)test_seed(1), seed = first; seed < first + WORLDS; seed++) {
        struct world w;
        srand(seed * KINDS + (unsigned)kind);
        make(&w, kind);
        for (int step = 0; step < STEPS * HOSTS; step++) {
            grow(&w, (int)below(HOSTS));
            for (int h = 0; h < HOSTS && step + 1 == STEPS * HOSTS; h++)
                while (w.there[h] < w.seen[h].n)
                    grow(&w, h);
            if (below(3) && step + 1 < STEPS * HOSTS)
                continue;
            char *kept = answer_of_kept(&w, &left_out), *all = answer_of_all(&w);
            if (strcmp(kept, all) != 0)
                fail_msg("seed %u, step %d: kept\n%s\nat once\n%s", seed, step, kept, all);
            free(kept);
            free(all);
        }
        for (int h = 0; h < HOSTS; h++) {
            if (w.there[h])
                flow_close(w.hosts[h].store);
            vec_free(&w.seen[h]);
        }
        unlink(w.path);
    }
    assert_true(left_out > 0 || kind != NEAR || !is_run_cut());
}

static void test_near(void **state)
{
    check(NEAR);
}
static void test_far(void **state)
{
    check(FAR);
}
static void test_step(void **state)
{
    check(STEP);
}
static void test_datagrams(void **state)
{
    check(DATAGRAMS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_near), cmocka_unit_test(test_far),
        cmocka_unit_test(test_step), cmocka_unit_test(test_datagrams)};
    return RUN_CUT("messages", tests);
}
