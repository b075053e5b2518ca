/* SPDX-License-Identifier: MIT */
/* Private to the room: assignment of shared traces to this node. Every participating node sees the same table of traces
 * and the same members, and computes by itself who has which (share_weight). */
#ifndef WEFT_SHARE_ASSIGNMENT_H
#define WEFT_SHARE_ASSIGNMENT_H

#include "base/mem.h"
#include "share/shared.h"

struct share_assignment;
struct share_assignment_options {
    const char *cluster, *node, *instance;
    void (*changed)(void *arg);  /* the list may have changed; by threads of the bus */
    void *arg;
};
int share_assignment_start(struct bus *, const struct share_assignment_options *, struct share_assignment **out,
    struct err *e);
void share_assignment_stop(struct share_assignment *); /* NULL-safe; tells the other nodes */

/* Lists the traces that this node should have open. A trace that is another node's by now stays until that node has
 * reported it open, so that a new node never leaves a trace without any. Returns false if the list is not known yet;
 * look again at *again_ns. */
bool share_assignment_list(struct share_assignment *, struct cluster_share *out, int64_t *again_ns);
/* Reports that the traces of a list are open, and the entry published. */
void share_assignment_opened(struct share_assignment *, const struct cluster_share *);
/* Withdraws this node: the others take its share. Waits until they have, while it still answers. */
void share_assignment_hand_over(struct share_assignment *, int64_t deadline_ns);

#endif
