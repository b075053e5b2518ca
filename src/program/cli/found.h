/* SPDX-License-Identifier: MIT */
/* Servers of the nodes of a cluster, for a coordinator. */
#ifndef WEFT_CLI_FOUND_H
#define WEFT_CLI_FOUND_H

#include <pthread.h>

#include "cli/cluster.h"
#include "coord/coord.h"

struct cli_found {
    struct bus *bus;
    struct cluster_servers *servers;
    const char *cluster;
    pthread_mutex_t lock;          /* guards all below */
    pthread_cond_t answered;
    bool asking;                   /* a thread asks the nodes, without the lock */
    char *told;                    /* latest answers of the nodes, as JSON; NULL: see `problem` */
    struct err problem;
    int64_t told_ns;               /* time of the question, monotonic; 0: no answer yet */
};
/* Connects, and waits a moment for the nodes present to become known. To be closed in any case, even if zeroed. */
int cli_found_open(struct cli_cluster *, struct cli_found *out, struct err *e);
void cli_found_close(struct cli_found *);
/* Function of struct coord_finder; `found` is its arg. */
bool cli_found_list(void *found, struct arena *, struct coord_found **out, size_t *n);
/* Writes the nodes' own reports, as `weft status --format json`. Callers within a few seconds share one query; while
 * nodes are asked again, others get the last answer. */
int cli_found_tell(void *found, struct text *out, struct err *e);

#endif
