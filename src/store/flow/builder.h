/* SPDX-License-Identifier: MIT */
/* Private to flow: what is known of packets, connections and their users while the records are read (builder.c,
 * connections.c), decided with a bounded look ahead (decide.c), carried over a cut (carry.c), written (settled.c). */
#ifndef WEFT_FLOW_BUILDER_H
#define WEFT_FLOW_BUILDER_H

#include "base/map.h"
#include "base/mem.h"
#include "flow/asks.h"
#include "flow/sights.h"
#include "flow/store.h"
#include "flow/wraps.h"
#include "kernel/kernel.h"

enum {
    NO_FLOW = UINT32_MAX,
    NO_PACKET = UINT32_MAX,
    NO_CONNECTION = UINT32_MAX,
    NOBODY_ELSE = UINT32_MAX,
    /* Receives of one run that are looked at: more than a run takes (netdev_budget: 300). Where the records do not tell
     * when one ends, they are too many to look at all of them for each wake. */
    MOST_IN_RUN = 1024,
    MOST_PASSED_BY = 64, /* before the last of a run, when it may be the only one */
    MOST_USERS = 64, /* of one life of a connection: those seen last */
    /* A packet is settled once this many came after it, or that much later: what was seen until then says whose it is,
     * whatever comes later. A wake is decided in half of that, while the receives that may have done it are not settled
     * yet. Who answers later than within a second was not waited for; the number bounds what is carried. */
    AHEAD_PACKETS = 1 << 16,
    MOST_CONNECTIONS = 1 << 17 /* known at a time in each list; 64 k that live are real */
};
#define AHEAD_NS FLOW_DECIDED_NS

/* A thread seen to use a connection: it sent on it, or was the only one whom its packets could have woken. */
struct user {
    int32_t row;
    uint32_t next; /* of the same life of the connection; NOBODY_ELSE ends */
};

/* A connection from its beginning until another one begins on the same addresses and ports. By side (flow_side): who
 * sent there first and, of what is settled, last; whom packets from there woke. */
struct life {
    uint32_t users; /* who was seen last */
    int32_t first_sender[2], last_sender[2], first_reader[2], last_reader[2];
};

struct flow {
    struct flow_key key;
    uint8_t side;
    bool known;            /* else forgotten: what comes next is a flow of its own */
    bool continued;        /* when it was carried here, some of its packets were settled */
    bool settled;          /* some of its packets are */
    bool ended;            /* has either direction of the present connection? */
    uint32_t reverse;      /* the other direction, or NO_FLOW */
    uint32_t connection;   /* the flow of the two that was seen first; has what is of both */
    uint32_t before;       /* the one with the same key that was forgotten, or NO_FLOW */
    uint32_t sends, passing; /* seen */
    uint32_t seen, carrying; /* datagrams; of those that carry other packets */
    uint32_t waiting;      /* last receive with payload that woke nobody yet */
    uint64_t last_seq;     /* unwrapped; 0: none yet */
    /* Of the connection that the addresses and ports serve now: after its SYN and its FIN, unwrapped (0: not seen). */
    uint64_t syn_end, fin_end;
    uint32_t syn;          /* its number */
    uint64_t high;         /* of settled packets: flow_disk_packet.high */
    /* ---- at flow `connection` ---- */
    uint32_t life;         /* in lives[], another one when the connection begins anew */
    uint32_t last_packet;
    int64_t last;          /* when that came */
    uint32_t older, newer; /* connections in the order of their last packets */
    uint8_t list;
};

struct built_packet {
    struct flow_disk_packet p;
    uint32_t before; /* of a receive: the one before it in its run, or NO_PACKET */
    uint32_t life;   /* of the connection then */
    int32_t woken;   /* the first thread that it woke, as far as decided */
    bool consumed;   /* may have woken somebody */
    bool taken;      /* did */
};

/* A wake that packets may have caused: `last` or a receive before it in its run did; which, is decided later. */
struct wake {
    int64_t ts;
    int32_t row;
    uint32_t last;    /* NO_PACKET: none did */
    uint32_t packets; /* that had been seen */
    bool decided;     /* `last` it is */
};

/* The run of a CPU: what it received since the last change of context. */
struct cpu {
    uint32_t frame, last; /* last = NO_PACKET: nothing */
};

/* The connection on which a thread sent last, + 1, and its life then. */
struct latest {
    uint32_t connection, life;
};

/* Connections by the time of their last packet: those that go on until they are told to end, others that a silence of
 * minutes ends. */
enum flow_list { LASTING, BRIEF, FLOW_LISTS };
struct flow_list_ends {
    uint32_t oldest, newest, n;
};

/* Packets and wakes are numbered from 0 here; `first` more on the host. */
struct flow_builder {
    const struct kernel_tracker *tracker;
    VEC(struct flow) flows;
    VEC(struct built_packet) packets;
    VEC(struct wake) wakes;
    uint32_t settled, wakes_decided; /* those before are */
    uint64_t first_packet, first_wake;
    VEC(struct user) users;
    VEC(struct life) lives;
    VEC(struct cpu) cpus;
    VEC(struct latest) latest; /* by row */
    struct flow_list_ends lists[FLOW_LISTS];
    struct flow_sights *sights;
    struct flow_wraps *wraps;
    VEC(uint64_t) devices; /* by string number: a hash of the interface's name, 0 not looked at yet */
    struct flow_asks asks;
    struct map by_key; /* hash -> flow + 1 (chained by probing with hash + n): the last with that key */
};

struct flow_key flow_key_of(const struct kernel_packet *, bool reverse);
/* Which of the two ends of a connection sends on the flow: the same whatever was seen first. */
static inline unsigned flow_side(const struct flow_key *k)
{
    int order = memcmp(k->saddr, k->daddr, sizeof k->saddr);
    return order ? order > 0 : k->sport > k->dport;
}

/* ---- connections.c ---- */

/* The flow of a packet that came at ts. */
uint32_t flow_of_packet(struct flow_builder *, const struct kernel_packet *, int64_t ts);
/* A flow of its own, the last with its key. */
uint32_t flow_begin(struct flow_builder *, const struct flow_key *);
void flow_join(struct flow_builder *, uint32_t flow, uint32_t reverse);
uint32_t flow_begin_life(struct flow_builder *);
/* Numbers the bytes of a packet; a connection may begin anew. */
void flow_number_bytes(struct flow_builder *, uint32_t flow, const struct kernel_packet *, struct flow_disk_packet *);
/* The packet that comes next is the connection's last. */
void flow_touch(struct flow_builder *, uint32_t connection, int64_t ts);
void flow_list_append(struct flow_builder *, uint32_t connection);

/* How likely packets of a connection in that life are meant for `row`. */
enum relation { UNRELATED, POSSIBLE, SAME_PROCESS, USER };
enum relation flow_relation(const struct flow_builder *, uint32_t life, int32_t row);
bool flow_is_user(const struct flow_builder *, uint32_t life, int32_t row);
void flow_add_user(struct flow_builder *, uint32_t life, int32_t row);
const struct kernel_thread *flow_thread(const struct flow_builder *, int32_t row);
static inline bool flow_kernel_thread(const struct kernel_thread *t)
{
    return t->tid == 2 || t->ppid == 2 || t->idle_cpu >= 0;
}
static inline uint32_t flow_life(const struct flow_builder *b, uint32_t flow)
{
    return b->flows.v[b->flows.v[flow].connection].life;
}

/* ---- decide.c ---- */

/* The packet if it is not settled yet: what is settled explains nothing that comes now. */
static inline uint32_t flow_unsettled(const struct flow_builder *b, uint32_t packet)
{
    return packet >= b->settled ? packet : NO_PACKET;
}
/* It is `ts` now: decides what waited long enough. */
void flow_decide(struct flow_builder *, int64_t ts);
void flow_decide_all(struct flow_builder *);

#endif
