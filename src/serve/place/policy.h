/* SPDX-License-Identifier: MIT */
/* Private to the room: policy of automatic moves. It observes the cluster again and again, and returns the move that
 * may be made now, or the reason why none may. No cluster, no clock of its own. */
#ifndef WEFT_PLACE_POLICY_H
#define WEFT_PLACE_POLICY_H

#include "place/place.h"

struct policy_limits {
    unsigned load_percent;   /* load of all CPUs of a node, in percent, */
    unsigned questions;      /* and answers per second: a node with more is not idle */
    int64_t idle_ns;         /* idle time required of both nodes of a move */
};
struct policy;
struct policy *place_policy_new(const struct policy_limits *);
void place_policy_free(struct policy *); /* NULL-safe */

/* Observes the present state (monotonic ns). A node is idle since it was first seen below both limits with its present
 * traces. */
void place_policy_observe(struct policy *, const struct place_plan *, int64_t now_ns);

/* First advised move whose nodes are both idle. A move that waits blocks all later moves of its two nodes, since they
 * may be useful only after it. It does not affect other moves. */
struct policy_choice {
    size_t move;             /* SIZE_MAX: none now */
    bool advised;            /* plan has advised moves, now or later */
    char why[256];           /* text for people; unchanged as long as nothing changes */
};
void place_policy_choose(const struct policy *, const struct place_plan *, const struct cluster_host *hosts,
    int64_t now_ns, struct policy_choice *out);

/* Notes a failed move of the host. It pauses for a minute, after each further failure twice as long, at most an hour.
 * Returns the pause (ns). */
int64_t place_policy_failed(struct policy *, uint64_t key, int64_t now_ns);
bool place_policy_is_resting(const struct policy *, uint64_t key, int64_t now_ns);
void place_policy_succeeded(struct policy *, uint64_t key);

#endif
