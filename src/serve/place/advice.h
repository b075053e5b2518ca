/* SPDX-License-Identifier: MIT */
/* Private to the room: best placement of hosts on nodes. Plain numbers, no cluster. */
#ifndef WEFT_PLACE_ADVICE_H
#define WEFT_PLACE_ADVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct advice_node { uint64_t room_bytes; bool receives; };
struct advice_host { int32_t node; uint64_t bytes; bool movable; };
struct advice_talk { int32_t a, b; uint64_t weight; };
struct advice_world {
    const struct advice_node *nodes; size_t n_nodes;
    const struct advice_host *hosts; size_t n_hosts;
    const struct advice_talk *talk; size_t n_talk; /* each pair of hosts once */
    uint64_t limit_bytes;    /* limit per node */
    uint64_t least_gain;     /* minimum of weight saved by a move that does not relieve a node; at least 1; */
    uint64_t least_relief;   /* minimum of bytes beyond the limit relieved */
};
struct advice_move { int32_t host, to; uint64_t relieves; int64_t saves; };
/* Local search. The next move is that of one host which relieves nodes beyond the limit most; of equal ones that which
 * saves most weight between nodes, then that of fewest bytes, then of the first host and node. Each host moves at most
 * once. No move ever brings a node beyond the limit or its room. moves: room for n_hosts. Returns their number. O(moves
 * · (hosts · nodes + talk)) */
size_t place_advice_find(const struct advice_world *, struct advice_move *moves);

/* Weight between nodes, and bytes beyond the limit, for hosts on these nodes. */
uint64_t place_advice_between(const struct advice_world *, const int32_t *node_of);
uint64_t place_advice_beyond(const struct advice_world *, const int32_t *node_of);

#endif
