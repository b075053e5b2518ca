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

enum { NO_FLOW = UINT32_MAX, NO_PACKET = UINT32_MAX };

/* A thread seen to use a connection: it sent on it, or was the only one whom its packets could have woken. */
struct user {
    int32_t row;
    uint32_t life; /* of the connection */
    uint32_t next; /* of the same connection; UINT32_MAX ends */
};

struct flow {
    struct flow_key key;
    uint32_t reverse;      /* the other direction, or NO_FLOW */
    uint32_t connection;   /* the smaller of the two numbers */
    uint32_t users;        /* of the connection: listed at flow `connection` */
    uint32_t datagrams[2]; /* receives, sends counted */
    uint64_t last_seq;     /* unwrapped; 0: none yet */
    /* Of the connection that the addresses and ports serve now: after its SYN and its FIN, unwrapped (0: not seen); has
     * either direction ended? */
    uint64_t syn_end, fin_end;
    uint32_t syn;          /* its number */
    bool ended;
    uint32_t life;         /* of the connection, listed at flow `connection`: how often it began anew */
    uint32_t sends, receives, copies, passing;
    uint32_t waiting; /* last receive with payload that woke nobody yet */
};

struct built_packet {
    struct flow_disk_packet p;
    uint32_t frame, cpu;
    uint8_t ctx;
    uint16_t vector;
    bool consumed; /* woke somebody */
    bool begins;   /* a connection anew */
    uint32_t life; /* of the connection then */
};

/* A wake that packets may have caused: one of the receives [first, last] of its softirq run did; decided when all users
 * are known. */
struct wake {
    int64_t ts;
    int32_t row;
    uint32_t first, last; /* packets; first = NO_PACKET: already decided as `last` */
    uint32_t frame;
};

/* Receives since the last change of context on a CPU. */
struct cpu {
    uint32_t frame, first, last; /* first = NO_PACKET: none */
};

struct flow_builder {
    const struct kernel_tracker *tracker;
    VEC(struct flow) flows;
    VEC(struct built_packet) packets;
    VEC(struct wake) wakes;
    VEC(struct user) users;
    VEC(struct cpu) cpus;
    VEC(uint32_t) latest; /* by row: connection on which the thread sent last, + 1 */
    struct flow_sights *sights;
    struct flow_asks asks;
    struct map by_key; /* hash -> flow + 1 (chained by probing with hash + n) */
};

struct flow_key flow_key_of(const struct kernel_packet *, bool reverse);

/* How likely packets of a connection, in its given life, are meant for `row`. */
enum relation { UNRELATED, POSSIBLE, SAME_PROCESS, USER };
enum relation flow_relation(const struct flow_builder *, uint32_t connection, uint32_t life, int32_t row);
const struct kernel_thread *flow_thread(const struct flow_builder *, int32_t row);
static inline bool flow_kernel_thread(const struct kernel_thread *t)
{
    return t->tid == 2 || t->ppid == 2 || t->idle_cpu >= 0;
}

#endif
