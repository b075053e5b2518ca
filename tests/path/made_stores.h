/* SPDX-License-Identifier: MIT */
/* Stores and clock maps made up in memory, in place of the rooms below path: their answers are given, so that only the
 * join is tested. */
#ifndef WEFT_TESTS_PATH_MADE_STORES_H
#define WEFT_TESTS_PATH_MADE_STORES_H

#include "base/mem.h"
#include "clock/clock.h"
#include "flow/flow.h"
#include "graph/graph.h"

struct made_interval {
    struct graph_interval iv;
    struct graph_cause cause;
};
struct made_row {
    struct graph_row row;
    VEC(struct made_interval) intervals;
    struct graph_cause origin;
};
struct graph {
    VEC(struct made_row) rows;
    VEC(struct graph_loss) losses;
};

struct made_flow {
    struct flow_key key;
    VEC(struct flow_packet) sends, receives;
};
struct flow_store {
    VEC(struct made_flow) flows;
    VEC(struct flow_wake) wakes;
    VEC(struct flow_ask) asks; /* asks of row 0 */
    VEC(struct flow_address) addresses, peers;
    uint32_t numbers;
};

/* Lowest of the numbers found in any flow, as behind address translation. */
enum { TRANSLATED = 1000000 };
extern size_t explained; /* number of calls of flow_find_send */

int32_t make_row(struct graph *g, int32_t tid, const char *name, int64_t begin);
struct made_interval *make(struct graph *g, int32_t row, int64_t end, uint8_t state);
uint32_t make_flow(struct flow_store *s, uint8_t from, uint16_t sport, uint8_t to, uint16_t dport);
uint32_t make_send(struct flow_store *s, uint32_t flow, int64_t ts, uint64_t seq_end, int32_t row);
uint32_t make_receive(struct flow_store *s, uint32_t flow, int64_t ts, uint64_t seq_end, int32_t row);
/* Makes the wait end by the packet: it is the store's newest wake. */
void make_wake(struct flow_store *s, struct made_interval *wait, int32_t row, uint32_t receive);
void make_address(struct flow_store *s, uint8_t address);
void make_peer(struct flow_store *s, uint8_t address);
void drop(struct graph *g, struct flow_store *s);

#endif
