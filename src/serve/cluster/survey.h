/* SPDX-License-Identifier: MIT */
/* Private to the room: asking about hosts. Each node is asked once for all hosts that it is the first to hold; hosts of
 * a node that does not answer are asked of the next that has a copy. */
#ifndef WEFT_CLUSTER_SURVEY_H
#define WEFT_CLUSTER_SURVEY_H

#include "cluster/membership.h"

struct bus;
struct cluster;

struct survey {
    struct bus *bus;
    const char *cluster;
    struct cluster *of;      /* or NULL: where it is noted that a lesser copy was asked */
    const struct cluster_membership *membership;
    const bool *wanted;      /* by host of the membership; NULL: all */
    bool excerpts;              /* where no node answers, those that have excerpts are asked */
    int64_t deadline_ns;     /* monotonic */
    int64_t patience_ns;     /* with one node; 0: half of what is left, so that there is time to go on without it */
    /* Writes the question about these hosts. */
    void (*write)(void *arg, const size_t *hosts, size_t n, struct text *out);
    /* Takes the answer about them, or nothing of it. Not 0: it makes no sense. */
    int (*take)(void *arg, const size_t *hosts, size_t n, const void *bytes, size_t size, struct err *e);
    void *arg;
};
/* Of a cluster that is open; who asks adds what and how. */
struct survey survey_of(struct cluster *, const bool *wanted, int64_t deadline_ns);
/* Returns how many hosts nobody answered for; *rc and *e say why of one of them. by: NULL, or per host the entry whose
 * node answered for it; SIZE_MAX: none. */
size_t survey_run(const struct survey *, size_t *by, int *rc, struct err *e);

/* How long to wait for one answer when nothing else is known: half of what is left. */
int64_t survey_patience(int64_t deadline_ns);

#endif
