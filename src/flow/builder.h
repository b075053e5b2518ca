/* Private to flow: what is known of packets, flows and their users while the records are read (builder.c), and decided
 * and written when all are (write.c). */
#ifndef WEFT_FLOW_BUILDER_H
#define WEFT_FLOW_BUILDER_H

#include "base/map.h"
#include "base/mem.h"
#include "flow/asks.h"
#include "flow/sights.h"
#include "flow/store.h"
#include "kernel/kernel.h"

enum {
    NO_FLOW = UINT32_MAX,
    NO_PACKET = UINT32_MAX,
    NOBODY_ELSE = UINT32_MAX,
    /* Receives of one run that are looked at: more than a run takes (netdev_budget: 300). Where the records do not tell
     * when one ends, they are too many to look at all of them for each wake. */
    MOST_IN_RUN = 1024
};

/* A thread seen to use a connection: it sent on it, or was the only one whom its packets could have woken. */
struct user {
    int32_t row;
    uint32_t next; /* of the same life of the connection; NOBODY_ELSE ends */
};

struct flow {
    struct flow_key key;
    uint32_t reverse;      /* the other direction, or NO_FLOW */
    uint32_t connection;   /* the smaller of the two numbers */
    uint32_t datagrams[2]; /* receives, sends counted */
    uint64_t last_seq;     /* unwrapped; 0: none yet */
    /* Of the connection that the addresses and ports serve now: after its SYN and its FIN, unwrapped (0: not seen); has
     * either direction ended? */
    uint64_t syn_end, fin_end;
    uint32_t syn;          /* its number */
    bool ended;
    uint32_t life;         /* of the connection, at flow `connection`: in lives[], another one when it begins anew */
    uint32_t sends, receives, copies, passing;
    uint32_t waiting; /* last receive with payload that woke nobody yet */
};

struct built_packet {
    struct flow_disk_packet p;
    uint32_t before; /* of a receive: the one before it in its run, or NO_PACKET */
    uint32_t life;   /* of the connection then */
    bool consumed;   /* woke somebody */
    bool begins;     /* a connection anew */
};

/* A wake that packets may have caused: `last` or a receive before it in its run did; which, is decided when all users
 * are known. */
struct wake {
    int64_t ts;
    int32_t row;
    uint32_t last; /* NO_PACKET: none did */
    bool decided;  /* `last` it is */
};

/* The run of a CPU: what it received since the last change of context. */
struct cpu {
    uint32_t frame, last; /* last = NO_PACKET: nothing */
};

struct flow_builder {
    const struct kernel_tracker *tracker;
    VEC(struct flow) flows;
    VEC(struct built_packet) packets;
    VEC(struct wake) wakes;
    VEC(struct user) users;
    VEC(uint32_t) lives; /* of connections: the user who was seen last */
    VEC(struct cpu) cpus;
    VEC(uint32_t) latest; /* by row: connection on which the thread sent last, + 1 */
    struct flow_sights *sights;
    struct flow_asks asks;
    struct map by_key; /* hash -> flow + 1 (chained by probing with hash + n) */
};

struct flow_key flow_key_of(const struct kernel_packet *, bool reverse);

/* How likely packets of a connection in that life are meant for `row`. */
enum relation { UNRELATED, POSSIBLE, SAME_PROCESS, USER };
enum relation flow_relation(const struct flow_builder *, uint32_t life, int32_t row);
const struct kernel_thread *flow_thread(const struct flow_builder *, int32_t row);
static inline bool flow_kernel_thread(const struct kernel_thread *t)
{
    return t->tid == 2 || t->ppid == 2 || t->idle_cpu >= 0;
}

#endif
