/* SPDX-License-Identifier: MIT */
/* Packets and connections of one host: finds the send that explains a receive, and the receive that woke a thread. A
 * *flow* is one direction of one connection: (protocol, source, source port, destination, destination port). TCP bytes
 * have unwrapped 64-bit sequence numbers, so a receive is explained by the send that covers its last byte, whatever was
 * segmented, merged or retransmitted. If addresses and ports are reused, a SYN begins new numbers, above all before. A
 * packet seen by several devices of the host is one send, or one receive. A packet that came in before it went out is
 * no send of the host, and a packet that only carries another one (a tunnel's) is nobody's message. Source:
 * reference/critical-path.md 4.1 and 8. */
#ifndef WEFT_FLOW_FLOW_H
#define WEFT_FLOW_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/store.h"

/* Version of the rules: increased whenever the same records give other flows, packets or wakes, so that stores are
 * built again. */
enum { FLOW_RULES_VERSION = 12 };
enum { FLOW_SILENCES = 4 };
#define FLOW_NO_PACKET UINT64_MAX

struct flow_key {
    uint8_t family, protocol;      /* family: 4, 6, 0 unknown; protocol: 6 TCP, 17 UDP */
    uint16_t sport, dport;
    uint8_t saddr[16], daddr[16];
};
/* Key of the other direction. */
struct flow_key flow_key_reverse(const struct flow_key *);

enum flow_origin {                 /* Origin of a send. */
    FLOW_BY_THREAD,                /* `row` in a system call, or the owner of the socket (timers, TCP small queues) */
    FLOW_BY_RECEIVE,               /* softirq work after a receive of the same connection (ACK clock): `receive` */
    FLOW_BY_UNKNOWN,
    FLOW_PASSING                   /* no thread: a bridge, a router or a hypervisor forwarded the packet, or a tunnel's
                                    * packet carries another one */
};
/* Way of a packet through the host, as bits: */
enum flow_way {
    FLOW_WENT_ON = 1,              /* receive that was not the last: other devices sent or received it again */
    FLOW_CAME_BACK = 2,            /* receive of a packet sent or forwarded by the host: in a container, on loopback */
    FLOW_CARRIES = 4,              /* carries another packet, which counts as itself */
    FLOW_OPAQUE = 8,               /* carries a packet not seen here, by the protocol or others on this flow */
    FLOW_RENAMED = 16              /* forwarded with other addresses or ports than the host saw before */
};
enum { FLOW_TCP = 6, FLOW_FIN = 1, FLOW_SYN = 2, FLOW_RST = 4, FLOW_ACK = 16 }; /* protocol; flags */
struct flow_packet {
    int64_t ts;                    /* ns, host's clock */
    /* TCP: unwrapped number after the last byte (SYN and FIN count 1). A connection that reuses addresses and ports
     * begins at least 2^32 above the one before. Datagrams: 0. */
    uint64_t seq_end;
    uint64_t number;               /* number among the host's packets, to which wakes and sends refer */
    uint64_t receive;              /* FLOW_BY_RECEIVE: number of the receive; else FLOW_NO_PACKET */
    uint32_t ack;                  /* TCP: as on the wire */
    uint32_t bytes;                /* payload */
    int32_t row;                   /* sends: see origin; receives: owner of the socket if known; else -1 */
    uint16_t flags, ip_id;
    uint8_t origin;                /* enum flow_origin */
    uint8_t way;                   /* enum flow_way */
    bool retransmission;
    uint32_t flow;                 /* flow of the store */
};

struct flow_store;
/* Opens a store and reads almost nothing of it. All functions below are safe for any contents; wrong contents give
 * wrong answers only. Checksums are not compared: a caller that cannot trust the file calls store_check (base/store.h)
 * first. */
int flow_open(const char *path, struct flow_store **out, struct err *e);
/* Opens chunks of a host in order of time, at least one, as one store; copies the array. All below uses the host's
 * rows, and flows and packets as if all had been built at once. Chunks may be missing between them: their packets are
 * missing, no send is found in them, and flow_by_number does not find the receive of a wake by one of them. Tables over
 * all chunks (flows, messages by thread) are made at the first request, in O(flows). */
struct chunk;
int flow_open_list(const struct chunk *, size_t n, struct flow_store **out, struct err *e);
/* Checks all of the file, or of the part of `in` (base/chunks.h), except checksums. ERR_FORMAT: damaged; the message
 * says where. Reads all of it. */
int flow_check(const char *path, const struct store *in, struct err *e);
void flow_close(struct flow_store *);
int flow_intact(const struct flow_store *, struct err *e); /* see graph_intact */
size_t flow_count(const struct flow_store *);
void flow_key(const struct flow_store *, size_t flow, struct flow_key *out);
/* Number of the flow with this key, or -1. */
int64_t flow_lookup(const struct flow_store *, const struct flow_key *);
/* Packets of a flow seen by this host, in order of time, each once, as the first device saw it. Sends include forwarded
 * packets (FLOW_PASSING). */
size_t flow_sends(const struct flow_store *, size_t flow);
void flow_send(const struct flow_store *, size_t flow, size_t i, struct flow_packet *out);
size_t flow_receives(const struct flow_store *, size_t flow);
void flow_receive(const struct flow_store *, size_t flow, size_t i, struct flow_packet *out);
/* Packet with that number; false if there is none. */
bool flow_by_number(const struct flow_store *, uint64_t number, struct flow_packet *out, bool *is_send);

/* Traffic of a flow within an interval. first, last: valid if there are packets. again: packets without new bytes;
 * unknown for received ones. */
struct flow_tally { uint64_t packets, bytes, again_packets, again_bytes; int64_t first, last; };
/* Tally of a flow within [begin, end] of the host's clock: packets sent by its sockets, and packets received that stay
 * here: neither forwarded nor only carrying other packets. O(packets) */
void flow_tally(const struct flow_store *, size_t flow, int64_t begin, int64_t end, struct flow_tally *sent,
    struct flow_tally *received);

/* Packets not attributed to connections: packets that carry others, sent or received; those of them with unknown
 * contents; datagrams that went out under other addresses, whose senders cannot be found. */
struct flow_carried { uint64_t carrying, opaque, renamed; };
/* Counts within [begin, end] of the host's clock; adds to *out. O(packets) */
void flow_carried(const struct flow_store *, int64_t begin, int64_t end, struct flow_carried *out);

/* Lower number of the two directions of the flow's connection; its own if the other was not seen. */
uint32_t flow_connection(const struct flow_store *, size_t flow);
/* Number of messages of a row: packets with payload that it sent itself or that arrived for it, in order of time.
 * *receives: number of those received. */
size_t flow_messages(const struct flow_store *, int32_t row, size_t *receives);
void flow_message(const struct flow_store *, int32_t row, size_t i, struct flow_packet *out, bool *is_send);
/* Sends by softirq work (FLOW_BY_RECEIVE) that are no older than the receive they follow; sorted by time, number of the
 * receive, own number. */
size_t flow_replies(const struct flow_store *);
void flow_reply(const struct flow_store *, size_t i, struct flow_packet *out);

/* Wake of a thread by the network, and the receive that caused it. */
struct flow_wake { int32_t row; int64_t ts; uint64_t receive; /* number of the receive; FLOW_NO_PACKET: unknown */ };
/* Wakes are numbered from 0 on the host; this is the last number plus 1. A missing wake has row -1. */
uint64_t flow_wakes(const struct flow_store *);
void flow_wake(const struct flow_store *, uint64_t number, struct flow_wake *out);

/* Row asking for messages from `begin` on, without success (poll and select without timeout, EAGAIN, sched_yield). Its
 * last unsuccessful call began at `last`; it had got something at `end`. It may have slept in a call. */
struct flow_ask { int64_t begin, last, end; };
/* Asks of a row, in order of time. */
size_t flow_asks(const struct flow_store *, int32_t row);
void flow_ask(const struct flow_store *, int32_t row, size_t i, struct flow_ask *out);

struct flow_address { uint8_t family, addr[16]; };
/* Addresses of sockets of this host: it sent packets from them that had not come in before. */
size_t flow_addresses(const struct flow_store *, const struct flow_address **out);
/* Addresses that its sockets sent to. */
size_t flow_peers(const struct flow_store *, const struct flow_address **out);
/* Returns whether a socket of this host sent on that flow. O(1) */
bool flow_may_send(const struct flow_store *, const struct flow_key *);
/* Returns whether an address says nothing about the host: loopback, or none yet (DHCP). Packets from there were sent by
 * the host itself. */
bool flow_is_anonymous(const struct flow_key *);

/* ---- matching of receives to sends ---- */

/* Key of a received message: all that a host needs to know to find whether, and with which send, it sent it. */
struct flow_message_key {
    struct flow_key flow;
    uint32_t seq_end, ack;         /* TCP: as on the wire; seq_end: after the last byte */
    uint32_t bytes;
    uint16_t flags, ip_id;         /* ip_id: 0: unknown */
    /* Silences, for datagrams without ip_id: among the last 1024 receives of the same flow and size, up to this one,
     * those that followed the longest silences, the longest first. A sender's silence of the same length identifies the
     * datagram, and so shows how long datagrams travel. length_ns 0: no such receive. */
    struct flow_silence { uint64_t length_ns, since_ns; /* to this receive */ } silences[FLOW_SILENCES];
};
/* Window in which it can have been sent, by the sender's clock. */
struct flow_window {
    int64_t begin, end;            /* range of the sends examined */
    int64_t at, error_ns;          /* time of arrival, and its maximum error; error_ns < 0: unknown */
};
enum flow_answer {
    FLOW_NOT_SENT,
    FLOW_SENT,
    FLOW_AMBIGUOUS                 /* several sends match; the most likely one is returned */
};
/* Key of one of the receiver's receives. O(1) for TCP and for datagrams with an IP id. */
void flow_message_key_of(const struct flow_store *, const struct flow_packet *receive, struct flow_message_key *out);
/* Window of a message that arrived at `at` of the sender's clock, with an error of at most error_ns (0 for a host's own
 * messages). Bytes may be retransmitted for a quarter of an hour; since bytes identify a send better than a badly
 * related clock, their window extends a second beyond `at`. Datagrams travel for at most 10 s and were sent by at +
 * error_ns. */
struct flow_window flow_window_at(const struct flow_message_key *, int64_t at, uint64_t error_ns);
/* Window for clocks that cannot be related: any time. */
struct flow_window flow_window_any(void);
/* Finds the sender's send that explains the message; *send is set unless FLOW_NOT_SENT. The causal origin of a byte is
 * its first send. If several sends match equally (on connections that used the same addresses and ports one after
 * another, or 2^32 bytes apart), takes the last before the arrival. Falls back to (sequence, ack, length) if no socket
 * of the host sent on that flow, since addresses may have been translated on the way. For messages on an anonymous
 * flow, ask the receiver's host only. O(log n); for datagrams without IP id at most 4096 sends. */
enum flow_answer flow_find_send(const struct flow_store *sender, const struct flow_message_key *,
    const struct flow_window *, struct flow_packet *send);

/* Flow seen by two hosts: host a sent on it (its number there: `sent`) and host b received (`received`). */
struct flow_link { uint32_t a, b, sent, received; };
/* All links between n hosts (NULL: host without flows); those of a pair of hosts are adjacent, in an order that does
 * not depend on the number of threads (0: as many as CPUs). If more than 32 hosts received a flow, each sender is
 * linked to 32 of them. free(*out). O(n log n) in flows: hosts without common flows cost nothing. */
size_t flow_links(const struct flow_store *const *, size_t n, unsigned threads, struct flow_link **out);
/* Calls `pair` for every receive on b whose exact copy was sent on a (same bytes, same IP id: the copy that arrived),
 * over the n links from a to b, each in order of receives. For clocks. O(packets) */
void flow_pairs(const struct flow_store *a, const struct flow_store *b, const struct flow_link *, size_t n,
    void (*pair)(void *arg, int64_t sent, int64_t received), void *arg);

/* As flow_pairs, but only for receives whose send is certain: as many equal packets on both sides, or a single send.
 * For delays: a delay to a different packet would be meaningless. */
void flow_sure_pairs(const struct flow_store *a, const struct flow_store *b, const struct flow_link *, size_t n,
    void (*pair)(void *arg, int64_t sent, int64_t received), void *arg);

/* As flow_pairs, but for packets whose times by the two clocks are at most FLOW_NEAR_NS apart, found only from packets
 * within that distance of the receive. So the result for a receive stays, whatever arrives later than that. */
enum { FLOW_NEAR_BITS = 37 };
#define FLOW_NEAR_NS (INT64_C(1) << FLOW_NEAR_BITS) /* 137 s */
/* Time after which a packet is decided, and equal in all stores made of a host's records. */
#define FLOW_DECIDED_NS INT64_C(1000000000)
/* Store of the packets since then. It lives no longer than the original one: it has its chunks and, for several chunks,
 * its flows, numbered anew. There are no rows, replies or wakes. O(log chunks) */
void flow_tail(const struct flow_store *, int64_t since, struct flow_store **out);
/* As flow_links, but also for flows that the receiver may have sent first. */
size_t flow_near_links(const struct flow_store *const *, size_t n, unsigned threads, struct flow_link **out);
struct flow_near {
    int64_t sent, received;
    bool sure, datagram;           /* sure: a TCP packet, and no other near one equals it */
};
/* Calls `tell` for each pair received since then, except packets that b had sent itself just before: they came back by
 * another of its devices. O(packets since FLOW_NEAR_NS before then) */
void flow_near_pairs(const struct flow_store *a, const struct flow_store *b, const struct flow_link *, size_t n,
    int64_t since, void (*tell)(void *arg, const struct flow_near *), void *arg);
/* Address of a socket of the host, and the time of its first send. free(*out). O(chunks, and flows of those in which an
 * address first appears) */
struct flow_own_address { struct flow_address address; int64_t since; };
size_t flow_own_addresses(const struct flow_store *, struct flow_own_address **out);
/* Time of the youngest packet; INT64_MIN: none. */
int64_t flow_last(const struct flow_store *);
/* Selection of a host's flows for clocks, when stores are on several nodes. Each host reports hashes of its flows,
 * which are equal on every machine (sorted, without duplicates and anonymous ones), and its own addresses.
 * free(*out). */
size_t flow_hashes(const struct flow_store *, uint64_t **out);
struct flow_other { const uint64_t *hashes; size_t n_hashes; const struct flow_own_address *own; size_t n_own; };
/* Flows of a host that clocks need, given n other hosts: common ones, and those from an address of theirs. Sorted;
 * free(*out). O(flows + hashes) */
size_t flow_needed(const struct flow_store *, const struct flow_other *, size_t n, uint32_t **out);
/* Writes a store for flow_open with only these flows (sorted, without duplicates): their packets, numbered anew and
 * without rows; plus flow_own_addresses and flow_last of the whole host. Clocks found from such stores equal those from
 * all flows. A receiver must call store_check and flow_check first. ERR_LOST: the store was cut off meanwhile. Takes up
 * to 90 bytes of memory per packet; the file some 70. */
int flow_extract(const struct flow_store *, const uint32_t *flows, size_t n, const char *path, struct err *e);
/* Summary that shows, without packets, that a host did not send a message under other addresses, as routers translate
 * them: ranges of byte and acknowledgement numbers per TCP flow that its sockets sent on. Returns their number; more
 * than `most`: there are more, and the summary is useless. free(*out). O(flows · chunks) */
struct flow_route { uint32_t seq, seq_bytes, ack, ack_bytes; }; /* lengths of the ranges; UINT32_MAX: all */
size_t flow_routes(const struct flow_store *, size_t most, struct flow_route **out);
/* False: flow_find_send would not find it by its numbers, in any window. O(n) */
bool flow_routes_lead(const struct flow_route *, size_t n, const struct flow_message_key *);
/* Hashes of the flows that its sockets sent on, sorted; different flows may share one. Return value, `most` and *out:
 * see flow_routes. O(flows) */
size_t flow_sent_hashes(const struct flow_store *, size_t most, uint32_t **out);
/* False: flow_may_send is false. O(log n) */
bool flow_sent_hashes_have(const uint32_t *, size_t n, const struct flow_key *);
/* Writes "10.0.0.1:80" into buf (at least 56 bytes). */
const char *flow_format_endpoint(const struct flow_key *, bool source, char *buf, size_t n);

/* ---- building ---- */
struct kernel_record;
struct kernel_tracker;
/* Borrows the tracker, which knows threads (processes, parents) and names. */
struct flow_builder *flow_builder_new(const struct kernel_tracker *);
/* Adds a record; call it for every one. Returns the wake's number for flow_wake plus 1 if the record is a wake that a
 * packet caused; else 0. */
uint64_t flow_builder_add(struct flow_builder *, const struct kernel_record *);
/* Decides everything at the end, and writes it. */
int flow_builder_write(struct flow_builder *, struct store_place, uint64_t key, struct err *e);
/* Writes everything decided, at a cut at that time. */
struct carry;
/* Visits the open state: all three ways (base/carry.h). LOAD into a new builder, before its records. */
void flow_builder_carry(struct flow_builder *, struct carry *);
int flow_builder_cut(
    struct flow_builder *, int64_t at, struct store_place, uint64_t key, struct err *e);
void flow_builder_free(struct flow_builder *);

#endif
