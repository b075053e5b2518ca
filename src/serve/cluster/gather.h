/* SPDX-License-Identifier: MIT */
/* Private to the room: asks nodes for what clocks need of their hosts' packets, and finds the clocks. */
#ifndef WEFT_CLUSTER_GATHER_H
#define WEFT_CLUSTER_GATHER_H

#include "cluster/clocks.h"

struct bus; struct flow_store; struct gathered;
/* What was gathered stays, as long as neither host nor question changes. */
struct gathered *cluster_gathered_new(void);
void cluster_gathered_free(struct gathered *);
/* The packets that were gathered of these hosts: NULL of others. Any thread may take them; each that is there is to be
 * let go. */
struct gathered_flows;
void cluster_gathered_take(struct gathered *, const uint64_t *keys, size_t n, struct gathered_flows **out);
const struct flow_store *cluster_gathered_store(const struct gathered_flows *);
void cluster_gathered_release(struct gathered_flows *); /* or NULL */
/* Of a host that several nodes have, asks one after the other until one answers. used: by host of the membership, the
 * hash of what was gathered; lacking, where no node gave its packets as they are now: then what was gathered before is
 * taken, or what the clocks before say of it, or its clock stands alone. */
struct gather_before {
    const struct clocks_head *head;
    const struct clock_net *net; /* solved; or NULL */
};
int cluster_gather_clocks(struct gathered *, struct bus *, const char *cluster, const struct cluster_membership *,
    const struct clock_options *, const struct gather_before *, struct clocks_host *used, struct clock_net **out,
    struct err *e);
/* Hosts whose packets, as they are now, could not be had the last time. */
size_t cluster_gathered_missing(const struct gathered *);

#endif
