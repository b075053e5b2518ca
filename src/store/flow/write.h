/* SPDX-License-Identifier: MIT */
/* Private to flow: writing a store of packets that lie by flow. */
#ifndef WEFT_FLOW_WRITE_H
#define WEFT_FLOW_WRITE_H

#include "flow/store.h"

struct flow_written {
    struct flow_disk_head head;
    struct flow_disk_flow *flows; /* but for their connections and orders, which are set */
    const struct flow_disk_packet *packets;
    const uint32_t *numbers;      /* by packet number: the packet */
    const struct flow_disk_wake *wakes;
    const struct flow_disk_ask *asks;
    const struct flow_disk_own *own; /* of an extract; NULL: addresses are those that its flows tell */
    size_t n_flows, n_packets, n_wakes, n_asks, n_own;
};
/* 0, or ERR_NOMEM: there is none for so many packets and the tables that are made of them. */
int flow_write_room(size_t n_packets, struct err *e);
/* With the tables that are searched. */
int flow_write(const struct flow_written *, struct store_place, uint64_t key, struct err *e);

#endif
