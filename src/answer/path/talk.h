/* SPDX-License-Identifier: MIT */
/* Traffic between hosts: all flows of some hosts, both ends joined; amounts and delays. Each host reports its view of
 * its flows (path_talk_report), the asking node joins the ends (path_talk_join), and a node with the packets of both
 * ends finds the delays (path_talk_find_delays). The answer is the same in one place or spread over several
 * (cluster/cluster.h). */
#ifndef WEFT_PATH_TALK_H
#define WEFT_PATH_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flow/flow.h"

struct clock_map;

/* Flow as seen by one of its hosts; times by its clock. */
struct path_talk_report { struct flow_key key; struct flow_tally sent, received; };
struct talk_reports { struct path_talk_report *v; size_t n, cap; };
/* Converts [begin, end] from the reference clock to a host's clock. map: NULL: both are the same. */
void path_talk_window(const struct clock_map *, int64_t *begin, int64_t *end);
/* Adds flows with packets within [begin, end]. O(packets) */
void path_talk_report(const struct flow_store *, int64_t begin, int64_t end, struct talk_reports *out);

/* Flow with both ends. Times are still by the clocks of the hosts. */
struct talk_line {
    int32_t from, to;        /* numbers of hosts; -1: none that reported it */
    struct flow_key key;
    struct flow_tally sent, received; /* tallies by these hosts */
};
struct talk_lines { struct talk_line *v; size_t n, cap; };
/* Report of a host, and its own addresses (flow_addresses). */
struct talk_told { struct talk_reports flows; const struct flow_address *own; size_t n_own; };
/* of[i]: report of host i. Adds lines in order of their keys, then of the receivers. If several hosts sent on one flow,
 * because they share addresses, the one that sent most packets is taken; if several received one, each has a line. An
 * end that saw nothing of a flow is the host that alone has the address. Traffic from an anonymous address
 * (flow_is_anonymous) stays on its host. O(n log n) in flows */
void path_talk_join(const struct talk_told *of, size_t n, struct talk_lines *out);

/* ---- delays ---- */

struct talk_host {
    const struct flow_store *flows;  /* flows, at least all that it shares with others (flow_needed); or NULL */
    const struct clock_map *map;     /* NULL: its clock is the reference's, as far as known */
};
/* Delay from the send to the receive, for packets received within an interval in which both ends were recorded, and
 * that are surely the same (flow_sure_pairs). The p-th percentile is the lowest delay that p % do not exceed. */
struct talk_delay {
    int32_t from, to;
    struct flow_key key;             /* zeroed: all flows from one to the other */
    uint64_t packets;
    int64_t min, p50, p99, max;
    int64_t error_ns;                /* maximum error of the clocks at any of them; -1: unknown */
};
struct talk_delays { struct talk_delay *v; size_t n, cap; };
/* Adds the delays from each host to each other, or by flow, if their clocks are related: in order of both, then of
 * keys. The ends are those found by path_talk_join. O(n log n) in packets that both ends have. */
void path_talk_find_delays(const struct talk_host *, size_t n, int64_t begin, int64_t end, bool by_flow,
    struct talk_delays *out);
/* Order by hosts, then key. */
int path_talk_delay_compare(const struct talk_delay *, const struct talk_delay *);

#endif
