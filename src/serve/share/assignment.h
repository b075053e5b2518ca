/* SPDX-License-Identifier: MIT */
/* Private to the room: which of the traces that nodes share are this node's. Every node that takes part sees the same
 * table of traces and the same members, and so knows by itself who has which (share_weight). */
#ifndef WEFT_SHARE_ASSIGNMENT_H
#define WEFT_SHARE_ASSIGNMENT_H

#include "base/mem.h"
#include "share/shared.h"

struct share_assignment;
struct share_assignment_options {
    const char *cluster, *node, *instance;
    void (*changed)(void *arg);  /* by threads of the bus: share_assignment_list may say something else now */
    void *arg;
};
int share_assignment_start(struct bus *, const struct share_assignment_options *, struct share_assignment **out,
    struct err *e);
void share_assignment_stop(struct share_assignment *); /* NULL-safe; tells the others */

/* What this node shall have open. A trace that another one has by now stays until that one has said that it has it
 * open, so that none is ever with nobody because somebody came. False: not known yet; look again at *again_ns. */
bool share_assignment_list(struct share_assignment *, struct cluster_share *out, int64_t *again_ns);
/* What a list said is open, and others have been told. */
void share_assignment_opened(struct share_assignment *, const struct cluster_share *);
/* This node takes part no more: the others take its share. Waits until they have, while it still answers. */
void share_assignment_hand_over(struct share_assignment *, int64_t deadline_ns);

#endif
