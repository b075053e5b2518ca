/* Private to flow: the order of packets by thread, as the store has it. */
#ifndef WEFT_FLOW_MESSAGES_H
#define WEFT_FLOW_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

struct flow_disk_packet;
struct flow_disk_row;
struct flow_store;

struct flow_message_order {
    struct flow_disk_row *rows;
    uint32_t *order;       /* packets; see flow_disk_row */
    VEC(uint32_t) replies; /* packets, by time sent */
    size_t n_rows, n;
};

/* From packets whose rows and origins are decided; numbers[number] is the packet's index (UINT32_MAX: none), and
 * numbers go up with time. */
void flow_message_order_init(struct flow_message_order *, const struct flow_disk_packet *packets, size_t n,
    const uint32_t *numbers, size_t n_numbers);
void flow_message_order_fini(struct flow_message_order *);
/* What is wrong with the sections of an opened store, or NULL. */
const char *flow_message_order_defect(const struct flow_store *);

#endif
