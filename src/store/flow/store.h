/* SPDX-License-Identifier: MIT */
/* Private to flow: the layout of the store's sections (docs/formats/flows.md). Little endian, natural alignment, all
 * padding named. */
#ifndef WEFT_FLOW_STORE_H
#define WEFT_FLOW_STORE_H

#include <pthread.h>

#include "base/chunks.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/store.h"
#include "flow/flow.h"

enum { FLOW_VERSION = 6 };

struct flow_disk_head {
    uint64_t first_packet, first_wake; /* host's numbers of the first ones here */
    int64_t since, until;        /* range of the packets' times */
};
struct flow_disk_flow {
    struct flow_key key;         /* 38 bytes */
    uint16_t continued;          /* 1: its state was carried here; earlier chunks have packets of it */
    /* Packets from `first`: sends, then receives, then copies seen by further devices; each in order of time. */
    uint32_t first, sends, receives, copies;
    uint32_t own;                /* sends by this host's sockets */
    uint32_t connection;         /* lower number of the two directions; its own if the other was not seen */
    uint32_t first_ordered, ordered; /* range in order[]: see there */
    /* TCP: numbers begin anew at 2^32 when nothing is known of the flow any more. `turns` times 2^32 were added to
     * those after the last such restart, so that all increase; last_seq: the greatest. */
    uint32_t turns, reserved;
    uint64_t last_seq;
};
struct flow_disk_packet {
    int64_t ts;
    uint64_t seq_end;
    /* Sends: greatest seq_end so far of own sends with data; monotone, searched for the first send of a byte. */
    uint64_t high;
    uint32_t ack, bytes;
    uint32_t number;             /* number in this chunk */
    int32_t row;
    uint32_t back;               /* FLOW_BY_RECEIVE: own number minus the receive's; else 0 */
    uint32_t flow;
    uint16_t flags, ip_id;
    uint8_t origin, retransmission, is_send, is_copy;
    uint8_t is_reply;            /* FLOW_BY_RECEIVE: no older than the receive */
    uint8_t way;                 /* enum flow_way */
    uint8_t reserved[6];
};
struct flow_disk_wake {
    int64_t ts;
    int32_t row;
    uint32_t receive;            /* number in this chunk; if beyond, in the next ones; UINT32_MAX: unknown */
};
struct flow_disk_row {
    uint32_t first, sends, receives; /* messages[first .. first + sends + receives) in order of time */
};
struct flow_disk_ask {
    int64_t begin, last, end;
    int32_t row;
    uint32_t calls;
};
/* Address of the host and its first time, in an extract, whose flows do not show it. */
struct flow_disk_own {
    int64_t since;
    struct flow_address address; /* 17 bytes */
    uint8_t reserved[7];
};
_Static_assert(sizeof(struct flow_disk_head) == 32, "fixed width");
_Static_assert(sizeof(struct flow_disk_flow) == 88, "fixed width");
_Static_assert(sizeof(struct flow_disk_packet) == 64, "fixed width");
_Static_assert(sizeof(struct flow_disk_wake) == 16, "fixed width");
_Static_assert(sizeof(struct flow_disk_row) == 12, "fixed width");
_Static_assert(sizeof(struct flow_disk_ask) == 32, "fixed width");
_Static_assert(sizeof(struct flow_disk_own) == 32, "fixed width");

/* Open file. */
struct flow_chunk {
    struct store *file;
    struct flow_disk_head head;
    const struct flow_disk_flow *flows;
    const struct flow_disk_packet *packets;
    const struct flow_disk_wake *wakes;
    const struct flow_address *addresses, *peers;
    const struct flow_disk_own *own; /* replaces the addresses found from flows; NULL: no extract */
    const uint32_t *by_number;   /* packet number -> packet */
    const uint32_t *table;       /* open-addressing hash of flow keys -> flow + 1; size a power of two */
    const struct flow_disk_row *rows;
    const uint32_t *messages, *replies; /* indices of packets */
    const struct flow_disk_ask *asks; /* asks by row, then time */
    /* Packets by flow: own sends that are not found by their bytes, by flow_rank (bare acknowledgements, datagrams with
     * an IP id, packets without addresses); those of equal rank in order of time. */
    const uint32_t *order;
    const uint32_t *carriers;    /* indices of packets: own TCP sends with data, by the 32 bits of seq_end */
    size_t n_flows, n_packets, n_wakes, n_addresses, n_peers, n_by_number, table_size, n_rows, n_messages, n_replies,
        n_order, n_carriers, n_asks, n_own;
    const int32_t *host_rows;    /* host's row by row of the store; NULL: the same */
    size_t n_host_rows;
    int64_t since, until;        /* limits of packets: from here on none is older, up to here none is younger */
};

/* Part of a flow in one chunk. */
struct flow_place {
    uint32_t chunk, flow, turns; /* turns: number of 2^32 to add to its sequence numbers */
    uint64_t sends, receives;    /* sums of the places before */
};
/* View of all parts of a flow, in order of time. May point into itself. */
struct flow_view {
    const struct flow_store *store;
    const struct flow_place *places;
    size_t n;
    struct flow_place only;
};

struct flow_tables;
struct flow_store {
    struct flow_chunk *chunks;   /* chunks in order of time */
    size_t n;                    /* number of chunks, at least one */
    bool is_tail;                /* chunks of another store, without rows; several chunks: see `since` */
    int64_t since;               /* flows that end before are missing */
    struct chunk_rows *rows;
    _Atomic(struct flow_sums *) *sums; /* by row of the host, each made at the first request; NULL: not yet */
    _Atomic(struct flow_tables *) tables; /* for several chunks, made at the first request; NULL: not yet */
    pthread_mutex_t lock;        /* guards the making of both */
};
/* Joint tables of several chunks. */
struct flow_tables {
    size_t n_flows, n_addresses, n_peers;
    size_t *first;               /* by flow: index of its first place; one more at the end */
    struct flow_place *places;
    struct flow_of { uint32_t flow, turns; } **of; /* flow of the host by chunk and its flow */
    struct map by_key;           /* hash -> flow + 1; on a collision the next hash */
    uint32_t *connections;
    struct flow_address *addresses, *peers;
    uint64_t *replies;           /* chunk << 32 | reply, sorted; NULL: the chunks' replies are already in order */
    size_t *first_reply;         /* first reply by chunk; one more at the end */
};
/* Tables of a store with several chunks. */
const struct flow_tables *flow_tables(const struct flow_store *);
void flow_tables_free(struct flow_tables *, size_t n_chunks);
/* Sums by place of a row of the host: counts in the places before. For several chunks, no tail, and a row that has
 * places. (messages.c) */
struct flow_sums { size_t messages, receives, asks; };
const struct flow_sums *flow_sums(const struct flow_store *, int32_t row);
/* View of a flow; empty if there is no such flow. */
void flow_view_of(const struct flow_store *, size_t flow, struct flow_view *out);
/* Number of its places whose chunks have packets up to ts; within these, number of first ones that have none since. */
size_t flow_places_until(const struct flow_view *, int64_t ts);
size_t flow_places_before(const struct flow_view *, int64_t ts);

/* Set of addresses. */
struct flow_addresses {
    VEC(struct flow_address) v;
    struct map seen;
};
/* Adds the source or the destination, if the flow has addresses. */
void flow_add_address(struct flow_addresses *, const struct flow_key *, bool source);
/* Messages and asks of a row in a chunk. */
size_t flow_chunk_messages(const struct flow_chunk *, int32_t row, size_t *receives);
size_t flow_chunk_asks(const struct flow_chunk *, int32_t row, size_t *first);

uint64_t flow_key_hash(const struct flow_key *);

#define FLOW_TURN (UINT64_C(1) << 32)
/* Limit of the time that a datagram travels: far beyond what queues hold. */
#define FLOW_DATAGRAM_LIFE_NS (INT64_C(10) * 1000000000)

/* Returns whether it carries bytes of the connection (SYN and FIN are one each). */
static inline bool flow_carries(const struct flow_disk_packet *p)
{
    return p->bytes || p->flags & (FLOW_SYN | FLOW_FIN);
}
/* Number of its first byte. */
static inline uint64_t flow_begin_of(const struct flow_disk_packet *p)
{
    return p->seq_end - p->bytes - !!(p->flags & FLOW_SYN) - !!(p->flags & FLOW_FIN);
}
static inline bool flow_is_own(const struct flow_disk_packet *p)
{
    return p->is_send && !p->is_copy && p->origin != FLOW_PASSING;
}
/* Returns whether it is one of several receives of one packet, and not the last, or only carries other packets. */
static inline bool flow_is_on_its_way(const struct flow_disk_packet *p)
{
    return p->way & (FLOW_WENT_ON | FLOW_CARRIES);
}
/* Returns whether it is the counting sight of a message that stays on this host. */
static inline bool flow_stays(const struct flow_disk_packet *p)
{
    return !p->is_copy && !flow_is_on_its_way(p);
}
/* Sort key of order[]; it contains the `own` sends of a flow for which flow_is_ordered holds. */
struct flow_rank { uint32_t a, b, c; };
bool flow_is_ordered(const struct flow_key *, const struct flow_disk_packet *);
struct flow_rank flow_rank_of(const struct flow_key *, const struct flow_disk_packet *);
int flow_rank_compare(struct flow_rank, struct flow_rank);

/* Packets of a flow in the file; empty if the file does not have the flow. */
struct flow_part {
    const struct flow_disk_packet *sends, *receives;
    const uint32_t *order;
    uint32_t n_sends, n_receives, n_order;
};
struct flow_part flow_part(const struct flow_chunk *, size_t flow);
static inline struct flow_part flow_part_of(const struct flow_view *v, size_t place)
{
    return flow_part(&v->store->chunks[v->places[place].chunk], v->places[place].flow);
}
/* Packet by its index in the table; a zeroed one if there is none. */
const struct flow_disk_packet *flow_packet_at(const struct flow_chunk *, size_t at);
/* Packet of that chunk by its number there, and by the host's number, which may be any. */
const struct flow_disk_packet *flow_numbered(const struct flow_chunk *, uint64_t number);
size_t flow_chunk_of(const struct flow_store *, uint64_t number);
void flow_unpack(
    const struct flow_store *, size_t chunk, uint32_t turns, const struct flow_disk_packet *, struct flow_packet *out);
/* Unpacks as flow_unpack, and looks up the turns. */
void flow_unpack_of(const struct flow_store *, size_t chunk, const struct flow_disk_packet *, struct flow_packet *out);
static inline int32_t flow_host_row(const struct flow_chunk *c, int32_t row)
{
    return !c->host_rows || row < 0 ? row : (size_t)row < c->n_host_rows ? c->host_rows[row] : -1;
}

/* Cursor over packets of all places, by index. */
struct flow_walk {
    const struct flow_view *view;
    bool sends;
    size_t place;
    uint64_t first, n;           /* range of the place; n = 0: none yet */
    const struct flow_disk_packet *packets;
};
uint64_t flow_walk_count(const struct flow_view *, bool sends);
const struct flow_disk_packet *flow_walk_find(struct flow_walk *, uint64_t i);
static inline const struct flow_disk_packet *flow_walk_at(struct flow_walk *w, uint64_t i)
{
    return i - w->first < w->n ? &w->packets[i - w->first] : flow_walk_find(w, i);
}

#endif
