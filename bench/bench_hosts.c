/* SPDX-License-Identifier: MIT */
/* Cost of a cluster of many hosts for the asker and the clock leader, without the hosts: bench_hosts HOSTS [PEERS]
 * writes one JSON object. Entries of HOSTS nodes with one host each, which sends to PEERS others (6), are in the
 * table of a hub in this process; clocks are found of four messages each way of each pair. Nodes answer which flows
 * they have, and refuse their packets. Processor time of this thread, s; memory as the allocator counts it, bytes. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/time.h"
#include "bus/bus.h"
#include "clock/clock.h"
#include "cluster/clocks.h"
#include "cluster/gather.h"
#include "cluster/query.h"
#include "path/remote.h"

enum { PART = 512 << 10, MESSAGES = 4, SERVED = 64 };
#define BEGIN INT64_C(1700000000000000000)
#define SPAN INT64_C(60000000000)

static struct bus *bus;
static size_t hosts, peers;

static _Noreturn void die(const char *what, const struct err *e)
{
    fprintf(stderr, "bench_hosts: %s: %s\n", what, e->text);
    exit(1);
}

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double memory(void)
{
    struct mallinfo2 m = mallinfo2();
    return (double)(m.uordblks + m.hblkhd);
}

static void tell(const char *name, double v)
{
    printf(", \"%s\": %.6g", name, v);
}

static struct flow_address address_of(size_t host)
{
    return (struct flow_address){.family = 4, .addr = {10, (uint8_t)(host >> 16), (uint8_t)(host >> 8), (uint8_t)host}};
}

/* The p-th that the host talks to: neighbours in a ring, and farther ones. */
static size_t peer_of(size_t host, size_t p)
{
    return (host + ((size_t)1 << p)) % hosts;
}

/* ---- entries ---- */

static size_t put_card(struct bus_table *table, size_t i)
{
    struct flow_address own = address_of(i), *to = mem_zalloc((peers + 1) * sizeof *to);
    struct text t = {.fd = -1};
    struct err e = {0};
    char name[32];
    snprintf(name, sizeof name, "node-%zu", i);
    for (size_t p = 0; p < peers; p++)
        to[p] = address_of(peer_of(i, p));
    struct cluster_entry_host h = {.key = map_mix(i + 1),
        .hash = i + 1,
        .name = name,
        .clock_name = name,
        .begin = BEGIN,
        .end = BEGIN + SPAN,
        .sealed_until = BEGIN + SPAN,
        .has_graph = true,
        .has_packets = true,
        .clock = {.freq = 1000000000, .name = "monotonic", .offset_s = BEGIN / NS_PER_S},
        .own = &own,
        .peers = to,
        .n_own = 1,
        .n_peers = peers};
    memcpy(h.clock.uuid, &i, sizeof i);
    cluster_entry_write(&(struct cluster_entry){name, "0123456789abcdef0123456789abcdef", 1, &h, 1}, &t);
    if (bus_table_put(table, name, t.v, t.n, NULL, &e))
        die("put", &e);
    size_t n = t.n;
    text_fini(&t);
    free(to);
    return n;
}

static void read_entries(struct bus_table *table, struct cluster_membership *r)
{
    struct err e = {0};
    double before = cpu_s();
    if (cluster_membership_read(table, r, &e))
        die("cards", &e);
    tell("roster_s", cpu_s() - before);
    tell("roster_bytes", (double)r->arena.total_bytes);
}

/* ---- clocks ---- */

static struct clock_net *find_clocks(const struct cluster_membership *r)
{
    struct clock_options o = clock_defaults();
    struct clock_net *net = clock_net_new(&o);
    struct err e = {0};
    double before = cpu_s();
    for (size_t i = 0; i < hosts; i++)
        clock_net_host(net, r->hosts[i].clock_name, BEGIN, BEGIN + SPAN);
    for (size_t i = 0; i < hosts; i++)
        for (size_t p = 0; p < peers; p++)
            for (int64_t m = 0; m < MESSAGES && peer_of(i, p) != i; m++) {
                int64_t at = BEGIN + m * (SPAN / MESSAGES), delay = 50000 + (int64_t)(map_mix(i * 64 + p) % 50000);
                clock_net_message(net, i, peer_of(i, p), at, at + delay);
                clock_net_message(net, peer_of(i, p), i, at + 1000000, at + 1000000 + delay);
            }
    if (clock_net_solve(net, &e))
        die("clocks", &e);
    tell("solve_s", cpu_s() - before);
    return net;
}

static void load_clocks(struct bus_table *table, const char *reference)
{
    struct arena a = {0};
    struct err e = {0};
    struct clocks_head h;
    struct clock_net *net;
    struct clock_options o = clock_defaults();
    o.reference = reference;
    double before = cpu_s(), was = memory();
    if (cluster_clocks_head_read(table, &a, &h, &e) || cluster_clocks_load(table, &h, &o, &net, &e))
        die("load", &e);
    tell(reference ? "clocks_load_named_s" : "clocks_load_s", cpu_s() - before);
    if (!reference) {
        tell("clocks_memory_bytes", memory() - was);
        tell("clocks_bytes", (double)h.bytes);
        tell("clocks_parts", (double)h.parts);
    }
    clock_net_free(net);
    arena_fini(&a);
}

static void share_clocks(const struct cluster_membership *r)
{
    struct clocks_head before = {0}, now = {.n_hosts = hosts};
    struct bus_table *table;
    struct err e = {0};
    struct clock_net *net = find_clocks(r);
    now.hosts = mem_zalloc((hosts + 1) * sizeof *now.hosts);
    for (size_t i = 0; i < hosts; i++)
        now.hosts[i] = (struct clocks_host){r->hosts[i].entry->key, r->hosts[i].entry->hash};
    if (bus_table_open(bus, "clocks", NULL, &table, &e))
        die("table", &e);
    double begin = cpu_s();
    if (cluster_clocks_share(table, PART, &before, &now, net, &e))
        die("share", &e);
    tell("share_s", cpu_s() - begin);
    clock_net_free(net);
    free(now.hosts);
    load_clocks(table, NULL);
    load_clocks(table, r->hosts[0].clock_name);
    bus_table_close(table);
}

/* ---- who asks for a path ---- */

static void begin_path(const struct cluster_membership *r)
{
    double begin = cpu_s(), was = memory();
    struct path_far_host *far = mem_zalloc((hosts + 1) * sizeof *far);
    for (size_t i = 0; i < hosts; i++) {
        const struct cluster_entry_host *c = r->hosts[i].entry;
        far[i] = (struct path_far_host){
            r->hosts[i].name, r->hosts[i].id, NULL, c->has_packets, c->own, c->peers, c->n_own, c->n_peers};
    }
    struct path_known *k = path_known_new(far, hosts, &(struct path_known_options){0});
    tell("path_begin_s", cpu_s() - begin);
    tell("path_begin_bytes", memory() - was);
    path_known_free(k);
    free(far);
}

/* ---- the leader ---- */

static void answer(void *arg, struct bus_question *asked)
{
    enum cluster_question kind;
    struct flows_question q;
    struct arena a = {0};
    struct text out = {.fd = -1};
    struct err e = {0};
    (void)arg;
    if (cluster_question_kind(asked->data, asked->n, &kind, &e) || kind != CLUSTER_FLOWS ||
        cluster_flows_question_read(
            &a, (const char *)asked->data + QUESTION_BYTES, asked->n - QUESTION_BYTES, &q, &e)) {
        bus_refuse(asked, ERR_UNSUPPORTED, "only flows");
        arena_fini(&a);
        return;
    }
    for (size_t i = 0; i < q.n; i++) {
        uint64_t hashes[64];
        struct flow_own_address own = {address_of((size_t)q.keys[i] & 0xffffff), BEGIN};
        for (size_t p = 0; p < peers && p < 64; p++)
            hashes[p] = (q.keys[i] & ~UINT64_C(0xff)) + p;
        cluster_flows_write(&(struct flow_other){hashes, peers, &own, 1}, &out);
    }
    bus_answer(asked, out.v, out.n, &e);
    text_fini(&out);
    arena_fini(&a);
}

/* Entries of SERVED nodes, each with its part of the hosts: as many questions for packets, from fewer threads. */
static struct cluster_membership served_roster(struct bus_service **services)
{
    struct cluster_membership r = {0};
    struct cluster_entry *entries = arena_new(&r.arena, struct cluster_entry, SERVED + 1);
    for (size_t n = 0; n < SERVED; n++) {
        char subject[CLUSTER_SUBJECT];
        struct cluster_entry_host *list = arena_new(&r.arena, struct cluster_entry_host, hosts / SERVED + 2);
        struct err e = {0};
        entries[n] = (struct cluster_entry){
            .node = arena_printf(&r.arena, "served-%zu", n), .instance = "", .hosts = list};
        for (size_t i = n; i < hosts; i += SERVED) {
            char *name = arena_printf(&r.arena, "host-%zu", i);
            list[entries[n].n_hosts++] = (struct cluster_entry_host){.key = map_mix(i + 1),
                .hash = i + 1,
                .name = name,
                .clock_name = name,
                .begin = BEGIN,
                .end = BEGIN + SPAN,
                .has_packets = true,
                .clock.name = ""};
        }
        if (cluster_subject_of("bench", entries[n].node, subject, &e) ||
            bus_serve(bus, subject, NULL, answer, NULL, &services[n], &e))
            die("serve", &e);
    }
    cluster_membership_make(&r, entries, SERVED);
    return r;
}

static void gather(void)
{
    struct bus_service *services[SERVED];
    struct cluster_membership r = served_roster(services);
    struct clocks_host *used = mem_zalloc((hosts + 1) * sizeof *used);
    struct clock_options o = clock_defaults();
    struct gathered *g = cluster_gathered_new();
    struct clock_net *net;
    struct err e = {0};
    double begin = cpu_s(), was = memory();
    if (cluster_gather_clocks(g, bus, "bench", &r, &o, NULL, used, &net, &e))
        die("gather", &e);
    tell("gather_s", cpu_s() - begin);
    tell("gathered_bytes", memory() - was);
    struct rusage used_most;
    getrusage(RUSAGE_SELF, &used_most);
    tell("most_bytes", (double)used_most.ru_maxrss * 1024);
    clock_net_free(net);
    cluster_gathered_free(g);
    free(used);
    cluster_membership_fini(&r);
    for (size_t n = 0; n < SERVED; n++)
        bus_stop(services[n]);
}

int main(int argc, char **argv)
{
    struct err e = {0};
    struct bus_options o = {.url = "local:bench"};
    struct bus_table *table;
    struct cluster_membership r;
    size_t bytes = 0;
    hosts = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    peers = argc > 2 ? strtoull(argv[2], NULL, 10) : 6;
    if (!hosts || hosts > 1000000 || peers > 16) {
        fprintf(stderr, "usage: bench_hosts HOSTS [PEERS, 16 at most]\n");
        return 2;
    }
    if (bus_open(&o, &bus, &e) || bus_table_open(bus, "nodes", NULL, &table, &e))
        die("hub", &e);
    for (size_t i = 0; i < hosts; i++)
        bytes += put_card(table, i);
    printf("{\"hosts\": %zu, \"peers\": %zu", hosts, peers);
    tell("card_bytes", (double)bytes / (double)hosts);
    read_entries(table, &r);
    begin_path(&r);
    share_clocks(&r);
    gather();
    printf("}\n");
    cluster_membership_fini(&r);
    bus_table_close(table);
    bus_close(bus);
    return 0;
}
