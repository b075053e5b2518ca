/* SPDX-License-Identifier: MIT */
/* Who talks to whom: of all flows of some hosts, both ends together; how much went, and how late it came. Each host
 * tells what it saw of its flows (talk_report), whoever asks puts the ends together (talk_join), and whoever has the
 * packets of both ends finds the delays (talk_find_delays), be it in one place or in several (cluster/cluster.h): the
 * answer is the same. */
#ifndef WEFT_PATH_TALK_H
#define WEFT_PATH_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flow/flow.h"

struct clock_map;

/* A flow as one of its hosts saw it; times by its clock. */
struct talk_report { struct flow_key key; struct flow_tally sent, received; };
struct talk_reports { struct talk_report *v; size_t n, cap; };
/* [begin, end] of the reference clock by the clock of a host. map: NULL: they are the same. */
void talk_window(const struct clock_map *, int64_t *begin, int64_t *end);
/* Adds flows of which something went within [begin, end]. O(packets) */
void talk_report(const struct flow_store *, int64_t begin, int64_t end, struct talk_reports *out);

/* A flow with both ends. Times still by the clocks of the hosts. */
struct talk_line {
    int32_t from, to;        /* numbers of hosts; -1: none that told of it */
    struct flow_key key;
    struct flow_tally sent, received; /* by these */
};
struct talk_lines { struct talk_line *v; size_t n, cap; };
/* What a host told, and its own addresses (flow_addresses). */
struct talk_told { struct talk_reports flows; const struct flow_address *own; size_t n_own; };
/* of[i]: of host i. Adds lines in order of their keys, then of the receivers. Of several hosts that sent on one flow,
 * because their addresses are the same, the one that sent most packets is meant; of several that received one, each has
 * a line. An end that saw nothing of a flow is the host that alone has the address. What comes from an anonymous
 * address (flow_is_anonymous) stays on its host. O(n log n) in flows */
void talk_join(const struct talk_told *of, size_t n, struct talk_lines *out);

/* ---- delays ---- */

struct talk_host {
    const struct flow_store *flows;  /* or NULL. All flows that it shares with others, at least (flow_needed) */
    const struct clock_map *map;     /* NULL: its clock is that of the reference, as far as known */
};
/* From the send to the receive, of packets received within an interval of which both ends were recorded, and which are
 * surely the same (flow_sure_pairs). The p-th percentile is the least delay that p % are not above. */
struct talk_delay {
    int32_t from, to;
    struct flow_key key;             /* zeroed: of all flows from one to the other */
    uint64_t packets;
    int64_t min, p50, p99, max;
    int64_t error_ns;                /* what the clocks may be off by, at most, at any of them; -1: not known */
};
struct talk_delays { struct talk_delay *v; size_t n, cap; };
/* Adds those from each host to each other, or by flow, whose clocks are related: in order of both, and of keys. Of what
 * talk_join finds these two hosts to be the ends of. O(n log n) in packets that both ends have. */
void talk_find_delays(const struct talk_host *, size_t n, int64_t begin, int64_t end, bool by_flow,
    struct talk_delays *out);
/* By hosts, then key. */
int talk_delay_compare(const struct talk_delay *, const struct talk_delay *);

#endif
