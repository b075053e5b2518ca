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
    char *told;                    /* what nodes said last, as JSON; or NULL: `problem` */
    struct err problem;
    int64_t told_ns;               /* when; monotonic; 0: nobody has asked */
};
/* Connects, and waits a moment until those that are there are known. To be closed in any case, also a zeroed one. */
int cli_found_open(struct cli_cluster *, struct cli_found *out, struct err *e);
void cli_found_close(struct cli_found *);
/* Of struct coord_finder; `found` is its arg. */
bool cli_found_list(void *found, struct arena *, struct coord_found **out, size_t *n);
/* What its nodes say of themselves, as `weft status --format json`. Asks once for all who want to know it within
 * seconds. */
int cli_found_tell(void *found, struct text *out, struct err *e);

#endif
