/* SPDX-License-Identifier: MIT */
/* Private to coord: the entries of all servers, one after the other, below common headers. */
#ifndef WEFT_COORD_TREE_H
#define WEFT_COORD_TREE_H

#include "coord/gather.h"

/* Writes the merged tree; null: no server has one. Pieces are folded, and groups of machines added, for which the
 * answers need room. Trees without entries are dropped and noted. */
coord_merge coord_merge_tree;

#endif
