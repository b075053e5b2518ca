/* SPDX-License-Identifier: MIT */
/* Links between hosts by their flows, in a made world of many hosts with known traffic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/time.h"
#include "flow/store.h"
#include "kernel/kernel.h"

enum { ACK = 16, HOSTS = 60, LEAP = 7, FLOWS = 3, MULTICAST = 251 };

/* Substitute for the tracker: flow uses it only for threads. */
struct kernel_tracker {
    struct kernel_thread thread;
};

size_t kernel_tracker_threads(const struct kernel_tracker *t, const struct kernel_thread **out)
{
    *out = &t->thread;
    return 1;
}
size_t kernel_tracker_strings(const struct kernel_tracker *t, const char *const **out)
{
    static const char *const none[] = {""};
    *out = none;
    return 1;
}

struct host {
    struct kernel_tracker tracker;
    struct flow_builder *builder;
    uint32_t packets;
};

struct shape {
    uint32_t from, to; /* IPv4 */
    uint16_t sport, dport, id;
    uint32_t seq, bytes;
    uint8_t protocol;
};

static void seen(struct host *h, bool sends, int64_t ts, struct shape s)
{
    struct kernel_record r = {.ts = ts,
        .kind = sends ? KERNEL_PACKET_SEND : KERNEL_PACKET_RECEIVE,
        .ctx = sends ? KERNEL_CTX_THREAD : KERNEL_CTX_SOFTIRQ,
        .ctx_number = sends ? 0 : KERNEL_SOFTIRQ_NET_RX,
        .ctx_frame = ++h->packets};
    r.u.packet = (struct kernel_packet){.family = 4,
        .protocol = s.protocol ? s.protocol : 6,
        .sport = s.sport,
        .dport = s.dport,
        .seq = s.seq,
        .ack = 1,
        .flags = ACK,
        .ip_id = s.id,
        .payload_bytes = s.bytes,
        .has_length = true};
    for (int i = 0; i < 4; i++) {
        r.u.packet.saddr[i] = (uint8_t)(s.from >> (24 - 8 * i));
        r.u.packet.daddr[i] = (uint8_t)(s.to >> (24 - 8 * i));
    }
    flow_builder_add(h->builder, &r);
}

static void begin(struct host *h)
{
    *h = (struct host){.tracker.thread = {.tid = 100, .tgid = 100, .ppid = 1, .parent_row = -1, .idle_cpu = -1}};
    h->builder = flow_builder_new(&h->tracker);
}

static struct flow_store *end(struct host *h)
{
    char path[64];
    struct err e = {0};
    struct flow_store *out = NULL;
    snprintf(path, sizeof path, "/tmp/weft-links-%ld", (long)getpid());
    if (flow_builder_write(h->builder, store_file(path), 1, &e) || flow_open(path, &out, &e))
        fail_msg("%s", e.text);
    unlink(path);
    flow_builder_free(h->builder);
    return out;
}

static uint32_t address(int host)
{
    return 10u << 24 | (uint32_t)host;
}

static void message(struct host *hosts, int a, int b, int64_t ts, struct shape s)
{
    s.from = address(a);
    s.to = address(b);
    seen(&hosts[a], true, ts, s);
    seen(&hosts[b], false, ts + 100, s);
}

/* Makes each host talk to the next and to the one after LEAP more, both ways, on FLOWS connections; one packet each. */
static void talk(struct host *hosts, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) {
            int peer = (i + (k ? LEAP : 1)) % n;
            for (uint16_t f = 0; f < FLOWS; f++) {
                int64_t ts = 1000 * (i + 1) + 10 * f;
                struct shape there = {.sport = (uint16_t)(4000 + f), .dport = 80, .seq = 7, .bytes = 50, .id = 1};
                struct shape back = {.sport = 80, .dport = (uint16_t)(4000 + f), .seq = 9, .bytes = 60, .id = 2};
                message(hosts, i, peer, ts, there);
                message(hosts, peer, i, ts + 500, back);
            }
        }
}

/* Makes every host's local traffic: the same private addresses on a bridge of its own, loopback, an unrecorded peer. */
static void talk_at_home(struct host *h)
{
    struct shape container = {.from = 0xac110002, .to = 0xac110003, .sport = 5000, .dport = 80, .seq = 3, .bytes = 9};
    struct shape loopback = {.from = 0x7f000001, .to = 0x7f000001, .sport = 5000, .dport = 80, .seq = 3, .bytes = 9};
    struct shape far = {.from = address(1), .to = 0x08080808, .sport = 5000, .dport = 53, .seq = 3, .bytes = 9};
    seen(h, true, 10, container);
    seen(h, false, 11, container);
    seen(h, true, 12, loopback);
    seen(h, false, 13, loopback);
    seen(h, true, 14, far);
}

static bool peers(int a, int b)
{
    int d = (b - a + HOSTS) % HOSTS;
    return d == 1 || d == LEAP || d == HOSTS - 1 || d == HOSTS - LEAP;
}

static void only_hosts_that_talk(void **state)
{
    struct host hosts[HOSTS];
    struct flow_store *stores[HOSTS];
    for (int i = 0; i < HOSTS; i++)
        begin(&hosts[i]);
    talk(hosts, HOSTS);
    for (int i = 0; i < HOSTS; i++) {
        talk_at_home(&hosts[i]);
        stores[i] = end(&hosts[i]);
    }
    struct flow_link *links, *again;
    size_t n = flow_links((const struct flow_store *const *)stores, HOSTS, 1, &links), pairs = 0;
    for (size_t i = 0; i < n; i++) {
        assert_true(peers((int)links[i].a, (int)links[i].b));
        bool same = i && links[i].a + links[i].b == links[i - 1].a + links[i - 1].b &&
            (links[i].a == links[i - 1].a || links[i].a == links[i - 1].b);
        pairs += !same;
    }
    assert_int_equal(n, HOSTS * 2 * FLOWS * 2); /* host, peer, connection, direction */
    assert_int_equal(pairs, HOSTS * 2);         /* compared to HOSTS * (HOSTS - 1) / 2 */
    for (unsigned threads = 2; threads < 9; threads += 5) {
        assert_int_equal(flow_links((const struct flow_store *const *)stores, HOSTS, threads, &again), n);
        assert_memory_equal(links, again, n * sizeof *links);
        free(again);
    }
    free(links);
    for (int i = 0; i < HOSTS; i++)
        flow_close(stores[i]);
}

/* A name that everybody hears of everybody: each is tied to some, not to all. */
static void multicast(void **state)
{
    struct host hosts[HOSTS];
    struct flow_store *stores[HOSTS];
    for (int i = 0; i < HOSTS; i++)
        begin(&hosts[i]);
    for (int i = 0; i < HOSTS; i++)
        for (int k = 0; k < HOSTS; k++)
            seen(&hosts[k], k == i, 1000 * i + (k != i),
                (struct shape){.from = address(i),
                    .to = 0xe0000000 | MULTICAST,
                    .sport = 5353,
                    .dport = 5353,
                    .id = (uint16_t)(i + 1),
                    .bytes = 40,
                    .protocol = 17});
    for (int i = 0; i < HOSTS; i++)
        stores[i] = end(&hosts[i]);
    struct flow_link *links;
    size_t n = flow_links((const struct flow_store *const *)stores, HOSTS, 0, &links);
    assert_int_equal(n, HOSTS * 32);
    free(links);
    for (int i = 0; i < HOSTS; i++)
        flow_close(stores[i]);
}

/* A bridge that was recorded, too, sees the packets of both: three pairs of hosts. What it passes on is not its own. */
static void forwarder(void **state)
{
    struct host hosts[3];
    struct flow_store *stores[3];
    for (int i = 0; i < 3; i++)
        begin(&hosts[i]);
    struct shape s = {.from = address(0), .to = address(2), .sport = 4000, .dport = 80, .seq = 7, .bytes = 50, .id = 1};
    seen(&hosts[0], true, 100, s);
    seen(&hosts[1], false, 120, s);
    seen(&hosts[1], true, 130, s);
    seen(&hosts[2], false, 150, s);
    for (int i = 0; i < 3; i++)
        stores[i] = end(&hosts[i]);
    struct flow_link *links;
    assert_int_equal(flow_links((const struct flow_store *const *)stores, 3, 0, &links), 3);
    static const uint32_t expected[3][2] = {{0, 1}, {0, 2}, {1, 2}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(links[i].a, expected[i][0]);
        assert_int_equal(links[i].b, expected[i][1]);
    }
    free(links);
    for (int i = 0; i < 3; i++)
        flow_close(stores[i]);
}

static int64_t time_of_links(struct flow_store *const *stores)
{
    struct flow_link *links;
    int64_t started = time_monotonic_ns();
    flow_links((const struct flow_store *const *)stores, 2, 0, &links);
    free(links);
    return time_monotonic_ns() - started;
}

/* A damaged store names one flow many times: as many hosts and few of its flows are looked at, not all with all. */
static void one_key_many_times(void **state)
{
    enum { MANY = 60000 };
    struct host hosts[2];
    struct flow_store *stores[2];
    struct flow_disk_flow *flows[2];
    const struct flow_disk_flow *were[2];
    struct flow_link *links;
    for (int h = 0; h < 2; h++) {
        begin(&hosts[h]);
        for (uint32_t i = 0; i < MANY; i++)
            seen(&hosts[h], true, i,
                (struct shape){.from = address(0),
                    .to = address(1000) + i,
                    .sport = 9,
                    .dport = 53,
                    .bytes = 40,
                    .id = 1,
                    .protocol = 17});
        stores[h] = end(&hosts[h]);
        assert_int_equal(stores[h]->chunks->n_flows, MANY);
        were[h] = stores[h]->chunks->flows;
    }
    int64_t sound = time_of_links(stores);
    for (int h = 0; h < 2; h++) {
        flows[h] = mem_alloc(sizeof **flows * MANY);
        memcpy(flows[h], were[h], sizeof **flows * MANY);
        for (uint32_t i = 0; i < MANY; i++)
            flows[h][i].key = flows[h][0].key;
        stores[h]->chunks->flows = flows[h];
    }
    assert_int_equal(flow_links((const struct flow_store *const *)stores, 2, 0, &links), 0); /* no receives */
    free(links);
    assert_true(time_of_links(stores) < 50 * sound); /* a look at all for each of them takes a thousand times that */
    for (int h = 0; h < 2; h++) {
        stores[h]->chunks->flows = were[h];
        flow_close(stores[h]);
        free(flows[h]);
    }
}

static void told_of_by_the_check(void **state)
{
    struct host h;
    struct err e = {0};
    char path[64];
    struct flow_key keys[2];
    static uint8_t file[1 << 16];
    begin(&h);
    for (int i = 0; i < 2; i++)
        seen(&h, true, i,
            (struct shape){.from = address(0), .to = address(1 + i), .sport = 9, .dport = 53, .bytes = 40});
    snprintf(path, sizeof path, "/tmp/weft-links-%ld", (long)getpid());
    struct flow_store *s;
    if (flow_builder_write(h.builder, store_file(path), 1, &e) || flow_open(path, &s, &e) || flow_check(path, NULL, &e))
        fail_msg("%s", e.text);
    for (size_t i = 0; i < 2; i++)
        flow_key(s, i, &keys[i]);
    flow_close(s);
    FILE *f = fopen(path, "r+b");
    size_t n = fread(file, 1, sizeof file, f), at = 0;
    while (at + sizeof *keys <= n && memcmp(file + at, &keys[1], sizeof *keys) != 0)
        at++;
    assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
    assert_int_equal(fwrite(&keys[0], sizeof *keys, 1, f), 1);
    fclose(f);
    assert_int_equal(flow_check(path, NULL, &e), ERR_FORMAT);
    assert_non_null(strstr(e.text, "two flows have one key"));
    unlink(path);
    flow_builder_free(h.builder);
}

static void count_pair(void *arg, int64_t sent, int64_t received)
{
    size_t *n = arg;
    assert_int_equal(received - sent, 1000);
    ++*n;
}

/* Checks two devices of the sender and two of the receiver, all of whose packets look the same (the same byte requested
 * again and again): each goes with its own, in time that grows with their number. */
static void stacked_devices(void **state)
{
    enum { PACKETS = 40000 };
    struct host hosts[2];
    struct flow_store *stores[2];
    for (int i = 0; i < 2; i++)
        begin(&hosts[i]);
    struct shape s = {.from = address(0), .to = address(1), .sport = 4000, .dport = 80, .seq = 7, .bytes = 1, .id = 1};
    for (int i = 0; i < PACKETS; i++)
        for (int device = 0; device < 2; device++) {
            seen(&hosts[0], true, 10000 * (int64_t)i + device, s);
            seen(&hosts[1], false, 10000 * (int64_t)i + 1000 + device, s);
        }
    for (int i = 0; i < 2; i++)
        stores[i] = end(&hosts[i]);
    struct flow_link *links;
    size_t pairs = 0;
    assert_int_equal(flow_links((const struct flow_store *const *)stores, 2, 0, &links), 1);
    int64_t started = time_monotonic_ns();
    flow_pairs(stores[0], stores[1], links, 1, count_pair, &pairs);
    assert_int_equal(pairs, 2 * PACKETS);
    assert_true(time_monotonic_ns() - started < 2 * NS_PER_S); /* a look at all for each of them takes a minute */
    free(links);
    for (int i = 0; i < 2; i++)
        flow_close(stores[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_hosts_that_talk),
        cmocka_unit_test(multicast),
        cmocka_unit_test(forwarder),
        cmocka_unit_test(one_key_many_times),
        cmocka_unit_test(told_of_by_the_check),
        cmocka_unit_test(stacked_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
