/* SPDX-License-Identifier: MIT */
/* Private to the room: a broadcast query: asks all nodes about hosts. Each node is asked once for all hosts that it is
 * the first to hold; hosts of a node that does not answer are asked of the next that has a copy. */
#ifndef WEFT_CLUSTER_QUERY_H
#define WEFT_CLUSTER_QUERY_H

#include "cluster/membership.h"

struct bus;
struct cluster;

struct cluster_host_query {
    struct bus *bus;
    const char *cluster;
    struct cluster *of;      /* or NULL: where it is noted that a lesser copy was asked */
    const struct cluster_membership *membership;
    const bool *wanted;      /* by host of the membership; NULL: all */
    bool excerpts;           /* where no node answers, those that have excerpts are asked */
    int64_t deadline_ns;     /* monotonic */
    int64_t patience_ns;     /* with one node; 0: half of what is left, so that there is time to go on without it */
    /* Writes the question about these hosts. */
    void (*write)(void *arg, const size_t *hosts, size_t n, struct text *out);
    /* Takes the answer about them, or nothing of it. Not 0: it makes no sense. */
    int (*take)(void *arg, const size_t *hosts, size_t n, const void *bytes, size_t size, struct err *e);
    void *arg;
};
/* Of a cluster that is open; who asks adds what and how. */
struct cluster_host_query cluster_query_of(struct cluster *, const bool *wanted, int64_t deadline_ns);
/* Returns how many hosts nobody answered for; *rc and *e say why of one of them. by: NULL, or per host the entry whose
 * node answered for it; SIZE_MAX: none. */
size_t cluster_query_run(const struct cluster_host_query *, size_t *by, int *rc, struct err *e);

/* How long to wait for one answer when nothing else is known: half of what is left. */
int64_t cluster_query_patience(int64_t deadline_ns);

#endif
