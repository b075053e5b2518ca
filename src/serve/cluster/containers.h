/* SPDX-License-Identifier: MIT */
/* Private to the room: in which containers the threads on paths are. */
#ifndef WEFT_CLUSTER_CONTAINERS_H
#define WEFT_CLUSTER_CONTAINERS_H

#include "cluster/client.h"

/* Threads of the membership's hosts that are asked about. */
struct container_rows {
    struct container_row { int32_t host; uint64_t id; struct path_row row; } *v; /* row: as it is known */
    size_t n, cap;
};
/* Asks the nodes, and adds the containers to `known`. Threads in any order, with repeats; they are sorted. Returns the
 * number of hosts without an answer; *e has the reason of one. */
size_t cluster_containers_find(struct cluster *, struct container_rows *, struct path_known *known, int64_t deadline_ns,
    struct err *e);

#endif
