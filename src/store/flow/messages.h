/* SPDX-License-Identifier: MIT */
/* Private to flow: the store's order of packets by thread. */
#ifndef WEFT_FLOW_MESSAGES_H
#define WEFT_FLOW_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

struct flow_disk_packet;
struct flow_disk_row;
struct flow_chunk;

struct flow_message_order {
    struct flow_disk_row *rows;
    uint32_t *order;       /* packet indices; see flow_disk_row */
    VEC(uint32_t) replies; /* packet indices, by time of the send */
    size_t n_rows, n;
};

/* Sorts settled packets; numbers[number] is the packet's index. */
void flow_message_order_init(
    struct flow_message_order *, const struct flow_disk_packet *packets, const uint32_t *numbers, size_t n);
void flow_message_order_fini(struct flow_message_order *);
/* Returns the defect of the sections of an open store, or NULL. */
const char *flow_message_order_defect(const struct flow_chunk *);

#endif
