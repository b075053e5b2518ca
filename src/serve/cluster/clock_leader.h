/* SPDX-License-Identifier: MIT */
/* Private to the room: the clock leader. One node finds the clocks of all: whenever hosts come, go or grow, it gathers
 * the packets of flows that two hosts have, finds the clocks and shares them. When it goes, another takes its place. */
#ifndef WEFT_CLUSTER_CLOCK_LEADER_H
#define WEFT_CLUSTER_CLOCK_LEADER_H

#include <stddef.h>

#include "base/err.h"

struct bus; struct text;

struct cluster_clock_leader;
/* Starts a thread that waits for the lease, and leads while it owns it. tell: receives messages for people, from that
 * thread. */
int cluster_clock_leader_start(struct bus *, const char *cluster, const char *node,
    void (*tell)(void *arg, const char *what), void *tell_arg, struct cluster_clock_leader **out, struct err *e);
/* Releases the lease. Questions are refused from then on. */
void cluster_clock_leader_stop(struct cluster_clock_leader *);
/* Frees it, once no question is under way. */
void cluster_clock_leader_fini(struct cluster_clock_leader *);

/* Answers CLUSTER_DELAYS, from the packets that were gathered. Any number of threads. ERR_BUSY: another node leads, or
 * this one is gathering the packets. */
int cluster_clock_leader_answer(struct cluster_clock_leader *, const void *bytes, size_t n, struct text *out,
    struct err *e);
/* The node that leads; free(*node). ERR_NOTFOUND: none does now. */
int cluster_clock_leader_find(struct bus *, const char *cluster, char **node, struct err *e);

#endif
