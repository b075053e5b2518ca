/* SPDX-License-Identifier: MIT */
/* Private to the room: broadcast query, which asks all nodes about hosts. Each node is asked once, for all hosts of
 * which it is the first holder. Hosts of a node that does not answer are asked of the next node with a copy. */
#ifndef WEFT_CLUSTER_QUERY_H
#define WEFT_CLUSTER_QUERY_H

#include "cluster/membership.h"

struct bus;
struct cluster;

struct cluster_host_query {
    struct bus *bus;
    const char *cluster;
    struct cluster *of;      /* NULL, or where to note that a lesser copy was asked */
    const struct cluster_membership *membership;
    const bool *wanted;      /* by host of the membership; NULL: all */
    bool excerpts;           /* nodes with excerpts are asked if no other answers */
    int64_t deadline_ns;     /* monotonic */
    int64_t patience_ns;     /* timeout of one node; 0: half of the time left, so that others can be asked */
    /* Writes the question about these hosts. */
    void (*write)(void *arg, const size_t *hosts, size_t n, struct text *out);
    /* Takes the whole answer about them, or nothing. Not 0: the answer is invalid. */
    int (*take)(void *arg, const size_t *hosts, size_t n, const void *bytes, size_t size, struct err *e);
    void *arg;
};
/* Returns a query of an open cluster; the caller adds the callbacks. */
struct cluster_host_query cluster_query_of(struct cluster *, const bool *wanted, int64_t deadline_ns);
/* Returns the number of hosts without an answer; *rc and *e have the reason of one. by: NULL, or by host the entry
 * whose node answered; SIZE_MAX: none. */
size_t cluster_query_run(const struct cluster_host_query *, size_t *by, int *rc, struct err *e);

/* Returns the default timeout of one answer: half of the time left. */
int64_t cluster_query_patience(int64_t deadline_ns);

#endif
