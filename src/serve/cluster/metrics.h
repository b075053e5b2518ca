/* SPDX-License-Identifier: MIT */
/* Private to the room: size of a host's trace and its traffic by receiver, for its entry. */
#ifndef WEFT_CLUSTER_METRICS_H
#define WEFT_CLUSTER_METRICS_H

#include "cluster/protocol.h"

/* Sets bytes, store_bytes, events and talk of the host's entry, whose peers are set; talk lives in the arena.
 * O(flows + files of the store). */
void cluster_metrics_find(const struct experiment *, size_t host, struct arena *, struct cluster_entry_host *);

#endif
