/* SPDX-License-Identifier: MIT */
/* Private to state: lost events. */
#ifndef WEFT_STATE_LOSSES_H
#define WEFT_STATE_LOSSES_H

#include "state/format.h"

/* Sorts by begin; the order of those that begin in the same ns does not depend on the order of input. */
void state_losses_sort(struct state_disk_loss *, size_t n);
struct state_loss state_loss_of(const struct state_disk_loss *);

#endif
