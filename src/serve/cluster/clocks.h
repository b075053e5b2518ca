/* SPDX-License-Identifier: MIT */
/* Private to the room: the clocks of a cluster as they are shared: what was found of all pairs of hosts, in a table,
 * with the hosts that it was found of. */
#ifndef WEFT_CLUSTER_CLOCKS_H
#define WEFT_CLUSTER_CLOCKS_H

#include "cluster/membership.h"

struct bus_table; struct clock_net; struct clock_options;

#define CLOCKS_HEAD "head" /* the key of the entry that says what there is */

/* Of which hosts, in the order of the net, as they were then. */
struct clocks_head {
    uint64_t serial;         /* grows with each that is shared */
    struct clocks_host { uint64_t key, hash; /* clocks_lacking of it: its packets could not be had */ } *hosts;
    size_t n_hosts;
    uint64_t digest;         /* of the bytes */
    size_t bytes, parts;
};
/* ERR_NOTFOUND: there are none yet. The hosts live in the arena. */
int cluster_clocks_head_read(struct bus_table *, struct arena *, struct clocks_head *out, struct err *e);
static inline uint64_t clocks_lacking(uint64_t hash) { return ~hash; }
/* Are they of these hosts, as they are, as far as those could be asked? */
bool cluster_clocks_match(const struct clocks_head *, const struct cluster_membership *);
/* Could all be asked? */
bool cluster_clocks_are_whole(const struct clocks_head *, const struct cluster_membership *);
/* Are the bytes that the head names in the table, whole? */
int cluster_clocks_check(struct bus_table *, const struct clocks_head *, struct err *e);
/* Fits nothing: makes maps of what was found, by these options. ERR_STALE: others are being shared just now. */
int cluster_clocks_load(struct bus_table *, const struct clocks_head *, const struct clock_options *,
    struct clock_net **out, struct err *e);
/* Shares them in place of those of `before` (serial 0: none that make sense; what is left of others is removed).
 * ERR_STALE: somebody else did so meanwhile. */
int cluster_clocks_share(struct bus_table *, size_t max_part_bytes, const struct clocks_head *before,
    struct clocks_head *, const struct clock_net *, struct err *e);

#endif
