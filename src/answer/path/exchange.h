/* SPDX-License-Identifier: MIT */
/* Private to the room: the traffic of a connection, divided into exchanges: a message in, and the reply out. Works on
 * one host's flows, by its own clock; which end is the server is given (servers.h). */
#ifndef WEFT_PATH_EXCHANGE_H
#define WEFT_PATH_EXCHANGE_H

#include "base/mem.h"
#include "flow/flow.h"

struct exchange {
    int64_t begin, end;            /* first byte in, last byte out */
    uint64_t bytes_in, bytes_out;  /* payload; retransmissions do not count */
    uint64_t first_in, last_out;   /* packets, by their numbers on the host */
    uint64_t first_byte;           /* TCP: number of the first byte; another packet may have arrived first */
    int32_t row;                   /* thread that sent the reply, else the one that the request was for; -1: unknown */
    bool by_interrupt;             /* the last byte left by work in an interrupt, after a receive (FLOW_BY_RECEIVE) */
    bool overlapped;               /* the client sent more before it had the reply so far */
};
struct exchanges {
    struct exchange *v;
    size_t n, cap;
    uint64_t cut;                  /* skipped: their beginning, or all of the reply, was not recorded */
};
/* Adds the exchanges of a connection, in order of time: the host received on flow `in`, and sent on flow `out`.
 * O(packets of both) */
void path_exchanges_find(const struct flow_store *, uint32_t in, uint32_t out, struct exchanges *);

#endif
