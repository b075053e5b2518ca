/* Clocks of many hosts: bench_sync TRACE [HOSTS [PEERS [PACKETS]]]
 * Makes the flow stores of HOSTS hosts (1000) that talk to PEERS others each (10), on CONNECTIONS connections with
 * PACKETS packets each way (50), by clocks that are known; then finds the clock maps of all of them, and prints JSON
 * lines. TRACE is any kernel trace: the stores are built as if it were each host's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/time.h"
#include "clock/clock.h"
#include "ctf/ctf.h"
#include "flow/flow.h"
#include "index/index.h"
#include "kernel/kernel.h"

enum { CONNECTIONS = 8, ACK = 16 };
static const int64_t EPOCH = 1795225069746962200, SPAN = 20000000000;

struct world {
    size_t hosts, peers, packets;
    struct kernel_tracker *tracker;
    struct flow_store **stores;
};

static uint64_t dice(uint64_t a, uint64_t b, uint64_t c)
{
    return map_mix(map_mix(map_mix(a + 1) + b) + c);
}

/* What host h's clock shows at a true time; +-50 ppm, offsets of up to a second. */
static int64_t clock_of(size_t h, int64_t t)
{
    double ppm = (double)(dice(h, 1, 1) % 100001) / 1000 - 50;
    return EPOCH + t + (int64_t)(dice(h, 2, 2) % 1000000000) + (int64_t)((double)t * ppm * 1e-6);
}

static void see(const struct world *w, struct flow_builder *b, uint32_t *number, size_t host, size_t from, size_t to,
    uint64_t connection, uint64_t i)
{
    bool sends = host == from;
    uint64_t which = dice(from << 32 | to, connection, i);
    int64_t sent = SPAN / (int64_t)w->packets * (int64_t)i + (int64_t)(which % 1000000), delay = 50000;
    delay += (int64_t)(-log(((double)(which >> 40) + 1) / 16777217.0) * 100000);
    struct kernel_record r = {.ts = clock_of(host, sends ? sent : sent + delay),
        .kind = sends ? KERNEL_PACKET_SEND : KERNEL_PACKET_RECEIVE,
        .ctx = sends ? KERNEL_CTX_THREAD : KERNEL_CTX_SOFTIRQ,
        .ctx_number = sends ? 0 : KERNEL_SOFTIRQ_NET_RX,
        .ctx_frame = *number + 1,
        .row = -1};
    r.u.packet = (struct kernel_packet){.number = (*number)++,
        .family = 4,
        .protocol = 6,
        .sport = (uint16_t)(from < to ? 10000 + connection : 80),
        .dport = (uint16_t)(from < to ? 80 : 10000 + connection),
        .seq = (uint32_t)(1000 * i),
        .ack = 1,
        .flags = ACK,
        .ip_id = (uint16_t)i,
        .payload_bytes = 1000,
        .has_length = true};
    for (int k = 0; k < 4; k++) {
        r.u.packet.saddr[k] = (uint8_t)((10u << 24 | (uint32_t)from) >> (24 - 8 * k));
        r.u.packet.daddr[k] = (uint8_t)((10u << 24 | (uint32_t)to) >> (24 - 8 * k));
    }
    flow_builder_add(b, &r);
}

/* Peers are the next PEERS / 2 hosts of a ring in leaps, and those for which a host is one of these. */
static size_t peer_of(const struct world *w, size_t host, size_t k)
{
    size_t leap = 1 + (k / 2) * 37;
    return k % 2 ? (host + w->hosts - leap % w->hosts) % w->hosts : (host + leap) % w->hosts;
}

static int make_store(const struct world *w, size_t host, struct flow_store **out, struct err *e)
{
    char path[64];
    uint32_t number = 0;
    struct flow_builder *b = flow_builder_new(w->tracker);
    snprintf(path, sizeof path, "/tmp/weft-bench-sync-%ld", (long)getpid());
    for (size_t i = 0; i < w->packets; i++)
        for (size_t k = 0; k < w->peers; k++)
            for (uint64_t c = 0; c < CONNECTIONS; c++) {
                see(w, b, &number, host, host, peer_of(w, host, k), c, i);
                see(w, b, &number, host, peer_of(w, host, k), host, c, i);
            }
    int rc = flow_builder_write(b, path, 1, e) ?: flow_open(path, out, e);
    unlink(path);
    flow_builder_free(b);
    return rc;
}

/* How many hosts' maps miss the truth somewhere, and the widest error in the middle. */
static size_t wrong_maps(const struct world *w, const struct clock_net *net, int64_t *widest)
{
    size_t wrong = 0;
    *widest = 0;
    for (size_t h = 0; h < w->hosts; h++) {
        const struct clock_map *m = clock_net_map(net, h);
        bool bad = !m->n;
        for (int64_t t = 0; t <= SPAN; t += SPAN / 16) {
            int64_t own = clock_of(h, t), off = clock_to_reference(m, own) - clock_of(m->reference, t),
                    error = clock_error_at(m, own);
            bad |= llabs(off) > error + 3;
            *widest = error > *widest && t == SPAN / 2 ? error : *widest;
        }
        wrong += bad;
    }
    return wrong;
}

static double seconds_since(int64_t t)
{
    return (double)(time_monotonic_ns() - t) / 1e9;
}

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static long peak_mb(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss / 1024;
}

static int measure(const struct world *w, struct err *e)
{
    size_t looked_at;
    int64_t widest;
    struct clock_options o = clock_defaults();
    struct clock_net *net = clock_net_new(&o), *again;
    char name[32], path[64];
    for (size_t h = 0; h < w->hosts; h++) {
        snprintf(name, sizeof name, "n%zu", h);
        clock_net_host(net, name, clock_of(h, 0), clock_of(h, SPAN));
    }
    long before = peak_mb();
    double cpu = cpu_seconds();
    int64_t t = time_monotonic_ns();
    int rc = index_sync_flows(net, (const struct flow_store *const *)w->stores, w->hosts, &looked_at, e);
    if (rc)
        return rc;
    double wall = seconds_since(t);
    size_t wrong = wrong_maps(w, net, &widest), all = w->hosts * (w->hosts - 1) / 2;
    printf("{\"bench\": \"sync\", \"hosts\": %zu, \"packets\": %zu, \"seconds\": %.2f, \"cpu_seconds\": %.2f, "
           "\"pairs\": %zu, \"of\": %zu, \"ratio\": %.4f, \"wrong\": %zu, \"widest_ns\": %lld, \"peak_mb\": %ld, "
           "\"peak_mb_before\": %ld}\n",
        w->hosts, w->hosts * w->peers * CONNECTIONS * w->packets * 2, wall, cpu_seconds() - cpu, looked_at, all,
        (double)looked_at / (double)all, wrong, (long long)widest, peak_mb(), before);
    snprintf(path, sizeof path, "/tmp/weft-bench-clocks-%ld", (long)getpid());
    o.reference = "n0";
    rc = clock_net_save(net, path, 1, e);
    clock_net_free(net);
    t = time_monotonic_ns();
    rc = rc ?: clock_net_load(path, 1, &o, &again, e);
    unlink(path);
    if (rc || (rc = clock_net_solve(again, e)))
        return rc;
    printf("{\"bench\": \"another reference\", \"seconds\": %.3f, \"wrong\": %zu}\n", seconds_since(t),
        wrong_maps(w, again, &widest));
    clock_net_free(again);
    return 0;
}

static int open_tracker(const char *dir, struct world *w, struct err *e)
{
    struct ctf_group *groups;
    struct ctf_trace *trace;
    struct kernel_binding *binding;
    size_t n;
    int rc = ctf_discover(dir, &groups, &n, e);
    if (!rc && !n)
        rc = err_set(e, ERR_NOTFOUND, "%s: no trace", dir);
    rc = rc ?: ctf_trace_open(&groups[0], ctf_schemas_new(), &trace, e) ?: kernel_bind(trace, &binding, e);
    if (!rc)
        w->tracker = kernel_tracker_new(binding, NULL, NULL);
    return rc;
}

int main(int argc, char **argv)
{
    struct err e = {0};
    struct world w = {.hosts = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000,
        .peers = argc > 3 ? strtoul(argv[3], NULL, 10) : 10,
        .packets = argc > 4 ? strtoul(argv[4], NULL, 10) : 50};
    if (argc < 2 || w.hosts < 2 || w.peers < 1 || w.packets < 1) {
        fprintf(stderr, "usage: bench_sync TRACE [HOSTS [PEERS [PACKETS]]]\n");
        return 2;
    }
    int rc = open_tracker(argv[1], &w, &e);
    w.stores = mem_zalloc(w.hosts * sizeof *w.stores);
    for (size_t h = 0; h < w.hosts && !rc; h++)
        rc = make_store(&w, h, &w.stores[h], &e);
    rc = rc ?: measure(&w, &e);
    if (rc)
        fprintf(stderr, "bench_sync: %s\n", e.text);
    for (size_t h = 0; h < w.hosts; h++)
        flow_close(w.stores[h]);
    free(w.stores);
    return rc ? 1 : 0;
}
