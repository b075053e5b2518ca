/* SPDX-License-Identifier: MIT */
/* Several critical paths at once: each round asks the nodes for the needs of all of them. */
#ifndef WEFT_CLUSTER_PATHS_H
#define WEFT_CLUSTER_PATHS_H

#include "cluster/cluster.h"

struct cluster_path_start {
    int32_t host; uint64_t row;
    struct path_options path;
    uint64_t receiver;               /* path.receiver: a row of the host */
    uint64_t most_steps;             /* limit of its walk between two rounds; 0: none */
};
/* Finds the paths. Of the options' path only no_early_return is used, for all. */
int cluster_paths_find(struct cluster *, const struct cluster_path_start *, size_t n,
    const struct cluster_path_options *, struct cluster_path **out, struct err *e);
/* Finds the containers of the threads on the paths, within the options' time; afterwards the path's source has them.
 * Returns the number of hosts without an answer; *e has the reason of one. */
size_t cluster_paths_contain(const struct cluster_path *, struct err *e);
/* NULL: it cannot be followed, see cluster_path_find, or takes more steps. */
const struct path *cluster_paths_answer(const struct cluster_path *, size_t i);

#endif
