/* SPDX-License-Identifier: MIT */
/* Packets and connections of one host: which send explains a receive, and which receive woke which thread.
 * A *flow* is one direction of one connection: (protocol, source, source port, destination, destination port). TCP
 * bytes carry unwrapped 64-bit sequence numbers, so a receive is explained by the send that covers its last byte
 * whatever was segmented, merged or sent again. Where addresses and ports are used again, a SYN begins the numbers
 * anew, above all before. A packet that several devices of the host saw is one send, or one receive; one that came in
 * before it went out is no send of the host, and what only carries another packet (a tunnel's) is nobody's message.
 * Source: reference/critical-path.md 4.1 and 8. */
#ifndef WEFT_FLOW_FLOW_H
#define WEFT_FLOW_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/store.h"

/* Grows whenever the same records give other flows, packets or wakes: stores made of them are then built again. */
enum { FLOW_RULES_VERSION = 12 };
enum { FLOW_SILENCES = 4 };
#define FLOW_NO_PACKET UINT64_MAX

struct flow_key {
    uint8_t family, protocol;      /* 4, 6, 0 unknown; 6 TCP, 17 UDP */
    uint16_t sport, dport;
    uint8_t saddr[16], daddr[16];
};
/* The other direction. */
struct flow_key flow_key_reverse(const struct flow_key *);

enum flow_origin {                 /* who made a send */
    FLOW_BY_THREAD,                /* `row` in a system call, or owner of the socket (timers, TCP small queues) */
    FLOW_BY_RECEIVE,               /* softirq work after a receive of the same connection (ACK clock): `receive` */
    FLOW_BY_UNKNOWN,
    FLOW_PASSING                   /* nobody here: a bridge, a router or a hypervisor, through which the packet came, or
                                    * a tunnel that carries another one in it */
};
/* A packet's way through the host, as bits: */
enum flow_way {
    FLOW_WENT_ON = 1,              /* a receive that was not the last: other devices of the host sent or took it on */
    FLOW_CAME_BACK = 2,            /* a receive of what the host had sent or passed on: in a container, on loopback */
    FLOW_CARRIES = 4,              /* another packet, which is counted as itself, */
    FLOW_OPAQUE = 8,               /* and was not seen here: others on this flow do, or the protocol says so */
    FLOW_RENAMED = 16              /* a passing send under other addresses or ports than the host saw before */
};
enum { FLOW_TCP = 6, FLOW_FIN = 1, FLOW_SYN = 2, FLOW_RST = 4, FLOW_ACK = 16 }; /* a protocol; its flags */
struct flow_packet {
    int64_t ts;                    /* ns, host's clock */
    /* TCP: unwrapped number after the last byte (SYN and FIN count 1); a connection on the same addresses and ports as
     * one before begins at least 2^32 above it. Datagrams: 0. */
    uint64_t seq_end;
    uint64_t number;               /* of the host's packets, by which wakes and sends speak of it */
    uint64_t receive;              /* FLOW_BY_RECEIVE: number of the receive; else FLOW_NO_PACKET */
    uint32_t ack;                  /* TCP, as on the wire */
    uint32_t bytes;                /* payload */
    int32_t row;                   /* sends: see origin; receives: owner of the socket if known; else -1 */
    uint16_t flags, ip_id;
    uint8_t origin;                /* enum flow_origin */
    uint8_t way;                   /* enum flow_way */
    bool retransmission;
    uint32_t flow;                 /* of the store */
};

struct flow_store;
/* Reads next to nothing of it: all below is safe whatever the file holds, and wrong contents give wrong answers only.
 * Checksums are not compared: whoever cannot know that the file is as it was written calls store_check (base/store.h)
 * before. */
int flow_open(const char *path, struct flow_store **out, struct err *e);
/* Chunks of a host in order of time, one at least, as one store; copies what they say. All below speaks of the host's
 * rows, and of flows and packets as if all had been built at once. Chunks may be missing between them: what was in them
 * is not there, a wake by a packet of theirs has a receive that flow_by_number does not find, and no send is found in
 * them. What is of all chunks (flows, messages by thread) is put together when first asked for, in O(flows). */
struct chunk;
int flow_open_list(const struct chunk *, size_t n, struct flow_store **out, struct err *e);
/* Whether everything in the file, or in the part of `in` (base/chunks.h), makes sense, checksums aside. ERR_FORMAT: no,
 * and what does not. Reads all of it. */
int flow_check(const char *path, const struct store *in, struct err *e);
void flow_close(struct flow_store *);
int flow_intact(const struct flow_store *, struct err *e); /* as graph_intact */
size_t flow_count(const struct flow_store *);
void flow_key(const struct flow_store *, size_t flow, struct flow_key *out);
/* Number of the flow with this key, or -1. */
int64_t flow_lookup(const struct flow_store *, const struct flow_key *);
/* Packets of a flow seen by this host, in time order, each once: as the first device saw it. Sends also by nobody here
 * (FLOW_PASSING). */
size_t flow_sends(const struct flow_store *, size_t flow);
void flow_send(const struct flow_store *, size_t flow, size_t i, struct flow_packet *out);
size_t flow_receives(const struct flow_store *, size_t flow);
void flow_receive(const struct flow_store *, size_t flow, size_t i, struct flow_packet *out);
/* The packet with that number; false when there is none. */
bool flow_by_number(const struct flow_store *, uint64_t number, struct flow_packet *out, bool *is_send);

/* What went of a flow within an interval. first, last: when there are packets. Again: nothing in them that had not been
 * sent before; of what was received it is not told. */
struct flow_tally { uint64_t packets, bytes, again_packets, again_bytes; int64_t first, last; };
/* Within [begin, end] of the host's clock: what its sockets sent, and what came to it to stay: nothing that goes on
 * through it to others, or only carries other packets. O(packets) */
void flow_tally(const struct flow_store *, size_t flow, int64_t begin, int64_t end, struct flow_tally *sent,
    struct flow_tally *received);

/* What is told of no connection: packets that carry others, sent or received; those of them of which it is not known
 * what they carry; datagrams that went out under other addresses, whose senders are not found behind them. */
struct flow_carried { uint64_t carrying, opaque, renamed; };
/* Within [begin, end] of the host's clock; adds to what *out has. O(packets) */
void flow_carried(const struct flow_store *, int64_t begin, int64_t end, struct flow_carried *out);

/* The lesser number of the two directions of the flow's connection; its own when the other was not seen. */
uint32_t flow_connection(const struct flow_store *, size_t flow);
/* Messages of a row: packets with payload that it sent itself or that came for it, in time order. *receives: how many
 * of them came. */
size_t flow_messages(const struct flow_store *, int32_t row, size_t *receives);
void flow_message(const struct flow_store *, int32_t row, size_t i, struct flow_packet *out, bool *is_send);
/* Sends by softirq work (FLOW_BY_RECEIVE) that are no older than the receive they follow, by time sent, then number of
 * the receive, then their own. */
size_t flow_replies(const struct flow_store *);
void flow_reply(const struct flow_store *, size_t i, struct flow_packet *out);

/* A thread woken by the network: the receive that did it. */
struct flow_wake { int32_t row; int64_t ts; uint64_t receive; /* its number; FLOW_NO_PACKET: not known */ };
/* They are numbered from 0 on the host: one more than the last. A wake that is not there has row -1. */
uint64_t flow_wakes(const struct flow_store *);
void flow_wake(const struct flow_store *, uint64_t number, struct flow_wake *out);

/* A row asked for messages from `begin` on and was told that there were none (poll and select without time, EAGAIN,
 * sched_yield); it began to ask in vain for the last time at `last`, and had got something at `end`. It may have slept
 * in a call. */
struct flow_ask { int64_t begin, last, end; };
/* Those of a row, in time order. */
size_t flow_asks(const struct flow_store *, int32_t row);
void flow_ask(const struct flow_store *, int32_t row, size_t i, struct flow_ask *out);

struct flow_address { uint8_t family, addr[16]; };
/* Addresses of sockets of this host: it sent from them what had not come in before. */
size_t flow_addresses(const struct flow_store *, const struct flow_address **out);
/* Addresses that it sent to from there. */
size_t flow_peers(const struct flow_store *, const struct flow_address **out);
/* Did a socket of this host send on that flow? O(1) */
bool flow_may_send(const struct flow_store *, const struct flow_key *);
/* An address that says nothing about the host: loopback, or none yet (DHCP). Only the host itself sent what came from
 * there. */
bool flow_is_anonymous(const struct flow_key *);

/* ---- which send explains a receive ---- */

/* What the receiver tells of a message: all that a host has to know to say whether it sent it, and with which send. */
struct flow_message_key {
    struct flow_key flow;
    uint32_t seq_end, ack;         /* TCP, as on the wire; seq_end: after the last byte */
    uint32_t bytes;
    uint16_t flags, ip_id;         /* ip_id: 0 says nothing */
    /* Datagrams without ip_id: of the last 1024 receives of the same flow and size, this one included, those that came
     * after the longest silences. Where the sender was as silent before, it is the same datagram, and tells how long
     * datagrams are under way. The longest first; length_ns 0: no such receive. */
    struct flow_silence { uint64_t length_ns, since_ns; /* from that receive to this one */ } silences[FLOW_SILENCES];
};
/* When it can have been sent, by the sender's clock. */
struct flow_window {
    int64_t begin, end;            /* sends before and after are not looked at */
    int64_t at, error_ns;          /* when it came, and how far that may be off; error_ns < 0: not known */
};
enum flow_answer {
    FLOW_NOT_SENT,
    FLOW_SENT,
    FLOW_AMBIGUOUS                 /* several sends fit; the one given is the likeliest */
};
/* On the receiver's side: of one of its receives. O(1) for TCP and for datagrams with an IP id. */
void flow_message_key_of(const struct flow_store *, const struct flow_packet *receive, struct flow_message_key *out);
/* The window of a message that came at `at` of the sender's clock, give or take error_ns (a host's own messages: 0).
 * Bytes may be sent again for a quarter of an hour, and bytes tell better than a clock by how much it is off: to them
 * the window leaves a second after `at`. Datagrams are under way for at most 10 s and were sent by at + error_ns. */
struct flow_window flow_window_at(const struct flow_message_key *, int64_t at, uint64_t error_ns);
/* Clocks that cannot be related: any time. */
struct flow_window flow_window_any(void);
/* On the sender's side: the send that explains the message; *send is set unless FLOW_NOT_SENT. The causal origin of a
 * byte is its first send. Of sends that fit equally well, on connections that used the same addresses and ports one
 * after another, or 2^32 bytes apart, the last before the message came. Falls back to (sequence, ack, length) where no
 * socket of the host sent on that flow: addresses may have been translated on the way. For messages whose flow is
 * anonymous, ask the receiver's host only. O(log n), for datagrams without IP id of at most 4096 sends. */
enum flow_answer flow_find_send(const struct flow_store *sender, const struct flow_message_key *,
    const struct flow_window *, struct flow_packet *send);

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

/* The same of those receives alone of which it is certain which send arrived: as many packets look alike on both sides,
 * or one was sent. For delays: one of another packet is none at all. */
void flow_sure_pairs(const struct flow_store *a, const struct flow_store *b, const struct flow_link *, size_t n,
    void (*pair)(void *arg, int64_t sent, int64_t received), void *arg);

/* The same of packets whose times by the two clocks are at most FLOW_NEAR_NS apart, told from packets alone that are no
 * farther from the receive: so what is found of a receive stays, whatever comes later than that. */
enum { FLOW_NEAR_BITS = 37 };
#define FLOW_NEAR_NS (INT64_C(1) << FLOW_NEAR_BITS) /* 137 s */
/* A packet is decided, and the same in all that is made of a host's records, when they go on for so long. */
#define FLOW_DECIDED_NS INT64_C(1000000000)
/* What has packets since then, as a store of its own that lives no longer than the one it is of: chunks, and of several
 * the flows. These are numbered anew, and there is nothing else: no rows, replies or wakes. O(log chunks) */
void flow_tail(const struct flow_store *, int64_t since, struct flow_store **out);
/* As flow_links, but the receiver may have sent the flow first. */
size_t flow_near_links(const struct flow_store *const *, size_t n, unsigned threads, struct flow_link **out);
struct flow_near {
    int64_t sent, received;
    bool sure, datagram;           /* sure: of a TCP packet, and nothing else near looks like it */
};
/* Calls `tell` for each of them received since then, but for what b had sent itself just before: it came back by
 * another of its devices. O(packets since FLOW_NEAR_NS before then) */
void flow_near_pairs(const struct flow_store *a, const struct flow_store *b, const struct flow_link *, size_t n,
    int64_t since, void (*tell)(void *arg, const struct flow_near *), void *arg);
/* The address of a socket of the host, and when it first sent from there. *out is for free(). O(chunks, and flows of
 * those in which an address is the first time) */
struct flow_own_address { struct flow_address address; int64_t since; };
size_t flow_own_addresses(const struct flow_store *, struct flow_own_address **out);
/* The time of the youngest packet; INT64_MIN: there is none. */
int64_t flow_last(const struct flow_store *);
/* What of a host's flows finds clocks, where not all stores are in one place. Each host tells which flows it has, by
 * hashes that are the same on every machine (in order, each once; not of anonymous ones), and its own addresses. *out
 * is for free(). */
size_t flow_hashes(const struct flow_store *, uint64_t **out);
struct flow_other { const uint64_t *hashes; size_t n_hashes; const struct flow_own_address *own; size_t n_own; };
/* The flows that clocks need of a host beside n others: what one of them has, too, and what came from an address of
 * theirs. In order; *out is for free(). O(flows + hashes) */
size_t flow_needed(const struct flow_store *, const struct flow_other *, size_t n, uint32_t **out);
/* Writes a store for flow_open of these flows alone (in order, each once): their packets, numbered anew and without
 * rows; and of all the host flow_own_addresses and flow_last. Clocks found of such stores are those found of all flows.
 * Whoever is sent one asks store_check and flow_check first. ERR_LOST when the store was cut off meanwhile. Takes up to
 * 90 bytes of memory a packet; the file some 70. */
int flow_extract(const struct flow_store *, const uint32_t *flows, size_t n, const char *path, struct err *e);
/* What tells without its packets that a host did not send a message under other addresses, as routers translate them:
 * per TCP flow on which its sockets sent, the numbers of bytes and of acknowledgements. Returns how many; more than
 * `most`: there are more, and they tell nothing. *out is for free(). O(flows · chunks) */
struct flow_route { uint32_t seq, seq_bytes, ack, ack_bytes; }; /* so many numbers from there on; UINT32_MAX: all */
size_t flow_routes(const struct flow_store *, size_t most, struct flow_route **out);
/* False: flow_find_send would not find it by its numbers, in no window. O(n) */
bool flow_routes_lead(const struct flow_route *, size_t n, const struct flow_message_key *);
/* The flows on which its sockets sent, as hashes, in order; some may have one in common. How many, `most` and *out: as
 * of flow_routes. O(flows) */
size_t flow_sent_hashes(const struct flow_store *, size_t most, uint32_t **out);
/* False: not flow_may_send. O(log n) */
bool flow_sent_hashes_have(const uint32_t *, size_t n, const struct flow_key *);
/* "10.0.0.1:80" into buf (at least 56 bytes). */
const char *flow_format_endpoint(const struct flow_key *, bool source, char *buf, size_t n);

/* ---- building ---- */
struct kernel_record;
struct kernel_tracker;
/* The tracker is asked for threads (processes, parents) and names; borrowed. */
struct flow_builder *flow_builder_new(const struct kernel_tracker *);
/* To be called for every record. When it is a wake that a packet caused: the wake's number for flow_wake, plus 1; else
 * 0. */
uint64_t flow_builder_add(struct flow_builder *, const struct kernel_record *);
/* At the end: decides all that is not decided yet, and writes it. */
int flow_builder_write(struct flow_builder *, struct store_place, uint64_t key, struct err *e);
/* At a cut at that time: writes what is decided. */
struct carry;
/* What is open: all three ways (base/carry.h). LOAD into a new builder, before its records. */
void flow_builder_carry(struct flow_builder *, struct carry *);
int flow_builder_cut(
    struct flow_builder *, int64_t at, struct store_place, uint64_t key, struct err *e);
void flow_builder_free(struct flow_builder *);

#endif
