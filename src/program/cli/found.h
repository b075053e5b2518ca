/* SPDX-License-Identifier: MIT */
/* Servers of the nodes of a cluster, for a coordinator. */
#ifndef WEFT_CLI_FOUND_H
#define WEFT_CLI_FOUND_H

#include "cli/cluster.h"
#include "coord/coord.h"

struct cli_found {
    struct bus *bus;
    struct cluster_servers *servers;
};
/* Connects, and waits a moment until those that are there are known. Zeroed in any case, for cli_found_close. */
int cli_found_open(struct cli_cluster *, struct cli_found *out, struct err *e);
void cli_found_close(struct cli_found *);
/* Of struct coord_finder; `found` is its arg. */
bool cli_found_list(void *found, struct arena *, struct coord_found **out, size_t *n);

#endif
