/* SPDX-License-Identifier: MIT */
/* Private to coord: lines of groups of machines in the outputs weft.summary and weft.summary.cpu. They are computed
 * from the machines' own lines, which the machines' servers report. */
#ifndef WEFT_COORD_GROUPS_H
#define WEFT_COORD_GROUPS_H

#include "coord/rotation.h"

/* Adds a part to a tree's answers for each group that has machines. The gather must have room for them. */
void coord_groups_add_tree(struct coord_answers *);
/* Replaces the groups' requested items by those of their machines, before items are split by owner. False: the client
 * is gone. */
bool coord_groups_ask(struct coord_call *);
/* Add parts with the groups' rows ("rows", "series") to the answers. */
void coord_groups_add_states(struct coord_answers *);
void coord_groups_add_series(struct coord_answers *);
/* Turns a tooltip question about a group's line, which no server has, into one for the machines' states. False: the
 * question is not about a group. */
bool coord_groups_point(struct coord_call *);
/* Writes the tooltip of the group's line from the answers, whose parts are machines. */
void coord_groups_put_tips(struct coord_answers *, struct json *);
/* Returns whether a machine's line was requested only for its groups. */
bool coord_groups_hide(const struct coord_call *, int64_t id);

#endif
