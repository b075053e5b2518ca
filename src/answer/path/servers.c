/* SPDX-License-Identifier: MIT */
#include "path/servers.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

enum {
    BEGINNING = 4, /* packets of a flow that may be a SYN: the first, with retransmissions */
    SYSTEM_PORTS = 1024,
    CLIENT_PORTS = 32768
};
/* Flag of an end that a client connected to; below it the number of its connections. */
#define LISTENS (UINT64_C(1) << 63)

struct servers {
    struct map ends;        /* hash of the end -> connections, LISTENS */
    struct map connections; /* connections by hash */
};

/* Hash of an end. An address that several machines may have is a different one on each. */
static uint64_t end_hash(size_t host, const struct flow_key *k, bool source)
{
    struct {
        uint64_t host;
        uint8_t family, protocol;
        uint16_t port;
        uint8_t address[16];
        uint32_t none;
    } end = {flow_is_anonymous(k) ? host + 1 : 0, k->family, k->protocol, source ? k->sport : k->dport, {0}, 0};
    memcpy(end.address, source ? k->saddr : k->daddr, sizeof end.address);
    return map_hash(&end, sizeof end);
}

/* Returns whether one of the first packets has SYN, with or without ACK. */
static bool begins_with(const struct flow_store *s, size_t flow, bool sends, uint16_t flags)
{
    size_t n = sends ? flow_sends(s, flow) : flow_receives(s, flow);
    for (size_t i = 0; i < n && i < BEGINNING; i++) {
        struct flow_packet p;
        sends ? flow_send(s, flow, i, &p) : flow_receive(s, flow, i, &p);
        if ((p.flags & (FLOW_SYN | FLOW_ACK)) == flags)
            return true;
    }
    return false;
}

static bool shows(const struct flow_store *s, size_t flow, uint16_t flags)
{
    return begins_with(s, flow, true, flags) || begins_with(s, flow, false, flags);
}

static void look_at(struct servers *v, size_t host, const struct flow_store *s, size_t flow)
{
    struct flow_key k;
    bool fresh;
    flow_key(s, flow, &k);
    if (!k.family)
        return;
    uint64_t source = end_hash(host, &k, true), destination = end_hash(host, &k, false);
    map_put(&v->connections, map_mix(source) + map_mix(destination), &fresh);
    *map_put(&v->ends, source, NULL) += fresh;
    *map_put(&v->ends, destination, NULL) += fresh;
    if (k.protocol != FLOW_TCP)
        return;
    if (shows(s, flow, FLOW_SYN))
        *map_put(&v->ends, destination, NULL) |= LISTENS;
    if (shows(s, flow, FLOW_SYN | FLOW_ACK))
        *map_put(&v->ends, source, NULL) |= LISTENS;
}

struct servers *path_servers_new(const struct flow_store *const *stores, size_t n)
{
    struct servers *v = mem_zalloc(sizeof *v);
    for (size_t h = 0; h < n; h++)
        for (size_t f = 0, flows = stores[h] ? flow_count(stores[h]) : 0; f < flows; f++)
            look_at(v, h, stores[h], f);
    return v;
}

static enum server_end only(bool source, bool destination)
{
    return source == destination ? SERVER_UNKNOWN : source ? SERVER_SOURCE : SERVER_DESTINATION;
}

enum server_end path_servers_end(const struct servers *v, size_t host, const struct flow_key *k)
{
    const uint64_t *at[] = {map_find(&v->ends, end_hash(host, k, true)), map_find(&v->ends, end_hash(host, k, false))};
    uint64_t source = at[0] ? *at[0] : 0, destination = at[1] ? *at[1] : 0;
    return only(source & LISTENS, destination & LISTENS)
        ?: (k->protocol == FLOW_TCP ? only((source & ~LISTENS) > 1, (destination & ~LISTENS) > 1) : SERVER_UNKNOWN)
        ?: only(k->sport < SYSTEM_PORTS, k->dport < SYSTEM_PORTS)
        ?: only(k->sport < CLIENT_PORTS, k->dport < CLIENT_PORTS);
}

void path_servers_free(struct servers *v)
{
    if (!v)
        return;
    map_fini(&v->ends);
    map_fini(&v->connections);
    free(v);
}
