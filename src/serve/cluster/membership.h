/* SPDX-License-Identifier: MIT */
/* Private to the room: makes a membership of entries, and chooses which copies of a host are asked. */
#ifndef WEFT_CLUSTER_MEMBERSHIP_H
#define WEFT_CLUSTER_MEMBERSHIP_H

#include "cluster/condition.h"
#include "cluster/registry.h"

/* From entries that live in its arena. */
void cluster_membership_make(struct cluster_membership *, struct cluster_entry *entries, size_t n);
/* From now on the first excerpt of a host is what is asked about, and its copies, instead of its nodes; but of those
 * hosts (by number) of which somebody with all of the trace is there. Entries stay as they are. */
void cluster_membership_use_excerpts(struct cluster_membership *, const bool *there);
/* Does that copy (by number among nodes) lack something that the first has? */
bool cluster_membership_is_lesser(const struct cluster_membership_host *, size_t copy);

#endif
