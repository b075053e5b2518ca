/* SPDX-License-Identifier: MIT */
/* weft index --cluster: the traces below some paths are indexed by the nodes of a cluster. */
#ifndef WEFT_CLI_SPREAD_H
#define WEFT_CLI_SPREAD_H

#include "cli/cluster.h"

struct cli_spread {
    struct cli_cluster cluster;
    const char *share;       /* --share DIR: the shared directory, as seen from here */
    bool forget;             /* paths are removed from the shared work; nothing is indexed */
    bool force;
    uint64_t keep_ns;
    int format;
};
/* Returns the exit code. No paths: the whole shared directory. */
int cli_spread_index(struct cli_spread *, char **paths, size_t n);

#endif
