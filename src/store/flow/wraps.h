/* SPDX-License-Identifier: MIT */
/* Private to flow: recognises packets that carry other ones. A tunnel's device (VXLAN, Geneve, GRE, IP in IP,
 * WireGuard) shows the packet inside, the device below it the packet around, which belongs to no socket. Both share the
 * kernel's address, and one is longer by the tunnel's headers. */
#ifndef WEFT_FLOW_WRAPS_H
#define WEFT_FLOW_WRAPS_H

#include <stdbool.h>
#include <stdint.h>

struct carry;
struct kernel_record;
struct flow_wraps;

struct flow_wrap {
    bool carries;     /* the packet carries another one */
    bool opaque;      /* the carried packet was not seen so far */
    uint64_t carrier; /* number + 1 of the earlier receive that carried this packet; 0: none */
};

struct flow_wraps *flow_wraps_new(void);
void flow_wraps_free(struct flow_wraps *);
/* Call it for every packet of the host, in order of the records. device, number: see flow_sights_see. O(1) */
struct flow_wrap flow_wraps_see(
    struct flow_wraps *, const struct kernel_record *, uint64_t device, bool send, uint64_t number);
void flow_wraps_carry(struct flow_wraps *, struct carry *);

#endif
