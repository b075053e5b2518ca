/* SPDX-License-Identifier: MIT */
/* Lease: one of many nodes owns it, and a table says which. The owner renews it every CLUSTER_LEASE_RENEW_NS, and loses
 * it after CLUSTER_LEASE_TTL_NS without renewal. */
#ifndef WEFT_CLUSTER_LEASE_H
#define WEFT_CLUSTER_LEASE_H

#include <stdint.h>

#include "base/err.h"

struct bus; struct bus_table;

#define CLUSTER_LEASE_RENEW_NS INT64_C(2000000000)
#define CLUSTER_LEASE_TTL_NS INT64_C(15000000000)

struct cluster_lease {
    struct bus_table *table;
    const char *name;        /* borrowed: also of the table and its key */
    uint64_t revision;       /* 0: not ours */
};
/* Zeroed on failure, which cluster_lease_close takes. */
int cluster_lease_open(struct bus *, const char *cluster, const char *name, struct cluster_lease *out, struct err *e);
void cluster_lease_close(struct cluster_lease *);
/* Takes the lease if it is free, or renews it. ERR_STALE: another owns it, or took it meanwhile. Other errors: the
 * broker is away, and nobody else can take it either. */
int cluster_lease_take(struct cluster_lease *, const char *who, struct err *e);
/* Frees the lease at once, if it is ours. */
void cluster_lease_release(struct cluster_lease *);
/* The owner's name; free(). ERR_NOTFOUND: nobody owns it. */
int cluster_lease_owner(const struct cluster_lease *, char **who, struct err *e);

#endif
