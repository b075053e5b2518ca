/* SPDX-License-Identifier: MIT */
/* State of a cluster's nodes, and missing sources of answers: for `weft status`, and for a coordinator's page. */
#ifndef WEFT_CLI_NODES_H
#define WEFT_CLI_NODES_H

#include "base/text.h"
#include "cluster/status.h"

struct cli_nodes {
    struct cluster *cluster;
    struct cluster_node_status *v;
    size_t n;
    const struct cluster_missing *missing;
    size_t n_missing;
};
/* Queries all nodes, with the timeout patience_ns. To be closed in any case. */
int cli_nodes_ask(struct bus *, const char *cluster, int64_t patience_ns, struct cli_nodes *out, struct err *e);
void cli_nodes_close(struct cli_nodes *);
/* Returns whether the node reported its own state. */
bool cli_node_knows(const struct cluster_node_status *);
/* Writes an object with `nodes` and `missing`. */
void cli_nodes_write_json(const struct cli_nodes *, struct text *out);

#endif
