/* SPDX-License-Identifier: MIT */
/* Private to coord: the entries of all servers, one after the other, below common headers. */
#ifndef WEFT_COORD_TREE_H
#define WEFT_COORD_TREE_H

#include "coord/gather.h"

/* Merges and sends trees, after coord_envelopes_open. Adds groups of machines. */
void coord_tree_send(struct coord_answers *);
/* Writes the merged tree. */
coord_merge coord_merge_tree;

#endif
