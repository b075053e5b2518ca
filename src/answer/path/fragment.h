/* SPDX-License-Identifier: MIT */
/* Private to the room: contents of a fragment, and its bytes (docs/cluster-protocol.md). Numbers of rows, causes and
 * messages are those of the fragment, + 1 where 0 means none. */
#ifndef WEFT_PATH_FRAGMENT_H
#define WEFT_PATH_FRAGMENT_H

#include "base/map.h"
#include "base/mem.h"
#include "graph/graph.h"
#include "path/remote.h"

struct wire_in;

struct fragment_row {
    int32_t host;
    uint64_t id;
    bool has_life;
    int64_t begin, end;
    uint32_t origin;         /* cause + 1: creation of the row, if it was asked for */
    uint32_t first_name, n_names;
};
struct fragment_interval {
    uint32_t row;
    int64_t begin, end;
    uint8_t state;
    bool polling, assumed;
    int32_t cpu;
    uint32_t detail;         /* string; 0: none */
    uint32_t cause, origin;  /* cause + 1 of its end; for a CPU's row: of what led to it */
};
struct fragment_none { uint32_t row; int64_t ts; }; /* the row has no state before ts */
struct fragment_cause {
    uint8_t kind, reason;    /* NETWORK: says only that it is a message */
    uint32_t from;           /* row + 1: WAKEUP, FORK */
    int64_t ts;
    uint32_t message;        /* + 1 */
    bool is_reply;           /* see struct path_cause, also for the next */
    int64_t asked;
};
/* Answer of a host about a message. */
struct fragment_answer {
    int32_t host;
    uint8_t answer;          /* enum flow_answer */
    bool may_send, lost;     /* flow_may_send; events just before it came */
    uint32_t from;           /* row + 1 */
    int64_t ts;
};
struct fragment_message {
    struct path_message message;
    uint32_t first_answer, n_answers;
};

struct fragment {
    VEC(struct fragment_row) rows;
    VEC(struct graph_name) names;
    VEC(struct fragment_interval) intervals; /* intervals of a row in order of time */
    VEC(struct fragment_none) nones;
    VEC(struct fragment_cause) causes;
    VEC(struct fragment_message) messages;
    VEC(struct fragment_answer) answers;
    VEC(struct fragment_answer) results;     /* by window; host -1 for a window that asks for no message */
    struct strings strings;
};

void path_fragment_fini(struct fragment *);
void path_fragment_pack(struct fragment *, struct text *out); /* sorts its intervals */
/* ERR_FORMAT. Hosts are below n_hosts, results are n_windows. */
int path_fragment_unpack(struct fragment *, const void *bytes, size_t n, size_t n_hosts, size_t n_windows,
    struct err *e);

void path_message_pack(struct text *, const struct path_message *);
void path_message_unpack(struct wire_in *, size_t n_hosts, struct path_message *out);

#endif
