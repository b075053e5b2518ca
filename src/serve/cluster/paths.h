/* SPDX-License-Identifier: MIT */
/* Several critical paths at once: each round asks the nodes for what all of them want. */
#ifndef WEFT_CLUSTER_PATHS_H
#define WEFT_CLUSTER_PATHS_H

#include "cluster/cluster.h"

struct cluster_path_start {
    int32_t host; uint64_t row;
    struct path_options path;
    uint64_t receiver;               /* path.receiver: a row of the host */
    uint64_t most_steps;             /* of its walk between two rounds; 0: as many as it takes */
};
/* The options' path says nothing but no_early_return, which holds for all. */
int cluster_paths_find(struct cluster *, const struct cluster_path_start *, size_t n,
    const struct cluster_path_options *, struct cluster_path **out, struct err *e);
/* Asks in which containers the threads on the paths are, within the options' time: their source tells it from then on.
 * Returns of how many hosts nobody said it; *e says why of one. */
size_t cluster_paths_contain(const struct cluster_path *, struct err *e);
/* NULL: it cannot be followed, as cluster_path_find says, or takes more steps. */
const struct path *cluster_paths_answer(const struct cluster_path *, size_t i);

#endif
