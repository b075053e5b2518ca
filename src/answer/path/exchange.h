/* SPDX-License-Identifier: MIT */
/* Private to the room: what a connection carried, cut into exchanges: a message in, and the reply out. Of one host's
 * flows, by its own clock; who the server is was decided before (servers.h). */
#ifndef WEFT_PATH_EXCHANGE_H
#define WEFT_PATH_EXCHANGE_H

#include "base/mem.h"
#include "flow/flow.h"

struct exchange {
    int64_t begin, end;            /* first byte in, last byte out */
    uint64_t bytes_in, bytes_out;  /* payload; what came or went again counts once */
    uint64_t first_in, last_out;   /* packets, by their numbers on the host */
    uint64_t first_byte;           /* TCP: its number; another packet may have come first */
    int32_t row;                   /* who sent the reply, or else for whom the request came; -1: nobody is known */
    bool by_interrupt;             /* the last byte left by work in an interrupt, after a receive (FLOW_BY_RECEIVE) */
    bool overlapped;               /* the client sent more before it had what was replied so far */
};
struct exchanges {
    struct exchange *v;
    size_t n, cap;
    uint64_t cut;                  /* not told: their beginning, or all of the reply, was not recorded */
};
/* Adds the exchanges of a connection, in order of time: the host received on flow `in`, and sent on flow `out`.
 * O(packets of both) */
void exchanges_find(const struct flow_store *, uint32_t in, uint32_t out, struct exchanges *);

#endif
