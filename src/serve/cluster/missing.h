/* SPDX-License-Identifier: MIT */
/* Missing sources: parts of a cluster's answers that nodes cannot give, according to the registry. Known nodes that do
 * not answer are reported by each question. */
#ifndef WEFT_CLUSTER_MISSING_H
#define WEFT_CLUSTER_MISSING_H

#include "cluster/cluster.h"

enum cluster_missing_kind {
    CLUSTER_MISSING_VERSION,         /* unknown version of the entry or of questions */
    CLUSTER_MISSING_ENTRY,           /* entry damaged, of another node, or gone */
    CLUSTER_MISSING_OPENING,         /* traces not opened yet */
    CLUSTER_MISSING_FAILED,          /* traces, or their present state, could not be opened */
    CLUSTER_MISSING_PART             /* parts of the traces could not be read */
};
struct cluster_missing {
    const char *node;
    enum cluster_missing_kind kind;
    const char *text;                /* text for people: "node web …" */
};
/* Returns them by node; valid until the cluster is closed or synchronised again. */
size_t cluster_missing(const struct cluster *, const struct cluster_missing **out);

#endif
