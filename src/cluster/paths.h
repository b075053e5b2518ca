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
/* NULL: it cannot be followed, as cluster_path_find says, or takes more steps. */
const struct path *cluster_paths_answer(const struct cluster_path *, size_t i);

#endif
