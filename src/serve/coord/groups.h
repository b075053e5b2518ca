/* SPDX-License-Identifier: MIT */
/* Private to coord: lines of groups of machines in the outputs weft.summary and weft.summary.cpu. They are computed
 * from the machines' own lines, which the machines' servers report. */
#ifndef WEFT_COORD_GROUPS_H
#define WEFT_COORD_GROUPS_H

#include "coord/pieces.h"

/* Adds a part to a tree's answers for each group that has machines. The fan must have room for them. */
void groups_add_tree(struct fan *);
/* Replaces the groups' requested items by those of their machines, before items are split by owner. False: the client
 * is gone. */
bool groups_ask(struct coord_call *);
/* Add parts with the groups' rows ("rows", "series") to the answers. */
void groups_add_states(struct fan *);
void groups_add_series(struct fan *);
/* Turns a tooltip question about a group's line, which no server has, into one for the machines' states. False: the
 * question is not about a group. */
bool groups_point(struct coord_call *);
/* Writes the tooltip of the group's line from the answers, whose parts are machines. */
void groups_put_tips(struct fan *, struct json *);
/* Returns whether a machine's line was requested only for its groups. */
bool groups_hide(const struct coord_call *, int64_t id);

#endif
