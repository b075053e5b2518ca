/* SPDX-License-Identifier: MIT */
/* Private to flow: writing a store of packets sorted by flow. */
#ifndef WEFT_FLOW_WRITE_H
#define WEFT_FLOW_WRITE_H

#include "flow/store.h"

struct flow_written {
    struct flow_disk_head head;
    struct flow_disk_flow *flows; /* flows; their connections and orders are set here */
    const struct flow_disk_packet *packets;
    const uint32_t *numbers;      /* index of the packet by its number */
    const struct flow_disk_wake *wakes;
    const struct flow_disk_ask *asks;
    const struct flow_disk_own *own; /* addresses of an extract; NULL: addresses are found from the flows */
    size_t n_flows, n_packets, n_wakes, n_asks, n_own;
};
/* ERR_NOMEM: not enough memory for so many packets and the tables made of them. */
int flow_write_room(size_t n_packets, struct err *e);
/* Writes the store with its search tables. */
int flow_write(const struct flow_written *, struct store_place, uint64_t key, struct err *e);

#endif
