/* SPDX-License-Identifier: MIT */
/* Private to the room: call stacks of the waits and stretches of running on paths. */
#ifndef WEFT_CLUSTER_STACKS_H
#define WEFT_CLUSTER_STACKS_H

#include "cluster/client.h"

/* Asks the nodes whose hosts have call stacks, and adds the answers to `known`. Returns the number of hosts without an
 * answer; *e has the reason of one. */
size_t cluster_stacks_find(struct cluster *, const struct path_stack_questions *, struct path_known *known,
    int64_t deadline_ns, struct err *e);

#endif
