/* Private to flow: the layout of the store's sections (docs/formats/flows.md). Little endian, natural alignment, no
 * padding left unnamed. */
#ifndef WEFT_FLOW_STORE_H
#define WEFT_FLOW_STORE_H

#include "base/store.h"
#include "flow/flow.h"

enum { FLOW_VERSION = 4 };

struct flow_disk_flow {
    struct flow_key key;         /* 38 bytes */
    uint16_t reserved;
    /* Packets from `first`: sends, then receives, then the same packets as further devices saw them; each in time
     * order. */
    uint32_t first, sends, receives, copies;
    uint32_t own;                /* of the sends: by this host's sockets */
    uint32_t connection;         /* the lesser number of the two directions; its own when the other was not seen */
    uint32_t first_ordered, ordered; /* of order[]: see there */
};
struct flow_disk_packet {
    int64_t ts;
    uint64_t seq_end, ack;
    /* Sends: greatest seq_end so far of own sends that carry something; monotone, searched for the first send of a
     * byte. */
    uint64_t high;
    uint32_t bytes, number;
    int32_t row;
    uint32_t receive;
    uint32_t flow;
    uint16_t flags, ip_id;
    uint8_t origin, retransmission, is_send, is_copy, reserved[4];
};
struct flow_disk_wake {
    int64_t ts;
    int32_t row;
    uint32_t receive;
};
struct flow_disk_row {
    uint32_t first, sends, receives; /* messages[first .. first + sends + receives) in time order */
};
struct flow_disk_ask {
    int64_t begin, last, end;
    int32_t row;
    uint32_t calls;
};
_Static_assert(sizeof(struct flow_disk_flow) == 72, "fixed width");
_Static_assert(sizeof(struct flow_disk_packet) == 64, "fixed width");
_Static_assert(sizeof(struct flow_disk_wake) == 16, "fixed width");
_Static_assert(sizeof(struct flow_disk_row) == 12, "fixed width");
_Static_assert(sizeof(struct flow_disk_ask) == 32, "fixed width");

struct flow_store {
    struct store *file;
    const struct flow_disk_flow *flows;
    const struct flow_disk_packet *packets;
    const struct flow_disk_wake *wakes;
    const struct flow_address *addresses, *peers;
    const uint32_t *by_number;   /* packet number -> packet */
    const uint32_t *table;       /* open-addressing hash of flow keys -> flow + 1; size a power of two */
    const struct flow_disk_row *rows;
    const uint32_t *messages, *replies; /* packets */
    const struct flow_disk_ask *asks; /* by row, then time */
    /* Packets by flow: own sends that are not found by their bytes, by flow_rank (bare acknowledgements, datagrams with
     * an IP id, packets without addresses), those of equal rank in time order. */
    const uint32_t *order;
    const uint32_t *carriers;    /* packets: own TCP sends that carry something, by the 32 bits of seq_end */
    size_t n_flows, n_packets, n_wakes, n_addresses, n_peers, n_by_number, table_size, n_rows, n_messages, n_replies,
        n_order, n_carriers, n_asks;
};

uint64_t flow_key_hash(const struct flow_key *);
void flow_unpack(const struct flow_disk_packet *, struct flow_packet *out);

enum { FLOW_TCP = 6, FLOW_FIN = 1, FLOW_SYN = 2, FLOW_RST = 4, FLOW_ACK = 16 };
/* A datagram is under way for no longer: far beyond what queues hold. */
#define FLOW_DATAGRAM_LIFE_NS (INT64_C(10) * 1000000000)

/* Does it carry bytes of the connection (SYN and FIN are one each)? */
static inline bool flow_carries(const struct flow_disk_packet *p)
{
    return p->bytes || p->flags & (FLOW_SYN | FLOW_FIN);
}
static inline bool flow_is_own(const struct flow_disk_packet *p)
{
    return p->is_send && !p->is_copy && p->origin != FLOW_PASSING;
}
/* What order[] is sorted by; `own` sends of a flow that are in it are those that flow_is_ordered. */
struct flow_rank { uint32_t a, b, c; };
bool flow_is_ordered(const struct flow_key *, const struct flow_disk_packet *);
struct flow_rank flow_rank_of(const struct flow_key *, const struct flow_disk_packet *);
int flow_rank_compare(struct flow_rank, struct flow_rank);

/* The packets of a flow that the file has; none of a flow that it does not have. */
struct flow_part {
    const struct flow_disk_packet *sends, *receives;
    const uint32_t *order;
    uint32_t n_sends, n_receives, n_order;
};
struct flow_part flow_part(const struct flow_store *, size_t flow);
/* A packet by its index in the table; a zeroed one when there is none. */
const struct flow_disk_packet *flow_packet_at(const struct flow_store *, size_t at);

#endif
