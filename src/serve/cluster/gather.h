/* SPDX-License-Identifier: MIT */
/* Private to the room: asks nodes for the packets of their hosts that clocks need, and finds the clocks. */
#ifndef WEFT_CLUSTER_GATHER_H
#define WEFT_CLUSTER_GATHER_H

#include "cluster/clocks.h"

struct bus; struct flow_store; struct gathered;
/* Gathered packets. They stay as long as neither host nor question changes. */
struct gathered *cluster_gathered_new(void);
void cluster_gathered_free(struct gathered *);
/* Takes references to the gathered packets of these hosts; NULL for hosts without. Any thread; each reference must be
 * released. */
struct gathered_flows;
void cluster_gathered_take(struct gathered *, const uint64_t *keys, size_t n, struct gathered_flows **out);
const struct flow_store *cluster_gathered_store(const struct gathered_flows *);
void cluster_gathered_release(struct gathered_flows *); /* NULL-safe */
/* Finds the clocks. Nodes with copies of a host are asked one after the other until one answers. used: by host of the
 * membership, the hash of its gathered packets; clocks_lacking if no node gave its present packets. Such a host has the
 * packets gathered before, or its relations in the earlier clocks, or its clock stands alone. */
struct gather_before {
    const struct clocks_head *head;
    const struct clock_net *net; /* solved; or NULL */
};
int cluster_gather_clocks(struct gathered *, struct bus *, const char *cluster, const struct cluster_membership *,
    const struct clock_options *, const struct gather_before *, struct clocks_host *used, struct clock_net **out,
    struct err *e);
/* Returns the number of hosts whose present packets were unavailable the last time. */
size_t cluster_gathered_missing(const struct gathered *);

#endif
