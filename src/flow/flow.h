/* Packets and connections of one host: which send explains a receive, and which receive woke which thread.
 * A *flow* is one direction of one connection: (protocol, source, source port, destination, destination port). TCP
 * bytes carry unwrapped 64-bit sequence numbers, so a receive is explained by the send that covers its last byte
 * whatever was segmented, merged or sent again. Source: reference/critical-path.md 4.1 and 8. */
#ifndef WEFT_FLOW_FLOW_H
#define WEFT_FLOW_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Grows whenever the same records give other flows, packets or wakes: stores made of them are then built again. */
enum { FLOW_RULES_VERSION = 9 };

struct flow_key {
    uint8_t family, protocol;      /* 4, 6, 0 unknown; 6 TCP, 17 UDP */
    uint16_t sport, dport;
    uint8_t saddr[16], daddr[16];
};

enum flow_origin {                 /* who made a send */
    FLOW_BY_THREAD,                /* `row` in a system call, or owner of the socket (timers, TCP small queues) */
    FLOW_BY_RECEIVE,               /* softirq work after a receive of the same connection (ACK clock): `receive` */
    FLOW_BY_UNKNOWN
};
struct flow_packet {
    int64_t ts;                    /* ns, host's clock */
    /* TCP: unwrapped number after the last byte (SYN and FIN count 1). UDP: number of the datagram in its flow. */
    uint64_t seq_end;
    uint64_t ack;                  /* TCP: unwrapped */
    uint32_t bytes;                /* payload */
    uint32_t number;               /* kernel_packet.number */
    int32_t row;                   /* sends: see origin; receives: owner of the socket if known; else -1 */
    uint32_t receive;              /* FLOW_BY_RECEIVE: number of the receive */
    uint16_t flags, ip_id;
    uint8_t origin;                /* enum flow_origin */
    bool retransmission;
    uint32_t flow;                 /* of the store */
};

struct flow_store;
/* Reads next to nothing of it: all below is safe whatever the file holds, and wrong contents give wrong answers only.
 * Checksums are not compared: whoever cannot know that the file is as it was written calls store_check (base/store.h)
 * before. */
int flow_open(const char *path, struct flow_store **out, struct err *e);
/* Whether everything in the file makes sense, checksums aside. ERR_FORMAT: no, and what does not. Reads all of it. */
int flow_check(const char *path, struct err *e);
void flow_close(struct flow_store *);
int flow_intact(const struct flow_store *, struct err *e); /* as graph_intact */
size_t flow_count(const struct flow_store *);
void flow_key(const struct flow_store *, size_t flow, struct flow_key *out);
/* Number of the flow with this key, or -1. */
int64_t flow_lookup(const struct flow_store *, const struct flow_key *);
/* Packets of a flow seen by this host, in time order. */
size_t flow_sends(const struct flow_store *, size_t flow);
void flow_send(const struct flow_store *, size_t flow, size_t i, struct flow_packet *out);
size_t flow_receives(const struct flow_store *, size_t flow);
void flow_receive(const struct flow_store *, size_t flow, size_t i, struct flow_packet *out);
/* The packet with that kernel_packet.number; false when there is none. */
bool flow_by_number(const struct flow_store *, uint32_t number, struct flow_packet *out, bool *is_send);

/* The lesser number of the two directions of the flow's connection; its own when the other was not seen. */
uint32_t flow_connection(const struct flow_store *, size_t flow);
/* Messages of a row: packets with payload that it sent itself or that came for it, in time order. *receives: how many
 * of them came. */
size_t flow_messages(const struct flow_store *, int32_t row, size_t *receives);
void flow_message(const struct flow_store *, int32_t row, size_t i, struct flow_packet *out, bool *is_send);
/* Sends by softirq work (FLOW_BY_RECEIVE) that are no older than the receive they follow, by time sent, then number of
 * the receive. */
size_t flow_replies(const struct flow_store *);
void flow_reply(const struct flow_store *, size_t i, struct flow_packet *out);

/* A thread woken by the network: the receive that did it. */
struct flow_wake { int32_t row; int64_t ts; uint32_t receive; /* number of the receive; UINT32_MAX: not known */ };
size_t flow_wakes(const struct flow_store *);
void flow_wake(const struct flow_store *, size_t i, struct flow_wake *out);

/* A row asked for messages from `begin` on and was told that there were none (poll and select without time, EAGAIN,
 * sched_yield); it began to ask in vain for the last time at `last`, and had got something at `end`. It may have slept
 * in a call. */
struct flow_ask { int64_t begin, last, end; };
/* How many a row has, numbered from *first on, in time order. */
size_t flow_asks(const struct flow_store *, int32_t row, size_t *first);
void flow_ask(const struct flow_store *, size_t i, struct flow_ask *out);

struct flow_address { uint8_t family, addr[16]; };
/* Addresses this host sends from. */
size_t flow_addresses(const struct flow_store *, const struct flow_address **out);

/* The send on `sender` that explains `receive` of `receiver` (they may be the same store: loopback). The causal origin
 * of a byte is its first send. Falls back to (sequence, ack, length) when no flow has that key (NAT). Returns false
 * when there is none. */
bool flow_explain(const struct flow_store *receiver, const struct flow_packet *receive, const struct flow_store *sender,
    struct flow_packet *send);
/* One flow seen by two hosts: host a sent on it (its number there: `sent`) and host b received (`received`). */
struct flow_link { uint32_t a, b, sent, received; };
/* All links between n hosts (NULL: one without flows), those of a pair of hosts next to each other, in an order that
 * does not depend on the number of threads (0: as many as CPUs). Of a flow that more than 32 hosts received, each
 * sender is linked to 32 of them. *out is for free(). O(n log n) in flows: hosts that have no flow in common cost
 * nothing. */
size_t flow_links(const struct flow_store *const *, size_t n, unsigned threads, struct flow_link **out);
/* Calls `pair` for every receive on b whose exact copy was sent on a (same bytes, same IP id: the copy that arrived),
 * over the n links from a to b, each in receive order. For clocks. O(packets) */
void flow_pairs(const struct flow_store *a, const struct flow_store *b, const struct flow_link *, size_t n,
    void (*pair)(void *arg, int64_t sent, int64_t received), void *arg);
/* Can this store hold the sender of that flow? (its digest: addresses and keys) */
bool flow_may_send(const struct flow_store *, const struct flow_key *);
/* "10.0.0.1:80" into buf (at least 56 bytes). */
const char *flow_format_endpoint(const struct flow_key *, bool source, char *buf, size_t n);

/* ---- building ---- */
struct kernel_record;
struct kernel_tracker;
/* The tracker is asked for threads (processes, parents) and names; borrowed. */
struct flow_builder *flow_builder_new(const struct kernel_tracker *);
/* To be called for every record. When it is a wake that a packet caused: the wake's number for flow_wake, plus 1; else
 * 0. */
uint32_t flow_builder_add(struct flow_builder *, const struct kernel_record *);
int flow_builder_write(struct flow_builder *, const char *path, uint64_t fingerprint, struct err *e);
void flow_builder_free(struct flow_builder *);

#endif
