/* SPDX-License-Identifier: MIT */
#include "cluster/metrics.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/map.h"
#include "base/mem.h"

enum { MOST_LOOKED_AT = 64 }; /* packets of a flow: the bytes of a longer one are estimated from so many of them */

static uint64_t trace_bytes(const struct experiment *x, size_t host)
{
    const struct index_trace *traces;
    uint64_t bytes = 0;
    size_t n = index_experiment_traces(x, &traces);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; traces[i].host == (int32_t)host && k < ctf_trace_streams(traces[i].trace); k++) {
            struct ctf_stream_info s;
            ctf_trace_stream(traces[i].trace, k, &s);
            bytes += s.bytes;
        }
    return bytes;
}

static uint64_t files_bytes(const char *dir)
{
    uint64_t bytes = 0;
    DIR *d = dir ? opendir(dir) : NULL;
    for (struct dirent *entry; d && (entry = readdir(d));) {
        char *path = mem_printf("%s/%s", dir, entry->d_name);
        struct stat st;
        bytes += !lstat(path, &st) && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
        free(path);
    }
    if (d)
        closedir(d);
    return bytes;
}

static uint64_t address_hash(uint8_t family, const uint8_t *addr)
{
    struct flow_address a = {.family = family};
    memcpy(a.addr, addr, family == 4 ? 4 : sizeof a.addr);
    return map_hash(&a, sizeof a);
}

/* Payload of the flow's sends: those looked at stand for the others between them. */
static uint64_t bytes_of(const struct flow_store *s, size_t flow, size_t packets)
{
    size_t looked_at = packets < MOST_LOOKED_AT ? packets : MOST_LOOKED_AT;
    uint64_t bytes = 0;
    struct flow_packet p;
    for (size_t i = 0; i < looked_at; i++) {
        flow_send(s, flow, i * packets / looked_at, &p);
        bytes += p.bytes;
    }
    return looked_at ? (uint64_t)((double)bytes * (double)packets / (double)looked_at) : 0;
}

static void find_talk(const struct flow_store *s, const struct cluster_entry_host *h, struct cluster_entry_talk *talk)
{
    struct map peers = {0};
    for (size_t i = 0; i < h->n_peers; i++)
        *map_put(&peers, address_hash(h->peers[i].family, h->peers[i].addr), NULL) = i;
    for (size_t f = 0; f < flow_count(s); f++) {
        struct flow_key key;
        flow_key(s, f, &key);
        const uint64_t *peer = map_find(&peers, address_hash(key.family, key.daddr));
        size_t packets = peer && flow_may_send(s, &key) ? flow_sends(s, f) : 0;
        if (!packets)
            continue;
        talk[*peer].packets += packets;
        talk[*peer].bytes += bytes_of(s, f, packets);
    }
    map_fini(&peers);
}

void cluster_metrics_find(const struct experiment *x, size_t host, struct arena *a, struct cluster_entry_host *h)
{
    const struct index_host *hosts;
    index_experiment_hosts(x, &hosts);
    struct cluster_entry_talk *talk = arena_new(a, struct cluster_entry_talk, h->n_peers + 1);
    h->bytes = trace_bytes(x, host);
    h->store_bytes = files_bytes(hosts[host].store_dir);
    h->events = hosts[host].events;
    h->talk = talk;
    if (hosts[host].flows)
        find_talk(hosts[host].flows, h, talk);
}
