/* SPDX-License-Identifier: MIT */
/* Private to the room: makes a membership from entries, and chooses the copies of a host to ask. */
#ifndef WEFT_CLUSTER_MEMBERSHIP_H
#define WEFT_CLUSTER_MEMBERSHIP_H

#include "cluster/condition.h"
#include "cluster/registry.h"

/* Makes it from entries that live in its arena. */
void cluster_membership_make(struct cluster_membership *, struct cluster_entry *entries, size_t n);
/* From now on the first excerpt of a host, and its copies, replace its nodes. Exceptions are hosts (by number) for
 * which `there` says that a node with the whole trace is present. Entries stay unchanged. */
void cluster_membership_use_excerpts(struct cluster_membership *, const bool *there);
/* Returns whether that copy (by number among nodes) lacks something that the first has. */
bool cluster_membership_is_lesser(const struct cluster_membership_host *, size_t copy);

#endif
