/* SPDX-License-Identifier: MIT */
/* Private to coord: counts by ranges of durations that are the same on every server, added up. */
#ifndef WEFT_COORD_BARS_H
#define WEFT_COORD_BARS_H

#include "coord/call.h"

/* Each tree that is there is one entry of one key that states TSP_COUNTS. Trees at NULL are of servers that have
 * none. */
bool bars_are_stated(const struct slice *models, size_t n);
/* Answers a question for series that the members' trees state so; false: they do not, and nothing was sent. */
bool bars_answer(struct coord_call *);

#endif
