/* SPDX-License-Identifier: MIT */
/* Private to flow: which packets are one packet, seen by several devices of the host on its way in, out or through.
 * A device that stands on another (bond, VLAN, bridge, veth) sees it once more; a router may have translated its
 * addresses in between; network namespaces have devices of one name. */
#ifndef WEFT_FLOW_SIGHTS_H
#define WEFT_FLOW_SIGHTS_H

#include <stdbool.h>
#include <stdint.h>

struct carry;
struct kernel_packet;
struct flow_sights;

enum flow_sight {
    FLOW_SIGHT_FIRST,
    FLOW_SIGHT_AGAIN,  /* the same way, on another device */
    FLOW_SIGHT_PASSING /* goes out, and had come in, or was sent with other addresses */
};
struct flow_seen {
    enum flow_sight sight;
    uint8_t way;       /* of enum flow_way: FLOW_CAME_BACK, FLOW_RENAMED */
    uint64_t went_on;  /* number + 1 of the receive that this shows not to have been the last; 0: none */
};

struct flow_sights *flow_sights_new(void);
void flow_sights_free(struct flow_sights *);
/* To be called for every packet of the host, in the order of the records. device: the interface, the same number over
 * cuts; number: the packet's, of the host. O(1): the last sight of some ten thousand packets is remembered, for 10 s.
 */
struct flow_seen flow_sights_see(struct flow_sights *, const struct kernel_packet *, int64_t ts, uint64_t device,
    bool send, uint64_t number);
void flow_sights_carry(struct flow_sights *, struct carry *);

#endif
