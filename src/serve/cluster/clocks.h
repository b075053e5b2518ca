/* SPDX-License-Identifier: MIT */
/* Private to the room: shared clocks of a cluster, a table with the results for all pairs of hosts, and those hosts. */
#ifndef WEFT_CLUSTER_CLOCKS_H
#define WEFT_CLUSTER_CLOCKS_H

#include "cluster/membership.h"

struct bus_table; struct clock_net; struct clock_options;

#define CLOCKS_HEAD "head" /* key of the head entry */

/* Hosts of the clocks, in the order of the net, in their state then. */
struct clocks_head {
    uint64_t serial;         /* grows with each sharing */
    struct clocks_host { uint64_t key, hash; /* clocks_lacking of it: its packets were unavailable */ } *hosts;
    size_t n_hosts;
    uint64_t digest;         /* hash of the bytes */
    size_t bytes, parts;
};
/* ERR_NOTFOUND: no clocks yet. The hosts live in the arena. */
int cluster_clocks_head_read(struct bus_table *, struct arena *, struct clocks_head *out, struct err *e);
static inline uint64_t clocks_lacking(uint64_t hash) { return ~hash; }
/* Returns whether they are of these hosts in their present state, as far as packets were available. */
bool cluster_clocks_match(const struct clocks_head *, const struct cluster_membership *);
/* Returns whether the packets of all hosts were available. */
bool cluster_clocks_are_whole(const struct clocks_head *, const struct cluster_membership *);
/* Checks that the table has all bytes that the head names. */
int cluster_clocks_check(struct bus_table *, const struct clocks_head *, struct err *e);
/* Makes maps from the stored results, by these options; fits nothing. ERR_STALE: new clocks are being shared just
 * now. */
int cluster_clocks_load(struct bus_table *, const struct clocks_head *, const struct clock_options *,
    struct clock_net **out, struct err *e);
/* Shares clocks, replacing those of `before` (serial 0: no valid ones; remains of others are removed). ERR_STALE:
 * somebody else did so meanwhile. */
int cluster_clocks_share(struct bus_table *, size_t max_part_bytes, const struct clocks_head *before,
    struct clocks_head *, const struct clock_net *, struct err *e);

#endif
