/* SPDX-License-Identifier: MIT */
/* weft index --cluster: the traces below some paths are indexed by the nodes of a cluster. */
#ifndef WEFT_CLI_SPREAD_H
#define WEFT_CLI_SPREAD_H

#include "cli/cluster.h"

struct cli_spread {
    struct cli_cluster cluster;
    const char *share;       /* --share DIR: what the nodes see too, as it is here */
    bool forget;             /* nothing is indexed: what is at the paths is shared out no more */
    bool force;
    uint64_t keep_ns;
    int format;
};
/* Returns the exit code. No paths: all of it. */
int cli_spread_index(struct cli_spread *, char **paths, size_t n);

#endif
