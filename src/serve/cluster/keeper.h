/* SPDX-License-Identifier: MIT */
/* Private to the room: one of the nodes keeps the clocks of all: whenever hosts come, go or grow, it gathers what each
 * has of flows that another has too, finds the clocks and shares them. When it goes, another takes its place. */
#ifndef WEFT_CLUSTER_KEEPER_H
#define WEFT_CLUSTER_KEEPER_H

#include <stddef.h>

#include "base/err.h"

struct bus; struct keeper; struct text;
/* tell: something that people should know; called by a thread of the keeper. */
int keeper_start(struct bus *, const char *cluster, const char *node, void (*tell)(void *arg, const char *what),
    void *tell_arg, struct keeper **out, struct err *e);
/* It gives up the lease; questions are refused from then on. */
void keeper_stop(struct keeper *);
/* No question is under way any more. */
void keeper_fini(struct keeper *);

/* Answers CLUSTER_DELAYS: of the packets that were gathered. Any number of threads. ERR_BUSY: another node is the
 * keeper, or this one gathers the packets just now. */
int keeper_answer(struct keeper *, const void *bytes, size_t n, struct text *out, struct err *e);
/* The node that keeps the clocks; *node is for free(). ERR_NOTFOUND: none does just now. */
int keeper_find(struct bus *, const char *cluster, char **node, struct err *e);

#endif
