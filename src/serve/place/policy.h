/* SPDX-License-Identifier: MIT */
/* Private to the room: when a move that is advised is made by itself. It is told again and again what there is, and
 * says which move may be made now, or why none may. No cluster, no clock of its own. */
#ifndef WEFT_PLACE_POLICY_H
#define WEFT_PLACE_POLICY_H

#include "place/place.h"

struct policy_limits {
    unsigned load_percent;   /* of all CPUs of a node, */
    unsigned questions;      /* and answers a second: a node with more is not idle */
    int64_t idle_ns;         /* both nodes of a move must have been idle for so long */
};
struct policy;
struct policy *place_policy_new(const struct policy_limits *);
void place_policy_free(struct policy *); /* NULL-safe */

/* What there is now (monotonic ns). A node is idle since it was first seen below both limits, having what it has. */
void place_policy_observe(struct policy *, const struct place_plan *, int64_t now_ns);

/* The first of the advised moves whose nodes are both idle. A move that has to wait keeps all that concern one of its
 * two nodes waiting, since they may be of use only after it; others change nothing for it, nor it for them. */
struct policy_choice {
    size_t move;             /* SIZE_MAX: none now */
    bool advised;            /* there is some, now or later */
    char why[256];           /* words for people; the same as long as nothing changes */
};
void place_policy_choose(const struct policy *, const struct place_plan *, const struct cluster_host *hosts,
    int64_t now_ns, struct policy_choice *out);

/* The host's move has failed: it rests a minute, and after each further failure twice as long, an hour at most. Returns
 * how long (ns). */
int64_t place_policy_failed(struct policy *, uint64_t key, int64_t now_ns);
bool place_policy_is_resting(const struct policy *, uint64_t key, int64_t now_ns);
void place_policy_succeeded(struct policy *, uint64_t key);

#endif
