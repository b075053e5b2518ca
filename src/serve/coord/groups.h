/* SPDX-License-Identifier: MIT */
/* Private to coord: lines of groups of machines in the outputs that sum up machines (weft.summary, weft.summary.cpu),
 * made of the machines' own lines, which their servers made. */
#ifndef WEFT_COORD_GROUPS_H
#define WEFT_COORD_GROUPS_H

#include "coord/pieces.h"

/* After a tree's answers are there: a part more for each group that has machines. The fan has room for them. */
void groups_add_tree(struct fan *);
/* Before items are split by their owners: puts those of the machines for those of the groups. False: nobody waits. */
bool groups_ask(struct coord_call *);
/* After the answers are there: parts with the groups' rows ("rows", "series"). */
void groups_add_states(struct fan *);
void groups_add_series(struct fan *);
/* Does a question for a tooltip point at a group's line, which no server has? Then it is made one for states. */
bool groups_point(struct coord_call *);
/* After that one's answers are there, in parts that are machines'. */
void groups_put_tips(struct fan *, struct json *);
/* Is it a machine's line that only the groups want? */
bool groups_hide(const struct coord_call *, int64_t id);

#endif
