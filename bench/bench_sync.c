/* SPDX-License-Identifier: MIT */
/* Clocks of many hosts: bench_sync TRACE [HOSTS [PEERS [PACKETS]]], or of two that go on: bench_sync --grow [CHUNKS]
 * Makes the flow stores of HOSTS hosts (1000) that talk to PEERS others each (10), on CONNECTIONS connections with
 * PACKETS packets each way (50), by clocks that are known; then finds the clock maps of all of them, and prints JSON
 * lines. TRACE is any kernel trace: the stores are built as if it were each host's.
 * --grow: chunks of a minute with MESSAGES messages between two hosts (10 080: a week). Prints what a chunk costs and
 * what it takes to find the clocks of all of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
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
        .ctx_frame = ++*number,
        .row = -1};
    r.u.packet = (struct kernel_packet){.family = 4,
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
    int rc = flow_builder_write(b, store_file(path), 1, e) ?: flow_open(path, out, e);
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
    struct index_sync_host *hosts = mem_zalloc(w->hosts * sizeof *hosts);
    struct index_sync sync = {.hosts = hosts, .n = w->hosts, .prior_ppm = o.drift_prior_ppm};
    for (size_t h = 0; h < w->hosts; h++)
        hosts[h] = (struct index_sync_host){.flows = w->stores[h], .sealed.until = INT64_MIN};
    int rc = index_sync_flows(net, &sync, e);
    free(hosts);
    if (rc)
        return rc;
    double wall = seconds_since(t);
    size_t wrong = wrong_maps(w, net, &widest), all = w->hosts * (w->hosts - 1) / 2;
    printf("{\"bench\": \"sync\", \"hosts\": %zu, \"packets\": %zu, \"seconds\": %.2f, \"cpu_seconds\": %.2f, "
           "\"pairs\": %zu, \"of\": %zu, \"ratio\": %.4f, \"wrong\": %zu, \"widest_ns\": %lld, \"peak_mb\": %ld, "
           "\"peak_mb_before\": %ld}\n",
        w->hosts, w->hosts * w->peers * CONNECTIONS * w->packets * 2, wall, cpu_seconds() - cpu, sync.looked_at, all,
        (double)sync.looked_at / (double)all, wrong, (long long)widest, peak_mb(), before);
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

/* ---- chunk after chunk ---- */

enum { MESSAGES = 1000 };
static const int64_t MINUTE = 60000000000;

struct minute {
    size_t number;
    int64_t jitter; /* mean of what delays vary by */
};

/* Of two hosts with clocks that wander by some ppm within days. */
static int64_t wandering(size_t h, int64_t t)
{
    double days = (double)t / 86400e9;
    return clock_of(h, t) + (int64_t)(h ? 2e7 * sin(days * 6.3) : 0);
}

static void tell_minute(void *arg, struct clock_told *to)
{
    const struct minute *m = arg;
    for (uint64_t i = 0; i < MESSAGES; i++) {
        uint64_t which = dice(m->number, i, 9);
        int64_t sent = MINUTE * (int64_t)m->number + (int64_t)(which % (uint64_t)MINUTE), delay = 100000;
        delay += (int64_t)(-log(((double)(which >> 40) + 1) / 16777217.0) * (double)m->jitter);
        clock_tell(to, i & 1, wandering(!(i & 1), sent), wandering(i & 1, sent + delay));
    }
}

static struct clock_net *two_hosts(size_t minutes)
{
    struct clock_options o = clock_defaults();
    struct clock_net *net = clock_net_new(&o);
    for (size_t h = 0; h < 2; h++)
        clock_net_host(net, h ? "b" : "a", wandering(h, 0), wandering(h, MINUTE * (int64_t)minutes));
    return net;
}

static const char *chunk_path(const char *dir, size_t number, char *path, size_t n)
{
    snprintf(path, n, "%s/%zu", dir, number);
    return path;
}

/* What the archive of a minute costs: its own messages are looked at and kept. */
static int keep_minute(const char *dir, struct minute *m, size_t *bytes, struct err *e)
{
    char path[128];
    const struct clock_source sources[2] = {{1, (int64_t)m->number, 1}, {2, (int64_t)m->number, 1}};
    double prior = clock_defaults().drift_prior_ppm;
    const struct clock_part part = {.a = 0, .b = 1, .told = clock_told_new(prior)};
    tell_minute(m, part.told);
    int rc = clock_kept_save(chunk_path(dir, m->number, path, sizeof path), 1, prior, sources, 2, &part, 1, e);
    struct stat s;
    *bytes += !rc && !stat(path, &s) ? (size_t)s.st_size : 0;
    clock_told_free(part.told);
    return rc;
}

struct week {
    const char *dir;
    size_t minutes;
    bool failed;
};

static void tell_week(void *arg, struct clock_told *to)
{
    struct week *w = arg;
    char path[128];
    for (size_t i = 0; i < w->minutes; i++) {
        struct clock_kept *kept;
        if (clock_kept_open(chunk_path(w->dir, i, path, sizeof path), 1, &kept, NULL)) {
            w->failed = true;
            return;
        }
        clock_kept_tell(kept, 0, to);
        clock_kept_close(kept);
    }
}

static int solve_week(struct week *w, int64_t jitter, struct err *e)
{
    struct clock_net *net = two_hosts(w->minutes);
    const struct clock_map *m;
    int64_t t = time_monotonic_ns(), worst = 0, end = MINUTE * (int64_t)w->minutes;
    clock_net_messages(net, 0, 1, tell_week, w);
    int rc = clock_net_solve(net, e);
    size_t wrong = 0, other = rc || clock_net_map(net, 0)->predecessor >= 0 ? 0 : 1;
    for (int64_t i = 0; i <= 1000 && !rc; i++) {
        m = clock_net_map(net, other);
        int64_t own = wandering(other, end / 1000 * i), error = clock_error_at(m, own);
        wrong += llabs(clock_to_reference(m, own) - wandering(!other, end / 1000 * i)) > error + 3;
        worst = error > worst ? error : worst;
    }
    printf("{\"bench\": \"clocks of all chunks\", \"jitter_ns\": %lld, \"chunks\": %zu, \"seconds\": %.3f, "
           "\"wrong\": %zu, \"worst_ns\": %lld, \"peak_mb\": %ld}\n",
        (long long)jitter, w->minutes, seconds_since(t), wrong, (long long)worst, peak_mb());
    clock_net_free(net);
    return rc ?: w->failed ? err_set(e, ERR_IO, "%s: a chunk could not be read", w->dir) : 0;
}

static int grow(size_t chunks, int64_t jitter, struct err *e)
{
    char dir[] = "/tmp/weft-bench-grow-XXXXXX", path[128];
    struct week w = {.dir = dir};
    size_t kept = 0, at = 0;
    int rc = mkdtemp(dir) ? 0 : err_set(e, ERR_IO, "%s: cannot be made", dir);
    double cpu = cpu_seconds();
    for (size_t n = 1; n <= chunks && !rc; n++) {
        rc = keep_minute(dir, &(struct minute){n - 1, jitter}, &kept, e);
        w.minutes = n;
        if (n % (chunks / 5 + !(chunks / 5)) && n < chunks)
            continue;
        printf("{\"bench\": \"one more chunk\", \"jitter_ns\": %lld, \"chunks\": %zu, \"cpu_ms_each\": %.3f, "
               "\"bytes_each\": %.0f, \"messages_each\": %d}\n",
            (long long)jitter, n, (cpu_seconds() - cpu) * 1000 / (double)(n - at), (double)kept / (double)(n - at),
            MESSAGES);
        rc = rc ?: solve_week(&w, jitter, e);
        cpu = cpu_seconds();
        kept = 0;
        at = n;
    }
    for (size_t n = 0; n < w.minutes; n++)
        unlink(chunk_path(dir, n, path, sizeof path));
    rmdir(dir);
    return rc;
}

int main(int argc, char **argv)
{
    struct err e = {0};
    if (argc > 1 && !strcmp(argv[1], "--grow")) {
        size_t chunks = argc > 2 ? strtoul(argv[2], NULL, 10) : 10080;
        int rc = grow(chunks, 100000, &e) ?: grow(chunks, 10000000, &e);
        if (rc)
            fprintf(stderr, "bench_sync: %s\n", e.text);
        return rc ? 1 : 0;
    }
    struct world w = {.hosts = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000,
        .peers = argc > 3 ? strtoul(argv[3], NULL, 10) : 10,
        .packets = argc > 4 ? strtoul(argv[4], NULL, 10) : 50};
    if (argc < 2 || w.hosts < 2 || w.peers < 1 || w.packets < 1) {
        fprintf(stderr, "usage: bench_sync TRACE [HOSTS [PEERS [PACKETS]]] | --grow [CHUNKS]\n");
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
