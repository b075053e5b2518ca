/* SPDX-License-Identifier: MIT */
/* Which requests the nodes of a cluster have served. */
#ifndef WEFT_CLUSTER_REQUESTS_H
#define WEFT_CLUSTER_REQUESTS_H

#include "cluster/cluster.h"

/* Requests that the hosts served and that were there at any time of [begin, end] of the reference clock (requests_find,
 * by the hosts of each node alone); in no order. Names live as long as the cluster. Hosts that nobody answered for are
 * left out: *away, how many; *e says why. */
struct cluster_request {
    int32_t host;
    uint64_t row;                    /* of the thread: for struct cluster_path_start */
    int64_t begin, end;              /* by the reference clock */
    bool by_interrupt;               /* the last byte was sent by work in an interrupt */
    const char *name;                /* of the thread at its end */
};
struct cluster_requests { struct cluster_request *v; size_t n, cap; };
/* host: that served them, by name; NULL: any. */
int cluster_find_requests(struct cluster *, const char *host, int64_t begin, int64_t end, int64_t deadline_ns,
    struct cluster_requests *found, size_t *away, struct err *e);

#endif
