/* Private to flow: the layout of the store's sections (docs/formats/flows.md). Little endian, natural alignment, no
 * padding left unnamed. */
#ifndef WEFT_FLOW_STORE_H
#define WEFT_FLOW_STORE_H

#include <pthread.h>

#include "base/store.h"
#include "flow/flow.h"

enum { FLOW_VERSION = 3 };

struct flow_disk_flow {
    struct flow_key key;         /* 38 bytes */
    uint16_t reserved;
    uint32_t first, sends, receives; /* packets from `first`: sends, then receives; each in time order */
    uint32_t connection;         /* the lesser number of the two directions; its own when the other was not seen */
};
struct flow_disk_packet {
    int64_t ts;
    uint64_t seq_end, ack;
    uint64_t high;               /* sends: greatest seq_end so far; monotone, searched for the first send of a byte */
    uint32_t bytes, number;
    int32_t row;
    uint32_t receive;
    uint32_t flow;
    uint16_t flags, ip_id;
    uint8_t origin, retransmission, is_send, reserved[5];
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
_Static_assert(sizeof(struct flow_disk_flow) == 56, "fixed width");
_Static_assert(sizeof(struct flow_disk_packet) == 64, "fixed width");
_Static_assert(sizeof(struct flow_disk_wake) == 16, "fixed width");
_Static_assert(sizeof(struct flow_disk_row) == 12, "fixed width");
_Static_assert(sizeof(struct flow_disk_ask) == 32, "fixed width");

/* Datagrams matched in order between one receiving flow and one sender, made on first use (flow/match.c). */
struct flow_datagrams {
    const struct flow_store *sender;
    uint32_t flow;
    uint32_t *send_of;           /* by receive; UINT32_MAX: none */
    struct flow_datagrams *next;
};

struct flow_store {
    struct store *file;
    const struct flow_disk_flow *flows;
    const struct flow_disk_packet *packets;
    const struct flow_disk_wake *wakes;
    const struct flow_address *addresses;
    const uint32_t *by_number;   /* packet number -> packet */
    const uint32_t *table;       /* open-addressing hash of flow keys -> flow + 1; size a power of two */
    const struct flow_disk_row *rows;
    const uint32_t *messages, *replies; /* packets */
    const struct flow_disk_ask *asks; /* by row, then time */
    size_t n_flows, n_packets, n_wakes, n_addresses, n_by_number, table_size, n_rows, n_messages, n_replies, n_asks;
    pthread_mutex_t lock;        /* guards what is made on first use below */
    struct flow_datagrams *datagrams;
    uint32_t *by_bytes;          /* NAT fall-back: hash of (sequence, ack, length) of sends -> packet + 1 */
    size_t by_bytes_size;
};

uint64_t flow_key_hash(const struct flow_key *);
/* The source says nothing about the host: no address yet (DHCP, address probes), or the loopback address. Many hosts
 * have flows with such keys. */
bool flow_is_anonymous(const struct flow_key *);
void flow_unpack(const struct flow_disk_packet *, struct flow_packet *out);

/* The packets of a flow that the file has; none of a flow that it does not have. */
struct flow_part {
    const struct flow_disk_packet *sends, *receives;
    uint32_t n_sends, n_receives;
};
struct flow_part flow_part(const struct flow_store *, size_t flow);
/* A packet by its index in the table; a zeroed one when there is none. */
const struct flow_disk_packet *flow_packet_at(const struct flow_store *, size_t at);

#endif
