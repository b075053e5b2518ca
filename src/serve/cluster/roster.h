/* SPDX-License-Identifier: MIT */
/* Private to the room: makes a roster of cards, and chooses which copies of a host are asked. */
#ifndef WEFT_CLUSTER_ROSTER_H
#define WEFT_CLUSTER_ROSTER_H

#include "cluster/condition.h"
#include "cluster/registry.h"

/* Of cards that live in its arena. */
void roster_make(struct roster *, struct card *cards, size_t n);
/* From now on the first snip of a host is what is asked about, and its copies, instead of its nodes; but of those hosts
 * (by number) of which somebody with all of the trace is there. Cards stay as they are. */
void roster_use_snips(struct roster *, const bool *there);
/* Does that copy (by number among nodes) lack something that the first has? */
bool roster_is_lesser(const struct roster_host *, size_t copy);

#endif
