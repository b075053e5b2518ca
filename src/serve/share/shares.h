/* SPDX-License-Identifier: MIT */
/* Private to the room: which of the traces that nodes share are this node's. Every node that takes part sees the same
 * table of traces and the same members, and so knows by itself who has which (shared_weight). */
#ifndef WEFT_SHARE_SHARES_H
#define WEFT_SHARE_SHARES_H

#include "base/mem.h"
#include "share/shared.h"

struct shares;
struct shares_options {
    const char *cluster, *node, *instance;
    void (*changed)(void *arg);  /* by threads of the bus: shares_list may say something else now */
    void *arg;
};
int shares_start(struct bus *, const struct shares_options *, struct shares **out, struct err *e);
void shares_stop(struct shares *);                   /* NULL-safe; tells the others */

/* What this node shall have open. A trace that another one has by now stays until that one has said that it has it
 * open, so that none is ever with nobody because somebody came. False: not known yet; look again at *again_ns. */
bool shares_list(struct shares *, struct cluster_share *out, int64_t *again_ns);
/* What a list said is open, and others have been told. */
void shares_opened(struct shares *, const struct cluster_share *);
/* This node takes part no more: the others take its share. Waits until they have, while it still answers. */
void shares_hand_over(struct shares *, int64_t deadline_ns);

#endif
