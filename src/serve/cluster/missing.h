/* SPDX-License-Identifier: MIT */
/* What is not in the answers of a cluster because a node cannot give it, as far as the registry tells. Nodes that are
 * known and do not answer are reported by each question. */
#ifndef WEFT_CLUSTER_MISSING_H
#define WEFT_CLUSTER_MISSING_H

#include "cluster/cluster.h"

enum cluster_missing_kind {
    CLUSTER_MISSING_VERSION,         /* entry or questions of a version that is not known here */
    CLUSTER_MISSING_ENTRY,           /* damaged, of another node, or gone */
    CLUSTER_MISSING_OPENING,         /* the node has not opened its traces yet */
    CLUSTER_MISSING_FAILED,          /* the node could not open its traces, or not as they are now */
    CLUSTER_MISSING_PART             /* the node could not read something of its traces */
};
struct cluster_missing {
    const char *node;
    enum cluster_missing_kind kind;
    const char *text;                /* for people: "node web …" */
};
/* By node; as long as the cluster is neither closed nor synchronised again. */
size_t cluster_missing(const struct cluster *, const struct cluster_missing **out);

#endif
