/* SPDX-License-Identifier: MIT */
/* Private to flow: state of packets, connections and their users while records are read (builder.c, connections.c),
 * decided with a bounded delay (decide.c), carried over a cut (carry.c), written (settled.c). */
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
    /* Limit of receives of one run that are examined: more than a run takes (netdev_budget: 300). If the records do not
     * show the end of runs, they are too many to examine for each wake. */
    MOST_IN_RUN = 1024,
    MOST_PASSED_BY = 64, /* receives before the last of a run, if that may be the only one */
    MOST_USERS = 64, /* users of one life of a connection: the last seen */
    /* A packet is settled when this many packets have followed, or after this time: what was seen until then decides
     * its owner, whatever follows. A wake is decided in half of that, while the receives that may have caused it are
     * not settled yet. An answer after more than a second was not waited for; the number limits what is carried. */
    AHEAD_PACKETS = 1 << 16,
    MOST_CONNECTIONS = 1 << 17 /* limit of connections known at a time per list; 64 k live ones are realistic */
};
#define AHEAD_NS FLOW_DECIDED_NS

/* User of a connection: a thread that sent on it, or the only one that its packets could have woken. */
struct user {
    int32_t row;
    uint32_t next; /* next user of the same life of the connection; NOBODY_ELSE: end */
};

/* Life of a connection, until another one begins with the same addresses and ports. By side (flow_side): first sender,
 * last sender of settled packets, and the thread that its packets woke. */
struct life {
    uint32_t users; /* list of users, the last seen first */
    int32_t first_sender[2], last_sender[2], first_reader[2], last_reader[2];
};

struct flow {
    struct flow_key key;
    uint8_t side;
    bool known;            /* false: forgotten, so the next packet begins a new flow */
    bool continued;        /* some of its packets were settled before it was carried here */
    bool settled;          /* some of its packets are settled */
    bool ended;            /* either direction of the present connection has ended */
    uint32_t reverse;      /* flow of the other direction, or NO_FLOW */
    uint32_t connection;   /* first seen flow of the two, which has the common fields */
    uint32_t before;       /* forgotten flow with the same key, or NO_FLOW */
    uint32_t sends, passing; /* packets seen */
    uint32_t seen, carrying; /* datagrams seen; those that carry other packets */
    uint32_t waiting;      /* last receive with payload that has woken nobody yet */
    uint64_t last_seq;     /* unwrapped; 0: none yet */
    /* Present connection of the addresses and ports: numbers after its SYN and its FIN, unwrapped (0: not seen). */
    uint64_t syn_end, fin_end;
    uint32_t syn;          /* number of the SYN */
    uint64_t high;         /* flow_disk_packet.high of settled packets */
    /* ---- fields of flow `connection` only ---- */
    uint32_t life;         /* index in lives[]; changes when the connection begins anew */
    uint32_t last_packet;
    int64_t last;          /* time of the last packet */
    uint32_t older, newer; /* list of connections in order of their last packets */
    uint8_t list;
};

struct built_packet {
    struct flow_disk_packet p;
    uint32_t before; /* receives: the one before in its run, or NO_PACKET */
    uint32_t life;   /* life of the connection then */
    int32_t woken;   /* first thread that it woke, as far as decided */
    bool consumed;   /* a thread may have been woken by it */
    bool taken;      /* a thread was woken by it */
};

/* Wake that packets may have caused: `last`, or a receive before it in its run; decided later. */
struct wake {
    int64_t ts;
    int32_t row;
    uint32_t last;    /* NO_PACKET: no packet */
    uint32_t packets; /* number of packets seen by then */
    bool decided;     /* `last` is the cause */
};

/* Run of a CPU: its receives since the last change of context. */
struct cpu {
    uint32_t frame, last; /* last = NO_PACKET: no receive */
};

/* Last connection that a thread sent on, + 1, and its life then. */
struct latest {
    uint32_t connection, life;
};

/* Lists of connections by time of their last packet: those that last until their end is seen, and those that end by a
 * silence of minutes. */
enum flow_list { LASTING, BRIEF, FLOW_LISTS };
struct flow_list_ends {
    uint32_t oldest, newest, n;
};

/* Packets and wakes are numbered from 0 here; the host's numbers are greater by `first`. */
struct flow_builder {
    const struct kernel_tracker *tracker;
    VEC(struct flow) flows;
    VEC(struct built_packet) packets;
    VEC(struct wake) wakes;
    uint32_t settled, wakes_decided; /* all before these are settled, decided */
    uint64_t first_packet, first_wake;
    VEC(struct user) users;
    VEC(struct life) lives;
    VEC(struct cpu) cpus;
    VEC(struct latest) latest; /* last connection by row */
    struct flow_list_ends lists[FLOW_LISTS];
    struct flow_sights *sights;
    struct flow_wraps *wraps;
    VEC(uint64_t) devices; /* by string number: hash of the interface's name; 0: not computed yet */
    struct flow_asks asks;
    struct map by_key; /* hash -> flow + 1 (chained by probing with hash + n): the last one with that key */
};

struct flow_key flow_key_of(const struct kernel_packet *, bool reverse);
/* Side of a connection that sends on the flow: independent of which flow was seen first. */
static inline unsigned flow_side(const struct flow_key *k)
{
    int order = memcmp(k->saddr, k->daddr, sizeof k->saddr);
    return order ? order > 0 : k->sport > k->dport;
}

/* ---- connections.c ---- */

/* Flow of a packet that arrived at ts. */
uint32_t flow_of_packet(struct flow_builder *, const struct kernel_packet *, int64_t ts);
/* Adds a flow, which becomes the last with its key. */
uint32_t flow_begin(struct flow_builder *, const struct flow_key *);
void flow_join(struct flow_builder *, uint32_t flow, uint32_t reverse);
uint32_t flow_begin_life(struct flow_builder *);
/* Sets the byte numbers of a packet; a connection may begin anew. */
void flow_number_bytes(struct flow_builder *, uint32_t flow, const struct kernel_packet *, struct flow_disk_packet *);
/* Moves the connection to the end of its list; its last packet is the next. */
void flow_touch(struct flow_builder *, uint32_t connection, int64_t ts);
void flow_list_append(struct flow_builder *, uint32_t connection);

/* Likelihood that packets of a connection in that life are meant for `row`. */
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

/* Returns the packet if it is not settled yet; otherwise none, since settled ones explain nothing now. */
static inline uint32_t flow_unsettled(const struct flow_builder *b, uint32_t packet)
{
    return packet >= b->settled ? packet : NO_PACKET;
}
/* Decides everything that is due at `ts`. */
void flow_decide(struct flow_builder *, int64_t ts);
void flow_decide_all(struct flow_builder *);

#endif
