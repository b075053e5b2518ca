/* SPDX-License-Identifier: MIT */
/* Requests served by the hosts of a cluster. */
#ifndef WEFT_CLUSTER_REQUESTS_H
#define WEFT_CLUSTER_REQUESTS_H

#include "cluster/cluster.h"

/* Requests served by the hosts and in progress at any time of [begin, end] of the reference clock (path_requests_find,
 * over the hosts of each node alone); unordered. Names live as long as the cluster. Hosts without an answer are left
 * out: *away is their number; *e has the reason. */
struct cluster_request {
    int32_t host;
    uint64_t row;                    /* row of the thread, for struct cluster_path_start */
    int64_t begin, end;              /* times by the reference clock */
    bool by_interrupt;               /* last byte sent by work in an interrupt */
    const char *name;                /* name of the thread at the end of the request */
};
struct cluster_requests { struct cluster_request *v; size_t n, cap; };
/* host: serving host, by name; NULL: any. */
int cluster_find_requests(struct cluster *, const char *host, int64_t begin, int64_t end, int64_t deadline_ns,
    struct cluster_requests *found, size_t *away, struct err *e);

#endif
