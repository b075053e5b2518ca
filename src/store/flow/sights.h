/* SPDX-License-Identifier: MIT */
/* Private to flow: recognises one packet seen by several devices of the host on its way in, out or through. A device on
 * top of another (bond, VLAN, bridge, veth) sees it again; a router may have translated its addresses in between;
 * network namespaces have devices of the same name. */
#ifndef WEFT_FLOW_SIGHTS_H
#define WEFT_FLOW_SIGHTS_H

#include <stdbool.h>
#include <stdint.h>

struct carry;
struct kernel_packet;
struct flow_sights;

enum flow_sight {
    FLOW_SIGHT_FIRST,
    FLOW_SIGHT_AGAIN,  /* same direction, on another device */
    FLOW_SIGHT_PASSING /* goes out, but had come in, or was sent with other addresses */
};
struct flow_seen {
    enum flow_sight sight;
    uint8_t way;       /* bits of enum flow_way: FLOW_CAME_BACK, FLOW_RENAMED */
    uint64_t went_on;  /* number + 1 of the receive that was not the last, as this shows; 0: none */
};

struct flow_sights *flow_sights_new(void);
void flow_sights_free(struct flow_sights *);
/* Call it for every packet of the host, in order of the records. device: number of the interface, the same across cuts;
 * number: the host's number of the packet. O(1): remembers the last sight of some ten thousand packets, for 10 s. */
struct flow_seen flow_sights_see(struct flow_sights *, const struct kernel_packet *, int64_t ts, uint64_t device,
    bool send, uint64_t number);
void flow_sights_carry(struct flow_sights *, struct carry *);

#endif
